"""Published numbers: the text that quotes them, the store and a fresh run say the same, and a difference is noticed."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from driving import ROOT
from published.marks import filled, marks, misplaced
from published.pages import check_pages, pages, reasons, sources, write_pages
from published.rooms import check_rooms, earlier, keep, rooms, write_rooms
from published.unmarked import unmarked

from theory.values import Study, plain, record
from theory.values import value as of_theory
from yzflow.values import value
from yzflow.values.marks import as_text, bare

# Those of the studies are run with the studies' own tests.
ROOMS = [room for room in rooms(ROOT) if not room.is_relative_to(ROOT / "studies")]


def test_every_mark_has_the_stored_number():
    assert [str(fault) for fault in check_pages(ROOT)] == []


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS, ids=[str(room.relative_to(ROOT)) for room in ROOMS])
def test_stored_numbers_are_those_of_a_fresh_run(room):
    assert [str(fault) for fault in check_rooms(ROOT, [room])] == []


def test_the_files_that_are_complete_have_no_number_without_a_reason():
    complete = reasons(ROOT)["complete"]
    assert [str(place) for place in unmarked(ROOT, complete)] == [] or not complete


def test_every_reason_and_every_pattern_is_needed_and_said():
    known = reasons(ROOT)
    entries = [*known["kind"], *known.get("place", ()), *known["made"]]
    assert all(entry["reason"].strip() for entry in entries)
    assert all(list(ROOT.glob(pattern)) for pattern in known["sources"])
    assert all(list(ROOT.glob(entry["file"])) for entry in entries if "file" in entry)
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*pages(ROOT), *sources(ROOT)])
    assert [kind["pattern"] for kind in known["kind"] if not re.search(kind["pattern"], text, re.M)] == []


STUDY = """
from theory.values import Study


def circle(radius, n):
    return {
        "area": 3.14159265 * radius**2,
        "large": radius > 2,
        "mean": {"mean": 0.25, "half": 0.125},
        "rows": [{"n": i, "share": i / n} for i in range(1, n + 1)],
    }


STUDIES = (
    Study("disc", circle, {"radius": 1.5, "n": 3}, ("radius below 2",)),
    Study("slow", circle, {"radius": 3.0, "n": 2}, quick=False),
)
"""
PAGE = """# Area <!--v circles.disc.area .1f-->7.1<!--/-->

At radius <!--v circles.disc.radius .1f-->1.5<!--/--> (the setting is <!--v circles.disc radius = {radius:.1f},
n = {n:words}-->radius = 1.5, n = three<!--/-->) discs are <!--v circles.disc.large ?large:small-->small<!--/-->, with
a mean of *<!--v circles.disc.mean +.3f+/- -->+0.250 +- 0.125<!--/-->*. `<!--v this.is code-->9<!--/-->`

<!--table circles.disc.rows | {n} | {share:.2g%} | <b>{share:.0e}</b> |-->
| n | share of <!--v circles.disc.n-->3<!--/--> | |
|---|---|---|
| 1 | 33% | <b>3e-1</b> |
| 2 | 67% | <b>7e-1</b> |
| 3 | 1e+02% | <b>1e0</b> |

A typed 17.5, and $x = 18$, and Theorem 3 of 2023.
"""


REASONS = r"""complete = []
sources = ["theory/*/statements.py"]

[[kind]]
pattern = 'Theorem \d+|\b20\d\d\b'
reason = "theorems and years"
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository with one room and two pages."""
    # Python takes kept bytecode for that of a file of the same size and second, as changes here are.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    room = tmp_path / "studies" / "yzflow_studies" / "circles"
    room.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (room / "values.py").write_text(STUDY)
    (tmp_path / "studies" / "reasons.toml").write_text(REASONS)
    (tmp_path / "README.md").write_text("No number.\n")
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    assert write_rooms(tmp_path, ["circles"]) == ["circles.disc", "circles.slow"]
    return tmp_path


def faults(clone) -> list[str]:
    return [str(fault) for fault in [*check_pages(clone), *check_rooms(clone)]]


def test_a_page_that_is_right_has_no_faults(clone):
    assert faults(clone) == []
    assert write_pages(clone) == write_rooms(clone) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("7.1<", "7.2<", 1, "'7.2', and stored is '7.1'"),
        ("n = three<", "n = two<", 4, "n = two"),
        (">small<", ">large<", 4, "stored is 'small'"),
        ("+0.250", "-0.250", 5, "-0.250"),
        ("| 2 | 67%", "| 2 | 68%", 11, "68%"),
        ("| 2 | 67% | <b>7e-1</b> |\n", "", 10, "2 rows, and 3"),
        ("circles.disc.area", "circles.disc.aria", 1, "circles.disc.aria"),
        ("of <!--v circles.disc.n-->3", "of <!--v circles.disc.n-->4", 8, "'4'"),
        ("disc.area .1f", "disc.area", 1, "how many digits"),
        ("disc.area .1f", "disc.large .1f", 1, "?yes:no"),
        ("{n} |", "{m} |", 10, "'m'"),
        ("7.1<!--/-->", "7.1", 1, "without its end"),
        ("At radius <!--v", "\n<!--v", 4, "begin a line"),
        ("+/- -->", "+/--->", 5, "--"),
        ("n = {n:words}-->", "- n = {n:words}-->", 4, "begins as a list"),
        ("radius = {radius:.1f},", "radius = {radius:.1f}\n", 4, "begins as a list"),
        ("|-->\n| n", "|-->\n\n| n", 7, "without its end"),
    ],
)
def test_what_is_wrong_in_a_page_is_noticed_in_its_line(clone, old, new, line, told):
    assert PAGE.count(old) == 1
    (clone / "docs" / "page.md").write_text(PAGE.replace(old, new))
    found = faults(clone)
    assert any(fault.startswith(f"docs/page.md:{line}:") and told in fault for fault in found), found


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"radius": 1.5', '"radius": 1.6', "setting.radius"),
        ('"area": 7.06', '"area": 7.07', "values.area"),
        ("radius below 2", "radius below 3", "assumptions.0"),
        (".circle", ".disc", "function"),
        ('"large": false', '"large": 0', "values.large"),
        ('"radius": 3.0', '"radius": 2.0', "setting.radius"),
        (' "slow":', ' "fast":', "no study has this name"),
    ],
)
def test_a_changed_store_is_noticed(clone, old, new, told):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert any(
        fault.startswith("studies/yzflow_studies/circles/values.json:") and told in fault for fault in faults(clone)
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("3.14159265", "3.1416"), ('"radius": 1.5', '"radius": 2.5'), ("radius > 2", "radius > 1"), ('"slow"', '"late"')],
)
def test_changed_code_is_noticed_and_write_mends_store_and_page(clone, old, new):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.py"
    path.write_text(STUDY.replace(old, new))
    assert faults(clone)
    write_rooms(clone, ["circles"])
    write_pages(clone)
    assert faults(clone) == []
    if "radius" in old:
        assert "large" in (clone / "docs" / "page.md").read_text().split("# Area")[1].split("discs are")[1][:60]


def test_what_differs_by_rounding_alone_stays_stored(clone):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.json"
    records = json.loads(path.read_text())
    records["disc"]["values"]["area"] *= 1 + 1e-8
    path.write_text(json.dumps(records))
    assert faults(clone) == [] and write_rooms(clone) == []


def test_a_number_that_becomes_true_or_false_is_stored(clone):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.json"
    path.write_text(path.read_text().replace('"large": false', '"large": 0'))
    assert write_rooms(clone) == ["circles.disc"] and '"large": false' in path.read_text()


def test_slow_studies_are_run_by_name_alone(clone):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.py"
    path.write_text(STUDY.replace('"radius": 3.0', '"radius": 4.0'))
    assert write_rooms(clone) == []
    assert any("circles.slow" in fault for fault in faults(clone))
    assert write_rooms(clone, ["circles.slow"]) == ["circles.slow"]
    with pytest.raises(ValueError, match="`names` must be one of"):
        write_rooms(clone, ["circle"])


def test_rooms_of_theory_are_stored_before_others_are_loaded(clone):
    """The register quotes them, and other rooms may read the register."""
    for home in ("theory", "yzflow/papers"):
        (clone / home / "paper").mkdir(parents=True)
    (clone / "theory" / "paper" / "values.py").write_text(STUDY)
    reading = f"from pathlib import Path\nPath({str(clone / 'theory' / 'paper' / 'values.json')!r}).read_text()\n"
    (clone / "yzflow" / "papers" / "paper" / "values.py").write_text(reading + STUDY.replace("disc", "other"))
    assert write_rooms(clone) == ["paper.disc", "paper.other"]


def test_numbers_of_an_earlier_run_say_so_until_the_study_runs(clone):
    rounded = {"area": 28.3, "large": True, "mean": {"mean": 0.25, "half": 0.125}, "rows": []}
    keep(clone, "circles.slow", rounded, "the run of 2024")
    assert earlier(clone) == {"circles.slow": "the run of 2024"} and faults(clone) == []
    with pytest.raises(ValueError, match="must be of a study that is not quick"):
        keep(clone, "circles.disc", rounded, "the run of 2024")
    with pytest.raises(ValueError, match="`earlier` must say which run"):
        keep(clone, "circles.slow", rounded, "")
    # Not by writing into the file that a quick one was not run.
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.json"
    path.write_text(path.read_text().replace('"quick": true,', '"quick": true, "earlier": "long ago",'))
    assert any("earlier is stored as 'long ago'" in fault for fault in faults(clone))
    assert "circles.slow" in write_rooms(clone, ["circles"]) and earlier(clone) == {}


def test_numbers_without_a_mark_are_listed(clone):
    (found,) = unmarked(clone)
    assert (found.file, found.number) == ("docs/page.md", "17.5") and PAGE.split("\n")[found.line - 1].startswith(
        "A typed"
    )
    place = '\n[[place]]\nfile = "docs/page.md"\ntext = "typed 17.5"\nreason = "a test"\n'
    (clone / "studies" / "reasons.toml").write_text(REASONS + place)
    assert unmarked(clone) == []
    (clone / "studies" / "reasons.toml").write_text(REASONS + place.replace("typed", "read"))
    with pytest.raises(ValueError, match=r"stands in docs/page\.md"):
        unmarked(clone)


def test_a_kind_of_one_file_and_a_page_that_is_made(clone):
    reasons_file = clone / "studies" / "reasons.toml"
    known = reasons_file.read_text()
    kind = '\n[[kind]]\nfile = "docs/{}.md"\npattern = "typed"\nreason = "a test"\n'
    for page, left in (("page", []), ("other", ["17.5"])):
        reasons_file.write_text(known + kind.format(page).replace("typed", r"\\d+\\.5"))
        assert [place.number for place in unmarked(clone)] == left
    reasons_file.write_text(known + '\n[[made]]\nfile = "docs/p*.md"\nreason = "a test"\n')
    assert unmarked(clone) == unmarked(clone, ["docs/page.md"]) == []


def test_marks_of_modules_stand_in_text_that_readers_see():
    """A tick or a comment in the source might hide a mark from the check, or show it to nobody."""
    for path in sources(ROOT):
        text = path.read_text(encoding="utf-8")
        constants = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        seen = [mark for one in constants if isinstance(one, str) for mark in marks(one)]
        assert sorted(mark.name for mark in seen) == sorted(mark.name for mark in marks(text)), path
        assert text.count("<!--v ") == len(seen), path


SOURCE = r'''
"""No 1.25 of a module."""

TEXT = f"falls by {2 + 0.5} of 3.25"
FORMULA = "\\frac{1}{4.25} x"
NAME = "5.25"


@styled
def figure(data):
    """A share of 6.25,
    and <!--v circles.disc.area .1f-->7.1<!--/--> of 7.25.

    Parameters
    ----------
    8.25 : none
    """


def other():
    """An inner 9.25."""
'''


def test_numbers_of_captions_help_and_registers_are_listed(clone):
    folder = clone / "theory" / "paper"
    folder.mkdir(parents=True)
    (folder / "statements.py").write_text(SOURCE)
    found = {place.number: place.line for place in unmarked(clone, ["theory/paper/statements.py"])}
    assert found == {"6.25": 11, "7.25": 12, "3.25": 4}
    assert faults(clone) == []
    (folder / "statements.py").write_text(SOURCE.replace("7.1<", "7.2<"))
    (fault,) = faults(clone)
    assert fault.startswith("theory/paper/statements.py:12: circles.disc.area")


@pytest.mark.parametrize(
    ("number", "how", "text"),
    [
        (0.001, ".0e", "1e-3"),
        (12345.6, ".0e", "1e4"),
        (1e-10, ".1e", "1.0e-10"),
        (np.float64(0.9123).item(), ".0%", "91%"),
        (0.0016, ".2g%", "0.16%"),
        (291600, ",", "291,600"),
        (10, "words", "ten"),
        (True, "?all:not all", "all"),
        ([1, 2.5], "{0} to {1:.1f}", "1 to 2.5"),
        ({"a": {"b": 3}}, "{a.b}", "3"),
        ("falls", "", "falls"),
        ({"mean": -0.04, "half": 0.03}, ".2f+/-", "-0.04 +- 0.03"),
        (-0.0003, ".2f", "0.00"),
        (-0.0003, ".0%", "0%"),
        (-0.006, ".2f", "-0.01"),
        (-10, "", "-10"),
        (-0.5, "g", "-0.5"),
    ],
)
def test_how_numbers_are_written(number, how, text):
    assert as_text(number, how) == text


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (0.5, ""),
        (True, ".2f"),
        (True, "?yes"),
        (1, "?yes:no"),
        ("word", ".2f"),
        ({"a": 1}, "{b}"),
        (13, "words"),
        (1, "{"),
    ],
)
def test_what_cannot_be_written_is_refused(number, how):
    with pytest.raises(ValueError, match=r"`(how|number)` must"):
        as_text(number, how)


def test_marks_go_and_code_stays():
    text = bare(PAGE)
    assert not re.search("<!--v circles|<!--table", text) and "`<!--v this.is code-->9<!--/-->`" in text
    assert [line for line in text.split("\n") if line.startswith("|")][2] == "| 1 | 33% | <b>3e-1</b> |"
    assert misplaced(PAGE) == [] and len(marks(PAGE)) == 7
    assert bare(filled("a <!--v x-->1<!--/-->", {"x": 2}.get)) == "a 2"


def test_only_finite_plain_numbers_are_stored():
    assert plain({"a": np.arange(2), "b": np.bool_(True), "c": 1 / 3}) == {"a": [0, 1], "b": True, "c": 0.333333333333}
    for bad in (np.nan, object(), {"a b": 1}, {1: 2}):
        with pytest.raises(ValueError, match="must"):
            plain(bad)
    with pytest.raises(ValueError, match="other names than the setting, but got side"):
        record(Study("a", lambda side: {"side": side}, {"side": 1}), {"side": 1})


def test_a_name_that_nobody_stored_is_refused():
    for find in (value, of_theory):
        with pytest.raises(ValueError, match=r"`name` must be of one stored value, as room.study.number, but got"):
            find("scan_and_snap.nothing.here")


@pytest.mark.slow
def test_the_commands(clone):
    def run(*arguments):
        command = [sys.executable, "-m", "yzflow.values", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)

    outside = run("check")
    assert outside.returncode == 1 and "must be run in a clone of the repository" in outside.stderr
    shutil.copytree(ROOT / "docs" / "writers", clone / "docs" / "writers")
    assert run("check").returncode == 0
    (clone / "docs" / "page.md").write_text(PAGE.replace("7.1<", "7.3<"))
    done = run("check", "--stored")
    assert done.returncode == 1 and done.stdout.startswith("docs/page.md:1: circles.disc.area: ")
    assert run("write").stdout == "changed: docs/page.md\n" and run("check").returncode == 0
    assert "17.5" in run("list").stdout
    assert run("write", "squares").returncode == 2
    room = next((clone / "studies").rglob("values.py"))
    room.write_text(f"import absent_library\n{room.read_text()}")
    missing = run("check")
    assert missing.returncode == 2 and len(missing.stderr.splitlines()) == 1
    assert missing.stderr.startswith("Error: `absent_library` is not installed; the studies need it: ")
