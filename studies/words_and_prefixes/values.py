"""What violation and the decoder at the mean prefix say of long prefixes, after training on words and on prefixes."""

import inspect
import math
import re
from pathlib import Path
from typing import Any

import xarray as xr
from scipy.stats import rankdata

from theory.values import Study
from yzflow.papers.bounded_dyck import deep, words
from yzflow.papers.bounded_dyck.ranks import bootstrap_limits, permutation_p, rank_correlation
from yzflow.values.marks import bare

LEVEL = 0.05
NAMES = {"word": "words", "prefix": "prefixes", "all": "all positions", "last": "the last"}
NAMES |= {"drawn": "the drawn bracket", "exact": "its distribution"}
STORE = "dyck_words.store"  # in the repository's root, where git ignores it: what it holds is not run again
PAGE = Path(__file__).parents[2] / "docs" / "findings" / "28_words_and_prefixes.md"


def trained(first: int, last: int, weights: list[float], **settings: Any) -> xr.Dataset:
    """The runs of these seeds."""
    return words.trained(contrast_weight=weights, seeds=range(first, last + 1), store=STORE, **settings)


def mean(values: xr.DataArray) -> dict[str, float]:
    return dict(zip(("mean", "half"), words.interval(values), strict=True))


def ordered(one: xr.DataArray, other: xr.DataArray) -> dict[str, float]:
    """Rank correlation with limits by bootstrap over seeds and, of one weight, p by permutation."""
    low, high = bootstrap_limits(one, other)
    found = {"value": rank_correlation(one, other).value, "low": low, "high": high}
    return found | ({"p": permutation_p(one, other)} if one.ndim == 1 else {})


def within(values: xr.DataArray) -> xr.DataArray:
    """Ranks among the seeds of each weight, so that what lies between weights is left out."""
    return values.copy(data=rankdata(values, axis=values.get_axis_num("seed")))


def table(runs: xr.Dataset) -> dict[str, Any]:
    """A row for each kind and weight, and for each kind what all weights together show."""
    violation, long, drift = words.imbalance(runs), words.long_accuracy(runs), words.from_drift(runs)
    short = runs["accuracy"].sel(length="below 28", query="close", drop=True)
    rows, together = [], {}
    for cell in words.summary(runs):
        at = {"kind": cell.kind, "contrast_weight": cell.weight}
        rows.append(
            {
                "kind": NAMES[cell.kind],
                "weight": cell.weight,
                "short": cell.short[0],
                "above": int((short.sel(at) > 0.99).sum()),
                "long": mean(long.sel(at)),
                "gain": dict(zip(("mean", "half"), cell.gain, strict=True)),
                "against": "{:+.3f} +- {:.3f}".format(*cell.gain) if cell.weight else "",
                "violation": mean(violation.sel(at)),
                "rank": ordered(violation.sel(at, drop=True), long.sel(at, drop=True)),
                "drift": ordered(drift.sel(at, drop=True), long.sel(at, drop=True)),
                "off": dict(zip(("mean", "most"), cell.drift_error, strict=True)),
            }
        )
    for kind in map(str, runs["kind"].values):
        one, other = violation.sel(kind=kind, drop=True), long.sel(kind=kind, drop=True)
        together[kind] = {
            "rank": ordered(one, other),
            "within": ordered(within(one), within(other)),
            "drift": ordered(drift.sel(kind=kind, drop=True), other),
        }
    ranks, drifts = [row["rank"] for row in rows], [row["drift"]["value"] for row in rows]
    return {
        "rows": rows,
        "together": together,
        "runs": long.size,
        "above": sum(row["above"] for row in rows),
        "cells": len(ranks),
        "decided": sum(rank["p"] < LEVEL for rank in ranks),
        "p": LEVEL,
        "best": max(row["long"]["mean"] for row in rows),
        "drift": {"least": min(drifts), "most": max(drifts), "off": max(row["off"]["most"] for row in rows)},
    }


def layers(first: int, last: int, weights: list[float], **settings: Any) -> dict[str, Any]:
    """`table` of layers behind a minimal first layer, or with the architecture "standard" of transformers."""
    return {"seeds": last - first + 1, **table(trained(first, last, weights, **settings))}


def without(first: int, last: int, more: int) -> dict[str, Any]:
    """Free Z without (22): the seeds from ``more`` on, which were fixed beforehand, and all from ``first`` on."""
    runs = trained(first, last, [0.0]).isel(contrast_weight=0, drop=True)
    found: dict[str, Any] = {"seeds": last - first + 1, "fixed": last - more + 1}
    for name, some in (("later", runs.sel(seed=slice(more, None))), ("all", runs)):
        violation, long, drift = words.imbalance(some), words.long_accuracy(some), words.from_drift(some)
        found[name] = {kind: ordered(violation.sel(kind=kind), long.sel(kind=kind)) for kind in words.KINDS}
        found[name]["off"] = float(abs(drift - long).max())
        found[name]["apart"] = apart(*(found[name][kind]["value"] for kind in words.KINDS), some.sizes["seed"])
    return found


def apart(one: float, other: float, n: int) -> float:
    """By how many standard errors of Fisher's z two rank correlations of n seeds differ."""
    error = math.sqrt(sum((1 + rank**2 / 2) / (n - 3) for rank in (one, other)))
    return abs(math.atanh(one) - math.atanh(other)) / error


def targets(first: int, last: int) -> dict[str, Any]:
    """Embedding (19) without (22), by what is asked where."""
    rows = []
    cases = [(kind, "all", target) for kind in words.KINDS for target in words.TARGETS] + [("prefix", "last", "exact")]
    for kind, positions, target in cases:
        options = {"embedding": "one-hot", "kinds": [kind], "positions": positions, "targets": target}
        runs = trained(first, last, [0.0], **options).isel(kind=0, contrast_weight=0, drop=True)
        violation, long = words.imbalance(runs), words.long_accuracy(runs)
        rows.append(
            {
                "kind": NAMES[kind],
                "at": NAMES[positions],
                "for": NAMES[target],
                "long": mean(long),
                "violation": mean(violation),
                "rank": ordered(violation, long),
            }
        )
    exact, drawn = ([row["long"]["mean"] for row in rows if row["for"] == NAMES[name]] for name in ("exact", "drawn"))
    return {"rows": rows, "lost": min(exact) - max(drawn)}


def defaults() -> dict[str, Any]:
    """What the standard transformers are trained with."""
    n = inspect.signature(deep.data).parameters["n"].default
    sizes = {"width": deep.WIDTH, "eta": deep.ETA, "sequences": n, "hidden": 4 * deep.WIDTH}
    return {**sizes, "steps": words.STEPS, "batch": words.BATCH, "closing": words.N_CLOSING}


def intervals() -> dict[str, int]:
    """How many intervals stand on the page, and how many of so many miss on average at 95%."""
    text = bare(PAGE.read_text(encoding="utf-8"))
    n = len(re.findall(r"\d \+- ?\n?\d", text)) + len(re.findall(r"\[[-+]\d", text))
    return {"n": n, "miss": round(n / 20)}


SEEDS = {"first": 5, "last": 19}
SMALL = {"scale": 0.1}
DATA = ("one draw of training and test sequences for all seeds",)
STUDIES = (
    Study(
        "embedded", layers, {**SEEDS, **SMALL, "weights": [0.0, 1.0, 10.0], "embedding": "one-hot"}, DATA, quick=False
    ),
    Study("free", layers, {**SEEDS, **SMALL, "weights": [0.0, 10.0]}, DATA, quick=False),
    Study("without", without, {"first": 5, "last": 59, "more": 20}, DATA, quick=False),
    Study("targets", targets, SEEDS, DATA, quick=False),
    Study(
        "standard",
        layers,
        {"first": 0, "last": 19, "weights": [0.0, 1.0], "architecture": "standard"},
        DATA,
        quick=False,
    ),
    Study("defaults", defaults),
    Study("intervals", intervals),
)
