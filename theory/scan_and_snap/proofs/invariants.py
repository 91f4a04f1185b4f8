"""What the flow conserves exactly: sums of rows of Y and Z, unseen tokens, equal columns of Y (after Lemma 1).

The rates are derivatives of J itself, with J in bag form for symbolic counts, so that they hold for any sequence of
any length and for any mixture of sequences: the expected J is a sum of such terms, and each vanishing is linear.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import gradient, log_probability, matrix, named, norm


def conserved(row: Sequence[sp.Expr]) -> sp.Expr:
    """What a row of Y or Z keeps."""
    return sum(row)


def derive(*, conserved: Claim = conserved, vocab_size: int = 3, target: int = 1) -> Derivation:
    """Rates of the conserved quantities under gradient ascent on J, for symbolic counts, Y and z_m.

    ``conserved`` is the claimed linear invariant of a row. Token 0 has any count, token M - 1 never occurs, and next
    token ``target`` is the one that occurs.
    """
    size = vocab_size
    Y, z = matrix("Y", size, size), matrix("z", 1, size)
    counts = sp.Matrix([*sp.symbols(f"N_:{size - 1}", positive=True), 0])
    weights = counts.multiply_elementwise(z.T.applyfunc(sp.exp))
    feature = weights / norm(weights)
    J = log_probability(Y, feature, target)
    rate_y, rate_z = gradient(J, Y), gradient(J, z)

    vanishing = {f"row {j} of Y": conserved(list(rate_y.row(j))) for j in range(size)}
    logits = Y.T * feature
    generators = {sp.exp(logit): sp.Dummy(f"a_{k}", positive=True) for k, logit in enumerate(logits)}
    vanishing["row of Z"] = conserved(list(rate_z)).xreplace(generators)
    vanishing.update(named("row of Y of an unseen token", rate_y.row(size - 1).T))
    vanishing["entry of z at an unseen token"] = rate_z[size - 1]

    # Columns that never occur: the difference of their rates where they are equal.
    first, second = [k for k in range(size) if k != target][:2]
    equal = {Y[j, second]: Y[j, first] for j in range(size)}
    vanishing.update(named("equal columns of Y", (rate_y.col(first) - rate_y.col(second)).subs(equal)))

    # The reason, for any J of this form: the layer does not see a shift.
    shift = sp.Symbol("a", real=True)
    moved = z.applyfunc(lambda entry: entry + shift)
    shifted = counts.multiply_elementwise(moved.T.applyfunc(sp.exp))
    vanishing.update(named("shift of z_m", shifted / norm(shifted) - feature))
    return Derivation(
        statement="Zero-sum invariants",
        vanishing=vanishing,
        steps=(
            r"Softmax does not change when a constant is added to all logits, hence $J(Y + a 1^T) = J(Y)$ for every"
            r" vector $a$; its derivative at $a = 0$ is $\dot Y 1 = 0$.",
            r"Adding a constant to $z_m$ multiplies every $N_l e^{z_{ml}}$ by the same factor, which the norm removes:"
            r" $\dot Z 1 = 0$.",
            r"$\dot Y = \sum_n p_n f_n r_n^T$ has a zero row at a token with $f_{nl} = 0$ for all n, and $\dot z_m ="
            r" f * (\dots)$ a zero entry.",
            r"Column k of $\dot Y$ for a k that never is the target is $-\sum_n p_n f_n \alpha_{nk}$, which depends"
            r" on k"
            r" only through column k of Y: equal columns stay equal.",
        ),
        scope="M = 3 by default, any counts, any Y and z; the shift argument is the same for all M",
        sizes={"M": (vocab_size,)},
        prose=("mixtures of sequences: each row that vanishes is linear in J",),
    )
