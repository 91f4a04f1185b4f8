"""Cells of the table of survival: the errors of one check under one option, at one level in one setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from dynamics import DivergenceError, IntegrationError, Run, Trajectory
from theory.statements import Check, Statement
from yzflow.audits.options import Correction, Option, Room

_Simulation: TypeAlias = Trajectory | Run
# Why a cell has no number.
DEFINED, REFUSED, NO_END, MEANINGLESS, NOTHING = range(5)
WHY = {
    REFUSED: "the level refuses the option",
    NO_END: "training came to no end",
    MEANINGLESS: "the statement speaks of what is not there",
    NOTHING: "these data have nothing that the check speaks of",
}
# A check that is not asked at a level.
NOT_ASKED = -1
NUMBERS = ("whole", "late", "holds_from", "reversed_from", "corrected", "corrected_late", "corrected_from",
            "corrected_reversed_from")  # fmt: skip


@dataclass(frozen=True)
class AskedCheck:
    """A check with its statement."""

    statement: Statement
    check: Check

    @property
    def label(self) -> str:
        return f"{self.statement.number}: {self.check.name}"


def is_asked(check: Check, level: str, room: Room) -> bool:
    """True if the table asks a check at a level.

    A level of the table may stand for a flow of the register. It does so only for checks that take either flow.
    """
    of_register = room.levels[level]
    return of_register in check.levels and (
        of_register == level or len(set(check.levels) & set(room.levels.values())) > 1
    )


class Seen:
    """The runs of a setting, by level, for checks to read; an optional ``view`` changes their variables."""

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


class Runs:
    """The simulations of one option, plain and in the variables of its correction."""

    def __init__(self, option: Option, setting: Any, level: str, stands_for: str, seed: int) -> None:
        self.option, self.level, self._stands_for = option, level, stands_for
        self._seed, self._setting = seed, setting
        self._made: dict[str, _Simulation] = {}
        self.adapted = option.adapted(setting)
        correct = option.corrected
        self.correction: Correction | None = None if correct is None else correct(self.adapted, level)

    def simulated(self, level: str) -> _Simulation:
        """The simulation at a level of the register, or at the table's level that replaces it."""
        name = self.level if level == self._stands_for else level
        if name not in self._made:
            self._made[name] = self.option.simulate(self._setting, name, self._seed)
        return self._made[name]

    def stopped(self) -> int:
        """Simulate; a reason from `WHY` if that failed, else 0."""
        try:
            self._made[self.level] = self.option.simulate(self._setting, self.level, self._seed)
        except ValueError:
            return REFUSED
        except (IntegrationError, DivergenceError):
            return NO_END
        return DEFINED


def measured_by(runs: Runs, room: Room, check: Check, level: str) -> dict[str, float]:
    """The numbers of one check on one run, plain and corrected."""
    drawn = runs.level in room.drawn
    plain = _numbers(Seen(runs.adapted, runs.simulated), room, check, level, drawn)
    numbers = dict(zip(NUMBERS[:4], plain, strict=True))
    if runs.correction is not None:
        seen = Seen(runs.correction.setting, runs.simulated, runs.correction.view)
        numbers |= zip(NUMBERS[4:], _numbers(seen, room, check, level, drawn), strict=True)
    return numbers


def _numbers(seen: Seen, room: Room, check: Check, level: str, drawn: bool) -> tuple[float, float, float, float]:
    """Errors over the run and over its second half, then the times from which the check and its opposite hold.

    Drawn runs vote by their errors alone, so both times are NaN for them.
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
        return float(measure(Seen(seen.setting, seen.trajectory, view), level))

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
    """First recorded time from which a condition holds to the end; infinite if it fails at the end."""
    last = times.size - 1
    if not holds(last):
        return np.inf
    low, high = 0, last  # false from low, true from high; no check looks at the start, 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(times[high])
