"""Whether SGD shows the signs of Theorem 2: how far attention drifts, and how far noise and finite sequences carry it.

Theorem 2 is about T -> infinity and the expected gradient (under the modified decoder). SGD has batches of b sequences
of length T. To first order in 1/b and 1/T (`dynamics.linear_noise`) a logit after some steps is normal with

    mean  z + shift/(T - 1),    variance  (between + within/(T - 1))/b,

and one run of the recursion predicts all b and T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dynamics import SequenceClasses, linear_noise, sgd
from dynamics.support import checks
from yzflow.papers.scan_and_snap.settings import Setting

# The chance of a wrong sign that still counts as seen.
LEVEL = 0.05


def expected_signs(classes: SequenceClasses) -> np.ndarray:
    """Theorem 2's sign of each logit, over (query, token) in one axis: 1 distinct, -1 common, 0 not with this query."""
    signs = np.zeros((len(classes.query_tokens), classes.n_tokens))
    occurs, common = classes.probabilities.toarray() > 0, classes.common_tokens
    for n, row in enumerate(np.searchsorted(classes.query_tokens, classes.query)):
        signs[row, classes.distinct_tokens(n)] = 1
        signs[row, common[occurs[n, common]]] = -1
    return signs.ravel()


def predict(setting: Setting, steps: ArrayLike, *, progress: bool = False) -> xr.Dataset:
    """What is needed of `linear_noise`, of the logits that Theorem 2 speaks of, without covariances between them.

    Returns
    -------
    xarray.Dataset
        ``drift``, ``shift``, ``between`` and ``within`` over (time, logit), with the coordinates ``sign``, ``query``,
        ``token``.
    """
    signs = expected_signs(setting.classes)
    rates: dict[str, Any] = {"eta_y": setting.eta_y, "eta_z": setting.eta_z}
    whole = linear_noise(setting.classes, **rates, steps=steps, progress=progress)
    own = np.flatnonzero(signs)
    variances = {
        name: (("time", "logit"), np.diagonal(whole[name].values, axis1=1, axis2=2)[:, own])
        for name in ("between", "within")
    }
    found = whole[["z", "shift"]].isel(logit=own).rename(z="drift")
    return found.assign(variances).assign_coords(sign=("logit", signs[own])).assign_attrs(setting=setting.name)


def moments(found: xr.Dataset, *, batch_size: float, length: float | None) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean and standard deviation of the logits, each times its sign, so that positive is as Theorem 2 has it.

    Parameters
    ----------
    found : xarray.Dataset
        From `predict`.
    batch_size, length : number
        b and T; None is T -> infinity.
    """
    share = 0.0 if length is None else 1 / (checks.positive("length", length) - 1)
    mean = (found["drift"] + share * found["shift"]) * found["sign"]
    variance = (found["between"] + share * found["within"]) / checks.positive("batch_size", batch_size)
    return mean, np.sqrt(variance.clip(min=0))  # a zero may have become -1e-18


def wrong(found: xr.Dataset, *, batch_size: float, length: float | None) -> xr.DataArray:
    """The chance that a logit has not the sign of Theorem 2, over (time, logit)."""
    mean, deviation = moments(found, batch_size=batch_size, length=length)
    still = deviation == 0
    chance: xr.DataArray = ndtr(-mean / deviation.where(~still, 1.0))
    return chance.where(~still, (mean <= 0).astype(float))


def shortest(found: xr.Dataset) -> xr.DataArray:
    """The length T from which on the mean has the sign of Theorem 2, whatever b; nan where the drift has not.

    Zero where sequences of any length do.
    """
    drift, shift = found["drift"] * found["sign"], found["shift"] * found["sign"]
    length = xr.where(shift < 0, 1 - shift / drift.where(drift > 0), 0.0)
    return length.where(drift > 0)


def smallest_batch(found: xr.Dataset, *, length: float | None, level: float = LEVEL) -> xr.DataArray:
    """The batch size b from which on the chance of a wrong sign is at most ``level``; infinite where no b is enough."""
    level = checks.positive("level", level)
    if level >= 0.5:
        raise checks.reject("level", "be below 0.5", level)
    mean, deviation = moments(found, batch_size=1, length=length)
    need: xr.DataArray = (ndtri(level) * deviation / mean.where(mean > 0)) ** 2
    return need.where(mean > 0, np.inf)


def measure(
    setting: Setting, *, batch_size: int, length: int | None, every: int, steps: int, seeds: Sequence[int]
) -> xr.DataArray:
    """The logits that Theorem 2 speaks of in runs of SGD, each times its sign: (seed, time, logit)."""
    signs = expected_signs(setting.classes)
    own = np.flatnonzero(signs)
    rates: dict[str, Any] = {"eta_y": setting.eta_y, "eta_z": setting.eta_z, "momentum": 0.0}
    sizes: dict[str, Any] = {"batch_size": batch_size, "length": length, "steps": steps, "record_every": every}
    runs = [sgd(setting.classes, **rates, **sizes, seed=seed).dataset for seed in seeds]
    z = np.stack([run["z"].values.reshape(run.sizes["time"], -1)[:, own] for run in runs]) * signs[own]
    return xr.DataArray(z, dims=("seed", "time", "logit"), coords={"time": runs[0]["time"].values})
