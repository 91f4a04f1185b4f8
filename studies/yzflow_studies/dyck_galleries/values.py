"""Galleries of attention maps beside Figures 4 to 9: which maps are stack-like, idle or used, and how maps vary."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import training as dyck

from theory.values import Study, stored
from yzflow import intervals
from yzflow_studies.dyck_embeddings.study import random_variation, variation
from yzflow_studies.dyck_galleries import study
from yzflow_studies.ordinary_dyck import deep
from yzflow_studies.precise_dyck import precise
from yzflow_studies.precise_dyck import study as interventions

STORE = "dyck_galleries.store"  # in the repository's root, where git ignores it: what it holds is not run again


def units(maps: xr.DataArray) -> dict[str, float]:
    """Attention variation between seeds in units of random rows, with half of its 95% interval."""
    found, unit = variation(maps), random_variation(maps.shape[-1])
    return {"mean": float(found["mean"]) / unit, "half": float(found["half"]) / unit}


def ends(values: xr.DataArray | np.ndarray) -> list[float]:
    """The smallest and the largest."""
    return [float(np.min(values)), float(np.max(values))]


def heads(n_layers: int, seeds: Sequence[int], most_steps: int) -> dict:
    """Stack-like, idle and used maps of transformers that are right on short words."""
    found = study.heads(n_layers=n_layers, seeds=seeds, most_steps=most_steps, store=STORE)
    share, worst = found["stack_share"], found["lost"].max("way")
    like, idle = share > interventions.STACK_LIKE, worst < interventions.IRRELEVANT
    order = np.argsort(-share.values.ravel())
    nearest = int(np.where(idle.values.ravel(), share.values.ravel(), -1).argmax())
    return {
        "n_heads": study.HEADS,
        "n_models": int(share.sizes["seed"]),
        "maps": int(share.size),
        "reached": int(found["reached"].sum()),
        "steps": [int(one) for one in ends(found["steps"])],
        "accuracy": ends(found["accuracy"]),
        "stack_like": int(like.sum()),
        "shares": [float(one) for one in share.values.ravel()[order[:3]]],
        "costs": ends(worst.values[like.values]) if like.any() else [],
        "idle": int(idle.sum()),
        "idle_layers": [int(idle.isel(layer=layer).sum()) for layer in range(n_layers)],
        "per_layer": int(share.isel(layer=0).size),
        "nearest": {"share": float(share.values.ravel()[nearest]), "cost": float(worst.values.ravel()[nearest])},
        "misleading": int(interventions.misleading(found).sum()),
        "relevant": int(study.relevant(found).sum()),
        "criteria": {
            "stack_like": interventions.STACK_LIKE,
            "idle": interventions.IRRELEVANT,
            "control": interventions.CONTROL,
        },
    }


def prefixes(steps: int, minimal_steps: int, seeds: Sequence[int], deep_seeds: Sequence[int]) -> dict:
    """Variation of maps between seeds of layers trained on prefixes, where they look, and the verdicts."""
    standards = study.standard(seeds=seeds, steps=steps, store=STORE)
    behind = study.minimal(seeds=seeds, steps=minimal_steps, store=STORE)
    rows = []
    for kind in standards["positions"].values:
        cell = standards.sel(positions=kind)
        first, own = study.places(cell["attention"])
        rows.append(
            {
                "name": study.WORDS[str(kind)],
                "accuracy": ends(cell["accuracy"]),
                "variation": units(cell["attention"]),
                "longer": units(study.on_longer(cell)),
                "first": ends(first),
                "own": ends(own),
            }
        )
    layers = [
        {
            "name": study.EMBEDDINGS[str(kind)],
            "accuracy": ends(behind["accuracy"].sel(embedding=kind)),
            "variation": units(behind["attention"].sel(embedding=kind)),
        }
        for kind in behind["embedding"].values
    ]
    found = study.heads(seeds=deep_seeds, store=STORE)
    size = standards.sizes["row"]
    return {
        "rows": rows,
        "layers": layers,
        "verdicts": study.verdicts(standards, behind, found),
        "even": float(np.mean(1 / np.arange(2, size + 1))),
        "brackets": size - 1,
        "longer": standards.sizes["longer_row"] - 1,
        "n_seeds": standards.sizes["seed"],
    }


def by_row() -> dict:
    """Variation of one row on average, on both prefixes, and limits of the share of idle ones among stack-like maps.

    From the stored numbers: sums over all rows, START's among them, in units of random rows.
    """
    records = stored(Path(__file__).parent)
    found, seen = (records[name]["values"] for name in ("prefixes", "heads"))
    rows = []
    for row in found["rows"]:
        both = {"name": row["name"]}
        for name, brackets in (("variation", found["brackets"]), ("longer", found["longer"])):
            unit = random_variation(brackets + 1) / (brackets + 1)
            both[name] = {key: value * unit for key, value in row[name].items()}
        rows.append(both)
    grows = [row["longer"]["mean"] > row["variation"]["mean"] for row in rows]
    return {
        "rows": rows,
        "grows": any(grows),
        "like": seen["stack_like"],
        "most_idle": intervals.of_share(seen["misleading"], seen["stack_like"])[1],
    }


SHORT = ("k = 2, D = 4", "GPTs without positions, Adam on words")
STUDIES = (
    Study(
        "heads",
        heads,
        {
            "n_layers": study.LAYERS,
            "seeds": list(study.DEEP_SEEDS),
            "most_steps": precise.MOST_STEPS,
        },
        SHORT,
        quick=False,
        tolerance=0.05,
    ),
    Study(
        "prefixes",
        prefixes,
        {
            "steps": deep.STEPS,
            "minimal_steps": dyck.STEPS,
            "seeds": list(study.SEEDS),
            "deep_seeds": list(study.DEEP_SEEDS),
        },
        ("trained on prefixes, k = 2, D = 4",),
        quick=False,
        tolerance=0.05,
    ),
    Study("by_row", by_row),
)
