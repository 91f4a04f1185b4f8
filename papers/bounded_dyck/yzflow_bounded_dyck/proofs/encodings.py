"""Functions that a second layer computes from a minimal first layer (Definition 2 of Wen et al. 2023, 2312.01429)."""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import matrix, named, norm, positive


def value_map(encodings: sp.MatrixSymbol, values: sp.MatrixSymbol) -> sp.MatrixExpr:
    """W_V with ``E W_V = V``, for linearly independent encodings, the rows of E."""
    return encodings.T * (encodings * encodings.T).inverse() * values


def logit_map(encodings: sp.MatrixSymbol, logits: sp.MatrixSymbol) -> sp.MatrixExpr:
    """W with ``E W E^T = Z``; W_Q and W_K are its factors."""
    inverse = (encodings * encodings.T).inverse()
    return encodings.T * inverse * logits * inverse * encodings


def sum_after_open(encoding: sp.Matrix, weight: sp.Expr) -> sp.Matrix:
    """The sum before LN after START and one open bracket of the same encoding, whose values are its own."""
    return 2 * weight * encoding


def derive(
    *,
    value_map: Claim = value_map,
    logit_map: Claim = logit_map,
    sum_after_open: Claim = sum_after_open,
    width: int = 3,
) -> Derivation:
    """Independent encodings have every V and Z; START may not share the encoding of a bracket."""
    states, dimension, columns = sp.symbols("s m v", integer=True, positive=True)
    E, V, Z = (
        sp.MatrixSymbol(*one) for one in (("E", states, dimension), ("V", states, columns), ("Z", states, states))
    )
    alike, weight = matrix("e", width, 1, positive=True), positive("w")
    start, bracket = weight * alike, sum_after_open(alike, weight)
    vanishing = {"every V": E * value_map(E, V) - V, "every Z": E * logit_map(E, Z) * E.T - Z}
    vanishing.update(named("START like an open bracket", bracket / norm(bracket) - start / norm(start)))
    after_both = start + weight * alike  # its definition: two equal terms
    vanishing.update(named("START like an open bracket: the sum", after_both - bracket))
    return Derivation(
        statement="Encodings in Theorem 1 (bounded Dyck)",
        vanishing=vanishing,
        steps=(
            r"The rows of E are the encodings of the $2kD$ states and of START. If they are linearly independent, that"
            r" is of rank $2kD + 1$, $E E^T$ is invertible, and $W_V = E^T (E E^T)^{-1} V$ gives every V, $W = E^T (E"
            r" E^T)^{-1} Z\, (E E^T)^{-1} E$ every Z.",
            r"If $e(\mathrm{START}) = e(\mathrm{open}_{1,1})$, the sum after the text \"(\" is twice that after the"
            r" empty one, at the same query: LN takes the factor off, and the layer cannot tell the two apart, with a"
            r" residual link or without. The rank of the others may be $2kD$.",
        ),
        scope="any number of states and widths; START like an open bracket with three values, by linearity",
        sizes={"values": (width,)},
        prose=("$E E^T$ is invertible where the rows of E are independent",),
        proves=("Theorem 1, sufficiency",),
    )
