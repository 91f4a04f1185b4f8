"""Initial logits of two distinct tokens: who leads, how much training adds, and what SGD makes of it."""

from typing import Any

from theory.values import Study
from yzflow_studies.initial_values.study import SEEDS, flows, suppression, trained, verdicts


def sgd(**setting: Any) -> dict[str, Any]:
    """Leads at the end of SGD from starts on both sides of the tie, and the verdict on each hypothesis."""
    return verdicts(trained(**setting))


_PAIR = {"k": 2, "m": 1000, "rho": 0.3, "weaker": 0.5}

STUDIES = (
    Study("flows", flows, _PAIR | {"etas_z": [1e-3, 0.5, 5.0], "offs": [0.05], "t": 1e4}, quick=False, tolerance=1e-4),
    Study(
        "wide",
        flows,
        {"k": 10, "m": 1000, "rho": 0.01, "weaker": 0.5, "etas_z": [0.5], "offs": [0.05], "t": 1e4},
        quick=False,
        tolerance=1e-4,
    ),
    Study(
        "suppression",
        suppression,
        {"k": 2, "m": 1000, "rho": 0.3, "eta_y": 1.0, "eta_z": 0.5, "leads": [0.01, 0.05, 0.2, 0.5], "wanted": 2.0},
        ("constant rho_0, two tokens with all attention: orders of magnitude",),
    ),
    Study(
        "sgd",
        sgd,
        _PAIR | {"eta_z": 0.5, "steps": 200, "length": 128, "seeds": list(SEEDS)},
        ("Assumption 1(b) does not hold at T = 128", "Assumption 1(c) does not hold at eta_Z = 0.5"),
        quick=False,
        tolerance=1e-3,
    ),
)
