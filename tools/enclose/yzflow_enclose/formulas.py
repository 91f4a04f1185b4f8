"""Predicates written down: the computation of a predicate from a flow's variables, as a list of operations.

A predicate is a function of a moment. With a `Recorder` in place of the moment, its operations are recorded, each on
the results of earlier ones, in a closed vocabulary::

    ["variable", i]  ["number", c]  ["time"]
    ["+", a, b]  ["*", a, b]  ["/", a, b]  ["-", a]  ["exp", a]  ["log", a]  ["sqrt", a]  ["rsqrt", a]  ["rate", a]
    [">", a]  [">=", a]  ["and", a, b]  ["or", a, b]  ["not", a]

``rate`` is the derivative in time, ``>`` and ``>=`` compare with zero. The last operation is the claim.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from dynamics.support import checks
from yzflow_enclose.elementary import Elementary, exact
from yzflow_enclose.moments import Moment
from yzflow_enclose.quantities import Claim, every
from yzflow_enclose.reading import Reading
from yzflow_enclose.states import FlowMoment, Shapes

Operations = list[list[Any]]
_LEAVES = {"variable": 1, "number": 1, "time": 0}
_NUMBERS = {"+": 2, "*": 2, "/": 2, "-": 1, "exp": 1, "log": 1, "sqrt": 1, "rsqrt": 1, "rate": 1}
_TESTS = {">": 1, ">=": 1}
_OPPOSITE = {">": "<=", ">=": "<"}
_CLAIMS = {"and": 2, "or": 2, "not": 1}
_ARGUMENTS = _LEAVES | _NUMBERS | _TESTS | _CLAIMS
_MOST_OPERATIONS = 100_000
_LARGEST = 2**53  # of whole numbers; a larger one is written as a float
_INSPECTED = "compute with quantities alone, to be written down: it asks for the bounds of one"


class Unwritten(ValueError):
    """A predicate that is no list of operations."""


def check_says(says: Any, variables: float, *, name: str = "path", rates: int | None = None) -> None:
    """Refuse a list that is no claim in these operations about so many variables.

    It may take at most ``rates`` rates in turn: quantities of a population have first rates only, those of named states
    have rates of rates, too.
    """
    good = isinstance(says, list) and 0 < len(says) <= _MOST_OPERATIONS
    claims: list[bool] = []
    depths: list[int] = []
    for place, operation in enumerate(says if good else []):
        good = isinstance(operation, list) and operation != [] and isinstance(operation[0], str)
        good = good and len(operation) == 1 + _ARGUMENTS.get(operation[0], -2)
        if not good:
            break
        what, given = operation[0], operation[1:]
        if what == "variable":
            good = type(given[0]) is int and 0 <= given[0] < variables
        elif what == "number":
            good = isinstance(given[0], float) and math.isfinite(given[0])
            good = good or (type(given[0]) is int and abs(given[0]) < _LARGEST)
        else:
            good = all(type(i) is int and 0 <= i < place for i in given)
            good = good and all(claims[i] is (what in _CLAIMS) for i in given)
        if not good:
            break
        claims.append(what in _TESTS or what in _CLAIMS)
        depths.append(0 if what in _LEAVES else max(depths[i] for i in given) + (what == "rate"))
        if rates is not None and depths[-1] > rates:
            raise checks.reject(name, f"take rates in turn {rates} times at most", depths[-1])
    if not (good and claims[-1]):
        raise checks.reject(name, "hold predicates in the operations of a claim", checks.brief(says))


@dataclass(frozen=True)
class Predicate:
    """A predicate of a certificate, with its verdict.

    Attributes
    ----------
    says : list of operations
    until : float
        The verdict is for every t with 0 < t <= ``until``.
    times : (float, float) or None
        If it is false: at every time after the first up to the second, or at one time. None if it is true.
    margin : float
        The least slack at the ends of the steps if it is true; if it is false, the slack at the last time, a negative
        number.
    """

    says: Operations
    until: float
    times: tuple[float, float] | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        check_says(self.says, math.inf, name="says")
        checks.positive("until", self.until)
        if self.times is not None and checks.finite_array("times", self.times, ndim=1).size != 2:
            raise checks.reject("times", "be two times", checks.brief(self.times))
        if not checks.is_number(self.margin):
            raise checks.reject("margin", "be a number", checks.brief(self.margin))

    @property
    def verdict(self) -> bool:
        return self.times is None

    def plain(self) -> dict[str, Any]:
        """For a claim."""
        found = {"says": self.says, "verdict": self.verdict, "until": self.until, "margin": self.margin}
        return found if self.times is None else {**found, "times": list(self.times)}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Predicate:
        """The predicate from a text of `plain`."""
        if not isinstance(found, Mapping) or not {"says", "until", "margin"} <= set(found):
            raise checks.reject("found", "be what `plain` gives", checks.brief(found))
        times = found.get("times")
        return cls(found["says"], found["until"], times if times is None else tuple(times), found["margin"])


class _Sheet:
    """Operations so far; an operation that is written twice is stored once."""

    def __init__(self) -> None:
        self.operations: Operations = []
        self._places: dict[str, int] = {}

    def place(self, *operation: Any) -> int:
        key = repr(operation)
        if key not in self._places:
            if len(self.operations) == _MOST_OPERATIONS:
                raise Unwritten(f"`predicate` must take at most {_MOST_OPERATIONS} operations, to be written down")
            self._places[key] = len(self.operations)
            self.operations.append(list(operation))
        return self._places[key]


class Written(Elementary):
    """The place of a quantity among the operations."""

    __slots__ = ("place", "sheet")
    __hash__ = None

    def __init__(self, sheet: _Sheet, place: int):
        self.sheet, self.place = sheet, place

    def _made(self, name: str, *others: Any) -> Written:
        return Written(self.sheet, self.sheet.place(name, self.place, *(self._other(other).place for other in others)))

    def _other(self, other: Any) -> Written:
        if isinstance(other, Written) and other.sheet is self.sheet:
            return other
        number = exact(other)
        if number is None or number.rad() != 0 or arb(float(number)) != number:
            raise Unwritten(f"`predicate` must compute with floats and integers, to be written down, but has {other!r}")
        value = int(other) if isinstance(other, int) and abs(other) < _LARGEST else float(number)
        return Written(self.sheet, self.sheet.place("number", value))

    def _is(self, number: float) -> bool:
        return self.sheet.operations[self.place] == ["number", number]

    def __add__(self, other: Any) -> Written:
        other = self._other(other)
        return self if other._is(0) else other if self._is(0) else self._made("+", other)

    def __mul__(self, other: Any) -> Written:
        other = self._other(other)
        return self if other._is(1) else other if self._is(1) else self._made("*", other)

    def __truediv__(self, other: Any) -> Written:
        return self._made("/", other)

    __radd__, __rmul__ = __add__, __mul__

    def __rtruediv__(self, other: Any) -> Written:
        return self._other(other)._made("/", self)

    def __neg__(self) -> Written:
        name, *given = self.sheet.operations[self.place]
        return self._other(-given[0]) if name == "number" else self._made("-")

    def __sub__(self, other: Any) -> Written:
        return self + (-self._other(other))

    def __rsub__(self, other: Any) -> Written:
        return -self + other

    def exp(self) -> Written:
        return self._made("exp")

    def log(self) -> Written:
        return self._made("log")

    def sqrt(self) -> Written:
        return self._made("sqrt")

    def rsqrt(self) -> Written:
        return self._made("rsqrt")

    @property
    def rate(self) -> Written:
        return self._made("rate")

    def __gt__(self, other: Any) -> WrittenClaim:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> WrittenClaim:
        return self._compared(">=", other)

    def _compared(self, test: str, other: Any) -> WrittenClaim:
        return WrittenClaim(self.sheet, (self - other)._made(test).place)

    def __lt__(self, other: Any) -> WrittenClaim:
        return ~(self >= other)

    def __le__(self, other: Any) -> WrittenClaim:
        return ~(self > other)

    def _inspected(self, *_: Any) -> Any:
        raise Unwritten(f"`predicate` must {_INSPECTED}")

    ball = integral = _inspected
    lower = upper = property(_inspected)
    sin = cos = arctan = erf = _inspected


class WrittenClaim(Claim):
    """The place of a claim among the operations."""

    sheet: _Sheet
    place: int

    def __init__(self, sheet: _Sheet, place: int):
        vars(self).update(sheet=sheet, place=place)

    def _made(self, name: str, *others: Any) -> WrittenClaim:
        places = [other.place for other in others if isinstance(other, WrittenClaim) and other.sheet is self.sheet]
        if len(places) != len(others):
            raise Unwritten(f"`predicate` must {_INSPECTED}")
        return WrittenClaim(self.sheet, self.sheet.place(name, self.place, *places))

    @property
    def value(self) -> Any:
        raise Unwritten("`predicate` must combine claims with &, | and ~, to be written down: it asks for a value")

    def __and__(self, other: Claim) -> WrittenClaim:
        return self._made("and", other)

    def __or__(self, other: Claim) -> WrittenClaim:
        return self._made("or", other)

    def __invert__(self) -> WrittenClaim:
        return self._made("not")


class _Recording:
    """Base of the recorders of both kinds of moments."""

    sheet: _Sheet
    _variables: Any

    def _record(self, variables: int) -> None:
        self.sheet = _Sheet()
        # New ones: a cache by the times of a moment must not mix recorders.
        self.start = self.end = float("nan")
        self._variables = [Written(self.sheet, self.sheet.place("variable", i)) for i in range(variables)]

    def along(self, function: Callable[[Any], Any]) -> Any:
        return function(Written(self.sheet, self.sheet.place("time")))


class Recorder(_Recording, Moment):
    """A moment of a population that records the operations on its quantities."""

    def __init__(self, reading: Reading):
        self._record(reading.field.size)
        self._reading, self._field = reading, reading.field
        self._features = {}


class FlowRecorder(_Recording, FlowMoment):
    """A moment of named states that records the operations on its quantities."""

    def __init__(self, shapes: Shapes):
        self._shapes = shapes
        self._record(self._count)


def written(predicate: Callable[[Any], Any], recorder: Recorder | FlowRecorder) -> Operations:
    """The operations of a predicate, without those that its claim does not need.

    Raises
    ------
    ValueError
        If it looks at bounds, or computes by other means: it is then no list of operations.
    """
    try:
        claim = predicate(recorder)
        if isinstance(claim, np.ndarray):
            claim = every(claim)
    except (TypeError, AttributeError) as error:  # for example, a quantity was given to another library
        raise Unwritten(f"`predicate` must {_INSPECTED} ({error})") from error
    if not isinstance(claim, WrittenClaim):
        raise Unwritten("`predicate` must return a claim about quantities of the moment, to be written down")
    return _needed(recorder.sheet.operations, claim.place)


def _needed(operations: Operations, last: int) -> Operations:
    """Operations on which the operation ``last`` depends, numbered anew."""
    wanted = {last}
    for place in range(last, -1, -1):
        if place in wanted and operations[place][0] not in _LEAVES:
            wanted |= set(operations[place][1:])
    new = {old: place for place, old in enumerate(sorted(wanted))}
    return [
        [name, *(given if name in _LEAVES else (new[i] for i in given))]
        for name, *given in (operations[place] for place in sorted(wanted))
    ]


def replayed(says: Operations, moment: Any) -> Claim:
    """The claim of these operations at a moment."""
    return _results(says, moment)[-1]


def _results(says: Operations, moment: Moment | FlowMoment) -> list[Any]:
    found: list[Any] = []
    variables = moment._variables
    for name, *given in says:
        if name == "variable":
            found.append(variables[given[0]])
        elif name == "number":
            found.append(variables[0] * 0 + given[0])
        elif name == "time":
            found.append(moment.along(lambda t: t))
        else:
            found.append(_OPERATION[name](*(found[i] for i in given)))
    return found


_OPERATION: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "-": lambda a: -a,
    "exp": lambda a: a.exp(),
    "log": lambda a: a.log(),
    "sqrt": lambda a: a.sqrt(),
    "rsqrt": lambda a: a.rsqrt(),
    "rate": lambda a: a.rate,
    ">": lambda a: a > 0,
    ">=": lambda a: a >= 0,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
}


def slack(says: Operations, moment: Any) -> arb:
    """The amount by which a claim is true at a time, in the unit of the compared quantities; negative if it is false.

    The slack of ``a > 0`` is a; ``and`` takes the lesser of two, ``or`` the larger, and ``not`` the opposite.
    """
    found = _results(says, moment)
    sizes: list[Any] = []
    for place, (name, *given) in enumerate(says):
        if name in _TESTS:
            sizes.append(found[given[0]].ball())
        elif name in _CLAIMS:
            own = [sizes[i] for i in given]
            sizes.append(-own[0] if name == "not" else own[0].min(own[1]) if name == "and" else own[0].max(own[1]))
        else:
            sizes.append(found[place])
    return sizes[-1]


def words(says: Operations, names: Sequence[str]) -> str:
    """The claim as a formula; subexpressions used twice are named in front of it."""
    uses = Counter(i for name, *given in says if name not in _LEAVES for i in given)
    texts: list[str] = []
    named: list[str] = []
    for place, (name, *given) in enumerate(says):
        if name == "not" and says[given[0]][0] in _TESTS:  # of a test: the opposite one
            test, which = says[given[0]]
            text = f"({texts[which]} {_OPPOSITE[test]} 0)"
        elif name in _LEAVES:
            text = "t" if name == "time" else names[given[0]] if name == "variable" else str(given[0])
        else:
            text = _text(name, [texts[i] for i in given])
        if uses[place] > 1 and name not in _LEAVES:
            named.append(f"a{len(named) + 1} = {text}")
            text = f"a{len(named)}"
        texts.append(text)
    return "; ".join([*named, texts[-1]])


def _text(name: str, own: Sequence[str]) -> str:
    if len(own) == 2:
        return f"({own[0]} {name} {own[1]})"
    return f"({own[0]} {name} 0)" if name in _TESTS else f"{name}({own[0]})"
