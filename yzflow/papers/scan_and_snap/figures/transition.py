"""Figures of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from dynamics.support import checks
from theory import attention
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, CATEGORIES, GREEN, VERMILION, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap import equal
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.equal import Equal
from yzflow.papers.scan_and_snap.settings import PAPER
from yzflow.values.marks import as_text

_TIME = "time t (SGD steps)"
_NO_SPREAD = 1e-9  # of numbers that are equal but for rounding


def _options(effort: Effort) -> dict[str, Any]:
    """The arguments of `phase_transition.fidelity_flows` for this effort."""
    return {"n_times": 100 if effort.quick else 400, "store": effort.store, "progress": effort.progress}


def _theory_flows(
    effort: Effort,
    *,
    n_classes: int = pt.N_CLASSES,
    vocab_size: int = pt.VOCAB_SIZE,
    common: float = pt.COMMON,
    eta_y: Sequence[float] = pt.ETA_Y,
    eta_z: float = pt.ETA_Z,
    t_end: float = pt.T_END,
) -> dict[float, Trajectory]:
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    options = _options(effort) | {"eta_z": eta_z, "t_end": t_end, "decoders": ["theory"]}
    return {rate: pt.fidelity_flows(classes, eta_y=rate, **options)["theory"] for rate in eta_y}


def _read_theory(flows: Mapping[float, Trajectory]) -> list[tuple[Equal, Trajectory]]:
    """Figure 3's flows and what they say of their training: theory flows that differ in eta_Y alone."""
    checks.instance("flows", flows, Mapping, rule="be a mapping from eta_Y to theory flows")
    told = [(equal.read("flows", flow), flow) for flow in flows.values()]
    if not told:
        raise checks.reject("flows", "have one flow or more", "none")
    first = told[0][0]
    for rate, (own, flow) in zip(flows, told, strict=True):
        if flow.parameters["decoder"] != "theory":
            raise checks.reject("flows", "be theory flows, decoder='theory'", flow.parameters["decoder"])
        if rate != own.eta_y:
            raise checks.reject("flows", "have their own eta_Y for keys", f"{own.eta_y:g} under {rate!r}")
        if replace(own, eta_y=first.eta_y) != first:
            rule = "differ in eta_Y alone: draw other flows in a figure of their own"
            raise checks.reject("flows", rule, f"{_setting(first)} and {_setting(own)}")
    return told


def _setting(one: Equal) -> str:
    return f"{one.words}, eta_Z = {one.eta_z:g}, t = {one.t_end:g}"


@styled
def figure3(flows: Mapping[float, Trajectory]) -> Figure:
    """Growth factor chi of the dominant distinct token, for several eta_Y (Fig. 3).

    Left: the paper's convention, exponent B and C_0 = rho_0^4 / K with rho_0 = 1 (the paper does not state its
    rho_0); it starts at sqrt(C_0) and not at 1, because (14) drops the lower limit of its integral. Right:
    the consistent exponent B/K on a concrete task, with the theory flow's simulated chi. The paper: a smaller eta_Y
    has a later transition and larger growth. The sizes of the two panels do not compare, since C_0 differs. Dotted: the
    paper's t0; diamonds: t*. Those after the last time are not drawn.

    Parameters
    ----------
    flows : mapping
        eta_Y -> theory flow, of equally frequent classes with one common token and equal overlaps, that differ in
        eta_Y alone. Sizes, rates, times and closed forms are those of the flows.
    """
    told = _read_theory(flows)
    first = told[0][0]
    figure = canvas(figsize=(10, 4.2))
    printed, consistent = figure.subplots(1, 2)
    times = np.linspace(0, first.t_end, 701)
    for (own, flow), colour in zip(told, ordered_colours(len(told)), strict=True):
        exponent = attention.printed_growth_exponent(times, **own.sizes, **own.rates, c0=1 / own.n_classes)
        label = rf"$\eta_Y = {own.eta_y:g}$"
        printed.plot(times, np.exp(2 * exponent), color=colour, label=label)
        growth = _growth(own, times)
        consistent.plot(times, 1e3 * (growth - 1), color=colour, label=label)
        simulated = flow.growth_factor(0, own.distinct).interp(time=np.linspace(0, own.t_end, 15))
        consistent.plot(simulated["time"], 1e3 * (simulated - 1), "o", color=colour, markersize=4)
        for axes, curve in ((printed, np.exp(2 * exponent)), (consistent, 1e3 * (growth - 1))):
            for time, draw in ((own.decoder.snapping_time, _dotted), (own.decoder.transition_time, _diamond)):
                if time <= own.t_end:
                    draw(axes, time, float(np.interp(time, times, curve)), colour)
    printed.set(title=r"paper's convention: $\chi = e^{2B}$, $C_0 = 1/K$", ylabel=r"growth factor $\chi(t)$")
    printed.set_yscale("log")
    consistent.set(
        title=rf"consistent: exponent $B/K$, $C_0 = 1/((K-1)\rho^2)$, $\rho = {first.overlap:.3g}$",
        ylabel=r"growth beyond one, $1000\,(\chi(t) - 1)$",
    )
    for axes in (printed, consistent):
        axes.set(xlabel=_TIME, xlim=(0, first.t_end))
    consistent.plot([], [], "-", color="0.4", label="closed form")
    consistent.plot([], [], "o", color="0.4", markersize=4, label="theory flow, simulated")
    consistent.plot([], [], "D", color="0.4", markeredgecolor="white", markersize=7, label=r"exact transition $t^*$")
    consistent.plot([], [], ":", color="0.4", linewidth=1.2, label=r"paper's $t_0 = 2K\ln M/\eta_Y$")
    figure.legend(*consistent.get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(
        rf"Growth of a distinct token: $K = {first.n_classes}$, $M = {first.vocab_size}$, $\eta_Z = {first.eta_z:g}$"
    )
    return figure


def _dotted(axes: Axes, time: float, height: float, colour: Any) -> None:
    axes.axvline(time, color=colour, linestyle=":", linewidth=1.2)


def _diamond(axes: Axes, time: float, height: float, colour: Any) -> None:
    axes.plot(time, height, "D", color=colour, markeredgecolor="white", markersize=7)


def _growth(one: Equal, times: np.ndarray) -> np.ndarray:
    """chi of the most probable distinct token of class 0 in closed form, with the consistent exponent B/K."""
    exponent = attention.growth_exponent(times, **one.sizes, **one.rates, c0=one.speed_constant) / one.n_classes
    return attention.distinct_growth(exponent, one.shares)[..., 0]


def _sizes_of_growth(flows: Mapping[float, Trajectory]) -> str:
    """Figure 3: growth by each convention at the last time, and its order in eta_Y."""
    told = _read_theory(flows)
    first = told[0][0]
    bounds: dict[str, list[float]] = {"left": [], "printed": [], "lower limit": [], "probability": [], "simulated": []}
    for own, flow in told:
        rates = own.sizes | own.rates
        both = [
            float(attention.printed_growth_exponent(own.t_end, **rates, c0=c0))
            for c0 in (1 / own.n_classes, own.speed_constant)
        ]
        exact = float(attention.growth_exponent(own.t_end, **rates, c0=own.speed_constant))
        for name, exponent in zip(bounds, (*both, exact, exact / own.n_classes), strict=False):
            bounds[name].append(float(np.exp(2 * exponent)))
        bounds["simulated"].append(float(flow.growth_factor(0, own.distinct)[-1]))
    spans = {name: _span(values) for name, values in bounds.items()}
    smaller = np.argsort([own.eta_y for own, _ in told])
    grows = "grows" if (np.diff(np.array(bounds["simulated"])[smaller]) < 0).all() else "does not grow"
    ending = f"; it {grows} more the smaller eta_Y is" if len(told) > 1 else ""
    return (
        f"Here {first.words} and eta_Z = {first.eta_z:g}. At t = {first.t_end:g} the left panel has "
        f"{spans['left']}. At the right panel's C_0 the printed bound exp(2B) is {spans['printed']}; with the lower "
        f"limit of the integral it is {spans['lower limit']}, and with the class probability 1/K too "
        f"{spans['probability']}. The right panel's token, which is not all of its class, has grown by "
        f"{spans['simulated']}{ending}."
    )


def _span(values: Sequence[float]) -> str:
    """ "0.1 to 0.3", or one number."""
    ends = [f"{end:.4g}" for end in (min(values), max(values))]
    return " to ".join(ends if len(values) > 1 else ends[:1])


def _vocabularies(curves: xr.Dataset, variable: str) -> list[int]:
    """The vocabulary sizes M that the names of a dataset's variables end in."""
    checks.instance("curves", curves, xr.Dataset)
    sizes = [re.fullmatch(rf"{variable}_(\d+)", str(name)) for name in curves.data_vars]
    found = [int(match[1]) for match in sizes if match]
    if not found:
        raise checks.reject("curves", f"have variables {variable}_M, as `phase_transition` makes them", "none")
    return found


def _gaps(curves: xr.Dataset) -> str:
    """Figure 8: the gap of each curve against Lemma 7."""
    largest, least, said = [], [], []
    for vocab_size in _vocabularies(curves, "h_steps"):
        gap = (curves[f"h_steps_{vocab_size}"] - curves[f"h_{vocab_size}"]) * vocab_size
        scaled = gap / curves[f"eta_y_{vocab_size}"]
        rates, last = (curves[f"{name}_{vocab_size}"].values for name in ("eta_y", "time"))
        said.append(f"eta_Y = {', '.join(f'{rate:g}' for rate in rates)} at M = {vocab_size}, {last[-1]} visits")
        largest += scaled.max(f"time_{vocab_size}").values.tolist()
        least.append(float(scaled.min()))
    inside = "as Lemma 7 says" if min(least) >= -1e-12 and max(largest) <= 2 else "against Lemma 7"
    return (
        f"In these curves ({'; '.join(said)}) h* - h is at most {min(largest):.2g} to {max(largest):.2g} eta_Y / M, "
        f"and at least {min(least):.2g}: {inside}."
    )


def _spread(level: xr.DataArray) -> float:
    """How far values are from the first, relatively."""
    return float(np.abs(level / level[0] - 1).max())


def _levels_at_snap(curves: xr.Dataset) -> str:
    """Figure 9: B at t0 for each nu, and how much it depends on eta_Z."""
    parts = []
    for vocab_size in _vocabularies(curves, "exponent"):
        nu = float(curves[f"nu_{vocab_size}"])
        level, t0 = curves[f"exponent_at_t0_{vocab_size}"], curves[f"t0_{vocab_size}"]
        parts.append(
            f"{float(level[0]):.3f} at nu = {nu:g}, M = {vocab_size} (relative spread over eta_Z {_spread(level):.0e}; "
            f"t0 {'falls' if (t0.diff('eta_z') < 0).all() else 'does not fall'} with eta_Z)"
        )
    rates = ", ".join(f"{rate:g}" for rate in curves["eta_z"].values)
    return f"Here, at eta_Z = {rates}, B at t0 is {' and '.join(parts)}."


def _decoders(
    effort: Effort,
    *,
    vocab_size: Sequence[int] | None = None,
    eta_y: Sequence[float] | None = None,
    steps: int | None = None,
) -> xr.Dataset:
    return pt.decoder_curves(vocab_size, eta_y, steps)


def _exponents(
    effort: Effort,
    *,
    vocab_size: Sequence[int] | None = None,
    ratios: Sequence[float] | None = None,
    eta_z: Sequence[float] = pt.FIGURE_9_ETA_Z,
    t_end: float | None = None,
) -> xr.Dataset:
    return pt.exponent_curves(vocab_size=vocab_size, ratios=ratios, eta_z=eta_z, t_end=t_end)


@styled
def figure8(curves: xr.Dataset) -> Figure:
    """h*(s) of discrete steps against the continuous h(t), for each vocabulary (Fig. 8).

    Lemma 7: the steps run ahead of the continuous h, by at most 2 eta_Y / M; eta_Y / M holds for every eta_Y.

    Parameters
    ----------
    curves : xarray.Dataset
        From `phase_transition.decoder_curves`.
    """
    sizes = _vocabularies(curves, "h_steps")
    figure = canvas(figsize=(max(4.75 * len(sizes), 6.5), 6))
    axes = figure.subplots(2, len(sizes), sharex="col", squeeze=False, gridspec_kw={"height_ratios": [2.2, 1]})
    for (top, bottom), vocab_size in zip(axes.T, sizes, strict=True):
        steps, rates = (curves[f"{name}_{vocab_size}"] for name in ("time", "eta_y"))
        for i, colour in enumerate(ordered_colours(len(rates))):
            discrete, continuous = (
                curves[f"{name}_{vocab_size}"].isel({f"eta_y_{vocab_size}": i}) for name in ("h_steps", "h")
            )
            top.plot(steps, 1e3 * continuous, color=colour, label=rf"$\eta_Y = {float(rates[i]):g}$")
            top.plot(steps[::4], 1e3 * discrete[::4], "o", color=colour, markersize=3.2)
            bottom.plot(steps, (discrete - continuous) * vocab_size / float(rates[i]), color=colour)
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
    sizes, rates = _vocabularies(curves, "exponent"), curves["eta_z"].values
    figure = canvas(figsize=(max(4.75 * len(sizes), 6.5), 4))
    for axes, vocab_size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        nu, t_end = float(curves[f"nu_{vocab_size}"]), float(curves[f"time_{vocab_size}"][-1])
        for i, colour in enumerate(ordered_colours(len(rates))):
            label = rf"$\eta_Z = {rates[i]:g}$"
            axes.plot(
                curves[f"time_{vocab_size}"], curves[f"exponent_{vocab_size}"].isel(eta_z=i), color=colour, label=label
            )
            dot = (curves[f"t0_{vocab_size}"][i], curves[f"exponent_at_t0_{vocab_size}"][i])
            if dot[0] <= t_end:
                axes.plot(*dot, "o", color=colour, markersize=5, clip_on=False)
        level = float(curves[f"exponent_at_t0_{vocab_size}"][0])
        axes.axhline(level, color="0.4", linewidth=0.8, linestyle=":")
        axes.set(
            title=rf"$\nu = \eta_Y/\eta_Z = {nu:g}$, $M = {vocab_size}$", xlabel=_TIME, ylabel="growth exponent B(t)"
        )
        axes.set(xlim=(0, t_end), ylim=(0, None))
        axes.legend(loc="lower right")
    same = all(_spread(curves[f"exponent_at_t0_{size}"]) < _NO_SPREAD for size in sizes)
    depends = "does not depend" if same else "depends"
    figure.suptitle(rf"At a fixed ratio of rates, B at $t_0$ (dots) {depends} on $\eta_Z$ (dotted level)")
    return figure


Panels = Sequence[tuple[SequenceClasses, Mapping[str, Trajectory]]]


def _slow_and_slower(
    effort: Effort,
    *,
    n_classes: int = pt.N_CLASSES,
    vocab_size: int = pt.VOCAB_SIZE,
    common: float = pt.COMMON,
    eta_y: float = 1.0,
    eta_z: Sequence[float] = (pt.ETA_Z, pt.SLOW_RATIO),
    t_end: float = pt.T_END,
) -> Panels:
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    options = _options(effort) | {"eta_y": eta_y, "t_end": t_end}
    return [(classes, pt.fidelity_flows(classes, eta_z=rate, **options)) for rate in eta_z]


def _read_levels(panels: Panels) -> list[tuple[Equal, Mapping[str, Trajectory]]]:
    """Training of each panel, as its flows record it."""
    panels = checks.listed("panels", panels, "be a sequence of pairs (classes, decoder -> trajectory)")
    if not panels:
        raise checks.reject("panels", "have one panel or more", "none")
    for _, flows in panels:
        if missing := [level for level in pt.LEVELS if level not in flows]:
            raise checks.reject("panels", "have the theory, the modified and the full flow", f"no {missing[0]} flow")
    return [(equal.same("panels", {name: flows[name] for name in pt.LEVELS}, own), flows) for own, flows in panels]


@styled
def fidelity(panels: Panels) -> Figure:
    """How far the common token's logit has fallen at each level of fidelity, and the disagreement between levels.

    A column is a training, with its rates in the title. B(t) is the closed form of the theory's fall. Early on the
    factor between the full flow and it is s of `theory.attention.full_flow_slowdown` (dotted), where the paper's
    Remark 1 expects 1 - rho. The vertical dashed line is t*.

    Parameters
    ----------
    panels : sequence of pairs (classes, decoder -> trajectory)
        Equally frequent classes with one common token and equal overlaps, and their theory, modified and full flow.
    """
    told = _read_levels(panels)
    figure = canvas(figsize=(5 * len(told), 6))
    axes = figure.subplots(
        2, len(told), sharex="col", sharey="row", squeeze=False, gridspec_kw={"height_ratios": [1.6, 1]}
    )
    for (top, bottom), (own, flows) in zip(axes.T, told, strict=True):
        _fidelity_panel(top, bottom, own, flows)
    axes[0, 0].set_ylabel(r"fall of the common logit, $-z(t)\,/\,\eta_Z$")
    axes[1, 0].set_ylabel("disagreement |ratio - 1|")
    axes[0, 0].legend(loc="lower right")
    axes[1, 0].legend(loc="lower right")
    figure.suptitle("Four descriptions of one training run, and where they part")
    return figure


def _falls(own: Equal, flows: Mapping[str, Trajectory]) -> dict[str, xr.DataArray]:
    """How far the common token's logit has fallen, by flow, after the start."""
    return {name: -flows[name].dataset["z"].isel(query=0).sel(token=own.common)[1:] for name in pt.LEVELS}


def _disagreements(panels: Panels) -> str:
    parts = []
    for own, flows in _read_levels(panels):
        fall = {name: values.where(values["time"] >= 1, drop=True) for name, values in _falls(own, flows).items()}
        gap = float(np.abs(fall["theory"] / fall["modified"] - 1).max())
        share = fall["full"] / fall["modified"]
        slowdown = attention.full_flow_slowdown(**own.sizes, overlap=own.overlap)
        parts.append(
            f"At {own.words}, eta_Y = {own.eta_y:g}, eta_Z = {own.eta_z:g}, theory and modified flow are at most "
            f"{as_text(gap, '.2g%')} apart, and the full flow's fall is {float(share[0]):.2g} of the modified one's at "
            f"the first time and {float(share[-1]):.2g} at the last; s = {float(slowdown):.3f}, and "
            f"1 - rho = {1 - own.overlap:.3g}."
        )
    return " ".join(parts)


def _fidelity_panel(top: Axes, bottom: Axes, own: Equal, flows: Mapping[str, Trajectory]) -> None:
    fall = _falls(own, flows)
    times = fall["theory"]["time"].values
    closed = attention.growth_exponent(times, **own.sizes, **own.rates, c0=own.speed_constant)
    slowdown = attention.full_flow_slowdown(**own.sizes, overlap=own.overlap)
    curves = {
        "closed form B(t)": closed,
        "theory flow": fall["theory"].values,
        "modified flow": fall["modified"].values,
        "full flow": fall["full"].values,
    }
    for (name, values), (colour, line) in zip(curves.items(), CATEGORIES, strict=False):
        # The closed form lies under the theory flow: a wide pale line shows both.
        look = {"color": "0.75", "linewidth": 5} if name == "closed form B(t)" else {"color": colour, "linestyle": line}
        top.loglog(times, values / own.eta_z, label=name, **look)
    top.loglog(times, slowdown * closed / own.eta_z, ":", color=BLACK, label=rf"$s\,B(t)$, $s = {slowdown:.3f}$")
    first = int(np.searchsorted(times, 1.0))
    top.set_ylim(0.3 * curves["full flow"][first] / own.eta_z, 3 * closed[-1] / own.eta_z)
    for above, below, colour, line in (
        ("modified flow", "full flow", VERMILION, "-."),
        ("theory flow", "modified flow", GREEN, "--"),
        ("closed form B(t)", "theory flow", BLUE, "-"),
    ):
        gap = np.abs(curves[above] / curves[below] - 1)
        bottom.loglog(times[first:], gap[first:], line, color=colour, label=f"{above} : {below}")
    bottom.axhline(1 / slowdown - 1, color=BLACK, linestyle=":", label=f"1/s - 1 = {1 / slowdown - 1:.1f}")
    bottom.set(xlabel=_TIME, xlim=(1, times[-1]))
    peak = own.decoder.transition_time
    if 1 <= peak <= times[-1]:
        for axes in (top, bottom):
            axes.axvline(peak, color="0.3", linestyle="--", linewidth=0.9)
        where: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        top.annotate("$t^*$", (peak, 0.03), xytext=(3, 0), **where)
    sizes = rf"$K = {own.n_classes}$, $M = {own.vocab_size}$, $\rho = {own.overlap:.3g}$"
    top.set_title(rf"{sizes}, $\eta_Y = {own.eta_y:g}$, $\eta_Z = {own.eta_z:g}$")


FIGURES = (
    Entry("figure3", PAPER, figure3, _theory_flows, number=3, claims=_sizes_of_growth),
    Entry("figure8", PAPER, figure8, _decoders, number=8, claims=_gaps),
    Entry("figure9", PAPER, figure9, _exponents, number=9, claims=_levels_at_snap),
    Entry("fidelity", PAPER, fidelity, _slow_and_slower, claims=_disagreements),
)

# <!-- numbers
# typed: 2 (factor of a bound)
# -->
