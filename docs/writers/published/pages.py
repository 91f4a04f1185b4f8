"""The pages of a clone that quote numbers: compared with what is stored, and written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from dynamics.support import files
from published.marks import filled, marks, misplaced
from published.rooms import STUDIES, Fault, rooms
from theory.values import find

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["check_page", "check_pages", "finder", "pages", "reasons", "sources", "write_pages"]


def pages(root: Path) -> list[Path]:
    """The Markdown of a clone: the README, the documentation but what is generated, and the findings."""
    docs = sorted((root / "docs").rglob("*.md"))
    hidden = {"_build", "_generated", "findings"}  # the last are copies
    written = [path for path in docs if not hidden & set(path.relative_to(root).parts)]
    return [root / "README.md", *written, *sorted((root / STUDIES).glob("*/*.md"))]


def reasons(root: Path) -> dict[str, Any]:
    """The file of reasons: kinds and places of numbers that are typed, pages that are made, files with no others."""
    return tomllib.loads((root / "studies" / "reasons.toml").read_text(encoding="utf-8"))


def sources(root: Path) -> list[Path]:
    """The modules of a clone whose text readers see: the register, captions, questions, help."""
    return sorted({path for pattern in reasons(root)["sources"] for path in root.glob(pattern)})


def finder(root: Path) -> Callable[[str], Any]:
    """Name -> stored number, of the rooms of a clone."""
    known = rooms(root)
    return cache(lambda name: find(name, known))


def check_page(path: Path, find: Callable[[str], Any], file: str = "") -> list[Fault]:
    """Where a page does not have what is stored."""
    text, file = path.read_text(encoding="utf-8"), file or str(path)
    faults = [Fault(file, line, "mark", problem) for line, problem in misplaced(text)]
    for mark in marks(text):
        line = text.count("\n", 0, mark.start) + 1
        try:
            expected = mark.expected(find)
        except ValueError as error:
            faults.append(Fault(file, line, mark.name, str(error)))
            continue
        if mark.rows and mark.differs(expected):
            there, wanted = mark.text.splitlines(), expected.splitlines()
            if len(there) != len(wanted):
                faults.append(
                    Fault(file, line, mark.name, f"the table has {len(there)} rows, and {len(wanted)} are stored")
                )
            for i, pair in enumerate(zip(there, wanted, strict=False)):
                if pair[0].split() != pair[1].split():
                    faults.append(Fault(file, line + i, mark.name, f"the text has {pair[0]}, and stored is {pair[1]}"))
        elif mark.differs(expected):
            faults.append(Fault(file, line, mark.name, f"the text has {mark.text!r}, and stored is {expected!r}"))
    return faults


def check_pages(root: Path) -> list[Fault]:
    """Where the pages and captions of a clone do not have what is stored."""
    find = finder(root)
    return [
        fault
        for path in [*pages(root), *sources(root)]
        for fault in check_page(path, find, str(path.relative_to(root)))
    ]


def write_pages(root: Path) -> list[str]:
    """Put what is stored into the marks of all pages and captions; returns the files that changed.

    Raises
    ------
    ValueError
        If a mark has no number.
    """
    find, changed = finder(root), []
    for path in [*pages(root), *sources(root)]:
        text = path.read_text(encoding="utf-8")
        try:
            new = filled(text, find)
        except ValueError as error:
            raise ValueError(f"{path.relative_to(root)}: {error}") from error
        if new != text:
            files.write(path, new.encode())
            changed.append(str(path.relative_to(root)))
    return changed
