"""Figures by number or name: those of papers, then those of studies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynamics.support import checks, distributions
from yzflow import studies
from yzflow.figures.registry import Entry, entries
from yzflow.parts import paper_of


def of_studies() -> dict[str, tuple[str, Entry]]:
    """Name of a figure of an installed study -> the study, and the figure; by number those that have one."""
    found = [(room.name, entry) for room in studies.rooms().values() for entry in room.figures]
    found.sort(key=lambda one: (one[1].paper, one[1].numbers or (math.inf,)))
    return {entry.name: (room, entry) for room, entry in found}


def find(name: str, paper: str | None = None) -> Entry:
    """The figure that has this name, this number, or a name with this start: one of a paper, or else of a study.

    Parameters
    ----------
    name : str
    paper : str, optional
        Whose figures are looked through. Default: all, where a number is that of a paper's own entry before a study's.

    Raises
    ------
    ValueError
        If there is no such figure, or more than one.
    """
    checks.instance("NAME", name, str, rule="be the name or the number of a figure, as text")
    whose = None if paper is None else paper_of(paper).name
    known = [entry for entry in entries().values() if whose in (None, entry.paper)]
    if (one := _only(name, known)) is not None:
        return one
    studied = [entry for _, entry in of_studies().values() if whose in (None, entry.paper)]
    if (one := _only(name, studied)) is not None:
        return one
    if not known and not studied:
        raise checks.reject("paper", f"have figures here; {studies.MISSING}", checks.brief(paper))
    near = checks.nearest(name, {one.name: (one.name, *map(str, one.numbers)) for one in (*known, *studied)})
    rule = f"be the number or the name of one figure, such as {near}; `yzflow figures` lists all"
    raise checks.reject("NAME", rule + distributions.more(name), checks.brief(name))


def _only(name: str, known: Sequence[Entry]) -> Entry | None:
    """The one figure with this name, number or start of a name."""
    for found in (
        [entry for entry in known if name == entry.name],
        [entry for entry in known if name in map(str, entry.numbers)],
        [entry for entry in known if name and entry.name.startswith(name)],
    ):
        if len(found) == 1:
            return found[0]
    return None
