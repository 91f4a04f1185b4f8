"""Lemma 2, (5)-(6): the attention of a long sequence depends on P(.|n) alone.

From positions to counts exactly, then T -> infinity with counts that fluctuate as their binomial law allows. The sizes
are symbols: M tokens, L = T - 1 positions.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import chosen, entries, index, size, total

M, L = size("M"), size("L")


def attention(p: Claim, z: Claim, token: sp.Idx) -> sp.Expr:
    """(5): entry of c, proportional to P(l|n) exp(z_l), summing to one; ``p`` and ``z`` are functions of a token."""
    l = index("l'", M)
    return p(token) * sp.exp(z(token)) / total(p(l) * sp.exp(z(l)), l)


def feature(p: Claim, z: Claim, token: sp.Idx) -> sp.Expr:
    """(6): entry of f = c~ / ||c~|| with c~_l = P(l|n) exp(z_l)."""
    l = index("l'", M)
    return p(token) * sp.exp(z(token)) / sp.sqrt(total((p(l) * sp.exp(z(l))) ** 2, l))


def derive(*, attention: Claim = attention, feature: Claim = feature) -> Derivation:
    """The bag from the positions, and its limit; the claims have the signatures of this module's functions."""
    j, k, l = (index(name, M) for name in "jkl")
    s, t = index("s", L), index("t", L)
    x = chosen("x", M)
    z, p, d = entries("z"), entries("p", positive=True), entries("d")
    length = sp.Symbol("T'", positive=True)  # T - 1 as a number

    def weight(position):
        return sp.exp(z[x(position)]) / total(sp.exp(z[x(s)]), s)

    def count(token):
        return total(KroneckerDelta(x(t), token), t)

    def one_hot(position, token):
        return KroneckerDelta(x(position), token)

    def share(token):
        return p[token]

    pooled = total(one_hot(t, j) * weight(t), t)
    square = total(one_hot(t, j) * weight(t) * one_hot(t, k), t)
    at = z.__getitem__
    vanishing = {
        "positions to counts": pooled - attention(count, at, j),
        "positions to counts, X^T diag(b) X": square - KroneckerDelta(j, k) * attention(count, at, j),
        "counts sum to T - 1": total(count(j), j) - L,
        "frequencies in place of counts": attention(lambda l: length * p[l], at, j) - attention(share, at, j),
    }

    # Counts N = L p + sqrt(L) d, with d the scaled fluctuation.
    small = sp.Symbol("epsilon", positive=True)  # 1/sqrt(L)
    fluctuating = (p[j] + small * d[j]) * sp.exp(z[j])
    weights = (p[l] + small * d[l]) * sp.exp(z[l])
    limits = {
        "attention": (fluctuating / total(weights, l), attention),
        "feature": (fluctuating / sp.sqrt(total(weights**2, l)), feature),
    }
    for name, (bag, claim) in limits.items():
        vanishing[f"limit of the {name}"] = bag.subs(small, 0) - claim(share, at, j)
        # The bag is a quotient of functions that are smooth at epsilon = 0, so that this first term is its rate.
        rate = sp.diff(bag, small).subs(small, 0)
        vanishing[f"{name} unmoved by a common factor of the counts"] = rate.replace(
            lambda one: isinstance(one, sp.Indexed) and one.base == d, lambda one: p[one.indices[0]]
        )
    one = sp.Symbol("p", positive=True)
    mean, variance = _binomial(one, length)
    vanishing["mean of N_l/L"] = mean / length - one
    vanishing["variance of N_l/L tends to 0"] = sp.limit(variance / length**2, length, sp.oo)
    vanishing["variance of d_l"] = variance / length - one * (1 - one)
    return Derivation(
        statement="Lemma 2",
        vanishing=vanishing,
        steps=(
            r"Positions with the same token have the same $e^{z_l}$: $(X^T b)_l = \sum_t 1[x_t = l]\,b_t = N_l"
            r" e^{z_l}/\sum_k N_k e^{z_k}$, and $X^T \mathrm{diag}(b) X$ is diagonal with the same entries.",
            r"This is homogeneous of degree 0 in $N$, so that $N$ may be replaced by $N/(T-1)$.",
            r"$N_l$ is binomial: its generating function $(1 - p + p s)^{T-1}$ has the mean $(T-1)p$ and the variance"
            r" $(T-1)p(1-p)$, hence $N_l/(T-1) \to p$ in mean square, at the rate $1/\sqrt{T-1}$.",
            r"The bag is continuous in $N/(T-1)$ at $P(\cdot|n)$, with limit (5), and (6) after normalisation.",
        ),
        scope=r"all $M$ and $T$, any sequence, $z$ and $P(\cdot|n)$",
        sizes={},
        prose=("the bag of the limit is the limit of the bags: it is continuous in the frequencies, which converge",),
    )


def _binomial(p, length):
    """Mean and variance of the number of successes, from the generating function."""
    s = sp.Symbol("s", positive=True)
    generating = (1 - p + p * s) ** length
    first = sp.diff(generating, s).subs(s, 1)
    second = sp.diff(generating, s, 2).subs(s, 1)
    return sp.simplify(first), sp.simplify(second + first - first**2)
