r"""The dimension that all sets need, exactly: min(2q, N - 1), and the error of fewer.

"iff m >~ q" of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), for exact numbers. That some set has no query
in fewer dimensions, and that the moment curve or a simplex gives all sets one, is `dimension_for_all_sets` in Coq.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

RADON = "of m + 2 keys some weights, not all zero, have the sum zero and add the keys to nothing (linear algebra)"
SIDES = "the set has the fewer of both signs, then tokens of neither, then those of the least weight"
DEFICIT = "what attention lacks on the set is what others have, so that each entry is within half the error"
CURVE = "P(t) = -prod (t - j)^2 has degree 2q, is zero on the set and below zero off it"
MONOTONE = "both sides are continuous in x, the left one falls and the right one rises"


def dimension(n_tokens: sp.Expr, q: sp.Expr) -> sp.Expr:
    """The least m for every set of q < N tokens."""
    return sp.Min(2 * q, n_tokens - 1)


def fewer(points: sp.Expr) -> sp.Expr:
    """Bound on the number of points on the side of the fewer, of so many points in two sides."""
    return points / 2


def share_off(n_tokens: sp.Expr, q: sp.Expr) -> sp.Expr:
    """Bound of the share b of the other side's weight that lies off the set."""
    return (n_tokens - q) / (n_tokens - 1)


def forced_error(q: sp.Expr) -> sp.Expr:
    """Error that fewer dimensions force on some set, for q <= N/2."""
    return 2 / (3 * q)


def far_error(q: sp.Expr) -> sp.Expr:
    """The same for N >= 3q."""
    return 1 / q


def derive(
    *,
    dimension: Claim = dimension,
    fewer: Claim = fewer,
    share_off: Claim = share_off,
    forced_error: Claim = forced_error,
    far_error: Claim = far_error,
) -> Derivation:
    """Sizes of both sides, scores of a lost set, the share off it, and what its attention errs by."""
    more, room = sp.symbols("h r", nonnegative=True)
    q = 1 + more
    vanishing, signed = {}, {}
    # m = 2q - 1 - s numbers: m + 2 points in two sides.
    lacking = sp.Symbol("s", nonnegative=True)
    points = 2 * q - 1 - lacking + 2
    signed["sides: the fewer are below q + 1"] = (q + 1 - fewer(points), "> 0")
    signed["sides: a bound that m points of each side keep"] = (fewer(2 * q) - q, ">= 0")
    # <w, u> is c on the set; off it c - g. Both sides have one mean.
    c, gap, share = sp.Symbol("c", real=True), sp.Symbol("g", positive=True), sp.Symbol("b", positive=True)
    vanishing["scores: one mean on both sides"] = c - (share * (c - gap) + (1 - share) * c) - share * gap
    # a tokens inside, B outside, o of neither; q - a - o of the least weights outside are in the set.
    a, b = 1 + sp.Symbol("i", nonnegative=True), 1 + sp.Symbol("j", nonnegative=True)
    tokens = a + b + room
    taken = q - a - room
    vanishing["share: what the least weights leave"] = 1 - taken / b - (tokens - q) / b
    lost = sp.Symbol("u", nonnegative=True)
    # (N - q)/B against the bound, N - q = u.
    signed["share: at most N - 1 tokens outside"] = (lost / b - share_off(tokens, tokens - lost), ">= 0")
    n_tokens = 2 * q + room
    signed["share: above one half for q <= N/2"] = (sp.together(share_off(n_tokens, q) - sp.Rational(1, 2)), "> 0")
    far = 3 * q + room
    signed["share: all of it for N >= 3q"] = (far - (2 * q + 1) - (q - 1), ">= 0")
    # With x = q eps/2 the smallest entry on the set is (1 - x)/q or more, others x/q or less, all (1 + x)/q or less.
    x = sp.Symbol("x", positive=True)
    half = (1 - x) ** 2 - x * (1 + x)
    vanishing["error: a share of one half"] = half.subs(x, forced_error(q) * q / 2)
    vanishing["error: the whole share"] = (1 - 2 * x).subs(x, far_error(q) * q / 2)
    signed["error: falls with the share"] = (1 + x - x, "> 0")
    # Degree of the curve's polynomial: two for each token more; and the simplex.
    at = dimension(2 * q + 1 + room, q)
    vanishing["enough: the curve's degree"] = at - 2 * q
    vanishing["enough: a simplex"] = dimension(2 * q - room, q) - (2 * q - room - 1)
    return Derivation(
        statement="Dimension for all sets",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Let $m < \min(2q, N-1)$. Of $m + 2$ keys some weights with $\sum_i c_i = 0$ have $\sum_i c_iu_i = 0$."
            r" Divided by the sum of those above zero they are two convex combinations of one point. One of them has at"
            r" most $(m+2)/2 < q + 1$ tokens: q at most. A set y of q tokens has them and not all of the others.",
            r"Any query has the same mean score over both. If scores are $c$ on y and at most $c - g$ off it, the"
            r" second mean is at most $c - bg$, with $b > 0$ the weight off y: $g \le 0$. So y has no query.",
            r"y is filled up with tokens of neither side first, then with those of least weight:"
            r" $b \ge \frac{N-q}{N-1}$, above one half for $q \le N/2$; and $b = 1$ for $N \ge 3q$.",
            r"Attention within $\epsilon$ of $1_y/q$ has entries of at least $(1-x)/q$ and at most $(1+x)/q$ on y, and"
            r" at most $x/q$ off it, $x = q\epsilon/2$. Scores are their logarithms up to a constant:"
            r" $1 - x \le x^b(1+x)^{1-b}$. At $b = \frac12$ this is $3x \ge 1$, at $b = 1$ it is $2x \ge 1$.",
            r"Enough. On the curve $(t, \dots, t^{2q})$ the polynomial $-\prod_{j\in y}(t-j)^2$ scores y alike and all"
            r" others less; of $N - 1$ unit vectors and zero every set is a face.",
        ),
        scope="every N, q < N and m; exact numbers; the errors for q <= N/2",
        sizes={},
        prose=(RADON, SIDES, DEFICIT, CURVE, MONOTONE),
    )
