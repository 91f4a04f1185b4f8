"""Figures of the open questions on small data: what is drawn, and what captions claim of it."""

import numpy as np
import pytest
import xarray as xr

from yzflow.papers.scan_and_snap.figures import open_questions as figures
from yzflow.papers.scan_and_snap.open_questions import gradient, late, original, spurious

DRAWN = {entry.name: entry for entry in figures.FIGURES}


def small_falls():
    s = np.geomspace(2, 60, 12)
    found = {}
    for k, m in ((3, 6), (3, 3)):
        flow = late.late_flow(s, n_classes=k, vocab_size=m, n_distinct=1, rtol=1e-6)
        flow["theory"] = ("ln_t", late.theory_logit(s, n_classes=k, vocab_size=m, n_distinct=1))
        if m > k:
            flow["slow"] = ("ln_t", late.slow_exponent(flow["ratio"].values, n_classes=k, vocab_size=m)[0])
        found[k, m, 1] = flow
    return found


def small_speeds():
    s = np.linspace(-6, 12, 19)
    curves = {(5, 60, rho): late.frozen_speeds(s, n_classes=5, vocab_size=60, overlap=rho) for rho in (0.967, 0.01)}
    times = late.overtaking(n_classes=5, vocab_sizes=[10, 60], overlaps=[0.3, 0.9], last=30.0, n_times=60)
    return {"ln_t": s, "curves": curves, "map": times}


def small_gradients():
    s = np.linspace(-5, 2, 6)
    flow = gradient.frozen_flow(gradient.random_overlaps(np.random.default_rng(0), 3, "hub"), vocab_size=9, ln_t=s)
    curve = {"kind": "hub", "ratio": flow["xi"].values, "share": flow["share"].values, "term": -flow["xi"].values}
    survey = xr.Dataset({"least": ("draw", [0.5, -0.1]), "negative": ("draw", [True, False])})
    return {"ln_t": s, "curves": [curve], "survey": survey}


DATA = {
    "overtaking": small_speeds,
    "no_freezing": small_falls,
    "true_gradient": small_gradients,
    "spurious_tokens": lambda: spurious.suppression(tokens_per_class=(50, 400), seeds=2, n_tokens=60, t_end=20.0),
    "original_rates": lambda: {"small": original.against_induced(n_distinct=2, t_end=20.0, n_times=4)},
}


@pytest.mark.parametrize("name", DRAWN)
def test_figures_draw_their_data_and_claim_what_it_shows(name):
    data = DATA[name]()
    figure = DRAWN[name].draw(data)
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_label() == "<colorbar>"
        assert axes.get_ylabel()
    claims = DRAWN[name].claims(data)
    if name == "overtaking":
        assert "rho = 0.967: passes 1 near ln t = 3, " in claims and "rho = 0.01: stays below 1" in claims
    if name == "no_freezing":
        last = data[3, 6, 1]["exponent"].values[-1]
        assert f"{last:.3g} at ln t = 10, 100, 60; limit 0.4." in claims
        line = next(line for line in figure.axes[0].get_lines() if line.get_label() == "K = 3, M = 6")
        np.testing.assert_array_equal(line.get_ydata(), data[3, 6, 1]["z"])
    if name == "true_gradient":
        assert "Of 2 random Gram matrices (K from 3 to 7) 1 have some xi_n <= 0" in claims and "in 50%" in claims
    if name == "spurious_tokens":
        row = data.isel(tokens_per_class=0)
        assert f"n = 50: {float(row['number'].mean()):.3g} spurious tokens" in claims and "100% of the" in claims
    if name == "original_rates":
        assert "small: eta_Y/eta_Z is 9 at the start" in claims
