r"""The closed forms under options of training: weight decay, label smoothing, temperature, schedule, momentum.

Paper: Tian, Wang, Chen, Du, "Scan and Snap" (NeurIPS 2023, arXiv 2305.16380), which has none of these. The derivations
are in `yzflow_beyond_scan_and_snap.proofs.changed`; M, K, h, gamma and Gamma are those of
`theory.scan_and_snap.decoder`.

Under an option a closed form holds either with another decoder (`Smoothed`, `Decayed`: other h, gamma, Gamma), or in
other variables: another clock (`on_clock`), another scale of the logits (`cooled`), or the velocity without the term of
weight decay (`without_decay`). Time is in SGD steps and learning rates are per step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy  # imports its submodules on first use
from numpy.typing import ArrayLike
from scipy.special import lambertw

from dynamics.support import checks
from theory.scan_and_snap.decoder import Task

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "Decayed",
    "Growth",
    "Law",
    "Smoothed",
    "cooled",
    "momentum_clock",
    "on_clock",
    "without_decay",
]


class Growth(Protocol):
    """Protocol of a decoder for the checks, such as `Decoder`."""

    def h(self, t: ArrayLike) -> Any:
        """Growth after a class has been seen for time t, t/K of the run: the margin over M."""

    def gamma(self, t: ArrayLike) -> Any:
        """The coefficient of (9) at time t of the run."""

    def gamma_integral(self, t: ArrayLike, *, eta_z: float) -> Any:
        """Gamma(t) = eta_Z int_0^t gamma."""


@dataclass(frozen=True)
class Smoothed(Task):
    r"""The decoder under label smoothing: targets (1 - eps) e_n + eps/M.

    The margin x = M h stays on the line of Lemma 5 and obeys, in the time s of its class,

        dx/ds = M eta_Y (1/(M - 1 + exp(x)) - eps/M),

    so that it rises to the bound x_inf = ln(1 + M (1 - eps)/eps). With a = M - 1 and A = M - eps a,

        eta_Y s = (a/A) x - (a/A + 1/eps) ln((A - eps exp(x))/(A - eps)),

    gamma = (M - 1)^2 h (1/(M - 1 + exp(x)) - eps/M) falls exponentially, and (128) holds unchanged: Gamma, and with it
    the growth exponent B, are bounded.

    Attributes
    ----------
    vocab_size, n_classes, eta_y
        As in `theory.scan_and_snap.decoder.Decoder`.
    label_smoothing : float
        eps, above 0 and below 1.

    Raises
    ------
    ValueError
        If an attribute is out of its range.
    """

    label_smoothing: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.below("label_smoothing", checks.positive("label_smoothing", self.label_smoothing), 1)

    @property
    def bound(self) -> float:
        """x_inf/M, the limit of h."""
        return math.log1p(self.vocab_size * (1 - self.label_smoothing) / self.label_smoothing) / self.vocab_size

    def h(self, t: ArrayLike) -> Any:
        """h(t); its relative error is below 1e-12."""
        t = checks.non_negative_array("t", t)
        return (self._solve(t.ravel())[0] / self.vocab_size).reshape(t.shape)[()]

    def gamma(self, t: ArrayLike) -> Any:
        """gamma(t) = (M - 1)^2 h(t/K) (1/(M - 1 + exp(M h(t/K))) - eps/M)."""
        t = checks.non_negative_array("t", t)
        m = self.vocab_size
        x, rest = self._solve(t.ravel() / self.n_classes)
        # M (1/(M - 1 + exp(x)) - eps/M) is (1 - eps) exp(-L) M/(M - 1 + exp(x)), which does not cancel at the bound.
        value = (m - 1) ** 2 * (x / m) * (1 - self.label_smoothing) * np.exp(-rest) / (m - 1 + np.exp(x))
        return value.reshape(t.shape)[()]

    def gamma_integral(self, t: ArrayLike, *, eta_z: float) -> Any:
        """Gamma(t) = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y), as in (128)."""
        t, eta_z = checks.non_negative_array("t", t), checks.positive("eta_z", eta_z)
        x, _ = self._solve(t.ravel() / self.n_classes)
        growth = (self.vocab_size - 1) * (x / self.vocab_size)
        return (growth / self.eta_y * growth * (self.n_classes / 2) * eta_z).reshape(t.shape)[()]

    def _solve(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and L = -ln((A - eps exp(x))/(A - eps)), which runs from 0 to infinity, at times of a class.

        In L the implicit form is increasing and concave, so that Newton climbs to the root from below.
        """
        m, eps = self.vocab_size, self.label_smoothing
        ratio = (m - 1) / (m - eps * (m - 1))
        q = eps / (m * (1 - eps))
        slope = ratio + 1 / eps
        target = self.eta_y * time
        rest = np.maximum(target / (slope + ratio / q), (target - ratio * math.log1p(1 / q)) / slope)
        for _ in range(200):
            reached = -np.expm1(-rest)
            miss = target - ratio * np.log1p(reached / q) - slope * rest
            step = miss / (ratio * np.exp(-rest) / (q + reached) + slope)
            rest = rest + np.maximum(step, 0.0)
            if (step <= 1e-15 * rest).all():
                break
        return np.log1p(-np.expm1(-rest) / q), rest


@dataclass(frozen=True)
class Decayed(Task):
    r"""The decoder under weight decay: dY/dt = eta_Y (gradient - lambda Y), with decay in the steps of every class.

    The margin x = M h of a class obeys, in the time t of the run,

        dx/dt = M eta_Y/(K (M - 1 + exp(x))) - eta_Y lambda x,

    which has one fixed point, x (M - 1 + exp(x)) = M/(K lambda), and tends to it. gamma does not fall to zero but to
    (M - 1)^2 K lambda h_inf^2, and (128) gets a second term:

        Gamma = eta_Z K (M - 1)^2/(2 eta_Y) (h^2 + 2 eta_Y lambda int_0^t h^2).

    Attributes
    ----------
    vocab_size, n_classes, eta_y
        As in `theory.scan_and_snap.decoder.Decoder`.
    weight_decay : float
        lambda, positive.

    Raises
    ------
    ValueError
        If an attribute is out of its range.
    """

    weight_decay: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("weight_decay", self.weight_decay)

    @property
    def bound(self) -> float:
        """h at the fixed point."""
        m, level = self.vocab_size, self.vocab_size / (self.n_classes * self.weight_decay)
        # ln x + ln(M - 1 + exp(x)) increases from -infinity; x < level, and exp(x) may overflow there.
        upper = max(math.log1p(level), 1.0)

        def above(x: float) -> float:
            return float(math.log(x) + np.logaddexp(math.log(m - 1), x) - math.log(level))

        root = scipy.optimize.brentq(above, 1e-300, upper, xtol=1e-300, rtol=1e-15)
        return float(root) / m

    @property
    def last_gamma(self) -> float:
        """gamma at the fixed point, (M - 1)^2 K lambda h_inf^2."""
        return (self.vocab_size - 1) ** 2 * self.n_classes * self.weight_decay * self.bound**2

    def _rate(self, x: float) -> float:
        """dx/dt of the margin, in the time of the run; finite for any x, as an integrator's long trial steps need."""
        grown = self.vocab_size * self.eta_y / (self.n_classes * (self.vocab_size - 1 + math.exp(min(x, 700.0))))
        return grown - self.eta_y * self.weight_decay * x

    def h(self, t: ArrayLike) -> Any:
        """h after a class has been seen for time t, t K steps of the run; its relative error is below 1e-9."""
        t = checks.non_negative_array("t", t)
        return (self._solve(t * self.n_classes)[0] / self.vocab_size)[()]

    def gamma(self, t: ArrayLike) -> Any:
        """gamma(t) = (M - 1)^2 h/(M - 1 + exp(M h))."""
        m = self.vocab_size
        x = self._solve(checks.non_negative_array("t", t))[0]
        return ((m - 1) ** 2 * (x / m) / (m - 1 + np.exp(x)))[()]

    def gamma_integral(self, t: ArrayLike, *, eta_z: float) -> Any:
        """Gamma(t) = eta_Z K (M - 1)^2/(2 eta_Y) (h^2 + 2 eta_Y lambda int_0^t h^2)."""
        m, eta_z = self.vocab_size, checks.positive("eta_z", eta_z)
        x, squares = self._solve(checks.non_negative_array("t", t))
        whole = x * x + 2 * self.eta_y * self.weight_decay * squares
        return (eta_z * self.n_classes / 2 / self.eta_y * ((m - 1) / m) ** 2 * whole)[()]

    def _solve(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and int_0^t x^2 at times of the run."""

        def rate(t: float, state: np.ndarray) -> list[float]:
            return [self._rate(float(state[0])), min(abs(float(state[0])), 1e100) ** 2]

        # The rate falls in x by eta_Y lambda at least: after 50/(eta_Y lambda), x is at its bound to exp(-50) of it.
        time = np.asarray(time, dtype=np.float64)
        moving = np.minimum(time, 50 / (self.eta_y * self.weight_decay))
        x, squares = _integrated(rate, [0.0, 0.0], moving, scale=1e-14 * self.eta_y)
        return x, squares + x * x * (time - moving)


@dataclass(frozen=True)
class Law:
    """Closed forms under an option: the forms of `theory.scan_and_snap` with another decoder, and a decay.

    Attributes
    ----------
    decoder : Growth
        The option's h, gamma and Gamma.
    decay : float
        eta_Z lambda, the rate at which weight decay shrinks the logits of attention.
    """

    decoder: Growth
    decay: float = 0.0

    @property
    def label_smoothing(self) -> float:
        """eps of the targets."""
        return float(getattr(self.decoder, "label_smoothing", 0.0))

    def exponent(self, t: ArrayLike, *, eta_z: float, c0: float) -> Any:
        """The growth exponent B of Theorem 4 at times from 0 on: dB/dt = eta_Z gamma exp(-4 B)/C_0 - decay B.

        Without decay 1/4 ln(1 + 4 Gamma/C_0). With it, and weight decay of the decoder, B tends to `last_exponent`.

        Raises
        ------
        ValueError
            If the logits decay, and the decoder does not.
        """
        t, c0 = checks.non_negative_array("t", t), checks.positive("c0", c0)
        if self.decay == 0:
            return 0.25 * np.log1p(4 * self.decoder.gamma_integral(t, eta_z=eta_z) / c0)
        decoder = checks.instance("decoder", self.decoder, Decayed, rule="be Decayed")
        m = decoder.vocab_size

        def rate(time: float, state: np.ndarray) -> list[float]:
            x, exponent = float(state[0]), float(state[1])
            gamma = (m - 1) ** 2 * (x / m) / (m - 1 + math.exp(min(x, 700.0)))
            return [decoder._rate(x), eta_z * gamma * math.exp(-4 * exponent) / c0 - self.decay * exponent]

        return _integrated(rate, [0.0, 0.0], t, scale=1e-14 * eta_z / c0)[1][()]

    def last_exponent(self, *, eta_z: float, c0: float) -> float:
        """B at the fixed point, W(4 gamma_inf eta_Z/(decay C_0))/4 with Lambert's W.

        Raises
        ------
        ValueError
            If the decoder has no fixed point with gamma > 0, or the logits do not decay.
        """
        decoder = checks.instance("decoder", self.decoder, Decayed, rule="be Decayed")
        decay = checks.positive("decay", self.decay)
        return float(lambertw(4 * decoder.last_gamma * eta_z / (decay * c0)).real) / 4


# Below this time a solution equals its tangent in all bits. LSODA would not end at much smaller times.
_SHORTEST = 1e-100


def _integrated(rate: Any, start: list[float], time: np.ndarray, *, scale: float) -> np.ndarray:
    """Solution of an ordinary differential equation in one or two numbers, at times in any order: (numbers, *shape)."""
    wanted, where = np.unique(time.ravel(), return_inverse=True)
    if wanted.size == 0 or wanted[-1] == 0:
        return np.broadcast_to(np.array(start)[:, None], (len(start), time.size)).reshape(len(start), *time.shape)
    if wanted[-1] < _SHORTEST:
        lines = np.array(start)[:, None] + np.outer(rate(0.0, np.array(start)), wanted)
        return lines[:, where.ravel()].reshape(len(start), *time.shape)
    method = {"method": "LSODA", "rtol": 1e-12, "atol": scale}
    solution = scipy.integrate.solve_ivp(rate, (0.0, wanted[-1]), start, t_eval=wanted, **method)
    if not solution.success:
        raise RuntimeError(f"the equation of a decayed decoder stopped at t = {solution.t[-1]:g}: {solution.message}")
    return solution.y[:, where.ravel()].reshape(len(start), *time.shape)


def momentum_clock(t: ArrayLike, *, momentum: float, steps: bool = False) -> tuple[Any, Any]:
    """Distance, in plain steps, that heavy-ball momentum covers under a constant gradient, and its speed.

    The flow is d v/dt = g - (1 - mu) v from v = 0. Its clock is (t - (1 - exp(-(1 - mu) t))/(1 - mu))/(1 - mu), and its
    speed (1 - exp(-(1 - mu) t))/(1 - mu). With ``steps`` the clock after n = t steps is
    (n - mu (1 - mu^n)/(1 - mu))/(1 - mu), and the speed of the next step is (1 - mu^(n+1))/(1 - mu). If the gradient
    changes little within 1/(1 - mu) steps, training follows the plain flow on this clock, to first order.

    Parameters
    ----------
    t : array_like
        SGD steps.
    momentum : float
        mu, in [0, 1).
    steps : bool
        Whether time is discrete.

    Returns
    -------
    clock, speed : floats or arrays of the shape of t
    """
    t, mu = checks.non_negative_array("t", t), checks.below("momentum", momentum, 1)
    if checks.flag("steps", steps):
        clock = (t - mu * (1 - mu**t) / (1 - mu)) / (1 - mu)
        return clock[()], ((1 - mu ** (t + 1)) / (1 - mu))[()]
    speed = -np.expm1(-(1 - mu) * t) / (1 - mu)
    return ((t - speed) / (1 - mu))[()], speed[()]


def on_clock(dataset: xr.Dataset, clock: np.ndarray, speed: np.ndarray) -> xr.Dataset:
    """A run on another clock: its times are ``clock``, and its velocities are divided by the clock's ``speed``.

    Times after the start are left out if the clock is at 0 or does not move.
    """
    kept = np.flatnonzero((clock > 0) & (speed > 1e-6 * speed.max()))
    kept = np.concatenate([[0], kept[kept > 0]])
    shown = dataset.isel(time=kept).assign_coords(time=("time", clock[kept], dataset["time"].attrs))
    if "z_velocity" in shown:
        import xarray as xr  # already loaded: the argument is a dataset

        rate = xr.DataArray(np.where(speed > 0, speed, 1.0)[kept], dims="time")
        shown["z_velocity"] = shown["z_velocity"] / rate.drop_vars("time", errors="ignore")
    return shown


def cooled(dataset: xr.Dataset, temperature: float) -> xr.Dataset:
    """A run in the logits z/tau that enter the softmax: they move as without temperature, at the rate eta_Z/tau^2."""
    scaled = {name: dataset[name] / temperature for name in ("z", "z_velocity") if name in dataset}
    return dataset.assign({name: array.assign_attrs(dataset[name].attrs) for name, array in scaled.items()})


def without_decay(dataset: xr.Dataset, decay: float) -> xr.Dataset:
    """A run whose velocities are the gradient's alone, z' + eta_Z lambda z, with ``decay`` = eta_Z lambda."""
    if "z_velocity" not in dataset:
        return dataset
    return dataset.assign(z_velocity=dataset["z_velocity"] + decay * dataset["z"])
