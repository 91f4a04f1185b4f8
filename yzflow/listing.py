"""Lists of statements, options of training and figures, a line each; of all papers or of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamics.support import checks
from theory import statements as register
from theory.papers import named
from yzflow import paper as table
from yzflow import parts
from yzflow.audits.screen import clipped
from yzflow.paper import Paper

__all__ = ["figures", "options", "paper_of", "papers", "statements", "text"]


def statements(paper: str | None = None) -> list[dict[str, Any]]:
    """The statements of the register: id, paper, number, title, text, how many errata, whether ours or a conjecture.

    Parameters
    ----------
    paper : str, optional
        Its name in the register, or that of its folder. Default: all.

    Raises
    ------
    ValueError
        If there is no such paper, with those that there are.
    """
    entries = [
        {
            "name": entry.id,
            "paper": entry.paper,
            "number": entry.number,
            "line": entry.title,
            "text": entry.text,
            "errata": len(entry.errata),
            "own": entry.own,
            "conjecture": entry.conjecture,
        }
        for entry in register.REGISTER.values()
    ]
    return _of(paper, entries)


def options(paper: str | None = None) -> list[dict[str, Any]]:
    """The options of `yzflow.survival`: name, paper, what is changed, and at which levels. For ``paper`` see above."""
    rooms = [room for _, room in parts.parts("survival")]
    entries = [
        {"name": one.name, "paper": room.paper, "line": one.text, "levels": list(one.levels)}
        for room in rooms
        for one in room.options
    ]
    return _of(paper, entries)


def figures(paper: str | None = None) -> list[dict[str, Any]]:
    """The figures: name, paper, number, what is shown, and whether it draws runs that it is given."""
    from yzflow.figures import entries as known

    entries = [
        {
            "name": entry.name,
            "paper": entry.paper,
            "number": entry.number,
            "line": _sentence(entry.text),
            "needs_data": entry.compute is None,
        }
        for entry in known().values()
    ]
    return _of(paper, entries)


def papers() -> list[dict[str, Any]]:
    """The papers: name, slug, reference, levels, and how many statements each has."""
    return [
        {
            "name": one.name,
            "slug": one.slug,
            "reference": one.reference,
            "levels": list(one.levels),
            "statements": len(one.statements),
        }
        for one in table.papers().values()
    ]


def paper_of(name: str) -> Paper:
    """The paper with a name, as a person writes it; ValueError, with those that there are, if there is none."""
    found = named(checks.instance("paper", name, str))
    if found is None:
        known = sorted(one.name for one in table.papers().values())
        raise checks.reject("paper", f"be one of {', '.join(known)}", checks.brief(name))
    return found


def text(entries: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each entry under the name of its paper, of 100 columns at most."""
    lines: list[str] = []
    for paper in dict.fromkeys(entry["paper"] for entry in entries):
        own = [entry for entry in entries if entry["paper"] == paper]
        lines += [""] * bool(lines) + [paper]
        names = [entry["name"].removeprefix(f"{paper}: ") for entry in own]
        width = max(map(len, names))
        lines += [clipped(f"  {name:{width}}  {entry['line']}") for name, entry in zip(names, own, strict=True)]
    return lines


def _of(paper: str | None, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of a paper, which may be one that has none of them."""
    if paper is None:
        return entries
    name = paper_of(paper).name
    return [entry for entry in entries if entry["paper"] == name]


def _sentence(caption: str) -> str:
    """The first sentence of a caption."""
    return caption.split(". ")[0].rstrip(".")
