"""Sparse averaging with a query linear in the multi-hot vector of y: m of at least N - 1 for q >= 3 (found).

The setting of the training picture of Sanford, Hsu, Telgarsky (2023): scores are sum_{j in y} A_ji with a matrix A of
rank at most m. If attention is uniform on every y and less elsewhere, the rank of A is N - 1 or N.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import unit

SIZES = ((4, 3), (5, 3), (5, 4), (6, 3))


def scores(margins: Sequence[sp.Expr], shifts: Sequence[sp.Expr], level: sp.Expr, q: int) -> sp.Matrix:
    """A with equal scores on every y: A = diag(delta) + r 1^T + 1 c^T, c = (kappa - delta)/q."""
    size = len(margins)
    return sp.Matrix(
        size, size, lambda j, i: (margins[i] if i == j else 0) + shifts[j] + (level - margins[i]) / sp.Integer(q)
    )


def rank(n_tokens: sp.Expr) -> sp.Expr:
    """The least rank of A."""
    return n_tokens - 1


def derive(*, scores: Claim = scores, rank: Claim = rank, sizes: Sequence[tuple[int, int]] = SIZES) -> Derivation:
    """The form of A, its margins, and its rank."""
    vanishing, signed = {}, {}
    for size, q in sizes:
        margins = sp.symbols(f"delta_:{size}", positive=True)
        shifts = sp.symbols(f"r_:{size}", real=True)
        level = sp.Symbol("kappa", real=True)
        A = scores(margins, shifts, level, q)
        subset = tuple(range(q))
        inside = [sum(A[j, i] for j in subset) for i in subset]
        outside = sum(A[j, size - 1] for j in subset)
        for i in range(1, q):
            vanishing[f"equal scores, N = {size}, q = {q}, {i}"] = sp.expand(inside[i] - inside[0])
        vanishing[f"gap, N = {size}, q = {q}"] = sp.expand(inside[0] - outside - margins[-1])
        # The equations on A for all y, as a matrix of integers: its kernel is the family above, and no larger.
        family = sp.Matrix([list(A.diff(s)) for s in (*margins, *shifts, level)])
        equations = sp.Matrix(_equations(size, q))
        vanishing[f"no other A, N = {size}, q = {q}"] = sp.Integer(size**2 - equations.rank() - family.rank())
        if size == 4:
            vanishing["determinant"], signed["an entry of the 2 x 2 matrix"] = _determinant(
                A, margins, shifts, level, q
            )
        even = sp.eye(size) - sp.ones(size, size) / size
        at = {**dict.fromkeys(margins, 1), **dict.fromkeys(shifts, -sp.Rational(1, size)), level: 1}
        for name, entry in zip(itertools.product(range(size), repeat=2), A.subs(at) - even, strict=True):
            vanishing[f"I - 1 1^T/N, N = {size}, q = {q}, {name}"] = entry
        vanishing[f"its rank, N = {size}, q = {q}"] = sp.Integer(even.rank() - rank(size))
    return Derivation(
        statement="Sparse averaging, linear query",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Swap a third member of y: $A_{ji} - A_{ji'}$ is the same for all $j \ne i, i'$, hence"
            r" $A_{ji} = r_j + c_i$ for $j \ne i$.",
            r"Equal scores on y then force $A_{ii} = r_i + c_i + \delta_i$, $\delta_i = \kappa - q c_i$; the gap to"
            r" token i off y is $\delta_i$, which must be positive.",
            r"$\det A = \det D\,\det(I + W^T D^{-1} U)$, $D = diag(\delta)$, $U = (r, 1)$, $W = (1, c)$: A and the"
            r" 2 x 2 matrix have kernels of equal dimension, at most 1, for the latter holds $1^T D^{-1} 1 > 0$.",
            r"$I - 1 1^T/N$ attains rank N - 1.",
        ),
        scope="form of A: N up to 6 where no other sizes are given, by the steps all N > q >= 3; determinant: N = 4",
        sizes={"(N, q)": tuple(sizes)},
        prose=(
            "other N > q >= 3: the exchange of a third member of y",
            "the rank: A and the 2 x 2 matrix have kernels of equal dimension",
        ),
    )


def _equations(size: int, q: int) -> list[list[int]]:
    """Rows: score of i minus score of i' for neighbours i, i' in y, in terms of the entries A_ji, all y."""
    rows = []
    for subset in itertools.combinations(range(size), q):
        for first, second in itertools.pairwise(subset):
            row = [0] * size**2
            for j in subset:
                row[j * size + first] += 1
                row[j * size + second] -= 1
            rows.append(row)
    return rows


def _determinant(A, margins, shifts, level, q):
    size = len(margins)
    inverse = sp.diag(*(1 / margin for margin in margins))
    ones = sum((unit(size, i) for i in range(size)), sp.zeros(size, 1))
    c = sp.Matrix([(level - margin) / q for margin in margins])
    U, W = sp.Matrix.hstack(sp.Matrix(shifts), ones), sp.Matrix.hstack(ones, c)
    small = sp.eye(2) + W.T * inverse * U
    whole = A.det(method="berkowitz")  # no quotients, unlike the default
    return sp.expand(whole - sp.prod(margins) * small.det()), (small[0, 1], "> 0")
