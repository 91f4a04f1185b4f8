"""One style for every figure: sizes, fonts, colour-blind-safe colours, files."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, LogLocator, NullFormatter

from dynamics.support import checks, display
from dynamics.support.display import Style
from dynamics.support.files import writable, write
from yzflow.values.marks import bare

# Okabe and Ito's palette (2008), safe for the common colour-vision deficiencies. Each colour has a line style, for
# black-and-white prints.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000"
CATEGORIES = ((BLACK, "-"), (BLUE, "-"), (GREEN, "--"), (VERMILION, "-."), (PURPLE, ":"), (ORANGE, "-"))

_SETTINGS = {
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.titlesize": 11,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.fontsize": 8.5,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


# The axes that the figure being drawn replaces; None for a figure of its own.
_place: ContextVar[list[Axes] | None] = ContextVar("place", default=None)


def styled(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Run a figure function under the project's style, whatever the caller's own settings are.

    It takes three more keywords: ``style``, a style of matplotlib, or settings of it, over the project's; ``labels``, a
    mapping from the figure's texts to new texts; and ``ax``, axes of a figure with constrained layout: all panels are
    drawn in their place, as a `matplotlib.figure.SubFigure`.
    """

    @functools.wraps(function)
    def wrapper(
        *args: Any,
        ax: Axes | None = None,
        labels: Mapping[str, str] | None = None,
        style: Style | None = None,
        **kwargs: Any,
    ) -> Figure:
        given = {**matplotlib.rcParamsDefault, **_SETTINGS, "backend": matplotlib.rcParams["backend"]}
        with matplotlib.rc_context(given), display.styled(style):
            if ax is None:
                figure = function(*args, **kwargs)
            else:
                waiting = [_checked(ax)]
                token = _place.set(waiting)
                try:
                    figure = function(*args, **kwargs)
                finally:
                    _place.reset(token)
                if waiting:
                    raise checks.reject("ax", "be left out for a figure that makes no `canvas`", function.__name__)
        if labels is not None:
            _relabel(figure, labels)
        return figure

    return wrapper


def canvas(*, figsize: tuple[float, float]) -> Figure:
    """Canvas of a figure function: a new figure, or a subfigure in the place of the given axes."""
    waiting = _place.get()
    if not waiting:
        return Figure(figsize=figsize)
    ax = waiting.pop()
    parent, where = ax.figure, ax.get_subplotspec()
    ax.remove()
    return cast(Figure, parent.add_subfigure(where))  # a SubFigure has all methods that figure functions use


def _checked(ax: object) -> Axes:
    checks.instance("ax", ax, Axes, rule="be axes of matplotlib")
    assert isinstance(ax, Axes)
    if ax.get_subplotspec() is None:
        raise checks.reject("ax", "have a place in a grid, as those of pyplot.subplots have", repr(ax))
    if not isinstance(ax.figure.get_layout_engine(), ConstrainedLayoutEngine):
        raise checks.reject("ax", "be of a figure with constrained layout, subplots(layout='constrained')", repr(ax))
    return ax


def _relabel(figure: Figure, labels: Mapping[str, str]) -> None:
    """Replace texts of a figure, ticks among them."""
    checks.instance("labels", labels, Mapping, rule="be a mapping from texts of the figure to others")
    for label in labels.values():
        checks.instance("labels", label, str, rule="hold text")
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    fixed = [
        axis.get_major_formatter()
        for axes in figure.findobj(Axes)
        for axis in (axes.xaxis, axes.yaxis)
        if isinstance(axis.get_major_formatter(), FixedFormatter)
    ]
    known = {text.get_text() for text in texts} | {word for formatter in fixed for word in formatter.seq}
    for key in labels:
        if key not in known:
            near = checks.nearest(str(key), {text: (text,) for text in known if text})
            raise checks.reject("labels", f"have texts of the figure for keys, such as {near}", checks.brief(key))
    for text in texts:
        text.set_text(labels.get(text.get_text(), text.get_text()))
    for formatter in fixed:
        formatter.seq = [labels.get(word, word) for word in formatter.seq]


def ordered_colours(n: int) -> list[tuple[float, float, float, float]]:
    """``n`` colours for the values of an ordered parameter: dark to light, of rising lightness."""
    ramp = matplotlib.colormaps["viridis"]
    return [ramp(0.85 * i / max(n - 1, 1)) for i in range(n)]


def log_ticks(axis: Axis) -> None:
    """Label 1, 2 and 5 of each decade, as plain numbers: for a logarithmic axis over two decades or fewer."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def caption(function: Callable[..., Figure]) -> str:
    """Caption of a figure: the docstring up to its parameters in a line, without marks."""
    text = inspect.getdoc(function)
    if text is None:  # python -OO drops docstrings
        module = ast.parse(textwrap.dedent(inspect.getsource(function)))
        text = next(ast.get_docstring(node) for node in module.body if isinstance(node, ast.FunctionDef))
    return " ".join(bare((text or "").split("\n\nParameters\n")[0]).split())


def save(figure: Figure, stem: str | os.PathLike, *, formats: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write ``figure`` as ``stem.png`` and ``stem.pdf``, each completely or not at all; returns the paths.

    Raises
    ------
    ValueError
        If ``stem`` names no file, as "figures/" does, or something stands there that is no regular file.
    OSError
        If a file cannot be written.
    """
    checks.instance("figure", figure, Figure)
    known = figure.canvas.get_supported_filetypes()
    formats = [
        checks.one_of("formats", kind, known) for kind in checks.listed("formats", formats, "be a list of words")
    ]
    text = os.fspath(stem) if isinstance(stem, (str, os.PathLike)) else None
    if not isinstance(text, str) or text.endswith(("/", os.sep)) or Path(text).name in ("", ".."):
        raise checks.reject(
            "stem", "be the path of files without their ending", checks.brief(stem if text is None else text)
        )
    paths = {name: writable("stem", f"{text}.{name}") for name in formats}
    layout = figure.get_layout_engine()
    try:
        for name, path in paths.items():
            content = io.BytesIO()  # in which matplotlib cannot fail for want of space
            figure.savefig(content, format=name, dpi=_SETTINGS["savefig.dpi"])
            figure.set_layout_engine("none")  # the first file's layout is that of all, and half of the work
            write(path, content.getbuffer())
    finally:
        figure.set_layout_engine(layout or "none")
    return list(paths.values())
