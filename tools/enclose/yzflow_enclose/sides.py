"""One function: the right-hand side to enclose, and a comparison of the flow's floats with it along a run.

A flow has a `derivative` for integrators, which call it with floats, and may have a `field`, the same function in other
code. The derivative is enclosed if balls can compute it, and otherwise the field. Every right-hand side is then called
with floats at drawn times and points of the run, and beside it. This finds code that asks for the type of its
arguments, and two right-hand sides that differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_series, ctx

from dynamics.support import checks
from yzflow_enclose.elementary import Number, exact, floats, passing
from yzflow_enclose.fields import Series, VectorField
from yzflow_enclose.states import Shapes, by_name
from yzflow_enclose.stepping import Step, precision

Side = Callable[[Any, Mapping[str, np.ndarray]], Mapping[str, Any]]
# A time and the entries of all states.
Place = tuple[float, np.ndarray]

# Weight of time, if it is a variable of the field: so large that its radius counts for little, but not so large that
# the rounding of sums of times does.
_CLOCK = 2.0**20
_COMPUTED = "be computed with + - * / **, numpy's functions of arrays of objects and those of yzflow_enclose"
# The tolerance of floats against balls: relative to the velocity, and in radii of the same operations in balls of a
# float's bits. A radius is the effect of rounding on the terms, however they cancel. So many radii are some 1e-10 of
# the largest term: room for terms in another order and for other formulas.
_SAME, _RADII, _FLOAT_BITS = 1e-6, 2.0**20, 53
# Floats below this have lost bits, or are zero.
_SMALLEST = 2.0**-1000
# Times of a run at which floats and balls are compared; at least one in each step.
_PLACES = 32
# The distance from the run for further comparisons, relative to 1 + the modulus.
_BESIDE = 0.1


class _TimeAsked(Exception):
    pass


class _Untouched(Number):
    """A time that a field must not read."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    @property
    def series(self) -> arb_series:
        self.asked = True
        raise _TimeAsked

    def __float__(self) -> float:
        self.asked = True
        raise _TimeAsked


class FlowField(VectorField):
    """The right-hand side of a flow on the list of all entries of its states, and on the time if it reads that.

    Parameters
    ----------
    side : callable
        (t, states) -> velocities, by name, in arrays of `Number`.
    shapes : mapping of str to tuple
    clock : bool
        Whether the time is a variable, the last one.
    weights : (entries,) float
    """

    def __init__(self, side: Side, shapes: Shapes, clock: bool, weights: np.ndarray):
        self.side, self.shapes, self.clock = side, dict(shapes), clock
        self.count = sum(math.prod(shape) for shape in self.shapes.values())
        self.size = self.count + clock
        self._own = np.asarray(weights, float)
        self.weights = np.append(self._own, _CLOCK * self._own.max()) if clock else self._own

    @property
    def scale(self) -> float:
        return float(self._own.max())

    def weighing(self, weights: np.ndarray) -> FlowField:
        """The same field with other weights."""
        return FlowField(self.side, self.shapes, self.clock, weights)

    def derivative(self, state: Series) -> Series:
        numbers = [Number(series) for series in state]
        time = numbers[-1] if self.clock else _Untouched()
        with precision():
            length = ctx.cap
            with passing():
                given = velocities(self.side, time, by_name(numbers[: self.count], self.shapes), self.shapes)
        if isinstance(time, _Untouched) and time.asked:
            raise _TimeAsked
        out = [_series(value, length) for array in given.values() for value in array.flat]
        return [*out, arb_series([1], length)] if self.clock else out

    def at(self, place: Place, bits: int) -> np.ndarray:
        """Balls of the velocities at a point; ValueError if they are not finite."""
        time, point = place
        with precision(bits, cap=1):
            entries = [arb_series([arb(x)], 1) for x in [*point.tolist(), *([time] if self.clock else [])]]
            return np.array([Number(series) for series in self.derivative(entries)[: self.count]], dtype=object)


def _series(value: Any, length: int) -> arb_series:
    if isinstance(value, Number):
        series = value.series
    else:
        ball = exact(value)
        if ball is None:
            raise checks.reject("field", _COMPUTED, f"an entry of type {type(value).__name__}")
        series = arb_series([ball], length)
    if not all(term.is_finite() for term in series.coeffs()):
        raise ValueError("the field is not finite")
    return series


def velocities(side: Side, time: Any, states: Mapping[str, np.ndarray], shapes: Shapes) -> dict[str, np.ndarray]:
    """Velocities from a right-hand side, in the order and the shapes of the states."""
    given = side(time, states)
    if not isinstance(given, Mapping) or set(given) != set(shapes):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
        raise checks.reject("field", f"return a mapping with the names {', '.join(shapes)}", got)
    found = {}
    for name, shape in shapes.items():
        array = np.asarray(given[name], dtype=object)
        if array.shape != shape:
            raise checks.reject("field", f"return `{name}` in the shape {shape}", array.shape)
        found[name] = array
    return found


def sides_of(flow: object) -> dict[str, Side]:
    """The right-hand sides of a flow by name.

    Raises
    ------
    ValueError
        If it has none, or its `field` belongs to a base class whose `derivative` it overrides.
    """
    sides = {name: side for name in ("derivative", "field") if callable(side := getattr(flow, name, None))}
    if not sides:
        rule = "have `initial`, and a method `field(t, state)` or `derivative(t, state)`"
        raise checks.reject("flow", rule, checks.brief(flow))
    owners = [("the object itself", getattr(flow, "__dict__", {}))]
    owners += [(kind.__qualname__, vars(kind)) for kind in type(flow).__mro__]
    first = {name: [place for place, (_, names) in enumerate(owners) if name in names][:1] for name in sides}
    if len(sides) == 2 and first["derivative"] < first["field"]:
        newer, older = (owners[first[name][0]][0] for name in ("derivative", "field"))
        rule = f"have a `field` that belongs to the `derivative` of {newer}: write one beside it, or `field = None`"
        raise checks.reject("flow", rule, f"that of {older}")
    return sides


def chosen(sides: Mapping[str, Side], shapes: Shapes, start: Sequence[arb]) -> tuple[str, FlowField]:
    """The name and the field of the right-hand side to enclose: the first that balls can compute at the start."""
    *others, last = sides
    for name in others:
        try:
            return name, _field(sides[name], shapes, start)
        except Exception:  # whatever a compiled function raises for arrays of objects
            continue
    try:
        return last, _field(sides[last], shapes, start)
    except (TypeError, AttributeError, NotImplementedError) as error:
        raise checks.reject("flow", f"have a field that can {_COMPUTED}", f"{type(error).__name__}: {error}") from error
    except ValueError as error:
        if str(error).startswith("`"):
            raise
        raise checks.reject("flow", "have a finite field at its start", f"{error}") from error


def _field(side: Side, shapes: Shapes, start: Sequence[arb]) -> FlowField:
    """The field of a right-hand side without branches on numbers, so that one call tells if it reads t."""
    state = [arb_series([ball.mid()], 1) for ball in start]
    for clock in (False, True):
        field = FlowField(side, shapes, clock, np.ones(len(start)))
        try:
            with precision(64, cap=1):
                field.derivative([*state, *([arb_series([0], 1)] if clock else [])])
        except _TimeAsked:
            continue
        break
    return field


def difference(
    sides: Mapping[str, Side], name: str, field: FlowField, places: Iterable[Place], entries: Sequence[str]
) -> ValueError | None:
    """The error with a place at which floats of a right-hand side differ from balls; None if there is none.

    Places with balls or floats that are not finite are skipped.
    """
    for place in places:
        try:
            found = field.at(place, _FLOAT_BITS)
        except ValueError:
            continue
        middles, radii = floats(found), np.array([float(number.series[0].rad()) for number in found])
        for other, side in sides.items():
            given = _in_floats(other, side, place, field.shapes)
            if given is None:
                continue
            with np.errstate(all="ignore"):
                far = abs(given - middles) > _SAME * abs(middles) + _RADII * radii + _SMALLEST
                far &= np.isfinite(given)
            if far.any():
                entry = int(np.argmax(far))
                where = f"for {entries[entry]} at t = {place[0]:.6g} and {checks.brief(place[1].tolist())}"
                return _told(other, name, where, given[entry], middles[entry])
    return None


def _told(other: str, name: str, where: str, in_floats: float, in_balls: float) -> ValueError:
    if other == name:
        rule = f"have a `{name}` that is the same function of floats, {in_floats:.9g} {where}, and of balls"
        return checks.reject("flow", rule, f"{in_balls:.9g}")
    values = {other: f"{in_floats:.9g}", name: f"{in_balls:.9g}"}
    rule = f"have a `field` that equals its `derivative`, {values['derivative']} {where}"
    return checks.reject("flow", rule, values["field"])


def _in_floats(name: str, side: Side, place: Place, shapes: Shapes) -> np.ndarray | None:
    """Velocities of a right-hand side, called as an integrator does; None if it raises, or overflows.

    Only a field may be unable to take floats.
    """
    time, point = place
    states = {key: np.array(values, float) for key, values in by_name(point.tolist(), shapes).items()}
    for values in states.values():
        values.flags.writeable = False
    overflows: list[str] = []
    try:
        with np.errstate(all="ignore", over="call", call=lambda kind, flag: overflows.append(kind)):
            given = velocities(side, time, states, shapes)
            found = np.concatenate([np.ravel(array).astype(float) for array in given.values()])
        return None if overflows else found
    except Exception as error:
        if name == "field" or (isinstance(error, (ValueError, ArithmeticError)) and not str(error).startswith("`")):
            return None
        raise checks.reject("flow", "have a `derivative` of floats", f"{type(error).__name__}: {error}") from error


def along(steps: Sequence[Step], weights: np.ndarray, rng: np.random.Generator) -> Iterator[Place]:
    """Drawn times of a run, and points: on its polynomials, within the tube around them, and further away."""
    for step in steps:
        polynomials = step.polynomials()[: weights.size]
        for share in rng.random(-(-_PLACES // len(steps))).tolist():
            time = step.start + share * (step.end - step.start)
            offset = arb(time) - arb(step.start)
            point = np.array([float(polynomial(offset).mid()) for polynomial in polynomials])
            yield time, point
            away = rng.normal(size=point.size)
            yield time, point + away / np.linalg.norm(away) * rng.random() * step.radius / weights
            yield time, beside(point, rng)


def beside(point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A drawn point, further away than errors are."""
    return point + _BESIDE * (1 + abs(point)) * rng.normal(size=point.size)
