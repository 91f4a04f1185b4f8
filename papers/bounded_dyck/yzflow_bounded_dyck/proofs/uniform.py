"""Corollary 1 and Proposition 1 of Wen et al. 2023 (arXiv 2312.01429): attention without information on the task."""

from __future__ import annotations

import itertools

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import gradient, matrix, named, norm, positive, softmax

SECOND = "the second layer is that of Theorem 1 with V_close = -V_open"


def depth_of(start: sp.Expr, height: sp.Expr) -> sp.Expr:
    """Depth from the two coordinates of the first layer: START's and the signed count of brackets."""
    return height / start


def reached(x: sp.Expr, below: sp.Expr, at: sp.Expr) -> sp.Expr:
    """1 from the coordinate of a depth on, 0 up to that of the depth below."""
    y = 3 * (x - below) / (at - below)
    return sp.Max(0, y - 1) - sp.Max(0, y - 2)


def state_unit(own: sp.Expr, deep: sp.Expr, deeper: sp.Expr) -> sp.Expr:
    """The unit of a state: its bracket is the token's, its depth is reached, and the next depth is not."""
    return sp.Max(0, own + deep - deeper - 1)


def shared_value(values: sp.Matrix) -> sp.Matrix:
    """Rows of V, all equal to one row, at which attention has no effect."""
    return sp.ones(values.rows, 1) * values.row(0)


def derive(
    *,
    depth_of: Claim = depth_of,
    reached: Claim = reached,
    state_unit: Claim = state_unit,
    shared_value: Claim = shared_value,
    size: int = 3,
) -> Derivation:
    """Depth and state under uniform attention, the need for START, and a layer that does not depend on attention."""
    opens, closes = positive("N_o N_c")
    length = opens + closes
    # Values: START (1, 0), open (0, 1), closed (0, -1), each with weight 1/(length + 1).
    mean = sp.Matrix([1 / (length + 1), (opens - closes) / (length + 1)])
    unit = mean / norm(mean)
    vanishing = {
        "depth, before LN": depth_of(*mean) - (opens - closes),
        "depth, after LN": depth_of(*unit) - (opens - closes),
    }
    # The depth's coordinate is d / sqrt(1 + d^2), which grows: g from a depth to the next, and h beyond.
    depth, below, gap = sp.Symbol("d", nonnegative=True), sp.Symbol("s", real=True), sp.Symbol("g", positive=True)
    beyond = sp.Symbol("h", nonnegative=True)
    vanishing["step: from the depth on"] = reached(below + gap + beyond, below, below + gap) - 1
    vanishing["step: up to the depth below"] = reached(below - beyond, below, below + gap)
    for own, (deep, deeper) in itertools.product((0, 1), ((0, 0), (1, 0), (1, 1))):
        one = state_unit(sp.Integer(own), sp.Integer(deep), sp.Integer(deeper))
        vanishing[f"state: token {own}, depth {deep}, next {deeper}"] = one - own * deep * (1 - deeper)
    # Without START, a word and the same word twice are one bag up to scale.
    counts = matrix("N", size, 1, positive=True)
    vanishing.update(named("twice the word", 2 * counts / norm(2 * counts) - counts / norm(counts)))
    z, V = matrix("z", 1, size), matrix("V", size, 2, positive=True)
    attended = shared_value(V).T * softmax(z.T)
    for index, entry in enumerate(attended):
        vanishing.update(named(f"attention moves coordinate {index}", gradient(entry, z).T))
    return Derivation(
        statement="Corollary 1 and Proposition 1 (bounded Dyck)",
        vanishing=vanishing,
        signed={"step: the coordinate grows with the depth": (sp.diff(depth / sp.sqrt(1 + depth**2), depth), "> 0")},
        steps=(
            r"Uniform attention gives START the share $1/(n+1)$ and the signed count $(N_o - N_c)/(n+1)$: their ratio"
            r" is the depth, and LN keeps ratios. With its bracket from the residual link, a token knows its state.",
            r"In the network two units a level tell whether depth m is reached: with $y = 3(x - s_{m-1})/(s_m -"
            r" s_{m-1})$ and $s_d = d/\sqrt{1 + d^2}$ it is $relu(y - 1) - relu(y - 2)$. A unit a state is"
            r" $relu([\text{token}] + [d \text{ reached}] - [d + 1 \text{ reached}] - 1)$: the state one-hot"
            r" (19), on which the second layer acts.",
            r"Uniform attention has $x - y = 0$ in (11) for every query: Theorem 1 applies with $V_c = -V_o$.",
            r"Without START, $LN(2N) = LN(N)$: a prefix and the same prefix twice, such as one and two open brackets,"
            r" are the same to the layer, although their depths differ.",
            r"If all rows of V are equal, in particular 0, $V^T c$ is that row for every attention c, whose entries sum"
            r" to one: whatever the head computes, attention has no part in it.",
        ),
        scope="any counts; any attention logits, written out for three tokens",
        sizes={"tokens": (size,)},
        prose=(SECOND,),
    )
