r"""Match3 by one layer decides disjointness: which triples vanish mod M, and what Alice sends of a head.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), the lower bound for one layer. That messages which tell
disjoint sets from others are 2^n at least is `messages_that_decide` in Coq.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

TOKENS = "a token depends on one x, so that Alice knows hers and the first, and Bob his and the first"
SENT = "a softmax over both sides is the mean of both means, weighted by the sums of exponentials"


def partner(v: sp.Expr) -> sp.Expr:
    """The residue that makes a triple with x_1 = -1 and v."""
    return 1 - v


def pairs(modulus: sp.Expr, odd: int) -> sp.Expr:
    """Number of pairs {v, 1 - v} of two residues of Z_M, without {-1, 2}; ``odd`` is M mod 2."""
    return (modulus - odd) / 2 - 1


def joined(own_mean: sp.Expr, own_sum: sp.Expr, mean: sp.Expr, total: sp.Expr) -> sp.Expr:
    """A head's output from both sides' means and sums of exponentials."""
    return (own_sum * own_mean + total * mean) / (own_sum + total)


def sent_bits(heads: sp.Expr, width: sp.Expr, bits: sp.Expr) -> sp.Expr:
    """Alice's message: a mean of m numbers and the logarithm of a sum for each head."""
    return heads * (width + 1) * bits


def derive(
    *, partner: Claim = partner, pairs: Claim = pairs, joined: Claim = joined, sent_bits: Claim = sent_bits
) -> Derivation:
    """The only partner of a residue, enough pairs, a head in two parts, and the length of the message."""
    v, shift, n = sp.symbols("v k n", integer=True)
    vanishing = {
        "pairs: both members and x_1": -1 + v + partner(v),
        "pairs: no other partner": -1 + v + (partner(v) + shift) - shift,
        "pairs: a partner's partner": partner(partner(v)) - v,
        "pairs: that of x_1": partner(sp.Integer(-1)) - 2,
        "pairs: enough at the least odd M = N + 2, N = 2n + 1": pairs(2 * n + 3, 1) - n,
        "pairs: and at the least even one": pairs(2 * n + 4, 0) - (n + 1),
    }
    for modulus in SIZES["M"]:
        found = {frozenset((u, int(partner(u)) % modulus)) for u in range(modulus)} - {frozenset((modulus - 1, 2))}
        number = sum(len(one) == 2 for one in found)
        vanishing[f"pairs: counted, M = {modulus}"] = pairs(sp.Integer(modulus), modulus % 2) - number
    # Two tokens of Alice's and one of Bob's: e^score and value each.
    e, x = sp.symbols("e_1:4", positive=True), sp.symbols("x_1:4", real=True)
    whole = sum(a * b for a, b in zip(e, x, strict=True)) / sum(e)
    both = joined((e[0] * x[0] + e[1] * x[1]) / (e[0] + e[1]), e[0] + e[1], x[2], e[2])
    vanishing["split: a head in two parts"] = sp.simplify(whole - both)
    heads, width, bits = sp.symbols("H m p", positive=True)
    one = sent_bits(sp.Integer(1), width, sp.Integer(1)) - (width + 1)
    vanishing["split: numbers of one head"] = one
    vanishing["split: bits of all heads"] = sent_bits(heads, width, bits) - heads * bits * (width + 1)
    return Derivation(
        statement="Match3 by one layer",
        vanishing=vanishing,
        steps=(
            r"$-1 + s + t \equiv 0$ exactly if $t \equiv 1 - s$. Tokens are $-1$ and members of different pairs"
            r" $\{v, 1 - v\}$ other than $\{-1, 2\}$: a triple with $x_1 = -1$ vanishes exactly if both members of a"
            r" pair occur, Alice's and Bob's of one number.",
            r"Z_M has $\frac{M-1}2$ or $\frac M2$ pairs of two residues, and one of them is $\{-1, 2\}$: enough from"
            r" $M = N + 2$ on.",
            r"A head's output in row 1 is $(a\bar a + b\bar b)/(a + b)$, with Alice's sum of exponentials a and mean"
            r" $\bar a$, and Bob's: she sends $m + 1$ numbers of each head, and Bob knows the output.",
        ),
        scope="any N, M >= N + 2, heads and widths; pairs are counted to M = 12; a head in two parts for three tokens",
        sizes=SIZES,
        prose=(TOKENS, SENT),
        proves=("Match3, one layer",),
    )


SIZES = {"M": tuple(range(4, 13))}
