"""A reader's own setting, as a paper makes it of data and training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OwnCase"]


@dataclass(frozen=True)
class OwnCase:
    """One setting of a reader.

    Attributes
    ----------
    setting : Setting
    levels : tuple of str
        Where the checks are run.
    beyond : tuple of str
        What of the training the paper does not speak of, in words.
    margins : mapping
        The smallest margin of each assumption of what is asked there, which `yzflow.check` finds.
    predicted : str
        What the statement says of the setting before anything is run, which `yzflow.check` asks.
    """

    setting: Any  # a `Setting`, with what the paper's settings have besides
    levels: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    margins: Mapping[str, float] = field(default_factory=dict)
    predicted: str = ""
