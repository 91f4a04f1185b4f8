"""Lemmas 13 to 17 and (86)-(93): E' = I - (I + E)^{-1} and beta from the overlaps E = F^T F - I.

E is symmetric with a zero diagonal, and its entries are not negative. E and E' have the same eigenvectors v_i, so that
a claim on both is a claim on their eigenvalues lambda_i and lambda'_i; ``top`` is |lambda_1|, the largest modulus.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma3
from theory.symbolic import Claim, Derivation, indexed, joined

K = indexed.size("K")
LAMBDA = sp.Symbol("lambda", real=True)
RHO = 1 / (1 + sp.Symbol("q", positive=True))  # an overlap between 0 and 1


def entry_bound(top: sp.Expr) -> sp.Expr:
    """Lemma 13: |E_ij| is at most this."""
    return top


def corrected_eigenvalue(value: sp.Expr) -> sp.Expr:
    """Lemma 14: lambda' of lambda."""
    return value / (1 + value)


def correction_bound(top: sp.Expr, limit: sp.Expr) -> sp.Expr:
    """Lemma 15: |lambda'_i| is at most this for |lambda_1| = top <= limit < 1."""
    return top / (1 - limit)


def diagonal(quadratic: sp.Expr) -> sp.Expr:
    """Lemma 16: E'_nn by g^T S^{-1} g, with g the overlaps of n and S the Gram matrix of the other classes."""
    return -quadratic / (1 - quadratic)


def difference_bound(top: sp.Expr) -> sp.Expr:
    """Lemma 17: |E'_nn' - E_nn'|, for any signs of the entries of E."""
    return top**2 / (1 - top)


def sharp_difference_bound(top: sp.Expr) -> sp.Expr:
    """Bound of |E' - E| for non-negative entries, as the features have; two classes attain it."""
    return top**2 / (1 - top**2)


def off_bound(k: sp.Expr) -> sp.Expr:
    """(90): |E'_kn| under |lambda_1| < 1/K."""
    return 1 / (k - 1)


def beta(q_1: sp.Expr, q_0: sp.Expr, theta: Claim, correction: Claim, n: sp.Idx, other: sp.Idx) -> sp.Expr:
    """(88) without (1 + sigma), with the sign of its second term put right: beta_{n, other}.

    ``theta(n)`` is theta_n, ``correction(n, n')`` an entry of E'.
    """
    k = indexed.index("k", K)
    rest = indexed.total((1 - KroneckerDelta(k, n)) * (1 + theta(k)) * correction(k, other), k)
    return q_1 * (1 + theta(n)) * correction(n, other) + q_0 * (-(1 + theta(other)) + rest)


def iota(q_1: sp.Expr, q_0: sp.Expr, theta: Claim, correction: Claim, n: sp.Idx) -> sp.Expr:
    """(86) without (1 + sigma)."""
    k = indexed.index("k", K)
    rest = indexed.total((1 - KroneckerDelta(k, n)) * (1 + theta(k)) * correction(k, n), k)
    return q_1 * (1 + theta(n)) * (1 - correction(n, n)) - q_0 * rest


def derive(
    *,
    entry_bound: Claim = entry_bound,
    corrected_eigenvalue: Claim = corrected_eigenvalue,
    correction_bound: Claim = correction_bound,
    diagonal: Claim = diagonal,
    difference_bound: Claim = difference_bound,
    sharp_difference_bound: Claim = sharp_difference_bound,
    off_bound: Claim = off_bound,
    beta: Claim = beta,
    iota: Claim = iota,
) -> Derivation:
    """The lemmas by eigenvalues and blocks, (86) and (88) by coefficients, (93) by its factors."""
    vanishing, signed = joined(
        _spectrum(entry_bound, corrected_eigenvalue, correction_bound),
        _by_eigenvectors(corrected_eigenvalue),
        _diagonal(diagonal),
        _difference(corrected_eigenvalue, difference_bound, sharp_difference_bound),
        _lower_bound(corrected_eigenvalue, off_bound),
        _coefficients(beta, iota),
    )
    return Derivation(
        statement="Lemmas 13 to 17 and (86)-(93)",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Lemma 13: for $v = (e_i + e_j)/\sqrt2$ the zero diagonal gives $v^TEv = E_{ij}$, and $|\lambda_1| \pm"
            r" v^TEv = \sum_k (|\lambda_1| \pm\lambda_k)(v\cdot v_k)^2 \ge 0$.",
            r"Lemma 14: $I - (I+E)^{-1}$ has the eigenvalues $1 - 1/(1+\lambda_i) = \lambda_i/(1+\lambda_i)$; it needs"
            r" $\lambda_i \ne -1$ only, which linearly independent features give.",
            r"Lemma 15: the extreme is $\lambda_i = -|\lambda_1|$, where the bound with $\lambda = |\lambda_1|$ is"
            r" attained; two classes have such an eigenvalue.",
            r"Lemma 16: $E'_{nn} = 1 - (G^{-1})_{nn}$ and $(G^{-1})_{nn} = 1/(1 - g^TS^{-1}g) \ge 1$ (block inverse),"
            r" with equality for $g = 0$ only. Linear independence is all it takes: no part of Assumption 2.",
            r"Lemma 17: $\lambda' - \lambda = -\lambda^2/(1+\lambda)$, and an entry of a symmetric matrix is at most"
            r" its spectral norm. With $E \ge 0$ entry by entry, $E - E' = E^2(I-E^2)^{-1} - E^3(I-E^2)^{-1}$ is a"
            r" difference of matrices with non-negative entries, each at most the norm of the first:"
            r" $\lambda_1^2/(1-\lambda_1^2)$, which $E'_{11}$ of two classes attains.",
            r"(92): $EE' = E - E'$, whose diagonal is $-E'_{nn}$.",
            r"(88): $\beta_{nn'} = -((I-E')(I+\Theta)u_n)_{n'}$, in which $q_0(1+\theta_{n'})$ has the sign minus. As"
            r" printed, with a plus, $\beta$ at $\theta = 0$ is off by $2q_0 = -2M/(M-1)^2$.",
            r"(93): $-E'_{nn} = \sum_i \frac{\lambda_i^2}{1+\lambda_i}v_{in}^2 \ge \frac{\min\lambda_i^2}{1+1/K}$; with"
            r" $\delta_1 \ge -\frac14$ and $K\ge2$ this is at least half of $\min\lambda_i^2$, Assumption 2 makes that"
            r" $\ge 18/M$, and $3K|\lambda_1|/M < 3/M$.",
        ),
        scope=r"all $K$, any $E'$ and $\theta$: Lemmas 13 to 17, (90), (92), (93) through eigenvalues, blocks and the"
        " steps, (86) and (88) by sums over the classes; Lemma 16 at $K = 3$ written out besides",
        sizes={},
        prose=(
            "E has an orthonormal basis of eigenvectors, and an entry is at most the spectral norm",
            "Gram matrices are positive definite",
            "a Neumann series has no negative terms",
        ),
        proves=("Equations 86 to 93",),
    )


def _by_eigenvectors(corrected_eigenvalue):
    """Entries as sums over eigenvalues lambda_k = 1/g_k - 1 and eigenvectors v_k, at generic indices."""
    i, j, n, k = (indexed.index(name, K) for name in "ijnk")
    g, v = indexed.entries("g", positive=True), indexed.entries("v")
    value = 1 / g[k] - 1
    bound = sp.Symbol("b", positive=True)

    def entry(of, a, b):
        return indexed.total(of * v[a, k] * v[b, k], k)

    def both(of):
        """The quadratic form of e_i + e_j."""
        return (entry(of, i, i) + entry(of, j, j) + 2 * entry(of, i, j)) / 2

    def terms(sign):
        return indexed.total((bound + sign * value) * (v[i, k] + v[j, k]) ** 2 / 2, k)

    rest = value**2 / (1 + value)
    E = sp.MatrixSymbol("G", K, K) - sp.Identity(K)
    E_prime = lemma3.correction(sp.MatrixSymbol("G", K, K))
    one = sp.Integer(1)
    return {
        # Orthonormal v_k and E_ii = E_jj = 0 make this |lambda_1| + E_ij and |lambda_1| - E_ij.
        "Lemma 13: the sum for |lambda_1| + E_ij": terms(1) - bound * both(one) - both(value),
        "Lemma 13: the sum for |lambda_1| - E_ij": terms(-1) - bound * both(one) + both(value),
        "Lemma 14: E' as a sum": entry(one - g[k], i, j) - entry(corrected_eigenvalue(value), i, j),
        "(93): E_nn - E'_nn as a sum": entry(value - corrected_eigenvalue(value), n, n) - entry(rest, n, n),
        "(92): E E' = E - E'": E * E_prime - E + E_prime,
    }


def _spectrum(entry_bound, corrected_eigenvalue, correction_bound):
    """Lemmas 13 to 15; |lambda_i| = s <= |lambda_1| <= limit < 1, each over the same positive sum."""
    size, above, spare = sp.symbols("s a b", nonnegative=True)
    total = size + above + spare + sp.Symbol("r", positive=True)
    value, top, limit = size / total, (size + above) / total, (size + above + spare) / total
    bound = correction_bound(top, limit)
    halves = sp.Matrix([1, 1]) / sp.sqrt(2)
    two = sp.Matrix([[0, RHO], [RHO, 0]])
    vanishing = {
        "Lemma 13: quadratic form": (halves.T * two * halves)[0] - RHO,
        "Lemma 13: attained by two classes": (two - entry_bound(RHO) * sp.eye(2)).det(),
        "Lemma 14": 1 - 1 / (1 + LAMBDA) - corrected_eigenvalue(LAMBDA),
        "Lemma 15: attained by -|lambda_1|": correction_bound(RHO, RHO) + corrected_eigenvalue(-RHO),
        "Lemma 15: two classes have that eigenvalue": (two + RHO * sp.eye(2)).det(),
    }
    signed = {
        "Lemma 13: the terms of |lambda_1| + E_ij": (sp.factor(entry_bound(top) - value), ">= 0"),
        "Lemma 15: lambda_i < 0": (sp.factor(bound + corrected_eigenvalue(-value)), ">= 0"),
        "Lemma 15: lambda_i > 0": (sp.factor(bound - corrected_eigenvalue(value)), ">= 0"),
    }
    return vanishing, signed


def _diagonal(diagonal):
    """The block inverse, for any S: its first column is (1, -S^{-1} g)/(1 - g^T S^{-1} g)."""
    rest = indexed.size("n")
    S, g = sp.MatrixSymbol("S", rest, rest), sp.MatrixSymbol("g", rest, 1)
    quadratic, room = sp.Symbol("a", nonnegative=True), sp.Symbol("r", positive=True)
    first = 1 / (1 - quadratic)
    below = g - S * (S.I * g)  # times 1/(1 - a): the rows of G under the first
    entries = {(i, j): sp.Symbol(f"G_{i}{j}", real=True) for i in range(3) for j in range(i + 1, 3)}
    gram = sp.Matrix(3, 3, lambda i, j: 1 if i == j else entries[min(i, j), max(i, j)])
    column = gram[1:, 0]
    explicit = (column.T * gram[1:, 1:].inv() * column)[0]
    share, above = sp.Symbol("u", nonnegative=True), sp.Symbol("v", positive=True)
    vanishing = {
        "Lemma 16: first row of the block inverse": first - quadratic * first - 1,
        "Lemma 16: rows below": below,
        "Lemma 16: E'_nn": 1 - first - diagonal(quadratic),
        "Lemma 16: E'_11, K = 3": 1 - gram.inv()[0, 0] - diagonal(explicit),
    }
    inside = share / (share + room)  # a in [0, 1)
    signed = {
        "Lemma 16: E'_nn <= 0": (sp.factor(diagonal(inside)), "<= 0"),
        "Lemma 16: E'_nn < 0 with an overlap": (sp.factor(diagonal(above / (above + room))), "< 0"),
    }
    return vanishing, signed


def _difference(corrected_eigenvalue, difference_bound, sharp_difference_bound):
    square = LAMBDA**2 / (1 - LAMBDA**2)
    above, size = sp.Symbol("a", nonnegative=True), sp.Symbol("s", nonnegative=True)
    room = sp.Symbol("r", positive=True)
    top = (size + above) / (size + above + room)  # |lambda_1| in [0, 1), and |lambda_i| = s/(s + a + r) below it
    value = size / (size + above + room)
    two = sp.Matrix([[1, RHO], [RHO, 1]])
    vanishing = {
        "Lemma 17: lambda' - lambda": corrected_eigenvalue(LAMBDA) - LAMBDA + LAMBDA**2 / (1 + LAMBDA),
        "Lemma 17: the two halves": LAMBDA**2 / (1 + LAMBDA) - square * (1 - LAMBDA),
        "Lemma 17: the sharp bound is attained by two classes": sharp_difference_bound(RHO) + (1 - two.inv()[0, 0]),
    }
    signed = {
        "Lemma 17: lambda_i < 0": (sp.factor(difference_bound(top) - value**2 / (1 - value)), ">= 0"),
        "Lemma 17: lambda_i > 0": (sp.factor(difference_bound(top) - value**2 / (1 + value)), ">= 0"),
        "Lemma 17: sharp, first half": (sp.factor(sharp_difference_bound(top) - value**2 / (1 - value**2)), ">= 0"),
        "Lemma 17: the sharp bound is smaller": (
            sp.factor(difference_bound(RHO) - sharp_difference_bound(RHO)),
            "> 0",
        ),
    }
    return vanishing, signed


def _lower_bound(corrected_eigenvalue, off_bound):
    """(90) and the three factors of (93)."""
    extra, over = sp.symbols("j p", nonnegative=True)
    k, m = 2 + extra, sp.Symbol("M", positive=True)
    least, more = sp.Symbol("l", positive=True), sp.Symbol("b", nonnegative=True)
    any_k = sp.Symbol("K", positive=True)
    noise = sp.Symbol("nu", nonnegative=True)  # delta_1 = nu - 1/4
    small = sp.Symbol("e", positive=True)
    top = 1 / (k * (1 + small))  # |lambda_1| < 1/K
    value = sp.Symbol("lambda_i", real=True)
    shift = value - corrected_eigenvalue(value)
    vanishing = {
        "(90): at |lambda_1| = 1/K": (1 / any_k) / (1 - 1 / any_k) - off_bound(any_k),
        "(93): lambda - lambda'": shift - value**2 / (1 + value),
    }
    factor = (1 + noise - sp.Rational(1, 4)) / (1 + 1 / k)
    signed = {
        "(93): half of min lambda^2": (sp.factor(sp.together(factor - sp.Rational(1, 2))), ">= 0"),
        "(93): Assumption 2": (sp.factor((36 / m + over) / 2 - 3 * k * top / m), "> 0"),
        "(93): eigenvalues below 1/K": (
            sp.factor((least + more) ** 2 / (1 + top) - least**2 / (1 + 1 / k)),
            "> 0",
        ),
    }
    return vanishing, signed


def _coefficients(beta, iota):
    """(86), (88) against (I - E')(I + Theta) u_n, at a generic class, for a symmetric E'."""
    q_1, q_0 = sp.symbols("q_1 q_0", real=True)
    n, other, k = indexed.index("n", K), indexed.index("o", K), indexed.index("i", K)
    half, theta = indexed.entries("H"), indexed.entries("theta")

    def correction(a, b):
        return half[a, b] + half[b, a]

    def weight(a):
        u = q_0 + (q_1 - q_0) * KroneckerDelta(k, n)
        return indexed.total((KroneckerDelta(a, k) - correction(a, k)) * (1 + theta[k]) * u, k)

    arguments = (q_1, q_0, theta.__getitem__, correction, n)
    apart = 1 - KroneckerDelta(n, other)
    return {
        "(86)": weight(n) - iota(*arguments),
        "(88)": apart * (weight(other) + beta(*arguments, other)),
    }
