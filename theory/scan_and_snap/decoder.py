"""The decoder layer under the modified gradient: how fast it learns and how strong a signal it sends back.

Paper: Tian, Wang, Chen, Du, "Scan and Snap" (NeurIPS 2023, arXiv 2305.16380), Section 4 and Appendices C and D.

M is `vocab_size`, K is `n_classes`, the number of next tokens that occur, one drawn per step with probability 1/K.
The margin x = M h is what the target's logit gains on every other logit. It obeys

    exp(x) + (M - 1) x = tau + 1,    tau = M eta_Y t,

which is (45), and every function below is an expression in x and tau. Time t is in SGD steps, eta_Y is per step.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import lambertw, wrightomega

from dynamics.support import checks

__all__ = [
    "gamma",
    "gamma_integral",
    "h",
    "h_steps",
    "peak_gamma",
    "scanning_time",
    "snapping_time",
    "transition_time",
]

# Above this, tau may overflow, and (M - 1) x is less than 1e-280 of it.
_HUGE = 1e300


def h(t, *, vocab_size, eta_y):
    """Decoder growth h after a class has been seen for time t: Lemma 6, (44)-(45).

    dh/dt = eta_Y / (M - 1 + exp(M h)) with h(0) = 0, solved by exp(M h) + (M - 1) M h = M eta_Y t + 1.
    With omega the Wright omega function, M h = ln((M - 1) w), w = omega((M eta_Y t + 1)/(M - 1) - ln(M - 1)).

    Parameters
    ----------
    t : array_like, any shape
        Time in SGD steps of this class, at or above zero.
    vocab_size : int
        M, at least 2 and at most 2**53.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    float or array of the shape of t
        The relative error is below 1e-14, from t near zero to the largest floats.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Source: the closed form and its evaluation are ours; the paper leaves (45) implicit.
    """
    t = checks.non_negative_array("t", t)
    m = _vocabulary(vocab_size)
    x, _ = _margin(t.ravel(), m, checks.positive("eta_y", eta_y))
    return (x / m).reshape(t.shape)[()]


def h_steps(n_steps, *, vocab_size, eta_y):
    """Decoder growth h* after s = 0, 1, ..., n_steps visits of a class: Lemma 5, (33).

    h*(s) = h*(s - 1) + eta_Y / (M - 1 + exp(M h*(s - 1))), h*(0) = 0.

    Parameters
    ----------
    n_steps : int
        Number of steps of this class, at least 0.
    vocab_size : int
        M, at least 2 and at most 2**53.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    (n_steps + 1,) array
        Element s is h*(s).

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Lemma 7 bounds the distance to the flow: 0 <= h*(s) - h(s) <= 2 eta_Y/M. Half of that holds for every eta_Y > 0.
    h* connected by straight lines grows at the rate of its last step, which is not below the rate at its present
    value, so it stays above h. If h(s) <= h*(s - 1), then h grows by at least as much as h* during step s and the gap
    does not widen. If not, the gap at s is below the last increment of h*, hence below eta_Y/M. The factor 1 is
    approached at s = 1 for eta_Y -> infinity; for eta_Y -> 0 the largest gap tends to eta_Y/(2 e M), where the rate
    has fallen by a factor e.
    """
    n_steps = checks.integer("n_steps", n_steps, minimum=0)
    m = _vocabulary(vocab_size)
    eta_y = checks.positive("eta_y", eta_y)
    steps = np.zeros(n_steps + 1)
    value = 0.0
    for s in range(1, n_steps + 1):
        # exp(-M h) underflows to 0 where exp(M h) would overflow and raise.
        decay = math.exp(-m * value)
        value += eta_y * decay / (1.0 + (m - 1) * decay)
        steps[s] = value
    return steps


def gamma(t, *, vocab_size, n_classes, eta_y):
    """Speed control coefficient of the gradient that reaches the attention: Theorem 1, (9).

    gamma(t) = (M - 1)^2 h(t/K) / (M - 1 + exp(M h(t/K))).
    It grows like (M - 1)^2 eta_Y t/(K M^2) at first, peaks at `transition_time` and falls like
    ((M - 1)/M)^2 K ln(M eta_Y t/K)/(eta_Y t).

    Parameters
    ----------
    t : array_like, any shape
        Time in SGD steps of the whole run, at or above zero; each class is seen in one step out of K.
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    float or array of the shape of t
        The relative error is below 1e-14.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    t = checks.non_negative_array("t", t)
    m, k = _sizes(vocab_size, n_classes)
    eta_y = checks.positive("eta_y", eta_y)
    time = t.ravel() / k
    x, tau = _margin(time, m, eta_y)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        # M - 1 + exp(x) by (45): exp(x) itself would turn the rounding of a large x into a relative error of x eps.
        denominator = tau + m - (m - 1) * x
        value = (m - 1) * (m - 1) * (x / m) / denominator
        late = (m - 1) / m * ((m - 1) * (x / m)) / eta_y / time
    return np.where(tau > _HUGE, late, value).reshape(t.shape)[()]


def gamma_integral(t, *, vocab_size, n_classes, eta_y, eta_z):
    """Accumulated speed Gamma(t) = eta_Z int_0^t gamma = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y): (128).

    Parameters
    ----------
    t : array_like, any shape
        Time in SGD steps of the whole run, at or above zero.
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M.
    eta_y, eta_z : float
        Learning rates of the decoder and of the attention per step.

    Returns
    -------
    float or array of the shape of t

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    t = checks.non_negative_array("t", t)
    m, k = _sizes(vocab_size, n_classes)
    eta_y = checks.positive("eta_y", eta_y)
    eta_z = checks.positive("eta_z", eta_z)
    x, _ = _margin(t.ravel() / k, m, eta_y)
    growth = (m - 1) * (x / m)
    # growth / eta_y is at most t / K, so that this order neither overflows nor underflows before the result does.
    value = (growth / eta_y) * growth * (k / 2) * eta_z
    return value.reshape(t.shape)[()]


def transition_time(*, vocab_size, n_classes, eta_y):
    """Time t* of the peak of gamma, the moment between scanning and snapping.

    d gamma/dx = 0 for (x - 1) exp(x) = M - 1, hence x = u* = 1 + W((M - 1)/e) with Lambert's W, and by (45)
    t* = K (exp(u*) + (M - 1) u* - 1)/(M eta_Y).

    Parameters
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    float
        t* in SGD steps of the whole run. M = 1000, K = 10, eta_Y = 1 give 56.40.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Not in the paper, which gives the brackets `scanning_time` and `snapping_time`.
    """
    m, k = _sizes(vocab_size, n_classes)
    eta_y = checks.positive("eta_y", eta_y)
    w = _lambert(m)
    # exp(u*) = (M - 1)/W, which keeps the digits that exp would lose.
    return k * ((m - 1) / w + (m - 1) * (1.0 + w) - 1.0) / m / eta_y


def peak_gamma(*, vocab_size):
    """Largest value of gamma, gamma(t*) = (M - 1)/M W((M - 1)/e); neither K nor eta_Y changes it.

    Parameters
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If M is out of its range.

    Notes
    -----
    Not in the paper; see `transition_time`.
    """
    m = _vocabulary(vocab_size)
    return (m - 1) / m * _lambert(m)


def scanning_time(*, vocab_size, n_classes, eta_y):
    """The paper's time up to which gamma grows, t0' = K ln M/eta_Y: Theorem 1 (b) and Theorem 4.

    Parameters
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    float
        In SGD steps of the whole run. The peak t* is earlier from M = 19 on.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    m, k = _sizes(vocab_size, n_classes)
    return k * math.log(m) / checks.positive("eta_y", eta_y)


def snapping_time(*, vocab_size, n_classes, eta_y):
    """The paper's time from which gamma falls, t0 = 2 K ln M/eta_Y: Theorem 1 (b) and Theorem 4.

    Parameters
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M.
    eta_y : float
        Learning rate of the decoder per step.

    Returns
    -------
    float
        In SGD steps of the whole run; the paper asks for (1 + delta') t0 with a small delta' > 0. The peak t* is
        earlier from M = 3 on.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    return 2.0 * scanning_time(vocab_size=vocab_size, n_classes=n_classes, eta_y=eta_y)


def _vocabulary(vocab_size) -> int:
    m = checks.integer("vocab_size", vocab_size, minimum=2)
    if m > 2**53:
        raise checks.reject("vocab_size", "be at most 2**53", vocab_size)
    return m


def _sizes(vocab_size, n_classes, *, minimum=1) -> tuple[int, int]:
    """M and K, checked."""
    m = _vocabulary(vocab_size)
    k = checks.integer("n_classes", n_classes, minimum=minimum)
    if k > m:
        raise checks.reject("n_classes", f"be at most `vocab_size` = {m}", n_classes)
    return m, k


def _lambert(m: int) -> float:
    return float(lambertw((m - 1) / math.e).real)


def _margin(time: np.ndarray, m: int, eta_y: float) -> tuple[np.ndarray, np.ndarray]:
    """Margin x = M h of (45), and tau = M eta_Y t, which is inf where it overflows."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        tau = m * (eta_y * time)
        log_tau = math.log(m) + math.log(eta_y) + np.log(time)
        huge = tau > _HUGE
        return np.where(huge, log_tau, _solve(np.where(huge, 0.0, tau), m)), tau


def _solve(tau: np.ndarray, m: int) -> np.ndarray:
    """Root x of expm1(x) + (M - 1) x = tau.

    Wright's omega gives x with a small absolute error, which is a large relative error near zero; there tau/M is the
    better start. Newton on this form is well conditioned everywhere: the terms are positive and the residual's
    rounding error moves x by no more than a few units in its last place.
    """
    start = np.log((m - 1) * wrightomega((tau + 1.0) / (m - 1) - math.log(m - 1)))
    x = np.where(tau < 1e-3 * m, tau / m, start)
    for _ in range(2):
        x = x - (np.expm1(x) + (m - 1) * x - tau) / (np.exp(x) + (m - 1))
    return x
