r"""LayerNorm that subtracts the mean; the paper says that its analysis extends to it (Section 3.1).

The feature of class n is then P c_n / ||P c_n||, where P subtracts the mean over the M tokens. (3) keeps its form,
dz/dt = c * (P v) with v = (g - f (f . g)) / ||P c||. Theorem 1 holds with the Gram matrix of these features. Their
overlaps are (c_n . c_n' - 1/M) / (||P c_n|| ||P c_n'||), and may be negative.

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from theory.scan_and_snap.bounds import inner_coefficients
from theory.statements import Runs


def overlaps(shares: np.ndarray, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """f_n . f_n' = (c_n . c_n' - 1/M)/(N_n N_n') and N_n = ||P c_n||, from attention shares (K, tokens)."""
    centred = shares @ shares.T - 1 / vocab_size
    norms = np.sqrt(np.diag(centred))
    return centred / np.outer(norms, norms), norms


def speed(shares: np.ndarray, vocab_size: int) -> np.ndarray:
    """dz/dt of one query, per unit of eta_Z gamma/K: (tokens,), for LayerNorm that subtracts the mean over M tokens.

    Tokens without a share need no column: features sum to zero over all M tokens.
    """
    gram, norms = overlaps(shares, vocab_size)
    inner = inner_coefficients(len(shares), vocab_size)
    unit = (shares - 1 / vocab_size) / norms[:, None]
    # g_n = sum over n' of (G^{-1} u_n)_n' f_n', so that f_n . g_n is u_nn.
    signal = (np.linalg.solve(gram, inner).T @ unit - inner[0, 0] * unit) / norms[:, None]
    return (shares * signal).sum(axis=0)


def pair(common: float, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Shares of two random classes: a common token of about the share ``common``, and three distinct tokens each."""
    shares = np.zeros((2, 7))
    own = rng.uniform(0.2, 1, (2, 3))
    shares[0, 1:4], shares[1, 4:] = own / own.sum(axis=1, keepdims=True)
    top = common * rng.uniform(1 - spread, 1 + spread, (2, 1))
    shares *= 1 - top
    shares[:, :1] = top
    return shares


def least_overlap(vocab_size: Any) -> Any:
    """The overlap at which beta changes its sign, for two classes and for K classes with equal overlaps.

    For two classes beta_12 = (q_1 f_1 . f_2 - q_0)/(1 - (f_1 . f_2)^2).
    """
    return -1 / (vocab_size - 1)


def border(vocab_size: Any, common: Any, squared: Any) -> Any:
    """Number with the sign of beta for equal classes, from the common token's share and ``squared`` = ||c||^2."""
    return (vocab_size - 1) * common**2 - (1 - squared)


def distinct_push(vocab_size: Any, share: Any, overlap: Any, squared: Any) -> Any:
    """The push of class n' on a distinct token of n, times M N_n^2 N_n'/beta_nn'; positive if the token gains.

    ``share`` is c_nl, ``overlap`` is c_n . c_n' - 1/M, and ``squared`` is N_n^2 = ||c_n||^2 - 1/M.
    """
    return squared + (vocab_size * share - 1) * overlap


def margin(shares: np.ndarray, vocab_size: int) -> float:
    """f_1 . f_2 minus `least_overlap`: if positive, Theorem 2 holds for two classes; if negative, it is reversed."""
    gram, _ = overlaps(shares, vocab_size)
    return float(gram[0, 1] - least_overlap(vocab_size))


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


def signals(shares: np.ndarray, vocab_size: int) -> np.ndarray:
    """beta_nn' of the centred features, zero on the diagonal: (K, K)."""
    gram, _ = overlaps(shares, vocab_size)
    beta = -np.linalg.solve(gram, inner_coefficients(len(shares), vocab_size)).T
    np.fill_diagonal(beta, 0.0)
    return beta


def several(rng: np.random.Generator, vocab_size: int) -> np.ndarray:
    """Shares of two to five classes of one common token, from 1.1/M to 0.9 each, and one to three distinct tokens."""
    counts = rng.integers(1, 4, size=rng.integers(2, 6))
    shares = np.zeros((len(counts), 1 + counts.sum()))
    shares[:, 0] = np.exp(rng.uniform(np.log(1.1 / vocab_size), np.log(0.9), len(counts)))
    for n, last in enumerate(1 + np.cumsum(counts)):
        own = rng.uniform(0.05, 1, counts[n])
        shares[n, last - counts[n] : last] = (1 - shares[n, 0]) * own / own.sum()
    return shares


def common_several(runs: Runs, level: str) -> float:
    """Share of common tokens that do not lose attention, in 200 random sets of classes with every beta_nn' > 0."""
    vocab_size, rng = runs.setting.classes.vocab_size, np.random.default_rng(0)
    wrong: list[bool] = []
    while len(wrong) < 200:
        shares = several(rng, vocab_size)
        if (signals(shares, vocab_size) + np.eye(len(shares)) > 0).all():
            wrong.append(bool(speed(shares, vocab_size)[0] >= 0))
    return float(np.mean(wrong))


def with_a_rare_token(vocab_size: int, rare: float) -> np.ndarray:
    """Shares of two classes inside Assumption 2, for M >= 300; the second class has a rare distinct token.

    The first class has 0.36 on the common token and the rest on one distinct token. The second has 0.2 on the common
    token, ``rare/M`` on the rare token, and the rest on thirty distinct tokens.
    """
    shares = np.zeros((2, 33))
    shares[0, :2] = 0.36, 0.64
    shares[1, 0], shares[1, 32] = 0.2, rare / vocab_size
    shares[1, 2:32] = (0.8 - shares[1, 32]) / 30
    return shares


def _rare(runs: Runs, expected) -> float:
    """Share of 200 distinct tokens of 0.001/M to 10/M, which do not move with the sign ``expected(shares, M)``."""
    vocab_size = runs.setting.classes.vocab_size
    wrong = []
    for rare in np.geomspace(1e-3, 10, 200):
        shares = with_a_rare_token(vocab_size, rare)
        wrong.append(expected(shares, vocab_size) * speed(shares, vocab_size)[-1] <= 0)
    return float(np.mean(wrong))


def distinct_printed(runs: Runs, level: str) -> float:
    """Theorem 2(a) as it stands: the share of distinct tokens that do not gain attention."""
    return _rare(runs, lambda shares, vocab_size: 1)


def distinct_corrected(runs: Runs, level: str) -> float:
    """`distinct_printed` with the sign of `distinct_push`."""

    def sign(shares: np.ndarray, vocab_size: int) -> float:
        overlap, squared = shares[0] @ shares[1] - 1 / vocab_size, shares[1] @ shares[1] - 1 / vocab_size
        return np.sign(distinct_push(vocab_size, shares[1, -1], overlap, squared))

    return _rare(runs, sign)
