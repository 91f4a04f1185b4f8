"""Rules for every study: its numbers, its figures, and the command that shows them."""

import ast
import json
import re
import sys
from importlib import metadata

import pytest
import yzflow_studies
from click.testing import CliRunner
from driving import ROOT
from figure_rules import explained, has_its_own_place
from published.rooms import check_rooms

from theory.values import Study
from yzflow import cli, studies
from yzflow.figures import entries
from yzflow.sweeps import tasks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOMS = studies.rooms_of(yzflow_studies)
FIGURES = {entry.name: entry for room in ROOMS.values() for entry in room.figures}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """The studies of this clone, installed or not, and no others."""
    monkeypatch.setattr(studies, "_registered", [yzflow_studies])
    monkeypatch.setattr(studies, "_points", list)


def study(*arguments):
    return CliRunner().invoke(cli.main, ["study", *arguments])


@pytest.mark.parametrize("name", [name for name, room in ROOMS.items() if room.studies])
def test_stored_numbers_are_those_of_a_fresh_run(name):
    assert [str(fault) for fault in check_rooms(ROOT, [ROOT / "studies" / "yzflow_studies" / name])] == []


@pytest.mark.parametrize("name", FIGURES)
def test_figures_keep_the_rules_of_style(name):
    assert explained(FIGURES[name]) and not has_its_own_place(FIGURES[name])


def test_figures_have_names_that_no_paper_s_has():
    drawn = [entry.name for room in ROOMS.values() for entry in room.figures]
    assert len(drawn) == len(set(drawn)) and not set(drawn) & set(entries())


def test_rooms_import_no_private_name():
    """Studies stand outside: what they need of the packages has a public name."""
    private = []
    for path in (ROOT / "studies").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            private += [
                f"{path.name}: {name}"
                for name in names
                if name.split(".")[0] in ("dynamics", "theory", "yzflow")
                and any(part.startswith("_") for part in name.split("."))
            ]
    assert private == []


def test_every_study_is_listed_in_a_line():
    shown = study()
    assert shown.exit_code == 0 and [line.split()[0] for line in shown.stdout.splitlines()] == list(ROOMS)
    assert all(
        line.split(maxsplit=1)[1] == room.line
        for line, room in zip(shown.stdout.splitlines(), ROOMS.values(), strict=True)
    )
    assert json.loads(study("--json").stdout) == {name: room.line for name, room in ROOMS.items()}


def distribution(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of_this_repository(names):
    return {re.match(r"[\w-]+", name)[0] for name in names if name.startswith("yzflow-")}


def test_one_file_installs_the_studies_with_what_they_import():
    """By what stands at the top of their modules: what a function imports is asked for where it is called."""
    lines = (ROOT / "studies/requirements.txt").read_text(encoding="utf-8").splitlines()
    names = {distribution(line.removeprefix("-e "))["name"] for line in lines if line.startswith("-e ")}
    imported = set()
    for file in (ROOT / "studies").glob("yzflow_studies/**/*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and not file.name.startswith("test_"):
                imported.add((node.module or "").split(".")[0].replace("_", "-"))
    config = distribution("studies")
    extras = of_this_repository(name for extra in config["optional-dependencies"].values() for name in extra)
    needed = of_this_repository(config["dependencies"])
    assert needed <= names <= needed | extras | {"yzflow-studies"}
    assert of_this_repository(imported) == names


def test_without_the_distribution_it_is_named(monkeypatch):
    monkeypatch.setattr(studies, "_registered", [])
    for arguments in ((), ("adam_reverses",)):
        shown = study(*arguments)
        assert shown.exit_code == 2 and "yzflow-studies" in shown.stderr
        assert "`pip install -r studies/requirements.txt`" in shown.stderr
        assert len(shown.stderr.splitlines()) == 1


def circle(radius, seed=0):
    return {"area": 3.0 * radius**2 + seed, "rows": [{"radius": radius}]}


STUDIES = (
    Study("quick", circle, {"radius": 2.0}),
    Study("slow", circle, {"radius": 3.0, "seed": 0}, quick=False),
    Study("old", circle, {"radius": 4.0}, quick=False),
)


@pytest.fixture
def room(tmp_path):
    """A room with a quick study, a slow one and one whose numbers are of an earlier run."""
    records = {one.name: one.run() for one in STUDIES}
    records["old"]["earlier"] = "the run of 2024"
    (tmp_path / "values.json").write_text(json.dumps(records))
    found = studies.Room("somewhere.circles", tmp_path)
    vars(found)["studies"] = STUDIES
    return found


def test_where_numbers_come_from_is_said(room):
    origins = [one.origin for one in studies.numbers(room, quick=True)]
    assert origins == [
        "computed now, as published",
        "as published; not computed now",
        "of an earlier run: the run of 2024",
    ]
    assert {one.origin for one in studies.numbers(room)} == {"computed now, as published"}
    assert [one.values["area"] for one in studies.numbers(room, quick=True)] == [12.0, 27.0, 48.0]


def test_a_number_that_is_not_the_published_one_is_named(room):
    records = json.loads((room.folder / "values.json").read_text())
    records["quick"]["values"]["area"] = 12.5
    (room.folder / "values.json").write_text(json.dumps(records))
    first, *_ = studies.numbers(room)
    assert first.origin == "computed now, unlike the published ones" and first.differ == (
        "area is 12.0, published as 12.5",
    )
    assert first.lines[-1] == "  unlike what is published: area is 12.0, published as 12.5"


def test_a_seed_stands_in_for_that_of_the_settings(room):
    found = {one.name: one for one in studies.numbers(room, seed=5)}
    assert found["circles.slow"].values["area"] == 32.0 and found["circles.slow"].setting["seed"] == 5
    assert found["circles.slow"].origin == "computed now" and not found["circles.quick"].computed
    vars(room)["studies"] = STUDIES[:1]
    with pytest.raises(ValueError, match="`seed` must be left out for circles"):
        list(studies.numbers(room, seed=5))


def test_the_command_computes_prints_and_draws(tmp_path):
    shown = study("class_probabilities", "--quick", "--out", str(tmp_path))
    assert shown.exit_code == 0 and "computed now, as published" in shown.stdout
    facts = json.loads(study("class_probabilities", "--quick", "--out", str(tmp_path), "--json").stdout)
    assert facts["study"] == "class_probabilities" and all(one["computed"] for one in facts["numbers"])
    for arguments, told in (
        (["nothing"], "`NAME` must be a study, such as"),
        (["--quick"], "`--quick` must be left out without `NAME`"),
        (["class_probabilities", "--seed", "1"], "`seed` must be left out"),
    ):
        refused = study(*arguments)
        assert refused.exit_code == 2 and told in refused.stderr


def test_packages_of_entry_points_are_found_and_broken_ones_are_named(monkeypatch):
    points = [metadata.EntryPoint(name, name, studies.GROUP) for name in ("yzflow_studies", "no_such_studies")]
    monkeypatch.setattr(studies, "_registered", [])
    monkeypatch.setattr(studies, "_points", lambda: points)
    with pytest.warns(UserWarning, match="the studies no_such_studies are left out: No module named"):
        assert studies.rooms() == ROOMS


def test_a_task_of_a_study_is_found_by_its_name():
    assert tasks.resolve("real_text").name == "real_text" and "real_text" not in tasks.named()


def test_only_packages_hold_rooms():
    for wrong in (json.decoder, "yzflow_studies"):
        with pytest.raises(ValueError, match="`package` must be a package"):
            studies.register(wrong)
