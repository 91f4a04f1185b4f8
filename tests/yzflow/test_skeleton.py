"""The skeleton of a paper passes its own tests as it is written, and names are checked before anything is."""

import subprocess
import sys

import pytest
from click.testing import CliRunner
from driving import ROOT

from yzflow import cli, skeleton


@pytest.mark.slow
def test_the_skeleton_passes_its_tests(tmp_path):
    """As installed: with its entry point in a folder of the path. `.ci/stranger` installs it with pip."""
    done = CliRunner().invoke(cli.main, ["new-paper", "My paper 2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    root = tmp_path / "my_paper_2"
    info = tmp_path / "yzflow_my_paper_2-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: yzflow-my-paper-2\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[yzflow.papers]\nmy_paper_2 = my_paper_2:PAPER\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{root}:{ROOT}", "MPLBACKEND": "agg", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "11 passed" in ended.stdout
    proofs = root / "my_paper_2" / "proofs.py"
    proofs.write_text(proofs.read_text().replace("return z + sp.exp(z) - 1", "return z - sp.exp(z) + 1"))
    broken = [*command, "-k", "proof and climb"]
    ended = subprocess.run(broken, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert "test_paper[proof: climb]" in ended.stdout and ended.returncode == 1


def test_no_word_of_the_template_is_left(tmp_path):
    written = skeleton.write("Own words", tmp_path)
    assert {path.name for path in written} >= {"pyproject.toml", "README.md", "__init__.py", "statements.py"}
    text = "".join(path.read_text() for path in written)
    assert "a_new_paper" not in text and "A new paper" not in text and "Own words" in text


@pytest.mark.parametrize("name", ["", "9 lives", "a/b", "Scan and Snap", "scan_and_snap", "SCAN  and-snap", 3])
def test_names_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="`NAME` must"):
        skeleton.write(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path):
    skeleton.write("Own", tmp_path)
    (tmp_path / "own" / "README.md").write_text("mine")
    with pytest.raises(ValueError, match="`NAME` must be that of a folder that is not there yet"):
        skeleton.write("Own", tmp_path)
    assert (tmp_path / "own" / "README.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["numpy", "NumPy", "json", "yzflow", "scipy"])
def test_a_package_that_would_hide_a_module_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="`NAME` must be another than that of a module that is installed"):
        skeleton.write(name, tmp_path)
    assert not list(tmp_path.iterdir())
