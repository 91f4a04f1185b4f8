"""Intervals over seeds hold the truth as often as they say, where the numbers are normal."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from yzflow import intervals


def over_seeds(values):
    values = np.asarray(values, dtype=float)
    return xr.DataArray(values, dims=("cell", "seed")[2 - values.ndim :])


def test_standard_error_by_hand():
    """Of three values with standard deviation 1: 1/sqrt(3); of values that are all the same none; of one value nan."""
    found = intervals.standard_error(over_seeds([[1, 2, 3], [5, 5, 5], [2, np.nan, np.nan]]))
    assert found.dims == ("cell",)
    np.testing.assert_allclose(found, [1 / np.sqrt(3), 0, np.nan], rtol=1e-15)


def test_half_of_an_interval_by_hand():
    """1, 2, 3 have a standard deviation of 1; Student's t with 2 degrees is sqrt(2) c / sqrt(1 - c^2) at c = 0.95."""
    found = intervals.of_mean(over_seeds([[1, 2, 3], [5, 5, 5]]))
    assert found.dims == ("cell",)
    np.testing.assert_allclose(found, [np.sqrt(2) * 0.95 / np.sqrt(1 - 0.95**2) / np.sqrt(3), 0], rtol=1e-10)
    assert intervals.factor(3) == pytest.approx(4.302653, rel=1e-6)


@pytest.mark.parametrize(("n", "level"), [(2, 0.95), (5, 0.95), (20, 0.9)])
def test_the_factor_cuts_off_the_tails_of_student_s_density(n, level):
    nu = n - 1
    inside, _ = scipy.integrate.quad(lambda t: (1 + t**2 / nu) ** (-n / 2), 0, intervals.factor(n, level=level))
    whole, _ = scipy.integrate.quad(lambda t: (1 + t**2 / nu) ** (-n / 2), 0, np.inf)
    assert inside / whole == pytest.approx(level, rel=1e-7)


def test_missing_runs_are_left_out_and_one_run_has_no_interval():
    found = intervals.of_mean(over_seeds([[1, 2, 3, np.nan], [4, np.nan, np.nan, np.nan], [np.nan] * 4]))
    assert float(found[0]) == pytest.approx(float(intervals.of_mean(over_seeds([1, 2, 3]))), rel=1e-12)
    assert np.isnan(found[1:]).all()
    other = over_seeds([[1, 2, 3]]).rename(seed="run")
    assert float(intervals.of_mean(other, dim="run", level=0.5)[0]) == pytest.approx(
        intervals.factor(3, level=0.5) / 3**0.5
    )


@given(runs=st.integers(1, 60), data=st.data(), level=st.floats(0.5, 0.999))
def test_limits_of_a_share_are_those_at_which_so_many_are_just_as_rare_as_said(runs, data, level):
    """By the binomial law itself; the closed end is where nothing is rarer."""
    successes = data.draw(st.integers(0, runs))
    low, high = intervals.of_share(successes, runs, level=level)
    assert 0 <= low <= successes / runs <= high <= 1
    if successes:
        assert scipy.stats.binom.sf(successes - 1, runs, low) == pytest.approx((1 - level) / 2, rel=1e-6)
    if successes < runs:
        assert scipy.stats.binom.cdf(successes, runs, high) == pytest.approx((1 - level) / 2, rel=1e-6)
    assert (low == 0) == (successes == 0) and (high == 1) == (successes == runs)
