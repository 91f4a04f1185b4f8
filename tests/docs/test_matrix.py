"""The survival page in a browser: filters hide rows, a cell opens its runs, and the keyboard reaches every cell."""

import driving
import pytest
import survival_page
from driving import ROOT
from markdown_pages import rendered

from yzflow.audits import survival
from yzflow.audits.survival_verdicts import Fate

SCREEN, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
ROWS = "(rows) => rows.map((row) => row.cells[0].textContent)"


@pytest.fixture(scope="module")
def table():
    return survival.load(ROOT / survival_page.DATA)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return rendered("survival", tmp_path_factory.mktemp("pages"))


def choose(page, name, label):
    page.select_option(f"#survival-{name}", label=label)


def rows(page):
    return page.eval_on_selector_all("#survival tbody tr", ROWS)


def test_filters_hide_rows_and_columns(browser, path, table):
    page = browser(path)
    assert rows(page) == table["check"].values.tolist()
    choose(page, "statement", "Theorem 3")
    assert rows(page) == [name for name in table["check"].values.tolist() if name.startswith("Theorem 3:")]
    choose(page, "option", "adam")
    choose(page, "setting", table["setting"].values.tolist()[1])
    choose(page, "level", "full steps")
    assert page.locator("#survival thead th").count() == 2
    part = table.sel(option="adam", level="full steps").isel(setting=1)
    signs = page.eval_on_selector_all("#survival td button", "(all) => all.map((one) => one.textContent[0])")
    assert signs == [Fate(int(part["verdict"].sel(check=name))).sign for name in rows(page)]
    choose(page, "verdict", "holds later")
    assert rows(page) == [] and page.inner_text("#survival .said").startswith("0 of 6295 runs")
    page.click("#survival [type=reset]")
    page.wait_for_function("document.querySelectorAll('#survival tbody tr').length > 10")
    assert rows(page) == table["check"].values.tolist()


def test_a_cell_says_what_the_compact_table_says(browser, path, table):
    page = browser(path)
    read = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    assert page.eval_on_selector_all("#survival tbody tr", read) == survival_page.compact(table)[1:]


def test_a_cell_opens_its_runs_and_the_command(browser, path, table):
    page, check, option = browser(path), "Theorem 4: fall of the common token against B", "warm-up"
    button = page.get_by_role("button", name=f"{check}, {option}")
    button.click()
    part = table.sel(check=check, option=option)
    runs = int((part["verdict"] != Fate.NOT_ASKED).sum())
    assert page.locator("dialog tbody tr").count() == runs == 30
    shown = page.eval_on_selector_all(
        "dialog tbody tr", "(all) => all.map((r) => [...r.cells].map((c) => c.innerText))"
    )
    for setting, level, verdict, error, own, *_ in shown:
        one = part.sel(setting=setting, level=level)
        assert verdict.split(" ", 1)[1] == Fate(int(one["verdict"])).words
        assert own.partition(" ")[2] == Fate(int(one["verdict_corrected"])).words
        assert float(error) == pytest.approx(float(one["error"]), rel=6e-3)
    commands = page.eval_on_selector_all("dialog code", "(all) => all.map((one) => one.textContent)")
    assert commands[0].startswith('yzflow survival --statements "Scan and Snap: Theorem 4" --options "warm-up"')
    names = {"yz": None}
    exec(
        commands[1].replace("import yzflow as yz\n", "").replace("yz.survival", "yz"),
        {"yz": lambda *a: names.update(yz=a)},
    )
    assert names["yz"] == (["Scan and Snap: Theorem 4"], [option])
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(check)


def test_the_keyboard_goes_from_cell_to_cell(browser, path):
    page = browser(path)
    page.focus("#survival [type=reset]")
    page.keyboard.press("Tab")
    if page.evaluate("document.activeElement.tagName") != "BUTTON":  # a box that scrolls may be a stop, too
        page.keyboard.press("Tab")
    label = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(label).startswith("Lemma 1, zero sums: row sums, plain")
    page.keyboard.press("ArrowRight")
    assert "coupled weight decay: holds" in page.evaluate(label)
    page.keyboard.press("ArrowDown")  # over a cell that is not asked
    assert page.evaluate(label).startswith("Theorem 1: ") and "coupled weight decay" in page.evaluate(label)
    page.keyboard.press("Enter")
    assert page.locator("dialog").is_visible()


def test_the_page_is_a_few_screens_tall_with_and_without_its_script(browser, path, table):
    for size in (SCREEN, PHONE):
        for script in (True, False):
            page = browser(path, **size, java_script_enabled=script)
            if script:
                assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            box = page.locator("article").bounding_box()
            assert box["height"] < 4 * size["height"]
    assert "| Lemma 6: closed form against the flow | ✓ |" in (ROOT / survival_page.PAGE).read_text(encoding="utf-8")


def test_axe_finds_nothing_to_mend(browser, path):
    page = browser(path, **PHONE, color_scheme="dark")
    for opened in (False, True):
        if opened:
            page.locator("#survival td button").first.click()
        driving.assert_nothing_to_mend(page, least=10, inside="#survival")
