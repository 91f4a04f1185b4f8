"""Why attention of ordinary transformers on Dyck differs more between seeds than random rows: one setting at a time.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Section 4.1 and Table 1. The hypotheses below were written, with seeds,
data and statistics, before any of the runs was made. yzflow-deep is needed to train, not to look at results.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks, distributions
from yzflow import intervals
from yzflow.audits.survival_verdicts import holm
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, styled
from yzflow_studies.dyck_embeddings.study import distances, over_pairs, random_variation
from yzflow_studies.ordinary_dyck import deep as deep_dyck
from yzflow_studies.precise_dyck import precise

if TYPE_CHECKING:
    from yzflow_deep import Architecture, Transformer

PAPER = "Bounded Dyck"
N_BASE = 12  # seeds of the base
N_SEEDS = 8  # of each other setting
FIRST_SEED = 4300  # no setting shares a seed with another, and no other study of this project has any of them
DATA_SEED = 4242  # of training and test words, drawn for this study
LEVEL = 0.05  # of Holm's procedure over all factors, two-sided
VERDICTS = ("closes", "lessens", "widens", "open")
NEAR = 1.5  # times random rows: "close to the random baseline"
GPT2_SCALE = 0.02  # standard deviation of every matrix at the start of a GPT-2


@dataclass(frozen=True)
class VariationSetting:
    """How transformers are trained; the defaults are those that `ordinary_dyck` published.

    Attributes
    ----------
    name : str
    width : int
    mlp_width : int, optional
        Units of the feed-forward part. Default: four times the width.
    positions : None or "linear"
        Linear ones are i / 28 times a vector, 28 being the longest input.
    eta : float
        Rate of Adam.
    steps : int
        Of 64 words each.
    n_train : int
        Words to train on.
    scale : float, optional
        Standard deviation of all matrices at the start. Default: one over the root of their rows.
    """

    name: str
    width: int = deep_dyck.WIDTH
    mlp_width: int | None = None
    positions: str | None = None
    eta: float = deep_dyck.ETA
    steps: int = deep_dyck.STEPS
    n_train: int = 10_000
    scale: float | None = None


BASE = VariationSetting("as published")
TRAINED = (
    VariationSetting("width 64", width=64),
    VariationSetting("feed-forward part of 32", mlp_width=32),
    VariationSetting("linear positions", positions="linear"),
    VariationSetting("Adam at 3e-4", eta=3e-4),
    VariationSetting("2000 steps", steps=2000),
    VariationSetting("40,000 words", n_train=40_000),
    VariationSetting("start at scale 0.02", scale=GPT2_SCALE),
)
CONVERGED = VariationSetting("Adam at 3e-4, 4500 steps", eta=3e-4, steps=4500)  # no factor: until nearly right
MEASURED = ("mean of both layers", "word of pure nests")  # read off the runs of `BASE`
FACTORS = (*(setting.name for setting in TRAINED), *MEASURED)


def probes(language: DyckLanguage) -> np.ndarray:
    """Two words with every bracket at every depth, START first: the project's, and one nest of each type."""
    levels = [language.max_depth]
    pure = np.concatenate([np.repeat([2 * i, 2 * i + 1], 2 * levels) for i in range(language.n_types)])
    words = np.stack([dyck.probe_prefix(language), pure])
    return np.insert(words, 0, language.n_brackets, axis=1)


def architecture(setting: VariationSetting, language: DyckLanguage) -> Architecture:
    """A GPT of two layers and one head, as `yzflow_studies.ordinary_dyck.deep` trains it, by the setting."""
    deep = distributions.bring("yzflow_deep")

    longest = deep_dyck.data(language, n=1).inputs.shape[1]
    return deep.Architecture(
        language.n_brackets + 1, n_outputs=language.n_brackets, tied=False, n_layers=2, width=setting.width,
        mlp_width=setting.mlp_width, positions=setting.positions,
        max_length=None if setting.positions is None else longest,
    )  # fmt: skip


def scaled_start(architecture: Architecture, scale: float, seed: int) -> Transformer:
    """The start of a seed with all matrices but the embedding, which has GPT-2's scale, at another scale."""
    import jax
    from yzflow_deep import Transformer

    def moved(path, leaf):
        matrix = leaf.ndim > 1 and getattr(path[0], "name", "") != "embedding"
        return leaf * np.float32(scale * np.sqrt(leaf.shape[-2])) if matrix else leaf

    return jax.tree_util.tree_map_with_path(moved, Transformer(architecture, seed))


def trained(
    setting: VariationSetting,
    seeds: Sequence[int],
    *,
    language: DyckLanguage = dyck.LANGUAGE,
    batch_size: int = 64,
    n_test: int = 1000,
    data_seed: int = DATA_SEED,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Train each seed of a setting on words, and measure attention on `probes` and closing brackets of other words.

    Parameters
    ----------
    setting : VariationSetting
    seeds : sequence of int
    language : DyckLanguage
    batch_size, n_test, data_seed : int
        Words a step, test words of fewer than 28 brackets, and the seed of all of them.
    store : path, optional
        A folder of checkpoints: training goes on from them, and what is trained already is not trained again.
    progress : bool

    Returns
    -------
    xarray.Dataset
        Over seed: ``attention(time, probe, layer, row, position)`` at the start and the end, ``accuracy(closing)``,
        ``loss`` and ``diverged``.
    """
    deep = distributions.bring("yzflow_deep")

    checks.instance("setting", setting, VariationSetting)
    shape = architecture(setting, language)
    samples = deep_dyck.data(language, n=setting.n_train, seed=data_seed)
    alike = [list(seeds)] if setting.scale is None else [[seed] for seed in seeds]
    parts = []
    for some in alike:
        start = shape if setting.scale is None else scaled_start(shape, setting.scale, some[0])
        name = f"{setting.name}-{setting.steps}-{some[0]}-{len(some)}".replace(" ", "_")
        name += f"{deep_dyck.of_data(data_seed, DATA_SEED)}.npz"
        runs = deep.train(
            start, samples, learning_rate=setting.eta, steps=setting.steps, optimizer="adam", seeds=some,
            batch_size=batch_size, probe=probes(language), record_every=setting.steps,
            checkpoint=None if store is None else Path(store) / name, progress=progress,
        )  # fmt: skip
        parts.append(runs[["attention", "loss", "diverged", "parameters"]])
    whole = xr.concat(parts, "seed", combine_attrs="override")
    held_out = precise.words(language, "below 28", n=n_test, seed=data_seed)
    right = [list(precise.closings(deep.model_at(whole, seed=seed), held_out).values()) for seed in seeds]
    found = whole[["attention", "loss", "diverged"]].isel(learning_rate=0, head=0, drop=True).isel(time=[0, -1])
    found["accuracy"] = (("seed", "closing"), right, {"long_name": "closing brackets found", "units": "1"})
    return found.assign_coords(time=["start", "end"], closing=["all", "after closing"]).drop_encoding()


def table(
    *,
    settings: Sequence[VariationSetting] = (BASE, *TRAINED),
    n_base: int = N_BASE,
    n_seeds: int = N_SEEDS,
    first_seed: int = FIRST_SEED,
    **arguments: Any,
) -> xr.Dataset:
    """`trained` at every setting, the first of which is the base, of ``n_base`` seeds; each has seeds of its own.

    Returns
    -------
    xarray.Dataset
        That of `trained` over (setting, seed), nan where another setting has the seed.
    """
    cells = []
    for number, setting in enumerate(settings):
        first = first_seed + number * n_base
        cells.append(trained(setting, range(first, first + (n_seeds if number else n_base)), **arguments))
    names = [setting.name for setting in settings]
    return xr.concat(cells, "setting", join="outer", combine_attrs="drop").assign_coords(setting=names)


# Measures


def attention_variation(attention: np.ndarray) -> tuple[float, float]:
    """Mean of ``||A_1 - A_2||_F^2`` over pairs of seeds, and its jackknife error: (seeds, rows, positions)."""
    mean, error = over_pairs(distances(attention))
    return float(mean), float(error)


def own_random(attention: np.ndarray) -> np.ndarray:
    r"""Expected ``||A_1 - A_2||_F^2`` if the entries of each row were shuffled, by the seeds of a pair: (seeds, seeds).

    Shuffled rows of n entries that sum to one have ``E a.b = 1 / n``, so that a row adds ``|a|^2 + |b|^2 - 2 / n``. Of
    rows that are uniform on their simplices this is `random_variation` on average: it is that baseline at the maps'
    own sharpness.
    """
    n = np.arange(1, attention.shape[-2] + 1)
    excess = ((attention**2).sum(axis=-1) - 1 / n).sum(axis=-1)
    return excess[..., :, None] + excess[..., None, :]


def maps(runs: xr.Dataset, setting: str, *, probe: int = 0, layer: int = 2) -> np.ndarray:
    """Attention of a layer at the end of a setting's runs, on one of `probes`: (seeds, rows, positions)."""
    cell = runs["attention"].sel(setting=setting, layer=layer, time="end").isel(probe=probe)
    own = runs["accuracy"].sel(setting=setting).notnull().all("closing")  # seeds of other settings are left out
    return cell.transpose("seed", "row", "position").values[own.values].astype(float)


def _against(one: tuple[float, float, int], base: tuple[float, float, int]) -> dict[str, float]:
    """Difference of two means of independent seeds, half of its 95% interval by Welch's t, and the two-sided p."""
    (mean, error, n), (other, error_base, m) = one, base
    both = np.hypot(error, error_base)
    freedom = both**4 / (error**4 / (n - 1) + error_base**4 / (m - 1))
    return _tested(mean - other, float(both), float(freedom))


def _tested(mean: float, error: float, freedom: float) -> dict[str, float]:
    half = error * float(scipy.stats.t.ppf(0.975, freedom))
    return {"mean": mean, "half": half, "p": float(2 * scipy.stats.t.sf(abs(mean) / error, freedom))}


def effects(runs: xr.Dataset) -> list[dict[str, Any]]:
    """Each factor's variation of the second layer and its change against the base, with the verdict.

    "closes": Holm rejects no change, it falls, and its 95% interval ends below `NEAR` times random rows. "lessens": it
    falls, by Holm, and does not end there. "widens": it rises, by Holm. "open": no change is shown.
    """
    base_maps = maps(runs, BASE.name)
    random, n = random_variation(base_maps.shape[-1]), len(base_maps)
    base = (*attention_variation(base_maps), n)
    rows: list[dict[str, Any]] = []
    for setting in runs["setting"].values[1:]:
        own_maps = maps(runs, setting)
        own = (*attention_variation(own_maps), len(own_maps))
        rows.append({"factor": str(setting), "variation": own, "effect": _against(own, base)})
    mine = distances(base_maps)
    others = (
        (distances(maps(runs, BASE.name, layer=1)) + mine) / 2,
        distances(maps(runs, BASE.name, probe=1)),
    )
    for name, other in zip(MEASURED, others, strict=True):
        mean, error = (float(value) for value in over_pairs(other))
        change, of_change = (float(value) for value in over_pairs(other - mine))
        rows.append({"factor": name, "variation": (mean, error, n), "effect": _tested(change, of_change, n - 1)})
    rejected = holm([row["effect"]["p"] for row in rows], alpha=LEVEL)
    for row, decided in zip(rows, rejected, strict=True):
        mean, error, seeds = row["variation"]
        half = intervals.factor(seeds) * error
        row["variation"] = {"mean": mean, "half": half}
        row["verdict"] = _verdict(row["effect"]["mean"], mean + half, random, decided=bool(decided))
        row["share"] = -row["effect"]["mean"] / (base[0] - random)
    return rows


def _verdict(change: float, most: float, random: float, *, decided: bool) -> str:
    if not decided:
        return "open"
    if change > 0:
        return "widens"
    return "closes" if most < NEAR * random else "lessens"


def sharpness(runs: xr.Dataset, setting: str) -> dict[str, float]:
    """Variation of the second layer less that of shuffled rows, `own_random`, with its 95% interval and both parts."""
    some = maps(runs, setting)
    mine, own = distances(some), own_random(some)
    change, error = (float(value) for value in over_pairs(mine - own))
    half = intervals.factor(len(some)) * error
    return {"mean": change, "half": half, "own": float(over_pairs(own)[0]), "variation": float(over_pairs(mine)[0])}


# The figure


@styled
def variation_by_setting(runs: xr.Dataset) -> Figure:
    """Attention variation between seeds with one setting changed at a time, and what each change does to it.

    Left: second layer of 2-layer transformers on a word with every bracket at every depth (Table 1); open marks: what
    the same maps would have if the entries of each row were shuffled. Right: less that of the setting as published.
    The paper's Section 4.1 finds two layers close to random rows, at settings that our text of it has lost in part.
    Bars are 95% intervals, from jackknife errors over seeds.

    Parameters
    ----------
    runs : xarray.Dataset
        From `table`.
    """
    rows = effects(runs)
    base = maps(runs, BASE.name)
    mean, error = attention_variation(base)
    first = {"factor": BASE.name, "variation": {"mean": mean, "half": intervals.factor(len(base)) * error}}
    figure = canvas(figsize=(9.6, 4.4))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.2, 1))
    shown = [first, *rows]
    place = np.arange(len(shown))[::-1]
    random = random_variation(base.shape[-1])
    (colour, _), (other, _) = CATEGORIES[1], CATEGORIES[2]
    left.axvline(random, color=BLACK, linewidth=0.9, linestyle=":", label="random rows")
    left.axvline(NEAR * random, color="0.6", linewidth=0.9, linestyle="--", label=f"{NEAR:g} times that")
    for axes, some, at, key in ((left, shown, place, "variation"), (right, rows, place[1:], "effect")):
        values, halves = ([row[key][part] for row in some] for part in ("mean", "half"))
        axes.errorbar(values, at, xerr=halves, fmt="o", color=colour, capsize=3, label="between seeds")
    own = [sharpness(runs, row["factor"])["own"] for row in shown[: runs.sizes["setting"]]]
    left.plot(own, place[: len(own)], "D", color=other, fillstyle="none", label="same rows, shuffled")
    right.axvline(0, color=BLACK, linewidth=0.8)
    left.set_yticks(place, [row["factor"] for row in shown])
    left.set(xlabel="attention variation, layer 2", ylabel="setting")
    left.set_xlim(left=0)
    right.set(xlabel="change against as published", ylabel="changed setting")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"{len(base)} seeds as published, {len(maps(runs, rows[0]['factor']))} for each change")
    return figure


def _claims(runs: xr.Dataset) -> str:
    rows = effects(runs)
    said = [
        f"{row['factor']}: {row['effect']['mean']:+.1f} +- {row['effect']['half']:.1f} ({row['verdict']})"
        for row in rows
    ]
    closing = [row["factor"] for row in rows if row["verdict"] == "closes"]
    verdict = f"What closes the gap alone: {', '.join(closing)}." if closing else "None of these alone closes the gap."
    return f"Changes, with verdicts by Holm's procedure: {'; '.join(said)}. {verdict}"


def _runs(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {}
    if effort.quick:  # two compilations, which take most of the time
        short = [
            VariationSetting(base.name, base.width, base.mlp_width, steps=20, n_train=500)
            for base in (BASE, TRAINED[1])
        ]
        few = {"settings": short, "n_base": 3, "n_seeds": 3, "first_seed": 1, "n_test": 50, "batch_size": 8}
    store = effort.store if isinstance(effort.store, (str, os.PathLike)) else None
    return table(store=store, progress=effort.progress, **few)


FIGURES = (Entry("variation_by_setting", PAPER, variation_by_setting, _runs, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 3e-4 4500 (name of a setting, by the number of its steps)
# typed: 64 32 40,000 0.02 (written before the runs, and in the study's code)
# typed: 2000 (year)
# typed: 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 2 (part of a name)
# -->
