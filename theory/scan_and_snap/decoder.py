"""The decoder layer under the modified gradient: its growth, and the gradient that reaches the attention.

Paper: Tian, Wang, Chen, Du, "Scan and Snap" (NeurIPS 2023, arXiv 2305.16380), Section 4 and Appendices C and D.

M is `vocab_size`. K is `n_classes`, the number of next tokens that occur; each step draws one, with probability 1/K.
The margin x = M h is the target's logit minus every other logit. By (45) it obeys

    exp(x) + (M - 1) x = tau + 1,    tau = M eta_Y t.

Every function below is an expression in x and tau. Time t is in SGD steps, eta_Y is per step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw, wrightomega

from dynamics.support import checks

__all__ = [
    "Decoder",
    "gamma",
    "gamma_integral",
    "h",
    "h_steps",
    "peak_gamma",
    "scanning_time",
    "snapping_time",
    "transition_time",
]

# Above this tau may overflow, and (45) reduces to x = ln tau: (M - 1) x is less than 1e-280 of tau.
_HUGE = 1e300


@dataclass(frozen=True)
class Task:
    """Sizes of one task and the decoder's learning rate, checked once: the base of all decoders."""

    vocab_size: int
    n_classes: int
    eta_y: float

    def __post_init__(self) -> None:
        vocab_size, n_classes = sizes(self.vocab_size, self.n_classes)
        values = {"vocab_size": vocab_size, "n_classes": n_classes, "eta_y": checks.positive("eta_y", self.eta_y)}
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Decoder(Task):
    """The decoder layer of one task: its growth over time, and the gradient that reaches the attention.

    Attributes
    ----------
    vocab_size : int
        M, at least 2 and at most 2**53.
    n_classes : int
        K, from 1 to M; each class is seen in one step out of K.
    eta_y : float
        Learning rate of the decoder per step, positive.

    Raises
    ------
    ValueError
        If an attribute, or an argument of a method, is out of its range.
    """

    def h(self, t: ArrayLike) -> Any:
        """Growth h after a class has been seen for time t: Lemma 6, (44)-(45).

        dh/dt = eta_Y / (M - 1 + exp(M h)) with h(0) = 0, solved by exp(M h) + (M - 1) M h = M eta_Y t + 1.
        With omega the Wright omega function, M h = ln((M - 1) w), w = omega((M eta_Y t + 1)/(M - 1) - ln(M - 1)).

        Parameters
        ----------
        t : array_like, any shape
            Time in SGD steps of this class, at or above zero.

        Returns
        -------
        float or array of the shape of t
            The relative error is below 1e-14, from t near zero to the largest floats.

        Notes
        -----
        Source: the closed form and its evaluation are ours; the paper leaves (45) implicit.
        """
        t = checks.non_negative_array("t", t)
        x, _ = self._margin(t.ravel())
        return (x / self.vocab_size).reshape(t.shape)[()]

    def h_steps(self, n_steps: int) -> np.ndarray:
        """Growth h* after s = 0, 1, ..., n_steps visits of a class: Lemma 5, (33).

        h*(s) = h*(s - 1) + eta_Y / (M - 1 + exp(M h*(s - 1))), h*(0) = 0.

        Parameters
        ----------
        n_steps : int
            Number of steps of this class, at least 0.

        Returns
        -------
        (n_steps + 1,) array
            Element s is h*(s).

        Notes
        -----
        Lemma 7 bounds the distance to the flow: 0 <= h*(s) - h(s) <= 2 eta_Y/M. Half of that holds for every
        eta_Y > 0. h* connected by straight lines grows at the rate of its last step, which is not below the rate at
        its present value, so it stays above h. If h(s) <= h*(s - 1), then h grows by at least as much as h* during
        step s and the gap does not widen. If not, the gap at s is below the last increment of h*, hence below
        eta_Y/M. The factor 1 is approached at s = 1 for eta_Y -> infinity; for eta_Y -> 0 the largest gap tends to
        eta_Y/(2 e M), where the rate has fallen by a factor e.
        """
        n_steps = checks.integer("n_steps", n_steps, minimum=0)
        m = self.vocab_size
        checks.fits_in_memory("n_steps", 8 * (n_steps + 1), "list steps")
        steps = np.zeros(n_steps + 1)
        value = 0.0
        for s in range(1, n_steps + 1):
            # exp(-M h) underflows to 0 where exp(M h) would overflow and raise.
            decay = math.exp(-m * value)
            value += self.eta_y * decay / (1.0 + (m - 1) * decay)
            steps[s] = value
        return steps

    def gamma(self, t: ArrayLike) -> Any:
        """Speed control coefficient of the gradient that reaches the attention: Theorem 1, (9).

        gamma(t) = (M - 1)^2 h(t/K) / (M - 1 + exp(M h(t/K))).
        It grows like (M - 1)^2 eta_Y t/(K M^2) at first, peaks at `transition_time` and falls like
        ((M - 1)/M)^2 K ln(M eta_Y t/K)/(eta_Y t).

        Parameters
        ----------
        t : array_like, any shape
            Time in SGD steps of the whole run, at or above zero.

        Returns
        -------
        float or array of the shape of t
            The relative error is below 1e-14.
        """
        t = checks.non_negative_array("t", t)
        m = self.vocab_size
        time = t.ravel() / self.n_classes
        x, tau = self._margin(time)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            # M - 1 + exp(x), by (45). Computing exp(x) would turn the rounding of a large x into a relative error
            # of x eps.
            denominator = tau + m - (m - 1) * x
            value = (m - 1) * (m - 1) * (x / m) / denominator
            late = (m - 1) / m * ((m - 1) * (x / m)) / self.eta_y / time
        return np.where(tau > _HUGE, late, value).reshape(t.shape)[()]

    def gamma_integral(self, t: ArrayLike, *, eta_z: float) -> Any:
        """Accumulated speed Gamma(t) = eta_Z int_0^t gamma = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y): (128).

        Parameters
        ----------
        t : array_like, any shape
            Time in SGD steps of the whole run, at or above zero.
        eta_z : float
            Learning rate of the attention per step, positive.

        Returns
        -------
        float or array of the shape of t
        """
        t = checks.non_negative_array("t", t)
        eta_z = checks.positive("eta_z", eta_z)
        x, _ = self._margin(t.ravel() / self.n_classes)
        growth = (self.vocab_size - 1) * (x / self.vocab_size)
        # In this order no intermediate overflows or underflows before the result: growth / eta_y is at most t / K.
        value = (growth / self.eta_y) * growth * (self.n_classes / 2) * eta_z
        return value.reshape(t.shape)[()]

    @property
    def transition_time(self) -> float:
        """Time t* of the peak of gamma, the moment between scanning and snapping, in SGD steps of the whole run.

        d gamma/dx = 0 for (x - 1) exp(x) = M - 1, hence x = u* = 1 + W((M - 1)/e) with Lambert's W, and by (45)
        t* = K (exp(u*) + (M - 1) u* - 1)/(M eta_Y). M = 1000, K = 10, eta_Y = 1 give 56.40.

        Not in the paper, which gives the brackets `scanning_time` and `snapping_time`.
        """
        m, w = self.vocab_size, self._lambert
        # exp(u*) = (M - 1)/W; calling exp would lose digits.
        return self.n_classes * ((m - 1) / w + (m - 1) * (1.0 + w) - 1.0) / m / self.eta_y

    @property
    def peak_gamma(self) -> float:
        """Largest value of gamma, gamma(t*) = (M - 1)/M W((M - 1)/e); neither K nor eta_Y changes it.

        Not in the paper; see `transition_time`.
        """
        return (self.vocab_size - 1) / self.vocab_size * self._lambert

    @property
    def scanning_time(self) -> float:
        """The paper's time up to which gamma grows, t0' = K ln M/eta_Y: Theorem 1 (b) and Theorem 4.

        In SGD steps of the whole run. The peak t* is earlier from M = 19 on.
        """
        return self.n_classes * math.log(self.vocab_size) / self.eta_y

    @property
    def snapping_time(self) -> float:
        """The paper's time from which gamma falls, t0 = 2 K ln M/eta_Y: Theorem 1 (b) and Theorem 4.

        In SGD steps of the whole run; the paper asks for (1 + delta') t0 with a small delta' > 0. The peak t* is
        earlier from M = 3 on.
        """
        return 2.0 * self.scanning_time

    @property
    def _lambert(self) -> float:
        return float(lambertw((self.vocab_size - 1) / math.e).real)

    def _margin(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin x = M h of (45), and tau = M eta_Y t, which is inf where it overflows."""
        m = self.vocab_size
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            tau = m * (self.eta_y * time)
            log_tau = math.log(m) + math.log(self.eta_y) + np.log(time)
            huge = tau > _HUGE
            return np.where(huge, log_tau, _solve(np.where(huge, 0.0, tau), m)), tau


def h(t: ArrayLike, *, vocab_size: int, eta_y: float) -> Any:
    """Decoder growth h after a class has been seen for time t, (44)-(45): `Decoder.h`, where K plays no part."""
    return Decoder(vocab_size, 1, eta_y).h(t)


def h_steps(n_steps: int, *, vocab_size: int, eta_y: float) -> np.ndarray:
    """Decoder growth h* after 0, 1, ..., n_steps visits of a class, (33): `Decoder.h_steps`, where K plays no part."""
    return Decoder(vocab_size, 1, eta_y).h_steps(n_steps)


def gamma(t: ArrayLike, *, vocab_size: int, n_classes: int, eta_y: float) -> Any:
    """Speed control coefficient of the gradient that reaches the attention, (9): `Decoder.gamma`."""
    return Decoder(vocab_size, n_classes, eta_y).gamma(t)


def gamma_integral(t: ArrayLike, *, vocab_size: int, n_classes: int, eta_y: float, eta_z: float) -> Any:
    """Accumulated speed Gamma(t) = eta_Z int_0^t gamma, (128): `Decoder.gamma_integral`."""
    return Decoder(vocab_size, n_classes, eta_y).gamma_integral(t, eta_z=eta_z)


def transition_time(*, vocab_size: int, n_classes: int, eta_y: float) -> float:
    """Time t* of the peak of gamma, in SGD steps of the whole run: `Decoder.transition_time`."""
    return Decoder(vocab_size, n_classes, eta_y).transition_time


def peak_gamma(*, vocab_size: int) -> float:
    """Largest value of gamma, which neither K nor eta_Y changes: `Decoder.peak_gamma`."""
    return Decoder(vocab_size, 1, 1.0).peak_gamma


def scanning_time(*, vocab_size: int, n_classes: int, eta_y: float) -> float:
    """The paper's time up to which gamma grows, t0' = K ln M/eta_Y: `Decoder.scanning_time`."""
    return Decoder(vocab_size, n_classes, eta_y).scanning_time


def snapping_time(*, vocab_size: int, n_classes: int, eta_y: float) -> float:
    """The paper's time from which gamma falls, t0 = 2 K ln M/eta_Y: `Decoder.snapping_time`."""
    return Decoder(vocab_size, n_classes, eta_y).snapping_time


def sizes(vocab_size: int, n_classes: int, *, minimum: int = 1) -> tuple[int, int]:
    """M and K, checked: M from 2 to 2**53, where floats count exactly, and K from ``minimum`` to M.

    Raises
    ------
    ValueError
        If one of them is no such integer.
    """
    m = checks.integer("vocab_size", vocab_size, minimum=2)
    if m > 2**53:
        raise checks.reject("vocab_size", "be at most 2**53", vocab_size)
    k = checks.integer("n_classes", n_classes, minimum=minimum)
    if k > m:
        raise checks.reject("n_classes", f"be at most `vocab_size` = {m}", n_classes)
    return m, k


def _solve(tau: np.ndarray, m: int) -> np.ndarray:
    """Root x of expm1(x) + (M - 1) x = tau, by Newton's method.

    The start is Wright's omega; near zero it is tau/M, since omega's small absolute error is a large relative error
    there. Newton on this form is well conditioned everywhere: the terms are positive, and the residual's rounding error
    moves x by no more than a few units in its last place.
    """
    start = np.log((m - 1) * wrightomega((tau + 1.0) / (m - 1) - math.log(m - 1)))
    x = np.where(tau < 1e-3 * m, tau / m, start)
    for _ in range(2):
        x = x - (np.expm1(x) + (m - 1) * x - tau) / (np.exp(x) + (m - 1))
    return x
