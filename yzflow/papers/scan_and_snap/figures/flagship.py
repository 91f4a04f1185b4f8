"""The figure that the project opens with: attention over training inside the assumptions, and outside of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics import Trajectory
from dynamics.support import checks
from theory import decoder
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import CATEGORIES, canvas, styled
from yzflow.papers.scan_and_snap import equal, flagship
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.settings import PAPER, Setting
from yzflow.values.marks import as_text

Panels = Sequence[tuple[Setting, Mapping[str, Trajectory]]]
_LOOKS = dict(zip(("full", "theory", "modified"), CATEGORIES, strict=False))  # the explorer's
_SHOWN = 8  # of t*, on the linear axis


def _both(
    effort: Effort,
    *,
    n_classes: int | None = None,
    vocab_size: int | None = None,
    common: float | None = None,
    eta_y: float | None = None,
    eta_z: float | None = None,
    t_end: float | None = None,
) -> Panels:
    given = {"n_classes": n_classes, "vocab_size": vocab_size, "common": common}
    given |= {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end}
    chosen = {name: value for name, value in given.items() if value is not None}
    usual = {"inside": flagship.INSIDE | chosen, "contrast": flagship.CONTRAST | chosen}
    if usual["inside"] == usual["contrast"]:
        usual = {"chosen": usual["inside"]}
    settings = [flagship.made(name, **numbers) for name, numbers in usual.items()]
    for one in settings:
        _check_length(one, decoder.transition_time(**_sizes(one), eta_y=one.eta_y))
    options: dict[str, Any] = {
        "n_times": 150 if effort.quick else 400,
        "store": effort.store,
        "progress": effort.progress,
    }
    return [(one, flagship.flows(one, **options)) for one in settings]


def _sizes(setting: Setting) -> dict[str, int]:
    return {"vocab_size": setting.classes.vocab_size, "n_classes": setting.classes.n_classes}


def _check_length(setting: Setting, peak: float) -> None:
    """Refuse a training that ends before t*, around which the figure is drawn."""
    if setting.t_end <= peak:
        raise checks.reject("t_end", f"be after t* = {peak:.4g}, around which the figure is drawn", setting.t_end)


def _checked(panels: Panels) -> Panels:
    """Panels, after a check that each setting fits its flows, and that t* holds for the training.

    Raises
    ------
    ValueError
        If a panel fails the check.
    """
    panels = checks.listed("panels", panels, "be a sequence of pairs (Setting, decoder -> trajectory)")
    if not panels:
        raise checks.reject("panels", "have one panel or more", "none")
    for setting, runs in panels:
        if not runs:
            raise checks.reject("panels", "have a flow or more in each panel", "none")
        for name, run in runs.items():
            checks.one_of("panels", name, tuple(_LOOKS))
            equal.check_plain("panels", run)
            equal.check_classes("panels", run, setting.classes)
            own = (setting.eta_y, setting.eta_z, setting.t_end)
            recorded = (*(run.parameters[rate] for rate in ("eta_y", "eta_z")), float(run.dataset["time"][-1]))
            if own != recorded:
                rule = "have flows at the eta_Y, eta_Z and last time {:g}, {:g}, {:g} of their setting".format(*own)
                raise checks.reject("panels", rule, ", ".join(f"{number:g}" for number in recorded))
            _check_length(setting, pt.exact_transition(run))
    return panels


def _told(panels: Panels) -> str:
    return " ".join(flagship.told(setting, runs) for setting, runs in _checked(panels))


@styled
def attention_over_training(panels: Panels) -> Figure:
    """How fast attention moves, and how much of its change is done, inside the theorems' assumptions and outside.

    A column is a setting, whose title says which assumptions it is outside of. Above, on a *linear* axis of time: the
    speed of attention given next token 0, half the sum of |dc/dt|, over the largest speed of the same flow. Below, on a
    logarithmic axis: which share of its change up to the last time attention has done. So each curve has a scale of its
    own, and curves that lie on each other may be of changes that differ a thousandfold: the legends have them. t*
    (dashed) is the peak of gamma, the speed for frozen features.

    Parameters
    ----------
    panels : sequence of (Setting, mapping)
        Settings and their flows, as `yzflow.papers.scan_and_snap.flagship.flows` makes them.
    """
    panels = _checked(panels)
    figure = canvas(figsize=(5 * len(panels) if len(panels) > 1 else 6.5, 6.2))
    axes = figure.subplots(2, len(panels), sharey="row", squeeze=False)
    for (top, bottom), (setting, runs) in zip(axes.T, panels, strict=True):
        _column(top, bottom, setting, runs)
    axes[0, 0].set_ylabel("speed of attention / its flow's largest")
    axes[1, 0].set_ylabel("share of its flow's change done")
    figure.suptitle("Scan and snap: how fast attention moves, and how much of its change is done")
    return figure


def _column(top: Axes, bottom: Axes, setting: Setting, runs: Mapping[str, Trajectory]) -> None:
    found = pt.around_transition(runs)
    peak = float(found["transition_time"])
    for name, run in runs.items():
        own, (colour, line) = found.sel(flow=name), _LOOKS[name]
        speed, share = pt.attention_speed(run), pt.share_done(run)
        top.plot(speed["time"], speed / speed.max(), line, color=colour, label=f"{name} flow")
        label = f"{name}: {float(own['done']):.0%}; {as_text(float(own['change']), '.2g')}"
        bottom.semilogx(share["time"], share, line, color=colour, label=label)
    for axes in (top, bottom):
        axes.axvline(peak, color="0.3", linestyle="--", linewidth=0.9)
        axes.set_ylim(0, 1.05)
    top.annotate(f"$t^* = {peak:.0f}$", (peak, 0.12), xytext=(4, 0), textcoords="offset points")
    top.set(xlim=(0, _SHOWN * peak), xlabel="time t (SGD steps), linear")
    bottom.set(xlim=(min(1, peak / 2), setting.t_end), xlabel="time t (SGD steps), logarithmic")
    top.legend(loc="upper right")
    bottom.legend(loc="lower right", title="done by $t^*$; attention moved in all", title_fontsize="small")
    place = flagship.standing(setting)
    top.set_title(f"{place[0].upper()}{place[1:]}\n{_symbols(setting)}")


def _symbols(setting: Setting) -> str:
    return (
        rf"$K = {setting.classes.n_classes}$, $M = {setting.classes.vocab_size}$, $\rho = {setting.overlap:.3g}$, "
        rf"$\eta_Y = {setting.eta_y:g}$, $\eta_Z = {setting.eta_z:g}$"
    )


FIGURES = (Entry("attention_over_training", PAPER, attention_over_training, _both, claims=_told),)
