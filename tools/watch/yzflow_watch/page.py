"""The page of a recorded training, in one file: the report, with plots of the chosen heads."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics.support.rounded import margin as shown_margin
from yzflow.audits.formulas import readable
from yzflow.audits.places import Applies
from yzflow.audits.rendered import html_table
from yzflow.figures.style import canvas, styled
from yzflow.pages.statement import document
from yzflow_watch.in_the_way import says
from yzflow_watch.measures import PLACES

__all__ = ["page", "panels"]

_TITLE = "Which theory was right about this training?"
_NAMED = 8  # the most tokens in a legend
_GRID = "display:grid;gap:.6rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,23rem),1fr))"
_SMALL = "margin:.8rem 0 0;font-size:1rem"
_PLACES = dict(zip(PLACES, ("on the token before", "after the query's own token", "on the first token"), strict=True))


def page(report: Any, layers: Sequence[int], heads: Sequence[int]) -> str:
    """The report as a page in the style of statements' pages."""
    body = [
        f"<header><h1>{_TITLE}</h1><p id='right'>{escape(report.right)}</p></header><main>",
        f"<p>{readable(report.seen)} {readable(report.why_now)}</p>",
        f"<figure id='plot'><div style='{_GRID}'>{''.join(_pictures(report, layers, heads))}</div>",
        "<figcaption>The dotted line is the step of which the past is known. Layers and heads are counted from 0; a "
        "gain is the logarithm of attention over that of a token that is looked at as often as it occurs.</figcaption>",
        "</figure>",
    ]
    if report.scores:
        body.append(f"<section id='foreseen'><h2>What was foreseen at step {report.now:,}, and what came</h2>")
        for words, (came, rows) in report.foreseen().items():
            cells = [[escape(cell) for cell in row] for row in rows]
            shown = html_table(["theory", "foreseen", "came", "score"], cells, escape(came))
            body.append(f"<h3 style='{_SMALL}'>{escape(words)}</h3>{shown}")
        body.append(f"<p>{escape(report.about_scores)} {escape(report.provenance)}</p>")
        body.append("</section>")
    body.append(f"<section id='assumptions'><h2>Which theorems speak of it</h2><p>{readable(report.headline)}</p>")
    body.append("<p>A margin is the ratio of the two sides; one or more holds.</p>")
    near = dict.fromkeys((*report.nearest, *report.applies))
    body += [_statement(report, report.applies[name]) for name in near]
    body.append("</section></main>")
    return document(_TITLE, "\n".join(body))


def _statement(report: Any, one: Applies) -> str:
    """A statement in a line, its badge, and the margins of its assumptions."""
    rows = sorted(one.margins.items(), key=lambda pair: (not math.isnan(pair[1]), pair[1]))
    cells = [[readable(words), "not known" if math.isnan(margin) else shown_margin(margin)] for words, margin in rows]
    held = html_table(["assumption", "margin"], cells, "", bad=[margin < 1 for _, margin in rows])
    line = readable(says(report.statements[one.statement]))
    return f"<details><summary>{escape(one.statement)}. {line} {_badge(one)}</summary>{held}</details>"


def _badge(one: Applies) -> str:
    """The word "speaks" if a statement applies; else how many assumptions are unknown or broken."""
    if one.inside:
        return "<strong class='badge proved'>speaks</strong>"
    if not one.broken:
        return f"<strong class='badge not-run'>open: {len(one.unknown)} not known</strong>"
    return f"<span class='soft'>{len(one.broken)} in the way</span>"


def _pictures(report: Any, layers: Sequence[int], heads: Sequence[int]) -> list[str]:
    """Panels as pictures in the page, one for each, so that a narrow page puts them below each other."""
    found = []
    for title, draw in panels(report, layers, heads).items():

        @styled
        def drawn(draw: Callable[[Axes], None] = draw, title: str = title) -> Figure:
            figure = canvas(figsize=(5.2, 3.3))
            axes = figure.subplots()
            draw(axes)
            axes.set_title(title)
            axes.set_xscale("log")
            axes.set_xlabel("step")
            axes.axvline(max(report.now, 0.5), color="0.6", lw=1, ls=":")
            return figure

        picture = io.BytesIO()
        drawn().savefig(picture, format="png", dpi=150)
        data = base64.b64encode(picture.getvalue()).decode()
        found.append(f"<img width='100%' alt='{escape(title, quote=True)}' src='data:image/png;base64,{data}'>")
    return found


def panels(report: Any, layers: Sequence[int], heads: Sequence[int]) -> dict[str, Callable[[Axes], None]]:
    """Title -> a function that draws the panel: gains and places of each head, then entropies and loss."""
    data = report.recording.dataset
    steps = np.maximum(data["step"].values, 0.5)
    counts = report.recording.facts["counts"]
    following = int(np.argmax(counts)) if len(counts) == data.sizes["next_token"] else 0
    name = _plain(report.names[int(data["next_token"].values[following])])
    known = dict(report.recording.facts["uniform"])
    uniform = {p: f" (uniform: {known[p]:.2g})" if isinstance(known.get(p), float) else "" for p in PLACES}
    found: dict[str, Callable[[Axes], None]] = {}
    for layer in layers:
        for head in heads:
            of, where = data.isel(layer=layer, head=head), f"layer {layer}, head {head}"
            gain = of["gain"].isel(next_token=following).values
            found[f"gain before {name}: {where}"] = partial(_gains, report=report, steps=steps, gain=gain)
            scores = {f"{words}{uniform[place]}": of[place].values for place, words in _PLACES.items()}
            found[f"attention by place: {where}"] = partial(_lines, steps=steps, lines=scores)
    entropy = data["entropy"].values - data["entropy"].values[0]
    lines = {f"layer {layer}, head {head}": entropy[:, layer, head] for layer in layers for head in heads}
    found["entropy of attention, change (nats)"] = partial(_lines, steps=steps, lines=lines)
    found["loss (nats)"] = partial(_lines, steps=steps, lines={"": data["loss"].values})
    return found


def _gains(axes: Axes, report: Any, steps: np.ndarray, gain: np.ndarray) -> None:
    """Gains of tokens, (step, token): the largest changes in colour, with names, and the others in grey."""
    tokens = report.recording.dataset["token"].values
    here = np.flatnonzero(~np.isnan(gain).all(axis=0))
    most = here[np.argsort(-np.nan_to_num(np.nanmax(np.abs(gain[:, here]), axis=0)), kind="stable")]
    for place in most[_NAMED:]:
        axes.plot(steps, gain[:, place], color="0.75", lw=0.8)
    lines = {_plain(report.names[int(tokens[place])]): gain[:, place] for place in most[:_NAMED]}
    others = f"; {len(most) - _NAMED} more in grey" if len(most) > _NAMED else ""
    _lines(axes, steps, lines, title=f"token{others}")


def _lines(axes: Axes, steps: np.ndarray, lines: dict[str, np.ndarray], *, title: str | None = None) -> None:
    """Lines with a legend; a line without numbers is left out."""
    for label, values in lines.items():
        if not np.isnan(values).all():
            axes.plot(steps, values, label=label or None)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(title=title, title_fontsize=8.5)


def _plain(text: str) -> str:
    """A text in which matplotlib sees no mathematics."""
    return text.replace("$", r"\$")
