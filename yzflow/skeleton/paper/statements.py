"""The statements: the text of the paper, its assumptions, and the distance of a simulation from each statement."""

from __future__ import annotations

import numpy as np

from theory.statements import Assumption, Check, Runs, Statement
from yzflow.skeleton.paper.proofs import climb


def error(runs: Runs, level: str) -> float:
    """The largest error of z + e^z = 1 + eta t, over its last value."""
    run = runs.trajectory(level).dataset
    found, wanted = run["z"] + np.exp(run["z"]), 1 + runs.setting.rate * run["time"]
    return float(abs(found - wanted).max() / wanted[-1])


STATEMENTS = (
    Statement(
        "A new paper",
        "Lemma 1",
        "The logit climbs like a logarithm",
        "The logit of the right of two tokens grows linearly at first, and like the logarithm of time in the end.",
        printed=r"z(t) + e^{z(t)} = 1 + \eta t",
        assumptions=(Assumption("small rates: eta <= 0.1", lambda setting: 0.1 / setting.rate, levels=("steps",)),),
        prove=climb,
        checks=(Check("the logit", ("flow", "steps"), error, tolerance=0.02, expected=("flow", "steps")),),
    ),
)
