"""The cost of a step of SGD at a real vocabulary, and Adam's first moment in rows that have no gradient."""

from typing import Any

from benchmarks.scaling import SWEEPS
from theory.values import Study


def sizes() -> dict[str, Any]:
    """The sizes at which steps were timed, from least to most."""
    return {name: {"least": values[0], "most": values[-1]} for name, values in SWEEPS.items()}


def forgotten(beta: float, steps: int) -> dict[str, float]:
    """The share of Adam's first moment that is left after steps without a gradient."""
    return {"left": beta**steps}


STUDIES = (
    Study("sizes", sizes),
    Study("forgotten", forgotten, {"beta": 0.9, "steps": 400}, ("the steps of dynamics.optimizers",)),
)
