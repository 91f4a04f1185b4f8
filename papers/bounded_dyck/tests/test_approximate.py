"""Theorem 2 on given layers: pairs that outputs bear, and what the loss leaves of their distance, by other routes."""

import itertools
import math

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, approximate, balance
from yzflow_bounded_dyck.proofs import cross_entropy

from dynamics import Layer, sgd

LANGUAGE = DyckLanguage(2, 3)


def random_layer(seed, *, language=LANGUAGE, hidden=0, center=False, size=1.0):
    rng = np.random.default_rng(seed)
    states, rows = language.n_states, hidden or 5
    parts = {"hidden": rng.normal(size=(6, hidden))} if hidden else {}
    Y = size * rng.normal(size=(rows, language.n_brackets))
    return Layer(rng.normal(size=(states, states)), Y, rng.normal(size=(states, 5)), center=center, **parts)


def test_what_stays_of_a_pair():
    balanced = balance.balanced_layer(LANGUAGE, 0)
    assert approximate.miss(balanced, LANGUAGE) < 1e-12
    opens, closes = balance.pairs(LANGUAGE)
    for close, left in (([1.0, 0.0], 1.0), ([0.0, 1.0], math.sqrt(0.5)), ([-0.5, 0.0], 1 / 3)):
        V = np.ones((LANGUAGE.n_states, 2))
        V[opens.ravel()], V[closes.ravel()] = (1.0, 0.0), close
        layer = Layer(np.zeros((LANGUAGE.n_states,) * 2), np.zeros((2, 4)), V)
        assert approximate.miss(layer, LANGUAGE) == pytest.approx(left, rel=1e-12)


@given(strategies.SEEDS, st.sampled_from([0, 7]))
def test_the_head_changes_no_faster_than_its_lipschitz_constant(seed, hidden):
    layer, rng = random_layer(seed, hidden=hidden), np.random.default_rng(seed)
    u = rng.normal(size=(2, 5))
    features = u / np.linalg.norm(u, axis=1, keepdims=True)
    outputs = approximate._outputs(layer, u)
    most = approximate.lipschitz(layer) * np.linalg.norm(features[0] - features[1])
    assert np.linalg.norm(outputs[0] - outputs[1]) <= most * (1 + 1e-12)


def test_the_lipschitz_constant_of_softmax_is_attained():
    step, Y = 1e-4, np.array([[1.0, -1.0], [0.0, 0.0]])
    layer = Layer(np.zeros((1, 1)), Y, np.ones((1, 2)))
    outputs = approximate._outputs(layer, np.array([[np.sin(step), np.cos(step)], [-np.sin(step), np.cos(step)]]))
    assert np.linalg.norm(outputs[0] - outputs[1]) == pytest.approx(approximate.lipschitz(layer) * 2 * step, rel=1e-6)


@pytest.mark.parametrize(("hidden", "center"), [(0, True), (7, False)])
def test_pairs_that_outputs_bear_are_those_of_longer_prefixes(hidden, center):
    """By the layer on the prefixes themselves, up to 11 pairs; Theorem 2 allows them all."""
    share, seen = 0.3, set()
    for seed in range(3):
        layer = random_layer(seed, hidden=hidden, center=center, size=3.0)
        found = approximate.reach(layer, LANGUAGE, share=share)
        assert (found.found <= found.bound * (1 + 1e-9)).all()
        for (j, d), (i, level), most in zip(found.query, found.pair, found.found, strict=True):
            prefixes = [[2 * w for w in stack] + [2 * j, 2 * j + 1] for stack in itertools.product(range(2), repeat=d)]
            sizes = [sum_before(layer, prefix) for prefix in prefixes]
            first = int(np.argmin(sizes))
            others = [n for n, prefix in enumerate(prefixes) if prefix[d - 1] != prefixes[first][d - 1]]
            chosen = [prefixes[first], prefixes[min(others, key=sizes.__getitem__)]]
            far = [-1]
            for n in range(11):
                nest = [2 * i, 2 * i + 1] * n
                longer = [one[: level - 1] + nest + one[level - 1 :] for one in chosen]
                outputs = layer.predict(LANGUAGE.bags(longer))
                if np.linalg.norm(outputs[0] - outputs[1]) >= share * math.sqrt(2) / 2:
                    far.append(n)
            seen.add(far[-1])
            assert most > 10 or most == far[-1]
    assert len(seen) > 2


def test_what_pairs_leave_is_that_of_the_features_of_longer_prefixes():
    balanced = balance.balanced_layer(LANGUAGE, 1)
    assert approximate.kept_behind(balanced, LANGUAGE) == pytest.approx(1, abs=1e-9)
    language, n = DyckLanguage(2, 2), 7
    layer = random_layer(4, language=language)
    shares = []
    for j in range(2):
        before, *behind = (
            layer.features(language.bags([[2 * w, *pairs, 2 * j, 2 * j + 1] for w in range(2)]))
            for pairs in ([], [0, 1] * n, [2, 3] * n)
        )
        tops = (
            layer.features(language.bags([[*pairs, 2 * w, 2 * j, 2 * j + 1] for w in range(2)]))
            for pairs in ([0, 1] * n, [2, 3] * n)
        )
        shares += [np.linalg.norm(np.subtract(*one)) / np.linalg.norm(np.subtract(*before)) for one in (*behind, *tops)]
    assert approximate.kept_behind(layer, language, n) == pytest.approx(min(shares), rel=1e-9)
    assert np.isnan(approximate.kept_behind(balance.balanced_layer(DyckLanguage(1, 3), 0), DyckLanguage(1, 3)))


def sum_before(layer, prefix):
    """||u|| by hand, bracket by bracket."""
    states = LANGUAGE.state_sequence(prefix)
    V = layer.V - layer.V.mean(axis=1, keepdims=True) if layer.center else layer.V
    return np.linalg.norm(sum(np.exp(layer.Z[states[-1], state]) * V[state] for state in states))


@given(strategies.SEEDS, st.integers(2, 3), st.integers(2, 4), st.floats(0.01, 10))
def test_theorem_2_bounds_the_pairs_of_random_layers(seed, k, depth, size):
    language = DyckLanguage(k, depth)
    layer = random_layer(seed, language=language, size=size)
    found = approximate.reach(layer, language, share=0.2)
    assert (found.found <= found.bound * (1 + 1e-9)).all()
    assert len(found.found) == sum(k * k * min(d + 2, depth) for d in range(1, depth))


@given(strategies.SEEDS)
def test_excesses_are_losses_less_their_least(seed):
    layer, bags = random_layer(seed), LANGUAGE.enumerate(max_length=4)
    entropy = -sum(
        weight * sum(p * math.log(p) for p in row if p > 0)
        for weight, row in zip(bags.weight, bags.target, strict=True)
    )
    divergence, squares = approximate.excess(layer, bags)
    assert divergence == pytest.approx(layer.loss(bags) - entropy, rel=1e-9)
    assert squares == pytest.approx(bags.weight @ ((layer.predict(bags) - bags.target) ** 2).sum(axis=1), rel=1e-9)
    assert squares <= divergence


def divergence(p, o):
    return sum(a * math.log(a / b) for a, b in zip(p, o, strict=True) if a > 0)


def test_the_squared_distance_is_never_above_the_divergence_of_small_fractions():
    """All pairs of distributions of three entries in tenths; at two entries the ratio tends to one."""
    rows = [tuple(n / 10 for n in row) for row in itertools.product(range(11), repeat=3) if sum(row) == 10]
    for p, o in itertools.product(rows, rows):
        if all(b > 0 for a, b in zip(p, o, strict=True) if a > 0):
            assert math.dist(p, o) ** 2 <= divergence(p, o) + 1e-15
    near = (0.5, 0.5), (0.501, 0.499)
    assert math.dist(*near) ** 2 / divergence(*near) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.3, 0.02)])
def test_no_outputs_of_small_fractions_are_nearer_than_their_excess_leaves(weights):
    """Two exact distributions of two entries, and all outputs in thirtieths; half the error is refuted."""
    exact, parts = ((0.75, 0.25), (0.25, 0.75)), [n / 30 for n in range(1, 30)]
    tau, least = math.dist(*exact), math.inf
    for a, b in itertools.product(parts, parts):
        outputs = ((a, 1 - a), (b, 1 - b))
        spent = sum(w * divergence(p, o) for w, p, o in zip(weights, exact, outputs, strict=True))
        error = float(cross_entropy.error(spent, *weights))
        least = min(least, math.dist(*outputs) - (tau - error))
        half = tau - error / 2
        assert math.dist(*outputs) >= float(cross_entropy.separation(tau, spent, *weights)) - 1e-12
        least = min(least, math.dist(*outputs) - half)
    assert least < -0.1


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_prefixes_in_the_loss_are_those_of_all_that_look_alike(seed):
    """Prefixes counted one by one, each by its probability, and the bound written out again."""
    length, layer = 7, random_layer(seed, size=0.3)
    found = approximate.from_loss(layer, LANGUAGE, max_length=length)
    weight: dict = {}
    for size in range(1, length + 1):
        for prefix in LANGUAGE.prefixes(size):
            states = LANGUAGE.state_sequence(prefix)
            name = (states[-1], tuple(sorted(states)))
            weight[name] = weight.get(name, 0) + math.exp(LANGUAGE.log_probability(prefix)) / length
    excess = approximate.excess(layer, LANGUAGE.enumerate(max_length=length))[0]
    rows = iter(zip(*found, strict=True))
    for j, d in itertools.product(range(2), (1, 2)):
        prefixes = [[2 * w for w in stack] + [2 * j, 2 * j + 1] for stack in itertools.product(range(2), repeat=d)]
        sizes = [sum_before(layer, prefix) for prefix in prefixes]
        first = int(np.argmin(sizes))
        others = [n for n, prefix in enumerate(prefixes) if prefix[d - 1] != prefixes[first][d - 1]]
        second = min(others, key=sizes.__getitem__)
        for i, above in itertools.product(range(2), range(min(d + 2, 3))):
            for n in range(1, (length - d - 2) // 2 + 1):
                pairs = [2 * i, 2 * i + 1] * n
                states = [
                    LANGUAGE.state_sequence(prefixes[one][:above] + pairs + prefixes[one][above:])
                    for one in (first, second)
                ]
                one, other = (weight[row[-1], tuple(sorted(row))] for row in states)
                row = next(rows)
                assert row[0] == n
                least = math.sqrt(2) / 2 - math.sqrt(excess * (1 / one + 1 / other))
                assert row[1] == pytest.approx(least, rel=1e-9)
                assert row[2] >= row[1]
                u = [
                    np.exp(layer.Z[LANGUAGE.close(j, d), state]) * layer.V[state]
                    for state in (LANGUAGE.open(i, above + 1), LANGUAGE.close(i, above))
                ]
                assert row[4] == pytest.approx(np.linalg.norm(u[0] + u[1]) / sizes[second], rel=1e-9)
    assert next(rows, None) is None


@pytest.mark.slow
def test_a_layer_trained_to_near_its_least_loss_is_bounded_by_it(monkeypatch):
    """One whose loss says something, which random layers have not; a bound that forgets the weights is refuted."""
    language, rng = DyckLanguage(2, 2), np.random.default_rng(0)
    states = language.n_states
    start = Layer(
        np.zeros((states, states)),
        rng.normal(size=(24, 4)) / 5,
        rng.normal(size=(states, 8)) / 3,
        hidden=np.vstack([1.4 * rng.normal(size=(8, 24)), np.zeros(24)]),
    )
    run = sgd(
        language.enumerate(max_length=5), eta_y=0.01, eta_z=0.01, steps=3000, batch_size=None, length=None, init=start,
        optimizer="adam", record_every=3000,
    )  # fmt: skip
    found = approximate.from_loss(run.final, language, max_length=5)
    assert (found.least > 0.3).all()
    assert (found.distance >= found.least).all() and (found.ratio <= found.bound).all()
    monkeypatch.setattr(cross_entropy, "separation", lambda tau, *others: tau * 1.01)
    assert (approximate.from_loss(run.final, language, max_length=5).least > found.distance).any()


def test_two_prefixes_by_hand():
    language = DyckLanguage(2, 2)
    bags = language.bags([[0, 0, 1], [2, 0, 1], [0]], weight=[0.25, 0.25, 0.5])
    layer = random_layer(3, language=language, size=0.2)
    outputs = layer.predict(bags)
    least, distance = approximate.kept_apart(layer, bags)
    spent = sum(0.25 * divergence(bags.target[n], outputs[n]) for n in (0, 1))
    assert least.tolist() == pytest.approx([math.sqrt(2) / 2 - math.sqrt(spent * 8)], rel=1e-9)
    assert distance.tolist() == pytest.approx([math.dist(*outputs[:2])], rel=1e-9)


def test_refusals():
    layer = random_layer(0)
    with pytest.raises(ValueError, match=r"^`share` must be above 0 and at most 1, but got 1.5"):
        approximate.reach(layer, LANGUAGE, share=1.5)
    with pytest.raises(ValueError, match=r"^`language` must have at least two types and depths"):
        approximate.reach(layer, DyckLanguage(1, 3))
    with pytest.raises(ValueError, match=r"^`max_length` must leave room for one pair, 5 at least, but got 4"):
        approximate.from_loss(layer, LANGUAGE, max_length=4)
