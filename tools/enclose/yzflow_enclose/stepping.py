"""A validated step: a Taylor polynomial, its defect, and a bound of the growth of errors near it.

Let p be any polynomial in time, ``delta`` a bound of ||p' - f(p)|| over a time h, and ``mu`` a bound of the logarithmic
norm of the Jacobian of f over all points within a distance R of p. As long as the solution is within R, its distance
eps to p obeys eps' <= mu eps + delta, so that eps(h) <= exp(mu h) eps(0) + delta (exp(mu h) - 1) / mu. If that stays
below R, the solution was within R all along. The norm is ||W e|| with the weights of a `VectorField`.

Every number in a bound is a ball; numbers that only guide (the polynomial itself, the step size, R) are not.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import numpy as np
from flint import arb, arb_mat, arb_poly, arb_series, ctx

from yzflow_enclose.fields import VectorField

# Bits beside those asked for, so that round-off is far below the truncation error.
GUARD = 40
# Precision of Jacobians, which are as wide as their piece of time.
_JACOBIAN_BITS = 64


# flint has one precision and one length of series for the whole process: threads take turns.
_TURN = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child has no other threads, which might hold it
    os.register_at_fork(after_in_child=_TURN._at_fork_reinit)  # type: ignore[attr-defined]


@contextmanager
def precision(bits: int | None = None, *, cap: int | None = None) -> Iterator[None]:
    """Compute in the body with balls of this precision and series of this length; by default with the current ones.

    Other threads wait meanwhile. Both are put back at the end, whatever the body does to them.
    """
    with _TURN:
        before = ctx.prec, ctx.cap
        try:
            ctx.prec, ctx.cap = before[0] if bits is None else bits, before[1] if cap is None else cap
            yield
        finally:
            ctx.prec, ctx.cap = before


def above(value: arb) -> float:
    """A float at or above every point of a ball."""
    return math.nextafter(float(value.upper()), math.inf)


def padded(series: arb_series, length: int) -> list[arb]:
    """The first coefficients of a series, with trailing zeros."""
    coefficients = series.coeffs()[:length]
    return coefficients + [arb(0)] * (length - len(coefficients))


def taylor(field: VectorField, start: Sequence[arb], order: int, *, exact: bool) -> list[list[arb]]:
    """Taylor coefficients of the solution through ``start``, a list for each variable.

    Enclosures of them, for every solution through a point of the balls ``start``; or, if ``exact``, midpoints only.
    """
    coefficients = [[value.mid() if exact else value] for value in start]
    for k in range(order):
        with precision(cap=k + 1):
            slope = field.derivative([arb_series(c, k + 1) for c in coefficients])
            for own, series in zip(coefficients, slope, strict=True):
                value = series[k] / (k + 1)
                own.append(value.mid() if exact else value)
    return coefficients


def moved(polynomial: arb_poly, centre: arb) -> arb_poly:
    """The polynomial in the distance from ``centre``."""
    return polynomial(arb_poly([centre, 1]))


@dataclass(frozen=True)
class Step:
    """A time span, a polynomial for each variable, and a bound of the solution's distance.

    Parameters
    ----------
    start, end : float
        Exact times.
    limbs : (variables, degree + 1, n) float
        The coefficients in powers of t - start, each the exact sum of its n floats.
    radius : float
        Bound of sqrt(sum_i (weights_i (x_i - p_i))^2) over the whole span.
    pieces : int
        Number of parts of the span, each with its own logarithmic norm; more parts give a closer bound.
    """

    start: float
    end: float
    limbs: np.ndarray
    radius: float
    pieces: int

    @property
    def length(self) -> arb:
        return arb(self.end) - arb(self.start)

    @property
    def degree(self) -> int:
        return self.limbs.shape[1] - 1

    def polynomials(self) -> list[arb_poly]:
        """Balls around the polynomials, as thin as the precision allows."""
        found = []
        for rows in self.limbs.tolist():
            found.append(arb_poly([sum((arb(limb) for limb in row[1:] if limb), arb(row[0])) for row in rows]))
        return found


def as_limbs(coefficients: Sequence[Sequence[arb]], length: float, bits: int) -> np.ndarray:
    """Floats whose sums are the coefficients, to a precision of ``bits`` over a step."""
    count = -(-(bits + GUARD) // 53)
    limbs = np.zeros((len(coefficients), len(coefficients[0]), count))
    for i, row in enumerate(coefficients):
        for k, value in enumerate(row):
            least = -(bits + 16) - k * math.log2(length)
            for j in range(count):
                limbs[i, k, j] = float(value)
                value = (value - arb(limbs[i, k, j])).mid()
                rest = abs(float(value))
                if rest == 0 or math.log2(rest) < least:
                    break
    return limbs


def weighted_norm(values: Sequence[arb], weights: np.ndarray) -> arb:
    """Upper bound of the Euclidean norm of weights times values."""
    sizes = [value.abs_upper() * arb(weight) for value, weight in zip(values, weights.tolist(), strict=True)]
    return sum((size * size for size in sizes), arb(0)).upper().sqrt().upper()


def defect(field: VectorField, polynomials: Sequence[arb_poly], length: arb, degree: int) -> arb:
    """Upper bound of ||p' - f(p)|| over a step, the larger of the bounds over its halves."""
    half = length / 4
    return _defect(field, polynomials, half, half.upper(), degree).max(
        _defect(field, polynomials, half * 3, half.upper(), degree)
    )


def _defect(field: VectorField, polynomials: Sequence[arb_poly], centre: arb, half: arb, degree: int) -> arb:
    """Upper bound of ||p' - f(p)|| around a time: by the series there, and its remainder over all of the span."""
    middle = [moved(p, centre) for p in polynomials]
    box = [moved(p, arb(0, half)) for p in middle]
    order = degree + 1
    try:
        with precision(cap=order + 1):
            thin = field.derivative([arb_series(p.coeffs(), order) for p in middle])
            wide = field.derivative([arb_series(p.coeffs(), order + 1) for p in box])
    except ValueError:  # a denominator's ball holds zero
        return arb("inf")
    errors = []
    powers = [half**k for k in range(order + 1)]
    for p, inner, outer in zip(middle, thin, wide, strict=True):
        slope = p.derivative().coeffs()
        inside = padded(inner, order)
        bound = abs(outer[order]) * powers[order]
        for k in range(order):
            bound += abs(inside[k] - (slope[k] if k < len(slope) else 0)) * powers[k]
        errors.append(bound.upper())
    return weighted_norm(errors, field.weights)


def jacobian(field: VectorField, box: Sequence[arb]) -> list[list[arb]]:
    """Enclosures of df_i/dx_j over a box, one direction at a time."""
    constant = [arb_series([value], 2) for value in box]
    columns = []
    with precision(cap=2):
        for j, value in enumerate(box):
            state = list(constant)
            state[j] = arb_series([value, 1], 2)
            columns.append([series[1] for series in field.derivative(state)])
    return [[columns[j][i] for j in range(len(box))] for i in range(len(box))]


def largest_eigenvalue(symmetric: arb_mat) -> tuple[arb, arb]:
    """Upper bound of the eigenvalues of every symmetric matrix in a ball, and the share of the radii in it.

    Q diagonalises the midpoint S approximately. If mu Q^T Q - Q^T S Q is diagonally dominant, then mu I - S is positive
    definite, whatever Q is. The radii add at most the largest of their row sums, or their Frobenius norm.
    """
    size = symmetric.nrows()
    middle = symmetric.mid()
    table = np.array([[float(middle[i, j]) for j in range(size)] for i in range(size)])
    if not np.isfinite(table).all():
        return arb("inf"), arb("inf")
    _, vectors = np.linalg.eigh((table + table.T) / 2)
    Q = arb_mat(vectors.tolist())
    rotated, product = Q.transpose() * middle * Q, Q.transpose() * Q
    radii = [[symmetric[i, j].rad() for j in range(size)] for i in range(size)]
    rows = reduce(arb.max, (sum(row, arb(0)).upper() for row in radii))
    frobenius = sum((entry * entry for row in radii for entry in row), arb(0)).sqrt().upper()
    spread = rows if rows < frobenius else frobenius
    # Positive even for the zero matrix, that of a rotation.
    slack = arb(float(np.abs(table).sum()) * 2.0**-44 or 2.0**-100)
    sums = [
        (rotated[i, i] + sum((abs(rotated[i, j]) for j in range(size) if j != i), arb(0))).upper() for i in range(size)
    ]
    mu = max(sums, key=float).mid()
    for _ in range(60):
        mu = (mu + slack).mid()
        rest = product * mu - rotated
        if all(rest[i, i] > sum((abs(rest[i, j]) for j in range(size) if j != i), arb(0)) for i in range(size)):
            return (mu + spread).upper(), spread
        slack *= 4
    return arb("inf"), arb("inf")


def log_norm(field: VectorField, box: Sequence[arb]) -> tuple[arb, arb]:
    """Upper bound of the logarithmic norm of the Jacobian over a box, and the share of the box's size in it."""
    with precision(_JACOBIAN_BITS):
        try:
            table = jacobian(field, box)
        except ValueError:  # a denominator's ball holds zero
            return arb("inf"), arb("inf")
        weights = [arb(weight) for weight in field.weights.tolist()]
        size = len(weights)
        scaled = [[table[i][j] * weights[i] / weights[j] for j in range(size)] for i in range(size)]
        symmetric = arb_mat(size, size, [(scaled[i][j] + scaled[j][i]) / 2 for i in range(size) for j in range(size)])
        return largest_eigenvalue(symmetric)


def ball_of(polynomial: arb_poly, first: arb, last: arb) -> arb:
    """The range of a polynomial over a span of its variable."""
    half = (last - first) / 2
    return moved(polynomial, (first + last) / 2)(arb(0, half.upper()))


def speed_margin(
    field: VectorField, polynomials: Sequence[arb_poly], length: arb, delta: arb, radius: arb, pieces: int = 4
) -> arb:
    """Upper bound of ||x' - p'|| for a solution within ``radius`` of p, with a defect of at most ``delta``."""
    weights = [arb(weight) for weight in field.weights.tolist()]
    margin = [arb(0, (radius / weight).upper()) for weight in weights]
    largest = arb(0)
    for k in range(pieces):
        first, last = length * k / pieces, length * (k + 1) / pieces
        box = [ball_of(p, first, last) + m for p, m in zip(polynomials, margin, strict=True)]
        with precision(_JACOBIAN_BITS):
            scaled = [
                entry.abs_upper() * own / other
                for own, row in zip(weights, jacobian(field, box), strict=True)
                for other, entry in zip(weights, row, strict=True)
            ]
            largest = largest.max(sum((entry * entry for entry in scaled), arb(0)).upper().sqrt().upper())
    return (largest * radius + delta).upper()


def grow(epsilon: arb, delta: arb, mu: arb, length: arb) -> arb:
    """Upper bound of exp(mu h) eps + delta (exp(mu h) - 1) / mu, for every h of the ball ``length``."""
    product = mu * length
    factor = product.exp()
    # (exp(x) - 1) / x <= max(1, exp(x)) for every real x.
    longest = factor if factor > 1 else arb(1).union(factor)
    return (factor * epsilon + delta * length * longest).upper()


def follow(
    field: VectorField, polynomials: Sequence[arb_poly], length: arb, epsilon: arb, delta: arb, radius: arb, pieces: int
) -> tuple[arb, arb, float]:
    """Bounds of the error at the end of a step and of its largest value, if it stays within ``radius``.

    Also returns the contribution of the pieces' size to the integral of the logarithmic norm. The caller compares the
    second bound with ``radius``.
    """
    margin = [arb(0, (radius / arb(weight)).upper()) for weight in field.weights.tolist()]
    largest, excess = epsilon, 0.0
    for k in range(pieces):
        first, last = length * k / pieces, length * (k + 1) / pieces
        box = [ball_of(p, first, last) + m for p, m in zip(polynomials, margin, strict=True)]
        mu, spread = log_norm(field, box)
        if not mu.is_finite():
            return mu, mu, math.inf
        epsilon = grow(epsilon, delta, mu, last - first)
        largest = largest.max(epsilon)
        excess += float(spread * (last - first))
    return epsilon, largest, excess
