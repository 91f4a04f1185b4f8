"""The factor by which attention moves slower in the full flow than in the modified flow. Not in the paper.

Remark 1 after Lemma 5, (40)-(43), gives 1 - rho, which is the case K = M. Both flows are expanded in t from zero
weights, for fixed bags and equal overlaps rho. The features are constants up to the order used here, since the logits
move at order t^2. The rates come from Lemmas 1 and 3, with probability 1/K for each class.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma1, lemma3, theorem1
from theory.symbolic import Claim, Derivation, Scalar
from theory.symbolic.indexed import entries, index, total
from theory.symbolic.model import Even, equal_overlaps, softmax, unit

ETA, T, Q = sp.symbols("eta_Y t q", positive=True)
RHO = 1 / (1 + Q)


def slowdown(m: Scalar, k: Scalar, rho: sp.Expr) -> sp.Expr:
    """s = (1 - rho)(1 + (K - 1) rho)/(1 + (M - 1) rho): ratio of the speeds of every token as t -> 0."""
    return (1 - rho) * (1 + (k - 1) * rho) / (1 + (m - 1) * rho)


def first_correction(m: Scalar, k: Scalar, rho: sp.Expr, eta: Scalar) -> sp.Expr:
    """s_1 of the ratio s (1 + s_1 t + O(t^2)) of the speeds; the logits have 2/3 s_1 instead."""
    return 3 * eta * rho * (m - k + 1) / (2 * k * m)


def late_ratio(m: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    """s_inf: the ratio of the speeds for t -> infinity with frozen features; above one, the full flow is faster."""
    return 1 / (1 - rho) + (m - k) * rho / ((1 + (m - 1) * rho) * (1 + (k - 1) * rho))


def late_rate(m: sp.Expr, k: sp.Expr, rho: sp.Expr, apart: sp.Expr) -> sp.Expr:
    """(1 - rho)(K + (M - K)/y), the rate of exp(u) by D, with y = exp(w - u), in units of eta_Y/K."""
    return (1 - rho) * (k + (m - k) / apart)


def derive(
    *,
    slowdown: Claim = slowdown,
    first_correction: Claim = first_correction,
    late_ratio: Claim = late_ratio,
    late_rate: Claim = late_rate,
    sizes: Sequence[tuple[int, int]] = ((2, 3),),
) -> Derivation:
    """s, its first correction and s_inf for symbolic K and M; s from the flows themselves for ``sizes`` (K, M)."""
    vanishing = _symbolic(slowdown, first_correction) | _first_order()
    vanishing.update(_late(late_ratio, late_rate))
    for k, m in sizes:
        vanishing.update(_explicit(k, m, slowdown, first_correction))
    k, extra = sp.symbols("K j", positive=True)
    m = sp.Symbol("M", positive=True)
    detail = RHO / ((1 - RHO) * (1 + (k - 1) * RHO))
    vanishing["Remark 1 is K = M"] = slowdown(k, k, RHO) - (1 - RHO)
    vanishing["form with rho''"] = 1 / slowdown(m, k, RHO) - (1 / (1 - RHO) + (m - k) * detail)
    at_least_two = 2 + sp.Symbol("i", nonnegative=True)
    signed = {
        "s > 0": (slowdown(1 + m, at_least_two, RHO), "> 0"),
        "s is below Remark 1 for K < M": (slowdown(k + extra, k, RHO) - (1 - RHO), "< 0"),
        "the factor weakens with time": (first_correction(k + extra, k, RHO, ETA), "> 0"),
        "late: exp(u) grows without end": (late_rate(at_least_two + extra, at_least_two, RHO, Q), "> 0"),
        "late, the full flow is the faster one": (
            sp.factor(late_ratio(at_least_two + extra, at_least_two, RHO) - 1),
            "> 0",
        ),
    }
    return Derivation(
        statement="Slow-down of the full flow (Remark 1)",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"$R_0$ has the rows $r_n = e_n - 1/M$, so that $S = R_0R_0^T = I - 11^T/M$ (K x K).",
            r"Full flow: $Y = FV$, $\dot V = \frac{\eta_Y}{K}R$. Modified: $Y = FG^{-1}W$, $\dot W ="
            r" \frac{\eta_Y}{K}R$, $G = F^TF$.",
            r"Logits $GV$ (W), so that $R = R_0 - \frac{\eta_Y t}{KM} G R_0 + \dots$ (without G), as the softmax at 0"
            r" has the Jacobian $I/M - 11^T/M^2$ and rows of $R_0$ sum to zero.",
            r"$g_n = Y r_n = F C e_n$ with $C = \frac{\eta_Y t}{K}[S - \frac{3\eta_Y t}{2KM} G S]$ in the full and"
            r" $\frac{\eta_Y t}{K} G^{-1}S[1 - \frac{3\eta_Y t}{2KM}]$ in the modified flow.",
            r"All these are $aI + b11^T$; the part $a f_n$ of $g_n$ is removed by $P^\perp$, and every token's speed is"
            r" proportional to b. The ratio of the b is $s(1 + s_1 t)$.",
            r"s is the limit t -> 0, with a relative error of order t: $s_1 = \frac{3\eta_Y\rho(M-K+1)}{2KM}$;"
            r" integrating, the ratio of the logits has $\frac{\eta_Y\rho(M-K+1)}{KM}$.",
            r"Late, with frozen features, $V$ has the entries a at the next token of its class, b at those of other"
            r" classes, c at other tokens, and the margins of the logits are $u = (1-\rho)(a-b)$ and $w = (a-b) +"
            r" (1+(K-1)\rho)(b-c)$. With $D = 1 + (K-1)e^{-u} + (M-K)e^{-w}$ and time in units of $K/\eta_Y$ they obey"
            r" $\dot w - \dot u = -\frac{1-\rho}{D}e^{-w}(e^{w-u} - \kappa)$, $\kappa = \frac{1+(M-1)\rho}{1-\rho}$,"
            r" and $\frac{d}{dt}e^u = \frac{1-\rho}{D}(K + (M-K)e^{u-w})$: $w - u$ is driven to $\ln\kappa$, both"
            r" margins grow without end, $D \to 1$, and $e^u/t$ tends to a constant. So $\dot u, \dot w \sim 1/t$, and"
            r" $A = t e^{-u}$, $B = t e^{-w}$ tend to $A = \kappa B$, $B = \frac{1}{(1-\rho)(K\kappa+M-K)}$.",
            r"The coefficient of the other features in $g_n$ is $(a-b)e^{-u} - (M-K)(b-c)e^{-w}$ with $a - b \sim"
            r" \frac{\ln t}{1-\rho}$, $b - c \sim \frac{-\rho\ln t}{(1-\rho)(1+(K-1)\rho)}$; in the modified flow it is"
            r" $\gamma\beta$. Their ratio tends to $s_\infty = \frac{1}{1-\rho} +"
            r" \frac{(M-K)\rho}{(1+(M-1)\rho)(1+(K-1)\rho)} > 1$, slowly, with errors of order $1/\ln t$.",
        ),
        scope=r"all $K$, $M$, $0 < \rho < 1$ for equal overlaps ($s_\infty$: leading order in $\ln t$); $s$ entry by"
        " entry from the flows for $(K, M) = (2, 3)$ besides",
        sizes={},
        prose=(
            "the flows have a Taylor series in t",
            "what is driven to one value and never stops arrives, so that exp(u) and exp(w) grow like t",
        ),
    )


def _symbolic(slowdown, first_correction):
    """Ratio of the coefficients of F 1 in g_n, to first order in t, in the algebra of a I + b 1 1^T."""
    k, m = sp.symbols("K M", positive=True)
    gram, ones = Even(1 - RHO, RHO, k), Even(1, -1 / m, k)
    inverse = gram.inverse()
    loss = ETA * T / (k * m)
    # C = int_0^t R R_0^T + ... : S t - loss (G S/2 + S G) t in the full flow, the same without G in the modified flow.
    full = ones + gram * ones * (-loss / 2) + ones * gram * (-loss)
    modified = inverse * (ones + ones * (-loss / 2) + ones * (-loss))
    ratio = sp.together(full.ones / modified.ones)
    return {
        "s, all K and M": ratio.subs(T, 0) - slowdown(m, k, RHO),
        "s_1, all K and M": sp.diff(ratio, T).subs(T, 0) / ratio.subs(T, 0) - first_correction(m, k, RHO, ETA),
    }


def _first_order():
    """Residuals and V R^T to the order t^2 for any overlaps G, with time in units of K/eta_Y; speeds of a f + b F 1."""
    k, m = lemma3.K, lemma3.M
    j, l = index("j", m), index("l", m)
    n, o, i = index("n", k), index("o", k), index("i", k)
    G, F = entries("G"), entries("F")

    def start(of, token):
        return KroneckerDelta(lemma3.NEXT(of), token) - 1 / m

    def pulled(of, token):
        """G R_0, the early growth of logits in the full flow; in the modified flow it is R_0."""
        return total(G[of, i] * start(i, token), i)

    def first(of, token, logit):
        """Residual to first order in t: (1 - t/M) R_0 in the modified flow."""
        return start(of, token) - T / m * logit(of, token)

    def slope(logit):
        weight = sp.exp(T * logit(n, j)) / total(sp.exp(T * logit(n, l)), l)
        return sp.diff(KroneckerDelta(lemma3.NEXT(n), j) - weight, T).subs(T, 0)

    def product(logit):
        """Coefficients of t and t^2 of V R^T with dV/dt = R; entry o, n is the coefficient of f_o in g_n."""
        moved = start(o, j) * T - T**2 / (2 * m) * logit(o, j)
        whole = total(moved * first(n, j, logit), j)
        return sp.diff(whole, T).subs(T, 0), sp.diff(whole, T, 2).subs(T, 0) / 2

    def S(a, b):
        return KroneckerDelta(a, b) - 1 / m

    full, modified = product(pulled), product(start)
    second = -total(G[o, i] * S(i, n), i) / (2 * m) - total(S(o, i) * G[n, i], i) / m
    a, b = sp.symbols("a b", real=True)
    norm = sp.sqrt(total(F[l, n] ** 2, l))

    def everything(token):
        return total(F[token, i], i)

    def unit_feature(token):
        return F[token, n] / norm

    speed = lemma1.bag_rate(unit_feature, lambda token: a * unit_feature(token) + b * everything(token), j)
    return {
        "residual at order t, full flow": slope(pulled) - sp.diff(first(n, j, pulled), T),
        "residual at order t, modified flow": slope(start) - sp.diff(first(n, j, start), T),
        "V R^T at order t": full[0] - S(o, n),
        "V R^T at order t^2, full flow": full[1] - second,
        "V R^T at order t^2, modified flow": modified[1] + S(o, n) * sp.Rational(3, 2) / m,
        "the part along f_n is removed": speed - b * lemma1.bag_rate(unit_feature, everything, j),
    }


def _late(late_ratio, late_rate):
    """s_inf from the leading order of both flows, eta_Y t/K as time."""
    k, m = sp.symbols("K M", positive=True)
    A, B = sp.symbols("A B", positive=True)
    wide = 1 + (k - 1) * RHO
    # Rates of a, b, c: the residual at n, -exp(-u) at other classes, -exp(-w) elsewhere, times t.
    a, b, c = (k - 1) * A + (m - k) * B, -A, -B
    u, w = (1 - RHO) * (a - b), (a - b) + wide * (b - c)
    found = sp.solve([u - 1, w - 1], [A, B], dict=True)[0]
    apart, below = 1 / (1 - RHO), (1 - 1 / (1 - RHO)) / wide  # (a - b)/ln t and (b - c)/ln t
    full = (apart * A - (m - k) * below * B).subs(found)
    modified = (m - 1) ** 2 / m**2 * theorem1.beta(m, k, RHO)  # gamma beta over ln t/t
    kappa = (1 + (m - 1) * RHO) / (1 - RHO)
    # The same two rates times D = 1 + (K - 1) exp(-u) + (M - K) exp(-w), at any time and for p = exp(u), q = exp(w).
    p, q = sp.symbols("p q_w", positive=True)
    fall, rise = {A: 1 / p, B: 1 / q}, sp.Symbol("y", positive=True)  # y = q/p
    u_rate, w_rate = u.subs(fall), w.subs(fall)
    return {
        "late: w - u is driven to ln kappa": w_rate - u_rate + (1 - RHO) / q * (q / p - kappa),
        "late: the rate of exp(u)": (p * u_rate).subs(q, rise * p) - late_rate(m, k, RHO, rise),
        "late: exp(u)/t": 1 / found[A] - late_rate(m, k, RHO, kappa),
        "late: A = kappa B": found[A] - kappa * found[B],
        "late: u = ln t": (1 - RHO) * apart - 1,
        "late: w = ln t": apart + wide * below - 1,
        "late: s_inf, all K and M": sp.cancel(full / modified) - late_ratio(m, k, RHO),
        "late: 1/(1 - rho) at K = M": late_ratio(k, k, RHO) - 1 / (1 - RHO),
        "late: s_inf by kappa": late_ratio(m, k, RHO) - (k * kappa**2 + (2 * kappa - 1) * (m - k)) / (m * kappa * wide),
    }


def _explicit(k, m, slowdown, first_correction):
    """s and s_1 from the flows: softmax and features are written out and expanded in t; eta_Y = 1."""
    # One token common to all classes, and one distinct token each: rho is the squared feature of the common token. A
    # rational parametrisation of the circle of features keeps all expressions rational.
    u = sp.Symbol("u", positive=True)
    common, distinct = 2 * u / (1 + u**2), (1 - u**2) / (1 + u**2)
    rho = common**2
    F = sp.zeros(k + 1, k)
    for n in range(k):
        F[0, n], F[n + 1, n] = common, distinct
    directions = {"full": F, "modified": F - F * lemma3.correction(equal_overlaps(k, rho))}
    speeds = {name: _speed(F, direction.applyfunc(sp.cancel), k, m) for name, direction in directions.items()}
    s = slowdown(m, k, rho)
    s_1 = first_correction(m, k, rho, 1)
    vanishing = {}
    for token in range(k + 1):
        first, second = speeds["full"][token]
        base, base_second = speeds["modified"][token]
        vanishing[f"speed at order t, K = {k}, M = {m}, token {token}"] = first - s * base
        vanishing[f"speed at order t^2, K = {k}, M = {m}, token {token}"] = second - s * (base_second + s_1 * base)
    return vanishing


def _speed(F, direction, k, m):
    """Coefficients of t and t^2 of the speed of each logit, when class n moves Y along direction_n r_n^T."""
    uniform = [unit(m, n) - sp.ones(m, 1) / m for n in range(k)]
    first = sum((direction.col(n) * uniform[n].T / k for n in range(k)), sp.zeros(F.rows, m))
    # Residuals to first order, by differentiating softmax(t Y_1^T f_n) at t = 0.
    first = first.applyfunc(sp.cancel)
    change = [-(softmax(T * first.T * F.col(n)).diff(T).subs(T, 0)).applyfunc(sp.cancel) for n in range(k)]
    second = sum((direction.col(n) * change[n].T / (2 * k) for n in range(k)), sp.zeros(F.rows, m))
    total = [sp.zeros(F.rows, 1), sp.zeros(F.rows, 1)]
    for n in range(k):
        f = F.col(n)
        for order, signal in enumerate((first * uniform[n], second * uniform[n] + first * change[n])):
            total[order] += f.multiply_elementwise(signal - f * f.dot(signal)) / k
    return list(zip(*total, strict=True))
