"""The parts of a statement: what it is checked on, what it assumes, its checks, its clauses and its errata."""

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
    "Setting",
    "Slip",
    "Source",
]


class Setting(Protocol):
    """One task that a paper's statements are checked on; further attributes are a matter of the paper.

    Those of a paper are made by its ``settings``.
    """

    @property
    def name(self) -> str: ...

    def simulate(self, level: str, *, seed: int) -> Any:
        """The simulation at one of the paper's levels, where it has one."""


class Runs(Protocol):
    """Argument of a check: a setting, and its simulations by level, made on first use."""

    setting: Any  # a `Setting` with what the paper's settings have besides

    def trajectory(self, level: str) -> Any:
        """The simulation at one of the paper's levels, where it has one."""


class Flows(Protocol):
    """Argument of an enclosed claim: a setting, and its flows in balls by level, made on first use."""

    setting: Any  # as in `Runs`
    memo: dict  # for what several claims need

    def enclosure(self, level: str) -> Any:
        """The `yzflow_enclose.Enclosure` of one of the paper's levels."""


@dataclass(frozen=True)
class Assumption:
    """A condition on a setting; it holds where its margin, a ratio of the two sides, is at least one.

    Attributes
    ----------
    text : str
        The condition as the paper has it; after a colon what is evaluated, if that is more definite, as the factor that
        stands for ">>".
    margin : callable
        (setting) -> the ratio.
    levels : tuple of str
        Those that it says something about, as the length of sequences only where there are sequences. Default: all.
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
        """The condition alone, without what stands for it."""
        return self.text.partition(": ")[0]


Claiming = Callable[[Flows, str, float], Callable[[Any], Any]]
"""From enclosed flows, a level and the tolerance to a claim about a moment, a `yzflow_enclose.Claim`."""

Measure = Callable[[Runs, str], float]
"""What a check computes from simulations at a level: a relative error, or the relative violation of an inequality."""


@dataclass(frozen=True)
class Enclosing:
    """How a paper's settings are enclosed in balls.

    Attributes
    ----------
    levels : tuple of str
        Those that can be.
    enclose : callable
        (setting, level, t_end=.., max_seconds=.., folder=..) -> `yzflow_enclose.Enclosure`; ValueError, with the
        reason, where there can be none.
    question : callable, optional
        (setting, level) -> the parts that the claim of its certificate must have; None where there can be none.
    claims : mapping
        Name -> claim, for the checks that name theirs.
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
            If it names one that is not here.
        """
        required.instance("check", check, Check)
        if not isinstance(check.claim, str):
            return check.claim
        return self.claims[required.one_of("claim", check.claim, tuple(self.claims))]


@dataclass(frozen=True)
class Check:
    """How far a statement is from a simulation.

    Attributes
    ----------
    name : str
        What is compared.
    levels : tuple of str
        Where it can be measured.
    printed : callable
        (runs, level) -> relative error of the printed form; for an inequality the relative violation, 0 where it holds.
    corrected : callable, optional
        The same for the corrected form, where it differs.
    tolerance : float
        Up to which error the statement counts as holding.
    expected : tuple of str
        Levels at which it should hold whenever the assumptions do; elsewhere a failure is what the audit reports, and
        no failure of the software.
    needed : bool
        Whether the statement rests on the check although it has a proof. Without a proof it always does.
    assumptions : tuple of Assumption
        What this part of the statement assumes beyond the rest of it.
    suffices : tuple of Assumption, optional
        Of a check of what holds beyond the printed form: what it assumes in place of all that the statement assumes.
    claim : callable or str, optional
        What the check says of every time of an enclosed flow, in the form that the register stands for; or its name in
        the paper's `Enclosing`.
    claim_until : float, optional
        The last time that the claim is about. Default: none.
    reversible : bool
        Whether the error is the share of places with the wrong sign, so that the opposite of the check says something.
    says : str
        What is claimed, as a noun for a sentence ("the signs"). Default: the name.
    remarked : bool
        Whether the printed form misses no more than a `Remark` says, in a statement that has an error besides.
    false_alarm : float, optional
        A bound on the probability, over seeds, that it fails where the statement holds; None where no bound is known.
        Default: 0, of what seeds do not decide.
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
        for level in self.expected:  # at another it would never be asked, and so never fail
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
    """The copy of a paper that we have, which says how its statements are quoted.

    Attributes
    ----------
    where : str
        After a formula or a verdict: how it stands there.
    form : str
        What the formula is called beside a corrected one.
    """

    where: str = "as printed"
    form: str = "printed form"

    def __post_init__(self) -> None:
        required.attributes(self, str, "where", "form")

    @property
    def short(self) -> str:
        """For the head of a table's column."""
        return self.where.removeprefix("as ")


PRINT = Source()


_EXPONENT = re.compile(r"(?<=\d)e(?:\+|(-))0*(?=\d)")


class Erratum(str):
    """An erratum of a statement, as one text made of its parts; a plain text counts as a `Remark`.

    Attributes
    ----------
    right : str
        What is right; of a remark, the remark.
    stands : str
        What of the statement stays true.
    quoted : str
        The words of the source, or its formula.
    setting, found : str
        A setting of the kind that the statement is about, and the number there. Given as templates for ``numbers``.
    numbers : mapping
        Published numbers that the two are filled with.

    Raises
    ------
    ValueError
        If a part that its class needs is missing, or a template names a number that is not there.
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
        """The text of the parts, in the order in which a page has them."""
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
        """Parts that it is made of again where it is copied; what the numbers have filled has no braces."""
        own = {"stands": self.stands, "quoted": self.quoted, "setting": self.setting, "found": self.found}
        return (self.right,), own


class FalseAsPrinted(Erratum):
    """Error: false for the settings that the paper is about, by a number at one of them."""

    heading = "False as printed"
    needs = ("stands", "quoted", "setting", "found")


class RefutedInPart(Erratum):
    """Error in a part of the settings that the paper is about, or in one clause, by a number there."""

    heading = "Refuted in part"
    needs = FalseAsPrinted.needs


class Slip(Erratum):
    """A slip of the print: a sign, an index or a factor, which the proof or the rest of the paper has right."""

    heading, label = "Slips", "Slip"
    needs = ("stands", "quoted")


class Remark(Erratum):
    """No error: what the statement leaves open or takes as understood, a constant, or what is enough besides."""

    heading, label, last = "Remarks", "Remark", "Besides"


# In a statement's text, before what holds beyond the printed form.
SHARPER = " Sharper than printed: "


@dataclass(frozen=True)
class Clause:
    """One part of a statement, which holds or fails by itself and has a label of its own.

    Attributes
    ----------
    name : str
        In a few words, unlike those of the statement's other clauses; empty for a statement that has no parts.
    formula : str
        What it says, in the form that is proved or checked, as LaTeX.
    prove : callable or None
        Its symbolic derivation; `theory.symbolic.part` of one that proves more.
    checks : tuple of Check
    argued, not_examined : tuple of str
        As in `Statement`.
    assumptions : tuple of Assumption
        Those beyond the statement's.

    Raises
    ------
    ValueError
        If a clause with a name rests on nothing, not even on a reason why it was not examined.
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
        """The labels of what was argued only, or not examined."""
        return (
            *(Label(Trust.ARGUED, prose=(part,), clause=self.name) for part in self.argued),
            *(Label(Trust.NOT_EXAMINED, prose=(part,), clause=self.name) for part in self.not_examined),
        )
