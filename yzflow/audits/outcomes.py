"""The verdict on a statement in four columns: as printed, corrected in the theory, under the true gradient, in SGD.

One model for a page's badge, `yzflow.check`, the index, the card for a review, the audit and the errata. A verdict is
made from the rows inside the assumptions and from the proofs of one run, and says how large an error was and where.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from theory import layout
from theory.statements import Check, Statement
from theory.trust import Label
from yzflow.audits.verdicts import Row, Verdict, amount, judge

__all__ = ["COLUMNS", "Column", "Outcome", "Part", "four_columns", "headline", "sentence"]

PRINTED = "as printed"
# Name -> the words before what was found there, in a sentence.
COLUMNS = {
    PRINTED: "as printed",
    **dict(zip(layout.COLUMNS, ("in the theory", "under the true gradient", "in SGD"), strict=True)),
}


class Outcome(enum.Enum):
    """Finding of a run on a statement, or on a part of it, in one column.

    Attributes
    ----------
    HOLDS
        Within the tolerance at every setting inside the assumptions, or by its proof.
    FAILS
        Not at one of them at least, or its proof does not hold.
    REFUTED
        False: in balls at a setting, or, of a conjecture, by what is proved against it.
    NOT_RUN
        It could have been run, and was not.
    NOT_EXAMINED
        Nothing here asks for it.
    """

    HOLDS = "holds"
    FAILS = "fails"
    REFUTED = "refuted"
    NOT_RUN = "not run"
    NOT_EXAMINED = "not examined"


# From the one that decides a column to the one that does so least.
_ORDER = (Outcome.REFUTED, Outcome.FAILS, Outcome.HOLDS, Outcome.NOT_RUN, Outcome.NOT_EXAMINED)


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
    """

    says: str
    outcome: Outcome
    size: float | None = None
    share: bool = False
    settings: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    clauses: str = ""

    @property
    def by(self) -> str:
        """How far it misses, for a sentence."""
        if self.size is None:
            return ""
        if not math.isfinite(self.size):
            return "by an undefined amount"
        return f"in up to {self.size:.3g} of all places" if self.share else f"by up to {amount(self.size)}"


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
        """The worst of its parts; a sharper part that holds never hides one that fails."""
        found = {part.outcome for part in self.parts}
        return next((one for one in _ORDER if one in found), Outcome.NOT_EXAMINED)

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
        missed = self.outcome in (Outcome.FAILS, Outcome.REFUTED) and size is not None
        by = f" {size.by}" if missed and size is not None else ""
        scope = f" here, {self.scope}" if self.scope else ""
        about = f"{self.about} " if self.about and self.outcome in (Outcome.HOLDS, Outcome.FAILS) else ""
        return f"{about}{self.outcome.value}{scope}{by}"

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
                }
                for part in self.parts
            ],
        }


def four_columns(statement: Statement, rows: Sequence[Row], proofs: Sequence[Label]) -> tuple[Column, ...]:
    """The verdict on a statement in each of the `COLUMNS`.

    Parameters
    ----------
    statement : Statement
    rows : sequence of Row
        Those of an audit that are asked, of this statement: inside its assumptions, as a rule.
    proofs : sequence of Label
        What its proofs prove in the same run; none where they were not run.
    """
    every = tuple(level for check in statement.checks for level in check.levels)
    # A statement from elsewhere has one column for all its levels.
    levels = layout.columns(statement.paper)
    if not any(levels.values()):  # of a paper that is not in the table
        levels |= {"theory": every}
    ran = bool(rows or proofs)
    by_check = {check: [row for row in rows if row.check == check.name] for check in statement.checks}
    printed = _printed(statement, by_check, proofs, ran)
    about = "what refutes it" if statement.refuted else ""
    others = [
        Column(
            name,
            (*_parts(by_check, own, ran), *(_proved(statement, proofs, ran) if name == "theory" else ())),
            about=about,
        )
        for name, own in levels.items()
    ]
    return (printed, *others)


def _printed(statement: Statement, by_check: dict[Check, list[Row]], proofs: Sequence[Label], ran: bool) -> Column:
    """Result of the printed form, or of the one in our source of the paper, where the statement should hold."""
    if statement.own:
        return Column(PRINTED, reason="it is ours, and nothing is printed")
    form = statement.source.form
    where = statement.source.where if statement.source.where != PRINTED else ""
    if statement.refuted:
        found = Outcome.NOT_RUN
        if ran:
            held = all(label.holds for label in proofs) and not any(
                row.alarming for rows in by_check.values() for row in rows
            )
            found = Outcome.REFUTED if held else Outcome.FAILS
        return Column(PRINTED, (Part("the conjecture", found),), statement.refuted if ran else "", where=where)
    parts = tuple(
        _part(check, [row for row in rows if row.level in check.expected], [check.printed], ran, printed=True)
        for check, rows in by_check.items()
        if check.expected and check.suffices is None  # or what holds beyond the printed form
    )
    if statement.corrected is None:
        return Column(PRINTED, (*parts, *_proved(statement, proofs, ran)), where=where)
    if not ran:
        return Column(PRINTED, (*parts, Part(f"the {form}", Outcome.NOT_RUN)), where=where)
    reason = "" if parts else f"no check sees the {form}: what is wrong say the errata"
    return Column(PRINTED, parts, reason=reason, where=where)


def _parts(by_check: dict[Check, list[Row]], levels: Sequence[str], ran: bool) -> Iterable[Part]:
    """Findings of each check at the levels of a column, in the form that the register stands for."""
    for check, rows in by_check.items():
        own = [level for level in levels if level in check.levels]
        wanted = [level for level in own if level in check.expected] or own
        if wanted:
            yield _part(check, [row for row in rows if row.level in wanted], wanted, ran, printed=False)


def _part(check: Check, rows: Sequence[Row], levels: Sequence, ran: bool, *, printed: bool) -> Part:
    says = check.says or check.name
    if not rows:
        return Part(says, Outcome.NOT_RUN if ran or levels else Outcome.NOT_EXAMINED)
    errors = [row.printed if printed else row.error for row in rows]
    worst = max(errors, key=lambda error: (error != error, error))
    fails = judge(worst, check.tolerance) is Verdict.FAILS
    outcome = Outcome.FAILS if fails else Outcome.HOLDS
    if not printed and any(row.refuted for row in rows):
        outcome = Outcome.REFUTED
    settings = tuple(dict.fromkeys(row.setting for row in rows))
    return Part(says, outcome, float(worst), check.reversible, settings, tuple(dict.fromkeys(r.level for r in rows)))


def _proved(statement: Statement, proofs: Sequence[Label], ran: bool) -> tuple[Part, ...]:
    if not statement.proofs:
        return ()
    if not proofs:
        return (Part("the proof", Outcome.NOT_RUN),)
    done = sum(any(one.clause == clause.name for one in proofs) for clause in statement.clauses)
    of = len(statement.clauses)
    some = "" if done >= of else f"{done} of {of} clauses"
    says = f"the proof of {some}" if some else "the proof"
    return (Part(says, Outcome.HOLDS if all(label.holds for label in proofs) else Outcome.FAILS, clauses=some),)


def sentence(columns: Sequence[Column]) -> str:
    """The findings in plain words: in each column what held, and what did not and by how much."""
    found = [words for column in columns if (words := _said(column))]
    if not found:
        asked = any(part.outcome is Outcome.NOT_RUN for column in columns for part in column.parts)
        return "Nothing was run for this." if asked else "No simulation and no proof is asked about this statement."
    return " ".join(found)


_NAMED = 2  # parts that failed; a sentence with more is not read


def headline(columns: Sequence[Column]) -> str:
    """One sentence: on the true gradient where it was asked, or else on the theory, on SGD or on what is printed.

    Of a refuted conjecture, on that.
    """
    by_name = {column.name: column for column in columns}
    if (printed := by_name.get(PRINTED)) is not None and printed.scope:
        return _said(printed)
    found = (_said(by_name[name]) for name in ("true gradient", "theory", "SGD", PRINTED) if name in by_name)
    return next(filter(None, found), sentence(columns))


def _said(column: Column) -> str:
    """The sentence on one column; nothing where nothing was run."""
    held = [part for part in column.parts if part.outcome is Outcome.HOLDS]
    missed = [part for part in column.parts if part.outcome in (Outcome.FAILS, Outcome.REFUTED)]
    if not held and not missed:
        return ""
    where = column.where or COLUMNS[column.name]
    start = f"{where[0].upper()}{where[1:]}"
    if column.scope:
        return f"{start} it is refuted here, {column.scope}."
    if not missed:
        measured = [part for part in held if part.size is not None]
        proved = [f"is proved{f' in {part.clauses}' if part.clauses else ''}" for part in held if part.size is None]
        return f"{start} {column.about or 'it'} {' and '.join(['held'] * bool(measured) + proved[:1])}."
    if not held and len(missed) == 1:
        return f"{start} it {_missed(missed[0])}."
    missed.sort(key=lambda part: (part.size is None, -(part.size or 0.0)))
    words = "; ".join(f"{part.says} {_missed(part)}" for part in missed[:_NAMED])
    if len(missed) > _NAMED:
        words += f"; {len(missed) - _NAMED} more failed"
    if not held:
        return f"{start} {words}."
    if len(held) > 2:
        return f"{start} {words}; the rest held."
    return f"{start} {' and '.join(part.says for part in held)} held; {words}."


def _missed(part: Part) -> str:
    """Verb for a part that did not hold: a past tense, which goes with one thing and with many."""
    found = "was found false in balls" if part.outcome is Outcome.REFUTED else "failed"
    return f"{found}, {part.by}" if part.by else found
