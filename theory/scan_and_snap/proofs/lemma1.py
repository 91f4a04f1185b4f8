"""Lemma 1, (3): the differentials of J for one sequence, by differentiating J entry by entry.

Nothing but the definition goes in: one-hot X, b = softmax over positions, f = LN(X^T b), alpha = softmax(Y^T f),
J = log alpha_{x_{T+1}} (1)-(2).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import gradient, log_probability, matrix, named, norm, one_hot, softmax, unit

# Sequences (contextual tokens, query, next token) for M = 3: all tokens; a repeated and an unseen one; one token only.
SEQUENCES = (((0, 1, 2), 0, 1), ((2, 0, 0), 1, 0), ((1, 1, 1), 2, 2))


def decoder_rate(feature: sp.Matrix, residual: sp.Matrix) -> sp.Matrix:
    """(3): dY/dt = f (e_n - alpha)^T, in units of eta_Y."""
    return feature * residual.T


def attention_rate(X: sp.Matrix, b: sp.Matrix, Y: sp.Matrix, residual: sp.Matrix) -> sp.Matrix:
    """(3): row m of dZ/dt, (e_n - alpha)^T Y^T P_perp(X^T b) X^T diag(b) X / ||X^T b||, in units of eta_Z."""
    v = X.T * b
    length = norm(v)
    projection = sp.eye(len(v)) - v * v.T / length**2
    return residual.T * Y.T * (projection / length) * X.T * sp.diag(*b) * X


def bag_rate(feature: sp.Matrix, signal: sp.Matrix) -> sp.Matrix:
    """The same row in bag form, f * (g - f (f . g)) with g = Y (e_n - alpha), * elementwise."""
    return feature.multiply_elementwise(signal - feature * feature.dot(signal))


def derive(
    *,
    decoder_rate: Claim = decoder_rate,
    attention_rate: Claim = attention_rate,
    bag_rate: Claim = bag_rate,
    sequences: Sequence[tuple[tuple[int, ...], int, int]] = SEQUENCES,
    vocab_size: int = 3,
) -> Derivation:
    """Compare the derivatives of J with (3) and with the bag form, for symbolic Y and Z and explicit sequences.

    The claims are functions of the signatures of this module's `decoder_rate`, `attention_rate` and `bag_rate`.
    """
    vanishing = {}
    for tokens, query, target in sequences:
        name = f"x = {tokens}, m = {query}, n = {target}"
        for key, value in _one_sequence(
            vocab_size, tokens, query, target, decoder_rate, attention_rate, bag_rate
        ).items():
            vanishing[f"{key}, {name}"] = value
    return Derivation(
        statement="Lemma 1",
        vanishing=vanishing,
        steps=(
            r"$\partial \log\alpha_n/\partial(\text{logit}_k) = 1[k=n] - \alpha_k = r_k$, and logit$_k = \sum_j Y_{jk}"
            r" f_j$, hence $\partial J/\partial Y_{jk} = f_j r_k$.",
            r"$\partial J/\partial f = Y r = g$.",
            r"$f = v/\|v\|$ with $v = X^T b$ has the differential $df = P^\perp_v\,dv/\|v\|$.",
            r"$db_t = b_t (z_m[x_t]' - \sum_s b_s z_m[x_s]')$, so that $dv = X^T \mathrm{diag}(b) X\,dz_m - v\,(b^T X"
            r" dz_m)$;"
            r" the second term is along $v$ and $P^\perp_v$ removes it.",
            r"$X^T \mathrm{diag}(b) X = \mathrm{diag}(v)$, which gives the bag form $\dot z_m = f * (g - f\,(f\cdot"
            r" g))$.",
            r"$J$ contains no row of $Z$ but $z_m$.",
        ),
        scope="M = 3, T - 1 = 3 by default, all of Y and Z symbolic; any explicit sequence and M can be given",
        sizes={"M": (vocab_size,), "T - 1": tuple(sorted({len(tokens) for tokens, _, _ in sequences}))},
    )


def _one_sequence(size, tokens, query, target, decoder_rate, attention_rate, bag_rate):
    """Differences between derivative and claim, as rational functions.

    After differentiation exp(z_l), exp(logit_k) and the norm are generators: each becomes a positive symbol, and the
    one relation between them, that of the norm, is used when the difference is decided.
    """
    Y, Z = matrix("Y", size, size), matrix("Z", size, size)
    X = one_hot(tokens, size)
    b = softmax(X * Z.row(query).T)
    v = X.T * b
    feature = v / norm(v)
    J = log_probability(Y, feature, target)
    residual = unit(size, target) - softmax(Y.T * feature)
    claim_z = attention_rate(X, b, Y, residual)
    bag = bag_rate(feature, Y * residual)
    plain = _Plain(Y.T * feature, Z.row(query))
    vanishing = {
        **named("dJ/dY", plain(gradient(J, Y) - decoder_rate(feature, residual))),
        **named("dJ/dz", plain(gradient(J, Z.row(query)) - claim_z).T),
        **named("bag form", plain(claim_z.T - bag)),
    }
    others = [row for row in range(size) if row != query]
    vanishing.update(named("dJ/dZ of other queries", gradient(J, Z.extract(others, list(range(size))))))
    return vanishing


class _Plain:
    """Replaces the exponentials of logits and of entries of Z by symbols, which stay independent generators."""

    def __init__(self, logits, z):
        self.logits = {sp.exp(entry): sp.Dummy(f"a_{k}", positive=True) for k, entry in enumerate(logits)}
        # exp(2 z) has to become w^2, which the logarithm does and a search for exp(z) does not.
        self.weights = {entry: sp.log(sp.Dummy(f"w_{k}", positive=True)) for k, entry in enumerate(z)}

    def __call__(self, value: sp.Matrix) -> sp.Matrix:
        return value.applyfunc(lambda entry: entry.xreplace(self.logits).xreplace(self.weights))
