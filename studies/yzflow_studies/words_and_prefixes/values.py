"""Violation, the decoder at the mean prefix and errors at long prefixes, after training on words and on prefixes."""

import inspect
import math
import re
from pathlib import Path
from typing import Any

import xarray as xr
from scipy.stats import rankdata

from theory.values import Study
from yzflow.values.marks import bare
from yzflow_studies.ordinary_dyck import deep
from yzflow_studies.words_and_prefixes import study as words
from yzflow_studies.words_and_prefixes.ranks import bootstrap_limits, permutation_p, rank_correlation
from yzflow_studies.words_and_prefixes.words import BATCH, KINDS, N_CLOSING, STEPS, TARGETS

LEVEL = 0.05
NAMES = {"word": "words", "prefix": "prefixes", "all": "all positions", "last": "the last"}
NAMES |= {"drawn": "the drawn bracket", "exact": "its distribution"}
STORE = "dyck_words.store"  # in the repository's root, where git ignores it: what it holds is not run again
PAGE = Path(__file__).with_name("page.md")


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


def row(runs: xr.Dataset, kind: str, weight: float) -> dict[str, Any]:
    """A row for the seeds of one kind and weight; ``runs`` have weight 0, too."""
    at = {"kind": kind, "contrast_weight": weight}
    some = runs.sel(at, drop=True)
    violation, long, drift = words.imbalance(some), words.long_accuracy(some), words.from_drift(some)
    short = some["accuracy"].sel(length="below 28", query="close", drop=True)
    gain = mean(long - words.long_accuracy(runs.sel({**at, "contrast_weight": 0.0}, drop=True)))
    return {
        "kind": NAMES[kind],
        "weight": weight,
        "seeds": long.sizes["seed"],
        "short": float(short.mean()),
        "above": int((short > 0.99).sum()),
        "long": mean(long),
        "gain": gain,
        "against": "{mean:+.3f} +- {half:.3f}".format(**gain) if weight else "",
        "violation": mean(violation),
        "rank": ordered(violation, long),
        "drift": ordered(drift, long),
        "off": {"mean": float(abs(drift - long).mean()), "most": float(abs(drift - long).max())},
    }


def of_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ranks, drifts = [one["rank"] for one in rows], [one["drift"]["value"] for one in rows]
    return {
        "rows": rows,
        "cells": len(rows),
        "runs": sum(one["seeds"] for one in rows),
        "above": sum(one["above"] for one in rows),
        "decided": sum(rank["p"] < LEVEL for rank in ranks),
        "p": LEVEL,
        "best": max(one["long"]["mean"] for one in rows),
        "drift": {"least": min(drifts), "most": max(drifts)},
    }


def layers(first: int, last: int, weights: list[float], **settings: Any) -> dict[str, Any]:
    """Layers behind a minimal first layer: a row for each kind and weight, and what all weights together show."""
    runs, together = trained(first, last, weights, **settings), {}
    for kind in KINDS:
        one, other = (values.sel(kind=kind, drop=True) for values in (words.imbalance(runs), words.long_accuracy(runs)))
        together[kind] = {"rank": ordered(one, other), "within": ordered(within(one), within(other))}
    rows = [row(runs, kind, weight) for kind in KINDS for weight in weights]
    return {"seeds": last - first + 1, "together": together, **of_rows(rows)}


def standard(first: int, last: int, weights: list[float]) -> dict[str, Any]:
    """Standard transformers: a row for each kind and weight, and of how many the effect of a pair orders seeds."""
    runs = trained(first, last, weights, architecture="standard")
    found = of_rows([row(runs, kind, weight) for kind in KINDS for weight in weights])
    sided = [one["rank"]["low"] > 0 or one["rank"]["high"] < 0 for one in found["rows"]]
    gains = {
        kind: one["gain"]["mean"] - one["gain"]["half"] > 0
        for kind, one in zip(KINDS, found["rows"][1 :: len(weights)], strict=True)
    }
    return found | {"sided": any(sided), "helps": gains}


def without(first: int, last: int, more: int) -> dict[str, Any]:
    """Free Z without (22): the seeds from ``more`` on, which were fixed beforehand, and all from ``first`` on."""
    runs = trained(first, last, [0.0]).isel(contrast_weight=0, drop=True)
    found: dict[str, Any] = {"seeds": last - first + 1, "fixed": last - more + 1}
    for name, some in (("later", runs.sel(seed=slice(more, None))), ("all", runs)):
        violation, long, drift = words.imbalance(some), words.long_accuracy(some), words.from_drift(some)
        found[name] = {kind: ordered(violation.sel(kind=kind), long.sel(kind=kind)) for kind in KINDS}
        found[name]["off"] = float(abs(drift - long).max())
        found[name]["apart"] = apart(*(found[name][kind]["value"] for kind in KINDS), some.sizes["seed"])
    return found


def replicated(cells: list[list[int]]) -> dict[str, Any]:
    """Free Z without (22) on words drawn anew: a row for each data seed, and the mean rank over data seeds.

    A cell is a data seed, the first seed and the last one; the mean's interval is Student's t over data seeds.
    """
    rows = []
    for data_seed, first, last in cells:
        runs = trained(first, last, [0.0], kinds=["word"], data_seed=data_seed)
        runs = runs.isel(kind=0, contrast_weight=0, drop=True)
        violation, long, drift = words.imbalance(runs), words.long_accuracy(runs), words.from_drift(runs)
        rows.append(
            {
                "data_seed": data_seed,
                "seeds": runs.sizes["seed"],
                "long": mean(long),
                "violation": mean(violation),
                "rank": ordered(violation, long),
                "drift": ordered(drift, long),
            }
        )
    over_data = {name: xr.DataArray([row[name]["value"] for row in rows], dims="seed") for name in ("rank", "drift")}
    return {
        "rows": rows,
        "others": sum(row["data_seed"] > 0 for row in rows),
        "sided": sum(row["rank"]["p"] < LEVEL for row in rows),
        "replicated": {
            "what": "mean rank correlation of violation and long accuracy",
            "data_seeds": [row["data_seed"] for row in rows],
            "seeds": sum(row["seeds"] for row in rows),
            **mean(over_data["rank"]),
        },
        "drift": mean(over_data["drift"]) | {"least": min(row["drift"]["value"] for row in rows)},
    }


def apart(one: float, other: float, n: int) -> float:
    """By how many standard errors of Fisher's z two rank correlations of n seeds differ."""
    error = math.sqrt(sum((1 + rank**2 / 2) / (n - 3) for rank in (one, other)))
    return abs(math.atanh(one) - math.atanh(other)) / error


def targets(first: int, last: int) -> dict[str, Any]:
    """Embedding (19) without (22), by what is asked where."""
    rows = []
    cases = [(kind, "all", target) for kind in KINDS for target in TARGETS] + [("prefix", "last", "exact")]
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
    """The options that the standard transformers are trained with."""
    n = inspect.signature(deep.data).parameters["n"].default
    sizes = {"width": deep.WIDTH, "eta": deep.ETA, "sequences": n, "hidden": 4 * deep.WIDTH}
    return {**sizes, "steps": STEPS, "batch": BATCH, "closing": N_CLOSING}


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
    Study(
        "replicated",
        replicated,
        {"cells": [[data_seed, 60, 99] for data_seed in range(5)]},
        quick=False,
    ),
    Study("targets", targets, SEEDS, DATA, quick=False),
    Study("standard", standard, {**SEEDS, "weights": [0.0, 1.0]}, DATA, quick=False),
    Study("defaults", defaults),
    Study("intervals", intervals),
)
