"""One run of stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NoReturn, cast

import numpy as np

from dynamics._assembly import LargeRecord, assemble, is_large, size_of_large
from dynamics._engine.sgd import steps as steps_of_sgd
from dynamics._engine.sgd.steps import LARGE, Memory, blank, bounded, copy_of
from dynamics._model.feed import SAMPLING, Feed, Sampling, Source, source_of
from dynamics._model.objective import CRITERIA, PLAIN, Objective, add_terms, placed
from dynamics._model.problem import View
from dynamics._model.weights import RATES, Weights
from dynamics.bags import Bags, Data
from dynamics.fields import modified
from dynamics.fields.steps import Step
from dynamics.fields.table import entry_of
from dynamics.layer import Layer, States, moved, optional_rates
from dynamics.optimizers import kernels as updates
from dynamics.optimizers.optimizer import Optimizer, as_optimizer, ascend
from dynamics.support import checks
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.errors import DivergenceError
from dynamics.support.progress import Progress
from dynamics.trajectory import Trajectory

_MOST_BITS = 4096  # of a seed: files hold its digits
DTYPES: dict[str, type[np.floating]] = {"float64": np.float64, "float32": np.float32}
# Columns of Y are padded to a multiple of this, with multiplicity 0: compilers unroll a vectorised loop so far, and
# what is left over runs entry by entry.
_COLUMNS = 32
_PADDED = 1024
# Entries of a row of Z up to which a step takes it as a whole.
_ROW = 2**12
# Rows of a start that are copied at once.
_ROWS_A_COPY = 256
# Bytes of the matrices that init="uniform" may fill.
_FULL = 2**32


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
    visits : (bags,) array or None
        With the modified decoder: what each bag's shares in the batches add up to. N_n where a batch is one bag.
    """

    layer: Layer
    batch_loss: np.ndarray
    bags: Bags
    visits: np.ndarray | None = None


def spawn(seed: int | np.random.SeedSequence, n: int = 2) -> Sequence[np.random.SeedSequence]:
    """``n`` independent seeds from the argument ``seed`` of a run, the same ones each time."""
    if isinstance(seed, np.random.SeedSequence):
        # Spawning would count up the caller's sequence: the same seed given twice must mean the same run.
        seed = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    else:
        given = checks.integer("seed", seed, minimum=0, maximum=None)
        if given.bit_length() > _MOST_BITS:
            raise checks.reject("seed", f"be below 2^{_MOST_BITS}", given)
        seed = np.random.SeedSequence(given)
    return seed.spawn(n)


_RULES: dict[str, checks.Check] = {
    "eta_y": checks.rate,
    "eta_z": checks.rate,
    "steps": partial(checks.integer, minimum=1),
    "record_every": partial(checks.integer, minimum=1),
    "dtype": partial(checks.one_of, options=DTYPES),
}


def checked(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Optimizer, Sampling, Step]:
    """The arguments that do not depend on the layer, as a trajectory records them, and in groups."""
    optimizer = as_optimizer(arguments["optimizer"], arguments["momentum"], "direction")
    values = checks.each(_RULES, arguments)
    sampling = Sampling(*(arguments[name] for name in SAMPLING))
    entry = entry_of(arguments["decoder"], "step")
    parameters = {
        "eta_y": values["eta_y"],
        "eta_z": values["eta_z"],
        "steps": values["steps"],
        "batch_size": sampling.batch_size,
        "length": sampling.length,
        **optimizer.parameters,
        "record_every": values["record_every"],
        "dtype": values["dtype"],
        "position_bias": sampling.position_bias,
        "decoder": arguments["decoder"],
        **entry.recorded,
    }
    if not sampling.replacement:
        parameters["replacement"] = False
    if DTYPES[values["dtype"]](optimizer.momentum) >= 1:
        raise checks.reject("momentum", f"be below 1 in {values['dtype']}", optimizer.momentum)
    return parameters, optimizer, sampling, cast(Step, entry.step)


def _start(init: str | Layer, bags: Bags, rng: np.random.Generator) -> Layer:
    """The layer that the argument ``init`` of `sgd` stands for."""
    if isinstance(init, Layer):
        return init
    if not isinstance(init, str) or init not in ("zero", "uniform"):
        raise checks.reject("init", "be 'zero', 'uniform' or a Layer", checks.brief(init))
    if init == "zero":
        return Layer.zeros(bags)
    size = 8 * bags.n_tokens * (bags.n_queries + bags.vocab_size)
    if size > _FULL:
        rule = "be 'zero' or a Layer where 'uniform' would fill matrices of more than 4 GiB"
        raise checks.reject("init", rule, f"'uniform' with {size / 2**30:.1f} GiB")
    # Memory for draws, the layer, three or four matrices of the optimizer, and copies of these matrices to record.
    checks.fits_in_memory("init", 9 * size, "start at 'uniform'")
    bound = bags.vocab_size**-0.5
    Z = rng.uniform(-bound, bound, size=(bags.n_queries, bags.n_tokens))
    return Layer(Z, rng.uniform(-bound, bound, size=(bags.n_tokens, bags.vocab_size)))


class SgdRun:
    """One run: its state and what it recorded. The arguments are those of `sgd`.

    Attributes
    ----------
    feed : Feed
        The batches that it learns from.
    weights : Weights
        The state, Y with padding.
    memory : Memory
    rule : Rule
    update : Update
    """

    def __init__(
        self,
        data: Data | Source,
        *,
        init: str | Layer,
        seed: int | np.random.SeedSequence,
        eta_v: float | None,
        eta_hidden: float | None,
        objective: Objective | None,
        evaluate: Bags | None,
        recording: bool = True,
        **arguments,
    ) -> None:
        self.source, self.recording = source_of(data), recording
        self.parameters, optimizer, sampling, self.step = checked(arguments)
        parameters = self.parameters
        self.steps, self.record_every = parameters["steps"], parameters["record_every"]
        self.dtype = np.dtype(DTYPES[parameters["dtype"]])
        self.objective = objective = checks.or_usual("objective", objective, PLAIN)
        self.optimizer = optimizer.over(self.steps)
        start_seed, draw_seed = spawn(seed)
        start = _start(init, self.source.bags, np.random.default_rng(start_seed))
        self.layer = layer = placed(objective, start, self.source.bags, self.source.query_tokens, "init")
        if evaluate is not None:
            if not isinstance(evaluate, Bags):
                raise checks.reject("evaluate", "be Bags", type(evaluate).__name__)
            layer.check_fits(evaluate, name="evaluate")
        parameters["init"] = init if isinstance(init, str) else "layer"
        parameters |= optional_rates(layer, parameters["eta_y"], eta_v, eta_hidden)
        parameters |= objective.parameters
        self.rates = tuple(self._cast(name, parameters.get(name, 0.0)) for name in RATES)
        self.evaluated = self.source.bags if evaluate is None else evaluate.named_like(self.source.bags)
        records = 1 + -(-self.steps // self.record_every)
        large = is_large(self.evaluated, layer, records)
        size = records * 8 * (layer.Z.size + layer.Y.size)
        if large:
            size = size_of_large(self.evaluated, layer.Z.shape[1], records)
        checks.fits_in_memory("steps", 8 * self.steps + size, "record losses and states")
        self.feed = Feed(
            self.source,
            sampling,
            objective,
            draw_seed.generate_state(4, np.uint64),
            steps=min(self.record_every, self.steps),
            multiplicity=layer.multiplicity,
            dtype=self.dtype,
        )
        self._place(layer, objective)
        if self.step.check is not None:
            self.step.check(self)
        self.large_record = LargeRecord(self.evaluated, layer, objective, self.dtype) if large else None
        self.visits = np.zeros(len(self.source.bags)) if self.step.visits else None
        self.visited: list[np.ndarray] = []
        self.times: list[int] = []
        self.snapshots: list[list[np.ndarray]] = []
        # An outcome is the end alone. `_diverge` wants what was recorded before, but has the start anyway.
        self.recorded = recording or self.record_every < self.steps
        self._record(0)
        self.losses = np.empty(self.steps, dtype=self.dtype)

    def _place(self, layer: Layer, objective: Objective) -> None:
        """The weights in the precision of the run, Y with padding, and what goes with them."""
        columns, update = layer.Y.shape[1], self.optimizer.rule
        self.update = update.kernel and update.kernel(self.dtype.type(self.parameters["momentum"]), self.rates[:4])
        self.view = View(layer, objective, self.dtype)
        self.plain = self.optimizer.plain and self.view.direct and not objective.terms
        # A system that a decoder solves would be solved for padding, too; and options would have to know of it.
        whole = self.step.rows
        padding = -columns % _COLUMNS if columns < _PADDED and whole and self.plain else 0
        shapes = [array.shape for array in layer.weights]
        shapes[1] = (shapes[1][0], columns + padding)
        size = sum(math.prod(shape) for shape in shapes) * self.dtype.itemsize
        checks.fits_in_memory("data", size, "hold every logit, which each step may move")
        self.weights, first, second = blank(shapes, self.dtype, 3)
        if self.parameters["init"] != "zero":
            for own, array in zip(self.weights, layer.weights, strict=True):
                for row in range(0, len(array), _ROWS_A_COPY):
                    rows = slice(row, row + _ROWS_A_COPY)
                    part = self._cast("init", array[rows])
                    np.copyto(own[rows, : array.shape[1]], part, where=part != 0)  # zeros not written take no memory
        if layer.embedding is not None:
            self._cast("init", layer.embedding.vectors)
        # Single entries of Z are followed where its rows are long.
        sizes = [len(array) for array in self.weights[:4]]
        sizes[0] *= 1 if layer.Z.shape[1] <= _ROW else layer.Z.shape[1]
        last = tuple(np.zeros(size, dtype=np.int64) for size in sizes)
        slopes = blank(shapes, self.dtype, 1)[0] if update.moments else first
        self.memory = Memory(slopes, first, second, last)
        # A step of the kernels touches only the rows of its tokens; others move every entry.
        self.by_rows = self.view.plain and self.plain and whole
        # The same arrays, which a step changes in place; read-only, as `gradient_flow` passes them, so that the kernel
        # compiles once.
        self.seen = Weights(*read_only_views(self.weights))
        self.current, self.large = self.weights, max(array.nbytes for array in self.weights) > LARGE
        mass = read_only(np.pad(layer.multiplicity, (0, padding)))
        self.rule = self.view.rule._replace(multiplicity=mass)

    def _cast(self, name: str, value: float | np.ndarray) -> Any:
        """A rate or a new array in the precision of the run."""
        with np.errstate(over="ignore"):
            cast = np.array(value, dtype=self.dtype)[()]
        if not np.isfinite(cast).all() or (np.ndim(value) == 0 and value > 0 and cast == 0):
            raise checks.reject(name, f"be in the range of {self.parameters['dtype']}", np.max(np.abs(value)))
        return cast

    @cached_property
    def _gradient(self) -> int:
        """Address of loss and gradient for arrays of this run's types, which stay what they are."""
        return steps_of_sgd.gradient_of(self.feed.batches, self.seen, self.rule, self.memory.slopes)

    def _take(self, done: int, until: int) -> int:
        """Take steps ``done`` to ``until``; returns how many had a finite loss."""
        losses = self.losses[done:until]
        if self.by_rows:
            groups = self.feed.draw(losses.size)
            fixed = (self.weights, self.rule, self.memory, self.update)
            return steps_of_sgd.sgd_steps(self._gradient, self.feed.batches, groups, *fixed, done, losses)
        shares = [None] * losses.size if self.visits is None else self.feed.shares(losses.size)
        for step, share in enumerate(shares):
            if self.visits is not None:
                self.visits += share
            if self._several is None:
                losses[step], slopes = self._slopes(share)
            else:
                losses[step] = self._several.take(share, done + step + 1)[0]
            if not np.isfinite(losses[step]):
                return step
            if self._several is None:
                self._ascend(slopes, done + step + 1)
        return losses.size

    @property
    def in_kernels(self) -> bool:
        """Whether steps are those that the decoder has in kernels of their own, which take several runs."""
        return self.step.several is not None and self.plain and self.view.plain and not self.rule.residual

    @cached_property
    def _several(self) -> modified.ModifiedSteps | None:
        """The steps where `in_kernels`, of this run alone."""
        if self.step.several is None or not self.in_kernels:
            return None
        memory = self.memory
        weights, *moments = (modified.stacked([each]) for each in (self.weights, memory.first, memory.second))
        return self.step.several(self.feed.data, weights, moments, rule=self.rule, update=self.update)

    def _ascend(self, slopes: Weights, step: int) -> None:
        """Move every entry along its gradient, as the optimiser does in the step of this number, from one."""
        moments = (self.memory.first, self.memory.second)
        if not self.optimizer.plain:
            mass = self.rule.multiplicity
            with np.errstate(over="ignore", invalid="ignore"):  # `go` looks at the result
                ascend(
                    self.optimizer, self.weights, slopes, moments, rates=self.rates, multiplicity=mass, step=step - 1
                )
            return
        parts = zip(self.weights, slopes, *moments, self.rates, strict=True)
        for array, slope, first, second, rate in parts:
            if array.size:
                flat = (own.ravel() for own in (array, np.ascontiguousarray(slope), first, second))
                updates.follow(self.update, *flat, rate, step)

    def _slopes(self, share: np.ndarray | None) -> tuple[float, Weights]:
        """Loss and direction on the next batch, or with this share of each bag."""
        weights = self.seen
        # Z and V always have gradients: those of an embedding follow from them.
        V = np.empty((0, 0)) if self.layer.V is None else self.layer.V
        slopes = Weights(*(np.zeros(a.shape, self.dtype) for a in weights._replace(Z=self.layer.Z, V=V)))
        loss = self.step.add(self, weights, slopes, share)
        if self.view.vectors is not None:
            slopes = slopes._replace(Z=weights.Z, V=weights.V)
        add_terms(self.objective, weights, slopes)
        return loss, slopes

    def _catch_up(self, done: int) -> None:
        """Bring every row to step ``done``: in copies, so that recording changes no bit, unless they are large.

        No bit follows the last step.
        """
        weights, memory = self.weights, self.memory
        if not self.large and done < self.steps:
            weights, memory = copy_of(weights), memory.copy()
        if self.by_rows:
            steps_of_sgd.catch_up(weights, memory, self.update, done)
        self.current = weights

    def _arrays(self) -> Weights:
        """The weights at the last record, Y without padding."""
        Y, columns = self.current.Y, self.layer.multiplicity.size
        return self.current if Y.shape[1] == columns else self.current._replace(Y=Y[:, :columns])

    def _record(self, done: int) -> None:
        self.times.append(done)
        if self.visits is not None:
            self.visited.append(self.visits.copy())
        if self.large_record is not None:
            if self.recording:
                weights = self._arrays()
                self.large_record.add(done, weights.Z, self.large_record.expected_loss(weights))
            return
        if self.recorded:
            self._snapshot(self._arrays())

    def _snapshot(self, weights: Iterable[np.ndarray]) -> None:
        self.snapshots.append([np.array(array, dtype=np.float64, order="C") for array in weights])

    def go(self, report: Progress | None) -> SgdRun:
        """Take all steps."""
        done = 0
        while done < self.steps:
            until = self.next_stop(done)
            finite = self._take(done, until)
            if finite < until - done:
                self._diverge(done + finite)
            done = until
            self.settle(done)
            if report is not None and report.enabled:
                report.update(done / self.steps, f"step {done} of {self.steps}, loss {self.losses[done - 1]:.4g}")
        return self

    def next_stop(self, done: int) -> int:
        """How many steps there are at the end of a call of the kernels that begins at step ``done``."""
        return min(done + self.record_every - done % self.record_every, done + self.feed.most, self.steps)

    def settle(self, done: int) -> None:
        """Record the state after ``done`` steps, if a record is due; raise `DivergenceError` if it is not finite."""
        recording = done % self.record_every == 0 or done == self.steps
        if recording:
            self._catch_up(done)
        # The loss may overlook it for a while: tokens that are not drawn, a logit of -inf, or the last step.
        followed = self.memory.last if self.large and self.by_rows else None
        if not bounded(self.weights, followed, since=done - self.feed.most):
            self._diverge(done)
        if recording:
            self._record(done)

    def _diverge(self, step: int) -> NoReturn:
        if not self.recorded and self.large_record is None:
            self._snapshot(self._cast("init", array) for array in self.layer.weights)
        rates = ", ".join(f"{name} = {self.parameters[name]:g}" for name in ("eta_y", "eta_z"))
        raise DivergenceError(
            f"the loss is no longer finite at step {step} of {self.steps} ({rates}, {self.parameters['optimizer']}, "
            f"{self.parameters['dtype']}). Try, in this order: smaller learning rates, a smaller momentum, "
            f"dtype='float64'",
            step,
            self.trajectory(),
        )

    def trajectory(self) -> Trajectory:
        """The records so far."""
        known = np.arange(self.times[-1])
        units = CRITERIA[self.objective.criterion].units
        attributes = {"long_name": "loss of the mini-batch before the step", "units": units}
        labels: dict[str, Any] = {
            "kind": "sgd",
            "parameters": self.parameters,
            "query_tokens": self.source.query_tokens,
            "extra": {"batch_loss": (("step",), self.losses[known].astype(np.float64), attributes)},
        }
        if self.visited:
            seen = {"long_name": "steps at which each bag was drawn, by its share in the batch", "units": "SGD steps"}
            labels["extra"]["visits"] = (("time", "bag"), np.stack(self.visited), seen)
        if self.large_record is not None:
            weights = self._arrays()
            return self.large_record.trajectory(weights.Z, weights.Y, **labels)
        recorded = Weights(*(np.stack(arrays) for arrays in zip(*self.snapshots, strict=True)))
        return assemble(self.evaluated, self.times, States.of(self.layer, recorded), **labels)

    def outcome(self) -> Outcome:
        """The end of the run."""
        weights = [read_only(array) for array in self._arrays()]  # which a layer takes without a copy
        return Outcome(moved(self.layer, weights), self.losses, self.source.bags, self.visits)
