"""The panel's plots, which its script fills."""

from __future__ import annotations

from bokeh.embed import json_item
from bokeh.models import Range1d

from yzflow.pages.explorer import plots


def items() -> dict[str, dict]:
    """A bokeh item for each plot, by the id of its place in the page."""
    return {"insertions": json_item(plots.lines("inserted pairs", "probability", y_range=Range1d(0, 1)))}
