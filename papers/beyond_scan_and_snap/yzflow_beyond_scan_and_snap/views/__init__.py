"""Plots with sliders on the statements' pages: the peak of gamma, and attention late in the full flow."""

from __future__ import annotations

from typing import Any

from yzflow.pages.live import Start, Views

_POPULATION = {"etaY": 1.0, "etaZ": 0.5, "K": 10, "M": 1000, "share": 0.4, "end": 1000.0}
_LATE = (
    Start("A small vocabulary", "At ln t = 1000 the exponent is near its limit.", _POPULATION | {"K": 5, "M": 20}),
    Start("Every next token occurs, K = M", "The limit is 1, and soon reached.", _POPULATION | {"K": 5, "M": 5}),
    Start("The paper's sizes", "At ln t = 1000 the exponent is far from its limit still.", _POPULATION),
)


def collect(view: str, start: Start) -> dict[str, Any]:
    """Nothing that Python computes beforehand."""
    return {"runs": None}


VIEWS = Views(
    paper="Scan and Snap",
    scripts=((__name__, "late_formulas.py"), (__name__, "late.js")),
    views={"Transition time": "peak", "Late attention": "late"},
    starts={"late": _LATE},
    collect=collect,
)

# <!-- numbers
# typed: 1000 (its own setting, which stands beside it)
# -->
