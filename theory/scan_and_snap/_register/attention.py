"""Statements on attention: Lemmas 4 and 18, Theorems 2 and 3, and related statements."""

from __future__ import annotations

from theory.scan_and_snap import foreseen, initial
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    ANY_RATES,
    COMMON_FALL,
    DOMINANT,
    FAST_FOR_VOCABULARY,
    ONE_COMMON,
    ONE_QUERY,
    SOME_DISTINCT,
    SYMMETRIC,
    THEOREM_1,
    ZERO_ATTENTION,
)
from theory.scan_and_snap._register.common import (
    ALL,
    FLOWS,
    MODIFIED,
    PROOFS,
    at_any_rates,
    flowing,
    signs,
    statement,
)
from theory.statements import Check, Clause, FalseAsPrinted, RefutedInPart, Remark
from theory.symbolic import part
from theory.values import value

_FACTOR = value("scan_and_snap.class_factor")

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
            FalseAsPrinted(
                "A factor 1/K: t counts steps, one class is drawn a step, and each acts with its probability.",
                stands="Every direction and sign, and the ratio of any two speeds.",
                quoted="dz_m/dt = eta_Z gamma sum_n diag(f_n) sum_n' beta_nn' (f_n f_n^T - I) f_n' (10).",
                setting="K = {k}, M = {m:,}, rho = {rho:g}, eta_Y = {eta_y:g}, eta_Z = {eta_z:g}, t = {t:g}",
                found="the common token moves by {speed:.2e} a step in the modified flow, where (10) has {printed:.2e},"
                " {times:.1f} times as much.",
                numbers=_FACTOR,
            ),
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
        errata=(
            Remark(
                "The rate has Lemma 4's factor 1/K, which its sign does not see.",
                stands="The sign, which is the claim.",
                quoted="dz_ml/dt = eta_Z gamma f_nl^2 sum_n' beta_nn' f_n.f_n' > 0 (98).",
            ),
        ),
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
        errata=(
            Remark(
                "The rate has Lemma 4's factor 1/K, which its sign does not see.",
                stands="The sign, which is the claim.",
                quoted="dz_ml/dt = -eta_Z sum_n (1 - f_nl^2) xi_n < 0 (100).",
            ),
        ),
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
        "With one query, exchangeable classes and common tokens of equal probability in all, every common token falls."
        " A kernel has checked the sign in a symmetric state; that the flow keeps the symmetry is in the symbolic proof"
        " alone.",
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
            RefutedInPart(
                "B_n = (eta_Z/K) int_0^t xi_n, with the class's probability as in Lemma 4. Both bounds hold with it.",
                stands="(11), the growth of the leading token, and the upper bound of (12).",
                quoted="exp(2 f_nl0(0)^2 B_n) <= chi_l0, B_n = eta_Z int_0^t xi_n (12).",
                setting="K = {k}, M = {m:,}, rho = {rho:g}, eta_Y = {eta_y:g}, eta_Z = {eta_z:g}, t = {t:g}",
                found="ln chi_l0 is {log_chi:.2e}, where (12) has {least:.2e} at least. It fails at all times where"
                " f_nl0(0)^2 is 1/K or more.",
                numbers=_FACTOR,
            ),
            Remark("In the full flow (11) holds to order eta_Z/eta_Y, since f moves while Y accumulates it."),
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

# <!-- numbers
# typed: 256 (size in the code of a check, which its name tells)
# typed: 2 (number of a statement, figure, section or finding)
# -->
