"""Gradient flow: training in the limit of small learning rates, as an ordinary differential equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # which imports its integrators, a third of a second, when they are first used

from dynamics._flow.orbits import reduced_system
from dynamics._flow.systems import Full, Modified, Theory
from dynamics.bags import Bags
from dynamics.layer import Layer, check_objective, optional_rates
from dynamics.support import checks
from dynamics.support.progress import Progress
from dynamics.trajectory import LargeRecord, Trajectory, assemble, is_large

DECODERS = ("full", "modified", "theory")
METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")


class IntegrationError(RuntimeError):
    """The integrator could not reach the end.

    Attributes
    ----------
    time : float
        How far it came, in SGD steps.
    layer : Layer
        The state there.
    trajectory : Trajectory or None
        What was recorded until then.
    """

    def __init__(self, message: str, time: float, layer: Layer, trajectory: Trajectory | None):
        super().__init__(message)
        self.time = time
        self.layer = layer
        self.trajectory = trajectory

    def __reduce__(self):
        # The default hands only the message to __init__, and an error in a worker process would break its pool.
        return type(self), (str(self), self.time, self.layer, self.trajectory)


def gradient_flow(
    data,
    *,
    eta_y,
    eta_z,
    t_end,
    decoder="full",
    times=None,
    n_times=200,
    init=None,
    rtol=1e-8,
    atol=1e-10,
    progress=False,
    eta_v=None,
    time_scale="linear",
    method="DOP853",
    eta_hidden=None,
    criterion="cross-entropy",
    contrast=None,
    contrast_weight=0.0,
    reduce="auto",
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
        Learning rates per step, positive.
    t_end : float
        Last time, in SGD steps.
    decoder : "full", "modified" or "theory"
    times : (n,) array, optional
        Output times, increasing, within the span of the integration. Default: ``n_times`` of them, equally spaced in
        t, or in log(1 + t) if ``time_scale`` is "log".
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
    time_scale : "linear" or "log"
        Integrate in t or in log(1 + t). The flow slows down like a logarithm, so that "log" suits a large ``t_end``.
    method : str
        Method of `scipy.integrate.solve_ivp`, by name.
    eta_hidden : float, optional
        Learning rate of the hidden layer, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    criterion : "cross-entropy" or "squared"
        What is descended on: nats (2), or ``sum_c (u_c - target_c)^2`` of the logits u (Wen et al. 2023, (5)).
    contrast : Bags, optional
        Insertions for the regulariser ``contrast_weight E ||u(x) - u(x + insertion)||^2 / M`` (Wen et al. 2023, (22)),
        each as likely as its weight; `DyckLanguage.nested_pairs` makes them.
    contrast_weight : float
    reduce : "auto" or "none"
        "auto" integrates one variable for each orbit of logits where the population and the start are symmetric: where
        classes are copies of each other but for the names of their tokens, or tokens can be exchanged. The result is
        the same up to the tolerances; the cost does not depend on the number of copies. Not used with a value matrix,
        a hidden layer, an embedding, distributions as targets, or another objective. See `dynamics._flow.symmetry`.

    Returns
    -------
    Trajectory
        Its dataset also holds ``z_velocity(time, query, token)`` and, for "theory", ``h(time, next_token)``. Its
        attribute ``reduction`` says what was reduced to what, or "none".

    Raises
    ------
    ValueError
        If an argument is invalid, or the features f_n are linearly dependent where Lemma 3 needs their inverse.
    IntegrationError
        If the integrator fails; it says where, and keeps what was recorded.

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Sections 3-5 and Appendix D.
    """
    bags = data.population() if hasattr(data, "population") else data
    if not isinstance(bags, Bags):
        raise checks.reject("data", "be Bags or offer population()", type(data).__name__)
    parameters = {
        "eta_y": checks.positive("eta_y", eta_y),
        "eta_z": checks.positive("eta_z", eta_z),
        "t_end": checks.positive("t_end", t_end),
        "decoder": checks.one_of("decoder", decoder, DECODERS),
        "rtol": checks.positive("rtol", rtol),
        "atol": checks.positive("atol", atol),
        "time_scale": checks.one_of("time_scale", time_scale, ("linear", "log")),
        "method": checks.one_of("method", method, METHODS),
    }
    start, layer = _start(init, bags)
    layer.check_fits(bags, name="data")
    parameters |= optional_rates(layer, parameters["eta_y"], eta_v, eta_hidden)
    objective = check_objective(layer, criterion, contrast, contrast_weight)
    parameters |= {name: value for name, value in objective.items() if name != "contrast"}
    if parameters["t_end"] <= start:
        raise checks.reject("t_end", f"be after the last time of `init`, {start:g}", t_end)
    clock = _Clock(start, parameters["t_end"], logarithmic=time_scale == "log")
    times = _output_times(times, n_times, clock)
    checks.one_of("reduce", reduce, ("auto", "none"))
    system = reduced_system(bags, layer, init, parameters, objective) if reduce == "auto" else None
    if system is None:
        plain = {"full": Full, "modified": Modified, "theory": Theory}[decoder]
        system = plain(bags, layer, init, parameters, objective)
    query_tokens = getattr(data, "query_tokens", None)
    if query_tokens is not None and len(query_tokens) != layer.Z.shape[0]:
        raise checks.reject("init", f"have {len(query_tokens)} rows of Z, one a query token", layer.Z.shape[0])
    with Progress(f"gradient flow ({decoder})", enabled=progress) as report:
        return _integrate(system, clock, times, parameters, query_tokens, report)


def _start(init, bags: Bags) -> tuple[float, Layer]:
    if init is None:
        return 0.0, Layer.zeros(bags)
    if isinstance(init, Trajectory):
        return float(init.dataset["time"].values[-1]), init.final
    if isinstance(init, Layer):
        return 0.0, init
    raise checks.reject("init", "be None, a Layer or a Trajectory", type(init).__name__)


class _Clock:
    """The map between time t and the variable of integration s: t = t_0 + s, or t = t_0 + exp(s) - 1."""

    def __init__(self, start: float, end: float, *, logarithmic: bool):
        self.start, self.end, self.logarithmic = start, end, logarithmic

    def variable(self, t):
        return np.log1p(np.asarray(t) - self.start) if self.logarithmic else np.asarray(t) - self.start

    def time(self, s):
        return self.start + (np.expm1(s) if self.logarithmic else s)

    def rate(self, s) -> float:
        """dt/ds."""
        return np.exp(s) if self.logarithmic else 1.0


def _output_times(times, n_times, clock: _Clock) -> np.ndarray:
    if times is None:
        n_times = checks.integer("n_times", n_times, minimum=2)
        times = clock.time(np.linspace(0.0, clock.variable(clock.end), n_times))
        times[-1] = clock.end
        return times
    times = checks.finite_array("times", times, ndim=1)
    if times.size == 0:
        raise checks.reject("times", "hold at least one time", "none")
    if times[0] < clock.start or times[-1] > clock.end:
        outside = times[0] if times[0] < clock.start else times[-1]
        raise checks.reject("times", f"lie in [{clock.start:g}, {clock.end:g}]", outside)
    if (np.diff(times) <= 0).any():
        where = int(np.argmax(np.diff(times) <= 0))
        raise checks.reject("times", "increase", f"{times[where + 1]} after {times[where]}")
    return times


class _Steps:
    """The steps of a method of `scipy.integrate`, which reports why it cannot go on.

    `scipy.integrate.solve_ivp` would return no state at all then, and would not notice that LSODA steps on the spot.
    """

    _IDLE = 100

    def __init__(self, method: str, right_hand_side, end: float, initial: np.ndarray, options):
        self.s, self.state = 0.0, initial
        self._make = lambda: getattr(scipy.integrate, method)(right_hand_side, 0.0, initial, end, **options)
        self._solver: Any = None  # one of scipy's

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        for _ in range(self._IDLE):
            try:
                # The constructors of the implicit methods already form a Jacobian.
                self._solver = self._solver or self._make()
                message = self._solver.step()
            except (ValueError, np.linalg.LinAlgError) as error:  # an implicit method meets nan in its Jacobian
                return str(error)
            if self._solver.status == "failed":
                return message or "the step failed"
            if not np.isfinite(self._solver.y).all():  # LSODA steps on with nan
                return "the state is no longer finite"
            if self._solver.t > self.s:
                self.s, self.state = self._solver.t, self._solver.y
                return None
        return "the step size is too small to advance the time"

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (size of the state, points)."""
        return self._solver.dense_output()(s)


def _integrate(system, clock: _Clock, times, parameters, query_tokens, report: Progress) -> Trajectory:
    end = float(clock.variable(clock.end))

    def right_hand_side(s, state):
        report.update(s / end, f"at t = {clock.time(s):.4g} of {clock.end:g}")
        slope = system.derivative(state)
        if clock.logarithmic:
            slope *= clock.rate(s)
        return slope

    def record_large(grid, states, labels):
        kept = LargeRecord(system.bags, system.orbits.start, "cross-entropy")
        for time, state in zip(grid, states, strict=True):
            kept.add(time, system.logits(state), system.loss(state))
        return kept.trajectory(system.logits(states[-1]), None, **labels, extra=system.extra(states))

    def record(grid, states):
        labels = {"kind": "gradient_flow", "parameters": parameters, "query_tokens": query_tokens}
        if system.reduction != "none" and is_large(system.bags, system.orbits.start, len(grid)):
            trajectory = record_large(grid, states, labels)
            trajectory.dataset.attrs["reduction"] = system.reduction
            return trajectory
        layers = [system.layer(state) for state in states]
        velocity = np.stack([system.velocity(state) for state in states])
        attributes = {"long_name": "rate of change of the attention logit", "units": "1 / SGD step"}
        trajectory = assemble(
            system.bags,
            grid,
            layers,
            **labels,
            extra={"z_velocity": (("time", "query", "token"), velocity, attributes), **system.extra(states)},
        )
        trajectory.dataset.attrs["reduction"] = system.reduction
        return trajectory

    def fail(reason, s, state, states):
        layer = system.layer(np.ascontiguousarray(state))
        time = float(clock.time(s))
        largest = max(np.abs(layer.Z).max(), np.abs(layer.Y).max())
        raise IntegrationError(
            f"the gradient flow ({parameters['decoder']}) stopped after t = {time:g} of {clock.end:g} SGD steps, where "
            f"the largest logit is {largest:.3g}: {reason}. Try, in this order: smaller learning rates (eta_y = "
            f"{parameters['eta_y']:g}, eta_z = {parameters['eta_z']:g}), time_scale='log', a larger rtol and atol, "
            f"or method='Radau'",
            time,
            layer,
            record(times[: len(states)], states) if states else None,
        )

    # A trial step may overshoot into overflow or nan; the integrator then steps back.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # An explicit method halves its step for ever on a start that is not finite.
        if not np.isfinite(system.derivative(system.initial)).all():
            fail("the derivative is not finite at the start", 0.0, system.initial, [])
        options = {"rtol": parameters["rtol"], "atol": parameters["atol"]}
        steps = _Steps(parameters["method"], right_hand_side, end, system.initial, options)
        grid = np.clip(clock.variable(times), 0.0, end)
        states = []
        while len(states) < len(grid):
            reason = steps.advance()
            if reason:
                fail(reason, steps.s, steps.state, states)
            due = grid[len(states) : np.searchsorted(grid, steps.s, side="right")]
            if due.size:
                states.extend(np.ascontiguousarray(steps.interpolate(due).T))
    return record(times, states)
