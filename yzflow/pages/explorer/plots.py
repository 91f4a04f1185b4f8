"""Kinds of bokeh figures without content, which the page's script fills: it finds their parts by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColorBar, ColumnDataSource, DataRange1d, FixedTicker, LinearColorMapper, Range1d, Span
from bokeh.palettes import Cividis256
from bokeh.plotting import figure

# The three times and their dashes: the page draws the same in its legend.
TIMES = {"peak": "solid", "scanning": "12 5", "snapping": "3 4"}


def _empty(x: str, y: str, *, height: int = 300, y_range=None):
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        x_axis_label=x,
        y_axis_label=y,
        x_range=Range1d(0, 1, name="x"),
        y_range=y_range or DataRange1d(range_padding=0.08, only_visible=True),
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        min_border_right=16,
    )
    for name, axis, grid in (("x", plot.xaxis[0], plot.xgrid[0]), ("y", plot.yaxis[0], plot.ygrid[0])):
        axis.update(name=f"{name}-axis", axis_label_text_font_style="normal")
        axis.update(axis_label_text_font_size="15px", major_label_text_font_size="13px")
        axis.update(minor_tick_line_color=None, axis_label_text_font="inherit")
        axis.axis_label_text_font = axis.major_label_text_font = "sans-serif"
        grid.name = f"{name}-grid"
    return plot


def lines(x: str, y: str, *, times: bool = False, **options: Any) -> figure:
    """Lines, and points on them where the script wants some."""
    plot = _empty(x, y, **options)
    # Something to see at first: bokeh warns of ranges that it cannot choose.
    one = {"xs": [[0, 1]], "ys": [[0, 1]], "color": ["gray"], "dash": ["solid"], "width": [1]}
    drawn = ColumnDataSource(one, name="lines")
    plot.multi_line("xs", "ys", line_color="color", line_dash="dash", line_width="width", source=drawn)
    points = ColumnDataSource({"x": [0], "y": [0], "color": ["gray"]}, name="points")
    plot.scatter("x", "y", size=9, fill_color="color", line_color="color", source=points)
    if times:
        for name, dash in TIMES.items():
            plot.add_layout(Span(name=name, dimension="height", location=0, line_dash=dash, line_width=1.5))
    return plot


def heat_map(x: str, tokens: Sequence[str]) -> figure:
    """Cells of colour, a row for each token, and a line at a time."""
    plot = _empty(x, "", height=280, y_range=Range1d(-0.5, len(tokens) - 0.5))
    mapper = LinearColorMapper(palette=Cividis256, low=0, high=1, name="mapper")
    cells = ColumnDataSource({"x": [], "y": [], "width": [], "c": []}, name="cells")
    colour = {"field": "c", "transform": mapper}
    plot.rect("x", "y", "width", 1.0, fill_color=colour, line_color=colour, source=cells)
    _token_axis(plot.yaxis[0], tokens)
    plot.grid.grid_line_color = None
    bar = ColorBar(color_mapper=mapper, name="bar", width=12, background_fill_color=None)
    plot.add_layout(bar, "right")
    plot.add_layout(Span(name="now", dimension="height", location=0, line_width=3))
    return plot


def _token_axis(axis, tokens):
    axis.ticker = FixedTicker(ticks=list(range(len(tokens))))
    axis.major_label_overrides = dict(enumerate(tokens))


def bars(x: str, y: str, *, tokens: Sequence[str] = ()) -> figure:
    """Bars, at named tokens or at numbers."""
    plot = _empty(x, y, height=280 if tokens else 300, y_range=DataRange1d(start=0, range_padding=0.08))
    tops = ColumnDataSource({"x": [0], "top": [1], "color": ["gray"]}, name="bars")
    plot.vbar("x", width=0.8, top="top", fill_color="color", line_color=None, source=tops)
    if tokens:
        plot.y_range = Range1d(0, 1, name="y")
        _token_axis(plot.xaxis[0], tokens)
        plot.xaxis[0].major_label_orientation = 0.6
        plot.x_range.update(start=-0.6, end=len(tokens) - 0.4)
    return plot
