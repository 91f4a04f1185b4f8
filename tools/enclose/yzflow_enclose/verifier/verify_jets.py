"""Jets, for ``verify_cell.py``: polynomials in a few variables, and bounds of matrices with such entries."""

import math
from collections.abc import Callable
from typing import Any

from flint import acb_mat, arb, arb_mat

if __package__:
    from yzflow_enclose.verifier.verify_flow import definite, dot
else:
    from verify_flow import definite, dot  # type: ignore[no-redef]

TOP = 2**24  # the place of the total degree in the key of a monomial


def key(*exponents: int) -> int:
    """Key of a monomial; the key of a product is the sum of the keys."""
    return sum(exponents) * TOP + sum(e << (6 * i) for i, e in enumerate(exponents))


class Slope:
    """A ball, and a row of its derivatives by the variables."""

    def __init__(self, value: arb, slope: arb_mat):
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> "Slope":
        if isinstance(other, Slope):
            return Slope(self.value + other.value, self.slope + other.slope)
        return Slope(self.value + other, self.slope)

    def __mul__(self, other: Any) -> "Slope":
        if isinstance(other, Slope):
            return Slope(self.value * other.value, self.slope * other.value + other.slope * self.value)
        return Slope(self.value * other, self.slope * other)

    def exp(self) -> "Slope":
        found = self.value.exp()
        return Slope(found, self.slope * found)

    def rsqrt(self) -> "Slope":
        found = self.value.rsqrt()
        return Slope(found, self.slope * (found / self.value / -2))

    def __rtruediv__(self, other: Any) -> "Slope":
        found = 1 / self.value
        return Slope(found, self.slope * (-found * found)) * other

    __radd__, __rmul__ = __add__, __mul__


class Jet:
    """A polynomial up to a total degree; its coefficients are balls, or power series of them."""

    def __init__(self, terms: dict, degree: int):
        self.terms, self.degree = terms, degree

    def __add__(self, other: Any) -> "Jet":
        found = dict(self.terms)
        for k, x in other.terms.items() if isinstance(other, Jet) else [(0, other)]:
            found[k] = found[k] + x if k in found else x
        return Jet(found, self.degree)

    def __mul__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return Jet({k: x * other for k, x in self.terms.items()}, self.degree)
        found: dict = {}
        end = (self.degree + 1) * TOP
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                if a + b < end:
                    found[a + b] = found[a + b] + x * y if a + b in found else x * y
        return Jet(found, self.degree)

    def composed(self, scale: Any, factor: Callable) -> "Jet":
        """sum_k factor(k) (scale (self - self_0))^k."""
        inner = Jet({k: x * scale for k, x in self.terms.items() if k}, self.degree)
        found = Jet({0: scale * 0 + factor(self.degree)}, self.degree)
        for k in range(self.degree - 1, -1, -1):
            found = found * inner + factor(k)
        return found

    def exp(self) -> "Jet":
        first = self.terms[0]
        return self.composed(1, lambda k: arb(1) / math.factorial(k)) * first.exp()

    def rsqrt(self) -> "Jet":
        first = self.terms[0]
        return self.composed(1 / first, lambda k: arb(math.comb(2 * k, k)) / (-4) ** k) * first.rsqrt()

    def __rtruediv__(self, other: Any) -> "Jet":
        first = 1 / self.terms[0]
        return self.composed(first, lambda k: (-1) ** k) * first * other

    def __neg__(self) -> "Jet":
        return self * -1

    def __sub__(self, other: Any) -> "Jet":
        return self + -other

    def __rsub__(self, other: Any) -> "Jet":
        return -self + other

    def __truediv__(self, other: Any) -> "Jet":
        return self * (1 / other)

    __radd__, __rmul__ = __add__, __mul__

    def size(self, least: int) -> arb:
        """A bound of its terms from a degree on, where each variable is at most 1."""
        return sum((abs(x) for k, x in self.terms.items() if k >= least * TOP), arb(0)).upper()


def growth(J: list) -> arb:
    """A bound of the logarithmic norm, in a basis Q in which the first matrix is nearly diagonal.

    mu Q^T Q - Q^T S Q has positive pivots for the symmetric part S of every matrix of the jet.
    """
    first, *others = [(A + A.transpose()) / 2 for A in J]
    N, Qt = range(first.nrows()), orthogonal(first)
    first, *others = [Qt * A * Qt.transpose() for A in (first, *others)]
    spread = [[sum((abs(A[i, j]) for A in others), arb(0)).upper() for j in N] for i in N]
    S = [[first[i, j] + arb(0, spread[i][j]) for j in N] for i in N]
    sizes = arb_mat([[(S[i][j] if i == j else abs(S[i][j])).upper() for j in N] for i in N])
    guess = max(float(e.real.mid()) for e in acb_mat(sizes).eig(algorithm="approx"))
    mu, near = arb(guess + 1e-6 * max(abs(float(x)) for x in sizes.entries()) + 1e-30), Qt * Qt.transpose()
    return mu if definite([[mu * near[i, j] - S[i][j] for j in N] for i in N]) else arb.nan()


def orthogonal(A: arb_mat) -> arb_mat:
    """Approximate eigenvectors of a symmetric matrix, as rows; whatever they are, bounds hold."""
    rows: list = []
    for column in zip(*acb_mat(A.mid()).eig(right=True, algorithm="approx")[1].table(), strict=True):
        row = [x.real.mid() for x in column]
        for other in rows * 2:
            along = dot(row, other)
            row = [(x - along * y).mid() for x, y in zip(row, other, strict=True)]
        rows.append([(x / dot(row, row).sqrt()).mid() for x in row])
    return arb_mat(rows)


def size(J: list) -> arb:
    """A bound of the spectral norm of every matrix of a jet: with B their entries' sizes, |B|^4 <= |B^T B B^T B|."""
    N = range(J[0].nrows())
    B = arb_mat([[sum((abs(A[i, j]) for A in J), arb(0)).upper() for j in N] for i in N])
    square = B.transpose() * B
    return sum((x * x for x in (square * square).entries()), arb(0)).sqrt().sqrt().sqrt().upper()
