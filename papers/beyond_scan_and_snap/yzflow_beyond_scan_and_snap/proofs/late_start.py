r"""Late attention for K < M falls at all times from a zero decoder with M w(0)^2 <= 1. Not in the paper.

Setting, symbols and the clock sigma are as in `late_exponent`. Let y = w^2, u = dA, G = K kappa + M - K and
f = a w^2 u^2 M N, which has the sign of N. With a dot for (M A/d) d/d sigma the flow is

    u. = u (G + y f/(1 + y)),   y. = -2 y f,   (ln kappa). = -u (delta + y (R + b) f/(1 + y)),
    (R + b). = M - 1 + kappa - (R + b) G + R f,   delta = kappa - 1 - M y.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar, Signed, Vanishing, joined
from yzflow_beyond_scan_and_snap.proofs import late_exponent, late_full_flow
from yzflow_beyond_scan_and_snap.proofs.late_exponent import (
    K_,
    KAPPA,
    LEAD,
    LESS,
    M_,
    MORE,
    SPEED,
    A,
    Flow,
    R,
    W,
    of_sizes,
)


def most_start() -> sp.Expr:
    """The largest M w(0)^2."""
    return sp.Integer(1)


def least_kappa() -> sp.Expr:
    """Lower bound of kappa."""
    return sp.Rational(1, 2)


def most_excess(m: Scalar) -> Scalar:
    """Upper bound of u (kappa - 1 - M w^2)."""
    return m


def most_drive(m: Scalar, k: Scalar) -> sp.Expr:
    """Upper bound of a M (w u)^2 N, with N at the least kappa."""
    return (1 + 1 / m) * (m - k / 2)


def least_along(m: Scalar, k: Scalar) -> sp.Expr:
    """A bound of R + b from below."""
    return (m + 1) / (m + k)


def most_lead(m: Scalar, k: Scalar) -> sp.Expr:
    """A bound of b from above."""
    return 1 / (m + k)


EXIT = (
    "at the first time at which one of the five is an equality its derivative has the sign that keeps it",
    "functions that begin at zero keep the order of their derivatives",
    "R, b and N at time zero as limits",
)
_D = 1 / sp.sqrt(1 + W**2)
_U = _D * A
_Y = W**2
_DELTA = KAPPA - 1 - M_ * _Y
_CLASSES = K_ * KAPPA + M_ - K_


def derive(
    *,
    rates: Claim = late_full_flow.rates,
    pull: Claim = late_exponent.pull,
    most_start: Claim = most_start,
    least_kappa: Claim = least_kappa,
    most_excess: Claim = most_excess,
    most_drive: Claim = most_drive,
    least_along: Claim = least_along,
    most_lead: Claim = most_lead,
) -> Derivation:
    """Five inequalities: all hold at the start, and none can be the first to fail."""
    flow = late_exponent.flow_of(rates)
    vanishing, signed = joined(
        motion(flow, pull),
        _start(pull, most_start, least_kappa),
        _integrated(flow, most_start, least_kappa, least_along, most_lead),
        _excess(most_start, most_excess, least_along),
        ({}, _low(most_start, least_kappa, most_drive, most_lead)),
        _driven(pull, most_start, least_kappa, most_drive, least_along, most_lead),
        falls(flow, pull, least_kappa, most_excess),
    )
    return Derivation(
        statement="Late attention from a zero decoder, K < M",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"*Motion.* With $y = w^2$, $G = K\kappa + M - K$, $f = aMyu^2N$ and a dot for"
            r" $\frac{MA}d\frac d{d\sigma}$: $\dot u = u(G + \frac{yf}{1+y})$, $\dot y = -2yf$, $(\ln\kappa)^\cdot ="
            r" -u(\delta + \frac{y(R+b)f}{1+y})$, $(R+b)^\cdot = M - 1 + \kappa - (R+b)G + Rf$.",
            r"*Five inequalities.* (1) $N > 0$, (2) $\kappa < 2$, (3) $u\delta < M$, (4) $\kappa > \frac12$, (5)"
            r" $aMyu^2N_* < (1 + \frac1M)G_*$, a star for $\kappa = \frac12$ in N and G. All hold at the start, where"
            r" $u = 0$, $\kappa = R = 1$, $b = 0$, $N = K - 1$, $\delta = -My$. While they do, w falls: $x = My < 1$.",
            r"*Integrals.* All begin at 0. So $(\frac Cw - B)' \ge \frac{M+1}{M+K}A'$ and $-B' \le \frac1{M+K}A'$,"
            r" by (2), and $C' \le \frac M{G_*}w(0)A'$, by (4), give $R + b \ge \frac{M+1}{M+K}$, $b \le"
            r" \frac1{M+K}$ and $G_*yR \le \sqrt x$. And $b > 0$: where it is 0, $\ln\kappa = u(yR - b)$ is"
            r" positive, and it grows as at the start.",
            r"*At (2)* $\delta = 1 - x > 0$, and $\kappa$ falls.",
            r"*At (3)* $\delta \le 1 - x$ by (2), hence $u = \frac M\delta \ge M$ and $\kappa u > G$, by which"
            r" $u\delta$ falls. f adds $\frac{yf}{1+y}$ times $\delta + 2M(1+y) - \kappa u(R+b)$, not positive: for"
            r" $3\delta \le 1 + x$ by the bound of $R + b$, for $3\delta \ge 1 + x$ by $uy(R+b) \ge u(yR-b) ="
            r" \ln\kappa \ge \frac{2(\kappa-1)}{\kappa+1}$.",
            r"*At (4)* $N = N_*$, so that (5) bounds f. With $\sqrt x \le x + \frac14$, $\frac{y(R+b)f}{1+y}$ is below"
            r" $-\delta = \frac12 + x$, and $\kappa$ rises.",
            r"*At (5)* $GN_* \le G_*N$, as $R + b \ge \frac1K$. Hence $f \ge (1+y)G$, by which $yu^2$ does not"
            r" rise, and $(R+b)^\cdot \ge M - 1 + \kappa - Gb > 0$, by which $N_*$ falls.",
            r"*At (1)* $\frac{\dot N}{K-1} = K\kappa^2 + 2(M-K)\kappa - (M-K) - u\kappa\delta$ is positive: for"
            r" $\kappa \ge 1$ by (3), for $\frac12 \le \kappa < 1$ since $\delta < 0$.",
        ),
        scope="all K < M, all rates and any number of equal distinct tokens",
        sizes={},
        prose=EXIT,
    )


def _drive(pull: Claim) -> sp.Expr:
    """f."""
    return SPEED * M_ * _Y * _U**2 * pull(M_, K_, KAPPA, R, LEAD)


def _dotted(flow: Flow, expression: sp.Expr) -> sp.Expr:
    return flow.of(expression) * M_ * A / _D


def motion(flow: Flow, pull: Claim) -> Vanishing:
    """The flow in the variables and the clock of the module's docstring."""
    drive, part, push = _drive(pull), _Y / (1 + _Y), SPEED * M_ * _Y * _U**2
    return {
        "motion: u": _dotted(flow, _U) - _U * (_CLASSES + part * drive),
        "motion: w^2": _dotted(flow, _Y) + 2 * _Y * drive,
        "motion: ln kappa": _dotted(flow, sp.log(KAPPA)) + _U * (_DELTA + part * (R + LEAD) * drive),
        "motion: R + b": _dotted(flow, R + LEAD) - (M_ - 1 + KAPPA - (R + LEAD) * _CLASSES + R * drive),
        "motion: a M (w u)^2": _dotted(flow, push) - 2 * push * (_CLASSES - drive / (1 + _Y)),
        "motion: u delta": _dotted(flow, _U * _DELTA) / _U
        - _DELTA * (_CLASSES - KAPPA * _U)
        - part * drive * (_DELTA + 2 * M_ * (1 + _Y) - KAPPA * _U * (R + LEAD)),
    }


def _start(pull: Claim, most_start: Claim, least_kappa: Claim) -> tuple[Vanishing, Signed]:
    """At u = 0, kappa = R = 1 and b = 0 the five hold: (3) and (5) because u = 0."""
    first = sp.sympify(pull(M_, K_, KAPPA, R, LEAD)).subs({KAPPA: 1, R: 1, LEAD: 0})
    return {"start: (1)": first - (K_ - 1)}, {
        "start: (1) is positive": (of_sizes(first), "> 0"),
        "start: (2)": (most_start(), "> 0"),
        "start: (4)": (1 - least_kappa(), "> 0"),
    }


def _integrated(
    flow: Flow, most_start: Claim, least_kappa: Claim, least_along: Claim, most_lead: Claim
) -> tuple[Vanishing, Signed]:
    """Derivatives of C/w - B, -B and C against that of A, (d/M) G."""
    below = {KAPPA: (1 + most_start()) / (1 + LESS)}
    level = flow.A / _D
    return {
        **integrands(flow),
        "integrals: C by w": flow.C - W * _D,
    }, {
        "integrals: R + b": (
            of_sizes(((flow.C / W - flow.B) / _D - least_along(M_, K_) * level).subs(below)),
            ">= 0",
        ),
        "integrals: b": (of_sizes((most_lead(M_, K_) * level + flow.B / _D).subs(below)), ">= 0"),
        "integrals: R w": (
            of_sizes((M_ / _least_classes(least_kappa) * level - 1).subs(KAPPA, least_kappa() + MORE)),
            ">= 0",
        ),
    }


def integrands(flow: Flow) -> Vanishing:
    """Identities for the derivatives of C/w - B and b A, and for ln kappa; as w falls, (C/w)' exceeds C'/w."""
    return {
        "integrals: C/w - B": flow.of((R + LEAD) * A) - (flow.C / W - flow.B) + flow.w / W * R * A,
        "integrals: ln kappa": -_D * LEAD * A + W * _D * R * W * A - _U * (_Y * R - LEAD),
        "integrals: R + b by ln kappa": _Y * (R + LEAD) - (_Y * R - LEAD) - (1 + _Y) * LEAD,
        "integrals: change of b A": flow.of(LEAD * A) - _D * (KAPPA - 1) / M_,
    }


def _least_classes(least_kappa: Claim) -> sp.Expr:
    """G where kappa is least."""
    return K_ * least_kappa() + M_ - K_


def _excess(most_start: Claim, most_excess: Claim, least_along: Claim) -> tuple[Vanishing, Signed]:
    """At (3), with x = M w^2, delta = (bound)/u and kappa = 1 + x + delta < 1 + most_start."""
    x, delta, kappa, above = sp.symbols("x delta kappa_0 e", positive=True)
    top = most_start()
    u = most_excess(M_) / delta
    grown = {KAPPA: 1 + x + delta}
    settling = (_CLASSES - KAPPA * u).subs({delta: top / (1 + LESS), KAPPA: 1 + above})
    pushed = delta + 2 * M_ * (1 + x / M_)
    by_along = (pushed - KAPPA * u * least_along(M_, K_)).subs(grown) * delta / M_
    by_gap = (pushed - M_ / x * KAPPA * _least_log(KAPPA)).subs(grown) * x / M_
    less = {delta: (1 + x) / (3 * (1 + LESS))}
    more = {delta: (1 + x) / 3 + MORE}
    return {
        # (1 + x)/3 <= delta <= top - x
        "(3): the largest x of the second case": (1 + x) / 3 - (top - x) - sp.Rational(4, 3) * (x - _split(top)),
    }, {
        "(2): delta is positive": (top - top / (1 + above), "> 0"),
        "(3): it falls where w stays": (of_sizes(settling), "< 0"),
        "(3): f, a small excess": (of_sizes(by_along.subs(less).subs(x, top / (1 + MORE))), "<= 0"),
        "(3): f, a large excess": (of_sizes(by_gap.subs(more).subs(x, _split(top) / (1 + LESS))), "<= 0"),
        "(3): the logarithm at 1": (sp.log(kappa).subs(kappa, 1) - _least_log(sp.Integer(1)), ">= 0"),
        "(3): the logarithm above": (
            sp.factor(sp.diff(sp.log(kappa) - _least_log(kappa), kappa).subs(kappa, 1 + MORE)),
            ">= 0",
        ),
    }


def _split(top: sp.Expr) -> sp.Expr:
    """The largest x that satisfies both delta = (1 + x)/3 and delta <= top - x."""
    return (3 * top - 1) / 4


def _least_log(kappa: sp.Expr) -> sp.Expr:
    """Below ln kappa for kappa >= 1."""
    return 2 * (kappa - 1) / (kappa + 1)


def _low(most_start: Claim, least_kappa: Claim, most_drive: Claim, most_lead: Claim) -> Signed:
    """At (4) -delta exceeds what f takes: a parabola in x = M w^2 that has no zero."""
    x = sp.Symbol("x", positive=True)
    top, least = most_start(), _least_classes(least_kappa)
    # G_* y R <= sqrt(top x) <= x + top/4, G_* y b <= G_* x most_lead/M.
    taken = most_drive(M_, K_) / least * (x + top / 4 + least * x / M_ * most_lead(M_, K_))
    left = sp.Poly(sp.expand((1 - least_kappa() + x) * (1 + x / M_) - taken), x)
    square, line, constant = left.all_coeffs()
    return {
        "(4): the square root": ((sp.sqrt(x) - sp.sqrt(top) / 2) ** 2, ">= 0"),
        "(4): the parabola opens upwards": (of_sizes(square), "> 0"),
        "(4): it has no zero": (of_sizes(4 * square * constant - line**2), "> 0"),
    }


def _driven(
    pull: Claim, most_start: Claim, least_kappa: Claim, most_drive: Claim, least_along: Claim, most_lead: Claim
) -> tuple[Vanishing, Signed]:
    """At (5) neither factor grows: a M (w u)^2 because f >= (1 + y) G, and N at the least kappa because R + b grows."""
    least, low = _least_classes(least_kappa), least_kappa()
    now, lowest = (pull(M_, K_, kappa, R, LEAD) for kappa in (KAPPA, low))
    top = most_start()
    return {
        "(5): G by its least": (least * now - _CLASSES * lowest) - (KAPPA - low) * (M_ - K_) * (K_ * (R + LEAD) - 1),
    }, {
        "(5): the bound is (1 + y) G at the least kappa": (
            of_sizes(most_drive(M_, K_) - (1 + top / M_ / (1 + MORE)) * least),
            ">= 0",
        ),
        "(5): R + b is at least 1/K": (of_sizes(K_ * least_along(M_, K_) - 1), ">= 0"),
        # G b <= (M + K top) most_lead.
        "(5): R + b grows": (of_sizes(M_ - 1 + low - (M_ + K_ * top) * most_lead(M_, K_)), "> 0"),
    }


def falls(flow: Flow, pull: Claim, least_kappa: Claim, most_excess: Claim) -> tuple[Vanishing, Signed]:
    """At (1), where N = 0, its derivative is positive; kappa = 1 + e + f or between the least and 1."""
    free, low = M_ - K_, least_kappa()
    bend = K_ * KAPPA**2 + 2 * free * KAPPA - free
    no_fall = {LEAD: (K_ - 1) * KAPPA / free + 1 - R}
    turned = _dotted(flow, sp.expand(pull(M_, K_, KAPPA, R, LEAD))).subs(no_fall)
    above = sp.Symbol("e", positive=True)
    return {
        "(1): N vanishes there": pull(M_, K_, KAPPA, R, no_fall[LEAD]),
        "(1): its change": turned / (K_ - 1) - (bend - _U * KAPPA * _DELTA),
    }, {
        "(1): kappa above 1": (of_sizes((bend - KAPPA * most_excess(M_)).subs(KAPPA, 1 + above)), "> 0"),
        "(1): kappa at 1": ((-_DELTA).subs(KAPPA, 1), "> 0"),
        "(1): kappa below 1": (of_sizes(bend.subs(KAPPA, low + MORE)), "> 0"),
    }
