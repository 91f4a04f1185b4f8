"""Evidence in balls for the engines of yzflow: a check's claim decided for every time, and a certificate made again."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from theory.statements import Check, Enclosing, SettingLike
from yzflow.audits.enclosing import Decided, Enclose, EnclosedFlow
from yzflow_enclose.enclosing import enclosed_again
from yzflow_enclose.enclosure import Enclosure


class FlowsInBalls:
    """The enclosed flows of one setting, each made on first use; implements `theory.statements.Flows`."""

    def __init__(self, setting: SettingLike, enclosing: Enclosing, how: Enclose):
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
            If it cannot be enclosed, with the reason.
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
        """The verdict of balls on a check at a level; None if they have no claim for the check."""
        claim = self._enclosing.claim_of(check)
        if claim is None:
            return None
        until = min(self._how.until, check.claim_until or self._how.until)
        try:
            flow = self.enclosure(level)
            until = min(until, flow.t_end)  # a paper may follow a flow less far, for example only to a blow-up
            predicate = claim(self, level, check.tolerance)
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
    """Write a decided claim into the flow's certificate, unless it asks for bounds and so is no formula."""
    before = flow.predicates
    with contextlib.suppress(ValueError):
        flow.record(predicate, until=min(until, flow.t_reached))
    if flow.predicates != before:
        flow.save(flow.path)


def again(path: str | os.PathLike, *, flow: Any = None, progress: bool = False) -> tuple[Enclosure, Enclosure]:
    """A certificate as it is in its file, and the same flow enclosed and decided anew.

    Parameters
    ----------
    path : path-like
    flow : object or class, optional
        The certificate's flow, if it is a reader's own.
    progress : bool
        Show progress on standard error.
    """
    then = Enclosure.load(path)
    if flow is not None:
        then.opened(flow)
    return then, enclosed_again(then, progress=progress)
