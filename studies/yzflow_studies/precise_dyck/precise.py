"""Ordinary transformers trained until nearly every closing bracket of short words is right (Table 1).

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Section 4.1, Appendix D.3 and Table 1. The paper measures
attention of models that predict short words all but perfectly. Each seed here is trained until held-out words say so,
or a limit of steps is met. yzflow-deep is needed.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks, distributions, sealed
from dynamics.support.netcdf import kept
from yzflow import intervals
from yzflow_studies.dyck_embeddings.study import random_variation, stack_share, variation
from yzflow_studies.ordinary_dyck import deep as deep_dyck
from yzflow_studies.ordinary_dyck.study import TABLE

if TYPE_CHECKING:
    from yzflow_deep import Sequences, Transformer

_FORMAT = "yzflow-deep-1"  # that of `yzflow_deep.train`
TARGET = 0.999  # of the closing brackets of short words
SEEDS = 8
ETA = 1e-3
BATCH_SIZE = 16
MOST_STEPS = 12_000
CHECK_EVERY = 1000  # steps between two looks at held-out words
N_TRAIN = 40_000
SPANS = {"below 28": (2, 26), "400-500": (400, 500)}
_DRAWS = {"held out": 2, "below 28": 3, "400-500": 4}  # of random numbers, beside those of `deep.data`


@functools.lru_cache(maxsize=16)
def words(language: DyckLanguage, name: str, *, n: int, seed: int = 0) -> Sequences:
    """Random words: those that decide when training ends, "held out", or those of one of `SPANS`, to test on.

    Of the long ones only closing brackets from position 400 on count.
    """
    deep = distributions.bring("yzflow_deep")

    checks.one_of("name", name, tuple(_DRAWS))
    span = SPANS.get(name, SPANS["below 28"])
    rng = np.random.default_rng([seed, _DRAWS[name]])
    drawn = language.sample_sequences(n, min_length=span[0], max_length=span[1], rng=rng, kind="word")
    sequences = deep.dyck_sequences(language, drawn, length=span[1] + 2)
    counted = np.arange(span[1] + 2) >= (span[0] if name == "400-500" else 0)
    return deep.Sequences(sequences.inputs, sequences.targets, sequences.mask & counted)


def closings(model: Transformer, sequences: Sequences) -> dict[str, float]:
    """Share of the closing brackets of words whose type has the largest of the k closing logits.

    Returns
    -------
    dict
        "all" of them, and those "after closing" one, where a model cannot tell the type from the last bracket alone.
        After an open bracket it can.
    """
    found = 2 * np.asarray(_forward()(model, sequences.inputs))[..., 1::2].argmax(axis=-1) + 1
    closing = sequences.mask & (sequences.targets % 2 == 1)
    after = closing & (sequences.inputs % 2 == 1)  # START has an even number
    right = found == sequences.targets
    return {"all": float(right[closing].mean()), "after closing": float(right[after].mean())}


@functools.cache
def _forward():
    import equinox as eqx
    import jax

    return eqx.filter_jit(lambda model, rows: jax.lax.map(model, rows, batch_size=8))


def trained(
    language: DyckLanguage = dyck.LANGUAGE,
    *,
    n_layers: int = 2,
    n_heads: int = 1,
    seeds: int | Sequence[int] = SEEDS,
    target: float = TARGET,
    most_steps: int = MOST_STEPS,
    check_every: int = CHECK_EVERY,
    eta: float = ETA,
    batch_size: int = BATCH_SIZE,
    n_train: int = N_TRAIN,
    n_test: int = 1000,
    n_long: int = 100,
    data_seed: int = 0,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Train each seed of a GPT without positions on words until ``target``, and measure it.

    Every ``check_every`` steps the closing brackets of ``n_test`` held-out words are counted; the first time that a
    share ``target`` of them is right ends the training of a seed. Accuracies come from other words.

    Parameters
    ----------
    language : DyckLanguage
    n_layers, n_heads : int
        Of the architecture, which is else that of `deep.trained`.
    seeds : int or sequence of int
    target : float
        In (0, 1].
    most_steps, check_every : int
        The first is a multiple of the second.
    eta, batch_size
        As in `yzflow_deep.train`.
    n_train, n_test, n_long : int
        Words to train on; held-out and short test words; long test words.
    data_seed : int
        Of the words to train on.
    store : path, optional
        A folder with a file for each seed that is done, which is not trained again.

    Returns
    -------
    xarray.Dataset
        Over seed: ``steps`` taken, ``reached`` (whether the target was), ``accuracy(span, closing)``, ``attention(time,
        layer, head, row, position)`` on `training.probe_prefix` at the start and the end, ``parameters``, for
        `models`.
    """
    deep = distributions.bring("yzflow_deep")

    target = checks.positive("target", target)
    if target > 1:
        raise checks.reject("target", "be at most 1", target)
    check_every = checks.integer("check_every", check_every, minimum=1)
    if checks.integer("most_steps", most_steps, minimum=1) % check_every:
        raise checks.reject("most_steps", f"be a multiple of the {check_every} of `check_every`", most_steps)
    architecture = deep.Architecture(
        language.n_brackets + 1, n_outputs=language.n_brackets, tied=False, n_layers=n_layers, n_heads=n_heads,
        width=deep_dyck.WIDTH,
    )  # fmt: skip
    settings: dict[str, Any] = {"learning_rate": eta, "batch_size": batch_size, "optimizer": "adam"}
    settings |= {"probe": np.append(language.n_brackets, dyck.probe_prefix(language))[None]}
    settings |= {"record_every": most_steps, "progress": progress}
    held_out = words(language, "held out", n=n_test)
    samples = deep_dyck.data(language, n=n_train, seed=data_seed)

    def one(seed: int) -> xr.Dataset:
        with tempfile.TemporaryDirectory() as folder:
            for steps in range(check_every, most_steps + 1, check_every):
                going: dict[str, Any] = {"steps": steps, "seeds": [seed], "checkpoint": Path(folder) / "state.npz"}
                runs = deep.train(architecture, samples, **settings, **going)
                share = closings(deep.model_at(runs), held_out)["all"]
                if share >= target:
                    break
        ends = runs.isel(time=[0, -1], probe=0, drop=True)[["attention", "parameters"]].isel(learning_rate=0, drop=True)
        ends = ends.assign_coords(time=["start", "end"])
        counts = {"steps": ("seed", [steps]), "reached": ("seed", [int(share >= target)])}
        return ends.assign(counts).assign_attrs(runs.attrs)

    name = f"k{language.n_types}-D{language.max_depth}-{n_layers}layers-{n_heads}heads"
    name += (
        f"-{target:g}-{most_steps}-{check_every}-{eta:g}-{batch_size}-{n_train}-{n_test}{deep_dyck.of_data(data_seed)}"
    )
    parts = []
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        path = None if store is None else Path(store) / f"{name}-seed{seed}.nc"
        parts.append(kept(path, _FORMAT, sealed.kinds()[_FORMAT], functools.partial(one, int(seed))))
    runs = xr.concat(parts, "seed", combine_attrs="override").drop_encoding()
    tests = {"below 28": words(language, "below 28", n=n_test), "400-500": words(language, "400-500", n=n_long)}
    found = [[list(closings(model, some).values()) for some in tests.values()] for model in models(runs)]
    runs["accuracy"] = (("seed", "span", "closing"), found, {"long_name": "closing brackets found", "units": "1"})
    sizes = {"k": language.n_types, "D": language.max_depth, "n_layers": n_layers, "target": target}
    return runs.assign_coords(span=list(tests), closing=["all", "after closing"]).assign_attrs(sizes)


def models(runs: xr.Dataset) -> list[Transformer]:
    """The transformers at the end of `trained`, seed by seed."""
    deep = distributions.bring("yzflow_deep")

    whole = runs.expand_dims(learning_rate=[0.0])
    return [deep.model_at(whole, seed=seed) for seed in runs["seed"].values]


def table(*, rows: Sequence[tuple[int, int, int]] = TABLE, **arguments: Any) -> xr.Dataset:
    """Table 1 of models that are trained until the target: over (setting, layer) and (setting, seed).

    Parameters
    ----------
    rows : sequence of (k, D, layers)
    **arguments
        Of `trained`; three seeds at least.

    Returns
    -------
    xarray.Dataset
        ``variation``, its jackknife ``standard_error`` and ``half`` of its 95% interval over (setting, layer), with
        ``start`` and ``random`` rows;
        ``stack_share`` (setting, layer, seed), ``steps``, ``reached`` and ``accuracy`` by seed.
    """
    found = []
    for k, D, n_layers in rows:
        language = DyckLanguage(k, D)
        runs = trained(language, n_layers=n_layers, **arguments)
        maps = runs["attention"].isel(head=0)
        start, end = (variation(maps.sel(time=time, drop=True)) for time in ("start", "end"))
        cell = runs[["steps", "reached", "accuracy"]]
        cell = cell.assign(variation=end["mean"], standard_error=end["standard_error"], half=end["half"])
        cell["start"] = start["mean"]
        cell["random"] = random_variation(maps.sizes["row"])
        cell["stack_share"] = stack_share(maps.sel(time="end", drop=True), language)
        found.append(cell.reindex(layer=[1, 2, 3]))
    names = [f"k = {k}, D = {D}, {layers} layers" for k, D, layers in rows]
    return xr.concat(found, "setting", combine_attrs="drop").assign_coords(setting=names)


def report(found: xr.Dataset) -> str:
    """The rows of `table` as text, with standard errors over seeds (of the start and of the batches alone)."""
    n = found.sizes["seed"]
    lines = [f"Trained until short words are right, {n} seeds: attention variation by layer, accuracy after closing"]
    for setting in found["setting"].values:
        row = found.sel(setting=setting)
        steps = row["steps"].where(row["reached"] == 1).dropna("seed").values.astype(int)
        cells = [
            f"{float(row['variation'].sel(layer=layer)):.2f} +- {float(row['standard_error'].sel(layer=layer)):.2f}"
            for layer in row["layer"].values
            if np.isfinite(row["variation"].sel(layer=layer))
        ]
        parts = []
        for span in row["span"].values:
            values = row["accuracy"].sel(span=span, closing="after closing")
            parts.append(f"{span}: {float(values.mean()):.4f} +- {float(intervals.standard_error(values)):.4f}")
        when = f", at steps {steps.min()} to {steps.max()}" if steps.size else ""
        lines.append(
            f"  {setting}: {steps.size} of {n} seeds{when}; {', '.join(cells)} (random rows "
            f"{float(row['random']):.2f}); {', '.join(parts)}"
        )
    return "\n".join(lines)
