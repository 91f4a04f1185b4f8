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
class Asked:
    """A check with its statement."""

    statement: Statement
    check: Check

    @property
    def label(self) -> str:
        return f"{self.statement.number}: {self.check.name}"


def is_asked(check: Check, level: str, room: Room) -> bool:
    """Whether a check is measured at a level of the table: in place of a flow only where it takes either flow."""
    of_register = room.levels[level]
    return of_register in check.levels and (
        of_register == level or len(set(check.levels) & set(room.levels.values())) > 1
    )


class Seen:
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
        """The simulation at a level of the register, for a check: that of the table where it stands for it."""
        name = self.level if level == self._stands_for else level
        if name not in self._made:
            self._made[name] = self.option.simulate(self._setting, name, self._seed)
        return self._made[name]

    def stopped(self) -> int:
        """Why there is no simulation, or 0."""
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
    """The first recorded time from which on to the end something holds; infinite if not at the end."""
    last = times.size - 1
    if not holds(last):
        return np.inf
    low, high = 0, last  # it does not hold from low on (0 is the start, which no check looks at), and does from high on
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(times[high])
