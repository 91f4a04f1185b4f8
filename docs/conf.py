"""Settings of the documentation: ``python -m sphinx -W --keep-going docs docs/_build/html``.

Nothing is loaded from a network: MathJax comes from the package sphinx-mathjax-offline. ``-D plot_gallery=0`` leaves
the gallery's scripts unrun, ``-D nb_execution_mode=off`` the pages' cells, and ``-D run_statements=0`` the audit
for the statements' pages.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE.parent), str(_HERE / "_ext")]

import gallery  # noqa: E402

from dynamics import __version__  # noqa: E402

project = "yzflow"
author = "the yzflow developers"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "findings",
    "letters",
    "marks",
    "navigation",
    "notebooks",
    "proofs",
    "reference",
    "tasks",
    "tried",
    "offline_mathjax",
    "statement_pages",
]
exclude_patterns = ["_build", "_generated/*.ipynb", "_generated/sources", "_generated/gallery/**/*.ipynb", "benchmarks"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
# In a folder of its own, as cells write files; an exception in a cell ends the build.
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
# A word of a shape, such as width, may be the name of an attribute of several classes.
suppress_warnings = ["config.cache", "ref.python"]

# What is copied has no prompts and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"

html_theme = "furo"
html_title = "yzflow"
html_static_path = ["_static"]
html_extra_path = ["_generated/site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

sphinx_gallery_conf = gallery.settings(_HERE)
