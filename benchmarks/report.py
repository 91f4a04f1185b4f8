"""The results of the benchmarks as a table, JSON, Markdown and a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

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
    "range (processors)",
    "first +",
    "peer's first +",
    "disagreement",
    "of",
)
_ON_THE_PAGE = {"task", "ours (s)", "peer", "peer (s)", "ratio", "range (processors)", "disagreement"}
_WIDTHS = (50, 8, 10, 42, 10, 9, 19, 9, 15, 22, 0)
# How far beyond its range a ratio is still inside: medians of one run in turn scatter by less.
_SLACK = 1.25


class Elsewhere(NamedTuple):
    """A ratio that was measured on another processor."""

    ratio: float
    on: str
    source: str


def spread(row: Row, elsewhere: Sequence[Elsewhere]) -> tuple[float, float]:
    """The least and the largest ratio of a row over the processors."""
    ratios = [row.ratio, *(one.ratio for one in elsewhere)]
    return min(ratios), max(ratios)


def _figures(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.3g}"


def _in_words(least: float, most: float) -> str:
    short, long = _figures(least), _figures(most)
    return short if short == long else f"{short} to {long}"


def _cells(row: Row, elsewhere: Sequence[Elsewhere] = ()) -> tuple[str, ...]:
    tolerance = "" if math.isinf(row.tolerance) else f" (< {row.tolerance:.0e})"
    return (
        row.task,
        str(row.threads),
        f"{row.ours:.4g}",
        row.peer_name,
        f"{row.peer:.4g}",
        _figures(row.ratio),
        f"{_in_words(*spread(row, elsewhere))} ({1 + len(elsewhere)})" if elsewhere else "",
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
    features = f" ({rest.pop('features')})" if "features" in rest else ""
    where = f"{rest.pop('processor')}{features}, {rest.pop('cores')} cores, {rest.pop('system')}"
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
    away = [_elsewhere(row) for row in data]
    cells = (_cells(row, own) for (_, row), own in zip(_shown(data), away, strict=True))
    shown = [column in _ON_THE_PAGE for column in _COLUMNS]
    rows = (compress(row, shown) for row in (_COLUMNS, ("---",) * len(_COLUMNS), *cells))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    for where, names in places.items():
        only = f" ({', '.join(names)})" if len(places) > 1 else ""
        lines += ["", f"Measured on{only}: {where}."]
    others = dict.fromkeys(f"{one.on} ({one.source})" for own in away for one in own)
    lines += ["", f"The ranges also have ratios of: {'; '.join(others)}."] if others else []
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
        text = _figures(row.ratio)
        axes.annotate(text, (row.ratio, place), offset, textcoords="offset points", ha=side, va="center", fontsize=9)
    axes.axvline(1.0, color=style.BLACK, linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    values = [row.ratio for row in shown] + [1.0]
    axes.set_xlim(min(values) / 4, max(values) * 3)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_yticks(range(len(shown)), [f"{row.task}\nbeside {row.peer_name}" for row in shown], fontsize=7)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the peer / time of yzflow,\nsame threads unless named\n(above 1: yzflow is faster)")
    return figure


def _elsewhere(row: Mapping[str, Any]) -> list[Elsewhere]:
    return [Elsewhere(**one) for one in row.get("elsewhere", [])]


def known(folder_: Path) -> list[dict[str, Any]]:
    """The rows of a folder's table, or none."""
    path = folder_ / "benchmarks.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    return [{"measured_on": place(found["machine"])} | row for row in found["rows"]]


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["benchmark"], row["task"], row["peer_name"]


def _with_ranges(data: Sequence[dict[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fresh rows with the ratios that were measured on other processors, and the rows whose peer was not run again."""
    earlier = {_key(row): row for row in before}
    for row in data:
        known_ = earlier.get(_key(row))
        if known_ is None:
            continue
        own = _processor_of(row["measured_on"])
        last = Elsewhere(known_["ratio"], _processor_of(known_["measured_on"]), "the same command")
        away = [one for one in [*_elsewhere(known_), last] if one.on != own]
        unlike = {one.on: one._asdict() for one in away}  # of each processor the last
        if unlike:
            row["elsewhere"] = list(unlike.values())
    again = {(row["benchmark"], row["peer_name"]) for row in data}
    return [*data, *(dict(row) for row in before if (row["benchmark"], row["peer_name"]) not in again)]


def _processor_of(where: str) -> str:
    """The processor in the words of `place`."""
    return where.split(", ", 1)[0]


def compared(rows: Sequence[Row], before: Sequence[Mapping[str, Any]]) -> str:
    """A fresh run beside a table in words: rows beyond their range by more than a quarter, then what it lacks."""
    earlier = {(row["task"], row["peer_name"]): row for row in before}
    lines, missing = [], []
    names = [field.name for field in fields(Row)]
    for row in rows:
        told = f"{row.task}, beside {row.peer_name}"
        found = earlier.get((row.task, row.peer_name))
        if found is None:
            missing.append(f"Not in the table: {told}")
            continue
        least, most = spread(Row(**{name: found[name] for name in names}), _elsewhere(found))
        if not least / _SLACK <= row.ratio <= most * _SLACK:
            lines.append(f"{told}: {_figures(row.ratio)}, and the table has {_in_words(least, most)}")
    head = f"{len(lines)} of {len(rows) - len(missing)} rows left their range by more than a quarter"
    return "\n".join([head + (":" if lines else "."), *lines, *missing])


def write(out: Path, rows: Sequence[tuple[str, Row]], studies: Mapping[str, Study]) -> None:
    """``benchmarks.json``, ``.md`` and ``.png`` of the rows; ``NAME.json``, ``.md`` and ``.png`` of each study.

    Rows that are there of other benchmarks, and of peers that are not installed here, are kept with what they were
    measured on; of a row that was measured on another processor the ratio stays, as a part of its range.
    """
    folder("--out", out)
    if rows:
        facts = machine.describe()
        made = {"measured_on": place(facts)}
        data = [{"benchmark": name, **asdict(row), "ratio": row.ratio} | made for name, row in rows]
        data = sorted(_with_ranges(data, known(out)), key=lambda row: str(row["benchmark"]))
        _write(out / "benchmarks", {"machine": facts, "rows": data}, markdown(data), ratios(_shown(data)))
    for name, study in studies.items():
        _write(out / name, {"machine": machine.describe(), **study.data}, study.markdown + "\n", study.figure)


def _write(stem: Path, data: Mapping[str, object], text: str, figure: Figure) -> None:
    with replacing(stem.with_suffix(".json")) as path:
        path.write_text(json.dumps(data, indent=2) + "\n")
    with replacing(stem.with_suffix(".md")) as path:
        path.write_text(text)
    style.save(figure, stem, formats=("png",))
