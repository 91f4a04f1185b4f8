"""Pages without the keys of their numbers (`yzflow.values.marks`), which titles would carry into the search."""

from sphinx.application import Sphinx

from yzflow.values.marks import bare


def read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = bare(source[0])


def documented(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings of figures are captions, and have keys, too."""
    lines[:] = bare("\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", documented, priority=50)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
