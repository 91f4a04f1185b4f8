"""Published numbers: each has a name, the function that computes it, its setting, and a file that stores it.

A room is a folder with a module ``values`` and a file ``values.json``. The module's tuple ``STUDIES`` has a `Study`
for each computation; the file has their results. This module reads the rooms of papers: folders of this package, and
the other packages of this repository. In a clone, ``docs/writers/published`` also knows the rooms outside papers,
compares all numbers with the text that quotes them, and writes them. A number's name is ``room.study.number``, with
``bounded_dyck`` for the package ``yzflow_bounded_dyck``. The entries of the setting are numbers of the study, too: a
sentence quotes them beside the result.

>>> def square(side):
...     return {"area": side**2, "large": side > 10}
>>> record(Study("square", square, {"side": 3.0}), square(3.0))["values"]
{'area': 9.0, 'large': False}
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from dynamics.support import checks
from dynamics.support.distributions import FOLDERS

__all__ = ["Study", "differences", "find", "name_of", "of_papers", "plain", "record", "stored", "value"]

FILE = "values.json"
_NAME = re.compile(r"[\w-]+")
# Significant digits of stored floats; further digits depend on the processor and on versions of libraries.
_DIGITS = 12


@dataclass(frozen=True)
class Study:
    """A function at one setting, whose results are published.

    Attributes
    ----------
    name : str
        The study's name, unique in its room.
    compute : callable
        Called with the setting as keywords; returns the numbers by name: floats, integers, true or false, words, and
        mappings and lists of these.
    setting : mapping of str to number, word, or lists of these
        The arguments of ``compute``, as the text quotes them.
    assumptions : tuple of str
        The assumptions, with margins if there are any, and the assumption that the setting violates, if one is.
    quick : bool
        Whether the study takes less than five seconds of a processor; every check then runs it anew.
    command : str
        The command that renews the numbers, if ``python -m yzflow.values write room.study`` is not enough.
    tolerance : float
        Allowed relative difference between processors and versions of libraries.
    noise : float
        Absolute difference that counts as none, for numbers that are themselves rounding errors.
    """

    name: str
    compute: Callable[..., Mapping[str, Any]]
    setting: Mapping[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    quick: bool = True
    command: str = ""
    tolerance: float = 1e-6
    noise: float = 1e-12

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise checks.reject("name", "be made of letters, digits, - and _", repr(self.name))
        checks.function("compute", self.compute)
        checks.flag("quick", self.quick)
        checks.positive("tolerance", self.tolerance)
        checks.non_negative("noise", self.noise)
        checks.listed("assumptions", self.assumptions, "be a tuple of sentences")
        plain(self.setting, "setting")

    def run(self) -> dict[str, Any]:
        """Stored form of a fresh run: `record` of the numbers that `compute` returns."""
        return record(self, self.compute(**self.setting))


def plain(numbers: Any, name: str = "values") -> Any:
    """``numbers`` in the types of JSON, with floats rounded to twelve digits.

    Raises
    ------
    ValueError
        For anything but finite numbers, true or false, words, and mappings and lists of these.
    """
    numbers = checks.plain_types(numbers)
    if isinstance(numbers, Mapping):
        for key in numbers:
            if not isinstance(key, str) or not _NAME.fullmatch(key):
                raise checks.reject(name, "have names made of letters, digits, - and _", repr(key))
        return {key: plain(entry, f"{name}.{key}") for key, entry in numbers.items()}
    if isinstance(numbers, (list, tuple)):
        return [plain(entry, f"{name}.{i}") for i, entry in enumerate(numbers)]
    if isinstance(numbers, float):
        if not math.isfinite(numbers):
            raise checks.reject(name, "be finite", str(numbers))
        return float(f"{numbers:.{_DIGITS}g}")
    if isinstance(numbers, (bool, int, str)):
        return numbers
    raise checks.reject(
        name, "be numbers, true or false, words, or mappings and lists of these", type(numbers).__name__
    )


def record(study: Study, numbers: Mapping[str, Any], earlier: str = "") -> dict[str, Any]:
    """Stored form of a study: its function, setting and assumptions, and the numbers.

    Parameters
    ----------
    earlier : str
        The origin of the numbers, if an earlier form of the function computed them.

    Raises
    ------
    ValueError
        If a number has the name of an entry of the setting.
    """
    checks.instance("numbers", numbers, Mapping)
    if both := sorted(set(numbers) & set(study.setting)):
        raise checks.reject("numbers", "have other names than the setting", ", ".join(both))
    return {
        "function": f"{study.compute.__module__}.{study.compute.__qualname__}",
        "setting": plain(study.setting, "setting"),
        "assumptions": list(study.assumptions),
        "quick": study.quick,
        **({"command": study.command} if study.command else {}),
        **({"earlier": earlier} if earlier else {}),
        "values": plain(numbers),
    }


def differences(old: Any, new: Any, study: Study, name: str = "") -> list[tuple[str, Any, Any]]:
    """(name, old, new) for each number that differs by more than the study's tolerance, or is missing in old or new."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        pairs = [(key, old.get(key), new.get(key)) for key in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(i), one, other) for i, (one, other) in enumerate(zip(old, new, strict=True))]
    else:
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (old, new))
        if numbers:
            same = math.isclose(old, new, rel_tol=study.tolerance, abs_tol=study.noise)
        else:
            same = isinstance(old, bool) == isinstance(new, bool) and old == new
        return [] if same else [(name, old, new)]
    return [
        found for key, one, other in pairs for found in differences(one, other, study, f"{name}.{key}" if name else key)
    ]


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of a room, by the study's name; empty if nothing is stored yet."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def name_of(room: Path) -> str:
    """The name of a room: its folder's name, without the prefix ``yzflow_`` of our packages."""
    return room.name.removeprefix("yzflow_")


def of_papers() -> list[Path]:
    """The folders of this package, and the repository's other installed packages, without importing them."""
    specs = [util.find_spec(package) for package in FOLDERS]
    folders = [folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
    return [*Path(__file__).parent.iterdir(), *map(Path, folders)]


def find(name: str, rooms: Iterable[Path]) -> Any:
    """The number ``room.study.number``, or the mapping of all numbers of ``room.study``, from these rooms.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    room, _, rest = name.partition(".")
    study, *path = rest.split(".")
    records = [kept[study] for folder in rooms if name_of(folder) == room and study in (kept := stored(folder))]
    if len(records) != 1:
        raise checks.reject("name", "be of one stored value, as room.study.number", repr(name))
    number: Any = {**records[0]["setting"], **records[0]["values"]}
    for key in path:
        if isinstance(number, list) and key.isdecimal() and int(key) < len(number):
            number = number[int(key)]
        elif isinstance(number, dict) and key in number:
            number = number[key]
        else:
            raise checks.reject("name", "be of one stored value, as room.study.number", repr(name))
    return number


@cache
def value(name: str) -> Any:
    """The stored number of this name from the rooms of papers, for text inside code.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    return find(name, of_papers())
