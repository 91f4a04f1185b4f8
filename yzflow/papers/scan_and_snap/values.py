"""Published numbers of the phase transition: inside the assumptions, in a contrast, and in the paper's own setting."""

from __future__ import annotations

from typing import Any

from theory.values import Study
from yzflow.papers.scan_and_snap import flagship
from yzflow.papers.scan_and_snap import phase_transition as pt


def seen(**setting: Any) -> dict[str, Any]:
    """Numbers around t* in the theory, the modified and the full flow, and the sentences that say them."""
    one = flagship.made("", **setting)
    runs = flagship.flows(one)
    found = pt.around_transition(runs)
    numbers = ("done", "change", "time_of_90_percent", "fastest_attention", "late_speed", "fastest_common")
    return {
        "overlap": one.overlap,
        "ratio": one.eta_y / one.eta_z,
        "transition_time": float(found["transition_time"]),
        **{name: {level: float(found[name].sel(flow=level)) for level in runs} for name in numbers},
        "told": flagship.told(one, runs),
    }


_PAPER = flagship.CONTRAST | {"common": 0.15}  # `phase_transition.weak_classes`
_SETTINGS = {
    "inside": flagship.INSIDE,
    "contrast": flagship.CONTRAST,
    "paper": _PAPER,
    "paper_slow": _PAPER | {"eta_z": pt.SLOW_RATIO},
}
STUDIES = tuple(
    Study(name, seen, setting, (flagship.standing(flagship.made(name, **setting)),), tolerance=1e-5)
    for name, setting in _SETTINGS.items()
)
