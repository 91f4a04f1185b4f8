"""Accuracy, and the variation of attention between seeds, by embedding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import training

from theory.values import Study
from yzflow import intervals
from yzflow_studies.dyck_embeddings import study

NAMES = dict(zip(training.ARCHITECTURES, ("Z free", "(19)", "(20)", "(21)"), strict=True))


def mean(values: xr.DataArray) -> dict[str, float]:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(intervals.standard_error(values))}


def table(embeddings: Sequence[str], scales: Sequence[float], seeds: int, data_seed: int = 0) -> dict[str, Any]:
    """Accuracy, and attention before and after training, by embedding and initial scale of Z."""
    runs = training.trained(embedding=embeddings, scale=scales, seeds=seeds, data_seed=data_seed)
    runs = runs.isel(eta=0, contrast_weight=0, drop=True)
    language = training.LANGUAGE
    start, end = (study.variation(runs[name]) for name in ("start_attention", "attention"))
    stack = study.stack_share(runs["attention"], language).mean("seed")
    rows, change = [], {}
    for embedding in embeddings:
        for scale in scales:
            at = {"embedding": embedding, "scale": scale}
            rows.append(
                {
                    "name": NAMES[embedding],
                    "scale": scale,
                    "loss": float(runs["loss"].sel(at).mean()),
                    "short": mean(runs["accuracy"].sel({**at, "length": "below 28", "query": "all"})),
                    "long": mean(runs["accuracy"].sel({**at, "length": "400-500", "query": "close"})),
                    "start": float(start["mean"].sel(at)),
                    "end": {"mean": float(end["mean"].sel(at)), "half": float(end["standard_error"].sel(at))},
                    "stack": float(stack.sel(at)),
                }
            )
        ends = end["mean"].sel(embedding=embedding)
        change[NAMES[embedding].strip("()").replace(" ", "_")] = float(ends[-1] / ends[0])
    vectors = [language.embedding(name)[:-1] for name in embeddings if name != training.FREE]
    uniform = xr.full_like(runs["attention"].isel(embedding=0, scale=0, seed=0, drop=True), 0.0)
    uniform = uniform + np.tril(np.ones(uniform.shape)) / np.arange(1, uniform.sizes["row"] + 1)[:, None]
    return {
        "rows": rows,
        "change": change,
        "ranks": [int(np.linalg.matrix_rank(one)) for one in vectors],
        "states": len(vectors[0]),
        "random": study.random_variation(runs.sizes["row"]),
        "uniform": float(study.stack_share(uniform, language)),
        "word": runs.sizes["row"] - 1,
    }


def longer(embeddings: Sequence[str], rates: Sequence[float], scale: float, steps: int, seeds: int) -> dict[str, Any]:
    """Accuracy at short lengths after more steps, at each rate."""
    runs = training.trained(embedding=embeddings, eta=rates, scale=[scale], steps=steps, seeds=seeds)
    short = runs["accuracy"].sel(length="below 28", query="all").isel(scale=0, contrast_weight=0)
    return {
        "accuracy": [[mean(short.sel(embedding=name, eta=rate)) for name in embeddings] for rate in rates],
    }


DATA = ("last positions of prefixes, exact targets", "one draw of training and test prefixes for all seeds")
STUDIES = (
    Study(
        "table",
        table,
        {"embeddings": list(training.ARCHITECTURES), "scales": list(study.SCALES), "seeds": 20},
        DATA,
        quick=False,
    ),
    Study(
        "longer",
        longer,
        {"embeddings": list(training.EMBEDDINGS), "rates": [0.01, 0.003], "scale": 1.0, "steps": 6000, "seeds": 5},
        DATA,
        quick=False,
    ),
)
