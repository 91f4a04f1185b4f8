r"""LayerNorm that subtracts the mean, to which the paper says that its analysis extends (Section 3.1).

The feature of class n is then P c_n / ||P c_n||, where P takes off the mean over the M tokens. (3) keeps its form,
dz/dt = c * (P v) with v = (g - f (f . g)) / ||P c||, and Theorem 1 holds with the Gram matrix of these features, whose
overlaps are (c_n . c_n' - 1/M) / (||P c_n|| ||P c_n'||): they may be negative.

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from theory.scan_and_snap.bounds import inner_coefficients
from theory.statements import Runs


def features(shares: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """P c_n / ||P c_n|| in rows of ``width`` entries, and the norms, from attention shares (K, tokens)."""
    wide = np.zeros((len(shares), width))
    wide[:, : shares.shape[1]] = shares
    wide -= wide.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / norms, norms


def speed(shares: np.ndarray, vocab_size: int) -> np.ndarray:
    """dz/dt of one query, per unit of eta_Z gamma/K: (tokens,), with the mean over M tokens taken off."""
    unit, norms = features(shares, vocab_size)
    signal = np.linalg.solve(unit @ unit.T, inner_coefficients(len(shares), vocab_size)).T @ unit
    signal = (signal - unit * (unit * signal).sum(axis=1, keepdims=True)) / norms
    signal -= signal.mean(axis=1, keepdims=True)
    return (shares * signal[:, : shares.shape[1]]).sum(axis=0)


def pair(common: float, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Shares of two classes with one common token of about this share, and three distinct tokens each."""
    shares = np.zeros((2, 7))
    own = rng.uniform(0.2, 1, (2, 3))
    shares[0, 1:4], shares[1, 4:] = own / own.sum(axis=1, keepdims=True)
    top = common * rng.uniform(1 - spread, 1 + spread, (2, 1))
    shares *= 1 - top
    shares[:, :1] = top
    return shares


def least_overlap(vocab_size: Any) -> Any:
    """The overlap of two classes at which beta_12 = (q_1 f_1 . f_2 - q_0)/(1 - (f_1 . f_2)^2) changes its sign."""
    return -1 / (vocab_size - 1)


def margin(shares: np.ndarray, vocab_size: int) -> float:
    """f_1 . f_2 less `least_overlap`: above zero Theorem 2 holds for two classes, below it is reversed."""
    unit, _ = features(shares, vocab_size)
    return float(unit[0] @ unit[1] - least_overlap(vocab_size))


def _common(runs: Runs, expected) -> float:
    """Share of 200 random pairs whose common token does not move with the sign ``expected(shares, M)``."""
    vocab_size, rng = runs.setting.classes.vocab_size, np.random.default_rng(0)
    wrong = []
    for common in np.geomspace(2 / vocab_size, 0.5, 200):
        shares = pair(common, 0.1, rng)
        wrong.append(expected(shares, vocab_size) * speed(shares, vocab_size)[0] <= 0)
    return float(np.mean(wrong))


def common_printed(runs: Runs, level: str) -> float:
    """Theorem 2(b) as it stands: the share of common tokens, from 2/M to 1/2, that do not lose attention."""
    return _common(runs, lambda shares, vocab_size: -1)


def common_corrected(runs: Runs, level: str) -> float:
    """`common_printed` where beta_12 > 0, and the reverse where it is negative."""
    return _common(runs, lambda shares, vocab_size: -np.sign(margin(shares, vocab_size)))
