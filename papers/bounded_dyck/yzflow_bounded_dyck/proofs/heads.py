r"""Appendix B.2 of Wen et al. 2023 (arXiv 2312.01429): what its theory says of several heads, left open there.

Heads add up, each with a softmax of its own: ``f = LN(x_q + sum_h sum_s c_hs V_hs)``, without x_q in the layer (6). At
a query a kind of pair has the value ``delta_h = V_o e^x + V_c e^y`` and the mass ``zeta_h = e^x + e^y`` in head h.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import positive
from yzflow_bounded_dyck.proofs import theorem1

MIXED = "pairs of all kinds fit into one prefix, in any numbers, with levels between opened a bounded number of times"
POLES = "a polynomial with infinitely many zeros vanishes; any number of heads: in Coq"
NORM = "LN divides by one number, and a head's largest logit may be taken as 0"


def left(value: sp.Expr, mass: sp.Expr) -> sp.Expr:
    """The limit of a head as pairs are inserted, from their value and their mass."""
    return value / mass


def rest(summed: sp.Expr, normaliser: sp.Expr, value: sp.Expr, mass: sp.Expr) -> sp.Expr:
    """lim n (head's output - `left`), from its sum u and its normaliser z without the n pairs."""
    return (summed * mass - normaliser * value) / mass**2


def recentred(value: sp.Expr, constant: sp.Expr) -> sp.Expr:
    """A value of a head in which (14) holds, from its value and what the head tends to."""
    return value - constant


def opposite(value: sp.Expr) -> sp.Expr:
    """Values of a second head of equal logits with which two heads say nothing."""
    return -value


def partner(value: sp.Expr, difference: sp.Expr) -> sp.Expr:
    """V_close of a balanced head, from V_open and its own difference of (11)."""
    return theorem1.partner_value(value, difference)


def least_share(ratio: sp.Expr, others: sp.Expr) -> sp.Expr:
    """Squared least coordinate of an unmatched bracket behind LN, from the ratio of a head's least and largest e^Z."""
    return ratio**2 / (1 + others)


def derive(
    *,
    left: Claim = left,
    rest: Claim = rest,
    recentred: Claim = recentred,
    opposite: Claim = opposite,
    partner: Claim = partner,
    least_share: Claim = least_share,
    sizes: Sequence[int] = (2, 3),
) -> Derivation:
    """The limit of all heads, when it is none, two heads that hide from it, and heads that are exact together."""
    u, z, delta = sp.symbols("u z delta", real=True)
    n, zeta, one, two = positive("n zeta zeta_1 zeta_2")
    output, step = (u + n * delta) / (z + n * zeta), sp.Symbol("epsilon", positive=True)
    opened, closed = sp.symbols("V_o V_c", real=True)
    x, y, v = sp.symbols("x y v", real=True)
    mass = sp.exp(x) + sp.exp(y)
    added = theorem1.insertion(opened, closed, x, y)
    shifted = theorem1.insertion(recentred(opened, v), recentred(closed, v), x, y)
    loud = positive("p_o p_c")
    alike = theorem1.insertion(loud[0], loud[1], x, y)
    s = index("s", size("S"))
    counts, values, logits = entries("N"), entries("V"), entries("Z")
    weight = counts[s] * sp.exp(logits[s])
    # Pairs of two kinds, one and t of them, in one head: a constant and a pole at -rho.
    t = positive("t")
    first, second = sp.symbols("delta_1 delta_2", real=True)
    mixed = (first + t * second) / (one + t * two)
    residue = (first - second * one / two) / two
    vanishing = {
        "limit: of a head": output - left(delta, zeta) - (u * zeta - z * delta) / (zeta * (z + n * zeta)),
        "limit: its rate": ((u + delta / step) / (z + zeta / step) - left(delta, zeta))
        .together()
        .diff(step)
        .subs(step, 0)
        - rest(u, z, delta, zeta),
        "poles: a head and two kinds of pairs": mixed - left(second, two) - residue / (one / two + t),
        "poles: none, if both kinds leave the same": residue.subs(first, one * second / two),
        "shift: a constant in the values": total(weight * recentred(values[s], v), s)
        - total(weight * values[s], s)
        + v * total(weight, s),
        "shift: (14) of the recentred values": shifted - (added - mass * v),
        "shift: where a head tends to it": shifted.subs(v, left(added, mass)),
        "opposite: no part in any sum": total(weight * values[s], s) + total(weight * opposite(values[s]), s),
    }
    vanishing |= _no_poles(sizes)
    # Balanced heads with weights w = 1 / normaliser on shared coordinates; m pairs, and an unmatched bracket or none.
    h, pairs = index("h", size("H")), sp.Symbol("m", nonnegative=True)
    w, R, a, b = entries("w"), entries("R"), entries("a"), entries("b")
    for unmatched in (0, 1):
        opens = (pairs + unmatched) * sp.exp(-a[h]) * sp.exp(R[h] + a[h])
        closes = pairs * partner(sp.exp(-a[h]), a[h] - b[h]) * sp.exp(R[h] + b[h])
        sums = total(w[h] * (opens + closes), h) - unmatched * total(w[h] * sp.exp(R[h]), h)
        vanishing[f"enough: coordinate, {unmatched} unmatched"] = sums
    # Coordinates lie between r W and W, the least has the least share where all others are W.
    ratio, others, above = positive("r M g")
    least = ratio**2 / (ratio**2 + others)
    return Derivation(
        statement="Appendix B.2 (bounded Dyck)",
        vanishing=vanishing,
        signed={
            "opposite: a pair adds something in each": (alike, "> 0"),
            "enough: the least coordinate": (
                sp.simplify((least - least_share(ratio, others)).subs(ratio, 1 / (1 + above))),
                "> 0",
            ),
        },
        steps=(
            r"Head h gathers $(u_h + n\delta_h)/(z_h + n\zeta_h) = \delta_h/\zeta_h + O(1/n)$ behind n pairs. What all"
            r" heads leave, $P(x_q + \sum_h \delta_h/\zeta_h)$, hides the stack if it is not zero: with $k \ge 2$ a"
            r" layer that is right at every length has $P(x_q + \sum_h \delta_h/\zeta_h) = 0$ at each closing query of"
            r" depth 1 to $D - 1$. With one head and no link this is (14).",
            r"It holds for every mixture of kinds p of pairs, too: $P(x_q + \sum_h \frac{\sum_p n_p\delta_{hp}}{\sum_p"
            r" n_p\zeta_{hp}}) = 0$. For one pair of a kind and t of another a head is $\delta_{h2}/\zeta_{h2} +"
            r" r_h/(\rho_h + t)$ with $\rho_h = \zeta_{h1}/\zeta_{h2}$. If the $\rho_h$ are distinct, all $r_h$ vanish:"
            r" at the pole of one head the others are finite.",
            r"So heads whose ratios of masses differ have $\delta_{hp} = \zeta_{hp}v_h$ for every kind of pair, with"
            r" $P(x_q + \sum_h v_h) = 0$. Attention sums to one, so that a constant in a head's values is a constant in"
            r" what it gathers: with the values $V_s - v_h$ every such head has (14) by itself.",
            r"Heads of equal ratios are one group, of which this holds together. Two heads of equal logits and opposite"
            r" values gather nothing, whatever pairs add in each, and whether or not (11) holds in them: beside a"
            r" balanced head they leave a layer exact. (11) and (14) are not needed head by head.",
            r"Enough: heads that are balanced on shared coordinates, each with its own logits and its own (11), gather"
            r" $\sum_h w_h e^{R_h}$ at an unmatched bracket and 0 at all others, $w_h > 0$ one over the normaliser. It"
            r" is between $rW$ and $W$, so that LN leaves at least $r/\sqrt{1 + M}$ of M other coordinates, whatever"
            r" the length, and the network of one head reads the stack.",
        ),
        scope="any number of heads, pairs, states, logits and counts, one coordinate of the values; that poles force"
        " $r_h = 0$ for two and three heads here, for any number in Coq",
        sizes={"heads": tuple(sizes)},
        prose=(theorem1.FORGETS, MIXED, POLES, NORM),
    )


def _no_poles(sizes: Sequence[int]) -> dict[str, sp.Expr]:
    """The numerator of ``sum_h r_h / (rho_h + t) - c`` at the pole of each head has that head's term alone."""
    found, t, c = {}, sp.Symbol("t"), sp.Symbol("c")
    for heads in sizes:
        residues, poles = sp.symbols(f"r_1:{heads + 1}"), sp.symbols(f"rho_1:{heads + 1}")
        numerator = sp.cancel(sp.together(sum(r / (p + t) for r, p in zip(residues, poles, strict=True)) - c))
        top = sp.numer(numerator) / sp.denom(numerator) * sp.prod(p + t for p in poles)
        for own, pole in zip(residues, poles, strict=True):
            others = sp.prod(p - pole for p in poles if p != pole)
            found[f"poles: {heads} heads, at {pole}"] = sp.expand(sp.cancel(top)).subs(t, -pole) - own * others
    return found
