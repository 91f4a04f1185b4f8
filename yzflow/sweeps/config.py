"""The file that describes a sweep for the command line, in TOML."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynamics.support import checks, sealed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class SweepFile:
    """Description of a sweep in a file ``CONFIG.toml``.

    Attributes
    ----------
    task : str
        The name of a task, or "module:function".
    grid : dict
        Key -> list of values.
    seeds : int or list of int
    store : Path
        Folder of the runs. Default: CONFIG.store, where the command runs.
    out : Path
        netCDF file of the result. Default: CONFIG.nc, where the command runs.
    """

    task: str
    grid: Mapping[str, list]
    seeds: int | list[int]
    store: Path
    out: Path


# Key -> its types in words, its types for isinstance, and True if it is required.
_KEYS: dict[str, tuple[str, type | tuple[type, ...], bool]] = {
    "task": ("a string", str, True),
    "grid": ("a table of lists of values", dict, True),
    "seeds": ("an integer or a list of integers", (int, list), False),
    "store": ("a string, the path of a folder", str, False),
    "out": ("a string, the path of a netCDF file", str, False),
}


def load(path: str | os.PathLike) -> SweepFile:
    """Read the description of a sweep; the values of the grid are checked by `yzflow.sweep`.

    Raises
    ------
    ValueError
        If it is not TOML, or has an unknown key, a missing one or one of a wrong type.
    OSError
        If it cannot be read.
    """
    path = checks.path("CONFIG", path)
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise checks.reject("CONFIG", "be a TOML file", f"{path} ({error})") from error
    except RecursionError as error:
        raise checks.reject("CONFIG", "be a TOML file of tables that are not so deep", path) from error
    for key in table:
        if key not in _KEYS:
            raise checks.reject("CONFIG", f"have the keys {', '.join(_KEYS)}", f"{key!r} in {path}")
    for key, (words, types, needed) in _KEYS.items():
        if key not in table:
            if needed:
                raise checks.reject("CONFIG", f"have the key {key!r}, {words}", f"none in {path}")
        elif not isinstance(table[key], types) or isinstance(table[key], bool):
            raise checks.reject(key, f"be {words}", f"{checks.brief(table[key])} in {path}")
    for key in ("store", "out"):
        if table.get(key) == "":
            raise checks.reject(key, f"be {_KEYS[key][0]}", f"an empty one in {path}")
        # A file from elsewhere must not choose a file to overwrite.
        if key in table and not (Path.cwd() / table[key]).resolve().is_relative_to(Path.cwd().resolve()):
            raise checks.reject(key, f"lie below the present folder: say another place by --{key}", table[key])
    return SweepFile(
        table["task"],
        table["grid"],
        table.get("seeds", 1),
        Path(table.get("store", f"{path.stem}.store")),
        Path(table.get("out", f"{path.stem}.nc")),
    )


def check_replaces(out: Path) -> None:
    """Refuse to replace a file that is not yzflow's, if only a description named it, not a person."""
    if not out.exists():
        return
    try:
        known = sealed.kind_of(out)
    except (ValueError, OSError):
        known = None
    if known is None:
        raise checks.reject(
            "out", "be a new file or a result of yzflow: say another one by --out", f"{out}, which is none"
        )
