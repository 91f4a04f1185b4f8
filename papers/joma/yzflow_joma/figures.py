"""Figures of JoMA: conserved quantities, and attention that is first sparse, then dense."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import CATEGORIES, canvas, styled
from yzflow_joma import finding, formulas
from yzflow_joma.settings import PAPER, settings
from yzflow_joma.tasks import drift


@styled
def joma_turning(run: xr.Dataset) -> Figure:
    """Weights v and the entropy of softmax(v^2/2) under v' = (mu - v) e^{v^2/2}, JoMA's reduced flow."""
    figure = canvas(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2)
    for i, ((color, line), mu) in enumerate(zip(CATEGORIES, run["mu"].values, strict=False)):
        left.plot(run["time"][1:], run["v"][1:, i], color=color, linestyle=line, label=f"mu = {mu:g}")
    left.set(xlabel="time", ylabel="v", xscale="log")
    left.legend()
    right.plot(run["time"][1:], run["entropy"][1:])
    right.axvline(float(run["turn"].mean()), color="black", linestyle=":", label="turning point")
    right.legend()
    right.set(xlabel="time", ylabel="entropy of attention (nats)", xscale="log")
    return figure


def _turn(effort: Effort) -> xr.Dataset:
    from yzflow_joma.enclosed import turning_point  # needs yzflow-enclose

    setting = settings(quick=True)[0]
    run = setting.simulate("reduced flow, nonlinear", seed=0).dataset
    near = float(run["time"][int(run["entropy"].values.argmin())])
    turn = turning_point(setting.mu, between=(near / 2, 2 * near)).times
    return run.assign(mu=("token", list(setting.mu)), turn=("end", [np.nan] * 2 if turn is None else list(turn)))


def _least(run: xr.Dataset) -> str:
    first, last = run["turn"].values
    where = "not enclosed" if np.isnan(first) else f"t = {first:.10g}, known in balls to {last - first:.0e}"
    return (
        f"Entropy starts at {float(run['entropy'][0]):.4f}, is least, {float(run['entropy'].min()):.4f}, at the turning"
        f" point ({where}), and ends at {float(run['entropy'][-1]):.4f}."
    )


@styled
def joma_joint(draws: xr.Dataset) -> Figure:
    """Drift of what JoMA's Theorem 1 conserves for softmax, over the change of z, with and without the term of bbar."""
    figure = canvas(figsize=(5, 3.4))
    axes = figure.subplots()
    for (name, marker), (color, _) in zip((("with_term", "o"), ("without", "x")), CATEGORIES[1:4:2], strict=True):
        label = "with the term" if name == "with_term" else "without"
        axes.plot(draws["factorisation"], draws[name], marker, color=color, label=label)
    axes.set(xlabel="distance of the moment from a product", ylabel="drift / change of z", ylim=(0, None))
    axes.legend()
    return figure


def _drifts(effort: Effort) -> xr.Dataset:
    rows = [drift({}, seed) for seed in range(4 if effort.quick else 20)]
    return xr.Dataset({name: ("seed", [float(row[name]) for row in rows]) for name in rows[0]})


def _medians(draws: xr.Dataset) -> str:
    first, second = (float(draws[name].median()) for name in ("with_term", "without"))
    return f"Median over {draws.sizes['seed']} draws: {first:.0%} with it, {second:.0%} without."


@styled
def joma_linear(run: xr.Dataset) -> Figure:
    """Weights under a linear activation, v' = Delta e^{v^2/2}: the flow (lines) and the closed form (dots)."""
    figure = canvas(figsize=(5, 3.2))
    axes = figure.subplots()
    for i, ((color, line), delta) in enumerate(zip(CATEGORIES, run["delta"].values, strict=False)):
        axes.plot(run["time"], run["v"][:, i], color=color, linestyle=line, label=f"Delta = {delta:g}")
        some = run["time"].values[::7]
        axes.plot(some, [float(formulas.linear_weights(delta, t)) for t in some], "o", color=color, markersize=4)
    axes.set(xlabel="time", ylabel="v")
    axes.legend()
    return figure


def _linear(effort: Effort) -> xr.Dataset:
    setting = settings(quick=True)[0]
    run = setting.simulate("reduced flow, linear", seed=0).dataset
    return run.assign(delta=("token", list(setting.delta)))


def _blow(run: xr.Dataset) -> str:
    return f"The first entry is infinite at t = {formulas.blow_up_time(run['delta'].values):.4f}."


def _said(runs: xr.Dataset) -> str:
    """The finding of these runs, for the caption."""
    return finding.sentence(finding.numbers(runs))


def _training(effort: Effort) -> xr.Dataset:
    return finding.study(seeds=2 if effort.quick else 10)


FIGURES = (
    Entry("joma_turning", PAPER, joma_turning, _turn, claims=_least),
    Entry("joma_joint", PAPER, joma_joint, _drifts, claims=_medians),
    Entry("joma_linear", PAPER, joma_linear, _linear, claims=_blow),
    Entry("joma_training", PAPER, finding.drawing, _training, claims=_said),
)


# <!-- numbers
# typed: 2 (formula)
# -->
