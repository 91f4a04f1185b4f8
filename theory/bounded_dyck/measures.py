"""Numerical checks of the bounded Dyck paper: how far each statement is from layers, trained or written down.

Every function takes runs and a level and returns a relative error, or for an inequality its relative violation.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from dynamics import DyckLanguage, Layer
from theory.bounded_dyck import balance, gpt, pruning, silence
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


def right_without_balance(runs: Runs, level: str) -> float:
    """Share of layers without (11) among those that are right at every length and have no zero values.

    1 where no such layer is right.
    """
    layers = [row for row in right_and_balanced() if row["right"] and not row["silent"]]
    return float(np.mean([not row["(11)"] for row in layers])) if layers else 1.0


def right_against_live_balance(runs: Runs, level: str) -> float:
    """Share of layers that are right without (14) and (11) for the pairs with values, or wrong with both.

    1 where no layer with zero values is right.
    """
    layers = right_and_balanced()
    if not any(row["right"] and row["silent"] for row in layers):
        return 1.0
    return float(np.mean([row["right"] != (row["(14)"] and row["(11), live"]) for row in layers]))


def right_and_balanced() -> list[dict[str, bool]]:
    """Layers of two languages, balanced, unbalanced and partly silent: whether they are right, and what holds."""
    found = []
    for language in (DyckLanguage(2, 2), DyckLanguage(2, 3)):
        for layer in _family(language):
            u, added = balance.contributions(layer, language), balance.insertions(layer, language)
            adds = np.abs(added[balance.queries(language).ravel()]).max()
            zero, live = np.abs(layer.V).max(axis=1) == 0, np.array(layer.Z)
            live[:, zero] = 0  # (11) holds for a pair without logits
            conditions = {
                "right": _right_at_every_length(layer, language),
                "silent": zero.any(),
                "(11)": balance.residual(layer.Z, language) < 1e-9,
                "(11), live": balance.residual(live, language) < 1e-9,
                "(14)": adds < 1e-9 * np.abs(u).max(),
            }
            found.append({name: bool(value) for name, value in conditions.items()})
    return found


@functools.cache
def _silent_sets() -> float:
    wrong = []
    for language in (DyckLanguage(2, 2), DyckLanguage(2, 3), DyckLanguage(3, 2)):
        bags = language.sample(20, min_length=200, max_length=200, rng=0)
        pairs = list(itertools.product(range(language.n_types), range(1, language.max_depth + 1)))
        for size in range(len(pairs) + 1):
            for silent in itertools.combinations(pairs, size):
                layer = silence.silent_layer(language, silent, 0)
                try:
                    head = silence.memory_head(layer, language)
                    right = np.abs(head(layer.features(bags)) - bags.target).max() < 1e-9
                except ValueError:
                    right = False
                wrong.append(right != silence.may_be_silent(language, silent))
    return float(np.mean(wrong))


def silent_sets(runs: Runs, level: str) -> float:
    """Share of all sets of pairs of three languages for which `silence.may_be_silent` and what a layer does differ."""
    return _silent_sets()


def _family(language: DyckLanguage) -> list[Layer]:
    deepest = [(kind, language.max_depth) for kind in range(language.n_types)]
    one, other = (balance.balanced_layer(language, seed) for seed in range(2))
    silent = silence.silent_layer(language, deepest, 0)
    family = [one, other, silent]
    for layer in (one, silent):
        Z, V = np.array(layer.Z), np.array(layer.V)
        Z[language.close(0, 1), language.open(0, 1)] += 1
        V[language.close(0, 0)] *= 1.5
        family += [Layer(Z, layer.Y, layer.V), Layer(layer.Z, layer.Y, V)]
    return family


def _right_at_every_length(layer: Layer, language: DyckLanguage) -> bool:
    """Whether features of other continuations keep at least a tenth of their distance as 1000 pairs are inserted.

    If they do not, no continuous network behind them is right at every length. Pairs go wherever they can.
    """
    for _, d, prefixes in _stacks(language):
        before = _separation(layer, language, prefixes)
        for l, kind in itertools.product(range(min(d + 2, language.max_depth)), range(language.n_types)):
            inserted = [2 * kind, 2 * kind + 1] * 1000
            longer = [prefix[:l] + inserted + prefix[l:] for prefix in prefixes]
            if _separation(layer, language, longer) < 0.1 * before:
                return False
    return True


def _separation(layer: Layer, language: DyckLanguage, prefixes) -> float:
    """Smallest distance of the features of two prefixes that go on differently."""
    bags = language.bags(prefixes)
    features = layer.features(bags)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    return float(distances[np.abs(bags.target[:, None] - bags.target).max(axis=2) > 0].min())


def _nearest(sums: np.ndarray, prefixes) -> tuple[int, int]:
    """w* and w' of (17), by index: the smallest sum, and the smallest with another last unmatched type."""
    norms, last = np.linalg.norm(sums, axis=1), np.array([prefix[-3] for prefix in prefixes])
    first = int(norms.argmin())
    return first, int(np.where(last != last[first], norms, np.inf).argmin())


def approximate_balance(runs: Runs, level: str) -> float:
    """Violation of n S / P <= 1 + 2 gamma / tau by the trained layer, whose head is softmax(Y^T f).

    gamma is ||Y|| / 2, for softmax is 1/2-Lipschitz. tau is what the errors after n pairs leave of the distance of
    the two exact distributions. 1 where they leave nothing for any query and n, or where the squared loss is not small,
    above half of what the best constant output has: then nothing was shown.
    """
    language, layer = _trained(runs, level)
    scales = np.linalg.norm(balance.insertions(layer, language), axis=-1)
    gamma = np.linalg.norm(layer.Y, 2) / 2
    ratios = []
    for j, d, prefixes in _stacks(language):
        if language.n_types == 1 or _share_of_loss(runs.setting, layer) > 0.5:
            continue
        sums = _sums(layer, language, prefixes)
        chosen = _nearest(sums, prefixes)
        P, S = np.linalg.norm(sums[chosen[1]]), scales[language.close(j, d), j, 0]
        for n in (1, 2, 5, 10, 100):
            bags = language.bags([[2 * j, 2 * j + 1] * n + prefixes[index] for index in chosen])
            errors = np.linalg.norm(layer.predict(bags) - bags.target, axis=1)
            tau = np.linalg.norm(bags.target[0] - bags.target[1]) - errors.sum()
            if tau > 0:
                ratios.append(n * S / P / (1 + 2 * gamma / tau))
    return max(0.0, float(max(ratios)) - 1) if ratios else 1.0


def _share_of_loss(setting: Any, layer: Layer) -> float:
    """The layer's squared distance from the exact distributions, in units of that of the best constant output."""
    bags = setting.language.enumerate(max_length=setting.max_length)
    outputs = np.stack([layer.predict(bags), np.broadcast_to(bags.weight @ bags.target, bags.target.shape)])
    own, constant = ((outputs - bags.target) ** 2).sum(axis=2) @ bags.weight
    return float(own / constant)


def attained_bound(runs: Runs, level: str) -> float:
    """Distance of n S / P from 1 + 2 gamma / tau, relative, where Theorem 2 leaves no room.

    Two stacks have opposite values, a pair adds what is orthogonal to both, and the best head, whose gamma / tau is one
    over the distance of the two features, reads them.
    """
    language, n = DyckLanguage(2, 2), 10_000
    V = np.zeros((language.n_states, 3))
    for kind, sign in ((0, 1.0), (1, -1.0)):
        V[language.open(kind, 1), 0], V[language.close(kind, 0), 0] = sign, -sign
        V[language.open(kind, 2), 1] = 0.05
    layer = Layer(np.zeros((language.n_states,) * 2), np.zeros((3, language.n_brackets)), V)
    prefixes = [[0, 0, 1], [2, 0, 1]]
    P = np.linalg.norm(_sums(layer, language, prefixes), axis=1).max()
    S = np.linalg.norm(balance.insertions(layer, language)[language.close(0, 1), 0, 1])
    longer = [prefix[:1] + [0, 1] * n + prefix[1:] for prefix in prefixes]
    return float(abs(n * S / P / (1 + 2 / _separation(layer, language, longer)) - 1))


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


_MANY = 10**6  # copies of every pair


def _behind_a_link(language: DyckLanguage) -> tuple[Layer, dict[str, np.ndarray | None]]:
    """A balanced layer whose LN takes off the mean, and what may join what it gathers."""
    rng = np.random.default_rng(0)
    plain = balance.balanced_layer(language, rng)
    shape = np.shape(plain.V)
    links = {"any": rng.normal(size=shape), "ones": np.outer(rng.normal(size=shape[0]), np.ones(shape[1]))}
    return Layer(plain.Z, plain.Y, plain.V, center=True), {"none": None, **links}


def link_limit(runs: Runs, level: str) -> float:
    """n times the distance of what attention gathers for two stacks, n = 1e6, against its limit; nan without two."""
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    layer, _ = _behind_a_link(language)
    rows = gpt.gathered(layer, language, _MANY).values()
    pairs = itertools.combinations(range(language.n_types), 2)
    gaps = [np.linalg.norm(row[..., i, :] - row[..., j, :], axis=-1).max() for i, j in pairs for row in rows]
    return float(abs(_MANY * max(gaps) / gpt.closed_form(layer, language)[1] - 1))


def link_forgets(runs: Runs, level: str) -> float:
    """|exponent + 1| of the largest distance of two stacks behind a residual link, from n = 1e5 to 1e6."""
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    layer, links = _behind_a_link(language)
    last, end = (gpt.distances(layer, language, n, queries=links["any"]).max() for n in (_MANY // 10, _MANY))
    return float(abs(np.log10(end / last) + 1))


def link_projected_off(runs: Runs, level: str) -> float:
    """Relative change of the distances of stacks over n = 1e6, without a link and with one along the ones."""
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    layer, links = _behind_a_link(language)
    changes = []
    for name in ("none", "ones"):
        first, end = (gpt.distances(layer, language, n, queries=links[name]) for n in (0, _MANY))
        changes.append(np.abs(end / first - 1).max())
    return float(max(changes))
