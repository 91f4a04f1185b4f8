"""Theorem 1 of Wen et al. 2023 (arXiv 2312.01429): the contribution of inserted pairs, and when it vanishes.

From the definition of the layer: at a query q, the sum before LN is ``u = sum_s N_s V_s exp(Z[q, s])`` (12). The open
bracket of a pair has the logit x and its partner the logit y, at each of two closing queries.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import matrix, named, norm, positive

FORGETS = "k >= 2: a layer that forgets the stack has nearly one output for several last types, and is wrong for one"
X, Y = sp.symbols("x_1 x_2", real=True), sp.symbols("y_1 y_2", real=True)


def insertion(open_value: sp.Matrix, close_value: sp.Matrix, x: sp.Expr, y: sp.Expr) -> sp.Matrix:
    """delta of (14): the contribution of one matched pair to u."""
    return open_value * sp.exp(x) + close_value * sp.exp(y)


def partner_value(open_value: sp.Matrix, difference: sp.Expr) -> sp.Matrix:
    """V_close of a balanced pair, from V_open and the difference x - y of (11)."""
    return -sp.exp(difference) * open_value


def silent_partner(factor: sp.Expr) -> sp.Expr:
    """V_close of a pair with (14) whose V_open is zero; ``factor`` is the coefficient of V_close in (14)."""
    return sp.Integer(0) / factor


def one_type_logit(depth: sp.Expr) -> sp.Expr:
    """Logit of closed brackets at a query of this depth; all others have 0. With it one type needs no balance."""
    return -sp.log(1 + depth)


def derive(
    *,
    insertion: Claim = insertion,
    partner_value: Claim = partner_value,
    silent_partner: Claim = silent_partner,
    one_type_logit: Claim = one_type_logit,
    width: int = 2,
) -> Derivation:
    """(14) for all queries holds exactly when (11) and V_close = -exp(x - y) V_open do."""
    opened, closed, rest = (matrix(name, width, 1, positive=True) for name in ("V_o", "V_c", "u_r"))
    n, opens, closes, gap = positive("n N_o N_c g")

    def attended(extra, query, close_value=closed):
        return rest + (opens + extra) * opened * sp.exp(X[query]) + (closes + extra) * close_value * sp.exp(Y[query])

    vanishing = named(
        "u_n = u_0 + n delta", attended(n, 0) - attended(0, 0) - n * insertion(opened, closed, X[0], Y[0])
    )
    # Sufficiency: under (11) one value of V_close serves both queries.
    difference = sp.Symbol("c", real=True)
    for query in (0, 1):
        added = insertion(opened, partner_value(opened, difference), Y[query] + difference, Y[query])
        vanishing.update(named(f"(11) gives (14) at query {query}", added))
    # Necessity: (14) at one query determines V_close; at another it leaves (e^{x_2 - y_2} - e^{x_1 - y_1}) V_o.
    forced = partner_value(opened, X[0] - Y[0])
    vanishing.update(named("(14) forces V_close", attended(n, 0, forced) - attended(0, 0, forced)))
    left = attended(1, 1, forced) - attended(0, 1, forced)
    between = sp.exp(Y[1]) * (sp.exp(X[1] - Y[1]) - sp.exp(X[0] - Y[0])) * opened
    vanishing.update(named("what is left at another query", left - between))
    # Without the hypothesis that no value vanishes: a pair with V_open = 0 has V_close = 0, and then any logits.
    silent = sp.ones(width, 1) * silent_partner(sp.exp(Y[0]))
    vanishing.update(named("(14) where V_open = 0", insertion(sp.zeros(width, 1), silent, X[0], Y[0])))
    # Differences x - y that differ: x_2 - y_2 = x_1 - y_1 + ln(1 + g), for either order of the queries.
    apart = between[0].subs(X[1], Y[1] + X[0] - Y[0] + sp.log(1 + gap))
    # LN is scale-free: LN(u_0 + n delta) = LN(u_0 / n + delta), continuous where delta is not 0.
    step, delta = sp.Symbol("epsilon", nonnegative=True), matrix("delta", width, 1, positive=True)
    scaled = (rest + n * delta) / norm(rest + n * delta)
    vanishing.update(named("LN is scale-free", scaled - (rest / n + delta) / norm(rest / n + delta)))
    near = rest * step + delta
    vanishing.update(named("limit of LN", (near / norm(near)).subs(step, 0) - delta / norm(delta)))
    rate = (rest - delta * (delta.T * rest)[0] / norm(delta) ** 2) / norm(delta)
    vanishing.update(named("rate of the limit", (near / norm(near)).diff(step).subs(step, 0) - rate))
    # One type: START is (1, 1), open brackets (1, 0), closed ones (0, 1), and the depth is opens less closes.
    depth = sp.Symbol("d", nonnegative=True)
    sums = (1 + closes + depth, 1 + closes * sp.exp(one_type_logit(depth)))
    vanishing["one type: the features say the depth"] = sums[1] * (1 + depth) - sums[0]
    differences = one_type_logit(depth) - one_type_logit(depth + gap)  # of (11), at two depths
    return Derivation(
        statement="Theorem 1 (bounded Dyck)",
        vanishing=vanishing,
        signed={
            "unequal differences leave something": (sp.simplify(sp.expand(apart)), "> 0"),
            "one type: (11) fails": (sp.simplify(sp.exp(differences)) - 1, "> 0"),
        },
        steps=(
            r"The output depends on $LN(u)$ only, $u = \sum_s N_s V_s e^{Z_{qs}}$: the normaliser of softmax drops out."
            r" n more pairs give $u_n = u_0 + n\delta$, $\delta = V_o e^{x} + V_c e^{y}$.",
            r"If $\delta \ne 0$, $LN(u_n) = LN(u_0/n + \delta) \to \delta/\|\delta\|$, with an error of"
            r" $P^\perp u_0/(n\|\delta\|)$: the stack is forgotten, and two prefixes with other last unmatched types"
            r" have nearly the same output. For $k \ge 2$ there are two such prefixes for each closing query of depth 1"
            r" to $D - 1$, and a layer that is right at every length has $\delta = 0$ (14).",
            r"For $k = 1$ there are none: the query's depth says what comes next. With $V_{START} = (1, 1)$, $V_o ="
            r" (1, 0)$, $V_c = (0, 1)$ and the logit $-\ln(1 + d)$ of closed brackets at queries of depth d the sum is"
            r" $(1 + d + C)\,(1, \frac{1}{1+d})$ after C closed brackets. Its direction says the depth at every length,"
            r" while $\delta = (1, \frac{1}{1+d}) \ne 0$ and the difference of (11) is $\ln(1 + d)$.",
            r"$\delta = 0$ at one query gives $V_c = -e^{x - y} V_o$, so at another query"
            r" $e^{y'}(e^{x' - y'} - e^{x - y}) V_o = 0$: for $V_o \ne 0$ the difference $x - y$ is the same (11).",
            r"If $V_o = 0$, then $V_c = 0$, and (14) holds with any logits: (11) is needed for the pairs whose values"
            r" do not vanish, and for no other. The paper assumes that none vanishes.",
            r"Conversely (11) and that $V_c$ give $\delta = 0$. With $x - y = -a$ it is $V_c = -e^{-a} V_o$; with"
            r" $x - y = a$ it is $-e^{a} V_o$: one statement, two names of the constant.",
        ),
        scope="any width of V by linearity (2 written out), any logits and counts; LN with or without mean subtraction,"
        " which is linear, and no floor",
        sizes={"width of V": (width,)},
        prose=(FORGETS,),
        proves=("Balance of values", "Equation 13", "Silent pairs"),
    )
