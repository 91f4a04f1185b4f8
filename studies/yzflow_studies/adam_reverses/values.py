"""Theorem 2's signs under Adam: at the end of runs, an optimizer each for Y and Z, and what the first step says."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import of_mean
from yzflow_studies.adam_reverses.study import Size, batches, crossed, foreseen, held, survey


def reach(values: xr.DataArray) -> dict:
    """The smallest and the largest."""
    return {"low": float(values.min()), "high": float(values.max())}


def signs(
    sizes: Sequence[tuple], ratios: Sequence[float], rates: Sequence[float], optimizers: Sequence[str], same: float
) -> dict:
    """Logits and lead at the end, under Adam and plain steps at the same loss: ranges by size and ratio, and counts."""
    chosen = [Size(k, m, common, tuple(distinct)) for k, m, common, distinct in sizes]
    runs = survey(sizes=chosen, ratios=ratios, rates=rates, optimizers=optimizers)
    columns = ("common", "dominant", "lead", "plain_common", "plain_dominant", "plain_lead")
    rows = []
    for size in chosen:
        for ratio in ratios:
            part = runs.isel(run=((runs["size"] == str(size)) & (runs["ratio"] == ratio)).values)
            rows.append({"size": str(size), "ratio": ratio, **{name: reach(part[name]) for name in columns}})
    lead = runs["lead"]
    return {
        "rows": rows,
        "runs": runs.sizes["run"],
        "reversed": int(((runs["common"] > 0) & (runs["dominant"] < 0)).sum()),
        "reversed_from": float(runs["reversed_from"].max()),
        "plain_kept": int(((runs["plain_common"] < 0) & (runs["plain_dominant"] > 0)).sum()),
        "plain_step": reach(runs["plain_step"]),
        "plain_grown": int((runs["plain_lead"] > 1).sum()),
        "plain_most": float(runs["plain_lead"].max()) - 1,
        "below": int((lead < 1 - same).sum()),
        "above": int((lead > 1 + same).sum()),
        "alike": int((abs(lead - 1) <= same).sum()),
        "most": float(lead.max()) - 1,
        "loss": reach(runs["loss"]),
    }


def apart(sizes: Sequence[tuple], steps: int) -> dict:
    """Logits at the end with plain steps or Adam for each of Y and Z."""
    rows: dict[tuple[str, str], list] = {}
    for k, m, common, distinct in sizes:
        for way, run in crossed(Size(k, m, common, tuple(distinct)), steps=steps).items():
            rows.setdefault(way, []).append({"common": run.Z[-1, 0], "dominant": run.Z[-1, 1]})
    return {"rows": [{"y": y, "z": z, "sizes": ends} for (y, z), ends in rows.items()]}


def fixed(sizes: Sequence[tuple], steps: int, frozen_at: int) -> dict:
    """With attention held, how far rows of Y in a class are apart; with that Y held, where plain steps of Z lead."""
    rows = []
    for k, m, common, distinct in sizes:
        runs = held(Size(k, m, common, tuple(distinct)), steps=steps, frozen_at=frozen_at)
        rows.append({y: {name: float(runs[name].sel(y=y)) for name in runs.data_vars} for y in ("adam", "plain")})
    return {"rows": rows}


def first_step(
    shapes: Sequence[tuple[int, int]], commons: Sequence[float], distincts: Sequence[Sequence[float]], frequent: float
) -> dict:
    """Signs at the end of Adam runs of many sizes: how many are reversed, and how many the first step foresees."""
    names = tuple(tuple(distinct) for distinct in distincts)
    runs = foreseen(shapes=shapes, commons=commons, distincts=names)
    # In the order of the sizes' names: shape, then common, then distinct.
    grid = [(m > k, common) for k, m in shapes for common in commons for _ in names]
    larger = np.array([entry[0] for entry in grid])
    few = np.array([entry[1] < frequent for entry in grid])
    common, dominant = runs["common"].values, runs["dominant"].values
    turned, kept = (common > 0) & (dominant < 0), (common < 0) & (dominant > 0)
    right = {name: np.sign(runs[name]) == np.sign(runs[f"{name}_slope"]) for name in ("common", "dominant")}
    groups = {"few": larger & few, "many": larger & ~few, "none": ~larger}
    return {
        "sizes": len(grid),
        "turned": int(turned.sum()),
        "kept": int(kept.sum()),
        "one": int((~turned & ~kept).sum()),
        **{f"{name}_right": int(values.sum()) for name, values in right.items()},
        "wrong": [str(size) for values in right.values() for size in runs["size"].values[~values.values]],
        "groups": {
            name: {"sizes": int(of.sum()), "turned": int(turned[of].sum()), "kept": int(kept[of].sum())}
            for name, of in groups.items()
        },
    }


def noisy(size: Sequence, seeds: int, steps: int, batch_size: int, length: int) -> dict:
    """Logits at the end of mini-batch runs, with halves of 95% intervals."""
    k, m, common, distinct = size
    runs = batches(Size(k, m, common, tuple(distinct)), seeds=seeds, steps=steps, batch_size=batch_size, length=length)
    return {name: {"mean": float(of.mean()), "half": float(of_mean(of))} for name, of in runs.data_vars.items()}


SIZES = [(4, 60, 0.3, [1.0, 0.5]), (10, 1000, 0.15, [1.0, 0.8, 0.6, 0.4, 0.2])]
POPULATION = ("expected gradient at T -> infinity", "zero start", "Adam's betas 0.9 and 0.999, epsilon 1e-8")
STUDIES = (
    Study(
        "survey",
        signs,
        {
            "sizes": SIZES,
            "ratios": [0.01, 0.1, 1.0],
            "rates": [0.01, 0.003],
            "optimizers": ["adam", "adamw"],
            "same": 5e-4,
        },
        (*POPULATION, "decoders modified and full", "6/eta_Y steps; plain steps have eta_Y = 1"),
        quick=False,
        tolerance=1e-4,
    ),
    Study("crossed", apart, {"sizes": SIZES, "steps": 600}, POPULATION, tolerance=1e-4),
    Study("held", fixed, {"sizes": SIZES, "steps": 600, "frozen_at": 100}, POPULATION, tolerance=1e-3),
    Study(
        "foreseen",
        first_step,
        {
            "shapes": [(4, 4), (4, 60), (10, 200)],
            "commons": [0.1, 0.3, 0.6, 1.0, 1.5],
            "distincts": [[1.0], [1.0, 0.5], [1.0, 0.9, 0.8]],
            "frequent": 0.9,
        },
        (*POPULATION, "600 steps of Adam, eta_Y = 0.01, eta_Z = 0.001, full decoder"),
        quick=False,
    ),
    Study(
        "batches",
        noisy,
        {"size": SIZES[0], "seeds": 8, "steps": 600, "batch_size": 32, "length": 128},
        ("one setting", "Adam with eta_Y = 0.01, plain steps with eta_Y = 1; eta_Z/eta_Y = 0.1", "full decoder"),
        quick=False,
        tolerance=1e-3,
    ),
)
