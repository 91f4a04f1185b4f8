"""Lists: complete, a line each, by paper; and errors that name three entries."""

import json
import re
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import yzflow
from dynamics.support import checks
from theory import statements
from yzflow import cli, figures, listing
from yzflow.audits.survival import survival
from yzflow.paper import papers
from yzflow.sweeps import tasks

KINDS = ("statements", "options", "figures")


def known(kind):
    """Names by another way than that of the lists."""
    if kind == "statements":
        return set(statements.REGISTER)
    if kind == "figures":
        return set(figures.entries()) | set(figures.finding.of_studies())
    return {option.name for paper in papers().values() if paper.survival for option in paper.survival.options}


def by_paper(entries):
    order = list(dict.fromkeys(entry["paper"] for entry in entries))
    return sorted(entries, key=lambda entry: order.index(entry["paper"]))


def command(*arguments):
    return CliRunner().invoke(cli.main, arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_listed_once_a_line_each(kind):
    shown = command(kind)
    assert shown.exit_code == 0
    entries = json.loads(command(kind, "--json").stdout)
    assert entries == getattr(listing, kind)()
    names = [entry["name"] for entry in entries]
    assert set(names) == known(kind) and len(names) == len({(entry["paper"], entry["name"]) for entry in entries})
    assert all(entry["line"].strip() for entry in entries)
    lines = [line for line in shown.stdout.splitlines() if line.startswith("  ")]
    assert len(lines) == len(entries) and all(
        line.endswith(entry["line"]) for line, entry in zip(lines, by_paper(entries), strict=True)
    )
    wrapped = listing.text(entries, most=100)
    assert max(map(len, wrapped)) <= 100 and set(" ".join(wrapped).split()) == set(shown.stdout.split())
    for paper in {entry["paper"] for entry in entries}:
        below = shown.stdout.split(f"{paper}\n")[1].split("\n\n")[0].splitlines()
        own = [entry["name"].removeprefix(f"{paper}: ") for entry in entries if entry["paper"] == paper]
        assert [line[2 : 2 + len(name)] for line, name in zip(below, own, strict=True)] == own


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("paper", ["Scan and Snap", "BOUNDED DYCK", "sparse_averaging"])
def test_one_paper(kind, paper):
    entries = getattr(listing, kind)(paper)
    wanted = paper.replace("_", " ").lower()
    assert [one for one in getattr(listing, kind)() if one["paper"].lower() == wanted] == entries
    assert json.loads(command(kind, "--paper", paper, "--json").stdout) == entries
    assert command(kind, "--paper", paper).exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_goes_into_a_file_too(kind, tmp_path):
    shown = command(kind, "--json", "--out", str(tmp_path / "list.json"))
    assert json.loads((tmp_path / "list.json").read_text(encoding="utf-8")) == json.loads(shown.stdout)
    assert command(kind, "--out", str(tmp_path / "none" / "list")).exit_code == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_paper_that_is_none_is_refused(kind):
    ended = command(kind, "--paper", "attention is all")
    assert ended.exit_code == 2
    known = ", ".join(sorted(paper.name for paper in yzflow.papers().values()))
    assert f"`paper` must be one of {known}" in ended.stderr
    with pytest.raises(ValueError, match="`paper` must be text"):
        getattr(listing, kind)(3)


@pytest.mark.parametrize(
    ("act", "near"),
    [
        (lambda: figures.find("fidelty"), '"fidelity"'),
        (lambda: figures.find("figure30"), '"figure3"'),
        (lambda: tasks.resolve("syn_smal"), '"syn_small"'),
        (lambda: yzflow.check("Theorem 33"), '"Scan and Snap: Theorem 3"'),
        (lambda: yzflow.audit(["Theorem 33"]), '"Scan and Snap: Theorem 3"'),
        (lambda: survival(options=["adamm"]), '"adam"'),
        (lambda: figures.save_all({"figure33": None}, "x"), '"figure3"'),
        (lambda: yzflow.sweep("syn_small", {"eta": [1]}, store="x"), '"eta_y"'),
    ],
)
def test_a_wrong_name_gets_three_near_ones(act, near):
    with pytest.raises(ValueError) as caught:
        act()
    message = str(caught.value)
    assert near in message and message.count('"') == 6 and len(message) < 250


def test_few_names_are_listed_and_of_many_three():
    assert checks._MOST_LISTED < 60
    few, many = list("abcde"), [f"name {i}" for i in range(60)]
    with pytest.raises(ValueError, match="`x` must be one of 'a', 'b', 'c', 'd', 'e', but got 'f'"):
        checks.one_of("x", "f", few)
    with pytest.raises(
        ValueError, match=r"`x` must be one of 60 names, such as \"name 42\", .* and .*, but got 'name 4 2'"
    ):
        checks.one_of("x", "name 4 2", many)
    with pytest.raises(ValueError, match=r"`x` must be one of 60 names, such as .*, but got 3"):
        checks.one_of("x", 3, many)


def test_a_number_without_a_figure_says_which_are_drawn_and_one_of_two_papers_says_where():
    numbers = {
        number for entry in figures.entries().values() if entry.paper == "Scan and Snap" for number in entry.numbers
    }
    with pytest.raises(ValueError, match="be the number of a figure that is drawn here: Scan and Snap ") as told:
        figures.find("99", "Scan and Snap")
    assert numbers and numbers <= set(map(int, re.findall(r"\d+", str(told.value).split("; others")[0])))
    by_number = {}
    for _, entry in [("", entry) for entry in figures.entries().values()] + list(figures.finding.of_studies().values()):
        for number in entry.numbers:
            by_number.setdefault(number, set()).add((entry.name, entry.paper))
    for number, entries in by_number.items():
        try:
            figures.find(str(number))
        except ValueError as error:
            assert all(f"{name} ({paper})" in str(error) for name, paper in entries)


def test_a_number_where_no_figure_has_one_asks_for_a_name(monkeypatch):
    mine = SimpleNamespace(name="mine", paper="Outside", numbers=())
    monkeypatch.setattr(figures.finding, "entries", lambda: {"mine": mine})
    monkeypatch.setattr(figures.finding, "of_studies", dict)
    with pytest.raises(ValueError, match="`NAME` must be the name of a figure, as none of Outside has a number"):
        figures.find("3")
