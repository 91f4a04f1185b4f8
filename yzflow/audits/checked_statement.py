"""One statement with its results: the model behind verdicts, screens, cards and pages."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics.support.rounded import margin as shown_margin
from theory import layout, papers
from theory.statements import Statement
from theory.trust import Label
from yzflow.audits.case import OwnCase
from yzflow.audits.headlines import failing, failure, headline, own_headline, sentence
from yzflow.audits.outcomes import Absent, Column, Outcome
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, VerdictRow, broken, verdict_rows

__all__ = ["MARGINS", "Examined", "bare", "head", "margin_rows"]

_NOTHING = "Nothing to compare"


@dataclass(frozen=True, repr=False)
class Examined:
    """One statement with the results of one run; screens, cards and pages render it.

    Attributes
    ----------
    statement : Statement
    report : AuditReport
        Report on this statement alone.
    quick : bool
        True if only some of the settings were run.
    seed : int
        Seed of the SGD runs.
    own : OwnCase, optional
        The reader's setting, if data was given. Then all rows are at this setting, inside the assumptions or not.
    absent : tuple of Absent
        Checks without a number, with the reason.
    """

    statement: Statement
    report: AuditReport
    quick: bool
    seed: int
    own: OwnCase | None = None
    absent: tuple[Absent, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the proof holds, and every check that the statement should pass."""
        return self.report.passed

    @property
    def installed(self) -> bool:
        """Whether a distribution brings the statement: else its id finds nothing without its author's code."""
        return papers.installed(self.statement)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The grounds of the statement: a label for each proof, check and level."""
        return self.report.labels(self.statement)

    @property
    def summary(self) -> Label:
        """The weakest ground that the statement needs, or a ground that fails."""
        return self.report.summary(self.statement)

    @property
    def rows(self) -> list[Row]:
        """Each check at each level and setting."""
        return self.report.table

    @property
    def errors(self) -> list[VerdictRow]:
        """A row for each check and level, over all settings. A reader's setting counts even outside the assumptions."""
        return verdict_rows(self.rows, everywhere=self.own is not None)

    @property
    def margins(self) -> dict[str, dict[str, float]]:
        """Setting -> assumption -> margin, the ratio of its two sides; the assumption holds from 1 on."""
        if self.own is not None:
            return {self.own.setting.name: dict(self.own.margins)} if self.own.margins else {}
        margins: dict[str, dict[str, float]] = {}
        for row in self.rows:  # checks of one statement may differ in their assumptions
            if row.margins:
                margins.setdefault(row.setting, {}).update(row.margins)
        return margins

    @property
    def missing(self) -> tuple[str, ...]:
        """Levels without a number, with the reason."""
        return tuple(self._reasons())

    def _reasons(self) -> dict[str, Outcome]:
        """Sentences on levels without a number, each with the kind of its reason."""
        levels: dict[tuple[str, Outcome], dict[str, None]] = {}
        for entry in (*self.absent, *self.report.absent):
            at = f"{entry.level} at {bare(entry.setting)}" if entry.setting else entry.level
            levels.setdefault((entry.why, entry.outcome), {})[at] = None
        return {f"{', '.join(names)}: {why}": outcome for (why, outcome), names in levels.items()}

    @property
    def unsaid(self) -> list[str]:
        """A sentence for each reason why levels gave no number."""
        heads = {Outcome.NOTHING: _NOTHING}
        return [f"{heads.get(outcome, 'Not run')}: {reason}." for reason, outcome in self._reasons().items()]

    @property
    def nothing(self) -> list[str]:
        """A sentence for each reason why there was nothing to compare."""
        return [reason for reason in self.unsaid if reason.startswith(_NOTHING)]

    @property
    def outcome(self) -> str:
        """The finding, with the place and the missing levels at a reader's setting."""
        return " ".join(filter(None, (self.finding, self.place, *self.unsaid)))

    @property
    def extent(self) -> str:
        """How much was run, and the option that runs the rest; empty at a reader's setting."""
        return "" if self.own is not None else self.report.extent.replace("quick", "quick; --full runs all")

    @property
    def finding(self) -> str:
        """A sentence for each column; or what should hold and fails. A vacuous statement is said to be one."""
        wrong = "; ".join(name + at for name, at in self.report.wrong)
        return failure(wrong) if wrong else " ".join(filter(None, (self.vacuous, sentence(self.columns))))

    @property
    def vacuous(self) -> str:
        """A sentence if no setting that was run is inside the assumptions; else empty."""
        return self.report.vacuous(self.statement) if self.own is None else ""

    @property
    def headline(self) -> str:
        """The verdict in one sentence of at most `yzflow.audits.headlines.MOST` characters.

        For a reader's data it begins with the outcome of training.
        """
        if self.report.wrong:
            return failing(self.report.wrong)
        if self.own is None:
            return self.vacuous or headline(self.columns)
        margins = self.own.margins
        beyond = "; ".join(self.own.beyond)
        count = {"broken": len(broken(margins)), "of": len(margins)}
        return own_headline(self.columns, training=beyond, **count, subject=self.own.subject)

    @property
    def next(self) -> str:
        """Advice on running the levels that gave no number for a reader's data; empty if all gave one."""
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
            for entry in self.absent
            if entry.time is not None
        )
        said |= dict.fromkeys(
            reason
            for reason, outcome in zip(self.unsaid, self._reasons().values(), strict=True)
            if outcome is Outcome.NOT_RUN
        )
        leave = f"Leave out `level` to run {' and '.join(left_out)}, too." if left_out and self.own.asked else ""
        return " ".join(filter(None, (*said, leave)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The verdict as printed, in the theory, under the true gradient and in SGD."""
        return self.report.columns(self.statement, everywhere=self.own is not None, absent=self.absent)

    @property
    def place(self) -> str:
        """Broken assumptions at a reader's setting, and the statement's forecast there."""
        if self.own is None:
            return ""
        margins = self.own.margins
        outside = [f"{text} (margin {shown_margin(margins[text], 2)})" for text in broken(margins)]
        said = f"{self.own.setting.name}: " + (
            f"outside {'; '.join(outside)}" if outside else "inside every assumption that data and rates can break"
        )
        beyond = "; ".join(self.own.beyond)
        said += f"; the statement does not speak of {beyond}." if beyond else "."
        return f"{said} Foreseen: {self.own.predicted}." if self.own.predicted else said

    @property
    def python(self) -> str:
        """Python code, three lines, that repeats the check."""
        options = ("" if self.quick else ", quick=False") + (f", seed={self.seed}" if self.seed else "")
        if self.own is not None:
            options = f", data=data, **training{options}"  # the reader has them
        return f"import yzflow as yz\nverdict = yz.check({self.statement.id!r}{options})\nprint(verdict.text())"

    @property
    def command(self) -> str:
        """Shell command that repeats the check; FILE and TRAINING stand for a reader's data and options."""
        options = ("" if self.quick else " --full") + (f" --seed {self.seed}" if self.seed else "")
        options = f" --data FILE TRAINING{options}" if self.own else options  # the reader has them
        return f'yzflow check "{self.statement.id}"{options}'


def head(statement: Statement) -> list[str]:
    """Names of the columns of a `VerdictRow`."""
    return ["check", "simulation", statement.source.short, "corrected", "expected", "outside the assumptions"]


def bare(setting: str) -> str:
    """Name of a setting without the word "inside" or "outside", which may be wrong of one statement alone."""
    return setting.removeprefix("inside: ").removeprefix("outside: ")


MARGINS = "Margins of the assumptions by setting (an assumption holds from 1 on, and is broken in brackets)"


def margin_rows(verdict: Examined) -> list[list[str]]:
    """A head, then a row of margins for each assumption, with a column for each setting."""

    def shown(margin: float | None) -> str:
        return "-" if margin is None else f"{margin:.3g}" if margin >= 1 else f"({shown_margin(margin, 2)})"

    margins = verdict.margins.values()
    texts = dict.fromkeys(text for held in margins for text in held)
    head = ["assumption", *map(str, range(1, len(margins) + 1))]
    return [head, *([text, *(shown(held.get(text)) for held in margins)] for text in texts)]
