"""Turns of the entropy of attention: attention gets denser after it got sparser, or the other way round."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from yzflow_watch.recording import Recording

__all__ = ["AHEAD", "SURE", "future", "heading", "odds_of_turn", "turn_of", "turned", "uniform_odds"]

SURE = 0.9  # probability of an event that a theory predicts
AHEAD = (2, 4, 8, 16, 32, 64)  # multiples of the step; a prediction says if a turn comes before each
_BACK = 0.1  # a turn is a return by more than this part of the entropy's range so far
_STILL = 0.01  # entropy stands still below this part of its range


def _moment(recording: Recording) -> float:
    return float(max(recording.steps[-1], 1))


def future(recording: Recording, *, points: int = 49) -> np.ndarray:
    """Times, in steps, from the end of a recording to the last multiple in `AHEAD`, in equal ratios."""
    return _moment(recording) * np.geomspace(1.0, AHEAD[-1], points)


def heading(recording: Recording) -> np.ndarray:
    """Sign of the change of entropy in the last half of the steps, (layer, head); 0 if it stands still.

    It stands still if the change is less than a hundredth of the entropy's range so far, if there is no record in the
    first half, or if an earlier entropy is NaN.
    """
    steps, entropy = recording.steps, recording.dataset["entropy"].values
    before = np.flatnonzero(steps <= steps[-1] / 2)
    if not before.size or before[-1] == len(steps) - 1:
        return np.zeros(entropy.shape[1:])
    change = entropy[-1] - entropy[before[-1]]
    return np.where(np.abs(change) > _STILL * np.ptp(entropy, axis=0) + 1e-12, np.sign(change), 0.0)


def turned(recording: Recording, now: int) -> np.ndarray:
    """Outcome of a turn of entropy before each multiple in `AHEAD` of a step: (layer, head, ahead), 1 or 0.

    Entropy has turned when, against its `heading` at the step, it has come back from its extreme since then by more
    than a tenth of its range until then. NaN if it stood still at the step, or is NaN before the multiple. NaN also if
    the recording ends before the multiple, whatever the outcome, so that the choice of scored events does not depend on
    it.
    """
    steps, entropy = recording.steps, recording.dataset["entropy"].values
    towards = heading(recording.until(now))
    along = towards * entropy
    span = np.maximum.accumulate(entropy) - np.minimum.accumulate(entropy)
    after = steps >= now
    extreme = np.maximum.accumulate(along[after])
    back = extreme - along[after] > _BACK * span[after]
    found = np.full((*towards.shape, len(AHEAD)), np.nan)
    for place, factor in enumerate(AHEAD):
        limit = factor * max(now, 1)
        if limit <= steps[-1]:
            gone = np.isnan(entropy[steps <= limit]).any(axis=0)
            found[..., place] = np.where(gone, np.nan, back[steps[after] <= limit].any(axis=0))
    return np.where((towards == 0)[..., None], np.nan, found)


def turn_of(times: np.ndarray, entropy: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Time of the extreme of a predicted entropy, in the direction of each head; infinite if it is at the end.

    Parameters
    ----------
    times : (times,) array
        The times of `future`.
    entropy : (.., times) array
    towards : (..) array
        The result of `heading`; NaN is returned where it is 0.
    """
    place = (towards[..., None] * entropy).argmax(axis=-1)
    found = np.where(place == len(times) - 1, np.inf, times[place])
    return np.where(towards == 0, np.nan, found)


def odds_of_turn(at: np.ndarray, recording: Recording) -> np.ndarray:
    """Probabilities (.., ahead) of a turn before each multiple in `AHEAD`, from its predicted time.

    They lie between 1 - `SURE` and `SURE`, are even at the predicted time, and are logistic in the logarithm of time
    over ln 2. An infinite time means no turn, and NaN no prediction.
    """
    late = (np.log(np.array(AHEAD) * _moment(recording)) - np.log(at)[..., None]) / np.log(2)
    return (1 - SURE) + (2 * SURE - 1) * expit(late)


def uniform_odds() -> np.ndarray:
    """Probabilities of a turn that is as likely in each doubling: (ahead,)."""
    return np.linspace(1 - SURE, SURE, len(AHEAD))
