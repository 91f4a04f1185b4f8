"""The page of errata: what matters most comes first, and its filter leaves what fits."""

import re
from importlib import resources

import pytest
from driving import ROOT
from errata_page import GROUPS, errata_page, group
from markdown_pages import rendered

from theory import papers
from theory.layout import reading_order
from theory.statements import Erratum, Hypothesis, Slip
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row

# The page is about our own papers, whatever else is installed.
REGISTER = {statement.id: statement for paper in papers.built_in() for statement in paper.statements}
SCREEN, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def text():
    return (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return rendered("errata", tmp_path_factory.mktemp("pages"))


def groups(text):
    """Heading -> the statements below it, in order."""
    parts = re.split(r"^## (.*): \d+$", text, flags=re.M)[1:]
    title = re.compile(r"^(?:### |<summary>(?!The statement))(.*?)\. ", re.M)
    return {head: title.findall(part) for head, part in zip(parts[::2], parts[1::2], strict=True)}


def test_what_is_false_comes_first_and_what_has_no_erratum_last(text):
    found = groups(text)
    assert list(found) == [
        "False as printed, or as in the talk's slides", *list(GROUPS.values())[1:], "Without an erratum"
    ]  # fmt: skip
    for kind, ids in zip(GROUPS, list(found.values())[:-1], strict=True):
        assert {group(REGISTER[one]) for one in ids} == {kind}
    for one in found["A hypothesis is missing"]:
        assert all(isinstance(erratum, Erratum) for erratum in REGISTER[one].errata)
    assert {one for ids in found.values() for one in ids} == set(REGISTER)
    assert all(not REGISTER[one].errata for one in found["Without an erratum"])
    # A statement that is false has a corrected form; a slip alone changes no number by much.
    assert all(REGISTER[one].corrected for one in next(iter(found.values())))


def test_false_statements_are_in_the_order_of_how_far_they_miss(text):
    first = text.split("\n## ")[1]
    entries = re.split(r"^### ", first, flags=re.M)[1:]
    sizes = [re.search(r"\*\*.*?by up to ([\d.]+)%", entry) for entry in entries]
    measured = [float(f"{float(size[1]):.2g}") for size in sizes if size]
    assert measured == sorted(measured, reverse=True) and len(measured) > 10
    assert [size is None for size in sizes] == sorted(size is None for size in sizes)
    (refuted,) = [place for place, entry in enumerate(entries) if "it is refuted here" in entry]
    assert refuted == len(measured)  # behind what is measured, before what no check sees


@pytest.mark.parametrize("sizes", [(0.9, 0.2), (0.2, 0.9)])
def test_what_misses_more_stands_first(sizes):
    names = ("Scan and Snap: Lemma 4", "Sparse averaging: Rank bound")
    rows = []
    for name, size in zip(names, sizes, strict=True):
        check = next(check for check in REGISTER[name].checks if check.expected)
        label = REGISTER[name].measured(check, error=0.0)
        row = Row(name, check.name, check.expected[0], "one", True, {}, size, 0.0, check.tolerance, True, label)
        rows.append(row)
    page = errata_page(AuditReport(rows, tuple(map(REGISTER.get, names)), {}))
    assert groups(page)["False as printed, or as in the talk's slides"] == sorted(
        names, key=lambda name: -sizes[names.index(name)]
    )
    assert "**As printed it failed, by up to" in page and "**As in the talk's slides it failed, by up to" in page


def test_the_rest_is_in_reading_order(text):
    for ids in list(groups(text).values())[1:]:
        places = [(REGISTER[one].paper, reading_order(REGISTER[one])) for one in ids]
        assert places == sorted(places)


def test_a_statement_without_a_kind_counts_as_false():
    assert group(REGISTER["Scan and Snap: Theorem 4"]) is str  # beside a slip
    assert group(REGISTER["Scan and Snap: Lemma 3"]) is Slip
    assert group(REGISTER["Bounded Dyck: Theorem 1, necessity"]) is Hypothesis


def shown(page):
    return [text.split(". ")[0] for text in page.locator("h3:visible, summary:visible").all_inner_texts()]


def test_the_filter_leaves_what_fits(browser, path):
    page = browser(path)
    assert page.inner_text(".said") == f"{len(REGISTER)} of {len(REGISTER)} statements"
    page.select_option("#errata-paper", "Sparse averaging")
    own = [one.id for one in REGISTER.values() if one.paper == "Sparse averaging"]
    assert sorted(one for one in shown(page) if ": " in one) == sorted(own)
    page.fill("#errata-words", "snap")
    assert [one for one in shown(page) if one in REGISTER] == []
    page.select_option("#errata-paper", "")
    page.fill("#errata-words", "lower limit")
    assert [one for one in shown(page) if one in REGISTER] == ["Scan and Snap: Theorem 4"]
    assert page.inner_text(".said") == f"1 of {len(REGISTER)} statements"


def test_the_page_is_a_few_screens_and_all_is_there_without_a_script(browser, path):
    page = browser(path, **SCREEN, java_script_enabled=False)
    assert page.locator("article").bounding_box()["height"] < 12 * SCREEN["height"]
    assert [one for one in shown(page) if one in REGISTER]
    assert page.locator("#errata-filter input").count() == 0
    narrow = browser(path, **PHONE)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(("size", "scheme"), [(SCREEN, "light"), (PHONE, "dark")], ids=["screen", "phone"])
def test_axe_finds_nothing_to_mend_in_the_filter(browser, path, size, scheme):
    package = pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install 'yzflow[test]'")
    page = browser(path, **size, color_scheme=scheme)
    page.evaluate(resources.files(package).joinpath("axe.min.js").read_text(encoding="utf-8") + ";0")
    found = page.evaluate("axe.run(document.querySelector('#errata-filter'), {resultTypes: ['violations']})")
    assert len(found["passes"]) > 5
    assert [(rule["id"], node["html"][:100]) for rule in found["violations"] for node in rule["nodes"]] == []
