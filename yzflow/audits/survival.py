"""The survival table: every check of the register under every option of training."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import xarray as xr

from dynamics import version
from dynamics.fields.own import Field
from dynamics.fields.table import SYSTEMS
from dynamics.support import checks
from dynamics.support.calls import data_key
from dynamics.support.canonical import digest
from dynamics.support.netcdf import load_dataset
from dynamics.support.provenance import environment
from theory import papers, statements
from theory.statements import Statement
from theory.trust import Label, Trust
from yzflow.audits._survival_cells import (
    DEFINED,
    MEANINGLESS,
    NOT_ASKED,
    NOTHING,
    NUMBERS,
    WHY,
    AskedCheck,
    Runs,
    is_asked,
    measured_by,
)
from yzflow.audits._survival_table import FORMAT, table_of
from yzflow.audits.find_statement import find
from yzflow.audits.options import Room
from yzflow.audits.own_training import made
from yzflow.audits.survival_verdicts import Fate
from yzflow.paper import Paper
from yzflow.parts import of_papers, parts
from yzflow.sweeps.runs import Task
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow.sweeps.tasks import resolve

__all__ = ["label", "load", "survival"]


def survival(
    statements: Sequence[str | Statement] | Paper | None = None,
    options: Sequence[str] | None = None,
    *,
    settings: Sequence[Mapping[str, Any]] | None = None,
    quick: bool = False,
    seed: int = 0,
    seeds: int | None = None,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
    workers: int = 1,
) -> xr.Dataset:
    """Measure every check on training under every option: does the statement survive the change?

    A flow, or steps on the whole population, is one run, and its error gives the verdict. For mini-batch runs the
    verdict is a test over seeds, with a family-wise error rate of at most 5% over the table, see
    `yzflow.audits.survival_verdicts`.

    Parameters
    ----------
    statements : sequence of str or Statement, or Paper, optional
        Statements of one paper, by id, by number or as objects. Default: all statements of the first paper with options
        that are measured on training; of our papers only one has options.
    options : sequence of str, optional
        Names of options. Default: all.
    settings : sequence of mappings, optional
        Your own settings, each with the arguments of `yzflow.check` for data and rates: ``{"data": classes, "eta_z":
        0.1, "t_end": 100}``. Default: the paper's settings.
    quick : bool
        Run two settings only, one inside all assumptions and one outside, with fewer seeds.
    seed : int
        The first of the seeds.
    seeds : int, optional
        Number of mini-batch runs for each cell; too few decide nothing, which the report says. Default: the paper's.
    store : path-like or Store, optional
        Store of the runs. Runs of this version of yzflow are read from it, so that an interrupted table goes on.
        Default: keep nothing.
    progress : bool
        Show progress on standard error.
    workers : int
        Number of processes; 1 means this one.

    Returns
    -------
    xarray.Dataset
        Variables over ``check``, ``option``, ``setting``, ``level``. ``verdict``: the value of `Fate` for the
        statement. ``verdict_corrected``: the value for its corrected form under the option, -1 if none is known.
        ``error`` and ``error_corrected``: medians over seeds; ``late``: the same over second halves. ``holds_from`` and
        ``reversed_from``: times in SGD steps, infinite for never. ``p`` and ``p_late``: p of the tests. ``why``: the
        reason why a cell has no number. ``margin``: the smallest margin of the assumptions; they hold from 1 on.
        Coordinates: ``statement``, ``tolerance`` and ``reversible`` of a check, ``text`` of an option. Attributes:
        seeds, alpha, number of tests.

    Raises
    ------
    ValueError
        If a statement or an option is unknown, with the nearest ones, or a setting is invalid.
    RuntimeError
        If a run failed for a reason other than the option.

    Examples
    --------
    >>> import yzflow as yz
    >>> classes = yz.SequenceClasses.single_common_token(3, 30)
    >>> own = {"data": classes, "eta_y": 1.0, "eta_z": 0.1, "t_end": 20}
    >>> table = yz.survival(["Theorem 3"], ["adamw"], settings=[own], quick=True)
    """
    room, asked = _asked(statements)
    rows = _named("options", options, [option.name for option in room.options])
    quick, seed = checks.flag("quick", quick), checks.integer("seed", seed, minimum=0)
    progress, workers = checks.flag("progress", progress), checks.processes("workers", workers)
    chosen = room.settings(quick=quick) if settings is None else _own(room, settings, workers)
    draws = room.draws(quick=quick) if seeds is None else checks.integer("seeds", seeds, minimum=1)
    grid = {"paper": [room.paper], "option": rows, "setting": [setting.name for setting in chosen],
            "level": list(room.levels), "draws": [draws]}  # fmt: skip
    with (
        tempfile.TemporaryDirectory() if store is None else nullcontext(store) as folder,
        ThreadPoolExecutor(1) if workers == 1 else nullcontext() as executor,
    ):
        processes = {"executor": executor} if executor is not None else {"workers": workers}
        runs = sweep(versioned(_run, room.paper), grid, store=folder, seeds=[seed], progress=progress, **processes)
    if runs["failed"].any():
        first = next(text for text in runs["error"].values.ravel() if text)
        raise RuntimeError(f"a run of the table failed: {first}")
    measured = runs.squeeze(["paper", "seed", "draws"], drop=True).sel(check=[check.label for check in asked])
    recorded = {name: runs.attrs[name] for name in environment() if name in runs.attrs}
    if code := _code(room.paper):
        recorded["code"] = code
    return table_of(
        measured, room, asked, chosen, quick=quick, seed=seed, made=recorded | {"own": int(settings is not None)}
    )


def versioned(run: Callable[[dict, int], Mapping[str, Any]], paper: str) -> Task:
    """The task for the sweep; its version includes yzflow's version and, for papers from outside, their code."""
    task = resolve(run)
    task = replace(task, version=f"{task.version} of yzflow {version.__version__}")
    code = _code(paper)
    if code:
        # Functions of a notebook have no source file, so their compiled form identifies them.
        code += json.dumps([field.origin for field in _fields()])
    return replace(task, version=f"{task.version} of {sha256(code.encode()).hexdigest()[:16]}") if code else task


def _code(paper: str) -> str:
    """Code of a paper from outside and of fields from outside, which its settings may name; empty for our papers."""
    code = papers.code_of(paper)
    return papers.code_of(paper, modules=[field.module for field in _fields()]) if code else ""


def _fields() -> list[Field]:
    """Registered fields from outside."""
    return [entry.field for _, entry in sorted(SYSTEMS.items()) if entry.field is not None]


# (paper, name) -> a reader's setting in this process.
_OWN: dict[tuple[str, str], Any] = {}


def _own(room: Room, settings: Sequence[Mapping[str, Any]], workers: int) -> list[Any]:
    """A reader's settings. Their names include a hash of their content, since runs are stored by name."""
    if workers != 1:
        raise checks.reject("workers", "be 1 with `settings`, which other processes do not have", workers)
    given = checks.listed("settings", settings, "be a list of mappings")
    if not given:
        raise checks.reject("settings", "name at least one", "an empty list")
    chosen = []
    for arguments in given:
        case = made(room.paper, checks.instance("settings", arguments, Mapping))
        if case.beyond:
            raise checks.reject("settings", "train as the paper does, since options change that", case.beyond[0])
        keys = {key: data_key(f"settings[{key}]", value) for key, value in arguments.items() if value is not None}
        setting = replace(case.setting, name=f"{case.setting.name} [{digest(keys)[:16]}]")
        chosen.append(_OWN.setdefault((room.paper, setting.name), setting))
    return chosen


@of_papers
def _rooms() -> dict[str, Room]:
    return {paper.name: room for paper, room in parts("survival")}


def _all(room: Room) -> tuple[AskedCheck, ...]:
    """The checks of a paper that are measured on simulations of training."""
    levels = set(room.levels.values())
    return tuple(
        AskedCheck(statement, check)
        for statement in statements.REGISTER.values()
        if statement.paper == room.paper and statement.number not in room.left_out
        for check in statement.checks
        if levels & set(check.levels) and check.suffices is None  # else a check of its own, under other assumptions
    )


def _asked(names: Sequence[Any] | Paper | None) -> tuple[Room, list[AskedCheck]]:
    """The checks of the named statements, all of one paper. Default: the first paper with options."""
    rooms = _rooms()
    if names is None:
        room = next(iter(rooms.values()), None)
        if room is None:
            raise checks.reject("statements", "be of a paper with options of training", "no such paper")
        return room, list(_all(room))
    if not isinstance(names, Paper) and not checks.listed("statements", names, "be a list of statements"):
        raise checks.reject("statements", "name at least one", "an empty list")
    measured = [entry for room in rooms.values() for entry in _all(room)]
    known = {entry.statement.id for entry in measured}
    chosen = _chosen(names, [entry.statement for entry in measured])
    for statement in chosen if not isinstance(names, Paper) else ():
        if statement.id not in known:
            raise checks.reject("statements", "be measured on training, and in the register", repr(statement.id))
    ids = {statement.id for statement in chosen} & known
    of = sorted({entry.statement.paper for entry in measured if entry.statement.id in ids})
    if not of:
        raise checks.reject("statements", "name some that are measured on training", "none")
    if len(of) > 1:
        raise checks.reject("statements", "be of one paper", " and ".join(of))
    return rooms[of[0]], [entry for entry in measured if entry.statement.id in ids]


def _chosen(names: Sequence[Any] | Paper, measured: Sequence[Statement]) -> list[Statement]:
    """The named statements. A number goes to the only paper that measures it on training, if there is one."""
    if isinstance(names, Paper):
        return list(names.statements)
    chosen = []
    for name in names:
        matches = (
            {statement.id: statement for statement in measured if name in (statement.id, statement.number)}
            if isinstance(name, str)
            else {}
        )
        chosen.append(next(iter(matches.values())) if len(matches) == 1 else find(name, argument="statements"))
    return chosen


def _named(name: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The given names in the order of ``known``; ValueError with the nearest names if one is unknown."""
    if given is None:
        return list(known)
    names = checks.listed(name, given, f"be a list of {name}")
    if not names:
        raise checks.reject(name, "name at least one", "an empty list")
    for entry in names:
        if not isinstance(entry, str) or entry not in known:
            near = checks.nearest(str(entry), {entry: (entry,) for entry in known})
            raise checks.reject(name, f"be known, as {near} are; `yzflow {name}` lists all", checks.brief(entry))
    return [entry for entry in known if entry in names]


# Runs of one option at one level and setting


def _run(configuration: dict, seed: int) -> dict[str, xr.DataArray]:
    """Errors of all checks of the paper for each draw, under one option, in one setting, at one level."""
    room = _rooms()[configuration["paper"]]
    option = next(option for option in room.options if option.name == configuration["option"])
    brought = _OWN.get((room.paper, configuration["setting"]))
    setting = brought or next(known for known in room.settings(quick=False) if known.name == configuration["setting"])
    level, asked = configuration["level"], _all(room)
    drawn = level in room.drawn
    shape = (len(asked), configuration["draws"])
    numbers = {name: np.full(shape, np.nan) for name in NUMBERS}
    why = np.full(len(asked), NOT_ASKED)
    here = [i for i, entry in enumerate(asked) if level in option.levels and is_asked(entry.check, level, room)]
    for draw in range(configuration["draws"] if drawn else 1):
        if not here:
            break
        runs = Runs(option, setting, level, room.levels[level], seed + draw)
        stopped = runs.stopped()
        for i in here:
            entry = asked[i]
            if stopped or entry.statement.number in option.meaningless:
                why[i] = stopped or MEANINGLESS
                continue
            try:
                measured = measured_by(runs, room, entry.check, room.levels[level])
            except ValueError:
                if brought is None:
                    raise
                why[i] = NOTHING
                continue
            why[i] = DEFINED
            for name, value in measured.items():
                numbers[name][i, draw] = value
    labels = {"check": [entry.label for entry in asked], "draw": np.arange(shape[1])}
    arrays = {name: xr.DataArray(values, labels, ("check", "draw")) for name, values in numbers.items()}
    adapted = option.adapted(setting)
    return {
        **arrays,
        "why": xr.DataArray(why, {"check": labels["check"]}, ("check",)),
        "end": xr.DataArray(float(adapted.t_end)),
    }


def load(path: str | os.PathLike) -> xr.Dataset:
    """Read a table that the command ``yzflow survival`` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, or holds something else.
    FileNotFoundError
        If there is no such file.
    """
    return load_dataset(path, FORMAT, "a survival table")


def label(table: xr.Dataset, **cell: str) -> Label:
    """The label of one verdict of the table; ``cell`` names its check, option, setting and level.

    Raises
    ------
    ValueError
        If the cell has no verdict.
    """
    checks.instance("table", table, xr.Dataset)
    for name in ("check", "option", "setting", "level"):
        if name not in cell:
            raise checks.reject("cell", f"name its {name}", ", ".join(cell) or "nothing")
        checks.one_of(name, cell[name], table[name].values.tolist())
    numbers = table.sel(cell)
    fate = Fate(int(numbers["verdict"]))
    if fate is Fate.NOT_ASKED:
        raise checks.reject("cell", "be one that is asked", ", ".join(cell.values()))
    if fate is Fate.UNDEFINED:
        return Label(Trust.NOT_EXAMINED, prose=(WHY[int(numbers["why"])],))
    where: dict[str, object] = {**cell, "error": float(numbers["error"]), "tolerance": float(numbers["tolerance"])}
    if not np.isnan(numbers["p"]):
        where |= {"seeds": int(table.attrs["seeds"]), "p": float(numbers["p"]),
                  "p of second halves": float(numbers["p_late"]),
                  "family-wise error rate": float(table.attrs["alpha"])}  # fmt: skip
    if fate is Fate.UNDECIDED:
        return Label(Trust.NOT_EXAMINED, where, prose=(f"too few seeds: {table.attrs['seeds']}",))
    failures = () if fate in (Fate.HOLDS, Fate.LATER) else (f"{cell['check']}, {fate.words}",)
    return Label(Trust.MEASURED, where, failures=failures)
