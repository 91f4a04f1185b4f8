"""The closed forms under options: weight decay, label smoothing, temperature, a schedule, momentum. Not in the paper.

The proof starts from three results. By Lemma 3 only the residual of class n moves row n of W = F^T Y. By Lemma 5 this
row stays on the line w_n = x (e_n - 1/M), x = M h. By Theorem 1 gamma is the signal that class n sends back.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import theorem1
from theory.symbolic import Claim, Derivation

ETA, ETA_Z, K, LAMBDA, TAU, T, MU, C0 = sp.symbols("eta_Y eta_Z K lambda tau t mu C_0", positive=True)
X = sp.Symbol("x", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
ODDS = sp.Symbol("r", positive=True)  # (1 - eps)/eps, which covers every eps between 0 and 1
EPS = 1 / (1 + ODDS)
M = OTHERS + 1


def smoothed_miss(m: sp.Expr, x: sp.Expr, eps: sp.Expr) -> sp.Expr:
    """The coefficient of zeta_n in (1 - eps) e_n + eps/M - alpha_n, where w_n = x (e_n - 1/M)."""
    return (m - 1) / (m - 1 + sp.exp(x)) - eps * (m - 1) / m


def smoothed_bound(m: sp.Expr, eps: sp.Expr) -> sp.Expr:
    """Where x ends under label smoothing."""
    return sp.log(1 + m * (1 - eps) / eps)


def smoothed_time(m: sp.Expr, x: sp.Expr, eps: sp.Expr) -> sp.Expr:
    """eta_Y s at the margin x, with s the time of the class."""
    a = m - 1
    rest = m - eps * a
    return a / rest * x - (a / rest + 1 / eps) * sp.log((rest - eps * sp.exp(x)) / (rest - eps))


def smoothed_signal(m: sp.Expr, x: sp.Expr, eps: sp.Expr) -> sp.Expr:
    """gamma under label smoothing."""
    return (m - 1) ** 2 * x / m * (1 / (m - 1 + sp.exp(x)) - eps / m)


def accumulated(m: sp.Expr, x: sp.Expr, k: sp.Expr, eta: sp.Expr, eta_z: sp.Expr) -> sp.Expr:
    """(128), Gamma by the margin."""
    return eta_z * k * (m - 1) ** 2 * (x / m) ** 2 / (2 * eta)


def decayed_rate(m: sp.Expr, x: sp.Expr, k: sp.Expr, eta: sp.Expr, decay: sp.Expr) -> sp.Expr:
    """dx/dt under weight decay, in the time of the run."""
    return eta * (m / (k * (m - 1 + sp.exp(x))) - decay * x)


def decayed_accumulated(
    m: sp.Expr, x: sp.Expr, squares: sp.Expr, k: sp.Expr, eta: sp.Expr, eta_z: sp.Expr, decay: sp.Expr
) -> sp.Expr:
    """Gamma under weight decay; ``squares`` is int_0^t x^2."""
    return accumulated(m, x, k, eta, eta_z) + eta_z * k * (m - 1) ** 2 / m**2 * decay * squares


def last_signal(m: sp.Expr, x: sp.Expr, k: sp.Expr, decay: sp.Expr) -> sp.Expr:
    """gamma at the fixed point under weight decay."""
    return (m - 1) ** 2 * k * decay * (x / m) ** 2


def last_exponent(signal: sp.Expr, decay: sp.Expr, c0: sp.Expr) -> sp.Expr:
    """B at the fixed point, where gamma is ``signal`` and Z decays as Y does."""
    return sp.LambertW(4 * signal / (decay * c0)) / 4


def cooled_rate(eta_z: sp.Expr, tau: sp.Expr) -> sp.Expr:
    """The learning rate of z/tau under the temperature tau."""
    return eta_z / tau**2


def momentum_clock(t: sp.Expr, mu: sp.Expr) -> sp.Expr:
    """Distance of the heavy-ball flow under a constant gradient, in units of the gradient."""
    return (t - (1 - sp.exp(-(1 - mu) * t)) / (1 - mu)) / (1 - mu)


def momentum_steps(n: sp.Expr, mu: sp.Expr) -> sp.Expr:
    """The clock of `momentum_clock` after n steps."""
    return (n - mu * (1 - mu**n) / (1 - mu)) / (1 - mu)


def schedule_clocks(t: sp.Expr, warm_up: sp.Expr, span: sp.Expr, floor: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The integrals of a linear warm-up, and of a cosine decay to ``floor`` that begins at t = 0."""
    fall = span * (t / span + sp.sin(sp.pi * t / span) / sp.pi) / 2
    return t**2 / (2 * warm_up), floor * t + (1 - floor) * fall


def derive(
    *,
    smoothed_miss: Claim = smoothed_miss,
    smoothed_bound: Claim = smoothed_bound,
    smoothed_time: Claim = smoothed_time,
    smoothed_signal: Claim = smoothed_signal,
    decayed_rate: Claim = decayed_rate,
    decayed_accumulated: Claim = decayed_accumulated,
    last_signal: Claim = last_signal,
    last_exponent: Claim = last_exponent,
    cooled_rate: Claim = cooled_rate,
    schedule_clocks: Claim = schedule_clocks,
    momentum_clock: Claim = momentum_clock,
    momentum_steps: Claim = momentum_steps,
) -> Derivation:
    """Each closed form, inserted into its equation."""
    # Class n has the logits x (1 - 1/M) for its own next token, and -x/M for each of the m others.
    own = (1 - EPS) + EPS / M - sp.exp(X) / (OTHERS + sp.exp(X))
    other = EPS / M - 1 / (OTHERS + sp.exp(X))
    miss = smoothed_miss(M, X, EPS)  # zeta_n is 1 at n and -1/m elsewhere
    # w_n = x (m/M) zeta_n, so that dw_n/ds = eta_Y miss zeta_n is dx/ds = eta_Y miss M/m.
    speed = ETA * miss * M / OTHERS
    along = sp.diff(smoothed_time(M, X, EPS), X) * speed - ETA
    # g_n = F (I - E') [w_n' . r_n]: gamma is (m/M) x, of w_n', times the miss, of r_n.
    sent = OTHERS / M * X * miss
    signal = smoothed_signal(M, X, EPS)

    # Class n learns in one step out of K, and decays in each.
    plain = M * ETA / (K * (OTHERS + sp.exp(X)))
    rate = decayed_rate(M, X, K, ETA, LAMBDA)
    gamma = theorem1.gamma(M, X / M)
    squares = sp.Symbol("q", positive=True)
    whole = decayed_accumulated(M, X, squares, K, ETA, ETA_Z, LAMBDA)
    moved = sp.diff(whole, X) * rate + sp.diff(whole, squares) * X**2
    # At the fixed point lambda is M/(K x (m + exp(x))).
    fixed = {LAMBDA: M / (K * X * (OTHERS + sp.exp(X)))}
    # With w = W(..), exp(4 B) = exp(w) and w exp(w) = 4 gamma/(lambda C_0): gamma by w.
    w = sp.Symbol("w", positive=True)
    sent_last = w * sp.exp(w) * LAMBDA * C0 / 4
    exponent = last_exponent(sent_last, LAMBDA, C0).subs(sp.LambertW(w * sp.exp(w)), w)

    # J depends on Z through u = z/tau alone.
    z = sp.Symbol("z", real=True)
    value = sp.Function("J")
    slope = sp.Symbol("j", real=True)  # J'(u)
    pushed = sp.diff(value(z / TAU), z).doit().replace(sp.Subs, lambda *_: slope)
    seen = ETA_Z * pushed / TAU

    # y(t) = x(c(t)) has the velocity c' x'(c): the scheduled flow, if c' is the factor of the rates.
    warm, span, floor = sp.symbols("w S a", positive=True)
    factor = floor + (1 - floor) * (1 + sp.cos(sp.pi * T / span)) / 2
    rise, fall = schedule_clocks(T, warm, span, floor)

    speed_up = sp.diff(momentum_clock(T, MU), T)
    n = sp.Symbol("n", integer=True, nonnegative=True)
    step = momentum_steps(n + 1, MU) - momentum_steps(n, MU)
    vanishing = {
        "label smoothing: residual at the class": own - miss,
        "label smoothing: residual elsewhere": other + miss / OTHERS,
        "label smoothing: implicit form along the flow": along,
        "label smoothing: implicit form at the start": smoothed_time(M, sp.Integer(0), EPS),
        "label smoothing: no residual at the bound": miss.subs(X, smoothed_bound(M, EPS)),
        "label smoothing: gamma": signal - sent,
        "label smoothing: (128)": sp.diff(accumulated(M, X, K, ETA, ETA_Z), X) * speed / K - ETA_Z * signal,
        "weight decay: rate": rate - (plain - ETA * LAMBDA * X),
        "weight decay: Gamma along the flow": moved - ETA_Z * gamma,
        "weight decay: gamma at the fixed point": (gamma - last_signal(M, X, K, LAMBDA)).subs(fixed),
        "weight decay: fixed point of attention": sent_last * sp.exp(-4 * exponent) / C0 - LAMBDA * exponent,
        "temperature: rate of z/tau": seen - cooled_rate(ETA_Z, TAU) * slope,
        "schedule: clock of a warm-up": sp.diff(rise, T) - T / warm,
        "schedule: clock of a cosine": sp.diff(fall, T) - factor,
        "schedule: clocks at the start": rise.subs(T, 0) ** 2 + fall.subs(T, 0) ** 2,
        "momentum: velocity": sp.diff(speed_up, T) - (1 - (1 - MU) * speed_up),
        "momentum: velocity at the start": speed_up.subs(T, 0),
        "momentum: clock at the start": momentum_clock(sp.Integer(0), MU),
        "momentum: steps": step - (MU * (step.subs(n, n - 1)) + 1),
        "momentum: first step": momentum_steps(sp.Integer(1), MU) - 1,
    }
    signed = {
        "label smoothing: one bound, which is approached": (sp.diff(miss, X), "< 0"),
        "weight decay: one fixed point, which is approached": (sp.diff(rate, X), "< 0"),
        "weight decay: it starts upwards": (rate.subs(X, 0), "> 0"),
    }
    return Derivation(
        statement="Closed forms under options",
        vanishing=vanishing,
        signed=signed,
        steps=STEPS,
        scope=r"all $M > 1$, $K$, rates, $0 < \epsilon < 1$, $\lambda, \tau > 0$, $0 \le \mu < 1$; momentum for a"
        " constant gradient, B for the xi of Theorem 4 with a constant C_0",
        sizes={},
        prose=("a rate that falls in x and is positive at 0 has one zero, which is approached",),
    )


STEPS = (
    r"Label smoothing: on Lemma 5's line $w_n = x(e_n - \frac1M)$ the residual is"
    r" $\left(\frac{M-1}{M-1+e^x} - \epsilon\frac{M-1}{M}\right)\zeta_n$: the line stays, and $x$ rises to"
    r" $x_\infty = \ln(1 + M\frac{1-\epsilon}{\epsilon})$. As $\gamma\,dt \propto x\,dx$, (128) stays too.",
    r"Weight decay: $\dot x = \frac{M\eta_Y}{K(M-1+e^x)} - \eta_Y\lambda x$ falls in $x$ from a positive value:"
    r" one fixed point, with $\gamma_\infty = (M-1)^2K\lambda h_\infty^2$.",
    r"There $\eta_Z\gamma_\infty e^{-4B}/C_0 = \eta_Z\lambda B$, so that $4Be^{4B} = 4\gamma_\infty/(\lambda"
    r" C_0)$.",
    r"Temperature: $J$ depends on $u = z/\tau$; $\dot u = \dot z/\tau = \frac{\eta_Z}{\tau^2}\partial_u J$.",
    r"Schedule: $y(t) = x(c(t))$ has $\dot y = \dot c\,\dot x(c)$: with $\dot c = $ the factor of all rates it"
    r" is the scheduled flow.",
    r"Momentum: $\dot v = g - (1-\mu)v$ with constant $g$ is $v = g\frac{1-e^{-(1-\mu)t}}{1-\mu}$.",
)
