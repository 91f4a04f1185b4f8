"""The examples: listed, found, copied and run, in a clone and where there is none."""

import ast
import subprocess
import sys

import pytest
from click.testing import CliRunner

from yzflow import examples
from yzflow.cli import main


def test_a_copy_into_the_present_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examples.copy("sweep.toml", ".").resolve() == tmp_path / "sweep.toml"


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
    assert "* needs the studies: `pip install -r studies/requirements.txt` in a clone" in shown
    assert CliRunner().invoke(main, ["example"]).stdout == shown
    without = CliRunner().invoke(main, ["example", "--copy", str(tmp_path)])
    assert without.exit_code == 2 and "Missing argument 'NAME'" in without.stderr


def test_a_copy_is_asked_for_before_the_name_or_after_it(tmp_path):
    for number, words in enumerate(
        (["--copy", "{}", "sweep.toml"], ["sweep.toml", "--copy", "{}"], ["sweep.toml", "--copy={}"])
    ):
        folder = tmp_path / str(number)
        ended = CliRunner().invoke(main, ["example", *(word.format(folder) for word in words)])
        assert ended.exit_code == 0 and (folder / "sweep.toml").is_file(), ended.output


def test_an_example_gets_its_arguments_and_its_status_is_the_commands(monkeypatch):
    called = []
    monkeypatch.setattr(subprocess, "call", lambda call: called.append(call) or 5)
    ended = CliRunner().invoke(main, ["example", "phase_transition", "--quick", "--out", "x"])
    assert ended.exit_code == 5
    file = str(examples.find("phase_transition"))
    assert called == [[sys.executable, file, "--quick", "--out", "x"]]


def test_an_example_says_which_distribution_it_needs(monkeypatch):
    monkeypatch.setattr(examples.distributions, "installed", lambda package: package != "yzflow_enclose")
    monkeypatch.setattr(subprocess, "call", lambda command: 0)
    with pytest.raises(ImportError, match=r"^what `certificates` imports comes with yzflow-enclose: pip install -e"):
        examples.run("certificates")
    assert examples.run("phase_transition") == 0


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
