"""Campaigns: many examples of a statement at each level, run as a sweep, and their report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.support import checks, distributions
from dynamics.support.progress import Progress
from theory import papers, statements
from theory.statements import Check, Statement
from yzflow.audits import audit, campaign_table, find_statement
from yzflow.audits.enclosing import Enclose, flows_of
from yzflow.audits.survival import versioned
from yzflow.fuzzing import blocks as engine
from yzflow.fuzzing.blocks import (
    Example,
    NotReached,
    Question,
    Tried,
    asked_of,
    block_of,
    draw_block,
    example,
    rows_at,
    share,
)
from yzflow.fuzzing.choosing import Recorded
from yzflow.fuzzing.report import SEEDS_AGAIN, Campaign, FuzzReport, Violation
from yzflow.parts import part_of
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep

__all__ = ["fuzz", "replay"]


def fuzz(
    statement: str | Statement | Callable[[Any], bool],
    *,
    level: str | None = None,
    like: str | Statement | None = None,
    at: Callable[[Any], float] | None = None,
    examples: int = 200,
    seed: int = 0,
    outside: str | None = None,
    store: str | os.PathLike | Store | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> FuzzReport:
    """Try to break a statement: draw settings inside all its assumptions, and run its checks at each.

    Parameters
    ----------
    statement : str, Statement or callable
        The id or number of a statement of a paper that declares how settings are drawn (`yzflow.Paper`, ``drawing``).
        Or a conjecture: a function that tells whether it holds in a simulation (a `Trajectory`, as the paper's settings
        have it).
    level : str, optional
        One level of fidelity. Default: each level at which a check of the statement should hold. Required for a
        function.
    like : str or Statement, optional
        For a function: the statement inside whose assumptions settings are drawn.
    at : callable, optional
        For a function: trajectory -> the time that the claim speaks of. A simulation that ends before it is counted as
        not reached, and as no example.
    examples : int
        Settings inside the assumptions at each level, in blocks of 25; a block ends with its first violation.
    seed : int
        The examples do not depend on the number of workers.
    outside : str, optional
        The beginning of the text of one assumption: all examples break it, and keep the others.
    store : path-like or Store, optional
        A folder for blocks, from which the same call, by the same version of yzflow, resumes; only for statements of
        the register, as the store cannot see that a function changes. Default: none.
    executor : concurrent.futures.Executor, optional
        As for `yzflow.sweep`.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    FuzzReport

    Raises
    ------
    ValueError
        If an argument is invalid, or the paper draws no settings.
    ImportError
        If hypothesis, which draws, is not installed: ``pip install 'yzflow[fuzz]'``.
    """
    target = _statement(statement, level, like, at)
    examples = checks.integer("examples", examples, minimum=1)
    seed = checks.integer("seed", seed, minimum=0)
    progress = checks.flag("progress", progress)
    if part_of(target.paper, "drawing") is None:
        raise checks.reject("statement", "be of a paper that declares how settings are drawn", target.id)
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise ImportError("hypothesis, which draws the examples, is missing: pip install 'yzflow[fuzz]'") from error
    questions = asked_of(target, level, outside)
    sizes = [min(engine.BLOCK, examples - first) for first in range(0, examples, engine.BLOCK)]
    campaigns = []
    swept = store is not None or executor is not None  # a sweep shows its progress
    with Progress(f"fuzz {target.id}", enabled=progress and not swept) as report:
        for number, question in enumerate(questions):
            report.update(number / len(questions), question.level)
            tried = (
                _swept(question, sizes, seed, store=store, executor=executor, progress=progress)
                if swept
                else _drawn(question, sizes, seed, report, start=number / len(questions), width=1 / len(questions))
            )
            campaigns.append(_campaign(question, tried, "" if like is None else find_statement.find(like).id))
    return FuzzReport(target.id, seed, tuple(campaigns))


def _statement(
    given: Any, level: str | None, like: str | Statement | None, at: Callable[[Any], float] | None = None
) -> Statement:
    """The given statement, or one that claims a function's answer, with the assumptions of another."""
    if isinstance(given, (str, Statement)) or not callable(given):
        for argument, value in (("like", like), ("at", at)):
            if value is not None:
                raise checks.reject(argument, "be None unless `statement` is a function", checks.brief(value))
        return find_statement.find(given)
    if like is None:
        raise checks.reject("like", "be the statement inside whose assumptions settings are drawn", like)
    model, name = find_statement.find(like, argument="like"), getattr(given, "__name__", type(given).__name__)
    paper = papers.named(model.paper)
    level = checks.one_of("level", "" if level is None else level, () if paper is None else paper.levels)

    if at is not None:
        checks.function("at", at)

    def fails(runs: Any, level: str) -> float:
        run = runs.trajectory(level)
        if at is not None and checks.real("at", at(run)) > (end := float(run.dataset["time"][-1])):
            raise NotReached(f"the run ends at t = {end:g}")
        answer = np.asarray(given(run))
        if answer.shape != () or answer.dtype.kind != "b":  # a ValueError would be a setting that cannot be asked
            raise TypeError(f"`statement` must return True or False, but got {checks.brief(answer[()])}")
        return 0.0 if answer else 1.0

    check = Check(name, (level,), fails, tolerance=0.5, expected=(level,))
    return Statement(model.paper, name, "A conjecture", "", "", assumptions=model.assumptions, checks=(check,))


def _drawn(
    asked: Question, sizes: list[int], seed: int, report: Progress, *, start: float, width: float
) -> list[Tried]:
    """The blocks one after the other; each moves the progress on, from ``start``."""
    blocks = []
    for number, size in enumerate(sizes):
        blocks.append(draw_block(asked, seed=seed, number=number, size=size))
        report.update(start + width * (number + 1) / len(sizes), asked.level)
    return blocks


def _swept(asked: Question, sizes: list[int], seed: int, **how: Any) -> list[Tried]:
    """The blocks of sweeps, which know statements by id; the last block may be smaller."""
    if statements.REGISTER.get(asked.statement.id) is not asked.statement:
        raise checks.reject("statement", "be in the register where there is a store or an executor", asked.statement.id)
    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        how["store"] = folder if how["store"] is None else how["store"]
        task = versioned(engine.tried, asked.statement.paper)
        # A store may also have campaigns on earlier versions of the statement's checks.
        task = replace(task, version=f"{task.version}, {campaign_table.asked(asked.statement, asked.level)}")
        for size in dict.fromkeys(sizes):
            grid: dict[str, list] = {
                "statement": [asked.statement.id],
                "level": [asked.level],
                "outside": ["" if asked.outside is None else asked.outside.text],
                "size": [size],
                "block": [number for number, length in enumerate(sizes) if length == size],
            }
            runs = sweep(task, grid, seeds=[seed], **how).squeeze(["statement", "level", "outside", "size", "seed"])
            if runs["failed"].any():
                raise RuntimeError(next(text for text in runs["error"].values if text))
            blocks += [block_of(text) for text in runs["text"].values]
    return blocks


def _campaign(asked: Question, blocks: list[Tried], like: str = "") -> Campaign:
    """The examples of all blocks, and the simplest violation of each, looked at more closely."""
    return Campaign(
        asked.level,
        "" if asked.outside is None else asked.outside.text,
        tuple(example for block in blocks for example in block.examples),
        sum(block.rejected for block in blocks),
        sum(block.stopped for block in blocks),
        next((block.why for block in blocks if block.why), ""),
        tuple(_violation(asked, block.simplest, block.seed, like) for block in blocks if block.simplest is not None),
        {check.name: check.false_alarm for check in asked.checks if check.false_alarm != 0},
        campaign_table.asked(asked.statement, asked.level),
        sum(block.unreached for block in blocks),
    )


def _violation(asked: Question, example: Example, seed: int, like: str) -> Violation:
    """A violation with its verdict in balls, if there is one, and the number of other seeds that fail."""
    setting = asked.setting(Recorded(example.choices))
    name = max(example.shares, key=lambda check: example.shares[check])
    check = next(entry for entry in asked.checks if entry.name == name)
    decided = None
    if distributions.installed(distributions.EVIDENCE):
        for flows in flows_of(asked.statement.paper, [setting], Enclose()) or ():
            decided = flows.decide(check, asked.level) if asked.level in flows.levels else None
    fails = None
    runs = audit.Simulations(setting, seed=seed)
    audit.measure(asked.statement, check, asked.level, runs, None)
    if runs.seeds(asked.level):
        others = range(seed + 1, seed + 1 + SEEDS_AGAIN)
        again = (rows_at(asked, setting, seed=another) for another in others)
        fails = sum(any(share(row) > 1 for row in rows if row.check == name) for rows in again)
    broken = "" if asked.outside is None else asked.outside.text
    return Violation(asked.statement.id, asked.level, broken, name, example, seed, decided, fails, like)


def replay(
    statement: str | Statement | Callable[[Any], bool],
    level: str,
    choices: Mapping[str, Any],
    *,
    like: str | Statement | None = None,
    seed: int = 0,
    outside: str | None = None,
) -> Example:
    """An example once more, from its choices.

    Parameters
    ----------
    statement : str, Statement or callable
    level : str
    choices : mapping
        As a report prints them.
    like : str or Statement, optional
        As for `yzflow.fuzz`.
    seed : int
        Seed of the simulations; a report prints it, too.
    outside : str, optional
        The beginning of the text of the assumption that the example breaks.

    Raises
    ------
    ValueError
        If the choices make no setting inside the assumptions, or outside of that one only.
    """
    question = asked_of(_statement(statement, level, like), level, outside)[0]
    again = example(question, Recorded(choices), seed=checks.integer("seed", seed, minimum=0))
    if again is None:
        where = "inside the assumptions" if question.outside is None else f"outside of {question.outside.text} alone"
        raise checks.reject("choices", f"make a setting {where}", checks.brief(dict(choices)))
    return again
