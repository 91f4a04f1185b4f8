"""A setting that a paper makes from a reader's data and training."""

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
        Features of the training that the paper does not treat, in words.
    margins : mapping
        Assumption -> its smallest margin over the checks. `yzflow.check` fills it in.
    subject : str
        The name of what the reader gave, if nothing is trained: "model".
    asked : str
        The one level that the reader asked for, if there is one.
    predicted : str
        The statement's forecast for the setting, made before any run. `yzflow.check` fills it in.
    """

    setting: Any  # a `Setting` with the paper's own attributes
    levels: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    subject: str = ""
    asked: str = ""
    margins: Mapping[str, float] = field(default_factory=dict)
    predicted: str = ""
