"""Discrete steps along an open flow: Euler's, its own random ones, or those of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics._engine.dop853 import NOT_FINITE
from dynamics._engine.drive import drive
from dynamics._engine.open.records import recorded
from dynamics._engine.open.states import NamedStates
from dynamics.open_flow import Flow, states_of
from dynamics.optimizers.optimizer import Optimizer, ascend, function_of
from dynamics.run import Run
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.errors import IntegrationError
from dynamics.support.origins import origin_of
from dynamics.support.progress import Progress

__all__ = ["descend"]


def descend(
    flow: Flow,
    *,
    rate: float | Mapping[str, float],
    steps: int,
    seed: int | np.random.SeedSequence = 0,
    optimizer: str | Optimizer | None = None,
    record_every: int = 1,
    progress: bool = False,
) -> Run:
    """Take steps along a flow, ``state += rate * derivative(t, state)``: Euler's method.

    With one ``rate``, step k is at ``t = rate k``, so that the run tends to that of `integrate` as the rate falls, with
    an error of its order. With a rate for each state, t counts steps. A flow with ``sample(t, state, rng)`` is moved
    along what that returns, as SGD is along the gradient of a batch.

    Parameters
    ----------
    flow : Flow
    rate : float or mapping
        Learning rate, positive; or one for each state, by name, where 0 freezes it.
    steps : int
    seed : int or numpy.random.SeedSequence
        Of what ``sample`` draws. Same seed, same result. A flow without it has none in its record.
    optimizer : str or Optimizer, optional
        How a step follows the derivative, as `sgd` follows the gradient: momentum, Adam, clipping, decay, a schedule of
        k. Default: plain steps, without momentum.
    record_every : int
        Steps between recorded states; the first and the last state always are.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Run
        Events are not looked for between steps.

    Raises
    ------
    ValueError
        If an argument is invalid, or the flow returns what does not fit its states.
    IntegrationError
        If the state stops being finite; it keeps what was recorded.
    """
    given = {name: value for name, value in locals().items() if name != "progress"}
    checks.instance("flow", flow, Flow, rule="have `initial` and `derivative`, as a Flow")
    steps = checks.integer("steps", steps, minimum=1)
    record_every = checks.integer("record_every", record_every, minimum=1)
    if isinstance(seed, np.random.SeedSequence):
        rng = np.random.default_rng(seed)
    else:
        rng = np.random.default_rng(checks.integer("seed", seed, minimum=0))
    states = states_of(flow)
    rates, unit = _rates(rate, states)
    how = _optimizer(optimizer)
    many = -(-steps // record_every) + 1
    checks.fits_in_memory("record_every", 8 * many * (states.initial.size + 1), "record states")
    moments = np.append(np.arange(0, steps, record_every), steps)
    parameters: dict[str, Any] = {
        "rate": unit if unit is not None else rates,
        "steps": steps,
        "seed": str(seed) if isinstance(seed, np.random.SeedSequence) else int(seed),
        "record_every": record_every,
        **({} if how is None else how.over(steps).parameters),
    }
    if getattr(flow, "sample", None) is None:  # what has a seed was drawn
        del given["seed"], parameters["seed"]
    clock = 1.0 if unit is None else unit
    rows = np.empty((len(moments), states.initial.size))
    with Progress(f"steps ({type(flow).__name__})", enabled=progress) as report:
        descent = _Descent(flow, states, rates, clock, rng, None if how is None else how.over(steps))

        def reported(step: float) -> None:
            report.update(step / steps, f"step {step} of {steps}")

        with np.errstate(over="ignore", invalid="ignore"):
            done, reason = drive(descent, moments, rows, report=reported, first=True)

    def run(many: int) -> Run:
        more = {"method": "Euler" if how is None else how.name}
        return recorded(flow, states, clock * moments[:many], rows[:many], "descend", parameters, more)

    if reason:
        raise IntegrationError(
            f"the state is no longer finite after step {descent.s} of {steps}. Try a smaller rate, or "
            "Optimizer(clip=..)",
            clock * descent.s,
            None,
            None,
            states.split(rows[done - 1]),
            run(done),
        )
    whole = run(done)
    whole.call = Call("descend", {**given, "flow": origin_of(flow) or flow})
    return whole


def _rates(rate: object, states: NamedStates) -> tuple[dict[str, float], float | None]:
    """The rate of each state; and the one of all, if it is one."""
    if not isinstance(rate, Mapping):
        unit = checks.positive("rate", rate)
        return dict.fromkeys(states.shapes, unit), unit
    if set(rate) != set(states.shapes):
        raise checks.reject("rate", f"have a number for each of {', '.join(states.shapes)}", checks.brief(list(rate)))
    return {name: checks.non_negative("rate", rate[name]) for name in states.shapes}, None


def _optimizer(optimizer: object) -> Optimizer | None:
    if optimizer is None or isinstance(optimizer, Optimizer):
        found = optimizer
    else:
        found = Optimizer(checks.instance("optimizer", optimizer, str, rule="be a name or an Optimizer"))
    if found is not None:
        function_of(found, "direction")
    return found


class _Descent:
    """A descent on its way; ``s`` is how many steps were taken."""

    def __init__(
        self,
        flow: Flow,
        states: NamedStates,
        rates: Mapping[str, float],
        clock: float,
        rng: np.random.Generator,
        optimizer: Optimizer | None,
    ) -> None:
        self.s, self.state, slope = 0, states.initial.copy(), np.empty_like(states.initial)
        draw = getattr(flow, "sample", None)
        along = flow.derivative if draw is None else lambda t, now: draw(t, now, rng)
        self._evaluate = states.bound(along, self.state, slope)
        self._run, self._clock, self._optimizer = states.run, clock, optimizer
        arrays = (self.state, slope, np.zeros_like(slope), np.zeros_like(slope))
        self._parts = [[array[entries] for entries in states.slices.values()] for array in arrays]
        self._speeds = [rates[name] for name in states.slices]

    def advance(self) -> str | None:
        """Take a step; returns None, or why it is the last one."""
        self._run(self._evaluate, self._clock * self.s)
        if self._optimizer is None:
            for place, move, speed in zip(self._parts[0], self._parts[1], self._speeds, strict=True):
                place += speed * move
        else:
            state, slope, first, second = self._parts
            ascend(self._optimizer, state, slope, (first, second), rates=self._speeds, multiplicity=None, step=self.s)
        if not np.isfinite(self.state).all():
            return NOT_FINITE
        self.s += 1
        return None

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The state after the last step."""
        return self.state[None]
