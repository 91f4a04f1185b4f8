"""Numbers of the paper's SGD figures when they are made anew."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynamics import SequenceClasses
from theory.values import Study
from yzflow import intervals
from yzflow.papers.scan_and_snap import synthetic


def _own(run: Any, at: int) -> np.ndarray:
    """Attention on the ten distinct tokens of each next token, rising in probability."""
    shares, own = (run.dataset[name].values for name in ("attention", "distinct"))
    return np.stack([shares[at, n, own[n]] for n in range(own.shape[0])])


def _common(runs: Sequence, at: int) -> list[float]:
    return [float(1 - _own(run, at).sum(axis=1).mean()) for run in runs]


def _entropies(runs: Sequence, at: int) -> list[float]:
    return [float(value) for run in runs for value in run.attention_entropy().isel(time=at).mean(keepdims=True)]


def _range(values: Sequence[float]) -> dict[str, float]:
    return {"low": float(min(values)), "high": float(max(values)), "mean": float(np.mean(values))}


def small(seeds: int) -> dict:
    """Fig. 4 over seeds: attention on common tokens, entropy on distinct ones, and the order of attention."""
    rows, monotone = [], True
    for eta_y, eta_z in synthetic.SMALL_RATES:
        runs = [synthetic.syn_small(eta_y=eta_y, eta_z=eta_z, seed=seed) for seed in range(seeds)]
        monotone &= all((np.diff(_own(run, -1)) > 0).all() for run in runs)
        rows.append(
            {
                "eta_y": eta_y,
                "common_first": np.mean(_common(runs, 0)),
                "common": _range(_common(runs, -1)),
                "entropy_first": np.mean(_entropies(runs, 0)),
                "entropy": _range(_entropies(runs, -1)),
            }
        )
    return {"rows": rows, "monotone": bool(monotone), "steps": synthetic.STEPS}


def longer(eta_y: float, eta_z: float, steps: int, seeds: int) -> dict:
    """Fig. 4 at one pair of rates after the paper's steps and after many more, over seeds."""
    runs = [
        synthetic.syn_small(eta_y=eta_y, eta_z=eta_z, steps=steps, record_every=synthetic.STEPS, seed=seed)
        for seed in range(seeds)
    ]
    top = [[float(share.max()) for run in runs for share in _own(run, at)] for at in (1, -1)]
    shares = [run.dataset["attention"].values for run in runs]
    return {
        "first": synthetic.STEPS,
        "loss": max(float(run.dataset["loss"][1]) for run in runs),
        "early": _range(_entropies(runs, 1)),
        "late": _range(_entropies(runs, -1)),
        "top_early": _range(top[0]),
        "top_late": _range(top[1]),
        "moved": max(float(np.abs(share[-1] - share[1]).sum(axis=1).max() / 2) for share in shares),
    }


def end(eta_y: float, eta_z: float, steps: int, seed: int) -> dict:
    """Entropy after very many steps, and how far attention moves in the second half of them, in total variation."""
    run = synthetic.syn_small(eta_y=eta_y, eta_z=eta_z, steps=steps, record_every=synthetic.STEPS, seed=seed)
    shares = run.dataset["attention"].values
    moved = np.abs(shares[-1] - shares[len(shares) // 2]).sum(axis=1).max() / 2
    return {"half": steps // 2, "entropy": _entropies([run], -1)[0], "moved": moved}


def adam(seeds: int) -> dict:
    """Fig. 5 over seeds: which of the ten distinct tokens has most attention, and how many have more than 1/M."""
    rows = []
    for rate in synthetic.ADAM_RATES:
        runs = [synthetic.syn_small(eta_y=rate, eta_z=rate, optimizer="adam", seed=seed) for seed in range(seeds)]
        shares = np.concatenate([_own(run, -1) for run in runs])
        above = (shares > 1 / SequenceClasses.syn_small().vocab_size).sum(axis=1)
        top = shares.argmax(axis=1)
        rows.append(
            {
                "rate": rate,
                "low": int(top.min()),
                "high": int(top.max()),
                "of_mean": int(shares.mean(axis=0).argmax()),
                "above": float(np.median(above)),
            }
        )
    return {"rows": rows}


def medium(seeds: int, queries: int, eta_z: float, ratio: float, several: Sequence[int]) -> dict:
    """Figs. 6, 11 and 12: entropy over all rates, recall over the paper's windows, and their orders."""
    runs = synthetic.syn_medium(seeds=seeds, threads=1)
    entropy = runs["entropy"]
    mean, half = entropy.mean("seed"), intervals.of_mean(entropy)
    least = mean.where(mean == mean.min(), drop=True).squeeze()
    place = {name: float(least[name]) for name in ("n_queries", "eta_z", "ratio")}
    cell = entropy.sel(n_queries=queries, eta_z=eta_z, ratio=ratio)
    ends, attention = [], []
    for number in synthetic.N_QUERIES:
        window = synthetic.window(runs, number)
        curve = window["softmax_recall"].mean("seed")
        ends.append({"first": curve.isel(threshold=0), "last": curve.isel(threshold=-1)})
        attention.append(window["recall"].mean("seed"))
    falls = xr.concat([synthetic.descent(runs, number) for number in synthetic.N_QUERIES], "n_queries")
    falls = falls.assign_coords(n_queries=list(synthetic.N_QUERIES))
    orders = {}
    for name, sign in (("ratio", 1), ("eta_z", -1)):
        steps = sign * falls.diff(name)
        ahead = steps.mean("seed")
        orders[name] = {
            "panels": int((ahead > 0).all(name).sum()),
            "of_panels": int((ahead > 0).all(name).size),
            "clear": int((ahead > intervals.of_mean(steps)).sum()),
            "steps": int(ahead.size),
        }
    most = mean.sel(n_queries=list(several))
    return {
        "cell": {"mean": float(cell.mean()), "sd": float(cell.std(ddof=1))},
        "least": {"mean": float(mean.min()), "half": float(half.sel(place)), **place},
        "most": float(mean.max()),
        "minimum_at_2": bool((most.idxmin("ratio") == ratio).all()),
        "one_least": float(mean.sel(n_queries=1).idxmin("ratio").max()),
        "one_rises": int((mean.sel(n_queries=1).diff("ratio") > 0).sum()),
        "one_steps": int(mean.sel(n_queries=1).diff("ratio").size),
        "sparser": bool((mean.diff("eta_z") < 0).all()),
        "less_at_2": bool((most.sel(ratio=2) < most.sel(ratio=1)).all()),
        "falls_further_at_2": bool((falls.mean("seed").sel(ratio=2) > falls.mean("seed").sel(ratio=1)).all()),
        "vocab": SequenceClasses.syn_medium(10).vocab_size,
        "attention": {"low": float(attention[-1].min()), "high": float(attention[-1].max())},
        "ends": {
            name: {
                "low": min(float(end[name].min()) for end in ends),
                "high": max(float(end[name].max()) for end in ends),
            }
            for name in ("first", "last")
        },
        "ten": {
            name: {"low": float(ends[-1][name].min()), "high": float(ends[-1][name].max())}
            for name in ("first", "last")
        },
        "orders": orders,
    }


def row_sums(steps: int) -> dict:
    """The largest row sums of Y and Z after steps from zero with each optimizer: zero where they are conserved."""
    found = {}
    for name in ("sgd", "adam"):
        final = synthetic.syn_small(eta_y=0.5, eta_z=0.5, optimizer=name, steps=steps).final
        # The last column of Y is that of each next token that never occurs.
        weights = np.array([1.0] * (final.Y.shape[1] - 1) + [final.vocab_size - final.Y.shape[1] + 1])
        found[name] = {"y": np.abs(final.Y @ weights).max(), "z": np.abs(final.Z.sum(axis=1)).max()}
    return found


STUDIES = (
    Study("small", small, {"seeds": 20}, quick=False, tolerance=1e-4),
    Study("slow", longer, {"eta_y": 1.0, "eta_z": 1.0, "steps": 10_000, "seeds": 5}, quick=False, tolerance=1e-3),
    Study("fast", longer, {"eta_y": 10.0, "eta_z": 1.0, "steps": 10_000, "seeds": 1}, quick=False, tolerance=1e-3),
    Study("end", end, {"eta_y": 1.0, "eta_z": 1.0, "steps": 100_000, "seed": 0}, quick=False, tolerance=1e-3),
    Study("adam", adam, {"seeds": 20}, quick=False, tolerance=1e-3),
    Study(
        "medium",
        medium,
        {"seeds": 10, "queries": 5, "eta_z": 1.0, "ratio": 2.0, "several": [3, 5, 10]},
        quick=False,
        tolerance=1e-3,
    ),
    Study("row_sums", row_sums, {"steps": 100}, quick=False, noise=1e-12),
)
