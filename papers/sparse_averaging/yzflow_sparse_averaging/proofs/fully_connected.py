"""Narrow first layers: the forced error on two colliding inputs, for every first layer and every q; the least error.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): a fully connected network needs a width of order N d'. The
inputs z and -z, with W z = 0 and the largest |entry| 1, have the same first layer.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar

MORE = sp.Symbol("h", nonnegative=True)
Q = 1 + MORE
TOKENS, DIMENSION, WIDTH = sp.symbols("N d k", positive=True)
# A set of q tokens: of them q - a are 1 in z, or q - b are -1.
FREE_HIGH, FREE_LOW = sp.symbols("a b", positive=True)


def saturated(n_tokens: sp.Expr, width: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Least number of tokens at +-1 in some coordinate."""
    return n_tokens - width / dimension


def half_error(at_one: sp.Expr, q: sp.Expr) -> sp.Expr:
    """Error forced by this number of tokens at +-1 for q <= N/2, unless it is 1."""
    return at_one / (2 * q)


def narrow_width(n_tokens: sp.Expr, q: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Least width k at which the least error is below 1, q <= N/2: at all below it is 1, and at none from it on.

    Below it some coordinate lacks r = 2q - 1 numbers or more, and from it on each can lack 2q - 2.
    """
    return dimension * (n_tokens - 2 * q + 2)


def balanced_dimension(at_one: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Dimension from which on every kernel has a point with so many tokens of one coordinate at +-1, half at each.

    For odd numbers one more is at one of both. One dimension fewer is not enough: of each coordinate one token fewer.
    """
    return (at_one - 1) * dimension + 1


def lost_share(n_tokens: sp.Expr, width: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Share of the values' N d' numbers that the first layer lacks: an error for every q <= N/2."""
    return 1 - width / (n_tokens * dimension)


def forced_error(q: sp.Expr) -> sp.Expr:
    """Error that every width below N d' forces, q < N."""
    return 1 / (2 * q - 1)


def half_weights(high: sp.Expr, low: sp.Expr) -> tuple[Scalar, Scalar]:
    """Weights of the sums over the q largest and q smallest entries; ``high`` and ``low`` of these are not at +-1."""
    return low / (high + low), high / (high + low)


def weights(q: sp.Expr) -> tuple[Scalar, Scalar]:
    """Weights of both sets' errors, whose weighted mean does not depend on z."""
    return q / (2 * q - 1), (q - 1) / (2 * q - 1)


def odd_sum(q: sp.Expr, lacking: sp.Expr) -> sp.Expr:
    """Least of the largest sums over q tokens, on a kernel of an odd dimension r < 2q; r/2 of an even one."""
    return lacking / 2 + 1 / (2 * (2 * q - lacking))


def tied(q: sp.Expr, lacking: sp.Expr) -> sp.Expr:
    """tau: of all tokens but r + 1, in the kernel that attains it, the value is -tau w."""
    return 1 / (2 * q - lacking)


def error_of_sum(n_tokens: sp.Expr, q: sp.Expr) -> sp.Expr:
    """Error of the sum of all values over q, d' numbers, in place of an average."""
    return (n_tokens - q) / q


def derive(
    *,
    saturated: Claim = saturated,
    half_error: Claim = half_error,
    narrow_width: Claim = narrow_width,
    balanced_dimension: Claim = balanced_dimension,
    lost_share: Claim = lost_share,
    forced_error: Claim = forced_error,
    half_weights: Claim = half_weights,
    weights: Claim = weights,
    odd_sum: Claim = odd_sum,
    tied: Claim = tied,
    error_of_sum: Claim = error_of_sum,
) -> Derivation:
    """The better of two sets, for many entries at +-1 and for a single one; the error from one sum."""
    high, low = half_weights(FREE_HIGH, FREE_LOW)
    middle, q = sp.Symbol("c", real=True), sp.Symbol("q", positive=True)
    ones, minus_ones = q - FREE_HIGH, q - FREE_LOW
    # Sums over the q largest and over the q smallest, with a value c between both sets.
    mean = high * (ones + FREE_HIGH * middle) + low * (minus_ones - FREE_LOW * middle)
    above = (ones - minus_ones) ** 2 / (2 * (FREE_HIGH + FREE_LOW))
    # N = 2q + r, and k = N d' - l.
    unused, lacking = sp.symbols("r l", nonnegative=True)
    tokens, at_one = 2 * q + unused, saturated(2 * q + unused, WIDTH, DIMENSION)
    share = half_error(at_one, q) - lost_share(tokens, WIDTH, DIMENSION)
    others = sp.Symbol("S", real=True)  # sum of the q - 1 largest entries beside the entry 1
    first, second = weights(Q)
    # Sets of the q largest and of the q smallest entries: -B/q >= -S/(q - 1), here times (q - 1).
    largest, smallest = (1 + others) / Q, -others
    tight = -1 / (2 * Q - 1)  # every other entry

    # An odd dimension: r = 2t + 1 tokens at +-1, t + 1 at one of both; 2q - r = 1 + v.
    t, more, v = sp.symbols("t h v", nonnegative=True)
    odd, dimension = 2 * t + 1, sp.Symbol("r", positive=True)
    room = {q: (dimension + 1 + v) / 2}

    # A face of dimension j, and a kernel of dimension N d' - k = (r - 1) d' + 1 + e.
    face, spare = sp.symbols("j e", nonnegative=True)

    rest = sp.Symbol("R", nonnegative=True)  # N - q, with N = q + R < 2q
    total, left_out = sp.symbols("Z z", real=True)
    return Derivation(
        statement="First layers must be wide",
        vanishing={
            "half: the weights sum to one": sp.simplify(high + low - 1),
            "half: the weighted sum is that many": sp.simplify(
                mean - above - q * half_error(ones + minus_ones, q),
            ),
            "one up to there: an odd number below 2q is as good as 2q": sp.simplify(odd_sum(q, 2 * q - 1) - q),
            "one up to there: from there on two fewer are lacking": sp.simplify(
                saturated(TOKENS, narrow_width(TOKENS, q, DIMENSION), DIMENSION) - (2 * q - 2)
            ),
            "one: the weights sum to one": first + second - 1,
            "one: weighted mean of both errors": first * largest
            + sp.cancel(second / MORE) * smallest
            - forced_error(Q),
            "one, attained: the largest entries": (1 + (Q - 1) * tight) / Q - forced_error(Q),
            "one, attained: the smallest entries": -tight - forced_error(Q),
            "tight: one more at 1 than at -1": sp.simplify(
                (mean - odd_sum(q, ones + minus_ones)).subs(FREE_LOW, FREE_HIGH + 1)
            ),
            "tight: as many at 1 as at -1": sp.simplify(
                (mean - (ones + minus_ones) / 2).subs(FREE_LOW, FREE_HIGH),
            ),
            "balanced: coordinates whose labels come in pairs": sp.expand(
                DIMENSION * (dimension - 1) - (balanced_dimension(dimension, DIMENSION) - face) - (face - 1)
            ),
            "tight: of one token": odd_sum(q, sp.Integer(1)) / q - forced_error(q),
            "tight, attained: the largest entries": sp.simplify(t + 1 - (q - t - 1) * tied(q, odd) - odd_sum(q, odd)),
            "tight, attained: the smallest entries": sp.simplify(t + (q - t) * tied(q, odd) - odd_sum(q, odd)),
            "sum: what is left out": (total - left_out) / q - total / q + left_out / q,
            "sum: at most one each": sp.simplify(error_of_sum(q + rest, q) - rest / q),
        },
        signed={
            "half: more than that, where both signs are not as many": (above, ">= 0"),
            "tight: an odd difference is one at least": (((1 + more) ** 2 - 1) / (2 * (FREE_HIGH + FREE_LOW)), ">= 0"),
            "balanced: a layer's kernel is as large": (
                sp.expand((dimension - 1) * DIMENSION + 1 + spare - balanced_dimension(dimension, DIMENSION)),
                ">= 0",
            ),
            "tight: no less than one dimension fewer": (
                sp.factor((odd_sum(q, dimension) - (dimension - 1) / 2).subs(room)),
                "> 0",
            ),
            "tight: no more than one dimension more": (
                sp.factor(((dimension + 1) / 2 - odd_sum(q, dimension)).subs(room)),
                ">= 0",
            ),
            "tight: tau is one at most": (sp.factor((1 - tied(q, dimension)).subs(room)), ">= 0"),
            "half: at least the share that is lost": (
                sp.factor(share.subs(WIDTH, tokens * DIMENSION - lacking)),
                ">= 0",
            ),
        },
        steps=STEPS,
        scope="every first layer of width k, on vectors in $[-1, 1]$ by coordinate, sets given; $\\min(1, (N -"
        " k/d')/(2q))$ for $q \\le N/2$, $1/(2q - 1)$ for $k < Nd'$ and $q < N$; the least error for every"
        " $q < N$ and $d' \\le k < Nd'$. Nothing on the size of what is behind the first layer",
        sizes={},
        prose=(VERTICES, SMALLEST, BALANCED, MIDDLE),
        proves=("Fully connected",),
    )


STEPS = (
    r"A first layer of width $k < Nd'$ has $Wz = 0$ for some $z \ne 0$; scaled, $\max|z_{jc}| = 1$. The"
    r" inputs $z$ and $-z$, with the same sets, give the same output, and their averages over $y$ are"
    r" opposite: one of the two errors is at least $|\frac1q\sum_{j\in y} z_{jc}|$, for every $y$ and"
    r" coordinate $c$.",
    r"A vertex of $\{z: Wz = 0\} \cap [-1,1]^{Nd'}$ has $Nd'$ independent constraints that are tight, at"
    r" most $k$ of them in $Wz = 0$: $Nd' - k$ entries are $\pm1$, so that some coordinate $c$ has $s \ge N"
    r" - k/d'$ tokens at $\pm1$.",
    r"For $q \le N/2$ the q tokens with the largest entries there and the q with the smallest ones can be"
    r" chosen apart, with a value $c$ between them. If q entries are 1, or q are -1, the error is 1. Else"
    r" let $q - a$ be 1 and $q - b$ be -1, $s = 2q - a - b$: the sums over both sets are at least $q - a +"
    r" ac$ and at most $-(q - b) + bc$. The first times $b/(a+b)$ less the second times $a/(a+b)$ does not"
    r" depend on $c$: it is $\frac s2 + \frac{(a-b)^2}{2(a+b)}$. So one of both sums is $s/2$ at least, and"
    r" the error $\min(1, s/(2q))$.",
    r"With $\alpha = 1 - k/(Nd')$, the share of the values that the layer lacks, $s \ge \alpha N$ and the"
    r" error is at least $\alpha$ for every $q \le N/2$: one half at $k = Nd'/2$. Errors below $\epsilon <"
    r" 1$ take $k > (1 - \epsilon)Nd'$, as the slides have it.",
    r"For every $k < Nd'$: let $z_{jc} = 1$, S the sum of the $q - 1$ largest other entries, B that of the"
    r" q smallest. As $N - 1 \ge q$, $B/q \le S/(q-1)$. The averages $(1 + S)/q$ and $B/q$ are those of two"
    r" sets, and $\frac{q}{2q-1}\cdot\frac{1+S}{q} + \frac{q-1}{2q-1}\cdot\frac{-S}{q-1} = \frac{1}{2q-1}$:"
    r" one of them is off zero by that much.",
    r"It is attained: if $z = (1, -\frac{1}{2q-1}, \ldots)$ spans the kernel ($d' = 1$, $k = N - 1$), no"
    r" average over q tokens is further off zero than $1/(2q-1)$, and the middle of all inputs with one"
    r" first layer is within that of each.",
    r"Balanced coordinates. For $n = \dim\{Wz = 0\} \ge (s-1)d' + 1$ some z with $\max|z| = 1$ in it has a"
    r" coordinate with $\lceil s/2\rceil$ tokens at one of $\pm1$ and $\lfloor s/2\rfloor$ at the other. At"
    r" $s = 1$ any z has. For $s \ge 2$ suppose that none does, and let $t = \lfloor s/2\rfloor$. Vertices"
    r" of $P = \{Wz = 0\} \cap [-1,1]^{Nd'}$ get a label $+c$ for each coordinate c with more than t tokens"
    r" at 1, and $-c$ for more than t at -1. They have one at least, since $n > (s-1)d'$ entries at $\pm1$"
    r" are s or more in some coordinate, and not $t$ and $t$ of an even s.",
    r"A face of dimension j has $n - j$ entries at $\pm1$ throughout. If more than t tokens of c are at 1"
    r" on it, all its vertices have $+c$ and none has $-c$. If no coordinate has more than t at one sign on"
    r" it, each has $s - 1$ there at most. With $s - 1$, which are $t + t$ for odd s and $t + (t-1)$ for"
    r" even s, at most one of $\pm c$ is found at its vertices; and with fewer are at most $d'(s-1) - (n-j)"
    r" \le j - 1$ coordinates. So on each face there is a label without its opposite, or all labels are"
    r" pairs $\pm c$ of at most $j-1$ coordinates.",
    r"Sets of labels without opposite ones are the simplices of a sphere of dimension $d'-1$. On those of"
    r" a face every cycle mod 2 of dimension $j-1$ bounds: a label without its opposite makes them a cone,"
    r" and pairs of $j-1$ coordinates have no simplex of that dimension. So vertices go to one of their"
    r" labels, and faces, dimension by dimension and opposite ones alike, to chains mod 2 whose boundary is"
    r" the image of theirs.",
    r"There is no such map. The boundary of P is a sphere of dimension $n - 1 \ge d'$: it has chains $h_0,"
    r" \ldots, h_{d'}$, $h_0$ a vertex, with $\partial h_i = h_{i-1} + \bar h_{i-1}$, where a bar is the"
    r" opposite chain. Let $f_i$ be the images; $f_{d'} = 0$, for want of such simplices. A chain that is"
    r" its own opposite is $g + \bar g$, for no simplex is. So $f_{d'-1} = g_{d'-1} + \bar g_{d'-1}$, and"
    r" downwards $f_{i-1} = \partial g_i + g_{i-1} + \bar g_{i-1}$; but the vertices of $f_0$ would then be"
    r" even in number, and $f_0$ is one.",
    r"The least error, $r = \lceil N - k/d'\rceil$, $m = \min(q, N - q)$: as $Nd' - k \ge (r-1)d' + 1$,"
    r" some coordinate has $s = \min(r, 2m)$ tokens at $\pm1$, $s/2$ at each, or one more at one of both."
    r" With c the mean of its other tokens, the sums over the q largest and the q smallest are at least $q"
    r" - a + ac$ and at most $-(q - b) + bc$, as above and for $q > N/2$, too: the better is $\frac s2$ for"
    r" even s, and $\frac s2 + \frac1{2(2q-s)}$ for odd s, between $\frac{s-1}2$ and $\frac{s+1}2$.",
    r"Even $r$ is attained by the values of sum zero on $r + 1$ tokens, zero elsewhere: the positive or"
    r" the negative ones are $r/2$ tokens at most, so that both add up to $r/2$ at most. So do all sets.",
    r"Odd $r = 2t + 1 < 2\min(q, N - q)$ is attained by r values x and a value w with $\sum x = -\tau w$,"
    r" and $-\tau w$ on all other tokens, $\tau = \frac1{2q-r}$: a vertex has $w = \pm1$, since r entries"
    r" at $\pm1$ have an odd sum, and so t + 1 entries at one sign, t at the other, and $\mp\tau$"
    r" elsewhere.",
    r"Coordinates by themselves, the numbers that are lacking shared out evenly, attain it for every $d'$."
    r" The middle of all inputs with one first layer is a continuous function, piecewise linear, that a"
    r" network computes.",
    r"At $r = 2m$ and above the kernel of the sum of all values attains m for $q > N/2$: sums over q and"
    r" over the $N - q$ others are opposite. For $q \le N/2$ no error is above one, and it is one just"
    r" where $r \ge 2q - 1$: for $k < d'(N - 2q + 2)$.",
    r"For $q > N/2$ constant errors do not take a width of order $Nd'$: the sum of all values over q, $d'$"
    r" numbers, is off an average by the $N - q$ values that are left out, at most $(N-q)/q < 1$.",
)


VERTICES = "vertices of a polytope have as many tight constraints as dimensions"
SMALLEST = "the mean of the q smallest of some numbers is at most that of the q - 1 largest"
BALANCED = (
    "labels of vertices, for the coordinates with too many tokens at one sign, would map a sphere to one of smaller"
    " dimension by chains mod 2, opposite points to opposite ones: Borsuk and Ulam, with its proof in the steps"
)
MIDDLE = "of all inputs with one first layer, those of 0 have averages over a set that are as far apart as any"
