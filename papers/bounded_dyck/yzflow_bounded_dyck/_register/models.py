"""Statements on models that read brackets: the exact transformer from tokens, and inserted pairs in any model."""

from __future__ import annotations

import sympy as sp

from theory.statements import Assumption, Check, Clause, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures_of_models as checks
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import PROOFS, TRAINED, exact, statement
from yzflow_bounded_dyck.proofs import from_tokens, outputs, stack

RIGHT_TESTED = Assumption(
    "right at every length: errors of at most 1e-6 at tested lengths", checks.right_at_tested_lengths
)

_STACKS = {"(k, D)": ((1, 2), (2, 2), (2, 3))}
_EACH = "after every prefix of up to 5 brackets, one of 500 and nests to the full depth"
_CHANGE = tex(outputs.least, r"\|o - o^{+}\|")
_ALIKE = tex(outputs.least_apart, "(1 - q)", r"\|o - o_2\|")
_RAMP = tex(lambda y: sp.Max(0, y - 1) - sp.Max(0, y - 2), "y")
_SEEN = tex(from_tokens.seen, "d")
_LOST = tex(from_tokens.lost, "m", "L")
_GAP = tex(lambda low: from_tokens.gap(low, sp.Symbol("p", positive=True)), "L").replace("p", r"\min p")

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Transformer from tokens",
        "An exact transformer from brackets, for every k, D and prefix (not in the paper)",
        "Two layers of attention with a token START and without positions give the exact distribution of the next "
        "bracket after every prefix (yzflow_bounded_dyck.from_tokens). The first attention is uniform; the second is "
        "any balanced one: random, uniform or stack-like. It is Corollary 1 with both layers composed.",
        rf"\text{{logits}} = \ln p \text{{ or }} -L, \quad \text{{least gap}} = {_GAP}",
        assumptions=(assumed.CAUSAL, assumed.NO_FLOOR),
        clauses=(
            Clause(
                "the first layer knows the state",
                rf"h/\sqrt{{1 + h^2}} = {_SEEN}, \quad [d \ge m] = {_RAMP}, \quad y"
                r" = 3\,\frac{x - x_{m-1}}{x_m - x_{m-1}}",
                prove=part(
                    PROOFS["from_tokens"],
                    "depth",
                    "step",
                    "state",
                    prose=(from_tokens.CAUSAL, from_tokens.STREAM, from_tokens.ONE_UNIT),
                ),
                checks=(exact(f"states, {_EACH}", checks.states_written, 1e-10),),
            ),
            Clause(
                "the second attention may look like anything that is balanced",
                r"Z_{q,\mathrm{open}} + t, \ Z_{q,\mathrm{close}} + t: \quad \text{matched pairs cancel}",
                prove=part(PROOFS["from_tokens"], "norm", "sharper"),
            ),
            Clause(
                "the head reads the last unmatched bracket",
                r"t_{il} = " + tex(lambda own, deeper: stack.top(own, [deeper]), "h_{il}", r"\sum_j h_{j,l+1}"),
                prove=part(PROOFS["stack"], "coordinate", "step", "head", sizes=_STACKS, prose=(stack.SMALLEST,)),
                checks=(exact(f"logits over L, {_EACH}, L = 10", checks.exact_logits, 1e-9),),
            ),
            Clause(
                "the least gap of logits",
                rf"{_GAP}, \quad \min p = \min(q/k,\, 1 - q) \text{{ for }} k, D \ge 2, \text{{ else }} 1/k",
                prove=part(PROOFS["from_tokens"], "logits", prose=(from_tokens.READ,)),
                checks=(exact("least gap, measured against the formula", checks.least_gap, 1e-9),),
            ),
            Clause(
                "what softmax leaves to impossible brackets",
                rf"\|o - p\|_{{TV}} = {_LOST} \text{{ for }} m \text{{ impossible ones}}",
                prove=part(PROOFS["from_tokens"], "softmax"),
                checks=(exact("total variation against the formula, L = 3", checks.softmax_share, 1e-9),),
            ),
        ),
    ),
    statement(
        "Pairs in outputs",
        "What inserted pairs say of any model (not in the paper)",
        "A matched pair never changes what comes next. So a model, however it is made, has an error of at least half "
        "of what pairs change in its output, and of half of what outputs after stacks with other last types lack of "
        "1 - q. If it is right at every length, pairs change nothing. Your own: yz.check(.., data=models.of(..)).",
        rf"\max(e, e') \ge {_CHANGE}, \quad"
        rf" \max(e, e') \ge {_ALIKE}",
        assumptions=(assumed.DEPTH,),
        clauses=(
            Clause(
                "an error of half the change",
                rf"\max(e, e') \ge {_CHANGE}",
                prove=part(
                    PROOFS["outputs"],
                    "a change",
                    "the mean of two errors, for a change",
                    "attained",
                    "the larger",
                    prose=(outputs.TRIANGLE, outputs.SAME),
                ),
                checks=(
                    Check(
                        "the largest error at prefixes with pairs, against what the outputs' changes ask for",
                        TRAINED,
                        checks.error_from_pairs,
                        tolerance=1e-9,
                        expected=TRAINED,
                        says="the bound on the error",
                    ),
                ),
            ),
            Clause(
                "an error where stacks look alike",
                rf"\max(e, e') \ge {_ALIKE}",
                prove=part(
                    PROOFS["outputs"],
                    "exact",
                    "the mean of two errors, for stacks",
                    "stacks",
                    "the larger",
                    prose=(outputs.TRIANGLE, outputs.SAME),
                ),
                checks=(
                    exact("the bound of a model that attains it, against its error", checks.attained_from_pairs, 1e-9),
                ),
                assumptions=(assumed.TYPES,),
            ),
            Clause(
                "right at every length: pairs change nothing",
                r"o = p: \quad \|o - o^{+}\| = 0",
                prove=part(PROOFS["outputs"], "a change", prose=(outputs.TRIANGLE, outputs.SAME)),
                checks=(
                    Check(
                        "the largest change of outputs by pairs, where a right model has none",
                        TRAINED[1:],
                        checks.pairs_change,
                        tolerance=2e-6,
                        expected=TRAINED[1:],
                        says="that pairs change nothing",
                    ),
                ),
                assumptions=(RIGHT_TESTED,),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 3 5 10 500 1e-6 (size in the code of a check, which its name tells)
# -->
