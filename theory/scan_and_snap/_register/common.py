"""What the statements of the paper share: levels, assumptions with margins, kinds of checks, common formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from theory.scan_and_snap import coverage, enclosed, tokens
from theory.statements import SHARPER, Assumption, Check, Enclosing, Statement
from theory.symbolic import derivations

PAPER = "Scan and Snap"
FLOWS = ("theory flow", "modified flow", "full flow")
ALL = (*FLOWS, "SGD")
# The algorithm that the theorems are about: the modified decoder, batch size 1, T -> infinity.
DRAWN = "modified SGD"
LEVELS = ("closed form", *ALL, DRAWN)
COLUMNS = {"theory": ("closed form", *FLOWS[:2], DRAWN), "true gradient": FLOWS[2:], "SGD": ("SGD",)}
ENCLOSING = Enclosing(FLOWS, enclosed.enclose)
PROOFS = derivations("scan_and_snap")


def _weak(setting: Any) -> tokens.WeakCorrelation:
    return tokens.weak_correlation(setting.classes.overlap(), vocab_size=setting.classes.vocab_size)


WEAK = (
    Assumption("Assumption 2, |lambda_1(E)| < 1/K", lambda setting: _weak(setting).upper_margin),
    Assumption("Assumption 2, |lambda_i(E)| >= 6/sqrt(M)", lambda setting: _weak(setting).lower_margin),
)
# The paper says that the decoder learns much faster; a hundred times is where the modified flow meets the theory to 5%.
FAST_DECODER = Assumption("Assumption 1(c), eta_Y >= 100 eta_Z", lambda setting: setting.eta_y / setting.eta_z / 100)
# Theorem 4's xi has rho where the exact one has rho'' + 1/(M (1 + (K - 1) rho)): see theory.attention.speed_constant.
SMALL_OVERLAP = (
    Assumption("K rho <= 0.1", lambda setting: 0.1 / (setting.classes.n_classes * setting.overlap)),
    Assumption("M rho >= 8", lambda setting: setting.classes.vocab_size * setting.overlap / 8),
)
ONE_COMMON = Assumption("one common token", lambda setting: 1 / max(len(setting.classes.common_tokens), 1))
ONE_QUERY = Assumption("one query", lambda setting: 1 / len(setting.classes.query_tokens))
EQUAL_OVERLAPS = Assumption("equal overlaps", lambda setting: tokens.alike(_overlaps(setting)[:, None]))
# Corollary 2's further conditions; its last one, Z(0) = 0, holds in every flow and run of the audit.
SYMMETRIC = (
    Assumption(
        "distinct tokens of equal probabilities in all classes",
        lambda setting: tokens.alike(tokens.distinct_probabilities(setting.classes)),
    ),
    Assumption(
        "common tokens that have one probability in all classes",
        lambda setting: tokens.alike(tokens.common_probabilities(setting.classes)),
    ),
)
COMMON_FALL = Assumption(
    "common tokens fall, by Theorem 2(b) or Corollary 2",
    lambda setting: max(ONE_COMMON.margin(setting), min(one.margin(setting) for one in (ONE_QUERY, *SYMMETRIC))),
)


def _overlaps(setting: Any) -> np.ndarray:
    overlap = setting.classes.overlap()
    return overlap[~np.eye(len(overlap), dtype=bool)]


LARGE_VOCABULARY = Assumption("M >= 100", lambda setting: setting.classes.vocab_size / 100)
FOUR_TOKENS = Assumption("M >= 4", lambda setting: setting.classes.vocab_size / 4)


def statement(number: str, title: str, text: str, printed: str, *, sharper: str = "", **more) -> Statement:
    """A statement of this paper; ``printed`` and ``corrected`` are LaTeX, without dollar signs.

    ``sharper`` is what holds beyond the printed form, which is no erratum.
    """
    said = f"{text}{SHARPER}{sharper}" if sharper else text
    return Statement(PAPER, number, title, said, printed, **more)


def closed(name: str, printed, corrected=None, *, tolerance: float = 0.0) -> Check:
    """A check that needs no simulation, and should hold wherever the assumptions do."""
    return Check(name, ("closed form",), printed, corrected, tolerance, ("closed form",))


def drawn(name: str, measure, *, tolerance: float = 0.0) -> Check:
    """A check on many runs of `DRAWN`, whose number of seeds is a part of its name."""
    return Check(f"{name}, {coverage.SEEDS} seeds", (DRAWN,), measure, tolerance=tolerance, expected=(DRAWN,))


def counted(name: str, measure) -> Check:
    """A check of the same runs, in which those outside a bound are counted."""
    return drawn(f"{name}, delta = {coverage.DELTA}, false alarms below {coverage.FALSE_ALARM:.0e}", measure)


# Formulas that come back: the two stages of gamma, and Theorem 2's rates.
EARLY = r"\gamma(t) = O\!\left(\frac{\eta_Y t}{K}\right) \text{ for } t \le \frac{K\ln M}{\eta_Y}"
STAGES = (
    EARLY + r",\quad \gamma(t) = O\!\left(\frac{K\ln(%s\eta_Y t/K)}{\eta_Y t}\right) \text{ for } t \ge"
    r" \frac{2(1+%s)K\ln M}{\eta_Y}"
)
PROVED_STAGES = (
    r"\gamma \le \frac{\eta_Y t}{K} \text{ for all } t,\quad \gamma \le"
    r" 2\left(\tfrac{M-1}{M}\right)^2\frac{K\ln(M\eta_Y t/K)}{\eta_Y t} \text{ for } t \ge \frac{2(1+\omega_1)K\ln"
    r" M}{\eta_Y}"
)
