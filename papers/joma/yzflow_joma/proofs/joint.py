r"""Theorem 1: the joint invariants of attention and the hidden layer, for all sizes, contexts and gradients."""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total

C, H, N = size("C"), size("H"), size("n")  # tokens, units, contexts


TRIANGLE = "the absolute value of a mean and of an integral is at most that of absolute values"


def linear(z: sp.Expr, squares: sp.Expr) -> sp.Expr:
    """The invariant of linear attention, from z_l and sum_k v_kl^2."""
    return z**2 - squares


def exponential(z: sp.Expr, squares: sp.Expr) -> sp.Expr:
    """The invariant of exp attention."""
    return z - squares / 2


def softmax(z: sp.Expr, squares: sp.Expr, lengths: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """The invariant of softmax, from z_l, sum_k v_kl^2, sum_k ||v_k||^2 and bbar_l."""
    return z - (squares - lengths * mean) / 2


def factors(moment: sp.Expr, first: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """The hypothesis: E[g_k h'_k b_j b_l] from E[g_k h'_k b_j] and bbar_l."""
    return first * mean


def drift(share: sp.Expr, mean: sp.Expr, pull: sp.Expr) -> sp.Expr:
    """Rate of the invariant of softmax in one context, without the hypothesis; ``pull`` is sum_k g_k h'_k v_k . b."""
    return -(share - mean) * pull


def derive(
    *,
    linear: Claim = linear,
    exponential: Claim = exponential,
    softmax: Claim = softmax,
    factors: Claim = factors,
    drift: Claim = drift,
) -> Derivation:
    """Rates of the claimed quantities under the flow."""
    i, k = index("i", N), index("k", H)
    j, l, m = (index(name, C) for name in "jlm")
    x, p = (entries(name, positive=True) for name in "xp")
    z, v, g, u, mean = (entries(name) for name in ("z", "v", "g", "u", "bbar"))
    moment = entries("m")
    z_l, squares, lengths = sp.symbols("z_l S L", real=True)

    def weight(token):
        return x[i, token] * sp.exp(z[token])

    def rate(claim, turn, gathered):
        """Rate of a claimed invariant of z_l and S_l = sum_k v_kl^2; ``turn`` is db_j/dz_l."""
        invariant = claim(z_l, squares)
        z_rate = total(p[i] * g[k, i] * turn(j) * v[k, j], i, k, j)
        s_rate = total(2 * v[k, l] * p[i] * g[k, i] * gathered(l), i, k)
        changes = sp.diff(invariant, z_l) * z_rate + sp.diff(invariant, squares) * s_rate
        return changes.subs(z_l, z[l])

    def share(token):
        return weight(token) / total(weight(m), m)

    # Softmax, with symbols for the moments u_kj = E[g_k h'_k b_j] and m_kjl = E[g_k h'_k b_j b_l].
    invariant = softmax(z_l, squares, lengths, mean[l])
    z_rate = total(v[k, l] * u[k, l], k) - total(v[k, j] * factors(moment[k, j, l], u[k, j], mean[l]), k, j)
    s_rate, l_rate = total(2 * v[k, l] * u[k, l], k), total(2 * v[k, j] * u[k, j], k, j)
    changes = (
        sp.diff(invariant, z_l) * z_rate + sp.diff(invariant, squares) * s_rate + sp.diff(invariant, lengths) * l_rate
    )
    # Softmax without moments, for any constant bbar; b_ij is the attention of context i.
    b = entries("b")
    pull = total(g[k, i] * v[k, j] * b[i, j], k, j)
    z_own = total(p[i] * g[k, i] * v[k, l] * b[i, l], i, k) - total(p[i] * b[i, l] * pull, i)
    s_own = total(2 * v[k, l] * p[i] * g[k, i] * b[i, l], i, k)
    l_own = total(2 * v[k, j] * p[i] * g[k, i] * b[i, j], i, k, j)
    drift_own = (
        sp.diff(invariant, z_l) * z_own + sp.diff(invariant, squares) * s_own + sp.diff(invariant, lengths) * l_own
    )
    return Derivation(
        "Theorem 1",
        {
            "linear: db/dz": sp.diff(x[i, j] * z[j], z[l]) - x[i, j] * KroneckerDelta(j, l),
            "linear: rate": rate(linear, lambda j: x[i, j] * KroneckerDelta(j, l), lambda l: x[i, l] * z[l]),
            "exp: db/dz": sp.diff(weight(j), z[l]) - weight(j) * KroneckerDelta(j, l),
            "exp: rate": rate(exponential, lambda j: weight(j) * KroneckerDelta(j, l), weight),
            "softmax: db/dz": sp.diff(share(j), z[l]) - share(j) * (KroneckerDelta(j, l) - share(l)),
            "softmax: rate": changes,
            "drift: rate": drift_own - total(p[i] * drift(b[i, l], mean[l], pull), i),
        },
        steps=(
            r"$\dot v_k = E[g_k h'_k b]$ and $\dot z = E[(\partial b/\partial z)^\top\sum_k g_k h'_k v_k]$.",
            r"Linear: $\partial b/\partial z = \mathrm{diag}(x)$, so that $z_l\dot z_l = \sum_k v_{kl}\dot v_{kl}$.",
            r"Exp: $\partial b/\partial z = \mathrm{diag}(b)$, so that $\dot z_l = \sum_k v_{kl}\dot v_{kl}$.",
            r"Softmax: $\partial b/\partial z = \mathrm{diag}(b) - bb^\top$; where $E[g_kh'_k b_jb_l] = E[g_kh'_k b_j]"
            r"\bar b_l$, $\dot z_l = \sum_k (v_{kl}\dot v_{kl} - \bar b_l\, v_k\cdot\dot v_k)$.",
            r"Softmax, without that: the quantity has the rate $-E[(b_l - \bar b_l)\sum_k g_kh'_kv_k\cdot b]$, for any"
            r" $\bar b$ that stands still. Its drift is at most the largest $|b_l - \bar b_l|$ times"
            r" $\int E|\sum_k g_kh'_kv_k\cdot b|\,dt$.",
        ),
        scope="any number of tokens, units and contexts, any gradients",
        sizes={},
        prose=(TRIANGLE,),
    )
