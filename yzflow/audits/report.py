"""The audit's result, and its reports: text, JSON, and a page of HTML."""

from __future__ import annotations

import base64
import dataclasses
import html
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynamics.support import checks, display
from dynamics.support.files import replacing
from dynamics.support.provenance import environment
from theory import kernel, papers, statements
from theory.statements import Clause, Source, Statement
from theory.trust import Label, Trust, weakest
from yzflow.audits import campaign_table, formulas
from yzflow.audits.enclosing import EnclosedFlow
from yzflow.audits.headlines import failing, headline
from yzflow.audits.outcomes import COLUMNS, Absent, Column, four_columns
from yzflow.audits.rendered import as_json, columns, html_table
from yzflow.audits.verdicts import Row, broken, verdict_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Style


@dataclass(frozen=True, repr=False)
class AuditReport:
    """The result of `yzflow.audit`.

    Attributes
    ----------
    table : list of Row
    statements : tuple of Statement
        The audited statements.
    labels_of_proofs : dict
        Statement -> label of the symbolic proof of each clause, with the names of undecided expressions.
    enclosed : tuple of EnclosedFlow
        The outcome for each flow that was to be enclosed.
    call : mapping
        The arguments of `yzflow.audit`.
    modules : tuple of str
        Modules of the fields from outside (`yzflow.register_field`) in the simulations.
    absent : tuple of Absent
        Checks without a number: at a setting that refuses their level, or whose training stopped.
    sizes : mapping
        Paper -> (settings that were run, all that it has).
    """

    table: list[Row]
    statements: tuple[Statement, ...]
    labels_of_proofs: dict[str, tuple[Label, ...]]
    enclosed: tuple[EnclosedFlow, ...] = ()
    call: Mapping[str, object] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def extent(self) -> str:
        """How much was run: "2 of 9 settings (quick)", for each paper with settings."""
        named = len(self.sizes) > 1
        return "; ".join(
            (f"{paper}: " if named else "") + (f"all {n} settings" if n == of else f"{n} of {of} settings (quick)")
            for paper, (n, of) in self.sizes.items()
        )

    def vacuous(self, statement: Statement) -> str:
        """A sentence if checks alone speak for a statement, and no setting is inside its assumptions; else empty."""
        checks.instance("statement", statement, Statement)
        asked = any(check.expected for check in statement.checks) and not self.labels_of_proofs.get(statement.id)
        rows = [row for row in self.table if row.statement == statement.id]
        if not asked or any(row.inside for row in rows) or (not rows and self.sizes.get(statement.paper, (1, 1))[0]):
            return ""
        count = len({row.setting for row in rows})
        return f"Vacuous here: its assumptions hold at none of the {count} settings that were run."

    @property
    def proofs(self) -> dict[str, list[str]]:
        """Statement -> expressions that its symbolic proofs left undecided; an empty list is a complete proof."""
        return {
            name: [failure for label in labels for failure in label.failures]
            for name, labels in self.labels_of_proofs.items()
        }

    @property
    def passed(self) -> bool:
        """True if every proof holds, and every statement holds at the settings where it should."""
        return not self.wrong

    @property
    def wrong(self) -> list[tuple[str, str]]:
        """Names of proofs and checks that should hold and fail, each with its setting."""
        alarming = [(f"{row.check} in the {row.level}", f" at {row.setting}") for row in self.table if row.alarming]
        return [(f"the proof's {name}", "") for names in self.proofs.values() for name in names] + alarming

    def of(self, statement: Statement) -> AuditReport:
        """The report on one of its statements alone."""
        checks.instance("statement", statement, Statement)
        return dataclasses.replace(
            self,
            table=[row for row in self.table if row.statement == statement.id],
            statements=(statement,),
            labels_of_proofs={name: labels for name, labels in self.labels_of_proofs.items() if name == statement.id},
            absent=self._absent(statement),
            sizes={paper: size for paper, size in self.sizes.items() if paper == statement.paper},
            call={**self.call, "only": [statement.id]},
        )

    def _absent(self, statement: Statement) -> tuple[Absent, ...]:
        return tuple(entry for entry in self.absent if entry.statement == statement.id)

    def labels(self, statement: Statement) -> tuple[Label, ...]:
        """The grounds of the statement: for each clause its proof, a label for each check and level, and prose.

        The label of a check has its largest error at a level, over all settings inside the assumptions.
        """
        checks.instance("statement", statement, Statement)
        return tuple(label for clause in statement.clauses for label in self.labels_of(statement, clause))

    def labels_of(self, statement: Statement, clause: Clause) -> tuple[Label, ...]:
        """The grounds of one clause of the statement."""
        checks.instance("statement", statement, Statement)
        checks.instance("clause", clause, Clause)
        proved = [label for label in self.labels_of_proofs.get(statement.id, ()) if label.clause == clause.name]
        proofs = statement.with_kernel(clause, proved)
        names = {check.name for check in clause.checks}
        rows = [row for row in self.table if row.statement == statement.id and row.expected and row.check in names]
        return (*proofs, *(row.label for row in verdict_rows(rows)), *clause.in_words)

    def summary(self, statement: Statement) -> Label:
        """The weakest ground that the statement needs, or a ground that fails."""
        return weakest(label for _, label in self.summaries(statement))

    def summaries(self, statement: Statement) -> list[tuple[Clause, Label]]:
        """Each clause with the weakest ground that it needs."""
        checks.instance("statement", statement, Statement)
        labels = [(clause, weakest(self.labels_of(statement, clause))) for clause in statement.clauses]
        return [(clause, dataclasses.replace(label, clause=clause.name)) for clause, label in labels]

    def columns(
        self, statement: Statement, *, everywhere: bool = False, absent: Sequence[Absent] = ()
    ) -> tuple[Column, ...]:
        """The verdict on the statement as printed, in the theory, under the true gradient and in SGD.

        With ``everywhere``, settings outside the assumptions count, too; ``absent`` are checks without a number.
        """
        checks.instance("statement", statement, Statement)
        everywhere = checks.flag("everywhere", everywhere)
        absent = tuple(checks.instance("absent", absent, Sequence))
        rows = [row for row in self.table if row.statement == statement.id]
        proofs = self.labels_of_proofs.get(statement.id, ())
        return four_columns(statement, rows, proofs, everywhere=everywhere, absent=(*self._absent(statement), *absent))

    def counts(self) -> dict[str, int]:
        """Numbers of statements and clauses, and of statements by the extent of their proof.

        ``all_sizes`` and ``fixed_sizes``: every clause has a symbolic proof; ``some``: some clauses have one; ``none``:
        no clause has one. ``kernel``: number of clauses that a kernel has checked.
        """
        counts: Counter[Trust | str] = Counter()
        for statement in self.statements:
            labels = self.labels_of_proofs.get(statement.id, ())
            proved = all(any(label.clause == clause.name for label in labels) for clause in statement.clauses)
            counts[max(label.trust for label in labels) if proved else "some" if labels else "none"] += 1
        return {
            "statements": len(self.statements),
            "clauses": sum(len(statement.clauses) for statement in self.statements),
            "all_sizes": counts[Trust.PROVED],
            "fixed_sizes": counts[Trust.PROVED_AT_SIZES],
            "some": counts["some"],
            "none": counts["none"],
            "kernel": sum(
                kernel.label(statement.theorems(clause), clause.name) is not None
                for statement in self.statements
                for clause in statement.clauses
            ),
        }

    def counted(self) -> str:
        """A sentence with the numbers of statements that are proved, by extent."""
        counts = self.counts()
        return (
            f"Of {counts['statements']} statements, which have {counts['clauses']} parts, {counts['all_sizes']} have "
            f"a symbolic proof for all sizes of every part, {counts['fixed_sizes']} one of every part, "
            f"some at fixed small sizes only, {counts['some']} one of some parts, and {counts['none']} none. "
            f"A kernel (Coq's) has checked {counts['kernel']} parts."
        )

    def decided(self) -> str:
        """A sentence with the number of rows that balls decide; empty without enclosed flows."""
        if not self.enclosed:
            return ""
        levels = {(flow.setting, flow.level) for flow in self.enclosed}
        rows = [row for row in self.table if (row.setting, row.level) in levels]
        values = [None if row.decided is None else row.decided.value for row in rows]
        # Each up to its own time: of a row that stays open nothing is said, however far it was asked.
        spans = [row.decided.until for row in rows if row.decided is not None and row.decided.value]
        first, last = (f"{end(spans, default=0.0):g}" for end in (min, max))
        ends = last if first == last else f"the end of their own flow, from {first} to {last}"
        done = len(rows) - values.count(None)
        return (
            f"Of {len(rows)} rows of the flows {done} are decided in balls, whatever "
            f"the rounding: {values.count(True)} true for all t up to {ends}, "
            f"{values.count(False)} false at some t; {values.count(None)} are open, or nothing that balls are asked."
        )

    @property
    def unsaid(self) -> list[str]:
        """A line for each check without a number and each vacuous statement, and how much was run."""
        lines = [
            f"Not measured: {entry.statement}, {entry.check} in the {entry.level} at {entry.setting}: {entry.why}"
            for entry in self.absent
        ]
        lines += [f"{one.id}: {said}" for one in self.statements if (said := self.vacuous(one))]
        return [*lines, *([f"Run: {self.extent}."] if self.extent else [])]

    def failures(self) -> str:
        """The checks and proofs that fail where they should hold, a line each; or a sentence that all hold."""
        rows = verdict_rows(self.table)
        failing = [[row.statement, row.check, row.level, row.failure] for row in rows if row.alarming]
        undecided = [
            [name, f"the proof leaves {what} undecided"] for name, left in self.proofs.items() for what in left
        ]
        if failing or undecided:
            return "\n".join(["What should hold and does not:", *columns(failing), *columns(undecided), *self.unsaid])
        claimed = sum(any(cell.expected for cell in row.rows) for row in rows)
        more = (
            f" {len(rows) - claimed} more checks are measured where nothing is claimed." if claimed < len(rows) else ""
        )
        proofs = f"proofs of {len(self.labels_of_proofs)} statements"
        all_held = (
            f"All that should hold does: {claimed} checks, each at a level and in all its settings, and {proofs}."
        )
        return "\n".join([f"{all_held}{more}", *self.unsaid])

    def text(self) -> str:
        """The grounds of each statement, then a line for each check and level.

        The line has the largest errors of the printed and the corrected form inside the assumptions, the expected
        error, and the verdict at the worst setting outside.
        """
        lines = [self.counted(), *([self.decided()] if self.enclosed else []), "", "What each statement rests on"]
        lines += columns([[statement.id, str(self.summary(statement))] for statement in self.statements])
        lines += ["", "What was found of each"]
        rows = [
            [
                statement.id,
                *(column.under for column in self.columns(statement)),
                campaign_table.words(campaign_table.tried(statement)),
            ]
            for statement in self.statements
        ]
        lines += columns([["statement", *COLUMNS, "tried"], *rows])
        if self.enclosed:
            lines += [
                "",
                "Enclosed flows",
                *columns([[flow.setting, flow.level, flow.words] for flow in self.enclosed]),
            ]
        balls = ["in balls"] if self.enclosed else []
        table = [["statement", "check", "level", "printed", "corrected", "expected", *balls, "outside the assumptions"]]
        for row in verdict_rows(self.table):
            *words, outside = row.words
            table.append([row.statement, *words, *([row.in_balls] if self.enclosed else []), outside])
        lines += ["", *columns(table), *self.unsaid]
        quoted = {
            statement.paper: statement.source.where for statement in self.statements if statement.source != Source()
        }
        lines += [f"Of {paper}, what is called printed is {where}." for paper, where in quoted.items()]
        return "\n".join(lines)

    def environment(self) -> dict[str, str]:
        """Versions that may change bits of the result, and digests of code from outside."""
        modules = (*self.modules, *map(papers.home_of, self.statements))
        code = papers.code_of(*{statement.paper for statement in self.statements}, modules=modules)
        return environment() | ({"code": code} if code else {})

    def json(self) -> str:
        """Everything as JSON."""
        rests = {
            statement.id: {
                "summary": self.summary(statement).as_dict(),
                "labels": [label.as_dict() for label in self.labels(statement)],
                "columns": {column.name: column.as_dict() for column in self.columns(statement)},
                "tried": [dataclasses.asdict(row) for row in campaign_table.tried(statement)],
                "clauses": {clause.name: label.as_dict() for clause, label in self.summaries(statement)},
            }
            for statement in self.statements
        }
        rows = [row.as_dict() for row in self.table]
        content = {"passed": self.passed, "proofs": self.proofs, "trust": rests, "rows": rows}
        content |= {
            "absent": [entry.as_dict() for entry in self.absent],
            "run": {p: list(n) for p, n in self.sizes.items()},
        }
        if self.enclosed:
            content["enclosed"] = [dataclasses.asdict(flow) for flow in self.enclosed]
        content["made"] = {"function": "audit", "arguments": dict(self.call), "environment": self.environment()}
        return as_json(content)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "failed"
        return f"<AuditReport: {len(self.statements)} statements, {len(self.table)} rows, {verdict}>"

    def _repr_html_(self) -> str:
        failing = {name for name, left in self.proofs.items() if left}
        failing |= {row.statement for row in self.table if row.alarming}
        ordered = sorted(self.statements, key=lambda statement: statement.id not in failing)
        rows = [
            [statement.id, statement.title, "no" if statement.id in failing else "yes", str(self.summary(statement))]
            for statement in ordered[: 8 * display.ROWS]
        ]
        facts = {
            "passed": "every statement that should hold does" if self.passed else f"no: {len(failing)} do not hold",
            "proofs": self.counted(),
            "rows": f"{len(self.table):,}",
        }
        heads = ["statement", "title", "holds where it should", "rests on"]
        rest = display.first(len(rows), len(ordered), "statements")
        inner = display.table(heads, rows, rest=rest, align="left")
        return display.page("AuditReport", facts, inner if len(rows) <= display.ROWS else display.folded("all", inner))

    def plot(self, statement: str | None = None, *, ax: Axes | None = None, style: Style | None = None) -> Axes:
        """Draw the errors of each statement inside its assumptions, for the printed and the corrected form.

        Each point is the largest error over levels and settings where the statement should hold, in units of the
        check's tolerance; it should lie left of the line at 1.

        Parameters
        ----------
        statement : str, optional
            Draw the checks of the statement with this id. Default: draw all statements with rows.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        if statement is not None:
            checks.one_of("statement", statement, list(dict.fromkeys(row.statement for row in self.table)))
        from yzflow.audits import plots  # matplotlib takes a third of a second

        with display.styled(style):
            return plots.statement_errors(self, statement, ax)

    def to_json(self, path: str | os.PathLike) -> None:
        """Write everything to a JSON file."""
        with replacing(path) as temporary:
            temporary.write_text(self.json() + "\n", encoding="utf-8")

    def to_html(self, path: str | os.PathLike) -> None:
        """Write one HTML page that stands alone: each statement with its forms, errata, grounds and table."""
        with replacing(path) as temporary:
            temporary.write_text(_page(self), encoding="utf-8")


def assumed(statement: Statement) -> list[str]:
    """Sentences on the assumptions: one for the statement, and one for each clause or check that differs."""
    held = statement.assumes.items()
    return [f"{whose}: {'; '.join(texts) or 'nothing that its formula does not say'}." for whose, texts in held]


def _no_erratum(statement: statements.Statement) -> str:
    return "A statement of ours." if statement.own else "No erratum found."


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1rem }
th, td { border-bottom: 1px solid #8886; padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top }
tbody th { font-weight: inherit }
caption { text-align: left }
code { font-size: 0.9em; overflow-wrap: anywhere }
img { max-width: 100%; background: white }
.formula svg { max-width: calc(100% - 1.5rem); margin: 0.3rem 1.5rem 0.3rem 0 }
.bad { font-weight: bold }
summary { padding: 0.15rem 0 }
h2 { display: inline; font-size: 1rem }
details[open] { border-bottom: 1px solid #8886; margin-bottom: 1rem }
"""
# Hidden until the script shows it; a row of details has all words of its statement, which folded text would hide.
_FILTER = (
    "<p id=filter hidden><label>Show only what has the words <input type=search></label> <span role=status></span></p>"
)
_SCRIPT = """<script>
(() => {
  const rows = [...document.querySelectorAll("body > details:not(.flows)")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const filter = document.getElementById("filter");
  filter.hidden = false;
  filter.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\\s+/);
    rows.forEach((row, i) => { row.hidden = !words.every((word) => texts[i].includes(word)); });
    filter.querySelector("span").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  });
})();
</script>"""


def _page(report: AuditReport) -> str:
    escape = html.escape
    summary = "Every statement that should hold does." if report.passed else "A statement that should hold does not."
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'><title>yzflow: theorem audit</title>",
        f"<style>{_STYLE}</style><h1>Theorem audit</h1>",
        f"<p>{summary} {report.counted()}</p>",
        *(f"<p>{escape(line)}</p>" for line in report.unsaid),
    ]
    if report.enclosed:
        flows = "".join(f"<li>{escape(f'{flow.setting}, {flow.level}: {flow.words}')}" for flow in report.enclosed)
        parts.append(
            f"<p>{escape(report.decided())}</p><details class=flows><summary>Enclosed flows</summary><ul>{flows}</ul>"
        )
        parts.append("</details>")
    parts += [_FILTER, *(_folded(report, statement) for statement in report.statements), _SCRIPT]
    return "\n".join(parts) + "\n</html>\n"


def _folded(report: AuditReport, statement: Statement) -> str:
    """A statement's verdict in a sentence, which unfolds to its forms, errata, grounds and table."""
    escape, alone = html.escape, report.of(statement)
    bad, said = (" class=bad", failing(alone.wrong)) if alone.wrong else ("", headline(alone.columns(statement)))
    title = f"{escape(statement.id)}. {escape(statement.title)}"
    parts = [f"<details><summary{bad}><h2>{title}</h2> {escape(said)}</summary><p>{escape(statement.text)}</p>"]
    parts += [f"<p class=formula>{escape(name)}: {formulas.as_html(formula)}</p>" for name, formula in statement.forms]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in assumed(statement)]
    errata = [f"<p>{erratum.label}: {escape(erratum)}</p>" for erratum in statement.errata]
    parts += errata or [f"<p>{_no_erratum(statement)}</p>"]
    if campaigns := campaign_table.tried(statement):
        parts.append(f"<p>Tried inside all assumptions: {escape(campaign_table.words(campaigns))}.</p>")
    parts.append(f"<p>Summary: {escape(str(report.summary(statement)))}.</p><p>Rests on:</p><ul>")
    for clause in statement.clauses:
        if clause.formula:
            parts.append(f"<li class=formula>{escape(clause.name)}: {formulas.as_html(clause.formula)}")
        parts += [f"<li>{escape(str(label))}" for label in report.labels_of(statement, clause)]
    parts.append("</ul>")
    if rows := alone.table:
        parts.append(_plot(report, statement.id))
        source = escape(statement.source.short)
        names = ["check", "simulation", "setting", "assumptions", source, "corrected", "expected"]
        names += ["verdict", "in balls"] if report.enclosed else ["verdict"]
        cells = [_cells(row, balls=bool(report.enclosed)) for row in rows]
        parts.append(html_table(names, cells, "One row for each setting", bad=[row.alarming for row in rows]))
    return "\n".join([*parts, "</details>"])


def _plot(report: AuditReport, statement: str) -> str:
    """The errors of a statement as an inline picture, so that the page stands alone."""
    from yzflow.audits import plots

    picture = io.BytesIO()
    plots.audit_errors(report, statement).savefig(picture, format="png", dpi=110)
    encoded = base64.b64encode(picture.getvalue()).decode()
    text = html.escape(f"Errors of {statement} by setting and level, as in the table below", quote=True)
    return f"<img alt='{text}' src='data:image/png;base64,{encoded}'>"


def _cells(row: Row, *, balls: bool) -> list[str]:
    assumptions = "hold" if row.inside else "broken: " + "; ".join(broken(row.margins))
    decided = ["-" if row.decided is None else row.decided.words] if balls else []
    cells = [row.check, row.level, row.setting, assumptions, *row.forms, row.words, *decided]
    return [html.escape(cell) for cell in cells]
