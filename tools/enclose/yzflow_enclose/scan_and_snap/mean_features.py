r"""Means of features over finite sequences, as polynomials in 1/S with bounds of their errors.

S tokens of a class are drawn with probabilities p, N are their counts, and f = (a N)/||a N||. Moments of N are
polynomials in 1/S, by factorial ones, and powers of ||a N|| are between Taylor's polynomials of its square: the
formulas are in `yzflow_enclose.scan_and_snap.long_enough`, the proof in
`yzflow_beyond_scan_and_snap.proofs.finite_sequences`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, arb_poly, fmpq, fmpq_poly

__all__ = ["ORDER", "Around", "Means", "least_norm", "remainder", "sizes"]

ORDER = 5  # m: the bounds are off by O(1/S^3), the difference of two lengths is of order 1/S^2

Series = list[fmpq_poly]  # by powers of a mark of ||a N||^2, polynomials in a mark of factorial moments


@dataclass(frozen=True)
class Around:
    """A polynomial in 1/S, and one with non-negative coefficients that bounds the distance of a value from it."""

    value: arb_poly
    off: arb_poly

    def __add__(self, other: Around) -> Around:
        return Around(self.value + other.value, self.off + other.off)

    def __sub__(self, other: Around) -> Around:
        return Around(self.value - other.value, self.off + other.off)

    def __mul__(self, other: Around | arb) -> Around:
        if isinstance(other, arb):
            return Around(self.value * other, self.off * abs(other))
        off = self.off * (sizes(other.value) + other.off) + sizes(self.value) * other.off
        return Around(self.value * other.value, off)


def sizes(polynomial: arb_poly) -> arb_poly:
    """The polynomial with the absolute values of its coefficients, a bound of its size at 1/S > 0."""
    return arb_poly([abs(one) for one in polynomial.coeffs()])


class Means:
    """Means of one class's features, f_l and f_l^2 f_j, near polynomials in 1/S.

    Parameters
    ----------
    shares, gains : sequences of fmpq
        p_l and a_l of the class's tokens.
    """

    def __init__(self, shares: Sequence[fmpq], gains: Sequence[fmpq]):
        self.square = sum(((p * a) ** 2 for p, a in zip(shares, gains, strict=True)), fmpq(0))
        self.norm = arb(self.square).sqrt()
        self._rests = {power: remainder(power, least_norm(gains) / self.square) for power in (1, 3)}
        single = [[_marked(p, a, weight) for weight in range(4)] for p, a in zip(shares, gains, strict=True)]
        self._all = functools.reduce(_times, (series[0] for series in single), _one())
        # A token's weight N^1, N^2 or N^3, as a factor of the product over all tokens.
        self._ratios = [[_times(series[w], _inverse(series[0])) for w in (1, 2, 3)] for series in single]
        self._kept: dict[tuple[tuple[int, int], ...], Around] = {}

    def feature(self, place: int) -> Around:
        """E[f_l] = E[y_l (1 + x)^(-1/2)]/||q||."""
        return self._near((place, 1))

    def third(self, place: int, other: int) -> Around:
        """E[f_l^2 f_j] = E[y_l^2 y_j (1 + x)^(-3/2)]/||q||^3."""
        return self._near((place, 3)) if other == place else self._near((place, 2), (other, 1))

    def _near(self, *powers: tuple[int, int]) -> Around:
        """A product of powers of counts over one of their norm: Taylor's polynomial, and its remainder."""
        if powers not in self._kept:
            degree = sum(power for _, power in powers)
            weight = functools.reduce(_times, (self._ratios[place][power - 1] for place, power in powers), self._all)
            terms, scale = self._central(weight, degree), 1 / self.norm**degree
            off = sizes(_in_balls(terms[-1])) * (self._rests[degree] * scale)
            self._kept[powers] = Around(_in_balls(_taylor(degree, terms)) * scale, off)
        return self._kept[powers]

    def _central(self, series: Series, degree: int) -> list[fmpq_poly]:
        """E[weight x^r], r = 0 .. m + 1, for a weight of this degree in y."""
        raw = [
            _by_length(one, 2 * r + degree) * fmpq(math.factorial(r)) / self.square**r for r, one in enumerate(series)
        ]
        return [
            sum((raw[k] * ((-1) ** (r - k) * math.comb(r, k)) for k in range(r + 1)), fmpq_poly([]))
            for r in range(len(raw))
        ]


def least_norm(gains: Sequence[fmpq]) -> fmpq:
    """The least ||a N||^2/S^2, as the sum of y_l/a_l is 1."""
    return 1 / sum((1 / (a * a) for a in gains), fmpq(0))


def _marked(p: fmpq, a: fmpq, weight: int) -> Series:
    """sum_r t^r/r! of (a N)^(2r + weight) by factorial moments: N^d = sum_i S(d, i) (N)_i, with p^i u^i for (N)_i."""
    found = []
    for r in range(ORDER + 2):
        degree = 2 * r + weight
        scale = a**degree / math.factorial(r)
        found.append(fmpq_poly([p**i * _stirling(degree, i) * scale for i in range(degree + 1)]))
    return found


def _stirling(n: int, k: int) -> int:
    """Stirling's number of the second kind."""
    return sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)


def _one() -> Series:
    return [fmpq_poly([1]), *[fmpq_poly([])] * (ORDER + 1)]


def _times(a: Series, b: Series) -> Series:
    return [sum((a[i] * b[r - i] for i in range(r + 1)), fmpq_poly([])) for r in range(ORDER + 2)]


def _inverse(a: Series) -> Series:
    """1/a for a series that starts with one."""
    found = [fmpq_poly([1])]
    for r in range(1, ORDER + 2):
        found.append(-sum((a[i] * found[r - i] for i in range(1, r + 1)), fmpq_poly([])))
    return found


def _by_length(moments: fmpq_poly, degree: int) -> fmpq_poly:
    """E over S draws, divided by S^degree, as a polynomial in w = 1/S; u^i means S (S - 1) .. (S - i + 1)."""
    found, falling = fmpq_poly([]), fmpq_poly([1])
    for i, one in enumerate(moments.coeffs()):
        if one != 0:
            found += one * fmpq_poly([0, 1]) ** (degree - i) * falling
        falling *= fmpq_poly([1, -i])
    return found


def _binomial(power: int, r: int) -> fmpq:
    """Coefficient of x^r in (1 + x)^(-power/2)."""
    found = fmpq(1)
    for i in range(r):
        found *= fmpq(-power - 2 * i, 2 * (i + 1))
    return found


def _taylor(power: int, terms: Sequence[fmpq_poly]) -> fmpq_poly:
    """T_m of (1 + x)^(-power/2), with moments in place of the powers of x."""
    return sum((terms[r] * _binomial(power, r) for r in range(ORDER + 1)), fmpq_poly([]))


def remainder(power: int, least: fmpq) -> arb:
    """c: the quotient ((1 + x)^(-b) - T_m)/x^(m+1) at 1 + x = ``least``, by its root y, without a pole at x = 0.

    With x = y^2 - 1 the numerator 1 - y^power T_m(x) has the factor (1 - y)^(m+1).
    """
    x = fmpq_poly([-1, 0, 1])
    taylor = sum((x**r * _binomial(power, r) for r in range(ORDER + 1)), fmpq_poly([]))
    quotient, rest = divmod(1 - fmpq_poly([0, 1]) ** power * taylor, fmpq_poly([1, -1]) ** (ORDER + 1))
    if rest != 0:
        raise ArithmeticError("the Taylor polynomial does not leave a remainder of its order")
    y = arb(least).sqrt()
    return _in_balls(quotient)(y) / (y**power * (1 + y) ** (ORDER + 1))


def _in_balls(polynomial: fmpq_poly) -> arb_poly:
    return arb_poly([arb(one) for one in polynomial.coeffs()])
