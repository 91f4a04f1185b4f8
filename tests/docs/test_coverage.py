"""The table of what is here of the papers names statements that exist, all of them, and counts its own rows."""

import re
from collections import Counter

from driving import ROOT

from theory.papers import papers

PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
PAPERS = ("Scan and Snap", "Bounded Dyck", "Sparse averaging")
STATES = ("full", "partial", "not")


def rows(section):
    """(item, where, state, why) of each row below a heading."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return cells[2:]


def test_named_statements_are_those_of_the_register():
    for paper in papers().values():
        if paper.name in PAPERS:
            named = re.findall(rf"`{paper.name}: ([^`]+)`", "\n".join(row[1] for row in rows(paper.name)))
            assert set(named) == {statement.number for statement in paper.statements}


def test_a_row_has_a_state_and_what_is_missing():
    for row in (row for paper in PAPERS for row in rows(paper)):
        assert len(row) == 4 and row[2] in STATES, row
        assert row[2] == "full" or row[3], row


def test_counts_are_those_of_the_rows():
    counts = {paper: Counter(row[2] for row in rows(paper)) for paper in PAPERS}
    counts["together"] = sum(counts.values(), Counter())
    for name, states in counts.items():
        numbers = " | ".join(str(number) for number in (states.total(), *(states[state] for state in STATES)))
        assert f"\n| {name} | {numbers} |\n" in PAGE
