"""A paper to begin with: a distribution that installs and passes its tests at once, to be changed piece by piece."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from importlib import resources
from pathlib import Path

from dynamics.support import checks, files
from dynamics.version import __version__
from theory import papers

__all__ = ["write"]

_NAME, _SLUG = "A new paper", "a_new_paper"
# Files outside the package; the files of the package are in `paper`.
_BESIDE = {"pyproject.txt": "pyproject.toml", "readme.txt": "README.md", "tests.txt": "tests/test_paper.py"}


def write(name: str, folder: str | os.PathLike = ".") -> list[Path]:
    """Write the skeleton of a paper into a new folder.

    Parameters
    ----------
    name : str
        The paper's name, as in "My paper: Lemma 1": letters, digits and spaces. The folder and the package are called
        ``my_paper``.
    folder : path-like
        The folder in which that folder is made.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ValueError
        If the name is invalid, that of a known paper or of an installed module, or the folder exists.
    """
    name = checks.instance("NAME", name, str).strip()
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9 _-]*", name):
        raise checks.reject("NAME", "begin with a letter and be of letters, digits, spaces, '_' and '-'", repr(name))
    slug = re.sub(r"[ _-]+", "_", name.lower()).strip("_")
    if papers.named(slug) is not None:
        raise checks.reject("NAME", "be another than those of `yzflow papers`", repr(name))
    found = importlib.util.find_spec(slug)  # of a folder without code it has no origin
    if slug in sys.stdlib_module_names or (found is not None and found.origin is not None):
        rule = f"be another than that of a module that is installed, which the package {slug} would hide"
        raise checks.reject("NAME", rule, repr(name))
    root = Path(files.folder("--out", folder)) / slug
    if root.exists():
        raise checks.reject("NAME", "be that of a folder that is not there yet", str(root))
    here = resources.files(__name__)
    sources = {final: here / file for file, final in _BESIDE.items()}
    for source in sorted((here / "paper").iterdir(), key=lambda one: one.name):
        if source.name.endswith(".py"):
            sources[f"{slug}/{source.name}"] = source
    words = {
        "VERSION": __version__,
        f"{__name__}.paper": slug,
        _SLUG.replace("_", "-"): slug.replace("_", "-"),
        _SLUG: slug,
        _NAME: name,  # last, since it may be of such words
    }
    for path, source in sources.items():
        text = source.read_text(encoding="utf-8")
        for old, new in words.items():
            text = text.replace(old, new)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        files.write(root / path, text.encode())
    return [root / path for path in sources]
