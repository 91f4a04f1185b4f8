"""Task of sweeps: words and prefixes at all positions, behind a minimal first layer or in a standard transformer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from yzflow_bounded_dyck import tasks as prefixes

from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_studies.ordinary_dyck import deep
from yzflow_studies.words_and_prefixes import words

_WHOLE = partial(checks.integer, minimum=1)


def _one_of(*allowed: str) -> Callable[[str, Any], Any]:
    return lambda name, value: checks.one_of(name, value, allowed)


_EITHER: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "architecture": ("minimal", _one_of(*words.ARCHITECTURES)),
    "kind": ("word", _one_of(*words.KINDS)),
    **{name: prefixes.KEYS[name] for name in (*prefixes.SIZES, "contrast_weight", "data_seed")},
}
_OWN: dict[str, dict[str, tuple[Any, Callable[[str, Any], Any]]]] = {
    "minimal": {
        "positions": ("all", _one_of(*words.POSITIONS)),
        "targets": ("drawn", _one_of(*words.TARGETS)),
        **{name: prefixes.KEYS[name] for name in ("embedding", "eta", "steps", "batch_size", "n_train", "n_test")},
        "scale": (0.1, checks.positive),
    },
    "standard": {
        "eta": (deep.ETA, checks.positive),
        "steps": (words.STEPS, _WHOLE),
        "batch_size": (words.BATCH, _WHOLE),
        "n_closing": (words.N_CLOSING, _WHOLE),
    },
}


def _complete_words(given: dict) -> dict:
    """Keys of the other architecture are refused where they were given a value."""
    default, check = _EITHER["architecture"]
    architecture = check("architecture", given.get("architecture", default))
    keys = _EITHER | _OWN[architecture]
    for name, value in given.items():
        if name not in keys:
            raise checks.reject(name, f"be left out for the {architecture} architecture", value)
    whole = {name: check(name, given.get(name, default)) for name, (default, check) in keys.items()}
    prefixes.language_of(*(whole[name] for name in prefixes.SIZES))
    return prefixes.first_data_unnamed(whole)


def dyck_words(configuration: dict, seed: int) -> dict:
    """One run of `words.minimal_run` or `words.standard_run`."""
    settings = dict(configuration)
    run = words.minimal_run if settings.pop("architecture") == "minimal" else words.standard_run
    language = prefixes.language_of(*(settings.pop(name) for name in prefixes.SIZES))
    result = run(language, seed, **settings)
    return {str(name): result[name] for name in result.data_vars}


LABELS = prefixes.LABELS | {"n_train": {"long_name": "training sequences"}}
DYCK_WORDS = Task(
    "dyck_words",
    dyck_words,
    keys=tuple(_EITHER | _OWN["minimal"] | _OWN["standard"]),
    complete=_complete_words,
    threads=True,
    labels=LABELS,
)
TASKS = (DYCK_WORDS,)
