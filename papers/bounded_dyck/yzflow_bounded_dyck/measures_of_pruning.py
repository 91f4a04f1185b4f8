"""Numerical checks of pruning: of layers and linear maps, and of Transformers, with their lemmas, certificates and law.

As in `measures`, every function takes runs and a level. None uses the setting; slow results are cached.
"""

from __future__ import annotations

import functools

import numpy as np

from theory.statements import Runs
from yzflow_bounded_dyck import DyckLanguage, bounds, lottery, pruning, subset_law
from yzflow_bounded_dyck._register.common import once
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.transformers import Transformer, TransformerLayer, layer_norm, random_transformer

_WIDTH, _HIDDEN, _LENGTH = 4, 8, 6
# Seed, layers, floor of LN, identity layers and the place of the given ones among them.
_PAIRS = tuple((seed, *pair) for pair in ((1, 0.2, 0, 0), (1, 50.0, 8, 0), (2, 1.0, 2, 1)) for seed in range(2))
_SEEDS = 8


def _given(n_layers: int, rng: np.random.Generator, floor: float = 1.0) -> Transformer:
    return random_transformer(_WIDTH, _WIDTH, [_HIDDEN], n_layers, rng, floor=floor, norm=1.0)


def _inputs(rng: np.random.Generator, n: int = 200) -> np.ndarray:
    tokens = rng.normal(size=(n, _LENGTH, _WIDTH))
    return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)


@once
def pruned_layer() -> float:
    """Share of wrong closing brackets, for random networks that are pruned to a perfect layer for k = 2 and D = 3."""
    language = DyckLanguage(2, 3)
    bags = language.sample(1000, max_length=500, rng=0)
    found = pruning.prune_balanced_layer(language, 26, 0).predict(bags)[:, 1::2].argmax(axis=1)
    closing = bags.target[:, 1::2]
    return float((found != closing.argmax(axis=1))[closing.max(axis=1) > 0].mean())


@once
def subset_sum_rate() -> float:
    """Certificates fall by half or more for every two n: medians of five 8 x 8 maps of norm one, n = 10 to 24."""
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
    """Error of two prunings of one random model that agree on matrix 0, over the distance of their targets."""
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


def lemmas_attained(runs: Runs, level: str) -> float:
    """Largest relative distance of a bound of `bounds` from a change that attains it."""
    pairs = [*_softmax_case(), *_normalisation_cases(), *_logit_case(), *_network_cases(), _residual_case()]
    return float(max(abs(bound / change - 1) for bound, change in pairs))


def _softmax_case() -> list[tuple[float, float]]:
    """Two keys at the worst share, and values at the ends of a diameter."""
    found = []
    for spread in (0.01, 0.5, 3.0):
        before = np.array([-spread / 4, spread / 4])
        after = before + np.array([spread / 2, -spread / 2])
        shares = [np.exp(logits) / np.exp(logits).sum() for logits in (before, after)]
        found.append((bounds.attention_change(spread), shares[1][0] - shares[0][0]))
    return found


def _normalisation_cases() -> list[tuple[float, float]]:
    """Below the floor, and across the whole ball; a mean that is an error's alone, seen through the residual link."""
    direction = np.array([1.0, -1.0, 0, 0]) / np.sqrt(2)
    moved = np.linalg.norm(layer_norm(0.2 * direction, 0.5) - layer_norm(0.1 * direction, 0.5))
    across = np.linalg.norm(layer_norm(3 * direction, 0.5) - layer_norm(-3 * direction, 0.5))
    around = np.array([np.cos(1e-6), np.sin(1e-6)]) @ np.array([direction, [0, 0, 1 / np.sqrt(2), -1 / np.sqrt(2)]])
    turned = np.linalg.norm(layer_norm(2 * around, 0.5) - layer_norm(2 * direction, 0.5))
    # Tokens and mixture side by side: an error of one in each of two coordinates of four.
    error, base = np.array([0, 0, 0.01, 0.01]), np.array([0, 0, 0.1, -0.1])
    strayed = np.linalg.norm((layer_norm(base + error, 1.0) - layer_norm(base, 1.0))[:2])
    size, link = float(np.linalg.norm(error)), 1e12  # so large that only the stray error is seen
    return [
        (bounds.norm_change(0.1, 0.5, 0.0), moved),
        (bounds.norm_change(6.0, 0.5, 0.0), across),
        (bounds.norm_change(2 * 1e-6, 0.5, 2.0), turned),
        (bounds.padded_norm_change(size, 1.0, 0.0, 0.5, link) / link, strayed),
    ]


def _logit_case() -> list[tuple[float, float]]:
    """Width one: keys at R and -R and a query at R, all errors outwards."""
    size, error, product, pruned = 0.7, 0.1, 0.5, 0.02
    moved = 2 * (size + error) ** 2 * (product + pruned) - 2 * size**2 * product
    keys, query = 2 * product * size, product * size
    return [(bounds.logit_spread(error, keys, query, product, pruned, size), moved)]


def _network_cases() -> list[tuple[float, float]]:
    """Positive matrices and inputs: all units are on, and errors add up."""
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.1, 1, (5, 3)), rng.uniform(0.1, 1, (4, 5))
    network = ReluNetwork((first, second))
    _, _, right = np.linalg.svd(second @ first)
    z = np.abs(right[0])
    gain = np.linalg.norm(network(2 * z) - network(z))
    thin = (np.array([[0.5]]), np.array([[2.0]]))
    errors = (np.array([[0.01]]), np.array([[0.02]]))
    exact, pruned = ReluNetwork(thin), ReluNetwork(tuple(a + b for a, b in zip(thin, errors, strict=True)))
    off = float(pruned(np.array([1.5]))[0] - exact(np.array([1.5]))[0])
    return [(bounds.chain_norm([first, second]), gain), (bounds.network_change(thin, errors, 1.5), off)]


def _residual_case() -> tuple[float, float]:
    """One layer that sees an error e of its token: below LN's floor, where both ways add up."""
    direction, error, link, floor = np.array([1.0, -1.0]) / np.sqrt(2), 0.01, 0.5, 2.0
    identity = ReluNetwork((np.vstack([np.eye(2), -np.eye(2)]), np.hstack([np.eye(2), -np.eye(2)])))
    layer = TransformerLayer(np.zeros((1, 2)), np.zeros((1, 2)), np.eye(2), identity, link)
    outputs = [layer(size * direction[None], floor) for size in (0.5, 0.5 + error)]
    normed = bounds.norm_change(error, floor, 0.0)
    return bounds.read_change(normed, link, error), float(np.linalg.norm(outputs[1] - outputs[0]))


@once
def certificates_hold() -> float:
    """Largest sampled error in units of the certificates, less one: 0 where each is larger.

    Pruned Transformers of one and two layers, with LN near and far from its floor, and with identity layers before.
    """
    ratios = []
    for seed, n_layers, floor, spare, place in _PAIRS:
        rng = np.random.default_rng([seed, n_layers, spare])
        target = _given(n_layers, rng, floor)
        pruned = lottery.prune_transformer(target, lottery.room_for(target, 10, rng, spare=spare), place=place)
        tokens = _inputs(rng)
        error = pruned.error(tokens)
        ratios += [error / pruned.certificate(), error / pruned.certificate_on(tokens)]
    return max(0.0, max(ratios) - 1)


def width_law(runs: Runs, level: str) -> float:
    """Distance of two slopes of log2 certificate against n: for pruned Transformers, and for random sums.

    Relative; medians of eight pairs of one layer at n = 10 and 18, without a fitted number.
    """
    found, law = _slopes()
    return abs(found / law - 1)


@functools.cache
def _slopes() -> tuple[float, float]:
    sizes, values = (10, 18), np.zeros((2, 2, _SEEDS))
    for i, n in enumerate(sizes):
        for seed in range(values.shape[2]):
            rng = np.random.default_rng([seed, n])
            target = _given(1, rng)
            pruned = lottery.prune_transformer(target, lottery.room_for(target, n, rng))
            values[:, i, seed] = np.log2([pruned.certificate(), subset_law.expected(pruned, rng).certificate()])
    found, law = np.diff(np.median(values, axis=2), axis=1)[:, 0] / (sizes[1] - sizes[0])
    return float(found), float(law)


@once
def one_layer_of_two() -> float:
    """Error of two prunings of one random Transformer that agree on a whole layer, over the distance of their targets.

    inf where they do not agree there, or one of these matrices is zero.
    """
    worst = 0.0
    for layer in (0, 3):
        rng = np.random.default_rng(layer)
        first, second = _given(1, rng), _given(1, rng)
        random = lottery.room_for(first, 18, rng, spare=2)
        pruned = lottery.indistinguishable_transformers(first, second, random, layer)
        same = zip(*(one.network.layers[layer].matrices for one in pruned), strict=True)
        if not all(np.array_equal(one, other) and one.any() for one, other in same):
            return np.inf
        tokens = _inputs(rng)
        apart = np.linalg.norm(first(tokens) - second(tokens), axis=-1).max()
        worst = max(worst, *(one.error(tokens) / apart for one in pruned))
    return worst
