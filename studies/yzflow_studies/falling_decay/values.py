"""Corollary 2 by running it: the excess of the squared loss and balance violation as weight decay falls to zero."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.proofs import theorem2, weight_decay

from theory.values import Study, stored
from yzflow import intervals
from yzflow_studies.falling_decay import study
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

STORE = "falling_decay.store"  # in the repository's root, where git ignores it: what it holds is not run again
H2 = Hypothesis("H2", "the excess falls faster than the decay", 1.0, True)
H3 = Hypothesis("H3", "violation falls as a power of the decay", 0.0, True)
EVEN = 1e-3  # H4: the largest distance of two logits of a row
WITHIN = 0.01  # H5


def _exponent(runs: xr.Dataset, name: str, claim: Hypothesis) -> dict[str, Any]:
    """Mean exponent of some starts with its 95% interval in words, and the verdict; one start alone decides nothing."""
    found = study.exponents(runs, name)
    mean = float(found.mean())
    if found.size < 2:
        return {"mean": mean, "shown": f"{mean:.2f} (one start)", "verdict": "open"}
    shown = f"{mean:.2f} +- {float(intervals.of_mean(found)):.2f}"
    return {"mean": mean, "shown": shown, "verdict": verdict(found.values, claim)}


def ladders(cases: Sequence[Sequence[int]], seeds: Sequence[int], steps: int) -> dict[str, Any]:
    """A row for each language and length, with the verdicts on the hypotheses."""
    rows = []
    for depth, length in cases:
        language = DyckLanguage(2, depth)
        runs = study.ladder((depth, length), seeds, steps=steps, store=STORE)
        objective = runs["excess"] / runs["decay"] + runs["norm"]
        _, exact = study.exact_weights(language)
        good = study.near_best(runs, within=WITHIN)
        best, last = runs.isel(seed=np.flatnonzero(good)), runs.isel(decay=-1)
        even = last["logits"] < EVEN
        _, weight = study.least_weight(language, length)
        near_enough = theorem2.small_excess(weight, study.separation(language))
        rows.append(
            {
                "D": depth,
                "N": length,
                "n": runs.attrs["n"],
                "starts": runs.sizes["seed"],
                "near": int(good.sum()),
                "covered": int((objective <= exact).all("decay").sum()),
                "bounded": int((last["excess"] <= near_enough).sum()),
                "even": int(even.sum()),
                "even_near": int((even & good).sum()),
                "logits": float(last["logits"].max()),
                "norm": float(objective.isel(decay=-1).min()),
                "most": float(objective.isel(decay=-1).max()),
                "first_excess": float(best["excess"].isel(decay=0).mean()),
                "excess": float(best["excess"].isel(decay=-1).mean()),
                "most_excess": float(last["excess"].max()),
                "share": float((best["excess"] / best["decay"] / best["norm"]).isel(decay=-1).max()),
                "first_violation": float(best["violation"].isel(decay=0).mean()),
                "violation": float(best["violation"].isel(decay=-1).mean()),
                "most_violation": float(last["violation"].max()),
                "bound": float(best["bound"].isel(decay=-1).mean()),
                "H2": _exponent(best, "excess", H2),
                "H3": _exponent(best, "violation", H3),
                "H2_all": _exponent(runs, "excess", H2),
                "H3_all": _exponent(runs, "violation", H3),
                "residual": float(last["residual"].max()),
            }
        )
    starts = sum(row["starts"] for row in rows)
    count = {name: sum(row[name] for row in rows) for name in ("covered", "bounded", "even", "near")}
    return {
        "rows": rows,
        "starts": starts,
        **count,
        "H1": count["covered"] == starts,
        "H4": count["even"] == starts,
        "H5": count["near"] == starts,
        "decays": list(study.DECAYS),
    }


def exact(cases: Sequence[Sequence[int]]) -> dict[str, Any]:
    """R_0 of weights that are written down, and from which decay on Corollary 2 bounds S / P."""
    rows = []
    for depth, length in cases:
        language = DyckLanguage(2, depth)
        layer, size = study.exact_weights(language)
        n, weight = study.least_weight(language, length)
        tau = study.separation(language)
        bags = language.sample(200, max_length=300, rng=1)
        rows.append(
            {
                "D": depth,
                "N": length,
                "norm": size,
                "n": n,
                "weight": weight,
                "decay": float(weight_decay.small_decay(size, weight, tau)),
                "excess": float(theorem2.small_excess(weight, tau)),
                "right": bool(np.abs(layer.logits(bags) - bags.target).max() < 1e-9),
            }
        )
    return {"rows": rows}


def stuck() -> dict[str, Any]:
    """Starts that end more than 1% above the smallest objective, by case, with limits of their share, as stored."""
    rows = stored(Path(__file__).parent)["ladders"]["values"]["rows"]
    found = []
    for row in rows:
        low, high = intervals.of_share(row["starts"] - row["near"], row["starts"])
        found.append({"D": row["D"], "N": row["N"], "stuck": row["starts"] - row["near"], "starts": row["starts"]})
        found[-1] |= {"low": low, "high": high}
    return {"rows": found}


STUDIES = (
    Study(
        "ladders",
        ladders,
        {"cases": [list(case) for case in study.CASES], "seeds": list(study.SEEDS), "steps": study.STEPS},
        ("k = 2, all prefixes of up to N brackets, squared loss, decay on all weights but W_V",),
        quick=False,
        tolerance=0.05,
    ),
    Study("stuck", stuck),
    Study("exact", exact, {"cases": [list(case) for case in study.CASES]}, ("k = 2",)),
)
