"""Helpers for tests of statements' pages: a page for its look and its sliders, without a run of any check."""

import numpy as np
import sympy
from explorer_pages import downloaded, exact, press, run_program, table

from theory.statements import Statement
from theory.symbolic import Derivation
from yzflow.audits.check import StatementVerdict
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row
from yzflow.pages import statement as single

SCREEN = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

# A proof that holds, for pages that show none.
PROVED = Derivation("", {"": sympy.Integer(0)})


def invented(statement: Statement, error: float = 0.3, settings: int = 8) -> StatementVerdict:
    """A verdict on a statement with as many settings a level; nothing is run."""
    rows = [
        Row(
            statement.id,
            check.name,
            level,
            f"setting {n}",
            True,
            {one.text: 1.5 for one in statement.assumed(check)},
            error * n,
            error * n / 100 if check.corrected else None,
            check.tolerance,
            expected=False,
            label=statement.measured(check, level=level, setting=f"setting {n}", error=error),
        )
        for check in statement.checks
        for level in check.levels
        for n in range(settings)
    ]
    return StatementVerdict(statement, AuditReport(rows, (statement,), {}), True, 0)


def bare(statement: Statement, folder, settings: int = 8):
    """The file of such a page, without a proof; made once in a folder."""
    path = folder / f"{single.slug(statement)}.html"
    if not path.exists():
        text = single.html(invented(statement, settings=settings), derivations=[PROVED])
        path.write_text(text, encoding="utf-8")
    return path


BOXES = """(selector) => [...document.querySelectorAll(selector)].map((node) => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  return { name: node.id || node.textContent.slice(0, 30), left, top, right, bottom };
})"""


def assert_one_screen(page):
    """Statement, badge, plots and all controls of a page with sliders are on a screen of 1280 x 800."""
    parts = "h1, #trust .badge, #statement, #curves, #difference, #live-preset, #live-sliders input"
    parts += ", #live-actions button:not(details:not([open]) *)"  # what is folded is not seen
    boxes = page.evaluate(BOXES, parts)
    width, height = SCREEN["width"], SCREEN["height"]
    inside = [0 <= b["left"] < b["right"] <= width and 0 <= b["top"] < b["bottom"] <= height for b in boxes]
    assert [box["name"] for box, fits in zip(boxes, inside, strict=True) if not fits] == []
    assert len(boxes) >= 6 + 2 * 2 + 3
    sizes = {b["name"]: (b["right"] - b["left"], b["bottom"] - b["top"]) for b in page.evaluate(BOXES, ".canvas")}
    assert sizes["curves-canvas"][0] > 700 and sizes["curves-canvas"][1] > 290 and sizes["difference-canvas"][1] > 100
    left = "(all) => all.map((one) => one.querySelector('.axes line').getAttribute('x1'))"
    lefts = page.eval_on_selector_all(".canvas", left)
    assert len(lefts) == 2 and lefts[0] == lefts[1]  # times stand below each other


def firsts(views):
    """The first statement of each view."""
    return {view: number for number, view in reversed(views.views.items())}.values()


def names_of(page):
    """The columns of the first plot's table, and the curves' names in the data file, in the same order."""
    rows = downloaded(page, "live")
    assert rows[0][0] == "curve" and rows[0][2:] == ["value", "difference"]
    return [name for name in dict.fromkeys(row[0] for row in rows[1:]) if not name.startswith("SGD")]


def assert_python_agrees(page, *, rtol=1e-6, least=9):
    """Each slider changes what is shown, by keyboard, and then all is what the program leaves that the page offers."""
    sliders = page.eval_on_selector_all("#live-sliders input[type=range]", "(all) => all.map((one) => one.id)")
    assert len(sliders) >= 2
    for place, name in enumerate(sliders):
        before, value = page.inner_html("#plot") + page.inner_text("#words"), exact(page, name)
        keys = ["ArrowLeft", "ArrowUp"] if place % 2 else ["ArrowUp", "ArrowLeft"]
        for key in keys:  # the other way where it stands at its end
            press(page, name, key, key)
            if exact(page, name) != value:
                break
        assert exact(page, name) != value, name
        assert page.inner_html("#plot") + page.inner_text("#words") != before, name
    shown, names = table(page, "curves"), names_of(page)
    left = run_program(page, "live")
    times, curves = np.asarray(left["times"]), left["curves"]
    place = np.searchsorted(times, shown[:, 0] * (1 - 1e-9)).clip(max=len(times) - 1)
    there = np.isclose(times[place], shown[:, 0], rtol=1e-9)  # t* is not among the program's times
    assert there.sum() >= least and len(names) == shown.shape[1] - 1
    for column, name in enumerate(names, 1):
        expected = np.asarray(curves[name])[place[there]]
        np.testing.assert_allclose(shown[there, column], expected, rtol=rtol, atol=1e-12, err_msg=name)
    assert np.isfinite(shown[:, 1:]).any(axis=0).all()
    return shown
