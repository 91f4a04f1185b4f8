"""Studies: computations for single findings, in distributions beside this one.

An entry point of the group ``yzflow.studies`` names a package. Each folder in it with a module ``values`` or ``study``
is a room. ``STUDIES`` of ``values`` compute the numbers of the finding, ``values.json`` holds the published numbers,
and ``FIGURES`` of ``study`` draw it.
"""

from __future__ import annotations

import ast
import importlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dynamics.support import checks, distributions, raised
from theory.values import Study, differences, stored

if TYPE_CHECKING:
    from yzflow.figures.registry import Entry
    from yzflow.sweeps.runs import Task

__all__ = ["GROUP", "Numbers", "Room", "draw", "find", "installed", "numbers", "register", "rooms", "rooms_of", "tasks"]

GROUP = "yzflow.studies"
MISSING = "studies are a distribution, yzflow-studies: `pip install -r studies/requirements.txt` in a clone"

_registered: list[ModuleType] = []


@dataclass(frozen=True)
class Room:
    """A finding: the computations of its numbers, the published numbers, and its figures.

    Attributes
    ----------
    module : str
        The package of the room.
    folder : Path
        The package's folder.
    """

    module: str
    folder: Path

    @property
    def name(self) -> str:
        """The finding in one word."""
        return self.module.rpartition(".")[2]

    @property
    def line(self) -> str:
        """Its subject: the first line of its module ``values`` or ``study``, read without an import."""
        name = "values" if self._has("values") else "study"
        module = ast.parse((self.folder / f"{name}.py").read_text(encoding="utf-8"))
        return (ast.get_docstring(module) or "").partition("\n")[0]

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """The computations, each of one function at one setting; none without a module ``values``."""
        if not self._has("values"):
            return ()
        return tuple(checks.listed("STUDIES", self._import("values").STUDIES, f"be a tuple in {self.module}.values"))

    @cached_property
    def figures(self) -> tuple[Entry, ...]:
        """The figures; none without a module ``study`` that draws."""
        if not self._has("study"):
            return ()
        return tuple(getattr(self._import("study"), "FIGURES", ()))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of sweeps, ``TASKS`` of a module ``tasks``; none without this module."""
        return tuple(self._import("tasks").TASKS) if self._has("tasks") else ()

    @property
    def published(self) -> dict[str, dict[str, Any]]:
        """The stored record of each study, by its name."""
        return stored(self.folder)

    def _has(self, part: str) -> bool:
        return (self.folder / f"{part}.py").is_file()

    def _import(self, part: str) -> ModuleType:
        return distributions.bring(f"{self.module}.{part}")


@dataclass(frozen=True)
class Numbers:
    """The numbers of one study, and their origin.

    Attributes
    ----------
    name : str
        ``room.study``.
    setting : mapping
        The setting at which they were computed.
    values : mapping
        The numbers; empty if there are none, computed or published.
    computed : bool
        True if computed now; False if read from the published ones.
    earlier : str
        The earlier run that made the published numbers, if they are not those of the study as it stands.
    differ : tuple of str, optional
        Differences of a fresh run from the published numbers; None if they are not compared.
    """

    name: str
    setting: Mapping[str, Any]
    values: Mapping[str, Any]
    computed: bool
    earlier: str = ""
    differ: tuple[str, ...] | None = None

    @property
    def origin(self) -> str:
        """The origin of the numbers, in words."""
        if self.computed:
            how = "" if self.differ is None else ", unlike the published ones" if self.differ else ", as published"
            return f"computed now{how}"
        return f"of an earlier run: {self.earlier}" if self.earlier else "as published; not computed now"

    @property
    def lines(self) -> list[str]:
        """For a person: origin, setting and numbers, with a line for each row of a table."""
        setting = ", ".join(f"{name} = {_short(entry)}" for name, entry in self.setting.items())
        shown = [f"{self.name}: {self.origin}", *([f"  at {setting}"] if setting else [])]
        for name, entry in self.values.items():
            if isinstance(entry, list) and any(isinstance(row, Mapping) for row in entry):
                shown += [f"  {name} {number}: {_short(row)}" for number, row in enumerate(entry)]
            else:
                shown.append(f"  {name} = {_short(entry)}")
        return [*shown, *(f"  unlike what is published: {difference}" for difference in self.differ or ())]


def _short(entry: Any) -> str:
    """Numbers to six digits; entries of mappings and lists in one line."""
    if isinstance(entry, Mapping):
        return ", ".join(
            f"{name} = ({_short(part)})" if isinstance(part, Mapping) else f"{name} = {_short(part)}"
            for name, part in entry.items()
        )
    if isinstance(entry, (list, tuple)):
        return f"[{', '.join(f'({_short(part)})' if isinstance(part, Mapping) else _short(part) for part in entry)}]"
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def register(package: ModuleType) -> None:
    """Make a package's rooms known for the rest of this process, like those of an installed package.

    Raises
    ------
    ValueError
        If it is no package.
    """
    checks.instance("package", package, ModuleType, rule="be a package")
    if not hasattr(package, "__path__"):
        raise checks.reject("package", "be a package", package.__name__)
    if package not in _registered:
        _registered.append(package)


def rooms_of(package: ModuleType) -> dict[str, Room]:
    """Name -> room, of one package."""
    parts = ("*/values.py", "*/study.py")
    folders = {path.parent for root in package.__path__ for pattern in parts for path in Path(root).glob(pattern)}
    return {folder.name: Room(f"{package.__name__}.{folder.name}", folder) for folder in sorted(folders)}


def _points() -> Iterable[metadata.EntryPoint]:
    return metadata.entry_points(group=GROUP)


def _named() -> list[ModuleType]:
    """The packages that entry points name."""
    packages = []
    for point in _points():
        try:
            packages.append(importlib.import_module(point.value))
        except Exception as error:  # other people's code can raise anything
            why = raised.said(error)
            warnings.warn(f"the studies {point.name} are left out: {why}", UserWarning, stacklevel=3)
    return packages


def rooms() -> dict[str, Room]:
    """Name -> room, of all installed and registered packages; of two rooms with one name the first stays.

    A package that cannot be imported is left out, with a warning that names it.
    """
    known: dict[str, Room] = {}
    for package in [*_registered, *_named()]:
        for name, room in rooms_of(package).items():
            known.setdefault(name, room)
    return dict(sorted(known.items()))


def find(name: str) -> Room:
    """The room of this name.

    Raises
    ------
    ValueError
        If there is no such room.
    ImportError
        If no studies are installed at all.
    """
    checks.instance("NAME", name, str, rule="be the name of a study, as text")
    known = installed()
    if name not in known:
        near = checks.nearest(name, {key: (key,) for key in known})
        raise checks.reject("NAME", f"be a study, such as {near}; `yzflow study` lists all", checks.brief(name))
    return known[name]


def installed() -> dict[str, Room]:
    """Name -> room.

    Raises
    ------
    ImportError
        If there are none.
    """
    known = rooms()
    if not known:
        raise ImportError(MISSING)
    return known


def numbers(room: Room, *, quick: bool = False, seed: int | None = None) -> Iterator[Numbers]:
    """The numbers of a room, study by study: computed, or as they are published.

    Parameters
    ----------
    quick : bool
        Compute the quick studies alone.
    seed : int, optional
        Replaces the seed of the settings; studies without a seed are not computed.

    Raises
    ------
    ValueError
        If a seed is given and no setting of the room has one.
    """
    quick, published = checks.flag("quick", quick), room.published
    if seed is not None:
        checks.integer("seed", seed, minimum=0)
        if not any("seed" in study.setting for study in room.studies):
            raise checks.reject("seed", f"be left out for {room.name}, which has none in its settings", str(seed))
    for study in room.studies:
        kept = published.get(study.name, {})
        name = f"{room.name}.{study.name}"
        wanted = study.quick or not quick
        if seed is None:
            chosen = study
        elif "seed" in study.setting:
            chosen = replace(study, setting={**study.setting, "seed": seed})
        else:
            wanted = False
        if not wanted:
            yield Numbers(name, study.setting, kept.get("values", {}), False, kept.get("earlier", ""))
            continue
        record = chosen.run()
        differ = None
        if seed is None:
            changes = differences(kept.get("values", {}), record["values"], study)
            differ = tuple(f"{key} is {new}, published as {old}" for key, old, new in changes)
        yield Numbers(name, record["setting"], record["values"], True, differ=differ)


def tasks() -> dict[str, Task]:
    """Name -> task of sweeps, from the modules ``tasks`` of all rooms."""
    return {task.name: task for room in rooms().values() for task in room.tasks}


def draw(room: Room, folder: Path, *, quick: bool = False) -> list[dict[str, Any]]:
    """Draw the figures of a room that compute their data, into a folder: name, caption and files of each.

    Parameters
    ----------
    quick : bool
        Fewer seeds, steps, sizes or output times.
    """
    from yzflow.figures.registry import Effort
    from yzflow.figures.style import save

    drawn = []
    for entry in room.figures:
        if entry.compute is None:
            continue
        data = entry.data(Effort(quick=quick, store=folder / "store", progress=True))
        files = [str(path) for path in save(entry.draw(data), folder / entry.name)]
        drawn.append({"figure": entry.name, "caption": entry.caption(data), "files": files})
    return drawn
