"""Lemma 2, (5)-(6): the attention of a long sequence depends on P(.|n) alone.

From positions to counts exactly, then T -> infinity with counts that fluctuate as their binomial law allows.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import named, norm, one_hot, softmax

SEQUENCE = (0, 1, 1, 2, 0, 1)


def attention(p: sp.Matrix, z: sp.Matrix) -> sp.Matrix:
    """(5): c_l proportional to P(l|n) exp(z_l), summing to one."""
    weights = p.multiply_elementwise(z.applyfunc(sp.exp))
    return weights / sum(weights)


def feature(p: sp.Matrix, z: sp.Matrix) -> sp.Matrix:
    """(6): f = c~ / ||c~|| with c~_l = P(l|n) exp(z_l)."""
    weights = p.multiply_elementwise(z.applyfunc(sp.exp))
    return weights / norm(weights)


def derive(*, attention: Claim = attention, feature: Claim = feature, vocab_size: int = 3) -> Derivation:
    """The bag from the positions, and its limit; ``attention`` and ``feature`` are the claims of (P(.|n), z)."""
    size = vocab_size
    z = sp.Matrix(sp.symbols(f"z_:{size}", real=True))
    p = sp.Matrix(sp.symbols(f"p_:{size}", positive=True))
    length = sp.Symbol("L", positive=True)  # T - 1

    X = one_hot(SEQUENCE, size)
    counts = sp.Matrix([SEQUENCE.count(token) for token in range(size)])
    pooled = X.T * softmax(X * z)
    vanishing = named("positions to counts", pooled - attention(counts, z))
    vanishing.update(named("frequencies in place of counts", attention(length * p, z) - attention(p, z)))

    # Counts N = L p + sqrt(L) d, with d the scaled fluctuation.
    d = sp.Matrix(sp.symbols(f"d_:{size}", real=True))
    small = sp.Symbol("epsilon", positive=True)  # 1/sqrt(L)
    weights = (p + small * d).multiply_elementwise(z.applyfunc(sp.exp))
    limits = {"attention": (weights / sum(weights), attention), "feature": (weights / norm(weights), feature)}
    for name, (bag, claim) in limits.items():
        vanishing.update(named(f"limit of the {name}", bag.subs(small, 0) - claim(p, z)))
        # The bag is a quotient of functions that are smooth at epsilon = 0, so that this first term is its rate.
        rate = bag.applyfunc(lambda entry: sp.diff(entry, small)).subs(small, 0)
        along = rate.subs(dict(zip(d, p, strict=True)))
        vanishing.update(named(f"{name} unmoved by a common factor of the counts", along))

    mean, variance = _binomial(p[0], length)
    vanishing["mean of N_l/L"] = mean / length - p[0]
    vanishing["variance of N_l/L tends to 0"] = sp.limit(variance / length**2, length, sp.oo)
    vanishing["variance of d_l"] = variance / length - p[0] * (1 - p[0])
    return Derivation(
        statement="Lemma 2",
        vanishing=vanishing,
        steps=(
            r"Positions with the same token have the same $e^{z_l}$: $(X^T b)_l = N_l e^{z_l}/\sum_k N_k e^{z_k}$.",
            r"This is homogeneous of degree 0 in N, so that N may be replaced by $N/(T-1)$.",
            r"$N_l$ is binomial: its generating function $(1 - p + p s)^{T-1}$ has the mean $(T-1)p$ and the variance"
            r" $(T-1)p(1-p)$, hence $N_l/(T-1) \to p$ in mean square, at the rate $1/\sqrt{T-1}$.",
            r"The bag is continuous in $N/(T-1)$ at P(.|n), with limit (5), and (6) after normalisation.",
        ),
        scope="M = 3 by default, any z and P(.|n); one explicit sequence for the first step",
        sizes={"M": (vocab_size,), "T - 1": (len(SEQUENCE),)},
        prose=("the bag of the limit is the limit of the bags: it is continuous in the frequencies, which converge",),
    )


def _binomial(p, length):
    """Mean and variance of the number of successes, from the generating function."""
    s = sp.Symbol("s", positive=True)
    generating = (1 - p + p * s) ** length
    first = sp.diff(generating, s).subs(s, 1)
    second = sp.diff(generating, s, 2).subs(s, 1)
    return sp.simplify(first), sp.simplify(second + first - first**2)
