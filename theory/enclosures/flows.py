"""Flows of named states, as a field in ball arithmetic: what `enclose` reads, and what a file says of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from flint import arb, arb_series, ctx

from dynamics.support import checks, display
from dynamics.support.names import is_name
from dynamics.support.origins import Code, origin_of
from theory.enclosures.elementary import Number, exact, floats
from theory.enclosures.fields import Series, VectorField
from theory.enclosures.formulas import FlowRecorder
from theory.enclosures.norms import chosen_weights
from theory.enclosures.populations import band
from theory.enclosures.quantities import midpoint_and_radius
from theory.enclosures.reading import MOST_VARIABLES
from theory.enclosures.starts import Start, plain
from theory.enclosures.states import FlowMoment, FlowTube, Shapes, by_name
from theory.enclosures.stepping import GUARD, Step, precision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = Callable[[Any, Mapping[str, np.ndarray]], Mapping[str, Any]]
# Time is a variable of the field where that asks for it: so heavy that its radius counts for little, but not so heavy
# that the rounding of sums of times does.
_CLOCK = 2.0**20
# How far a flow's `derivative` may be from its `field`, relative to both.
_SAME = 1e-6
_COMPUTED = "be computed with + - * / **, numpy's functions of arrays of objects and those of theory.enclosures"


class _TimeAsked(Exception):
    pass


class _Untouched(Number):
    """A time that a field must not ask for."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def series(self) -> arb_series:
        raise _TimeAsked

    def __float__(self) -> float:
        raise _TimeAsked


class FlowField(VectorField):
    """The right-hand side of a flow, on the list of all entries of its states; and the time, where it asks for that.

    Parameters
    ----------
    side : callable
        (t, states) -> velocities, by name, in arrays of `Number`.
    shapes : mapping of str to tuple
    clock : bool
        Whether the time is a variable, the last.
    weights : (entries,) float
    """

    def __init__(self, side: _SIDE, shapes: Shapes, clock: bool, weights: np.ndarray):
        self._side, self.shapes, self.clock = side, dict(shapes), clock
        self.count = sum(math.prod(shape) for shape in self.shapes.values())
        self.size = self.count + clock
        self._own = np.asarray(weights, float)
        self.weights = np.append(self._own, _CLOCK * self._own.max()) if clock else self._own

    @property
    def scale(self) -> float:
        return float(self._own.max())

    def weighing(self, weights: np.ndarray) -> FlowField:
        """The same field with other weights."""
        return FlowField(self._side, self.shapes, self.clock, weights)

    def derivative(self, state: Series) -> Series:
        length = ctx.cap
        numbers = [Number(series) for series in state]
        time = numbers[-1] if self.clock else _Untouched()
        found = velocities(self._side, time, by_name(numbers[: self.count], self.shapes), self.shapes)
        ctx.cap = length
        out = [_series(value, length) for array in found.values() for value in array.flat]
        return [*out, arb_series([1], length)] if self.clock else out


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


def velocities(side: _SIDE, time: Any, states: Mapping[str, np.ndarray], shapes: Shapes) -> dict[str, np.ndarray]:
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


def _initial(name: str, given: object, known: Mapping[str, xr.DataArray] | None) -> dict[str, xr.DataArray]:
    """Named states as arrays of balls, with their dimensions and coordinates."""
    states = checks.instance(name, given, Mapping, rule="be a mapping of names to arrays")
    found: dict[str, xr.DataArray] = {} if known is None else dict(known)
    for key, value in states.items():
        if not isinstance(key, str) or not key or not is_name(key):
            raise checks.reject(name, "have names of states for keys", checks.brief(key))
        if known is not None and key not in known:
            raise checks.reject(name, f"have names among {', '.join(known)}", repr(key))
        array = np.asarray(value.values if isinstance(value, xr.DataArray) else value)
        if array.dtype != object:
            array = checks.finite_array(f"{name}[{key!r}]", array).astype(object)
        balls = np.frompyfunc(exact, 1, 1)(array)
        if any(ball is None or not ball.is_finite() for ball in np.ravel(np.asarray(balls, dtype=object))):
            raise checks.reject(f"{name}[{key!r}]", "hold finite numbers or balls", checks.brief(value))
        balls = np.asarray(balls, dtype=object).reshape(array.shape)
        if known is not None:
            if array.shape != known[key].shape:
                raise checks.reject(f"{name}[{key!r}]", f"have the shape {known[key].shape}", array.shape)
            found[key] = known[key].copy(data=balls)
        elif isinstance(value, xr.DataArray):
            found[key] = value.copy(data=balls)
        else:
            found[key] = xr.DataArray(balls, dims=[f"{key}_{axis}" for axis in range(array.ndim)])
    if not found or not sum(array.size for array in found.values()):
        raise checks.reject(name, "hold at least one number", "none")
    return found


def _side_of(flow: object) -> _SIDE:
    for name in ("field", "derivative"):
        if callable(side := getattr(flow, name, None)):
            return side
    rule = "have `initial`, and a method `field(t, state)` or `derivative(t, state)`"
    raise checks.reject("flow", rule, checks.brief(flow))


class FlowReading:
    """A flow of named states, its start and its field.

    Parameters
    ----------
    flow : object
        With ``initial``, and ``field`` or ``derivative``.
    start : mapping, optional
        Other values of some states at t = 0.
    weights : (entries,) float, optional
        Those of a file. Default: chosen for the times up to ``t_end``.
    t_end : float
    """

    kind = "flow"
    code: Code | None = None

    def __init__(self, flow: Any, start: Mapping[str, Any] | None, *, t_end: float, weights: np.ndarray | None = None):
        side = _side_of(flow)
        if getattr(flow, "initial", None) is None:
            raise checks.reject("flow", "have `initial`, a mapping of names to arrays", checks.brief(flow))
        self.flow, self.own_start = flow, start is not None
        states = _initial("initial", flow.initial, None)
        if start is not None:
            states = _initial("start", start, states)
        self.states = states
        self.shapes = {name: array.shape for name, array in states.items()}
        for name in self.shapes:
            if f"{name}_radius" in self.shapes or name in ("time", "t"):
                raise checks.reject("initial", "have names that `at` can use", f"{name!r}")
        self.given = Start.of([ball for array in states.values() for ball in array.values.flat])
        count = len(self.given.radius)
        if count > MOST_VARIABLES:
            raise checks.reject("initial", f"hold at most {MOST_VARIABLES} numbers", count)
        field = FlowField(side, self.shapes, self._asks_for_time(side), np.ones(count))
        self._check(field, side)
        if weights is None:
            middles = [float(ball.mid()) for ball in self.start_of(field)]
            weights = chosen_weights(field, middles, t_end, count)
        self.field = field.weighing(weights)

    def start_of(self, field: FlowField) -> list[arb]:
        return self.given.balls() + [arb(0)] * field.clock

    @cached_property
    def start(self) -> list[arb]:
        """Balls of all variables at t = 0."""
        return self.start_of(self.field)

    @property
    def variables(self) -> int:
        return self.field.size

    @property
    def name(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        kind = type(self.flow)
        return f"{kind.__module__}:{kind.__qualname__}"

    def _asks_for_time(self, side: _SIDE) -> bool:
        """Whether a field depends on t. It has no branches that depend on numbers, so that one evaluation tells."""
        try:
            with precision(64):
                ctx.cap = 1
                FlowField(side, self.shapes, False, np.ones(self.given.radius.size)).derivative(
                    [arb_series([ball.mid()], 1) for ball in self.given.balls()]
                )
        except _TimeAsked:
            return True
        except (TypeError, AttributeError, NotImplementedError) as error:
            rule = f"have a field that can {_COMPUTED}"
            raise checks.reject("flow", rule, f"{type(error).__name__}: {error}") from error
        except ValueError as error:
            if str(error).startswith("`"):
                raise
            raise checks.reject("flow", "have a finite field at its start", f"{error}") from error
        return False

    def _check(self, field: FlowField, side: _SIDE) -> None:
        """Refuse a field that is not finite at the start, or is not the flow's derivative there and beside it."""
        derivative = getattr(self.flow, "derivative", None)
        begin = np.array([float(ball.mid()) for ball in self.given.balls()])
        beside = begin + 0.1 * (1 + abs(begin)) * np.random.default_rng(0).normal(size=begin.size)
        for number, point in enumerate((begin, beside)):
            try:
                with precision(64):
                    ctx.cap = 1
                    entries = [arb_series([arb(x)], 1) for x in point.tolist()] + [arb_series([0], 1)] * field.clock
                    slopes = field.derivative(entries)[: field.count]
            except (TypeError, AttributeError) as error:
                rule = f"have a field that can {_COMPUTED}"
                raise checks.reject("flow", rule, f"{type(error).__name__}: {error}") from error
            except ValueError as error:
                if number:
                    return
                raise checks.reject("flow", "have a finite field at its start", f"{error}") from error
            if not callable(derivative):
                continue
            found = floats(np.array([Number(series) for series in slopes], dtype=object))
            arrays = {name: np.array(x, float) for name, x in by_name(point.tolist(), self.shapes).items()}
            with np.errstate(all="ignore"):
                given = velocities(derivative, 0.0, arrays, self.shapes)
            expected = np.concatenate([np.ravel(array).astype(float) for array in given.values()])
            far = abs(expected - found) > _SAME * (1 + abs(expected) + abs(found))
            if far.any():
                where = int(np.argmax(far))
                rule = f"have a `field` that equals its `derivative`, {expected[where]:g} for entry {where}"
                raise checks.reject("flow", rule, f"{found[where]:g}")

    def tube(self, steps: Sequence[Step]) -> FlowTube:
        return FlowTube(self.field, steps, self.start)

    def moment(self, tube: FlowTube, start: float, end: float) -> FlowMoment:
        return FlowMoment(tube, self.shapes, start, end)

    def dataset(self, moments: Sequence[FlowMoment], times: np.ndarray) -> xr.Dataset:
        """States at times with their radii."""
        data = {}
        for name, array in self.states.items():
            pairs = np.array(
                [[midpoint_and_radius(ball.ball()) for ball in moment.state[name].flat] for moment in moments]
            ).reshape(times.size, array.size, 2)
            for key, values in ((name, pairs[..., 0]), (f"{name}_radius", pairs[..., 1])):
                data[key] = xr.DataArray(
                    values.reshape(times.size, *array.shape), dims=("time", *array.dims), coords=dict(array.coords)
                )
        return xr.Dataset(data, {"time": times}, {"kind": "enclosure", "flow": self.title})

    def state_name(self, wanted: str | None) -> str:
        """A name of a state; by default the first."""
        return next(iter(self.shapes)) if wanted is None else checks.one_of("name", wanted, tuple(self.shapes))

    def drawing(
        self, moments: Sequence[FlowMoment], times: np.ndarray, name: str, labels: Any
    ) -> Callable[[Axes], None]:
        """A function that draws lines of the entries of a state, with their radii as bands."""
        found = self.dataset(moments, times)
        middle = found[name].values.reshape(times.size, -1)
        radius = found[f"{name}_radius"].values.reshape(times.size, -1)
        kept = np.sort(np.argsort(-np.ptp(middle, axis=0), kind="stable")[: display.LINES])
        words = self._words(name) if labels is None else checks.listed("labels", labels, "be a sequence of texts")
        if len(words) != middle.shape[1]:
            raise checks.reject("labels", f"be {middle.shape[1]} texts, one for each entry", len(words))

        def draw(ax: Axes) -> None:
            for i in kept.tolist():
                band(ax, times, middle[:, i], radius[:, i], display.plain(str(words[i])))
            rest = f", {kept.size} of {middle.shape[1]} entries" if kept.size < middle.shape[1] else ""
            ax.set(xlabel="time", ylabel=display.plain(name))
            ax.set_title(f"{display.plain(name)}{rest}: radius at most {radius.max():.1e}")
            ax.legend()

        return draw

    def pace(self, steps: Sequence[Step], bits: int) -> str:
        """Words on where an enclosure ended: which entry moves fastest there, and how fast."""
        with precision(bits + GUARD):
            state = [p(steps[-1].length).mid() for p in steps[-1].polynomials()] if steps else self.start
            ctx.cap = 1
            try:
                slopes = [
                    float(series[0].mid()) for series in self.field.derivative([arb_series([x], 1) for x in state])
                ]
            except ValueError:
                return f"; at t = {steps[-1].end if steps else 0.0:.12g} the field is not finite"
        place = int(np.argmax(np.abs(slopes[: self.field.count])))
        words = self.variable_names()
        now, value = steps[-1].end if steps else 0.0, float(state[place].mid())
        return (
            f"; at t = {now:.12g} the fastest entry, {words[place]} = {value:.6g}, moves by {slopes[place]:.3g} a unit "
            "of time"
        )

    def _words(self, name: str, short: bool = True) -> list[str]:
        array = self.states[name]
        if short and array.ndim == 1 and array.dims[0] in array.coords:
            return [str(value) for value in array[array.dims[0]].values.tolist()]
        return [f"{name}{list(index) if index else ''}" for index in np.ndindex(array.shape)]

    def facts(self) -> dict[str, Any]:
        """Plain settings, for a notebook."""
        config = getattr(self.flow, "config", None)
        return dict(config()) if callable(config) else {}

    def claim(self) -> dict[str, Any]:
        """The flow in a file's claim.

        Raises
        ------
        ValueError
            If the flow cannot be made again from what it says of itself.
        """
        if not callable(getattr(self.flow, "config", None)):
            rule = "have a method `config()`, the plain arguments of its class, to be saved"
            raise checks.reject("flow", rule, checks.brief(self.flow))
        origin = origin_of(self.flow)
        if origin is None:
            rule = "be of a class with a name in a module, to be saved"
            raise checks.reject("flow", rule, type(self.flow).__qualname__)
        return {
            "kind": self.kind,
            "flow": {"target": origin.target, "config": plain(origin.config), "code": asdict(origin.found())},
            "states": {name: list(shape) for name, shape in self.shapes.items()},
            "clock": self.field.clock,
            "own_start": self.own_start,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        weights = self.field.weights[: self.field.count]
        return {"weights": weights, "initial": self.given.limbs, "initial_radius": self.given.radius}

    def recorder(self) -> FlowRecorder:
        return FlowRecorder(self.shapes)

    def variable_names(self) -> list[str]:
        return [word for name in self.shapes for word in self._words(name, short=False)]
