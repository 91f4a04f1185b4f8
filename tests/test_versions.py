"""Version 1.0.0: one number everywhere, names that moved are where the page says, and files of 0.1.0 are read."""

import importlib
import json
import re
import shutil
from itertools import chain

import numpy as np
import pytest
from driving import ROOT
from packaging.requirements import Requirement
from packaging.version import Version

import theory
import yzflow as yz
from dynamics.support import distributions

if importlib.util.find_spec("tomllib"):
    import tomllib
else:
    import tomli as tomllib

OLD = ROOT / "tests" / "saved_by_0_1_0"
FOLDERS = distributions.FOLDERS | {"yzflow_studies": "studies"}
# By their places: environments inside the clone, under any name, hold other people's files of this name.
PROJECTS = sorted(path for at in ("papers/*", "tools/*", "studies") for path in ROOT.glob(f"{at}/pyproject.toml"))


# One number


def projects():
    """Name -> its table ``project``, of every distribution beside the core."""
    found = [tomllib.loads(path.read_text(encoding="utf-8")) for path in PROJECTS]
    return {table["project"]["name"]: table["project"] for table in found if "project" in table}


def test_every_distribution_has_the_version_of_the_core_and_asks_for_no_older_one():
    known = projects()
    assert len(known) == len(distributions.FOLDERS) + 1
    for name, project in known.items():
        assert project["version"] == yz.__version__, name
        lines = [*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
        ours = [need for need in map(Requirement, lines) if need.name in {"yzflow", *known}]
        assert "yzflow" in {need.name for need in ours}
        for need in ours:
            assert str(need.specifier) == f">={yz.__version__.rpartition('.')[0]}", (name, need)


def test_the_citation_and_the_changelog_have_the_version_with_its_date():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version, date = re.search(r"^version: (\S+)\ndate-released: (\S+)$", citation, re.M).groups()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.M)
    assert released[0] == (version, date) and version == yz.__version__
    assert [Version(number) for number, _ in released] == sorted((Version(n) for n, _ in released), reverse=True)
    assert [day for _, day in released] == sorted((day for _, day in released), reverse=True)


# Names that moved


def names(cell):
    """Dotted names of a table's cell; ``.name`` stands in the module of the name before it."""
    found = []
    for name in re.findall(r"`(\.?[\w.]+)`", cell):
        found.append(found[-1].rpartition(".")[0] + name if name.startswith(".") else name)
    return found


def moved():
    """Rows of the tables of modules: names before, names now, folder or None."""
    text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8").partition("## Arguments")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [(row[0], names(row[0]), names(row[1]), row[2] if len(row) == 3 else None) for row in rows]


def found(name):
    """The module or the attribute of a module by its dotted name; None if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not (name == missing or name.startswith(f"{missing}.") or missing == name.rpartition(".")[0]):
            raise
    outer, _, last = name.rpartition(".")
    return getattr(found(outer), last, None) if outer else None


MOVED = moved()
IDS = [", ".join(row[1][:2]) for row in MOVED]


@pytest.mark.parametrize("before, now, folder", [row[1:] for row in MOVED], ids=IDS)
def test_what_moved_is_where_the_page_says(before, now, folder):
    assert before and now
    for name in now:
        package = name.partition(".")[0]
        if folder is None:
            assert package in ("dynamics", "theory", "yzflow"), name
        else:
            assert FOLDERS[package] == folder
        if importlib.util.find_spec(package) is None:  # not installed here: its file is in the tree
            path = ROOT / FOLDERS[package] / name.replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name
        else:
            assert found(name) is not None, name


@pytest.mark.parametrize("row, before", [row[:2] for row in MOVED], ids=IDS)
def test_no_module_stands_under_its_name_before(row, before):
    if "as files" in row:
        before = [name for name in before if not hasattr(theory, name.rpartition(".")[2])]
    for name in before:
        assert found(name) is None, name


# Files


def test_a_file_of_0_1_0_is_read_and_says_its_version():
    for name in ("flow", "sgd"):
        kept = yz.Trajectory.load(OLD / f"{name}.nc")
        assert json.loads(kept.dataset.attrs["versions"])["yzflow"] == "0.1.0"
        np.testing.assert_allclose(kept.dataset["attention"].sum("token"), 1, rtol=0, atol=1e-12)
        assert kept.dataset.sizes["time"] == 5
    bags = yz.Bags.load(OLD / "bags.npz")
    assert len(bags) == 3 and bags.merge().weight.sum() == pytest.approx(1, rel=1e-12)


def test_a_file_of_0_1_0_is_run_again_and_the_version_named():
    report = yz.rerun(OLD / "flow.nc")
    assert f"version of yzflow: 0.1.0 then, {yz.__version__} now" in report.text()


def test_a_sweep_goes_on_from_a_store_of_0_1_0(tmp_path):
    store = shutil.copytree(OLD / "store", tmp_path / "store")
    kept = {path.name: path.read_bytes() for path in store.iterdir()}
    runs = yz.sweep("syn_small", {"steps": [2]}, store=store, seeds=2, progress=False)
    assert runs.sizes["seed"] == 2 and np.isfinite(runs["loss"]).all()
    assert {path.name: path.read_bytes() for path in store.iterdir()} == kept
