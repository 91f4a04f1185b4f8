"""The list of findings has the title of each page."""

import re

from driving import ROOT

from yzflow.values.marks import bare

DOCS = ROOT / "docs"


def test_the_list_of_findings_has_their_titles():
    listed = re.findall(
        r"^- \[(.+)\]\((\.\./studies/[^)]+)\)$", (DOCS / "findings.md").read_text(encoding="utf-8"), re.M
    )
    pages = ROOT.glob("studies/yzflow_studies/*/*.md")
    assert {path for _, path in listed} == {f"../{path.relative_to(ROOT).as_posix()}" for path in pages}
    for title, path in listed:
        first = bare((DOCS / path).read_text(encoding="utf-8")).split("\n", 1)[0]
        assert first == f"# {title}"
