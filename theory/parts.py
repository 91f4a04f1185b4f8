"""The parts of a statement: settings and runs, assumptions, checks, clauses and errata."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dynamics.support import checks as required
from theory.symbolic import Derivation
from theory.trust import Label, Trust

__all__ = [
    "PRINT",
    "SHARPER",
    "Assumption",
    "Check",
    "Claiming",
    "Clause",
    "Enclosing",
    "Erratum",
    "FalseAsPrinted",
    "Flows",
    "Measure",
    "RefutedInPart",
    "Remark",
    "Runs",
    "SettingLike",
    "Slip",
    "Source",
]


class SettingLike(Protocol):
    """A training task on which a paper's statements are checked.

    A paper's ``settings`` makes its tasks, which may have further attributes.
    """

    @property
    def name(self) -> str: ...

    def simulate(self, level: str, *, seed: int) -> Any:
        """The simulation at one of the paper's levels, where it has one."""


class Runs(Protocol):
    """Argument of a check: a setting and its simulations by level, each run on first use."""

    setting: Any  # a `SettingLike`, with the paper's further attributes

    def trajectory(self, level: str) -> Any:
        """The simulation at one of the paper's levels, where it has one."""


class Flows(Protocol):
    """Argument of an enclosed claim: a setting and its flows in balls by level, each made on first use."""

    setting: Any  # as in `Runs`
    memo: dict  # intermediate results that several claims share

    def enclosure(self, level: str) -> Any:
        """The `yzflow_enclose.Enclosure` of one of the paper's levels."""


@dataclass(frozen=True)
class Assumption:
    """A condition on a setting, with a margin: the ratio of its two sides, at least one where it holds.

    Attributes
    ----------
    text : str
        The condition in the paper's words. If the margin evaluates something more definite, such as a factor for ">>",
        it follows after a colon.
    margin : callable
        (setting) -> the ratio.
    levels : tuple of str
        The levels that the condition concerns: one on the length of sequences concerns no level without sequences.
        Default: all.
    """

    text: str
    margin: Callable[[Any], float]
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        required.attributes(self, str, "text")
        required.attributes(self, Callable, "margin")
        required.attributes(self, [str], "levels")

    @property
    def printed(self) -> str:
        """The condition in the paper's words, without the evaluated form after the colon."""
        return self.text.partition(": ")[0]


Claiming = Callable[[Flows, str, float], Callable[[Any], Any]]
"""From enclosed flows, a level and the tolerance to a claim about a moment, a `yzflow_enclose.Claim`."""

Measure = Callable[[Runs, str], float]
"""From simulations and a level to a relative error, or to the relative violation of an inequality."""


@dataclass(frozen=True)
class Enclosing:
    """Functions that enclose the flows of a paper's settings in balls.

    Attributes
    ----------
    levels : tuple of str
        The levels with an enclosure.
    enclose : callable
        (setting, level, t_end=.., max_seconds=.., folder=..) -> `yzflow_enclose.Enclosure`; ValueError, with the
        reason, if this setting has none.
    question : callable, optional
        (setting, level) -> the required parts of a certificate's claim; None if there can be no certificate.
    claims : mapping
        Name -> claim, for checks whose ``claim`` is a name.
    """

    levels: tuple[str, ...]
    enclose: Callable[..., Any]
    question: Callable[[Any, str], Mapping[str, Any] | None] | None = None
    claims: Mapping[str, Claiming] = field(default_factory=dict)

    def __post_init__(self) -> None:
        required.attributes(self, [str], "levels")
        required.attributes(self, Callable, "enclose")
        required.attributes(self, Callable, "question", optional=True)
        for claim in required.mapping("claims", self.claims).values():
            required.function("claims", claim)

    def claim_of(self, check: Check) -> Claiming | None:
        """The claim of a check; None if it has none.

        Raises
        ------
        ValueError
            If the check names a claim that is not in ``claims``.
        """
        required.instance("check", check, Check)
        if not isinstance(check.claim, str):
            return check.claim
        return self.claims[required.one_of("claim", check.claim, tuple(self.claims))]


@dataclass(frozen=True)
class Check:
    """A comparison of a statement with simulations.

    Attributes
    ----------
    name : str
        The compared quantity.
    levels : tuple of str
        Levels at which the comparison is possible.
    printed : callable
        (runs, level) -> relative error of the printed form; for an inequality the relative violation, 0 where it holds.
    corrected : callable, optional
        The same function for the corrected form, if it differs.
    tolerance : float
        Largest error at which the statement counts as holding.
    expected : tuple of str
        Levels at which the statement should hold whenever its assumptions do. A failure at another level is a finding
        for the audit's report, and no failure of the software.
    needed : bool
        Whether the statement rests on the check although it has a proof. Without a proof it always does.
    assumptions : tuple of Assumption
        Assumptions of the check beyond the statement's.
    suffices : tuple of Assumption, optional
        Assumptions of the check in place of the statement's, for a claim that holds more widely than the printed form.
    claim : callable or str, optional
        The check's claim about every moment of an enclosed flow, for the corrected form; or the claim's name in the
        paper's `Enclosing`.
    claim_until : float, optional
        The last time of the claim. Default: none.
    reversible : bool
        Whether the error is a share of wrong signs: then the opposite claim makes sense, too.
    says : str
        The claim as a noun for a sentence ("the signs"). Default: the name.
    remarked : bool
        Whether a `Remark` explains all that the printed form misses, in a statement with other errata.
    false_alarm : float, optional
        Bound on the probability, over seeds, that the check fails although the statement holds. None: no bound is
        known. Default 0: the check is deterministic.
    """

    name: str
    levels: tuple[str, ...]
    printed: Measure
    corrected: Measure | None = None
    tolerance: float = 0.05
    expected: tuple[str, ...] = ()
    needed: bool = False
    assumptions: tuple[Assumption, ...] = ()
    claim: Claiming | str | None = None
    claim_until: float | None = None
    reversible: bool = False
    suffices: tuple[Assumption, ...] | None = None
    says: str = ""
    false_alarm: float | None = 0.0
    remarked: bool = False

    def __post_init__(self) -> None:
        required.attributes(self, str, "name", "says")
        required.attributes(self, [str], "levels", "expected")
        required.attributes(self, Callable, "printed")
        required.attributes(self, Callable, "corrected", optional=True)
        if not isinstance(self.claim, str):
            required.attributes(self, Callable, "claim", optional=True)
        required.attributes(self, [Assumption], "assumptions")
        required.attributes(self, [Assumption], "suffices", optional=True)
        required.non_negative("tolerance", self.tolerance)
        for level in self.expected:  # the check is never run at another level, and so could not fail there
            required.one_of("expected", level, self.levels)
        for name in ("needed", "reversible", "remarked"):
            required.flag(name, getattr(self, name))
        if self.claim_until is not None:
            required.positive("claim_until", self.claim_until)
        if self.false_alarm is not None:
            required.below("false_alarm", required.non_negative("false_alarm", self.false_alarm), 1)
        if self.suffices is not None and self.assumptions:
            raise ValueError(f"`suffices` must be all that a check assumes, but {self.name!r} has assumptions besides")


@dataclass(frozen=True)
class Source:
    """Words by which pages refer to our copy of a paper.

    Attributes
    ----------
    where : str
        Words after a formula or a verdict.
    form : str
        Name of the quoted formula beside the corrected formula.
    """

    where: str = "as printed"
    form: str = "printed form"

    def __post_init__(self) -> None:
        required.attributes(self, str, "where", "form")

    @property
    def short(self) -> str:
        """The words for the head of a table's column."""
        return self.where.removeprefix("as ")


PRINT = Source()


_EXPONENT = re.compile(r"(?<=\d)e(?:\+|(-))0*(?=\d)")


class Erratum(str):
    """An erratum of a statement, as one text made of its parts; a plain text counts as a `Remark`.

    Attributes
    ----------
    right : str
        The correction; for a `Remark`, the remark.
    stands : str
        The part of the statement that stays true.
    quoted : str
        The words of the source, or its formula.
    setting, found : str
        A counterexample: a setting within the statement's scope, and the number there. Given as templates.
    numbers : mapping
        Published numbers that fill the two templates.

    Raises
    ------
    ValueError
        If a part is missing that the class needs, or a template names a number that is missing from ``numbers``.
    """

    heading, label, last = "", "Erratum", "Right"
    needs: tuple[str, ...] = ()
    right: str
    stands: str
    quoted: str
    setting: str
    found: str
    numbers: Mapping[str, Any]

    def __new__(
        cls,
        right: str,
        *,
        stands: str = "",
        quoted: str = "",
        setting: str = "",
        found: str = "",
        numbers: Mapping[str, Any] | None = None,
    ) -> Erratum:
        """The text of the parts, in the order of a page."""
        if cls is Erratum:
            raise required.reject("Erratum", "be of a class: FalseAsPrinted, RefutedInPart, Slip or Remark", "none")
        known = required.mapping("numbers", numbers)
        given: dict[str, Any] = {"stands": stands, "quoted": quoted, "setting": setting, "found": found, "right": right}
        for name, text in given.items():
            required.instance(name, text, str)
            if name in ("right", *cls.needs) and not text:
                raise required.reject(name, f"be given for an erratum of the class {cls.__name__}", "nothing")
        try:
            filled = {name: given[name].format(**known) for name in ("setting", "found")}
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise required.reject("numbers", "fit all that `setting` and `found` name", f"the error {error}") from error
        given |= {name: _EXPONENT.sub(r"e\g<1>", text) for name, text in filled.items()}  # 1e-3 and not 1e-03
        parts = [
            f"Stands: {stands}" if stands else "",
            f"Quoted: {quoted}" if quoted else "",
            f"At {given['setting']}: {given['found']}" if setting else given["found"],
            f"{cls.last}: {right}" if stands else right,
        ]
        self = super().__new__(cls, " ".join(part for part in parts if part))
        vars(self).update(given, numbers=known)
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        """Arguments that rebuild the erratum when it is copied; filled templates have no braces left."""
        parts = {"stands": self.stands, "quoted": self.quoted, "setting": self.setting, "found": self.found}
        return (self.right,), parts


class FalseAsPrinted(Erratum):
    """Error: false at the paper's settings, as a number at one of them shows."""

    heading = "False as printed"
    needs = ("stands", "quoted", "setting", "found")


class RefutedInPart(Erratum):
    """Error at some of the paper's settings, or in one clause, as a number there shows."""

    heading = "Refuted in part"
    needs = FalseAsPrinted.needs


class Slip(Erratum):
    """Misprint of a sign, an index or a factor; the proof or the rest of the paper has it right."""

    heading, label = "Slips", "Slip"
    needs = ("stands", "quoted")


class Remark(Erratum):
    """No error: an open point, a tacit assumption, a constant, or a weaker sufficient condition."""

    heading, label, last = "Remarks", "Remark", "Besides"


# In a statement's text, before a claim that is stronger than the printed form.
SHARPER = " Sharper than printed: "


@dataclass(frozen=True)
class Clause:
    """A part of a statement: it holds or fails by itself and has a label of its own.

    Attributes
    ----------
    name : str
        A few words, unique among the statement's clauses; empty for a statement without parts.
    formula : str
        The proved or checked form of the claim, as LaTeX.
    prove : callable or None
        The symbolic derivation; `theory.symbolic.part` takes it from a derivation that proves more.
    checks : tuple of Check
    argued, not_examined : tuple of str
        As in `Statement`.
    assumptions : tuple of Assumption
        Assumptions of the clause beyond the statement's.

    Raises
    ------
    ValueError
        If a clause with a name has no proof, no check, no argument and no reason for not examining it.
    """

    name: str = ""
    formula: str = ""
    prove: Callable[[], Derivation] | None = None
    checks: tuple[Check, ...] = ()
    argued: tuple[str, ...] = ()
    not_examined: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        required.attributes(self, str, "name", "formula")
        required.attributes(self, Callable, "prove", optional=True)
        required.attributes(self, [Check], "checks")
        required.attributes(self, [str], "argued", "not_examined")
        required.attributes(self, [Assumption], "assumptions")
        if self.name and self.prove is None and not (self.checks or self.argued or self.not_examined):
            raise ValueError(f"`Clause` must have a proof, checks, an argument or a reason, but {self.name!r} has none")

    @property
    def in_words(self) -> tuple[Label, ...]:
        """The labels of parts that are only argued in words, or not examined."""
        return (
            *(Label(Trust.ARGUED, prose=(words,), clause=self.name) for words in self.argued),
            *(Label(Trust.NOT_EXAMINED, prose=(words,), clause=self.name) for words in self.not_examined),
        )
