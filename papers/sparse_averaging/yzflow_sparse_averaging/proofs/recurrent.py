"""Recurrent networks: values that must be kept apart, for every q and error.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): a hidden state of order N bits. The proof compares two inputs
of +-1 with equal last tokens: a tokens are 1 in the first input only, and b tokens in the second only.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar

LESS, MORE, BEYOND = sp.symbols("b c d", nonnegative=True)


def separated(q: sp.Expr) -> sp.Expr:
    """Least difference of two averages on the best set, if a token differs."""
    return 2 / q


def allowed_error(q: sp.Expr) -> sp.Expr:
    """Below this, no output serves two inputs."""
    return 1 / q


def largest_q(n_tokens: sp.Expr) -> sp.Expr:
    """Largest q for which all values must be kept apart."""
    return n_tokens - 1


def decoded(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """z_j, from the sums over a set with j and over the same with N in its place, z_N = 1."""
    return 1 + first - second


def blocks(n_tokens: sp.Expr, q: sp.Expr) -> sp.Expr:
    """Bits that errors below 1 need: blocks of q tokens before the last one."""
    return sp.floor((n_tokens - 1) / q)


def ball_bits(share: sp.Expr) -> sp.Expr:
    """Bits per token of the number of strings that differ from a string in at most this share: entropy."""
    return -(share * sp.log(share) + (1 - share) * sp.log(1 - share)) / sp.log(2)


def derive(
    *,
    separated: Claim = separated,
    allowed_error: Claim = allowed_error,
    largest_q: Claim = largest_q,
    decoded: Claim = decoded,
    blocks: Claim = blocks,
    ball_bits: Claim = ball_bits,
) -> Derivation:
    """The least difference of averages, Bob's decoding, and the number of values that are pairwise far apart."""
    # a = b + c >= b tokens are 1 in the first input alone; the sets have q = largest - d tokens.
    a, n = LESS + MORE, sp.Symbol("N", positive=True)
    q = largest_q(n) - BEYOND
    # The set has all a tokens, then all N - a - b tokens on which the inputs agree, then as few of the b as needed.
    crowded = a - (q - (n - LESS))
    size: Scalar = sp.Symbol("q", positive=True)
    rest, value = sp.symbols("r z", real=True)
    tokens, whole = sp.symbols("N q", integer=True, positive=True)
    unused = (tokens - 1 - whole * blocks(tokens, whole)).rewrite(sp.frac)
    # q epsilon + v of the tokens that differ are of one kind, and b <= (N - 1)/2 of the other; q <= (N + 1)/2.
    error, some, spare, fewer = sp.symbols("epsilon v s f", positive=True)
    of_one_kind = 2 / size * (size * error + some)
    left = (n - ((n - 1) / 2 - spare)) - ((n + 1) / 2 - fewer)
    share = sp.Symbol("x", positive=True)
    # sum_k C(n, k) x^k (1 - x)^(n - k) = 1, and a term with k = n x - d is 2^(-n H(x)) ((1 - x)/x)^d C(n, k).
    term = (n * share - BEYOND) * sp.log(share) + (n - n * share + BEYOND) * sp.log(1 - share)
    odds = BEYOND * (sp.log(1 - share) - sp.log(share))
    return Derivation(
        statement="States must be many",
        vanishing={
            "no output serves two inputs": separated(size) - 2 * allowed_error(size),
            "one token that differs": (1 - (-1)) / size - separated(size),
            "what Bob decodes": decoded(rest + value, rest + 1) - value,
            "blocks: the average over one is its value": size * value / size - value,
            "blocks: two values are twice an error of one apart": (1 - (-1)) - 2 * sp.Integer(1),
            "strings: a term of the binomial theorem": term + n * ball_bits(share) * sp.log(2) - odds,
        },
        signed={
            "sets that must take some of the others, still one more": (sp.expand(crowded - 1), ">= 0"),
            "blocks: so many fit before the last token": (sp.expand(unused), ">= 0"),
            "strings: averages are more than 2 epsilon apart": (sp.expand(of_one_kind - 2 * error), "> 0"),
            "strings: sets need none of the other kind": (sp.expand(left), ">= 0"),
        },
        steps=(
            r"Two inputs part on $a \ge b$ tokens, $a \ge 1$. A set of the first kind, filled with tokens on which both"
            r" agree, has averages $\frac2q\min(q, a)$ apart, if $q \le N - b$. Else it takes all $a$, all $N - a - b$"
            r" on which both agree, and $q - (N - b)$ of the others: $\frac2q(a - b + N - q) \ge \frac2q$ for $q \le N"
            r" - 1$.",
            r"So no output is within less than $1/q$ of both: each of the $2^{N-1}$ values before the last token needs"
            r" a state of its own, $N - 1$ bits, for every q from 1 to $N - 1$. A network with one bit for each value"
            r" attains it. At $q = N$ one sum is asked for, and N states are enough.",
            r"As a protocol: sums over y with j and over y with N in j's place differ by $z_j - z_N$.",
            r"For errors $\varepsilon < 1$: before the last token $\lfloor (N-1)/q \rfloor$ blocks of q tokens fit. Let"
            r" values be the same within a block, 1 or -1. Two such inputs part on a block, with averages of 1 and of"
            r" -1: no output is within less than 1 of both, and they need different states, $\lfloor (N-1)/q \rfloor$"
            r" bits.",
            r"Or: values of which any two differ on more than $2q\varepsilon$ tokens part on more than $q\varepsilon$"
            r" of one kind, so that averages are more than $2\varepsilon$ apart (for $q \le (N+1)/2$ the set need not"
            r" take the others). Choosing greedily leaves $2^n/\sum_{k \le 2q\varepsilon}\binom nk$ of them, $n = N -"
            r" 1$, and the sum is at most $2^{nH(x)}$ with $x = 2q\varepsilon/n \le \frac12$: $1 = \sum_k \binom nk x^k"
            r" (1-x)^{n-k}$, and for $k = nx - d \le nx$ the term is $\binom nk 2^{-nH(x)}(\frac{1-x}{x})^d$.",
        ),
        scope="every network that reads the tokens once in order, values of $\\pm1$, the last output; errors below"
        " $1/q$: all $q < N$; errors below 1: the bits said, of order N for $q\\varepsilon \\le c(N-1)$, $c < 1/4$",
        sizes={},
        prose=(STATES, GREEDY),
        proves=("Recurrent",),
    )


STATES = "inputs in one state before one last token have one output, so that there are as many states as inputs apart"
GREEDY = "a greedy choice ends when balls around it cover all values"
