"""Bounded Dyck languages: attention that looks random and is perfect, balance, and what predicts long prefixes.

    python examples/dyck_balance.py [--out DIR] [--seeds N] [--parts] [--quick]
    python examples/dyck_balance.py --kind word prefix [--architecture standard] [--out DIR] [--seeds N] [--quick]

Setting of Wen, Li, Liu, Risteski (2023), arXiv 2312.01429: two types, depth four, 40,000 prefixes of fewer than 28
brackets, Adam. Prints the findings and writes figures (PNG and PDF), their captions and the data (netCDF).

The first form trains on the last positions of prefixes, with exact targets; with --parts also layers with and without
LN and a feed-forward part, and it shows what a residual link does to balance (finding 29). The
second trains as the paper does, at all positions on the bracket that was drawn: on complete words (its Section 4), on
prefixes (its App. D.2), or on both; the layer, or a standard 2-layer transformer (yzflow-deep). It says what
violation and the decoder at the mean prefix tell of long prefixes, with intervals, and goes on after an interruption
from what is in DIR/store (studies/yzflow_studies/words_and_prefixes/page.md).
Needs the studies: pip install -r studies/requirements.txt.
"""

from pathlib import Path

import numpy as np
import scipy.stats
import xarray as xr
from yzflow_bounded_dyck import balance, lottery, transformers
from yzflow_bounded_dyck import training as dyck
from yzflow_studies.dyck_balance import study as over_training
from yzflow_studies.dyck_embeddings import study as embeddings
from yzflow_studies.layer_parts import study as parts
from yzflow_studies.words_and_prefixes import study as words
from yzflow_studies.words_and_prefixes.words import ARCHITECTURES, KINDS

from dynamics.support import checks
from dynamics.support.netcdf import save_dataset
from yzflow import figures, scripts

FIGURES = (*over_training.FIGURES, *embeddings.FIGURES, *parts.FIGURES)


def exact_layers() -> str:
    """Layers written down, not trained."""
    language = dyck.LANGUAGE
    layer = balance.balanced_layer(language, rng=1)
    bags = language.sample(2000, max_length=500, rng=2)
    error = np.abs(balance.exact_head(layer, language)(layer.features(bags)) - bags.target).max()
    return (
        f"An exactly balanced layer has random attention: violation {balance.violation(layer, language):.0e}. Its "
        f"largest error over 2000 prefixes of up to 500 brackets is {error:.0e}."
    )


def pruned_transformer() -> str:
    """A random Transformer, with weights set to zero until it computes what a given one does."""
    target = transformers.random_transformer(4, 4, [8], 1, 1, floor=1.0, norm=1.0)
    pruned = lottery.prune_transformer(target, lottery.room_for(target, 20, 2, spare=2))
    tokens = np.random.default_rng(3).normal(size=(500, 6, target.width))
    error = pruned.error(tokens / np.linalg.norm(tokens, axis=-1, keepdims=True))
    return (
        f"A random Transformer of {len(pruned.random.layers)} layers, pruned to a given one of {len(target.layers)}: "
        f"off by at most {pruned.certificate():.1e} for all tokens of norm one, by {error:.1e} on 500 drawn "
        f"ones."
    )


def limits(runs: xr.Dataset) -> str:
    """SGD against the flow."""
    gaps = np.abs(runs["residual"] - runs["residual"].sel(run="flow")).max("time").values[1:]
    listed = ", ".join(f"{gap:.2g} at {eta}" for gap, eta in zip(gaps, runs["run"].values[1:], strict=True))
    return f"SGD approaches the flow as the learning rate falls. Largest distance in the residual: {listed}."


def lengths(runs: xr.Dataset) -> str:
    """Violation, accuracy on long prefixes, and that at the mean prefix."""
    runs = runs.isel(embedding=0, scale=0, eta=0)
    lines = [f"After {runs.attrs['steps']} steps, accuracy on closing brackets and violation (mean over seeds):"]
    lines.append("  regulariser   length < 28   400-500, closing query   violation")
    for weight in runs["contrast_weight"].values:
        some = runs.sel(contrast_weight=weight)
        short = float(some["accuracy"].sel(length="below 28", query="all").mean())
        long = float(some["accuracy"].sel(length="400-500", query="close").mean())
        lines.append(f"  {weight:11g}   {short:11.4f}   {long:22.4f}   {float(some['violation'].mean()):9.4f}")
    plain = runs.isel(contrast_weight=0)
    measured = plain["accuracy"].sel(length="400-500", query="close").values
    rank = scipy.stats.spearmanr(plain["violation"], measured).statistic if np.ptp(measured) > 0 else np.nan
    error = np.abs(runs["predicted"] - runs["accuracy"]).sel(length="400-500", query="all")
    lines.append(f"Between seeds without it, violation and long accuracy have the rank correlation {rank:.2f}.")
    lines.append(
        f"The decoder's accuracy at the mean prefix is off by {float(error.mean()):.4f} on average, "
        f"{float(error.max()):.4f} at most."
    )
    return "\n".join(lines)


def architectures(runs: xr.Dataset) -> str:
    """Embeddings and attention variation."""
    runs = runs.isel(eta=0, contrast_weight=0)
    variation = embeddings.variation(runs["attention"])
    lines = [f"Attention variation between seeds (random rows: {embeddings.random_variation(runs.sizes['row']):.2f}):"]
    for kind in runs["embedding"].values:
        rank = ""
        if kind != dyck.FREE:
            vectors = dyck.LANGUAGE.embedding(str(kind))[:-1]
            rank = f", joint rank {np.linalg.matrix_rank(vectors)} of {len(vectors)}"
        cells = [
            f"{float(variation['mean'].sel(embedding=kind, scale=scale)):.2f} at scale {scale:g}"
            for scale in runs["scale"].values
        ]
        short = float(runs["accuracy"].sel(embedding=kind, length="below 28", query="all").mean())
        lines.append(f"  {kind}: {', '.join(cells)}; accuracy at length < 28 {short:.4f}{rank}")
    return "\n".join(lines)


def regimes(runs: xr.Dataset) -> str:
    """Words beside prefixes, after training at all positions."""
    lines = ["Means over seeds +- half of a 95% interval; rank correlations with accuracy at 400-500, with intervals:"]
    names = ("violation", "mean prefix") if "violation" in runs else ("pair effect", "behind mean word")
    heading = ("length < 28", "400-500", "against none", names[0], f"rank, {names[0]}", f"rank, {names[1]}")
    lines.append("  trained on  (22)  " + "  ".join(f"{name:20}" for name in heading))
    for cell in words.summary(runs):
        numbers = [f"{mean:.3f} +- {half:.3f}" for mean, half in (cell.short, cell.long, cell.gain, cell.imbalance)]
        columns = (*numbers, cell.violation_rank, cell.drift_rank)
        lines.append(f"  {cell.kind:10}  {cell.weight:4g}  " + "  ".join(f"{column!s:20}" for column in columns))
    return "\n".join(lines)


def words_and_prefixes(kinds: list[str], architecture: str, seeds: int, out: Path, *, quick: bool) -> None:
    """The second form: figure, caption and data."""
    few = {"minimal": {"steps": 50, "n_train": 2000, "n_test": 500}, "standard": {"steps": 5, "n_closing": 20}}[
        architecture
    ]
    settings = {"embedding": "one-hot"} if architecture == "minimal" else {}
    settings |= {"seeds": 4, **few} if quick else {"seeds": seeds}
    runs = words.trained(architecture, kinds=kinds, store=out / "store", progress=True, **settings)
    print(regimes(runs))
    name = "dyck_words" if architecture == "minimal" else "deep_dyck_words"
    save_dataset(runs, out / f"{name}.nc")
    print(figures.save_all({name: runs}, out, among=words.FIGURES))


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="dyck_balance", quick="three or four seeds, few steps")
    script.add_argument("--seeds", type=int, default=4, help="seeds per setting, 3 or more; the findings have 20")
    script.add_argument("--kind", nargs="+", choices=KINDS, help="train on these, at all positions")
    script.add_argument("--architecture", choices=ARCHITECTURES, default="minimal", help="with --kind")
    script.add_argument("--parts", action="store_true", help="with and without LN and a feed-forward part")
    options = script.options(arguments)
    out = options.out
    with script.refusing():
        seeds = checks.integer("--seeds", options.seeds, minimum=4 if options.kind else 3)
    if options.kind:
        with script.refusing():
            words_and_prefixes(options.kind, options.architecture, seeds, out, quick=options.quick)
        return 0
    size = {"seeds": 3, "steps": 50} if options.quick else {"seeds": seeds, "steps": 1000}
    print(exact_layers(), flush=True)
    print(pruned_transformer(), flush=True)
    flow = over_training.flow_and_sgd(**({"t_end": 50.0, "n_times": 11} if options.quick else {}))
    print(limits(flow), flush=True)
    runs = {
        "dyck_length": dyck.trained(contrast_weight=(0.0, 1.0, 10.0), scale=(0.1,), progress=True, **size),
        "dyck_variation": dyck.trained(embedding=dyck.ARCHITECTURES, scale=(0.1, 1.0), progress=True, **size),
        "dyck_balance_over_training": flow,
        "dyck_balanced_layers": None,
    }
    if options.parts:
        entries = {entry.name: entry for entry in parts.FIGURES}
        more = {"scales": (1.0,)} if options.quick else {"store": out / "variants"}
        runs["dyck_architecture"] = parts.grid(progress=True, **size, **more)
        runs["dyck_residual_link"] = parts.residual_link()
        for name in ("dyck_architecture", "dyck_residual_link"):
            print(entries[name].claims(runs[name]), flush=True)
    size["seeds"] = 1
    runs["dyck_attention"] = dyck.trained(embedding=dyck.EMBEDDINGS, eta=embeddings.RATES, progress=True, **size)
    print(lengths(runs["dyck_length"]))
    print(architectures(runs["dyck_variation"]), flush=True)
    for name, data in runs.items():
        if data is not None:
            save_dataset(data, out / f"{name}.nc")
    figures.save_all(runs, out, among=FIGURES)
    print(f"Figures, captions and data are in {out}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
