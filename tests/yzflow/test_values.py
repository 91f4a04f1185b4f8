"""Published numbers: the text that quotes them, the store and a fresh run say the same, and a difference is noticed."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from driving import ROOT
from hypothesis import assume, example, given
from hypothesis import strategies as st
from published.keys import Page
from published.pages import check_pages, finder, pages, sources, unkeyed, write_pages
from published.premises import holds
from published.rooms import check_rooms, earlier, keep, rooms, write_rooms

from theory.values import Study, plain, record
from theory.values import value as of_theory
from yzflow.values import value
from yzflow.values.marks import MARK, SMALL, as_text, bare

# Those of the studies are run with the studies' own tests.
ROOMS = [room for room in rooms(ROOT) if not room.is_relative_to(ROOT / "studies")]


def test_every_page_has_the_stored_numbers_and_no_number_without_a_key():
    assert [str(fault) for fault in check_pages(ROOT)] == []


def test_another_digit_in_a_page_that_is_made_of_numbers_is_a_fault(clone):
    """Of each way to make one: a table of a benchmark, and the page of a study in a paper."""
    pytest.importorskip("yzflow_joma")
    changed = {
        "docs/benchmarks/scaling": ("json", "| 0.13 |", "| 0.18 |", 3),
        "papers/joma/in_training": ("png", "12 of 20", "13 of 20", 19),
    }
    shutil.copytree(ROOT / "papers" / "joma" / "yzflow_joma", clone / "papers" / "joma" / "yzflow_joma")
    for stem, (ending, *_) in changed.items():
        for kind in (ending, "md"):
            (clone / stem).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / f"{stem}.{kind}", clone / f"{stem}.{kind}")
    assert check_pages(clone) == []
    for stem, (_, old, new, line) in changed.items():
        page = clone / f"{stem}.md"
        text = page.read_text()
        page.write_text(text.replace(old, new, 1))
        (fault,) = check_pages(clone)
        assert (fault.file, fault.line) == (f"{stem}.md", line) and new in fault.problem and old in fault.problem
        assert write_pages(clone) == [f"{stem}.md"] and page.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS, ids=[str(room.relative_to(ROOT)) for room in ROOMS])
def test_stored_numbers_are_those_of_a_fresh_run(room):
    assert [str(fault) for fault in check_rooms(ROOT, [room])] == []


STUDY = """
from theory.values import Study


def circle(radius, n):
    return {
        "area": 3.14159265 * radius**2,
        "large": radius > 2,
        "said": "large" if radius > 2 else "small",
        "mean": {"mean": 0.25, "half": 0.125},
        "rows": [{"n": i, "share": i / n} for i in range(1, n + 1)],
    }


STUDIES = (
    Study("disc", circle, {"radius": 1.5, "n": 3}, ("radius below 2",)),
    Study("slow", circle, {"radius": 3.0, "n": 2}, quick=False),
)
"""
PAGE = """# Area 7.1<!--=area-->

At radius 1.5<!--=radius--> (2 to 3<!--=n-->, in words three<!--=words-->) discs are small, with a mean of *+0.250 +-
0.125<!--=mean-->*, not 8, not 9. `9<!--=code-->`

<!--table circles.disc.rows | {n} | {share:.2g%} | <b>{share:.0e}</b> |-->
| n | share of 3<!--=n--> | |
|---|---|---|
| 1 | 33% | <b>3e-1</b> |
| 2 | 67% | <b>7e-1</b> |
| 3 | 1e+02% | <b>1e0</b> |

A typed 17.5, and $x = 18$, and Theorem 3 of section 4.

<!-- numbers
area: circles.disc.area .1f
radius: circles.disc.radius .1f
n: circles.disc.n
words: circles.disc.n words
mean: circles.disc.mean +.3f+/-
assert: not circles.disc.large: discs are small
assert: 2 <= circles.disc.n < circles.disc.area and circles.disc.said == "small"
typed: 17.5 8 9 (a test)
typed: 2 (another)
-->
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
        ("7.1<", "7.2<", 1, "circles.disc.area is '7.1'"),
        (" 7.1<", " -7.1<", 1, "circles.disc.area is '7.1'"),
        (" 7.1<", " 2,7.1<", 1, "circles.disc.area is '7.1'"),
        ("=area-->", "=area-->%", 1, "circles.disc.area is '7.1'"),
        ("words three<", "words two<", 3, "is 'three'"),
        ("+0.250", "-0.250", 4, "'+0.250 +- 0.125'"),
        ("| 2 | 67%", "| 2 | 68%", 10, "68%"),
        ("| 2 | 67% | <b>7e-1</b> |\n", "", 9, "2 rows, and 3"),
        ("of 3<!--=n", "of 4<!--=n", 7, "circles.disc.n is '3'"),
        ("7.1<!--=area", "7.1<!--=aria", 1, "`key` must stand in the block at the page's foot, but got aria"),
        ("7.1<!--=area", "7.1<!--=aria", 16, "area: no mark has the key"),
        ("radius: ", "area: ", 17, "area: the key stands twice"),
        ("radius: ", "typed ", 17, "a line is `key: name form`"),
        ("disc.area .1f", "disc.aria .1f", 1, "circles.disc.aria"),
        ("disc.area .1f", "disk.area .1f", 1, "circles.disk.area"),
        ("disc.area .1f", "disc.area", 1, "how many digits"),
        ("disc.area .1f", "disc.large", 1, "a word with an assert"),
        ("{n} |", "{m} |", 6, "'m'"),
        ("|-->\n| n", "|-->\n\n| n", 6, "no whole mark"),
        ("<!--=area-->", "<!--=area", 1, "no whole mark"),
        ("-->\n", "-->\nMore.\n", 15, "no whole mark"),
        ("assert: not ", "assert: ", 21, "assert: circles.disc.large is false"),
        ("discs are small", "discs are large", 21, "'discs are small' stands nowhere"),
        ("2 <= ", "4 <= ", 22, "is false"),
        ("circles.disc.n < ", "circles.disc.m < ", 22, "circles.disc.m"),
        ("n < circles", "n + circles", 22, "`assert` must be made of stored names"),
        ("17.5, and", "17.6, and", 13, "17.6: a number without a key"),
        ("17.5, and", "17.6, and", 23, "17.5: typed, and stands nowhere"),
        ("radius 1.5<!--=radius-->", "radius 1.5", 3, "1.5: a number without a key"),
        ("17.5 8 9 (a test)", "17.5 8 9", 23, "a line is `typed: numbers (reason)`"),
        ("`9<", "9<", 4, "code"),
        (" 7.1<", " \u22127.1<", 1, "circles.disc.area is '7.1'"),
        ("words three<", "words twenty-three<", 3, "is 'three'"),
        ("large: discs", "large:discs", 21, "a line is `assert: premise: words`"),
        ("not 8", "discs are small", 21, "'discs are small' stands 2 times"),
        ("<!-- numbers", "<!--numbers", 15, "no whole mark"),
        ("<!--=area-->", "<!-- =area-->", 1, "no whole mark"),
        ("A typed", "A ` and 6, ", 13, "6: a number without a key"),
        ("A typed", "6.\n\n`\n\nA typed", 13, "6: a number without a key"),
        ("Theorem 3 of", "Theorem 3, 60 of", 13, "60: a number without a key"),
        ("A typed", "A\n60. typed", 14, "60: a number without a key"),
        ("A typed", "    ```\n 6\n\n    ```\n\n4.6 ` A", 18, "4.6: a number without a key"),
        ("A typed", "A .05 of", 13, ".05: a number without a key"),
        ("A typed", "A share, 60x as", 13, "60x: a number without a key"),
    ],
)
def test_what_is_wrong_in_a_page_is_noticed_in_its_line(clone, old, new, line, told):
    whole = PAGE.rpartition("-->\n")
    text = f"{whole[0]}{new}" if old == "-->\n" else PAGE.replace(old, new, 1)
    assert text != PAGE
    (clone / "docs" / "page.md").write_text(text)
    found = faults(clone)
    assert any(fault.startswith(f"docs/page.md:{line}:") and told in fault for fault in found), found


@pytest.mark.parametrize(
    "premise",
    [
        "__import__('os')",
        "circles.disc.n",
        "not circles.disc.n",
        "circles.disc.large and 1",
        "circles.disc.said < 3",
        "(lambda: 1)() == 1",
        "n == 3",
        "circles.disc.n is 3",
        "circles.disc.mean.__class__ == 1",
        "circles.disc.mean != 1",
        "circles.disc.rows == circles.disc.rows",
        "circles.disc.large < 1",
        "1 < 2",
        "1 <",
        "",
    ],
)
def test_a_premise_is_of_comparisons_alone(clone, premise):
    with pytest.raises(ValueError, match=r"`(assert|name)` must be (made of stored names|of one stored value)"):
        holds(premise, finder(clone))


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
    left = faults(clone)  # a person reads the sentences whose premise fails
    assert all(": assert: " in fault for fault in left) and bool(left) == ("radius" in old)


def test_what_differs_by_rounding_alone_stays_stored(clone):
    path = clone / "studies" / "yzflow_studies" / "circles" / "values.json"
    records = json.loads(path.read_text())
    records["disc"]["values"]["area"] *= 1 + 1e-8
    path.write_text(json.dumps(records))
    assert faults(clone) == [] and write_rooms(clone) == []


def test_a_table_may_be_the_last_line_of_a_page(clone):
    page = clone / "docs" / "page.md"
    page.write_text("<!--table circles.disc.rows | {n} |-->\n| n |\n|---|\n| 1 |\n| 2 |\n| 3 |")
    assert faults(clone) == [] and write_pages(clone) == []


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
    path.write_text(STUDY.replace('"radius": 3.0', '"radius": 5.0'))
    stored = path.with_name("values.json").read_bytes()
    for wrong in ("circle", "circles.disk", "circle.disc"):  # refused before the first is run
        with pytest.raises(ValueError, match=rf"^`names` must be one of .*, but got '{wrong.partition('.')[0]}"):
            write_rooms(clone, ["circles", wrong])
    assert path.with_name("values.json").read_bytes() == stored


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


def test_a_word_that_has_to_change_is_typed(clone):
    page = clone / "docs" / "page.md"
    page.write_text("Discs are large<!--=said-->.\n\n<!-- numbers\nsaid: circles.disc.said\n-->\n")
    with pytest.raises(ValueError, match=r"docs/page.md: `said` must stand after 'small', whose words a person types"):
        write_pages(clone)
    assert "large<" in page.read_text()
    page.write_text(page.read_text().replace("large", "small"))
    assert faults(clone) == [] and write_pages(clone) == []


NUMBERS = st.one_of(
    st.tuples(st.integers(-(10**7), 10**7), st.sampled_from(["", ",", "+d"])),
    st.tuples(st.integers(0, 12), st.just("words")),
    st.tuples(st.floats(-1e7, 1e7), st.sampled_from([".0f", ".2f", "+.3f", ".1e", ".0%", ",.0f", ".3g", ".2g%", "g"])),
    st.tuples(
        st.fixed_dictionaries({"mean": st.floats(-9, 9), "half": st.floats(0, 9)}),
        st.sampled_from([".2f+/-", "+.1f+/-"]),
    ),
)
BETWEEN = st.sampled_from([" ", "\n", " to ", "-", "**, ", " | ", " ("])


@example([((400, ""), " ", Random(0)), ((500, ""), "-", Random(1)), ((-5.0, ".1f"), "-", Random(2))])
@example([((2, "words"), " ", Random(0)), ((3, "words"), "-", Random(1))])
@given(st.lists(st.tuples(NUMBERS, BETWEEN, st.randoms()), min_size=1, max_size=5))
def test_written_numbers_are_right_and_nothing_else_changes(entries):
    """Others of the same forms are written over some numbers: only what stands before marks changes."""
    # After a word and a hyphen a word is the end of another, as in twenty-three, and is refused.
    (_, how), between, _ = entries[0]
    assume(not (how == "words" and between == "-"))
    names = [f"a.b.n{i}" for i in range(len(entries))]
    block = "\n".join(
        f"n{i}: {name} {how}" for i, (name, ((_, how), _, _)) in enumerate(zip(names, entries, strict=True))
    )

    def page(values):
        shown = [as_text(value, how) for value, ((_, how), _, _) in zip(values, entries, strict=True)]
        text = "".join(
            f"{between}{one}<!--=n{i}-->" for i, (one, (_, between, _)) in enumerate(zip(shown, entries, strict=True))
        )
        return f"# Page\n\nText{text}.\n\n<!-- numbers\n{block}\n-->\n"

    old = [value for (value, _), _, _ in entries]
    new = [changed(value, random) for (value, _), _, random in entries]
    find = dict(zip(names, new, strict=True)).__getitem__
    assert Page(page(new)).check(find) == [] and Page(page(new)).written(find) == page(new)
    assert Page(page(old)).written(find) == page(new)
    wrong = {key for _, key, _ in Page(page(old)).check(find)}
    assert wrong == {
        f"n{i}" for i, ((value, how), _, _) in enumerate(entries) if as_text(value, how) != as_text(new[i], how)
    }


def changed(value, random):
    if isinstance(value, dict):
        return {key: changed(entry, random) for key, entry in value.items()}
    if isinstance(value, int):
        return random.choice([value, random.randrange(len(SMALL))])
    return random.choice([value, random.uniform(0, 2 * abs(value) + 1)])


def test_marks_of_modules_stand_in_text_that_readers_see():
    """A tick or a comment in the source might hide a mark from the check, or show it to nobody."""
    for path in sources(ROOT):
        text = path.read_text(encoding="utf-8")
        if "<!--=" in text:
            constants = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
            seen = [match["key"] for one in constants if isinstance(one, str) for match in MARK.finditer(one)]
            assert sorted(filter(None, seen)) == sorted(filter(None, (match["key"] for match in MARK.finditer(text))))
            assert text.count("<!--=") == len(seen), path


def test_no_mark_stands_where_nobody_looks():
    """A page or a module that is not among those of the check would keep its old numbers."""
    folders = [ROOT / name for name in ("benchmarks", "formal", "papers", "studies", "theory", "tools", "yzflow")]
    files = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.*"))]
    others = {path for path in files if path.suffix in (".md", ".py") and "tests" not in path.parts}
    texts = {path: path.read_text(encoding="utf-8") for path in others - {*pages(ROOT), *sources(ROOT)}}
    assert [path for path, text in texts.items() if "<!--" in text and bare(text) != text] == []


SOURCE = r'''
"""No 1.25 of a module."""

TEXT = f"falls by {2 + 0.5} of 3.25"
FORMULA = "\\frac{1}{4.25} x"
NAME = "5.25"


@styled
def figure(data):
    """A share of 6.25,
    and 7.1<!--=area--> of 7.25.

    Parameters
    ----------
    8.25 : none
    """


def other():
    """An inner 9.25."""


# <!-- numbers
# area: circles.disc.area .1f
# typed: 3.25 (a test)
# -->
'''


def test_numbers_of_captions_help_and_registers_are_listed(clone):
    folder = clone / "theory" / "paper"
    folder.mkdir(parents=True)
    (folder / "statements.py").write_text(SOURCE)
    found = {place.name: place.line for place in unkeyed(clone, ["theory/paper/statements.py"])}
    assert found == {"6.25": 11, "7.25": 12}
    (folder / "statements.py").write_text(SOURCE.replace("7.1<", "7.2<"))
    assert any(fault.startswith("theory/paper/statements.py:12: area: the text has") for fault in faults(clone))
    assert write_pages(clone) == ["theory/paper/statements.py"] and (folder / "statements.py").read_text() == SOURCE


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
    assert not re.search("<!--=[^c]|<!--table|numbers", text) and "`9<!--=code-->`" in text
    assert [line for line in text.split("\n") if line.startswith("|")][:3:2] == [
        "| n | share of 3 | |",
        "| 1 | 33% | <b>3e-1</b> |",
    ]
    assert bare(SOURCE).endswith('9.25."""\n') and bare("a 2<!--=x-->") == "a 2"


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
    assert done.returncode == 1 and done.stdout.startswith("docs/page.md:1: area: ")
    assert run("write").stdout == "changed: docs/page.md\n" and run("check").returncode == 0
    (clone / "docs" / "page.md").write_text(PAGE.replace("typed: 17.5", "typed:"))
    assert "17.5: a number without a key" in run("list", "docs/page.md").stdout
    assert run("write", "squares").returncode == 2
    room = next((clone / "studies").rglob("values.py"))
    room.write_text(f"import absent_library\n{room.read_text()}")
    missing = run("check")
    assert missing.returncode == 2 and len(missing.stderr.splitlines()) == 1
    assert missing.stderr.startswith("Error: `absent_library` is not installed; the studies need it: ")
