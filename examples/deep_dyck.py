"""Ordinary transformers on bounded Dyck languages: seeds find different attention, and long prefixes are hard.

    python examples/deep_dyck.py [--out DIR] [--seeds N] [--precise] [--quick]

Setting of Figures 1, 3, 10 and Table 1 of Wen, Li, Liu, Risteski (2023), arXiv 2312.01429: GPTs of two and three
layers, Adam, sequences of fewer than 28 brackets. Prints the findings and writes figures (PNG and PDF), their
captions and the data (netCDF). After an interruption the same command goes on from its checkpoints. Needs
yzflow-deep. With --precise it trains Table 1 until 99.9% of the closing brackets of short words are right in its place,
and replaces attention maps of trained models one by one.

Maps above the first layer differ between seeds more than random ones (the paper: about as much), and are mostly not
stack-like (as in the paper). That the regulariser helps on long prefixes is not seen after this much training
(studies/yzflow_studies/ordinary_transformers/page.md has the results of the defaults: 37 minutes of processor time).
Needs the studies: pip install -e tools/deep -r studies/requirements.txt.
"""

import time
from pathlib import Path

import numpy as np
import xarray as xr
from yzflow_studies.dyck_embeddings.study import variation
from yzflow_studies.ordinary_dyck import deep as deep_dyck
from yzflow_studies.ordinary_dyck import study as ordinary
from yzflow_studies.precise_dyck import precise
from yzflow_studies.precise_dyck import study as interventions

from dynamics.support import checks
from dynamics.support.netcdf import save_dataset
from yzflow import figures, intervals, scripts


def variations(table: xr.Dataset) -> str:
    """Table 1."""
    lines = ["Attention variation between seeds (jackknife errors), and accuracy at length < 28:"]
    for setting in table["setting"].values:
        row = table.sel(setting=setting)
        cells = [
            f"{float(row['variation'].sel(layer=layer)):.2f} +- {float(row['standard_error'].sel(layer=layer)):.2f}"
            for layer in row["layer"].values
            if np.isfinite(row["variation"].sel(layer=layer))
        ]
        short = float(row["accuracy"].sel(length="below 28"))
        lines.append(f"  {setting}: {', '.join(cells)}; random rows {float(row['random']):.2f}; accuracy {short:.4f}")
    return "\n".join(lines)


def accuracies(runs: xr.Dataset) -> str:
    """Figures 3 and 10."""
    shown = xr.concat([runs["accuracy"], runs["accuracy_after_closing"].isel(length=[-1])], "length")
    mean, error = shown.mean("seed"), intervals.standard_error(shown)
    lines = [
        "Closing brackets found, mean over seeds, and at the end of those whose last bracket closes:",
        "  trained on   regulariser   length < 28          400-500             400-500, after closing",
    ]
    for kind in runs["kind"].values:
        for weight in runs["contrast_weight"].values:
            at = {"kind": kind, "contrast_weight": weight}
            pairs = zip(mean.sel(at).values, error.sel(at).values, strict=True)
            cells = [f"{one:.4f} +- {other:.4f}" for one, other in pairs]
            lines.append(f"  {kind:10}   {weight:11g}   {'   '.join(cells)}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="deep_dyck", quick="three seeds, few steps and settings")
    script.add_argument("--seeds", type=int, default=deep_dyck.SEEDS, help="seeds per setting, 3 or more")
    script.add_argument("--precise", action="store_true", help="train until 99.9%% is right, and replace maps")
    options = script.options(arguments)
    out = options.out
    start = time.process_time()
    with script.refusing():
        seeds = checks.integer("--seeds", options.seeds, minimum=3)
        results = (until_right if options.precise else run)(seeds, out, quick=options.quick)
    print(f"({time.process_time() - start:.0f} s of processor time)", flush=True)
    for name, shown in results.items():
        if not isinstance(shown, dict):
            save_dataset(shown, out / f"{name}.nc")
    figures.save_all(results, out, among=(*ordinary.FIGURES, *interventions.FIGURES))
    print(f"Figures, captions and data are in {out}")
    return 0


def run(seeds: int, out: Path, *, quick: bool) -> dict:
    """All trainings; what is shown in each figure."""
    size, rows, grid = {"seeds": seeds}, ordinary.TABLE, {}
    places = {"no positions": None, "linear positions": "linear"}
    if quick:  # two trainings in all, most of whose time is compilation
        size, rows = {"seeds": 3, "steps": 30, "n_test": 50}, rows[:1]
        grid = {"weights": (0.0, 1.0), "kinds": ("word",)}
        del places["linear positions"]
    size |= {"progress": True, "store": out / ("quick" if quick else "checkpoints")}
    maps = {name: deep_dyck.trained(positions=place, **size) for name, place in places.items()}
    for name, one in maps.items():
        found = variation(one["attention"].isel(time=-1, probe=0, layer=-1, head=0))
        error = float(found["standard_error"])
        print(f"Second layer, {name}: attention variation {float(found['mean']):.2f} +- {error:.2f}", flush=True)
    lengths = ordinary.lengths(**grid, **size)
    print(accuracies(lengths), flush=True)
    table = ordinary.table(rows=rows, **size)
    print(variations(table), flush=True)
    return {"deep_dyck_attention": maps, "deep_dyck_length": lengths, "deep_dyck_variation": table}


def until_right(seeds: int, out: Path, *, quick: bool) -> dict:
    """Table 1 of models that are right on short words, and what their attention maps are needed for."""
    size: dict = {"seeds": seeds, "store": out / "precise"}
    if quick:
        size = {"seeds": 3, "most_steps": 20, "check_every": 20, "n_train": 300, "n_test": 50, "n_long": 5}
    table = precise.table(rows=ordinary.TABLE[: 1 if quick else None], **size)
    print(precise.report(table), flush=True)
    found = interventions.survey(precise.trained(n_heads=4, **size), **({"n_test": 20, "draws": 1} if quick else {}))
    print(interventions.FIGURES[0].claims(found), flush=True)
    return {"deep_dyck_variation": table, "deep_dyck_interventions": found}


if __name__ == "__main__":
    scripts.run(main, interrupted="the same command goes on from the last checkpoint")
