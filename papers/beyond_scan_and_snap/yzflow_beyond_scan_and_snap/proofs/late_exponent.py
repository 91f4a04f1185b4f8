r"""The exponent of ln t for K < M, proved where the logit falls from some time on; and when it does. Not in the paper.

Setting, A, B, C, p and q are as in `late_full_flow`; D equal distinct tokens of a class count as one. K < M, w = c/d,
u = dA, kappa = p/q = exp(dB + cC), and

    R = C/(w A),   b = -B/A,   N = (K - 1) kappa + (M - K)(1 - R - b),   a = (1 + 1/(K D)) eta_Z K/(eta_Y M).

The clock is sigma, d sigma = (eta_Y M q/K) dt; a dash is d/d sigma. In this clock kappa is the only function of
probabilities left, and the logit of the common token falls if N > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar, Signed, Vanishing, joined
from yzflow_beyond_scan_and_snap.proofs import late_full_flow
from yzflow_beyond_scan_and_snap.proofs.late_full_flow import ETA_Y, ETA_Z, P, Q

K_, M_, SPEED, A, W, KAPPA, R = sp.symbols("K M a A w kappa R", positive=True)
LEAD = sp.Symbol("b", real=True)
# K = 2 + i, M - K = 1 + j.
I, J = sp.symbols("i j", nonnegative=True)
_SIZES = {K_: 2 + I, M_: 3 + I + J}
MORE, LESS = sp.symbols("e f", nonnegative=True)


def pull(m: Scalar, k: Scalar, kappa: Scalar, ratio: Scalar, lead: Scalar) -> sp.Expr:
    """N: the common token's logit falls if N > 0 and rises if N < 0; ``ratio`` is R, ``lead`` is b."""
    return (k - 1) * kappa + (m - k) * (1 - ratio - lead)


def most_excess(m: Scalar) -> Scalar:
    """The largest u (kappa - 1 - M w^2) in the trap."""
    return m


def ledge(m: Scalar, k: Scalar) -> sp.Expr:
    """The least R + b in the trap."""
    return 1 + (k - 1) / (2 * m)


def least_margins(m: Scalar, k: Scalar) -> tuple[Scalar, Scalar]:
    """The margin u to another class is at least both in the trap."""
    return m + 1, 3 * k


def most_ratio(m: Scalar, k: Scalar, y: Scalar) -> sp.Expr:
    """A bound of R in the trap, from y = w^2 on."""
    return ((k - 1) * (2 + m * y) + m - k) / (m - k) + (1 + m * y) / (m + 1)


def least_reach() -> sp.Expr:
    """The least a M d^4 (C/R)^2 in the trap, R at its bound."""
    return sp.Rational(9, 4)


def next_terms(m: Scalar, k: Scalar) -> tuple[sp.Expr, sp.Expr]:
    """x and y of -d ln w/d ln A = alpha (1 + x w^2 + y/(a (c A)^2))."""
    drift = m**3 + 2 * m**2 - 4 * k * m**2 - 3 * k * m + k + 4 * k**2 * m - k**2
    return 2 * drift / ((m - k) * (m - 1)), (m - k) / (m - 1) ** 2


def next_exponent(m: Scalar, k: Scalar, square: Scalar, slack: Scalar, terms: Claim = next_terms) -> sp.Expr:
    """-d ln w/d ln A to the next order, from w^2 and 1/(a (c A)^2)."""
    x, y = terms(m, k)
    return late_full_flow.exponent(m, k) * (1 + x * square + y * slack)


AVERAGES = (
    "sigma grows without end with t, since a state that stays bounded keeps q above zero",
    "an error that decays and whose sources are summable is summable",
    "means over sigma and over ln A of bounded quantities",
    "a quantity that cannot fall fast, has its limit as upper limit and is summably near it, tends to it",
    "ln t ~ A, since ln(1/q) ~ A",
)
EXIT = (
    "at the first time at which a condition stops its derivative has the sign that keeps it",
    "concave functions lie below their tangents",
)


def derive(
    *,
    rates: Claim = late_full_flow.rates,
    exponent: Claim = late_full_flow.exponent,
    pull: Claim = pull,
    most_excess: Claim = most_excess,
    ledge: Claim = ledge,
    least_margins: Claim = least_margins,
    most_ratio: Claim = most_ratio,
    least_reach: Claim = least_reach,
    next_terms: Claim = next_terms,
) -> Derivation:
    """The law of w, the region in which the logit falls for ever, and the next orders."""
    flow = flow_of(rates)
    vanishing, signed = joined(
        _clock(flow, pull),
        _averages(flow, pull, exponent),
        _trap(flow, pull, most_excess, ledge, least_margins, most_ratio, least_reach),
        _next(flow, pull, next_terms),
    )
    return Derivation(
        statement="Late attention, K < M",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"*Clock.* In $\sigma$: $A' = \frac dM(K\kappa + M - K)$, $B' = \frac dM(1-\kappa)$, $C' = c$ and $\nu ="
            r" -(\ln w)' = a\,c^2d\,A\,N$: z falls where $N > 0$. Let it fall from some time on: w falls, d rises.",
            r"*Excess.* $\delta = \kappa - 1 - Mw^2$ has $\delta' = -\kappa\frac{d^2}M\delta + \nu(2Mw^2 - \kappa"
            r" c^2u(R+b))$, and $R + b > 0$, for where it is 0 it grows. Since $\int w^2\nu\,d\sigma \le w^2/2$, the"
            r" positive part of $\delta$ is summable and tends to 0. So $\kappa$ is bounded, A lies between multiples"
            r" of $\sigma$, and $B \le O(1)$, since $dB < \ln\kappa$.",
            r"*w tends to 0.* Otherwise $C \sim c\sigma$; $-B \ge wC - O(1)$ and $(Ab)' = \frac dM(\kappa-1)$ leave"
            r" $\kappa \to 1 + Mw^2$ in the mean, $R \to \frac1{1+Kw^2}$, $b \to \frac{w^2}{1+Kw^2}$, and N a"
            r" positive mean, so that $\int\nu\,d\sigma$ diverges.",
            r"*Means.* Now $\limsup\kappa \le 1$. As $b \ge -O(1/A)$, $b \to 0$ and $\kappa \to 1$ in the mean, $A"
            r" \sim \sigma$. From $N \ge 0$, $\limsup R \le R^* = \frac{M-1}{M-K}$, and $\frac{d\ln C}{d\ln A} ="
            r" \frac{M}{(K\kappa+M-K)R}$, so that $cA = dC/R$ grows like a power of A. The fall of $\ln w$ over $\ln"
            r" A$ is $\frac{aM}{K\kappa+M-K}(cA)^2N$, and adds up to $O(\ln A)$, because $w = C/(RA)$ and C rises."
            r" Hence N is summable over $\ln A$, and $R \to R^*$ in the mean; $\liminf R \ge 1$, from $R'$. So $w ="
            r" A^{-\alpha+o(1)}$, $\alpha = 1 - 1/R^*$.",
            r"*A constant.* Then $w^2$ is summable over $\ln A$, with it $(\kappa-1)^+$, b, $|\kappa-1|$ and $|R^* -"
            r" R|$. So $CA^{\alpha-1}$ and $wA^\alpha$ tend to positive constants; $\ln t \sim A$.",
            r"*A trap.* Let (1) $N \ge 0$, (2) $u\delta \le M$, (3) $R + b \ge 1 + \frac{K-1}{2M}$, (4) $u \ge M +"
            r" 1$ and $u \ge 3K$, (5) $aMd^4C^2 \ge \frac94\bar R^2$, $\bar R$ a bound of R at this w. All five then"
            r" hold for ever: (4) and (5) because d, A, C rise and w falls. At $N = 0$: $\frac{MA}{(K-1)d}N' ="
            r" K\kappa^2 + 2(M-K)\kappa - (M-K) - u\kappa\delta > 0$, for $\kappa \ge 1$ by (2), below by (3) and"
            r" (4). Above (2): $(u\delta)' \le 0$ by (4). At (3): $(R+b)' > 0$ by $N \ge 0$ and (5).",
            r"*Next orders.* $\kappa = 1 + M(2-R^*)w^2$, $b = R^*w^2$, and R from $aE^2N = \alpha$, $E = cA$, give"
            r" $-\frac{d\ln w}{d\ln A}$ to first order in $w^2$ and $1/(aE^2)$.",
        ),
        scope="all K < M, all rates and any number of distinct tokens, where the logit falls from some time on; the"
        " trap suffices for that",
        sizes={},
        prose=(*AVERAGES, *EXIT),
    )


@dataclass(frozen=True)
class Flow:
    """Derivatives in sigma, as functions of A, w, kappa, R, b."""

    A: sp.Expr
    B: sp.Expr
    C: sp.Expr
    w: sp.Expr

    @property
    def R(self) -> sp.Expr:
        return R * (self.C / (R * W * A) - self.A / A - self.w / W)

    @property
    def b(self) -> sp.Expr:
        return -(self.B + LEAD * self.A) / A

    @property
    def kappa(self) -> sp.Expr:
        """kappa (d B + c C)'."""
        w, b_, c_ = sp.symbols("w B C", positive=True)
        gap = (b_ + w * c_) / sp.sqrt(1 + w**2)
        change = sp.diff(gap, w) * self.w + sp.diff(gap, b_) * self.B + sp.diff(gap, c_) * self.C
        return KAPPA * change.subs({b_: -LEAD * A, c_: R * W * A})

    def of(self, expression: sp.Expr) -> sp.Expr:
        """The derivative of a function of the five."""
        pairs = ((A, self.A), (W, self.w), (KAPPA, self.kappa), (R, self.R), (LEAD, self.b))
        return sum((sp.diff(expression, symbol) * change for symbol, change in pairs), sp.Integer(0))


_D = 1 / sp.sqrt(1 + W**2)
_C = W * _D
_U = _D * A
_DELTA = KAPPA - 1 - M_ * W**2
_CLASSES = K_ * KAPPA + M_ - K_


def flow_of(rates: Claim) -> Flow:
    """Lemma 1's rates over eta_Y M q/K, with p = kappa q; ln w moves eta_Y M a/(eta_Z K) times as fast as z."""
    found = rates(M_, K_, _C, _D, A, -LEAD * A, R * W * A)
    dA, dB, dC, dz = (sp.sympify(entry).subs(P, KAPPA * Q) for entry in found)
    over = K_ / (ETA_Y * M_ * Q)
    clocked = (dA * over, dB * over, dC * over, W * SPEED * dz / ETA_Z / Q)
    a, b, c, w = (sp.cancel(sp.expand(entry)) for entry in clocked)
    return Flow(a, b, c, w)


def _fall(pull: Claim) -> sp.Expr:
    """nu = -(ln w)'."""
    return SPEED * _C**2 * _D * A * pull(M_, K_, KAPPA, R, LEAD)


def _clock(flow: Flow, pull: Claim) -> Vanishing:
    return {
        "clock: A'": flow.A - _D * _CLASSES / M_,
        "clock: B'": flow.B - _D * (1 - KAPPA) / M_,
        "clock: C'": flow.C - _C,
        "clock: fall of ln w": flow.w / W + _fall(pull),
    }


def _along(pull: Claim) -> sp.Expr:
    """(R + b)' over d/(M A)."""
    fall = SPEED * M_ * R * (_C * A) ** 2 * pull(M_, K_, KAPPA, R, LEAD)
    return (M_ - 1 + KAPPA) - (R + LEAD) * _CLASSES + fall


def _averages(flow: Flow, pull: Claim, exponent: Claim) -> tuple[Vanishing, Signed]:
    nu = _fall(pull)
    rest = (M_ - 1) / (M_ - K_)
    stays = 1 + M_ * W**2  # kappa where w would stay
    # Means of A', b A' and R A' there, by the clock: -B' = d w^2 = c w, C' = c.
    slope = _D * (K_ * stays + M_ - K_) / M_
    ratio, lead = _C / (W * slope), W * _C / slope
    least = pull(M_, K_, stays, ratio, lead)
    over = flow.A / A  # (ln A)'
    reach = SPEED * M_ / _CLASSES * (_C * A) ** 2 * pull(M_, K_, KAPPA, R, LEAD)
    return {
        "averages: kappa's excess": flow.of(_DELTA)
        + KAPPA * _D**2 / M_ * _DELTA
        - nu * (2 * M_ * W**2 - KAPPA * _C**2 * _U * (R + LEAD)),
        "averages: change of R + b": (flow.R + flow.b) * M_ * A / _D - _along(pull),
        "averages: A b": flow.of(A * LEAD) - _D * (KAPPA - 1) / M_,
        "averages: C over A": flow.C / (R * W * A) / over - M_ / _CLASSES / R,
        "averages: fall over ln A": nu / over - reach,
        "averages: change of R over ln A": flow.R / over - (M_ / _CLASSES - R + R * reach),
        "averages: d B + c C": -_D * LEAD * A + _C * R * W * A - _U * (W**2 * R - LEAD),
        "averages: R where w would stay": ratio - 1 / (1 + K_ * W**2),
        "averages: b where w would stay": lead - W**2 / (1 + K_ * W**2),
        "averages: N at rest": pull(M_, K_, sp.Integer(1), rest, sp.Integer(0)),
        "averages: exponent": 1 - 1 / rest - exponent(M_, K_),
    }, {
        "averages: R + b grows at 0": (sp.expand(_along(pull).subs(LEAD, -R).subs(_SIZES)), "> 0"),
        "averages: w cannot stay": (least.subs(_SIZES), "> 0"),
        "averages: c A grows": ((1 - exponent(M_, K_)).subs(_SIZES), "> 0"),
        "averages: w falls": (sp.sympify(exponent(M_, K_)).subs(_SIZES), "> 0"),
    }


def _trap(
    flow: Flow,
    pull: Claim,
    most_excess: Claim,
    ledge: Claim,
    least_margins: Claim,
    most_ratio: Claim,
    least_reach: Claim,
) -> tuple[Vanishing, Signed]:
    found = joined(
        _excess(flow, pull, most_excess, least_margins),
        _logit(flow, pull, most_excess, ledge, least_margins),
        _ledge(pull, ledge, least_margins, least_reach),
    )
    y = sp.Symbol("y", nonnegative=True)
    first, _ = least_margins(M_, K_)
    return joined(
        found,
        (
            {
                "trap: (4), the margin rises": flow.of(_U) - _D**2 * _CLASSES / M_ - _C**2 * _U * _fall(pull),
                # (5): R = d^2 (R + b + ln(kappa)/u), kappa < 2 + M y, and R + b at N = 0 is the largest.
                "trap: (5), c A by C": _C * A - _D * (R * W * A) / R,
                "trap: (5), the bound of R": most_ratio(M_, K_, y)
                - pull(M_, K_, 2 + M_ * y, 0, 0) / (M_ - K_)
                - (1 + M_ * y) / first,
            },
            {
                "trap: (5), the excess is below 1": (of_sizes(first + LESS - most_excess(M_)), "> 0"),
                "trap: (5), ln(2 + y) < 1 + y at 0": (1 - sp.log(2), "> 0"),
                "trap: (5), ln(2 + y) < 1 + y above": (sp.factor(1 - 1 / (2 + y)), "> 0"),
            },
        ),
    )


def _excess(flow: Flow, pull: Claim, most_excess: Claim, least_margins: Claim) -> tuple[Vanishing, Signed]:
    """Condition (2): (u delta)' = (d^2 delta/M) settling + c^2 u nu pushed, neither positive above the bound."""
    u, excess, y, beyond = sp.symbols("u Z y h", nonnegative=True)
    settling = _CLASSES - u * KAPPA
    pushed = excess / u + 2 * M_ * (1 + y) - u * KAPPA * (R + LEAD)
    at = {KAPPA: 1 + M_ * y + excess / u, LEAD: 1 + beyond - R}  # R + b >= 1

    def above(expression: sp.Expr) -> sp.Expr:
        """At u delta = most_excess + e, u = least_margins + f."""
        placed = sp.expand(expression.subs(at)).subs(excess, most_excess(M_) + MORE)
        return of_sizes(placed.subs(u, least_margins(M_, K_)[0] + LESS))

    return {
        "trap: (2), change of the excess": flow.of(_U * _DELTA)
        - _D**2 * _DELTA / M_ * settling.subs(u, _U)
        - _C**2 * _U * _fall(pull) * pushed.subs({excess: _U * _DELTA, u: _U, y: W**2}),
    }, {
        "trap: (2), a larger excess settles": (above(settling), "<= 0"),
        "trap: (2), a larger excess is not pushed up": (above(pushed), "<= 0"),
    }


def _logit(flow: Flow, pull: Claim, most_excess: Claim, ledge: Claim, least_margins: Claim) -> tuple[Vanishing, Signed]:
    """Condition (1): where N = 0, N' > 0, as kappa is on the ledge's foot or above."""
    free, half = M_ - K_, sp.Rational(1, 2)
    bend = K_ * KAPPA**2 + 2 * free * KAPPA - free
    foot = _foot(ledge)
    no_fall = {LEAD: (K_ - 1) * KAPPA / free + 1 - R}
    turned = flow.of(sp.expand(pull(M_, K_, KAPPA, R, LEAD))).subs(no_fall)
    _, second = least_margins(M_, K_)
    return {
        "trap: (1), N' where N vanishes": turned * M_ * A / ((K_ - 1) * _D) - (bend - _U * KAPPA * _DELTA),
        "trap: (1), N vanishes there": pull(M_, K_, KAPPA, R, no_fall[LEAD]),
        "trap: (1), N on the ledge": pull(M_, K_, KAPPA, R, ledge(M_, K_) - R) - (K_ - 1) * (KAPPA - foot),
    }, {
        "trap: (1), kappa above 1": (of_sizes((bend - KAPPA * most_excess(M_)).subs(KAPPA, 1 + MORE)), ">= 0"),
        "trap: (1), kappa from 1/2 to 1": (of_sizes(bend.subs(KAPPA, half + MORE)), "> 0"),
        # Below 1/2 it is bend + u kappa (1 - kappa) at least, which rises.
        "trap: (1), the bend rises": (of_sizes(sp.diff(bend, KAPPA)), "> 0"),
        "trap: (1), kappa (1 - kappa) rises": (sp.diff(KAPPA * (1 - KAPPA), KAPPA).subs(KAPPA, half - LESS), ">= 0"),
        "trap: (1), kappa at the foot": (
            of_sizes((bend + (second + MORE) * KAPPA * (1 - KAPPA)).subs(KAPPA, foot)),
            "> 0",
        ),
        "trap: (1), the foot is positive": (of_sizes(foot), "> 0"),
        "trap: (1), the foot is below 1/2": (of_sizes(half - foot), "> 0"),
    }


def _ledge(pull: Claim, ledge: Claim, least_margins: Claim, least_reach: Claim) -> tuple[Vanishing, Signed]:
    """Condition (3): on the ledge (R + b)' > 0, at the foot and, since it is linear in kappa and rises, above."""
    low, foot = sp.Rational(2, 3), _foot(ledge)
    along = sp.expand(_along(pull).subs(LEAD, ledge(M_, K_) - R))
    # a M R (c A)^2 >= (2/3) a M d^2 (c A)^2.
    slope = sp.diff(along, KAPPA).subs(SPEED, low * (least_reach() + MORE) / (M_ * R * (_C * A) ** 2))
    _, second = least_margins(M_, K_)
    return {
        "trap: (3), R by R + b": R - _D**2 * (R + LEAD + (W**2 * R - LEAD)),
        "trap: (3), linear": sp.diff(along, KAPPA, 2),
    }, {
        "trap: (3), at the foot": (of_sizes(along.subs(KAPPA, foot)), "> 0"),
        "trap: (3), above it": (of_sizes(slope), "> 0"),
        # R >= (2/3) d^2: ln kappa >= -ln(1/foot) >= -ln(2 (K + 1)) >= -K, and u >= 3 K.
        "trap: (3), 1/foot": (of_sizes(2 * (K_ + 1) - 1 / foot), ">= 0"),
        "trap: (3), ln(2 (K + 1)) < K at 2": (2 - sp.log(6), "> 0"),
        "trap: (3), ln(2 (K + 1)) < K above": (of_sizes(1 - 1 / (K_ + 1)), "> 0"),
        "trap: (3), R": (of_sizes(ledge(M_, K_) - K_ / (second + MORE) - low), ">= 0"),
    }


def _foot(ledge: Claim) -> sp.Expr:
    """kappa where N = 0 on the ledge."""
    return sp.cancel((M_ - K_) * (sp.sympify(ledge(M_, K_)) - 1) / (K_ - 1))


def of_sizes(expression: sp.Expr) -> sp.Expr:
    """Insert sizes K and M in a form in which each term shows its sign."""
    return sp.sympify(expression).subs(_SIZES)


def _next(flow: Flow, pull: Claim, next_terms: Claim) -> Vanishing:
    """First order in w^2 = eps y and 1/(a (c A)^2) = eps s of -d ln w/d ln A, with the slow values of kappa, b, R."""
    eps, y, slack = sp.symbols("epsilon y s", positive=True)
    free = M_ - K_
    rest = (M_ - 1) / free
    alpha = 1 - 1 / rest
    kappa1, lead1 = M_ * (2 - rest), rest
    # N is alpha slack/rho to leading order: what w^2 adds must cancel.
    r1, r2 = sp.symbols("r_1 r_2")
    small = pull(M_, K_, 1 + kappa1 * y, rest - r1 * y - r2 * slack, lead1 * y)
    found = sp.solve([sp.diff(small, y), sp.diff(small, slack) - alpha], [r1, r2], dict=True)[0]
    # w^2 falls like -2 alpha, 1/(c A)^2 like -2 (1 - alpha), over ln A.
    change = 2 * alpha * found[r1] * y + 2 * (1 - alpha) * found[r2] * slack
    ratio = rest - eps * (found[r1] * y + found[r2] * slack)
    classes = M_ / (K_ * (1 + eps * kappa1 * y) + free)
    fall = -(classes - ratio - eps * change) / ratio
    steady = flow.of(sp.log(KAPPA)) * M_ / _D**2
    leading = next_exponent(M_, K_, 0, 0, next_terms)
    beyond = next_exponent(M_, K_, y, slack, next_terms) - leading
    quasi = (1 + M_ * W**2 - KAPPA) - M_ * W**2 * alpha * rest  # c^2 u (R + b) nu = w^2 R alpha, to leading order
    return {
        "next: change of ln kappa": steady - (1 + M_ * W**2 - KAPPA) + M_ * W**2 * _U * (R + LEAD) * _fall(pull),
        "next: kappa stands": sp.expand(quasi.subs(KAPPA, 1 + kappa1 * W**2)),
        "next: the leading order": fall.subs(eps, 0) - leading,
        "next: the next order": sp.diff(fall, eps).subs(eps, 0) - beyond,
    }
