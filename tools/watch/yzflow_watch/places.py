"""Where a recorded training stands among the assumptions of theorems."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from theory.statements import Statement

__all__ = ["Applies", "Place", "applies", "but", "least", "obstacle", "plain_steps"]

_BUT = re.compile(r", but (there is|there are|it is) ")


@dataclass(frozen=True)
class Place:
    """A recorded training as a paper sees it.

    Attributes
    ----------
    setting : object or None
        What the paper's assumptions are evaluated at; None where the recording makes none, for the reason ``why``.
    margins : mapping
        Conditions of every statement that the recording itself decides -> margin. NaN: not known.
    measured : mapping
        Text of one of the paper's assumptions -> margin, where the recording says more about it than the setting.
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
    """Whether a statement speaks about a recorded training.

    Attributes
    ----------
    statement : str
    margins : mapping
        Assumption -> margin; it holds from one on, and NaN is not known.
    """

    statement: str
    margins: Mapping[str, float]

    @property
    def inside(self) -> bool:
        """Whether every assumption holds; one that is not known does not."""
        return bool(self.margins) and all(margin >= 1 for margin in self.margins.values())

    @property
    def broken(self) -> dict[str, float]:
        """Assumptions that do not hold, from the smallest margin on."""
        found = {text: margin for text, margin in self.margins.items() if margin < 1}
        return dict(sorted(found.items(), key=lambda one: one[1]))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Assumptions of which the recording knows too little."""
        return tuple(text for text, margin in self.margins.items() if math.isnan(margin))


def but(text: str, instead: str) -> str:
    """An assumption and what stands in its way, in words that begin with "there is", "there are" or "it is"."""
    return f"{text}, but {instead}" if instead else text


def obstacle(text: str) -> str:
    """The thing that stands in the way of an assumption, as `but` has it; "" where it was not said."""
    return text[found.end() :] if (found := _BUT.search(text)) else ""


def least(margins: np.ndarray | Sequence[float]) -> float:
    """The smallest of margins that must all hold; NaN if none is known to be broken and one is not known."""
    found = np.ravel(np.asarray(margins, dtype=float))
    known = found[~np.isnan(found)]
    smallest = float(known.min()) if known.size else math.nan
    return smallest if smallest < 1 or known.size == found.size else math.nan


def plain_steps(optimizer: Mapping[str, Any] | None) -> bool | None:
    """Whether an optimizer makes steps of its rate along the gradient and nothing else; None: not known.

    Momentum, weight decay and what rescales the gradient do something else.
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
    """An assumption asks for what is not known."""


class _Known:
    """A setting that refuses to say what is not known of it."""

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
        The paper's level that is training itself: assumptions about other levels are left out.
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
