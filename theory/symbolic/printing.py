r"""Printers of formulas from the proofs' claims: LaTeX, plain text for sentences, JavaScript for pages.

A claim is called without evaluation, so that the formula keeps the order of the code. Its arguments are names in the
register's plain text ("eta_Y", "C_0", "u*"), or LaTeX, which is kept as it is:

>>> from sympy import exp, log
>>> from theory.symbolic.printing import plain, tex
>>> tex(lambda total, c0: log(1 + 4 * total / c0) / 4, r"\Gamma(t)", "C_0")
'\\tfrac{1}{4}\\ln\\!\\left(1 + \\frac{4\\Gamma(t)}{C_0}\\right)'
>>> tex(lambda k, m, t: k * log(m * t / k) / (m * (1 + exp(-t))), "K", "M", "tau")
'\\frac{K\\ln(M\\tau/K)}{M(1 + e^{-\\tau})}'
>>> plain(lambda k, m, t: k * log(m * t / k) / (m * (1 + exp(-t))), "K", "M", "tau")
'K ln(M tau/K)/(M (1 + exp(-tau)))'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import sympy as sp
from sympy.printing.codeprinter import CodePrinter
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.latex import LatexPrinter

__all__ = ["javascript", "plain", "tex"]

_LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
    " Gamma Delta Theta Lambda Sigma Phi Psi Omega"
)
_GREEK = frozenset(_LETTERS.split())
_NAME = re.compile(r"([A-Za-z]+)(?:_([A-Za-z0-9]+))?('*)(\*?)")
# Styles of fractions: in a displayed formula, in a line of text, and with a slash inside another fraction.
_TALL, _SMALL, _SLASH = range(3)


def tex(claim: Any, *arguments: Any, small: bool = False) -> Any:
    """LaTeX of an expression, or of a claim at these arguments; a tuple of formulas if the claim returns a tuple.

    Parameters
    ----------
    claim : sympy.Expr, number or callable
    *arguments : str, sympy.Expr or number
        A name stands for a positive symbol.
    small : bool
        Whether fractions have the size of running text.
    """
    return _printed(lambda: _Tex(_SMALL if small else _TALL), claim, arguments)


def plain(claim: Any, *arguments: Any) -> Any:
    """A claim as plain text, for a sentence; see `tex`."""
    return _printed(lambda: _Plain(_SLASH), claim, arguments)


def javascript(claim: Callable[..., Any], arguments: str) -> str:
    """A claim as a function in JavaScript, which gives an array where the claim gives a tuple.

    Parameters
    ----------
    claim : callable
    arguments : str
        Names with spaces between.

    >>> javascript(lambda total, c0: sp.log(1 + 4 * total / c0) / 4, "total c0")
    '(total, c0) => Math.log1p((4*total)/c0)/4'
    """
    names = arguments.split()
    found = _printed(_Script, claim, [sp.Symbol(name) for name in names])  # of any sign: their logarithms stay whole
    body = f"[{', '.join(found)}]" if isinstance(found, tuple) else found
    return f"({', '.join(names)}) => {body}"


def _printed(printer: Callable[[], CodePrinter | LatexPrinter], claim: Any, arguments: Sequence[Any]) -> Any:
    value = claim
    if callable(claim) and not isinstance(claim, sp.Basic):
        symbols = [sp.Symbol(item, positive=True) if isinstance(item, str) else sp.sympify(item) for item in arguments]
        with sp.evaluate(False):
            value = claim(*symbols)
    if isinstance(value, tuple):
        return tuple(printer().doprint(sp.sympify(item)) for item in value)
    return printer().doprint(sp.sympify(value))


class _Tex(LatexPrinter):
    """Printer of sums and products in the order of their arguments; sympy prints all other expressions."""

    functions: ClassVar = {"log": r"\ln", "sin": r"\sin", "cos": r"\cos", "LambertW": "W"}
    raised = "^{%s}"

    def __init__(self, style: int):
        super().__init__({"order": "none"})
        self.style, self.last = style, True

    def within(self, style: int, one: Any) -> str:
        """LaTeX of an expression whose fractions are at most as tall as ``style``."""
        before, self.style = self.style, max(self.style, style)
        text = self._print(one)
        self.style = before
        return text

    def brackets(self, text: str) -> str:
        return rf"\left({text}\right)" if r"\frac" in text or r"\tfrac" in text else f"({text})"

    def name(self, text: str) -> str:
        match = _NAME.fullmatch(text)
        if match is None:
            return text
        letter, low, primes, star = match.groups()
        low = "" if low is None else rf"\{low}" if low in _GREEK else r"\infty" if low == "inf" else low
        low = f"_{low}" if len(low) == 1 or low[:1] == "\\" else low and f"_{{{low}}}"
        return (rf"\{letter}" if letter in _GREEK else letter) + low + primes + (star and "^*")

    def row(self, parts: Iterable[str]) -> str:
        """Factors side by side: a dot between two digits, a space between a command and a letter."""
        text = ""
        for factor in parts:
            if text[-1:].isdigit() and factor[:1].isdigit():
                text += r" \cdot "
            elif re.search(r"\\[A-Za-z]+$", text) and factor[:1].isalpha():
                text += " "
            text += factor
        return text

    def fraction(self, above: str, below: str) -> str:
        return rf"\{'t' * (self.style == _SMALL)}frac{{{above}}}{{{below}}}"

    def root(self, one: Any) -> str:
        return rf"\sqrt{{{self.within(_SMALL, one)}}}"

    def exponential(self, one: Any) -> str:
        return f"e^{{{self.within(_SLASH, one)}}}"

    def call(self, name: str, one: Any, power: str = "") -> str:
        """A function of one argument; a symbol after a LaTeX command needs no brackets, if no factor follows."""
        last, self.last = self.last, True
        text = self._print(one)
        if last and name[0] == "\\" and (one.is_Symbol or one.is_Integer or isinstance(one, sp.log)):
            return f"{name}{power} {text}"
        return name + power + (r"\!" if "frac" in text else "") + self.brackets(text)

    # Methods that sympy's printer calls, by the names of its classes.

    def _print_Symbol(self, expr, style="plain"):
        return self.name(expr.name)

    def _print_Integer(self, expr):
        return str(expr)

    def _print_Rational(self, expr):
        return self._print_Mul(sp.Mul(expr, evaluate=False))

    _print_Half = _print_Rational

    def _print_Add(self, expr, order=None):
        terms = list(expr.args)
        if not terms[0].is_Add and terms[0].could_extract_minus_sign():  # an evaluated sum, in sympy's order
            terms.sort(key=lambda one: one.could_extract_minus_sign())
        shown = [self._print(term) for term in terms]
        return shown[0] + "".join(f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in shown[1:])

    def _print_Mul(self, expr):
        number, above, below = _factors(expr)
        if below and above and isinstance(above[-1], sp.Sum):  # print the sum behind the fraction, not in its numerator
            first = sp.Mul(number, *above[:-1], *(1 / one for one in below), evaluate=False)
            return self.row([self._print(first), self._print(above[-1])])
        sign, number = ("-" if number < 0 else ""), abs(number)
        if self.style != _SLASH and not below and number.q > 1:
            share = rf"\tfrac{{{number.p}}}{{{number.q}}}"
            return sign + (self.row([share, self.product(1, above)]) if above else share)
        if not below and number.q == 1:
            return sign + self.product(number.p, above)
        if self.style == _SLASH:
            low = self.product(number.q, below)
            many = len(below) + (number.q > 1) > 1 or (len(below) == 1 and below[0].is_Add)
            return f"{sign}{self.product(number.p, above)}/{f'({low})' if many and not _bracketed(low) else low}"
        inner, self.style = self.style, _SLASH
        parts = self.product(number.p, above, alone=True), self.product(number.q, below, alone=True)
        self.style = inner
        return sign + self.fraction(*parts)

    def _print_Sum(self, expr):
        """A sum over one index; a factor 1 - delta excludes an index from the sum."""
        ((one, *_),) = expr.limits
        number, above, below = _factors(expr.function)
        places = [self.name(str(one.label))]
        for factor in above:
            for delta in factor.atoms(sp.KroneckerDelta) if factor.is_Add else ():
                (other,) = (self.name(str(index.label)) for index in delta.args if index != one)
                places = [rf"{places[0]} \ne {other}"]
        kept = [factor for factor in above if not (factor.is_Add and factor.has(sp.KroneckerDelta))]
        body = sp.Mul(number, *kept, *(1 / factor for factor in below), evaluate=False)
        text = self._print(body)
        return rf"\sum_{{{places[0]}}}" + (self.brackets(text) if len(kept) == 1 and kept[0].is_Add else text)

    def product(self, number: int, factors: list[Any], *, alone: bool = False) -> str:
        if alone and number == 1 and len(factors) == 1:
            return self._print(factors[0])
        shown, last = [] if number == 1 and factors else [str(number)], self.last
        factors = sorted(factors, key=_is_logarithm)
        for place, factor in enumerate(factors):
            self.last = factor.is_Add or (last and place == len(factors) - 1)
            text = self._print(factor)
            shown.append(self.brackets(text) if factor.is_Add else text)
        self.last = last
        return self.row(shown)

    def _print_Pow(self, expr):
        base, power = expr.args
        if power.is_Rational and power < 0:
            return self._print_Mul(sp.Mul(expr, evaluate=False))
        if power == sp.Rational(1, 2):
            return self.root(base)
        high = self.within(_SLASH, power)
        high = f"^{high}" if len(high) == 1 else self.raised % high
        if isinstance(base, sp.log):
            return self.call(self.functions["log"], base.args[0], high)
        text = self.within(_SMALL, base)
        if base.is_Symbol or (base.is_Integer and base >= 0):
            return (f"{{{text}}}" if "^" in text or "'" in text else text) + high
        return (text if base.is_Function and not isinstance(base, sp.exp) else self.brackets(text)) + high

    def _print_ExpBase(self, expr, exp=None):
        return self.exponential(expr.args[0])

    def _print_Exp1(self, expr, exp=None):
        return "e"

    def _print_Function(self, expr, exp=None):
        name, (one, *base) = expr.func.__name__, expr.args
        sign = self.functions.get(name, name)
        return self.call(sign.replace("ln", f"log_{base[0]}") if base else sign, one)

    _print_log = _print_LambertW = _print_Function

    def _print_floor(self, expr, exp=None):
        return rf"\lfloor {self.within(_SLASH, expr.args[0])}\rfloor"

    def _print_ceiling(self, expr, exp=None):
        return rf"\lceil {self.within(_SLASH, expr.args[0])}\rceil"


class _Plain(_Tex):
    """Printer of plain text, in the notation of `yzflow.audits.formulas.readable`."""

    printmethod = "_plain"  # keep sympy from a constant's own LaTeX
    functions: ClassVar = {"log": "ln", "LambertW": "W", "floor": "floor", "ceiling": "ceil"}

    def name(self, text: str) -> str:
        return text

    def row(self, parts: Iterable[str]) -> str:
        return " ".join(parts)

    def root(self, one: Any) -> str:
        return f"sqrt({self._print(one)})"

    def exponential(self, one: Any) -> str:
        return f"exp({self._print(one)})"

    def _print_Infinity(self, expr):
        return "inf"

    def _print_Pi(self, expr, exp=None):
        return "pi"

    _print_floor = _print_ceiling = _Tex._print_Function

    def _print_Abs(self, expr, exp=None):
        return f"|{self._print(expr.args[0])}|"

    def _print_Max(self, expr, exp=None):
        return f"{type(expr).__name__.lower()}({', '.join(map(self._print, expr.args))})"

    _print_Min = _print_Max


class _Script(JavascriptCodePrinter):
    """Printer of JavaScript in which the logarithm of a number near one keeps its digits."""

    def _print_log(self, expr):
        total = expr.args[0]
        if total.is_Add and 1 in total.args:
            rest = [term for term in total.args if term != 1]
            return f"Math.log1p({self._print(sp.Add(*rest, evaluate=False))})"
        return f"Math.log({self._print(total)})"


def _is_logarithm(one: Any) -> bool:
    """Whether a factor is a logarithm or its power: it is printed after the other factors."""
    return isinstance(one.base if isinstance(one, sp.Pow) else one, sp.log)


def _bracketed(text: str) -> bool:
    """Whether the last letter closes the first bracket."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return letter == ")" and place == len(text) - 1
    return False


def _factors(one: Any) -> tuple[sp.Rational, list[Any], list[Any]]:
    """A numerical factor, and the lists of factors of the numerator and of the denominator."""
    if one.is_Rational:
        return one, [], []
    if isinstance(one, sp.Pow) and one.exp.is_Rational and one.exp < 0:
        base, power = one.args
        number, above, below = _factors(base if power == -1 else sp.Pow(base, -power, evaluate=False))
        return 1 / number, below, above
    if not isinstance(one, sp.Mul):
        return sp.Integer(1), [one], []
    number, above, below = sp.Integer(1), [], []
    for factor in one.args:
        share, over, under = _factors(factor)
        number, above, below = number * share, [*above, *over], [*below, *under]
    return number, above, below
