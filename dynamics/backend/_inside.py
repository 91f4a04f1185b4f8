"""Kernels by numba's internals: parts without machine code of their own, addresses, and a cache that loads faster.

This module may break with each version of numba; docs/howto/numba.md says where, and how one would notice.
"""

from __future__ import annotations

import gc
import io
import itertools
import multiprocessing
import os
import sys
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from llvmlite import ir
from numba import njit, typeof, types
from numba.core import cgutils, environment
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime import rtsys
from numba.extending import intrinsic


def kernel(inner: bool, uses: Iterable[ModuleType], options: Mapping[str, Any]) -> Callable[[Callable], Any]:
    """`dynamics.backend.compiled.kernel`."""

    def decorate(function: Callable) -> Callable:
        common = {"error_model": "numpy", "no_cfunc_wrapper": True, **options}
        if inner:
            return _as_part(njit(no_cpython_wrapper=True, **common)(function))
        compiled = njit(**common)(function)
        compiled._compiler._compile_core = _without_collection(compiled._compiler._compile_core)
        try:
            compiled._cache = _Cache(function)
            compiled._cache.depend_on(uses)
        except RuntimeError as error:  # no locator available
            _tell_unkept(str(error))
        return compiled

    return decorate


def by_type(kernels: Mapping[type, Any]) -> Any:
    """`dynamics.backend.compiled.by_type`."""

    @intrinsic
    def chosen(typing, first, *rest):
        own = types.Dispatcher(kernels[first.instance_class])
        found = typing.resolve_function_type(own, (first, *rest), {})

        def codegen(context, builder, _, given):
            arguments = given[0], *cgutils.unpack_tuple(builder, given[1])
            return context.get_function(own, found)(builder, arguments)

        return found.return_type(first, types.StarArgTuple(rest)), codegen

    return chosen


def address(called: Any, arguments: tuple) -> int:
    """`dynamics.backend.compiled.address`."""
    form = called, _form(arguments)
    known = _addresses.get(form)
    if known is not None:
        return known
    signature = tuple(typeof(argument) for argument in arguments)
    called.compile(signature)
    overload = called.overloads[signature]
    if overload.signature.return_type != types.float64:
        raise TypeError(f"{called.__name__} returns {overload.signature.return_type}, and `call` a float64")
    where = int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))
    _addresses[form] = where
    return where


def _form(argument: Any) -> Any:
    """A key for the type of an object, in a twentieth of the time of `numba.typeof`: equal keys have equal types."""
    if isinstance(argument, tuple):
        return type(argument), *map(_form, argument)
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    return type(argument)


# Addresses of compiled kernels; as keys, the kernels stay alive, and with them their machine code.
_addresses: dict[tuple, int] = {}


@intrinsic
def call(_, where, arguments):
    """`dynamics.backend.compiled.call`."""
    kinds = arguments.types

    def codegen(context, builder, signature, given):
        convention = context.call_conv
        kind = convention.get_function_type(types.float64, kinds)
        function = builder.inttoptr(given[0], ir.PointerType(kind))
        parts = cgutils.unpack_tuple(builder, given[1])
        status, result = convention.call_function(builder, function, types.float64, kinds, parts)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return types.float64(where, arguments), codegen


def _without_collection(compile_it: Callable) -> Callable:
    """The same function, with Python's garbage collector off meanwhile: it takes a tenth of the time of compiling."""

    def compiled(*arguments: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return compile_it(*arguments)
        finally:
            if collecting:
                gc.enable()

    return compiled


class _Part(JITCodeLibrary):
    """A library without machine code: other libraries include it, optimise it and compile it."""

    def _optimize_final_module(self) -> None:
        """Leave the module as it is."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _as_part(compiled: Any) -> Any:
    """Make a dispatcher whose functions have no address: only kernels can call them."""
    compiler, compile_it = compiled._compiler, compiled._compiler._compile_core

    def without_instructions(flags: Any) -> Any:
        flags.no_compile = True
        return flags

    def compile_part(args: Any, return_type: Any) -> Any:
        found = compile_it(args, return_type)
        found.library.__class__ = _Part
        found = found._replace(entry_point=object())  # kernels find the function by it
        compiled.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        return found

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{compiled.__name__} is an inner kernel: only kernels can call it")

    compiler._customize_flags, compiler._compile_core = without_instructions, compile_part
    # Numba calls these two methods for calls from Python.
    compiled._insert, compiled._compile_for_args = (lambda *_: None), refuse
    return compiled


class _Files(IndexDataCacheFile):
    """Files of a cache, each with its checksum at the end: a damaged file is set aside, and never unpickled.

    With numba's own files, damage ends every later run with an error of pickle, or of whatever the bytes now mean. And
    two processes that compile at once may give two kernels the same file: the index then leads to the machine code of
    the other one. Here the index has a mark of each kernel, which its file repeats.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, f"{filename_base}.marked", source_stamp)

    def save(self, key: Any, data: Any) -> None:
        kept = self._load_index()
        taken = {name for name, _ in kept.values()}
        free = (name for name in map(self._data_name, itertools.count(1)) if name not in taken)
        name, mark = kept[key][0] if key in kept else next(free), uuid.uuid4().hex
        self._save_index({**kept, key: (name, mark)})
        self._save_data(name, (mark, data))

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        whole = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            yield whole
            file.write(whole.getvalue() + _seal(whole.getvalue()))

    def _load_index(self) -> dict:
        return super()._load_index() if _sound(self._index_path) else {}

    def _load_data(self, place: tuple[str, str]) -> Any:
        name, mark = place
        if not _sound(self._data_path(name)):
            return None
        found, data = super()._load_data(name)
        return data if found == mark else None


def _seal(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_DIGITS, "little")


def _sound(path: str) -> bool:
    """True if a file is undamaged or missing; a damaged file is set aside."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return True
    if len(content) > _DIGITS and _seal(content[:-_DIGITS]) == content[-_DIGITS:]:
        return True
    with suppress(FileNotFoundError):  # another process was faster
        os.replace(path, f"{path}.damaged")
    _tell("damage", f"a compiled kernel on disk is damaged: {path} is set aside, and what it held is compiled anew")
    return False


_DIGITS = 4  # bytes


class _Cache(FunctionCache):
    """A cache that survives a full disk, and that loads kernels without numba's compiler.

    Before it looks on disk, numba imports and registers its implementations of Python and NumPy. To rebuild the
    constants of a kernel, it also imports the modules of all functions that the kernel calls. Both take longer than the
    rest of a first small flow. A compiled kernel needs only the runtime and its constants; if a kernel has to be
    compiled after all, numba loads the rest then.
    """

    _cache_file: Any

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        stamp = self._cache_file._source_stamp
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def depend_on(self, modules: Iterable[ModuleType]) -> None:
        """Treat kept kernels as stale also if the files of these modules changed."""
        index = self._cache_file
        files = [module.__file__ or "" for module in modules]
        stats = [os.stat(file) for file in files if os.path.exists(file)]  # not within a zip archive
        index._source_stamp = (index._source_stamp, *((stat.st_mtime, stat.st_size) for stat in stats))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            with _constants_alone():
                rtsys.initialize(target_context)
                return self._load_overload(sig, target_context)
        except OSError as error:
            _tell_unkept(str(error))
        except (ImportError, AttributeError) as error:
            # The index names the classes of arguments. In a cache of another version, a class may be elsewhere or
            # missing.
            if not (isinstance(error, ImportError) or "Can't get attribute" in str(error)):
                raise
            self.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_unkept(str(error))


@contextmanager
def _constants_alone() -> Iterator[None]:
    """Load kernels within this context without importing the modules of the functions that they call.

    Only Python code that numba did not compile reads the globals of these modules. Numba's lock for compiling is held
    meanwhile.
    """
    whole = environment._rebuild_env

    def rebuild(module: str, constants: list, name: str) -> Any:
        found = environment.lookup_environment(name)
        if found is None:
            known = sys.modules.get(module)
            found = environment.Environment({"__name__": module} if known is None else known.__dict__)
            found.consts[:] = constants
            found.env_name = name
            environment.Environment._memo[name] = found
        return found

    environment._rebuild_env = rebuild
    try:
        yield
    finally:
        environment._rebuild_env = whole


def _tell_unkept(reason: str) -> None:
    _tell(
        "unkept",
        f"numba cannot keep compiled kernels on disk ({reason}): every process compiles its own, which takes up to "
        "a minute; set NUMBA_CACHE_DIR to a folder that can be written to",
    )


def _tell(what: str, message: str) -> None:
    """Warn once, and not in every worker."""
    if what not in _told and multiprocessing.parent_process() is None:
        warnings.warn(message, stacklevel=2)
    _told.add(what)


_told: set[str] = set()
