r"""Linear activation: closed form of v' = Delta e^{v^2/2}, and its blow-up time."""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation


def left(v: sp.Expr) -> sp.Expr:
    """The claim for Delta t, as a function of v."""
    return sp.sqrt(sp.pi / 2) * sp.erf(v / sp.sqrt(2))


def blow_up(delta: sp.Expr) -> sp.Expr:
    """The claim for the time at which v is infinite."""
    return sp.sqrt(sp.pi / 2) / delta


def derive(*, left: Claim = left, blow_up: Claim = blow_up) -> Derivation:
    """Proof by the derivative of ``left`` along the flow, its start and its limit."""
    v = sp.Symbol("v", real=True)
    delta = sp.Symbol("Delta", positive=True)
    return Derivation(
        "Linear activation",
        {
            "rate": sp.diff(left(v), v) * delta * sp.exp(v**2 / 2) - delta,
            "start": left(sp.Integer(0)),
            "blow-up": sp.limit(left(v), v, sp.oo) - delta * blow_up(delta),
        },
        steps=(
            r"$\dot v e^{-v^2/2} = \Delta$, and the left side is the derivative of $\sqrt{\pi/2}\,"
            r"\mathrm{erf}(v/\sqrt 2)$.",
            r"That is at most $\sqrt{\pi/2}$: the largest $|\Delta_j|$ gets there first.",
        ),
        scope="each entry by itself",
        sizes={},
    )
