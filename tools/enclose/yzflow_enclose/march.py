"""The march of an enclosure from start to end: the size of each step, and the radius of its tube."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as default

import numpy as np
from flint import arb, arb_poly, ctx

from yzflow_enclose.fields import VectorField
from yzflow_enclose.stepping import (
    GUARD,
    Step,
    above,
    as_limbs,
    defect,
    follow,
    precision,
    taylor,
    weighted_norm,
)

# The claimed radius of a step, in bounds of the error: room for a checker with coarser bounds.
_ROOM = 4.0
# Least and largest number of pieces of a step, each with its own logarithmic norm. The third is the largest
# contribution of the pieces' size to the growth of an error in a step, as an exponent.
_FEWEST, _MOST, _EXCESS = 4, 128, 0.35
_SHORTEST = 2.0**-40
# Floats below the first, or above the second, have no square.
_SQUARABLE = 2.0**-500, 2.0**500
# An error this large in the norm of the weights says nothing about the logits any more.
_LOST = 2.0**-10


@dataclass
class March:
    """Steps so far, and the reason for their end."""

    steps: list[Step] = default(default_factory=list)
    reason: str = ""


def degree_of(bits: int) -> int:
    """Steps of about a fifth of the radius of convergence, whatever the precision."""
    return max(12, math.ceil(0.4 * bits))


def march(
    field: VectorField,
    t_end: float,
    bits: int,
    max_steps: int,
    max_seconds: float | None,
    report: Callable[[float], None],
    start: Sequence[arb] | None = None,
) -> March:
    """Enclose the solutions from the balls ``start`` (default: zero) at t = 0 as far as possible, up to ``t_end``."""
    found = March()
    began = time.monotonic()
    with precision(bits + GUARD):
        degree = degree_of(bits)
        (state, epsilon), now = _first(field, start), 0.0
        # The truncation error of a step, in the norm of the weights.
        goal = 2.0**-bits * field.scale
        shrink, pieces = 1.0, _FEWEST
        while now < t_end and not found.reason:
            try:
                coefficients = taylor(field, state, degree, exact=True)
            except ValueError as error:
                found.reason = f"the field has no power series there: {error}"
                break
            guess = _first_guess(coefficients, field.weights, goal)
            made = _step(field, coefficients, now, guess * shrink, t_end, state, epsilon, goal, bits, pieces)
            if made is None:
                found.reason = "no step is short enough for its error to stay within its tube"
            elif made.step.radius > _LOST:
                found.reason = f"the radius grew to {made.step.radius:.1e}"
            elif len(found.steps) >= max_steps:
                found.reason = f"{max_steps} steps were taken"
            elif max_seconds is not None and time.monotonic() - began > max_seconds:
                found.reason = f"{max_seconds:g} seconds were over"
            else:
                found.steps.append(made.step)
                pieces = made.pieces
                state, epsilon, now = made.state, made.epsilon, made.step.end
                shrink = min(1.0, 1.1 * (made.step.end - made.step.start) / guess)
                report(now)
    return found


def _step(field, coefficients, now, length, t_end, state, epsilon, goal, bits, pieces) -> _Made | None:
    """A step from given Taylor coefficients, as long as its defect allows; None if no step is short enough."""
    degree = len(coefficients[0]) - 1
    for _ in range(60):
        end = t_end if now + length >= t_end * (1 - 1e-12) else now + length
        if end - now <= _SHORTEST * max(now, _SHORTEST):
            return None
        step = Step(now, end, as_limbs(coefficients, end - now, bits), 0.0, pieces)
        delta = defect(field, step.polynomials(), step.length, degree)
        error = above(delta * step.length) if delta.is_finite() else math.inf
        if error > 16 * goal:
            length = (end - now) * min(0.9, max(0.3, (goal / error) ** (1 / (degree + 1)) if error else 0.3))
        elif made := _tube(field, step, state, epsilon, delta):
            return made
        else:
            length = (end - now) / 2
    return None


@dataclass
class _Made:
    step: Step
    state: list[arb]
    epsilon: arb
    pieces: int


def _tube(field, step, state, epsilon, delta) -> _Made | None:
    """The step with a radius that holds, or None."""
    polynomials, length = step.polynomials(), step.length
    start = _start(field, polynomials, state, epsilon)
    radius = (start + delta * length) * (2 * _ROOM)
    if radius.is_zero():  # an equilibrium: a polynomial follows it exactly
        radius = arb(field.scale) * arb(2) ** -ctx.prec
    pieces = step.pieces
    for _ in range(12):
        radius = radius.upper()
        end, largest, excess = follow(field, polynomials, length, start, delta, radius, pieces)
        if excess > _EXCESS and pieces < _MOST:
            # Their contribution falls with their size.
            pieces = min(_MOST, 1 + int(pieces * min(4.0, 1.1 * excess / _EXCESS)))
            continue
        if not largest.is_finite():
            return None
        wanted = (largest * _ROOM).upper()
        if wanted < radius:
            # A tube within the one that was checked holds as well: its Jacobians are among those.
            claimed = Step(step.start, step.end, step.limbs, above(wanted), pieces)
            fewer = max(_FEWEST, int(pieces * max(0.5, min(1.0, 2 * excess / _EXCESS))))
            return _Made(claimed, *_end(field, polynomials, length, end), fewer)
        radius = wanted * 4
    return None


def _first(field: VectorField, start: Sequence[arb] | None) -> tuple[list[arb], arb]:
    """Midpoints of the balls at t = 0, and the largest distance of a point of the balls from them."""
    if start is None:
        return [arb(0)] * field.size, arb(0)
    return [value.mid() for value in start], weighted_norm([value - value.mid() for value in start], field.weights)


def _start(field: VectorField, polynomials: Sequence[arb_poly], state: Sequence[arb], epsilon: arb) -> arb:
    """The error at the start: the error at the end of the last step, plus the gap between the two polynomials."""
    gap = [p[0] - value for p, value in zip(polynomials, state, strict=True)]
    return (epsilon + weighted_norm(gap, field.weights)).upper()


def _end(field: VectorField, polynomials: Sequence[arb_poly], length: arb, epsilon: arb) -> tuple[list[arb], arb]:
    """A point at the end of a step, and a bound of the solution's distance from it."""
    last = [p(length) for p in polynomials]
    middle = [value.mid() for value in last]
    rounding = weighted_norm([value - m for value, m in zip(last, middle, strict=True)], field.weights)
    return middle, (epsilon + rounding).upper()


def check_steps(field: VectorField, steps: Sequence[Step], bits: int, start: Sequence[arb] | None = None) -> str:
    """Recompute every bound of given steps; returns why they prove nothing, or "" if they prove their claims."""
    with precision(bits + GUARD):
        (state, epsilon), now = _first(field, start), 0.0
        for number, step in enumerate(steps):
            if step.start != now or not step.end > step.start or step.pieces < 1:
                return f"step {number} does not start where the last one ended"
            polynomials, length = step.polynomials(), step.length
            gap = _start(field, polynomials, state, epsilon)
            delta = defect(field, polynomials, length, step.degree)
            end, largest, _ = follow(field, polynomials, length, gap, delta, arb(step.radius), step.pieces)
            if not largest < step.radius:
                return f"the error of step {number} from t = {step.start:g} is not within its radius"
            state, epsilon = _end(field, polynomials, length, end)
            now = step.end
    return ""


def _first_guess(coefficients: list[list[arb]], weights: np.ndarray, goal: float) -> float:
    """The time at which the last terms of the series reach ``goal``."""
    degree = len(coefficients[0]) - 1
    shortest = math.inf
    for k in (degree - 1, degree):
        sizes = [w * float(abs(row[k])) for row, w in zip(coefficients, weights.tolist(), strict=True)]
        if _SQUARABLE[0] < max(sizes) < _SQUARABLE[1]:
            shortest = min(shortest, (goal / math.sqrt(sum(x**2 for x in sizes))) ** (1 / k))
            continue
        size = weighted_norm([row[k] for row in coefficients], weights)
        if size > 0:
            shortest = min(shortest, float(((arb(goal) / size).log() / k).exp()))
    return min(shortest, 1e6)
