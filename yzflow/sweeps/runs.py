"""One run of a sweep: its task, its identity, its result. Worker processes import this, so it stays light."""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import pickle
import platform
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

SCHEMA = 1
# Names in a sweep's dataset that no task may give to a result.
RESERVED = ("seed", "failed", "error")
# Seconds after which a worker hands in what it has: the most work that the death of a worker costs, beside one run.
CHUNK_SECONDS = 0.25

_NUMBERS = {np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "float32", "float64")} | {
    np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")
}


@dataclass(frozen=True)
class Task:
    """What a sweep runs.

    Attributes
    ----------
    name : str
    run : callable
        ``run(configuration, seed) -> dict of arrays``, a function of a module.
    version : int or str
        Part of a run's identity: raise it when results change.
    keys : tuple of str or None
        The keys that a grid may have; None: any.
    complete : callable or None
        Takes the keys that a user set, checks them and returns the whole configuration, defaults filled in.
    threads : bool
        Whether ``run`` releases the interpreter's lock, so that threads of one process keep all cores busy.
    labels : mapping
        Attributes (``long_name``, ``units``) of the grid's coordinates.
    """

    name: str
    run: Callable[[dict, int], Mapping]
    version: int | str = 1
    keys: tuple[str, ...] | None = None
    complete: Callable[[dict], dict] | None = None
    threads: bool = False
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def identity(self, configuration: Mapping, seed: int) -> dict:
        """What tells a run from every other."""
        whole = dict(configuration) if self.complete is None else self.complete(dict(configuration))
        return {
            "schema": SCHEMA,
            "task": self.name,
            "version": self.version,
            "configuration": whole,
            "seed": seed,
        }


@dataclass
class Result:
    """What a run left: labelled arrays, or the error that ended it.

    Attributes
    ----------
    variables : dict
        Name -> (dimensions, array, attributes).
    coordinates : dict
        Dimension -> (labels, attributes), for the dimensions that have labels.
    error : str
        Empty for a run that succeeded.
    traceback : str
        Of the error, for the file only: it may differ from one machine to another.
    attributes : dict of str
        Provenance.
    """

    variables: dict[str, tuple[tuple[str, ...], np.ndarray, dict]] = field(default_factory=dict)
    coordinates: dict[str, tuple[np.ndarray, dict]] = field(default_factory=dict)
    error: str = ""
    traceback: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def canonical(identity: Mapping) -> str:
    """The one JSON text of an identity."""
    return json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key(identity: Mapping) -> str:
    """SHA-256 of the canonical JSON of a run's identity."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def run_chunk(task: Task, jobs: Sequence[tuple[dict, int]]) -> list[Result]:
    """Results of the first of ``jobs`` (identities): at least one, and as many as fit in `CHUNK_SECONDS`."""
    until = time.monotonic() + CHUNK_SECONDS
    results = []
    for configuration, seed in jobs:
        results.append(run(task, configuration, seed))
        if time.monotonic() >= until:
            break
    return results


def run(task: Task, configuration: Mapping, seed: int) -> Result:
    """Do one run; what it raises is its result."""
    attributes = {"platform": _platform()}
    try:
        # Each run gets its own copy: a task may change it.
        variables, coordinates = _labelled(task.run(dict(configuration), seed), forbidden=(*configuration, *RESERVED))
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Result(error=text, traceback=traceback.format_exc(), attributes=attributes)
    return Result(variables, coordinates, attributes=attributes)


def probe(task: Callable | bytes) -> str:
    """Why a worker cannot unpickle the function of a task; empty if it can."""
    try:
        if isinstance(task, bytes):
            pickle.loads(task)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def follow_parent() -> None:
    """Start of a worker process: die with the parent, for nobody else would end a worker."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@functools.cache
def _platform() -> str:
    return platform.platform()


def _labelled(outputs, forbidden: Sequence[str]) -> tuple[dict, dict]:
    """The arrays of a task's dictionary with their dimensions, and the labels of these."""
    if not isinstance(outputs, Mapping):
        raise TypeError(f"a task must return a dict of arrays, but got {type(outputs).__name__}")
    variables, coordinates = {}, {}
    for name, value in outputs.items():
        if not isinstance(name, str) or not name or "/" in name or name in forbidden:
            rule = "be words without '/' that are no grid key and none of " + ", ".join(RESERVED)
            raise ValueError(f"names of results must {rule}, but got {name!r}")
        dims = getattr(value, "dims", None)  # an xarray.DataArray brings dimensions, labels and attributes
        array = np.array(value if dims is None else value.values)
        dtype = array.dtype.newbyteorder("=")
        if dtype not in _NUMBERS:
            raise TypeError(f"`{name}` must be an array of real numbers, but got dtype {array.dtype}")
        variables[name] = (
            tuple(f"{name}_{i}" for i in range(array.ndim)) if dims is None else tuple(dims),
            np.asarray(array, dtype=dtype, order="C"),
            {} if dims is None else _plain(value.attrs),
        )
        for dim in dims or ():
            if dim in forbidden:
                raise ValueError(f"dimensions of `{name}` must be no grid key, but got {dim!r}")
            if dim in value.coords:
                labels = value.coords[dim].values
                labels = np.array(labels.tolist()) if labels.dtype == object else np.array(labels)
                if labels.dtype.kind != "U" and labels.dtype not in _NUMBERS:
                    raise TypeError(f"labels along {dim!r} must be numbers or words, but got dtype {labels.dtype}")
                known = coordinates.setdefault(dim, (labels, _plain(value.coords[dim].attrs)))[0]
                if not np.array_equal(known, labels):
                    raise ValueError(f"`{name}` must have the labels of the other results along {dim!r}")
    return variables, coordinates


def _plain(attributes: Mapping) -> dict:
    return {
        str(name): value if isinstance(value, (str, int, float)) else str(value) for name, value in attributes.items()
    }
