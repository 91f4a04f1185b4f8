"""Published numbers: each has a name, the function that computes it, its setting, and a place where it is stored.

A room is a folder with a module ``values``, whose tuple ``STUDIES`` holds a `Study` for each computation, and with
``values.json``, their results. The rooms here are those of papers: a folder of this package, or another package
of this repository. In a clone, ``docs/writers/published`` knows all others, compares them with the text that quotes
them, and writes them. A number's name is ``room.study.number``, with ``bounded_dyck`` for the package
``yzflow_bounded_dyck``; the setting's entries are numbers of the study, too, since a sentence that quotes a result
quotes its setting.

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
# The digits that floating-point numbers keep here; far below, processors and versions of libraries differ.
_DIGITS = 12


@dataclass(frozen=True)
class Study:
    """One function at one setting, whose results are published.

    Attributes
    ----------
    name : str
        In its room.
    compute : callable
        Called with the setting as keywords; returns the numbers by name: floats, integers, true or false, words, and
        mappings and lists of these.
    setting : mapping of str to number, word, or lists of these
        As a reader is told it.
    assumptions : tuple of str
        What is assumed, with margins where there are any, or which assumption the setting is outside of.
    quick : bool
        Whether it takes less than five seconds of a processor, so that every check runs it anew.
    command : str
        How it is made anew, if that takes more than ``python -m yzflow.values write room.study``.
    tolerance : float
        Relative difference that another processor or another version of a library may make.
    noise : float
        Absolute difference that counts as none, for numbers that are rounding errors themselves.
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
        """Stored form of a fresh run: `record` of what `compute` returns."""
        return record(self, self.compute(**self.setting))


def plain(numbers: Any, name: str = "values") -> Any:
    """``numbers`` as JSON has them: floats to twelve digits, no types of numpy.

    Raises
    ------
    ValueError
        If there is something else than finite numbers, true or false, words, and mappings and lists of these.
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
    """Stored form of a study: what made the numbers, and the numbers.

    Parameters
    ----------
    earlier : str
        Where the numbers come from, if this function has not computed them as it stands.

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
    """Name, old and new, of each number that differs by more than the study's tolerance, or is in one only."""
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
    """The records of a room, by the study's name; none where nothing has been stored yet."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def name_of(room: Path) -> str:
    """The name of a room: its folder's, without what marks a package of ours."""
    return room.name.removeprefix("yzflow_")


def of_papers() -> list[Path]:
    """The rooms of this package, and the repository's other packages that are installed, which are not imported."""
    specs = [util.find_spec(package) for package in FOLDERS]
    places = [place for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]
    return [*Path(__file__).parent.iterdir(), *map(Path, places)]


def find(name: str, rooms: Iterable[Path]) -> Any:
    """The number ``room.study.number``, or the mapping of all that ``room.study`` has, from these rooms.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    room, _, rest = name.partition(".")
    study, *path = rest.split(".")
    records = [found[study] for one in rooms if name_of(one) == room and study in (found := stored(one))]
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
    """The stored number of this name, of the rooms of papers: for text that code holds.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    return find(name, of_papers())
