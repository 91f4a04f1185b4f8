"""Quantities of a flow over a span of time, and claims about them that are true, false or open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
from flint import arb, arb_series

from dynamics.support import checks
from yzflow_enclose.elementary import Elementary, exact
from yzflow_enclose.stepping import above, precision

# Terms of the expansions in time.
ORDER = 6


@dataclass(frozen=True)
class Claim:
    """A statement about a span of time: true at every time of it, false at every time of it, or open.

    Claims combine with ``&`` (and), ``|`` (or) and ``~`` (not); ``and``, ``or``, ``not`` and chains such as
    ``0 < q < 1`` would take an open claim for one or the other and raise.
    """

    value: bool | None

    def __post_init__(self) -> None:
        if not (self.value is None or isinstance(self.value, bool)):
            raise checks.reject("value", "be True, False or None", checks.brief(self.value))

    def __and__(self, other: Claim) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        checks.instance("other", other, Claim)
        if self.value is False or other.value is False:
            return Claim(False)
        return Claim(True if self.value and other.value else None)

    def __or__(self, other: Claim) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        checks.instance("other", other, Claim)
        return ~(~self & ~other)

    def __invert__(self) -> Claim:
        return Claim(None if self.value is None else not self.value)

    def __bool__(self) -> bool:
        # numpy asks for this where it compares object arrays; `Balls` do not.
        raise TypeError("a claim can be open: combine claims with &, | and ~, one comparison at a time")


def every(claims: Claim | Iterable[Any]) -> Claim:
    """The claim that all of an array or other collection of claims are true."""
    return reduce(and_, _listed(claims) or [Claim(True)])


def some(claims: Claim | Iterable[Any]) -> Claim:
    """The claim that at least one of an array or other collection of claims is true."""
    return ~every([~claim for claim in _listed(claims)])


def _listed(claims: Any) -> list[Claim]:
    rule = "be Claims, as comparisons of quantities are"
    if isinstance(claims, Claim):
        return [claims]
    given = list(np.ravel(checks.array("claims", claims, rule=rule, dtype=object)))
    for claim in given:
        if not isinstance(claim, Claim):
            raise checks.reject("claims", rule, checks.brief(claim))
    return given


@dataclass(frozen=True, eq=False)
class Span:
    """The times (start, end], and the centre of expansions in time.

    Parameters
    ----------
    start, end : float
    centre : arb
    distance : arb
        A ball that contains t - centre.
    jets : bool
        Whether series are those of the flow itself, with all derivatives, or those of a polynomial near it.
    """

    start: float
    end: float
    centre: arb
    distance: arb
    jets: bool = False

    @precision(cap=ORDER + 1)
    def along(self, function: Callable[[arb_series], arb_series]) -> Quantity:
        """A known function of time on the span; see `Moment.along`."""
        checks.function("function", function)
        thin = arb_series([self.centre, 1], ORDER)
        wide = arb_series([self.centre + self.distance, 1], ORDER + 1)
        return Quantity(function(thin), function(wide), self, arb(0), arb(0))


def checked_span(start: float, end: float) -> tuple[float, float]:
    """The arguments ``start`` and ``end`` of a moment."""
    start, end = checks.non_negative("start", start), checks.real("end", end)
    if end < start:
        raise checks.reject("end", f"not be before start, {start:g}", end)
    return start, end


class Quantity(Elementary):
    """A function of time on a span (start, end], enclosed with its derivative.

    It has arithmetic with numbers and other quantities, and `rate`. numpy's elementary functions are its methods, so
    that ``np.tanh`` takes it. A comparison gives a `Claim` on every time of the span.

    Attributes
    ----------
    lower, upper : float
        Bounds of its values on the span.
    """

    # Along the polynomial of the step: Taylor coefficients at the centre (thin), and at all times of the span with one
    # order more (wide). The flow differs from the polynomial by at most `error`, and its derivative by `slope_error`.
    __slots__ = ("_ball", "_error", "_slope_error", "_thin", "_wide", "span")
    __hash__ = None

    def __init__(self, thin: arb_series, wide: arb_series, span: Span, error: arb, slope_error: arb | None):
        # Checked, since a function of time that is given to `along` may return anything.
        for name, series in (("thin", thin), ("wide", wide)):
            if not isinstance(series, arb_series):
                raise checks.reject(name, "be a power series in balls", checks.brief(series))
        self._thin, self._wide, self.span = thin, wide, span
        self._error, self._slope_error = error, slope_error
        self._ball: arb | None = None

    def _operand(self, other: object) -> Quantity:
        if isinstance(other, Quantity):
            if (other.span.start, other.span.end) != (self.span.start, self.span.end):
                raise checks.reject("other", "be of the same span of time", checks.brief(other))
            return other
        number = exact(other)
        if number is None:
            raise checks.reject("other", "be a quantity, a ball, or a number that is exact", checks.brief(other))
        thin = arb_series([number], self._thin.prec)
        return Quantity(thin, arb_series([number], self._wide.prec), self.span, arb(0), arb(0))

    def _slope(self) -> arb | None:
        """A bound of the derivative, if there is one."""
        return None if self._slope_error is None else self.rate.ball().abs_upper()

    @precision(cap=ORDER + 1)
    def __add__(self, other: Quantity | float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._operand(other)
        return Quantity(
            self._thin + other._thin,
            self._wide + other._wide,
            self.span,
            self._error + other._error,
            _plus(self._slope_error, other._slope_error),
        )

    @precision(cap=ORDER + 1)
    def __neg__(self) -> Quantity:
        return Quantity(-self._thin, -self._wide, self.span, self._error, self._slope_error)

    def __sub__(self, other: Quantity | float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self + (-self._operand(other))

    def __rsub__(self, other: float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return -self + other

    @precision(cap=ORDER + 1)
    def __mul__(self, other: Quantity | float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._operand(other)
        thin, wide = _product(self._thin, other._thin), _product(self._wide, other._wide)
        if self._error.is_zero() and other._error.is_zero():
            return Quantity(thin, wide, self.span, arb(0), _plus(self._slope_error, other._slope_error))
        # a b - a' b' = a (b - b') + (a - a') b', and its derivative.
        mine, its = self.ball().abs_upper(), other.ball().abs_upper()
        error = mine * other._error + its * self._error
        slope_error = None
        if self._slope_error is not None and other._slope_error is not None:
            slope_error = (
                self._slope() * other._error
                + mine * other._slope_error
                + self._slope_error * its
                + self._error * other._slope()
            ).upper()
        return Quantity(thin, wide, self.span, error.upper(), slope_error)

    __radd__, __rmul__ = __add__, __mul__

    @precision(cap=ORDER + 1)
    def _through(self, function: Callable[[arb_series], arb_series], slope: arb, bend: arb) -> Quantity:
        """g of the quantity, from bounds of g' and g'' over its ball."""
        thin, wide = (_known(function(series)) for series in (self._thin, self._wide))
        if self._error.is_zero():
            return Quantity(thin, wide, self.span, self._error, self._slope_error)
        slope, bend = slope.abs_upper(), bend.abs_upper()
        slope_error = None
        if self._slope_error is not None:
            slope_error = (bend * self._error * self._slope() + slope * self._slope_error).upper()
        return Quantity(thin, wide, self.span, (slope * self._error).upper(), slope_error)

    def exp(self) -> Quantity:
        """The exponential."""
        value = self.ball().exp()
        return self._through(lambda a: a.exp(), value, value)

    def log(self) -> Quantity:
        """The natural logarithm."""
        inverse = 1 / self.ball()
        return self._through(lambda a: a.log(), inverse, inverse * inverse)

    def sqrt(self) -> Quantity:
        """The square root."""
        ball = self.ball()
        half = ball.rsqrt() / 2
        return self._through(lambda a: a.sqrt(), half, half / ball)

    def rsqrt(self) -> Quantity:
        """One over the square root."""
        ball = self.ball()
        slope = ball.rsqrt() / ball
        return self._through(lambda a: a.rsqrt(), slope / 2, slope / ball)

    def sin(self) -> Quantity:
        """The sine."""
        ball = self.ball()
        return self._through(lambda a: a.sin(), ball.cos(), ball.sin())

    def cos(self) -> Quantity:
        """The cosine."""
        ball = self.ball()
        return self._through(lambda a: a.cos(), ball.sin(), ball.cos())

    def arctan(self) -> Quantity:
        """The inverse of the tangent."""
        ball = self.ball()
        slope = 1 / (1 + ball * ball)
        return self._through(lambda a: a.atan(), slope, 2 * ball * slope * slope)

    def erf(self) -> Quantity:
        """The error function."""
        ball = self.ball()
        slope = (-ball * ball).exp() * 2 / arb.pi().sqrt()
        return self._through(lambda a: a.erf(), slope, 2 * ball * slope)

    def _inverse(self) -> Quantity:
        inverse = 1 / self.ball()
        square = inverse * inverse
        return self._through(_inverse, square, square * inverse * 2)

    def __truediv__(self, other: Quantity | float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self * self._operand(other)._inverse()

    def __rtruediv__(self, other: float) -> Quantity:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self._inverse() * other

    @property
    @precision(cap=ORDER + 1)
    def rate(self) -> Quantity:
        """The derivative in time; it has a rate itself only for a flow of named states."""
        if self._slope_error is None:
            raise ValueError("a rate has no rate: only first derivatives are enclosed")
        if self.span.jets:
            if self._wide.prec < 2:
                raise ValueError(f"only the first {ORDER} derivatives in time are enclosed")
            return Quantity(self._thin.derivative(), self._wide.derivative(), self.span, arb(0), arb(0))
        return Quantity(self._thin.derivative(), self._wide.derivative(), self.span, self._slope_error, None)

    def integral(self, before: arb) -> tuple[Quantity, arb]:
        """The integral from ``span.start`` on, plus a ball ``before``, and its value at ``span.end``."""
        known = exact(before)
        if known is None:
            raise checks.reject("before", "be a ball, or a number that is exact", checks.brief(before))
        order = min(self._thin.prec, self._wide.prec - 1)
        terms = [self._thin[k] / (k + 1) for k in range(order)]
        last = self._wide[order] / (order + 1)

        def moved(distance: arb) -> arb:
            value = last
            for term in reversed(terms):
                value = value * distance + term
            return value * distance

        length = arb(self.span.end) - arb(self.span.start)
        first = known - moved(arb(self.span.start) - self.span.centre)
        thin = arb_series([first, *terms[: order - 1]], order)
        whole = [first + moved(self.span.distance), *(self._wide[k] / (k + 1) for k in range(order))]
        error = (self._error * length).upper() if self._error.is_finite() else self._error
        found = Quantity(thin, arb_series(whole, order + 1), self.span, error, self._error)
        return found, first + moved(arb(self.span.end) - self.span.centre) + arb(0, error)

    def ball(self) -> arb:
        """A ball of all its values on the span."""
        if self._ball is None:
            direct, expanded = self._wide[0], self._expanded(0)
            if direct.is_finite() and expanded.is_finite():
                direct = direct.intersection(expanded)
            self._ball = direct + arb(0, self._error)
        return self._ball

    @property
    def lower(self) -> float:
        return -above(-self.ball())

    @property
    def upper(self) -> float:
        return above(self.ball())

    def _expanded(self, zeros: int) -> arb:
        """Its values along the polynomial, over (t - centre)^zeros if the first ``zeros`` coefficients vanish."""
        order = min(self._thin.prec, self._wide.prec - 1)
        distance = self.span.distance
        value = self._wide[order]
        for k in range(order - 1, zeros - 1, -1):
            value = value * distance + self._thin[k]
        return value

    def _sign(self) -> arb:
        """A ball with the sign that the quantity has on (start, end]."""
        zeros = 0
        if self.span.start < self.span.end and self._error.is_zero() and (self.span.centre == self.span.start):
            order = min(self._thin.prec, self._wide.prec - 1)
            while zeros < order and self._thin[zeros].is_zero():
                zeros += 1
        return self._expanded(zeros) if zeros else self.ball()

    def __gt__(self, other: Quantity | float) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        sign = (self - other)._sign()
        return Claim(True if sign > 0 else False if sign <= 0 else None)

    def __ge__(self, other: Quantity | float) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        sign = (self - other)._sign()
        return Claim(True if sign >= 0 else False if sign < 0 else None)

    def __lt__(self, other: Quantity | float) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return ~(self >= other)

    def __le__(self, other: Quantity | float) -> Claim:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return ~(self > other)

    def __eq__(self, other: object) -> Claim:  # type: ignore[override]
        raise TypeError("balls cannot prove that two quantities are equal: bound their difference")

    def __repr__(self) -> str:
        return f"<Quantity in [{self.lower!r}, {self.upper!r}]>"


def _plus(first: arb | None, second: arb | None) -> arb | None:
    return None if first is None or second is None else first + second


def _known(series: arb_series) -> arb_series:
    """A series; all of its coefficients become unknown if the first one is: a root of -1 has no derivatives."""
    return series if series[0].is_finite() else arb_series([arb.nan()] * series.prec, series.prec)


def _product(first: arb_series, second: arb_series) -> arb_series:
    """A product; unknown if a factor is, while python-flint takes zero times an unknown ball for zero."""
    found = first * second
    known = first[0].is_finite() and second[0].is_finite()
    return _known(found) if known else arb_series([arb.nan()] * found.prec, found.prec)


def _inverse(series: arb_series) -> arb_series:
    """One over a series; unknown if its ball holds zero."""
    if series[0].contains(0):
        return arb_series([arb.nan()] * series.prec, series.prec)
    return 1 / series


def midpoint_and_radius(ball: arb) -> tuple[float, float]:
    """A float, and its largest distance from a point of a ball."""
    if not ball.is_finite():
        return math.nan, math.inf
    middle = float(ball)
    return middle, above(abs(ball - arb(middle)))
