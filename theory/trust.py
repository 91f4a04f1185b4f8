"""Labels of the evidence for a verdict, from strong to weak, with the scope of each as data."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynamics.support.rounded import faithful

__all__ = ["Label", "Trust", "sized", "weakest"]

_NOISE = 1e-8  # errors below this are rounding and the tolerance of solvers


class Trust(enum.IntEnum):
    """Kinds of evidence for a verdict; a larger value is weaker evidence.

    Attributes
    ----------
    KERNEL_CHECKED
        A proof assistant's kernel has checked the whole clause, under the hypotheses in the scope.
    PROVED
        Exact algebra for all sizes and parameters. The label's ``prose`` lists the steps in words.
    PROVED_AT_SIZES
        Exact algebra at the sizes in the scope. The word "proved" never stands without these sizes.
    ENCLOSED
        Ball arithmetic at the settings in the scope: no rounding error can change the verdict.
    MEASURED
        Floating point; the scope has error, tolerance, settings and seeds.
    ARGUED
        An argument in words only.
    NOT_EXAMINED
        No evidence; the label's ``prose`` gives the reason.
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
        Where the evidence holds. Kernel-checked: theorems, hypotheses and axioms. Proof at sizes: the sizes by symbol,
        ``{"K": (2, 3), "(K, M)": ((2, 3), (3, 4))}``. Proof for all sizes: empty. Measured: error, tolerance, level,
        settings and seeds.
    prose : tuple of str
        Steps in words: an induction or a limit in a proof, the whole argument, or the reason for not examining.
    failures : tuple of str
        Names of the expressions or checks that fail; empty unless the verdict is against the statement.
    needed : bool
        Whether the statement rests on this evidence. A measured error beside a proof is only a second look.
    clause : str
        Name of the statement's clause; empty for a statement without clauses.

    Raises
    ------
    ValueError
        If a proof at sizes has no sizes, a proof for all sizes has some, or an argument or a reason lacks its prose.
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
        """Whether there are no failures."""
        return not self.failures

    def __str__(self) -> str:
        """The words for a page, after the clause's name; a proof at sizes always names its sizes."""
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
            tolerance = self.scope.get("tolerance")
            small = isinstance(tolerance, float) and 0 < tolerance <= _NOISE
            entries = (
                sized(value, tolerance) if name == "error" and isinstance(value, float) else _entry(name, value)
                for name, value in self.scope.items()
                if not (small and name == "tolerance" and "error" in self.scope)
            )
            text = f"{_WORDS[self.trust]}: " + "; ".join(entries)
        return text + (f" (in words: {'; '.join(self.prose)})" if self.prose else "")

    def as_dict(self) -> dict[str, object]:
        """Every field for JSON, with the words as ``text``."""
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
    """The label that summarizes a statement: its first failed label, needed or not, else its weakest needed label.

    Among equal labels the first wins. A clause without a needed label counts as not examined, as does a statement
    without labels.
    """
    clauses: dict[str, list[Label]] = {}
    for label in labels:
        if not label.holds:
            return label
        clauses.setdefault(label.clause, []).append(label)
    by_clause = [_weakest_needed(name, members) for name, members in clauses.items()] or [_weakest_needed("", [])]
    return max(by_clause, key=lambda label: label.trust)


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


def sized(error: float, tolerance: object = None) -> str:
    """An error in words, never rounded across the tolerance: "error 0.02", or, below rounding, "error below 1e-9"."""
    known = tolerance if isinstance(tolerance, float) and tolerance > 0 else math.inf
    bound = min(_NOISE, known)
    if not error < bound:
        return f"error {faithful(error, lambda number: number <= known, 2)}"
    return f"error below {faithful(bound, lambda number: number > error, 1)}".replace("e-0", "e-")


def _listed(value: object) -> str:
    if isinstance(value, tuple):
        if any(isinstance(entry, str) for entry in value):  # words may contain commas
            return "; ".join(map(str, value))
        return ", ".join(f"({_listed(entry)})" if isinstance(entry, tuple) else str(entry) for entry in value)
    return str(value)


def _entry(name: str, value: object) -> str:
    if name == "assuming" and isinstance(value, tuple) and len(value) > 1:
        return f"inside {len(value)} assumptions"  # the statement's page lists them once
    if isinstance(value, float):
        return f"{name} {value:.2g}"
    return f"{name} {_listed(value)}"
