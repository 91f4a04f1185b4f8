"""The audit's rows in balls: a check's claim, decided for every time of an enclosed flow."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from dynamics.support import checks
from theory.statements import Check, Enclosing, Setting


@dataclass(frozen=True)
class Enclose:
    """How far and where the audit encloses flows.

    Attributes
    ----------
    until : float
        Last time, in steps.
    max_seconds : float
        For each flow; one that takes longer is enclosed as far as it goes, and its rows stay open from there on.
    folder : path-like, optional
        Where certificates are kept, each of which ``python -m yzflow.verify`` checks.

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
    """Finding of balls on one row.

    Attributes
    ----------
    value : bool or None
        True: the claim is proved for every t with 0 < t <= ``until``. False: it is false at ``times``. None: open, with
        a reason.
    until : float
        Up to which time it was asked.
    reached : float
        Up to which time it is proved.
    times : (float, float) or None
        Where it is false, or open.
    reason : str
        Why nothing is proved beyond ``reached``; empty if the claim is decided.
    """

    value: bool | None
    until: float
    reached: float
    times: tuple[float, float] | None
    reason: str

    def covers(self, last: float) -> bool:
        """Whether the claim is refuted up to ``last``, or proved that far, or up to ``until`` if that is earlier."""
        return self.refuted(last) or self.reached >= min(last, self.until)

    def refuted(self, last: float) -> bool:
        """Whether the claim is false at a time up to ``last``."""
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
    """A flow that was enclosed, or not: what the report says of it.

    Attributes
    ----------
    setting, level : str
    variables, steps : int
        Zero where there is no enclosure.
    reached : float
        Up to which time.
    reason : str
        Why not further.
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


class FlowsInBalls:
    """The enclosed flows of one setting, each made on first use; what `theory.statements.Flows` asks for."""

    def __init__(self, setting: Setting, enclosing: Enclosing, how: Enclose):
        self.setting = setting
        self.memo: dict = {}
        self.flows: dict[str, EnclosedFlow] = {}
        self._how = how
        self._enclosing = enclosing
        self._made: dict[str, Any] = {}

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels that can be enclosed."""
        return self._enclosing.levels

    def enclosure(self, level: str) -> Any:
        """The flow of a level in balls.

        Raises
        ------
        ValueError
            If there is none, with the reason.
        """
        if level not in self._made:
            self._made[level] = self._enclosed(level)
        made = self._made[level]
        if isinstance(made, str):
            raise ValueError(made)
        return made

    def _enclosed(self, level: str) -> Any:
        how = self._how
        try:
            made = self._enclosing.enclose(
                self.setting, level, t_end=how.until, max_seconds=how.max_seconds, folder=how.folder
            )
        except ValueError as error:
            self.flows[level] = EnclosedFlow(self.setting.name, level, 0, 0, 0.0, str(error))
            return str(error)
        facts = made.variables, len(made.steps), made.t_reached, made.reason
        self.flows[level] = EnclosedFlow(self.setting.name, level, *facts)
        if not made.steps:
            return made.reason
        return made

    def decide(self, check: Check, level: str) -> Decided | None:
        """Finding of balls on a check at a level; None if its claim is about nothing that they hold."""
        if check.claim is None:
            return None
        until = min(self._how.until, check.claim_until or self._how.until)
        try:
            flow = self.enclosure(level)
            until = min(until, flow.t_end)  # a paper may follow a flow less far, as to where it blows up
            predicate = check.claim(self, level, check.tolerance)
            found = flow.decide(predicate, until=until)
        except ValueError as error:
            return Decided(None, until, 0.0, None, str(error))
        if found.value is not None and getattr(flow, "path", None) is not None:
            _keep(flow, predicate, until)
        reached = found.reached
        reason = ""
        if found.value is None:
            reason = flow.reason if reached >= flow.t_reached else f"the balls are too wide at t = {reached:.4g}"
        return Decided(found.value, until, reached, found.times, reason)


def _keep(flow: Any, predicate: Any, until: float) -> None:
    """Write a decided claim into the flow's certificate, if it is a formula: one that asks for bounds is not."""
    before = flow.predicates
    with contextlib.suppress(ValueError):
        flow.record(predicate, until=min(until, flow.t_reached))
    if flow.predicates != before:
        flow.save(flow.path)
