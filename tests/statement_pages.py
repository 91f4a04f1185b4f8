"""What tests of statements' pages share: a page for its look and its sliders, without a run of any check."""

from theory.statements import Statement
from theory.symbolic import Derivation
from yzflow.audits.check import StatementVerdict
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row
from yzflow.pages import statement as single

SCREEN = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def invented(statement: Statement, error: float = 0.3, settings: int = 8) -> StatementVerdict:
    """A verdict on a statement with as many settings a level; nothing is run."""
    rows = [
        Row(
            statement.id,
            check.name,
            level,
            f"setting {n}",
            True,
            {one.text: 1.5 for one in (*statement.assumptions, *check.assumptions)},
            error * n,
            error * n / 100 if check.corrected else None,
            check.tolerance,
            expected=False,
            label=statement.measured(check, level=level, setting=f"setting {n}", error=error),
        )
        for check in statement.checks
        for level in check.levels
        for n in range(settings)
    ]
    return StatementVerdict(statement, AuditReport(rows, (statement,), {}), True, 0)


def bare(statement: Statement, folder, settings: int = 8):
    """The file of such a page, without a proof; made once in a folder."""
    path = folder / f"{single.slug(statement)}.html"
    if not path.exists():
        text = single.html(invented(statement, settings=settings), derivation=Derivation("", {}))
        path.write_text(text, encoding="utf-8")
    return path
