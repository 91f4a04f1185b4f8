"""The table of papers: entry points of installed distributions, and papers that a session registers.

A paper is an object with the attributes of a `yzflow.Paper`. Each distribution, ours too, names its papers by entry
points of the group ``yzflow.papers``. A paper that cannot be imported, or whose name is taken, is left out with a
warning and a reason, so that a broken paper never stops the work on another.
"""

from __future__ import annotations

import configparser
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from dynamics.support import checks, raised
from dynamics.support.distributions import MISSION, plain
from dynamics.support.origins import OURS, PAPERS, outside

__all__ = [
    "GROUP",
    "additions",
    "built_in",
    "code_of",
    "forget",
    "home_of",
    "installed",
    "joined",
    "left_out",
    "named",
    "papers",
    "register",
]

GROUP = PAPERS

_found: dict[str, Any] = {}
_additions: dict[str, Any] = {}
_left_out: dict[str, str] = {}
_registered: set[str] = set()
_modules: dict[str, str] = {}
_renewed: list[Callable[[], None]] = []
_read = False


def papers() -> dict[str, Any]:
    """Slug -> paper: first the mission's papers, then others' by name, then the registered papers."""
    global _read
    if not _read:
        _read = True  # set first: a paper's module may ask for the table
        for point in _entry_points():
            try:
                paper = point.load()
                _check(paper)
                if not _is_mission(point.value):
                    checks.instance("statements", paper.statements, tuple)  # refuse now, before the register is built
                    _check_numbers(paper)
                _add(paper, point.module)
            except Exception as error:  # other people's code can raise anything
                why = raised.said(error)
                _left_out[point.name] = why
                where = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
                warnings.warn(f"the paper {point.name}{where} is left out: {why}", UserWarning, stacklevel=2)
    return dict(_found)


def additions(name: str | None = None) -> list[Any]:
    """All additions to papers, or to the paper with this name; see `yzflow.Paper.adds_to`."""
    if name is not None:
        checks.instance("name", name, str)
    papers()
    return [addition for addition in _additions.values() if name is None or addition.adds_to == name]


def joined(paper: Any, part: str, own: Any) -> Any:
    """An attribute of a paper, ``own``, joined with the same attribute of the paper's additions.

    Raises
    ------
    ValueError
        If two of them use one name.
    """
    if paper.adds_to:
        return own
    for addition in additions(paper.name):
        try:
            more = getattr(addition, part)
        except Exception as error:  # other people's code can raise anything
            why = raised.said(error)
            warnings.warn(f"`{part}` of {addition.name} is left out: {why}", UserWarning, stacklevel=3)
            continue
        if isinstance(own, tuple):
            fresh = [entry for entry in more if not any(entry is held for held in own)]
            own = (*own, *fresh) if fresh else own
        elif isinstance(own, Mapping):
            own = _united(own, more) if more else own
        else:
            own = own.joined(more) if own is not None and more is not None else own or more
    return own


def _united(own: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    for name in sorted(own.keys() & more.keys()):
        if own[name] is not more[name]:
            raise checks.reject("paper", "add parts under names of their own", repr(name))
    return {**own, **more}


def home_of(statement: Any) -> str:
    """The module of the addition that holds a statement; empty for the paper's own statements."""
    for addition in additions(statement.paper):
        if any(statement is held for held in addition.statements):
            return _modules[addition.slug]
    return ""


def installed(statement: Any) -> bool:
    """Whether an installed distribution brings a statement, so that its id finds it wherever that is installed."""
    for holder in additions(statement.paper):
        if any(held is statement for held in holder.statements):
            return holder.slug not in _registered
    paper = named(statement.paper)
    if paper is None or paper.slug in _registered:
        return False
    return any(held is statement for held in paper.statements)


def built_in() -> list[Any]:
    """The installed papers of the mission, which this repository's documentation covers."""
    return [paper for slug, paper in papers().items() if slug not in _registered and _is_mission(_modules[slug])]


def code_of(*names: str, modules: Iterable[str] = ()) -> str:
    """The distributions of these papers and modules, as JSON text for a file.

    The core and unknown modules are left out.
    """
    modules_of = {paper.name: _modules[slug] for slug, paper in papers().items()}
    return outside({*filter(None, modules), *(modules_of[name] for name in names if modules_of.get(name))})


def left_out() -> dict[str, str]:
    """Name of an entry point -> the reason why its paper is left out."""
    papers()
    return dict(_left_out)


def named(name: str) -> Any:
    """The paper with this name or slug, in any capitals; None if there is none."""
    wanted = plain(checks.instance("name", name, str))
    return next((paper for paper in papers().values() if wanted in (plain(paper.name), plain(paper.slug))), None)


def register(paper: Any) -> None:
    """Add a paper for the rest of this process; it replaces a registered paper with the same slug.

    Raises
    ------
    ValueError
        If an installed paper, or another registered paper, has the name or the slug; of an addition, if its paper is
        unknown or has a statement of the same number.
    """
    _check(paper)
    papers()
    table = _table(paper)
    replaced = table.pop(paper.slug, None) if paper.slug in _registered else None
    try:
        _check_numbers(paper)
        _add(paper, getattr(paper.settings, "__module__", None) or "")
    except ValueError:
        if replaced is not None:
            table[replaced.slug] = replaced
        raise
    _registered.add(paper.slug)
    for renew in _renewed:
        renew()


def forget() -> None:
    """Remove all papers that were registered in this process."""
    for slug in _registered:
        (_additions if slug in _additions else _found).pop(slug)
        del _modules[slug]
    if _registered:
        _registered.clear()
        for renew in _renewed:
            renew()


def whenever_registered(renew: Callable[[], None]) -> None:
    """Call ``renew`` after every change of the table by `register` or `forget`."""
    _renewed.append(renew)


def _check(paper: Any) -> None:
    for attribute in ("name", "slug"):
        if not isinstance(getattr(paper, attribute, None), str):
            raise checks.reject("paper", "be a yzflow.Paper", checks.brief(paper))


def _table(paper: Any) -> dict[str, Any]:
    return _additions if getattr(paper, "adds_to", "") else _found


def _check_numbers(paper: Any) -> None:
    """Refuse an addition to an unknown paper, and an addition that repeats a number of the paper's statements."""
    if not getattr(paper, "adds_to", ""):
        return
    host = next((candidate for candidate in _found.values() if candidate.name == paper.adds_to), None)
    if host is None:
        raise checks.reject("adds_to", "be the name of an installed paper", repr(paper.adds_to))
    taken = {statement.number for statement in host.statements}
    for statement in paper.statements:
        if statement.number in taken:
            raise checks.reject("statements", f"have numbers that {host.name} does not have", repr(statement.number))


def _add(paper: Any, module: str) -> None:
    for taken in (*_found.values(), *_additions.values()):
        if {plain(paper.name), plain(paper.slug)} & {plain(taken.name), plain(taken.slug)}:
            rule = f"have a name and a slug of its own, unlike {taken.name} ({taken.slug})"
            raise checks.reject("paper", rule, f"{paper.name} ({paper.slug})")
    _table(paper)[paper.slug] = paper
    _modules[paper.slug] = module


def _entry_points() -> list[metadata.EntryPoint]:
    """Entry points of the group: the mission's first, then by distribution and name."""
    points = list(metadata.entry_points(group=GROUP))
    if not any(_is_ours(point.value) for point in points):
        points = [*_of_the_clone(), *points]
    return sorted(points, key=_place)


def _place(point: metadata.EntryPoint) -> tuple[bool, str, str]:
    mission = _is_mission(point.value)
    return not mission, "" if mission or point.dist is None else point.dist.name, point.name


def _is_ours(module: str) -> bool:
    """Whether a module, or "module:name", belongs to this distribution."""
    return module.partition(":")[0].partition(".")[0] in OURS


def _is_mission(module: str) -> bool:
    """Whether a module belongs to the core, or to a distribution of the mission's other papers."""
    return _is_ours(module) or module.partition(":")[0].partition(".")[0] in MISSION


def _of_the_clone() -> Iterator[metadata.EntryPoint]:
    """Entry points of the clone's setup.cfg, for a clone that is not installed."""
    file = configparser.ConfigParser()
    file.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    for line in file.get("options.entry_points", GROUP, fallback="").split("\n"):
        if name := line.partition("=")[0].strip():
            yield metadata.EntryPoint(name, line.partition("=")[2].strip(), GROUP)
