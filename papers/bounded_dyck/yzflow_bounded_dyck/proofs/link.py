r"""Appendix C.7 of Wen et al. 2023 (arXiv 2312.01429): a residual link that joins attention before LN.

Our text of the paper lacks the formula (49), which is read as ``f = LN(x_q + sum_s c_s V_s)`` with attention c and the
query's own vector x_q. Attention sums to one, so that this is the layer (6) with the values V_s + x_q: what Theorem 1
needs of V, it needs of them.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import matrix, named, norm, positive
from yzflow_bounded_dyck.proofs import theorem1

WRONG = "two prefixes whose features meet have outputs that meet, and one of their last types is named wrong"
SEVERAL = "further brackets to choose from only add to the loss"
CONVEX = "ln is monotone"


def joined(value: sp.Expr, own: sp.Expr) -> sp.Expr:
    """Value of a state to a layer without a link, from its value and the query's vector."""
    return value + own


def left(added: sp.Expr, mass: sp.Expr, own: sp.Expr) -> sp.Expr:
    """The rest of a wrong layer, from what a pair adds, its mass and the query's vector; both behind P."""
    return added + mass * own


def share(opened: sp.Expr, closed: sp.Expr) -> sp.Expr:
    """Share of the open bracket's value in -P x_q, from e^x and e^y; the closed bracket has the rest."""
    return opened / (opened + closed)


def slope(own: sp.Matrix, apart: sp.Matrix, mass: sp.Expr) -> sp.Matrix:
    """lim n (f_n - f_n'), from the query's vector, the distance u_0 - u_0' of two stacks and zeta, behind P."""
    size = norm(own)
    return (apart - own * (own.T * apart)[0] / size**2) / (size * mass)


def most_margin(lipschitz: sp.Expr, distance: sp.Expr) -> sp.Expr:
    """Largest mean margin of the right type over the other, for two features of this distance."""
    return lipschitz * distance / sp.sqrt(2)


def least_loss(margin: sp.Expr) -> sp.Expr:
    """Least mean cross-entropy of two prefixes with this mean margin."""
    return sp.log(1 + sp.exp(-margin))


def derive(
    *,
    joined: Claim = joined,
    left: Claim = left,
    share: Claim = share,
    slope: Claim = slope,
    most_margin: Claim = most_margin,
    least_loss: Claim = least_loss,
    width: int = 2,
) -> Derivation:
    """The link as a shift of the values, what is necessary, and how fast a balanced layer forgets."""
    # Attention c_s = N_s exp(Z_s) / T over any states, any coordinate of the values.
    s = index("s", size("S"))
    counts, values, logits = entries("N"), entries("V"), entries("Z")
    own = sp.Symbol("x_q", real=True)
    weight = counts[s] * sp.exp(logits[s])
    shifted = total(weight * joined(values[s], own), s) - total(weight * values[s], s) - own * total(weight, s)
    vanishing = {"link: attention sums to one": shifted}
    # One pair, at one query: the sum before LN after n pairs, over its normaliser.
    opened, closed, query, rest, other = (matrix(name, width, 1) for name in ("V_o", "V_c", "x", "u_0", "u_0'"))
    x, y = sp.symbols("x_1 y_1", real=True)
    mass = sp.exp(x) + sp.exp(y)
    both = theorem1.insertion(
        sp.Matrix([joined(a, b) for a, b in zip(opened, query, strict=True)]),
        sp.Matrix([joined(a, b) for a, b in zip(closed, query, strict=True)]),
        x,
        y,
    )
    needed = theorem1.insertion(opened, closed, x, y)
    vanishing.update(named("necessity: (14) for the values that the link shifts", both - left(needed, mass, query)))
    part = share(sp.exp(x), sp.exp(y))
    between = left(needed, mass, -part * opened - (1 - part) * closed)
    vanishing.update(named("line: between the values of a pair", between))
    # A balanced layer: A_n = u_0 / (z_0 + n zeta), with epsilon = 1/n.
    n, zeta, start = positive("n zeta z_0")
    gathered = rest / (start + n * zeta)
    vanishing.update(named("shrinks", n * gathered - rest / zeta + rest * start / (zeta * (start + n * zeta))))
    step = sp.Symbol("epsilon", nonnegative=True)
    vector, apart = matrix("x", width, 1, positive=True), rest - other

    def behind(stack):
        joint = vector + step * stack / (step * start + zeta)
        return joint / norm(joint)

    vanishing.update(named("forgets: the limit of LN", behind(rest).subs(step, 0) - vector / norm(vector)))
    rate = (behind(rest) - behind(other)).diff(step).subs(step, 0)
    vanishing.update(named("forgets: the rate", rate - slope(vector, apart, zeta)))
    # Along the ones: the mean takes x_q off.
    scale = sp.Symbol("a", real=True)
    ones = scale * sp.ones(width, 1)
    vanishing.update(named("ones: LN takes the query off", ones - sp.ones(width, 1) * sum(ones) / width))
    one, two, first, second = sp.symbols("m m' d_1 d_2", real=True)
    lipschitz, distance = positive("gamma s")
    # exp of twice the mean loss of both prefixes, against that of both at the mean margin.
    excess = (1 + sp.exp(-one)) * (1 + sp.exp(-two)) - sp.exp(least_loss((one + two) / 2)) ** 2
    square = (sp.exp(-one / 2) - sp.exp(-two / 2)) ** 2
    budget = first**2 + second**2  # squared distance of the two prefixes' logits, (gamma s)^2 at most
    return Derivation(
        statement="Appendix C.7 (bounded Dyck)",
        vanishing=vanishing
        | {
            "loss: equal margins are best": excess - square,
            "loss: the largest margin": most_margin(lipschitz, distance) ** 2 - (lipschitz * distance) ** 2 / 2,
            "loss: margins from logits": budget / 2 - ((first - second) / 2) ** 2 - ((first + second) / 2) ** 2,
            "loss: a guess at distance 0": least_loss(most_margin(lipschitz, sp.Integer(0))) - sp.log(2),
        },
        signed={
            "line: inside": (sp.simplify(part * (1 - part)), "> 0"),
            "loss: unequal margins cost": (square, ">= 0"),
            "loss: more margin, less loss": (sp.diff(least_loss(one), one), "< 0"),
        },
        steps=(
            r"$\sum_s c_s = 1$, so that $x_q + \sum_s c_s V_s = \sum_s c_s (V_s + x_q)$: the layer (49) is the layer"
            r" (6) with the values $V_s + x_q$.",
            r"Theorem 1 then says what is necessary for $k \ge 2$: at each closing query of depth 1 to $D - 1$ a pair"
            r" has $P(\delta + \zeta x_q) = 0$, with $\zeta = e^{x} + e^{y}$ its mass before softmax's normaliser.",
            r"If the layer is balanced, $\delta = 0$, this is $P x_q = 0$: the query's vector is a multiple of the"
            r" ones, which is the paper's exception. Where it is not, balance (14) is not even compatible with"
            r" being right.",
            r"If $P x_q$ is one vector at all closing queries, the values $V_s - x$ with balanced $V$ have it. In"
            r" general $-Px_q = t\,PV_o + (1 - t)\,PV_c$ with $t = e^{x}/(e^{x} + e^{y})$, for every pair: the vectors"
            r" of all closing queries lie on one line, between the values of any pair. Else no layer is right.",
            r"How fast a balanced layer forgets: $A_n = u_0/(z_0 + n\zeta)$ with $n A_n \to u_0/\zeta$, and $LN(x_q +"
            r" A_n) \to LN(x_q)$, so that $n(f_n - f_n') \to (I - \hat x\hat x^T)P(u_0 - u_0')/(\zeta\|Px_q\|)$, with"
            r" $\hat x = LN(x_q)$.",
            r"A head of Lipschitz constant $\gamma$ has on two features of distance s the margins m, m' of the right"
            r" type over the other, with $(m + m')/2 \le \gamma s/\sqrt2$. As $(1 + e^{-m})(1 + e^{-m'}) - (1 +"
            r" e^{-(m + m')/2})^2 = (e^{-m/2} - e^{-m'/2})^2 \ge 0$, the mean loss is at least $\ln(1 + e^{-\gamma"
            r" s/\sqrt2})$, which tends to $\ln 2$, that of a guess.",
        ),
        scope="any states, logits and counts; the rate for values of width 2, whose formula is that of any width",
        sizes={"width of V": (width,)},
        prose=(theorem1.FORGETS, WRONG, SEVERAL, CONVEX),
    )
