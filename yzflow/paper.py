"""The table of papers for the engines: built-in papers, installed ones and those of a notebook are alike.

>>> import yzflow as yz
>>> all(paper.statements for paper in yz.papers().values())
True
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dynamics.support import checks, distributions
from theory import papers as table
from yzflow.parts import paper_of

if TYPE_CHECKING:
    from theory.statements import Enclosing, SettingLike, Source, Statement
    from theory.symbolic import Derivation
    from yzflow.audits.campaign_table import CampaignRow
    from yzflow.audits.case import OwnCase
    from yzflow.audits.options import Room
    from yzflow.figures.registry import Entry
    from yzflow.pages.explorer.registry import Panel
    from yzflow.pages.live import Views
    from yzflow.sweeps.runs import Task

__all__ = ["Later", "Paper", "later", "paper_of", "papers", "register"]

# Parts that another package can add to; see `Paper.adds_to`.
_JOINED = ("statements", "proofs", "mistakes", "figures", "tasks", "views", "panels", "questions", "tried")
_SLUG = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Later:
    """A part of a paper that is imported on first use; see `later`."""

    reference: str

    def __post_init__(self) -> None:
        checks.instance("reference", self.reference, str)
        if not re.fullmatch(r"[\w.]+:\w+", self.reference):
            raise checks.reject("reference", "be 'module:name'", repr(self.reference))

    def load(self) -> Any:
        """The attribute of the module; if a package has none, the attributes of all its modules.

        Tuples of several modules are joined; other attributes become a mapping by the modules' names.
        """
        where, _, name = self.reference.partition(":")
        module = distributions.bring(where)
        if hasattr(module, name) or not hasattr(module, "__path__"):
            return getattr(module, name)
        names = sorted(info.name for info in pkgutil.iter_modules(module.__path__) if not info.name.startswith("_"))
        attributes = {child: getattr(importlib.import_module(f"{where}.{child}"), name, None) for child in names}
        present = {child: attribute for child, attribute in attributes.items() if attribute is not None}
        if present and all(isinstance(attribute, tuple) for attribute in present.values()):
            return tuple(entry for attribute in present.values() for entry in attribute)
        return present


def later(reference: str) -> Any:
    """A part of a paper that is imported on first use, so that a list of papers loads no figures.

    Parameters
    ----------
    reference : str
        "module:name". For a package without the name: this attribute of each of its modules, joined.

    Raises
    ------
    ValueError
        If it is no such reference.
    """
    return Later(reference)


@dataclass(frozen=True, eq=False, repr=False)
class Paper:
    """A paper: its statements, the settings of their checks, and its figures, tasks and pages.

    Attributes
    ----------
    name : str
        The name before a statement's number, as in "My paper: Theorem 1".
    slug : str
        For files and the command line: lower-case letters, digits, "_" and "-".
    reference : str
        Authors, year, and a DOI or another public number.
    levels : tuple of str
        Levels of fidelity, from formulas to training as users do it.
    statements : tuple of theory.statements.Statement
    settings : callable, optional
        (quick=..) -> the settings at which statements are checked; with ``quick``, only some of them. A setting has
        ``name`` and ``simulate(level, seed=..)``, which returns a `dynamics.Trajectory` or a `dynamics.Run`.
    columns : mapping
        The levels under "theory", "true gradient" and "SGD" in a verdict, each once. Default: all under "theory".
    source : theory.statements.Source
        The text of the paper that we read, if not its print.
    proofs : mapping
        Name -> function that derives (`theory.symbolic.Derivation`), with every claim as a keyword argument.
    mistakes : mapping
        Name -> (function of ``proofs``, wrong claims by keyword, start of the names of the expressions that must fail).
    figures : tuple of yzflow.figures.registry.Entry
    tasks : tuple of yzflow.sweeps.runs.Task
        Of sweeps.
    survival : yzflow.audits.options.Room, optional
        Rows of the survival table.
    enclosing : theory.statements.Enclosing, optional
        How settings are enclosed in balls.
    own : callable, optional
        ``(data=.., eta_y=.., ..)`` -> `yzflow.audits.case.OwnCase`, for a reader's own data and training.
    watched : callable, optional
        Recording -> `yzflow.audits.places.Place`, where a recorded training stands, for `yzflow.watch`.
    rivals : tuple of yzflow_watch.rivals.Rival
        Predictions of the theory for a recorded training.
    drawing : callable, optional
        (choose, level=.., assumed=.., outside=..) -> a setting inside the assumptions, by choices of a
        `yzflow.fuzzing.choosing.Choose`, for `yzflow.fuzz`.
    tried : tuple of yzflow.audits.campaign_table.CampaignRow
        Campaigns of `yzflow.fuzz`, as `yzflow fuzz --table` writes them.
    views : yzflow.pages.live.Views, optional
        Plots with sliders on the statements' pages.
    panels : tuple of yzflow.pages.explorer.registry.Panel
        Of the explorer.
    questions : mapping
        Number of a statement -> (question for students, answer).
    not_examined : str
        Parts of the paper that the statements leave out, and why.
    adds_to : str
        The name of another paper, to which this paper's parts are added under that name: statements, proofs, mistakes,
        figures, tasks, views, panels, questions and campaigns. Default: none.

    Each part may be a `later` reference.

    Raises
    ------
    ValueError
        If a name is invalid, or statements, levels and columns do not fit together. A `later` part is checked on first
        use.
    """

    name: str
    slug: str
    reference: str
    # All by a factory: a plain default would be an attribute of the class, and `__getattr__` would not be asked for a
    # part that is still to be imported.
    levels: tuple[str, ...] = field(default_factory=tuple)
    statements: tuple[Statement, ...] = field(default_factory=tuple)
    settings: Callable[..., Sequence[SettingLike]] | None = field(default_factory=lambda: None)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: Source = field(default_factory=lambda: later("theory.statements:PRINT"))
    proofs: Mapping[str, Callable[..., Derivation]] = field(default_factory=dict)
    mistakes: Mapping[str, tuple[Callable[..., Derivation], Mapping[str, Any], str]] = field(default_factory=dict)
    figures: tuple[Entry, ...] = field(default_factory=tuple)
    tasks: tuple[Task, ...] = field(default_factory=tuple)
    survival: Room | None = field(default_factory=lambda: None)
    enclosing: Enclosing | None = field(default_factory=lambda: None)
    own: Callable[..., OwnCase] | None = field(default_factory=lambda: None)
    watched: Callable[..., Any] | None = field(default_factory=lambda: None)
    rivals: tuple[Any, ...] = field(default_factory=tuple)
    drawing: Callable[..., SettingLike] | None = field(default_factory=lambda: None)
    tried: tuple[CampaignRow, ...] = field(default_factory=tuple)
    views: Views | None = field(default_factory=lambda: None)
    panels: tuple[Panel, ...] = field(default_factory=tuple)
    questions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    not_examined: str = field(default_factory=str)
    adds_to: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "slug", "reference"):
            if not checks.instance(name, getattr(self, name), str).strip():
                raise checks.reject(name, "not be empty", repr(getattr(self, name)))
        if ":" in self.name:
            raise checks.reject("name", "have no colon, which stands before a statement's number", repr(self.name))
        checks.instance("adds_to", self.adds_to, str)
        if not _SLUG.fullmatch(self.slug):
            raise checks.reject("slug", "be of lower-case letters, digits, '_' and '-'", repr(self.slug))
        # A dataclass keeps its parts as attributes. Parts that are imported later or joined with those of other
        # packages must be missing there, so that `__getattr__` is asked for them.
        given = {name: part for name, part in vars(self).items() if not isinstance(part, Later)}
        object.__setattr__(self, "_later", {name: part for name, part in vars(self).items() if name not in given})
        object.__setattr__(self, "_joined", {name: part for name, part in given.items() if name in _JOINED})
        for name in (*self._later, *self._joined):
            del self.__dict__[name]
        for name, part in given.items():
            if name != "statements" or "levels" in given:
                self._checked(name, part)

    def __getattr__(self, name: str) -> Any:
        kept = self.__dict__.get("_joined", {}) if name in _JOINED else self.__dict__
        if name not in kept:
            if name not in self.__dict__.get("_later", {}):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            kept[name] = self._checked(name, self._later[name].load())
        return table.joined(self, name, kept[name]) if name in _JOINED else kept[name]

    @property
    def of(self) -> str:
        """The name under which its statements are found: its own, or the name in ``adds_to``."""
        return self.adds_to or self.name

    def _checked(self, name: str, part: Any) -> Any:
        if name in _KINDS:
            checks.instance(name, part, _KINDS[name])
        if name in _CHECKS:
            _CHECKS[name](self, part)
        return part

    def __repr__(self) -> str:
        return f"<Paper: {self.name} ({self.slug}), {self.reference}>"


def _check_levels(paper: Paper, levels: tuple[str, ...]) -> None:
    if len(set(levels)) < len(levels) or not all(isinstance(level, str) for level in levels):
        raise checks.reject("levels", "be names, each once", repr(levels))


def _check_statements(paper: Paper, given: tuple[Statement, ...]) -> None:
    if not given:
        return
    from theory.layout import check_statements
    from theory.statements import Statement

    for statement in given:
        checks.instance("statements", statement, Statement, rule="be Statements")
    check_statements(given, paper.of, paper.levels)


def _check_columns(paper: Paper, given: Mapping[str, tuple[str, ...]]) -> None:
    if given:
        from theory.layout import check_columns

        check_columns(given, paper.levels)


def _check_entries(paper: Paper, given: tuple[Any, ...]) -> None:
    names = [entry.name for entry in given]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"a paper must name each figure, task and panel once, but {paper.name} has {twice[0]} twice")
    _check_paper(paper, *given)


def _check_paper(paper: Paper, *given: Any) -> None:
    for entry in given:
        if getattr(entry, "paper", paper.of) != paper.of:
            raise checks.reject("paper", f"be {paper.of} in its own parts", repr(entry.paper))


def _check_function(name: str, paper: Paper, given: Any) -> None:
    if given is not None:
        checks.function(name, given)


_CHECKS: dict[str, Callable[[Paper, Any], None]] = {
    "levels": _check_levels,
    "statements": _check_statements,
    "columns": _check_columns,
    **dict.fromkeys(("figures", "tasks", "panels"), _check_entries),
    **dict.fromkeys(("survival", "views"), _check_paper),
    **{name: functools.partial(_check_function, name) for name in ("settings", "own", "watched", "drawing")},
}
_KINDS: dict[str, type] = {
    **dict.fromkeys(("levels", "statements", "figures", "tasks", "rivals", "tried", "panels"), tuple),
    **dict.fromkeys(("columns", "proofs", "mistakes", "questions"), Mapping),
    "not_examined": str,
}


def papers() -> dict[str, Paper]:
    """Slug -> paper: built-in, installed and registered papers.

    An installed distribution names its papers by entry points of the group ``yzflow.papers``. A paper that cannot be
    imported is left out, with a warning that names it; `theory.papers.left_out` has the reasons.
    """
    return table.papers()


def register(paper: Paper) -> None:
    """Make a paper known for the rest of this process, like an installed paper.

    Parameters
    ----------
    paper : Paper
        A paper that was registered before under the same name is replaced.

    Raises
    ------
    ValueError
        If it is no Paper, or has the name of another.
    """
    table.register(checks.instance("paper", paper, Paper))
