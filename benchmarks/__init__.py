"""Speed, side by side with a peer in one run, as ratios. Run ``python -m benchmarks``.

A benchmark is a module here with a function ``run() -> list[Row]``; it is found without an entry elsewhere. `compare`
checks that both sides computed the same numbers before it compares their times. A module with a function
``study() -> Study`` in its place measures something else than a ratio, and shows it as text and a figure.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

import numpy as np


class Disagreement(RuntimeError):
    """Both sides computed different numbers, so that their times do not compare."""


@dataclass(frozen=True)
class Row:
    """One comparison. Seconds are medians over paired runs, after a first call of each side that is not counted.

    Raises
    ------
    Disagreement
        If the results differ by more than the tolerance.
    """

    task: str
    ours: float
    peer_name: str
    peer: float
    disagreement: float  # of the two results, relative to the largest entry
    tolerance: float = math.inf  # what it must not exceed
    threads: int = 1
    first_ours: float = 0.0  # what the first call took longer: compilation
    first_peer: float = 0.0
    result: str = ""  # what was compared

    def __post_init__(self):
        check_agreement(self.task, self.peer_name, self.disagreement, self.tolerance)

    @property
    def ratio(self) -> float:
        """How many times longer the peer takes."""
        return self.peer / self.ours


@dataclass(frozen=True)
class Study:
    """Result of a module with ``study()``: text for the documentation (Markdown), a figure, and the numbers."""

    markdown: str
    figure: object
    data: Mapping[str, object] = field(default_factory=dict)


def check_agreement(task: str, peer_name: str, disagreement: float, tolerance: float) -> None:
    """Raise `Disagreement` unless ``disagreement`` is within ``tolerance``, which nan is not."""
    if not disagreement <= tolerance:
        raise Disagreement(
            f"{task}: ours and {peer_name} disagree by {disagreement:.1e}, more than {tolerance:.0e}; "
            "their times do not compare"
        )


def relative_difference(ours, peer) -> float:
    """Largest difference of two arrays, relative to the largest entry of the second."""
    ours, peer = np.asarray(ours), np.asarray(peer)
    return float(np.abs(ours - peer).max() / np.abs(peer).max())


def seconds(function: Callable[[], object], clock: Callable[[], float] | None = None) -> tuple[float, object]:
    """Seconds of one call by a clock, that on the wall unless another is given, and what it returned."""
    clock = clock or time.perf_counter
    start = clock()
    returned = function()
    return clock() - start, returned


def paired_seconds(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    runs: int = 5,
    warm_up: bool = True,
    budget: float = math.inf,
    clock: Callable[[], float] | None = None,
) -> tuple[float, float]:
    """Median seconds of each, run in turn so that a drift of the machine's speed hits both.

    No further pair starts once those that count took ``budget`` seconds together.
    """
    taken = ([], [])
    for repeat in range(runs + warm_up):
        if taken[0] and sum(taken[0]) + sum(taken[1]) > budget:
            break
        for function, record in zip((ours, peer), taken, strict=True):
            elapsed, _ = seconds(function, clock)
            if repeat >= warm_up:
                record.append(elapsed)
    return statistics.median(taken[0]), statistics.median(taken[1])


def compare(
    task: str,
    ours: Callable[[], object],
    peer_name: str,
    peer: Callable[[], object],
    *,
    tolerance: float,
    difference: Callable[[object, object], float] = relative_difference,
    result: str = "",
    runs: int = 5,
    threads: int = 1,
    budget: float = 5.0,
    clock: Callable[[], float] | None = None,
) -> Row:
    """Call both once, check that they agree, then time them in turn.

    ``first_ours`` and ``first_peer`` of the row are how much longer the first call took: compilation, unless an earlier
    comparison has already compiled the same. With ``clock=time.process_time`` what else the machine does counts less;
    it counts the seconds of all threads.
    """
    first_ours, mine = seconds(ours, clock)
    first_peer, theirs = seconds(peer, clock)
    disagreement = difference(mine, theirs)
    check_agreement(task, peer_name, disagreement, tolerance)
    our_seconds, peer_seconds = paired_seconds(ours, peer, runs=runs, warm_up=False, budget=budget, clock=clock)
    first = max(0.0, first_ours - our_seconds), max(0.0, first_peer - peer_seconds)
    return Row(task, our_seconds, peer_name, peer_seconds, disagreement, tolerance, threads, *first, result)


def optional_peer(name: str) -> ModuleType | None:
    """The module `benchmarks.peers.NAME`, or None and a message if what it needs is not installed."""
    try:
        return import_module(f"benchmarks.peers.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("benchmarks", "dynamics", "theory", "yzflow"):
            raise
        message = f"peer {name}: left out, since {error.name} is not installed (pip install 'yzflow[bench]')"
        print(message, file=sys.stderr)
        return None
