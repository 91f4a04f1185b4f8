"""Panels come from the papers' rooms: one that is deleted takes its panel with it, and no other file knows."""

import dataclasses
import shutil
import subprocess
import sys

import pytest
from driving import ROOT

from dynamics.support.distributions import FOLDERS, installed
from theory import papers
from theory.statements import REGISTER
from yzflow.pages import explorer
from yzflow.pages.explorer import registry
from yzflow.paper import Paper

# The package of each panel.
PANELS = sorted(
    ".".join(path.parent.relative_to(ROOT / top).parts[:-1])
    for part in ("panel", "own_panel")
    for top, pattern in ((".", "yzflow/papers/*"), *((folder, package) for package, folder in FOLDERS.items()))
    for path in (ROOT / top).glob(f"{pattern}/{part}/__init__.py")
    if installed(path.parent.relative_to(ROOT / top).parts[0])
)

ROOMS = {package.rpartition(".")[2].removeprefix("yzflow_") for package in PANELS}
CORE = sorted({package for package in PANELS if package.startswith("yzflow.papers.")})

PROGRAM = """
import dataclasses
from yzflow.pages import explorer
found = [dataclasses.replace(panel, collect=lambda progress: {}) for panel in explorer.panels()]
page = explorer.html(found)
assert [panel.name for panel in found if f'<section id="{panel.name}"' not in page] == []
print(page.count("<section"), *(panel.folder.rpartition(".")[0] for panel in found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", CORE)
def test_without_a_room_the_page_has_none_of_its_panels(tmp_path, room):
    """In a copy of the packages; what is collected for the panels is left out, since it takes long."""
    for package in ("dynamics", "theory", "yzflow"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.rmtree(tmp_path / "theory" / room.rpartition(".")[2])
    shutil.rmtree(tmp_path.joinpath(*room.split(".")))
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    number, *rooms = ended.stdout.split()
    kept = [package for package in PANELS if package != room]
    assert sorted(rooms) == kept and int(number) == len(kept) < len(PANELS)


def test_panels_stand_in_the_order_of_their_places_and_names_are_their_own(monkeypatch):
    found = explorer.panels()
    assert len(found) == len(PANELS)
    assert [panel.place for panel in found] == sorted(panel.place for panel in found)
    two = [dataclasses.replace(panel, place=-panel.place) for panel in found[:2]]
    monkeypatch.setattr(papers, "papers", lambda: {"made_up": Paper("Made up", "made_up", "none", panels=tuple(two))})
    assert registry.panels() == tuple(reversed(two))
    with pytest.raises(ValueError, match=r"must name each figure, task and panel once, but Made up has \w+ twice"):
        Paper("Made up", "made_up", "none", panels=(two[0], two[0]))


def test_a_page_without_panels_is_refused():
    with pytest.raises(ValueError, match="`shown` must hold at least one panel, but got none"):
        explorer.html([])


def test_the_engine_and_its_tests_name_no_paper_and_no_panel():
    papers_in_register = {statement.paper for statement in REGISTER.values()}
    names = papers_in_register | ROOMS | {panel.name for panel in explorer.panels() if panel.opens is None}
    # The name of a panel that opens data is a word of English: as it stands in a script or a selector.
    own = [panel.name for panel in explorer.panels() if panel.opens is not None]
    names |= {form for name in own for form in (f'"{name}"', f"#{name}", f"panels.{name}")}
    assert own
    folders = (ROOT / "yzflow" / "pages", ROOT / "tests" / "yzflow" / "pages")
    files = [path for folder in folders for path in folder.rglob("*.*") if path.suffix != ".pyc"]
    assert len(files) >= 14 and len(names) >= 3 * len(ROOMS)
    found = {(path.name, name) for path in files for name in names if name.lower() in path.read_text("utf-8").lower()}
    assert not found
