"""What the panel cannot compute in the browser: SGD runs."""

from __future__ import annotations

import numpy as np

from dynamics import SequenceClasses, sgd
from dynamics.support.progress import Progress
from yzflow.papers.scan_and_snap.panel.presets import PRESETS

BATCH_SIZE, LENGTH, MAX_STEPS = 128, 128, 2000


def sgd_logits(setting: dict, *, seed: int = 0, records: int = 100) -> dict:
    """SGD of a preset, up to `MAX_STEPS`: steps, and the common and distinct tokens' logits, means over the classes."""
    classes = SequenceClasses.single_common_token(
        setting["K"], setting["M"], common=setting["common"], distinct=setting["distinct"]
    )
    steps = min(int(setting["end"]), MAX_STEPS)
    run = sgd(
        classes,
        eta_y=setting["etaY"],
        eta_z=setting["etaZ"],
        steps=steps,
        batch_size=BATCH_SIZE,
        length=LENGTH,
        momentum=0.0,
        seed=seed,
        record_every=max(1, steps // records),
    )
    z = run.dataset["z"].to_numpy()[:, 0]
    distinct = z[:, 1:].reshape(len(z), setting["K"], -1).mean(axis=1)
    logits = np.column_stack([z[:, 0], distinct])
    return {"t": run.dataset["time"].to_numpy().tolist(), "z": logits.round(9).tolist()}


def collect(progress: bool = False) -> dict:
    """Of each preset its run, or none with one class; ready for JSON."""
    runs = []
    with Progress("SGD runs", enabled=progress) as report:
        for done, preset in enumerate(PRESETS):
            report.update(done / len(PRESETS), preset.name)
            runs.append(sgd_logits(preset.setting) if preset.setting["K"] > 1 else None)
    return {"sgd": runs}
