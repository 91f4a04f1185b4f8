r"""Late attention for 2 K <= M falls at all times from a zero decoder with max(K, 8) w(0)^2 <= 1. Not in the paper.

Setting, symbols and equations of motion are as in `late_start`, but the bound of kappa does not grow with M: the
difference of the two margins is compared with its value for features frozen at the present state.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar, Signed, Vanishing, joined
from yzflow_beyond_scan_and_snap.proofs import late_exponent, late_full_flow, late_start
from yzflow_beyond_scan_and_snap.proofs.late_exponent import K_, KAPPA, LEAD, LESS, M_, MORE, I, J, R


def most_starts(k: Scalar) -> tuple[sp.Expr, sp.Expr]:
    """w(0)^2 is at most both."""
    return sp.Rational(1, 8), 1 / sp.sympify(k)


def least_kappa() -> sp.Expr:
    """Lower bound of kappa."""
    return sp.Rational(1, 2)


def most_lag() -> sp.Expr:
    """Upper bound of delta = kappa - 1 - M w^2."""
    return sp.Integer(1)


def most_excess(m: Scalar) -> Scalar:
    """Upper bound of u delta."""
    return m


def most_drive(m: Scalar, k: Scalar) -> sp.Expr:
    """Upper bound of a M (w u)^2 N, with N at the least kappa."""
    return m - k / 2


def least_along(k: Scalar, y: Scalar) -> sp.Expr:
    """A bound of R + b from below, from y = w(0)^2."""
    return (1 + y) / (1 + k * y)


def most_lead(k: Scalar, y: Scalar) -> sp.Expr:
    """A bound of b from above."""
    return y / (1 + k * y)


EXIT = (
    "at the first time at which one of the six is an equality its derivative has the sign that keeps it",
    "functions that begin at zero keep the order of their derivatives",
    "convex functions lie above their tangents",
    "R, b and N at time zero as limits",
)
# M = 2 K + j.
_WIDE = {K_: 2 + I, M_: 4 + 2 * I + J}
X, Y0 = sp.symbols("x y_0", positive=True)


def derive(
    *,
    rates: Claim = late_full_flow.rates,
    pull: Claim = late_exponent.pull,
    most_starts: Claim = most_starts,
    least_kappa: Claim = least_kappa,
    most_lag: Claim = most_lag,
    most_excess: Claim = most_excess,
    most_drive: Claim = most_drive,
    least_along: Claim = least_along,
    most_lead: Claim = most_lead,
) -> Derivation:
    """Six inequalities: all hold at the start, and none can be the first to fail."""
    flow = late_exponent.flow_of(rates)
    vanishing, signed = joined(
        late_start.motion(flow, pull),
        _integrated(flow, least_along, most_lead),
        ({}, _lag(most_starts, most_lag)),
        ({}, _excess(most_starts, most_lag, most_excess, least_along)),
        ({}, _low(pull, most_starts, least_kappa, most_drive)),
        _driven(pull, most_starts, least_kappa, most_drive, least_along, most_lead),
        late_start.falls(flow, pull, least_kappa, most_excess),
    )
    return Derivation(
        statement="Late attention from larger starts, 2 K <= M",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"*Six inequalities.* In the notation of `late_start`, $y_0 = w(0)^2$, $x = My$: (1) $N > 0$, (2) $\kappa <"
            r" 1 + My_0$, (3) $\delta < 1$, (4) $u\delta < M$, (5) $\kappa > \frac12$, (6) $aMyu^2N_* < G_*$. They hold"
            r" at the start, and while they do, w falls.",
            r"*Integrals.* As there, by (2): $R + b \ge \frac{1+y_0}{1+Ky_0} \ge \frac{1+y}2$ and $0 < b \le"
            r" \frac{y_0}{1+Ky_0}$, so that $G \le M(1 + Ky_0)$ and $uy(R+b) \ge \ln\kappa$.",
            r"*At (2)* $\delta = M(y_0 - y) > 0$, and $\kappa$ falls.",
            r"*At (3)* f adds $\frac{yf}{1+y}$ times $2M(1+y) - \kappa u(R+b)$ to $\delta$, which else falls; not"
            r" positive, as $\kappa\ln\kappa \ge 2x(1+y)$ at $\kappa = 2 + x$, $y \le \frac18$.",
            r"*At (4)* $u = \frac M\delta \ge M$ and $\kappa u > G$, by which $u\delta$ falls. f adds"
            r" $\frac{yf}{1+y}$ times $\delta + 2M(1+y) - \kappa u(R+b)$, not positive: for $10\delta \le 3(1+x)$ by $R"
            r" + b \ge \frac{1+y}2$, above by $uy(R+b) \ge \ln\kappa$.",
            r"*At (5)* $f \le G_*$, and $R + b \le 1 + \frac{K-1}{2(M-K)}$ by $N \ge 0$: $y(R+b)f < \frac12 + x ="
            r" -\delta$, as $x \le \frac MK$, and $\kappa$ rises.",
            r"*At (6)* $f \ge G$, as in `late_start`; over its clock $\ln(yu^2)$ rises by $2Gy_0$ at most, $R + b$ by"
            r" $M - 1 + \kappa - Gb$ at least, and $N_*$ falls by more.",
            r"*At (1)* as in `late_start`.",
        ),
        scope="all K and M with 2 K <= M, all rates and any number of equal distinct tokens",
        sizes={},
        prose=EXIT,
    )


def _wide(expression: sp.Expr) -> sp.Expr:
    """Insert sizes with M >= 2 K in a form in which each term shows its sign."""
    return sp.sympify(expression).subs(_WIDE)


def _integrated(flow: late_exponent.Flow, least_along: Claim, most_lead: Claim) -> tuple[Vanishing, Signed]:
    """As in `late_start`, for kappa below 1 + M y_0."""
    below = {KAPPA: (1 + M_ * Y0) / (1 + LESS)}
    d = 1 / sp.sqrt(1 + late_exponent.W**2)
    level, change, grows = (sp.simplify(rate / d) for rate in (flow.A, -flow.B, flow.C / late_exponent.W))
    return late_start.integrands(flow), {
        "integrals: R + b": (_wide((grows + change - least_along(K_, Y0) * level).subs(below)), ">= 0"),
        "integrals: b": (_wide((most_lead(K_, Y0) * level - change).subs(below)), ">= 0"),
    }


def _above_tangent(kappa: sp.Expr, slope: sp.Expr) -> sp.Expr:
    """Tangent of kappa ln kappa with this slope, at exp(slope - 1); it lies below, since the function is convex."""
    return slope * kappa - sp.exp(slope - 1)


def _lag(most_starts: Claim, most_lag: Claim) -> Signed:
    """At (3)."""
    top, _ = most_starts(K_)
    kappa = 1 + most_lag() + X
    grown = _above_tangent(kappa, 2 * (1 + top)) - 2 * X * (1 + top)
    return {
        "(3): it holds at the start": (most_lag(), "> 0"),
        "(3): f does not raise delta, small x": (grown.subs(X, 0), "> 0"),
        "(3): f does not raise delta, more x": (sp.diff(grown, X), ">= 0"),
    }


def _excess(most_starts: Claim, most_lag: Claim, most_excess: Claim, least_along: Claim) -> Signed:
    """At (4), with delta = (bound)/u below most_lag."""
    top, other = most_starts(K_)
    part, slope, above = sp.Rational(3, 10), sp.Rational(9, 5), sp.Symbol("e", positive=True)
    y, delta = sp.symbols("y delta", positive=True)
    u = most_excess(M_) / delta
    settling = (K_ * KAPPA + M_ - K_ - KAPPA * u).subs({delta: most_lag() / (1 + LESS), KAPPA: 1 + above})
    # M w^2 = x, kappa = 1 + x + delta; R + b >= (1 + y)/2.
    small = delta + 2 * M_ * (1 + y) - (1 + M_ * y + delta) * u * (1 + y) / 2
    small = (small * delta / M_).subs(delta, part * (1 + M_ * y) / (1 + MORE)).subs(y, top / (1 + LESS))
    start = other / (1 + MORE)
    # kappa ln kappa - 2 x (1 + y) - y delta rises with delta.
    large = _above_tangent((1 + part) * (1 + X), slope) - 2 * X * (1 + top) - top * part * (1 + X)
    return {
        "(4): it falls where w stays": (_wide(settling), "< 0"),
        "(4): R + b is at least (1 + y)/2": (_wide(least_along(K_, start) - (1 + start) / 2), ">= 0"),
        "(4): f, a small excess": (_wide(small), "<= 0"),
        "(4): f, a large excess, small x": (large.subs(X, 0), "> 0"),
        "(4): f, a large excess, more x": (sp.diff(large, X), ">= 0"),
        "(4): f, a large excess, more delta": (1 - top, "> 0"),
    }


def _low(pull: Claim, most_starts: Claim, least_kappa: Claim, most_drive: Claim) -> Signed:
    """At (5), where f is at most its bound; linear in x between 0 and M y_0 at most."""
    _, other = most_starts(K_)
    most_along = sp.solve(pull(M_, K_, least_kappa(), R, LEAD), R)[0] + LEAD
    left = 1 - least_kappa() + X - X * most_drive(M_, K_) / M_ * most_along
    return {
        "(5): it holds at the start": (1 - least_kappa(), "> 0"),
        "(5): the least x": (left.subs(X, 0), "> 0"),
        "(5): the largest x": (_wide(left.subs(X, M_ * other)), "> 0"),
    }


def _driven(
    pull: Claim, most_starts: Claim, least_kappa: Claim, most_drive: Claim, least_along: Claim, most_lead: Claim
) -> tuple[Vanishing, Signed]:
    """At (6): a M (w u)^2 rises by 2 G y_0 of itself at most, N at the least kappa falls by more."""
    top, other = most_starts(K_)
    low = least_kappa()
    least = K_ * low + M_ - K_
    now, lowest = (pull(M_, K_, kappa, R, LEAD) for kappa in (KAPPA, low))
    # G at most, and N at most, by (2) and R + b.
    most = M_ * (1 + K_ * Y0)
    highest = sp.sympify(pull(M_, K_, low, R, LEAD)).subs(R, least_along(K_, Y0) - LEAD)
    rises = sp.factor(2 * Y0 * most * highest)
    # y_0 at most 1/8 where it stands alone, K y_0 at most 1: both let it rise.
    y, v = sp.symbols("y v", positive=True)
    bound = M_ * (K_ - 1) * y * (1 + v + 2 * (M_ - K_) * v / K_)
    along = M_ - 1 + low - least * most_lead(K_, Y0)
    return {
        "(6): G by its least": (least * now - (K_ * KAPPA + M_ - K_) * lowest)
        - (KAPPA - low) * (M_ - K_) * (K_ * (R + LEAD) - 1),
        "(6): the bound is G at the least kappa": sp.expand(most_drive(M_, K_) - least),
        "(6): what rises": sp.cancel(rises - bound.subs({y: Y0, v: K_ * Y0})),
        # M - 1 + kappa - G b is least at the least kappa.
        "(6): its slope in kappa": sp.diff(M_ - 1 + KAPPA - (K_ * KAPPA + M_ - K_) * most_lead(K_, Y0), KAPPA)
        - 1 / (1 + K_ * Y0),
    }, {
        "(6): R + b is at least 1/K": (_wide(K_ * least_along(K_, Y0) - 1), ">= 0"),
        "(6): N falls by more": (
            _wide((M_ - K_) * along.subs(Y0, top / (1 + MORE)) - bound.subs({y: top, v: K_ * other})),
            "> 0",
        ),
    }
