"""Ordinary transformers on text: entropy of attention against learning rates, and attention over training.

Setting: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Figures 7 and 10 and Appendix G. The extra ``deep`` is needed to
train, not to look at results.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from dynamics.support import checks
from yzflow import intervals

if TYPE_CHECKING:
    from dynamics.deep import Sequences

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


def split(
    tokens: npt.ArrayLike, *, length: int = LENGTH, n_validation: int = _VALIDATION
) -> tuple[Sequences, Sequences]:
    """Windows of a text to train on, and every so many-th of them, ``n_validation`` in all, to measure on."""
    from dynamics import deep

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
    checkpoint: str | os.PathLike | None = None,
    progress: bool = False,
    **architecture: Any,
) -> xr.Dataset:
    """`dynamics.deep.train` on windows of a text by SGD without momentum, at several learning rates and seeds.

    Parameters
    ----------
    tokens : (n,) int, optional
        The text. Default: `synthetic_text`.
    rates, seeds, steps, batch_size, checkpoint, progress
        As in `dynamics.deep.train`.
    n_layers, width, **architecture
        Of `dynamics.deep.Architecture`; the defaults are a GPT without positions.
    length : int
        T of the windows.
    records : int
        Times at which attention is recorded, beside the first.
    """
    from dynamics import deep

    tokens = synthetic_text(200_000) if tokens is None else tokens
    train, validation = split(tokens, length=length)
    size = int(np.max(tokens)) + 1
    return deep.train(
        deep.Architecture(size, n_layers=n_layers, width=width, **architecture),
        train,
        learning_rate=rates,
        steps=steps,
        momentum=0.0,
        batch_size=batch_size,
        seeds=seeds,
        validation=validation,
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
