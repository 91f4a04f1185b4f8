"""Ordinary 2- and 3-layer transformers on bounded Dyck languages: attention variation, regulariser, long prefixes.

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Figures 1, 3 and 10 and Table 1: Adam, sequences of fewer than
28 brackets behind START, next-token cross-entropy. yzflow-deep is needed to train, not to look at results.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks, distributions

if TYPE_CHECKING:
    from yzflow_deep import Sequences, Transformer

LENGTHS = {"below 28": (1, 27), "400-500": (400, 500)}
WIDTH = 32
ETA = 3e-3
STEPS = 1000
SEEDS = 4
_LONGEST = 26  # of the training words
_ROWS, _COLUMNS = 16, 32  # prefixes are filled up to multiples of these, for which a model is compiled once


@functools.lru_cache(maxsize=4)
def data(language: DyckLanguage, *, kind: str = "word", n: int = 10_000, seed: int = 0) -> Sequences:
    """Training sequences, drawn targets; words or prefixes of fewer than 28 brackets."""
    deep = distributions.bring("yzflow_deep")

    longest = _LONGEST if kind == "word" else _LONGEST + 1
    drawn = language.sample_sequences(n, max_length=longest, rng=np.random.default_rng([seed, 0]), kind=kind)
    return deep.dyck_sequences(language, drawn, length=_LONGEST + 2)


def of_data(data_seed: int, first: int = 0) -> str:
    """End of a stored run's name: nothing for the data seed that runs had before it was named."""
    return "" if data_seed == first else f"-data{data_seed}"


@functools.lru_cache(maxsize=8)
def open_prefixes(language: DyckLanguage, span: tuple[int, int], *, n: int = 500, seed: int = 0) -> list[np.ndarray]:
    """Random prefixes with an open bracket, of lengths in ``span``."""
    rng = np.random.default_rng([seed, 1])
    drawn = language.sample_sequences(4 * n, min_length=span[0], max_length=span[1], rng=rng)
    return [prefix for prefix in drawn if np.sum(1 - 2 * (prefix % 2)) > 0][:n]


def closes_right(model: Transformer, language: DyckLanguage, prefixes: Sequence[np.ndarray]) -> np.ndarray:
    """Whether the right closing bracket has the largest of the k closing logits, after the last bracket of each prefix.

    Its mean is what `yz.balance.closing_accuracy` measures of a layer; each prefix must have an unmatched bracket.
    """
    found = closing_logits(model, language, prefixes).argmax(axis=1)
    right = np.array([language.stack(prefix)[-1] for prefix in prefixes])
    return found == right


def closing_logits(model: Transformer, language: DyckLanguage, prefixes: Sequence[np.ndarray]) -> np.ndarray:
    """Logits of the k closing brackets after the last bracket of each prefix: (prefixes, k)."""
    longest, rows = max(prefix.size for prefix in prefixes) + 1, -(-len(prefixes) // _ROWS) * _ROWS
    if model.architecture.positions != "learned":  # what stands behind a position does not change it
        longest = -(-longest // _COLUMNS) * _COLUMNS
    tokens = np.full((rows, longest), language.n_brackets, dtype=np.int32)
    last = np.zeros(rows, dtype=np.int32)
    for row, prefix in enumerate(prefixes):
        tokens[row, 1 : prefix.size + 1] = prefix
        last[row] = prefix.size
    logits = _last_logits()
    found = [logits(model, tokens[n : n + _ROWS], last[n : n + _ROWS]) for n in range(0, rows, _ROWS)]
    return np.concatenate(found)[: len(prefixes), 1::2]


@functools.cache
def _last_logits():
    import equinox as eqx
    import jax

    def one(model, sequence, last):
        return model.decode(model.hidden(sequence)[0][last])

    return eqx.filter_jit(lambda model, tokens, last: jax.vmap(functools.partial(one, model))(tokens, last))


def trained(
    language: DyckLanguage = dyck.LANGUAGE,
    *,
    n_layers: int = 2,
    positions: str | None = None,
    norm: str = "before",
    contrast_weight: float = 0.0,
    kind: str = "word",
    eta: float = ETA,
    steps: int = STEPS,
    seeds: int | Sequence[int] = SEEDS,
    batch_size: int = 64,
    n_test: int = 500,
    data_seed: int = 0,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Train a GPT by Adam on one language at several seeds and measure it.

    Parameters
    ----------
    language : DyckLanguage
    n_layers : int
    positions : None, "learned", "sinusoidal" or "linear"
        As in `yzflow_deep.Architecture`; only the last two reach prefixes longer than the training ones.
    norm : "before" or "mixture"
        LayerNorm before each part, as in a GPT, or behind attention and before the residual link, as in (6).
    contrast_weight : float
        Weight of the regulariser (22).
    kind : "word" or "prefix"
        What it trains on: words (Section 4) or prefixes (Appendix D.2).
    eta, steps, seeds, batch_size, progress
        As in `yzflow_deep.train`.
    n_test : int
        Test prefixes of each of `LENGTHS`.
    data_seed : int
        Of the training sequences.
    store : path, optional
        A folder of checkpoints, one for each setting: where there is one, training goes on from it, and what is trained
        already is not trained again.

    Returns
    -------
    xarray.Dataset
        That of `yzflow_deep.train`, its attention on `training.probe_prefix`, with ``accuracy(seed, length)``, and
        ``accuracy_after_closing(seed, length)`` of the prefixes whose last bracket closes: after an open one its own
        type is right, which a model may know and guess elsewhere.
    """
    deep = distributions.bring("yzflow_deep")

    place = {"linear": 512, "learned": 2 * _LONGEST}.get(positions or "")
    architecture = deep.Architecture(
        language.n_brackets + 1, n_outputs=language.n_brackets, tied=False, n_layers=n_layers, width=WIDTH,
        positions=positions, max_length=place, norm=norm,
    )  # fmt: skip
    probe = np.append(language.n_brackets, dyck.probe_prefix(language))[None]
    name = f"k{language.n_types}-D{language.max_depth}-{n_layers}layers-{positions}-{kind}-{contrast_weight:g}"
    name += ("" if norm == "before" else f"-{norm}") + f"{of_data(data_seed)}.npz"
    runs = deep.train(
        architecture,
        data(language, kind=checks.one_of("kind", kind, ("word", "prefix")), seed=data_seed),
        learning_rate=eta,
        steps=steps,
        optimizer="adam",
        seeds=seeds,
        batch_size=batch_size,
        probe=probe,
        contrast=deep.dyck_insertions(language) if contrast_weight > 0 else None,
        contrast_weight=contrast_weight,
        record_every=max(1, steps // 5),
        checkpoint=None if store is None else Path(store) / name,
        progress=progress,
    ).isel(learning_rate=0)
    spans = {name: span for name, span in LENGTHS.items() if positions != "learned" or span[1] < 2 * _LONGEST}
    prefixes = [open_prefixes(language, span, n=n_test) for span in spans.values()]
    models = [deep.model_at(runs.expand_dims("learning_rate"), seed=seed) for seed in runs["seed"].values]
    right = [[closes_right(model, language, some) for some in prefixes] for model in models]
    closed = [np.array([prefix[-1] % 2 == 1 for prefix in some]) for some in prefixes]
    attributes = {"long_name": "share of closing brackets whose type is found", "units": "1"}
    runs["accuracy"] = (("seed", "length"), [[some.mean() for some in row] for row in right], attributes)
    hard = [[some[one].mean() for some, one in zip(row, closed, strict=True)] for row in right]
    attributes = attributes | {"long_name": "the same, of prefixes whose last bracket closes"}
    runs["accuracy_after_closing"] = (("seed", "length"), hard, attributes)
    return runs.assign_coords(length=list(spans)).assign_attrs(
        k=language.n_types, D=language.max_depth, n_layers=n_layers
    )
