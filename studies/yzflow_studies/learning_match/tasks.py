"""Task of sweeps: units trained on Match2 and Match3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_studies.learning_match import runs

_whole = partial(checks.integer, minimum=1)
_KEYS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "kind": ("one layer", lambda name, value: checks.one_of(name, value, tuple(runs.LEARNING_RATES))),
    "order": (3, partial(checks.integer, minimum=2, maximum=3)),
    "n_tokens": (8, partial(checks.integer, minimum=5)),
    "dimension": (16, _whole),
    "heads": (1, _whole),
    "positions": (False, checks.flag),
    "steps": (runs.STEPS, _whole),
    "learning_rate": (None, lambda name, value: value if value is None else checks.positive(name, value)),
    "init": ("random", lambda name, value: checks.one_of(name, value, ("random", "construction"))),
}
_LABELS = {
    "order": {"long_name": "2 for Match2, 3 for Match3"},
    "n_tokens": {"long_name": "N"},
    "dimension": {"long_name": "m of a head"},
    "heads": {"long_name": "H"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "learning_rate": {"long_name": "learning rate of Adam", "units": "1 / step"},
    "seed": {"long_name": "seed of start, training and test inputs"},
}


def _complete(given: dict) -> dict:
    whole = {name: check(name, given.get(name, default)) for name, (default, check) in _KEYS.items()}
    if whole["learning_rate"] is None:
        whole["learning_rate"] = runs.LEARNING_RATES[whole["kind"]]
    return whole


def match_learning(configuration: dict, seed: int) -> dict:
    """One run of `runs.trained`: losses and shares on test inputs, over time."""
    arguments = dict(configuration)
    kind, order, n_tokens = (arguments.pop(name) for name in ("kind", "order", "n_tokens"))
    found = runs.trained(kind, order, n_tokens, **arguments, seed=seed)
    return {str(name): found[name] for name in found.data_vars}


MATCH_LEARNING = Task(
    "match_learning", match_learning, keys=tuple(_KEYS), complete=_complete, threads=True, labels=_LABELS
)
TASKS = (MATCH_LEARNING,)
