"""The pages of a clone that quote numbers, or are made of them: compared with what is stored, and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dynamics.support import checks, files
from published.keys import Page
from published.rooms import STUDIES, Fault, rooms
from theory.papers import built_in
from theory.values import find, stored

__all__ = ["check_pages", "finder", "made", "pages", "sources", "unkeyed", "unmade", "write_pages"]

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


def made(root: Path) -> dict[str, Callable[[], str]]:
    """Pages that a program writes from stored numbers: the maker of each, which is called in a clone."""
    return {
        "docs/errata.md": _errata,
        "docs/survival.md": partial(_survival, root),
        "papers/joma/in_training.md": partial(_in_training, root),
        **{
            f"docs/benchmarks/{path.stem}.md": partial(_benchmark, path)
            for path in sorted((root / "docs" / "benchmarks").glob("*.json"))
        },
    }


def _errata() -> str:
    writer = import_module("errata_page")
    return str(writer.errata_page(one for paper in built_in() for one in paper.statements))


def _survival(root: Path) -> str:
    writer, survival = import_module("survival_page"), import_module("yzflow.audits.survival")
    return str(writer.page(survival.load(root / writer.DATA)))


def _in_training(root: Path) -> str:
    room = root / "papers" / "joma" / "yzflow_joma"
    return str(import_module("yzflow_joma.finding").page(stored(room)["in_training"]["values"]))


def _benchmark(path: Path) -> str:
    found = json.loads(path.read_text(encoding="utf-8"))
    if path.stem == "benchmarks":
        return str(import_module("benchmarks.report").markdown(found["rows"]))
    return f"{import_module(f'benchmarks.{path.stem}').markdown(found)}\n"


def _unlike(root: Path) -> list[tuple[str, str]]:
    """The made pages whose text is another, and what it should be."""
    lacking = unmade(root)
    texts = [(name, make()) for name, make in made(root).items() if (root / name).is_file() and name not in lacking]
    return [(name, text) for name, text in texts if (root / name).read_text(encoding="utf-8") != text]


def unmade(root: Path) -> dict[str, str]:
    """Made pages whose makers need a distribution that is not installed: page -> its package."""
    needed = {"papers/joma/in_training.md": "yzflow_joma"} | {
        f"docs/benchmarks/{name}.md": "yzflow_enclose" for name in ("enclosures", "growth")
    }
    return {name: package for name, package in needed.items() if (root / name).is_file() and not find_spec(package)}


def _fault(root: Path, name: str, text: str) -> Fault:
    """The first line in which a made page is not what its numbers say."""
    stands, wanted = (root / name).read_text(encoding="utf-8").splitlines(), text.splitlines()
    pairs = enumerate(zip_longest(stands, wanted, fillvalue=""), 1)
    line, (old, new) = next((line, pair) for line, pair in pairs if pair[0] != pair[1])
    start = max(next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0) - 20, 0)
    was, now = old[start : start + 60], new[start : start + 60]
    return Fault(
        name, line, "made of stored numbers", f"{was!r} stands there, for {now!r}: python -m yzflow.values write"
    )


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
        if (not names or name in names) and name not in made(root)
    }


def check_pages(root: Path) -> list[Fault]:
    """Where the pages and modules of a clone do not have what is stored, or a number has no key."""
    known = finder(root)
    faults = [Fault(name, *problem) for name, page in _read(root).items() for problem in page.check(known)]
    return [*faults, *(_fault(root, name, text) for name, text in _unlike(root))]


def unkeyed(root: Path, names: Sequence[str] = ()) -> list[Fault]:
    """Numbers of these files, by default of all, that have no key and are not typed on purpose."""
    known = finder(root)
    return [Fault(name, *problem) for name, page in _read(root, names).items() for problem in page.unkeyed(known)]


def write_pages(root: Path) -> list[str]:
    """Put the stored digits before the marks of all pages and modules; returns the files that changed.

    Raises
    ------
    ValueError
        If a key has no number, or a word has to change, which a person types.
    """
    known, changed = finder(root), []
    for name, page in _read(root).items():
        try:
            new = page.written(known)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if new != page.text:
            files.write(root / name, new.encode())
            changed.append(name)
    for name, text in _unlike(root):
        files.write(root / name, text.encode())
        changed.append(name)
    return changed
