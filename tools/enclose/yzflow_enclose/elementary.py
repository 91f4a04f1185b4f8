"""Numbers for one right-hand side in two kinds of arithmetic: plain floats, or power series with balls as coefficients.

On object arrays numpy calls the methods of the entries: ``np.exp(state)`` is the `exp` of each entry, and sums,
products and ``@`` are Python's. So a function written with numpy serves an integrator on arrays of floats and a proof
on arrays of `Number`. Functions without such a method in numpy, such as `erf`, are here, for both.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from flint import arb, arb_series, fmpq

from dynamics.support import checks

_KINK = (
    "has a kink or a jump: balls need a field whose every derivative exists, on which nothing depends by a comparison"
)

Refusal = TypeVar("Refusal", bound=Exception)
# The last refusal in the body of `passing`.
_refused: list[str] = []


def _refusing(error: Refusal) -> Refusal:
    """An error to raise, which `passing` remembers."""
    _refused[:] = [str(error)]
    return error


@contextmanager
def passing() -> Iterator[None]:
    """Call a field in the body; a field that catches the errors of numbers in balls is refused.

    Such a field would be another function in balls than in floats.

    Raises
    ------
    ValueError
        If the body ends although a number refused.
    """
    _refused.clear()
    yield
    if _refused:
        rule = "pass on what numbers in balls refuse, and catch no such error"
        raise checks.reject("flow", rule, f"one that goes on after {_refused[0]}")


def exact(value: Any) -> arb | None:
    """A ball of a number: a float is the binary fraction that it is; None if the value is no number."""
    if isinstance(value, arb):
        return value
    if isinstance(value, (bool, np.bool_)) or checks.is_number(value, (int, np.integer)):
        return arb(int(value))
    if isinstance(value, (float, np.floating)) and np.dtype(type(value)).itemsize <= 8:
        return arb(float(value))
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, fmpq):
        return arb(value)
    return None


class Elementary:
    """Functions from ``exp``, ``log``, ``sqrt``, ``sin`` and ``cos`` of a class, under numpy's names."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    def __pos__(self) -> Any:
        return self

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Elementary):
            return (self.log() * power).exp()
        if isinstance(power, np.ndarray):
            return NotImplemented
        if exact(power) is None:
            return NotImplemented
        if isinstance(power, int) or float(power).is_integer():
            return _integral(self, int(power))
        if float(2 * power).is_integer():
            return _integral(self.sqrt(), int(2 * power))
        return (self.log() * power).exp()

    def __rpow__(self, base: Any) -> Any:
        ball = exact(base)
        if ball is None:
            return NotImplemented
        if not ball > 0:
            raise _refusing(checks.reject("base", "be positive in a power with a changing exponent", base))
        return (self * ball.log()).exp()

    def __abs__(self) -> Any:
        raise _refusing(TypeError(f"abs {_KINK}"))

    def __float__(self) -> float:
        words = "a number in balls is no float: compute with numpy's functions, and make arrays with np.zeros_like"
        raise _refusing(TypeError(words))

    __int__ = __complex__ = __float__

    def exp2(self) -> Any:
        """2^x."""
        return 2**self

    def expm1(self) -> Any:
        """exp(x) - 1."""
        return self.exp() - 1

    def log1p(self) -> Any:
        """log(1 + x)."""
        return (self + 1).log()

    def log2(self) -> Any:
        """The logarithm to base 2."""
        return self.log() * (1 / arb(2).log())

    def log10(self) -> Any:
        """The logarithm to base 10."""
        return self.log() * (1 / arb(10).log())

    def tan(self) -> Any:
        """The tangent."""
        return self.sin() / self.cos()

    def sinh(self) -> Any:
        """The hyperbolic sine."""
        return (self.exp() - (-self).exp()) / 2

    def cosh(self) -> Any:
        """The hyperbolic cosine."""
        return (self.exp() + (-self).exp()) / 2

    def tanh(self) -> Any:
        """The hyperbolic tangent, with one exponential, so that a wide ball stays as narrow as can be."""
        return 1 - 2 / ((self * 2).exp() + 1)


def _integral(value: Any, power: int) -> Any:
    if power < 0:
        return 1 / _integral(value, -power)
    if power == 0:
        return value * 0 + 1
    found = value
    for digit in f"{power:b}"[1:]:
        found = found * found
        if digit == "1":
            found = found * value
    return found


class Number(Elementary):
    """A power series whose coefficients are balls, as an entry of numpy's object arrays.

    It has ``+ - * / **`` with numbers and its like, and numpy's elementary functions. It has no comparisons and is no
    float: a field with a branch has no power series.
    """

    __slots__ = ("series",)

    def __init__(self, series: arb_series):
        self.series = series

    def _with(self, other: Any, operation: Callable[[Any, Any], arb_series]) -> Any:
        known = other.series if isinstance(other, Number) else exact(other)
        return NotImplemented if known is None else Number(operation(self.series, known))

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: -a + b)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * _inverse(b))

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _inverse(a) * b)

    def __neg__(self) -> Number:
        return Number(-self.series)

    def _through(self, name: str) -> Number:
        found = getattr(self.series, name)()
        if not found[0].is_finite():
            raise _refusing(ValueError(f"{name} is not defined on {self.series[0]}"))
        return Number(found)

    def exp(self) -> Number:
        """The exponential."""
        return self._through("exp")

    def log(self) -> Number:
        """The natural logarithm."""
        return self._through("log")

    def sqrt(self) -> Number:
        """The square root."""
        return self._through("sqrt")

    def sin(self) -> Number:
        """The sine."""
        return self._through("sin")

    def cos(self) -> Number:
        """The cosine."""
        return self._through("cos")

    def arctan(self) -> Number:
        """The inverse of the tangent."""
        return self._through("atan")

    def erf(self) -> Number:
        """The error function."""
        return self._through("erf")

    def _refuse(self, other: Any) -> bool:
        raise _refusing(TypeError(f"a comparison {_KINK}"))

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse

    def __bool__(self) -> bool:
        raise _refusing(TypeError(f"a condition {_KINK}"))

    def __repr__(self) -> str:
        return f"<Number {self.series[0]}>"


def _inverse(value: arb | arb_series) -> arb | arb_series:
    first = value if isinstance(value, arb) else value[0]
    if not first.is_finite() or first.contains(0):
        raise _refusing(ValueError(f"a quotient is not defined where its denominator is {first}"))
    return 1 / value


def _of_floats(x: Any) -> bool:
    """True if an argument ``x`` has floats, False if it has numbers in balls.

    Raises
    ------
    ValueError
        If it has neither.
    """
    rule = "be numbers, or numbers in balls"
    given = checks.array("x", x, rule=rule)
    in_balls = given.dtype == object and given.size > 0 and all(isinstance(entry, Elementary) for entry in given.flat)
    if not in_balls and given.dtype.kind not in "iufb":
        raise checks.reject("x", rule, checks.brief(x))
    return not in_balls


def _along(x: Any, axis: int) -> int:
    """The argument ``axis`` of ``x``, which has entries along it."""
    shape = np.shape(x)
    if not shape or 0 in shape:
        raise checks.reject("x", "have entries along an axis", f"shape {shape}")
    return checks.integer("axis", axis, minimum=-len(shape), maximum=len(shape) - 1)


def _each(x: Any, name: str) -> Any:
    """The method ``name`` of each entry of an object array."""
    return np.frompyfunc(operator.methodcaller(name), 1, 1)(x)


def erf(x: Any) -> Any:
    r"""The error function :math:`2/\sqrt\pi \int_0^x e^{-s^2} ds` of floats, or of numbers in balls."""
    from scipy import special

    return special.erf(x) if _of_floats(x) else _each(x, "erf")


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) of floats, or of numbers in balls."""
    from scipy import special

    return special.expit(x) if _of_floats(x) else 1 / (np.exp(-np.asarray(x)) + 1)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) of floats, or of numbers in balls."""
    return np.logaddexp(0.0, x) if _of_floats(x) else np.log1p(np.exp(np.asarray(x)))


def logsumexp(x: Any, axis: int = -1) -> Any:
    """log(sum(exp(x))) along an axis, of floats or of numbers in balls."""
    from scipy import special

    floats, axis = _of_floats(x), _along(x, axis)
    return special.logsumexp(x, axis=axis) if floats else np.log(np.exp(np.asarray(x)).sum(axis=axis))


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis, of floats or of numbers in balls.

    For floats the largest entry is subtracted first; this is a comparison, which balls do not have.
    """
    from scipy import special

    floats, axis = _of_floats(x), _along(x, axis)
    if floats:
        return special.softmax(x, axis=axis)
    powers = np.exp(np.asarray(x))
    return powers / powers.sum(axis=axis, keepdims=True)


def ball(value: Any, radius: float = 0.0) -> Any:
    """Balls for a start that is not one point, or no binary fraction: ``ball("0.1")``, ``ball([1.0, 2.0], 1e-9)``.

    Parameters
    ----------
    value : number, decimal string, Fraction, or array of them
        A float is the binary fraction that it is; a string is its decimal number.
    radius : float
        The largest distance from there, entry by entry; not negative.

    Returns
    -------
    flint.arb, or an object array of them

    Raises
    ------
    ValueError
        If an entry is no finite number.
    """
    radius = checks.non_negative("radius", radius)

    def one(entry: Any) -> arb:
        try:
            found = arb(entry) if isinstance(entry, str) else exact(entry)
        except ValueError:
            found = None
        if found is None or not found.is_finite():
            raise checks.reject("value", "be finite numbers, or strings that say them", repr(entry))
        return found + arb(0, radius)

    from yzflow_enclose.stepping import precision

    with precision(512):
        given = checks.array("value", value, rule="be finite numbers, or strings that say them", dtype=object)
        return np.frompyfunc(one, 1, 1)(given) if given.ndim else one(given.item())


def floats(values: np.ndarray) -> np.ndarray:
    """Midpoints of the first coefficients of an array of numbers in balls; NaN if they are not finite."""

    def one(value: Any) -> float:
        known = value.series[0] if isinstance(value, Number) else exact(value)
        return math.nan if known is None or not known.is_finite() else float(known.mid())

    return np.frompyfunc(one, 1, 1)(values).astype(float)
