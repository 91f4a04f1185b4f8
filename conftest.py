"""Runs the examples in the README, the documentation and docstrings as tests."""

import pytest
from sybil import Sybil
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Examples write their files here."""
    monkeypatch.chdir(tmp_path)


pytest_collect_file = SybilCollection(
    [
        Sybil(
            parsers=[PythonCodeBlockParser(), SkipParser()],
            patterns=["README.md", "docs/*.md", "docs/howto/*.md", "docs/theory/*.md"],
            fixtures=["empty_folder"],
        ),
        Sybil(
            parsers=[DocTestParser()],
            patterns=[
                f"{package}{depth}/*.py"
                for package in ("dynamics", "theory", "yzflow")
                for depth in ("", "/*", "/*/*", "/*/*/*")
            ],
            fixtures=["empty_folder"],
        ),
    ]
).pytest()
