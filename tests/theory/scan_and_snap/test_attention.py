"""theory.attention against the differential equations that it solves, linear algebra, and 45-digit arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from theory import attention, decoder

FIG_3 = {"vocab_size": 1000, "n_classes": 10, "eta_y": 1.0, "eta_z": 0.5}
SYN_SMALL = np.linspace(0.1, 1, 10)

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
vocabularies = st.one_of(st.integers(2, 60), st.integers(2, 10**6))
rates = st.floats(-2, 2).map(lambda e: 10.0**e)
times = st.floats(-6, 8).map(lambda e: 10.0**e)
exponents = st.floats(-12, 2).map(lambda e: 10.0**e)
probabilities = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=12).map(np.array)


@pytest.mark.parametrize("c0", [0.02, 1.0, 40.0, 1e4])
@pytest.mark.parametrize("eta_y", [0.5, 5.0])
def test_growth_exponent_solves_the_dynamics_of_the_common_token(c0, eta_y):
    """zdot = -eta_Z gamma exp(4 z)/C_0 from z = 0, and B = -z."""
    sizes = {**FIG_3, "eta_y": eta_y}
    eta_z = sizes.pop("eta_z")

    def velocity(t, z):
        return -eta_z * decoder.gamma(t, **sizes) * np.exp(4 * z) / c0

    flow = solve_ivp(velocity, (0, 3000), [0.0], "DOP853", rtol=1e-11, atol=1e-13)
    predicted = attention.growth_exponent(flow.t, **sizes, eta_z=eta_z, c0=c0)
    np.testing.assert_allclose(predicted, -flow.y[0], rtol=1e-8, atol=1e-11)


def test_growth_exponent_starts_at_zero_and_keeps_small_values():
    assert attention.growth_exponent(0.0, **FIG_3, c0=3.0) == 0.0
    small = attention.growth_exponent(1e-9, **FIG_3, c0=1e6)
    assert small == pytest.approx(decoder.gamma_integral(1e-9, **FIG_3) / 1e6, rel=1e-14, abs=0)


@quick
@given(t=times, c0=st.floats(0.01, 100), eta_y=rates, eta_z=rates, m=vocabularies)
def test_the_printed_exponent_is_off_by_its_value_at_zero(t, c0, eta_y, eta_z, m):
    arguments = {"vocab_size": m, "n_classes": 2, "eta_y": eta_y, "eta_z": eta_z}
    ours = attention.growth_exponent([0.0, t], **arguments, c0=c0)
    printed = attention.printed_growth_exponent([0.0, t], **arguments, c0=c0)
    assert printed[0] == pytest.approx(math.log(c0) / 4, abs=1e-15)
    np.testing.assert_allclose(printed - ours, math.log(c0) / 4, atol=1e-13)
    same = attention.printed_growth_exponent(t, **arguments, c0=1.0)
    assert same == pytest.approx(attention.growth_exponent(t, **arguments, c0=1.0), abs=1e-14)


@quick
@given(m=vocabularies, eta_z=rates, nu=rates, scale=st.floats(1.1, 50), c0=rates, data=st.data())
def test_b_at_t0_depends_on_the_ratio_of_the_rates_only(m, eta_z, nu, scale, c0, data):
    k = data.draw(st.integers(1, min(m, 30)))

    def at_t0(eta_y, eta_z):
        t0 = decoder.snapping_time(vocab_size=m, n_classes=k, eta_y=eta_y)
        arguments = {"vocab_size": m, "n_classes": k, "eta_y": eta_y, "eta_z": eta_z}
        return attention.growth_exponent(t0, **arguments, c0=c0)

    assert at_t0(nu * eta_z * scale, eta_z * scale) == pytest.approx(at_t0(nu * eta_z, eta_z), rel=1e-12, abs=0)
    assert at_t0(nu * eta_z * scale, eta_z) < at_t0(nu * eta_z, eta_z)


@quick
@given(m=st.integers(14, 10**6), late=st.floats(1, 1e4), eta_y=rates, eta_z=rates, factor=st.floats(1.01, 20))
def test_insight_c_a_slower_decoder_gives_a_larger_final_exponent(m, late, eta_y, eta_z, factor):
    """From t0 on for M >= 14; for M <= 13 dGamma/d eta_Y is still positive at t0."""
    sizes = {"vocab_size": m, "n_classes": 3}
    t = late * decoder.snapping_time(**sizes, eta_y=eta_y)
    slow = attention.growth_exponent(t, **sizes, eta_y=eta_y, eta_z=eta_z, c0=1.0)
    assert attention.growth_exponent(t, **sizes, eta_y=eta_y * factor, eta_z=eta_z, c0=1.0) < slow


@pytest.mark.parametrize("m, falls", [(13, False), (14, True)])
def test_insight_c_at_t0_needs_fourteen_next_tokens(m, falls):
    t0 = decoder.snapping_time(vocab_size=m, n_classes=2, eta_y=1.0)
    slow, fast = (
        decoder.gamma_integral(t0, vocab_size=m, n_classes=2, eta_y=eta_y, eta_z=1.0) for eta_y in (1.0, 1.0001)
    )
    assert bool(fast < slow) == falls


def test_speed_constant():
    assert attention.speed_constant(n_classes=10, overlap=0.25) == pytest.approx(16 / 9, rel=1e-15, abs=0)
    # rho = P_c^2/rho_0^2 in C_0 = rho_0^4/((K - 1) P_c^4).
    common, norm = 0.3, 0.7
    expected = norm**4 / (4 * common**4)
    assert attention.speed_constant(n_classes=5, overlap=(common / norm) ** 2) == pytest.approx(expected)
    np.testing.assert_allclose(attention.speed_constant(n_classes=2, overlap=[[0.5, 0.1]]), [[4, 100]])
    # With M, 1/C_0 = (K - 1) rho M (1 + (M - 1) rho)/((M - 1)^2 (1 + (K - 1) rho)).
    assert attention.speed_constant(n_classes=3, overlap=0.4, vocab_size=5) == pytest.approx(
        16 * 1.8 / (0.8 * 5 * 2.6), rel=1e-15
    )
    large = attention.speed_constant(n_classes=3, overlap=1e-5, vocab_size=10**9)
    assert large == pytest.approx(attention.speed_constant(n_classes=3, overlap=1e-5), rel=2e-4)


def equal_overlaps(k, rho, n_common, rng):
    """Unit columns f_n of a population with overlaps rho: common tokens, and three distinct tokens a class."""
    common = rng.random(n_common) + 0.1
    common *= math.sqrt(rho) / np.linalg.norm(common)
    own = rng.random(3) + 0.1
    own *= math.sqrt(1 - rho) / np.linalg.norm(own)
    return np.vstack([np.tile(common[:, None], k), np.kron(np.eye(k), own[:, None])])


CASES = [(2, 2, 0.3), (3, 7, 0.4), (10, 1000, 0.011), (10, 50, 0.011), (10, 10, 0.3), (5, 2000, 0.9), (4, 9, 1e-3)]


@pytest.mark.parametrize("k, m, rho", [*CASES, (10, 10**12, 1e-6)])
def test_theorem_1_coefficient_that_speed_constant_approximates(k, m, rho):
    u = np.full((k, k), -m / (m - 1) ** 2) + np.eye(k) * (m / (m - 1) + m / (m - 1) ** 2)
    gram = np.eye(k) * (1 - rho) + rho
    beta = -np.linalg.solve(gram, u)
    exact = rho * (beta.sum(axis=0) - beta.diagonal())
    documented = (k - 1) * rho * m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))
    np.testing.assert_allclose(exact, documented, rtol=1e-9)
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    assert 1 / c0 == pytest.approx(exact[0], rel=2 * k * rho + 2 / (m * rho))


@pytest.mark.parametrize("k, m, rho", CASES)
@pytest.mark.parametrize("n_common", [1, 4])
def test_full_flow_slowdown_is_the_ratio_of_the_first_velocities(k, m, rho, n_common):
    """Y is built by one small step of each decoder gradient, then every logit's velocity is compared."""
    f = equal_overlaps(k, rho, n_common, np.random.default_rng(k * m))
    gram = f.T @ f
    np.testing.assert_allclose(gram, np.eye(k) * (1 - rho) + rho, atol=1e-14)
    residual = np.eye(k, m) - 1 / m
    velocity = []
    for features in (f, f @ np.linalg.inv(gram)):
        g = features @ residual @ residual.T
        velocity.append(f * (g - f * (f * g).sum(axis=0)))
    s = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
    full, modified = velocity
    np.testing.assert_allclose(full, s * modified, rtol=1e-8, atol=1e-12 * abs(full).max())
    own = f[n_common:, 0] > 0
    assert (full[n_common:, 0][own] > 0).all()
    assert (full[:n_common] < 0).all()


def test_full_flow_slowdown_limits():
    rho = np.array([0.0, 0.1, 0.5, 0.99])
    square = attention.full_flow_slowdown(vocab_size=8, n_classes=8, overlap=rho)
    np.testing.assert_allclose(square, 1 - rho, rtol=1e-14)
    sizes = {"vocab_size": 1000, "n_classes": 10}
    assert attention.full_flow_slowdown(**sizes, overlap=0) == 1.0
    assert attention.full_flow_slowdown(**sizes, overlap=0.011) == pytest.approx(0.09066, abs=5e-6)
    second = 0.2 / (0.8 * (1 + 9 * 0.2))
    ours = attention.full_flow_slowdown(**sizes, overlap=0.2)
    assert ours == pytest.approx(1 / (1 / 0.8 + 990 * second), rel=1e-14, abs=0)
    # Assumption 2's overlap of at least 6/sqrt(M) makes the slowdown at least sixfold the root of M.
    assert attention.full_flow_slowdown(vocab_size=10**6, n_classes=2, overlap=6e-3) < 1 / 6000 * 1.02


@quick
@given(exponent=st.floats(0, 300), f0=st.floats(0, 1))
def test_growth_bounds(exponent, f0):
    lower, upper = attention.growth_bounds(exponent, f0)
    assert upper == pytest.approx(math.exp(2 * exponent), rel=1e-13, abs=0)
    assert lower == pytest.approx(math.exp(2 * f0**2 * exponent), rel=1e-12, abs=0)
    assert 1 <= lower <= upper


@pytest.mark.parametrize("distinct", [SYN_SMALL, [1.0], [0.3, 0.3, 0.1], [1e-3, 1.0, 0.999]])
def test_distinct_growth_solves_theorem_2(distinct):
    """dz_l/dB = f_l^2 with f_l^2 = p_l^2 exp(2 z_l)/sum of the same."""
    p = np.array(distinct)

    def velocity(_, z):
        c = p**2 * np.exp(2 * (z - z.max()))
        return c / c.sum()

    b = np.linspace(0, 8, 17)
    flow = solve_ivp(velocity, (0, 8), np.zeros(p.size), "DOP853", b, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(attention.distinct_growth(b, p), np.exp(2 * flow.y.T), rtol=1e-8)


def exact_growth(exponent, p):
    """chi_l in 45 digits from prod_l (1 - s p_l^2) = exp(-2 B), by bisection on ln(1 - s p_max^2)."""
    with mp.workdps(45):
        p = [mp.mpf(float(x)) for x in p]
        q = [(x / max(p)) ** 2 for x in p]

        def growth(v):
            return [v if x == 1 else -mp.log1p(mp.expm1(-v) * x) for x in q]

        low, high = mp.mpf(0), 2 * mp.mpf(float(exponent))
        for _ in range(150):
            v = (low + high) / 2
            low, high = (v, high) if sum(growth(v)) < 2 * mp.mpf(float(exponent)) else (low, v)
        return [mp.exp(g) for g in growth(low)]


NEAR_TIES = [
    [1.0, 1.0, 0.4],
    [1.0, 1 - 2e-16, 0.5],
    [0.7, np.nextafter(0.7, 0), 0.1],
    [1.0, 1 - 1e-12, 1 - 1e-9],
    [0.25] * 4,
]


@pytest.mark.parametrize("distinct", [SYN_SMALL, [0.5], [1e-200, 1.0, 0.3], *NEAR_TIES])
def test_distinct_growth_in_45_digits(distinct):
    largest = 1e3 if np.sum(np.asarray(distinct) == np.max(distinct)) > 2 else 300
    for exponent in (1e-300, 1e-6, 0.1, 5.0, 40.0, largest):
        value = attention.distinct_growth(exponent, distinct)
        for chi, reference in zip(value, exact_growth(exponent, distinct), strict=True):
            # The exponential turns the last place of 2 B into a relative error of 2 B eps.
            assert float(abs(mp.mpf(float(chi)) / reference - 1)) <= 1e-14 + 4e-16 * exponent


def test_the_lower_bound_as_printed_fails_until_attention_has_grown_k_fold():
    """(12) with B_n K times too large: at once, but late only where f^2 starts above 1/K."""
    for distinct, fails_late in (([1.1] + [1.0] * 9, False), ([1.1, 1.0], True)):
        start = distinct[0] / np.linalg.norm(distinct)
        for exponent, fails in ((0.1, True), (60.0, fails_late)):
            chi = attention.distinct_growth(exponent, np.array(distinct))[0]
            printed, right = (attention.growth_bounds(k * exponent, start)[0] for k in (2, 1))
            assert (printed > chi) == fails and chi >= right


def test_distinct_growth_of_many_near_ties():
    p = np.append(np.full(3000, 1 - 1e-6), 1.0)
    b = np.geomspace(1e-3, 3e2, 40)
    log_chi = np.log(attention.distinct_growth(b, p))
    np.testing.assert_allclose(log_chi.sum(axis=1), 2 * b, rtol=1e-11, atol=3e-12)


@quick
@given(b=exponents, p=probabilities)
def test_theorem_3_identity_between_all_pairs(b, p):
    """r(t) = r(0) chi_l(t), (11)."""
    chi = attention.distinct_growth(b, p)
    f0 = p / np.linalg.norm(p)
    now = f0 * np.sqrt(chi / chi.max())
    now = now / np.linalg.norm(now)
    before = attention.relative_gain(f0[:, None], f0[None, :])
    after = attention.relative_gain(now[:, None], np.maximum(now, 1e-300)[None, :])
    # The gain is a difference of shares: its rounding error is relative to the ratio, which is after + 1.
    np.testing.assert_allclose(after, before * chi[:, None], rtol=1e-10, atol=1e-12 * (1 + abs(after).max()))


def test_shapes():
    assert attention.distinct_growth(1.0, SYN_SMALL).shape == (10,)
    assert attention.distinct_growth(np.ones((2, 3)), SYN_SMALL).shape == (2, 3, 10)
    assert attention.distinct_growth([], SYN_SMALL).shape == (0, 10)
    np.testing.assert_array_equal(attention.distinct_growth(0, SYN_SMALL), np.ones(10))
    assert attention.growth_exponent(np.ones((2, 3)), **FIG_3, c0=1).shape == (2, 3)
    for function in (attention.growth_exponent, attention.printed_growth_exponent):
        assert isinstance(function(3, **FIG_3, c0=1), float)
    lower, upper = attention.growth_bounds(np.ones((3, 1)), [0.0, 1.0])
    assert lower.shape == upper.shape == (3, 2)
    assert all(isinstance(b, float) for b in attention.growth_bounds(1, 0.5))
    assert attention.relative_gain([0.2, 0.4], [[0.1], [0.2]]).shape == (2, 2)


def test_overflow_is_reported_only_when_the_result_overflows():
    assert np.isfinite(attention.distinct_growth(350.0, [1.0, 0.1])).all()
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isinf(attention.distinct_growth(1e3, [1.0, 0.1])[0])


def test_relative_gain():
    assert attention.relative_gain(0.6, 0.3) == pytest.approx(3.0, rel=1e-15, abs=0)
    assert attention.relative_gain(0.3, 0.6) == pytest.approx(-0.75, rel=1e-15, abs=0)
    assert attention.relative_gain(0.0, 0.5) == -1.0
    assert attention.relative_gain(0.5, 0.5) == 0.0
    small = Fraction(0.3 + 1e-9) ** 2 / Fraction(0.3) ** 2 - 1
    assert attention.relative_gain(0.3 + 1e-9, 0.3) == pytest.approx(float(small), rel=1e-14, abs=0)


def test_rates_are_plain_numbers():
    sizes = {"vocab_size": 1000, "n_classes": 10, "eta_y": 1.0}
    made = attention.Rates(np.int64(1000), 10, 1, np.int64(2))
    assert (type(made.eta_z), made.eta_z, made.transition_time) == (float, 2.0, decoder.transition_time(**sizes))
