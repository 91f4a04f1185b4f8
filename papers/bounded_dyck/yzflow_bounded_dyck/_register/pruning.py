"""Statements on pruning: Section 3.2 and the lemmas behind it."""

from __future__ import annotations

import sympy as sp

from theory.statements import Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures_of_pruning as checks
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register import lemmas, widths
from yzflow_bounded_dyck._register.common import exact, statement
from yzflow_bounded_dyck.proofs import lottery

STATEMENTS: tuple[Statement, ...] = (
    widths.LEMMA_2,
    *widths.STATEMENTS,
    *lemmas.STATEMENTS,
    statement(
        "Lemmas of Theorem 3",
        "How errors pass through a Transformer (our own, for Lemmas 3 to 14)",
        "Linear maps, ReLU networks, attention, LN with a floor, LN of more dimensions, the residual link and the "
        "identity: by how much each part moves if its input and its weights do. All but LN of more dimensions are "
        "attained.",
        r"\|\Delta A\|_{\mathrm{TV}} \le \tanh\frac{\omega}{4}, \quad \|\Delta \mathrm{LN}_C(u)\| \le \frac{\|P\,\Delta"
        r" u\|}{C}, \quad \|\tilde g(z) - g(z)\| \le \sum_t \max_D \|W_k D \cdots D E_t \tilde h_{t-1}\|",
        clauses=(
            Clause(
                "linear maps, networks, the link, the identity",
                prove=part(
                    lottery.derive,
                    "linear map",
                    "identity",
                    "norm of both",
                    "ReLU",
                    "network",
                    "residual link",
                    "composition",
                    prose=lottery.NORMS,
                ),
                checks=(
                    exact(
                        "bounds against changes that attain them, of all parts but LN of more dimensions",
                        checks.lemmas_attained,
                        1e-6,
                        needed=True,
                    ),
                ),
            ),
            Clause(
                "attention",
                r"\|\Delta A\|_{\mathrm{TV}} \le " + tex(lambda w: lottery.attention_change(sp.exp(w / 2)), "omega"),
                prove=part(lottery.derive, "softmax", "logits", prose=lottery.SHARES),
            ),
            Clause(
                "LN with a floor",
                rf"\|\Delta \mathrm{{LN}}_C(u)\| \le {tex(lottery.lipschitz, 'C')}\,\|P\,\Delta u\|",
                prove=part(lottery.derive, "LN"),
                assumptions=(assumed.FLOOR,),
            ),
            Clause(
                "LN of more dimensions",
                prove=part(lottery.derive, "larger LN", sizes={"d": (3,)}),
                assumptions=(assumed.FLOOR,),
            ),
        ),
    ),
    statement(
        "Theorem 3",
        "Any Transformer inside random ones",
        "A random Transformer of more layers, wide enough, can be pruned to any given one: two of its layers hold a "
        "given one, any other becomes the identity. Run with LN, residual links and up to three given layers, with a "
        "certificate from the weights for all inputs of norm one and every length (yzflow_bounded_dyck.lottery); and "
        "for a layer that is perfect on Dyck, without a residual link.",
        r"\Pr\bigl[\exists \text{ pruned } \tilde T: \sup_X \|\tilde T(X) - T(X)\| \le \epsilon\bigr] \ge 1 - \delta",
        assumptions=(assumed.UNIFORM, assumed.NORM, assumed.BALL, assumed.IDENTITY),
        errata=(
            Remark("Width is needed for weights above one, too: a sum of n products reaches n/8 on average."),
            Remark(
                "A bound for all inputs is built here with a floor in LN, C > 0, and without one for inputs whose"
                " mixtures stay away from zero."
            ),
        ),
        clauses=(
            Clause(
                "certificates of pruned Transformers",
                r"\sup_X \|\tilde T(X) - T(X)\| \le \epsilon",
                checks=(exact("sampled error over certificate, less one", checks.certificates_hold, 1e-9),),
                assumptions=(assumed.FLOOR,),
            ),
            Clause(
                "width against error",
                checks=(
                    exact(
                        "slope of log2 certificate against width, and that of random sums",
                        checks.width_law,
                        0.15,
                    ),
                ),
                assumptions=(assumed.FLOOR,),
            ),
            Clause(
                "a perfect layer on Dyck",
                checks=(exact("wrong closing brackets of a pruned perfect layer, n = 26", checks.pruned_layer, 0.0),),
                assumptions=(assumed.NO_FLOOR, assumed.NO_LINK),
            ),
            Clause(
                "with probability 1 - delta",
                r"\Pr[\cdot] \ge 1 - \delta",
                argued=(
                    "the union of the events of Lemmas 2, 7 and 9 over the layers, at accuracies that the certificate "
                    "sets; the certificate is computed for each pruned Transformer and needs no probability",
                ),
            ),
            Clause(
                "a random weight of the residual link",
                not_examined=(
                    "a random weight of the residual link: our text lacks the paper's formula, and the weight is fixed",
                ),
            ),
        ),
    ),
    statement(
        "Corollary 3",
        "One matrix does not tell the function",
        "Two prunings of one random model can agree on a weight matrix, and on all of a layer, and compute different "
        "functions: that layer is the identity in both.",
        r"\tilde T_1|_W = \tilde T_2|_W, \quad \|\tilde T_a - T_a\| \le \epsilon \text{ for any } T_1, T_2",
        assumptions=(assumed.UNIFORM, assumed.NORM, assumed.BALL, assumed.IDENTITY),
        clauses=(
            Clause(
                "one matrix",
                checks=(exact("error in units of the functions' distance", checks.one_matrix, 0.02),),
            ),
            Clause(
                "a whole layer",
                checks=(exact("the same of two Transformers that agree on a layer", checks.one_layer_of_two, 0.02),),
                assumptions=(assumed.FLOOR,),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 8 (factor, divisor or term of a formula)
# typed: 26 (size in the code of a check, which its name tells)
# -->
