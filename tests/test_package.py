"""The contents of an installation: every module, the stubs, the marks of typed packages and the explorer's page."""

import configparser
import subprocess
import sys

import pytest
from driving import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The files that a wheel would hold, by path, built out of the tree."""
    folder = tmp_path_factory.mktemp("build")
    command = "import setuptools; setuptools.setup()"
    # The lists of files that setuptools keeps go into the folder too: nothing is left in the tree.
    subprocess.run(
        [sys.executable, "-c", command, "-q", "egg_info", "-e", str(folder), "build_py", "-d", str(folder / "lib")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return {str(path.relative_to(folder / "lib")) for path in (folder / "lib").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_all_that_is_no_python_is_installed_too(installed):
    packages = ("dynamics", "theory", "yzflow")
    here = {str(path.relative_to(ROOT)) for name in packages for path in (ROOT / name).rglob("*") if path.is_file()}
    assert installed == {path for path in here if "__pycache__" not in path}
    assert {f"{name}/{file}" for name in packages for file in ("py.typed", "__init__.pyi")} <= installed
    suffixes = {path.rpartition(".")[2] for path in installed}
    assert suffixes - {"json"} == {"py", "pyi", "typed", "html", "css", "js", "txt"}
    assert {path.rpartition("/")[0] for path in installed if path.endswith(".txt")} == {"yzflow/skeleton"}
    tables = {path.rpartition("/")[2] for path in installed if path.endswith(".json")}
    assert tables <= {"values.json", "theorems.json", "definitions.json", "tried.json"}


def test_a_wheel_brings_the_examples_that_need_no_studies():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    brought = set(config["options.data_files"]["share/yzflow/examples"].split())
    alone = set()
    for path in (ROOT / "examples").glob("*.*"):
        text = path.read_text(encoding="utf-8")
        # `public_texts` serves examples of studies alone.
        if "yzflow_studies" not in text and path.stem != "public_texts":
            alone.add(f"examples/{path.name}")
    assert brought == alone
