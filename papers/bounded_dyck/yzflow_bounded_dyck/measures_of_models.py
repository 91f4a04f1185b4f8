"""Numerical checks on models that read brackets: the transformer from tokens, and pairs in the outputs of any model.

Every function takes runs and a level and returns a relative error, or for an inequality its relative violation.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from theory.statements import Runs
from yzflow_bounded_dyck import DyckLanguage, from_tokens, models, outputs
from yzflow_bounded_dyck.models import Model
from yzflow_bounded_dyck.outputs import Examination
from yzflow_bounded_dyck.proofs import from_tokens as formulas
from yzflow_bounded_dyck.proofs import outputs as bounds

# Random, uniform and stack-like second attention.
FORMS: dict[str, dict[str, float]] = {
    "balanced": {},
    "uniform": {"scale": 0.0},
    "stack-like": {"scale": 0.0, "sharpness": 2.0},
}
_LOW = 3.0  # so that softmax leaves something to measure
_RIGHT = 1e-6  # of total variation: a model that is right up to rounding
_LENGTHS = (8, 64)


def _prefixes(language: DyckLanguage) -> list[np.ndarray]:
    """Every prefix of up to five brackets, one of 500, and two nests to the full depth."""
    short = [prefix for length in range(6) for prefix in language.prefixes(length)]
    types = np.random.default_rng(0).integers(0, language.n_types, (2, language.max_depth))
    nests = np.concatenate([np.concatenate([2 * row, 2 * row[::-1] + 1]) for row in types])
    return [*short, *language.sample_sequences(1, min_length=500, max_length=500, rng=0), nests]


def states_written(runs: Runs, level: str) -> float:
    """Largest error of the states that the first two parts write one-hot, at every position."""
    language, errors = runs.setting.language, []
    model = from_tokens.token_transformer(language, 0)
    place = 2 * language.n_types + 2 + language.max_depth  # behind tokens, the signed count and the steps
    for prefix in _prefixes(language):
        found = model.stream(prefix, parts=2)[:, place : place + language.n_states]
        errors.append(np.abs(found - np.eye(language.n_states)[language.state_sequence(prefix)]).max())
    return float(max(errors))


def _transformers(language: DyckLanguage, low: float) -> list[from_tokens.TokenTransformer]:
    return [from_tokens.token_transformer(language, 0, low=low, **form) for form in FORMS.values()]


def exact_logits(runs: Runs, level: str) -> float:
    """Largest error of the logits at every position, over L: ln p of possible brackets, and -L of others."""
    language, errors = runs.setting.language, []
    low = 10.0
    for model in _transformers(language, low):
        for prefix in _prefixes(language):
            target = language.bags([prefix], positions="all").target
            expected = np.where(target > 0, np.log(np.where(target > 0, target, 1)), -low)
            errors.append(np.abs(model(prefix) - expected).max() / low)
    return float(max(errors))


def least_gap(runs: Runs, level: str) -> float:
    """Relative error of the least gap of logits, measured against the formula."""
    language, errors = runs.setting.language, []
    low, q = 10.0, language.open_probability
    k, D = language.n_types, language.max_depth
    formula = float(formulas.gap(low, min(q / k, 1 - q) if min(k, D) > 1 else 1 / k))
    for model in _transformers(language, low):
        gaps = []
        for prefix in _prefixes(language):
            target, logits = language.bags([prefix], positions="all").target, model(prefix)
            possible, other = np.where(target > 0, logits, np.inf), np.where(target > 0, -np.inf, logits)
            gaps.append((possible.min(axis=1) - other.max(axis=1)).min())
        errors.append(abs(min(gaps) / formula - 1))
    return float(max(errors))


def softmax_share(runs: Runs, level: str) -> float:
    """Largest error of the total variation of the transformer's and the exact distribution, against `lost`, L = 3."""
    language, errors = runs.setting.language, []
    for model in _transformers(language, _LOW):
        for prefix in _prefixes(language):
            target = language.bags([prefix], positions="all").target
            found = np.abs(model.distribution(prefix) - target).sum(axis=1) / 2
            impossible = (target == 0).sum(axis=1)
            formula = {m: float(formulas.lost(m, _LOW)) for m in set(impossible.tolist())}
            errors.append(np.abs(found - [formula[m] for m in impossible.tolist()]).max())
    return float(max(errors))


def _model(runs: Runs, level: str) -> Model:
    """The trained layer as a model, or the model that a reader gave."""
    run = runs.trajectory(level)
    given: Model | None = getattr(run, "model", None)
    return models.of(run.final, runs.setting.language) if given is None else given


@functools.lru_cache(maxsize=4)  # a model of a reader may be large
def _examined(model: Model) -> Examination:
    readable = [length for length in _LENGTHS if model.longest is None or length <= model.longest]
    return outputs.examine(model, lengths=readable or [model.longest], n=100)


_kept: dict[int, tuple[Any, Model]] = {}


def _found(runs: Runs, level: str) -> Examination:
    """The examination of a run; a run is examined once."""
    run = runs.trajectory(level)
    if id(run) not in _kept or _kept[id(run)][0] is not run:
        if len(_kept) >= 4:
            _kept.clear()
        _kept[id(run)] = run, _model(runs, level)
    return _examined(_kept[id(run)][1])


def error_from_pairs(runs: Runs, level: str) -> float:
    """Violation of the bound on the model's error by what pairs change, at the prefixes of the pairs themselves.

    nan where D = 1, which has no closing query with an unmatched bracket.
    """
    found = _found(runs, level)
    if not np.isfinite(found.change).any():
        return np.nan  # no prefix of (16) was read
    bound = float(bounds.least(np.nanmax(found.change)))
    if np.isfinite(found.apart).any():
        exact = float(bounds.separation(runs.setting.language.open_probability))
        bound = max(bound, float(bounds.least_apart(exact, np.nanmin(found.apart))))
    # Rounding of outputs that are right.
    return max(0.0, bound - found.pair_error) / max(found.pair_error, _RIGHT)


def pairs_change(runs: Runs, level: str) -> float:
    """Largest change of the model's output by inserted pairs, in total variation; nan where no pair was read."""
    changes = _found(runs, level).change[1:]
    return float(np.nanmax(changes)) if np.isfinite(changes).any() else np.nan


def right_at_tested_lengths(setting: Any) -> float:
    """Ratio of 1e-6 to the largest error of the setting's model at the tested lengths; at most one."""
    runs = _Alone(setting)
    error = float(np.nanmax(_found(runs, "SGD").error))
    return 1.0 if error <= _RIGHT else _RIGHT / error


class _Alone:
    """Runs of a setting, for a margin that has the setting alone."""

    def __init__(self, setting: Any) -> None:
        self.setting = setting

    def trajectory(self, level: str) -> Any:
        return _simulated(self.setting, level)


@functools.lru_cache(maxsize=4)
def _simulated(setting: Any, level: str) -> Any:
    return setting.simulate(level, seed=0)


_SHARE, _PAIRS = 0.8, 10


def attained_from_pairs(runs: Runs, level: str) -> float:
    """Relative distance of the bound from the largest error of a model that attains it; nan below two types or depths.

    The model knows the last unmatched type with the weight 0.8^m behind m matched pairs, and else guesses.
    """
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan

    def ask(prefixes: np.ndarray) -> np.ndarray:
        found = []
        for prefix in prefixes:
            target = np.array(language.next_token(prefix))
            weight, closing = _SHARE ** np.sum(prefix % 2), target[1::2].copy()
            others = (closing.sum() - closing) / (language.n_types - 1)
            target[1::2] = (1 + weight) / 2 * closing + (1 - weight) / 2 * others
            found.append(target)
        return np.array(found)

    if language.n_types > 2:
        language = DyckLanguage(2, language.max_depth, language.open_probability)
    model = models.of(ask, language, kind="probabilities")
    found = outputs.examine(model, lengths=[4], n=1, pairs=[_PAIRS])
    exact = float(bounds.separation(language.open_probability))
    bound = float(bounds.least_apart(exact, found.apart.min()))
    return abs(bound / found.pair_error - 1)
