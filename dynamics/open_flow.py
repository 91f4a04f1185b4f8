"""Open flows: any right-hand side with named states, integrated, recorded and saved as the layer's flow is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from dynamics._flow.clock import Clock
from dynamics._flow.march import MOST_EVALUATIONS, march, taken
from dynamics._flow.solver import Solver, as_solver
from dynamics._flow.steps import Steps, steps_of
from dynamics._open.states import Labelled, RaisedError, States, check_name, labelled
from dynamics.flow import IntegrationError
from dynamics.run import FORMAT, Run
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.origins import origin_of
from dynamics.support.progress import Progress
from dynamics.support.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

__all__ = ["Flow", "integrate"]


@runtime_checkable
class Flow(Protocol):
    r"""An ordinary differential equation with named states: what `integrate` and `descend` take.

    Two members are required; a class that has them is a `Flow` and inherits from nothing:

    - ``initial``: name -> DataArray or array, the states at t = 0. A run keeps dimensions and coordinates.
    - ``derivative(t, state)``: name -> array, the rate of change of each state in its shape. ``state`` maps names to
      plain arrays, read-only and valid until the call returns; a state without dimensions is an array without axes.
      Plain Python and functions compiled by numba both do.

    What else a class may have:

    - ``observe(t, state)``: name -> DataArray, array or number, recorded at each time.
    - ``events(t, state)``: name -> number. Its zeros are located and recorded; ``kinds``, a mapping, says of some more:
      "stop" ends the run there; "kink" is a surface at which the derivative jumps or bends, see `integrate`; "record"
      is the default. A sign after the kind takes zeros in one direction only: "record +" where the number rises,
      "stop -" where it falls.
    - ``orbits()``: name -> integers of the state's shape. Entries with equal labels move together: one is integrated.
    - ``sample(t, state, rng)``: as ``derivative``, drawn at random: what `descend` steps along.
    - ``config()``: keyword arguments of the class, plain data, that make the flow again: for files.
    - ``field(t, state)``: the derivative as power series in balls, for enclosures.

    Examples
    --------
    >>> import numpy as np
    >>> from dynamics import integrate
    >>> class Decay:
    ...     initial = {"x": np.array([1.0, 2.0])}
    ...     def derivative(self, t, state):
    ...         return {"x": -state["x"]}
    >>> run = integrate(Decay(), t_end=1.0)
    >>> bool(np.allclose(run.final["x"], np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-7))
    True
    """

    @property
    def initial(self) -> Mapping[str, xr.DataArray | ArrayLike]: ...

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> Mapping[str, ArrayLike]: ...


def integrate(
    flow: Flow,
    *,
    t_end: float,
    times: ArrayLike | None = None,
    n_times: int = 200,
    solver: Solver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    progress: bool = False,
) -> Run:
    """Integrate a flow from t = 0.

    Parameters
    ----------
    flow : Flow
    t_end : float
        Last time.
    times : (n,) array, optional
        Output times, increasing, from 0 to ``t_end``. Default: ``n_times`` of them, equally spaced in t, or in
        log(1 + t) if that is the solver's time scale.
    n_times : int
        Number of output times if ``times`` is None.
    solver : Solver, optional
        Method and time scale; ``reduce="none"`` integrates each entry, whatever the flow's ``orbits`` say. Default:
        DOP853 in t, and LSODA once the problem gets stiff.
    rtol, atol : float
        Tolerances of the integrator.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If an argument is invalid, or the flow returns what does not fit its states.
    IntegrationError
        If the integrator fails; it says where, and keeps what was recorded.
    """
    given = {name: value for name, value in locals().items() if name != "progress"}
    checks.instance("flow", flow, Flow, rule="have `initial` and `derivative`, as a Flow")
    solver = as_solver(solver)
    if solver.momentum != Solver.momentum:
        raise checks.reject("solver", "leave momentum to `descend`: an open flow has no optimizer", solver.momentum)
    parameters: dict[str, Any] = {
        "t_end": checks.positive("t_end", t_end),
        "rtol": checks.positive("rtol", rtol),
        "atol": checks.positive("atol", atol),
        "time_scale": solver.time_scale,
        "method": solver.method,
    }
    clock = Clock(0.0, parameters["t_end"], logarithmic=solver.time_scale == "log")
    moments = clock.output_times(times, n_times)
    states = states_of(flow, reduce=solver.reduce == "auto")
    checks.fits_in_memory("times", 8 * len(moments) * states.initial.size, "record states")
    call = Call("integrate", {**given, "flow": origin_of(flow) or flow})  # which may be changed later
    try:
        with Progress(f"flow ({type(flow).__name__})", enabled=progress) as report:
            run = _Integration(flow, states, clock, moments, parameters, report).run()
    except RaisedError as error:
        raise (error.__cause__ or error) from None
    run.call = call
    return run


def states_of(flow: Flow, *, reduce: bool = True) -> States:
    """The states of a flow, and its derivative at the start checked."""
    labels = getattr(flow, "orbits", None)
    states = States(flow.initial, checks.function("orbits", labels)() if reduce and labels is not None else None)
    states.check_derivative(flow.derivative(0.0, states.split(states.initial)), 0.0)
    return states


class _Integration:
    """An integration on its way."""

    def __init__(
        self, flow: Flow, states: States, clock: Clock, times: np.ndarray, parameters: Mapping, report: Progress
    ) -> None:
        self.flow, self.states, self.clock, self.times = flow, states, clock, times
        self.parameters, self.report = parameters, report
        self.evaluations, self.end = 0, float(clock.variable(clock.end))

    def bind(self, state: np.ndarray, out: np.ndarray) -> Callable[[float], None]:
        """The derivative by the variable of integration, as `steps_of` takes it."""
        evaluate, clock, report = self.states.bound(self.flow.derivative, state, out), self.clock, self.report

        def at(s: float) -> None:
            self.evaluations += 1
            t = float(clock.time(s))
            if report.enabled:
                report.update(s / self.end, f"at t = {t:.4g} of {clock.end:g}")
            evaluate(t)
            if clock.logarithmic:
                np.multiply(out, clock.rate(s), out=out)

        return at

    def exceeded(self) -> str | None:
        """Why there are no more evaluations, or None."""
        if self.evaluations <= MOST_EVALUATIONS:
            return None
        return f"more than {MOST_EVALUATIONS:,} evaluations of the derivative"

    def run(self) -> Run:
        """Integrate to the end."""
        grid = np.clip(self.clock.variable(self.times), 0.0, self.end)
        rows = np.empty((len(grid), self.states.initial.size))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            how = {name: self.parameters[name] for name in ("rtol", "atol")}
            steps = steps_of(self.parameters["method"], self.bind, self.end, self.states.initial, **how)
            done, reason = march(steps, grid, rows, self.exceeded)
        if reason:
            raise self.failure(reason, steps, rows[:done])
        self.states.check_derivative(
            self.flow.derivative(float(self.times[-1]), self.states.split(rows[-1])), float(self.times[-1])
        )
        return self.recorded(rows, taken(steps, self.clock))

    def failure(self, reason: str, steps: Steps, rows: np.ndarray) -> IntegrationError:
        """What is raised where there is no further step."""
        time, state = float(self.clock.time(steps.s)), self.states.split(steps.state.copy())
        largest = int(np.argmax(np.abs(steps.state)))
        return IntegrationError(
            f"the flow stopped after t = {time:g} of {self.clock.end:g}, where the largest entry is "
            f"{self.states.component(largest)} = {steps.state[largest]:.3g}: {reason.rstrip('.')}. Try, in this order: "
            "an earlier t_end, Solver(time_scale='log'), a larger rtol and atol, or Solver(method='Radau')",
            time,
            None,
            None,
            state,
            self.recorded(rows, taken(steps, self.clock)) if len(rows) else None,
        )

    def recorded(self, rows: np.ndarray, method: str) -> Run:
        """The states at the first of the times as a run."""
        return recorded(
            self.flow, self.states, self.times[: len(rows)], rows, "integrate", self.parameters, {"method": method}
        )


def recorded(
    flow: Flow,
    states: States,
    times: np.ndarray,
    rows: np.ndarray,
    kind: str,
    parameters: Mapping,
    attributes: Mapping[str, str],
    events: Mapping[str, np.ndarray] | None = None,
) -> Run:
    """A run of the states at some times, with what the flow observes of them."""
    dataset = states.dataset(states.over_time(rows), times)
    observe = getattr(flow, "observe", None)
    if observe is not None:
        dataset = dataset.assign(_observed(observe, states, times, rows))
    own = {
        "flow": f"{type(flow).__module__}:{type(flow).__qualname__}",
        "states": json.dumps(list(states.shapes)),
        "reduction": states.reduction,
    }
    dataset = dataset.assign_attrs(provenance(kind, parameters, FORMAT) | own | dict(attributes))
    dataset["time"].attrs["long_name"] = "time"
    return Run(dataset, events=events)


def _observed(observe: Callable, states: States, times: np.ndarray, rows: np.ndarray) -> dict[str, xr.DataArray]:
    """The observables over time."""
    kept: dict[str, list[Labelled]] = {}
    for time, row in zip(times.tolist(), rows, strict=True):
        rule = "return a mapping of names to arrays or numbers"
        found = checks.instance("observe", observe(time, states.split(row)), Mapping, rule=rule)
        if kept and set(found) != set(kept):
            raise checks.reject("observe", "return the same names at all times", checks.brief(list(found)))
        for name, value in found.items():
            if check_name("observe", name) in states.shapes:
                raise checks.reject("observe", "return names that are no states", repr(name))
            own = labelled("observe", name, value, finite=False)
            first = kept.setdefault(name, [own])[0]
            if own.values.shape != first.values.shape:
                rule = f"return one shape of {name!r} at all times"
                raise checks.reject("observe", rule, f"{first.values.shape} and {own.values.shape}")
            if own is not first:
                kept[name].append(own)
    return {
        name: xr.DataArray(
            np.stack([own.values for own in seen]),
            dims=("time", *seen[0].dims),
            coords={"time": times, **seen[0].coords},
            attrs=seen[0].attributes,
        )
        for name, seen in kept.items()
    }
