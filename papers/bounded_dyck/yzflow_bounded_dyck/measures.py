"""Numerical checks of the bounded Dyck paper: each statement against trained or constructed layers.

Every function takes runs and a level and returns a relative error, or for an inequality its relative violation.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics import Layer
from theory.statements import Runs
from yzflow_bounded_dyck import DyckLanguage, approximate, balance, gpt, hypotheses, larger, silence, transformers
from yzflow_bounded_dyck._register.common import once
from yzflow_bounded_dyck._stacks import nearest, stacks, sums
from yzflow_bounded_dyck.proofs import cross_entropy, theorem2


def _trained(runs: Runs, level: str) -> tuple[DyckLanguage, Layer]:
    return runs.setting.language, runs.trajectory(level).final


def _normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def insertion_law(runs: Runs, level: str) -> float:
    """Features of the layer with 1000 inserted pairs against LN(u_0 + 1000 delta)."""
    language, layer = _trained(runs, level)
    delta = balance.insertions(layer, language)
    errors = []
    for j, d, prefixes in stacks(language):
        kind = (j + 1) % language.n_types
        longer = [[2 * kind, 2 * kind + 1] * 1000 + prefix for prefix in prefixes]
        found = layer.features(language.bags(longer))
        expected = sums(layer, language, prefixes) + 1000 * delta[language.close(j, d), kind, 0]
        errors.append(np.abs(found - _normalised(expected)).max())
    return float(max(errors, default=0.0))


def forgetting(runs: Runs, level: str) -> float:
    """Distance of two stacks behind n = 1000 matched pairs in the trained layer, against the proof's limit.

    Largest relative error of n ||f_n - f_n'|| against ||P (u - u')|| / ||delta||, where P projects off delta and f_n
    are the features after insertion. Over all queries, and all pairs of the levels that the prefixes of (16) reach. nan
    if no two stacks have the same query.
    """
    language, layer = _trained(runs, level)
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    n, delta, errors = 1000, balance.insertions(layer, language), []
    for j, d, prefixes in stacks(language):
        u = sums(layer, language, prefixes)
        chosen = nearest(u, prefixes)
        for i, above in itertools.product(range(language.n_types), range(min(d + 2, language.max_depth))):
            pairs, step = [2 * i, 2 * i + 1] * n, delta[language.close(j, d), i, above]
            bags = language.bags([prefixes[one][:above] + pairs + prefixes[one][above:] for one in chosen])
            features = layer.features(bags)
            apart, size = u[chosen[0]] - u[chosen[1]], np.linalg.norm(step)
            limit = np.linalg.norm(apart - step * (step @ apart) / size**2) / size
            errors.append(abs(n * np.linalg.norm(features[0] - features[1]) / limit - 1))
    return float(max(errors))


def pair_left(runs: Runs, level: str) -> float:
    """Share of a matched pair that does not cancel in the trained layer, against (14): `approximate.miss`."""
    language, layer = _trained(runs, level)
    return approximate.miss(layer, language)


def right_without_balance(runs: Runs, level: str) -> float:
    """Share of layers without (11), among the layers without zero values that are right at every length, k = 2.

    1 if there is no such layer.
    """
    layers = [row for row in right_and_balanced() if row["right"] and not row["silent"]]
    return float(np.mean([not row["(11)"] for row in layers])) if layers else 1.0


def right_against_live_balance(runs: Runs, level: str) -> float:
    """Share of layers, k = 2, for which "right" differs from "(14), and (11) for the pairs with values".

    1 if no layer with zero values is right.
    """
    layers = right_and_balanced()
    if not any(row["right"] and row["silent"] for row in layers):
        return 1.0
    return float(np.mean([row["right"] != (row["(14)"] and row["(11), live"]) for row in layers]))


def right_and_balanced() -> list[dict[str, bool]]:
    """Rows for 14 layers of two languages, balanced, unbalanced and partly silent: `right` and the conditions."""
    languages = (DyckLanguage(2, 2), DyckLanguage(2, 3))
    return [_row(layer, language) for language in languages for layer in _family(language)]


def one_type() -> dict[str, bool]:
    """A row of `right_and_balanced`, for a layer with one type of brackets that tells depths apart at every length."""
    language = DyckLanguage(1, 3)
    return _row(hypotheses.one_type_layer(language), language)


def _row(layer: Layer, language: DyckLanguage) -> dict[str, bool]:
    u, added = balance.contributions(layer, language), balance.insertions(layer, language)
    adds = np.abs(added[balance.queries(language).ravel()]).max()
    zero, live = np.abs(layer.V).max(axis=1) == 0, np.array(layer.Z)
    live[:, zero] = 0  # without logits, (11) holds for the silent pairs
    conditions = {
        "right": right_at_every_length(layer, language),
        "silent": zero.any(),
        "(11)": balance.residual(layer.Z, language) < 1e-9,
        "(11), live": balance.residual(live, language) < 1e-9,
        "(14)": adds < 1e-9 * np.abs(u).max(),
    }
    return {name: bool(value) for name, value in conditions.items()}


SILENT_RUN = (DyckLanguage(2, 1), DyckLanguage(2, 2), DyckLanguage(2, 3), DyckLanguage(3, 2), DyckLanguage(2, 4))


@once
def silent_sets() -> float:
    """Share of sets of pairs, in the languages of `SILENT_RUN`, whose layer contradicts `silence.may_be_silent`."""
    wrong = []
    for language in SILENT_RUN:
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


def right_at_every_length(layer: Layer, language: DyckLanguage) -> bool:
    """Whether features of prefixes with different continuations keep a tenth of their distance behind 1000 pairs.

    If they do not, no continuous network behind the features is right at every length. The test covers all queries and
    stacks, and pairs of each type and level, nested if the level is not the first.
    """
    prefixes = silence.stacks(language)
    before = _separation(layer, language, prefixes)
    for above, kind in itertools.product(range(language.max_depth), range(language.n_types)):
        nest = [2 * kind] * above + [2 * kind, 2 * kind + 1] * 1000 + [2 * kind + 1] * above
        if _separation(layer, language, [nest + prefix for prefix in prefixes]) < 0.1 * before:
            return False
    return True


def _separation(layer: Layer, language: DyckLanguage, prefixes) -> float:
    """Smallest distance of the features of two prefixes with different next-token distributions."""
    bags = language.bags(prefixes)
    features = layer.features(bags)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    return float(distances[np.abs(bags.target[:, None] - bags.target).max(axis=2) > 0].min())


def approximate_balance(runs: Runs, level: str) -> float:
    """Violation of S <= P (1 + 2 gamma / tau) / n by the trained layer, whose head is softmax(Y^T f).

    For all pairs of the levels that the prefixes of (16) reach. gamma is ||Y|| / 2, for softmax is 1/2-Lipschitz. tau
    is the distance of the two exact distributions minus the errors after n pairs. The result is 1, for nothing was
    shown, if tau is never positive, or if the squared loss exceeds half the loss of the best constant output.
    """
    language, layer = _trained(runs, level)
    if language.n_types == 1 or _share_of_loss(runs.setting, layer) > 0.5:
        return 1.0
    scales = np.linalg.norm(balance.insertions(layer, language), axis=-1)
    gamma = approximate.lipschitz(layer)
    ratios = []
    for j, d, prefixes in stacks(language):
        u = sums(layer, language, prefixes)
        chosen = nearest(u, prefixes)
        P = np.linalg.norm(u[chosen[1]])
        for i, above in itertools.product(range(language.n_types), range(min(d + 2, language.max_depth))):
            for n in (1, 2, 5, 10, 100):
                pairs = [2 * i, 2 * i + 1] * n
                bags = language.bags([prefixes[one][:above] + pairs + prefixes[one][above:] for one in chosen])
                errors = np.linalg.norm(layer.predict(bags) - bags.target, axis=1)
                tau = np.linalg.norm(bags.target[0] - bags.target[1]) - errors.sum()
                if tau > 0:
                    ratios.append(scales[language.close(j, d), i, above] / theorem2.bound(P, gamma, tau, n))
    return max(0.0, float(max(ratios)) - 1) if ratios else 1.0


def _share_of_loss(setting: Any, layer: Layer) -> float:
    """The layer's squared loss against the exact distributions, over the loss of the best constant output."""
    bags = setting.language.enumerate(max_length=setting.max_length)
    outputs = np.stack([layer.predict(bags), np.broadcast_to(bags.weight @ bags.target, bags.target.shape)])
    loss, constant = ((outputs - bags.target) ** 2).sum(axis=2) @ bags.weight
    return float(loss / constant)


def kept_apart(runs: Runs, level: str) -> float:
    """Violation of two bounds from the cross-entropy's excess, by the trained layer on all its training prefixes.

    First, the excess of the squared loss is at most the excess of the cross-entropy. Second, outputs after two prefixes
    with one query keep the distance that `approximate.kept_apart` computes from their excess. 1 if this distance is
    never positive, for nothing was shown.
    """
    language, layer = _trained(runs, level)
    bags = language.enumerate(max_length=runs.setting.max_length)
    divergence, squares = approximate.excess(layer, bags)
    least, distance = approximate.kept_apart(layer, bags)
    if not (least > 0).any():
        return 1.0
    return float(max(0.0, squares / divergence - 1, (1 - distance / least)[least > 0].max()))


@functools.cache
def _lattice() -> np.ndarray:
    """Divergence, sum of positive differences and squared distance of distributions in equal parts: (3, pairs)."""
    blocks = []
    for entries, parts in ((2, 400), (3, 12), (4, 7)):
        rows = np.array([row for row in itertools.product(range(parts + 1), repeat=entries) if sum(row) == parts])
        p, o = np.broadcast_arrays(rows[:, None] / parts, rows[None] / parts)
        chosen = ((p > 0) <= (o > 0)).all(axis=2) & (p != o).any(axis=2)  # finite, and not zero
        p, o = p[chosen], o[chosen]
        logs = np.log(np.where(p > 0, p, 1) / np.where(p > 0, o, 1))
        blocks.append([(p * logs).sum(axis=1), np.maximum(p - o, 0).sum(axis=1), ((p - o) ** 2).sum(axis=1)])
    return np.concatenate(blocks, axis=1)


def divergence_bounds(runs: Runs, level: str) -> float:
    """Distance from 1 of the largest ratios of the sides of ``KL >= 2 t^2 >= ||p - o||^2``; each attains equality.

    Over all pairs of distributions with entries in multiples of 1/400, 1/12 and 1/7, for two, three and four entries.
    """
    divergence, variation, squares = _lattice()
    first = (cross_entropy.two_entries(variation, 0.0) / divergence).max()
    second = (squares / cross_entropy.squared_distance(variation)).max()
    return float(max(abs(first - 1), abs(second - 1)))


def _opposite_stacks(added: dict[int, float]) -> tuple[DyckLanguage, Layer]:
    """A layer for two types with opposite values at level 1; pairs of deeper levels add an orthogonal vector."""
    language = DyckLanguage(2, 4)
    V = np.zeros((language.n_states, 3))
    for kind, sign in ((0, 1.0), (1, -1.0)):
        V[language.open(kind, 1), 0], V[language.close(kind, 0), 0] = sign, -sign
        for level, size in added.items():
            V[language.open(kind, level), 1] = size
    return language, Layer(np.zeros((language.n_states,) * 2), np.zeros((3, language.n_brackets)), V)


def attained_bound(runs: Runs, level: str) -> float:
    """Relative distance of S from the bound of Theorem 2 in a layer that attains it, for pairs of a reached level.

    Two stacks have opposite values, and a pair adds an orthogonal vector. The best head reads them: its gamma / tau is
    one over the distance of the two features.
    """
    n = 10_000
    language, layer = _opposite_stacks({2: 0.05})
    P, S, distances = _after_pairs(layer, language, n, (2,))
    return float(abs(S / theorem2.bound(P, 1, distances[0], n) - 1))


def attained_deeper(runs: Runs, level: str) -> float:
    """`attained_bound` for two pairs of level 4, behind prefixes that reach depth 2: level 3 is opened once.

    The opened pair of level 3 adds the opposite of a pair of level 4.
    """
    n, size = 2, 1000.0
    language, layer = _opposite_stacks({3: -size, 4: size * (1 + 1 / n)})
    P, S, distances = _after_pairs(layer, language, n, (3, 4))
    return float(abs(S / theorem2.deeper(theorem2.bound(P, 1, min(distances), n), n, 1) - 1))


def _after_pairs(layer: Layer, language: DyckLanguage, n: int, levels) -> tuple[float, float, list[float]]:
    """P; S of the last level; and the distance of the features after n pairs, for each level."""
    prefixes = [[0, 0, 1], [2, 0, 1]]
    P = np.linalg.norm(sums(layer, language, prefixes), axis=1).max()
    S = np.linalg.norm(balance.insertions(layer, language)[language.close(0, 1), 0, levels[-1] - 1])
    distances = []
    for deepest in levels:
        nest = [0] * (deepest - 2) + [0, 1] * n + [1] * (deepest - 2)
        distances.append(_separation(layer, language, [[prefix[0], *nest, *prefix[1:]] for prefix in prefixes]))
    return P, S, distances


def exact_predictions(runs: Runs, level: str) -> float:
    """Largest error of the next-token distribution of a layer with (11) at all queries, up to length 6 and at 500."""
    return _head_error(runs, scale=1.0)


def uniform_predictions(runs: Runs, level: str) -> float:
    """`exact_predictions` with uniform attention."""
    return _head_error(runs, scale=0.0)


def _head_error(runs: Runs, scale: float) -> float:
    language = runs.setting.language
    layer = balance.balanced_layer(language, 0, scale=scale)
    return _largest_error(language, layer, balance.exact_head(layer, language), Layer.features)


def _largest_error(language: DyckLanguage, layer: Layer, head: Callable, features: Callable) -> float:
    batches = (
        language.enumerate(min_length=0, max_length=6),
        language.sample(100, min_length=500, max_length=500, rng=0),
    )
    return float(max(np.abs(head(features(layer, bags)) - bags.target).max() for bags in batches))


def uniform_trained(runs: Runs, level: str) -> float:
    """`exact_predictions` for the outputs of a layer that was trained with uniform attention."""
    setting = dataclasses.replace(runs.setting, uniform=True)
    layer = setting.simulate(level, seed=0).final
    return _largest_error(setting.language, layer, lambda outputs: outputs, Layer.predict)


def linked_predictions(runs: Runs, level: str) -> float:
    """`exact_predictions` behind a residual link, for a layer with (11) at closing queries of depth 1 to D - 1 only."""
    language = runs.setting.language
    layer = hypotheses.balanced_at_closing_queries(language, 0)
    return _largest_error(language, layer, hypotheses.linked_head(layer, language), hypotheses.linked_features)


def deeper_predictions(runs: Runs, level: str) -> float:
    """Largest change of an exact Transformer's outputs by identity layers, three before it and three behind it."""
    language = runs.setting.language
    exact = larger.balanced_transformer(language, 0)
    others = [larger.deeper(exact, 3, 1), larger.deeper(exact, 3, 2, at=0)]
    batches = [tokens for tokens, _ in _texts(language)]
    return max(float(np.abs(one(tokens) - exact(tokens)).max()) for one in others for tokens in batches)


def wider_predictions(runs: Runs, level: str) -> float:
    """Largest error of the next-token distribution of an exact Transformer, after widening and deepening it."""
    language = runs.setting.language
    exact = larger.balanced_transformer(language, 0)
    wide, turn = larger.wider(exact, exact.width + 9, 1, attention=2, units=4)
    wide = larger.deeper(wide, 2, 2)
    found = [(wide(tokens @ turn) @ turn.T, target) for tokens, target in _texts(language)]
    return max(float(np.abs(one[..., : language.n_brackets] - target).max()) for one, target in found)


def wider_outputs(runs: Runs, level: str) -> float:
    """Largest distance of a random Transformer's rotated outputs from the wider one's, with and without a floor."""
    rng, errors = np.random.default_rng(0), []
    for floor in (0.0, 0.5):
        narrow = transformers.random_transformer(5, 3, [6], 2, rng, floor=floor)
        wide, turn = larger.wider(narrow, 12, rng, attention=2, units=4)
        tokens = rng.normal(size=(20, 7, 5))
        errors.append(np.abs(wide(tokens @ turn) - narrow(tokens) @ turn).max())
    return float(max(errors))


def _texts(language: DyckLanguage) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tokens and exact distributions at every position: of all prefixes of 6 brackets, and of one prefix of 500."""
    batches = (
        [prefix for prefix, _ in _prefixes(language, 6)],
        language.sample_sequences(1, min_length=500, max_length=500, rng=0),
    )
    texts = []
    for prefixes in batches:
        tokens = np.stack([larger.encoded(language, prefix) for prefix in prefixes])
        target = language.bags(prefixes, positions="all").target
        texts.append((tokens, target.reshape(*tokens.shape[:2], -1)))
    return texts


def _prefixes(language: DyckLanguage, length: int) -> list[tuple[list[int], list[int]]]:
    """All prefixes of a length, each with its unmatched types."""
    if length == 0:
        return [([], [])]
    found = []
    for prefix, stack in _prefixes(language, length - 1):
        if len(stack) < language.max_depth:
            found += [([*prefix, 2 * kind], [*stack, kind]) for kind in range(language.n_types)]
        if stack:
            found.append(([*prefix, 2 * stack[-1] + 1], stack[:-1]))
    return found


def encoded_predictions(runs: Runs, level: str) -> float:
    """`exact_predictions` on random encodings of all states, which have rank 2 k D + 1."""
    language = runs.setting.language
    encodings = np.random.default_rng(0).normal(size=(language.n_states, language.n_states + 2))
    layer = hypotheses.encoded_layer(balance.balanced_layer(language, 0), encodings)
    return _largest_error(language, layer, balance.exact_head(layer, language), Layer.features)


def values_violation(runs: Runs, level: str) -> float:
    """Balance violation of a layer with random attention under (11) and V_close = -exp(c) V_open.

    nan for one type or one depth, where the violation has no meaning.
    """
    language = runs.setting.language
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    Z = balance.balanced_layer(language, 0).Z
    V = balance.balancing_values(Z, language)
    return balance.violation(Layer(Z, np.zeros((V.shape[1], language.n_brackets)), V), language)


def no_attention(runs: Runs, level: str) -> float:
    """Largest change of the features under other attention logits, if all rows of V are equal."""
    language = runs.setting.language
    rng = np.random.default_rng(0)
    values = np.tile(rng.normal(size=3), (language.n_states, 1))
    bags = language.sample(100, max_length=50, rng=0)
    square = (language.n_states, language.n_states)
    one, other = (Layer(rng.normal(size=square), np.zeros((3, language.n_brackets)), values) for _ in range(2))
    return float(np.abs(one.features(bags) - other.features(bags)).max())


_MANY = 10**6  # copies of every pair


def _behind_a_link(language: DyckLanguage) -> tuple[Layer, dict[str, np.ndarray | None]]:
    """A balanced layer whose LN subtracts the mean, and residual links by name: vectors that join its mixtures."""
    rng = np.random.default_rng(0)
    plain = balance.balanced_layer(language, rng)
    shape = np.shape(plain.V)
    links = {"any": rng.normal(size=shape), "ones": np.outer(rng.normal(size=shape[0]), np.ones(shape[1]))}
    return Layer(plain.Z, plain.Y, plain.V, center=True), {"none": None, **links}


def link_limit(runs: Runs, level: str) -> float:
    """n times the distance of attention's mixtures for two stacks, n = 1e6, against its limit; nan for one stack."""
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
