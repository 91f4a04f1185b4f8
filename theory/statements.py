"""The register of every statement: what is printed, what is right, when it applies, how to check it, what it rests on.

The papers are those of `theory.papers`. Each has its statements, and its levels of fidelity at which they can be
checked, from the formulas to what a user trains. A statement's proof is a function that derives it
(`theory.symbolic`); its numerical checks are run by `yzflow.audit` on simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dynamics.support import checks as required
from theory import kernel, papers
from theory.parts import (
    PRINT,
    SHARPER,
    Assumption,
    Check,
    Claiming,
    Clause,
    Enclosing,
    Erratum,
    FalseAsPrinted,
    Flows,
    Measure,
    RefutedInPart,
    Remark,
    Runs,
    Setting,
    Slip,
    Source,
)
from theory.symbolic import Derivation, derived, whole
from theory.trust import Label, Trust

__all__ = [
    "REGISTER",  # noqa: F822
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
    "Statement",
]


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
        What is `FalseAsPrinted`, `RefutedInPart` or a `Slip` of the print, and each `Remark`; a plain text becomes one.
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
    predicts : callable, optional
        (setting) -> what it says of this setting before anything is run, in words and numbers: for a reader who asks it
        of data of their own. ValueError, with the reason, where it says nothing.

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
    errata: tuple[Erratum, ...] = ()
    prove: Callable[[], Derivation] | None = None
    checks: tuple[Check, ...] = ()
    argued: tuple[str, ...] = ()
    not_examined: tuple[str, ...] = ()
    conjecture: bool = False
    refuted: str = ""
    clauses: tuple[Clause, ...] = ()
    predicts: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        required.attributes(self, str, "paper", "number", "title", "text", "printed", "refuted")
        required.attributes(self, str, "corrected", optional=True)
        required.attributes(self, [Assumption], "assumptions")
        required.attributes(self, [str], "errata", "argued", "not_examined")
        of_classes = (one if isinstance(one, Erratum) else Remark(one) for one in self.errata)
        object.__setattr__(self, "errata", tuple(of_classes))
        required.attributes(self, Callable, "prove", "predicts", optional=True)
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
    def accused(self) -> tuple[Erratum, ...]:
        """Its errata that are no remarks."""
        return tuple(one for one in self.errata if not isinstance(one, Remark))

    def accuses(self, check: Check) -> bool:
        """Whether a check that the printed form misses shows an error, and not what a remark is on.

        Without errata it does, for nothing excuses the form.
        """
        required.instance("check", check, Check)
        return not check.remarked and (bool(self.accused) or not self.errata)

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
            proof = [] if clause.prove is None else [replace(derived(clause.prove).label, clause=clause.name)]
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
