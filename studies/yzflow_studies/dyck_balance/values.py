"""Balance violation and the decoder at the mean prefix against errors at long prefixes, and where balance is needed."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage, balance, silence, training

from theory.values import Study, stored
from yzflow import intervals
from yzflow_studies.dyck_balance.study import flow_and_sgd
from yzflow_studies.words_and_prefixes.ranks import rank_correlation


def mean(values: xr.DataArray) -> dict[str, float]:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(intervals.standard_error(values))}


def off_by(errors: xr.DataArray) -> dict[str, float]:
    return {"mean": float(errors.mean()), "most": float(errors.max())}


def lengths(scales: Sequence[float], weights: Sequence[float], seeds: int, data_seed: int = 0) -> dict[str, Any]:
    """Free Z on the last positions of prefixes, by initial scale and weight of (22)."""
    samples = training.data(lengths=tuple(training.LENGTHS), seed=data_seed)
    runs = training.trained(scale=scales, contrast_weight=weights, seeds=seeds, samples=samples)
    runs = runs.isel(embedding=0, eta=0, drop=True)
    short = runs["accuracy"].sel(length="below 28", query="all", drop=True)
    long = runs["accuracy"].sel(length="400-500", drop=True)
    longest = runs["accuracy"].sel(length="4000-5000", query="close", drop=True)
    off = abs(runs["predicted"].sel(length="400-500", drop=True) - long)
    found: dict[str, Any] = {"rows": [], "perfect": {}, "divided": {}}
    for scale, weight in itertools.product(scales, weights):
        at = {"scale": scale, "contrast_weight": weight}
        near = {**at, "query": "all"}
        one, violation = long.sel({**at, "query": "close"}, drop=True), runs["violation"].sel(at, drop=True)
        gain = one - long.sel(scale=scale, contrast_weight=weights[0], query="close", drop=True)
        found["rows"].append(
            {
                "scale": scale,
                "weight": weight,
                "short": mean(short.sel(at)),
                "long": mean(one),
                "longest": float(longest.sel(at).mean()),
                "violation": mean(violation),
                "rank": rank_correlation(violation, one)._asdict(),
                "off": off_by(off.sel(near)),
                "against": f"{float(gain.mean()):+.3f} +- {float(intervals.standard_error(gain)):.3f}"
                if weight
                else "",
            }
        )
    for scale in scales:
        name, own = f"{scale:g}".replace(".", "_"), runs["violation"].sel(scale=scale, drop=True)
        divided = own.sel(contrast_weight=weights[0]) / own.sel(contrast_weight=weights[-1])
        found["divided"][name] = {**mean(divided), "most": float(divided.max())}
        first = short.sel(scale=scale, contrast_weight=weights[0])
        found["perfect"][name] = {"n": int((first >= 0.9995).sum()), "least": float(first.min())}
    ranks = [row["rank"]["value"] for row in found["rows"]]
    closing = runs["predicted"].sel(length="400-500", query="close").values.ravel()
    same = float(np.corrcoef(closing, long.sel(query="close").values.ravel())[0, 1])
    return found | {
        "layers": long.sel(query="close").size,
        "least_rank": min(ranks),
        "most_rank": max(ranks),
        "together": rank_correlation(runs["violation"], long.sel(query="close", drop=True))._asdict(),
        "same": same,
        "explained": same**2,
        "off": {query: off_by(off.sel(query=query)) for query in ("all", "close")},
        "guess": float(abs(longest.mean("seed") - 0.5).max()),
    }  # fmt: skip


def silent(k: int, depth: int, seeds: int, length: int) -> dict[str, Any]:
    """Zero values on the deepest level: how wrong a layer with random attention is, and how far from (11)."""
    language = DyckLanguage(k, depth)
    residuals, errors = [], []
    for seed in range(seeds):
        layer = silence.silent_layer(language, [(kind, depth) for kind in range(k)], rng=seed)
        residuals.append(float(balance.residual(layer.Z, language)))
        head = silence.memory_head(layer, language)
        for bags in (
            language.enumerate(max_length=6),
            language.sample(50, min_length=length, max_length=length, rng=1),
        ):
            errors.append(np.abs(head(layer.features(bags)) - bags.target).max())
    return {"residuals": residuals, "error": max(errors)}


def sets(languages: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Every set of pairs: how many may have zero values by the rule, and whether layers agree with it."""
    rows, agree = [], True
    for k, depth in languages:
        language = DyckLanguage(k, depth)
        bags = language.sample(20, min_length=200, max_length=200, rng=0)
        pairs = list(itertools.product(range(k), range(1, depth + 1)))
        chosen = [some for size in range(len(pairs) + 1) for some in itertools.combinations(pairs, size)]
        allowed = [silence.may_be_silent(language, some) for some in chosen]
        rows.append({"sets": len(chosen), "silent": sum(allowed)})
        agree &= all(right(language, some, bags) == may for some, may in zip(chosen, allowed, strict=True))
    return {"rows": rows, "agree": agree}


def right(language: DyckLanguage, silent_pairs: Sequence[tuple[int, int]], bags: Any) -> bool:
    """Whether a layer with these values zero is right on long prefixes."""
    layer = silence.silent_layer(language, silent_pairs, 0)
    try:
        head = silence.memory_head(layer, language)
    except ValueError:  # it cannot tell apart what goes on differently
        return False
    return bool(np.abs(head(layer.features(bags)) - bags.target).max() < 1e-9)


def flow(etas: Sequence[float], t: float, scale: float, max_length: int) -> dict[str, Any]:
    """Balance along SGD on all prefixes, against the flow."""
    runs = flow_and_sgd(etas=etas, t_end=t, scale=scale, max_length=max_length)
    off = abs(runs - runs.sel(run="flow")).max("time").sel(run=[f"{eta:g}" for eta in etas])
    own = runs.sel(run="flow")
    gaps = {name: off[name].values for name in ("residual", "violation")}
    found: dict[str, Any] = {
        "rows": [{"eta": eta, **{name: gaps[name][n] for name in gaps}} for n, eta in enumerate(etas)],
    }
    for name, gap in gaps.items():
        found[name] = {
            "order": np.log(gap[1] / gap[-1]) / np.log(etas[1] / etas[-1]),
            "start": float(own[name][0]),
            "top": float(own[name].max()),
            "end": float(own[name][-1]),
        }
    return found


def undecided() -> dict[str, int]:
    """In how many settings the interval of the rank correlation of violation and accuracy holds zero, as stored."""
    rows = stored(Path(__file__).parent)["lengths"]["values"]["rows"]
    return {"settings": len(rows), "hold_zero": sum(one["rank"]["low"] <= 0 <= one["rank"]["high"] for one in rows)}


STUDIES = (
    Study(
        "lengths",
        lengths,
        {"scales": [0.1, 1.0], "weights": [0.0, 0.1, 1.0, 10.0], "seeds": 20},
        ("last positions of prefixes, exact targets", "one draw of training and test prefixes for all seeds"),
        quick=False,
    ),
    Study("undecided", undecided),
    Study("silent", silent, {"k": 2, "depth": 2, "seeds": 4, "length": 500}, noise=1e-10, tolerance=1e-3),
    Study("sets", sets, {"languages": [[2, 2], [2, 3], [3, 2]]}),
    Study("flow", flow, {"etas": [1.0, 0.5, 0.25, 0.125], "t": 200.0, "scale": 0.5, "max_length": 6}, quick=False),
)
