"""Needs of a keyboard user, a projector and a reader with weak sight on the explorer's page."""

import re
from importlib import resources

import driving
import pytest
from explorer_pages import opened, written

from yzflow.pages.explorer.registry import panels


@pytest.fixture(scope="module")
def explorer_file(tmp_path_factory):
    return written(tmp_path_factory)


def _palettes():
    """Colours by name for light and dark, from the style sheet."""
    style = resources.files("yzflow.pages.explorer").joinpath("style.css").read_text(encoding="utf-8")
    blocks = re.findall(r':root(?:\[data-theme="dark"\])? \{(.*?)\}', style, re.DOTALL)
    return [dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", block)) for block in blocks]


def _luminance(colour):
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_that_wcag_asks_for(theme):
    """Text 4.5 to 1 on the page and on cards (1.4.3), lines of plots and the focus ring 3 to 1 (1.4.11)."""
    colours = _palettes()[theme]
    assert len(_palettes()) == 2
    for ground in ("paper", "card"):
        for text in ("ink", "soft", "link"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for mark in ("c0", "c1", "c2", "c3", "c4", "c5", "mark", "focus"):
            assert _contrast(colours[mark], colours[ground]) >= 3, (mark, ground)


@pytest.mark.parametrize(("width", "height", "key"), [(1280, 800, "Tab"), (390, 844, "Shift+Tab")])
def test_focus_is_seen_wherever_it_goes(browser, explorer_file, width, height, key):
    """Tab through the whole page: nothing covers the middle of what has the focus (2.4.11)."""
    page = opened(browser, explorer_file, width=width, height=height)
    seen = []
    for _ in range(300):
        page.keyboard.press(key)
        found = page.evaluate(
            """() => {
              const node = document.activeElement;
              if (node === document.body) return null;
              const box = node.getBoundingClientRect();
              const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
              const top = document.elementFromPoint(x, y);
              const name = node.id || node.getAttribute("aria-label") || node.textContent.trim();
              return { name, clear: top !== null && node.contains(top) };
            }"""
        )
        if found is None:
            break
        seen.append(found)
    assert [one["name"] for one in seen if not one["clear"]] == []
    sliders = page.eval_on_selector_all("input[type=range], input[type=number]", "(all) => all.map((node) => node.id)")
    assert len(sliders) > 3 * len(panels())
    assert {*sliders, "theme"} <= {one["name"] for one in seen}


def test_axe_finds_nothing_to_mend(browser, explorer_file):
    """As the page opens, and with every table and program unfolded."""
    page = opened(browser, explorer_file, width=390, color_scheme="dark")
    driving.assert_nothing_to_mend(page, least=30)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    driving.assert_nothing_to_mend(page, least=30)
