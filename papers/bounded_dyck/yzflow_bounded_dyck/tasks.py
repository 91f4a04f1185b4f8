"""Task of bounded Dyck languages (Wen, Li, Liu, Risteski 2023, arXiv 2312.01429): Adam on the layer Y/Z/V."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as experiment

_whole = partial(checks.integer, minimum=1)
KEYS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
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
    "data_seed": (0, partial(checks.integer, minimum=0)),
}
LABELS = {
    "n_types": {"long_name": "k, types of brackets"},
    "max_depth": {"long_name": "D, largest depth"},
    "open_probability": {"long_name": "q, probability of an open bracket"},
    "scale": {"long_name": "initial scale of Z", "units": "1"},
    "eta": {"long_name": "learning rate of all weights", "units": "1 / step"},
    "contrast_weight": {"long_name": "weight of the contrastive regulariser (22)"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "n_train": {"long_name": "training prefixes"},
    "n_test": {"long_name": "test prefixes for each range of lengths"},
    "data_seed": {"long_name": "seed of the training data"},
    "seed": {"long_name": "seed of start and batches"},
}


def _complete(given: dict) -> dict:
    whole = {name: check(name, given.get(name, default)) for name, (default, check) in KEYS.items()}
    language_of(*(whole[name] for name in SIZES))
    return first_data_unnamed(whole)


def first_data_unnamed(whole: dict) -> dict:
    """Configuration without the data seed 0: runs that were stored before there was a data seed have that one."""
    return {name: value for name, value in whole.items() if (name, value) != ("data_seed", 0)}


SIZES = ("n_types", "max_depth", "open_probability")
language_of = cache(DyckLanguage)  # one object a language, for which its data are drawn once


def dyck(configuration: dict, seed: int) -> dict:
    """One run of `training.trained`: accuracy, that at the mean prefix, balance and attention at its end."""
    one: dict[str, Any] = {name: [configuration[name]] for name in ("embedding", "scale", "eta", "contrast_weight")}
    rest: dict[str, Any] = {name: configuration[name] for name in ("steps", "batch_size")}
    language = language_of(*(configuration[name] for name in SIZES))
    sizes: dict[str, int] = {name: configuration[name] for name in ("n_train", "n_test")}
    samples = experiment.data(language, **sizes, seed=configuration.get("data_seed", 0))
    runs = experiment.trained(**one, **rest, seeds=[seed], language=language, samples=samples, threads=1)
    result = runs.isel(dict.fromkeys((*one, "seed"), 0), drop=True)
    return {str(name): result[name] for name in result.data_vars}


TASKS = (Task("dyck", dyck, keys=tuple(KEYS), complete=_complete, threads=True, labels=LABELS),)
