"""Folders of results as RO-Crates, read back by the library of the format; and examples where there is no clone."""

import ast
import json
import shutil
import subprocess
import sys

import pytest
import xarray as xr
from click.testing import CliRunner
from driving import ROOT
from rocrate.rocrate import ROCrate

import yzflow as yz
from dynamics.support.netcdf import save_dataset
from theory.enclosures import certificate
from theory.enclosures.cells import Cell, decide_cell
from yzflow import crates, examples
from yzflow.audits import _survival_table
from yzflow.cli import main


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "results"
    (root / "part").mkdir(parents=True)
    yz.sgd(yz.SequenceClasses.syn_small(), eta_y=1, eta_z=0.5, steps=2, batch_size=4, seed=7).save(root / "part/run.nc")
    yz.audit(["Scan and Snap: Lemma 2"], quick=True).to_json(root / "audit.json")
    (root / "notes.txt").write_text("what I think of it")
    return root


def test_a_crate_lists_every_file_with_what_made_it(folder):
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    ended = CliRunner().invoke(main, ["crate", str(folder), "--name", "A lemma", "--license", "https://example.org/l"])
    assert ended.exit_code == 0, ended.output
    read = ROCrate(folder)
    assert {entity.id for entity in read.data_entities} == {"part/run.nc", "audit.json", "notes.txt"}
    assert read.name == "A lemma"
    actions = {entity["result"].id: entity for entity in read.get_by_type("CreateAction")}
    assert set(actions) == {"part/run.nc", "audit.json"}
    made = json.loads(actions["part/run.nc"]["description"])
    assert (made["function"], made["arguments"]["eta_z"]) == ("sgd", 0.5)
    assert made["environment"]["blas"] and actions["part/run.nc"]["instrument"]["version"] == yz.__version__
    assert json.loads(actions["audit.json"]["description"])["arguments"]["only"] == ["Scan and Snap: Lemma 2"]
    assert {file: file.read_bytes() for file in before} == before


def test_a_crate_has_what_the_format_must_have(folder):
    """Licence, name, description and date of the root; a software application would need an address."""
    crates.describe(folder)
    metadata = json.loads((folder / crates.METADATA).read_text())["@graph"]
    (root,) = [entity for entity in metadata if entity["@id"] == "./"]
    assert all(root[name] for name in ("license", "name", "description", "datePublished"))
    (licence,) = [entity for entity in metadata if entity["@id"] == root["license"]["@id"]]
    assert "No licence is given" in licence["description"]
    applications = [entity for entity in metadata if "SoftwareApplication" in entity["@type"]]
    assert all("url" in entity for entity in applications)


def test_certificates_are_verified_before_they_are_called_so(tmp_path):
    for name in ("lead_shrinks.npz", "signs.npz"):
        shutil.copy(ROOT / "docs" / "certificates" / name, tmp_path)
    claim, notes, arrays = certificate.read(tmp_path / "signs.npz")
    certificate.write(tmp_path / "forged.npz", {**claim, "decoder": "theory"}, notes, arrays)
    certificate.write(tmp_path / "faster.npz", claim, notes, {**arrays, "radius": arrays["radius"] / 100})
    cell = Cell(2, 3, (1.0, 0.5), 1.0, (0.5, 0.52), (0.5, 0.51), decoder="theory")
    decide_cell(cell, [[-1.0, 0.0, 0.0]], t_end=0.5, degree=2)[1].save(tmp_path / "cell.npz")
    described = crates.describe(tmp_path)
    assert described["cell.npz"].startswith(
        "a certificate of a cell, verified here: theory flow from zero of 2 classes"
    )
    assert described["lead_shrinks.npz"] == (
        "a certificate, verified here: full flow from zero, eta_Y = 1.0, eta_Z = 2.0, time in SGD steps, to t = 60"
    )
    assert described["faster.npz"] == "a certificate that is not verified" and "certif" not in described["forged.npz"]


def test_a_crate_is_described_anew_without_its_own_description(folder):
    assert crates.describe(folder) == crates.describe(folder)
    (folder / "notes.txt").unlink()
    assert set(crates.describe(folder)) == {"part/run.nc", "audit.json"}


def test_a_survival_table_says_what_made_it(tmp_path):
    table = xr.Dataset(attrs={"format": _survival_table.FORMAT, "paper": "Scan and Snap", "seed": 3, "cpu": "6502"})
    save_dataset(table, tmp_path / "survival.nc")
    assert crates.describe(tmp_path) == {"survival.nc": "a survival table of Scan and Snap"}
    [action] = ROCrate(tmp_path).get_by_type("CreateAction")
    assert json.loads(action["description"])["seed"] == "3" and json.loads(action["description"])["cpu"] == "6502"


def test_files_that_say_nothing_or_are_damaged_are_files(folder):
    (folder / "damaged.nc").write_bytes((folder / "part/run.nc").read_bytes()[:-1])
    (folder / "other.json").write_text("[1]")
    described = crates.describe(folder)
    assert described["damaged.nc"] == "application/netcdf" and described["other.json"] == "application/json"


def test_the_folder_one_is_in(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert set(crates.describe(".")) == {"part/run.nc", "audit.json", "notes.txt"}
    assert examples.copy("sweep.toml", ".").resolve() == folder / "sweep.toml"


def test_what_is_no_folder_of_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`folder` must hold a file of results"):
        crates.describe(tmp_path)
    with pytest.raises(ValueError, match="`folder` must be a folder of results"):
        crates.describe(tmp_path / "none")


def test_examples_are_listed_found_and_copied(tmp_path, monkeypatch):
    known = examples.names()
    assert {"phase_transition", "sweep.toml", "test_your_conjecture"} <= set(known) and all(known.values())
    copied = examples.copy("sweep.toml", tmp_path)
    assert copied.read_bytes() == examples.find("sweep.toml").read_bytes()
    with pytest.raises(ValueError, match=r"`to` must hold no sweep\.toml yet"):
        examples.copy("sweep.toml", tmp_path)
    with pytest.raises(ValueError, match="`name` must be"):
        examples.find("../setup.cfg")
    with pytest.raises(ValueError, match="`name` must be a script"):
        examples.run("sweep.toml")


def test_the_help_marks_what_needs_the_studies(tmp_path):
    """By what the scripts import, read by another route."""
    trees = {name: ast.parse(examples.find(name).read_text()) for name in examples.names() if name != "sweep.toml"}
    needing = {
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "yzflow_studies"
    }
    shown = CliRunner().invoke(main, ["example", "--help"]).stdout
    assert needing and {name for name in trees if f"  {name} * " in shown} == needing
    assert all(f"  {name} " in shown for name in examples.names())
    assert "* needs the studies: `pip install -e studies` in a clone" in shown
    assert CliRunner().invoke(main, ["example"]).stdout == shown
    without = CliRunner().invoke(main, ["example", "--copy", str(tmp_path)])
    assert without.exit_code == 2 and "Missing argument 'NAME'" in without.stderr


def test_an_example_gets_its_arguments_and_its_status_is_the_commands(monkeypatch):
    called = []
    monkeypatch.setattr(subprocess, "call", lambda call: called.append(call) or 5)
    ended = CliRunner().invoke(main, ["example", "phase_transition", "--quick", "--out", "x"])
    assert ended.exit_code == 5
    file = str(examples.find("phase_transition"))
    assert called == [[sys.executable, file, "--quick", "--out", "x"]]


def test_examples_of_an_installed_wheel_are_found(tmp_path, monkeypatch):
    """As pip puts them, with the list of files that it keeps."""
    site = tmp_path / "lib/site-packages"
    shared = tmp_path / "share/yzflow/examples"
    (site / "yzflow-1.dist-info").mkdir(parents=True)
    shared.mkdir(parents=True)
    (shared / "mine.py").write_text('"""An example of mine.\n\nMore."""\n')
    (site / "yzflow-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: yzflow\nVersion: 1\n")
    (site / "yzflow-1.dist-info/RECORD").write_text(
        "../../share/yzflow/examples/__pycache__/mine.cpython-311.pyc,,\n../../share/yzflow/examples/mine.py,,\n"
    )
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setattr(examples, "__file__", str(site / "yzflow/examples.py"))
    assert examples.names() == {"mine": "An example of mine."}
