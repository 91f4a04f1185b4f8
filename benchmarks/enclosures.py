"""Enclosures of the flows: steps, time and width against t, variables and bits, beside naive interval steps.

The naive step is the textbook's: the Taylor series of the flow through a *ball* of states, with its remainder over an
a-priori box. Each step takes the width of the last for a new uncertainty, in all directions (the wrapping effect), so
that widths grow exponentially in t. mpmath's Taylor solver `odefun` has many digits too, but proves nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
from flint import arb, arb_poly
from matplotlib.figure import Figure
from yzflow_enclose import Enclosure, enclose_flow
from yzflow_enclose.fields import PopulationField
from yzflow_enclose.reading import read
from yzflow_enclose.stepping import precision, taylor

from benchmarks import Study
from dynamics import SequenceClasses
from yzflow.figures.style import BLACK, BLUE, GREEN, VERMILION, styled

TIMES = (1e2, 1e3, 1e4)
PAPER = {"eta_y": 1.0, "eta_z": 0.5}
LEAD = {"eta_y": 1.0, "eta_z": 2.0}
# Enclosed flows: words, data, rates, decoder, last time, bits.
CASES = (
    ("K = M = 2, full", (2, 2, 1.0, (2.0, 1.0)), LEAD, "full", 5000.0, 60),
    ("K = 10, M = 1000, full", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "full", 1e4, 50),
    ("K = 10, M = 1000, full", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "full", 1e4, 60),
    ("K = 10, M = 1000, full", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "full", 1e4, 100),
    ("K = 10, M = 1000, modified", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "modified", 1e4, 60),
    ("K = 10, M = 1000, theory", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "theory", 1e4, 60),
    ("K = 10, M = 1000, theory", (10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)), PAPER, "theory", 1e4, 100),
    ("K = 10, M = 1000, 10 distinct, full", (10, 1000, 0.15, tuple(np.linspace(1, 0.1, 10))), PAPER, "full", 1e4, 60),
)
NAIVE_STEP, NAIVE_ORDER = 0.05, 24
SHORT = 2.0  # where mpmath's solver is timed: it needs minutes for more


def _data(size) -> SequenceClasses:
    n_classes, vocab_size, common, distinct = size
    return SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=distinct)


def _seconds(call):
    began = time.process_time()
    return call(), time.process_time() - began


def width(enclosure: Enclosure, t: float) -> float:
    """The largest radius of an attention logit at a time."""
    with precision(enclosure.bits + 40):
        moment = enclosure.moment(t)
        return max(float(moment.variable(place).ball().rad()) for place in range(3))


def naive(field: PopulationField, t_end: float, bits: int) -> tuple[list[float], list[float]]:
    """Times and widths of naive interval steps, until the box cannot be closed or the width is beyond use."""
    times, widths = [0.0], [0.0]
    with precision(bits + 40):
        state = [arb(0)] * field.size
        step = arb(0, NAIVE_STEP / 2) + NAIVE_STEP / 2
        while times[-1] < t_end and widths[-1] < 1:
            box = _closed(field, state, step)
            if box is None:
                break
            series = taylor(field, state, NAIVE_ORDER - 1, exact=False)
            rest = taylor(field, box, NAIVE_ORDER, exact=False)
            state = [arb_poly([*own, last[-1]])(arb(NAIVE_STEP)) for own, last in zip(series, rest, strict=True)]
            times.append(times[-1] + NAIVE_STEP)
            widths.append(max(float(value.rad()) for value in state[:3]))
    return times, widths


def _closed(field: PopulationField, state: list[arb], step: arb) -> list[arb] | None:
    """A box that the flow does not leave in a step: x + [0, h] f(box) lies within it."""
    box = [value + arb(0, 1e-6) for value in state]
    for _ in range(30):
        try:
            slopes = [own[1] for own in taylor(field, box, 1, exact=False)]
        except ValueError:
            return None
        reached = [value + step * slope for value, slope in zip(state, slopes, strict=True)]
        if all(outer.contains(inner) for outer, inner in zip(box, reached, strict=True)):
            return box
        box = [value + (value.rad() * 0.2 + 1e-9) * arb(0, 1) for value in reached]
    return None


def by_mpmath(t: float, digits: int) -> list:
    """K = M = 2 by mpmath's Taylor solver: z of three tokens, Y of the two distinct ones."""
    with mpmath.workdps(digits):

        def slope(_, state):
            f = [count * mpmath.exp(logit) for count, logit in zip((1, 2, 1), state, strict=False)]
            norm = mpmath.sqrt(sum(value**2 for value in f))
            f = [value / norm for value in f]
            g = [0, 2 * state[3], 2 * state[4]]
            miss = 1 / (1 + mpmath.exp(f[1] * g[1] + f[2] * g[2]))
            inner = f[1] * g[1] + f[2] * g[2]
            dz = [miss * value * (own - value * inner) for value, own in zip(f, g, strict=True)]
            return [2 * dz[0], dz[1], dz[2], f[1] * miss / 2, f[2] * miss / 2]

        return mpmath.odefun(slope, 0, [mpmath.mpf(0)] * 5)(t)


def study() -> Study:
    """Enclose the cases, and the smallest by the two other methods."""
    rows, curves = [], []
    for words, size, rates, decoder, t_end, bits in CASES:
        data = _data(size)
        flow, seconds = _seconds(lambda: enclose_flow(data, **rates, t_end=t_end, decoder=decoder, bits=bits))  # noqa: B023
        _, checked = _seconds(flow.verify)
        decision, decided = _seconds(lambda: flow.decide(lambda at: at.velocity(0, 0) < 0))  # noqa: B023
        widths = [width(flow, t) if t <= flow.t_reached else math.nan for t in TIMES]
        rows.append(
            {
                "flow": words,
                "variables": flow.variables,
                "bits": bits,
                "t_reached": flow.t_reached,
                "steps": len(flow.steps),
                "seconds": seconds,
                "seconds_verify": checked,
                "seconds_decide": decided,
                "decided": decision.value,
                "widths": widths,
            }
        )
        curves.append([(step.end, width(flow, step.end)) for step in flow.steps])
    data = _data(CASES[0][1])
    (times, widths), naive_seconds = _seconds(lambda: naive(read(data, **LEAD, decoder="full").field, 200.0, 60))
    _, beside = _seconds(lambda: enclose_flow(data, **LEAD, t_end=times[-1], bits=60))
    _, mpmath_seconds = _seconds(lambda: by_mpmath(SHORT, 30))
    _, ours = _seconds(lambda: enclose_flow(data, **LEAD, t_end=SHORT, bits=100))
    numbers = {
        "rows": rows,
        "naive": {"times": times, "widths": widths, "seconds": naive_seconds, "ours": beside},
        "mpmath": {"t": SHORT, "seconds": mpmath_seconds, "ours": ours},
    }
    return Study(markdown(numbers), _figure(curves, times, widths), numbers)


def markdown(numbers: Mapping[str, Any]) -> str:
    """The table, and what the two other methods did."""
    lines = [
        "| flow | variables | bits | steps | seconds | verify | one claim | radius of z at t = 100 | 1000 | 10,000 |",
        "| --- " * 10 + "|",
    ]
    for row in numbers["rows"]:
        widths = " | ".join("" if math.isnan(value) else f"{value:.1e}" for value in row["widths"])
        lines.append(
            f"| {row['flow']}, to t = {row['t_reached']:g} | {row['variables']} | {row['bits']} | {row['steps']} | "
            f"{row['seconds']:.1f} | {row['seconds_verify']:.1f} | {row['seconds_decide']:.1f} | {widths} |"
        )
    naive, peer = numbers["naive"], numbers["mpmath"]
    slower = [f"{other['seconds'] / other['ours']:.2g} times as long as the enclosure" for other in (naive, peer)]
    lines += [
        "",
        f"Naive interval Taylor steps (K = M = 2, order {NAIVE_ORDER}, steps of {NAIVE_STEP}) end at t = "
        f"{naive['times'][-1]:g} with a radius of {naive['widths'][-1]:.1e} and take {slower[0]} (60 bits) to that "
        f"time. To t = {peer['t']:g}, mpmath's `odefun` with 30 digits takes {slower[1]} (100 bits) and proves "
        "nothing. Processor time of one core, all in one run.",
    ]
    return "\n".join(lines)


@styled
def _figure(curves, times, widths) -> Figure:
    figure = Figure(figsize=(7.0, 4.2))
    axes = figure.subplots()
    shown = {0: BLUE, 2: VERMILION, 5: GREEN}
    for place, curve in enumerate(curves):
        if place in shown:
            words, bits = CASES[place][0], CASES[place][5]
            axes.plot(*zip(*curve, strict=True), color=shown[place], label=f"{words}, {bits} bits")
    axes.plot(times[1:], widths[1:], "--", color=BLACK, label="K = M = 2, full, naive interval steps")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("t (SGD steps)")
    axes.set_ylabel("radius of an attention logit")
    axes.legend()
    return figure
