"""Number of turns of the entropy, by routes that share no formula with the proofs, and by ball arithmetic."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import scipy.integrate
from yzflow_joma import formulas, measures
from yzflow_joma.enclosed import turning_point
from yzflow_joma.settings import NONLINEAR

TIMES = np.geomspace(1e-5, 60, 40000)


@functools.cache
def closeness(mu):
    """ln(1/delta) of one entry at `TIMES`."""

    def rate(_, x):
        return np.exp((mu * -np.expm1(-np.asarray(x))) ** 2 / 2)

    return scipy.integrate.solve_ivp(
        rate, (0, TIMES[-1]), [0.0], method="LSODA", t_eval=TIMES, rtol=1e-10, atol=1e-12
    ).y[0]


def turns(mu, copies):
    """Signs of the entropy's rate in order, for entries mu with given numbers of copies."""
    mu, copies = np.asarray(mu, float), np.asarray(copies, float)
    x = np.array([closeness(float(size)) for size in mu])
    v = mu[:, None] * -np.expm1(-x)
    u = v**2 / 2
    with np.errstate(divide="ignore"):
        speed = np.log(v * mu[:, None]) - x + u
    w = np.exp(speed - speed.max(axis=0))
    p = copies[:, None] * np.exp(u - u.max(axis=0))
    p /= p.sum(axis=0)
    parts = p * (u - (p * u).sum(axis=0)) * w
    signs = -np.sign(np.where(np.abs(parts.sum(axis=0)) > 1e-9 * np.abs(parts).sum(axis=0), parts.sum(axis=0), 0))
    signs = signs[signs != 0]
    return [int(signs[0]), *(int(sign) for sign in signs[1:][np.diff(signs) != 0])]


def test_two_sizes_turn_once_and_where_their_speeds_are_level():
    rng = np.random.default_rng(0)
    for _ in range(40):
        mu = np.sort(rng.uniform(0.4, 4, 2).round(2))
        if mu[0] == mu[1]:
            continue
        copies = rng.integers(1, 300, 2)
        assert turns(mu, copies) == [-1, 1]
        when = formulas.level_time(*mu)
        assert when == pytest.approx(formulas.level_time(-mu[1], mu[0]))
    # By balls, without the argument on pairs, for given numbers of copies of two sizes.
    for mu in ([2.0, 1.0, 1.0, 1.0], [2.5, 2.5, 2.0], [0.5, 3.0]):
        when = formulas.level_time(min(mu), max(mu))
        turn = turning_point(mu, between=(0.8 * when, 1.2 * when))
        assert turn.times is not None and when == pytest.approx(turn.times[0], rel=1e-8)


def test_it_falls_before_the_first_level_time_and_rises_after_the_last():
    rng = np.random.default_rng(1)
    for _ in range(20):
        mu = np.sort(rng.uniform(0.5, 3.5, 4).round(2))
        if len(set(mu)) < 4:
            continue
        pairs = [formulas.level_time(mu[j], mu[k]) for j in range(4) for k in range(j)]
        times = np.array([0.3, 0.9, 0.999]) * min(pairs)
        late = np.array([1.001, 1.1, 1.5]) * max(pairs)
        # Without zeros it rises where R > 0; the rate itself agrees.
        assert (formulas.rising_zeros(mu, times) < 0).all() and (formulas.rising_zeros(mu, late) > 0).all()


def test_three_entries_turn_three_times_in_balls():
    """No zeros, and two entries near each other; each turn is proved to be the only one in its bracket."""
    mu = list(measures.THREE_TURNS)
    points = [
        turning_point(mu, between=between, rising=rising)
        for between, rising in (((0.57, 0.618), True), ((0.618, 0.643), False), ((0.643, 0.68), True))
    ]
    assert all(point.times is not None and point.width < 1e-9 for point in points)
    assert [round(point.times[0], 4) for point in points] == [0.6058, 0.6297, 0.6566]
    assert measures.three_turns(None, NONLINEAR) == 0
    assert turns(mu, (1, 1, 1)) == [-1, 1, -1, 1]
    assert turns((3.14, 3.0, 0.1), (1, 1, 1)) == [-1, 1]


def test_a_new_entry_adds_two_turns():
    """The construction of the proof: many copies, and a far larger entry with a small share."""

    def beside(mu, copies, new, lift):
        many = new**2 / 2 * math.exp(new**2 / 2) / (lift * sum(copies))
        return (*mu, new), (*(many * number for number in copies), 1)

    once = (1.0, 2.0), (1, 1)
    three = beside(*once, 4.0, 0.1)
    five = beside(*three, 8.0, 0.03)
    assert [turns(*case) for case in (once, three, five)] == [[-1, 1], [-1, 1] * 2, [-1, 1] * 3]
    # An entry that lifts the mean too far adds no turn.
    assert turns(*beside(*three, 8.0, 3.0)) != [-1, 1] * 3


@pytest.mark.parametrize("mu", [(2.5, 2.0), (2.0, 1.0), (2.6, 2.6, 2.4), (3.0, 2.0, 1.0)])
def test_the_least_number_of_zeros_that_never_lets_it_rise(mu):
    """Just below the number, the entropy rises for a while but falls in the end; just above, it always falls."""
    some, never = formulas.turning_zeros(mu)
    most = formulas.rising_zeros(mu)
    assert some < most < never
    sizes, copies = np.unique(mu, return_counts=True)
    below, above = (turns([1e-9, *sizes], [zeros, *copies]) for zeros in (0.999 * most, 1.001 * most))
    # An entry of 1e-9 acts as zeros until the others have stopped, and rises then.
    assert below[:3] == [-1, 1, -1] and above[:2] in ([-1], [-1, 1]) and len(above) < len(below)
    assert formulas.rising_zeros([*mu, 0.0, 0.0]) == most
    for zeros in (math.ceil(some) - 1, math.floor(some) + 1):
        assert formulas.turns([*mu, *[0.0] * zeros]) is (zeros < some)
    assert formulas.rising_zeros(mu, [60.0])[0] == pytest.approx(some, rel=1e-6)


def test_two_sizes_beside_zeros_are_sparse_dense_and_sparse_again_in_between():
    """(2.5, 2): from the closed form's 12.8 to the largest R, 17.6, and with no other number of zeros."""
    path = formulas.rising_zeros((2.5, 2.0), np.geomspace(0.1, 60, 4000))
    for zeros in range(25):
        above = (path > zeros).astype(int)
        crossings = np.diff(above)[np.diff(above) != 0].tolist()
        assert crossings == ([1] if zeros <= 12 else [1, -1] if zeros <= 17 else [])
    assert turns((0.02, 2.0, 2.5), (15, 1, 1)) == [-1, 1, -1, 1]


def test_hostile():
    for mu in ((0.0,), ()):
        with pytest.raises(ValueError, match="`mu` must have an entry that is not zero"):
            formulas.rising_zeros(mu)
    with pytest.raises(ValueError, match="`t` must be positive times"):
        formulas.rising_zeros((2.0, 1.0), [0.0])
    for pair in ((2.0, -2.0), (0.0, 1.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match="must differ in size and not be zero"):
            formulas.level_time(*pair)
