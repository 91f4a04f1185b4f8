"""Theories and nulls as rivals on 240 trainings that were fixed in advance, and 30 blind runs of the report."""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from yzflow_watch import rivals

from theory.values import Study
from yzflow_studies.which_theory import blind, drawing, study

STORE = "which_theory.store"  # in the repository's root, where git ignores it: what it holds is not trained again


@cache
def _scores(sha256: str) -> xr.Dataset:
    return study.bench(drawing.settings(sha256=sha256), STORE, progress=True)


def found(one: study.Found) -> dict[str, Any]:
    """A difference as numbers."""
    return {"mean": one.mean, "low": one.low, "high": one.high, "n": one.n, "verdict": one.verdict}


def _row(scores: xr.Dataset, theory: str, quantity: str, now: str) -> dict[str, str]:
    """A theory's differences from the best null by group, in words: a table's row."""
    row = {"theory": theory}
    for group, of in study.kinds_of_runs(scores, now).items():
        one = study.against(of, theory, quantity, now)
        said = f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
        row[group.split()[0]] = said if np.isfinite(one.mean) else "silent"
    return row


def _right(scores: xr.Dataset) -> float:
    """Share of Scan and Snap's signs that are right, from their score: all have the odds `SURE` or its opposite."""
    score = float(scores["brier"].sel(theory="Scan and Snap", quantity="rises", now="half").mean())
    return (rivals.SURE**2 - score) / (rivals.SURE**2 - (1 - rivals.SURE) ** 2)


def _small(sha256: str, scores: xr.Dataset) -> dict[str, Any]:
    """Inside a theorem: how far attention moves from the middle of the training on, and scores by the number K."""
    settings = drawing.settings(sha256=sha256)
    natural = scores.sel(tokens=study.TOKENS[0])
    places = np.flatnonzero(natural["inside"].sel(now="half").values)
    runs = study.recordings([settings[place] for place in places], STORE)
    moved = [
        np.nanmax(np.abs(run.dataset["gain"].isel(step=-1) - run.dataset["gain"].sel(step=study.step_of("half", run))))
        for run in runs
    ]
    signs = natural["brier"].sel(theory="Scan and Snap", quantity="rises", now="half").values[places]
    classes = np.array([settings[place]["population"]["classes"] for place in places])
    return {
        "moved": float(np.median(moved)),
        "classes": [
            {"classes": int(k), "n": int((classes == k).sum()), "brier": float(signs[classes == k].mean())}
            for k in np.unique(classes)
        ],
    }


def bench(sha256: str, seed: int, draws: int) -> dict[str, Any]:
    """Mean scores, differences from the best null by group, and the verdicts on the hypotheses."""
    scores = _scores(sha256)
    natural = scores.sel(tokens=study.TOKENS[0])
    names = [one for one in scores["theory"].values.tolist() if one not in study.NULLS]
    quantities = scores["quantity"].values.tolist()
    cells = []
    for now in study.NOWS:
        for group, of in study.kinds_of_runs(scores, now).items():
            tried = {(name, what): study.against(of, name, what, now) for name in names for what in quantities}
            wins = [f"{name}, {study.WORDS[what]}" for (name, what), one in tried.items() if one.verdict == "wins"]
            cells.append(
                {
                    "now": now,
                    "group": group,
                    "runs": of.sizes["setting"],
                    "cells": sum(np.isfinite(one.mean) for one in tried.values()),
                    "win": len(wins),
                    "lose": sum(one.verdict == "loses" for one in tried.values()),
                    "winners": "; ".join(wins) or "none",
                }
            )
    claims = {one.name: study.of_claim(one, scores) for one in study.CLAIMS}
    leader = study.against(study.chosen(natural, study.PAPER_S), "Scan and Snap", "leads", "half")
    return {
        "settings": scores.sizes["setting"],
        "on_texts": int((natural["text"] != "").sum()),
        "diverged": int(natural["diverged"].sum()),
        "of_attention": int((natural["diverged"] & (natural["kind"] == "attention")).sum()),
        "inside": int(natural["inside"].sel(now="half").sum()),
        "cells": cells,
        "tables": {what: [_row(scores, name, what, "half") for name in names] for what in quantities},
        "nulls": [
            {"null": null}
            | {
                what: f"{value:.3f}" if np.isfinite(value) else "silent"
                for what in quantities
                for value in [float(natural["brier"].sel(now="half", quantity=what, theory=null).mean())]
            }
            for null in study.NULLS
        ],
        "claims": {name: {**found(one), "supported": verdict} for name, (one, verdict) in claims.items()},
        "leader": found(leader),
        "right": {group.split()[0]: _right(of) for group, of in study.kinds_of_runs(scores, "half").items()},
        "sure": rivals.SURE,
        "enough": 0.5 + (rivals.SURE - 0.5) / 2,
        **_small(sha256, scores),
    }


def shuffled(sha256: str, seed: int, draws: int) -> dict[str, Any]:
    """Theories that win over the best null where next tokens depend on nothing."""
    wins = study.shuffled_wins(_scores(sha256))
    return {
        "settings": study.SHUFFLED,
        "cells": wins["cells"],
        **{
            name: {
                "count": len(wins[name]),
                "rows": [
                    {"theory": cell[0], "quantity": cell[1], "now": cell[2], **found(one)} for cell, one in wins[name]
                ],
            }
            for name in ("single", "joint")
        },
    }


def blinded(seed: int, needed: int) -> dict[str, Any]:
    """Answers of the report on blind runs, and on the same runs with next tokens that depend on nothing."""
    runs = blind.design(seed)
    answers = [blind.answer(*one) for one in zip(runs, blind.recordings(runs, STORE, progress=True), strict=True)]
    apart = blind.recordings(runs, STORE, shuffled=True, progress=True)
    inside = sum(study.WatchReport(one).applies[run["target"]].inside for run, one in zip(runs, apart, strict=True))
    return {
        "runs": len(runs),
        "right": sum(one.right for one in answers),
        "enough": sum(one.right for one in answers) >= needed,
        "untouched": sum(not one.broken for one in answers),
        "called_inside": sum(one.right for one in answers if not one.broken),
        "named": sum(one.right for one in answers if one.broken),
        "alone": sum(one.alone for one in answers if one.broken),
        "broken": sum(bool(one.broken) for one in answers),
        "by_break": [
            {
                "broken": name or "nothing",
                "runs": count,
                "right": sum(one.right for one in answers if one.broken == name),
                "alone": sum(one.alone for one in answers if one.broken == name),
            }
            for name, count in sorted(Counter(one.broken for one in answers).items())
        ],
        "misses": [
            {"run": one.name, "broken": one.broken or "nothing", "named": "; ".join(one.named) or "nothing"}
            for one in answers
            if not one.right
        ],
        "shuffled_inside": inside,
    }


TRAINED = {"sha256": drawing.SHA256, "seed": study.BOOTSTRAP, "draws": study.DRAWS}
STUDIES = (
    Study("bench", bench, TRAINED, ("240 settings of settings.json",), quick=False, tolerance=0.05, noise=0.02),
    Study("shuffled", shuffled, TRAINED, ("the same settings",), quick=False, tolerance=0.05, noise=0.02),
    Study("blind", blinded, {"seed": blind.SEED, "needed": blind.NEEDED}, quick=False),
)
