"""Statements on visits of the classes: Lemmas 10 to 12 and Remark 4."""

from __future__ import annotations

from theory.scan_and_snap import coverage, visits
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    DECODER,
    LEMMA_12,
    MANY_DRAWS,
    UNIFORM,
)
from theory.scan_and_snap._register.common import (
    PROOFS,
    closed,
    counted,
    statement,
)
from theory.statements import Clause, RefutedInPart, Remark
from theory.symbolic import part
from theory.values import value

_VISITS, _GAP, _GAPS, _ROUNDED = (
    value(f"scan_and_snap.{name}") for name in ("visits", "residual_gap", "residual_gap_fails", "rounded")
)

STATEMENTS = (
    statement(
        "Lemma 10",
        "Visits of a class",
        "The number of visits of a class in N steps is close to its mean.",
        r"\left|N_n - \lceil N P(n)\rceil\right| \le \sqrt{\tfrac N2\ln\tfrac2\delta} + 1 <"
        r" \sqrt{N\ln\tfrac2\delta}\ \text{ with probability} \ge 1-\delta\ \text{(58)}",
        corrected=rf"\text{{the second }} < \text{{ for }} N\ln\tfrac2\delta > {f.VISITS_NEEDED} ="
        rf" {f.visits_needed} \text{{ only}}",
        errata=(
            Remark(
                f"The second < holds for N ln(2/delta) > {f.visits_needed}, and so for every N that N >> K^2 is about.",
                stands="The probability, and the second < for those N.",
                quoted="sqrt((N/2) ln(2/delta)) + 1 < sqrt(N ln(2/delta)) (58).",
                setting="delta = {delta:g}",
                found=f"it fails for N = {', '.join(map(str, _VISITS['fails']))}, by {_VISITS['by']:.0%} at N = 1.",
                numbers=_VISITS,
            ),
        ),
        prove=part(PROOFS["concentration"], "(58)", "second <"),
        checks=(
            closed("probability outside, exactly", visits.lemma10),
            closed("second inequality", visits.lemma10_printed, visits.lemma10_corrected),
            counted("visits outside (58)", coverage.lemma10),
        ),
    ),
    statement(
        "Remark 4",
        "Visits, uniform classes",
        "With K equally likely classes, N_n is about N/K up to the order of sqrt(N).",
        r"|N_n - \bar N| \lesssim \Delta \ll \bar N,\quad \Delta ="
        r" \left\lceil\sqrt{N\ln\tfrac1\delta}\right\rceil\ \text{(60)}",
        sharper=f"for delta <= {f.rounded_limit} it holds with Nbar = ceil(N/K) and this Delta. A visit has the"
        " variance (1 - 1/K)/K, so that the deviation is of the order sqrt(N/K) (Bernstein's inequality, as in Lemma"
        " 12), less by a factor of order sqrt(K).",
        assumptions=(UNIFORM, MANY_DRAWS),
        prove=part(
            PROOFS["concentration"],
            "(58) from Hoeffding",
            "Nbar rounded: an integer",
            "Nbar rounded: Remark 4",
            "variance",
            "Bernstein",
        ),
        checks=(closed("probability outside, exactly, delta up to 1/2", visits.remark4),),
    ),
    statement(
        "Lemma 11",
        "Growth and residual under sampling",
        "What a class has learned after N_n visits, against its mean number of visits; G(s) = 1/(M - 1 + exp(M h(s))).",
        r"|h(N_n)-h(\bar N)| \lesssim h(\bar N)\frac{\Delta}{\bar N}\ \text{(61)},\quad |G(N_n)-G(\bar N)| \lesssim"
        r" G(\bar N)\sigma',\ \sigma' \le \frac{\eta_Y\Delta}{3} \ll \ln M\ \text{(62)}",
        corrected=rf"\sigma' \le {f.RESIDUAL_GAP};\quad |\ln G(N_n) - \ln G(\bar N)| \le {f.LOG_RESIDUAL_GAP}",
        errata=(
            RefutedInPart(
                f"sigma' <= {f.residual_gap}, with the best constant for large Delta.",
                stands="(61), with the constant 1. (62) for more visits than the mean, and for fewer up to eta_Y Delta"
                f" = {_GAPS['from']:.1f}; and sigma' <~ Delta/Nbar once N >= 2K(1 + omega_1) ln M/eta_Y.",
                quoted="|G(N_n) - G(Nbar)| <~ G(Nbar) sigma', sigma' <= eta_Y Delta/3 << ln M (62).",
                setting="M = {m:.0e}, K = {k}, N = {n:,}, eta_Y = {eta_y:g}, delta = {delta:g}",
                found="Delta = {gap} visits fewer than Nbar = {mean:,} give sigma' = {sigma:.2f}, where (62) has"
                " {bound:.2f}, far below ln M = {log:.0f}: {ratio:.2f} times as much.",
                numbers=_GAP,
            ),
        ),
        assumptions=(*DECODER, UNIFORM, MANY_DRAWS),
        clauses=(
            Clause(
                "(61), growth",
                rf"|h(N_n) - h(\bar N)| \le h(\bar N){f.GROWTH_GAP}",
                prove=part(PROOFS["concentration"], "(61)", prose=("what is monotone has its extremes at the ends",)),
                checks=(
                    closed("(61) with the constant 1", visits.lemma11_growth),
                    counted("runs outside (61)", coverage.lemma11),
                ),
            ),
            Clause(
                "(62), residual",
                rf"\sigma' \le {f.RESIDUAL_GAP},\quad |\ln G(N_n) - \ln G(\bar N)| \le {f.LOG_RESIDUAL_GAP}",
                prove=part(
                    PROOFS["concentration"],
                    "(62)",
                    "slope of ln D",
                    prose=("a sum of steps is at most its number times the largest",),
                ),
                checks=(
                    closed(
                        "(62)",
                        visits.lemma11_printed,
                        visits.lemma11_corrected,
                        says=f"(62), as printed where eta_Y Delta/3 <= ln M/{visits.MUCH_LESS}, also at M = 1e15",
                    ),
                ),
            ),
            Clause(
                "(62), from the upper crossing of Lemma 8 on",
                r"\sigma' \lesssim \tfrac{\Delta}{\bar N}:\quad \left|\tfrac{d\ln G}{d\ln s}\right| \le"
                rf" {f.LATE_ELASTICITY}",
                prove=part(PROOFS["concentration"], "late: elasticity"),
            ),
        ),
    ),
    statement(
        "Lemma 12",
        "All classes together",
        "With classes drawn uniformly, every row of W is close to what the mean number of visits gives.",
        r"w_n = (1+\theta_n)(M-1)h(\bar N)\zeta_n,\quad |\theta_n| \lesssim \frac{K}{\sqrt N}\sqrt{\ln\tfrac K\delta}"
        r" \text{ for all } n,\ N \gg K^2",
        sharper="the constant 1 is enough, and the order is loose by sqrt(K): with Bernstein's inequality in the"
        f" place of Hoeffding's, |theta_n| <= {f.relative_bound}. With Nbar = ceil(N/K), as printed, the first is"
        f" proved for delta <= {f.rounded_delta}, which is {_ROUNDED['share']:.2f} at K = {_ROUNDED['k']} and above 1"
        f" from K = {_ROUNDED['from']} on, the second for ln(2 K/delta) >= {f.rounded_logarithm}.",
        assumptions=LEMMA_12,
        clauses=(
            Clause(
                "the printed order, with the constant 1",
                r"|\theta_n| \le \tfrac{K}{\sqrt N}\sqrt{\ln\tfrac K\delta} \text{ for all } n,\quad \bar N ="
                rf" \left\lceil\tfrac NK\right\rceil,\ \delta \le {f.ROUNDED_DELTA}",
                prove=part(
                    PROOFS["concentration"],
                    "(58) from Hoeffding",
                    "(61)",
                    "Nbar rounded: tails",
                    "Nbar rounded: Lemma 12",
                    prose=("a probability for each of the K classes, added up",),
                ),
                checks=(
                    closed("exact probability, constant 1", visits.lemma12),
                    counted("runs outside, features still, constant 1", coverage.lemma12),
                ),
            ),
            Clause(
                "by Bernstein's inequality",
                rf"|\theta_n| \le {f.RELATIVE_BOUND} \text{{ for all }} n,\quad \bar N ="
                rf" \left\lceil\tfrac NK\right\rceil,\ \ln\tfrac{{2K}}{{\delta}} \ge {f.ROUNDED_LOGARITHM}",
                prove=part(
                    PROOFS["concentration"],
                    "(61)",
                    "Bernstein",
                    "Lemma 12",
                    "variance",
                    "Nbar rounded: square",
                    "Nbar rounded: one",
                    "Nbar rounded: what",
                    "Nbar rounded: s >",
                    prose=("a probability for each of the K classes, added up",),
                ),
                checks=(closed("exact probability, Bernstein's bound", visits.lemma12_sharp),),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 2 3 (factor, divisor or term of a formula)
# typed: 1e15 (size in the code of a check, which its name tells)
# -->
