"""The mini-batches of a run."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial

import numpy as np

from dynamics._model import sampling as kernels
from dynamics._model.batch import Batch
from dynamics._model.objective import Objective
from dynamics.bags import Bags, Data, population_of
from dynamics.data.sequence_classes import SequenceClasses
from dynamics.support import checks
from dynamics.support.checks import read_only_views
from dynamics.support.limits import current

# The most steps in a call of the kernels, and numbers in their batches: these then stay in the processor's cache. Drawn
# tokens count as multiplications.
STEPS_A_CALL = 64
_ENTRIES_A_CALL = 2**16
# Tokens that a step may draw, in a kernel that Ctrl-C does not end.
_MOST_DRAWN = 2**30


Bias = float | tuple[float, ...]
"""Slope of a linear position bias, or a bias for each distance before the last contextual token."""


def bias_of(name: str, position_bias: object) -> Bias:
    """The argument ``position_bias``, checked: a slope b >= 0, or the biases at distance 0, 1, .."""
    if isinstance(position_bias, list | tuple) or np.ndim(position_bias) > 0:  # a ragged list has no number of axes
        return tuple(checks.finite_array(name, position_bias, ndim=1).tolist())
    return checks.non_negative(name, position_bias)


SAMPLING: dict[str, checks.Check] = {
    "batch_size": checks.optional(partial(checks.integer, minimum=1)),
    "length": checks.optional(partial(checks.integer, minimum=2)),
    "position_bias": bias_of,
    "replacement": checks.flag,
}


@dataclass(frozen=True)
class Sampling:
    """How batches are drawn from data, by arguments of `sgd`.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    batch_size: int | None
    length: int | None
    position_bias: Bias = 0.0
    replacement: bool = True

    def __post_init__(self) -> None:
        vars(self).update(checks.each(SAMPLING, vars(self)))


class Source:
    """Data as tables for the sampling kernel, shared by all runs on the same data."""

    def __init__(self, data: Data) -> None:
        self.draws_tokens = hasattr(data, "population")
        self.bags = bags = population_of(data)
        self.query_tokens: np.ndarray | None = getattr(data, "query_tokens", None)
        self.token_tables = kernels.alias_tables(bags.indptr, bags.count, pairs=self.draws_tokens)
        self.bag_tables = kernels.alias_tables(np.array([0, len(bags)]), bags.weight)

    def positions(self, sampling: Sampling) -> int:
        """How many tokens to draw for each sequence; 0 if bags are used as they are."""
        length = sampling.length
        if not self.draws_tokens:
            longest = np.add.reduceat(self.bags.count, self.bags.indptr[:-1]).max()
            if length is not None and longest > (length - 1) * (1 + 1e-9):
                raise checks.reject("length", f"hold the query and the {longest:g} tokens of the longest bag", length)
        elif sampling.batch_size is None and length is not None:
            raise checks.reject("length", "be None when batch_size is None, which takes the whole population", length)
        elif length is not None:
            return length - 1
        if np.any(sampling.position_bias):
            rule = "be 0 without drawn sequences, for bags have no positions"
            raise checks.reject("position_bias", rule, sampling.position_bias)
        return 0


def position_weights(position_bias: Bias, positions: int) -> np.ndarray:
    """Factors of attention at distance 0, 1, .. before the last contextual token, scaled to a largest factor of one.

    Raises
    ------
    ValueError
        If there are not as many biases as positions.
    """
    if not isinstance(position_bias, tuple):
        return np.exp(-position_bias * np.arange(positions))
    if len(position_bias) != positions:
        rule = f"be a slope, or have an entry for each of the {positions} contextual tokens"
        raise checks.reject("position_bias", rule, f"{len(position_bias)} entries")
    bias = np.array(position_bias)
    return np.exp(bias.min(initial=np.inf) - bias)


_sources: weakref.WeakKeyDictionary[object, Source] = weakref.WeakKeyDictionary()


def source_of(data: Data | Source) -> Source:
    """The `Source` of data, made once for data that cannot change."""
    if isinstance(data, Source):
        return data
    if not isinstance(data, (Bags, SequenceClasses)):
        return Source(data)
    if data not in _sources:
        _sources[data] = Source(data)
    return _sources[data]


def _insertion_tables(contrast: Bags | None, strength: np.floating) -> tuple:
    """The insertions of the regulariser as `draw_batches` takes them."""
    nothing = np.empty(0, dtype=np.int64)
    if contrast is None:
        empty = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
        arrays = (nothing, nothing, np.empty(0, dtype=type(strength)), *empty)
    else:
        tables = kernels.alias_tables(np.array([0, len(contrast)]), contrast.weight)[2:]
        arrays = (contrast.indptr, contrast.token, contrast.count.astype(type(strength)), *tables)
    return *read_only_views(arrays), strength


def _longest(bags: Bags) -> int:
    """Tokens of the bag with most of them."""
    return int(np.diff(bags.indptr).max())


class Feed:
    """The batches of a run: drawn anew for each step, or all bags of the source at every step.

    Parameters
    ----------
    source : Source
    sampling : Sampling
    objective : Objective
    random : (4,) uint64
        The state of the generator; moves on.
    steps : int
        Most steps that are asked for at once.
    multiplicity : (columns,) int
        Multiplicity of the columns of Y; a step multiplies each entry of its batch with every column.
    dtype : numpy dtype
        Precision of counts and weights.

    Attributes
    ----------
    batches : Batch
        With a row for each step of a call, or a single row for all steps.
    most : int
        Steps that may be asked for at once.
    data : Batch
        All bags of the source, each as a group of its own.
    positions : int
        Tokens that are drawn for each sequence; 0 where bags are taken as they are.
    """

    def __init__(
        self,
        source: Source,
        sampling: Sampling,
        objective: Objective,
        random: np.ndarray,
        *,
        steps: int,
        multiplicity: np.ndarray,
        dtype: np.dtype,
    ) -> None:
        self.source, self.sampling, self.random = source, sampling, random
        contrast, columns = objective.contrast, multiplicity.size
        self.positions = source.positions(sampling)
        self._check(contrast)
        self.position_weight = position_weights(sampling.position_bias, self.positions).astype(dtype)
        self.data = Batch.of(source.bags, dtype, objective.label_smoothing, multiplicity)
        self.insertions = _insertion_tables(contrast, dtype.type(objective.contrast_weight))
        if sampling.batch_size is None:
            batch = self.data
            if contrast is not None:
                batch = kernels.contrasted(batch, contrast, objective.contrast_weight)
            self.groups = np.array([batch.query.size])
            self.most = min(STEPS_A_CALL, 1 + current().work // (batch.count.size * columns))
            self.batches = Batch(*(np.array(array)[None] for array in batch))
        else:
            self._allocate(sampling.batch_size, contrast, steps, columns)

    def _check(self, contrast: Bags | None) -> None:
        """Refuse batches that need more memory than there is, steps that draw for minutes, and epochs of none."""
        batch_size, positions, weight = self.sampling.batch_size, self.positions, self.source.bags.weight
        if batch_size is not None:
            entries = _longest(self.source.bags) + (0 if contrast is None else _longest(contrast))
            checks.fits_in_memory("batch_size", 16 * batch_size * (entries + 3), "draw a batch")
            checks.fits_in_memory("length", 24 * positions, "weigh positions")
            if batch_size * positions > _MOST_DRAWN:
                rule = f"leave at most {_MOST_DRAWN:,} tokens to draw a step"
                raise checks.reject("length", rule, f"{batch_size * positions:,}")
        if positions and contrast is not None:
            raise checks.reject("contrast", "be left out where sequences are drawn from a population", contrast)
        if self.sampling.replacement:
            return
        if batch_size is None:
            raise checks.reject("replacement", "be left out when batch_size is None, which draws nothing", False)
        if np.ptp(weight) > 1e-9 * weight.max():
            rule = "be True where weights differ, for an epoch draws each bag once"
            raise checks.reject("replacement", rule, f"weights from {weight.min():g} to {weight.max():g}")

    def _allocate(self, batch_size: int, contrast: Bags | None, steps: int, columns: int) -> None:
        n, longest, dtype = self.data.query.size, _longest(self.source.bags), self.data.count.dtype
        each, extra = (1, 0) if contrast is None else (2, _longest(contrast))
        entries = batch_size * (longest + extra)
        work = max(entries * columns, batch_size * self.position_weight.size)
        self.most = steps = min(STEPS_A_CALL, steps, 1 + _ENTRIES_A_CALL // entries, 1 + current().work // work)
        self.groups = np.zeros(steps, dtype=np.int64)
        query, target, size = np.zeros((3, steps, batch_size), dtype=np.int64)
        self.batches = Batch(
            query,
            target,
            np.empty((steps, batch_size, self.data.soft.shape[1]), dtype),
            np.full((steps, each * batch_size), 1 / batch_size, dtype),
            size,
            np.zeros((steps, batch_size + 1), dtype=np.int64),
            np.empty((steps, entries), dtype=np.int64),
            np.empty((steps, each * entries), dtype),
        )
        drawn, tally = np.zeros((steps, batch_size), dtype=np.int64), np.zeros(n, dtype=np.int64)
        bits, tallies = np.empty(batch_size, dtype=np.uint64), np.empty((2, longest), dtype=np.int64)
        # Bags of an epoch, and how many of them were drawn; after all bags a new epoch begins.
        deck = np.arange(0) if self.sampling.replacement else np.append(np.arange(n), 0)
        self._workspace = (drawn, tally, bits, tuple(tallies), deck)

    def draw(self, steps: int) -> np.ndarray:
        """Make the next ``steps`` batches; returns the number of groups of each."""
        if self.sampling.batch_size is None:
            return self.groups
        groups, source = self.groups[:steps], self.source
        tables = (source.bag_tables, source.token_tables, self.position_weight, self.insertions)
        kernels.draw_batches(self.random, self.data, *tables, self._workspace, self.batches, groups)
        return groups

    def shares(self, steps: int) -> np.ndarray:
        """Draw the next ``steps`` batches; returns the share of each bag of the source in each batch.

        Draws the same bags as `draw`. If nothing is drawn, the shares are the weights of the bags.
        """
        n, dtype = self.data.query.size, self.data.count.dtype
        if self.sampling.batch_size is None:
            return np.broadcast_to(self.data.weight, (steps, n))
        self.draw(steps)
        drawn = self._workspace[0][:steps]
        first = n * np.arange(steps)[:, None]
        visits = np.bincount((first + drawn).ravel(), minlength=steps * n).reshape(steps, n)
        return visits.astype(dtype) / drawn.shape[1]
