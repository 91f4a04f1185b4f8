"""Plots with sliders on statements' pages: a paper's `Views`, and the HTML around them.

Its ``views`` name the scripts that compute the curves; controls, plots and integrators are the explorer's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from theory.statements import Statement
from yzflow import parts
from yzflow.audits import formulas
from yzflow.pages import explorer
from yzflow.pages.files import file, script
from yzflow.values.marks import bare

__all__ = ["Start", "Views", "question", "styles", "views"]

_EXPLORER = "yzflow.pages.explorer"
_ENGINE = (
    *((_EXPLORER, name) for name in ("mathematics.js", "plots.js", "widgets.js", "bench.js")),
    ("yzflow.pages", "live.js"),
)


@dataclass(frozen=True)
class Start:
    """A setting from which the sliders start.

    Attributes
    ----------
    name : str
    text : str
        One sentence on the point of this setting.
    setting : dict
        A value for each slider.
    """

    name: str
    text: str
    setting: dict[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", bare(self.text))


@dataclass(frozen=True)
class Views:
    """A paper's plots with sliders.

    Attributes
    ----------
    paper : str
        Its name in the register.
    scripts : tuple of (str, str)
        Package and file of each script, in order. A file is JavaScript, or a Python module with ``script()``.
    views : mapping
        Number of a statement -> name of its view in the scripts, an entry of ``yzflow.views``.
    starts : mapping
        Name of a view -> starts of its sliders, the first for the open page; key None: all other views.
    collect : callable
        (view, first start) -> data for JSON: ``runs``, or None; for a view with bands of SGD also ``told``, a sentence
        for each length T of its sequences, from the shortest to "infinity".
    """

    paper: str
    scripts: tuple[tuple[str, str], ...]
    views: Mapping[str, str]
    starts: Mapping[str | None, tuple[Start, ...]]
    collect: Callable[[str, Start], dict[str, Any]]

    def joined(self, more: Views) -> Views:
        """These views and the views of an addition to the paper, each with its own ``collect``."""

        def collect(view: str, start: Start) -> dict[str, Any]:
            return (more if view in more.views.values() else self).collect(view, start)

        scripts = (*self.scripts, *(path for path in more.scripts if path not in self.scripts))
        return Views(self.paper, scripts, {**self.views, **more.views}, {**self.starts, **more.starts}, collect)

    def content(self, statement: Statement) -> dict[str, Any]:
        """Data for the script of a statement's page."""
        view = self.views[statement.number]
        starts = self.starts[view if view in self.starts else None]
        return {
            "view": view,
            "presets": [asdict(start) for start in starts],
            "assumptions": {
                assumption.text: formulas.readable(assumption.text) for assumption in statement.assumptions
            },
            **self.collect(view, starts[0]),
        }


def views(statement: Statement) -> Views | None:
    """The views of a statement's paper; None if the statement has no view."""
    of_paper = parts.part_of(statement.paper, "views")
    return of_paper if of_paper is not None and statement.number in of_paper.views else None


def question(statement: Statement) -> tuple[str, str] | None:
    """A question for students on a statement, and the answer; None if there is none."""
    questions: Mapping[str, tuple[str, str]] = parts.part_of(statement.paper, "questions") or {}
    return questions.get(statement.number)


FORM = """<form class='controls' id='live-controls' autocomplete='off' aria-label='Sliders'>
<div class='preset' id='live-preset'></div>
<fieldset id='live-sliders'><legend>What it depends on</legend></fieldset>
<div id='live-assumptions'><p class='soft'>Margins at these sliders; an assumption holds from 1 on:</p>
<div role='status'><ul class='margins' id='live-margins'></ul></div></div>
<div class='actions' id='live-actions'></div>
</form>"""
PLOT = """<div id='plot' class='lead'><h2 class='unseen'>Plots</h2>
<div class='plot' id='curves'></div><div class='plot' id='difference'></div></div>"""
WORDS = """<section id='words' aria-label='The plots in words and numbers'><h2>The plots in words and numbers</h2>
<div class='words'><div id='curves-words'></div><div id='difference-words'></div></div>
<p class='soft'>Curves are computed in this page for the sliders' values.<span id='live-band' hidden> SGD was run by
Python for what the page opens with, and does not follow the sliders: a band goes from the smallest to the largest of
its seeds, and with T = \u221e every step takes all classes, so that nothing is drawn by chance.</span>
<span id='live-told'></span></p></section>"""
THEME = "<button type='button' id='theme' aria-pressed='false'>Dark colours</button>"


def scripts(statement: Statement, of_paper: Views) -> str:
    """The data and the scripts of a statement's page."""
    files = [*_ENGINE, *of_paper.scripts, (_EXPLORER, "page.js")]
    code = explorer.in_script("\n".join(script(package, name) for package, name in files))
    data = explorer.in_data({"panels": {"live": of_paper.content(statement)}})
    warning = "The sliders need JavaScript, which this browser has switched off."
    return (
        f'<noscript><p>{escape(warning)}</p></noscript>\n<script type="application/json" id="data">{data}</script>\n'
        f"<script>\n{code}\n</script>\n"
    )


def styles() -> tuple[str, str]:
    """Style sheets to put before and after the style of all pages."""
    return file(_EXPLORER, "style.css"), file("yzflow.pages", "live.css")
