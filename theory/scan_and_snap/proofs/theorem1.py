"""Theorem 1, (9), (85)-(92): the gradient g_n that the modified decoder sends back, and the sign of xi_n.

From Lemma 5: after the growth h of a class, row n of W = F^T Y is (M - 1) h zeta_n and the residual r_n is
(M - 1)/(M - 1 + exp(M h)) zeta_n. If visits differ, class n has the growth (1 + theta_n) h and 1 + sigma times this
residual (Lemma 12, Corollary 1). From Lemma 3: Y = F (F^T F)^{-1} W from a zero start. Then g_n = Y r_n. K and M are
symbols: sums run over tokens and classes, and the inverse of F^T F is one of matrix symbols.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma3, lemma5
from theory.symbolic import Claim, Derivation, Scalar, joined
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import Even, equal_overlaps, identity, matrix, named

OTHERS, H, Q = sp.symbols("m h q", positive=True)  # M - 1, the growth, and rho = 1/(1 + q) between 0 and 1
M = OTHERS + 1
RHO = 1 / (1 + Q)


def gamma(m: sp.Expr, h: sp.Expr) -> sp.Expr:
    """(85): gamma = (M - 1)^2 h / (M - 1 + exp(M h)), with h = h(t/K)."""
    return (m - 1) ** 2 * h / (m - 1 + sp.exp(m * h))


def coefficients(m: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(q_1, q_0): the entries of u_n at n and elsewhere."""
    return m / (m - 1), -m / (m - 1) ** 2


def beta(m: sp.Expr, k: Scalar, rho: sp.Expr) -> sp.Expr:
    """beta_{nn'} for equal overlaps rho."""
    return m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))


def sharp_bound(k: sp.Expr) -> sp.Expr:
    """(a): bound on |lambda_1(E)| below which xi_n > 0 for every M; a star of overlaps fails just above it."""
    return 1 / sp.sqrt(k - 2)


def xi_by_blocks(q_1: sp.Expr, q_0: sp.Expr, quadratic: sp.Expr, total: sp.Expr) -> sp.Expr:
    """(a): xi_n/gamma from g^T S^{-1} g and 1^T S^{-1} g; S is the other classes' Gram matrix, g has n's overlaps."""
    return (q_1 * quadratic - q_0 * total) / (1 - quadratic)


def derive(
    *,
    gamma: Claim = gamma,
    coefficients: Claim = coefficients,
    correction: Claim = lemma3.correction,
    beta: Claim = beta,
    sharp_bound: Claim = sharp_bound,
    xi_by_blocks: Claim = xi_by_blocks,
) -> Derivation:
    """The form of g_n for any overlaps, beta for equal overlaps, and the sharp condition for xi_n > 0, for all K, M."""
    q_1, q_0 = coefficients(M)
    vanishing, signed = joined(
        _backpropagated(gamma, coefficients, correction),
        _written_out(2, 3, gamma, coefficients, correction),
        (_equal_overlaps(beta, q_1, q_0), _signs(beta)),
        _three_classes(q_1, q_0),
        _sharp(q_1, q_0, sharp_bound, xi_by_blocks),
        _counter_examples(),
    )
    return Derivation(
        statement="Theorem 1",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Lemma 3's step moves Y in the span of F: $Y = F(F^TF)^{-1}W = F(I-E')W$, and $g_n = Y r_n = F(I-E')\,W"
            r" r_n$.",
            r"$w_{n'}\cdot r_n = \frac{(M-1)^2 h}{M-1+e^{Mh}}\,\zeta_{n'}\cdot\zeta_n$, with $\zeta_n\cdot\zeta_n ="
            r" \frac{M}{M-1} = q_1$ and $\zeta_{n'}\cdot\zeta_n = -\frac{M}{(M-1)^2} = q_0$: $W r_n = \gamma u_n$,"
            r" where $u_n$ has $q_1$ at $n$ and $q_0$ elsewhere. Where visits differ, it is $\gamma(1+\sigma)(I+\Theta)"
            r"u_n$, with the $\theta_n$ of Lemma 12 and the $\sigma$ of Corollary 1, which gives (86) and (88).",
            r"(9): $\iota_n = ((I-E')u_n)_n$, $\beta_{nn'} = -((I-E')u_n)_{n'}$.",
            r"With $G = F^TF$: $\xi_n/\gamma = \sum_{n'\ne n}\beta_{nn'}G_{nn'} = (G^{-1}u_n)_n - (G G^{-1}u_n)_n ="
            r" (G^{-1}u_n)_n - q_1$.",
            r"Equal overlaps: $\beta = (\rho q_1 - q_0)/((1-\rho)(1+(K-1)\rho)) > 0$ for $0 < \rho < 1$ and every K.",
            r"In general, with g the column of overlaps of n and S the Gram matrix of the others: $\xi_n/\gamma ="
            r" (q_1\,g^TS^{-1}g - q_0\,1^TS^{-1}g)/(1 - g^TS^{-1}g)$. The first term is positive unless n overlaps with"
            r" no class. With $A = S - I \ge 0$ entry by entry, $S^{-1}1 = (I-A^2)^{-1}(1 - A1)$, where $(I-A^2)^{-1}"
            r" \ge I$ entry by entry for $\lambda_1(A) < 1$, and a row of A has $K-2$ entries at most: its sum is at"
            r" most $\sqrt{K-2}$ times its norm, hence at most $\sqrt{K-2}\,\lambda_1(E)$. So $\lambda_1(E) <"
            r" 1/\sqrt{K-2}$ makes the second positive, too, for every M and K. (The paper asks for $1/K$.)",
            r"That is sharp: if the others form a star of $K-2$ leaves with overlaps a, $\lambda_1 = a\sqrt{K-2}$ and"
            r" the entry of $S^{-1}1$ at the centre is $\frac{1-(K-2)a}{1-(K-2)a^2}$, negative from $\lambda_1 ="
            r" 1/\sqrt{K-2}$ on; class n with a small enough overlap with the centre alone then has $\xi_n < 0$.",
            r"The lower half of Assumption 2 is enough, too, unless the features are nearly dependent: $\|g\| ="
            r" \|Ee_n\| \ge \mu = \min|\lambda_i|$, $g^TS^{-1}g \ge \|g\|^2/(1+\lambda_1)$ and $|1^TS^{-1}g| \le"
            r" \sqrt{K-1}\,\|g\|/(1-\lambda_1)$ give $\xi_n > 0$ for $\mu\frac{1-\lambda_1}{1+\lambda_1} >"
            r" \frac{\sqrt{K-1}}{M-1}$, $\lambda_1 < 1$.",
            r"Single $\beta_{nn'}$ may be negative: for overlaps in a chain 1-2-3, $\beta_{13}$ is, for large M.",
        ),
        scope="all $K$ and $M$, any linearly independent features, any visits; $\\xi_n > 0$ for the same number of"
        " visits of every class. Written out besides: $g_n$ for $K = 2$, $M = 3$, the sign of $\\xi_n$ for $K = 3$, and"
        " counter-examples",
        sizes={},
        prose=(
            "the steps of the modified gradient add up from zero weights on",
            "the sign of xi for any overlaps: Gram matrices are positive definite, a row of a block of E has at most"
            " the spectral norm of E, and a Neumann series has no negative terms",
            "the star just above the bound: eigenvalues are continuous",
            "the lower half of Assumption 2: quadratic forms lie between their eigenvalues",
        ),
    )


def _backpropagated(gamma, coefficients, correction):
    """g_n = Y r_n against (9) for all K and M: W r_n by entries, Y by matrices, the sum over classes by entries."""
    tokens, classes = lemma3.M, lemma3.K
    j, n, other, a = index("j", tokens), index("n", classes), index("o", classes), index("a", classes)
    at, off = lemma5.zeta(tokens)
    q_1, q_0 = coefficients(tokens)
    F, G, c = entries("F"), entries("G"), entries("c")

    def zeta(of, token):
        return off + (at - off) * KroneckerDelta(lemma3.NEXT(of), token)

    def rest(of, summand):
        return total((1 - KroneckerDelta(of, a)) * summand, a)

    # Unequal visits: h_n = (1 + theta_n) h, and the residual of class n is 1 + sigma times the residual at h.
    theta, sigma = entries("theta"), sp.Symbol("sigma", real=True)
    rows = (tokens - 1) * (1 + theta[other]) * H * zeta(other, j)
    left = (1 + sigma) * lemma5.residual(tokens, H) * zeta(n, j)
    u = q_0 + (q_1 - q_0) * KroneckerDelta(n, other)
    visited = (1 + sigma) * (1 + theta[other]) * u
    xi = rest(n, -c[a] * G[n, a])
    return {
        "W r_n = gamma (1 + sigma) (1 + theta) u_n": total(rows * left, j) - gamma(tokens, H) * visited,
        # c = (I - E') u_n: iota_n is its entry at n, beta_nn' minus the others.
        "(9) by entries": total(F[j, a] * c[a], a) - (c[n] * F[j, n] - rest(n, -c[a] * F[j, a])),
        # u_n = G c, so that its entry at n is q_1; G_nn = 1 for features of norm one.
        "xi by c = G^{-1} u_n": xi - (c[n] - total(G[n, a] * c[a], a)) - (G[n, n] - 1) * c[n],
        **_directions(correction),
    }


def _directions(correction: Claim) -> dict[str, Any]:
    """Y in the span of F: its step against Y = F G^{-1} W, and g_n, by matrix symbols."""
    k, m = lemma3.K, lemma3.M
    gram, F = sp.MatrixSymbol("G", k, k), sp.MatrixSymbol("F", m, k)
    e, r, W = sp.MatrixSymbol("e", k, 1), sp.MatrixSymbol("r", m, 1), sp.MatrixSymbol("W", k, m)
    weights = F * gram.I * W
    direction = F * e - F * correction(gram) * e
    return {
        # W moves by e_n r_n^T, so that F G^{-1} W moves as Y does.
        "Y = F G^{-1} W along a step": direction * r.T - F * gram.I * (e * r.T),
        "F^T Y = W": gram * (gram.I * W) - W,
        "g_n = F (I - E') W r_n": weights * r - F * (identity(k) - correction(gram)) * (W * r),
    }


def _written_out(k, m, gamma, coefficients, correction):
    """g_n = Y r_n against gamma F (I - E') u_n, in full vectors, with Y from the modified flow."""
    gram_entries = {(i, j): sp.Symbol(f"G_{i}{j}", real=True) for i in range(k) for j in range(i, k)}
    gram = sp.Matrix(k, k, lambda i, j: gram_entries[min(i, j), max(i, j)])
    F = matrix("F", m, k)
    at, off = lemma5.zeta(sp.Integer(m))
    zeta = sp.Matrix(k, m, lambda n, j: at if n == j else off)
    Y = F * gram.inv() * ((m - 1) * H * zeta)
    R = lemma5.residual(sp.Integer(m), H) * zeta
    q_1, q_0 = coefficients(sp.Integer(m))
    vanishing = {}
    for n in range(k):
        u = sp.Matrix([q_1 if j == n else q_0 for j in range(k)])
        claim = gamma(sp.Integer(m), H) * F * (sp.eye(k) - correction(gram)) * u
        vanishing.update(named(f"g_{n}, K = {k}, M = {m}", Y * R.row(n).T - claim))
    return vanishing


def _equal_overlaps(beta, q_1, q_0):
    """beta and xi for a symbol K, through the inverse of (1 - rho) I + rho 1 1^T."""
    k = sp.Symbol("K", positive=True)
    gram = Even(1 - RHO, RHO, k)
    inverse = gram.inverse()
    product = gram * inverse
    # u_n is column n of (q_1 - q_0) I + q_0 1 1^T.
    weights = inverse * Even(q_1 - q_0, q_0, k)
    found = -weights.ones
    xi = (weights.diagonal + weights.ones) - q_1
    return {
        "inverse, diagonal part": product.diagonal - 1,
        "inverse, constant part": product.ones,
        "beta, equal overlaps": found - beta(M, k, RHO),
        "xi, equal overlaps": (k - 1) * found * RHO - xi,
        "beta through q_1, q_0": found - (RHO * q_1 - q_0) / ((1 - RHO) * (1 + (k - 1) * RHO)),
    }


def _signs(beta):
    extra = sp.Symbol("j", nonnegative=True)
    k = 2 + extra
    # Chain 1-2-3 with overlaps 1/2: the entry of (I - E') u_1 that gives -beta_13, as M -> infinity.
    chain = sp.Matrix([[1, sp.Rational(1, 2), 0], [sp.Rational(1, 2), 1, sp.Rational(1, 2)], [0, sp.Rational(1, 2), 1]])
    return {
        "beta > 0, equal overlaps": (beta(M, k, RHO), "> 0"),
        "xi > 0, equal overlaps": (beta(M, k, RHO) * (k - 1) * RHO, "> 0"),
        "a single beta can be negative": (-chain.inv()[2, 0], "< 0"),
        "diagonal of E' <= 0 (Lemma 16)": (1 - equal_overlaps(3, RHO).inv()[0, 0], "<= 0"),
    }


def _three_classes(q_1, q_0):
    """xi_1/gamma for K = 3 and any overlaps, in a form that shows its sign.

    The Gram matrix is positive definite: s = G_23 < 1 and its determinant is a positive symbol.
    """
    a, b, q, determinant = sp.symbols("a b q_s d", positive=True)
    s = 1 / (1 + q)
    gram = sp.Matrix([[1, a, b], [a, 1, s], [b, s, 1]])
    u = sp.Matrix([q_1, q_0, q_0])
    # Cramer's rule, with the determinant kept as one symbol.
    xi = (gram.adjugate() * u)[0] / determinant - q_1 * gram.det() / determinant
    gap = sp.Symbol("g", real=True)  # a - b s, of either sign
    formula = (q_1 * (gap**2 + b**2 * (1 - s**2)) - q_0 * (a + b) * (1 - s)) / determinant
    difference = xi - formula.subs(gap, a - b * s)
    return {"xi, K = 3, any overlaps": difference}, {"xi > 0, K = 3, any overlaps": (formula, "> 0")}


def _sharp(q_1, q_0, sharp_bound, xi_by_blocks):
    """xi_n by the block inverse; its sign by the resolvent; a star of overlaps, by which the bound is sharp."""
    a, b, x, r = sp.symbols("a b lambda r", positive=True)
    size_of = size("n")
    S, g = sp.MatrixSymbol("S", size_of, size_of), sp.MatrixSymbol("g", size_of, 1)
    # (G^{-1} u_n)_n = (1, -S^{-1} g)^T (q_1, q_0 1)/(1 - a) with a = g^T S^{-1} g, b = 1^T S^{-1} g.
    first = (q_1 - q_0 * b) / (1 - a)
    below = g - S * (S.I * g)
    one, A = sp.Identity(size_of), sp.MatrixSymbol("A", size_of, size_of)  # S = I + A
    R, row = size("R"), entries("a")
    i, l = index("i", R), index("l", R)
    k = 4 + sp.Symbol("j", nonnegative=True)  # a star of two leaves at least
    weight = sp.Symbol("w", positive=True)  # overlap of the centre with each leaf
    centre, leaf = sp.symbols("s_c s_l", real=True)
    star = sp.solve([centre + (k - 2) * weight * leaf - 1, leaf + weight * centre - 1], [centre, leaf])[centre]
    turn = sp.solve(sp.numer(sp.together(star)), weight)[0]
    # Where n has the overlap e with the centre alone: quadratic a = e^2 c_2, total b = e c_1.
    overlap, c_1, c_2 = sp.symbols("e c_1 c_2", positive=True)
    slope = sp.diff(xi_by_blocks(q_1, q_0, overlap**2 * c_2, -overlap * c_1), overlap).subs(overlap, 0)
    least, room = sp.Symbol("mu", positive=True), sp.Symbol("s", positive=True)
    low = least**2 / (1 + x)  # g^T S^{-1} g for |g| = mu, its least
    most = room * (M - 1) * least / (1 + x) * least  # 1^T S^{-1} g, at the edge of the condition, room < 1
    return {
        "xi by blocks": first - q_1 - xi_by_blocks(q_1, q_0, a, b),
        "block inverse, rows below": below,
        "resolvent: (I - A) S = I - A^2": (one - A) * (one + A) - (one - A * A),
        "a row of R entries: R sum a^2 - (sum a)^2": (
            R * total(row[i] ** 2, i) - total(row[i], i) ** 2 - total((row[i] - row[l]) ** 2, i, l) / 2
        ),
        "a row of K - 2 entries: sum/norm": sp.sqrt(k - 2) * sharp_bound(k) - 1,
        "star: the centre": star - (1 - (k - 2) * weight) / (1 - (k - 2) * weight**2),
        "star: sign changes at the bound": sp.sqrt(k - 2) * turn - sharp_bound(k),
    }, {
        "xi > 0 by its terms": (sp.factor(xi_by_blocks(q_1, q_0, a / (a + r), b)), "> 0"),
        "star: above the centre's zero": (1 - (k - 2) * turn * (1 + r), "< 0"),
        "star: the denominator below eigenvalue 1": (1 - (k - 2) * (1 / (sp.sqrt(k - 2) * (1 + r))) ** 2, "> 0"),
        "star: xi of a class that touches it lightly": (sp.factor(slope), "< 0"),
        "lower half of Assumption 2: the edge": (
            sp.factor(sp.expand(q_1 * low + q_0 * most).subs(room, 1 / (1 + r))),
            "> 0",
        ),
    }


def _counter_examples():
    """xi_1 < 0 where Assumption 2 does not hold.

    K = 4, M = 10: class 2 overlaps strongly with 3 and 4 and weakly with 1, |lambda_1(E)| = 0.85. K = 4, M = 1000:
    overlaps that obey |lambda_i(E)| >= 6/sqrt(M), so that only |lambda_1(E)| < 1/K is broken.
    """
    weak, strong = sp.Rational(1, 1000), sp.Rational(3, 5)
    gram = sp.Matrix([[1, weak, 0, 0], [weak, 1, strong, strong], [0, strong, 1, 0], [0, strong, 0, 1]])
    a, b, c, d = sp.Rational("0.35184"), sp.Rational("0.28356"), sp.Rational("0.806225734519"), sp.Rational("0.3")
    strict = sp.Matrix([[1, a, b, b], [a, 1, c, c], [b, c, 1, d], [b, c, d, 1]])
    value = sp.Symbol("lambda")
    polynomial = sp.Poly((strict - sp.eye(4)).charpoly(value).as_expr(), value)
    bound = sp.Rational(18974, 100_000)  # above 6/sqrt(1000)
    minors = {f"M = 1000: minor {j} of the Gram matrix": (strict[:j, :j].det(), "> 0") for j in range(2, 5)}
    return {
        "M = 1000: no eigenvalue of E below 6/sqrt(M)": sp.Integer(polynomial.count_roots(-bound, bound)),
    }, {
        "xi < 0 is possible outside Assumption 2, K = 4, M = 10": (_first_xi(gram, 10), "< 0"),
        "xi < 0 is possible with the lower half of Assumption 2, K = 4, M = 1000": (_first_xi(strict, 1000), "< 0"),
        "M = 1000: 6/sqrt(M) is below the bound used": (bound**2 - sp.Rational(36, 1000), "> 0"),
        **minors,
    }


def _first_xi(gram, m):
    q_1, q_0 = coefficients(sp.Integer(m))
    return (gram.inv() * sp.Matrix([q_1] + [q_0] * (gram.rows - 1)))[0] - q_1
