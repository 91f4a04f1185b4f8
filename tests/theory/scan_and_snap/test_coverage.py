"""Bounds counted over many runs of SGD with the modified decoder: what they let pass, and what they catch."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from theory import decoder, statements
from theory.scan_and_snap import bounds, coverage
from yzflow.audits import audit
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

DELTA = Fraction(1, 20)


@pytest.fixture(scope="module")
def runs():
    return audit.Simulations(Setting("inside", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0), seed=0)


def tail(n, p, above):
    """P(X > above) of the binomial law, as a fraction."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(above + 1, n + 1))


def test_false_alarms_are_as_rare_as_said():
    assert coverage.SEEDS >= 200
    allowed = coverage.allowed()
    assert tail(coverage.SEEDS, DELTA, allowed) <= Fraction(coverage.FALSE_ALARM) < tail(200, DELTA, allowed - 1)
    counted = [check for one in statements.REGISTER.values() for check in one.checks if "false alarms" in check.name]
    assert len(counted) == 5
    n_settings = len(audit.settings("Scan and Snap", quick=False))
    assert len(counted) * n_settings * coverage.FALSE_ALARM < 0.01


def test_more_runs_outside_than_allowed_are_an_error():
    outside = np.arange(200) < coverage.allowed()
    assert coverage._excess(outside) == 0
    outside[-3:] = True
    assert coverage._excess(outside) == pytest.approx(3 / 200)


def test_the_sample_is_that_of_the_algorithm(runs):
    sample = coverage.still(runs)
    assert sample.visits.shape == (coverage.SEEDS, 2)
    # A binomial count: mean N/2, variance N/4; five standard errors of each.
    visits, n = sample.visits[:, 0], sample.n_steps
    assert visits.mean() == pytest.approx(n / 2, abs=5 * np.sqrt(n / 4 / coverage.SEEDS))
    assert visits.var() == pytest.approx(n / 4, rel=5 * np.sqrt(2 / coverage.SEEDS))
    assert sample.decoder_error.max() < 1e-12 and sample.signal_error.max() < 1e-12 and sample.off_line.max() < 1e-12
    # theta in the first stage is that of the visits alone; ln(1 + sigma) falls with the elasticity of the residual.
    np.testing.assert_allclose(sample.theta, sample.visits / sample.mean - 1, atol=1e-4)
    late = coverage.moving(runs)
    np.testing.assert_array_equal(late.visits, sample.visits)
    slope = np.polyfit(np.log(late.visits.ravel() / late.mean), np.log1p(late.sigma.ravel()), 1)[0]
    growth = np.exp(1000 * late.h(late.mean))
    assert slope == pytest.approx(-1000 * late.mean * growth / (999 + growth) ** 2, rel=0.03)
    assert (late.sigma > -1).all()


def test_every_check_holds(runs):
    names = ("lemma5", "lemma10", "lemma11", "lemma12", "theorem5", "theorem5_decoder", "theorem1_signal", "corollary1")
    errors = {name: getattr(coverage, name)(runs, "modified SGD") for name in names}
    assert errors["lemma5"] < 1e-12
    assert 1e-4 < errors["theorem5_decoder"] < 0.01 and 1e-4 < errors["theorem1_signal"] < 0.01
    assert all(errors[name] == 0 for name in ("lemma10", "lemma11", "lemma12", "theorem5", "corollary1"))


def divided(factor):
    return lambda right: lambda *arguments: right(*arguments) / factor


# Check, what is replaced, wrapper. The bounds are loose: one of Hoeffding's kind by two, three for all of K = 2.
FALSE = {
    "Lemma 10: half the radius": ("lemma10", coverage, "radius", divided(2)),
    "Lemma 10: N - Nbar for Nbar": ("lemma10", coverage.Sample, "mean", lambda right: property(lambda self: 70)),
    "Lemma 11: a third of delta": ("lemma11", coverage, "DELTA", lambda right: np.exp(-np.log(1 / 0.05) / 9)),
    "Lemma 12: a third": ("lemma12", coverage, "lemma12_bound", divided(3)),
    "Theorem 5: a thirtieth, late": ("theorem5", coverage, "lemma12_bound", divided(30)),
    "Corollary 1: half": ("corollary1", coverage, "sigma_bound", divided(2)),
    "Corollary 1: h at t": ("corollary1", coverage.Sample, "mean", lambda right: property(lambda self: self.n_steps)),
    "Lemma 5: h, not h*": (
        "lemma5", decoder, "h_steps",
        lambda right: lambda n, **a: decoder.h(np.arange(n + 1.0), **a) * (1 + 1e-6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_a_false_bound_is_caught(name, runs, monkeypatch):
    function, where, attribute, wrap = FALSE[name]
    check = getattr(coverage, function)
    assert check(runs, "modified SGD") < 1e-8
    monkeypatch.setattr(where, attribute, wrap(getattr(where, attribute)))
    assert check(runs, "modified SGD") > 1e-8


@pytest.mark.parametrize(("k", "m", "eta_y"), [(2, 1000, 0.01), (5, 50, 1.0)])
def test_the_bound_of_sigma_changes_where_the_second_stage_is_long(k, m, eta_y):
    """(71), from N = K (sqrt(N ln(1/delta)) + 2 x/eta_Y) on, exp(x) = (M - 1) x; a quadratic equation in sqrt N."""
    x = np.log(m)
    for _ in range(100):  # the upper solution attracts
        x = np.log((m - 1) * x)
    spread = k * np.sqrt(np.log(20))
    change = ((spread + np.sqrt(spread**2 + 8 * k * x / eta_y)) / 2) ** 2
    early, late = (coverage.sigma_bound(int(n), k, m, eta_y) for n in (change, change + 1))
    assert early == pytest.approx(eta_y * (np.sqrt(int(change) / 2 * np.log(40)) + 1))
    assert late == pytest.approx(spread / np.sqrt(int(change) + 1))


def test_theta_and_theorem_1_in_another_form_are_caught(runs, monkeypatch):
    outcome = next(iter(_outcomes(1)))
    right = coverage._last_state(outcome)
    assert right[4] < 1e-12 and right[5] < 1e-12
    # E' with the other sign: 2 I - (F^T F)^{-1}.
    solve = np.linalg.solve
    monkeypatch.setattr(coverage.np.linalg, "solve", lambda gram, inner: 2 * inner - solve(gram, inner))
    wrong = coverage._last_state(outcome)
    assert wrong[4] > 0.1 and wrong[5] > 0.1
    monkeypatch.setattr(coverage.np.linalg, "solve", solve)
    # q_0 with the other sign.
    inner = bounds.inner_coefficients
    monkeypatch.setattr(coverage.bounds, "inner_coefficients", lambda k, m: np.abs(inner(k, m)))
    assert coverage._last_state(outcome)[5] > 0.1


def _outcomes(n):
    from dynamics import sgd_many

    classes = single_common_token(3, 12, 0.3)
    options = {"batch_size": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
    return sgd_many([(classes, {"eta_y": 1.0, "eta_z": 1e-30, "steps": 40, "seed": s, **options}) for s in range(n)])
