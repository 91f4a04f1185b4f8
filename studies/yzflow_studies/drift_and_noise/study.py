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
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dynamics import SequenceClasses, linear_noise, sgd
from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

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
    """Drift and variance by `linear_noise` of the logits that Theorem 2 speaks of, without covariances between them.

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
    of = {"setting": setting.name, "eta_y": setting.eta_y, "eta_z": setting.eta_z}
    return found.assign(variances).assign_coords(sign=("logit", signs[own])).assign_attrs(of)


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


# The figures


_STEPS, _EVERY = 100, 10
_LENGTH, _BATCH = 256, 64  # of the audit
# T that are measured, by b: as many tokens a step as a run can draw in a second or so.
_SIZES = {4: (64, 256, 1024, 4096, 16384, 65536), 64: (64, 256, 1024, 4096, 16384), 1024: (64, 256, 1024)}
_LIMITS = (1, 64)  # b that are measured at T = infinity
_LATER = 400


def _setting() -> Setting:
    """Inside Assumptions 1 and 2, but for T."""
    return Setting("K = 2, M = 1000, rho = 0.3", single_common_token(2, 1000, 0.3), 1.0, 1e-3, float(_STEPS))


def _data(effort: Effort) -> dict[str, xr.Dataset]:
    setting, seeds = _setting(), range(8 if effort.quick else 60)
    sizes = [(b, length) for b, lengths in _SIZES.items() for length in lengths]
    sizes = [(b, length) for b, length in sizes if not effort.quick or b * length <= 2**16]
    drawn: list[tuple[int, int | None]] = [*sizes, *((b, None) for b in _LIMITS)]
    last = _STEPS if effort.quick else _LATER
    steps = np.unique(np.concatenate([np.arange(0, _STEPS + 1, _EVERY), np.arange(_STEPS, last + 1, 50)]))
    predicted = predict(setting, steps, progress=effort.progress)
    shares, chances = [], []
    for b, length in drawn:
        z = measure(setting, batch_size=b, length=length, every=_STEPS, steps=_STEPS, seeds=seeds)
        shares.append((z.isel(time=-1) <= 0).mean("logit").values)
        chances.append(float(wrong(predicted, batch_size=b, length=length).sel(time=_STEPS).mean()))
    paths = measure(
        setting, batch_size=_BATCH, length=_LENGTH, every=_EVERY, steps=_STEPS, seeds=range(1000, 1000 + len(seeds))
    )
    measured = xr.Dataset(
        {
            "share": (("size", "seed"), np.array(shares)),
            "chance": ("size", chances),
            "batch_size": ("size", [b for b, _ in drawn]),
            "length": ("size", [np.inf if length is None else float(length) for _, length in drawn]),
            "mean": (("time", "logit"), paths.mean("seed").values),
            "half": (("time", "logit"), intervals.of_mean(paths).values),
        },
        coords={"time": paths["time"].values},
    )
    of = {"seeds": len(seeds), "batch_size": _BATCH, "length": _LENGTH, "steps": _STEPS}
    return {"predicted": predicted, "measured": measured.assign_attrs(of)}


def representatives(last: xr.Dataset) -> np.ndarray:
    """One logit of those that symmetry makes alike: the common token, then distinct ones by their gain at one time."""
    key = np.stack([last["sign"].values, np.round(last["drift"].values / np.abs(last["drift"].values).max(), 9)])
    first = np.sort(np.unique(key, axis=1, return_index=True)[1])
    sign, gain = last["sign"].values[first], np.abs(last["drift"].values[first])
    order: np.ndarray = first[np.lexsort((-gain, sign))]
    return order


def _names(predicted: xr.Dataset, chosen: np.ndarray) -> list[str]:
    signs = predicted["sign"].values[chosen]
    return ["common" if sign < 0 else f"distinct {k - (signs < 0).sum() + 1}" for k, sign in enumerate(signs)]


def deviations(data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Measured less predicted share of wrong signs at each size, and the standard error of the measured share."""
    share = data["measured"]["share"]
    return share.mean("seed").values - data["measured"]["chance"].values, intervals.standard_error(share).values


def _claims(data: dict[str, xr.Dataset]) -> str:
    predicted, measured = data["predicted"], data["measured"]
    b, length, steps = (measured.attrs[name] for name in ("batch_size", "length", "steps"))
    at = predicted.sel(time=steps)
    chosen = representatives(at)
    mean = moments(at, batch_size=b, length=length)[0].values[chosen]
    seen = measured["mean"].sel(time=steps).values[chosen]
    names = _names(predicted, chosen)
    turned = ", ".join(name for name, value in zip(names, mean, strict=True) if value <= 0) or "none"
    lengths = {t: float(shortest(predicted).sel(time=t).max()) for t in _times(predicted, steps)}
    enough = " and ".join(f"T = {least:.0f} after {t:.0f} steps" for t, least in lengths.items())
    needs = [float(smallest_batch(at, length=longer).max()) for longer in (4 * lengths[steps], None)]
    batches = [max(1, int(np.ceil(need))) for need in needs]
    gap, error = deviations(data)
    worst, agree = int(np.abs(gap).argmax()), int((np.sign(mean) == np.sign(seen)).sum())
    return (
        f"Here {predicted.attrs['setting']}, eta_Y = {predicted.attrs['eta_y']:g}, eta_Z ="
        f" {predicted.attrs['eta_z']:g}. "
        f"At b = {b} and T = {length} the predicted mean itself has the other sign after {steps} steps for"
        f" {turned}, of {len(names)} kinds of tokens; the mean over {measured.attrs['seeds']} seeds has the predicted"
        f" sign for {agree}. All means have Theorem 2's signs from {enough}, whatever b. After {steps} steps, a wrong"
        f" sign has a chance of at most {LEVEL:.0%} for every token from b = {batches[0]} on at four times that"
        f" T, and from b = {batches[1]} on at T = infinity. Measured less predicted shares of wrong signs differ from"
        f" zero, over {gap.size} sizes, by at most {abs(gap[worst]):.3f}, with a standard error of {error[worst]:.3f}"
        f" there."
    )


def _times(predicted: xr.Dataset, steps: float) -> list[float]:
    last = float(predicted["time"][-1])
    return [float(steps)] + ([last] if last > steps else [])


@styled
def drift_and_noise(data: dict[str, xr.Dataset]) -> Figure:
    """Theorem 2's signs in SGD where attention is slow, eta_Z << eta_Y: the drift of the theorem against noise.

    Full decoder, zero start, no momentum. The theorem is about T to infinity; its drift is dashed. Left: z of a common
    and of each distinct token, times its sign in the theorem: predicted mean (lines) and mean over seeds (dots, 95%).
    Middle: the share of logits with a wrong sign against T, predicted (lines) and measured (dots, 95%). Right: the
    batch size from which on a wrong sign is rare, each token's line going up at the T (dotted) below which its mean has
    the wrong sign.

    Parameters
    ----------
    data : dict
        ``predicted`` from `drift_and_noise.predict`, and ``measured``.
    """
    predicted, measured = data["predicted"], data["measured"]
    steps, at_b, at_t = (measured.attrs[name] for name in ("steps", "batch_size", "length"))
    at = predicted.sel(time=steps)
    chosen = representatives(at)
    names, colours = _names(predicted, chosen), ordered_colours(len(chosen))
    figure = canvas(figsize=(10.4, 4))
    left, middle, right = figure.subplots(1, 3)
    early = predicted.sel(time=slice(0, steps))
    mean, _ = moments(early, batch_size=at_b, length=at_t)
    lengths = np.geomspace(10, 1e6, 160)
    needs = np.stack([smallest_batch(at, length=length).values[chosen] for length in lengths])
    for k, name, colour in zip(chosen, names, colours, strict=True):
        left.plot(early["time"], (early["drift"] * early["sign"])[:, k], "--", color=colour, linewidth=1)
        left.plot(early["time"], mean[:, k], color=colour, label=name)
        bars = {"yerr": measured["half"][:, k], "fmt": "o", "markersize": 3, "color": colour}
        left.errorbar(measured["time"], measured["mean"][:, k], **bars)
    for need, name, colour in zip(needs.T, names, colours, strict=True):
        right.loglog(lengths, np.maximum(need, 1), color=colour, label=name)
        barrier = lengths[np.isfinite(need)][:1]
        if np.isinf(need).any() and barrier.size:
            right.axvline(float(barrier[0]), color=colour, linestyle=":", linewidth=1)
    left.axhline(0, color=BLACK, linewidth=0.8)
    left.set(xlabel="steps", ylabel="z, times its sign in Theorem 2", title=f"b = {at_b}, T = {at_t}")
    sizes = sorted(set(measured["batch_size"].values[np.isfinite(measured["length"].values)]))
    for b, colour in zip(sizes, ordered_colours(len(sizes)), strict=True):
        chance = [float(wrong(at, batch_size=b, length=length).mean()) for length in lengths]
        middle.semilogx(lengths, chance, color=colour, label=f"b = {b}")
        own = (measured["batch_size"].values == b) & np.isfinite(measured["length"].values)
        share = measured["share"][own]
        half = intervals.of_mean(share)
        middle.errorbar(measured["length"][own], share.mean("seed"), yerr=half, fmt="o", markersize=3, color=colour)
    middle.legend()
    middle.set(xlabel="T", ylabel="share of wrong signs", title=f"after {steps} steps", ylim=(0, 1))
    right.legend()
    right.set(xlabel="T", ylabel="b", title=f"wrong with a chance of {LEVEL:.0%} at most", ylim=(0.8, 1e6))
    ratio = predicted.attrs["eta_y"] / predicted.attrs["eta_z"]
    figure.suptitle(rf"Does SGD show the signs of Theorem 2 at $\eta_Z = \eta_Y/{ratio:.4g}$?")
    return figure


FIGURES = (Entry("drift_and_noise", "Scan and Snap", drift_and_noise, _data, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 2 (number of a statement, figure, section or finding)
# typed: 1000 0.3 (setting of the runs that this module makes)
# typed: 0.5 (limit of what a function takes, in its error)
# -->
