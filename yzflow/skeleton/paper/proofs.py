"""Proofs: each claim is a function of symbols, and is derived from the equation of the flow."""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation


def elapsed(z: sp.Expr) -> sp.Expr:
    """The claimed time eta t at which the logit is z."""
    return z + sp.exp(z) - 1


def climb(*, elapsed: Claim = elapsed) -> Derivation:
    """Lemma 1, from dz/dt = eta/(1 + e^z) and z(0) = 0."""
    z = sp.Symbol("z", real=True)
    claimed = elapsed(z)
    return Derivation(
        statement="Lemma 1",
        vanishing={
            "rate of the clock": sp.diff(claimed, z) / (1 + sp.exp(z)) - 1,
            "start": claimed.subs(z, 0),
        },
        steps=(
            r"$\frac{d}{dt}(z + e^z) = (1 + e^z)\,\dot z = \eta$ by the equation of the flow.",
            r"At $t = 0$ it is $1$, so that it is $1 + \eta t$.",
        ),
        scope="every rate and every time",
        sizes={},
    )


PROOFS = {"climb": climb}
MISTAKES = {
    "without the linear term": (climb, {"elapsed": lambda z: sp.exp(z) - 1}, "rate"),
    "from another start": (climb, {"elapsed": lambda z: z + sp.exp(z)}, "start"),
}
