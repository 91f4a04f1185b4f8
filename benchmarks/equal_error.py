"""Many flows at equal error: time against the largest error over all members, ours beside heyoka.

Each point is one tolerance of one side: its processor time in one thread, a median of runs in turn with all other
points, and the largest error of z at the end over all members, relative to the largest z. A tolerance can be set
between two points, so that the time to an error is read off the line between them, on logarithmic axes.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks import Disagreement, Study, ensembles, optional_peer, relative_difference, seconds
from yzflow.figures.style import BLACK, BLUE, VERMILION, styled

FLOWS, RUNS = 500, 7
TOLERANCES = tuple(10.0**-k for k in range(3, 13))
WANTED = tuple(10.0**-k for k in range(5, 11))
OURS = "yzflow"
# Ours and heyoka's at these tolerances are the references; they agree so far.
REFERENCES, REFERENCE_TOLERANCE = (1e-13, 1e-15), 1e-11
COLOURS = (BLUE, VERMILION, BLACK)

Points = Mapping[str, Sequence[Mapping[str, float]]]


def measure(given: Mapping[str, np.ndarray], peer: Any) -> tuple[Points, float]:
    """Milliseconds a flow and error of every side at every tolerance, and how far the two references differ.

    Raises
    ------
    Disagreement
        If that is too far.
    """
    calls: dict[tuple[str, float], Callable[[], np.ndarray]] = {}
    for tolerance in TOLERANCES:
        calls[OURS, tolerance] = functools.partial(ensembles.ours, given, rtol=tolerance)
        for name, call in peer.calls(given, t_end=ensembles.T_END, tolerance=tolerance).items():
            calls[name.partition(",")[0], tolerance] = call
    exact = ensembles.ours(given, rtol=REFERENCES[0])
    other = next(iter(peer.calls(given, t_end=ensembles.T_END, tolerance=REFERENCES[1]).values()))()
    difference = relative_difference(other, exact)
    if not difference <= REFERENCE_TOLERANCE:
        raise Disagreement(f"the references differ by {difference:.1e}")
    found = {key: call() for key, call in calls.items()}  # compiled by now
    taken: dict[tuple[str, float], list[float]] = {key: [] for key in calls}
    for _ in range(RUNS):
        for key, call in calls.items():
            taken[key].append(seconds(call, time.process_time)[0])
    points: dict[str, list[dict[str, float]]] = {}
    for (name, tolerance), z in found.items():
        spent = 1e3 * statistics.median(taken[name, tolerance]) / len(exact)
        own = {"tolerance": tolerance, "milliseconds": spent, "error": relative_difference(z, exact)}
        points.setdefault(name, []).append(own)
    return points, difference


def time_to(points: Sequence[Mapping[str, float]], error: float) -> float:
    """Milliseconds of the quickest tolerances whose largest error is at most this, between points on logarithmic axes.

    Where the loosest tolerance is more exact already, its time. Infinite where no tolerance reaches the error.
    """
    best = np.inf
    for at, one in enumerate(points):
        if one["error"] <= error:
            best = min(best, one["milliseconds"])
            before = points[at - 1]
            if at > 0 and before["error"] > error:
                ends = np.log([one["error"], before["error"]])
                times = np.log([one["milliseconds"], before["milliseconds"]])
                best = min(best, float(np.exp(np.interp(np.log(error), ends, times))))
    return best


def compared(points: Points) -> list[dict[str, Any]]:
    """At every error wanted: our time, and how many times longer each peer takes."""
    rows = []
    for error in WANTED:
        own = time_to(points[OURS], error)
        ratios = {name: time_to(of, error) / own for name, of in points.items() if name != OURS}
        rows.append({"error": error, "milliseconds": own, "ratios": ratios})
    return rows


def markdown(data: Mapping[str, Any]) -> str:
    """The table: our time at each error, and the ratio of each peer's to it."""
    rows = data["rows"]
    names = list(rows[0]["ratios"])
    head = ["largest error of z", "ours (ms a flow)", *(f"{name}: times as long" for name in names)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row in rows:
        ratios = (f"{row['ratios'][name]:.2f}" for name in names)
        lines.append(f"| {row['error']:.0e} | {row['milliseconds']:.3f} | {' | '.join(ratios)} |")
    return "\n".join(lines)


@styled
def draw(points: Points) -> Figure:
    """Error against time, a curve for each side."""
    figure = Figure(figsize=(6.5, 4.2))
    axes = figure.subplots()
    for (name, own), colour in zip(points.items(), COLOURS, strict=False):
        axes.plot(
            [p["milliseconds"] for p in own], [p["error"] for p in own], "o-", color=colour, markersize=4, label=name
        )
    axes.set(xscale="log", yscale="log", xlabel="processor time of a flow (ms)", ylabel="largest error of z, relative")
    for which in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        which(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend()
    return figure


def study() -> Study | None:
    """All tolerances of all sides; none where heyoka is not installed."""
    peer = optional_peer("heyoka_ensemble")
    if peer is None:
        return None
    points, difference = measure(ensembles.settings(FLOWS, seed=1), peer)
    rows = compared(points)
    data = {"flows": FLOWS, "points": points, "rows": rows, "references_differ_by": difference}
    return Study(markdown(data), draw(points), data)
