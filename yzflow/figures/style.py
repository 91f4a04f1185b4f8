"""One style for every figure: sizes, fonts, colour-blind-safe colours, files."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from dynamics.support import checks
from dynamics.support.files import writable, write
from yzflow.values.marks import bare

# Okabe and Ito's palette (2008), safe for the common colour-vision deficiencies; a line style goes with each so that a
# black-and-white print can be read too.
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


def styled(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Run a figure function under the project's style, whatever the caller's own settings are."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Figure:
        with matplotlib.rc_context(
            {**matplotlib.rcParamsDefault, **_SETTINGS, "backend": matplotlib.rcParams["backend"]}
        ):
            return function(*args, **kwargs)

    return wrapper


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
    """What a figure shows and whether it agrees with the paper: the docstring to its parameters in a line, unmarked."""
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
        raise checks.reject("stem", "be the path of files without their ending", repr(stem if text is None else text))
    paths = {name: writable("stem", f"{text}.{name}") for name in formats}
    for name, path in paths.items():
        content = io.BytesIO()  # in which matplotlib cannot fail for want of space
        figure.savefig(content, format=name, dpi=_SETTINGS["savefig.dpi"])
        write(path, content.getbuffer())
    return list(paths.values())


def draw(name: str, stem: str | os.PathLike, *arguments: object) -> list[Path]:
    """Draw the figure ``name`` of `yzflow.figures` and save it: a task for another process."""
    from yzflow.figures.registry import entries

    return save(entries()[name](*arguments), stem)
