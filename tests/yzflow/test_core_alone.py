"""The core where the other papers are not installed: what they bring is named with the cure, and all else works."""

import json

import pytest
from core_alone import without

from dynamics.support import distributions
from dynamics.support.distributions import MISSION, PAPERS, cure
from yzflow import papers

pytestmark = pytest.mark.slow

# Each answer is one line; a command ends with the exit status of bad input.
ASK = """
from click.testing import CliRunner

import yzflow as yz
from yzflow import cli

def told(function):
    try:
        function()
    except ValueError as error:
        return str(error)

def run(*words):
    ended = CliRunner().invoke(cli.main, words)
    assert ended.exit_code == 2, ended.output
    return ended.output

import json
from yzflow.sweeps import tasks
ended = {
    "statement": told(lambda: yz.check("Bounded Dyck: Theorem 1, sufficiency")),
    "page": told(lambda: yz.page("Sparse averaging: Theorem 2", "never.html")),
    "task": told(lambda: yz.sweep("dyck", {}, store="never")),
    "task of a file": told(lambda: tasks.of_a_file("dyck")),
    "check": run("check", "Bounded Dyck: Theorem 1, sufficiency"),
    "audit": run("audit", "--paper", "Bounded Dyck"),
    "statements": run("statements", "--paper", "sparse_averaging"),
    "figures": run("figures", "--paper", "sparse-averaging"),
    "figure": run("figure", "dyck_balance"),
    "other paper": run("audit", "--paper", "joma"),
    "unknown": told(lambda: yz.check("Lamb: Theorem 1")),
    "ours": told(lambda: yz.check("Scan and Snap: Late attention")),
}
"""


@pytest.mark.parametrize("asked", ["statement", "task", "task of a file", "check", "audit"])
def test_what_bounded_dyck_brings_is_named_with_the_cure(answers, asked):
    assert f"; it {cure('yzflow_bounded_dyck')}, but got" in answers[asked]
    assert answers[asked].count("pip install") == 1


@pytest.mark.parametrize("asked", ["page", "statements", "figures"])
def test_what_sparse_averaging_brings_is_named_with_the_cure(answers, asked):
    assert f"; it {cure('yzflow_sparse_averaging')}, but got" in answers[asked]


def test_a_paper_that_is_not_of_the_mission_is_named_as_well(answers):
    assert f"; it {cure('yzflow_joma')}, but got" in answers["other paper"]


def test_our_theorems_on_the_papers_layer_are_named_with_the_cure(answers):
    said = f"; a theorem that is not in the paper {cure('yzflow_beyond_scan_and_snap')}, but got"
    assert said in answers["ours"] and answers["ours"].count("pip install") == 1


@pytest.mark.parametrize("asked", ["unknown", "figure"])
def test_where_nobody_knows_whose_it_is_the_papers_of_the_mission_are_named(answers, asked):
    assert all(f"; another {cure(package)}" in answers[asked] for package in MISSION)


LIST = """
from yzflow.pages.explorer import html
from yzflow.pages.explorer.registry import panels

def lines(*words):
    ended = CliRunner().invoke(cli.main, words)
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)

shown = {
    "papers": [paper["name"] for paper in lines("papers", "--json")],
    "statements": [entry["paper"] for entry in lines("statements", "--json")],
    "figures": [entry["paper"] for entry in lines("figures", "--json")],
    "panels": [panel.name for panel in panels()],
    "page": html(panels()[1:]),  # the first takes a while
}
print(json.dumps([ended, shown]))
"""


@pytest.fixture(scope="module")
def told():
    """Answers to `ASK` and to `LIST`."""
    return json.loads(without(ASK + LIST, *MISSION, "yzflow_joma", "yzflow_studies"))


@pytest.fixture(scope="module")
def answers(told):
    return told[0]


def test_the_lists_and_the_explorer_hold_the_papers_that_are_there(told):
    _, shown = told
    for kind in ("papers", "statements", "figures"):
        assert set(shown[kind]) == {"Scan and Snap"}
    assert shown["panels"] == ["transition", "own"]
    assert shown["page"].startswith("<!doctype html>")


def test_the_table_of_names_holds_the_papers_of_this_repository_and_their_tasks():
    installed = {paper.name: paper for paper in papers().values() if paper.name in PAPERS}
    assert {PAPERS[name] for name in installed} >= set(MISSION) & set(PAPERS.values())
    for name, paper in installed.items():
        tasks = {other for other, package in PAPERS.items() if package == PAPERS[name]} - {name}
        assert {task.name for task in paper.tasks} == tasks
        assert distributions.plain(paper.slug) == distributions.plain(name)
