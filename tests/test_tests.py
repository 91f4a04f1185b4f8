"""References stand on their own feet."""

import ast
from pathlib import Path

HERE = Path(__file__).parent


def imported(path) -> set[str]:
    """Every name in an import, part by part: ``a.b`` gives a and b."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return {part for name in found for part in name.split(".")}


def test_references_import_nothing_that_they_are_references_for():
    assert not imported(HERE / "reference.py") & {"dynamics", "theory", "yzflow"}
