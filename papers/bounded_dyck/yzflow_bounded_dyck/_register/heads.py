"""Statements that the paper leaves open: several heads (Appendix B.2) and label smoothing (footnote 1)."""

from __future__ import annotations

from theory.statements import Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures_of_heads as checks
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import PROOFS, exact, statement
from yzflow_bounded_dyck.proofs import cross_entropy, heads, smoothing, theorem1

_HEADS = {"heads": (2, 3)}
_GAP = tex(smoothing.gap, "p", "epsilon", "m")

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Appendix B.2",
        "Balance of several heads (not in the paper)",
        "Several heads add up, each with a softmax of its own. In a layer for two types or more that is right at every "
        "length they leave nothing together behind many pairs, in any mixture of kinds. Heads whose ratios of masses "
        "differ are then balanced each at every closing query, up to a constant in its values there, and the constants "
        "cancel; heads of equal ratios need be so together only. So neither (11) nor (14) is needed head by head. To "
        "leave nothing of each kind by itself is not enough, as two heads can cancel for each kind, and not for a "
        "mixture. Balanced heads on shared coordinates are exact. x_q is the vector of a residual link before LN; "
        "(6) has none. The appendix names several heads as future work.",
        r"P\Bigl(x_q + \sum_h \frac{\sum_p n_p\,\delta_{hp}}{\sum_p n_p\,\zeta_{hp}}\Bigr) = 0, \quad \delta_{hp} = V_o"
        r" e^{x} + V_c e^{y}, \ \zeta_{hp} = e^{x} + e^{y}",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR),
        clauses=(
            Clause(
                "nothing is left of pairs",
                r"k \ge 2: \quad P\Bigl(x_q + \sum_h "
                + tex(heads.left, r"\sum_p n_p\delta_{hp}", r"\sum_p n_p\zeta_{hp}")
                + r"\Bigr) = 0",
                prove=part(PROOFS["heads"], "limit", prose=(theorem1.FORGETS, heads.MIXED)),
                checks=(
                    exact("n x distance of random heads from their limit, against its rate", checks.left_behind, 1e-3),
                    exact(
                        "right ones that leave something, or wrong ones that leave nothing, of 18 families of heads",
                        checks.right_leaves_nothing,
                        0.0,
                    ),
                ),
                assumptions=(assumed.TYPES, assumed.DEPTH, assumed.RIGHT),
            ),
            Clause(
                "heads of unlike masses",
                r"\delta_{hp} = \zeta_{hp} v_h, \quad P\Bigl(x_q + \sum_h v_h\Bigr) = 0",
                prove=part(PROOFS["heads"], "poles", "shift", sizes=_HEADS, prose=(heads.POLES,)),
                checks=(exact("spread over kinds in exact heads, and the constants' sum", checks.unlike_heads, 1e-9),),
                assumptions=(assumed.TYPES, assumed.DEPTH, assumed.RIGHT, assumed.UNLIKE),
            ),
            Clause(
                "not head by head",
                r"V_{2s} = -V_{1s}, \ Z_2 = Z_1: \quad \sum_s c_{1s}V_{1s} + \sum_s c_{2s}V_{2s} = 0",
                prove=part(PROOFS["heads"], "opposite"),
                checks=(
                    exact(
                        "distribution of a balanced head beside two that have neither (11) nor (14)",
                        checks.not_head_by_head,
                        1e-10,
                    ),
                ),
            ),
            Clause(
                "balanced heads are enough",
                r"f \ge \frac{r}{\sqrt{kD + 1}} \text{ at unmatched brackets, } f = 0 \text{ at others}",
                prove=part(PROOFS["heads"], "enough", "shift: a constant", prose=(heads.NORM,)),
                checks=(
                    exact(
                        "distribution behind one, two and five heads, to length 6 and of 500",
                        checks.several_heads,
                        1e-10,
                    ),
                ),
                assumptions=(assumed.ALL_QUERIES,),
            ),
        ),
    ),
    statement(
        "Footnote 1",
        "Label smoothing",
        "With label smoothing the cross-entropy has a finite optimum, and the analysis applies to it. The best logits "
        "are those of the smoothed distribution; a bracket that can come next is a finite gap above one that cannot. "
        "Theorem 1 holds for it, with finite weights that attain the least loss at every length, and Theorem 2 with "
        "(1 - eps) tau in place of tau (yzflow_bounded_dyck.smoothing).",
        r"p_\epsilon = (1-\epsilon)\,p + \frac{\epsilon}{m}, \quad m = 2k: \quad z^* = \ln p_\epsilon + \text{const}",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.SMOOTHED),
        errata=(
            Remark(
                "The footnote says that the optimum is finite again and that similar analysis could plausibly apply. It"
                " has no formula; eps / m on every bracket, the right one too, is the usual smoothing and our reading."
            ),
        ),
        clauses=(
            Clause(
                "the optimum is finite",
                rf"z^*_j - z^*_l = {_GAP} \text{{ where }} p_j = p, \ p_l = 0",
                prove=part(PROOFS["smoothing"], "optimum", prose=(smoothing.GIBBS,)),
                checks=(exact("gaps that a minimiser finds, against the closed form", checks.smoothed_optimum, 1e-5),),
            ),
            Clause(
                "without smoothing there is none",
                r"\frac{d}{dz}\ln(1 + e^{-z}) < 0 \text{ at every gap } z",
                prove=part(PROOFS["smoothing"], "none"),
            ),
            Clause(
                "Theorem 1, sufficiency",
                r"\mathrm{softmax}(g(f)) = p_\epsilon",
                prove=part(
                    PROOFS["stack"],
                    "coordinate",
                    "step",
                    "head",
                    sizes={"(k, D)": ((1, 2), (2, 2), (2, 3))},
                    prose=(smoothing.TELLS,),
                ),
                checks=(
                    exact(
                        "smoothed distribution behind the network, to length 6 and of 500",
                        checks.smoothed_predictions,
                        1e-10,
                    ),
                ),
                assumptions=(assumed.ALL_QUERIES,),
            ),
            Clause(
                "Theorem 1, necessity",
                rf"\|p_\epsilon - p'_\epsilon\| = {tex(smoothing.apart, 'tau', 'epsilon')} > 0",
                prove=part(PROOFS["smoothing"], "apart: smoothed", prose=(theorem1.FORGETS,)),
                assumptions=(assumed.TYPES, assumed.DEPTH, assumed.RIGHT),
            ),
            Clause(
                "Theorem 2",
                rf"\text{{excess}} \le {tex(smoothing.small_excess, 'tau', 'epsilon', 'pi_1', 'pi_2')}: \quad"
                r" \|T(x_1) - T(x_2)\| \ge \frac{(1-\epsilon)\tau}{2}",
                prove=part(PROOFS["smoothing"], "apart", prose=(cross_entropy.GROUPED, cross_entropy.SEVERAL)),
                assumptions=(assumed.TYPES, assumed.DEPTH),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 18 500 (size in the code of a check, which its name tells)
# typed: 6 (size in the code of a check)
# -->
