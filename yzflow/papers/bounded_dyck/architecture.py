"""The same layers with and without LN and a feed-forward part, under the embeddings (19), (20) and (21).

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Fig. 2. The paper's layer (6) has LN and then a feed-forward
part; the layers of its Fig. 2 have, by its Appendix D.1, no residual link, no feed-forward part and no final LN. The
runs are those of `training.trained`, on prefixes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from dynamics import DyckLanguage
from dynamics.data.dyck import EMBEDDINGS
from dynamics.support import checks, sealed
from dynamics.support.netcdf import kept
from yzflow import intervals
from yzflow.papers.bounded_dyck import training as dyck

UNITS = 128  # of the feed-forward part, four times the width
SEEDS = 8  # chosen before any result was seen
VARIANTS: dict[str, dict[str, Any]] = {
    "LN": {},
    "LN, feed-forward": {"hidden": UNITS},
    "no LN": {"norm": False},
    "no LN, feed-forward": {"hidden": UNITS, "norm": False},
}
SCALES = (0.1, 1.0)
_FORMAT = "yzflow-dyck-variant-1"
_WHAT = sealed.KINDS[_FORMAT].what


def grid(
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    embeddings: Sequence[str] = EMBEDDINGS,
    scales: Sequence[float] = SCALES,
    seeds: int = SEEDS,
    steps: int = dyck.STEPS,
    eta: float = dyck.ETA,
    language: DyckLanguage = dyck.LANGUAGE,
    samples: dyck.Data | None = None,
    store: str | os.PathLike | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`training.trained` for each of `VARIANTS`: over (variant, embedding, scale, seed).

    Parameters
    ----------
    variants, embeddings, scales : sequences
    seeds, steps : int
    eta : float
        Learning rate of all weights.
    language, samples, threads, progress
        As in `training.trained`.
    store : path, optional
        A folder with a file for each (variant, embedding) that is done, which is not trained again unless the file is
        damaged.
    """
    samples = dyck.data(language) if samples is None else samples
    drawn = b"".join(bags.token.tobytes() for bags in (samples.train, *samples.test.values()))
    rest = f"k{language.n_types}-D{language.max_depth}-q{language.open_probability:g}-{zlib.crc32(drawn):08x}"
    rest += f"-{'_'.join(f'{scale:g}' for scale in scales)}-{seeds}-{steps}-{eta:g}"
    settings: dict[str, Any] = {"scale": scales, "eta": [eta], "seeds": seeds, "steps": steps, "language": language}
    settings |= {"samples": samples, "threads": threads, "progress": progress}
    parts = []
    for variant in variants:
        checks.one_of("variants", variant, tuple(VARIANTS))
        row = []
        for embedding in embeddings:
            name = f"{variant}-{embedding}-{rest}".replace(" ", "_").replace(",", "")
            path = None if store is None else Path(store) / f"{name}.nc"
            train = partial(_alone, embedding=[embedding], **settings, **VARIANTS[variant])
            row.append(kept(path, _FORMAT, _WHAT, train))
        parts.append(xr.concat(row, "embedding"))
    # What a file says of its own names, their length too, would cut longer ones off in the next file.
    return xr.concat(parts, "variant").assign_coords(variant=list(variants)).drop_encoding()


def _alone(**settings: Any) -> xr.Dataset:
    """`training.trained` at one learning rate, without a contrast."""
    return dyck.trained(**settings).isel(eta=0, contrast_weight=0, drop=True).assign_attrs(format=_FORMAT)


def summary(runs: xr.Dataset) -> xr.Dataset:
    """Means over seeds with standard errors of the seeds alone: start and batches, not the data, vary between them.

    Returns
    -------
    xarray.Dataset
        Over (variant, embedding, scale): ``loss``, ``short`` and ``long`` (accuracy at length < 28, all queries; at
        400-500, closing ones), ``stack_share``, each with its ``.._error``; ``variation`` with its jackknife error.
    """
    language = DyckLanguage(int(runs.attrs["k"]), int(runs.attrs["D"]), float(runs.attrs["q"]))
    found = {
        "loss": runs["loss"],
        "short": runs["accuracy"].sel(length="below 28", query="all", drop=True),
        "long": runs["accuracy"].sel(length="400-500", query="close", drop=True),
        "stack_share": dyck.stack_share(runs["attention"], language),
    }
    result = xr.Dataset()
    for name, values in found.items():
        result[name] = values.mean("seed")
        result[f"{name}_error"] = intervals.standard_error(values)
    varied = dyck.variation(runs["attention"])
    result["variation"], result["variation_error"] = varied["mean"], varied["standard_error"]
    result["start_variation"] = dyck.variation(runs["start_attention"])["mean"]
    sizes = {"seeds": runs.sizes["seed"], "random": dyck.random_variation(runs.sizes["row"])}
    return result.assign_attrs(runs.attrs | sizes)
