"""Where a distinct token's lead over another one shrinks, and where it is proved not to."""

import math
from collections.abc import Sequence

import numpy as np
from yzflow_enclose import enclose_flow

from dynamics import SequenceClasses, gradient_flow
from theory.values import Study


def pair(k: int, m: int, common: float, distinct: Sequence[float], eta_y: float, eta_z: float, t: float) -> dict:
    """The relative gain of the more frequent distinct token over the other one at each level, to time t."""
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=distinct)
    times = np.concatenate([[0.0], np.geomspace(1, t, 4000)])
    found = {}
    for level in ("theory", "modified", "full"):
        run = gradient_flow(
            classes, eta_y=eta_y, eta_z=eta_z, t_end=t, times=times, decoder=level, rtol=1e-11, atol=1e-13
        )
        share = run.dataset["attention"].sel(next_token=0).values
        # r = f_1^2/f_2^2 - 1, as in (11).
        gain = (share[:, 1] / share[:, 2]) ** 2 - 1
        top = int(gain.argmax())
        found[level] = {
            "start": gain[0],
            "top": gain[top],
            "at": times[top],
            "end": gain[-1],
            "falls": bool(top + 1 < gain.size),
        }
    return found


def proved(
    k: int, m: int, common: float, distinct: Sequence[float], eta_y: float, eta_z: float, t: float, bits: int
) -> dict:
    """Until when the first token's lead over each other one grows at every time, in balls; and when it falls."""
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=distinct)
    found = {}
    for level in ("modified", "full", "theory"):
        flow = enclose_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=t, decoder=level, bits=bits)
        rows = []
        for other in range(2, len(distinct) + 1):
            decision = flow.decide(lambda at, other=other: at.velocity(0, 1) >= at.velocity(0, other))
            falls = max(decision.times) if decision.value is False else t
            # To a hundredth of a step, to the side on which it is proved.
            until, falls = math.floor(100 * decision.reached) / 100, math.ceil(100 * falls) / 100
            rows.append({"grows": decision.value is True, "until": until, "falls": falls})
        found[level] = rows
    found["theory_grows"] = all(row["grows"] for row in found["theory"])
    return found


STUDIES = (
    Study(
        "pair",
        pair,
        {"k": 2, "m": 2, "common": 1.0, "distinct": [2.0, 1.0], "eta_y": 1.0, "eta_z": 2.0, "t": 5000.0},
        ("outside Assumptions 1(c) and 2",),
        quick=False,
        tolerance=1e-4,
    ),
    Study(
        "paper",
        pair,
        {
            "k": 10,
            "m": 1000,
            "common": 0.15,
            "distinct": [1.0, 0.8, 0.6, 0.4, 0.2],
            "eta_y": 1.0,
            "eta_z": 0.5,
            "t": 1e4,
        },
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2", "outside 1(c)"),
        tolerance=1e-4,
    ),
    Study(
        "pair_proved",
        proved,
        {"k": 2, "m": 2, "common": 1.0, "distinct": [2.0, 1.0], "eta_y": 1.0, "eta_z": 2.0, "t": 5000.0, "bits": 40},
        ("outside Assumptions 1(c) and 2",),
        quick=False,
    ),
    Study(
        "paper_proved",
        proved,
        {
            "k": 10,
            "m": 1000,
            "common": 0.15,
            "distinct": [1.0, 0.8, 0.6, 0.4, 0.2],
            "eta_y": 1.0,
            "eta_z": 0.5,
            "t": 1e4,
            "bits": 50,
        },
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2", "outside 1(c)"),
        quick=False,
        tolerance=1e-3,
    ),
)
