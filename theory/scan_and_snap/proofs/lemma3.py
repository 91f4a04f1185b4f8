"""Lemma 3, (7)-(8) and (24)-(30): the gradient on W = F^T Y, and the decoder gradient that realises it.

F^T F = I + E =: G is an invertible K x K matrix: the features are any linearly independent columns of M entries, and
the proof does not use their unit norm. K and M are symbols: entries have generic indices, and the inverse of G is one
of matrix symbols.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import chosen, entries, index, size, total
from theory.symbolic.model import identity

K, M = size("K"), size("M")
NEXT = chosen("y", M, injective=True)  # the next token of a class


def correction(gram: Any) -> Any:
    """E' = I - (I + E)^{-1}, the sign of Lemma 14; the notation of Appendix D.1 has the opposite sign (erratum).

    ``gram`` is F^T F, a matrix or a matrix symbol.
    """
    return identity(gram.rows) - gram.inv()


def update(row: sp.Idx, target: sp.Idx, residual: sp.Expr) -> sp.Expr:
    """(8): rate of an entry of row w_j of W at a step of class n, 1[j = n] (e_n - alpha_n), in units of eta_Y."""
    return KroneckerDelta(row, target) * residual


def derive(*, correction: Claim = correction, update: Claim = update) -> Derivation:
    """(8) from J as a function of W, and from the modified gradient, for all K and M.

    The claims: ``correction(F^T F)`` is E', and ``update(j, n, residual)`` the rate of an entry of row j of W.
    """
    return Derivation(
        statement="Lemma 3",
        vanishing={**_by_rows(update), **_by_matrices(correction)},
        steps=(
            r"The logits of class n are $Y^T f_n = Y^T F e_n = W^T e_n = w_n$: J depends on Y through row n of W only.",
            r"$\partial J/\partial W = e_n (e_n - \alpha_n)^T$, which is (8).",
            r"A step $\dot Y = v\,r_n^T$ moves W by $F^T v\,r_n^T$, and this is (8) for $F^T v = e_n$.",
            r"$v = F (F^T F)^{-1} e_n = F (I - E') e_n = f_n - F E' e_n$ with $E' = I - (I+E)^{-1}$ solves it. It is"
            r" the only solution in the span of F: $F^T F c = e_n$ gives $c = (F^T F)^{-1} e_n$.",
            r"The gradient of Lemma 1, $v = f_n$, moves W by $F^T F e_n r_n^T = (I + E) e_n r_n^T$, (40).",
            r"With $E' := (I+E)^{-1} - I$, as Appendix D.1 prints it, $F^T v = (I+E)(2I - (I+E)^{-1}) e_n = (I + 2E)"
            r" e_n$.",
        ),
        scope="all $K$ and $M$, any linearly independent features, any $W$",
        sizes={},
    )


def _by_rows(update):
    """J by W, and W by Y, entry by entry."""
    j, k, l, p = (index(name, M) for name in "jklp")
    n, row, other = index("n", K), index("r", K), index("i", K)
    F, Y, W = entries("F"), entries("Y"), entries("W")

    def in_w(a, token):
        return total(F[p, a] * Y[p, token], p)

    def log_probability(logit):
        return logit(NEXT(n)) - sp.log(total(sp.exp(logit(l)), l))

    J = log_probability(lambda token: W[n, token])
    residual = KroneckerDelta(NEXT(n), k) - sp.exp(W[n, k]) / total(sp.exp(W[n, l]), l)
    by_y = sp.diff(log_probability(lambda token: in_w(n, token)), Y[j, k])
    by_w = residual.replace(
        lambda one: isinstance(one, sp.Indexed) and one.base == W, lambda one: in_w(one.indices[0], one.indices[1])
    )
    moved = total(F[p, row] * F[p, n] * residual, p)
    gram = total(F[p, row] * F[p, other], p)
    return {
        "dJ/dW": sp.diff(J, W[row, k]) - update(row, n, residual),
        "dJ/dY = F dJ/dW": by_y - total(F[j, row] * update(row, n, by_w), row),
        "Lemma 1's gradient on W, (40)": moved - total(gram * update(other, n, residual), other),
    }


def _by_matrices(correction):
    """The direction v = F (I - E') e_n, by F^T F = G: F^T F c is G c."""
    gram = sp.MatrixSymbol("G", K, K)
    c, e = sp.MatrixSymbol("c", K, 1), sp.MatrixSymbol("e", K, 1)
    residual = sp.MatrixSymbol("r", M, 1)
    one = sp.Identity(K)
    E_prime = correction(gram)
    printed = gram.I - one
    return {
        "F^T (f_n - F E' e_n) r^T": gram * (one - E_prime) * e * residual.T - e * residual.T,
        "the only one in the span": (one - E_prime) * (gram * c) - c,
        "with the sign of Appendix D.1": gram * (one - printed) * e - (one + 2 * (gram - one)) * e,
    }
