"""The pages of the findings, which stand with their studies, in the site: a copy of each, with links that lead there.

In the repository a link is the path from one file to another; in the site the findings stand in ``findings``.
"""

import posixpath
import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FOLDER = "docs/findings"
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


@cache
def pages() -> dict[str, str]:
    """Path of each page in the repository -> that of its copy, whose name begins with the finding's number."""
    found = {}
    for path in sorted(ROOT.glob("studies/yzflow_studies/*/*.md")):
        heading = re.match(r"# (\d+)\. ", path.read_text(encoding="utf-8"))
        assert heading, f"{path} begins with no number of a finding"
        name = path.parent.name if path.stem == "page" else path.stem
        found[path.relative_to(ROOT).as_posix()] = f"{FOLDER}/{int(heading[1]):02d}_{name}.md"
    return found


def in_site(text: str, path: str) -> str:
    """A page of this path in the repository, with links from and to where pages stand in the site."""
    here = pages().get(path, path)

    def link(match: re.Match[str]) -> str:
        if re.match(r"\w+:|/", match[2]):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2]))
        if here == path and target not in pages():
            return match[0]
        return match[1] + posixpath.relpath(pages().get(target, target), posixpath.dirname(here)) + match[3]

    return _LINK.sub(link, text)


def write(app: Sphinx) -> None:
    """Before any source is read; an unchanged copy is not read again."""
    folder = ROOT / FOLDER
    folder.mkdir(exist_ok=True)
    wanted = {ROOT / copy: in_site((ROOT / path).read_text(encoding="utf-8"), path) for path, copy in pages().items()}
    for old in set(folder.glob("*.md")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Links of the other pages to the findings."""
    if not page.startswith("findings/"):
        source[0] = in_site(source[0], f"docs/{page}.md")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
