"""A page for each statement of the register in the site, with the explorer beside them, and their index.

They are what ``yzflow page --all`` writes, from a quick audit, which takes minutes. ``-D run_statements=0``
leaves it out: the pages then say that nothing was run for them.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from yzflow.pages import contents

FOLDER = "statements"


def write(app: Sphinx) -> None:
    """Before any source is read, since the index is a part of one; what is made is copied into the site as it is."""
    folder = _folder(app)
    for old in folder.glob("*.html"):
        old.unlink()
    app.statements_run = bool(int(app.config.run_statements))
    report = contents.write_all(folder, quick=True, run=app.statements_run)
    app.statements = contents.verdicts(report, quick=True, seed=0)


class Index(SphinxDirective):
    """``{statement_index}``: for each paper its statements in reading order, and one table over all."""

    def run(self):
        self.env.note_reread()
        note = "" if self.env.app.statements_run else f"<p>{contents.UNRUN}</p>"
        html = note + "\n".join(contents.sections(self.env.app.statements, base=f"{FOLDER}/")) + contents.script()
        return [nodes.raw("", f"<div class='statements'>{html}</div>", format="html")]


def _folder(app: Sphinx) -> Path:
    folder = Path(app.srcdir) / "_generated" / "site" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def setup(app: Sphinx):
    _folder(app)  # sphinx asks for what `html_extra_path` names before a builder is there
    app.add_config_value("run_statements", "1", "")
    app.add_directive("statement_index", Index)
    app.connect("builder-inited", write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
