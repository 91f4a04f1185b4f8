"""The turning point of the entropy in balls: where attention is sparsest, whatever the rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yzflow as yz
from theory.enclosures import Crossing, logsumexp, softmax
from yzflow_joma.flows import ReducedFlow


def turning_point(mu: Sequence[float], *, between: tuple[float, float], bits: int = 80) -> Crossing:
    """The one time in a bracket at which the entropy of softmax(v^2/2) stops falling.

    Parameters
    ----------
    mu : (C,) float
        Those of v' = (mu - v) e^{v^2/2}.
    between : (float, float)
        The bracket of times; that there is one turn in it, from falling to rising, is proved.
    bits : int
        As of `yzflow.enclose`.
    """

    def rate(at: Any) -> Any:
        u = at.state["v"] ** 2 / 2
        return (logsumexp(u) - (softmax(u) * u).sum()).rate

    found = yz.enclose(ReducedFlow(mu), t_end=between[1], bits=bits)
    return found.crossing(rate, between=between, rising=True)
