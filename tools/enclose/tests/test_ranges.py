"""Constants and inequalities for ranges of parameters: true where they are, refuted where they are not."""

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from yzflow_enclose.scan_and_snap import balls, ranges
from yzflow_enclose.stepping import precision

from theory.scan_and_snap import decoder


def test_the_constant_of_lemma_9_without_omega_for_all_m():
    found = ranges.late_constant()
    assert 2.12443 < float(found.lower()) < 2.12444 < float(found.upper()) < 2.1246
    # The bounds hold the closed form at any M and t.
    rng = np.random.default_rng(0)
    worst = 0.0
    for log_m, stretch in zip(rng.uniform(math.log(2), 60, 400), 10 ** rng.uniform(0, 2, 400), strict=True):
        size = int(min(max(2, math.exp(log_m)), 2**53))
        tau = 2 * math.log(size) * (stretch if rng.random() < 0.5 else 1)
        gamma = decoder.gamma(tau, vocab_size=size, n_classes=1, eta_y=1.0)
        worst = max(worst, gamma * tau / math.log(size * tau))
        assert worst < float(found.upper())
    assert worst > 2.1
    assert float(ranges.late_ratio(1.6e8)) == pytest.approx(
        decoder.gamma(2 * math.log(1.6e8), vocab_size=160_000_000, n_classes=1, eta_y=1.0)
        * 2 * math.log(1.6e8) / math.log(1.6e8 * 2 * math.log(1.6e8)), rel=1e-12,
    )  # fmt: skip


def test_t0_and_t0_prime_come_after_the_peak_from_the_stated_m_on():
    # t0' from M = 19 on, t0 from M = 3 on; below both are earlier than the peak.
    assert ranges.brackets_transition(1, 19) is True and ranges.brackets_transition(2, 3) is True
    assert ranges.brackets_transition(1, 50) is True
    assert [m for m in range(2, 30) if ranges.brackets_transition(1, m) is False] == list(range(2, 19))
    assert ranges.brackets_transition(2, 2) is False
    for m in (2, 5, 18, 19, 40, 60, 1000, 10**9):
        peak = decoder.transition_time(vocab_size=m, n_classes=2, eta_y=0.5)
        first = decoder.scanning_time(vocab_size=m, n_classes=2, eta_y=0.5)
        assert ranges.brackets_transition(1, m) is bool(peak < first)
        with precision(80):
            size, scaled = ranges.transition((arb(m - 1) / arb(1).exp()).lambertw())
        assert float(size) == pytest.approx(m) and float(scaled) * 2 / m / 0.5 == pytest.approx(peak, rel=1e-12)
    for wrong in ((3, 19), (1, 1.5)):
        with pytest.raises(ValueError, match="must be"):
            ranges.brackets_transition(*wrong)


@pytest.mark.parametrize(("vocab_size", "constant"), [(2, 0.23133), (20, 0.1976), (1000, 0.1951)])
def test_the_constant_of_lemma_7(vocab_size, constant):
    # Largest at eta_Y = 1, where it is reached to four digits.
    assert ranges.step_gap_below(constant, vocab_size, (0.5, 1.0)) is True
    assert ranges.step_gap_below(constant * 0.999, vocab_size, (0.5, 1.0)) is False
    steps = decoder.h_steps(200, vocab_size=vocab_size, eta_y=1.0)
    gap = vocab_size * (steps - decoder.h(np.arange(201.0), vocab_size=vocab_size, eta_y=1.0))
    assert constant * 0.999 < gap.max() < constant
    for wrong in ((0.5, 2.0), (0.9, 0.5), (0.5,), (0.5, 0.6, 0.7)):
        with pytest.raises(ValueError, match="`eta_y` must be a range"):
            ranges.step_gap_below(constant, vocab_size, wrong)


@given(st.floats(0, 1), st.floats(0, 1))
def test_ranges_hold_their_points(first, second):
    def gamma(M, t):
        return balls.gamma(balls.margin(M * t / 10, M), M)

    found = ranges.range_of(gamma, (990, 1010), (50, 60), accuracy=0.1)
    m, t = 990 + round(20 * first), 50 + 10 * second
    value = decoder.gamma(t, vocab_size=m, n_classes=10, eta_y=1.0)
    assert float(found.lower()) - 1e-12 <= value <= float(found.upper()) + 1e-12
    assert float(found.rad()) < 0.25


def test_the_largest_value_is_found_and_an_empty_domain_refused():
    def hill(x, y):
        return None if (x + y).upper() < 1 else 3 - (x - 0.5) * (x - 0.5) - (y - 0.75) * (y - 0.75)

    square = [(arb(0).union(1), arb(0).union(1))]
    with precision(80):
        found = ranges.supremum(hill, square, accuracy=1e-6)
        assert found.contains(3) and found.rad() < 1e-5
        with pytest.raises(ValueError, match="`boxes` must have a point"):
            ranges.supremum(lambda x, y: None, square, accuracy=1e-6)
        with pytest.raises(RuntimeError, match="not found"):
            ranges.supremum(hill, square, accuracy=1e-6, most=5)
        assert ranges.holds(lambda x, y: True if x + y >= -1e-6 else None, square) is True
        assert ranges.holds(lambda x, y: False if x > 0.9 else None if x.upper() > 0.9 else True, square) is False
        assert ranges.holds(lambda x, y: None, square, depth=3) is None
