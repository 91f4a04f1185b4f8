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


def test_links_of_findings_and_to_them_are_paths_in_the_repository():
    """The site's own are mapped from these, see docs/_ext/findings.py."""
    lost = []
    for path in [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md"), *ROOT.glob("studies/*/*/*.md")]:
        if path.parent.name == "findings":  # copies in the site
            continue
        for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", path.read_text(encoding="utf-8")):
            own = "studies" in path.relative_to(ROOT).parts or "studies/" in link
            if own and not re.match(r"\w+:", link) and not (path.parent / link).resolve().is_file():
                lost.append(f"{path.relative_to(ROOT)}: {link}")
    assert lost == []
