"""The report on a training that others ran: which theorems speak of it, what was foreseen, and what came of it."""

from __future__ import annotations

import base64
import io
import math
import os
import textwrap
from collections.abc import Iterable
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
import xarray as xr

from dynamics.support import checks
from dynamics.support.files import replacing
from dynamics.support.rounded import margin as shown_margin
from yzflow.audits.report import columns
from yzflow.parts import part_of, parts
from yzflow.watching import rivals
from yzflow.watching.claimed import known_rivals
from yzflow.watching.places import Applies, Place, applies
from yzflow.watching.recording import Recording

__all__ = ["WatchReport"]

_MOST = 6  # assumptions that are shown of those that are broken
_WIDTH = 100
_PICTURE = "Attention, entropy and loss over the training"
_NAMED = 8  # tokens that a legend has room for


class WatchReport:
    """Which theorems say something about a recorded training; made by ``report`` of a recorder.

    Attributes
    ----------
    recording : Recording
    now : int
        The step of which the past is known: assumptions are evaluated there, and what follows is foreseen from there.
    stored : tuple of str
        Rivals whose predictions were written at that step, before what followed was seen; others foresee from the past
        of it now.
    """

    def __init__(self, recording: Recording, *, now: int | None = None) -> None:
        self.recording = checks.instance("recording", recording, Recording)
        steps = recording.steps
        if now is None:
            wanted, asked = max(math.isqrt(int(steps[-1])), int(steps[0])), recording.asked
            steps = asked[asked <= wanted] if (asked <= wanted).any() else steps
        else:
            wanted = checks.integer("now", now, minimum=int(steps[0]))
        self.now = int(steps[steps <= wanted][-1])
        self._past = recording.then(self.now)
        self.stored = tuple(recording.stored(self.now))

    def __repr__(self) -> str:
        return f"<WatchReport: {self.headline}>"

    @cached_property
    def places(self) -> dict[str, Place]:
        """Name of each paper that looks at trainings -> where this one stands at the step."""
        return {paper.name: watched(self._past) for paper, watched in parts("watched")}

    @cached_property
    def applies(self) -> dict[str, Applies]:
        """Statement -> the margins of its assumptions at the step, and whether all of them hold."""
        found = {}
        for name, place in self.places.items():
            if place.setting is None:
                continue
            columns_of = part_of(name, "columns") or {}
            level = (columns_of.get("SGD") or part_of(name, "levels"))[-1]  # what a user trains
            for one in part_of(name, "statements"):
                if one.assumptions and not one.own:
                    found[one.id] = applies(one, place, level)
        return found

    @property
    def inside(self) -> tuple[str, ...]:
        """Statements all of whose assumptions hold at the step."""
        return tuple(name for name, one in self.applies.items() if one.inside)

    @property
    def reasons(self) -> dict[str, float]:
        """Assumptions that keep every statement from applying, or the most of them, with the smallest margin first."""
        broken = [one.broken for one in self.applies.values()]
        margins = {text: margin for found in broken for text, margin in found.items()}
        count = {text: sum(text in found for found in broken) for text in margins}
        most = max(count.values(), default=0)
        shared = {text: margin for text, margin in margins.items() if count[text] == most}
        return dict(sorted(shared.items(), key=lambda one: one[1]))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Assumptions of which the recording knows too little."""
        return tuple(dict.fromkeys(text for one in self.applies.values() for text in one.unknown))

    @property
    def headline(self) -> str:
        """The one sentence that a reader came for."""
        if self.inside:
            among = [name for name in self.inside if ": Theorem" in name] or list(self.inside)
            return (
                f"As far as the recording shows, the training is inside the assumptions of {len(self.inside)} of "
                f"{len(self.applies)} statements at step {self.now:,}, among them {_joined(among)}."
            )
        why = [f"{text} (margin {shown_margin(margin, 2)})" for text, margin in list(self.reasons.items())[:_MOST]]
        why += [f"{text} (not known)" for text in self.unknown[: _MOST - len(why)]]
        why += [place.why for place in self.places.values() if place.why]
        return f"No theorem here applies at step {self.now:,}, because of: {'; '.join(why) or 'no paper looks at it'}."

    @cached_property
    def rivals(self) -> dict[str, xr.Dataset]:
        """Name of each theory -> what it foresees from the past of the step; the nulls come last.

        Predictions that were written at the step are taken from there.
        """
        stored = self.recording.stored(self.now)
        known = {one.name: one for one in known_rivals()}
        return {
            name: stored[name] if name in stored else rivals.foreseen(known[name], self._past)
            for name in (*(name for name in stored if name not in known), *known)
        }

    @property
    def provenance(self) -> str:
        """When the predictions were made, in a sentence."""
        if not self.stored:
            known = "batches, lengths and the optimizer are those of the whole recording"
            return f"Computed afterwards, from what was recorded until step {self.now:,}; {known}."
        later = [name for name in self.rivals if name not in self.stored]
        rest = f" Computed afterwards, from that past: {', '.join(later)}." if later else ""
        mark = self._past.fingerprint[:16]
        said = f"Stored at step {self.now:,}, before what followed was seen; the SHA-256 of its past begins {mark}."
        return f"{said}{rest}"

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """Name of each theory -> Brier score of each quantity between the step and the end; empty without a future."""
        if self.now == self.recording.steps[-1]:
            return {}
        happened = rivals.outcome(self.recording, self.now)
        return {name: rivals.score(found, happened) for name, found in self.rivals.items()}

    @property
    def dataset(self) -> xr.Dataset:
        """The recording, with margins by statement and assumption, and the predictions of each theory."""
        texts = sorted({text for one in self.applies.values() for text in one.margins})
        margins = [[one.margins.get(text, math.nan) for text in texts] for one in self.applies.values()]
        data = self.recording.dataset.assign_coords(statement=list(self.applies), assumption=texts)
        data["margin"] = (("statement", "assumption"), np.reshape(margins, (len(self.applies), len(texts))))
        joined = xr.concat(list(self.rivals.values()), "theory", join="outer").assign_coords(theory=list(self.rivals))
        return data.merge(joined.rename({name: f"foreseen_{name}" for name in joined.data_vars}))

    @property
    def text(self) -> str:
        """The report in some twenty lines."""
        data, facts = self.recording.dataset, self.recording.facts
        lines = textwrap.wrap(self.headline, _WIDTH)
        lines += ["", *textwrap.wrap(self._seen(), _WIDTH), ""]
        lines += [f"{len(self.inside)} of {len(self.applies)} statements apply. The closest others:"]
        rows = [["  statement", "broken", "smallest margin of"]]
        outside = [one for one in self.applies.values() if not one.inside]
        for one in sorted(outside, key=lambda one: len(one.broken) + len(one.unknown))[:5]:
            worst = next(iter(one.broken.items()), (next(iter(one.unknown), ""), math.nan))
            number = f"{len(one.broken)}" + (f" (+{len(one.unknown)} not known)" if one.unknown else "")
            rows.append([f"  {one.statement}", number, f"{shown_margin(worst[1], 2)}  {worst[0]}"])
        lines += columns(rows)
        if self.scores:
            lines += [
                "",
                f"What was foreseen at step {self.now:,} of step {self.recording.steps[-1]:,}, as Brier scores:",
            ]
            rows = _score_rows(self)
            lines += [
                *columns([[f"  {name}", *cells] for name, *cells in rows]),
                "  (0 is best; 0.25 is even odds on a sign)",
                *textwrap.wrap(self.provenance, _WIDTH, initial_indent="  ", subsequent_indent="  "),
            ]
        happened, entropy = data["loss"].values, data["entropy"].mean(("layer", "head")).values
        moved = float(np.nanmax(np.abs(data["gain"].isel(step=-1).values)))
        lines += [
            "",
            f"From the first record to the last: loss {happened[0]:.3f} to {happened[-1]:.3f} nats,",
            f"entropy of attention {entropy[0]:.3g} to {entropy[-1]:.3g} nats, on {facts['sequences']} sequences;",
            f"largest gain of a token {moved:.2g}.",
        ]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _seen(self) -> str:
        facts, data = self.recording.facts, self.recording.dataset
        of = facts["optimizer"]
        last = self._past.dataset.isel(step=-1)
        rates = [float(last[name].mean()) for name in ("eta_y", "eta_z")]
        said = [
            facts["kind"],
            f"{data.sizes['layer']} layer{'s' * (data.sizes['layer'] > 1)}, {data.sizes['head']} "
            f"head{'s' * (data.sizes['head'] > 1)}",
            f"vocabulary {facts['vocabulary']:,}, T = {facts['length']}",
            "optimizer not known" if of is None else of["name"] + ("" if math.isnan(of["lr"]) else f" at {of['lr']:g}"),
            "eta_Y and eta_Z not known" if np.isnan(rates).any() else f"eta_Y = {rates[0]:.3g}, eta_Z = {rates[1]:.3g}",
        ]
        return f"Seen: {'; '.join(said)}; {len(self.recording.steps)} records until step {self.recording.steps[-1]:,}."

    def page(self, path: str | os.PathLike) -> Path:
        """Write the report as one page that works offline: the sentence, a figure, margins and scores."""
        with replacing(path) as temporary:
            temporary.write_text(_page(self), encoding="utf-8")
        return Path(path)

    def save(self, path: str | os.PathLike) -> None:
        """Write the recording, from which the report is made again."""
        self.recording.save(path)


def _joined(names: Iterable[str]) -> str:
    """Statements, with their paper named once."""
    found: dict[str, list[str]] = {}
    for name in names:
        paper, _, number = name.partition(": ")
        found.setdefault(paper, []).append(number)
    return "; ".join(f"{', '.join(numbers)} of {paper}" for paper, numbers in found.items())


def _score_rows(report: WatchReport) -> list[list[str]]:
    """A head, and a row for each theory with its scores, or "-" where it foresaw nothing."""
    return [
        ["theory", "who gains", "who leads", "sparser", "when it turns"],
        *(
            [name, *(f"{found[one]:.3f}" if one in found else "-" for one in rivals.QUANTITIES)]
            for name, found in report.scores.items()
        ),
    ]


def _page(report: WatchReport) -> str:
    """The report as a statement's page is made: its style, its tables, light or dark."""
    from yzflow.pages.statement import document, table

    picture = f"<img width='100%' alt='{_PICTURE}' src='data:image/png;base64,{_figure(report)}'>"
    seen = f"{report._seen()} The dotted line is the step of which the past is known."
    body = [
        "<header><h1>Is this training inside a theorem?</h1>",
        f"<p>{escape(report.headline)}</p></header><main>",
        f"<figure id='plot'>{picture}<figcaption>{escape(seen)}</figcaption></figure>",
    ]
    if report.scores:
        head, *scored = _score_rows(report)
        cells = [[escape(cell) for cell in row] for row in scored]
        caption = "Brier scores: 0 is best, and 0.25 is even odds on a sign; - is nothing said."
        body.append(f"<section id='foreseen'><h2>What was foreseen at step {report.now:,}</h2>")
        body.append(f"{table(head, cells, caption)}<p>{escape(report.provenance)}</p></section>")
    body.append(f"<section id='assumptions'><h2>Assumptions at step {report.now:,}</h2>")
    body.append("<p>A margin is the ratio of the two sides; one or more holds.</p>")
    for one in report.applies.values():
        word = "<strong class='badge proved'>inside</strong>" if one.inside else _outside(one)
        rows = sorted(one.margins.items(), key=lambda pair: (not math.isnan(pair[1]), pair[1]))
        cells = [[escape(words), "not known" if math.isnan(margin) else shown_margin(margin)] for words, margin in rows]
        held = table(["assumption", "margin"], cells, "", bad=[margin < 1 for _, margin in rows])
        body.append(f"<details><summary>{escape(one.statement)}: {word}</summary>{held}</details>")
    body.append("</section></main>")
    return document("Is this training inside a theorem?", "\n".join(body))


def _outside(one: Applies) -> str:
    """How many assumptions do not hold, or are not known, as a badge where one is broken."""
    if not one.broken:
        return f"{len(one.unknown)} not known"
    return f"<strong class='badge not-run'>{len(one.broken)} broken</strong>"


def _figure(report: WatchReport) -> str:
    """Gains of the tokens of the first next token, entropy and loss over the steps: a PNG, in base64."""
    from yzflow.figures.style import canvas, styled

    @styled
    def draw():
        data = report.recording.dataset
        figure = canvas(figsize=(10, 3.2))
        axes = figure.subplots(1, 3)
        steps = np.maximum(data["step"].values, 0.5)
        of = data["gain"].isel(layer=0, head=0, next_token=0)
        for token in of["token"].values[~np.isnan(of.isel(step=-1).values)]:
            axes[0].plot(steps, of.sel(token=token), label=f"token {int(token)}")
        if len(axes[0].lines) <= _NAMED:
            axes[0].legend()
        axes[0].set_title(f"gain of each token, next token {int(of['next_token'])}")
        for layer in range(data.sizes["layer"]):
            entropy = data["entropy"].isel(layer=layer).mean("head").values
            axes[1].plot(steps, entropy - entropy[0], label=f"layer {layer + 1}")
        if data.sizes["layer"] > 1:
            axes[1].legend()
        axes[1].set_title("entropy of attention, change (nats)")
        axes[2].plot(steps, data["loss"])
        axes[2].set_title("loss (nats)")
        for one in axes:
            one.set_xscale("log")
            one.set_xlabel("step")
            one.axvline(max(report.now, 0.5), color="0.6", lw=1, ls=":")
        return figure

    picture = io.BytesIO()
    draw().savefig(picture, format="png", dpi=150)
    return base64.b64encode(picture.getvalue()).decode()
