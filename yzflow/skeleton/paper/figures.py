"""Figures: for each, a function that computes the data, one that draws it, and a sentence about the data."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import lambertw

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, styled
from yzflow.skeleton.paper.settings import settings


@styled
def logit(run: xr.Dataset) -> Figure:
    """The logit of the right token over time, beside the closed form."""
    figure = canvas(figsize=(5, 3))
    axes = figure.subplots()
    axes.plot(run["time"], run["z"], label="flow")
    axes.plot(run["time"], closed_form(run), "--", label="closed form")
    axes.set(xlabel="time (SGD steps)", ylabel="logit z")
    axes.legend()
    return figure


def closed_form(run: xr.Dataset) -> np.ndarray:
    """The solution z = 1 + eta t - W(e^{1 + eta t}) of Lemma 1, with Lambert's W."""
    past = 1 + run.attrs["rate"] * run["time"].values
    return past - lambertw(np.exp(past)).real


def compute(effort: Effort) -> xr.Dataset:
    """The flow of the first setting."""
    setting = settings(quick=effort.quick)[0]
    return setting.simulate("flow", seed=0).dataset.assign_attrs(rate=setting.rate)


def difference(run: xr.Dataset) -> str:
    """Sentences of the caption, from this data."""
    return f"They differ by at most {float(abs(run['z'] - closed_form(run)).max()):.1e}."


FIGURES = (Entry("a_new_paper_logit", "A new paper", logit, compute, claims=difference),)
