"""Confidence intervals over seeds, for a mean or a share of few runs."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from dynamics.support import checks


def factor(n: int, *, level: float = 0.95) -> float:
    """Half of Student's interval of a mean in standard errors, for ``n`` runs: 4.30 for three, 2.26 for ten at 95%.

    An interval of two standard errors contains the mean of normal numbers in 82% of all cases for three runs, and in
    92% for ten.

    Parameters
    ----------
    n : int
        Two or more.
    level : float
        Confidence level, below one.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.
    """
    return float(_quantile(_tail(level), checks.integer("n", n, minimum=2) - 1))


def _quantile(tail: float, freedom: ArrayLike) -> np.ndarray:
    """The number that Student's t exceeds with this chance, without the slow import of `scipy.stats`: half a second."""
    return -stdtrit(freedom, tail)


def _tail(level: float) -> float:
    """The probability outside the interval, on one side."""
    level = checks.positive("level", level)
    if level >= 1:
        raise checks.reject("level", "be below 1", level)
    return (1 - level) / 2


def standard_error(values: xr.DataArray, *, dim: str = "seed") -> xr.DataArray:
    """Standard error of the mean over ``dim``, ``s / sqrt(n)``, for `of_mean` and for tables that say so.

    Parameters
    ----------
    values : xarray.DataArray
        With the dimension; NaN is left out.
    dim : str

    Returns
    -------
    xarray.DataArray
        Without ``dim``, in the units of ``values``; NaN where fewer than two values are finite.
    """
    n = values.notnull().sum(dim)
    # Not `std`: with one value in a dimension, NumPy warns of zero degrees of freedom.
    spread = np.sqrt(((values - values.mean(dim)) ** 2).sum(dim) / (n - 1).where(n > 1))
    return spread / np.sqrt(n.where(n > 1))


def of_mean(values: xr.DataArray, *, level: float = 0.95, dim: str = "seed") -> xr.DataArray:
    """Half of Student's interval of the mean over ``dim``, ``t s / sqrt(n)`` with n - 1 degrees of freedom.

    The interval covers differences between seeds, not an error that all seeds share, such as that of the data. It
    assumes normal means: if one run in many is far from all others, its coverage is below ``level``
    (`benchmarks.error_bars`).

    Parameters
    ----------
    values : xarray.DataArray
        With the dimension; NaN is left out.
    level : float
        Confidence level.
    dim : str

    Returns
    -------
    xarray.DataArray
        Without ``dim``, in the units of ``values``; NaN where fewer than two values are finite.
    """
    n = values.notnull().sum(dim)
    factors = xr.apply_ufunc(_quantile, _tail(level), n.where(n > 1) - 1)
    return standard_error(values, dim=dim) * factors


def of_share(successes: int, runs: int, *, level: float = 0.95) -> tuple[float, float]:
    """Limits of the share of all runs with an outcome, by Clopper and Pearson (1934).

    From the binomial law, with no approximation: the interval misses the share in at most ``1 - level`` of all cases.
    Four of five are 28% to 99%, five of five 48% to 100%, at 95%.

    Parameters
    ----------
    successes : int
        Runs with the outcome.
    runs : int
        Number of independent runs.
    level : float
        Confidence level, below one.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.
    """
    runs = checks.integer("runs", runs, minimum=1)
    successes = checks.integer("successes", successes, minimum=0, maximum=runs)
    tail = _tail(level)
    low = float(betaincinv(successes, runs - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, runs - successes, 1 - tail)) if successes < runs else 1.0
    return low, high
