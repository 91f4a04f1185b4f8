"""Obstacles between a training and theorems: how many statements each stops, and which would apply without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynamics.support.rounded import margin as shown_margin
from theory.statements import SHARPER, Statement
from yzflow.audits.places import Applies, obstacle

__all__ = ["InTheWay", "joined", "listed", "named", "says"]

_LINE = 100  # the most letters of a statement in a line
_MOST = 7  # the most statements in a sentence


@dataclass(frozen=True)
class InTheWay:
    """Assumptions that are broken for the most statements, and the effect of their removal.

    Attributes
    ----------
    shared : mapping
        Assumption -> margin.
    count, total : int
        Number of statements that these stop, and of all that were asked.
    else_speak : tuple of str
        Statements with no other broken or unknown assumption.
    else_open : mapping
        Statement -> its unknown assumptions, if no other assumption is broken.
    """

    shared: Mapping[str, float]
    count: int
    total: int
    else_speak: tuple[str, ...]
    else_open: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, found: Mapping[str, Applies]) -> InTheWay:
        """The obstacles of statements, the smallest margin first."""
        margins = {text: margin for one in found.values() for text, margin in one.broken.items()}
        count = Counter(text for one in found.values() for text in one.broken)
        most = max(count.values(), default=0)
        shared = dict(sorted(((t, m) for t, m in margins.items() if count[t] == most), key=lambda pair: pair[1]))
        free = {name: one for name, one in found.items() if not set(one.broken) - set(shared)}
        speak = tuple(name for name, one in free.items() if not one.unknown)
        return cls(shared, most, len(found), speak, {name: one.unknown for name, one in free.items() if one.unknown})

    @property
    def sentence(self) -> str:
        """The obstacles together, and the statements that would apply without them."""
        if not self.shared:
            return ""
        several = len(self.shared) > 1
        who = f"{named(self.shared)} stand{'' if several else 's'} in the way of {self._many()}"
        without = f"without {f'these {len(self.shared)}' if several else 'it'}, "
        if self.else_speak:
            return f"{who}; {without}{listed(self.else_speak)} would speak."
        if self.else_open:
            unknown = "; ".join(dict.fromkeys(text for one in self.else_open.values() for text in one))
            return f"{who}; {without}{listed(self.else_open)} would speak if what is not known holds: {unknown}."
        return f"{who}, and each of these has more in its way."

    def _many(self) -> str:
        statements = "statement" if self.total == 1 else "statements"
        return (
            f"{self.count} {statements}" if self.count == self.total else f"{self.count} of {self.total} {statements}"
        )


def named(margins: Mapping[str, float]) -> str:
    """Obstacles in a sentence: the obstacle, or the assumption that fails with its margin."""
    words = [obstacle(text) or f'that "{text}" fails (margin {shown_margin(m, 2)})' for text, m in margins.items()]
    return joined(words)


def listed(names: Iterable[str]) -> str:
    """Statements, with their paper named once; of many, the theorems or the first ones, and the total."""
    names = list(names)
    if len(names) > _MOST:
        chosen = [name for name in names if ": Theorem" in name][:_MOST] or names[:_MOST]
        return f"{len(names)} statements, among them {listed(chosen)}"
    found: dict[str, list[str]] = {}
    for name in names:
        paper, _, number = name.partition(": ")
        found.setdefault(paper, []).append(number)
    return "; ".join(f"{joined(numbers)} of {paper}" for paper, numbers in found.items())


def joined(words: Sequence[str]) -> str:
    """Words with "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def says(statement: Statement) -> str:
    """A statement in a line: its title, and the beginning of its text."""
    words = statement.text.partition(SHARPER)[0].strip()
    line = f"{statement.title}: {words}"
    return line if len(line) <= _LINE else f"{line[:_LINE].rsplit(' ', 1)[0]} .."
