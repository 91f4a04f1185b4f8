"""Flows of named states, as a field in ball arithmetic for `enclose`, and as a part of a file's claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from flint import arb, arb_series

from dynamics.support import checks, display
from dynamics.support.names import is_name
from dynamics.support.origins import Code, origin_of
from yzflow_enclose.elementary import exact
from yzflow_enclose.formulas import FlowRecorder
from yzflow_enclose.norms import chosen_weights
from yzflow_enclose.populations import band
from yzflow_enclose.quantities import midpoint_and_radius
from yzflow_enclose.reading import MOST_VARIABLES
from yzflow_enclose.sides import FlowField, Place, along, beside, chosen, difference, sides_of
from yzflow_enclose.starts import Start, plain
from yzflow_enclose.states import FlowMoment, FlowTube
from yzflow_enclose.stepping import GUARD, Step, precision

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@precision(53)
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


class FlowReading:
    """A flow of named states, its start and its field.

    Parameters
    ----------
    flow : object
        With ``initial``, and ``field`` or ``derivative``.
    start : mapping, optional
        Other values of some states at t = 0.
    weights : (entries,) float, optional
        The weights of a file. Default: chosen for the times up to ``t_end``.
    t_end : float
    """

    kind = "flow"
    code: Code | None = None

    def __init__(self, flow: Any, start: Mapping[str, Any] | None, *, t_end: float, weights: np.ndarray | None = None):
        self._sides = sides_of(flow)
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
        self._enclosed, field = chosen(self._sides, self.shapes, self.given.balls())
        self._check_start(field, t_end)
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

    def _check_start(self, field: FlowField, t_end: float) -> None:
        """Refuse a flow whose floats differ from the enclosed field, at the start or at drawn places beside it."""
        begin = np.array([float(ball.mid()) for ball in self.given.balls()])
        rng = np.random.default_rng(0)
        places = [(0.0, begin), (0.0, beside(begin, rng)), (t_end * rng.random(), beside(begin, rng))]
        if (error := self._differs(field, places)) is not None:
            raise error

    def _differs(self, field: FlowField, places: Iterable[Place]) -> ValueError | None:
        with precision(64):
            return difference(self._sides, self._enclosed, field, places, self.variable_names())

    def differs(self, steps: Sequence[Step]) -> ValueError | None:
        """The error with a place, along steps or beside them, at which floats differ from the enclosed field."""
        weights = self.field.weights[: self.field.count]
        return self._differs(self.field, along(steps, weights, np.random.default_rng(0)))

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
        """Words on the end of an enclosure: the entry that moves fastest there, and its speed."""
        with precision(bits + GUARD):
            state = [p(steps[-1].length).mid() for p in steps[-1].polynomials()] if steps else self.start
            try:
                with precision(cap=1):
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
            If the flow cannot be made again from its configuration.
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
