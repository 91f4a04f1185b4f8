"""The numbers and words in the panel of bounded Dyck languages, against Python."""

import numpy as np
import pytest
from explorer_pages import (
    check_preset,
    choose,
    downloaded,
    enter,
    opened,
    press,
    run_program,
    settle,
    table,
    values,
    written,
)
from yzflow_bounded_dyck import balance
from yzflow_bounded_dyck.panel import PANELS, data
from yzflow_bounded_dyck.panel.presets import PRESETS

from dynamics import Layer
from yzflow.values.marks import as_text


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANELS[0]]))


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    choose(window, "dyck", 0)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    check_preset(page, "dyck", place, PRESETS[place])


def test_answers_of_the_bracket_presets():
    """The layer off balance errs from eight pairs on, and with half the violation it survives twice as many."""
    assert balance.residual(data.dyck_layer().Z, data.LANGUAGE) < 1e-12
    assert _first_error(0.5) == 8
    assert 1.7 < _first_error(0.1) / _first_error(0.2) < 2.4
    assert _first_error(0.0) is None
    still, off, small = PRESETS
    assert (still.setting["violation"], off.setting["violation"], small.setting["violation"]) == (0.0, 0.5, 0.2)
    assert still.answer.startswith("No. A balanced layer can have any attention pattern")
    assert off.answer.startswith(as_text(_first_error(off.setting["violation"]), "words").capitalize() + ". ")
    assert small.question.startswith("Halve") and small.answer.startswith("About twice as many: what one pair leaves")


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


TIMES = "\N{MULTIPLICATION SIGN}"


def _attention(page):
    """Name -> share of attention, as the table below the plot has it, in the order of the text."""
    rows = "(rows) => rows.map((row) => [row.cells[0].dataset.value, Number(row.cells[1].dataset.value)])"
    return page.eval_on_selector_all("#attended tbody tr", rows)


@pytest.mark.parametrize(("text", "pairs"), [("([]", 20), ("([](())[", 7), ("((", 0)])
def test_attention_of_the_last_bracket(page, text, pairs):
    """Bars against `Layer.attention`: one for each bracket that was read, the inserted ones together."""
    enter(page, "violation", 0.4)
    enter(page, "pairs", pairs)
    page.fill("#brackets", text)
    settle(page)
    bags = data.LANGUAGE.bags([text[:1] + "[]" * pairs + text[1:]])
    weights = _off_balance(0.4).attention(bags)[0]
    states, opened_at = data.LANGUAGE.state_sequence(text), data.LANGUAGE.state_sequence("([]")[2:]
    rows = _attention(page)
    assert [name for name, _ in rows] == ["start", text[0], f"[{TIMES}{pairs}", f"]{TIMES}{pairs}", *text[1:]]
    shares = np.array([share for _, share in rows])
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    read = np.concatenate([states[:2], opened_at, states[2:]])
    actual = np.zeros(data.LANGUAGE.n_states)
    np.add.at(actual, read, shares)
    np.testing.assert_allclose(actual, weights, rtol=1e-9, atol=1e-14)


def test_the_program_and_the_data_give_what_the_page_shows(page):
    choose(page, "dyck", 1)
    enter(page, "pairs", 14)
    names = run_program(page, "dyck")
    rows = table(page, "insertions")
    output = names["layer"].predict(names["bags"])[0]
    lines = downloaded(page, "dyck")
    assert lines[0] == ["pairs", *(f"probability of {symbol}" for symbol in "()[]")] and len(lines) == 102
    np.testing.assert_allclose(np.array(lines[15], dtype=float), [14, *output], rtol=1e-9)
    np.testing.assert_allclose(np.array(lines[11], dtype=float), rows[1], rtol=1e-12)
    assert values(page, "dyck")["correct"] == pytest.approx(output[1], rel=1e-9)
    assert values(page, "dyck")["residual"] == pytest.approx(
        balance.residual(names["layer"].Z, data.LANGUAGE), rel=1e-9
    )
