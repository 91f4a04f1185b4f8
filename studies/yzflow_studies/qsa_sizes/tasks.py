"""Task of sweeps: one unit trained on sparse averaging, with a linear query or a perceptron of the set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_studies.qsa_sizes import runs

_whole = partial(checks.integer, minimum=1)
_KEYS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "query": ("linear", lambda name, value: checks.one_of(name, value, runs.QUERIES)),
    "n_tokens": (100, _whole),
    "subset_size": (8, _whole),
    "dimension": (99, _whole),
    "steps": (5000, _whole),
}
_LABELS = {
    "n_tokens": {"long_name": "N"},
    "subset_size": {"long_name": "q"},
    "dimension": {"long_name": "m"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "seed": {"long_name": "seed of start, training sets and test sets"},
}


def _complete(given: dict) -> dict:
    return {name: check(name, given.get(name, default)) for name, (default, check) in _KEYS.items()}


def qsa_sizes(configuration: dict, seed: int) -> dict:
    """One run of `runs.trained`: distances of attention from its target over time."""
    arguments = dict(configuration)
    query, n, q = (arguments.pop(name) for name in ("query", "n_tokens", "subset_size"))
    found = runs.trained(query, n, q, **arguments, seed=seed)
    return {str(name): found[name] for name in found.data_vars}


QSA_SIZES = Task("qsa_sizes", qsa_sizes, keys=tuple(_KEYS), complete=_complete, labels=_LABELS)
TASKS = (QSA_SIZES,)
