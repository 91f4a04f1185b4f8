"""(13), (118), (119): errors of the approximations behind Theorem 4, for equal classes with one common token.

They are compared with the exact beta of Theorem 1 and velocities of Theorem 2. rho is the present overlap f_n . f_n',
the square of the common token's feature; b is the integral of xi, db = eta_Z xi dt.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import theorem1, theorem2
from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.indexed import entries, index, total

K, RHO = sp.symbols("K rho", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1


def beta_ratio(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """beta_nn'/(f_n . f_n'), which is 1 in (119). It is also the exact xi_n over (13) with K - 1 terms."""
    return m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * rho * (1 - rho) * (1 + (k - 1) * rho))


def speed_ratio(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """-zdot of the common token over eta_Z gamma (K - 1) rho^2, its speed by (13) with class probabilities."""
    return m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * rho * (1 + (k - 1) * rho))


def beta_error(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """`beta_ratio` minus 1 to leading order, for small rho and large M rho."""
    return 1 / (m * rho) - (k - 2) * rho


def speed_error(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """`speed_ratio` minus 1 to leading order."""
    return 1 / (m * rho) - (k - 1) * rho


def decay(k: sp.Expr, rho: sp.Expr, fourth: sp.Expr) -> sp.Expr:
    """-(1/2) d ln rho/db, which is 1 for a constant rho_0 and small rho; ``fourth`` is the sum of f_l^4."""
    return (1 - rho) ** 2 + fourth / k


def moving_exponent(accumulated: sp.Expr, c0: sp.Expr, kappa: sp.Expr) -> sp.Expr:
    """b where rho falls like exp(-2 kappa b) with a constant kappa, and xi = gamma rho^2/(C_0 rho(0)^2)."""
    return sp.log(1 + 4 * kappa * accumulated / c0) / (4 * kappa)


def derive(
    *,
    beta_ratio: Claim = beta_ratio,
    speed_ratio: Claim = speed_ratio,
    beta_error: Claim = beta_error,
    speed_error: Claim = speed_error,
    decay: Claim = decay,
    moving_exponent: Claim = moving_exponent,
) -> Derivation:
    """Exact ratios from Theorems 1 and 2, their leading orders, the fall of rho, and B with a norm that moves."""
    vanishing, signed = joined(
        _ratios(beta_ratio, speed_ratio, beta_error, speed_error), _norm(decay), _moving(moving_exponent, decay)
    )
    return Derivation(
        statement="Equations 13, 118, 119",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Theorem 1, equal overlaps: $\frac\beta\rho = \frac{M(1+(M-1)\rho)}{(M-1)^2\rho(1-\rho)(1+(K-1)\rho)}$;"
            r" Theorem 2 (b): $-\dot z = \eta_Z(1-\rho)\xi$, $\xi = \gamma(K-1)\beta\rho$.",
            r"With $\rho = \epsilon r$ and $M^{-1} = \epsilon^2\mu$ both are 1 plus $\epsilon$ times what is claimed.",
            r"$\frac{d}{db}\ln\rho = 2\big(\dot z_c - \sum_l f_l^2\dot z_l\big)$ per unit of $\eta_Z\xi$, over all"
            r" tokens of a class: $\dot z_c = -(1-\rho)$, $\dot z_l = f_l^2/K$.",
            r"$\kappa$ constant: $\frac{db}{d\Gamma} = \frac{e^{-4\kappa b}}{C_0}$.",
        ),
        scope=r"all $K$, $M$, $\rho$ and distinct tokens; leading orders for $\rho \to 0$, $M\rho \to \infty$",
        sizes={},
    )


def _ratios(beta_ratio, speed_ratio, beta_error, speed_error):
    m = OTHERS + 1
    one, n = sp.Symbol("xi", positive=True), index("n", theorem2.K)
    falling = -total(theorem2.common_rate(1 / theorem2.K, sp.sqrt(RHO), one), n)
    exact = theorem1.beta(m, K, RHO)
    speed = falling.subs(one, (K - 1) * RHO * exact)
    small, r, mu = sp.symbols("e r mu", positive=True)

    def first_order(ratio, error):
        scaled = {"m": 1 / (small**2 * mu), "rho": small * r}
        found = sp.cancel(sp.together(ratio(scaled["m"], K, scaled["rho"])))
        return sp.diff(found, small).subs(small, 0) - sp.expand(error(scaled["m"], K, scaled["rho"]) / small)

    def zeroth(ratio):
        return sp.cancel(sp.together(ratio(1 / (small**2 * mu), K, small * r))).subs(small, 0) - 1

    return {
        "ratios: beta": exact - beta_ratio(m, K, RHO) * RHO,
        "ratios: speed": speed - (K - 1) * RHO**2 * speed_ratio(m, K, RHO),
        "leading: beta is one": zeroth(beta_ratio),
        "leading: speed is one": zeroth(speed_ratio),
        "leading: beta": first_order(beta_ratio, beta_error),
        "leading: speed": first_order(speed_ratio, speed_error),
    }


def _norm(decay):
    """Rate of ln f_c^2 along Theorem 2's velocities, per unit of eta_Z xi; classes are equal."""
    size = sp.Symbol("D", integer=True, positive=True)
    i, j = index("i", size), index("j", size)
    p, z = entries("p", positive=True), entries("z")
    q, y = sp.Symbol("q", positive=True), sp.Symbol("y", real=True)
    squared = (q * sp.exp(y)) ** 2 + total((p[j] * sp.exp(z[j])) ** 2, j)

    def square(token):
        return (p[token] * sp.exp(z[token])) ** 2 / squared

    share = (q * sp.exp(y)) ** 2 / squared
    log_share = 2 * sp.log(q) + 2 * y - sp.log(squared)
    rates = sp.diff(log_share, y) * theorem2.common_rate(1, sp.sqrt(share), 1)
    rates += total(sp.diff(log_share, z[i]) * square(i) / K, i)
    return {"norm: fall of rho": rates + 2 * decay(K, share, total(square(j) ** 2, j))}


def _moving(moving_exponent, decay):
    accumulated, c0, kappa = sp.symbols("G C_0 kappa", positive=True)
    b = moving_exponent(accumulated, c0, kappa)
    return {
        "moving: db/dGamma": sp.diff(b, accumulated) - sp.exp(-4 * kappa * b) / c0,
        "moving: b(0)": b.subs(accumulated, 0),
        "moving: one distinct token, rho -> 0": decay(K, 0, 1) - (1 + 1 / K),
    }
