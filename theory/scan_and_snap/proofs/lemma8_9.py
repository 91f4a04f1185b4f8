"""Lemmas 8 and 9 with Theorem 1 (b): the two stages of h and gamma, with constants.

The paper gives orders. Here each order is an inequality with its constant, from (45) and gamma of Theorem 1, in the
margin x = M h and the class time tau = eta_Y t (t counts the visits of the class). The crossing of exp(x) and
(M - 1) x separates the stages.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, theorem1
from theory.symbolic import Claim, Derivation, joined

X, TAU = sp.symbols("x tau", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def early_bounds(m: sp.Expr, tau: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """While exp(x) <= (M - 1) x: (M tau + 1)/2 <= (M - 1) M h <= M tau + 1. Returns the bounds of M h."""
    return (m * tau + 1) / (2 * (m - 1)), (m * tau + 1) / (m - 1)


def late_bounds(m: sp.Expr, tau: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """While exp(x) >= (M - 1) x: (M tau + 1)/2 <= exp(M h) <= M tau + 1. Returns the bounds of exp(M h)."""
    return (m * tau + 1) / 2, m * tau + 1


def gamma_early(m: sp.Expr, h: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Upper bound of gamma at all times, and a lower bound while exp(M h) <= M - 1."""
    return (m - 1) ** 2 * h / m, (m - 1) * h / 2


def gamma_late(m: sp.Expr, x: sp.Expr) -> sp.Expr:
    """Upper bound of gamma at all times; its half is a lower bound while exp(x) >= M - 1."""
    return (m - 1) ** 2 / m * x * sp.exp(-x)


def time_bound(tau: sp.Expr) -> sp.Expr:
    """gamma is at most this at all times."""
    return tau


def late_bound(m: sp.Expr, tau: sp.Expr) -> sp.Expr:
    """gamma is at most this from the upper crossing on; 2 is the least constant for all M."""
    return 2 * ((m - 1) / m) ** 2 * sp.log(m * tau) / tau


def crossing_range() -> tuple[sp.Expr, sp.Expr]:
    """(51): c' = M^omega_1/ln M lies between these for every M >= 4."""
    return sp.Rational(1, 2), sp.Integer(2)


def upper_excess(m: sp.Expr, constant: sp.Expr) -> sp.Expr:
    """omega_1 by c'."""
    return (sp.log(sp.log(m)) + sp.log(constant)) / sp.log(m)


def lower_excess(m: sp.Expr) -> sp.Expr:
    """omega_0 for M -> infinity; the paper has the order 1/(M^0.99 ln M)."""
    return 2 / (m * sp.log(m))


def derive(
    *,
    crossing_range: Claim = crossing_range,
    upper_excess: Claim = upper_excess,
    lower_excess: Claim = lower_excess,
    early_bounds: Claim = early_bounds,
    late_bounds: Claim = late_bounds,
    gamma_early: Claim = gamma_early,
    gamma_late: Claim = gamma_late,
    time_bound: Claim = time_bound,
    late_bound: Claim = late_bound,
) -> Derivation:
    """Two crossings (Lemma 8), two stages of h and gamma (Lemma 9), and the corrected Theorem 1 (b)."""
    vanishing, signed = joined(
        _crossings(),
        _excesses(crossing_range, upper_excess, lower_excess),
        ({}, _stages(early_bounds, late_bounds)),
        _gamma(gamma_early, gamma_late, time_bound),
        _late_order(),
        _printed_range(late_bound),
    )
    return Derivation(
        statement="Lemmas 8 and 9",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Lemma 8: $\phi(x) = e^x - (M-1)x$ is convex, $\phi(0) = 1$ and its least value $(M-1)(1 - \ln(M-1))$, at"
            r" $x = \ln(M-1)$, is negative for $M - 1 > e$, i.e. $M \ge 4$: two zeros, and $e^x$ is the smaller between"
            r" them; for M = 2, 3 there is none.",
            r"The upper zero in terms of x: $M = 1 + e^x/x$, and $x > \ln(M-1) > 1$. With $x = (1+\omega_1)\ln M$:"
            r" $c' = M^{\omega_1}/\ln M = e^x/(M\ln M)$. As $M\ln M > \frac{e^x}{x}(x - \ln x)$, $c' < 2$ if $x > 2\ln"
            r" x$, which is so for every x. With $q = xe^{-x} \le 1/e$, $M\ln M \le \frac{e^x}{x}(1+q)(x+q)$, and $c' >"
            r" \frac12$ if $x > \frac12(1+\frac1e)(x+\frac1e)$, which is so for $x \ge 1$. So $\omega_1 ="
            r" (\ln\ln M + \ln c')/\ln M$, and $\omega_1\ln M/\ln\ln M \to 1$.",
            r"The lower zero: $(M-1)x \to 1$, at $M\tau = 2e^x - 1 \to 1$: for $\eta_Y \gg M^{-0.99}$ one step, $\tau"
            r" = \eta_Y$, is past it (Remark 3). There $M^{\omega_0} = Mx = x + e^x$, and $\omega_0 M\ln M ="
            r" (1 + e^x/x)\ln(x+e^x) \to 2$: below $M^{0.01}$, as the order $1/(M^{0.99}\ln M)$ with the constant 1 has"
            r" it, for M above about $2^{100}$.",
            r"Lemma 9: (45) is $e^x + (M-1)x = M\tau + 1$; the larger term on the left is between half the sum and"
            r" the sum.",
            r"$M\tau + 1 \ge (M-1)x + 1 + x$ gives $x \le \tau$ at all times.",
            r"$\gamma = \frac{(M-1)^2}{M}\frac{x}{M-1+e^x}$ with $M-1+e^x \ge M$ (early) or $\ge e^x$ (late), and at"
            r" most twice the"
            r" larger term: $\gamma \le (M-1)^2\tau/M^2$ at all times, hence $O(\eta_Y t/K)$ with constant 1.",
            r"Late: $e^x = M\tau + 1 - (M-1)x \le M\tau$ as soon as $(M-1)x \ge 1$, hence $x \le \ln(M\tau)$, and"
            r" $M-1+e^x \ge M\tau/2$: $\gamma \le 2\left(\frac{M-1}{M}\right)^2\frac{\ln(M\tau)}{\tau}$. The paper's"
            r" time $\tau = 2(1+\omega_1)\ln M$ lies behind the crossing, where $M\tau = 2(M-1)(1+\omega_1)\ln M - 1$."
            r" The constant 2 is the least for all M: it is reached at the crossing as $M\to\infty$.",
            r"$e^x \le M-1$ holds up to $\tau = (M-2+(M-1)\ln(M-1))/M$, which is $\ln M$ or more for $M \ge 5$ only. At"
            r" the very start $e^x = 1 > (M-1)x$: the bounds on h and $\gamma$ hold there all the same.",
            r"$O(\ln\tau/\tau)$ is not uniform in M: the late stage begins at $\tau = 2(1+\delta')\ln M$ up to $O(1/M)$"
            r" relative, where $\gamma = \frac{M-1}{M}\frac{x}{1+x} \to 1$ but $\ln\tau/\tau \to 0$.",
        ),
        scope=r"all $M > 1$ unless a step says otherwise; asymptotic claims for $M \to \infty$",
        sizes={},
        prose=(
            "a convex function with a negative least value has two zeros",
            "the upper zero: terms that vanish for M to infinity",
            "the range of c': a function with one point of rest is least, or largest, there; ln(1 + q) <= q",
            "the stages of gamma in time from those in x",
        ),
        proves=("Remark 3", "Theorem 1(b)"),
    )


def _crossings():
    """Lemma 8: zeros of phi(x) = exp(x) - (M - 1) x."""
    phi = sp.exp(X) - OTHERS * X
    lowest = sp.log(OTHERS)
    excess = sp.Symbol("a", positive=True)
    u, w = sp.Symbol("u", positive=True), sp.Symbol("w", negative=True)
    root = -w  # w = W(-u), w exp(w) = -u, on either branch of Lambert's W
    # Upper zero by x: M - 1 = exp(x)/x, and ln M = x - ln x + ln(1 + x exp(-x)). With the last term -> 0 and ln M ~ x,
    # delta' ln M / ln ln M = (x - ln M)/ln ln M -> ln x/ln x.
    log_m = X - sp.log(X)
    vanishing = {
        "phi(0) = 1": phi.subs(X, 0) - 1,
        "slope of phi at its lowest point": sp.diff(phi, X).subs(X, lowest),
        "lowest value of phi": phi.subs(X, lowest) - OTHERS * (1 - sp.log(OTHERS)),
        "M by the upper zero": phi.subs(OTHERS, sp.exp(X) / X),
        "what ln(M) neglects": sp.limit(X * sp.exp(-X), X, sp.oo),
        "ln M/x at the upper zero": sp.limit(log_m / X, X, sp.oo) - 1,
        "delta' ln M / ln x at the upper zero": sp.simplify((X - log_m) / sp.log(X)) - 1,
        # With u = 1/(M - 1): x = u exp(x), that is x = -W(-u).
        "lower zero": phi.subs(X, root).subs(OTHERS, -1 / (w * sp.exp(w))),
        "(M - 1) x at the lower zero": sp.limit(-sp.LambertW(-u) / u, u, 0) - 1,
        # (45) at the lower zero, where (M - 1) x = exp(x): M tau = 2 exp(x) - 1 -> 1.
        "M tau at the lower zero": sp.limit(2 * sp.exp(-sp.LambertW(-u)) - 1, u, 0) - 1,
    }
    signed = {
        "phi is convex": (sp.diff(phi, X, 2), "> 0"),
        "lowest value < 0 for M - 1 > e": (sp.expand_log(1 - sp.log(sp.E * sp.exp(excess))), "< 0"),
        "lowest value > 0 for M = 3": (1 - sp.log(2), "> 0"),
        "lowest value > 0 for M = 2": (sp.Integer(1) - sp.log(1), "> 0"),
    }
    return vanishing, signed


def _excesses(crossing_range, upper_excess, lower_excess):
    """Lemma 8: c' at the upper zero x > 1, where M = 1 + exp(x)/x; omega_0 at the lower one, x -> 0."""
    least, most = crossing_range()
    over, c, size = sp.Symbol("a", positive=True), sp.Symbol("c", positive=True), sp.Symbol("M", positive=True)
    # most (x - ln x) - x has one point of rest; q = x exp(-x), at most 1/e, in M ln M <= exp(x)/x (1 + q)(x + q).
    room, rest = most * (X - sp.log(X)) - X, most / (most - 1)
    q, highest = X * sp.exp(-X), sp.exp(-1)
    below = X - least * (1 + highest) * (X + highest)
    own = (1 + sp.exp(X) / X) * sp.log(X + sp.exp(X))  # omega_0 M ln M, as M x = x + exp(x)
    claimed = lower_excess(size) * size * sp.log(size)
    return {
        "c': M^omega_1 = c' ln M": sp.simplify(sp.exp(upper_excess(size, c) * sp.log(size)) - c * sp.log(size)),
        "c': point of rest": sp.diff(room, X).subs(X, rest),
        "c': q is largest at x = 1": sp.diff(q, X).subs(X, 1),
        "c': q there": q.subs(X, 1) - highest,
        "omega_0: M x at the lower zero": (size * X).subs(size, 1 + sp.exp(X) / X) - (X + sp.exp(X)),
        "omega_0: its M ln M, M -> infinity": sp.limit(own, X, 0) - sp.simplify(claimed),
    }, {
        "c': room below its upper end": (sp.expand_log(room.subs(X, rest)), "> 0"),
        "c': its least value is there": (sp.diff(room, X, 2), "> 0"),
        "c': q falls from x = 1 on": (sp.diff(q, X).subs(X, 1 + over), "< 0"),
        "c': above its lower end": (sp.expand(below.subs(X, 1 + over)), "> 0"),
    }


def _stages(early_bounds, late_bounds):
    """Lemma 9: bounds on h in both stages, as differences that are non-negative.

    Early is (M - 1) x = exp(x) + slack, late is exp(x) = (M - 1) x + slack, and M tau is eliminated by (45).
    """
    slack, power = sp.Symbol("s", nonnegative=True), sp.Symbol("y", positive=True)  # y = exp(x)
    time = sp.solve(lemma6.implicit(M, X / M, 1, TAU), TAU)[0].subs(sp.exp(X), power)
    early = {X: (power + slack) / OTHERS}
    late = {power: OTHERS * X + slack}
    low, high = (bound.subs(TAU, time) for bound in early_bounds(M, TAU))
    low_late, high_late = (bound.subs(TAU, time) for bound in late_bounds(M, TAU))
    above = sp.Symbol("a", nonnegative=True)  # exp(x) = 1 + x + a
    return {
        "early: lower bound of M h": (sp.expand((X - low).subs(early)), ">= 0"),
        "early: upper bound of M h": (sp.expand((high - X).subs(early)), ">= 0"),
        "late: lower bound of exp(M h)": (sp.expand((power - low_late).subs(late)), ">= 0"),
        "late: upper bound of exp(M h)": (sp.expand((high_late - power).subs(late)), ">= 0"),
        "M h <= eta_Y t at all times": (sp.expand((M * (time - X)).subs(power, 1 + X + above)), ">= 0"),
    }


def _gamma(gamma_early, gamma_late, time_bound):
    """Upper bounds of gamma, and how much of each is left in its stage."""
    gamma = theorem1.gamma(M, X / M)
    power, slack = sp.Symbol("y", positive=True), sp.Symbol("s", nonnegative=True)
    by_power = gamma.subs(sp.exp(X), power)
    upper, lower = gamma_early(M, X / M)
    tail = gamma_late(M, X).subs(sp.exp(-X), 1 / power)
    # exp(x) = 1 + s; M - 1 = exp(x) + s (early); exp(x) = M - 1 + s (late).
    signed = {
        "gamma <= (M - 1)^2 h/M": ((upper / by_power - 1).subs(power, 1 + slack), ">= 0"),
        "early: gamma >= (M - 1) h/2": ((by_power / lower - 1).subs(OTHERS, power + slack), ">= 0"),
        "gamma <= (M - 1)^2/M x exp(-x)": (tail / by_power - 1, ">= 0"),
        # x <= tau.
        "gamma <= tau": (sp.factor(time_bound(TAU) - upper.subs(X, TAU)), ">= 0"),
        "late: at least half of it": ((2 * by_power / tail - 1).subs(power, OTHERS + slack), ">= 0"),
    }
    vanishing = {"gamma/tau at t = 0": sp.limit(gamma / X, X, 0) - OTHERS**2 / M**2}
    return vanishing, signed


def _late_order():
    """gamma at the beginning of the late stage, the upper crossing exp(x) = (M - 1) x.

    It tends to 1 for M -> infinity, while ln(tau)/tau tends to 0: Theorem 1 (b) needs ln(M tau).
    """
    size = 1 + sp.exp(X) / X
    tau = (sp.exp(X) + (size - 1) * X - 1) / size
    height = (size - 1) / size * X / (1 + X)
    return {
        "time of the crossing": lemma6.implicit(size, X / size, 1, tau),
        "gamma at the crossing": theorem1.gamma(size, X / size) - height,
        "gamma at the crossing, M -> infinity": sp.limit(sp.simplify(height), X, sp.oo) - 1,
        "tau/x at the crossing, M -> infinity": sp.limit(sp.simplify(tau / X), X, sp.oo) - 2,
        "ln(tau)/tau, M -> infinity": sp.limit(sp.log(TAU) / TAU, TAU, sp.oo),
    }


def _printed_range(late_bound):
    """Lemma 9's second stage as printed, tau >= 2 (1 + omega_1) ln M, and the least constant there."""
    power, slack = sp.Symbol("y", positive=True), sp.Symbol("s", nonnegative=True)
    time = sp.solve(lemma6.implicit(M, X / M, 1, TAU), TAU)[0].subs(sp.exp(X), power)
    # From the upper crossing on: exp(x) = (M - 1) x + s.
    constant = sp.simplify(late_bound(M, TAU) * TAU / sp.log(M * TAU) * M**2 / OTHERS**2)
    room = constant * (OTHERS + power) - M * time
    size = 1 + sp.exp(X) / X
    scaled = 2 * sp.exp(X) - 1  # M tau at the crossing
    at_crossing = theorem1.gamma(size, X / size) * scaled / size / sp.log(scaled)
    any_time = sp.Symbol("w", positive=True)  # (1 + omega_1) ln M, which is x at the crossing
    return {
        "late: M tau at the crossing": scaled - lemma6.implicit(size, X / size, 1, 0),
        "late: constant reached at the crossing, M -> infinity": sp.limit(at_crossing, X, sp.oo) - constant,
        "late: M tau - exp(x)": M * time - power - (OTHERS * X - 1),
    }, {
        "late: M - 1 + exp(x) >= M tau over the constant": (
            sp.expand(room.subs(power, OTHERS * X + slack)),
            "> 0",
        ),
        "late: the printed time lies behind the crossing": (2 * M * any_time - (2 * OTHERS * any_time - 1), "> 0"),
    }
