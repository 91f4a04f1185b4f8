"""Observables of attention: against scipy, against loops over the definitions, and on trajectories."""

import numpy as np
import pytest
import reference
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import SequenceClasses, observables, sgd


@st.composite
def attentions(draw):
    """Rows of attention with zeros, in up to two leading axes, and a mask of any size, none and all included."""
    leading = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    rng = np.random.default_rng(draw(strategies.SEEDS))
    size = draw(st.integers(1, 7))
    values = rng.dirichlet(np.full(size, draw(st.sampled_from([0.05, 1.0]))), leading)
    values = np.where(rng.random(values.shape) < 0.3, 0.0, values)
    mask = rng.random((*leading[-1:], size)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return values, mask


# Entropy


@given(attentions())
def test_entropy_is_that_of_scipy(case):
    """On the mask, renormalised; nan where nothing is there."""
    values, mask = case
    on_mask, whole = observables.entropy(values, mask), observables.entropy(values)
    assert on_mask.shape == whole.shape == values.shape[:-1]
    masks = np.broadcast_to(mask, values.shape)
    for at in np.ndindex(values.shape[:-1]):
        for result, shares in ((on_mask[at], values[at][masks[at]]), (whole[at], values[at])):
            if shares.sum() > 0:
                # scipy normalises too
                assert result == pytest.approx(scipy.stats.entropy(shares), abs=1e-13)
                assert -1e-15 <= result <= np.log(shares.size) + 1e-13
            else:
                assert np.isnan(result)


# Recall


@given(attentions(), st.lists(st.floats(-0.1, 1.1), max_size=4))
def test_recall_counts_tokens(case, thresholds):
    """Against a loop over tokens; an attention that equals the threshold is not above it."""
    values, mask = case
    thresholds = [*thresholds, float(values.flat[0])]
    shares = observables.recall(values, mask, thresholds)
    assert shares.shape == (*values.shape[:-1], len(thresholds))
    masks = np.broadcast_to(mask, values.shape)
    for at in np.ndindex(values.shape[:-1]):
        own = [value for value, inside in zip(values[at], masks[at], strict=True) if inside]
        for i, threshold in enumerate(thresholds):
            if own:
                assert shares[at][i] == pytest.approx(sum(value > threshold for value in own) / len(own), rel=1e-15)
            else:
                assert np.isnan(shares[at][i])


def test_recall_takes_a_scalar_and_a_table_of_thresholds():
    values, mask = np.array([[0.1, 0.4, 0.5], [0.3, 0.3, 0.4]]), np.array([[True, True, False], [True, True, True]])
    np.testing.assert_array_equal(observables.recall(values, mask, 0.35), [0.5, 1 / 3])
    table = observables.recall(values, mask, [[0.0, 0.35], [0.45, 1.0]])
    np.testing.assert_array_equal(table, [[[1, 0.5], [0, 0]], [[1, 1 / 3], [0, 0]]])
    assert observables.recall(values[0], mask[0], 0.35) == 0.5
    # NaN is above nothing; the pairs of a support have groups of their own.
    unclear = np.array([[np.nan, 0.4, np.inf, 0.3, -np.inf]])
    found = observables.recall(unclear, np.ones(5, bool), [0.5, 0.3], np.array([0, 2, 5]))
    np.testing.assert_array_equal(found, [[[0, 0.5], [1 / 3, 1 / 3]]])


# Masks and expected attention


@given(strategies.bags(), st.integers(0, 2))
def test_distinct_mask_follows_the_definition(bags, extra):
    """Omega(l), the next tokens with which l has positive probability, by loops; |Omega(l)| = 1."""
    targets, counts = reference.dense_targets(bags), reference.dense_counts(bags)
    present = [n for n in range(bags.vocab_size) if (bags.weight * targets[:, n]).sum() > 0]
    expected = np.zeros((len(present), bags.n_tokens + extra), dtype=bool)
    for token in range(bags.n_tokens):
        omega = {
            n
            for n in present
            for b in range(len(bags))
            if bags.weight[b] > 0 and targets[b, n] > 0 and counts[b, token] > 0
        }
        for row, n in enumerate(present):
            expected[row, token] = omega == {n}
    np.testing.assert_array_equal(observables.distinct_mask(bags, bags.n_tokens + extra), expected)
    np.testing.assert_array_equal(observables.distinct_mask(bags), expected[:, : bags.n_tokens])


@given(strategies.sequence_classes())
def test_distinct_mask_is_that_of_the_classes(classes):
    mask = observables.distinct_mask(classes.population())
    for n in range(classes.n_classes):
        np.testing.assert_array_equal(np.flatnonzero(mask[n]), classes.distinct_tokens(n))


@given(st.data())
def test_expected_attention_is_the_mean_given_the_next_token(draws):
    """c_n = E[c | n] by loops over bags, for hard and soft targets."""
    bags = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(bags))
    present, attention = observables.expected_attention(layer, bags)
    targets, counts = reference.dense_targets(bags), reference.dense_counts(bags)
    for n in range(bags.vocab_size):
        weight = bags.weight * targets[:, n]
        assert (n in present) == (weight.sum() > 0)
        if n in present:
            terms = [w * reference.attend(c, layer.Z[q]) for w, c, q in zip(weight, counts, bags.query, strict=True)]
            np.testing.assert_allclose(attention[present == n][0], sum(terms) / weight.sum(), rtol=1e-12, atol=1e-15)


# On trajectories


@pytest.fixture(scope="module")
def trajectory():
    """Five recorded states; next token 2 has no distinct token."""
    table = [[0.3, 0.5, 0.2, 0, 0], [0.4, 0, 0, 0.6, 0], [1.0, 0, 0, 0, 0]]
    classes = SequenceClasses(table, [0, 1, 1], vocab_size=7)
    return sgd(classes, eta_y=1.0, eta_z=2.0, steps=40, batch_size=16, length=20, record_every=10)


def test_observables_of_a_trajectory(trajectory):
    """Entropy and recall of each state and class from the layer of that state, with their labels."""
    thresholds = [0.0, 0.1, 0.3, 0.9]
    own, whole = trajectory.attention_entropy(), trajectory.attention_entropy("all")
    recall = trajectory.recall(thresholds)
    assert own.dims == whole.dims == ("time", "next_token")
    assert recall.dims == ("time", "next_token", "threshold")
    np.testing.assert_array_equal(recall["threshold"], thresholds)
    np.testing.assert_array_equal(own["time"], [0, 10, 20, 30, 40])
    distinct = [[1, 2], [3], []]
    probabilities = np.array([[0.3, 0.5, 0.2, 0, 0], [0.4, 0, 0, 0.6, 0], [1.0, 0, 0, 0, 0]])
    for i in range(5):
        Z = trajectory.dataset["z"].values[i]
        for n, query in enumerate((0, 1, 1)):
            c = reference.attend(probabilities[n], Z[query])
            at = {"time": 10 * i, "next_token": n}
            assert whole.sel(at).item() == pytest.approx(scipy.stats.entropy(c), abs=1e-12)
            if not distinct[n]:
                assert np.isnan(own.sel(at).item()) and np.isnan(recall.sel(at)).all()
                continue
            assert own.sel(at).item() == pytest.approx(scipy.stats.entropy(c[distinct[n]]), abs=1e-12)
            share = [(c[distinct[n]] > threshold).mean() for threshold in thresholds]
            np.testing.assert_array_equal(recall.sel(at), share)
    assert (np.diff(recall.isel(next_token=slice(2)), axis=-1) <= 0).all()


def test_surviving_tokens(trajectory):
    c = trajectory.dataset["attention"].values[-1]
    assert trajectory.surviving_tokens(0, 0.0).tolist() == [1, 2]
    between = (c[0, 1] + c[0, 2]) / 2
    assert trajectory.surviving_tokens(0, between).tolist() == [1 if c[0, 1] > c[0, 2] else 2]
    assert trajectory.surviving_tokens(0, c[0, 1:3].max()).tolist() == []  # above, not at
    assert trajectory.surviving_tokens(1, 0.0).tolist() == [3]
    assert trajectory.surviving_tokens(2, -1.0).tolist() == []
