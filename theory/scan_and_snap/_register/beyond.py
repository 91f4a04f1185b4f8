"""Statements beyond the paper's own: the transition's time, its extensions, late times, the true gradient, options."""

from __future__ import annotations

from theory.scan_and_snap import centred, finite_sequences, foreseen, late_attention, residual
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    ASSUMPTION_1,
    DECODER,
    EQUAL_OVERLAPS,
    NO_POSITIONS,
    ONE_COMMON,
    ONE_QUERY,
    SYMMETRIC,
    UNIFORM,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import PROOFS, closed, statement
from theory.scan_and_snap.proofs import late_exponent, late_full_flow, true_gradient
from theory.scan_and_snap.proofs.finite_sequences import BERNSTEIN, COVARIANCE, FACTORIAL, PRODUCTS, SIXTH, SIZE_BIAS
from theory.statements import Clause, RefutedInPart, Remark
from theory.symbolic import part
from theory.values import value

_RARE, _LOCAL = value("scan_and_snap.rare_token"), value("scan_and_snap.local_tokens")
_FOUND, _LESS = value("scan_and_snap.long_enough.rows")[:2]
_MOVED = value("scan_and_snap.long_enough_moved")

STATEMENTS = (
    statement(
        "Transition time",
        "The peak of gamma (not in the paper)",
        "gamma peaks at a time that Lambert's W gives in closed form.",
        r"t_0' = \frac{K\ln M}{\eta_Y},\quad t_0 = \frac{2K\ln M}{\eta_Y}",
        corrected=rf"t^* = {f.PEAK_TIME},\quad u^* = {f.PEAK_MARGIN},\quad \gamma(t^*) = {f.PEAK}",
        assumptions=(UNIFORM,),
        prove=PROOFS["transition"],
    ),
    statement(
        "Equations 13, 118, 119",
        "How good Theorem 4's approximations are",
        "beta is taken for the overlap, and both for that of a common token whose norm rho_0 stands still. For equal"
        " classes with one common token the errors are exact rational functions of M, K and the overlap rho of the"
        " moment; two of them have opposite signs. The norm moves, so that the common token falls by less in the end.",
        r"f_n^Tf_{n'} \approx \beta_{nn'} \approx \frac{e^{2z_{ml}}}{\rho_0^2}\ \text{(118, 119)},\quad \dot z_{ml}"
        r" \approx -\eta_Z\gamma\frac{e^{4z_{ml}}}{C_0}\ \text{(13)}",
        corrected=rf"\tfrac{{\beta}}{{\rho}} - 1 \sim {f.BETA_ERROR},\quad \tfrac{{-\dot z}}{{\eta_Z\gamma(K-1)\rho^2}}"
        rf" - 1 \sim {f.SPEED_ERROR},\quad \tfrac{{d\ln\rho}}{{\eta_Z\xi\,dt}} = -2\left({f.DECAY}\right)",
        assumptions=(ZERO_DECODER, UNIFORM, ONE_COMMON, ONE_QUERY, *SYMMETRIC),
        errata=(
            Remark(
                "(119) leaves out 1/(M rho), and (13) with it, which is small for M rho >> 1 only. A constant rho_0"
                " makes the common token fall by up to 1 + 1/K times too much where each class attends to one distinct"
                " token, as long as M rho of the moment is large: finding 41."
            ),
        ),
        clauses=(
            Clause(
                "(119) and (13), exactly",
                rf"\tfrac{{\beta}}{{\rho}} = {f.BETA_RATIO},\quad \tfrac{{-\dot z}}{{\eta_Z\gamma(K-1)\rho^2}} ="
                rf" {f.SPEED_RATIO}",
                prove=part(PROOFS["approximations"], "ratios"),
            ),
            Clause(
                "to leading order",
                rf"\tfrac{{\beta}}{{\rho}} - 1 \sim {f.BETA_ERROR},\quad \text{{and for }} \dot z:\ {f.SPEED_ERROR}"
                r" \quad (\rho \to 0,\ M\rho \to \infty)",
                prove=part(PROOFS["approximations"], "leading"),
            ),
            Clause(
                "the norm that moves",
                rf"\tfrac{{d\ln\rho}}{{\eta_Z\xi\,dt}} = -2\kappa,\quad \kappa = {f.DECAY},\quad S_4 = \sum_l f_l^4"
                r" \text{ of the distinct tokens}",
                prove=part(PROOFS["approximations"], "norm"),
            ),
            Clause(
                "B where kappa stands still",
                rf"\eta_Z\int\xi = {f.MOVING_EXPONENT},\quad \kappa \to 1 + \tfrac1K \text{{ for one distinct token a"
                r" class, } \rho \to 0",
                prove=part(PROOFS["approximations"], "moving"),
            ),
        ),
    ),
    statement(
        "Section 7, residual connection",
        "Local distinct and common tokens",
        "With the query's vector added, classes of one query overlap by a half more, and Theorem 2 is said to hold"
        " within the classes of each query: tokens distinct among these gain, tokens common to these lose.",
        r"\bar u_T = \mathrm{LN}(\mathrm{LN}(\hat u_T) + u_{x_T}):\quad \beta_{nn'} \approx f_n^Tf_{n'} +"
        r" 1[\psi(n)=\psi(n')],\quad \dot z_{ml} > 0 \text{ for } l \text{ distinct within } \psi^{-1}(m)",
        corrected=rf"\beta_{{nn'}} \approx {f.OWN_BETA}\left(f_n^Tf_{{n'}} + 1\right) \text{{ for }} \psi(n)=\psi(n'),"
        r"\ c = |\psi^{-1}(m)|;\quad \text{a token of one class of every query: } \dot z_{ml} > 0 \text{ for }"
        rf" f_{{nl}}^2 < {f.ONE_LOCAL_SHARE}f_{{n0}}^2,\ < 0 \text{{ above; }}\ \text{{ one in every class:}}"
        rf"\ {f.LOCAL_SHARE}f_{{n0}}^2",
        assumptions=(*ASSUMPTION_1, ZERO_DECODER, *DECODER, UNIFORM),
        errata=(
            RefutedInPart(
                "Of Q queries of c equal classes each, with a token common to the classes of each query (f_n0), a token"
                " of one class of every query (f_nl) loses attention from f_nl^2 = f_n0^2"
                f" {f.one_local_share} on, and from f_n0^2 {f.local_share} on if every class has such a token, to first"
                " order in the squares.",
                stands="Tokens common within a query lose, and tokens of a single class gain. With beta between queries"
                " neglected, as the section does, so does every locally distinct token.",
                quoted="Theorem 2 holds with local distinct and common tokens within psi^{-1}(m).",
                setting="Q = {queries}, c = {each}, M = {m:,}, f_n0 = {common:g} and f_nl = {shared:g}",
                found="a locally distinct token that one class of either query has moves at {speed:.1e} in units of"
                " eta_Z gamma/K: it loses. The thresholds are {edge:g} f_n0^2, and {every:g} f_n0^2 with such a token"
                " in every class.",
                numbers=_LOCAL,
            ),
            Remark(
                "beta_nn' ~ f_n.f_n' + 1[psi(n) = psi(n')] is right in its order: beta is the larger within queries."
                f" Its size there is {f.own_beta} times that, for c classes a query and weak overlaps."
            ),
        ),
        checks=(
            closed(
                "beta within a query, 200 random sets",
                residual.beta_printed,
                residual.beta_corrected,
                tolerance=0.15,
                remarked=True,
            ),
            closed("beta between queries smaller than within", residual.beta_apart),
            closed("tokens common within a query, or to all, that do not lose", residual.local_common),
            closed("tokens of one class that do not gain", residual.own_distinct),
            closed(
                "locally distinct tokens that do not gain", residual.local_distinct, residual.local_distinct_corrected
            ),
        ),
    ),
    statement(
        "Section 3.1, LayerNorm",
        "LayerNorm that subtracts the mean",
        "The analysis is said to extend to the usual LayerNorm, which subtracts the mean first. Theorem 1 does, with"
        " the Gram matrix of the centred features. Theorem 2(b) does for any number of classes where beta is positive"
        " and the common token's share above 1/M in each; Theorem 2(a) for tokens of a share of 1/M and more, where"
        " overlaps are not negative, but not for rare tokens.",
        r"\mathrm{LN}(x) = \frac{x - \bar x 1}{\|x - \bar x 1\|}:\quad \text{the analysis can be extended}",
        corrected=rf"\dot z_{{ml}} = {f.CENTRED_RATE},\quad \tilde f_n = \frac{{c_n - 1/M}}{{N_n}},\ N_n^2 = \|c_n\|^2"
        r" - \tfrac1M",
        assumptions=(*ASSUMPTION_1, ZERO_DECODER, *DECODER, UNIFORM),
        errata=(
            Remark(
                "The paper prints no inequality for it. Centred features have the overlap c_n . c_n' - 1/M, up to a"
                f" positive factor, and where it is below {f.least_overlap} of two classes, or of equal overlaps, beta"
                " is negative: under the modified decoder a common token of a share above 1/M then gains. In the full"
                " flow it loses all the same.",
                stands="Theorem 1 extends, with the Gram matrix of the centred features; Theorem 2(b) where beta is"
                " positive and the common token's share above 1/M; Theorem 2(a) for shares of 1/M and more and overlaps"
                " that are not negative.",
                quoted="our analysis can also be extended to standard LayerNorm, which also subtracts the mean.",
            ),
            Remark(
                f"Rare distinct tokens gain only where {f.distinct_push} > 0, kappa = c_n . c_n' - 1/M. Of two classes"
                f" of shares {_RARE['common'][0]:g} and {_RARE['common'][1]:g} of the common token, one and"
                f" {_RARE['others']}"
                " tokens of their own, one more in the second loses attention below a share of"
                f" {_RARE['border']:.2g}/M (M = {_RARE['m']})."
            ),
        ),
        clauses=(
            Clause(
                "the velocity",
                rf"\dot z_{{ml}} = {f.CENTRED_RATE}",
                prove=part(PROOFS["layer_norm"], "velocity"),
            ),
            Clause(
                "a single common token",
                rf"\dot z_{{ml}} < 0 \text{{ for }} \beta_{{nn'}} > 0,\ p_n > \tfrac1M;\quad n' \text{{ takes }}"
                rf" \beta_{{nn'}}\left({f.COMMON_PULL}\right) \text{{ of }} n",
                prove=part(
                    PROOFS["layer_norm"],
                    "common",
                    prose=("the spread e_n is a sum of squares", "a sum of positive terms is positive"),
                ),
                checks=(
                    closed("common tokens of 200 random sets with beta > 0 that do not lose", centred.common_several),
                ),
            ),
            Clause(
                "distinct tokens",
                rf"n' \text{{ adds }} \beta_{{nn'}}\left({f.DISTINCT_PUSH}\right),\quad \kappa = c_n^Tc_{{n'}} -"
                r" \tfrac1M:\quad \dot z_{ml} > 0 \text{ for } c_{nl} \ge \tfrac1M,\ \kappa \ge 0,\ \beta_{nn'} > 0",
                prove=part(PROOFS["layer_norm"], "distinct", prose=("a sum of positive terms is positive",)),
                checks=(closed("rare distinct tokens on the wrong side of that", centred.distinct_corrected),),
            ),
            Clause(
                "the sign of beta, two classes or equal overlaps",
                rf"\beta > 0 \text{{ for }} \tilde f_n^T\tilde f_{{n'}} > {f.LEAST_OVERLAP},\ < 0 \text{{ below}};\quad"
                rf" \text{{equal classes: }} {f.BORDER} > 0,\ \text{{hence }} p > \tfrac{{2}}{{M+1}}",
                prove=part(PROOFS["layer_norm"], "beta", prose=("squares of shares add up to their sum's at most",)),
                checks=(
                    closed("common tokens of 200 random pairs on the wrong side of that", centred.common_corrected),
                ),
            ),
            Clause(
                "other overlaps of three classes and more",
                rf"\tilde f_n^T\tilde f_{{n'}} > {f.LEAST_OVERLAP}",
                not_examined=("that some beta are negative there is seen; whether the common token can gain is open",),
            ),
        ),
    ),
    statement(
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
        assumptions=(NO_POSITIONS, UNIFORM),
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
                checks=(closed("lengths of four small tasks at which signs differ", finite_sequences.wrong_lengths),),
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
                checks=(
                    closed("lengths at which signs of the first moves differ", finite_sequences.wrong_first_lengths),
                ),
            ),
            Clause(
                "a decoder that short sequences have made, later",
                r"Y \text{ learned at } T < \infty",
                not_examined=("only the leading order in the number of steps; finding 37 measures what follows",),
            ),
        ),
    ),
    statement(
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
        assumptions=(UNIFORM, ONE_COMMON, ONE_QUERY, *SYMMETRIC),
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
    statement(
        "Theorem 2(a), true gradient",
        "Distinct tokens gain without the modified gradient (not in the paper)",
        "With frozen features xi_n > 0 early for any overlaps; late, for almost all independent features, its limit"
        " is not negative, and positive where other classes are confused with n; for equal overlaps, hence for two"
        " classes, xi_n > 0 at all times. For other overlaps of four classes it is not: next to two classes that are"
        " nearly the same, a distinct token loses attention for a while.",
        rf"\xi_n = {f.EARLY_XI} + O(t^2),\quad \lim_{{t\to\infty}}\tfrac{{\eta_Yt}}{{K\ln t}}\xi_n \ge 0",
        assumptions=(ZERO_DECODER, UNIFORM),
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
                assumptions=(EQUAL_OVERLAPS,),
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
    statement(
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
