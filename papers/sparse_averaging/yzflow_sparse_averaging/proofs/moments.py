"""The moment curve: scores equal on the subset, an integer gap of at least one off it, and why 2q - 1 is not enough.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), the remark on infinite precision under Theorem 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation

T = sp.Symbol("t", integer=True)


def functional(t: sp.Expr, members: Sequence[sp.Expr]) -> sp.Expr:
    """-prod_{j in y} (t - j)^2; the query holds its coefficients of t, t^2, .., t^{2q}."""
    return -sp.prod([(t - j) ** 2 for j in members])


def dimension(q: sp.Expr) -> sp.Expr:
    """m."""
    return 2 * q


def query_bits(n_tokens: sp.Expr, q: sp.Expr) -> sp.Expr:
    """Bits of a query, about."""
    return 4 * q**2 * sp.log(n_tokens, 2)


def radon_weight(q: int, k: int) -> sp.Expr:
    """Weight of the point k = 0..2q in the affine dependency of 2q + 1 neighbours on the curve of degree 2q - 1."""
    return (-1) ** k * sp.binomial(2 * q, k)


def derive(
    *, functional: Claim = functional, dimension: Claim = dimension, radon_weight: Claim = radon_weight
) -> Derivation:
    """Scores for q = 1, 2, 3 with any members, and the dependency for q up to 5."""
    vanishing, signed = {}, {}
    distance = sp.Symbol("n", nonnegative=True, integer=True)
    for q in SIZES["q"]:
        members = sp.symbols(f"j_:{q}", integer=True)
        coefficients = sp.Poly(sp.expand(functional(T, members)), T).all_coeffs()[::-1]

        def score(t, coefficients=coefficients):
            return sum(coefficients[k] * t**k for k in range(1, len(coefficients)))

        gap = score(members[0]) - score(T)
        vanishing[f"gap, q = {q}"] = sp.expand(gap - sp.prod([T - j for j in members]) ** 2)
        vanishing[f"degree, q = {q}"] = sp.Integer(len(coefficients) - 1 - dimension(q))
        for j in members[1:]:
            vanishing[f"equal scores, q = {q}, {j}"] = sp.expand(score(members[0]) - score(j))
    signed["the square of an integer other than zero"] = ((distance + 1) ** 2 - 1, ">= 0")
    for q in FACES["q"]:
        for power in range(2 * q):
            vanishing[f"dependency, q = {q}, t^{power}"] = sum(radon_weight(q, k) * k**power for k in range(2 * q + 1))
        signed[f"alternating signs, q = {q}"] = (
            -sp.Max(*(radon_weight(q, k) * radon_weight(q, k + 1) for k in range(2 * q))),
            "> 0",
        )
    return Derivation(
        statement="Sparse averaging, unbounded precision",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"$\langle query, u_t\rangle = P(t) - P(0)$ with $P(t) = -\prod_{j\in y}(t-j)^2$, which is 0 on y.",
            r"Off y the product of the $t - j$ is an integer other than 0, and its square is at least 1.",
            r"$\sum_k (-1)^k\binom{2q}{k} k^p = 0$ for $p < 2q$: in dimension $2q - 1$ the odd points among 2q + 1"
            r" neighbours and"
            r" the even ones have a common convex combination, so that no query prefers the q odd ones to all others.",
        ),
        scope="gap: q = 1, 2, 3, any y and t; dependency: q up to 5",
        sizes=SIZES,
        prose=(SQUARE, RADON),
        proves=("Theorem 2, exact",),
    )


SIZES, FACES = {"q": (1, 2, 3)}, {"q": (1, 2, 3, 4, 5)}
SQUARE = "an integer other than 0 has a square of at least 1"
RADON = "Radon: two convex combinations that agree cannot be told apart by a linear query"
