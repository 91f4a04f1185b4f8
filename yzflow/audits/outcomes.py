"""The verdict on a statement in four columns: as printed, corrected in the theory, under the true gradient, in SGD.

One model for a page's badge, `yzflow.check`, the index, the card for a review, the audit and the errata. A verdict is
made from the rows inside the assumptions and from the proofs of one run, and says how large an error was and where.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dynamics import DivergenceError, IntegrationError
from dynamics.support.rounded import faithful, margin
from theory import layout
from theory.statements import Check, Statement
from theory.trust import Label, Trust
from yzflow.audits.verdicts import Row, Verdict, amount, broken, judge

__all__ = ["COLUMNS", "MISSED", "PRINTED", "Absent", "Column", "Outcome", "Part", "four_columns"]

PRINTED = "as printed"
COLUMNS = (PRINTED, *layout.COLUMNS)


class Outcome(enum.Enum):
    """Outcome for a statement, or for a part of it, in one column.

    Attributes
    ----------
    HOLDS
        It holds within the tolerance at every setting inside the assumptions, or its proof holds.
    FAILS
        It misses the tolerance at a setting inside the assumptions, or its proof fails.
    DIFFERS
        The printed form misses the tolerance, but the errata have only a remark on it, no error.
    REFUTED
        It is false: by ball arithmetic at a setting, or, for a conjecture, by a proof.
    NOT_MET
        No setting met its hypotheses.
    STOPPED
        Training failed before its end.
    NOTHING
        The data have nothing to compare, or nothing moved.
    NOT_RUN
        It has checks or a proof, which were not run.
    NOT_EXAMINED
        It has neither checks nor a proof in this column.
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


# The first outcome in this order that a part has is the column's.
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
    """A check without a number at a level.

    Attributes
    ----------
    check, level : str
    outcome : Outcome
        One of STOPPED, NOTHING and NOT_RUN.
    why : str
        The reason, in words.
    time : float or None
        Step at which training stopped.
    setting, statement : str
        In an audit of several: the setting that gave no number, and the id of the statement.
    """

    check: str
    level: str
    outcome: Outcome
    why: str
    time: float | None = None
    setting: str = ""
    statement: str = ""

    @classmethod
    def of(cls, check: Check, level: str, error: Exception, *, ran: bool) -> Absent:
        """The reason why a check gave no number: training stopped or was refused, or there was nothing to compare."""
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, (IntegrationError, DivergenceError)):
            time = error.time if isinstance(error, IntegrationError) else error.step
            return cls(check.name, level, Outcome.STOPPED, why, float(time))
        return cls(check.name, level, Outcome.NOTHING if ran else Outcome.NOT_RUN, why)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**vars(self), "outcome": self.outcome.value}


@dataclass(frozen=True)
class Part:
    """Finding of one check, or of the proof, in a column.

    Attributes
    ----------
    says : str
        The checked quantity, as a noun.
    outcome : Outcome
    size : float or None
        The largest error; None for a proof, or if nothing was run.
    share : bool
        True if the size is a share of wrong signs.
    settings, levels : tuple of str
        Settings and levels of the measurements.
    clauses : str
        Number of parts that a proof covers, in words; empty if it covers all.
    sizes : str
        Words for the sizes at which a proof was done; empty for a proof of all sizes.
    beyond : bool
        True for a form that goes beyond the printed one, under its own assumptions.
    unmet : tuple of (str, float), optional
        For `NOT_MET`: a broken assumption and its margin, at the setting that breaks the fewest.
    stopped : float, optional
        Step at which training stopped.
    """

    says: str
    outcome: Outcome
    size: float | None = None
    share: bool = False
    settings: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    clauses: str = ""
    sizes: str = ""
    beyond: bool = False
    unmet: tuple[str, float] | None = None
    stopped: float | None = None

    @property
    def by(self) -> str:
        """The size of the miss, for a sentence."""
        if self.size is None:
            return ""
        if not math.isfinite(self.size):
            return f"by {amount(self.size)}"
        if not self.share:
            return f"by up to {amount(self.size)}"
        return "in all places" if self.size == 1 else f"in up to {faithful(self.size, _some)} of all places"

    @property
    def why(self) -> str:
        """Explanation of a part that differs, was not met or stopped, for a sentence."""
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
        One for each check of the column, and one for the proof.
    scope : str
        For a refuted conjecture: where it is refuted.
    reason : str
        The reason why the column is empty.
    about : str
        For a refuted conjecture: the subject of the outcome, such as "what refutes it".
    where : str
        For a paper that we do not have in print: the words that replace the name from `COLUMNS`.
    """

    name: str
    parts: tuple[Part, ...] = ()
    scope: str = ""
    reason: str = ""
    about: str = ""
    where: str = ""

    @property
    def title(self) -> str:
        """Name of the column on a page about this statement alone."""
        return self.where or self.name

    @property
    def outcome(self) -> Outcome:
        """The outcome of the worst part.

        Parts beyond the printed form do not count as holding if a hypothesis of the printed form was not met.
        """
        outcomes = {part.outcome for part in self.parts}
        if Outcome.NOT_MET in outcomes and all(part.beyond for part in self.parts if part.outcome is Outcome.HOLDS):
            outcomes.discard(Outcome.HOLDS)
        return next((outcome for outcome in _ORDER if outcome in outcomes), Outcome.NOT_EXAMINED)

    @property
    def deciding(self) -> tuple[Part, ...]:
        """The parts with the column's outcome."""
        return tuple(part for part in self.parts if part.outcome is self.outcome)

    @property
    def size(self) -> Part | None:
        """The part with the largest error among the deciding ones."""
        sized = [part for part in self.deciding if part.size is not None]
        return max(sized, key=lambda part: (part.size != part.size, part.size), default=None)

    @property
    def where_run(self) -> str:
        """Words that limit "holds" to the measured parts, with their number; empty if every part was run."""
        measured = sum(part.outcome is Outcome.HOLDS and part.size is not None for part in self.parts)
        unrun = sum(part.outcome is Outcome.NOT_RUN for part in self.parts)
        if self.outcome is not Outcome.HOLDS or not (measured and unrun):
            return ""
        asked = sum(part.size is not None or part.outcome is Outcome.NOT_RUN for part in self.parts)
        return f" where it was run ({measured} of {asked} parts)"

    @property
    def words(self) -> str:
        """The outcome for a table, with the size of a miss and the scope."""
        size = self.size
        missed = self.outcome in MISSED and size is not None
        by = f" {size.by}" if missed and size is not None else ""
        scope = f" here, {self.scope}" if self.scope else ""
        about = f"{self.about} " if self.about and self.outcome in (Outcome.HOLDS, Outcome.FAILS) else ""
        why = next((f" ({part.why})" for part in self.deciding if part.why), "")
        return f"{about}{self.outcome.value}{self.where_run}{scope}{by}{why}"

    @property
    def under(self) -> str:
        """Words for a table of several papers; they begin with ``where`` if it is set."""
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
    """Results of a run on a statement: its rows by check, and checks without a number."""

    rows: dict[Check, list[Row]]
    absent: Sequence[Absent]
    everywhere: bool
    ran: bool

    def part(self, check: Check, levels: Sequence[str], *, printed: bool) -> Part:
        """The part for a check at some levels."""
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
    """The assumption with the least margin, at the first setting that breaks the fewest."""
    known = [row.margins for row in rows if row.margins]
    nearest = min(known, key=lambda margins: len(broken(margins)), default=None)
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
        The statement's rows in an audit. A part with rows outside its assumptions only is not met.
    proofs : sequence of Label
        Labels of its proofs from the same run; empty if they were not run.
    everywhere : bool
        Count rows outside the assumptions, too.
    absent : sequence of Absent
        Checks without a number.
    """
    every = tuple(level for check in statement.checks for level in check.levels)
    # A statement from outside has one column for all its levels.
    levels = layout.columns(statement.paper)
    if not any(levels.values()):  # the paper is unknown
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
    """The column for the printed form, or for the form in our source of the paper."""
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
        if check.expected and check.suffices is None  # else a form beyond the printed one
    )
    if statement.corrected is None:
        return Column(PRINTED, (*parts, *_proved(statement, proofs)), where=where)
    if not measured.ran:
        return Column(PRINTED, (*parts, Part(f"the {form}", Outcome.NOT_RUN)), where=where)
    reason = "" if parts else f"no check sees the {form}: what is wrong say the errata"
    return Column(PRINTED, parts, reason=reason, where=where)


def _classed(statement: Statement, check: Check, measured: _Measured) -> Part:
    """The part for a printed form. It differs, rather than fails, if the errata have only a remark on it."""
    printed, corrected = (measured.part(check, check.expected, printed=form) for form in (True, False))
    remarked = corrected.outcome is Outcome.HOLDS and not statement.accuses(check)
    return replace(printed, outcome=Outcome.DIFFERS) if remarked and printed.outcome is Outcome.FAILS else printed


def _parts(measured: _Measured, levels: Sequence[str]) -> Iterable[Part]:
    """A part for each check at the levels of a column, in the register's own form."""
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
    some = "" if done >= of else f"{done} of {of} parts"
    says = f"the proof of {some}" if some else "the proof"
    limited = [replace(label, prose=()).words for label in proofs if label.trust is Trust.PROVED_AT_SIZES]
    sizes = "; ".join(dict.fromkeys(words.removeprefix("proved at ") for words in limited))
    if limited:
        sizes = f" at {sizes}" if len(limited) == len(proofs) else f", some parts only at {sizes}"
    outcome = Outcome.HOLDS if all(label.holds for label in proofs) else Outcome.FAILS
    return (Part(says, outcome, clauses=some, sizes=sizes),)
