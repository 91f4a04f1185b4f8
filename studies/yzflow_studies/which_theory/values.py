"""Theories and nulls as rivals on 240 trainings that were fixed in advance, and 30 blind runs of the report."""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow_studies.which_theory import blind, drawing, study

STORE = "which_theory.store"  # in the repository's root, where git ignores it: what it holds is not trained again


@cache
def _scores(sha256: str) -> xr.Dataset:
    return study.bench(drawing.settings(sha256=sha256), STORE, progress=True)


def found(one: study.Found) -> dict[str, Any]:
    """A difference as numbers: the interval's larger half as `half`, and its ends."""
    return {"mean": one.mean, "low": one.low, "high": one.high, "n": one.n, "verdict": one.verdict}


def bench(sha256: str, seed: int, draws: int) -> dict[str, Any]:
    """Mean scores, differences from the best null by group, and the verdicts on the hypotheses."""
    scores = _scores(sha256)
    natural = scores.sel(tokens=study.TOKENS[0])
    names = [one for one in scores["theory"].values.tolist() if one not in study.NULLS]
    rows, wins, loses = [], Counter(), Counter()
    for now in study.NOWS:
        for group, of in {"all": natural, **study.kinds_of_runs(scores, now)}.items():
            for name in names:
                for quantity in scores["quantity"].values.tolist():
                    one = study.against(of, name, quantity, now)
                    if not np.isfinite(one.mean):
                        continue
                    rows.append({"now": now, "group": group, "theory": name, "quantity": quantity, **found(one)})
                    wins[group, now] += one.verdict == "wins"
                    loses[group, now] += one.verdict == "loses"
    means = {
        quantity: {
            name: float(natural["brier"].sel(now="half", quantity=quantity, theory=name).mean())
            for name in scores["theory"].values.tolist()
            if natural["brier"].sel(now="half", quantity=quantity, theory=name).notnull().any()
        }
        for quantity in scores["quantity"].values.tolist()
    }
    claims = {one.name: study.of_claim(one, scores) for one in study.CLAIMS}
    return {
        "settings": scores.sizes["setting"],
        "on_texts": int((natural["text"] != "").sum()),
        "diverged": int(natural["diverged"].sum()),
        "inside": {now: int(natural["inside"].sel(now=now).sum()) for now in study.NOWS},
        "cells": [{"now": now, "group": group, "wins": wins[group, now], "loses": loses[group, now],
                   "cells": sum(row["now"] == now and row["group"] == group for row in rows)}
                  for now in study.NOWS for group in ("all", *study.kinds_of_runs(scores, now))],
        "means": [{"quantity": quantity, "theory": name, "brier": value}
                  for quantity, of in means.items() for name, value in of.items()],
        "rows": rows,
        "claims": {name: {**found(one), "supported": verdict} for name, (one, verdict) in claims.items()},
    }  # fmt: skip


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
