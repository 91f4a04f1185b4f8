"""Attention maps of trained layers beside Figures 4 to 9 of the bounded Dyck paper, and what is claimed of them.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Appendices B.1 and D.2. Our text of the paper has no captions: what a
figure shows is taken from the sentences that name it. The hypotheses below were written, with seeds and statistics,
before any of the runs was made. The extra ``deep`` is needed to train the transformers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr

from dynamics import DyckLanguage
from yzflow.papers.bounded_dyck import deep
from yzflow.papers.bounded_dyck import training as dyck
from yzflow.sweeps.runs import Task
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.dyck_embeddings.study import random_variation, variation
from yzflow_studies.precise_dyck import precise
from yzflow_studies.precise_dyck import study as interventions
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

SEEDS = tuple(range(4400, 4408))  # of layers trained on prefixes; used by no other study of this project
DEEP_SEEDS = tuple(range(4420, 4432))  # of transformers with several heads; as unused
LAYERS, HEADS = 3, 4  # of these
SCALE = 0.1  # of the start of the layers behind a minimal first layer
POSITIONS = ("none", "linear")
HYPOTHESES = (
    Hypothesis("H1", "a stack-like map is idle in a model where another one matters", 0.0, True),
    Hypothesis("H2", "a stack-like map matters", 0.0, True),
    Hypothesis("H3", "maps of standard layers without positions vary more between seeds than random rows", 0.0, True),
    Hypothesis("H4", "they vary more than those of a layer behind a minimal first layer with (19)", 0.0, True),
    Hypothesis("H5", "in units of random rows they vary more on a longer prefix", 0.0, True),
)


def longer_prefix(language: DyckLanguage) -> np.ndarray:
    """The word of `training.probe_prefix` and the beginning of a second one: 26 brackets at k = 2 and D = 4.

    It is no longer than the longest training sequences.
    """
    word = dyck.probe_prefix(language)
    return np.concatenate([word, word[: 5 * word.size // 8]])


def last_unmatched(prefix: Sequence[int]) -> list[tuple[int, int]]:
    """Where a stack-like map looks: the row of each query with an unmatched bracket, and the last one's position.

    Rows and positions count START, which is number 0.
    """
    stack: list[int] = []
    cells = []
    for position, bracket in enumerate(prefix, start=1):
        if bracket % 2 == 0:
            stack.append(position)
        else:
            stack.pop()
        if stack:
            cells.append((position, stack[-1]))
    return cells


def standard_run(configuration: Mapping[str, Any], seed: int) -> dict:
    """One standard 2-layer transformer trained on prefixes: maps of its last layer, accuracy."""
    from dynamics import deep as transformers

    language, positions = dyck.LANGUAGE, configuration["positions"]
    place = None if positions == "none" else positions
    runs = deep.trained(language, positions=place, kind="prefix", steps=configuration["steps"], seeds=[seed])
    model = transformers.model_at(runs.expand_dims("learning_rate"), seed=seed)
    found = {"accuracy": xr.DataArray(runs["accuracy"].sel(length="below 28").item())}
    for name, prefix in (("attention", dyck.probe_prefix(language)), ("longer", longer_prefix(language))):
        maps = np.asarray(model.attention(np.append(language.n_brackets, prefix)))[-1, 0]
        dims = ("row", "position") if name == "attention" else ("longer_row", "longer_position")
        found[name] = xr.DataArray(maps.astype(float), dims=dims)
    return found


def minimal_run(configuration: Mapping[str, Any], seed: int) -> dict:
    """One layer behind a minimal first layer, trained on prefixes: its map, accuracy."""
    runs = dyck.trained(
        embedding=[configuration["embedding"]], scale=[SCALE], steps=configuration["steps"], seeds=[seed], threads=1
    ).isel(embedding=0, scale=0, eta=0, contrast_weight=0, seed=0, drop=True)
    accuracy = runs["accuracy"].sel(length="below 28", query="all")
    return {"accuracy": xr.DataArray(accuracy.item()), "attention": runs["attention"]}


def heads_run(configuration: Mapping[str, Any], seed: int) -> dict:
    """One transformer of several heads, trained until short words are right: its maps, and what replacing one costs."""
    few: dict[str, Any] = {}
    if configuration["most_steps"] < precise.CHECK_EVERY:
        few = {"check_every": configuration["most_steps"], "n_train": 300, "n_test": 60}
    layers, most = configuration["n_layers"], configuration["most_steps"]
    runs = precise.trained(n_layers=layers, n_heads=HEADS, seeds=[seed], most_steps=most, n_long=5, **few)
    found = interventions.survey(runs, **({"n_test": 60, "draws": 1} if few else {}))
    kept = found.merge(runs[["steps", "reached"]]).isel(seed=0, drop=True)
    kept["attention"] = runs["attention"].sel(time="end", drop=True).isel(seed=0, drop=True).astype(float)
    return {str(name): kept[name] for name in kept.data_vars}


# Threads: a pool of processes would import jax anew, and takes scripts with a main part alone.
STANDARD = Task("dyck_gallery_standard", standard_run, keys=("positions", "steps"), threads=True)
MINIMAL = Task("dyck_gallery_minimal", minimal_run, keys=("embedding", "steps"), threads=True)
SEVERAL = Task("dyck_gallery_heads", heads_run, keys=("n_layers", "most_steps"), threads=True)


def swept(task: Task, grid: dict, seeds: Sequence[int], store: str | os.PathLike | Store | None, progress: bool):
    """Results of a task, without the keys that have one value; without a store nothing is kept."""
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        found = sweep(task, grid, store=kept, seeds=seeds, workers=1, progress=progress)
    return found.isel({name: 0 for name, values in grid.items() if len(values) == 1}, drop=True)


def standard(
    *,
    positions: Sequence[str] = POSITIONS,
    seeds: Sequence[int] = SEEDS,
    steps: int = deep.STEPS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`standard_run` over (positions, seed); what ``store`` holds is not run again."""
    found = swept(STANDARD, {"positions": list(positions), "steps": [steps]}, seeds, store, progress)
    return found if "positions" in found.dims else found.expand_dims(positions=list(positions))


def minimal(
    *,
    embedding: Sequence[str] = dyck.EMBEDDINGS,
    seeds: Sequence[int] = SEEDS,
    steps: int = dyck.STEPS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`minimal_run` over (embedding, seed); what ``store`` holds is not run again."""
    found = swept(MINIMAL, {"embedding": list(embedding), "steps": [steps]}, seeds, store, progress)
    return found if "embedding" in found.dims else found.expand_dims(embedding=list(embedding))


def heads(
    *,
    n_layers: int = LAYERS,
    seeds: Sequence[int] = DEEP_SEEDS,
    most_steps: int = precise.MOST_STEPS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`heads_run` over seed, as `precise_dyck.study.survey` returns it, with ``attention``."""
    return swept(SEVERAL, {"n_layers": [n_layers], "most_steps": [most_steps]}, seeds, store, progress)


def pseudo_values(maps: xr.DataArray) -> np.ndarray:
    """Jackknife pseudo-values of the attention variation between seeds in units of random rows, one for each seed.

    Their mean is that of `variation`, and their standard error the jackknife's. Four seeds at least.
    """
    n, unit = maps.sizes["seed"], random_variation(maps.shape[-1])
    whole = float(variation(maps)["mean"])
    without = [float(variation(maps.drop_isel(seed=one))["mean"]) for one in range(n)]
    return (n * whole - (n - 1) * np.array(without)) / unit


def relevant(found: xr.Dataset) -> xr.DataArray:
    """Stack-like maps that every way of replacing costs more than `precise_dyck.study.CONTROL`."""
    like = found["stack_share"] > interventions.STACK_LIKE
    return like & (found["lost"].min("way") > interventions.CONTROL)


def verdicts(standards: xr.Dataset, behind: xr.Dataset, found: xr.Dataset) -> dict[str, str]:
    """Verdict on each of `HYPOTHESES`: those that say "a map" by looking, the others by t-limits of pseudo-values.

    Parameters
    ----------
    standards, behind, found : xarray.Dataset
        From `standard`, `minimal` and `heads`.
    """
    maps = {name: standards[name].sel(positions="none", drop=True) for name in ("attention", "longer")}
    free = pseudo_values(maps["attention"])
    one_hot = pseudo_values(behind["attention"].sel(embedding="one-hot", drop=True))
    longer = pseudo_values(maps["longer"])
    seen = [bool(interventions.misleading(found).any()), bool(relevant(found).any())]
    values = (free - 1, free - one_hot, longer - free)
    tested = [verdict(some, one) for some, one in zip(values, HYPOTHESES[2:], strict=True)]
    words = [*("found" if one else "not found" for one in seen), *tested]
    return dict(zip((one.name for one in HYPOTHESES), words, strict=True))
