"""Numbers that the errata and the findings state, by routes of their own."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from dynamics import SequenceClasses, gradient_flow
from theory import attention, decoder
from theory.scan_and_snap import visits
from theory.scan_and_snap.early import initial_drift
from theory.scan_and_snap.proofs import concentration, slowdown
from theory.values import value
from yzflow.papers.scan_and_snap.settings import single_common_token


def flow_time(margin, m, eta_y):
    """Time of a margin x = M h by (45)."""
    return (np.expm1(margin) + (m - 1) * margin) / (m * eta_y)


def test_the_lag_of_remark_2():
    steps = decoder.h_steps(10**6, vocab_size=1000, eta_y=0.9)
    at = 10 ** np.arange(3, 7)
    lag = flow_time(1000 * steps[at], 1000, 0.9) - at
    np.testing.assert_allclose(lag, [3.44, 4.59, 5.74, 6.90], atol=0.006)
    np.testing.assert_allclose(lag, value("scan_and_snap.lag.lags"), rtol=1e-9)


@pytest.mark.parametrize("m", [2, 3, 10, 1000])
@pytest.mark.parametrize("eta_y", [0.003, 0.1, 1.0, 2.0])
def test_the_lag_is_below_a_half_in_the_first_stage_and_grows(m, eta_y):
    n_steps = int(np.log(m) / eta_y)
    lag = flow_time(m * decoder.h_steps(3 * n_steps + 9, vocab_size=m, eta_y=eta_y), m, eta_y)
    lag -= np.arange(lag.size)
    assert (np.diff(lag) > 0).all()
    assert lag[: n_steps + 1].max() < 0.5


def test_the_counter_examples_to_lemma_11():
    """That of Coq; and one whose bound is far below ln M, in logarithms: x = u + ln M, ln G = ln(1 + exp(u))."""
    visits = np.array([20.0, 9.0])
    at, below = 999 + np.exp(1000 * decoder.h(visits, vocab_size=1000, eta_y=0.9))
    assert np.ceil(np.sqrt(40 * np.log(1 / 0.05))) == 11 and 40 >= 10 * 2**2
    assert at / below - 1 == pytest.approx(3.717, abs=1e-3) and at / below - 1 > 0.9 * 11 / 3
    assert np.ceil(np.sqrt(4798 * np.log(1 / 0.053))) == 119 and 4798 / 2 == 2399
    logarithm = 100 * np.log(10)
    times = [brentq(lambda u, s=s: np.exp(u) + u + logarithm - 0.1 * s, -1e3, 9) for s in (2399, 2399 - 119)]
    sigma = np.expm1(np.diff(np.log1p(np.exp(times[::-1])))[0])
    assert sigma == pytest.approx(value("scan_and_snap.residual_gap.sigma"), rel=1e-9)
    assert sigma / (0.1 * 119 / 3) == pytest.approx(1.73, abs=0.005) and logarithm / 50 > 0.1 * 119 / 3


@given(
    m=st.sampled_from([2, 3, 10, 1000, 10**6]),
    mean=st.floats(0.01, 1e4),
    share=st.floats(0.001, 0.999),
    eta_y=st.floats(0.01, 10),
)
def test_lemma_11_as_corrected(m, mean, share, eta_y):
    gap = share * mean
    x = m * decoder.h(np.array([mean - gap, mean, mean + gap]), vocab_size=m, eta_y=eta_y)
    low, at, high = np.log(m - 1 + np.exp(x))
    slack = 1e-12 * at
    assert max(at - low, high - at) <= float(concentration.log_residual_gap(m, eta_y, gap)) + slack
    assert max(np.expm1(at - low), -np.expm1(at - high)) <= eta_y * gap + slack
    assert max(x[1] - x[0], x[2] - x[1]) <= x[1] * float(concentration.growth_gap(gap, mean)) + 1e-12 * x[1]


@pytest.mark.parametrize("m", [1000, 10**5, visits.LARGE])
def test_lemma_11_as_printed_is_missed_only_where_its_bound_is_far_below_ln_m(m, monkeypatch):
    """By the flow of one class, x + exp(x)/M = eta_Y s for large M, on the grid of the check."""
    monkeypatch.setattr(visits, "LARGE", m)
    time = np.geomspace(0.1, 1e3, 200)[:, None] + np.zeros(49)
    share = np.linspace(0.02, 0.98, 49)
    bound = share * time / 3
    x = np.linspace(0, np.log(m) + 8, 400_001)
    margin = functools.partial(np.interp, xp=x + (np.exp(x) - 1 - x) / m, fp=x)
    growth = [np.log(m - 1 + np.exp(margin(time * factor))) for factor in (1 - share, 1, 1 + share)]
    sigma = np.maximum(np.expm1(growth[1] - growth[0]), -np.expm1(growth[1] - growth[2]))
    missed = (sigma / bound)[10 * bound <= np.log(m)].max() - 1
    runs = SimpleNamespace(setting=SimpleNamespace(classes=SimpleNamespace(vocab_size=m), eta_y=0.5))
    assert visits.lemma11_printed(runs, "closed form") == pytest.approx(max(missed, 0), abs=1e-3)
    assert (missed > 0.05) == (m > 1000)  # the hypothesis has room for large Delta where M is large


def test_the_branches_of_theorem_4_at_their_ends():
    np.testing.assert_allclose(value("scan_and_snap.branches.errors"), [[0.185, 0.238], [0.280, 0.366]], atol=6e-4)
    for m, early, late in ((1000, 0.185, 0.238), (100, 0.280, 0.366)):
        tau = np.log(m)
        x = m * decoder.h(np.array([tau, 2 * tau]), vocab_size=m, eta_y=1.0)
        assert (tau / x[0]) ** 2 - 1 == pytest.approx(early, abs=6e-4)
        assert (np.log(2 * m * tau) / x[1]) ** 2 - 1 == pytest.approx(late, abs=6e-4)


def test_the_largest_constant_of_the_second_stage_from_t0_on():
    def constant(log_m):
        tau, inverse = 2 * log_m, np.exp(-log_m)
        x = brentq(lambda x: np.exp(x - log_m) + (1 - inverse) * x - tau - inverse, 0, 2 * log_m, xtol=1e-14)
        return (1 - inverse) ** 2 * x / (1 - inverse + np.exp(x - log_m)) * tau / (log_m + np.log(tau))

    grid = np.linspace(np.log(4), 60, 4000)
    values = np.array([constant(log_m) for log_m in grid])
    assert values.max() == pytest.approx(2.12444, abs=2e-6)
    assert value("scan_and_snap.late_constant.above") < values.max() < value("scan_and_snap.late_constant.below")
    assert np.exp(grid[values.argmax()]) == pytest.approx(value("scan_and_snap.late_constant.m"), rel=0.1)


def test_xi_can_be_negative_with_the_lower_half_of_assumption_2():
    m, gram = 1000, np.eye(4)
    pairs = {(0, 1): 0.35184, (0, 2): 0.28356, (0, 3): 0.28356, (1, 2): 0.806225734519, (1, 3): 0.806225734519}
    for (i, j), overlap in (pairs | {(2, 3): 0.3}).items():
        gram[i, j] = gram[j, i] = overlap
    sizes = np.abs(np.linalg.eigvalsh(gram - np.eye(4)))
    assert sizes.min() > 6 / np.sqrt(m)
    assert sizes.max() == pytest.approx(1.49, abs=0.01)
    assert sizes.min() == pytest.approx(value("scan_and_snap.lower_half.least"))
    u = np.array([m / (m - 1), *[-m / (m - 1) ** 2] * 3])
    weights = np.linalg.solve(gram, u)
    assert -(weights[1:] @ gram[0, 1:]) == pytest.approx(-0.0282, abs=1e-4)
    assert -(weights[1:] @ gram[0, 1:]) == pytest.approx(value("scan_and_snap.lower_half.xi"))
    assert value("scan_and_snap.star.xi") < 0 < 0.84 < value("scan_and_snap.star.most") < 1


def frozen_ratio(k, m, rho, log_times):
    """Speed of attention in the full flow over that in the modified flow, features frozen, time eta_Y t/K."""
    wide = 1 + (k - 1) * rho

    def margins(y):
        a, b, c = y
        return (1 - rho) * (a - b), (a - b) + wide * (b - c)

    def residuals(s, y):
        u, w = margins(y)
        total = 1 + (k - 1) * np.exp(-u) + (m - k) * np.exp(-w)
        return np.exp(s - u) / total, np.exp(s - w) / total

    def rate(s, y):
        other, outside = residuals(s, y)
        return [(k - 1) * other + (m - k) * outside, -other, -outside]

    start = np.exp(log_times[0])
    y0 = start * np.array([1 - 1 / m, -1 / m, -1 / m])
    run = solve_ivp(rate, (log_times[0], log_times[-1]), y0, method="Radau", t_eval=log_times, rtol=1e-9, atol=1e-14)
    ratios = []
    for s, y in zip(log_times, run.y.T, strict=True):
        other, outside = residuals(s, y)
        full = (y[0] - y[1]) * other - (m - k) * (y[1] - y[2]) * outside
        x = brentq(
            lambda x, s=s: np.exp(x - s) + (m - 1) * x * np.exp(-s) - m - np.exp(-s), 0, abs(s) + 2 * np.log(m) + 3
        )
        gamma = (m - 1) ** 2 / m * x / ((m - 1) * np.exp(-s) + np.exp(x - s))
        ratios.append(full / (gamma * m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * wide)))
    return np.array(ratios)


@pytest.mark.parametrize(("k", "m", "rho"), [(5, 60, 0.967)])
def test_the_full_flow_overtakes_the_theory_with_frozen_features(k, m, rho):
    log_times = np.array([-12.0, 500, 1000, 2000])
    ratio = frozen_ratio(k, m, rho, log_times)
    assert ratio[0] == pytest.approx(attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho), rel=1e-3)
    limit = float(slowdown.late_ratio(m, k, rho))
    assert ratio[-1] == pytest.approx(limit, rel=5e-3)
    # The error falls like 1/ln t: twice the time, half of it.
    assert (ratio[2] - limit) / (ratio[3] - limit) == pytest.approx(2, rel=0.1)


def test_at_k_equal_m_the_frozen_full_flow_peaks_at_the_stretched_time():
    classes, times = single_common_token(5, 5, 0.3), np.linspace(0, 25, 1001)
    run = gradient_flow(classes, eta_y=1.0, eta_z=1e-7, t_end=25, times=times, rtol=1e-10, atol=1e-18)
    peak = decoder.transition_time(vocab_size=5, n_classes=5, eta_y=1.0) / 0.7
    assert peak == pytest.approx(16.35, abs=0.005)
    assert times[run.dataset["z_velocity"].values[:, 0, 1].argmax()] == pytest.approx(peak, abs=0.03)


def features_of(shares):
    shares = np.asarray(shares, float)
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def predicted_drift(features, m):
    """The form in the docstring of `initial_drift`, pair by pair."""
    k = len(features)
    total = np.zeros(features.shape[1])
    for n in range(k):
        for other in range(n):
            f, g = features[n], features[other]
            total += (f**2 + g**2) * (f @ g) - 2 * f * g
    return total / (k**2 * m)


def test_one_of_several_common_tokens_can_gain():
    shares = np.array([[0.6, 0.8, 0.05, 0], [0.1, 0.995, 0, 0.05]])
    classes = SequenceClasses(shares / shares.sum(axis=1, keepdims=True), [0, 0], vocab_size=50)
    drift = initial_drift(classes.population()).toarray()[0]
    np.testing.assert_allclose(drift, predicted_drift(features_of(shares), 50), rtol=1e-12)
    assert classes.common_tokens.tolist() == [0, 1]
    assert drift[0] > 0 > drift[1]
    for name in ("full", "modified"):
        assert gradient_flow(classes, eta_y=1.0, eta_z=1e-3, t_end=1.0, decoder=name).final.Z[0, 0] > 0


@given(
    counts=st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=2, max_size=5),
    m=st.integers(6, 1000),
)
def test_early_in_the_full_flow_distinct_tokens_gain_for_any_overlaps(counts, m):
    """Two common tokens of any shares and a distinct one a class: no part of Assumption 2."""
    k = len(counts)
    shares = np.zeros((k, 2 + k))
    shares[:, :2] = [row[:2] for row in counts]
    shares[np.arange(k), 2 + np.arange(k)] = [row[2] for row in counts]
    classes = SequenceClasses(shares / shares.sum(axis=1, keepdims=True), [0] * k, vocab_size=m)
    drift = initial_drift(classes.population()).toarray()[0]
    np.testing.assert_allclose(drift, predicted_drift(features_of(shares), m), rtol=1e-9, atol=1e-15)
    assert (drift[2:] > 0).all()


def test_the_constant_of_theorem_1b_without_m():
    for m, least in ((1000, 5.6), (10**5, 7.9)):
        # The second stage begins where exp(x) = (M - 1) x, at twice that margin as class time.
        x = brentq(lambda x, m=m: np.exp(x) - (m - 1) * x, 2, 20)
        tau = 2 * x * np.geomspace(1, 1e9, 1000)
        gamma = decoder.gamma(tau, vocab_size=m, n_classes=1, eta_y=1.0)
        assert (gamma * tau / np.log(tau)).max() == pytest.approx(least, abs=0.06)
        assert (gamma * tau / np.log(m * tau)).max() < 2


def test_from_when_on_a_faster_decoder_makes_attention_denser():
    rates = {"vocab_size": 1000, "n_classes": 10, "c0": 1.0, "eta_z": 0.5}
    until = value("scan_and_snap.faster_decoder.until")
    for t, sign in ((until - 1, 1), (until + 1, -1)):
        faster, slower = (attention.growth_exponent(t, eta_y=rate, **rates) for rate in (1.001, 0.999))
        assert np.sign(faster - slower) == sign


@pytest.mark.parametrize("k", [3, 4, 6])
def test_xi_is_positive_below_the_sharp_bound_and_stars_fail_above_it(k):
    rng = np.random.default_rng(k)

    def xi(overlap, m):
        gram = np.eye(k) + overlap
        u = np.full((k, k), -m / (m - 1) ** 2)
        np.fill_diagonal(u, m / (m - 1))
        return (np.linalg.solve(gram, u) * -(gram - np.eye(k))).sum(axis=0)

    for _ in range(200):
        overlap = np.triu(rng.random((k, k)) ** rng.choice([0.2, 1, 20]), 1)
        overlap += overlap.T
        overlap *= 0.9999 / np.sqrt(max(k - 2, 1)) / np.abs(np.linalg.eigvalsh(overlap)).max()
        assert (xi(overlap, int(rng.choice([k, 100]))) > 0).all()
    if k > 3:
        star = np.zeros((k, k))
        star[1, 2:] = star[2:, 1] = 1.01 / (k - 2)
        star[0, 1] = star[1, 0] = 1e-6
        assert np.linalg.eigvalsh(star).max() == pytest.approx(1.01 / np.sqrt(k - 2), rel=1e-6)
        assert xi(star, k + 1)[0] < 0
