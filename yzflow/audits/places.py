"""The place of a recorded training among the assumptions of theorems."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynamics.support import distributions
from theory.statements import Statement

__all__ = ["Applies", "Place", "applies", "but", "foreseen", "least", "obstacle", "plain_steps"]

_BUT = re.compile(r", but (there is|there are|it is) ")


@dataclass(frozen=True)
class Place:
    """A recorded training as a paper sees it.

    Attributes
    ----------
    setting : object or None
        The setting at which the paper's assumptions are evaluated; None if the recording makes none, with the reason in
        ``why``.
    margins : mapping
        Conditions of every statement that the recording itself decides -> margin; NaN: unknown.
    measured : mapping
        Text of an assumption of the paper -> margin, if the recording decides it better than the setting.
    unknown : tuple of str
        Attributes of the setting that the recording does not know.
    why : str
    """

    setting: Any
    margins: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Applies:
    """The margins by which a statement applies to a recorded training.

    Attributes
    ----------
    statement : str
    margins : mapping
        Assumption -> margin. The assumption holds from one on; NaN: unknown.
    """

    statement: str
    margins: Mapping[str, float]

    @property
    def inside(self) -> bool:
        """True if every assumption holds; an unknown one does not."""
        return bool(self.margins) and all(margin >= 1 for margin in self.margins.values())

    @property
    def broken(self) -> dict[str, float]:
        """Assumptions that do not hold, the smallest margin first."""
        found = {text: margin for text, margin in self.margins.items() if margin < 1}
        return dict(sorted(found.items(), key=lambda one: one[1]))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Assumptions that the recording does not decide."""
        return tuple(text for text, margin in self.margins.items() if math.isnan(margin))


def but(text: str, instead: str) -> str:
    """An assumption and its obstacle; the obstacle begins with "there is", "there are" or "it is"."""
    return f"{text}, but {instead}" if instead else text


def obstacle(text: str) -> str:
    """The obstacle to an assumption in a text of `but`; "" if there is none."""
    return text[found.end() :] if (found := _BUT.search(text)) else ""


def least(margins: np.ndarray | Sequence[float]) -> float:
    """The smallest margin; NaN if none is below one and one is unknown."""
    found = np.ravel(np.asarray(margins, dtype=float))
    known = found[~np.isnan(found)]
    smallest = float(known.min()) if known.size else math.nan
    return smallest if smallest < 1 or known.size == found.size else math.nan


def plain_steps(optimizer: Mapping[str, Any] | None) -> bool | None:
    """True if an optimizer makes steps of its rate along the gradient and nothing else; None: unknown.

    Momentum, weight decay and rescaled gradients are something else.
    """
    if optimizer is None or not optimizer.get("name"):
        return None
    if optimizer["name"] != "SGD":
        return False
    options = [optimizer.get(name) or 0.0 for name in ("momentum", "weight_decay", "maximize")]
    if any(option and not math.isnan(option) for option in options):
        return False
    return None if any(math.isnan(option) for option in options) else True


class _Unknown(Exception):
    """An assumption needs an unknown attribute of the setting."""


class _Known:
    """A setting that raises `_Unknown` for its unknown attributes."""

    def __init__(self, setting: Any, unknown: tuple[str, ...]) -> None:
        self._setting, self._unknown = setting, unknown

    def __getattr__(self, name: str) -> Any:
        if name in self._unknown:
            raise _Unknown(name)
        return getattr(self._setting, name)


def applies(statement: Statement, place: Place, level: str) -> Applies:
    """The margins of a statement's assumptions at a place, with those that the recording decides.

    Parameters
    ----------
    statement : Statement
    place : Place
    level : str
        The paper's level for training itself: assumptions about other levels are left out.
    """
    margins = dict(place.margins)
    for one in statement.assumptions:
        if one.levels and level not in one.levels:
            continue
        try:
            measured = place.measured.get(one.text)
            known = one.margin(_Known(place.setting, place.unknown)) if measured is None else measured
            margins[one.text] = float(known)
        except _Unknown:
            margins[one.text] = math.nan
    return Applies(statement.id, margins)


def foreseen(statement: Statement, place: Place) -> str:
    """The prediction of a statement at a place, in words; empty if it predicts nothing, or from what is not known."""
    if statement.predicts is None or place.setting is None:
        return ""
    try:
        return statement.predicts(_Known(place.setting, place.unknown))
    except (_Unknown, ValueError, distributions.Missing):
        return ""
