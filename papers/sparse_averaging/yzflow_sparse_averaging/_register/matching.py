"""Statements on pairs and triples, the slides' conjecture, and constructions that are not in the slides.

Formulas are printed from the claims that the proofs decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from theory.statements import Assumption, Clause, RefutedInPart, Remark, Slip
from theory.symbolic import part
from theory.symbolic.printing import plain, tex
from theory.values import value
from yzflow_sparse_averaging import measures as checks
from yzflow_sparse_averaging._register.common import (
    BETWEEN,
    MAPS,
    check,
    given,
    proof_of_rank,
    statement,
)
from yzflow_sparse_averaging.proofs import (
    assisted,
    disjointness,
    groups,
    match2,
    match3,
    sorted_groups,
    transform,
    triples,
)
from yzflow_sparse_averaging.sizes import below_bound

_POSITIONS = given("tokens know their positions")
_BLANK = given("a blank token at the end")
_ONE_BLANK = given("one blank token")
_BITS = given("scaled queries, keys, values, outputs and tokens of O(log NM) bits")
_PAIRS = Assumption("M >= N + 2, N odd", checks.pairs_margin)
_FEW_RESIDUES = Assumption("M = O(N): M <= 4N", checks.residues_margin)
_CUBE_TOKENS = given("N = G^3")

_UNMATCHED = value("sparse_averaging.without_blank")
_GAP = 1 - sp.cos(2 * sp.pi / sp.Symbol("M", positive=True))
_GROUPS, _STRICT, _TOKEN = (tex(claim, "N") for claim in (groups.size, groups.strict_size, groups.token_width))
_TWO_LAYERS = rf"D = {tex(groups.depth)}, \quad H = {tex(groups.heads)}, \quad m = {tex(groups.dimension, 'N')}"
_WINDOW, _WINDOW_TOKEN = (tex(claim, "K") for claim in (assisted.window_dimension, assisted.window_token_width))
_LONGEST = ", ".join(tex(groups.bits, "N", "M", small=True))
_RESIDUES, _AVERAGES = tex(sorted_groups.bits, "N", "M", small=True)
_TRANSFORM = (
    rf"D \le {tex(transform.depth, 'N')}, \quad H = {tex(transform.heads)}, \quad m = {tex(transform.dimension, 'N')}"
)
_COPIES, _SHARES = tex(transform.bits, "N", "P")
_SORTED = rf"D = {tex(sorted_groups.depth, 'K')}, \quad H = {tex(sorted_groups.heads)}"
_GROUP, _CODE = tex(sorted_groups.dimension, "N", "M")


def _from(size: Callable[[Any], Any]) -> str:
    """The N from which on a size is below N / log2 N, with two digits."""
    digits, _, power = f"{below_bound(size):.1e}".partition("e")
    return f"{digits} 10^{int(power)}"


STATEMENTS = (
    statement(
        "Match2",
        "Pairs by one unit",
        "One unit of three dimensions with a blank token finds pairs with sum zero mod M. Proved in exact arithmetic;"
        " that float64 keeps the error is measured.",
        r"\mathrm{Match2}(X)_i = 1\{\exists j: x_i + x_j = 0\}, \quad m = O(1), \quad c \text{ large}",
        corrected=r"x_i + x_j \equiv 0 \bmod M: \quad m = 3, \quad"
        rf" c = {tex(match2.temperature, 'N', 'o', _GAP)}, \quad s_0 = {tex(match2.blank_score, 'o', 'c')}, \quad"
        rf" \eta = {tex(match2.largest_error, 'o')}",
        assumptions=(MAPS, _BLANK),
        errata=(
            Slip(
                "x_i + x_j = 0 mod M, as the scores cos(2 pi (x_i + x_j)/M) have it. The same in Match3.",
                stands="The theorem and its construction.",
                quoted="Match2(X)_i = 1{there is a j: x_i + x_j = 0}, for x in [M]^N, which no positive integers do.",
            ),
            Remark(
                f"The blank token is needed, as the slides say: without it X ="
                f" ({', '.join(map(str, _UNMATCHED['x']))}), M = {_UNMATCHED['m']} gives ones everywhere."
            ),
        ),
        clauses=(
            Clause("in exact arithmetic", prove=match2.derive),
            Clause(
                "in float64",
                checks=check(
                    "error beyond eta, random and adversarial inputs", checks.match2_printed, checks.match2_corrected
                ),
            ),
        ),
    ),
    statement(
        "Match3, one layer",
        "Triples cost one layer N dimensions",
        "One layer of H heads, with maps of any size before and after it, decides disjointness of (N - 1)/2 bits if it"
        " computes Match3: a head's output in the first row takes m + 1 numbers from Alice.",
        r"mH = \Omega\left(\frac{N}{\log N}\right)",
        corrected=rf"{tex(triples.sent_bits, 'H', 'm', 'p')} \ge \frac{{N - 1}}{{2}}",
        assumptions=(_PAIRS, BETWEEN, given("what is sent has p bits a number, O(log N) on the slides")),
        errata=(
            Remark(
                "In the reduction the pairs {v, 1 - v} of Z_M must be different ones, and leave out {-1, 2}, which M >="
                " N + 2 has room for."
            ),
        ),
        clauses=(
            Clause(
                "a triple vanishes for sets that meet, and for no others",
                prove=part(triples.derive, "pairs", sizes=triples.SIZES),
            ),
            Clause(
                "a message of (N - 1)/2 bits",
                r"\text{messages} \ge 2^{(N-1)/2}",
                prove=proof_of_rank(disjointness.TOLD_APART),
            ),
            Clause(
                "a layer gives a protocol",
                rf"{tex(triples.sent_bits, 'H', 'm', 'p')} \ge \frac{{N - 1}}{{2}}",
                prove=part(triples.derive, "split", prose=(triples.TOKENS, triples.SENT)),
                checks=check("wrong answers over all pairs, one layer of m = M", checks.match3_protocol, needed=True),
            ),
        ),
    ),
    statement(
        "Match3, tensor unit",
        "Triples by one third-order unit",
        "Softmax over pairs of tokens finds triples with sum zero mod M in four dimensions, with a blank pair. Proved"
        " in exact arithmetic; that float64 keeps the error is measured.",
        r"f_{\text{3rd order}}(X) = \mathrm{Match3}(X), \quad m = O(1)",
        corrected=rf"m = 4, \quad c = {tex(match3.temperature, 'N', 'o', match3.gap(_GAP))}, \quad \eta ="
        rf" {tex(match2.largest_error, 'o')}",
        assumptions=(MAPS, _BLANK),
        errata=(
            Remark("For M <= 3 the gap is 1 and not 1 - cos(2 pi/M), for pairs of a token and the blank score zero."),
        ),
        clauses=(
            Clause("in exact arithmetic", prove=match3.derive),
            Clause(
                "in float64",
                checks=check("error beyond eta, random and adversarial inputs", checks.match3_tensor, needed=True),
            ),
        ),
    ),
    statement(
        "Match3, assisted",
        "Triples of neighbours",
        "Two layers of one head find x_i + x_j + x_{j+1} = 0 mod M, with positions in the tokens and a map that rounds"
        " between the layers; one layer finds triples within K positions, whatever N and M. Proved in exact arithmetic;"
        " that float64 decides rightly is measured.",
        r"\text{efficient with a standard transformer}: \quad D, H, m = O(1)",
        corrected=rf"\text{{bigram: }} D = {tex(assisted.depth)},\ H = 1,\ m = {tex(assisted.dimension)}; \quad"
        rf" \text{{window of }} 2K + 1: D = {tex(assisted.window_depth)},\ H = 1,\ m = {_WINDOW}",
        assumptions=(_POSITIONS, MAPS, BETWEEN),
        clauses=(
            Clause(
                "neighbours",
                rf"D = {tex(assisted.depth)}, \quad H = 1, \quad m = {tex(assisted.dimension)}",
                prove=part(assisted.derive, "neighbours", prose=(assisted.RING, match2.SINES)),
                checks=check(
                    "wrong outputs of the bigram construction, or a larger size", checks.assisted, needed=True
                ),
                assumptions=(_BLANK,),
            ),
            Clause(
                "a window",
                rf"D = {tex(assisted.window_depth)}, \quad H = 1, \quad m = {_WINDOW}, \quad \text{{numbers of a"
                rf" token}} = {_WINDOW_TOKEN}",
                prove=part(assisted.derive, "window", prose=(assisted.PLACES,)),
                checks=check("wrong outputs of the window construction, or another size", checks.window, needed=True),
            ),
        ),
    ),
    statement(
        "Conjecture",
        "Triples: refuted in part, where tokens know their positions",
        "Published, as quoted: a width, depth, dimension or bits of N^{Omega(1)}. Refuted for M = O(N), in the model"
        " that the assumptions write out; for M = N^a, a > 1, it is open. The slides' form, mHD of order N / log N with"
        " numbers of O(log N) bits, fails in this model for every M and large N: two layers have"
        f" {plain(groups.size, 'N')}, and {plain(groups.strict_size, 'N')} if m is no less than a token's numbers.",
        r"mHD = \Omega\left(\frac{N}{\log N}\right)",
        corrected=r"M = O(N): mHD = O(\log^2 N), \quad M = N^{O(1)}: mHD = O(\sqrt{N}) \text{ at } D = O(1), \quad"
        rf" \text{{every }} M: mHD = {_GROUPS} \text{{ at }} D = {tex(groups.depth)}",
        assumptions=(_POSITIONS, MAPS, BETWEEN, _BITS),
        errata=(
            RefutedInPart(
                "It fails in the model that is written out here, for large N only, by two layers of groups of N^{2/3}"
                f" positions: {plain(groups.size, 'N')} is below N / log2 N from N of about {_from(groups.size)} on,"
                f" and {plain(groups.strict_size, 'N')}, with m no less than a token's numbers, from about"
                f" {_from(groups.strict_size)} on; the ratio falls like log N/N^(1/3).",
                stands="The slides' theorem on one layer. The published form, N^{Omega(1)}, for M = N^a, a > 1: it is"
                " open, with no smaller exponent than min(a - 1, 1/2) built here. All that is refuted of several layers"
                " is so with tokens that know their positions.",
                quoted="any D-depth H-headed transformer approximating Match3 has mHD = Omega(N/log N).",
                setting="N = 2^{log2}, any M, positions in the tokens and maps of any size",
                found="two layers have mHD = {ours:,.0f}, where N / log2 N is {bound:,.0f}.",
                numbers=value("sparse_averaging.conjecture"),
            ),
            Remark(
                "On the slides m is the width of a token, and queries, keys and values are linear in it. With linear"
                " maps the same forms fail, at larger sizes (Match3, strict)."
            ),
        ),
        clauses=(
            Clause(
                "published form, M = O(N): refuted",
                rf"{_TRANSFORM}, \quad p = O(\log N) \quad \text{{for }} M \le N = 2^r",
                prove=transform.derive,
                checks=check("wrong outputs of the transform, M <= 4N", checks.deep_transform, needed=True),
                assumptions=(_ONE_BLANK, _FEW_RESIDUES),
            ),
            Clause(
                "published form, M = N^a, a > 1: open",
                not_examined=("open, up to exponents of min(a - 1, 1/2)",),
            ),
            Clause(
                "slides' form, M = N^a: refuted",
                rf"{_SORTED}, \quad m \le \max({_GROUP},\ {_CODE})",
                prove=sorted_groups.derive,
                checks=check("wrong outputs of sorted groups, M to 10^6", checks.deep_sorted, needed=True),
            ),
            Clause(
                "slides' form, every M: refuted",
                rf"{_TWO_LAYERS}, \quad mHD = {_GROUPS}",
                prove=groups.derive,
                checks=check(
                    "mHD below N / log2 N at N = 2^30, in the slides; wrong outputs of two layers, corrected",
                    checks.conjectured_size,
                    checks.counter_example,
                    needed=True,
                ),
                assumptions=(_CUBE_TOKENS,),
            ),
            Clause(
                "slides' form, m as wide as a token: refuted",
                rf"\text{{numbers of a token}} = {_TOKEN}, \quad mHD = {_STRICT}",
                prove=part(groups.derive, "sizes"),
                checks=check(
                    "the same with m no less than the numbers of a token",
                    checks.strict_size,
                    checks.counter_example,
                    needed=True,
                ),
                assumptions=(_CUBE_TOKENS,),
            ),
            Clause(
                "sizes of what is built",
                rf"p \le \max({_LONGEST})",
                checks=check("D, H, m, numbers of a token and bits, N = 1 to 256^3", checks.groups_sizes),
                assumptions=(_CUBE_TOKENS,),
            ),
        ),
        conjecture=True,
        refuted="for M = O(N) as published and for every M as on the slides, in the model written out, where tokens"
        " know their positions",
    ),
    statement(
        "Match3, transform",
        "Triples in polylogarithmic size (not in the slides)",
        "Attention that computes a number-theoretic transform finds triples with M = O(N): a histogram by a head with"
        " a blank token, log2 N butterflies, squares, log2 N butterflies back, two reads. P is the transform's prime.",
        rf"{_TRANSFORM}, \quad mHD \le {tex(transform.size, 'N')} \quad \text{{for }} M \le N = 2^r",
        assumptions=(_POSITIONS, _ONE_BLANK, MAPS, BETWEEN, _BITS),
        clauses=(
            Clause(
                "right for every N and M",
                prove=part(
                    transform.derive,
                    "half transform",
                    "undone",
                    "no wrap",
                    "both reads",
                    "counts",
                    "histogram",
                    "copies",
                    "a copied",
                    "reads",
                    prose=(transform.HALVINGS, transform.DIRICHLET, transform.WITHIN),
                ),
                checks=check("wrong outputs, M <= 4N", checks.deep_transform, needed=True),
            ),
            Clause(
                "sizes",
                rf"{_TRANSFORM}, \quad \text{{numbers of a token}} \le {tex(transform.token_width)} \quad \text{{for }}"
                r" M \le N = 2^r, \quad \text{residues that a token holds} \le"
                rf" \max\left(1,\ {tex(transform.held, 'N', 'M')}\right)",
                prove=part(transform.derive, "sizes", prose=(transform.HELD, transform.SPREAD)),
                checks=check("D, H, m and numbers of a token as built, N to 4096, M to 4N", checks.transform_sizes),
                assumptions=(_FEW_RESIDUES,),
            ),
            Clause(
                "bits",
                rf"p \le \max({_COPIES}, {_SHARES})",
                checks=check("bits of what is built, N to 4096 and M to 4N", checks.transform_bits, needed=True),
            ),
        ),
    ),
    statement(
        "Match3, sorted",
        "Triples in about sqrt(N) dimensions (not in the slides)",
        "Tokens are ranked and sorted into about sqrt(N) groups of consecutive residues. Few triples of groups can"
        " hold a sum that vanishes mod M: one for each token. No token is added. K is the number of digits of a rank.",
        rf"{_SORTED}, \quad m \le \max({_GROUP},\ {_CODE}), \quad K \le {tex(sorted_groups.digits, 'N', 'M')}",
        assumptions=(_POSITIONS, MAPS, BETWEEN, _BITS, given("N >= 3")),
        clauses=(
            Clause(
                "right for every N and M",
                prove=part(
                    sorted_groups.derive,
                    "diagonals",
                    "of a diagonal",
                    "counts",
                    "a count",
                    "residues",
                    "a residue",
                    "the error of bits",
                    "report",
                    prose=(sorted_groups.SUMS, sorted_groups.CODES),
                ),
                checks=check("wrong outputs, M to 10^6", checks.deep_sorted, needed=True),
            ),
            Clause(
                "sizes",
                rf"{_SORTED}, \quad m \le \max({_GROUP},\ {_CODE}), \quad \text{{numbers of a token}} \le"
                rf" {tex(sorted_groups.token_width, 'N')}",
                prove=part(sorted_groups.derive, "sizes", prose=(sorted_groups.DIGITS, sorted_groups.CODE)),
                checks=check("D, H, m and numbers of a token as built, N to 4096", checks.sorted_sizes, needed=True),
            ),
            Clause(
                "bits",
                rf"p \le \max({_RESIDUES}, {_AVERAGES})",
                checks=check("bits of what is built, N to 4096", checks.sorted_bits, needed=True),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 (exponent, divisor or factor of a formula)
# typed: 3 (exponent, base or fraction of a formula)
# typed: 10 256 4096 (size in the code of a check, which its name tells)
# -->
