"""Docstrings name what they describe: none begins with "What", behind which a reader has to look for the noun."""

import ast
from pathlib import Path

from driving import ROOT

FOLDERS = ("benchmarks", "docs/_ext", "dynamics", "examples", "formal", "papers", "studies", "tests", "theory", "yzflow")
KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def beginnings(file: Path):
    """The docstrings of a file, with the names that they belong to."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, KINDS) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text


def test_no_docstring_begins_with_what():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    read = [(file, name, text) for file in files for name, text in beginnings(file)]
    assert len(read) > 5000
    assert not [f"{file.relative_to(ROOT)}: {name}" for file, name, text in read if text.split()[0] == "What"]
