"""Data of the panel: random keys."""

from __future__ import annotations

import numpy as np

N_TOKENS, MAX_DIMENSION = 64, 256


def key_signs() -> np.ndarray:
    """Signs of the random keys, (tokens, dimensions); the first m columns over sqrt(m) are keys of dimension m."""
    return np.random.default_rng(1).choice(np.array([-1, 1]), size=(N_TOKENS, MAX_DIMENSION))


def collect(progress: bool = False) -> dict:
    """The keys, ready for JSON."""
    return {
        "signs": ["".join("+" if sign > 0 else "-" for sign in row) for row in key_signs()],
    }
