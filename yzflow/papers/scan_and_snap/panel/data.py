"""Data that cannot be computed in the browser: SGD runs."""

from __future__ import annotations

from functools import cache

import numpy as np

from dynamics import SequenceClasses, sgd
from dynamics.support.progress import Progress
from yzflow.papers.scan_and_snap.panel.presets import PRESETS

BATCH_SIZE, LENGTH, MAX_STEPS, SEEDS = 128, 128, 2000, 5


def sgd_logits(setting: dict, *, seeds: int = SEEDS, records: int = 60) -> dict:
    """SGD at a setting of the panel, up to `MAX_STEPS`, with as many seeds, from 0 on.

    Returns
    -------
    dict
        ``t``: steps, logarithmically spaced, the first and the last among them; ``z``: of each seed at each of them the
        logits of the common and the distinct tokens, means over the classes; ``loss``, likewise.
    """
    name = ("K", "M", "common", "etaY", "etaZ", "end")
    return _runs(*(setting[key] for key in name), tuple(setting["distinct"]), seeds, records)


@cache  # the explorer and pages of statements show the same runs
def _runs(
    n_classes: int,
    vocab_size: int,
    common: float,
    eta_y: float,
    eta_z: float,
    end: float,
    distinct: tuple[float, ...],
    seeds: int,
    records: int,
) -> dict:
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=distinct)
    steps = min(int(end), MAX_STEPS)
    found: dict = {"t": [], "z": [], "loss": []}
    for seed in range(seeds):
        data = sgd(
            classes,
            eta_y=eta_y,
            eta_z=eta_z,
            steps=steps,
            batch_size=BATCH_SIZE,
            length=LENGTH,
            momentum=0.0,
            seed=seed,
        ).dataset
        time = data["time"].to_numpy()
        shown = np.unique(np.searchsorted(time, np.geomspace(1, steps, records)).clip(max=len(time) - 1))
        shown = np.concatenate([[0], shown[shown > 0]])
        z = data["z"].to_numpy()[shown, 0]
        means = z[:, 1:].reshape(len(z), n_classes, -1).mean(axis=1)
        found["t"] = time[shown].tolist()
        found["z"].append(np.column_stack([z[:, 0], means]).round(9).tolist())
        found["loss"].append(data["loss"].to_numpy()[shown].round(6).tolist())
    return found


def collect(progress: bool = False) -> dict:
    """The runs of each preset, or none with one class; ready for JSON."""
    runs = []
    with Progress("SGD runs", enabled=progress) as report:
        for done, preset in enumerate(PRESETS):
            report.update(done / len(PRESETS), preset.name)
            found = sgd_logits(preset.setting) if preset.setting["K"] > 1 else None
            runs.append(found and {key: found[key] for key in ("t", "z")})
    return {"sgd": runs}
