"""Ordinary transformers on Dyck: attention varies between seeds, long prefixes are hard (Table 1, Figs. 3, 10)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow_studies.dyck_embeddings.study import stack_share
from yzflow_studies.dyck_embeddings.study import variation as between_seeds
from yzflow_studies.ordinary_dyck import deep
from yzflow_studies.ordinary_dyck.study import CONTRAST_WEIGHTS, lengths, table
from yzflow_studies.ordinary_dyck.study import TABLE as TABLE1


def spread(values: xr.DataArray) -> dict[str, float]:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def variation(settings: Sequence[Sequence[int]], eta: float, batch: int, steps: int, seeds: int) -> dict[str, Any]:
    """Attention variation between seeds, layer by layer, beside random rows, and accuracy on short prefixes."""
    found = table(rows=[tuple(row) for row in settings], eta=eta, batch_size=batch, steps=steps, seeds=seeds)
    rows = []
    for (k, depth, layers), name in zip(settings, found["setting"].values, strict=True):
        row = found.sel(setting=name)
        cells = [
            {"mean": float(row["variation"].sel(layer=n)), "half": float(row["standard_error"].sel(layer=n))}
            for n in range(1, layers + 1)
        ]
        short = float(row["accuracy"].sel(length="below 28"))
        rows.append({"k": k, "D": depth, "layers": cells, "random": float(row["random"]), "accuracy": short})
    higher = [(cell, row["random"]) for row in rows for cell in row["layers"][1:]]
    ratios = [cell["mean"] / random for cell, random in higher]
    above = [(cell["mean"] - random) / cell["half"] for cell, random in higher]
    start = found["start"]
    return {
        **{f"rows{count}": [row for row in rows if len(row["layers"]) == count] for count in (2, 3)},
        "width": deep.WIDTH,
        "ratio": [min(ratios), max(ratios)],
        "errors_above": [min(above), max(above)],
        "start_first": [float(start.sel(layer=1).min()), float(start.sel(layer=1).max())],
        "start_others": [float(start.sel(layer=[2, 3]).min()), float(start.sel(layer=[2, 3]).max())],
    }


def maps(k: int, D: int, layers: int, steps: int, seeds: int) -> dict[str, Any]:
    """How much of their attention closing queries of the last layer put on open brackets of their own depth."""
    runs = deep.trained(DyckLanguage(k, D), n_layers=layers, steps=steps, seeds=seeds)
    ends = runs["attention"].isel(time=-1, probe=0, head=0)
    share = stack_share(ends, DyckLanguage(k, D)).isel(layer=-1)
    return {"share": [float(share.min()), float(share.max())]}


def positions(k: int, D: int, steps: int, seeds: int) -> dict[str, Any]:
    """Accuracy on short and long prefixes with linear positions and without any."""
    found = {}
    for name, kind in (("linear", "linear"), ("none", None)):
        runs = deep.trained(DyckLanguage(k, D), positions=kind, steps=steps, seeds=seeds)
        for length, values in (("short", "below 28"), ("long", "400-500")):
            some = runs["accuracy"].sel(length=values)
            found[f"{name}_{length}"] = [float(some.min()), float(some.max())]
    return found


def regularised(kinds: Sequence[str], weights: Sequence[float], steps: int, seeds: int, n_test: int) -> dict[str, Any]:
    """Accuracy by the weight of the regulariser (22) and what was trained on, and its effect over the same seeds."""
    runs = lengths(kinds=kinds, weights=weights, steps=steps, seeds=seeds, n_test=n_test)
    rows = []
    for kind in kinds:
        for weight in weights:
            cell = runs.sel(kind=kind, contrast_weight=weight)
            long = cell["accuracy"].sel(length="400-500")
            without = runs["accuracy"].sel(kind=kind, contrast_weight=0.0, length="400-500")
            row = {
                "kind": kind,
                "weight": weight,
                "short": spread(cell["accuracy"].sel(length="below 28")),
                "long": spread(long),
                "closing": spread(cell["accuracy_after_closing"].sel(length="400-500")),
            }
            rows.append(row | {"change": spread(long - without)})
    return {"rows": rows}


def longer(k: int, D: int, weights: Sequence[float], steps: int, seeds: int, n_test: int, guess: float) -> dict:
    """The same after more steps on words; how many models find few closing brackets where the last bracket closes."""
    language = DyckLanguage(k, D)
    runs = [
        deep.trained(language, contrast_weight=weight, steps=steps, seeds=seeds, n_test=n_test) for weight in weights
    ]
    rows = []
    for weight, one in zip(weights, runs, strict=True):
        varied = between_seeds(one["attention"].isel(time=-1, probe=0, layer=-1, head=0))
        long = one["accuracy"].sel(length="400-500")
        rows.append(
            {
                "weight": weight,
                "short": spread(one["accuracy"].sel(length="below 28")),
                "long": spread(long),
                "change": spread(long - runs[0]["accuracy"].sel(length="400-500")),
                "variation": {"mean": float(varied["mean"]), "half": float(varied["standard_error"])},
            }
        )
    closing = np.concatenate([one["accuracy_after_closing"].sel(length="400-500").values for one in runs])
    whole = np.concatenate([one["accuracy"].sel(length="400-500").values for one in runs])
    guessing = closing < guess
    prefixes = deep.open_prefixes(language, deep.LENGTHS["400-500"], n=n_test)
    return {
        "rows": rows,
        "models": int(closing.size),
        "guessing": int(guessing.sum()),
        "guessed": [float(closing[guessing].min()), float(closing[guessing].max())],
        "guessed_whole": [float(whole[guessing].min()), float(whole[guessing].max())],
        "best": float(closing.max()),
        "best_whole": float(whole[closing.argmax()]),
        "opens": float(np.mean([prefix[-1] % 2 == 0 for prefix in prefixes])),
    }


ADAM = ("GPTs of width 32 without positions, Adam at 0.003, batches of 64; standard errors over seeds",)
TABLE = [list(row) for row in TABLE1]
LANGUAGE = {"k": 2, "D": 4, "seeds": 4}
STUDIES = (
    Study(
        "variation",
        variation,
        {"settings": TABLE, "eta": 0.003, "batch": 64, "steps": 1000, "seeds": 4},
        ADAM,
        quick=False,
    ),
    Study("maps", maps, LANGUAGE | {"layers": 2, "steps": 1000}, ADAM, quick=False),
    Study("positions", positions, LANGUAGE | {"steps": 1000}, ADAM, quick=False),
    Study(
        "regularised",
        regularised,
        {
            "kinds": ["word", "prefix"],
            "weights": list(CONTRAST_WEIGHTS),
            "steps": 1000,
            "seeds": 4,
            "n_test": 500,
        },
        ADAM,
        quick=False,
    ),
    Study(
        "longer",
        longer,
        LANGUAGE | {"weights": list(CONTRAST_WEIGHTS), "steps": 4000, "n_test": 500, "guess": 0.6},
        ADAM,
        quick=False,
    ),
)
