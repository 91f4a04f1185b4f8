"""Work and precision of the solvers on the full flow: which method, which time scale, which tolerance.

Each point is one run of `gradient_flow`: its time, and its largest error in an attention logit over the output times,
relative to the largest logit, without use of symmetry. The reference is DOP853 at rtol = 1e-13, and LSODA at 1e-13 must
agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks import Disagreement, Study, relative_difference, seconds
from dynamics import SequenceClasses, Solver, gradient_flow
from yzflow.figures.style import BLACK, BLUE, GREEN, VERMILION, styled

COLOURS = {"DOP853": BLUE, "RK45": VERMILION, "Radau": BLACK, "LSODA": GREEN}
MARKERS = {"DOP853": "o", "RK45": "s", "Radau": "^", "LSODA": "D"}
SCALES = {"linear": "--", "log": "-"}
RTOL = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
# (overlap in words, frequency of the common token, last time): the two problems of the main job.
PROBLEMS = (("weak overlap, to t = 700", 0.15, 700.0), ("strong overlap, to t = 100,000", 2.0, 1e5))
DEFAULT = {"method": "DOP853", "time_scale": "linear", "rtol": 1e-8}
# The two references agree so far; no error below a few times this can be told from theirs.
REFERENCE_TOLERANCE = 1e-10
REPEATS, PATIENCE = 3, 0.5  # runs of a point, unless the first takes so many seconds
LIMIT = 1.5  # seconds of a run after which its curve ends: tighter tolerances take longer still


def _logits(common: float, t_end: float, *, method: str, time_scale: str, rtol: float) -> np.ndarray:
    """Attention logits at 40 times, spaced as log(1 + t)."""
    classes = SequenceClasses.single_common_token(10, 1000, common=common)
    times = np.expm1(np.linspace(0.0, np.log1p(t_end), 41))[1:]
    times[-1] = t_end
    options = {"eta_y": 1.0, "eta_z": 0.5, "t_end": t_end, "times": times, "rtol": rtol, "atol": rtol / 100}
    solver = Solver(method=method, time_scale=time_scale, reduce="none")
    return gradient_flow(classes, **options, solver=solver).dataset["z"].values


def reference(common: float, t_end: float) -> tuple[np.ndarray, float]:
    """The reference, and how far another method is from it.

    Raises
    ------
    Disagreement
        If that is too far.
    """
    first, second = (
        _logits(common, t_end, method=method, time_scale="log", rtol=1e-13) for method in ("DOP853", "LSODA")
    )
    difference = relative_difference(second, first)
    if not difference <= REFERENCE_TOLERANCE:
        raise Disagreement(f"the references at t <= {t_end:g} differ by {difference:.1e}")
    return first, difference


def measure(common: float, t_end: float, exact: np.ndarray) -> list[dict]:
    """Seconds and error of every method, time scale and tolerance."""
    points = []
    for method in COLOURS:
        for time_scale in SCALES:
            for rtol in RTOL:
                setting = {"method": method, "time_scale": time_scale, "rtol": rtol}
                best = np.inf
                for _ in range(REPEATS):
                    taken, logits = seconds(lambda setting=setting: _logits(common, t_end, **setting))
                    best = min(best, taken)
                    if taken > PATIENCE:
                        break
                points.append({**setting, "seconds": best, "error": relative_difference(logits, exact)})
                if best > LIMIT:
                    break
    return points


@styled
def draw(panels: Sequence[tuple[str, Sequence[dict], float]]) -> Figure:
    """Error against time, from the loosest tolerance to the tightest; the default is ringed."""
    figure = Figure(figsize=(9.5, 4.4))
    for axes, (title, points, floor) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for method, colour in COLOURS.items():
            for time_scale, line in SCALES.items():
                own = [p for p in points if (p["method"], p["time_scale"]) == (method, time_scale)]
                axes.plot(
                    [p["seconds"] for p in own],
                    [p["error"] for p in own],
                    line,
                    color=colour,
                    marker=MARKERS[method],
                    markersize=4,
                    markerfacecolor="white" if time_scale == "linear" else colour,
                    label=f"{method}, {time_scale} time",
                )
        (default,) = (p for p in points if all(p[key] == value for key, value in DEFAULT.items()))
        axes.plot(default["seconds"], default["error"], "o", ms=13, mfc="none", mec=BLACK, mew=1.3, label="the default")
        axes.axhline(floor, color="0.6", linewidth=1, linestyle=":", label="the two references differ by")
        axes.set(xscale="log", yscale="log", title=title, xlabel="time of one run (s)")
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    figure.axes[0].set_ylabel("largest error of an attention logit, relative")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=7.5)
    return figure


def _best(points: Sequence[dict], error: float) -> dict | None:
    reaching = [p for p in points if p["error"] <= error]
    return min(reaching, key=lambda p: p["seconds"]) if reaching else None


def study() -> Study:
    panels, data = [], {}
    for title, common, t_end in PROBLEMS:
        exact, difference = reference(common, t_end)
        points = measure(common, t_end, exact)
        panels.append((title, points, difference))
        data[title] = {"reference_difference": difference, "points": points}
    return Study(markdown(data), draw(panels), data)


def markdown(data: Mapping[str, Any]) -> str:
    """The quickest solver for each error that is wanted, and the default beside it."""
    lines = ["| problem | error wanted | quickest | its rtol | time | the default method at the same error |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for title, *_ in PROBLEMS:
        points = data[title]["points"]
        usual = [p for p in points if (p["method"], p["time_scale"]) == (DEFAULT["method"], DEFAULT["time_scale"])]
        for error in (1e-3, 1e-6, 1e-9):
            best, own = _best(points, error), _best(usual, error)
            if best is None:
                continue
            name = f"{best['method']}, {best['time_scale']} time"
            other = "does not reach it" if own is None else f"{own['seconds'] / best['seconds']:.2g} times as long"
            cells = (title, f"{error:.0e}", name, f"{best['rtol']:.0e}", f"{best['seconds']:.3g} s", other)
            lines.append("| " + " | ".join(cells) + " |")
        (default,) = (p for p in points if all(p[key] == value for key, value in DEFAULT.items()))
        cells = (title, "of the default", "DOP853, linear time", "1e-08", f"{default['seconds']:.3g} s")
        lines.append("| " + " | ".join((*cells, f"error {default['error']:.1e}")) + " |")
    return "\n".join(lines)
