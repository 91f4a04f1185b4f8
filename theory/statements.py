"""The register of every statement: what is printed, what is right, when it applies, and how to check it.

A paper is a module in `theory.papers` with a tuple ``STATEMENTS``; it is found without an entry elsewhere. A
statement's proof is a module of `theory.symbolic`; its numerical checks are run by `yzflow.audit` on simulations.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from dynamics import Trajectory
from theory.symbolic import Derivation, rooms

LEVELS = ("closed form", "theory flow", "modified flow", "full flow", "SGD")


class Setting(Protocol):
    """One task that a paper's statements are checked on; further attributes are a matter of the paper.

    `yzflow.audits.settings` has a module of them for each paper.
    """

    @property
    def name(self) -> str: ...

    def simulate(self, level: str, *, seed: int) -> Trajectory:
        """The simulation at one of `LEVELS` but "closed form"."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Runs(Protocol):
    """What a check may look at: a setting, and its simulations by level, made on first use."""

    setting: Setting

    def trajectory(self, level: str) -> Trajectory:
        """The simulation at one of `LEVELS` but "closed form"."""


@dataclass(frozen=True)
class Assumption:
    """A condition on a setting; it holds where its margin, a ratio of the two sides, is at least one."""

    text: str
    margin: Callable[[Setting], float]


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
    """

    name: str
    levels: tuple[str, ...]
    printed: Callable[[Runs, str], float]
    corrected: Callable[[Runs, str], float] | None = None
    tolerance: float = 0.05
    expected: tuple[str, ...] = ()


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
        What is wrong, inconsistent or true only in part, and the counter-example; empty where none was found.
    prove : callable or None
        The symbolic derivation.
    checks : tuple of Check
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
    checks: tuple[Check, ...] = field(default=())

    @property
    def id(self) -> str:
        """Its key in the register."""
        return f"{self.paper}: {self.number}"

    def margins(self, setting: Setting) -> dict[str, float]:
        """The margin of each assumption; all at least one inside the assumptions."""
        return {assumption.text: float(assumption.margin(setting)) for assumption in self.assumptions}


def _papers() -> list[ModuleType]:
    return [importlib.import_module(f"theory.{paper}.statements") for paper in rooms()]


def not_examined() -> list[str]:
    """What the papers' modules say that they leave out, ``NOT_EXAMINED``."""
    return [paper.NOT_EXAMINED for paper in _papers() if hasattr(paper, "NOT_EXAMINED")]


def _register() -> dict[str, Statement]:
    found = {}
    for paper in _papers():
        for statement in paper.STATEMENTS:
            if statement.id in found:
                raise ValueError(f"`STATEMENTS` must name each statement once, but got {statement.id} twice")
            found[statement.id] = statement
    return found


def __getattr__(name: str):
    # The papers' modules need the classes above, so that the register is put together on first use.
    if name == "REGISTER":
        globals()["REGISTER"] = register = _register()
        return register
    raise AttributeError(name)
