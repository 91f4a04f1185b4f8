"""The growth of cost: processor time against K, M, tokens, t, members, seeds, bits, each alone, as fitted exponents.

Beside each stands the exponent that counting operations foresees, and why. It is of the upper sizes, where what does
not grow is small; the fit leaves out the smallest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from yzflow_enclose import enclose_flow

from benchmarks import Study, ensembles, seconds
from dynamics import SequenceClasses, Solver, gradient_flow, sgd
from yzflow.figures.style import BLUE, styled

RUNS, LONG = 3, 2.0
RATES = {"eta_y": 1.0, "eta_z": 0.5}
UNREDUCED = Solver(reduce="none")


class Growth(NamedTuple):
    """Something that takes time, against one size."""

    of: str
    against: str
    sizes: tuple[int, ...]
    call: Callable[[int], object]
    foreseen: float
    since: str


def _classes(K: int, M: int, distinct: int = 5) -> SequenceClasses:
    return SequenceClasses.single_common_token(K, M, common=0.15, distinct=tuple(np.linspace(1.0, 0.2, distinct)))


def _flow(K: int = 40, M: int = 4000, distinct: int = 5, t: float = 1000.0, solver: Solver = UNREDUCED) -> object:
    return gradient_flow(_classes(K, M, distinct), **RATES, t_end=t, times=[t], solver=solver)


def _enclosed(distinct: int = 3, t: float = 1e2, bits: int = 50) -> object:
    return enclose_flow(_classes(10, 1000, distinct), **RATES, t_end=t, bits=bits)


def _seeds(n: int) -> object:
    classes = SequenceClasses.syn_medium(1)
    return [sgd(classes, **RATES, steps=100, record_every=100, seed=seed, dtype="float32") for seed in range(n)]


GROWTHS = (
    # Times are in units of K, as Theorem 4's transition is: the number of steps then hardly depends on K.
    Growth(
        "a flow, no symmetry",
        "classes K",
        (50, 100, 200, 400),
        lambda K: _flow(K, 10 * K, t=20.0 * K),
        2,
        "the tokens of K classes, in K + 1 columns",
    ),
    Growth(
        "a flow, no symmetry",
        "next tokens M",
        (1_000, 10_000, 100_000, 1_000_000),
        lambda M: _flow(M=M),
        0,
        "one column for all next tokens that never occur",
    ),
    Growth(
        "a flow, no symmetry",
        "tokens of a class",
        (20, 40, 80, 160, 320),
        lambda d: _flow(distinct=d),
        1,
        "products over the tokens of each class; softmax over the columns does not grow",
    ),
    Growth(
        "a flow, no symmetry",
        "time t",
        (1_000, 10_000, 100_000, 1_000_000),
        lambda t: _flow(t=t),
        0,
        "late rates fall like 1/t, so that steps grow with t: ln t of them, where the flow is not stiff",
    ),
    Growth(
        "a flow by symmetry",
        "classes K",
        (1_000, 2_000, 4_000, 8_000),
        lambda K: _flow(K, 10 * K, t=20.0 * K, solver=Solver()),
        1,
        "the state does not grow; finding the symmetry looks at every token once a round; populations of up to 16,384 "
        "entries keep it, so that the first two sizes take less",
    ),
    Growth(
        "an ensemble",
        "members",
        (1_000, 2_000, 4_000, 8_000),
        lambda n: ensembles.ours(ensembles.settings(n)),
        1,
        "members do not meet",
    ),
    Growth("runs of SGD", "seeds", (8, 16, 32, 64), _seeds, 1, "runs do not meet"),
    Growth(
        "an enclosure",
        "tokens of a class",
        (3, 6, 12, 24),
        _enclosed,
        2,
        "a Jacobian of n variables in n directions for each piece of a step; series are of n variables, and "
        "eigenvalues take n^3",
    ),
    Growth(
        "an enclosure",
        "bits",
        (40, 80, 160, 320),
        lambda bits: _enclosed(bits=bits),
        3,
        "coefficients of the series grow in number like the bits, each from products of series of all before it: the "
        "cube by the schoolbook, the square at best",
    ),
    Growth(
        "an enclosure",
        "time t",
        (100, 1_000, 10_000, 100_000),
        lambda t: _enclosed(t=t),
        0,
        "steps grow with t: ln t of them",
    ),
)


def fitted(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """The exponent of a power law, least squares on logarithmic axes without the smallest size; its standard error."""
    x, y = np.log(sizes[1:]), np.log(times[1:])
    slope, shift = np.polyfit(x, y, 1)
    rest = y - slope * x - shift
    error = np.sqrt((rest**2).sum() / (x.size - 2) / ((x - x.mean()) ** 2).sum())
    return float(slope), float(error)


def _least(call: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs, or of one that takes long."""
    taken = [seconds(call, time.process_time)[0]]
    while len(taken) < RUNS and taken[0] < LONG:
        taken.append(seconds(call, time.process_time)[0])
    return min(taken)


@styled
def draw(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Processor time against each size on logarithmic axes: measured as points, the power foreseen as a line."""
    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    for axes, row in zip(figure.subplots(2, 5).flat, rows, strict=True):
        x, y = np.array(row["sizes"], float), np.array(row["seconds"])
        axes.loglog(x, y, "o", color=BLUE, markersize=4)
        axes.loglog(x, y[-1] * (x / x[-1]) ** row["foreseen"], color=BLUE, linewidth=1)
        axes.set_title(row["of"], fontsize=8)
        axes.set_xlabel(row["against"], fontsize=8)
        axes.tick_params(labelsize=7)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        middle = np.sqrt(y.min() * y.max())
        span = max(5.0, np.sqrt(y.max() / y.min()) * 1.5)
        axes.set_ylim(middle / span, middle * span)
    figure.supylabel("processor time (s)", fontsize=9)
    return figure


def markdown(data: Mapping[str, Any]) -> str:
    """A line for each size; bold where the fit and the count differ by more than a quarter and two standard errors."""
    lines = [
        "| time of | against | from | to | seconds | exponent | foreseen | since |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in data["rows"]:
        sizes, taken = row["sizes"], row["seconds"]
        exponent = f"{round(row['exponent'], 2) + 0.0:.2f} ± {row['error']:.2f}"
        apart = abs(row["exponent"] - row["foreseen"]) > max(0.25, 2 * row["error"])
        exponent = f"**{exponent}**" if apart else exponent
        lines.append(
            f"| {row['of']} | {row['against']} | {sizes[0]:,} | {sizes[-1]:,} | {taken[0]:.2g} to {taken[-1]:.2g} |"
            f" {exponent} | {row['foreseen']:g} | {row['since']} |"
        )
    return "\n".join(lines)


def study() -> Study:
    """All sizes, one after the other."""
    rows = []
    for one in GROWTHS:
        for size in one.sizes[:1] + one.sizes[-2:-1]:  # which compile: small flows have a kernel of their own
            one.call(size)
        taken = [_least(lambda size=size, one=one: one.call(size)) for size in one.sizes]
        print(f"{one.of} against {one.against}: {', '.join(f'{spent:.2g}' for spent in taken)} s", flush=True)
        exponent, error = fitted(one.sizes, taken)
        own = {"of": one.of, "against": one.against, "sizes": one.sizes, "seconds": taken}
        rows.append(own | {"exponent": exponent, "error": error, "foreseen": one.foreseen, "since": one.since})
    data = {"rows": rows}
    return Study(markdown(data), draw(rows), data)
