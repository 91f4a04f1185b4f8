"""The parts of all known papers: engines ask here for figures, tasks, settings and other parts."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from dynamics.support import checks, distributions, raised
from theory import papers

__all__ = ["collected", "of_papers", "paper_of", "part_of", "parts"]

_Kept = TypeVar("_Kept")


def of_papers(compute: Callable[[], _Kept]) -> Callable[[], _Kept]:
    """A function with a result that is kept until another paper is registered."""

    @functools.lru_cache(maxsize=1)
    def kept(_: tuple[Any, ...]) -> _Kept:
        return compute()

    @functools.wraps(compute)
    def asked() -> _Kept:
        return kept((*papers.papers().values(), *papers.additions()))

    return asked


def collected(name: str) -> dict[str, Any]:
    """Name -> entry, for the parts with this name of all papers; a name that is taken gets the slug as prefix."""
    entries: dict[str, Any] = {}
    for paper, part in parts(name):
        for entry in part:
            key = entry.name if entry.name not in entries else f"{paper.slug}_{entry.name}"
            entries[key] = entry if key == entry.name else replace(entry, name=key)
    return entries


def part_of(paper: str, name: str) -> Any:
    """A part of the paper with this name in the register; None if there is no such paper or part."""
    return next((part for owner, part in parts(name, only=paper)), None)


def parts(name: str, *, only: str | None = None) -> Iterator[tuple[Any, Any]]:
    """Each paper that has a part of this name, with the part; a warning names parts that cannot be imported.

    With ``only``, the name of a paper, no other paper is asked.
    """
    for paper in papers.papers().values():
        if only is not None and paper.name != only:
            continue
        try:
            part = getattr(paper, name)
        except Exception as error:  # other people's code can raise anything
            why = raised.said(error)
            warnings.warn(f"`{name}` of the paper {paper.name} is left out: {why}", UserWarning, stacklevel=2)
            continue
        if part:
            yield paper, part


def paper_of(name: str) -> Any:
    """The paper with a name, as a person writes it; ValueError with the known names if there is none."""
    paper = papers.named(checks.instance("paper", name, str))
    if paper is None:
        known = sorted(entry.name for entry in papers.papers().values())
        raise checks.reject("paper", f"be one of {', '.join(known)}{distributions.more(name)}", checks.brief(name))
    return paper
