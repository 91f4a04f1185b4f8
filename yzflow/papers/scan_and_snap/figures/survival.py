"""Which statements survive which change of an assumption, as a picture."""

from __future__ import annotations

import textwrap

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from yzflow.audits.survival import survival as table_of
from yzflow.audits.survival_verdicts import Fate
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, ORANGE, VERMILION, canvas, styled
from yzflow.papers.scan_and_snap.settings import PAPER

# The levels of a picture that fits on a page; others are rows of the table.
_SHOWN = ("full steps", "SGD")
# Dark and light colours in turn, for prints without colours; each verdict has a sign, too.
_COLOURS = {
    Fate.HOLDS: (BLUE, "white"),
    Fate.LATER: ("#8FCBEE", "black"),
    Fate.REVERSED: (VERMILION, "white"),
    Fate.FAILS: (ORANGE, "black"),
    Fate.UNDEFINED: ("#DDDDDD", "black"),
    Fate.UNDECIDED: ("white", "black"),
}
_GOOD = (Fate.HOLDS, Fate.LATER)


# Options of a quick picture.
_FEW = ("plain", "coupled weight decay", "label smoothing", "temperature", "adam")


def _compute(effort: Effort) -> xr.Dataset:
    options = _FEW if effort.quick else None
    return table_of(options=options, quick=effort.quick, store=effort.store, progress=effort.progress)


def _drawn(table: xr.Dataset) -> xr.Dataset:
    """The setting that is drawn, the table's first, which is inside every assumption of ours, and its levels."""
    levels = [level for level in _SHOWN if level in table["level"].values.tolist()]
    return table.isel(setting=slice(1)).sel(level=levels).transpose("check", "option", ...)


def _lines(check: str) -> str:
    """The name of a check in one line or two, as two rows of small letters are as high as a cell."""
    first, *rest = textwrap.wrap(check, 60, max_lines=2, placeholder=" ..")
    return "\n".join([first, *rest])


def _panel(axes: Axes, part: xr.Dataset) -> None:
    """Checks by options, at one level in one setting."""
    own = part["verdict_corrected"].values
    for (i, j), value in np.ndenumerate(part["verdict"].values):
        fate = Fate(int(value))
        if fate is Fate.NOT_ASKED:
            continue
        fill, ink = _COLOURS[fate]
        axes.add_patch(_square(j, i, fill))
        axes.text(j, i, fate.sign, color=ink, ha="center", va="center", fontsize=8)
        if fate not in _GOOD and Fate(int(own[i, j])) in _GOOD:
            axes.plot(j + 0.33, i - 0.33, "o", color=ink, markersize=2)
    n_checks, n_options = part["verdict"].shape
    axes.set(xlim=(-0.5, n_options - 0.5), ylim=(n_checks - 0.5, -0.5))
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(range(n_options), part["option"].values.tolist(), rotation=90, fontsize=8)
    names = [_lines(name) for name in part["check"].values.tolist()]
    for label in axes.set_yticks(range(n_checks), names, linespacing=0.9):
        label.label1.set_fontsize(6.5 if "\n" in label.label1.get_text() else 7.5)


def _asked(part: xr.Dataset) -> xr.Dataset:
    """The checks that run under some option, one row each; but every option is a column of all panels."""
    return part.isel(check=np.flatnonzero((part["verdict"] != Fate.NOT_ASKED).any("option").values))


def _square(x: float, y: float, fill: str) -> Patch:
    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=fill, edgecolor="#888888", linewidth=0.3)


@styled
def survival(table: xr.Dataset) -> Figure:
    """The fate of each statement on training under each change of an assumption, one at a time: steps on the
    expected gradient with the full decoder (above), and mini-batch runs (below), in the first setting of the table.

    A sign goes with each colour. A dot marks a check that fails as it stands and holds in the form that it has under
    the option. Blank: the level has not the option, or not the check. Verdicts on mini-batch runs are tests over seeds.

    Parameters
    ----------
    table : xarray.Dataset
        From `yzflow.survival`, whose page in the documentation has all settings and levels, with filters. Another
        setting is drawn of ``table.sel(setting=[name])``.
    """
    drawn = _drawn(table)
    (setting,), levels = drawn["setting"].values.tolist(), drawn["level"].values.tolist()
    panels = [_asked(drawn.sel(setting=setting, level=level)) for level in levels]
    rows = [part.sizes["check"] for part in panels]
    # As narrow as a page: a wider picture would be scaled down and illegible.
    width, height = 0.2 * drawn.sizes["option"] + 3.4, 0.18 * sum(rows) + 0.3 * len(rows) + 2.2
    figure = canvas(figsize=(max(width, 7.6), height))
    stack = figure.subplots(len(panels), 1, squeeze=False, height_ratios=rows)[:, 0]
    for axes, level, part in zip(stack, levels, panels, strict=True):
        _panel(axes, part)
        axes.set_title(f"{setting}: {level}", fontsize=9, loc="left")
        axes.tick_params(axis="x", labeltop=level == levels[0], labelbottom=False, labelrotation=90)
    patches = [Patch(facecolor=fill, edgecolor="#888888", label=f"{fate.sign} {fate.words}")
               for fate, (fill, _) in _COLOURS.items()]  # fmt: skip
    figure.legend(handles=patches, loc="outside lower center", ncols=3)
    return figure


def claims(table: xr.Dataset) -> str:
    """Sentences on the table: options under which a statement on signs is reversed, and corrected forms that hold."""
    drawn = _drawn(table)
    left_out = {name: table.sizes[name] - drawn.sizes[name] for name in ("setting", "level")}
    others = ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in left_out.items() if count)
    verdict = drawn["verdict"].values
    reversed_ = (verdict == Fate.REVERSED).any(axis=(0, 2, 3))
    names = drawn["option"].values[reversed_].tolist()
    own = np.isin(drawn["verdict_corrected"].values, _GOOD)
    asked = (verdict >= 0) & (drawn["verdict_corrected"].values >= 0)
    lost = asked & ~np.isin(verdict, _GOOD)
    said = f"All signs of some check are reversed under {', '.join(names)}." if names else "No sign is reversed."
    if lost.any():
        n, back = int(lost.sum()), int((lost & own).sum())
        said += f" Of {n} cells in which the option has closed forms of its own and the plain one fails, {back} hold"
        said += " in these."
    return (
        f"{said}{f' Not drawn, and in the table: {others}.' if others else ''} "
        f"{table.attrs['tests']} tests over {table.attrs['seeds']} seeds have a family-wise error rate of "
        + (f"{table.attrs['alpha']:g}.")
    )


FIGURES = (Entry("survival", PAPER, survival, _compute, claims=claims),)
