"""The panel's plots, which its script fills."""

from __future__ import annotations

from bokeh.embed import json_item

from yzflow.pages.explorer import plots

TIME = "time t, SGD steps"
TOKENS = ("common", "distinct 1", "distinct 2", "distinct 3", "distinct 4", "distinct 5")


def items() -> dict[str, dict]:
    """A bokeh item for each plot, by the id of its place in the page."""
    empty = {
        "gamma": plots.lines(TIME, "speed \N{GREEK SMALL LETTER GAMMA}", times=True),
        "exponent": plots.lines(TIME, "growth exponent B", times=True),
        "growth": plots.lines(TIME, "growth factor \N{GREEK SMALL LETTER CHI}", times=True),
        "heat": plots.heat_map(TIME, TOKENS),
        "now": plots.bars("token", "share of attention", tokens=TOKENS),
        "decoder": plots.lines("visits of a class, s = t/K", "decoder growth h"),
    }
    return {name: json_item(plot) for name, plot in empty.items()}
