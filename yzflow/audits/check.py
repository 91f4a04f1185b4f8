"""One statement of the register: its proof and its simulations run, shown on one screen or as a card."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from dynamics import Objective, Optimizer
from dynamics.support import checks
from dynamics.support.files import writable
from dynamics.version import __version__
from theory.statements import Statement
from theory.trust import Trust
from yzflow.audits import formulas
from yzflow.audits.audit import audit, prove
from yzflow.audits.checked_statement import MARGINS, Examined, bare, head, margin_rows
from yzflow.audits.find_statement import find
from yzflow.audits.own_training import measure, own_case
from yzflow.audits.rendered import as_json, columns, markdown_table
from yzflow.audits.report import AuditReport, assumed
from yzflow.audits.screen import outcomes, screen, wrapped
from yzflow.audits.verdicts import Verdict, judge

__all__ = ["StatementVerdict", "check"]

# Arguments of `check` for a reader's own case. Files of checks never hold them.
OWN_ARGUMENTS = ("data", "eta_y", "eta_z", "t_end", "optimizer", "objective", "level")


@dataclass(frozen=True, repr=False)
class StatementVerdict(Examined):
    """The result of `yzflow.check`: one statement examined, shown on one screen, as a card or as a page."""

    def text(self, *, verbose: bool = False) -> str:
        """The statement, its grounds, margins and errors by level: at most 40 lines of 100 columns.

        Parameters
        ----------
        verbose : bool
            Show everything: all grounds with their scopes, all settings, errors outside the assumptions, and the Python
            code that repeats the check.
        """
        if not checks.flag("verbose", verbose):
            return "\n".join(screen(self, self.command))
        statement = self.statement
        lines = [f"{statement.id}. {statement.title}", *wrapped(statement.text, ""), ""]
        for name, formula in statement.forms:
            lines += wrapped(formula, f"{name}: ".ljust(13))
        for said in assumed(statement):
            lines += wrapped(said, "")
        for erratum in statement.errata:
            lines += wrapped(erratum, f"{erratum.label}:".ljust(13))
        for clause in statement.clauses:
            if clause.formula:
                lines += wrapped(f"{clause.name}: {clause.formula}", "Part:        ")
        lines += ["", *wrapped(self.outcome, "")]
        lines += outcomes(self.columns, statement, self.extent)
        lines += ["", "Rests on"]
        for label in self.labels:
            lines += wrapped(str(label), "  - ")
        if statement.checked:
            lines += ["", "Checked by the kernel of Coq"]
            for theorem in statement.checked:
                lines += wrapped(f"{theorem.name}: {theorem.words} {theorem.axioms_in_words}", "  - ")
        for theorem in statement.lapsed:
            lines += wrapped(f"{theorem.lapse}.", "  - ")
        if self.margins:
            lines += ["", MARGINS, *columns(margin_rows(self)), *wrapped("; ".join(_numbered(self)), "  ")]
        if self.rows:
            table = [head(statement), *(row.words for row in self.errors)]
            lines += ["", "Largest errors over the settings", *columns(table)]
        return "\n".join([*lines, "", *self.python.splitlines()])

    def markdown(self) -> str:
        """The verdict as a card for a review, with answers to the checklists of two conferences."""
        statement = self.statement
        lines = [f"### {statement.id}. {statement.title}", "", statement.text, ""]
        for name, formula in statement.forms:
            lines += [f"{name}:", "", *formulas.as_markdown(formula), ""]
        lines += [line for sentence in assumed(statement) for line in (sentence, "")]
        lines += [f"- {erratum.label}: {erratum}" for erratum in statement.errata] + [""] * bool(statement.errata)
        for clause in statement.clauses:
            if clause.formula:
                lines += [f"{clause.name[0].upper()}{clause.name[1:]}:", "", *formulas.as_markdown(clause.formula), ""]
        verdict = [[column.words for column in self.columns]]
        lines += [
            f"**{self.outcome}**",
            "",
            *markdown_table([[column.title for column in self.columns], *verdict]),
            "",
            *([f"Run: {self.extent}.", ""] if self.extent else []),
            "Rests on:",
            "",
            *(f"- {label}" for label in self.labels),
            *(
                f"- {theorem.name}, checked by the kernel of Coq: {theorem.words} {theorem.axioms_in_words}"
                for theorem in statement.checked
            ),
            *(f"- {theorem.lapse}." for theorem in statement.lapsed),
            "",
        ]
        if self.margins:
            lines += [f"{MARGINS}:", "", *markdown_table(margin_rows(self)), "", *_numbered(self), ""]
        if self.rows:
            lines += [*markdown_table([head(statement), *(row.words for row in self.errors)]), ""]
        lines += [f"- {name}: {answer}" for name, answer in self.checklists().items()]
        lines += ["", f"Made by yzflow {__version__}: `{self.command}`.", ""]
        return "\n".join(lines)

    def page(self, path: str | os.PathLike) -> None:
        """Write the verdict as one HTML file that needs no network, completely or not at all."""
        # Imported here, since most checks write no page.
        from yzflow.pages.files import save
        from yzflow.pages.statement import html

        save(html(self), writable("path", path))

    def checklists(self) -> dict[str, str]:
        """An answer with its reason for each of two checklists, from what was computed.

        AAAI asks whether all theoretical claims are demonstrated empirically to hold, NeurIPS for the full set of
        assumptions and a complete and correct proof of each result. Both speak of the *printed* statement.
        """
        return {
            "AAAI, claims demonstrated empirically to hold": _demonstrated(self),
            "NeurIPS, theory, assumptions and proofs": _proved(self),
        }

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        statement = self.statement
        return {
            "statement": statement.id,
            "title": statement.title,
            "text": statement.text,
            "printed": statement.printed,
            "corrected": statement.corrected,
            "assumes": statement.assumes,
            "errata": list(statement.errata),
            "passed": self.passed,
            "headline": self.headline,
            "outcome": self.outcome,
            "next": self.next,
            "run": self.extent,
            "columns": {column.name: column.as_dict() for column in self.columns},
            "summary": self.summary.as_dict(),
            "labels": [label.as_dict() for label in self.labels],
            "clauses": {clause.name: label.as_dict() for clause, label in self.report.summaries(statement)},
            "margins": self.margins,
            "predicted": None if self.own is None else self.own.predicted,
            "rows": [row.as_dict() for row in self.rows],
            "checklists": self.checklists(),
            "python": self.python,
            "command": self.command,
            "version": __version__,
            "made": {
                "function": "check" if self.own is None else "check at own data",
                "arguments": {"statement": statement.id, "quick": self.quick, "seed": self.seed},
                "environment": self.report.environment(),
            },
        }

    def json(self) -> str:
        """Everything as JSON."""
        return as_json(self.as_dict())

    def __repr__(self) -> str:
        return self.text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("StatementVerdict(..)" if cycle else self.text())

    def _repr_markdown_(self) -> str:
        return self.markdown()


def check(
    statement: str | Statement,
    *,
    data: Any = None,
    eta_y: float | None = None,
    eta_z: float | None = None,
    t_end: float | None = None,
    optimizer: Optimizer | str | None = None,
    objective: Objective | None = None,
    level: str | None = None,
    quick: bool = True,
    seed: int = 0,
    progress: bool = False,
) -> StatementVerdict:
    """Run the proof and the simulations of one statement, at the register's settings or at your own data and training.

    Parameters
    ----------
    statement : str or Statement
        Its id in the register, "<paper>: Theorem 3", or its number if only one paper has that number; case and spaces
        do not matter. Or a `Statement`, which need not be in the register. If it has checks, its paper must be known.
    data : SequenceClasses or Bags, optional
        Your own: the checks are run on it, and not at the register's settings. Bags must have one query for each next
        token, as the paper's classes do. Another paper may take something else, such as a model; its pages say so.
    eta_y, eta_z : float, optional
        With ``data``: learning rates per step. Default: 1 and 0.5.
    t_end : float, optional
        With ``data``: SGD steps. Default: 4 K ln M/eta_y, twice the end of the first stage, and at most 10,000.
    optimizer : Optimizer or str, optional
        With ``data``. Default: plain steps. The verdict names options that the statement does not treat.
    objective : Objective, optional
        With ``data``.
    level : str, optional
        With ``data``: one level, as "full flow". Default: those of training.
    quick : bool
        Run only some of the settings, enough for a first verdict; `yzflow.audit` runs all by default.
    seed : int
        Seed of the SGD runs.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If the register has no such statement, with the nearest ones, or several; or an argument is invalid.

    Examples
    --------
    >>> import yzflow as yz
    >>> classes = yz.SequenceClasses([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], query=[0, 0], vocab_size=20)
    >>> verdict = yz.check("Theorem 2(a)", data=classes, eta_z=0.01, level="full flow")
    >>> print(verdict.headline)  # doctest: +SKIP
    """
    chosen = find(statement)
    seed, quick = checks.integer("seed", seed, minimum=0), checks.flag("quick", quick)
    given = {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "optimizer": optimizer, "objective": objective}
    if data is not None:
        case = own_case(chosen, level=level, data=data, **given)
        rows, case, absent, modules = measure(chosen, case, seed=seed)
        proofs = {chosen.id: prove(chosen)} if chosen.proofs else {}
        report = AuditReport(rows, (chosen,), proofs, modules=modules)
        return StatementVerdict(chosen, report, quick, seed, case, absent)
    for name, value in {**given, "level": level}.items():
        if value is not None:
            raise checks.reject(name, "come with `data`", checks.brief(value))
    report = audit([chosen], quick=quick, seed=seed, progress=progress)
    return StatementVerdict(chosen, report, quick, seed)


def _numbered(verdict: Examined) -> list[str]:
    """Numbers and names of the settings, a legend for the columns of `margin_rows`."""
    return [f"{number}. {bare(name)}" for number, name in enumerate(verdict.margins, 1)]


def _demonstrated(verdict: Examined) -> str:
    beyond = {check.name for check in verdict.statement.checks if check.suffices is not None}
    rows = [row for row in verdict.rows if row.expected and row.check not in beyond]
    if verdict.statement.conjecture:
        return "n/a: a conjecture; what was measured speaks of a construction against it"
    if not rows:
        inside = "no check against a simulation" if not verdict.rows else "no measurement inside its assumptions here"
        return f"n/a: the statement has {inside}"
    printed = sum(judge(row.printed, row.tolerance) is not Verdict.FAILS for row in rows)
    corrected = sum(judge(row.error, row.tolerance) is not Verdict.FAILS for row in rows)
    answer = "yes" if printed == len(rows) else "partial" if printed else "no"
    form = verdict.statement.source.form
    second = f", the corrected form in {corrected}" if verdict.statement.corrected else ""
    return (
        f"{answer}: the {form} holds within its tolerance in {printed} of {len(rows)} measurements inside the "
        f"assumptions{second}"
    )


def _proved(verdict: Examined) -> str:
    statement = verdict.statement
    if statement.conjecture:
        return "n/a: a conjecture"
    labels = verdict.report.labels_of_proofs.get(statement.id, ())
    number = len({text for texts in statement.assumes.values() for text in texts})
    stated = f"{number} assumptions with margins" if number else "no assumption to test"
    number = len(statement.accused)
    errata = f"{number} errat{'um' if number == 1 else 'a'}" if number else "no erratum found"
    if not labels:
        return f"not decided here: no proof was run; {stated}; {errata}"
    failing = [label for label in labels if not label.holds]
    if failing:
        return f"no: the proof fails; {stated}; {errata}"
    of = "the corrected form" if statement.corrected else f"the {statement.source.form}"
    without = [clause.name for clause in statement.clauses if all(label.clause != clause.name for label in labels)]
    complete = not without and all(label.trust is Trust.PROVED and not label.prose for label in labels)
    answer = "yes" if complete and not statement.accused else "partial"
    missing = f"; without a proof: {', '.join(without)}" if without else ""
    return f"{answer}: {of} is {'; '.join(map(str, labels))}{missing}; {stated}; {errata}"
