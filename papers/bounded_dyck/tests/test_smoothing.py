"""Label smoothing: the closed forms against numbers by hand, losses of drawn labels, and a descent of our own."""

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, smoothing
from yzflow_bounded_dyck.proofs import cross_entropy
from yzflow_bounded_dyck.proofs import smoothing as proof

EPS = st.floats(0.01, 0.99)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def loss(target, z):
    return -target @ np.log(softmax(z))


def test_numbers_by_hand():
    np.testing.assert_allclose(smoothing.smoothed([0.5, 0.5, 0, 0], 0.2), [0.45, 0.45, 0.05, 0.05])
    assert smoothing.best_gap(0.5, 4, 0.2) == pytest.approx(np.log(9))
    assert smoothing.best_gap(0.0, 4, 0.2) == 0


@given(strategies.SEEDS, EPS, st.integers(2, 6))
def test_smoothed_targets_are_the_mean_of_smoothed_labels(seed, eps, m):
    p = np.random.default_rng(seed).dirichlet(np.ones(m))
    labels = np.full((m, m), eps / m) + (1 - eps) * np.eye(m)
    np.testing.assert_allclose(smoothing.smoothed(p, eps), p @ labels, atol=1e-12)


@given(strategies.SEEDS, EPS, st.integers(1, 3), st.floats(0.1, 0.9))
def test_no_logits_have_less_smoothed_loss_than_the_gaps_say(seed, eps, k, q):
    language = DyckLanguage(k, 3, q)
    for prefix in ([], [0], [0, 0, 0], [0, 0, 1]):
        p = language.next_token(prefix)
        target, z = smoothing.smoothed(p, eps), smoothing.best_gap(p, 2 * k, eps)
        rng = np.random.default_rng(seed)
        for size in (1e-3, 1.0, 10.0):
            assert loss(target, z + size * rng.normal(size=2 * k)) >= loss(target, z) - 1e-12
        np.testing.assert_allclose(softmax(z), target, atol=1e-12)


def test_descent_ends_at_the_gap_and_without_smoothing_does_not_end():
    p, z, plain = DyckLanguage(2, 3).next_token([0]), np.zeros(4), np.zeros(4)
    target = smoothing.smoothed(p, 0.1)
    gaps = []
    for step in range(4000):
        z, plain = z - (softmax(z) - target), plain - (softmax(plain) - p)
        if step in (1999, 3999):
            gaps.append(plain[p > 0].min() - plain[p == 0].max())
    assert z[p > 0].min() - z[p == 0].max() == pytest.approx(smoothing.best_gap(p[p > 0].min(), 4, 0.1), rel=1e-9)
    assert gaps[1] - gaps[0] > 0.5  # it grows like the logarithm of the steps


@given(strategies.SEEDS, st.floats(0.01, 1), st.integers(1, 3), st.integers(1, 4))
def test_the_network_has_the_smoothed_distribution_after_any_prefix(seed, eps, k, depth):
    language = DyckLanguage(k, depth, 0.3)
    layer = balance.balanced_layer(language, seed)
    network = smoothing.smoothed_head(layer, language, eps)
    bags = language.sample(20, max_length=100, rng=seed)
    found = np.array([softmax(row) for row in network(layer.features(bags))])
    np.testing.assert_allclose(found, (1 - eps) * bags.target + eps / (2 * k), atol=1e-9)
    assert np.abs(network.weights[2]).max() <= np.log(2 * k / eps) + 1e-12


@given(strategies.SEEDS, EPS)
def test_an_excess_of_the_smoothed_loss_leaves_outputs_apart(seed, eps):
    """Outputs at random: what they spend of the excess bounds how near they are."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4), 2)
    tau, weights = np.linalg.norm(p[0] - p[1]), rng.uniform(0.05, 0.5, 2)
    targets = smoothing.smoothed(p, eps)
    z = np.log(targets) + 0.5 * rng.normal(size=(2, 4))
    spent = sum(w * (loss(t, row) - loss(t, np.log(t))) for w, t, row in zip(weights, targets, z, strict=True))
    distance = np.linalg.norm(softmax(z[0]) - softmax(z[1]))
    assert np.linalg.norm(targets[0] - targets[1]) == pytest.approx((1 - eps) * tau)
    assert distance >= (1 - eps) * tau - float(cross_entropy.error(spent, *weights)) - 1e-12
    if spent <= float(proof.small_excess(tau, eps, *weights)):
        assert distance >= (1 - eps) * tau / 2 - 1e-12


@pytest.mark.parametrize("eps", [0, -0.1, 1.1, np.nan])
def test_smoothing_is_above_zero_and_at_most_one(eps):
    with pytest.raises(ValueError, match="`smoothing` must"):
        smoothing.smoothed([1.0, 0.0], eps)


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="`targets` must sum to one"):
        smoothing.smoothed([0.5, 0.4], 0.1)
    with pytest.raises(ValueError, match="`probability` must be at most 1"):
        smoothing.best_gap(1.5, 4, 0.1)
