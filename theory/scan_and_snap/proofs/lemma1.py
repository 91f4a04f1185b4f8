"""Lemma 1, (3): the differentials of J for one sequence, by differentiating J at a generic entry.

The proof uses the definition only: one-hot X, b = softmax over positions, f = LN(X^T b), alpha = softmax(Y^T f),
J = log alpha_{x_{T+1}} (1)-(2). The sizes are symbols: M tokens, L = T - 1 positions. Each layer is differentiated from
its formula, and the chain rule joins the derivatives. One sequence is also written out and differentiated directly.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import chosen, entries, index, size, total
from theory.symbolic.model import gradient, log_probability, matrix, named, norm, one_hot, softmax, unit

M, L = size("M"), size("L")
# Contextual tokens, query and next token for M = 3, with a repeated and an unseen one.
SEQUENCES = (((2, 0, 0), 1, 0),)


def residual(target: sp.Idx, k: sp.Idx, alpha: Claim) -> sp.Expr:
    """Entry k of x_{T+1} - alpha, where ``target`` is the next token and ``alpha(k)`` an entry."""
    return KroneckerDelta(target, k) - alpha(k)


def decoder_rate(feature: Claim, left: Claim, j: sp.Idx, k: sp.Idx) -> sp.Expr:
    """(3): entry j, k of dY/dt = f r^T in units of eta_Y."""
    return feature(j) * left(k)


def attention_rate(projection: Claim, attended: Claim, signal: Claim, length: sp.Expr, p: sp.Idx) -> sp.Expr:
    """(3): entry p of row m of dZ/dt, g^T P_perp(v) X^T diag(b) X/||v|| with g = Y r and v = X^T b, by eta_Z.

    ``projection(j, l)`` and ``attended(l, p)`` are the entries of P_perp and of X^T diag(b) X.
    """
    j, l = index("j", M), index("l", M)
    return total(signal(j) * projection(j, l) * attended(l, p), j, l) / length


def softmax_slope(b: Claim, t: sp.Idx, s: sp.Idx) -> sp.Expr:
    """Derivative of softmax at t by its argument at s, with its values b(t)."""
    return b(t) * (KroneckerDelta(t, s) - b(s))


def unit_slope(v: Claim, length: sp.Expr, j: sp.Idx, l: sp.Idx) -> sp.Expr:
    """Derivative of entry j of v/||v|| by v_l: P_perp(v)/||v||."""
    return (KroneckerDelta(j, l) - v(j) * v(l) / length**2) / length


def score_slope(token: sp.Expr, query: sp.Idx, row: sp.Idx, p: sp.Idx) -> sp.Expr:
    """Derivative of the score of a position with ``token`` by the entry (row, p) of Z."""
    return KroneckerDelta(query, row) * KroneckerDelta(token, p)


def bag_rate(feature: Claim, signal: Claim, p: sp.Idx) -> sp.Expr:
    """The same entry in bag form, f_p (g_p - f_p (f . g))."""
    j = index("j", M)
    return feature(p) * (signal(p) - feature(p) * total(feature(j) * signal(j), j))


def derive(
    *,
    decoder_rate: Claim = decoder_rate,
    attention_rate: Claim = attention_rate,
    bag_rate: Claim = bag_rate,
    sequences: Sequence[tuple[tuple[int, ...], int, int]] = SEQUENCES,
) -> Derivation:
    """Compare the derivatives of J with (3) and with the bag form, for any M, sequence, Y and Z.

    The claims are functions of the signatures of this module's `decoder_rate`, `attention_rate` and `bag_rate`.
    """
    vanishing = _layers()
    vanishing.update(_chain(decoder_rate, attention_rate, bag_rate))
    for tokens, query, target in sequences:
        written = _written_out(3, tokens, query, target)
        vanishing.update({f"{key}, x = {tokens}, m = {query}, n = {target}": one for key, one in written.items()})
    return Derivation(
        statement="Lemma 1",
        vanishing=vanishing,
        steps=(
            r"$\partial \log\alpha_n/\partial a_k = 1[k=n] - \alpha_k = r_k$ for the logits $a_k = \sum_j Y_{jk}"
            r" f_j$, hence $\partial J/\partial Y_{jk} = f_j r_k$.",
            r"$\partial J/\partial f_j = \sum_k Y_{jk} r_k = g_j$.",
            r"$f = v/\|v\|$ with $v = X^T b$ has the differential $df = P^\perp_v\,dv/\|v\|$, $P^\perp_v = I - ff^T$.",
            r"$db_t = b_t (dz_m[x_t] - \sum_s b_s\,dz_m[x_s])$, so that $dv = X^T \mathrm{diag}(b) X\,dz_m - v\,(b^T X"
            r"\,dz_m)$; the second term is along $v$, and $P^\perp_v$ removes it.",
            r"Rows of $X$ are one-hot, so that $X^T \mathrm{diag}(b) X = \mathrm{diag}(v)$, which gives the bag form"
            r" $\dot z_m = f * (g - f\,(f\cdot g))$, $*$ entry by entry.",
            r"$J$ contains no row of $Z$ but $z_m$.",
        ),
        scope="all $M$ and $T$, any sequence, $Y$ and $Z$: every layer differentiated at a generic entry; one sequence"
        " of three tokens with $M = 3$ written out besides, and differentiated as a whole",
        sizes={},
        prose=("the chain rule",),
    )


def _layers():
    """The differential of each layer from its formula, sums over symbolic sizes."""
    j, k, l, p, n, m, q = (index(name, M) for name in "jklpnmq")
    s, t, u = (index(name, L) for name in "stu")
    a, f, v, b, c, y, z = (entries(name) for name in ("a", "f", "v", "b", "c", "Y", "Z"))
    x = chosen("x", M)

    def alpha(i):
        return sp.exp(a[i]) / total(sp.exp(a[l]), l)

    def weight(i):
        return sp.exp(c[i]) / total(sp.exp(c[s]), s)

    length = sp.sqrt(total(v[l] ** 2, l))
    logit = total(y[l, k] * f[l], l)
    pooled = total(KroneckerDelta(x(s), j) * b[s], s)
    return {
        "log alpha_n by a logit": sp.diff(sp.log(alpha(n)), a[k]) - residual(n, k, alpha),
        "a logit by Y": sp.diff(logit, y[j, p]) - KroneckerDelta(k, p) * f[j],
        "a logit by f": sp.diff(logit, f[j]) - y[j, k],
        "LN": sp.diff(v[j] / length, v[p]) - unit_slope(v.__getitem__, length, j, p),
        "pooling by b": sp.diff(pooled, b[t]) - KroneckerDelta(x(t), j),
        "attention weight by a score": sp.diff(weight(t), c[u]) - softmax_slope(weight, t, u),
        "score by Z": sp.diff(z[m, x(t)], z[q, p]) - score_slope(x(t), m, q, p),
        "attention weights sum to 1": total(weight(t), t) - 1,
    }


def _chain(decoder_rate, attention_rate, bag_rate):
    """The layers' differentials put together, against the claims; b and alpha stay symbols."""
    j, k, l, p, n, m, q = (index(name, M) for name in "jklpnmq")
    s, t = index("s", L), index("t", L)
    alpha, b, y = entries("alpha").__getitem__, entries("b"), entries("Y")
    x = chosen("x", M)

    def v(i):
        return total(KroneckerDelta(x(s), i) * b[s], s)

    length = sp.sqrt(total(v(l) ** 2, l))

    def feature(i):
        return v(i) / length

    def projection(i, other):
        return KroneckerDelta(i, other) - v(i) * v(other) / length**2

    def signal(i):
        return total(y[i, k] * residual(n, k, alpha), k)

    def attended(i, other):
        return total(KroneckerDelta(x(t), i) * b[t] * KroneckerDelta(x(t), other), t)

    by_y = total(residual(n, l, alpha) * KroneckerDelta(l, k) * feature(j), l)
    # df/dv, dv/db, db/dc and dc/dZ of the layers, for the query m and the row q of Z.
    weight_slope = softmax_slope(b.__getitem__, t, s) * score_slope(x(s), m, q, p)
    by_z = total(signal(j) * unit_slope(v, length, j, l) * KroneckerDelta(x(t), l) * weight_slope, j, l, s, t)
    claim = KroneckerDelta(m, q) * attention_rate(projection, attended, signal, length, p)
    return {
        "dJ/dY": by_y - decoder_rate(feature, lambda i: residual(n, i, alpha), j, k),
        "dJ/dZ": by_z - claim,
        "X^T diag(b) X is diagonal": attended(j, p) - KroneckerDelta(j, p) * v(j),
        "what is along v": total(projection(j, l) * v(l), l),
        "bag form": claim - KroneckerDelta(m, q) * bag_rate(feature, signal, p),
    }


def _written_out(size, tokens, query, target):
    """J of one sequence as a function of Y and Z, differentiated as a whole, against (3).

    After differentiation exp(z_l), exp(logit_k) and the norm become independent positive symbols. Their only relation
    defines the norm; it is used to decide the difference.
    """
    Y, Z = matrix("Y", size, size), matrix("Z", size, size)
    X = one_hot(tokens, size)
    b = softmax(X * Z.row(query).T)
    v = X.T * b
    length = norm(v)
    feature = v / length
    J = log_probability(Y, feature, target)
    left = unit(size, target) - softmax(Y.T * feature)
    claim = left.T * Y.T * ((sp.eye(size) - v * v.T / length**2) / length) * X.T * sp.diag(*b) * X
    plain = _Plain(Y.T * feature, Z.row(query))
    others = [row for row in range(size) if row != query]
    return {
        **named("dJ/dY", plain(gradient(J, Y) - feature * left.T)),
        **named("dJ/dz", plain(gradient(J, Z.row(query)) - claim).T),
        **named("dJ/dZ of other queries", gradient(J, Z.extract(others, list(range(size))))),
    }


class _Plain:
    """Replaces the exponentials of logits and of entries of Z by independent symbols."""

    def __init__(self, logits, z):
        self.logits = {sp.exp(entry): sp.Dummy(f"a_{k}", positive=True) for k, entry in enumerate(logits)}
        # By the logarithm exp(2 z) becomes w^2; a search for exp(z) would miss it.
        self.weights = {entry: sp.log(sp.Dummy(f"w_{k}", positive=True)) for k, entry in enumerate(z)}

    def __call__(self, value: sp.Matrix) -> sp.Matrix:
        return value.applyfunc(lambda entry: entry.xreplace(self.logits).xreplace(self.weights))
