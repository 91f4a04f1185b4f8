"""Limits of an enclosing: how far, how closely, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics.support import checks
from yzflow_enclose.claims import FEWEST_BITS, MOST_BITS


@dataclass(frozen=True)
class Limits:
    """How far and how closely a flow is to be enclosed."""

    t_end: float
    bits: int
    max_steps: int
    max_seconds: float | None
    progress: bool

    @classmethod
    def of(cls, t_end: float, bits: int, max_steps: int, max_seconds: float | None, progress: bool) -> Limits:
        progress = checks.flag("progress", progress)
        t_end = checks.positive("t_end", t_end)
        bits = checks.integer("bits", bits, minimum=FEWEST_BITS, maximum=MOST_BITS)
        max_steps = checks.integer("max_steps", max_steps, minimum=1)
        if max_seconds is not None:
            max_seconds = checks.positive("max_seconds", max_seconds)
        return cls(t_end, bits, max_steps, max_seconds, progress)
