"""Pages that are run in a kernel when the site is built, and the same pages as notebooks.

The pages stay plain Markdown, which any viewer shows and the tests run as it stands. Here their blocks of Python become
cells of myst-nb, which puts an output below each and offers the notebook that was run. Without a site,
``python docs/_ext/notebooks.py FOLDER`` writes the notebooks, not yet run, and the lesson's for students.
"""

import json
import re
import sys
from pathlib import Path

from yzflow.values.marks import bare

DOCS = Path(__file__).parents[1]
PAGES = ("tutorial", "teaching", "lesson", "figure_style")
STUDENTS = "lesson"
GENERATED = DOCS / "_generated"
_FRONT = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_FOLD = re.compile(r"</?details(?: open)?>|<summary>(.*?)</summary>")
_FOLDED = re.compile(r"^<details( open)?>.*?^</details>\n", re.MULTILINE | re.DOTALL)
_ANSWER = "```python\n# Your answer\n```\n"
_HEADING = re.compile(r"\A# .*\n")
_DOWNLOAD = (
    "\nBelow each block stands what it showed when this page was made: {nb-download}`download the notebook <%s>`.\n"
)
_WITHOUT = "Students get {download}`one without solutions <_generated/%s>`.\n"


def as_cells(text: str, name: str) -> str:
    """The page for myst-nb: its blocks of Python are cells, and a link to the notebook stands below its heading."""
    cells = _BLOCK.sub(lambda block: f"```{{code-cell}} ipython3\n{block[1]}```\n", text)
    link = _DOWNLOAD % f"{name.rpartition('/')[2]}.ipynb"
    if name == STUDENTS:
        link += _WITHOUT % for_students().name
    return _FRONT + _HEADING.sub(lambda heading: heading[0] + link, cells)


def as_notebook(text: str) -> dict:
    """The page as a notebook (nbformat 4) without outputs: its blocks of Python are the cells of code."""
    cells = []
    for number, part in enumerate(_BLOCK.split(text)):
        source = _FOLD.sub(r"\1", part).strip("\n")  # a cell cannot fold the next one
        kind = (
            {"cell_type": "code", "execution_count": None, "outputs": []} if number % 2 else {"cell_type": "markdown"}
        )
        if source:
            cells.append({"id": f"cell-{number}", "metadata": {}, "source": source, **kind})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


def without_solutions(text: str) -> str:
    """The page without what is folded: the plan that is open goes, and an empty answer stands for each solution."""
    return _FOLDED.sub(lambda folded: "" if folded[1] else _ANSWER, text)


def for_students(folder: Path = GENERATED) -> Path:
    """Write the lesson's notebook for students."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STUDENTS}_students.ipynb"
    _save(path, without_solutions((DOCS / f"{STUDENTS}.md").read_text(encoding="utf-8")))
    return path


def _save(path: Path, text: str) -> None:
    path.write_text(json.dumps(as_notebook(bare(text)), indent=1) + "\n", encoding="utf-8")


def write(folder: Path) -> list[Path]:
    """The notebooks of all pages, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{page.rpartition('/')[2]}.ipynb" for page in PAGES]
    for page, path in zip(PAGES, paths, strict=True):
        _save(path, (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    return [*paths, for_students(folder)]


def _read(app, name, content):
    if name in PAGES:
        content[0] = as_cells(content[0], name)


def setup(app):
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
