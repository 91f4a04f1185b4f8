"""How SGD steps under each decoder. An entry of `dynamics.fields.table` holds one `Step`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dynamics._model.batch import Batch
from dynamics._model.feed import Feed, Source
from dynamics._model.gradient import kernel_of
from dynamics._model.objective import Objective
from dynamics._model.problem import View
from dynamics._model.weights import Rule, Weights
from dynamics.bags import Bags
from dynamics.fields import modified
from dynamics.fields.own import Field, add_direction, check_direction, check_field
from dynamics.layer import Layer, moved
from dynamics.support import checks
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.frozen import changed


class SteppedRun(Protocol):
    """A run of SGD as a step sees it: see `dynamics._engine.sgd.run.SgdRun`."""

    feed: Feed
    source: Source
    layer: Layer
    view: View
    rule: Rule
    objective: Objective
    parameters: dict[str, Any]
    dtype: np.dtype


@dataclass(frozen=True)
class Step:
    """The direction of a step.

    Attributes
    ----------
    add : callable
        (run, weights, slopes, share) -> the loss of the next batch, with the direction of each weight added into
        ``slopes``; of bags with this share of each where ``visits``, and None elsewhere.
    check : callable, optional
        Raise ``ValueError`` for a run that it is not of.
    rows : bool
        Whether the compiled steps, which move only the rows of a batch's tokens and allow padding of Y, are its own.
    visits : bool
        Whether a step takes the share of each bag in its batch, which the run counts.
    several : callable, optional
        Steps in kernels of their own, for several runs side by side: `dynamics.fields.modified.ModifiedSteps`.
    """

    add: Callable[[SteppedRun, Weights, Weights, np.ndarray | None], float]
    check: Callable[[SteppedRun], None] | None = None
    rows: bool = False
    visits: bool = False
    several: Callable[..., modified.ModifiedSteps] | None = None


def _through(run: SteppedRun, weights: Weights, slopes: Weights, add: Callable[[Weights, Weights], float]) -> float:
    """``add`` at what the kernels see of the weights, and its gradients as those of the weights."""
    seen = weights if run.view.plain else run.view.forward(weights)
    within = run.view.beneath(slopes)
    loss = add(seen, within)
    run.view.backward(weights, within, slopes)
    return loss


def _full(run: SteppedRun, weights: Weights, slopes: Weights, share: np.ndarray | None) -> float:
    """The gradient of Lemma 1 (3) on a batch."""

    def add(seen: Weights, within: Weights) -> float:
        groups = run.feed.draw(1)
        batch = Batch(*read_only_views(array[0] for array in run.feed.batches))
        nothing = np.empty((0, 0), run.dtype)
        loss: float = kernel_of(seen, run.rule)(batch, groups[0], seen, run.rule, within, nothing, True)
        return loss

    return _through(run, weights, slopes, add)


def _modified(run: SteppedRun, weights: Weights, slopes: Weights, share: np.ndarray | None) -> float:
    """Lemma 3 (26) with the shares of a batch."""
    assert share is not None

    def add(seen: Weights, within: Weights) -> float:
        batch = run.feed.data._replace(weight=read_only(share))
        return modified.gradient(batch, seen, run.rule, within)

    return _through(run, weights, slopes, add)


def _check_modified(run: SteppedRun) -> None:
    """Refuse what the modified decoder is not of: Lemma 3 has the features of all classes, as T grows."""
    _check_whole(run)
    batch = Batch.of(run.source.bags, np.dtype(np.float64))
    modified.check_inverse(batch, run.layer, run.objective, run.parameters["decoder"], reduced=False)


def _check_whole(run: SteppedRun) -> None:
    if run.feed.positions:
        rule = f"be None for decoder={run.parameters['decoder']!r}, whose features f_n are those of T -> infinity"
        raise checks.reject("length", rule, run.parameters["length"])


FULL = Step(_full, rows=True)
MODIFIED = Step(_modified, _check_modified, visits=True, several=modified.ModifiedSteps)


def step_of(field: Field) -> Step | None:
    """The step of a field from outside, if it has one."""
    if field.step is None:
        return None

    def check(run: SteppedRun) -> None:
        if field.inverts:
            _check_whole(run)
        check_field(field, run.source.bags, run.layer, run.objective)
        check_direction(field, "step", run.source.bags, run.layer)

    def add(run: SteppedRun, weights: Weights, slopes: Weights, share: np.ndarray | None) -> float:
        if not all(np.isfinite(array).all() for array in weights):
            return float("nan")
        layer, bags = moved(run.layer, weights), _next_bags(run)
        add_direction(field, "step", layer, bags, slopes)
        return layer.loss(bags)

    return Step(add, check)


def _next_bags(run: SteppedRun) -> Bags:
    """The next batch: its sequences, or where bags are taken as they are, all of them with their shares in it."""
    feed, source = run.feed, run.source.bags
    if not feed.positions:
        weight = feed.shares(1)[0].astype(np.float64)
        return changed(source, weight=read_only(weight / weight.sum()))
    groups = int(feed.draw(1)[0])
    return bags_of(Batch(*(array[0] for array in feed.batches)), groups, source)


def bags_of(batch: Batch, groups: int, like: Bags) -> Bags:
    """The first groups of a batch as bags, with the sizes and names of others."""
    size = batch.size[:groups]
    group = np.repeat(np.arange(groups), size)
    lengths = np.diff(batch.indptr[: groups + 1])
    # The entries of each bag: its group's tokens, and a row of counts for the bag. Counts may be zero.
    ends = np.cumsum(lengths[group])
    place = np.arange(ends[-1]) - np.repeat(ends - lengths[group], lengths[group])
    token = batch.token[np.repeat(batch.indptr[:groups][group], lengths[group]) + place]
    count = batch.count[: ends[-1]].astype(np.float64)
    there = count > 0
    indptr = np.concatenate([[0], np.cumsum(np.add.reduceat(there, ends - lengths[group]))])
    target = batch.target[group] if like.hard else batch.soft[group].astype(np.float64)
    weight = batch.weight[: group.size].astype(np.float64)
    return Bags(
        batch.query[group],
        target,
        indptr,
        token[there],
        count[there],
        weight / weight.sum(),
        **like.sizes,
        **like.names,
    )
