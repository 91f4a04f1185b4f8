"""False variants of the statements of Scan and Snap: the proof, or the check, of each turns red.

A sign, a factor, an index or a hypothesis is wrong, or a bound is halved, or the paper's printed form is put in where
it is wrong. `tests/theory/test_symbolic.py` has more of the first kind.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from dynamics import SequenceClasses
from theory import papers, statements
from theory.scan_and_snap import attention, bounds, decoder, measures, overlaps, visits
from theory.scan_and_snap.proofs import (
    concentration,
    corollary2,
    gram,
    invariants,
    lemma2,
    lemma3,
    lemma8_9,
    lemma18,
    remark2,
    slowdown,
    theorem1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
)
from yzflow.audits import audit
from yzflow.audits.verdicts import Verdict, judge
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

# Module, the wrong claim, and how the name of an entry that must fail begins.
PROOFS = {
    "Lemma 2: exp(2 z)": (
        lemma2,
        {"feature": lambda p, z, j: lemma2.feature(p, lambda l: 2 * z(l), j)},
        "limit of the feature",
    ),
    "Lemma 3: twice the rate": (
        lemma3,
        {"update": lambda j, n, r: 2 * lemma3.update(j, n, r)},
        "dJ/dW",
    ),
    "Zero sums: squares": (
        invariants,
        {"conserved": lambda rate: invariants.conserved(lambda k: rate(k) ** 2)},
        "row of Y",
    ),
    "Lemma 7 (a): the lag's increment doubled": (
        remark2,
        {"increment": lambda m, x, d: 2 * remark2.increment(m, x, d)},
        "increment",
    ),
    "Lemma 7 (a): c = 1/4": (remark2, {"early_lag": lambda m, x: remark2.early_lag(m, x) / 2}, "early: the bound"),
    "Lemma 7 (a): c = 1/3": (remark2, {"enough": lambda: sp.Rational(1, 3)}, "early: below"),
    "Remark 2: the lag stays bounded": (remark2, {"late_slope": lambda: sp.Integer(0)}, "late: lag per margin"),
    "Remark 2: ln(eta_Y s)": (remark2, {"late_slope": lambda: sp.Integer(1)}, "late: lag per margin"),
    "Lemma 9: constant 1": (
        lemma8_9,
        {"late_bound": lambda m, t: lemma8_9.late_bound(m, t) / 2},
        "late: M - 1 + exp(x)",
    ),
    "Lemma 9: 3 is the least constant": (
        lemma8_9,
        {"late_bound": lambda m, t: 3 * lemma8_9.late_bound(m, t) / 2},
        "late: constant reached",
    ),
    "Lemma 9: without (M - 1)/M": (
        lemma8_9,
        {"late_bound": lambda m, t: 2 * sp.log(m * t) / t},
        "late: constant reached",
    ),
    "Lemma 9: half the early bound": (lemma8_9, {"time_bound": lambda t: t / 2}, "gamma <= tau"),
    "Lemma 10: N for N/2": (concentration, {"radius": lambda n, log: sp.sqrt(n * log)}, "(58) from Hoeffding"),
    "Lemma 10: the second < from 8 on": (concentration, {"needed": lambda: sp.Integer(8)}, "second < of (58)"),
    "Lemma 11: (61) halved": (concentration, {"growth_gap": lambda d, n: d / (2 * n)}, "(61): above"),
    "Lemma 11: (62) as printed": (concentration, {"residual_gap": lambda eta, d: eta * d / 3}, "(62): largest"),
    "Lemma 11: M/(M - 1) left out": (
        concentration,
        {"log_residual_gap": lambda m, eta, d: eta * d / 4},
        "(62): the slope",
    ),
    "Lemma 11: late elasticity 1": (concentration, {"late_elasticity": lambda: sp.Integer(1)}, "late: elasticity"),
    "Lemma 12: by Bernstein without its second term": (
        concentration,
        {"relative_bound": lambda k, n, log: sp.sqrt(2 * k * log / n)},
        "Nbar rounded: what Bernstein",
    ),
    "Lemma 12: Bernstein with half the variance": (
        concentration,
        {"bernstein": lambda v, log: concentration.bernstein(v / 2, log)},
        "Bernstein: the deviation",
    ),
    "Lemma 14: sign": (gram, {"corrected_eigenvalue": lambda x: -x / (1 + x)}, "Lemma 14"),
    "Lemma 14: 1 - lambda below": (gram, {"corrected_eigenvalue": lambda x: x / (1 - x)}, "Lemma 14"),
    "Lemma 15: without 1 - lambda": (gram, {"correction_bound": lambda top, limit: top}, "Lemma 15: lambda_i < 0"),
    "Lemma 16: sign": (gram, {"diagonal": lambda a: a / (1 - a)}, "Lemma 16: E'_nn <= 0"),
    "Lemma 17: without 1 - |lambda_1|": (gram, {"difference_bound": lambda top: top**2}, "Lemma 17: lambda_i < 0"),
    "Lemma 17: the third power": (
        gram,
        {"sharp_difference_bound": lambda top: top**3 / (1 - top**2)},
        "Lemma 17: sharp",
    ),
    "Lemma 17: any signs with the sharp bound": (
        gram,
        {"difference_bound": gram.sharp_difference_bound},
        "Lemma 17: lambda_i < 0",
    ),
    "(86): sign": (gram, {"iota": lambda a, b, t, e, n: gram.iota(a, -b, t, e, n)}, "(86)"),
    "(88) as printed": (
        gram,
        {"beta": lambda a, b, t, e, n, o: gram.beta(a, b, t, e, n, o) + 2 * b * (1 + t(o))},
        "(88)",
    ),
    "(90): 1/K": (gram, {"off_bound": lambda k: 1 / k}, "(90)"),
    "Theorem 1(a): 1/sqrt(K - 3)": (theorem1, {"sharp_bound": lambda k: 1 / sp.sqrt(k - 3)}, "a row of K - 2"),
    "Theorem 1(a): 1/K is the limit": (theorem1, {"sharp_bound": lambda k: 1 / k}, "star: sign changes"),
    "Theorem 1(a): sign of q_0": (
        theorem1,
        {"xi_by_blocks": lambda a, b, q, t: theorem1.xi_by_blocks(a, -b, q, t)},
        "xi",
    ),
    "Theorem 5: 1/(1 + theta_n)": (theorem5, {"sizes": (), "theta": lambda own, mean: mean / own - 1}, "(70)"),
    "Corollary 1: steps without the logarithm": (
        theorem5,
        {"sizes": (), "steps_needed": lambda k, eta, eps, m: k / (eta * eps)},
        "(45) with both",
    ),
    "Corollary 1: steps without K": (
        theorem5,
        {"sizes": (), "steps_needed": lambda k, eta, eps, m: theorem5.steps_needed(1, eta, eps, m)},
        "(45) with both",
    ),
    "Slow-down: kappa for its square in s_inf": (
        slowdown,
        {
            "sizes": (),
            "late_ratio": lambda m, k, r: (
                (k * (1 + (m - 1) * r) / (1 - r) + (2 * (1 + (m - 1) * r) / (1 - r) - 1) * (m - k))
                / (m * (1 + (m - 1) * r) / (1 - r) * (1 + (k - 1) * r))
            ),
        },
        "late: s_inf",
    ),
    "Slow-down: the full flow stays slower": (
        slowdown,
        {"sizes": (), "late_ratio": slowdown.slowdown},
        "late",
    ),
    "Theorem 2(b): f^2 for 1 - f^2": (
        theorem2,
        {"common_rate": lambda p, f, x: -p * f**2 * x},
        "common token",
    ),
    "Corollary 2: without 1 - rho": (
        corollary2,
        {"common_rate": lambda f, r, s, k: -s * (k - 1) * f**2},
        "common token",
    ),
    "Theorem 3: B_n without the class probability": (
        theorem3,
        {"exponent_rate": lambda p, xi: xi},
        "d ln chi/dB",
    ),
    "Theorem 3: r(0) + chi": (theorem3, {"relative_gain": lambda r, chi: r + chi}, "(11)"),
    "Theorem 4: branches are exact at their ends": (
        theorem4,
        {"branch_gaps": lambda: (sp.Integer(0), sp.Integer(0))},
        "branches",
    ),
    "(131): Gamma without K": (
        theorem4,
        {"accumulated": lambda m, k, y, z, h: theorem4.accumulated(m, 1, y, z, h)},
        "(131)",
    ),
    "Insight (b): B always grows with eta_Y": (
        theorem4,
        {"decoder_rate_sign": lambda m, x: (m - 1) * x},
        "insight (b): elasticity",
    ),
    "(132): the condition as printed": (
        theorem4,
        {"late_margin": lambda k, nu: 1 / sp.sqrt(2 * nu)},
        "(132)",
    ),
    "Lemma 18: without the 2": (lemma18, {"deviation": lambda d, n: sp.sqrt(sp.log(2 / d) / n)}, "both tails"),
}


@pytest.mark.parametrize("name", PROOFS)
def test_a_false_statement_is_not_proved(name):
    module, claims, expected = PROOFS[name]
    derivation = module.derive(**claims)
    rows = dataclasses.replace(
        derivation,
        vanishing={key: value for key, value in derivation.vanishing.items() if key.startswith(expected)},
        signed={key: value for key, value in derivation.signed.items() if key.startswith(expected)},
    )
    assert rows.failures()


SETTING = Setting("K = 2, M = 1000, rho = 0.3", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0)
SMALL = Setting("K = 2, M = 3", single_common_token(2, 3, 0.3), 1.0, 1e-3, 100.0)
FAST = Setting("K = 2, M = 3, eta_Y = 50", single_common_token(2, 3, 0.3), 50.0, 1e-3, 100.0)
TEN = Setting("K = 2, M = 10", single_common_token(2, 10, 0.3), 1.0, 1e-3, 100.0)


def scaled(factor, position=0):
    """A function with one positional argument multiplied."""

    def wrap(right):
        def wrong(*arguments, **options):
            moved = list(arguments)
            moved[position] = factor * np.asarray(moved[position])
            return right(*moved, **options)

        return wrong

    return wrap


def times(factor):
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


# Statement, check, setting, and what is replaced: module, name, wrapper; the printed form is what is asked.
CHECKS = {
    "Lemma 6: h at 1.001 t": ("Lemma 6", 0, SETTING, (decoder, "h", scaled(1.001))),
    "Lemma 7: the steps one ahead": (
        "Lemma 7",
        2,
        SETTING,
        (decoder, "h_steps", lambda right: lambda n, **o: right(n + 1, **o)[1:]),
    ),
    "Lemma 7: half of the half bound": ("Lemma 7", 1, FAST, (bounds, "_step_gap", times(2))),
    "Remark 2 as printed": ("Remark 2", 0, SETTING, None),
    "Lemma 8 for M = 3": ("Lemma 8", 0, SMALL, None),
    "Lemma 8: one crossing": (
        "Lemma 8",
        0,
        SETTING,
        (bounds, "crossings", lambda right: lambda m: (1e-9, right(m)[1])),
    ),
    "Lemma 8: c' of another M": (
        "Lemma 8",
        1,
        SETTING,
        (bounds, "crossings", lambda right: lambda m: (right(m)[0], right(m)[1] + 1)),
    ),
    "Lemma 8: omega_0 with the constant 5/3": (
        "Lemma 8",
        2,
        SETTING,
        (bounds, "_lower_excess", lambda right: lambda runs: 1.2 * right(runs)),
    ),
    "Lemma 8: the other crossing": (
        "Lemma 8",
        2,
        SETTING,
        (bounds, "crossings", lambda right: lambda m: right(m)[::-1]),
    ),
    "Remark 4: half of Delta": (
        "Remark 4",
        0,
        SETTING,
        (visits, "_visit_tail", lambda right: lambda n, k, out: right(n, k, lambda v: out(n / k + 2 * (v - n / k)))),
    ),
    "Remark 3 for M = 10": ("Remark 3", 0, TEN, None),
    "Lemma 9: half the constants": ("Lemma 9", 0, SETTING, (decoder, "gamma", times(2))),
    "Theorem 1(b) as printed": ("Theorem 1(b)", 0, SETTING, None),
    "Lemma 10: half the radius": (
        "Lemma 10",
        0,
        SETTING,
        (visits, "_visit_tail", lambda right: lambda n, k, out: right(n, k, lambda v: out(n / k + 2 * (v - n / k)))),
    ),
    "Lemma 10: the second < as printed": ("Lemma 10", 1, SETTING, None),
    "Lemma 11: (61) halved": (
        "Lemma 11",
        0,
        SETTING,
        (visits, "_growths", lambda right: lambda *given: (right(*given)[0] * 2, *right(*given)[1:])),
    ),
    "Lemma 11: (62) as printed": ("Lemma 11", 2, SETTING, None),
    "Lemma 12: half the bound": (
        "Lemma 12",
        0,
        SETTING,
        (visits, "_visit_excess", lambda right: lambda runs, bound: right(runs, lambda n, k: bound(n, k) / 2)),
    ),
    "Theorem 1(a): twice the bound": ("Theorem 1(a)", 1, SETTING, (overlaps, "_sharp_bound", times(1.1))),
    "(88) as printed": ("Equations 86 to 93", 0, SETTING, None),
    "Lemma 17: half the sharp bound": (
        "Lemma 17",
        1,
        SETTING,
        (overlaps, "_worst_overlap", lambda right: lambda runs, ratio: right(runs, lambda *a: 2 * ratio(*a))),
    ),
    "Corollary 1: half the steps": ("Corollary 1", 2, SETTING, (decoder, "h", scaled(0.5))),
    "Insight (b) from the beginning": (
        "Equations 131 to 133",
        1,
        SETTING,
        (bounds, "_late_times", lambda right: lambda runs: np.array([0.1, 1.0])),
    ),
    "(131): at fixed t": (
        "Equations 131 to 133",
        0,
        SETTING,
        (bounds, "_exponents", lambda right: lambda runs, t, faster, ratio: right(runs, t * faster, faster, ratio)),
    ),
    "Theorem 4: the branches as printed": ("Theorem 4, branches", 0, SETTING, None),
}


def statement(number):
    return statements.REGISTER[f"Scan and Snap: {number}"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_false_statement_fails_its_check(name, monkeypatch):
    number, index, setting, wrong = CHECKS[name]
    check = statement(number).checks[index]
    runs = audit.Simulations(setting, seed=0)
    if wrong is not None:
        module, attribute, wrap = wrong
        right = (check.corrected or check.printed)(runs, "closed form")
        assert judge(right, check.tolerance) is not Verdict.FAILS
        monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert judge(check.printed(runs, "closed form"), check.tolerance) is Verdict.FAILS


def test_the_lag_of_lemma_7_is_measured_by_half_a_step(monkeypatch):
    runs = audit.Simulations(SETTING, seed=0)
    for lag, excess in ((0.4, 0.0), (0.5, 0.0), (0.75, 0.5)):
        monkeypatch.setattr(bounds, "_lag", lambda runs, last, lag=lag: np.array([0.1, lag]))
        assert bounds.lemma7_lag(runs, "closed form") == excess


@pytest.mark.parametrize(("n", "k"), [(100, 2), (10_000, 10), (50, 50)])
def test_bernstein_s_bound_solves_its_own_inequality(n, k):
    """2 K exp(-n p e^2/(2 (1 - p + e/3))) = delta for the relative deviation e of a share p = 1/K."""
    e = visits._bernstein(n, k, np.log(2 * k / 0.05))
    assert 2 * k * np.exp(-n / k * e**2 / (2 * (1 - 1 / k + e / 3))) == pytest.approx(0.05, rel=1e-12)


@pytest.fixture(scope="module")
def runs():
    """The theory flow inside the assumptions, made once; `turned` gives it with its velocities reversed late."""
    return audit.Simulations(SETTING, seed=0)


def turned(runs):
    data = runs.trajectory("theory flow").dataset.copy(deep=True)
    data["z_velocity"][-5:] *= -1  # the displacement keeps its sign
    run = SimpleNamespace(dataset=data)
    return SimpleNamespace(setting=runs.setting, trajectory=lambda level: run)


@pytest.mark.parametrize("number", ["Theorem 2(a)", "Theorem 2(b)", "Corollary 2"])
def test_a_velocity_of_the_wrong_sign_is_seen_where_the_displacement_is_right(number, runs):
    displacement, velocity = statement(number).checks[:2]
    for check in (displacement, velocity):
        assert check.printed(runs, "theory flow") == 0
    assert displacement.printed(turned(runs), "theory flow") == 0
    assert velocity.printed(turned(runs), "theory flow") > 0


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        # Bounds of chi with another factor, with f0 for f0^2, or exchanged.
        ("growth_bounds", lambda right: lambda b, f0: right(2 * b, f0)),
        ("growth_bounds", lambda right: lambda b, f0: right(b, np.sqrt(f0))),
        ("growth_bounds", lambda right: lambda b, f0: right(1.1 * b, f0)),
        ("growth_bounds", lambda right: lambda b, f0: right(b, f0)[::-1]),
    ],
)
def test_wrong_bounds_of_theorem_3_fail(name, wrap, runs, monkeypatch):
    (check,) = (one for one in statement("Theorem 3").checks if one.name.startswith("bounds"))
    assert check.corrected(runs, "theory flow") <= check.tolerance
    assert check.printed(runs, "theory flow") > 100 * check.tolerance  # B_n without the class probability
    monkeypatch.setattr(attention, name, wrap(getattr(attention, name)))
    assert check.corrected(runs, "theory flow") > check.tolerance


@pytest.mark.parametrize("level", ["theory flow", "modified flow", "full flow"])
def test_another_constant_fails_at_the_start(level, runs, monkeypatch):
    (check,) = (one for one in statement("Theorem 4").checks if one.name.startswith("first fall"))
    assert check.printed(runs, level) < 0.01 * check.tolerance + 0.005
    right = attention.speed_constant
    monkeypatch.setattr(attention, "speed_constant", lambda **o: right(**{**o, "vocab_size": None}))
    assert check.printed(runs, level) > check.tolerance


def test_the_upper_bound_of_theorem_3_can_fail(runs, monkeypatch):
    # Its xi is that of (9), so that a motion that is too fast breaks it.
    right = measures._exponent
    monkeypatch.setattr(measures, "_exponent", lambda runs, level: 0.1 * right(runs, level))
    assert measures.theorem3_bounds(runs, "theory flow") > 1


def test_theorem_3_counts_logits_from_where_they_start(runs):
    """Attention and its growth stay the same if all logits of a query are moved; the least B_n has five digits then."""
    data = runs.trajectory("theory flow").dataset
    shifted = SimpleNamespace(dataset=data.assign(z=data["z"] + 0.3))
    elsewhere = SimpleNamespace(setting=runs.setting, trajectory=lambda level: shifted)
    assert measures.theorem3_bounds(elsewhere, "theory flow") == pytest.approx(
        measures.theorem3_bounds(runs, "theory flow"), abs=1e-5
    )


def test_half_the_upper_exponent_of_theorem_3_fails_for_a_token_that_holds_most_attention(monkeypatch):
    classes = SequenceClasses.single_common_token(2, 1000, common=0.2, distinct=[1.0, 0.1])  # f0^2 = 0.95
    runs = audit.Simulations(Setting("dominant", classes, 1.0, 1e-3, 100.0), seed=0)
    right = attention.growth_bounds
    assert measures.theorem3_bounds(runs, "theory flow") < 1e-3
    monkeypatch.setattr(attention, "growth_bounds", lambda b, f0: (right(b, f0)[0], right(b / 2, f0)[1]))
    assert measures.theorem3_bounds(runs, "theory flow") > 0.5


def test_there_are_enough_of_them():
    assert len(PROOFS) + len(CHECKS) >= 50


def test_printed_and_corrected_forms_are_latex():
    for one in (one for one in statements.REGISTER.values() if one.paper == "Scan and Snap"):
        for formula in filter(None, (one.printed, one.corrected)):
            assert "\\" in formula and "$" not in formula, one.id
            # One display each: braces and \left .. \right in pairs, and no \tag, of which a display takes one.
            assert formula.count("{") == formula.count("}"), one.id
            assert formula.count(r"\left") - formula.count(r"\leftarrow") == formula.count(r"\right"), one.id
            assert r"\tag" not in formula and "\n" not in formula and "  " not in formula, one.id


def test_every_numbered_statement_is_in_the_register():
    numbers = {one.number for one in statements.REGISTER.values() if one.paper == "Scan and Snap"}
    assert {f"Lemma {n}" for n in range(1, 19)} <= numbers
    assert {f"Remark {n}" for n in range(1, 5)} <= numbers
    assert {
        "Theorem 1(a)",
        "Theorem 1(b)",
        "Theorem 2(a)",
        "Theorem 2(b)",
        "Theorem 3",
        "Theorem 4",
        "Theorem 5",
    } <= numbers
    assert {"Corollary 1", "Corollary 2"} <= numbers
    assert not papers.named("Scan and Snap").not_examined
