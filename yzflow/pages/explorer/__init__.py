"""The explorer: one HTML file for a lecture, which works offline."""

from __future__ import annotations

import json
import os
from importlib import resources

from dynamics.support import checks
from dynamics.support.files import replacing
from dynamics.version import __version__

_SCRIPTS = ("mathematics.js", "widgets.js", "transition.js", "dyck.js", "averaging.js", "page.js")


def html(*, progress: bool = False) -> str:
    """The page, complete in itself.

    Parameters
    ----------
    progress : bool
        Show progress on standard error.

    Raises
    ------
    ValueError
        If bokeh is not installed.
    """
    try:
        import bokeh
        from bokeh.resources import Resources
    except ImportError as error:
        raise checks.reject("explore", "have bokeh: pip install 'yzflow[explore]'", "no module of that name") from error
    from yzflow.pages.explorer import data, plots

    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    content = {"plots": plots.items(), "bokeh": bokeh.__version__, **data.collect(progress=progress)}
    parts = {
        "STYLE": _file("style.css"),
        "BOKEH": _in_script(library),
        "DATA": json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": _in_script("\n".join(map(_file, _SCRIPTS))),
        "VERSION": __version__,
    }
    page = _file("page.html")
    for name, part in parts.items():
        page = page.replace(f"@{name}@", part)
    return page


def write(path: str | os.PathLike, *, progress: bool = False) -> None:
    """Write the page to ``path``, completely or not at all.

    Raises
    ------
    ValueError
        If bokeh is not installed.
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    """
    page = html(progress=progress)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _file(name: str) -> str:
    return resources.files("yzflow.pages.explorer").joinpath(name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """A script that no string in it can end early."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
