"""The explorer as a tour: what is seen at once, what an address holds, what can be copied."""

import re

import driving
import pytest
from explorer_pages import choose, opened, press, settle, written

from yzflow.pages.explorer.registry import panels

NAMES = [panel.name for panel in panels()]

BOXES = """(selector) => [...document.querySelectorAll(selector)].map((node) => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return { id: node.id, left, top, right, bottom, seen: over !== null && node.contains(over) };
})"""


# Marks what is seen of a selector, in no closed fold.
MARK = """(selector) => {
  for (const node of document.querySelectorAll("[data-shown]")) delete node.dataset.shown;
  for (const node of document.querySelectorAll(selector)) if (node.checkVisibility()) node.dataset.shown = "";
}"""


@pytest.fixture(scope="module")
def explorer_file(tmp_path_factory):
    return written(tmp_path_factory)


def _inside(box, width, height):
    return box["seen"] and 0 <= box["left"] < box["right"] <= width and 0 <= box["top"] < box["bottom"] <= height


def test_first_screen_holds_all_controls_and_the_plot(browser, explorer_file):
    """At 1280 x 800, as the page opens for the first panel and after a click on its link for the others."""
    page = browser(explorer_file)
    page.wait_for_selector("html[data-ready]")
    for panel in NAMES:
        if panel != NAMES[0]:
            page.click(f"nav a[href='#{panel}']")
        settle(page)
        form = "form :is(input:not([type=number]), select, button), .lead :is(input, button), .preset select"
        page.evaluate(MARK, f"#{panel} :is({form})")
        controls, plots = page.evaluate(BOXES, "[data-shown]"), page.evaluate(BOXES, f"#{panel} .lead .canvas")
        words = page.evaluate(BOXES, f"#{panel} h2, #{panel}-preset-text")
        assert 8 < len(controls) <= 20 and len(plots) >= 1 and len(words) == 2
        assert [box["id"] for box in controls + plots + words if not _inside(box, 1280, 800)] == []
        assert plots[0]["bottom"] - plots[0]["top"] > 340 and plots[0]["right"] - plots[0]["left"] > 500
        (lead,) = page.evaluate(BOXES, f"#{panel} .lead")
        assert lead["bottom"] - lead["top"] > 400 and lead["right"] - lead["left"] > 800  # half of the height, and more
        (said,) = page.evaluate(BOXES, f"#{panel} .see")
        assert _inside(said, 1280, 800) and page.inner_text(f"#{panel} .see").endswith(".")


def test_attention_moves_where_the_page_opens(browser, explorer_file):
    """Lines of the first plot leave their beginnings by a tenth of its height."""
    page = opened(browser, explorer_file)
    lines = page.eval_on_selector_all(
        f"#{NAMES[0]} .lead .plot:first-child path:not(.band)",
        "(all) => all.map((one) => one.getAttribute('d').slice(1).split('L').map((at) => Number(at.split(' ')[1])))",
    )
    assert max(max(line) - min(line) for line in lines if len(line) > 9) > 34


def test_on_a_phone_the_plot_stays_in_view_while_a_slider_moves(browser, explorer_file):
    page = opened(browser, explorer_file, width=390, height=844)
    for panel in NAMES:
        sliders = page.eval_on_selector_all(f"#{panel} input[type=range]", "(all) => all.map((node) => node.id)")
        assert len(sliders) >= 3
        for slider in sliders:
            press(page, slider, "ArrowRight", "ArrowLeft")
            plot = page.evaluate(BOXES, f"#{panel} .lead .canvas")[0]
            (moved,) = page.evaluate(BOXES, f"#{slider}")
            assert _inside(plot, 390, 844) and _inside(moved, 390, 844), slider
            assert plot["bottom"] - plot["top"] > 150
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def _state(page):
    script = """() => Object.fromEntries([...document.querySelectorAll("input, select")].map(
      (node) => [node.id, node.type === "radio" || node.type === "checkbox" ? node.checked : node.value]))"""
    return page.evaluate(script)


def _address(page, *, until):
    """The address when it has settled."""
    driving.until(lambda: until in page.evaluate("location.hash"))
    page.wait_for_timeout(300)
    return page.evaluate("location.href")


@pytest.mark.parametrize("panel", NAMES[:2])
def test_the_address_opens_the_page_as_it_was(browser, explorer_file, panel):
    page = opened(browser, explorer_file)
    fresh = _state(page)
    choose(page, panel, 1)
    sliders = page.eval_on_selector_all(f"#{panel} form input[type=range]", "(all) => all.map((node) => node.id)")
    for slider in sliders[:3]:
        press(page, slider, "ArrowRight", "ArrowRight")
    radios = page.eval_on_selector_all(
        f"#{panel} form input[type=radio]:not(:checked):not(:disabled)", "(all) => all.map((node) => node.id)"
    )
    page.check(f"#{radios[0]}")
    settle(page)
    link = _address(page, until=f"{panel}.preset=1")
    state = _state(page)
    changed = {name for name in state if state[name] != fresh.get(name)}
    assert {f"{panel}-preset-select", radios[0]} <= changed and len(changed & set(sliders[:3])) >= 2
    again = opened(browser, link)
    assert _state(again) == state
    assert again.inner_text(f"#{panel}-summary") == page.inner_text(f"#{panel}-summary")
    (title,) = again.evaluate(BOXES, f"#{panel} h2")
    assert _inside(title, 1280, 800)
    again.click(f"#{panel}-reset")
    settle(again)
    choose(again, panel, 0)
    driving.until(lambda: again.evaluate("location.hash") == "")
    assert _state(again) == fresh


def test_panels_share_an_address(browser, explorer_file):
    page = opened(browser, explorer_file)
    for panel in NAMES:
        choose(page, panel, 1)
    state = _state(opened(browser, _address(page, until=f"{NAMES[-1]}.preset=1")))
    assert [state[f"{panel}-preset-select"] for panel in NAMES] == ["1"] * len(NAMES)


def test_nonsense_in_an_address_is_left_out(browser, explorer_file):
    page = opened(browser, explorer_file)
    fresh = _state(page)
    for panel in NAMES:
        for kind in ("range", "radio"):
            last = page.eval_on_selector_all(
                f"#{panel} form input[type={kind}]:not(:checked):not(:disabled)", "(all) => all.at(-1).id"
            )
            press(page, last, "ArrowUp" if kind == "range" else "Space")
    link = _address(page, until=f"&{NAMES[-1]}.").partition("#")[2]
    state = _state(page)
    assert state != fresh
    for wrong in ("", "best"):
        names, count = re.subn(r"(\.\w+)=[^&]*", rf"\1={wrong}", link)
        assert count >= 2 * len(NAMES)
        page.evaluate("(hash) => { location.hash = hash; }", f"{names}&{NAMES[0]}.preset={wrong}&{NAMES[0]}.none=1")
        driving.until(lambda: _state(page) == fresh)
        page.evaluate("(hash) => { location.hash = hash; }", link)
        driving.until(lambda: _state(page) == state)


def test_an_address_that_is_entered_later_is_followed_too(browser, explorer_file):
    page = opened(browser, explorer_file)
    page.evaluate(f"location.hash = '#at={NAMES[1]}&{NAMES[1]}.preset=2'")
    driving.until(lambda: page.input_value(f"#{NAMES[1]}-preset-select") == "2")
    page.click(f"nav a[href='#{NAMES[0]}']")  # a link to a place says nothing of the controls
    settle(page)
    assert page.input_value(f"#{NAMES[1]}-preset-select") == "2"


@pytest.mark.parametrize("panel", NAMES)
def test_reset_and_copies(browser, explorer_file, panel):
    page = opened(browser, explorer_file, permissions=["clipboard-read", "clipboard-write"])
    fresh = _state(page)
    slider = page.eval_on_selector(f"#{panel} form input[type=range]", "(node) => node.id")
    press(page, slider, "ArrowRight", "ArrowRight")
    page.click(f"#{panel}-link")
    driving.until(lambda: page.inner_text(f"#{panel}-status").startswith("Link copied"))
    link, address = page.evaluate("navigator.clipboard.readText()"), page.evaluate("location.href")
    # A file has another address elsewhere: its name and the state are copied, with words on how to use them.
    assert link == address.rpartition("/")[2] and f"#at={panel}&" in link
    assert "Send the file too" in page.inner_text(f"#{panel}-status")
    page.click(f"#{panel} details.program summary")
    page.click(f"#{panel}-copy")
    driving.until(lambda: page.inner_text(f"#{panel}-status") == "Program copied.")
    program = page.evaluate("navigator.clipboard.readText()")
    compile(program, "<program>", "exec")
    assert re.search(r"^(from|import) ", program)
    driving.until(lambda: page.inner_text(f"#{panel}-python") == program)
    widths = "(node) => [node.scrollWidth, node.clientWidth]"
    needed, there = page.eval_on_selector(f"#{panel} form", widths)
    assert needed <= there  # a long line scrolls in its own box
    page.click(f"#{panel}-reset")
    settle(page)
    assert _state(page) == fresh


def test_without_a_clipboard_the_text_is_shown(browser, explorer_file):
    page = opened(browser, explorer_file)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.click(f"#{NAMES[0]} details.program summary")
    page.click(f"#{NAMES[0]}-copy")
    driving.until(lambda: "import " in page.inner_text(f"#{NAMES[0]}-status"))


LABELS = """() => [...document.querySelectorAll(".marks text[text-anchor=middle]:not(.span)")].flatMap((text) => {
  const canvas = text.closest(".canvas").getBoundingClientRect();
  const lines = [...text.closest("svg").querySelectorAll("line.mark")];
  const line = lines.find((one) => one.dataset.label === text.firstChild.data);
  const [at, own] = [line.getBoundingClientRect(), text.getBoundingClientRect()];
  return [{ label: line.dataset.label, plot: canvas.left + "," + canvas.top, line: (at.left + at.right) / 2,
    left: own.left, right: own.right, top: own.top, bottom: own.bottom,
    inside: own.left >= canvas.left - 1 && own.right <= canvas.right + 1 }];
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_stand_at_their_lines_and_not_over_each_other(browser, explorer_file, width):
    page = opened(browser, explorer_file, width=width)
    found = page.evaluate(LABELS)
    assert len(found) >= 12 and all(one["inside"] for one in found)
    assert [one for one in found if abs((one["left"] + one["right"]) / 2 - one["line"]) > 3] == []
    for one in found:
        for other in found:
            if one is not other and one["plot"] == other["plot"]:
                apart = one["right"] <= other["left"] or other["right"] <= one["left"]
                assert apart or one["bottom"] <= other["top"] + 4 or other["bottom"] <= one["top"] + 4, (one, other)


def test_a_preset_that_is_left_takes_its_words_along(browser, explorer_file):
    page = opened(browser, explorer_file)
    for panel in NAMES:
        shown = page.is_visible(f"#{panel}-preset-text")
        assert shown and page.inner_text(f"#{panel}-left") == ""
        slider = page.eval_on_selector(f"#{panel} form input[type=range]", "(node) => node.id")
        press(page, slider, "ArrowRight")
        settle(page)
        assert "changed this example" in page.inner_text(f"#{panel}-left")
        assert not page.is_visible(f"#{panel}-preset-text") and not page.is_visible(f"#{panel}-preset details")
        page.click(f"#{panel}-reset")
        settle(page)
        assert page.is_visible(f"#{panel}-preset-text") and page.inner_text(f"#{panel}-left") == ""


def test_symbols_are_explained_on_hover_and_by_a_tap(browser, explorer_file):
    page = opened(browser, explorer_file)
    for panel in NAMES:
        buttons = page.query_selector_all(f"#{panel} .symbols button")
        assert len(buttons) >= 3
        for button in buttons:
            meaning = button.get_attribute("title")
            button.click()
            said = page.inner_text(f"#{panel} .symbols [role=status]")
            assert said == f"{button.inner_text()}: {meaning.replace('_', '')}" and len(meaning) > 20
            assert button.get_attribute("aria-expanded") == "true"
        buttons[-1].click()
        assert page.inner_text(f"#{panel} .symbols [role=status]") == ""


def test_numbers_out_of_range_are_refused_where_they_are_typed(browser, explorer_file):
    page = opened(browser, explorer_file)
    before = _state(page)
    script = """(all) => all.map((node) => {
      node.value = "1e12";
      node.dispatchEvent(new Event("change"));
      return [node.id, node.getAttribute("aria-invalid")];
    })"""
    found = page.eval_on_selector_all("input[type=number]", script)
    assert len(found) > 3 * len(NAMES) and {invalid for _, invalid in found} == {"true"}
    for name, _ in found:
        said = page.inner_text(f"#{name.removesuffix('-exact')}-wrong")
        low, high = (float(page.get_attribute(f"#{name}", end)) for end in ("min", "max"))
        told = re.search(r"must be (?:a whole number )?from ([\d.,]+) to ([\d.,]+)\. Still at", said)
        assert [float(one.replace(",", "")) for one in told.groups()] == [low, high]
    settle(page)
    after = _state(page)
    assert [name for name in before if after[name] != before[name]] == [name for name, _ in found]
