"""Which theory describes which run: theories and nulls as rivals on a bench of trainings that was fixed in advance.

The bench is the file ``settings.json``, drawn by `drawing.draw` from one seed and known by its SHA-256. Each training
is recorded once; theories are scored on the recordings, so that one that is added later trains nothing. The hypotheses
below, with seeds and statistics, were written before any of the runs was made. PyTorch and transformers are needed.

On the same settings with next tokens that depend on nothing no theory may win over the best null: by 95% intervals that
hold for all theories, quantities and moments together, each at the level that the number of these leaves (Bonferroni).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dynamics.support.progress import Progress
from yzflow.watching import rivals
from yzflow.watching.recording import Recording
from yzflow.watching.report import WatchReport

# Where the past ends: no step yet, and parts of the training on a logarithmic axis.
NOWS = {"before the first step": None, "a tenth": 0.1, "half": 0.5}
NULLS = tuple(one.name for one in rivals.NULLS)
LEVEL = 0.95
DRAWS, BOOTSTRAP = 20_000, 4901  # samples of settings, and their seed
ORDINARY = ("attention", "gpt2")  # kinds of models that people train
LAYERS = ("paper's", "layer")


class Claim(NamedTuple):
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
    Claim(
        "H1",
        "inside its assumptions Scan and Snap foresees who gains better than the better null",
        "Scan and Snap", "", "rises", "half", PAPER_S,
    ),
    Claim(
        "H2",
        "inside its assumptions it foresees who leads better than the better null",
        "Scan and Snap", "", "leads", "half", PAPER_S,
    ),
    Claim(
        "H3",
        "on the paper's layer outside its assumptions, with SGD, it still foresees who gains better",
        "Scan and Snap", "", "rises", "half", {"kind": ("layer",), "optimizer": ("SGD",)},
    ),
    Claim(
        "H4",
        "on ordinary models it foresees who gains worse than the better null",
        "Scan and Snap", "", "rises", "half", {"kind": ORDINARY}, False,
    ),
    Claim(
        "H5",
        "with Adam on the paper's layer Adam's first step foresees who gains better than Scan and Snap",
        "Adam's first step", "Scan and Snap", "rises", "before the first step",
        {"kind": ("layer",), "optimizer": ("Adam",)},
    ),
    Claim(
        "H6",
        "with SGD on the paper's layer at T of 32 or less finite sequences foresee it better than Scan and Snap",
        "finite sequences", "Scan and Snap", "rises", "half",
        {"kind": ("layer",), "optimizer": ("SGD",), "length": (8, 16, 32)},
    ),
)  # fmt: skip


# The bench


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
    return 0 if part is None else int(recording.steps[-1] ** part)


def scored(runs: Sequence[Recording], *, progress: bool = False) -> xr.Dataset:
    """Scores of every theory and null on recordings.

    Returns
    -------
    xarray.Dataset
        ``brier`` (setting, now, theory, quantity), NaN where nothing was foreseen or nothing happened, and ``inside``
        (setting, now): whether the report has a theorem whose assumptions hold. Runs that diverged have NaN.
    """
    rows: list[list[dict[str, dict[str, float]]]] = []
    inside = np.zeros((len(runs), len(NOWS)), dtype=bool)
    with Progress("scores", enabled=progress) as report:
        for number, run in enumerate(runs):
            report.update(number / len(runs))
            row = []
            for place, now in enumerate(NOWS):
                if diverged(run):
                    row.append({})
                    continue
                found = WatchReport(run, now=step_of(now, run))
                row.append(found.scores)
                inside[number, place] = any(": Theorem" in name for name in found.inside)
            rows.append(row)
    theories = list(dict.fromkeys(name for row in rows for one in row for name in one))
    quantities = list(rivals.QUANTITIES)
    values = [
        [[[one.get(name, {}).get(what, np.nan) for what in quantities] for name in theories] for one in row]
        for row in rows
    ]
    return xr.Dataset(
        {
            "brier": (("setting", "now", "theory", "quantity"), np.array(values, dtype=float)),
            "inside": (("setting", "now"), inside),
        },
        {"now": list(NOWS), "theory": theories, "quantity": quantities},
    )


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
    there = np.isfinite(scores) & np.isfinite(others).all(axis=1)
    mine, theirs = scores[there], others[there]
    if len(mine) < 2:
        return Found(np.nan, np.nan, np.nan, len(mine))
    weights = resampled(len(mine))
    drawn = weights @ mine - (weights @ theirs).min(axis=1)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Found(float(mine.mean() - theirs.mean(axis=0).min()), float(low), float(high), len(mine))


def chosen(settings: Sequence[Mapping[str, Any]], group: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """Whether each setting is in a group."""
    return np.array([all(one[key] in values for key, values in group.items()) for one in settings])


def of_claim(claim: Claim, scores: xr.Dataset, settings: Sequence[Mapping[str, Any]]) -> tuple[Found, str]:
    """Difference that a claim is about, and its verdict: "supported", "refuted" or "open"."""
    at = scores["brier"].sel(now=claim.now, quantity=claim.quantity).values[chosen(settings, claim.group)]
    names = scores["theory"].values.tolist()
    against = (claim.rival,) if claim.rival else nulls_of(names, at)
    found = difference(at[:, names.index(claim.theory)], at[:, [names.index(one) for one in against]])
    words = {"open": "open", "wins": "supported", "loses": "refuted"}
    if not claim.below:
        words |= {"wins": "refuted", "loses": "supported"}
    return found, words[found.verdict]


def nulls_of(names: Sequence[str], scores: np.ndarray) -> tuple[str, ...]:
    """The nulls that foresee a quantity at all: not every null has turning times."""
    return tuple(one for one in NULLS if one in names and np.isfinite(scores[:, list(names).index(one)]).any())
