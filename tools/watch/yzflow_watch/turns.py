"""Turns of the entropy of attention: when what gets sparser gets denser again, or the other way."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from yzflow_watch.recording import Recording

__all__ = ["AHEAD", "SURE", "future", "heading", "odds_of_turn", "turn_of", "turned", "uniform_odds"]

SURE = 0.9  # probability that a theory gives to what it says will happen
AHEAD = (2, 4, 8, 16, 32, 64)  # a turn is foreseen to lie before these multiples of the step
_BACK = 0.1  # part of the entropy's range so far that a turn has taken back
_STILL = 0.01  # part of that range below which entropy stands still


def _moment(recording: Recording) -> float:
    return float(max(recording.steps[-1], 1))


def future(recording: Recording, *, points: int = 49) -> np.ndarray:
    """Times, in steps, from the end of a recording to the last multiple in `AHEAD`, in equal ratios."""
    return _moment(recording) * np.geomspace(1.0, AHEAD[-1], points)


def heading(recording: Recording) -> np.ndarray:
    """Sign of the change of entropy in the last half of the steps, (layer, head); 0 where it stands still.

    Standing still is less than a hundredth of the entropy's range so far, or no record in the first half; also where an
    entropy so far is no number.
    """
    steps, entropy = recording.steps, recording.dataset["entropy"].values
    before = np.flatnonzero(steps <= steps[-1] / 2)
    if not before.size or before[-1] == len(steps) - 1:
        return np.zeros(entropy.shape[1:])
    change = entropy[-1] - entropy[before[-1]]
    return np.where(np.abs(change) > _STILL * np.ptp(entropy, axis=0) + 1e-12, np.sign(change), 0.0)


def turned(recording: Recording, now: int) -> np.ndarray:
    """Whether entropy has turned before each multiple in `AHEAD` of a step: (layer, head, ahead), 1 or 0.

    It has turned when, against its `heading` at the step, it has come back from its extreme since then by more than a
    tenth of its range until then. NaN where it stood still at the step, where the recording ends before, whatever the
    outcome, so that what is scored does not depend on it, and where entropy is no number before.
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
    """Time of the extreme of an entropy that is foreseen, in the direction of each head; infinite if it is the end.

    Parameters
    ----------
    times : (times,) array
        As `future` gives them.
    entropy : (.., times) array
    towards : (..) array
        As `heading` gives it; NaN is returned where it is 0.
    """
    place = (towards[..., None] * entropy).argmax(axis=-1)
    found = np.where(place == len(times) - 1, np.inf, times[place])
    return np.where(towards == 0, np.nan, found)


def odds_of_turn(at: np.ndarray, recording: Recording) -> np.ndarray:
    """Probabilities (.., ahead) of a turn before each multiple in `AHEAD`, from the time at which it is foreseen.

    Between 1 - `SURE` and `SURE`, even at the time itself, and logistic in the logarithm of time over ln 2. Infinite
    times are no turn, and NaN is nothing said.
    """
    late = (np.log(np.array(AHEAD) * _moment(recording)) - np.log(at)[..., None]) / np.log(2)
    return (1 - SURE) + (2 * SURE - 1) * expit(late)


def uniform_odds() -> np.ndarray:
    """Probabilities of a turn that is as likely in each doubling: (ahead,)."""
    return np.linspace(1 - SURE, SURE, len(AHEAD))
