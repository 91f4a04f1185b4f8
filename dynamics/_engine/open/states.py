"""Named states with dimensions and coordinates, and the single vector for integrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader
import numpy as np

from dynamics.support import checks, names
from dynamics.support.checks import read_only

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

# Reserved names in the dataset of a run.
RESERVED = ("time", "call", "call_byte", "event_time", "event_number")
# Largest difference of derivatives within an orbit, relative to the largest derivative of the state.
_ALIKE = 1e-9


class RaisedError(Exception):
    """Carries an error of a flow's own code, so that integrators do not catch it."""


class NamedStates:
    """The named states of a flow as one vector, with one number for entries that move together.

    Parameters
    ----------
    initial : mapping
        Name -> DataArray or array.
    orbits : mapping, optional
        Name -> labels in the shape of the state; entries with equal labels move together.

    Attributes
    ----------
    initial : (n,) array
        The vector at the start.
    dims, coords, shapes : dict
        Dimensions, coordinates and shape of each state, by name.
    """

    def __init__(self, initial: object, orbits: object = None) -> None:
        rule = "be a mapping of names to arrays"
        given = checks.instance("initial", initial, Mapping, rule=rule)
        if not given:
            raise checks.reject("initial", "hold at least one state", "none")
        self.dims: dict[str, tuple[str, ...]] = {}
        self.coords: dict[str, dict[str, Any]] = {}
        self.attributes: dict[str, dict[str, Any]] = {}
        values: dict[str, np.ndarray] = {}
        for name, value in given.items():
            check_name("initial", name)
            self.dims[name], self.coords[name], self.attributes[name], values[name] = labelled("initial", name, value)
        self.shapes = {name: value.shape for name, value in values.items()}
        self._check_coords(values)
        kept = self._orbits(values, {} if orbits is None else orbits)
        self.sizes = {name: kept[name][0].size if name in kept else value.size for name, value in values.items()}
        bounds = np.cumsum([0, *self.sizes.values()]).tolist()
        self.slices = {name: slice(*ends) for name, *ends in zip(values, bounds[:-1], bounds[1:], strict=True)}
        self._first = {name: first for name, (first, _) in kept.items()}
        self._inverse = {name: inverse for name, (_, inverse) in kept.items()}
        self.initial = self.join(values)
        if self.initial.size == 0:
            raise checks.reject("initial", "hold at least one number", "empty arrays")

    @property
    def reduction(self) -> str:
        """The reduction in words, "from what to what", or "none"."""
        if not self._first:
            return "none"
        whole = sum(int(np.prod(shape)) for shape in self.shapes.values())
        return f"{whole} variables to {self.initial.size} orbits"

    def _check_coords(self, values: Mapping[str, np.ndarray]) -> None:
        """Refuse states whose common dimensions differ in size or labels."""
        seen: dict[str, tuple[str, int]] = {}
        for name, value in values.items():
            for dim, size in zip(self.dims[name], value.shape, strict=True):
                if dim in values:
                    raise checks.reject("initial", "have dimensions that are no states", repr(dim))
                other, known = seen.setdefault(dim, (name, size))
                if known != size:
                    rule = f"have one size of the dimension {dim!r}"
                    raise checks.reject("initial", rule, f"{known} in {other!r} and {size} in {name!r}")
        try:
            self.dataset({name: value[None] for name, value in values.items()}, np.zeros(1))
        except ValueError as error:  # from xarray, if labels differ
            raise checks.reject("initial", "have the same labels on the same dimensions", error) from error

    def _orbits(self, values: Mapping[str, np.ndarray], given: object) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Name -> (an entry of each orbit, the orbit of each entry), for states with orbits."""
        orbits = checks.instance("orbits", given, Mapping, rule="return a mapping of names to labels")
        found = {}
        for name, labels in orbits.items():
            checks.one_of("orbits", name, tuple(values))
            labels, value = checks.integer_array("orbits", labels), values[name]
            if labels.shape != value.shape:
                raise checks.reject("orbits", f"have the shape {value.shape} for {name!r}", f"shape {labels.shape}")
            _, first, inverse = np.unique(labels.ravel(), return_index=True, return_inverse=True)
            if first.size == value.size:
                continue
            apart = np.flatnonzero(value.ravel() != value.ravel()[first][inverse])
            if apart.size:
                rule = f"label entries of {name!r} alike only where they are equal at the start"
                raise checks.reject("orbits", rule, self.shown(name, int(apart[0])))
            found[name] = first, inverse
        return found

    def shown(self, name: str, entry: int) -> str:
        """An entry of a state in words: the state's name with the entry's labels or index."""
        if not self.shapes[name]:
            return name
        places = np.unravel_index(entry, self.shapes[name])
        words = []
        for dim, index in zip(self.dims[name], places, strict=True):
            known = self.coords[name].get(dim)
            label = int(index) if known is None else known.values[index]
            words.append(f"{dim}={label}")
        return f"{name}[{', '.join(words)}]"

    def component(self, number: int) -> str:
        """A component of the vector in words."""
        name = next(name for name, block in self.slices.items() if block.start <= number < block.stop)
        entry = number - self.slices[name].start
        return self.shown(name, int(self._first[name][entry]) if name in self._first else entry)

    def split(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Read-only arrays of the states: views of the vector, except for states with orbits."""
        parts = {}
        for name, block in self.slices.items():
            values = vector[block]
            if name in self._inverse:
                values = values[self._inverse[name]]
            parts[name] = read_only(values.reshape(self.shapes[name]))
        return parts

    def join(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """A new vector from arrays of the states."""
        vector = np.empty(sum(self.sizes.values()))
        for name, block in self.slices.items():
            values = np.asarray(parts[name], dtype=np.float64).ravel()
            vector[block] = values[self._first[name]] if name in self._first else values
        return vector

    def bound(self, derivative: Callable, state: np.ndarray, out: np.ndarray) -> Callable[[float], None]:
        """A function of t that writes the derivative at the current values of ``state`` into ``out``.

        Views of both are made once; states with orbits are expanded in each call.
        """
        fixed = {name: read_only(state[block].reshape(self.shapes[name]))
                 for name, block in self.slices.items() if name not in self._inverse}  # fmt: skip
        places = [(name, out[block], self.shapes[name], self._first.get(name)) for name, block in self.slices.items()]

        def evaluate(t: float) -> None:
            given = dict(fixed)
            for name, inverse in self._inverse.items():
                given[name] = read_only(state[self.slices[name]][inverse].reshape(self.shapes[name]))
            try:
                rates = derivative(t, given)
            except Exception as error:
                raise RaisedError from error
            for name, target, shape, first in places:
                rate = rates[name]
                if np.shape(rate) != shape:
                    raise RaisedError from self._refused(name, rate)
                flat = np.reshape(rate, -1)
                target[:] = flat if first is None else flat[first]

        return evaluate

    @staticmethod
    def run(evaluate: Callable[[float], None], t: float) -> None:
        """Call a function from `bound`, and raise errors of the flow's own code unchanged."""
        try:
            evaluate(t)
        except RaisedError as error:
            raise (error.__cause__ or error) from None

    def _refused(self, name: str, part: object) -> ValueError:
        return checks.reject(
            "derivative", f"return an array of shape {self.shapes[name]} for {name!r}", f"shape {np.shape(part)}"
        )

    def check_derivative(self, found: object, t: float) -> None:
        """Check that a derivative's result has the states' names and shapes, and is equal within each orbit.

        Raises
        ------
        ValueError
            If it does not.
        """
        rule = f"return a mapping with {', '.join(map(repr, self.shapes))}"
        parts = checks.instance("derivative", found, Mapping, rule=rule)
        if set(parts) != set(self.shapes):
            raise checks.reject("derivative", rule, checks.brief(list(parts)))
        for name, rate in parts.items():
            array = checks.array("derivative", rate, rule=f"return an array of numbers for {name!r}")
            if array.dtype.kind not in "iufb":
                raise checks.reject("derivative", f"return real numbers for {name!r}", checks.brief(rate))
            if array.shape != self.shapes[name]:
                raise self._refused(name, array)
            if name not in self._first:
                continue
            flat = array.ravel().astype(np.float64)
            apart = np.abs(flat - flat[self._first[name]][self._inverse[name]])
            if not (apart <= _ALIKE * np.abs(flat).max(initial=0.0)).all():
                worst = int(np.argmax(apart))
                other = int(self._first[name][self._inverse[name][worst]])
                raise checks.reject(
                    "orbits",
                    "label entries alike only where their derivatives are equal",
                    f"{flat[worst]:g} for {self.shown(name, worst)} and {flat[other]:g} for {self.shown(name, other)} "
                    f"at t = {t:g}",
                )

    def dataset(self, parts: Mapping[str, np.ndarray], times: np.ndarray) -> xr.Dataset:
        """A dataset of arrays whose first axis is time."""
        arrays = {
            name: xr.DataArray(
                values,
                dims=("time", *self.dims[name]),
                coords={"time": times, **self.coords[name]},
                attrs=self.attributes[name],
                name=name,
            )
            for name, values in parts.items()
        }
        return xr.merge(arrays.values(), compat="equals", join="exact", combine_attrs="override")

    def over_time(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Arrays of the states with time as the first axis, from vectors (times, n)."""
        parts = {}
        for name, block in self.slices.items():
            values = vectors[:, block]
            if name in self._inverse:
                values = values[:, self._inverse[name]]
            parts[name] = np.ascontiguousarray(values).reshape(len(vectors), *self.shapes[name])
        return parts


def check_name(argument: str, name: object) -> str:
    """A checked name of a state, observable or event: text that files can hold, and not reserved."""
    good = isinstance(name, str) and name.strip() and names.is_name(name) and "/" not in name
    if not good or name in RESERVED or str(name).startswith("_"):
        raise checks.reject(argument, "have short names, none of them 'time' or with a slash", checks.brief(name))
    return str(name)


class Labelled(NamedTuple):
    """An array with the names of its axes, its labels and its attributes."""

    dims: tuple[str, ...]
    coords: dict[str, Any]
    attributes: dict[str, Any]
    values: np.ndarray


def labelled(argument: str, name: str, value: object, *, finite: bool = True) -> Labelled:
    """A DataArray, or an array with generated names of axes, as float64."""
    plain = value.values if isinstance(value, xr.DataArray) else value
    if finite:
        array = checks.finite_array(argument, plain)
    else:
        array = checks.array(argument, plain)
        if array.dtype.kind not in "iufb":
            raise checks.reject(argument, f"hold real numbers in {name!r}", checks.brief(plain))
        array = np.array(array, dtype=np.float64)
    if not isinstance(value, xr.DataArray):
        return Labelled(tuple(f"{name}_{axis}" for axis in range(array.ndim)), {}, {}, array)
    dims = tuple(str(dim) for dim in value.dims)
    for word in RESERVED:
        if word in dims or word in value.coords:
            raise checks.reject(argument, f"have no dimension or label {word!r} in {name!r}", ", ".join(dims))
    return Labelled(dims, {str(key): coordinate for key, coordinate in value.coords.items()}, dict(value.attrs), array)
