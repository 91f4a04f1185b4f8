"""The table of survival: verdicts and numbers of all cells, from the errors of their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from yzflow.audits._survival_cells import DEFINED, NUMBERS, WHY, AskedCheck
from yzflow.audits.options import Room
from yzflow.audits.survival_verdicts import ALPHA, Fate, fate_of_run, fate_of_votes, holm, sign_test, votes

FORMAT = "yzflow-survival-1"


def table_of(
    measured: xr.Dataset,
    room: Room,
    asked: Sequence[AskedCheck],
    chosen: Sequence[Any],
    *,
    quick: bool,
    seed: int,
    made: Mapping[str, str],
) -> xr.Dataset:
    dims = ("check", "option", "setting", "level")
    cells = {name: measured[name].transpose(*dims, "draw").values for name in NUMBERS}
    why = measured["why"].transpose(*dims).values
    end = measured["end"].transpose(*dims[1:]).values
    levels = measured["level"].values.tolist()
    is_drawn = np.array([level in room.drawn for level in levels])
    counts, p = {}, {}
    for name in ("whole", "late", "corrected", "corrected_late"):
        counts[name] = np.zeros((*why.shape, 2), dtype=int)
        p[name] = np.full(why.shape, np.nan)
        for cell in _drawn_cells(why, is_drawn):
            check = asked[cell[0]].check
            errors = cells[name][cell]
            if np.isnan(cells["corrected"][cell]).all() and name.startswith("corrected"):
                continue
            counts[name][cell] = votes(errors, check.tolerance, reversible=check.reversible)
            p[name][cell] = sign_test(*counts[name][cell])
    decided = dict(zip(p, holm(np.stack(list(p.values()))), strict=True))
    judged = _Judged(asked, why, end, is_drawn, cells, counts, decided)
    verdict = {"plain": judged.fates(*NUMBERS[:4]), "corrected": judged.fates(*NUMBERS[4:])}
    with np.errstate(all="ignore"):
        middle = {name: _median(cells[name]) for name in NUMBERS}
    texts = {option.name: option.text for option in room.options}
    meanings = {"flag_values": [int(fate) for fate in Fate], "flag_meanings": " ".join(fate.name for fate in Fate)}
    return xr.Dataset(
        {
            "verdict": (dims, verdict["plain"].astype("int8"), {"long_name": "what becomes of the check", **meanings}),
            "verdict_corrected": (dims, verdict["corrected"].astype("int8"), {
                "long_name": "what becomes of it in the form that it has under the option", **meanings}),
            "error": (dims, middle["whole"], {"long_name": "relative error, or share of wrong signs"}),
            "late": (dims, middle["late"], {"long_name": "the same over the second half of the run"}),
            "error_corrected": (dims, middle["corrected"], {"long_name": "error in the option's own form"}),
            "late_corrected": (dims, middle["corrected_late"], {"long_name": "the same over the second half"}),
            "holds_from": (dims, middle["holds_from"], {"units": "SGD step"}),
            "reversed_from": (dims, middle["reversed_from"], {"units": "SGD step"}),
            "p": (dims, p["whole"], {"long_name": "two-sided p of the votes of runs"}),
            "p_late": (dims, p["late"], {"long_name": "two-sided p of the votes of second halves of runs"}),
            "votes": ((*dims, "side"), counts["whole"].astype("int16")),
            "votes_late": ((*dims, "side"), counts["late"].astype("int16")),
            "why": (dims, why.astype("int8"), {"long_name": "; ".join(f"{key}: {text}" for key, text in WHY.items())}),
            "margin": margins(room, asked, chosen),
        },
        {
            "check": measured["check"].values,
            "option": measured["option"].values,
            "setting": measured["setting"].values,
            "level": levels,
            "side": ["for", "against"],
            "statement": ("check", [entry.statement.id for entry in asked]),
            "tolerance": ("check", [float(entry.check.tolerance) for entry in asked]),
            "reversible": ("check", [entry.check.reversible for entry in asked]),
            "text": ("option", [texts[name] for name in measured["option"].values.tolist()]),
        },
        {
            "format": FORMAT,
            "paper": room.paper,
            "seeds": int(cells["whole"].shape[-1]),
            "seed": seed,
            "quick": int(quick),
            **made,
            "alpha": ALPHA,
            "tests": int(sum((~np.isnan(values)).sum() for values in p.values())),
        },
    )  # fmt: skip


def margins(room: Room, asked: Sequence[AskedCheck], settings: Sequence[Any]) -> tuple:
    """The smallest margin of each check's assumptions in each setting at each level, as a variable of the table."""
    levels = list(room.levels.values())  # of the register
    smallest = [
        [
            [min(entry.statement.margins(setting, entry.check, level).values(), default=np.inf) for level in levels]
            for setting in settings
        ]
        for entry in asked
    ]
    return (
        ("check", "setting", "level"),
        np.minimum(smallest, 1e300),
        {"long_name": "smallest margin of the assumptions"},
    )


def _drawn_cells(why: np.ndarray, is_drawn: np.ndarray) -> Iterator[tuple[int, ...]]:
    for cell in zip(*np.nonzero(why == DEFINED), strict=True):
        if is_drawn[cell[3]]:
            yield cell


@dataclass(frozen=True)
class _Judged:
    """Errors, votes and decisions of all cells, as `table_of` makes them."""

    asked: Sequence[AskedCheck]
    why: np.ndarray
    end: np.ndarray
    is_drawn: np.ndarray
    cells: Mapping[str, np.ndarray]
    counts: Mapping[str, np.ndarray]
    decided: Mapping[str, np.ndarray]

    def fates(self, error: str, late: str, holds_from: str, reversed_from: str) -> np.ndarray:
        """The verdicts of all cells on one form, from the names of its four numbers."""
        verdicts = np.full(self.why.shape, int(Fate.NOT_ASKED))
        for cell in zip(*np.nonzero(self.why >= 0), strict=True):
            verdicts[cell] = self._fate(cell, error, late, holds_from, reversed_from)
        return verdicts

    def _fate(self, cell: tuple[int, ...], error: str, late: str, holds_from: str, reversed_from: str) -> Fate:
        corrected = error.startswith("corrected")
        if self.why[cell] != DEFINED:
            return Fate.NOT_ASKED if corrected else Fate.UNDEFINED
        if corrected and np.isnan(self.cells[holds_from][cell]).all() and np.isnan(self.cells[error][cell]).all():
            return Fate.NOT_ASKED
        check = self.asked[cell[0]].check
        if self.is_drawn[cell[3]]:
            return fate_of_votes(
                tuple(self.counts[error][cell]),
                tuple(self.counts[late][cell]),
                whole_decided=bool(self.decided[error][cell]),
                late_decided=bool(self.decided[late][cell]),
                wrong=float(np.nanmedian(self.cells[late][cell])) if check.reversible else np.nan,
            )
        return fate_of_run(
            float(self.cells[error][cell][0]),
            check.tolerance,
            holds_from=float(self.cells[holds_from][cell][0]),
            reversed_from=float(self.cells[reversed_from][cell][0]),
            end=self.end[cell[1:]],
        )


def _median(values: np.ndarray) -> np.ndarray:
    """Median over the draws of each cell; NaN for a cell without draws."""
    some = ~np.isnan(values).all(axis=-1)
    medians = np.full(values.shape[:-1], np.nan)
    medians[some] = np.nanmedian(values[some], axis=-1)
    return medians
