"""Verdicts from errors, and the rows of the audit."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dynamics.support.rounded import faithful
from theory.statements import Statement
from theory.trust import Label
from yzflow.audits.enclosing import Decided

_EXACT = 1e-8
NO_CLAIM = "no claim"  # of a check where the statement does not speak


class Verdict(enum.IntEnum):
    """Verdict on a statement, from best to worst.

    Attributes
    ----------
    EXACT
        The printed form holds up to rounding.
    WITHIN
        The printed form holds within the tolerance.
    CORRECTED
        The corrected form holds, the printed form does not.
    FAILS
        No form in the register holds.
    """

    EXACT = 0
    WITHIN = 1
    CORRECTED = 2
    FAILS = 3


def broken(margins: Mapping[str, float]) -> list[str]:
    """The assumptions whose margin is below one; an undefined margin (NaN) is broken, too."""
    return [text for text, margin in margins.items() if not margin >= 1]


def judge(error: float | None, tolerance: float) -> Verdict:
    """The verdict on one form of a statement, from its error; None and NaN fail."""
    if error is None or not math.isfinite(error) or error > tolerance:
        return Verdict.FAILS
    return Verdict.EXACT if error <= _EXACT else Verdict.WITHIN


def verdict(printed: float, corrected: float | None, tolerance: float) -> Verdict:
    """The verdict on a statement, from the errors of its printed and corrected forms."""
    as_printed = judge(printed, tolerance)
    if as_printed is Verdict.FAILS and judge(corrected, tolerance) is not Verdict.FAILS:
        return Verdict.CORRECTED
    return as_printed


def amount(error: float, tolerance: float = math.inf) -> str:
    """A relative error in words: per cent below ten, then a multiple; never rounded across the tolerance."""
    if not math.isfinite(error):
        return "an undefined amount" if math.isnan(error) else "an amount where zero is expected"
    if error >= 10:
        return f"{float(f'{error:.2g}'):,.0f} times" if error < 1e9 else f"{error:.2g} times"
    if error >= 1 and not 1 <= tolerance < math.inf:
        return f"{100 * error:,.0f}%"
    return f"{faithful(100 * error, lambda percent: percent <= 100 * tolerance)}%"


def describe(error: float | None, tolerance: float) -> str:
    """Words for one form in a table: "exact", "within 2%", "misses by 50%", or "-" for a missing form."""
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
        True if every assumption of the statement holds in the setting.
    margins : dict
        The margin of each assumption.
    printed, corrected : float or None
        Errors of the two forms (None if there is no second form).
    tolerance : float
        Largest error that counts as holding.
    expected : bool
        True if the statement should hold here.
    label : Label
        Label of the measurement or enclosure, with its scope.
    decided : Decided or None
        Decision of ball arithmetic for every time; None if nothing was enclosed, or the check has no claim for it.
    refuted : bool
        True if balls prove the check false within the measured time.
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
        """Error of the corrected form if there is one, else of the printed form."""
        return self.printed if self.corrected is None else self.corrected

    @property
    def alarming(self) -> bool:
        """True if the statement should hold here and fails, in its corrected form if it has one."""
        return self.expected and (self.refuted or judge(self.error, self.tolerance) is Verdict.FAILS)

    @property
    def words(self) -> str:
        """The verdict in words, with its error."""
        if self.verdict is Verdict.EXACT:
            return "holds exactly"
        if self.verdict is Verdict.WITHIN:
            return f"holds within {amount(self.printed, self.tolerance)}"
        return "holds with the correction" if self.verdict is Verdict.CORRECTED else "fails"

    @property
    def forms(self) -> tuple[str, str, str]:
        """Words for three columns: printed form, corrected form, expectation."""
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
    """An object with rows and statements, such as `yzflow.AuditReport`."""

    @property
    def table(self) -> Sequence[Row]: ...

    @property
    def statements(self) -> Sequence[Statement]: ...


@dataclass(frozen=True)
class VerdictRow:
    """A check at one level, over all settings.

    Attributes
    ----------
    statement, check, level : str
    rows : tuple of Row
        One for each setting.
    everywhere : bool
        Count settings outside the assumptions, too.
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
        """True if the statement fails at a setting where it should hold."""
        return any(row.alarming for row in self.rows)

    @property
    def words(self) -> list[str]:
        """The check, the level, the largest error of each form, the expectation, and the verdict outside."""
        flag = " <- should hold" if self.alarming else ""
        return [self.check, self.level, *_forms(self._where(True)), _worst(self._where(False)) + flag]

    @property
    def failure(self) -> str:
        """How far the statement misses where it should hold, and in which setting; "" if it holds."""
        worst = max(
            (row for row in self.rows if row.alarming),
            key=lambda row: (row.error != row.error, row.error),
            default=None,
        )
        if worst is None:
            return ""
        misses = judge(worst.error, worst.tolerance) is Verdict.FAILS
        words = describe(worst.error, worst.tolerance) if misses else "false by enclosure"
        return f"{words} in {worst.setting}"

    @property
    def in_balls(self) -> str:
        """The weakest decision of balls inside the assumptions, and the number of settings that they decide."""
        inside = self._where(True)
        findings = [row.decided for row in inside if row.decided is not None]
        if not findings:
            return "-"
        weakest = min(findings, key=lambda decided: ((False, None, True).index(decided.value), decided.reached))
        count = sum(decided.value is not None for decided in findings)
        return f"{weakest.words} ({count} of {len(inside)} decided)"

    @property
    def label(self) -> Label:
        """The weakest label over all settings; enclosures reach to the earliest time among them."""
        shown = max(self.rows, key=lambda row: (row.alarming, row.label.trust, row.error))
        scope = dict(shown.label.scope)
        del scope["setting"]
        if "every t up to" in scope and not shown.alarming:
            scope["every t up to"] = min(row.label.scope["every t up to"] for row in self.rows)  # type: ignore[type-var]
        return replace(shown.label, scope={**scope, "settings": tuple(row.setting for row in self.rows)})


def verdict_rows(table: Sequence[Row], *, everywhere: bool = False) -> list[VerdictRow]:
    """Rows merged over settings, one for each statement, check and level."""
    merged: dict[tuple[str, str, str], list[Row]] = {}
    for row in table:
        merged.setdefault((row.statement, row.check, row.level), []).append(row)
    return [VerdictRow(*key, tuple(rows), everywhere) for key, rows in merged.items()]


def _forms(rows: Sequence[Row]) -> tuple[str, str, str]:
    """The largest errors of the printed and the corrected form, and the expectation, in words."""
    if not rows:
        return "-", "-", NO_CLAIM
    tolerance = rows[0].tolerance
    corrected = [row.corrected for row in rows if row.corrected is not None]
    return (
        describe(_largest([row.printed for row in rows]), tolerance),
        describe(_largest(corrected) if corrected else None, tolerance),
        claim(tolerance) if any(row.expected for row in rows) else NO_CLAIM,
    )


def _largest(errors: Sequence[float]) -> float:
    """The largest error; NaN counts as the largest."""
    return max(errors, key=lambda error: (error != error, error))


def _worst(rows: Sequence[Row]) -> str:
    """The verdict of the worst row."""
    worst = max(rows, key=lambda row: (row.verdict, row.error), default=None)
    if worst is None:
        return "-"
    return worst.words + (f" (by {amount(worst.error)})" if worst.verdict is Verdict.FAILS else "")


def claim(tolerance: float) -> str:
    """The expectation in words: "exact" or "within 2%"."""
    return "exact" if tolerance <= _EXACT else f"within {amount(tolerance)}"
