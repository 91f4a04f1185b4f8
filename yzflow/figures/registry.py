"""Entries of figures: how the data is computed, how it is drawn and what can be said of it.

Those of all papers are found here without an entry in another list, see `yzflow.Paper`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from dynamics.support import checks
from yzflow import figure_settings, parts
from yzflow.figures.notebook import shown_by_the_cell
from yzflow.figures.style import caption, save

if TYPE_CHECKING:
    from yzflow.sweeps.store import Store


@dataclass(frozen=True)
class Effort:
    """How much is computed for a figure, and where it is kept.

    Attributes
    ----------
    quick : bool
        Fewer seeds, steps, sizes or output times.
    store : path-like or Store, optional
        Where simulations are kept, so that the same figure simulates nothing when it is drawn again. Figures whose data
        takes no long simulations keep nothing.
    progress : bool
        Show progress on standard error.
    """

    quick: bool = False
    store: str | os.PathLike | Store | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        for name in ("quick", "progress"):
            object.__setattr__(self, name, checks.flag(name, getattr(self, name)))


@dataclass(frozen=True)
class Entry:
    """A figure. Call it to draw it: ``entry()``, ``entry(quick=True)``, ``entry(n_classes=5)``, ``entry(data)``.

    Attributes
    ----------
    name : str
        By which it is found in `yzflow.figures` and by ``yzflow figure``.
    paper : str
        The paper's name in the register of statements.
    draw : callable
        (data, ..) -> matplotlib Figure. Its docstring says what is shown and what agrees with the paper.
    compute : callable, optional
        (`Effort`, *, ..) -> data. Its keywords are those of `yzflow.figure_settings` that the figure takes. None: the
        data is that of runs which must be given.
    number : int or tuple of int, optional
        That of the paper's own figure, or of those that it stands for.
    claims : callable, optional
        data -> what this data shows, in sentences of the caption that would not be true of any data.
    trained_by : str
        Command that makes the runs and draws them, where those must be given; it is named when the figure is asked for.
    """

    name: str
    paper: str
    draw: Callable[..., Figure]
    compute: Callable[[Effort], Any] | None = None
    number: int | tuple[int, ...] | None = None
    claims: Callable[[Any], str] | None = None
    trained_by: str = ""

    def __post_init__(self) -> None:
        checks.attributes(self, str, "name", "paper", "trained_by")
        checks.attributes(self, Callable, "draw")
        checks.attributes(self, Callable, "compute", "claims", optional=True)
        for number in self.numbers:
            checks.integer("number", number, minimum=1)
        # The signature of this figure in the help of editors and notebooks.
        usual = inspect.signature(type(self).__call__)
        own = [one for name, one in usual.parameters.items() if name not in ("self", "arguments", "options")]
        object.__setattr__(self, "__signature__", usual.replace(parameters=[*own, *self.takes.values()]))

    def __call__(
        self,
        data: object = None,
        *arguments: Any,
        quick: bool = False,
        store: str | os.PathLike | Store | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Figure:
        """Draw ``data``, or by default what `compute` makes of the keywords of `Effort` and of a setting.

        The setting is in the keywords that the figure `takes`, such as ``n_classes=5``; the rest is for `draw`.

        Every figure takes ``style``, a style of matplotlib or settings of it, over the project's; ``labels``, a mapping
        from a text of the figure to another; and ``ax``, axes of a figure with constrained layout, in whose place all
        panels are drawn.

        In a notebook the cell shows the figure once, whether it ends with the call or gives the figure a name.

        Raises
        ------
        ValueError
            If the data must be given, and is not; or a keyword is not one of this figure, or stands beside data.
        """
        own = inspect.signature(self.draw).parameters
        takes, any_word = self.takes, any(one.kind is one.VAR_KEYWORD for one in own.values())
        for_draw = {
            name: value
            for name, value in options.items()
            if name not in takes and (any_word or name in (*own, "ax", "labels", "style"))
        }
        setting = {name: value for name, value in options.items() if name not in for_draw}
        if data is None:
            data = self.data(Effort(quick, store, progress), **setting)
        elif setting:
            name = next(iter(setting))
            raise checks.reject(name, "be left out beside `data`, which has its own", checks.brief(setting[name]))
        figure = self.draw(data, *arguments, **for_draw)
        # A part of somebody's figure is shown with the rest of it.
        return figure if options.get("ax") is not None else shown_by_the_cell(figure)

    @property
    def takes(self) -> Mapping[str, inspect.Parameter]:
        """Keywords of its setting, with their types and defaults."""
        return figure_settings.taken(self.compute)

    def data(self, effort: Effort | None = None, **setting: object) -> Any:
        """Data that is drawn by default, or at a setting in the keywords that the figure `takes`.

        Raises
        ------
        ValueError
            If the data must be given, or the figure does not take a keyword.
        """
        if self.compute is None:
            how = f"; `{self.trained_by}` trains and draws" if self.trained_by else ""
            raise checks.reject("data", f"be given to draw {self.name}{how}", "none")
        effort = Effort() if effort is None else checks.instance("effort", effort, Effort)
        return self.compute(effort, **figure_settings.complete(self.name, self.takes, setting))

    @property
    def text(self) -> str:
        """Sentences on what is shown and what agrees with the paper, whatever the data."""
        return caption(self.draw)

    def caption(self, data: Any) -> str:
        """The text, and what can be claimed of this data."""
        return self.text if self.claims is None else f"{self.text} {self.claims(data)}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the paper's own figures that it stands for."""
        if isinstance(self.number, tuple):
            return self.number
        return () if self.number is None else (self.number,)

    @property
    def printed(self) -> str:
        """Numbers of the paper's figures in words, as "Figures 3 and 10"; empty where it has none."""
        if not self.numbers:
            return ""
        *first, last = map(str, self.numbers)
        return f"Figures {', '.join(first)} and {last}" if first else f"Figure {last}"

    @property
    def title(self) -> str:
        """A heading: the paper, and the number of its figure or the name of ours."""
        return f"{self.paper}, {self.printed or self.name.replace('_', ' ')}"


@parts.of_papers
def entries() -> dict[str, Entry]:
    """Name -> entry: by paper and number those that have one, then the others by name."""
    found: dict[str, Entry] = parts.collected("figures")

    def order(entry: Entry) -> tuple:
        return (0, entry.paper, entry.numbers) if entry.numbers else (1, entry.name)

    return {entry.name: entry for entry in sorted(found.values(), key=order)}


def names(*, given: bool = False) -> list[str]:
    """Names of the figures.

    Parameters
    ----------
    given : bool
        Those that draw runs which they are given. Default: those that compute their data.
    """
    given = checks.flag("given", given)
    return [name for name, entry in entries().items() if (entry.compute is None) == given]


def draw(name: str, stem: str | os.PathLike, *arguments: object) -> list[Path]:
    """Draw the figure ``name`` of `yzflow.figures` and save it: a task for another process."""
    return save(entries()[checks.one_of("name", name, entries())](*arguments), stem)
