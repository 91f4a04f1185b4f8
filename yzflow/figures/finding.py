"""Search for figures by number or name: among the papers' figures first, then among the studies'."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynamics.support import checks, distributions
from yzflow import studies
from yzflow.figures.registry import Entry, entries
from yzflow.parts import paper_of


def of_studies() -> dict[str, tuple[str, Entry]]:
    """Name of a figure -> (study, figure) for all installed studies; by paper, numbered figures first."""
    figures = [(room.name, entry) for room in studies.rooms().values() for entry in room.figures]
    figures.sort(key=lambda pair: (pair[1].paper, pair[1].numbers or (math.inf,)))
    return {entry.name: (room, entry) for room, entry in figures}


def find(name: str, paper: str | None = None) -> Entry:
    """The figure with this name, number or start of a name, from a paper or else from a study.

    Parameters
    ----------
    name : str
    paper : str, optional
        Search among this paper's figures only. Default: all papers.

    Raises
    ------
    ValueError
        If there is no such figure, or more than one.
    """
    checks.instance("NAME", name, str, rule="be the name or the number of a figure, as text")
    whose = None if paper is None else paper_of(paper).name
    known = [entry for entry in entries().values() if whose in (None, entry.paper)]
    if (match := _only(name, known)) is not None:
        return match
    studied = [entry for _, entry in of_studies().values() if whose in (None, entry.paper)]
    if (match := _only(name, studied)) is not None:
        return match
    if not known and not studied:
        raise checks.reject("paper", f"have figures here; {studies.MISSING}", checks.brief(paper))
    if name.isdecimal():
        raise checks.reject("NAME", _rule_of_numbers(name, [*known, *studied]), checks.brief(name))
    near = checks.nearest(name, {entry.name: (entry.name, *map(str, entry.numbers)) for entry in (*known, *studied)})
    rule = f"be the number or the name of one figure, such as {near}; `yzflow figures` lists all"
    raise checks.reject("NAME", rule + distributions.more(name), checks.brief(name))


def _rule_of_numbers(name: str, known: Sequence[Entry]) -> str:
    """The rule for a number that no figure has, or that several have."""
    several = [f"{entry.name} ({entry.paper})" for entry in known if name in map(str, entry.numbers)]
    if several:
        return f"be the number of one figure; {' and '.join(several)} have it: give the name, or `--paper`"
    numbers: dict[str, list[int]] = {}
    for entry in known:
        numbers.setdefault(entry.paper, []).extend(entry.numbers)
    drawn = "; ".join(f"{paper} {', '.join(map(str, sorted(set(own))))}" for paper, own in numbers.items() if own)
    where = "" if of_studies() else f", or come with the studies: {studies.MISSING}"
    if not drawn:
        return f"be the name of a figure, as none of {' and '.join(numbers)} has a number{where}"
    return f"be the number of a figure that is drawn here: {drawn}; others in print show no data{where}"


def _only(name: str, known: Sequence[Entry]) -> Entry | None:
    """The figure with this name, number or start of a name; None if there is none, or more than one."""
    for matches in (
        [entry for entry in known if name == entry.name],
        [entry for entry in known if name in map(str, entry.numbers)],
        [entry for entry in known if name and entry.name.startswith(name)],
    ):
        if len(matches) == 1:
            return matches[0]
    return None
