"""Bounds of the steps of a cell: defects, logarithmic norms, and the growth of an error near the polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, arb_series

from yzflow_enclose.cell import ORDER, Cell, Polynomials
from yzflow_enclose.jets import Jet, basis
from yzflow_enclose.stepping import above, ball_of, grow, moved, padded, precision, weighted_norm

# The truncation error of a step in the norm of the weights.
GOAL = 3e-6
# The radius to try next, and the radius to claim, in bounds of the error; the second leaves room for a computation
# again, with slightly other bounds.
_ROOM, _SPARE = 1.5, 1.1
# Degree of the jets of the Jacobian, and degrees of the defect beyond that of the polynomials.
_TUBE, _FURTHER = 2, 2
# Parts of a step for bounds of the defect beyond degree n: in making a step, and in checking it.
_PARTS, _CHECKED_PARTS = 2, 4


@dataclass(frozen=True)
class Found:
    """Bounds over a step: of the distance, of the velocity and of the error at the end, with the polynomials there."""

    radius: arb
    speed: arb
    error: arb
    state: list[list[arb]]


class Bounds:
    """Bounds of the steps of one cell."""

    def __init__(self, cell: Cell, degree: int):
        self.cell, self.degree = cell, degree
        self.basis = basis(2, degree)
        self.thin = cell.along(self.basis)
        self.further = basis(2, degree + _FURTHER)
        self.beyond = cell.along(self.further, rest=arb(0))
        self.tube = basis(3, _TUBE)
        self.weights = self.thin.weights
        self.zero = [[arb(0)] * len(self.basis) for _ in range(self.thin.size)]

    def series(self, state: list[list[arb]]) -> list[list[list[arb]]]:
        """Taylor coefficients in time of each monomial, midpoints only, since any polynomial will do."""
        parts = [[[value] for value in row] for row in state]
        for k in range(ORDER):
            with precision(cap=k + 1):
                slopes = self.thin.derivative([Jet([arb_series(c, k + 1) for c in row], self.basis) for row in parts])
            for row, jet in zip(parts, slopes, strict=True):
                for own, slope in zip(row, jet.terms, strict=True):
                    own.append(arb(0) if slope is None else (slope[k] / (k + 1)).mid())
        return parts

    def defect_in_time(self, polynomials: Polynomials, length: arb) -> arb:
        """Bound of the terms of p' - f(p) up to degree n in s: their series at the start, and its remainder."""
        try:
            return self._in_time(polynomials, length, arb(0), length)
        except ValueError:  # a denominator's ball holds zero
            return arb("inf")

    @precision(cap=ORDER + 1)
    def _in_time(self, polynomials: Polynomials, length: arb, centre: arb, reach: arb) -> arb:
        """The same bound by the series at a time ``centre`` of the step, for times up to ``reach`` from there."""
        half = (length / 2).upper()
        around = [[moved(p, centre) for p in row] for row in polynomials]
        thin = self.thin.derivative([Jet([arb_series(p.coeffs(), ORDER) for p in row], self.basis) for row in around])
        middle = [[moved(moved(p, length / 2), arb(0, half)) for p in row] for row in polynomials]
        wide = self.thin.derivative(
            [Jet([arb_series(p.coeffs(), ORDER + 1) for p in row], self.basis) for row in middle]
        )
        bounds = []
        for row, inner, outer in zip(around, thin, wide, strict=True):
            bound = arb(0)
            for p, a, b in zip(row, inner.terms, outer.terms, strict=True):
                slope = padded(arb_series(p.derivative().coeffs(), ORDER), ORDER)
                inside = [arb(0)] * ORDER if a is None else padded(a, ORDER)
                terms = [abs(x - y) for x, y in zip(inside, slope, strict=True)]
                terms.append(arb(0) if b is None else abs(b[ORDER]))
                bound += sum((term * reach**k for k, term in enumerate(terms)), arb(0))
            bounds.append(bound.upper())
        return weighted_norm(bounds, self.weights)

    def defect_in_settings(self, polynomials: Polynomials, length: arb, parts: int = _PARTS) -> arb:
        """Bound of the terms of p' - f(p) beyond degree n in s."""
        largest, missing = arb(0), len(self.further) - len(self.basis)
        for k in range(parts):
            first, last = length * k / parts, length * (k + 1) / parts
            jets = [
                Jet([ball_of(p, first, last) for p in row] + [None] * missing, self.further, arb(0))
                for row in polynomials
            ]
            try:
                found = self.beyond.derivative(jets)
            except ValueError:  # a denominator's ball holds zero
                return arb("inf")
            rests = [
                sum((abs(term) for term in jet.terms[len(self.basis) :] if term is not None), jet.rest) for jet in found
            ]
            largest = largest.max(weighted_norm(rests, self.weights))
        return largest

    @precision(cap=2)
    def jacobian(self, polynomials: Polynomials, length: arb, radius: arb) -> tuple[list[list[list[arb]]], list]:
        """Jets of df_i/dx_j in (s1, s2, t) over the tube, [term][i][j], scaled by the weights, and bounds of the rests.

        The third parameter is (t - middle)/half; the width of the tube is in the terms of degree zero.
        """
        bas, half = self.tube, (length / 2).upper()
        box = self.cell.along(bas, rest=arb_series([arb(0)], 2))
        powers = [half**k for k in range(ORDER + 1)]
        states = []
        for row, weight in zip(polynomials, self.weights.tolist(), strict=True):
            terms: list[Any] = [None] * len(bas)
            rest = arb(0)
            for own, p in zip(self.basis.exponents, row, strict=True):
                for k, value in enumerate(moved(p, length / 2).coeffs()):
                    place = bas.places.get((*own, k))
                    if place is None:
                        rest += abs(value) * powers[k]
                    else:
                        terms[place] = value * powers[k]
            terms[0] = (arb(0) if terms[0] is None else terms[0]) + arb(0, (radius / arb(weight)).upper())
            states.append((terms, rest.upper()))
        constant = [
            Jet([None if t is None else arb_series([t], 2) for t in terms], bas, arb_series([rest], 2))
            for terms, rest in states
        ]
        size = len(states)
        w = [arb(weight) for weight in self.weights.tolist()]
        parts = [[[arb(0)] * size for _ in range(size)] for _ in range(len(bas))]
        rests = [[arb(0)] * size for _ in range(size)]
        for j, (terms, _) in enumerate(states):
            varied = list(constant)
            varied[j] = Jet([arb_series([terms[0], 1], 2), *constant[j].terms[1:]], bas, constant[j].rest)
            for i, jet in enumerate(box.derivative(varied)):
                for part, term in zip(parts, jet.terms, strict=True):
                    if term is not None:
                        part[i][j] = term[1] * w[i] / w[j]
                rests[i][j] = (jet.rest[1] * w[i] / w[j]).upper()
        return parts, rests

    def step(
        self, polynomials: Polynomials, length: arb, state: list[list[arb]], error: arb, delta: arb, radius: arb | None
    ) -> Found | None:
        """Bounds over a step if the error stays within ``radius``, or within one that is found; None if it does not."""
        gaps = [_distance([p[0] for p in row], own) for row, own in zip(polynomials, state, strict=True)]
        start = (error + weighted_norm(gaps, self.weights)).upper()
        wanted = ((start + delta * length) * 2).upper() if radius is None else radius
        for _ in range(8 if radius is None else 1):
            if not wanted < 1:
                return None
            try:
                parts, rests = self.jacobian(polynomials, length, wanted)
            except ValueError:  # a denominator's ball holds zero
                return None
            mu = log_norm(parts, rests)
            largest = start.max(grow(start, delta, mu, length)) if mu.is_finite() else arb("inf")
            claimed = (largest * _SPARE).upper() if radius is None else radius
            if largest < claimed and claimed <= wanted:
                # Where a radius is checked, the error is known to be less.
                speed = (_norm(parts, rests) * (claimed if radius is None else largest) + delta).upper()
                last = [[p(length) for p in row] for row in polynomials]
                middle = [[value.mid() for value in row] for row in last]
                rounding = weighted_norm([_distance(*pair) for pair in zip(last, middle, strict=True)], self.weights)
                error = (grow(start, delta, mu, length) + rounding).upper()
                return Found(claimed, speed, error, middle)
            wanted = (largest * _ROOM).upper()
        return None

    def defect(self, polynomials: Polynomials, length: arb, *, closer: bool = False) -> arb:
        """Bound of ||p' - f(p)|| over a step and the cell; at twice the cost one that is closer."""
        in_time = self.defect_in_time(polynomials, length)
        if not closer:
            return self.total(in_time, polynomials, length)
        if in_time.is_finite():
            in_time = in_time.min(self._in_time(polynomials, length, length / 2, (length / 2).upper()))
        return (in_time + self.defect_in_settings(polynomials, length, _CHECKED_PARTS)).upper()

    def total(self, in_time: arb, polynomials: Polynomials, length: arb) -> arb:
        """The defect, from its part in time."""
        return (in_time + self.defect_in_settings(polynomials, length)).upper()


def _distance(first: Sequence[arb], second: Sequence[arb]) -> arb:
    """Bound of the difference of two polynomials in s."""
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), arb(0)).upper()


def _norm(parts: list[list[list[arb]]], rests: list[list[arb]]) -> arb:
    """Bound of the Euclidean norm of every matrix of a jet."""
    found = arb(0)
    for i, row in enumerate(rests):
        for j, rest in enumerate(row):
            entry = sum((part[i][j].abs_upper() for part in parts), rest)
            found += entry * entry
    return found.upper().sqrt().upper()


def log_norm(parts: list[list[list[arb]]], rests: list[list[arb]]) -> arb:
    """Bound of the eigenvalues of the symmetric part of sum_m A_m s^m + R, |s_i| <= 1, |R_ij| <= rests_ij.

    With approximate eigenvectors Q of the middle, Q^T S Q has entries of at most T_ij outside its diagonal and T_ii on
    it. For any d > 0, max_i (T d)_i / d_i bounds the eigenvalues of every such matrix; what Q lacks in orthogonality is
    added. Directions in which S falls steeply may be uncertain then, as they do not matter.
    """
    size = len(rests)
    pairs = [(i, j) for i in range(size) for j in range(size)]

    def symmetric(A: list[list[arb]]) -> arb_mat:
        return arb_mat(size, size, [(A[i][j] + A[j][i]) / 2 for i, j in pairs])

    middle = symmetric(parts[0])
    table = np.array([[float(middle[i, j]) for j in range(size)] for i in range(size)])
    if not np.isfinite(table).all():
        return arb("inf")
    Q = arb_mat(np.linalg.eigh((table + table.T) / 2)[1].tolist())
    Qt = Q.transpose()
    lacking = Qt * Q - arb_mat(size, size, [int(i == j) for i, j in pairs])
    off = sum((abs(lacking[i, j]) for i, j in pairs), arb(0)).upper()
    last = symmetric(rests)
    others = [Qt * symmetric(part) * Q for part in parts[1:]]
    others.append(Qt * arb_mat(size, size, [arb(0, last[i, j].upper()) for i, j in pairs]) * Q)
    centre = Qt * middle * Q
    T = [[arb(0)] * size for _ in range(size)]
    for i, j in pairs:
        spread = sum((abs(other[i, j]) for other in others), arb(0))
        T[i][j] = ((centre[i, j] if i == j else abs(centre[i, j])) + spread).upper()
    guess = np.array([[float(entry) for entry in row] for row in T])
    if not np.isfinite(guess).all() or not off < 0.25:
        return arb("inf")
    shift = np.linalg.eigvalsh(guess)[-1] + 1e-6 * np.abs(guess).max() + 1e-300
    d = np.linalg.solve(shift * np.eye(size) - guess, np.ones(size))
    if not (d > 0).all():
        return arb("inf")
    vector = [arb(x) for x in d.tolist()]
    ratios = [sum((a * x for a, x in zip(T[i], vector, strict=True)), arb(0)) / vector[i] for i in range(size)]
    mu = arb(max(above(ratio) for ratio in ratios))
    return (mu + abs(mu) * off * 2).upper()
