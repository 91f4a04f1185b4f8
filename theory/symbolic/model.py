"""The layer in symbols, from its definition (1)-(2), and symbolic objects that several proofs share.

A sequence has contextual tokens x_1..x_{T-1}, a query x_T and a next token n, all counted from 0 here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp


def positive(names: str) -> Any:
    """Positive symbols."""
    return sp.symbols(names, positive=True)


def matrix(name: str, rows: int, columns: int, **assumptions: bool) -> sp.Matrix:
    """Matrix of symbols name_ij, real unless ``assumptions`` says more."""
    assumptions = assumptions or {"real": True}
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}_{i}{j}", **assumptions))


def identity(size: Any) -> Any:
    """Identity matrix: explicit if the size is a number, a matrix symbol if the size is a symbol."""
    return sp.eye(int(size)) if sp.sympify(size).is_Integer else sp.Identity(size)


def unit(size: int, index: int) -> sp.Matrix:
    """Unit vector e_index."""
    return sp.Matrix(size, 1, lambda i, _: int(i == index))


def one_hot(tokens: Iterable[int], size: int) -> sp.Matrix:
    """X: one row for each contextual token."""
    return sp.Matrix([list(unit(size, token)) for token in tokens])


def softmax(v: sp.Matrix) -> sp.Matrix:
    """exp(v_i) / sum_j exp(v_j)."""
    weights = v.applyfunc(sp.exp)
    return weights / sum(weights)


def norm(v: sp.Matrix) -> sp.Expr:
    """Euclidean norm."""
    return sp.sqrt(sum(entry**2 for entry in v))


def log_probability(Y: sp.Matrix, feature: sp.Matrix, target: int) -> sp.Expr:
    """log alpha_target, with alpha = softmax(Y^T feature)."""
    logits = Y.T * feature
    return logits[target] - sp.log(sum(sp.exp(entry) for entry in logits))


def gradient(value: sp.Expr, variables: sp.Matrix) -> sp.Matrix:
    """Matrix of the derivatives of ``value``, in the shape of ``variables``."""
    return variables.applyfunc(lambda variable: sp.diff(value, variable))


def named(name: str, difference: sp.Matrix) -> dict[str, sp.Expr]:
    """The entries of a matrix that must vanish, by name and index."""
    rows, columns = difference.shape
    if columns == 1:
        return {f"{name}[{i}]": difference[i] for i in range(rows)}
    return {f"{name}[{i}, {j}]": difference[i, j] for i in range(rows) for j in range(columns)}


def equal_overlaps(size: int, rho: Any) -> sp.Matrix:
    """F^T F with ones on the diagonal and rho elsewhere."""
    return sp.Matrix(size, size, lambda i, j: sp.Integer(1) if i == j else rho)


class Even:
    """A K x K matrix a I + b 1 1^T for a symbol K: such matrices treat all classes alike."""

    def __init__(self, diagonal: Any, ones: Any, size: Any):
        self.diagonal, self.ones, self.size = sp.sympify(diagonal), sp.sympify(ones), size

    def __add__(self, other: Even) -> Even:
        return Even(self.diagonal + other.diagonal, self.ones + other.ones, self.size)

    def __mul__(self, other: Any) -> Even:
        if not isinstance(other, Even):
            return Even(self.diagonal * other, self.ones * other, self.size)
        ones = self.diagonal * other.ones + self.ones * other.diagonal + self.size * self.ones * other.ones
        return Even(self.diagonal * other.diagonal, ones, self.size)

    def inverse(self) -> Even:
        """Its inverse, by the formula of Sherman and Morrison."""
        ones = -self.ones / (self.diagonal * (self.diagonal + self.size * self.ones))
        return Even(1 / self.diagonal, ones, self.size)
