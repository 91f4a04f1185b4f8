"""Calls that can be made again: a function of `dynamics`, its arguments and its data, as bytes that hold no code."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from dynamics.support import checks, netcdf
from dynamics.support.limits import current
from dynamics.support.names import AXES
from dynamics.support.origins import Code, Origin, origin_of

# Classes whose attributes have the names of their constructor's arguments. Objects from a file are made by the
# constructor, which checks them: kernels trust the indices in such arrays.
_KINDS = (
    "Bags",
    "Embedding",
    "Layer",
    "Objective",
    "Optimizer",
    "Schedule",
    "SequenceClasses",
    "Solver",
)
_FUNCTIONS = ("gradient_flow", "sgd", "stochastic_flow", "integrate", "descend")
_LARGEST_POOL = 1000  # words of a SeedSequence, which takes their square to mix
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, AttributeError, OSError, RuntimeError)


@dataclass(frozen=True)
class LeftOut:
    """A place holder for an argument that a file does not hold.

    Attributes
    ----------
    what : str
        Its kind.
    sha256 : str
        SHA-256 of its content, or "" if the content could not be read.
    """

    what: str
    sha256: str = ""


@dataclass(frozen=True)
class Call:
    """A call of `gradient_flow`, `sgd`, `stochastic_flow`, `integrate` or `descend`.

    Attributes
    ----------
    function : str
    arguments : mapping
        All arguments, ``data`` among them; ``seed`` only if something is drawn. `LeftOut` stands for an argument that a
        file does not hold. `Origin` stands for a flow from a file, which is made when the call is.
    """

    function: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        # Copies, since a caller may write into an array or a list later.
        copies = {n: v.copy() if isinstance(v, np.ndarray | list) else v for n, v in self.arguments.items()}
        object.__setattr__(self, "arguments", copies)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the arguments that are to be given before the call can be made."""
        return tuple(name for name, value in self.arguments.items() if isinstance(value, LeftOut))

    def make(self, *, progress: bool = False, **given: Any) -> Any:
        """Make the call. ``given`` has the missing arguments; for a flow from a file it may have the flow or its class.

        Raises
        ------
        ValueError
            If an argument is still missing, is not missing, or has other content than before.
        """
        arguments = dict(self.arguments)
        for name, value in given.items():
            if isinstance(origin := arguments.get(name), Origin):
                arguments[name] = _of_origin(name, origin, value)
                continue
            if name not in self.missing:
                raise checks.reject(name, "be left out where the file holds it", checks.brief(value))
            known = self.arguments[name]
            if known.sha256 and digest(value) != known.sha256:
                raise checks.reject(name, f"be the {known.what} that the file was made from", checks.brief(value))
        for name in self.missing:
            if name not in given:
                raise checks.reject(name, "be given, as the file does not hold it", self.arguments[name].what)
        function = getattr(importlib.import_module("dynamics"), self.function)
        arguments |= {name: value for name, value in given.items() if name in self.missing}
        arguments = {name: value.make() if isinstance(value, Origin) else value for name, value in arguments.items()}
        return function(**arguments, progress=progress)

    def to_bytes(self) -> bytes:
        """The call as an ``.npz`` file.

        Raises
        ------
        ValueError
            If a flow's ``config()`` returned a value that files cannot hold.
        """
        arrays: dict[str, np.ndarray] = {}
        nodes: dict[str, Any] = {}
        for name, value in self.arguments.items():
            held: dict[str, np.ndarray] = {}
            node = _kept(value, held, f"{len(nodes)}")
            if node is None and isinstance(value, Origin):
                raise _unheld(value)
            if node is None or sum(array.nbytes for array in held.values()) > current().data:
                what = value.target if isinstance(value, Origin) else type(value).__name__
                node, held = {"left out": what, "sha256": digest(value)}, {}
            nodes[name] = node
            arrays |= held
        text = json.dumps({"function": self.function, "arguments": nodes})
        file = io.BytesIO()
        np.savez_compressed(file, call=np.frombuffer(text.encode(), np.uint8), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Call:
        """The call that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If it is something else, or an argument is invalid for the function.
        """
        refused = checks.reject("content", "be a call that `to_bytes` made", f"{len(content)} other bytes")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                size = sum(entry.file_size for entry in file.infolist())
            checks.fits_in_memory("content", 2 * size, "unpack a call")
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            call = json.loads(arrays.pop("call").tobytes().decode())
            function = checks.one_of("function", call["function"], _FUNCTIONS)
            return cls(function, {name: _unpack(node, arrays) for name, node in call["arguments"].items()})
        except _DAMAGE as error:
            raise refused from error
        except ValueError as error:
            if str(error).startswith("`"):
                raise
            raise refused from error


def _of_origin(name: str, origin: Origin, value: Any) -> Any:
    """The flow that a user hands over, itself or by its class; ValueError if it is not the flow of the file."""
    if isinstance(value, type) and origin.is_of(value):
        return origin.make(value)
    known = None if isinstance(value, type) or not origin.is_of(type(value)) else origin_of(value)
    if known is None or digest(dict(known.config)) != digest(dict(origin.config)):
        rule = f"be of the class {origin.target} with the configuration that the file says, or this class"
        raise checks.reject(name, rule, checks.brief(value))
    return value


class _NotKept(Exception):
    """A value, or a part of it, has no form in a file: a function, or an object of another library."""


def _kept(value: Any, arrays: dict[str, np.ndarray], place: str) -> dict[str, Any] | None:
    """A value as JSON and arrays; None if a part of it has no form in a file."""
    try:
        return {"value": _pack(value, arrays, place)}
    except _NotKept:
        return None


def _unheld(origin: Origin) -> ValueError:
    """The error for a configuration with a part that has no form in a file."""
    name, entry = next((name, entry) for name, entry in origin.config.items() if _kept(entry, {}, "") is None)
    rule = "return numbers, words, and lists, mappings by words and arrays of them, for a file to hold"
    return checks.reject(f"config of {origin.target}", rule, f"{checks.brief(entry)} for {name!r}")


def _pack(value: Any, arrays: dict[str, np.ndarray], place: str) -> Any:
    """A value as JSON, its arrays put aside under names that begin with ``place``."""
    if isinstance(value, np.generic):
        value = checks.plain_types(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {"list": [_pack(item, arrays, f"{place}_{i}") for i, item in enumerate(value)]}
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise _NotKept
        places = (f"{place}_m{i}" for i in range(len(value)))  # names may have any character
        items = zip(value.items(), places, strict=True)
        return {"mapping": {name: _pack(part, arrays, where) for (name, part), where in items}}
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        arrays[place] = value
        return {"array": place}
    if scipy.sparse.issparse(value):
        value = value.tocsr()
        parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
        return {"csr": _packed(parts, arrays, place), "shape": list(value.shape)}
    if isinstance(value, np.random.SeedSequence):
        parts = {"entropy": value.entropy, "spawn_key": list(value.spawn_key), "pool_size": value.pool_size}
        return {"seed": _packed(parts, arrays, place)}
    kind = _kind_of(type(value))
    if kind is not None and not _overridden(type(value), kind):
        parts = {name: getattr(value, name) for name in inspect.signature(kind).parameters}
        # Fields of names are left out if there are none, as before they existed: files hold the SHA-256 of such data.
        parts = {name: part for name, part in parts.items() if part is not None or name not in AXES}
        return {"object": kind.__name__, "with": _packed(parts, arrays, place)}
    if type(value).__name__ == "Trajectory":
        # A continued run starts from its last time.
        arrays[place] = np.frombuffer(netcdf.encode(value.dataset.isel(time=[-1])), np.uint8)
        return {"netcdf": place}
    origin = value if isinstance(value, Origin) else origin_of(value)
    if origin is None:
        raise _NotKept
    config = _pack(origin.config, arrays, place)
    return {"origin": origin.target, "config": config, "code": asdict(origin.found())}


def _kind_of(kind: type) -> type | None:
    """The class of `_KINDS` that a class is, or derives from."""
    ours = (base for base in kind.__mro__ if base.__name__ in _KINDS and base.__module__.startswith("dynamics."))
    return next(ours, None)


def _overridden(kind: type, base: type) -> set[str]:
    """Names that a class derived from ``base`` overrides, except constructors and display."""
    derived = kind.__mro__[: kind.__mro__.index(base)]
    plain = (classmethod, staticmethod)
    names = {name for cls in derived for name, value in vars(cls).items() if not isinstance(value, plain)}
    asked = {name for name in dir(base) if not name.startswith("__")} - {"_repr_html_", "plot"}
    return names & (asked | {"population", "sample", "query_tokens", "__getattr__", "__getattribute__", "__len__"})


def _packed(parts: Mapping[str, Any], arrays: dict[str, np.ndarray], place: str) -> dict[str, Any]:
    return {name: _pack(part, arrays, f"{place}_{name}") for name, part in parts.items()}


def _unpack(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(node, dict):
        return node
    if "list" in node:
        return [_unpack(item, arrays) for item in node["list"]]
    if "mapping" in node:
        return {str(name): _unpack(part, arrays) for name, part in node["mapping"].items()}
    if "origin" in node:
        code = Code(**{name: str(node["code"][name]) for name in ("package", "distribution", "version", "sha256")})
        return Origin(str(node["origin"]), _unpack(node["config"], arrays), code)
    if "array" in node:
        return arrays[node["array"]]
    if "netcdf" in node:
        return importlib.import_module("dynamics").Trajectory(netcdf.decode(arrays[node["netcdf"]].tobytes()))
    if "value" in node:
        return _unpack(node["value"], arrays)
    if "left out" in node:
        return LeftOut(str(node["left out"]), str(node["sha256"]))
    if "csr" in node:
        parts = {name: _unpack(part, arrays) for name, part in node["csr"].items()}
        return scipy.sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(node["shape"]))
    if "seed" in node:
        checks.integer("pool_size", node["seed"]["pool_size"], minimum=4, maximum=_LARGEST_POOL)
        return np.random.SeedSequence(**{name: _unpack(part, arrays) for name, part in node["seed"].items()})
    kind = checks.one_of("object", node["object"], _KINDS)
    made = getattr(importlib.import_module("dynamics"), kind)
    return made(**{name: _unpack(part, arrays) for name, part in node["with"].items()})


def digest(value: Any) -> str:
    """SHA-256 of the content of a value, "" if it cannot be packed; of data, SHA-256 of the population."""
    return _digest(value.population() if hasattr(value, "population") else value)


def data_key(name: str, value: Any) -> str:
    """SHA-256 of all that simulators read from data, of any class: the key of kept results.

    A user's class may override the population of the class from which it derives, since the population is read. Other
    overrides cannot be read.

    Raises
    ------
    ValueError
        If no file can hold a part of the data, or its class overrides anything else.
    """
    kind = type(value)
    base, stands = _kind_of(kind), hasattr(value, "population")
    parts: dict[str, Any] = {"data": value}
    if kind is not base and (stands or base is not None):
        state = {field: held for field, held in getattr(value, "__dict__", {}).items() if field != "_kept"}
        parts = {"class": f"{kind.__module__}:{kind.__qualname__}", "state": state}
        if stands:
            parts |= {"population": value.population(), "query_tokens": getattr(value, "query_tokens", None)}
    others = set() if base is None else _overridden(kind, base) - {"population"}
    key = "" if others else _digest(parts)
    if not key:
        rule = "hold content that a file can hold, and answer by the code of yzflow, where results are kept"
        what = f"its own {sorted(others)[0]}" if others else checks.brief(value)
        raise checks.reject(name, rule, f"{what} of {kind.__qualname__}: hand over `Bags`")
    return key


def _digest(value: Any) -> str:
    arrays: dict[str, np.ndarray] = {}
    node = _kept(value, arrays, "0")
    if node is None:
        return ""
    sha256 = hashlib.sha256(json.dumps(node["value"]).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha256.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha256.update(array.tobytes())
    return sha256.hexdigest()
