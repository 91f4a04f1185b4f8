"""The explorer: one HTML file for a lecture, which works offline.

What it shows are the panels of the papers' rooms, which `panels` finds; here are its frame, controls and style.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from importlib import resources

from dynamics.support import checks
from dynamics.support.files import replacing
from dynamics.version import __version__
from yzflow.pages.explorer.registry import Panel, panels


def html(shown: Sequence[Panel] | None = None, *, progress: bool = False) -> str:
    """The page, complete in itself.

    Parameters
    ----------
    shown : sequence of Panel, optional
        Default: all, `yzflow.pages.explorer.panels.panels`.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If bokeh is not installed, or there is no panel to show.
    """
    shown = panels() if shown is None else shown
    if not shown:
        raise checks.reject("shown", "hold at least one panel", "none")
    try:
        import bokeh
        from bokeh.resources import Resources
    except ImportError as error:
        raise checks.reject("explore", "have bokeh: pip install 'yzflow[explore]'", "no module of that name") from error

    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    content = {
        "plots": {name: item for panel in shown for name, item in panel.plots().items()},
        "bokeh": bokeh.__version__,
        "panels": {panel.name: panel.content(progress=progress) for panel in shown},
    }
    scripts = [_file("mathematics.js"), _file("widgets.js")]
    scripts += [panel.file(name) for panel in shown for name in panel.scripts]
    parts = {
        "STYLE": _file("style.css"),
        "FIRST": shown[0].name,
        "NAVIGATION": "\n".join(f'<a href="#{panel.name}">{escape(panel.title)}</a>' for panel in shown),
        "SECTIONS": "\n".join(panel.file("section.html") for panel in shown),
        "BOKEH": _in_script(library),
        "DATA": json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": _in_script("\n".join([*scripts, _file("page.js")])),
        "VERSION": __version__,
    }
    page = _file("page.html")
    for name, part in parts.items():
        page = page.replace(f"@{name}@", part)
    return page


def write(path: str | os.PathLike, shown: Sequence[Panel] | None = None, *, progress: bool = False) -> None:
    """Write the page to ``path``, completely or not at all.

    Parameters
    ----------
    shown : sequence of Panel, optional
        As for `html`.

    Raises
    ------
    ValueError
        If bokeh is not installed, or there is no panel to show.
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    """
    page = html(shown, progress=progress)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _file(name: str) -> str:
    return resources.files("yzflow.pages.explorer").joinpath(name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """A script that no string in it can end early."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
