"""Numerical checks of several heads, of the residual link before LN, and of label smoothing."""

from __future__ import annotations

import itertools

import numpy as np
import scipy  # whose parts are imported where they are first used

from dynamics import Bags, Layer
from theory.statements import Runs
from yzflow_bounded_dyck import DyckLanguage, balance, from_tokens, gpt, heads, silence, smoothing
from yzflow_bounded_dyck._register.common import once

_FAR = 10**6  # copies of each mixture


def _batches(language: DyckLanguage) -> tuple[Bags, Bags]:
    """All prefixes to length 6, and 100 of 500."""
    return (
        language.enumerate(min_length=0, max_length=6),
        language.sample(100, min_length=500, max_length=500, rng=0),
    )


def _small(language: DyckLanguage) -> bool:
    return min(language.n_types, language.max_depth) < 2


def composed_predictions(runs: Runs, level: str) -> float:
    """Largest error of a transformer from tokens with uniform attention in both layers: to length 6, and at 500."""
    language = runs.setting.language
    model = from_tokens.token_transformer(language, 0, scale=0.0)
    prefixes = [list(one) for one in language.prefixes(6)]
    prefixes += language.sample_sequences(3, min_length=500, max_length=500, rng=0)
    errors = []
    for prefix in prefixes:
        target = language.bags([prefix[:n] for n in range(len(prefix) + 1)]).target
        errors.append(np.abs(model.distribution(prefix) - target).max())
    return float(max(errors))


def left_behind(runs: Runs, level: str) -> float:
    """n times the distance of the sum of three random heads from its limit, against its closed form, n = 1e6.

    With a link, behind mixtures of one to three kinds of pairs of level 1. Largest relative error.
    """
    language, rng = runs.setting.language, np.random.default_rng(0)
    if language.max_depth < 2:
        return np.nan
    states, k, D = language.n_states, language.n_types, language.max_depth
    many = [
        Layer(rng.normal(size=(states, states)), np.zeros((4, language.n_brackets)), rng.normal(size=(states, 4)))
        for _ in range(3)
    ]
    link, errors = rng.normal(size=(states, 4)), []
    for query, numbers in itertools.product(balance.queries(language).ravel(), ([1], [2, 1], [1, 0, 3])):
        if len(numbers) > k:
            continue
        shares = np.zeros((1, k, D))
        shares[0, : len(numbers), 0] = numbers
        limit = heads.left_of_pairs(many, language, shares, link=link)[0, query]
        once = np.zeros(states)
        once[[language.start, query, language.open(language.states[query].type, language.states[query].depth + 1)]] = 1
        once[language.open(0, np.arange(language.states[query].depth) + 1)] = 1
        pair = np.zeros(states)
        for kind, number in enumerate(numbers):
            pair[[language.open(kind, 1), language.close(kind, 0)]] = number
        total, rate = np.array(link[query]), np.zeros(4)
        for one in many:
            weight = np.exp(one.Z[query])
            u, z, delta, zeta = once * weight @ one.V, once @ weight, pair * weight @ one.V, pair @ weight
            total += (u + _FAR * delta) / (z + _FAR * zeta)
            rate += (u * zeta - z * delta) / zeta**2
        errors.append(np.linalg.norm(_FAR * (total - limit) - rate) / np.linalg.norm(rate))
    return float(max(errors))


@once
def right_leaves_nothing() -> float:
    """Share of families of heads, written by hand, whose being right differs from leaving nothing of mixed pairs."""
    return float(np.mean([row["right"] != row["nothing left"] for row in families()]))


def families() -> list[dict[str, bool]]:
    """Rows for heads of two languages: `right`; what each kind of pair leaves alone; what mixtures leave."""
    return [_row(language, *one) for language in (DyckLanguage(2, 2), DyckLanguage(2, 3)) for one in _family(language)]


def _family(language: DyckLanguage) -> list[tuple[list[Layer], np.ndarray | None]]:
    """Heads and links: balanced, shifted, opposite, without effect in each kind alone, random, with a constant more."""
    (plain,) = heads.shifted_heads(language, 1, 0)
    other = balance.balanced_layer(language, 5, decoder=False)
    rng, shape = np.random.default_rng(2), np.shape(plain.V)
    opens, closes = balance.pairs(language)
    kinds = np.zeros(shape)
    kinds[opens] = kinds[closes] = rng.normal(size=(*opens.shape, shape[1]))
    link = np.tile(rng.normal(size=shape[1]), (shape[0], 1))
    alone = [plain, Layer(plain.Z, plain.Y, kinds), Layer(other.Z, other.Y, -kinds)]
    together = [plain, Layer(other.Z, other.Y, kinds), Layer(other.Z, other.Y, -kinds)]
    noise = Layer(rng.normal(size=plain.Z.shape), plain.Y, rng.normal(size=shape))
    shifted = Layer(plain.Z, plain.Y, plain.V - link)
    return [
        ([plain], None),
        (heads.shifted_heads(language, 3, 3), None),
        ([plain, *heads.opposite_heads(language, shape[1], 4)], None),
        (together, None),
        (alone, None),
        ([plain, noise], None),
        ([shifted], None),
        ([shifted], link),
        ([plain], link),
    ]


def _row(language: DyckLanguage, found: list[Layer], link: np.ndarray | None) -> dict[str, bool]:
    chosen = balance.queries(language).ravel()
    mixtures = np.random.default_rng(0).uniform(size=(20, language.n_types, language.max_depth))
    size = max(np.abs(one.V).max() for one in found)

    def nothing(numbers: np.ndarray | None) -> bool:
        return bool(np.abs(heads.left_of_pairs(found, language, numbers, link=link)[:, chosen]).max() < 1e-9 * size)

    prefixes = silence.stacks(language)
    queries = np.array([language.state_sequence(prefix)[-1] for prefix in prefixes])
    counts = np.stack([_counts(language, prefix) for prefix in prefixes])
    targets = language.bags(prefixes).target
    kinds = [_nest(language, i, above) for above in range(language.max_depth) for i in range(language.n_types)]
    nests = [*kinds, *(one + other for one, other in itertools.combinations(kinds, 2))]
    before = _separation(_joined(found, link, queries, counts), targets)
    behind = min(_separation(_joined(found, link, queries, counts + nest), targets) for nest in nests)
    return {"right": behind > 0.01 * before, "nothing left": nothing(mixtures), "nothing left alone": nothing(None)}


def _counts(language: DyckLanguage, prefix) -> np.ndarray:
    """How often each state occurs, START among them."""
    return np.bincount(language.state_sequence(prefix), minlength=language.n_states).astype(float)


def _nest(language: DyckLanguage, kind: int, above: int) -> np.ndarray:
    """Counts of 10,000 pairs of a type, with the levels above them opened once."""
    empty, one, two = (
        _counts(language, [2 * kind] * above + [2 * kind, 2 * kind + 1] * n + [2 * kind + 1] * above) for n in range(3)
    )
    empty[language.start] -= 1
    return empty + 10_000 * (two - one)


def _joined(found: list[Layer], link: np.ndarray | None, queries: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Features from counts, straight from the definition of heads and link."""
    total = np.zeros((len(queries), np.shape(found[0].V)[1])) if link is None else link[queries]
    for one in found:
        weights = counts * np.exp(one.Z[queries])
        total = total + weights @ one.V / weights.sum(axis=1, keepdims=True)
    return total / np.linalg.norm(total, axis=1, keepdims=True)


def _separation(features: np.ndarray, targets: np.ndarray) -> float:
    """Smallest distance of the features of two prefixes with different next-token distributions."""
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    return float(distances[np.abs(targets[:, None] - targets).max(axis=2) > 0].min())


def unlike_heads(runs: Runs, level: str) -> float:
    """Largest spread of delta / zeta over kinds of pairs in exact heads of unlike masses, and what they leave.

    Three heads, each balanced up to a constant. The constants sum to zero, and are not zero.
    """
    language = runs.setting.language
    if _small(language):
        return np.nan
    found = heads.shifted_heads(language, 3, 0)
    constants, spread = heads.own_constants(found, language)
    if np.abs(constants).max() < 0.1:
        return 1.0
    return float(max(spread.max(), np.abs(constants.sum(axis=0)).max()))


def several_heads(runs: Runs, level: str) -> float:
    """Largest error of the distribution behind one, two and five heads that are balanced up to constants."""
    language, errors = runs.setting.language, []
    for n_heads in (1, 2, 5):
        found = heads.shifted_heads(language, n_heads, n_heads)
        network = heads.stack_head(found, language)
        errors += [np.abs(network(heads.features(found, bags)) - bags.target).max() for bags in _batches(language)]
    return float(max(errors))


def not_head_by_head(runs: Runs, level: str) -> float:
    """Largest error of the distribution of a balanced head beside two opposite ones; 1 if those have (11) or (14)."""
    language = runs.setting.language
    (balanced,) = heads.shifted_heads(language, 1, 0)
    pair = heads.opposite_heads(language, np.shape(balanced.V)[1], 1)
    if not _small(language):
        delta = balance.insertions(pair[0], language)[balance.queries(language).ravel()]
        if balance.residual(pair[0].Z, language) < 0.1 or np.linalg.norm(delta, axis=-1).max() < 0.1:
            return 1.0
    network = heads.stack_head([balanced], language)
    found = [
        np.abs(network(heads.features([balanced, *pair], bags)) - bags.target).max() for bags in _batches(language)
    ]
    return float(max(found))


def _shifted(language: DyckLanguage) -> tuple[Layer, Layer, np.ndarray]:
    """A balanced layer, the same with the values V - x, and a link with one vector x at every query."""
    (plain,) = heads.shifted_heads(language, 1, 0)
    vector = np.random.default_rng(1).normal(size=np.shape(plain.V)[1])
    return plain, Layer(plain.Z, plain.Y, plain.V - vector), np.tile(vector, (language.n_states, 1))


def shifted_predictions(runs: Runs, level: str) -> float:
    """Largest error behind a link with one vector, if the values that it shifts are balanced."""
    language = runs.setting.language
    plain, shifted, link = _shifted(language)
    network = heads.stack_head([plain], language)
    found = [
        np.abs(network(heads.features([shifted], bags, link=link)) - bags.target).max() for bags in _batches(language)
    ]
    return float(max(found))


def balanced_behind_a_link(runs: Runs, level: str) -> float:
    """A balanced layer's rest behind a link with one vector x, against x; and that of the shifted one."""
    language = runs.setting.language
    if _small(language):
        return np.nan
    plain, shifted, link = _shifted(language)
    chosen = balance.queries(language).ravel()
    wrong = heads.left_of_pairs([plain], language, link=link)[:, chosen] - link[chosen]
    right = heads.left_of_pairs([shifted], language, link=link)[:, chosen]
    return float(max(np.abs(wrong).max(), np.abs(right).max()))


def on_a_line(runs: Runs, level: str) -> float:
    """Largest change of features by 100 prefixes of 500, against the shortest with their query and stack.

    Of `gpt.layer_on_a_line`; 1 if it is no example: if (11) holds in it, or two stacks that go on differently have
    features within 1e-9.
    """
    language = runs.setting.language
    if _small(language):
        return np.nan
    layer, link = gpt.layer_on_a_line(language, 0)
    short, long = silence.stacks(language), language.sample_sequences(100, min_length=500, max_length=500, rng=0)
    rows, targets = heads.features([layer], language.bags(short), link=link), language.bags(short).target
    if balance.residual(layer.Z, language) < 0.1 or _separation(rows, targets) < 1e-9:
        return 1.0
    known = {_key(language, one): row for one, row in zip(short, rows, strict=True)}
    found = heads.features([layer], language.bags(long), link=link)
    return float(max(np.abs(row - known[_key(language, one)]).max() for one, row in zip(long, found, strict=True)))


def _key(language: DyckLanguage, prefix) -> tuple[int, ...]:
    """The query and the unmatched types."""
    return (int(language.state_sequence(prefix)[-1]), *language.stack(prefix))


def link_rate(runs: Runs, level: str) -> float:
    """n times the distances of stacks behind a link, n = 1e6, against the closed form; nan for one stack."""
    language = runs.setting.language
    if _small(language):
        return np.nan
    rng, n = np.random.default_rng(0), 10**6
    plain = balance.balanced_layer(language, rng)
    layer = Layer(plain.Z, plain.Y, plain.V, center=True)
    vectors = rng.normal(size=np.shape(plain.V))
    found, expected = n * gpt.distances(layer, language, n, queries=vectors), gpt.linked_rate(layer, language, vectors)
    return float(np.abs(found / expected - 1).max())


def smoothed_optimum(runs: Runs, level: str) -> float:
    """Gaps of logits that a minimiser finds for the smoothed cross-entropy, against the closed form, and its slope."""
    language, errors = runs.setting.language, []
    import scipy.optimize

    for eps, prefix in itertools.product((0.3, 0.1, 0.01), ([], [0])):
        p = language.next_token(prefix)
        if p.all():
            continue
        target = smoothing.smoothed(p, eps)

        def loss(logits, target=target):
            return scipy.special.logsumexp(logits) - target @ logits

        start = np.zeros(p.size)
        found = scipy.optimize.minimize(
            loss, start, jac=lambda z, target=target: scipy.special.softmax(z) - target, method="BFGS", tol=1e-10
        ).x
        gaps = found[p > 0] - found[p == 0].max()
        errors.append(np.abs(gaps / smoothing.best_gap(p[p > 0], p.size, eps) - 1).max())
    return float(max(errors))


def smoothed_predictions(runs: Runs, level: str) -> float:
    """Largest error of softmax behind the network with the logits ln p_eps, eps = 0.1, against the smoothed targets."""
    language = runs.setting.language
    layer = balance.balanced_layer(language, 0)
    network, errors = smoothing.smoothed_head(layer, language, 0.1), []
    for bags in _batches(language):
        outputs = scipy.special.softmax(network(layer.features(bags)), axis=1)
        errors.append(np.abs(outputs - smoothing.smoothed(bags.target, 0.1)).max())
    return float(max(errors))
