"""Quantities within the tube of a step, and where a step ends: of flows and polynomials that are known exactly."""

import math

import numpy as np
import pytest
from flint import arb, arb_poly
from own_steps import Made, near
from yzflow_enclose import march, stepping
from yzflow_enclose.moments import Tube
from yzflow_enclose.quantities import ORDER
from yzflow_enclose.states import FlowTube
from yzflow_enclose.stepping import Step, precision

WEIGHT = 4.0
GROWTH = Made([WEIGHT], lambda state: [state[0]])  # x' = x
FROM_ZERO = Made([WEIGHT], lambda state: [state[0] + 1])  # x = exp(t) - 1


@pytest.fixture(autouse=True)
def sixty_bits():
    with precision(60):
        yield


def step(start, end, coefficients, distance):
    """A step around a polynomial in t - start, and what is within a distance of it."""
    return Step(start, end, np.array(coefficients, float).reshape(1, -1, 1), distance * WEIGHT, 2)


def test_the_velocity_in_a_tube_has_the_error_of_the_jacobian_and_of_the_defect():
    """x' = x along p = 1 + t + t^2/2, within d: the velocity is off p' by d and by the defect, t^2/2 at the end."""
    distance, beside = 0.25, 0.75
    tube = Tube(GROWTH, [step(0.0, 1.0, [1, 1, 0.5], distance)])
    for start, end in ((0.5, 0.5), (0.5, 1.0), (0.875, 1.0)):
        _, (x,) = tube.variables(start, end)
        assert near(x.upper, 1 + end + end**2 / 2 + distance) and near(x.rate.upper, 1 + end + beside)
        least = (1 + start + start**2 / 2 - distance, 1 + start - beside)
        assert x.lower <= least[0] and x.rate.lower <= least[1]
        if start == end:
            assert near(-x.lower, -least[0]) and near(-x.rate.lower, -least[1])


def test_from_zero_on_the_last_term_is_that_of_the_whole_tube():
    """x = exp(t) - 1 along p = t: derivatives of the sixth order are 1 + x, at most 1 + t + d."""
    distance, end = 0.75, 0.75
    tube = Tube(FROM_ZERO, [step(0.0, 1.0, [0, 1], distance)])
    _, (x,) = tube.variables(0.0, end)
    known = sum(end**k / math.factorial(k) for k in range(1, ORDER))
    assert near(x.upper, known + (1 + end + distance) * end**ORDER / math.factorial(ORDER))
    assert x.lower <= 0 and (x > 0).value is True
    _, (x,) = tube.variables(0.0, 0.0)
    assert x.lower <= 0 <= x.upper < 1e-300 and near(x.rate.upper, 1)


@pytest.mark.parametrize("first", [0.0, 0.5])
def test_the_series_of_a_flow_hold_it_over_a_span_and_at_a_time(first):
    """x' = x from 1, in steps around 1 + t + t^2/2 and, from 1/2 on, around a line."""
    ends = [1.648, 1.648]
    steps = [step(0.0, 0.5, [1, 1, 0.5], 0.03), step(0.5, 1.0, ends, 0.25)]
    tube = FlowTube(GROWTH, steps, [arb(1)])
    start, end = first, first + 0.5
    for last in (end, start + 0.125):
        _, (x,) = tube.variables(start, last)
        for found in (x, x.rate):
            assert found.lower <= math.exp(start) and math.exp(last) <= found.upper < math.exp(last) + 0.3
    _, (x,) = tube.variables(end, end)
    distance, middle = (0.25, ends[0] * (1 if end == 0.5 else 1.5))  # 1/2 is in the later step
    assert near(x.upper, middle + distance) and near(-x.lower, distance - middle)
    _, (x,) = tube.variables(0.0, 0.0)
    assert x.ball() == 1 and x.rate.rate.ball() == 1


def test_a_step_ends_at_a_point_that_is_off_by_the_balls_as_well():
    polynomial = [arb_poly([1, arb(0, 0.25)])]
    (middle,), error = march._end(GROWTH, polynomial, arb(0.5), arb(0.125))
    assert middle == 1 and near(error, 0.125 + WEIGHT * 0.125)
    assert near(march._start(GROWTH, polynomial, [arb(0.5)], arb(0.125)), 0.125 + WEIGHT * 0.5)
    (middle,), error = march._first(GROWTH, [arb(1, 0.5)])
    assert middle == 1 and near(error, WEIGHT * 0.5)
    assert march._first(GROWTH, None) == ([arb(0)], arb(0))


@pytest.mark.parametrize(("error", "holds"), [(0.01, True), (0.03, False)])
def test_a_tube_is_claimed_where_its_own_jacobians_allow_it(error, holds):
    """x' = 4 w x^2 at rest over a time of one: eps exp(8 r) < r has no solution r for eps above 1/(8 e) = 0.046."""
    field = Made([WEIGHT], lambda state: [state[0] * state[0] * (4 * WEIGHT)])
    still = step(0.0, 1.0, [0, 0], 0.0)
    made = march._tube(field, still, [arb(0)], arb(error), arb(0))
    assert (made is not None) is holds
    if holds:
        line, radius = still.polynomials(), arb(made.step.radius)
        end, largest, _ = stepping.follow(field, line, arb(1), arb(error), arb(0), radius, made.step.pieces)
        assert largest < radius and end <= made.epsilon and error * math.exp(8 * made.step.radius) < made.step.radius
