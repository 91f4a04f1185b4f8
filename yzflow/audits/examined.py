"""A statement with what was computed of it, and its rows in words: what verdicts, screens and pages are made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics.support.rounded import margin as shown_margin
from theory import layout
from theory.statements import Statement
from theory.trust import Label
from yzflow.audits.headlines import fitted, headline, own_headline, sentence
from yzflow.audits.outcomes import Absent, Column, Outcome
from yzflow.audits.own import OwnCase
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, VerdictRow, verdict_rows

__all__ = ["MARGINS", "Examined", "head", "margin_rows"]


@dataclass(frozen=True, repr=False)
class Examined:
    """One statement, with what was computed of it in this run: what screens, cards and pages show.

    Attributes
    ----------
    statement : Statement
    report : AuditReport
        Of this statement alone.
    quick : bool
        Whether only some of the settings were run.
    seed : int
        Of the SGD runs.
    own : OwnCase, optional
        The reader's setting, where data was given: then all rows are of it, inside the assumptions or not.
    absent : tuple of Absent
        Checks that gave no number there, with the reason.
    """

    statement: Statement
    report: AuditReport
    quick: bool
    seed: int
    own: OwnCase | None = None
    absent: tuple[Absent, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the proof holds, and every check at which the statement should hold."""
        return self.report.passed

    @property
    def labels(self) -> tuple[Label, ...]:
        """Grounds of the statement, with the scope of each part."""
        return self.report.labels(self.statement)

    @property
    def summary(self) -> Label:
        """The weakest needed part of what the statement rests on, or a part that fails."""
        return self.report.summary(self.statement)

    @property
    def rows(self) -> list[Row]:
        """Each check at each level and setting."""
        return self.report.table

    @property
    def errors(self) -> list[VerdictRow]:
        """Each check at each level, over the settings; at a reader's own, inside the assumptions or not."""
        return verdict_rows(self.rows, everywhere=self.own is not None)

    @property
    def margins(self) -> dict[str, dict[str, float]]:
        """Setting -> assumption -> margin, the ratio of its two sides; it holds from one on."""
        if self.own is not None:
            return {self.own.setting.name: dict(self.own.margins)} if self.own.margins else {}
        margins: dict[str, dict[str, float]] = {}
        for row in self.rows:  # a check may have assumptions of its own
            if row.margins:
                margins.setdefault(row.setting, {}).update(row.margins)
        return margins

    @property
    def missing(self) -> tuple[str, ...]:
        """Levels that gave no number, with the reason."""
        return tuple(self._reasons())

    def _reasons(self) -> dict[str, Outcome]:
        """Levels with a reason for which they gave no number -> the kind of it."""
        levels: dict[tuple[str, Outcome], dict[str, None]] = {}
        for entry in self.absent:
            levels.setdefault((entry.why, entry.outcome), {})[entry.level] = None
        return {f"{', '.join(names)}: {why}": outcome for (why, outcome), names in levels.items()}

    @property
    def unsaid(self) -> list[str]:
        """Sentences on what was not run, and on what there was nothing to compare for."""
        heads = {Outcome.NOTHING: "Nothing to compare"}
        return [f"{heads.get(outcome, 'Not run')}: {reason}." for reason, outcome in self._reasons().items()]

    @property
    def outcome(self) -> str:
        """The finding, in a sentence for each column."""
        if not self.passed:
            return f"FAILS where it should hold: {'; '.join(self._wrong)}."
        return " ".join(filter(None, (sentence(self.columns), self.place, *self.unsaid)))

    @property
    def _wrong(self) -> list[str]:
        """Parts that fail where they should hold."""
        alarming = [f"{row.check} in the {row.level} at {row.setting}" for row in self.rows if row.alarming]
        return [f"the proof's {name}" for names in self.report.proofs.values() for name in names] + alarming

    @property
    def headline(self) -> str:
        """The one sentence that a reader came for, of at most `yzflow.audits.headlines.MOST` characters.

        At a reader's own data it says first of all what happened in training.
        """
        if not self.passed:
            first, *others = self._wrong
            more = f"; {len(others)} more" if others else ""
            return fitted([self.outcome, f"FAILS where it should hold: {first}{more}."])
        if self.own is None:
            return headline(self.columns)
        margins = self.own.margins.values()
        broken = sum(not margin >= 1 for margin in margins)
        return own_headline(self.columns, training="; ".join(self.own.beyond), broken=broken, of=len(margins))

    @property
    def next(self) -> str:
        """Ways to run what was not run at a reader's own data; empty where all of it was."""
        if self.own is None:
            return ""
        trained = layout.columns(self.statement.paper)
        levels = {level for check in self.statement.checks for level in check.levels}
        left_out = [
            level
            for name in layout.COLUMNS[1:]
            for level in trained[name]
            if level in levels and level not in self.own.levels
        ]
        said = dict.fromkeys(
            f"The {entry.level} stopped at t = {entry.time:,.4g}: try t_end={entry.time / 2:.4g}, or smaller rates."
            if entry.time is not None
            else f"Not run: {entry.level}: {entry.why}."
            for entry in self.absent
            if entry.outcome is not Outcome.NOTHING
        )
        leave = f"Leave out `level` to run {' and '.join(left_out)}, too." if left_out else ""
        return " ".join(filter(None, (*said, leave)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The verdict as printed, in the theory, under the true gradient and in SGD."""
        return self.report.columns(self.statement, everywhere=self.own is not None, absent=self.absent)

    @property
    def place(self) -> str:
        """Where a reader's setting stands: inside the assumptions, or outside which; and what is foreseen there."""
        if self.own is None:
            return ""
        outside = [
            f"{text} (margin {shown_margin(margin, 2)})" for text, margin in self.own.margins.items() if not margin >= 1
        ]
        said = f"{self.own.setting.name}: " + (
            f"outside {'; '.join(outside)}" if outside else "inside every assumption that data and rates can break"
        )
        beyond = "; ".join(self.own.beyond)
        said += f"; the statement does not speak of {beyond}." if beyond else "."
        return f"{said} Foreseen: {self.own.predicted}." if self.own.predicted else said

    @property
    def python(self) -> str:
        """The three lines that compute it again."""
        options = ("" if self.quick else ", quick=False") + (f", seed={self.seed}" if self.seed else "")
        if self.own is not None:
            options = f", data=data, **training{options}"  # the reader has them
        return f"import yzflow as yz\nverdict = yz.check({self.statement.id!r}{options})\nprint(verdict.text())"

    @property
    def command(self) -> str:
        """The command that computes it again."""
        options = ("" if self.quick else " --full") + (f" --seed {self.seed}" if self.seed else "")
        options = f" --data FILE ..{options}" if self.own else options
        return f'yzflow check "{self.statement.id}"{options}'


def head(statement: Statement) -> list[str]:
    """The columns of a `VerdictRow`."""
    return ["check", "level", statement.source.short, "corrected", "expected", "outside the assumptions"]


MARGINS = "Margins of the assumptions by setting (an assumption holds from 1 on, and is broken in brackets)"


def margin_rows(verdict: Examined) -> list[list[str]]:
    """A head and a row for each assumption that any check was asked for, with a column for each setting."""

    def shown(margin: float | None) -> str:
        return "-" if margin is None else f"{margin:.3g}" if margin >= 1 else f"({shown_margin(margin, 2)})"

    margins = verdict.margins.values()
    texts = dict.fromkeys(text for held in margins for text in held)
    head = ["assumption", *map(str, range(1, len(margins) + 1))]
    return [head, *([text, *(shown(held.get(text)) for held in margins)] for text in texts)]
