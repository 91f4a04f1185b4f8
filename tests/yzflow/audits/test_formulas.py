"""Formulas on a page: what is LaTeX, and that a picture is drawn for every formula of the register."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from theory.statements import REGISTER
from yzflow.audits import formulas

FORMULAS = [
    formula
    for statement in REGISTER.values()
    for formula in (statement.printed, statement.corrected)
    if formula and formulas.is_latex(formula)
]


def test_mathematics_is_told_from_plain_text():
    assert formulas.as_markdown(r"\dot h = 1") == ["$$", r"\dot h = 1", "$$"]
    assert formulas.as_markdown("S <= P/n") == ["`S <= P/n`"]
    assert formulas.as_html("S <= P/n") == "<code>S &lt;= P/n</code>"


def test_a_double_backslash_ends_a_line():
    formula = r"\dot h = 1,\quad h = t \\ \epsilon:\quad h = 0"
    lines = [r"\begin{aligned}", r"&\dot h = 1,\quad h = t \\[1ex]", r"&\epsilon:\quad h = 0 \\[1ex]", r"\end{aligned}"]
    assert formulas.as_markdown(formula) == ["$$", *lines, "$$"]
    page = ET.fromstring(f"<p>{formulas.as_html(formula)}</p>")
    assert [child.tag for child in page] == ["svg", "svg", "br", "svg", "svg"]
    # Parts long enough to be broken by themselves are counted from the line's beginning.
    assert formulas.parts("x" * 60 + r" \\ " + "y" * 20 + " = z") == "x" * 60 + r" \\ " + "y" * 20 + " = z"


@pytest.mark.slow
def test_every_formula_of_the_register_has_pictures():
    assert len(FORMULAS) > 40
    for formula in FORMULAS:
        formula = formulas.parts(formula)
        shown = formulas.as_html(formula)
        page = ET.fromstring(f"<p>{shown}</p>")
        assert {child.tag for child in page} <= {"svg", "br"}, formula
        # A phone shows 358 of 390 pixels for 22 em at least: letters of two thirds of their size.
        assert max(map(float, re.findall(r"width:([\d.]+)em", shown))) < 33, formula
        pieces = [piece for piece in re.split(r"\\q?quad(?![a-z])|\\\\", formula) if piece.strip()]
        assert len(page.findall("svg")) == len(pieces), formula


def test_what_matplotlib_cannot_set_is_code():
    assert formulas.as_html(r"x \unknown y") == r"<code>x \unknown y</code>"
    assert formulas.as_html(r"x,\quad \unknown y") == r"<code>x,\quad \unknown y</code>"


DOT_H = r"\dot h = \frac{\eta_Y}{M-1+e^{Mh}}"


def path(formula):
    (svg,) = ET.fromstring(f"<p>{formulas.as_html(formula)}</p>")
    return svg.find("path").get("d")


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        (r"\frac12", r"\frac{1}{2}"),
        (r"\frac K\delta", r"\frac{K}{\delta}"),
        (r"\tfrac12 x", r"\tfrac{1}{2} x"),
        (r"\sqrt N", r"\sqrt{N}"),
        (r"a \le b", r"a \leq b"),
        (r"a \ge\left(b\right)", r"a \geq \left(b\right)"),
        (r"\Big(\alpha\Big)", r"(\alpha)"),
        (r"\alpha \text{ at most}", r"\alpha \mathrm{\ at\ most}"),
    ],
)
def test_short_forms_of_latex_draw_the_same(formula, same):
    assert path(formula) == path(same)


def test_a_picture_shows_what_is_drawn():
    # All points lie inside the box that is shown, and fractions in a line of their own are not the small ones.
    (svg,) = ET.fromstring(f"<p>{formulas.as_html(DOT_H)}</p>")
    left, top, width, height = map(float, svg.get("viewBox").split())
    numbers = list(map(float, re.findall(r"-?\d+", svg.find("path").get("d"))))
    assert all(left <= x <= left + width for x in numbers[::2])
    assert all(top <= y <= top + height for y in numbers[1::2])
    assert path(r"\frac{1}{2}") != path(r"\tfrac{1}{2}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("|lambda_1(E)| < 1/sqrt(K - 2)", "|λ<sub>1</sub>(E)| &lt; 1/√(K \N{MINUS SIGN} 2)"),
        ("eta_Y >= 100 eta_Z", "η<sub>Y</sub> ≥ 100 η<sub>Z</sub>"),
        (
            "V_close = -exp(c) V_open, N^{2/3}",
            "V<sub>close</sub> = \N{MINUS SIGN}exp(c) V<sub>open</sub>, N<sup>2/3</sup>",
        ),
        ("dz_ml/dt = d_n", "dz<sub>ml</sub>/dt = d<sub>n</sub>"),
        ("beta_nn' of h^{-1}, x_{j+1}", "β<sub>nn'</sub> of h<sup>\N{MINUS SIGN}1</sup>, x<sub>j+1</sub>"),
        (
            "sum_{l != n} e^(v^2/2) z_(2i), t^-beta, O(h^order)",
            "∑<sub>l ≠ n</sub> e<sup>v<sup>2</sup>/2</sup> z<sub>2i</sub>, t<sup>\N{MINUS SIGN}β</sup>, O(h^order)",
        ),
        ("yzflow_bounded_dyck.gpt, eta_y", "<code>yzflow_bounded_dyck.gpt</code>, η<sub>y</sub>"),
        ("the numbers alphabet, betas and n_tokens", "the numbers alphabet, betas and n_tokens"),
        ("-7.2 +- 0.4", "\N{MINUS SIGN}7.2 ± 0.4"),
        ("<b> & 'x'", "&lt;b&gt; &amp; 'x'"),
    ],
)
def test_plain_text_is_set_in_letters(text, shown):
    assert formulas.readable(text) == shown


def test_no_text_of_the_register_loses_a_word():
    """Tags and signs apart, what is read is what is written."""
    for statement in REGISTER.values():
        for text in (statement.text, *statement.errata, *(one.text for one in statement.assumptions)):
            page = ET.fromstring(f"<p>{formulas.readable(text)}</p>")
            words = re.findall(r"[a-z]{8,}", text)
            assert [word for word in words if word not in "".join(page.itertext())] == [], statement.id


def test_a_picture_has_the_extents_of_its_curves():
    """Two arcs, of height 5 over 0 to 10 and of width 2 beside 0 to -4; and letters as matplotlib finds them."""
    codes = [Path.MOVETO, *[Path.CURVE3] * 4, Path.LINETO, Path.CLOSEPOLY]
    arcs = Path([(0, 0), (5, 10), (10, 0), (14, -2), (10, -4), (3, -1), (99, 99)], codes)
    assert formulas._extents(arcs) == (0, -4, 12, 5)
    letters = TextPath((0, 0), r"$\sum_i \frac{a_i}{S}$", size=100)
    np.testing.assert_allclose(formulas._extents(letters), letters.get_extents().extents, atol=1e-9)
