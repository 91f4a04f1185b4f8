"""Ordinary transformers trained until short Dyck words are right: variation, long words, and which maps matter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow_studies.ordinary_dyck.deep import WIDTH
from yzflow_studies.ordinary_dyck.study import TABLE
from yzflow_studies.precise_dyck import precise
from yzflow_studies.precise_dyck import study as interventions
from yzflow_studies.words_and_prefixes.ranks import rank_correlation


def spread(values: xr.DataArray) -> dict[str, float]:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def extremes(values: xr.DataArray) -> list[float]:
    """The smallest and the largest."""
    return [float(values.min()), float(values.max())]


def table(
    settings: Sequence[Sequence[int]],
    target: float,
    most_steps: int,
    check: int,
    seeds: int,
    eta: float,
    batch: int,
    train: int,
    test: int,
) -> dict:
    """Table 1 of models that are trained until the target; accuracies of closing brackets after a closing one."""
    training: dict[str, Any] = {"target": target, "most_steps": most_steps, "check_every": check, "seeds": seeds}
    training |= {"eta": eta, "batch_size": batch, "n_train": train, "n_test": test}
    found = precise.table(rows=[tuple(row) for row in settings], **training)
    accuracy = found["accuracy"].sel(closing="after closing")
    rows = []
    for (k, depth, layers), name in zip(settings, found["setting"].values, strict=True):
        row, right = found.sel(setting=name), accuracy.sel(setting=name)
        steps = row["steps"].where(row["reached"] == 1)
        rows.append(
            {
                "k": k,
                "D": depth,
                "reached": int(row["reached"].sum()),
                "steps": [int(step) for step in extremes(steps.fillna(most_steps))],
                "short": spread(right.sel(span="below 28")),
                "long": spread(right.sel(span="400-500")),
                "layers": [
                    {"mean": float(row["variation"].sel(layer=n)), "half": float(row["standard_error"].sel(layer=n))}
                    for n in range(1, layers + 1)
                ],
                "random": float(row["random"]),
            }
        )
    ratios = [row["layers"][-1]["mean"] / row["random"] for row in rows]
    best = {row["k"]: 0.0 for row in rows}
    for (k, _, _), name in zip(settings, found["setting"].values, strict=True):
        best[k] = max(best[k], float(accuracy.sel(setting=name, span="400-500").max()))
    return {
        **{f"rows{count}": [row for row in rows if len(row["layers"]) == count] for count in (2, 3)},
        "width": WIDTH,
        "models": len(settings) * seeds,
        "late": len(settings) * seeds - sum(row["reached"] for row in rows),
        "ratio": [min(ratios), max(ratios)],
        "best": {f"k{k}": value for k, value in best.items()},
    }


def maps(k: int, D: int, heads: Sequence[int], seeds: int, target: float, most_steps: int, check: int) -> dict:
    """The accuracy that replacing one attention map of a model of two layers costs, and how stack-like the maps are."""
    found = []
    for count in heads:
        training: dict[str, Any] = {"target": target, "most_steps": most_steps, "check_every": check, "seeds": seeds}
        found.append(interventions.survey(precise.trained(DyckLanguage(k, D), n_heads=count, **training)))
    one, many = found[0], found[-1]
    share = np.concatenate([some["stack_share"].values.ravel() for some in found])
    lost = np.concatenate([some["lost"].values.reshape(-1, len(interventions.WAYS)) for some in found])
    like, idle = share > interventions.STACK_LIKE, lost.max(axis=1) < interventions.IRRELEVANT
    near = int(np.where(idle, share, -1).argmax())
    idle_many = many["lost"].max("way") < interventions.IRRELEVANT
    second = many.isel(layer=1)
    uniform = [some["lost"].sel(way="uniform").isel(layer=0).max().item() for some in found]
    return {
        "maps": int(share.size),
        "maps_many": int(many["stack_share"].size),
        "stack_like": sorted(share[like]),
        "stack_like_cost": [lost[like].min(), lost[like].max()] if like.any() else [],
        "misleading": sum(int(interventions.misleading(some).sum()) for some in found),
        "near": {"share": share[near], "cost": lost[near].max()},
        "idle": int(idle_many.sum()),
        "idle_second": int(idle_many.isel(layer=1).sum()),
        "ranks": [
            rank_correlation(second["stack_share"], second["lost"].sel(way=way)).value for way in interventions.WAYS
        ],
        "ranks_of": int(second["stack_share"].size),
        "first_uniform": max(uniform),
        "first_removed": extremes(one["lost"].isel(layer=0).sel(way="removed")),
        "criteria": {
            "stack_like": interventions.STACK_LIKE,
            "idle": interventions.IRRELEVANT,
            "control": interventions.CONTROL,
        },
    }


ADAM = ("GPTs without positions, Adam on words; standard errors over seeds",)
UNTIL: dict[str, Any] = {"target": precise.TARGET, "most_steps": precise.MOST_STEPS, "check": 1000, "seeds": 8}
MORE = {"settings": [list(row) for row in TABLE], "eta": 0.001, "batch": 16, "train": 40000, "test": 1000}
STUDIES = (
    Study("table", table, UNTIL | MORE, ADAM, quick=False),
    Study("maps", maps, UNTIL | {"k": 2, "D": 4, "heads": [1, 4]}, ADAM, quick=False),
)
