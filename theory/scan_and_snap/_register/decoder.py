"""Statements on the growth of the decoder: Lemmas 1 to 3 and 5 to 9, Remarks 2 and 3."""

from __future__ import annotations

from theory.scan_and_snap import bounds, coverage
from theory.scan_and_snap import measures as checks
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    BOUNDED_RATE,
    DECODER,
    FAST_DECODER,
    FOUR_TOKENS,
    LARGE_VOCABULARY,
    LONG_SEQUENCES,
    NO_POSITIONS,
    UNIFORM,
    WEAK,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import (
    PROOFS,
    STAGES,
    both,
    closed,
    drawn,
    flowing,
    statement,
)
from theory.statements import Clause, FalseAsPrinted, Remark, Slip
from theory.symbolic import part
from theory.values import value

_LAG, _CONSTANT, _CROSSING = (value(f"scan_and_snap.{name}") for name in ("lag", "late_constant", "first_crossing"))
_FLOWS_LAG = ", ".join(f"{lag:.2f}" for lag in _LAG["lags"]) + " at s = " + ", ".join(f"10^{p}" for p in _LAG["powers"])

# Expressions of `remark2` on the lag that one step adds.
_INCREMENT = ("step of the margin", "increment", "the room", "its slope", "its second", "room", "the lag grows")

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
            flowing(
                "row sums",
                ("modified flow", "full flow", "SGD"),
                checks.zero_sums,
                tolerance=1e-8,
                expected=("modified flow", "full flow", "SGD"),
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
            Slip(
                "E' = I - (I + E)^{-1}, as in (28), Lemma 14 and the proof.",
                stands="The lemma and its proof.",
                quoted="E' := (I + E)^{-1} - I, in Appendix D.1's list of notations.",
            ),
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
            flowing(
                "closed form against the flow",
                ("theory flow",),
                checks.lemma6_flow,
                tolerance=1e-6,
                assumptions=(UNIFORM,),
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
            FalseAsPrinted(
                f"The lag h^{{-1}}(h*(s)) - s grows at every step, like {f.lag} in the end, for every M >= 2 and eta_Y"
                " > 0: it has no bound.",
                stands="h(s) <= h*(s) at all s. The lag is small beside s, and the two come together (Lemma 7).",
                quoted="if eta_Y = O(1) there is c = O(ln M) with h(s) <= h*(s) <= h(s + c) for all s > s_1.",
                setting="M = {m:,}, eta_Y = {eta_y:g}",
                found=f"a c must be at least {_FLOWS_LAG}, and so on.",
                numbers=_LAG,
            ),
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
                "growth of the lag over late steps",
                bounds.remark2_printed,
                bounds.remark2_corrected,
                tolerance=0.05,
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
        errata=(
            Remark(
                "The constant 2 serves from M = 100 on. With the constant 1 the order would be met from M of about"
                f" 2^{value('scan_and_snap.printed_order.log2'):.0f} on.",
                stands="Both crossings, omega_1 and c', and the order of omega_0.",
                quoted="omega_0 <~ 1/(M^0.99 ln M) for M >> 100.",
                setting="M = {m}",
                found="omega_0 is {ratio:.2f} times that.",
                numbers=_CROSSING,
            ),
            Remark(
                f"For M = {both(value('scan_and_snap.no_crossings.sizes'))}, far from the paper's M >> 100, the two do"
                " not cross."
            ),
        ),
        sharper=f"omega_0 is {f.lower_excess} up to a factor that tends to 1; the printed order, with the constant 1,"
        f" is above that from M of about 2^{value('scan_and_snap.printed_order.log2'):.0f} on.",
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
        f" the least constant for all M is between {_CONSTANT['above']:.4f} and {_CONSTANT['below']:.4f}, in balls; M ="
        f" {_CONSTANT['m'] / 1e8:.1f}e8 needs the former.)",
        errata=(
            Remark(
                "exp(M h) <= min(M - 1, (M - 1) M h) is about times after the first crossing, which Remark 3 sets"
                " aside, and M >= 5. The bounds on h and gamma hold before it, too."
            ),
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
)

# <!-- numbers
# typed: 2 5 (number of a statement, figure, section or finding)
# typed: 4 (condition of a theorem or of a clause that is proved)
# typed: 1.2 1e15 (size in the code of a check, which its name tells)
# typed: 100 (constants and a size of the check omega_0)
# -->
