"""Statements on the decoder: Lemmas 1 to 3 and 5 to 17, Theorems 1 and 5, and what comes with them."""

from __future__ import annotations

import math

from theory.scan_and_snap import bounds, coverage, enclosed
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    BOUNDED_RATE,
    DECODER,
    EQUAL_OVERLAPS,
    FAST_DECODER,
    FOUR_TOKENS,
    LARGE_VOCABULARY,
    LEMMA_12,
    LONG_SEQUENCES,
    MANY_DRAWS,
    NEUMANN,
    NO_POSITIONS,
    THEOREM_1,
    UNIFORM,
    WEAK,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import (
    ALL,
    PROOFS,
    PROVED_STAGES,
    STAGES,
    at_any_rates,
    closed,
    counted,
    drawn,
    statement,
)
from theory.statements import Check, Clause
from theory.symbolic import part

# Expressions of `remark2` on what one step adds to the lag.
_INCREMENT = ("step of the margin", "increment", "the room", "its slope", "its second", "room", "the lag grows")
_EIGENVECTORS = "E has an orthonormal basis of eigenvectors, and an entry is at most the spectral norm"

STATEMENTS = (
    statement(
        "Lemma 1",
        "Gradient of the 1-layer transformer",
        "One step on one sample moves Y along the feature, and the query's row of Z along what comes back, projected.",
        r"\dot Y = \eta_Y\,\mathrm{LN}(X^Tb_T)(x_{T+1}-\alpha)^T,\quad \dot Z = \eta_Z\,x_T(x_{T+1}-\alpha)^T Y^T"
        r" \frac{P^\perp_{X^Tb_T}}{\|X^Tb_T\|_2} X^T\mathrm{diag}(b_T)X\ \text{(3)}",
        prove=PROOFS["lemma1"],
    ),
    statement(
        "Lemma 1, zero sums",
        "Conserved row sums",
        "Every row of Y and of Z keeps its sum, whatever the data; the paper says both below (3).",
        r"\dot Y 1 = 0,\quad \dot Z 1 = 0",
        prove=PROOFS["invariants"],
        checks=(
            Check(
                "row sums",
                ("modified flow", "full flow", "SGD"),
                checks.zero_sums,
                tolerance=1e-8,
                expected=("modified flow", "full flow", "SGD"),
                claim=enclosed.zero_sums,
                says="zero row sums",
            ),
        ),
    ),
    statement(
        "Lemma 2",
        "Long sequences",
        "As T grows, attention tends to that of a bag that holds P(l|n) in place of counts.",
        r"X^Tb_T \to c_n,\quad X^T\mathrm{diag}(b_T)X \to \mathrm{diag}(c_n),\quad c_{l|n} ="
        r" \frac{P(l|n)e^{z_{ml}}}{\sum_{l'}P(l'|n)e^{z_{ml'}}}\ \text{(5, 6)}",
        assumptions=(NO_POSITIONS, LONG_SEQUENCES),
        prove=PROOFS["lemma2"],
    ),
    statement(
        "Lemma 3",
        "Modified decoder gradient",
        "With the modified decoder gradient a step of class n moves the logits of class n only.",
        r"\dot w_j = \eta_Y 1[j=n](e_n-\alpha_n)\ \text{(8)},\quad \dot Y = \eta_Y(f_n -"
        r" FE'e_n)(e_n-\alpha_n)^T\ \text{(26)}",
        errata=(
            "Appendix D.1's list of notations prints E' := (I + E)^{-1} - I; (28), Lemma 14 and the proof have the"
            " opposite sign, E' = I - (I + E)^{-1}.",
        ),
        assumptions=(NO_POSITIONS, LONG_SEQUENCES, FAST_DECODER, *WEAK),
        prove=PROOFS["lemma3"],
    ),
    statement(
        "Lemma 5",
        "Decoder after s samples of a class",
        "Row n of W stays on the line of zeta_n, and a scalar recursion moves it.",
        r"w_n(s) = (M-1)h^*(s)\zeta_n,\quad e_n-\alpha_n = \frac{M-1}{M-1+e^{Mh^*(s)}}\zeta_n,\quad h^*(s) = h^*(s-1)"
        r" + \frac{\eta_Y}{M-1+e^{Mh^*(s-1)}}\ \text{(31, 32, 33)}",
        assumptions=(FAST_DECODER, ZERO_DECODER),
        prove=PROOFS["lemma5"],
        checks=(drawn("w_n against h*(N_n), features still", coverage.lemma5, tolerance=1e-9),),
    ),
    statement(
        "Lemma 6",
        "Continuous decoder growth",
        "The continuous form of the recursion has an implicit solution.",
        r"\dot h = \frac{\eta_Y}{M-1+e^{Mh}},\ h(0)=0 \quad\Rightarrow\quad e^{Mh} + (M-1)Mh = M\eta_Y t +"
        r" 1\ \text{(44, 45)}",
        prove=PROOFS["lemma6"],
        checks=(
            closed("(45) by the closed form", bounds.lemma6, tolerance=1e-12),
            Check(
                "closed form against the flow",
                ("theory flow",),
                checks.lemma6_flow,
                tolerance=1e-6,
                expected=("theory flow",),
                claim=enclosed.lemma6_flow,
            ),
        ),
    ),
    statement(
        "Lemma 7",
        "Discrete and continuous growth",
        "h* stays above h by at most 2 eta_Y / M, lags behind by a constant time up to ln(M)/eta_Y, and the gap"
        " vanishes.",
        r"\text{(a) } 0 \le h^*(s) - h(s) \le \frac{2\eta_Y}{M};\ \text{for } s \le \frac{\ln M}{\eta_Y}:\ h(s+c) \ge"
        r" h^*(s) \ge h(s),\ c = \Theta(1).\quad \text{(b) } h^* - h \to 0",
        sharper=f"half the bound, {f.lemma_7}, holds for every eta_Y > 0 (theory.decoder.h_steps), and c ="
        f" {f.lag_enough} is enough, for every M >= 2 and eta_Y > 0 (proved with Remark 2).",
        clauses=(
            Clause(
                "(a), the bound",
                rf"0 \le h^*(s) - h(s) \le {f.LEMMA_7}",
                prove=PROOFS["lemma7"],
                checks=(
                    closed("bound over the steps", bounds.lemma7),
                    closed("half the bound", bounds.lemma7_half),
                ),
            ),
            Clause(
                "(a), the lag",
                rf"s \le \tfrac{{\ln M}}{{\eta_Y}}:\quad h(s+c) \ge h^*(s) \ge h(s),\quad c = {f.LAG_ENOUGH}",
                prove=part(
                    PROOFS["remark2"],
                    *_INCREMENT,
                    "early",
                    prose=("the gains of the steps add up to the lag",),
                ),
                checks=(closed("second clause of (a), c = 1/2", bounds.lemma7_lag),),
            ),
            Clause(
                "(b)",
                r"h^* - h \to 0",
                prove=part(
                    PROOFS["remark2"],
                    *_INCREMENT,
                    "late",
                    "(b)",
                    prose=("a concave function lies below its tangents",),
                ),
            ),
        ),
    ),
    statement(
        "Remark 2",
        "Time by which the steps run ahead",
        "After the first stage, the flow is said to need only a constant time c more to reach what the steps have"
        " reached.",
        r"\eta_Y = O(1):\quad h(s) \le h^*(s) \le h(s+c) \text{ for all } s > s_1,\ c = O(\ln M)",
        corrected=rf"h^{{-1}}(h^*(s)) - s \sim {f.LAG},\ \text{{unbounded}}",
        errata=(
            "False: the lag h^{-1}(h*(s)) - s grows at every step and has no bound, for every M >= 2 and eta_Y > 0. M"
            " = 20, eta_Y = 0.9: 3.44, 4.60, 5.75, 6.90 at s = 10^3, 10^4, 10^5, 10^6.",
        ),
        assumptions=(BOUNDED_RATE,),
        prove=part(
            PROOFS["remark2"],
            *_INCREMENT,
            "late",
            "D grows",
            prose=(
                "the sum of the steps' gains against the harmonic series",
                "a gain of at least the term of a divergent series at every step",
            ),
        ),
        checks=(
            closed(
                "growth of the lag, s = 1e3 to 1e5", bounds.remark2_printed, bounds.remark2_corrected, tolerance=0.05
            ),
        ),
    ),
    statement(
        "Lemma 8",
        "Where the two stages of h meet",
        "exp(M h) and (M - 1) M h cross twice; between the crossings exp(M h) is the smaller one.",
        r"e^{Mh} \le (M-1)Mh \text{ for } h \in J_1 = \left[M^{-(2-\omega_0)},\ \tfrac{(1+\omega_1)\ln"
        r" M}{M}\right],\ \text{and} > \text{outside};\quad \omega_1 = \Theta\!\left(\tfrac{\ln\ln M}{\ln"
        r" M}\right),\ \omega_0 \lesssim \tfrac{1}{M^{0.99}\ln M},\ M^{\omega_1} = c'\ln M,\ c' \in (0.5, 2)",
        assumptions=(FOUR_TOKENS,),
        errata=("For M = 2 and 3 the two never cross: it needs M >= 4, which the paper's M >> 100 includes.",),
        sharper=f"omega_0 is {f.lower_excess} up to a factor that tends to 1; the printed order, with the constant 1,"
        " is above that from M of about 2^100 on.",
        clauses=(
            Clause(
                "two crossings",
                r"e^{Mh} \le (M-1)Mh \text{ on } J_1,\ > \text{ outside}",
                prove=part(
                    PROOFS["lemma8_9"],
                    "phi",
                    "slope of phi",
                    "lowest value",
                    "lower zero",
                    "M by the upper zero",
                    prose=("a convex function with a negative least value has two zeros",),
                ),
                checks=(closed("share of margins on the wrong side", bounds.lemma8),),
            ),
            Clause(
                "omega_1 and c'",
                rf"{f.CROSSING_RANGE},\quad \omega_1 = {f.UPPER_EXCESS}",
                prove=part(
                    PROOFS["lemma8_9"],
                    "c'",
                    "what ln(M) neglects",
                    "ln M/x",
                    "delta' ln M",
                    prose=(
                        "the upper zero: terms that vanish for M to infinity",
                        "the range of c': a function with one point of rest is least, or largest, there; ln(1 + q) <="
                        " q",
                    ),
                ),
                checks=(closed("share of M from 4 to 1e15 with c' outside its range", bounds.lemma8_upper),),
            ),
            Clause(
                "omega_0",
                rf"{f.LOWER_EXCESS} \text{{ for }} M \to \infty",
                prove=part(PROOFS["lemma8_9"], "omega_0", "(M - 1) x at the lower zero"),
                checks=(
                    closed(
                        "omega_0 for M from 100 to 1e15",
                        bounds.lemma8_lower_printed,
                        bounds.lemma8_lower_corrected,
                        tolerance=0.05,
                    ),
                ),
                assumptions=(LARGE_VOCABULARY,),
            ),
        ),
    ),
    statement(
        "Remark 3",
        "One step is past the first crossing",
        "For the learning rates that the paper has in mind, only the upper crossing matters.",
        r"M \gg 100,\ 1 > \eta_Y \gg M^{-0.99}:\quad h(1) > M^{-(2-\omega_0)}",
        assumptions=DECODER,
        prove=part(PROOFS["lemma8_9"], "lower zero", "(M - 1) x at the lower zero", "M tau at the lower zero"),
        checks=(closed("eta_Y from 1.2 M^-0.99 to 1", bounds.remark3),),
    ),
    statement(
        "Lemma 9",
        "Two stages of gamma",
        "gamma grows at most linearly up to t0' and falls like ln(t)/t from the upper crossing on.",
        STAGES % ("M", r"\omega_1"),
        sharper=f"M >= 4 is enough, at any eta_Y. gamma <= {f.early_gamma} at all times, and gamma <= {f.late_gamma}"
        " in the second stage, where 2 is the least constant for all M. (From t >= 2 K ln M/eta_Y on, without omega_1,"
        " the least constant for all M is between 2.1244 and 2.1246, in balls; M = 1.6e8 needs the former.)",
        errata=(
            "The lemma also has exp(M h) <= min(M - 1, (M - 1) M h) for t <= K ln M/eta_Y, which is not true at the"
            " very start, before the first crossing (Remark 3 sets it aside), and needs M >= 5; its bounds on h and"
            " gamma do not suffer.",
        ),
        assumptions=DECODER,
        prove=part(
            PROOFS["lemma8_9"],
            "early",
            "late",
            "M h <= eta_Y t",
            "gamma <=",
            "gamma/tau",
            prose=("the stages of gamma in time from those in x",),
        ),
        checks=(
            closed("both stages, constants 1 and 2", bounds.gamma_stages),
            closed("the same from M = 4 on, at any eta_Y", bounds.gamma_stages, suffices=(FOUR_TOKENS,)),
        ),
    ),
    statement(
        "Lemma 10",
        "Visits of a class",
        "The number of visits of a class in N steps is close to its mean.",
        r"\left|N_n - \lceil N P(n)\rceil\right| \le \sqrt{\tfrac N2\ln\tfrac2\delta} + 1 <"
        r" \sqrt{N\ln\tfrac2\delta}\ \text{ with probability} \ge 1-\delta\ \text{(58)}",
        corrected=rf"\text{{the second }} < \text{{ for }} N\ln\tfrac2\delta > {f.VISITS_NEEDED} ="
        rf" {f.visits_needed} \text{{ only}}",
        errata=(
            f"The second < needs N ln(2/delta) > {f.visits_needed}: at delta = 0.05 it fails for N = 1, 2, 3 (by"
            f" {f.second_inequality(math.log(40)):.0%} at N = 1).",
        ),
        prove=part(PROOFS["concentration"], "(58)", "second <"),
        checks=(
            closed("probability outside, exactly", bounds.lemma10),
            closed("second inequality", bounds.lemma10_printed, bounds.lemma10_corrected),
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
        checks=(closed("probability outside, exactly, delta up to 1/2", bounds.remark4),),
    ),
    statement(
        "Lemma 11",
        "Growth and residual under sampling",
        "What a class has learned after N_n visits, against its mean number of visits; G(s) = 1/(M - 1 + exp(M h(s))).",
        r"|h(N_n)-h(\bar N)| \lesssim h(\bar N)\frac{\Delta}{\bar N}\ \text{(61)},\quad |G(N_n)-G(\bar N)| \lesssim"
        r" G(\bar N)\sigma',\ \sigma' \le \frac{\eta_Y\Delta}{3} \ll \ln M\ \text{(62)}",
        corrected=rf"\sigma' \le {f.RESIDUAL_GAP};\quad |\ln G(N_n) - \ln G(\bar N)| \le {f.LOG_RESIDUAL_GAP}",
        errata=(
            "sigma' <= eta_Y Delta/3 holds for N_n > Nbar and M >= 4. For N_n = Nbar - Delta it fails from eta_Y"
            " Delta = 2.5 on (large M, some Nbar): M = 1000, N = 100, K = 4, eta_Y = 1/2, delta = 0.05 have Nbar ="
            f" 25, Delta = 18 and sigma' = {f.residual_gap_below(1000, 0.5, 25, 18):.2f} against {0.5 * 18 / 3:g}.",
            "For M = 2 and 3 it fails on both sides already for small Delta, where sigma' is up to"
            f" {f.log_residual_gap}.",
            f"Always true, and with the best constant for large Delta: sigma' <= {f.residual_gap}. (61) holds with the"
            " constant 1.",
        ),
        assumptions=(*DECODER, UNIFORM, MANY_DRAWS),
        clauses=(
            Clause(
                "(61), growth",
                rf"|h(N_n) - h(\bar N)| \le h(\bar N){f.GROWTH_GAP}",
                prove=part(PROOFS["concentration"], "(61)", prose=("what is monotone has its extremes at the ends",)),
                checks=(
                    closed("(61) with the constant 1", bounds.lemma11_growth),
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
                checks=(closed("(62)", bounds.lemma11_printed, bounds.lemma11_corrected),),
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
        f" proved for delta <= {f.rounded_delta}, which is {f.rounded_share:.2f} at K = 2 and above 1 from K = 4 on,"
        f" the second for ln(2 K/delta) >= {f.rounded_logarithm}.",
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
                    closed("exact probability, constant 1", bounds.lemma12),
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
                checks=(closed("exact probability, Bernstein's bound", bounds.lemma12_sharp),),
            ),
        ),
    ),
    statement(
        "Theorem 1",
        "Back-propagated gradient",
        "After t >> K^2 steps of batch size 1, the gradient at the features is gamma(t) times a combination of them.",
        r"g_n = \gamma\Big(\iota_nf_n - \sum_{n'\ne n}\beta_{nn'}f_{n'}\Big)\ \text{(9)}",
        errata=(
            "Holds for the modified gradient of Lemma 3; under the gradient of Lemma 1 see Remark 1.",
            "A single beta_nn' can be negative: beta_13 for a chain of overlaps 1-2-3 and large M.",
        ),
        assumptions=THEOREM_1,
        prove=part(
            PROOFS["theorem1"],
            "W r_n",
            "(9) by entries",
            "Y = F",
            "F^T Y",
            "g_",
            "inverse",
            "beta",
            "a single beta",
            prose=("the steps of the modified gradient add up from zero weights on",),
        ),
        checks=(
            Check(
                "g_n = Y r_n against (9)",
                ALL,
                checks.theorem1,
                expected=("theory flow", "modified flow"),
                claim=enclosed.theorem1,
                says="the gradient (9)",
            ),
            drawn("g_n against (9) with each run's theta and sigma", coverage.theorem1_signal, tolerance=0.05),
        ),
    ),
    statement(
        "Theorem 1(a)",
        "Every class is pushed away from the others",
        "The combination of Theorem 1 has a positive weight in sum, whatever M, for weakly correlated features.",
        r"\xi_n = \gamma\sum_{n'\ne n}\beta_{nn'}f_n^Tf_{n'} > 0 \text{ for } |\lambda_1(E)| <"
        r" \tfrac1K,\ |\lambda_i(E)| \ge \tfrac{6}{\sqrt M}",
        sharper=f"|lambda_1(E)| < {f.sharp_bound} is enough, for every M and K, wherever class n overlaps with another"
        " (for K <= 3, linear independence of the features), and no larger bound is for K >= 4: a star of overlaps"
        " fails just above it. Example of a failure: K = 4, M = 10, G_12 = 1/1000, G_23 = G_24 = 3/5, the others 0,"
        " |lambda_1| = 0.85. |lambda_i(E)| >= 6/sqrt(M) is not needed besides, and alone it is not enough: K = 4, M"
        " = 1000, G_12 = 0.35184, G_13 = G_14 = 0.28356, G_23 = G_24 = 0.806225734519, G_34 = 0.3 has eigenvalues of"
        " modulus 0.1909 and more, |lambda_1| = 1.49 and xi_1 = -0.028 gamma.",
        assumptions=THEOREM_1,
        prove=part(
            PROOFS["theorem1"],
            "xi",
            "block inverse",
            "resolvent",
            "a row of",
            "star",
            "lower half",
            "M = 1000",
            "diagonal of E'",
            prose=(
                "the sign of xi for any overlaps: Gram matrices are positive definite, a row of a block of E has at"
                " most the spectral norm of E, and a Neumann series has no negative terms",
                "the star just above the bound: eigenvalues are continuous",
                "the lower half of Assumption 2: quadratic forms lie between their eigenvalues",
            ),
        ),
        checks=(
            closed("share of the setting's classes with xi_n <= 0", bounds.theorem1a_here),
            closed(
                "stars and random overlaps with |lambda_1(E)| just below 1/sqrt(K - 2)", bounds.theorem1a, suffices=()
            ),
        ),
    ),
    statement(
        "Theorem 1(b)",
        "Two stages of gamma",
        "Lemma 9, as the theorem repeats it.",
        STAGES % ("", r"\delta'"),
        corrected=PROVED_STAGES,
        errata=(
            "The logarithm lacks M, which Lemma 9 and (57) have: as printed the constant grows with M, like ln M/ln ln"
            f" M at the beginning of the second stage (it is at least {f.least_late_constant(1000):.1f} at M = 1000 and"
            f" {f.least_late_constant(100_000):.1f} at M = 100,000, where 2 is enough with M).",
        ),
        prove=part(
            PROOFS["lemma8_9"],
            "gamma <=",
            "late",
            "time of the crossing",
            "gamma at the crossing",
            "tau/x at the crossing",
            "ln(tau)/tau",
            prose=("the stages of gamma in time from those in x",),
        ),
        assumptions=THEOREM_1,
        checks=(closed("second stage, constant 2", bounds.theorem1b_printed, bounds.theorem1b_corrected),),
    ),
    statement(
        "Equations 86 to 93",
        "beta and xi with unequal visits",
        "The coefficients of Theorem 1 through E' and theta, and the lower bound of xi_n; (86), (90), (92), (93) are"
        " right.",
        r"\beta_{nn'} = (1+\sigma)\Big[q_1(1+\theta_n)E'_{nn'} + q_0\Big((1+\theta_{n'}) + \sum_{k\ne"
        r" n}(1+\theta_k)E'_{kn'}\Big)\Big]\ \text{(88)}",
        corrected=rf"\beta_{{nn'}} = (1+\sigma)\Big[{f.SIGNAL}\Big]",
        errata=(
            "(88): the first term in the bracket of q_0 has the sign minus, since beta_nn' = -((I - E')(I + Theta)"
            " u_n)_n'. In our copy it is a plus; the bound on delta_3 covers either.",
        ),
        assumptions=THEOREM_1,
        prove=part(PROOFS["gram"], "(86)", "(88)", "(90)", "(92)", "(93)", prose=(_EIGENVECTORS,)),
        checks=(closed("(88) for random theta", bounds.signal_printed, bounds.signal_corrected, tolerance=1e-8),),
    ),
    statement(
        "Lemma 13",
        "Entries of E",
        "No overlap is larger than the largest eigenvalue of E in modulus.",
        r"\max_{i,j}|E_{ij}| \le |\lambda_1|",
        prove=part(PROOFS["gram"], "Lemma 13", prose=(_EIGENVECTORS,)),
        checks=(closed("setting and 200 random overlaps", bounds.lemma13, tolerance=1e-9),),
    ),
    statement(
        "Lemma 14",
        "Eigenvalues of E'",
        "E' has the eigenvectors of E.",
        r"|\lambda_1| < 1:\quad (I+E)^{-1} = I - E',\quad \lambda'_i = \frac{\lambda_i}{1+\lambda_i}",
        sharper="linearly independent features are enough, whatever |lambda_1|.",
        assumptions=(NEUMANN,),
        prove=part(PROOFS["gram"], "Lemma 14", prose=(_EIGENVECTORS,)),
        checks=(
            closed("setting and 200 random overlaps", bounds.lemma14, tolerance=1e-9),
            closed("200 random overlaps, any |lambda_1|", bounds.lemma14_any, tolerance=1e-9, suffices=()),
        ),
    ),
    statement(
        "Lemma 15",
        "Size of E'",
        "E' is hardly larger than E; with lambda = |lambda_1| two classes attain the bound.",
        r"|\lambda_1| \le \lambda < 1:\quad \max_i|\lambda_i(E')| \le \frac{|\lambda_1|}{1-\lambda}",
        assumptions=(NEUMANN,),
        prove=part(PROOFS["gram"], "Lemma 15", prose=(_EIGENVECTORS,)),
        checks=(closed("setting and 200 random overlaps", bounds.lemma15, tolerance=1e-9),),
    ),
    statement(
        "Lemma 16",
        "Diagonal of E'",
        "A class that overlaps with another has a negative diagonal entry in E'.",
        r"E'_{ii} \le 0,\ \text{and } E'_{ii} < 0 \text{ if some } E_{ki} > 0 \text{ (under Assumption 2)}",
        sharper="it needs no part of Assumption 2, linearly independent features are enough.",
        assumptions=WEAK,
        prove=part(PROOFS["gram"], "Lemma 16", prose=("Gram matrices are positive definite",)),
        checks=(
            closed("setting and 200 random overlaps", bounds.lemma16),
            closed("200 random overlaps, any |lambda_1|", bounds.lemma16_any, suffices=()),
        ),
    ),
    statement(
        "Lemma 17",
        "E' against E",
        "E' differs from E to second order.",
        r"|\lambda_1| < 1:\quad |E'_{nn'} - E_{nn'}| \le \frac{|\lambda_1|^2}{1-|\lambda_1|}",
        sharper=f"with entries of E that are not negative, as features have them, {f.sharp_difference},"
        " which E'_11 of two classes attains.",
        assumptions=(NEUMANN,),
        clauses=(
            Clause(
                "entries of any sign",
                rf"|E'_{{nn'}} - E_{{nn'}}| \le {f.DIFFERENCE}",
                prove=part(
                    PROOFS["gram"],
                    "Lemma 17: lambda' - lambda",
                    "Lemma 17: lambda_i",
                    prose=(_EIGENVECTORS,),
                ),
                checks=(closed("setting and 200 random overlaps", bounds.lemma17, tolerance=1e-9),),
            ),
            Clause(
                "entries that are not negative",
                rf"|E'_{{nn'}} - E_{{nn'}}| \le {f.SHARP_DIFFERENCE}",
                prove=part(
                    PROOFS["gram"],
                    "Lemma 17: lambda' - lambda",
                    "Lemma 17: the two halves",
                    "Lemma 17: the sharp bound",
                    "Lemma 17: sharp",
                    prose=(_EIGENVECTORS, "a Neumann series has no negative terms"),
                ),
                checks=(closed("the sharper bound", bounds.lemma17_sharp, tolerance=1e-9),),
            ),
        ),
    ),
    statement(
        "Theorem 5",
        "Decoder matrix under the modified gradient",
        "Y follows from the logits of the classes, whichever of them were drawn, as long as the features stand still.",
        r"Y = (F^\dagger)^T(I+\Theta)\bar W = F(I-E')(I+\Theta)\bar W(N),\quad \Theta ="
        r" \mathrm{diag}(\theta_n)\ \text{(70)}",
        assumptions=(NO_POSITIONS, LONG_SEQUENCES, *WEAK, *LEMMA_12),
        prove=part(
            PROOFS["theorem5"],
            "(70)",
            "dW/dt",
            "W at h = 0",
            "logits of class n",
            "dY/dt",
            "(F^+)",
            "Y at h = 0",
            prose=("the flow from Y = 0 has one solution",),
        ),
        checks=(
            Check(
                "Y against F (I - E') W, Theta = 0",
                ALL,
                checks.theorem5,
                expected=("theory flow", "modified flow"),
                claim=enclosed.theorem5,
                says="the decoder matrix (70)",
            ),
            drawn("Y against (70) with each run's Theta", coverage.theorem5_decoder, tolerance=0.05),
            counted("Theta outside Lemma 12's bound, features moving", coverage.theorem5),
        ),
    ),
    statement(
        "Corollary 1",
        "Approach of the critical point",
        "The residual e_n - alpha_n and the loss fall like K / (eta_Y t).",
        r"e_n-\alpha_n = \frac{M-1}{M-1+e^{Mh(\bar N)}}(1+\sigma)\zeta_n,\ \sigma > -1,\ |\sigma| \lesssim"
        r" \eta_Y\sqrt{N\ln\tfrac1\delta}\ \text{(71)};\quad \|x_{T+1}-\alpha_n\| \le \epsilon \text{ after at most }"
        r" O\!\left(\tfrac{K}{\epsilon\eta_Y}\ln\tfrac M\epsilon\right) \text{ steps}",
        sharper=f"|sigma| <= {f.sigma_bound}, with the constant 1; and {f.steps_needed} steps are enough with classes"
        " in turn, the sum of the two terms and not their product.",
        assumptions=(NO_POSITIONS, LONG_SEQUENCES, *WEAK, *LEMMA_12),
        clauses=(
            Clause(
                "residual and loss, classes in turn",
                rf"e_n - \alpha_n \sim {f.LATE_RESIDUAL}\zeta_n",
                prove=part(
                    PROOFS["theorem5"], "time by (45)", "x exp(-x)", "residual over", "the residual never is zero"
                ),
                checks=(
                    Check(
                        "loss over training",
                        ALL,
                        checks.corollary1,
                        expected=("theory flow", "modified flow"),
                        claim=enclosed.corollary1,
                        says="the loss of (71)",
                    ),
                ),
            ),
            Clause(
                "(71), sigma",
                rf"-1 < \sigma,\quad |\sigma| \le {f.SIGMA_BOUND}",
                prove=part(
                    PROOFS["concentration"],
                    "(62): D grows",
                    "(62): largest step",
                    prose=("a sum of steps is at most its number times the largest",),
                ),
                checks=(
                    closed("|sigma| <= eta_Y |N_n - Nbar|", bounds.corollary1_sigma),
                    counted("sigma outside (71), features moving", coverage.corollary1),
                ),
            ),
            Clause(
                "steps to a residual of eps, classes in turn",
                rf"\|x_{{T+1}}-\alpha_n\| \le \epsilon \text{{ after }} {f.STEPS_NEEDED} \text{{ steps}}",
                prove=part(PROOFS["theorem5"], "norm", "sqrt(M (M - 1))", "exp(x) <= M/eps", "(45) with both bounds"),
                checks=(closed("residual after the sum of the two terms", bounds.corollary1_steps, tolerance=1e-9),),
            ),
        ),
    ),
    statement(
        "Remark 1",
        "Slow-down of the original dynamics",
        "For equal overlaps the original decoder gradient is said to lower the effective learning rate only.",
        r"w_n = (1-\rho)(M-1)h^*(N/K)\zeta_n\ \text{(43)}",
        corrected=rf"s = {f.SLOWDOWN}\ (t\to0),\quad s_\infty = {f.LATE_RATIO}\ (t\to\infty,\ \text{{features"
        r" frozen})",
        errata=(
            "The step sum_n zeta_n = 0 needs K = M. Attention in the full flow begins slower than in the modified"
            f" flow by s: at K = 10, M = 1000, rho = 0.011, s = {f.slowdown_at(1000, 10, 0.011):.4f}, not"
            f" {1 - 0.011:.3f}.",
            "Late, with frozen features, the full flow is the faster one: the ratio of speeds tends to s_inf > 1,"
            " which is 1/(1 - rho) at K = M, with errors of order 1/ln t.",
        ),
        assumptions=(FAST_DECODER, ZERO_DECODER, UNIFORM, EQUAL_OVERLAPS),
        clauses=(
            Clause(
                "early",
                rf"s = {f.SLOWDOWN},\quad \text{{and }} s\left(1 + {f.FIRST_CORRECTION}t\right) + O(t^2)",
                prove=part(
                    PROOFS["slowdown"],
                    "s,",
                    "s_1",
                    "residual at order t",
                    "V R^T",
                    "the part along f_n",
                    "speed at order",
                    "Remark 1 is",
                    "form with",
                    "s >",
                    "s is below",
                    "the factor weakens",
                    prose=("the flows have a Taylor series in t",),
                ),
                checks=(
                    Check(
                        "early ratio of full and modified flow",
                        ("full flow",),
                        checks.remark1_printed,
                        checks.remark1_corrected,
                        tolerance=0.02,
                        expected=("full flow",),
                        claim=enclosed.remark1_corrected,
                        claim_until=enclosed.EARLY,
                        says="the early slow-down",
                    ),
                    at_any_rates(
                        "early ratio against s",
                        "full flow",
                        checks.remark1_corrected,
                        enclosed.remark1_corrected,
                        claim_until=enclosed.EARLY,
                        tolerance=0.02,
                        suffices=(ZERO_DECODER, UNIFORM, EQUAL_OVERLAPS),
                    ),
                ),
            ),
            Clause(
                "late, with frozen features",
                rf"s_\infty = {f.LATE_RATIO}",
                prove=part(
                    PROOFS["slowdown"],
                    "late",
                    prose=(
                        "what is driven to one value and never stops arrives, so that exp(u) and exp(w) grow like t",
                    ),
                ),
            ),
        ),
    ),
)
