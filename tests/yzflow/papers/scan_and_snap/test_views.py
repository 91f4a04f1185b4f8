"""Plots with sliders on the statements' pages: their numbers against Python, and the words of the questions."""

import numpy as np
import pytest
from explorer_pages import downloaded, enter, exact, opened, press, settle, table
from scipy.integrate import simpson
from statement_pages import assert_one_screen, assert_python_agrees, bare, firsts

from dynamics import SequenceClasses, gradient_flow
from theory import decoder, statements
from theory.papers import papers
from theory.scan_and_snap import bounds
from yzflow.pages import live
from yzflow.papers.scan_and_snap import views
from yzflow.papers.scan_and_snap.panel import data, formulas
from yzflow.papers.scan_and_snap.settings import PAPER, Setting, single_common_token, two_common_tokens

# With what other distributions add to the paper.
VIEWS, QUESTIONS = (getattr(papers()["scan_and_snap"], name) for name in ("views", "questions"))
NUMBERS = list(VIEWS.views)
FIRST = VIEWS.starts[None][0].setting


def page_of(browser, number, folder):
    return opened(browser, bare(statements.REGISTER[f"{PAPER}: {number}"], folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("views")


@pytest.mark.parametrize("number", NUMBERS)
def test_what_sliders_show_is_what_python_computes(shared_browser, folder, number):
    """By keyboard to other values; the program that the page offers is made of functions of theory and dynamics."""
    page = page_of(shared_browser, number, folder)
    assert_one_screen(page)
    if number in firsts(VIEWS):
        assert_python_agrees(page)
    assert not shared_browser.problems


def test_a_class_beside_a_star_by_eigenvalues(shared_browser, folder):
    """The pull vanishes where the overlaps' largest eigenvalue is 1/sqrt(K - 2), up to the touch."""
    page = page_of(shared_browser, "Theorem 1(a)", folder)
    enter(page, "set-K", 6)
    enter(page, "set-M", 20)
    rows = np.array([row[1:3] for row in downloaded(page, "live")[1:] if row[0] == "star"], dtype=float)
    zero = np.interp(0.0, -rows[:, 1], rows[:, 0])
    gram = np.eye(6)
    gram[1, 2:] = gram[2:, 1] = zero / 2
    assert np.abs(np.linalg.eigvalsh(gram - np.eye(6))).max() == pytest.approx(zero)
    assert zero == pytest.approx(0.5, rel=0.01)
    gram[0, 1] = gram[1, 0] = 1e-4
    assert (
        abs(bounds.xi_over_gamma(gram, 20)[0]) < 0.02 * bounds.xi_over_gamma(np.eye(6) + (gram - np.eye(6)) / 10, 20)[0]
    )


@pytest.mark.parametrize("level", ["modified", "full"])
def test_all_of_the_decoder_is_compared_with_theorem_5(shared_browser, folder, level):
    """The largest entry of Y less F (I - E') W, from Python's flow with every row of Y."""
    page = page_of(shared_browser, "Theorem 5", folder)
    enter(page, "set-M", 60)
    enter(page, "set-rho", 0.3)
    enter(page, "set-etaZ", 2)
    t, off = table(page, "difference")[:, [0, 1 if level == "modified" else 2]].T
    k, m, eta_y = FIRST["K"], 60, FIRST["etaY"]
    run = gradient_flow(
        single_common_token(k, m, 0.3), eta_y=eta_y, eta_z=2.0, t_end=t[-1], times=[0.0, *t], decoder=level,
        rtol=1e-10, atol=1e-14,
    ).dataset.isel(time=slice(1, None))  # fmt: skip
    shares, found = run["attention"].to_numpy(), run["y"].to_numpy()
    f = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    rows = m * decoder.h(t / k, vocab_size=m, eta_y=eta_y)[:, None, None] * (np.eye(k, found.shape[2]) - 1 / m)
    wanted = f.transpose(0, 2, 1) @ np.linalg.solve(f @ f.transpose(0, 2, 1), rows)
    errors = np.abs(found - wanted).max(axis=(1, 2)) / np.abs(wanted).max(axis=(1, 2))
    np.testing.assert_allclose(off, errors, rtol=1e-4, atol=1e-8)
    assert errors.max() > 0.01


def test_late_attention_has_the_published_exponents(shared_browser, folder):
    """K = M, where the exponent is 1, and the second row of the finding's table at ln t = 1000."""
    page = page_of(shared_browser, "Late attention", folder)
    rows = [row for row in downloaded(page, "live")[1:] if row[0] == "full"]
    assert float(rows[-1][1]) == 1000 and 4 / 19 * (1 + float(rows[-1][3])) == pytest.approx(0.226, abs=5e-4)
    page.select_option("#live-preset-select", "1")
    settle(page)
    ratio = table(page, "curves")[:, 2]
    np.testing.assert_allclose(ratio[-1] / ratio[-2], table(page, "curves")[-2, 0] / 1000, rtol=1e-3)


def test_differences_are_from_the_corrected_form(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 4", folder)
    _, corrected, *others = table(page, "curves").T
    np.testing.assert_allclose(table(page, "difference").T[1:], np.abs(others / corrected - 1), rtol=1e-9)


def task(number, setting):
    classes = two_common_tokens if number == "Corollary 2" else single_common_token
    return Setting("", classes(setting["K"], setting["M"], setting["rho"]), setting["etaY"], setting["etaZ"], 100.0)


@pytest.mark.parametrize("number", sorted(set(NUMBERS) - {"Late attention", "Theorem 1(a)"}))
def test_the_page_has_each_assumption_that_its_sliders_move(number):
    """Margins in drawn sequences and of one level aside."""
    sliders = ("K", "M", "etaY", "etaZ", "rho")
    settings = [task(number, FIRST), *(task(number, FIRST | {name: 2 * FIRST[name]}) for name in sliders)]
    for assumption in statements.REGISTER[f"{PAPER}: {number}"].assumptions:
        if not assumption.levels and assumption not in formulas.ASSUMPTIONS.values():
            margins = [assumption.margin(setting) for setting in settings]
            assert min(margins) >= 1 and np.ptp(margins) <= 1e-6 * margins[0], assumption.text


@pytest.mark.parametrize("number", ["Theorem 3", "Theorem 4", "Corollary 2", "Theorem 1(b)", "Remark 2"])
def test_margins_are_those_of_the_register(shared_browser, folder, number):
    """At the page's sliders; one below one is broken."""
    page = page_of(shared_browser, number, folder)
    if page.query_selector("#set-rho"):
        enter(page, "set-rho", 0.02)
    start = VIEWS.starts.get(VIEWS.views[number], VIEWS.starts[None])[0].setting
    setting = task(number, FIRST | start | {"rho": 0.02})
    assumptions = statements.REGISTER[f"{PAPER}: {number}"].assumptions
    shown = [assumption for assumption in assumptions if assumption in formulas.ASSUMPTIONS.values()]
    rows = page.eval_on_selector_all(
        "#live-margins li",
        """(all) => all.map((one) => [one.querySelector("[data-assumption]").dataset.assumption, one.textContent,
        one.querySelector("output").dataset.value])""",
    )
    for (text, words, margin), assumption in zip(rows, shown, strict=True):
        assert text == assumption.text and float(margin) == pytest.approx(assumption.margin(setting), rel=1e-8)
        assert words.endswith("(broken)") == (assumption.margin(setting) < 1)


def test_the_bands_of_sgd_are_python_s_and_say_that_they_stand_still(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 2(b)", folder)
    content = views.collect("common", VIEWS.starts[None][0])
    rows = downloaded(page, "live")[1:]
    key = "() => [...document.querySelectorAll('#curves .key li')].slice(-2).map((one) => one.textContent)"
    axes, pictures = _axes(page), set()
    names = {"128": "T = 128", "1024": "T = 1,024", "8192": "T = 8,192", "infinity": "T = ∞"}
    assert list(content["runs"]) == list(names)
    for length, run in content["runs"].items():
        fall = -np.array(run["z"])[:, :, 0]
        for end, of in (("smallest", fall.min(axis=0)), ("largest", fall.max(axis=0))):
            found = [float(row[2]) for row in rows if row[0] == f"SGD, T = {length}, {end}"]
            np.testing.assert_allclose(found, of)
        page.select_option("#set-sequences", length)
        settle(page)
        seeds = len(fall)
        many = f"{seeds} seeds, " if seeds > 1 else ""
        limit = [] if length == "infinity" else ["SGD, T = ∞"]
        assert page.evaluate(key)[-1 - len(limit) :] == [f"SGD, {many}{names[length]}", *limit]
        assert page.inner_text("#live-told") == run["told"] == content["told"][length]
        assert f"SGD, {many}{names[length]}, after {data.MAX_STEPS} steps:" in page.inner_text("#curves-text")
        assert page.locator("#curves path.band").count() == (seeds > 1) and _axes(page) == axes
        pictures.add(page.inner_html("#curves-canvas"))
    assert len(pictures) == 4 and len(content["runs"]["128"]["z"]) == views.SEEDS
    page.select_option("#set-sequences", "128")
    settle(page)
    band = page.get_attribute("#curves path.band", "d")
    assert band.startswith("M") and band.endswith("Z")
    press(page, "set-rho", "ArrowRight")
    assert all(one.endswith(": as the page opened, not at these sliders") for one in page.evaluate(key))
    assert page.locator("#curves path.band").count() == 1
    press(page, "set-rho", "ArrowLeft")
    enter(page, "set-rho", FIRST["rho"])
    press(page, "set-end", "ArrowLeft")  # a run that goes on is the same run
    assert page.evaluate(key) == [f"SGD, {views.SEEDS} seeds, T = 128", "SGD, T = ∞"]


def test_a_page_without_runs_of_sgd_has_no_choice_of_their_length(shared_browser, folder):
    page = page_of(shared_browser, "Lemma 4", folder)
    assert page.locator("#set-sequences").count() == 0 and page.inner_text("#live-told") == ""


def _axes(page):
    script = "(all) => all.map((one) => [one.textContent, one.getAttribute('x'), one.getAttribute('y')].join(' '))"
    return page.eval_on_selector_all("#plot .axes text", script)


@pytest.mark.parametrize("number", ["Theorem 4", "Theorem 2(a)", "Lemma 4"])
def test_axes_stand_still_while_a_slider_moves_a_little(shared_browser, folder, number):
    page = page_of(shared_browser, number, folder)
    still, pictures = _axes(page), set()
    for slider in ("set-etaY", "set-M", "set-K"):  # t* moves with each of them
        press(page, slider, "ArrowRight")
        assert _axes(page) == still, slider
        pictures.add(page.inner_html("#curves-canvas"))
    assert len(pictures) == 3 and len(still) > 15


def test_transition_and_the_paper_s_times_are_marked_in_both_plots(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 1", folder)
    for plot in ("curves", "difference"):
        labels = page.eval_on_selector_all(
            f"#{plot}-canvas .marks text", "(all) => all.map((one) => one.firstChild.data)"
        )
        assert labels == ["t*", "t₀\N{PRIME}", "t₀"]


def test_a_class_more_than_the_vocabulary_raises_the_vocabulary(shared_browser, folder):
    page = page_of(shared_browser, "Theorem 4", folder)
    enter(page, "set-M", 5)
    assert exact(page, "set-M") == FIRST["K"]
    settle(page)
    assert not shared_browser.problems


@pytest.mark.slow
def test_integral_of_xi_against_the_motion_of_the_common_token():
    """z' = -eta_Z (1 - f^2) xi, and by Simpson's rule over fine times."""
    classes = SequenceClasses.single_common_token(3, 50, common=0.8)
    times = np.geomspace(0.1, 200, 40)
    found = views.integral_of_xi(classes, times, eta_y=1.0, eta_z=0.5)
    fine = np.linspace(0, 200, 4001)
    run = gradient_flow(
        classes, eta_y=1.0, eta_z=0.5, t_end=200, times=fine, decoder="theory", rtol=1e-10, atol=1e-14
    ).dataset
    shares = run["attention"].to_numpy()[:, 0]
    squares = (shares / np.linalg.norm(shares, axis=1, keepdims=True))[:, 0] ** 2
    xi = -run["z_velocity"].to_numpy()[:, 0, 0] / 0.5 / (1 - squares)
    assert found[-1] == pytest.approx(simpson(xi, x=fine), rel=1e-5)
    assert found[0] > 0 and (np.diff(found) > 0).all()


# Questions


def test_every_theorem_has_a_question():
    theorems = {one.number for one in statements.REGISTER.values() if one.paper == PAPER and "Theorem" in one.number}
    assert theorems == set(QUESTIONS)
    assert all(asked.endswith("?") and answer.endswith(".") for asked, answer in QUESTIONS.values())


@pytest.mark.slow
def test_the_first_setting_is_that_of_the_panel_s_words():
    assert all(live.views(statements.REGISTER[f"{PAPER}: {number}"]) is not None for number in NUMBERS)
    assert live.views(statements.REGISTER[f"{PAPER}: Lemma 13"]) is None
    assert views.common_of(0.5) ** 2 == pytest.approx(sum(p * p for p in views.DISTINCT))
