"""Tasks of bounded Dyck languages (Wen, Li, Liu, Risteski 2023, arXiv 2312.01429): Adam on the layer Y/Z/V.

"dyck" trains on the last positions of prefixes, "dyck_words" on all positions of words or prefixes, a standard
transformer too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from dynamics import DyckLanguage
from dynamics.support import checks
from yzflow.papers.bounded_dyck import deep, words
from yzflow.papers.bounded_dyck import training as experiment
from yzflow.sweeps.runs import Task

_whole = partial(checks.integer, minimum=1)
_KEYS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "n_types": (2, _whole),
    "max_depth": (4, _whole),
    "open_probability": (0.5, checks.positive),
    "embedding": (experiment.FREE, lambda name, value: checks.one_of(name, value, experiment.ARCHITECTURES)),
    "scale": (1.0, checks.positive),
    "eta": (experiment.ETA, checks.positive),
    "contrast_weight": (0.0, checks.non_negative),
    "steps": (experiment.STEPS, _whole),
    "batch_size": (128, _whole),
    "n_train": (40_000, _whole),
    "n_test": (10_000, _whole),
}
_LABELS = {
    "n_types": {"long_name": "k, types of brackets"},
    "max_depth": {"long_name": "D, largest depth"},
    "open_probability": {"long_name": "q, probability of an open bracket"},
    "scale": {"long_name": "initial scale of Z", "units": "1"},
    "eta": {"long_name": "learning rate of all weights", "units": "1 / step"},
    "contrast_weight": {"long_name": "weight of the contrastive regulariser (22)"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "n_train": {"long_name": "training prefixes"},
    "n_test": {"long_name": "test prefixes for each range of lengths"},
    "seed": {"long_name": "seed of start and batches"},
}


def _complete(given: dict) -> dict:
    whole = {name: check(name, given.get(name, default)) for name, (default, check) in _KEYS.items()}
    _language(*(whole[name] for name in _SIZES))
    return whole


_SIZES = ("n_types", "max_depth", "open_probability")
_language = cache(DyckLanguage)  # one object a language, for which its data are drawn once


def dyck(configuration: dict, seed: int) -> dict:
    """One run of `training.trained`: accuracy, that at the mean prefix, balance and attention at its end."""
    one: dict[str, Any] = {name: [configuration[name]] for name in ("embedding", "scale", "eta", "contrast_weight")}
    rest: dict[str, Any] = {name: configuration[name] for name in ("steps", "batch_size")}
    language = _language(*(configuration[name] for name in _SIZES))
    samples = experiment.data(language, n_train=configuration["n_train"], n_test=configuration["n_test"])
    runs = experiment.trained(**one, **rest, seeds=[seed], language=language, samples=samples, threads=1)
    result = runs.isel(dict.fromkeys((*one, "seed"), 0), drop=True)
    return {str(name): result[name] for name in result.data_vars}


def _one_of(*allowed: str) -> Callable[[str, Any], Any]:
    return lambda name, value: checks.one_of(name, value, allowed)


_EITHER: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "architecture": ("minimal", _one_of(*words.ARCHITECTURES)),
    "kind": ("word", _one_of(*words.KINDS)),
    **{name: _KEYS[name] for name in (*_SIZES, "contrast_weight")},
}
_OWN: dict[str, dict[str, tuple[Any, Callable[[str, Any], Any]]]] = {
    "minimal": {
        "positions": ("all", _one_of(*words.POSITIONS)),
        "targets": ("drawn", _one_of(*words.TARGETS)),
        **{name: _KEYS[name] for name in ("embedding", "eta", "steps", "batch_size", "n_train", "n_test")},
        "scale": (0.1, checks.positive),
    },
    "standard": {
        "eta": (deep.ETA, checks.positive),
        "steps": (words.STEPS, _whole),
        "batch_size": (words.BATCH, _whole),
        "n_closing": (words.N_CLOSING, _whole),
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
    _language(*(whole[name] for name in _SIZES))
    return whole


def dyck_words(configuration: dict, seed: int) -> dict:
    """One run of `words.minimal_run` or `words.standard_run`."""
    settings = dict(configuration)
    run = words.minimal_run if settings.pop("architecture") == "minimal" else words.standard_run
    language = _language(*(settings.pop(name) for name in _SIZES))
    result = run(language, seed, **settings)
    return {str(name): result[name] for name in result.data_vars}


_WORDS_LABELS = _LABELS | {"n_train": {"long_name": "training sequences"}}
TASKS = (
    Task("dyck", dyck, keys=tuple(_KEYS), complete=_complete, threads=True, labels=_LABELS),
    Task(
        "dyck_words",
        dyck_words,
        keys=tuple(_EITHER | _OWN["minimal"] | _OWN["standard"]),
        complete=_complete_words,
        threads=True,
        labels=_WORDS_LABELS,
    ),
)
