"""Scan and Snap: Tian, Wang, Chen, Du, NeurIPS 2023, arXiv 2305.16380."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from theory.scan_and_snap import bounds, centred, coverage, enclosed, residual, tokens
from theory.scan_and_snap import measures as checks
from theory.statements import Assumption, Check, Enclosing, Statement
from theory.symbolic import derivations

_PAPER = "Scan and Snap"
_FLOWS = ("theory flow", "modified flow", "full flow")
_ALL = (*_FLOWS, "SGD")
# The algorithm that the theorems are about: the modified decoder, batch size 1, T -> infinity.
_DRAWN = "modified SGD"
LEVELS = ("closed form", *_ALL, _DRAWN)
ENCLOSING = Enclosing(_FLOWS, enclosed.enclose)
_PROOFS = derivations("scan_and_snap")


def _weak(setting: Any) -> tokens.WeakCorrelation:
    return tokens.weak_correlation(setting.classes.overlap(), vocab_size=setting.classes.vocab_size)


_WEAK = (
    Assumption("Assumption 2, |lambda_1(E)| < 1/K", lambda setting: _weak(setting).upper_margin),
    Assumption("Assumption 2, |lambda_i(E)| >= 6/sqrt(M)", lambda setting: _weak(setting).lower_margin),
)
# The paper says that the decoder learns much faster; a hundred times is where the modified flow meets the theory to 5%.
_FAST_DECODER = Assumption("Assumption 1(c), eta_Y >= 100 eta_Z", lambda setting: setting.eta_y / setting.eta_z / 100)
# Theorem 4's xi has rho where the exact one has rho'' + 1/(M (1 + (K - 1) rho)): see theory.attention.speed_constant.
_SMALL_OVERLAP = (
    Assumption("K rho <= 0.1", lambda setting: 0.1 / (setting.classes.n_classes * setting.overlap)),
    Assumption("M rho >= 8", lambda setting: setting.classes.vocab_size * setting.overlap / 8),
)
_ONE_COMMON = Assumption("one common token", lambda setting: 1 / max(len(setting.classes.common_tokens), 1))
_ONE_QUERY = Assumption("one query", lambda setting: 1 / len(setting.classes.query_tokens))
_EQUAL_OVERLAPS = Assumption("equal overlaps", lambda setting: tokens.alike(_overlaps(setting)[:, None]))
# Corollary 2's further conditions; its last one, Z(0) = 0, holds in every flow and run of the audit.
_SYMMETRIC = (
    Assumption(
        "distinct tokens of equal probabilities in all classes",
        lambda setting: tokens.alike(tokens.distinct_probabilities(setting.classes)),
    ),
    Assumption(
        "common tokens that have one probability in all classes",
        lambda setting: tokens.alike(tokens.common_probabilities(setting.classes)),
    ),
)
_COMMON_FALL = Assumption(
    "common tokens fall, by Theorem 2(b) or Corollary 2",
    lambda setting: max(_ONE_COMMON.margin(setting), min(one.margin(setting) for one in (_ONE_QUERY, *_SYMMETRIC))),
)


def _overlaps(setting: Any) -> np.ndarray:
    overlap = setting.classes.overlap()
    return overlap[~np.eye(len(overlap), dtype=bool)]


_LARGE_VOCABULARY = Assumption("M >= 100", lambda setting: setting.classes.vocab_size / 100)
_FOUR_TOKENS = Assumption("M >= 4", lambda setting: setting.classes.vocab_size / 4)


def _statement(number: str, title: str, text: str, printed: str, *, sharper: str = "", **more) -> Statement:
    """A statement of this paper; ``printed`` and ``corrected`` are LaTeX, without dollar signs.

    ``sharper`` is what holds beyond the printed form, which is no erratum.
    """
    said = f"{text} Sharper than printed: {sharper}" if sharper else text
    return Statement(_PAPER, number, title, said, printed, **more)


def _closed(name: str, printed, corrected=None, *, tolerance: float = 0.0) -> Check:
    """A check that needs no simulation, and should hold wherever the assumptions do."""
    return Check(name, ("closed form",), printed, corrected, tolerance, ("closed form",))


def _drawn(name: str, measure, *, tolerance: float = 0.0) -> Check:
    """A check on many runs of `_DRAWN`, whose number of seeds is a part of its name."""
    return Check(f"{name}, {coverage.SEEDS} seeds", (_DRAWN,), measure, tolerance=tolerance, expected=(_DRAWN,))


def _coverage(name: str, measure) -> Check:
    """The same, where runs outside a bound are counted."""
    return _drawn(f"{name}, delta = {coverage.DELTA}, false alarms below {coverage.FALSE_ALARM:.0e}", measure)


# Formulas that come back: the two stages of gamma, and Theorem 2's rates.
_EARLY = r"\gamma(t) = O\!\left(\frac{\eta_Y t}{K}\right) \text{ for } t \le \frac{K\ln M}{\eta_Y}"
_STAGES = (
    _EARLY + r",\quad \gamma(t) = O\!\left(\frac{K\ln(%s\eta_Y t/K)}{\eta_Y t}\right) \text{ for } t \ge"
    r" \frac{2(1+%s)K\ln M}{\eta_Y}"
)
_PROVED_STAGES = (
    r"\gamma \le \frac{\eta_Y t}{K} \text{ for all } t,\quad \gamma \le"
    r" 2\left(\tfrac{M-1}{M}\right)^2\frac{K\ln(M\eta_Y t/K)}{\eta_Y t} \text{ for } t \ge \frac{2(1+\omega_1)K\ln"
    r" M}{\eta_Y}"
)

STATEMENTS = (
    _statement(
        "Lemma 1",
        "Gradient of the 1-layer transformer",
        "One step on one sample moves Y along the feature, and the query's row of Z along what comes back, projected.",
        r"\dot Y = \eta_Y\,\mathrm{LN}(X^Tb_T)(x_{T+1}-\alpha)^T,\quad \dot Z = \eta_Z\,x_T(x_{T+1}-\alpha)^T Y^T"
        r" \frac{P^\perp_{X^Tb_T}}{\|X^Tb_T\|_2} X^T\mathrm{diag}(b_T)X\ \text{(3)}",
        prove=_PROOFS["lemma1"],
    ),
    _statement(
        "Lemma 1, zero sums",
        "Conserved row sums",
        "Every row of Y and of Z keeps its sum, whatever the data; the paper says both below (3).",
        r"\dot Y 1 = 0,\quad \dot Z 1 = 0",
        prove=_PROOFS["invariants"],
        checks=(
            Check(
                "row sums",
                ("modified flow", "full flow", "SGD"),
                checks.zero_sums,
                tolerance=1e-8,
                expected=("modified flow", "full flow", "SGD"),
                claim=enclosed.zero_sums,
            ),
        ),
    ),
    _statement(
        "Lemma 2",
        "Long sequences",
        "As T grows, attention tends to that of a bag that holds P(l|n) in place of counts.",
        r"X^Tb_T \to c_n,\quad X^T\mathrm{diag}(b_T)X \to \mathrm{diag}(c_n),\quad c_{l|n} ="
        r" \frac{P(l|n)e^{z_{ml}}}{\sum_{l'}P(l'|n)e^{z_{ml'}}}\ \text{(5, 6)}",
        prove=_PROOFS["lemma2"],
    ),
    _statement(
        "Lemma 3",
        "Modified decoder gradient",
        "With the modified decoder gradient a step of class n moves the logits of class n only.",
        r"\dot w_j = \eta_Y 1[j=n](e_n-\alpha_n)\ \text{(8)},\quad \dot Y = \eta_Y(f_n -"
        r" FE'e_n)(e_n-\alpha_n)^T\ \text{(26)}",
        assumptions=_WEAK,
        errata=(
            "Appendix D.1's list of notations prints E' := (I + E)^{-1} - I; (28), Lemma 14 and the proof have the"
            " opposite sign, E' = I - (I + E)^{-1}.",
        ),
        prove=_PROOFS["lemma3"],
    ),
    _statement(
        "Lemma 5",
        "Decoder after s samples of a class",
        "Row n of W stays on the line of zeta_n, and a scalar recursion moves it.",
        r"w_n(s) = (M-1)h^*(s)\zeta_n,\quad e_n-\alpha_n = \frac{M-1}{M-1+e^{Mh^*(s)}}\zeta_n,\quad h^*(s) = h^*(s-1)"
        r" + \frac{\eta_Y}{M-1+e^{Mh^*(s-1)}}\ \text{(31, 32, 33)}",
        prove=_PROOFS["lemma5"],
        checks=(_drawn("w_n against h*(N_n), features still", coverage.lemma5, tolerance=1e-9),),
    ),
    _statement(
        "Lemma 6",
        "Continuous decoder growth",
        "The continuous form of the recursion has an implicit solution.",
        r"\dot h = \frac{\eta_Y}{M-1+e^{Mh}},\ h(0)=0 \quad\Rightarrow\quad e^{Mh} + (M-1)Mh = M\eta_Y t +"
        r" 1\ \text{(44, 45)}",
        prove=_PROOFS["lemma6"],
        checks=(
            _closed("(45) by the closed form", bounds.lemma6, tolerance=1e-12),
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
    _statement(
        "Lemma 7",
        "Discrete and continuous growth",
        "h* stays above h by at most 2 eta_Y / M, lags behind by a constant time up to ln(M)/eta_Y, and the gap"
        " vanishes.",
        r"\text{(a) } 0 \le h^*(s) - h(s) \le \frac{2\eta_Y}{M};\ \text{for } s \le \frac{\ln M}{\eta_Y}:\ h(s+c) \ge"
        r" h^*(s) \ge h(s),\ c = \Theta(1).\quad \text{(b) } h^* - h \to 0",
        prove=_PROOFS["lemma7"],
        sharper="half the bound holds, for every eta_Y > 0 (theory.decoder.h_steps), and c = 1/2 is enough, for every"
        " M >= 2 and eta_Y > 0 (proved with Remark 2).",
        checks=(
            _closed("bound over the steps", bounds.lemma7),
            _closed("half the bound", bounds.lemma7_half),
            _closed("second clause of (a), c = 1/2", bounds.lemma7_lag),
        ),
    ),
    _statement(
        "Remark 2",
        "Time by which the steps run ahead",
        "After the first stage, the flow is said to need only a constant time c more to reach what the steps have"
        " reached.",
        r"\eta_Y = O(1):\quad h(s) \le h^*(s) \le h(s+c) \text{ for all } s > s_1,\ c = O(\ln M)",
        corrected=r"h^{-1}(h^*(s)) - s \sim \tfrac12\ln(\eta_Y s),\ \text{unbounded}",
        errata=(
            "False: the lag h^{-1}(h*(s)) - s grows at every step and has no bound, for every M >= 2 and eta_Y > 0. M"
            " = 20, eta_Y = 0.9: 3.44, 4.60, 5.75, 6.90 at s = 10^3, 10^4, 10^5, 10^6.",
        ),
        prove=_PROOFS["remark2"],
        checks=(
            _closed(
                "growth of the lag, s = 1e3 to 1e5", bounds.remark2_printed, bounds.remark2_corrected, tolerance=0.05
            ),
        ),
    ),
    _statement(
        "Lemma 8",
        "Where the two stages of h meet",
        "exp(M h) and (M - 1) M h cross twice; between the crossings exp(M h) is the smaller one.",
        r"e^{Mh} \le (M-1)Mh \text{ for } h \in J_1 = \left[M^{-(2-\omega_0)},\ \tfrac{(1+\omega_1)\ln"
        r" M}{M}\right],\ \text{and} > \text{outside};\quad \omega_1 = \Theta\!\left(\tfrac{\ln\ln M}{\ln"
        r" M}\right),\ \omega_0 \lesssim \tfrac{1}{M^{0.99}\ln M},\ M^{\omega_1} = c'\ln M,\ c' \in (0.5, 2)",
        assumptions=(_FOUR_TOKENS,),
        errata=("For M = 2 and 3 the two never cross: it needs M >= 4, which the paper's M >> 100 includes.",),
        prove=_PROOFS["lemma8_9"],
        checks=(_closed("both crossings, omega_0, omega_1 and c'", bounds.lemma8),),
    ),
    _statement(
        "Remark 3",
        "One step is past the first crossing",
        "For the learning rates that the paper has in mind, only the upper crossing matters.",
        r"M \gg 100,\ 1 > \eta_Y \gg M^{-0.99}:\quad h(1) > M^{-(2-\omega_0)}",
        assumptions=(_LARGE_VOCABULARY,),
        prove=_PROOFS["lemma8_9"],
        checks=(_closed("eta_Y from 1.2 M^-0.99 to 1", bounds.remark3),),
    ),
    _statement(
        "Lemma 9",
        "Two stages of gamma",
        "gamma grows at most linearly up to t0' and falls like ln(t)/t from the upper crossing on.",
        _STAGES % ("M", r"\omega_1"),
        assumptions=(_FOUR_TOKENS,),
        sharper="gamma <= eta_Y t/K at all times, and gamma <= 2 ((M - 1)/M)^2 K ln(M eta_Y t/K)/(eta_Y t) in the"
        " second stage, where 2 is the least constant for all M. (From t >= 2 K ln M/eta_Y on, without omega_1, the"
        " least constant for all M is between 2.1244 and 2.1246, in balls; M = 1.6e8 needs the former.)",
        errata=(
            "The lemma also has exp(M h) <= min(M - 1, (M - 1) M h) for t <= K ln M/eta_Y, which is not true at the"
            " very start, before the first crossing (Remark 3 sets it aside), and needs M >= 5; its bounds on h and"
            " gamma do not suffer.",
        ),
        prove=_PROOFS["lemma8_9"],
        checks=(_closed("both stages, constants 1 and 2", bounds.gamma_stages),),
    ),
    _statement(
        "Lemma 10",
        "Visits of a class",
        "The number of visits of a class in N steps is close to its mean.",
        r"\left|N_n - \lceil N P(n)\rceil\right| \le \sqrt{\tfrac N2\ln\tfrac2\delta} + 1 <"
        r" \sqrt{N\ln\tfrac2\delta}\ \text{ with probability} \ge 1-\delta\ \text{(58)}",
        corrected=r"\text{the second } < \text{ for } N\ln\tfrac2\delta > 6 + 4\sqrt2 = 11.66 \text{ only}",
        errata=(
            "The second < needs N ln(2/delta) > 11.66: at delta = 0.05 it fails for N = 1, 2, 3 (by 23% at N = 1).",
        ),
        prove=_PROOFS["concentration"],
        checks=(
            _closed("probability outside, exactly", bounds.lemma10),
            _closed("second inequality", bounds.lemma10_printed, bounds.lemma10_corrected),
            _coverage("visits outside (58)", coverage.lemma10),
        ),
    ),
    _statement(
        "Remark 4",
        "Visits, uniform classes",
        "With K equally likely classes, N_n is about N/K up to the order of sqrt(N).",
        r"|N_n - \bar N| \lesssim \Delta \ll \bar N,\quad \Delta ="
        r" \left\lceil\sqrt{N\ln\tfrac1\delta}\right\rceil\ \text{(60)}",
        sharper="a visit has the variance (1 - 1/K)/K, so that the deviation is of the order sqrt(N/K) (Bernstein's"
        " inequality, proved with Lemma 12), less by a factor of order sqrt(K).",
        prove=_PROOFS["concentration"],
    ),
    _statement(
        "Lemma 11",
        "Growth and residual under sampling",
        "What a class has learned after N_n visits, against its mean number of visits; G(s) = 1/(M - 1 + exp(M h(s))).",
        r"|h(N_n)-h(\bar N)| \lesssim h(\bar N)\frac{\Delta}{\bar N}\ \text{(61)},\quad |G(N_n)-G(\bar N)| \lesssim"
        r" G(\bar N)\sigma',\ \sigma' \le \frac{\eta_Y\Delta}{3} \ll \ln M\ \text{(62)}",
        corrected=r"\sigma' \le \eta_Y\Delta;\quad |\ln G(N_n) - \ln G(\bar N)| \le \frac{M\eta_Y\Delta}{4(M-1)}",
        errata=(
            "sigma' <= eta_Y Delta/3 holds for N_n > Nbar and M >= 4. For N_n = Nbar - Delta it fails from eta_Y"
            " Delta = 2.5 on (large M, some Nbar): M = 1000, N = 100, K = 4, eta_Y = 1/2, delta = 0.05 have Nbar ="
            " 25, Delta = 18 and sigma' = 4.02 against 3.",
            "For M = 2 and 3 it fails on both sides already for small Delta, where sigma' is up to eta_Y Delta M/(4"
            " (M - 1)).",
            "Always true, and with the best constant for large Delta: sigma' <= eta_Y Delta. (61) holds with the"
            " constant 1.",
        ),
        prove=_PROOFS["concentration"],
        checks=(
            _closed("(61) with the constant 1", bounds.lemma11_growth),
            _closed("(62)", bounds.lemma11_printed, bounds.lemma11_corrected),
            _coverage("runs outside (61)", coverage.lemma11),
        ),
    ),
    _statement(
        "Lemma 12",
        "All classes together",
        "With classes drawn uniformly, every row of W is close to what the mean number of visits gives.",
        r"w_n = (1+\theta_n)(M-1)h(\bar N)\zeta_n,\quad |\theta_n| \lesssim \frac{K}{\sqrt N}\sqrt{\ln\tfrac K\delta}"
        r" \text{ for all } n,\ N \gg K^2",
        sharper="the constant 1 is enough, and the order is loose by sqrt(K): with Bernstein's inequality in the"
        " place of Hoeffding's, |theta_n| <= sqrt(2 K ln(2K/delta)/N) + 2 K ln(2K/delta)/(3 N).",
        prove=_PROOFS["concentration"],
        checks=(
            _closed("exact probability, constant 1", bounds.lemma12),
            _closed("exact probability, Bernstein's bound", bounds.lemma12_sharp),
            _coverage("runs outside, features still, constant 1", coverage.lemma12),
        ),
    ),
    _statement(
        "Theorem 1",
        "Back-propagated gradient",
        "After t >> K^2 steps of batch size 1, the gradient at the features is gamma(t) times a combination of them.",
        r"g_n = \gamma\Big(\iota_nf_n - \sum_{n'\ne n}\beta_{nn'}f_{n'}\Big)\ \text{(9)}",
        assumptions=(*_WEAK, _FAST_DECODER),
        errata=(
            "Holds for the modified gradient of Lemma 3; under the gradient of Lemma 1 see Remark 1.",
            "A single beta_nn' can be negative: beta_13 for a chain of overlaps 1-2-3 and large M.",
        ),
        prove=_PROOFS["theorem1"],
        checks=(
            Check(
                "g_n = Y r_n against (9)",
                _ALL,
                checks.theorem1,
                expected=("theory flow", "modified flow"),
                claim=enclosed.theorem1,
            ),
            _drawn("g_n against (9) with each run's theta and sigma", coverage.theorem1_signal, tolerance=0.05),
        ),
    ),
    _statement(
        "Theorem 1(a)",
        "Every class is pushed away from the others",
        "The combination of Theorem 1 has a positive weight in sum, whatever M, for weakly correlated features.",
        r"\xi_n = \gamma\sum_{n'\ne n}\beta_{nn'}f_n^Tf_{n'} > 0 \text{ for } |\lambda_1(E)| <"
        r" \tfrac1K,\ |\lambda_i(E)| \ge \tfrac{6}{\sqrt M}",
        sharper="|lambda_1(E)| < 1/sqrt(K - 2) is enough, for every M and K, wherever class n overlaps with another"
        " (for K <= 3, linear independence of the features), and no larger bound is for K >= 4: a star of overlaps"
        " fails just above it. Example of a failure: K = 4, M = 10, G_12 = 1/1000, G_23 = G_24 = 3/5, the others 0,"
        " |lambda_1| = 0.85. |lambda_i(E)| >= 6/sqrt(M) is not needed besides, and alone it is not enough: K = 4, M"
        " = 1000, G_12 = 0.35184, G_13 = G_14 = 0.28356, G_23 = G_24 = 0.806225734519, G_34 = 0.3 has eigenvalues of"
        " modulus 0.1909 and more, |lambda_1| = 1.49 and xi_1 = -0.028 gamma.",
        prove=_PROOFS["theorem1"],
        checks=(_closed("stars and random overlaps with |lambda_1(E)| just below 1/sqrt(K - 2)", bounds.theorem1a),),
    ),
    _statement(
        "Theorem 1(b)",
        "Two stages of gamma",
        "Lemma 9, as the theorem repeats it.",
        _STAGES % ("", r"\delta'"),
        corrected=_PROVED_STAGES,
        assumptions=(_FOUR_TOKENS, _LARGE_VOCABULARY),
        errata=(
            "The logarithm lacks M, which Lemma 9 and (57) have: as printed the constant grows with M, like ln M/ln ln"
            " M"
            " at the beginning of the second stage (it is at least 5.6 at M = 1000 and 7.9 at M = 100,000, where 2 is"
            " enough with M).",
        ),
        prove=_PROOFS["lemma8_9"],
        checks=(_closed("second stage, constant 2", bounds.theorem1b_printed, bounds.theorem1b_corrected),),
    ),
    _statement(
        "Equations 86 to 93",
        "beta and xi with unequal visits",
        "The coefficients of Theorem 1 through E' and theta, and the lower bound of xi_n; (86), (90), (92), (93) are"
        " right.",
        r"\beta_{nn'} = (1+\sigma)\Big[q_1(1+\theta_n)E'_{nn'} + q_0\Big((1+\theta_{n'}) + \sum_{k\ne"
        r" n}(1+\theta_k)E'_{kn'}\Big)\Big]\ \text{(88)}",
        corrected=r"\beta_{nn'} = (1+\sigma)\Big[q_1(1+\theta_n)E'_{nn'} + q_0\Big(-(1+\theta_{n'}) + \sum_{k\ne n}"
        r"(1+\theta_k)E'_{kn'}\Big)\Big]",
        errata=(
            "(88): the first term in the bracket of q_0 has the sign minus, since beta_nn' = -((I - E')(I + Theta)"
            " u_n)_n'. In our copy it is a plus; the bound on delta_3 covers either.",
        ),
        prove=_PROOFS["gram"],
        checks=(_closed("(88) for random theta", bounds.signal_printed, bounds.signal_corrected, tolerance=1e-8),),
    ),
    _statement(
        "Lemma 13",
        "Entries of E",
        "No overlap is larger than the largest eigenvalue of E in modulus.",
        r"\max_{i,j}|E_{ij}| \le |\lambda_1|",
        prove=_PROOFS["gram"],
        checks=(_closed("setting and 200 random overlaps", bounds.lemma13, tolerance=1e-9),),
    ),
    _statement(
        "Lemma 14",
        "Eigenvalues of E'",
        "E' has the eigenvectors of E.",
        r"|\lambda_1| < 1:\quad (I+E)^{-1} = I - E',\quad \lambda'_i = \frac{\lambda_i}{1+\lambda_i}",
        sharper="linearly independent features are enough, whatever |lambda_1|.",
        prove=_PROOFS["gram"],
        checks=(_closed("setting and 200 random overlaps", bounds.lemma14, tolerance=1e-9),),
    ),
    _statement(
        "Lemma 15",
        "Size of E'",
        "E' is hardly larger than E; with lambda = |lambda_1| two classes attain the bound.",
        r"|\lambda_1| \le \lambda < 1:\quad \max_i|\lambda_i(E')| \le \frac{|\lambda_1|}{1-\lambda}",
        prove=_PROOFS["gram"],
        checks=(_closed("setting and 200 random overlaps", bounds.lemma15, tolerance=1e-9),),
    ),
    _statement(
        "Lemma 16",
        "Diagonal of E'",
        "A class that overlaps with another has a negative diagonal entry in E'.",
        r"E'_{ii} \le 0,\ \text{and } E'_{ii} < 0 \text{ if some } E_{ki} > 0 \text{ (under Assumption 2)}",
        sharper="it needs no part of Assumption 2, linearly independent features are enough.",
        prove=_PROOFS["gram"],
        checks=(_closed("setting and 200 random overlaps", bounds.lemma16),),
    ),
    _statement(
        "Lemma 17",
        "E' against E",
        "E' differs from E to second order.",
        r"|\lambda_1| < 1:\quad |E'_{nn'} - E_{nn'}| \le \frac{|\lambda_1|^2}{1-|\lambda_1|}",
        sharper="with entries of E that are not negative, as features have them, |lambda_1|^2/(1 - |lambda_1|^2),"
        " which E'_11 of two classes attains.",
        prove=_PROOFS["gram"],
        checks=(
            _closed("setting and 200 random overlaps", bounds.lemma17, tolerance=1e-9),
            _closed("the sharper bound", bounds.lemma17_sharp, tolerance=1e-9),
        ),
    ),
    _statement(
        "Theorem 5",
        "Decoder matrix under the modified gradient",
        "Y follows from the logits of the classes, whichever of them were drawn, as long as the features stand still.",
        r"Y = (F^\dagger)^T(I+\Theta)\bar W = F(I-E')(I+\Theta)\bar W(N),\quad \Theta ="
        r" \mathrm{diag}(\theta_n)\ \text{(70)}",
        assumptions=(*_WEAK, _FAST_DECODER),
        prove=_PROOFS["theorem5"],
        checks=(
            Check(
                "Y against F (I - E') W, Theta = 0",
                _ALL,
                checks.theorem5,
                expected=("theory flow", "modified flow"),
                claim=enclosed.theorem5,
            ),
            _drawn("Y against (70) with each run's Theta", coverage.theorem5_decoder, tolerance=0.05),
            _coverage("Theta outside Lemma 12's bound, features moving", coverage.theorem5),
        ),
    ),
    _statement(
        "Corollary 1",
        "Approach of the critical point",
        "The residual e_n - alpha_n and the loss fall like K / (eta_Y t).",
        r"e_n-\alpha_n = \frac{M-1}{M-1+e^{Mh(\bar N)}}(1+\sigma)\zeta_n,\ \sigma > -1,\ |\sigma| \lesssim"
        r" \eta_Y\sqrt{N\ln\tfrac1\delta}\ \text{(71)};\quad \|x_{T+1}-\alpha_n\| \le \epsilon \text{ after at most }"
        r" O\!\left(\tfrac{K}{\epsilon\eta_Y}\ln\tfrac M\epsilon\right) \text{ steps}",
        assumptions=(*_WEAK, _FAST_DECODER),
        sharper="|sigma| <= eta_Y |N_n - Nbar|, with the constant 1; and (K/eta_Y)(1/eps + ln(M/eps)) steps are"
        " enough with classes in turn, the sum of the two terms and not their product.",
        prove=partial(_PROOFS["theorem5"], sizes=()),
        checks=(
            Check(
                "loss over training",
                _ALL,
                checks.corollary1,
                expected=("theory flow", "modified flow"),
                claim=enclosed.corollary1,
            ),
            _closed("|sigma| <= eta_Y |N_n - Nbar|", bounds.corollary1_sigma),
            _coverage("sigma outside (71), features moving", coverage.corollary1),
            _closed("residual after the sum of the two terms", bounds.corollary1_steps, tolerance=1e-9),
        ),
    ),
    _statement(
        "Remark 1",
        "Slow-down of the original dynamics",
        "For equal overlaps the original decoder gradient is said to lower the effective learning rate only.",
        r"w_n = (1-\rho)(M-1)h^*(N/K)\zeta_n\ \text{(43)}",
        corrected=r"s = \frac{(1-\rho)(1+(K-1)\rho)}{1+(M-1)\rho}\ (t\to0),\quad s_\infty = \frac{1}{1-\rho} +"
        r" \frac{(M-K)\rho}{(1+(M-1)\rho)(1+(K-1)\rho)}\ (t\to\infty)",
        errata=(
            "The step sum_n zeta_n = 0 needs K = M. Attention in the full flow begins slower than in the modified"
            " flow by s: at K = 10, M = 1000, rho = 0.011, s = 0.0907, not 0.989.",
            "Late, with frozen features, the full flow is the faster one: the ratio of speeds tends to s_inf > 1,"
            " which is 1/(1 - rho) at K = M, with errors of order 1/ln t.",
        ),
        assumptions=(_EQUAL_OVERLAPS,),
        prove=_PROOFS["slowdown"],
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
            ),
        ),
    ),
    _statement(
        "Lemma 4",
        "Dynamics of attention",
        "The logits move along the features, weighted by gamma and beta.",
        r"\dot z_m = \eta_Z\gamma\sum_{n\in\psi^{-1}(m)}\mathrm{diag}(f_n)\sum_{n'\ne"
        r" n}\beta_{nn'}(f_nf_n^T-I)f_{n'}\ \text{(10)}",
        corrected=r"\dot z_m = \frac{\eta_Z\gamma}{K}\sum_{n\in\psi^{-1}(m)}\mathrm{diag}(f_n)"
        r"\sum_{n'\ne n}\beta_{nn'}(f_nf_n^T-I)f_{n'}",
        assumptions=(*_WEAK, _FAST_DECODER),
        errata=(
            "One class is drawn a step and acts with its probability; as printed every rate is K times too large.",
        ),
        prove=_PROOFS["lemma4"],
        checks=(
            Check(
                "velocity of the logits",
                _FLOWS,
                checks.lemma4,
                checks.lemma4_corrected,
                expected=("theory flow", "modified flow"),
                claim=enclosed.lemma4_corrected,
            ),
        ),
    ),
    _statement(
        "Theorem 2(a)",
        "Distinct tokens gain",
        "The logit of every distinct token grows.",
        r"\dot z_{ml} = \eta_Z\gamma f_{nl}^2\sum_{n'\ne n}\beta_{nn'}f_n^Tf_{n'} > 0\ \text{(98)}",
        corrected=r"\dot z_{ml} = \frac{\eta_Z}{K}f_{nl}^2\xi_n > 0",
        assumptions=_WEAK,
        errata=("The rate is K times too large, as in Lemma 4; its sign is right.",),
        prove=_PROOFS["theorem2"],
        checks=(
            Check(
                "share of distinct tokens that have not gained",
                _ALL,
                checks.theorem2_distinct,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_distinct,
            ),
            Check(
                "share of (time, distinct token) with z' <= 0",
                _FLOWS,
                checks.theorem2_distinct_velocity,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_distinct_velocity,
            ),
            Check(
                "z' against f^2 xi_n, xi_n by (9)",
                _FLOWS,
                checks.theorem2_rate_printed,
                checks.theorem2_rate_corrected,
                expected=("theory flow",),
                claim=enclosed.theorem2_rate_corrected,
            ),
        ),
    ),
    _statement(
        "Theorem 2(b)",
        "A single common token loses",
        "If all classes share one common token, its logit falls.",
        r"\dot z_{ml} = -\eta_Z\sum_{n\in\psi^{-1}(m)}(1-f_{nl}^2)\xi_n < 0\ \text{(100)}",
        corrected=r"\dot z_{ml} = -\frac{\eta_Z}{K}\sum_{n\in\psi^{-1}(m)}(1-f_{nl}^2)\xi_n < 0",
        assumptions=(*_WEAK, _ONE_COMMON),
        errata=("The rate is K times too large, as in Lemma 4; its sign is right.",),
        prove=_PROOFS["theorem2"],
        checks=(
            Check(
                "share of times without loss",
                _ALL,
                checks.theorem2_common,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_common,
            ),
            Check(
                "share of times with z' >= 0",
                _FLOWS,
                checks.theorem2_common_velocity,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_common_velocity,
            ),
        ),
    ),
    _statement(
        "Corollary 2",
        "Several common tokens lose",
        "With one query, exchangeable classes and common tokens of equal probability in all, every common token falls.",
        r"\dot z_{ml} < 0 \text{ for all } l \in G_{CT}",
        assumptions=(*_WEAK, _ONE_QUERY, *_SYMMETRIC),
        prove=_PROOFS["corollary2"],
        checks=(
            Check(
                "share of (time, common token) without loss",
                _ALL,
                checks.theorem2_common,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_common,
            ),
            Check(
                "share of (time, common token) with z' >= 0",
                _FLOWS,
                checks.theorem2_common_velocity,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem2_common_velocity,
            ),
        ),
    ),
    _statement(
        "Theorem 3",
        "Growth of distinct tokens",
        "Relative gains between distinct tokens of a class grow by a common factor chi. If all common tokens fall, the"
        " dominant distinct token's attention grows, and B_n bounds its chi on both sides.",
        r"r_{l/l'|n}(t) = r_{l/l'|n}(0)\chi_l(t)\ \text{(11)},\quad e^{2f_{nl_0}^2(0)B_n(t)} \le \chi_{l_0}(t) \le"
        r" e^{2B_n(t)},\ B_n = \eta_Z\int_0^t\xi_n\ \text{(12)}",
        corrected=r"\text{the same with } B_n = \frac{\eta_Z}{K}\int_0^t\xi_n",
        assumptions=_WEAK,
        errata=(
            "B_n is K times too large, as the rates of Lemma 4 are; the lower bound then fails.",
            "Exact in the theory flow; in the full flow f moves while Y accumulates it: (11) holds to O(eta_Z/eta_Y).",
        ),
        prove=_PROOFS["theorem3"],
        checks=(
            Check(
                "identity (11)",
                _ALL,
                checks.theorem3_identity,
                tolerance=0.05,
                expected=("theory flow",),
                claim=enclosed.theorem3_identity,
            ),
            Check(
                "bounds (12), xi_n by (9)",
                _FLOWS,
                checks.theorem3_bounds_printed,
                checks.theorem3_bounds,
                tolerance=1e-3,
                expected=("theory flow",),
                assumptions=(_COMMON_FALL,),
                claim=enclosed.theorem3_bounds,
            ),
            Check(
                "share of (time, class) with f' <= 0 of the dominant token",
                _FLOWS,
                checks.theorem3_dominant,
                tolerance=0.0,
                expected=("theory flow",),
                assumptions=(_COMMON_FALL,),
            ),
            Check(
                "share of (time, pair) whose lead shrinks",
                _FLOWS,
                checks.theorem3_monotony,
                tolerance=0.0,
                expected=("theory flow",),
                claim=enclosed.theorem3_monotony,
            ),
        ),
    ),
    _statement(
        "Theorem 4",
        "Phase transition",
        "With one common token in every class, the growth exponent is a logarithm of Gamma(t).",
        r"B_n(t) = \tfrac14\ln(C_0 + 4\Gamma(t)),\quad C_0 = \rho_0^4/K\ \text{(13, 14, 124)}",
        corrected=r"B(t) = \tfrac14\ln\!\left(1 + \frac{4\Gamma(t)}{C_0}\right),\quad C_0 ="
        r" \frac{\rho_0^4}{(K-1)P_c^4},\quad B_n = \frac BK",
        assumptions=(*_SMALL_OVERLAP, _EQUAL_OVERLAPS, _FAST_DECODER, _ONE_COMMON, _ONE_QUERY),
        errata=(
            "(14), (124), (129) drop the lower limit: B(0) = ln(C_0)/4.",
            "(13) has K (K - 1) terms in z' and K - 1 in xi, and gives both the same C_0.",
            "The snapping stage repeats Theorem 1(b)'s gamma, whose logarithm lacks M.",
            "Fig. 9's caption has nu = eta_Z/eta_Y; the text, (130) and the panels have nu = eta_Y/eta_Z.",
        ),
        prove=_PROOFS["theorem4"],
        checks=(
            Check(
                "fall of the common token against B",
                _ALL,
                checks.theorem4_printed,
                checks.theorem4_corrected,
                tolerance=0.15,
                expected=("theory flow", "modified flow"),
                claim=enclosed.theorem4_corrected,
            ),
        ),
    ),
    _statement(
        "Theorem 4, branches",
        "The two branches of B",
        "Gamma by its early and by its late form; the two are asymptotic, t0' and t0 are where the paper uses them.",
        r"4\Gamma = \frac{2(M-1)^2}{KM^2}\eta_Y\eta_Zt^2 \text{ for } t < t_0' = \frac{K\ln M}{\eta_Y},\quad 4\Gamma"
        r" = \frac{2K(M-1)^2}{M^2}\frac{\eta_Z}{\eta_Y}\ln^2\frac{M\eta_Yt}{K} \text{ for } t \ge t_0 ="
        r" \frac{2(1+o(1))K\ln M}{\eta_Y}\ \text{(14)}",
        corrected=r"4\Gamma = \frac{2\eta_ZK(M-1)^2}{\eta_Y}h(t/K)^2\ \text{(128)}",
        errata=(
            "At their own ends the branches of 4 Gamma are too large by 18.5% (t0') and 23.8% (t0) at M = 1000, 28.0%"
            " and 36.6% at M = 100; the error falls like 1.13/ln M and 1.39/ln M only. In B it is at most a quarter"
            " of that.",
        ),
        prove=_PROOFS["theorem4"],
        checks=(
            _closed(
                "4 Gamma at t0' and t0 against the integral of gamma",
                bounds.branches_printed,
                bounds.branches_corrected,
                tolerance=0.05,
            ),
        ),
    ),
    _statement(
        "Equations 131 to 133",
        "How B depends on the rates",
        "Insights (a) and (b): both rates together make B larger; the decoder's rate alone makes it smaller, late.",
        r"B_n(t_0) \text{ depends on } \nu = \tfrac{\eta_Y}{\eta_Z} \text{ alone (131)};\quad B_n ="
        r" (1+o(1))\tfrac12\ln\ln\tfrac{M\eta_Yt}{K} + \tfrac14\ln\tfrac{2K(M-1)^2}{M^2\nu} \text{ for } t \gg"
        r" \frac{e^{1/\sqrt{2\nu}}}{M\eta_Y}\ \text{(132, 133)}",
        corrected=r"\text{(132) for } \ln\tfrac{M\eta_Yt}{K} \gg \sqrt{\tfrac{\nu}{2K}}",
        assumptions=(Assumption("M >= 8", lambda setting: setting.classes.vocab_size / 8),),
        errata=(
            "(132): the condition 4 Gamma >> C_0 = 1 is ln(M eta_Y t/K) >> sqrt(nu/(2K)); in our copy nu stands in it"
            " as eta_Z/eta_Y would, as in Fig. 9's caption, and K = 1.",
            "Insight (b), fixed eta_Z, holds late only: early B grows with eta_Y. It holds from the upper crossing of"
            " Lemma 8 on for M >= 8; at M = 1000, K = 10, eta_Y = 1 from t = 86 on (t0' = 69, t0 = 138).",
        ),
        prove=_PROOFS["theorem4"],
        checks=(
            _closed("(131) and insight (a), fixed nu", bounds.insight_a),
            _closed("insight (b), from the upper crossing on", bounds.insight_b),
        ),
    ),
    _statement(
        "Lemma 18",
        "Concentration of finite sequences",
        "The frequency of a token in a finite sequence rarely leaves its probability by more than a small margin.",
        r"\max\!\left(0, P - \sqrt{\tfrac{\ln(2/\delta)}{2(T-1)}}\right) \le q_{l|n} \le P +"
        r" \sqrt{\tfrac{\ln(2/\delta)}{2(T-1)}} \text{ with probability} \ge 1-\delta\ \text{(134-136)}",
        prove=_PROOFS["lemma18"],
        checks=(
            Check("share outside the interval, T = 256", ("SGD",), checks.lemma18, tolerance=0.0, expected=("SGD",)),
        ),
    ),
    _statement(
        "Transition time",
        "The peak of gamma (not in the paper)",
        "gamma peaks at a time that Lambert's W gives in closed form.",
        r"t_0' = \frac{K\ln M}{\eta_Y},\quad t_0 = \frac{2K\ln M}{\eta_Y}",
        corrected=r"t^* = \frac{K(e^{u^*} + (M-1)u^* - 1)}{M\eta_Y},\quad u^* = 1 + W\!\left(\tfrac{M-1}{e}\right)",
        prove=_PROOFS["transition"],
    ),
    _statement(
        "Section 7, residual connection",
        "Local distinct and common tokens",
        "With the query's vector added, classes of one query overlap by a half more, and Theorem 2 is said to hold"
        " within the classes of each query: tokens distinct among these gain, tokens common to these lose.",
        r"\bar u_T = \mathrm{LN}(\mathrm{LN}(\hat u_T) + u_{x_T}):\quad \beta_{nn'} \approx f_n^Tf_{n'} +"
        r" 1[\psi(n)=\psi(n')],\quad \dot z_{ml} > 0 \text{ for } l \text{ distinct within } \psi^{-1}(m)",
        corrected=r"\beta_{nn'} \approx \tfrac{2}{c+1}\left(f_n^Tf_{n'} + 1\right) \text{ for } \psi(n)=\psi(n'),\ c ="
        r" |\psi^{-1}(m)|;\quad \text{a token of one class a query: } \dot z_{ml} > 0 \text{ for } f_{nl}^2 <"
        r" \tfrac{c^2-1}{(Q-1)(c^2+c-1)}f_{n0}^2,\ < 0 \text{ above}",
        assumptions=(_LARGE_VOCABULARY,),
        errata=(
            "Theorem 1 holds with the Gram matrix (F^T F + Psi)/2, whose E has the eigenvalue (c - 1)/2 and more, so"
            " that beta is not E to first order: with c classes a query and weak overlaps it is 2/(c + 1), a third for"
            " c = 5 where the formula has 1. It is the larger within queries, as the paper says.",
            "Theorem 2 does not hold within each query for tokens that other queries have too: beta between classes"
            " that share a token is of the order of its own f_nl^2, which is what it would gain. With Q queries of c"
            " equal classes, a token common to each query (f_n0) and one that a class of every query has (f_nl), it"
            " loses attention from f_nl^2 = f_n0^2 (c^2 - 1)/((Q - 1)(c^2 + c - 1)) on, to first order in the squares."
            " Tokens common within a query lose, and tokens of a single class gain, in all of 200 random classes.",
        ),
        checks=(
            _closed(
                "beta within a query, 200 random sets", residual.beta_printed, residual.beta_corrected, tolerance=0.15
            ),
            _closed("beta between queries smaller than within", residual.beta_apart),
            _closed("tokens common within a query, or to all, that do not lose", residual.local_common),
            _closed("tokens of one class that do not gain", residual.own_distinct),
            _closed(
                "locally distinct tokens that do not gain", residual.local_distinct, residual.local_distinct_corrected
            ),
        ),
    ),
    _statement(
        "Section 3.1, LayerNorm",
        "LayerNorm that subtracts the mean",
        "The analysis is said to extend to the usual LayerNorm, which subtracts the mean first. Theorem 1 does, with"
        " the Gram matrix of the centred features; Theorem 2(b), for two classes, unless these overlap negatively.",
        r"\mathrm{LN}(x) = \frac{x - \bar x 1}{\|x - \bar x 1\|}:\quad \dot z_{ml} < 0 \text{ for the common token}",
        corrected=r"\dot z_{ml} < 0 \text{ for } \tilde f_1^T\tilde f_2 > -\tfrac{1}{M-1},\ > 0 \text{ below } (K = 2),"
        r"\quad \tilde f_n = \frac{c_n - 1/M}{\|c_n - 1/M\|}",
        assumptions=(_LARGE_VOCABULARY,),
        errata=(
            "Centred features have the overlap c_n . c_n' - 1/M, up to a positive factor. For two classes whose overlap"
            " is below -1/(M - 1) beta is negative, and with the modified decoder the common token gains attention and"
            " some distinct ones lose it: a single common token of share P_c needs about P_c^2 > (1 - ||c||^2)/M. In"
            " the full flow, where beta is 1/M early, it loses attention all the same once its share is above 1/M.",
        ),
        checks=(
            _closed(
                "common tokens of 200 random pairs that do not lose", centred.common_printed, centred.common_corrected
            ),
        ),
    ),
    _statement(
        "Late attention",
        "Attention does not freeze (not in the paper)",
        "K equal classes with one common and one distinct token each: in the full flow the common token's share falls"
        " like a power of ln t, with the exponent 1 at K = M.",
        r"\tfrac{f_c}{f_d} = (\ln t)^{-\alpha + o(1)},\quad \alpha = \tfrac{K-1}{M-1}",
        prove=_PROOFS["late_full_flow"],
    ),
    _statement(
        "Theorem 2(a), true gradient",
        "Distinct tokens gain without the modified gradient (not in the paper)",
        "With frozen features xi_n > 0 early for any overlaps; late its limit is not negative, and positive where other"
        " classes are confused with n; for equal overlaps xi_n > 0 at all times.",
        r"\xi_n = \tfrac{\eta_Yt}{KM}\sum_{n'\ne n}f_n\cdot f_{n'} + O(t^2),\quad"
        r" \lim_{t\to\infty}\tfrac{\eta_Yt}{K\ln t}\xi_n \ge 0",
        prove=_PROOFS["true_gradient"],
        not_examined=("other overlaps between the two ends: measured only, finding 25",),
    ),
)
