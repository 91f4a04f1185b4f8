"""The contents of an installation: every module, the stubs, the marks of typed packages and the explorer's page."""

import ast
import configparser
import re
import subprocess
import sys

import pytest
from driving import ROOT
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OTHERS = [path.parent for path in sorted(ROOT.glob("*/*/pyproject.toml")) if path.parts[-3] in ("papers", "tools")]


def built(distribution, folder):
    """The files that a wheel of a distribution would hold, by path, built out of the tree."""
    command = "import setuptools; setuptools.setup()"
    # The lists of files that setuptools keeps go into the folder too: nothing is left in the tree.
    subprocess.run(
        [sys.executable, "-c", command, "-q", "egg_info", "-e", str(folder), "build_py", "-d", str(folder / "lib")],
        cwd=distribution,
        check=True,
        capture_output=True,
    )
    return {str(path.relative_to(folder / "lib")) for path in (folder / "lib").rglob("*") if path.is_file()}


def files_of(distribution, *packages):
    """The files of packages in the tree, by path."""
    paths = (path for name in packages for path in (distribution / name).rglob("*") if path.is_file())
    return {str(path.relative_to(distribution)) for path in paths if "__pycache__" not in path.parts}


@pytest.mark.slow
def test_all_that_is_no_python_is_installed_too(tmp_path):
    packages = ("dynamics", "theory", "yzflow")
    installed = built(ROOT, tmp_path)
    assert installed == files_of(ROOT, *packages)
    assert {f"{name}/{file}" for name in packages for file in ("py.typed", "__init__.pyi")} <= installed
    suffixes = {path.rpartition(".")[2] for path in installed}
    assert suffixes - {"json"} == {"py", "pyi", "typed", "html", "css", "js", "txt"}
    assert {path.rpartition("/")[0] for path in installed if path.endswith(".txt")} == {"yzflow/skeleton"}
    tables = {path.rpartition("/")[2] for path in installed if path.endswith(".json")}
    assert tables <= {"values.json", "theorems.json", "definitions.json", "tried.json"}


def test_the_versions_of_the_tests_are_admitted_and_complete():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if not line.startswith("#"))
    needs = [Requirement(line) for line in config["options"]["install_requires"].strip().splitlines()]
    for need in needs:
        if need.marker is None or need.marker.evaluate({"python_version": "3.11"}):
            assert need.specifier.contains(versions[need.name.replace("_", "-")]), need


def test_each_paper_that_installs_with_the_core_is_cited():
    identifiers = re.findall(r'"(arXiv:\d+\.\d+)"', (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    linked = re.findall(r"\[(arXiv \d+\.\d+)\]", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(linked) == 3 and [name.replace(" ", ":") for name in linked] == identifiers


def test_the_page_for_an_index_begins_like_the_readme_and_links_to_papers_alone():
    page, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("PACKAGE.md", "README.md"))
    until = page.partition("This is the core")[0]
    assert until == readme.replace("<!--- prints -->\n", "")[: len(until)]
    assert all(link.startswith("https://arxiv.org/abs/") for link in re.findall(r"\]\(([^)]*)\)", page))


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


@pytest.mark.slow
@pytest.mark.parametrize("distribution", OTHERS, ids=lambda path: path.name)
def test_the_other_distributions_install_all_of_their_packages(distribution, tmp_path):
    package = f"yzflow_{distribution.name}"
    installed = built(distribution, tmp_path)
    assert installed == files_of(distribution, package)
    assert f"{package}/py.typed" in installed


@pytest.mark.parametrize(
    "distribution", [path for path in OTHERS if path.parent.name == "papers"], ids=lambda path: path.name
)
def test_a_paper_requires_what_it_imports_and_nothing_more(distribution):
    package = f"yzflow_{distribution.name}"
    project = tomllib.loads((distribution / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.match(r"[\w.-]+", line)[0].replace("-", "_") for line in project["dependencies"]}
    extras = {
        re.match(r"[\w.-]+", line)[0] for lines in project.get("optional-dependencies", {}).values() for line in lines
    }
    imported = set()
    for path in (distribution / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            imported |= {name.partition(".")[0] for name in names}
    assert imported & {"dynamics", "theory", "yzflow"}
    # A paper's rivals of reports import a tool, which is not required since it alone asks for them.
    others = {name for name in imported if not re.match(r"(dynamics|theory|yzflow)(_\w+)?$", name)}
    assert required <= {*(others - sys.stdlib_module_names), "yzflow"} <= required | extras
