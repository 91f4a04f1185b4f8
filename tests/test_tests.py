"""Tests share code through helpers alone: no test depends on another, so each can be moved, deleted and run alone."""

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = sorted(HERE.rglob("test_*.py"))


def imported(path) -> set[str]:
    """Every name in an import, part by part: ``a.b`` gives a and b."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return {part for name in found for part in name.split(".")}


@pytest.mark.slow
@pytest.mark.parametrize("path", [*TESTS, *HERE.glob("*.py")], ids=lambda path: str(path.relative_to(HERE)))
def test_no_module_imports_a_test(path):
    tests = {other.stem for other in TESTS}
    assert not imported(path) & tests


def test_references_import_nothing_that_they_are_references_for():
    assert not imported(HERE / "reference.py") & {"dynamics", "theory", "yzflow"}
