"""Mean effect of finite sequences on attention: a term of order 1/T, which is absent for T -> infinity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks

__all__ = ["finite_length_drift", "finite_length_first_moves"]


def finite_length_drift(probabilities: ArrayLike) -> np.ndarray:
    r"""Drift beta that random sequences give the logits of a class's tokens, per unit of eta_Z p_n kappa/(T - 1).

    A class with token probabilities p, whose backpropagated gradient is ``g_n = kappa f_n`` on them, has no drift at
    T -> infinity: f_n * (g_n - f_n (f_n . g_n)) = 0. With N multinomial over T - 1 tokens the mean over sequences is

        dz_l/dt = eta_Z p_n kappa / (T - 1) beta_l + O(1/T^2),
        beta_l = -p_l/S_2 + p_l^2 (1/S_2^2 - 3 S_3/S_2^3) + 3 p_l^3/S_2^2,    S_k = sum_j p_j^k.

    The sum over l is zero; beta is zero if all p_l are equal. For small p_l, beta_l is about -p_l/S_2: rare tokens lose
    in favour of frequent tokens, in proportion to p_l. Theorem 2's gain of a distinct token is in proportion to f_nl^2,
    and so to p_l^2. So at any finite T rare enough distinct tokens lose on average, whatever the batch size.

    Parameters
    ----------
    probabilities : (n,) array
        P(l|n): positive, with sum one.

    Returns
    -------
    (n,) array

    Raises
    ------
    ValueError
        If the probabilities are not positive or do not sum to one.

    Notes
    -----
    Derivation: half the sum of p_j d^2/dN_j^2 at N = p of N_l p_l/(|N| |p|) - N_l^2 (N . p)/(|N|^3 |p|), which does not
    change when N is multiplied by a number: the -p p^T of the covariance (diag(p) - p p^T)/(T - 1) adds nothing.
    kappa may depend on N through f(N) . f_n, whose first derivative is zero at p. It is exact for classes that share no
    tokens, from a zero start while features stand still: then Y_l is in proportion to f_nl. The model is that of Tian
    et al. (2023), arXiv 2305.16380, Section 3.2, whose analysis is for T -> infinity (Lemma 2).
    """
    p, second, third = _powers(probabilities)
    drift: np.ndarray = -p / second + p**2 * (1 / second**2 - 3 * third / second**3) + 3 * p**3 / second**2
    return drift


def finite_length_first_moves(probabilities: ArrayLike) -> np.ndarray:
    r"""Drift of `finite_length_drift` at the start, with a Y that the same finite sequences have trained.

    Start from Y = Z = 0 and take eta_Y eta_Z t^2/2 p_n^2 (1 - 1/M)/(T - 1) as the unit. The logits of a class with
    probabilities p, which shares no tokens with other classes, are then

        beta_l + gamma_l = -p_l/S_2 + p_l^2 (1/S_2^2 - 2 S_3/S_2^3) + 2 p_l^3/S_2^2,    S_k = sum_j p_j^k,

    to order 1/T. Like beta they sum to zero, vanish if all p_l are equal, and are about -p_l/S_2 for small p_l.

    Parameters
    ----------
    probabilities : (n,) array
        P(l|n): positive, with sum one.

    Returns
    -------
    (n,) array

    Raises
    ------
    ValueError
        If the probabilities are not positive or do not sum to one.

    Notes
    -----
    Derivation: Y_l is in proportion to E[f_l], which is f_nl + delta_l/(T - 1) with delta_l = -p_l^2/S_2^(3/2) up to a
    multiple of f_nl (half the sum of p_j d^2 f_l/dN_j^2 at N = p), and gamma = f_n * (delta - f_n (f_n . delta)). The
    limit is `initial_drift` of all sequences. Model: as above.
    """
    p, second, third = _powers(probabilities)
    moves: np.ndarray = -p / second + p**2 * (1 / second**2 - 2 * third / second**3) + 2 * p**3 / second**2
    return moves


def _powers(probabilities: ArrayLike) -> tuple[np.ndarray, float, float]:
    """p, S_2 and S_3, checked."""
    p = checks.finite_array("probabilities", probabilities, ndim=1)
    if p.size == 0 or (p <= 0).any():
        raise checks.reject("probabilities", "be positive", checks.brief(p.tolist()))
    checks.sum_to_one("probabilities", p.sum())
    return p, float((p**2).sum()), float((p**3).sum())
