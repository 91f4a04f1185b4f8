"""A paper to begin with: a distribution that installs and passes its tests at once, to be changed piece by piece."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path

from dynamics.support import checks, files
from dynamics.version import __version__
from theory import papers

__all__ = ["write"]

_NAME, _SLUG = "A new paper", "a_new_paper"
_TESTS = '''"""Tests that any paper passes, and the claims of this one by another route."""

import numpy as np
import pytest
from scipy.special import lambertw

import yzflow as yz
from yzflow.testing import check_paper

from {slug} import PAPER
from {slug}.flow import Climb


@pytest.mark.parametrize("case", check_paper(PAPER))
def test_paper(case):
    case()


def test_the_flow_has_its_closed_form():
    run = yz.integrate(Climb(rate=2.0), t_end=3.0, n_times=7)
    t = 2.0 * run.dataset["time"].values
    np.testing.assert_allclose(run.dataset["z"], 1 + t - lambertw(np.exp(1 + t)).real, atol=1e-6)
'''
_PROJECT = """[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "yzflow-{hyphened}"
version = "0.1"
description = "{name}, for yzflow"
requires-python = ">=3.10"
dependencies = ["yzflow>={version}"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."yzflow.papers"]
{slug} = "{slug}:PAPER"

[tool.setuptools]
packages = ["{slug}"]
# So that an editable installation is found before the folder of this name, where one stands beside it.
package-dir = {{ "" = "." }}
"""
_README = """# {name}

A paper for [yzflow](https://pypi.org/project/yzflow/): its statements, what they are checked on, their proofs.

    pip install -e '.[test]' && pytest
    yzflow statements --paper {slug}
    yzflow check "{name}: Lemma 1"
    yzflow page "{name}: Lemma 1" --out lemma1.html
    yzflow figure {slug}_logit
"""


def write(name: str, folder: str | os.PathLike = ".") -> list[Path]:
    """Write the skeleton of a paper into a new folder.

    Parameters
    ----------
    name : str
        Of the paper, as in "My paper: Lemma 1": letters, digits and spaces. The folder and the package are called
        ``my_paper``.
    folder : path-like
        Where that folder is made.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    ValueError
        If the name is invalid or that of a paper in the table, or the folder is there already.
    """
    name = checks.instance("NAME", name, str).strip()
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9 _-]*", name):
        raise checks.reject("NAME", "begin with a letter and be of letters, digits, spaces, '_' and '-'", repr(name))
    slug = re.sub(r"[ _-]+", "_", name.lower()).strip("_")
    if papers.named(slug) is not None:
        raise checks.reject("NAME", "be another than those of `yzflow papers`", repr(name))
    root = Path(files.folder("--out", folder)) / slug
    if root.exists():
        raise checks.reject("NAME", "be that of a folder that is not there yet", str(root))
    words = {"name": name, "slug": slug, "hyphened": slug.replace("_", "-"), "version": __version__}
    texts = {
        "pyproject.toml": _PROJECT.format(**words),
        "README.md": _README.format(**words),
        "tests/test_paper.py": _TESTS.format(**words),
    }
    for source in sorted(resources.files("yzflow.skeleton.paper").iterdir(), key=lambda one: one.name):
        if source.name.endswith(".py"):
            text = (
                source.read_text(encoding="utf-8")
                .replace(_NAME, name)
                .replace(_SLUG, slug)
                .replace(__name__ + ".paper", slug)
            )
            texts[f"{slug}/{source.name}"] = text
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        files.write(root / path, text.encode())
    return [root / path for path in texts]
