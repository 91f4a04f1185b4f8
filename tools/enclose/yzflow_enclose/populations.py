"""A population's flow for `Enclosure`: its moments, tables, pictures and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from flint import arb

from dynamics.bags import Bags
from dynamics.support import checks, display
from dynamics.support.canonical import canonical
from dynamics.support.names import AXES, filled, given, shown
from yzflow_enclose.canonical import bags_of, population
from yzflow_enclose.fields import PopulationField
from yzflow_enclose.formulas import Recorder
from yzflow_enclose.moments import Moment, Tube
from yzflow_enclose.quantities import midpoint_and_radius
from yzflow_enclose.reading import Reading, read
from yzflow_enclose.states import FlowTube
from yzflow_enclose.stepping import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def band(ax: Axes, times: np.ndarray, middle: np.ndarray, radius: np.ndarray, label: str) -> None:
    """A line with its radius as a band."""
    (line,) = ax.plot(times, middle, label=label)
    ax.fill_between(times, middle - radius, middle + radius, color=line.get_color(), alpha=0.3)


class OfPopulation:
    """The flow of a population, which starts at zero."""

    kind = "population"
    start = None

    def __init__(self, reading: Reading):
        self.reading = reading

    @classmethod
    def stored(cls, claim: Mapping[str, Any], arrays: Mapping[str, np.ndarray], path: str) -> OfPopulation:
        """The reading of a file's claim and arrays."""
        rates = {name: claim[name] for name in ("eta_y", "eta_z", "decoder")}
        labels = np.array(claim["population"]["query_tokens"])
        found = cls(read(bags_of(claim["population"]), query_tokens=labels, **rates))
        if canonical(found.claim()["population"]) != canonical(claim["population"]):
            raise checks.reject("path", "hold a population as `save` writes it", path)
        if not np.array_equal(arrays["weights"], found.field.weights) or arrays["limbs"].shape[1] != found.variables:
            raise checks.reject("path", "hold the norm and the variables of its own population", path)
        return found

    @property
    def field(self) -> PopulationField:
        return self.reading.field

    @property
    def bags(self) -> Bags:
        return self.reading.bags

    @property
    def variables(self) -> int:
        return self.field.size

    @property
    def name(self) -> str:
        return self.reading.settings["decoder"]

    @property
    def title(self) -> str:
        return f"{self.name} flow"

    def facts(self) -> dict[str, Any]:
        """Plain settings, for a notebook."""
        return {name: value for name, value in self.reading.settings.items() if np.ndim(value) == 0}

    def rates(self) -> dict[str, Any]:
        return {name: self.reading.settings[name] for name in ("decoder", "eta_y", "eta_z")}

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.reading.settings

    def claim(self) -> dict[str, Any]:
        """The population in a file's claim."""
        found = population(self.reading.bags, self.reading.query_tokens)
        return {"kind": self.kind, **self.rates(), "start": "zero", "population": found}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"weights": self.field.weights}

    def recorder(self) -> Recorder:
        return Recorder(self.reading)

    def variable_names(self) -> list[str]:
        return self.reading.variable_names()

    def tube(self, steps: Sequence[Step]) -> Tube:
        return Tube(self.field, steps)

    def jets(self, steps: Sequence[Step]) -> FlowTube:
        """The steps as series of the flow itself, in which checkers decide the predicates of a certificate.

        `tube` has the steps' polynomials, with bounds beside them: where these are narrower, another checker may not
        follow.
        """
        return FlowTube(self.field, steps, [arb(0)] * self.variables)

    def moment(self, tube: Tube | FlowTube, start: float, end: float) -> Moment:
        return Moment(self.reading, tube, start, end)

    def next_token(self, wanted: int | None) -> int:
        """A next token of the data; by default the first."""
        known = self.reading.next_tokens.tolist()
        if wanted is None:
            return known[0]
        if checks.integer("next_token", wanted, minimum=0) not in known:
            raise checks.reject("next_token", "be a next token of the data", wanted)
        return wanted

    def drawing(
        self, moments: Sequence[Moment], times: np.ndarray, next_token: int, labels: Any
    ) -> Callable[[Axes], None]:
        """A function that draws lines of attention, with their radii as bands."""
        found = []
        for moment in moments:
            shares = moment.shares(next_token)
            found.append([midpoint_and_radius(share.ball()) for share in shares.values()])
        tokens = list(shares)
        middle, radius = np.moveaxis(np.array(found), 2, 0)
        kept = np.sort(np.argsort(-middle[-1], kind="stable")[: display.LINES])
        words = given(labels, self.bags.token_names, self.bags.n_tokens)
        after = display.plain(shown(self.bags.class_names, next_token))

        def draw(ax: Axes) -> None:
            for i in kept.tolist():
                word = display.plain(shown(words, tokens[i]))
                band(ax, times, middle[:, i], radius[:, i], f"token {word}")
            rest = f", {kept.size} of {middle.shape[1]} tokens" if kept.size < middle.shape[1] else ""
            ax.set(xscale="log", xlabel="time (SGD steps)", ylabel="expected attention")
            ax.set_title(f"next token {after}{rest}: radius at most {radius.max():.1e}")
            ax.legend()

        return draw

    def dataset(self, moments: Sequence[Moment], times: np.ndarray) -> xr.Dataset:
        """Logits, attention and loss at times, with their radii."""
        reading = self.reading
        names = reading.next_tokens
        shape = reading.z_index.shape
        values = {
            "z": np.zeros((2, times.size, *shape)),
            "attention": np.zeros((2, times.size, names.size, shape[1])),
            "loss": np.zeros((2, times.size)),
        }
        for i, moment in enumerate(moments):
            values["loss"][:, i] = midpoint_and_radius(moment.loss.ball())
            variables = {
                place: midpoint_and_radius(moment.variable(place).ball())
                for place in np.unique(reading.z_index).tolist()
            }
            for row, column in np.ndindex(shape):
                values["z"][:, i, row, column] = variables[int(reading.z_index[row, column])]
            for n, name in enumerate(names.tolist()):
                for token, share in moment.shares(name).items():
                    values["attention"][:, i, n, token] = midpoint_and_radius(share.ball())
        dims = {"z": ("query", "token"), "attention": ("next_token", "token"), "loss": ()}
        data = {}
        for name, (middle, radius) in values.items():
            data[name] = (("time", *dims[name]), middle)
            data[f"{name}_radius"] = (("time", *dims[name]), radius)
        coords: dict[str, Any] = {"time": times, "query": reading.query_tokens, "token": np.arange(shape[1])}
        coords["next_token"] = names
        for kind, axis in AXES.items():
            own = getattr(reading.bags, kind)
            if own is not None:
                numbers = names if axis == "next_token" else np.arange(len(coords[axis]))
                coords[f"{axis}_name"] = (axis, filled(own, int(numbers.max()) + 1)[numbers])
        return xr.Dataset(data, coords, {"kind": "enclosure", **self.rates()})
