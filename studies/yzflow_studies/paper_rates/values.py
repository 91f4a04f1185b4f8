"""Figs. 7 and 10 of Scan and Snap nearer to their size: what trains at rates 1 to 5, and what attention does then."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow import intervals
from yzflow_studies.ordinary_transformers.study import read
from yzflow_studies.paper_rates import study
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

STORE = "paper_rates.store"  # in the repository's root, where git ignores it: runs go on from there
H3 = Hypothesis("H3", "entropy at the end falls as the rate grows", 0.0, False)
H4 = Hypothesis("H4", "maps move at the end by less than a tenth of their fastest", study.FROZEN, False)
H5 = Hypothesis("H5", "entropy ends above its lowest by more than 5% of the uniform one", study.REBOUND, True)
H6 = Hypothesis("H6", "at equal rate x steps entropy is lower at the largest rate than at the smallest", 0.0, False)


def _spread(values: xr.DataArray) -> dict[str, float]:
    return {"mean": float(values.mean()), "half": float(intervals.of_mean(values))}


def _decided(values: xr.DataArray, claim: Hypothesis) -> dict[str, Any]:
    """Mean over seeds with its 95% interval, and the verdict; a run that diverged leaves it open."""
    known = not bool(np.isnan(values).any())
    return _spread(values) | {"verdict": verdict(values.values, claim) if known else "open"}


def cut(
    text: str, vocabulary: int, layers: int, rates: Sequence[float], seeds: Sequence[int], steps: int, clip: float
) -> dict[str, Any]:
    """Attention of the first layer at the paper's rates when the gradient's norm is cut."""
    tokens = read(text, vocabulary)
    runs = study.runs_of(tokens, layers, rates=rates, seeds=seeds, steps=steps, clip=clip, store=STORE)
    unigram = study.unigram_loss(tokens)
    good = study.trains(runs, unigram)
    first = {"layer": 0}
    end, moved = study.at_the_end(runs).isel(first), study.last_movement(runs).isel(first)
    back, fall = study.rebounds(runs).isel(first), study.drops(runs).isel(first)
    path = study.same_path(runs).isel(first).sel(learning_rate=rates[-1])
    start = study.entropy(runs).isel(first).isel(time=0)
    loss = runs["loss"].isel(time=slice(-study.END, None)).mean("time")
    return {
        "tokens": int(tokens.size),
        "seen": steps * study.BATCH * study.LENGTH,
        "uniform": float(runs["uniform_entropy"]),
        "start": float(start.mean()),
        "unigram": unigram,
        "runs": int(good.size),
        "diverged": int((runs["diverged"] >= 0).sum()),
        "trained": int(good.sum()),
        "rows": [
            {
                "rate": rate,
                "entropy": _spread(end.sel(learning_rate=rate)),
                "drop": _spread(fall.sel(learning_rate=rate)),
                "rebound": _spread(back.sel(learning_rate=rate)),
                "rebounds": int((back.sel(learning_rate=rate) > study.REBOUND).sum()),
                "movement": _spread(moved.sel(learning_rate=rate)),
                "loss": _spread(loss.sel(learning_rate=rate)),
            }
            for rate in rates
        ],
        "deeper": [
            {"layer": layer + 1, "slope": _spread(study.slopes(runs).isel(layer=layer)),
             "end": float(study.at_the_end(runs).isel(layer=layer).mean())}
            for layer in range(layers)
        ],
        "rebounds": int((back > study.REBOUND).sum()),
        "H2": bool(good.all()),
        "H3": _decided(study.slopes(runs).isel(first), H3),
        "H4": _decided(moved.mean("learning_rate", skipna=False), H4),
        "H5": _decided(back.mean("learning_rate", skipna=False), H5),
        "H6": _decided(path, H6),
    }  # fmt: skip


def uncut(
    text: str, vocabulary: int, rates: Sequence[float], seeds: Sequence[int], steps: int, most: Sequence[float]
) -> dict[str, Any]:
    """At which rates runs without a cut diverge, and how far larger bounds on the norm go: a row for each bound."""
    tokens = read(text, vocabulary)
    rows = []
    for clip in (None, *most):
        runs = study.runs_of(tokens, 1, rates=rates, seeds=seeds, steps=steps, clip=clip, records=10)
        at = runs["diverged"].transpose("learning_rate", "seed")
        rows.append(
            {
                "clip": "none" if clip is None else f"{clip:g}",
                "diverged": [int((one >= 0).sum()) for one in at.values],
                "latest": int(at.max()),
            }
        )
    large = [count for rate, count in zip(rates, rows[0]["diverged"], strict=True) if rate >= 2]
    return {"rows": rows, "H1": all(count == len(seeds) for count in large)}


SGD = (
    "plain SGD, a transformer of width 32 without positions, LayerNorm before each part, tied embedding, "
    "20 windows of 35 tokens a step",
)
SOTU: dict[str, Any] = {"text": "sotu", "vocabulary": study.VOCAB_SIZE}
SETTING = {"rates": list(study.RATES), "seeds": list(study.SEEDS)}
STUDIES = (
    *(
        Study(
            f"layers{layers}",
            cut,
            SOTU | SETTING | {"layers": layers, "steps": study.STEPS, "clip": study.CLIP},
            SGD,
            quick=False,
            tolerance=0.05,
        )
        for layers in study.LAYERS
    ),
    Study(
        "uncut",
        uncut,
        SOTU | {"rates": [0.5, *study.RATES], "seeds": list(study.SEEDS), "steps": 200, "most": [1.0, 4.0]},
        SGD,
        quick=False,
        tolerance=0.05,
    ),
)
