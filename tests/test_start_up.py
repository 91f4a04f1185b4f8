"""Imports that wait until they are needed, and kernels that compile once.

Nothing here is timed: what takes time is to import numba, xarray and scipy's integrators, and to compile.
"""

import ast
import inspect
import pickle

import numpy as np
import pytest
from driving import python

import dynamics
import theory
from dynamics import Layer, SequenceClasses, gradient_flow, sgd
from dynamics._flow import decoder_kernels as reduced
from dynamics._model import kernels
from dynamics._sgd import sampling

HEAVY = {"numba", "xarray", "pandas", "h5py", "scipy.integrate", "scipy.optimize", "sympy", "matplotlib"}


def imported(statement: str) -> set[str]:
    """The packages of ``HEAVY`` that a new process has imported after ``statement``."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    return HEAVY & set(python(program).split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import dynamics, theory, yzflow", set()),
        ("import yzflow.cli", set()),
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


def test_a_package_has_its_modules_and_nothing_else():
    program = "import dynamics, theory; dynamics.observables.entropy; theory.balance.residual"
    python(program)
    for package in (dynamics, theory):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
            _ = package.nothing


def test_names_are_listed_before_they_are_imported():
    program = "import dynamics, theory\nfor p in (dynamics, theory): assert set(p.__all__) <= set(dir(p))"
    python(program)


def test_an_import_of_the_module_leaves_the_function_sgd_in_place():
    program = "import dynamics.sgd\nfrom dynamics import sgd\nassert callable(sgd) and dynamics.sgd is sgd"
    python(program)


def test_public_names_can_be_pickled():
    for name in dynamics.__all__:
        value = getattr(dynamics, name)
        assert pickle.loads(pickle.dumps(value)) == value


def signatures() -> dict[str, list]:
    """The compiled versions of every kernel."""
    modules = (kernels, reduced, sampling)
    found = {f"{module.__name__}.{name}": value for module in modules for name, value in vars(module).items()}
    return {name: list(value.signatures) for name, value in found.items() if hasattr(value, "signatures")}


def simulate(n_classes, vocab_size, *, order, writeable, steps):
    """Every kind of simulation on data of this size and layer arrays of this layout, in double precision."""
    classes = SequenceClasses.single_common_token(n_classes, vocab_size)
    bags = classes.population()
    parts = Layer.zeros(bags)
    Z, Y = (np.array(array, order=order) for array in (parts.Z, parts.Y))
    Z.flags.writeable = Y.flags.writeable = writeable
    layer = Layer(Z, Y, None, parts.multiplicity)
    layer.gradient(bags), layer.predict(bags), layer.attention(bags)
    for decoder in ("full", "modified", "theory"):
        gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=1.0, n_times=steps + 1, decoder=decoder, init=layer)
    for options in ({"batch_size": steps}, {"batch_size": None, "length": None}, {"optimizer": "adam"}):
        sgd(classes, eta_y=1.0, eta_z=0.5, steps=steps, init=layer, seed=steps, **options)


def test_kernels_compile_once_for_all_sizes_and_layouts():
    simulate(3, 20, order="C", writeable=True, steps=2)
    before = signatures()
    assert sum(map(len, before.values())) > 5
    simulate(5, 7, order="F", writeable=True, steps=3)
    simulate(2, 50, order="C", writeable=False, steps=70)
    simulate(3, 3, order="F", writeable=False, steps=1)
    assert signatures() == before


def test_flow_and_sgd_share_the_kernel_of_the_gradient():
    classes = SequenceClasses.single_common_token(3, 20)
    gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=1.0, n_times=3)
    before = list(kernels.loss_and_gradient.signatures)
    sgd(classes, eta_y=1.0, eta_z=0.5, steps=2)
    assert list(kernels.loss_and_gradient.signatures) == before
