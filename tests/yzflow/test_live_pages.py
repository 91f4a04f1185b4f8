"""Pages of statements with sliders: on a phone, the address, what can be copied, and readers of all kinds.

That all is on one screen, and that numbers are Python's, is tested with the room of each paper.
"""

import random
import re
from urllib.parse import quote

import driving
import pytest
from explorer_pages import enter, opened, press, settle
from statement_pages import BOXES, PHONE, bare

from theory import statements
from yzflow.pages import live
from yzflow.pages import statement as single

LIVE = {one.id: one for one in statements.REGISTER.values() if live.views(one)}
TALLEST = max(LIVE.values(), key=lambda one: len(one.text) + 4 * len(one.printed + (one.corrected or "")))
SHOWN = [*dict.fromkeys(["Scan and Snap: Theorem 4", TALLEST.id])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("live")


def shown(browser, folder, name, **options):
    return opened(browser, bare(LIVE[name], folder), **options)


def state(page):
    return page.evaluate("() => [...document.querySelectorAll('input, select')].map((one) => [one.id, one.value])")


@pytest.mark.parametrize("name", SHOWN)
def test_on_a_phone_the_plot_stays_in_view_while_a_slider_moves(shared_browser, folder, name):
    page = shown(shared_browser, folder, name, **PHONE)
    sliders = page.eval_on_selector_all("#live-sliders input[type=range]", "(all) => all.map((one) => one.id)")
    for slider in sliders:
        press(page, slider, "ArrowRight")
        for node in ("#curves-canvas", f"#{slider}"):
            [box] = page.evaluate(BOXES, node)
            assert 0 <= box["top"] < box["bottom"] <= PHONE["height"], (slider, node)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    order = page.evaluate(BOXES, "#curves, #live-controls, #difference")
    places = {box["name"]: box["top"] for box in order}
    assert places["live-controls"] < places["difference"]


def test_the_address_opens_the_page_as_it_was(shared_browser, folder):
    page = shown(shared_browser, folder, SHOWN[0], permissions=["clipboard-read", "clipboard-write"])
    fresh, words = state(page), page.inner_text("#words")
    page.select_option("#live-preset-select", "1")
    settle(page)
    press(page, "set-K", "ArrowRight", "ArrowRight")
    enter(page, "set-rho", 0.03)
    changed = state(page)
    page.click("#live-link")
    driving.until(lambda: page.inner_text("#live-status").startswith("Link copied"))
    link = page.evaluate("navigator.clipboard.readText()")
    assert "#at=live&live.preset=1&" in link and "live.rho=0.03" in link
    name, _, shows = link.partition("#")
    assert name == page.url.partition("#")[0].rpartition("/")[2]
    again = opened(shared_browser, f"{page.url.partition('#')[0]}#{shows}")
    assert state(again) == changed != fresh
    assert again.inner_text("#words") == page.inner_text("#words") != words
    again.evaluate("location.hash = '#at=live&live.rho=none&live.K=1e9&live.x=1'")
    driving.until(lambda: state(again) == fresh)
    page.click("#live-reset")
    page.select_option("#live-preset-select", "0")
    settle(page)
    assert state(page) == fresh and page.inner_text("#words") == words
    page.click("#live-actions details.program summary")
    page.click("#live-copy")
    driving.until(lambda: page.inner_text("#live-status") == "Program copied.")
    compile(page.evaluate("navigator.clipboard.readText()"), "<program>", "exec")


HOSTILE_VALUES = [
    "<script>window.stolen=1</script>", '"><img src=x onerror="window.stolen=1">', "javascript:window.stolen=1",
    "'+window.stolen+'", "${window.stolen=1}", "NaN", "-NaN", "Infinity", "-Infinity", "1e999", "-1e309", "1e308",
    "9" * 400, "0x10", "-0", "1,5", "", " ", "null", "undefined", "__proto__", "constructor", "%00", "%", "%E0%A4%A",
    "\u202e1", "\u0661\u0662", "\U0001f600", "\ud83d", "a" * 20_000, "1e-400", "5e-324", "[object Object]", "0.1.2",
]  # fmt: skip
HOSTILE_PLACES = ["at", "live.preset", "live.__proto__", "live.constructor", "__proto__.polluted", "live", "", "live."]
"""Values and parameters of an address that somebody sends."""


def hostile_addresses(controls, rng, places):
    for value in HOSTILE_VALUES:
        for name in rng.sample([*HOSTILE_PLACES, *(f"live.{key}" for key in controls)], places):
            # As it is, and as a browser would write it.
            for text in dict.fromkeys((value, quote(value.encode("utf-8", "surrogatepass")))):
                yield f"#at=live&{name}={text}"
    yield "#" + "&".join(f"live.{key}=1e999" for key in controls)
    yield "#at=live&" + "&".join(f"live.{key}=NaN" for key in controls)
    yield "#at=live&" + "&".join(f"live.{key}=1&live.{key}=-1" for key in controls)
    yield "#" + "at=live&" * 5000
    yield "?at=live&live.preset=1<script>window.stolen=1</script>"
    yield "#trust', alert(1), '"


def test_a_hostile_address_changes_numbers_within_their_ranges_and_nothing_else(shared_browser, folder):
    """No script of an address runs, no control leaves its range, no number shown is none, and no error is told."""
    page = shown(shared_browser, folder, SHOWN[0])
    controls = page.evaluate(
        "() => [...document.querySelectorAll('#live-sliders input[type=range]')]"
        ".map((one) => one.id.replace(/^set-/, ''))"
    )
    fresh = state(page)
    nodes = "() => document.querySelectorAll('script, img, iframe, a, object, embed').length"
    before = page.evaluate(nodes)
    rng = random.Random(11)
    for address in hostile_addresses(controls, rng, places=1):
        page.evaluate("(text) => { location.hash = '#'; location.hash = text; }", address)
        settle(page)
        found = page.evaluate(
            """() => ({
              stolen: window.stolen ?? {}.polluted ?? null,
              bad: [...document.querySelectorAll('#live-sliders input[type=range]')]
                .filter((one) => !(Number(one.value) >= Number(one.min) && Number(one.value) <= Number(one.max)))
                .map((one) => one.id),
              typed: [...document.querySelectorAll('#live-sliders input:not([type=range])')]
                .filter((one) => !Number.isFinite(Number(one.value))).map((one) => [one.id, one.value]),
              words: document.querySelector('#words').innerText,
            })"""
        )
        assert found["stolen"] is None and found["bad"] == [] and found["typed"] == [], (address[:200], found)
        assert not re.search(r"NaN|undefined|Infinity", found["words"]), (address[:200], found["words"])
        assert page.evaluate(nodes) == before, address[:200]
    assert not shared_browser.problems
    # A new window that opens there, too: its first address is read before anything else happens.
    path = bare(LIVE[SHOWN[0]], folder).resolve().as_uri()
    for address in (
        "#at=live&live.preset=<script>window.stolen=1</script>",
        "#at=live&live.preset=-1",
        "?x=%E0%A4%A#%",
    ):
        again = opened(shared_browser, path + address)
        assert again.evaluate("window.stolen ?? null") is None and state(again) == fresh


def test_axe_finds_nothing_to_mend(shared_browser, folder):
    page = shown(shared_browser, folder, SHOWN[0], **PHONE, color_scheme="dark", bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    driving.assert_nothing_to_mend(page, least=25)


def test_the_words_on_differences_divide_by_nothing_small(shared_browser, folder):
    """Remark 2's lag is nothing at first, so that relative differences from it were of thousands of times."""
    page = shown(shared_browser, folder, "Scan and Snap: Remark 2")
    apart = "(([a, b]) => { const off = yzflow.apart(a, b); return [[...off], off.whole]; })"
    off, whole = page.evaluate(apart, [[1, 2, None, -9], [1e-9, -4, 3, 0]])
    assert off == [pytest.approx(1e9), 1.5, None, None] and whole == 9 / 4
    assert page.evaluate(apart, [[1.0], [0.0]])[1] in (None, float("inf"))
    page.select_option("#live-preset-select", "1")
    settle(page)
    words = page.inner_text(f"#{page.get_attribute('#difference-canvas', 'aria-describedby')}")
    assert words.startswith("Largest difference, over the largest value of what it is measured against: ")
    assert "e+" not in words and all(float(many) < 100 for many in re.findall(r"([\d.]+) times", words))
    assert max(map(_number, page.locator("#difference-words tbody td").all_text_contents())) > 100


def _number(text):
    return float(text) if re.fullmatch(r"[\d.e+-]+", text) else 0.0


def test_each_plot_has_words_and_a_table(shared_browser, folder):
    page = shown(shared_browser, folder, SHOWN[0])
    for plot in ("curves", "difference"):
        canvas = page.locator(f"#{plot}-canvas")
        assert canvas.get_attribute("role") == "img" and canvas.get_attribute("aria-label")
        assert page.inner_text(f"#{canvas.get_attribute('aria-describedby')}")
        heads = page.eval_on_selector_all(f"#{plot}-words th[scope=col]", "(all) => all.map((one) => one.textContent)")
        assert heads[0] == "t" and len(heads) > 3
        assert page.locator(f"#{plot}-words tbody tr").count() >= 10


@pytest.mark.slow
def test_the_file_is_complete_in_itself(folder):
    text = bare(LIVE[SHOWN[0]], folder).read_text(encoding="utf-8")
    assert len(text) < 4.5e5 and "default-src 'none'; script-src 'unsafe-inline'" in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|@import|url\(", markup)
    assert not re.search(r"@[A-Z]+@", markup) and "runs no script" not in markup
    scripts = "".join(re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL))
    assert set(re.findall(r"https?://[^\"'` ]*", scripts)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_a_question_is_asked_and_its_answer_folded(shared_browser, folder):
    asked, answer = (re.split(r"\$", text)[0] for text in live.question(LIVE[SHOWN[0]]))
    page = shown(shared_browser, folder, SHOWN[0])
    assert len(asked) > 40 and len(answer) > 5
    assert asked.strip() in page.inner_text("#question") and answer.strip() not in page.inner_text("#question")
    page.click("#question summary")
    assert answer.strip() in page.inner_text("#question")
    assert page.locator("#question svg[role=img]").count() > 2  # formulas


def test_what_is_sharper_than_printed_stands_below_the_first_screen(shared_browser, folder):
    name = "Scan and Snap: Theorem 1(a)"
    short, _, more = LIVE[name].text.partition(statements.SHARPER)
    page = shown(shared_browser, folder, name, **PHONE)
    assert short in page.inner_text("#statement") and "0.35184" in more
    assert "0.35184" in page.inner_text("#sharper") and "0.35184" not in page.inner_text("#statement")
    [canvas] = page.evaluate(BOXES, "#curves-canvas")
    assert canvas["top"] + 100 < PHONE["height"]


@pytest.mark.slow
def test_a_statement_that_no_room_shows_has_no_script():
    static = [one for one in statements.REGISTER.values() if one.id not in LIVE]
    assert min(len(LIVE), len(static)) > 10
    assert single.document("x", "y").count("<script") == 0
