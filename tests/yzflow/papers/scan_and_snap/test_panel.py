"""The numbers and words in the panel of Scan and Snap, against Python."""

import re

import driving
import numpy as np
import pytest
from explorer_pages import (
    check_preset,
    choose,
    downloaded,
    enter,
    exact,
    opened,
    press,
    run_program,
    settle,
    table,
    values,
    written,
)

from dynamics import SequenceClasses
from theory import attention, decoder
from theory.scan_and_snap.statements import assumptions
from yzflow.papers.scan_and_snap import flagship
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.panel import PANEL, data
from yzflow.papers.scan_and_snap.panel.presets import PRESETS


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANEL]))


CONTRAST, INSIDE, FIGURE_3, FIGURE_8 = range(4)  # places of the first presets


@pytest.fixture
def page(window, shared_browser):
    """The page with the contrast, where attention moves far."""
    choose(window, "transition", CONTRAST)
    window.check("#level-closed")
    settle(window)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    check_preset(page, "transition", place, PRESETS[place])


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
    press(page, "t-end", "ArrowLeft", "PageDown")
    press(page, "token-0", *["ArrowDown"] * 5)
    press(page, "token-2", "Home")
    press(page, "token-4", "End")
    moved = {name: np.sign(exact(page, name) - value) for name, value in before.items()}
    assert moved == {"eta-y": 1, "eta-z": -1, "n-classes": 1, "vocab-size": 1, "t-end": -1, "token-0": -1}
    _check_closed_form(page)


@pytest.mark.parametrize(
    "extreme",
    [
        {"vocab-size": 1000000, "t-end": 100000, "eta-y": 50, "eta-z": 50, "n-classes": 2},
        {"n-classes": 2, "vocab-size": 2, "t-end": 1, "eta-y": 0.01, "eta-z": 0.001, "token-0": 3},
        {"vocab-size": 1000000, "t-end": 100000, "eta-y": 0.01, "n-classes": 50, "token-0": 0.01},
    ],
)
def test_ends_of_the_sliders(page, extreme):
    for name, value in extreme.items():
        enter(page, name, value)
        assert exact(page, name) == value
    _check_closed_form(page)
    for level in ("theory", "modified", "full"):
        page.check(f"#level-{level}")
        settle(page)
        assert page.inner_text("#transition-note") == ""


def test_sgd_is_there_for_presets_only(page):
    page.check("#level-sgd")
    settle(page)
    expected = data.sgd_logits(PRESETS[CONTRAST].setting)
    np.testing.assert_allclose(values(page, "transition")["common"], expected["z"][0][-1][0], rtol=1e-12)
    assert page.inner_text("#transition-note") == ""
    press(page, "eta-y", "ArrowRight")
    assert page.is_disabled("#sequences") and page.inner_text("#transition-sequences") == ""
    assert page.is_disabled("#level-sgd") and page.is_checked("#level-full")
    assert "No SGD run" in page.inner_text("#transition-note")


def test_the_band_of_sgd_has_all_seeds_and_is_there_for_presets_only(page):
    run = data.sgd_logits(PRESETS[CONTRAST].setting)
    z = np.array(run["z"])
    assert z.shape == (data.SEEDS, len(run["t"]), 6) and run["t"][0] == 0 and run["t"][-1] == data.MAX_STEPS
    assert (np.diff(run["t"]) > 0).all() and z[:, -1, 0].std() > 0
    band = """(run) => yzflow.levels.band(run, run.z.map((z) => ({ z })), (one, i) => -one.z[i][0])"""
    found = page.evaluate(band, {"t": run["t"], "z": run["z"]})
    np.testing.assert_array_equal([found["low"], found["high"]], [(-z[:, :, 0]).min(axis=0), (-z[:, :, 0]).max(axis=0)])
    bands = ("share", 2), ("exponent", 1)
    for plot, number in bands:
        assert page.locator(f"#{plot}-canvas path.band").count() == number
        assert f"SGD, T = 128, {data.SEEDS} seeds" in page.inner_text(f"#{plot} .key")
    # The band's right end, at its last step, reads as the seeds do on the axis.
    numbers = page.evaluate(
        """() => {
          const d = document.querySelector("#exponent-canvas path.band").getAttribute("d");
          const points = d.slice(1, -1).split("L").map((one) => one.split(" ").map(Number));
          const ticks = [...document.querySelectorAll("#exponent-canvas .axes text[text-anchor=end]")].map(
            (one) => [Number(one.textContent), Number(one.getAttribute("y"))]);
          return { points, ticks };
        }"""
    )
    right = max(x for x, _ in numbers["points"])
    (v0, y0), (v1, y1) = numbers["ticks"][0], numbers["ticks"][-1]
    letters = 4  # below the line that a number names
    ends = sorted(v0 + (y + letters - y0) * (v1 - v0) / (y1 - y0) for x, y in numbers["points"] if x == right)
    np.testing.assert_allclose(ends, [(-z[:, -1, 0]).min(), (-z[:, -1, 0]).max()], atol=0.01)
    press(page, "eta-y", "ArrowRight")
    for plot, _ in bands:
        assert page.locator(f"#{plot}-canvas path.band").count() == 0
        assert "seeds" not in page.inner_text(f"#{plot} .key")


def test_each_length_of_sequences_draws_its_own_run_with_its_sentence_and_the_limit_beside_it(page):
    """The chosen T moves the thick line, the readout, the table and the sentence; T = infinity is drawn beside each."""
    runs = data.by_length(PRESETS[CONTRAST].setting)
    page.check("#level-sgd")
    texts = page.eval_on_selector_all("#sequences option", "(all) => all.map((one) => one.value)")
    assert texts == list(runs) == ["128", "1024", "8192", "infinity"]
    axes, seen = _axes(page), set()
    drawn = """() => Object.fromEntries([...document.querySelectorAll("#exponent-canvas path:not(.band)")].map(
      (one) => [one.style.stroke, one.getAttribute("d")]))"""
    for name, run in runs.items():
        page.select_option("#sequences", name)
        settle(page)
        assert values(page, "transition")["common"] == pytest.approx(run["z"][0][-1][0], rel=1e-12)
        assert page.inner_text("#transition-sequences") == run["told"]
        words = f"T = {'∞' if name == 'infinity' else format(int(name), ',')}"
        assert page.inner_text("#growth .scope").endswith(f"SGD, {words}")
        assert f"in SGD with {words} the common token" in page.inner_text("#transition-see")
        keys = page.inner_text("#exponent .key")
        assert f"SGD, {words}" in keys and "SGD, T = ∞" in keys
        lines = page.evaluate(drawn)
        # Where the limit is chosen it stands once; elsewhere in a colour of its own.
        assert ("var(--c5)" in lines) == (name != "infinity")
        seen.add((lines["var(--c4)"], lines.get("var(--c5)", lines["var(--c4)"])))
        bands = page.locator("#exponent-canvas path.band").count()
        assert bands == (len(run["z"]) > 1) and _axes(page) == axes
        levels = {row[0] for row in downloaded(page, "transition")[1:]}
        assert "sgd, T = infinity" in levels
    assert len({own for own, _ in seen}) == 4 and len({limit for _, limit in seen}) == 1
    page.select_option("#sequences", "128")
    settle(page)


def test_at_the_level_sgd_its_curve_is_drawn_and_its_clock_ends_at_its_end(page):
    """In the views that it has; noise has no speed."""
    choose(page, "transition", INSIDE)
    assert page.is_checked("#view-speed") and page.is_enabled("#view-speed")
    page.check("#level-sgd")
    settle(page)
    assert page.is_checked("#view-share") and page.is_disabled("#view-speed")
    run = data.sgd_logits(PRESETS[INSIDE].setting)
    for view in ("share", "change"):
        page.check(f"#view-{view}")
        settle(page)
        assert "SGD, T = 128" in page.inner_text("#share .key")
        drawn = "#share-canvas path:not(.band)[style*='--c4']"
        widths = page.eval_on_selector_all(drawn, "(all) => all.map((one) => one.getAttribute('stroke-width'))")
        assert "4.5" in widths
    press(page, "time", "End")
    assert page.inner_text("#transition-time label").startswith(f"time t = {run['t'][-1]:g} steps")
    page.check("#level-full")
    settle(page)
    assert page.is_enabled("#view-speed")
    assert page.inner_text("#transition-time label").startswith("time t = 100000 steps")


def test_regime_indicator(page):
    """Words for the margins, which are the register's, on both sides of Assumption 2."""
    setting = flagship.contrast()
    register = flagship.margins(setting)
    regime = page.inner_text("#transition-regime").replace("\n", "")
    for shown, assumption in {
        "largest |eigenvalue| below 1/K": assumptions.UPPER,
        "smallest |eigenvalue| at least 6/√M": assumptions.LOWER,
        "ηY at least 100 ηZ": assumptions.FAST_DECODER,
        "K \u03c1 at most 0.1": assumptions.SMALL_OVERLAP[0],
        "M \u03c1 at least 8": assumptions.SMALL_OVERLAP[1],
    }.items():
        margin = register[assumption.text]
        side = "✓ holds" if margin >= 1 else "✗ fails"
        found = re.search(re.escape(f"{shown} {side} (margin ") + r"(\S+)\)", regime)
        assert found and float(found[1]) == pytest.approx(margin, rel=1e-4), regime
    choose(page, "transition", len(PRESETS) - 1)
    for classes, holds in ((1, "needs at least two classes."), (4, "holds"), (5, "does not hold")):
        enter(page, "n-classes", classes)
        assert page.inner_text("#transition-regime").startswith(f"Assumption 2 {holds}")


def test_play_moves_curves_and_bars_on_the_first_screen_and_says_scanning_then_snapping(page):
    choose(page, "transition", INSIDE)

    def seen():
        bars = page.eval_on_selector_all(
            "#now-canvas rect:not(.ahead)", "(all) => all.map((one) => Number(one.getAttribute('height')))"
        )
        dim = page.eval_on_selector(
            "#share-canvas .ahead", "(one) => one.style.display === 'none' ? 0 : Number(one.getAttribute('width'))"
        )
        return bars, dim, page.inner_text("#transition-time label")

    still = seen()
    assert still[1] == 0 and still[2] == "time t = 0 steps"
    page.click("#play")
    driving.until(lambda: seen()[2].endswith("scanning"))
    first = seen()
    driving.until(lambda: seen()[2].endswith("snapping"), seconds=20)
    later = seen()
    assert first[1] > later[1] > 0 and first[0] != later[0] and len(later[0]) >= 6
    page.click("#play")
    script = "(node) => node.getBoundingClientRect().bottom"
    assert max(page.eval_on_selector(f"#{name}-canvas", script) for name in ("share", "now")) < 800


def test_inside_the_assumptions_the_bars_show_changes_and_elsewhere_shares(page):
    for place, title, low in ((INSIDE, "Change so far", -1), (CONTRAST, "Attention now", 0)):
        choose(page, "transition", place)
        page.eval_on_selector("#time", "(node) => { node.value = 100; node.dispatchEvent(new Event('input')); }")
        settle(page)
        assert page.inner_text("#now h3").startswith(title)
        ticks = page.eval_on_selector_all("#now-canvas .axes text", "(all) => all.map((one) => one.textContent)")
        assert (str(low) in ticks) and (low == 0 or "1" in ticks)


def test_play_moves_time_and_stops_at_the_end(page):
    press(page, "time", "End")
    page.focus("#play")
    page.keyboard.press("Enter")
    for _ in range(100):
        if float(page.input_value("#time")) >= 3:
            break
        page.wait_for_timeout(50)
    page.keyboard.press("Space")
    stopped = float(page.input_value("#time"))
    assert page.inner_text("#play") == "Play" and 3 <= stopped < 100
    page.wait_for_timeout(200)
    assert float(page.input_value("#time")) == stopped
    page.eval_on_selector("#time", "(node) => { node.value = 98; node.dispatchEvent(new Event('input')); }")
    page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    assert float(page.input_value("#time")) == 100
    shares = page.eval_on_selector_all(
        "#now-words tbody td", "(cells) => cells.map((cell) => Number(cell.dataset.value))"
    )
    np.testing.assert_allclose(shares, table(page, "heat")[-1, 1:], rtol=1e-12)


@pytest.mark.parametrize(("place", "setting"), [(INSIDE, flagship.inside()), (CONTRAST, flagship.contrast())])
def test_what_is_done_by_the_transition(page, place, setting):
    """Each level's share of its change, how far it moved and when it was fastest, against the flows of the main job."""
    choose(page, "transition", place)
    found = pt.around_transition(flagship.flows(setting))
    assert page.is_checked("#level-full")
    for name in ("theory", "modified", "full"):
        own = found.sel(flow=name)
        shown = float(page.get_attribute(f"#done-{name}", "data-value"))
        assert shown == pytest.approx(float(own["done"]), abs=1e-3)  # the flows' shares are interpolated between times
        assert page.inner_text(f"#done-{name}") == f"{float(own['done']):.0%}"
        assert f"{float(own['done']):.0%} ({name} flow)" in page.inner_text("#transition-summary")
        page.check(f"#level-{name}")
        settle(page)
        said = re.search(r"^(\S+) of all attention has moved in ", page.inner_text("#transition-summary"))
        assert float(said[1]) == pytest.approx(float(own["change"]), rel=6e-3)
        said = re.search(rf"in the {name} flow .*, fastest at t = (\S+)\.$", page.inner_text("#transition-see"))
        assert float(said[1]) == pytest.approx(float(own["fastest_attention"]), rel=0.03)  # two digits
    page.uncheck("#unit-constant")
    assert page.get_attribute("#done-sgd", "data-value") == "NaN"  # too short a run


@pytest.mark.parametrize("place", [INSIDE])
def test_the_first_plot_shows_speed_and_change(page, place):
    """Its other two views, against the flows of Python."""
    choose(page, "transition", place)
    runs = flagship.flows(flagship.inside())
    assert page.is_checked("#view-speed" if place == INSIDE else "#view-share")
    for view, title in (
        ("speed", "Speed of attention, over its largest"),
        ("change", "How much of its change is done"),
    ):
        page.check(f"#view-{view}")
        settle(page)
        assert page.inner_text("#share h3 span").startswith(title)
        assert "SGD" not in page.inner_text("#share .key")
        names = [cell.split()[0] for cell in page.locator("#share-words thead th").all_text_contents()[1:]]
        assert sorted(names) == ["closed", "full", "modified", "theory"]
        t, *curves = table(page, "share").T
        for name, curve in zip(names, curves, strict=True):
            if name != "closed":
                speed = pt.attention_speed(runs[name])
                expected = speed / speed.max() if view == "speed" else pt.share_done(runs[name])
                np.testing.assert_allclose(curve, expected.interp(time=t), atol=0.01)
    page.check("#view-share")
    settle(page)
    assert page.inner_text("#share h3 span").startswith("Attention on two tokens")


def test_the_first_plot_of_a_link_is_the_one_that_was_chosen(page):
    page.check("#view-change")
    chosen = "#at=transition&transition.level=closed&transition.view=change"
    page.wait_for_function("(end) => location.hash.endsWith(end)", arg=chosen)  # the page writes it when it has time


def test_in_the_paper_s_figure_3_less_than_half_is_done(page):
    choose(page, "transition", FIGURE_3)
    assert "at no level here half of the change up to t = 700 is done by t*" in PRESETS[FIGURE_3].text
    assert PRESETS[FIGURE_3].setting["end"] == 700
    for level in ("closed", "theory", "modified", "full"):
        assert 0.1 < float(page.get_attribute(f"#done-{level}", "data-value")) < 0.5


TIMED = ("share", "heat", "growth", "exponent", "gamma")


def _axes(page):
    """For each plot the texts of its axes and their places."""
    script = """(nodes) => nodes.map((node) => [node.closest(".canvas").id, node.textContent,
      node.getAttribute("x"), node.getAttribute("y"), node.getAttribute("transform")].join(" "))"""
    return page.eval_on_selector_all("#transition .axes text", script)


def test_no_axis_moves_when_another_level_is_chosen(page):
    seen, pictures = [], set()
    for level in ("closed", "theory", "modified", "full", "sgd"):
        page.check(f"#level-{level}")
        settle(page)
        seen.append(_axes(page))
        pictures.add(page.inner_html("#growth-canvas"))
        for name in ("heat", "growth"):
            assert page.inner_text(f"#{name} .scope").startswith("the chosen level: ")
        chosen = page.inner_text("#growth .scope").removeprefix("the chosen level: ")
        assert page.inner_text("#now .scope") == chosen
        assert page.inner_text("#exponent .scope") == "all levels; the chosen one is thick"
        assert page.inner_text("#share .scope").endswith("; the chosen one is thick")
        for name in ("gamma", "decoder"):
            assert page.inner_text(f"#{name} .scope").endswith("the same at every level")
    assert len(seen[0]) > 60 and all(axes == seen[0] for axes in seen)
    assert len(pictures) == 5


def test_every_level_is_drawn_and_the_chosen_one_is_thick(page):
    for level, colour in (("closed", "c3"), ("full", "c0"), ("sgd", "c4")):
        page.check(f"#level-{level}")
        settle(page)
        widths = page.eval_on_selector_all(
            "#exponent-canvas path:not(.band)",
            "(all) => all.map((one) => [one.style.stroke, Number(one.getAttribute('stroke-width'))])",
        )
        assert {name for name, _ in widths} == {f"var(--c{i})" for i in range(6)}
        assert [name for name, width in widths if width > 3] == [f"var(--{colour})"]


def test_the_transition_is_marked_in_every_plot_with_time(page):
    """At its place on the logarithmic axis, and in visits of a class for the decoder."""
    script = """(id) => {
      const canvas = document.getElementById(`${id}-canvas`);
      const mark = canvas.querySelector("line.mark");
      const ticks = [...canvas.querySelectorAll(".axes text[text-anchor=middle]")];
      return {
        mark: Number(mark.getAttribute("x1")), label: canvas.querySelector(".marks text").firstChild.data,
        ticks: Object.fromEntries(ticks.map((node) => [node.textContent, Number(node.getAttribute("x"))])),
      };
    }"""
    peak = decoder.transition_time(vocab_size=1000, n_classes=10, eta_y=1.0)
    for name in TIMED:
        found = page.evaluate(script, name)
        one, hundred = found["ticks"]["1"], found["ticks"]["100"]
        assert found["label"] == "t*"
        assert found["mark"] == pytest.approx(one + (hundred - one) * np.log10(peak) / 2, abs=0.01)
    found = page.evaluate(script, "decoder")
    none, hundred = found["ticks"]["0"], found["ticks"]["100"]
    assert found["label"] == "t*"
    assert found["mark"] == pytest.approx(none + (hundred - none) * peak / 1000, abs=0.01)


@pytest.mark.parametrize("level", ["closed", "modified", "sgd", "sgd infinity"])
def test_the_program_gives_what_the_page_shows(page, level):
    choose(page, "transition", FIGURE_8)  # two classes and a short training
    level, *chosen = level.split()
    page.check(f"#level-{level}")
    page.select_option("#sequences", *(chosen or ["128"]))
    settle(page)
    shown = table(page, "heat")[-1, 1:]
    logit = values(page, "transition")["common"]
    names = run_program(page, "transition")
    if level == "closed":
        np.testing.assert_allclose(-names["B"][-1], logit, rtol=1e-12)
        np.testing.assert_allclose(names["growth"][-1][0], values(page, "transition")["growth"], rtol=1e-12)
        return
    np.testing.assert_allclose(names["run"]["z"].values[0, 0], logit, rtol=1e-6)
    tolerance = 0.02 if level == "sgd" else 1e-6  # the page has the means of SGD's logits over the classes
    np.testing.assert_allclose(names["run"]["attention"].values[:6], shown, rtol=tolerance, atol=tolerance / 10)


def test_the_data_file_has_every_level(page):
    rows = downloaded(page, "transition")
    assert rows[0][:3] == ["level", "t", "logit common"] and len(rows[0]) == 14
    assert {row[0] for row in rows[1:]} == {"closed", "theory", "modified", "full", "sgd", "sgd, T = infinity"}
    last = [row for row in rows if row[0] == "full"][-1]
    page.check("#level-full")
    settle(page)
    np.testing.assert_allclose(np.array(last[8:], dtype=float), table(page, "heat")[-1, 1:], rtol=1e-12)
    assert float(last[2]) == values(page, "transition")["common"]
