"""Data of the panel: a balanced layer, and the slider's perturbation of it."""

from __future__ import annotations

import numpy as np

from dynamics import Layer
from yzflow_bounded_dyck import DyckLanguage, balance

LANGUAGE = DyckLanguage(n_types=2, max_depth=3)


def dyck_layer() -> Layer:
    """A balanced layer with a sharp read-out: each further level of depth weighs eight times as much."""
    layer = balance.balanced_layer(LANGUAGE, rng=2, scale=0.3)
    levels = np.arange(len(layer.Y)) % LANGUAGE.max_depth
    return Layer(layer.Z, 200 * 8.0 ** (levels[:, None] - LANGUAGE.max_depth + 1) * (layer.Y > 0), layer.V)


def violation_pattern() -> np.ndarray:
    """The matrix that the slider adds to Z, times its value: noise on the open brackets, which breaks (11)."""
    pattern = np.zeros((LANGUAGE.n_states, LANGUAGE.n_states))
    opens = balance.pairs(LANGUAGE)[0].ravel()
    pattern[:, opens] = np.random.default_rng(4).normal(size=(LANGUAGE.n_states, opens.size)).round(6) * -1
    return pattern


def collect(progress: bool = False) -> dict:
    """The language and the weights, ready for JSON."""
    layer = dyck_layer()
    return {
        "language": {"k": LANGUAGE.n_types, "D": LANGUAGE.max_depth},
        "layer": {"Z": layer.Z.tolist(), "V": np.asarray(layer.V).tolist(), "Y": layer.Y.tolist()},
        "pattern": violation_pattern().tolist(),
    }
