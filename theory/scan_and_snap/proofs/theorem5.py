"""Theorem 5 and Corollary 1: the decoder weights after training on all classes, and their rate of convergence.

h_n is the growth of class n after its own visits (Lemmas 5 and 6); without sampling noise it is h(t/K) for every class.
The number K of classes and the size M of the vocabulary are symbols; two classes of three tokens are written out, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma3, lemma5, lemma6
from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, total
from theory.symbolic.model import identity, matrix, named

ETA, K, X = sp.symbols("eta_Y K x", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def weights(features: Any, correction: Any, rows: Any) -> Any:
    """(70): Y = F (I - E') W, by matrices or matrix symbols."""
    return features * (identity(correction.rows) - correction) * rows


def row(margin: sp.Expr, zeta: sp.Expr, m: sp.Expr) -> sp.Expr:
    """An entry of w_n = (M - 1) h_n zeta_n (Lemma 5)."""
    return (m - 1) * margin * zeta


def late_residual(m: sp.Expr, k: sp.Expr, eta: sp.Expr, t: sp.Expr) -> sp.Expr:
    """Leading order of the factor of zeta_n in e_n - alpha_n for t -> infinity: (M - 1) K/(M eta_Y t)."""
    return (m - 1) * k / (m * eta * t)


def theta(margin: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """theta_n of (70): h_n = (1 + theta_n) h(Nbar)."""
    return margin / mean - 1


def steps_needed(k: sp.Expr, eta: sp.Expr, eps: sp.Expr, m: sp.Expr) -> sp.Expr:
    """Corollary 1: after this many steps ||e_n - alpha_n|| <= eps, with classes in turn. Printed: a product."""
    return k / eta * (1 / eps + sp.log(m / eps))


def derive(
    *,
    weights: Claim = weights,
    row: Claim = row,
    late_residual: Claim = late_residual,
    theta: Claim = theta,
    steps_needed: Claim = steps_needed,
    sizes: Sequence[tuple[int, int]] = ((2, 3),),
) -> Derivation:
    """Y solves the modified flow from zero, and the residuals fall like 1/t.

    The proof is for all K and M; ``sizes`` are pairs (K, M) at which the flow is also written out.
    """
    vanishing, signed = _critical_point(steps_needed)
    own, mean = sp.symbols("h_n hbar", positive=True)
    vanishing["(70): (1 + theta_n) h(Nbar) = h_n"] = (1 + theta(own, mean)) * mean - own
    vanishing.update(_solves_the_flow(weights, row))
    for k, m in sizes:
        vanishing.update(_written_out(k, sp.Integer(m), weights, row))
    # Time by (45) at class time t/K, in terms of x = M h. x exp(-x) and exp(-x) vanish for t -> infinity.
    time = K * (sp.exp(X) + OTHERS * X - 1) / (M * ETA)
    ratio = lemma5.residual(M, X / M) / late_residual(M, K, ETA, time)
    small, product = sp.symbols("u v", positive=True)
    top, bottom = (sp.expand(part * sp.exp(-X)) for part in sp.fraction(sp.together(ratio)))
    late = (top / bottom).subs(X * sp.exp(-X), product).subs(sp.exp(-X), small)
    vanishing["time by (45)"] = lemma6.implicit(M, X / M, ETA, time / K)
    vanishing["x exp(-x) for t -> infinity"] = sp.limit(X * sp.exp(-X), X, sp.oo)
    vanishing["residual over its late form"] = sp.cancel(late).subs({small: 0, product: 0}) - 1
    return Derivation(
        statement="Theorem 5 and Corollary 1",
        vanishing=vanishing,
        signed=signed | {"the residual never is zero": (lemma5.residual(M, X / M), "> 0")},
        steps=(
            r"Lemma 3's step for class n is $F (F^TF)^{-1} e_n r_n^T$: from Y = 0 the columns of Y stay in the span"
            r" of F.",
            r"There $F^T Y = W$ has one solution, $Y = F (F^TF)^{-1} W = F (I - E') W$.",
            r"Row n of W moves with the visits of class n alone: $w_n = (M-1) h_n \zeta_n$ (Lemma 5), $h_n ="
            r" (1+\theta_n) h(\bar N)$, which is (70) for whatever visits; the size of $\theta_n$ is Lemma 12.",
            r"$e_n - \alpha_n = \frac{M-1}{M-1+e^{Mh}}\zeta_n$ and, by (45), $e^{Mh} = M\eta_Y t/K + 1 - (M-1)Mh$ with"
            r" $Mh = O(\ln t)$: the residual is $\frac{(M-1)K}{M\eta_Y t}\zeta_n (1 + o(1))$.",
            r"Its norm is $\epsilon$ where $M-1+e^x = \sqrt{M(M-1)}/\epsilon \le M/\epsilon$, so that $e^x/M \le"
            r" 1/\epsilon$ and $x \le \ln(M/\epsilon)$: by (45) this takes at most $\frac{K}{\eta_Y}(\frac1\epsilon +"
            r" \ln\frac{M}{\epsilon})$ steps, classes in turn. The printed bound is the product of the two terms.",
            r"$\sigma = G(N_n)/G(\bar N) - 1 > -1$, as $G > 0$, and $|\sigma| \le \eta_Y|N_n - \bar N|$ by Lemma 11.",
        ),
        scope="all $K$ and $M$, any linearly independent features, any visits; $(K, M) = (2, 3)$ written out besides",
        sizes={},
        prose=("the flow from Y = 0 has one solution",),
    )


def _solves_the_flow(weights, row):
    """dW/dt in the visits of class n by entries, with alpha = softmax(w_n), and Y by W with matrices, all K and M."""
    k, m = lemma3.K, lemma3.M
    j, l = index("j", m), index("l", m)
    n, other = index("n", k), index("o", k)
    h = entries("h")
    at, off = lemma5.zeta(m)

    def w(of, token):
        return row(h[of], off + (at - off) * KroneckerDelta(lemma3.NEXT(of), token), m)

    residual = KroneckerDelta(lemma3.NEXT(n), j) - sp.exp(w(n, j)) / total(sp.exp(w(n, l)), l)
    rate = sp.diff(w(other, j), h[n]) * lemma6.rate(m, h[n], 1)

    gram, F = sp.MatrixSymbol("G", k, k), sp.MatrixSymbol("F", m, k)
    W, e, r = sp.MatrixSymbol("W", k, m), sp.MatrixSymbol("e", k, 1), sp.MatrixSymbol("r", m, 1)
    E_prime = lemma3.correction(gram)
    step = F * e - F * E_prime * e
    return {
        "dW/dt = e_n r_n^T": rate - KroneckerDelta(n, other) * residual,
        "W at h = 0": w(n, j).xreplace({h[n]: sp.Integer(0)}),
        # F^T F = G, so that F^T Y is G times Y in the coordinates of the classes.
        "logits of class n are w_n": gram * weights(identity(k), E_prime, W) - W,
        "dY/dt is Lemma 3's step": weights(F, E_prime, e * r.T) - step * r.T,
        "(F^+)^T = F (F^T F)^{-1} = F (I - E')": F * gram.I * W - weights(F, E_prime, W),
    }


def _written_out(k, m, weights, row):
    """Derivative of Y in each class's visits against the modified gradient with alpha = softmax(Y^T f_n)."""
    gram_entries = {(i, j): sp.Symbol(f"G_{i}{j}", real=True) for i in range(k) for j in range(i, k)}
    gram = sp.Matrix(k, k, lambda i, j: gram_entries[min(i, j), max(i, j)])
    # Features in the coordinates of the classes: F^T F = G, and F itself only multiplies from the left.
    F = matrix("F", int(m), k)
    margins = sp.symbols(f"h_:{k}", positive=True)
    at, off = lemma5.zeta(m)
    W = sp.Matrix(k, m, lambda n, j: row(margins[n], at if n == j else off, m))
    E_prime = lemma3.correction(gram)
    Y = weights(F, E_prime, W)
    in_span = weights(sp.eye(k), E_prime, W)
    vanishing = named(f"Y at h = 0, K = {k}", Y.subs(dict.fromkeys(margins, 0)))
    for n in range(k):
        logits = (gram.row(n) * in_span).T  # f_n^T Y
        exps = logits.applyfunc(lambda entry: sp.exp(sp.cancel(entry)))
        residual = sp.Matrix([int(j == n) - exps[j] / sum(exps) for j in range(int(m))])
        direction = F.col(n) - F * E_prime.col(n)
        rate = Y.applyfunc(lambda entry, n=n: sp.diff(entry, margins[n])) * lemma6.rate(m, margins[n], 1)
        vanishing.update(named(f"dY/dt for class {n}, K = {k}", rate - direction * residual.T))
    return vanishing


def _critical_point(steps_needed):
    """Steps until the residual is eps: the sum of the two terms of (45), each below its bound."""
    at, off = lemma5.zeta(M)
    eps, power = sp.symbols("epsilon y", positive=True)
    # M - 1 = p^2 with p = (1 - u^2)/(2 u), so that sqrt(M (M - 1)) is rational; u = 1/(1 + v).
    u = 1 / (1 + sp.Symbol("v", positive=True))
    p, root = (1 - u**2) / (2 * u), (1 + u**2) / (2 * u)
    reached = p * root / eps - p**2  # exp(x) where the norm is eps
    norm = lemma5.residual(M, X / M) ** 2 * (at**2 + OTHERS * off**2)
    step = sp.Symbol("s", positive=True)
    exact = sp.solve(lemma6.implicit(M, X / M, ETA, step / K), step)[0].subs(sp.exp(X), power)
    # The rest of the claim: y <= M/eps and x <= ln(M/eps).
    left = steps_needed(K, ETA, eps, M) - exact.subs({power: M / eps, X: sp.log(M / eps)})
    more = sp.Symbol("g", nonnegative=True)  # ln(M/eps)
    vanishing = {
        "norm of the residual": sp.cancel(norm - M * OTHERS / (OTHERS + sp.exp(X)) ** 2),
        "sqrt(M (M - 1))": p**2 + 1 - root**2,
        "norm is eps there": sp.cancel(p**2 * root**2 / (p**2 + reached) ** 2 - eps**2),
    }
    signed = {
        "exp(x) <= M/eps": (sp.factor(root**2 / eps - reached), "> 0"),
        "(45) with both bounds": (sp.factor(sp.together(left.subs(sp.log(M / eps), more))), "> 0"),
    }
    return vanishing, signed
