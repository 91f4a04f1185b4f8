"""Lists of statements, options of training and figures, a line each; of all papers or of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from theory import statements as register
from yzflow import paper as table
from yzflow import parts
from yzflow.audits.rendered import columns

__all__ = ["figures", "options", "papers", "statements", "text"]


def statements(paper: str | None = None) -> list[dict[str, Any]]:
    """The statements of the register: id, paper, number, title, text, how many errata, whether ours or a conjecture.

    Parameters
    ----------
    paper : str, optional
        A paper's name in the register, or the name of its folder. Default: all papers.

    Raises
    ------
    ValueError
        If there is no such paper; the message has the known ones.
    """
    entries = [
        {
            "name": entry.id,
            "paper": entry.paper,
            "number": entry.number,
            "line": entry.title,
            "text": entry.text,
            "errata": len(entry.accused),
            "own": entry.own,
            "conjecture": entry.conjecture,
        }
        for entry in register.REGISTER.values()
    ]
    return _of(paper, entries)


def options(paper: str | None = None) -> list[dict[str, Any]]:
    """The options of `yzflow.survival`: name, paper, description, and levels. For ``paper`` see `statements`."""
    rooms = [room for _, room in parts.parts("survival")]
    entries = [
        {"name": option.name, "paper": room.paper, "line": option.text, "levels": list(option.levels)}
        for room in rooms
        for option in room.options
    ]
    return _of(paper, entries)


def figures(paper: str | None = None) -> list[dict[str, Any]]:
    """The figures of papers and installed studies, by paper.

    Each has name, paper, the printed figures that it reproduces (by number and in words), a line on its content, its
    study, whether it draws given runs only, the command that makes such runs, and the keywords of its setting.
    """
    from yzflow.figures.finding import of_studies
    from yzflow.figures.registry import entries as known

    pairs = [("", entry) for entry in known().values()]
    entries = [
        {
            "name": entry.name,
            "paper": entry.paper,
            "numbers": list(entry.numbers),
            "printed": entry.printed,
            "line": _sentence(entry.text),
            "study": study,
            "needs_data": entry.compute is None,
            "trained_by": entry.trained_by,
            "takes": list(entry.takes),
        }
        for study, entry in [*pairs, *of_studies().values()]
    ]
    order = list(dict.fromkeys(entry["paper"] for entry in entries))
    return _of(paper, sorted(entries, key=lambda entry: order.index(entry["paper"])))


def papers() -> list[dict[str, Any]]:
    """The papers: name, slug, reference, levels, and how many statements each has."""
    return [
        {
            "name": paper.name,
            "slug": paper.slug,
            "reference": paper.reference,
            "levels": list(paper.levels),
            "statements": len(paper.statements),
        }
        for paper in table.papers().values()
    ]


def text(entries: Sequence[dict[str, Any]], *, most: int | None = None) -> list[str]:
    """A line for each entry under the name of its paper, wrapped if it would pass ``most`` columns, never cut."""
    lines: list[str] = []
    for paper in dict.fromkeys(entry["paper"] for entry in entries):
        chosen = [entry for entry in entries if entry["paper"] == paper]
        lines += [""] * bool(lines) + [paper]
        names = [entry["name"].removeprefix(f"{paper}: ") for entry in chosen]
        lines += columns([[name, entry["line"]] for name, entry in zip(names, chosen, strict=True)], most=most)
    return lines


def _of(paper: str | None, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of a paper, which may have none."""
    if paper is None:
        return entries
    name = parts.paper_of(paper).name
    return [entry for entry in entries if entry["paper"] == name]


def _sentence(caption: str) -> str:
    """The first sentence of a caption; the point of "Fig." does not end it."""
    return re.split(r"(?<!Fig)(?<!Figs)\. ", caption)[0].rstrip(".")
