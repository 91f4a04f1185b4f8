r"""A question on each theorem of Scan and Snap for students, with its answer; formulas stand between dollar signs.

Numbers are those at what the pages' sliders start from: K = 10, M = 1000, rho = 0.05, eta_Y = 1, eta_Z = 0.5, t = 2000.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 1": (
        "Which of the two flows that train a decoder sends back the gradient of (9) at the very start, and what does "
        "the other one send?",
        "The modified flow does, up to terms that vanish with $t$. Of what attention sees of it, the part across "
        "$f_n$, the full flow sends only $s$ = <!--v questions_snap.theorem_1.s .3f-->0.027<!--/-->: next tokens that "
        "never occur, <!--v questions_snap.theorem_1 {unseen} of {m}-->990 of 1000<!--/--> here, take up most of it. "
        "Set $M = K$, and the two nearly agree.",
    ),
    "Theorem 1(a)": (
        "Take equal overlaps. For which overlaps between 0 and 1 is class $n$ not pushed away from the others?",
        r"For none: $\xi_n/\gamma = \frac{(K-1)\rho M(1+(M-1)\rho)}{(M-1)^2(1-\rho)(1+(K-1)\rho)}$, and every factor "
        "is positive. It takes unequal overlaps to fail, as in the example of the statement.",
    ),
    "Theorem 1(b)": (
        r"The printed bound on the second stage has $\ln(\eta_Yt/K)$, without $M$. With the constant "
        r"<!--v questions_snap.theorem_1b.constant .0f-->2<!--/-->, by what factor is $\gamma$ above it when that "
        r"stage begins?",
        r"By <!--v questions_snap.theorem_1b.factor .1f-->2.8<!--/-->: at $t$ = "
        r"<!--v questions_snap.theorem_1b.t .0f-->182<!--/--> the "
        r"speed $\gamma$ is <!--v questions_snap.theorem_1b.speed .2f-->0.90<!--/-->, and the printed bound "
        r"<!--v questions_snap.theorem_1b.printed .2f-->0.32<!--/-->. The factor grows with $M$, so that no constant "
        r"is enough "
        "for all vocabularies. With $M$ in the logarithm the same constant is.",
    ),
    "Theorem 2(a)": (
        r"Multiply the learning rate of attention by ten, to $\eta_Z = 5$. Does the logit of a distinct token grow ten "
        "times as far?",
        "No. In the theory flow it ends at "
        "<!--v questions_snap.theorem_2a {faster:.3f} in place of {end:.3f}-->0.069 in place of 0.040<!--/-->: the "
        "common token loses its overlap "
        "sooner, and with it goes the pull that makes distinct tokens gain. SGD with "
        "$T$ = <!--v scan_and_snap.lengths_page.rows.0.t-->128<!--/--> ends near the printed rate, at "
        "<!--v scan_and_snap.lengths_page.rows.0.distinct .3f-->0.063<!--/--> beside "
        "<!--v scan_and_snap.lengths_page.printed.distinct .3f-->0.069<!--/-->, and that is no evidence for it: the "
        "short sequences take it there. With $T = \\infty$ SGD ends at "
        "<!--v scan_and_snap.lengths_page.rows.3.distinct .4f-->0.0010<!--/-->, where the full flow has "
        "<!--v scan_and_snap.lengths_page.full.distinct .4f-->0.0011<!--/-->.",
    ),
    "Theorem 2(b)": (
        "SGD lowers the common token's logit by <!--v questions_snap.theorem_2b.sgd .2f-->0.12<!--/-->, and the full "
        "flow, the "
        "limit of small steps, by only <!--v questions_snap.theorem_2b.flow .3f-->0.036<!--/-->. What does the flow "
        "leave out?",
        "That sequences are finite. Those of SGD have <!--v questions_snap.theorem_2b.length-->128<!--/--> tokens, "
        "and the flow "
        "stands for infinitely long ones. It is "
        "the mean that shifts, and <!--v questions_snap.theorem_2b.mean ?not:also-->not<!--/--> noise: "
        "batches of "
        "<!--v questions_snap.theorem_2b.large-->1024<!--/--> sequences in place of "
        "<!--v questions_snap.theorem_2b.batch-->128<!--/--> end as far down. With "
        "sequences of <!--v questions_snap.long_sequences.length ,-->16,384<!--/--> tokens SGD ends within "
        "<!--v questions_snap.long_sequences.off .0%-->1%<!--/--> of the flow.",
    ),
    "Theorem 3": (
        r"Read off the growth $\chi$ of the theory flow at the end. Between which bounds does it lie, the printed or "
        "the corrected ones?",
        r"Between the <!--v questions_snap.theorem_3.corrected ?corrected:printed-->corrected<!--/--> ones: $\chi$ = "
        r"<!--v questions_snap.theorem_3.chi .3f-->1.083<!--/--> lies between "
        r"<!--v questions_snap.theorem_3 {low:.3f} and {high:.3f}-->1.080 and 1.194<!--/-->. The printed ones ask "
        "for at least <!--v questions_snap.theorem_3.printed .2f-->2.15<!--/-->, since their exponent is $K = 10$ "
        "times too large.",
    ),
    "Theorem 4": (
        "Before the first step no logit has moved. What does the printed form say of $B$ at $t = 0$, and what "
        "is missing?",
        r"It says $\frac14\ln C_0$ = <!--v questions_snap.theorem_4.start .2f-->0.92<!--/-->, more than the "
        r"<!--v questions_snap.theorem_4.end .2f-->0.88<!--/--> that the corrected form reaches at $t = 2000$. The "
        r"lower limit of the integral is missing: $B(t) - B(0)$ is meant.",
    ),
    "Theorem 4, branches": (
        r"By how much is each branch of $4\Gamma$ too large where the paper changes branches, at $t_0'$ and $t_0$?",
        r"By <!--v questions_snap.branches.early .1%-->18.5%<!--/--> at $t_0'$ and by "
        r"<!--v questions_snap.branches.late .1%-->23.8%<!--/--> at "
        r"$t_0$, for $M = 1000$. The error falls only like $1/\ln M$.",
    ),
    "Theorem 5": (
        "$Y$ has a row for every token. How many numbers does the theorem need to describe all of $Y$ after training?",
        "Besides the features and $M$, one for each class: how far $w_n$ has gone along its line. $Y = F(I-E')W$, and "
        r"row $n$ of $W$ is a multiple of the fixed vector $\zeta_n$.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}
