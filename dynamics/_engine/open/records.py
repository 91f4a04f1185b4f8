"""Records of a flow's states and observables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np

from dynamics._engine.open.protocol import Flow
from dynamics._engine.open.states import Labelled, NamedStates, check_name, labelled
from dynamics.run import FORMAT, Run
from dynamics.support import checks
from dynamics.support.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr

else:
    xr = lazy_loader.load("xarray")


def recorded(
    flow: Flow,
    states: NamedStates,
    times: np.ndarray,
    rows: np.ndarray,
    kind: str,
    parameters: Mapping,
    attributes: Mapping[str, str | Sequence[str]],
    events: Mapping[str, np.ndarray] | None = None,
) -> Run:
    """A `Run` of the states at given times, with the flow's observables."""
    dataset = states.dataset(states.over_time(rows), times)
    observe = getattr(flow, "observe", None)
    if observe is not None:
        dataset = dataset.assign(_observed(observe, states, times, rows))
    facts = {
        "flow": f"{type(flow).__module__}:{type(flow).__qualname__}",
        "states": json.dumps(list(states.shapes)),
        "reduction": states.reduction,
    }
    words = {name: value if isinstance(value, str) else json.dumps(list(value)) for name, value in attributes.items()}
    dataset = dataset.assign_attrs(provenance(kind, parameters, FORMAT) | facts | words)
    dataset["time"].attrs["long_name"] = "time"
    return Run(dataset, events=events)


def _observed(observe: Callable, states: NamedStates, times: np.ndarray, rows: np.ndarray) -> dict[str, xr.DataArray]:
    """The observables over time."""
    kept: dict[str, list[Labelled]] = {}
    for time, row in zip(times.tolist(), rows, strict=True):
        rule = "return a mapping of names to arrays or numbers"
        observed = checks.instance("observe", observe(time, states.split(row)), Mapping, rule=rule)
        if kept and set(observed) != set(kept):
            raise checks.reject("observe", "return the same names at all times", checks.brief(list(observed)))
        for name, value in observed.items():
            if check_name("observe", name) in states.shapes:
                raise checks.reject("observe", "return names that are no states", repr(name))
            entry = labelled("observe", name, value, finite=False)
            first = kept.setdefault(name, [entry])[0]
            if entry.values.shape != first.values.shape:
                rule = f"return one shape of {name!r} at all times"
                raise checks.reject("observe", rule, f"{first.values.shape} and {entry.values.shape}")
            if entry is not first:
                kept[name].append(entry)
    return {
        name: xr.DataArray(
            np.stack([entry.values for entry in seen]),
            dims=("time", *seen[0].dims),
            coords={"time": times, **seen[0].coords},
            attrs=seen[0].attributes,
        )
        for name, seen in kept.items()
    }
