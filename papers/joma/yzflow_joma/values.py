"""Numbers of the page ``in_training.md``: ``python -m yzflow.values write joma.in_training``, in some minutes."""

from __future__ import annotations

from typing import Any

from theory.values import Study
from yzflow_joma import finding


def in_training(kinds: list[str], t_last: float, draws: int) -> dict[str, Any]:
    """Falls and rises of entropy along the full flow: see ``finding``."""
    return finding.numbers(finding.study(kinds=kinds, t_end=t_last, seeds=draws))


SETTING = {"kinds": list(finding.KINDS), "t_last": finding.END, "draws": finding.SEEDS}
STUDIES = (Study("in_training", in_training, SETTING, quick=False, noise=1e-6),)
