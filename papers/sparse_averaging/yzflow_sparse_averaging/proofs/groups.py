"""The two layers for Match3 with m = N^(2/3): bounds on leaks and rounding for all N and M, by exact inequalities.

Against the conjecture on the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). N = G^3 tokens, groups
of S = G^2 slots; both layers give one group the score lambda and all others 0.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging import groups as construction
from yzflow_sparse_averaging.parts import total
from yzflow_sparse_averaging.proofs._sizes import largest

MORE, RESIDUES, BELOW = sp.symbols("g h e", nonnegative=True)
GROUPS, MODULUS = 1 + MORE, 2 + RESIDUES
SLOTS, TOKENS = GROUPS**2, GROUPS**3


def leak(n_tokens: sp.Expr, slots: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Upper bound of exp(-lambda), the weight of a token outside the chosen group relative to a token inside."""
    return 1 / (4 * n_tokens * slots * modulus)


def threshold(slots: sp.Expr) -> sp.Expr:
    """Threshold of an averaged bit."""
    return 1 / (2 * slots)


def step(slots: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for outputs; the step is at least half of it."""
    return 1 / (2 * slots)


def weight_error(modulus: sp.Expr) -> sp.Expr:
    """Allowed relative error of numerators and denominators of attention."""
    return 1 / (32 * modulus)


def largest_output(modulus: sp.Expr) -> sp.Expr:
    """Bound of the outputs, in steps: numbers of log2 of it and a sign."""
    return 4 * modulus


def depth() -> int:
    """D."""
    return 2


def heads() -> int:
    """H."""
    return 3


def dimension(n_tokens: sp.Expr) -> sp.Expr:
    """m."""
    return n_tokens ** sp.Rational(2, 3)


def token_width(n_tokens: sp.Expr) -> sp.Expr:
    """Numbers of a token."""
    return 3 * n_tokens ** sp.Rational(2, 3) + 2


def bits(n_tokens: sp.Expr, modulus: sp.Expr) -> tuple[sp.Expr, ...]:
    """Numbers of bits for residues, averages and positions; the largest is enough."""
    log_tokens = sp.log(n_tokens, 2)
    return sp.log(modulus, 2) + 4, sp.Rational(2, 3) * log_tokens + 4, log_tokens + 2


def size(n_tokens: sp.Expr) -> sp.Expr:
    """m H D."""
    return 6 * n_tokens ** sp.Rational(2, 3)


def strict_size(n_tokens: sp.Expr) -> sp.Expr:
    """m H D if m is no less than the width of a token."""
    return 18 * n_tokens ** sp.Rational(2, 3) + 12


def derive(
    *,
    leak: Claim = leak,
    threshold: Claim = threshold,
    step: Claim = step,
    weight_error: Claim = weight_error,
    largest_output: Claim = largest_output,
    depth: Claim = depth,
    heads: Claim = heads,
    dimension: Claim = dimension,
    token_width: Claim = token_width,
    size: Claim = size,
    strict_size: Claim = strict_size,
) -> Derivation:
    """Gathered numbers within 1/2 of their integers, bits on their side of the threshold, and sizes.

    The sizes are sums over the layers and the token that `yzflow_sparse_averaging.groups` builds for one N.
    """
    outside = leak(TOKENS, SLOTS, MODULUS) / (1 + BELOW)  # lambda is an integer, so that it may be less
    rounding = step(SLOTS) / 2
    wrong = weight_error(MODULUS)
    # Attention of a token of the chosen group, at the worst errors of numerator and denominator.
    together = SLOTS + (TOKENS - SLOTS) * outside
    least, most = (1 - wrong) / ((1 + wrong) * together), (1 + wrong) / ((1 - wrong) * together)
    # S times the average at a slot: the slot's own number, and those of the same slot in G - 1 other groups.
    short = (MODULUS - 1) * (1 - SLOTS * least)
    # Too large at most if it is M - 1 itself, or 0, for it is linear in the number.
    more = (MODULUS - 1) * (SLOTS * most * (1 + (GROUPS - 1) * outside) - 1)
    foreign = (MODULUS - 1) * SLOTS * most * (GROUPS - 1) * outside
    half, r = sp.Rational(1, 2), sp.Symbol("r", positive=True)  # cube root of N
    D, H, m = total(construction.layers(GROUPS), largest=largest)
    width = construction.layout(GROUPS).width

    def of_cube(claim):
        return sp.powdenest(claim(GROUPS**3), force=True)

    return Derivation(
        statement="Match3 in N^(2/3)",
        vanishing={
            "sizes: D": sp.sympify(D - depth()),
            "sizes: H": sp.sympify(H - heads()),
            "sizes: m": sp.expand(m - of_cube(dimension)),
            "sizes: numbers of a token": sp.expand(width - of_cube(token_width)),
            "sizes: m H D": sp.expand(m * H * D - of_cube(size)),
            "sizes: m H D, as wide as a token": sp.expand(largest(m, width) * H * D - of_cube(strict_size)),
            "sizes: m H D against N / log N, in the limit": sp.limit(
                sp.powdenest(size(r**3) + strict_size(r**3), force=True) * 3 * sp.log(r) / r**3, r, sp.oo
            ),
        },
        signed={
            "gathered numbers too small, by less than 1/2": (half - short - SLOTS * rounding, "> 0"),
            "gathered numbers too large, by less than 1/2": (half - more - SLOTS * rounding, "> 0"),
            "a gathered zero, too large by less than 1/2": (half - foreign - SLOTS * rounding, "> 0"),
            "one bit of its group is enough": (least - rounding - threshold(SLOTS), "> 0"),
            "all bits of other groups are not": (
                threshold(SLOTS) - (TOKENS - SLOTS) * outside * most - rounding,
                "> 0",
            ),
            "outputs are in range": (
                largest_output(MODULUS) - (MODULUS - 1) * most * (1 + (GROUPS - 1) * outside) / (step(SLOTS) / 2),
                ">= 0",
            ),
        },
        steps=(
            r"Scaled queries, keys and values are integers: $\lambda$ is the smallest one with $e^{-\lambda} \le"
            r" 1/(4NSM)$, keys are 0 and 1, values residues. A token of the chosen group has attention $1/(S +"
            r" (N-S)e^{-\lambda})$, any other one $e^{-\lambda}$ times that. Outputs are rounded to multiples of"
            r" $2^{-f} \le 1/(2S)$, which moves them by $1/(4S)$ at most.",
            r"S times the average at a slot is short of $x_j \le M - 1$ by $x_j (N-S)e^{-\lambda}/(S +"
            r" (N-S)e^{-\lambda})$ at most, and has $G - 1$ leaked numbers too much: with rounding within 1/2, so that"
            r" the nearest integer is $x_j$, even if numerators and denominators of attention have relative errors of"
            r" $1/(32M)$: $O(\log NM)$ significant bits of exponentials are enough, for a sum of N terms loses $\log_2"
            r" N$ of them.",
            r"Layer 1 so knows the three groups of its token exactly, and sets for each slot of A whether two tokens"
            r" of B and C complete it. Token $i$ of group A has a match exactly when one of the $G^2$ triples (A, B,"
            r" C) says so.",
            r"Layer 2 averages its bit over them: more than $1/(2S)$ with a match, and less without, after rounding.",
            r"Outputs of layer 1 are below $4M$ steps: $\log_2 M + 4$ bits with a sign are enough, those of layer"
            r" 2 are at most 1 and have $\log_2 S + 4$. $\lambda$ has $O(\log\log NM)$ bits, and positions, which"
            r" are parts of tokens, $\log_2 N + 2$.",
            r"Both layers have queries and keys of $G \le S$ numbers and values of $S$; a token has $3S + 2$ numbers."
            r" So $mHD = 6 N^{2/3}$, and $18 N^{2/3} + 12$ if m is to be no less than the width of a token. Over"
            r" $N/\log N$ both tend to 0.",
        ),
        scope="every N = G^3 and M >= 2; queries, keys, values and outputs in fixed-point numbers, numerators and"
        " denominators of attention with relative errors of at most 1/(32 M); p = O(log N) for M = poly(N)",
        sizes={},
        prose=("triples of groups: each token and each pair that completes it belong to one of them",),
        proves=("Conjecture",),
    )
