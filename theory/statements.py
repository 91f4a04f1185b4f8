"""The register of every statement: its printed and corrected formulas, assumptions, proof, checks and errata.

`theory.papers` lists the papers. Each paper has statements and levels of fidelity, from its formulas to the training
that a user runs. A statement's proof is a function that derives it (`theory.symbolic`). `yzflow.audit` runs the
numerical checks on simulations at each level.
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
    SettingLike,
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
    "SettingLike",
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
        The statement in our own words.
    printed : str
        The formula as printed.
    corrected : str or None
        The right formula, if the printed formula is wrong.
    assumptions : tuple of Assumption
    errata : tuple of str
        Errors of the print, each `FalseAsPrinted`, `RefutedInPart` or a `Slip`, and remarks. A plain text becomes a
        `Remark`.
    prove : callable or None
        The symbolic derivation of a statement without clauses; None if the statement has clauses.
    checks : tuple of Check
        The checks of all clauses.
    argued : tuple of str
        Parts that rest on an argument in words: neither the proof nor a check covers them.
    not_examined : tuple of str
        Parts that nothing here covers, each with the reason.
    conjecture : bool
        Whether the paper only conjectures the statement; proof and checks then concern our claim about the conjecture.
    refuted : str
        For a refuted conjecture: the settings at which it is false, in words ("for M = O(N), ..").
    clauses : tuple of Clause
        The parts, each with a label of its own; the statement gets the weakest label. Give either clauses, or
        ``prove``, ``checks``, ``argued`` and ``not_examined``: these become one clause without a name.
    predicts : callable, optional
        (setting) -> the statement's prediction for this setting, in words and numbers, before any run. Readers call it
        on their own data. ValueError, with the reason, if there is no prediction.

    Raises
    ------
    ValueError
        If clauses are given together with the fields that they replace, or two clauses share a name.
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
        of_classes = (erratum if isinstance(erratum, Erratum) else Remark(erratum) for erratum in self.errata)
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
        """The statement's key in the register."""
        return f"{self.paper}: {self.number}"

    @property
    def own(self) -> bool:
        """Whether the statement is ours: its title then says "(not in the paper)"."""
        return "(not in the " in self.title

    @property
    def accused(self) -> tuple[Erratum, ...]:
        """The errata without the remarks."""
        return tuple(erratum for erratum in self.errata if not isinstance(erratum, Remark))

    def accuses(self, check: Check) -> bool:
        """Whether the printed form's failure of a check counts as an error, rather than as the subject of a remark.

        It does for every statement without errata.
        """
        required.instance("check", check, Check)
        return not check.remarked and (bool(self.accused) or not self.errata)

    @property
    def source(self) -> Source:
        """Our copy of the paper, by the paper's `source`; our own statements have the default, `PRINT`."""
        paper = None if self.own else papers.named(self.paper)
        return PRINT if paper is None else paper.source

    @property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """(name, formula) pairs: ("As printed", ..), ("Corrected", ..); for our own ("From", ..), ("Statement", ..)."""
        where = self.source.where
        names = ("From", "Statement") if self.own else (f"{where[0].upper()}{where[1:]}", "Corrected")
        if self.corrected is None:
            return ((names[self.own], self.printed),)
        return ((names[0], self.printed), (names[1], self.corrected))

    @property
    def proofs(self) -> tuple[Callable[[], Derivation], ...]:
        """The whole derivations behind the clauses, without repetition."""
        return tuple(dict.fromkeys(whole(clause.prove) for clause in self.clauses if clause.prove is not None))

    @cached_property
    def trust(self) -> tuple[Label, ...]:
        """The labels of each clause: of its proof, its checks, and its parts that are argued or not examined.

        The first access runs the proofs. A check's label has its tolerance and levels; `yzflow.audit` adds the error,
        the settings and the seeds.
        """
        labels: list[Label] = []
        for clause in self.clauses:
            proof = [] if clause.prove is None else [self.proved(clause)]
            labels += self.with_kernel(clause, proof)
            labels += [self.measured(check, level=check.expected) for check in clause.checks if check.expected]
            labels += clause.in_words
        return tuple(labels)

    def proved(self, clause: Clause) -> Label:
        """The label of a clause's proof, which is decided once a process.

        Raises
        ------
        ValueError
            If the clause has no proof, or its derivation is one of another statement.
        """
        required.instance("clause", clause, Clause)
        derivation = derived(required.function("prove", clause.prove))
        if not derivation.is_of(self.number):
            rule = f"derive a Derivation of {self.number}, which its `statement` or `proves` names"
            raise required.reject("prove", rule, repr(derivation.statement))
        return replace(derivation.label, clause=clause.name)

    def hashed(self, clause: Clause) -> str:
        """Hash of a clause's present formulas and assumptions (`theory.kernel.asked`)."""
        required.instance("clause", clause, Clause)
        assumptions = (*self.assumptions, *clause.assumptions)
        formulas = (self.printed, self.corrected, clause.formula)
        return kernel.asked(self.id, clause.name, formulas, (assumption.text for assumption in assumptions))

    def theorems(self, clause: Clause) -> tuple[kernel.Theorem, ...]:
        """The kernel-checked theorems about the present form of a clause."""
        required.instance("clause", clause, Clause)
        return kernel.theorems(self.id, clause.name, self.hashed(clause))

    @property
    def checked(self) -> tuple[kernel.Theorem, ...]:
        """The kernel-checked theorems about the present form of the statement and of its clauses."""
        whole = kernel.theorems(self.id, "", self.hashed(Clause()))
        theorems = (*whole, *(theorem for clause in self.clauses for theorem in self.theorems(clause)))
        return tuple(dict.fromkeys(theorems))

    @property
    def lapsed(self) -> tuple[kernel.Theorem, ...]:
        """The theorems about an earlier form of the statement, which no longer count."""
        return kernel.lapsed(self.id, self.checked)

    @property
    def negations(self) -> tuple[kernel.Theorem, ...]:
        """The kernel-checked theorems that refute the printed formula."""
        return tuple(theorem for theorem in self.checked if theorem.kind == "erratum")

    def with_kernel(self, clause: Clause, labels: Sequence[Label]) -> list[Label]:
        """The labels of a clause's proof, after the kernel's label if a kernel has checked the clause.

        The statement then rests on the kernel's label: the proof's labels are marked as not needed.

        Raises
        ------
        ValueError
            If a proof's own label claims to be kernel-checked: only the table of theorems can say so.
        """
        rule = "be labels"
        labels = [required.instance("labels", one, Label, rule=rule) for one in required.listed("labels", labels, rule)]
        if any(one.trust is Trust.KERNEL_CHECKED for one in labels):
            raise required.reject("labels", "be those of proofs, none of them kernel-checked", "one that claims it")
        checked = kernel.label(self.theorems(clause), clause.name)
        return labels if checked is None else [checked, *(replace(one, needed=False) for one in labels)]

    @property
    def in_words(self) -> tuple[Label, ...]:
        """The labels of parts that are only argued in words, or not examined."""
        return tuple(label for clause in self.clauses for label in clause.in_words)

    def clause_of(self, check: Check) -> Clause:
        """The clause of a check."""
        required.instance("check", check, Check)
        for clause in self.clauses:
            if check in clause.checks:
                return clause
        raise required.reject("check", f"be one of {self.id}", repr(check.name))

    def measured(self, check: Check, *, failures: tuple[str, ...] = (), **scope: object) -> Label:
        """The label of a measured check; ``scope`` adds the level, settings and seeds of the measurement."""
        return self._checked(Trust.MEASURED, check, failures, scope)

    def enclosed(self, check: Check, *, failures: tuple[str, ...] = (), **scope: object) -> Label:
        """The label of a check decided for all times up to an end, by ball arithmetic; ``scope`` adds its settings."""
        return self._checked(Trust.ENCLOSED, check, failures, scope)

    def _checked(self, trust: Trust, check: Check, failures: tuple[str, ...], scope: dict[str, object]) -> Label:
        clause = self.clause_of(check)
        scope = {"check": check.name, **scope, "tolerance": float(check.tolerance)}
        if assumptions := self.assumed(check):
            scope["assuming"] = tuple(assumption.text for assumption in assumptions)
        needed = check.needed or clause.prove is None
        return Label(trust, scope, failures=failures, needed=needed, clause=clause.name)

    def assumed(self, check: Check | None = None) -> tuple[Assumption, ...]:
        """The assumptions of the statement; for a check also those of the check and its clause, or its ``suffices``."""
        if check is None:
            return self.assumptions
        clause = self.clause_of(check)
        return (
            (*self.assumptions, *clause.assumptions, *check.assumptions) if check.suffices is None else check.suffices
        )

    @property
    def assumes(self) -> dict[str, tuple[str, ...]]:
        """Heading -> texts of assumptions: the statement's, and each clause's and check's additions or replacements."""
        listed = {"Assumes": self.assumptions}
        for clause in self.clauses:
            if clause.assumptions:
                listed[f"{clause.name}, besides"] = clause.assumptions
            for check in clause.checks:
                if check.assumptions:
                    listed[f"{check.name}, besides"] = check.assumptions
                if check.suffices is not None:
                    listed[f"{check.name}, only"] = check.suffices
        return {whose: tuple(assumption.text for assumption in assumptions) for whose, assumptions in listed.items()}

    def margins(self, setting: SettingLike, check: Check | None = None, level: str | None = None) -> dict[str, float]:
        """Text -> margin of each assumption, also of a check's; inside the assumptions all are at least one.

        With a level: only the assumptions that concern this level.
        """
        if level is not None:
            required.instance("level", level, str)
        of_level = [one for one in self.assumed(check) if level is None or not one.levels or level in one.levels]
        return {assumption.text: float(assumption.margin(setting)) for assumption in of_level}


def _register() -> dict[str, Statement]:
    return {statement.id: statement for paper in papers.papers().values() for statement in paper.statements}


def renew() -> None:
    """Rebuild the register in place, if it has been built."""
    if "REGISTER" in globals():
        register = globals()["REGISTER"]
        fresh = _register()
        register.clear()
        register.update(fresh)


papers.whenever_registered(renew)


def __getattr__(name: str) -> dict[str, Statement]:
    # Build the register on first use: the papers' modules import the classes above.
    if name == "REGISTER":
        globals()["REGISTER"] = register = _register()
        return register
    raise AttributeError(name)
