"""The rooms of a clone that publish numbers: their studies, run and stored, and where a store is not what they say."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics.support import checks, files
from theory.values import FILE, Study, differences, name_of, record, stored

__all__ = ["Fault", "check_rooms", "earlier", "keep", "rooms", "studies", "write_rooms"]

STUDIES = "studies/yzflow_studies"
# Where rooms stand; those of the register first, since it is quoted before others can be loaded.
_REGISTER = ("theory/*", "papers/*/yzflow_*", "tools/*/yzflow_*")
_PATTERNS = (f"{STUDIES}/*", *_REGISTER, "yzflow/papers/*")


@dataclass(frozen=True)
class Fault:
    """A place where text, store and computation are not the same."""

    file: str
    line: int
    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.problem}"


def rooms(root: Path) -> list[Path]:
    """The folders of a clone that have a module ``values``.

    Raises
    ------
    ValueError
        If ``root`` is no clone of the repository.
    """
    if not (root / STUDIES).is_dir():
        raise checks.reject("root", f"be a clone of the repository, with a folder {STUDIES}", str(root))
    return [path.parent for pattern in _PATTERNS for path in sorted(root.glob(f"{pattern}/values.py"))]


def studies(root: Path, room: Path) -> dict[str, Study]:
    """The studies of a room, by name.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    parts = room.relative_to(root).parts
    top = next((i for i, part in enumerate(parts) if part.startswith("yzflow_")), 0)  # where its package stands
    name = ".".join((*parts[top:], "values"))
    spec = importlib.util.spec_from_file_location(name, room / "values.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if (own := str(root.joinpath(*parts[:top]))) not in sys.path:
        sys.path.append(own)  # a paper from outside need not be installed to be a room
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        cure = "the studies need it: .venv/bin/pip install -r studies/requirements.txt"
        raise ImportError(f"`{error.name}` is not installed; {cure}") from None
    found: dict[str, Study] = {}
    for study in checks.listed("STUDIES", getattr(module, "STUDIES", None), f"be a tuple in {name}"):
        if study.name in found:
            raise checks.reject("STUDIES", "name each study once", f"{name_of(room)}.{study.name} twice")
        found[study.name] = study
    return found


def _line(path: Path, key: str) -> int:
    """The line of a study in a file of stored values."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((number for number, line in enumerate(lines, 1) if line.startswith(f' "{key}":')), 1)


def check_rooms(root: Path, chosen: Iterable[Path] | None = None, *, fresh: bool = True) -> list[Fault]:
    """Where a store is not what its studies say: another setting, another function, or other numbers of a quick one.

    Parameters
    ----------
    fresh : bool
        Whether quick studies are run.
    """
    faults = []
    for room in rooms(root) if chosen is None else chosen:
        path, kept, known = room / FILE, stored(room), studies(root, room)
        file = str(path.relative_to(root))

        def fault(study: str, problem: str, file: str = file, path: Path = path, room: Path = room) -> Fault:
            return Fault(file, _line(path, study), f"{name_of(room)}.{study}", problem)

        faults += [fault(name, "stored, but no study has this name") for name in kept if name not in known]
        for name, study in known.items():
            if name not in kept:
                faults.append(fault(name, "not stored: python -m yzflow.values write"))
                continue
            try:
                now = (
                    study.run()
                    if fresh and study.quick
                    else record(study, kept[name]["values"], "" if study.quick else kept[name].get("earlier", ""))
                )
            except ValueError as error:
                faults.append(fault(name, str(error)))
                continue
            for part, old, new in differences(kept[name], now, study):
                faults.append(fault(name, f"{part} is stored as {old!r}, and is {new!r}"))
    return faults


def _rooms_of(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def write_rooms(root: Path, names: Iterable[str] = ()) -> list[str]:
    """Run studies and store what they find; returns the names of those that changed.

    A number that differs by less than its tolerance stays as it is, so that another machine changes nothing.

    Parameters
    ----------
    names : iterable of str
        Rooms, or studies as ``room.study``. By default all quick studies.

    Raises
    ------
    ValueError
        If a name is that of no room and no study.
    """
    names, changed = list(names), list[str]()
    _check_names(root, names)
    chosen = [room for room in rooms(root) if not names or name_of(room) in _rooms_of(names)]
    # The register quotes the rooms of theory, and other rooms may read it before they can be loaded.
    for room in sorted(chosen, key=lambda room: not any(room.match(pattern) for pattern in _REGISTER)):
        named, kept = studies(root, room), stored(room)
        records, before = {}, len(changed)
        for name, study in named.items():
            full = f"{name_of(room)}.{name}"
            wanted = name_of(room) in names or full in names if names else study.quick
            if wanted:
                new = study.run()
                if name not in kept or differences(kept[name], new, study):
                    changed.append(full)
                    records[name] = new
                    continue
            if name in kept:
                records[name] = kept[name]
        if len(changed) > before or records != kept:  # to Python 0 and false are equal
            changed += [f"{name_of(room)}.{name}" for name in kept if name not in records]
            _store(room, records)
    return changed


def _check_names(root: Path, names: Sequence[str]) -> None:
    """Refuse an unknown room or study before anything is run; rooms that no name has are not loaded."""
    known = {name_of(path): path for path in rooms(root)}
    for name in names:
        room, _, study = name.partition(".")
        checks.one_of("names", room if study else name, known)
        if study:
            checks.one_of("names", name, {f"{room}.{key}" for key in studies(root, known[room])})


def _store(room: Path, records: dict[str, Any]) -> None:
    text = json.dumps(records, indent=1, allow_nan=False) + "\n"
    files.write(room / FILE, text.encode())


def keep(root: Path, name: str, numbers: Mapping[str, Any], earlier: str) -> None:
    """Store numbers of an earlier run as those of a slow study, which is not run: the record says where they come from.

    Parameters
    ----------
    name : str
        ``room.study``.
    numbers : mapping
        As the study's function would return them; rounded ones, if that is what is left of the run.
    earlier : str
        Which run it was.

    Raises
    ------
    ValueError
        If there is no such study, it is quick, or ``earlier`` is empty.
    """
    found = {
        f"{name_of(room)}.{key}": (room, study) for room in rooms(root) for key, study in studies(root, room).items()
    }
    room, study = found[checks.one_of("name", name, set(found))]
    if study.quick:
        raise checks.reject("name", "be of a study that is not quick, since a quick one is run", repr(name))
    if not earlier:
        raise checks.reject("earlier", "say which run the numbers are of", repr(earlier))
    named = stored(room)
    order = list(studies(root, room))
    named[study.name] = record(study, numbers, earlier)
    _store(room, {key: named[key] for key in order if key in named})


def earlier(root: Path) -> dict[str, str]:
    """The studies whose stored numbers are of an earlier run, and which run that was."""
    return {
        f"{name_of(room)}.{name}": kept["earlier"]
        for room in rooms(root)
        for name, kept in stored(room).items()
        if "earlier" in kept
    }
