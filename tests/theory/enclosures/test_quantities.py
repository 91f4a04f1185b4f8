"""Quantities hold every function that their errors allow, and its derivative."""

import dataclasses
import math

import numpy as np
import pytest
from flint import arb, arb_poly, arb_series, ctx
from hypothesis import given
from hypothesis import strategies as st

from dynamics import SequenceClasses
from theory.enclosures import Enclosure, enclose_flow
from theory.enclosures.quantities import ORDER, Quantity, Span
from theory.enclosures.stepping import ball_of, moved, precision

# Of a ripple on a polynomial, size cos(rate t): a fast one, and one that is almost a displacement.
RIPPLES = ((0.01, 40.0), (0.3, 0.05))


def rippled(coefficients, span, size, rate):
    """A quantity for a polynomial with a ripple, and the function with its derivative."""
    ctx.cap = ORDER + 1
    thin = moved(arb_poly(list(coefficients)), span.centre)
    wide = moved(thin, span.distance)
    series = [arb_series(p.coeffs()[:n], n) for p, n in ((thin, ORDER), (wide, ORDER + 1))]
    exact = np.polynomial.Polynomial(coefficients)
    slope = exact.deriv()
    quantity = Quantity(*series, span, arb(size), arb(size * rate))
    return quantity, lambda t: (
        exact(t) + size * np.cos(rate * t),
        slope(t) - size * rate * np.sin(rate * t),
    )


OPERATIONS = {
    "sum": (lambda a, b: 5 - (a + b - 3), lambda a, b, da, db: (8 - a - b, -da - db)),
    "product": (lambda a, b: 2 * a * b, lambda a, b, da, db: (2 * a * b, 2 * (da * b + a * db))),
    "quotient": (lambda a, b: a / b, lambda a, b, da, db: (a / b, da / b - a * db / b**2)),
    "inverse": (lambda a, b: 1 / a - b, lambda a, b, da, db: (1 / a - b, -da / a**2 - db)),
    "exp": (lambda a, b: (a - b).exp(), lambda a, b, da, db: (np.exp(a - b), np.exp(a - b) * (da - db))),
    "log": (lambda a, b: a.log() * b, lambda a, b, da, db: (np.log(a) * b, da / a * b + np.log(a) * db)),
    "sqrt": (lambda a, b: a.sqrt(), lambda a, b, da, db: (np.sqrt(a), da / 2 / np.sqrt(a))),
    "rsqrt": (lambda a, b: b.rsqrt(), lambda a, b, da, db: (b**-0.5, -0.5 * b**-1.5 * db)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("ripple", RIPPLES)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-3, 0.3]))
def test_balls_hold_what_the_errors_allow(operation, ripple, seed, width):
    rng = np.random.default_rng(seed)
    compute, expected = OPERATIONS[operation]
    with precision(100):
        span = Span(0.5, 0.5 + width, arb(0.5) + arb(width) / 2, arb(0, width / 2))
        (first, f), (second, g) = (rippled([2, *rng.uniform(-0.3, 0.3, 4)], span, *ripple) for _ in range(2))
        found = compute(first, second)
        for t in np.linspace(span.start, span.end, 60):
            (a, da), (b, db) = f(t), g(t)
            value, slope = expected(a, b, da, db)
            assert found.lower - 1e-12 <= value <= found.upper + 1e-12
            assert found.rate.lower - 1e-12 <= slope <= found.rate.upper + 1e-12
        assert found.upper - found.lower < 20 * (width + ripple[0])


@pytest.mark.parametrize(
    ("compute", "slope"),
    [
        (lambda a: a.exp(), math.exp(2)),
        (lambda a: a.log(), 0.5),
        (lambda a: a.sqrt(), 0.5 / math.sqrt(2)),
        (lambda a: a.rsqrt(), 0.5 / 2**1.5),
        (lambda a: 1 / a, 0.25),
        (lambda a: a * a, 4.0),
    ],
)
def test_a_small_error_grows_by_the_slope_and_no_more(compute, slope):
    """Of a constant 2 with an error of 1e-6: the width of the ball is 2e-6 times the slope there, to first order."""
    with precision(100):
        ctx.cap = ORDER + 1
        span = Span(0.5, 0.5, arb(0.5), arb(0))
        two = Quantity(arb_series([2], ORDER), arb_series([2], ORDER + 1), span, arb(10) ** -6, arb(10) ** -6)
        found = compute(two)
        assert found.upper - found.lower == pytest.approx(2e-6 * slope, rel=1e-5)


def test_the_range_of_a_polynomial_over_a_span():
    """x^2 - x/2 from 1 to 1.5 rises from 1/2 to 3/2; about the middle it is 15/16 + 2 u + u^2, |u| <= 1/4."""
    with precision(100):
        found = ball_of(arb_poly([0, arb(-1) / 2, 1]), arb(1), arb(1.5))
        assert float(found.lower()) == pytest.approx(15 / 16 - 1 / 2 - 1 / 16, rel=1e-7) and found.lower() <= 0.5
        assert float(found.upper()) == pytest.approx(1.5, rel=1e-7) and found.upper() >= 1.5


def test_zero_at_the_start_is_decided_by_derivatives():
    with precision(100):
        ctx.cap = ORDER + 1
        span = Span(0.0, 0.5, arb(0), arb(0.25, 0.25))
        zero = arb(0)

        def quantity(*coefficients):
            p = arb_poly(list(coefficients))
            wide = moved(p, span.distance)
            return Quantity(arb_series(p.coeffs(), ORDER), arb_series(wide.coeffs(), ORDER + 1), span, zero, zero)

        assert (quantity(0, 0, 1, -1) > 0).value is True and (quantity(0, 0, -1, 1) >= 0).value is False
        assert (quantity(0, 1, -4) > 0).value is None  # positive at first, then negative
        assert (quantity(0.0) >= 0).value is True and (quantity(0.0) > 0).value is False
        assert (quantity(1, 1) / quantity(0, 1) > 0).value is None


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_displaced_polynomials_still_hold_the_velocities(decoder):
    # A tube as wide as this shows errors that a thin one hides: of the velocity, and of all that follows from them.
    classes = SequenceClasses.single_common_token(3, 7, common=0.5, distinct=(1.0, 0.5))
    fine = enclose_flow(classes, eta_y=1.0, eta_z=2.0, t_end=3.0, decoder=decoder, bits=60)
    weights = fine._reading.field.weights
    shift = np.random.default_rng(0).choice([-1e-3, 1e-3], weights.size) / weights
    steps = []
    for step in fine.steps:
        limbs = step.limbs.copy()
        limbs[:, 0, 0] += shift
        steps.append(dataclasses.replace(step, limbs=limbs, radius=1.001e-3 * math.sqrt(weights.size)))
    coarse = Enclosure(fine._reading, steps, t_end=3.0, bits=60, reason="")
    assert not coarse.verify()
    asked = (
        lambda at: at.velocity(0, 0),
        lambda at: at.z(0, 1),
        lambda at: at.attention(1, 0),
        lambda at: at.relative_gain(0, 1, 2).rate,
        lambda at: at.loss.rate,
    )
    for start, end in ((1.0, 1.0), (1.0, 1.01), (2.9, 2.95)):
        for question in asked:
            with precision(100):
                wide, thin = (question(flow.moment(start, end)).ball() for flow in (coarse, fine))
                point = question(fine.moment(start)).ball()
                assert wide.contains(point) and thin.contains(point) and wide.rad() > thin.rad()
