"""Assisted Match3 for all N and M: neighbours by two layers with m = 3, windows by one layer with m = 4K + 2.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896) announce an efficient representation on the slides, without a
construction. Ours are `averaging.match3_bigram` and `match3_local`; their second half is Match2
(`yzflow_sparse_averaging.proofs.match2`).
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging import matching, windows
from yzflow_sparse_averaging.parts import total
from yzflow_sparse_averaging.proofs import match2
from yzflow_sparse_averaging.proofs._sizes import largest

MEMBERS, OTHERS, RESIDUES, BELOW, REACH = sp.symbols("k n h e K", nonnegative=True)
MODULUS = 2 + RESIDUES
GAP = sp.Symbol("g", positive=True)


def copy_leak(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Largest weight of a wrong position relative to the next position, on a ring of N + 1."""
    return 1 / (4 * (n_tokens + 1) * (modulus + 1))


def copy_temperature(n_tokens: sp.Expr, modulus: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """c of the copy, for the gap 1 - cos(2 pi/(N + 1))."""
    return sp.log(4 * (n_tokens + 1) * (modulus + 1)) / gap


def last_score() -> sp.Expr:
    """Score of the last token, which has no next token, over c."""
    return sp.Integer(-1)


def window_leak(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Largest weight of a token outside the window, relative to a token inside."""
    return 1 / (4 * n_tokens * modulus)


def window_temperature(n_tokens: sp.Expr, modulus: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """c of the window, for the gap 1 - cos(2 pi/B) of B blocks."""
    return sp.log(4 * n_tokens * modulus) / gap


def depth() -> int:
    """D for neighbours."""
    return 2


def dimension() -> int:
    """m for neighbours."""
    return 3


def window_depth() -> int:
    """D for windows."""
    return 1


def window_dimension(reach: sp.Expr) -> sp.Expr:
    """m for windows."""
    return 4 * reach + 2


def window_token_width(reach: sp.Expr) -> sp.Expr:
    """Numbers of a token for windows."""
    return 2 * reach + 3


def derive(
    *,
    copy_leak: Claim = copy_leak,
    copy_temperature: Claim = copy_temperature,
    last_score: Claim = last_score,
    window_leak: Claim = window_leak,
    window_temperature: Claim = window_temperature,
    depth: Claim = depth,
    dimension: Claim = dimension,
    window_depth: Claim = window_depth,
    window_dimension: Claim = window_dimension,
    window_token_width: Claim = window_token_width,
) -> Derivation:
    """Copies and gathered numbers within 1/2 of the integer that they stand for, Match2's errors, and sizes.

    Sizes are added up from the layers and tokens that are built, for every K.
    """
    half = sp.Rational(1, 2)
    n_tokens = 1 + OTHERS
    # Neighbours: N other positions, values from -1 (the blank) to M - 1.
    other = copy_leak(n_tokens, MODULUS) / (1 + BELOW)
    copied = n_tokens * other * MODULUS / (1 + n_tokens * other)
    # cos(2 pi/M) = 1 - 2 sin(pi/M)^2 is -1 at least; the square is 1/(1 + e), e >= 0.
    nearest = 1 - 2 / (1 + BELOW)
    pairs = match2.derive()
    # Windows: k + 1 members among N = k + n + 1 tokens, numbers from 1 to M.
    members = 1 + MEMBERS
    outside = window_leak(members + OTHERS, MODULUS) / (1 + BELOW)
    together = members + OTHERS * outside
    turn = sp.symbols("a b", real=True)
    queries, keys = (sp.Matrix([[sp.cos(one), sp.sin(one)]]) for one in turn)
    found, windowed = (
        total(one, largest=largest) for one in (matching.BIGRAM_LAYERS, windows.layers(REACH))
    )  # D, H and m
    return Derivation(
        statement="Match3, assisted",
        vanishing={
            "neighbours: the weight of another position": sp.simplify(
                sp.exp(sp.expand(-copy_temperature(n_tokens, MODULUS, GAP) * GAP)) - copy_leak(n_tokens, MODULUS)
            ),
            **{f"neighbours, Match2: {name}": entry for name, entry in pairs.vanishing.items()},
            "neighbours: sizes: D": sp.sympify(found[0] - depth()),
            "neighbours: sizes: H": sp.sympify(found[1] - 1),
            "neighbours: sizes: m": sp.sympify(found[2] - dimension()),
            "window: the weight of a token outside": sp.simplify(
                sp.exp(sp.expand(-window_temperature(n_tokens, MODULUS, GAP) * GAP)) - window_leak(n_tokens, MODULUS)
            ),
            "window: the score is a cosine of blocks": sp.expand(
                sp.expand_trig(sp.cos(turn[0] - turn[1])) - queries.dot(keys)
            ),
            "window: sizes: D": sp.sympify(windowed[0] - window_depth()),
            "window: sizes: H": sp.sympify(windowed[1] - 1),
            "window: sizes: m": sp.expand(windowed[2] - window_dimension(REACH)),
            "window: sizes: numbers of a token": sp.expand(windows.layout(REACH).width - window_token_width(REACH)),
        },
        signed={
            "neighbours: a copy off by less than 1/2": (half - copied, "> 0"),
            "neighbours: the last token no nearer than any": (nearest - last_score(), ">= 0"),
            **{f"neighbours, Match2: {name}": entry for name, entry in pairs.signed.items()},
            "window: gathered numbers too small, by less than 1/2": (
                half - MODULUS * (1 - members / together),
                "> 0",
            ),
            "window: gathered numbers too large, by less than 1/2": (
                half - members * OTHERS * outside * MODULUS / together,
                "> 0",
            ),
        },
        steps=(
            r"Neighbours, layer 1: on a ring of $N + 1$ positions the next one scores c and each of the $N$ others at"
            r" most $c\cos(2\pi/(N+1))$, so that it weighs at most $1/(4(N+1)(M+1))$. Values are $-1, .., M - 1$: the"
            r" copy is within 1/4 of $x_{j+1}$, and is rounded to it.",
            r"Layer 2 is Match2 with $x_j + x_{j+1}$ in the keys: a match scores c, every other token at most"
            r" $c\cos(2\pi/M)$, the last one with its score $-c$ too, and its errors are those of Match2.",
            r"Window: shift positions by K, and write them $bq + r$ with $0 \le r < q = 2K + 1$. Of q consecutive ones"
            r" each r occurs once, in a block $\beta(r)$. Token $(b, r)$ scores $c\cos(2\pi(b - \beta(r))/B)$: c if it"
            r" is in the window, and at most $c\cos(2\pi/B)$ if it is not, for blocks differ by less than B.",
            r"Tokens inside weigh 1 and others at most $1/(4NM)$. Column r of the output, times the number of members,"
            r" is short of the member's $x + 1 \le M$ by M times the share of the others at most, and has at most their"
            r" weights times M too much: both are below 1/2, and the nearest integer is $x + 1$.",
            r"The output map knows all tokens of the window, and from its position which places lie beyond the ends.",
        ),
        scope="all N, M >= 2 and K, in exact arithmetic",
        sizes={},
        prose=(RING, match2.SINES, PLACES),
    )


RING = "of N + 1 positions on a ring, all but the next one have a cosine of at most cos(2 pi/(N + 1)), as in Match2"
PLACES = "of q consecutive positions each residue mod q occurs once, and blocks of the N + 2K positions differ by < B"
