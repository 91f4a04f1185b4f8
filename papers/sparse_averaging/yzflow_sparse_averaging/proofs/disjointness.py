"""Ranks behind the communication bounds: 2^q for disjointness, 2^q - 1 for intersection.

Used by Theorem 4 and the Match3 bound of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). A row is a set of
Alice, a column one of Bob; the 0/1 matrix of disjointness is a Kronecker power.
"""

from __future__ import annotations

import itertools

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar

ONE = sp.Matrix([[1, 1], [1, 0]])  # q = 1: rows and columns without and with the element


def determinant(q: int) -> int:
    """det of the disjointness matrix of q elements."""
    return -1 if q == 1 else 1


def rank(q: int) -> int:
    """Rank of the disjointness matrix."""
    return 2**q


def intersection_rank(q: int) -> int:
    """Rank of the matrix of max_i a_i b_i."""
    return 2**q - 1


def values(b: sp.Expr) -> tuple[Scalar, Scalar]:
    """Bob's z_{2i-1} and z_{2i}; Alice's set has token 2i if a_i = 1, else token 2i - 1."""
    return -1, 2 * b - 1


def allowed_error(q: sp.Expr) -> sp.Expr:
    """Largest error of the output with which the threshold at -1 + 1/q still decides."""
    return 1 / q


def message_bits(width: sp.Expr, dimension: sp.Expr, bits: sp.Expr) -> sp.Expr:
    """Bits of Alice's message: a query and a key of m numbers, and a value of d', of p bits each."""
    return (2 * width + dimension) * bits


def derive(
    *,
    determinant: Claim = determinant,
    rank: Claim = rank,
    intersection_rank: Claim = intersection_rank,
    values: Claim = values,
    allowed_error: Claim = allowed_error,
) -> Derivation:
    """Disjointness by definition against the Kronecker power, its determinant and rank; the decision by the average."""
    a, b = sp.symbols("a b", real=True)
    elements = sp.Symbol("q", positive=True, integer=True)
    without, with_it = values(b)
    vanishing = {"average: what one element adds": a * with_it + (1 - a) * without - (2 * a * b - 1)}
    met = -1 + 2 / elements - (-1 + 1 / elements)
    vanishing["average: the threshold is that far from one common element"] = met - allowed_error(elements)
    vanishing["average: and from none"] = 1 / elements - allowed_error(elements)
    for q in SIZES["q"]:
        sets = list(itertools.product((0, 1), repeat=q))
        disjoint = sp.Matrix([[int(not any(i * j for i, j in zip(a, b, strict=True))) for b in sets] for a in sets])
        vanishing[f"Kronecker power, q = {q}"] = sum(abs(e) for e in disjoint - sp.kronecker_product(*[ONE] * q))
        vanishing[f"determinant, q = {q}"] = disjoint.det() - determinant(q)
        vanishing[f"rank, q = {q}"] = sp.Integer(disjoint.rank() - rank(q))
        meets = sp.ones(2**q, 2**q) - disjoint
        vanishing[f"rank of intersection, q = {q}"] = sp.Integer(meets.rank() - intersection_rank(q))
    rows = sp.Symbol("n", positive=True, integer=True)
    vanishing["det of a Kronecker product with the q = 1 matrix is the square, up to (-1)^n"] = (
        ONE.det() ** rows - (-1) ** rows
    )
    return Derivation(
        statement="Disjointness rank",
        vanishing=vanishing,
        steps=(
            r"$z_{2i} = 2b_i - 1$, $z_{2i-1} = -1$ and $y = \{2i + a_i - 1\}$ have the average $-1 + \frac2q \sum_i"
            r" a_i b_i$:"
            r" -1 for disjoint sets, at least $-1 + 2/q$ for others. A unit that is right to within $1/q$ so decides.",
            r"Disjoint on q + 1 elements means disjoint on q and on the last: $D_{q+1} = D_q \otimes D_1$.",
            r"$|\det(A\otimes B)| = |\det A|^{n_B}|\det B|^{n_A}$ and $\det D_1 = -1$: $|\det D_q| = 1$ and the rank is"
            r" $2^q$.",
            r"Intersection is $1 1^T - D_q$: its rank is at least $2^q - 1$, and the row of the empty set is zero.",
        ),
        scope="ranks: q up to 4 by computation, all q by the Kronecker product; the average: any q. Nothing on units",
        sizes=SIZES,
        prose=(INDUCTION, LEAVES, TOLD_APART),
        proves=("Match3, one layer", "Match3, strict", "Rank bound", "Theorem 4"),
    )


SIZES = {"q": (1, 2, 3, 4)}
LEAVES = "a protocol's matrix is a sum of one matrix of rank one for each leaf that answers yes, 2^bits at most"
TOLD_APART = "of two sets of Alice some third set meets one alone, so that they need two messages"
INDUCTION = "all q: induction by the Kronecker product"
