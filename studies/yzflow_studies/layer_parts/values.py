"""Effects of LN, a feed-forward part and a residual link on a layer that learns Dyck (Fig. 2, Appendix C.7)."""

from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage, gpt, training

from theory.values import Study
from yzflow_studies.dyck_embeddings.study import random_variation, stack_share, variation
from yzflow_studies.layer_parts import sharpness
from yzflow_studies.layer_parts import study as architecture
from yzflow_studies.layer_parts.study import residual_link
from yzflow_studies.ordinary_dyck import deep

LABELS = {"one-hot": "(19)", "type and depth": "(20)", "type and angle": "(21)"}
QUANTITIES = ("short", "long", "stack_share", "variation")


def parts(scale: float, steps: int, seeds: int) -> dict[str, Any]:
    """Each embedding with and without each part: means over seeds, with standard errors."""
    runs = architecture.grid(scales=[scale], steps=steps, seeds=seeds)
    found = architecture.summary(runs).isel(scale=0)
    best = runs["accuracy"].sel(length="below 28", query="all").isel(scale=0).max("seed")
    rows = []
    for embedding, label in LABELS.items():
        for variant in architecture.VARIANTS:
            where = {"variant": variant, "embedding": embedding}
            cell = found.sel(where)
            row = {name: {"mean": float(cell[name]), "half": float(cell[f"{name}_error"])} for name in QUANTITIES}
            rows.append({"embedding": label, "layer": variant, "best": float(best.sel(where)), **row})
    with_units = best.sel(variant=[name for name in architecture.VARIANTS if "feed-forward" in name])
    without = best.drop_sel(variant=with_units["variant"].values)
    deep = {"embedding": "type and depth"}
    return {
        "rows": rows,
        "best_with": [float(with_units.sel(deep).min()), float(with_units.sel(deep).max())],
        "best_without": float(without.sel(deep).max()),
        "units": architecture.UNITS,
        "random": float(found.attrs["random"]),
    }


def longer(scale: float, steps: int, seeds: int, enough: float) -> dict[str, Any]:
    """LN and a feed-forward part, trained for longer, under (20) and (21)."""
    chosen = ("type and depth", "type and angle")
    runs = architecture.grid(
        variants=["LN, feed-forward"], embeddings=chosen, scales=[scale], steps=steps, seeds=seeds
    ).isel(scale=0, variant=0)
    found = architecture.summary(runs)
    short = runs["accuracy"].sel(length="below 28", query="all")
    return {
        name: {
            **{key: {"mean": float(cell[key]), "half": float(cell[f"{key}_error"])} for key in QUANTITIES},
            "best": float(short.sel(embedding=embedding).max()),
            "above": int((short.sel(embedding=embedding) > enough).sum()),
        }
        for name, embedding in (("depth", chosen[0]), ("angle", chosen[1]))
        for cell in [found.sel(embedding=embedding)]
    }


def measures(k: int, D: int) -> dict[str, float]:
    """The measures of uniform attention and of random rows, on the word that attention is measured on."""
    language = DyckLanguage(k, D)
    rows = training.probe_prefix(language).size + 1
    uniform = np.tril(np.ones((rows, rows))) / np.arange(1, rows + 1)[:, None]
    share = stack_share(xr.DataArray(uniform, dims=("row", "position")), language)
    return {"uniform": float(share), "random": random_variation(rows)}


def link(k: int, D: int, noise: float, lipschitz: float) -> dict[str, float]:
    """Distances of two stacks that differ in their last type after many matched pairs, behind a residual link."""
    found = residual_link(DyckLanguage(k, D), noise=noise)
    plain, along = found.sel(link="residual link"), found.sel(link="residual link along the ones")
    largest = plain["largest"].sel(layer="balanced").isel(n=-1).item()
    balanced = along["smallest"].sel(layer="balanced")
    return {
        "n": int(found["n"].values[-1]),
        "largest": largest,
        "largest_not_balanced": plain["largest"].sel(layer="not balanced").isel(n=-1).item(),
        "least_loss": float(gpt.least_loss(largest, lipschitz)),
        "guess": float(np.log(2)),
        "along_least": float(balanced.min()),
        "along_same": bool(np.ptp(balanced.values) < 1e-6),
        "along_not_balanced": along["smallest"].sel(layer="not balanced").isel(n=-1).item(),
    }


def tokens(steps: int, seeds: int, eta: float) -> dict[str, Any]:
    """Two-layer transformers trained from tokens: LN behind attention, as in (6), or before each part, as in a GPT."""
    rows = []
    for norm, label in (("mixture", "(6)"), ("before", "GPT")):
        for kind, name in (("word", "words"), ("prefix", "prefixes")):
            runs = deep.trained(norm=norm, kind=kind, steps=steps, seeds=seeds, eta=eta)
            row: dict[str, Any] = {"layer": label, "kind": name}
            cells = {
                "short": runs["accuracy"].sel(length="below 28").values,
                "long": runs["accuracy_after_closing"].sel(length="400-500").values,
            }
            for measure, values in cells.items():
                row[measure] = {"mean": float(values.mean()), "half": float(values.std(ddof=1) / np.sqrt(values.size))}
            maps = variation(runs["attention"].isel(probe=0, head=0, time=-1))
            for layer in (0, 1):
                one = maps.isel(layer=layer)
                row[f"layer{layer + 1}"] = {"mean": float(one["mean"]), "half": float(one["standard_error"])}
            rows.append({**row, "least": float(cells["short"].min())})
    return {
        "rows": rows,
        "width": deep.WIDTH,
        "random": random_variation(runs.sizes["row"]),
        "least": min(row["least"] for row in rows if row["layer"] == "(6)"),
    }


def sharp(steps: int, seeds: int, radii: list[float], data_seeds: int) -> dict[str, Any]:
    """Sharpness-aware steps of several radii, on several data sets: means over both."""
    runs = [
        sharpness.grid(radii=tuple(radii), steps=steps, seeds=seeds, data_seed=data_seed)
        for data_seed in range(data_seeds)
    ]
    each = [sharpness.summary(one) for one in runs]
    rows = []
    for cells in zip(*each, strict=True):
        row: dict[str, Any] = {"radius": cells[0]["radius"]}
        for name in ("short", "long", "violation", "sharpness", "variation"):
            means = np.array([cell[name]["mean"] for cell in cells])
            row[name] = {"mean": float(means.mean()), "half": float(means.std(ddof=1) / np.sqrt(means.size))}
        rows.append(row)
    return {"rows": rows}


SEEDS = ("standard errors over seeds, jackknife ones of variation", "k = 2, D = 4, q = 0.5, prefixes, Adam at 0.01")
STUDIES = (
    Study("small", parts, {"scale": 0.1, "steps": 2000, "seeds": 8}, SEEDS, quick=False, tolerance=1e-3),
    Study("large", parts, {"scale": 1.0, "steps": 2000, "seeds": 8}, SEEDS, quick=False, tolerance=1e-3),
    Study(
        "longer", longer, {"scale": 0.1, "steps": 6000, "seeds": 8, "enough": 0.999}, SEEDS, quick=False, tolerance=1e-3
    ),
    Study("measures", measures, {"k": 2, "D": 4}),
    Study(
        "tokens",
        tokens,
        {"steps": 1500, "seeds": 4, "eta": 3e-3},
        ("standard errors over seeds, jackknife ones of variation", "k = 2, D = 4, q = 0.5, 10,000 sequences, Adam"),
        quick=False,
        tolerance=1e-3,
    ),
    Study(
        "sharp",
        sharp,
        {"steps": 1000, "seeds": 4, "radii": [0.0, 0.05, 0.2], "data_seeds": 4},
        ("standard errors over data sets", "k = 2, D = 4, q = 0.5, 10,000 prefixes, Adam at 0.01"),
        quick=False,
        tolerance=1e-3,
    ),
    Study("link", link, {"k": 2, "D": 4, "noise": 0.1, "lipschitz": 10.0}, ("(49) read as f = LN(x_q + sum c_s V_s)",)),
)
