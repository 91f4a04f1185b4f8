"""The two layers for Match3 with m = N^(2/3): what leaking attention can do, for all N and M, in exact arithmetic.

Against the conjecture on the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). N = G^3 tokens, groups
of S = G^2 slots; both layers give one group the score lambda and all others 0.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

MORE, RESIDUES = sp.symbols("g h", nonnegative=True)
GROUPS, MODULUS = 1 + MORE, 2 + RESIDUES
SLOTS, TOKENS = GROUPS**2, GROUPS**3


def leak(n_tokens: sp.Expr, slots: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """exp(-lambda), the weight of a token outside the chosen group beside one inside."""
    return 1 / (4 * n_tokens * slots * modulus)


def threshold(slots: sp.Expr) -> sp.Expr:
    """What an averaged bit is compared with."""
    return 1 / (2 * slots)


def size(n_tokens: sp.Expr) -> sp.Expr:
    """m H D with m = N^(2/3), three heads and two layers."""
    return 6 * n_tokens ** sp.Rational(2, 3)


def derive(*, leak: Claim = leak, threshold: Claim = threshold, size: Claim = size) -> Derivation:
    """Gathered numbers within 1/2 of the integer that they stand for, bits on their side of the threshold, the size."""
    outside = leak(TOKENS, SLOTS, MODULUS)
    inside = 1 / (SLOTS + (TOKENS - SLOTS) * outside)  # a token's attention, for the chosen group
    # S times the average at a slot: the slot's own number, and those of the same slot in G - 1 other groups.
    short = (MODULUS - 1) * (1 - SLOTS * inside)
    foreign = SLOTS * (GROUPS - 1) * (MODULUS - 1) * outside * inside
    scale = sp.Symbol("r", positive=True)  # cube root of N
    return Derivation(
        statement="Match3 in N^(2/3)",
        vanishing={"m H D": sp.powdenest(size(scale**3), force=True) - 2 * 3 * scale**2},
        signed={
            "gathered numbers too small, by less than 1/2": (sp.Rational(1, 2) - short, "> 0"),
            "gathered numbers too large, by less than 1/2": (sp.Rational(1, 2) - foreign, "> 0"),
            "one bit of its group is enough": (inside - threshold(SLOTS), "> 0"),
            "all bits of other groups are not": (threshold(SLOTS) - (TOKENS - SLOTS) * outside * inside, "> 0"),
        },
        steps=(
            r"A token of the chosen group has attention $1/(S + (N-S)e^{-\lambda})$, any other one $e^{-\lambda}$ times"
            r" that, $e^{-\lambda} = 1/(4NSM)$.",
            r"S times the average at a slot is short of $x_j \le M - 1$ by $x_j (N-S)e^{-\lambda}/(S +"
            r" (N-S)e^{-\lambda})$"
            r" at most, and has $G - 1$ leaked numbers too much: within 1/2, so that rounding finds $x_j$.",
            r"Layer 1 so knows the three groups of its token exactly, and sets for each slot of A whether two tokens"
            r" of B"
            r" and C complete it. Token $i$ of group A has a match exactly when one of the $G^2$ triples (A, B, C)"
            r" says so.",
            r"Layer 2 averages its bit over them: at least $1/(S + (N-S)e^{-\lambda}) > 1/(2S)$ with a match, and less"
            r" without.",
            r"$mHD = 6 N^{2/3}$ is below any $c\,N/\log N$ for large N; below $N/\log_2 N$ from about $2\cdot10^6$ on.",
        ),
        scope="every N = G^3 and M >= 2, in exact arithmetic; nothing on rounding",
        sizes={},
        prose=(
            "triples of groups: each token and each pair that completes it belong to one of them",
            "6 N^(2/3) is below any multiple of N / log N for large N",
        ),
    )
