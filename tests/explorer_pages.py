"""Helpers for tests of the explorer: a page of some panels in a browser, and a person's actions and reading there."""

import csv
from functools import cache

import numpy as np
import pytest
import sympy

from yzflow.pages import explorer
from yzflow.pages.explorer.registry import panels
from yzflow.pages.files import script
from yzflow.papers.scan_and_snap.panel import data

# Runs of SGD that pages show beside their flows: whole ones take most of a minute, and pages draw what they are given.
pytest.MonkeyPatch().setattr(data, "MAX_STEPS", 100)


def written(tmp_path_factory, shown=None):
    """A file with these panels (default: all)."""
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(_page_of(tuple(panel.name for panel in shown or panels())), encoding="utf-8")
    return path


@cache
def _page_of(names):
    """The page with the panels of these names, made once in a process: the SGD runs in it take a second."""
    return explorer.html([panel for panel in panels() if panel.name in names])


def mathematics(browser, tmp_path_factory, *files):
    """Evaluate an expression beside the engine's mathematics and scripts (package, name), with `x` as its argument."""
    scripts = [script(*file) for file in (("yzflow.pages.explorer", "mathematics.js"), *files)]
    path = tmp_path_factory.mktemp("explorer") / "mathematics.html"
    text = "\n".join(scripts)
    path.write_text(f"<!doctype html><meta charset=utf-8><title>x</title><script>{text}</script>", encoding="utf-8")
    page = browser(path)
    return lambda expression, x=None: page.evaluate(f"(x) => {expression}", x)


def assert_formulas_agree(run, name, claims, ranges):
    """The functions of ``yzflow.NAME`` against the claims, at random whole numbers in ranges, and others below one."""
    rng = np.random.default_rng(0)
    for key, (claim, arguments) in [*claims.items()] * 5:
        names = arguments.split()
        x = [int(rng.integers(*ranges[one])) if one in ranges else float(rng.uniform(0.1, 0.9)) for one in names]
        expected = np.array(claim(*map(sympy.sympify, x)), dtype=float)
        np.testing.assert_allclose(run(f"yzflow.{name}.{key}(...x)", x), expected, rtol=1e-11, err_msg=f"{key}: {x}")


def close(actual, expected, rtol):
    """Equal up to a relative error."""
    np.testing.assert_allclose(np.array(actual, dtype=float), expected, rtol=rtol, atol=0)


def opened(browser, path, **options):
    """The page when its panels are drawn, with every control in view."""
    page = browser(path, **options)
    page.wait_for_selector("html[data-ready]")
    page.evaluate("document.querySelectorAll('details.fold').forEach((node) => { node.open = true; })")
    return page


def settle(page):
    """Until the frame after the next, when the panels are drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def check_preset(page, panel, place, preset):
    """A preset, when it is chosen, shows its text, its answer behind a click, and a summary of what it drew."""
    choose(page, panel, place)
    assert page.inner_text(f"#{panel}-preset-text") == preset.text
    page.click(f"#{panel}-preset summary")
    assert page.inner_text(f"#{panel}-preset details p") == preset.answer
    assert page.inner_text(f"#{panel}-summary")


def press(page, control, *keys):
    """Press keys on a control."""
    page.focus(f"#{control}")
    for key in keys:
        page.keyboard.press(key)
    settle(page)


def enter(page, control, value):
    """Type a value into the field beside a slider."""
    page.fill(f"#{control}-exact", str(value))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    settle(page)


def choose(page, panel, place):
    """Choose a preset."""
    page.select_option(f"#{panel}-preset-select", str(place))
    settle(page)


def values(page, panel):
    """The readouts of a panel."""
    nodes = page.query_selector_all(f"#{panel}-readouts output")
    return {
        node.get_attribute("id").removeprefix(f"{panel}-"): float(node.get_attribute("data-value")) for node in nodes
    }


def table(page, plot):
    """The numbers in the table of a plot."""
    rows = f"#{plot} tbody tr, #{plot}-words tbody tr"
    cells = page.eval_on_selector_all(rows, "(rows) => rows.map((row) => [...row.cells].map((c) => c.dataset.value))")
    return np.array(cells, dtype=float)


def exact(page, control):
    """The number beside a slider."""
    return float(page.input_value(f"#{control}-exact"))


def run_program(page, panel):
    """The names that the panel's program in Python leaves behind when it is run."""
    shown = page.query_selector(f"#{panel} details.program")
    if shown.get_attribute("open") is None:
        page.click(f"#{panel} details.program summary")
    settle(page)
    names = {}
    exec(compile(page.inner_text(f"#{panel}-python"), "<program>", "exec"), names)
    return names


def downloaded(page, panel):
    """The rows of the file that a panel offers."""
    with page.expect_download() as download:
        page.click(f"#{panel}-download")
    assert download.value.suggested_filename == f"yzflow-{panel}.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.reader(file))
