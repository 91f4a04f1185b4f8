"""Sequence classes: the paper's data sets, overlaps, token kinds and sampling."""

import numpy as np
import pytest
import reference
import scipy.sparse
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import SequenceClasses


def test_syn_small_is_the_one_of_the_paper():
    classes = SequenceClasses.syn_small()
    table = classes.probabilities.toarray()
    assert (classes.n_classes, classes.n_tokens, classes.vocab_size) == (2, 30, 34)
    np.testing.assert_array_equal(classes.query, [30, 31])
    np.testing.assert_array_equal(classes.query_tokens, [30, 31])
    np.testing.assert_array_equal(classes.class_weights, [0.5, 0.5])
    np.testing.assert_array_equal(classes.common_tokens, np.arange(10))
    np.testing.assert_array_equal(classes.distinct_tokens(0), np.arange(10, 20))
    np.testing.assert_array_equal(classes.distinct_tokens(1), np.arange(20, 30))
    # Ten times 1 and 0.1 + 0.2 + .. + 1 = 5.5.
    np.testing.assert_allclose(table[:, :10], 1 / 15.5, rtol=1e-14)
    np.testing.assert_allclose(table[0, [10, 13, 19]], [0.1 / 15.5, 0.4 / 15.5, 1 / 15.5], rtol=1e-14)
    np.testing.assert_allclose(table[1, [20, 23, 29]], [0.1 / 15.5, 0.4 / 15.5, 1 / 15.5], rtol=1e-14)
    assert (table[0, 20:] == 0).all()
    assert (table[1, 10:20] == 0).all()
    # Squares: ten common of 1, and 0.01 + 0.04 + .. + 1 = 3.85 distinct.
    np.testing.assert_allclose(classes.overlap(), [[1, 10 / 13.85], [10 / 13.85, 1]], rtol=1e-14)


@pytest.mark.parametrize(("n_queries", "vocab_size"), [(1, 33), (3, 79), (5, 125), (10, 240)])
def test_syn_medium_is_the_one_of_the_paper(n_queries, vocab_size):
    """M = 10 + 10 K + L + K with K = 2 L."""
    classes = SequenceClasses.syn_medium(n_queries)
    assert (classes.n_classes, classes.vocab_size) == (2 * n_queries, vocab_size)
    assert classes.n_tokens == 10 + 20 * n_queries
    np.testing.assert_array_equal(classes.common_tokens, np.arange(10))
    np.testing.assert_array_equal(np.bincount(classes.query)[-n_queries:], 2)
    np.testing.assert_array_equal(classes.query[:2], 10 + 20 * n_queries)
    for n in range(classes.n_classes):
        own = classes.distinct_tokens(n)
        np.testing.assert_array_equal(own, 10 + 10 * n + np.arange(10))
        np.testing.assert_allclose(classes.probabilities.toarray()[n, own], np.arange(1, 11) / 10 / 15.5, rtol=1e-14)


def test_single_common_token_by_hand():
    classes = SequenceClasses.single_common_token(3, 7, common=2, distinct=[3, 1])
    expected = np.zeros((3, 7))
    expected[:, 0] = 2 / 6
    expected[[0, 1, 2], [1, 3, 5]] = 3 / 6
    expected[[0, 1, 2], [2, 4, 6]] = 1 / 6
    np.testing.assert_allclose(classes.probabilities.toarray(), expected, rtol=1e-15)
    assert classes.vocab_size == 7
    np.testing.assert_array_equal(classes.query, 0)
    np.testing.assert_array_equal(classes.common_tokens, [0])
    np.testing.assert_array_equal(classes.distinct_tokens(1), [3, 4])
    overlap = np.full((3, 3), 4 / 14)
    np.fill_diagonal(overlap, 1)
    np.testing.assert_allclose(classes.overlap(), overlap, rtol=1e-14)


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(strategies.SEEDS))
    shape = (draw(st.integers(2, 5)), draw(st.integers(1, 7)))
    table = rng.exponential(size=shape) * (rng.random(shape) < 0.5)
    table[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] += 0.1
    return table / table.sum(axis=1, keepdims=True)


@given(tables())
def test_token_kinds_and_overlap_against_brute_force(table):
    classes = SequenceClasses(table, np.zeros(len(table), dtype=int))
    omega = [[n for n in range(len(table)) if table[n, token] > 0] for token in range(table.shape[1])]
    assert classes.common_tokens.tolist() == [token for token, seen in enumerate(omega) if len(seen) > 1]
    for n in range(len(table)):
        assert classes.distinct_tokens(n).tolist() == [token for token, seen in enumerate(omega) if seen == [n]]
    for n, row in enumerate(table):
        for m, other in enumerate(table):
            expected = (row @ other) / np.sqrt((row @ row) * (other @ other))
            assert classes.overlap()[n, m] == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(tables(), st.sampled_from(["csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array"]))
def test_sparse_probabilities_are_the_dense_ones_and_stay_untouched(table, kind):
    rows, columns = table.shape
    # Zeros are stored too: dropping them in place would change the caller's matrix.
    stored = table.ravel(), np.tile(np.arange(columns), rows), columns * np.arange(rows + 1)
    sparse = getattr(scipy.sparse, kind)(scipy.sparse.csr_array(stored, shape=table.shape))
    before = sparse.toarray(), sparse.nnz
    classes = SequenceClasses(sparse, np.zeros(len(table), dtype=int))
    np.testing.assert_array_equal(classes.probabilities.toarray(), table)
    np.testing.assert_array_equal(sparse.toarray(), before[0])
    assert sparse.nnz == before[1]


@given(strategies.sequence_classes())
def test_population_has_a_bag_for_each_class(classes):
    data = classes.population()
    assert len(data) == classes.n_classes == data.n_targets
    np.testing.assert_array_equal(data.target, np.arange(classes.n_classes))
    np.testing.assert_array_equal(data.weight, classes.class_weights)
    np.testing.assert_array_equal(reference.dense_counts(data), classes.probabilities.toarray())
    np.testing.assert_array_equal(classes.query_tokens[data.query], classes.query)
    assert data.vocab_size == classes.vocab_size
    np.testing.assert_allclose(
        reference.features(data, np.zeros((data.n_queries, data.n_tokens))).T
        @ reference.features(data, np.zeros((data.n_queries, data.n_tokens))),
        classes.overlap(),
        rtol=1e-12,
        atol=1e-15,
    )


@given(strategies.sequence_classes(), st.integers(2, 40), st.integers(1, 30), st.integers(0, 99))
def test_samples_are_sequences_of_their_class(classes, length, n, seed):
    data = classes.sample(n, length=length, rng=seed)
    counts = reference.dense_counts(data)
    table = classes.probabilities.toarray()
    assert len(data) == n
    np.testing.assert_array_equal(counts.sum(axis=1), length - 1)
    np.testing.assert_array_equal(counts, np.round(counts))
    assert not counts[table[data.target] == 0].any()
    np.testing.assert_array_equal(classes.query_tokens[data.query], classes.query[data.target])
    np.testing.assert_allclose(data.weight, 1 / n, rtol=1e-15)
    again = classes.sample(n, length=length, rng=np.random.default_rng(seed))
    for name in ("query", "target", "indptr", "token", "count"):
        np.testing.assert_array_equal(getattr(data, name), getattr(again, name))


def test_samples_have_the_law_of_all_sequences():
    """Chi square over all bags of three tokens that a class can have; false alarm once in 1e4 seeds."""
    table = np.array([[0.5, 0.3, 0.2, 0, 0], [0.25, 0.05, 0, 0.7, 0], [0, 0.1, 0.3, 0.2, 0.4]])
    classes = SequenceClasses(table, [0, 1, 1], class_weights=[0.2, 0.3, 0.5])
    law, seen, n = classes.all_sequences(length=4), classes.sample(20_000, length=4, rng=7).merge(), 20_000
    found = {(b, *row): w for b, row, w in zip(seen.target, reference.dense_counts(seen), seen.weight, strict=True)}
    drawn = [n * found.pop((b, *row), 0) for b, row in zip(law.target, reference.dense_counts(law), strict=True)]
    rare = n * law.weight < 5
    cells = np.array([drawn, n * law.weight])
    cells = np.column_stack([cells[:, ~rare], cells[:, rare].sum(axis=1)])
    assert not found and len(law) > 30
    assert scipy.stats.chi2.sf(((cells[0] - cells[1]) ** 2 / cells[1]).sum(), cells.shape[1] - 1) > 1e-4
