"""Rank correlations, their intervals, permutations and bootstrap, against exact counts and coverage."""

import itertools

import numpy as np
import pytest
import xarray as xr

from yzflow_studies.words_and_prefixes import ranks, study


def test_the_interval_of_a_rank_correlation_covers():
    """20,000 pairs of 20 normal numbers: about 5% of intervals miss the truth (standard error 0.15%).

    Somewhat fewer at 0, where the variance is 1 / (n - 3) in place of Spearman's 1 / (n - 1). Where the numbers'
    correlation is 0.8, that of orders is (6/pi) arcsin(0.4) for many, 0.786, and of 20 its mean is less: up to 8%.
    """
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 20_000, 20))
    for rho, least, most in ((0.0, 0.035, 0.05), (0.8, 0.04, 0.08)):
        pairs = (one, rho * one + np.sqrt(1 - rho**2) * other)
        orders = [values.argsort(axis=1).argsort(axis=1) - 9.5 for values in pairs]
        r = (orders[0] * orders[1]).sum(axis=1) / (orders[0] ** 2).sum(axis=1)
        low, high = ranks.rank_limits(r, 20)
        truth = 6 / np.pi * np.arcsin(rho / 2)
        assert least < np.mean((truth < low) | (truth > high)) < most
        found = ranks.rank_correlation(*(_seeds(values[7]) for values in pairs))
        assert found == pytest.approx((r[7], low[7], high[7]))


@pytest.mark.parametrize("n", [4, 5, 6, 8, 10])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_interval_of_a_rank_correlation_covers_for_few_runs(n, rho):
    """4000 samples of a few normal pairs: at least 93%, less five standard errors of 0.4% (6e-7 each).

    A perfect order has some chance then: an interval that is a point there holds the truth in 60% for n = 4, rho = 0.9.
    """
    one, other = np.random.default_rng(n).normal(size=(2, 4000, n))
    orders = [
        values.argsort(axis=1).argsort(axis=1) - (n - 1) / 2
        for values in (one, rho * one + np.sqrt(1 - rho**2) * other)
    ]
    r = (orders[0] * orders[1]).sum(axis=1) / (orders[0] ** 2).sum(axis=1)
    low, high = ranks.rank_limits(r, n)
    truth = 6 / np.pi * np.arcsin(rho / 2)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93 - 5 * 0.004
    assert (high - low > 0.01).all()


def _seeds(values):
    return xr.DataArray(values, dims="seed", coords={"seed": np.arange(len(values))})


def test_a_rank_correlation_goes_by_order_and_is_undefined_without_one():
    numbers = _seeds(np.arange(6.0))
    up, down = (ranks.rank_correlation(numbers, sign * numbers**3) for sign in (1, -1))
    assert up.value == 1 and down.value == -1 and (up.sign, down.sign) == (1, -1)
    flat = ranks.rank_correlation(numbers, 0 * numbers)
    assert np.isnan(flat.value) and flat.sign == 0 and str(flat) == "undefined"
    with pytest.raises(ValueError, match="`one` must have at least four runs, but got 3"):
        ranks.rank_correlation(numbers[:3], numbers[:3])
    assert study.interval(_seeds(np.array([1.0, 2.0, 3.0]))) == pytest.approx((2, 4.302653 / np.sqrt(3)), rel=1e-6)


def test_the_share_of_orders_is_that_of_all_orders():
    """Six runs have 720 orders; two numbers are equal."""
    rng = np.random.default_rng(1)
    one, other = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 4.0]), rng.normal(size=6)
    r = abs(ranks.rank_correlation(_seeds(one), _seeds(other)).value)
    each = [
        ranks.rank_correlation(_seeds(one[list(order)]), _seeds(other)) for order in itertools.permutations(range(6))
    ]
    exact = np.mean([abs(found.value) >= r - 1e-9 for found in each])
    found = ranks.permutation_p(_seeds(one), _seeds(other), resamples=20_000)
    assert found == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(20_000))
    assert ranks.permutation_p(_seeds(one), _seeds(one), resamples=999) < 0.02


def test_the_bootstrap_draws_seeds_and_all_their_runs():
    rng = np.random.default_rng(2)
    seeds = rng.normal(size=30)
    x = xr.DataArray(seeds + np.array([[0.0], [100.0]]), dims=("weight", "seed"), coords={"seed": np.arange(30)})
    y = xr.DataArray(-seeds + np.array([[0.0], [100.0]]), dims=("weight", "seed"), coords={"seed": np.arange(30)})
    # Within a weight -1, and the weights in order: r = 1 - 2 (n^2 - 1) / (4 n^2 - 1), as every draw of seeds has it but
    # for equal ones.
    limits = ranks.bootstrap_limits(x, y.transpose("seed", "weight"), resamples=500)
    assert limits == pytest.approx([1 - 2 * 899 / 3599] * 2, abs=0.02)
    one = _seeds(rng.normal(size=20))
    assert ranks.bootstrap_limits(one, one, resamples=200) == pytest.approx((1, 1))
    low, high = ranks.bootstrap_limits(one, _seeds(rng.normal(size=20)), resamples=500)
    assert low < 0.2 and high > -0.2 and high - low > 0.5


@pytest.mark.slow
def test_bootstrap_intervals_of_twenty_runs_hold_the_truth_nearly_as_often_as_they_say():
    """80 samples, 100 draws each, of correlation 0: 95% is 0.85 to 0.99 with room for both errors."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(80):
        low, high = ranks.bootstrap_limits(*(_seeds(values) for values in rng.normal(size=(2, 20))), resamples=100)
        held.append(low <= 0 <= high)
    assert 0.85 < np.mean(held) < 0.99


@pytest.mark.parametrize("function", [ranks.permutation_p, ranks.bootstrap_limits])
def test_few_or_broken_runs_are_refused(function):
    numbers = _seeds(np.arange(6.0))
    with pytest.raises(ValueError, match="`one` must have at least four seeds, but got 3"):
        function(numbers[:3], numbers[:3])
    with pytest.raises(ValueError, match="`one` must be finite"):
        function(numbers.where(numbers > 0), numbers)
    with pytest.raises(ValueError, match="`resamples` must be"):
        function(numbers, numbers, resamples=0)
