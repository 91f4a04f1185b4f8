"""The content of a function: its code, and all that it reads, so that what was kept of another function is not reused.

A function is walked from its compiled form, which is what runs: its source file may have been edited since. The walk
follows defaults, closures, the module's names that it reads, helpers, classes and modules of the same person, and stops
at what is installed, at Python's own library and at yzflow, whose versions results record beside.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dynamics.support.origins import OURS

# Names of a script when it runs, and when a worker process imports it.
_MAIN = ("__main__", "__mp_main__")
_SHOWN = 60  # characters of a value that are shown as they are
# Objects that keep threads apart hold no numbers.
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Event, threading.Condition)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype, range, slice)


def module_of(function: Any) -> str:
    """The module of a function, of what a partial or a method calls, or of an object's class; a script by its file."""
    name = str(getattr(bare(function), "__module__", "") or "")
    if name not in _MAIN:
        return name
    main = sys.modules.get(name)
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec.name if spec else Path(file).stem if file else "__main__"


def bare(function: Any) -> Any:
    """The function that a partial or a bound method calls, or the class of an object."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    function = function if hasattr(function, "__code__") else _wrapped(function) or function
    return function if hasattr(function, "__code__") else type(function)


def content_of(*functions: Any) -> dict[str, str]:
    """The parts that functions are made of: name -> value, or the start of its SHA-256 where that is long.

    Names are those of the functions' module, as in "rate" and "walk"; those of other modules begin with theirs, as in
    "helpers:rate". Two functions do the same if these are equal, as far as `unseen` is empty.
    """
    return _walked(functions).parts


def unseen(*functions: Any) -> list[str]:
    """Names of values that functions read and whose content cannot be told, such as open files and locks."""
    return sorted(_walked(functions).unseen)


def words_of(*functions: Any) -> set[str]:
    """The texts that stand in the code of functions and of their helpers."""
    return _walked(functions).words


def changes(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The parts that differ: name -> (then, now), "none" where there was or is none."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return {name: (then.get(name, "none"), now.get(name, "none")) for name in names}


def _walked(functions: Collection[Any]) -> _Walk:
    walk = _Walk(functions)
    for number, function in enumerate(functions):
        if function is not None:
            walk.note(f"function {number}", walk.text(function))
    return walk


@cache
def _installed_places() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(str(Path(path).resolve()) for name in names if (path := sysconfig.get_paths().get(name)))


def _is_installed(file: str | None) -> bool:
    """Whether a source file belongs to Python or to an installed distribution; so do modules without one."""
    if file is None:
        return True
    if file.startswith("<"):  # of a notebook, an interactive session or `exec`
        return file.startswith("<frozen")
    place = Path(file).resolve()
    return bool({"site-packages", "dist-packages"} & set(place.parts)) or str(place).startswith(_installed_places())


class _Walk:
    """One walk through functions and what they read.

    Parameters
    ----------
    roots : functions
        Their modules' packages are walked, wherever they stand.
    """

    def __init__(self, roots: Collection[Any]) -> None:
        bares = [bare(root) for root in roots if root is not None]
        self._homes = {str(getattr(root, "__module__", "")) for root in bares}
        self._tops = {home.partition(".")[0] for home in self._homes}
        self._done: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no `id` is given twice
        self._names: set[str] = set()  # of the values that were read
        self.parts: dict[str, str] = {}
        self.unseen: set[str] = set()
        self.words: set[str] = set()

    def note(self, name: str, text: str) -> None:
        self.parts[name] = text if len(text) <= _SHOWN else hashlib.sha256(text.encode()).hexdigest()[:16]

    def text(self, value: Any, name: str = "", above: tuple[int, ...] = ()) -> str:
        """A text that tells a value from others; its functions and classes become parts of their own."""
        if isinstance(value, _PLAIN):
            return repr(value)
        if id(value) in above:
            return f"<itself, {len(above) - above.index(id(value))} up>"
        above = (*above, id(value))
        inside: Callable[[Any], str] = partial(self.text, name=name, above=above)
        if isinstance(value, np.ndarray):
            kind = f"array {value.dtype.str} {value.shape}"
            if value.dtype.hasobject:
                return f"{kind} {inside(value.tolist())}"
            return f"{kind} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
        if type(value).__module__.startswith("xarray."):  # which keeps what it computed beside the numbers
            return f"{type(value).__qualname__}({inside(value.to_dict(data='array'))})"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__qualname__}({', '.join(map(inside, value))})"
        if isinstance(value, (set, frozenset)):
            return f"{type(value).__qualname__}({', '.join(sorted(map(inside, value)))})"
        if isinstance(value, Mapping):
            pairs = (f"{inside(key)}: {inside(entry)}" for key, entry in value.items())
            return f"{type(value).__qualname__}({', '.join(pairs)})"
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, MethodType):
            return f"method {inside(value.__func__)} of {inside(value.__self__)}"
        if isinstance(value, partial):
            return f"partial({inside(value.func)}, {inside(value.args)}, {inside(value.keywords)})"
        if isinstance(value, FunctionType):
            return self._function(value)
        if (wrapped := _wrapped(value)) is not None:
            return f"{type(value).__qualname__}({inside(wrapped)})"
        if isinstance(value, _LOCKS):
            return type(value).__qualname__
        if isinstance(value, BuiltinFunctionType):
            return f"{value.__module__}:{value.__qualname__}"
        return self._object(value, name, inside)

    def _object(self, value: Any, name: str, inside: Callable[[Any], str]) -> str:
        try:
            reduced = value.__reduce_ex__(4)
            pieces = [reduced] if isinstance(reduced, str) else [_listed(piece) for piece in reduced]
        except Exception:  # what cannot be copied can raise anything
            self.unseen.add(name or type(value).__qualname__)
            return f"a {type(value).__qualname__} whose content is not known"
        return f"{inside(type(value))}({', '.join(map(inside, pieces))})"

    def _mine(self, module: str, file: str | None) -> bool:
        """Whether code is walked: of a root's package, or neither installed nor of yzflow."""
        top = module.partition(".")[0]
        return top in self._tops or (top not in OURS and not _is_installed(file))

    def _called(self, module: str, name: str) -> str:
        return name if module in self._homes else f"{module}:{name}"

    def _function(self, function: FunctionType) -> str:
        module, code = str(function.__module__), function.__code__
        label = self._called(module, function.__qualname__)
        if not self._mine(module, code.co_filename):
            return label
        if id(function) in self._done:
            return self._done[id(function)]
        while label in self.parts:  # two of one name, such as lambdas
            label += "'"
        self._done[id(function)] = label
        self._kept.append(function)
        self.parts[label] = ""  # its place, before those of what it reads
        self.note(label, f"code {hashlib.sha256(repr(_compiled(code, function.__doc__)).encode()).hexdigest()}")
        self.words |= {text for text in _constants(code) if isinstance(text, str)}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        bound = {name: cell.cell_contents for name, cell in cells if cell != CellType()}
        for kind, values in (("", bound), ("default ", _defaults(function))):
            for name, value in values.items():
                text = self.text(value, f"{label}.{name}")
                self.note(f"{kind}{label}.{name}", text)
        for chain in _reads(code):
            self._read(function, chain)
        return label

    def _read(self, function: FunctionType, chain: tuple[str, ...]) -> None:
        """Note the value of a name that a function reads, and of an attribute of a module by that."""
        names, module = function.__globals__, str(function.__module__)
        if chain[0].startswith("import "):
            if isinstance(value := sys.modules.get(chain[0].removeprefix("import ")), ModuleType):
                self._module(value, whole=True)
            return
        if chain[0] not in names:
            if not hasattr(builtins, chain[0]):
                self.note(self._called(module, chain[0]), "not defined")
            return
        value, path = names[chain[0]], chain[0]
        for attribute in chain[1:]:
            if not isinstance(value, ModuleType) or not self._mine(value.__name__, getattr(value, "__file__", None)):
                break
            module, path = value.__name__, attribute
            value = getattr(value, attribute, None)
        label = self._called(module, path)
        if isinstance(value, ModuleType):
            self._module(value, whole=self._mine(value.__name__, getattr(value, "__file__", None)))
        else:
            self._named(label, value)

    def _named(self, label: str, value: Any) -> None:
        """Note a value by its name, once."""
        if label in self._names:
            return
        self._names.add(label)
        text = self.text(value, label)
        if text != label:  # else it is a part already, or not walked
            self.note(f"{label}, as it is read" if label in self.parts else label, text)

    def _class(self, kind: type) -> str:
        module = str(kind.__module__)
        label = self._called(module, kind.__qualname__)
        if not self._mine(module, getattr(sys.modules.get(module), "__file__", None) or ("<own>" if module else None)):
            return label
        if id(kind) not in self._done:
            self._done[id(kind)] = label
            self._kept.append(kind)
            for base in kind.__bases__:
                self.text(base)
            for name, value in list(vars(kind).items()):
                for inner in (functions := _functions_in(value)):
                    self.text(inner, f"{label}.{name}")
                if not functions and not name.startswith("__"):
                    self._named(f"{label}.{name}", value)
        return label

    def _module(self, module: ModuleType, whole: bool = False) -> str:
        """A module's name; where all of it may be read, its names become parts."""
        if whole and id(module) not in self._done and self._mine(module.__name__, getattr(module, "__file__", None)):
            self._done[id(module)] = module.__name__
            for name, value in list(vars(module).items()):
                if not name.startswith("__") and not isinstance(value, ModuleType):
                    self._named(self._called(module.__name__, name), value)
        return module.__name__


def _wrapped(value: Any) -> FunctionType | None:
    """The function that an object wraps: that of a cache, of `cached_property`, or one that numba compiles."""
    for attribute in ("py_func", "__wrapped__", "func"):
        try:
            inner = getattr(value, attribute, None)
        except Exception:  # a property of other people's can raise anything
            continue
        if isinstance(inner, FunctionType):
            return inner
    return None


def _functions_in(value: Any) -> list[Any]:
    """The functions of an attribute of a class: of a method, a property, a nested class."""
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [inner for inner in (value.fget, value.fset, value.fdel) if inner is not None]
    if not isinstance(value, FunctionType) and (inner := _wrapped(value)) is not None:
        return [inner]
    return [value] if isinstance(value, (FunctionType, type)) else []


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
    """The compiled form of a function, without where it stands and what its docstring says."""
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


def _reads(code: CodeType) -> list[tuple[str, ...]]:
    """The names of its module that code reads, each with the attributes that follow, and what it imports itself."""
    chains: list[tuple[str, ...]] = []
    chain: tuple[str, ...] = ()
    for step in dis.get_instructions(code):
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = (*chain, str(step.argval))
            continue
        if chain:
            chains.append(chain)
            chain = ()
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            chain = (str(step.argval),)
        elif step.opname == "IMPORT_NAME":
            chains.append((f"import {step.argval}",))
    chains += [chain] if chain else []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            chains += _reads(constant)
    return list(dict.fromkeys(chains))
