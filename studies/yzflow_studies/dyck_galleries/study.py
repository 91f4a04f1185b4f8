"""Attention maps of trained layers beside Figures 4 to 9 of the bounded Dyck paper, and what is claimed of them.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Appendices B.1 and D.2. Our text of the paper has no captions: what a
figure shows is taken from the sentences that name it. The hypotheses below were written, with seeds and statistics,
before any of the runs was made. yzflow-deep is needed to train the transformers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks, distributions
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, VERMILION, canvas, styled
from yzflow.sweeps.runs import Task
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.dyck_embeddings.study import random_variation, variation
from yzflow_studies.maps import causal_map
from yzflow_studies.ordinary_dyck import deep
from yzflow_studies.precise_dyck import precise
from yzflow_studies.precise_dyck import study as interventions
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

PAPER = "Bounded Dyck"
SEEDS = tuple(range(4400, 4408))  # of layers trained on prefixes; used by no other study of this project
DEEP_SEEDS = tuple(range(4420, 4432))  # of transformers with several heads; as unused
LAYERS, HEADS = 3, 4  # of these
SCALE = 0.1  # of the start of the layers behind a minimal first layer
WORDS = {"none": "no positions", "linear": "linear positions"}
POSITIONS = tuple(WORDS)
EMBEDDINGS = {"one-hot": "(19)", "type and depth": "(20)", "type and angle": "(21)"}
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
    transformers = distributions.bring("yzflow_deep")

    language, positions = dyck.LANGUAGE, configuration["positions"]
    place = None if positions == "none" else positions
    drawn: dict[str, Any] = {"data_seed": configuration.get("data_seed", 0), "kind": "prefix"}
    runs = deep.trained(language, positions=place, steps=configuration["steps"], seeds=[seed], **drawn)
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
        embedding=[configuration["embedding"]],
        scale=[SCALE],
        steps=configuration["steps"],
        seeds=[seed],
        threads=1,
        data_seed=configuration.get("data_seed", 0),
    ).isel(embedding=0, scale=0, eta=0, contrast_weight=0, seed=0, drop=True)
    accuracy = runs["accuracy"].sel(length="below 28", query="all")
    return {"accuracy": xr.DataArray(accuracy.item()), "attention": runs["attention"]}


def heads_run(configuration: Mapping[str, Any], seed: int) -> dict:
    """One transformer of several heads, trained until short words are right: its maps, and what replacing one costs."""
    few: dict[str, Any] = {}
    quick = configuration["most_steps"] < precise.CHECK_EVERY
    if quick:
        few = {"check_every": configuration["most_steps"], "n_train": 300, "n_test": 60}
    few["data_seed"] = configuration.get("data_seed", 0)
    layers, most = configuration["n_layers"], configuration["most_steps"]
    runs = precise.trained(n_layers=layers, n_heads=HEADS, seeds=[seed], most_steps=most, n_long=5, **few)
    found = interventions.survey(runs, **({"n_test": 60, "draws": 1} if quick else {}))
    kept = found.merge(runs[["steps", "reached"]]).isel(seed=0, drop=True)
    kept["attention"] = runs["attention"].sel(time="end", drop=True).isel(seed=0, drop=True).astype(float)
    return {str(name): kept[name] for name in kept.data_vars}


# Threads: a pool of processes would import jax anew, and takes scripts with a main part alone.
STANDARD = Task("dyck_gallery_standard", standard_run, keys=("positions", "steps", "data_seed"), threads=True)
MINIMAL = Task("dyck_gallery_minimal", minimal_run, keys=("embedding", "steps", "data_seed"), threads=True)
SEVERAL = Task("dyck_gallery_heads", heads_run, keys=("n_layers", "most_steps", "data_seed"), threads=True)


def of_data(data_seed: int) -> dict[str, list[int]]:
    """The data seed as a key of a grid; the first one is not named, as in `tasks.first_data_unnamed`."""
    return {"data_seed": [data_seed]} if checks.integer("data_seed", data_seed, minimum=0) else {}


def swept(task: Task, grid: dict, seeds: Sequence[int], store: str | os.PathLike | Store | None, progress: bool):
    """Results of a task, without the keys that have one value; without a store nothing is kept.

    Raises
    ------
    RuntimeError
        If a run failed.
    """
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        found = sweep(task, grid, store=kept, seeds=seeds, workers=1, progress=progress)
    if found["failed"].any():  # as all do without yzflow-deep
        raise RuntimeError(f"a run of {task.name} failed: {found['error'].values[found['failed'].values][0]}")
    found = found.drop_vars(["failed", "error"])
    return found.isel({name: 0 for name, values in grid.items() if len(values) == 1}, drop=True)


def standard(
    *,
    positions: Sequence[str] = POSITIONS,
    seeds: Sequence[int] = SEEDS,
    steps: int = deep.STEPS,
    data_seed: int = 0,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`standard_run` over (positions, seed); what ``store`` holds is not run again."""
    found = swept(
        STANDARD, {"positions": list(positions), "steps": [steps], **of_data(data_seed)}, seeds, store, progress
    )
    return found if "positions" in found.dims else found.expand_dims(positions=list(positions))


def minimal(
    *,
    embedding: Sequence[str] = dyck.EMBEDDINGS,
    seeds: Sequence[int] = SEEDS,
    steps: int = dyck.STEPS,
    data_seed: int = 0,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`minimal_run` over (embedding, seed); what ``store`` holds is not run again."""
    found = swept(
        MINIMAL, {"embedding": list(embedding), "steps": [steps], **of_data(data_seed)}, seeds, store, progress
    )
    return found if "embedding" in found.dims else found.expand_dims(embedding=list(embedding))


def heads(
    *,
    n_layers: int = LAYERS,
    seeds: Sequence[int] = DEEP_SEEDS,
    most_steps: int = precise.MOST_STEPS,
    data_seed: int = 0,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`heads_run` over seed, as `precise_dyck.study.survey` returns it, with ``attention``."""
    return swept(
        SEVERAL, {"n_layers": [n_layers], "most_steps": [most_steps], **of_data(data_seed)}, seeds, store, progress
    )


def on_longer(runs: xr.Dataset) -> xr.DataArray:
    """The maps of `standard` on `longer_prefix`, with the dimensions of those on the other one."""
    return runs["longer"].rename(longer_row="row", longer_position="position")


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
    free_maps = standards.sel(positions="none", drop=True)
    free = pseudo_values(free_maps["attention"])
    one_hot = pseudo_values(behind["attention"].sel(embedding="one-hot", drop=True))
    longer = pseudo_values(on_longer(free_maps))
    seen = [bool(interventions.misleading(found).any()), bool(relevant(found).any())]
    values = (free - 1, free - one_hot, longer - free)
    tested = [verdict(some, one) for some, one in zip(values, HYPOTHESES[2:], strict=True)]
    words = [*("found" if one else "not found" for one in seen), *tested]
    return dict(zip((one.name for one in HYPOTHESES), words, strict=True))


# The figures


_COLUMNS = 4


def _labels(prefix: Sequence[int]) -> list[str]:
    return ["S", *(dyck.LANGUAGE.brackets[bracket] for bracket in prefix)]


def _gallery(
    rows: Sequence[Sequence[tuple[str, np.ndarray, str]]], prefix: Sequence[int], heading: str, *, small: bool = False
) -> Figure:
    """Maps in rows, each with its title and the colour of it; boxes mark where a stack-like map looks."""
    columns = max(map(len, rows))
    figure = canvas(figsize=(2.75 * columns + 0.9, 2.95 * len(rows) + 0.9))
    panels = figure.subplots(len(rows), columns, squeeze=False)
    for row, shown in zip(panels, rows, strict=True):
        for axes, (title, attention, colour) in zip(row, shown, strict=False):
            image = causal_map(axes, attention, labels=_labels(prefix))
            axes.tick_params(labelsize=5 if small else 7)
            axes.set_title(title, fontsize=9, color=colour)
            axes.set_xlabel("position")
            for query, place in last_unmatched(prefix):
                corner = (place - 0.5, query - 0.5)
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=VERMILION, linewidth=0.8))
        for axes in row[len(shown) :]:
            axes.set_axis_off()
        row[0].set_ylabel("query")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.7)
    figure.suptitle(heading)
    return figure


def _kind(found: xr.Dataset) -> tuple[str, str]:
    """Word on one map, and the colour of its title: stack-like and idle, stack-like and not, or neither."""
    if not float(found["stack_share"]) > interventions.STACK_LIKE:
        return "", BLACK
    idle = float(found["lost"].max("way")) < interventions.IRRELEVANT
    return (", idle", VERMILION) if idle else (", used", BLUE)


def _cost(found: xr.Dataset) -> str:
    word, _ = _kind(found)
    return f"stack {float(found['stack_share']):.2f}, costs {float(found['lost'].max('way')):.3f}{word}"


def _example(found: xr.Dataset) -> xr.Dataset:
    """The model with the most stack-like map among those that are idle."""
    idle = found["lost"].max("way") < interventions.IRRELEVANT
    most = found["stack_share"].where(idle, -1.0).max(("layer", "head"))
    return found.isel(seed=int(most.argmax("seed")))


@styled
def dyck_misleading_maps(found: xr.Dataset) -> Figure:
    """All attention maps of one trained transformer of several heads, and what replacing each costs (Figs. 4 and 5).

    The paper shows one model all of whose interpretable maps mislead. Here the model is drawn that has the most
    stack-like map among the idle ones. Boxes mark the last unmatched bracket of each query, where a stack-like map
    looks. "Stack" is the share of attention on open brackets of a closing query's own depth; the cost is the accuracy
    lost if the map is made uniform, drawn at random or removed, whichever loses most. S is START.

    Parameters
    ----------
    found : xarray.Dataset
        From `heads`.
    """
    one = _example(found)
    rows = []
    for layer in one["layer"].values:
        cells = [one.sel(layer=layer).isel(head=head) for head in range(one.sizes["head"])]
        rows.append(
            [
                (f"layer {layer}, head {head}\n{_cost(cell)}", cell["attention"].values, _kind(cell)[1])
                for head, cell in enumerate(cells, start=1)
            ]
        )
    heading = f"One trained transformer (seed {int(one['seed'])}), accuracy {float(one['accuracy']):.3f}"
    return _gallery(rows, dyck.probe_prefix(dyck.LANGUAGE), heading)


@styled
def dyck_mixed_maps(found: xr.Dataset) -> Figure:
    """The eight most stack-like attention maps of all trained transformers, and what replacing each costs (Fig. 6).

    The paper shows models some of whose interpretable maps mislead, and some not. Titles are orange where a stack-like
    map is idle and blue where it is used; boxes and words are those of `dyck_misleading_maps`.

    Parameters
    ----------
    found : xarray.Dataset
        From `heads`.
    """
    places = found.stack(map=("seed", "layer", "head"))
    order = np.argsort(-places["stack_share"].values)[: 2 * _COLUMNS]
    cells = [places.isel(map=int(one)) for one in order]
    shown = []
    for cell in cells:
        seed, layer, head = cell["map"].item()
        title = f"seed {seed}, layer {layer}, head {int(head) + 1}\n{_cost(cell)}"
        shown.append((title, cell["attention"].values, _kind(cell)[1]))
    rows = [shown[start : start + _COLUMNS] for start in range(0, len(shown), _COLUMNS)]
    heading = f"The most stack-like of {places.sizes['map']} maps of {found.sizes['seed']} transformers"
    return _gallery(rows, dyck.probe_prefix(dyck.LANGUAGE), heading)


def _maps_claims(found: xr.Dataset) -> str:
    """How many maps are stack-like, idle and used."""
    like = found["stack_share"] > interventions.STACK_LIKE
    idle = found["lost"].max("way") < interventions.IRRELEVANT
    return (
        f"Of {found['stack_share'].size} maps {int(like.sum())} are stack-like, which is a share above "
        f"{interventions.STACK_LIKE:g}; of these {int((like & idle).sum())} are idle, at a cost below "
        f"{interventions.IRRELEVANT:g}, and {int(relevant(found).sum())} matter, at a cost above "
        f"{interventions.CONTROL:g} under every way. Of all maps {int(idle.sum())} are idle."
    )


def _by_position(runs: xr.Dataset, name: str) -> list[list[tuple[str, np.ndarray, str]]]:
    seeds = runs["seed"].values[:_COLUMNS]
    return [
        [
            (
                f"{WORDS[str(kind)]}, seed {seed}\naccuracy {float(cell['accuracy']):.3f}",
                cell[name].values,
                BLACK,
            )
            for seed, cell in ((seed, runs.sel(positions=kind, seed=seed)) for seed in seeds)
        ]
        for kind in runs["positions"].values
    ]


@styled
def dyck_prefix_maps(runs: xr.Dataset) -> Figure:
    """Attention of standard 2-layer transformers that were trained on prefixes, by positions and seed (Fig. 7).

    The paper finds maps that look at the query's own place and maps that look at the first one, far from each other.
    The second layer is drawn; boxes mark the last unmatched bracket of each query, where a stack-like map looks. S is
    START. Accuracy is that of the closing brackets of short prefixes.

    Parameters
    ----------
    runs : xarray.Dataset
        From `standard`; the first four seeds are drawn.
    """
    return _gallery(
        _by_position(runs, "attention"), dyck.probe_prefix(dyck.LANGUAGE), "Second layer, trained on prefixes"
    )


@styled
def dyck_longer_maps(runs: xr.Dataset) -> Figure:
    """Attention of the same standard transformers on a longer prefix (Fig. 8).

    The paper says that maps differ even more on longer sequences. This prefix is as long as the longest that they were
    trained on; seeds, boxes and words are those of `dyck_prefix_maps`.

    Parameters
    ----------
    runs : xarray.Dataset
        From `standard`; the first four seeds are drawn.
    """
    prefix = longer_prefix(dyck.LANGUAGE)
    return _gallery(_by_position(runs, "longer"), prefix, f"The same on a prefix of {prefix.size} brackets", small=True)


def _units(maps: xr.DataArray) -> str:
    found = variation(maps)
    unit = random_variation(maps.shape[-1])
    return f"{float(found['mean']) / unit:.1f} +- {float(found['half']) / unit:.1f}"


def places(maps: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean attention of the queries behind START on the first position and on their own, a number a seed."""
    found = maps.transpose("seed", ...).values
    return found[:, 1:, 0].mean(axis=1), np.diagonal(found, axis1=1, axis2=2)[:, 1:].mean(axis=1)


def _standard_claims(runs: xr.Dataset) -> str:
    """Variation between seeds on both prefixes, and where the maps look."""
    said = []
    for kind in runs["positions"].values:
        cell = runs.sel(positions=kind)
        first, own = places(cell["attention"])
        said.append(
            f"With {WORDS[str(kind)]} maps vary {_units(cell['attention'])} times as much between seeds as random "
            f"rows, on the longer prefix {_units(on_longer(cell))} times (95%, jackknife and Student's t). On the "
            f"first position they have {first.min():.2f} to {first.max():.2f} of attention, on the query's own "
            f"{own.min():.2f} to {own.max():.2f}."
        )
    return " ".join(said)


@styled
def dyck_minimal_maps(runs: xr.Dataset) -> Figure:
    """Attention of layers behind a minimal first layer that were trained on prefixes, by embedding and run (Fig. 9).

    The paper shows two runs each of several embeddings, which differ. Columns are the embeddings (19), (20) and (21);
    boxes and words are those of `dyck_prefix_maps`. The layer is Y/Z/V with a linear decoder.

    Parameters
    ----------
    runs : xarray.Dataset
        From `minimal`; the first two seeds are drawn.
    """
    rows = []
    for number, seed in enumerate(runs["seed"].values[:2], start=1):
        cells = [(kind, runs.sel(embedding=kind, seed=seed)) for kind in runs["embedding"].values]
        rows.append(
            [
                (
                    f"{EMBEDDINGS[str(kind)]}, run {number}\naccuracy {float(cell['accuracy']):.3f}",
                    cell["attention"].transpose("row", "position").values,
                    BLACK,
                )
                for kind, cell in cells
            ]
        )
    return _gallery(rows, dyck.probe_prefix(dyck.LANGUAGE), "Behind a minimal first layer")


def _minimal_claims(runs: xr.Dataset) -> str:
    """Variation between seeds by embedding."""
    parts = [
        f"{_units(runs['attention'].sel(embedding=kind))} under {EMBEDDINGS[str(kind)]}"
        for kind in runs["embedding"].values
    ]
    return f"Over {runs.sizes['seed']} seeds maps vary, in units of random rows, {', '.join(parts)} (95%)."


def _heads(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"n_layers": 1, "seeds": DEEP_SEEDS[:2], "most_steps": 100} if effort.quick else {}
    return heads(store=effort.store, progress=effort.progress, **few)


def _standard(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"positions": POSITIONS[:1], "seeds": SEEDS[:3], "steps": 50} if effort.quick else {}
    return standard(store=effort.store, progress=effort.progress, **few)


def _minimal(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"seeds": SEEDS[:3], "steps": 300} if effort.quick else {}
    return minimal(store=effort.store, progress=effort.progress, **few)


FIGURES = (
    Entry("dyck_misleading_maps", PAPER, dyck_misleading_maps, _heads, (4, 5), _maps_claims),
    Entry("dyck_mixed_maps", PAPER, dyck_mixed_maps, _heads, 6, _maps_claims),
    Entry("dyck_prefix_maps", PAPER, dyck_prefix_maps, _standard, 7, _standard_claims),
    Entry("dyck_longer_maps", PAPER, dyck_longer_maps, _standard, 8, _standard_claims),
    Entry("dyck_minimal_maps", PAPER, dyck_minimal_maps, _minimal, 9, _minimal_claims),
)

# <!-- numbers
# typed: 5 (number of a statement, figure, section or finding)
# typed: 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 95% (level of intervals and quantiles)
# -->
