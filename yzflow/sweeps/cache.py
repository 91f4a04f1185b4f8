"""Trajectories in a store: a second drawing of a figure reads them and simulates nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

import dynamics
from dynamics import SequenceClasses, Trajectory, version
from dynamics.fields.table import code_of
from dynamics.support import checks
from dynamics.support.calls import data_key
from dynamics.support.netcdf import kept
from dynamics.trajectory import FORMAT
from yzflow.sweeps.runs import Task, key
from yzflow.sweeps.store import Store

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
    """``simulate(classes, **arguments)``, read from the store if it is there; without a store, simulated.

    Each trajectory has its own file beside the runs of the store. The file's key is a hash of the data, the arguments,
    the code of a decoder from outside and the version of yzflow.

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
    if store is not None and getattr(dynamics, name, None) is not simulate:  # its code has no version
        raise checks.reject("simulate", "be a function of `dynamics` where there is a store", checks.brief(simulate))
    checks.instance("classes", classes, SequenceClasses)
    settings = {name: _plain(name, value) for name, value in arguments.items()}
    settings |= code_of(arguments["decoder"]) if "decoder" in arguments else {}
    if store is None:
        return simulate(classes, progress=progress, **arguments)
    store = store if isinstance(store, Store) else Store(store)
    # The task serves only for its identity.
    task = Task(f"trajectory:{name}", simulate, version=_VERSION)  # type: ignore[arg-type]
    seed = settings.pop("seed", 0)
    identity = {"data": data_key("classes", classes), "yzflow": version.__version__, **settings}
    path = store.path / f"{key(task.identity(identity, seed))}.nc"
    return Trajectory(
        kept(path, FORMAT, "a trajectory", lambda: simulate(classes, progress=progress, **arguments).dataset)
    )


def _plain(name: str, value: Any) -> Any:
    """An argument in JSON's types; equal results mean equal calls."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: _plain(f"{name}.{key}", entry) for key, entry in asdict(value).items()}
    value = checks.plain_types(value)
    large = isinstance(value, int) and abs(value) >= 2**4096  # too long to write in digits
    if (
        large
        or not isinstance(value, (bool, int, float, str, type(None)))
        or value in (np.inf, -np.inf)
        or value != value
    ):
        raise checks.reject(name, "be a finite number, a word, a boolean, None or a Solver", checks.brief(value))
    return value
