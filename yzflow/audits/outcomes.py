"""The verdict on a statement in four columns: as printed, corrected in the theory, under the true gradient, in SGD.

One model for a page's badge, `yzflow.check`, the index, the card for a review, the audit and the errata. A verdict is
made from the rows inside the assumptions and from the proofs of one run, and says how large an error was and where.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dynamics.support.rounded import faithful, margin
from theory import layout
from theory.statements import Check, Statement
from theory.trust import Label
from yzflow.audits.verdicts import Row, Verdict, amount, judge

__all__ = ["COLUMNS", "MISSED", "PRINTED", "Absent", "Column", "Outcome", "Part", "four_columns"]

PRINTED = "as printed"
COLUMNS = (PRINTED, *layout.COLUMNS)


class Outcome(enum.Enum):
    """Finding of a run on a statement, or on a part of it, in one column.

    Attributes
    ----------
    HOLDS
        Within the tolerance at every setting inside the assumptions, or by its proof.
    FAILS
        Not at one of them at least, or its proof does not hold.
    DIFFERS
        What is printed misses there, and the errata have a remark on it and no error.
    REFUTED
        False: in balls at a setting, or, of a conjecture, by what is proved against it.
    NOT_MET
        Nothing was said: what was run met a hypothesis of it nowhere.
    STOPPED
        The training came to no end.
    NOTHING
        There was nothing to compare: the data have nothing that it speaks of, or nothing moved.
    NOT_RUN
        It could have been run, and was not.
    NOT_EXAMINED
        Nothing here asks for it.
    """

    HOLDS = "holds"
    FAILS = "fails"
    DIFFERS = "differs"
    REFUTED = "refuted"
    NOT_MET = "not met"
    STOPPED = "stopped"
    NOTHING = "nothing to compare"
    NOT_RUN = "not run"
    NOT_EXAMINED = "not examined"


# From the one that decides a column to the one that does so least.
_ORDER = (
    Outcome.REFUTED,
    Outcome.FAILS,
    Outcome.DIFFERS,
    Outcome.HOLDS,
    Outcome.NOT_MET,
    Outcome.STOPPED,
    Outcome.NOTHING,
    Outcome.NOT_RUN,
    Outcome.NOT_EXAMINED,
)

MISSED = (Outcome.REFUTED, Outcome.FAILS, Outcome.DIFFERS)


@dataclass(frozen=True)
class Absent:
    """A check at a level that gave no number.

    Attributes
    ----------
    check, level : str
    outcome : Outcome
        One of STOPPED, NOTHING and NOT_RUN.
    why : str
        The reason, in words.
    time : float or None
        When the training stopped, in steps.
    """

    check: str
    level: str
    outcome: Outcome
    why: str
    time: float | None = None


@dataclass(frozen=True)
class Part:
    """Finding of one check, or of the proof, in a column.

    Attributes
    ----------
    says : str
        What is checked, as a noun.
    outcome : Outcome
    size : float or None
        The largest error; None of a proof, and of what was not run.
    share : bool
        Whether the size is a share of places with the wrong sign.
    settings, levels : tuple of str
        Where it was measured.
    clauses : str
        How many of the statement's clauses a proof is of, in words; empty if it is of all.
    beyond : bool
        Whether it is of what holds beyond the printed form, under assumptions of its own.
    unmet : tuple of (str, float), optional
        Of what was not met: an assumption that failed, with its margin, at the setting that came nearest.
    stopped : float, optional
        When the training stopped, in steps.
    """

    says: str
    outcome: Outcome
    size: float | None = None
    share: bool = False
    settings: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    clauses: str = ""
    beyond: bool = False
    unmet: tuple[str, float] | None = None
    stopped: float | None = None

    @property
    def by(self) -> str:
        """How far it misses, for a sentence."""
        if self.size is None:
            return ""
        if not math.isfinite(self.size):
            return f"by {amount(self.size)}"
        if not self.share:
            return f"by up to {amount(self.size)}"
        return "in all places" if self.size == 1 else f"in up to {faithful(self.size, _some)} of all places"

    @property
    def why(self) -> str:
        """Circumstances of a part that differs, was not met or stopped, for a sentence."""
        if self.outcome is Outcome.DIFFERS:
            return "a remark"
        if self.unmet is not None:
            return f"margin {margin(self.unmet[1], 2)}"
        return "" if self.stopped is None else f"at t = {self.stopped:,.4g}"


def _some(share: float) -> bool:
    return share < 1


@dataclass(frozen=True)
class Column:
    """The verdict on a statement in one of the `COLUMNS`.

    Attributes
    ----------
    name : str
    parts : tuple of Part
        For each check that is asked there, and for the proof.
    scope : str
        Where it is so, where that is not the settings: of a refuted conjecture.
    reason : str
        Why nothing was found, where nothing was.
    about : str
        What the outcome is of, where that is not the statement: of a refuted conjecture.
    where : str
        In place of `COLUMNS`, the words before what was found: of a paper that we have not in print.
    """

    name: str
    parts: tuple[Part, ...] = ()
    scope: str = ""
    reason: str = ""
    about: str = ""
    where: str = ""

    @property
    def title(self) -> str:
        """Name of the column on a page of this statement alone."""
        return self.where or self.name

    @property
    def outcome(self) -> Outcome:
        """The worst of its parts.

        A sharper part that holds never hides one that fails, and one of what holds beyond the printed form none whose
        hypothesis was not met.
        """
        outcomes = {part.outcome for part in self.parts}
        if Outcome.NOT_MET in outcomes and all(part.beyond for part in self.parts if part.outcome is Outcome.HOLDS):
            outcomes.discard(Outcome.HOLDS)
        return next((outcome for outcome in _ORDER if outcome in outcomes), Outcome.NOT_EXAMINED)

    @property
    def deciding(self) -> tuple[Part, ...]:
        """The parts that made the outcome what it is."""
        return tuple(part for part in self.parts if part.outcome is self.outcome)

    @property
    def size(self) -> Part | None:
        """The part with the largest error among the deciding ones."""
        sized = [part for part in self.deciding if part.size is not None]
        return max(sized, key=lambda part: (part.size != part.size, part.size), default=None)

    @property
    def words(self) -> str:
        """For a table: the outcome, with how far it misses and the scope."""
        size = self.size
        missed = self.outcome in MISSED and size is not None
        by = f" {size.by}" if missed and size is not None else ""
        scope = f" here, {self.scope}" if self.scope else ""
        about = f"{self.about} " if self.about and self.outcome in (Outcome.HOLDS, Outcome.FAILS) else ""
        why = next((f" ({part.why})" for part in self.deciding if part.why), "")
        return f"{about}{self.outcome.value}{scope}{by}{why}"

    @property
    def under(self) -> str:
        """The words under the column's name in a table of several papers, with what is meant where that differs."""
        return f"{self.where}: {self.words}" if self.where else self.words

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "title": self.title,
            "outcome": self.outcome.value,
            "words": self.words,
            "scope": self.scope,
            "reason": self.reason,
            "parts": [
                {
                    "says": part.says,
                    "outcome": part.outcome.value,
                    "size": part.size,
                    "settings": list(part.settings),
                    "levels": list(part.levels),
                    "unmet": None if part.unmet is None else list(part.unmet),
                    "stopped": part.stopped,
                }
                for part in self.parts
            ],
        }


@dataclass(frozen=True)
class _Measured:
    """Findings of a run on a statement: its rows by check, and what gave no number."""

    rows: dict[Check, list[Row]]
    absent: Sequence[Absent]
    everywhere: bool
    ran: bool

    def part(self, check: Check, levels: Sequence[str], *, printed: bool) -> Part:
        """The finding of a check at some levels."""
        says, beyond = check.says or check.name, check.suffices is not None
        of_levels = [row for row in self.rows[check] if row.level in levels]
        rows = [row for row in of_levels if self.everywhere or row.inside]
        if not rows:
            if of_levels:
                return Part(says, Outcome.NOT_MET, beyond=beyond, unmet=_unmet(of_levels))
            gone = [entry for entry in self.absent if entry.check == check.name and entry.level in levels]
            if gone:
                worst = min(gone, key=lambda entry: _ORDER.index(entry.outcome))
                return Part(says, worst.outcome, levels=(worst.level,), beyond=beyond, stopped=worst.time)
            return Part(says, Outcome.NOT_RUN if self.ran or levels else Outcome.NOT_EXAMINED, beyond=beyond)
        error = max((row.printed if printed else row.error for row in rows), key=lambda error: (error != error, error))
        outcome = Outcome.FAILS if judge(error, check.tolerance) is Verdict.FAILS else Outcome.HOLDS
        if not printed and any(row.refuted for row in rows):
            outcome = Outcome.REFUTED
        settings = tuple(dict.fromkeys(row.setting for row in rows))
        named = tuple(dict.fromkeys(row.level for row in rows))
        return Part(says, outcome, float(error), check.reversible, settings, named, beyond=beyond)


def _unmet(rows: Sequence[Row]) -> tuple[str, float] | None:
    """The assumption of the least margin, at the first setting that breaks the fewest."""
    known = [row.margins for row in rows if row.margins]
    nearest = min(known, key=lambda margins: sum(not margin >= 1 for margin in margins.values()), default=None)
    return None if nearest is None else min(nearest.items(), key=lambda entry: entry[1])


def four_columns(
    statement: Statement,
    rows: Sequence[Row],
    proofs: Sequence[Label],
    *,
    everywhere: bool = False,
    absent: Sequence[Absent] = (),
) -> tuple[Column, ...]:
    """The verdict on a statement in each of the `COLUMNS`.

    Parameters
    ----------
    statement : Statement
    rows : sequence of Row
        Those of an audit, of this statement. A part with rows outside its assumptions alone is not met.
    proofs : sequence of Label
        What its proofs prove in the same run; none where they were not run.
    everywhere : bool
        Whether rows outside the assumptions count as those inside do.
    absent : sequence of Absent
        Checks that gave no number.
    """
    every = tuple(level for check in statement.checks for level in check.levels)
    # A statement from elsewhere has one column for all its levels.
    levels = layout.columns(statement.paper)
    if not any(levels.values()):  # of a paper that is not in the table
        levels |= {"theory": every}
    by_check = {check: [row for row in rows if row.check == check.name] for check in statement.checks}
    measured = _Measured(by_check, absent, everywhere, bool(rows or proofs))
    printed = _printed(statement, measured, proofs)
    about = "what refutes it" if statement.refuted else ""
    others = [
        Column(
            name,
            (*_parts(measured, of_column), *(_proved(statement, proofs) if name == "theory" else ())),
            about=about,
        )
        for name, of_column in levels.items()
    ]
    return (printed, *others)


def _printed(statement: Statement, measured: _Measured, proofs: Sequence[Label]) -> Column:
    """Result of the printed form, or of the one in our source of the paper, where the statement should hold."""
    if statement.own:
        return Column(PRINTED, reason="it is ours, and nothing is printed")
    form = statement.source.form
    where = statement.source.where if statement.source.where != PRINTED else ""
    if statement.refuted:
        outcome = Outcome.NOT_RUN
        if measured.ran:
            rows = [row for rows in measured.rows.values() for row in rows]
            held = all(label.holds for label in proofs) and not any(row.alarming for row in rows)
            outcome = Outcome.REFUTED if held else Outcome.FAILS
            if not proofs and not any(row.inside for row in rows):
                outcome = Outcome.NOT_MET
        scope = statement.refuted if outcome in (Outcome.REFUTED, Outcome.FAILS) else ""
        return Column(PRINTED, (Part("the conjecture", outcome),), scope, where=where)
    parts = tuple(
        _classed(statement, check, measured)
        for check in measured.rows
        if check.expected and check.suffices is None  # or what holds beyond the printed form
    )
    if statement.corrected is None:
        return Column(PRINTED, (*parts, *_proved(statement, proofs)), where=where)
    if not measured.ran:
        return Column(PRINTED, (*parts, Part(f"the {form}", Outcome.NOT_RUN)), where=where)
    reason = "" if parts else f"no check sees the {form}: what is wrong say the errata"
    return Column(PRINTED, parts, reason=reason, where=where)


def _classed(statement: Statement, check: Check, measured: _Measured) -> Part:
    """The finding on what is printed: no failure where the corrected form holds and the errata have a remark alone."""
    printed, corrected = (measured.part(check, check.expected, printed=form) for form in (True, False))
    remarked = corrected.outcome is Outcome.HOLDS and not statement.accuses(check)
    return replace(printed, outcome=Outcome.DIFFERS) if remarked and printed.outcome is Outcome.FAILS else printed


def _parts(measured: _Measured, levels: Sequence[str]) -> Iterable[Part]:
    """Findings of each check at the levels of a column, in the form that the register stands for."""
    for check in measured.rows:
        asked = [level for level in levels if level in check.levels]
        wanted = [level for level in asked if level in check.expected] or asked
        if wanted:
            yield measured.part(check, wanted, printed=False)


def _proved(statement: Statement, proofs: Sequence[Label]) -> tuple[Part, ...]:
    if not statement.proofs:
        return ()
    if not proofs:
        return (Part("the proof", Outcome.NOT_RUN),)
    done = sum(any(label.clause == clause.name for label in proofs) for clause in statement.clauses)
    of = len(statement.clauses)
    some = "" if done >= of else f"{done} of {of} clauses"
    says = f"the proof of {some}" if some else "the proof"
    return (Part(says, Outcome.HOLDS if all(label.holds for label in proofs) else Outcome.FAILS, clauses=some),)
