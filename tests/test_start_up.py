"""Imports that wait until they are needed, and kernels that compile once.

Nothing here is timed: what takes time is to import numba, xarray and scipy's integrators, and to compile.
"""

import ast
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import dynamics
import theory

HEAVY = {"numba", "xarray", "pandas", "h5py", "scipy.integrate", "scipy.optimize", "sympy", "matplotlib"}


def imported(statement: str) -> set[str]:
    """The packages of ``HEAVY`` that a new process has imported after ``statement``."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return HEAVY & set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import dynamics, theory, lab", set()),
        ("import lab.cli", set()),
        ("from dynamics import checks, files, SequenceClasses, Bags", set()),
        ("from theory import attention, decoder, tokens", set()),
        ("from dynamics import Layer", {"numba"}),
        ("from dynamics import gradient_flow", {"numba", "xarray", "pandas"}),
    ],
)
def test_imports_wait_until_they_are_needed(statement, allowed):
    assert imported(statement) <= allowed


def test_public_names_are_where_type_checkers_look_for_them():
    tree = ast.parse(inspect.getsource(dynamics))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in guarded.body for alias in node.names}
    assert seen == {name: f"dynamics.{home}" for name, home in dynamics._HOMES.items()}
    assert {*seen, "__version__"} == set(dynamics.__all__)
    for name, module in seen.items():
        assert getattr(dynamics, name).__module__ == module
    assert set(dynamics.__all__) <= set(dir(dynamics))
    assert set(theory.__all__) <= set(dir(theory))


def test_a_package_has_its_modules_and_nothing_else():
    program = "import dynamics, theory; dynamics.observables.entropy; theory.balance.residual"
    subprocess.run([sys.executable, "-c", program], check=True)
    for package in (dynamics, theory):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
            _ = package.nothing


def test_an_import_of_the_module_leaves_the_function_sgd_in_place():
    program = "import dynamics.sgd\nfrom dynamics import sgd\nassert callable(sgd) and dynamics.sgd is sgd"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_can_be_pickled():
    for name in dynamics.__all__:
        value = getattr(dynamics, name)
        assert pickle.loads(pickle.dumps(value)) == value
