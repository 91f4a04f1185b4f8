"""Polynomials in a few parameters, cut at a total degree, with a bound of the terms that are cut off.

A jet has one coefficient for each monomial s1^a s2^b .. of total degree up to n. Coefficients are balls or power
series, so that a `Field` evaluated on jets gives the jet of its values: a whole cell of settings at once. A jet may
have a ``rest``, a bound of all other terms for |s_i| <= 1; arithmetic carries it along (a Taylor model).

Quotients, roots, exponentials and logarithms use D = sum_i s_i d/ds_i, which multiplies a term by its degree:
D exp(a) = exp(a) D a, a D log(a) = D a and 2 a D(a^-1/2) = -a^-1/2 D a, each solved degree by degree.

Rests are those of majorants. Let M(x) = sum_k m_k x^k, where m_k for 1 <= k <= n is the sum of the absolute values of
the coefficients of degree k of a jet, and m_(n+1) its rest. Then the rest of exp is at most |exp(a_0)| times the terms
of exp(M(x)) beyond degree n at x = 1; all coefficients of exp(M(x)) are positive. The same holds with 1/(1 - M/|a_0|)
for a quotient, with its root for a root, and with the product of two such series for a product. Coefficients that are
series in a further variable have majorants that are series in it.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_series

Coefficient = Any  # arb or arb_series; None stands for zero


@dataclass(frozen=True)
class Basis:
    """Monomials of ``count`` parameters up to a total degree, in the order of their degrees."""

    count: int
    degree: int

    def __len__(self) -> int:
        return len(self.exponents)

    @functools.cached_property
    def exponents(self) -> tuple[tuple[int, ...], ...]:
        every = itertools.product(range(self.degree + 1), repeat=self.count)
        return tuple(sorted((e for e in every if sum(e) <= self.degree), key=lambda e: (sum(e), [-k for k in e])))

    @functools.cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """Places of the monomials."""
        return {exponents: i for i, exponents in enumerate(self.exponents)}

    @functools.cached_property
    def degrees(self) -> tuple[int, ...]:
        return tuple(map(sum, self.exponents))

    @functools.cached_property
    def products(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each monomial, the pairs of monomials with this product."""
        return tuple(
            tuple(
                (self.places[own], self.places[tuple(k - j for k, j in zip(whole, own, strict=True))])
                for own in itertools.product(*(range(k + 1) for k in whole))
            )
            for whole in self.exponents
        )

    @functools.cached_property
    def by_degree(self) -> tuple[tuple[tuple[int, tuple[tuple[int, int], ...]], ...], ...]:
        """For each monomial, its `products` in groups of one degree of the first factor, degree zero left out."""
        return tuple(
            tuple(
                (degree, tuple(pair for pair in pairs if self.degrees[pair[0]] == degree))
                for degree in sorted({self.degrees[own] for own, _ in pairs} - {0})
            )
            for pairs in self.products
        )

    def constant(self, value: Coefficient) -> Jet:
        """A number, the same for all parameters."""
        return Jet([value] + [None] * (len(self) - 1), self)

    def parameter(self, which: int, centre: Coefficient, slope: Coefficient, rest: Coefficient = None) -> Jet:
        """centre + slope s_which."""
        found = self.constant(centre)
        found.rest = rest
        if self.degree:
            found.terms[1 + which] = slope
        return found

    def moved(self, terms: Sequence[arb], centre: Sequence[arb]) -> list[arb]:
        """Coefficients in r of the polynomial with coefficients ``terms`` in s = centre + r; centres may be wide."""
        powers = [  # products: `**` takes a ball around zero for a base of any sign and finds nothing
            list(itertools.accumulate([c] * self.degree, operator.mul, initial=arb(1))) for c in centre
        ]
        found = [arb(0)] * len(self)
        for exponents, term in zip(self.exponents, terms, strict=True):
            for place, kept in enumerate(self.exponents):
                if all(k <= e for k, e in zip(kept, exponents, strict=True)):
                    factor = term
                    for e, k, power in zip(exponents, kept, powers, strict=True):
                        factor = factor * power[e - k] * math.comb(e, k)
                    found[place] = found[place] + factor
        return found


@functools.cache
def basis(count: int, degree: int) -> Basis:
    """The basis of this size, made once."""
    return Basis(count, degree)


class Jet:
    """A polynomial in parameters up to a total degree.

    Attributes
    ----------
    terms : list
        Coefficients in the order of a `Basis`; None for zero.
    basis : Basis
    rest : arb or arb_series, optional
        Bound of all other terms for |s_i| <= 1; None if it is not followed.
    """

    __slots__ = ("basis", "rest", "terms")

    def __init__(self, terms: Sequence[Coefficient], basis: Basis, rest: Coefficient = None):
        self.terms = list(terms)
        self.basis = basis
        self.rest = rest

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            terms = [_sum(a, b) for a, b in zip(self.terms, other.terms, strict=True)]
            return Jet(terms, self.basis, _sum(self.rest, other.rest))
        return Jet([_sum(self.terms[0], other), *self.terms[1:]], self.basis, self.rest)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet([None if a is None else -a for a in self.terms], self.basis, self.rest)

    def __sub__(self, other: Any) -> Jet:
        return self + (-other)

    def __rsub__(self, other: Any) -> Jet:
        return -self + other

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, int) and other == 1:
            return self
        if not isinstance(other, Jet):
            rest = None if self.rest is None else self.rest * abs(other)
            return Jet([None if a is None else a * other for a in self.terms], self.basis, rest)
        found = Jet([_convolved(self.terms, other.terms, pairs) for pairs in self.basis.products], self.basis)
        if self.rest is not None or other.rest is not None:
            a, b = self._sizes(), other._sizes()
            for i, size in enumerate(a):
                for j in range(len(a) - 1 - i, len(a)):
                    if size is not None and b[j] is not None:
                        found.rest = _sum(found.rest, size * b[j])
            found.rest = _upper(found.rest)
        return found

    __rmul__ = __mul__

    def __rtruediv__(self, other: Any) -> Jet:
        first = 1 / self.terms[0]
        found = self._solved(first, first, lambda j, m: -1)
        if self.rest is not None:
            found.rest = self._tail(first, first, lambda x: 1 / (1 - x), lambda x: 1 / (1 - x))
        return found * other

    def __truediv__(self, other: Any) -> Jet:
        return self * (1 / other)

    def exp(self) -> Jet:
        """exp(a) = b: m b_m = sum_j j a_j b_{m-j}."""
        first = self.terms[0].exp()
        found = self._solved(first, 1, lambda j, m: arb(j) / m)
        if self.rest is not None:
            found.rest = self._tail(first, None, lambda x: x.exp(), lambda x: x.exp())
        return found

    def log(self) -> Jet:
        """log(a) = b: a_0 m b_m = m a_m - sum_j (m - j) a_j b_{m-j}, the sum over 0 < j < m."""
        first = self.terms[0]
        found = self._solved(first.log(), 1 / first, lambda j, m: arb(j - m) / m, self.terms)
        if self.rest is not None:
            found.rest = self._tail(first * 0 + 1, 1 / first, lambda x: -(1 - x).log(), lambda x: -(1 - x).log())
        return found

    def rsqrt(self) -> Jet:
        """a^-1/2 = b: a_0 m b_m = -sum_j (m - j/2) a_j b_{m-j}."""
        first = self.terms[0]
        found = self._solved(first.rsqrt(), 1 / first, lambda j, m: arb(j - 2 * m) / (2 * m))
        if self.rest is not None:
            found.rest = self._tail(first.rsqrt(), 1 / first, lambda x: (1 - x).rsqrt(), lambda x: (1 - x).rsqrt())
        return found

    def _solved(
        self,
        first: Coefficient,
        by: Coefficient,
        weight: Callable[[int, int], Any],
        own: Sequence[Coefficient] | None = None,
    ) -> Jet:
        """The jet b with b_0 = ``first``, b_m = by (own_m + sum_{j != 0} weight(deg j, deg m) a_j b_{m-j})."""
        degrees = self.basis.degrees
        found: list[Coefficient] = [first] + [None] * (len(degrees) - 1)
        for m, groups in enumerate(self.basis.by_degree):
            if m:
                value = None if own is None else own[m]
                for j, pairs in groups:
                    factor = weight(j, degrees[m])
                    term = None if factor == 0 else _convolved(self.terms, found, pairs)
                    if term is not None:
                        value = _sum(value, term * factor)
                found[m] = None if value is None else value * by
        return Jet(found, self.basis)

    def _sizes(self) -> list[Coefficient]:
        """Sums of absolute values by degree, then the rest; None for zero."""
        found: list[Coefficient] = [None] * (self.basis.degree + 1)
        for degree, term in zip(self.basis.degrees, self.terms, strict=True):
            if term is not None:
                found[degree] = _sum(found[degree], _size(term))
        return [*found, self.rest]

    def _tail(self, outer: Coefficient, inner: Coefficient, function: Callable, of_jet: Callable) -> Coefficient:
        """|outer| (g(v(1)) - sum_{k <= n} [x^k] g(v(x))), with v = |inner| M, for g with positive coefficients."""
        scale = None if inner is None else _size(inner)
        sizes = [None, *self._sizes()[1:]]
        v = [s if s is None or scale is None else s * scale for s in sizes]
        zero = _size(self.terms[0]) * 0
        line = basis(1, self.basis.degree)
        whole = sum((s for s in v if s is not None), zero)
        if not _below_one(whole) and inner is not None:
            return zero + arb("inf")
        shape = of_jet(Jet([zero, *v[1:-1]], line))
        left = function(whole) - sum((t for t in shape.terms if t is not None), zero)
        return _upper(left * _size(outer))


def _size(value: Coefficient) -> Coefficient:
    """Upper bounds of absolute values: of a ball, or of each coefficient of a series."""
    if isinstance(value, arb):
        return value.abs_upper()
    return arb_series([c.abs_upper() for c in value.coeffs()], value.prec)


def _upper(value: Coefficient) -> Coefficient:
    return value if value is None else _size(value)


def _below_one(value: Coefficient) -> bool:
    return bool((value if isinstance(value, arb) else value[0]) < 1)


def _sum(a: Coefficient, b: Coefficient) -> Coefficient:
    return b if a is None else a if b is None else a + b


def _convolved(a: list[Coefficient], b: list[Coefficient], pairs: tuple[tuple[int, int], ...]) -> Coefficient:
    found = None
    for i, j in pairs:
        if a[i] is not None and b[j] is not None:
            term = a[i] * b[j]
            found = term if found is None else found + term
    return found
