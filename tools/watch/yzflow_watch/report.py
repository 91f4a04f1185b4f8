"""The report on a training that others ran: who was right, predictions and outcomes, and theorems that apply."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support import checks
from dynamics.support.files import replacing
from theory.statements import Statement
from yzflow.audits.places import Applies, Place, applies, plain_steps
from yzflow.audits.rendered import columns
from yzflow.parts import part_of, parts
from yzflow_watch import right, rivals
from yzflow_watch.claimed import known_rivals
from yzflow_watch.in_the_way import InTheWay, listed, says
from yzflow_watch.names import token_names
from yzflow_watch.recording import Recording

__all__ = ["WatchReport"]

_WIDTH = 100
_SHOWN = 8  # the most statements with a line in the text
_NULLS = tuple(one.name for one in rivals.NULLS)


class WatchReport:
    """Who was right about a recorded training, and the theorems that apply to it; made by ``report`` of a recorder.

    Attributes
    ----------
    recording : Recording
    now : int
        The step with the known past: assumptions are evaluated there, and later steps are predicted from there.
    stored : tuple of str
        Rivals whose predictions were written at that step, before later steps were seen; other rivals predict now, from
        the same past.
    names : dict
        Text of each token with its own record.
    """

    def __init__(self, recording: Recording, *, now: int | None = None, names: Any = None) -> None:
        self.recording = checks.instance("recording", recording, Recording)
        steps = recording.steps
        if now is None:
            wanted, asked = max(math.isqrt(int(steps[-1])), int(steps[0])), recording.asked
            steps = asked[asked <= wanted] if (asked <= wanted).any() else steps
        else:
            wanted = checks.integer("now", now, minimum=int(steps[0]))
        self.now = int(steps[steps <= wanted][-1])
        self._why = None if now is None else wanted
        self._past = recording.then(self.now)
        self.stored = tuple(recording.stored(self.now))
        data = recording.dataset
        self.names = token_names(names, np.union1d(data["token"].values, data["next_token"].values))

    def __repr__(self) -> str:
        return f"<WatchReport: {self.headline}>"

    @cached_property
    def places(self) -> dict[str, Place]:
        """Name of each paper that looks at trainings -> the place of this one at the step."""
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
        """Statements whose assumptions all hold at the step."""
        return tuple(name for name, one in self.applies.items() if one.inside)

    @cached_property
    def in_the_way(self) -> InTheWay:
        """Assumptions that stop the most statements, and the statements that would apply without these."""
        return InTheWay.of(self.applies)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Assumptions that the recording does not decide."""
        return tuple(dict.fromkeys(text for one in self.applies.values() for text in one.unknown))

    @property
    def statements(self) -> dict[str, Statement]:
        """Each statement that was asked, by its name in `applies`."""
        every = (one for name in self.places for one in part_of(name, "statements") or ())
        return {one.id: one for one in every if one.id in self.applies}

    @property
    def headline(self) -> str:
        """The theorems that apply to the training, or the obstacles, in a sentence."""
        if self.inside:
            return (
                f"As far as the recording shows, the training is at step {self.now:,} inside the assumptions of "
                f"{listed(self.inside)} ({len(self.inside)} of {len(self.applies)} statements)."
            )
        whys = [place.why for place in self.places.values() if place.why]
        if not self.applies:
            return f"No theorem here applies at step {self.now:,}: {'; '.join(whys) or 'no paper looks at it'}."
        if self.in_the_way.sentence and not self._only_unknown:
            return f"No theorem here applies at step {self.now:,}: {'; '.join([self.in_the_way.sentence, *whys])}"
        open_ones = self._only_unknown
        unknown = "; ".join(dict.fromkeys(text for name in open_ones for text in self.applies[name].unknown))
        return f"Open at step {self.now:,}: {listed(open_ones)} would speak if what is not known holds: {unknown}."

    @property
    def _only_unknown(self) -> tuple[str, ...]:
        """Statements with unknown assumptions and without broken ones."""
        return tuple(name for name, one in self.applies.items() if one.unknown and not one.broken)

    @property
    def right(self) -> str:
        """Who was right about the steps after ``now``, in a sentence."""
        steps = self.recording.steps
        unseen = self.recording.facts["unseen"]
        if unseen:
            return f"{unseen[0].upper()}{unseen[1:]}. This is the model before its training."
        if steps[-1] == 0:
            return "No step was seen: this is the model before its training."
        if self.happened is None:
            return f"Nothing was recorded after step {self.now:,}, so that nothing can be scored."
        gone = right.left_out(self.recording, self.now)
        less = (
            f" Left out are {gone:,} tokens whose attention is no number (NaN) at one of these steps." if gone else ""
        )
        counts, compared = right.who_was_right(
            self.rivals, self.happened, _NULLS, self.recording.dataset["query"].values
        )
        span = f"From step {self.now:,} to {steps[-1]:,}"
        if not counts:
            return f"{span} no token changed its attention of which a theory had foreseen anything.{less}"
        return f"{span}, on who gains attention and who loses: {counts}. {compared}.{less}"

    @property
    def why_now(self) -> str:
        """The reason for this step, in a sentence."""
        steps = self.recording.steps
        if self._why is not None:
            return (
                "" if self._why == self.now else f"Step {self.now:,} is the last record until {self._why:,}, as asked."
            )
        if steps[-1] == steps[0]:
            return ""
        what = "with predictions that were written" if self.now in self.recording.asked else "record"
        return (
            f"Step {self.now:,} is the last {what} until the square root of the last step, {steps[-1]:,}: the middle "
            "of the training on a logarithmic axis. `now=` asks about another."
        )

    @cached_property
    def rivals(self) -> dict[str, xr.Dataset]:
        """Name of each theory -> its predictions from the past of the step; the nulls come last.

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
        happened = self.happened
        return {} if happened is None else {name: rivals.score(one, happened) for name, one in self.rivals.items()}

    @property
    def about_scores(self) -> str:
        """How to read the scores, and which theories made no prediction."""
        silent = ", ".join(name for name, found in self.scores.items() if not found)
        words = "Scores are Brier's: 0 is best, and 0.25 is even odds on a sign."
        return f"{words}{f' Silent: {silent}.' if silent else ''}"

    @cached_property
    def happened(self) -> xr.Dataset | None:
        """Outcome of each quantity between the step and the end; None without a future."""
        return None if self.now == self.recording.steps[-1] else rivals.outcome(self.recording, self.now)

    def foreseen(self) -> dict[str, tuple[str, list[list[str]]]]:
        """Question -> outcome, and a row for each theory with a prediction: prediction, its success, score."""
        if self.happened is None:
            return {}
        found = {}
        for name, words in right.WORDS.items():
            rows = right.rows(self.rivals, self.happened, self.scores, name)
            if rows:
                found[words] = (right.came(self.happened, name), rows)
        return found

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
        """The report as text: who was right, the step, predictions and outcomes, and obstacles."""
        lines = [*_wrapped(self.right), "", *_wrapped(self.seen)]
        lines += ["", *_wrapped(self.why_now)] if self.why_now else []
        for words, (came, rows) in self.foreseen().items():
            lines += ["", f"{words}: {came}."]
            lines += columns([["theory", "foreseen", "came", "score"], *rows])
        if self.scores:
            lines += [*_wrapped(self.about_scores), *_wrapped(self.provenance)]
        lines += ["", *_wrapped(self.headline)]
        lines += [f"  {name.partition(': ')[2]}. {says(self.statements[name])}" for name in self.nearest[:_SHOWN]]
        data = self.recording.dataset
        happened, entropy = data["loss"].values, data["entropy"].mean(("layer", "head")).values
        present = data["gain"].isel(step=-1).values
        moved = float(np.nanmax(np.abs(present), initial=0.0))
        lines += [
            "",
            f"From the first record to the last: loss {happened[0]:.3f} to {happened[-1]:.3f} nats,",
            f"entropy of attention {entropy[0]:.3g} to {entropy[-1]:.3g} nats, on {self.recording.facts['sequences']} "
            f"sequences;",
            f"largest gain of a token {moved:.2g}.",
        ]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    @property
    def nearest(self) -> tuple[str, ...]:
        """Statements that apply, or would apply without the most frequent obstacles, or are not known to."""
        way = self.in_the_way
        found = self.inside or self._only_unknown or (*way.else_speak, *way.else_open)
        by_number = sorted(self.applies.values(), key=lambda one: len(one.broken) + len(one.unknown))
        return tuple(found) or tuple(one.statement for one in by_number[:5])

    @property
    def seen(self) -> str:
        """The known facts on model and training, in a sentence."""
        facts, data = self.recording.facts, self.recording.dataset
        of = facts["optimizer"]
        last = self._past.dataset.isel(step=-1)
        rates = [float(last[name].values.mean()) for name in ("eta_y", "eta_z")]
        plain = False if facts["rates"] == "nominal" else plain_steps(of)
        nominal = "" if plain else ", nominal: those of plain steps at this rate, which these steps are not"
        nominal = ", if its steps are plain" if plain is None else nominal
        missing, together = len(facts["gaps"]), facts["processes"]
        said = [
            facts["kind"],
            f"{data.sizes['layer']} layer{'s' * (data.sizes['layer'] > 1)}, {data.sizes['head']} "
            f"head{'s' * (data.sizes['head'] > 1)}",
            f"vocabulary {facts['vocabulary']:,}, T = {facts['length']}",
            "optimizer not known" if of is None else of["name"] + ("" if math.isnan(of["lr"]) else f" at {of['lr']:g}"),
            "eta_Y and eta_Z not known"
            if np.isnan(rates).any()
            else f"eta_Y = {rates[0]:.3g}, eta_Z = {rates[1]:.3g}{nominal}",
        ]
        said += [f"{len(self.recording.steps)} records until step {self.recording.steps[-1]:,}"]
        said += [f"{missing} that could not be made or written"] if missing else []
        said += [f"batches are those of one of {together} processes"] if together > 1 else []
        return f"Seen: {'; '.join(said)}."

    def page(self, path: str | os.PathLike, *, layer: int | Sequence[int] = 0, head: int | Sequence[int] = 0) -> Path:
        """Write the report as one page that works offline: headline, predictions and outcomes, and plots.

        Parameters
        ----------
        path : path-like
        layer, head : int or sequence of int
            Layers and heads that are drawn, counted from 0: each of these heads in each of these layers.
        """
        from yzflow_watch.page import page

        layers, heads = self._chosen("layer", layer), self._chosen("head", head)
        with replacing(path) as temporary:
            temporary.write_text(page(self, layers, heads), encoding="utf-8")
        return Path(path)

    def _chosen(self, name: str, given: int | Sequence[int]) -> list[int]:
        """Indices on an axis of the recording, from one number or several."""
        several = [given] if checks.is_number(given) else given
        found = checks.index_array(name, several, upper=self.recording.dataset.sizes[name])
        if not found.size:
            raise checks.reject(name, "be a number or several", checks.brief(given))
        return [int(one) for one in found]

    def save(self, path: str | os.PathLike) -> None:
        """Write the recording, from which the report can be made again."""
        self.recording.save(path)


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, _WIDTH, break_on_hyphens=False)
