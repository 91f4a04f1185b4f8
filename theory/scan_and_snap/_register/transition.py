"""Statements on the phase transition: Theorem 4, its branches, and how it depends on the rates."""

from __future__ import annotations

from theory.scan_and_snap import bounds, foreseen
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    ASSUMPTION_1,
    DECODER,
    EIGHT_TOKENS,
    ONE_COMMON,
    ONE_QUERY,
    ONE_SHARE,
    SMALL_OVERLAP,
    UNIFORM,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import (
    ALL,
    FLOWS,
    MODIFIED,
    PROOFS,
    closed,
    flowing,
    statement,
)
from theory.statements import Check, Clause, FalseAsPrinted, Remark, Slip
from theory.symbolic import part
from theory.values import value

_FASTER, _BRANCHES = value("scan_and_snap.faster_decoder"), value("scan_and_snap.branches")
_SLOPES, _LIMIT = f.branch_slopes(), value("scan_and_snap.lower_limit")

STATEMENTS = (
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
            FalseAsPrinted(
                f"B = {f.exponent}, which is zero at the start.",
                stands="Gamma (128), differences of B between two times, the two stages and the growth like ln ln t.",
                quoted="B_n(t) = ln(C_0 + 4 Gamma)/4 (14, 124), C_0 = rho_0^4/K, without the integral's lower limit.",
                setting="K = {k}, M = {m:,}, rho = {rho:g}, eta_Y = {eta_y:g}, eta_Z = {eta_z:g}, t = {t:g}",
                found="B is {late:.2f}, and {start:.2f} at t = 0 already; the common token has fallen by {fall:.1e}.",
                numbers=_LIMIT,
            ),
            Slip(
                "ln(M eta_Y t/K), as in (14) and Lemma 9.",
                stands="B_n = O(ln ln t) and chi_l0 = O(ln t) for any one M.",
                quoted="gamma = O(K ln(eta_Y t/K)/(eta_Y t)) in the snapping stage, as in Theorem 1(b).",
            ),
            Slip(
                "nu = eta_Y/eta_Z, as in the text, (130) and the panels.",
                stands="The figure.",
                quoted="nu = eta_Z/eta_Y, in Fig. 9's caption.",
            ),
            Remark(
                "(13) gives z' and xi_n one C_0, although its own sums have K (K - 1) and K - 1 terms. With the 1/K of"
                " Lemma 4 they do have one, and K - 1 in the place of K."
            ),
            Remark(
                "That the common token has one f_n in all classes is implied by (118)'s one rho_0. Two classes with f_1"
                " and f_2 begin (1 - (f_1^2 + f_2^2)/2)/(1 - f_1 f_2) times as fast, a factor in (1/2, 1]; near 1 where"
                " common components are as small as K rho <= 0.1 has them."
            ),
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
            Remark(
                f"The branches are asymptotic: the error falls like {_SLOPES[0]:.2f}/ln M and {_SLOPES[1]:.2f}/ln M. In"
                " B it is at most a quarter of that.",
                stands="Both branches in the limit, and B's ln ln t.",
                quoted="4 Gamma = 2 (M-1)^2/(K M^2) eta_Y eta_Z t^2 for t < t0' = K ln M/eta_Y, and 2 K (M-1)^2/M^2"
                " (eta_Z/eta_Y) ln^2(M eta_Y t/K) for t >= t0 (14).",
                setting="their own ends, t0' and t0,",
                found="4 Gamma is too large by {errors[0][0]:.1%} and {errors[0][1]:.1%} for M = {sizes[0]:,}, and by"
                " {errors[1][0]:.1%} and {errors[1][1]:.1%} for M = {sizes[1]}.",
                numbers=_BRANCHES,
            ),
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
                f"ln(M eta_Y t/K) >> {f.late_margin}, which is 4 Gamma >> C_0 = 1.",
                stands="(131), (133) and both insights.",
                quoted="t >> exp(1/sqrt(2 nu))/(M eta_Y) in (132), in our copy: nu as eta_Z/eta_Y, as in Fig. 9's"
                " caption, and K = 1.",
            ),
            Remark(
                "Insight (b), fixed eta_Z, is about large t, as the paper says. It holds from the upper crossing of"
                f" Lemma 8 on for M >= 8: at M = {_FASTER['m']}, K = {_FASTER['k']}, eta_Y = {_FASTER['eta_y']:g} from"
                f" t = {_FASTER['until']:.0f} on (t0' = {_FASTER['scanning']:.0f}, t0 = {_FASTER['snapping']:.0f})."
            ),
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
)

# <!-- numbers
# typed: 4 8 (number of a statement, figure, section or finding)
# typed: 2 (factor, divisor or term of a formula)
# typed: 0.1 (the bound K rho <= 0.1 of the assumption that is named)
# -->
