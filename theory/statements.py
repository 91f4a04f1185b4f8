"""The register of every statement: what is printed, what is right, when it applies, how to check it, what it rests on.

The papers are those of `theory.papers`. Each has its statements, and its levels of fidelity at which they can be
checked, from the formulas to what a user trains. A statement's proof is a function that derives it
(`theory.symbolic`); its numerical checks are run by `yzflow.audit` on simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from dynamics.support import checks as required
from theory import kernel, papers
from theory.symbolic import Derivation, whole
from theory.trust import Label, Trust

__all__ = [
    "REGISTER",  # noqa: F822
    "Assumption",
    "Check",
    "Clause",
    "Enclosing",
    "Erratum",
    "Flows",
    "Hypothesis",
    "Remark",
    "Runs",
    "Setting",
    "Slip",
    "Source",
    "Statement",
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
        """The `theory.enclosures.Enclosure` of one of the paper's levels."""


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
        (setting, level, t_end=.., max_seconds=.., folder=..) -> `theory.enclosures.Enclosure`; ValueError, with the
        reason, where there can be none.
    question : callable, optional
        (setting, level) -> the parts that the claim of its certificate must have; None where there can be none.
    """

    levels: tuple[str, ...]
    enclose: Callable[..., Any]
    question: Callable[[Any, str], Mapping[str, Any] | None] | None = None

    def __post_init__(self) -> None:
        required.attributes(self, [str], "levels")
        required.attributes(self, Callable, "enclose")
        required.attributes(self, Callable, "question", optional=True)


Claiming = Callable[[Flows, str, float], Callable[[Any], Any]]
"""From enclosed flows, a level and the tolerance to a claim about a moment, a `theory.enclosures.Claim`."""


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
    claim : callable, optional
        What the check says of every time of an enclosed flow, in the form that the register stands for.
    claim_until : float, optional
        The last time that the claim is about. Default: none.
    reversible : bool
        Whether the error is the share of places with the wrong sign, so that the opposite of the check says something.
    says : str
        What is claimed, as a noun for a sentence ("the signs"). Default: the name.
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
    claim: Claiming | None = None
    claim_until: float | None = None
    reversible: bool = False
    suffices: tuple[Assumption, ...] | None = None
    says: str = ""
    false_alarm: float | None = 0.0

    def __post_init__(self) -> None:
        required.attributes(self, str, "name", "says")
        required.attributes(self, [str], "levels", "expected")
        required.attributes(self, Callable, "printed")
        required.attributes(self, Callable, "corrected", "claim", optional=True)
        required.attributes(self, [Assumption], "assumptions")
        required.attributes(self, [Assumption], "suffices", optional=True)
        required.non_negative("tolerance", self.tolerance)
        for name in ("needed", "reversible"):
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


class Erratum(str):
    """An erratum in words, of a kind; without one, a plain text, it says what is false as printed."""

    __slots__ = ()


class Hypothesis(Erratum):
    """A condition that is missing, outside of which the statement is false or has no meaning."""

    __slots__ = ()


class Slip(Erratum):
    """A slip of the print: a sign, an index or a caption, which the proof or the rest of the paper has right."""

    __slots__ = ()


class Remark(Erratum):
    """No error: what the statement does not say, leaves out or is enough besides."""

    __slots__ = ()


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


@dataclass(frozen=True)
class Statement:
    """One numbered statement of a paper.

    Attributes
    ----------
    paper, number, title : str
    text : str
        What it says, in our own words.
    printed : str
        The formula as printed.
    corrected : str or None
        The right formula where the printed one is not.
    assumptions : tuple of Assumption
    errata : tuple of str
        What is wrong, inconsistent or true only in part, and the counter-example; empty where none was found. A
        `Hypothesis` that is missing, a `Slip` of the print and a `Remark` have these types.
    prove : callable or None
        The symbolic derivation of a statement without clauses; None of one that has some.
    checks : tuple of Check
        Those of all clauses.
    argued : tuple of str
        Parts that neither the proof nor a check covers, and that rest on an argument in words.
    not_examined : tuple of str
        Parts that nothing here covers, each with the reason.
    conjecture : bool
        Whether the paper only conjectures it; proof and checks are then of what is said about it.
    refuted : str
        Of a conjecture that proof and checks refute: where it is refuted, in words ("for M = O(N), ..").
    clauses : tuple of Clause
        Its parts, each with a label of its own; the whole has the weakest. Given in place of ``prove``, ``checks``,
        ``argued`` and ``not_examined``; a statement made of these has one clause, without a name.

    Raises
    ------
    ValueError
        If clauses are given beside what they hold, or two of them have one name.
    """

    paper: str
    number: str
    title: str
    text: str
    printed: str
    corrected: str | None = None
    assumptions: tuple[Assumption, ...] = ()
    errata: tuple[str, ...] = ()
    prove: Callable[[], Derivation] | None = None
    checks: tuple[Check, ...] = ()
    argued: tuple[str, ...] = ()
    not_examined: tuple[str, ...] = ()
    conjecture: bool = False
    refuted: str = ""
    clauses: tuple[Clause, ...] = ()

    def __post_init__(self) -> None:
        required.attributes(self, str, "paper", "number", "title", "text", "printed", "refuted")
        required.attributes(self, str, "corrected", optional=True)
        required.attributes(self, [Assumption], "assumptions")
        required.attributes(self, [str], "errata", "argued", "not_examined")
        required.attributes(self, Callable, "prove", optional=True)
        required.attributes(self, [Check], "checks")
        required.attributes(self, [Clause], "clauses")
        required.flag("conjecture", self.conjecture)
        names = [clause.name for clause in self.clauses]
        if names in ([], [""]):
            whole = Clause("", "", self.prove, self.checks, self.argued, self.not_examined)
            object.__setattr__(self, "clauses", (whole,))
            return
        if len(set(names)) < len(names) or "" in names:
            raise ValueError(f"`clauses` must have a name each, unlike the others', but {self.id} has {names}")
        if self.prove is not None:
            raise ValueError(f"`prove` must be a clause's where there are clauses, but {self.id} has its own")
        for field in ("checks", "argued", "not_examined"):
            held = tuple(entry for clause in self.clauses for entry in getattr(clause, field))
            if getattr(self, field) not in ((), held):
                raise ValueError(f"`{field}` must be the clauses' where there are clauses, but {self.id} has its own")
            object.__setattr__(self, field, held)

    @property
    def id(self) -> str:
        """Its key in the register."""
        return f"{self.paper}: {self.number}"

    @property
    def own(self) -> bool:
        """Whether it is ours, and not in the paper, as its title then says."""
        return "(not in the " in self.title

    @property
    def source(self) -> Source:
        """Our copy of its paper: the print, or what the paper's room declares; one that is ours stands in none."""
        paper = None if self.own else papers.named(self.paper)
        return PRINT if paper is None else paper.source

    @property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """Its formulas, each with its name: printed and corrected, or, of one that is ours, what it is from and it."""
        where = self.source.where
        names = ("From", "Statement") if self.own else (f"{where[0].upper()}{where[1:]}", "Corrected")
        if self.corrected is None:
            return ((names[self.own], self.printed),)
        return ((names[0], self.printed), (names[1], self.corrected))

    @property
    def proofs(self) -> tuple[Callable[[], Derivation], ...]:
        """The derivations that its clauses rest on, each once and whole."""
        return tuple(dict.fromkeys(whole(clause.prove) for clause in self.clauses if clause.prove is not None))

    @cached_property
    def trust(self) -> tuple[Label, ...]:
        """For each clause a label of the proof, which is run when first asked for, of each check, and of other parts.

        A check's label has its tolerance and levels; `yzflow.audit` adds the error, the settings and the seeds.
        """
        found: list[Label] = []
        for clause in self.clauses:
            proof = [] if clause.prove is None else [replace(clause.prove().label, clause=clause.name)]
            found += self.with_kernel(clause, proof)
            found += [self.measured(check, level=check.expected) for check in clause.checks if check.expected]
            found += clause.in_words
        return tuple(found)

    def hashed(self, clause: Clause) -> str:
        """Hash of a clause as a kernel was asked for it (`theory.kernel.asked`)."""
        required.instance("clause", clause, Clause)
        assumptions = (*self.assumptions, *clause.assumptions)
        formulas = (self.printed, self.corrected, clause.formula)
        return kernel.asked(self.id, clause.name, formulas, (one.text for one in assumptions))

    def theorems(self, clause: Clause) -> tuple[kernel.Theorem, ...]:
        """The theorems about a clause, as it is now, that a kernel has checked."""
        required.instance("clause", clause, Clause)
        return kernel.theorems(self.id, clause.name, self.hashed(clause))

    @property
    def checked(self) -> tuple[kernel.Theorem, ...]:
        """The theorems on the whole and on its clauses, as they are now, that a kernel has checked."""
        whole = kernel.theorems(self.id, "", self.hashed(Clause()))
        found = (*whole, *(one for clause in self.clauses for one in self.theorems(clause)))
        return tuple(dict.fromkeys(found))

    @property
    def lapsed(self) -> tuple[kernel.Theorem, ...]:
        """The theorems on the statement that were checked when it said something else, and do not count."""
        return kernel.lapsed(self.id, self.checked)

    @property
    def negations(self) -> tuple[kernel.Theorem, ...]:
        """The theorems, checked by a kernel, that what is printed is false."""
        return tuple(one for one in self.checked if one.kind == "erratum")

    def with_kernel(self, clause: Clause, labels: Sequence[Label]) -> list[Label]:
        """The label of a kernel before those of a clause's proof, which are a further look then; or these alone.

        Raises
        ------
        ValueError
            If a proof's own label claims that a kernel has checked it: that is said by the table alone.
        """
        rule = "be labels"
        labels = [required.instance("labels", one, Label, rule=rule) for one in required.listed("labels", labels, rule)]
        if any(one.trust is Trust.KERNEL_CHECKED for one in labels):
            raise required.reject("labels", "be those of proofs, none of them kernel-checked", "one that claims it")
        checked = kernel.label(self.theorems(clause), clause.name)
        return labels if checked is None else [checked, *(replace(one, needed=False) for one in labels)]

    @property
    def in_words(self) -> tuple[Label, ...]:
        """The labels of parts that were argued only, or not examined."""
        return tuple(label for clause in self.clauses for label in clause.in_words)

    def clause_of(self, check: Check) -> Clause:
        """The clause that a check belongs to."""
        required.instance("check", check, Check)
        for clause in self.clauses:
            if check in clause.checks:
                return clause
        raise required.reject("check", f"be one of {self.id}", repr(check.name))

    def measured(self, check: Check, *, failures: tuple[str, ...] = (), **scope: object) -> Label:
        """The label of a check, with what is known of where it was measured."""
        return self._checked(Trust.MEASURED, check, failures, scope)

    def enclosed(self, check: Check, *, failures: tuple[str, ...] = (), **scope: object) -> Label:
        """The label of a check that was decided for all times up to one, with what is known of where."""
        return self._checked(Trust.ENCLOSED, check, failures, scope)

    def _checked(self, trust: Trust, check: Check, failures: tuple[str, ...], scope: dict[str, object]) -> Label:
        clause = self.clause_of(check)
        scope = {"check": check.name, **scope, "tolerance": float(check.tolerance)}
        if assumptions := self.assumed(check):
            scope["assuming"] = tuple(assumption.text for assumption in assumptions)
        needed = check.needed or clause.prove is None
        return Label(trust, scope, failures=failures, needed=needed, clause=clause.name)

    def assumed(self, check: Check | None = None) -> tuple[Assumption, ...]:
        """Its assumptions, with those of a check's clause and of the check itself, or what suffices for the check."""
        if check is None:
            return self.assumptions
        clause = self.clause_of(check)
        return (
            (*self.assumptions, *clause.assumptions, *check.assumptions) if check.suffices is None else check.suffices
        )

    @property
    def assumes(self) -> dict[str, tuple[str, ...]]:
        """The texts of its assumptions, and of those that a clause or a check has besides or instead, by whose."""
        found = {"Assumes": self.assumptions}
        for clause in self.clauses:
            if clause.assumptions:
                found[f"{clause.name}, besides"] = clause.assumptions
            for check in clause.checks:
                if check.assumptions:
                    found[f"{check.name}, besides"] = check.assumptions
                if check.suffices is not None:
                    found[f"{check.name}, only"] = check.suffices
        return {whose: tuple(one.text for one in assumptions) for whose, assumptions in found.items()}

    def margins(self, setting: Setting, check: Check | None = None, level: str | None = None) -> dict[str, float]:
        """The margin of each assumption, of those of a check too; all at least one inside the assumptions.

        At a level, of those that say something about it.
        """
        if level is not None:
            required.instance("level", level, str)
        of_level = [one for one in self.assumed(check) if level is None or not one.levels or level in one.levels]
        return {assumption.text: float(assumption.margin(setting)) for assumption in of_level}


def _register() -> dict[str, Statement]:
    return {statement.id: statement for paper in papers.papers().values() for statement in paper.statements}


def renew() -> None:
    """Put the register together again, in the place of what it held, if it was asked for before."""
    if "REGISTER" in globals():
        register = globals()["REGISTER"]
        found = _register()
        register.clear()
        register.update(found)


papers.whenever_registered(renew)


def __getattr__(name: str) -> dict[str, Statement]:
    # The papers' modules need the classes above, so that the register is put together on first use.
    if name == "REGISTER":
        globals()["REGISTER"] = register = _register()
        return register
    raise AttributeError(name)
