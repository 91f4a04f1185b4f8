"""The theorem audit: every statement of the register, proved symbolically and measured against simulations."""

from __future__ import annotations

import base64
import html
import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from dynamics import Trajectory
from dynamics.support import checks
from dynamics.support.files import replacing
from dynamics.support.progress import Progress
from theory import statements
from theory.statements import Check, Setting, Statement
from yzflow.audits.settings import settings
from yzflow.figures.audit import audit_errors

_EXACT = 1e-8


class Simulations:
    """The simulations of one setting, each made on first use; what `theory.statements.Runs` asks for."""

    def __init__(self, setting: Setting, *, seed: int):
        self.setting = setting
        self._seed = seed
        self._made: dict[str, Trajectory] = {}

    def trajectory(self, level: str) -> Trajectory:
        """The simulation at a level of fidelity."""
        if level not in self._made:
            self._made[level] = self.setting.simulate(level, seed=self._seed)
        return self._made[level]


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
    verdict : str
        "holds exactly", "holds within ..", "holds with the correction", or "fails".
    expected : bool
        Whether it should hold here.
    """

    statement: str
    check: str
    level: str
    setting: str
    inside: bool
    margins: dict[str, float]
    printed: float
    corrected: float | None
    verdict: str
    expected: bool

    @property
    def alarming(self) -> bool:
        """A statement that should hold and does not."""
        return self.expected and self.verdict == "fails"


def verdict(printed: float, corrected: float | None, tolerance: float) -> str:
    """The cell's text for the errors of the printed and the corrected form."""
    for error, note in ((printed, ""), (corrected, " with the correction")):
        if error is None or not np.isfinite(error):
            continue
        if error <= min(tolerance, _EXACT):
            return f"holds{note or ' exactly'}" if note else "holds exactly"
        if error <= tolerance:
            return f"holds{note or f' within {error:.1%}'}"
    return "fails"


@dataclass(frozen=True)
class AuditReport:
    """The result of `audit`.

    Attributes
    ----------
    table : list of Row
    proofs : dict
        Statement -> names of the expressions that its symbolic proof could not make vanish; empty lists are proofs.
    """

    table: list[Row]
    proofs: dict[str, list[str]]

    @property
    def passed(self) -> bool:
        """Whether every proof holds, and every statement that should hold in a setting does."""
        return not any(self.proofs.values()) and not any(row.alarming for row in self.table)

    def text(self) -> str:
        """A line for each check and level: the worst setting inside the assumptions, and the worst outside."""
        lines = ["Symbolic proofs"]
        lines += [
            f"  {name}: {'proved' if not wrong else 'FAILS: ' + ', '.join(wrong)}"
            for name, wrong in self.proofs.items()
        ]
        lines += ["", f"{'statement':38}{'check':60}{'level':16}{'inside the assumptions':34}outside"]
        for statement, check, level in dict.fromkeys((row.statement, row.check, row.level) for row in self.table):
            rows = [row for row in self.table if (row.statement, row.check, row.level) == (statement, check, level)]
            cells = [self._worst([row for row in rows if row.inside is inside]) for inside in (True, False)]
            flag = " <- should hold" if any(row.alarming for row in rows) else ""
            lines.append(f"{statement:38}{check:60}{level:16}{cells[0]:34}{cells[1]}{flag}")
        return "\n".join(lines)

    @staticmethod
    def _worst(rows: Sequence[Row]) -> str:
        if not rows:
            return "-"
        order = ["holds exactly", "holds within", "holds with the correction", "fails"]
        worst = max(
            rows, key=lambda row: (max(i for i, v in enumerate(order) if row.verdict.startswith(v)), row.printed)
        )
        error = worst.printed if worst.corrected is None else worst.corrected
        return f"{worst.verdict} ({error:.2g})" if worst.verdict == "fails" else worst.verdict

    def json(self) -> str:
        """Everything as JSON."""
        rows = [asdict(row) | {"alarming": row.alarming} for row in self.table]
        return json.dumps({"passed": self.passed, "proofs": self.proofs, "rows": rows}, indent=2)

    def to_json(self, path: str | os.PathLike) -> None:
        """Write everything to a JSON file."""
        with replacing(path) as temporary:
            temporary.write_text(self.json() + "\n", encoding="utf-8")

    def to_html(self, path: str | os.PathLike) -> None:
        """Write a self-contained page: each statement with its forms, errata, proof and table."""
        with replacing(path) as temporary:
            temporary.write_text(_page(self), encoding="utf-8")


def audit(
    only: Sequence[str] | None = None, *, quick: bool = False, seed: int = 0, progress: bool = False
) -> AuditReport:
    """Prove and measure the statements of the register.

    Parameters
    ----------
    only : sequence of str, optional
        Statements, by id ("Scan and Snap: Theorem 3") or by number, which may be that of several papers. Default: all.
    quick : bool
        Only some of the settings.
    seed : int
        Of the SGD runs.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If ``only`` names a statement that is not in the register.
    """
    chosen = _choose(only)
    seed = checks.integer("seed", seed, minimum=0)
    proofs, table = {}, []
    simulations = {
        paper: [Simulations(setting, seed=seed) for setting in tasks] for paper, tasks in settings(quick=quick).items()
    }
    with Progress("audit", enabled=progress) as report:
        for i, statement in enumerate(chosen):
            report.update(i / len(chosen), statement.id)
            if statement.prove is not None:
                proofs[statement.id] = statement.prove().failures()
            for runs in simulations.get(statement.paper, ()):
                for check in statement.checks:
                    table += [_measure(statement, check, level, runs) for level in check.levels]
    return AuditReport(table, proofs)


def _choose(only: Sequence[str] | None) -> list[Statement]:
    register = statements.REGISTER
    if only is None:
        return list(register.values())
    for name in only:
        if not any(name in (statement.id, statement.number) for statement in register.values()):
            raise checks.reject("only", "name statements of the register", repr(name))
    return [statement for statement in register.values() if {statement.id, statement.number} & set(only)]


def _measure(statement: Statement, check: Check, level: str, runs: Simulations) -> Row:
    margins = statement.margins(runs.setting)
    inside = all(margin >= 1 for margin in margins.values())
    printed = check.printed(runs, level)
    corrected = None if check.corrected is None else check.corrected(runs, level)
    return Row(
        statement.id,
        check.name,
        level,
        runs.setting.name,
        inside,
        margins,
        printed,
        corrected,
        verdict(printed, corrected, check.tolerance),
        inside and level in check.expected,
    )


def errata_page() -> str:
    """The errata of every statement in the register as a Markdown page; a statement without one says so."""
    lines = [
        "# Errata",
        "",
        "Made from the register (`theory.statements`) by `yzflow.audits.audit.errata_page`; the audit measures each.",
        "",
        *(line for note in statements.not_examined() for line in (f"Not examined: {note}", "")),
    ]
    for statement in statements.REGISTER.values():
        lines += [
            f"## {statement.id}. {statement.title}",
            "",
            statement.text,
            "",
            f"As printed: `{statement.printed}`",
            "",
        ]
        if statement.corrected:
            lines += [f"Corrected: `{statement.corrected}`", ""]
        lines += [f"- {erratum}" for erratum in statement.errata] or ["No erratum found."]
        verified = ["a symbolic proof"] if statement.prove else []
        verified += [f"simulation ({check.name})" for check in statement.checks]
        lines += ["", f"Verified by {', '.join(verified)}.", ""]
    return "\n".join(lines)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1rem }
th, td { border-bottom: 1px solid #8886; padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top }
code { font-size: 0.9em }
img { max-width: 100%; background: white }
.bad { font-weight: bold }
h2 { margin-top: 2.5rem }
"""


def _page(report: AuditReport) -> str:
    escape = html.escape
    summary = "Every statement that should hold does." if report.passed else "A statement that should hold does not."
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'><title>yzflow: theorem audit</title>",
        f"<style>{_STYLE}</style><h1>Theorem audit</h1>",
        f"<p>{summary}</p>",
    ]
    shown = dict.fromkeys([*report.proofs, *(row.statement for row in report.table)])
    for name in [name for name in statements.REGISTER if name in shown]:
        statement = statements.REGISTER[name]
        parts.append(f"<h2>{escape(name)}. {escape(statement.title)}</h2><p>{escape(statement.text)}</p>")
        parts.append(f"<p>As printed: <code>{escape(statement.printed)}</code></p>")
        if statement.corrected:
            parts.append(f"<p>Corrected: <code>{escape(statement.corrected)}</code></p>")
        parts += [f"<p>Erratum: {escape(erratum)}</p>" for erratum in statement.errata] or ["<p>No erratum found.</p>"]
        if name in report.proofs:
            wrong = report.proofs[name]
            parts.append(f"<p>Symbolic proof: {'holds' if not wrong else escape('fails at ' + ', '.join(wrong))}.</p>")
        rows = [row for row in report.table if row.statement == name]
        if rows:
            parts.append(_plot(report, name))
            parts.append(
                "<table><tr><th>check<th>level<th>setting<th>assumptions<th>error<th>corrected<th>verdict</tr>"
            )
            parts += [_html_row(row) for row in rows] + ["</table>"]
    return "\n".join(parts) + "\n</html>\n"


def _plot(report: AuditReport, statement: str) -> str:
    """The errors of a statement as an inline picture, so that the page stands alone."""
    picture = io.BytesIO()
    audit_errors(report, statement).savefig(picture, format="png", dpi=110)
    encoded = base64.b64encode(picture.getvalue()).decode()
    text = html.escape(f"Errors of {statement} by setting and level, as in the table below", quote=True)
    return f"<img alt='{text}' src='data:image/png;base64,{encoded}'>"


def _html_row(row: Row) -> str:
    broken = [text for text, margin in row.margins.items() if margin < 1]
    cells = [
        row.check,
        row.level,
        row.setting,
        "hold" if row.inside else "broken: " + "; ".join(broken),
        f"{row.printed:.2g}",
        "" if row.corrected is None else f"{row.corrected:.2g}",
        row.verdict,
    ]
    return (
        f"<tr{' class=bad' if row.alarming else ''}>" + "".join(f"<td>{html.escape(cell)}" for cell in cells) + "</tr>"
    )
