r"""The transformer from tokens (`yzflow_bounded_dyck.from_tokens`): what its parts compute, for any k, D and prefix.

Its second attention and its head are those of `proofs.stack`: this module derives what stands before and behind them.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import norm, positive
from yzflow_bounded_dyck.proofs import stack

WIDTH = size("S")
CAUSAL = "a position sees its own prefix alone, so that each output is the last one of a prefix"
STREAM = "parts write to coordinates of their own of the residual stream, and read what earlier ones have written"
ONE_UNIT = "one state is the bracket's at its depth: one unit is one and all others are zero"
READ = "the second attention and the head that reads its stack are those of the family that is exactly balanced"


def seen(depth: sp.Expr) -> sp.Expr:
    """The coordinate of the signed count, behind the norm, after a prefix of this depth."""
    return depth / sp.sqrt(1 + depth**2)


def step(seen: sp.Expr, below: sp.Expr, at: sp.Expr) -> sp.Expr:
    """[depth >= m] from the coordinate: a ramp over the middle third between those of depths m - 1 and m."""
    place = sp.expand(3 * (seen - below) / (at - below))
    return _relu(place - 1) - _relu(place - 2)


def state(bracket: sp.Expr, reached: sp.Expr, deeper: sp.Expr) -> sp.Expr:
    """The unit of a state: of its bracket, and of [depth >= d] and [depth >= d + 1]."""
    return _relu(bracket + reached - deeper - 1)


def gap(low: sp.Expr, least: sp.Expr) -> sp.Expr:
    """Least difference of the logits of a possible and an impossible bracket, for the least probability."""
    return low + sp.log(least)


def lost(impossible: sp.Expr, low: sp.Expr) -> sp.Expr:
    """Softmax's share of impossible brackets: total variation of the exact and the transformer's distribution."""
    return impossible * sp.exp(-low) / (1 + impossible * sp.exp(-low))


def derive(
    *, seen: Claim = seen, step: Claim = step, state: Claim = state, gap: Claim = gap, lost: Claim = lost
) -> Derivation:
    """Depth, steps, states, the norm behind softmax, sharper attention, and logits."""
    return Derivation(
        statement="Transformer from tokens (bounded Dyck)",
        vanishing=_states(seen, step, state) | _attention() | _logits(gap, lost),
        signed=_signs(seen),
        steps=(
            r"Uniform attention gives $(1, h)/(n+1)$, h the signed count of brackets, which is the depth, and the norm"
            r" takes the factor off: $h/\sqrt{1 + h^2}$, whatever the length. It grows with the depth.",
            r"Between the values x of depths $m - 1$ and m, $relu(y - 1) - relu(y - 2)$ with $y = 3(x - x_{m-1})/(x_m -"
            r" x_{m-1})$ is 0 up to depth $m - 1$, where $y \le 0$, and 1 from depth m on, where $y \ge 3$.",
            r"$relu([b] + [d \ge m] - [d \ge m + 1] - 1)$ is 1 if the bracket is b and the depth m, else 0: the state"
            r" one-hot (19). Depth 0 has no step, for it is always reached.",
            r"Softmax divides what is gathered by one number, and the norm takes it off: the features are LN(u) of"
            r" (12). A number that is added to both logits of a pair is part of its R: matched pairs cancel as before.",
            r"The head marks the last unmatched bracket, and the decoder has the logarithms of the distribution behind"
            r" it, with $-L$ for brackets that cannot come next: the logits are exact, and the least gap is $L + \ln"
            r" \min p$. For $k, D \ge 2$ the least probability is $q/k$ or $1 - q$. For $k = 1$ a bracket is impossible"
            r" at depths 0 and D alone, and for $D = 1$ these are all: there it is $1/k$, as a bracket that must close"
            r" has the probability one.",
            r"With m impossible brackets the normaliser is $1 + m e^{-L}$: possible ones lose and impossible ones get"
            r" $m e^{-L}/(1 + m e^{-L})$ together.",
        ),
        scope="any k, D, length and prefix; the stack's own scope for its head",
        sizes={},
        prose=(CAUSAL, STREAM, ONE_UNIT, READ),
    )


def _relu(value: sp.Expr) -> sp.Expr:
    return sp.Max(0, sp.expand(value))


def _states(seen: Claim, step: Claim, state: Claim) -> dict[str, sp.Expr]:
    opens, closes, width = positive("N_o N_c g")
    more, below = sp.Symbol("m", nonnegative=True), sp.Symbol("x", real=True)
    length = opens + closes
    mean = sp.Matrix([1 / (length + 1), (opens - closes) / (length + 1)])
    one, zero = sp.Integer(1), sp.Integer(0)
    found = {
        "depth: the signed count behind the norm": (mean / norm(mean))[1] - seen(opens - closes),
        "step: up to the depth before": step(below - more, below, below + width),
        "step: from the depth on": step(below + width + more, below, below + width) - 1,
        "state: its bracket at its depth": state(one, one, zero) - 1,
    }
    for name, bits in {
        "its bracket, less deep": (one, zero, zero),
        "its bracket, deeper": (one, one, one),
        "another bracket at its depth": (zero, one, zero),
        "another bracket, less deep": (zero, zero, zero),
        "another bracket, deeper": (zero, one, one),
    }.items():
        found[f"state: {name}"] = state(*bits)
    return found


def _attention() -> dict[str, sp.Expr]:
    sums, place, other = entries("u"), index("l", WIDTH), index("m", WIDTH)
    z, pairs = positive("z m")
    R, a, b, t = sp.symbols("R a b t", real=True)

    def normed(scale: sp.Expr) -> sp.Expr:
        return sums[place] / scale / sp.sqrt(total((sums[other] / scale) ** 2, other))

    found = {"norm: softmax's normaliser goes": normed(z) - normed(sp.Integer(1))}
    for unmatched in (0, 1):
        opened = (pairs + unmatched) * stack.open_value(a) * sp.exp(R + a + t)
        closed = pairs * stack.close_value(b) * sp.exp(R + b + t)
        found[f"sharper: coordinate, {unmatched} unmatched"] = opened + closed - unmatched * sp.exp(R + t)
    return found


def _logits(gap: Claim, lost: Claim) -> dict[str, sp.Expr]:
    low, least, impossible = positive("L p m")
    normaliser = 1 + impossible * sp.exp(-low)
    # The possible brackets have the mass 1 before softmax divides, and 1 / normaliser behind it.
    variation = ((1 - 1 / normaliser) + impossible * sp.exp(-low) / normaliser) / 2
    return {
        "logits: the least gap": sp.log(least) - (-low) - gap(low, least),
        "softmax: what impossible brackets get": variation - lost(impossible, low),
    }


def _signs(seen: Claim) -> dict[str, tuple[sp.Expr, str]]:
    depth = sp.Symbol("d", nonnegative=True)
    k, odds = positive("k r")
    q = odds / (1 + odds)  # any number between 0 and 1
    return {
        "depth: deeper is more": (sp.diff(seen(depth), depth), "> 0"),
        "logits: 1/k is never the least": (1 / k - q / k, "> 0"),
    }
