"""Named states of an enclosed flow at a time, or over a span of time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_poly, arb_series

from dynamics.support import checks
from yzflow_enclose.fields import VectorField
from yzflow_enclose.quantities import ORDER, Quantity, Span, checked_span
from yzflow_enclose.stepping import Step, moved, precision, taylor

Shapes = Mapping[str, tuple[int, ...]]
# Spans whose series are kept, since other claims about the same steps ask for them again.
_KEPT = 5000


class Balls(np.ndarray):
    """An array of quantities: numpy's functions take it, and comparisons give an array of claims, entry by entry."""

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if array.ndim == 0 else array.view(Balls)

    @property
    def rate(self) -> Any:
        """The derivative in time of each entry."""
        return np.frompyfunc(operator.attrgetter("rate"), 1, 1)(self)

    def _claims(self, comparison: np.ufunc, other: Any) -> Any:
        return comparison(np.asarray(self), np.asarray(other, dtype=object), dtype=object)

    def __gt__(self, other: Any) -> Any:
        return self._claims(np.greater, other)

    def __ge__(self, other: Any) -> Any:
        return self._claims(np.greater_equal, other)

    def __lt__(self, other: Any) -> Any:
        return self._claims(np.less, other)

    def __le__(self, other: Any) -> Any:
        return self._claims(np.less_equal, other)

    def __eq__(self, other: object) -> Any:
        raise TypeError("balls cannot prove that two quantities are equal: bound their difference")

    __hash__ = None  # type: ignore[assignment]


def packed(values: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Objects in an array of a shape."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found.reshape(shape)


def by_name(values: Sequence[Any], shapes: Shapes) -> dict[str, np.ndarray]:
    """The arrays of named states, from the list of all their entries."""
    found, place = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        found[name] = packed(values[place : place + size], shape)
        place += size
    return found


class NamedBalls(Mapping[str, Balls]):
    """Named states as balls: ``states["v"][0]`` is a `Quantity`."""

    def __init__(self, values: Sequence[Quantity], shapes: Shapes):
        self._arrays = {name: array.view(Balls) for name, array in by_name(values, shapes).items()}

    def __getitem__(self, name: str) -> Balls:
        if name not in self._arrays:
            raise checks.reject("name", f"be one of {', '.join(map(repr, self._arrays))}", repr(name))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class FlowMoment:
    """Argument of a predicate: the named states of a flow on the span of time (start, end], or at one time.

    Attributes
    ----------
    start, end : float
        The span; equal for a single time.
    state : mapping of str to Balls
        Each named state, an array of quantities in its shape.
    velocity : mapping of str to Balls
        Their derivatives in time; each is a quantity with a ``rate``.
    t : Quantity
        The time.
    """

    def __init__(self, tube: FlowTube, shapes: Shapes, start: float, end: float):
        self.start, self.end = checked_span(start, end)
        self._shapes = checks.instance("shapes", shapes, Mapping)
        self._span, self._variables = checks.instance("tube", tube, FlowTube).variables(self.start, self.end)

    @property
    def state(self) -> NamedBalls:
        return NamedBalls(self._variables[: self._count], self._shapes)

    @property
    def velocity(self) -> NamedBalls:
        return NamedBalls([value.rate for value in self._variables[: self._count]], self._shapes)

    @property
    def _count(self) -> int:
        return sum(math.prod(shape) for shape in self._shapes.values())

    @property
    def t(self) -> Quantity:
        return self.along(lambda t: t)

    def along(self, function: Callable[[arb_series], arb_series]) -> Quantity:
        """A known function of time: from the power series of t, whose first coefficient may be wide, to its own."""
        return self._span.along(function)


class FlowTube:
    """The steps, as the flow's own Taylor series at any time: those of every solution within the radius of a step."""

    def __init__(self, field: VectorField, steps: Sequence[Step], start: Sequence[arb]):
        self._field, self._steps, self._first = field, steps, start
        self._starts = np.array([step.start for step in steps])
        self._open: dict[int, tuple[list[arb_poly], list[arb]]] = {}
        self._found: dict[tuple[float, float], tuple[Span, list[Quantity]]] = {}

    def _opened(self, place: int) -> tuple[list[arb_poly], list[arb]]:
        """Polynomials of a step, and bounds of the flow's distance to them."""
        if place not in self._open:
            step = self._steps[place]
            margins = [arb(0, (arb(step.radius) / arb(weight)).upper()) for weight in self._field.weights.tolist()]
            self._open[place] = step.polynomials(), margins
        return self._open[place]

    @precision(cap=ORDER + 1)
    def variables(self, start: float, end: float) -> tuple[Span, list[Quantity]]:
        """Every variable on a span within a step."""
        if (start, end) not in self._found:
            if len(self._found) == _KEPT:
                self._found.clear()
            self._found[start, end] = self._variables(start, end)
        return self._found[start, end]

    def _variables(self, start: float, end: float) -> tuple[Span, list[Quantity]]:
        if start == 0.0:
            # Expanded at the start itself, so that exact zeros stay zero.
            centre, half = arb(0), arb(end) / 2
            distance = half + arb(0, half.upper()) if end else arb(0)
            middle = list(self._first)
        else:
            half = (arb(end) - arb(start)) / 2
            centre = arb(start) + half
            distance = arb(0, half.upper()) if end > start else arb(0)
            middle = self._box(start, end, centre, arb(0))
        whole = self._box(start, end, centre, distance) if end > start else middle
        span = Span(start, end, centre, distance, jets=True)
        thin, wide = self._series(middle, ORDER), self._series(whole, ORDER + 1)
        found = [Quantity(first, second, span, arb(0), arb(0)) for first, second in zip(thin, wide, strict=True)]
        for quantity in found:
            quantity.ball()  # kept at this precision, not at that of the first caller
        return span, found

    def _box(self, start: float, end: float, centre: arb, distance: arb) -> list[arb]:
        """Balls of every variable within ``distance`` of a time."""
        place = max(0, int(np.searchsorted(self._starts, start, side="right")) - 1)
        if end > self._steps[place].end:
            raise checks.reject("end", f"lie in one step with start, {start!r}", repr(end))
        polynomials, margins = self._opened(place)
        offset = arb(self._steps[place].start)
        around = distance - distance.mid()
        middle = centre + distance.mid() - offset
        return [moved(p, middle)(around) + margin for p, margin in zip(polynomials, margins, strict=True)]

    def _series(self, box: Sequence[arb], length: int) -> list[arb_series]:
        """The first Taylor coefficients of every solution through a point of a box; unknown if the field is."""
        try:
            rows = taylor(self._field, box, length - 1, exact=False)
        except ValueError:
            rows = [[value] + [arb.nan()] * (length - 1) for value in box]
        return [arb_series(row, length) for row in rows]
