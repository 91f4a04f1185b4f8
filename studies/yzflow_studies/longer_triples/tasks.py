"""Task of sweeps: units on triples from better starts, through a curriculum, and on three equal tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_studies.longer_triples import runs

_whole = partial(checks.integer, minimum=1)
_KEYS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "kind": ("one layer", lambda name, value: checks.one_of(name, value, ("one layer", "third order"))),
    "task": ("triples", lambda name, value: checks.one_of(name, value, runs.TASKS)),
    "n_tokens": (32, partial(checks.integer, minimum=5)),
    "dimension": (16, _whole),
    "heads": (1, _whole),
    "steps": (3000, _whole),
    "learning_rate": (0.01, checks.positive),
    "start": ("random", lambda name, value: checks.one_of(name, value, runs.STARTS)),
    "distance": (0.0, checks.non_negative),
    "curriculum": (False, checks.flag),
}
_LABELS = {
    "n_tokens": {"long_name": "N"},
    "dimension": {"long_name": "m of a head"},
    "heads": {"long_name": "H"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "learning_rate": {"long_name": "learning rate of Adam", "units": "1 / step"},
    "distance": {"long_name": "noise over the root mean square of a table", "units": "1"},
    "seed": {"long_name": "seed of start, training and test inputs"},
}


def _complete(given: dict) -> dict:
    return {name: check(name, given.get(name, default)) for name, (default, check) in _KEYS.items()}


def longer_triples(configuration: dict, seed: int) -> dict:
    """One run of `runs.trained`: losses and shares on test inputs, over time."""
    arguments = dict(configuration)
    kind, task, n_tokens = (arguments.pop(name) for name in ("kind", "task", "n_tokens"))
    found = runs.trained(kind, task, n_tokens, **arguments, seed=seed)
    return {str(name): found[name] for name in found.data_vars}


LONGER_TRIPLES = Task("longer_triples", longer_triples, keys=tuple(_KEYS), complete=_complete, labels=_LABELS)
TASKS = (LONGER_TRIPLES,)
