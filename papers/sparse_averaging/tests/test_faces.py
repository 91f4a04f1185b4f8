"""The dimension that all sets need, and least errors in the unit ball, against brute force and other routes."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import averaging, measures_faces
from yzflow_sparse_averaging.attention_unit import attention_weights


@given(st.integers(2, 9), st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_a_lost_set_is_at_a_point_of_two_hulls(n, q, seed, whole):
    q, rng = min(q, n - 1), np.random.default_rng(seed)
    m = averaging.least_dimension(n, q) - 1
    if m == 0:
        return
    keys = rng.integers(-3, 4, (n, m)) if whole else rng.normal(size=(n, m))
    lost = averaging.lost_set(keys, q)
    exact = [[Fraction(number) for number in row] for row in keys.tolist()]
    points = [[sum(w * exact[i][e] for i, w in part.items()) for e in range(m)] for part in (lost.inside, lost.outside)]
    assert points[0] == points[1] and sum(lost.inside.values()) == sum(lost.outside.values()) == 1
    assert min([*lost.inside.values(), *lost.outside.values()]) > 0
    assert set(lost.inside) <= set(lost.subset.tolist()) and not set(lost.inside) & set(lost.outside)
    assert len(set(lost.subset.tolist())) == q
    off = sum((w for i, w in lost.outside.items() if i not in lost.subset), Fraction(0))
    assert lost.share == off >= Fraction(n - q, n - 1)
    assert lost.error >= 2 / (3 * q) - 1e-12 or 2 * q > n
    assert lost.error >= 1 / q - 1e-12 or n < 3 * q
    # No query comes below the error, at any temperature.
    queries = rng.normal(size=(200, m)) * np.geomspace(0.1, 100, 200)[:, None]
    errors = np.abs(attention_weights(queries, keys.astype(float)) - np.isin(np.arange(n), lost.subset) / q).sum(axis=1)
    assert errors.min() >= lost.error - 1e-9


@pytest.mark.parametrize(("n", "q"), [(n, q) for n in range(2, 7) for q in range(1, n)])
def test_the_least_dimension_by_all_sets(n, q):
    m = averaging.least_dimension(n, q)
    keys = averaging.every_set_keys(n, q)
    assert keys.shape == (n, m)
    for subset in itertools.combinations(range(n), q):
        scores = keys @ averaging.every_set_query(n, q, list(subset))
        inside = {int(scores[i]) for i in subset}
        assert len(inside) == 1 and max(scores[i] for i in range(n) if i not in subset) < inside.pop()
    # By linear programs over all sets, random keys of one dimension fewer lose one; of as many on a curve, none.
    if m > 1:
        few = np.random.default_rng(n).normal(size=(n, m - 1))
        gaps = [measures_faces.largest_gap(few, np.array(y)) for y in itertools.combinations(range(n), q)]
        assert min(gaps) < 1e-9


def test_keys_that_are_larger_than_floats_lose_a_set_too():
    """Four numbers on a line, q = 1: any inner one is a mean of two others, at every scale."""
    lost = averaging.lost_set([[10**400], [0], [3 * 10**400], [Fraction(1, 3)]], 1)
    assert lost.subset.tolist() == [0] and lost.outside == {1: Fraction(2, 3), 2: Fraction(1, 3)}


def test_least_errors_of_a_share():
    assert averaging.least_error_of_sets(1, 4) == pytest.approx(1 / 4)
    assert averaging.least_error_of_sets(0.5, 4) == pytest.approx(2 / 12)
    for share in (0.1, 0.3, 0.7):
        x = 4 * averaging.least_error_of_sets(share, 4) / 2
        assert 1 - x == pytest.approx(x**share * (1 + x) ** (1 - share))


def forced_in_ball(kernel, n, q, d):
    """The error that a kernel of three dimensions forces: a grid of directions, then the best of them by descent."""
    from scipy.optimize import minimize

    def error(t):
        z = (kernel @ t).reshape(n, d)
        sums = [np.linalg.norm(z[list(y)].sum(axis=0)) for y in itertools.combinations(range(n), q)]
        return -max(sums) / np.linalg.norm(z, axis=1).max() / q

    starts = np.random.default_rng(0).normal(size=(200, kernel.shape[1]))
    best = sorted(starts, key=error)[:3]
    return -min(minimize(error, start, method="Nelder-Mead").fun for start in best)


@pytest.mark.parametrize(("n", "q", "width"), [(3, 2, 3), (3, 1, 3), (4, 3, 5), (4, 2, 5)])
def test_random_layers_err_by_the_bound_in_the_ball(n, q, width):
    low, high = averaging.ball_error(n, q, width=width, value_dimension=2)
    assert low <= high
    for seed in range(3):
        kernel = np.linalg.qr(np.random.default_rng(seed).normal(size=(2 * n, 2 * n - width)))[0]
        assert forced_in_ball(kernel, n, q, 2) >= low - 1e-6


def test_where_the_ball_is_known():
    assert averaging.ball_error(3, 2, width=3, value_dimension=2) == (0.5, 0.5)  # the layer of the cube errs by .577
    for n, q, d, k in itertools.product(range(2, 7), range(1, 6), (1, 2, 3), range(18)):
        if q < n and k < n * d:
            low, high = averaging.ball_error(n, q, width=k, value_dimension=d)
            cube = averaging.collision_error(n, q, width=k, value_dimension=d)
            known = d == 1 or q in (1, n - 1) or k >= d * (n - 1) or k < d
            assert low == pytest.approx(high) == pytest.approx(cube) if known else cube / d**0.5 <= low <= high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.lost_set(np.eye(4), 1), "`keys` must have fewer than 2 numbers"),
        (lambda: averaging.lost_set([[np.nan], [1.0], [0.0], [2.0]], 1), "`keys` must be finite"),
        (lambda: averaging.lost_set([1.0, 2.0], 1), "`keys` must be an"),
        (
            lambda: averaging.lost_set([["a"], [1], [2]], 1),
            "`keys` must hold integers, .* but got 'a'",
        ),
        (lambda: averaging.lost_set([[1j], [1], [2]], 1), "`keys` must hold integers, fractions or floats"),
        (lambda: averaging.least_error_of_sets(1.5, 1), "`share` must be at most 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
