"""Where a recorded training stands among the assumptions of theorems."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theory.statements import Statement

__all__ = ["Applies", "Place", "applies"]


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
