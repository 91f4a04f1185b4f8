"""The content of a function: its code, and all that it reads, so that what was kept of another function is not reused.

A function is walked from its compiled form, which is what runs: its source file may have been edited since. The walk
follows defaults, closures, the module's names that it reads, helpers, classes and modules of the same person, and stops
at what is installed, at Python's own library and at yzflow, whose versions results record beside.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dynamics.support.origins import OURS

# Names of a script when it runs, and when a worker process imports it.
_MAIN = ("__main__", "__mp_main__")
# Objects that keep threads apart hold no numbers.
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Event, threading.Condition)
_NUMBERS = (bool, int, float, complex, type(None), np.bool_)
_PLAIN = (*_NUMBERS, str, bytes, bytearray, type(Ellipsis), range, slice)
_LISTS, _SETS, _MAPPINGS = (list, tuple), (set, frozenset), (dict, MappingProxyType)
_DEEPEST = 100  # levels of values within values
# Attributes of every class and metaclass that hold no code and no number of a person.
_OF_EVERY_CLASS = {*dir(type), *dir(object), "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__",
                   "__annotate_func__", "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__",
                   "__match_args__", "__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl",
                   "__conditional_annotations__", "__annotations__"}  # fmt: skip
# Built-in functions by which code reads names that are not in its compiled form.
_BY_NAME = ("globals", "eval", "exec", "__import__")
_LOOKED_UP = (("sys", "modules"), ("importlib", "import_module"))


class Content(NamedTuple):
    """The parts of functions.

    Attributes
    ----------
    parts : mapping of str to str
        Name -> a number as it is, or the start of the SHA-256 of anything else. Names are those of the functions'
        module, as in "rate" and "walk"; those of other modules begin with theirs, as in "helpers:rate".
    unseen : tuple of str
        Names of values whose content cannot be told, such as open files.
    words : frozenset of str
        Texts that were met on the way.
    """

    parts: dict[str, str]
    unseen: tuple[str, ...]
    words: frozenset[str]


def content_of(*functions: Any) -> Content:
    """The content of functions. They do the same if their parts are equal, as far as nothing is `unseen`."""
    walk = _Walk(functions)
    for number, function in enumerate(functions):
        if function is not None:
            walk.note(f"function {number}", walk.text(function))
    return Content(walk.parts, tuple(sorted(walk.unseen)), frozenset(walk.words))


def changes(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The parts that differ: name -> (then, now), "none" where there was or is none."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return {name: (then.get(name, "none"), now.get(name, "none")) for name in names}


def edited(function: Any) -> str:
    """The file of a function's module if functions there are others than those that were imported, else nothing.

    A notebook that writes a module anew, and does not reload it, goes on with the old one.
    """
    module = sys.modules.get(_module_name(bare(function)))
    loader: Any = getattr(getattr(module, "__spec__", None), "loader", None)
    if module is None or module.__name__ in _MAIN or not hasattr(loader, "get_code"):
        return ""
    try:
        whole = loader.get_code(module.__name__)
    except (ImportError, SyntaxError, OSError, ValueError):  # a file that is gone, or half written
        return ""
    now: dict[str, list] = {}
    for code in whole.co_consts if whole is not None else ():
        if isinstance(code, CodeType):
            now.setdefault(code.co_name, []).append(_compiled(code, code.co_consts[0] if code.co_consts else None))
    for value in list(vars(module).values()):
        own = value if isinstance(value, FunctionType) else _compiled_or_cached(value)
        if own is None or own.__module__ != module.__name__ or "." in own.__qualname__:
            continue
        held = _compiled(own.__code__, own.__doc__)
        if held not in now.get(own.__code__.co_name, [held]):
            return str(_file_of(module))
    return ""


def module_of(function: Any) -> str:
    """The module of a function, of what a partial or a method calls, or of an object's class; a script by its file."""
    name = str(getattr(bare(function), "__module__", "") or "")
    if name not in _MAIN:
        return name
    main = sys.modules.get(name)
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec.name if spec else Path(file).stem if file else "__main__"


def bare(function: Any) -> Any:
    """The function that a partial, a bound method or a cache calls, or the class of an object."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    function = function if isinstance(function, FunctionType) else _compiled_or_cached(function) or function
    return function if hasattr(function, "__code__") else type(function)


def _compiled_or_cached(value: Any) -> FunctionType | None:
    """The function within what caches it, or what numba compiles."""
    kind = type(value)
    if kind in (functools._lru_cache_wrapper, functools.cached_property):
        inner = value.func if kind is functools.cached_property else value.__wrapped__
    else:
        inner = value.py_func if str(kind.__module__).startswith("numba.") and hasattr(value, "py_func") else None
    return inner if isinstance(inner, FunctionType) else None


@functools.cache
def _installed_places() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(str(Path(path).resolve()) for name in names if (path := sysconfig.get_paths().get(name)))


@functools.lru_cache(4096)
def _is_installed(file: str | None) -> bool:
    """Whether a source file belongs to Python or to an installed distribution; so do modules without one."""
    if file is None:
        return True
    if file.startswith("<"):  # of a notebook, an interactive session or `exec`
        return file.startswith("<frozen")
    place = Path(file).resolve()
    return bool({"site-packages", "dist-packages"} & set(place.parts)) or str(place).startswith(_installed_places())


def _file_of(module: ModuleType | None) -> str | None:
    """A file of a module; the folder of a package that has no file of its own."""
    file = getattr(module, "__file__", None)
    return file or next(iter(getattr(module, "__path__", ())), None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _Walk:
    """One walk through functions and what they read.

    Parameters
    ----------
    roots : functions
        Their modules' packages are walked, wherever they stand.
    """

    def __init__(self, roots: Collection[Any]) -> None:
        bares = [bare(root) for root in roots if root is not None]
        self._homes = {_module_name(root) for root in bares}
        self._tops = {home.partition(".")[0] for home in self._homes} - {"builtins"}
        self._texts: dict[int, str | None] = {}  # by identity; None of what is being walked
        self._alive: list[Any] = []  # so that no identity is given twice
        self._names: set[tuple[int, str]] = set()  # of values that were read, by the names that hold them
        self._whole: set[str] = set()  # modules all of whose names were read
        self.parts: dict[str, str] = {}
        self.unseen: set[str] = set()
        self.words: set[str] = set()

    def note(self, name: str, text: str) -> None:
        self.parts[name] = _hash(text)[:16]

    def text(self, value: Any, name: str = "", depth: int = 0) -> str:
        """A text that tells a value from others; its functions and classes become parts of their own."""
        kind = type(value)  # exactly: what is derived from a plain type may answer otherwise
        if kind in _PLAIN or isinstance(value, (np.generic, np.dtype)):
            if kind is str:
                self.words.add(value)
            return repr(value)
        if id(value) in self._texts:
            return self._texts[id(value)] or "<itself>"
        if depth > _DEEPEST:
            self.unseen.add(name or kind.__qualname__)
            return "<too deep>"
        self._texts[id(value)] = None
        self._alive.append(value)
        try:
            text = self._compound(value, name, partial(self.text, name=name, depth=depth + 1))
        except Exception:  # objects of other people can raise anything where they are looked at
            self.unseen.add(name or kind.__qualname__)
            text = f"<a {kind.__qualname__} whose content is not known>"
        # Short, since it may stand in many others.
        self._texts[id(value)] = text if len(text) <= 100 else f"{kind.__qualname__} {_hash(text)}"
        return str(self._texts[id(value)])

    def _compound(self, value: Any, name: str, inside: Callable[[Any], str]) -> str:
        kind = type(value)
        if kind is np.ndarray:
            return self._array(value, inside)
        if kind in _LISTS:
            return f"{kind.__name__}({', '.join(map(inside, value))})"
        if kind in _SETS:
            return f"{kind.__name__}({', '.join(sorted(map(inside, value)))})"
        if kind in _MAPPINGS:
            return f"mapping({', '.join(f'{inside(key)}: {inside(entry)}' for key, entry in value.items())})"
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value, inside)
        if kind is MethodType:
            return f"method {inside(value.__func__)} of {inside(value.__self__)}"
        if kind is FunctionType:
            return self._function(value, inside)
        if (wrapped := _compiled_or_cached(value)) is not None:
            options = getattr(value, "targetoptions", None)
            return f"{kind.__qualname__}({inside(wrapped)}, {inside(dict(options)) if options else ''})"
        if isinstance(value, (staticmethod, classmethod)):
            return f"{kind.__name__}({inside(value.__func__)})"
        if kind is property:
            return f"property({', '.join(map(inside, (value.fget, value.fset, value.fdel)))})"
        if kind in _LOCKS:
            return kind.__qualname__
        if isinstance(value, BuiltinFunctionType):
            owner = value.__self__
            own = owner is not None and not isinstance(owner, (ModuleType, type))
            return f"{value.__module__}:{value.__qualname__}" + (f" of {inside(owner)}" if own else "")
        if str(kind.__module__).startswith("xarray.") and kind.__name__ in ("Dataset", "DataArray", "Variable"):
            return f"{kind.__name__}({inside(value.to_dict(data='array'))})"  # without what it computed beside
        if isinstance(value, np.ufunc):
            places = (np, sys.modules.get("scipy.special"))
            if not any(getattr(place, value.__name__, None) is value for place in places):
                raise ValueError("made of a function that it does not show")
            return f"ufunc {value.__name__}"
        reduced = copyreg.dispatch_table.get(kind, lambda value: value.__reduce_ex__(4))(value)
        pieces = [reduced] if isinstance(reduced, str) else [_listed(piece) for piece in reduced]
        return f"{inside(kind)}({', '.join(map(inside, pieces))})"

    def _array(self, value: np.ndarray, inside: Callable[[Any], str]) -> str:
        kind = f"array {value.dtype.descr if value.dtype.names else value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            return f"{kind} {inside(value.tolist())}"
        # Once along axes that repeat one entry, as of `np.broadcast_to`.
        once = value[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in value.strides)]
        return f"{kind} {hashlib.sha256(np.ascontiguousarray(once).reshape(-1).view(np.uint8)).hexdigest()}"

    def _mine(self, module: str, file: str | None) -> bool:
        """Whether code is walked: of a root's package, or neither installed nor of yzflow."""
        top = module.partition(".")[0]
        return top in self._tops or top in _MAIN or (top not in OURS and not _is_installed(file))

    def _called(self, module: str, name: str) -> str:
        """A name for a part that no other part has."""
        label = name if module in self._homes else f"{module}:{name}"
        while label in self.parts:
            label += "'"
        return label

    def _function(self, function: FunctionType, inside: Callable[[Any], str]) -> str:
        module, code = _module_name(function), function.__code__
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        bound = {name: cell.cell_contents for name, cell in cells if cell != CellType()}
        held = {name: value for name, value in vars(function).items() if name != "version"}
        if not self._mine(module, code.co_filename):  # what it was made with may be a person's all the same
            return f"{module}:{function.__qualname__}({inside(bound)}, {inside(held)})"
        label = self._called(module, function.__qualname__)
        self.note(label, repr(_compiled(code, function.__doc__)))
        self.words |= {text for text in _constants(code) if isinstance(text, str)}
        for word, values in (("", bound), ("default ", _defaults(function)), ("attribute ", held)):
            for name, value in values.items():
                self._noted("", f"{word}{label}.{name}", value)
        for read in _reads(code):
            if isinstance(read, _Import):
                self._import(function, read, label)
            else:
                self._read(function, read, label)
        return label

    def _noted(self, module: str, path: str, value: Any) -> None:
        """Note a value: numbers as they are, anything else by its hash, since a text may be a secret."""
        text = self.text(value, path)
        if text in self.parts:  # a function or a class, with a part of its own
            return
        label = self._called(module, path) if module else path
        kind = type(value)
        if kind in _NUMBERS or isinstance(value, np.number):
            self.parts[label] = text if len(text) <= 40 else _hash(text)[:16]
        else:
            self.note(label, text)

    def _named(self, names: Mapping[str, Any], module: str, path: str, value: Any) -> None:
        """Note a value by the name that holds it, once."""
        if (id(names), path) not in self._names:
            self._names.add((id(names), path))
            self._alive.append(names)
            self._noted(module, path, value)

    def _read(self, function: FunctionType, chain: tuple[str, ...], label: str) -> None:
        """Note the value of a name that a function reads, and of an attribute of a module by that."""
        names, module = function.__globals__, _module_name(function)
        if chain[0] not in names:
            if not hasattr(builtins, chain[0]):
                self.note(self._called(module, f"{label} needs {chain[0]}"), "not defined")
            elif chain[0] in _BY_NAME:
                self.unseen.add(f"{chain[0]}() in {label}")
            return
        value, path = names[chain[0]], chain[0]
        for attribute in chain[1:]:
            if not isinstance(value, ModuleType) or not self._mine(value.__name__, _file_of(value)):
                break
            module, path, names = value.__name__, attribute, vars(value)
            value = getattr(value, attribute, None)
        if isinstance(value, ModuleType):
            if (value.__name__, *chain[1:2]) in _LOOKED_UP:
                self.unseen.add(f"{'.'.join(chain[:2])} in {label}")
            self._module(value)
        else:
            self._named(names, module, path, value)

    def _import(self, function: FunctionType, asked: _Import, label: str) -> None:
        """Note what a function imports when it runs: modules of its person, which are imported for that."""
        package = function.__globals__.get("__package__") or _module_name(function).rpartition(".")[0]
        name = importlib.util.resolve_name("." * asked.level + asked.module, package) if asked.level else asked.module
        try:
            top = importlib.util.find_spec(name.partition(".")[0])
            if top is None:
                self.note(f"{label} imports {name}", "not there")
                return
            places = [top.origin, *(top.submodule_search_locations or ())]
            if not self._mine(name, next((place for place in places if place), None)):
                return
            module = importlib.import_module(name)
            for part in asked.names:
                if not hasattr(module, part):
                    importlib.import_module(f"{name}.{part}")
        except (Exception, SystemExit):  # what cannot be imported fails when the function runs
            self.unseen.add(f"import {name} in {label}")
            return
        for part in asked.names:
            self._named(vars(module), name, part, getattr(module, part))
        if not asked.names:
            self._module(module)

    def _class(self, kind: type, inside: Callable[[Any], str]) -> str:
        module = str(kind.__module__)
        if not self._mine(module, _file_of(sys.modules.get(module))):
            return f"{module}:{kind.__qualname__}"
        label = self._called(module, kind.__qualname__)
        self.note(label, f"{inside(type(kind))} {', '.join(map(inside, kind.__bases__))}")
        for name, value in list(vars(kind).items()):
            code = isinstance(value, (FunctionType, staticmethod, classmethod, property, type))
            if code or name not in _OF_EVERY_CLASS:
                self._named(vars(kind), module, f"{kind.__qualname__}.{name}", value)
        return label

    def _module(self, module: ModuleType) -> str:
        """A module's name; of a person's own module, all of whose names may be read, these become parts."""
        if module.__name__ not in self._whole and self._mine(module.__name__, _file_of(module)):
            self._whole.add(module.__name__)
            for name, value in list(vars(module).items()):
                if not name.startswith("__") or name in ("__all__", "__getattr__"):
                    self._named(vars(module), module.__name__, name, value)
        return module.__name__


def _module_name(value: Any) -> str:
    """The module whose names a function reads; that of a class."""
    names = getattr(value, "__globals__", None)
    return str(names["__name__"] if isinstance(names, dict) and "__name__" in names else value.__module__)


def _defaults(function: FunctionType) -> dict[str, Any]:
    values, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(values) :]
    return dict(zip(names, values, strict=True)) | dict(function.__kwdefaults__ or {})


def _listed(piece: Any) -> Any:
    return list(piece) if isinstance(piece, Iterator) else piece


def _constants(code: CodeType) -> Iterator[Any]:
    for constant in code.co_consts:
        yield from _constants(constant) if isinstance(constant, CodeType) else (constant,)


def _compiled(code: CodeType, text: str | None = None) -> list[Any]:
    """The compiled form of a function, without its place and its docstring."""
    constants = [
        _compiled(constant)
        if isinstance(constant, CodeType)
        else "docstring"
        if text is not None and number == 0 and constant == text
        else _ordered(constant)
        for number, constant in enumerate(code.co_consts)
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount)
    return [code.co_code, constants, names, code.co_flags, getattr(code, "co_exceptiontable", b"")]


def _ordered(constant: Any) -> Any:
    """A constant whose text is the same in each process: sets of words have no order of their own."""
    if isinstance(constant, frozenset):
        return ["frozenset", *sorted(repr(_ordered(entry)) for entry in constant)]
    return [_ordered(entry) for entry in constant] if isinstance(constant, tuple) else repr(constant)


class _Import(NamedTuple):
    """An import in the body of a function."""

    module: str
    level: int
    names: tuple[str, ...]


def _reads(code: CodeType) -> list[tuple[str, ...] | _Import]:
    """The names of its module that code reads, each with the attributes that follow, and its own imports."""
    found: list[tuple[str, ...] | _Import] = []
    chain: tuple[str, ...] = ()
    before: list[Any] = [None, None]
    for step in dis.get_instructions(code):
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = (*chain, str(step.argval))
            continue
        if chain:
            found.append(chain)
            chain = ()
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            chain = (str(step.argval),)
        elif step.opname == "IMPORT_NAME":
            level, names = before
            found.append(_Import(str(step.argval), level if isinstance(level, int) else 0, tuple(names or ())))
        before = [before[1], step.argval]
    found += [chain] if chain else []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _reads(constant)
    return list(dict.fromkeys(found))
