"""Bags: construction, merging, mixing and files."""

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, Layer

ARRAYS = ("query", "target", "indptr", "token", "count", "weight")


def some_layer(data):
    rng = np.random.default_rng(0)
    return Layer(rng.normal(size=(data.n_queries, data.n_tokens)), rng.normal(size=(data.n_tokens, data.vocab_size)))


def assert_same(one, other):
    assert one.sizes == other.sizes
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


def test_csr_form_by_hand():
    data = Bags.from_dense([1, 0], [2, 0], [[0, 3, 1], [2, 0, 0]], [0.25, 0.75])
    np.testing.assert_array_equal(data.indptr, [0, 2, 3])
    np.testing.assert_array_equal(data.token, [1, 2, 0])
    np.testing.assert_array_equal(data.count, [3, 1, 2])
    assert data.sizes == {"n_queries": 2, "n_tokens": 3, "vocab_size": 3}
    assert (len(data), data.hard, data.n_targets) == (2, True, 3)
    np.testing.assert_array_equal(data.joint(), [[0, 0.75], [0, 0], [0.25, 0]])


def test_default_weights_are_uniform_and_sizes_may_be_larger():
    data = Bags([0, 0], [0, 1], [0, 1, 2], [0, 2], [1.0, 1.0], n_queries=3, n_tokens=7, vocab_size=9)
    np.testing.assert_array_equal(data.weight, [0.5, 0.5])
    assert data.sizes == {"n_queries": 3, "n_tokens": 7, "vocab_size": 9}
    assert data.n_targets == 2


def test_soft_targets_by_hand():
    data = Bags.from_dense([0, 0], [[0.5, 0.5, 0], [0, 0.1, 0.9]], [[1], [2]], [0.4, 0.6], vocab_size=5)
    assert not data.hard
    assert (data.n_targets, data.vocab_size) == (3, 5)
    np.testing.assert_allclose(data.joint(), [[0.2, 0], [0.2, 0.06], [0, 0.54]], rtol=1e-15)


@given(strategies.bags())
def test_dense_counts_survive(data):
    again = Bags.from_dense(data.query, data.target, reference.dense_counts(data), data.weight, **data.sizes)
    assert_same(again, data)


@given(strategies.bags(soft=False))
def test_certain_soft_targets_are_hard_ones(data):
    soft = Bags(
        data.query,
        np.eye(data.n_targets)[data.target],
        data.indptr,
        data.token,
        data.count,
        data.weight,
        **data.sizes,
    )
    layer = some_layer(data)
    assert layer.loss(soft) == pytest.approx(layer.loss(data), rel=1e-13)
    np.testing.assert_allclose(layer.gradient(soft).Z, layer.gradient(data).Z, atol=1e-14)
    np.testing.assert_array_equal(soft.joint(), data.joint())


@given(strategies.bags())
def test_joint_is_a_distribution(data):
    np.testing.assert_allclose(
        data.joint(), (reference.dense_targets(data) * data.weight[:, None]).T[: data.n_targets], rtol=1e-15
    )
    assert data.joint().sum() == pytest.approx(1, rel=1e-12)


@given(strategies.bags(), st.lists(st.integers(0, 5), min_size=1, max_size=12), strategies.SEEDS)
def test_merge_joins_exactly_the_equal_bags_and_keeps_the_loss(data, copies, seed):
    index = np.array(copies) % len(data)
    weight = np.random.default_rng(seed).dirichlet(np.ones(index.size))
    repeated = Bags.from_dense(
        data.query[index], data.target[index], reference.dense_counts(data)[index], weight, **data.sizes
    )
    merged = repeated.merge()
    rows = {}
    for b, counts in enumerate(reference.dense_counts(repeated)):
        key = (int(repeated.query[b]), tuple(np.atleast_1d(repeated.target[b])), tuple(counts))
        rows[key] = rows.get(key, 0) + weight[b]
    assert len(merged) == len(rows)
    for b, counts in enumerate(reference.dense_counts(merged)):
        key = (int(merged.query[b]), tuple(np.atleast_1d(merged.target[b])), tuple(counts))
        assert merged.weight[b] == pytest.approx(rows.pop(key), rel=1e-13)
    assert merged.sizes == repeated.sizes
    layer = some_layer(data)
    assert layer.loss(merged) == pytest.approx(layer.loss(repeated), rel=1e-12)


@given(strategies.bags(soft=False), strategies.bags(soft=False), st.integers(1, 9), st.integers(0, 9))
def test_loss_of_a_mixture_is_the_mixture_of_the_losses(one, other, share, other_share):
    mixture = Bags.concatenate([one, other], [share, other_share])
    assert mixture.sizes == {name: max(one.sizes[name], other.sizes[name]) for name in one.sizes}
    layer = some_layer(mixture)
    expected = (share * layer.loss(one) + other_share * layer.loss(other)) / (share + other_share)
    assert layer.loss(mixture) == pytest.approx(expected, rel=1e-12)
    by_size = (len(one) * layer.loss(one) + len(other) * layer.loss(other)) / (len(one) + len(other))
    assert layer.loss(Bags.concatenate([one, other])) == pytest.approx(by_size, rel=1e-12)


@given(strategies.bags())
def test_file_holds_the_bags(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bags") / "bags.npz"
    data.save(path)
    assert_same(Bags.load(path), data)


def test_arrays_are_copies_and_read_only():
    count = np.ones(2)
    data = Bags([0, 0], [0, 1], [0, 1, 2], [0, 0], count)
    count[0] = 5
    assert data.count[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data.weight[0] = 1
    with pytest.raises(AttributeError):
        data.weight = None


@given(strategies.SEEDS)
def test_pairs_have_one_query_each_and_keep_everything_else(seed):
    """The pair says both: with the query, the old next token comes back; what never occurs stays as many."""
    rng = np.random.default_rng(seed)
    n, queries, size = int(rng.integers(1, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    query, target = rng.integers(queries, size=n), rng.integers(size, size=n)
    words = [f"word {i}" for i in range(size + 2)]
    bags = Bags.from_dense(query, target, rng.integers(1, 3, (n, 3)), vocab_size=size + 2, class_names=words)
    found = bags.pairs()
    met = sorted(set(zip(query.tolist(), target.tolist(), strict=True)))
    assert [met[pair] for pair in found.target] == list(zip(query, target, strict=True))
    assert found.vocab_size - len(met) == bags.vocab_size - np.unique(target).size
    assert list(found.class_names) == [f"word {old} after {asked}" for asked, old in met]
    for name in ("query", "indptr", "token", "count", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(bags, name))
    assert found.pairs().target.tolist() == found.target.tolist()
