"""Formulas printed from expressions: they mean what the expression does, and read as by hand."""

import math

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from latex import value

from theory.symbolic.printing import plain, tex
from yzflow.audits.formulas import as_html

NAMES = {"K": 1.7, "eta_Y": 0.6, "u*": 1.3, "rho_0": 2.2, "t'": 0.9, "w_inf": 1.1}
LATEX = {"K": "K", "eta_Y": r"\eta_Y", "u*": "u^*", "rho_0": r"\rho_0", "t'": "t'", "w_inf": r"w_\infty"}


@pytest.mark.parametrize(
    ("claim", "arguments", "formula", "sentence"),
    [
        (lambda n, m: (n - 1) / (m - 1), "KM", r"\frac{K - 1}{M - 1}", "(K - 1)/(M - 1)"),
        (lambda x: -(x + 1) / 2, "x", r"-\tfrac{1}{2}(x + 1)", "-(x + 1)/2"),
        (lambda x: 1 / x**2, "x", r"\frac{1}{x^2}", "1/x^2"),
        (lambda a, b: (a / b) ** 2, "ab", r"\left(\tfrac{a}{b}\right)^2", "(a/b)^2"),
        (lambda k: 1 / sp.sqrt(k - 2), "K", r"\frac{1}{\sqrt{K - 2}}", "1/sqrt(K - 2)"),
        (lambda x, y: sp.log(x) ** 2 * y, "xy", r"y\ln^2 x", "y ln^2(x)"),
        (lambda x, y: sp.log(x) * sp.log(y), "xy", r"\ln(x)\ln y", "ln(x) ln(y)"),
        (lambda x: sp.log(sp.log(x)) / 2, "x", r"\tfrac{1}{2}\ln \ln x", "ln(ln(x))/2"),
        (lambda x, y: y * sp.log(x), "xy", r"y\ln x", "y ln(x)"),
        (lambda u: u**2, ["u*"], "{u^*}^2", "u*^2"),
        (lambda g: g**2, ["gamma_inf"], r"\gamma_\infty^2", "gamma_inf^2"),
        (lambda f: f**2, ["f_nl"], "f_{nl}^2", "f_nl^2"),
        (lambda x: 2 * 3 * x - 3, "x", "6x - 3", "6 x - 3"),
        (lambda x, y: x - (x - y), "xy", "x - (x - y)", "x - (x - y)"),
        (lambda n, q: sp.floor((n - 1) / q), "Nq", r"\lfloor (N - 1)/q\rfloor", "floor((N - 1)/q)"),
        (lambda n, q: sp.ceiling(n / (2 * q)), "Nq", r"\lceil N/(2q)\rceil", "ceil(N/(2 q))"),
        (lambda n: sp.log(n, 2), "N", r"\log_2 N", "log_2(N)"),
        (lambda n: n ** sp.Rational(2, 3) * sp.pi, "N", r"N^{2/3}\pi", "N^{2/3} pi"),
        (lambda x: x * sp.exp(-x / 2), "x", r"xe^{-x/2}", "x exp(-x/2)"),
    ],
)
def test_formulas_read_as_by_hand(claim, arguments, formula, sentence):
    assert (tex(claim, *arguments), plain(claim, *arguments)) == (formula, sentence)


def test_a_claim_that_gives_two_formulas_gives_two():
    assert tex(lambda x: (x / 2, x), "x") == (r"\tfrac{1}{2}x", "x")


def test_fractions_of_running_text_are_small():
    assert tex(lambda x, y: x / y, "x", "y", small=True) == r"\tfrac{x}{y}"


def test_an_evaluated_expression_is_printed_too():
    x, y = sp.symbols("x y")
    assert tex((x - 1) ** 2 / (y * (1 - x))) == r"\frac{(x - 1)^2}{y(1 - x)}"
    assert tex(sp.Rational(3, 4) - x) == r"\tfrac{3}{4} - x"


LEAF = st.sampled_from(sorted(NAMES)).map(lambda name: ("name", name)) | st.integers(1, 12).map(lambda n: ("number", n))
TREE = st.deferred(
    lambda: (
        LEAF
        | st.tuples(st.sampled_from("+-*/^"), TREE, TREE)
        | st.tuples(st.sampled_from(["neg", "exp", "log", "sqrt", "square", "third"]), TREE)
    )
)
BINARY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}
UNARY = {"neg": lambda a: -a, "square": lambda a: a**2, "third": lambda a: a / 3}


def built(tree, names, functions):
    """The expression, or the number, that a tree stands for."""
    kind, *parts = tree
    if kind == "name":
        return names[parts[0]]
    if kind == "number":
        return functions["number"](parts[0])
    inner = [built(part, names, functions) for part in parts]
    return {**BINARY, **UNARY, **functions}[kind](*inner)


SYMBOLIC = {
    "number": sp.Integer,
    "exp": sp.exp,
    "log": lambda a: sp.log(a**2 + 1),
    "sqrt": lambda a: sp.sqrt(a**2 + 1),
    "^": lambda a, b: (a**2 + 1) ** (b / (b**2 + 1)),
}
NUMERIC = {
    "number": float,
    "exp": math.exp,
    "log": lambda a: math.log(a**2 + 1),
    "sqrt": lambda a: math.sqrt(a**2 + 1),
    "^": SYMBOLIC["^"],
}


@given(TREE)
def test_what_is_printed_has_the_value_of_what_was_meant(tree):
    try:
        expected = float(built(tree, NAMES, NUMERIC))
    except (OverflowError, ZeroDivisionError):
        return
    symbols = sorted(NAMES)
    formula = tex(lambda *a: built(tree, dict(zip(symbols, a, strict=True)), SYMBOLIC), *symbols)
    if not isinstance(formula, str) or any(word in formula for word in ("zoo", "nan", "infty}")):
        return
    scale = 1 + abs(expected)
    assert value(formula, {LATEX[name]: at for name, at in NAMES.items()}) == pytest.approx(expected, abs=1e-6 * scale)
    assert "<code>" not in as_html(formula, latex=True)
