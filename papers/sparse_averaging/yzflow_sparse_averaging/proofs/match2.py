"""Match2 with one unit: the temperature and the blank score at which the largest error is exactly eta.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). Scores are c cos(2 pi (x_i + x_j)/M), the blank's is c s_0,
and the output is one minus the blank's share. The odds o = (1 - eta)/eta = exp(L) exceed one.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

TOKENS = sp.Symbol("N", positive=True, integer=True)
GAP = sp.Symbol("g", positive=True)  # 1 - cos(2 pi/M)
EXCESS = sp.Symbol("e", positive=True)
ODDS = 1 + EXCESS


SINES = "both sines are of angles between 0 and pi"


def temperature(n_tokens: sp.Expr, odds: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """c = (ln N + 2 L)/(1 - cos(2 pi/M)), L = ln o."""
    return (sp.log(n_tokens) + 2 * sp.log(odds)) / gap


def blank_score(odds: sp.Expr, c: sp.Expr) -> sp.Expr:
    """s_0 = 1 - L/c."""
    return 1 - sp.log(odds) / c


def largest_error(odds: sp.Expr) -> sp.Expr:
    """eta, for odds o = (1 - eta)/eta."""
    return 1 / (1 + odds)


def derive(
    *, temperature: Claim = temperature, blank_score: Claim = blank_score, largest_error: Claim = largest_error
) -> Derivation:
    """Both errors in the worst case, and a proof that no other case is worse."""
    eta = largest_error(ODDS)
    c = temperature(TOKENS, ODDS, GAP)
    blank = sp.exp(sp.expand(c * (blank_score(ODDS, c) - 1)))  # in units of exp(c)
    near = sp.exp(sp.expand(-c * GAP))  # at most, for a token that does not match
    matches, rest, share = sp.symbols("k r s", nonnegative=True)
    size = sp.Symbol("w", positive=True)
    step, modulus = sp.symbols("d M", positive=True, integer=True)
    product = -2 * sp.sin(sp.pi * (step + 1) / modulus) * sp.sin(sp.pi * (step - 1) / modulus)
    return Derivation(
        statement="Match2",
        vanishing={
            "one match, nothing else near": sp.simplify(blank / (1 + blank) - eta),
            "no match, all N tokens nearest": sp.simplify(TOKENS * near / (TOKENS * near + blank) - eta),
            "nearest residues": sp.expand(
                (sp.cos(2 * sp.pi * step / modulus) - sp.cos(2 * sp.pi / modulus) - product).rewrite(sp.exp)
            ),
        },
        signed={
            "more matches, smaller error": (
                size / (1 + size) - size / (1 + matches + rest + size),
                ">= 0",
            ),
            "tokens further off, smaller error": (
                (rest + share) / (rest + share + size) - rest / (rest + size),
                ">= 0",
            ),
        },
        steps=(
            r"In units of $e^c$ a match weighs 1, the blank $e^{-L} = 1/o$, and any other token at most"
            r" $e^{-c(1-\cos(2\pi/M))} = 1/(N o^2)$.",
            r"With a match the error is the blank's share, at most $(1/o)/(1 + 1/o) = 1/(1+o) = \eta$.",
            r"Without one it is the other tokens' share, at most $(1/o^2)/(1/o^2 + 1/o) = \eta$.",
            r"$\cos(2\pi d/M) - \cos(2\pi/M) = -2\sin(\pi(d+1)/M)\sin(\pi(d-1)/M) \le 0$ for $1 \le d \le M-1$: both"
            r" sines are of angles in $[0, \pi]$.",
        ),
        scope="all N, M >= 2 and 0 < eta < 1/2",
        sizes={},
        prose=(SINES,),
    )
