"""Speed, side by side with a peer in one run, as ratios. Run ``python -m benchmarks``.

A benchmark is a module here with a function ``run() -> list[Row]``; it is found without an entry elsewhere. It checks
that both sides computed the same numbers before it compares their times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: seconds are medians over paired runs, after a warm-up that is not counted."""

    task: str
    ours: float
    peer_name: str
    peer: float
    disagreement: float  # largest difference of the two results, relative to the largest entry

    @property
    def ratio(self) -> float:
        """How many times longer the peer takes."""
        return self.peer / self.ours


def paired_seconds(ours: Callable[[], object], peer: Callable[[], object], *, runs: int = 5) -> tuple[float, float]:
    """Median seconds of each, run in turn so that a drift of the machine's speed hits both."""
    seconds = ([], [])
    for repeat in range(runs + 1):
        for function, record in zip((ours, peer), seconds, strict=True):
            start = time.perf_counter()
            function()
            if repeat:
                record.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])
