"""Runs with the modified decoder that differ only in their seeds, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynamics._engine.sgd.run import SgdRun
from dynamics._model.feed import Source
from dynamics.fields.modified import ModifiedSteps, stacked
from dynamics.fields.table import entry_of
from dynamics.support.errors import DivergenceError

# Most runs side by side. They share a step's cost in Python, and their memory grows with their number.
_MOST = 64

Task = tuple[Source, dict[str, Any]]


def groups(tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    """Groups of neighbouring tasks with the modified decoder, the same data and the same arguments."""
    start = 0
    for end in range(1, len(tasks) + 1):
        if end == len(tasks) or end - start == _MOST or not _alike(tasks[start], tasks[end]):
            yield tasks[start:end]
            start = end


def _alike(one: Task, other: Task) -> bool:
    (source, arguments), (others_source, others) = one, other
    step = entry_of(arguments["decoder"], "step").step
    if source is not others_source or step is None or step.several is None:
        return False
    rest = (name for name in arguments if name != "seed")
    return all(arguments[name] is others[name] or _equal(arguments[name], others[name]) for name in rest)


def _equal(one: object, other: object) -> bool:
    """True if two numbers or words are equal; other objects must be identical."""
    return all(isinstance(value, (bool, int, float, str)) for value in (one, other)) and one == other


def go(tasks: Sequence[Task]) -> list[SgdRun]:
    """The runs of a group, with the same bits as each run alone.

    Raises
    ------
    DivergenceError
        The error of the first run that diverges.
    """
    runs = [SgdRun(source, **arguments, recording=False) for source, arguments in tasks]
    if len(runs) > 1 and runs[0].in_kernels and not runs[0].large:
        if _side_by_side(runs):
            return runs
        runs = [SgdRun(source, **arguments, recording=False) for source, arguments in tasks]
    return [run.go(None) for run in runs]


def _side_by_side(runs: Sequence[SgdRun]) -> bool:
    """Take all steps; False if a run does not stay finite, since it would end the others early."""
    first = runs[0]
    assert first.update is not None  # as of all that is `in_kernels`
    kept = zip(*((run.weights, run.memory.first, run.memory.second) for run in runs), strict=True)
    weights, *moments = map(stacked, kept)
    for run, Z, Y in zip(runs, weights.Z, weights.Y, strict=True):
        run.weights = run.current = run.weights._replace(Z=Z, Y=Y)
    steps = ModifiedSteps(first.feed.data, weights, moments, rule=first.rule, update=first.update)
    visits = np.zeros((len(runs), first.feed.data.query.size))
    done = 0
    while done < first.steps:
        until = first.next_stop(done)
        shares = np.stack([run.feed.shares(until - done) for run in runs], axis=1)
        losses = np.empty((until - done, len(runs)))
        for step, share in enumerate(shares):
            visits += share
            losses[step] = steps.take(share, done + step + 1)
            if not np.isfinite(losses[step]).all():
                return False
        for i, run in enumerate(runs):
            run.losses[done:until] = losses[:, i]
            run.visits = visits[i].copy()
            try:
                run.settle(until)
            except DivergenceError:
                return False
        done = until
    return True
