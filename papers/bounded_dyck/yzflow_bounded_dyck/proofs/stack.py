"""The exactly balanced family and its head (sufficiency in Theorem 1 of Wen et al. 2023, arXiv 2312.01429).

Each pair (i, l) has a coordinate. The proof adds up the contributions of its open and closed brackets, for any random
attention. A network of three layers reads the stack off the coordinates, or, behind a residual link, off the
coordinates and the query.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar
from theory.symbolic.model import positive

SMALLEST = "LN divides by one number, and the least coordinate of an unmatched bracket stays positive"
QUERY = "behind the link, in dimensions of its own, the query's encoding is read apart from the features"


def open_value(a: sp.Expr) -> sp.Expr:
    """V_open(i, l) on its coordinate, for the logit R + a."""
    return sp.exp(-a)


def close_value(b: sp.Expr) -> sp.Expr:
    """V_close(i, l - 1) on the same coordinate, for the logit R + b."""
    return -sp.exp(-b)


def step(f: sp.Expr, smallest: sp.Expr) -> sp.Expr:
    """h: 0 at f = 0 and 1 from the smallest coordinate on."""
    return _relu(2 * f / smallest - 1) - _relu(2 * f / smallest - 2)


def top(own: Scalar, deeper: Sequence[Scalar]) -> sp.Expr:
    """t: 1 for the last unmatched bracket, from its h and from the h one level deeper."""
    return _relu(own - sp.Add(*deeper))


def top_at(own: sp.Expr, asked: Scalar) -> sp.Expr:
    """t behind a residual link: h at the level of the query, and 0 at all other levels."""
    return _relu(own + asked - 1)


def derive(
    *,
    open_value: Claim = open_value,
    close_value: Claim = close_value,
    step: Claim = step,
    top: Claim = top,
    top_at: Claim = top_at,
    sizes: Sequence[tuple[int, int]] = ((1, 2), (2, 2), (2, 3)),
) -> Derivation:
    """Coordinates for symbolic counts and logits; the head for every stack of ``sizes`` (k, D) and symbolic q."""
    R, a, b = sp.symbols("R a b", real=True)
    pairs, smallest, q = positive("m s q")
    more = sp.Symbol("g", nonnegative=True)
    vanishing = {}
    for unmatched in (0, 1):
        coordinate = (pairs + unmatched) * open_value(a) * sp.exp(R + a) + pairs * close_value(b) * sp.exp(R + b)
        vanishing[f"coordinate, {unmatched} unmatched"] = coordinate - unmatched * sp.exp(R)
    vanishing["step at 0"] = step(sp.Integer(0), smallest)
    vanishing["step from the smallest coordinate on"] = step(smallest * (1 + more), smallest) - 1
    for k, depth in sizes:
        for height in range(depth + 1):
            for stack in itertools.product(range(k), repeat=height):
                outcome = _outcome(stack, k, depth, q, top)
                expected = _next_token(stack[-1:], height, k, depth, q)
                vanishing[f"head, k = {k}, D = {depth}, stack {stack}"] = sum(
                    (one - other) ** 2 for one, other in zip(outcome, expected, strict=True)
                )
                if 1 <= height < depth:
                    vanishing[f"linked head, k = {k}, D = {depth}, stack {stack}"] = _asked_error(
                        stack, k, depth, top_at
                    )
    return Derivation(
        statement="Exactly balanced family (bounded Dyck)",
        vanishing=vanishing,
        steps=(
            r"At coordinate $(i,l)$, $m + s$ open and m closed brackets add $(m+s)e^{R+a}e^{-a} - m e^{R+b}e^{-b} ="
            r" s e^{R}$: matched pairs cancel, whatever R.",
            r"START has a coordinate of its own, so that LN is defined on the empty stack; LN divides by one"
            r" number, and coordinates of unmatched brackets stay at least $s > 0$, the others 0.",
            r"$h = relu(2f/s - 1) - relu(2f/s - 2)$ is the stack in zeros and ones; $t_{il} = relu(h_{il} - \sum_j"
            r" h_{j,l+1})$ keeps the last, $e = relu(1 - \sum_j h_{j1})$ marks the empty one.",
            r"$\sum t_{il} p(i,l) + e\,p(0)$ is the exact distribution: three layers of weights. This takes (11) at"
            r" every query: at others than closing ones of depth 1 to $D - 1$ pairs that do not cancel would drown the"
            r" stack.",
            r"Behind the residual link of (6) the query is known. Then $t_{il} = relu(h_{il} + [q = close(\cdot, l)] -"
            r" 1)$ is the last unmatched bracket of a closing query of depth l; an open bracket, a closed one of depth"
            r" 0 and START say by themselves what comes next. This takes (11) at closing queries of depth 1 to $D - 1$"
            r" only.",
        ),
        scope="coordinates: any k, D, counts, logits; heads: every stack of (k, D) = (1, 2), (2, 2), (2, 3), any q",
        sizes={"(k, D)": tuple(sizes)},
        prose=(SMALLEST, QUERY),
        proves=(
            "Corollary 1",
            "Footnote 1",
            "Lemmas 15 to 20",
            "Theorem 1, sufficiency",
            "Transformer from tokens",
        ),
    )


def _relu(value):
    return sp.Max(0, value)


def _outcome(stack, k, depth, q, top):
    """The head's output for a stack that is given as zeros and ones."""
    h = [[int(level < len(stack) and stack[level] == kind) for kind in range(k)] for level in range(depth + 1)]
    outcome = [_relu(1 - sum(h[0])) * entry for entry in _next_token((), 0, k, depth, q)]
    for level in range(depth):
        for kind in range(k):
            weight = top(h[level][kind], h[level + 1])
            for index, entry in enumerate(_next_token((kind,), level + 1, k, depth, q)):
                outcome[index] += weight * entry
    return outcome


def _asked_error(stack, k, depth, top_at):
    """Squared distance of t behind a residual link from the last unmatched bracket, at a closing query."""
    error = sp.Integer(0)
    for level in range(1, depth + 1):
        for kind in range(k):
            own = int(level <= len(stack) and stack[level - 1] == kind)
            error += (top_at(own, int(level == len(stack))) - own * int(level == len(stack))) ** 2
    return error


def _next_token(last, height, k, depth, q):
    """Definition 1: open brackets, then closed ones, for the last unmatched type and the depth."""
    opens = sp.Integer(1) if height == 0 else sp.Integer(0) if height == depth else q
    return [opens / k] * k + [(1 - opens) * int(last == (kind,)) for kind in range(k)]
