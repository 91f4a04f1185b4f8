"""The steps of DOP853: its coefficients, and the same steps as scipy takes."""

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given
from hypothesis import strategies as st

from dynamics._engine import dop853, tableau
from dynamics._engine.dop853 import Called, Dop853

SCIPY = scipy.integrate.DOP853


def oscillator(n, seed=0):
    """A flow without symmetry, dy/ds = 0.3 sin(s) + tanh(B y) - y/2 with B of n coupled neighbours."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, n))

    def rate(s, y):
        return 0.3 * np.sin(s) + np.tanh(left * np.roll(y, 1) + right * np.roll(y, -1)) - 0.5 * y

    return rate, rng.normal(size=n)


def called(rate, size, **given):
    def bind(state, out):
        def evaluate(s):
            out[:] = rate(s, state)

        return evaluate

    return Called(bind, size, **given)


def ours(rate, initial, end, *, large=None, **tolerances):
    return Dop853(called(rate, initial.size, large=large), end, initial, **tolerances)


def test_the_coefficients_are_those_of_scipy():
    n = tableau.STAGES
    np.testing.assert_array_equal(tableau.A[:n, :n], SCIPY.A)
    np.testing.assert_array_equal(tableau.A[n, :n], SCIPY.B)
    np.testing.assert_array_equal(tableau.A[n + 1 :], SCIPY.A_EXTRA)
    np.testing.assert_array_equal(np.r_[tableau.C[:n], tableau.C[n + 1 :]], np.r_[SCIPY.C, SCIPY.C_EXTRA])
    for name in ("E3", "E5", "D"):
        np.testing.assert_array_equal(getattr(tableau, name), getattr(SCIPY, name))
    for table in (tableau.A, tableau.E3, tableau.E5, tableau.D):  # shared by all runs of a process
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = 1


def test_the_coefficients_meet_conditions_of_order():
    """Without scipy: sum_j A_kj = c_k; sum b c^q = 1/(q + 1) up to q = 7; the error estimates vanish on constants."""
    A, b, c = tableau.A[: tableau.STAGES], tableau.A[tableau.STAGES, : tableau.STAGES], tableau.C[: tableau.STAGES]
    np.testing.assert_allclose(tableau.A.sum(axis=1), tableau.C, atol=1e-14)
    np.testing.assert_allclose([b @ c**q for q in range(8)], 1 / np.arange(1.0, 9.0), rtol=1e-13)
    assert abs(b @ c**8 - 1 / 9) > 1e-6  # of order 8 and no more
    np.testing.assert_allclose(b @ (A[:, : tableau.STAGES] @ c**3), 1 / 20, rtol=1e-13)
    np.testing.assert_allclose([tableau.E5.sum(), tableau.E3.sum()], 0, atol=1e-14)


@pytest.mark.parametrize("n", [1, 3, 40, 333])
@pytest.mark.parametrize(("end", "rtol", "atol"), [(30.0, 1e-8, 1e-10), (4.0, 1e-3, 1e-3), (0.1, 1e-12, 1e-14)])
def test_steps_are_those_of_scipy_to_the_last_bit(n, end, rtol, atol):
    rate, initial = oscillator(n)
    one, other = ours(rate, initial, end, rtol=rtol, atol=atol), SCIPY(rate, 0.0, initial, end, rtol=rtol, atol=atol)
    count = 0
    while other.status == "running":
        assert (one.advance(), other.step()) == (None, None)
        assert one.s == other.t
        np.testing.assert_array_equal(one.state, other.y)
        within = np.linspace(other.t_old, other.t, 4)
        np.testing.assert_array_equal(one.interpolate(within), other.dense_output()(within).T)
        count += 1
    assert one.s == end
    assert count >= 2


@given(n=st.integers(1, 60), seed=st.integers(0, 2**32), log_rtol=st.floats(-8, -3), end=st.floats(0.1, 20))
def test_large_states_take_the_same_steps_but_for_rounding(n, seed, log_rtol, end):
    rate, initial = oscillator(n, seed)
    small, large = (
        ours(rate, initial, end, large=large, rtol=10**log_rtol, atol=10**log_rtol) for large in (False, True)
    )
    while small.s < end:
        assert (small.advance(), large.advance()) == (None, None)
        # The error of a step is a small difference of slopes: rounding is 1e-16 of these and 1e-8 of it.
        np.testing.assert_allclose(large.s, small.s, rtol=1e-5)
    np.testing.assert_allclose(large.state, small.state, atol=10**log_rtol * 0.01)


@pytest.mark.parametrize("n", [1, 7, 2047, 2048, 2049, 5000])
def test_sums_over_stages_of_large_states(n):
    """Of any size, also where a block of the kernels is not full."""
    rate, initial = oscillator(n)
    moments, shares, found = 0.3 * tableau.C, np.linspace(0, 1, 5)[:, None], []
    for large in (False, True):
        one = called(rate, n, large=large)
        one.tolerate(1e-8, 1e-9)
        one.at(0, 0.0, initial)
        errors = one.step(moments, 0.3, initial)
        states = one.within(moments, 0.3, initial, one.new)(shares)
        found.append((np.array([one.new, *states]), np.sqrt(np.array(errors) / n)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12, atol=1e-13)
    # Errors are small differences of slopes of order one: what rounding leaves is 1e-16 of 1e-9.
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-6, atol=1e-5)


def test_a_state_counts_as_large_by_its_size(monkeypatch):
    rate, initial = oscillator(50)
    assert not called(rate, initial.size).ends
    monkeypatch.setattr(dop853, "LARGE", 50)
    assert called(rate, initial.size).ends


def test_tolerances_finer_than_numbers_are_said():
    rate, initial = oscillator(3)
    with pytest.warns(UserWarning, match="rtol = 1e-15 is finer than numbers are: 2.2e-14 is used"):
        ours(rate, initial, 1.0, rtol=1e-15, atol=1e-15)


def test_a_rate_that_ends_ends_the_steps():
    """dy/ds = y^2 from 1 has no solution beyond s = 1, which is the reason that is given."""
    steps = ours(lambda s, y: y**2, np.ones(1), 2.0, rtol=1e-8, atol=1e-10)
    with np.errstate(all="ignore"):
        while (reason := steps.advance()) is None:
            pass
    assert "spacing between numbers" in reason or "no longer finite" in reason
    assert abs(steps.s - 1) < 1e-6
    assert np.isfinite(steps.state).all()
