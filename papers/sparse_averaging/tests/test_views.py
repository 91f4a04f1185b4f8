"""The plot with sliders on the pages of sparse averaging, against the register's formulas."""

import numpy as np
import pytest
from explorer_pages import downloaded, enter, exact, opened, settle
from statement_pages import assert_one_screen, assert_python_agrees, bare, firsts
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.constructions import promised_product
from yzflow_sparse_averaging.settings import PAPER
from yzflow_sparse_averaging.views import VIEWS

from theory import statements


def page_of(browser, number, folder):
    return opened(browser, bare(statements.REGISTER[f"{PAPER}: {number}"], folder))


def column(page, name):
    """Abscissas and values of one curve in the data file."""
    rows = [(row[1], row[2]) for row in downloaded(page, "live")[1:] if row[0] == name]
    return np.array([[float(value or "nan") for value in row] for row in rows]).T


@pytest.mark.parametrize("number", VIEWS.views)
def test_what_sliders_show_is_what_python_computes(shared_browser, tmp_path, number):
    page = page_of(shared_browser, number, tmp_path)
    assert_one_screen(page)
    if number in firsts(VIEWS):
        assert_python_agrees(page, rtol=1e-9)
    assert not shared_browser.problems


def test_sizes_are_those_of_transformers_that_are_built(shared_browser, tmp_path):
    page = page_of(shared_browser, "Conjecture", tmp_path)
    n, groups = column(page, "groups")
    model = averaging.match3_groups(root=5, modulus=7)
    assert np.interp(125, n, groups) == pytest.approx(model.depth * model.heads * model.embedding_dim, rel=2e-3)
    model = averaging.match3_transform(n_tokens=256, modulus=256)
    assert np.interp(256, *column(page, "transform")) == pytest.approx(
        model.depth * model.heads * model.embedding_dim, rel=2e-3
    )
    model = averaging.match3_sorted(n_tokens=256, modulus=2**16)
    promised = np.interp(256, *column(page, "sorted"))
    assert model.depth * model.heads * model.embedding_dim <= promised * 1.01
    assert promised == pytest.approx(promised_product("sorted", 256, 2.0), rel=2e-3)
    crossing = n[np.flatnonzero(groups >= column(page, "bound")[1])[-1]]
    assert 1.5e6 < crossing < 2.5e6  # as the statement says, about 2 10^6


@pytest.mark.parametrize(("number", "largest"), [("Fully connected", 7), ("Recurrent", 7), ("Linear query", 8)])
def test_no_more_tokens_are_averaged_than_there_are(shared_browser, tmp_path, number, largest):
    page = page_of(shared_browser, number, tmp_path)
    enter(page, "set-N", 8 if largest == 7 else 16)
    assert exact(page, "set-q") == largest
    assert not shared_browser.problems


@pytest.mark.parametrize("preset", [0, 1])
def test_answers_are_those_of_a_unit_that_runs(shared_browser, tmp_path, preset):
    page = page_of(shared_browser, "Match2", tmp_path)
    page.select_option("#live-preset-select", str(preset))
    settle(page)
    n, miss = column(page, "miss")
    unit = averaging.match2(n_tokens=100, modulus=31, error=0.01)
    unit = averaging.match2(n_tokens=100, modulus=31, scale=exact(page, "set-scale") * unit.scale)
    for count in (1, 100):
        assert unit([16] * count)[0] == pytest.approx(miss[np.searchsorted(n, count - 0.5)], rel=1e-9)
    assert unit([0])[0] == pytest.approx(column(page, "match")[1][0], rel=1e-9)
    assert (miss[np.searchsorted(n, 99.5)] <= 0.01 * (1 + 1e-9)) == (preset == 0)


def test_the_error_shown_is_the_one_that_a_narrow_layer_cannot_avoid(shared_browser, tmp_path):
    page = page_of(shared_browser, "Fully connected", tmp_path)
    page.select_option("#live-preset-select", "1")  # q = 400 of 1000
    settle(page)
    width, error = column(page, "proved")
    assert error[width == 500] == 0.625 and error[width <= 200].min() == 1 and error[width == 999] == 1 / 799
    assert (error[width < 1000] >= column(page, "share")[1][width < 1000] - 1e-12).all()
