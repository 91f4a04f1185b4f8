"""Gradient flow: training in the limit of small learning rates, as an ordinary differential equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from dynamics._assembly import LargeRecord, assemble, is_large
from dynamics._engine.dop853 import NOT_FINITE_AT_START, InKernel, Slopes
from dynamics._engine.drive import STALL, Clock, Guard, drive, taken
from dynamics._engine.factors import Factored, factors_of
from dynamics._engine.steps import METHODS, USUAL, FlowSteps, Solver, steps_of
from dynamics._model.objective import PLAIN, Objective, placed
from dynamics.bags import Bags, Data, population_of
from dynamics.fields.full import FullOrbits
from dynamics.fields.optimized import check_flow
from dynamics.fields.system import FlowSetting, System
from dynamics.fields.table import entry_of, system_for
from dynamics.layer import Layer, optional_rates
from dynamics.optimizers.optimizer import Optimizer
from dynamics.support import checks
from dynamics.support.calls import Call
from dynamics.support.errors import IntegrationError
from dynamics.support.progress import Progress
from dynamics.trajectory import Trajectory

__all__ = ["METHODS", "IntegrationError", "Solver", "gradient_flow"]

_NUMBERS = dict.fromkeys(("eta_y", "eta_z"), checks.rate) | dict.fromkeys(("t_end", "rtol", "atol"), checks.positive)
# Methods whose steps are `Dop853`.
_OURS = ("auto", "DOP853")


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
    given = {name: value for name, value in locals().items() if name != "progress"}
    call = Call("gradient_flow", given)
    bags, solver = population_of(data), checks.or_usual("solver", solver, USUAL)
    objective = checks.or_usual("objective", objective, PLAIN)
    entry = entry_of(decoder)
    numbers = checks.each(_NUMBERS, given)
    rates = {name: numbers[name] for name in ("eta_y", "eta_z")}
    parameters: dict[str, Any] = {**rates, "t_end": numbers["t_end"], "decoder": decoder, **entry.recorded}
    parameters |= {**numbers, "time_scale": solver.time_scale, "method": solver.method}
    start, layer = _start(init, bags)
    query_tokens = getattr(data, "query_tokens", None)
    query_tokens = None if query_tokens is None else np.array(query_tokens)
    layer = placed(objective, layer, bags, query_tokens, "init")
    optional = optional_rates(layer, rates["eta_y"], eta_v, eta_hidden)
    parameters |= optional | objective.parameters
    if parameters["t_end"] <= start:
        raise checks.reject("t_end", f"be after the last time of `init`, {start:g}", t_end)
    clock = Clock(start, parameters["t_end"], logarithmic=solver.time_scale == "log")
    times = clock.output_times(times, n_times)
    setting = FlowSetting(bags, layer, init, rates | optional, objective)
    if optimizer is not None:
        check_flow(optimizer, decoder, init, solver.momentum, reduced=entry.reduced)
        parameters |= optimizer.parameters | {"momentum_order": solver.momentum}
        span = clock.start, clock.end
        setting = replace(setting, optimizer=optimizer.over(clock.end), order=solver.momentum, span=span)
    system = system_for(setting, entry, reduce=solver.reduce == "auto")
    checks.fits_in_memory("times", 8 * len(times) * system.initial.size, "record states")
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
    """The trajectory of the states at these times. Observables that a kernel can find are computed on first access."""
    if system.compact and is_large(system.setting.bags, system.setting.start, len(times)):
        system = cast(FullOrbits, system)
        kept = LargeRecord(system.setting.bags, system.setting.start, system.setting.objective)
        for time, state in zip(times, states, strict=True):
            kept.add(time, system.logits(state), system.loss(state))
        return kept.trajectory(system.logits(states[-1]), None, **labels, extra=system.extra(states))
    if "kernel" in system.fast and not system.setting.objective.terms:
        last = states[-1].copy()
        return Trajectory._later(partial(_assembled, system, times, states, labels), partial(system.layer, last))
    return _assembled(system, times, states, labels)


def _assembled(system: System, times: np.ndarray, states: np.ndarray, labels: Mapping) -> Trajectory:
    seen = system.observe(states)
    attributes = {"long_name": "rate of change of the attention logit", "units": "1 / SGD step"}
    extra = {"z_velocity": (("time", "query", "token"), seen.velocity, attributes), **system.extra(states)}
    return assemble(system.setting.bags, times, seen.states, seen.loss, **labels, extra=extra)


def _steps(system: System, guard: Guard, clock: Clock, parameters: Mapping) -> FlowSteps:
    """The steps of a method, by the fastest of the system's own paths."""

    def bind(state: np.ndarray, out: np.ndarray, bound: Callable = system.bound) -> Callable[[float], None]:
        evaluate = bound(state, out)
        return guard.timed(lambda _: evaluate(), out)

    size = system.initial.size
    slopes: Slopes | None = None
    if parameters["method"] in _OURS:
        frame = system.own_frame
        if frame is not None:
            slopes = InKernel(frame, size, guard, clock.rate if clock.logarithmic else None)
        elif "factors" in system.fast and (factors := factors_of(system)) is not None:
            slopes = Factored(factors, bind, size)
    tolerances = {name: parameters[name] for name in ("rtol", "atol")}
    return steps_of(parameters["method"], bind, guard.end, system.initial, **tolerances, slopes=slopes)


def _integrate(
    system: System,
    clock: Clock,
    times: np.ndarray,
    parameters: Mapping,
    query_tokens: np.ndarray | None,
    report: Progress,
) -> Trajectory:
    attributes = {"reduction": system.reduction}
    labels = {"kind": "gradient_flow", "parameters": parameters, "query_tokens": query_tokens, "attributes": attributes}
    guard = Guard(clock, report, lambda _, state: system.derivative(state), system.component, *system.evaluations)
    states, done = np.empty((len(times), system.initial.size)), 0
    # A trial step may overshoot into overflow or nan; the integrator then steps back.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        steps = _steps(system, guard, clock, parameters)
        reason: str | None = NOT_FINITE_AT_START
        # An explicit method of scipy halves its step for ever on a start that is not finite.
        if parameters["method"] in _OURS or np.isfinite(system.derivative(system.initial)).all():
            grid = np.clip(clock.variable(times), 0.0, guard.end)
            done, reason = drive(steps, grid, states, guard.exceeded, guard.reached)
        attributes["method"] = taken(steps, clock)
        if reason is not None:
            known = _trajectory(system, times[:done], states[:done], labels) if done else None
            raise _failure(reason, system, steps, clock, parameters, known)
    return _trajectory(system, times, states, labels)


def _failure(
    reason: str, system: System, steps: FlowSteps, clock: Clock, parameters: Mapping, known: Trajectory | None
) -> IntegrationError:
    """The error to raise where there is no further step."""
    layer = system.layer(np.ascontiguousarray(steps.state))
    time = float(clock.time(steps.s))
    largest = max(np.abs(layer.Z).max(), np.abs(layer.Y).max())
    rates = f"eta_y = {parameters['eta_y']:g}, eta_z = {parameters['eta_z']:g}"
    tries = (
        f"smaller learning rates ({rates}), Solver(time_scale='log'), a larger rtol and atol, or Solver(method='Radau')"
    )
    if reason.startswith(STALL):
        reason += "" if system.setting.start.hidden is None else ", as where a hidden unit is held where its ReLU bends"
        tries = "a larger rtol and atol, such as 1e-4, whose steps may step over it, an earlier t_end, or `sgd`"
    # Other tolerances would not help where a schedule or a term returns a forbidden value.
    advice = "" if reason.startswith("`") else f". Try, in this order: {tries}"
    return IntegrationError(
        f"the gradient flow ({parameters['decoder']}) stopped after t = {time:g} of {clock.end:g} SGD steps, where "
        f"the largest logit is {largest:.3g}: {reason}{advice}",
        time,
        layer,
        known,
    )
