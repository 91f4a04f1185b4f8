"""The page of errata has the register's words, formulas and hypotheses: all of it that needs no audit."""

import re

from driving import ROOT
from errata_page import errata_page
from ours import OURS

from yzflow.audits.audit import AuditReport

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
REGISTER = tuple(OURS.values())


def parts_of(page):
    """Id, or heading of a group -> its part of the page."""
    parts = re.split(r"^(?=## |### |<summary>(?!The statement))", page, flags=re.M)
    return {re.sub(r"^\S*#+ |^<summary>", "", part).split("\n")[0].split(". ")[0]: part for part in parts}


def of_the_register(page):
    """The lines of each part without tables, counts, errors, and what statements and clauses rest on."""
    found = {}
    for name, part in parts_of(page).items():
        lines = [line.partition("ests on:")[0] for line in part.split("\n")]
        from_audit = re.compile(r"\||\*\*|Of \d+ statements|</?details>")  # an entry's end stands with the next one
        found[name] = [line for line in lines if line and not from_audit.match(line)]
    return found


def test_the_page_has_what_the_register_says():
    assert of_the_register(PAGE) == of_the_register(errata_page(AuditReport([], REGISTER, {})))


def test_the_page_names_the_register_s_checks_and_what_is_argued():
    parts = parts_of(PAGE)
    for one in REGISTER:
        part = parts[one.id]
        for check in one.checks:
            assert f"| {check.name} |" in part.replace("\\|", "|"), (one.id, check.name)
        for clause in one.clauses:
            assert all(text in part for text in (*clause.argued, *clause.not_examined)), (one.id, clause.name)
