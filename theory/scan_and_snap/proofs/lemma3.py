"""Lemma 3, (7)-(8) and (24)-(30): the gradient on W = F^T Y, and the decoder gradient that realises it.

F^T F = I + E. The features are any linearly independent columns; their unit norm is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import gradient, matrix, named, softmax, unit


def correction(gram: sp.Matrix) -> sp.Matrix:
    """E' = I - (I + E)^{-1}, the sign of Lemma 14; the notation of Appendix D.1 has the opposite sign (erratum)."""
    return sp.eye(gram.rows) - gram.inv()


def update(index: int, target: int, residual: sp.Matrix) -> sp.Matrix:
    """(8): rate of row w_j of W, 1[j = n] (e_n - alpha_n), in units of eta_Y."""
    return int(index == target) * residual


def derive(
    *, correction: Claim = correction, update: Claim = update, sizes: Sequence[tuple[int, int]] = ((2, 3), (3, 4))
) -> Derivation:
    """(8) from J as a function of W, and from the modified gradient; ``sizes`` are pairs (K, M).

    The claims: ``correction(F^T F)`` is E', and ``update(j, n, residual)`` the rate of row j of W.
    """
    vanishing = {}
    for k, m in sizes:
        vanishing.update({f"{key}, K = {k}, M = {m}": value for key, value in _one_size(k, m, correction, update)})
    return Derivation(
        statement="Lemma 3",
        vanishing=vanishing,
        steps=(
            r"The logits of class n are $Y^T f_n = Y^T F e_n = W^T e_n = w_n$: J depends on Y through row n of W only.",
            r"$\partial J/\partial W = e_n (e_n - \alpha_n)^T$, which is (8).",
            r"A step $\dot Y = v\,r_n^T$ moves W by $F^T v\,r_n^T$, and this is (8) for $F^T v = e_n$.",
            r"$v = F (F^T F)^{-1} e_n = F (I - E') e_n = f_n - F E' e_n$ with $E' = I - (I+E)^{-1}$ solves it, and it"
            r" is the"
            r" only solution in the span of F.",
            r"With $E' := (I+E)^{-1} - I$, as Appendix D.1 prints it, $F^T v = (I+E)(2I - (I+E)^{-1}) e_n = (I + 2E)"
            r" e_n$.",
        ),
        scope="(K, M) = (2, 3) and (3, 4) by default, any linearly independent features, any W",
        sizes={"(K, M)": tuple(sizes)},
        prose=("the span of F holds no other solution",),
    )


def _one_size(k, m, correction, update):
    F = matrix("F", m, k)
    # Symbols for the Gram matrix keep its inverse small; that they are F^T F is put in at the end.
    entries = {(i, j): sp.Symbol(f"G_{i}{j}", real=True) for i in range(k) for j in range(i, k)}
    gram = sp.Matrix(k, k, lambda i, j: entries[min(i, j), max(i, j)])
    E_prime = correction(gram)
    W = matrix("W", k, m)
    for n in range(k):
        J = W[n, n] - sp.log(sum(sp.exp(entry) for entry in W.row(n)))
        residual = unit(m, n) - softmax(W.row(n).T)
        rate = gradient(J, W)
        for j in range(k):
            yield from named(f"dJ/dw_{j}, n = {n}", rate.row(j).T - update(j, n, residual)).items()
        # F^T times the modified direction, with F^T F = gram; the product with r_n^T is the same on both sides.
        reached = gram * (unit(k, n) - E_prime * unit(k, n))
        wanted = sp.Matrix([sum(update(j, n, sp.Matrix([1]))) for j in range(k)])
        yield from named(f"F^T (f_n - F E' e_n), n = {n}", reached - wanted).items()
    true_gram = F.T * F
    independent = {symbol: true_gram[i, j] for (i, j), symbol in entries.items()}
    # With the features written out, which takes long for more classes.
    if k == 2:
        n = 0
        reached = F.T * (F.col(n) - F * E_prime.col(n)).subs(independent)
        yield from named("F^T (f_n - F E' e_n) in tokens", reached - unit(k, n)).items()
