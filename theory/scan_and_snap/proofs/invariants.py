"""Exact conservation laws of the flow: sums of rows of Y and Z, unseen tokens, equal columns of Y (after Lemma 1).

The rates are the gradient of the expected J. It is a mixture of K sequences of any lengths with weights p_i, each with
a query m_i, a next token n_i and counts N_i of M tokens. J is in bag form, and K, M and all other numbers are symbols.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import chosen, entries, index, size, total

M, K = size("M"), size("K")  # tokens, sequences
QUERY, TARGET = chosen("m", M), chosen("n", M)


def conserved(rate: Claim) -> sp.Expr:
    """Conserved quantity of a row of Y or Z, by its entries ``rate(k)``."""
    k = index("k'", M)
    return total(rate(k), k)


def derive(*, conserved: Claim = conserved) -> Derivation:
    """Rates of the conserved quantities under gradient ascent on the expected J, for all sizes, counts, Y and Z.

    ``conserved`` is the claimed linear invariant of a row, a function of the rates of its entries.
    """
    j, k, l, p, q = (index(name, M) for name in "jklpq")
    i = index("i", K)
    counts, z, y, f, g, a = (entries(name) for name in ("N", "Z", "Y", "f", "g", "a"))
    chance = entries("p", positive=True)
    second = index("k2", M)
    shift = sp.Symbol("a", real=True)

    def weight(token, logits=lambda token: z[QUERY(i), token]):
        return counts[i, token] * sp.exp(logits(token))

    def feature(token, logits=lambda token: z[QUERY(i), token]):
        return weight(token, logits) / sp.sqrt(total(weight(l, logits) ** 2, l))

    def residual(token, logits):
        return KroneckerDelta(TARGET(i), token) - sp.exp(logits(token)) / total(sp.exp(logits(l)), l)

    # The features in the logits, Y^T f, are symbols; before the residual they stand by their formula.
    def logit(token):
        return total(y[q, token] * f[i, q], q)

    def turn(row, token):
        # df_j/dZ_mp
        return KroneckerDelta(QUERY(i), row) * feature(j) * (KroneckerDelta(j, token) - feature(token) ** 2)

    def rate_y(row, column):
        return total(chance[i] * feature(row) * residual(column, logit), i)

    def rate_z(row, token):
        # With any signal g, by the chain rule.
        return total(chance[i] * g[i, j] * turn(row, token), i, j)

    row = index("m'", M)
    log_alpha = a[TARGET(i)] - sp.log(total(sp.exp(a[l]), l))
    bag_form = KroneckerDelta(QUERY(i), row) * feature(p) * (g[i, p] - feature(p) * total(g[i, j] * feature(j), j))
    equal = {logit(second): logit(k)}
    vanishing = {
        "log alpha by a logit": sp.diff(log_alpha, a[k]) - residual(k, lambda token: a[token]),
        "feature by Z": sp.diff(feature(j), z[row, p]) - turn(row, p),
        "bag form": rate_z(row, p) - total(chance[i] * bag_form, i),
        "row of Y": conserved(lambda column: rate_y(j, column)),
        "row of Z": conserved(lambda token: rate_z(row, token)),
        "equal columns of Y": _no_target(rate_y(j, k), k) - _no_target(rate_y(j, second), second).xreplace(equal),
        "row of Y of an unseen token": rate_y(j, k).xreplace({counts[i, j]: sp.Integer(0)}),
        "entry of Z at an unseen token": total(chance[i] * bag_form, i).xreplace({counts[i, p]: sp.Integer(0)}),
        # The reason, for any J of this form: the layer does not see a shift.
        "shift of z_m": feature(j, lambda token: z[QUERY(i), token] + shift) - feature(j),
        "shift of the logits": residual(k, lambda token: a[token] + shift) - residual(k, lambda token: a[token]),
    }
    return Derivation(
        statement="Zero-sum invariants",
        vanishing=vanishing,
        steps=(
            r"For a mixture of sequences with weights $p_i$, queries $m_i$ and next tokens $n_i$: $\dot Y_{jk} ="
            r" \eta_Y\sum_i p_i f_{ij} r_{ik}$ and $\dot Z_{mp} = \eta_Z\sum_i p_i 1[m_i = m] f_{ip}(g_{ip} -"
            r" f_{ip}\,f_i\cdot g_i)$ with $g_i = Y r_i$ (Lemma 1, for counts of any sequence).",
            r"$\sum_k r_{ik} = 1 - \sum_k\alpha_{ik} = 0$: $\dot Y 1 = 0$. The reason: softmax does not change when a"
            r" constant is added to all logits, hence $J(Y + a 1^T) = J(Y)$ for every vector $a$.",
            r"$\sum_p f_p(g_p - f_p\,f\cdot g) = f\cdot g\,(1 - \|f\|^2) = 0$: $\dot Z 1 = 0$. The reason: adding a"
            r" constant to $z_m$ multiplies every $N_l e^{z_{ml}}$ by the same factor, which the norm removes.",
            r"At a token that never occurs, $f_{ij} = 0$ for all $i$, the row of $\dot Y$ and the entry of each"
            r" $\dot z_m$ vanish.",
            r"Column $k$ of $\dot Y$ for a $k$ that never is the next token is $-\eta_Y\sum_i p_i f_i \alpha_{ik}$,"
            r" which depends on $k$ only through column $k$ of $Y$: equal columns stay equal.",
        ),
        scope="all $M$, any number of sequences of any lengths, with any weights, queries, next tokens, $Y$ and $Z$",
        sizes={},
        prose=("equal columns stay equal: the flow has one solution",),
        proves=("Lemma 1, zero sums",),
    )


def _no_target(rate, column):
    """The rate of a column of Y whose token is never a next token."""
    return rate.replace(lambda one: one == KroneckerDelta(TARGET(index("i", K)), column), lambda one: sp.Integer(0))
