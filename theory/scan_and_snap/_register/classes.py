"""Statements on all classes together: Lemmas 13 to 17, Theorems 1 and 5, Corollary 1, Remark 1."""

from __future__ import annotations

from theory.scan_and_snap import bounds, coverage, foreseen, overlaps, visits
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    EQUAL_OVERLAPS,
    FAST_DECODER,
    LEMMA_12,
    LONG_SEQUENCES,
    NEUMANN,
    NO_POSITIONS,
    THEOREM_1,
    UNIFORM,
    WEAK,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import (
    ALL,
    FIRST_TIME,
    MODIFIED,
    PROOFS,
    PROVED_STAGES,
    STAGES,
    at_any_rates,
    closed,
    counted,
    drawn,
    flowing,
    simple,
    statement,
)
from theory.statements import Clause, FalseAsPrinted, Remark, Slip
from theory.symbolic import part
from theory.values import value

_EIGENVECTORS = "E has an orthonormal basis of eigenvectors, and an entry is at most the spectral norm"

_STAR, _LOWER, _WITHOUT_M, _SLOWDOWN = (
    value(f"scan_and_snap.{name}") for name in ("star", "lower_half", "without_m", "slowdown")
)

STATEMENTS = (
    statement(
        "Theorem 1",
        "Back-propagated gradient",
        "After t >> K^2 steps of batch size 1, the gradient at the features is gamma(t) times a combination of them.",
        r"g_n = \gamma\Big(\iota_nf_n - \sum_{n'\ne n}\beta_{nn'}f_{n'}\Big)\ \text{(9)}",
        errata=(
            Remark("It is about the modified gradient of Lemma 3; under the gradient of Lemma 1 see Remark 1."),
            Remark("A single beta_nn' can be negative: beta_13 for a chain of overlaps 1-2-3 and large M."),
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
            flowing("g_n = Y r_n against (9)", ALL, checks.theorem1, expected=MODIFIED, says="the gradient (9)"),
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
        f" fails just above it. Example of a failure: K = {_STAR['k']}, M = {_STAR['m']}, G_12 ="
        f" {simple(_STAR['weak'])}, G_23 = G_24 = {simple(_STAR['strong'])}, the others 0, |lambda_1| ="
        f" {_STAR['most']:.2f}. |lambda_i(E)| >= 6/sqrt(M) is not needed besides, and alone it is not enough: K ="
        f" {_LOWER['k']}, M = {_LOWER['m']}, G_12 = {_LOWER['first']:g}, G_13 = G_14 = {_LOWER['second']:g}, G_23 ="
        f" G_24 = {_LOWER['third']:.12g}, G_34 = {_LOWER['last']:g} has eigenvalues of modulus {_LOWER['least']:.4f}"
        f" and more, |lambda_1| = {_LOWER['most']:.2f} and xi_1 = {_LOWER['xi']:.3f} gamma.",
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
            closed("share of the setting's classes with xi_n <= 0", overlaps.theorem1a_here),
            closed(
                "stars and random overlaps with |lambda_1(E)| just below 1/sqrt(K - 2)", overlaps.theorem1a, suffices=()
            ),
        ),
    ),
    statement(
        "Theorem 1(b)",
        "Two stages of gamma",
        "Lemma 9, as the theorem repeats it.",
        STAGES % ("", r"\delta'"),
        predicts=foreseen.transition,
        corrected=PROVED_STAGES,
        errata=(
            Slip(
                f"gamma <= {f.late_gamma}, with M in the logarithm, as in Lemma 9 and (57). There the constant 2 serves"
                " all M.",
                stands="Both stages, and the order in t for any one M.",
                quoted="gamma(t) = O(K ln(eta_Y t/K)/(eta_Y t)) for t >= 2(1 + delta')K ln M/eta_Y.",
                setting="the beginning of this stage",
                found="the constant is at least {constants[0]:.1f} for M = {sizes[0]:,} and {constants[1]:.1f} for M ="
                " {sizes[1]:,}. It grows like ln M/ln ln M: no constant serves all M.",
                numbers=_WITHOUT_M,
            ),
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
        checks=(closed("second stage, one constant for all M", bounds.theorem1b_printed, bounds.theorem1b_corrected),),
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
            Slip(
                "-(1 + theta_n'), since beta_nn' is entry n' of -(I - E')(I + Theta) u_n.",
                stands="(93), and the bound on delta_3, which covers either sign.",
                quoted="q_0 ((1 + theta_n') + sum_{k != n} (1 + theta_k) E'_kn') in (88), in our copy.",
            ),
        ),
        assumptions=THEOREM_1,
        prove=part(PROOFS["gram"], "(86)", "(88)", "(90)", "(92)", "(93)", prose=(_EIGENVECTORS,)),
        checks=(closed("(88) for random theta", overlaps.signal_printed, overlaps.signal_corrected, tolerance=1e-8),),
    ),
    statement(
        "Lemma 13",
        "Entries of E",
        "No overlap is larger than the largest eigenvalue of E in modulus.",
        r"\max_{i,j}|E_{ij}| \le |\lambda_1|",
        prove=part(PROOFS["gram"], "Lemma 13", prose=(_EIGENVECTORS,)),
        checks=(closed("setting and 200 random overlaps", overlaps.lemma13, tolerance=1e-9),),
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
            closed("setting and 200 random overlaps", overlaps.lemma14, tolerance=1e-9),
            closed("200 random overlaps, any |lambda_1|", overlaps.lemma14_any, tolerance=1e-9, suffices=()),
        ),
    ),
    statement(
        "Lemma 15",
        "Size of E'",
        "E' is hardly larger than E; with lambda = |lambda_1| two classes attain the bound.",
        r"|\lambda_1| \le \lambda < 1:\quad \max_i|\lambda_i(E')| \le \frac{|\lambda_1|}{1-\lambda}",
        assumptions=(NEUMANN,),
        prove=part(PROOFS["gram"], "Lemma 15", prose=(_EIGENVECTORS,)),
        checks=(closed("setting and 200 random overlaps", overlaps.lemma15, tolerance=1e-9),),
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
            closed("setting and 200 random overlaps", overlaps.lemma16),
            closed("200 random overlaps, any |lambda_1|", overlaps.lemma16_any, suffices=()),
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
                checks=(closed("setting and 200 random overlaps", overlaps.lemma17, tolerance=1e-9),),
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
                checks=(closed("the sharper bound", overlaps.lemma17_sharp, tolerance=1e-9),),
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
            flowing(
                "Y against F (I - E') W, Theta = 0",
                ALL,
                checks.theorem5,
                expected=MODIFIED,
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
                    flowing("loss over training", ALL, checks.corollary1, expected=MODIFIED, says="the loss of (71)"),
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
                    closed("|sigma| <= eta_Y |N_n - Nbar|", visits.corollary1_sigma),
                    counted("sigma outside (71), features moving", coverage.corollary1),
                ),
            ),
            Clause(
                "steps to a residual of eps, classes in turn",
                rf"\|x_{{T+1}}-\alpha_n\| \le \epsilon \text{{ after }} {f.STEPS_NEEDED} \text{{ steps}}",
                prove=part(PROOFS["theorem5"], "norm", "sqrt(M (M - 1))", "exp(x) <= M/eps", "(45) with both bounds"),
                checks=(closed("residual after the sum of the two terms", visits.corollary1_steps, tolerance=1e-9),),
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
            FalseAsPrinted(
                "The sum over the K classes is zero for K = M only. At the start attention is slower by s ="
                f" {f.slowdown_factor}.",
                stands="For equal overlaps the full flow begins slower by one factor, and by 1 - rho where K = M.",
                quoted="w_n = (1 - rho)(M - 1) h*(N/K) zeta_n (43), from sum_n zeta_n = 0.",
                setting="K = {k}, M = {m:,}, rho = {rho:g}",
                found="the factor is {s:.4f}, where (43) has {printed:.3f}.",
                numbers=_SLOWDOWN,
            ),
            Remark(
                "Late, with frozen features, the full flow is the faster one: the ratio of speeds tends to s_inf > 1,"
                " which is 1/(1 - rho) at K = M, with errors of order 1/ln t."
            ),
        ),
        assumptions=(FAST_DECODER, ZERO_DECODER, UNIFORM, EQUAL_OVERLAPS),
        predicts=foreseen.slowdown,
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
                    flowing(
                        "early ratio of full and modified flow",
                        ("full flow",),
                        checks.remark1_printed,
                        checks.remark1_corrected,
                        tolerance=0.02,
                        expected=("full flow",),
                        claim_until=FIRST_TIME,
                        says="the early slow-down",
                    ),
                    at_any_rates(
                        "early ratio against s",
                        checks.remark1_corrected,
                        level="full flow",
                        claim_until=FIRST_TIME,
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

# <!-- numbers
# typed: 3 4 (condition of a theorem or of a clause that is proved)
# typed: 6 (number of the paper's assumptions)
# typed: 1000 (a claim of theory.scan_and_snap.proofs.theorem1)
# typed: -2 (numbers of classes)
# typed: 2 (exponent, base or fraction of a formula)
# typed: 200 (size in the code of a check, which its name tells)
# -->
