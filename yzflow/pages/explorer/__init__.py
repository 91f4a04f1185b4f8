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


def html(shown: Sequence[Panel] | None = None, *, pages: str | None = None, progress: bool = False) -> str:
    """The page, complete in itself.

    Parameters
    ----------
    shown : sequence of Panel, optional
        Default: those of all papers, `yzflow.pages.explorer.registry.panels`.
    pages : str, optional
        Address of the index of the statements' pages, to link to.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If there is no panel to show.
    """
    shown = panels() if shown is None else shown
    if not shown:
        raise checks.reject("shown", "hold at least one panel", "none")
    content = {"panels": {panel.name: panel.content(progress=progress) for panel in shown}}
    links = [(f"#{panel.name}", panel.title) for panel in shown]
    links += [] if pages is None else [(escape(pages), "All statements")]
    scripts = [_file(name) for name in ("mathematics.js", "plots.js", "widgets.js", "bench.js")]
    scripts += [panel.file(name) for panel in shown for name in panel.scripts]
    parts = {
        "STYLE": _file("style.css") + _file("layout.css"),
        "FIRST": shown[0].name,
        "NAVIGATION": "\n".join(f'<a href="{address}">{escape(title)}</a>' for address, title in links),
        "SECTIONS": "\n".join(panel.file("section.html") for panel in shown),
        "DATA": in_data(content),
        "SCRIPT": in_script("\n".join([*scripts, _file("page.js")])),
        "VERSION": __version__,
    }
    page = _file("page.html")
    for name, part in parts.items():
        page = page.replace(f"@{name}@", part)
    return page


def write(
    path: str | os.PathLike,
    shown: Sequence[Panel] | None = None,
    *,
    pages: str | None = None,
    progress: bool = False,
) -> None:
    """Write the page to ``path``, completely or not at all.

    Parameters
    ----------
    shown, pages, progress
        As for `html`.

    Raises
    ------
    ValueError
        If there is no panel to show.
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    """
    page = html(shown, pages=pages, progress=progress)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _file(name: str) -> str:
    return resources.files("yzflow.pages.explorer").joinpath(name).read_text(encoding="utf-8")


def in_data(content: dict) -> str:
    """A content as JSON that no string in it can end early."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def in_script(text: str) -> str:
    """A script that no string in it can end early."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
