"""Sets that exclusion fails on, found by local search; the linear program has a certificate for them."""

import numpy as np
import pytest
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from yzflow_studies.random_keys.hard_sets import harder_set, worst_case_dimension


def test_search_finds_sets_that_are_harder_than_the_tabulated_ones():
    n, q = 64, 3
    found = worst_case_dimension(n, q, seed=0, starts=4, steps=120)
    most = int(16 * q * np.log(n) + 200)  # columns of the keys that m are taken of
    assert found.tabulated == averaging.smallest_dimension(n, q, rng=np.random.default_rng(0), maximum=most)
    assert found.tabulated < found.searched and found.failing
    keys = averaging.random_keys(n, most, rng=np.random.default_rng(0)) * np.sqrt(most)
    for dimension, subset, rho in found.failing:
        assert found.tabulated <= dimension < found.searched
        few = keys[:, :dimension] / np.sqrt(dimension)
        with pytest.raises(averaging.Infeasible):
            averaging.certificate(few, subset)
        exact = averaging.certificate(few, subset, method="linear program")
        assert exact.rho == pytest.approx(rho, abs=1e-9) and rho < 0.5


def test_the_search_never_makes_a_set_easier():
    keys = averaging.random_keys(80, 60, rng=np.random.default_rng(3))
    start = tasks.adversarial_subsets(keys, 3)[0]
    before = averaging.certificate(keys, start).query
    subset, found = harder_set(keys, start, rng=np.random.default_rng(4), steps=60)
    assert len(set(subset.tolist())) == 3 and (np.diff(subset) > 0).all()
    assert found.query is None or found.query @ found.query >= before @ before
    again, _ = harder_set(keys, start, rng=np.random.default_rng(4), steps=0)
    np.testing.assert_array_equal(again, start)


def test_with_orthogonal_keys_no_set_is_hard():
    subset, found = harder_set(np.eye(12), [1, 5], rng=np.random.default_rng(0), steps=50)
    assert found.rho == 0 and found.query @ found.query == pytest.approx(2)
    assert subset.size == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: harder_set(np.eye(3), [0, 1, 2], rng=np.random.default_rng(0)), "`start` must be smaller"),
        (lambda: harder_set(np.eye(3), [0], rng=1), "`rng` must be a numpy.random.Generator"),
        (lambda: worst_case_dimension(8, 2, starts=0), "`starts` must be at least 1, but got 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
