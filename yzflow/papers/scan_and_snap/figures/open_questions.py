"""Figures of the open questions about Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from theory.scan_and_snap.proofs.slowdown import late_ratio
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, VERMILION, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap.open_questions import gradient, late, original, spurious
from yzflow.papers.scan_and_snap.settings import PAPER

_SPEEDS = ((5, 60, 0.967), (5, 60, 0.3), (10, 100, 0.1), (10, 1000, 0.011))  # K, M, rho
_FALLS = ((10, 1000, 5), (5, 20, 1), (5, 5, 1))  # K, M, distinct tokens a class


def _speeds(effort: Effort) -> dict[str, Any]:
    n, last = (25, 400.0) if effort.quick else (60, 1e4)
    s = np.concatenate([np.linspace(-6, 8, n), np.geomspace(8.2, last, n)])
    curves = {
        setting: late.frozen_speeds(s, n_classes=setting[0], vocab_size=setting[1], overlap=setting[2])
        for setting in _SPEEDS
    }
    sizes, overlaps = [20, 1000], [0.01, 0.3]
    if not effort.quick:
        sizes, overlaps = [10, 20, 50, 100, 300, 1000, 3000, 10_000], [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9]
    times = late.overtaking(n_classes=10, vocab_sizes=sizes, overlaps=overlaps, last=last)
    return {"ln_t": s, "curves": curves, "map": times}


def _who_overtakes(data: Mapping[str, Any]) -> str:
    parts = []
    for (k, m, rho), curve in data["curves"].items():
        above = np.flatnonzero(curve >= 1)
        when = f"passes 1 near ln t = {data['ln_t'][above[0]]:.3g}" if above.size else "stays below 1"
        limit = float(late_ratio(m, k, rho))
        parts.append(f"K = {k}, M = {m}, rho = {rho:g}: {when}, {curve[-1]:.3g} at the end, limit {limit:.3g}.")
    return " ".join(parts)


@styled
def overtaking(data: Mapping[str, Any]) -> Figure:
    """Where the full flow overtakes the theory: ratio of the speeds of attention with frozen features, equal overlaps.

    Left: from s at the start to s_inf (dotted), in ln(eta_Y t/K). Right, K = 10: ln(eta_Y t/K) at which the ratio first
    reaches one. The paper says of its modified gradient only that the modification is small.

    Parameters
    ----------
    data : mapping
        ``ln_t``, ``curves`` by (K, M, rho), and ``map`` from `late.overtaking`.
    """
    figure = canvas(figsize=(10, 4))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.3, 1]})
    n = len(data["curves"])
    for i, (((k, m, rho), curve), colour) in enumerate(zip(data["curves"].items(), ordered_colours(n), strict=True)):
        left.plot(data["ln_t"], curve, color=colour, label=rf"$K = {k}$, $M = {m}$, $\rho = {rho:g}$")
        # The dots of limits that nearly agree stand side by side, each in the colour of its curve.
        dots = (1.5 * i, (1.5, 1.5 * (n - 1)))
        left.axhline(float(late_ratio(m, k, rho)), color=colour, linestyle=dots, linewidth=1.6)
    left.axhline(1, color=BLACK, linewidth=0.8)
    left.set_xscale("symlog", linthresh=10)
    left.set(yscale="log", xlabel=r"$\ln(\eta_Y t/K)$", ylabel="speed, full flow : theory", xlim=(-6, data["ln_t"][-1]))
    left.legend(loc="lower right")
    times = data["map"]
    shown = np.log10(np.maximum(times.values, 1.0))
    mesh = right.imshow(shown, origin="lower", cmap="cividis", aspect="auto")
    for (i, j), value in np.ndenumerate(times.values):
        light = shown[i, j] < 0.6 * shown.max()
        right.text(
            j,
            i,
            f"{value:.0f}" if value >= 100 else f"{value:.3g}",
            ha="center",
            va="center",
            color="white" if light else "black",
            fontsize=8,
        )
    right.set_xticks(range(times.sizes["overlap"]), [f"{rho:g}" for rho in times["overlap"].values])
    right.set_yticks(range(times.sizes["vocab_size"]), [str(m) for m in times["vocab_size"].values])
    right.grid(False)
    right.set(xlabel=r"overlap $\rho$", ylabel="M", title=r"$\ln(\eta_Y t/K)$ of overtaking, $K = 10$")
    figure.colorbar(mesh, ax=right, label="its decimal logarithm")
    figure.suptitle("The full flow starts slower than the theory and ends faster")
    return figure


def _falls(effort: Effort) -> dict[tuple[int, int, int], xr.Dataset]:
    s = np.geomspace(2, 300.0 if effort.quick else 1e4, 40 if effort.quick else 80)
    found = {}
    for k, m, n_distinct in _FALLS:
        flow = late.late_flow(s, n_classes=k, vocab_size=m, n_distinct=n_distinct, rtol=1e-7)
        flow["theory"] = ("ln_t", late.theory_logit(s, n_classes=k, vocab_size=m, n_distinct=n_distinct))
        if m > k:
            slow, _ = late.slow_exponent(flow["ratio"].values, n_classes=k, vocab_size=m)
            flow["slow"] = ("ln_t", slow)
        found[k, m, n_distinct] = flow
    return found


def _exponents(flows: Mapping[tuple[int, int, int], xr.Dataset]) -> str:
    parts = []
    for (k, m, _), flow in flows.items():
        values = ", ".join(
            f"{float(flow['exponent'].sel(ln_t=s, method='nearest')):.3g}" for s in (10, 100, float(flow["ln_t"][-1]))
        )
        limit = late.final_exponent(n_classes=k, vocab_size=m)
        last = float(flow["ln_t"][-1])
        parts.append(f"K = {k}, M = {m}: exponent {values} at ln t = 10, 100, {last:.0f}; limit {limit:.3g}.")
    return " ".join(parts)


@styled
def no_freezing(flows: Mapping[tuple[int, int, int], xr.Dataset]) -> Figure:
    """The common token's logit late, and the exponent with which its share of attention falls in ln t.

    Left: z in the full flow (lines) and in the theory flow (dashed, exact); -(1/2) ln ln t, Theorem 4's late form, as
    a slope. Right: -d ln(f_common/f_distinct)/d ln ln t of the full flow, what a slow change predicts (dots, from
    ln t = 10 on), and the limit (K - 1)/(M - 1), dotted. Nothing freezes: attention moves for ever, like a power of
    ln t.

    Parameters
    ----------
    flows : mapping
        (K, M, distinct tokens) -> `late.late_flow` with ``theory`` and, for K < M, ``slow``.
    """
    figure = canvas(figsize=(10, 4.2))
    left, right = figure.subplots(1, 2)
    for ((k, m, _), flow), colour in zip(flows.items(), (BLUE, GREEN, VERMILION), strict=False):
        label = f"K = {k}, M = {m}"
        left.plot(flow["ln_t"], flow["z"], color=colour, label=label)
        left.plot(flow["ln_t"], flow["theory"], "--", color=colour, linewidth=1)
        right.plot(flow["ln_t"], flow["exponent"], color=colour, label=label)
        if "slow" in flow:
            dots = flow.sel(ln_t=slice(10, None))[{"ln_t": slice(None, None, 4)}]
            right.plot(dots["ln_t"], dots["slow"], "o", color=colour, markersize=3.5)
        limit = late.final_exponent(n_classes=k, vocab_size=m)
        right.axhline(limit, color=colour, linestyle=":", linewidth=1.2)
    s = flow["ln_t"].values
    left.plot(s, 1.0 - 0.5 * np.log(s), color="0.5", linewidth=3, alpha=0.5, label=r"slope $-\frac{1}{2}\ln\ln t$")
    left.plot([], [], "--", color="0.3", linewidth=1, label="theory flow")
    right.axhline(0.5, color="0.5", linewidth=3, alpha=0.5)
    left.set(xscale="log", xlabel=r"$\ln t$", ylabel="logit of the common token")
    right.set(xscale="log", xlabel=r"$\ln t$", ylabel=r"exponent of $\ln t$")
    left.legend()
    right.legend()
    figure.suptitle(r"Attention does not freeze: the common token's share falls like a power of $\ln t$")
    return figure


def _gradients(effort: Effort) -> dict[str, Any]:
    s = np.linspace(-5, 9, 30 if effort.quick else 90)
    rng, curves = np.random.default_rng(3), []
    for kind in gradient.KINDS:
        for _ in range(1 if effort.quick else 6):
            G = gradient.random_overlaps(rng, 5, kind)
            flow = gradient.frozen_flow(G, vocab_size=50, ln_t=s)
            early = gradient.early_xi(G, vocab_size=50) * np.exp(s)[:, None]
            moves = early[0] > 0  # a class without overlaps has xi_n = 0 at all times
            worst = flow["term"].min("other") / np.abs(flow["term"]).sum("other")
            curves.append({"kind": kind, "ratio": flow["xi"].values[:, moves] / early[:, moves],
                           "share": flow["share"].values[:, moves], "term": worst.values[:, moves]})  # fmt: skip
    return {"ln_t": s, "curves": curves, "survey": gradient.survey(draws=6 if effort.quick else 100, seed=2)}


def _signs(data: Mapping[str, Any]) -> str:
    found = data["survey"]
    return (
        f"Of {found.sizes['draw']} random Gram matrices (K from 3 to 7) {int((found['least'] <= 0).sum())} have some "
        f"xi_n <= 0 at some time; the smallest share is {float(found['least'].min()):.3g}. A single term is "
        f"below zero in {float(found['negative'].mean()):.0%} of them."
    )


@styled
def true_gradient(data: Mapping[str, Any]) -> Figure:
    """xi_n under the true decoder gradient, frozen features, random overlaps: its start, its sign, its terms.

    Left: over its first order (eta_Y t/(K M)) sum G_nn', proved for any overlaps. Middle: xi_n as a share of the sum of
    the moduli in sum_j alpha_n(j)(H_n(j) - H_n(n)): above 0 wherever it was looked. Right: the most negative single
    term over the sum of the moduli of all. Theorem 2(a) is proved early, late, and for equal overlaps at all times; in
    between, for other overlaps, this is a measurement.

    Parameters
    ----------
    data : mapping
        ``ln_t``, ``curves`` (kind, ratio, share, term), ``survey``.
    """
    figure = canvas(figsize=(11, 3.8))
    axes = figure.subplots(1, 3)
    colours = dict(zip(gradient.KINDS, ordered_colours(len(gradient.KINDS)), strict=True))
    for curve in data["curves"]:
        for name, panel in zip(("ratio", "share", "term"), axes, strict=True):
            panel.plot(data["ln_t"], curve[name], color=colours[curve["kind"]], linewidth=0.7, alpha=0.7)
    for kind, colour in colours.items():
        axes[1].plot([], [], color=colour, label=kind)
    axes[1].legend()
    for panel, label in zip(
        axes, (r"$\xi_n$ over its first order", r"share of $\xi_n$", "most negative term"), strict=True
    ):
        panel.set(xlabel=r"$\ln(\eta_Y t/K)$", ylabel=label)
        panel.axhline(0, color=BLACK, linewidth=0.8)
    axes[0].set(yscale="log", ylim=(1e-6, 1e3))
    axes[1].set_ylim(min(0.0, float(data["survey"]["least"].min())) - 0.03, 1.03)
    figure.suptitle("Theorem 2(a) without the modified gradient: $K = 5$, $M = 50$")
    return figure


def _data_sets(effort: Effort) -> xr.Dataset:
    return spurious.suppression(seeds=2, tokens_per_class=(30, 300, 3000)) if effort.quick else spurious.suppression()


def _numbers(data: xr.Dataset) -> str:
    rows = []
    for n in data["tokens_per_class"].values:
        row = data.sel(tokens_per_class=n)
        rows.append(
            f"n = {n}: {float(row['number'].mean()):.3g} spurious tokens (expected "
            f"{float(row['expected_number']):.3g}), attention {float(row['end'].mean()):.2g} (expected "
            f"{float(row['expected_end']):.2g})."
        )
    risen = float(data["risen"].weighted(data["number"]).mean()) if bool(data["risen"].notnull().any()) else np.nan
    return f"The logits of {risen:.0%} of the spurious tokens rose. " + " ".join(rows)


@styled
def spurious_tokens(data: xr.Dataset) -> Figure:
    """Spurious distinct tokens against the size of the data set: number and attention, and expectations (Section 9).

    Common tokens that occur with one next token only in the data, K = 4 classes, Zipf's law. Lines: expectations in
    closed form; dots: mean and standard deviation over data sets, before and after training in the full flow. Agrees
    with the paper's remark that large data sets suppress them.

    Parameters
    ----------
    data : xarray.Dataset
        From `spurious.suppression`.
    """
    figure = canvas(figsize=(9.5, 4))
    left, right = figure.subplots(1, 2)
    n = data["tokens_per_class"]
    panels = {
        left: (("number", "spurious tokens", BLUE),),
        right: (("start", "before training", GREEN), ("end", "after training", VERMILION)),
    }
    for axes, names in panels.items():
        for name, label, colour in names:
            axes.plot(data["size"], data[f"curve_{name}"], color=colour, label=f"{label}, expected")
            mean, spread = data[name].mean("seed"), data[name].std("seed")
            axes.errorbar(n, mean, spread, fmt="o", color=colour, markersize=4, capsize=2, label=f"{label}, counted")
        axes.set(xscale="log", xlabel="contextual tokens of each class in the data set")
        axes.legend()
    left.set(ylabel="number", yscale="symlog", ylim=(0, None))
    right.set(ylabel="attention on them", yscale="log", ylim=(1e-6, 1))
    figure.suptitle("Tokens that look distinct because the data set is small")
    return figure


def _one_rate(effort: Effort) -> dict[str, xr.Dataset]:
    options: dict[str, Any] = {"t_end": 100.0, "n_times": 6} if effort.quick else {"t_end": 300.0, "n_times": 25}
    found = {"d = M = 13": original.against_induced(**options)}
    if not effort.quick:
        found["d = M = 41"] = original.against_induced(n_distinct=10, **options)
    return found


def _drift(data: Mapping[str, xr.Dataset]) -> str:
    parts = []
    for name, flow in data.items():
        ratio = flow["eta_y"] / flow["eta_z"]
        first = flow.attrs["predicted_eta_y"] / flow.attrs["predicted_eta_z"]
        parts.append(
            f"{name}: eta_Y/eta_Z is {first:.3g} at the start, {float(ratio[-1]):.2g} at t = "
            f"{float(flow['time'][-1]):g}; eta_Y has grown by "
            f"{float(flow['eta_y'][-1]) / flow.attrs['predicted_eta_y']:.2g}."
        )
    return " ".join(parts)


@styled
def original_rates(data: Mapping[str, xr.Dataset]) -> Figure:
    """Which rates of Y and Z one learning rate on U, W_V, W_Q, W_K induces, and their drift (Appendix G's open point).

    Left: -z of the common token, original parameters (lines) and Y, Z with the rates of the start (dashed). Middle: the
    effective rates over eta, dots: predicted at the start. Right: how far dY/dt and dZ/dt point along the gradients.

    Parameters
    ----------
    data : mapping
        Name -> dataset of `original.against_induced`.
    """
    figure = canvas(figsize=(11, 3.8))
    left, middle, right = figure.subplots(1, 3)
    for (name, flow), line in zip(data.items(), ("-", "-."), strict=False):
        eta, time = flow.attrs["eta"], flow["time"]
        left.plot(time, -flow["z"], line, color=BLUE, label=f"original, {name}")
        left.plot(time, -flow["z_induced"], "--", color=VERMILION, linewidth=1, label=f"induced, {name}")
        for kind, colour in (("y", GREEN), ("z", VERMILION)):
            middle.plot(
                time, flow[f"eta_{kind}"] / eta, line, color=colour, label=rf"$\eta_{kind.upper()}/\eta$, {name}"
            )
            middle.plot(0, flow.attrs[f"predicted_eta_{kind}"] / eta, "o", color=colour, markersize=5, clip_on=False)
            right.plot(time, flow[f"cosine_{kind}"], line, color=colour, label=f"{kind.upper()}, {name}")
    left.set(ylabel="fall of the common token's logit")
    middle.set(yscale="log", ylabel="effective rate")
    right.set(ylabel="cosine with the gradient", ylim=(0, 1.02))
    for axes in (left, middle, right):
        axes.set_xlabel("time t (SGD steps)")
        axes.legend(fontsize=7.5)
    figure.suptitle(r"One rate $\eta$ on the original parameters: $Y = UW_V^TU^T$, $Z = UW_QW_K^TU^T/\sqrt{d}$")
    return figure


FIGURES = (
    Entry("overtaking", PAPER, overtaking, _speeds, claims=_who_overtakes),
    Entry("no_freezing", PAPER, no_freezing, _falls, claims=_exponents),
    Entry("true_gradient", PAPER, true_gradient, _gradients, claims=_signs),
    Entry("spurious_tokens", PAPER, spurious_tokens, _data_sets, claims=_numbers),
    Entry("original_rates", PAPER, original_rates, _one_rate, claims=_drift),
)
