"""Quantities hold every function that their errors allow, and its derivative."""

import dataclasses
import math

import numpy as np
import pytest
from flint import arb, arb_poly, arb_series, ctx
from hypothesis import given
from hypothesis import strategies as st
from yzflow_enclose import Enclosure, enclose_flow
from yzflow_enclose.quantities import ORDER, Quantity, Span, midpoint_and_radius
from yzflow_enclose.stepping import ball_of, moved, precision

from dynamics import SequenceClasses

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


# With the first two derivatives.
FUNCTIONS = {
    "exp": (lambda a: a.exp(), math.exp, math.exp),
    "log": (lambda a: a.log(), lambda x: 1 / x, lambda x: -1 / x**2),
    "sqrt": (lambda a: a.sqrt(), lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    "rsqrt": (lambda a: a.rsqrt(), lambda x: -0.5 * x**-1.5, lambda x: 0.75 * x**-2.5),
    "inverse": (lambda a: 1 / a, lambda x: -(x**-2), lambda x: 2 * x**-3),
    "square": (lambda a: a * a, lambda x: 2 * x, lambda x: 2),
    "sin": (lambda a: a.sin(), math.cos, lambda x: -math.sin(x)),
    "cos": (lambda a: a.cos(), lambda x: -math.sin(x), lambda x: -math.cos(x)),
    "arctan": (lambda a: a.arctan(), lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "erf": (
        lambda a: a.erf(),
        lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
        lambda x: -4 * x / math.sqrt(math.pi) * math.exp(-x * x),
    ),
    "difference": (lambda a: 3 - a, lambda x: -1, lambda x: 0),
    "sum": (lambda a: a + a, lambda x: 2, lambda x: 0),
    "sum with a number": (lambda a: a + 3, lambda x: 1, lambda x: 0),
    "product with a number": (lambda a: a * 3, lambda x: 3, lambda x: 0),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("at", [0.5, 2.0])
def test_small_errors_grow_by_the_slope_and_the_bend(function, at):
    """Of x = at + 3 t, known to 1e-6 with a derivative known to 1e-7 or 1e-5, to first order.

    The value is known to |g'| e, and the derivative to |g''| e |x'| + |g'| e'; that of roots to twice that.
    """
    compute, slope, bend = FUNCTIONS[function]
    error = 1e-6
    for beside in (1e-7, 1e-5):
        with precision(100):
            span = Span(0.0, 0.0, arb(0), arb(0))
            ctx.cap = 20
            x = Quantity(arb_series([at, 3], ORDER), arb_series([at, 3], ORDER + 1), span, arb(error), arb(beside))
            ctx.cap = 1  # what arithmetic needs, it sets itself
            found = compute(x)
            ctx.cap = 1
            value, rate = found.ball(), found.rate.ball()
        assert float(value.rad()) == pytest.approx(error * abs(slope(at)), rel=1e-4)
        least = abs(bend(at)) * error * 3 + abs(slope(at)) * beside
        assert float(rate.mid()) == pytest.approx(3 * slope(at), rel=1e-4)
        assert least * (1 - 1e-4) < float(rate.rad()) < least * (2.01 if "sqrt" in function else 1 + 1e-4)


@pytest.mark.parametrize("ripple", [(0.0, 1.0), *RIPPLES])
def test_an_integral_holds_those_of_all_that_the_errors_allow(ripple):
    """Of a polynomial of a degree above that of the series; its error is that of the integrand times the length."""
    size, rate = ripple
    rng = np.random.default_rng(0)
    with precision(100):
        span = Span(0.5, 1.5, arb(1), arb(0, 0.5))
        coefficients = rng.uniform(-1, 1, 9)
        integrand, f = rippled(coefficients.tolist(), span, size, rate)
        ctx.cap = 1
        found, end = integrand.integral(arb(0.25))
        whole = np.polynomial.Polynomial(coefficients).integ()

        def exact(t):
            return 0.25 + whole(t) - whole(0.5) + size / rate * (np.sin(rate * t) - np.sin(rate * 0.5))

        for t in np.linspace(0.5, 1.5, 40):
            assert found.lower - 1e-12 <= exact(t) <= found.upper + 1e-12
            assert found.rate.lower - 1e-12 <= f(t)[0] <= found.rate.upper + 1e-12
        assert end.contains(arb(exact(1.5))) or abs(end - exact(1.5)) < 1e-12
        ctx.cap = ORDER + 1
        span = Span(0.5, 0.75, arb(0.5), arb(0.125, 0.125))
        two = Quantity(arb_series([2], ORDER), arb_series([2], ORDER + 1), span, arb(0.5), arb(0))
        found, end = two.integral(arb(0))
        assert float(end) == 0.5 and float(end.rad()) == pytest.approx(0.125)
        assert (found.lower, found.upper) == pytest.approx((-0.125, 0.625))
        assert (found.rate.lower, found.rate.upper) == pytest.approx((1.5, 2.5))


def test_a_remainder_is_counted_where_all_other_terms_vanish():
    with precision(100):
        span = Span(0.5, 1.0, arb(0.75), arb(0, 0.25))
        power, _ = rippled(np.polynomial.polynomial.polyfromroots([0.75] * ORDER).tolist(), span, 0.0, 1.0)
        assert power.lower <= 0 and 0.25**ORDER <= power.upper < 0.25**ORDER * (1 + 1e-6)
        assert (power < 0.25**ORDER * 0.99).value is None


def test_a_float_and_how_far_it_is_from_a_ball_hold_the_ball():
    with precision(100):
        for ball in (arb(1) / 3, arb(2, 1e-3), arb(-1) / 3 + arb(0, 1e-17)):
            middle, radius = midpoint_and_radius(ball)
            assert arb(middle, radius).contains(ball) and radius < float(ball.rad()) * (1 + 1e-6) + 1e-16


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
        # A start that is not known exactly, a flow that is near the polynomial, and a zero within the span.
        assert (quantity(arb(0, 1e-9), 1) > 0).value is None
        near = quantity(0, 1)
        near._error = arb(1e-9)
        assert (near > 0).value is None
        span = Span(0.0, 0.5, arb(0.25), arb(0, 0.25))
        assert (quantity(0, 1) > 0).value is None


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
