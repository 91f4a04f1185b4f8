"""Arguments of the kernels of an ensemble: coefficients, steps side by side, results of members.

Numba's cache names these classes: if one is moved or gets other fields, change `_engine.lanes` as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics._engine import tableau
from dynamics._engine.tableau import EXTENDED
from dynamics.support.checks import read_only


class Combinations(NamedTuple):
    """Weighted sums of slopes in DOP853 (Hairer, Norsett, Wanner), without zero weights.

    Rows 0 to 15: stages, with the new state at 12 and extra stages of the interpolant at 13 to 15. Row 16: an Euler
    step. Rows 17 and 18: error estimates of order 5 and 3. Rows 19 to 22: the interpolant.

    Attributes
    ----------
    terms : (23,) int
    slopes : (23, 12) int
    weights : (23, 12)
    """

    terms: np.ndarray
    slopes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of_dop853(cls) -> Combinations:
        """Combinations of `dynamics._engine.tableau`."""
        rows = [*tableau.A, np.eye(1, EXTENDED)[0], tableau.E5, tableau.E3, *tableau.D]
        terms = np.zeros(len(rows), np.int64)
        slopes, weights = np.zeros((len(rows), 12), np.int64), np.zeros((len(rows), 12))
        for i, row in enumerate(rows):
            columns = np.flatnonzero(row)
            terms[i], slopes[i, : columns.size], weights[i, : columns.size] = columns.size, columns, row[columns]
        return cls(*(read_only(array) for array in (terms, slopes, weights)))


class Lanes(NamedTuple):
    """One step for each of `LANES` members, on the last axis.

    Attributes
    ----------
    setting : (4, lanes)
        K, M, eta_Y, eta_Z.
    count : (kinds, lanes)
    y, new : (size, lanes)
        States at the start and the end of the step.
    slopes : (17, size, lanes)
        Derivatives at the stages, the last for trials.
    t, h : (lanes,)
        Start and length of the step.
    """

    setting: np.ndarray
    count: np.ndarray
    y: np.ndarray
    new: np.ndarray
    slopes: np.ndarray
    t: np.ndarray
    h: np.ndarray


class Asked(NamedTuple):
    """Collected steps with outputs or a possible largest speed, at most one for each lane.

    Attributes
    ----------
    steps : Lanes
    end : (size, lanes)
        New states of the steps.
    who, first, last : (lanes,) int
        Members, and the first and last output in the step.
    needed : (kinds, lanes) int
        Flags of logits that may be fastest in the step.
    filled : (1,) int
        Number of collected steps.
    """

    steps: Lanes
    end: np.ndarray
    who: np.ndarray
    first: np.ndarray
    last: np.ndarray
    needed: np.ndarray
    filled: np.ndarray


class State(NamedTuple):
    """The progress of each lane.

    Attributes
    ----------
    who, taken, recorded, due, sought, rejected : (lanes,) int
        The member (-1: none), its steps, its recorded outputs, its outputs including the newest step, the number of
        logits whose largest speed is sought, and 1 if its last trial was rejected.
    accepted : (lanes,)
        One for lanes with an accepted trial, else zero.
    t_new : (lanes,)
        Ends of the trials.
    fastest, needed : (kinds, lanes)
        The largest speeds between steps, and a flag for each logit whose largest speed is sought.
    next : (1,) int
        Index, in the order, of the next member to start.
    """

    who: np.ndarray
    taken: np.ndarray
    recorded: np.ndarray
    due: np.ndarray
    sought: np.ndarray
    rejected: np.ndarray
    accepted: np.ndarray
    t_new: np.ndarray
    fastest: np.ndarray
    needed: np.ndarray
    next: np.ndarray


class Results(NamedTuple):
    """Results of members, on the first axis; see `dynamics.ensemble`."""

    z: np.ndarray
    attention: np.ndarray
    loss: np.ndarray
    velocity: np.ndarray
    decoded: np.ndarray
    peak: np.ndarray
    told: np.ndarray
    status: np.ndarray
