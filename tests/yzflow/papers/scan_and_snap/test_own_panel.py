"""What a person sees in the panel for a reader's own classes, against Python; and the files it opens."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
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
from yzflow.cli import main
from yzflow.pages import explorer
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
        ("cell-1-0", "1e10", "a number from 0 to 1000000000, but it is 10000000000."),
        ("cell-1-0", "many", "but it is many."),
        ("cell-1-0", "0,5", "but it is 0,5."),
        ("weight-2", "0", "The weight of “bird” must be a number above 0 and at most 1000000000, but it is 0."),
        ("token-2", " ", "Token 3 must have a name of 1 to 200 characters."),
        ("class-1", "x" * 201, "Class 2 must have a name of 1 to 200 characters."),
        ("class-1", "cat", "Two classes must have different names, but both are “cat”."),
        ("token-1", "the", "Two tokens must have different names, but both are “the”."),
        ("query-0", "", "The query of “cat” must have a name"),
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
    _paste(page, "class-0", "x\tq\t2\t1\nx\tq\t-2\t1")
    assert "“x”" in page.inner_text("#own-wrong") and "it is -2" in page.inner_text("#own-wrong")
    page.click("#own-reset")
    settle(page)
    for field, block in (("cell-2-0", "1\n2"), ("cell-0-5", "1\t2"), ("class-0", "a\nb\nc\nd")):
        _paste(page, field, block)
        assert "reaches beyond the table" in page.inner_text("#own-wrong")
        assert page.input_value("#own-class-0") == "cat" and page.input_value("#own-cell-2-0") == "10"


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


def test_too_small_a_vocabulary_is_raised_and_said(page):
    enter(page, "own-vocab-size", 2)
    assert page.input_value("#own-vocab-size-exact") == "7"
    assert "M is 7: it must count all classes and all tokens." in page.inner_text("#own-note")


def test_play_ends_at_the_last_time(page):
    _go_to(page, 98)
    page.click("#own-play")
    page.wait_for_selector("#own-play[aria-pressed=false]")
    assert page.input_value("#own-time") == "100"


# Files


@pytest.fixture
def quick(monkeypatch):
    """An explorer of this panel alone: what others collect takes seconds."""
    monkeypatch.setattr(explorer, "panels", lambda: (PANEL,))


def _explore(path, out):
    return CliRunner().invoke(main, ["explore", "--data", str(path), "--out", str(out)])


HEAD = "next_token,query,weight,the,<!--,blue-eyed & loyal\n"


def test_a_file_opens_as_the_first_table(quick, browser, tmp_path):
    (tmp_path / "pets.csv").write_text(HEAD + "cat,the,3,10,5,\ndog,saw,1,10,,0.5\n", encoding="utf-8")
    result = _explore(tmp_path / "pets.csv", tmp_path / "x.html")
    assert result.exit_code == 0, result.output
    page = opened(browser, tmp_path / "x.html")
    assert page.input_value("#own-token-2") == "blue-eyed & loyal" and page.input_value("#own-token-1") == "<!--"
    assert page.inner_text("#own-preset-select option:first-child") == "Your data: pets.csv"
    assert [page.input_value(f"#own-{name}") for name in ("class-1", "query-1", "weight-1", "cell-1-2")] == [
        "dog", "saw", "1", "1",
    ]  # fmt: skip
    names = run_program(page, "own")
    given, found = yz.read_data(tmp_path / "pets.csv"), names["classes"]
    np.testing.assert_allclose(found.probabilities.toarray(), given.probabilities.toarray(), rtol=1e-14)
    np.testing.assert_allclose(found.class_weights, given.class_weights, rtol=1e-14)
    assert found.token_names == given.token_names and found.class_names == given.class_names
    assert found.query.tolist() == given.query.tolist() and found.vocab_size == given.vocab_size
    flow = names["flow"].dataset["attention"].isel(time=-1, next_token=0).values
    np.testing.assert_allclose(table(page, "own-share")[-1][1:], flow[:2], atol=1e-6)


def test_panels_for_data_come_first_and_others_stay():
    two = (*explorer.panels()[:1], PANEL)
    data = yz.SequenceClasses([[1, 0], [0.5, 0.5]], [0, 5], vocab_size=7)
    page = explorer.html(two, data=data, name="x.json")
    content = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["panels"]
    assert list(content) == [PANEL.name, two[0].name]
    setting = content[PANEL.name]["presets"][0]["setting"]
    assert setting["tokens"] == ["token 0", "token 1"]
    assert setting["rows"] == [["next token 0", "token 0", 1, 1, 0], ["next token 1", "token 5", 1, 1, 1]]
    assert explorer.html(two, data=data, name="x.json") == page
    with pytest.raises(ValueError, match="`data` must be left out where no panel opens it"):
        explorer.html(two[:1], data=data)


def test_ratios_of_small_whole_numbers_are_shown_as_such_and_others_as_they_are():
    shares = np.array([[3, 0, 999, 12], [1, np.pi, 0, 2], [1, 1001, 0, 0]])
    shares /= shares.sum(axis=1, keepdims=True)
    data = yz.SequenceClasses(shares, [0, 0, 0], class_weights=[0.2, 0.5, 0.3])
    rows = PANEL.of(data, "x.json").presets[0].setting["rows"]
    assert [row[2] for row in rows] == [2, 5, 3]
    assert [row[3:] for row in rows] == [[1, 0, 333, 4], shares[1].tolist(), shares[2].tolist()]


def test_names_that_cannot_be_shown_are_made_so():
    data = yz.SequenceClasses(
        np.eye(3), [0, 0, 0], token_names=[" ", "a\nb", ""], class_names=["token 2", "", "next token 1"]
    )
    setting = PANEL.of(data, "x.json").presets[0].setting
    assert setting["tokens"] == ["' '", "a\\nb", "token 2"]
    assert [row[0] for row in setting["rows"]] == ["token 2", "next token 1", "next token 1\N{PRIME}"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("none.csv", None, "none.csv"),
        ("wrong.csv", "a,b\n1,2\n", "`path` must begin with a line of heads"),
        ("minus.csv", "next_token,query,a\nx,q,1\ny,q,-1\n", "numbers from zero up"),
        ("one.csv", "next_token,query,a\nx,q,1\n", "at least two rows"),
        ("story.txt", "the cat saw the dog", "`length` must be given for a text"),
        ("x.pdf", "", "`path` must end in one of"),
        ("long.csv", "next_token,query,a\n" + "".join(f"n{n},q,1\n" for n in range(9)), "at most 8 classes"),
        (
            "wide.json",
            json.dumps({"counts": [[1] * 13, [2] * 13], "query": [0, 0]}),
            "at most 12 tokens for the explorer's table (`yz.gradient_flow` and `yzflow flow --data FILE` take any "
            "size), but got 13",
        ),
        ("many.json", json.dumps({"counts": [[1], [2]], "query": [0, 0], "vocab_size": 10**7}), "at most 1000000"),
    ],
)
def test_files_that_are_refused(quick, tmp_path, name, text, says):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = _explore(tmp_path / name, tmp_path / "x.html")
    assert result.exit_code == 2 and says in result.stderr.replace("\n", " "), result.stderr
    assert not (tmp_path / "x.html").exists()


def test_bags_are_refused(quick, tmp_path):
    yz.Bags.from_dense([0, 0], [0, 1], [[1, 0], [0, 1]]).save(tmp_path / "bags.npz")
    result = _explore(tmp_path / "bags.npz", tmp_path / "x.html")
    assert result.exit_code == 2 and "`data` must hold classes (.csv, .tsv or .json)" in result.stderr
