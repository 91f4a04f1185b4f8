"""Gradient flow: training in the limit of small learning rates, as an ordinary differential equation."""

from __future__ import annotations

import numpy as np
import scipy  # which imports its integrators, a third of a second, when they are first used

from dynamics import checks, kernels, reduced
from dynamics.bags import Bags
from dynamics.checks import read_only
from dynamics.layer import RATES, Layer, Problem, check_objective, optional_rates
from dynamics.progress import Progress
from dynamics.trajectory import Trajectory, assemble

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

    Returns
    -------
    Trajectory
        Its dataset also holds ``z_velocity(time, query, token)`` and, for "theory", ``h(time, next_token)``.

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
    system = {"full": _Full, "modified": _Modified, "theory": _Theory}[decoder](
        bags, layer, init, parameters, objective
    )
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


class _Full:
    """State: the weights of the layer, one array after the other."""

    def __init__(self, bags, layer, init, parameters, objective):
        self.bags = bags
        self.problem = Problem(bags, layer, **objective)
        self.like = layer
        arrays = layer.weights
        self.shapes = [array.shape for array in arrays]
        self.bounds = np.cumsum([0] + [array.size for array in arrays])
        self.rates = np.repeat([parameters.get(name, 0.0) for name in RATES], np.diff(self.bounds))
        self.initial = np.concatenate([array.ravel() for array in arrays]).astype(np.float64)

    def split(self, state):
        return [
            state[lo:hi].reshape(shape)
            for lo, hi, shape in zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        ]

    def weights(self, state):
        """The state in the form of `Layer.weights`."""
        return tuple(read_only(array) for array in self.split(state))

    def slopes(self, out):
        """Arrays for the gradient of each weight, in ``out``; of Z and V beside it if they follow from an embedding."""
        arrays = self.split(out)
        if self.like.embedding is not None:
            arrays[0], _, arrays[2] = self.problem.zeros()[:3]
        return tuple(arrays)

    def layer(self, state):
        """The layer at a state."""
        return self.like.moved(self.weights(state))

    def derivative(self, state):
        out = np.zeros_like(state)
        self.problem.loss_and_gradient(self.weights(state), self.slopes(out))
        out *= self.rates
        return out

    def velocity(self, state):
        """dZ/dt."""
        slopes = self.split(self.derivative(state))
        if self.like.embedding is None:
            return slopes[0]
        vectors = self.like.embedding.vectors
        keys, queries, d_keys, d_queries = (vectors @ w.T for w in (*self.weights(state)[4:6], *slopes[4:6]))
        return d_queries @ keys.T + queries @ d_keys.T

    def extra(self, states):
        """Variables of the trajectory beside those that every simulator records."""
        return {}


class _Features:
    """The features f_n at given attention logits, and the inverse of their Gram matrix, I - E' = (F^T F)^{-1}."""

    def __init__(self, bags: Bags, Z: np.ndarray):
        self.bags = bags
        self.values = np.empty(bags.token.size)
        kernels.attention(bags.query, bags.indptr, bags.token, bags.count, Z, self.values)
        norms = np.sqrt(np.add.reduceat(self.values**2, bags.indptr[:-1]))
        self.values /= np.repeat(norms, np.diff(bags.indptr))
        self.gram = np.empty((len(bags), len(bags)))
        reduced.gram(bags.indptr, bags.token, self.values, np.zeros(bags.n_tokens), self.gram)

    def combine(self, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Add F (I - E') ``right`` to ``out``; nan where F^T F is singular, so that the integrator steps back."""
        try:
            solved = np.linalg.solve(self.gram, right)
        except np.linalg.LinAlgError:
            solved = np.full_like(right, np.nan)
        reduced.add_outer(self.bags.indptr, self.bags.token, self.values, solved, out)
        return out


def _require_independent_features(bags: Bags, layer: Layer, decoder: str) -> None:
    if layer.V is not None or layer.hidden is not None or layer.embedding is not None:
        raise checks.reject("init", f"consist of Z and Y for decoder={decoder!r}", repr(layer))
    smallest = np.linalg.eigvalsh(_Features(bags, layer.Z).gram)[0]
    if smallest < 1e-12:
        raise checks.reject(
            "data",
            f"have linearly independent features f_n for decoder={decoder!r}, which inverts F^T F",
            f"a smallest eigenvalue of {smallest:.1e}",
        )


def _require_objective(objective, decoder: str) -> None:
    if objective["criterion"] != "cross-entropy" or objective["contrast"] is not None:
        name = "criterion" if objective["contrast"] is None else "contrast"
        raise checks.reject(name, f"be left out for decoder={decoder!r}", objective[name])


class _Modified(_Full):
    """As _Full, with the decoder gradient of Lemma 3."""

    def __init__(self, bags, layer, init, parameters, objective):
        super().__init__(bags, layer, init, parameters, objective)
        _require_objective(objective, "modified")
        _require_independent_features(bags, layer, "modified")

    def derivative(self, state):
        out = np.zeros_like(state)
        weights, slopes = self.weights(state), self.slopes(out)
        residual = np.empty((len(self.bags), self.like.multiplicity.size))
        self.problem.loss_and_gradient(weights, slopes, residual)
        _Features(self.bags, weights[0]).combine(self.bags.weight[:, None] * residual, slopes[1])
        out *= self.rates
        return out


class _Theory:
    """State: Z, then x_n = M h_n for each bag, which is of order one at any M and so suits an absolute tolerance."""

    def __init__(self, bags, layer, init, parameters, objective):
        if not bags.hard:
            raise checks.reject("data", "have one next token a bag for decoder='theory'", "distributions")
        _require_objective(objective, "theory")
        _require_independent_features(bags, layer, "theory")
        self.bags = bags
        self.vocab_size = layer.vocab_size
        self.multiplicity = layer.multiplicity
        self.eta_y, self.eta_z = parameters["eta_y"], parameters["eta_z"]
        self.shape, self.size = layer.Z.shape, layer.Z.size
        if isinstance(init, Trajectory) and "h" in init.dataset:
            scaled = init.dataset["h"].values[-1] * self.vocab_size
            if scaled.size != len(bags):
                raise checks.reject("init", f"have h for each of {len(bags)} bags", scaled.size)
        elif (layer.Y != 0).any():
            raise checks.reject("init", "have Y = 0 for decoder='theory', where Y follows from h", repr(layer))
        else:
            scaled = np.zeros(len(bags))
        self.initial = np.concatenate([layer.Z.ravel(), scaled]).astype(np.float64)

    def split(self, state):
        return state[: self.size].reshape(self.shape), state[self.size :]

    def derivative(self, state):
        bags = self.bags
        Z, x = (read_only(part) for part in self.split(state))
        features = _Features(bags, Z)
        inner = np.empty((len(bags), len(bags)))
        reduced.theory_decoder(x, bags.target, float(self.vocab_size), inner)
        backpropagated = features.combine(inner, np.zeros((self.shape[1], len(bags))))
        out = np.zeros_like(state)
        dZ, dx = self.split(out)
        # (10), Lemma 1 in bag form: z' = f * (g - f (f . g)), where g_n is column n of what was propagated back.
        f, size = features.values, np.diff(bags.indptr)
        g = backpropagated[bags.token, np.repeat(np.arange(len(bags)), size)]
        inner = np.repeat(np.add.reduceat(f * g, bags.indptr[:-1]), size)
        at = np.repeat(bags.query, size), bags.token
        np.add.at(dZ, at, self.eta_z * np.repeat(bags.weight, size) * f * (g - f * inner))
        with np.errstate(over="ignore"):  # a trial step may overshoot; 1 / inf is then the right limit
            dx[:] = bags.weight * self.vocab_size * self.eta_y / (self.vocab_size - 1 + np.exp(x))
        return out

    def layer(self, state):
        """The layer at a state, with Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5)."""
        Z, x = (read_only(part) for part in self.split(state))
        W = np.repeat(-x[:, None] / self.vocab_size, self.multiplicity.size, axis=1)
        W[np.arange(x.size), self.bags.target] += x
        Y = _Features(self.bags, Z).combine(W, np.zeros((self.shape[1], self.multiplicity.size)))
        return Layer(Z, Y, None, self.multiplicity)

    def velocity(self, state):
        """dZ/dt."""
        return self.split(self.derivative(state))[0]

    def extra(self, states):
        """h of each class over time."""
        h = np.stack([self.split(state)[1] for state in states]) / self.vocab_size
        attributes = {"long_name": "h of each class (44)", "units": "1"}
        return {"h": (("time", "bag"), h, attributes)}


class _Steps:
    """The steps of a method of `scipy.integrate`, which reports why it cannot go on.

    `scipy.integrate.solve_ivp` would return no state at all then, and would not notice that LSODA steps on the spot.
    """

    _IDLE = 100

    def __init__(self, method: str, right_hand_side, end: float, initial: np.ndarray, options):
        self.s, self.state = 0.0, initial
        self._make = lambda: getattr(scipy.integrate, method)(right_hand_side, 0.0, initial, end, **options)
        self._solver = None

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
        return system.derivative(state) * clock.rate(s)

    def record(grid, states):
        layers = [system.layer(state) for state in states]
        velocity = np.stack([system.velocity(state) for state in states])
        attributes = {"long_name": "rate of change of the attention logit", "units": "1 / SGD step"}
        return assemble(
            system.bags,
            grid,
            layers,
            kind="gradient_flow",
            parameters=parameters,
            query_tokens=query_tokens,
            extra={"z_velocity": (("time", "query", "token"), velocity, attributes), **system.extra(states)},
        )

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
