"""Entries of figures: functions that compute the data, draw it and describe it.

The registry collects the entries of all papers by itself, see `yzflow.Paper`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from dynamics.support import checks
from dynamics.support.progress import Progress
from yzflow import figure_settings, parts
from yzflow.figures import film
from yzflow.figures.notebook import shown_by_the_cell
from yzflow.figures.style import caption, save

if TYPE_CHECKING:
    from yzflow.sweeps.store import Store


@dataclass(frozen=True)
class Effort:
    """Amount of computation for a figure, and the store of its simulations.

    Attributes
    ----------
    quick : bool
        Fewer seeds, steps, sizes or output times.
    store : path-like or Store, optional
        Store of simulations: a second drawing of the same figure reads them from it. Figures without long simulations
        store nothing.
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
        The figure's name in `yzflow.figures` and for ``yzflow figure``.
    paper : str
        The paper's name in the register of statements.
    draw : callable
        (data, ..) -> matplotlib Figure. Its docstring is the caption: the content, and its agreement with the paper.
    compute : callable, optional
        (`Effort`, *, ..) -> data. Its keywords are the figure's keywords of `yzflow.figure_settings`. None: the caller
        must give the data, from own runs.
    number : int or tuple of int, optional
        Number of the paper's figure that the entry reproduces, or several numbers.
    claims : callable, optional
        data -> sentences of the caption that hold for this data only.
    trained_by : str
        Command that makes and draws the runs of a figure without ``compute``; error messages name it.
    times : callable, optional
        (data, number of pictures) -> times of a film's pictures, each of which ``draw`` takes as its keyword ``time``.
        None: the figure makes no film.
    """

    name: str
    paper: str
    draw: Callable[..., Figure]
    compute: Callable[[Effort], Any] | None = None
    number: int | tuple[int, ...] | None = None
    claims: Callable[[Any], str] | None = None
    trained_by: str = ""
    times: Callable[[Any, int], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        checks.attributes(self, str, "name", "paper", "trained_by")
        checks.attributes(self, Callable, "draw")
        checks.attributes(self, Callable, "compute", "claims", "times", optional=True)
        for number in self.numbers:
            checks.integer("number", number, minimum=1)
        # The signature of this figure in the help of editors and notebooks.
        usual = inspect.signature(type(self).__call__)
        kept = [
            parameter for name, parameter in usual.parameters.items() if name not in ("self", "arguments", "options")
        ]
        object.__setattr__(self, "__signature__", usual.replace(parameters=[*kept, *self.takes.values()]))

    def __call__(
        self,
        data: object = None,
        *arguments: Any,
        quick: bool = False,
        store: str | os.PathLike | Store | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Figure:
        """Draw ``data``, by default the data that `compute` returns for the keywords of `Effort` and of a setting.

        Keywords that the figure `takes`, such as ``n_classes=5``, are the setting; all other keywords go to `draw`.

        Every figure takes ``style``, a style of matplotlib or settings of it, over the project's; ``labels``, a mapping
        from the figure's texts to new texts; and ``ax``, axes of a figure with constrained layout: all panels are drawn
        in their place.

        In a notebook the cell shows the figure once, whether it ends with the call or gives the figure a name.

        Raises
        ------
        ValueError
            If required data is missing, the figure does not know a keyword, or a setting is given beside data.
        """
        data, for_draw = self._given(data, Effort(quick, store, progress), options)
        figure = self.draw(data, *arguments, **for_draw)
        # Axes of the caller's figure are shown with that figure.
        return figure if options.get("ax") is not None else shown_by_the_cell(figure)

    def _given(self, data: Any, effort: Effort, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Data to draw, computed if there are none, and those of the keywords that are not their setting."""
        of_draw = inspect.signature(self.draw).parameters
        takes, any_word = self.takes, any(parameter.kind is parameter.VAR_KEYWORD for parameter in of_draw.values())
        for_draw = {
            name: value
            for name, value in options.items()
            if name not in takes and (any_word or name in (*of_draw, "ax", "labels", "style"))
        }
        setting = {name: value for name, value in options.items() if name not in for_draw}
        if data is None:
            data = self.data(effort, **setting)
        elif setting:
            name = next(iter(setting))
            raise checks.reject(name, "be left out beside `data`, which has its own", checks.brief(setting[name]))
        return data, for_draw

    def film(
        self,
        path: str | os.PathLike | film.Plan,
        data: object = None,
        *,
        seconds: float = 6.0,
        fps: int = 10,
        quick: bool = False,
        store: str | os.PathLike | Store | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Path:
        """Write the figure at one time after the other to a GIF or, where ffmpeg is installed, an MP4 file.

        Parameters
        ----------
        path : path-like, or film.Plan
            Its ending chooses the kind of file, which is complete or not there. A plan is checked, with its number
            of pictures.
        data : optional
            Default: as for a picture of the figure, for the keywords of its setting.
        seconds : float
        fps : int
            Pictures a second.

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the figure makes no film, or as a call of the figure does.
        RuntimeError
            If ffmpeg fails.
        """
        if self.times is None:
            able = [entry.name for entry in entries().values() if entry.times is not None]
            raise checks.reject("NAME", f"be a figure that makes a film: {', '.join(able)}", self.name)
        given, pictures = path if isinstance(path, film.Plan) else film.plan("path", path, seconds, fps)
        for key in options.keys() & {"ax", "time"}:
            raise checks.reject(key, "be left out for a film, which has its own", checks.brief(options[key]))
        data, for_draw = self._given(data, Effort(quick, store, progress), options)
        times = self.times(data, pictures)
        with Progress("film", enabled=progress) as report:

            def drawn() -> Iterator[Figure]:
                for done, time in enumerate(times):
                    report.update(done / pictures, f"picture {done + 1} of {pictures}")
                    yield self.draw(data, time=time, **for_draw)

            film.write(given, drawn(), fps)
        return given

    @property
    def takes(self) -> Mapping[str, inspect.Parameter]:
        """Keywords of its setting, with their types and defaults."""
        return figure_settings.taken(self.compute)

    def data(self, effort: Effort | None = None, **setting: object) -> Any:
        """Data of the figure at the default setting, or at a setting in the keywords that the figure `takes`.

        Raises
        ------
        ValueError
            If the figure cannot compute its data, or does not take a keyword.
        """
        if self.compute is None:
            how = f"; `{self.trained_by}` trains and draws" if self.trained_by else ""
            raise checks.reject("data", f"be given to draw {self.name}{how}", "none")
        effort = Effort() if effort is None else checks.instance("effort", effort, Effort)
        return self.compute(effort, **figure_settings.complete(self.name, self.takes, setting))

    @property
    def text(self) -> str:
        """The caption for any data: the content, and its agreement with the paper."""
        return caption(self.draw)

    def caption(self, data: Any) -> str:
        """The text, then the claims about this data."""
        return self.text if self.claims is None else f"{self.text} {self.claims(data)}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the paper's figures that the entry reproduces."""
        if isinstance(self.number, tuple):
            return self.number
        return () if self.number is None else (self.number,)

    @property
    def printed(self) -> str:
        """Numbers of the paper's figures in words, as "Figures 3 and 10"; empty if there are none."""
        if not self.numbers:
            return ""
        *first, last = map(str, self.numbers)
        return f"Figures {', '.join(first)} and {last}" if first else f"Figure {last}"

    @property
    def title(self) -> str:
        """A heading: the paper, and the number of its figure or the entry's name."""
        return f"{self.paper}, {self.printed or self.name.replace('_', ' ')}"


@parts.of_papers
def entries() -> dict[str, Entry]:
    """Name -> entry: numbered figures by paper and number, then the others by name."""
    collected: dict[str, Entry] = parts.collected("figures")

    def order(entry: Entry) -> tuple:
        return (0, entry.paper, entry.numbers) if entry.numbers else (1, entry.name)

    return {entry.name: entry for entry in sorted(collected.values(), key=order)}


def names(*, given: bool = False) -> list[str]:
    """Names of the figures.

    Parameters
    ----------
    given : bool
        Names of figures that draw given runs. Default: names of figures that compute their data.
    """
    given = checks.flag("given", given)
    return [name for name, entry in entries().items() if (entry.compute is None) == given]


def draw(name: str, stem: str | os.PathLike, *arguments: object) -> list[Path]:
    """Draw the figure ``name`` of `yzflow.figures` and save it; other processes run this function."""
    return save(entries()[checks.one_of("name", name, entries())](*arguments), stem)
