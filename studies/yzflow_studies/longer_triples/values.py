"""Match3 with more steps, a curriculum and better starts, and three equal tokens beside pairs and triples."""

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from yzflow_sparse_averaging import averaging

from theory.values import Study
from yzflow import intervals
from yzflow_studies.learning_match import runs as finding31
from yzflow_studies.longer_triples import runs, study
from yzflow_studies.qsa_sizes.study import steps_needed

_TRIPLES = ("one layer, ten times", "one layer, curriculum", "third order, curriculum")
_NEAR = ("near frequencies", "near frequencies, longer", "near one frequency")
_TASKS = ("pairs", "three equal", "pairs, m = 3", "three equal, m = 3")


def learnt(seeds: Sequence[int]) -> dict:
    """Loss, area and accuracy on tokens with and without a match at the end, each seed; and the verdicts."""
    found = study.learning(seeds=seeds)
    near = []
    for name in _NEAR:
        for distance in found[name]["distance"].values:
            run = found[name].sel(distance=distance)
            row = {"start": f"{_start(name)}, {int(run['time'][-1])} steps", "noise": float(distance)}
            near.append(row | _ends(run) | {"before": _said(run["triple_area"].isel(time=0))})
    tasks = []
    for name in _TASKS:
        for n in found[name]["n_tokens"].values:
            run = found[name].sel(n_tokens=n)
            share = study.share(run).transpose("seed", "time")
            steps = [steps_needed(one, study.LEARNT) for one in share]
            order = 2 if "pairs" in name else 3
            tasks.append(
                {
                    "task": name.split(",")[0],
                    "m": study.LATER.get(name, study.CELLS.get(name, {}))["dimension"],
                    "n": int(n),
                    "modulus": finding31.balanced_modulus(order, int(n)) if order == 2 else runs.equal_modulus(int(n)),
                    "needed": ", ".join(f"{step:.0f}" if math.isfinite(step) else "-" for step in steps),
                }
                | _ends(run)
            )
    base = found[_TRIPLES[0]]["base_rate"].isel(time=0)
    return {
        "triples": [{"unit": name, "steps": int(found[name]["time"][-1])} | _ends(found[name]) for name in _TRIPLES],
        "near": near,
        "tasks": tasks,
        "verdicts": study.judged(found),
        "base_rate": float(base.mean()),
        "modulus": finding31.balanced_modulus(3, 32),
        "n_seeds": len(seeds),
    }


def _start(name: str) -> str:
    return "one frequency" if "one" in name else "ten frequencies"


def _ends(run: xr.Dataset) -> dict[str, str]:
    end = run.isel(time=-1)
    shares = {name: end[name] for name in ("with_match", "without_match")}
    return {
        "loss": _said(study.share(end)),
        "area": _said(end["triple_area"]),
        **{name: ", ".join(f"{100 * float(one):.1f}%" for one in values) for name, values in shares.items()},
    }


def _said(values: xr.DataArray) -> str:
    return ", ".join(f"{float(one):.3f}" for one in values)


def constructions(n: int, modulus: int, seeds: int) -> dict:
    """Temperature c of the third-order unit's constructions for Match3: one frequency, and ten."""
    ten = [
        runs.many_frequencies(n, modulus, runs.FREQUENCIES, np.random.default_rng(seed)).scale for seed in range(seeds)
    ]
    return {
        "one": averaging.match3_tensor(n_tokens=n, modulus=modulus, error=finding31.ERROR).scale,
        "ten_low": min(ten),
        "ten_high": max(ten),
        "dimension": 3 * runs.FREQUENCIES + 1,
    }


def all_seeds() -> dict[str, float]:
    """Limits of the share of seeds in which something is so, where it is so in all that were run."""
    seeds = len(study.SEEDS)
    low, high = intervals.of_share(seeds, seeds)
    return {"seeds": seeds, "low": low, "high": high}


STUDIES = (
    Study("all_seeds", all_seeds),
    Study("learnt", learnt, {"seeds": list(study.SEEDS)}, quick=False, tolerance=0.05),
    Study("constructions", constructions, {"n": 32, "modulus": 739, "seeds": 3}),
)
