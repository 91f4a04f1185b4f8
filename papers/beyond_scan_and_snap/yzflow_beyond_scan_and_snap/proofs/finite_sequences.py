r"""The expected step over finite sequences: to order 1/T, between bounds at every T, and for rare tokens.

Start: the bag form of Lemma 1, v_l = E[f_l g_l - f_l^2 (f . g)] with f = (a N)/||a N|| and a_l = exp(z_l) for the
attention logits z_l. The signal g is constant, and N counts S = T - 1 independent draws from P(.|n).
`yzflow_enclose.scan_and_snap.long_enough` computes the resulting lengths for given classes.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar, joined
from theory.symbolic.indexed import entries, index, size, total

TOKENS = size("n")
ORDER = 5  # of the Taylor polynomial: odd, so that its remainder has an even power
COVARIANCE = "the counts have the covariance S (diag(P) - P P^T), and central moments of N/S above two are O(1/S^2)"
FACTORIAL = (
    "E[prod_k N_k (N_k - 1)..(N_k - i_k + 1)] = S (S - 1)..(S - s + 1) prod_k p_k^{i_k} with s the sum of all i_k, from"
    " (1 + sum_k p_k t_k)^S"
)
SIXTH = "E[x^6] is O(1/S^3), as x is a sum of products of at most two deviations of N/S"
SIZE_BIAS = "E[N_l F(N)] = S p_l E[F(N' + e_l)] with S - 1 draws in N'"
PRODUCTS = (
    "x y is within r (s + |y_0|) + |x_0| s of x_0 y_0 if x is within r of x_0, and y within s of y_0; a polynomial of"
    " w > 0 is no larger than that with the sizes of its coefficients"
)
BERNSTEIN = "a polynomial in w whose coefficients are positive after w = w_1/(1 + t) is positive for 0 < w <= w_1"


def drift(
    q: sp.Expr,
    g: sp.Expr,
    mass: Scalar,
    squares: sp.Expr,
    cubes: sp.Expr,
    along: sp.Expr,
    crossed: sp.Expr,
    gain: Scalar = 1,
) -> sp.Expr:
    """Coefficient of 1/S in v_l: q_l = a_l p_l, g_l, sum a q, sum q^2, sum a q^3, sum q g, sum a q^2 g, a_l."""
    own = g * q * (3 * cubes / squares - mass - 6 * gain * q)
    rest = along * q * (12 * gain * q**2 / squares + 3 * mass * q / squares - 15 * q * cubes / squares**2 - 2 * gain)
    return (own + rest + 6 * q**2 * crossed / squares) / (2 * squares ** sp.Rational(3, 2))


def own_drift(p: sp.Expr, squares: sp.Expr, cubes: sp.Expr) -> sp.Expr:
    """The same where g is the class's own feature, at attention logits of zero."""
    return -p / squares + p**2 * (1 / squares**2 - 3 * cubes / squares**3) + 3 * p**3 / squares**2


def remainder(power: int, y: sp.Expr) -> sp.Expr:
    """((1 + x)^(-power/2) - T_5(x))/x^6 with 1 + x = y^2, for the powers 1 and 3."""
    numbers = {1: (256, 843, 1218, 938, 378, 63), 3: (256, 1536, 5376, 11333, 14238, 10458, 4158, 693)}[power]
    return sum(one * y**k for k, one in enumerate(numbers)) / (256 * y**power * (1 + y) ** (ORDER + 1))


def rare_limit(along: sp.Expr, square: sp.Expr) -> sp.Expr:
    """Limit of E[v_l]/(S p_l) as p_l falls to zero, given the other counts N': from N' . g and ||N'||^2."""
    return -along / (1 + square) ** sp.Rational(3, 2)


def derive(
    *, drift: Claim = drift, own_drift: Claim = own_drift, remainder: Claim = remainder, rare_limit: Claim = rare_limit
) -> Derivation:
    """Half the trace of the second derivative with the covariance, the remainder's quotient, and the rare token."""
    vanishing, signed = joined(_drift(drift, own_drift), _bounds(remainder), _rare(rare_limit))
    return Derivation(
        statement="Theorem 2, finite sequences",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"$h(y) = \frac{y_lg_l}{\|y\|} - \frac{y_l^2\,y\cdot g}{\|y\|^3}$ at $y = aN/S$, whose mean is $q = ap$,"
            r" does not change when y is multiplied by a number: $\sum_{jk}q_jq_k\partial_j\partial_kh = 0$, and the"
            r" covariance $(\mathrm{diag}(aq) - qq^T)/S$ leaves $\frac1{2S}\sum_ja_jq_j\partial_j^2h$.",
            r"At a = 1, with g the feature $p/\|p\|$ of the class itself, it is $\beta_l = -\frac{p_l}{S_2} +"
            r" p_l^2\big(\frac1{S_2^2} - \frac{3S_3}{S_2^3}\big) + \frac{3p_l^3}{S_2^2}$, $S_k = \sum_jp_j^k$.",
            r"At every S: $\sum_jy_j/a_j = 1$, and by Cauchy and Schwarz $1 + x = \|y\|^2/\|q\|^2 \ge"
            r" \frac1{\|q\|^2\sum_ja_j^{-2}}$. With $1 + x = r^2$ the quotient $c(x) = \big((1+x)^{-b} -"
            r" T_5(x)\big)/x^6$, $b = \frac12, \frac32$, is a ratio of polynomials in r with positive coefficients, and"
            r" its derivative is negative: $T_5 \le (1+x)^{-b} \le T_5 + c\,x^6$ with c at the least x.",
            r"$E[y_lx^r]$ and $E[y_l^2y_jx^r]$ are polynomials in $w = 1/S$: powers of counts are sums of factorial"
            r" moments. Both bounds of $E[h]$ are polynomials in w, and a sign that their coefficients decide on $(0,"
            r" w_1]$ is that of every $S \ge 1/w_1$.",
            r"Where the same sequences make the decoder, g is a sum of $E[f_{n'}]$, which have such bounds, too: a"
            r" product of two means near polynomials is near the product of these.",
            r"Rare tokens: no f changes when all a are divided by $a_l$, so that $a_l = 1$, and N stands for aN."
            r" $E[h(N)] = Sp_l\,E\big[\frac{g_l}{\|N\|} - \frac{N_l\,N\cdot g}{\|N\|^3}\big]$ at $N = N' +"
            r" e_l$. As $p_l \to 0$ with $g_l = \kappa p_l$, $N'$ has no l, and $\frac{E[h]}{Sp_l} \to"
            r" -E\frac{N'\cdot g}{(1 + \|N'\|^2)^{3/2}}$, which is negative for every $S \ge 2$ where g is positive on"
            r" the class's other tokens.",
        ),
        scope="any numbers of tokens and classes, any probabilities, any attention logits, any signal g that stands"
        " still",
        sizes={},
        prose=(COVARIANCE, FACTORIAL, SIXTH, SIZE_BIAS, PRODUCTS, BERNSTEIN),
    )


def _step(y, g, place, j):
    """h at y, degree zero in y."""
    square = total(y(j) ** 2, j)
    return y(place) * g[place] / sp.sqrt(square) - y(place) ** 2 * total(y(j) * g[j], j) / square ** sp.Rational(3, 2)


def _drift(drift, own_drift):
    """Second derivatives of h, along each entry and along q."""
    j, k, place = (index(name, TOKENS) for name in ("j", "k", "l"))
    q, a, g = entries("q", positive=True), entries("a", positive=True), entries("g")
    moved = sp.Symbol("epsilon", real=True)

    def second(y):
        return sp.diff(_step(y, g, place, j), moved, 2).subs(moved, 0)

    sums = (a[j] * q[j], q[j] ** 2, a[j] * q[j] ** 3, q[j] * g[j], a[j] * q[j] ** 2 * g[j])
    trace = total(a[k] * q[k] * second(lambda token: q[token] + moved * sp.KroneckerDelta(token, k)), k) / 2
    along_q = second(lambda token: q[token] * (1 + moved))
    one, squares, cubes = sp.symbols("p S_2 S_3", positive=True)
    # a = 1 and g = p/sqrt(S_2): sum p g = sqrt(S_2) and sum p^2 g = S_3/sqrt(S_2).
    root = sp.sqrt(squares)
    of_own = drift(one, one / root, 1, squares, cubes, root, cubes / root)
    return {
        "order 1/T: half the second derivatives": trace
        - drift(q[place], g[place], *(total(one, j) for one in sums), a[place]),
        "order 1/T: the covariance's second part": along_q,
        "order 1/T: of the class's own feature": sp.simplify(of_own - own_drift(one, squares, cubes)),
    }


def _bounds(remainder):
    """c as a function of r: its form, its sign (positive) and its slope (negative)."""
    y = sp.Symbol("r", positive=True)
    x = y**2 - 1
    vanishing, signed = {}, {}
    for power in (1, 3):
        taylor = sum(sp.binomial(-sp.Rational(power, 2), r) * x**r for r in range(ORDER + 1))
        c = remainder(power, y)
        vanishing[f"bounds: remainder, power {power}/2"] = sp.cancel(y**-power - taylor - c * x ** (ORDER + 1))
        signed[f"bounds: above T_5, power {power}/2"] = (c, "> 0")
        signed[f"bounds: largest at the least x, power {power}/2"] = (sp.factor(sp.diff(c, y)), "< 0")
    return vanishing, signed


def _rare(rare_limit):
    """Bags with one token l among S draws, with g_l = kappa p_l."""
    p, along, square, kappa = sp.symbols("p A Q kappa", positive=True)
    norm = 1 + square
    found = kappa * p / sp.sqrt(norm) - (kappa * p + along) / norm ** sp.Rational(3, 2)
    limit = rare_limit(along, square)
    return {"rare: the limit": sp.limit(found, p, 0) - limit}, {"rare: it loses": (limit, "< 0")}
