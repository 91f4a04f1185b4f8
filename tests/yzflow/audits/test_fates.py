"""Verdicts on made-up numbers whose truth is known: each can be had, and the false-alarm rate of a table is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from yzflow.audits.survival_verdicts import (
    Fate,
    fate_of_run,
    fate_of_votes,
    holm,
    seeds_needed,
    sign_test,
    votes,
)

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("error", "holds_from", "reversed_from", "expected"),
    [
        (0.05, 0.0, NAN, Fate.HOLDS),
        (0.3, 50.0, NAN, Fate.LATER),
        (0.3, 51.0, NAN, Fate.FAILS),
        (0.3, INF, 20.0, Fate.REVERSED),
        (0.3, INF, 51.0, Fate.FAILS),
        (0.3, INF, NAN, Fate.FAILS),
        (NAN, INF, INF, Fate.UNDEFINED),
        (INF, INF, INF, Fate.FAILS),
    ],
)
def test_each_verdict_on_one_run(error, holds_from, reversed_from, expected):
    """Of a run of 100 steps with the tolerance 0.05."""
    assert fate_of_run(error, 0.05, holds_from=holds_from, reversed_from=reversed_from, end=100.0) is expected


@pytest.mark.parametrize(
    ("whole", "late", "decided", "wrong", "expected"),
    [
        ((12, 0), (12, 0), (True, True), NAN, Fate.HOLDS),
        ((12, 0), (7, 5), (True, False), NAN, Fate.HOLDS),
        ((6, 6), (12, 0), (False, True), NAN, Fate.LATER),
        ((0, 12), (12, 0), (True, True), NAN, Fate.LATER),
        ((0, 12), (0, 12), (True, True), NAN, Fate.FAILS),
        ((0, 12), (0, 12), (True, True), 1.0, Fate.REVERSED),
        ((0, 12), (0, 12), (True, True), 0.62, Fate.FAILS),
        ((9, 3), (9, 3), (False, False), 0.2, Fate.UNDECIDED),
        ((0, 12), (5, 7), (True, False), 0.6, Fate.UNDECIDED),
    ],
)
def test_each_verdict_on_many_runs(whole, late, decided, wrong, expected):
    found = fate_of_votes(whole, late, whole_decided=decided[0], late_decided=decided[1], wrong=wrong)
    assert found is expected


def test_votes():
    """Of signs, a run with half of them wrong has no vote; of an equation each run has one."""
    assert votes([0.1, 0.5, 0.9, 1.0], 0.0, reversible=True) == (1, 2)
    assert votes([0.1, 0.05, 0.9, NAN], 0.05, reversible=False) == (1, 3)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_is_the_exact_binomial_one(first, second):
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert sign_test(first, second) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("tests", [1, 7, 80, 1000])
def test_fewer_seeds_than_needed_decide_nothing_and_these_do(tests):
    """All cells agree: with one run less, Holm's procedure rejects none of them."""
    for runs, decided in ((seeds_needed(tests), True), (seeds_needed(tests) - 1, False)):
        assert holm(sign_test(np.full(tests, runs), np.zeros(tests))).tolist() == [decided] * tests
    assert seeds_needed(80) == 12


def test_holm_on_a_case_by_hand():
    """0.01 <= 0.05/4; 0.015 <= 0.05/3; 0.03 > 0.05/2 ends it, although 0.04 <= 0.05."""
    np.testing.assert_array_equal(holm([0.03, 0.01, NAN, 0.04, 0.015]), [False, True, False, False, True])
    assert holm([0.05]).all() and not holm([NAN]).any() and holm(np.zeros((0, 2))).shape == (0, 2)


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.2))
def test_holm_is_the_closed_test_of_bonferroni(p, alpha):
    """It rejects what every subset of hypotheses with it rejects by Bonferroni's bound: another way to the same."""
    expected = []
    for i in range(len(p)):
        others = sorted((value for j, value in enumerate(p) if j != i), reverse=True)
        sets = [[p[i], *others[:n]] for n in range(len(p))]  # of each size, those of the largest values
        expected.append(all(min(one) <= alpha / len(one) for one in sets))
    assert holm(p, alpha=alpha).tolist() == expected
