"""Arguments of the kernels of an ensemble: coefficients, steps side by side, results of members.

Numba's cache names these classes: where one is moved or given other fields, `_engine.lanes` has to change as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics._engine import tableau
from dynamics._engine.tableau import EXTENDED
from dynamics.support.checks import read_only


class Combinations(NamedTuple):
    """Means of the slopes of a step that DOP853 forms (Hairer, Norsett, Wanner), those weights that are not zero.

    Rows 0 to 15 are the stages, of which 12 is the new state and 13 to 15 are the interpolant's; 16 is a step of
    Euler's, 17 and 18 the error estimates of order 5 and 3, 19 to 22 the interpolant.

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
            own = np.flatnonzero(row)
            terms[i], slopes[i, : own.size], weights[i, : own.size] = own.size, own, row[own]
        return cls(*(read_only(part) for part in (terms, slopes, weights)))


class Lanes(NamedTuple):
    """A step of each of `LANES` members, which stand on the last axis.

    Attributes
    ----------
    setting : (4, lanes)
        K, M, eta_Y, eta_Z.
    count : (kinds, lanes)
    y, new : (size, lanes)
        States at its start and its end.
    slopes : (17, size, lanes)
        Derivatives at its stages, the last for trials.
    t, h : (lanes,)
        Its start and its length.
    """

    setting: np.ndarray
    count: np.ndarray
    y: np.ndarray
    new: np.ndarray
    slopes: np.ndarray
    t: np.ndarray
    h: np.ndarray


class Asked(NamedTuple):
    """Steps with a largest speed, or with times of outputs, until there is one for each lane.

    Attributes
    ----------
    steps : Lanes
    end : (size, lanes)
        Their new states.
    who, first, last : (lanes,) int
        Members, and the outputs within.
    needed : (kinds, lanes) int
        Which logits may have their largest speed there.
    filled : (1,) int
        How many there are.
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
        The member (-1: none), its steps and its outputs so far, and those with its newest step; for how many logits a
        largest speed is looked for; whether its last trial was rejected.
    accepted : (lanes,)
        One where the newest trial was accepted, zero elsewhere.
    t_new : (lanes,)
        The ends of trials.
    fastest, needed : (kinds, lanes)
        The largest speeds between steps; of which logits a largest speed is looked for.
    next : (1,) int
        Where in their order the next member to start is.
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
