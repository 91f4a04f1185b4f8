"""The numbers and words in the panel for a reader's own classes, against Python."""

import json
import re
from urllib.parse import urlencode

import numpy as np
import pytest
from explorer_pages import (
    check_preset,
    choose,
    downloaded,
    enter,
    opened,
    run_program,
    settle,
    table,
    values,
    written,
)

import yzflow as yz
from yzflow.papers.scan_and_snap.own_panel import PANEL
from yzflow.papers.scan_and_snap.own_panel.data import LIMITS
from yzflow.papers.scan_and_snap.own_panel.presets import PRESETS


def _flow(setting, *, query=None, decoder="full"):
    """The flow of a preset's table by Python; `query` for all classes in place of their own."""
    rows = setting["rows"]
    counts = np.array([row[3:] for row in rows], dtype=float)
    queries = [row[1] if query is None else query for row in rows]
    names = [*setting["tokens"], *(one for one in dict.fromkeys(queries) if one not in setting["tokens"])]
    classes = yz.SequenceClasses(
        counts / counts.sum(axis=1, keepdims=True),
        [names.index(one) for one in queries],
        vocab_size=setting["M"],
        token_names=names,
        class_names=[row[0] for row in rows],
    )
    return yz.gradient_flow(
        classes, eta_y=setting["etaY"], eta_z=setting["etaZ"], t_end=setting["end"], decoder=decoder
    )


def _gain(flow, name):
    """By how much attention of a class on each token changes, by name."""
    shares = flow.named["attention"].sel(next_token=name)
    change = shares.isel(time=-1) - shares.isel(time=0)
    return dict(zip(change["token"].values.tolist(), change.values.tolist(), strict=True))


def test_answers_of_the_presets():
    toy, queries, ratios = (preset.setting for preset in PRESETS)
    cat = _gain(_flow(toy), "cat")
    assert max(cat, key=cat.get) == "purrs" and cat["the"] < 0 and cat["a"] < 0
    assert _gain(_flow(queries), "hay")["warm"] < -0.01 < 0.01 < _gain(_flow(queries, query="eats"), "hay")["warm"]
    z = _flow(queries, query="eats").named["z"].isel(time=-1).sel(token="warm")
    assert z.item() > 0 > _flow(queries).named["z"].isel(time=-1, query=0).sel(token="warm").item()
    both = _flow(ratios)
    hello, free, meeting = both.dataset["z"].isel(time=-1, query=0).values
    assert hello < 0 < free and free == pytest.approx(meeting, rel=1e-6)
    for name, more in (("spam", "free"), ("letter", "meeting")):
        gain = _gain(both, name)
        assert max(gain, key=gain.get) == more


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANEL]))


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    choose(window, "own", 0)
    window.click("#own-reset")
    settle(window)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    check_preset(page, "own", place, PRESETS[place])


@pytest.mark.parametrize(("eta_y", "kept"), [(0.9999996, False), (1.0000004, True)])
def test_a_margin_is_not_rounded_across_its_threshold(page, eta_y, kept):
    enter(page, "own-eta-z", 0.01)
    enter(page, "own-eta-y", eta_y)
    shown = page.inner_text("#own-fast")
    assert values(page, "own")["fast"] == pytest.approx(eta_y, rel=1e-12)
    assert (float(shown) >= 1) == kept and float(shown) == pytest.approx(eta_y, rel=1e-4)
    assert ("Assumption 1(c)" in page.inner_text("#own-verdict")) == kept
    assert page.evaluate("yzflow.widgets.short(1.0000004, (value) => value > 1)") == "1.0000004"
    assert page.evaluate("yzflow.widgets.short(0.99999961)") == "1" and len(shown) <= 9


def _go_to(page, percent):
    """Move the time shown."""
    page.eval_on_selector(
        "#own-time", f"(node) => {{ node.value = {percent}; node.dispatchEvent(new Event('input')); }}"
    )


def _write(page, field, text):
    """Type into a field of the table."""
    page.fill(f"#own-{field}", text)
    page.keyboard.press("Tab")
    settle(page)


@pytest.mark.parametrize("level", ["full", "modified"])
def test_attention_over_time_and_the_sentence(page, level):
    page.check(f"#own-level-{level}")
    page.select_option("#own-shown", "1")
    settle(page)
    flow = _flow(PRESETS[0].setting, decoder=level)
    shares = flow.named["attention"].sel(next_token="dog")
    rows = table(page, "own-share")
    assert rows[0][0] == 0 and rows[-1][0] == 700
    np.testing.assert_allclose(rows[-1][1:], shares.isel(time=-1).values[[0, 1, 2, 4]], atol=1e-6)
    np.testing.assert_allclose(rows[0][1:], np.array([10, 5, 3, 5]) / 23, atol=1e-12)
    start, end = shares.isel(time=0), shares.isel(time=-1)
    sentence = page.inner_text("#own-summary")
    said = [float(number) for number in re.findall(r"\d\.\d+", sentence)]
    expected = [one.sel(token=token).item() for token in ("the", "barks") for one in (start, end)]
    assert said == [float(f"{value:.2g}") for value in expected]
    words = r"What you see: for class “dog” attention on “the” falls most, .*; “barks” gains most, .*"
    assert re.fullmatch(rf"{words} \({level} flow, t up to 700\)\.", sentence)


def test_the_bars_and_probabilities_at_the_time_shown(page):
    _go_to(page, 50)
    time = float(re.search(r"t = ([\d.]+)", page.inner_text("#own-now-text"))[1])
    now = page.eval_on_selector_all("#own-now-words tbody tr", "(all) => all.map((row) => row.cells[1].dataset.value)")
    nearest = _flow(PRESETS[0].setting)
    between = nearest.named["attention"].sel(next_token="cat").interp(time=time).values[:4]
    np.testing.assert_allclose(np.array(now, dtype=float), between, atol=3e-3)
    page.select_option("#own-shown", "2")
    settle(page)
    bars = page.eval_on_selector_all(
        "#own-now-canvas rect:not(.ahead)[style]",
        """(all) => all.map((one) => {
          const [box, canvas] = [one.getBoundingClientRect(), one.closest(".canvas").getBoundingClientRect()];
          return [box.height, box.left >= canvas.left && box.right <= canvas.right];
        })""",
    )
    assert len(bars) == 3 and all(inside for _, inside in bars)  # the tokens of bird
    shares = page.eval_on_selector_all(
        "#own-now-words tbody tr", "(all) => all.map((row) => row.cells[1].dataset.value)"
    )
    heights = np.array([height for height, _ in bars])
    np.testing.assert_allclose(heights / heights.sum(), np.array(shares, dtype=float), rtol=0.02)
    right = table(page, "own-right")
    end = float(np.exp(-nearest.dataset["loss"].isel(time=-1)))
    assert np.exp(np.log(right[-1][1:]).mean()) == pytest.approx(end, rel=1e-6)


def test_edited_classes_give_the_program_and_the_data_that_python_computes(page):
    _write(page, "token-0", 'th"e, \\')
    _write(page, "class-0", "Kätzchen")
    _write(page, "query-1", "your")
    _write(page, "weight-2", "2.5")
    _write(page, "cell-0-5", "1e1")
    page.click("#own-add-token")
    _write(page, "token-6", "wings_Y")
    _write(page, "cell-2-6", "4")
    page.click("#own-drop-token-1")
    page.click("#own-add-class")
    page.keyboard.insert_text("cow")
    page.keyboard.press("Tab")
    settle(page)
    assert page.inner_text("#own-wrong") == ""
    assert page.eval_on_selector_all("#own-shown option", "(all) => all.map((node) => node.textContent)") == [
        "Kätzchen", "dog", "bird", "cow",
    ]  # fmt: skip
    names = run_program(page, "own")
    classes, flow = names["classes"], names["flow"].dataset
    assert classes.token_names == ('th"e, \\', "tail", "purrs", "barks", "sings", "wings_Y", "my", "your")
    assert classes.class_names == ("Kätzchen", "dog", "bird", "cow") and classes.vocab_size == 20
    np.testing.assert_allclose(classes.class_weights, np.array([1, 1, 2.5, 1]) / 5.5)
    np.testing.assert_allclose(classes.probabilities.toarray()[0], np.array([10, 3, 4, 0, 10, 0]) / 27)
    head, *lines = downloaded(page, "own")
    assert head[1] == 'attention of Kätzchen on th"e, \\' and head[-1] == "probability of cow"
    numbers = np.array(lines, dtype=float)
    places = np.argwhere(classes.probabilities.toarray() > 0)
    assert len(head) == 1 + len(places) + 4
    end = flow["attention"].isel(time=-1).values
    np.testing.assert_allclose(numbers[-1, 1 : 1 + len(places)], [end[n, l] for n, l in places], atol=1e-6)
    assert numbers[-1, 0] == 700
    page.select_option("#own-shown", "2")
    settle(page)
    assert "wings_Y" in page.inner_text("#own-share .key")  # no subscript, as η_Y has
    margins = values(page, "own")
    assert margins["query"] == 0.5 and margins["uniform"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("cell-0-1", "-3", "How often “a” occurs before “cat” must be a number from 0 to 1000000000, but it is -3."),
        ("cell-1-0", "0,5", "but it is 0,5."),
        ("weight-2", "0", "The weight of “bird” must be a number above 0 and at most 1000000000, but it is 0."),
        ("token-2", " ", "Token 3 must have a name of 1 to 200 characters."),
        ("class-1", "x" * 201, "Class 2 must have a name of 1 to 200 characters."),
        ("token-1", "the", "Two tokens must have different names, but both are “the”."),
    ],
)
def test_what_is_wrong_is_marked_and_said_and_changes_nothing(page, field, text, says):
    before = table(page, "own-share")
    _write(page, field, text)
    assert page.get_attribute(f"#own-{field}", "aria-invalid") == "true"
    said = page.inner_text("#own-wrong")
    assert says in said and said.endswith("The plots show the last valid table.")
    assert (table(page, "own-share") == before).all()
    good = {"c": "7", "w": "7"}.get(field[0] if field.startswith(("cell", "weight")) else "", "other")
    _write(page, field, good)
    assert page.get_attribute(f"#own-{field}", "aria-invalid") is None and not page.inner_text("#own-wrong")


def test_a_row_of_zeros_is_refused_whole(page):
    for l in range(6):
        _write(page, f"cell-2-{l}", "" if l else "0")
    assert "At least one token must occur before “bird”" in page.inner_text("#own-wrong")
    marked = page.eval_on_selector_all("#own-table [aria-invalid]", "(all) => all.map((node) => node.id)")
    assert marked == [f"own-cell-2-{l}" for l in range(6)]


def _paste(page, field, text):
    page.evaluate(
        """([id, text]) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          const options = { clipboardData, bubbles: true, cancelable: true };
          document.getElementById(id).dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        [f"own-{field}", text],
    )
    settle(page)


def test_a_block_of_a_spreadsheet_is_pasted(page):
    _paste(page, "token-4", "woof\tpeep\n1\t0\n7\t0\r\n0\t\n")
    assert 'token_names=["the", "a", "tail", "purrs", "woof", "peep", "my"]' in _program(page)
    assert page.inner_text("#own-wrong").startswith("At least one") is False
    rows = [page.input_value(f"#own-cell-{n}-4") + page.input_value(f"#own-cell-{n}-5") for n in range(3)]
    assert rows == ["10", "70", "00"]
    page.click("#own-reset")
    settle(page)
    before, program = _fields(page), _program(page)
    _paste(page, "class-0", "x\tq\t2\t1\nx\tq\t-2\t1")
    said = page.inner_text("#own-wrong")
    assert "“x”" in said and "it is -2" in said and said.endswith("Nothing was changed.")
    assert _fields(page) == before and _program(page) == program
    assert page.locator("#own-table [aria-invalid]").count() == 0
    for field, block in (("cell-2-0", "1\n2"), ("cell-0-5", "1\t2"), ("class-0", "a\nb\nc\nd")):
        _paste(page, field, block)
        assert "reaches beyond the table" in page.inner_text("#own-wrong")
        assert page.input_value("#own-class-0") == "cat" and page.input_value("#own-cell-2-0") == "10"


def _fields(page):
    return page.eval_on_selector_all("#own-table input", "(all) => all.map((one) => [one.id, one.value])")


SHEETS = {
    "tabs": "next token\tQuery\tweight\tthe\tstray\ncat\tsaw\t2\t10\t5\ndog\tsaw\t1\t10\t\n\n",
    "commas, no weights": "next_token,query,the,stray\r\ncat,saw,10,5\r\ndog,saw,10,\r\n",
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_with_its_heads_is_the_new_table(page, name):
    _paste(page, "cell-1-3", SHEETS[name])
    assert page.inner_text("#own-wrong") == ""
    shown = dict(_fields(page))
    weights = ["2", "1"] if name == "tabs" else ["1", "1"]
    for n, (own, weight, stray) in enumerate(zip(("cat", "dog"), weights, ("5", "0"), strict=True)):
        row = [
            shown[f"own-{field}"] for field in (f"class-{n}", f"query-{n}", f"weight-{n}", f"cell-{n}-0", f"cell-{n}-1")
        ]
        assert row == [own, "saw", weight, "10", stray]
    assert [shown[f"own-token-{n}"] for n in (0, 1)] == ["the", "stray"] and "own-token-2" not in shown
    assert "for class “cat”" in page.inner_text("#own-summary")


@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        (
            "next_token\tquery\tthe\ncat\tsaw\t1",
            "A sheet must have 2 to 8 classes and 1 to 12 tokens, but this has 1 and 1.",
        ),
        (
            "next_token\tquery\tthe\ncat\tsaw\t1\ncat\tsaw\t2",
            "Two classes must have different names, but both are “cat”.",
        ),
        ("next_token\tquery\tthe\ncat\tsaw\t1\ndog\tsaw\tx", "How often “the” occurs before “dog” must be a number"),
        (
            "next_token\tquery\tweight\tthe\ncat\tsaw\t\t1\ndog\tsaw\t1\t1",
            "The weight of “cat” must be a number above 0",
        ),
    ],
)
def test_a_sheet_that_is_refused_leaves_all_as_it_was(page, sheet, says):
    _write(page, "cell-0-0", "7")
    before, program = _fields(page), _program(page)
    _paste(page, "cell-1-3", sheet)
    said = page.inner_text("#own-wrong")
    assert said.startswith(says) and said.endswith("Nothing was changed.")
    assert _fields(page) == before and _program(page) == program


def test_a_flow_that_takes_too_long_stops_and_says_so(page):
    """Classes with the same ratios and unequal weights are never told apart, so that the flow gets stiff."""
    _write(page, "weight-0", "3")
    for l, value in enumerate("221000"):
        for n in range(3):
            _write(page, f"cell-{n}-{l}", value)
    enter(page, "own-eta-y", 50)
    enter(page, "own-end", 1e5)
    assert "took too many steps and stops early" in page.inner_text("#own-note")
    assert "hardly moves" in page.inner_text("#own-summary") and "t up to 100000" not in page.inner_text("#own-summary")
    assert not page.is_enabled("#own-level-modified")


def test_limits_of_the_table(page):
    for kind, most, least in (("class", LIMITS["classes"], 2), ("token", LIMITS["tokens"], 1)):
        while page.is_enabled(f"#own-add-{kind}"):
            page.click(f"#own-add-{kind}")
        assert len(page.query_selector_all(f"input[id^=own-{kind}-]")) == most
        settle(page)
        assert page.inner_text("#own-summary") and not page.inner_text("#own-wrong")
        while page.is_enabled(f"#own-drop-{kind}-0"):
            page.click(f"#own-drop-{kind}-0")
        assert len(page.query_selector_all(f"input[id^=own-{kind}-]")) == least
    assert f"up to {LIMITS['classes']} classes and {LIMITS['tokens']} tokens" in page.inner_text("#own-table")
    settle(page)
    assert "stays on" in page.inner_text("#own-summary")  # the one token that is left
    assert not page.is_enabled("#own-level-modified") and "depend on each other" in page.inner_text("#own-note")


def test_keys_move_in_a_column_and_a_renamed_token_stays_the_query(page):
    page.focus("#own-cell-0-3")
    for key, place in (("ArrowDown", "own-cell-1-3"), ("Enter", "own-cell-2-3"), ("ArrowUp", "own-cell-1-3")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == place
    _write(page, "query-0", "tail")
    _write(page, "token-2", "fur")
    assert page.input_value("#own-query-0") == "fur"
    assert "query=[2, 6, 6]" in _program(page)


def _program(page):
    page.evaluate("document.querySelector('#own details.program').open = true")
    settle(page)
    return page.inner_text("#own-python")


def _follow(page, **state):
    """Go to an address with a state of the panel's controls."""
    page.evaluate(
        "(hash) => { location.hash = hash; }", "at=own&" + urlencode({f"own.{k}": v for k, v in state.items()})
    )
    page.wait_for_timeout(50)
    settle(page)


def test_an_address_holds_the_table_and_its_nonsense_is_left_out(page):
    rows = [["r & b", "q", 2, 1, 0.125], ["#", "q", 1, 0, 3]]
    _follow(page, table=json.dumps([["a=b", "ü"], *rows]), shown="1", level="modified")
    assert page.input_value("#own-class-0") == "r & b" and page.input_value("#own-cell-0-1") == "0.125"
    assert page.inner_text("#own-summary").startswith("What you see: for class “#”")
    assert not page.is_visible("#own-preset-text")  # whose words are about another table
    for wrong in (
        [["a", "b"], ["x", "q", 1, 1, -1], ["y", "q", 1, 1, 1]],
        [["a", "b"], ["x", "q", 1, 1], ["y", "q", 1, 1, 1]],
        [["a", "b"], ["x", "q", 1, 1, 1]],
        [["a", "a"], ["x", "q", 1, 1, 1], ["y", "q", 1, 1, 1]],
        {"tokens": []},
        [["a"], *([f"n{n}", "q", 1, 1] for n in range(9))],
    ):
        _follow(page, table=json.dumps(wrong), shown="3", level="none", etaY="1e9")
        assert page.input_value("#own-class-0") == "cat" and page.input_value("#own-shown") == "0"
        assert page.is_checked("#own-level-full") and page.input_value("#own-eta-y-exact") == "1"


def test_a_vocabulary_beyond_the_page_is_refused(page):
    enter(page, "own-vocab-size", 10**6 + 1)
    assert "must be a whole number from 2 to 1,000,000" in page.inner_text("#own-vocab-size-wrong")


def test_too_small_a_vocabulary_is_raised_and_said(page):
    enter(page, "own-vocab-size", 2)
    assert page.input_value("#own-vocab-size-exact") == "7"
    assert "M is 7: it must count all classes and all tokens." in page.inner_text("#own-note")


def test_play_ends_at_the_last_time(page):
    _go_to(page, 98)
    page.click("#own-play")
    page.wait_for_selector("#own-play[aria-pressed=false]")
    assert page.input_value("#own-time") == "100"
