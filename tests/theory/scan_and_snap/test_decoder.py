"""theory.decoder against 60-digit arithmetic, numerical integration, and statements that are true of any decoder."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from theory import decoder

VOCABULARIES = [2, 50, 10**6]
RATES = [1e-3, 1e3]
# The specification asks for 1e-13; 2.5e-15 is the largest error seen.
RTOL = 5e-15

vocabularies = st.one_of(st.integers(2, 60), st.integers(2, 10**6))
times = st.floats(-12, 300).map(lambda e: 10.0**e)
rates = st.floats(-3, 3).map(lambda e: 10.0**e)
quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


@pytest.fixture(autouse=True)
def precision():
    with mp.workdps(60):
        yield


def exact_margin(tau, m):
    """x of expm1(x) + (M - 1) x = tau by Newton from above, which converges since the left side is convex."""
    x = min(tau / m, mp.log1p(tau))
    for _ in range(300):
        step = (mp.expm1(x) + (m - 1) * x - tau) / (mp.exp(x) + m - 1)
        x -= step
        if abs(step) <= abs(x) * mp.mpf(10) ** -50:
            return x
    raise AssertionError("the reference did not converge")


def exact(t, m, k, eta_y, eta_z=1.0):
    """h(t), gamma(t) and Gamma(t) to 50 digits."""
    t, eta_y, eta_z = mp.mpf(float(t)), mp.mpf(eta_y), mp.mpf(eta_z)
    with mp.workdps(60):
        h = exact_margin(m * eta_y * t, m) / m
        x = exact_margin(m * eta_y * t / k, m)
        gamma = mp.mpf(m - 1) ** 2 * x / m / (m - 1 + mp.exp(x))
        return h, gamma, eta_z * k * mp.mpf(m - 1) ** 2 * (x / m) ** 2 / (2 * eta_y)


def error(value, reference):
    return float(abs(mp.mpf(float(value)) / reference - 1))


def all_three(t, m, k, eta_y, eta_z):
    return (
        decoder.h(t, vocab_size=m, eta_y=eta_y),
        decoder.gamma(t, vocab_size=m, n_classes=k, eta_y=eta_y),
        decoder.gamma_integral(t, vocab_size=m, n_classes=k, eta_y=eta_y, eta_z=eta_z),
    )


@pytest.mark.parametrize("m", VOCABULARIES)
@pytest.mark.parametrize("eta_y", RATES)
def test_closed_forms_to_1e_13_over_the_whole_range(m, eta_y):
    k = min(m, 7)
    t = 10.0 ** np.concatenate([np.linspace(-12, 300, 27), np.linspace(-3, 7, 25)])
    for s, *values in zip(t, *all_three(t, m, k, eta_y, 0.3), strict=True):
        for value, reference in zip(values, exact(s, m, k, eta_y, 0.3), strict=True):
            assert error(value, reference) <= RTOL


@quick
@given(t=times, m=vocabularies, eta_y=rates, eta_z=rates, data=st.data())
def test_closed_forms_to_1e_13_anywhere(t, m, eta_y, eta_z, data):
    k = data.draw(st.integers(1, m))
    for value, reference in zip(all_three(t, m, k, eta_y, eta_z), exact(t, m, k, eta_y, eta_z), strict=True):
        assert error(value, reference) <= RTOL


def test_where_tau_overflows():
    t, m, eta_y = 1.5e308, 10**6, 1e3
    assert math.isinf(m * eta_y * t)
    for value, reference in zip(all_three(t, m, 3, eta_y, 2.0), exact(t, m, 3, eta_y, 2.0), strict=True):
        assert error(value, reference) <= RTOL
    # Even eta_Y t overflows here, and gamma is below the smallest float.
    assert error(decoder.h(1e308, vocab_size=5, eta_y=1e308), exact(1e308, 5, 1, 1e308)[0]) <= RTOL
    assert decoder.gamma(1e308, vocab_size=5, n_classes=1, eta_y=1e308) == 0.0


@pytest.mark.parametrize("t", [1e-300, 1e-100, 1e-30])
@pytest.mark.parametrize("m", [2, 9, 17, 38, 10**6])
def test_tiny_times(t, m):
    """At M = 9, 17 and 38 the Wright omega form gives 2e-16 in place of a margin near zero."""
    h, gamma, _ = all_three(t, m, 2, 0.5, 0.5)
    references = exact(t, m, 2, 0.5)
    assert error(h, references[0]) <= RTOL
    assert error(gamma, references[1]) <= RTOL


def test_extreme_rates_neither_overflow_nor_underflow():
    value = decoder.gamma_integral(1e3, vocab_size=4, n_classes=2, eta_y=1e-300, eta_z=1e300)
    assert error(value, exact(1e3, 4, 2, 1e-300, 1e300)[2]) <= RTOL


def test_either_side_of_the_switch_to_logarithms():
    t = 1e300 / 50 * np.array([1 - 1e-12, 1 + 1e-12])
    for value, column in zip(all_three(t, 50, 1, 1.0, 1.0), range(3), strict=True):
        for v, s in zip(value, t, strict=True):
            assert error(v, exact(s, 50, 1, 1.0)[column]) <= RTOL


def test_zero_is_exact():
    for value in all_three(0.0, 10, 3, 0.5, 0.5):
        assert value == 0.0
    assert decoder.h_steps(0, vocab_size=10, eta_y=0.5).tolist() == [0.0]


@pytest.mark.parametrize("m, eta_y, t_end", [(2, 1.0, 300.0), (50, 0.2, 2000.0), (1000, 5.0, 700.0)])
def test_h_solves_its_differential_equation(m, eta_y, t_end):
    flow = solve_ivp(lambda t, h: eta_y / (m - 1 + np.exp(m * h)), (0, t_end), [0.0], "DOP853", rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(decoder.h(flow.t, vocab_size=m, eta_y=eta_y), flow.y[0], rtol=1e-10)


@pytest.mark.parametrize("m, k, eta_y, eta_z", [(2, 1, 1.0, 0.5), (50, 7, 0.2, 3.0), (1000, 10, 5.0, 0.5)])
def test_gamma_integral_is_the_integral_of_gamma(m, k, eta_y, eta_z):
    sizes = {"vocab_size": m, "n_classes": k, "eta_y": eta_y}
    edges = np.concatenate([[0.0], np.geomspace(1e-2, 1e4, 25)])
    pieces = [
        quad(lambda t: decoder.gamma(t, **sizes), a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    ]
    integral = decoder.gamma_integral(edges[1:], **sizes, eta_z=eta_z)
    np.testing.assert_allclose(integral, eta_z * np.cumsum(pieces), rtol=1e-11)


@quick
@given(m=vocabularies, eta_y=rates, data=st.data())
def test_transition_time_is_the_peak_of_gamma(m, eta_y, data):
    sizes = {"vocab_size": m, "n_classes": data.draw(st.integers(1, m)), "eta_y": eta_y}
    peak = decoder.transition_time(**sizes)
    with mp.workdps(60):
        # Monotone in u, unlike gamma itself.
        u = mp.findroot(lambda u: u + mp.log(u - 1) - mp.log(m - 1), (1 + 1e-3 + math.log(m)), tol=1e-40)
        k = sizes["n_classes"]
        assert error(peak, k * (mp.exp(u) + (m - 1) * u - 1) / (m * mp.mpf(eta_y))) <= RTOL
        assert error(decoder.peak_gamma(vocab_size=m), mp.mpf(m - 1) / m * (u - 1)) <= RTOL
    before, at, after = decoder.gamma(peak * np.array([0.999, 1.0, 1.001]), **sizes)
    assert before < at > after
    assert at == pytest.approx(decoder.peak_gamma(vocab_size=m), rel=1e-13, abs=0)


@pytest.mark.parametrize("m, k, eta_y", [(2, 2, 1.0), (34, 2, 10.0), (1000, 10, 1.0), (10**5, 10, 0.1)])
def test_gamma_rises_to_its_peak_and_falls_after(m, k, eta_y):
    sizes = {"vocab_size": m, "n_classes": k, "eta_y": eta_y}
    rise = decoder.gamma(decoder.transition_time(**sizes) * np.linspace(0, 1, 400), **sizes)
    fall = decoder.gamma(decoder.transition_time(**sizes) * np.geomspace(1, 1e9, 400), **sizes)
    assert (np.diff(rise) > 0).all()
    assert (np.diff(fall) < 0).all()


def test_the_papers_numbers_for_fig_3():
    sizes = {"vocab_size": 1000, "n_classes": 10, "eta_y": 1.0}
    assert decoder.transition_time(**sizes) == pytest.approx(56.40, abs=5e-3)
    assert decoder.scanning_time(**sizes) == pytest.approx(10 * math.log(1000), rel=1e-15, abs=0)
    assert decoder.snapping_time(**sizes) == pytest.approx(20 * math.log(1000), rel=1e-15, abs=0)
    for eta_y in (0.5, 2, 5):
        sizes["eta_y"] = eta_y
        assert decoder.transition_time(**sizes) == pytest.approx(56.40073555 / eta_y, rel=1e-9, abs=0)


def test_the_papers_times_are_above_the_peak_except_for_small_vocabularies():
    def above(m, bracket):
        sizes = {"vocab_size": m, "n_classes": 1, "eta_y": 1.0}
        return decoder.transition_time(**sizes) < bracket(**sizes)

    assert [m for m in range(2, 3000) if not above(m, decoder.scanning_time)] == list(range(2, 19))
    assert [m for m in range(2, 3000) if not above(m, decoder.snapping_time)] == [2]


def test_steps_are_those_of_a_decoder_on_one_class():
    m, eta = 6, 1.3
    w = np.zeros(m)
    target = np.eye(m)[2]
    steps = decoder.h_steps(25, vocab_size=m, eta_y=eta)
    for s in range(1, 26):
        w = w + eta * (target - np.exp(w) / np.exp(w).sum())
        np.testing.assert_allclose(w, m * steps[s] * (target - 1 / m), atol=1e-13)


def test_steps_survive_overflow():
    steps = decoder.h_steps(3, vocab_size=10, eta_y=1e5)
    np.testing.assert_array_equal(steps, [0, 1e4, 1e4, 1e4])


def gaps(m, eta_y, n_steps=400):
    """h*(s) - h(s) in units of eta_Y/M."""
    steps = decoder.h_steps(n_steps, vocab_size=m, eta_y=eta_y)
    return (steps - decoder.h(np.arange(n_steps + 1), vocab_size=m, eta_y=eta_y)) * m / eta_y


@quick
@given(m=vocabularies, eta_y=st.floats(-4, 5).map(lambda e: 10.0**e))
def test_lemma_7_bound(m, eta_y):
    """The paper's bound is 2; 1 holds for every rate, large or small (see `h_steps`)."""
    gap = gaps(m, eta_y)
    assert gap.min() >= -1e-12
    assert gap.max() <= 1.0


@pytest.mark.parametrize("m, eta_y, largest", [(2, 1.0, 0.23132), (1000, 1.0, 0.19503), (2, 50.0, 0.90862)])
def test_lemma_7_largest_gaps(m, eta_y, largest):
    """Below rate 1 the gap stays under 0.232 (M = 2); 0.19 is its size for large M. At rate 50 it is close to 1."""
    assert gaps(m, eta_y).max() == pytest.approx(largest, abs=1e-5)


def test_lemma_7_largest_gap_for_small_rates_is_one_half_over_e():
    assert gaps(100, 1e-2, 2000).max() == pytest.approx(1 / (2 * math.e), rel=1e-3, abs=0)


def test_scalars_and_arrays():
    t = np.arange(6.0).reshape(2, 3)
    for vector, scalar in zip(all_three(t, 9, 2, 1.0, 0.5), all_three(4, 9, 2, 1.0, 0.5), strict=True):
        assert vector.shape == (2, 3)
        assert isinstance(scalar, float)
        assert vector[1, 1] == scalar
    assert all(v.shape == (0,) for v in all_three([], 9, 2, 1.0, 0.5))
    assert isinstance(decoder.transition_time(vocab_size=9, n_classes=2, eta_y=1), float)


def test_a_decoder_is_a_value_with_its_peak_where_gamma_is_largest():
    one = decoder.Decoder(1000, 10, 1.0)
    assert one == decoder.Decoder(np.int64(1000), 10, 1) and hash(one) == hash(decoder.Decoder(1000, 10, 1.0))
    kept = decoder.Decoder(np.int64(1000), np.int32(10), 1)
    assert [type(value) for value in (kept.vocab_size, kept.n_classes, kept.eta_y)] == [int, int, float]
    with pytest.raises(AttributeError):
        one.eta_y = 2.0
    assert one.transition_time == pytest.approx(56.40, abs=5e-3)
    times = np.linspace(0.5, 1.5, 10_001) * one.transition_time
    assert times[np.argmax(one.gamma(times))] == pytest.approx(one.transition_time, rel=1e-4)
    assert one.gamma(times).max() == pytest.approx(one.peak_gamma, rel=1e-8)
    # A class is seen in one step out of ten: after 30 of its own steps the bound of Lemma 7, halved, holds.
    gap = one.h_steps(30) - one.h(np.arange(31.0))
    assert (gap >= -1e-15).all() and gap.max() <= 1.0 / 1000
    # Gamma is the integral of gamma.
    area, _ = quad(lambda t: float(one.gamma(t)), 0, one.snapping_time, points=[one.transition_time], limit=200)
    assert float(one.gamma_integral(one.snapping_time, eta_z=0.5)) == pytest.approx(0.5 * area, rel=1e-9)
    assert one.snapping_time == 2 * one.scanning_time == pytest.approx(20 * math.log(1000))
