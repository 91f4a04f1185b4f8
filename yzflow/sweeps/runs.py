"""One run of a sweep: task, identity and result. Worker processes import this module, so it imports little."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamics.support import checks, content
from dynamics.support.canonical import digest
from dynamics.support.content import Content
from dynamics.support.limits import Limits
from dynamics.support.origins import OURS, outside
from dynamics.support.provenance import machine
from dynamics.version import __version__

if TYPE_CHECKING:
    from dynamics import Field

SCHEMA = 3
# Names in a sweep's dataset that no result may have.
RESERVED = ("seed", "failed", "error", "run", "version")
# A worker returns its results after this many seconds. Its death costs no more work than this and one run.
CHUNK_SECONDS = 0.25

_LONGEST_NAME, _LONGEST_ERROR, _LONGEST_TRACEBACK = 255, 1000, 20_000  # characters
# Names of attributes that netCDF and HDF5 reserve, or that make readers change values.
_TAKEN = (
    *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"),
    *("_nc3_strict", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "_Encoding", "dtype"),
    *("coordinates", "grid_mapping"),
)

_NUMBERS = {np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "float32", "float64")} | {
    np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")
}


@dataclass(frozen=True)
class Task:
    """Task of a sweep.

    Attributes
    ----------
    name : str
    run : callable
        ``run(configuration, seed) -> dict of arrays``, a function of a module.
    version : int or str
        Part of a run's identity. Raise it when results change.
    keys : tuple of str or None
        Allowed keys of a grid; None allows all.
    complete : callable or None
        Keys from a user -> complete configuration with defaults. It checks the keys.
    threads : bool
        True if ``run`` releases the interpreter's lock, so that threads can use all cores.
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

    @property
    def code(self) -> str:
        """Owner of the task's code, as JSON text for a file; empty for our code."""
        return outside([getattr(self.run, "__module__", "") or "__main__"])

    def identity(self, configuration: Mapping, seed: int, parts: Mapping[str, str] | None = None) -> dict:
        """Facts that identify a run; ``parts`` come from `content`."""
        whole = dict(configuration) if self.complete is None else self.complete(dict(configuration))
        return {
            "schema": SCHEMA,
            "task": self.name,
            "version": self.version,
            "configuration": whole,
            "seed": seed,
            **({"content": digest(parts)} if parts else {}),
        }

    def content(self, words: Collection[str] = ()) -> Content:
        """Content of the task's functions, see `dynamics.support.content`; empty for our tasks, which have versions.

        Its parts include fields from outside that the functions or ``words`` name, and the versions of yzflow and
        Python.
        """
        functions = [function for function in (self.run, self.complete) if function is not None]
        functions = [function for function in functions if content.module_of(function).partition(".")[0] not in OURS]
        if not functions:
            return Content({}, (), frozenset())
        seen = content.content_of(*functions)
        versions = {"yzflow": __version__, "Python": ".".join(map(str, sys.version_info[:2]))}
        parts = seen.parts | versions
        table = sys.modules.get("dynamics.fields.table")  # not imported: no field is registered
        fields = [entry.field for entry in table.SYSTEMS.values() if entry.field is not None] if table else []
        for known in fields:
            if known.name in {*words, *seen.words}:
                inside = content.content_of(known.gradient, known.step).parts
                parts |= {f"{name} of the field {known.name}": text for name, text in inside.items()}
        return seen._replace(parts=parts)


class Labelled(NamedTuple):
    """Lightweight stand-in for ``xarray.DataArray`` as a result of a task, forty times as fast to make.

    Attributes
    ----------
    values : array
    dims : tuple of str
    attrs : mapping
    coords : mapping
        Labels of dimensions, each a `Labelled`.
    """

    values: np.ndarray
    dims: tuple[str, ...] = ()
    attrs: Mapping[str, str] = MappingProxyType({})
    coords: Mapping[str, Labelled] = MappingProxyType({})


@dataclass
class Result:
    """Result of a run: labelled arrays, or the error that ended it.

    Attributes
    ----------
    variables : dict
        Name -> (dimensions, array, attributes).
    coordinates : dict
        Dimension -> (labels, attributes), for dimensions with labels.
    error : str
        Empty for a run that succeeded.
    traceback : str
        Traceback of the error, for the file only: it may differ between machines.
    attributes : dict of str
        Provenance.
    """

    variables: dict[str, tuple[tuple[str, ...], np.ndarray, dict]] = field(default_factory=dict)
    coordinates: dict[str, tuple[np.ndarray, dict]] = field(default_factory=dict)
    error: str = ""
    traceback: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def key(identity: Mapping) -> str:
    """SHA-256 of the canonical JSON of a run's identity. As in Python, 1, 1.0 and True are equal."""
    return digest({**identity, "configuration": _equal(identity["configuration"])})


def _equal(value: Any) -> Any:
    """A value in one form for all equal values."""
    if isinstance(value, Mapping):
        return {name: _equal(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_equal(entry) for entry in value]
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole else value


class Here(NamedTuple):
    """The task in the parent process; workers must run the same.

    Attributes
    ----------
    task : Task
    fields : sequence of Field
        Fields to register first, since a new process knows only built-in fields.
    words : collection of str
    parts : mapping of str to str
        `Task.content` of the words.
    limits : Limits
    """

    task: Task
    fields: Sequence[Field] = ()
    words: Collection[str] = ()
    parts: Mapping[str, str] = MappingProxyType({})
    limits: Limits = Limits()


class OtherCodeError(ValueError):
    """A worker's function differs from the parent's."""


# Digests of tasks that this process has compared already.
_compared: set[str] = set()
# Name of a task -> name of a part -> (content after the task's own runs in this process, content at first).
_moved: dict[str, dict[str, tuple[str, str]]] = {}


def as_at_first(task: Task, parts: Mapping[str, str]) -> dict[str, str]:
    """The parts of a task as they were before its own runs in this process, which may fill a memory of results."""
    moved = _moved.get(task.name, {})
    return {name: moved[name][1] if moved.get(name, ("",))[0] == text else text for name, text in parts.items()}


def remember_moved(task: Task, before: Mapping[str, str], words: Collection[str]) -> None:
    """Remember parts of a task that its own runs have changed."""
    for name, (then, now) in content.changes(before, task.content(words).parts).items():
        _moved.setdefault(task.name, {})[name] = (now, then)


def check_same(here: Here) -> None:
    """Refuse to run a task whose content differs between this process and its parent."""
    for known in here.fields:
        from dynamics.fields import register_field

        register_field(known)
    if not here.parts or (name := digest(dict(here.parts))) in _compared:
        return
    changed = content.changes(here.parts, here.task.content(here.words).parts)
    if changed:
        differences = "; ".join(
            f"{name}: {ours} here, {there} there" for name, (ours, there) in list(changed.items())[:3]
        )
        rule = (
            "be the same in the worker processes, which import its module: write the change into the module and start "
            "again, or pass executor=ThreadPoolExecutor()"
        )
        raise OtherCodeError(str(checks.reject("task", rule, f"{here.task.name} ({differences})")))
    _compared.add(name)


def run_chunk(here: Here, jobs: Sequence[tuple[dict, int]]) -> list[Result]:
    """Results of the first jobs: at least one, and as many as fit in `CHUNK_SECONDS`."""
    check_same(here)
    until = time.monotonic() + CHUNK_SECONDS
    results = []
    for configuration, seed in jobs:
        with here.limits:
            results.append(run(here.task, configuration, seed))
        if time.monotonic() >= until:
            break
    return results


def run(task: Task, configuration: Mapping, seed: int) -> Result:
    """Do one run. An exception becomes its result, except Ctrl-C."""
    attributes = dict(machine())
    try:
        # A copy, since a task may change it.
        variables, coordinates = _labelled(task.run(dict(configuration), seed), forbidden=(*configuration, *RESERVED))
    except BaseException as error:
        ours = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
        if ours and isinstance(error, KeyboardInterrupt):
            raise
        whole = plain_text(traceback.format_exc())[-_LONGEST_TRACEBACK:]
        return Result(error=told(error), traceback=whole, attributes=attributes)
    return Result(variables, coordinates, attributes=attributes)


def told(error: BaseException) -> str:
    """Message of an exception in one line of plain text."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException as another:
        text = f"{type(error).__name__}, whose text raises {type(another).__name__}"
    text = " ".join(plain_text(text).split())
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."


def plain_text(text: str) -> str:
    """A text without NUL and lone surrogates, which text files cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def is_text(text: str) -> bool:
    """True if `plain_text` does not change the text."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def is_name(name: object) -> bool:
    """True if a netCDF file can hold a variable of this name and return it."""
    return (
        isinstance(name, str)
        and name not in ("", ".")
        and len(name) <= _LONGEST_NAME
        and "/" not in name
        and not name.startswith("_nc4_non_coord_")
        and is_text(name)
    )


def probe(sent: Here | bytes) -> str:
    """The reason why this worker cannot run a task: its function cannot be unpickled, or differs; empty if it can."""
    try:
        here = pickle.loads(sent) if isinstance(sent, bytes) else sent
        check_same(here)
    except OtherCodeError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def set_or_unset(name: str, value: str | None) -> None:
    """Set a variable of the environment, or remove it if ``value`` is None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def start_worker(safe_path: str | None) -> None:
    """Start of a worker process, which shall die with its parent, as nobody else would end it.

    Processes of a task see the person's environment, not the changed one of the worker.
    """
    set_or_unset("PYTHONSAFEPATH", safe_path)

    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def _labelled(outputs: object, forbidden: Collection[str]) -> tuple[dict, dict]:
    """Arrays of a task's dictionary with their dimensions, and labels of the dimensions."""
    if not isinstance(outputs, Mapping):
        raise TypeError(f"a task must return a dict of arrays, but got {type(outputs).__name__}")
    variables: dict[str, tuple] = {}
    coordinates: dict[str, tuple] = {}
    sizes: dict[str, int] = {}
    for name, value in outputs.items():
        if not is_name(name) or name in forbidden:
            rule = "be words without '/' that are no grid key and none of " + ", ".join(RESERVED)
            raise ValueError(f"names of results must {rule}, but got {name!r}")
        own_dims = getattr(
            value, "dims", None
        )  # an xarray.DataArray or Labelled brings dimensions, labels and attributes
        array = _numbers(name, value if own_dims is None else value.values)
        dims = tuple(f"{name}_{i}" for i in range(array.ndim)) if own_dims is None else tuple(own_dims)
        for dim, size in zip(dims, array.shape, strict=True):
            if not is_name(dim) or dim in forbidden or dims.count(dim) > 1:
                rule = "be different words without '/' that are no grid key and none of " + ", ".join(RESERVED)
                raise ValueError(f"dimensions of `{name}` must {rule}, but got {dim!r}")
            if sizes.setdefault(dim, size) != size:
                rule = f"have {sizes[dim]} entries along {dim!r} as other results"
                raise ValueError(f"`{name}` must {rule}, but got {size}")
            if own_dims is not None and dim in value.coords:
                labels = _labels(dim, value.coords[dim].values)
                known = coordinates.setdefault(dim, (labels, _attributes(dim, value.coords[dim].attrs)))[0]
                if not np.array_equal(known, labels, equal_nan=labels.dtype.kind == "f"):
                    raise ValueError(f"`{name}` must have the labels of the other results along {dim!r}")
        variables[name] = (dims, array, {} if own_dims is None else _attributes(name, value.attrs))
    if both := variables.keys() & sizes.keys():
        raise ValueError(f"names of results must be no dimensions, but got {min(both)!r} for both")
    return variables, coordinates


def _numbers(name: str, value: object) -> np.ndarray:
    if np.ma.is_masked(value):
        raise ValueError(f"`{name}` must have no masked entries")
    array = np.array(value)
    dtype = array.dtype.newbyteorder("=")
    if dtype not in _NUMBERS:
        raise TypeError(f"`{name}` must be an array of real numbers, but got dtype {array.dtype}")
    return np.asarray(array, dtype=dtype, order="C")


def _labels(dim: str, value: np.ndarray) -> np.ndarray:
    """Labels along a dimension: numbers or words without repetition."""
    labels = np.array(value.tolist() if value.dtype == object else value)
    labels = labels.astype(labels.dtype.newbyteorder("="))
    if labels.ndim != 1 or (labels.dtype.kind != "U" and labels.dtype not in _NUMBERS):
        raise TypeError(f"labels along {dim!r} must be numbers or words, but got {labels.ndim} axes of {labels.dtype}")
    if labels.dtype.kind == "U" and not all(map(is_text, value.tolist() if value.dtype != object else labels.tolist())):
        raise ValueError(f"labels along {dim!r} must be words that a file can hold")
    different, counts = np.unique(labels, return_counts=True)
    if different.size < labels.size:
        raise ValueError(f"labels along {dim!r} must stand there once, but got {different[counts > 1][0]} twice")
    return labels


def _attributes(name: str, attributes: Mapping) -> dict[str, str | int | float]:
    """Attributes in types that every file can hold."""
    plain: dict[str, str | int | float] = {}
    for key, value in attributes.items():
        if not is_name(key) or key in _TAKEN:
            raise ValueError(f"attributes of `{name}` must be words that mean nothing to netCDF, but got {key!r}")
        value = checks.plain_types(value) if isinstance(value, np.generic) else value
        number = isinstance(value, float) or (type(value) is int and abs(value) < 2**63)
        plain[key] = value if number else plain_text(str(value))
    return plain
