"""Data that the browser cannot compute: SGD runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dynamics import SequenceClasses
from dynamics.support.limits import carried
from dynamics.support.progress import Progress
from yzflow.papers.scan_and_snap import lengths
from yzflow.papers.scan_and_snap.panel.presets import PRESETS

MAX_STEPS, SEEDS = 2000, 5


def sgd_logits(setting: dict, *, length: int | None = 128, seeds: int = SEEDS, records: int = 60) -> dict:
    """SGD on sequences of a length at a setting of the panel, up to `MAX_STEPS`, with at most as many seeds, from 0 on.

    Returns
    -------
    dict
        ``t``: steps, logarithmically spaced, the first and the last among them; ``z``: of each seed at each of them the
        logits of the common and the distinct tokens, means over the classes; ``loss``, likewise.
    """
    return _runs(_training_of(setting), length, seeds, records)


def by_length(setting: dict, *, seeds: int = SEEDS) -> dict:
    """The runs of `sgd_logits` by the length of their sequences, named by `lengths.named`.

    Each has the sentence on T as ``told``.
    """
    longest = sorted(lengths.LENGTHS, key=lambda length: -(length or 0))  # the longest job first
    with ThreadPoolExecutor() as pool:
        made = pool.map(carried(lambda length: sgd_logits(setting, length=length, seeds=seeds)), longest)
        runs = dict(zip(longest, made, strict=True))
    training = _training_of(setting)
    for length, run in runs.items():
        ends = [np.array(z[-1]) for z in run["z"]]
        numbers = lengths.compared(ends, _full_flow(training), steps=training.steps)
        runs[length] = run | {"told": lengths.said(length, numbers)}
    return {lengths.named(length): runs[length] for length in lengths.LENGTHS}


class _Training(NamedTuple):
    """A setting of the panel, as a key of the caches below."""

    n_classes: int
    vocab_size: int
    common: float
    distinct: tuple[float, ...]
    eta_y: float
    eta_z: float
    steps: int

    @property
    def classes(self) -> SequenceClasses:
        return SequenceClasses.single_common_token(
            self.n_classes, self.vocab_size, common=self.common, distinct=self.distinct
        )

    @property
    def options(self) -> dict[str, Any]:
        return {"eta_y": self.eta_y, "eta_z": self.eta_z, "steps": self.steps}


def _training_of(setting: dict) -> _Training:
    return _Training(
        n_classes=setting["K"],
        vocab_size=setting["M"],
        common=setting["common"],
        distinct=tuple(setting["distinct"]),
        eta_y=setting["etaY"],
        eta_z=setting["etaZ"],
        steps=min(int(setting["end"]), MAX_STEPS),
    )


@cache  # the explorer and pages of statements show the same runs
def _full_flow(training: _Training) -> np.ndarray:
    return lengths.full_flow(training.classes, **training.options)


@cache
def _runs(training: _Training, length: int | None, seeds: int, records: int) -> dict:
    steps = training.steps
    found: dict = {"t": [], "z": [], "loss": []}
    for run in lengths.trained(training.classes, **training.options, seeds=seeds, length=length):
        data = run.dataset
        time = data["time"].to_numpy()
        shown = np.unique(np.searchsorted(time, np.geomspace(1, steps, records)).clip(max=len(time) - 1))
        shown = np.concatenate([[0], shown[shown > 0]])
        z = lengths.by_token(data["z"].to_numpy()[shown, 0], training.n_classes)
        found["t"] = time[shown].tolist()
        # Significant digits: inside the assumptions a logit moves by billionths.
        found["z"].append([[float(f"{value:.7g}") for value in row] for row in z])
        found["loss"].append(data["loss"].to_numpy()[shown].round(6).tolist())
    return found


def collect(progress: bool = False) -> dict:
    """The runs of each preset by length, or none with one class; ready for JSON."""
    runs = []
    with Progress("SGD runs", enabled=progress) as report:
        for done, preset in enumerate(PRESETS):
            report.update(done / len(PRESETS), preset.name)
            found = by_length(preset.setting) if preset.setting["K"] > 1 else {}
            runs.append({name: {key: run[key] for key in ("t", "z", "told")} for name, run in found.items()} or None)
    return {"sgd": runs}
