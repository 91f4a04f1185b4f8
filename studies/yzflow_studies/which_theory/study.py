"""Which theory describes which run: theories and nulls as rivals on a bench of trainings that was fixed in advance.

The bench is the file ``settings.json``, drawn by `drawing.draw` from one seed and known by its SHA-256. Each training
is recorded once; theories are scored on the recordings, so that one that is added later trains nothing. The hypotheses
below, with seeds and statistics, were written before any of the runs was made. PyTorch and transformers are needed.

On the first 100 settings with next tokens that depend on nothing no theory may win over the best null: by 95% intervals
that hold for all theories, quantities and moments together, each at the level that their number leaves (Bonferroni).
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics.support.progress import Progress
from yzflow.figures.registry import Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, VERMILION, canvas, styled
from yzflow_studies import CLONE

if TYPE_CHECKING:
    from yzflow_watch.recording import Recording
    from yzflow_watch.rivals import Rival

# Where the past ends: no step yet, and parts of the training on a logarithmic axis.
NOWS = {"before the first step": None, "a tenth": 0.1, "half": 0.5}
NULLS = ("nothing changes", "frequent tokens gain", "anything is as likely")  # of `yzflow_watch.rivals`
QUANTITIES = ("rises", "leads", "sparser", "turns")  # that theories foresee, there
WRITTEN = NULLS[:2]  # those of the hypotheses: the last one came when scores had been seen
BESIDE = (*NULLS, "Scan and Snap")
LEVEL = 0.95
DRAWS, BOOTSTRAP = 20_000, 4901  # samples of settings, and their seed
ORDINARY = ("attention", "gpt2")  # kinds of models that people train
TOKENS = ("as drawn", "shuffled")
SHUFFLED = 100  # settings that are trained with shuffled tokens, too: the first, which is any, as their order is drawn
GROUPED = ("name", "kind", "text", "optimizer", "size", "length")


class ScoreClaim(NamedTuple):
    """A theory's Brier score is below (or above) that of the best null, or of another theory, in a group of runs.

    Attributes
    ----------
    name, says : str
    theory : str
    rival : str
        Another theory; "" for the null that is best in the mean.
    quantity, now : str
    group : mapping
        Key of a setting -> values that it has there.
    below : bool
    """

    name: str
    says: str
    theory: str
    rival: str
    quantity: str
    now: str
    group: Mapping[str, Sequence[Any]]
    below: bool = True


PAPER_S = {"kind": ("paper's",)}
CLAIMS = (
    ScoreClaim(
        "H1",
        "inside its assumptions Scan and Snap foresees who gains better than the better null",
        "Scan and Snap", "", "rises", "half", PAPER_S,
    ),
    ScoreClaim(
        "H2",
        "inside its assumptions it foresees who leads better than the better null",
        "Scan and Snap", "", "leads", "half", PAPER_S,
    ),
    ScoreClaim(
        "H3",
        "on the paper's layer outside its assumptions, with SGD, it still foresees who gains better",
        "Scan and Snap", "", "rises", "half", {"kind": ("layer",), "optimizer": ("SGD",)},
    ),
    ScoreClaim(
        "H4",
        "on ordinary models it foresees who gains worse than the better null",
        "Scan and Snap", "", "rises", "half", {"kind": ORDINARY}, False,
    ),
    ScoreClaim(
        "H5",
        "with Adam on the paper's layer Adam's first step foresees who gains better than Scan and Snap",
        "Adam's first step", "Scan and Snap", "rises", "before the first step",
        {"kind": ("layer",), "optimizer": ("Adam",)},
    ),
    ScoreClaim(
        "H6",
        "with SGD on the paper's layer at T of 32 or less finite sequences foresee it better than Scan and Snap",
        "finite sequences", "Scan and Snap", "rises", "half",
        {"kind": ("layer",), "optimizer": ("SGD",), "length": (8, 16, 32)},
    ),
)  # fmt: skip


# The bench


def theories() -> tuple[Rival, ...]:
    """Every theory that is known and the nulls, which come last; JoMA's is the clone's where it is not installed."""
    from yzflow_watch.claimed import known_rivals

    found = list(known_rivals())
    folder = CLONE / "papers" / "joma"
    if "JoMA" not in [one.name for one in found] and folder.exists():
        sys.path.append(str(folder))
        try:
            found[-len(NULLS) : -len(NULLS)] = importlib.import_module("yzflow_joma.watched").RIVALS
        finally:
            sys.path.remove(str(folder))
    return tuple(found)


def file_of(setting: Mapping[str, Any], store: str | os.PathLike, *, shuffled: bool = False) -> Path:
    """Where a setting's recording is kept."""
    return Path(store) / f"{setting['name']}{'-shuffled' if shuffled else ''}.nc"


def recordings(
    settings: Sequence[Mapping[str, Any]],
    store: str | os.PathLike,
    *,
    shuffled: bool = False,
    progress: bool = False,
) -> list[Recording]:
    """The recordings of settings, in their order; what ``store`` holds is not trained again.

    Parameters
    ----------
    settings : sequence of mapping
        As `drawing.settings` gives them.
    store : path
        A folder: one sealed file for each training, written when it has ended.
    shuffled : bool
        Whether next tokens depend on nothing.
    progress : bool
        Show progress on standard error.
    """
    from yzflow_watch.recording import Recording

    Path(store).mkdir(parents=True, exist_ok=True)
    found = []
    with Progress("bench, shuffled" if shuffled else "bench", enabled=progress) as report:
        for number, setting in enumerate(settings):
            path = file_of(setting, store, shuffled=shuffled)
            report.update(number / len(settings), f"{setting['name']} {setting['kind']}")
            if not path.exists():
                from yzflow_studies.which_theory import models

                models.recorded(dict(setting), shuffled=shuffled).save(path)
            found.append(Recording.load(path))
    return found


def diverged(recording: Recording) -> bool:
    """Whether a loss of the training is no finite number; such a run is counted, and not scored."""
    return not np.isfinite(recording.dataset["loss"].values).all()


# Scores


def step_of(now: str, recording: Recording) -> int:
    """The step of the past's end: the last one recorded until steps to the power of the part."""
    part = NOWS[now]
    steps = recording.steps
    return 0 if part is None else int(steps[steps <= steps[-1] ** part][-1])


def scored(
    settings: Sequence[Mapping[str, Any]], runs: Sequence[Recording | None], *, progress: bool = False
) -> xr.Dataset:
    """Scores of every theory and null on the recordings of settings.

    Returns
    -------
    xarray.Dataset
        ``brier`` (setting, now, theory, quantity), NaN where nothing was foreseen or nothing happened; ``beside``
        (setting, now, theory, rival, quantity): that of each of `BESIDE` on what the theory speaks of; ``inside``
        (setting, now): whether the report has a theorem whose assumptions hold; ``trained`` and ``diverged``
        (setting,): runs that are None, and those that diverged, have NaN. What `GROUPED` names of the settings is a
        coordinate.
    """
    from yzflow_watch import rivals
    from yzflow_watch.report import WatchReport

    known = theories()
    shape = (len(runs), len(NOWS), len(known), len(QUANTITIES))
    values, beside = np.full(shape, np.nan), np.full((*shape[:3], len(BESIDE), shape[3]), np.nan)
    inside = np.zeros(shape[:2], dtype=bool)
    with Progress("scores", enabled=progress) as report:
        for number, run in enumerate(runs):
            report.update(number / len(runs))
            if run is None or diverged(run):
                continue
            for place, now in enumerate(NOWS):
                step = step_of(now, run)
                past, happened = run.until(step), rivals.outcome(run, step)
                inside[number, place] = any(": Theorem" in name for name in WatchReport(run, now=step).inside)
                said = {one.name: _arrays(rivals.foreseen(one, past)) for one in known}
                came = _arrays(happened)
                for which, mine in enumerate(said.values()):
                    values[number, place, which] = briers(mine, mine, came)
                    for other, rival in enumerate(BESIDE):
                        beside[number, place, which, other] = briers(said[rival], mine, came)
    axes = ("setting", "now", "theory", "quantity")
    return xr.Dataset(
        {
            "brier": (axes, values),
            "beside": ((*axes[:3], "rival", axes[3]), beside),
            "inside": (axes[:2], inside),
            "trained": ("setting", [run is not None for run in runs]),
            "diverged": ("setting", [run is not None and diverged(run) for run in runs]),
        },
        {
            "now": list(NOWS),
            "theory": [one.name for one in known],
            "rival": list(BESIDE),
            "quantity": list(QUANTITIES),
            **{key: ("setting", [one[key] for one in settings]) for key in GROUPED},
        },
    )


def _arrays(found: xr.Dataset) -> dict[str, np.ndarray]:
    return {str(name): values.values for name, values in found.data_vars.items()}


def briers(
    said: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], came: Mapping[str, np.ndarray]
) -> list[float]:
    """Brier score of each quantity, over the things that another theory speaks of; NaN without any.

    As `yzflow_watch.rivals.score`, which is slower, has it where the other theory is the same.
    """
    found = []
    for name in QUANTITIES:
        if name not in said or name not in other:
            found.append(np.nan)
            continue
        square = np.where(np.isnan(other[name]), np.nan, (said[name] - came[name]) ** 2)
        if name == "leads":  # summed over the tokens of a next token
            square = np.where(np.isnan(square).all(axis=-1), np.nan, np.nansum(square, axis=-1))
        there = square[~np.isnan(square)]
        found.append(float(there.mean()) if there.size else np.nan)
    return found


def bench(settings: Sequence[Mapping[str, Any]], store: str | os.PathLike, *, progress: bool = False) -> xr.Dataset:
    """`scored` of settings as they are, and of the first with next tokens that depend on nothing: along ``tokens``."""
    runs: list[Recording | None] = [*recordings(settings, store, progress=progress)]
    few = recordings(settings[:SHUFFLED], store, shuffled=True, progress=progress)
    apart = [*few, *[None] * (len(settings) - len(few))]
    found = [scored(settings, of, progress=progress) for of in (runs, apart)]
    return xr.concat(found, "tokens").assign_coords(tokens=list(TOKENS))


@functools.lru_cache(maxsize=64)
def resampled(n: int) -> np.ndarray:
    """Samples of n settings with replacement, as the weight of each: (DRAWS, n)."""
    return np.random.default_rng(BOOTSTRAP).multinomial(n, np.full(n, 1 / n), DRAWS) / n


class Found(NamedTuple):
    """A difference of two scores with its interval, over so many settings."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> str:
        """Whether the first score is lower ("wins"), higher ("loses"), or neither beyond the interval ("open")."""
        return "wins" if self.high < 0 else "loses" if self.low > 0 else "open"


def difference(scores: np.ndarray, others: np.ndarray, *, level: float = LEVEL) -> Found:
    """Difference of the mean score of a theory and of the best of others in the mean, over the settings of both.

    The interval is the percentile interval of the bootstrap over settings; which of the others is the best is found
    anew in each sample.

    Parameters
    ----------
    scores : (n,) array
        NaN where the theory foresaw nothing.
    others : (n, rivals) array
    level : float
    """
    there = np.isfinite(scores) & np.isfinite(others).all(axis=1) & (others.shape[1] > 0)
    mine, theirs = scores[there], others[there]
    if len(mine) < 2:
        return Found(np.nan, np.nan, np.nan, len(mine))
    weights = resampled(len(mine))
    drawn = weights @ mine - (weights @ theirs).min(axis=1)
    # Who foresees what a null does is no better: sums of equal numbers differ by rounding.
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    mean, low, high = (round(float(one), 12) for one in (mine.mean() - theirs.mean(axis=0).min(), low, high))
    return Found(mean, low, high, len(mine))


def chosen(scores: xr.Dataset, group: Mapping[str, Sequence[Any]]) -> xr.Dataset:
    """The settings of a group: those whose coordinates are among its values."""
    there = np.ones(scores.sizes["setting"], dtype=bool)
    for key, values in group.items():
        there &= np.isin(scores[key].values, list(values))
    return scores.isel(setting=there)


def against(
    scores: xr.Dataset,
    theory: str,
    quantity: str,
    now: str,
    *,
    rivals_of: Sequence[str] = NULLS,
    level: float = LEVEL,
) -> Found:
    """Difference of a theory's score and that of the best null, or of others, over the settings given.

    Both are scored on the things that the theory speaks of.
    """
    at = scores.sel(now=now, quantity=quantity, theory=theory)
    others = at["beside"].sel(rival=list(rivals_of)).transpose("setting", "rival").values
    others = others[:, np.isfinite(others).any(axis=0)]  # not every null has all quantities
    return difference(at["brier"].values, others, level=level)


def of_claim(claim: ScoreClaim, scores: xr.Dataset) -> tuple[Found, str]:
    """Difference that a claim is about, on the settings as they are, and its verdict.

    "supported", "refuted" or "open".
    """
    of = chosen(scores.sel(tokens=TOKENS[0]), claim.group)
    rivals_of = (claim.rival,) if claim.rival else WRITTEN
    found = against(of, claim.theory, claim.quantity, claim.now, rivals_of=rivals_of)
    words = {"open": "open", "wins": "supported", "loses": "refuted"}
    if not claim.below:
        words |= {"wins": "refuted", "loses": "supported"}
    return found, words[found.verdict]


def shuffled_wins(scores: xr.Dataset) -> dict[str, Any]:
    """Theories that win over the best null where next tokens depend on nothing.

    Returns
    -------
    dict
        ``cells``, how many theories, quantities and moments are compared; ``single``, those that win by an interval of
        their own, and ``joint``, those that do by intervals that hold together (Bonferroni), each with its difference.
    """
    of = scores.sel(tokens=TOKENS[1])
    cells = [
        (theory, quantity, now)
        for theory in of["theory"].values.tolist()
        if theory not in NULLS
        for quantity in of["quantity"].values.tolist()
        for now in NOWS
        if np.isfinite(of["brier"].sel(theory=theory, quantity=quantity, now=now)).sum() > 1
    ]
    found: dict[str, Any] = {"cells": len(cells)}
    for name, level in (("single", LEVEL), ("joint", 1 - (1 - LEVEL) / max(len(cells), 1))):
        tried = [(cell, against(of, *cell, level=level)) for cell in cells]
        found[name] = [(cell, one) for cell, one in tried if one.verdict == "wins"]
    return found


# The figure


def kinds_of_runs(scores: xr.Dataset, now: str) -> dict[str, xr.Dataset]:
    """The groups that the figure shows: no run is in two of them but as shuffled."""
    natural, apart = (scores.sel(tokens=one) for one in TOKENS)
    inside = natural["inside"].sel(now=now).values
    text = natural["text"].values != ""
    ordinary = np.isin(natural["kind"].values, ORDINARY)
    return {
        "inside a theorem": natural.isel(setting=inside),
        "one layer, outside": natural.isel(setting=~inside & ~text & ~ordinary),
        "transformers": natural.isel(setting=~inside & ~text & ordinary),
        "on texts": natural.isel(setting=~inside & text),
        "tokens shuffled": apart.isel(setting=apart["trained"].values),
    }


WORDS = {"rises": "who gains", "leads": "who leads", "sparser": "sparser", "turns": "when entropy turns"}
_COLOURS = (BLUE, GREEN, ORANGE, VERMILION, "0.5")
_MARKS = "o^sDx"


@styled
def which_theory(scores: xr.Dataset, now: str = "half") -> Figure:
    """Theories as rivals on trainings that were fixed in advance: how much better or worse than the best null.

    Difference of Brier scores between a theory and the null that is best in the mean of a group of runs: left of the
    dotted line a theory foresees more than that null does, right of it less. Nulls: nothing changes, frequent tokens
    gain, anything is as likely. The past ends in the middle of the training on a logarithmic axis. Bars are 95%
    intervals of the bootstrap over trainings. Grey: next tokens that depend on nothing.

    Parameters
    ----------
    scores : xarray.Dataset
        From `bench`.
    now : str
        One of `NOWS`.
    """
    groups = kinds_of_runs(scores, now)
    names = [one for one in scores["theory"].values.tolist() if one not in NULLS]
    quantities = scores["quantity"].values.tolist()
    figure = canvas(figsize=(1.5 + 3.1 * len(quantities), 1.4 + 0.85 * len(names)))
    panels = figure.subplots(1, len(quantities), sharey=True, squeeze=False)[0]
    for axes, quantity in zip(panels, quantities, strict=True):
        axes.axvline(0, color=BLACK, linewidth=0.8, linestyle=":", label="the best null")
        for place, (group, of) in enumerate(groups.items()):
            found = [against(of, name, quantity, now) for name in names]
            rows = [row for row, one in enumerate(found) if np.isfinite(one.mean)]
            means = np.array([found[row].mean for row in rows])
            ends = np.array([[found[row].low, found[row].high] for row in rows]).reshape(-1, 2)
            axes.errorbar(
                means,
                np.array(rows) + 0.15 * (place - 2),
                xerr=np.abs(ends.T - means),
                fmt=_MARKS[place],
                color=_COLOURS[place],
                markersize=4,
                capsize=2,
                label=f"{group} ({of.sizes['setting']})",
            )
        axes.set(title=WORDS.get(quantity, quantity), xlabel="Brier score less\nthe best null's", ylabel="theory")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set(ylim=(len(names) - 0.4, -0.6))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("Theories against the best null: left of the line is better")
    return figure


def _claims(scores: xr.Dataset) -> str:
    """The verdicts on the hypotheses, in a sentence."""
    return "; ".join(f"{one.name}, {one.says}: {of_claim(one, scores)[1]}" for one in CLAIMS) + "."


# Its runs need PyTorch, and half an hour: they are not made for a gallery.
FIGURES = (
    Entry(
        "which_theory",
        "Scan and Snap",
        which_theory,
        claims=_claims,
        trained_by="python -m yzflow_studies.which_theory",
    ),
)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 32 (written before the runs, and in the study's code; a name)
# -->
