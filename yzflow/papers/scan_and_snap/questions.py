r"""A question on each theorem of Scan and Snap for students, with its answer; formulas stand between dollar signs.

Numbers are those at what the pages' sliders start from: K = 10, M = 1000, rho = 0.05, eta_Y = 1, eta_Z = 0.5, t = 2000.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 1": (
        "Which of the two flows that train a decoder sends back the gradient of (9) at the very start, and what does "
        "the other one send?",
        "The modified flow does, up to terms that vanish with $t$. Of what attention sees of it, the part across "
        "$f_n$, the full flow sends only $s$ = 0.027<!--=s-->: next tokens that "
        "never occur, 990<!--=unseen--> of 1000<!--=m--> here, take up most of it. "
        "Set $M = K$, and the two nearly agree.",
    ),
    "Theorem 1(a)": (
        "Take equal overlaps. For which overlaps between 0 and 1 is class $n$ not pushed away from the others?",
        r"For none: $\xi_n/\gamma = \frac{(K-1)\rho M(1+(M-1)\rho)}{(M-1)^2(1-\rho)(1+(K-1)\rho)}$, and every factor "
        "is positive. It takes unequal overlaps to fail, as in the example of the statement.",
    ),
    "Theorem 1(b)": (
        r"The printed bound on the second stage has $\ln(\eta_Yt/K)$, without $M$. With the constant "
        r"2<!--=constant-->, by what factor is $\gamma$ above it when that "
        r"stage begins?",
        r"By 2.8<!--=factor-->: at $t$ = "
        r"182<!--=theorem_1b.t--> the "
        r"speed $\gamma$ is 0.90<!--=speed-->, and the printed bound "
        r"0.32<!--=theorem_1b.printed-->. The factor grows with $M$, so that no constant "
        r"is enough "
        "for all vocabularies. With $M$ in the logarithm the same constant is.",
    ),
    "Theorem 2(a)": (
        r"Multiply the learning rate of attention by ten, to $\eta_Z = 5$. Does the logit of a distinct token grow ten "
        "times as far?",
        "No. In the theory flow it ends at "
        "0.069<!--=faster--> in place of 0.040<!--=theorem_2a.end-->: the "
        "common token loses its overlap "
        "sooner, and with it goes the pull that makes distinct tokens gain. SGD with "
        "$T$ = 128<!--=t0--> ends near the printed rate, at "
        "0.063<!--=distinct0--> beside "
        "0.069<!--=printed.distinct-->, and that is no evidence for it: the "
        "short sequences take it there. With $T = \\infty$ SGD ends at "
        "0.0010<!--=distinct3-->, where the full flow has "
        "0.0011<!--=full.distinct-->.",
    ),
    "Theorem 2(b)": (
        "SGD lowers the common token's logit by 0.12<!--=sgd-->, and the full "
        "flow, the "
        "limit of small steps, by only 0.036<!--=flow-->. What does the flow "
        "leave out?",
        "That sequences are finite. Those of SGD have 128<!--=theorem_2b.length--> tokens, "
        "and the flow "
        "stands for infinitely long ones. It is "
        "the mean that shifts, and not noise: "
        "batches of "
        "1024<!--=large--> sequences in place of "
        "128<!--=batch--> end as far down. With "
        "sequences of 16,384<!--=long_sequences.length--> tokens SGD ends within "
        "1%<!--=off--> of the flow.",
    ),
    "Theorem 3": (
        r"Read off the growth $\chi$ of the theory flow at the end. Between which bounds does it lie, the printed or "
        "the corrected ones?",
        r"Between the corrected ones: $\chi$ = "
        r"1.083<!--=chi--> lies between "
        r"1.080<!--=theorem_3.low--> and 1.194<!--=theorem_3.high-->. The printed ones ask "
        "for at least 2.15<!--=theorem_3.printed-->, since their exponent is $K = 10$ "
        "times too large.",
    ),
    "Theorem 4": (
        "Before the first step no logit has moved. What does the printed form say of $B$ at $t = 0$, and what "
        "is missing?",
        r"It says $\frac14\ln C_0$ = 0.92<!--=start-->, more than the "
        r"0.88<!--=theorem_4.end--> that the corrected form reaches at $t = 2000$. The "
        r"lower limit of the integral is missing: $B(t) - B(0)$ is meant.",
    ),
    "Theorem 4, branches": (
        r"By how much is each branch of $4\Gamma$ too large where the paper changes branches, at $t_0'$ and $t_0$?",
        r"By 18.5%<!--=early--> at $t_0'$ and by "
        r"23.8%<!--=late--> at "
        r"$t_0$, for $M = 1000$. The error falls only like $1/\ln M$.",
    ),
    "Theorem 5": (
        "$Y$ has a row for every token. How many numbers does the theorem need to describe all of $Y$ after training?",
        "Besides the features and $M$, one for each class: how far $w_n$ has gone along its line. $Y = F(I-E')W$, and "
        r"row $n$ of $W$ is a multiple of the fixed vector $\zeta_n$.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}

# <!-- numbers
# s: questions_snap.theorem_1.s .3f
# unseen: questions_snap.theorem_1.unseen
# m: questions_snap.theorem_1.m
# constant: questions_snap.theorem_1b.constant .0f
# factor: questions_snap.theorem_1b.factor .1f
# theorem_1b.t: questions_snap.theorem_1b.t .0f
# speed: questions_snap.theorem_1b.speed .2f
# theorem_1b.printed: questions_snap.theorem_1b.printed .2f
# faster: questions_snap.theorem_2a.faster .3f
# theorem_2a.end: questions_snap.theorem_2a.end .3f
# t0: scan_and_snap.lengths_page.rows.0.t
# distinct0: scan_and_snap.lengths_page.rows.0.distinct .3f
# printed.distinct: scan_and_snap.lengths_page.printed.distinct .3f
# distinct3: scan_and_snap.lengths_page.rows.3.distinct .4f
# full.distinct: scan_and_snap.lengths_page.full.distinct .4f
# sgd: questions_snap.theorem_2b.sgd .2f
# flow: questions_snap.theorem_2b.flow .3f
# theorem_2b.length: questions_snap.theorem_2b.length
# large: questions_snap.theorem_2b.large
# batch: questions_snap.theorem_2b.batch
# long_sequences.length: questions_snap.long_sequences.length ,
# off: questions_snap.long_sequences.off .0%
# chi: questions_snap.theorem_3.chi .3f
# theorem_3.low: questions_snap.theorem_3.low .3f
# theorem_3.high: questions_snap.theorem_3.high .3f
# theorem_3.printed: questions_snap.theorem_3.printed .2f
# start: questions_snap.theorem_4.start .2f
# theorem_4.end: questions_snap.theorem_4.end .2f
# early: questions_snap.branches.early .1%
# late: questions_snap.branches.late .1%
# assert: questions_snap.theorem_2b.mean: and not noise
# assert: questions_snap.theorem_3.corrected: Between the corrected ones
# -->
