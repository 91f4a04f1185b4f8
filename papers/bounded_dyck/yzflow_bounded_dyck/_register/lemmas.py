"""Statements on the lemmas behind Theorem 3, one by one, with constants of our own."""

from __future__ import annotations

import sympy as sp

from theory.statements import Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures_of_lemmas as checks
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import exact, statement
from yzflow_bounded_dyck.proofs import lottery, pruning_lemmas, subset_sums

_LOST = Remark("Our text of the paper has the words of this lemma and not its formula: the constant is ours.")
_COMPOSED = tex(lottery.composed, "L", r"\epsilon_1", r"\epsilon_2")
_CHANGE = tex(lambda e: pruning_lemmas.softmax_change(e), r"\epsilon")
_MIXED = tex(lambda e, t, d: pruning_lemmas.mixture_change(e, t, d), "e", r"\|\tilde a - a\|_1", "D")
_CONSTANT = tex(
    lambda v, b, c, link: pruning_lemmas.attention_lipschitz(v, b, sp.Integer(1), c, link),
    r"\|P W_V\|", r"\|W_K^\top W_Q\|", "C", "|b|",
)  # fmt: skip

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Lemma 5",
        "Errors of a composition",
        "Approximations within eps_1 and eps_2, the second of a map with Lipschitz constant L, compose to one within"
        " L eps_1 + eps_2. The second must be near wherever the first one leads, which may be off the image of the"
        " given map.",
        rf"\|\tilde f_2 \circ \tilde f_1 - f_2 \circ f_1\| \le {_COMPOSED}",
        errata=(_LOST,),
        prove=part(lottery.derive, "composition"),
        checks=(exact("two linear maps that attain the bound", checks.composed, 1e-9),),
    ),
    statement(
        "Lemma 6",
        "Networks of two layers inside random ones of four",
        "A random 4-layer ReLU network can be pruned to any 2-layer one of matrices of norm one, but for a probability"
        " delta, if it has so many units an input as yzflow_bounded_dyck.widths.units_of_network says.",
        r"\Pr[\|\tilde g(x) - g(x)\| \le \epsilon \text{ for all } \|x\| \le 1] \ge 1 - \delta",
        assumptions=(assumed.UNIFORM, assumed.NORM, assumed.BALL),
        errata=(_LOST,),
        prove=part(pruning_lemmas.derive, "two pairs", prose=(subset_sums.UNION, *lottery.NORMS)),
        checks=(
            exact(
                "random networks of the promised width that miss, beyond the share delta",
                checks.enough_for_networks,
                0.0,
                needed=True,
            ),
        ),
    ),
    statement(
        "Lemma 8",
        "Attention under errors of logits",
        "Logits that are at most eps apart have attentions at most 2 tanh(eps/2) apart in L1, which is eps or less,"
        " for any number of keys; two keys attain it.",
        rf"\|\mathrm{{softmax}}(x) - \mathrm{{softmax}}(y)\|_1 \le {_CHANGE} \le \epsilon \text{{ for }}"
        r" \|x - y\|_\infty \le \epsilon",
        errata=(_LOST,),
        prove=part(pruning_lemmas.derive, "softmax", prose=lottery.SHARES),
        checks=(exact("distances against the bound, and two keys that attain it", checks.softmax, 1e-9),),
    ),
    statement(
        "Lemma 10",
        "LayerNorm with a floor is Lipschitz",
        "LN with a floor C > 0 moves by at most 1/C times what its input does, in the paper's three cases.",
        rf"\|\mathrm{{LN}}_C(u) - \mathrm{{LN}}_C(u')\| \le {tex(lottery.lipschitz, 'C')}\,\|P(u - u')\|",
        assumptions=(assumed.FLOOR,),
        errata=(_LOST,),
        prove=part(lottery.derive, "LN"),
        checks=(exact("ratios of distances, less one", checks.normalised, 1e-9),),
    ),
    statement(
        "Lemma 11",
        "Mixtures under errors of attention and of values",
        "Values off by e, attention off in L1, and values at most D apart: what a mixture moves by. Attained by two"
        " values.",
        rf"\|\tilde V \tilde a - V a\| \le {_MIXED}",
        errata=(_LOST,),
        prove=part(pruning_lemmas.derive, "mixture", prose=lottery.SHARES),
        checks=(exact("changes against the bound, and two values that attain it", checks.mixtures, 1e-9),),
    ),
    statement(
        "Lemma 12",
        "LayerNorm of more dimensions",
        "Of tokens of mean zero, padded with zeros, LN of more dimensions is that of fewer. Of other tokens it is not:"
        " the mean that it takes off is over all coordinates.",
        r"\mathrm{LN}_C(x, 0) = (\mathrm{LN}_C(x), 0) \text{ for } 1^\top x = 0",
        assumptions=(assumed.FLOOR,),
        errata=(_LOST,),
        prove=part(lottery.derive, "larger LN", sizes={"d": (3,)}),
        checks=(exact("distance of both", checks.wider_norms, 1e-12),),
    ),
    statement(
        "Lemma 13",
        "The attention module is Lipschitz",
        "On inputs whose tokens have norm one at most, LN of the mixture with a residual link has an explicit Lipschitz"
        " constant, largest norm of a token on both sides, at every length.",
        rf"L = {_CONSTANT}",
        assumptions=(assumed.FLOOR, assumed.BALL),
        errata=(_LOST,),
        prove=part(pruning_lemmas.derive, "attention", prose=(pruning_lemmas.PATH, *lottery.SHARES)),
        checks=(exact("changes of drawn modules against the constant", checks.lipschitz_of_attention, 1e-9),),
    ),
    statement(
        "Lemmas 3, 4 and 14",
        "A layer, the identity and an attention module inside random layers",
        "Two random layers can be pruned to a given one, its attention module among them, and one to the identity, with"
        " a certificate from the weights; what stands beside the token in the input does not matter.",
        r"\sup_X \|\tilde f(X) - f(X)\| \le \epsilon, \quad \tilde f(X, Z) = \tilde f(X)",
        assumptions=(assumed.UNIFORM, assumed.NORM, assumed.BALL, assumed.FLOOR),
        errata=(_LOST,),
        clauses=(
            Clause(
                "certificates, and independence of other coordinates",
                checks=(
                    exact("error beyond certificates, and change with other coordinates", checks.pruned_layers, 1e-9),
                ),
            ),
            Clause(
                "with probability 1 - delta",
                argued=("the union of the events of Lemmas 2, 6, 7 and 9, at accuracies that the certificate sets",),
            ),
        ),
    ),
    statement(
        "Lemma 16",
        "A direction along which points stay apart",
        "Different points of d >= 2 dimensions stay different in the space orthogonal to some direction: d - 1"
        " orthonormal vectors tell them apart (yzflow_bounded_dyck.interpolating.separating_basis).",
        r"x_i \ne x_j \Rightarrow U x_i \ne U x_j, \quad U U^\top = I_{d-1}",
        errata=(
            Remark(
                "Our text of the paper lacks the two properties that its vectors have: that points stay apart is our"
                " reading, from the vector whose normal space its proof takes."
            ),
        ),
        prove=part(pruning_lemmas.derive, "direction", prose=(pruning_lemmas.LINES,)),
        checks=(exact("bases that are not orthonormal or let points fall together", checks.kept_apart, 1e-9),),
    ),
)

# <!-- numbers
# typed: 2 (factor, divisor or term of a formula)
# -->
