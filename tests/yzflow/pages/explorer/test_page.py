"""The explorer's file, and what holds for every panel in it."""

import json
import re

import pytest
from click.testing import CliRunner
from explorer_pages import opened

from yzflow.cli import main
from yzflow.pages import explorer
from yzflow.pages.explorer.registry import panels


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


@pytest.mark.slow
def test_file_is_complete_in_itself(text):
    """Nothing is loaded, and the page's own policy forbids it; one small file for a mail."""
    assert len(text.encode()) < 5e5
    assert not re.search(r"@[A-Z]+@", text)
    assert "default-src 'none'" in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|@import|url\(", markup)
    assert set(re.findall(r'href="([^"]*)"', markup)) == {f"#{panel.name}" for panel in panels()}
    scripts = "".join(re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL))
    assert set(re.findall(r"https?://[^\"'` ]*", scripts)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


@pytest.mark.slow
def test_file_holds_what_the_panels_collect(text):
    content = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert list(content["panels"]) == [panel.name for panel in panels()]
    for panel in panels():
        again = json.loads(json.dumps(panel.content()))
        assert content["panels"][panel.name] == again


PRESETS = [preset for panel in panels() for preset in panel.presets]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_presets_explain_in_two_sentences_and_ask(preset):
    assert len(re.findall(r"[.:?](?= |$)", preset.text.replace("Fig. ", ""))) >= 2
    assert preset.text.count(". ") == 1 and preset.text.endswith(".")
    assert "?" in preset.question and preset.answer.endswith((".", ")"))


def test_folder_that_is_not_there(tmp_path):
    out = tmp_path / "none" / "explorer.html"
    result = CliRunner().invoke(main, ["explore", "--out", str(out)])
    assert result.exit_code == 2 and "`--out` must lie in a folder that exists" in result.stderr


def test_failed_writing_leaves_what_was_there(tmp_path, monkeypatch):
    out = tmp_path / "explorer.html"
    out.write_text("before")
    monkeypatch.setattr(explorer, "html", lambda *_, **__: "\udc80")  # no UTF-8 holds it
    with pytest.raises(UnicodeEncodeError):
        explorer.write(out)
    assert out.read_text() == "before" and list(tmp_path.iterdir()) == [out]


def test_open_shows_the_file(tmp_path, monkeypatch):
    import click

    shown = []
    monkeypatch.setattr(explorer, "html", lambda *_, **__: "page")
    monkeypatch.setattr(click, "launch", shown.append)
    out = tmp_path / "explorer.html"
    assert CliRunner().invoke(main, ["explore", "--out", str(out), "--open"]).exit_code == 0
    assert shown == [str(out)] and out.read_text() == "page"


@pytest.fixture(scope="module")
def window(shared_browser, explorer_file):
    return opened(shared_browser, explorer_file)


@pytest.fixture
def page(window, shared_browser):
    yield window
    assert not shared_browser.problems


def test_every_control_has_a_name_and_every_plot_words_and_a_table(page):
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, button")].filter((control) =>
        !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim())).length"""
    )
    assert unnamed == 0
    plots = page.query_selector_all("[role=img]")
    assert len(plots) >= len(panels())
    for plot in plots:
        assert plot.get_attribute("aria-label")
        assert page.inner_text(f"#{plot.get_attribute('aria-describedby')}")
        name = plot.get_attribute("id").removesuffix("-canvas")
        cells = f"#{name} td, #{name}-words td"
        assert page.eval_on_selector_all(cells, "(cells) => cells.length") > 5


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_window_and_colours(browser, explorer_file, width, scheme):
    """No scrolling sideways; the system's colours, and the other ones by the button."""
    page = opened(browser, explorer_file, width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    columns = page.evaluate("getComputedStyle(document.querySelector('.plots')).gridTemplateColumns.split(' ').length")
    assert columns == (1 if width == 390 else 2)
    background = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    axis = "getComputedStyle(document.querySelector('.axes text')).fill"
    assert (page.evaluate(background) > 128) == (scheme == "light")
    was = page.evaluate(axis)
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert (page.evaluate(background) > 128) == (scheme == "dark")
    assert page.evaluate(axis) != was
