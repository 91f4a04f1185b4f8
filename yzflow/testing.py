"""Tests that hold for the parts of every paper, ours or another's.

In a test file of the paper's distribution:

>>> import pytest
>>> import yzflow as yz
>>> from yzflow.testing import check_paper
>>> PAPER = next(iter(yz.papers().values()))
>>> @pytest.mark.parametrize("case", check_paper(PAPER))
... def test_paper(case):
...     case()
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics import DivergenceError, IntegrationError
from dynamics.support import checks, distributions
from theory.statements import Check, SettingLike, Statement
from theory.symbolic import Derivation, part
from yzflow.paper import Paper, papers

if TYPE_CHECKING:
    from yzflow.audits.report import AuditReport

__all__ = ["GRAMMAR", "HOSTILE", "Case", "cases", "check_paper"]

# The start of an error about an argument.
GRAMMAR = re.compile(r"`[\w.\[\]]+` must .+", re.DOTALL)
_IN_ITSELF: list[Any] = []
_IN_ITSELF.append(_IN_ITSELF)
# Name -> a value that no argument expects.
HOSTILE: dict[str, Any] = {
    "None": None,
    "text": "x",
    "empty text": "",
    "bytes": b"",
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "nan": np.nan,
    "inf": np.inf,
    "10**30": 10**30,
    "-10**30": -(10**30),
    "1e300": 1e300,
    "1e-300": 1e-300,
    "True": True,
    "empty list": [],
    "list of a list": [[]],
    "ragged list": [[1], [1, 2]],
    "list of None": [None],
    "list of text": ["x"],
    "empty dict": {},
    "empty set": set(),
    "object": object(),
    "masked array": np.ma.array([1.0, 2.0], mask=[True, False]),
    "object array": np.array([None, {}], dtype=object),
    "complex": 1j,
    "complex array": np.array([1j]),
    "int8": np.int8(1),
    "int8 array": np.array([1, 0], dtype=np.int8),
    "uint64": np.array([2**64 - 1], dtype=np.uint64),
    "empty array": np.empty(0),
    "0-d array": np.array(0.5),
    "3-d array": np.zeros((2, 1, 3)),
    "array of nan": np.full((2, 2), np.nan),
    "array of text": np.array(["a"]),
    "timedelta64": np.timedelta64(5),  # an integer to `isinstance`
    "datetime64": np.datetime64(5, "ns"),  # one by `item`
    "array of timedelta64": np.array([1, 2], dtype="m8[s]"),
    "set": {1},
    "recursive list": _IN_ITSELF,
    "text of two that look alike": "full\u200b",
    "text with a blank": "full ",
    "class": int,
    "function": len,
    "folder": os.curdir,
}


@dataclass(frozen=True)
class Case:
    """A test of a part of a paper.

    Attributes
    ----------
    name : str
    run : callable
        Raises AssertionError, with a reason, if the part is wrong.
    """

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        self.run()


def check_paper(
    paper: Paper,
    *,
    mistakes: Mapping[str, tuple[Callable[..., Derivation], Mapping[str, Any], str]] | None = None,
    calls: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] | None = None,
) -> list[Any]:
    """Cases for ``pytest.mark.parametrize``, a call each; see `cases`.

    Parameters
    ----------
    paper : Paper
        An installed or registered paper.
    mistakes : mapping, optional
        The mistakes of a paper that keeps them with its tests. Default: the paper's ``mistakes``.
    calls : mapping, optional
        Name -> (function, valid arguments) of the paper's public functions. Each argument in turn gets values that it
        does not expect. The call may then give a result, or a ``ValueError`` that names the argument, and nothing else.

    Raises
    ------
    ValueError
        If ``paper`` is no Paper.
    """
    import pytest  # only this function needs it

    return [pytest.param(case, id=case.name) for case in cases(paper, mistakes=mistakes, calls=calls)]


def cases(
    paper: Paper,
    *,
    mistakes: Mapping[str, tuple[Callable[..., Derivation], Mapping[str, Any], str]] | None = None,
    calls: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] | None = None,
) -> list[Case]:
    """Tests of a paper, as `check_paper` gives them to pytest, for other callers.

    The paper is in the table under its own name. Each proof holds, has a scope and refutes a mistake. In a quick audit,
    the checks that should hold do, somewhere inside the assumptions. Each page and figure is drawn, and pages ask for
    nothing on a network. Levels, tasks, options, sliders and questions belong to the paper. Signatures have types.
    """
    checks.instance("paper", paper, Paper)
    known = mistakes if mistakes is not None else paper.mistakes

    @functools.cache
    def report() -> AuditReport:
        from yzflow.audits.audit import audit

        return audit(paper, quick=True)

    tests = [
        Case("in the table", functools.partial(_in_the_table, paper)),
        Case("settings", functools.partial(_settings, paper)),
        Case("signatures", functools.partial(_signatures, paper)),
        *_of_proofs(paper, known),
        *_of_statements(paper, report),
        *_of_parts(paper),
    ]
    for name, (function, arguments) in (calls or {}).items():
        tests.append(Case(f"hostile calls: {name}", functools.partial(_hostile, name, function, arguments)))
    return tests


def _in_the_table(paper: Paper) -> None:
    from yzflow.audits.find_statement import find

    known = papers().get(paper.slug)
    assert known is not None and known.name == paper.name, f"{paper} is not in the table"
    for statement in paper.statements:
        assert find(statement.id) == statement, statement.id
        assert statement.title and statement.text and statement.printed, f"{statement.id} has no words"
        rests = statement.proofs or statement.checks or statement.argued or statement.not_examined
        assert rests, f"{statement.id} rests on nothing, not even on a reason why it was not examined"
        for label in statement.in_words:
            assert label.prose, f"a label of {statement.id} has no scope"


def _settings(paper: Paper) -> None:
    if paper.settings is None:
        assert not any(one.checks for one in paper.statements), "there are checks, and no `settings` to run them on"
        return
    for quick in (True, False):
        made = paper.settings(quick=quick)
        names = [setting.name for setting in made]
        assert names and len(set(names)) == len(names), f"settings must have names of their own, but these are {names}"
    for statement in paper.statements:
        margins = statement.margins(made[0])
        unknown = [text for text, margin in margins.items() if math.isnan(margin)]
        assert not unknown, f"margins of {statement.id} are not numbers: {', '.join(unknown)}"
    assert _refuses_a_level(made[0]), "a setting must refuse a level that the paper has not, with a ValueError"


def _refuses_a_level(setting: SettingLike) -> bool:
    """True if a setting refuses an unknown level, as it should."""
    try:
        setting.simulate("no such level", seed=0)
    except ValueError:
        return True
    return False


def _of_proofs(paper: Paper, mistakes: Mapping[str, tuple[Any, Mapping[str, Any], str]]) -> Iterator[Case]:
    for name, derive in _proofs(paper).items():
        yield Case(f"proof: {name}", functools.partial(_proof, derive))
    for name, (derive, claims, start) in mistakes.items():
        yield Case(f"mistake: {name}", functools.partial(_mistake, derive, claims, start))
    if _proofs(paper):
        yield Case("every proof has a mistake", functools.partial(_all_have_mistakes, paper, mistakes))


def _proofs(paper: Paper) -> dict[str, Callable[..., Derivation]]:
    known = dict(paper.proofs)
    for statement in paper.statements:
        for derive in statement.proofs:
            if derive not in known.values():
                known[f"{statement.number}: {getattr(derive, '__name__', 'derive')}"] = derive
    return known


def _proof(derive: Callable[..., Derivation]) -> None:
    derivation = derive()
    assert derivation.statement and derivation.steps and derivation.scope, "it must have a name, steps and a scope"
    assert derivation.vanishing or derivation.signed, "nothing decides it"
    assert derivation.label.failures == (), f"these do not hold: {derivation.label.failures}"


def _mistake(derive: Callable[..., Derivation], claims: Mapping[str, Any], start: str) -> None:
    try:
        # Decide only the entries that the mistake belongs to: all of them would take long and say less.
        failures = part(derive, start)(**claims).failures()
    except ValueError as error:  # no expression begins so
        raise AssertionError(str(error)) from error
    assert failures, "the wrong claim is not refuted"


def _all_have_mistakes(paper: Paper, mistakes: Mapping[str, tuple[Any, Mapping[str, Any], str]]) -> None:
    with_one = [derive for derive, _, _ in mistakes.values()]
    without = [name for name, derive in _proofs(paper).items() if derive not in with_one]
    assert not without, f"nothing shows that these proofs can fail: {', '.join(without)}"


def _of_statements(paper: Paper, report: Callable[[], AuditReport]) -> Iterator[Case]:
    for statement in paper.statements:
        if statement.checks:
            yield Case(f"checks: {statement.number}", functools.partial(_measured, statement, report))
        yield Case(f"page: {statement.number}", functools.partial(_page, statement, report))


def _measured(statement: Statement, report: Callable[[], AuditReport]) -> None:
    rows = [row for row in report().table if row.statement == statement.id]
    wrong = [f"{row.check} in the {row.level} at {row.setting}: {row.error:.3g}" for row in rows if row.alarming]
    assert not wrong, f"what should hold does not: {'; '.join(wrong)}"
    for check in statement.checks:
        for level in check.expected:
            _asked_somewhere(check, level, rows)


def _asked_somewhere(check: Check, level: str, rows: list[Any]) -> None:
    asked = [row for row in rows if row.check == check.name and row.level == level and row.expected]
    assert asked, f"{check.name} should hold in the {level}, but no quick setting is inside its assumptions"


def _page(statement: Statement, report: Callable[[], AuditReport]) -> None:
    from html import escape

    from yzflow.audits.check import StatementVerdict
    from yzflow.audits.report import AuditReport
    from yzflow.pages.statement import html

    whole = report()
    rows = [row for row in whole.table if row.statement == statement.id]
    proofs = {name: labels for name, labels in whole.labels_of_proofs.items() if name == statement.id}
    text = html(StatementVerdict(statement, AuditReport(rows, (statement,), proofs), quick=True, seed=0))
    assert escape(statement.title) in text, "the page has not the statement's title"
    loads = re.findall(r"src\s*=\s*[\"']?(?:https?:)?//[^\s\"'>]+|@import\s|fetch\(", text)
    assert not loads, f"the page asks for something on a network: {loads}"


def _of_parts(paper: Paper) -> Iterator[Case]:
    for entry in paper.figures:
        if entry.compute is not None:
            yield Case(f"figure: {entry.name}", functools.partial(_figure, entry))
    if paper.survival is not None:
        yield Case("survival", functools.partial(_survival, paper))
    if distributions.installed(distributions.EVIDENCE) and paper.enclosing is not None:
        yield Case("enclosing", functools.partial(_levels_are_known, paper, paper.enclosing.levels))
    if paper.views is not None:
        yield Case("views", functools.partial(_views, paper))
    if paper.questions:
        yield Case("questions", functools.partial(_questions, paper))
    if paper.tasks:
        yield Case("tasks", functools.partial(_tasks, paper))


def _figure(entry: Any) -> None:
    from matplotlib import pyplot

    from yzflow.figures.registry import Effort

    data = entry.data(Effort(quick=True))
    figure = entry.draw(data)
    try:
        assert figure.axes, "the figure is empty"
        assert entry.caption(data).strip(), "the figure has no caption"
        figure.canvas.draw()
    finally:
        pyplot.close(figure)


def _levels_are_known(paper: Paper, levels: tuple[str, ...]) -> None:
    unknown = [level for level in levels if level not in paper.levels]
    assert not unknown, f"{paper.name} has no levels {unknown}"


def _survival(paper: Paper) -> None:
    room = paper.survival
    assert room is not None
    _levels_are_known(paper, tuple(room.levels.values()))
    names = [option.name for option in room.options]
    assert names and len(set(names)) == len(names), f"options must have names of their own, but these are {names}"
    setting = room.settings(quick=True)[0]
    for option in room.options:
        assert option.text, f"{option.name} does not say what is changed"
        unknown = [level for level in option.levels if level not in room.levels]
        assert not unknown, f"{option.name} is of levels that the table has not: {unknown}"
        assert option.adapted(setting).t_end > 0, f"{option.name} has settings without an end"
    # A level that refuses an option is a cell without a number; the first option has one.
    first = room.options[0]
    run = first.simulate(setting, first.levels[0], 0)
    assert run.dataset.sizes.get("time", 0) > 1, f"{first.name} records nothing in the {first.levels[0]}"


def _views(paper: Paper) -> None:
    from importlib import resources

    from yzflow.pages import live

    numbers = {statement.number: statement for statement in paper.statements}
    views = paper.views
    assert views is not None
    for package, name in views.scripts:
        assert resources.files(package).joinpath(name).is_file(), f"{package} has no {name}"
    for number, view in views.views.items():
        assert number in numbers, f"there is no statement {number}"
        assert views.starts.get(view, views.starts.get(None)), f"nothing says what the sliders of {view} start from"
        text = live.scripts(numbers[number], views)
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        assert data is not None
        json.loads(data[1].replace("\\u003c", "<"))


def _questions(paper: Paper) -> None:
    numbers = {statement.number for statement in paper.statements}
    for number, (asked, answer) in paper.questions.items():
        assert number in numbers, f"there is no statement {number}"
        assert asked.strip() and answer.strip(), number


def _tasks(paper: Paper) -> None:
    from yzflow.sweeps.tasks import named

    for task in paper.tasks:
        known = [entry for entry in named().values() if entry.run is task.run]
        assert known, f"the task {task.name} is not found by its name"


def _signatures(paper: Paper) -> None:
    functions: dict[str, Any] = {"settings": paper.settings, "own": paper.own}
    functions |= {f"proofs: {name}": derive for name, derive in paper.proofs.items()}
    functions |= {f"figures: {entry.name}": inspect.unwrap(entry.draw) for entry in paper.figures}
    functions |= {f"tasks: {task.name}": task.run for task in paper.tasks}
    if paper.settings is not None:
        functions["simulate"] = type(paper.settings(quick=True)[0]).simulate
    for name, function in functions.items():
        if inspect.isfunction(function):
            without = [
                parameter.name
                for parameter in inspect.signature(function).parameters.values()
                if parameter.name != "self" and parameter.annotation is parameter.empty
            ]
            assert not without, f"{name} does not say of which types {', '.join(without)} are"
            assert inspect.signature(function).return_annotation is not inspect.Signature.empty, f"{name}: no result"


def _hostile(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    complaints = []
    for argument in arguments:
        for label, value in HOSTILE.items():
            if wrong := _complaint(function, {**arguments, argument: value}):
                complaints.append(f"{name}({argument} = {label}): {wrong}")
    assert not complaints, "\n".join(complaints)


def _complaint(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**arguments)
    except ValueError as error:
        return "" if GRAMMAR.match(str(error)) else f"ValueError: {error}"
    except (IntegrationError, DivergenceError):
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
