r"""Fully connected networks with values in the unit ball: least errors where they are known, and bounds elsewhere.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896) take z_i from the unit ball of R^d'. In the cube the least
error is known for every width (`yzflow_sparse_averaging.proofs.fully_connected`).
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging.proofs import fully_connected

LARGEST = "a kernel other than zero has a z whose largest token has norm one"
TRIANGLE = "two sets of q tokens that differ in one token have sums within q eps each"
LINEAR = "d' equations leave something of a kernel of more than d' dimensions"
DIRECTION = "a sum's norm is its component along itself, whose tokens are numbers of the same kernel in [-1, 1]"
SCALED = "a cube of side 2/sqrt(d') lies in the ball, and a norm is no less than an entry"


def smallest(q: sp.Expr) -> sp.Expr:
    """Error that every width below N d' forces, q < N, in any norm."""
    return 1 / (2 * q - 1)


def all_but_one(q: sp.Expr) -> sp.Expr:
    """Least error for q = N - 1 and d' <= k < d'(N - 1)."""
    return 1 / q


def narrowest(n_tokens: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Widths from which on `smallest` is attained."""
    return dimension * (n_tokens - 1)


def shrunk(dimension: sp.Expr) -> sp.Expr:
    """Part of the cube's least error that is sure in the ball."""
    return 1 / sp.sqrt(dimension)


def derive(
    *,
    smallest: Claim = smallest,
    all_but_one: Claim = all_but_one,
    narrowest: Claim = narrowest,
    shrunk: Claim = shrunk,
) -> Derivation:
    """One token of norm one; kernels whose tokens sum to zero; layers that treat coordinates alike; a cube inside."""
    q, size = 1 + sp.Symbol("h", nonnegative=True), sp.Symbol("e", positive=True)
    d, n = 1 + sp.Symbol("j", nonnegative=True), sp.Symbol("N", positive=True)
    slack = sp.Symbol("s", nonnegative=True)
    # q z_j is the sum over y plus q - 1 differences z_j - z_l, each of norm 2 q eps or less.
    reach = q * size + (q - 1) * 2 * q * size
    vanishing = {"one token: the least error that reaches it": sp.expand(reach.subs(size, smallest(q)) - q)}
    vanishing["one token: attained by one number each"] = sp.simplify(
        fully_connected.odd_sum(q, sp.Integer(1)) / q - smallest(q)
    )
    vanishing["one token: from this width on a coordinate lacks one number"] = (
        fully_connected.saturated(n, narrowest(n, d), d) - 1
    )
    # q = N - 1, sum zero: the set without a token of norm one sums to minus it.
    largest, others = sp.symbols("z_1 z_2", real=True)
    vanishing["all but one: what the others sum to"] = (others + largest - largest).subs(others, -largest) + largest
    vanishing["all but one: the error of one token of norm one"] = all_but_one(q) * q - 1
    below = narrowest(n, d) - 1 - slack
    signed = {"all but one: more dimensions than d'": (sp.expand(n * d - below - d), "> 0")}
    vanishing["all but one: the sum of all values errs by no more"] = sp.simplify(
        fully_connected.error_of_sum(q + 1, q) - all_but_one(q)
    )
    vanishing["bounds: a corner of the small cube has norm one"] = d * shrunk(d) ** 2 - 1
    return Derivation(
        statement="Fully connected, unit ball",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Let $k < Nd'$ and all q-sets of some z in the kernel with $\max_j|z_j| = |z_1| = 1$ have sums of norm"
            r" $q\epsilon$ at most. Exchange of one token: $|z_1 - z_l| \le 2q\epsilon$. So $q = |qz_1| \le q\epsilon +"
            r" (q-1)2q\epsilon$, in any norm.",
            r"A layer that reads the same combinations in each coordinate has the errors of one number a token, for"
            r" $|\sum_y z| = \sum_y\langle c, z_j\rangle$ with c along the sum. From $k = d'(N-1)$ on that is"
            r" $\frac1{2q-1}$.",
            r"$q = N - 1$: a kernel of more than d' dimensions has a z with $\sum_j z_j = 0$, $\max|z_j| = 1$; all but"
            r" the largest sum to minus it. The sum of all values errs by no more.",
            r"Elsewhere: z in the cube over $\sqrt{d'}$ lies in the ball, and the layer of the second step has $\lfloor"
            r" k/d'\rfloor$ rows a coordinate.",
        ),
        scope="every N, q < N, d' and width; first layers of any weights",
        sizes={},
        prose=(LARGEST, TRIANGLE, LINEAR, DIRECTION, SCALED),
    )
