"""The explorer's file, and what a person sees in it, against Python."""

import json
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from dynamics import Layer, SequenceClasses, gradient_flow
from theory import attention, averaging, balance, decoder
from yzflow.cli import main
from yzflow.pages import explorer
from yzflow.pages.explorer import data
from yzflow.pages.explorer.presets import AVERAGING, DYCK, TRANSITION


@pytest.fixture(scope="module")
def explorer_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    result = CliRunner().invoke(main, ["explore", "--out", str(path), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"out": str(path)}
    return path


@pytest.fixture(scope="module")
def text(explorer_file):
    return explorer_file.read_text(encoding="utf-8")


def test_file_is_complete_in_itself(text):
    """Nothing is loaded, and the page's own policy forbids it; one file for a mail."""
    assert len(text.encode()) < 8e6
    assert not re.search(r"@[A-Z]+@", text)
    assert "default-src 'none'" in text
    head, script, rest = re.split(r"<script>|</script>", text, maxsplit=2)
    for markup in (head, re.sub(r"<script.*?</script>", "", rest, flags=re.DOTALL)):
        assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|@import|url\(", markup)
        assert set(re.findall(r'href="([^"]*)"', markup)) <= {"#transition", "#dyck", "#averaging"}
    assert "sourceMappingURL=http" not in script


def test_file_holds_the_data_of_python(text):
    content = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [one["name"] for one in content["transition"]] == [preset.name for preset in TRANSITION]
    assert content["dyck"]["layer"]["Z"] == data.dyck_layer().Z.tolist()
    signs = [[1 if sign == "+" else -1 for sign in row] for row in content["averaging"]["signs"]]
    np.testing.assert_array_equal(signs, data.key_signs())
    for preset in content["transition"]:
        assert (preset["sgd"] is None) == (preset["setting"]["K"] == 1)


@pytest.mark.parametrize("preset", [*TRANSITION, *DYCK, *AVERAGING], ids=lambda preset: preset.name)
def test_presets_explain_in_two_sentences_and_ask(preset):
    assert len(re.findall(r"[.:?](?= |$)", preset.text.replace("Fig. ", ""))) >= 2
    assert preset.text.count(". ") == 1 and preset.text.endswith(".")
    assert "?" in preset.question and preset.answer.endswith((".", ")"))


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


@pytest.mark.parametrize(("hard", "last"), [(False, 101), (True, 194)])
def test_answers_of_the_averaging_presets(hard, last):
    rho = [_certificate(m, _chosen(3, m, hard)).rho for m in range(1, data.MAX_DIMENSION + 1)]
    assert 1 + max(np.flatnonzero(np.array(rho) > 0.5)) == last


def _chosen(q, m, hard):
    from dynamics.data.averaging import adversarial_subsets

    return adversarial_subsets(data.key_signs()[:, :m].astype(float), q)[0] if hard else np.arange(q)


def _certificate(m, subset):
    return averaging.certificate(data.key_signs()[:, :m] / np.sqrt(m), subset, method="minimum norm", throw=False)


def test_folder_that_is_not_there(tmp_path):
    out = tmp_path / "none" / "explorer.html"
    result = CliRunner().invoke(main, ["explore", "--out", str(out)])
    assert result.exit_code == 2 and "`--out` must lie in a folder that exists" in result.stderr


def test_without_bokeh_the_message_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    out = tmp_path / "explorer.html"
    result = CliRunner().invoke(main, ["explore", "--out", str(out)])
    assert result.exit_code == 2 and "yzflow[explore]" in result.stderr
    assert not list(tmp_path.iterdir())


def test_failed_writing_leaves_what_was_there(tmp_path, monkeypatch):
    out = tmp_path / "explorer.html"
    out.write_text("before")
    monkeypatch.setattr(explorer, "html", lambda **_: "\udc80")  # no UTF-8 holds it
    with pytest.raises(UnicodeEncodeError):
        explorer.write(out)
    assert out.read_text() == "before" and list(tmp_path.iterdir()) == [out]


def test_open_shows_the_file(tmp_path, monkeypatch):
    import click

    shown = []
    monkeypatch.setattr(explorer, "html", lambda **_: "page")
    monkeypatch.setattr(click, "launch", shown.append)
    out = tmp_path / "explorer.html"
    assert CliRunner().invoke(main, ["explore", "--out", str(out), "--open"]).exit_code == 0
    assert shown == [str(out)] and out.read_text() == "page"


@pytest.fixture(scope="module")
def window(shared_browser, explorer_file):
    return _opened(shared_browser, explorer_file)


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    for panel in ("transition", "dyck", "averaging"):
        _choose(window, panel, 0)
    yield window
    assert not shared_browser.problems


def _opened(browser, path, **options):
    page = browser(path, **options)
    page.wait_for_selector("html[data-ready]")
    return page


def _settle(page):
    """Until the frame after the next, when the panels are drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _press(page, control, *keys):
    page.focus(f"#{control}")
    for key in keys:
        page.keyboard.press(key)
    _settle(page)


def _type(page, control, value):
    page.fill(f"#{control}-exact", str(value))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    _settle(page)


def _choose(page, panel, place):
    page.select_option(f"#{panel}-preset-select", str(place))
    _settle(page)


def _values(page, panel):
    """The readouts of a panel."""
    nodes = page.query_selector_all(f"#{panel}-readouts output")
    return {
        node.get_attribute("id").removeprefix(f"{panel}-"): float(node.get_attribute("data-value")) for node in nodes
    }


def _table(page, plot):
    rows = f"#{plot} tbody tr"
    cells = page.eval_on_selector_all(rows, "(rows) => rows.map((row) => [...row.cells].map((c) => c.dataset.value))")
    return np.array(cells, dtype=float)


def _exact(page, control):
    return float(page.input_value(f"#{control}-exact"))


def _transition_settings(page):
    rates = {"eta_y": _exact(page, "eta-y"), "eta_z": _exact(page, "eta-z")}
    k, m = int(_exact(page, "n-classes")), int(_exact(page, "vocab-size"))
    common, *distinct = (_exact(page, f"token-{i}") for i in range(6))
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=distinct)
    return classes, rates, _exact(page, "t-end")


def _check_closed_form(page):
    classes, rates, t_end = _transition_settings(page)
    k, sizes = classes.n_classes, {"vocab_size": classes.vocab_size, "n_classes": classes.n_classes}
    decoding = sizes | {"eta_y": rates["eta_y"]}
    rho = classes.overlap()[0, 1]
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    p = classes.probabilities.toarray()[0, :6]
    end = attention.growth_exponent(t_end, **sizes, **rates, c0=c0)
    share = p[1:].max() / np.linalg.norm(p)
    lower, upper = attention.growth_bounds(end / k, share)
    expected = {
        "overlap": rho,
        "peak": decoder.transition_time(**decoding),
        "scanning": decoder.scanning_time(**decoding),
        "snapping": decoder.snapping_time(**decoding),
        "exponent": end,
        "common": -end,
        "growth": attention.distinct_growth(end / k, p[1:]).max(),
        "lower": lower,
        "upper": upper,
        "slowdown": attention.full_flow_slowdown(**sizes, overlap=rho),
    }
    shown = _values(page, "transition")
    assert shown.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(shown[name], value, rtol=1e-9, err_msg=name)
    t, exponent, logit = _table(page, "exponent").T
    np.testing.assert_allclose(exponent, attention.growth_exponent(t, **sizes, **rates, c0=c0), rtol=1e-10)
    np.testing.assert_allclose(logit, -exponent, rtol=1e-10)
    t, speed = _table(page, "gamma").T
    np.testing.assert_allclose(speed, decoder.gamma(t, **decoding), rtol=1e-10)
    t, *growth = _table(page, "growth").T
    np.testing.assert_allclose(np.transpose(growth), attention.distinct_growth(exponent / k, p[1:]), rtol=1e-9)
    z = np.column_stack([logit, np.log(np.transpose(growth)) / 2])
    weights = p * np.exp(z)
    np.testing.assert_allclose(_table(page, "heat")[:, 1:], weights / weights.sum(1, keepdims=True), rtol=1e-9)
    s, smooth, steps = _table(page, "decoder").T
    size = {"vocab_size": classes.vocab_size, "eta_y": rates["eta_y"]}
    np.testing.assert_allclose(smooth, decoder.h(s, **size), rtol=1e-10)
    np.testing.assert_allclose(steps, decoder.h_steps(int(s[-1]), **size)[s.astype(int)], rtol=1e-10)


def test_sliders_by_keyboard_show_what_python_computes(page):
    _check_closed_form(page)
    before = {name: _exact(page, name) for name in ("eta-y", "eta-z", "n-classes", "vocab-size", "t-end", "token-0")}
    _press(page, "eta-y", *["ArrowRight"] * 6)
    _press(page, "eta-z", *["ArrowLeft"] * 4)
    _press(page, "n-classes", *["ArrowUp"] * 3)
    _press(page, "vocab-size", "PageUp")
    _press(page, "t-end", "ArrowRight", "PageUp")
    _press(page, "token-0", *["ArrowDown"] * 5)
    _press(page, "token-2", "Home")
    _press(page, "token-4", "End")
    moved = {name: np.sign(_exact(page, name) - value) for name, value in before.items()}
    assert moved == {"eta-y": 1, "eta-z": -1, "n-classes": 1, "vocab-size": 1, "t-end": 1, "token-0": -1}
    _check_closed_form(page)


@pytest.mark.parametrize(
    "extreme",
    [
        {"vocab-size": 1000000, "t-end": 100000, "eta-y": 50, "eta-z": 50, "n-classes": 2},
        {"vocab-size": 2, "t-end": 1, "eta-y": 0.01, "eta-z": 0.001, "n-classes": 2, "token-0": 3},
        {"vocab-size": 1000000, "t-end": 100000, "eta-y": 0.01, "n-classes": 50, "token-0": 0.01},
    ],
)
def test_ends_of_the_sliders(page, extreme):
    for name, value in extreme.items():
        _type(page, name, value)
        assert _exact(page, name) == value
    _check_closed_form(page)
    for level in ("theory", "full"):
        page.check(f"#level-{level}")
        _settle(page)
        assert page.inner_text("#transition-note") == ""


@pytest.mark.parametrize("level", ["theory", "full"])
def test_flow_on_the_page_is_the_flow(page, level):
    _press(page, "n-classes", "ArrowUp")
    page.check(f"#level-{level}")
    _settle(page)
    classes, rates, t_end = _transition_settings(page)
    t, *shares = _table(page, "heat").T
    flow = gradient_flow(classes, **rates, t_end=t_end, times=t, decoder=level, rtol=1e-10, atol=1e-13)
    dataset = flow.dataset
    expected = dataset["attention"].to_numpy()[:, 0, :6]
    np.testing.assert_allclose(np.transpose(shares), expected, rtol=1e-6)
    np.testing.assert_allclose(_table(page, "exponent")[:, 2], dataset["z"].to_numpy()[:, 0, 0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(_values(page, "transition")["growth"], flow.growth_factor(0, 1)[-1], rtol=1e-6)


def test_sgd_is_there_for_presets_only(page):
    page.check("#level-sgd")
    _settle(page)
    expected = data.sgd_logits(TRANSITION[0].setting)
    np.testing.assert_allclose(_values(page, "transition")["common"], expected["z"][-1][0], rtol=1e-12)
    assert "one seed" in page.inner_text("#transition-note")
    _press(page, "eta-y", "ArrowRight")
    assert page.is_disabled("#level-sgd") and page.is_checked("#level-full")
    assert "No SGD run" in page.inner_text("#transition-note")


def test_regime_indicator(page):
    for place, preset in enumerate(TRANSITION):
        _choose(page, "transition", place)
        regime = page.inner_text("#transition-regime")
        assert regime.startswith("Assumption 2 holds") == preset.name.startswith("Where Assumption 2 holds")
    _choose(page, "transition", len(TRANSITION) - 1)
    _type(page, "n-classes", 4)
    assert page.inner_text("#transition-regime").startswith("Assumption 2 holds")
    _type(page, "n-classes", 5)
    assert page.inner_text("#transition-regime").startswith("Assumption 2 does not hold")


def test_play_moves_time_and_stops_at_the_end(page):
    _press(page, "time", "End")
    page.focus("#play")
    page.keyboard.press("Enter")
    for _ in range(100):
        if _exact(page, "time") >= 3:
            break
        page.wait_for_timeout(50)
    page.keyboard.press("Space")
    stopped = _exact(page, "time")
    assert page.inner_text("#play") == "Play" and 3 <= stopped < 100
    page.wait_for_timeout(200)
    assert _exact(page, "time") == stopped
    _type(page, "time", 98)
    page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    assert _exact(page, "time") == 100
    shares = page.eval_on_selector_all("#now tbody td", "(cells) => cells.map((cell) => Number(cell.dataset.value))")
    np.testing.assert_allclose(shares, _table(page, "heat")[-1, 1:], rtol=1e-12)


def test_brackets_move_the_output_where_the_layer_is_off_balance(page):
    _choose(page, "dyck", 0)
    _press(page, "pairs", "End")
    assert _values(page, "dyck")["moved"] < 1e-9
    _press(page, "violation", *["ArrowRight"] * 37)
    _press(page, "pairs", *["ArrowLeft"] * 60)
    page.click("button[aria-label='delete the last bracket']")
    page.focus("#brackets")
    page.keyboard.press("End")
    page.keyboard.type("]")
    _settle(page)
    layer = _off_balance(0.37)
    texts = ["([]", "(" + "[]" * 40 + "[]"]
    before, after = layer.predict(data.LANGUAGE.bags(texts))
    shown = _values(page, "dyck")
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
    n, *outputs = _table(page, "insertions").T
    texts = ["(" + "[]" * int(i) + "[]" for i in n]
    np.testing.assert_allclose(np.transpose(outputs), layer.predict(data.LANGUAGE.bags(texts)), rtol=1e-9)
    page.keyboard.type("}")
    _settle(page)
    assert "bracket 4" in page.inner_text("#dyck-note") and page.get_attribute("#brackets", "aria-invalid") == "true"


@pytest.mark.parametrize("place", range(len(AVERAGING)))
def test_averaging(page, place):
    _choose(page, "averaging", place)
    _press(page, "m", *["ArrowLeft"] * 3)
    _press(page, "error", "ArrowRight")
    q, m, error = int(_exact(page, "q")), int(_exact(page, "m")), _exact(page, "error")
    chosen = json.loads(page.get_attribute("#averaging-summary", "data-chosen"))
    hard = AVERAGING[place].setting["hard"]
    np.testing.assert_array_equal(chosen, _chosen(q, m, hard))
    found = averaging.certificate(
        data.key_signs()[:, :m] / np.sqrt(m), chosen, method="minimum norm", rho=0.999, throw=False
    )
    shown = _values(page, "averaging")
    np.testing.assert_allclose(shown["rho"], found.rho, rtol=1e-9)
    tau = averaging.temperature(n_tokens=data.N_TOKENS, q=q, error=error)
    np.testing.assert_allclose(shown["temperature"], tau, rtol=1e-12)
    assert shown["exact"] == averaging.moment_curve(data.N_TOKENS, q).dimension
    works = found.rho <= 0.5
    assert page.inner_text("#averaging-verdict").startswith("✓" if works else "✗")
    if works:
        assert shown["distance"] <= averaging.error_bound(tau, n_tokens=data.N_TOKENS, q=q) * (1 + 1e-12)
    if found.feasible:
        weights = np.exp(tau * data.key_signs()[:, :m] @ found.query / np.sqrt(m))
        uniform = np.isin(np.arange(data.N_TOKENS), chosen) / q
        np.testing.assert_allclose(shown["distance"], np.abs(weights / weights.sum() - uniform).sum(), rtol=1e-7)
    if place == 1:
        assert shown["distance"] > 1


def test_every_preset_draws(page):
    for panel, presets in (("transition", TRANSITION), ("dyck", DYCK), ("averaging", AVERAGING)):
        for place, preset in enumerate(presets):
            _choose(page, panel, place)
            assert page.inner_text(f"#{panel}-preset-text") == preset.text
            page.click(f"#{panel}-preset summary")
            assert page.inner_text(f"#{panel}-preset details p") == preset.answer
            assert page.inner_text(f"#{panel}-summary")


def test_every_control_has_a_name_and_every_plot_words_and_a_table(page):
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, button")].filter((control) =>
        !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim())).length"""
    )
    assert unnamed == 0
    plots = page.query_selector_all("[role=img]")
    assert len(plots) == 9
    for plot in plots:
        assert plot.get_attribute("aria-label")
        assert page.inner_text(f"#{plot.get_attribute('aria-describedby')}")
        assert page.eval_on_selector_all(f"#{plot.get_attribute('id')} ~ details td", "(cells) => cells.length") > 5


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_window_and_colours(browser, explorer_file, width, scheme):
    """No scrolling sideways; the system's colours, and the other ones by the button."""
    page = _opened(browser, explorer_file, width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    columns = page.evaluate("getComputedStyle(document.querySelector('.plots')).gridTemplateColumns.split(' ').length")
    assert columns == (1 if width == 390 else 2)
    background = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    axis = "Bokeh.documents[0].get_model_by_name('x-axis').major_label_text_color"
    assert (page.evaluate(background) > 128) == (scheme == "light")
    was = page.evaluate(axis)
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert (page.evaluate(background) > 128) == (scheme == "dark")
    assert page.evaluate(axis) != was
