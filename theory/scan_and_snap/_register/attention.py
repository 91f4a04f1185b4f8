"""Statements on attention: Lemmas 4 and 18, Theorems 2 to 4, and what comes with them."""

from __future__ import annotations

from theory.scan_and_snap import bounds, foreseen, initial
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    ANY_RATES,
    ASSUMPTION_1,
    COMMON_FALL,
    DECODER,
    DOMINANT,
    EIGHT_TOKENS,
    FAST_FOR_VOCABULARY,
    ONE_COMMON,
    ONE_QUERY,
    ONE_SHARE,
    SMALL_OVERLAP,
    SOME_DISTINCT,
    SYMMETRIC,
    THEOREM_1,
    UNIFORM,
    ZERO_ATTENTION,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import (
    ALL,
    FLOWS,
    MODIFIED,
    PROOFS,
    at_any_rates,
    closed,
    flowing,
    signs,
    statement,
)
from theory.statements import Check, Clause, Hypothesis, Remark, Slip
from theory.symbolic import part
from theory.values import value

_FASTER, _ENDS = value("scan_and_snap.faster_decoder"), value("scan_and_snap.branches.sizes")
_LARGE, _SMALL = value("scan_and_snap.branches.errors")
_SLOPES = f.branch_slopes()

STATEMENTS = (
    statement(
        "Lemma 4",
        "Dynamics of attention",
        "The logits move along the features, weighted by gamma and beta.",
        r"\dot z_m = \eta_Z\gamma\sum_{n\in\psi^{-1}(m)}\mathrm{diag}(f_n)\sum_{n'\ne"
        r" n}\beta_{nn'}(f_nf_n^T-I)f_{n'}\ \text{(10)}",
        corrected=rf"\dot z_{{ml}} = {f.LEMMA_4}",
        assumptions=THEOREM_1,
        errata=(
            "One class is drawn a step and acts with its probability; as printed every rate is K times too large.",
        ),
        prove=PROOFS["lemma4"],
        checks=(
            flowing(
                "velocity of the logits",
                FLOWS,
                checks.lemma4,
                checks.lemma4_corrected,
                expected=MODIFIED,
                assumptions=(FAST_FOR_VOCABULARY,),
                says="the velocities (10)",
            ),
        ),
    ),
    statement(
        "Theorem 2(a)",
        "Distinct tokens gain",
        "The logit of every distinct token grows.",
        r"\dot z_{ml} = \eta_Z\gamma f_{nl}^2\sum_{n'\ne n}\beta_{nn'}f_n^Tf_{n'} > 0\ \text{(98)}",
        corrected=rf"\dot z_{{ml}} = {f.DISTINCT_RATE} > 0",
        sharper="in (10) itself Assumption 1(c) is not needed: the signs are those at any learning rates.",
        assumptions=THEOREM_1,
        predicts=foreseen.lengths,
        errata=("The rate is K times too large, as in Lemma 4; its sign is right.",),
        prove=part(PROOFS["theorem2"], "distinct token"),
        checks=(
            signs(
                "share of distinct tokens that have not gained",
                ALL,
                checks.theorem2_distinct,
                "the signs of the distinct tokens' changes",
            ),
            signs(
                "share of (time, distinct token) with z' <= 0",
                FLOWS,
                checks.theorem2_distinct_velocity,
                "the signs of the distinct tokens' velocities",
            ),
            flowing(
                "z' against f^2 xi_n, xi_n by (9)",
                FLOWS,
                checks.theorem2_rate_printed,
                checks.theorem2_rate_corrected,
                says="the rates (98)",
            ),
            at_any_rates(
                "share of (time, distinct token) with z' <= 0", checks.theorem2_distinct_velocity, suffices=ANY_RATES
            ),
        ),
    ),
    statement(
        "Theorem 2(b)",
        "A single common token loses",
        "If all classes share one common token, its logit falls.",
        r"\dot z_{ml} = -\eta_Z\sum_{n\in\psi^{-1}(m)}(1-f_{nl}^2)\xi_n < 0\ \text{(100)}",
        corrected=rf"\dot z_{{ml}} = {f.COMMON_RATE} < 0",
        sharper="in (10) itself Assumption 1(c) is not needed: the signs are those at any learning rates.",
        assumptions=(*THEOREM_1, ONE_COMMON, SOME_DISTINCT),
        predicts=foreseen.lengths,
        errata=("The rate is K times too large, as in Lemma 4; its sign is right.",),
        prove=part(
            PROOFS["theorem2"],
            "common token",
            "overlaps through the common token",
            "1 - f^2",
            "a class without",
            prose=("a sum of terms >= 0, one of them positive, is positive",),
        ),
        checks=(
            signs("share of times without loss", ALL, checks.theorem2_common, "the sign of the common token's change"),
            signs(
                "share of times with z' >= 0",
                FLOWS,
                checks.theorem2_common_velocity,
                "the sign of the common token's velocity",
            ),
            at_any_rates(
                "share of times with z' >= 0",
                checks.theorem2_common_velocity,
                suffices=(*ANY_RATES, ONE_COMMON, SOME_DISTINCT),
            ),
        ),
    ),
    statement(
        "Corollary 2",
        "Several common tokens lose",
        "With one query, exchangeable classes and common tokens of equal probability in all, every common token falls.",
        r"\dot z_{ml} < 0 \text{ for all } l \in G_{CT}",
        sharper="in (10) itself Assumption 1(c) is not needed: the signs are those at any learning rates.",
        assumptions=(*THEOREM_1, ONE_QUERY, *SYMMETRIC, ZERO_ATTENTION),
        prove=PROOFS["corollary2"],
        checks=(
            signs(
                "share of (time, common token) without loss",
                ALL,
                checks.theorem2_common,
                "the signs of the common tokens' changes",
            ),
            signs(
                "share of (time, common token) with z' >= 0",
                FLOWS,
                checks.theorem2_common_velocity,
                "the signs of the common tokens' velocities",
            ),
            at_any_rates(
                "share of (time, common token) with z' >= 0",
                checks.theorem2_common_velocity,
                suffices=(*ANY_RATES, ONE_QUERY, *SYMMETRIC, ZERO_ATTENTION),
            ),
        ),
    ),
    statement(
        "Theorem 3",
        "Growth of distinct tokens",
        "The relative gain of a distinct token l over each other l' of its class grows by a factor chi_l, the same for"
        " all l'. If all common tokens fall, the dominant distinct token's attention grows, and B_n bounds its chi on"
        " both sides.",
        r"r_{l/l'|n}(t) = r_{l/l'|n}(0)\chi_l(t)\ \text{(11)},\quad e^{2f_{nl_0}^2(0)B_n(t)} \le \chi_{l_0}(t) \le"
        r" e^{2B_n(t)},\ B_n = \eta_Z\int_0^t\xi_n\ \text{(12)}",
        corrected=rf"\text{{(11)}},\quad {f.GROWTH_BOUNDS},\ \dot B_n = {f.EXPONENT_RATE}",
        sharper="in (10) itself Assumption 1(c) is not needed: (11) is exact, and (12) holds, at any learning rates.",
        assumptions=THEOREM_1,
        errata=(
            "B_n is K times too large, as the rates of Lemma 4 are; the lower bound then fails as long as f_nl0^2 is"
            " below K times its start in the mean over B_n, hence always for f_nl0(0)^2 >= 1/K.",
            Remark(
                "Exact in the theory flow; in the full flow f moves while Y accumulates it: (11) holds to "
                "O(eta_Z/eta_Y)."
            ),
        ),
        clauses=(
            Clause(
                "(11), the relative gain",
                rf"r_{{l/l'|n}}(t) = {f.GAIN}",
                prove=part(PROOFS["theorem3"], "(11)"),
                checks=(
                    flowing("identity (11)", ALL, checks.theorem3_identity, says="the identity (11)"),
                    signs(
                        "share of (time, pair) whose lead shrinks",
                        FLOWS,
                        checks.theorem3_monotony,
                        "the growth of every lead",
                    ),
                    at_any_rates("identity (11)", checks.theorem3_identity, tolerance=1e-8, suffices=ANY_RATES),
                ),
            ),
            Clause(
                "the dominant token's attention",
                r"\dot f_{nl_0} \ge 0",
                prove=part(PROOFS["theorem3"], "rate of the dominant", "attention on the dominant"),
                assumptions=(DOMINANT, COMMON_FALL),
                checks=(
                    signs(
                        "share of (time, class) with f' <= 0 of the dominant token",
                        FLOWS,
                        checks.theorem3_dominant,
                        "the growth of the dominant token's attention",
                    ),
                ),
            ),
            Clause(
                "(12), the bounds of its growth",
                rf"{f.GROWTH_BOUNDS},\quad \dot B_n = {f.EXPONENT_RATE}",
                prove=part(
                    PROOFS["theorem3"],
                    "lower bound",
                    "upper bound",
                    "d ln chi",
                    prose=("rates are integrated from the start, where chi is 1",),
                ),
                assumptions=(DOMINANT, COMMON_FALL),
                checks=(
                    flowing(
                        "bounds (12), xi_n by (9)",
                        FLOWS,
                        checks.theorem3_bounds_printed,
                        checks.theorem3_bounds,
                        tolerance=1e-3,
                        says="the bounds (12)",
                    ),
                    at_any_rates(
                        "bounds (12), xi_n by (9)",
                        checks.theorem3_bounds,
                        tolerance=1e-3,
                        suffices=(*ANY_RATES, DOMINANT, COMMON_FALL),
                    ),
                ),
            ),
        ),
    ),
    statement(
        "Section 5, initial values",
        "Initial logits decide which token leads",
        "Two distinct tokens of a class with comparable probabilities are said to be suppressed in either way, by their"
        " initial logits. Which of them leads is decided at an exact threshold, and for good. How far the other is"
        " suppressed is another matter: its logit stops within a distance of its start that the initial lead sets.",
        r"r_{l/l'}(0) = \left(\frac{P(l|n)e^{z_l(0)}}{P(l'|n)e^{z_{l'}(0)}}\right)^2 - 1 \text{ decides which of }"
        r" l, l' \text{ is suppressed}",
        corrected=rf"l \text{{ leads }} l' \text{{ for good for }} z_l(0) - z_{{l'}}(0) > {f.LEAD_THRESHOLD};\quad"
        rf" \text{{as }} z_l \to \infty:\ z_{{l'}} - z_{{l'}}(0) \to {f.LOSERS_STOP}",
        assumptions=THEOREM_1,
        errata=(
            Remark(
                "Suppression takes its time: a lead of r(0) needs B_n of about ln(1/r(0)) to become one of order one,"
                " and B_n grows like ln ln t: finding 48."
            ),
        ),
        clauses=(
            Clause(
                "the leader",
                rf"\tfrac{{d}}{{dt}}\ln\tfrac{{f_{{nl}}}}{{f_{{nl'}}}} = \tfrac{{\eta_Z}}{{K}}\xi_n(f_{{nl}}^2 -"
                rf" f_{{nl'}}^2):\quad l \text{{ leads from }} z_l(0) - z_{{l'}}(0) = {f.LEAD_THRESHOLD} \text{{ on}}",
                prove=part(
                    PROOFS["initial_values"],
                    "lead",
                    prose=("a quantity whose rate has its own sign, and is zero with it, keeps its sign",),
                ),
                checks=(
                    Check(
                        "share of (side of the tie, time) with another leader or a smaller lead",
                        FLOWS,
                        initial.wrong_leads,
                        tolerance=0.0,
                        expected=FLOWS[:1],
                        suffices=ANY_RATES,
                        says="the leader of two distinct tokens",
                    ),
                ),
            ),
            Clause(
                "where the other one stops",
                rf"z_l \to \infty:\quad z_{{l'}} - z_{{l'}}(0) \to {f.LOSERS_STOP},\quad q ="
                r" \tfrac{f_{nl'}^2(0)}{f_{nl}^2(0)}",
                prove=part(PROOFS["initial_values"], "other"),
            ),
            Clause(
                "B_n that a lead needs, two tokens alone",
                rf"r(0) \to r:\quad B_n = {f.EXPONENT_NEEDED}",
                prove=part(PROOFS["initial_values"], "exponent"),
            ),
            Clause(
                "a tie in the true gradient",
                r"f_{nl} = f_{nl'},\ Y_l = Y_{l'} \text{ at the start}:\quad f_{nl} = f_{nl'} \text{ at all times}",
                prove=part(PROOFS["initial_values"], "true gradient"),
            ),
            Clause(
                "a lead in the true gradient",
                r"f_{nl} > f_{nl'} \text{ for good}",
                not_examined=("it may shrink (finding 8); whether it may be lost was measured at some settings only",),
            ),
        ),
    ),
    statement(
        "Theorem 4",
        "Phase transition",
        "With one common token in every class, the growth exponent is a logarithm of Gamma(t).",
        r"B_n(t) = \tfrac14\ln(C_0 + 4\Gamma(t)),\quad C_0 = \rho_0^4/K\ \text{(13, 14, 124)}",
        corrected=rf"B(t) = {f.EXPONENT},\quad C_0 \sim {f.SPEED_CONSTANT} \text{{ for }} \tfrac1M \ll"
        r" \tfrac{P_c^2}{\rho_0^2} \ll \tfrac1K,\quad B_n = \tfrac BK",
        assumptions=(
            *ASSUMPTION_1,
            ZERO_DECODER,
            *DECODER,
            UNIFORM,
            *SMALL_OVERLAP,
            ONE_SHARE,
            ONE_COMMON,
            ONE_QUERY,
        ),
        predicts=foreseen.transition,
        errata=(
            "(14), (124), (129) drop the lower limit: B(0) = ln(C_0)/4.",
            "(13) has K (K - 1) terms in z' and K - 1 in xi, and gives both the same C_0.",
            "The snapping stage repeats Theorem 1(b)'s gamma, whose logarithm lacks M.",
            Hypothesis(
                "rho_0 and P_c have no index of the class: the common token needs one f_n in all classes. Equal"
                " overlaps say so of three classes or more; two classes with f_1 and f_2 begin (1 - (f_1^2 + f_2^2)/2)/"
                "(1 - f_1 f_2) times as fast as with one f_n at that overlap, a factor between 1/2 and 1."
            ),
            Slip("Fig. 9's caption has nu = eta_Z/eta_Y; the text, (130) and the panels have nu = eta_Y/eta_Z."),
        ),
        clauses=(
            Clause(
                "(128), the accumulated speed",
                rf"\Gamma(t) = \eta_Z\int_0^t\gamma = {f.ACCUMULATED}",
                prove=part(PROOFS["theorem4"], "Gamma"),
            ),
            Clause(
                "B where the speed is that of a constant C_0",
                rf"\dot z = -\eta_Z\gamma\frac{{e^{{4z}}}}{{C_0}}:\quad -z(t) = B(t) = {f.EXPONENT}",
                prove=part(PROOFS["theorem4"], "dB/dt", "dz/dt", "B(0)", "z(0)"),
            ),
            Clause(
                "C_0 to leading order",
                rf"C_0 \sim {f.SPEED_CONSTANT} \text{{ for }} M\rho \to \infty,\ \rho = \tfrac{{P_c^2}}{{\rho_0^2}}"
                r" \to 0",
                prove=part(
                    PROOFS["theorem4"],
                    "C_0",
                    "the common token falls at xi",
                    prose=("C_0 to leading order, first M rho to infinity and then rho to 0",),
                ),
            ),
            Clause(
                "the common token's fall",
                r"-z(t) \approx B(t) \text{ with that } C_0",
                checks=(
                    flowing(
                        "fall of the common token against B",
                        ALL,
                        checks.theorem4_printed,
                        checks.theorem4_corrected,
                        tolerance=0.15,
                        expected=MODIFIED,
                        says="the growth exponent B",
                    ),
                ),
            ),
            Clause(
                "C_0 that is exact at the start",
                rf"C_0 = {f.START_CONSTANT},\quad \text{{in the full flow}}\ {f.FULL_START_CONSTANT}",
                prove=part(PROOFS["theorem4"], "at the start"),
                checks=(
                    Check(
                        "first fall against B with the exact C_0",
                        FLOWS,
                        checks.theorem4_start,
                        tolerance=0.02,
                        expected=FLOWS,
                        suffices=(ZERO_DECODER, UNIFORM, ONE_SHARE, ONE_COMMON, ONE_QUERY),
                        says="the first growth with the exact C_0",
                    ),
                ),
            ),
        ),
    ),
    statement(
        "Theorem 4, branches",
        "The two branches of B",
        "Gamma by its early and by its late form; the two are asymptotic, t0' and t0 are where the paper uses them.",
        r"4\Gamma = \frac{2(M-1)^2}{KM^2}\eta_Y\eta_Zt^2 \text{ for } t < t_0' = \frac{K\ln M}{\eta_Y},\quad 4\Gamma"
        r" = \frac{2K(M-1)^2}{M^2}\frac{\eta_Z}{\eta_Y}\ln^2\frac{M\eta_Yt}{K} \text{ for } t \ge t_0 ="
        r" \frac{2(1+o(1))K\ln M}{\eta_Y}\ \text{(14)}",
        corrected=rf"4\Gamma = {f.BRANCHES}\ \text{{(128)}}",
        errata=(
            f"At their own ends the branches of 4 Gamma are too large by {_LARGE[0]:.1%} (t0') and {_LARGE[1]:.1%} (t0)"
            f" at M = {_ENDS[0]}, {_SMALL[0]:.1%} and {_SMALL[1]:.1%} at M = {_ENDS[1]}; the error falls like"
            f" {_SLOPES[0]:.2f}/ln M and {_SLOPES[1]:.2f}/ln M only. In B it is at most a quarter of that.",
        ),
        assumptions=DECODER,
        prove=part(PROOFS["theorem4"], "Gamma", "time by (45)", "4 Gamma", "x - ln(M eta_Y t/K)", "branches"),
        checks=(
            closed(
                "4 Gamma at t0' and t0 against the integral of gamma",
                bounds.branches_printed,
                bounds.branches_corrected,
                tolerance=0.05,
            ),
        ),
    ),
    statement(
        "Equations 131 to 133",
        "How B depends on the rates",
        "Insights (a) and (b): both rates together make B larger; the decoder's rate alone makes it smaller, late.",
        r"B_n(t_0) \text{ depends on } \nu = \tfrac{\eta_Y}{\eta_Z} \text{ alone (131)};\quad B_n ="
        r" (1+o(1))\tfrac12\ln\ln\tfrac{M\eta_Yt}{K} + \tfrac14\ln\tfrac{2K(M-1)^2}{M^2\nu} \text{ for } t \gg"
        r" \frac{e^{1/\sqrt{2\nu}}}{M\eta_Y}\ \text{(132, 133)}",
        corrected=rf"\text{{(132) for }} \ln\tfrac{{M\eta_Yt}}{{K}} \gg {f.LATE_MARGIN}",
        assumptions=DECODER,
        errata=(
            Slip(
                f"(132): the condition 4 Gamma >> C_0 = 1 is ln(M eta_Y t/K) >> {f.late_margin}; in our copy nu "
                "stands in it as eta_Z/eta_Y would, as in Fig. 9's caption, and K = 1."
            ),
            "Insight (b), fixed eta_Z, holds late only: early B grows with eta_Y. It holds from the upper crossing of"
            f" Lemma 8 on for M >= 8; at M = {_FASTER['m']}, K = {_FASTER['k']}, eta_Y = {_FASTER['eta_y']:g} from t ="
            f" {_FASTER['until']:.0f} on (t0' = {_FASTER['scanning']:.0f}, t0 = {_FASTER['snapping']:.0f}).",
        ),
        clauses=(
            Clause(
                "(131) and insight (a)",
                rf"\Gamma = {f.ACCUMULATED_BY_RATIO},\quad \nu = \tfrac{{\eta_Y}}{{\eta_Z}}",
                prove=part(PROOFS["theorem4"], "(131)", "insight (a)"),
                checks=(closed("(131) and insight (a), fixed nu", bounds.insight_a),),
            ),
            Clause(
                "insight (b)",
                rf"\eta_Z \text{{ fixed}}:\quad \mathrm{{sign}}\,\frac{{dB}}{{d\eta_Y}} ="
                rf" \mathrm{{sign}}\big({f.DECODER_RATE_SIGN}\big),\quad x = Mh",
                prove=part(PROOFS["theorem4"], "insight (b)", "time by (45)"),
                checks=(
                    closed("insight (b), from the upper crossing on", bounds.insight_b),
                    closed("insight (b) from M = 8 on, at any eta_Y", bounds.insight_b, suffices=(EIGHT_TOKENS,)),
                ),
            ),
            Clause(
                "(132), (133)",
                rf"4\Gamma \gg 1 \text{{ for }} \ln\tfrac{{M\eta_Yt}}{{K}} \gg {f.LATE_MARGIN}",
                prove=part(PROOFS["theorem4"], "(132)", "x - ln(M eta_Y t/K)", "4 Gamma/x^2"),
            ),
        ),
    ),
    statement(
        "Lemma 18",
        "Concentration of finite sequences",
        "The frequency of a token in a finite sequence rarely leaves its probability by more than a small margin.",
        r"\max\!\left(0, P - \sqrt{\tfrac{\ln(2/\delta)}{2(T-1)}}\right) \le q_{l|n} \le P +"
        r" \sqrt{\tfrac{\ln(2/\delta)}{2(T-1)}} \text{ with probability} \ge 1-\delta\ \text{(134-136)}",
        prove=PROOFS["lemma18"],
        checks=(
            Check(
                "share outside the interval, T = 256",
                ("SGD",),
                checks.lemma18,
                tolerance=0.0,
                expected=("SGD",),
                says="the interval (134)",
                false_alarm=None,
            ),
        ),
    ),
)
