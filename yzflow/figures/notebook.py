"""Display of a figure in a notebook: once below the cell that made it, as users of pyplot expect.

Figures are made without pyplot, which would keep them open. A notebook alone would show such a figure as a line of
text, and not at all if the cell assigns it to a name.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from matplotlib.figure import Figure


class _Display:
    """Shows a figure and records that in ``done``; IPython calls it if a cell ends with the figure."""

    def __init__(self, figure: Figure) -> None:
        self.figure, self.done = figure, False

    def __call__(self) -> None:
        from IPython.display import display

        self.done = True
        picture = io.BytesIO()
        self.figure.savefig(picture, format="png")
        display({"image/png": picture.getvalue(), "text/plain": repr(self.figure)}, raw=True)


def shown_by_the_cell(figure: Figure) -> Figure:
    """The figure; a notebook shows it at the end of the cell, unless the cell has shown it."""
    shell = _kernel()
    if shell is None:
        return figure
    display = _Display(figure)
    figure._ipython_display_ = display

    def at_the_end(*_: object) -> None:
        shell.events.unregister("post_run_cell", at_the_end)
        if not display.done:
            display()

    shell.events.register("post_run_cell", at_the_end)
    return figure


def _kernel() -> Any:
    """The notebook's shell, or None in a script or a terminal."""
    running = sys.modules.get("IPython")
    shell = None if running is None else running.get_ipython()
    return shell if hasattr(shell, "kernel") else None
