"""What a person sees in the panel of Scan and Snap, against Python."""

import numpy as np
import pytest
from explorer_pages import choose, enter, exact, opened, press, settle, table, values, written

from dynamics import SequenceClasses, gradient_flow
from theory import attention, decoder
from yzflow.papers.scan_and_snap.panel import PANEL, data
from yzflow.papers.scan_and_snap.panel.presets import PRESETS


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANEL]))


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    choose(window, "transition", 0)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    choose(page, "transition", place)
    assert page.inner_text("#transition-preset-text") == PRESETS[place].text
    page.click("#transition-preset summary")
    assert page.inner_text("#transition-preset details p") == PRESETS[place].answer
    assert page.inner_text("#transition-summary")


def _transition_settings(page):
    rates = {"eta_y": exact(page, "eta-y"), "eta_z": exact(page, "eta-z")}
    k, m = int(exact(page, "n-classes")), int(exact(page, "vocab-size"))
    common, *distinct = (exact(page, f"token-{i}") for i in range(6))
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=distinct)
    return classes, rates, exact(page, "t-end")


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
    shown = values(page, "transition")
    assert shown.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(shown[name], value, rtol=1e-9, err_msg=name)
    t, exponent, logit = table(page, "exponent").T
    np.testing.assert_allclose(exponent, attention.growth_exponent(t, **sizes, **rates, c0=c0), rtol=1e-10)
    np.testing.assert_allclose(logit, -exponent, rtol=1e-10)
    t, speed = table(page, "gamma").T
    np.testing.assert_allclose(speed, decoder.gamma(t, **decoding), rtol=1e-10)
    t, *growth = table(page, "growth").T
    np.testing.assert_allclose(np.transpose(growth), attention.distinct_growth(exponent / k, p[1:]), rtol=1e-9)
    z = np.column_stack([logit, np.log(np.transpose(growth)) / 2])
    weights = p * np.exp(z)
    np.testing.assert_allclose(table(page, "heat")[:, 1:], weights / weights.sum(1, keepdims=True), rtol=1e-9)
    s, smooth, steps = table(page, "decoder").T
    size = {"vocab_size": classes.vocab_size, "eta_y": rates["eta_y"]}
    np.testing.assert_allclose(smooth, decoder.h(s, **size), rtol=1e-10)
    np.testing.assert_allclose(steps, decoder.h_steps(int(s[-1]), **size)[s.astype(int)], rtol=1e-10)


def test_sliders_by_keyboard_show_what_python_computes(page):
    _check_closed_form(page)
    before = {name: exact(page, name) for name in ("eta-y", "eta-z", "n-classes", "vocab-size", "t-end", "token-0")}
    press(page, "eta-y", *["ArrowRight"] * 6)
    press(page, "eta-z", *["ArrowLeft"] * 4)
    press(page, "n-classes", *["ArrowUp"] * 3)
    press(page, "vocab-size", "PageUp")
    press(page, "t-end", "ArrowRight", "PageUp")
    press(page, "token-0", *["ArrowDown"] * 5)
    press(page, "token-2", "Home")
    press(page, "token-4", "End")
    moved = {name: np.sign(exact(page, name) - value) for name, value in before.items()}
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
        enter(page, name, value)
        assert exact(page, name) == value
    _check_closed_form(page)
    for level in ("theory", "full"):
        page.check(f"#level-{level}")
        settle(page)
        assert page.inner_text("#transition-note") == ""


@pytest.mark.parametrize("level", ["theory", "full"])
def test_flow_on_the_page_is_the_flow(page, level):
    press(page, "n-classes", "ArrowUp")
    page.check(f"#level-{level}")
    settle(page)
    classes, rates, t_end = _transition_settings(page)
    t, *shares = table(page, "heat").T
    flow = gradient_flow(classes, **rates, t_end=t_end, times=t, decoder=level, rtol=1e-10, atol=1e-13)
    dataset = flow.dataset
    expected = dataset["attention"].to_numpy()[:, 0, :6]
    np.testing.assert_allclose(np.transpose(shares), expected, rtol=1e-6)
    np.testing.assert_allclose(table(page, "exponent")[:, 2], dataset["z"].to_numpy()[:, 0, 0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(values(page, "transition")["growth"], flow.growth_factor(0, 1)[-1], rtol=1e-6)


def test_sgd_is_there_for_presets_only(page):
    page.check("#level-sgd")
    settle(page)
    expected = data.sgd_logits(PRESETS[0].setting)
    np.testing.assert_allclose(values(page, "transition")["common"], expected["z"][-1][0], rtol=1e-12)
    assert "one seed" in page.inner_text("#transition-note")
    press(page, "eta-y", "ArrowRight")
    assert page.is_disabled("#level-sgd") and page.is_checked("#level-full")
    assert "No SGD run" in page.inner_text("#transition-note")


def test_regime_indicator(page):
    for place, preset in enumerate(PRESETS):
        choose(page, "transition", place)
        regime = page.inner_text("#transition-regime")
        assert regime.startswith("Assumption 2 holds") == preset.name.startswith("Where Assumption 2 holds")
    choose(page, "transition", len(PRESETS) - 1)
    enter(page, "n-classes", 4)
    assert page.inner_text("#transition-regime").startswith("Assumption 2 holds")
    enter(page, "n-classes", 5)
    assert page.inner_text("#transition-regime").startswith("Assumption 2 does not hold")


def test_play_moves_time_and_stops_at_the_end(page):
    press(page, "time", "End")
    page.focus("#play")
    page.keyboard.press("Enter")
    for _ in range(100):
        if exact(page, "time") >= 3:
            break
        page.wait_for_timeout(50)
    page.keyboard.press("Space")
    stopped = exact(page, "time")
    assert page.inner_text("#play") == "Play" and 3 <= stopped < 100
    page.wait_for_timeout(200)
    assert exact(page, "time") == stopped
    enter(page, "time", 98)
    page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    assert exact(page, "time") == 100
    shares = page.eval_on_selector_all("#now tbody td", "(cells) => cells.map((cell) => Number(cell.dataset.value))")
    np.testing.assert_allclose(shares, table(page, "heat")[-1, 1:], rtol=1e-12)
