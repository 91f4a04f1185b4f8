"""Gradient flow: training in the limit of small learning rates, as an ordinary differential equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from dynamics._assembly import LargeRecord, assemble, is_large
from dynamics._engine.clock import Clock
from dynamics._engine.dop853 import InKernel
from dynamics._engine.drive import Guard, culprit, drive, into, taken
from dynamics._engine.factors import Factored, factors_of
from dynamics._engine.solver import METHODS, Solver, as_solver
from dynamics._engine.steps import Steps, steps_of
from dynamics._model.frames import looked
from dynamics._model.objective import Objective, as_objective, check_insertions, shaped
from dynamics.bags import Bags, Data, population_of
from dynamics.fields.full import FullOrbits
from dynamics.fields.optimized import check_flow
from dynamics.fields.system import Setting, System, frame_for, has
from dynamics.fields.table import entry_of, system_for
from dynamics.layer import Layer, check_queries, optional_rates
from dynamics.optimizers.optimizer import Optimizer
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.errors import IntegrationError
from dynamics.support.limits import current
from dynamics.support.progress import Progress
from dynamics.trajectory import Trajectory

__all__ = ["METHODS", "IntegrationError", "Solver", "gradient_flow"]

_STALL = "steps stall"


def gradient_flow(
    data: Data,
    *,
    eta_y: float,
    eta_z: float,
    t_end: float,
    decoder: str = "full",
    times: ArrayLike | None = None,
    n_times: int = 200,
    init: Layer | Trajectory | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    progress: bool = False,
    eta_v: float | None = None,
    eta_hidden: float | None = None,
    objective: Objective | None = None,
    solver: Solver | None = None,
    optimizer: Optimizer | None = None,
) -> Trajectory:
    r"""Integrate the gradient flow of the layer on a population of bags.

    Time t counts SGD steps: one unit of t is one step with learning rates eta_Y and eta_Z on the expected objective.
    With f_n the feature and r_n = e_n - alpha_n the residual of class n, which has probability p_n:

    - ``"full"``: Lemma 1 (3), dY/dt = eta_Y sum_n p_n f_n r_n^T and dz_m/dt = eta_Z sum_{n: psi(n) = m} p_n
      f_n * (g_n - f_n (f_n . g_n)) with g_n = Y r_n.
    - ``"modified"``: the decoder gradient of Lemma 3 (26), dY/dt = eta_Y sum_n p_n (f_n - F E' e_n) r_n^T with
      E' = I - (F^T F)^{-1}; Z as above.
    - ``"theory"``: (10) with Theorem 1: g_n = F (I - E') [w_n' . r_n]_n', where w_n = (M - 1) h_n zeta_n and h_n is
      one more state variable, dh_n/dt = p_n eta_Y / (M - 1 + exp(M h_n)) (44). Y follows from h and Z. Class
      probabilities other than 1/K, which the paper does not treat, are covered by giving each class its own h_n.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    eta_y, eta_z : float
        Learning rates per step. 0 freezes Y, or Z, at its start; clipping still counts its gradient.
    t_end : float
        Last time, in SGD steps.
    decoder : "full", "modified" or "theory", or the name of a `Field`
        One of your own: see `register_field`.
    times : (n,) array, optional
        Output times, increasing, within the span of the integration. Default: ``n_times`` of them, equally spaced in
        t, or in log(1 + t) if that is the solver's time scale.
    n_times : int
        Number of output times if ``times`` is None.
    init : Layer or Trajectory, optional
        Where to start. Default: Y = Z = 0, kept with one column of Y for all next tokens that never occur. A layer
        starts at t = 0; a trajectory is continued from its last time.
    rtol, atol : float
        Tolerances of the integrator on the logits.
    progress : bool
        Show progress on standard error.
    eta_v : float, optional
        Learning rate of the value matrix, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    eta_hidden : float, optional
        Learning rate of the hidden layer, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    objective : Objective, optional
        What is descended on: criterion, label smoothing, terms; and temperature and normalisation of the layer.
        Default: the cross-entropy (2).
    solver : Solver, optional
        Method, time scale, and whether symmetry is used. Default: DOP853 in t, and LSODA once the problem gets stiff,
        with one variable for each orbit of logits where the population is symmetric.
    optimizer : Optimizer, optional
        Whose steps the flow is the limit of: momentum, weight decay, schedule, clipping, sign descent or Adam, on the
        expected objective, see `Optimizer`. "theory" takes a schedule alone. Default: plain steps without momentum.

    Returns
    -------
    Trajectory
        Its dataset also holds ``z_velocity(time, query, token)`` and, for "theory", ``h(time, next_token)``. Its
        attribute ``reduction`` says what was reduced to what, or "none"; ``method``, what integrated from when on.

    This is the limit of small learning rates, without noise: `stochastic_flow` has that of mini-batches.

    Ctrl-C is heard every second or so; where F^T F is inverted ("modified", and "theory" without symmetry) after each
    inversion, which takes minutes at 10,000 bags.

    Raises
    ------
    ValueError
        If an argument is invalid, or the features f_n are linearly dependent where Lemma 3 needs their inverse.
    IntegrationError
        If the integrator fails, or its steps stall, as where a hidden unit is held where its ReLU bends; it says
        where, and keeps what was recorded.

    What a schedule, a term or a field of one's own raises comes out as it is.

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Sections 3-5 and Appendix D.
    """
    call = Call("gradient_flow", {name: value for name, value in locals().items() if name != "progress"})
    bags, solver, objective = population_of(data), as_solver(solver), as_objective(objective)
    entry = entry_of(decoder)
    rates = {"eta_y": checks.rate("eta_y", eta_y), "eta_z": checks.rate("eta_z", eta_z)}
    parameters: dict[str, Any] = {
        **rates,
        "t_end": checks.positive("t_end", t_end),
        "decoder": decoder,
        **entry.recorded,
        "rtol": checks.positive("rtol", rtol),
        "atol": checks.positive("atol", atol),
        "time_scale": solver.time_scale,
        "method": solver.method,
    }
    start, layer = _start(init, bags)
    layer = shaped(objective, layer)
    layer.check_fits(bags, name="data")
    optional = optional_rates(layer, rates["eta_y"], eta_v, eta_hidden)
    check_insertions(objective, layer)
    parameters |= optional | objective.parameters
    if parameters["t_end"] <= start:
        raise checks.reject("t_end", f"be after the last time of `init`, {start:g}", t_end)
    clock = Clock(start, parameters["t_end"], logarithmic=solver.time_scale == "log")
    times = clock.output_times(times, n_times)
    setting = Setting(bags, layer, init, rates | optional, objective)
    if optimizer is not None:
        check_flow(optimizer, decoder, init, solver.momentum, reduced=entry.reduced)
        parameters |= optimizer.parameters | {"momentum_order": solver.momentum}
        span = clock.start, clock.end
        setting = replace(setting, optimizer=optimizer.over(clock.end), order=solver.momentum, span=span)
    system = system_for(setting, decoder, reduce=solver.reduce == "auto")
    checks.fits_in_memory("times", 8 * len(times) * system.initial.size, "record states")
    query_tokens = getattr(data, "query_tokens", None)
    query_tokens = None if query_tokens is None else np.array(query_tokens)
    check_queries("init", layer, query_tokens)
    with Progress(f"gradient flow ({decoder})", enabled=progress) as report:
        trajectory = _integrate(system, clock, times, parameters, query_tokens, report)
    trajectory.call = call
    return trajectory


def _start(init: Layer | Trajectory | None, bags: Bags) -> tuple[float, Layer]:
    if init is None:
        return 0.0, Layer.zeros(bags)
    if isinstance(init, Trajectory):
        time = checks.real("init", float(init.dataset["time"].values[-1]), rule="end at a finite time")
        return time, init.final
    if isinstance(init, Layer):
        return 0.0, init
    raise checks.reject("init", "be None, a Layer or a Trajectory", type(init).__name__)


def _trajectory(system: System, times: np.ndarray, states: np.ndarray, labels: Mapping) -> Trajectory:
    """The trajectory of the states at these times; what a kernel finds of them is left until somebody reads it."""
    if system.compact and is_large(system.setting.bags, system.setting.start, len(times)):
        system = cast(FullOrbits, system)
        kept = LargeRecord(system.setting.bags, system.setting.start, system.setting.objective)
        for time, state in zip(times, states, strict=True):
            kept.add(time, system.logits(state), system.loss(state))
        return kept.trajectory(system.logits(states[-1]), None, **labels, extra=system.extra(states))
    if has(system, "kernel") and not system.setting.objective.terms:
        last = states[-1].copy()
        return Trajectory._later(partial(_assembled, system, times, states, labels), partial(system.layer, last))
    return _assembled(system, times, states, labels)


def _assembled(system: System, times: np.ndarray, states: np.ndarray, labels: Mapping) -> Trajectory:
    seen = system.observe(states)
    attributes = {"long_name": "rate of change of the attention logit", "units": "1 / SGD step"}
    extra = {"z_velocity": (("time", "query", "token"), seen.velocity, attributes), **system.extra(states)}
    return assemble(system.setting.bags, times, seen.states, seen.loss, **labels, extra=extra)


def _stall(system: System, steps: Steps) -> str:
    """Where and why steps stall, in words."""
    number, jump = culprit(steps, lambda _, state: system.derivative(state))
    kink = "" if system.setting.start.hidden is None else ", as where a hidden unit is held where its ReLU bends"
    return f"{_STALL}, and the slope of {system.component(number)} jumps by {jump:.3g} between them{kink}"


def _integrate(
    system: System,
    clock: Clock,
    times: np.ndarray,
    parameters: Mapping,
    query_tokens: np.ndarray | None,
    report: Progress,
) -> Trajectory:
    end = float(clock.variable(clock.end))
    attributes = {"reduction": system.reduction}
    labels = {"kind": "gradient_flow", "parameters": parameters, "query_tokens": query_tokens, "attributes": attributes}

    evaluations = 0

    def watch(s: float, more: int) -> None:
        nonlocal evaluations
        evaluations += more
        if report.enabled:
            report.update(s / end, f"at t = {clock.time(s):.4g} of {clock.end:g}")

    def bind(state: np.ndarray, out: np.ndarray, bound: Callable = system.bound) -> Callable[[float], None]:
        evaluate = bound(state, out)

        def at(s: float) -> None:
            watch(s, 1)
            evaluate()
            if clock.logarithmic:
                np.multiply(out, clock.rate(s), out=out)

        return at

    def fail(reason: str, s: float, state: np.ndarray, n_states: int) -> NoReturn:
        attributes["method"] = taken(steps, clock) if steps else parameters["method"]
        layer = system.layer(np.ascontiguousarray(state))
        time = float(clock.time(s))
        largest = max(np.abs(layer.Z).max(), np.abs(layer.Y).max())
        rates = f"eta_y = {parameters['eta_y']:g}, eta_z = {parameters['eta_z']:g}"
        tries = (
            f"smaller learning rates ({rates}), Solver(time_scale='log'), a larger rtol and atol, or "
            "Solver(method='Radau')"
        )
        if reason.startswith(_STALL):
            tries = "a larger rtol and atol, such as 1e-4, whose steps may step over it, an earlier t_end, or `sgd`"
        # Other tolerances would not help where a schedule or a term returns what it must not.
        advice = "" if reason.startswith("`") else f". Try, in this order: {tries}"
        raise IntegrationError(
            f"the gradient flow ({parameters['decoder']}) stopped after t = {time:g} of {clock.end:g} SGD steps, where "
            f"the largest logit is {largest:.3g}: {reason}{advice}",
            time,
            layer,
            _trajectory(system, times[:n_states], states[:n_states], labels) if n_states else None,
        )

    states, steps = np.empty((len(times), system.initial.size)), None
    # A trial step may overshoot into overflow or nan; the integrator then steps back.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ours = parameters["method"] in ("auto", "DOP853")
        frame = frame_for(system) if ours else None
        # An explicit method halves its step for ever on a start that is not finite.
        slope = system.derivative(system.initial) if frame is None else looked(frame, system.initial[None])[1]
        if not np.isfinite(slope).all():
            fail("the derivative is not finite at the start", 0.0, system.initial, 0)
        how: dict[str, Any] = {name: parameters[name] for name in ("rtol", "atol")}
        if ours:
            n = system.initial.size
            factors = factors_of(system) if frame is None and has(system, "factors") else None
            if frame is not None:
                how["slopes"] = InKernel(frame, clock.rate, watch, n)
            elif factors is not None:
                how["slopes"] = Factored(factors, bind, n)
        steps = steps_of(parameters["method"], bind, end, system.initial, **how)
        grid = np.clip(clock.variable(times), 0.0, end)
        most = min(current().evaluations, system.evaluations.most)
        guard = Guard(end)

        def exceeded(steps: Steps, size: float) -> str | None:
            if evaluations > most:
                return f"more than {most:,} evaluations of the derivative{system.evaluations.why}"
            return _stall(system, steps) if guard.stalls(steps, size) else None

        done, reason = drive(steps, grid, into(states), exceeded)
        if reason:
            fail(reason, steps.s, steps.state, done)
    attributes["method"] = taken(steps, clock)
    return _trajectory(system, times, states, labels)
