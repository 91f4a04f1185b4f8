"""False variants of the statements of Scan and Snap: the check of each turns red, as proofs do in `mistakes.py`.

A sign, a factor, an index or a hypothesis is wrong, or a bound is halved, or the paper's printed form is put in where
it is wrong.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from dynamics import SequenceClasses
from theory import statements
from theory.scan_and_snap import attention, bounds, decoder, measures, overlaps, visits
from yzflow.audits import audit
from yzflow.audits.verdicts import Verdict, judge
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

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
    "Corollary 1: half the steps": ("Corollary 1", 3, SETTING, (decoder, "h", scaled(0.5))),
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
        # Bounds of chi with another factor, or exchanged.
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


def test_printed_and_corrected_forms_are_latex():
    """Of all papers."""
    for one in statements.REGISTER.values():
        for formula in filter(None, (one.printed, one.corrected, *(clause.formula for clause in one.clauses))):
            assert "$" not in formula, one.id
            assert one.paper != "Scan and Snap" or ("\\" in formula and "{{" not in formula), one.id
            # One display each: braces and \left .. \right in pairs, and no \tag, of which a display takes one.
            assert formula.count("{") == formula.count("}"), one.id
            assert formula.count(r"\left") - formula.count(r"\leftarrow") == formula.count(r"\right"), one.id
            assert r"\tag" not in formula and "\n" not in formula and "  " not in formula, one.id
