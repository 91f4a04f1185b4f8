"""Assumption 2 as a predicate with margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import SequenceClasses
from theory import tokens


@given(st.integers(2, 12), st.floats(1e-3, 0.9), st.integers(0, 5000))
def test_equal_overlaps_have_the_eigenvalues_of_the_rank_one_form(n_classes, overlap, more):
    # E = rho (1 1^T - I) has eigenvalues (K - 1) rho once and -rho otherwise.
    matrix = np.full((n_classes, n_classes), overlap)
    np.fill_diagonal(matrix, 1.0)
    vocab_size = n_classes + more
    found = tokens.weak_correlation(matrix, vocab_size=vocab_size)
    assert found.largest == pytest.approx((n_classes - 1) * overlap)
    assert found.smallest == pytest.approx(overlap)
    assert found.upper_margin == pytest.approx(1 / (n_classes * (n_classes - 1) * overlap))
    assert found.lower_margin == pytest.approx(overlap * vocab_size**0.5 / 6)


def test_both_halves_hold_only_above_the_stated_vocabulary():
    # M > 36 K^2 (K - 1)^2 for equal overlaps: K = 3 needs M > 1296.
    for vocab_size, holds in ((1290, False), (1400, True)):
        middle = np.sqrt(6 / np.sqrt(vocab_size) / 6)
        matrix = np.full((3, 3), middle)
        np.fill_diagonal(matrix, 1.0)
        assert tokens.weak_correlation(matrix, vocab_size=vocab_size).holds is holds


def test_columns_are_alike_as_far_as_their_smallest_and_largest_numbers_are():
    assert tokens.alike(np.array([[0.2, 0.5], [0.1, 0.5]])) == pytest.approx(0.5)
    assert tokens.alike(np.array([[0.2, 0.0], [0.1, 0.5]])) == 0
    assert tokens.alike(np.array([[0.1 + 0.2, 0.0], [0.3, 0.0]])) >= 1
    assert tokens.alike(np.zeros((3, 0))) >= 1
    assert tokens.alike(np.array([[1.0], [1 - 1e-6]])) < 1


def test_probabilities_by_kind_of_token():
    classes = SequenceClasses([[0.5, 0.2, 0.3, 0, 0], [0.4, 0, 0, 0.6, 0], [0, 0, 0, 0, 1.0]], [0, 0, 0])
    np.testing.assert_array_equal(tokens.common_probabilities(classes), [[0.5], [0.4], [0]])
    np.testing.assert_array_equal(tokens.distinct_probabilities(classes), [[0.3, 0.2], [0.6, 0], [1, 0]])
    alone = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 0])
    np.testing.assert_array_equal(tokens.distinct_probabilities(alone), [[0], [0]])
