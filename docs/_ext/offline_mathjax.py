"""MathJax from an installed package and not from a network: the script and the fonts that it loads."""

from importlib.util import find_spec
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset

_PACKAGE = "sphinx-mathjax-offline"
_PARTS = {"tex-chtml.js": "", "output/chtml/fonts": "output/chtml/fonts"}


def _copy(app, error):
    if error is None and app.builder.format == "html":
        source = Path(find_spec(_PACKAGE).submodule_search_locations[0]) / "static" / "mathjax"
        for part, target in _PARTS.items():
            copy_asset(source / part, Path(app.outdir) / "_static" / "mathjax" / target)


def setup(app):
    if find_spec(_PACKAGE) is None:
        raise ExtensionError(f"the documentation needs {_PACKAGE}: pip install 'yzflow[docs]'")
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    # The menu would offer to load parts that are not there.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
