r"""Theorem 2(a) for the true decoder gradient and frozen features: early, late, and for equal overlaps at all times.

Not in the paper, whose theorem is for the modified gradient. Y = F V with V' = R/K, rows r_n = e_n - alpha_n. The
logits of class n are L_n = V_n + H_n; H_n = sum_{n' != n} G_nn' V_n' is the contribution of its overlaps. A distinct
token of class n moves at f_nl^2 xi_n with

    xi_n = -sum_{n' != n} G_nn' V_n'.r_n = -H_n.r_n = sum_j alpha_n(j) (H_n(j) - H_n(n)).
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.model import Even

M, K, ETA, T = sp.symbols("M K eta_Y t", positive=True)
LAG = "V_n(i) - V_n(j) is the integral of alpha_n(j) - alpha_n(i), and at least zero"


def early_beta(m: sp.Expr) -> sp.Expr:
    """beta_nn' as t -> 0, for every pair and any overlaps, in units of eta_Y t/K."""
    return 1 / m


def early_xi(m: sp.Expr, k: sp.Expr, overlaps: sp.Expr) -> sp.Expr:
    """xi_n as t -> 0, with the sum of the overlaps of class n."""
    return ETA * T / (k * m) * overlaps


def early_common(m: sp.Expr, k: sp.Expr, f: sp.Expr, others: sp.Expr) -> sp.Expr:
    """A class's part of a single common token's velocity as t -> 0, over eta_Z; ``others``: the other f_n'l, summed."""
    return -ETA * T / (k**2 * m) * f * (1 - f**2) * others


def most_short(m: sp.Expr, own: sp.Expr) -> sp.Expr:
    """delta = 1 - v_n(n) is at most this, with ``own`` = H_n(n) <= 0 of the max-margin solution."""
    return 1 / m + own


def least_late(m: sp.Expr, short: sp.Expr) -> sp.Expr:
    """A lower bound of the limit of eta_Y t xi_n/(K ln t), with delta = 1 - v_n(n)."""
    return (1 - short) * (1 - m * short) / (m - 1)


def even_xi(m: sp.Expr, k: sp.Expr, q: sp.Expr, more: sp.Expr, h: sp.Expr, a: sp.Expr) -> sp.Expr:
    """xi_n for equal overlaps: q, q + more the probabilities; -h = H_n(n), a = H_n(n') - H_n(j)."""
    return q * m * h + (k - 1) * more * (m * h + (m - k) * a) / (m - 1)


def three_sum(g: sp.Expr, h: sp.Expr, x: sp.Expr, z: sp.Expr) -> sp.Expr:
    """H_n(i) + H_n(j) - 2 H_n(n) for K = M = 3, with n's overlaps g, h with i, j, and their contributions x, z to n."""
    return 3 * (g * x + h * z)


def three_xi(less: sp.Expr, more: sp.Expr, total: sp.Expr, lead: sp.Expr) -> sp.Expr:
    """xi_n for K = M = 3: alpha_n(i) = less, alpha_n(j) = less + more, lead = H_n(j) - H_n(i), total as `three_sum`."""
    return less * total + more * (total + lead) / 2


def derive(
    *,
    early_beta: Claim = early_beta,
    early_xi: Claim = early_xi,
    early_common: Claim = early_common,
    most_short: Claim = most_short,
    least_late: Claim = least_late,
    even_xi: Claim = even_xi,
    three_sum: Claim = three_sum,
    three_xi: Claim = three_xi,
) -> Derivation:
    """Early for any Gram matrix; late too, from the optimality conditions; equal overlaps at all times."""
    vanishing, signed = joined(
        _early(early_beta, early_xi, early_common),
        _late(most_short, least_late),
        _even(even_xi),
        _three(three_sum, three_xi),
    )
    return Derivation(
        statement="Theorem 2(a) for the true gradient",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"*Early.* $r_n = e_n - 1/M$ at $Y = 0$, so that $V = \frac{\eta_Yt}{K}R_0$ and $V_{n'}\cdot r_n ="
            r" -\frac{\eta_Yt}{KM}$ for every $n' \ne n$: $\beta_{nn'} = 1/M$ for all pairs and any overlaps, $\xi_n ="
            r" \frac{\eta_Yt}{KM}\sum_{n'\ne n}G_{nn'} + O(t^2)$, positive unless n overlaps with no class."
            r" Assumption 2 is not used. A single common token has $G_{nn'} = f_{nl}f_{n'l}$, and falls.",
            r"*Late.* With frozen, linearly independent features the loss is convex and separable; $V/\ln t$ tends to"
            r" the max-margin solution v, and $\frac{\eta_Yt}{K}R$ to v, too. Optimality: $v_n(j) \le 0$ for $j"
            r" \ne n$, $v_n(n) = \sum_j|v_n(j)|$, and $v_n(n) - v_n(j) + H_n(n) - H_n(j) \ge 1$ with equality where"
            r" $v_n(j) < 0$. So $|v_n(j)| = (\delta + x_j)_+$ with $x_j = H_n(j) - H_n(n)$, $\delta = 1 - v_n(n)$.",
            r"Rows of H have zero sums: $\sum_{j\ne n}x_j = -MH_n(n)$, and $1 - \delta = \sum(\delta + x_j)_+ \ge"
            r" (M-1)\delta - MH_n(n)$: $\delta \le 1/M + H_n(n)$, where $H_n(n) = \sum G_{nn'}v_{n'}(n) \le 0$.",
            r"$\frac{\eta_Yt\,\xi_n}{K\ln t} \to \sum_j|v_n(j)|x_j = \sum_j v_n(j)^2 - \delta(1-\delta) \ge (1-\delta)"
            r"\frac{1-M\delta}{M-1} \ge 0$ by Cauchy's inequality over $M-1$ terms; $> 0$ if $H_n(n) < 0$.",
            r"*All times, equal overlaps.* By symmetry $\alpha_n$ is p on other classes and q on other tokens, $H_n$ is"
            r" h_s and h_o there. $(h_s - h_o)' = \frac{\eta_Y\rho}{K}(p + (M-1)q) > 0$, $p \ge q$ as in"
            r" `late_full_flow`, $H_n(n) < 0$, and xi_n is a sum of positive terms. K = 2 is a case of it.",
            r"*In between, any overlaps.* $\alpha_n(j) \propto \varphi_j$, $1/\varphi_j = e^{-H_n(j,t)} + \int_0^t"
            r" e^{-(H_n(j,t) - H_n(j,s))}d\mu(s)$ exactly, since $(e^{-V_n(j)})' = e^{H_n(j)}\mu'$. If for $H_n(j,t)"
            r" \ge H_n(k,t)$ the increments since every earlier s are in the same order, $\varphi$ is in the order of"
            r" $H_n$, and Chebyshev's inequality gives $\xi_n \ge (1-\alpha_n(n))\frac{M}{M-1}|H_n(n)| > 0$. Where the"
            r" orders cross, this does not decide, and with four classes $\xi_n < 0$ was found there.",
            r"*Three classes, $K = M = 3$*, n overlapping j at least as much as i. Let $\alpha_n(j) \ge \alpha_n(i)$"
            r" up to t. Then $V_n(i) - V_n(j) = \frac{\eta_Y}{K}\int(\alpha_n(j) - \alpha_n(i))\,dt \ge 0$, and"
            r" $\ln\frac{\alpha_n(j)}{\alpha_n(i)} = H_n(j) - H_n(i) - (V_n(i) - V_n(j))$, so that $H_n(j) \ge H_n(i)$."
            r" As $H_n(i) + H_n(j) > 2H_n(n)$, $\xi_n > 0$."
            r" The order of $\alpha_n$ lasts while $H_n(j) - H_n(i)$ grows.",
        ),
        scope="frozen features; early: all K, M and Gram matrices, leading order in t; late: all, from the optimality"
        " conditions of the max-margin solution; equal overlaps: all K, M, t > 0",
        sizes={},
        prose=(
            "that V/ln t tends to the max-margin solution and R to its direction is a quoted theorem (Soudry et al."
            " 2018, arXiv 1710.10345), for almost all Gram matrices",
            "Cauchy's inequality",
            "p >= q from the sign of the difference of the margins' rates in late_full_flow",
            LAG,
        ),
        proves=("Theorem 2(a), true gradient",),
    )


def _early(early_beta, early_xi, early_common):
    """Inner products of rows e_n - 1/M, and g_n to first order."""
    at, off = 1 - 1 / M, -1 / M
    own = at**2 + (M - 1) * off**2
    other = 2 * at * off + (M - 2) * off**2
    overlaps, f, others = sp.symbols("S f f_o", positive=True)
    scale = ETA * T / K
    # g_n = scale (own f_n + other sum f_n'); with one common token f_n.g_n has the overlaps f * others.
    along = scale * (own + other * f * others)
    token = scale * (own * f + other * others)
    return {
        "early: V_n.r_n": own - (1 - early_beta(M)),
        "early: beta": -other - early_beta(M),
        "early: xi_n": -scale * other * overlaps - early_xi(M, K, overlaps),
        "early: a single common token": sp.expand(f * (token - f * along) / K - early_common(M, K, f, others)),
    }, {
        "early: xi_n > 0": (early_xi(M, K, overlaps), "> 0"),
        "early: a common token falls": (early_common(M, K, 1 / sp.sqrt(1 + overlaps), others), "< 0"),
    }


def _late(most_short, least_late):
    """The two inequalities of the max-margin solution, at their edges."""
    short, own, size = sp.symbols("delta H J", real=True)
    slack, h, margin = sp.symbols("s h m", positive=True)
    # sum of (delta + x_j) over j != n is at most sum of its positive parts, 1 - delta.
    edge = sp.solve((M - 1) * short - M * own - (1 - short), short)[0]
    # Cauchy: sum v^2 >= (sum v)^2/J with sum v = 1 - delta.
    cauchy = (1 - short) ** 2 / size - short * (1 - short)
    big = 2 + margin  # M
    inside = (1 / big - h) * slack / (1 + slack)  # a positive delta below its bound, where that is positive
    return {
        "late: largest delta": edge - most_short(M, own),
        "late: Cauchy over M - 1 terms": sp.cancel(cauchy.subs(size, M - 1) - least_late(M, short)),
        "late: no overlap, no motion": least_late(M, most_short(M, 0)),
    }, {
        "late: fewer terms give more": (
            sp.factor((cauchy.subs(size, M) - cauchy.subs(size, M + slack)).subs(short, 1 / (1 + h))),
            "> 0",
        ),
        "late: xi_n > 0 at the largest delta": (
            sp.factor(least_late(big, most_short(big, -1 / (big * (1 + h))))),
            "> 0",
        ),
        "late: xi_n > 0 for negative delta": (least_late(big, -slack), "> 0"),
        "late: xi_n > 0 below the largest delta": (
            sp.factor(least_late(big, inside.subs(h, 1 / (big * (1 + h))))),
            "> 0",
        ),
    }


def _even(even_xi):
    """Equal overlaps: xi_n by h and a, and the rate of a."""
    q, more, h, a = sp.symbols("q b h a", positive=True)
    p = q + more
    low = (h - (K - 1) * a) / (M - 1)  # H_n(j) from the zero sum, H_n(n) = -h
    xi = (K - 1) * p * (low + a + h) + (M - K) * q * (low + h)
    # (H_n(n') - H_n(j))' over eta_Y rho/K: entries of the other classes' residuals, summed.
    at_class = ((K - 1) * p + (M - K) * q) - (K - 2) * p
    rate = at_class + (K - 1) * q
    gram = Even(1, -1 / M, K)  # R_0 R_0^T, K x K
    classes, tokens = 2 + sp.Symbol("i", nonnegative=True), sp.Symbol("j", nonnegative=True)
    signed = even_xi(classes + tokens, classes, q, more, h, a)
    return {
        "equal overlaps: xi_n": sp.cancel(xi - even_xi(M, K, q, more, h, a)),
        "equal overlaps: rate of a": sp.expand(rate - (p + (M - 1) * q)),
        "equal overlaps: early, R_0 R_0^T": (gram.diagonal + gram.ones) - (1 - 1 / M),
    }, {
        "equal overlaps: xi_n > 0": (sp.factor(signed), "> 0"),
        "equal overlaps: a grows": (p + (classes + tokens - 1) * q, "> 0"),
    }


def _three(three_sum, three_xi):
    """K = M = 3: H_n from what the classes i and j gave away: x, y to n and j, z, w to n and i."""
    g, h, x, y, z, w, less = sp.symbols("g h x y z w p", positive=True)
    more, lead, lag = sp.symbols("m e l", nonnegative=True)
    at_i, at_j = g * (x + y) - h * w, h * (z + w) - g * y
    own = -g * x - h * z
    first, second = at_i - own, at_j - own
    # ln(alpha_n(j)/alpha_n(i)) of logits V_n + H_n.
    log_ratio = (at_j - lag) - at_i
    return {
        "three classes: zero sum": sp.expand(at_i + at_j + own),
        "three classes: sum": sp.expand(first + second - three_sum(g, h, x, z)),
        "three classes: xi_n": sp.expand(
            less * first + (less + more) * second - three_xi(less, more, first + second, second - first)
        ),
        "three classes: order of H_n": sp.expand(second - first - (log_ratio + lag)),
    }, {
        "three classes: xi_n > 0": (sp.factor(three_xi(less, more, three_sum(g, h, x, z), lead)), "> 0"),
    }
