"""The explorer: one HTML file for a lecture, which works offline.

`panels` finds the panels of all papers; this package has the page's frame, controls and style.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from typing import Any

from dynamics.support import checks
from dynamics.version import __version__
from yzflow.pages.explorer.registry import Panel, panels
from yzflow.pages.files import file, save


def html(
    shown: Sequence[Panel] | None = None,
    *,
    pages: str | None = None,
    data: Any = None,
    name: str = "your file",
    progress: bool = False,
) -> str:
    """The explorer as one page that stands alone.

    Parameters
    ----------
    shown : sequence of Panel, optional
        Default: the panels of all papers, `yzflow.pages.explorer.registry.panels`.
    pages : str, optional
        Address of the index of the statements' pages, for a link.
    data : optional
        A reader's data, for the panels that can open it. These panels come first.
    name : str
        Name of the data's file.
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If there is no panel to show, or none for the data, or a panel cannot show them.
    """
    shown = panels() if shown is None else shown
    if not shown:
        raise checks.reject("shown", "hold at least one panel", "none")
    if data is not None:
        able = [panel for panel in shown if panel.opens is not None]
        if not able:
            raise checks.reject("data", "be left out where no panel opens it", checks.brief(data))
        shown = [*(panel.of(data, name) for panel in able), *(panel for panel in shown if panel.opens is None)]
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
    for name, text in parts.items():
        page = page.replace(f"@{name}@", text)
    return page


def write(
    path: str | os.PathLike,
    shown: Sequence[Panel] | None = None,
    *,
    pages: str | None = None,
    data: Any = None,
    name: str = "your file",
    progress: bool = False,
) -> None:
    """Write the page to ``path``, completely or not at all.

    Parameters
    ----------
    shown, pages, data, name, progress
        As for `html`.

    Raises
    ------
    ValueError
        As `html` does.
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    """
    page = html(shown, pages=pages, data=data, name=name, progress=progress)
    save(page, path)


def _file(name: str) -> str:
    return file("yzflow.pages.explorer", name)


def in_data(content: dict) -> str:
    """Content as JSON for a script element, safe against strings that would close the element."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def in_script(text: str) -> str:
    """A script for a script element, safe against strings that would close the element."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
