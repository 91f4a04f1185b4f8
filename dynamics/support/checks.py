"""Checks of user input, in one grammar of error messages.

Every check raises ``ValueError`` with the argument's name, the rule and the value, for example
"`eta_y` must be positive, but got -0.5", and returns the value in the type that the caller computes with.
"""

from __future__ import annotations

import difflib
import numbers
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import DTypeLike

_LARGEST = 2**63 - 1  # of int64
_MOST_LISTED = 10
# Bytes that a call may take, where `Limits` say so.
MEMORY: ContextVar[int | None] = ContextVar("memory", default=None)

_Function = TypeVar("_Function")
_Usual = TypeVar("_Usual")
# (name, value) -> the value in the type that the caller computes with.
Check: TypeAlias = Callable[[str, Any], Any]


def reject(name: str, rule: str, value: object) -> ValueError:
    """The error to raise for an argument that breaks a rule."""
    return ValueError(f"`{name}` must {rule}, but got {_written(str, value)}")


def lacks(name: str, what: str, value: object, others: Iterable[str]) -> ValueError:
    """The error for an entry of a table without ``what``; ``others`` are the entries that have it."""
    return reject(name, f"have {what}, as {' or '.join(map(repr, others))}", repr(value))


def is_number(value: object, kind: type | tuple[type, ...] = numbers.Real) -> TypeGuard[Any]:
    """True for a number of a kind; no truth value, and no span of time, which numpy has among its integers."""
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def real(name: str, value: object, *, rule: str = "be a finite number") -> float:
    """A finite real number, returned as ``float``."""
    if not is_number(value) and not isinstance(value, np.ndarray):
        raise reject(name, rule, brief(value))
    if isinstance(value, np.ndarray) and (value.ndim != 0 or value.dtype.kind not in "iuf" or np.ma.is_masked(value)):
        raise reject(name, rule, repr(value))
    try:
        number = float(value)
    except OverflowError:  # an integer above the largest float
        number = np.inf
    if not np.isfinite(number):
        raise reject(name, rule, number)
    return number


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = real(name, value, rule="be a positive finite number")
    if number <= 0:
        raise reject(name, "be positive", value)
    return number


def non_negative(name: str, value: object) -> float:
    """A finite number at or above zero."""
    number = real(name, value, rule="be a non-negative finite number")
    if number < 0:
        raise reject(name, "be non-negative", value)
    return number


def rate(name: str, value: object) -> float:
    """A learning rate: a positive finite number, or zero, which freezes the weights."""
    number = real(name, value, rule="be a positive finite number")
    if number < 0:
        raise reject(name, "be positive", value)
    return number or 0.0  # no negative zero


def nearest(wanted: str, spellings: Mapping[str, Iterable[str]]) -> str:
    """The three names most similar to ``wanted``, the most similar first, by any of their spellings."""
    target = plain(wanted)
    likeness = {
        name: max(difflib.SequenceMatcher(None, target, plain(spelling)).ratio() for spelling in texts)
        for name, texts in spellings.items()
    }
    quoted = [f'"{name}"' for name in sorted(likeness, key=lambda name: -likeness[name])[:3]]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def plain(name: str) -> str:
    """A name in small letters, without spaces."""
    return "".join(name.lower().split())


def below(name: str, value: object, bound: float) -> float:
    """A number at or above zero, and below ``bound``."""
    number = non_negative(name, value)
    if number >= bound:
        raise reject(name, f"be below {bound:g}", value)
    return number


def integer(name: str, value: object, *, minimum: int, maximum: int | None = _LARGEST) -> int:
    """An integer from ``minimum`` to ``maximum``; by default the largest int64, and None means no maximum."""
    if not is_number(value, numbers.Integral):
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        raise reject(name, "be an integer", brief(value) + (f": write {value:.0f}" if whole else ""))
    number = int(value)
    if number < minimum:
        raise reject(name, f"be at least {minimum}", value)
    if maximum is not None and number > maximum:
        raise reject(name, f"be at most {maximum}", value)
    return number


def one_of(name: str, value: object, options: Collection[str]) -> str:
    """One of the given words; the error lists the words, or the three nearest of many."""
    if not isinstance(value, str) or value not in options:
        rule = "be one of " + ", ".join(repr(option) for option in options)
        if len(options) > _MOST_LISTED:
            near = nearest(value if isinstance(value, str) else "", {option: (option,) for option in options})
            rule = f"be one of {len(options)} names, such as {near}"
        raise reject(name, rule, brief(value))
    return value


def instance(name: str, value: object, kinds: type | tuple[type, ...], *, rule: str | None = None) -> Any:
    """An object of one of the given classes; ``rule`` replaces their names in the error."""
    if not isinstance(value, kinds):
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        raise reject(name, rule or "be " + " or ".join(map(_one, kinds)), brief(value))
    return value


def or_usual(name: str, value: object, usual: _Usual) -> _Usual:
    """An object of the class of ``usual``, which None stands for."""
    return usual if value is None else instance(name, value, type(usual))


def each(rules: Mapping[str, Check], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a table of checks names, each as its check returns it."""
    return {name: rule(name, values[name]) for name, rule in rules.items()}


def optional(check: Check) -> Check:
    """A check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value)


def mapping(name: str, value: Any) -> dict:
    """A mapping as a new dict; None is an empty one."""
    return {} if value is None else dict(instance(name, value, Mapping))


def attributes(owner: object, kind: Any, *names: str, optional: bool = False) -> None:
    """Attributes of an object are of a class; ``[kind]`` stands for a tuple of any number of its objects."""
    for name in names:
        value = getattr(owner, name)
        if optional and value is None:
            continue
        if isinstance(kind, list):
            for entry in instance(name, value, tuple):
                instance(name, entry, kind[0], rule=f"hold {_plural(kind[0])}")
        else:
            instance(name, value, kind)


def function(name: str, value: _Function) -> _Function:
    """Something that can be called."""
    if not callable(value):
        raise reject(name, "be a function", brief(value))
    return value


def listed(name: str, value: object, rule: str) -> list:
    """The items of a sequence, a set or an iterator in a list; text is one item and no list of them."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise reject(name, rule, brief(value))
    try:
        return list(value)
    except TypeError:  # an array without axes
        raise reject(name, rule, brief(value)) from None


def plain_types(value: Any) -> Any:
    """Values of numpy in Python's types; times and spans of time stay numpy's, since they would become integers."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return value if kind is None or kind in "mM" else value.tolist()


def flag(name: str, value: object) -> bool:
    """A yes or no: a boolean, or 0 or 1."""
    if not isinstance(value, (bool, np.bool_)) and not (is_number(value, numbers.Integral) and value in (0, 1)):
        raise reject(name, "be True or False", brief(value))
    return bool(value)


def path(name: str, value: object) -> Path:
    """The path of a file, as text or as an object that stands for a path; refused if it is a folder by its name."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        if not isinstance(text, str) or "\0" in text or text.endswith(("/", os.sep)) or not Path(text).name:
            raise ValueError
        os.fsencode(text)
    except ValueError:
        raise reject(name, "be the path of a file", brief(text)) from None
    return Path(text)


def generator(name: str, value: Any) -> np.random.Generator:
    """A generator as it is, or a new one from a seed; None takes fresh randomness."""
    rule = "be a numpy.random.Generator or a seed"
    if isinstance(value, np.random.Generator):
        return value
    if array(name, value, rule=rule).dtype.kind in "bmM":  # which numpy takes for integers
        raise reject(name, rule, brief(value))
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise reject(name, rule, brief(value)) from None


def fits_in_memory(name: str, size: int, what: str) -> None:
    """Refuse to take ``size`` bytes if a call may not take so many; ``what`` says what they are for."""
    bound, whose = memory(), "this machine's memory" if MEMORY.get() is None else "the limit of memory"
    if size > bound:
        raise reject(name, f"leave at most {bound:,} bytes, {whose}, to {what}", f"{size:,} bytes")


def threads(name: str, value: object) -> int:
    """A number of threads, whose stacks fit in memory: 8 MiB each on Linux."""
    number = integer(name, value, minimum=1)
    fits_in_memory(name, 2**23 * number, f"the stacks of {number:,} threads")
    return number


def processes(name: str, value: object) -> int:
    """A number of Python processes that fit in memory: each takes 25 MB or more for itself."""
    number = integer(name, value, minimum=1)
    fits_in_memory(name, 25_000_000 * number, f"{number:,} processes")
    return number


def memory() -> int:
    """Bytes that a call may take: as `Limits` say, or the machine's, or fewer under a limit on the address space."""
    if (limited := MEMORY.get()) is not None:
        return limited
    try:
        import resource  # which Windows lacks

        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, AttributeError, ValueError, OSError):
        return 2**36
    return machine if limit == resource.RLIM_INFINITY else min(machine, limit)


def array(
    name: str, value: object, *, rule: str = "be an array of numbers", dtype: DTypeLike | None = None
) -> np.ndarray:
    """``value`` as an array; times are refused, and so is a mask that hides entries, since `numpy.asarray` drops it."""
    hidden = [value] if isinstance(value, np.ma.MaskedArray) else []
    if isinstance(value, (list, tuple)):
        hidden += [item for item in value if isinstance(item, np.ma.MaskedArray)]
    if any(map(np.ma.is_masked, hidden)):
        raise reject(name, "have no masked entries", "a masked array")
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
        raise reject(name, rule, brief(value))
    try:
        return np.asarray(value, dtype=dtype)
    except (TypeError, ValueError, RecursionError):
        ragged = "rows of different lengths, " if isinstance(value, (list, tuple)) else ""
        raise reject(name, rule, ragged + brief(value)) from None


def finite_array(name: str, value: object, *, ndim: int | None = None, dtype: DTypeLike = np.float64) -> np.ndarray:
    """A C-contiguous array of finite numbers with ``ndim`` axes (any number if None).

    The array is new, unless ``value`` is such an array, owns its memory and is read-only.
    """
    raw = array(name, value)
    if raw.dtype.kind not in "iufb":
        raise reject(name, "be an array of numbers", brief(value))
    fixed = not (isinstance(raw.base, np.ndarray) or raw.flags.writeable)
    with np.errstate(over="ignore"):
        result = np.array(raw, dtype=dtype, order="C", copy=None if fixed else True)
    if ndim is not None and result.ndim != ndim:
        raise reject(name, f"have {ndim} {'axis' if ndim == 1 else 'axes'}", f"shape {result.shape}")
    # Without a temporary array of the same size: minimum and maximum of nan are nan.
    if result.size and not (np.isfinite(result.min()) and np.isfinite(result.max())):
        bad = ~np.isfinite(result)
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise reject(name, "hold finite numbers", f"{raw[where]} at index {_index(where)}")
    return result


def of_shape(name: str, value: Any, shape: tuple[int | None, ...], *, sparse: bool = False) -> Any:
    """An array of numbers, as it is, whose last axes have these lengths; None allows any length.

    With ``sparse`` it may be a sparse array, which has these axes alone.
    """
    entries = value if sparse and hasattr(value, "tocoo") else array(name, value)
    last = entries.shape[max(0, entries.ndim - len(shape)) :]
    fits = len(last) == len(shape) and all(n in (None, length) for n, length in zip(shape, last, strict=True))
    if entries.dtype.kind not in "iufb" or not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise reject(name, f"be an array of numbers of shape ({wanted})", f"shape {entries.shape} of {entries.dtype}")
    return entries


def non_negative_array(name: str, value: object, *, ndim: int | None = None) -> np.ndarray:
    """An array of finite numbers at or above zero."""
    array = finite_array(name, value, ndim=ndim)
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise reject(name, "be non-negative", f"{array[where]} at index {_index(where)}")
    return array


def integer_array(name: str, value: object) -> np.ndarray:
    """A new int64 array with any number of axes, so that sums and products do not wrap as narrower integers do."""
    raw = array(name, value, rule="be an array of integers")
    if raw.size and raw.dtype.kind not in "iu":
        whole = raw.dtype.kind == "f" and (np.isfinite(raw) & (raw == np.round(raw))).all()
        cure = ": they are whole, so .astype('int64') makes integers of them" if whole else ""
        raise reject(name, "hold integers", f"dtype {raw.dtype}{cure}")
    if raw.size and raw.max() > _LARGEST:
        where = tuple(int(i) for i in np.argwhere(raw > _LARGEST)[0])
        raise reject(name, f"hold integers of at most {_LARGEST}", f"{raw[where]} at index {_index(where)}")
    return np.array(raw, dtype=np.int64)


def index_array(name: str, value: object, *, upper: int | None = None) -> np.ndarray:
    """A new one-dimensional int64 array of indices in ``[0, upper)``."""
    raw = array(name, value, rule="be an array of integers")
    if raw.ndim != 1:
        raise reject(name, "have 1 axis", f"shape {raw.shape}")
    result = integer_array(name, raw)
    bad = (result < 0) | (result >= (np.inf if upper is None else upper))
    if bad.any():
        where = int(np.argmax(bad))
        rule = "hold indices of at least 0" if upper is None else f"hold indices in [0, {upper})"
        raise reject(name, rule, f"{result[where]} at index {where}{left_out(result[where])}")
    return result


def left_out(label: int) -> str:
    """The cure for the label -100, by which libraries mark tokens that no loss counts; "" for any other label."""
    return ": -100 marks what Hugging Face leaves out: drop it, as tokens[tokens >= 0]" if label == -100 else ""


def sum_to_one(name: str, sums: np.ndarray | float, *, within: float = 1e-9) -> None:
    """Refuse a sum other than one, up to rounding; of several sums, one a row, the error names the first such row."""
    totals = np.ravel(sums)
    apart = ~(np.abs(totals - 1) <= within)
    if apart.any():
        row = int(np.argmax(apart))
        several = np.ndim(sums) > 0
        rule = "have rows that sum to one" if several else "sum to one"
        got = f"{totals[row]} in row {row}" if several else f"a sum of {totals[row]}"
        cure = f": divide {'each row by its' if several else 'by the'} sum, in float64" * bool(totals[row] > 0)
        raise reject(name, rule, got + cure)


# Words of messages for classes whose names say less.
_CALLED = {type(None): ("None", ""), str: ("text", "text"), Callable: ("a function", "functions")}


def _one(kind: type) -> str:
    name = kind.__name__
    return _CALLED[kind][0] if kind in _CALLED else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _plural(kind: type) -> str:
    return _CALLED[kind][1] if kind in _CALLED else f"{kind.__name__}s"


def _index(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def brief(value: object) -> str:
    """A value in a message: the start of its repr."""
    text = re.sub(r"\s*\n\s*", " ", _written(repr, value))
    return text if len(text) <= 60 else text[:57] + "..."


def _written(how: Callable[[object], str], value: object) -> str:
    try:
        return how(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "an integer of thousands of digits"


def read_only(array: np.ndarray) -> np.ndarray:
    """Make ``array`` read-only and return it.

    Kernels take their inputs read-only and their outputs writable: numba compiles a kernel anew for each
    combination, so one convention means one compilation.
    """
    array.flags.writeable = False
    return array


def read_only_views(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Read-only views of arrays, which their owner may still write to."""
    return [read_only(array.view()) for array in arrays]
