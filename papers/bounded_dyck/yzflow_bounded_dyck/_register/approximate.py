"""Statements on approximately balanced layers: Theorem 2 and Corollary 2."""

from __future__ import annotations

import sympy as sp

from theory.statements import Check, Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures as checks
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import PROOFS, TRAINED, exact, statement
from yzflow_bounded_dyck.proofs import cross_entropy, theorem2, weight_decay

_BOUND = tex(theorem2.bound, "P", "gamma", "tau", "n")
_HALF = tex(theorem2.bound, "P", "gamma", sp.Symbol("tau", positive=True) / 2, "n")


def _beyond(p: sp.Expr, lipschitz: sp.Expr, separation: sp.Expr, n: sp.Expr, levels: sp.Expr) -> sp.Expr:
    return theorem2.deeper(theorem2.bound(p, lipschitz, separation, n), n, levels)


_DEEPER = tex(_beyond, "P", "gamma", "tau", "n", "d' - d - 2")

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Theorem 2",
        "Approximate balance",
        "A layer with a Lipschitz head whose outputs stay apart, as a loss near its least forces them to, cannot let a "
        "pair add more than a share of about 1/N of the sum.",
        r"S_{d,d',i,j} \le \frac{C\,P_{d,j}}{N}",
        corrected=rf"S \le {_BOUND} \text{{ for }} d' \le d + 2, \quad"
        rf" S \le {_DEEPER} \text{{ else}}",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.TYPES, assumed.DEPTH, assumed.LIPSCHITZ),
        errata=(
            Remark(
                "The constant is explicit: n pairs, gamma-Lipschitz heads, outputs tau apart after them; n up to N/2 -"
                " D fits into length N. A loss within pi tau^2/16 of its least, tau the distance of the exact"
                " distributions and pi the weight in it of the rarer of the two prefixes, leaves outputs tau/2 apart."
                " Below level d + 2, which the prefixes of (16) do not reach, it is larger by 1 + 1/n for each level"
                " between, which C absorbs."
            ),
            Remark(
                "The cross-entropy serves as well as the squared loss, although no finite weights attain its least"
                " (footnote 1): its excess, in nats, is never below that of the squared loss. One more pair divides the"
                " weight of a prefix by k/(q(1 - q)): to speak of n pairs, the excess must fall exponentially with n."
            ),
        ),
        clauses=(
            Clause(
                "levels that the prefix reaches",
                rf"d' \le d + 2: \quad S \le {_BOUND}",
                prove=part(
                    PROOFS["theorem2"], "distance", "bound", prose=("the triangle inequality; the prefixes' lengths",)
                ),
                checks=(
                    exact("S against the bound where it is attained", checks.attained_bound, 0.01),
                    Check(
                        "S of trained layers whose outputs are right enough, against the bound",
                        TRAINED,
                        checks.approximate_balance,
                        tolerance=1e-9,
                        expected=TRAINED,
                        says="the bound on S / P",
                    ),
                ),
                assumptions=(assumed.APART,),
            ),
            Clause(
                "deeper levels, those between opened once",
                rf"S \le {_DEEPER}",
                prove=part(
                    PROOFS["theorem2"],
                    "deeper",
                    prose=("the triangle inequality; the prefixes' lengths; the induction over the levels between",),
                ),
                checks=(exact("the same one level deeper", checks.attained_deeper, 0.01),),
                assumptions=(assumed.APART,),
            ),
            Clause(
                "from the loss",
                rf"\text{{excess}} \le {tex(theorem2.small_excess, 'pi', 'tau')}: \quad S \le {_HALF}, \quad"
                r" \tau = \sqrt{2}\,(1 - q)",
                prove=part(
                    PROOFS["theorem2"],
                    "loss",
                    prose=("the triangle inequality; all other prefixes add no less than nothing to the excess",),
                ),
                assumptions=(assumed.NEAR,),
            ),
            Clause(
                "from the cross-entropy",
                rf"\text{{excess}} \le {tex(cross_entropy.small_excess, 'tau', 'pi_1', 'pi_2')}: \quad S \le {_HALF},"
                r" \quad \tau = \sqrt{2}\,(1 - q)",
                prove=PROOFS["cross_entropy"],
                checks=(
                    exact("largest ratios of the sides of KL >= 2 t^2 >= |p - o|^2", checks.divergence_bounds, 1e-4),
                    Check(
                        "outputs of trained layers, against what their part of the excess leaves",
                        TRAINED,
                        checks.kept_apart,
                        tolerance=1e-9,
                        expected=TRAINED,
                        says="what the loss leaves of outputs",
                    ),
                ),
                assumptions=(assumed.NEAR_ENTROPY,),
            ),
        ),
    ),
    statement(
        "Corollary 2",
        "Weight decay",
        "As weight decay goes to zero, so does the excess of a minimiser's squared loss, and S N / P stays bounded, at "
        "each length. Nothing here says that a minimiser exists, or that training finds one.",
        r"\lim_{\lambda \to 0} \frac{S_{d,d',i,j}\,N}{P_{d,j}} \le C",
        corrected=rf"\lambda \le {tex(weight_decay.small_decay, 'R_0', 'pi', 'tau')}: \quad S \le {_HALF}, \quad"
        rf" \gamma \le {tex(weight_decay.product_bound, 'R_0', 'L')} \text{{ for heads of }} L \text{{ matrices}}",
        assumptions=(
            assumed.MINIMAL,
            assumed.NO_FLOOR,
            assumed.TYPES,
            assumed.DEPTH,
            assumed.INDEPENDENT,
            assumed.DECAY,
        ),
        errata=(
            Remark(
                "LN without a floor takes off the scale of W_V: with decay on W_V a smaller one has the same outputs"
                " and the smaller objective, and there is no minimiser. The proof asks for no more than an objective of"
                " at most lambda R_0."
            ),
        ),
        clauses=(
            Clause(
                "the loss and its outputs",
                rf"\text{{excess}} \le {tex(weight_decay.excess_bound, 'lambda', 'R_0')}",
                prove=part(
                    PROOFS["weight_decay"],
                    "excess",
                    "outputs",
                    "limit",
                    prose=(weight_decay.MINIMISER, weight_decay.SIZE, "the triangle inequality for the outputs"),
                ),
            ),
            Clause(
                "the head's Lipschitz constant",
                rf"\gamma \le {tex(weight_decay.product_bound, 'R_0', 'L')}",
                prove=part(PROOFS["weight_decay"], "head", sizes={"layers of the head": (2, 3)}),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 16 (factor, divisor or term of a formula)
# -->
