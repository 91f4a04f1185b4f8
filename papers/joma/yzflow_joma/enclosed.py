"""Reduced flows in ball arithmetic: claims for every time, and the time of the sparsest attention."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from yzflow_enclose import Claim, Crossing, Enclosure, Quantity, erf, every, softmax

import yzflow as yz
from theory.statements import Enclosing, Flows
from yzflow_joma.flows import ReducedFlow
from yzflow_joma.settings import LINEAR, NONLINEAR

Predicate = Callable[[Any], Claim]
# At the end of a simulation the rate of the entropy is about 1e-14, a sum of terms of size one.
BITS = 120
_PI = 3.141592653589793  # its rounding error is far below the tolerance of any check


def rate(at: Any) -> Quantity:
    """The entropy's derivative in time, -Cov_p(u, u') of u = v^2/2 and p = softmax(u): exactly zero at the start."""
    v = at.state["v"]
    u, p = v * v / 2, softmax(v * v / 2)
    return -(p * (u - (p * u).sum()) * v * at.velocity["v"]).sum()


def turning_point(
    mu: Sequence[float], *, between: tuple[float, float], rising: bool = True, bits: int = BITS
) -> Crossing:
    """The time in a bracket at which the entropy of softmax(v^2/2) turns, proved to be the only one there.

    Parameters
    ----------
    mu : (C,) float
        Entries of mu in v' = (mu - v) e^{v^2/2}.
    between : (float, float)
        The bracket of times.
    rising : bool
        True for a turn from falling to rising.
    bits : int
        Precision, as for `yzflow.enclose`.
    """
    return yz.enclose(ReducedFlow(mu), t_end=between[1], bits=bits).crossing(rate, between=between, rising=rising)


def enclose(
    setting: Any, level: str, *, t_end: float, max_seconds: float, folder: str | os.PathLike | None = None
) -> Enclosure:
    """Enclose a reduced flow of a setting to the end of its simulation; ``folder`` keeps the certificate."""
    flow = setting.reduced(level)
    last = min(t_end, setting.end(level))
    enclosure = yz.enclose(flow, t_end=last, bits=BITS, max_seconds=max_seconds)
    if folder is not None and enclosure.steps:
        Path(folder).mkdir(parents=True, exist_ok=True)
        drive = "_".join(f"{entry:g}" for entry in flow.drive)
        enclosure.path = Path(folder) / f"joma_{'linear' if flow.linear else 'nonlinear'}_{drive}_to_{last:g}.npz"
        enclosure.save(enclosure.path)
    return enclosure


def turns_once(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Claim for every time: the entropy falls, its rate rises through zero, then it rises; so it turns once."""
    flow = flows.enclosure(level)
    # The entropy falls at the first time of the bracket, by the claim. The crossing would fail at a second turn.
    crossing = flow.crossing(rate, between=(min(0.01, flow.t_reached / 100), flow.t_reached), rising=True)
    if crossing.times is None:
        raise ValueError(crossing.reason)
    before, after = 0.99 * crossing.times[0], 1.01 * crossing.times[1]

    def predicate(at: Any) -> Claim:
        now = rate(at)
        turning = (at.t < before) | (at.t > after) | (now.rate > 0)
        return ((at.t > before) | (now < 0)) & ((at.t < after) | (now > 0)) & turning

    return predicate


def linear_form(flows: Flows, level: str, tolerance: float) -> Predicate:
    """|sqrt(pi/2) erf(v/sqrt 2)/(Delta t) - 1| <= tolerance, for every entry."""
    delta = flows.setting.delta

    def predicate(at: Any) -> Claim:
        expected = [at.t * entry for entry in delta]
        errors = [erf(v * 0.5**0.5) * (_PI / 2) ** 0.5 - x for v, x in zip(at.state["v"], expected, strict=True)]
        bounds = [x * tolerance for x in expected]
        return every([(b - e > 0) & (b + e > 0) for b, e in zip(bounds, errors, strict=True)])

    return predicate


ENCLOSING = Enclosing((LINEAR, NONLINEAR), enclose, claims={"linear_form": linear_form, "turns_once": turns_once})
