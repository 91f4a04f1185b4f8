"""Verdicts on a statement from numbers, and the rows of the audit that hold them."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dynamics.support.rounded import faithful
from theory.statements import Statement
from theory.trust import Label
from yzflow.audits.enclosing import Decided

_EXACT = 1e-8


class Verdict(enum.IntEnum):
    """Whether a statement holds, from best to worst.

    Attributes
    ----------
    EXACT
        As printed, up to rounding.
    WITHIN
        As printed, within the tolerance.
    CORRECTED
        Not as printed, but in the corrected form.
    FAILS
        In no form that the register has.
    """

    EXACT = 0
    WITHIN = 1
    CORRECTED = 2
    FAILS = 3


def judge(error: float | None, tolerance: float) -> Verdict:
    """The verdict on one form of a statement, from its error; one that is missing or no number fails."""
    if error is None or not math.isfinite(error) or error > tolerance:
        return Verdict.FAILS
    return Verdict.EXACT if error <= _EXACT else Verdict.WITHIN


def verdict(printed: float, corrected: float | None, tolerance: float) -> Verdict:
    """The verdict on a statement, from the errors of the printed and, where there is one, the corrected form."""
    as_printed = judge(printed, tolerance)
    if as_printed is Verdict.FAILS and judge(corrected, tolerance) is not Verdict.FAILS:
        return Verdict.CORRECTED
    return as_printed


def amount(error: float, tolerance: float = math.inf) -> str:
    """A relative error for people: in per cent up to ten, then as a multiple; never rounded across the tolerance."""
    if not math.isfinite(error):
        return "an undefined amount" if math.isnan(error) else "an amount where zero is expected"
    if error >= 10:
        return f"{float(f'{error:.2g}'):,.0f} times" if error < 1e9 else f"{error:.2g} times"
    if error >= 1 and not 1 <= tolerance < math.inf:
        return f"{100 * error:,.0f}%"
    return f"{faithful(100 * error, lambda percent: percent <= 100 * tolerance)}%"


def describe(error: float | None, tolerance: float) -> str:
    """Word for one form in a table: "exact", "within 2%", "misses by 50%", or "-" where there is no such form."""
    if error is None:
        return "-"
    outcome = judge(error, tolerance)
    if outcome is Verdict.FAILS:
        return f"misses by {amount(error, tolerance)}"
    return "exact" if outcome is Verdict.EXACT else f"within {amount(error, tolerance)}"


@dataclass(frozen=True)
class Row:
    """One cell of the audit: a check of a statement, at one level, in one setting.

    Attributes
    ----------
    statement, check, level, setting : str
    inside : bool
        Whether every assumption of the statement holds in the setting.
    margins : dict
        The margin of each assumption.
    printed, corrected : float or None
        Errors of the two forms (None where there is no second form).
    tolerance : float
        Up to which error a form counts as holding.
    expected : bool
        Whether the statement should hold here.
    label : Label
        What was measured or enclosed here, with its scope.
    decided : Decided or None
        What balls say of every time; None where nothing was enclosed, or the check has no claim for them.
    refuted : bool
        Whether they prove it false within the time that was measured.
    """

    statement: str
    check: str
    level: str
    setting: str
    inside: bool
    margins: dict[str, float]
    printed: float
    corrected: float | None
    tolerance: float
    expected: bool
    label: Label
    decided: Decided | None = None
    refuted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on the statement here."""
        return verdict(self.printed, self.corrected, self.tolerance)

    @property
    def error(self) -> float:
        """Error of the form that the register stands for: the corrected one where there is one."""
        return self.printed if self.corrected is None else self.corrected

    @property
    def alarming(self) -> bool:
        """A statement that should hold and does not, in the form that the register stands for."""
        return self.expected and (self.refuted or judge(self.error, self.tolerance) is Verdict.FAILS)

    @property
    def words(self) -> str:
        """The verdict for people, with the number that belongs to it."""
        if self.verdict is Verdict.EXACT:
            return "holds exactly"
        if self.verdict is Verdict.WITHIN:
            return f"holds within {amount(self.printed, self.tolerance)}"
        return "holds with the correction" if self.verdict is Verdict.CORRECTED else "fails"

    @property
    def forms(self) -> tuple[str, str, str]:
        """Words for the printed form, the corrected one and what is expected, for three columns."""
        return _forms([self])

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            **{name: value for name, value in vars(self).items() if name not in ("label", "decided", "refuted")},
            "verdict": self.words,
            "outcome": self.verdict.name,
            "forms": dict(zip(("printed", "corrected", "expected"), self.forms, strict=True)),
            "alarming": self.alarming,
            "label": self.label.as_dict(),
            **({} if self.decided is None else {"decided": self.decided.as_dict()}),
        }


class Table(Protocol):
    """An object with rows, as `yzflow.AuditReport` is."""

    @property
    def table(self) -> Sequence[Row]: ...

    @property
    def statements(self) -> Sequence[Statement]: ...


@dataclass(frozen=True)
class VerdictRow:
    """One row of a verdict: a check at a level, over all settings.

    Attributes
    ----------
    statement, check, level : str
    rows : tuple of Row
        One for each setting.
    everywhere : bool
        Whether settings outside the assumptions count as those inside do.
    """

    statement: str
    check: str
    level: str
    rows: tuple[Row, ...]
    everywhere: bool = False

    def _where(self, inside: bool) -> list[Row]:
        return [row for row in self.rows if (row.inside or self.everywhere) is inside]

    @property
    def alarming(self) -> bool:
        """A setting at which the statement should hold and does not."""
        return any(row.alarming for row in self.rows)

    @property
    def words(self) -> list[str]:
        """The check, the level, the largest error of each form, what is expected, and the verdict outside."""
        flag = " <- should hold" if self.alarming else ""
        return [self.check, self.level, *_forms(self._where(True)), _worst(self._where(False)) + flag]

    @property
    def in_balls(self) -> str:
        """Findings of balls inside the assumptions: the weakest and earliest, and how many settings they decide."""
        inside = self._where(True)
        findings = [row.decided for row in inside if row.decided is not None]
        if not findings:
            return "-"
        weakest = min(findings, key=lambda decided: ((False, None, True).index(decided.value), decided.reached))
        count = sum(decided.value is not None for decided in findings)
        return f"{weakest.words} ({count} of {len(inside)} decided)"

    @property
    def label(self) -> Label:
        """The weakest and worst label, of all settings; where all are enclosed, up to the earliest time of any."""
        shown = max(self.rows, key=lambda row: (row.alarming, row.label.trust, row.error))
        scope = dict(shown.label.scope)
        del scope["setting"]
        if "every t up to" in scope and not shown.alarming:
            scope["every t up to"] = min(row.label.scope["every t up to"] for row in self.rows)  # type: ignore[type-var]
        return replace(shown.label, scope={**scope, "settings": tuple(row.setting for row in self.rows)})


def verdict_rows(table: Sequence[Row], *, everywhere: bool = False) -> list[VerdictRow]:
    """The rows of each statement, check and level as one."""
    merged: dict[tuple[str, str, str], list[Row]] = {}
    for row in table:
        merged.setdefault((row.statement, row.check, row.level), []).append(row)
    return [VerdictRow(*key, tuple(rows), everywhere) for key, rows in merged.items()]


def _forms(rows: Sequence[Row]) -> tuple[str, str, str]:
    """The largest error of the printed form and of the corrected one, and what is expected, in words."""
    if not rows:
        return "-", "-", "nothing"
    tolerance = rows[0].tolerance
    corrected = [row.corrected for row in rows if row.corrected is not None]
    return (
        describe(_largest([row.printed for row in rows]), tolerance),
        describe(_largest(corrected) if corrected else None, tolerance),
        claim(tolerance) if any(row.expected for row in rows) else "nothing",
    )


def _largest(errors: Sequence[float]) -> float:
    """The largest error, where one that is no number is larger than any."""
    return max(errors, key=lambda error: (error != error, error))


def _worst(rows: Sequence[Row]) -> str:
    """The verdict of the worst row."""
    worst = max(rows, key=lambda row: (row.verdict, row.error), default=None)
    if worst is None:
        return "-"
    return worst.words + (f" (by {amount(worst.error)})" if worst.verdict is Verdict.FAILS else "")


def claim(tolerance: float) -> str:
    """Expectation of a form that should hold."""
    return "exact" if tolerance <= _EXACT else f"within {amount(tolerance)}"
