"""Lemmas 10 to 12, Remark 4 and the sigma of Corollary 1, for randomly drawn classes instead of visits in turn.

N_n is the number of visits of class n in N steps and Nbar = ceil(N/K) its mean, rounded up. h and D = 1/G = M - 1 +
exp(M h) come from Lemma 6, at s visits of a class. `lemma18` proves Hoeffding's inequality.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, lemma18
from theory.symbolic import Claim, Derivation, Scalar, joined

X, ETA, N, K = sp.symbols("x eta_Y N K", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1
D = OTHERS + sp.exp(X)
VISITS = (sp.exp(X) + OTHERS * X - 1) / (M * ETA)  # (45)


def radius(n: sp.Expr, logarithm: sp.Expr) -> sp.Expr:
    """(58): the deviation of N_n from N P(n) with probability 1 - delta, without the 1 of the ceiling."""
    return sp.sqrt(n * logarithm / 2)


def needed() -> sp.Expr:
    """The second "<" of (58) holds exactly where N ln(2/delta) is larger than this."""
    return 6 + 4 * sp.sqrt(2)


def growth_gap(gap: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """(61): |h(N_n) - h(Nbar)|/h(Nbar) for |N_n - Nbar| = gap; the paper's order with the constant 1."""
    return gap / mean


def log_residual_gap(m: sp.Expr, eta: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """|ln G(N_n) - ln G(Nbar)|, a form of (62) for both signs of N_n - Nbar."""
    return m * eta * gap / (4 * (m - 1))


def residual_gap(eta: sp.Expr, gap: Scalar) -> sp.Expr:
    """(62) with a bound that always holds: |G(N_n)/G(Nbar) - 1| <= eta_Y Delta. Printed: a third of it."""
    return eta * gap


def late_elasticity() -> sp.Expr:
    """From the upper crossing of Lemma 8 on, |d ln G/d ln s| is at most this: sigma' <~ Delta/Nbar."""
    return sp.Integer(2)


def bernstein(variance: sp.Expr, logarithm: sp.Expr) -> sp.Expr:
    """Bernstein's bound: a sum of Bernoulli variables exceeds it with probability <= exp(-logarithm), on each side."""
    return logarithm / 3 + sp.sqrt(logarithm**2 / 9 + 2 * variance * logarithm)


def relative_bound(k: sp.Expr, n: sp.Expr, logarithm: sp.Expr) -> sp.Expr:
    """Lemma 12 by Bernstein's inequality: |theta_n|, with the logarithm ln(2 K/delta)."""
    return sp.sqrt(2 * k * logarithm / n) + 2 * k * logarithm / (3 * n)


def rounded_limit() -> sp.Expr:
    """Remark 4 with Nbar = ceil(N/K): for every delta up to this."""
    return sp.Rational(1, 2)


def rounded_delta(k: sp.Expr) -> sp.Expr:
    """Lemma 12 with Nbar = ceil(N/K): for every delta up to this, 0.238 at K = 2 and above 1 from K = 4 on."""
    return k / (1 + sp.exp(4 / k))


def rounded_logarithm() -> sp.Expr:
    """Lemma 12 by Bernstein's inequality with Nbar = ceil(N/K): where ln(2 K/delta) is at least this."""
    return sp.Rational(36, 11)


def derive(
    *,
    relative_bound: Claim = relative_bound,
    rounded_limit: Claim = rounded_limit,
    rounded_delta: Claim = rounded_delta,
    rounded_logarithm: Claim = rounded_logarithm,
    radius: Claim = radius,
    needed: Claim = needed,
    growth_gap: Claim = growth_gap,
    log_residual_gap: Claim = log_residual_gap,
    residual_gap: Claim = residual_gap,
    late_elasticity: Claim = late_elasticity,
    bernstein: Claim = bernstein,
) -> Derivation:
    """Lemma 10 from Hoeffding, Lemma 11 from the concavity of h and the slope of D, Lemma 12 from both."""
    vanishing, signed = joined(
        _visits(radius, needed),
        _growth(growth_gap),
        _residual(log_residual_gap, residual_gap, late_elasticity),
        _bernstein(bernstein),
        _rounded(relative_bound, rounded_limit, rounded_delta, rounded_logarithm),
    )
    return Derivation(
        statement="Lemmas 10, 11 and 12",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Lemma 10: Hoeffding (see Lemma 18) for the N draws, and 1 for the ceiling. With $a = N\ln(2/\delta)$ the"
            r" second inequality is $\sqrt a(1 - 1/\sqrt2) > 1$, that is $a > 6 + 4\sqrt2 = 11.66$.",
            r"(61): $h/s$ falls, since $h - s\dot h = \frac{xe^x - e^x + 1}{MD} \ge 0$. Hence $h(\bar N+\Delta) \le"
            r" (1+\Delta/\bar N)h(\bar N)$ and $h(\bar N-\Delta) \ge (1-\Delta/\bar N)h(\bar N)$: (61) with the"
            r" constant 1.",
            r"(62): $\frac{d\ln D}{ds} = M\eta_Y\frac{e^x}{D^2}$ and $D^2 - 4(M-1)e^x = (e^x - (M-1))^2$: at most"
            r" $\frac{M\eta_Y}{4(M-1)}$, so that $|\ln G(N_n) - \ln G(\bar N)| \le \frac{M\eta_Y\Delta}{4(M-1)}$.",
            r"For $N_n > \bar N$ this gives $\sigma' \le 1 - e^{-\eta_Y\Delta/3} \le \eta_Y\Delta/3$ if $M \ge 4$. For"
            r" $N_n < \bar N$, $\sigma' = (D(\bar N) - D(N_n))/D(N_n)$ with $\dot D = M\eta_Y e^x/D < M\eta_Y$ and $D"
            r" \ge M$: $\sigma' \le \eta_Y\Delta$, and the printed third of it fails: $M = 1000$, $\eta_Y = \frac12$,"
            r" $\bar N = 25$, $\Delta = 18$ ($N = 100$, $K = 4$, $\delta = 0.05$) has $\sigma' > 3.9$ against 3.",
            r"Late, $e^x \ge (M-1)x$ makes $M\eta_Y s \le 2e^x$, so that $\frac{d\ln D}{d\ln s} \le 2e^{2x}/D^2 < 2$.",
            r"Lemma 12: $\theta_n = h(N_n)/h(\bar N) - 1$, by (61) at most $|N_n/\bar N - 1|$, and Lemma 10 for each of"
            r" the K classes with $\delta/K$ gives $\frac{K}{\sqrt N}\sqrt{\frac12\ln\frac{2K}{\delta}}$.",
            r"A visit is rare, with variance $\frac1K(1-\frac1K)$: Bernstein's inequality, from $\psi(\lambda) \le"
            r" p\frac{\lambda^2/2}{1-\lambda/3}$ at $\lambda = a/(v + a/3)$, gives $|\theta_n| \le"
            r" \sqrt{\frac{2K\ln(2K/\delta)}{N}} + \frac{2K\ln(2K/\delta)}{3N}$, smaller by $\sqrt{K}/2$ for large N.",
            r"$\bar N = \lceil N/K\rceil = N/K + e$, $0 \le e < 1$. Remark 4 compares integers: $|N_n - \bar N| >"
            r" \Delta$ is $\ge \Delta+1$, so that $|N_n - N/K| > \Delta$, of probability $2\delta^2$ at most.",
            r"Lemma 12: with $r = \sqrt{N\ln(K/\delta)}$ its bound allows $N_n$ a distance $R = rK\bar N/N = r + erK/N$"
            r" from $\bar N$. Above, that is more than r from $N/K$. Below, nothing is if $rK \ge N$; otherwise it is"
            r" at least $R - e \ge r - 1$, and $e^{-2(r-1)^2/N} \le (\delta/K)^2e^{4r/N} \le (\delta/K)^2e^{4/K}$."
            r" Together at most $\delta$ for $\delta \le K/(1+e^{4/K})$.",
            r"By Bernstein with $L = \ln(2K/\delta)$, $s = \sqrt{2NL/K}$, $r = s + \frac23L$: below, $r < N/K ="
            r" s^2/(2L)$ gives $s > 2L$, and r exceeds Bernstein's deviation, at most $\frac L3 + \sqrt{L^2/9 + s^2}"
            r" \le \frac L3 + s + \frac{L^2}{18s}$, by $\frac{11}{36}L$ at least: by 1 for $L \ge 36/11$.",
        ),
        scope=r"all $M > 1$ (the third for $N_n > \bar N$: $M \ge 4$), $K$, $N$, $\eta_Y$; monotone functions and"
        r" sums by the steps; with $\bar N = \lceil N/K\rceil$ as printed: Remark 4 for $\delta \le \frac12$, Lemma 12"
        r" for $\delta \le 0.23$, by Bernstein for $\delta \le 0.15$; without the ceiling: all $\delta$",
        sizes={},
        prose=(
            "what is monotone has its extremes at the ends",
            "a sum of steps is at most its number times the largest",
            "a probability for each of the K classes, added up",
        ),
        proves=("Corollary 1", "Remark 4"),
    )


def _visits(radius, needed):
    logarithm, over = sp.symbols("L a", positive=True)
    hoeffding = N * lemma18.deviation(2 * sp.exp(-logarithm), N)
    root = sp.Symbol("r", positive=True)  # sqrt(N L)
    edge = sp.sqrt(needed())
    slack = root * (1 - 1 / sp.sqrt(2)) - 1
    vanishing = {
        "(58) from Hoeffding": sp.simplify(hoeffding - radius(N, logarithm)),
        "second < of (58): equality": sp.simplify(slack.subs(root, edge)),
    }
    signed = {
        "second < of (58): holds beyond": (sp.expand(slack.subs(root, 2 + sp.sqrt(2) + over)), "> 0"),
        "second < of (58): fails below": (sp.expand(slack.subs(root, (2 + sp.sqrt(2)) / (1 + over))), "< 0"),
    }
    return vanishing, signed


def _growth(growth_gap):
    """h(s)/s falls, so that a relative change of s changes h by no more."""
    rate = lemma6.rate(M, X / M, ETA)
    room = X * sp.exp(X) - sp.exp(X) + 1
    mean, gap = sp.symbols("Nbar Delta", positive=True)
    height = sp.Symbol("h", positive=True)
    # With h/s not rising: h(Nbar + gap) <= h (Nbar + gap)/Nbar.
    vanishing = {
        "(61): time by (45)": lemma6.implicit(M, X / M, ETA, VISITS),
        "(61): h - s h'": X / M - VISITS * rate - room / (M * D),
        "(61): room starts at 0": room.subs(X, 0),
        "(61): room grows": sp.diff(room, X) - X * sp.exp(X),
        "(61): above": height * (mean + gap) / mean - height - height * growth_gap(gap, mean),
        "(61): below": height - height * (mean - gap) / mean - height * growth_gap(gap, mean),
    }
    return vanishing, {"(61): slope of the room": (X * sp.exp(X), "> 0")}


def _residual(log_residual_gap, residual_gap, late_elasticity):
    rate = lemma6.rate(M, X / M, ETA)
    slope = sp.diff(D, X) * M * rate  # dD/ds
    gap = sp.Symbol("Delta", positive=True)
    power, slack = sp.Symbol("y", positive=True), sp.Symbol("s", nonnegative=True)
    beyond = sp.Symbol("b", nonnegative=True)
    per_visit = log_residual_gap(M, ETA, gap) / gap
    room = (per_visit - slope / D).subs(sp.exp(X), power)
    elasticity = (slope / D * VISITS).subs(sp.exp(X), power)
    late = elasticity.subs(X, (power - slack) / OTHERS)
    vanishing = {
        "slope of ln D": slope / D - M * ETA * sp.exp(X) / D**2,
        "(62): the slope of ln D and its bound": sp.factor(
            room - M * ETA * (power - OTHERS) ** 2 / (4 * OTHERS * (OTHERS + power) ** 2)
        ),
        # The bound of the slope is reached at exp(x) = M - 1.
        "(62): the slope is reached": (slope / D).subs(sp.exp(X), OTHERS) - per_visit,
        "(62): largest step of D over its least value": residual_gap(ETA, gap) - M * ETA * gap / M,
    }
    # G(7)/G(25) - 1 for M = 1000, eta_Y = 1/2, by margins that (45) puts between two numbers.
    low, high = sp.Rational(833, 100), sp.Rational(348, 100)
    at_25, at_7 = (lemma6.implicit(1000, x / 1000, sp.Rational(1, 2), s) for x, s in ((low, 25), (high, 7)))
    ratio = (999 + sp.exp(low)) / (999 + sp.exp(high)) - 1
    third = residual_gap(sp.Rational(1, 2), 18) / 3
    signed = {
        "(62): D grows by less than M eta_Y a visit": ((M * ETA - slope).subs(sp.exp(X), power), "> 0"),
        "(62): a third, N_n > Nbar and M >= 4": (sp.Rational(1, 3) - (4 + beyond) / (4 * (3 + beyond)), ">= 0"),
        "(62): a third at M = 2 and 3 is not enough for small Delta": (sp.Rational(3, 8) - sp.Rational(1, 3), "> 0"),
        "(62) as printed: M h(25) > 8.33": (at_25, "< 0"),
        "(62) as printed: M h(7) < 3.48": (at_7, "> 0"),
        "(62) as printed: fails at M = 1000": (ratio - third, "> 0"),
        "(62): holds there without the third": (residual_gap(sp.Rational(1, 2), 18) - ratio, "> 0"),
        "late: elasticity of G": (sp.factor(sp.together(late_elasticity() - late)), "> 0"),
    }
    return vanishing, signed


def _bernstein(bernstein):
    variance, logarithm = sp.symbols("v L", positive=True)
    a = sp.Symbol("a", positive=True)
    slope = a / (variance + a / 3)
    exponent = variance * slope**2 / (2 * (1 - slope / 3)) - slope * a
    reached = bernstein(variance, logarithm)
    # Relative deviation of N_n for p = 1/K, as N -> infinity.
    p = 1 / K
    leading = sp.limit(sp.simplify(bernstein(N * p, logarithm) * K / N * sp.sqrt(N)), N, sp.oo)
    hoeffding = K * sp.sqrt(logarithm / 2)
    vanishing = {
        "Bernstein: exponent at the chosen slope": exponent + a**2 / (2 * (variance + a / 3)),
        "Bernstein: the deviation for a probability": sp.expand(reached**2 - 2 * logarithm * (variance + reached / 3)),
        "Lemma 12: leading order": leading - sp.sqrt(2 * K * logarithm),
        "Lemma 12: gain over Hoeffding": sp.simplify(hoeffding / leading - sp.sqrt(K) / 2),
    }
    return vanishing, {"variance of a visit is below 1/K": (p - p * (1 - p), "> 0")}


def _rounded(relative_bound, rounded_limit, rounded_delta, rounded_logarithm):
    """Cost of Nbar = ceil(N/K) = N/K + e, e = 1/(1 + a) or 0."""
    share, mean, gap = sp.Symbol("a", positive=True), sp.Symbol("N/K", positive=True), sp.Symbol("Delta", positive=True)
    e = 1 / (1 + share)
    below = mean - (mean + e - gap - 1)  # N_n = Nbar - Delta - 1, the nearest integer outside
    least = sp.Symbol("b", nonnegative=True)
    delta = rounded_limit() / (1 + least)
    r, L, k = sp.symbols("r L K", positive=True)
    # Tails above and below r and r - 1, with 2 r^2/N = 2 L and r/N < 1/K.
    tails = k * sp.exp(-2 * L) * (1 + sp.exp(4 / k))
    room = sp.Symbol("c", positive=True)
    n = k * r * (1 + room)  # r K < N
    deviation = r * (1 + e * k / n) - e
    # Bernstein: s = 2 L + c, and the square root against its bound.
    s = 2 * L + room
    steps = k * s**2 / (2 * L)
    allowed = sp.simplify(relative_bound(k, steps, L) * steps / k)
    spare = allowed - (L / 3 + s + L**2 / (18 * s))
    return {
        "Nbar rounded: tails of Lemma 12 at the largest delta": (
            tails.subs(sp.exp(-2 * L), (rounded_delta(k) / k) ** 2) - rounded_delta(k)
        ),
        "Nbar rounded: square of the root's bound": sp.expand(
            (s + L**2 / (18 * s)) ** 2 - (L**2 / 9 + s**2) - (L**2 / (18 * s)) ** 2
        ),
        "Nbar rounded: one from where Bernstein's is used": sp.Rational(11, 36) * rounded_logarithm() - 1,
    }, {
        "Nbar rounded: an integer outside Remark 4 is outside of N/K": (sp.factor(below - gap), "> 0"),
        "Nbar rounded: Remark 4 by Hoeffding": (sp.factor(delta - 2 * delta**2), ">= 0"),
        "Nbar rounded: Lemma 12 below, r - 1 at least": (sp.factor(deviation - (r - 1)), "> 0"),
        "Nbar rounded: what Bernstein's bound has to spare": (sp.factor(spare - 11 * L / 36), "> 0"),
        "Nbar rounded: s > 2 L": (sp.factor((s**2 / (2 * L) - s) / room), "> 0"),
    }
