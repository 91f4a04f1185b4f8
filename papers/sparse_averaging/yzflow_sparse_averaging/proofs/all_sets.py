r"""Random signs serve all sets: restricted isometry by concentration and a union bound, with explicit constants.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), Theorem 2. That isometry of order 2q gives every set of q
tokens its query is `isometry_gives_certificates` in Coq; here stands the probability of the isometry.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

DELTA, NET = sp.Rational(9, 40), sp.Rational(1, 32)  # constant of the isometry; how fine the net is


def largest_score(delta: sp.Expr) -> sp.Expr:
    """Bound on |<w, u_i>| off the set, by Candes and Tao's iteration with isometry of order 2q."""
    return delta / (1 - (1 + sp.sqrt(2)) * delta)


def tail(t: sp.Expr) -> sp.Expr:
    """Exponent c: | |sum_i x_i u_i|^2 - 1 | >= t has a probability of at most 2 exp(-m c) for each |x| = 1."""
    return t**2 / 4 - t**3 / 6


def deviation(delta: sp.Expr, net: sp.Expr) -> sp.Expr:
    """How much points of the net may deviate, if all unit vectors may by delta."""
    return (1 - 2 * net) * delta


def net_points(net: sp.Expr) -> sp.Expr:
    """Points of the net, for each dimension."""
    return 1 + 2 / net


def dimension(n_tokens: sp.Expr, q: sp.Expr, failure: sp.Expr) -> sp.Expr:
    """m that is enough for all sets of q tokens, but for a probability ``failure``."""
    return 210 * q * (sp.log(n_tokens / q) + sp.Rational(9, 2)) + 105 * sp.log(2 / failure)


def derive(
    *,
    largest_score: Claim = largest_score,
    tail: Claim = tail,
    deviation: Claim = deviation,
    net_points: Claim = net_points,
    dimension: Claim = dimension,
) -> Derivation:
    """Both tails of a sum of squares, the net, and the union over supports and points."""
    x, n, q, norm = sp.symbols("x n q A", positive=True)
    failure, net = sp.symbols("p eta", positive=True)
    t = sp.Symbol("t", positive=True)
    h = t / (2 * (1 + t))
    # Logarithms of the bounds for one row: E exp(hY^2) <= (1 - 2h)^(-1/2), E exp(-hY^2) <= 1 - h + 3h^2/2.
    above = -h * (1 + t) - sp.log(1 - 2 * h) / 2
    below = h * (1 - t) + sp.log(1 - h + 3 * h**2 / 2)
    vanishing, signed = {}, {}
    for name, exponent in (("above", above), ("below", below)):
        room = -exponent - tail(t)
        vanishing[f"tail {name}: none without a deviation"] = sp.simplify(room.subs(t, 0))
        rises = sp.diff(room, t).subs(t, x / (2 * (1 + x)))  # t from 0 to 1/2
        signed[f"tail {name}: rises with t"] = (sp.factor(sp.together(rises)), ">= 0")
    # |x'Ax - z'Az| <= 2 eta |A| for neighbours x and z.
    vanishing["net: a norm from its points"] = norm - 2 * net * norm - deviation(norm, net)
    vanishing["net: points, by volumes of balls of radius eta/2"] = (1 + net / 2) / (net / 2) - net_points(net)
    exponent = tail(deviation(DELTA, NET))
    supports = 2 * q * (1 + sp.log(n / q) - sp.log(2))  # binomial(N, 2q) <= (eN/2q)^(2q)
    cost = supports + 2 * q * sp.log(net_points(NET)) + sp.log(2 / failure)
    promised = sp.expand(dimension(n, q, failure), log=True)
    slope, share = sp.Symbol("s", nonnegative=True), sp.Symbol("r", nonnegative=True)
    # ln(N/q) = s and ln(2/p) = r are at least zero, and 2q ln.. is compared for q = 1: both sides are linear in q.
    both = [
        side.subs({n: q * sp.exp(slope), failure: 2 * sp.exp(-share)}).subs(q, 1)
        for side in (promised, cost / exponent)
    ]
    gap = sp.expand(sp.expand_log(both[0] - both[1], force=True))
    for name, symbol in (("for ln(N/q)", slope), ("for ln(2/p)", share)):
        signed[f"union: {name}"] = (gap.coeff(symbol), ">= 0")
    signed["union: without them"] = (gap.subs({slope: 0, share: 0}), ">= 0")
    signed["certificate: at most 1/2"] = (sp.Rational(1, 2) - largest_score(DELTA), "> 0")
    kappa = sp.sqrt(2) * DELTA / (1 - DELTA)
    vanishing["certificate: a geometric series"] = sp.simplify(DELTA / (1 - DELTA) / (1 - kappa) - largest_score(DELTA))
    return Derivation(
        statement="Sparse averaging for all sets",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"For $|x| = 1$ and signs $\epsilon$, $Y = \sum_i x_i\epsilon_i$ has $E e^{hY^2} = E_g E e^{\sqrt{2h}gY}"
            r" \le E_g e^{hg^2} = (1-2h)^{-1/2}$, since $\cosh z \le e^{z^2/2}$, and $E Y^4 \le 3$.",
            r"$|\sum_i x_iu_i|^2$ is the mean of m such $Y^2$: Markov's inequality at $h = \frac{t}{2(1+t)}$ gives both"
            r" tails at most $e^{-mc}$, $c = \frac{t^2}4 - \frac{t^3}6$, for $t \le \frac12$.",
            r"A net of $(1 + 2/\eta)^{2q}$ points serves one support; if all deviate by at most $(1 - 2\eta)\delta$,"
            r" the support has isometry $\delta$.",
            r"$\binom N{2q} \le (eN/2q)^{2q}$ supports: with $\delta = \frac9{40}$, $\eta = \frac1{32}$ all have it,"
            r" but for a probability p, at $m \ge 210q(\ln\frac Nq + \frac92) + 105\ln\frac2p$.",
        ),
        scope="any N, q with 2q <= N and failure p <= 1; keys of m independent fair signs over sqrt(m)",
        sizes={},
        prose=(MARKOV, UNION, ITERATION),
        proves=("Theorem 2",),
    )


MARKOV = "Markov's inequality, and moments of a sum of signs are at most those of a Gaussian"
UNION = "a union bound over supports and points of a net, whose number is that of disjoint balls"
ITERATION = "Candes and Tao: scores of at most q others that are too large are corrected, again and again"
