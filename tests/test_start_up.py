"""Imports that wait until they are needed, and kernels that compile once.

Nothing here is timed: what takes time is to import numba, xarray and scipy's integrators, and to compile.
"""

import ast
import functools
import inspect
import pickle
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from driving import ROOT, python
from importing import CORE, check_one_direction, imports_of, modules_of

import dynamics
import theory
import yzflow as yz
from dynamics import Layer, SequenceClasses, gradient_flow, sgd
from dynamics._engine.sgd import steps
from dynamics._model import gradient, kernels, sampling
from dynamics.fields import _kernels as reduced
from dynamics.optimizers import kernels as updates
from yzflow._elsewhere import missing

_OF_SCIPY = {f"scipy.{part}" for part in ("integrate", "optimize", "stats")}
HEAVY = {"numba", "xarray", "pandas", "h5py", "sympy", "matplotlib", *_OF_SCIPY}

# Other people's papers import what they like.
ALONE = (
    "from importlib import metadata as m; f = m.entry_points; m.entry_points = lambda **k: "
    "[p for p in f(**k) if k.get('group') != 'yzflow.papers' or p.value.startswith('yzflow.')]"
)


# In this order: each with what a new process may have of ``HEAVY`` after it, whatever ran before.
IMPORTS = {
    "import dynamics, theory, yzflow": set(),
    "import yzflow.cli": set(),
    "from dynamics.support import checks, files; from dynamics import SequenceClasses, Bags": set(),
    "from theory import attention, decoder, tokens": set(),
    "from dynamics import Layer": {"numba"},
    "from dynamics import gradient_flow": {"numba", "xarray", "pandas"},
    "from yzflow.sweeps import sweep, tasks; tasks.named()": {"numba", "xarray", "pandas"},
}


@pytest.mark.slow
def test_imports_wait_until_they_are_needed():
    lines = [f"{statement}; print(*(name for name in {HEAVY} if name in sys.modules))" for statement in IMPORTS]
    told = python("\n".join(["import sys", ALONE, *lines])).splitlines()
    for line, (statement, allowed) in zip(told, IMPORTS.items(), strict=True):
        assert set(line.split()) <= allowed, statement


PACKAGES = (dynamics, theory, yz)


@functools.cache
def stub(package) -> dict[str, str]:
    """Public name -> the module that it is imported from, as type checkers read it."""
    path = Path(package.__file__).with_suffix(".pyi")
    imports = ast.parse(path.read_text(encoding="utf-8")).body
    assert all(isinstance(node, ast.ImportFrom) and node.level == 1 for node in imports)
    # Without "as" a name of a stub is its own and nobody else's (PEP 484).
    assert all(alias.asname == alias.name for node in imports for alias in node.names), path
    return {
        alias.name: ".".join(filter(None, (package.__name__, node.module, alias.name)))
        for node in imports
        for alias in node.names
    }


DEEPER = """
import yzflow as yz, dynamics, theory
dynamics.observables.entropy; dynamics.data.text.TextCorpus; dynamics.support.checks.positive
theory.early; theory.decoder.gamma; theory.statements.Statement
assert 'Scan and Snap: Theorem 3' in yz.statements.REGISTER
assert 'figure3' in dir(yz.figures) and yz.figures.figure3.number == 3
for name in dir(yz):
    assert all(getattr(yz, name) is getattr(p, name) for p in (dynamics, theory) if name in dir(p)), name
"""
EVERY_MODULE = """
import importlib, pkgutil
before = {package: dir(package) for package in (dynamics, theory, yz)}
for package in before:
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):
        importlib.import_module(module.name)
for package, names in before.items():
    assert dir(package) == names, set(dir(package)) ^ set(names)
    print(*names)
"""


@pytest.mark.slow
def test_public_names_are_those_of_the_stub_and_a_plain_import_offers_what_lies_deeper():
    # Also after submodules were imported, which Python puts into the package.
    for package, line in zip(PACKAGES, python(DEEPER + EVERY_MODULE).splitlines(), strict=True):
        names = set(stub(package)) - (missing() if package is yz else set())
        assert set(line.split()) == set(package.__all__) == names
        with pytest.raises(AttributeError, match="nothing"):
            _ = package.nothing


def test_the_public_face_is_about_fifty_names():
    assert 30 <= len(dir(yz)) <= 57


def room_of(name: str) -> str | None:
    """The paper whose room a module stands in, or that of the contract's name ``theory.NAME``."""
    name = stub(theory).get(name.removeprefix("theory."), name)
    for root in ("theory", "yzflow.papers"):
        rest = name.removeprefix(root + ".").split(".")[0]
        if name.startswith(root + ".") and rest in ROOMS:
            return rest
    return None


ROOMS = {path.name for path in (ROOT / "yzflow" / "papers").iterdir() if (path / "__init__.py").is_file()}


@pytest.mark.slow
def test_no_room_imports_another_and_no_arrow_goes_up():
    assert ROOMS
    order = {package: place for place, package in enumerate(CORE)}
    wrong = []
    for module in modules_of(*order):
        for other in imports_of(module, at_import=False):
            if order.get(other.split(".")[0], -1) > order[module.split(".")[0]]:
                wrong.append(f"{module} imports {other}, which is above it")
            if {room_of(module), room_of(other)} <= ROOMS and room_of(module) != room_of(other):
                wrong.append(f"{module} imports {other}, of another paper")
    assert not wrong


def test_engines_import_no_room():
    names = [name for name in modules_of("yzflow", "theory") if room_of(name) is None]
    assert not [(name, other) for name in names for other in imports_of(name, at_import=False) if room_of(other)]


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(ROOMS))
def test_the_figures_of_a_room_can_be_imported_first(room):
    found = [name for name in modules_of(f"yzflow/papers/{room}") if ".figures." in name]
    if found:
        python(f"import {found[0]}")


@pytest.mark.parametrize("package", CORE)
def test_files_need_each_other_in_one_direction_for_types_too(package):
    check_one_direction(package)


def test_public_names_can_be_pickled():
    for name in dynamics.__all__:
        value = getattr(dynamics, name)
        assert inspect.ismodule(value) or pickle.loads(pickle.dumps(value)) == value


def signatures() -> dict[str, list]:
    """The compiled versions of every kernel."""
    modules = (gradient, kernels, reduced, sampling, steps, updates)
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
    before = list(gradient.plain.signatures)
    sgd(classes, eta_y=1.0, eta_z=0.5, steps=2)
    assert list(gradient.plain.signatures) == before


def test_the_package_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["yzflow", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("yzflow", run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("yzflow, version ")
