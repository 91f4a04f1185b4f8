r"""Footnote 1 of Wen et al. 2023 (arXiv 2312.01429): label smoothing makes the optimum finite, and the theorems apply.

The target of a prefix is ``p_eps = (1 - eps) p + eps / m`` on m = 2k brackets. That is the mean of smoothed one-hot
targets, since smoothing is linear.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive
from yzflow_bounded_dyck.proofs import cross_entropy

GIBBS = "the cross-entropy is convex in the logits, and softmax's logits are unique up to a constant"
TELLS = "the head's last layer holds any numbers, here the logits, for each last unmatched bracket"


def smoothed(p: sp.Expr, eps: sp.Expr, tokens: sp.Expr) -> sp.Expr:
    """The smoothed target of a bracket of probability p."""
    return (1 - eps) * p + eps / tokens


def gap(p: sp.Expr, eps: sp.Expr, tokens: sp.Expr) -> sp.Expr:
    """Difference of the best logits of a bracket of probability p and of one that cannot come next."""
    return sp.log(1 + tokens * (1 - eps) * p / eps)


def apart(tau: sp.Expr, eps: sp.Expr) -> sp.Expr:
    """Distance of two smoothed targets, from that of the targets."""
    return (1 - eps) * tau


def small_excess(tau: sp.Expr, eps: sp.Expr, probability: sp.Expr, other: sp.Expr) -> sp.Expr:
    """Largest excess of the smoothed cross-entropy at which two outputs keep half the distance of their targets."""
    return cross_entropy.small_excess(apart(tau, eps), probability, other)


def derive(
    *,
    smoothed: Claim = smoothed,
    gap: Claim = gap,
    apart: Claim = apart,
    small_excess: Claim = small_excess,
) -> Derivation:
    """The logits of least smoothed loss, that none exist without smoothing, and what Theorem 2 has in place of tau."""
    p, other, odds, share = positive("p p' s e")
    m = sp.Symbol("m", positive=True)
    eps = odds / (1 + odds)  # between 0 and 1
    # One bracket's logit x beside the sum R of all other exponentials: the loss is ln(e^x + R) - p_eps x - ..
    x, R, z = sp.symbols("x R z", positive=True)
    loss = sp.log(sp.exp(x) + R) - smoothed(p, eps, m) * x
    slope = sp.diff(loss, x)
    best = {sp.exp(x): smoothed(p, eps, m), R: 1 - smoothed(p, eps, m)}
    total = smoothed(p, eps, m) + (m - 1) * smoothed((1 - p) / (m - 1), eps, m)
    entries = [sp.Symbol(name, real=True) for name in ("a_1", "a_2", "b_1", "b_2")]
    mixed = [smoothed(a, eps, m) - smoothed(b, eps, m) for a, b in zip(entries[:2], entries[2:], strict=True)]
    squares = sum((a - b) ** 2 for a, b in zip(entries[:2], entries[2:], strict=True))
    tau, one, two = positive("tau pi_1 pi_2")
    kept = cross_entropy.separation((1 - eps) * tau, small_excess(tau, eps, one, two), one, two)
    forbidden = sp.log(1 + sp.exp(-z))  # loss of a certain bracket, with one other at the gap z
    return Derivation(
        statement="Footnote 1 (bounded Dyck)",
        vanishing={
            "optimum: the loss has no slope at the smoothed logits": slope.subs(best),
            "optimum: smoothed targets sum to one": total - 1,
            "optimum: a bracket that cannot come next": smoothed(sp.Integer(0), share, m) - share / m,
            "optimum: the gap": sp.exp(gap(p, eps, m)) * smoothed(sp.Integer(0), eps, m) - smoothed(p, eps, m),
            "optimum: two brackets that can come": (
                sp.exp(gap(p, eps, m) - gap(other, eps, m)) - smoothed(p, eps, m) / smoothed(other, eps, m)
            ),
            "apart: smoothed targets": sum(entry**2 for entry in mixed) - apart(sp.sqrt(squares), eps) ** 2,
            "apart: the outputs keep half of it": kept - (1 - eps) * tau / 2,
        },
        signed={
            "optimum: convex in each logit": (sp.diff(loss, x, 2), "> 0"),
            "optimum: positive gap": (sp.exp(gap(p, eps, m)) - 1, "> 0"),
            "optimum: less smoothing, larger gap": (sp.diff(gap(p, odds / (1 + odds), m), odds), "< 0"),
            "none: without smoothing more gap is less loss": (sp.diff(forbidden, z), "< 0"),
            "none: and never none": (sp.exp(forbidden) - 1, "> 0"),
        },
        steps=(
            r"The cross-entropy against $p_\epsilon$ has the slope $\alpha_j - p_{\epsilon,j}$ in the logit of bracket"
            r" j: at $\alpha = p_\epsilon$ there is none, and it is convex. All entries are positive, so that the"
            r" logits $\ln p_{\epsilon,j}$ are finite.",
            r"A bracket of probability p and one that cannot come next differ by $\ln\frac{(1-\epsilon)p +"
            r" \epsilon/m}{\epsilon/m} = \ln(1 + m(1-\epsilon)p/\epsilon)$, $m = 2k$. It grows without bound as"
            r" $\epsilon \to 0$; at $\epsilon = 0$ more gap is always less loss, and no logits are best.",
            r"Smoothing is linear: $p_\epsilon - p'_\epsilon = (1-\epsilon)(p - p')$. Two last types keep different"
            r" targets, so that Theorem 1's necessity holds as it stands; its network holds the logits $\ln p_\epsilon$"
            r" in place of the distributions, and attains the least loss at every length with finite weights.",
            r"The excess of the smoothed loss is $\sum_x \pi(x) KL(p_\epsilon(x)\|T(x)) \ge \sum_x"
            r" \pi(x)\|p_\epsilon(x) - T(x)\|^2$, as without smoothing. Outputs keep half of $(1-\epsilon)\tau$ for an"
            r" excess up to $(1-\epsilon)^2\tau^2/(4(1/\pi_1 + 1/\pi_2))$, and Theorem 2 has $(1-\epsilon)\tau$"
            r" in place of $\tau$.",
        ),
        scope="any number m of brackets, any smoothing between 0 and 1; the distance of targets written out for two"
        " entries, by linearity",
        sizes={},
        prose=(GIBBS, TELLS, cross_entropy.GROUPED, cross_entropy.SEVERAL),
    )
