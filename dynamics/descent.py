"""Stochastic gradient descent on the reparameterised matrices: discrete steps on finite sequences."""

from __future__ import annotations

import inspect
import math
import mmap
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from dynamics._model import kernels
from dynamics._sgd import sampling
from dynamics.bags import Bags
from dynamics.data.sequence_classes import SequenceClasses
from dynamics.layer import RATES, Layer, check_objective, embed, embed_back, optional_rates
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.progress import Progress
from dynamics.trajectory import LargeRecord, Trajectory, assemble, is_large

OPTIMIZERS = ("sgd", "adam")
DTYPES = {"float64": np.float64, "float32": np.float32}
# Steps in a call of the kernels: few enough to be interrupted, and for their batches to stay in the processor's cache.
_STEPS_A_CALL = 64
_ENTRIES_A_CALL = 2**16
# Columns of Y are padded to a multiple of this, with multiplicity 0: compilers unroll a vectorised loop so far, and
# what is left over runs entry by entry.
_COLUMNS = 32
_PADDED = 1024
# Bytes of a matrix that is not looked through as a whole while it is trained.
_LARGE = 2**24
# Entries of a row of Z up to which a step takes it as a whole.
_ROW = 2**12
# Rows of a start that are copied at once.
_ROWS_A_COPY = 256
# Entries of large matrices that are looked through at once.
_NUMBERS_A_CHECK = 2**19
# Bytes of the matrices that init="uniform" may fill.
_FULL = 2**32


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
    eta_hidden=None,
    criterion="cross-entropy",
    contrast=None,
    contrast_weight=0.0,
    evaluate=None,
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
    eta_hidden : float, optional
        Learning rate of the hidden layer, if ``init`` has one; 0 keeps it fixed. Default: ``eta_y``.
    criterion : "cross-entropy" or "squared"
        What is descended on: nats (2), or ``sum_c (u_c - target_c)^2`` of the logits u (Wen et al. 2023, (5)).
    contrast : Bags, optional
        Insertions for the regulariser ``contrast_weight E ||u(x) - u(x + insertion)||^2 / M`` (Wen et al. 2023, (22)):
        each bag of a batch comes with one, drawn by its weight. `DyckLanguage.nested_pairs` makes them.
    contrast_weight : float
    evaluate : Bags, optional
        What ``loss`` and ``attention`` are measured on at each record. Default: the whole population or data, which
        takes long where these are large.

    Returns
    -------
    Trajectory
        ``time`` counts steps; ``loss`` and ``attention`` are those of the population, ``batch_loss(step)`` is the loss
        of each mini-batch before its step.

    A step costs (tokens of its sequences) x (columns of Y), and memory is taken for rows of Z and Y when they
    first occur. From 16 MiB a matrix on, recording changes results within round-off.

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

    Raises
    ------
    ValueError
        Before the first run, if an argument is unknown or invalid.
    DivergenceError
        If a loss stops being finite.
    """
    threads = os.cpu_count() if threads is None else checks.integer("threads", threads, minimum=1)
    prepared = []
    for data, arguments in runs:
        arguments = complete({"record_every": arguments.get("steps", 1), **arguments}, name="runs")
        prepared.append((_source(data), arguments))

    def one(task):
        source, arguments = task
        outcome = _Run(source, **arguments, recording=False).go(None).outcome()
        return outcome if observe is None else observe(outcome)

    results = []
    with Progress("sgd", enabled=progress) as report, ThreadPoolExecutor(threads) as pool:
        try:
            for result in pool.map(one, prepared):
                results.append(result)
                report.update(len(results) / len(prepared), f"run {len(results)} of {len(prepared)}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


_REQUIRED = ("eta_y", "eta_z", "steps")
_DEFAULTS = {name: value for name, value in sgd.__kwdefaults__.items() if name != "progress"}
ARGUMENTS = (*_REQUIRED, *_DEFAULTS)


def complete(arguments: Mapping[str, object], *, name: str = "arguments") -> dict[str, object]:
    """Keyword arguments of `sgd`, checked as far as they are numbers or words, with the defaults filled in.

    Raises
    ------
    ValueError
        If one is unknown, missing or invalid; ``name`` is what the message calls them.
    """
    for argument in arguments:
        if argument not in ARGUMENTS:
            raise checks.reject(name, f"have arguments of `sgd` ({', '.join(ARGUMENTS)})", repr(argument))
    for argument in _REQUIRED:
        if argument not in arguments:
            raise checks.reject(name, f"have the arguments {', '.join(_REQUIRED)}", f"none called {argument!r}")
    whole = _DEFAULTS | dict(arguments)
    return whole | _check(**{key: whole[key] for key in _CHECKED})


_sources: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _source(data) -> sampling.Source:
    """`sampling.Source` of data, made once for data that cannot change."""
    if isinstance(data, sampling.Source):
        return data
    if not isinstance(data, (Bags, SequenceClasses)):
        return sampling.Source(data)
    if data not in _sources:
        _sources[data] = sampling.Source(data)
    return _sources[data]


def _check(*, steps, batch_size, length, momentum, optimizer, dtype, eta_y, eta_z, position_bias, record_every) -> dict:
    """The arguments of a run that do not depend on its layer, checked."""
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


_CHECKED = tuple(inspect.signature(_check).parameters)


def _zeros(shape, dtype) -> np.ndarray:
    """Zeros that take memory where they are written to."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= _LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, dtype)
    # Huge pages hold many rows, and would take them all with the first.
    # Shared memory, the default, is taken by reading, too.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.ndarray(shape, dtype, memory)


class _Run:
    """One run: its buffers, its state and what it recorded."""

    def __init__(
        self,
        data,
        *,
        init,
        seed,
        eta_v,
        eta_hidden,
        criterion,
        contrast,
        contrast_weight,
        evaluate,
        recording=True,
        **arguments,
    ):
        self.source, self.recording = _source(data), recording
        self.parameters = parameters = _check(**arguments)
        self.steps, self.record_every = parameters["steps"], parameters["record_every"]
        self.dtype = DTYPES[parameters["dtype"]]
        start_seed, draw_seed = spawn(seed)
        self.layer = layer = self._start(init, np.random.default_rng(start_seed))
        layer.check_fits(self.source.bags, name="data")
        if evaluate is not None:
            if not isinstance(evaluate, Bags):
                raise checks.reject("evaluate", "be Bags", type(evaluate).__name__)
            layer.check_fits(evaluate, name="evaluate")
        queries = self.source.query_tokens
        if queries is not None and len(queries) != layer.Z.shape[0]:
            raise checks.reject("init", f"have {len(queries)} rows of Z, one a query token", layer.Z.shape[0])
        parameters["init"] = init if isinstance(init, str) else "layer"
        parameters |= optional_rates(layer, parameters["eta_y"], eta_v, eta_hidden)
        objective = check_objective(layer, criterion, contrast, contrast_weight)
        parameters |= {name: value for name, value in objective.items() if name != "contrast"}
        self.rates = tuple(self._cast(name, parameters.get(name, 0.0)) for name in RATES)
        self.momentum = self.dtype(parameters["momentum"])
        self.random = draw_seed.generate_state(4, np.uint64)
        positions = self.source.positions(*(parameters[name] for name in ("batch_size", "length", "position_bias")))
        if positions and contrast is not None:
            raise checks.reject("contrast", "be left out where sequences are drawn from a population", contrast)
        self.position_weight = np.exp(-parameters["position_bias"] * np.arange(positions)).astype(self.dtype)
        self._place(layer, objective)
        self._allocate(parameters["batch_size"], positions, objective)
        records = 1 + -(-self.steps // self.record_every)
        evaluated = self.source.bags if evaluate is None else evaluate
        self.large_record = None
        if is_large(evaluated, layer, records):
            self.large_record = LargeRecord(evaluated, layer, criterion, self.dtype)
        self.evaluated, self.times, self.snapshots = evaluated, [], []
        self._record(0)
        self.losses = np.empty(self.steps, dtype=self.dtype)

    def _place(self, layer: Layer, objective):
        """The weights in the precision of the run, Y with padding, and what goes with them."""
        padding = -layer.Y.shape[1] % _COLUMNS if layer.Y.shape[1] < _PADDED else 0
        mass = np.pad(layer.multiplicity, (0, padding))
        shapes = [array.shape for array in layer.weights]
        shapes[1] = (shapes[1][0], shapes[1][1] + padding)

        def zeros():
            return tuple(_zeros(shape, self.dtype) for shape in shapes)

        self.trained, self.first, self.second = zeros(), zeros(), zeros()
        if self.parameters["init"] != "zero":
            for own, array in zip(self.trained, layer.weights, strict=True):
                for first in range(0, len(array), _ROWS_A_COPY):
                    rows = slice(first, first + _ROWS_A_COPY)
                    part = self._cast("init", array[rows])
                    np.copyto(own[rows, : array.shape[1]], part, where=part != 0)  # zeros not written take no memory
            self.trained[1][:, layer.Y.shape[1] :] = self.trained[1][:, :1]
        self.vectors = None if layer.embedding is None else self._cast("init", layer.embedding.vectors)
        self.state = (*self.trained[:4], mass)
        self.slopes = zeros()[:4] if self.parameters["optimizer"] == "adam" else self.first[:4]
        self.current, self.large = self.trained, max(array.nbytes for array in self.trained) > _LARGE
        # Single entries of Z are followed where its rows are long.
        sizes = [len(array) for array in self.trained[:4]]
        sizes[0] *= 1 if layer.Z.shape[1] <= _ROW else layer.Z.shape[1]
        self.last = tuple(np.zeros(size, dtype=np.int64) for size in sizes)
        squared, contrast = objective["criterion"] == "squared", objective["contrast"] is not None
        self.rule = (layer.center, self.dtype(layer.floor), squared, contrast)

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
        size = 8 * bags.n_tokens * (bags.n_queries + bags.vocab_size)
        if size > _FULL:
            rule = "be 'zero' or a Layer where 'uniform' would fill matrices of more than 4 GiB"
            raise checks.reject("init", rule, f"'uniform' with {size / 2**30:.1f} GiB")
        bound = bags.vocab_size**-0.5
        Z = rng.uniform(-bound, bound, size=(bags.n_queries, bags.n_tokens))
        return Layer(Z, rng.uniform(-bound, bound, size=(bags.n_tokens, bags.vocab_size)))

    def _allocate(self, batch_size, positions, objective):
        source, bags, dtype = self.source, self.source.bags, self.dtype
        soft = source.soft.astype(dtype)
        count = bags.count.astype(dtype)
        contrast = objective["contrast"]
        self.insertions = sampling.insertion_tables(contrast, dtype(objective["contrast_weight"]))
        self.data = (bags.query, source.target, soft, bags.indptr, bags.token, count)
        if batch_size is None:
            self.workspace = None
            alone = np.ones(len(bags), dtype=np.int64)
            batch = (bags.query, source.target, soft, bags.weight.astype(dtype), alone, bags.indptr, bags.token, count)
            if contrast is not None:
                batch = sampling.contrasted(batch, contrast, objective["contrast_weight"])
            self.groups = np.array([batch[0].size])
            self.batches = tuple(np.array(array)[None] for array in batch)
            return
        longest = int(np.diff(bags.indptr).max())
        each, extra = (1, 0) if contrast is None else (2, int(np.diff(contrast.indptr).max()))
        entries = batch_size * (longest + extra)
        steps = min(_STEPS_A_CALL, self.record_every, self.steps, 1 + _ENTRIES_A_CALL // entries)
        self.groups = np.zeros(steps, dtype=np.int64)
        query, target, size = np.zeros((3, steps, batch_size), dtype=np.int64)
        self.batches = (
            query,
            target,
            np.empty((steps, batch_size, soft.shape[1]), dtype),
            np.full((steps, each * batch_size), 1 / batch_size, dtype),
            size,
            np.zeros((steps, batch_size + 1), dtype=np.int64),
            np.empty((steps, entries), dtype=np.int64),
            np.empty((steps, each * entries), dtype),
        )
        drawn, tally = np.zeros(batch_size, dtype=np.int64), np.zeros(len(bags), dtype=np.int64)
        bits, tallies = np.empty(batch_size, dtype=np.uint64), np.empty((2, longest), dtype=np.int64)
        self.workspace = (drawn, tally, bits, tuple(tallies))

    def _take(self, done, until) -> int:
        """Take steps ``done`` to ``until``; returns how many had a finite loss."""
        groups, source = self.groups, self.source
        if self.workspace is not None:
            groups = groups[: until - done]
            tables = (source.bag_tables, source.token_tables, self.position_weight, self.insertions)
            sampling.draw_batches(self.random, self.data, *tables, self.workspace, self.batches, groups)
        losses, adam = self.losses[done:until], self.parameters["optimizer"] == "adam"
        if self.vectors is not None:
            return self._take_embedded(groups, adam, done, losses)
        fixed = (self.last, self.rule, self.rates[:4], self.momentum, adam)
        return kernels.sgd_steps(self.batches, groups, self.state, self.slopes, self._moments(), *fixed, done, losses)

    def _moments(self):
        return self.first[:4], self.second[:4]

    def _take_embedded(self, groups, adam, done, losses) -> int:
        """Like `kernels.sgd_steps`, where Z and V follow from an embedding."""
        nothing = np.empty((0, 0), self.dtype)
        for step in range(losses.size):
            _, Y, _, hidden, *inner = self.trained
            Y[:, self.layer.multiplicity.size :] = Y[:, :1]
            Z, V = embed(self.vectors, *inner)
            slopes = tuple(np.zeros_like(array) for array in (Z, Y, V, hidden))
            batch = tuple(array[min(step, len(array) - 1)] for array in self.batches)
            state = (Z, Y, V, hidden, self.state[-1])
            n_groups = groups[min(step, len(groups) - 1)]
            losses[step] = kernels.loss_and_gradient(batch, n_groups, state, self.rule, slopes, nothing, True)
            if not np.isfinite(losses[step]):
                return step
            slopes = (
                nothing,
                slopes[1],
                nothing,
                slopes[3],
                *embed_back(self.vectors, inner[0], inner[1], slopes[0], slopes[2]),
            )
            for weights, slope, *moments, rate in zip(
                self.trained, slopes, self.first, self.second, self.rates, strict=True
            ):
                if weights.size:
                    if not adam:
                        moments[0][:] = self.momentum * moments[0] + slope
                    flat = (array.ravel() for array in (weights, np.ascontiguousarray(slope), *moments))
                    kernels.ascend(*flat, rate, adam, done + step + 1)
        return losses.size

    def _catch_up(self, done):
        """Bring every row to step ``done``: in copies, so that recording changes no bit, unless they are large."""
        state, moments, slopes, last = self.state[:4], self._moments(), self.slopes, self.last
        adam = self.parameters["optimizer"] == "adam"
        if not self.large:
            state, first, second, slopes, last = (
                tuple(np.copy(array) for array in arrays) for arrays in (state, *moments, slopes, last)
            )
            moments, slopes = (first, second), slopes if adam else first
        state = (*state, self.state[-1])
        kernels.catch_up(state, slopes, moments, last, self.rates[:4], self.momentum, adam, done)
        self.current = (*state[:4], *self.trained[4:])

    def _arrays(self):
        """The weights at the last record, Y without padding."""
        Z, Y, *others = self.current
        columns = self.layer.multiplicity.size
        return Z, Y if Y.shape[1] == columns else Y[:, :columns], *others

    def _record(self, done):
        self.times.append(done)
        if self.large_record is not None:
            if self.recording:
                weights = self._arrays()
                self.large_record.add(done, weights[0], self.large_record.expected_loss(weights))
            return
        whole = [np.array(array, dtype=np.float64, order="C") for array in self._arrays()]
        self.snapshots.append(self.layer.moved(whole))

    def go(self, report: Progress | None) -> _Run:
        """Take all steps."""
        most = _STEPS_A_CALL if self.workspace is None else self.groups.size
        done = 0
        while done < self.steps:
            until = min(done + self.record_every - done % self.record_every, done + most, self.steps)
            finite = self._take(done, until)
            if finite < until - done:
                self._diverge(done + finite)
            done = until
            recording = done % self.record_every == 0 or done == self.steps
            if recording:
                self._catch_up(done)
            # The loss may overlook it for a while: tokens that are not drawn, a logit of -inf, or the last step.
            if not self._bounded(since=done - most):
                self._diverge(done)
            if recording:
                self._record(done)
            if report is not None:
                report.update(done / self.steps, f"step {done} of {self.steps}, loss {self.losses[done - 1]:.4g}")
        return self

    def _bounded(self, since: int) -> bool:
        """Whether the weights are finite and far from overflow: all, or of large ones the rows that moved."""
        limit = np.finfo(self.dtype).max / (4 * len(self.state[1]))
        for array, last in zip_longest(self.trained, self.last):
            if self.large and last is not None:
                moved = np.flatnonzero(last > since)
                by_row = array.reshape(max(1, last.size), -1)
                for part in np.array_split(moved, 1 + moved.size * by_row.shape[1] // _NUMBERS_A_CHECK):
                    if not np.abs(by_row[part]).max(initial=0) < limit:
                        return False
            elif not np.abs(array).max(initial=0) < limit:
                return False
        return True

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
        labels = {
            "kind": "sgd",
            "parameters": self.parameters,
            "query_tokens": self.source.query_tokens,
            "extra": {"batch_loss": (("step",), self.losses[known].astype(np.float64), attributes)},
        }
        if self.large_record is not None:
            return self.large_record.trajectory(*self._arrays()[:2], **labels)
        return assemble(self.evaluated, self.times, self.snapshots, **labels)

    def outcome(self) -> Outcome:
        """The end of the run."""
        weights = [read_only(array) for array in self._arrays()]  # which a layer takes without a copy
        return Outcome(self.layer.moved(weights), self.losses, self.source.bags)


def spawn(seed, n: int = 2) -> Sequence[np.random.SeedSequence]:
    """``n`` independent seeds from the argument ``seed`` of a run, the same ones each time."""
    if isinstance(seed, np.random.SeedSequence):
        # Spawning would count up the caller's sequence: the same seed given twice must mean the same run.
        seed = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    else:
        seed = np.random.SeedSequence(checks.integer("seed", seed, minimum=0))
    return seed.spawn(n)
