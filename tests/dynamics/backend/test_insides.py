"""Numba's inside is touched in one folder, and nothing needs it: plain `numba.njit` gives the same numbers."""

import ast
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from driving import ROOT

from dynamics import SequenceClasses, gradient_flow, gradient_flow_ensemble, sgd
from dynamics._backend.modes import COMPILATION, IN_PYTHON, PLAIN

BACKEND = "dynamics/_backend"
# Names that are numba's own affair, however one comes by them.
INSIDE = {"_compile_core", "_compiler", "_customize_flags", "_compile_for_args", "targetctx"}


def sources():
    for package in ("dynamics", "theory", "yzflow"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    """All modules that a file imports, at its top, within functions, or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func) and node.args:
            yield ast.unparse(node.args[0]).strip("f'\"")


def test_nothing_outside_the_backend_imports_numba():
    found = {path for path, tree in sources() for name in imported(tree) if name.split(".")[0] in ("numba", "llvmlite")}
    assert found and all(path.startswith(f"{BACKEND}/") for path in found), found


@pytest.mark.slow
def test_numbas_inside_is_used_where_its_name_says_so():
    deep = ("numba.core", "numba.np", "numba.extending", "numba.experimental", "llvmlite.ir")
    users = {path for path, tree in sources() for name in imported(tree) if name.startswith(deep)}
    for path, tree in sources():
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if names & INSIDE:
            users.add(path)
    assert users == {f"{BACKEND}/{name}.py" for name in ("inside", "inside_rows", "inside_views")}


PROGRAM = """
import json, sys
sys.path.insert(0, {folder!r})
import test_insides
from dynamics._backend.modes import COMPILATION
numbers = {{name: [value.hex() for value in found.ravel().tolist()] for name, found in test_insides.results().items()}}
inside = sorted(name for name in sys.modules if name.startswith("dynamics._backend.inside"))
print(json.dumps([COMPILATION, inside, numbers]))
"""


def results():
    """A small flow, steps of SGD and two members of an ensemble."""
    classes, rates = SequenceClasses.single_common_token(3, 20), {"eta_y": 1.0, "eta_z": 0.5}
    flow = gradient_flow(classes, t_end=20.0, n_times=4, **rates)
    run = sgd(classes, steps=20, batch_size=8, length=12, seed=3, **rates)
    members = gradient_flow_ensemble({"n_classes": [3, 2], "vocab_size": [20, 50], **rates}, t_end=20.0)
    found = {"flow": flow.final.Z, "Y of the flow": flow.final.Y, "sgd": run.final.Z, "Y of sgd": run.final.Y}
    return found | {"ensemble": members["z"].values, "loss of the ensemble": members["loss"].values}


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="there are no other kernels to compare with")
def test_plain_njit_gives_the_same_numbers():
    """To the bit; in flows and ensembles to rounding, where fewer products and sums become one instruction."""
    assert COMPILATION == "on"
    folder = str(ROOT / "tests" / "dynamics" / "backend")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "YZFLOW_PLAIN_NJIT": "1"}
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
