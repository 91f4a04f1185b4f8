"""The store of a sweep: a folder with one file for each run, complete and checked.

A run's file is ``KEY.npz``, a sealed `dynamics.support.archive` with ``run.json`` and an array for each variable. KEY
is the SHA-256 of the canonical JSON of the run's identity: schema, task, version, configuration, seed, and the content
of a user's function. ``code-*.json`` names the parts of users' functions, to report changes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import xarray as xr

from dynamics.support import archive, checks, files, sealed
from dynamics.support.canonical import canonical, digest
from dynamics.support.content import changes
from dynamics.support.netcdf import save_dataset
from yzflow.sweeps import runs
from yzflow.sweeps.collect import Collector
from yzflow.sweeps.runs import SCHEMA, Result

MARKER = "yzflow-store.json"
_PROJECT = "yzflow"
CODE = "code_sha256"  # set for a task whose code changed between runs
_FORMAT, _RUN = "yzflow-runs-1", "yzflow-sweep-run-1"
_KEY = re.compile("[0-9a-f]{64}")
_STALE = 3600.0  # seconds; an older temporary file was left by a dead process
# Errors of reading that do not mean that the file is damaged.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class StoreError(RuntimeError):
    """A result could not be written. All files in the store are complete, and the sweep can go on from them."""


class Store:
    """Results of runs in a folder.

    Any number of processes may use one store at once.

    Parameters
    ----------
    path : path-like
        A store, or a new or empty folder, which becomes a store.

    Raises
    ------
    ValueError
        If the folder holds anything else, or a store of another schema version or project.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self._folder = files.absolute("store", path, folder=True)
        self.path = Path(path)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._claim()
        except OSError as error:
            raise self._reject("be a folder that can be written", f" ({error.strerror})") from error
        files.sweep_up(self._folder)
        with os.scandir(self._folder) as entries:
            for entry in entries:
                named = entry.name.startswith(".") and entry.name.endswith(".npz")
                if named and not files.is_temporary(entry.name):  # a temporary file may still be written
                    with suppress(OSError):
                        if time.time() - entry.stat().st_mtime > _STALE:
                            os.unlink(entry.path)

    def __repr__(self) -> str:
        return f"<Store: {len(self)} runs in {os.fspath(self.path)!r}>"

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _KEY.fullmatch(key) is not None and self._file(key).exists()

    def keys(self) -> list[str]:
        """The sorted keys of all runs, damaged files included."""
        return sorted(self._keys())

    def write(self, identity: dict, result: Result) -> None:
        """Add a run, completely or not at all.

        Raises
        ------
        StoreError
            If the run cannot be written, for example on a full disk.
        """
        content = _encode(identity, result)
        try:
            files.write(self._file(runs.key(identity)), content, clean=False)
        except OSError as error:
            raise self._failure("write into", error) from error
        except ValueError:  # something else than a file is in its place
            self._set_aside(self._file(runs.key(identity)), "it is no file")
            self.write(identity, result)

    def read(self, key: str) -> tuple[dict, Result] | None:
        """The identity and the result of a run; None if it is missing.

        A damaged file counts as missing. It is renamed to ``KEY.npz.damaged``, with a warning.

        Raises
        ------
        ValueError
            If ``key`` is not the key of a run.
        StoreError
            If the file may be sound, but cannot be read or renamed now.
        """
        path = self._file(key)
        try:
            identity, result = _decode(files.read("path", path))
            if runs.key(identity) != key:
                raise ValueError("it holds another run")
        except FileNotFoundError:
            return None
        except ValueError as error:
            self._set_aside(path, "it is no file" if str(error).startswith("`path` must be a") else f"{error}")
            return None
        except OSError as error:
            if error.errno in _PASSING:
                raise self._failure("read", error) from error
            self._set_aside(path, error.strerror or str(error))
            return None
        return identity, result

    def _set_aside(self, path: Path, why: str) -> None:
        """Rename something that is not a run."""
        try:
            sealed.set_aside(path, why, "to be run again", stacklevel=4)
        except OSError as error:
            raise self._failure(f"set {path.name} aside in", error) from error

    def _failure(self, what: str, error: OSError) -> StoreError:
        return StoreError(
            f"cannot {what} the store {os.fspath(self.path)}: {error.strerror}. The {len(self)} runs in it are "
            f"complete: remedy this, and the same sweep goes on from there"
        )

    def remember(self, task: str, parts: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Keep the parts of a task's functions beside its runs.

        Returns
        -------
        dict
            Name -> (then, now) for parts that differ from the task's last ones; empty if the store knows these parts.
        """
        file = self._folder / f"code-{digest([task, dict(parts)])[:16]}.json"
        if file.exists():
            with suppress(OSError):
                os.utime(file)  # mark it as the last
            return {}
        earlier = []
        for path in sorted(self._folder.glob("code-*.json"), key=lambda path: path.stat().st_mtime):
            with suppress(OSError, ValueError, TypeError, KeyError):
                content = json.loads(path.read_bytes())
                earlier += [dict(content["parts"])] if content["task"] == task else []
        try:
            files.write(file, canonical({"task": task, "parts": dict(parts)}).encode(), clean=False)
        except OSError as error:
            raise self._failure("write into", error) from error
        return changes(earlier[-1], parts) if earlier else {}

    def tasks(self) -> dict[str, int]:
        """The number of runs of each task."""
        counts: dict[str, int] = {}
        for identity, _ in self._all():
            counts[identity["task"]] = counts.get(identity["task"], 0) + 1
        return dict(sorted(counts.items()))

    def dataset(self, task: str | None = None) -> xr.Dataset:
        """All runs of a task along one dimension ``run``, each with its configuration, seed and results.

        Parameters
        ----------
        task : str, optional
            May be left out if the store holds one task.

        Raises
        ------
        ValueError
            If the store holds no such runs.
        """
        if task is not None:
            checks.instance("task", task, str, rule="be None or the name of a task")
        kept = [(identity, result) for identity, result in self._all() if task in (None, identity["task"])]
        names = sorted({identity["task"] for identity, _ in kept})
        if len(names) != 1:
            known = ", ".join(repr(name) for name in names or self.tasks()) or "none, as the store is empty"
            raise checks.reject("task", f"name one of the tasks in the store ({known})", checks.brief(task))
        collector = Collector(len(kept))
        for cell, (_, result) in enumerate(kept):
            collector.add(cell, result)
        identities = [identity for identity, _ in kept]
        configurations = [identity["configuration"] for identity in identities]
        settings = {name: None for configuration in configurations for name in configuration}
        several = len({identity.get("content") for identity in identities}) > 1
        results = collector.dataset({"run": len(kept)}, taken={*settings, *runs.RESERVED})
        coordinates = {
            **{name: ("run", column([c.get(name) for c in configurations])) for name in settings},
            "seed": ("run", [identity["seed"] for identity in identities]),
            "version": ("run", column([identity["version"] for identity in identities])),
            **({CODE: ("run", [identity.get("content", "") for identity in identities])} if several else {}),
        }
        return results.assign_coords(coordinates).assign_attrs(format=_FORMAT, task=names[0])

    def consolidate(self, path: str | os.PathLike, task: str | None = None) -> None:
        """Write `dataset` to a sealed netCDF file, completely or not at all."""
        save_dataset(self.dataset(task), path)

    def _all(self) -> Iterator[tuple[dict, Result]]:
        return (run for run in map(self.read, self.keys()) if run is not None)

    def _file(self, key: str) -> Path:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise checks.reject("key", "be the 64 hexadecimal digits of a run", checks.brief(key))
        return self._folder / f"{key}.npz"

    def _keys(self) -> list[str]:
        names = (name.removesuffix(".npz") for name in os.listdir(self._folder) if name.endswith(".npz"))
        return [name for name in names if _KEY.fullmatch(name)]

    def _claim(self) -> None:
        """Check that the folder is a store, or make an empty folder a store."""
        marker = self._folder / MARKER
        # The marker is written before any run; another process may be writing it now.
        others = [
            name
            for name in os.listdir(self._folder)
            if not name.removeprefix(".").startswith(Path(MARKER).stem) and not files.is_temporary(name)
        ]
        if not os.path.lexists(marker):
            if others:
                raise self._reject("be a store, or a new or empty folder", ", which holds other files")
            files.write(marker, (json.dumps({"project": _PROJECT, "schema": SCHEMA}) + "\n").encode())
        try:
            claim = json.loads(files.read("store", marker))
            project, schema = claim["project"], claim["schema"]
        except (ValueError, TypeError, KeyError):
            raise self._reject("be a store of yzflow", f", whose {MARKER} cannot be read") from None
        if (project, schema) != (_PROJECT, SCHEMA):
            older = isinstance(schema, int) and schema < SCHEMA
            why = ", whose runs do not say which code they were made by: take a new folder" if older else ""
            raise self._reject(f"be a store of {_PROJECT}, schema {SCHEMA}", f", of {project}, schema {schema}{why}")

    def _reject(self, rule: str, what: str) -> ValueError:
        return checks.reject("store", rule, f"{os.fspath(self.path)}{what}")


def column(values: list) -> np.ndarray:
    """Values of a key as an array that netCDF can hold: numbers, booleans, or words.

    Mixed types become words, as do integers that a common type would round.
    """
    kinds = {"number" if type(value) in (int, float) else type(value).__name__ for value in values}
    if len(kinds) == 1 and kinds <= {"number", "bool", "str"}:
        array = np.array(values)
        if array.tolist() == values:
            return array
    return np.array([str(value) for value in values])


def _encode(identity: dict, result: Result) -> bytes:
    header = {
        "format": _RUN,
        "identity": json.loads(canonical(identity)),
        "variables": [[name, dims, attributes] for name, (dims, _, attributes) in result.variables.items()],
        "coordinates": [[dim, attributes] for dim, (_, attributes) in result.coordinates.items()],
        "error": result.error,
        "traceback": result.traceback,
        "attributes": result.attributes,
    }
    arrays = {name: array for name, (_, array, _) in result.variables.items()}
    arrays |= {f"labels/{dim}": labels for dim, (labels, _) in result.coordinates.items()}
    return archive.encode(header, arrays)


def _decode(content: bytes) -> tuple[dict, Result]:
    header, arrays = archive.decode(content)
    if header.get("format", _RUN) != _RUN:  # older runs have no format
        raise ValueError("it holds something else")
    try:
        variables = {name: (tuple(dims), arrays[name], attributes) for name, dims, attributes in header["variables"]}
        coordinates = {dim: (arrays[f"labels/{dim}"], attributes) for dim, attributes in header["coordinates"]}
        if not isinstance(header["identity"], dict) or "configuration" not in header["identity"]:
            raise ValueError("it holds something else")
        rest = (header["error"], header["traceback"], header["attributes"])
        return header["identity"], Result(variables, coordinates, *rest)
    except (KeyError, TypeError) as error:
        raise ValueError("it holds something else") from error
