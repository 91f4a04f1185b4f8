"""What a person sees in the panel of bounded Dyck languages, against Python."""

import numpy as np
import pytest
from explorer_pages import choose, opened, press, settle, table, values, written

from dynamics import Layer
from theory import balance
from yzflow.papers.bounded_dyck.panel import PANEL, data
from yzflow.papers.bounded_dyck.panel.presets import PRESETS


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANEL]))


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    choose(window, "dyck", 0)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    choose(page, "dyck", place)
    assert page.inner_text("#dyck-preset-text") == PRESETS[place].text
    page.click("#dyck-preset summary")
    assert page.inner_text("#dyck-preset details p") == PRESETS[place].answer
    assert page.inner_text("#dyck-summary")


def test_answers_of_the_bracket_presets():
    """The layer off balance errs from eight pairs on, and with half the violation it survives twice as many."""
    assert balance.residual(data.dyck_layer().Z, data.LANGUAGE) < 1e-12
    assert _first_error(0.5) == 8
    assert 1.7 < _first_error(0.1) / _first_error(0.2) < 2.4
    assert _first_error(0.0) is None


def _off_balance(violation):
    layer = data.dyck_layer()
    return Layer(layer.Z + violation * data.violation_pattern(), layer.Y, layer.V)


def _first_error(violation):
    for pairs in range(101):
        text = "(" + "[]" * pairs + "[]"
        if _off_balance(violation).predict(data.LANGUAGE.bags([text]))[0].argmax() != 1:
            return pairs
    return None


def test_brackets_move_the_output_where_the_layer_is_off_balance(page):
    choose(page, "dyck", 0)
    press(page, "pairs", "End")
    assert values(page, "dyck")["moved"] < 1e-9
    press(page, "violation", *["ArrowRight"] * 37)
    press(page, "pairs", *["ArrowLeft"] * 60)
    page.click("button[aria-label='delete the last bracket']")
    page.focus("#brackets")
    page.keyboard.press("End")
    page.keyboard.type("]")
    settle(page)
    layer = _off_balance(0.37)
    texts = ["([]", "(" + "[]" * 40 + "[]"]
    before, after = layer.predict(data.LANGUAGE.bags(texts))
    shown = values(page, "dyck")
    assert shown["before"] > shown["correct"] + 0.1
    delta = balance.insertions(layer, data.LANGUAGE)
    states = data.LANGUAGE.state_sequence("([]")
    there = balance.contributions(layer, data.LANGUAGE)[states[-1]][states].sum(axis=0)
    expected = {
        "residual": balance.residual(layer.Z, data.LANGUAGE),
        "share": np.linalg.norm(delta[states[-1], 1, 1]) / np.linalg.norm(there),
        "correct": after[1],
        "before": before[1],
        "moved": np.abs(after - before).sum() / 2,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(shown[name], value, rtol=1e-9, err_msg=name)
    n, *outputs = table(page, "insertions").T
    texts = ["(" + "[]" * int(i) + "[]" for i in n]
    np.testing.assert_allclose(np.transpose(outputs), layer.predict(data.LANGUAGE.bags(texts)), rtol=1e-9)
    page.keyboard.type("}")
    settle(page)
    assert "bracket 4" in page.inner_text("#dyck-note") and page.get_attribute("#brackets", "aria-invalid") == "true"
