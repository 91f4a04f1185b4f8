"""The panel's plots, which its script fills."""

from __future__ import annotations

from bokeh.embed import json_item
from bokeh.models import Range1d

from yzflow.pages.explorer import plots


def items() -> dict[str, dict]:
    """A bokeh item for each plot, by the id of its place in the page."""
    rho = "largest wrong score \N{GREEK SMALL LETTER RHO}"
    coherence = plots.lines("dimensions m", rho, y_range=Range1d(0, 2))
    return {"coherence": json_item(coherence), "weights": json_item(plots.bars("token", "share of attention"))}
