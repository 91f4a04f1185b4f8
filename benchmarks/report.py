"""The results of the benchmarks as a table, JSON, Markdown and a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

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


def place(facts: Mapping[str, str]) -> str:
    """Describe the machine in words."""
    rest = dict(facts)
    where = f"{rest.pop('processor')}, {rest.pop('cores')} cores, {rest.pop('system')}"
    return f"{where}; " + ", ".join(f"{name} {version}" for name, version in rest.items())


def _shown(data: Sequence[Mapping[str, Any]]) -> list[tuple[str, Row]]:
    names = [field.name for field in fields(Row)]
    return [(row["benchmark"], Row(**{name: row[name] for name in names})) for row in data]


def markdown(data: Sequence[Mapping[str, Any]]) -> str:
    """The table for the documentation from the rows of the file, and what they were measured on."""
    places: dict[str, list[str]] = {}
    for row in data:
        own = places.setdefault(row["measured_on"], [])
        own += [row["benchmark"]] if row["benchmark"] not in own else []
    table = [_COLUMNS, ("---",) * len(_COLUMNS), *(_cells(row) for _, row in _shown(data))]
    lines = ["| " + " | ".join(cells).rstrip() + " |" for cells in table]
    for where, names in places.items():
        only = f" ({', '.join(names)})" if len(places) > 1 else ""
        lines += ["", f"Measured on{only}: {where}."]
    return "\n".join(lines) + "\n"


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
    axes.set_xlim(min(values) / 4, max(values) * 3)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_yticks(range(len(shown)), [f"{row.task}\nbeside {row.peer_name}" for row in shown], fontsize=7)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the peer / time of yzflow, same threads unless named\n(above 1: yzflow is faster)")
    return figure


def _kept(out: Path, again: Collection[str]) -> list[dict[str, Any]]:
    """Rows of a folder's table, but those of benchmarks that were run again."""
    path = out / "benchmarks.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    return [{"measured_on": place(found["machine"])} | row for row in found["rows"] if row["benchmark"] not in again]


def write(out: Path, rows: Sequence[tuple[str, Row]], studies: Mapping[str, Study]) -> None:
    """``benchmarks.json``, ``.md`` and ``.png`` of the rows; ``NAME.json``, ``.md`` and ``.png`` of each study.

    Rows that are there of other benchmarks are kept, with what they were measured on.
    """
    folder("--out", out)
    if rows:
        facts = machine.describe()
        made = {"measured_on": place(facts)}
        data = [{"benchmark": name, **asdict(row), "ratio": row.ratio} | made for name, row in rows]
        data = sorted(data + _kept(out, {name for name, _ in rows}), key=lambda row: str(row["benchmark"]))
        _write(out / "benchmarks", {"machine": facts, "rows": data}, markdown(data), ratios(_shown(data)))
    for name, study in studies.items():
        _write(out / name, {"machine": machine.describe(), **study.data}, study.markdown + "\n", study.figure)


def _write(stem: Path, data: Mapping[str, object], text: str, figure: Figure) -> None:
    with replacing(stem.with_suffix(".json")) as path:
        path.write_text(json.dumps(data, indent=2) + "\n")
    with replacing(stem.with_suffix(".md")) as path:
        path.write_text(text)
    style.save(figure, stem, formats=("png",))
