r"""Lemmas 5, 6, 8, 10, 11, 13 and 15 to 19 of Wen et al. 2023 (arXiv 2312.01429), one by one, with constants of ours.

Our text of the paper has their words and not their formulas. Errors of softmax, LN and compositions rest on
`yzflow_bounded_dyck.proofs.lottery`.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive

PATH = "a bound on small changes holds along a segment, and the inputs' ball is convex"
LINES = "finitely many lines do not fill the space of directions for d >= 2"
SORTED = "a random line tells finitely many points apart; between neighbours on it the network is linear"


def shares(accuracy: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Accuracies of the first and of the second matrix (Lemma 6)."""
    return accuracy / 3, accuracy / 2


def softmax_change(error: sp.Expr) -> sp.Expr:
    """L1 distance of two attentions whose logits are at most ``error`` apart, entry by entry (Lemma 8)."""
    return 2 * sp.tanh(error / 2)


def mixture_change(error: sp.Expr, distance: sp.Expr, diameter: sp.Expr) -> sp.Expr:
    """Change of a mixture: values off by ``error``, attention by an L1 distance, values a diameter apart (Lemma 11)."""
    return error + distance * diameter / 2


def attention_lipschitz(value: sp.Expr, product: sp.Expr, radius: sp.Expr, floor: sp.Expr, link: sp.Expr) -> sp.Expr:
    """Lipschitz constant of LN(V X softmax) + b X on inputs of norm ``radius``, by norms of P V and K'Q (Lemma 13)."""
    return value * (1 + 2 * product * radius**2) / floor + link


def slope(rise: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """Slope of the interpolating network between neighbours (Lemma 15)."""
    return rise / gap


def step(x: sp.Expr, least: sp.Expr) -> sp.Expr:
    """One for |x| >= least, zero at zero, by four units (Lemma 18)."""
    return sum(sp.Max(0, y) - sp.Max(0, y - least) for y in (x, -x)) / least


def gate(u: sp.Expr, large: sp.Expr, t: sp.Expr) -> sp.Expr:
    """relu(u) at t = 0, and 0 at other whole numbers t, for |u| < M/2, by four units (Lemmas 17 and 19)."""
    half = sp.Rational(1, 2)
    first, second = (sp.Max(0, u + large * s) - sp.Max(0, large * s) for s in (t, t - half))
    return sp.expand(first - second)


def derive(
    *,
    shares: Claim = shares,
    softmax_change: Claim = softmax_change,
    mixture_change: Claim = mixture_change,
    attention_lipschitz: Claim = attention_lipschitz,
    slope: Claim = slope,
    step: Claim = step,
    gate: Claim = gate,
) -> Derivation:
    """Accuracies that add up, softmax and mixtures, a Lipschitz constant, and networks of one hidden layer."""
    e, floor, norm, product, radius, link, x, spare = positive("e C v B R b x s")
    more = sp.Symbol("h", nonnegative=True, integer=True)
    below = 1 / (1 + sp.Symbol("k", nonnegative=True))  # an accuracy of at most one
    (first, second), whole = shares(below), shares(sp.Integer(1))
    vanishing: dict[str, sp.Expr] = {"two pairs: all of it at accuracy one": sp.Add(*whole) + sp.Mul(*whole) - 1}
    signed = {"two pairs: no more than the accuracy": (sp.factor(below - first - second * (1 + first)), ">= 0")}
    # Logits at most e apart each: changes are 2 e apart, and tanh(omega/4) is the total variation.
    vanishing["softmax: from the spread"] = softmax_change(e) - 2 * sp.tanh(2 * e / 4)
    y = 1 + sp.Symbol("g", nonnegative=True)
    falls = sp.diff(e - softmax_change(e), e) - sp.tanh(e / 2) ** 2
    vanishing["softmax: e less the bound rises"] = sp.simplify(falls)
    vanishing["softmax: and is zero at zero"] = softmax_change(sp.Integer(0))
    share, diameter = sp.symbols("p D", positive=True)
    moved = (e + diameter * (share + y)) - diameter * share  # one value at 0, another at D; attention y further
    vanishing["mixture: two values, attained"] = moved - mixture_change(e, 2 * y, diameter)
    # |d mixture| <= v e + (omega/4) 2 v R, omega <= 4 B R e + 2 B e^2, to first order in e.
    change = norm * e + (4 * product * radius * e + 2 * product * e**2) / 4 * 2 * norm * radius
    rate = sp.diff(change / floor + link * e, e).subs(e, 0)
    vanishing["attention: rate of small changes"] = sp.expand(
        rate - attention_lipschitz(norm, product, radius, floor, link)
    )
    rise, gap = sp.Symbol("r", real=True), sp.Symbol("w", positive=True)
    vanishing["interpolation: from a point to its neighbour"] = slope(rise, gap) * gap - rise
    for sign in (1, -1):
        vanishing[f"index: one, sign {sign}"] = sp.simplify(step(sign * (x + spare), x) - 1)
        large = 2 * x + spare
        vanishing[f"switch: on, sign {sign}"] = gate(sign * x, large, sp.Integer(0)) - sp.Max(0, sign * x)
        for t in (1 + more, -1 - more):
            parts = gate(sign * x, sp.expand(large), t)
            vanishing[f"switch: off, sign {sign}, t = {t}"] = sp.expand(parts.replace(sp.Max, _expanded))
    vanishing["index: zero"] = step(sp.Integer(0), x)
    cosine = 1 / (1 + spare)
    signed["direction: a projection keeps what is not along it"] = (sp.factor(x**2 * (1 - cosine**2)), "> 0")
    return Derivation(
        statement="Lemmas of Theorem 3, one by one (bounded Dyck)",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Lemma 6. Two pairs of random matrices hold $W_1$ within $\epsilon/3$ and $W_2$ within $\epsilon/2$, each"
            r" but for $\delta/2$: $\frac\epsilon3 + \frac\epsilon2(1 + \frac\epsilon3) \le \epsilon$ for"
            r" $\epsilon \le 1$, norms at most one.",
            r"Lemma 8. Logits at most $\epsilon$ apart have changes at most $2\epsilon$ apart: the attentions differ by"
            r" $2\tanh\frac\epsilon2 \le \epsilon$ in $L_1$, whatever the number of keys.",
            r"Lemma 11. $\sum_j\tilde a_j\tilde v_j - a_jv_j = \sum_j\tilde a_j(\tilde v_j - v_j) + \sum_j(\tilde a_j -"
            r" a_j)v_j$, of norm $e + \frac12\|\tilde a - a\|_1 D$ at most.",
            r"Lemma 13. With $\tanh\frac\omega4 \le \frac\omega4$ small changes e move the mixture by $v(1 + 2BR^2)e$"
            r" at most, LN with the floor C by that over C, the link by $|b|e$.",
            r"Lemma 15. The sum of turns up to a point is the slope to its neighbour.",
            r"Lemmas 17 to 19. $relu(u + Mt) - relu(Mt)$ is relu(u) at $t = 0$, u above and 0 below; with $t -"
            r" \frac12$ for t it is 0 at $t = 0$. Their difference is relu(u) at 0 alone. $x \mapsto (relu(x) - relu(x"
            r" - l) + relu(-x) - relu(-x - l))/l$ is one from l on.",
            r"Lemma 16. $|x|^2 - \langle u, x\rangle^2 > 0$ unless x is along u.",
        ),
        scope="norms in any dimension; any number of points, keys and networks",
        sizes={},
        prose=(PATH, LINES, SORTED),
        proves=("Lemma 6", "Lemma 8", "Lemma 11", "Lemma 13", "Lemma 16", "Lemmas 15 and 17 to 19"),
    )


def _expanded(*arguments: sp.Expr) -> sp.Expr:
    return sp.Max(*(sp.expand(one) for one in arguments))
