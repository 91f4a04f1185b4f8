"""Docstrings name what they describe, and the names of code in docstrings and pages exist."""

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest
from driving import ROOT

FOLDERS = (
    "benchmarks",
    "docs",
    "dynamics",
    "examples",
    "formal",
    "papers",
    "studies",
    "tests",
    "theory",
    "tools",
    "yzflow",
)
KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NAME = re.compile(r"`((?:dynamics|theory|yzflow|yzflow_[a-z_]+)\.[a-z_]\w*(?:\.\w+)*)[^`]*`")
# Of the pages' JavaScript, and groups of entry points.
OTHERS = {"yzflow.views", "yzflow.panels.NAME", "yzflow.flows", "yzflow.files"}


@functools.cache
def docstrings(file: Path) -> list[tuple[str, str]]:
    """The docstrings of a file, with the names that they belong to."""
    found, todo = [], [ast.parse(file.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, KINDS) and (text := ast.get_docstring(node)):
            found.append((getattr(node, "name", "module"), text))
        # No expression holds a statement.
        todo.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return found


@functools.cache
def of_all(ending: str) -> list[Path]:
    """The files of the repository with an ending, without those that are built."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob(f"*{ending}")]
    return [file for file in files if not {"_build", "_generated", "findings"} & set(file.parts)]


@functools.cache
def exists(name: str) -> bool:
    """Whether a dotted name is that of a module, or of an attribute of one; fields of a dataclass count."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if part in getattr(found, "__dataclass_fields__", {}):
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.slow
def test_docstrings_begin_with_what_they_name():
    read = [(file, name, text) for file in of_all(".py") for name, text in docstrings(file)]
    assert len(read) > 5000
    said = [(f"{file.relative_to(ROOT)}: {name}", text) for file, name, text in read if not name.startswith("test_")]
    assert not [place for place, text in said if text.split()[0] in ("What", "Of", "That", "Those")]
    assert not [name for _, name, text in read if text.split()[0] == "What"]


@pytest.mark.slow
def test_entries_stand_at_the_depth_of_their_section():
    """An entry below another's description would be read as a part of it."""
    deeper = re.compile(r"^    [\w*, ]+ : \S.*\n        \S", re.MULTILINE)
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in of_all(".py")
        for name, text in docstrings(file)
        if re.search(r"^-{4,}$", text, re.MULTILINE) and deeper.search(text)
    ]
    assert not wrong


@pytest.mark.slow
def test_names_of_code_in_docstrings_and_pages_exist():
    texts = [(file, text) for file in of_all(".py") for _, text in docstrings(file)]
    # The page on migration has old names, of which `test_versions.py` asks that none is there.
    pages = [file for file in of_all(".md") if file != ROOT / "docs" / "migration.md"]
    texts += [(file, file.read_text(encoding="utf-8")) for file in pages]
    named = {(name, file) for file, text in texts for name in NAME.findall(text)}
    assert len(named) > 200
    assert not [f"{file.relative_to(ROOT)}: {name}" for name, file in named if not exists(name) and name not in OTHERS]
