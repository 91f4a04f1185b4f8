"""Fates of statements under options: verdicts on one run by its error, and on many runs by a test of their votes.

A flow, or steps on the whole population, is one run, and its error decides. Mini-batch runs *vote* for the statement or
against it, and a test decides. Its null hypothesis: a new run is for the statement with probability one half, so the
number of votes is binomial. Holm's procedure over all tests of a table bounds the family-wise error rate by alpha: the
probability that any cell under the null hypothesis gets a verdict other than "undecided".
"""

from __future__ import annotations

import enum
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from dynamics.support import checks

__all__ = ["ALPHA", "Fate", "fate_of_run", "fate_of_votes", "holm", "seeds_needed", "sign_test", "votes"]

# The family-wise error rate of a table.
ALPHA = 0.05
# Mini-batch runs with at least this share of wrong signs are called reversed.
NEARLY_ALL = 0.9


class Fate(enum.IntEnum):
    """Fate of one check of a statement under an option, at one level and in one setting.

    Attributes
    ----------
    NOT_ASKED
        The level lacks the option or the check.
    HOLDS
        From the start on, within the check's tolerance. Of mini-batch runs: more than half of them do.
    LATER
        Not from the start, but from some time in the first half. For mini-batch runs: the test decides for the
        statement over second halves, but not over whole runs.
    REVERSED
        All signs are opposite from some time in the first half; only for statements about signs. For mini-batch runs:
        the test decides against the statement over second halves, and the median share of wrong signs is nine in ten or
        more.
    FAILS
        None of these: an equation that misses, an inequality that is violated, signs that are mixed.
    UNDEFINED
        The statement has no meaning under the option, or the flow no solution.
    UNDECIDED
        Too few runs to tell.
    """

    NOT_ASKED = -1
    HOLDS = 0
    LATER = 1
    REVERSED = 2
    FAILS = 3
    UNDEFINED = 4
    UNDECIDED = 5

    @property
    def words(self) -> str:
        """For a table."""
        return {"NOT_ASKED": "", "LATER": "holds later"}.get(self.name, self.name.lower())

    @property
    def sign(self) -> str:
        """One character, for a picture in black and white."""
        return _SIGNS[self]


_SIGNS = {
    Fate.NOT_ASKED: "",
    Fate.HOLDS: "✓",
    Fate.LATER: "↗",
    Fate.REVERSED: "↺",
    Fate.FAILS: "✗",
    Fate.UNDEFINED: "-",
    Fate.UNDECIDED: "?",
}


def fate_of_run(error: float, tolerance: float, *, holds_from: float, reversed_from: float, end: float) -> Fate:
    """The verdict on one run.

    Parameters
    ----------
    error : float
        The check's error over the whole run; NaN if undefined.
    tolerance : float
        Largest error that counts as holding.
    holds_from, reversed_from : float
        Times from which the check or its opposite holds to the end; infinite if it fails at the end, NaN for a check
        without an opposite.
    end : float
        Last time of the run.
    """
    if np.isnan(error):
        return Fate.UNDEFINED
    if error <= tolerance:
        return Fate.HOLDS
    if holds_from <= end / 2:
        return Fate.LATER
    return Fate.REVERSED if reversed_from <= end / 2 else Fate.FAILS


def votes(errors: ArrayLike, tolerance: float, *, reversible: bool) -> tuple[int, int]:
    """Numbers of runs for a statement and against it.

    A run votes for the statement if its error is within the tolerance, else against it; NaN is a vote against. If the
    error is a share of wrong signs (``reversible``), the bound is one half, and a run at one half does not vote.
    """
    values = np.asarray(errors, dtype=float)
    if reversible:
        return int((values < 0.5).sum()), int((values > 0.5).sum())
    within = values <= tolerance
    return int(within.sum()), int((~within).sum())


def sign_test(for_it: ArrayLike, against: ArrayLike) -> np.ndarray:
    """Exact two-sided p of the votes under probability one half; 1 without votes."""
    first, second = np.asarray(for_it), np.asarray(against)
    tail = binom.cdf(np.minimum(first, second), first + second, 0.5)
    return np.minimum(1.0, 2 * tail)


def holm(p: ArrayLike, *, alpha: float = ALPHA) -> np.ndarray:
    """True for each hypothesis that Holm's procedure (1979) rejects. NaN counts as no test.

    The j-th smallest of m values, from j = 0, is compared with alpha/(m - j), until one is larger. Whatever the
    dependence, a true hypothesis is rejected with a probability of at most alpha.
    """
    values = np.asarray(p, dtype=float)
    alpha = checks.positive("alpha", alpha)
    flat = values.ravel()
    tested = np.flatnonzero(~np.isnan(flat))
    order = tested[np.argsort(flat[tested], kind="stable")]
    bounds = alpha / np.arange(tested.size, 0, -1)
    below = flat[order] <= bounds
    n = below.size if below.all() else int(np.argmin(below))
    rejected = np.zeros(flat.size, dtype=bool)
    rejected[order[:n]] = True
    return rejected.reshape(values.shape)


def seeds_needed(tests: int, *, alpha: float = ALPHA) -> int:
    """The fewest runs that can decide a cell of a table with so many tests: all agree, and 2 (1/2)^n <= alpha/tests."""
    tests, alpha = checks.integer("tests", tests, minimum=1), checks.positive("alpha", alpha)
    return math.ceil(math.log2(2 * tests / alpha))


def fate_of_votes(
    whole: tuple[int, int],
    late: tuple[int, int],
    *,
    whole_decided: bool,
    late_decided: bool,
    wrong: float,
) -> Fate:
    """The verdict on many runs, from the votes over whole runs and over second halves, and the decisions of both tests.

    ``wrong`` is the median share of wrong signs in second halves; NaN for a check that is not about signs.
    """
    if whole_decided and whole[0] > whole[1]:
        return Fate.HOLDS
    if not late_decided:
        return Fate.UNDECIDED
    if late[0] > late[1]:
        return Fate.LATER
    return Fate.REVERSED if wrong >= NEARLY_ALL else Fate.FAILS
