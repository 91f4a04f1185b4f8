"""The statement on the strict model, d = m with linear queries, keys and values, which is not in the slides."""

from __future__ import annotations

from theory.statements import Assumption, Clause
from theory.symbolic import part
from theory.symbolic.printing import plain, tex
from yzflow_sparse_averaging import measures_strict as checks
from yzflow_sparse_averaging._register.common import BETWEEN, check, given, rank_of_disjointness, statement
from yzflow_sparse_averaging.proofs import sorted_groups, strict, transform

_LINEAR = given("d = m: a token has m numbers, of which queries, keys and values are linear maps")
_POSITIONS = given("tokens know their positions")
_NONE = given("no positions, and no blank token")
_BLANK = given("one blank token")
_CUBE = given("N = G^3")
_FEW = Assumption("M = O(N): M <= N", lambda setting: 1.0)
_DIVIDES = given("m divides 2N; P is the least prime above 2N that is no less than M")
_MANY = given("M >= N + 2, N odd, and what is sent has p bits a number")

_WIDE, _LONG = tex(strict.sorted_width, "N", "M")
_TRANSFORM = rf"m = d = {tex(strict.transform_width, 'N')}, \quad mHD \le {tex(strict.transform_size, 'N')}"
_GROUPS = rf"m = d = {tex(strict.groups_width, 'N')}, \quad mHD = {tex(strict.groups_size, 'N')}"
_BITS = rf"H = D = 1, \quad p \le {tex(strict.bits, 'N', 'P', 'm')}"
_CIRCUIT = rf"H = 2g, \quad m = d = {tex(strict.circuit_width, 'g', 'c', 'b')}"

STATEMENTS = (
    statement(
        "Match3, strict",
        "Triples where queries, keys and values are linear (not in the slides)",
        "The model of the slides taken literally: tokens of d = m numbers, matrices Q, K and V, maps of any size"
        " before, between and after layers. With positions the published form is refuted for M = O(N), and the slides'"
        f" form for every M and large N: two layers have m H D = {plain(strict.groups_size, 'N')}. Without positions"
        " one layer is known up to a logarithm, by the product m H p alone. For M = N^a, a > 1, and several layers"
        " neither a bound nor a small construction is known, and a bound of the published form would be one on"
        " circuits, which run on attention alone, without maps between the layers.",
        rf"{_TRANSFORM} \quad \text{{for }} M \le N = 2^r, \quad \text{{every }} M: {_GROUPS}",
        assumptions=(_LINEAR, BETWEEN),
        clauses=(
            Clause(
                "published form, M = O(N), with positions: refuted",
                rf"D \le {tex(transform.depth, 'N')}, \quad H = 2, \quad {_TRANSFORM}, \quad p \text{{ as in the"
                r" transform}, \quad M \le N = 2^r",
                prove=part(strict.derive, "transform: ", prose=(strict.LIFT,)),
                checks=check("wrong outputs of the strict transform, M <= N", checks.strict_transform, needed=True),
                assumptions=(_POSITIONS, _BLANK, _FEW),
            ),
            Clause(
                "slides' form, every M, with positions: refuted",
                rf"D = 2, \quad H = 3, \quad {_GROUPS}",
                prove=part(strict.derive, "groups: ", prose=(strict.LIFT,)),
                checks=check("wrong outputs of strict groups", checks.strict_groups, needed=True),
                assumptions=(_POSITIONS, _CUBE),
            ),
            Clause(
                "slides' form, M = N^a, with positions: refuted",
                rf"{tex(sorted_groups.depth, 'K')} \text{{ layers}}, \quad H = 3, \quad m = d \le \max\left({_WIDE},\ "
                rf"{_LONG}\right)",
                prove=part(strict.derive, "sorted: ", prose=(strict.LIFT,)),
                checks=check("wrong outputs of strict sorted groups", checks.strict_sorted, needed=True),
                assumptions=(_POSITIONS, given("N >= 3")),
            ),
            Clause(
                "sizes of what is built",
                r"m = d, \quad D,\ H \text{ and } p \text{ as with maps}",
                checks=check("widths as built, and D, H and p that change, N to 1024", checks.widths, needed=True),
                assumptions=(_POSITIONS,),
            ),
            Clause(
                "one layer, every M, without positions",
                _BITS,
                prove=part(
                    strict.derive,
                    "one layer: p",
                    "one layer: digits",
                    "one layer: N times",
                    "one layer: its own",
                    "Newton",
                    sizes=strict.SIZES,
                    prose=(strict.NEWTON,),
                ),
                checks=check("wrong outputs over all inputs, N to 4", checks.averaging_layer, needed=True),
                assumptions=(_NONE, _DIVIDES),
            ),
            Clause(
                "one layer: no smaller product",
                rf"mHp \ge {tex(strict.least_product, 'N')}",
                prove=part(strict.derive, "one layer: the bound"),
                checks=check("bits of the layer as built, and the bound, N to 101", checks.averaging_bits),
                argued=("that one layer decides disjointness of (N - 1)/2 bits, as in Match3, one layer",),
                assumptions=(_MANY,),
            ),
            rank_of_disjointness("n"),
            Clause(
                "without positions M = N is as hard as M = n^a",
                r"N = c\,n: \quad f_N(x, \dots, x) = (f_n(x), \dots, f_n(x)) \text{ with the same weights}",
                prove=part(strict.derive, "copies: ", sizes={"tokens": (3,)}, prose=(strict.COPIES,)),
                checks=check("answers that change if each token stands there three times", checks.repeated),
                assumptions=(_NONE,),
            ),
            Clause(
                "circuits run in as many layers as they are deep",
                _CIRCUIT,
                prove=part(strict.derive, "circuits: ", prose=(strict.LIFT, strict.GATES, strict.BARRIER)),
                checks=check("wrong outputs of a circuit for Match3, N = 4, M = 2", checks.circuits, needed=True),
                assumptions=(
                    _POSITIONS,
                    given("a circuit of g N gates of two inputs; positions of c digits, residues of b"),
                ),
            ),
            Clause(
                "no maps between layers: circuits run, too",
                r"D \le 14\,\mathrm{depth}, \quad H = 2gW, \quad W = g + b + 1",
                prove=part(strict.derive, "without maps: ", prose=(strict.TABLES,)),
                checks=check("wrong outputs of a circuit without maps between layers", checks.no_maps, needed=True),
                argued=("published form, M = O(N), without maps between layers: refuted, " + strict.NUMBERS,),
                assumptions=(_POSITIONS, _BLANK, given("three tokens or more, and g gates u and not v a token")),
            ),
            Clause(
                "several layers, M = N^a, a > 1",
                not_examined=("open: neither a bound nor a construction of N^o(1)",),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 (exponent, divisor or factor of a formula)
# typed: 1024 4 101 (size in the code of a check, which its name tells)
# typed: 3 (exponent, base or fraction of a formula)
# -->
