"""The plots with sliders on the pages of bounded Dyck: against Python, and against texts that are written out."""

import numpy as np
import pytest
from explorer_pages import downloaded, enter, exact, opened, settle
from statement_pages import assert_one_screen, assert_python_agrees, bare
from yzflow_bounded_dyck.settings import PAPER
from yzflow_bounded_dyck.views import VIEWS

from theory import statements

# Numbers that are entered before the sliders move: in most views all of it counts.
ENTERED = {
    "D": 3,
    "level": 2,
    "scale": 0.4,
    "off": 0.12,
    "factor": 1.2,
    "live": 0.7,
    "floor": 0.3,
    "angle": 120,
    "turn": 40,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("views")


def page_of(browser, number, folder):
    return opened(browser, bare(statements.REGISTER[f"{PAPER}: {number}"], folder))


def column(page, name, place=2):
    """Times and a column of the data file for one curve."""
    rows = [(row[1], row[place]) for row in downloaded(page, "live")[1:] if row[0] == name]
    return np.array([[float(value or "nan") for value in row] for row in rows]).T


@pytest.mark.parametrize("number", VIEWS.views)
def test_what_sliders_show_is_what_python_computes(shared_browser, folder, number):
    page = page_of(shared_browser, number, folder)
    assert_one_screen(page)
    for name, value in ENTERED.items():
        if page.locator(f"#set-{name}").count():
            enter(page, f"set-{name}", value)
    assert_python_agrees(page, rtol=1e-9)
    assert not shared_browser.problems


def test_a_balanced_layer_never_moves(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 1, necessity", folder)
    enter(page, "set-off", 0)
    assert "no number of pairs moves the features" in page.inner_text("#words")
    _, flat = column(page, "layer")
    assert np.ptp(flat) < 1e-12 < flat[0]
    page = page_of(shared_browser, "Theorem 1, sufficiency", folder)
    enter(page, "set-off", 0.3)
    enter(page, "set-end", 300)
    errors = column(page, "layer")[1]
    assert errors[0] < 0.1 < 0.2 < errors[-1]
    page.select_option("#live-preset-select", "1")  # balanced
    settle(page)
    assert exact(page, "set-off") == 0 and not column(page, "layer")[1].any()


def test_the_bound_is_attained_where_the_page_opens_and_nowhere_else(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 2", folder)
    assert 0 < column(page, "bound", 3)[1][-1] < 0.003
    n, bound = column(page, "bound")
    assert (bound >= exact(page, "set-added")).all() and n[-1] == 10000
    enter(page, "set-angle", 90)
    assert column(page, "bound", 3)[1][-1] == pytest.approx(np.sqrt(2) - 1, rel=0.01)


def test_the_link_forgets_unless_it_is_along_the_ones(shared_browser, folder):
    page = page_of(shared_browser, "Appendix C.7", folder)
    n, linked = column(page, "linked")
    assert np.polyfit(np.log(n[60:]), np.log(linked[60:]), 1)[0] == pytest.approx(-1, abs=0.01)
    enter(page, "set-turn", 0)
    np.testing.assert_allclose(column(page, "linked")[1], column(page, "plain")[1], rtol=1e-12)
