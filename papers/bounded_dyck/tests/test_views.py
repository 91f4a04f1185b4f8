"""The plots with sliders on the pages of bounded Dyck: against Python, and against texts that are written out."""

import numpy as np
import pytest
from explorer_pages import downloaded, enter, exact, opened, settle
from statement_pages import assert_one_screen, assert_python_agrees, bare
from yzflow_bounded_dyck import DyckLanguage, balance, gpt, measures
from yzflow_bounded_dyck.questions import QUESTIONS
from yzflow_bounded_dyck.settings import PAPER
from yzflow_bounded_dyck.views import SEED, VIEWS

from dynamics import Layer
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


def _layer(scale, *, off=0.0, factor=1.0):
    """Off balance at the query close (0, 2) of k = 2, D = 3 for the pair of square brackets of level 1."""
    language = DyckLanguage(2, 3)
    exact_one = balance.balanced_layer(language, rng=SEED, scale=scale)
    Z, V = np.array(exact_one.Z), np.array(exact_one.V)
    Z[language.close(0, 2), language.open(1, 1)] += off
    V[language.close(1, 0)] *= factor
    return language, exact_one, Layer(Z, exact_one.Y, V)


def test_features_are_those_of_texts_that_are_written_out(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 1, necessity", folder)
    enter(page, "set-off", 0.2)
    enter(page, "set-end", 400)
    n, distance = column(page, "layer")
    language, _, layer = _layer(0.5, off=0.2)
    for count in (1, 17, 400):
        one, other = layer.features(language.bags(["[]" * count + text for text in ("((()", "([()")]))
        assert distance[np.searchsorted(n, count - 0.5)] == pytest.approx(np.linalg.norm(one - other), rel=1e-9)
    # The share that a pair adds, as yzflow_bounded_dyck.balance has it, sets the pace.
    delta = np.linalg.norm(balance.insertions(layer, language)[language.close(0, 2), 1, 0])
    assert delta > 0 and distance[-1] < 0.5 * distance[0]
    enter(page, "set-off", 0)
    assert "no number of pairs moves the features" in page.inner_text("#words")
    _, flat = column(page, "layer")
    assert np.ptp(flat) < 1e-12 < flat[0]


@pytest.mark.parametrize(("number", "scale"), [("Theorem 1, sufficiency", 0.5), ("Corollary 1", 0.0)])
def test_errors_are_those_of_the_exact_head(shared_browser, folder, number, scale):
    page = page_of(shared_browser, number, folder)
    enter(page, "set-off", 0.3)
    enter(page, "set-end", 300)
    n, errors = column(page, "layer")
    language, exact_one, layer = _layer(scale, off=0.3)
    head = balance.exact_head(exact_one, language)
    for count in (1, 300):
        bags = language.bags(["[]" * count + a + b + "()" for a in "([" for b in "(["])
        found = np.abs(head(layer.features(bags)) - bags.target).max()
        assert errors[np.searchsorted(n, count - 0.5)] == pytest.approx(found, rel=1e-9, abs=1e-9)
    assert errors[0] < 0.1 < 0.2 < errors[-1]
    page.select_option("#live-preset-select", "1")  # balanced
    settle(page)
    assert exact(page, "set-off") == 0 and not column(page, "layer")[1].any()
    assert measures.exact_predictions(_Runs, "closed form") < 1e-9


class _Runs:
    """The part of a run that a check of a closed form uses."""

    class setting:
        language = DyckLanguage(2, 3)


def test_the_bound_is_attained_where_the_page_opens_and_nowhere_else(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 2", folder)
    assert 0 < column(page, "bound", 3)[1][-1] < 0.003
    n, bound = column(page, "bound")
    assert (bound >= exact(page, "set-added")).all() and n[-1] == 10000
    enter(page, "set-angle", 90)
    assert column(page, "bound", 3)[1][-1] == pytest.approx(np.sqrt(2) - 1, rel=0.01)


def test_the_link_forgets_as_fast_as_gpt_has_it(shared_browser, folder):
    page = page_of(shared_browser, "Appendix C.7", folder)
    language = DyckLanguage(2, 3)
    plain = balance.balanced_layer(language, rng=SEED, scale=0.5)
    layer = Layer(plain.Z, plain.Y, plain.V, center=True)
    angle, size = np.radians(60), 0.3
    own = np.full(7, size * np.cos(angle) / np.sqrt(7)) + size * np.sin(angle) / np.sqrt(2) * np.array(
        [1, -1] + 5 * [0]
    )
    n, linked = column(page, "linked")
    _, flat = column(page, "plain")
    for count in (1, 10000):
        found = gpt.distances(layer, language, count, queries=np.tile(own, (language.n_states, 1)))
        assert np.abs(found / linked[np.searchsorted(n, count - 0.5)] - 1).min() < 1e-9
        without = gpt.distances(layer, language, count)
        assert np.abs(without / flat[np.searchsorted(n, count - 0.5)] - 1).min() < 1e-9
    assert np.polyfit(np.log(n[60:]), np.log(linked[60:]), 1)[0] == pytest.approx(-1, abs=0.01)
    enter(page, "set-turn", 0)
    np.testing.assert_allclose(column(page, "linked")[1], flat, rtol=1e-12)


# Questions


def test_questions_and_answers_are_sentences():
    assert all(asked.endswith("?") and answer.endswith(".") for asked, answer in QUESTIONS.values())
