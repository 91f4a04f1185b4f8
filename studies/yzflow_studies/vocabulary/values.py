"""What SGD's step costs at a real vocabulary, and what becomes of Adam's first moment where it is not looked at."""

from typing import Any

from benchmarks.scaling import SWEEPS
from theory.values import Study


def sizes() -> dict[str, Any]:
    """The sizes at which steps were timed, from least to most."""
    return {name: {"least": values[0], "most": values[-1]} for name, values in SWEEPS.items()}


def forgotten(beta: float, steps: int) -> dict[str, float]:
    """What is left of Adam's first moment after steps without a gradient."""
    return {"left": beta**steps}


STUDIES = (
    Study("sizes", sizes),
    Study("forgotten", forgotten, {"beta": 0.9, "steps": 400}, ("the steps of dynamics.optimizers",)),
)
