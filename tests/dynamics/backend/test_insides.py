"""Numba's inside is touched in one folder, and nothing needs it: plain `numba.njit` gives the same numbers."""

import ast
import gc
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from driving import ROOT
from numba.core.caching import NullCache
from numba.core.errors import TypingError
from numba.extending import intrinsic

from dynamics import Objective, SequenceClasses, gradient_flow, sgd
from dynamics._model.gradient import Parts, made
from dynamics.backend.compiled import kernel
from dynamics.backend.modes import COMPILATION, IN_PYTHON, PLAIN

BACKEND = "dynamics/backend"
# Names that are numba's own affair, however one comes by them.
INSIDE = {"_compile_core", "_compiler", "_customize_flags", "_compile_for_args", "targetctx"}


def sources():
    """Files that have a word of numba's, as trees."""
    words = re.compile("numba|llvmlite|" + "|".join(INSIDE))
    for package in ("dynamics", "theory", "yzflow"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if words.search(text):
                yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def called(function):
    """The last part of the name of what is called."""
    return getattr(function, "attr", getattr(function, "id", ""))


def imported(tree):
    """All modules that a file imports, at its top, within functions, or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in called(node.func) and node.args:
            yield ast.unparse(node.args[0]).strip("f'\"")


def test_nothing_outside_the_backend_imports_numba_and_its_inside_is_used_where_its_name_says_so():
    deep = ("numba.core", "numba.np", "numba.extending", "numba.experimental", "llvmlite.ir")
    found, users = set(), set()
    for path, tree in sources():
        modules = list(imported(tree))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if any(name.split(".")[0] in ("numba", "llvmlite") for name in modules):
            found.add(path)
        if names & INSIDE or any(name.startswith(deep) for name in modules):
            users.add(path)
    assert found and all(path.startswith(f"{BACKEND}/") for path in found), found
    assert users == {f"{BACKEND}/{name}.py" for name in ("_inside", "_inside_rows", "_inside_views")}


PROGRAM = """
import json, sys
sys.path.insert(0, {folder!r})
import test_insides
from dynamics.backend.modes import COMPILATION
numbers = {{name: [value.hex() for value in found.ravel().tolist()] for name, found in test_insides.results().items()}}
inside = sorted(name for name in sys.modules if name.startswith("dynamics.backend._inside"))
print(json.dumps([COMPILATION, inside, numbers]))
"""


def results():
    """A small flow and steps of SGD: rows of a flow's kernel are made as those of ensembles are."""
    classes, rates = SequenceClasses.single_common_token(3, 20), {"eta_y": 1.0, "eta_z": 0.5}
    flow = gradient_flow(classes, t_end=20.0, n_times=4, **rates)
    run = sgd(classes, steps=20, batch_size=8, length=12, seed=3, **rates)
    return {"flow": flow.final.Z, "Y of the flow": flow.final.Y, "sgd": run.final.Z, "Y of sgd": run.final.Y}


@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="kernels are compiled by numba alone, or not at all")
@pytest.mark.parametrize(("collecting", "wrong"), [(True, True), (True, False), (False, True)])
def test_compiling_leaves_the_collector_as_it_was(collecting, wrong):
    """It rests while a kernel is compiled, also where that fails."""
    seen, before = [], gc.isenabled()

    @intrinsic
    def look(_, number):
        seen.append(gc.isenabled())
        if wrong:
            raise TypingError("a mistake")
        return number(number), lambda context, builder, signature, arguments: arguments[0]

    @kernel()
    def used(number):
        return look(number)

    used._cache = NullCache()
    (gc.enable if collecting else gc.disable)()
    try:
        with pytest.raises(TypingError) if wrong else nullcontext():
            assert used(1.0) == 1.0
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()
    assert seen and not any(seen)


@pytest.mark.skipif(IN_PYTHON, reason="kernels are Python")
def test_a_kind_of_layer_compiles_what_it_has_alone():
    """And under a name of its own, by which numba keeps it on disk; the other kinds stay as they are."""
    classes = SequenceClasses.single_common_token(3, 20)
    kinds = {"squared": Parts(squared=True), "hidden": Parts(hidden=True), "plain": Parts()}
    before = {kind: list(made(parts).signatures) for kind, parts in kinds.items()}
    assert len({made(parts).__qualname__ for parts in kinds.values()}) == len(kinds)
    options = {"eta_y": 1.0, "eta_z": 0.5, "steps": 2, "objective": Objective("squared")}
    sgd(classes, **options)
    after = {kind: list(made(parts).signatures) for kind, parts in kinds.items()}
    assert {kind for kind in kinds if after[kind] != before[kind]} <= {"squared"} and after["squared"]
    used = made(Parts(squared=True)).py_func.__code__.co_freevars
    assert {"values", "hidden", "squared", "contrasted", "joins"} <= set(used)


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="there are no other kernels to compare with")
def test_plain_njit_gives_the_same_numbers():
    """To the bit; in flows to rounding, where fewer products and sums become one instruction."""
    assert COMPILATION == "on"
    folder = str(ROOT / "tests" / "dynamics" / "backend")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "YZFLOW_PLAIN_NJIT": "1"}
    environment["NUMBA_OPT"] = "1"  # nothing is kept, and to optimise takes longer than to run; the bits are the same
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=folder)], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    compilation, inside, numbers = json.loads(ended.stdout)
    assert compilation == "plain njit" and inside == []
    for name, ours in results().items():
        theirs = np.array([float.fromhex(value) for value in numbers[name]]).reshape(ours.shape)
        if "sgd" not in name:
            np.testing.assert_allclose(theirs, ours, rtol=1e-13, atol=1e-14)
        else:
            np.testing.assert_array_equal(theirs, ours)
