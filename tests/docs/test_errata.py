"""The page of errata in a browser: its filter leaves what fits, and all is there without a script."""

import driving
import pytest
from markdown_pages import rendered

from theory import papers

# The page is about our own papers, whatever else is installed.
REGISTER = {one.id: one for paper in papers.built_in() for one in paper.statements if one.errata}
SCREEN, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return rendered("errata", tmp_path_factory.mktemp("pages"))


def shown(page):
    titles = page.locator("h3:visible, li > a:visible, li > p > a:visible")
    return [text.split(". ")[0] for text in titles.all_inner_texts()]


def test_the_filter_leaves_what_fits(browser, path):
    page = browser(path)
    assert page.inner_text(".said") == f"{len(REGISTER)} of {len(REGISTER)} statements"
    page.select_option("#errata-paper", "Sparse averaging")
    own = [one.id for one in REGISTER.values() if one.paper == "Sparse averaging"]
    assert sorted(one for one in shown(page) if ": " in one) == sorted(own)
    page.fill("#errata-words", "snap")
    assert [one for one in shown(page) if one in REGISTER] == []
    page.select_option("#errata-paper", "")
    page.fill("#errata-words", "without the integral")
    assert [one for one in shown(page) if one in REGISTER] == ["Scan and Snap: Theorem 4"]
    assert page.inner_text(".said") == f"1 of {len(REGISTER)} statements"


def test_the_page_is_a_few_screens_and_all_is_there_without_a_script(browser, path):
    page = browser(path, **SCREEN, java_script_enabled=False)
    assert page.locator("article").bounding_box()["height"] < 14 * SCREEN["height"]
    assert [one for one in shown(page) if one in REGISTER]
    assert page.locator("#errata-filter input").count() == 0
    narrow = browser(path, **PHONE)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_axe_finds_nothing_to_mend_in_the_filter(browser, path):
    page = browser(path, **PHONE, color_scheme="dark")
    driving.assert_nothing_to_mend(page, least=5, inside="#errata-filter")
