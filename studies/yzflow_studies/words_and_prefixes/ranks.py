"""Spearman's rank correlation over runs, with what is known of it: an interval, a permutation test, a bootstrap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from dynamics.support import checks


class Rank(NamedTuple):
    """Spearman's rank correlation, with the limits of a confidence interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """-1 or 1 where the interval excludes zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]" if np.isfinite(self.value) else "undefined"


def rank_correlation(one: xr.DataArray, other: xr.DataArray, *, level: float = 0.95) -> Rank:
    """Spearman's rank correlation over runs and its confidence interval.

    By Fisher's z with the variance ``(1 + r^2 / 2) / (n - 3)`` of Bonett and Wright (2000), for independent runs. It
    does not include what all runs share: training data, test prefixes, settings.

    Parameters
    ----------
    one, other : xarray.DataArray
        Of the same runs, four or more.
    level : float
        Of confidence.
    """
    one, other = xr.align(one, other, join="exact")
    x, y = (array.transpose(*one.dims).values.ravel() for array in (one, other))
    if x.size < 4:
        raise checks.reject("one", "have at least four runs", x.size)
    if np.ptp(x) == 0 or np.ptp(y) == 0 or not (np.isfinite(x) & np.isfinite(y)).all():
        return Rank(np.nan, np.nan, np.nan)
    r = np.corrcoef(rankdata(x), rankdata(y))[0, 1]
    return Rank(float(r), *map(float, rank_limits(r, x.size, level=level)))


def rank_limits(r: ArrayLike, n: int, *, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the interval of `rank_correlation` about Spearman's ``r`` of ``n`` runs.

    A perfect order of few runs does not make it a point: r counts as the next value that ranks can have,
    1 - 6/(n^3 - n).
    """
    most = 1 - 6 / (n**3 - n)
    r = np.clip(np.asarray(r, dtype=float), -most, most)
    half = -ndtri((1 - level) / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    z = np.arctanh(r)
    return np.tanh(z - half), np.tanh(z + half)


def permutation_p(one: xr.DataArray, other: xr.DataArray, *, resamples: int = 100_000, rng: int = 0) -> float:
    """Share of random orders of the runs whose |rank correlation| is that of the runs or more.

    Parameters
    ----------
    one, other : xarray.DataArray
        Of the same runs, over ``seed`` alone.
    resamples : int
        The order of the runs counts as one of them, so that no share is zero.
    rng : int
        Seed of the orders.
    """
    x, y = _ranked(*_aligned(one, other))
    resamples = checks.integer("resamples", resamples, minimum=1)
    generator = checks.generator("rng", rng)
    found = np.array([generator.permutation(x.ravel()) @ y.ravel() for _ in range(resamples)])
    return float((1 + np.sum(np.abs(found) >= np.abs(np.sum(x * y)) - 1e-9)) / (1 + resamples))


def bootstrap_limits(
    one: xr.DataArray, other: xr.DataArray, *, level: float = 0.95, resamples: int = 10_000, rng: int = 0
) -> tuple[float, float]:
    """Percentiles of the rank correlation of seeds drawn with replacement, all runs of a seed together.

    Parameters
    ----------
    one, other : xarray.DataArray
        Of the same runs, over ``seed`` and any other dimensions.
    level : float
        Of confidence.
    resamples : int
    rng : int
        Seed of the draws.
    """
    x, y = _aligned(one, other)
    resamples = checks.integer("resamples", resamples, minimum=1)
    generator = checks.generator("rng", rng)
    drawn = generator.integers(x.shape[-1], size=(resamples, x.shape[-1]))
    found = []
    for seeds in drawn:
        ranked = _ranked(x[..., seeds], y[..., seeds])
        if all(ranks.any() for ranks in ranked):  # else all runs drawn are equal, and there is no order
            found.append(np.sum(ranked[0] * ranked[1]))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _aligned(one: xr.DataArray, other: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """The runs with the seeds last; four seeds or more."""
    one, other = xr.align(one, other, join="exact")
    if one.sizes.get("seed", 0) < 4:
        raise checks.reject("one", "have at least four seeds", one.sizes.get("seed", 0))
    dims = [*(dim for dim in one.dims if dim != "seed"), "seed"]
    x, y = (array.transpose(*dims).values for array in (one, other))
    if not (np.isfinite(x) & np.isfinite(y)).all():
        raise checks.reject("one", "be finite, like the other", "some that is not")
    return x, y


def _ranked(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of all runs together, centred, of length one."""
    found = []
    for values in (x, y):
        ranks = rankdata(values).reshape(values.shape)
        ranks = ranks - ranks.mean()
        found.append(ranks / (np.linalg.norm(ranks) or 1))
    return found[0], found[1]
