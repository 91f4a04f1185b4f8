"""Formulas of attention late in the full flow, in JavaScript: the claims that its proofs decide."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from yzflow.pages.files import formulas

if TYPE_CHECKING:
    from theory.symbolic import Claim


@cache
def script() -> str:
    """Claims on late attention."""
    return formulas("late", claims())


def claims() -> dict[str, tuple[Claim, str]]:
    """Claims and their arguments."""
    from yzflow_beyond_scan_and_snap.proofs import late_full_flow as late

    def rates(m, k, c, d, A, B, C, *others):
        named = dict(zip((late.P, late.Q, late.ETA_Y, late.ETA_Z), others, strict=True))
        return tuple(rate.subs(named) for rate in late.rates(m, k, c, d, A, B, C))

    return {
        "exponent": (late.exponent, "M K"),
        "rates": (rates, "M K c d A B C p q etaY etaZ"),
        "theoryTime": (late.theory_time, "M K y"),
        "theoryRate": (late.theory_rate, "M K"),
    }
