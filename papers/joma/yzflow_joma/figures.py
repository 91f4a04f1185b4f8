"""Figures of JoMA: what is conserved, and attention that is sparse first and dense in the end."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import yzflow as yz
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import CATEGORIES, canvas, styled
from yzflow_joma import formulas
from yzflow_joma.enclosed import turning_point
from yzflow_joma.settings import PAPER, settings, trained_classes
from yzflow_joma.tasks import drift


@styled
def joma_turning(run: xr.Dataset) -> Figure:
    """Weights v and the entropy of softmax(v^2/2) under v' = (mu - v) e^{v^2/2}, JoMA's reduced flow."""
    figure = canvas(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2)
    for place, ((color, line), mu) in enumerate(zip(CATEGORIES, run["mu"].values, strict=False)):
        left.plot(run["time"][1:], run["v"][1:, place], color=color, linestyle=line, label=f"mu = {mu:g}")
    left.set(xlabel="time", ylabel="v", xscale="log")
    left.legend()
    right.plot(run["time"][1:], run["entropy"][1:])
    right.axvline(float(run["turn"].mean()), color="black", linestyle=":", label="turning point")
    right.legend()
    right.set(xlabel="time", ylabel="entropy of attention (nats)", xscale="log")
    return figure


def _turn(effort: Effort) -> xr.Dataset:
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
def joma_joint(found: xr.Dataset) -> Figure:
    """Drift of what JoMA's Theorem 1 conserves for softmax, over the change of z, with and without the term of bbar."""
    figure = canvas(figsize=(5, 3.4))
    axes = figure.subplots()
    for (name, marker), (color, _) in zip((("with_term", "o"), ("without", "x")), CATEGORIES[1:4:2], strict=True):
        label = "with the term" if name == "with_term" else "without"
        axes.plot(found["factorisation"], found[name], marker, color=color, label=label)
    axes.set(xlabel="distance of the moment from a product", ylabel="drift / change of z", ylim=(0, None))
    axes.legend()
    return figure


def _drifts(effort: Effort) -> xr.Dataset:
    rows = [drift({}, seed) for seed in range(4 if effort.quick else 20)]
    return xr.Dataset({name: ("seed", [float(row[name]) for row in rows]) for name in rows[0]})


def _medians(found: xr.Dataset) -> str:
    first, second = (float(found[name].median()) for name in ("with_term", "without"))
    return f"Median over {found.sizes['seed']} draws: {first:.0%} with it, {second:.0%} without."


@styled
def joma_linear(run: xr.Dataset) -> Figure:
    """Weights under a linear activation, v' = Delta e^{v^2/2}: the flow (lines) and the closed form (dots)."""
    figure = canvas(figsize=(5, 3.2))
    axes = figure.subplots()
    for place, ((color, line), delta) in enumerate(zip(CATEGORIES, run["delta"].values, strict=False)):
        axes.plot(run["time"], run["v"][:, place], color=color, linestyle=line, label=f"Delta = {delta:g}")
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


@styled
def joma_training(found: xr.Dataset) -> Figure:
    """Entropy of attention along the full gradient flow of a layer with residual link and hidden layer."""
    figure = canvas(figsize=(5.5, 3.4))
    axes = figure.subplots()
    for (color, line), name in zip(CATEGORIES, found["setting"].values, strict=False):
        axes.plot(found["time"], found["entropy"].sel(setting=name), color=color, linestyle=line, label=str(name))
    axes.set(xlabel="time", ylabel="entropy of softmax(z) (nats)", xscale="symlog")
    axes.legend()
    return figure


def _training(effort: Effort) -> xr.Dataset:
    """Along the flow up to t = 10,000, where a smooth activation lets an integrator go so far."""
    times = np.concatenate([[0.0], np.geomspace(0.01, 1e4, 160)])
    runs, names = [], []
    for activation in ("softplus", "linear"):
        for scale in (0.1,) if effort.quick else (0.1, 0.5):
            setting = trained_classes(activation, scale=scale)
            flow = setting.flow("softmax")
            runs.append(yz.integrate(flow, t_end=1e4, times=times, rtol=1e-7, atol=1e-9).dataset["entropy"])
            names.append(f"{activation}, start of size {scale:g}")
    return xr.Dataset({"entropy": xr.concat(runs, dim="setting").assign_coords(setting=names)})


def _trained(found: xr.Dataset) -> str:
    said = []
    for name in found["setting"].values:
        h = found["entropy"].sel(setting=name).values
        least = int(np.argmin(h))
        if least == len(h) - 1:
            words = "falls to the end of what was followed"
        else:
            words = f"is least at t = {float(found['time'][least]):.3g} and has risen by {h[-1] - h[least]:.2g} since"
        said.append(f"{name}: it {words}.")
    return " ".join(said)


FIGURES = (
    Entry("joma_turning", PAPER, joma_turning, _turn, claims=_least),
    Entry("joma_joint", PAPER, joma_joint, _drifts, claims=_medians),
    Entry("joma_linear", PAPER, joma_linear, _linear, claims=_blow),
    Entry("joma_training", PAPER, joma_training, _training, claims=_trained),
)
