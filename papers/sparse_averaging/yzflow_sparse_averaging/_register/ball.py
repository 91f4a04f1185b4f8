"""The statement on fully connected networks whose values are in the unit ball, as the paper takes them."""

from __future__ import annotations

from theory.statements import Assumption, Clause
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_sparse_averaging import measures_ball as checks
from yzflow_sparse_averaging._register.common import check, given, statement
from yzflow_sparse_averaging.proofs import unit_ball

_D = "d'"
_BALL = given("values in the unit ball, each token's by itself; an error is a Euclidean norm")
_BELOW = Assumption("q < N", lambda setting: (setting.n_tokens - 1) / setting.subset_size)
_SMALLEST, _ONE = tex(unit_ball.smallest, "q"), tex(unit_ball.all_but_one, "q")
_NARROWEST = tex(unit_ball.narrowest, "N", _D)

STATEMENTS = (
    statement(
        "Fully connected, unit ball",
        "First layers with values in the unit ball (not in the slides)",
        "The least error of a width is that of the cube for q = 1, for q = N - 1, from the width d'(N - 1) on, and for"
        " d' = 1. Elsewhere it lies between the cube's over sqrt(d') and that of one number a token at the width k/d',"
        " rounded down; where, is open (yzflow_sparse_averaging.other_architectures.ball_error).",
        rf"k < Nd': \ \text{{error}} \ge {_SMALLEST}, \text{{ attained for }} k \ge {_NARROWEST}; \quad q = N - 1,"
        rf" \ d' \le k < {_NARROWEST}: \ {_ONE}",
        assumptions=(_BELOW, _BALL),
        clauses=(
            Clause(
                "errors of order 1/q",
                rf"k < Nd': \ \text{{error}} \ge {_SMALLEST}, \text{{ attained for }} k \ge {_NARROWEST}",
                prove=part(
                    unit_ball.derive,
                    "one token",
                    prose=(unit_ball.LARGEST, unit_ball.TRIANGLE, unit_ball.DIRECTION),
                ),
                checks=check(
                    "what errors on kernels of one and two dimensions fall below that, or exceed it where attained",
                    checks.wide_layers,
                    tolerance=1e-5,
                ),
            ),
            Clause(
                "all tokens but one",
                rf"q = N - 1, \ d' \le k < {_NARROWEST}: \ \text{{least error}} = {_ONE}",
                prove=part(unit_ball.derive, "all but one", prose=(unit_ball.LARGEST, unit_ball.LINEAR)),
                checks=check("what errors found on random kernels fall below that", checks.all_but_one, tolerance=1e-9),
            ),
            Clause(
                "elsewhere, bounds",
                rf"{tex(unit_ball.shrunk, _D)}\, e_{{\mathrm{{cube}}}}(k, d') \le \text{{least error}} \le"
                r" e_{\mathrm{cube}}(\lfloor k/d' \rfloor, 1)",
                prove=part(unit_ball.derive, "bounds", prose=(unit_ball.SCALED, unit_ball.DIRECTION)),
            ),
            Clause(
                "elsewhere, the least error",
                not_examined=("open where the bounds differ",),
            ),
        ),
    ),
)
