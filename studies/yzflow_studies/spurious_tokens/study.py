"""Spurious distinct tokens: common in the population, seen with one next token only in a finite data set (Section 9).

Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, which leaves their number and attention open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dynamics import Bags, Trajectory, gradient_flow
from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, GREEN, VERMILION, canvas, styled


def zipf_common(n_tokens: int, *, exponent: float = 1.0, share: float = 0.7) -> np.ndarray:
    """P(l) of common tokens, proportional to l^-exponent, in all ``share`` of a class's probability."""
    weights = np.arange(1, checks.integer("n_tokens", n_tokens, minimum=1) + 1.0) ** -checks.positive(
        "exponent", exponent
    )
    return checks.positive("share", share) * weights / weights.sum()


def expected_number(common: ArrayLike, *, tokens_per_class: ArrayLike, n_classes: int) -> np.ndarray:
    """Expected number of common tokens that occur with exactly one next token.

    A token of probability P is missing from the n contextual tokens of a class with probability (1 - P)^n, so that the
    number is K sum_l (1 - (1 - P_l)^n)(1 - P_l)^(n (K - 1)): exact, for independent tokens.

    Parameters
    ----------
    common : (L,) array
        P(l | n), the same for each of the K next tokens; between 0 and 1.
    tokens_per_class : array
        n, sequences of a class times contextual tokens of a sequence.
    n_classes : int
        K, at least 2.
    """
    k = checks.integer("n_classes", n_classes, minimum=2)
    missing = _missing(common, tokens_per_class)
    return k * ((1 - missing) * missing ** (k - 1)).sum(axis=-1)


def expected_share(common: ArrayLike, *, tokens_per_class: ArrayLike, n_classes: int) -> np.ndarray:
    """Expected share of a class's contextual tokens that are spurious: sum_l P_l (1 - P_l)^(n (K - 1)), exact.

    For P_l like l^-a, a > 1, it falls like n^-(1 - 1/a) until n passes 1/min P, and exponentially from there on;
    for a = 1 like 1/ln L until then. Parameters as for `expected_number`.
    """
    k = checks.integer("n_classes", n_classes, minimum=2)
    missing = _missing(common, tokens_per_class)
    return (np.asarray(common) * missing ** (k - 1)).sum(axis=-1)


def _missing(common: ArrayLike, n: ArrayLike) -> np.ndarray:
    p = checks.finite_array("common", common, ndim=1)
    if (p <= 0).any() or (p >= 1).any():
        raise checks.reject("common", "be between 0 and 1, both excluded", p)
    return np.exp(checks.non_negative_array("tokens_per_class", n)[..., None] * np.log1p(-p))


def population(common: ArrayLike, *, n_classes: int, distinct: Sequence[float]) -> np.ndarray:
    """P(. | n), one row a class: the common tokens, then those of each class, which share what is left in the ratio."""
    p, own = checks.finite_array("common", common, ndim=1), np.asarray(distinct, dtype=float)
    k = checks.integer("n_classes", n_classes, minimum=2)
    rows = np.zeros((k, p.size + k * own.size))
    rows[:, : p.size] = p
    for n in range(k):
        rows[n, p.size + n * own.size : p.size + (n + 1) * own.size] = (1 - p.sum()) * own / own.sum()
    return rows


def trained(rows: np.ndarray, *, vocab_size: int, eta_y: float, eta_z: float, t_end: float) -> Trajectory:
    """The full flow on one bag a class, of these counts or probabilities: all sequences of a class pooled."""
    k = len(rows)
    seen = rows.any(axis=0)
    counts = np.where(seen, rows, 0.0)
    bags = Bags.from_dense(
        np.zeros(k, dtype=int), np.arange(k), counts / counts.sum(axis=1, keepdims=True), vocab_size=vocab_size
    )
    return gradient_flow(bags, eta_y=eta_y, eta_z=eta_z, t_end=t_end, n_times=2, rtol=1e-6, atol=1e-9)


def suppression(
    *,
    tokens_per_class: Sequence[int] = (30, 100, 300, 1000, 2000, 3000),
    seeds: int = 8,
    n_classes: int = 4,
    n_tokens: int = 200,
    exponent: float = 1.0,
    vocab_size: int = 50,
    eta_y: float = 1.0,
    eta_z: float = 1.0,
    t_end: float = 200.0,
) -> xr.Dataset:
    """Number and attention of spurious distinct tokens, counted and predicted, against the size of the data set.

    Each class has ``n_tokens`` common tokens (`zipf_common`) and four distinct ones. Multinomial data sets, pooled by
    class, train the full flow to ``t_end``. The attention after training is predicted as the expected share times the
    factor by which the attention of a token whose logit does not move grows in the population's flow, since the rise of
    a rare token's logit is of order f_l^2.

    Returns
    -------
    xarray.Dataset
        ``number``, ``start``, ``end`` (tokens_per_class, seed): spurious tokens, and the attention on them, mean over
        classes; ``risen``: the share of them whose logit rose; ``expected_number``, ``expected_start``,
        ``expected_end`` (tokens_per_class); ``curve_number``, ``curve_start``, ``curve_end`` (size): these
        expectations at many sizes from the smallest to the largest.
    """
    common = zipf_common(n_tokens, exponent=exponent)
    rows = population(common, n_classes=n_classes, distinct=(4, 3, 2, 1))
    options: dict[str, Any] = {"vocab_size": vocab_size, "eta_y": eta_y, "eta_z": eta_z, "t_end": t_end}
    z = trained(rows, **options).final.Z[0]
    lift = float(1 / (rows[0] * np.exp(z)).sum())
    sizes = np.array(tokens_per_class)
    found = {name: np.zeros((sizes.size, seeds)) for name in ("number", "start", "end", "risen")}
    for i, n in enumerate(sizes):
        for j, sequence in enumerate(np.random.SeedSequence([int(n), 10]).spawn(seeds)):
            rng = np.random.default_rng(sequence)
            counts = np.stack([rng.multinomial(n, row / row.sum()) for row in rows]).astype(float)
            spurious = np.flatnonzero((counts[:, : common.size] > 0).sum(axis=0) == 1)
            z = trained(counts, **options).final.Z[0]
            share, grown = counts / n, counts * np.exp(z)
            grown /= grown.sum(axis=1, keepdims=True)
            found["number"][i, j] = spurious.size
            found["start"][i, j] = share[:, spurious].sum(axis=1).mean()
            found["end"][i, j] = grown[:, spurious].sum(axis=1).mean()
            found["risen"][i, j] = (z[spurious] > 0).mean() if spurious.size else np.nan
    data: dict[str, Any] = {name: (("tokens_per_class", "seed"), values) for name, values in found.items()}
    curve = np.unique(np.geomspace(sizes.min(), sizes.max(), 100).round().astype(np.int64))
    for axis, prefix, at in (("tokens_per_class", "expected", sizes), ("size", "curve", curve)):
        predicted = {"tokens_per_class": at, "n_classes": n_classes}
        number, start = expected_number(common, **predicted), expected_share(common, **predicted)
        named = {"number": number, "start": start, "end": lift * start}
        data |= {f"{prefix}_{name}": (axis, values) for name, values in named.items()}
    facts = {"lift": lift, "n_tokens": n_tokens, "exponent": exponent, "n_classes": n_classes}
    return xr.Dataset(data, {"tokens_per_class": sizes, "size": curve}, facts)


# The figure


def _data_sets(effort: Effort) -> xr.Dataset:
    return suppression(seeds=2, tokens_per_class=(30, 300, 3000)) if effort.quick else suppression()


def _numbers(data: xr.Dataset) -> str:
    rows = []
    for n in data["tokens_per_class"].values:
        row = data.sel(tokens_per_class=n)
        rows.append(
            f"n = {n}: {float(row['number'].mean()):.3g} spurious tokens (expected "
            f"{float(row['expected_number']):.3g}), attention {float(row['end'].mean()):.2g} (expected "
            f"{float(row['expected_end']):.2g})."
        )
    risen = float(data["risen"].weighted(data["number"]).mean()) if bool(data["risen"].notnull().any()) else np.nan
    rows.insert(0, f"K = {data.attrs['n_classes']} classes of {data.attrs['n_tokens']} common tokens.")
    return f"The logits of {risen:.0%} of the spurious tokens rose. " + " ".join(rows)


@styled
def spurious_tokens(data: xr.Dataset) -> Figure:
    """Spurious distinct tokens against the size of the data set: number and attention, and expectations (Section 9).

    Common tokens that occur with one next token only in the data, Zipf's law. Lines: expectations in
    closed form; dots: mean and standard deviation over data sets, before and after training in the full flow. Agrees
    with the paper's remark that large data sets suppress them.

    Parameters
    ----------
    data : xarray.Dataset
        From `spurious.suppression`.
    """
    figure = canvas(figsize=(9.5, 4))
    left, right = figure.subplots(1, 2)
    n = data["tokens_per_class"]
    panels = {
        left: (("number", "spurious tokens", BLUE),),
        right: (("start", "before training", GREEN), ("end", "after training", VERMILION)),
    }
    for axes, names in panels.items():
        for name, label, colour in names:
            axes.plot(data["size"], data[f"curve_{name}"], color=colour, label=f"{label}, expected")
            mean, spread = data[name].mean("seed"), data[name].std("seed")
            axes.errorbar(n, mean, spread, fmt="o", color=colour, markersize=4, capsize=2, label=f"{label}, counted")
        axes.set(xscale="log", xlabel="contextual tokens of each class in the data set")
        axes.legend()
    left.set(ylabel="number", yscale="symlog", ylim=(0, None))
    right.set(ylabel="attention on them", yscale="log", ylim=(1e-6, 1))
    figure.suptitle("Tokens that look distinct because the data set is small")
    return figure


FIGURES = (Entry("spurious_tokens", "Scan and Snap", spurious_tokens, _data_sets, claims=_numbers),)
