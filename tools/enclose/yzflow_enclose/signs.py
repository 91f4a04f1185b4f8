"""The sign of a sum of velocities at every setting of a cell, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_poly, arb_series

from yzflow_enclose.cell import CellStep
from yzflow_enclose.cell_bounds import Bounds
from yzflow_enclose.jets import Jet
from yzflow_enclose.stepping import ball_of, moved, precision, taylor

# Terms of the series from zero; how often a time, and a box of settings, is halved before a sign is left open.
_TERMS, _HALVINGS, _QUARTERS = 4, 5, 3
# The same for checking a decided sign: more, so that it is decided again.
_CHECKED_HALVINGS, _CHECKED_QUARTERS = 12, 5

Box = tuple[tuple[float, float], tuple[float, float]]
_WHOLE: Box = ((0.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True)
class Sign:
    """The sign of sum_i c_i dz_i/dt over a cell.

    Attributes
    ----------
    value : bool or None
        True: positive at every setting of the cell and every t with 0 < t <= ``reached``, the last time asked for.
        False: negative at every setting of the cell at the time ``time``. None: neither was proved.
    reached : float
        It is positive at every setting of the cell for all t up to this time.
    time : float or None
    """

    value: bool | None
    reached: float
    time: float | None = None


class Watch:
    """The sign of a sum of velocities, step by step.

    With ``until`` it checks a decided sign, with more patience: whether the sum is positive until then.
    """

    def __init__(self, bounds: Bounds, row: np.ndarray, until: float | None = None):
        self.bounds = bounds
        self.last = math.inf if until is None else until
        self.halvings, self.quarters = _HALVINGS, _QUARTERS
        if until is not None:
            self.halvings, self.quarters = _CHECKED_HALVINGS, _CHECKED_QUARTERS
        self.row = [arb(c) for c in row.tolist()]
        scaled = row / bounds.weights[: row.size]
        # |sum c_i e_i| <= |c/w| |w e|
        self.scale = sum((arb(c) * arb(c) for c in scaled.tolist()), arb(0)).sqrt() * (1 + arb(2) ** -40)
        self.alive, self.reached = True, 0.0
        self.negative: float | None = None

    @property
    def done(self) -> bool:
        return self.negative is not None

    def sign(self, t_end: float) -> Sign:
        if self.negative is not None:
            return Sign(False, self.reached, self.negative)
        return Sign(True if self.alive and self.reached >= t_end else None, self.reached)

    def see(self, step: CellStep) -> None:
        """Take a step into account."""
        if step.start >= self.last:
            return
        slopes = self._slopes(step)
        margin = (self.scale * arb(step.speed)).upper()
        if self.alive:
            after = step.start
            if step.start == 0.0:
                after = self._from_zero(step)
                self.reached = after
            if after > step.start or step.start > 0.0:
                self._follow(step, slopes, margin, after)
            else:
                self.alive = False
        for share in (0.25, 0.5, 0.75, 1.0):
            if self.negative is None and not self.alive and self.last == math.inf:
                at = min(step.start + share * (step.end - step.start), step.end)
                if self._negative(step, at, slopes, margin):
                    self.negative = at

    def is_negative(self, step: CellStep, at: float) -> bool:
        """True if the sum is negative at every setting at a time of a step."""
        return self._negative(step, at, self._slopes(step), (self.scale * arb(step.speed)).upper())

    def _negative(self, step: CellStep, at: float, slopes: list[arb_poly], margin: arb) -> bool:
        inside = arb(at) - arb(step.start)
        return self._has_sign(slopes, -1, inside, arb(0), margin, _WHOLE, self.quarters)

    def _slopes(self, step: CellStep) -> list[arb_poly]:
        """sum_i c_i p_i' for each monomial in s."""
        rows = step.polynomials[: len(self.row)]
        return [
            sum((p.derivative() * c for p, c in zip(column, self.row, strict=True)), arb_poly([0]))
            for column in zip(*rows, strict=True)
        ]

    def _follow(self, step: CellStep, slopes: list[arb_poly], margin: arb, after: float) -> None:
        """Whether the sum is positive from ``after`` to the end of the step, in halves of it."""
        stop = min(step.end, self.last)
        waiting = [(after, stop, 0)] if after < stop else []
        while waiting:
            first, last, depth = waiting.pop()
            start = arb(step.start)
            middle, half = (arb(first) + arb(last)) / 2 - start, ((arb(last) - arb(first)) / 2).upper()
            if self._has_sign(slopes, 1, middle, half, margin, _WHOLE, self.quarters):
                self.reached = last
            elif depth < self.halvings:
                between = first + (last - first) / 2
                waiting += [(between, last, depth + 1), (first, between, depth + 1)]
            else:
                self.alive = False
                return

    def _has_sign(
        self, slopes: list[arb_poly], sign: int, middle: arb, half: arb, margin: arb, box: Box, quarters: int
    ) -> bool:
        """True if ``sign`` times the sum is positive for |t - middle| <= half, at every setting of a box."""
        bas = self.bounds.basis
        shifted = [moved(p, middle).coeffs() for p in slopes]
        order = max((len(c) for c in shifted), default=0)
        centre = [arb(c) for c, _ in box]
        lengths = [arb(h) for _, h in box]
        value, spread = arb(0), margin
        for k in range(order):
            terms = [c[k] if k < len(c) else arb(0) for c in shifted]
            if box != _WHOLE:
                terms = bas.moved(terms, centre)
            for exponents, term in zip(bas.exponents, terms, strict=True):
                if k == 0 and not any(exponents):
                    value = term * sign
                else:
                    scale = half**k
                    for length, power in zip(lengths, exponents, strict=True):
                        scale *= length**power
                    spread += abs(term) * scale
        if value - spread > 0:
            return True
        if quarters == 0 or not value - margin > 0:
            return False
        return all(self._has_sign(slopes, sign, middle, half, margin, part, quarters - 1) for part in _quarters_of(box))

    def _from_zero(self, step: CellStep) -> float:
        """The time up to which the sum is positive, from the exact start, by the series of the sum over t.

        All velocities are zero at t = 0, so that the first term of the sum over t decides.
        """
        bounds = self.bounds
        leading = self._leading()
        if leading is None:
            return 0.0
        field = bounds.cell.everywhere()
        end = min(step.end, self.last)
        for _ in range(24):
            box = []
            for row, weight in zip(step.polynomials, bounds.weights.tolist(), strict=True):
                balls = [ball_of(p, arb(0), arb(end)) for p in row]
                spread = sum((abs(value) for value in balls[1:]), arb(step.radius) / arb(weight))
                box.append(balls[0] + arb(0, spread.upper()))
            try:
                last = [own[_TERMS] for own in taylor(field, box, _TERMS, exact=False)]
            except ValueError:  # a denominator's ball holds zero
                end /= 2
                continue
            rest = sum((c * own * _TERMS for c, own in zip(self.row, last, strict=False)), arb(0))
            span = arb(0).union(arb(end))
            value = rest
            for term in reversed(leading):
                value = value * span + term
            if value > 0:
                return end
            end /= 2
        return 0.0

    def _leading(self) -> list[arb] | None:
        """Coefficients of t^0, t^1, .. in the sum over t, balls for all settings; None if it is not zero at t = 0."""
        bounds = self.bounds
        parts = [[[arb(0)] for _ in range(len(bounds.further))] for _ in bounds.zero]
        rests = [[arb(0)] for _ in parts]
        for k in range(_TERMS - 1):
            jets = [
                Jet([arb_series(c, k + 1) for c in row], bounds.further, arb_series(rest, k + 1))
                for row, rest in zip(parts, rests, strict=True)
            ]
            with precision(cap=k + 1):
                slopes = bounds.beyond.derivative(jets)
            for row, rest, jet in zip(parts, rests, slopes, strict=True):
                for own, slope in zip(row, jet.terms, strict=True):
                    own.append(arb(0) if slope is None else slope[k] / (k + 1))
                rest.append(jet.rest[k] / (k + 1))
        found = []
        for k in range(_TERMS - 1):
            terms = [
                sum((c * row[m][k + 1] for c, row in zip(self.row, parts, strict=False)), arb(0)) * (k + 1)
                for m in range(len(bounds.further))
            ]
            beyond = sum((abs(c) * rest[k + 1] for c, rest in zip(self.row, rests, strict=False)), arb(0)) * (k + 1)
            spread = sum((abs(term) for term in terms[1:]), beyond)
            found.append(terms[0] + arb(0, spread.upper()))
        return found[1:] if found[0].is_zero() else None


def _quarters_of(box: Box) -> list[Box]:
    (a, h), (b, k) = box
    return [((a + x * h / 2, h / 2), (b + y * k / 2, k / 2)) for x in (-1, 1) for y in (-1, 1)]
