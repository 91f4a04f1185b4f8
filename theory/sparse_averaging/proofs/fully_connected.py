"""Narrow first layers: the error of one of two inputs that collide, for every first layer and every q.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): a fully connected network needs a width of order N d'. The
inputs z and -z, with W z = 0 and the largest |entry| 1, have the same first layer.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar

MORE, SPARE = sp.symbols("h s", nonnegative=True)
Q = 1 + MORE
TOKENS, DIMENSION = sp.symbols("N d", positive=True)


def narrow_width(n_tokens: sp.Expr, q: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Largest width k at which some error is at least 1."""
    return dimension * (n_tokens - 2 * q)


def forced_error(q: sp.Expr) -> sp.Expr:
    """Error that every width below N d' forces."""
    return 1 / (2 * q - 1)


def saturated(n_tokens: sp.Expr, width: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Coordinates of one vertex at +-1, at least."""
    return n_tokens * dimension - width


def weights(q: sp.Expr) -> tuple[Scalar, Scalar]:
    """Weights of both sets' errors, whose weighted mean does not depend on z."""
    return q / (2 * q - 1), (q - 1) / (2 * q - 1)


def derive(
    *,
    narrow_width: Claim = narrow_width,
    forced_error: Claim = forced_error,
    saturated: Claim = saturated,
    weights: Claim = weights,
) -> Derivation:
    """The count of coordinates at +-1, and the better of two sets where one coordinate is all there is."""
    width = narrow_width(TOKENS, Q, DIMENSION) - SPARE
    same_sign = saturated(TOKENS, width, DIMENSION) / (2 * DIMENSION)
    others = sp.Symbol("S", real=True)  # sum of the q - 1 largest entries beside the one that is 1
    high, low = weights(Q)
    # The set of the largest entries, and that of the q smallest: -B/q >= -S/(q - 1), here times (q - 1).
    largest, smallest = (1 + others) / Q, -others
    tight = -1 / (2 * Q - 1)  # every other entry
    return Derivation(
        statement="First layers must be wide",
        vanishing={
            "the weights sum to one": high + low - 1,
            "weighted mean of both errors": high * largest + sp.cancel(low / MORE) * smallest - forced_error(Q),
            "attained: the largest entries": (1 + (Q - 1) * tight) / Q - forced_error(Q),
            "attained: the smallest entries": -tight - forced_error(Q),
        },
        signed={"tokens of one sign, at least q": (sp.expand(same_sign - Q), ">= 0")},
        steps=(
            r"A first layer of width $k < Nd'$ has $Wz = 0$ for some $z \ne 0$; scaled, $\max|z_{jc}| = 1$. The inputs"
            r" $z$ and $-z$, with the same sets, give the same output, and their averages over $y$ are opposite: one"
            r" of the two errors is at least $|\frac1q\sum_{j\in y} z_{jc}|$, for every $y$ and coordinate $c$.",
            r"A vertex of $\{z: Wz = 0\} \cap [-1,1]^{Nd'}$ has $Nd'$ independent constraints that are tight, at most"
            r" $k$ of them in $Wz = 0$: $Nd' - k$ entries are $\pm1$. So some coordinate $c$ has $(Nd' - k)/(2d')$"
            r" tokens of one sign there, at least q for $k \le d'(N - 2q)$: the average over q of them is $\pm1$.",
            r"For every $k < Nd'$: let $z_{jc} = 1$, S the sum of the $q - 1$ largest other entries, B that of the q"
            r" smallest. As $N - 1 \ge q$, $B/q \le S/(q-1)$. The averages $(1 + S)/q$ and $B/q$ are those of two sets,"
            r" and $\frac{q}{2q-1}\cdot\frac{1+S}{q} + \frac{q-1}{2q-1}\cdot\frac{-S}{q-1} = \frac{1}{2q-1}$: one of"
            r" them is off zero by that much.",
            r"It is attained: if $z = (1, -\frac{1}{2q-1}, \ldots)$ spans the kernel ($d' = 1$, $k = N - 1$), no"
            r" average over q tokens is further off zero than $1/(2q-1)$, and the middle of all inputs with one first"
            r" layer is within that of each.",
        ),
        scope="every first layer of width k, on vectors in $[-1, 1]$ by coordinate, sets given; 1 for $k \\le d'(N -"
        " 2q)$, $1/(2q - 1)$ for $k < Nd'$ and $q < N$. Nothing on what is behind the first layer",
        sizes={},
        prose=(
            "vertices of a polytope have as many tight constraints as dimensions",
            "the mean of the q smallest of some numbers is at most that of the q - 1 largest",
        ),
    )
