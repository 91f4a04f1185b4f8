"""Attention late in the full flow: nothing freezes, and the exponent of ln t. Not in the paper.

Setting: K classes alike, with one query, one token common to all and one distinct token each (several alike count as
one). With features (c, d), c^2 + d^2 = 1, the symmetric state of Lemma 1 (3) has four variables: the logit z of the
common token and

    A = Y[d_n, n] - Y[d_n, n'],   B = Y[d_n, n'] - Y[d_n, j],   C = Y[c, n] - Y[c, j],

n' another of the K next tokens, j one of the M - K that never occur. p and q are the probabilities that class n gives
to each n' and to each j.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, theorem1, theorem4
from theory.symbolic import Claim, Derivation, Scalar, joined
from theory.symbolic.model import named

ETA_Y, ETA_Z, P, Q, X = sp.symbols("eta_Y eta_Z p q x", positive=True)
RHO = 1 / (1 + X)
ADDS_UP = "a rate of order 1/ln t adds up without end over t"


def rates(
    m: Scalar, k: Scalar, c: sp.Expr, d: sp.Expr, A: sp.Expr, B: sp.Expr, C: sp.Expr
) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr]:
    """(A', B', C', z') of the full flow, p and q at hand; a distinct token's logit moves by -z'/K."""
    pull = d * (m - k) * Q * C - c * ((k - 1) * P * A + (m - k) * Q * (A + B))
    return (
        ETA_Y * d / k * (k * P + (m - k) * Q),
        ETA_Y * d / k * (Q - P),
        ETA_Y * c * m * Q / k,
        ETA_Z * c * d * pull,
    )


def ratio(m: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """kappa = lim p/q with frozen features of overlap rho."""
    return (1 + (m - 1) * rho) / (1 - rho)


def orbit(k: sp.Expr, w: sp.Expr, A: sp.Expr) -> sp.Expr:
    """K = M: the conserved quantity, with w = c/d."""
    return 1 / w**2 - 2 * sp.log(w) - (k - 1) * (1 + 1 / k) * ETA_Z / ETA_Y * A**2


def lead(k: sp.Expr, u: sp.Expr, d: sp.Expr) -> sp.Expr:
    """K = M: by at least this over exp(u) + K - 1, exp(A) + (K - 1) A gains on the theory's, per eta_Y."""
    return (1 - d) * (sp.exp(u) * (u - 1) - (k - 1))


def exponent(m: sp.Expr, k: Scalar) -> sp.Expr:
    """alpha: c/d falls like (ln t)^-alpha in the end, the logit like -alpha/(1 + 1/K) ln ln t."""
    return (k - 1) / (m - 1)


def theory_rate(m: sp.Expr, k: sp.Expr) -> sp.Expr:
    """Factor of Gamma in `theory_time`."""
    return (k - 1) * m / (m - 1) ** 2


def theory_time(m: sp.Expr, k: sp.Expr, y: sp.Expr) -> sp.Expr:
    """(K - 1) M/(M - 1)^2 Gamma + const in the theory flow, as a function of y = (c/d)^2."""
    return (1 / y - (k + 1 - m) * sp.log(y) - (m - k) * (m - 1) / m * sp.log(1 + m * y)) / (2 * (1 + 1 / k))


def derive(
    *,
    rates: Claim = rates,
    ratio: Claim = ratio,
    orbit: Claim = orbit,
    lead: Claim = lead,
    exponent: Claim = exponent,
    theory_rate: Claim = theory_rate,
    theory_time: Claim = theory_time,
    sizes: Sequence[tuple[int, int]] = ((2, 3), (3, 5), (3, 3)),
) -> Derivation:
    """The reduced system from Lemma 1, with its consequences; at ``sizes`` (K, M) it is also written out."""
    vanishing, signed = joined(
        _reduced(rates),
        *(_reduction(k, m, rates) for k, m in sizes),
        _frozen(rates, ratio),
        _orbit(rates, orbit),
        _ahead(rates, orbit, lead, theory_rate, theory_time),
        _exponent(rates, exponent),
        _theory(theory_rate, theory_time),
    )
    return Derivation(
        statement="Late full flow",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Rows of Y: the common token's has C, each distinct token's A and B; $r_n$ is $(K-1)p + (M-K)q$ at n, $-p$"
            r" at $n'$, $-q$ at j. Lemma 1 gives A', B', C', z'.",
            r"*Frozen features, overlap $\rho = c^2$.* The margins are $u = dA$ and $w = dA + dB + cC$, $q/p ="
            r" e^{-(w-u)}$, and $(w-u)' = \frac{\eta_Y}{K}p[(1+(M-1)\rho)e^{-(w-u)} - (1-\rho)]$: from 0, $w - u$ grows"
            r" and stays below $\ln\kappa$. Hence $u' = e^{-u}$ times a factor between two positive constants,"
            r" $u = \ln t + O(1)$, $w = u + O(1)$, $p/q \to \kappa$. This is what `slowdown` takes for $s_\infty$.",
            r"*Attention cannot freeze, K < M.* $z' = \eta_Zcd[d(M-K)qC - c((K-1)pA + (M-K)q(A+B))]$. If z had a limit,"
            r" c and d would have positive limits and A, B, C those of frozen features, for which $z' \sim"
            r" -\text{const} \cdot \ln t/t$ with a positive constant: $z \to -\infty$, a contradiction.",
            r"*K = M.* C and B drop out and $dz/dA = -\frac{\eta_Z}{\eta_Y}(K-1)c^2A$: p cancels. With $w = c/d$,"
            r" $dw/dz = (1+1/K)w$, the orbit $w^{-2} - 2\ln w - (K-1)(1+1/K)\frac{\eta_Z}{\eta_Y}A^2$ is constant."
            r" $A \to \infty$ because the loss falls to 0, so $w \sim 1/A \sim 1/\ln t$: exactly, $(1+1/K)z ="
            r" -\ln\ln t + O(1)$.",
            r"*K = M, ahead of the theory.* The theory flow has this orbit with $x = Mh$ in the place of A. Of $e^x +"
            r" (K-1)x$ it gains $\eta_Y$ a step; of $e^A + (K-1)A$ the full flow gains $\eta_Yd\,\frac{e^A + K - 1}{e^u"
            r" + K - 1}$, more by at least $\eta_Y(1-d)\frac{e^u(u-1) - (K-1)}{e^u + K - 1}$, as $e^{(1-d)A} \ge 1 +"
            r" (1-d)A$: more once u is past the $u^*$ of $t^*$. With $1 - d \sim w^2/2$ and $w \sim 1/\ln t$ this is of"
            r" order $1/\ln t$ in the end, and its sum has no bound: from some time on $A > x$, and z is the lower.",
            r"*K < M, leading order.* Margins stay within O(1) of $s = \ln t$ of each other, so $A = s/d$, $dB = -cC$."
            r" As $c \to 0$: $p/q \to 1$, $tp \to K/(\eta_YM)$, $dC/ds = c$, and $dz/ds = \frac{\eta_ZK}{\eta_YM}"
            r" c[(M-K)C - (M-1)cs]$. This drives the bracket to 0, since $cs \to \infty$: $c = s^{-\alpha}$, $C ="
            r" cs/(1-\alpha)$, $\alpha = \frac{K-1}{M-1}$. That the flow does this is proved in `late_exponent`.",
            r"*Theory flow.* $z' = -\eta_Z(1-\rho)\xi$ with $\xi = \gamma(K-1)\rho\beta(\rho)$ of Theorem 1, so that"
            r" $dz/d\Gamma$ is a rational function of $y = (c/d)^2$: $\Gamma$ in closed form, and $y \sim 1/\Gamma$,"
            r" $(1+1/K)z \sim -\ln\ln t$, once $My \ll 1$. While $My \gg 1 \gg Ky$ it is $-dz/d\Gamma \sim (K-1)y^2$,"
            r" $y \sim \Gamma^{-1/2}$: $(1+1/K)z$ falls like the $-\frac12\ln\ln t$ of Theorem 4, whose norm stands"
            r" still.",
        ),
        scope="all K and M: the reduced system, frozen features, the orbit at K = M, the theory flow; the exponent at"
        " K < M: leading order. The reduced system is written out for (K, M) = (2, 3), (3, 5), (3, 3) besides",
        sizes={},
        prose=(
            "a differential inequality gives u = ln t + O(1)",
            "by contradiction with the frozen flow, features that converge in place of frozen ones",
            "the loss falls to zero, so that A grows without end, like ln t",
            ADDS_UP,
        ),
        proves=("Late attention",),
    )


def _reduced(rates):
    """Lemma 1 on the symmetric state for any K and M, by the three kinds of columns: n, other classes, other tokens."""
    k, m = sp.symbols("K M", positive=True)
    A, B, C = sp.symbols("A B C", real=True)
    c, d = 2 * X / (1 + X**2), (1 - X**2) / (1 + X**2)
    free = m - k
    low = -(A + k * B) / m
    own, common = (low + A + B, low + B, low), (free * C / m, free * C / m, -k * C / m)
    at, other, outside = residual = ((k - 1) * P + free * Q, -P, -Q)

    def dot(one, two):
        return sum(number * a * b for number, a, b in zip((1, k - 1, free), one, two, strict=True))

    dA, dB, dC, dz = rates(m, k, c, d, A, B, C)
    along = c * dot(common, residual) + d * dot(own, residual)
    # All K classes move the common token alike, and class n its distinct token.
    z_common = ETA_Z * c * (dot(common, residual) - c * along)
    z_distinct = ETA_Z * d / k * (dot(own, residual) - d * along)
    ones = (1, 1, 1)
    found = {
        "row sums": dot(own, ones) ** 2 + dot(common, ones) ** 2 + dot(residual, ones) ** 2,
        "A'": ETA_Y * d / k * (at - other) - dA,
        "B'": ETA_Y * d / k * (other - outside) - dB,
        "C'": ETA_Y * c / k * (at + (k - 1) * other - k * outside) - dC,
        "z'": z_common - dz,
        "distinct logits": z_distinct + dz / k,
    }
    return {f"reduced: {name}": difference for name, difference in found.items()}


def _reduction(k, m, rates):
    """Lemma 1 on the symmetric state, entry by entry, with the residuals written by p and q."""
    c, d, A, B, C = sp.symbols("c d A B C", real=True)
    free = m - k
    # Columns of Y: the K classes, then the M - K others; its rows have zero sums.
    low = -(A + k * B) / m
    common = sp.Matrix(1, m, lambda _, j: (free if j < k else -k) * C / m)
    own = sp.Matrix(k, m, lambda n, j: low + (A + B if j == n else B if j < k else 0))
    residual = sp.Matrix(k, m, lambda n, j: (k - 1) * P + free * Q if j == n else -P if j < k else -Q)
    if not free:  # without other tokens there is no q, and B and C have no meaning
        common, own, residual = (matrix.subs({B: 0, C: 0, Q: 0}) for matrix in (common, own, residual))
    dA, dB, dC, dz = rates(sp.Integer(m), sp.Integer(k), c, d, A, B, C)
    change = {"common": sp.zeros(1, m), "distinct": sp.zeros(k, m)}
    z_common, z_distinct = sp.Integer(0), sp.zeros(k, 1)
    for n in range(k):
        r = residual.row(n)
        change["common"] += ETA_Y * c * r / k
        change["distinct"][n, :] = ETA_Y * d * r / k
        g = (common.dot(r), own.row(n).dot(r))
        along = c * g[0] + d * g[1]
        z_common += ETA_Z * c * (g[0] - c * along) / k
        z_distinct[n] = ETA_Z * d * (g[1] - d * along) / k
    claims = {"A": (change["distinct"][0, 0] - change["distinct"][0, 1], dA)}
    if free:
        claims["B"] = (change["distinct"][0, 1] - change["distinct"][0, m - 1], dB)
        claims["C"] = (change["common"][0] - change["common"][m - 1], dC)
    unit = {c: 2 * X / (1 + X**2), d: (1 - X**2) / (1 + X**2)}
    gone = {} if free else {B: 0, C: 0, Q: 0}
    found = {
        f"reduced: {name}', K = {k}, M = {m}": sp.expand((left - right).subs(gone))
        for name, (left, right) in claims.items()
    }
    found[f"reduced: z', K = {k}, M = {m}"] = (z_common - dz.subs(gone)).subs(unit)
    moved = z_distinct + sp.ones(k, 1) * dz.subs(gone) / k
    found.update(named(f"reduced: distinct logits, K = {k}, M = {m}", moved.subs(unit)))
    return found


def _frozen(rates, ratio):
    """The difference of the two margins, its fixed point, and the signs that make the fixed point stable."""
    k, m, more = sp.symbols("K M j", positive=True)
    c, d = sp.sqrt(RHO), sp.sqrt(1 - RHO)
    dA, dB, dC, _ = rates(m, k, c, d, *sp.symbols("A B C"))
    apart = sp.expand(d * dB + c * dC)  # (w - u)'
    claim = ETA_Y / k * ((1 + (m - 1) * RHO) * Q - (1 - RHO) * P)
    rest = apart.subs(Q, P / ratio(m, RHO))
    size = 1 + k + more  # M
    inside = apart.subs(Q, P * (1 / ratio(m, RHO) + more))
    return {
        "frozen: (w - u)'": apart - claim,
        "frozen: at rest at kappa": rest,
    }, {
        "frozen: below ln kappa the difference grows": (sp.factor(inside), "> 0"),
        "frozen: kappa > 1": (sp.factor((ratio(m, RHO) - 1).subs(m, size)), "> 0"),
        "frozen: u grows": (d * dA.subs(m, k + more), "> 0"),
    }


def _orbit(rates, orbit):
    """K = M: the orbit's change, with c^2 = w^2/(1 + w^2)."""
    k, w, A = sp.symbols("K w A", positive=True)
    c, d = w / sp.sqrt(1 + w**2), 1 / sp.sqrt(1 + w**2)
    dA, _, _, dz = rates(k, k, c, d, A, sp.Integer(0), sp.Integer(0))
    constant = orbit(k, w, A)
    change = sp.diff(constant, w) * w * (1 + 1 / k) * dz + sp.diff(constant, A) * dA
    return {"K = M: the orbit": change}


def _ahead(rates, orbit, lead, theory_rate, theory_time):
    """K = M: the theory's x = M h in the orbit, and the lead of exp(A) + (K - 1) A over exp(x) + (K - 1) x."""
    k, w, x, A, d = sp.symbols("K w x A d", positive=True)
    accumulated = theorem4.accumulated(k, k, ETA_Y, ETA_Z, x / k)
    of_theory = 2 * (1 + 1 / k) * (theory_time(k, k, w**2) - theory_rate(k, k) * accumulated)
    u, total = d * A, sp.exp(d * A) + k - 1  # 1/p
    rate = rates(k, k, sp.sqrt(1 - d**2), d, A, sp.Integer(0), sp.Integer(0))[0].subs(P, 1 / total)
    more = d * (sp.exp(A) + k - 1) - total
    gained = (sp.exp(A) + k - 1) * rate - (sp.exp(x) + k - 1) * lemma6.rate(k, x / k, ETA_Y)
    # exp((1 - d) A) = 1 + (1 - d) A + c, with c >= 0.
    beyond = d * sp.exp(u) * (sp.exp((1 - d) * A) - 1 - (1 - d) * A)
    room, margin = sp.Symbol("c", nonnegative=True), sp.Symbol("u", positive=True)
    return {
        "ahead: the theory's orbit": orbit(k, w, x) - of_theory,
        "ahead: what A gains on the theory": gained - ETA_Y * more / total,
        "ahead: beyond its bound": sp.expand(more - lead(k, u, d) - beyond),
    }, {
        "ahead: not below it": (d * sp.exp(u) * room, ">= 0"),
        "ahead: the bound rises with the margin": (sp.diff(lead(k, margin, 1 / (1 + w)), margin), "> 0"),
        "ahead: a larger A, a smaller share": (sp.diff(orbit(k, w, A), w), "< 0"),
    }


def _exponent(rates, exponent):
    """K < M, c -> 0: the leading order of z' in c, with C = c s/(1 - alpha), and of the margins."""
    k, m, c, s, power = sp.symbols("K M c s alpha", positive=True)
    speed = sp.Symbol("P", positive=True)  # t p = t q
    limit = {P: speed, Q: speed}
    dA, _, dC, dz = (
        entry.subs(limit) for entry in rates(m, k, c, sp.Integer(1), s, sp.Integer(0), c * s / (1 - power))
    )
    found = sp.solve(dA - 1, speed)[0]
    bracket = sp.cancel(dz / (c**2 * s * speed * ETA_Z))
    return {
        "late: t p": found - k / (ETA_Y * m),
        "late: dC/ds = c": (dC.subs(speed, found) - c),
        "late: z at rest": sp.cancel(bracket.subs(power, exponent(m, k))),
        "late: C = int c ds": sp.simplify(sp.diff(s ** (1 - power) / (1 - power), s) - s**-power),
        "late: K = M has the exponent of the orbit": exponent(k, k) - 1,
    }


def _theory(theory_rate, theory_time):
    """The theory flow's z' = -(1 - rho) xi against the closed form, y = rho/(1 - rho)."""
    k, m, y = sp.symbols("K M y", positive=True)
    rho = y / (1 + y)
    speed = (1 - rho) * (k - 1) * rho * theorem1.beta(m, k, rho)  # -dz/dGamma
    # dy/dz = 2 (1 + 1/K) y.
    found = sp.diff(theory_time(m, k, y), y) * 2 * (1 + 1 / k) * y * -speed
    stage = sp.limit(sp.cancel(speed / y**2), m, sp.oo)  # M y >> 1, and then K y << 1
    return {
        "theory: y as a function of Gamma": found - theory_rate(m, k),
        "theory: its stage that Theorem 4 has": sp.cancel(stage).subs(y, 0) - (k - 1),
    }
