"""Scan and Snap: Tian, Wang, Chen, Du, NeurIPS 2023, arXiv 2305.16380."""

from __future__ import annotations

from typing import Any

from theory.scan_and_snap import measures as checks
from theory.scan_and_snap import tokens
from theory.statements import Assumption, Check, Statement
from theory.symbolic import derivations

_PAPER = "Scan and Snap"
_FLOWS = ("theory flow", "modified flow", "full flow")
_ALL = (*_FLOWS, "SGD")
LEVELS = ("closed form", *_ALL)
_PROOFS = derivations("scan_and_snap")

NOT_EXAMINED = (
    "Lemmas 10 to 17 and Remarks 2 to 4 of Scan and Snap, whose formulas our text of the paper lacks "
    "(Lemma 14's sign of E' is in the proofs of Lemma 3 and Theorem 1)."
)


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


def _statement(number: str, title: str, text: str, printed: str, **more) -> Statement:
    return Statement(_PAPER, number, title, text, printed, **more)


STATEMENTS = (
    _statement(
        "Lemma 1",
        "Gradient of the 1-layer transformer",
        "One step on one sample moves Y along f r^T, and the query's row of Z along a projection of Y r.",
        "(3): Y' = eta_Y LN(X^T b) (x_{T+1} - alpha)^T, "
        "Z' = eta_Z x_T (x_{T+1} - alpha)^T Y^T (P_perp / ||X^T b||) X^T diag(b) X",
        prove=_PROOFS["lemma1"],
    ),
    _statement(
        "Lemma 1, zero sums",
        "Conserved row sums",
        "Every row of Y and of Z keeps its sum, whatever the data.",
        "below (3): the rows of Z keep their sum; Found: the rows of Y too",
        prove=_PROOFS["invariants"],
        checks=(
            Check(
                "row sums",
                ("modified flow", "full flow", "SGD"),
                checks.zero_sums,
                tolerance=1e-8,
                expected=("modified flow", "full flow", "SGD"),
            ),
        ),
    ),
    _statement(
        "Lemma 2",
        "Long sequences",
        "As T grows, attention tends to that of a bag that holds P(l|n) in place of counts.",
        "(5)-(6)",
        prove=_PROOFS["lemma2"],
    ),
    _statement(
        "Lemma 3",
        "Modified decoder gradient",
        "With the decoder gradient f_n - F E' e_n, only row n of W = F^T Y moves at a step of class n.",
        "(8), (26)",
        assumptions=_WEAK,
        errata=("Appendix D.1 prints E' = (I + E)^{-1} - I; Lemma 14 and the proof need the opposite sign.",),
        prove=_PROOFS["lemma3"],
    ),
    _statement(
        "Lemma 5",
        "Decoder after s samples of a class",
        "w_n(s) = (M - 1) h*(s) zeta_n with a scalar recursion for h*.",
        "(31)-(33)",
        errata=("(36) misprints w_nj(1): eta_Y (1 - 1/M) holds for j = n, and -eta_Y / M for the others.",),
        prove=_PROOFS["lemma5"],
    ),
    _statement(
        "Lemma 6",
        "Continuous decoder growth",
        "dh/dt = eta_Y / (M - 1 + exp(M h)) has the implicit solution exp(M h) + (M - 1) M h = M eta_Y t + 1.",
        "(44)-(45)",
        prove=_PROOFS["lemma6"],
        checks=(
            Check(
                "(45) by the closed form", ("closed form",), checks.lemma6, tolerance=1e-12, expected=("closed form",)
            ),
            Check(
                "closed form against the flow",
                ("theory flow",),
                checks.lemma6_flow,
                tolerance=1e-6,
                expected=("theory flow",),
            ),
        ),
    ),
    _statement(
        "Lemma 7",
        "Discrete and continuous growth",
        "h* stays above h by at most 2 eta_Y / M, and the gap vanishes.",
        "0 <= h* - h <= 2 eta_Y / M",
        prove=_PROOFS["lemma7"],
        errata=("True with half the bound, for every eta_Y > 0 (theory.decoder.h_steps).",),
        checks=(
            Check("bound over the steps", ("closed form",), checks.lemma7, tolerance=0.0, expected=("closed form",)),
        ),
    ),
    _statement(
        "Lemma 8",
        "Where the two stages of h meet",
        "exp(M h) and (M - 1) M h cross once at h > 0 below which h is linear in t, and above which exp(M h) is.",
        "h = Theta(eta_Y t / M) before, h = Theta(ln(M eta_Y t) / M) after the crossing near ln M / M",
        errata=("For M = 2 and 3 the two never cross; it needs M >= 4.",),
        prove=_PROOFS["lemma8_9"],
    ),
    _statement(
        "Lemma 9",
        "Two stages of gamma",
        "gamma grows at most linearly up to t0' and falls like ln(t)/t from t0 on.",
        "gamma = O(eta_Y t/K) for t <= K ln M/eta_Y, O(K ln(eta_Y t/K)/(eta_Y t)) for t >= 2 (1 + delta') K ln M/eta_Y",
        corrected="gamma <= eta_Y t/K, and gamma <= 2.2 K ln(M eta_Y t/K)/(eta_Y t) for t >= 2 K ln M/eta_Y",
        errata=("The logarithm's argument lacks M: as printed the constant grows with M, at t0 like ln M / ln ln M.",),
        prove=_PROOFS["lemma8_9"],
        checks=(
            Check(
                "both stages, constants 1 and 2.2",
                ("closed form",),
                checks.gamma_stages,
                tolerance=0.0,
                expected=("closed form",),
            ),
        ),
    ),
    _statement(
        "Theorem 1",
        "Back-propagated gradient",
        "The gradient at the features is gamma(t) times a fixed combination of them.",
        "(9): g_n = gamma (iota_n f_n - sum_{n' != n} beta_nn' f_n')",
        assumptions=(*_WEAK, _FAST_DECODER),
        errata=(
            "Holds for the modified gradient of Lemma 3; under the gradient of Lemma 1 see Remark 1.",
            "(a) xi_n > 0 does not need |lambda_i(E)| >= 6/sqrt(M), and for K <= 3 no bound on E at all. Beyond "
            "|lambda_1(E)| < 1/K it can fail: K = 4, M = 10, overlaps G_12 = 1/1000, G_23 = G_24 = 3/5, the others 0.",
            "A single beta_nn' can be negative: beta_13 for a chain of overlaps 1-2-3 and large M.",
        ),
        prove=_PROOFS["theorem1"],
        checks=(Check("g_n = Y r_n against (9)", _ALL, checks.theorem1, expected=("theory flow", "modified flow")),),
    ),
    _statement(
        "Theorem 5",
        "Decoder matrix under the modified gradient",
        "Y is F (I - E') times the rows w_n, whichever classes were drawn, as long as F stands still.",
        "Y = F (I - E') [w_1 .. w_K]^T (Appendix D.4)",
        assumptions=(*_WEAK, _FAST_DECODER),
        prove=_PROOFS["theorem5"],
        checks=(Check("Y against F (I - E') W", _ALL, checks.theorem5, expected=("theory flow", "modified flow")),),
    ),
    _statement(
        "Corollary 1",
        "Approach of the critical point",
        "The residual e_n - alpha_n and the loss fall like K / (eta_Y t).",
        "e_n - alpha_n = (M - 1)/(M - 1 + exp(M h)) zeta_n",
        assumptions=(*_WEAK, _FAST_DECODER),
        prove=_PROOFS["theorem5"],
        checks=(Check("loss over training", _ALL, checks.corollary1, expected=("theory flow", "modified flow")),),
    ),
    _statement(
        "Remark 1",
        "Slow-down of the original dynamics",
        "For equal overlaps the original decoder gradient only lowers the effective learning rate.",
        "(43): by the factor 1 - rho",
        corrected="s = (1 - rho) (1 + (K - 1) rho) / (1 + (M - 1) rho) for the attention, early in training",
        errata=("The step sum_n zeta_n = 0 needs K = M. At K = 10, M = 1000, rho = 0.011: s = 0.0907, not 0.989.",),
        prove=_PROOFS["slowdown"],
        checks=(
            Check(
                "early ratio of full and modified flow",
                ("full flow",),
                checks.remark1_printed,
                checks.remark1_corrected,
                tolerance=0.02,
                expected=("full flow",),
            ),
        ),
    ),
    _statement(
        "Lemma 4",
        "Dynamics of attention",
        "The logits move along the features, weighted by gamma and beta.",
        "(10): z'_m = eta_Z gamma sum_n diag(f_n) sum_{n' != n} beta_nn' (f_n f_n^T - I) f_n'",
        corrected="the same with the class probability: eta_Z gamma / K",
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
            ),
        ),
    ),
    _statement(
        "Theorem 2(a)",
        "Distinct tokens gain",
        "The logit of every distinct token grows.",
        "z'_l = f_nl^2 xi_n > 0",
        corrected="z'_l = (eta_Z / K) f_nl^2 xi_n > 0",
        assumptions=_WEAK,
        prove=_PROOFS["theorem2"],
        checks=(
            Check(
                "share of distinct tokens that have not gained",
                _ALL,
                checks.theorem2_distinct,
                tolerance=0.0,
                expected=("theory flow",),
            ),
        ),
    ),
    _statement(
        "Theorem 2(b)",
        "A single common token loses",
        "If all classes share one common token, its logit falls.",
        "z'_l < 0",
        assumptions=(*_WEAK, _ONE_COMMON),
        prove=_PROOFS["theorem2"],
        checks=(
            Check(
                "share of times without loss", _ALL, checks.theorem2_common, tolerance=0.0, expected=("theory flow",)
            ),
        ),
    ),
    _statement(
        "Corollary 2",
        "Several common tokens lose",
        "With one query, exchangeable classes and common tokens of equal probability in all, every common token falls.",
        "z'_l < 0 for every common l",
        assumptions=_WEAK,
        prove=_PROOFS["corollary2"],
        checks=(
            Check(
                "share of (time, common token) without loss",
                _ALL,
                checks.theorem2_common,
                tolerance=0.0,
                expected=("theory flow",),
            ),
        ),
    ),
    _statement(
        "Theorem 3",
        "Growth of distinct tokens",
        "Relative gains between distinct tokens of a class grow by a common factor chi, bounded by B_n on both sides.",
        "(11)-(12)",
        assumptions=_WEAK,
        errata=(
            "Exact in the theory flow; in the full flow f moves while Y accumulates it: (11) holds to O(eta_Z/eta_Y).",
        ),
        prove=_PROOFS["theorem3"],
        checks=(
            Check("identity (11)", _ALL, checks.theorem3_identity, tolerance=0.05, expected=("theory flow",)),
            Check("bounds (12)", _FLOWS, checks.theorem3_bounds, tolerance=1e-3, expected=("theory flow",)),
        ),
    ),
    _statement(
        "Theorem 4",
        "Phase transition",
        "With one common token in every class, the growth exponent is a logarithm of Gamma(t).",
        "(14): B = ln(C_0 + 4 Gamma)/4, C_0 = rho_0^4/K",
        corrected="B = ln(1 + 4 Gamma/C_0)/4, C_0 = rho_0^4/((K - 1) P_c^4); a distinct token's exponent is B/K",
        assumptions=(*_SMALL_OVERLAP, _FAST_DECODER, _ONE_COMMON),
        errata=(
            "(14), (124), (129) drop the lower limit: B(0) = ln(C_0)/4.",
            "(13) has K (K - 1) terms in z' and K - 1 in xi, and gives both the same C_0.",
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
            ),
        ),
    ),
    _statement(
        "Lemma 18",
        "Concentration of finite sequences",
        "The frequency of a token among T - 1 leaves its probability by more than sqrt(ln(2/delta)/(2(T - 1))) rarely.",
        "(134)-(136), from Hoeffding's inequality",
        prove=_PROOFS["lemma18"],
        checks=(
            Check("share outside the interval, T = 256", ("SGD",), checks.lemma18, tolerance=0.0, expected=("SGD",)),
        ),
    ),
    _statement(
        "Transition time",
        "The peak of gamma (not in the paper)",
        "gamma peaks at a time that Lambert's W gives in closed form.",
        "t0' = K ln M/eta_Y, t0 = 2 K ln M/eta_Y",
        corrected="t* = K (exp(u*) + (M - 1) u* - 1)/(M eta_Y), u* = 1 + W((M - 1)/e)",
        prove=_PROOFS["transition"],
    ),
)
