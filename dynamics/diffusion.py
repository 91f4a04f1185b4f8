"""Stochastic gradient flow: SGD with its noise, as a stochastic differential equation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics._assembly import assemble
from dynamics._engine.dop853 import NOT_FINITE
from dynamics._engine.drive import Clock, drive
from dynamics._engine.noise.field import DrawnField, NoisySteps
from dynamics._engine.noise.schemes import SCHEMES
from dynamics._engine.sgd.run import spawn
from dynamics._model.objective import PLAIN, Objective, placed
from dynamics.bags import Data
from dynamics.fields.system import FlowSetting
from dynamics.fields.table import entry_of
from dynamics.layer import Layer, optional_rates
from dynamics.noise import drawn
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.errors import IntegrationError
from dynamics.support.progress import Progress
from dynamics.trajectory import Trajectory

__all__ = ["ORDERS", "SCHEMES", "stochastic_flow"]

ORDERS = (1, 2)
# Steps after which a path is given up: hours.
_MOST_STEPS = 10_000_000


def stochastic_flow(
    data: Data,
    *,
    eta_y: float,
    eta_z: float,
    t_end: float,
    batch_size: int | None = 128,
    length: int | None = 128,
    decoder: str = "full",
    scheme: str = "euler-maruyama",
    dt: float = 1.0,
    order: int = 1,
    times: ArrayLike | None = None,
    n_times: int = 200,
    init: Layer | None = None,
    seed: int | np.random.SeedSequence = 0,
    progress: bool = False,
    objective: Objective | None = None,
) -> Trajectory:
    r"""Integrate the stochastic differential equation of `sgd`: the gradient flow and the noise of mini-batches.

    Time t counts steps. With a(x) the mean of a step, learning rates included, and C(x) the covariance of the step of
    one sequence, as in `gradient_noise`, so that sqrt(eta) Sigma^(1/2) is what C holds of the usual form,

    ``dx = a dt + (C/b)^(1/2) dW`` (``order=1``),
    ``dx = (a - (1/2) (Da) a) dt + (C/b)^(1/2) dW`` (``order=2``).

    Two orders are meant. *In the learning rates*, at a fixed eta t: expectations of smooth functions differ from those
    of `sgd` without momentum by O(eta^order) (Li, Tai, E 2017), where T -> infinity or ``data`` are Bags; a finite T
    adds O(1/T^2). *In dt*: the scheme's expectations differ from the equation's by O(dt), "euler-maruyama", or O(dt^2),
    "runge-kutta" (Roessler 2009, RI1). Noise is applied through the factors of C, a column for each class and each of
    its tokens: Euler-Maruyama takes a few gradients a step, whatever their number; Runge-Kutta about twenty a column.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    eta_y, eta_z : float
        Learning rates per step. 0 freezes Y, or Z, at its start.
    t_end : float
        Last time, in SGD steps.
    batch_size : int or None
        b; None takes all of ``data`` at each step, which has no noise.
    length : int or None
        T, query included; None takes bags as they are. The moments are those of leading order in 1/T.
    decoder : "full", "modified" or "theory"
        "theory" is the reduced system, with the states Z and one h a class, at which a step is: h_n of the classes
        drawn as in Lemma 5 (32), Z by (10). "modified" and "theory" take ``length=None``.
    scheme : "euler-maruyama" or "runge-kutta"
    dt : float
        Largest step, in SGD steps.
    order : 1 or 2
        In the learning rates.
    times, n_times
        As in `gradient_flow`.
    init : Layer, optional
        Default: Y = Z = 0.
    seed : int or numpy.random.SeedSequence
        Same seed, same bits.
    progress : bool
        Show progress on standard error.
    objective : Objective, optional

    Returns
    -------
    Trajectory
        Its dataset holds ``h(time, bag)`` as well for "theory". Symmetry is not used: a path with noise has none.

    Draws are with replacement and steps plain. Momentum mu is, to first order and after the first 1/(1 - mu) steps, a
    factor 1/(1 - mu) of both rates. Ctrl-C is heard between steps.

    Raises
    ------
    ValueError
        If an argument is invalid.
    IntegrationError
        If the state stops being finite; it keeps what was recorded.
    """
    call = Call("stochastic_flow", {name: value for name, value in locals().items() if name != "progress"})
    entry_of(decoder, "noise")
    bags, positions, sizes = drawn(data, batch_size, length)
    objective = checks.or_usual("objective", objective, PLAIN)
    rates = {"eta_y": checks.rate("eta_y", eta_y), "eta_z": checks.rate("eta_z", eta_z)}
    start = Layer.zeros(bags) if init is None else checks.instance("init", init, Layer)
    names = getattr(data, "query_tokens", None)
    layer = placed(objective, start, bags, names, "init")
    rates |= optional_rates(layer, rates["eta_y"], None, None)
    own: dict[str, Any] = {
        "t_end": checks.positive("t_end", t_end),
        **sizes,
        "decoder": decoder,
        "scheme": checks.one_of("scheme", scheme, SCHEMES),
        "dt": checks.positive("dt", dt),
        "order": checks.integer("order", order, minimum=ORDERS[0], maximum=ORDERS[-1]),
    }
    if own["t_end"] / own["dt"] > _MOST_STEPS:
        raise checks.reject("dt", f"leave at most {_MOST_STEPS:,} steps until {own['t_end']:g}", own["dt"])
    at = Clock(0.0, own["t_end"], logarithmic=False).output_times(times, n_times)
    field = DrawnField(FlowSetting(bags, layer, init, rates, objective), decoder, positions)
    checks.fits_in_memory("times", 8 * at.size * field.size, "record states")
    equation = NoisySteps(field, sizes["batch_size"], second=own["order"] == 2)
    rng = np.random.default_rng(spawn(seed)[1])
    labels: dict[str, Any] = {"parameters": {**rates, **own, **objective.parameters}, "query_tokens": names}
    with Progress(f"stochastic flow ({decoder})", enabled=progress) as report:
        trajectory = _integrate(equation, at, labels, rng, report)
    trajectory.call = call
    return trajectory


class _Path:
    """A path of the equation, step by step, of which some end at each output time."""

    def __init__(
        self, equation: NoisySteps, scheme: str, dt: float, times: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.s, self.state = 0.0, equation.field.system.initial.copy()
        self._equation, self._step, self._rng = equation, SCHEMES[scheme], rng
        self._sizes = self._ahead(dt, times)

    @staticmethod
    def _ahead(dt: float, times: np.ndarray) -> Iterator[tuple[float, float]]:
        """The size of each step, and where it ends."""
        for start, end in itertools.pairwise([0.0, *times.tolist()]):
            n = int(np.ceil((end - start) / dt - 1e-9))
            if n == 0:  # two times that are one but for rounding
                yield 0.0, end
            for k in range(1, n + 1):
                yield (end - start) / n, end if k == n else start + k * (end - start) / n

    def advance(self) -> str | None:
        """Take a step; returns None, or that there is none."""
        size, end = next(self._sizes)
        moved = self._step(self._equation, self.state, size, self._rng) if size else self.state
        if not np.isfinite(moved).all():
            return NOT_FINITE
        self.s, self.state = end, moved
        return None

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The state where a step ends."""
        return self.state[None]


def _integrate(
    equation: NoisySteps, times: np.ndarray, labels: Mapping[str, Any], rng: np.random.Generator, report: Progress
) -> Trajectory:
    parameters, system, end = labels["parameters"], equation.field.system, times[-1]
    path = _Path(equation, parameters["scheme"], parameters["dt"], times, rng)
    states = np.empty((len(times), system.initial.size))

    def reported(s: float) -> None:
        report.update(s / end, f"at t = {s:.4g} of {end:g}")

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        done, reason = drive(path, times, states, report=reported, first=True)
    if reason:
        raise IntegrationError(
            f"the stochastic flow ({parameters['decoder']}) stopped being finite after t = {path.s:g} of "
            f"{end:g} SGD steps. Try, in this order: a smaller dt, smaller learning rates",
            path.s,
            system.layer(path.state),
            _recorded(equation, times[:done], states[:done], labels) if done else None,
        )
    return _recorded(equation, times, states, labels)


def _recorded(equation: NoisySteps, times: np.ndarray, states: np.ndarray, labels: Mapping[str, Any]) -> Trajectory:
    system = equation.field.system
    seen, bags = system.observe(states), system.setting.bags
    return assemble(bags, times, seen.states, seen.loss, kind="stochastic_flow", extra=system.extra(states), **labels)
