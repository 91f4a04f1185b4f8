"""The attention layer under the modified decoder flow: growth of its logits, with rates and bounds.

Paper: Tian, Wang, Chen, Du, "Scan and Snap" (NeurIPS 2023, arXiv 2305.16380), Sections 5 and 6, Appendices E and F.

M is `vocab_size` and K is `n_classes`; one class is drawn per step with probability 1/K. f_nl is the attention of
next token n on contextual token l, normalised to ||f_n|| = 1, z_l the logit of l, and chi_l = exp(2 (z_l(t) - z_l(0)))
its growth factor. Time is in SGD steps and learning rates are per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from theory.scan_and_snap.decoder import Decoder, sizes

__all__ = [
    "Rates",
    "distinct_growth",
    "full_flow_slowdown",
    "growth_bounds",
    "growth_exponent",
    "printed_growth_exponent",
    "relative_gain",
    "speed_constant",
]


@dataclass(frozen=True)
class Rates(Decoder):
    """A decoder and the attention above it: sizes and both learning rates of one task, checked once.

    Setting of the exponents: one common token in every class, one query, zero initial logits.

    Attributes
    ----------
    vocab_size, n_classes, eta_y
        As in `theory.scan_and_snap.decoder.Decoder`.
    eta_z : float
        Learning rate of the attention per step, positive.

    Raises
    ------
    ValueError
        If an attribute, or an argument of a method, is out of its range.
    """

    eta_z: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eta_z", checks.positive("eta_z", self.eta_z))

    def growth_exponent(self, t: ArrayLike, *, c0: float) -> Any:
        """Growth exponent B(t) = eta_Z int_0^t xi = 1/4 ln(1 + 4 Gamma(t)/C_0): Theorem 4, (14), corrected.

        The common token's logit is z_common = -B, by xi = gamma exp(4 z)/C_0 and zdot = -eta_Z xi. For a distinct token
        the exponent B_n of Theorem 3 is B/K (`growth_bounds`): it moves only in the steps of its own class, the common
        token in every step.

        Parameters
        ----------
        t : array_like, any shape
            Time in SGD steps of the whole run, at or above zero.
        c0 : float
            Positive; see `speed_constant`.

        Returns
        -------
        float or array of the shape of t

        Notes
        -----
        Source: integration of (13) with B(0) = 0 and class probability 1/K. `printed_growth_exponent` is the paper's
        form.
        """
        c0 = checks.positive("c0", c0)
        return 0.25 * np.log1p(4.0 * self.gamma_integral(t, eta_z=self.eta_z) / c0)

    def printed_growth_exponent(self, t: ArrayLike, *, c0: float) -> Any:
        """The paper's growth exponent as printed, 1/4 ln(C_0 + 4 Gamma(t)): (14), (124), (129).

        Erratum: it drops the lower limit of the integral, so that its value at t = 0 is 1/4 ln C_0 and not 0. It
        exceeds `growth_exponent` by this constant, which is 0 for C_0 = 1 as in the paper's Fig. 9. The paper also uses
        B itself, K times too large, as the exponent of a distinct token.
        """
        c0 = checks.positive("c0", c0)
        return 0.25 * np.log(c0 + 4.0 * self.gamma_integral(t, eta_z=self.eta_z))


def growth_exponent(t: ArrayLike, *, vocab_size: int, n_classes: int, eta_y: float, eta_z: float, c0: float) -> Any:
    """Growth exponent B(t) of Theorem 4, (14), corrected: `Rates.growth_exponent`."""
    return Rates(vocab_size, n_classes, eta_y, eta_z).growth_exponent(t, c0=c0)


def printed_growth_exponent(
    t: ArrayLike, *, vocab_size: int, n_classes: int, eta_y: float, eta_z: float, c0: float
) -> Any:
    """The paper's growth exponent as printed, (14), (124), (129): `Rates.printed_growth_exponent`."""
    return Rates(vocab_size, n_classes, eta_y, eta_z).printed_growth_exponent(t, c0=c0)


def speed_constant(*, n_classes: int, overlap: ArrayLike, vocab_size: int | None = None) -> Any:
    """C_0 = 1/((K - 1) rho^2) of `growth_exponent`, with rho = f_n.f_n' at t = 0.

    For one common token of probability P_c and norm rho_0 of the unnormalised attention, rho = P_c^2/rho_0^2, so that
    C_0 = rho_0^4/((K - 1) P_c^4). The paper absorbs P_c and prints rho_0^4/K, see (13).

    Parameters
    ----------
    n_classes : int
        K, at least 2.
    overlap : array_like
        rho, between 0 and 1, both excluded.
    vocab_size : int, optional
        M. With it, the exponent is exact at the start of the theory and of the modified flow. Default: C_0 to leading
        order.

    Returns
    -------
    float or array of the shape of overlap

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Leading order for rho << 1/K and M rho >> 1. For equal overlaps, Theorem 1's beta gives exactly
    xi/gamma = (K - 1) rho M (1 + (M - 1) rho)/((M - 1)^2 (1 - rho)(1 + (K - 1) rho)), which C_0 takes as
    (K - 1) rho^2 at t = 0. A single common token falls at (1 - rho) xi, so that with M
    1/C_0 = (K - 1) rho M (1 + (M - 1) rho)/((M - 1)^2 (1 + (K - 1) rho)). The full flow begins s times as fast
    (`full_flow_slowdown`).
    """
    k = checks.integer("n_classes", n_classes, minimum=2)
    rho = checks.finite_array("overlap", overlap)
    outside = (rho <= 0) | (rho >= 1)
    if outside.any():
        raise checks.reject("overlap", "be between 0 and 1, both excluded", rho[outside][0])
    if vocab_size is None:
        return (1.0 / (k - 1) / rho / rho)[()]
    m = checks.integer("vocab_size", vocab_size, minimum=k)
    return ((m - 1) / m * ((m - 1) / (1.0 + (m - 1) * rho)) * (1.0 + (k - 1) * rho) / (k - 1) / rho)[()]


def growth_bounds(exponent: ArrayLike, f0: ArrayLike) -> tuple[Any, Any]:
    """Bounds on the growth factor of a dominant distinct token: Theorem 3, (12).

    exp(2 f0^2 B_n) <= chi <= exp(2 B_n), with B_n = (eta_Z/K) int_0^t xi_n.

    Parameters
    ----------
    exponent : array_like
        B_n at or above zero; `growth_exponent` divided by K.
    f0 : array_like, broadcast against exponent
        Initial normalised attention f_nl(0) on the token, from 0 to 1.

    Returns
    -------
    lower, upper : floats or arrays of the broadcast shape

    Raises
    ------
    ValueError
        If an argument is out of its range or the shapes do not broadcast.

    Notes
    -----
    For a token that is not dominant, the upper bound holds; the lower bound may fail.
    """
    exponent = checks.non_negative_array("exponent", exponent)
    f0 = checks.non_negative_array("f0", f0)
    if (f0 > 1).any():
        raise checks.reject("f0", "be at most 1", f0.max())
    exponent, f0 = _broadcast(exponent, "f0", f0)
    return np.exp(2.0 * f0 * f0 * exponent)[()], np.exp(2.0 * exponent)[()]


def distinct_growth(exponent: ArrayLike, distinct: ArrayLike) -> np.ndarray:
    """Growth factors chi_l of all distinct tokens of a class, in closed form up to one scalar root.

    Theorem 2 (a) is dz_l/dB_n = f_l^2. While common tokens carry a negligible share of the norm,
    f_l^2 = p_l^2 exp(2 z_l)/sum_k p_k^2 exp(2 z_k). Then x_l = exp(-2 z_l)/p_l^2 falls at the rate
    2/sum_k (1/x_k), the same for every l, and with s = x_l(0) - x_l

        chi_l = 1/(1 - s p_l^2),    prod_l (1 - s p_l^2) = exp(-2 B_n).

    Parameters
    ----------
    exponent : array_like, any shape
        B_n at or above zero; `growth_exponent` divided by K.
    distinct : (D,) array_like
        Probabilities P(l|n) of the distinct tokens, positive, on any common scale. With non-zero initial logits,
        pass P(l|n) exp(z_l(0)).

    Returns
    -------
    array of shape exponent.shape + (D,)
        chi_l = exp(2 (z_l(t) - z_l(0))), which is inf where it overflows.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Not in the paper, which gives the bounds of `growth_bounds`. The product of the chi_l is exp(2 B_n).
    """
    exponent = checks.non_negative_array("exponent", exponent)
    p = checks.finite_array("distinct", distinct, ndim=1)
    if p.size == 0:
        raise checks.reject("distinct", "hold at least 1 probability", "an empty array")
    if (p <= 0).any():
        raise checks.reject("distinct", "be positive", p.min())
    ratio = p / p.max()
    with np.errstate(divide="ignore", under="ignore"):
        log_q = 2.0 * np.log(ratio)
        # 1 - q from the difference of the probabilities: exact for near ties, where 1 - ratio**2 loses digits.
        log_rest = np.log((p.max() - p) / p.max()) + np.log1p(ratio)
        v = _solve_product(2.0 * exponent.ravel(), log_q, log_rest)
        log_chi = _log_growth(v, log_q, log_rest)
    return np.exp(log_chi).reshape(*exponent.shape, p.size)


def relative_gain(share: ArrayLike, other: ArrayLike) -> Any:
    """Relative gain r_{l/l'|n} = f_nl^2/f_nl'^2 - 1 of token l over token l', defined before (11).

    Parameters
    ----------
    share : array_like
        Attention f_nl, at or above zero.
    other : array_like, broadcast against share
        Attention f_nl', positive. Only the ratio matters: c_nl and c_nl' give the same gain.

    Returns
    -------
    float or array of the broadcast shape

    Raises
    ------
    ValueError
        If an argument is out of its range or the shapes do not broadcast.
    """
    share = checks.non_negative_array("share", share)
    other = checks.finite_array("other", other)
    if (other <= 0).any():
        raise checks.reject("other", "be positive", other.min())
    share, other = _broadcast(share, "other", other)
    # The factored form keeps the digits of a small gain.
    return ((share - other) / other * (share / other + 1.0))[()]


def full_flow_slowdown(*, vocab_size: int, n_classes: int, overlap: ArrayLike) -> Any:
    """Factor s: early in training, attention's speed under Lemma 1's decoder gradient over that under Lemma 3's.

    For equal overlaps f_n.f_n' = rho, to first order in eta_Y t, and for every token, distinct or common to all:

        s = (1 - rho)(1 + (K - 1) rho)/(1 + (M - 1) rho).

    Parameters
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 2 to M.
    overlap : array_like
        rho, at least 0 and below 1.

    Returns
    -------
    float or array of the shape of overlap

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Not in the paper, whose Remark 1 gives 1 - rho: the value at K = M. Derivation: the residuals start as
    r_n = e_n - 1/M, the rows of R_0. The full flow has Y = (eta_Y t/K) F R_0, the modified flow
    Y = (eta_Y t/K) F G^-1 R_0 with G = F^T F = (1 - rho) I + rho 1 1^T. With g = Y r_n, class n moves the logits by
    (eta_Z/K) f_n * (g - f_n (f_n.g)) (elementwise *). In both flows this is a multiple of
    f_n * ((1 + (K - 1) rho) f_n - F 1); the coefficient is 1/M in the full flow and
    (rho/(1 - rho) + 1/M)/(1 + (K - 1) rho) in the modified flow, and s is their ratio.

    With rho'' = rho/((1 - rho)(1 + (K - 1) rho)) the same factor is 1/(1/(1 - rho) + (M - K) rho''). The form
    1/(1 + (M - K) rho'') neglects rho/(1 - rho) beside 1, the weakening of the gradient by rho itself: close for
    small rho, but 1 instead of 1 - rho at K = M.
    """
    m, k = sizes(vocab_size, n_classes, minimum=2)
    rho = checks.non_negative_array("overlap", overlap)
    if (rho >= 1).any():
        raise checks.reject("overlap", "be below 1", rho.max())
    return ((1.0 - rho) * (1.0 + (k - 1) * rho) / (1.0 + (m - 1) * rho))[()]


def _broadcast(first: np.ndarray, name: str, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        first, second = np.broadcast_arrays(first, second)
        return first, second
    except ValueError:
        raise checks.reject(name, f"broadcast to shape {first.shape}", f"shape {second.shape}") from None


def _log_growth(v: np.ndarray, log_q: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
    """ln chi_l = -ln(1 - (1 - exp(-v)) q_l), shape (len(v), D), with v = ln chi of the largest token.

    q_l = p_l^2/p_max^2 and log_rest = ln(1 - q_l), which is -inf for the largest and for ties with it.
    """
    v = v[:, None]
    near = np.exp(log_q) * np.expm1(-v)
    # The first form is accurate for little growth, the second where 1 + near cancels.
    return np.where(near > -0.5, -np.log1p(np.maximum(near, -0.5)), -np.logaddexp(log_rest, log_q - v))


def _solve_product(target: np.ndarray, log_q: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
    """Root v of sum_l ln chi_l(v) = target, elementwise.

    The sum is increasing and concave, so Newton from a lower bound climbs to the root and never passes it. Lower
    bounds: the sum is at most v sum(q), its tangent at 0, and at most v times the number of ties plus the sum of
    the limits -ln(1 - q_l) of the others.
    """
    ties = np.isneginf(log_rest)
    v = np.maximum(
        target / np.exp(log_q).sum(),
        (target + log_rest[~ties].sum()) / ties.sum(),
    )
    for _ in range(200):
        growth = _log_growth(v, log_q, log_rest)
        slope = np.exp(log_q - v[:, None] + growth).sum(axis=1)
        step = (target - growth.sum(axis=1)) / slope
        v = v + np.maximum(step, 0.0)
        if (step <= 1e-15 * (v + target / slope)).all():
            return v
    raise RuntimeError("Newton's method did not converge, which its theory excludes: please report the input")
