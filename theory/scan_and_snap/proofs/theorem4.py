"""Theorem 4, (13)-(14), (118)-(133): the accumulated speed Gamma and the growth exponent B, from (10).

Setting: one common token with equal f_n in all classes, one query, K classes with probability 1/K each. gamma comes
from Theorem 1, h from Lemma 6.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, slowdown, theorem1, theorem2
from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.indexed import index, total

ETA_Y, ETA_Z, K, X, T = sp.symbols("eta_Y eta_Z K x t", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
RHO_0, P_C = sp.symbols("rho_0 P_c", positive=True)


def accumulated(m: sp.Expr, k: sp.Expr, eta_y: sp.Expr, eta_z: sp.Expr, h: sp.Expr) -> sp.Expr:
    """(128): Gamma = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y)."""
    return eta_z * k * (m - 1) ** 2 * h**2 / (2 * eta_y)


def accumulated_by_ratio(m: sp.Expr, k: sp.Expr, nu: sp.Expr, h: sp.Expr) -> sp.Expr:
    """(131): Gamma at a margin, by nu = eta_Y/eta_Z alone."""
    return k * (m - 1) ** 2 * h**2 / (2 * nu)


def speed_constant(k: sp.Expr, norm: sp.Expr, probability: sp.Expr) -> sp.Expr:
    """C_0 = rho_0^4/((K - 1) P_c^4), where (13) prints rho_0^4/K."""
    return norm**4 / ((k - 1) * probability**4)


def start_constant(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """C_0 with which -B has the common token's speed at the start, for any M, K and equal overlaps rho."""
    return (m - 1) ** 2 * (1 + (k - 1) * rho) / ((k - 1) * rho * m * (1 + (m - 1) * rho))


def full_start_constant(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """`start_constant` in the full flow, which begins s times as fast (`slowdown`)."""
    return (m - 1) ** 2 / ((k - 1) * rho * (1 - rho) * m)


def unequal_start(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """Initial speed of the common token in two classes, over its speed by `start_constant` at rho = f_1 f_2."""
    return (1 - (first**2 + second**2) / 2) / (1 - first * second)


def exponent(total: sp.Expr, c0: sp.Expr) -> sp.Expr:
    """(14), (124) with its lower limit: B = 1/4 ln(1 + 4 Gamma/C_0). Printed: 1/4 ln(C_0 + 4 Gamma)."""
    return sp.log(1 + 4 * total / c0) / 4


def common_logit(exponent_value: sp.Expr) -> sp.Expr:
    """z of the common token, -B. (13) gives -K B, by K(K - 1) terms in its rate and K - 1 in xi."""
    return -exponent_value


def branch_gaps() -> tuple[sp.Expr, sp.Expr]:
    """How far x = M h falls short of the printed branches at their ends t0' and t0, as M -> infinity.

    (14) has ln M for x at t0' and ln(M eta_Y t/K) for x at t0; the relative error of 4 Gamma is 2/ln M times the gap.
    """
    return sp.LambertW(1), sp.log(2)


def decoder_rate_sign(m: sp.Expr, x: sp.Expr) -> sp.Expr:
    """Sign of dB/d(eta_Y) at fixed time and eta_Z, with x = M h: negative late (insight (b) after (133))."""
    return (m - 1) * x - (x - 2) * sp.exp(x) - 2


def late_margin(k: sp.Expr, nu: sp.Expr) -> sp.Expr:
    """Least ln(M eta_Y t/K) with 4 Gamma > 1, up to a factor M/(M - 1): the condition of (132), nu = eta_Y/eta_Z."""
    return sp.sqrt(nu / (2 * k))


def derive(
    *,
    accumulated: Claim = accumulated,
    accumulated_by_ratio: Claim = accumulated_by_ratio,
    speed_constant: Claim = speed_constant,
    start_constant: Claim = start_constant,
    full_start_constant: Claim = full_start_constant,
    unequal_start: Claim = unequal_start,
    exponent: Claim = exponent,
    common_logit: Claim = common_logit,
    branch_gaps: Claim = branch_gaps,
    decoder_rate_sign: Claim = decoder_rate_sign,
    late_margin: Claim = late_margin,
) -> Derivation:
    """Gamma by change of variable, C_0 from Theorems 1 and 2, B from the ODE, the limits of 4 Gamma, their errors."""
    m = OTHERS + 1
    h = sp.Symbol("h", positive=True)
    # dt = K dh / (dh/d(t/K)).
    by_h = sp.expand(ETA_Z * theorem1.gamma(m, h) * K / lemma6.rate(m, h, ETA_Y))
    integral = sp.integrate(sp.simplify(by_h), (h, 0, h))
    vanishing, signed = joined(
        {"Gamma": integral - accumulated(m, K, ETA_Y, ETA_Z, h)},
        _constant(speed_constant),
        _start(start_constant, full_start_constant),
        _unequal(start_constant, unequal_start),
        _exponent(exponent, common_logit),
        _limits(accumulated),
        _branches(*branch_gaps()),
        _rates(accumulated, accumulated_by_ratio, decoder_rate_sign, late_margin),
    )
    return Derivation(
        statement="Theorem 4",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"$\Gamma = \eta_Z\int\gamma\,dt$ with $dt = K\,dh\,(M-1+e^{Mh})/\eta_Y$: the factor that makes $\gamma$"
            r" fall cancels, $\Gamma = \eta_Z K (M-1)^2 h(t/K)^2/(2\eta_Y)$.",
            r"The common token has one $f$ in all classes, so that $\rho = f^2 = P_c^2 e^{2z}/\rho_0^2$ for every pair."
            r" Theorem 1: $\xi/\gamma = (K-1)\beta\rho \to"
            r" (K-1)\rho^2$ for"
            r" $M \to\infty$, then $\rho\to0$: $\xi = \gamma e^{4z}/C_0$ with $C_0 = \rho_0^4/((K-1)P_c^4)$.",
            r"At the start, for any M, K and $\rho$: $-\dot z/(\eta_Z\gamma) = (1-\rho)(K-1)\rho\beta ="
            r" \frac{(K-1)\rho M(1+(M-1)\rho)}{(M-1)^2(1+(K-1)\rho)}$ exactly, which is $1/C_0$ of a B that begins as"
            r" fast; in the full flow s times that. Two classes with $f_1 \ne f_2$ begin slower, by $(1 -"
            r" \frac{f_1^2+f_2^2}2)/(1 - \rho) < 1$, $\rho = f_1f_2$: $\frac{f_1^2+f_2^2}2 - f_1f_2 ="
            r" \frac{(f_1-f_2)^2}2$.",
            r"Theorem 2 (b), K classes at weight 1/K and $f^2 = \rho \ll 1$: $\dot z = -\eta_Z\xi$.",
            r"$d(e^{-4z})/dt = 4\eta_Z\gamma/C_0$ and $z(0) = 0$: $e^{-4z} = 1 + 4\Gamma/C_0$; $B = \eta_Z\int\xi ="
            r" -z$, so $B(0)=0$.",
            r"The printed $\frac14\ln(C_0 + 4\Gamma)$ has the same derivative but starts at $\frac14\ln C_0$.",
            r"$4\Gamma \to 2(M-1)^2\eta_Y\eta_Z t^2/(KM^2)$ for $t\to0$; for $t\to\infty$, $Mh - \ln(M\eta_Y t/K) \to"
            r" 0$ and $4\Gamma \sim 2K\frac{(M-1)^2}{M^2}\frac{\eta_Z}{\eta_Y}\ln^2(M\eta_Y t/K)$.",
            r"The branches of (14) put $\tau = \eta_Y t/K$, or $\ln(M\tau)$, in the place of $x = Mh$. At $t_0'$ (45)"
            r" gives $x = \ln M - a$ with $e^{-a} - a \to 0$, $a \to W(1) = 0.567$; at $t_0$ it gives $\ln(M\tau) - x"
            r" \to \ln 2$. So $4\Gamma$ is too large by about $1.13/\ln M$ and $1.39/\ln M$ there: 18.5% and 23.8% at M"
            r" = 1000 (exactly), 28.0% and 36.6% at M = 100, and it falls with $\ln M$ only.",
            r"(131): h depends on $\eta_Y t$ alone, so that at $t = cK/\eta_Y$ the sum $4\Gamma = 2K(M-1)^2h^2/\nu$"
            r" depends on $\nu = \eta_Y/\eta_Z$ alone; at fixed $\nu$ and t it grows with both rates (insight (a)).",
            r"Insight (b), fixed $\eta_Z$ and t: $\frac{d\ln\Gamma}{d\ln\eta_Y} = \frac{2\tau\dot x}{x} - 1 ="
            r" \frac{(M-1)x - (x-2)e^x - 2}{x(M-1+e^x)}$, which tends to 1 at the start and to -1 at the end. At the"
            r" upper crossing $e^x = (M-1)x$ the numerator is $(3-x)e^x - 2$, and behind it the numerator falls: B"
            r" falls with $\eta_Y$ from there on if $x \ge 3$, that is for $M \ge 8$.",
            r"(132) holds where $4\Gamma \gg 1$: $\ln(M\eta_Yt/K) \gg \sqrt{\nu/(2K)}$. The printed $t \gg"
            r" e^{1/\sqrt{2\nu}}/(M\eta_Y)$ is that for $\nu = \eta_Z/\eta_Y$ and K = 1.",
        ),
        scope=r"$\Gamma$, $B$ and limits: all $M$, $K$, rates; $C_0$: leading order for $M\rho \gg 1$ and"
        r" $K\rho \ll 1$",
        sizes={},
        prose=("C_0 to leading order, first M rho to infinity and then rho to 0",),
        proves=("Equations 131 to 133",),
    )


def _constant(speed_constant):
    """xi and zdot of the common token to leading order, from Theorems 1 and 2.

    The limits M -> infinity and rho -> 0 are values of continuous functions at 0.
    """
    z, share = sp.Symbol("z", real=True), sp.Symbol("rho", positive=True)
    inverse = sp.Symbol("i", positive=True)  # 1/(M - 1)
    ratio = (K - 1) * theorem1.beta(1 + 1 / inverse, K, share) * share / share**2
    leading = sp.cancel(sp.cancel(sp.together(ratio)).subs(inverse, 0)).subs(share, 0)
    overlap = P_C**2 * sp.exp(2 * z) / RHO_0**2
    gamma = sp.Symbol("gamma", positive=True)
    xi = gamma * sp.exp(4 * z) / speed_constant(K, RHO_0, P_C)
    # Theorem 2 (b) for K equal classes, and f^2 = rho -> 0.
    one, n = sp.Symbol("xi", positive=True), index("n", theorem2.K)
    falling = total(theorem2.common_rate(1 / theorem2.K, sp.sqrt(share), one), n)
    return {
        "C_0": xi - gamma * leading * overlap**2,
        "the common token falls at xi": falling.subs(share, 0) + one,
    }


def _start(start_constant, full_start_constant):
    """The common token's initial speed by Theorems 1 and 2, f^2 = rho, against the initial slope 1/C_0 of B."""
    share, m = sp.Symbol("rho", positive=True), OTHERS + 1
    one, n = sp.Symbol("xi", positive=True), index("n", theorem2.K)
    falling = total(theorem2.common_rate(1 / theorem2.K, sp.sqrt(share), one), n)
    speed = falling.subs(one, (K - 1) * share * theorem1.beta(m, K, share))  # over eta_Z gamma
    return {
        "at the start: C_0": 1 / start_constant(m, K, share) + speed,
        "at the start: C_0 of the full flow": 1 / full_start_constant(m, K, share)
        + slowdown.slowdown(m, K, share) * speed,
    }


def _unequal(start_constant, unequal_start):
    """Two classes with different f_n of the common token: they share xi, and `lemma4` weighs it by 1 - f_n^2."""
    less, more, one, m = sp.Symbol("f", positive=True), sp.Symbol("d", positive=True), sp.Symbol("xi"), OTHERS + 1
    first, second = less, less + more
    speed = sum(theorem2.common_rate(sp.Rational(1, 2), f, one) for f in (first, second))
    share = first * second
    exact = speed.subs(one, share * theorem1.beta(m, 2, share)) * start_constant(m, 2, share)
    return {"at the start: two classes": sp.cancel(sp.together(unequal_start(first, second) + exact))}, {
        "at the start: two classes are slower": (sp.factor((1 - share) * (1 - unequal_start(first, second))), "> 0")
    }


def _exponent(exponent, common_logit):
    """B and z along the flow, for any gamma."""
    total = sp.Function("Gamma")(T)
    speed, c0, value = sp.symbols("gamma C_0 G", positive=True)
    B = exponent(total, c0)
    z = common_logit(B)
    xi = speed * sp.exp(4 * z) / c0

    def along(function):
        rate = sp.diff(function, T).subs(sp.Derivative(total, T), ETA_Z * speed)
        return rate.subs(total, value)

    wrong_by = {
        "dB/dt = eta_Z xi": along(B) - ETA_Z * xi.subs(total, value),
        "dz/dt = -eta_Z xi": along(z) + ETA_Z * xi.subs(total, value),
    }
    # Undo the logarithm first: exp(4 z), and so the difference, is rational in Gamma.
    vanishing = {name: sp.simplify(difference) for name, difference in wrong_by.items()}
    vanishing["B(0) = 0"] = exponent(sp.Integer(0), c0)
    vanishing["z(0) = 0"] = common_logit(exponent(sp.Integer(0), c0))
    return vanishing


def _rates(accumulated, accumulated_by_ratio, decoder_rate_sign, late_margin):
    """How Gamma depends on the rates at a fixed time: (131) and the insights after (133)."""
    m = OTHERS + 1
    nu, h, tau = sp.symbols("nu h tau", positive=True)
    by_ratio = accumulated(m, K, ETA_Y, ETA_Y / nu, h)
    # x as a function of tau = eta_Y t/K by (45), with dx/dtau = M/(M - 1 + exp(x)).
    slope = m * lemma6.rate(m, X / m, 1)
    at = sp.solve(lemma6.implicit(m, X / m, 1, tau), tau)[0]
    total = accumulated(m, K, ETA_Y, ETA_Z, X / m)
    elasticity = sp.diff(sp.log(total), X) * slope * at + ETA_Y * sp.diff(sp.log(total), ETA_Y)
    sign = decoder_rate_sign(m, X)
    over = sp.Symbol("a", nonnegative=True)
    at_crossing = sign.subs(OTHERS, sp.exp(X) / X)
    vanishing = {
        "(131): Gamma by nu": by_ratio - accumulated_by_ratio(m, K, nu, h),
        "insight (b): elasticity in eta_Y": sp.cancel(elasticity * X * (OTHERS + sp.exp(X)) - sign),
        "insight (b): at the upper crossing": sp.expand(at_crossing - (3 - X) * sp.exp(X) + 2),
        "insight (b): slope of the sign": sp.diff(sign, X) - (OTHERS - (X - 1) * sp.exp(X)),
        "insight (b): starts at 0": sign.subs(X, 0),
        "(132): 4 Gamma = 1": 2 * K / nu * late_margin(K, nu) ** 2 - 1,
    }
    return vanishing, {
        "insight (a): Gamma grows with the margin": (sp.diff(by_ratio, h), "> 0"),
        "insight (b): falls at the crossing, x >= 3": (-over * sp.exp(X) - 2, "< 0"),
    }


def _limits(accumulated):
    """4 Gamma at both ends, with the margin x = M h as the parameter of time (45)."""
    m = OTHERS + 1
    total = 4 * accumulated(m, K, ETA_Y, ETA_Z, X / m)
    time = K * (sp.exp(X) + (m - 1) * X - 1) / (m * ETA_Y)
    early = 2 * (m - 1) ** 2 * ETA_Y * ETA_Z / (K * m**2)
    late = 2 * K * (m - 1) ** 2 / m**2 * ETA_Z / ETA_Y
    # ln(M eta_Y t/K) - x = ln(1 + ((M - 1) x - 1) exp(-x)).
    excess = sp.limit((OTHERS * X - 1) * sp.exp(-X), X, sp.oo)
    return {
        "time by (45)": lemma6.implicit(m, X / m, ETA_Y, time / K),
        "4 Gamma/t^2 for t -> 0": sp.limit(sp.simplify(total / X**2), X, 0) / sp.limit(time / X, X, 0) ** 2 - early,
        "x - ln(M eta_Y t/K) for t -> infinity": excess,
        "4 Gamma/x^2 for t -> infinity": sp.simplify(total / X**2) - late,
    }


def _branches(early_gap, late_gap):
    """x by (45) at tau = ln M and at tau = 2 ln M, for M -> infinity."""
    m, a = sp.symbols("M a", positive=True)
    log_m = sp.log(m)
    early = lemma6.implicit(m, (log_m - a) / m, 1, log_m) / m
    # At t0, exp(x) = M y: (45) over M ln M leaves y/ln M -> 1, and ln(M tau) - x = ln(2 ln M/y).
    share = sp.Symbol("y'", positive=True)  # y/ln M
    late = lemma6.implicit(m, sp.log(m * share * log_m) / m, 1, 2 * log_m) / (m * log_m)
    late = sp.expand(sp.expand_log(late))
    length = sp.Symbol("L", positive=True)  # ln M, with 1/M = exp(-L)
    late = late.subs(log_m, length).subs(m, sp.exp(length))
    return {
        "branches: (45) at t0', M -> infinity": early_gap - sp.solve(sp.exp(-a) - a, a)[0],
        "branches: what that neglects": sp.limit(sp.expand(sp.expand_log(early)).subs(a, sp.Rational(1, 2)), m, sp.oo)
        - (sp.exp(-a) - a).subs(a, sp.Rational(1, 2)),
        "branches: (45) at t0, M -> infinity": sp.limit(late.subs(share, 1), length, sp.oo),
        "branches: gap at t0": sp.log(2 * length / length) - late_gap,
    }
