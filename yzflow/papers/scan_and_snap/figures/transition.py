"""Figures of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from theory import attention, decoder
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, CATEGORIES, GREEN, VERMILION, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.settings import PAPER

_TIME = "time t (SGD steps)"


def _options(effort: Effort) -> dict[str, Any]:
    """The arguments of `phase_transition.fidelity_flows` for this effort."""
    return {"n_times": 100 if effort.quick else 400, "store": effort.store, "progress": effort.progress}


def _theory_flows(effort: Effort) -> dict[float, Trajectory]:
    classes, options = pt.weak_classes(), _options(effort)
    return {rate: pt.fidelity_flows(classes, eta_y=rate, decoders=["theory"], **options)["theory"] for rate in pt.ETA_Y}


@styled
def figure3(flows: Mapping[float, Trajectory]) -> Figure:
    """Growth factor chi of the dominant distinct token, K = 10, M = 1000, eta_Z = 0.5, for four eta_Y (Fig. 3).

    Left: the paper's convention, exponent B and C_0 = rho_0^4 / K with rho_0 = 1 (the paper does not state its
    rho_0); it starts at sqrt(C_0) and not at 1, because (14) drops the lower limit of its integral. Right:
    the consistent exponent B/K on a concrete task, with the theory flow's simulated chi. The paper: a smaller eta_Y
    has a later transition and larger growth. The sizes of the two panels do not compare, since C_0 differs. Dotted: the
    paper's t0.

    Parameters
    ----------
    flows : mapping
        eta_Y -> theory flow on `phase_transition.weak_classes`.
    """
    classes = pt.weak_classes()
    figure = canvas(figsize=(10, 4.2))
    printed, consistent = figure.subplots(1, 2)
    times = np.linspace(0, pt.T_END, 701)
    shared: dict[str, Any] = {"vocab_size": pt.VOCAB_SIZE, "n_classes": pt.N_CLASSES}
    distinct = classes.probabilities[[0], 1:].toarray().ravel()
    distinct = distinct[distinct > 0]
    for (rate, flow), colour in zip(flows.items(), ordered_colours(len(flows)), strict=True):
        rates: dict[str, Any] = {"eta_y": rate, "eta_z": pt.ETA_Z}
        label = rf"$\eta_Y = {rate:g}$"
        printed_exponent = attention.printed_growth_exponent(times, **shared, **rates, c0=1 / pt.N_CLASSES)
        printed.plot(times, np.exp(2 * printed_exponent), color=colour, label=label)
        exponent = attention.growth_exponent(times, **shared, **rates, c0=pt.speed_constant(classes)) / pt.N_CLASSES
        growth = attention.distinct_growth(exponent, distinct)[:, 0]
        consistent.plot(times, 1e3 * (growth - 1), color=colour, label=label)
        simulated = flow.growth_factor(0, 1)
        simulated = simulated.interp(time=np.arange(0, pt.T_END + 1, 50))
        consistent.plot(simulated["time"], 1e3 * (simulated - 1), "o", color=colour, markersize=4)
        peak = decoder.transition_time(**shared, eta_y=rate)
        for axes, curve in ((printed, np.exp(2 * printed_exponent)), (consistent, 1e3 * (growth - 1))):
            axes.axvline(decoder.snapping_time(**shared, eta_y=rate), color=colour, linestyle=":", linewidth=1.2)
            axes.plot(peak, np.interp(peak, times, curve), "D", color=colour, markeredgecolor="white", markersize=7)
    printed.set(title=r"paper's convention: $\chi = e^{2B}$, $C_0 = 1/K$", ylabel=r"growth factor $\chi(t)$")
    printed.set_yscale("log")
    consistent.set(
        title=r"consistent: exponent $B/K$, $C_0 = 1/((K-1)\rho^2)$, $\rho = 0.0101$",
        ylabel=r"growth beyond one, $1000\,(\chi(t) - 1)$",
    )
    for axes in (printed, consistent):
        axes.set(xlabel=_TIME, xlim=(0, pt.T_END))
    consistent.plot([], [], "-", color="0.4", label="closed form")
    consistent.plot([], [], "o", color="0.4", markersize=4, label="theory flow, simulated")
    consistent.plot([], [], "D", color="0.4", markeredgecolor="white", markersize=7, label=r"exact transition $t^*$")
    consistent.plot([], [], ":", color="0.4", linewidth=1.2, label=r"paper's $t_0 = 2K\ln M/\eta_Y$")
    figure.legend(*consistent.get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(rf"Growth of a distinct token: $K = {pt.N_CLASSES}$, $M = {pt.VOCAB_SIZE}$, $\eta_Z = {pt.ETA_Z}$")
    return figure


def _sizes_of_growth(flows: Mapping[float, Trajectory]) -> str:
    """Figure 3: growth by each convention at the last time, and its order in eta_Y."""
    shared: dict[str, Any] = {"vocab_size": pt.VOCAB_SIZE, "n_classes": pt.N_CLASSES, "eta_z": pt.ETA_Z}
    constant = pt.speed_constant(pt.weak_classes())
    bounds: dict[str, list[float]] = {"left": [], "printed": [], "lower limit": [], "probability": [], "simulated": []}
    ends = []
    for rate, flow in flows.items():
        end = float(flow.dataset["time"][-1])
        both = [
            float(attention.printed_growth_exponent(end, **shared, eta_y=rate, c0=c0))
            for c0 in (1 / pt.N_CLASSES, constant)
        ]
        exact = float(attention.growth_exponent(end, **shared, eta_y=rate, c0=constant))
        for name, exponent in zip(bounds, (*both, exact, exact / pt.N_CLASSES), strict=False):
            bounds[name].append(float(np.exp(2 * exponent)))
        bounds["simulated"].append(float(flow.growth_factor(0, 1)[-1]))
        ends.append(end)
    spans = {name: f"{min(values):.4g} to {max(values):.4g}" for name, values in bounds.items()}
    smaller = np.argsort(list(flows))
    grows = "grows" if (np.diff(np.array(bounds["simulated"])[smaller]) < 0).all() else "does not grow"
    return (
        f"At t = {max(ends):g} the left panel has {spans['left']}. At the right panel's C_0 the printed bound exp(2B) "
        f"is {spans['printed']}; with the lower limit of the integral it is {spans['lower limit']}, and with the class "
        f"probability 1/K too {spans['probability']}. The right panel's token, which is not all of its class, has "
        f"grown by {spans['simulated']}; it {grows} more the smaller eta_Y is."
    )


def _gaps(curves: xr.Dataset) -> str:
    """Figure 8: the gap of each curve against Lemma 7."""
    largest, least = [], []
    for vocab_size, rates, _ in pt.FIGURE_8:
        gap = (curves[f"h_steps_{vocab_size}"] - curves[f"h_{vocab_size}"]) * vocab_size
        scaled = gap / xr.DataArray(list(rates), dims=f"eta_y_{vocab_size}")
        largest += scaled.max(f"time_{vocab_size}").values.tolist()
        least.append(float(scaled.min()))
    inside = "as Lemma 7 says" if min(least) >= -1e-12 and max(largest) <= 2 else "against Lemma 7"
    return (
        f"In these curves h* - h is at most {min(largest):.2g} to {max(largest):.2g} eta_Y / M, and at least "
        f"{min(least):.2g}: {inside}."
    )


def _levels_at_snap(curves: xr.Dataset) -> str:
    """Figure 9: B at t0 for each nu, and how much it depends on eta_Z."""
    parts = []
    for nu, vocab_size, _ in pt.FIGURE_9:
        level, t0 = curves[f"exponent_at_t0_{vocab_size}"], curves[f"t0_{vocab_size}"]
        spread = float(np.abs(level / level[0] - 1).max())
        parts.append(
            f"{float(level[0]):.3f} at nu = {nu:g}, M = {vocab_size} (relative spread over eta_Z {spread:.0e}; t0 "
            f"{'falls' if (t0.diff('eta_z') < 0).all() else 'does not fall'} with eta_Z)"
        )
    return f"Here B at t0 is {' and '.join(parts)}."


@styled
def figure8(curves: xr.Dataset) -> Figure:
    """h*(s) of discrete steps against the continuous h(t), for two vocabularies (Fig. 8).

    Lemma 7: the steps run ahead of the continuous h, by at most 2 eta_Y / M; eta_Y / M holds for every eta_Y.

    Parameters
    ----------
    curves : xarray.Dataset
        From `phase_transition.decoder_curves`.
    """
    figure = canvas(figsize=(9.5, 6))
    axes = figure.subplots(2, 2, sharex="col", gridspec_kw={"height_ratios": [2.2, 1]})
    for column, (vocab_size, rates, _) in enumerate(pt.FIGURE_8):
        top, bottom = axes[:, column]
        steps = curves[f"time_{vocab_size}"]
        for i, colour in enumerate(ordered_colours(len(rates))):
            discrete, continuous = (
                curves[f"{name}_{vocab_size}"].isel({f"eta_y_{vocab_size}": i}) for name in ("h_steps", "h")
            )
            top.plot(steps, 1e3 * continuous, color=colour, label=rf"$\eta_Y = {rates[i]:g}$")
            top.plot(steps[::4], 1e3 * discrete[::4], "o", color=colour, markersize=3.2)
            bottom.plot(steps, (discrete - continuous) * vocab_size / rates[i], color=colour)
        top.plot([], [], "-", color="0.4", label="continuous h(t)")
        top.plot([], [], "o", color="0.4", markersize=3.2, label="discrete h*(s)")
        top.set(title=rf"$M = {vocab_size}$", ylabel=r"$1000\,h$")
        top.legend(ncols=2)
        bottom.set(xlabel="visits s of the class (K = 1: SGD steps)", ylabel=r"$(h^* - h)\, M / \eta_Y$")
    figure.suptitle("The decoder in steps and in continuous time; by Lemma 7 the lower curves stay between 0 and 2")
    return figure


@styled
def figure9(curves: xr.Dataset) -> Figure:
    """Growth exponent B(t) at fixed nu = eta_Y / eta_Z, K = 1, C_0 = 1, with t0 as a dot on each curve (Fig. 9).

    The dotted line is B at t0 of the smallest eta_Z.

    The paper: at a fixed nu, B at t0 does not depend on eta_Z, and larger rates get there earlier. Its caption prints
    nu = eta_Z / eta_Y; its text, (130) and its panels have the nu of this figure. With K = 1 and C_0 = 1 the paper's
    printed B and the corrected one are the same curve; elsewhere they are not.

    Parameters
    ----------
    curves : xarray.Dataset
        From `phase_transition.exponent_curves`.
    """
    figure = canvas(figsize=(9.5, 4))
    for axes, (nu, vocab_size, t_end) in zip(figure.subplots(1, 2), pt.FIGURE_9, strict=True):
        for i, colour in enumerate(ordered_colours(len(pt.FIGURE_9_ETA_Z))):
            label = rf"$\eta_Z = {pt.FIGURE_9_ETA_Z[i]:g}$"
            axes.plot(
                curves[f"time_{vocab_size}"], curves[f"exponent_{vocab_size}"].isel(eta_z=i), color=colour, label=label
            )
            dot = (curves[f"t0_{vocab_size}"][i], curves[f"exponent_at_t0_{vocab_size}"][i])
            axes.plot(*dot, "o", color=colour, markersize=5, clip_on=False)
        level = float(curves[f"exponent_at_t0_{vocab_size}"][0])
        axes.axhline(level, color="0.4", linewidth=0.8, linestyle=":")
        axes.set(
            title=rf"$\nu = \eta_Y/\eta_Z = {nu:g}$, $M = {vocab_size}$", xlabel=_TIME, ylabel="growth exponent B(t)"
        )
        axes.set(xlim=(0, t_end), ylim=(0, None))
        axes.legend(loc="lower right")
    figure.suptitle(r"At a fixed ratio of rates, B at $t_0$ (dots) does not depend on $\eta_Z$ (dotted level)")
    return figure


def _slow_and_slower(effort: Effort) -> list[tuple[SequenceClasses, dict[str, Trajectory]]]:
    classes, options = pt.weak_classes(), _options(effort)
    return [
        (classes, pt.fidelity_flows(classes, eta_y=1.0, eta_z=rate, **options)) for rate in (pt.ETA_Z, pt.SLOW_RATIO)
    ]


@styled
def fidelity(panels: Sequence[tuple[SequenceClasses, Mapping[str, Trajectory]]]) -> Figure:
    """How far the common token's logit has fallen at each level of fidelity, and the disagreement between levels.

    Left at the paper's eta_Z = 0.5, right with attention a thousand times slower than the decoder (Assumption 1(c)).
    There the modified flow agrees with the theory. The full flow does not, at either rate. Early on the factor between
    them is s of `theory.attention.full_flow_slowdown`, where the paper's Remark 1 expects 1 - rho = 0.99. The vertical
    dashed line is t*.

    Parameters
    ----------
    panels : two pairs (classes, decoder -> trajectory)
    """
    figure = canvas(figsize=(10, 6))
    axes = figure.subplots(2, 2, sharex="col", sharey="row", gridspec_kw={"height_ratios": [1.6, 1]})
    for (top, bottom), (classes, flows) in zip(axes.T, panels, strict=True):
        _fidelity_panel(top, bottom, classes, flows)
    axes[0, 0].set_ylabel(r"fall of the common logit, $-z(t)\,/\,\eta_Z$")
    axes[1, 0].set_ylabel("disagreement |ratio - 1|")
    axes[0, 0].legend(loc="lower right")
    axes[1, 0].legend(loc="lower right")
    figure.suptitle("Four descriptions of one training run, and where they part")
    return figure


def _falls(flows: Mapping[str, Trajectory]) -> dict[str, xr.DataArray]:
    """How far the common token's logit has fallen, by flow, after the start."""
    return {name: -flows[name].dataset["z"].isel(query=0).sel(token=0)[1:] for name in pt.LEVELS}


def _disagreements(panels: Sequence[tuple[SequenceClasses, Mapping[str, Trajectory]]]) -> str:
    parts = []
    for _, flows in panels:
        fall = {name: values.where(values["time"] >= 1, drop=True) for name, values in _falls(flows).items()}
        gap = float(np.abs(fall["theory"] / fall["modified"] - 1).max())
        share = fall["full"] / fall["modified"]
        parts.append(
            f"At eta_Z = {flows['full'].parameters['eta_z']:g} theory and modified flow are at most {100 * gap:.2g}% "
            f"apart, and the full flow's fall is {float(share[0]):.2g} of the modified one's at the first time and "
            f"{float(share[-1]):.2g} at the last."
        )
    return " ".join(parts)


def _fidelity_panel(top: Axes, bottom: Axes, classes: SequenceClasses, flows: Mapping[str, Trajectory]) -> None:
    rates = {name: flows["theory"].parameters[name] for name in ("eta_y", "eta_z")}
    sizes = {"vocab_size": classes.vocab_size, "n_classes": classes.n_classes}
    fall = _falls(flows)
    times = fall["theory"]["time"].values
    closed = attention.growth_exponent(times, **sizes, **rates, c0=pt.speed_constant(classes))
    slowdown = attention.full_flow_slowdown(**sizes, overlap=float(classes.overlap()[0, 1]))
    curves = {
        "closed form B(t)": closed,
        "theory flow": fall["theory"].values,
        "modified flow": fall["modified"].values,
        "full flow": fall["full"].values,
    }
    for (name, values), (colour, line) in zip(curves.items(), CATEGORIES, strict=False):
        # The closed form lies under the theory flow: a wide pale line shows both.
        look = {"color": "0.75", "linewidth": 5} if name == "closed form B(t)" else {"color": colour, "linestyle": line}
        top.loglog(times, values / rates["eta_z"], label=name, **look)
    top.loglog(times, slowdown * closed / rates["eta_z"], ":", color=BLACK, label=rf"$s\,B(t)$, $s = {slowdown:.3f}$")
    first = int(np.searchsorted(times, 1.0))
    top.set_ylim(0.3 * curves["full flow"][first] / rates["eta_z"], 3 * closed[-1] / rates["eta_z"])
    for above, below, colour, line in (
        ("modified flow", "full flow", VERMILION, "-."),
        ("theory flow", "modified flow", GREEN, "--"),
        ("closed form B(t)", "theory flow", BLUE, "-"),
    ):
        gap = np.abs(curves[above] / curves[below] - 1)
        bottom.loglog(times[first:], gap[first:], line, color=colour, label=f"{above} : {below}")
    bottom.axhline(1 / slowdown - 1, color=BLACK, linestyle=":", label=f"1/s - 1 = {1 / slowdown - 1:.1f}")
    bottom.set(xlabel=_TIME, xlim=(1, times[-1]))
    peak = decoder.transition_time(**sizes, eta_y=rates["eta_y"])
    for axes in (top, bottom):
        axes.axvline(peak, color="0.3", linestyle="--", linewidth=0.9)
    top.annotate("$t^*$", (peak, 0.03), xycoords=("data", "axes fraction"), xytext=(3, 0), textcoords="offset points")
    top.set_title(rf"$\eta_Y = {rates['eta_y']:g}$, $\eta_Z = {rates['eta_z']:g}$")


FIGURES = (
    Entry("figure3", PAPER, figure3, _theory_flows, number=3, claims=_sizes_of_growth),
    Entry("figure8", PAPER, figure8, lambda effort: pt.decoder_curves(), number=8, claims=_gaps),
    Entry("figure9", PAPER, figure9, lambda effort: pt.exponent_curves(), number=9, claims=_levels_at_snap),
    Entry("fidelity", PAPER, fidelity, _slow_and_slower, claims=_disagreements),
)
