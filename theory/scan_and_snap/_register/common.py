"""Levels, kinds of checks and formulas that the paper's statements share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from theory.scan_and_snap import coverage
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import DRAWN
from theory.statements import SHARPER, Check, Statement
from theory.symbolic import derivations

PAPER = "Scan and Snap"
FLOWS = ("theory flow", "modified flow", "full flow")
MODIFIED = FLOWS[:2]  # with the decoder that the theorems are about
ALL = (*FLOWS, "SGD")
LEVELS = ("closed form", *ALL, DRAWN)
COLUMNS = {"theory": ("closed form", *MODIFIED, DRAWN), "true gradient": FLOWS[2:], "SGD": ("SGD",)}
# The audit's first recorded time; s, the limit of a ratio for t -> 0, is compared up to it.
FIRST_TIME = 0.01
PROOFS = derivations("theory.scan_and_snap.proofs")


def statement(number: str, title: str, text: str, printed: str, *, sharper: str = "", **more) -> Statement:
    """A statement of this paper; ``printed`` and ``corrected`` are LaTeX, without dollar signs.

    ``sharper`` is a claim stronger than the printed form, and no erratum.
    """
    said = f"{text}{SHARPER}{sharper}" if sharper else text
    return Statement(PAPER, number, title, said, printed, **more)


def closed(
    name: str,
    printed,
    corrected=None,
    *,
    tolerance: float = 0.0,
    **more: Any,
) -> Check:
    """A check without simulations, expected to hold wherever its assumptions (or its ``suffices``) do."""
    return Check(name, ("closed form",), printed, corrected, tolerance, ("closed form",), **more)


def flowing(
    name: str, levels, printed, corrected=None, *, expected: tuple[str, ...] = ("theory flow",), **more: Any
) -> Check:
    """A check of simulations, and of enclosed flows by the paper's claim with the name of the measure.

    If there is a corrected form, the claim has its name.
    """
    claim = (corrected or printed).__name__
    return Check(name, levels, printed, corrected, expected=expected, claim=claim, **more)


def signs(name: str, levels, measure, says: str) -> Check:
    """A check by the share of wrong signs, which should be zero in the theory flow."""
    return flowing(name, levels, measure, tolerance=0.0, reversible=True, says=says)


def at_any_rates(name: str, measure, *, level: str = "theory flow", tolerance: float = 0.0, **more: Any) -> Check:
    """A check without Assumption 1(c), beyond the printed form; ``more`` has the assumptions that suffice."""
    name = f"at any learning rates: {name}"
    return flowing(name, (level,), measure, tolerance=tolerance, expected=(level,), **more)


def drawn(name: str, measure, *, tolerance: float = 0.0, **more: Any) -> Check:
    """A check on many runs of `DRAWN`; its name says the number of seeds."""
    name = f"{name}, {coverage.SEEDS} seeds"
    return Check(name, (DRAWN,), measure, tolerance=tolerance, expected=(DRAWN,), **more)


def counted(name: str, measure) -> Check:
    """A check of the runs of `drawn` that counts the runs outside a bound."""
    rare = coverage.FALSE_ALARM
    return drawn(f"{name}, delta = {coverage.DELTA}, false alarms below {rare:.0e}", measure, false_alarm=rare)


def both(numbers: list[int]) -> str:
    """A few numbers in a sentence: `2 and 3`."""
    return " and ".join(map(str, numbers))


def simple(number: float) -> Fraction:
    """The simple fraction behind a float."""
    return Fraction(number).limit_denominator(10_000)


# Formulas of several statements: the two stages of gamma, and Theorem 2's rates.
EARLY = r"\gamma(t) = O\!\left(\frac{\eta_Y t}{K}\right) \text{ for } t \le \frac{K\ln M}{\eta_Y}"
STAGES = (
    EARLY + r",\quad \gamma(t) = O\!\left(\frac{K\ln(%s\eta_Y t/K)}{\eta_Y t}\right) \text{ for } t \ge"
    r" \frac{2(1+%s)K\ln M}{\eta_Y}"
)
PROVED_STAGES = (
    rf"\gamma \le {f.EARLY_GAMMA} \text{{ for all }} t,\quad \gamma \le {f.LATE_GAMMA} \text{{ for }} t \ge"
    r" \frac{2(1+\omega_1)K\ln M}{\eta_Y}"
)
