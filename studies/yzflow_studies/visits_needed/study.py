"""How many steps of batch size 1 it takes until the classes have learned alike: Theorem 1's "after t >> K^2 steps"."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import Layer, sgd
from theory import decoder
from theory.scan_and_snap import bounds, coverage
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, log_ticks, ordered_colours, styled
from yzflow.papers.scan_and_snap.settings import single_common_token

_VOCAB_SIZE, _ETA_Y = 1000, 1.0
_STILL = 1e-30  # a rate at which the features stand still to the last bit
_RECORDS, _LEVEL = 30, 0.5


def _last_step(n_classes: int) -> int:
    """Until |theta_n| of one half is rare, by Bernstein's inequality."""
    return int(12 * n_classes * np.log(2 * n_classes / coverage.DELTA))


def _one(n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Steps; the largest |theta_n| where h is linear, and at `_ETA_Y`; the largest relative error of a g_n by (9)."""
    classes = single_common_token(n_classes, _VOCAB_SIZE, 0.1 / n_classes)
    options: dict[str, Any] = {"batch_size": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
    steps = _last_step(n_classes)
    rates: dict[str, Any] = {"eta_y": _ETA_Y, "eta_z": _STILL}
    run = sgd(classes, **rates, steps=steps, record_every=max(1, steps // _RECORDS), seed=seed, **options)
    data, bags = run.dataset.isel(time=slice(1, None)), classes.population()
    times = data["time"].values
    x = _VOCAB_SIZE * decoder.h(times / n_classes, vocab_size=_VOCAB_SIZE, eta_y=_ETA_Y)
    inner = bounds.inner_coefficients(n_classes, _VOCAB_SIZE)
    gram = classes.overlap()
    inverse = np.linalg.inv(gram)
    theta, error = np.empty((2, times.size))
    for i in range(times.size):
        layer = Layer(data["z"].values[i], data["y"].values[i], None, data["multiplicity"].values)
        margin, miss = coverage.state(layer, bags)[:2]
        theta[i] = np.abs(margin / x[i] - 1).max()
        mean = (_VOCAB_SIZE - 1) / (_VOCAB_SIZE - 1 + np.exp(x[i])) * x[i]
        expected = mean * inverse @ inner
        gap = inverse @ (margin[:, None] * inner * miss) - expected
        # Norms of F v by the Gram matrix F^T F.
        sizes = [np.sqrt(np.einsum("kn,kj,jn->n", part, gram, part)) for part in (gap, expected)]
        error[i] = (sizes[0] / sizes[1]).max()
    early = np.abs(data["visits"].values * n_classes / times[:, None] - 1).max(axis=1)
    return times, early, theta, error


def _runs(effort: Effort) -> xr.Dataset:
    """95% quantiles over seeds, by K and step."""
    sizes = (4, 8, 16) if effort.quick else (4, 8, 16, 32)
    seeds = range(40 if effort.quick else 100)
    variables: dict[str, tuple] = {}
    for k in sizes:
        found = [_one(k, seed) for seed in seeds]
        dimension = f"step_{k}"
        variables[dimension] = ((dimension,), found[0][0].astype(float))
        for part, name in enumerate(("theta", "late_theta", "error"), start=1):
            values = np.quantile([run[part] for run in found], 1 - coverage.DELTA, axis=0)
            variables[f"{name}_{k}"] = ((dimension,), values)
    data = xr.Dataset(variables, coords={"n_classes": list(sizes)})
    return data.assign_attrs(seeds=len(seeds), vocab_size=_VOCAB_SIZE, eta_y=_ETA_Y, quantile=1 - coverage.DELTA)


def _sizes(data: xr.Dataset) -> list[int]:
    return [int(k) for k in data["n_classes"].values]


def arrival(data: xr.Dataset, name: str) -> np.ndarray:
    """For each K the first recorded step from which on a quantile stays below one half; nan if there is none."""
    found = []
    for k in _sizes(data):
        above = np.flatnonzero(data[f"{name}_{k}"].values >= _LEVEL)
        first = above[-1] + 1 if above.size else 0
        steps = data[f"step_{k}"].values
        found.append(float(steps[first]) if first < steps.size else np.nan)
    return np.array(found)


def exponent(data: xr.Dataset, name: str) -> float:
    """p of the power law K^p through the arrivals."""
    found, sizes = arrival(data, name), np.array(_sizes(data))
    known = np.isfinite(found)
    return float(np.polyfit(np.log(sizes[known]), np.log(found[known]), 1)[0]) if known.sum() > 1 else np.nan


def _claims(data: xr.Dataset) -> str:
    sizes, at = ", ".join(map(str, _sizes(data))), f"eta_Y = {data.attrs['eta_y']:g}"
    parts = []
    for name, what in (
        ("theta", "all |theta_n| where h is linear"),
        ("late_theta", f"all |theta_n| at {at}"),
        ("error", f"the error of every g_n against (9) at {at}"),
    ):
        steps = ", ".join(f"{step:.0f}" if np.isfinite(step) else "later than shown" for step in arrival(data, name))
        parts.append(f"{what} from t = {steps} on, a power {exponent(data, name):.1f} of K")
    peaks = ", ".join(f"{peak:.0f}" for peak in _peaks(data))
    return (
        f"For K = {sizes}, M = {data.attrs['vocab_size']}, {data.attrs['quantile']:.0%} of {data.attrs['seeds']} runs"
        f" have below one half: {'; '.join(parts)}. A condition t >> K^2 would be the power 2, t >> K ln K one of"
        f" {_of_k_log_k(data):.1f} at these sizes. Beyond t = 5 K the error is largest at t/K = {peaks}: where"
        " the residual of a class begins to fall, a few visits more or less matter most."
    )


def _peaks(data: xr.Dataset) -> list[float]:
    """t/K beyond 5 at which the error against (9) is largest, for each K."""
    found = []
    for k in _sizes(data):
        steps = data[f"step_{k}"].values
        late = np.where(steps >= 5 * k, data[f"error_{k}"].values, 0.0)
        found.append(float(steps[late.argmax()]) / k)
    return found


def _of_k_log_k(data: xr.Dataset) -> float:
    """The power of K that K ln(2K/delta) looks like at these sizes."""
    sizes = np.array(_sizes(data), dtype=float)
    return float(np.polyfit(np.log(sizes), np.log(sizes * np.log(2 * sizes / coverage.DELTA)), 1)[0])


@styled
def visits_needed(data: xr.Dataset) -> Figure:
    """After how many steps of batch size 1 the classes have learned alike: Theorem 1 and Lemma 12 ask for t >> K^2.

    The algorithm is that of the theorems: SGD with the modified decoder, batch size 1, T infinite, features still.
    Left and middle: the largest |theta_n| of the classes drawn where h is linear, the first stage, in which
    it is largest: |N_n K/t - 1|. Over t/K^2 Lemma 12's bounds (dotted) almost fall on one curve, over
    t/(K ln(2K/delta)) those of Bernstein's inequality. Right: how far g_n is from (9) with theta = sigma = 0. All
    are a quantile over seeds.

    Parameters
    ----------
    data : xarray.Dataset
        Quantiles by K: theta_K, late_theta_K, error_K over step_K.
    """
    figure = canvas(figsize=(11.5, 4))
    left, middle, right = figure.subplots(1, 3)
    sizes = _sizes(data)
    for k, colour in zip(sizes, ordered_colours(len(sizes)), strict=True):
        steps = data[f"step_{k}"].values
        log = np.log(2 * k / coverage.DELTA)
        theta, error = data[f"theta_{k}"].values, data[f"error_{k}"].values
        left.loglog(steps / k**2, theta, color=colour, label=f"K = {k}")
        left.loglog(steps / k**2, [coverage.lemma12_bound(n, k) for n in steps], ":", color=colour)
        middle.loglog(steps / (k * log), theta, color=colour)
        relative = k * log / steps
        bernstein = relative / 3 + np.sqrt(relative**2 / 9 + 2 * relative * (1 - 1 / k))
        middle.loglog(steps / (k * log), bernstein, ":", color=colour)
        right.loglog(steps / k**2, error, color=colour)
    for axes, label in ((left, "$t/K^2$"), (middle, r"$t\,/\,(K\ln(2K/\delta))$"), (right, "$t/K^2$")):
        axes.axhline(_LEVEL, color="0.5", linewidth=0.8)
        axes.set_xlabel(label)
        log_ticks(axes.yaxis)
    left.plot([], [], ":", color="0.4", label="bound")
    left.legend()
    left.set(
        ylabel=rf"$\max_n|\theta_n|$, {data.attrs['quantile']:.0%} quantile", title="against $K^2$; dotted: Lemma 12"
    )
    middle.set(title=r"against $K\ln K$; dotted: Bernstein")
    right.set(title=rf"error of $g_n$ against (9), $\eta_Y = {data.attrs['eta_y']:g}$")
    figure.suptitle(r"How many steps of batch size 1 does $t \gg K^2$ mean?")
    return figure


FIGURES = (Entry("visits_needed", "Scan and Snap", visits_needed, _runs, claims=_claims),)

# <!-- numbers
# typed: 2 (exponent, base or fraction of a formula)
# typed: 5 (exponent, divisor or factor of a formula)
# -->
