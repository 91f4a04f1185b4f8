"""LayerNorm that subtracts the mean (Section 3.1): Theorem 2 with centred features, for all K and M.

The feature of class n is f_n = (w_n - mean)/N_n with w_nl = P(l|n) exp(z_l) and N_n = ||w_n - mean||. LN ignores the
scale of w_n, so that shares c_n with sum one can replace it. Theorem 1 holds with the Gram matrix of these features,
and (9) enters as g_n.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.centred import border, distinct_push, least_overlap
from theory.scan_and_snap.proofs import theorem1
from theory.scan_and_snap.proofs.lemma4 import QUERY, K, M
from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.indexed import entries, index, total

LARGE = sp.Symbol("M", positive=True)


def rate(
    own: Claim, share: Claim, overlap: Claim, beta: Claim, gamma: sp.Expr, probability: Claim, member: Claim
) -> sp.Expr:
    """Entry l of zdot_m by eta_Z, a sum over classes n: ``own(n)`` is f_nl, and ``share(n)`` is c_nl/N_n.

    (10) with c_nl/N_n in the place of the first f_nl.
    """
    n, other = index("n'", K), index("o'", K)
    push = beta(n, other) * (own(n) * overlap(n, other) - own(other))
    others = total((1 - KroneckerDelta(n, other)) * push, other)
    return total(member(n) * probability(n) * gamma * share(n) * others, n)


def common_pull(m: sp.Expr, p: sp.Expr, other: sp.Expr, spread: sp.Expr) -> sp.Expr:
    """The pull of n' on the single common token in class n, times N_n^2 N_n'/beta_nn'; positive if the token loses.

    ``p`` and ``other`` are the token's shares in n and n'. ``spread`` is the sum of squared deviations of the other
    M - 1 shares of n from their mean.
    """
    return (p - 1 / m) * (1 - p) * (1 - other) / (m - 1) + spread * (other - 1 / m)


def derive(
    *,
    rate: Claim = rate,
    distinct_push: Claim = distinct_push,
    common_pull: Claim = common_pull,
    least_overlap: Claim = least_overlap,
    border: Claim = border,
) -> Derivation:
    """The velocity by differentiation, then the supports of distinct and of common tokens, then the sign of beta."""
    vanishing, signed = joined(
        _velocity(rate), _distinct(distinct_push), _common(common_pull), _signals(least_overlap, border)
    )
    return Derivation(
        statement="Section 3.1, LayerNorm",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"LN takes off the mean: $f_n = (w_n - \bar w_n 1)/N_n$ has the sum 0, and so has $g_n$ by (9). Then"
            r" $\partial_{z_l}$ gives $w_{nl}(g_{nl} - f_{nl}\,f_n\cdot g_n)/N_n$, and (9) what (10) has, with"
            r" $c_{nl}/N_n$ in the place of the first $f_{nl}$.",
            r"With shares: $N_nN_{n'}\,f_n\cdot f_{n'} = c_n\cdot c_{n'} - \frac1M$, $N_n^2 = \|c_n\|^2 - \frac1M$.",
            r"A token of n alone has $f_{n'l} = -1/(MN_{n'})$ elsewhere: n' adds $\beta_{nn'}\big(N_n^2 + (Mc_{nl}-1)"
            r"(c_n\cdot c_{n'}-\frac1M)\big)$, up to a positive factor.",
            r"A single common token has $c_n\cdot c_{n'} = pp'$. With $N_n^2 = \frac{(p-1/M)^2}{1-1/M} + e_n$, $e_n \ge"
            r" 0$ the spread of the other shares, n' takes $\beta_{nn'}\big(\frac{(p-1/M)(1-p)(1-p')}{M-1} +"
            r" e_n(p'-\frac1M)\big)$, up to a positive factor.",
            r"Equal overlaps $\rho$: $\beta$ is a positive multiple of $\rho + \frac1{M-1}$ for every K, and for two"
            r" classes always. With equal shares that is $(M-1)p^2 > 1 - \|c\|^2$, which asks for $p > \frac2{M+1}$.",
        ),
        scope=r"all $K$, $M$ and queries, any $P(\cdot|n)$, $z$ and class probabilities",
        sizes={},
        prose=(
            "the spread e_n is a sum of squares",
            "a sum of positive terms is positive",
            "squares of shares add up to their sum's at most",
        ),
    )


def _velocity(rate):
    """The derivative of the expected J along z_m, g_n held fixed, and then (9) in its place."""
    j, l, p = (index(name, M) for name in "jlp")
    n, other, m = index("n", K), index("o", K), index("m", M)
    P, z, g, b, chance, F, share = (entries(name) for name in ("P", "z", "g", "beta", "p", "f", "s"))
    gamma, iota = sp.Symbol("gamma", positive=True), entries("iota")

    def weight(token):
        return P[token, n] * sp.exp(z[QUERY(n), token])

    mean, squares = total(weight(l), l) / M, total(weight(l) ** 2, l)
    length = sp.sqrt(squares - mean**2 * M)

    def feature(token):
        return (weight(token) - mean) / length

    def member(a):
        return KroneckerDelta(QUERY(a), m)

    slope = total(chance[n] * g[p, n] * sp.diff(feature(p), z[m, j]), p, n)
    centred = g[j, n] - total(g[l, n], l) / M - feature(j) * total(feature(p) * g[p, n], p)

    def sent_back(token):
        others = total((1 - KroneckerDelta(n, other)) * b[n, other] * F[token, other], other)
        return gamma * (iota[n] * F[token, n] - others)

    sent = sent_back(j) - F[j, n] * total(F[p, n] * sent_back(p), p)
    claim = rate(
        lambda a: F[j, a],
        share.__getitem__,
        lambda a, c: total(F[p, a] * F[p, c], p),
        lambda a, c: b[a, c],
        gamma,
        chance.__getitem__,
        member,
    )
    along = gamma * iota[n] * F[j, n] * (1 - total(F[p, n] ** 2, p))
    return {
        "velocity: bag form": slope - total(chance[n] * member(n) * weight(j) / length * centred, n),
        "velocity: features have the sum zero": total(feature(p), p),
        "velocity: features have the norm one": 1 - total(feature(p) ** 2, p),
        "velocity: by (9)": total(chance[n] * member(n) * share[n] * (sent - along), n) - claim,
    }


def _shares():
    """M, the lengths N_n and N_n' from their squares, and the overlap of two classes from c_n . c_n' - 1/M."""
    squared, squared_other = sp.symbols("N_n^2 N_n'^2", positive=True)
    overlap = sp.Symbol("kappa", real=True)
    return squared, squared_other, overlap, overlap / sp.sqrt(squared * squared_other)


def _distinct(distinct_push):
    """A token of n alone: its share is c in n and 0 in n'."""
    squared, squared_other, overlap, cosine = _shares()
    c, above = sp.Symbol("c", positive=True), sp.Symbol("a", nonnegative=True)
    own, elsewhere = (c - 1 / LARGE) / sp.sqrt(squared), -1 / (LARGE * sp.sqrt(squared_other))
    push = (own * cosine - elsewhere) * LARGE * squared * sp.sqrt(squared_other)
    weak = sp.Symbol("k", nonnegative=True)
    return {
        "distinct: what n' adds": push - distinct_push(LARGE, c, overlap, squared),
    }, {
        "distinct: gains from a share of 1/M on": (distinct_push(LARGE, (1 + above) / LARGE, weak, squared), "> 0"),
    }


def _common(common_pull):
    """The common token, with shares p in n and p' in n'; every other token belongs to one class."""
    j, l = index("j", M), index("l", M)
    first, second = entries("c"), entries("d")
    sums = total(first[j], j), total(second[j], j)
    centred = total((first[j] - sums[0] / M) * (second[j] - sums[1] / M), j)
    squared, squared_other, overlap, cosine = _shares()
    p, other = sp.symbols("p p'", positive=True)
    squares, spread = sp.symbols("S e", nonnegative=True)
    # The other M - 1 shares of n: their squares add up to S, and their sum is 1 - p.
    norm, rest = squares + p**2 - 1 / LARGE, squares - (1 - p) ** 2 / (LARGE - 1)
    of_n = (p - 1 / LARGE) ** 2 * LARGE / (LARGE - 1) + spread
    own, elsewhere = (p - 1 / LARGE) / sp.sqrt(squared), (other - 1 / LARGE) / sp.sqrt(squared_other)
    pull = (elsewhere - own * cosine) * squared * sp.sqrt(squared_other)
    by_shares = pull.subs(overlap, p * other - 1 / LARGE).subs(squared, of_n)
    o, v, w = sp.symbols("o v w", positive=True)

    def frequent(odds):
        """A share above 1/M and below one, M = 1 + o."""
        return (1 + o / (1 + odds)) / (1 + o)

    positive = common_pull(1 + o, frequent(v), frequent(w), spread)
    return {
        "common: overlaps of centred shares": centred
        - (total(first[l] * second[l], l) - total(first[j], j) * total(second[l], l) / M),
        "common: N_n^2 by the spread": norm - of_n.subs(spread, rest),
        "common: what n' takes": by_shares - common_pull(LARGE, p, other, spread),
    }, {
        "common: loses above 1/M": (positive, "> 0"),
    }


def _signals(least_overlap, border):
    """The sign of beta, by overlaps and by shares: for equal overlaps, and for two classes with their one overlap."""
    k = sp.Symbol("K", positive=True)
    rho = sp.Symbol("rho", real=True)
    # 1 - rho and 1 + (K - 1) rho are positive where the features are independent.
    above, apart, definite, others = sp.symbols("x u v o", positive=True)
    found = theorem1.beta(LARGE, k, rho) * (1 - rho) * (1 + (k - 1) * rho)
    p, d, squared = sp.symbols("p d N^2", positive=True)
    length = d + p**2 - 1 / LARGE  # N^2, where the squares of the other shares add up to d
    cosine = (p**2 - 1 / LARGE) / squared
    margin = (cosine - least_overlap(LARGE)) * squared * (LARGE - 1)
    # (1 - p)^2 >= d, as shares are not negative and add up to 1 - p.
    rest = sp.Symbol("r", nonnegative=True)
    of_border = border(LARGE, p, p**2 + d).subs(d, (1 - p) ** 2 - rest)
    value = sp.factor(found.subs(rho, least_overlap(LARGE) + above).subs(LARGE, 1 + others))
    return {
        "beta: its factor": found - LARGE / (LARGE - 1) * (rho - least_overlap(LARGE)),
        "beta: by shares": margin.subs(squared, length) - border(LARGE, p, p**2 + d),
        "beta: positive only above 2/(M + 1)": of_border - (p * (p * (LARGE + 1) - 2) - rest),
    }, {
        "beta: positive above the border": (value / (apart * definite), "> 0"),
    }
