"""Cells of settings: what the flow does for *every* setting in a box of them, at every time.

A cell has a range of eta_Z and one of the common token's weight; s1 and s2 run over them, from -1 to 1. A step has for
each variable a polynomial p(t, s) in time and in both. Its defect p' - f(p, s) has two parts: the terms up to degree n
in s, each a series in time with a remainder, and what is beyond degree n, which jets bound (`theory.enclosures.jets`).
The logarithmic norm of the Jacobian is bounded over the tube around all p(t, s) at once, from a jet of the Jacobian in
t and s, so that the dependence on s is not taken for an uncertainty of the state. As in `theory.enclosures.stepping`,
they bound the distance of the solution to p(t, s), here for every s.

What is decided are signs of sums of velocities: they are derivatives of the polynomials, and so polynomials in t and s,
up to a bound of the error of the velocity.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any

import numpy as np
from flint import arb, arb_mat, arb_poly, arb_series, ctx

from dynamics.support import checks
from theory.enclosures.fields import Symmetric
from theory.enclosures.jets import Basis, Jet, basis
from theory.enclosures.signs import Sign, Watch
from theory.enclosures.stepping import above, ball_of, grow, moved, padded, precision, weighted_norm

# Bits of balls, degree in time, and the truncation error of a step in the norm of the weights.
_BITS, _ORDER, _GOAL = 60, 8, 3e-6
# A radius of the tube beyond which velocities are lost; the radius that is tried next, in bounds of the error; and the
# one that is claimed, as bounds differ a little when they are computed again.
_LOST, _ROOM, _SPARE = 0.03, 1.5, 1.1
# Degrees of the jets of the Jacobian, and beyond that of the polynomials for the defect.
_TUBE, _FURTHER = 2, 2
# Parts of a step over which the defect beyond degree n is bounded.
_PARTS = 2

Polynomials = list[list[arb_poly]]


@dataclass(frozen=True)
class Cell:
    """A box of settings: K classes that are copies of each other, one common token, distinct tokens a class.

    Parameters
    ----------
    n_classes, vocab_size : int
    distinct : tuple of float
        Unnormalised weights of the distinct tokens.
    eta_y : float
    eta_z : (float, float)
        Range of eta_Z, both ends included.
    common : (float, float)
        Range of the common token's unnormalised weight.
    decoder : "full", "modified" or "theory"

    Raises
    ------
    ValueError
        If a number is not positive or a range does not increase.
    """

    n_classes: int
    vocab_size: int
    distinct: tuple[float, ...]
    eta_y: float
    eta_z: tuple[float, float]
    common: tuple[float, float]
    decoder: str = "full"

    def __post_init__(self) -> None:
        checks.integer("n_classes", self.n_classes, minimum=2)
        checks.integer("vocab_size", self.vocab_size, minimum=self.n_classes)
        checks.positive("eta_y", self.eta_y)
        for name in ("eta_z", "common"):
            first, last = getattr(self, name)
            if not checks.positive(name, first) < checks.positive(name, last):
                raise checks.reject(name, "increase", (first, last))
        for weight in self.distinct:
            checks.positive("distinct", weight)

    def field(self, eta_z: Any, common: Any) -> Symmetric:
        """The vector field with balls or jets for the two parameters; its norm is that of the middle of the cell."""
        settings = {
            "kind": "symmetric",
            "decoder": self.decoder,
            "eta_y": self.eta_y,
            "eta_z": sum(self.eta_z) / 2,
            "vocab_size": self.vocab_size,
            "n_classes": self.n_classes,
            "class_weight": 1.0,
            "own_queries": False,
            "common": [[1.0, 1]],
            "distinct": [[weight, 1] for weight in self.distinct],
        }
        found = Symmetric(settings)
        found.class_weight = arb(1) / self.n_classes
        found.eta_z, found.counts[0] = eta_z, common
        return found

    def along(self, own: Basis, rest: Any = None) -> Symmetric:
        """The field on jets in s."""
        jets = []
        for which, (first, last) in enumerate((self.eta_z, self.common)):
            middle, reach = (arb(first) + arb(last)) / 2, (arb(last) - arb(first)) / 2
            jets.append(own.parameter(which, middle, reach, rest))
        return self.field(*jets)

    def everywhere(self) -> Symmetric:
        """The field with a ball for all of the cell."""
        return self.field(*(arb(first).union(arb(last)) for first, last in (self.eta_z, self.common)))


@dataclass(frozen=True)
class CellStep:
    """A span of time: a polynomial for each variable and monomial in s, and what the solution differs from it.

    Parameters
    ----------
    start, end : float
    polynomials : (variables, monomials) list of arb_poly
        In powers of t - start, exact.
    radius, speed : float
        Bounds of ||x - p|| and of ||x' - p'|| over the span and the cell, in the norm of the weights.
    """

    start: float
    end: float
    polynomials: Polynomials
    radius: float
    speed: float

    @property
    def length(self) -> arb:
        return arb(self.end) - arb(self.start)


@dataclass
class CellEnclosure:
    """Steps of a cell so far, and why there are no more.

    Attributes
    ----------
    cell : Cell
    degree : int
        Total degree in the two parameters.
    steps : list of CellStep
    reason : str
        Why it ends; empty if it reached the time that was asked for.
    """

    cell: Cell
    degree: int
    steps: list[CellStep] = default(default_factory=list)
    reason: str = ""

    @property
    def t_reached(self) -> float:
        return self.steps[-1].end if self.steps else 0.0

    def sign(self, claim: Sequence[float], t_end: float) -> Sign:
        """What the steps say of the sign of sum_i c_i dz_i/dt up to ``t_end``; see `decide_cell`."""
        with precision(_BITS):
            watch = Watch(Bounds(self.cell, self.degree), np.asarray(claim, float))
            for step in self.steps:
                watch.see(step)
        return watch.sign(t_end)

    def verify(self) -> bool:
        """Whether every bound, computed again from the polynomials, is within the claimed ones."""
        with precision(_BITS):
            bounds = Bounds(self.cell, self.degree)
            state, error, now = bounds.zero, arb(0), 0.0
            for step in self.steps:
                if step.start != now or not step.end > step.start:
                    return False
                delta = bounds.defect(step.polynomials, step.length)
                found = bounds.step(step.polynomials, step.length, state, error, delta, arb(step.radius))
                if found is None or not found.speed <= step.speed:
                    return False
                state, error, now = found.state, found.error, step.end
        return True


def decide_cell(
    cell: Cell,
    claims: Sequence[Sequence[float]],
    *,
    t_end: float,
    degree: int = 6,
    max_seconds: float | None = None,
) -> tuple[list[Sign], CellEnclosure]:
    r"""Whether sums of velocities are positive at every setting of a cell and every time 0 < t <= t_end.

    Parameters
    ----------
    cell : Cell
    claims : sequence of sequences of float
        Of each, the coefficients c of sum_i c_i dz_i/dt, over the common token and then the distinct ones.
    t_end : float
        Last time, SGD steps.
    degree : int
        Of the polynomials in the parameters.
    max_seconds : float, optional

    Returns
    -------
    list of Sign, CellEnclosure
        The enclosure ends where every claim is decided, at ``t_end``, or where it has to, with a reason.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """
    t_end = checks.positive("t_end", t_end)
    degree = checks.integer("degree", degree, minimum=1)
    rows = [np.asarray(claim, float) for claim in claims]
    if any(row.shape != (1 + len(cell.distinct),) for row in rows):
        raise checks.reject("claims", "have a coefficient for each logit of a class", [row.shape for row in rows])
    began = time.monotonic()
    found = CellEnclosure(cell, degree)
    with precision(_BITS):
        bounds = Bounds(cell, degree)
        watched = [Watch(bounds, row) for row in rows]
        state, error, now = bounds.zero, arb(0), 0.0
        shrink = 1.0
        while now < t_end and not found.reason and not all(watch.done for watch in watched):
            made = _stepped(bounds, state, error, now, t_end, shrink)
            if made is None:
                found.reason = "no step is short enough for its error to stay within its tube"
            elif made[0].radius > _LOST:
                found.reason = f"the radius grew to {made[0].radius:.1e}"
            elif max_seconds is not None and time.monotonic() - began > max_seconds:
                found.reason = f"{max_seconds:g} seconds were over"
            else:
                step, state, error, shrink = made
                found.steps.append(step)
                now = step.end
                for watch in watched:
                    watch.see(step)
        return [watch.sign(t_end) for watch in watched], found


@dataclass(frozen=True)
class _Found:
    radius: arb
    speed: arb
    error: arb
    state: list[list[arb]]


class Bounds:
    """What bounds the steps of one cell."""

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
        """Taylor coefficients in time of each monomial, midpoints only: any polynomial will do."""
        parts = [[[value] for value in row] for row in state]
        for k in range(_ORDER):
            ctx.cap = k + 1
            slopes = self.thin.derivative([Jet([arb_series(c, k + 1) for c in row], self.basis) for row in parts])
            for row, jet in zip(parts, slopes, strict=True):
                for own, slope in zip(row, jet.terms, strict=True):
                    own.append(arb(0) if slope is None else (slope[k] / (k + 1)).mid())
        return parts

    def defect_in_time(self, polynomials: Polynomials, length: arb) -> arb:
        """Bound of the terms of p' - f(p) up to degree n in s: their series at the start, and its remainder."""
        try:
            return self._in_time(polynomials, length)
        except ValueError:  # a denominator's ball holds zero
            return arb("inf")

    def _in_time(self, polynomials: Polynomials, length: arb) -> arb:
        half = (length / 2).upper()
        ctx.cap = _ORDER + 1
        thin = self.thin.derivative(
            [Jet([arb_series(p.coeffs(), _ORDER) for p in row], self.basis) for row in polynomials]
        )
        middle = [[moved(moved(p, length / 2), arb(0, half)) for p in row] for row in polynomials]
        wide = self.thin.derivative(
            [Jet([arb_series(p.coeffs(), _ORDER + 1) for p in row], self.basis) for row in middle]
        )
        bounds = []
        for row, inner, outer in zip(polynomials, thin, wide, strict=True):
            bound = arb(0)
            for p, a, b in zip(row, inner.terms, outer.terms, strict=True):
                slope = padded(arb_series(p.derivative().coeffs(), _ORDER), _ORDER)
                inside = [arb(0)] * _ORDER if a is None else padded(a, _ORDER)
                terms = [abs(x - y) for x, y in zip(inside, slope, strict=True)]
                terms.append(arb(0) if b is None else abs(b[_ORDER]))
                bound += sum((term * length**k for k, term in enumerate(terms)), arb(0))
            bounds.append(bound.upper())
        return weighted_norm(bounds, self.weights)

    def defect_in_settings(self, polynomials: Polynomials, length: arb) -> arb:
        """Bound of what p' - f(p) has beyond degree n in s."""
        largest, missing = arb(0), len(self.further) - len(self.basis)
        for k in range(_PARTS):
            first, last = length * k / _PARTS, length * (k + 1) / _PARTS
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

    def jacobian(self, polynomials: Polynomials, length: arb, radius: arb) -> tuple[list[list[list[arb]]], list]:
        """Jets of df_i/dx_j in (s1, s2, t) over the tube, [term][i][j], scaled by the weights, and bounds of the rests.

        The third parameter is (t - middle)/half; what the tube is wide is in the terms of degree zero.
        """
        bas, half = self.tube, (length / 2).upper()
        box = self.cell.along(bas, rest=arb_series([arb(0)], 2))
        powers = [half**k for k in range(_ORDER + 1)]
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
        ctx.cap = 2
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
    ) -> _Found | None:
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
                speed = (_norm(parts, rests) * claimed + delta).upper()
                last = [[p(length) for p in row] for row in polynomials]
                middle = [[value.mid() for value in row] for row in last]
                rounding = weighted_norm([_distance(*pair) for pair in zip(last, middle, strict=True)], self.weights)
                error = (grow(start, delta, mu, length) + rounding).upper()
                return _Found(claimed, speed, error, middle)
            wanted = (largest * _ROOM).upper()
        return None

    def defect(self, polynomials: Polynomials, length: arb) -> arb:
        """Bound of ||p' - f(p)|| over a step and the cell."""
        return self.total(self.defect_in_time(polynomials, length), polynomials, length)

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
    T = [[T[i][j].max(T[j][i]) for j in range(size)] for i in range(size)]
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


def _stepped(
    bounds: Bounds, state: list[list[arb]], error: arb, now: float, t_end: float, shrink: float
) -> tuple[CellStep, list[list[arb]], arb, float] | None:
    """A step as long as its truncation error and its tube allow; None if none is short enough."""
    series = bounds.series(state)
    polynomials = [[arb_poly(c) for c in row] for row in series]
    guess = _first_guess(series, bounds.weights)
    length = guess * shrink
    for _ in range(40):
        end = t_end if now + length >= t_end * (1 - 1e-12) else now + length
        if not end > now:
            return None
        span = arb(end) - arb(now)
        in_time = bounds.defect_in_time(polynomials, span)
        missed = above(in_time * span)
        if missed > 4 * _GOAL:
            length = (end - now) * min(0.9, max(0.3, (_GOAL / missed) ** (1 / (_ORDER + 1))))
        elif made := bounds.step(polynomials, span, state, error, bounds.total(in_time, polynomials, span), None):
            step = CellStep(now, end, polynomials, above(made.radius), above(made.speed))
            return step, made.state, made.error, min(1.0, 1.1 * (end - now) / guess)
        else:
            length = (end - now) / 2
            if length < 1e-3 * now:
                return None
    return None


def _first_guess(series: list[list[list[arb]]], weights: np.ndarray) -> float:
    """The time after which the last terms in time are as large as the truncation error may be."""
    shortest = 1e6
    for k in (_ORDER - 1, _ORDER):
        sizes = [w * sum(abs(float(c[k])) for c in row) for row, w in zip(series, weights, strict=True)]
        size = math.hypot(*sizes)
        if size > 0:
            shortest = min(shortest, (_GOAL / size) ** (1 / k))
    return shortest
