"""The table of papers: what installed distributions name by entry points, and what a session registers.

A paper is an object with the attributes of a `yzflow.Paper`. The entry points of the group ``yzflow.papers`` name
them; ours stand in the same group. One that cannot be imported, or that has the name of another, is left out with a
warning and a reason: it never stops what does not ask for it.
"""

from __future__ import annotations

import configparser
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from dynamics.support import checks
from dynamics.support.distributions import MISSION, plain
from dynamics.support.origins import OURS, PAPERS, outside

__all__ = ["GROUP", "built_in", "code_of", "left_out", "named", "papers", "register"]

GROUP = PAPERS

_found: dict[str, Any] = {}
_left_out: dict[str, str] = {}
_registered: set[str] = set()
_modules: dict[str, str] = {}
_renewed: list[Callable[[], None]] = []
_read = False


def papers() -> dict[str, Any]:
    """Slug -> paper: those of the mission, then others' by name, then those that were registered."""
    global _read
    if not _read:
        _read = True  # first, since a paper's module may ask for the table
        for point in _entry_points():
            try:
                paper = point.load()
                if not _is_mission(point.value):
                    _check(paper)
                    checks.instance("statements", paper.statements, tuple)  # now, and not when all are asked for
                _add(paper, point.module)
            except Exception as error:  # other people's code can raise anything
                why = " ".join(str(error).split()) or type(error).__name__
                _left_out[point.name] = why
                where = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
                warnings.warn(f"the paper {point.name}{where} is left out: {why}", UserWarning, stacklevel=2)
    return dict(_found)


def built_in() -> list[Any]:
    """The papers of the mission that are installed: those of which this repository's own documentation speaks."""
    return [paper for slug, paper in papers().items() if slug not in _registered and _is_mission(_modules[slug])]


def code_of(*names: str, modules: Iterable[str] = ()) -> str:
    """Whose code the papers of these names are, and modules, as JSON text for a file.

    Nothing for the core's and what is not known.
    """
    own = {paper.name: _modules[slug] for slug, paper in papers().items()}
    return outside({*modules, *(own[name] for name in names if own.get(name))})


def left_out() -> dict[str, str]:
    """Name of an entry point -> why its paper is not in the table."""
    papers()
    return dict(_left_out)


def named(name: str) -> Any:
    """The paper with this name, slug or either without capitals, as a person writes it; None if there is none."""
    wanted = plain(checks.instance("name", name, str))
    return next((one for one in papers().values() if wanted in (plain(one.name), plain(one.slug))), None)


def register(paper: Any) -> None:
    """Add a paper for the rest of this process; one that was registered before under the same name is replaced.

    Raises
    ------
    ValueError
        If it has the name or the slug of an installed paper, or of another registered one.
    """
    _check(paper)
    papers()
    replaced = _found.pop(paper.slug, None) if paper.slug in _registered else None
    try:
        _add(paper, getattr(paper.settings, "__module__", None) or "")
    except ValueError:
        if replaced is not None:
            _found[replaced.slug] = replaced
        raise
    _registered.add(paper.slug)
    for renew in _renewed:
        renew()


def whenever_registered(renew: Callable[[], None]) -> None:
    """Call this after each paper that is registered: for what is made from the table."""
    _renewed.append(renew)


def _check(paper: Any) -> None:
    for attribute in ("name", "slug"):
        if not isinstance(getattr(paper, attribute, None), str):
            raise checks.reject("paper", "be a yzflow.Paper", checks.brief(paper))


def _add(paper: Any, module: str) -> None:
    _check(paper)
    for other in _found.values():
        if {plain(paper.name), plain(paper.slug)} & {plain(other.name), plain(other.slug)}:
            rule = f"have a name and a slug of its own, unlike {other.name} ({other.slug})"
            raise checks.reject("paper", rule, f"{paper.name} ({paper.slug})")
    _found[paper.slug] = paper
    _modules[paper.slug] = module


def _entry_points() -> list[metadata.EntryPoint]:
    """Entry points of the group: those of the mission first, then by distribution and name."""
    points = list(metadata.entry_points(group=GROUP))
    if not any(_is_ours(point.value) for point in points):
        points = [*_of_the_clone(), *points]
    return sorted(points, key=_place)


def _place(point: metadata.EntryPoint) -> tuple[bool, str, str]:
    mission = _is_mission(point.value)
    return not mission, "" if mission or point.dist is None else point.dist.name, point.name


def _is_ours(place: str) -> bool:
    """Whether a module, or "module:name" there, is of this distribution."""
    return place.partition(":")[0].partition(".")[0] in OURS


def _is_mission(place: str) -> bool:
    """Whether a module is of the core, or of a distribution of the mission's other papers."""
    return _is_ours(place) or place.partition(":")[0].partition(".")[0] in MISSION


def _of_the_clone() -> Iterator[metadata.EntryPoint]:
    """Entry points of the clone's own setup.cfg that are not installed yet."""
    file = configparser.ConfigParser()
    file.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    for line in file.get("options.entry_points", GROUP, fallback="").split("\n"):
        if name := line.partition("=")[0].strip():
            yield metadata.EntryPoint(name, line.partition("=")[2].strip(), GROUP)
