"""How objects show themselves in a notebook: HTML of bounded size, lines over time, and pictures of matrices.

The HTML has no colours or scripts of its own, so that it reads on a light and on a dark page; all text is escaped.
matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse

from dynamics.support import checks
from dynamics.support.names import shown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# The most that is shown of anything: rows and columns of a table, characters of a cell, rows and columns of a picture,
# lines of a plot.
ROWS, COLUMNS, LETTERS = 12, 12, 200
PICTURE_ROWS, PICTURE_COLUMNS = 40, 200
LINES = 10
_NAMED_TICKS, _TICK_LETTERS = 40, 24

# Names to show in the place of those of the data, from number 0 on or by number or name; and a style of matplotlib: its
# name or file, or a mapping of its settings, as `matplotlib.style.context` takes them.
Labels: TypeAlias = Sequence[str] | Mapping[int, str] | Mapping[str, str]
Style: TypeAlias = str | Mapping[str, Any]


def page(title: str, facts: Mapping[str, object], *parts: str) -> str:
    """HTML of an object: its kind, its facts, and further parts, which are HTML already."""
    rows = "".join(f"<tr><th style='text-align:left'>{text(n)}</th>{_cell(v, 'left')}</tr>" for n, v in facts.items())
    known = f"<table>{rows}</table>" if facts else ""
    return f"<div><strong>{text(title)}</strong>{known}{''.join(parts)}</div>"


def table(heads: Sequence[object], rows: Iterable[Sequence[object]], *, rest: str = "", align: str = "right") -> str:
    """A table of rows that are few enough; ``rest`` says below it what is left out."""
    head = "".join(f"<th style='text-align:{align}'>{text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(_cell(cell, align) for cell in row)}</tr>" for row in rows)
    below = f"<p>{text(rest)}</p>" if rest else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def folded(title: str, inside: str) -> str:
    """HTML that opens when its title is pressed."""
    return f"<details><summary>{text(title)}</summary>{inside}</details>"


def text(value: object) -> str:
    """A value as escaped text of bounded length: numbers to four digits."""
    if isinstance(value, float | np.floating):
        value = f"{value:.4g}"
    words = str(value)
    return html.escape(words if len(words) <= LETTERS else words[: LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}")


def _cell(value: object, align: str) -> str:
    return f"<td style='text-align:{align}'>{text(value)}</td>"


def first(shown: int, whole: int, what: str) -> str:
    """Words for what is left out: "first 12 of 40 tokens", or nothing if all are shown."""
    return f"first {shown} of {whole:,} {what}" if shown < whole else ""


def axes(ax: Axes | None) -> Axes:
    """The axes that were given, or new ones, of a figure of pyplot's: a notebook shows it once, below the cell."""
    from matplotlib.axes import Axes

    if ax is not None:
        return checks.instance("ax", ax, Axes, rule="be axes of matplotlib")
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


@contextmanager
def styled(style: Style | None) -> Iterator[None]:
    """A context in which matplotlib draws in a style, where one is given."""
    if style is None:
        yield
        return
    from matplotlib import style as styles

    known = (
        f", as {checks.nearest(style, {one: (one,) for one in styles.available})} are" if isinstance(style, str) else ""
    )
    checks.instance("style", style, (str, Mapping), rule="be a style of matplotlib or a mapping of its settings")
    try:
        context = styles.context(style if isinstance(style, str) else dict(style))
        context.__enter__()
    except (OSError, KeyError, ValueError, TypeError):
        raise checks.reject("style", f"be a style or settings of matplotlib{known}", checks.brief(style)) from None
    try:
        yield
    finally:
        context.__exit__(None, None, None)


def plain(name: str) -> str:
    """A name as text that matplotlib does not read as a formula."""
    short = name if len(name) <= _TICK_LETTERS else name[: _TICK_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return short.replace("$", r"\$")


def picture(
    matrix: np.ndarray | scipy.sparse.csr_array,
    dims: tuple[str, str],
    label: str,
    *,
    words: tuple[Sequence[str] | None, Sequence[str] | None],
    ax: Axes | None,
    style: Style | None,
) -> Axes:
    """A matrix as a picture with its scale; of a large one the first rows and columns.

    Colours go to both sides of zero. Entries of a sparse matrix are shares: they are blank where they are 0, to tell
    these from small ones.

    Parameters
    ----------
    matrix : array or sparse array
    dims, words : pairs
        Labels of the axes down and across, and names along them in the place of numbers.
    label : str
        Of the scale.
    ax, style
    """
    corner = matrix[:PICTURE_ROWS, :PICTURE_COLUMNS]
    shares = scipy.sparse.issparse(corner)
    values = corner.toarray() if shares else corner
    largest = np.abs(values).max(initial=0.0) or 1.0
    scale = {"cmap": "cividis", "vmin": 0.0} if shares else {"cmap": "RdBu_r", "vmin": -largest}
    title = "first {} x {} of {:,} x {:,}".format(*corner.shape, *matrix.shape)
    with styled(style):
        ax = axes(ax)
        values = np.where(values > 0, values, np.nan) if shares else values
        image = ax.imshow(values, aspect="auto", interpolation="nearest", vmax=largest, **scale)
        ax.grid(False)
        ax.set(ylabel=dims[0], xlabel=dims[1], title=title if corner.shape != matrix.shape else "")
        for axis, names, size in zip((ax.yaxis, ax.xaxis), words, corner.shape, strict=True):
            _ticks(axis, None if names is None else [plain(shown(names, number)) for number in range(size)])
        ax.figure.colorbar(image, ax=ax, label=label)
    return ax


def _ticks(axis: Axis, words: Sequence[str] | None) -> None:
    """Names in the place of the numbers of an axis; of many, those that its ticks are at."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, ScalarFormatter

    integers = AutoLocator()  # a new one, as a picture drawn here before may have left names
    integers.set_params(integer=True)
    axis.set_major_locator(integers)
    axis.set_major_formatter(ScalarFormatter())
    if words is None:
        return
    if len(words) <= _NAMED_TICKS:
        axis.set_ticks(range(len(words)), words)
    else:
        named = FuncFormatter(lambda place, _: words[round(place)] if 0 <= round(place) < len(words) else "")
        axis.set_major_formatter(named)
    if axis.axis_name == "x" and max(map(len, words)) > 2:
        axis.set_tick_params(labelrotation=90)


def moving_most(table: np.ndarray) -> list[int]:
    """Columns of a table over time that move most, as many as a plot has lines, in their order."""
    moved = np.ptp(np.where(np.isfinite(table), table, 0.0), axis=0)
    return np.sort(np.argsort(-moved, kind="stable")[:LINES]).tolist()


def moving(drawn: int, whole: int, what: str) -> str:
    """Words for lines that are left out: "the 10 of 20 tokens that move most", or nothing if all are drawn."""
    return f"the {drawn} of {whole:,} {what} that move most" if drawn < whole else ""


def lines(
    time: xr.DataArray,
    drawn: Sequence[tuple[int, str, np.ndarray]],
    *,
    label: str,
    title: str = "",
    ax: Axes | None,
    style: Style | None,
) -> Axes:
    """Lines over time, each with its number and its word, which are told apart by their numbers where alike.

    The axis of time is logarithmic if the times are, or if the lines move early.
    """
    words = [word for _, word, _ in drawn]
    with styled(style):
        ax = axes(ax)
        logarithmic = is_logarithmic(time.values) or moves_early(time.values, [values for _, _, values in drawn])
        kept = time.values > 0 if logarithmic else slice(None)
        for number, word, values in drawn:
            told = f"{word}, {number}" if words.count(word) > 1 else word
            ax.plot(time.values[kept], values[kept], label=told or None)
        unit = f" ({time.attrs['units']})" if time.attrs.get("units") else ""
        ax.set(xlabel=f"time{unit}", ylabel=label, title=title)
        if logarithmic:
            ax.set_xscale("log")
        if len(drawn) > 1:
            ax.legend()
    return ax


def is_logarithmic(times: np.ndarray) -> bool:
    """Whether times were recorded to be looked at in their logarithm: most of them in the first tenth of a long run."""
    return bool(times.size > 2 and times[0] >= 0 and np.median(times) < 0.1 * times[-1])


def moves_early(times: np.ndarray, lines: Iterable[np.ndarray]) -> bool:
    """Whether half of all movement of some lines is over in the first tenth of a run."""
    if times.size < 3 or times[0] < 0:
        return False
    moved = np.cumsum(sum((np.abs(np.diff(np.nan_to_num(line))) for line in lines), np.zeros(times.size - 1)))
    half = times[1 + int(np.searchsorted(moved, moved[-1] / 2))]
    return bool(0 < moved[-1] < np.inf and half < 0.1 * times[-1])
