"""The page of errata has the register's words, formulas and hypotheses: all of it that needs no audit."""

import re

from driving import ROOT

from theory import statements
from yzflow.audits.audit import AuditReport
from yzflow.audits.report import errata_page

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
REGISTER = tuple(statements.REGISTER.values())


def of_the_register(page):
    """The lines without tables, without counts, and without what statements and clauses rest on."""
    lines = [line.partition("ests on:")[0] for line in page.split("\n")]
    return [line for line in lines if line and not line.startswith("|") and not re.match(r"Of \d+ statements", line)]


def test_the_page_has_what_the_register_says():
    assert of_the_register(PAGE) == of_the_register(errata_page(AuditReport([], REGISTER, {})))


def test_the_page_names_the_register_s_checks_and_what_is_argued():
    parts = {part.split(". ")[0]: part for part in re.split(r"\n## ", PAGE)[1:]}
    for one in REGISTER:
        part = parts[one.id]
        for check in one.checks:
            assert f"| {check.name} |" in part.replace("\\|", "|"), (one.id, check.name)
        for clause in one.clauses:
            assert all(text in part for text in (*clause.argued, *clause.not_examined)), (one.id, clause.name)
