"""Entries of figures: how the data is computed, how it is drawn and what can be said of it.

Those of all papers are found here without an entry in another list, see `yzflow.Paper`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from dynamics.support import checks
from yzflow import parts
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
    """A figure. Call it to draw it: ``entry()``, ``entry(quick=True)``, ``entry(data)``.

    Attributes
    ----------
    name : str
        By which it is found in `yzflow.figures` and by ``yzflow figure``.
    paper : str
        The paper's name in the register of statements.
    draw : callable
        (data, ..) -> matplotlib Figure. Its docstring says what is shown and what agrees with the paper.
    compute : callable, optional
        (`Effort`) -> data. None: the data is that of runs which must be given.
    number : int, optional
        That of the paper's own figure.
    claims : callable, optional
        data -> what this data shows, in sentences of the caption that would not be true of any data.
    """

    name: str
    paper: str
    draw: Callable[..., Figure]
    compute: Callable[[Effort], Any] | None = None
    number: int | None = None
    claims: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        checks.attributes(self, str, "name", "paper")
        checks.attributes(self, Callable, "draw")
        checks.attributes(self, Callable, "compute", "claims", optional=True)
        if self.number is not None:
            checks.integer("number", self.number, minimum=1)

    def __call__(
        self,
        data: Any = None,
        *arguments: Any,
        quick: bool = False,
        store: str | os.PathLike | Store | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Figure:
        """Draw ``data``, or by default what `compute` makes of the keywords of `Effort`; the rest is for `draw`.

        Every figure takes ``style``, a style of matplotlib or settings of it, over the project's; ``labels``, a mapping
        from a text of the figure to another; and ``ax``, axes of a figure with constrained layout, in whose place all
        panels are drawn.

        In a notebook the cell shows the figure once, whether it ends with the call or gives the figure a name.

        Raises
        ------
        ValueError
            If the data must be given, and is not.
        """
        data = self.data(Effort(quick, store, progress)) if data is None else data
        figure = self.draw(data, *arguments, **options)
        # A part of somebody's figure is shown with the rest of it.
        return figure if options.get("ax") is not None else shown_by_the_cell(figure)

    def data(self, effort: Effort | None = None) -> Any:
        """Data that is drawn by default.

        Raises
        ------
        ValueError
            If the data must be given.
        """
        if self.compute is None:
            raise checks.reject("data", f"be given to draw {self.name}", "none")
        return self.compute(Effort() if effort is None else checks.instance("effort", effort, Effort))

    @property
    def text(self) -> str:
        """Sentences on what is shown and what agrees with the paper, whatever the data."""
        return caption(self.draw)

    def caption(self, data: Any) -> str:
        """The text, and what can be claimed of this data."""
        return self.text if self.claims is None else f"{self.text} {self.claims(data)}"

    @property
    def title(self) -> str:
        """A heading: the paper, and the number of its figure or the name of ours."""
        shown = self.name.replace("_", " ") if self.number is None else f"Figure {self.number}"
        return f"{self.paper}, {shown}"


@parts.of_papers
def entries() -> dict[str, Entry]:
    """Name -> entry: by paper and number those that have one, then the others by name."""
    found: dict[str, Entry] = parts.collected("figures")

    def order(entry: Entry) -> tuple:
        return (1, entry.name) if entry.number is None else (0, entry.paper, entry.number)

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


def find(name: str) -> Entry:
    """The figure that computes its data and has this number, this name, or a name with this start.

    Raises
    ------
    ValueError
        If there is no such figure, or more than one.
    """
    checks.instance("NAME", name, str, rule="be the name or the number of a figure, as text")
    known = [entries()[key] for key in names()]
    for found in (
        [entry for entry in known if name == entry.name],
        [entry for entry in known if name == str(entry.number)],
        [entry for entry in known if entry.name.startswith(name)],
    ):
        if len(found) == 1:
            return found[0]
    near = checks.nearest(name, {entry.name: (entry.name, str(entry.number or entry.name)) for entry in known})
    lists = "`yzflow figures` lists all, and `yzflow study` draws those of studies"
    rule = f"be the number or the name of one figure, such as {near}; {lists}"
    raise checks.reject("NAME", rule, checks.brief(name))


def draw(name: str, stem: str | os.PathLike, *arguments: object) -> list[Path]:
    """Draw the figure ``name`` of `yzflow.figures` and save it: a task for another process."""
    return save(entries()[checks.one_of("name", name, entries())](*arguments), stem)
