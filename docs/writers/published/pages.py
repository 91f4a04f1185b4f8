"""The pages of a clone that quote numbers: compared with what is stored, and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from dynamics.support import checks, files
from published.keys import Page
from published.rooms import STUDIES, Fault, rooms
from theory.values import find

__all__ = ["check_pages", "finder", "pages", "sources", "unkeyed", "write_pages"]

# Modules whose text readers see: the register, captions, questions and the help of commands.
_SOURCES = (
    "theory/*/statements*.py",
    "theory/*/_register/*.py",
    "papers/*/yzflow_*/_register/*.py",
    "papers/*/yzflow_*/panel/*.py",
    "papers/*/yzflow_*/questions.py",
    "papers/*/yzflow_*/statements.py",
    "papers/*/yzflow_*/views/*.py",
    "yzflow/papers/*/questions.py",
    "yzflow/papers/*/figures/*.py",
    "yzflow/papers/*/views/*.py",
    "yzflow/papers/*/panel/*.py",
    "yzflow/audits/plots.py",
    "yzflow/commands/*.py",
    "papers/joma/yzflow_joma/figures.py",
    f"{STUDIES}/*/study.py",
    f"{STUDIES}/certified_leads/cells.py",
    f"{STUDIES}/certified_leads/lattice.py",
)
# Pages that a program writes, and a test makes again.
_MADE = ("docs/benchmarks/*.md", "docs/errata.md", "docs/survival.md")


def pages(root: Path) -> list[Path]:
    """The Markdown of a clone: the README, the documentation but what is generated, and the findings."""
    docs = sorted((root / "docs").rglob("*.md"))
    hidden = {"_build", "_generated", "findings"}  # the last are copies
    written = [path for path in docs if not hidden & set(path.relative_to(root).parts)]
    return [root / "README.md", *written, *sorted((root / STUDIES).glob("*/*.md"))]


def sources(root: Path) -> list[Path]:
    """The modules of a clone whose text readers see: the register, captions, questions, help."""
    return sorted({path for pattern in _SOURCES for path in root.glob(pattern)})


def finder(root: Path) -> Callable[[str], Any]:
    """Name -> stored number, of the rooms of a clone."""
    known = rooms(root)
    return cache(lambda name: find(name, known))


def _read(root: Path, names: Sequence[str] = ()) -> dict[str, Page]:
    """Pages and modules by name: those named, or all but what a program writes.

    Raises
    ------
    ValueError
        If a name is that of no page and no module.
    """
    known = {str(path.relative_to(root)): path for path in [*pages(root), *sources(root)]}
    for name in names:
        checks.one_of("files", name, known)
    return {
        name: Page(path.read_text(encoding="utf-8"), module=path.suffix == ".py")
        for name, path in known.items()
        if (not names or name in names) and not any(fnmatch(name, pattern) for pattern in _MADE)
    }


def check_pages(root: Path) -> list[Fault]:
    """Where the pages and modules of a clone do not have what is stored, or a number has no key."""
    stored = finder(root)
    return [Fault(name, *problem) for name, page in _read(root).items() for problem in page.check(stored)]


def unkeyed(root: Path, names: Sequence[str] = ()) -> list[Fault]:
    """Numbers of these files, by default of all, that have no key and are not typed on purpose."""
    stored = finder(root)
    return [Fault(name, *problem) for name, page in _read(root, names).items() for problem in page.unkeyed(stored)]


def write_pages(root: Path) -> list[str]:
    """Put the stored digits before the marks of all pages and modules; returns the files that changed.

    Raises
    ------
    ValueError
        If a key has no number, or a word has to change, which a person types.
    """
    stored, changed = finder(root), []
    for name, page in _read(root).items():
        try:
            new = page.written(stored)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if new != page.text:
            files.write(root / name, new.encode())
            changed.append(name)
    return changed
