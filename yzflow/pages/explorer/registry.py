"""Panels of the explorer: entries that say how each is shown, which data it reads and how it is computed.

Those of all papers are found here without an entry in another list, see `yzflow.Paper`. One may open a reader's data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from yzflow import parts
from yzflow.pages.files import script
from yzflow.values.marks import bare


@dataclass(frozen=True)
class Preset:
    """A setting of one panel.

    Attributes
    ----------
    name : str
    text : str
        Two sentences for students.
    question, answer : str
    setting : dict
        What the panel's controls start from.
    compare : tuple of dict
        What is changed in the settings of the curves to compare with.
    """

    name: str
    text: str
    question: str
    answer: str
    setting: dict
    compare: tuple[dict, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("text", "question", "answer"):
            object.__setattr__(self, name, bare(getattr(self, name)))


@dataclass(frozen=True)
class Panel:
    """A section of the page.

    Attributes
    ----------
    name : str
        Of its place in the page (``<section id=..>``) and of its builder in the script (``yzflow.panels.NAME``).
    title : str
        In the page's navigation.
    place : int
        Panels are shown in this order; those of the same place by name.
    folder : str
        Package that holds ``section.html`` and the scripts.
    presets : tuple of Preset
        The first is what the page starts with.
    collect : callable
        (progress) -> what its builder reads beside the presets, ready for JSON; ``progress`` says whether to report on
        standard error.
    scripts : tuple of str
        Files of the folder, in the order in which they are run: JavaScript, or a module whose ``script()`` writes it.
    opens : callable, optional
        (data, name of their file) -> the preset that a reader's data make; ValueError if it cannot show them. None for
        a panel that takes no data.
    """

    name: str
    title: str
    place: int
    folder: str
    presets: tuple[Preset, ...]
    collect: Callable[[bool], dict[str, Any]]
    scripts: tuple[str, ...] = ("mathematics.js", "panel.js")
    opens: Callable[[Any, str], Preset] | None = None

    def content(self, *, progress: bool = False) -> dict[str, Any]:
        """Data that the panel's builder reads."""
        return {"presets": [asdict(preset) for preset in self.presets], **self.collect(progress)}

    def of(self, data: Any, name: str) -> Panel:
        """The panel with a reader's data, from the file of this name, as its first preset."""
        if self.opens is None:
            raise ValueError(f"`data` must be left out for {self.title}, which takes none")
        return replace(self, presets=(self.opens(data, name), *self.presets))

    def file(self, name: str) -> str:
        """The text of a file of the panel, or the script that it writes."""
        return script(self.folder, name)


@parts.of_papers
def panels() -> tuple[Panel, ...]:
    """Panels of all papers, in the order of the page."""
    return tuple(sorted(parts.collected("panels").values(), key=lambda panel: (panel.place, panel.name)))
