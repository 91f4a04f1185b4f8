"""Theorem 3 of Wen et al. 2023 (arXiv 2312.01429) run: how wide a random Transformer must be for which error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynamics.support import checks
from dynamics.support.progress import Progress
from theory.bounded_dyck import lottery, subset_law, transformers

# Of the given Transformers: numbers a token, rows of keys and queries, hidden units; every singular value; LN's floor.
WIDTH, ATTENTION, HIDDEN, NORM, FLOOR = 4, 4, 8, 1.0, 1.0
NUMBERS = (6, 8, 10, 12, 14, 16, 18, 20, 22)
SPARE = (0, 2, 4, 8)
INPUTS, LENGTH = 500, 6


def given(n_layers: int, rng: np.random.Generator) -> transformers.Transformer:
    """A random Transformer to prune others to, at the limit of what the theorem allows: all singular values are one."""
    return transformers.random_transformer(WIDTH, ATTENTION, [HIDDEN], n_layers, rng, floor=FLOOR, norm=NORM)


def inputs(rng: np.random.Generator, n: int = INPUTS) -> np.ndarray:
    """Inputs of tokens of norm one: (n, length, width)."""
    tokens = rng.normal(size=(n, LENGTH, WIDTH))
    return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)


def width_law(
    *,
    numbers: Sequence[int] = NUMBERS,
    layers: Sequence[int] = (1, 2, 3),
    spare: Sequence[int] = SPARE,
    seeds: int = 20,
    progress: bool = False,
) -> xr.Dataset:
    """Certificates and sampled errors of pruned random Transformers by width, and by layers that are the identity.

    Parameters
    ----------
    numbers : sequence of int
        Products that each weight is a sum of; every hidden layer of the random Transformer is proportional to it.
    layers : sequence of int
        Of the given Transformer; two spare layers stand behind.
    spare : sequence of int
        Layers pruned to the identity, for given Transformers of one layer, at the middle one of ``numbers``.
    seeds : int
        Pairs of a given and a random Transformer, all drawn anew for each case.
    progress : bool
    """
    seeds = checks.integer("seeds", seeds, minimum=2)
    by_width = np.full((4, len(layers), len(numbers), seeds), np.nan)
    by_spare = np.full((2, len(spare), seeds), np.nan)
    middle = numbers[len(numbers) // 2]
    with Progress("pruning", enabled=progress) as shown:
        for seed in range(seeds):
            for (i, n_layers), (j, n) in [(a, b) for a in enumerate(layers) for b in enumerate(numbers)]:
                by_width[:, i, j, seed] = _one(n_layers, n, 2, np.random.default_rng([seed, n_layers, n]))
            for i, more in enumerate(spare):
                found = _one(1, middle, more, np.random.default_rng([seed, 1, middle, more]))
                by_spare[:, i, seed] = found[0], found[2]
            shown.update((seed + 1) / seeds)
    names = ("certificate", "certificate_on_inputs", "error", "law")
    return xr.Dataset(
        {
            **{name: (("layers", "n", "seed"), values) for name, values in zip(names, by_width, strict=True)},
            **{f"{name}_spare": (("spare", "seed"), by_spare[i]) for i, name in enumerate(("certificate", "error"))},
        },
        coords={"layers": list(layers), "n": list(numbers), "seed": np.arange(seeds), "spare": list(spare)},
        attrs={"n_spare": middle, "width": WIDTH, "hidden": HIDDEN, "norm": NORM, "floor": FLOOR, "inputs": INPUTS},
    )


def _one(n_layers: int, n: int, spare: int, rng: np.random.Generator) -> tuple[float, float, float, float]:
    target = given(n_layers, rng)
    random = lottery.room_for(target, n, rng, spare=spare)
    pruned = lottery.prune_transformer(target, random)
    tokens = inputs(rng)
    return (
        pruned.certificate(),
        pruned.certificate_on(tokens),
        pruned.error(tokens),
        subset_law.expected(pruned, rng).certificate(),
    )
