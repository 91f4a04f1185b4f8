"""Levels, proofs and kinds of entries that the paper's statements share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from theory.statements import Check, Statement
from theory.symbolic import derivations

PAPER = "Bounded Dyck"
EXACT = ("closed form",)
TRAINED = ("full flow", "SGD")
LEVELS = (*EXACT, *TRAINED)
COLUMNS = {"theory": EXACT, "true gradient": TRAINED[:1], "SGD": TRAINED[1:]}
PROOFS = derivations("yzflow_bounded_dyck.proofs")


def statement(number: str, title: str, text: str, printed: str, **more: Any) -> Statement:
    """A statement of this paper; ``printed`` and ``corrected`` are LaTeX, without dollar signs."""
    return Statement(PAPER, number, title, text, printed, **more)


def exact(name: str, measure: Any, tolerance: float, corrected: Any = None, **more: Any) -> Check:
    """A check of the formulas."""
    return Check(name, EXACT, measure, corrected, tolerance=tolerance, expected=EXACT, **more)


def once(measure: Callable[[], float]) -> Callable[..., float]:
    """A measure that ignores its runs, computed once for all of them."""
    kept = functools.cache(measure)

    @functools.wraps(kept)
    def check(runs: Any = None, level: str = "") -> float:
        return kept()

    return check
