"""Labels of what a verdict rests on, from strong to weak, with their scope as data."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Label", "Trust", "weakest"]

_NOISE = 1e-8  # errors below this are rounding and the tolerance of solvers


class Trust(enum.IntEnum):
    """How a verdict was come by; the larger the value, the weaker it is.

    Attributes
    ----------
    KERNEL_CHECKED
        The kernel of a proof assistant has checked all of it, under the hypotheses of the scope.
    PROVED
        Exact algebra for all sizes and parameters; what is prose in it is listed.
    PROVED_AT_SIZES
        The same at the sizes of the label's scope: an instance, and never called proved without them.
    ENCLOSED
        Ball arithmetic at the settings of the scope, whatever the rounding.
    MEASURED
        Floating point: error, tolerance, settings and seeds are in the scope.
    ARGUED
        Prose only.
    NOT_EXAMINED
        Nothing was done, for the reason that is given.
    """

    KERNEL_CHECKED = -1
    PROVED = 0
    PROVED_AT_SIZES = 1
    ENCLOSED = 2
    MEASURED = 3
    ARGUED = 4
    NOT_EXAMINED = 5


@dataclass(frozen=True)
class Label:
    """The evidence for one part of a statement, at one level of fidelity.

    Attributes
    ----------
    trust : Trust
    scope : mapping
        Where it is so. Theorems, hypotheses and axioms of what a kernel has checked. Sizes by symbol,
        ``{"K": (2, 3), "(K, M)": ((2, 3), (3, 4))}``, of a proof at sizes; nothing of one for all sizes; error,
        tolerance, level, settings and seeds of what was measured.
    prose : tuple of str
        What is argued in words: an induction or a limit in a proof, the argument itself, or the reason why something
        was not examined.
    failures : tuple of str
        Names of what does not hold; empty unless the verdict is against the statement.
    needed : bool
        Whether the statement rests on this part; an error measured beside a proof is a further look.
    clause : str
        The clause of the statement that it belongs to; empty where the statement has no clauses.

    Raises
    ------
    ValueError
        If a proof at sizes has no sizes, one for all sizes has some, or prose is missing where there is nothing else.
    """

    trust: Trust
    scope: Mapping[str, object] = field(default_factory=dict)
    prose: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    needed: bool = True
    clause: str = ""

    def __post_init__(self) -> None:
        if self.trust is Trust.PROVED and self.scope:
            raise ValueError(f"`scope` must be empty for a proof of all sizes, but got {dict(self.scope)}")
        if self.trust in _SCOPED and not self.scope:
            raise ValueError(f"`scope` must say where what is {_WORDS[self.trust]} is so, but got nothing")
        if self.trust in (Trust.ARGUED, Trust.NOT_EXAMINED) and not self.prose:
            raise ValueError(f"`prose` must give the reason for what is {_WORDS[self.trust]}, but got nothing")

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the statement."""
        return not self.failures

    def __str__(self) -> str:
        """The words for a page, after the clause's name; a proof is never named without its sizes."""
        return f"{self.clause}: {self.words}" if self.clause else self.words

    @property
    def words(self) -> str:
        """The words for a page without the clause's name."""
        if self.failures:
            return f"FAILS: {', '.join(self.failures)}"
        if self.trust in (Trust.ARGUED, Trust.NOT_EXAMINED):
            return f"{_WORDS[self.trust]}: {'; '.join(self.prose)}"
        if self.trust is Trust.PROVED:
            text = "proved for all sizes"
        elif self.trust is Trust.KERNEL_CHECKED:
            text = f"kernel-checked: {_listed(self.scope.get('theorem', ()))} in Coq, under its hypotheses"
        elif self.trust is Trust.PROVED_AT_SIZES:
            text = "proved at " + " and ".join(f"{name} = {_listed(value)}" for name, value in self.scope.items())
        else:
            text = f"{_WORDS[self.trust]}: " + "; ".join(_entry(name, value) for name, value in self.scope.items())
        return text + (f" (in words: {'; '.join(self.prose)})" if self.prose else "")

    def as_dict(self) -> dict[str, object]:
        """For JSON: every field, and the words as ``text``."""
        return {
            "clause": self.clause,
            "trust": self.trust.name,
            "text": str(self),
            "scope": dict(self.scope),
            "prose": list(self.prose),
            "failures": list(self.failures),
            "needed": self.needed,
        }


def weakest(labels: Iterable[Label]) -> Label:
    """The summary of a statement: any part that fails, needed or not, or else the weakest needed part of any clause.

    Of equal ones the first. A clause without a needed part was not examined, and so is a statement without any label.
    """
    clauses: dict[str, list[Label]] = {}
    for label in labels:
        if not label.holds:
            return label
        clauses.setdefault(label.clause, []).append(label)
    found = [_weakest_needed(name, own) for name, own in clauses.items()] or [_weakest_needed("", [])]
    return max(found, key=lambda label: label.trust)


def _weakest_needed(clause: str, labels: list[Label]) -> Label:
    needed = [label for label in labels if label.needed]
    if not needed:
        return Label(Trust.NOT_EXAMINED, prose=("neither a proof, nor a check, nor an argument",), clause=clause)
    return max(needed, key=lambda label: label.trust)


_SCOPED = (Trust.KERNEL_CHECKED, Trust.PROVED_AT_SIZES, Trust.ENCLOSED, Trust.MEASURED)
_WORDS = {
    Trust.KERNEL_CHECKED: "kernel-checked",
    Trust.PROVED: "proved",
    Trust.PROVED_AT_SIZES: "proved at sizes",
    Trust.ENCLOSED: "enclosed",
    Trust.MEASURED: "measured",
    Trust.ARGUED: "argued in words only",
    Trust.NOT_EXAMINED: "not examined",
}


def _listed(value: object) -> str:
    if isinstance(value, tuple):
        if any(isinstance(entry, str) for entry in value):  # which may have commas of their own
            return "; ".join(map(str, value))
        return ", ".join(f"({_listed(entry)})" if isinstance(entry, tuple) else str(entry) for entry in value)
    return str(value)


def _entry(name: str, value: object) -> str:
    if name == "assuming" and isinstance(value, tuple) and len(value) > 1:
        return f"inside {len(value)} assumptions"  # which stand once with the statement
    if isinstance(value, float):
        return f"{name} below {_NOISE:g}" if name == "error" and value < _NOISE else f"{name} {value:.2g}"
    return f"{name} {_listed(value)}"
