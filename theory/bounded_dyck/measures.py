"""Numerical checks of the bounded Dyck paper: how far each statement is from layers, trained or written down.

Every function takes runs and a level and returns a relative error, or for an inequality its relative violation.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from dynamics import DyckLanguage, Layer
from theory.bounded_dyck import balance, pruning
from theory.bounded_dyck.networks import ReluNetwork
from theory.statements import Runs


def _trained(runs: Runs, level: str) -> tuple[DyckLanguage, Layer]:
    return runs.setting.language, runs.trajectory(level).final


def _stacks(language: DyckLanguage):
    """(j, d, prefixes): for each query close (j, d), the prefixes w, open j, close j for all w of d open brackets."""
    kinds = range(language.n_types)
    for j, d in itertools.product(kinds, range(1, language.max_depth)):
        yield j, d, [[2 * kind for kind in w] + [2 * j, 2 * j + 1] for w in itertools.product(kinds, repeat=d)]


def _sums(layer: Layer, language: DyckLanguage, prefixes) -> np.ndarray:
    """u, the sums before LN: (prefixes, width)."""
    u = balance.contributions(layer, language)
    states = np.array([language.state_sequence(prefix) for prefix in prefixes])
    return u[states[:, -1], states.T].sum(axis=0)


def _normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def insertion_law(runs: Runs, level: str) -> float:
    """Features of the layer with 1000 inserted pairs against LN(u_0 + 1000 delta)."""
    language, layer = _trained(runs, level)
    delta = balance.insertions(layer, language)
    errors = []
    for j, d, prefixes in _stacks(language):
        kind = (j + 1) % language.n_types
        longer = [[2 * kind, 2 * kind + 1] * 1000 + prefix for prefix in prefixes]
        found = layer.features(language.bags(longer))
        expected = _sums(layer, language, prefixes) + 1000 * delta[language.close(j, d), kind, 0]
        errors.append(np.abs(found - _normalised(expected)).max())
    return float(max(errors, default=0.0))


def forgetting(runs: Runs, level: str) -> float:
    """||LN(u_0 + n delta) - LN(delta)|| <= 2 ||u_0|| / (n ||delta||), for n = 100, 1000, 10,000 pairs."""
    language, layer = _trained(runs, level)
    delta = balance.insertions(layer, language)
    violations = [0.0]
    for (j, d, prefixes), n in itertools.product(_stacks(language), (100, 1000, 10_000)):
        added = delta[language.close(j, d), j, 0]
        found = layer.features(language.bags([[2 * j, 2 * j + 1] * n + prefix for prefix in prefixes]))
        distance = np.linalg.norm(found - added / np.linalg.norm(added), axis=1)
        bound = 2 * np.linalg.norm(_sums(layer, language, prefixes), axis=1) / (n * np.linalg.norm(added))
        violations.append((distance / bound).max() - 1)
    return float(max(violations))


def separation(runs: Runs, level: str) -> float:
    """Features of two stacks with other last types are at most 2 P / (n S - P) apart after n pairs."""
    language, layer = _trained(runs, level)
    delta = balance.insertions(layer, language)
    violations = [0.0]
    for j, d, prefixes in _stacks(language):
        sums = _sums(layer, language, prefixes)
        S, norms = np.linalg.norm(delta[language.close(j, d), j, 0]), np.linalg.norm(sums, axis=1)
        for n in (10, 100, 1000, 10_000):
            features = layer.features(language.bags([[2 * j, 2 * j + 1] * n + prefix for prefix in prefixes]))
            for a, b in itertools.combinations(range(len(prefixes)), 2):
                P = max(norms[a], norms[b])
                if n * S > P:
                    distance = np.linalg.norm(features[a] - features[b])
                    violations.append(distance * (n * S - P) / (2 * P) - 1)
    return float(max(violations))


def exact_predictions(runs: Runs, level: str) -> float:
    """Largest error of the next-token distribution of a random balanced layer, at every length up to 6 and at 500."""
    return _head_error(runs, scale=1.0)


def uniform_predictions(runs: Runs, level: str) -> float:
    """The same with uniform attention."""
    return _head_error(runs, scale=0.0)


def _head_error(runs: Runs, scale: float) -> float:
    language = runs.setting.language
    layer = balance.balanced_layer(language, 0, scale=scale)
    head = balance.exact_head(layer, language)
    batches = (
        language.enumerate(min_length=0, max_length=6),
        language.sample(100, min_length=500, max_length=500, rng=0),
    )
    return float(max(np.abs(head(layer.features(bags)) - bags.target).max() for bags in batches))


def values_violation(runs: Runs, level: str) -> float:
    """Balance violation of a layer with random attention under (11) and V_close = -exp(c) V_open.

    nan where the language has one type or depth, and the violation no meaning.
    """
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    Z = balance.balanced_layer(language, 0).Z
    V = balance.balancing_values(Z, language)
    return balance.violation(Layer(Z, np.zeros((V.shape[1], language.n_brackets)), V), language)


def pruned_layer(runs: Runs, level: str) -> float:
    """Share of closing brackets that random networks, pruned to a perfect layer for k = 2 and D = 3, get wrong."""
    return _wrong_share()


@functools.cache
def _wrong_share() -> float:
    language = DyckLanguage(2, 3)
    bags = language.sample(1000, max_length=500, rng=0)
    found = pruning.prune_balanced_layer(language, 26, 0).predict(bags)[:, 1::2].argmax(axis=1)
    closing = bags.target[:, 1::2]
    return float((found != closing.argmax(axis=1))[closing.max(axis=1) > 0].mean())


def no_attention(runs: Runs, level: str) -> float:
    """Largest change of the features under other attention logits, where all rows of V are equal."""
    language = runs.setting.language
    rng = np.random.default_rng(0)
    values = np.tile(rng.normal(size=3), (language.n_states, 1))
    bags = language.sample(100, max_length=50, rng=0)
    square = (language.n_states, language.n_states)
    one, other = (Layer(rng.normal(size=square), np.zeros((3, language.n_brackets)), values) for _ in range(2))
    return float(np.abs(one.features(bags) - other.features(bags)).max())


def subset_sum_rate(runs: Runs, level: str) -> float:
    """Certificates fall by half or more for every two n: medians of five 8 x 8 maps of norm one, n = 10 to 24."""
    return _rate()


@functools.cache
def _rate() -> float:
    sizes, medians = (10, 14, 18, 24), []
    for n in sizes:
        certificates = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            matrix = rng.uniform(-1, 1, (8, 8))
            certificates.append(pruning.prune_linear(matrix / np.linalg.norm(matrix, 2), n, rng).certificate)
        medians.append(np.median(certificates))
    slope = np.polyfit(sizes, np.log2(medians), 1)[0]
    return float(max(0.0, 1 + slope / 0.5))


def _in_turn(blocks: tuple[pruning.Pruned, pruning.Pruned], inputs: np.ndarray) -> np.ndarray:
    """A model of two pruned blocks, one after the other."""
    return blocks[1].network(blocks[0].network(inputs))


def one_matrix(runs: Runs, level: str) -> float:
    """Error of two prunings of one random model that agree on matrix 0, in units of how far their targets differ."""
    rng = np.random.default_rng(0)
    first, second = (ReluNetwork((rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (2, 3)))) for _ in range(2))
    models = pruning.indistinguishable(first, second, 0, 30, 1)
    agree = np.array_equal(models[0][0].network.weights[0], models[1][0].network.weights[0])
    points = rng.normal(size=(100, 2))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    errors = [
        pruning.approximation_error(functools.partial(_in_turn, model), target, points)
        for model, target in zip(models, (first, second), strict=True)
    ]
    return max(errors) / pruning.approximation_error(first, second, points) if agree else np.inf
