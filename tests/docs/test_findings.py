"""The list of findings has the title of each page."""

import re

from driving import ROOT

from yzflow.values.marks import bare

DOCS = ROOT / "docs"


def test_the_list_of_findings_has_their_titles():
    listed = re.findall(r"^- \[(.+)\]\((findings/[^)]+)\)$", (DOCS / "findings.md").read_text(encoding="utf-8"), re.M)
    assert {path for _, path in listed} == {f"findings/{path.name}" for path in DOCS.glob("findings/*.md")}
    for title, path in listed:
        first = bare((DOCS / path).read_text(encoding="utf-8")).split("\n", 1)[0]
        assert first == f"# {title}"
