"""The theorem audit: the register's statements, by their proofs and their checks against simulations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dynamics import DivergenceError, IntegrationError
from dynamics.support import checks, distributions, files
from dynamics.support.progress import Progress
from theory.statements import Check, Clause, SettingLike, Statement
from theory.trust import Label, Trust
from yzflow.audits.enclosing import Decided, Enclose, FlowsInBalls, flows_of
from yzflow.audits.find_statement import choose
from yzflow.audits.outcomes import Absent
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, Verdict, judge
from yzflow.paper import Paper
from yzflow.parts import part_of
from yzflow.sweeps.runs import told

__all__ = ["AuditReport", "Enclose", "Simulations", "audit", "measure", "prove"]


class Simulations:
    """The simulations of one setting, each run on first use, or taken from ``made``.

    They implement `theory.statements.Runs`."""

    def __init__(self, setting: SettingLike, *, seed: int, made: Mapping[str, Any] | None = None):
        self.setting = setting
        self._seed = seed
        self._made: dict[str, Any] = dict(made or {})
        self._refused: dict[str, Exception] = {}

    def trajectory(self, level: str) -> Any:
        """The simulation at a level; an error that ended it is kept and raised again."""
        if level in self._refused:
            raise self._refused[level]
        if level not in self._made:
            try:
                self._made[level] = self.setting.simulate(level, seed=self._seed)
            except (ValueError, IntegrationError, DivergenceError) as error:
                self._refused[level] = error
                raise
        return self._made[level]

    def refused(self, error: Exception) -> bool:
        """True if an error was raised by a simulation, false if a measure raised it."""
        return any(error is refusal for refusal in self._refused.values())

    def last(self, level: str) -> float:
        """Last time of the simulation at a level; zero where nothing was simulated."""
        return float(self._made[level].dataset["time"][-1]) if level in self._made else 0.0

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of the fields from outside that were followed."""
        kept = (getattr(run, "parameters", {}).get("field") for run in self._made.values())
        return tuple(sorted({origin["module"] for origin in kept if origin}))

    def seeds(self, level: str) -> tuple[int, ...]:
        """The seeds of the simulation at a level; none where nothing was drawn, or nothing simulated."""
        call = getattr(self._made.get(level), "call", None)
        return (self._seed,) if call is not None and "seed" in call.arguments else ()


def audit(
    only: Sequence[str | Statement | Paper] | Statement | Paper | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    enclose: Enclose | None = None,
    progress: bool = False,
) -> AuditReport:
    """Prove and measure the statements of the register.

    Parameters
    ----------
    only : sequence of str, Statement or Paper, optional
        Statements by id, "<paper>: Theorem 3", by number where only one paper has it, or themselves; or all of a paper.
        Default: all of the register.
    quick : bool
        Run only some of the settings.
    seed : int
        Seed of the SGD runs.
    enclose : Enclose, optional
        Decide claims about the flows for every time, in balls. Default: they are measured at output times only.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If ``only`` names a statement that is not in the register, or that several papers have.
    ImportError
        If ``enclose`` is given and yzflow-enclose is not installed.
    """
    chosen = choose(only)
    quick, seed = checks.flag("quick", quick), checks.integer("seed", seed, minimum=0)
    progress = checks.flag("progress", progress)
    if enclose is not None:
        checks.instance("enclose", enclose, Enclose)
        if enclose.folder is not None:
            enclose = replace(enclose, folder=files.absolute("folder", enclose.folder, folder=True))
    proofs: dict[str, tuple[Label, ...]] = {}
    table: list[Row] = []
    lacking: dict[str, str] = {}
    absent: list[Absent] = []
    simulations = {
        paper: [Simulations(setting, seed=seed) for setting in settings(paper, quick=quick)]
        for paper in dict.fromkeys(statement.paper for statement in chosen if statement.checks)
    }
    balls: dict[str, list[FlowsInBalls]] = {}
    if enclose is not None:
        enclosed_by_paper = {
            paper: flows_of(paper, [runs.setting for runs in made], enclose) for paper, made in simulations.items()
        }
        balls = {paper: flows for paper, flows in enclosed_by_paper.items() if flows is not None}
    with Progress("audit", enabled=progress) as report:
        for i, statement in enumerate(chosen):
            report.update(i / len(chosen), statement.id)
            if statement.proofs:
                proofs[statement.id] = prove(statement)
            runs_of_paper = simulations.get(statement.paper, ()) if statement.checks else ()
            for number, runs in enumerate(runs_of_paper):
                report.update((i + number / len(runs_of_paper)) / len(chosen), f"{statement.id} at {runs.setting.name}")
                flows = balls[statement.paper][number] if statement.paper in balls else None
                for check in statement.checks:
                    table += _measured(statement, check, runs, flows, lacking, absent)
    for name, why in lacking.items():
        warnings.warn(f"{name} is not measured: {why}", UserWarning, stacklevel=2)
    enclosed = [flow for tasks in balls.values() for flows in tasks for flow in flows.flows.values()]
    call = {
        "only": None if only is None else [statement.id for statement in chosen],
        "quick": quick,
        "seed": seed,
        "enclose": _kept(enclose),
    }
    modules = {module for runs_of_paper in simulations.values() for runs in runs_of_paper for module in runs.modules}
    sizes = {
        paper: (len(runs_of_paper), len(settings(paper, quick=False)) if quick else len(runs_of_paper))
        for paper, runs_of_paper in simulations.items()
    }
    found = (table, tuple(chosen), proofs, tuple(enclosed), call, tuple(sorted(modules)))
    return AuditReport(*found, absent=tuple(absent), sizes=sizes)


def settings(paper: str, *, quick: bool) -> list[SettingLike]:
    """Settings for the checks of a paper; none if the paper has no settings, or is unknown."""
    made = part_of(paper, "settings")
    return [] if made is None else list(made(quick=quick))


def prove(statement: Statement) -> tuple[Label, ...]:
    """A label for each clause that has a proof; proofs that were decided before are not decided again."""
    return tuple(_proved(statement, clause) for clause in statement.clauses if clause.prove is not None)


def _proved(statement: Statement, clause: Clause) -> Label:
    """The label of a clause's proof. An error in a proof is a failure of that proof, and the audit goes on."""
    try:
        return statement.proved(clause)
    except MemoryError:
        raise
    except Exception as error:  # code of other people can raise anything
        return Label(
            Trust.NOT_EXAMINED,
            prose=("the proof ended in an error",),
            failures=(f"the proof: {told(error)}",),
            clause=clause.name,
        )


def _kept(enclose: Enclose | None) -> dict[str, object] | None:
    """The argument ``enclose`` for a file, without the folder of certificates, which changes no result."""
    return None if enclose is None else {**asdict(enclose), "folder": None}


def measure(statement: Statement, check: Check, level: str, runs: Simulations, flows: FlowsInBalls | None) -> Row:
    """One cell of the audit: a check of a statement at a level, on the simulations of a setting."""
    margins = statement.margins(runs.setting, check, level)
    inside = all(margin >= 1 for margin in margins.values())
    printed = _error(check, check.printed(runs, level))
    corrected = None if check.corrected is None else _error(check, check.corrected(runs, level))
    error = printed if corrected is None else corrected
    decided = flows.decide(check, level) if flows is not None and level in flows.levels else None
    return Row(
        statement.id,
        check.name,
        level,
        runs.setting.name,
        inside,
        margins,
        printed,
        corrected,
        check.tolerance,
        expected=inside and level in check.expected,
        label=_label(statement, check, level, runs, error=error, decided=decided),
        decided=decided,
        refuted=decided is not None and decided.refuted(runs.last(level)),
    )


def _measured(
    statement: Statement,
    check: Check,
    runs: Simulations,
    flows: FlowsInBalls | None,
    lacking: dict[str, str],
    absent: list[Absent],
) -> list[Row]:
    """The rows of a check on one setting.

    None, with a reason in ``lacking``, where a distribution is not installed. A level that the setting refuses, or
    whose training stops, goes into ``absent``. Any other error names the statement and the setting.
    """
    rows = []
    for level in check.levels:
        try:
            rows.append(measure(statement, check, level, runs, flows))
        except distributions.Missing as error:
            lacking[f"{statement.id}, {check.name!r}"] = str(error)
            return []
        except Exception as error:
            if not runs.refused(error):
                with suppress(AttributeError):  # of Python 3.10
                    error.add_note(f"in {statement.id}, {check.name!r} in the {level} at {runs.setting.name}")
                raise
            told = Absent.of(check, level, error, ran=False)
            absent.append(replace(told, setting=runs.setting.name, statement=statement.id))
    return rows


def _error(check: Check, measured: Any) -> float:
    """The number that a measure returned, or NaN. Negative numbers are refused: they would pass every tolerance."""
    number = np.asarray(measured)
    if number.shape != () or number.dtype.kind not in "fiu" or number < 0:
        of = f"measure of {check.name!r}"
        raise checks.reject(of, "return one number, zero or more", checks.brief(measured))
    return float(number)


def _label(
    statement: Statement, check: Check, level: str, runs: Simulations, *, error: float, decided: Decided | None
) -> Label:
    """The label of one cell: from balls if they decide the claim over the whole run, else from the measured error."""
    where: dict[str, object] = {"level": level, "setting": runs.setting.name}
    wrong = (f"{check.name} in the {level}",)
    if decided is not None and decided.covers(runs.last(level)):
        false = decided.refuted(runs.last(level))
        where["every t up to"] = decided.reached
        return statement.enclosed(check, failures=wrong if false else (), **where)
    where["error"] = float(error)
    if runs.seeds(level):
        where["seeds"] = runs.seeds(level)
    fails = judge(error, check.tolerance) is Verdict.FAILS
    return statement.measured(check, failures=wrong if fails else (), **where)
