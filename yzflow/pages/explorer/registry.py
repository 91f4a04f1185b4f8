"""Panels of the explorer: entries with a panel's files, data and computation.

`panels` finds the entries of all papers, see `yzflow.Paper`; no other list names them.
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
        Values of the panel's controls.
    compare : tuple of dict
        Changes of the setting, one for each curve to compare with.
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
        Name of its section in the page (``<section id=..>``) and of its builder in the script (``yzflow.panels.NAME``).
    title : str
        Title in the page's navigation.
    place : int
        Position in the page; panels with the same position are sorted by name.
    folder : str
        Package that holds ``section.html`` and the scripts.
    presets : tuple of Preset
        The page starts with the first.
    collect : callable
        (progress) -> data for JSON that the builder reads beside the presets; ``progress``: report on standard error.
    scripts : tuple of str
        Files of the folder, in order. A file is JavaScript, or a Python module with ``script()``.
    opens : callable, optional
        (data, name of their file) -> preset for a reader's data; ValueError if the panel cannot show them. None: the
        panel takes no data.
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
        """Data for the panel's builder."""
        return {"presets": [asdict(preset) for preset in self.presets], **self.collect(progress)}

    def of(self, data: Any, name: str) -> Panel:
        """The panel with a reader's data as its first preset; ``name`` is the file's."""
        if self.opens is None:
            raise ValueError(f"`data` must be left out for {self.title}, which takes none")
        return replace(self, presets=(self.opens(data, name), *self.presets))

    def file(self, name: str) -> str:
        """The text of a file of the panel, or of the script that the file writes."""
        return script(self.folder, name)


@parts.of_papers
def panels() -> tuple[Panel, ...]:
    """Panels of all papers, in the order of the page."""
    return tuple(sorted(parts.collected("panels").values(), key=lambda panel: (panel.place, panel.name)))
