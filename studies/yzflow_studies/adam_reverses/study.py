"""Theorem 2 under Adam: which way attention moves, from when on, and whether Adam's steps of Y are the reason.

Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, whose Theorems 2 and 3 are about plain gradient steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import Optimizer, SequenceClasses, Trajectory, sgd
from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, VERMILION, canvas, styled

BETAS, EPSILON = (0.9, 0.999), 1e-8
STEPS_OF = ("plain", "adam", "none")


@dataclass(frozen=True)
class Size:
    """K equal classes of one common token and the same distinct ones (`SequenceClasses.single_common_token`)."""

    n_classes: int
    vocab_size: int
    common: float
    distinct: tuple[float, ...]

    def __str__(self) -> str:
        own = ", ".join(f"{value:g}" for value in self.distinct)
        return f"K = {self.n_classes}, M = {self.vocab_size}, {self.common:g}; {own}"

    @property
    def classes(self) -> SequenceClasses:
        """The population."""
        return SequenceClasses.single_common_token(
            self.n_classes, self.vocab_size, common=self.common, distinct=self.distinct
        )

    @property
    def features(self) -> np.ndarray:
        """f at Z = 0, of the common token and then of each distinct one of a class: of Euclidean norm one."""
        row = np.array([self.common, *self.distinct])
        return row / np.linalg.norm(row)


SIZES = (Size(4, 60, 0.3, (1.0, 0.5)), Size(10, 1000, 0.15, (1.0, 0.8, 0.6, 0.4, 0.2)))


def _population(size: Size, optimizer: Optimizer, **options: Any) -> Trajectory:
    return sgd(size.classes, batch_size=None, length=None, optimizer=optimizer, **options)


def _logits(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Over time, the logit of the common token and that of the most frequent distinct one of the first class."""
    z = run.dataset["z"].values[:, 0]
    return z[:, 0], z[:, 1]


def kept_from(holds: np.ndarray) -> int:
    """The first index from which on ``holds`` is true to the end; its length if the last one is false."""
    fails = np.flatnonzero(~np.asarray(holds, dtype=bool))
    return int(fails[-1]) + 1 if fails.size else 0


def survey(
    *,
    sizes: Sequence[Size] = SIZES,
    ratios: Sequence[float] = (0.01, 0.1, 1.0),
    rates: Sequence[float] = (0.01, 0.003),
    optimizers: Sequence[str] = ("adam", "adamw"),
    decoders: Sequence[str] = ("modified", "full"),
    reach: float = 6.0,
    plain_steps: int = 6000,
) -> xr.Dataset:
    """Logits and lead at the end of population runs from zero, under Adam and, at the same loss, under plain steps.

    An Adam run has eta_Y in ``rates``, eta_Z = ratio eta_Y and ``reach``/eta_Y steps. The plain run beside it has
    eta_Y = 1, the same ratio and decoder, and is read at the first step at which its loss is no larger than that at
    the end of the Adam run.

    Returns
    -------
    xarray.Dataset
        Over ``run``: ``common``, ``dominant`` (logits), ``lead`` (r(end)/r(0), r = f_1^2/f_2^2 - 1), ``loss``; the same
        with ``plain_``, NaN where ``plain_steps`` do not reach the loss, and ``plain_step``; ``reversed_from``, eta_Y t
        from which on both signs are the opposite of Theorem 2's, infinite if they are not at the end; and the setting.
    """
    rows: list[dict[str, Any]] = []
    for size, ratio, decoder in itertools.product(sizes, ratios, decoders):
        options: dict[str, Any] = {"decoder": decoder, "record_every": 1}
        plain = _population(size, Optimizer(momentum=0.0), eta_y=1.0, eta_z=ratio, steps=plain_steps, **options)
        plain_loss, plain_lead = plain.dataset["loss"].values, plain.relative_gain(0, 1, 2).values
        for eta, name in itertools.product(rates, optimizers):
            steps = round(reach / eta)
            run = _population(size, Optimizer(name), eta_y=eta, eta_z=ratio * eta, steps=steps, **options)
            common, dominant = _logits(run)
            lead, loss = run.relative_gain(0, 1, 2).values, float(run.dataset["loss"][-1])
            first = kept_from((common > 0) & (dominant < 0))
            row = {"size": str(size), "ratio": ratio, "decoder": decoder, "eta_y": eta, "optimizer": name, "loss": loss,
                   "common": common[-1], "dominant": dominant[-1], "lead": lead[-1] / lead[0],
                   "reversed_from": eta * first if first <= steps else np.inf}  # fmt: skip
            at = int(np.argmax(plain_loss <= loss))
            reached = bool(plain_loss[at] <= loss)
            values = (*(z[at] for z in _logits(plain)), plain_lead[at] / plain_lead[0], at)
            for key, value in zip(("common", "dominant", "lead", "step"), values, strict=True):
                row[f"plain_{key}"] = float(value) if reached else np.nan
            rows.append(row)
    return xr.Dataset({key: ("run", [row[key] for row in rows]) for key in rows[0]})


# The reason: what Adam does to Y


def first_slopes(size: Size) -> tuple[float, np.ndarray]:
    """Where the expected gradient first moves Z from zero, after one step of Adam on Y: brackets of the slopes of J.

    That step is eta_Y in each entry of Y with the sign of its gradient, so that Y_l.(e_n - alpha_n), what token l says
    for its next token n, is S = 2 eta_Y (1 - 1/M) for each distinct token, whatever its frequency, and c S with
    c = (M - K)/(M - 1) for the common one, which says that the next token occurs at all. As f has norm one, with D the
    sum of f over the distinct tokens of a class,

        dJ/dz_l = (S f_l/K) (1 - f_l (D + c f_0)),    dJ/dz_0 = S f_0 (c - f_0 (D + c f_0)).

    After a plain step Y_l is proportional to f_l, and the brackets, then of f_l^2 and f_0^2, are f_0^2 (1 - c) and
    -(1 - f_0^2)(1 - c): the signs of Theorem 2.

    Returns
    -------
    float, array
        The bracket of the common token, and those of the distinct ones.
    """
    k, m = size.n_classes, size.vocab_size
    f, c = size.features, (m - k) / (m - 1)
    mean = f[1:].sum() + c * f[0]
    return float(c - f[0] * mean), 1 - f[1:] * mean


@dataclass(frozen=True, eq=False)
class RecordedSteps:
    """Before each step and at the end: Z (step, tokens), Y (step, tokens, K + 1), loss (step).

    The last column of Y is that of each next token that never occurs.
    """

    Z: np.ndarray
    Y: np.ndarray
    loss: np.ndarray


def trained_apart(
    size: Size,
    *,
    y: str,
    z: str,
    eta_y: float,
    eta_z: float,
    steps: int,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> RecordedSteps:
    """Population training with an optimizer of its own for each of Y and Z: "plain", "adam", or "none", which holds it.

    Full gradients of Lemma 1 (3). ``start`` is (Z, Y); default zero.
    """
    ways = [checks.one_of("y", y, STEPS_OF), checks.one_of("z", z, STEPS_OF)]
    k, tokens = size.n_classes, 1 + size.n_classes * len(size.distinct)
    prior = np.zeros((k, tokens))
    prior[:, 0] = size.common
    for n in range(k):
        prior[n, 1 + n * len(size.distinct) : 1 + (n + 1) * len(size.distinct)] = size.distinct
    count, target = np.array([1.0] * k + [size.vocab_size - k]), np.eye(k, k + 1)
    Z, Y = (np.zeros(tokens), np.zeros((tokens, k + 1))) if start is None else (start[0].copy(), start[1].copy())
    weights, rates = (Y, Z), (eta_y, eta_z)
    moments = [(np.zeros_like(W), np.zeros_like(W)) for W in weights]
    kept: list[tuple[np.ndarray, np.ndarray, float]] = []
    for step in range(steps + 1):
        u = prior * np.exp(Z)
        f = u / np.linalg.norm(u, axis=1, keepdims=True)
        logits = f @ Y
        top = np.where(count > 0, logits, -np.inf).max(axis=1, keepdims=True)
        raised = np.exp(logits - top)
        total = raised @ count
        kept.append((Z.copy(), Y.copy(), float(np.mean(np.log(total) + top[:, 0] - np.diag(logits)))))
        residual = (target - raised / total[:, None]) * (count > 0)
        said = residual * np.where(target > 0, 1.0, count) @ Y.T
        pull = f * (said - f * (f * said).sum(axis=1, keepdims=True))
        for W, slope, way, rate, (first, second) in zip(
            weights, (f.T @ residual / k, pull.mean(axis=0)), ways, rates, moments, strict=True
        ):
            if way == "adam":
                first += (1 - BETAS[0]) * (slope - first)
                second += (1 - BETAS[1]) * (slope**2 - second)
                slope = (first / (1 - BETAS[0] ** (step + 1))) / (
                    np.sqrt(second / (1 - BETAS[1] ** (step + 1))) + EPSILON
                )
            if way != "none":
                W += rate * slope
    return RecordedSteps(*(np.array(part) for part in zip(*kept, strict=True)))


def row_spread(size: Size, Y: np.ndarray) -> float:
    """Largest difference of two distinct tokens' rows of Y in a class, over the largest modulus of these rows."""
    own = Y[1:].reshape(size.n_classes, len(size.distinct), -1)
    return float(np.ptp(own, axis=1).max() / np.abs(own).max())


_RATES = {"plain": (1.0, 0.1), "adam": (0.01, 0.001)}  # eta_Y, eta_Z of each way: their ratio is that of one setting


def crossed(size: Size, *, steps: int = 600) -> dict[tuple[str, str], RecordedSteps]:
    """Training with each of plain steps and Adam for Y (first) and for Z (second), eta_Z/eta_Y = 0.1 within a way."""
    return {
        (y, z): trained_apart(size, y=y, z=z, eta_y=_RATES[y][0], eta_z=_RATES[z][1], steps=steps)
        for y, z in itertools.product(_RATES, repeat=2)
    }


def held(size: Size, *, steps: int = 600, frozen_at: int = 100) -> xr.Dataset:
    """Y trained with attention held, by Adam and by plain steps; then Z by plain steps with that Y held.

    The Y that is held is Adam's after ``frozen_at`` steps, and that of the first plain step with no larger loss.

    Returns
    -------
    xarray.Dataset
        Over ``y`` ("plain", "adam"): ``spread``, the largest `row_spread` after any step; ``loss`` of the Y held;
        ``common`` and ``dominant``, the logits after ``steps`` plain steps of Z with eta_Z = 0.1.
    """
    ys = {y: trained_apart(size, y=y, z="none", eta_y=_RATES[y][0], eta_z=0.1, steps=steps) for y in _RATES}
    loss = ys["adam"].loss[frozen_at]
    below = {"adam": frozen_at, "plain": int(np.argmax(ys["plain"].loss <= loss))}
    rows = []
    for y, run in ys.items():
        start = (run.Z[0], run.Y[below[y]])
        Z = trained_apart(size, y="none", z="plain", eta_y=1.0, eta_z=0.1, steps=steps, start=start).Z[-1]
        spread = max(row_spread(size, Y) for Y in run.Y[1:])
        rows.append({"spread": spread, "loss": run.loss[below[y]], "common": Z[0], "dominant": Z[1]})
    return xr.Dataset({key: ("y", [row[key] for row in rows]) for key in rows[0]}, {"y": list(ys)})


def foreseen(
    *,
    shapes: Sequence[tuple[int, int]] = ((4, 4), (4, 60), (10, 200)),
    commons: Sequence[float] = (0.1, 0.3, 0.6, 1.0, 1.5),
    distincts: Sequence[tuple[float, ...]] = ((1.0,), (1.0, 0.5), (1.0, 0.9, 0.8)),
    steps: int = 600,
) -> xr.Dataset:
    """The signs of `first_slopes` against those at the end of Adam runs (eta_Y = 0.01, eta_Z = 0.001, full decoder).

    Returns
    -------
    xarray.Dataset
        Over ``size``: ``common_slope``, ``dominant_slope`` and ``common``, ``dominant``, the logits after ``steps``.
    """
    rows = []
    for (k, m), common, distinct in itertools.product(shapes, commons, distincts):
        size = Size(k, m, common, distinct)
        slope, slopes = first_slopes(size)
        Z = trained_apart(size, y="adam", z="adam", eta_y=0.01, eta_z=0.001, steps=steps).Z[-1]
        rows.append({"common_slope": slope, "dominant_slope": slopes[0], "common": Z[0], "dominant": Z[1]})
    names = [str(Size(*shape, c, d)) for shape, c, d in itertools.product(shapes, commons, distincts)]
    return xr.Dataset({key: ("size", [row[key] for row in rows]) for key in rows[0]}, {"size": names})


def batches(
    size: Size = SIZES[0], *, seeds: int = 8, steps: int = 600, batch_size: int = 32, length: int = 128
) -> xr.Dataset:
    """The logits at the end of mini-batch runs, Adam and plain steps, with the rates of `crossed`, over ``seed``."""
    found: dict[str, Any] = {}
    for way, (eta_y, eta_z) in _RATES.items():
        optimizer = Optimizer("adam") if way == "adam" else Optimizer(momentum=0.0)
        options: dict[str, Any] = {"eta_y": eta_y, "eta_z": eta_z, "batch_size": batch_size, "length": length}
        ends = []
        for seed in range(seeds):
            run = sgd(size.classes, optimizer=optimizer, steps=steps, seed=seed, record_every=steps, **options)
            ends.append([z[-1] for z in _logits(run)])
        for name, values in zip(("common", "dominant"), np.array(ends).T, strict=True):
            found[f"{way}_{name}"] = ("seed", values)
    return xr.Dataset(found, attrs={"size": str(size), "batch_size": batch_size, "length": length, "steps": steps})


# The figure


def _ways(effort: Effort) -> dict[str, Any]:
    sizes = SIZES[:1] if effort.quick else SIZES
    few: dict[str, Any] = {"ratios": (0.1,), "rates": (0.01,), "plain_steps": 1000} if effort.quick else {}
    return {
        "survey": survey(sizes=sizes, **few),
        "crossed": {str(size): crossed(size) for size in sizes},
        "held": {str(size): held(size) for size in sizes},
        "foreseen": foreseen(shapes=((4, 4), (4, 60)), commons=(0.3, 1.5)) if effort.quick else foreseen(),
        "batches": batches(seeds=3 if effort.quick else 8),
    }


def _range(values: Any, digits: int = 3) -> str:
    low, high = (f"{float(value):.{digits}f}" for value in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"


def _against_plain(runs: xr.Dataset) -> str:
    """Counts over all runs, and ranges for each size and ratio of the rates."""
    total = runs.sizes["run"]
    turned = (runs["common"] > 0) & (runs["dominant"] < 0)
    known = runs["plain_step"].notnull()
    kept = (runs["plain_common"] < 0) & (runs["plain_dominant"] > 0)
    late = float(runs["reversed_from"].max())
    when = f"from eta_Y t = {late:.3g} on at the latest" if np.isfinite(late) else "not at the end in all of them"
    parts = [
        f"Under Adam and AdamW both signs are reversed at the end of {int(turned.sum())} of {total} runs, {when}; the "
        f"lead ends below its start by more than 0.05% in {int((runs['lead'] < 0.9995).sum())}, above it by more than "
        f"that in {int((runs['lead'] > 1.0005).sum())}. Plain steps get to the loss of {int(known.sum())} of them, at "
        f"step {int(runs['plain_step'].min())} to {int(runs['plain_step'].max())}; both signs are then Theorem 2's in "
        f"{int(kept.sum())}, and the lead has grown in {int((runs['plain_lead'] > 1).sum())}."
    ]
    for size in np.unique(runs["size"]):
        for ratio in np.unique(runs["ratio"]):
            part = runs.isel(run=((runs["size"] == size) & (runs["ratio"] == ratio)).values)
            parts.append(
                f"{size}, eta_Z/eta_Y = {ratio:g}: common {_range(part['common'])}, dominant "
                f"{_range(part['dominant'])}, lead {_range(part['lead'])}, loss {_range(part['loss'])}; plain: common "
                f"{_range(part['plain_common'], 4)}, dominant {_range(part['plain_dominant'], 4)}, lead "
                f"{_range(part['plain_lead'], 4)}."
            )
    return " ".join(parts)


def _reason(data: Mapping[str, Any]) -> str:
    parts = []
    for size, runs in data["crossed"].items():
        ends = "; ".join(
            f"Y by {y} and Z by {z}, common {run.Z[-1, 0]:+.3g}, dominant {run.Z[-1, 1]:+.3g}"
            for (y, z), run in runs.items()
        )
        parts.append(f"{size}: {ends}.")
    for size, rows in data["held"].items():
        ends = "; ".join(
            f"Y by {y}, rows apart by {float(rows['spread'].sel(y=y)):.2g}, then plain Z: common "
            f"{float(rows['common'].sel(y=y)):+.3g}, dominant {float(rows['dominant'].sel(y=y)):+.3g}"
            for y in rows["y"].values
        )
        parts.append(f"{size}, attention held: {ends}.")
    found = data["foreseen"]
    right = [int((np.sign(found[name]) == np.sign(found[f"{name}_slope"])).sum()) for name in ("common", "dominant")]
    turned = (found["common"] > 0) & (found["dominant"] < 0)
    kept = (found["common"] < 0) & (found["dominant"] > 0)
    noisy, found_by_name = data["batches"], []
    n = noisy.sizes["seed"]
    for name, values in noisy.data_vars.items():
        half = float(intervals.of_mean(values))
        found_by_name.append(f"{str(name).replace('_', ', ')} {float(values.mean()):+.4f} +- {half:.4f}")
    return " ".join(
        [
            *parts,
            f"Of {found.sizes['size']} sizes under Adam {int(turned.sum())} have both signs reversed and "
            f"{int(kept.sum())} both as in Theorem 2; the first step's sign is that at the end for the common token at "
            f"{right[0]}, for the dominant one at {right[1]}.",
            f"Mini-batches ({noisy.attrs['size']}; {n} seeds, 95% t-intervals): {'; '.join(found_by_name)}.",
        ]
    )


@styled
def adam_reverses(data: Mapping[str, Any]) -> Figure:
    """Which way attention moves under Adam: Theorem 2 has the common token's logit fall and the dominant one's rise.

    Expected gradient at T -> infinity, from zero. Left: the common token (lines) and the most frequent distinct one
    (dashed) with plain steps or Adam for each of Y and Z. Middle: both at the end, under Adam and AdamW, and under
    plain steps at the same loss. Right: other sizes, at the end under Adam, against the slope (its bracket) that the
    first step of Adam on Y gives the logit. Theorem 2 is about plain steps; Adam is outside of it.

    Parameters
    ----------
    data : mapping
        ``survey``, ``crossed`` and ``held`` by size, ``foreseen``, ``batches``, of the functions of these names.
    """
    figure = canvas(figsize=(12, 4))
    left, middle, right = figure.subplots(1, 3)
    size, runs = next(iter(data["crossed"].items()))
    for ((y, z), run), colour in zip(runs.items(), (BLUE, GREEN, BLACK, VERMILION), strict=True):
        left.plot(run.Z[:, 0], color=colour, label=f"Y {y}, Z {z}")
        left.plot(run.Z[:, 1], "--", color=colour, linewidth=1)
    left.set(xlabel="step", ylabel="attention logit", title=f"{size} (common; distinct)")
    left.set_yscale("symlog", linthresh=0.01)
    found = data["survey"]
    for prefix, label, colour in (("", "Adam, AdamW", VERMILION), ("plain_", "plain, same loss", BLUE)):
        for name, marker in (("common", "o"), ("dominant", "v")):
            middle.plot(
                found["ratio"], found[prefix + name], marker, color=colour, markersize=4, label=f"{name}, {label}"
            )
    middle.set(xscale="log", xlabel=r"$\eta_Z/\eta_Y$", ylabel="logit at the end")
    middle.set_yscale("symlog", linthresh=0.001)
    middle.set_xlim(right=1e5 * float(found["ratio"].max()))  # room for the legend
    middle.margins(y=0.1)
    for name, marker, colour in (("common", "o", GREEN), ("dominant", "v", BLACK)):
        right.plot(data["foreseen"][f"{name}_slope"], data["foreseen"][name], marker, color=colour, label=name)
    right.axvline(0, color=BLACK, linewidth=0.8)
    right.set(xlabel="slope after the first step", ylabel="logit at the end")
    for axes in (left, middle, right):
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.legend(fontsize=8, loc={left: "best", middle: "upper right", right: "upper left"}[axes])
    figure.suptitle("Which way attention moves under plain steps and under Adam")
    return figure


FIGURES = (
    Entry(
        "adam_reverses",
        "Scan and Snap",
        adam_reverses,
        _ways,
        claims=lambda data: f"{_against_plain(data['survey'])} {_reason(data)}",
    ),
)

# <!-- numbers
# typed: 0.05% (what counts as ending lower)
# typed: 95% (level of intervals and quantiles)
# -->
