"""Match3 by sorted groups, m of about sqrt(N): how many triples of groups matter, leaks, rounding and size.

Against the conjecture on the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). The construction is
`yzflow_sparse_averaging.sorted_groups`: G^2 <= N - 1 < (G + 1)^2, groups of S = ceil(N/G) ranks.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging import sorted_groups as construction
from yzflow_sparse_averaging.parts import total
from yzflow_sparse_averaging.proofs._sizes import largest

FURTHER, RESIDUES, REST, BELOW = sp.symbols("n h r e", nonnegative=True)
ALIKE, MODULUS = 1 + FURTHER, 2 + RESIDUES  # tokens that agree (or that a group has), and M
TOKENS = ALIKE + REST


def least(largest_before: sp.Expr) -> sp.Expr:
    """The least residue that a group can own, if the group before it has this largest residue."""
    return largest_before + 1


def triples(groups: sp.Expr) -> sp.Expr:
    """At most so many triples A <= B <= C of groups can hold a sum of M or 2M."""
    return groups**2


def digit_leak(n_tokens: sp.Expr) -> sp.Expr:
    """Largest weight of a token that differs in a higher digit."""
    return 1 / (8 * n_tokens)


def digit_step(n_tokens: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for shares of digits."""
    return 1 / (2 * n_tokens)


def gather_leak(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Largest weight of a token outside the group (or of a token that is not its last)."""
    return 1 / (8 * n_tokens * modulus)


def gather_step(group_size: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for gathered residues."""
    return 1 / (2 * group_size)


def report_leak(n_tokens: sp.Expr) -> sp.Expr:
    """Largest weight of the token without a triple, relative to a wanted token; other tokens have its square."""
    return 1 / (8 * n_tokens**2)


def report_threshold(n_tokens: sp.Expr) -> sp.Expr:
    """Threshold of the average of a bit."""
    return 1 / (2 * n_tokens)


def report_step(n_tokens: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for the report's averages."""
    return 1 / (4 * n_tokens)


def weight_error(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Allowed relative error of numerators and denominators of attention."""
    return 1 / (32 * n_tokens * modulus)


def group_size(groups: sp.Expr) -> sp.Expr:
    """S, at most."""
    return groups + 3


def depth(digits: sp.Expr) -> sp.Expr:
    """D for K digits."""
    return 3 + sp.ceiling(digits / 3)


def heads() -> int:
    """H."""
    return 3


def digits(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """K, at most."""
    return sp.ceiling(2 * sp.log(modulus * n_tokens) / sp.log(n_tokens))


def dimension(n_tokens: sp.Expr, modulus: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Widths for groups and for codes of prefixes; m is at most the larger."""
    return sp.sqrt(n_tokens) + 3, sp.ceiling(sp.log(modulus * n_tokens, 2))


def token_width(n_tokens: sp.Expr) -> sp.Expr:
    """Numbers of a token, at most."""
    return 5 * sp.sqrt(n_tokens) + 19


def bits(n_tokens: sp.Expr, modulus: sp.Expr) -> tuple[sp.Expr, ...]:
    """Numbers of bits for residues and for averages; the larger is enough."""
    log_tokens = sp.log(n_tokens, 2)
    return sp.log(modulus, 2) + log_tokens / 2 + 5, log_tokens + 5


def derive(
    *,
    least: Claim = least,
    triples: Claim = triples,
    digit_leak: Claim = digit_leak,
    digit_step: Claim = digit_step,
    gather_leak: Claim = gather_leak,
    gather_step: Claim = gather_step,
    report_leak: Claim = report_leak,
    report_threshold: Claim = report_threshold,
    report_step: Claim = report_step,
    weight_error: Claim = weight_error,
    group_size: Claim = group_size,
    depth: Claim = depth,
    heads: Claim = heads,
    dimension: Claim = dimension,
    token_width: Claim = token_width,
) -> Derivation:
    """The lemma on diagonals; exact counts, residues and bits after rounding; and the sizes.

    The sizes are sums over the layers and the token that `yzflow_sparse_averaging.sorted_groups` builds for one N.
    """
    a, b, c, further = sp.symbols("a b c k", nonnegative=True)  # largest residues of three groups
    highest = a + b + c
    later = least(a) + least(b) + least(c) + further
    place, groups = sp.Symbol("b", integer=True, nonnegative=True), sp.Symbol("G", integer=True, positive=True)
    # Diagonals with C - A = d, b = B - A from 0 to d: two triples each, but the longest ones have no more than one.
    diagonals = sp.summation(2 * (place + 1), (place, 0, groups - 2)) + groups
    most = 1 + sp.Symbol("g", nonnegative=True)  # G
    half = sp.Rational(1, 2)
    error = weight_error(TOKENS, MODULUS)
    ratio = (1 + error) / (1 - error)
    wrong = digit_leak(TOKENS) / (1 + BELOW) * REST
    counted = ALIKE * digit_step(TOKENS) / 2
    outside = gather_leak(TOKENS, MODULUS) / (1 + BELOW)
    share = ALIKE / (ALIKE + REST * outside)
    rounding = ALIKE * gather_step(ALIKE) / 2
    bit_ratio = sp.Rational(33, 31)  # at most, for the error is below 1/32
    nobody = report_leak(TOKENS + 1) / (1 + BELOW)  # N >= 2
    threshold, off = report_threshold(TOKENS + 1), report_step(TOKENS + 1) / 2
    r, fixed = sp.symbols("r D", positive=True)
    # G^2 <= N - 1, N <= G S, and so G + 1 <= S; at most G groups have tokens; K digits, codes of c digits.
    beyond, lower = sp.symbols("x y", nonnegative=True)
    code, number = sp.symbols("c K", positive=True, integer=True)
    size = most + 1 + beyond
    D, H, m = total(construction.layers(size, most, code, sp.ceiling(number / 3)), largest=largest)
    width = construction.layout(size, most).width
    tokens = most**2 + 1 + lower
    groups_in_width = width.subs(beyond, group_size(most) - most - 1)  # of the largest size
    return Derivation(
        statement="Match3 by sorted groups",
        vanishing={
            "diagonals": sp.expand(diagonals - triples(groups)),
            "sizes: D": D - depth(number),
            "sizes: H": sp.sympify(H - heads()),
            "sizes: m is a group's size or a code's": m - sp.Max(size, code),
            "sizes: m H D against N / log N, in the limit": sp.limit(
                heads() * fixed * (dimension(r**2, 2)[0] + token_width(r**2)) * 2 * sp.log(r) / r**2, r, sp.oo
            ),
        },
        signed={
            "of a diagonal one triple at most": (later - highest, "> 0"),
            # N <= (G + 1)^2, and S <= (N + G - 1)/G.
            "sizes: groups have at most G + 3 tokens": (
                group_size(most) - ((most + 1) ** 2 + most - 1) / most,
                ">= 0",
            ),
            # With r for sqrt N, which is above G.
            "sizes: m, by groups": (dimension((most + lower) ** 2, 2)[0] - group_size(most), ">= 0"),
            "sizes: numbers of a token": (
                sp.expand(token_width((most + lower) ** 2) - groups_in_width),
                ">= 0",
            ),
            "sizes: S is sqrt(N) at least": ((tokens / most) ** 2 - tokens, ">= 0"),
            "counts too small, by less than 1/2": (
                half - ALIKE * (1 - ALIKE / (ratio * (ALIKE + wrong))) - counted,
                "> 0",
            ),
            "counts too large, by less than 1/2": (half - ALIKE * (ratio - 1) - counted, "> 0"),
            "a count of zero, too large by less than 1/2": (
                half - ratio * ALIKE * wrong / (ALIKE + wrong) - counted,
                "> 0",
            ),
            "residues too small, by less than 1/2": (
                half - (MODULUS - 1) * (1 - share / ratio) - rounding,
                "> 0",
            ),
            "residues too large, by less than 1/2": (
                half - (MODULUS - 1) * (ratio * share * (1 + REST * outside) - 1) - rounding,
                "> 0",
            ),
            "a residue of zero, too large by less than 1/2": (
                half - (MODULUS - 1) * ratio * share * REST * outside - rounding,
                "> 0",
            ),
            "the error of bits": (sp.Rational(1, 32) - error, "> 0"),
            "report: one bit is enough": (1 / (bit_ratio * (TOKENS + nobody)) - off - threshold, "> 0"),
            "report: all others are not": (threshold - bit_ratio * (TOKENS + 1) * nobody - off, "> 0"),
        },
        steps=STEPS,
        scope="every N >= 3 and M >= 2; queries, keys, values and outputs in fixed-point numbers, numerators and"
        " denominators of attention with relative errors of at most 1/(32 N M); the size for M = N^a, a fixed",
        sizes={},
        prose=(SUMS, CODES, DIGITS, CODE),
        proves=("Conjecture", "Match3, sorted"),
    )


SUMS = "a sum of three residues that vanishes mod M is 0, M or 2M"
CODES = "codes of integers in binary, digits 1 and -1, differ by 2 at least in their product"
CODE = "codes of integers below MN have log2 MN digits, rounded up"
DIGITS = "K digits in a base of at least sqrt(N) hold all numbers below MN if K is at least 2 ln(MN)/ln(N)"
STEPS = (
    r"Rank. The numbers $x_j N + j$ are different and have K digits in the base S. Of the $c$ tokens that"
    r" agree in the higher digits a head finds the share of each next digit; tokens that do not agree weigh at"
    r" most $1/(8N)$, and shares are rounded to multiples of $2^{-f} \le 1/(2N)$. So $c$ times a share is"
    r" within 1/2 of a count, and the counts of smaller digits add up to the rank.",
    r"Group A owns the residues above the largest one of group A - 1, up to its own largest one. Each residue"
    r" that occurs is owned by one group, which holds it.",
    r"If (A, B, C) can hold a sum $\tau$, then $\tau$ is at most the sum of their largest residues, and less"
    r" than the sum of the least ones that A + k, B + k and C + k own: of each diagonal at most one triple is"
    r" left. With A $\le$ B $\le$ C and C - A = d there are d + 1 diagonals, of $G - d$ triples each, and"
    r" $\tau$ is M or 2M; the sum 0 is that of three zeros. So the G diagonals with $d = G - 1$, of a single"
    r" triple, leave G at most, and all others two each: $\sum_{d<G-1} 2(d+1) + G = G^2$. As $G^2 \le N - 1$, a"
    r" token takes one triple. For G = 1, 2 and 3 some groups leave as many.",
    r"Gather. Scores are an integer $\lambda$ with $e^{-\lambda} \le 1/(8NM)$ or 0. The average of a group of"
    r" $s$ tokens times $s$ is short by $(M-1)(N-s)e^{-\lambda}/s$ at most, and too large by"
    r" $(M-1)(N-s)e^{-\lambda}$ at most, both below 1/8; numerators and denominators with relative errors of"
    r" $1/(32NM)$ add less than 1/8, and rounding to multiples of $2^{-f} \le 1/(2S)$ adds 1/4 at most. The"
    r" same holds for the G largest residues.",
    r"Report. Tokens that are asked for weigh 1, the token without a triple $o \le 1/(8N^2)$, others $o^2$: a"
    r" bit that is set gives more than $1/(2N)$, all others together less.",
    r"$N \le (G+1)^2$ gives $S \le (N+G-1)/G \le G + 3$, and $G^2 < N$: $m \le \sqrt N + 3$ from where $\sqrt"
    r" N$ is longer than the codes of prefixes, of $\log_2 MN$ digits. $S \ge \sqrt N$: for $M \le N^a$ there"
    r" are $K \le 2(a+1)$ digits, rounded up, and D = 3 + K/3 layers, rounded up. A token has $7 + G + 4S \le"
    r" 5\sqrt N + 19$ numbers. Over $N/\log N$, $mHD$ tends to 0, also if m is to be no less than that.",
)
