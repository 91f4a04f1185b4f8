"""Wider and deeper Transformers with the same outputs (Appendix C.2 of Wen et al. 2023, arXiv 2312.01429)."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import matrix, named

COMPOSED = "weights of the narrow layers behind Q and its transpose, layer by layer"


def handed_on(x: sp.Expr) -> sp.Expr:
    """g(x) of a layer that passes its tokens on unchanged."""
    return sp.Max(0, x) - sp.Max(0, -x)


def layer(x: sp.Expr, value: sp.Expr, mixed: sp.Expr) -> sp.Expr:
    """Input of g in a layer (6) with the value ``value`` and the link, on one coordinate: LN(0) is 0."""
    return sp.Piecewise((0, sp.Eq(value * mixed, 0)), (1, True)) + x


def silent_value() -> sp.Expr:
    """W_V of a layer that passes its tokens on unchanged."""
    return sp.Integer(0)


def block(x: sp.Expr, value: sp.Expr, mixed: sp.Expr, down: sp.Expr, hidden: sp.Expr) -> sp.Expr:
    """A GPT's layer on one coordinate: attention and the feed-forward part, each added to the tokens."""
    return x + value * mixed + down * hidden


def widening(width: int, wider: int) -> sp.Matrix:
    """Q with orthonormal rows; it maps the all-ones direction to the all-ones direction of the wide tokens."""
    ones = sp.ones(width, wider) / sp.sqrt(width * wider)
    kept = sp.Matrix(width - 1, wider - 1, lambda i, j: int(i == j))
    return ones + _helmert(width).T * kept * _helmert(wider)


def _helmert(size: int) -> sp.Matrix:
    """Orthonormal rows that sum to zero."""
    return sp.Matrix(
        size - 1,
        size,
        lambda i, j: (1 if j <= i else -(i + 1) if j == i + 1 else 0) / sp.sqrt((i + 1) * (i + 2)),
    )


def _centred(x: sp.Matrix) -> sp.Matrix:
    return x - sp.ones(1, x.cols) * sum(x) / x.cols


def derive(
    *,
    handed_on: Claim = handed_on,
    silent_value: Claim = silent_value,
    widening: Claim = widening,
    sizes: Sequence[tuple[int, int]] = ((2, 3), (3, 5)),
) -> Derivation:
    """A layer that passes its tokens on unchanged, in both architectures; LN of tokens behind an isometry."""
    mixed, hidden = sp.symbols("u h", real=True)
    vanishing: dict[str, sp.Expr] = {}
    for sign in (1, -1):
        x = sign * sp.Symbol("x", positive=True)
        vanishing[f"handed on, sign {sign}"] = handed_on(layer(x, silent_value(), mixed)) - x
        vanishing[f"GPT's layer, sign {sign}"] = block(x, silent_value(), mixed, sp.Integer(0), hidden) - x
    for width, wider in sizes:
        x, Q = matrix("x", 1, width), widening(width, wider)
        name = f"{width} to {wider}"
        vanishing |= named(f"mean, {name}", (_centred(x * Q) - _centred(x) * Q).T)
        product = Q * Q.T
        vanishing |= named(f"norm, {name}", product - sp.eye(width))
    return Derivation(
        statement="Appendix C.2 (bounded Dyck)",
        vanishing=vanishing,
        steps=(
            r"A layer (6) with $W_V = 0$ has $g(LN(0) + x)$, and $LN(0) = 0$ with a floor and without; $relu(x) -"
            r" relu(-x) = x$. Its attention has no part in it.",
            r"A GPT's layer adds attention and the feed-forward part to the tokens: with zero values and zero output"
            r" weights it adds nothing.",
            r"$Q = 11'^T/\sqrt{dd'} + H^TRH'$, with orthonormal rows of sum zero in H and H' and orthonormal rows in R:"
            r" $QQ^T = I$ and $P'(xQ) = (Px)Q$, so that $LN(xQ) = LN(x)Q$ with any floor.",
            r"$W_K' = W_KQ$, $W_Q' = W_QQ$, $W_V' = Q^TW_VQ$, first and last matrix of g times Q and $Q^T$: then"
            r" $T'(XQ) = T(X)Q$. More units that nothing hears, and more rows of keys whose queries are zero, change"
            r" nothing.",
        ),
        scope="a layer that hands on: any width and attention; Q: from 2 to 3 and from 3 to 5 coordinates, any token",
        sizes={"(d, d')": tuple(sizes)},
        prose=(COMPOSED,),
    )
