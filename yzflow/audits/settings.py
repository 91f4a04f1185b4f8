"""What statements are checked on: the modules ``settings`` of the papers, with ``PAPER`` and ``settings(quick=..)``.

A setting has a ``name`` and a method ``simulate(level, seed=..)``.
"""

from __future__ import annotations

from theory.statements import Setting
from yzflow import papers


def settings(*, quick: bool) -> dict[str, list[Setting]]:
    """The settings of each paper, by its name in the register."""
    return {module.PAPER: module.settings(quick=quick) for module in papers.parts("settings")}
