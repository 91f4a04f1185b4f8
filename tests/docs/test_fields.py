"""The page of fields: what it names is there, a row stands for all that a decoder declares, and tables stay tables."""

import ast
import functools
import re

import pytest
from driving import ROOT

import dynamics

PAGE = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
ROWS = [row for row in ROWS if row[0] != "what"]
PACKAGES = ("dynamics", "theory", "yzflow")


def named(cell):
    """Files and the names in them: the quoted parts of a cell."""
    found = {}
    for part in re.findall(r"`([^`]*)`", cell):
        if "/" in part:
            found[part] = own = []
        else:
            own.append(part)
    return found


@functools.cache
def defined(path):
    """Names that a file defines at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return found | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_places_and_the_tests_that_hold_them_are_there(row):
    _, fields, place, held = row
    assert fields
    for cell in (place, held):
        assert named(cell)
        for path, names in named(cell).items():
            assert (ROOT / path).is_file(), path
            assert path.endswith(".js") or set(names) <= defined(ROOT / path), (path, names)
    for path, names in named(held).items():
        assert "tests/" in path and names and all(name.startswith("test_") for name in names)


@pytest.mark.parametrize("name", ["full", "modified", "theory"])
def test_a_built_in_decoder_has_a_row_for_all_that_it_declares(name):
    known = dynamics.fields()[name]
    of = {row[0].partition(":")[0] for row in ROWS if name in re.split(r", | and ", row[1])}
    words = {"derivative": "the reference flow of all logits"}
    assert {words.get(part, part) for part in known} <= of
    assert {part for part in ("orbits", "step", "lanes", "noise", "kernel", "factors") if part in of} <= set(known)


@functools.cache
def _sources():
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


# Types of plain values, of which no class can be derived that were another field.
_PLAIN = {"int", "float", "bool", "str", "list", "dict"}
# A checker alone, which refuses what it does not know; fields in balls, whose base class does; and a figure of what has
# a closed form for the theory flow alone.
_OWN_EQUATIONS = {"tools/enclose/yzflow_enclose/verifier/verify_flow.py",
                  "tools/enclose/yzflow_enclose/verifier/verify_cell.py", "tools/enclose/yzflow_enclose/fields.py",
                  "tools/enclose/yzflow_enclose/moments.py", "tools/enclose/yzflow_enclose/reading.py",
                  "yzflow/papers/scan_and_snap/figures/transition.py"}  # fmt: skip


def _is_type(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
    )


@pytest.mark.slow
def test_nothing_asks_for_the_exact_type_of_an_object():
    """A subclass is another kind: what is its own it declares, and a comparison of types would not hear of it."""
    wrong = []
    for path, tree in _sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and _is_type(node.left) and not any(map(_is_type, node.comparators)):
                others = {one.id for part in node.comparators for one in ast.walk(part) if isinstance(one, ast.Name)}
                if not others <= _PLAIN:
                    wrong.append(f"{path}:{node.lineno}")
    assert not wrong


@pytest.mark.slow
def test_no_code_compares_the_name_of_a_decoder():
    """By what a decoder is called nothing is decided outside its table, or a new one would be one of the old."""
    wrong = []
    for path, tree in _sources():
        if path in _OWN_EQUATIONS:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            words = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
            asked = any("decoder" in ast.unparse(side) for side in sides if not isinstance(side, ast.Constant))
            if asked and words & {0, 1, 2, "full", "modified", "theory"}:
                wrong.append(f"{path}:{node.lineno}")
    assert not wrong
