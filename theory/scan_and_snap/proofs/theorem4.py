"""Theorem 4, (13)-(14), (118)-(133): the accumulated speed Gamma and the growth exponent B, from (10).

One common token, one query, K classes with probability 1/K each. gamma is that of Theorem 1, h that of Lemma 6.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, theorem1, theorem2
from theory.symbolic import Derivation

ETA_Y, ETA_Z, K, X, T = sp.symbols("eta_Y eta_Z K x t", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
RHO_0, P_C = sp.symbols("rho_0 P_c", positive=True)


def accumulated(m, k, eta_y, eta_z, h):
    """(128): Gamma = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y)."""
    return eta_z * k * (m - 1) ** 2 * h**2 / (2 * eta_y)


def speed_constant(k, norm, probability):
    """C_0 = rho_0^4/((K - 1) P_c^4), where (13) prints rho_0^4/K."""
    return norm**4 / ((k - 1) * probability**4)


def exponent(total, c0):
    """(14), (124) with its lower limit: B = 1/4 ln(1 + 4 Gamma/C_0). Printed: 1/4 ln(C_0 + 4 Gamma)."""
    return sp.log(1 + 4 * total / c0) / 4


def common_logit(exponent_value):
    """z of the common token, -B; (13) has K(K - 1) terms in its rate and K - 1 in xi, as if it were -K B."""
    return -exponent_value


def derive(
    *, accumulated=accumulated, speed_constant=speed_constant, exponent=exponent, common_logit=common_logit
) -> Derivation:
    """Gamma by change of variable, C_0 from Theorems 1 and 2, B from the ODE, and the limits of 4 Gamma."""
    m = OTHERS + 1
    h = sp.Symbol("h", positive=True)
    # dt = K dh / (dh/d(t/K)).
    by_h = sp.expand(ETA_Z * theorem1.gamma(m, h) * K / lemma6.rate(m, h, ETA_Y))
    integral = sp.integrate(sp.simplify(by_h), (h, 0, h))
    vanishing = {"Gamma": integral - accumulated(m, K, ETA_Y, ETA_Z, h)}
    vanishing.update(_constant(speed_constant))
    vanishing.update(_exponent(exponent, common_logit))
    vanishing.update(_limits(accumulated))
    return Derivation(
        statement="Theorem 4",
        vanishing=vanishing,
        steps=(
            r"$\Gamma = \eta_Z\int\gamma\,dt$ with $dt = K\,dh\,(M-1+e^{Mh})/\eta_Y$: the factor that makes $\gamma$"
            r" fall cancels,"
            r" $\Gamma = \eta_Z K (M-1)^2 h(t/K)^2/(2\eta_Y)$.",
            r"Overlap $\rho = P_c^2 e^{2z}/\rho_0^2$ for every pair. Theorem 1: $\xi/\gamma = (K-1)\beta\rho \to"
            r" (K-1)\rho^2$ for"
            r" $M \to\infty$, then $\rho\to0$: $\xi = \gamma e^{4z}/C_0$ with $C_0 = \rho_0^4/((K-1)P_c^4)$.",
            r"Theorem 2 (b), K classes at weight 1/K and $f^2 = \rho \ll 1$: $\dot z = -\eta_Z\xi$.",
            r"$d(e^{-4z})/dt = 4\eta_Z\gamma/C_0$ and $z(0) = 0$: $e^{-4z} = 1 + 4\Gamma/C_0$; $B = \eta_Z\int\xi ="
            r" -z$, so $B(0)=0$.",
            r"The printed $\frac14\ln(C_0 + 4\Gamma)$ has the same derivative but starts at $\frac14\ln C_0$.",
            r"$4\Gamma \to 2(M-1)^2\eta_Y\eta_Z t^2/(KM^2)$ for $t\to0$; for $t\to\infty$, $Mh - \ln(M\eta_Y t/K) \to"
            r" 0$ and"
            r" $4\Gamma \sim 2K\frac{(M-1)^2}{M^2}\frac{\eta_Z}{\eta_Y}\ln^2(M\eta_Y t/K)$.",
        ),
        scope="Gamma, B and limits: all M, K, rates; C_0: leading order for M rho >> 1 and K rho << 1",
        sizes={"K (fall of the common token)": (4,)},
        prose=("C_0 to leading order, first M rho to infinity and then rho to 0",),
    )


def _constant(speed_constant):
    """xi and zdot of the common token to leading order, from Theorems 1 and 2.

    The limits M -> infinity and rho -> 0 are values at 0 of functions that are continuous there.
    """
    z, share = sp.Symbol("z", real=True), sp.Symbol("rho", positive=True)
    inverse = sp.Symbol("i", positive=True)  # 1/(M - 1)
    ratio = (K - 1) * theorem1.beta(1 + 1 / inverse, K, share) * share / share**2
    leading = sp.cancel(sp.cancel(sp.together(ratio)).subs(inverse, 0)).subs(share, 0)
    overlap = P_C**2 * sp.exp(2 * z) / RHO_0**2
    gamma = sp.Symbol("gamma", positive=True)
    xi = gamma * sp.exp(4 * z) / speed_constant(K, RHO_0, P_C)
    # Theorem 2 (b) for four equal classes, and f^2 = rho -> 0.
    one, classes = sp.Symbol("xi", positive=True), 4
    falling = theorem2.common_rate([sp.Rational(1, classes)] * classes, [sp.sqrt(share)] * classes, [one] * classes)
    return {
        "C_0": xi - gamma * leading * overlap**2,
        "the common token falls at xi": falling.subs(share, 0) + one,
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
    # exp(4 z) is rational in Gamma; the logarithm has to be undone before the difference is one.
    vanishing = {name: sp.simplify(difference) for name, difference in wrong_by.items()}
    vanishing["B(0) = 0"] = exponent(sp.Integer(0), c0)
    vanishing["z(0) = 0"] = common_logit(exponent(sp.Integer(0), c0))
    return vanishing


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
