"""Statements that are not in the paper: transition time, finite sequences, late times, true gradient, options."""

from __future__ import annotations

from typing import Any

from theory.scan_and_snap import foreseen
from theory.scan_and_snap.statements import assumptions
from theory.statements import Check, Clause, Statement
from theory.symbolic import derivations, part
from theory.values import value
from yzflow_beyond_scan_and_snap import formulas as f
from yzflow_beyond_scan_and_snap import late_attention, lengths
from yzflow_beyond_scan_and_snap.proofs import late_exponent, late_full_flow, true_gradient
from yzflow_beyond_scan_and_snap.proofs.finite_sequences import (
    BERNSTEIN,
    COVARIANCE,
    FACTORIAL,
    PRODUCTS,
    SIXTH,
    SIZE_BIAS,
)

PAPER = "Scan and Snap"
PROOFS = derivations("yzflow_beyond_scan_and_snap.proofs")
_FOUND, _LESS = value("beyond_scan_and_snap.long_enough.rows")[:2]
_MOVED = value("beyond_scan_and_snap.long_enough_moved")


def closed(name: str, measure: Any) -> Check:
    """A check that needs no simulation."""
    return Check(name, ("closed form",), measure, tolerance=0.0, expected=("closed form",))


STATEMENTS = (
    Statement(
        PAPER,
        "Transition time",
        "The peak of gamma (not in the paper)",
        "gamma peaks at a time that Lambert's W gives in closed form.",
        r"t_0' = \frac{K\ln M}{\eta_Y},\quad t_0 = \frac{2K\ln M}{\eta_Y}",
        corrected=rf"t^* = {f.PEAK_TIME},\quad u^* = {f.PEAK_MARGIN},\quad \gamma(t^*) = {f.PEAK}",
        assumptions=(assumptions.UNIFORM,),
        prove=PROOFS["transition"],
    ),
    Statement(
        PAPER,
        "Theorem 2, finite sequences",
        "From which length on the signs hold (not in the paper)",
        "Theorem 2 is about T to infinity and the modified gradient. Over sequences of T tokens, with the decoder that"
        " long sequences have taught, the expected step has bounds that are polynomials in 1/(T - 1) and off by"
        " O(T^-3). They decide from which T on its signs hold, for given classes and attention logits. For the classes"
        " of finding 37 (K ="
        f" {_FOUND['k']}, M = {_FOUND['m']}, overlap {_FOUND['rho']:.3f}) at the start it is T = {_FOUND['modified']:,}"
        f" for Lemma 3's modified gradient, and not {_FOUND['fails']:,}, and T = {_FOUND['full']:,} for Lemma 1's;"
        f" where the same sequences make the decoder, as in the first moves of SGD, T = {_FOUND['trained']:,}. At an"
        f" overlap of {_LESS['rho']:.4f} it is T = {_LESS['modified']:,} for the modified gradient. In the theory's"
        f" flow (eta_Y = {_MOVED['eta_y']:g}, eta_Z = {_MOVED['eta_z']:g}) the common token loses attention and the"
        " overlap falls: for the modified gradient, which is that flow's, T ="
        f" {_MOVED['rows'][-1]['modified']:,} at t = {_MOVED['rows'][-1]['time']:,.0f}. No length is enough"
        " for all classes. Where the polynomials cannot decide, the length is open.",
        r"T \to \infty:\quad \dot z_{ml} > 0 \text{ for distinct tokens},\ < 0 \text{ for the common token}",
        corrected=r"v_l = \sum_n\tfrac1K\,E\left[f_lg_{nl} - f_l^2\,f\cdot g_n\right],\quad f ="
        r" \tfrac{aN}{\|aN\|},\ a_l = e^{z_l}:\quad v_l^- \le v_l \le v_l^+ \text{ with polynomials } v_l^{\pm}"
        r" \text{ in } \tfrac{1}{T-1},\quad v_l^+ - v_l^- = O(T^{-3})",
        assumptions=(assumptions.NO_POSITIONS, assumptions.UNIFORM),
        predicts=foreseen.lengths,
        clauses=(
            Clause(
                "to order 1/T",
                rf"v_{{nl}}(T) = v_{{nl}}(\infty) + \tfrac{{1}}{{T-1}}\,{f.SHORT_DRIFT} + O(T^{{-2}}),\quad g_n ="
                rf" f_n,\ a = 1:\ {f.OWN_DRIFT},\quad q = aP,\ S_2 = \sum_jq_j^2,\ (qg) = \sum_jq_jg_{{nj}},\ S_k ="
                r" \sum_ja_jq_j^k \text{ for } k = 1, 3,\ (q^2g) = \sum_ja_jq_j^2g_{nj}",
                prove=part(PROOFS["finite_sequences"], "order 1/T", prose=(COVARIANCE,)),
            ),
            Clause(
                "bounds at every T",
                r"T_5(x) \le (1+x)^{-b} \le T_5(x) + c_b\,x^6,\quad x = \tfrac{\|aN\|^2}{(T-1)^2S_2} - 1,\ b ="
                r" \tfrac12, \tfrac32,\quad c_b = \tfrac{(1+x_0)^{-b} - T_5(x_0)}{x_0^6},\ 1 + x_0 ="
                r" \tfrac{1}{S_2\sum_la_l^{-2}}",
                prove=part(PROOFS["finite_sequences"], "bounds", prose=(FACTORIAL, SIXTH, BERNSTEIN)),
                checks=(closed("lengths of four small tasks at which signs differ", lengths.wrong_lengths),),
            ),
            Clause(
                "no length is enough for all",
                r"a_l = 1,\ T \ge 3,\ g_{nj} > 0 \text{ for } j \ne l,\ g_{nl} = \kappa P_l:\quad"
                rf" \tfrac{{v_{{nl}}}}{{(T-1)P_l}} \to E\left[{f.RARE_LIMIT}\right] < 0 \text{{ as }} P_l \to 0",
                prove=part(PROOFS["finite_sequences"], "rare", prose=(SIZE_BIAS,)),
            ),
            Clause(
                "the first moves, by a decoder that the same sequences have made",
                r"Y = \tfrac{\eta_Yt}{K}\sum_n E[f_n](e_n - \tfrac1M)^T:\quad g_n = \sum_{n'}(\delta_{nn'} -"
                r" \tfrac1M)\,E[f_{n'}],\quad |v_l - P_l(\tfrac{1}{T-1})| \le R_l(\tfrac{1}{T-1}),\ R_l ="
                r" O(T^{-3})",
                prove=part(PROOFS["finite_sequences"], "bounds", prose=(FACTORIAL, SIXTH, PRODUCTS, BERNSTEIN)),
                checks=(closed("lengths at which signs of the first moves differ", lengths.wrong_first_lengths),),
            ),
            Clause(
                "a decoder that short sequences have made, later",
                r"Y \text{ learned at } T < \infty",
                not_examined=("only the leading order in the number of steps; finding 37 measures what follows",),
            ),
        ),
    ),
    Statement(
        PAPER,
        "Late attention",
        "Attention does not freeze (not in the paper)",
        "K equal classes with one common token and equal distinct ones: in the full flow the common token's share falls"
        " like a power of ln t, with the exponent 1 at K = M, where it ends below that of the theory flow. For K < M"
        " the exponent is proved where the common token's logit falls from some time on, and it falls at all times from"
        " a zero decoder with M w(0)^2 <= 1, and for 2 K <= M with max(K, 8) w(0)^2 <= 1, w(0) the common token's share"
        " over the norm of the distinct ones'. It falls for ever, too, once five inequalities hold together. It does"
        " not from every start: from one at which nearly all of a sequence is the common token it rises for a while,"
        " and falls again. That it falls from starts in between is measured, and enclosed at some (finding 50).",
        rf"\tfrac{{f_c}}{{f_d}} \sim \text{{const}} \cdot (\ln t)^{{-\alpha}},\quad \alpha = {f.LATE_EXPONENT}",
        assumptions=(assumptions.UNIFORM, assumptions.ONE_COMMON, assumptions.ONE_QUERY, *assumptions.SYMMETRIC),
        clauses=(
            Clause(
                "the reduced system",
                r"\text{Lemma 1 for symmetric classes: four variables}",
                prove=part(PROOFS["late_full_flow"], "reduced"),
            ),
            Clause(
                "frozen features",
                rf"\tfrac pq \to {f.FROZEN_RATIO},\quad u = \ln t + O(1)",
                prove=part(
                    PROOFS["late_full_flow"], "frozen", prose=("a differential inequality gives u = ln t + O(1)",)
                ),
            ),
            Clause(
                "attention does not freeze",
                r"K < M:\quad z \to -\infty",
                argued=("by contradiction with the frozen flow, features that converge in place of frozen ones",),
            ),
            Clause(
                "K = M",
                rf"{f.ORBIT} = \text{{const}},\quad w = \tfrac{{f_c}}{{f_d}} \sim \tfrac{{\text{{const}}}}{{\ln t}}",
                prove=part(
                    PROOFS["late_full_flow"],
                    "K = M",
                    prose=("the loss falls to zero, so that A grows without end, like ln t",),
                ),
            ),
            Clause(
                "K = M, ahead of the theory flow",
                rf"z < z_{{\text{{theory}}}} \text{{ from some time on, for ever}}:\quad \text{{the lead grows where }}"
                rf" {f.LEAD_GROWS} > 0,\quad u = dA",
                prove=part(
                    PROOFS["late_full_flow"],
                    "ahead",
                    prose=("the loss falls to zero, so that A grows without end, like ln t", late_full_flow.ADDS_UP),
                ),
            ),
            Clause(
                "leading orders for K < M",
                rf"c = s^{{-\alpha}},\ C = \tfrac{{cs}}{{1-\alpha}}:\quad (M-K)C = (M-1)cs,\quad \alpha ="
                rf" {f.LATE_EXPONENT}",
                prove=part(PROOFS["late_full_flow"], "late"),
            ),
            Clause(
                "K < M, where the logit falls from some time on",
                rf"\dot z < 0 \text{{ for }} t > t_1:\quad \tfrac{{f_c}}{{f_d}}(\ln t)^\alpha \to \text{{const}} >"
                rf" 0,\quad \alpha = {f.LATE_EXPONENT}",
                prove=part(PROOFS["late_exponent"], "clock", "averages", prose=late_exponent.AVERAGES),
            ),
            Clause(
                "K < M, a trap in which the logit falls for ever",
                rf"\kappa = \tfrac pq,\ w = \tfrac cd,\ u = dA,\ R = \tfrac{{C}}{{wA}},\ b = -\tfrac BA,\ \bar R ="
                rf" {f.LATE_MOST_RATIO}; \\ \text{{if at one time}}\ N = {f.LATE_PULL} \ge 0,\ u(\kappa - 1 - Mw^2) \le"
                rf" {f.LATE_EXCESS},\ R + b \ge {f.LATE_LEDGE}, \\ u \ge {f.LATE_MARGINS},\ aMd^4C^2 \ge"
                rf" {f.LATE_REACH}\bar R^2:\quad \dot z < 0 \text{{ from then on}}",
                prove=part(PROOFS["late_exponent"], "trap", prose=late_exponent.EXIT),
            ),
            Clause(
                "K < M, from a zero decoder and a smaller common share the logit always falls",
                rf"Y(0) = 0,\ Mw(0)^2 \le {f.LATE_START}:\quad \dot z < 0 \text{{ for all }} t > 0,\quad \tfrac12 <"
                rf" \kappa < 2,\ u(\kappa - 1 - Mw^2) < {f.LATE_EXCESS},\ aM(wu)^2N|_{{\kappa = 1/2}} < {f.LATE_DRIVE}",
                prove=PROOFS["late_start"],
            ),
            Clause(
                "2 K <= M, from a zero decoder and a small common share the logit always falls",
                rf"Y(0) = 0,\ 2K \le M,\ w(0)^2 \le {f.LATE_LARGER_STARTS}:\quad \dot z < 0 \text{{ for all }} t > 0,"
                rf"\quad \tfrac12 < \kappa < 2 + Mw^2,\ u(\kappa - 1 - Mw^2) < {f.LATE_EXCESS},\ aM(wu)^2N|_{{\kappa ="
                rf" 1/2}} < {f.LATE_LARGER_DRIVE}",
                prove=PROOFS["late_larger_start"],
            ),
            Clause(
                "K < M, from every start: refuted",
                r"Y(0) = 0,\ K = 2,\ M = 3,\ w(0) = 9999,\ a = 1:\quad \dot z > 0 \text{ at } \sigma = 10.5",
                checks=(closed("it falls there all the same", late_attention.unbroken_fall),),
            ),
            Clause(
                "K < M, from starts in between",
                r"Y(0) = 0,\ 0.1 \le w(0) \le 10:\quad \dot z < 0 \text{ for all } t > 0",
                checks=(
                    closed(
                        f"times of {late_attention.SETTINGS} random settings at which it does not fall",
                        late_attention.rising,
                    ),
                ),
            ),
            Clause(
                "K < M, the next orders",
                rf"-\tfrac{{d\ln w}}{{d\ln A}} = \alpha\left(1 + xw^2 + \tfrac{{y}}{{a(cA)^2}} + \ldots\right), \\"
                rf" {f.LATE_NEXT}",
                argued=("that a matched expansion, whose next orders fit together, is what the flow does",),
            ),
            Clause(
                "next orders for K < M",
                r"\kappa = 1 + M(2 - R^*)w^2,\ b = R^*w^2,\ R^* = \tfrac{M-1}{M-K}:\quad \text{the same } x, y",
                prove=part(PROOFS["late_exponent"], "next"),
            ),
            Clause(
                "the theory flow",
                rf"{f.THEORY_GAMMA} = {f.THEORY_TIME} + \text{{const}},\quad y = \left(\tfrac{{f_c}}{{f_d}}\right)^2",
                prove=part(PROOFS["late_full_flow"], "theory"),
            ),
        ),
    ),
    Statement(
        PAPER,
        "Theorem 2(a), true gradient",
        "Distinct tokens gain without the modified gradient (not in the paper)",
        "With frozen features xi_n > 0 early for any overlaps; late, for almost all independent features, its limit"
        " is not negative, and positive where other classes are confused with n; for equal overlaps, hence for two"
        " classes, xi_n > 0 at all times. For other overlaps of four classes it is not: next to two classes that are"
        " nearly the same, a distinct token loses attention for a while.",
        rf"\xi_n = {f.EARLY_XI} + O(t^2),\quad \lim_{{t\to\infty}}\tfrac{{\eta_Yt}}{{K\ln t}}\xi_n \ge 0",
        assumptions=(assumptions.ZERO_DECODER, assumptions.UNIFORM),
        clauses=(
            Clause(
                "early",
                rf"\beta_{{nn'}} = {f.EARLY_BETA} + O(t^2),\quad \xi_n = {f.EARLY_XI} + O(t^2)",
                prove=part(PROOFS["true_gradient"], "early"),
            ),
            Clause(
                "late",
                rf"\lim_{{t\to\infty}}\tfrac{{\eta_Yt}}{{K\ln t}}\xi_n \ge {f.LEAST_LATE} \ge 0,\quad \delta \le"
                rf" {f.MOST_SHORT}",
                prove=part(
                    PROOFS["true_gradient"],
                    "late",
                    prose=(
                        "that V/ln t tends to the max-margin solution and R to its direction is a quoted theorem"
                        " (Soudry et al. 2018, arXiv 1710.10345), for almost all Gram matrices",
                        "Cauchy's inequality",
                    ),
                ),
            ),
            Clause(
                "equal overlaps",
                rf"\xi_n = {f.EVEN_XI} > 0",
                prove=part(
                    PROOFS["true_gradient"],
                    "equal overlaps",
                    prose=("p >= q from the sign of the difference of the margins' rates in late_full_flow",),
                ),
                assumptions=(assumptions.EQUAL_OVERLAPS,),
            ),
            Clause(
                "other overlaps in between, four classes",
                r"K = M = 4,\ G_{na} = 0,\ G_{ac} = G_{bc} = \rho,\ G_{nb} = \tfrac1T,\ 1 - G_{ab} = O(T^{-2}),\ T \to"
                r" \infty:\quad \xi_n < 0 \text{ at times of order } T\ln T",
                argued=(
                    "that n's probability of b, which was never pushed down, outgrows that of c, whose own rises with"
                    " H_n(c); finding 25 encloses the limit in balls at one T and time, and measures finite T by"
                    " another route that agrees; that finite T tend to the limit is argued",
                ),
            ),
            Clause(
                "other overlaps in between, three classes in order",
                r"K = M = 3,\ G_{nj} \ge G_{ni}:\quad \xi_n > 0 \text{ as long as } \alpha_n(j) \ge \alpha_n(i) \text{"
                r" at all times so far}",
                prove=part(PROOFS["true_gradient"], "three classes", prose=(true_gradient.LAG,)),
            ),
            Clause(
                "other overlaps in between, three classes",
                r"K = 3:\quad \xi_n > 0 \text{ for all } t",
                not_examined=("that the order of the clause before lasts: measured only, finding 25",),
            ),
        ),
    ),
    Statement(
        PAPER,
        "Closed forms under options",
        "Weight decay, label smoothing, temperature, schedules and momentum (not in the paper)",
        "Weight decay gives h a fixed point, and gamma one above zero, so that Gamma grows without bound like t; label"
        " smoothing bounds h and, by (128), Gamma and B; a temperature divides eta_Z by its square; a schedule is a"
        " clock: the closed forms hold at another time. Momentum is one for a constant gradient only, and training is"
        " slower to follow it than the decoder is to learn: finding 35.",
        rf"\text{{weight decay }} \lambda:\quad \dot x = {f.DECAYED_RATE},\quad x = Mh \\"
        rf" \text{{where this ends:}}\quad \gamma_\infty = {f.LAST_SIGNAL},\quad B = {f.LAST_EXPONENT} \\"
        rf" \text{{label smoothing }} \epsilon:\quad Mh \to {f.SMOOTHED_BOUND} \\"
        rf" \text{{temperature }} \tau:\quad z \mapsto \tfrac{{z}}{{\tau}},\quad \eta_Z \mapsto {f.COOLED_RATE} \\"
        r" \text{schedule } s(t):\quad t \mapsto \int_0^t s(t')\,dt' \\"
        rf" \text{{momentum }} \mu,\ \text{{constant gradient}}:\quad t \mapsto {f.MOMENTUM_CLOCK}",
        clauses=(
            Clause(
                "weight decay",
                rf"\dot x = {f.DECAYED_RATE},\quad \gamma \to {f.LAST_SIGNAL}",
                prove=part(
                    PROOFS["changed"],
                    "weight decay: rate",
                    "weight decay: Gamma",
                    "weight decay: gamma",
                    "weight decay: one fixed point",
                    "weight decay: it starts",
                    prose=("a rate that falls in x and is positive at 0 has one zero, which is approached",),
                ),
            ),
            Clause(
                "weight decay, where B ends with a constant C_0",
                rf"\dot z = -\eta_Z\left(\gamma_\infty\frac{{e^{{4z}}}}{{C_0}} + \lambda z\right) = 0:\quad -z ="
                rf" {f.LAST_EXPONENT}",
                prove=part(PROOFS["changed"], "weight decay: fixed point of attention"),
            ),
            Clause(
                "label smoothing",
                rf"Mh \to {f.SMOOTHED_BOUND},\quad \Gamma = {f.ACCUMULATED}",
                prove=part(
                    PROOFS["changed"],
                    "label smoothing",
                    prose=("a rate that falls in x and is positive at 0 has one zero, which is approached",),
                ),
            ),
            Clause(
                "temperature",
                rf"z \mapsto \tfrac{{z}}{{\tau}},\quad \eta_Z \mapsto {f.COOLED_RATE}",
                prove=part(PROOFS["changed"], "temperature"),
            ),
            Clause(
                "schedules",
                rf"t \mapsto \int_0^t s(t')\,dt':\quad \text{{warm-up}}\ {f.WARM_UP},\quad \text{{cosine}}\ {f.COSINE}",
                prove=part(PROOFS["changed"], "schedule"),
            ),
            Clause(
                "momentum, a constant gradient",
                rf"t \mapsto {f.MOMENTUM_CLOCK},\quad n \mapsto {f.MOMENTUM_STEPS} \text{{ in steps}}",
                prove=part(PROOFS["changed"], "momentum"),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 (number of a statement, figure, section or finding)
# typed: 8 (bound of the proof that the clause names, whose formula is printed from it)
# typed: 2018 (year)
# -->
