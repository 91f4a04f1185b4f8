"""Units that learn Match2 and Match3 from examples, from constructions, and where they are too small."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow_studies.learning_match import cells, runs
from yzflow_studies.learning_match import small_units as small

SINGLE_BITS = 24  # of a number in single precision


def said(values: xr.DataArray) -> str:
    """Mean and standard error over seeds; nothing where nothing was run."""
    if not bool(values.notnull().all()):
        return ""
    return f"{float(values.mean()):.3f} +- {float(standard_error(values)):.3f}"


def moduli(sizes: Sequence[int]) -> dict:
    """M of each task at each N, and what the lower bound says of the one layer for Match3."""
    cell = cells.CELLS["Match3, one layer"]
    sent, needed = (cell.dimension + 1) * cell.heads * SINGLE_BITS, (cell.sizes[-1] - 1) // 2
    return {
        "two": [runs.balanced_modulus(2, n) for n in sizes],
        "three": [runs.balanced_modulus(3, n) for n in sizes],
        "sent": sent,
        "excluded": bool(sent < needed),
        "test": runs.N_TEST,
        "tokens": runs.TOKENS_A_STEP,
        "rate": runs.LEARNING_RATES["one layer"],
        "rate_two": runs.LEARNING_RATES["two layers"],
        "steps": runs.STEPS,
        "seeds": runs.SEEDS,
    }


def learnt(sizes: Sequence[int], seeds: int, steps: int, share: float) -> dict:
    """Loss over that of the best constant, and how well triples are told apart, at the end of training."""
    data = cells.learning(sizes=sizes, seeds=seeds, steps=steps).isel(time=-1)
    loss = data["loss"] / data["constant_loss"]
    found: dict[str, Any] = {"two": [], "three": [], "triples": [], "balanced": {}, "built": {}}
    for name in data["cell"].values:
        cell, key = cells.CELLS[str(name)], str(name).lower().replace(",", "").replace(" ", "_")
        own = loss.sel(cell=name)
        if cell.init == "construction":
            found["built"][key] = [said(own.sel(n_tokens=n)) for n in sizes]
            continue
        label = f"{cell.kind}, m = {cell.dimension}, H = {cell.heads}" + ", as the construction" * (
            "size of" in str(name)
        )
        found["two" if cell.order == 2 else "three"].append(
            {"unit": label, "loss": [said(own.sel(n_tokens=n)) for n in sizes]}
        )
        found["balanced"][key] = said(data["balanced_accuracy"].sel(cell=name, n_tokens=sizes[0]))
        if cell.order == 3:
            area = data["triple_area"].sel(cell=name)
            found["triples"].append({"unit": label, "area": [said(area.sel(n_tokens=n)) for n in sizes]})
        if "construction" in key:
            found[key] = [int((own.sel(n_tokens=n) < share).sum()) for n in sizes]
    three = data.sel(cell=[name for name in data["cell"].values if cells.CELLS[str(name)].order == 3])
    known = (three["pair_loss"] / three["constant_loss"]).mean(["cell", "seed"])
    found["pairs"] = [float(known.sel(n_tokens=n)) for n in sizes if bool(known.sel(n_tokens=n).notnull())]
    return found | {"rate_low": float(data["base_rate"].min()), "rate_high": float(data["base_rate"].max())}


def short_steps(n: int, rate: float, steps: int, seeds: int) -> dict:
    """The third-order unit started at its construction with shorter steps: its loss over the constant's at the end."""
    ends = [
        runs.trained(
            "third order", 3, n, dimension=4, init="construction", learning_rate=rate, steps=steps, seed=seed
        ).isel(time=-1)
        for seed in range(seeds)
    ]
    return {
        "loss": float(np.mean([end["loss"] / end["constant_loss"] for end in ends])),
        "no_error": bool(min(float(end["accuracy"]) for end in ends) == 1),
    }


def too_small(d: Sequence[int], n: int, bits: int, steps: int, seeds: int) -> dict:
    """Wrong answers of units with values of few bits over all inputs of the protocol, and what none avoids."""
    data = small.small_units(value_dimensions=d, n=n, bits=bits, steps=steps, seeds=seeds)
    matches = data.attrs["matches"]
    return {
        "inputs": data.attrs["inputs"],
        "constant": min(matches, data.attrs["inputs"] - matches),
        "bound": data["bound"].values,
        "fewest": data["fewest"].min("seed").values,
        "right": (data["errors"] == 0).sum("seed").values,
    }


SIZES = [8, 16, 32, 64]
STUDIES = (
    Study("moduli", moduli, {"sizes": SIZES}),
    Study("learnt", learnt, {"sizes": SIZES, "seeds": 8, "steps": 3000, "share": 0.05}, quick=False),
    Study("short_steps", short_steps, {"n": 16, "rate": 1e-4, "steps": 500, "seeds": 8}, quick=False),
    Study("too_small", too_small, {"d": [1, 2, 6, 12], "n": 6, "bits": 1, "steps": 3000, "seeds": 8}, quick=False),
)
