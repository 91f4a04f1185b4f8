"""Fates of statements under options: verdicts from errors, and from votes of runs with many of them tested.

A flow, or steps on the whole population, is one run: its verdict is a fact of it. Of mini-batch runs each one *votes*,
for the statement or against it, and the verdict is a test: where the two are equally likely, so that the statement
holds in a run drawn anew as often as not, the number of votes is binomial with probability one half. Holm's procedure
over all tests of a table bounds by alpha the probability that any such place gets another verdict than "undecided".
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from dynamics.support import checks

__all__ = ["ALPHA", "Fate", "fate_of_run", "fate_of_votes", "holm", "sign_test", "votes"]

# The family-wise error rate of a table.
ALPHA = 0.05
# The share of wrong signs of mini-batch runs from which on they are called reversed.
NEARLY_ALL = 0.9


class Fate(enum.IntEnum):
    """Fate of one check of a statement under an option, at one level and in one setting.

    Attributes
    ----------
    NOT_ASKED
        The level has not the option, or not the check.
    HOLDS
        From the start on, within the check's tolerance. Of mini-batch runs: more than half of them do.
    LATER
        Not from the start on, but from some time of the first half on. Of mini-batch runs: more than half of them do in
        the second half, which is decided, and for the whole run it is not, or is decided the other way.
    REVERSED
        From some time of the first half on all signs are the opposite ones; only where a statement is about signs. Of
        mini-batch runs: in the second half of more than half of them most signs are, which is decided, and nine in ten
        in the median of them.
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
        Of the check over the whole run; NaN where it is not defined.
    tolerance : float
        Up to which it holds.
    holds_from, reversed_from : float
        Times from which on to the end it holds, or the opposite does; infinite if not at the end, NaN for what has no
        opposite.
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
    """How many runs are for a statement, and how many against it.

    Where the error is a share of wrong signs (``reversible``), a run with fewer than half of them is for it, one with
    more is against it, and one with half of them does not vote. Else a run is for it if its error is within the
    tolerance, and against it if not, or if the error is no number.
    """
    values = np.asarray(errors, dtype=float)
    if reversible:
        return int((values < 0.5).sum()), int((values > 0.5).sum())
    within = values <= tolerance
    return int(within.sum()), int((~within).sum())


def sign_test(for_it: ArrayLike, against: ArrayLike) -> np.ndarray:
    """Two-sided p of so many votes where each is for it with probability one half: exact, 1 without any vote."""
    first, second = np.asarray(for_it), np.asarray(against)
    tail = binom.cdf(np.minimum(first, second), first + second, 0.5)
    return np.minimum(1.0, 2 * tail)


def holm(p: ArrayLike, *, alpha: float = ALPHA) -> np.ndarray:
    """Which hypotheses Holm (1979) rejects; NaN counts as no test.

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


def fate_of_votes(
    whole: tuple[int, int],
    late: tuple[int, int],
    *,
    whole_decided: bool,
    late_decided: bool,
    wrong: float,
) -> Fate:
    """The verdict on many runs: votes over the whole run and over its second half, and which of the two are decided.

    ``wrong`` is the median share of wrong signs in second halves, NaN where a check is not about signs.
    """
    if whole_decided and whole[0] > whole[1]:
        return Fate.HOLDS
    if not late_decided:
        return Fate.UNDECIDED
    if late[0] > late[1]:
        return Fate.LATER
    return Fate.REVERSED if wrong >= NEARLY_ALL else Fate.FAILS
