"""The figure of attention at one time, which `yzflow film` moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from dynamics.support import checks, display, names
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, VERMILION, canvas, styled
from yzflow.papers.scan_and_snap import equal, flagship
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.settings import PAPER


def _contrast(
    effort: Effort,
    *,
    n_classes: int = flagship.CONTRAST["n_classes"],
    vocab_size: int = flagship.CONTRAST["vocab_size"],
    common: float = flagship.CONTRAST["common"],
    eta_y: float = flagship.CONTRAST["eta_y"],
    eta_z: float = flagship.CONTRAST["eta_z"],
    t_end: float = flagship.CONTRAST["t_end"],
) -> Trajectory:
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    options: dict[str, Any] = {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "decoders": ["full"]}
    options |= {"n_times": 150 if effort.quick else 400, "progress": effort.progress}  # a stored flow has lost its call
    return pt.fidelity_flows(classes, **options)["full"]


def _transition(flow: Trajectory) -> float | None:
    """t*; None for a training that it is not derived for."""
    data: Any = None if flow.call is None else flow.call.arguments["data"]
    try:
        equal.check_plain("flow", flow)
        equal.check_classes("flow", flow, data)
    except ValueError:
        return None
    return pt.exact_transition(flow)


def _checked(flow: Trajectory) -> Trajectory:
    checks.instance("flow", flow, Trajectory)
    if "token" not in flow.dataset["attention"].dims:
        raise checks.reject("flow", "record attention of all tokens, as runs of up to 1 GiB do", "a larger one")
    return flow


def times(flow: Trajectory, pictures: int) -> list[float]:
    """Recorded times of a film: 0, then as evenly spaced in log(1 + t) as the records are."""
    recorded = _checked(flow).dataset["time"].values
    wanted = np.expm1(np.linspace(np.log1p(recorded[0]), np.log1p(recorded[-1]), pictures))
    return recorded[[int(np.abs(recorded - time).argmin()) for time in wanted]].tolist()


@styled
def moving_attention(flow: Trajectory, time: float | None = None, next_token: int | str | None = None) -> Figure:
    """Attention on the tokens before one next token at one time: the picture that `yzflow film` moves.

    Left: the share of each token (bars), and where it began (ticks). Right, over time: the logits of the same tokens,
    and the speed of attention, half the sum of |dc/dt|, over its largest, up to the time shown; pale is what comes.
    Attention scans until it is fastest, and then snaps. Steps of SGD are noisy: the share of the change that is done
    stands in the place of their speed. Blue tokens are distinct, red ones common. t* (dashed) is the
    peak of gamma, for plain flows from zero of classes that are drawn equally often; other runs have none.

    Parameters
    ----------
    flow : Trajectory
    time : float, optional
        Default: t*, else the time of largest speed, else the last; the nearest recorded time is drawn.
    next_token : int or str, optional
        Its number or its name. Default: the first.
    """
    dataset = _checked(flow).dataset
    number = 0 if next_token is None else flow.number("next_token", next_token)
    if number >= dataset.sizes["next_token"]:
        raise checks.reject("next_token", f"be below {dataset.sizes['next_token']}", next_token)
    part = dataset.sel(next_token=number)
    query, shares = int(part["query_of"]), part["attention"].values
    if query < 0:
        raise checks.reject("next_token", "have a single query", f"{number}, which has several")
    recorded, peak = dataset["time"].values, _transition(flow)
    lower, label, fastest = _pace(flow, number)
    wanted = next(t for t in (time, peak, fastest, recorded[-1]) if t is not None)
    now = int(np.abs(recorded - checks.non_negative("time", wanted)).argmin())
    occurring = np.flatnonzero(shares.max(axis=0) > 0)
    tokens = occurring[display.moving_most(shares[:, occurring])]
    looks = _looks(part["distinct"].values[tokens])
    figure = canvas(figsize=(9.6, 5.4))
    bars, logits, pace = figure.subplot_mosaic([["bars", "logits"], ["bars", "pace"]]).values()
    _draw_bars(bars, shares[:, tokens], now, looks)
    bars.set_xticks(range(len(tokens)), [display.plain(names.shown(flow.names("token"), token)) for token in tokens])
    bars.set_xlabel(display.moving(len(tokens), len(occurring), "tokens") or "token")
    bars.set_title(f"{_level(flow)}, next token {display.plain(names.shown(flow.names('next_token'), number))}")
    z = part["z"].sel(query=query).values
    for token, look in zip(tokens, looks, strict=True):
        _draw_past(logits, recorded, z[:, token], now, look)
    _draw_past(pace, recorded, lower, now, "0.2")
    for axes in (logits, pace):
        axes.set_xscale("log")
        axes.minorticks_off()  # half of the work of drawing
        axes.set_xlim(min(1.0, recorded[-1] / 10), recorded[-1])
        if peak is not None and peak <= recorded[-1]:
            axes.axvline(peak, color="0.3", linestyle="--", linewidth=0.9)
    logits.set_ylabel("attention logit")
    logits.tick_params(labelbottom=False)
    pace.set(ylabel=label, xlabel="time t (SGD steps)", ylim=(0, 1.05))
    figure.suptitle(_title(float(recorded[now]), fastest, peak))
    return figure


def _pace(flow: Trajectory, next_token: int) -> tuple[np.ndarray, str, float | None]:
    """Speed of attention over its largest, or of SGD, which has noise, the share of its change; a label; its peak.

    A speed that is largest at the first or last time has no peak: the run may end before it snaps.
    """
    if "z_velocity" not in flow.dataset:
        return pt.share_done(flow, next_token=next_token).values, "share of the change done", None
    speed = pt.attention_speed(flow, next_token=next_token)
    top = int(speed.values.argmax())
    fastest = float(speed["time"][top]) if 0 < top < speed.size - 1 else None
    return speed.values / (speed.values[top] or 1.0), "speed of attention / largest", fastest


def _title(time: float, fastest: float | None, peak: float | None) -> str:
    stage = "" if fastest is None else ": scanning" if time < fastest else ": snapping"
    ahead = "" if peak is None else f"      ($t^* = {peak:{'.0f' if peak >= 10 else '.2g'}}$)"
    form = ",.0f" if time >= 100 or time == 0 else ".1f" if time >= 1 else ".2g"
    return f"t = {time:{form}} SGD steps{stage}{ahead}"


def _level(flow: Trajectory) -> str:
    """Level of a flow, or SGD, in words."""
    made = flow.dataset.attrs["simulator"]
    return f"{flow.parameters['decoder']} flow" if made == "gradient_flow" else {"sgd": "SGD"}.get(made, made)


def _looks(distinct: np.ndarray) -> list[Any]:
    """A colour for each token: blue for the distinct ones, paler from one to the next, and red for the common ones."""
    orders = [np.cumsum(group) - 1 for group in (distinct, ~distinct)]
    return [
        (BLUE if own else VERMILION, 1 - 0.7 * order / max(len(distinct) - 1, 1))
        for own, order in zip(distinct, np.where(distinct, *orders), strict=True)
    ]


def _draw_bars(axes: Axes, shares: np.ndarray, now: int, looks: list[Any]) -> None:
    places = range(len(looks))
    axes.bar(places, shares[now], color=looks)
    axes.plot(places, shares[0], "_", color="0.2", markersize=22, label="at the start")
    axes.set(ylabel="share of attention", ylim=(0, 1.1 * shares.max()))
    axes.grid(False, axis="x")
    axes.legend(loc="upper right")


def _draw_past(axes: Axes, times: np.ndarray, values: np.ndarray, now: int, look: Any) -> None:
    """A line up to the time shown, over a pale one of the whole training."""
    axes.plot(times, values, color=look, alpha=0.15)
    axes.plot(times[: now + 1], values[: now + 1], color=look)
    axes.plot(times[now], values[now], "o", color=look, markersize=5)


FIGURES = (Entry("moving_attention", PAPER, moving_attention, _contrast, times=times),)
