"""Statements on sparse averages, and on their cost for other networks.

Formulas are printed from the claims that the proofs decide.
"""

from __future__ import annotations

from theory.statements import Assumption, Clause, Remark, Slip
from theory.symbolic import part
from theory.symbolic.printing import plain, tex
from theory.values import value
from yzflow_sparse_averaging import measures as checks
from yzflow_sparse_averaging._register.common import MAPS, check, given, proof_of_rank, rank_of_disjointness, statement
from yzflow_sparse_averaging.proofs import all_sets, disjointness, fully_connected, linear_query, moments, recurrent

_D = "d'"
_ANY_Q = Assumption("1 <= q <= N", lambda setting: setting.n_tokens / setting.subset_size)
_HALF = Assumption("q <= N/2", lambda setting: setting.n_tokens / 2 / setting.subset_size)
_BELOW = Assumption("q < N", lambda setting: (setting.n_tokens - 1) / setting.subset_size)
_NEAR_HALF = Assumption("q <= (N + 1)/2", lambda setting: (setting.n_tokens + 1) / 2 / setting.subset_size)
_CUBE = given("z in [-1, 1] by coordinate")
_SIGNS = given("z of 1 and -1, d' = 1; the last output is asked for")
_EXACT_NUMBERS = given("numbers of infinitely many bits")

_FAILING = [f"({n}, {q})" for n, q in value("sparse_averaging.float_curve.some_at")]
_SET = value("sparse_averaging.one_set")
_FORCED = tex(lambda n, k, d, q: fully_connected.half_error(fully_connected.saturated(n, k, d), q), "N", "k", _D, "q")
_LOST = tex(fully_connected.lost_share, "N", "k", _D)
_ODD = tex(lambda q, r: fully_connected.odd_sum(q, r) / q, "q", "r")
_ONE_BELOW = plain(fully_connected.narrow_width, "N", "q", _D)
_BALANCED = tex(fully_connected.balanced_dimension, "s", _D)
_LACKING = r"r = \left\lceil N - \tfrac{k}{d'}\right\rceil"
_ONE_TOKEN = tex(fully_connected.forced_error, "q")
_ALL_BITS = (
    rf"\varepsilon < {tex(recurrent.allowed_error, 'q', small=True)}: \; {tex(recurrent.largest_q, 'N')} \text{{ bits}}"
)
_BLOCKS = tex(recurrent.blocks, "N", "q")
_STRINGS = r"(N-1)\left(1 - H\left(\tfrac{2q\varepsilon}{N-1}\right)\right)"
_ALICE, _BOB = tex(disjointness.values, "b_i")
_SENT = tex(disjointness.message_bits, "m", _D, "p")

STATEMENTS = (
    statement(
        "Theorem 2",
        "Sparse averaging by one unit",
        "One unit with random keys averages any q of N tokens, with numbers of O(log N) bits.",
        r"m = O(d + q\log N)",
        assumptions=(_ANY_Q, MAPS),
        errata=(
            Remark(
                "The shortest certificate is not enough for all sets: against the q keys closest to another key it"
                " needs m of about 8 q^2 ln(N/q), and more for the smallest q. With the nearest keys pinned m = 12 q ln"
                " N was enough for all sets that were tried. That some m of order q log(N/q) is enough for all sets at"
                " once is proved here with constants that are far larger."
            ),
        ),
        clauses=(
            Clause(
                "sets that were tried",
                checks=check("||a - 1_y/q||_1 <= eps, adversarial y, m = 12 q ln N", checks.random_keys),
            ),
            Clause(
                "O(log N) bits",
                r"p = \left\lceil \log_2\frac{q\ln N}{\varepsilon} \right\rceil + 4",
                checks=check("the same with queries rounded to p bits", checks.rounded_keys),
            ),
            Clause(
                "isometry gives every set a query",
                r"\delta_{2q} \le \tfrac9{40}: \text{ every } y \text{ has a } w,\ \langle w, u_j\rangle = 1"
                r" \text{ on } y,\ |\langle w, u_i\rangle| \le \tfrac12"
                r" \text{ off it}",
                prove=part(all_sets.derive, "certificate", prose=(all_sets.ITERATION,)),
            ),
            Clause(
                "all sets",
                rf"m \ge {tex(all_sets.dimension, 'N', 'q', 'p')}",
                prove=part(
                    all_sets.derive,
                    "tail",
                    "net",
                    "union",
                    "certificate",
                    prose=(all_sets.MARKOV, all_sets.UNION, all_sets.ITERATION),
                ),
                assumptions=(
                    Assumption("2q <= N", lambda setting: setting.n_tokens / 2 / setting.subset_size),
                    given("keys of independent fair signs over sqrt(m); it fails with probability p <= 1 at most"),
                ),
            ),
        ),
    ),
    statement(
        "Theorem 2, exact",
        "Sparse averaging without the logarithm",
        "Keys on the moment curve make every q-subset a face: 2q dimensions are enough with exact numbers.",
        r"m = O(d + q) \text{ with numbers of infinitely many bits}",
        corrected=rf"m = {tex(moments.dimension, 'q')}, \quad \langle w_y, u_t\rangle = P(t) - P(0), \quad P(t) ="
        rf" -\prod_{{j \in y}}(t-j)^2, \quad \text{{bits of }} w_y \approx {tex(moments.query_bits, 'N', 'q')}",
        assumptions=(_ANY_Q, _EXACT_NUMBERS, MAPS),
        errata=(
            Remark(
                "The bits do not vanish but move into the numbers: m p is about 4 q^2 log2 N. In float64 it fails for "
                f"some sets at (N, q) = {', '.join(_FAILING[:-1])} and {_FAILING[-1]}. Which ones depends on how BLAS "
                f"sums: {{{', '.join(map(str, _SET['subset']))}}} at ({_SET['n']}, {_SET['q']}), counted from 0, "
                "fails with one row of queries and not with three."
            ),
            Remark("On this curve 2q - 1 dimensions are too few as soon as N >= 2q + 1."),
        ),
        clauses=(
            Clause(
                "2q dimensions",
                rf"m = {tex(moments.dimension, 'q')}",
                prove=part(
                    moments.derive,
                    "gap",
                    "degree",
                    "equal scores",
                    "the square of an integer",
                    sizes=moments.SIZES,
                    prose=(moments.SQUARE,),
                ),
                checks=check("integer gap >= 1, and ||a - 1_y/q||_1 <= eps", checks.moment_curve),
            ),
            Clause(
                "2q - 1 are too few",
                prove=part(moments.derive, "dependency", "alternating", sizes=moments.FACES, prose=(moments.RADON,)),
            ),
            Clause(
                "bits of a query",
                tex(moments.query_bits, "N", "q"),
                checks=check("bits of the query of the last q tokens, over that", checks.curve_bits, tolerance=0.25),
            ),
        ),
    ),
    statement(
        "Theorem 4",
        "Lower bound for sparse averaging",
        "A unit for q-sparse averaging lets Alice and Bob decide disjointness of q bits: it needs m p of order q."
        " Proved, for every q (in Coq), are what the average says of the sets, the rank of their matrix, and that"
        " Alice has 2^q messages or more; the protocol itself is run on one unit.",
        r"y_{2q+1} = \{2i + a_i - 1\}, \quad z_{2i-1} = 2a_i - 1, \quad z_{2i} = -1; \quad m\log N \ge q",
        corrected=rf"z_{{2i}} = {_BOB}, \quad z_{{2i-1}} = {_ALICE}; \quad"
        rf" {_SENT} \ge q",
        assumptions=(
            Assumption("N >= 2q + 1", checks.protocol_margin),
            given("queries, keys and values of p bits, p = log N on the slides"),
            MAPS,
        ),
        errata=(
            Slip(
                "z_2i = 2 b_i - 1 and z_{2i-1} = -1, for every q.",
                stands="The theorem, its protocol and the bound of q bits.",
                quoted="y_{2q+1} = {2i + a_i - 1}, z_{2i-1} = 2 a_i - 1, z_2i = -1. Bob's values have a for b, and the"
                " parity is swapped: with b the protocol decides DISJ(not a, b).",
            ),
            Remark(
                "Row 2q + 1 of the softmax has its own token in it: Bob needs that key and value too, not only the"
                " query. The order of what is sent is the same for d' up to m."
            ),
            Remark(
                'The slides\' "iff m >~ q" is this with Theorem 2, up to logarithms: for numbers of p bits m >= (q/p -'
                " d')/2 is needed, for any N >= 2q + 1; m of order q log(N/q) is enough for all sets at once, proved"
                " with exact numbers and run with O(log N) bits. With exact numbers the constant is known (Dimension"
                " for all sets)."
            ),
        ),
        clauses=(
            Clause(
                "the average tells disjoint sets from others",
                prove=part(disjointness.derive, "average"),
            ),
            rank_of_disjointness("q"),
            Clause(
                "a message of q bits",
                r"\text{messages} \ge 2^q",
                prove=part(disjointness.derive, "average", prose=(disjointness.TOLD_APART,)),
            ),
            Clause(
                "a unit gives a protocol",
                rf"{_SENT} \ge q",
                checks=check(
                    "wrong answers over all pairs, 8-bit numbers", checks.qsa_printed, checks.qsa_corrected, needed=True
                ),
                argued=(
                    "that every unit, not only the one that is run, gives such a protocol: its last output depends on"
                    " Alice's token by a query, a key and a value alone",
                ),
            ),
        ),
    ),
    statement(
        "Rank bound",
        "Communication complexity of disjointness",
        "At least n bits must be sent, for the 0/1 matrix has full rank.",
        r"\mathrm{DISJ}(a, b) = \max_i a_i b_i, \quad \mathrm{rank} = 2^n",
        corrected=rf"\mathrm{{rank}}\bigl(1 - \max_i a_i b_i\bigr) = {tex(disjointness.rank, 'n')}",
        errata=(
            Remark(
                "DISJ(a, b) = max_i a_i b_i is 1 for sets that meet, on all slides alike. The matrix of that has rank"
                f" {plain(disjointness.intersection_rank, 'n')}, for the row of a = 0 is zero, and the one with 0 and 1"
                f" exchanged {plain(disjointness.rank, 'n')}: n bits must be sent for either."
            ),
        ),
        clauses=(
            Clause(
                "ranks",
                prove=part(
                    disjointness.derive,
                    "Kronecker",
                    "determinant",
                    "rank",
                    "det of",
                    sizes=disjointness.SIZES,
                    prose=(disjointness.INDUCTION,),
                ),
                checks=check("rank below 2^n", checks.rank_of_intersection, checks.rank_of_disjointness),
            ),
            Clause(
                "bits that must be sent",
                r"\text{bits of a deterministic protocol} \ge n",
                prove=proof_of_rank(disjointness.LEAVES),
            ),
        ),
    ),
    statement(
        "Fully connected",
        "First layers must be wide",
        "Values are from the cube, and an error is the largest of an entry; the unit ball has a statement of its own."
        " A first layer of width k that lacks a share 1 - k/(N d') of the values gives some input an error of"
        " that share or more, for every q <= N/2: one half at half the width. Errors below eps < 1 so take a width"
        f" above (1 - eps) N d'. For these q the least error is one at widths below {_ONE_BELOW}, and for no others."
        " The least error of a width, over all first layers, is known exactly for every q, N and d'. The sets may be"
        " read by any map.",
        r"\text{width} = \Omega(Nd)",
        corrected=rf"q \le \tfrac N2,\ {_LACKING}: \text{{ least error}} = \min\left(1, \tfrac{{r}}{{2q}}\right)"
        rf" \text{{ for even }} r,\ {_ODD} \text{{ for odd }} r < 2q, \text{{ else }} 1;\quad \ge {_LOST}",
        assumptions=(_BELOW, _CUBE),
        errata=(
            Remark(
                "The slides say neither for which q nor for which error; they think of q << N. For every q <= N/2 and"
                " every error below one a width of order N d' is needed, as they have it. For q > N/2 it depends on the"
                " error: the sum of all values, of width d', is within (N - q)/q < 1 of every average."
            ),
        ),
        clauses=(
            Clause(
                "constant errors",
                rf"\text{{error}} \ge \min\left(1,\ {_FORCED}\right)",
                prove=part(fully_connected.derive, "half", prose=(fully_connected.VERTICES,)),
                checks=check(
                    "what the error of a colliding pair lacks", checks.narrow_network, tolerance=1e-9, needed=True
                ),
                assumptions=(_HALF,),
            ),
            Clause(
                "the least error",
                rf"q < N,\ {_LACKING},\ m = \min(q, N - q),\ d' \le k < Nd':"
                r" \text{ least error} = \tfrac1q\min\left(m, \tfrac r2\right) \text{ for even }"
                rf" r,\ {_ODD} \text{{ for odd }} r < 2m, \text{{ else }} \tfrac mq",
                prove=part(
                    fully_connected.derive,
                    "tight",
                    "one up to there",
                    "balanced",
                    prose=(fully_connected.VERTICES, fully_connected.BALANCED, fully_connected.MIDDLE),
                ),
                checks=check(
                    "difference of the best layer's error and the least, and what random ones are below it, N <= 5;"
                    " N <= 4 at two numbers a token",
                    checks.least_error,
                    tolerance=1e-8,
                ),
            ),
            Clause(
                "balanced coordinates",
                rf"\dim\{{Wz = 0\}} \ge {_BALANCED}: \text{{ some }} z,\ \max|z| = 1, \text{{ has a coordinate with }}"
                r" \lceil\tfrac s2\rceil \text{ tokens at one of } \pm1 \text{ and } \lfloor\tfrac s2\rfloor"
                r" \text{ at the other}",
                prove=part(
                    fully_connected.derive,
                    "balanced",
                    prose=(fully_connected.VERTICES, fully_connected.BALANCED),
                ),
                checks=check(
                    "share of kernels that have none, N <= 4, three numbers a token at most", checks.balanced_kernels
                ),
            ),
            Clause(
                "errors of order 1/q",
                rf"k < Nd': \text{{ error}} \ge {_ONE_TOKEN}",
                prove=part(fully_connected.derive, "one", prose=(fully_connected.SMALLEST,)),
            ),
            Clause(
                "q above N/2",
                rf"k = d': \text{{ error}} \le {tex(fully_connected.error_of_sum, 'N', 'q')}",
                prove=part(fully_connected.derive, "sum"),
                checks=check("error of the sum of all values beyond that, q above N/2", checks.sum_of_all),
            ),
        ),
    ),
    statement(
        "Recurrent",
        "States must be many",
        "Before the last token a recurrent network must tell apart all values that the token may ask for: N - 1 bits"
        " for every q < N if errors are below 1/q, attained by one bit a value. For errors below 1 it needs"
        f" {plain(recurrent.blocks, 'N', 'q')} bits, and of order N as long as q times the error is below a quarter of"
        " N - 1 and q at most (N + 1)/2.",
        r"\Omega(N)\text{-bit hidden state}",
        corrected=rf"q < N: \; {_ALL_BITS}; \quad \varepsilon < 1: \; {_BLOCKS}"
        rf" \text{{ and, for }} q \le \tfrac{{N+1}}{{2}}, \; {_STRINGS} \text{{ bits}}",
        assumptions=(_BELOW, _SIGNS),
        errata=(
            Remark(
                "The slides say neither for which q nor for which error; they think of q << N. At q = N one sum is"
                " asked for, and log2 N bits are enough."
            ),
        ),
        clauses=(
            Clause(
                "errors below 1/q",
                _ALL_BITS,
                prove=part(
                    recurrent.derive,
                    "no output",
                    "one token",
                    "what Bob",
                    "sets that must",
                    prose=(recurrent.STATES,),
                ),
                checks=check(
                    "states before the last token, and wrong bits in the protocol, N to 7",
                    checks.recurrent_states,
                    needed=True,
                ),
            ),
            Clause(
                "errors below one",
                rf"\varepsilon < 1: \; {_BLOCKS} \text{{ bits}}",
                prove=part(recurrent.derive, "blocks", prose=(recurrent.STATES,)),
            ),
            Clause(
                "errors below one, by far strings",
                rf"\varepsilon < 1: \; {_STRINGS} \text{{ bits}}, \quad H(x) = {tex(recurrent.ball_bits, 'x')}",
                prove=part(recurrent.derive, "strings", prose=(recurrent.STATES, recurrent.GREEDY)),
                assumptions=(_NEAR_HALF,),
            ),
        ),
    ),
    statement(
        "Linear query",
        "A query linear in y (not in the slides)",
        "Exactly even attention on every y by scores linear in the multi-hot y takes N - 1 dimensions for q >= 3.",
        r"\langle w_y, u_i\rangle = \sum_{j \in y} A_{ji} \text{ equal on } y, \text{ smaller off } y",
        corrected=rf"m \ge \mathrm{{rank}}\,A \ge {tex(linear_query.rank, 'N')}, \text{{ attained by }} A = I -"
        r" \frac{1}{N}11^\top",
        assumptions=(given("3 <= q < N"), given("equal scores on every y, and smaller ones off it")),
        prove=linear_query.derive,
    ),
)

# <!-- numbers
# typed: 2 8 (factor, divisor or term of a formula)
# typed: 3 5 (condition of a theorem or of a clause that is proved)
# typed: 12 7 (size in the code of a check, which its name tells)
# typed: 4 (number of a statement, figure, section or finding)
# -->
