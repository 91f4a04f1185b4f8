r"""Silent pairs: Theorem 1 of Wen et al. 2023 (arXiv 2312.01429) without its hypothesis; the sets that can be silent.

From the definition of the layer, without a residual link: at a query q the output depends on ``LN(u)`` only, ``u =
sum_s N_s V_s exp(Z[q, s])`` (12). A pair is silent if its open and its closed bracket have the value zero.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import positive
from yzflow_bounded_dyck.proofs import theorem1

STATES = size("S")
PREFIXES = (
    "for d from 2 to D - 1 the prefixes that open the types sigma, then i or j at level d, and then open and close a"
    " pair of level d + 1 have one query, and closed brackets i and j come next"
)
TOLD = (
    "an open query says what comes next; at a closing query of depth d the type of level d is seen, or it is the one"
    " silent type of that level; at depth 0 all features are one, and so is what comes next"
)
FINITE = "there are finitely many features, so that a continuous head knows them all"


def told_by(ratio: sp.Expr) -> sp.Expr:
    """The weight of the query, from the ratio of an unmatched bracket's to START's coordinate in the feature."""
    return ratio


def partner(value: sp.Expr) -> sp.Expr:
    """Value of the closed bracket of a pair that is not silent; both brackets have equal logits at every query."""
    return -value


def derive(*, told_by: Claim = told_by, partner: Claim = partner) -> Derivation:
    """Two silent types of a level, a silent pair of level 1, and a layer for every other silent set."""
    # Two prefixes that differ in one token each, at one query: the other counts are N, and any values and logits.
    s = index("s", STATES)
    counts, values, logits = entries("N"), entries("V"), entries("Z")
    common = total(counts[s] * values[s] * sp.exp(logits[s]), s)
    own, other = sp.symbols("V_i V_j", real=True)
    x, y = sp.symbols("x_i x_j", real=True)
    difference = (common + own * sp.exp(x)) - (common + other * sp.exp(y))
    # START alone, at two queries: any value that LN is defined for, at a generic place.
    start, at = entries("V_S"), sp.symbols("a b", real=True)
    place, one = index("l", STATES), index("m", STATES)

    def normed(scale):
        return start[place] * sp.exp(scale) / sp.sqrt(total((start[one] * sp.exp(scale)) ** 2, one))

    none = sp.Integer(0)
    # The layer that has the other sets: orthonormal values of START and of open brackets, the weight w of the query.
    w, w_other, value = positive("w w' v")
    unmatched = sp.Symbol("A", positive=True, integer=True)  # not silent ones
    length = sp.sqrt(1 + unmatched * w**2)
    one_query = sp.Symbol("z", real=True)
    return Derivation(
        statement="Silent pairs (bounded Dyck)",
        vanishing={
            "needed: two silent types of a level have one sum": difference.subs({own: 0, other: 0}),
            "needed: a silent pair of level 1 looks like the empty text": normed(at[0]) - normed(at[1]),
            "enough: a pair that is not silent adds nothing": theorem1.insertion(
                value, partner(value), one_query, one_query
            ),
            "enough: a silent pair adds nothing": theorem1.insertion(none, none, x, y),
            "enough: the feature has norm one": (1 / length) ** 2 + unmatched * (w / length) ** 2 - 1,
            "enough: the feature tells the query": told_by((w / length) / (1 / length)) - w,
        },
        signed={
            "enough: unmatched brackets are seen": (w / length, "> 0"),
            "enough: START is seen": (1 / length, "> 0"),
            "enough: other queries have other features": (sp.diff(told_by(w_other), w_other), "> 0"),
        },
        steps=(
            r"Needed: let types $i \ne j$ of a level d from 2 to $D - 1$ be silent. The prefixes $\sigma\,i$ and"
            r" $\sigma\,j$, each with a matched pair of level $d + 1$ behind, have one query and differ in tokens of"
            r" value zero: one feature, and other brackets that close.",
            r"Needed: a silent open bracket of level 1 leaves $u = V_{START}e^{a}$, whose LN is that of the empty"
            r" prefix, behind which nothing closes.",
            r"Enough: let no pair of level 1 be silent, one type at most of each level from 2 to $D - 1$, and any of"
            r" level $D \ge 2$. Take orthonormal values of START and of the open brackets that are not silent,"
            r" $V_{close} = -V_{open}$, the logit 0 of START and $\ln w_q$ of all others, with distinct $w_q$.",
            r"Matched pairs add nothing at any query: $u = V_{START} + w_q\sum_A V_{open}$ with the set A of unmatched"
            r" brackets that are not silent. The feature $(1, w_q 1_A)/\sqrt{1 + |A|w_q^2}$ tells A, and, where A is"
            r" not empty, $w_q$ and so q. At depth 1 and more A holds the bracket of level 1.",
            r"An open query says what comes next. At a closing query of depth d from 1 to $D - 1$ the last unmatched"
            r" bracket is of level d: A has it, or it is of the one silent type of that level. At depth 0 all features"
            r" are $V_{START}$'s, and what comes next is the same. Finitely many features: a head knows them.",
        ),
        scope="every $k \\ge 2$ and D, any width that holds these values, any logits and counts; a layer without a"
        " residual link, LN without a floor, with mean subtraction where the values have the mean zero",
        sizes={},
        prose=(PREFIXES, TOLD, FINITE),
    )
