"""Stochastic gradient descent on the reparameterised matrices: discrete steps on finite sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from dynamics import checks, kernels
from dynamics.bags import Bags
from dynamics.layer import Layer, read_only
from dynamics.progress import Progress
from dynamics.trajectory import Trajectory, assemble

OPTIMIZERS = ("sgd", "adam")
DTYPES = {"float64": np.float64, "float32": np.float32}
# A call into the compiled loop cannot be interrupted, so it takes at most this many steps.
_STEPS_A_CALL = 500
# Columns of Y are padded to a multiple of this, with multiplicity 0: compilers unroll a vectorised loop so far, and
# what is left over runs entry by entry.
_COLUMNS = 32


class DivergenceError(RuntimeError):
    """The loss stopped being finite.

    Attributes
    ----------
    step : int
        Number of the step (from 0) whose loss is not finite.
    trajectory : Trajectory
        What was recorded before.
    """

    def __init__(self, message: str, step: int, trajectory: Trajectory):
        super().__init__(message)
        self.step = step
        self.trajectory = trajectory


def sgd(
    data,
    *,
    eta_y,
    eta_z,
    steps,
    batch_size=128,
    length=128,
    momentum=0.9,
    optimizer="sgd",
    init="zero",
    seed=0,
    record_every=1,
    dtype="float64",
    progress=False,
    eta_v=None,
    position_bias=0.0,
) -> Trajectory:
    r"""Train the layer by mini-batch gradient steps on the objective J of (2).

    Each step draws ``batch_size`` sequences: a class by its weight, then ``length - 1`` independent contextual tokens
    from its probabilities (Tian et al. 2023, arXiv 2305.16380, Section 3.2); or, from a finite data set of bags,
    ``batch_size`` of them by their weights. The gradient is that of
    Lemma 1 (3), averaged over the batch, by the kernel that `gradient_flow` uses. "sgd" has the velocity
    ``v <- momentum v + gradient`` and the step ``eta v``; "adam" (Kingma and Ba 2015) has beta = (0.9, 0.999),
    epsilon = 1e-8 and bias correction, both as the usual deep-learning libraries define them.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
        Bags are the sequences themselves; a population gives the probabilities that sequences are drawn from.
    eta_y, eta_z : float
        Learning rates per step, positive.
    steps : int
        Number of steps.
    batch_size : int or None
        Bags a step; None takes all of ``data`` at each step, without drawing.
    length : int or None
        T of each sequence, query included. None is the limit T -> infinity, each bag of the population as it is. Bags
        given as ``data`` are used as they are and must not be longer.
    momentum : float
        In [0, 1); not used by "adam".
    optimizer : "sgd" or "adam"
    init : "zero", "uniform" or Layer
        "zero": Y = Z = 0, with one column of Y for all next tokens that never occur. "uniform": every entry of Z and Y
        uniform in +-1/sqrt(M).
    seed : int or numpy.random.SeedSequence
        Same seed, same result, whatever runs beside it.
    record_every : int
        Steps between recorded states; the first and the last state always are.
    dtype : "float64" or "float32"
        Precision of the state and the gradient.
    progress : bool
        Show progress on standard error.
    eta_v : float, optional
        Learning rate of the value matrix, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    position_bias : float
        Slope b >= 0 of a linear bias (Section 7 of the paper): the token at distance j = 0, 1, .. before the last
        contextual one has b j subtracted from its attention logit.

    Returns
    -------
    Trajectory
        ``time`` counts steps; ``loss`` and ``attention`` are those of the population, ``batch_loss(step)`` is the loss
        of each mini-batch before its step.

    Raises
    ------
    ValueError
        If an argument is invalid.
    DivergenceError
        If the loss stops being finite; it keeps what was recorded.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("data", "progress")}
    run = _Run(data, **arguments)
    with Progress(f"{optimizer}", enabled=progress) as report:
        return run.go(report).trajectory()


@dataclass(frozen=True)
class Outcome:
    """The end of a run, without the labels of a `Trajectory`: what a sweep of thousands of runs keeps.

    Attributes
    ----------
    layer : Layer
        The last state.
    batch_loss : (steps,) array
        The loss of each mini-batch before its step.
    bags : Bags
        The population.
    """

    layer: Layer
    batch_loss: np.ndarray
    bags: Bags


def sgd_many(
    runs: Iterable[tuple[object, dict]],
    *,
    observe: Callable[[Outcome], object] | None = None,
    threads=None,
    progress=False,
) -> list:
    """Many runs of `sgd` at once, in threads of this process.

    Parameters
    ----------
    runs : iterable of (data, arguments)
        ``arguments`` are the keyword arguments of `sgd`, ``seed`` among them. Results do not depend on ``threads`` or
        on what else is in the list.
    observe : callable, optional
        What to keep of a run's `Outcome`. Default: the `Outcome`.
    threads : int, optional
        Default: the number of cores.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    list
        One result a run, in order.
    """
    runs = list(runs)
    threads = os.cpu_count() if threads is None else checks.integer("threads", threads, minimum=1)
    sources = {}
    prepared = []
    for data, arguments in runs:
        source = sources.setdefault(id(data), data if isinstance(data, _Source) else _Source(data))
        prepared.append((source, {"record_every": arguments.get("steps", 1), **arguments}))

    def one(task):
        source, arguments = task
        outcome = _Run(source, **_DEFAULTS | arguments).go(None).outcome()
        return outcome if observe is None else observe(outcome)

    results = []
    with Progress("sgd", enabled=progress) as report, ThreadPoolExecutor(threads) as pool:
        try:
            for result in pool.map(one, prepared):
                results.append(result)
                report.update(len(results) / len(runs), f"run {len(results)} of {len(runs)}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


_DEFAULTS = {name: value for name, value in sgd.__kwdefaults__.items() if name != "progress"}


class _Source:
    """Data in the form that the sampling kernel takes, shared by all runs on it."""

    def __init__(self, data):
        self.draws_tokens = hasattr(data, "population")
        self.bags = data.population() if self.draws_tokens else data
        if not isinstance(self.bags, Bags):
            raise checks.reject("data", "be Bags or offer population()", type(data).__name__)
        self.query_tokens = getattr(data, "query_tokens", None)
        bags = self.bags
        self.target = bags.target if bags.hard else read_only(np.full(len(bags), -1))
        self.soft = np.empty((len(bags), 0)) if bags.hard else bags.target
        self.token_tables = _alias_tables(bags.indptr, bags.count)
        self.bag_tables = _alias_tables(read_only(np.array([0, len(bags)])), bags.weight)

    def positions(self, batch_size: int | None, length: int | None, position_bias: float) -> int:
        """How many tokens to draw for each sequence; 0 takes the bags as they are."""
        if not self.draws_tokens:
            longest = np.add.reduceat(self.bags.count, self.bags.indptr[:-1]).max()
            if length is not None and longest > (length - 1) * (1 + 1e-9):
                raise checks.reject("length", f"hold the query and the {longest:g} tokens of the longest bag", length)
        elif batch_size is None and length is not None:
            raise checks.reject("length", "be None when batch_size is None, which takes the whole population", length)
        elif length is not None:
            return length - 1
        if position_bias > 0:
            raise checks.reject(
                "position_bias", "be 0 without drawn sequences, for bags have no positions", position_bias
            )
        return 0


def _alias_tables(indptr, weight) -> tuple[np.ndarray, np.ndarray]:
    threshold, choice = np.empty(weight.size, dtype=np.uint64), np.empty((weight.size, 2), dtype=np.uint64)
    kernels.alias_tables(indptr, weight, threshold, choice)
    return threshold, choice


def _check(*, steps, batch_size, length, momentum, optimizer, dtype, eta_y, eta_z, position_bias, record_every) -> dict:
    """The arguments of a run, checked."""
    momentum = checks.non_negative("momentum", momentum)
    if momentum >= 1:
        raise checks.reject("momentum", "be below 1", momentum)
    parameters = {
        "eta_y": checks.positive("eta_y", eta_y),
        "eta_z": checks.positive("eta_z", eta_z),
        "steps": checks.integer("steps", steps, minimum=1),
        "batch_size": None if batch_size is None else checks.integer("batch_size", batch_size, minimum=1),
        "length": None if length is None else checks.integer("length", length, minimum=2),
        "momentum": momentum,
        "optimizer": checks.one_of("optimizer", optimizer, OPTIMIZERS),
        "record_every": checks.integer("record_every", record_every, minimum=1),
        "dtype": checks.one_of("dtype", dtype, DTYPES),
        "position_bias": checks.non_negative("position_bias", position_bias),
    }
    return parameters


class _Run:
    """One run: its buffers, its state and what it recorded."""

    def __init__(self, data, *, init, seed, eta_v, **arguments):
        self.source = data if isinstance(data, _Source) else _Source(data)
        self.parameters = _check(**arguments)
        self.steps, self.record_every = self.parameters["steps"], self.parameters["record_every"]
        self.dtype = DTYPES[self.parameters["dtype"]]
        start_seed, draw_seed = spawn(seed)
        layer = self._start(init, np.random.default_rng(start_seed))
        layer.check_fits(self.source.bags, name="data")
        queries = self.source.query_tokens
        if queries is not None and len(queries) != layer.Z.shape[0]:
            raise checks.reject("init", f"have {len(queries)} rows of Z, one a query token", layer.Z.shape[0])
        self.parameters["init"] = init if isinstance(init, str) else "layer"
        rates = [self.parameters["eta_z"], self.parameters["eta_y"], 0.0]
        if layer.V is not None:
            rates[2] = self.parameters["eta_y"] if eta_v is None else checks.non_negative("eta_v", eta_v)
            self.parameters["eta_v"] = rates[2]
        elif eta_v is not None:
            raise checks.reject("eta_v", "be None unless `init` has a value matrix", eta_v)
        self.rates = tuple(
            self._cast(name, rate) for name, rate in zip(("eta_z", "eta_y", "eta_v"), rates, strict=True)
        )
        self.random = draw_seed.generate_state(4, np.uint64)
        self.multiplicity = layer.multiplicity
        padding = -layer.Y.shape[1] % _COLUMNS
        self.mass = np.pad(layer.multiplicity, (0, padding))
        arrays = (layer.Z, np.pad(layer.Y, ((0, 0), (0, padding))), layer.value_matrix)
        self.state = [self._cast("init", array) for array in arrays]
        positions = self.source.positions(
            *(self.parameters[name] for name in ("batch_size", "length", "position_bias"))
        )
        self.position_weight = np.exp(-self.parameters["position_bias"] * np.arange(positions)).astype(self.dtype)
        self._allocate(self.parameters["batch_size"], positions)
        self.times, self.snapshots = [0], [self._snapshot()]
        self.losses = np.empty(self.steps, dtype=self.dtype)

    def _cast(self, name, value):
        """A rate or a new array in the precision of the run."""
        with np.errstate(over="ignore"):
            cast = np.array(value, dtype=self.dtype)[()]
        if not np.isfinite(cast).all() or (np.ndim(value) == 0 and value > 0 and cast == 0):
            raise checks.reject(name, f"be in the range of {self.parameters['dtype']}", np.max(np.abs(value)))
        return cast

    def _start(self, init, rng) -> Layer:
        bags = self.source.bags
        if isinstance(init, Layer):
            return init
        if not isinstance(init, str) or init not in ("zero", "uniform"):
            raise checks.reject("init", "be 'zero', 'uniform' or a Layer", repr(init))
        if init == "zero":
            return Layer.zeros(bags)
        bound = bags.vocab_size**-0.5
        Z = rng.uniform(-bound, bound, size=(bags.n_queries, bags.n_tokens))
        return Layer(Z, rng.uniform(-bound, bound, size=(bags.n_tokens, bags.vocab_size)))

    def _allocate(self, batch_size, positions):
        source, bags, dtype = self.source, self.source.bags, self.dtype
        soft = source.soft.astype(dtype)
        count = bags.count.astype(dtype)
        none = (np.empty(0, dtype=np.uint64), np.empty((0, 2), dtype=np.uint64))
        if batch_size is None:
            self.tables = (*none, *none)
            self.weight = bags.weight.astype(dtype)
            batch = [np.array(array) for array in (bags.query, source.target, soft, bags.indptr, bags.token, count)]
            workspace = np.empty((2, 0), dtype)
        else:
            self.tables = (*source.bag_tables, *source.token_tables)
            self.weight = np.full(batch_size, 1 / batch_size, dtype)
            longest = int(np.diff(bags.indptr).max())
            entries = 1 + batch_size * min(longest, positions or longest)  # 1 of slack
            index = np.zeros(batch_size, dtype=np.int64)
            batch = [
                index,
                index.copy(),
                np.empty((batch_size, soft.shape[1]), dtype),
                np.zeros(batch_size + 1, dtype=np.int64),
            ]
            batch += [np.empty(entries, dtype=np.int64), np.empty(entries, dtype)]
            workspace = np.empty((2, longest), dtype)
        self.batch = (*batch, workspace)
        self.data = (bags.query, source.target, soft, bags.indptr, bags.token, count)
        self.gradient = tuple(np.zeros_like(array) for array in self.state)
        self.first, self.second = (tuple(np.zeros(array.size, dtype) for array in self.state) for _ in range(2))

    def _arrays(self):
        """Z, Y without padding, and V."""
        Z, Y, V = self.state
        return Z, Y[:, : self.multiplicity.size], V

    def _snapshot(self):
        arrays = (read_only(np.array(array, dtype=np.float64, order="C")) for array in self._arrays())
        return (*arrays, self.multiplicity)

    def go(self, report: Progress | None) -> _Run:
        """Take all steps."""
        adam = self.parameters["optimizer"] == "adam"
        done = 0
        while done < self.steps:
            until = min(done + self.record_every - done % self.record_every, done + _STEPS_A_CALL, self.steps)
            losses = self.losses[done:until]
            finite = kernels.sgd_steps(
                self.random,
                self.data,
                self.tables,
                self.position_weight,
                self.batch,
                self.weight,
                (*self.state, self.mass),
                self.gradient,
                self.first,
                self.second,
                self.rates,
                self.dtype(self.parameters["momentum"]),
                adam,
                done,
                losses,
            )
            if finite < losses.size:
                self._diverge(done + finite)
            done = until
            # The loss may overlook it for a while: tokens that are not drawn, or a logit of -inf.
            if not all(np.isfinite(array).all() for array in self._arrays()):
                self._diverge(done)
            if done % self.record_every == 0 or done == self.steps:
                self.times.append(done)
                self.snapshots.append(self._snapshot())
            if report is not None:
                report.update(done / self.steps, f"step {done} of {self.steps}, loss {losses[-1]:.4g}")
        return self

    def _diverge(self, step):
        rates = ", ".join(f"{name} = {self.parameters[name]:g}" for name in ("eta_y", "eta_z"))
        raise DivergenceError(
            f"the loss is no longer finite at step {step} of {self.steps} ({rates}, {self.parameters['optimizer']}, "
            f"{self.parameters['dtype']}). Try, in this order: smaller learning rates, a smaller momentum, "
            f"dtype='float64'",
            step,
            self.trajectory(),
        )

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        known = np.arange(self.times[-1])
        attributes = {"long_name": "loss of the mini-batch before the step", "units": "nats"}
        return assemble(
            self.source.bags,
            self.times,
            self.snapshots,
            kind="sgd",
            parameters=self.parameters,
            query_tokens=self.source.query_tokens,
            extra={"batch_loss": (("step",), self.losses[known].astype(np.float64), attributes)},
        )

    def outcome(self) -> Outcome:
        """The end of the run."""
        Z, Y, V = self._arrays()
        layer = Layer(Z, Y, V if V.shape[0] else None, self.multiplicity)
        return Outcome(layer, self.losses, self.source.bags)


def spawn(seed, n: int = 2) -> Sequence[np.random.SeedSequence]:
    """``n`` independent seeds from the argument ``seed`` of a run, the same ones each time."""
    if isinstance(seed, np.random.SeedSequence):
        # Spawning would count up the caller's sequence: the same seed given twice must mean the same run.
        seed = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    else:
        seed = np.random.SeedSequence(checks.integer("seed", seed, minimum=0))
    return seed.spawn(n)
