"""The results of the benchmarks as a table, JSON, Markdown and a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks import Row, Study, machine
from dynamics.support.files import folder, replacing
from yzflow.figures import style

_COLUMNS = (
    "task",
    "threads",
    "ours (s)",
    "peer",
    "peer (s)",
    "ratio",
    "first +",
    "peer's first +",
    "disagreement",
    "of",
)
_WIDTHS = (50, 8, 10, 42, 10, 9, 9, 15, 22, 0)


def _cells(row: Row) -> tuple[str, ...]:
    tolerance = "" if math.isinf(row.tolerance) else f" (< {row.tolerance:.0e})"
    return (
        row.task,
        str(row.threads),
        f"{row.ours:.4g}",
        row.peer_name,
        f"{row.peer:.4g}",
        f"{row.ratio:.3g}",
        f"{row.first_ours:.2f}",
        f"{row.first_peer:.2f}",
        f"{row.disagreement:.1e}{tolerance}",
        row.result,
    )


def _aligned(cells: Sequence[str]) -> str:
    parts = [
        f"{cell:<{width}}" if column in ("task", "peer", "of") else f"{cell:>{width}}"
        for cell, width, column in zip(cells, _WIDTHS, _COLUMNS, strict=True)
    ]
    return " ".join(parts).rstrip()


def header() -> str:
    """The first line of the table."""
    return _aligned(_COLUMNS)


def line(row: Row) -> str:
    """A row of the table."""
    return _aligned(_cells(row))


def markdown(rows: Sequence[tuple[str, Row]]) -> str:
    """The table for the documentation, and what it was measured on."""
    table = [_COLUMNS, ("---",) * len(_COLUMNS), *(_cells(row) for _, row in rows)]
    lines = ["| " + " | ".join(cells).rstrip() + " |" for cells in table]
    facts = machine.describe()
    place = f"{facts.pop('processor')}, {facts.pop('cores')} cores, {facts.pop('system')}"
    versions = ", ".join(f"{name} {version}" for name, version in facts.items())
    return "\n".join([*lines, "", f"Measured on: {place}; {versions}."]) + "\n"


@style.styled
def ratios(rows: Sequence[tuple[str, Row]]) -> Figure:
    """How many times longer each peer takes, on a logarithmic axis; filled where yzflow wins, open where the peer does.

    The line is at 1: equal times.
    """
    shown = [row for _, row in rows][::-1]
    figure = Figure(figsize=(8.5, 1.2 + 0.34 * len(shown)))
    axes = figure.subplots()
    for place, row in enumerate(shown):
        wins = row.ratio >= 1
        colour = style.BLUE if wins else style.VERMILION
        axes.plot([1, row.ratio], [place, place], color=colour, linewidth=1.2)
        axes.plot(row.ratio, place, "o" if wins else "s", color=colour, markerfacecolor=colour if wins else "white")
        offset, side = ((7, 0), "left") if wins else ((-7, 0), "right")
        text = f"{row.ratio:.3g}"
        axes.annotate(text, (row.ratio, place), offset, textcoords="offset points", ha=side, va="center", fontsize=9)
    axes.axvline(1.0, color=style.BLACK, linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    values = [row.ratio for row in shown] + [1.0]
    axes.set_xlim(min(values) / 2.5, max(values) * 3)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_yticks(range(len(shown)), [f"{row.task}\nbeside {row.peer_name}" for row in shown], fontsize=7)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the peer / time of yzflow, same threads unless named\n(above 1: yzflow is faster)")
    return figure


def write(out: Path, rows: Sequence[tuple[str, Row]], studies: Mapping[str, Study]) -> None:
    """``benchmarks.json``, ``.md`` and ``.png`` of the rows; ``NAME.json``, ``.md`` and ``.png`` of each study."""
    folder("--out", out)
    if rows:
        data = [{"benchmark": name, **asdict(row), "ratio": row.ratio} for name, row in rows]
        _write(out / "benchmarks", {"machine": machine.describe(), "rows": data}, markdown(rows), ratios(rows))
    for name, study in studies.items():
        _write(out / name, {"machine": machine.describe(), **study.data}, study.markdown + "\n", study.figure)


def _write(stem: Path, data: Mapping[str, object], text: str, figure: Figure) -> None:
    with replacing(stem.with_suffix(".json")) as path:
        path.write_text(json.dumps(data, indent=2) + "\n")
    with replacing(stem.with_suffix(".md")) as path:
        path.write_text(text)
    style.save(figure, stem, formats=("png",))
