"""Trajectories that are kept in a store, so that a figure drawn twice is simulated once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import xarray as xr

import dynamics
from dynamics import SequenceClasses, Trajectory, version
from dynamics.fields.table import code_of
from dynamics.support import checks
from dynamics.support.calls import data_key
from yzflow.sweeps.runs import Result, Task, key
from yzflow.sweeps.store import Store

_BESIDE = "coordinates beside dimensions"
# Raise it when trajectories change.
_VERSION = 2


def trajectory(
    simulate: Callable[..., Trajectory],
    classes: SequenceClasses,
    *,
    store: str | os.PathLike | Store | None,
    progress: bool = False,
    **arguments: Any,
) -> Trajectory:
    """``simulate(classes, **arguments)``, from the store if it is there; without a store, just simulated.

    A trajectory is kept by all that is asked of its data, by the code of a decoder from outside and by the version of
    yzflow.

    Parameters
    ----------
    simulate : callable
        `dynamics.sgd` or `dynamics.gradient_flow`.
    classes : SequenceClasses
    store : path-like, Store or None
    progress : bool
        Show progress on standard error.
    **arguments
        Numbers and words, or a `Solver`.
    """
    checks.function("simulate", simulate)
    name = getattr(simulate, "__name__", type(simulate).__name__)
    if store is not None and getattr(dynamics, name, None) is not simulate:  # whose code no store knows
        raise checks.reject("simulate", "be a function of `dynamics` where there is a store", checks.brief(simulate))
    checks.instance("classes", classes, SequenceClasses)
    settings = {name: _plain(name, value) for name, value in arguments.items()}
    settings |= code_of(arguments["decoder"]) if "decoder" in arguments else {}
    if store is None:
        return simulate(classes, progress=progress, **arguments)
    store = store if isinstance(store, Store) else Store(store)
    # Only its identity is asked for.
    task = Task(f"trajectory:{name}", simulate, version=_VERSION)  # type: ignore[arg-type]
    seed = settings.pop("seed", 0)
    asked = {"data": data_key("classes", classes), "yzflow": version.__version__, **settings}
    identity = task.identity(asked, seed)
    found = store.read(key(identity))
    if found is not None:
        return Trajectory(_dataset(found[1]))
    made = simulate(classes, progress=progress, **arguments)
    store.write(identity, _result(made.dataset))
    return made


def _plain(name: str, value: Any) -> Any:
    """An argument as JSON holds it: two calls are the same if these are."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: _plain(f"{name}.{key}", own) for key, own in asdict(value).items()}
    value = checks.plain_types(value)
    large = isinstance(value, int) and abs(value) >= 2**4096  # whose digits are not written
    if (
        large
        or not isinstance(value, (bool, int, float, str, type(None)))
        or value in (np.inf, -np.inf)
        or value != value
    ):
        raise checks.reject(name, "be a finite number, a word, a boolean, None or a Solver", checks.brief(value))
    return value


def _result(dataset: xr.Dataset) -> Result:
    variables = {
        name: (tuple(map(str, variable.dims)), variable.values, dict(variable.attrs))
        for name, variable in dataset.data_vars.items()
    }
    coordinates, beside = {}, []
    for name, variable in dataset.coords.items():
        if variable.dims == (name,):
            coordinates[name] = (variable.values, dict(variable.attrs))
        else:  # labels beside those of a dimension are kept as a variable
            beside.append(name)
            values = variable.values.astype(str) if variable.dtype == object else variable.values  # names
            variables[name] = (tuple(map(str, variable.dims)), values, dict(variable.attrs))
    return Result(variables, coordinates, attributes={_BESIDE: json.dumps(beside), **dataset.attrs})


def _dataset(result: Result) -> xr.Dataset:
    coordinates = {dim: (dim, labels, attributes) for dim, (labels, attributes) in result.coordinates.items()}
    attributes = dict(result.attributes)
    beside = json.loads(attributes.pop(_BESIDE))
    variables = {
        name: (dims, values.astype(object) if values.dtype.kind == "U" else values, own)
        for name, (dims, values, own) in result.variables.items()
    }
    return xr.Dataset(variables, coordinates, attributes).set_coords(beside)
