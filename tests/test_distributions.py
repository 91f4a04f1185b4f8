"""Papers and tools of the repository, found by their folders: distributions that use public names of each other."""

import ast
import itertools
import re
import sys
from importlib import metadata

import pytest
from core_alone import without
from driving import ROOT
from importing import (
    CORE,
    DISTRIBUTIONS,
    OURS,
    check_no_circle,
    check_one_direction,
    imports_of,
    modules_of,
    package_of,
    source_of,
    tree_of,
)

import yzflow as yz
from dynamics.support import archive, distributions, sealed
from yzflow import _elsewhere

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Modules that simulate: they import nothing that they are checked against.
SIMULATORS = (
    "yzflow_bounded_dyck.dyck",
    "yzflow_bounded_dyck._dyck_kernels",
    "yzflow_sparse_averaging.instances",
    "yzflow_sparse_averaging.trained",
    "yzflow_sparse_averaging._numerics",
    "yzflow_sparse_averaging.attention_unit",
    "yzflow_sparse_averaging.kinds",
    "yzflow_deep",
)
# A package's public names of a simulator.
OFFERED = ("yzflow_bounded_dyck.DyckLanguage",)
each = pytest.mark.parametrize("package", DISTRIBUTIONS)


def project(package):
    """The table ``project`` of ``pyproject.toml``."""
    return tomllib.loads((DISTRIBUTIONS[package] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def needed(package):
    """The names of the distributions that a distribution declares, also for some of its uses."""
    given = project(package)
    lines = itertools.chain(given["dependencies"], *given.get("optional-dependencies", {}).values())
    return {re.match(r"[\w.-]+", line)[0] for line in lines}


def private(name):
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def bound(module):
    """Names in a module that imports bind -> what they stand for, by dotted name."""
    found = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname or package_of(alias.name): alias.name for alias in node.names}
    return found


def private_uses(module):
    """Private names of other packages of ours that a module imports, or takes from what it imports."""
    names = bound(module)
    found = [*imports_of(module, at_import=False)]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            found.append(f"{names[node.value.id]}.{node.attr}")
    others = set(OURS) - {package_of(module)}
    return sorted({name for name in found if package_of(name) in others and private(name)})


# Each stands alone


@each
def test_a_distribution_has_all_that_one_needs(package):
    folder = DISTRIBUTIONS[package]
    for name in ("pyproject.toml", "README.md", f"{package}/py.typed"):
        assert (folder / name).is_file(), name
    assert list((folder / "tests").glob("test_*.py"))
    assert project(package)["name"] == distributions.name_of(package)
    assert project(package)["readme"] == "README.md" and "yzflow" in needed(package)


@each
def test_a_distribution_imports_public_names_only(package):
    found = {module: names for module in modules_of(package) if (names := private_uses(module))}
    assert not found


@each
def test_a_distribution_imports_no_other_that_it_does_not_declare(package):
    others = {package_of(name) for module in modules_of(package) for name in imports_of(module, at_import=False)}
    others &= set(DISTRIBUTIONS) - {package}
    assert {distributions.name_of(other) for other in others} <= needed(package)


@each
def test_files_of_a_distribution_need_each_other_in_one_direction(package):
    check_no_circle(package)
    check_one_direction(package)


def test_a_simulator_imports_no_formula_that_it_is_checked_against():
    modules = [module for module in modules_of(*DISTRIBUTIONS) if module.startswith(SIMULATORS)]
    for simulator in SIMULATORS:
        assert any(module.startswith(simulator) for module in modules), simulator
    for module in modules:
        for name in imports_of(module, at_import=False):
            inside = name.startswith(("dynamics", *SIMULATORS)) or name in {*DISTRIBUTIONS, *OFFERED}
            assert inside or package_of(name) not in OURS, f"{module} imports {name}"


def test_the_core_imports_no_distribution():
    for module in modules_of(*CORE):
        if not re.search("|".join(DISTRIBUTIONS), source_of(module)):
            continue
        assert not [name for name in imports_of(module, at_import=False) if package_of(name) in DISTRIBUTIONS], module
        # By a name in a text only through what says how to get it, or as a paper's parts that are found later.
        texts = [node.value for node in ast.walk(tree_of(module)) if isinstance(node, ast.Constant)]
        named = rf"({'|'.join(DISTRIBUTIONS)})([.:][\w.:]*)?"
        if any(isinstance(text, str) and re.fullmatch(named, text) for text in texts):
            asked = {"dynamics.support.distributions", "yzflow.paper.later"} & imports_of(module, at_import=False)
            assert asked or module == "dynamics.support.distributions", module


# Where one is missing: the sentence


def test_every_distribution_is_listed_with_its_folder():
    assert {package: ROOT / folder for package, folder in distributions.FOLDERS.items()} == DISTRIBUTIONS
    assert set(distributions.MISSION) <= set(distributions.FOLDERS)
    assert distributions.cure("yzflow_watch") == "comes with yzflow-watch: pip install -e tools/watch"


def test_names_from_elsewhere_are_public_there():
    """Under the same name in the stub of their package, as the public face's stub says."""
    face = ast.parse((ROOT / "yzflow" / "__init__.pyi").read_text(encoding="utf-8")).body
    stubbed = {alias.name for line in face if line.module == "_elsewhere" for alias in line.names}
    assert stubbed == set(_elsewhere.HOMES)
    for name, home in _elsewhere.HOMES.items():
        if name in _elsewhere.PACKAGES:
            continue
        stub = (DISTRIBUTIONS[home] / home / "__init__.pyi").read_text(encoding="utf-8")
        assert re.search(rf"\b{name} as {name}\b", stub), name


@pytest.mark.slow
def test_all_names_can_be_imported_where_distributions_are_missing():
    everything = "from yzflow import *; import yzflow as yz; print(*yz.__all__)"
    alone = set(without(everything, *DISTRIBUTIONS).split())
    assert alone == set(yz.__all__) - set(_elsewhere.HOMES)
    assert set(without(everything, "yzflow_watch").split()) == alone | {
        name for name, home in _elsewhere.HOMES.items() if home != "yzflow_watch" and name in yz.__all__
    }


def test_what_a_distribution_itself_lacks_is_not_taken_for_it(monkeypatch):
    def lacks(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(distributions.importlib, "import_module", lacks)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'torch'$") as told:
        _elsewhere.__getattr__("watch")
    assert told.value.name == "torch"
    with pytest.raises(AttributeError, match=r"^module 'yzflow._elsewhere' has no attribute 'nothing'$"):
        _elsewhere.__getattr__("nothing")


# Kinds of files


def test_a_file_of_a_distribution_says_what_reads_it(tmp_path, monkeypatch):
    added = {
        name.rpartition("-")[0]: point.module.partition(".")[0]
        for point in metadata.entry_points(group=sealed.FILES)
        for name in point.load()
    }
    assert added.items() <= distributions.FORMATS.items()
    monkeypatch.setattr(distributions, "installed", lambda package: False)
    monkeypatch.setattr(sealed, "kinds", lambda: sealed.KINDS)
    path = tmp_path / "recorded.npz"
    path.write_bytes(archive.encode({"format": "yzflow-recording-7"}, {}))
    with pytest.raises(ValueError, match=r"kind .yzflow-recording-7., which comes with yzflow-watch: pip install"):
        sealed.kind_of(path)


@pytest.fixture
def kinds_of(monkeypatch):
    """The table of kinds of files with these entry points alone."""

    def made(**points):
        entries = [metadata.EntryPoint(name, value, sealed.FILES) for name, value in points.items()]
        monkeypatch.setattr(sealed.metadata, "entry_points", lambda *, group: entries if group == sealed.FILES else ())
        return sealed.kinds.__wrapped__()

    return made


GOOD = {"yzflow-made-up-1": "made up"}
NO_KIND = {"yzflow-made-up-1": 1}
TAKEN = {"yzflow-made-up-2": "made up", "yzflow-run-1": "another"}
NO_TABLE = "made up"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing.here:KINDS", "No module named 'nothing'"),
        ("made_up_kinds:NOTHING", "has no attribute 'NOTHING'"),
        ("made_up_kinds:NO_TABLE", "must be a dict"),
        ("made_up_kinds:NO_KIND", "must map formats to words"),
        ("made_up_kinds:TAKEN", "must have formats of its own, but got 'yzflow-run-1'"),
    ],
)
def test_kinds_of_files_that_cannot_be_had_are_left_out_with_a_warning(kinds_of, monkeypatch, name, why):
    monkeypatch.setitem(sys.modules, "made_up_kinds", sys.modules[__name__])
    with pytest.warns(UserWarning) as told:
        found = kinds_of(bad=name, good="made_up_kinds:GOOD")
    assert found == sealed.KINDS | GOOD
    (warning,) = told
    text = str(warning.message)
    assert text.startswith(f"the kinds of files of {name} are left out: ") and why in text and "\n" not in text


def test_kinds_of_files_of_one_distribution_are_not_those_of_another(kinds_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "made_up_kinds", sys.modules[__name__])
    with pytest.warns(UserWarning, match="must have formats of its own, but got 'yzflow-made-up-1'"):
        assert kinds_of(one="made_up_kinds:GOOD", two="made_up_kinds:GOOD") == sealed.KINDS | GOOD


def table_of(value):
    """The mapping that an entry point "module:name" names, as it is written."""
    module, _, name = value.partition(":")
    for line in tree_of(module).body:
        if isinstance(line, ast.Assign) and [ast.unparse(target) for target in line.targets] == [name]:
            return line.value
    raise AssertionError(f"{module} has no {name}")


@each
def test_formats_in_the_sources_of_a_distribution_are_in_its_table(package):
    """An entry point of its ``pyproject.toml`` names the table, which yzflow reads where it is installed."""
    formats = {
        node.value
        for module in modules_of(package)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"yzflow-[a-z-]+-\d+", node.value)
    }
    points = project(package).get("entry-points", {}).get(sealed.FILES, {})
    known = {key.value for value in points.values() for key in table_of(value).keys}
    # A manifest is text, whose seals are those of the files.
    assert known == formats - set(sealed.KINDS) - {"yzflow-manifest-1"}
