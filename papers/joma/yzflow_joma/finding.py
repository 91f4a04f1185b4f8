"""Study: is attention in training first sparse, then dense? The words of the page follow from the runs.

``python -m yzflow_joma.finding FOLDER`` trains, and writes ``in_training.md`` with its figure. In a clone
``python -m yzflow.values write joma.in_training`` trains, stores the numbers of the page and writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binomtest

import yzflow as yz
from yzflow.figures.style import ORANGE, canvas, styled
from yzflow_joma.flows import entropy_of
from yzflow_joma.settings import JomaSetting, drawn_classes, random_contexts

KINDS = ("Scan and Snap's classes", "forty random contexts of six tokens", "ten random contexts of twenty tokens")
ACTIVATIONS = ("softplus", "linear")
END, SEEDS = 1e4, 20
# A rise counts if it is more than this share of the fall before it.
LEAST = 0.01


def drawn(kind: str, activation: str, seed: int) -> JomaSetting:
    """The data and the start of a run."""
    if kind == KINDS[0]:
        return replace(drawn_classes(seed), activation=activation)
    n, tokens, units = (40, 6, 4) if kind == KINDS[1] else (10, 20, 8)
    return random_contexts(kind, n, tokens, units, seed=seed, activation=activation)


def followed(kind: str, activation: str, seed: int, *, t_end: float = END, rtol: float = 1e-7) -> xr.Dataset:
    """Entropies and loss along the full gradient flow with softmax, at times in equal ratios."""
    flow = drawn(kind, activation, seed).flow("softmax")
    times = np.concatenate([[0.0], np.geomspace(0.1, t_end, 150)])
    run = yz.integrate(flow, t_end=t_end, times=times, rtol=rtol, atol=rtol / 100).dataset
    mean = [float(entropy_of(flow.gathered({"z": z})).mean()) for z in run["z"].values]
    return run[["entropy", "loss"]].drop_attrs().assign(of_contexts=("time", mean))


def study(
    *,
    seeds: int = SEEDS,
    t_end: float = END,
    kinds: Sequence[str] = KINDS,
    activations: Sequence[str] = ACTIVATIONS,
) -> xr.Dataset:
    """All runs, and their largest change ``apart`` at a hundredth of the tolerance, for one run of each kind."""

    def of(kind: str, activation: str) -> xr.Dataset:
        return xr.concat([followed(kind, activation, seed, t_end=t_end) for seed in range(seeds)], "seed")

    rows = [xr.concat([of(kind, name) for name in activations], "activation") for kind in kinds]
    runs = xr.concat(rows, "kind").assign_coords(kind=list(kinds), activation=list(activations), seed=range(seeds))
    apart = []
    for kind in kinds:
        again = followed(kind, activations[0], 0, t_end=t_end, rtol=1e-9)
        first = runs["entropy"].sel(kind=kind, activation=activations[0], seed=0)
        apart.append(float(np.abs(again["entropy"].values - first.values).max()))
    return runs.assign(apart=("kind", apart))


def fall(entropy: xr.DataArray) -> xr.DataArray:
    """The fall: the largest entropy before the minimum, less the minimum."""
    return entropy.where(entropy["time"] <= entropy.idxmin("time")).max("time") - entropy.min("time")


def rise(entropy: xr.DataArray) -> xr.DataArray:
    """The rise: the largest entropy after the minimum, less the minimum."""
    return entropy.where(entropy["time"] >= entropy.idxmin("time")).max("time") - entropy.min("time")


def risen(runs: xr.Dataset, name: str = "entropy") -> xr.DataArray:
    """True for each run with a rise above `LEAST` of its fall."""
    return rise(runs[name]) > LEAST * fall(runs[name])


def numbers(runs: xr.Dataset) -> dict[str, Any]:
    """The numbers of the page on the runs, to be published: see ``values.py``."""
    rose = risen(runs)
    found: dict[str, Any] = {
        "rows": [_row(runs, kind, name) for kind in runs["kind"].values for name in runs["activation"].values],
        "of_contexts": _counts(runs, "of_contexts"),
        "of_all": _counts(runs, "entropy"),
        "apart": float(runs["apart"].max()),
        "t_end": float(runs["time"][-1]),
        "seeds": runs.sizes["seed"],
        "activations": runs["activation"].values.tolist(),
    }
    if bool(rose.any()):
        least = runs["loss"].isel(time=runs["entropy"].argmin("time"))
        factor = (least / runs["loss"].isel(time=-1)).where(rose)
        found["loss"] = {"median": float(factor.median()), "least": float(factor.min()), "most": float(factor.max())}
    return found


def _counts(runs: xr.Dataset, name: str) -> list[dict[str, Any]]:
    """The runs that rose, and all runs, of each kind of data."""
    of = {str(kind): risen(runs, name).sel(kind=kind) for kind in runs["kind"].values}
    return [{"data": kind, "rose": int(rose.sum()), "runs": rose.size} for kind, rose in of.items()]


def _row(runs: xr.Dataset, kind: str, activation: str) -> dict[str, Any]:
    """A row of the table: counts, the exact 95% interval of their share, and medians."""
    entropy = runs["entropy"].sel(kind=kind, activation=activation)
    rose, fell = risen(entropy.to_dataset(name="entropy")), fall(entropy)
    low, high = binomtest(int(rose.sum()), rose.size).proportion_ci(0.95)
    late = entropy.sel(time=entropy["time"][-1] / 10, method="nearest") - entropy.isel(time=-1)
    back = {"back": float((rise(entropy) / fell).where(rose).median())} if rose.any() else {}
    return {
        "data": str(kind),
        "activation": str(activation),
        "rose": int(rose.sum()),
        "runs": rose.size,
        "low": float(low),
        "high": float(high),
        "fall": float(fell.median()),
        **back,
        "late": float(late.median()),
    }


def sentence(found: Mapping[str, Any]) -> str:
    """The finding, in one sentence."""
    rose, none = ([one for one in found["of_all"] if bool(one["rose"]) is which] for which in (True, False))
    times = f"up to t = {found['t_end']:g}"
    of_none = " and ".join(f"none of {one['runs']} on {one['data']}" for one in none)
    if not rose:
        return f"No: attention became sparse and never denser again {times}, in {of_none}."
    of_rose = " and ".join(f"{one['rose']} of {one['runs']} runs on {one['data']}" for one in rose)
    if not none:
        return f"Often: attention became sparse and then denser again {times} in {of_rose}."
    return (
        f"It depends on the data: attention became sparse and then denser again {times} in {of_rose}, but in {of_none}."
    )


def table(found: Mapping[str, Any]) -> list[str]:
    """Counts for each kind of data and activation, as Markdown."""
    lines = [
        "| data | activation | rose again | share, 95% | fall (nats) | taken back | fell in the last nine tenths |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        back = f"{row['back']:.0%}" if "back" in row else "-"
        share, size = f"{row['low']:.0%} to {row['high']:.0%}", f"{row['fall']:.2f}"
        cells = [row["data"], row["activation"], f"{row['rose']} of {row['runs']}", share, size, back]
        lines.append(f"| {' | '.join(cells)} | {row['late']:.3f} |")
    return lines


def sure(found: Mapping[str, Any]) -> list[str]:
    """Further findings of the runs, one sentence each."""
    lines = [
        "Of attention itself, its entropy averaged over contexts, the same counts are "
        + " and ".join(f"{one['rose']} of {one['runs']} on {one['data']}" for one in found["of_contexts"])
        + "."
    ]
    if "loss" in found:
        factor = found["loss"]
        lines.append(
            f"The loss at the sparsest time was {factor['median']:.1f} times that of the end where attention got"
            f" denser (median; {factor['least']:.1f} to {factor['most']:.0f} times)."
        )
    lines.append(
        f"With a tolerance a hundred times smaller the entropy of the first run of each kind of data is the same to"
        f" {found['apart']:.0e} nats."
    )
    return lines


@styled
def drawing(runs: xr.Dataset) -> Figure:
    """Entropy of softmax(z) along the full gradient flow, a line for each run; orange: it rose again."""
    kinds = runs["kind"].values
    figure = canvas(figsize=(3.2 * len(kinds), 3.0))
    for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        of_kind = runs.sel(kind=kind).stack(run=("activation", "seed"))
        for i, rose in enumerate(risen(of_kind).values):
            line = of_kind["entropy"].isel(run=i, time=slice(1, None))
            axes.plot(of_kind["time"][1:], line, color=ORANGE if rose else "gray", linewidth=0.8)
        axes.set(xscale="log", xlabel="time", title=str(kind))
    figure.axes[0].set_ylabel("entropy of softmax(z) (nats)")
    return figure


def page(found: Mapping[str, Any]) -> str:
    """The page of published numbers, in Markdown."""
    seeds, end, scale = found["seeds"], found["t_end"], drawn(KINDS[1], "linear", 0).scale
    activations = " and ".join(found["activations"])
    lines = [
        "# Is attention sparse first, then dense, in training?",
        "",
        sentence(found),
        "",
        "![Entropy of attention along the full gradient flow](in_training.png)",
        "",
        (drawing.__doc__ or "").strip(),
        "",
        "Scan and Snap says that attention freezes, JoMA that it is sparse first and dense in the end. Under JoMA's",
        "reduced flow, where mu is fixed, it turns whenever the entries of mu differ and none is zero (the statement",
        "*First sparse, then dense*). This page asks the full gradient flow, where nothing is fixed.",
        "",
        "## How sure",
        "",
        *table(found),
        "",
        "Falls are from the largest entropy before the sparsest time; they, what was taken back of them and the last",
        "column are medians. That column has what it fell by from a tenth of the time on; where negative, it rose.",
        "",
        *(f"- {line}" for line in sure(found)),
        "- Not examined: why it rises where it does. That it is the mechanism of the reduced flow does not follow.",
        "",
        "## Settings",
        "",
        "One layer with a residual link and one hidden layer, softmax attention, one query, gradient flow to",
        f"t = {end:g} at rate one; activations {activations}; {seeds} draws of data and start each, of size {scale:g}.",
        "Scan and Snap's classes: three, with two distinct tokens each and a common one, whose shares are drawn.",
        "Random contexts: counts are exponential, and the next token is the half of a random linear function.",
        f"A rise counts if it takes back more than {LEAST:.0%} of the fall before it. Later rises are not seen.",
        "",
        "Made by `python -m yzflow_joma.finding`; the words follow from the numbers in `yzflow_joma/values.json`.",
    ]
    return "\n".join([*lines, ""])


def main(folder: str = ".", *, seeds: int = SEEDS, t_end: float = END) -> None:
    """Train, and write the page and its figure into a folder."""
    print(f"{len(KINDS) * len(ACTIVATIONS) * seeds} runs of the full flow to t = {t_end:g}", file=sys.stderr)
    runs = study(seeds=seeds, t_end=t_end)
    drawing(runs).savefig(Path(folder) / "in_training.png", dpi=110, metadata={"Software": None})
    found = numbers(runs)
    (Path(folder) / "in_training.md").write_text(page(found), encoding="utf-8")
    print(sentence(found))


if __name__ == "__main__":
    main(*sys.argv[1:2])
