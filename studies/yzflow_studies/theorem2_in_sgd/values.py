"""How many distinct tokens have not gained attention in SGD and in the flows, where attention is slow and where not."""

import numpy as np

from theory.scan_and_snap import measures
from theory.values import Study
from yzflow.audits.audit import Simulations
from yzflow.papers.scan_and_snap import settings

FLOWS = ("modified flow", "full flow")


def shares(seed: int, ratio: float, length: int, batch: int) -> dict:
    """Shares over times and tokens, in SGD at this ratio of the rates, and in the flows at every setting."""
    lost, steps, gained, slowed = [], [], [], []
    for setting in settings.settings(quick=False):
        runs = Simulations(setting, seed=seed)
        if (setting.eta_y / setting.eta_z, setting.length, setting.batch_size) == (ratio, length, batch):
            lost.append(measures.theorem2_distinct(runs, "SGD"))
            steps.append(int(setting.t_end))
        gained += [measures.theorem2_distinct(runs, level) for level in FLOWS]
        slowed += [
            f"{level}, {setting.name}" for level in FLOWS if measures.theorem2_distinct_velocity(runs, level) > 0
        ]
    return {
        "settings": len(lost),
        "largest": max(lost),
        "steps_low": min(steps),
        "steps_high": max(steps),
        "all_gain": bool(max(gained) == 0),
        "slowed": slowed,
    }


def gains_and_loses(m: int, eta_y: float, eta_z: float, t: float) -> dict:
    """Which distinct tokens lose again in the modified flow with a common token that gains, and from when on."""
    classes = settings.rising_common_token(m)
    setting = settings.Setting("rising", classes, eta_y, eta_z, t)
    run = setting.simulate("modified flow", seed=0).dataset
    rows = []
    for n in range(classes.n_classes):
        tokens = classes.distinct_tokens(n)
        falls = run["z_velocity"].values[1:, 0, tokens] <= 0
        at = np.flatnonzero(falls.any(axis=1))
        if at.size:
            rows.append({"n": n, "tokens": int(falls.any(axis=0).sum()), "from": run["time"].values[1:][at[0]]})
    return {"rows": rows, "classes": len(rows)}


STUDIES = (
    Study(
        "shares",
        shares,
        {"seed": 0, "ratio": 1000.0, "length": 256, "batch": 64},
        ("outside Assumption 1(b), T to infinity",),
        tolerance=1e-3,
    ),
    Study(
        "gains_and_loses",
        gains_and_loses,
        {"m": 10_000, "eta_y": 1.0, "eta_z": 0.5, "t": 100.0},
        ("outside Assumption 1(c)",),
        tolerance=1e-3,
    ),
)
