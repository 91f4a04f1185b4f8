"""The statement on the dimension that all sets need, "iff m >~ q" of the slides.

Formulas are printed from the claims that the proofs decide.
"""

from __future__ import annotations

from theory.statements import Assumption, Clause, Remark
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_sparse_averaging import measures_faces as checks
from yzflow_sparse_averaging._register.common import check, given, statement
from yzflow_sparse_averaging.proofs import faces

_KEYS = given("keys of the tokens that do not depend on the set that is asked for")
_REAL = given("real numbers, of infinitely many bits")
_BELOW = Assumption("q < N", lambda setting: (setting.n_tokens - 1) / setting.subset_size)
_LEAST = tex(faces.dimension, "N", "q")

STATEMENTS = (
    statement(
        "Dimension for all sets",
        "One unit averages every set exactly if m is at least min(2q, N - 1)",
        "With exact numbers some keys give every set of q tokens a query whose attention tends to the even one, exactly"
        " if m is at least min(2q, N - 1). Of fewer dimensions any keys lose a set: whatever its query, its attention"
        " errs by 2/(3q) or more for q <= N/2, and by 1/q or more for N >= 3q.",
        r"\text{a single unit approximates qSA iff } m \gtrsim q",
        corrected=rf"m \ge {_LEAST}; \quad \text{{else some }} y \text{{ has }} \|a - \tfrac1q 1_y\|_1 \ge"
        rf" {tex(faces.forced_error, 'q')} \text{{ for }} q \le \tfrac N2, \ge {tex(faces.far_error, 'q')}"
        r" \text{ for } N \ge 3q",
        assumptions=(_BELOW, _REAL, _KEYS),
        errata=(
            Remark(
                "The slides do not say in which arithmetic. For exact numbers this is the constant, and that of"
                " neighbourly polytopes, which is classical. For numbers of p bits Theorem 4 has m p of order q, and"
                " Theorem 2 enough dimensions up to a logarithm: between these nothing sharper is known here."
            ),
            Remark(
                "Where the key of the token that asks depends on its set, as it may in a unit, the bound is that of the"
                " N - 1 other tokens. It says nothing of keys that depend on the values that are averaged."
            ),
        ),
        clauses=(
            Clause(
                "even attention",
                rf"\text{{every }} y \text{{ has a query}} \iff m \ge {_LEAST}",
                prove=part(faces.derive, "sides", "scores", "enough", prose=(faces.RADON, faces.SIDES, faces.CURVE)),
                checks=check(
                    "sets that keys of one dimension fewer do not lose, N to 7", checks.sets_lost, needed=True
                ),
            ),
            Clause(
                "keys of that dimension",
                r"u_t = (t, \dots, t^{2q}), \text{ or } N - 1 \text{ unit vectors and } 0",
                prove=part(faces.derive, "enough", prose=(faces.CURVE,)),
                checks=check("sets that are not served, of all, N to 7", checks.all_sets_served, needed=True),
            ),
            Clause(
                "errors in fewer dimensions",
                rf"m < {_LEAST}: \ \|a - \tfrac1q 1_y\|_1 \ge {tex(faces.forced_error, 'q')}",
                prove=part(
                    faces.derive,
                    "sides",
                    "share",
                    "error",
                    prose=(faces.RADON, faces.SIDES, faces.DEFICIT, faces.MONOTONE),
                ),
                checks=check("what the least error found falls below that", checks.errors_of_few, tolerance=1e-6),
                assumptions=(Assumption("q <= N/2", lambda setting: setting.n_tokens / 2 / setting.subset_size),),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 (factor, divisor or term of a formula)
# typed: 7 (size in the code of a check, which its name tells)
# -->
