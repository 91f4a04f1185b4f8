"""Open flows: any right-hand side with named states, integrated, recorded and saved as the layer's flow is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics._engine.drive import Clock
from dynamics._engine.open.integration import Integration
from dynamics._engine.open.protocol import Flow
from dynamics._engine.open.states import NamedStates, RaisedError
from dynamics._engine.steps import USUAL, Solver
from dynamics.run import Run
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.origins import origin_of
from dynamics.support.progress import Progress

if TYPE_CHECKING:
    pass

__all__ = ["Flow", "integrate"]

_NUMBERS = dict.fromkeys(("t_end", "rtol", "atol"), checks.positive)


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

    Zeros of the flow's ``events`` are located in each step to the accuracy of the solution. Signs are compared at ten
    points of a step and at the output times: a number that leaves and comes back between two of them goes unseen, and
    so does one that touches zero; a zero at t = 0 is none. At a "kink" the step ends, and beyond it the integration
    starts anew, so that no step has both sides in it. Where the derivatives of both sides lead to the surface, the flow
    slides along it, with their mean that stays on it (Filippov), until one side leads away; two surfaces at once are
    not slid along. A derivative that jumps at a place which is not declared makes steps stall, which ends the run.

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
        ``events`` has the times of zeros, ``notes`` what happened at kinks, the attribute ``reduction`` how many
        variables were integrated, and ``method`` by what.

    Raises
    ------
    ValueError
        If an argument is invalid, or the flow returns what does not fit its states.
    IntegrationError
        If the integrator fails, steps stall, or two kinks would be slid along at once; it says where, and keeps what
        was recorded.

    What a flow's own code raises comes out as it is.
    """
    given = {name: value for name, value in locals().items() if name != "progress"}
    checks.instance("flow", flow, Flow, rule="have `initial` and `derivative`, as a Flow")
    solver = checks.or_usual("solver", solver, USUAL)
    if solver.momentum != Solver.momentum:
        raise checks.reject("solver", "leave momentum to `descend`: an open flow has no optimizer", solver.momentum)
    parameters: dict[str, Any] = checks.each(_NUMBERS, given)
    parameters |= {"time_scale": solver.time_scale, "method": solver.method}
    clock = Clock(0.0, parameters["t_end"], logarithmic=solver.time_scale == "log")
    moments = clock.output_times(times, n_times)
    states = states_of(flow, reduce=solver.reduce == "auto")
    _check_repeats(flow, states)
    checks.fits_in_memory("times", 8 * len(moments) * states.initial.size, "record states")
    call = Call("integrate", {**given, "flow": origin_of(flow) or flow})  # which may be changed later
    try:
        with Progress(f"flow ({type(flow).__name__})", enabled=progress) as report:
            run = Integration(flow, states, clock, moments, parameters, report).run()
    except RaisedError as error:
        raise (error.__cause__ or error) from None
    run.call = call
    return run


def states_of(flow: Flow, *, reduce: bool = True) -> NamedStates:
    """The states of a flow, and its derivative at the start checked."""
    labels = getattr(flow, "orbits", None)
    states = NamedStates(flow.initial, checks.function("orbits", labels)() if reduce and labels is not None else None)
    slope = flow.derivative(0.0, states.split(states.initial))
    states.check_derivative(slope, 0.0)
    for name, part in slope.items():
        if not np.isfinite(np.asarray(part, dtype=np.float64)).all():  # no step leads away from there
            raise checks.reject("derivative", f"return finite numbers for {name!r} at the start", checks.brief(part))
    return states


def _check_repeats(flow: Flow, states: NamedStates) -> None:
    """Refuse a derivative that returns other numbers at a second call: no step is small enough for noise."""
    first, again = (
        # Copies, since a flow may return the same arrays each time.
        {name: np.array(part, dtype=np.float64) for name, part in flow.derivative(0.0, parts).items()}
        for parts in (states.split(states.initial), states.split(states.initial))
    )
    for name, part in first.items():
        if not np.allclose(part, again[name], rtol=1e-9, atol=1e-9 * abs(part).max(initial=0.0)):
            rule = "return the same numbers at the same time and states; `sample` is what draws, for `descend`"
            raise checks.reject("derivative", rule, f"others for {name!r} at the second call")
