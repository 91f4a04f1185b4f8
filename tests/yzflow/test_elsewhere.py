"""Names that other distributions bring: where one is not installed, a line says which."""

import importlib

import pytest

import yzflow as yz
from dynamics.support import distributions
from yzflow import _elsewhere, figures
from yzflow.sweeps import tasks


@pytest.fixture
def without_a_paper(monkeypatch):
    """One paper of the mission is not installed."""
    monkeypatch.setattr(distributions, "MISSION", ("yzflow_absent",))
    monkeypatch.setattr(distributions, "FOLDERS", {"yzflow_absent": "papers/absent"})


ASKED = {
    "statement": lambda: yz.check("Absent: Theorem 1"),
    "figure": lambda: figures.find("absent_errors"),
    "task": lambda: tasks.resolve("absent_small"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_an_unknown_name_says_which_papers_are_not_installed(ask, without_a_paper):
    with pytest.raises(ValueError, match="another comes with yzflow-absent: pip install -e papers/absent, but got"):
        ask()


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_with_all_papers_installed_nothing_more_is_named(ask, monkeypatch):
    monkeypatch.setattr(distributions, "MISSION", ("yzflow",))
    with pytest.raises(ValueError) as caught:
        ask()
    assert "another comes with" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(_elsewhere.HOMES))
def test_a_name_that_is_not_installed_says_what_brings_it(name, monkeypatch):
    home = _elsewhere.HOMES[name]

    def absent(package):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ImportError) as caught:
        _elsewhere.__getattr__(name)
    folder = distributions.FOLDERS[home]
    assert str(caught.value) == f"`yz.{name}` comes with {home.replace('_', '-')}: pip install -e {folder}"
