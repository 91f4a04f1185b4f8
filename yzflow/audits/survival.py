"""Which statements survive which change of an assumption: every check of the register, asked under every option."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from dynamics import DivergenceError, IntegrationError, Run, Trajectory
from dynamics.fields.own import Field
from dynamics.fields.table import SYSTEMS
from dynamics.support import checks
from dynamics.support.calls import digest
from dynamics.support.netcdf import load_dataset
from dynamics.support.provenance import environment
from theory import papers, statements
from theory.statements import Check, Statement
from theory.trust import Label, Trust
from yzflow.audits.chosen import find
from yzflow.audits.fates import ALPHA, Fate, fate_of_run, fate_of_votes, holm, sign_test, votes
from yzflow.audits.options import Correction, Option, Room
from yzflow.audits.own import made
from yzflow.paper import Paper, of_papers, parts
from yzflow.sweeps.runs import Task
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow.sweeps.tasks import resolve

__all__ = ["label", "load", "survival"]

_Simulation: TypeAlias = Trajectory | Run
_FORMAT = "yzflow-survival-1"
# Why a cell has no number.
_DEFINED, _REFUSED, _NO_END, _MEANINGLESS = range(4)
WHY = {
    _REFUSED: "the level refuses the option",
    _NO_END: "training came to no end",
    _MEANINGLESS: "the statement speaks of what is not there",
}
# A check that is not asked at a level.
_NOT_ASKED = -1
_NUMBERS = ("whole", "late", "holds_from", "reversed_from", "corrected", "corrected_late", "corrected_from",
            "corrected_reversed_from")  # fmt: skip


def survival(
    statements: Sequence[str | Statement] | Paper | None = None,
    options: Sequence[str] | None = None,
    *,
    settings: Sequence[Mapping[str, Any]] | None = None,
    quick: bool = False,
    seed: int = 0,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
    workers: int = 1,
) -> xr.Dataset:
    """Ask every check of the statements that speak of training under every option, and say what becomes of it.

    Verdicts on flows, and on steps on the whole population, are facts of one run. Those on mini-batch runs are tests
    over seeds, see `yzflow.audits.fates`: the probability that any check that as many runs are for as against gets a
    verdict other than "undecided", anywhere in the table, is at most 5%.

    Parameters
    ----------
    statements : sequence of str or Statement, or Paper, optional
        By id, by number, or themselves; all of one paper. Default: all that the first paper with options of training
        measures on simulations; of ours only one has such options.
    options : sequence of str, optional
        Names of options. Default: all.
    settings : sequence of mappings, optional
        Your own, each with the arguments of `yzflow.check` that belong to data and rates: ``{"data": classes, "eta_z":
        0.1, "t_end": 100}``. Default: the table's.
    quick : bool
        Two settings, one inside all assumptions and one outside; and fewer seeds.
    seed : int
        The first of the seeds.
    store : path-like or Store, optional
        Where runs are kept: what is there is not run again, so that an interrupted table goes on. Default: nowhere.
    progress : bool
        Show progress on standard error.
    workers : int
        Processes; 1 runs in this one.

    Returns
    -------
    xarray.Dataset
        Over ``check``, ``option``, ``setting``, ``level``: ``verdict`` and ``verdict_corrected``, the values of `Fate`,
        of the statement as it stands and as it is under the option where such a form is known (else -1);
        ``error``, in the form that the register stands for, and ``error_corrected``, the median over seeds;
        ``late``, the same over the second half; ``holds_from`` and ``reversed_from``, times in SGD steps, infinite
        for never; ``p`` and ``p_late`` of the tests; ``why`` a cell has no number. Coordinates: ``statement``,
        ``tolerance`` and ``reversible`` of a check, ``text`` of an option, ``margin`` of the assumptions in a
        setting at a level, the smallest one: they hold from one on. Attributes: seeds, alpha, number of tests.

    Raises
    ------
    ValueError
        If a statement or an option is unknown, with the nearest ones, or a setting is invalid.
    RuntimeError
        If a run failed for no reason that belongs to the option.

    Examples
    --------
    >>> import yzflow as yz
    >>> table = yz.survival(["Theorem 3"], ["adamw"], quick=True)
    """
    room, asked = _asked(statements)
    rows = _named("options", options, [option.name for option in room.options])
    quick, seed = checks.flag("quick", quick), checks.integer("seed", seed, minimum=0)
    progress, workers = checks.flag("progress", progress), checks.processes("workers", workers)
    chosen = room.settings(quick=quick) if settings is None else _own(room, settings, workers)
    grid = {"paper": [room.paper], "option": rows, "setting": [one.name for one in chosen], "level": list(room.levels),
            "draws": [room.draws(quick=quick)]}  # fmt: skip
    with (
        tempfile.TemporaryDirectory() if store is None else nullcontext(store) as folder,
        ThreadPoolExecutor(1) if workers == 1 else nullcontext() as executor,
    ):
        own = {"executor": executor} if executor is not None else {"workers": workers}
        runs = sweep(_task(room.paper), grid, store=folder, seeds=[seed], progress=progress, **own)
    if runs["failed"].any():
        first = next(text for text in runs["error"].values.ravel() if text)
        raise RuntimeError(f"a run of the table failed: {first}")
    measured = runs.squeeze(["paper", "seed", "draws"], drop=True).sel(check=[one.label for one in asked])
    recorded = {name: runs.attrs[name] for name in environment() if name in runs.attrs}
    if code := _code(room.paper):
        recorded["code"] = code
    return _table(
        measured, room, asked, chosen, quick=quick, seed=seed, made=recorded | {"own": int(settings is not None)}
    )


def _task(paper: str) -> Task:
    """Task that is swept: for papers that are not ours with their code as its version, since kept runs are of that."""
    task = resolve(_run)
    code = _code(paper)
    if code:
        # In a notebook, whose source is in no file, only their compiled form tells functions from others.
        code += json.dumps([field.origin for field in _fields()])
    return replace(task, version=f"{task.version} of {sha256(code.encode()).hexdigest()[:16]}") if code else task


def _code(paper: str) -> str:
    """Whose code a paper that is not ours is, and the fields from outside, since its settings may name any of them."""
    code = papers.code_of(paper)
    return papers.code_of(paper, modules=[field.module for field in _fields()]) if code else ""


def _fields() -> list[Field]:
    """Those from outside that are registered here."""
    return [entry.field for _, entry in sorted(SYSTEMS.items()) if entry.field is not None]


# The readers' settings of this process, by paper and name.
_OWN: dict[tuple[str, str], Any] = {}


def _own(room: Room, settings: Sequence[Mapping[str, Any]], workers: int) -> list[Any]:
    """A reader's settings. Their names have a hash of what they are, since runs are kept by these names."""
    if workers != 1:
        raise checks.reject("workers", "be 1 with `settings`, which other processes do not have", workers)
    given = checks.listed("settings", settings, "be a list of mappings")
    if not given:
        raise checks.reject("settings", "name at least one", "an empty list")
    found = []
    for one in given:
        case = made(room.paper, checks.instance("settings", one, Mapping))
        if case.beyond:
            raise checks.reject("settings", "train as the paper does, since options change that", case.beyond[0])
        others = sorted((key, value) for key, value in one.items() if key != "data")
        content = sha256(f"{digest(one['data'])} {others}".encode()).hexdigest()
        setting = replace(case.setting, name=f"{case.setting.name} [{content[:8]}]")
        found.append(_OWN.setdefault((room.paper, setting.name), setting))
    return found


@dataclass(frozen=True)
class _Asked:
    """A check with its statement."""

    statement: Statement
    check: Check

    @property
    def label(self) -> str:
        return f"{self.statement.number}: {self.check.name}"


@of_papers
def _rooms() -> dict[str, Room]:
    return {paper.name: room for paper, room in parts("survival")}


def _all(room: Room) -> tuple[_Asked, ...]:
    """The checks of a paper that are measured on simulations of training."""
    levels = set(room.levels.values())
    return tuple(
        _Asked(statement, check)
        for statement in statements.REGISTER.values()
        if statement.paper == room.paper and statement.number not in room.left_out
        for check in statement.checks
        if levels & set(check.levels) and check.suffices is None  # which is another check, under other assumptions
    )


def _asked(names: Sequence[Any] | Paper | None) -> tuple[Room, list[_Asked]]:
    """The checks of these statements, which are all of one paper: by default the first that has rows."""
    rooms = _rooms()
    if names is None:
        room = next(iter(rooms.values()), None)
        if room is None:
            raise checks.reject("statements", "be of a paper with options of training", "no such paper")
        return room, list(_all(room))
    if not isinstance(names, Paper) and not checks.listed("statements", names, "be a list of statements"):
        raise checks.reject("statements", "name at least one", "an empty list")
    measured = [one for room in rooms.values() for one in _all(room)]
    known = {one.statement.id for one in measured}
    chosen = _chosen(names, [one.statement for one in measured])
    for one in chosen if not isinstance(names, Paper) else ():
        if one.id not in known:
            raise checks.reject("statements", "be measured on training, and in the register", repr(one.id))
    ids = {one.id for one in chosen} & known
    of = sorted({one.statement.paper for one in measured if one.statement.id in ids})
    if not of:
        raise checks.reject("statements", "name some that are measured on training", "none")
    if len(of) > 1:
        raise checks.reject("statements", "be of one paper", " and ".join(of))
    return rooms[of[0]], [one for one in measured if one.statement.id in ids]


def _chosen(names: Sequence[Any] | Paper, measured: Sequence[Statement]) -> list[Statement]:
    """The statements that are named; a number that one of several papers measures on training is that one's."""
    if isinstance(names, Paper):
        return list(names.statements)
    found = []
    for name in names:
        own = {one.id: one for one in measured if name in (one.id, one.number)} if isinstance(name, str) else {}
        found.append(next(iter(own.values())) if len(own) == 1 else find(name, argument="statements"))
    return found


def _named(name: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Those of ``known`` that are asked for, in their order; ValueError with the nearest ones for another."""
    if given is None:
        return list(known)
    found = checks.listed(name, given, f"be a list of {name}")
    if not found:
        raise checks.reject(name, "name at least one", "an empty list")
    for one in found:
        if not isinstance(one, str) or one not in known:
            near = checks.nearest(str(one), {entry: (entry,) for entry in known})
            raise checks.reject(name, f"be known, as {near} are; `yzflow {name}` lists all", checks.brief(one))
    return [one for one in known if one in found]


# One option at one level in one setting


class _Seen:
    """Simulations as checks ask for them, with some of them seen in other variables."""

    def __init__(self, setting: Any, simulated: Callable[[str], _Simulation], view: Callable | None = None) -> None:
        self.setting = setting
        self._simulated, self._view = simulated, view
        self._made: dict[str, _Simulation] = {}

    def trajectory(self, level: str) -> _Simulation:
        """The simulation at a level."""
        if level not in self._made:
            run = self._simulated(level)
            self._made[level] = run if self._view is None else _with_dataset(run, self._view(run.dataset))
        return self._made[level]


def _with_dataset(run: _Simulation, dataset: xr.Dataset) -> _Simulation:
    """A simulation of the same kind that shows other variables."""
    return Run(dataset, events=run.events) if isinstance(run, Run) else Trajectory(dataset)


def _run(configuration: dict, seed: int) -> dict[str, xr.DataArray]:
    """All checks of the paper under an option, in a setting, at a level: the errors of each draw."""
    room = _rooms()[configuration["paper"]]
    option = next(one for one in room.options if one.name == configuration["option"])
    setting = _OWN.get((room.paper, configuration["setting"]))
    if setting is None:
        setting = next(one for one in room.settings(quick=False) if one.name == configuration["setting"])
    level, asked = configuration["level"], _all(room)
    drawn = level in room.drawn
    shape = (len(asked), configuration["draws"])
    found = {name: np.full(shape, np.nan) for name in _NUMBERS}
    why = np.full(len(asked), _NOT_ASKED)
    here = [i for i, one in enumerate(asked) if level in option.levels and _is_asked(one.check, level, room)]
    for draw in range(configuration["draws"] if drawn else 1):
        if not here:
            break
        runs = _Runs(option, setting, level, room.levels[level], seed + draw)
        stopped = runs.stopped()
        for i in here:
            one = asked[i]
            if stopped or one.statement.number in option.meaningless:
                why[i] = stopped or _MEANINGLESS
                continue
            why[i] = _DEFINED
            for name, value in _measured(runs, room, one.check, room.levels[level]).items():
                found[name][i, draw] = value
    labels = {"check": [one.label for one in asked], "draw": np.arange(shape[1])}
    arrays = {name: xr.DataArray(values, labels, ("check", "draw")) for name, values in found.items()}
    adapted = option.adapted(setting)
    return {
        **arrays,
        "why": xr.DataArray(why, {"check": labels["check"]}, ("check",)),
        "end": xr.DataArray(float(adapted.t_end)),
    }


def _is_asked(check: Check, level: str, room: Room) -> bool:
    """Whether a check is measured at a level of the table: in place of a flow only where it takes either flow."""
    own = room.levels[level]
    return own in check.levels and (own == level or len(set(check.levels) & set(room.levels.values())) > 1)


class _Runs:
    """The simulations of one option, plain and in the variables of its correction."""

    def __init__(self, option: Option, setting: Any, level: str, stands_for: str, seed: int) -> None:
        self.option, self.level, self._stands_for = option, level, stands_for
        self._seed, self._setting = seed, setting
        self._made: dict[str, _Simulation] = {}
        self.adapted = option.adapted(setting)
        correct = option.corrected
        self.correction: Correction | None = None if correct is None else correct(self.adapted, level)

    def simulated(self, level: str) -> _Simulation:
        """One at a level of the register, for a check: that of the table where it stands for it."""
        own = self.level if level == self._stands_for else level
        if own not in self._made:
            self._made[own] = self.option.simulate(self._setting, own, self._seed)
        return self._made[own]

    def stopped(self) -> int:
        """Why there is no simulation, or 0."""
        try:
            self._made[self.level] = self.option.simulate(self._setting, self.level, self._seed)
        except ValueError:
            return _REFUSED
        except (IntegrationError, DivergenceError):
            return _NO_END
        return _DEFINED


def _measured(runs: _Runs, room: Room, check: Check, level: str) -> dict[str, float]:
    """The numbers of one check on one run, plain and corrected."""
    drawn = runs.level in room.drawn
    plain = _numbers(_Seen(runs.adapted, runs.simulated), room, check, level, drawn)
    found = dict(zip(_NUMBERS[:4], plain, strict=True))
    if runs.correction is not None:
        seen = _Seen(runs.correction.setting, runs.simulated, runs.correction.view)
        found |= zip(_NUMBERS[4:], _numbers(seen, room, check, level, drawn), strict=True)
    return found


def _numbers(seen: _Seen, room: Room, check: Check, level: str, drawn: bool) -> tuple[float, float, float, float]:
    """The error over the run and over its second half, and from when on the check, or its opposite, holds.

    Votes of drawn runs need no times: NaN.
    """
    measure = check.printed if check.corrected is None else check.corrected
    whole = seen.trajectory(level).dataset
    times = whole["time"].values

    def error(first: int, mirror: bool) -> float:
        def view(dataset: xr.Dataset) -> xr.Dataset:
            kept = dataset if first <= 1 else dataset.isel(time=[0, *range(first, dataset.sizes["time"])])
            return room.mirrored(kept) if mirror else kept

        if first <= 1 and not mirror:
            return float(measure(seen, level))
        return float(measure(_Seen(seen.setting, seen.trajectory, view), level))

    with np.errstate(all="ignore"):
        over_all = error(1, False)
        half = max(1, int(np.searchsorted(times, times[-1] / 2)))
        late = error(half, False)
        if drawn:
            return over_all, late, np.nan, np.nan
        if over_all <= check.tolerance:
            return over_all, late, 0.0, np.inf if check.reversible else np.nan
        holds_from = _from(times, lambda first: error(first, False) <= check.tolerance)
        opposite = _from(times, lambda first: error(first, True) <= check.tolerance) if check.reversible else np.nan
    return over_all, late, holds_from, opposite


def _from(times: np.ndarray, holds: Callable[[int], bool]) -> float:
    """The first recorded time from which on to the end something holds; infinite if not at the end."""
    last = times.size - 1
    if not holds(last):
        return np.inf
    low, high = 0, last  # it does not hold from low on (0 is the start, which no check looks at), and does from high on
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(times[high])


# The table


def _table(
    measured: xr.Dataset,
    room: Room,
    asked: Sequence[_Asked],
    chosen: Sequence[Any],
    *,
    quick: bool,
    seed: int,
    made: Mapping[str, str],
) -> xr.Dataset:
    dims = ("check", "option", "setting", "level")
    cells = {name: measured[name].transpose(*dims, "draw").values for name in _NUMBERS}
    why = measured["why"].transpose(*dims).values
    end = measured["end"].transpose(*dims[1:]).values
    levels = measured["level"].values.tolist()
    is_drawn = np.array([level in room.drawn for level in levels])
    counts, p = {}, {}
    for name in ("whole", "late", "corrected", "corrected_late"):
        counts[name] = np.zeros((*why.shape, 2), dtype=int)
        p[name] = np.full(why.shape, np.nan)
        for place in _drawn_cells(why, is_drawn):
            check = asked[place[0]].check
            errors = cells[name][place]
            if np.isnan(cells["corrected"][place]).all() and name.startswith("corrected"):
                continue
            counts[name][place] = votes(errors, check.tolerance, reversible=check.reversible)
            p[name][place] = sign_test(*counts[name][place])
    decided = dict(zip(p, holm(np.stack(list(p.values()))), strict=True))
    verdict = {}
    for form, (error, late, from_, back) in {"plain": _NUMBERS[:4], "corrected": _NUMBERS[4:]}.items():
        verdict[form] = np.full(why.shape, int(Fate.NOT_ASKED))
        for place in zip(*np.nonzero(why >= 0), strict=True):
            verdict[form][place] = _fate(place, asked, why, end, is_drawn, cells, counts, decided, error, late, from_,
                                         back)  # fmt: skip
    with np.errstate(all="ignore"):
        middle = {name: _median(cells[name]) for name in _NUMBERS}
    texts = {option.name: option.text for option in room.options}
    meanings = {"flag_values": [int(fate) for fate in Fate], "flag_meanings": " ".join(fate.name for fate in Fate)}
    return xr.Dataset(
        {
            "verdict": (dims, verdict["plain"].astype("int8"), {"long_name": "what becomes of the check", **meanings}),
            "verdict_corrected": (dims, verdict["corrected"].astype("int8"), {
                "long_name": "what becomes of it in the form that it has under the option", **meanings}),
            "error": (dims, middle["whole"], {"long_name": "relative error, or share of wrong signs"}),
            "late": (dims, middle["late"], {"long_name": "the same over the second half of the run"}),
            "error_corrected": (dims, middle["corrected"], {"long_name": "error in the option's own form"}),
            "late_corrected": (dims, middle["corrected_late"], {"long_name": "the same over the second half"}),
            "holds_from": (dims, middle["holds_from"], {"units": "SGD step"}),
            "reversed_from": (dims, middle["reversed_from"], {"units": "SGD step"}),
            "p": (dims, p["whole"], {"long_name": "two-sided p of the votes of runs"}),
            "p_late": (dims, p["late"], {"long_name": "two-sided p of the votes of second halves of runs"}),
            "votes": ((*dims, "side"), counts["whole"].astype("int16")),
            "votes_late": ((*dims, "side"), counts["late"].astype("int16")),
            "why": (dims, why.astype("int8"), {"long_name": "; ".join(f"{key}: {text}" for key, text in WHY.items())}),
            "margin": _margins(room, asked, chosen),
        },
        {
            "check": measured["check"].values,
            "option": measured["option"].values,
            "setting": measured["setting"].values,
            "level": levels,
            "side": ["for", "against"],
            "statement": ("check", [one.statement.id for one in asked]),
            "tolerance": ("check", [float(one.check.tolerance) for one in asked]),
            "reversible": ("check", [one.check.reversible for one in asked]),
            "text": ("option", [texts[name] for name in measured["option"].values.tolist()]),
        },
        {
            "format": _FORMAT,
            "paper": room.paper,
            "seeds": int(cells["whole"].shape[-1]),
            "seed": seed,
            "quick": int(quick),
            **made,
            "alpha": ALPHA,
            "tests": int(sum((~np.isnan(values)).sum() for values in p.values())),
        },
    )  # fmt: skip


def _margins(room: Room, asked: Sequence[_Asked], settings: Sequence[Any]) -> tuple:
    """The smallest margin of each check's assumptions in each setting at each level, as a variable of the table."""
    levels = list(room.levels.values())  # of the register
    smallest = [
        [
            [min(one.statement.margins(setting, one.check, level).values(), default=np.inf) for level in levels]
            for setting in settings
        ]
        for one in asked
    ]
    return (
        ("check", "setting", "level"),
        np.minimum(smallest, 1e300),
        {"long_name": "smallest margin of the assumptions"},
    )


def _drawn_cells(why: np.ndarray, is_drawn: np.ndarray) -> Iterator[tuple[int, ...]]:
    for place in zip(*np.nonzero(why == _DEFINED), strict=True):
        if is_drawn[place[3]]:
            yield place


def _fate(place, asked, why, end, is_drawn, cells, counts, decided, error, late, from_, back) -> Fate:
    """The verdict in one cell, on one form."""
    corrected = error.startswith("corrected")
    if why[place] != _DEFINED:
        return Fate.NOT_ASKED if corrected else Fate.UNDEFINED
    if corrected and np.isnan(cells["corrected_from"][place]).all() and np.isnan(cells[error][place]).all():
        return Fate.NOT_ASKED
    check = asked[place[0]].check
    if is_drawn[place[3]]:
        return fate_of_votes(
            tuple(counts[error][place]), tuple(counts[late][place]),
            whole_decided=bool(decided[error][place]), late_decided=bool(decided[late][place]),
            wrong=float(np.nanmedian(cells[late][place])) if check.reversible else np.nan,
        )  # fmt: skip
    numbers = {name: float(cells[name][place][0]) for name in (error, from_, back)}
    return fate_of_run(
        numbers[error], check.tolerance, holds_from=numbers[from_], reversed_from=numbers[back], end=end[place[1:]]
    )


def _median(values: np.ndarray) -> np.ndarray:
    """Over the draws, where there is any."""
    some = ~np.isnan(values).all(axis=-1)
    found = np.full(values.shape[:-1], np.nan)
    found[some] = np.nanmedian(values[some], axis=-1)
    return found


def load(path: str | os.PathLike) -> xr.Dataset:
    """Read a table that the command ``yzflow survival`` wrote.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written, or it holds something else.
    FileNotFoundError
        If there is none.
    """
    return load_dataset(path, _FORMAT, "a survival table")


def label(table: xr.Dataset, **cell: str) -> Label:
    """Grounds of a verdict of the table: the cell of these labels (check, option, setting, level).

    Raises
    ------
    ValueError
        If the cell was not asked.
    """
    checks.instance("table", table, xr.Dataset)
    for name in ("check", "option", "setting", "level"):
        if name not in cell:
            raise checks.reject("cell", f"name its {name}", ", ".join(cell) or "nothing")
        checks.one_of(name, cell[name], table[name].values.tolist())
    one = table.sel(cell)
    fate = Fate(int(one["verdict"]))
    if fate is Fate.NOT_ASKED:
        raise checks.reject("cell", "be one that is asked", ", ".join(cell.values()))
    if fate is Fate.UNDEFINED:
        return Label(Trust.NOT_EXAMINED, prose=(WHY[int(one["why"])],))
    where: dict[str, object] = {**cell, "error": float(one["error"]), "tolerance": float(one["tolerance"])}
    if not np.isnan(one["p"]):
        where |= {"seeds": int(table.attrs["seeds"]), "p": float(one["p"]), "p of second halves": float(one["p_late"]),
                  "family-wise error rate": float(table.attrs["alpha"])}  # fmt: skip
    if fate is Fate.UNDECIDED:
        return Label(Trust.NOT_EXAMINED, where, prose=(f"too few seeds: {table.attrs['seeds']}",))
    failures = () if fate in (Fate.HOLDS, Fate.LATER) else (f"{cell['check']}, {fate.words}",)
    return Label(Trust.MEASURED, where, failures=failures)
