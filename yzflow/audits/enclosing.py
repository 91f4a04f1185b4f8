"""Evidence from ball arithmetic in an audit: enclosed flows, and claims decided for every time of a flow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dynamics.support import checks, distributions
from theory.statements import Check, SettingLike
from yzflow.parts import part_of


@dataclass(frozen=True)
class Enclose:
    """How far and where the audit encloses flows.

    Attributes
    ----------
    until : float
        Last time, in steps.
    max_seconds : float
        Limit for each flow. A flow that takes longer is enclosed as far as it got, and its rows are open after that.
    folder : path-like, optional
        Folder for the certificates, which ``yzflow verify`` checks.

    Raises
    ------
    ValueError
        If a number is not positive.
    """

    until: float = 1e4
    max_seconds: float = 60.0
    folder: str | os.PathLike | None = None

    def __post_init__(self) -> None:
        checks.positive("until", self.until)
        checks.positive("max_seconds", self.max_seconds)
        if self.folder is not None:
            checks.instance("folder", self.folder, (str, os.PathLike), rule="be the path of a folder")


@dataclass(frozen=True)
class Decided:
    """Decision of ball arithmetic on one row of the audit.

    Attributes
    ----------
    value : bool or None
        True: the claim is proved for every t with 0 < t <= ``until``. False: it is false at ``times``. None: open, with
        a reason.
    until : float
        Last time of the question.
    reached : float
        The claim is proved up to this time.
    times : (float, float) or None
        The bracket in which the claim is false, or open.
    reason : str
        Why nothing is proved beyond ``reached``; empty if the claim is decided.
    """

    value: bool | None
    until: float
    reached: float
    times: tuple[float, float] | None
    reason: str

    def covers(self, last: float) -> bool:
        """True if the claim is refuted up to ``last``, or proved up to ``last`` or ``until``, the earlier of them."""
        return self.refuted(last) or self.reached >= min(last, self.until)

    def refuted(self, last: float) -> bool:
        """True if the claim is false at a time up to ``last``."""
        return self.value is False and self.times is not None and self.times[1] <= last

    @property
    def words(self) -> str:
        """For a table."""
        if self.value is True:
            return f"true for all t <= {self.until:g}"
        if self.value is False and self.times is not None:
            return f"false at t = {self.times[1]:.4g}" + (
                f", true for all t <= {self.reached:.4g}" if self.reached else ""
            )
        return f"open ({self.reason})" + (f", true for all t <= {self.reached:.4g}" if self.reached else "")

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        outcome = {True: "true", False: "false", None: "open"}[self.value]
        return {"outcome": outcome, "words": self.words, "until": self.until, "reached": self.reached} | (
            {} if self.times is None else {"times": list(self.times)}
        )


@dataclass(frozen=True)
class EnclosedFlow:
    """The outcome for one flow that was to be enclosed.

    Attributes
    ----------
    setting, level : str
    variables, steps : int
        Zero where there is no enclosure.
    reached : float
        Last enclosed time.
    reason : str
        Why the enclosure ends there.
    """

    setting: str
    level: str
    variables: int
    steps: int
    reached: float
    reason: str

    @property
    def words(self) -> str:
        if not self.steps:
            return f"not enclosed: {self.reason}"
        short = f" (and no further: {self.reason})" if self.reason else ""
        return f"{self.variables} variables, {self.steps} steps to t = {self.reached:g}{short}"


class FlowsInBalls(Protocol):
    """The enclosed flows of one setting, as yzflow-enclose makes them."""

    @property
    def flows(self) -> Mapping[str, EnclosedFlow]:
        """Level -> enclosed flow, for the levels that were used."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels that can be enclosed."""

    def decide(self, check: Check, level: str) -> Decided | None:
        """The decision on a check at a level; None if ball arithmetic cannot express its claim."""


def flows_of(paper: str, settings: Sequence[SettingLike], how: Enclose) -> list[FlowsInBalls] | None:
    """The enclosed flows of each setting; None if the paper declares no flows to enclose.

    Raises
    ------
    ImportError
        If yzflow-enclose is not installed, with the cure.
    """
    evidence = distributions.bring(distributions.EVIDENCE, "the option `enclose`")
    enclosing = part_of(paper, "enclosing")
    return None if enclosing is None else [evidence.FlowsInBalls(setting, enclosing, how) for setting in settings]
