"""The time by which the flow h lags behind the steps h*: Lemma 7 (a), third clause, (b), and Remark 2, which is false.

The lag after s steps is the time at which the flow reaches h*(s), minus s. In the margin x = M h* one step is
x -> x + d with d = M eta_Y/(M - 1 + exp(x)) (Lemma 5), and (45) gives the time of every margin (Lemma 6).
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma5, lemma6
from theory.symbolic import Claim, Derivation

X, STEP, ETA = sp.symbols("x d eta_Y", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def increment(m: sp.Expr, x: sp.Expr, step: sp.Expr) -> sp.Expr:
    """Exact increment of the lag in a step from the margin x by ``step``."""
    return sp.exp(x) * (sp.exp(step) - 1 - step) / (step * (m - 1 + sp.exp(x)))


def increment_bounds(m: sp.Expr, x: sp.Expr, step: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Lower and upper bound of the lag that a step adds."""
    share = sp.exp(x) / (m - 1 + sp.exp(x))
    return share * step / 2, share * (sp.exp(step) - 1) / 2


def early_lag(m: sp.Expr, x: sp.Expr) -> sp.Expr:
    """Bound of the lag at the margin x: below 1/2 up to x = ln M."""
    return (sp.exp(x) - 1) / (2 * m)


def enough() -> sp.Expr:
    """c of Lemma 7 (a): the lag stays below c for s <= ln(M)/eta_Y."""
    return sp.Rational(1, 2)


def late_slope() -> sp.Expr:
    """Factor c: late, the lag grows like c times the margin, which is ln(M eta_Y s) + o(1)."""
    return sp.Rational(1, 2)


def derive(
    *,
    increment: Claim = increment,
    increment_bounds: Claim = increment_bounds,
    early_lag: Claim = early_lag,
    enough: Claim = enough,
    late_slope: Claim = late_slope,
) -> Derivation:
    """The lag's increment and its bounds, their sum over early steps, and the lag's unbounded late growth."""
    eta = STEP * (OTHERS + sp.exp(X)) / M  # the rate for which a step is STEP long
    time = sp.solve(lemma6.implicit(M, X / M, ETA, sp.Symbol("t")), sp.Symbol("t"))[0].subs(ETA, eta)
    # The rate belongs to the step and is the same at both of its ends.
    later = (sp.exp(X + STEP) + OTHERS * (X + STEP) - 1) / (M * eta)
    gained = later - time - 1
    low, high = increment_bounds(M, X, STEP)
    found = increment(M, X, STEP)
    share = sp.exp(X) / (OTHERS + sp.exp(X))
    # exp(d) = 1 + d + d^2/2 + c d^2 with c >= 0, and e = (d - 2) exp(d) + d + 2 >= 0, which starts at 0 with slope 0.
    more = sp.Symbol("c", nonnegative=True)
    excess = (STEP - 2) * sp.exp(STEP) + STEP + 2
    spare = sp.Symbol("e", nonnegative=True)
    growth = sp.Symbol("g", positive=True)  # exp(x) <= exp(x') - exp(x) telescopes
    vanishing = {
        "step of the margin": M * (lemma5.step(M, X / M, eta) - X / M) - STEP,
        "increment": gained - found,
        "increment over its lower bound": found - low - share * (sp.exp(STEP) - 1 - STEP - STEP**2 / 2) / STEP,
        "increment under its upper bound": high - found - share * excess / (2 * STEP),
        "the room under the upper bound starts at 0": excess.subs(STEP, 0),
        "its slope starts at 0": sp.diff(excess, STEP).subs(STEP, 0),
        "its second derivative": sp.diff(excess, STEP, 2) - STEP * sp.exp(STEP),
        "early: starts without lag": early_lag(M, sp.Integer(0)),
        "early: the bound of one step, summed": (early_lag(M, X + STEP) - early_lag(M, X))
        - high * (OTHERS + sp.exp(X)) / M,
        "late: lag per margin, small steps": sp.limit(increment(M, X, STEP) / STEP, STEP, 0) - late_slope() * share,
        # h is concave, so that h* - h is at most the lag times the rate.
        "(b): the lag times the rate": sp.limit(late_slope() * X * lemma6.rate(M, X / M, ETA), X, sp.oo),
        "late: share of exp(x)": sp.limit(sp.exp(X) / (OTHERS + sp.exp(X)), X, sp.oo) - 1,
    }
    signed = {
        "the lag grows": (low, "> 0"),
        "room under the upper bound": (share * spare / (2 * STEP), ">= 0"),
        "room over the lower bound": (share * more * STEP, ">= 0"),
        "early: M - 1 + exp(x) >= M": ((OTHERS + 1 + growth) - M, ">= 0"),
        "early: below 1/2 at x = ln M": (enough() - early_lag(M, sp.log(M)), "> 0"),
        # D' - D = exp(x) (exp(d) - 1) and exp(x) < D, d D = M eta_Y: D grows at most linearly in s.
        "D grows by less than M eta_Y (exp(d) - 1)/d": (
            (eta * M * (sp.exp(STEP) - 1) / STEP - sp.exp(X) * (sp.exp(STEP) - 1)).subs(
                sp.exp(STEP), 1 + STEP + STEP**2 / 2 + more * STEP**2
            ),
            "> 0",
        ),
    }
    return Derivation(
        statement="Lemma 7 (a), third clause, and (b), and Remark 2",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"With $D = M-1+e^x$ a step is $d = M\eta_Y/D$, and by (45) the flow needs $[e^x(e^d-1) +"
            r" (M-1)d]/(M\eta_Y)$ for it: the lag grows by exactly $\frac{e^x}{D}\,\frac{e^d-1-d}{d} > 0$.",
            r"$d^2/2 \le e^d - 1 - d \le d(e^d-1)/2$ (series, term by term).",
            r"Early: $D \ge M$, so that a step adds at most $(e^{x'} - e^x)/(2M)$, which telescopes: the lag at the"
            r" margin $x$ is at most $(e^x-1)/(2M)$. Steps are at most $\eta_Y$ long, hence $x \le \eta_Y s \le \ln M$"
            r" for $s \le \ln(M)/\eta_Y$, and the lag is below 1/2: clause three of Lemma 7 (a) holds with $c = 1/2$,"
            r" for every $M \ge 2$ and $\eta_Y > 0$.",
            r"Late: D grows by $e^x(e^d-1) \le M(e^{\eta_Y}-1)$ a step, so that $D \le M(1 + (e^{\eta_Y}-1)s)$, and"
            r" from"
            r" $e^x \ge M-1$ on a step adds at least $\frac{M\eta_Y}{4D}$: the harmonic series, the lag has no bound.",
            r"Its rate: $d\to0$ and $e^x/D\to1$ give $\mathrm{lag}/x \to \frac12$ with $x = \ln(M\eta_Y s) + o(1)$,"
            r" that is $\mathrm{lag} \sim \frac12\ln(\eta_Y s)$. No constant c can do for all $s$.",
            r"(b): h is concave, so that $h^* - h$ is at most the lag times $\dot h = \eta_Y/(M-1+e^x)$, and"
            r" $xe^{-x} \to 0$.",
        ),
        scope=r"all $M > 1$, $\eta_Y > 0$ and $s$; sums and the harmonic series by the argument in the steps",
        sizes={},
        prose=(
            "the gains of the steps add up to the lag",
            "the sum of the steps' gains against the harmonic series",
            "a gain of at least the term of a divergent series at every step",
            "a concave function lies below its tangents",
        ),
    )
