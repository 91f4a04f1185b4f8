"""Statements on balance: Theorem 1, Corollary 1, Appendices C.2 and C.7, and related statements."""

from __future__ import annotations

import sympy as sp

from theory.statements import Check, Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import plain, tex
from theory.values import value
from yzflow_bounded_dyck import measures as checks
from yzflow_bounded_dyck import measures_of_heads
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import PROOFS, TRAINED, exact, statement
from yzflow_bounded_dyck.proofs import larger, link, silence, stack, theorem1, uniform

_SIZES = {"width of V": (2,)}
_STACKS = {"(k, D)": ((1, 2), (2, 2), (2, 3))}
_FORGETS = part(
    PROOFS["theorem1"], "u_n", "LN is scale-free", "limit of LN", "rate of the limit", sizes=_SIZES,
    prose=(theorem1.FORGETS,),
)  # fmt: skip
_BALANCE = ("(14) forces V_close", "what is left at another query", "unequal differences")
_HANDS = f"of {value('bounded_dyck.by_hand.layers')} layers written by hand, k = 2"
_LANGUAGES = value("bounded_dyck.silent_sets.languages")
_SILENT, _RANKS = value("bounded_dyck.silent"), value("bounded_dyck.ranks")
_PAIR = r"u(q, \mathrm{open}_{i,d'}) + u(q, \mathrm{close}_{i,d'-1})"
_LOGITS = r"Z_{q,\mathrm{open}_{i,d'}} - Z_{q,\mathrm{close}_{i,d'-1}}"
_PARTNER = r"V_{\mathrm{close}_{i,d'-1}} = " + tex(theorem1.partner_value, r"V_{\mathrm{open}_{i,d'}}", "c_{id'}")

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Equation 13",
        "Insertion law",
        "n matched pairs before the last bracket add n delta to the sum before LN, delta that of their states alone.",
        rf"\mathrm{{LN}}\bigl(u_0 + n\,({_PAIR})\bigr)",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.DEPTH),
        prove=part(PROOFS["theorem1"], "u_n", "LN is scale-free", sizes=_SIZES),
        checks=(
            Check(
                "features after 1000 pairs",
                TRAINED,
                checks.insertion_law,
                tolerance=1e-9,
                expected=TRAINED,
                says="the insertion law (13)",
            ),
        ),
    ),
    statement(
        "Theorem 1, necessity",
        "Balance is necessary",
        "With two types of brackets or more, in a layer that is right at every length a matched pair adds nothing, "
        "delta = 0 (14). If no value vanishes either, logits within a pair differ by the same amount for all closing "
        "queries of depth 1 to D - 1 (11).",
        rf"P_\perp W_V e \ne 0 \text{{ for all }} e: \quad {_LOGITS} \text{{ does not depend on }} q",
        corrected=rf"k \ge 2: \ {_PAIR} = 0; \quad P_\perp W_V e \ne 0 \text{{ for all }} e: \ {_LOGITS}"
        r" \text{ does not depend on } q",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.TYPES, assumed.DEPTH, assumed.RIGHT),
        errata=(
            Remark(
                "With one type the depth says all, and a layer tells depths apart at every length although its pairs"
                " add something and (11) fails: V_START = V_open + V_close, these two orthonormal, and logits"
                f" {plain(theorem1.one_type_logit, 'd')} of closed brackets at queries of depth d.",
                stands="All of it, for two types of brackets or more, of which its proof speaks.",
                quoted="(11) is a necessary condition, if P W_V e is not 0 for all encodings e.",
            ),
            Remark(
                "(11) leaves out closing queries of depth 0, where all brackets are matched, and open queries, which "
                "name the last unmatched type: behind the residual link of (6) neither is constrained."
            ),
        ),
        clauses=(
            Clause(
                "a pair adds nothing (14)",
                rf"k \ge 2: \quad {_PAIR} = 0",
                prove=_FORGETS,
                checks=(
                    Check(
                        "what 1000 pairs leave of two stacks in a trained layer, against the limit",
                        TRAINED,
                        checks.forgetting,
                        tolerance=0.05,
                        expected=TRAINED,
                        says="that a layer whose pairs add something forgets the stack",
                        suffices=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.TYPES, assumed.DEPTH),
                    ),
                    Check(
                        "what stays of a pair in a trained layer, where (14) has nothing",
                        TRAINED,
                        checks.pair_left,
                        tolerance=1e-9,
                        says="(14)",
                        assumptions=(assumed.KEEPS,),
                    ),
                ),
            ),
            Clause(
                "logits of a pair (11)",
                rf"P_\perp W_V e \ne 0: \quad {_LOGITS} \text{{ does not depend on }} q",
                prove=part(PROOFS["theorem1"], *_BALANCE, sizes=_SIZES),
                checks=(
                    exact(
                        f"right ones without (11), {_HANDS}",
                        checks.right_without_balance,
                        0.0,
                    ),
                ),
                assumptions=(assumed.LOUD,),
            ),
            Clause(
                "one type needs no balance",
                rf"k = 1: \quad Z_{{q,\mathrm{{close}}}} = {tex(theorem1.one_type_logit, 'd_q')}",
                prove=part(PROOFS["theorem1"], "one type"),
            ),
        ),
    ),
    statement(
        "Silent pairs",
        "Theorem 1 without its hypothesis (not in the paper)",
        "If values may vanish, a layer for two types or more that is right at every length still has (14), but needs "
        "(11) only for the pairs whose values do not vanish. Without a residual link all pairs of level D >= 2 can be "
        "silent, one type of each level from 2 to D - 1, and none of level 1: for every k and D. With k = D = "
        f"{_SILENT['depth']} and zero values on level {_SILENT['level']}, layers are exact at every length with "
        f"differences in (11) of {_SILENT['least']:.1f} to {_SILENT['most']:.1f} (yzflow_bounded_dyck.silence, four "
        "seeds).",
        rf"{_PAIR} = 0; \quad \text{{(11) where }} P_\perp W_V e \ne 0",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.TYPES, assumed.DEPTH, assumed.RIGHT),
        clauses=(
            Clause("a pair adds nothing (14)", rf"k \ge 2: \quad {_PAIR} = 0", prove=_FORGETS),
            Clause(
                "(11) for the other pairs only",
                r"\text{(11) where } P_\perp W_V e \ne 0",
                prove=part(PROOFS["theorem1"], *_BALANCE, "(14) where V_open = 0", sizes=_SIZES),
                checks=(
                    exact(
                        f"right ones without that, or wrong ones with it, {_HANDS}",
                        checks.right_against_live_balance,
                        0.0,
                    ),
                ),
            ),
            Clause(
                "which pairs may be silent",
                r"\text{the pairs of } S \text{ can be silent } \Leftrightarrow \text{ none is of level } 1,"
                r"\ \text{one type at most is of each level } d = 2, \ldots, D-1",
                prove=part(
                    PROOFS["silence"], "needed", "enough", prose=(silence.PREFIXES, silence.TOLD, silence.FINITE)
                ),
                checks=(
                    exact(
                        f"all sets of pairs of {_LANGUAGES} languages: whether such a layer is right",
                        checks.silent_sets,
                        0.0,
                    ),
                ),
                assumptions=(assumed.NO_LINK,),
            ),
        ),
    ),
    statement(
        "Theorem 1, sufficiency",
        "Balance is sufficient",
        "Under (11) a value matrix and a network exist that give the exact distribution at every length: V_close = "
        "-exp(c) V_open, c the difference of (11). Behind the residual link of (6) this takes (11) at closing queries "
        "of depth 1 to D - 1; without the link, at every query. The encodings of all states and of START must be "
        "independent.",
        r"\text{(11)}, \quad \{e(i, d)\} \text{ linearly independent}, \quad g \text{ of 6 layers}",
        corrected=r"\text{(11)}, \quad \mathrm{rank}\,(e(s))_{s,\,\mathrm{START}} = 2kD + 1, \quad"
        rf" {_PARTNER}, \quad g \text{{ of 3 layers}}",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR),
        errata=(
            Remark(
                "Without the link features must tell the query, and (11) is needed at open queries and at depth 0,"
                " too.",
                stands="All of it, with the residual link that (6) has: proved here, with three layers of weights.",
                quoted="(11) is a sufficient condition, for a construction in which the encodings are linearly"
                " independent and g is a 6-layer MLP.",
            ),
            Remark(
                "The proof inverts one matrix of all encodings, so that they are to be independent together, with"
                f" START's, which is rank 2kD + 1. (20) and (21) are not: their ranks are {_RANKS['depths']} and"
                f" {_RANKS['angles']} of {_RANKS['states']} at k = {_RANKS['k']}, D = {_RANKS['depth']}, without START."
                " Our text of the theorem has lost its formula, and so whether START is counted."
            ),
            Remark("A floor in LN (C_eps > 0) would see the normaliser of softmax, which grows; the theorem has none."),
        ),
        clauses=(
            Clause(
                "values under (11)",
                _PARTNER,
                prove=part(PROOFS["theorem1"], "(11) gives (14)", sizes=_SIZES),
            ),
            Clause(
                "independent encodings",
                r"\mathrm{rank}\,(e(s))_{s,\,\mathrm{START}} = 2kD + 1",
                prove=PROOFS["encodings"],
                checks=(exact("error on random encodings", checks.encoded_predictions, 1e-9),),
                assumptions=(assumed.INDEPENDENT,),
            ),
            Clause(
                "exact behind the link",
                r"t_{il} = " + tex(stack.top_at, "h_{il}", r"[q = \mathrm{close}(\cdot, l)]"),
                prove=part(
                    PROOFS["stack"],
                    "coordinate",
                    "step",
                    "linked head",
                    sizes=_STACKS,
                    prose=(stack.SMALLEST, stack.QUERY),
                ),
                checks=(exact("distribution after prefixes to length 6 and of 500", checks.linked_predictions, 1e-10),),
                assumptions=(assumed.LINK, assumed.CLOSING),
            ),
            Clause(
                "exact without the link",
                r"t_{il} = " + tex(lambda own, deeper: stack.top(own, [deeper]), "h_{il}", r"\sum_j h_{j,l+1}"),
                prove=part(PROOFS["stack"], "coordinate", "step", "head", sizes=_STACKS, prose=(stack.SMALLEST,)),
                checks=(exact("distribution to length 500", checks.exact_predictions, 1e-10),),
                assumptions=(assumed.NO_LINK, assumed.ALL_QUERIES),
            ),
        ),
    ),
    statement(
        "Appendix C.2",
        "More width or depth keeps exact solutions",
        "A Transformer that is exact on Dyck at every length has wider and deeper ones that are. More layers hand "
        "their tokens on, with zero values and the identity as network, whatever their attention is. More coordinates, "
        "units and rows of keys change nothing where the old weights are placed right.",
        r"W_V = 0, \ g = \mathrm{id}: \quad g(\mathrm{LN}(0) + x) = x",
        corrected=rf"W_V = 0, \ g(x) = {tex(larger.handed_on, 'x')}: \quad f(X) = X; \quad T'(XQ) = T(X)\,Q",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR),
        errata=(
            Remark(
                "LN must not stand on the residual stream, as it does in the first Transformers: a layer with zero "
                "values then normalises its tokens. A bias in LN would be added to them."
            ),
            Remark(
                "Zeros as further coordinates are not enough for width: the mean that LN takes off is over all of "
                "them. An isometry that turns the all-ones direction into that of the wider tokens is."
            ),
            Remark("Of more heads Appendix C.2 says nothing; heads with zero values add nothing, for the same reason."),
        ),
        clauses=(
            Clause(
                "more depth",
                rf"W_V = 0, \ g(x) = {tex(larger.handed_on, 'x')}: \quad f(X) = X",
                prove=part(PROOFS["larger"], "handed on"),
                checks=(
                    exact(
                        "change by three more layers, prefixes to length 6 and of 500", checks.deeper_predictions, 0.0
                    ),
                ),
                assumptions=(assumed.LINK, assumed.ZERO_TO_ZERO),
            ),
            Clause(
                "more depth in a GPT",
                prove=part(PROOFS["larger"], "GPT's layer"),
                assumptions=(assumed.BEFORE,),
            ),
            Clause(
                "more width",
                r"QQ^T = I, \ P'(xQ) = (Px)Q: \quad T'(XQ) = T(X)\,Q",
                prove=part(
                    PROOFS["larger"], "mean", "norm", sizes={"(d, d')": ((2, 3), (3, 5))}, prose=(larger.COMPOSED,)
                ),
                checks=(
                    exact(
                        "distribution of a wider and deeper one, to length 6 and of 500", checks.wider_predictions, 1e-8
                    ),
                    exact("outputs of random Transformers and of wider ones", checks.wider_outputs, 1e-9),
                ),
                assumptions=(assumed.ZERO_TO_ZERO,),
            ),
        ),
    ),
    statement(
        "Appendix C.7",
        "With a residual link balance is not sufficient",
        "In a standard GPT layer the query's own vector x_q joins what attention gathers. As attention sums to one, "
        "this is the layer (6) with the values V_s + x_q: what is necessary is (14) for these, and a layer with (14) "
        "for V itself is wrong at some length, unless LN projects x_q off, that is, x_q is a multiple of the all-ones "
        "vector. With n copies of every pair its distance of two stacks falls like 1/n. The formula (49) is missing "
        "from our text and read as LN(x_q + sum c_s V_s).",
        r"\text{(11)}: \quad \sum_s c_s V_s = \frac{u_0}{z_0 + n\zeta} \to 0, \quad"
        r" n\,\|A_n - A_n'\| \to \frac{\|u_0 - u_0'\|}{\zeta}",
        assumptions=(assumed.MINIMAL, assumed.NO_FLOOR, assumed.TYPES, assumed.DEPTH),
        errata=(
            Remark(
                "The words say: if the vectors of closed brackets do not all align with the ones, perfect generation is"
                " impossible. That is so under (14) for V, of which they speak. With (14) for V + x in its place one"
                " vector x at all queries, which need not be along the ones, does no harm. The paper says that a"
                " sharper condition can be had: vectors of closing queries that do not lie on one line rule"
                " every layer out."
            ),
        ),
        clauses=(
            Clause(
                "what is necessary",
                r"k \ge 2: \quad P\,\bigl("
                + tex(link.left, r"\delta", r"\zeta", "x_q")
                + r"\bigr) = 0, \quad \delta = V_o e^{x} + V_c e^{y}, \ \zeta = e^{x} + e^{y}",
                prove=part(PROOFS["link"], "link", "necessity", sizes=_SIZES, prose=(theorem1.FORGETS,)),
                checks=(
                    exact(
                        "what pairs leave in a balanced layer, against x, and in one whose shifted values are balanced",
                        measures_of_heads.balanced_behind_a_link,
                        1e-9,
                    ),
                ),
                assumptions=(assumed.RIGHT,),
            ),
            Clause(
                "one vector does no harm",
                r"V_s = V'_s - x, \ x_q = x: \quad \text{exact where the layer with } V' \text{ is}",
                prove=part(PROOFS["link"], "link"),
                checks=(
                    exact(
                        "distribution behind a link with one vector, to length 6 and of 500",
                        measures_of_heads.shifted_predictions,
                        1e-10,
                    ),
                ),
            ),
            Clause(
                "queries on one line",
                r"-Px_q = t\,PV_o + (1 - t)\,PV_c, \quad t = " + tex(link.share, "e^{x}", "e^{y}"),
                prove=part(PROOFS["link"], "line", sizes=_SIZES, prose=(theorem1.FORGETS,)),
                checks=(
                    exact(
                        "what 100 long prefixes change in a right layer with another vector at each query",
                        measures_of_heads.on_a_line,
                        1e-9,
                    ),
                ),
                assumptions=(assumed.RIGHT,),
            ),
            Clause(
                "what is gathered shrinks",
                r"n\,\|A_n - A_n'\| \to \frac{\|u_0 - u_0'\|}{\zeta}",
                prove=part(PROOFS["link"], "shrinks", sizes=_SIZES),
                checks=(exact("n x distance of what is gathered, against its limit", checks.link_limit, 1e-4),),
            ),
            Clause(
                "the stack is forgotten",
                r"n\,\|f_n - f_n'\| \to \frac{\|(I - \hat x\hat x^T)P(u_0 - u_0')\|}{\zeta\,\|Px_q\|}, \quad"
                r" \hat x = \mathrm{LN}(x_q)",
                prove=part(PROOFS["link"], "forgets", sizes=_SIZES),
                checks=(
                    exact("exponent of the distance behind a link", checks.link_forgets, 1e-3),
                    exact("n x distance of stacks behind a link, against its limit", measures_of_heads.link_rate, 1e-4),
                ),
                assumptions=(assumed.NOT_ONES,),
            ),
            Clause(
                "unless LN projects the query off",
                r"P x_q = 0: \quad \mathrm{LN}(x_q + A) = \mathrm{LN}(A)",
                prove=part(PROOFS["link"], "ones", sizes=_SIZES),
                checks=(
                    exact("change of distances without a link or along the ones", checks.link_projected_off, 1e-5),
                ),
                assumptions=(assumed.ONES,),
            ),
            Clause(
                "no head is nearly right at all lengths",
                r"\text{mean loss} \ge "
                + tex(lambda g, s: link.least_loss(link.most_margin(g, s)), "gamma", r"\|f_n-f_n'\|"),
                prove=part(PROOFS["link"], "loss", prose=(link.SEVERAL, link.CONVEX)),
                assumptions=(assumed.NOT_ONES, assumed.LIPSCHITZ),
            ),
        ),
    ),
    statement(
        "Balance of values",
        "What (14) says of V (not in the paper)",
        "(14) holds exactly when each pair either has no values, or has (11) and V_close = -exp(c) V_open, c the "
        "difference of (11).",
        rf"{_PAIR} = 0",
        corrected=rf"{_PARTNER}, \quad c_{{id'}} = {_LOGITS} \text{{ wherever }} V \ne 0",
        assumptions=(assumed.MINIMAL, assumed.DEPTH),
        prove=part(PROOFS["theorem1"], "(11) gives (14)", *_BALANCE, "(14) where V_open = 0", sizes=_SIZES),
        checks=(exact("violation under both", checks.values_violation, 1e-10, assumptions=(assumed.TYPES,)),),
    ),
    statement(
        "Corollary 1",
        "Uniform attention",
        "A Transformer with uniform attention in both layers and a starting token is exact at any length.",
        r"A_{ij} = \frac{1}{i} \text{ for } j \le i, \quad \text{no positions, a starting token}",
        assumptions=(assumed.CAUSAL, assumed.NO_FLOOR),
        errata=(
            Remark(
                "Its second layer is built here on embedding (19), or another with jointly independent encodings,"
                " START's among them."
            ),
        ),
        clauses=(
            Clause(
                "the first layer knows the depth",
                r"d = " + tex(uniform.depth_of, "s", "h"),
                prove=part(PROOFS["uniform"], "depth"),
            ),
            Clause(
                "the second layer is exact",
                r"V_{\mathrm{close}} = " + tex(theorem1.partner_value(sp.Symbol(r"V_{\mathrm{open}}"), sp.Integer(0))),
                prove=part(PROOFS["stack"], "coordinate", "step", "head", sizes=_STACKS, prose=(stack.SMALLEST,)),
                checks=(
                    exact("distribution after prefixes to length 6 and of 500", checks.uniform_predictions, 1e-10),
                    Check(
                        "the same of a layer trained with uniform attention",
                        TRAINED[1:],
                        checks.uniform_trained,
                        tolerance=1e-9,
                        says="the layer that training finds",
                        assumptions=(assumed.TYPES, assumed.DEPTH, assumed.KEEPS_UNIFORM),
                    ),
                ),
                assumptions=(assumed.INDEPENDENT,),
            ),
            Clause(
                "both layers together",
                r"\text{tokens} \to (\tfrac{1}{n+1}, \tfrac{d}{n+1}) \to \text{states} \to \text{stack} \to p",
                prove=part(PROOFS["uniform"], "depth", "step", "state", prose=(uniform.SECOND,)),
                checks=(
                    exact(
                        "distribution from tokens, prefixes of 6 brackets and of 500",
                        measures_of_heads.composed_predictions,
                        1e-10,
                    ),
                ),
            ),
            Clause(
                "a starting token is needed",
                r"\mathrm{LN}(2N) = \mathrm{LN}(N)",
                prove=part(PROOFS["uniform"], "twice the word", sizes={"tokens": (3,)}),
            ),
        ),
    ),
)

HEADS: tuple[Statement, ...] = (
    statement(
        "Lemmas 15 to 20",
        "Heads by interpolation",
        "The paper builds the head of Theorem 1 and Corollary 1 from lemmas on ReLU networks that interpolate finitely "
        "many points. They are not used here: one network of three layers of weights, written down weight by weight, "
        "reads the stack off the features (yzflow_bounded_dyck.balance.exact_head), at every length.",
        r"h = "
        + tex(stack.step, "f", "s")
        + r", \quad t_{il} = "
        + tex(lambda own, deeper: stack.top(own, [deeper]), "h_{il}", r"\sum_j h_{j,l+1}"),
        clauses=(
            Clause(
                "our head",
                prove=part(PROOFS["stack"], "coordinate", "step", "head", sizes=_STACKS, prose=(stack.SMALLEST,)),
            ),
            Clause(
                "the paper's lemmas",
                not_examined=(
                    "Lemmas 15 to 20 as printed, whose formulas our text of the paper lacks; nothing here rests on "
                    "them",
                ),
            ),
        ),
    ),
)

ATTENTION: tuple[Statement, ...] = (
    statement(
        "Proposition 1",
        "Attention may not matter",
        "For any key and query matrices, values exist with which the output does not depend on attention.",
        r"W_V = 0 \Rightarrow T(X) \text{ does not depend on } W_K, W_Q",
        prove=part(PROOFS["uniform"], "attention moves", sizes={"tokens": (3,)}),
        checks=(exact("features under other logits", checks.no_attention, 1e-12),),
    ),
)

# <!-- numbers
# typed: 2 100 1000 500 (size in the code of a check, which its name tells)
# typed: 6 (number of an equation)
# -->
