"""Blocks of examples: each is a run of a sweep, so that any number of workers draws the same examples."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from dynamics import DivergenceError, IntegrationError
from dynamics.support import checks
from theory.statements import Assumption, Check, Statement
from yzflow.audits import audit, find_statement
from yzflow.audits.verdicts import Row, Verdict, broken, judge
from yzflow.fuzzing.choosing import Choose, Drawn
from yzflow.parts import part_of
from yzflow.sweeps.runs import told

BLOCK = 25
_LENGTH = 2**17  # characters of a block
_TOO_MUCH = (ValueError, IntegrationError, DivergenceError, MemoryError)


class NotReached(ValueError):
    """A simulation ends before the time that a claim speaks of."""


@dataclass(frozen=True)
class Question:
    """The question of a campaign: a statement at a level, inside all assumptions, or outside of one.

    Attributes
    ----------
    statement : Statement
    level : str
    outside : Assumption, optional
    """

    statement: Statement
    level: str
    outside: Assumption | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """Checks that should hold at the level."""
        return tuple(check for check in self.statement.checks if self.level in check.expected)

    def setting(self, choose: Choose) -> Any:
        """The setting of the choices; ValueError if the paper draws none."""
        draw = part_of(self.statement.paper, "drawing")
        if draw is None:
            raise checks.reject("statement", "be of a paper that declares how settings are drawn", self.statement.id)
        assumed = tuple(
            dict.fromkeys(assumption for check in self.checks for assumption in self.statement.assumed(check))
        )
        return draw(choose, level=self.level, assumed=assumed, outside=self.outside)


@dataclass(frozen=True)
class Example:
    """A setting that was drawn, and the results of the checks there.

    Attributes
    ----------
    name : str
        Name of the setting.
    choices : dict
        Name -> value, from which `replay` makes the setting again.
    shares : dict
        For each check whose assumptions hold: the error as a share of the tolerance. The check fails above one.
    margins : dict
        For each assumption of these checks: the margin, one at its border and larger inside.
    """

    name: str
    choices: Mapping[str, Any]
    shares: Mapping[str, float]
    margins: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The largest share of all checks."""
        return max(self.shares.values())

    @property
    def violates(self) -> bool:
        """True if a check fails there."""
        return self.worst > 1


def share(row: Row) -> float:
    """The error as a share of the tolerance: the statement fails above one."""
    if judge(row.error, row.tolerance) is Verdict.FAILS:
        return math.inf if row.tolerance == 0 or not math.isfinite(row.error) else row.error / row.tolerance
    return 0.0 if row.tolerance == 0 else row.error / row.tolerance


def rows_at(asked: Question, setting: Any, *, seed: int) -> list[Row]:
    """The rows of the checks whose assumptions hold at a setting; ``asked.outside`` must be broken, if there is one."""
    runs = audit.Simulations(setting, seed=seed)
    rows = []
    for check in asked.checks:
        outside = broken(asked.statement.margins(setting, check, asked.level))
        if outside == ([] if asked.outside is None else [asked.outside.text]):
            rows.append(audit.measure(asked.statement, check, asked.level, runs, None))
    return rows


def example(asked: Question, choose: Choose, *, seed: int) -> Example | None:
    """The setting of the choices, with the shares of its checks; None if the assumptions of no check hold there."""
    setting = asked.setting(choose)
    rows = rows_at(asked, setting, seed=seed)
    if not rows:
        return None
    margins = {text: float(margin) for row in rows for text, margin in row.margins.items()}
    return Example(setting.name, dict(choose.made), {row.check: share(row) for row in rows}, margins)


@dataclass
class Tried:
    """The examples of a block, and the counts of other settings that it drew.

    Attributes
    ----------
    seed : int
        Seed of the simulations.
    examples : list of Example
        As drawn, before one is made simpler.
    rejected : int
        Number of settings outside.
    stopped : int
        Number of settings that could not be made or followed, or at which a check has nothing to compare.
    why : str
        The error of the first of these.
    unreached : int
        Number of settings whose simulation ends before the time that the claim speaks of.
    simplest : Example, optional
        The simplest example that violates the statement.
    """

    seed: int
    examples: list[Example] = field(default_factory=list)
    rejected: int = 0
    stopped: int = 0
    why: str = ""
    unreached: int = 0
    simplest: Example | None = None


def draw_block(asked: Question, *, seed: int, number: int, size: int = BLOCK, simpler: bool = True) -> Tried:
    """Up to ``size`` examples by hypothesis, which stops at the first violation.

    With ``simpler``, hypothesis then makes the violation simpler.
    """
    from hypothesis import HealthCheck, Phase, assume, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from hypothesis.errors import Unsatisfiable

    from yzflow.fuzzing import provider

    drawn, sgd_seed = np.random.SeedSequence([seed, number]).generate_state(2)
    block = Tried(seed=int(sgd_seed))

    def draw_example(data: Any) -> None:
        choose = Drawn(data.draw)
        try:
            tried = example(asked, choose, seed=block.seed)
        except NotReached:
            block.unreached += block.simplest is None
            assume(False)
            return
        except _TOO_MUCH as error:
            block.stopped += block.simplest is None
            block.why = block.why or told(error)
            assume(False)
            return
        if tried is None:
            block.rejected += block.simplest is None
            assume(False)
            return
        if block.simplest is None:
            block.examples.append(tried)
        if tried.violates:
            block.simplest = tried
            raise AssertionError

    test = seeded(int(drawn))(
        settings(
            max_examples=size,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink) if simpler else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            backend=provider.NAME,
        )(given(st.data())(draw_example))
    )
    try:
        test()
    except Unsatisfiable:  # no setting was inside
        pass
    except Exception:  # the violation
        if block.simplest is None:
            raise
    return block


def tried(configuration: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Run of a sweep: a block as bytes of JSON, padded to one length, since a sweep holds numbers alone."""
    asked = asked_for(configuration["statement"], configuration["level"], configuration["outside"])
    text = json.dumps(
        asdict(draw_block(asked, seed=seed, number=configuration["block"], size=configuration["size"]))
    ).encode()
    if len(text) > _LENGTH:
        raise checks.reject("choices", f"take at most {_LENGTH} characters in a block", len(text))
    return {"text": np.frombuffer(text.ljust(_LENGTH), dtype=np.uint8)}


def block_of(text: np.ndarray) -> Tried:
    """The block from the bytes of `tried`."""
    kept = json.loads(bytes(np.asarray(text, dtype=np.uint8)).decode())
    simplest = kept.pop("simplest")
    examples = [Example(**entry) for entry in kept.pop("examples")]
    return Tried(**kept, examples=examples, simplest=None if simplest is None else Example(**simplest))


def asked_of(statement: Statement, level: str | None, outside: str | None) -> list[Question]:
    """The questions of a campaign: one for each level, or for the given level only."""
    words = None if outside is None else checks.instance("outside", outside, str)
    return [
        Question(statement, name, None if words is None else assumption(statement, name, words))
        for name in levels(statement, level)
    ]


def asked_for(statement: str, level: str, outside: str) -> Question:
    """The question of a configuration of a sweep."""
    entry = find_statement.find(statement, argument="statement")
    return Question(entry, level, assumption(entry, level, outside) if outside else None)


def assumption(statement: Statement, level: str, words: str) -> Assumption:
    """The assumption of a statement at a level whose text begins with these words.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    of_all = {entry.text: entry for check in statement.checks for entry in statement.assumed(check)}
    known = [entry for entry in of_all.values() if not entry.levels or level in entry.levels]
    matches = [entry for entry in known if entry.text.startswith(words)]
    if len(matches) != 1:
        texts = "; ".join(entry.text for entry in known) or "no assumption"
        rule = f"begin the text of one of {texts}, in the {level}"
        raise checks.reject("outside", rule, repr(words))
    return matches[0]


def levels(statement: Statement, wanted: str | None) -> Sequence[str]:
    """Levels at which checks of the statement should hold.

    Raises
    ------
    ValueError
        If there is none, or ``wanted`` is none of them.
    """
    known = tuple(dict.fromkeys(level for check in statement.checks for level in check.expected))
    if not known:
        raise checks.reject("statement", "have a check that should hold at some level", statement.id)
    return known if wanted is None else (checks.one_of("level", wanted, known),)
