"""Ordinary transformers on text: entropy of attention against learning rates, and attention over training.

Setting: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Figures 7 and 10 and Appendix G. yzflow-deep is needed to
train, not to look at results.
"""

from __future__ import annotations

import json
import os
import runpy
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.figure import Figure

from dynamics.data.text import TextCorpus
from dynamics.support import checks, distributions
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, ordered_colours, styled
from yzflow_studies import CLONE
from yzflow_studies.maps import causal_map

if TYPE_CHECKING:
    from yzflow_deep import Sequences

    from dynamics import Optimizer

RATES = (0.05, 0.1, 0.2, 0.4)
SEEDS = 5
VOCAB_SIZE = 1000
LENGTH = 64
WIDTH = 32
STEPS = 400
# Training until attention gets no sparser: one layer, one rate, a real vocabulary, long windows.
FLATTENING = {"rates": (0.4,), "seeds": 1, "length": 128, "batch_size": 8, "steps": 7000, "records": 100}
FLATTENING_VOCAB_SIZE = 10_000
TOLERANCE = 0.05  # of the entropy of uniform attention
_VALIDATION = 32  # windows
TEXTS = CLONE / "examples" / "public_texts.py"


def synthetic_text(
    n: int, *, vocab_size: int = VOCAB_SIZE, n_topics: int = 10, rng: int | np.random.Generator = 0
) -> np.ndarray:
    """A heavy-tailed text with something to attend to, for runs without a real one.

    Stretches of 100 tokens have one of ``n_topics`` topics. Half of the tokens follow Zipf's law, probability in
    proportion to 1 / (rank + 1); half follow it over the topic's own order of the vocabulary. A token is the better
    predicted the more tokens of its topic were seen.
    """
    n, vocab_size = checks.integer("n", n, minimum=1), checks.integer("vocab_size", vocab_size, minimum=2)
    rng = np.random.default_rng(rng)
    law = 1 / np.arange(2, vocab_size + 2)
    rank = rng.choice(vocab_size, size=n, p=law / law.sum())
    orders = np.stack([rng.permutation(vocab_size) for _ in range(checks.integer("n_topics", n_topics, minimum=1))])
    topic = np.repeat(rng.integers(len(orders), size=n // 100 + 1), 100)[:n]
    return np.where(rng.random(n) < 0.5, rank, orders[topic, rank])


def read(text: str, vocabulary: int) -> np.ndarray:
    """The tokens of one of the texts of `examples/public_texts.py`."""
    with tempfile.TemporaryDirectory() as folder:
        path = runpy.run_path(str(TEXTS))["write"](text, Path(folder) / "text.txt")
        return TextCorpus(path, vocab_size=vocabulary, tokenizer="words").tokens


def split(
    tokens: npt.ArrayLike, *, length: int = LENGTH, n_validation: int = _VALIDATION
) -> tuple[Sequences, Sequences]:
    """Windows of a text to train on, and every so many-th of them, ``n_validation`` in all, to measure on."""
    deep = distributions.bring("yzflow_deep")

    windows = deep.Sequences.from_tokens(tokens, length=length)
    if len(windows) < 2 * n_validation:
        raise checks.reject(
            "tokens", f"hold at least {2 * n_validation} windows of {length}", f"{len(windows)} of them"
        )
    held_out = np.zeros(len(windows), dtype=bool)
    held_out[np.linspace(0, len(windows) - 1, n_validation).astype(int)] = True
    return windows[~held_out], windows[held_out]


def trained(
    tokens: npt.ArrayLike | None = None,
    *,
    rates: Sequence[float] = RATES,
    seeds: int | Sequence[int] = SEEDS,
    n_layers: int = 1,
    steps: int = STEPS,
    length: int = LENGTH,
    width: int = WIDTH,
    batch_size: int = 16,
    records: int = 20,
    optimizer: Optimizer | None = None,
    probe: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    progress: bool = False,
    **architecture: Any,
) -> xr.Dataset:
    """`yzflow_deep.train` on windows of a text by SGD without momentum, at several learning rates and seeds.

    Parameters
    ----------
    tokens : (n,) int, optional
        The text. Default: `synthetic_text`.
    rates, seeds, steps, batch_size, checkpoint, progress
        As in `yzflow_deep.train`.
    n_layers, width, **architecture
        Of `yzflow_deep.Architecture`; the defaults are a GPT without positions.
    length : int
        T of the windows.
    records : int
        Times at which attention is recorded, beside the first.
    optimizer : dynamics.Optimizer, optional
        Default: SGD without momentum.
    probe : int, optional
        How many of the validation windows have their maps recorded. Default: all.
    """
    deep = distributions.bring("yzflow_deep")

    tokens = synthetic_text(200_000) if tokens is None else tokens
    train, validation = split(tokens, length=length)
    size = int(np.max(tokens)) + 1
    return deep.train(
        deep.Architecture(size, n_layers=n_layers, width=width, **architecture),
        train,
        learning_rate=rates,
        steps=steps,
        **({"momentum": 0.0} if optimizer is None else {"optimizer": optimizer}),
        batch_size=batch_size,
        seeds=seeds,
        validation=validation,
        probe=None if probe is None else validation.inputs[:probe],
        record_every=max(1, steps // checks.integer("records", records, minimum=1)),
        checkpoint=checkpoint,
        progress=progress,
    )


def final_entropy(runs: xr.Dataset) -> xr.Dataset:
    """Entropy of attention at the end over (learning_rate, layer): mean over heads and seeds, and its standard error.

    ``half`` of its 95% interval is Student's t times that.

    Runs that diverged are left out.
    """
    end = runs["entropy"].isel(time=-1).mean("head").where(runs["diverged"] < 0)
    n = end.count("seed")
    error = intervals.standard_error(end)
    return xr.Dataset({"mean": end.mean("seed"), "standard_error": error, "half": intervals.of_mean(end), "n": n})


def flattened(runs: xr.Dataset, *, tolerance: float = TOLERANCE) -> xr.DataArray:
    """The first record from which on the entropy of attention falls no more, up to the end of the run.

    "No more": between no two later records by more than ``tolerance`` x the entropy of uniform attention. It may rise.
    Over (learning_rate, seed, layer), mean over heads, in SGD steps. nan unless that is seen for as long again as it
    took: time runs at least to twice that record. A pause in the fall thus counts only if the run ends in it.
    """
    entropy = runs["entropy"].mean("head").transpose(..., "time")
    backwards = entropy.values[..., ::-1]
    fall_after = np.maximum.accumulate(backwards - np.minimum.accumulate(backwards, axis=-1), axis=-1)
    time = runs["time"].values
    most = checks.positive("tolerance", tolerance) * float(runs["uniform_entropy"])
    flat = (fall_after[..., ::-1] <= most) & (2 * time <= time[-1])
    since = np.where(flat.any(axis=-1), time[flat.argmax(axis=-1)], np.nan)
    attributes = {"long_name": "entropy of attention falls no more", "units": "SGD steps"}
    return entropy.isel(time=0, drop=True).copy(data=since).assign_attrs(attributes)


def movement(runs: xr.Dataset) -> xr.DataArray:
    """How fast attention moves: total variation between the maps of two records, mean over rows, per 100 steps.

    Over (.., time, layer), times in the middle of two records. Attention that froze has none.
    """
    attention = runs["attention"]
    steps = runs["time"].diff("time")
    change = 0.5 * abs(attention.diff("time")).sum("position").isel(row=slice(1, None)).mean(("row", "probe", "head"))
    middle = runs["time"].values[:-1] + steps.values / 2
    moved = (100 * change / steps).assign_coords(time=middle)
    return moved.assign_attrs(long_name="movement of attention", units="1 / 100 steps")


# The figures


def _rates_and_seeds(effort: Effort) -> xr.Dataset:
    """On a synthetic text."""
    few: dict[str, Any] = {"rates": (0.1, 0.4), "seeds": 2, "steps": 300} if effort.quick else {}
    return trained(progress=effort.progress, **few)


def _one_and_three_layers(effort: Effort) -> dict[int, xr.Dataset]:
    """On a synthetic text."""
    steps = 100 if effort.quick else 1000
    return {
        layers: trained(n_layers=layers, rates=[0.2], seeds=1, steps=steps, progress=effort.progress)
        for layers in (1, 3)
    }


@styled
def deep_entropy(runs: xr.Dataset) -> Figure:
    """Entropy of attention of an ordinary transformer over training and at its end, by learning rate (Fig. 10).

    Bars and bands are 95% intervals of the mean over seeds (Student's t). Entropy first rises while the decoder learns
    frequencies, and then falls, both sooner at larger rates: runs of some ten steps show the rise only. Agrees with the
    paper in that, after the same number of several hundred steps of SGD, entropy is lower at larger rates; at equal
    learning rate x steps it differs less. Rates are not those of the paper, whose normalisation is another.

    Parameters
    ----------
    runs : xarray.Dataset
        From `trained`.
    """
    rates = runs["learning_rate"].values
    figure = canvas(figsize=(9.6, 3.7))
    over_time, at_end = figure.subplots(1, 2, sharey=True)
    uniform = float(runs["uniform_entropy"])
    per_seed = runs["entropy"].where(runs["diverged"] < 0).mean("head")
    mean, error = per_seed.mean("seed"), intervals.of_mean(per_seed)
    for rate, shade in zip(rates, ordered_colours(len(rates)), strict=True):
        line, spread = (part.sel(learning_rate=rate).isel(layer=0).values for part in (mean, error))
        time = runs["time"].values
        over_time.plot(time, line, color=shade, label=rf"$\eta$ = {rate:g}")
        over_time.fill_between(time, line - spread, line + spread, color=shade, alpha=0.25, linewidth=0)
    end = final_entropy(runs)
    for number, layer in enumerate(runs["layer"].values):
        cell = end.sel(layer=layer)
        colour, style = CATEGORIES[number]
        values, errors = cell["mean"].values, cell["half"].values
        at_end.errorbar(rates, values, errors, fmt=f"o{style}", color=colour, capsize=3, label=f"layer {layer}")
    for axes in (over_time, at_end):
        label = "uniform attention" if axes is over_time else None
        axes.axhline(uniform, color=BLACK, linewidth=0.8, linestyle=":", label=label)
    over_time.set_ylabel("entropy of attention (nats)")
    over_time.set(xlabel="SGD steps", title="first layer, over training")
    at_end.set(xlabel=r"learning rate $\eta$ (1 / step)", title=f"after {runs.sizes['step']} steps", xscale="log")
    at_end.set_xticks(rates, [f"{rate:g}" for rate in rates], minor=False)
    at_end.minorticks_off()
    handles, labels = over_time.get_legend_handles_labels()
    layers, names = at_end.get_legend_handles_labels()
    figure.legend(handles + layers, labels + names, loc="outside right center")
    figure.suptitle(f"Ordinary transformer on text, SGD, {runs.sizes['seed']} seeds")
    return figure


@styled
def deep_attention(runs: Mapping[int, xr.Dataset]) -> Figure:
    """Attention of the first layer at the start of a window of text over training, and how fast it moves (Fig. 7).

    A row for each number of layers. Maps show the first positions of a held-out window, with its tokens; queries do not
    see later keys, which are blank. Movement is that of the whole window. Agrees with the paper in part: attention
    becomes sparse and, while the learning rate stays the same, moves less after an early burst; within these runs it
    slows down and does not stop.

    Parameters
    ----------
    runs : mapping from number of layers to xarray.Dataset
        From `trained`; the first rate, seed, window and head are drawn, with the words of
        ``probe_words(probe, position)`` where there are some.
    """
    shown = 3
    figure = canvas(figsize=(12.5, 3.6 * len(runs) + 0.5))
    panels = figure.subplots(len(runs), shown + 1, squeeze=False, width_ratios=[1] * shown + [0.9])
    for row, (layers, run) in zip(panels, runs.items(), strict=True):
        run = run.isel(learning_rate=0, seed=0)
        words = _words(run)
        times = np.unique(np.linspace(0, run.sizes["time"] - 1, shown).round().astype(int))
        for axes, time in zip(row, times, strict=False):
            maps = run["attention"].isel(time=time, probe=0, layer=0, head=0).values
            image = causal_map(axes, maps[: len(words), : len(words)], labels=words, largest=0.5)
            axes.tick_params(axis="x", rotation=90)
            axes.set_title(f"step {int(run['time'].values[time])}")
            axes.set_xlabel("key")
            if axes is not row[0]:
                axes.tick_params(labelleft=False)
        for axes in row[len(times) : shown]:
            axes.set_visible(False)
        row[0].set_ylabel(f"{layers} layer{'s' * (layers > 1)}\nquery")
        moved = movement(run)
        for number, layer in enumerate(moved["layer"].values):
            colour, style = CATEGORIES[number]
            line = moved.sel(layer=layer)
            row[-1].plot(line["time"], line, color=colour, linestyle=style, label=f"layer {layer}")
        row[-1].set(xlabel="SGD steps", ylabel="total variation\nper 100 steps", ylim=(0, None), title="movement")
        row[-1].legend()
    figure.colorbar(image, ax=panels[:, :shown], label="attention", shrink=0.7, extend="max", location="left")
    figure.suptitle("First layer of an ordinary transformer over training, at one learning rate")
    return figure


_SHOWN_WORDS = 20  # positions of a window whose labels can still be read
_LETTERS = 12


def _words(run: xr.Dataset) -> list[str]:
    """Labels of the first positions of the window that is drawn: words, or the ids of a synthetic text."""
    found = run["probe_words"] if "probe_words" in run else run["probe_tokens"]
    first = [str(word) for word in found.isel(probe=0).values[:_SHOWN_WORDS]]
    # A dollar would begin a formula.
    return [word[:_LETTERS].replace("$", r"\$") for word in first]


@styled
def deep_text_flattening(runs: xr.Dataset) -> Figure:
    """Loss and entropy of attention of an ordinary transformer on text over training, at a real vocabulary.

    The dots are where entropy stops falling: from there on it never falls by more than 5% of the entropy of uniform
    attention up to the end of the run, which is at least as long again. Agrees with the paper in that attention gets
    sparser and its entropy then stops falling. How sparse depends on the seed, which the loss hardly shows; and
    attention does not freeze: its entropy rises again, slowly.

    Parameters
    ----------
    runs : xarray.Dataset
        From `trained`, with ``FLATTENING``; the first layer of each rate and seed is drawn.
    """
    figure = canvas(figsize=(9.6, 3.7))
    losses, entropies = figure.subplots(1, 2)
    since = flattened(runs).isel(layer=0)
    rates, seeds = runs["learning_rate"].values, runs["seed"].values
    by_seed = len(rates) == 1  # what colours tell apart
    colours = ordered_colours(len(seeds) if by_seed else len(rates))
    for i, rate in enumerate(rates):
        for j, seed in enumerate(seeds):
            one, flat = runs.sel(learning_rate=rate, seed=seed), float(since.sel(learning_rate=rate, seed=seed))
            colour = colours[j if by_seed else i]
            label = f"seed {seed}" if by_seed else rf"$\eta$ = {rate:g}" if j == 0 else None
            entropy = one["entropy"].isel(layer=0).mean("head")
            losses.plot(one["time"], one["loss"], color=colour)
            entropies.plot(one["time"], entropy, color=colour, label=label)
            if np.isfinite(flat):
                entropies.plot(flat, entropy.sel(time=flat), "o", color=colour, markeredgecolor=BLACK)
    entropies.plot([], [], "o", color="white", markeredgecolor=BLACK, label="falls no more\nfrom here on")
    uniform = float(runs["uniform_entropy"])
    entropies.axhline(uniform, color=BLACK, linewidth=0.8, linestyle=":", label="uniform attention")
    losses.set(xlabel="SGD steps", ylabel="validation loss (nats)", title="loss")
    entropies.set(xlabel="SGD steps", ylabel="entropy of attention (nats)", ylim=(0, None), title="first layer")
    figure.legend(*entropies.get_legend_handles_labels(), loc="outside right center")
    size = json.loads(runs.attrs["parameters"])["architecture"]["vocab_size"]
    which = rf", $\eta$ = {rates[0]:g}" if by_seed else ""
    figure.suptitle(f"Ordinary transformer on text: vocabulary of {size}, windows of {runs.sizes['position']}{which}")
    return figure


FIGURES = (
    Entry("deep_entropy", "Scan and Snap", deep_entropy, _rates_and_seeds, number=10),
    Entry("deep_attention", "Scan and Snap", deep_attention, _one_and_three_layers, number=7),
    Entry("deep_text_flattening", "Scan and Snap", deep_text_flattening, trained_by="yzflow example deep_text"),
)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 5% (what counts as falling, `deep_text`'s default)
# typed: 100 (unit of an array)
# -->
