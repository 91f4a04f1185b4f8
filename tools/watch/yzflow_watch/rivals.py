"""Theories as rivals: the predictions of each for a training from its past, and their scores."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import xarray as xr

from yzflow_watch.recording import Recording
from yzflow_watch.turns import AHEAD, SURE, future, heading, odds_of_turn, turn_of, turned, uniform_odds

__all__ = [
    "AHEAD",
    "NULLS",
    "QUANTITIES",
    "SURE",
    "Recording",
    "Rival",
    "foreseen",
    "frequent",
    "future",
    "heading",
    "leader",
    "odds",
    "odds_of_turn",
    "outcome",
    "present",
    "said",
    "score",
    "turn_of",
    "turned",
    "uniform_odds",
]

_HEADS = ("layer", "head")
_TOKENS = (*_HEADS, "next_token", "token")
QUANTITIES = {"rises": _TOKENS, "leads": _TOKENS, "sparser": _HEADS, "turns": (*_HEADS, "ahead")}
_CLEAR = 0.1  # from this part of its size on, the sign of a number is certain


class Rival(Protocol):
    """A theory of training that makes predictions.

    Attributes
    ----------
    name : str
    """

    name: str

    def predict(self, recording: Recording) -> xr.Dataset:
        """Probabilities of later events, from the past in ``recording``; missing quantities are not predicted.

        Returns
        -------
        xarray.Dataset
            Of ``rises`` (layer, head, next_token, token): that the gain of a token is larger at the end than now;
            ``leads``, likewise: that the token has the largest gain of its next token at the end, one in sum;
            ``sparser`` (layer, head): that the entropy of attention is smaller at the end; and ``turns`` (layer, head,
            ahead): that entropy has turned, as `yzflow_watch.turns.turned` has it, before each multiple `AHEAD` of
            this step. NaN: nothing is said.
        """


def present(recording: Recording) -> np.ndarray:
    """True for tokens that occur with a next token: (K, S)."""
    return recording.dataset["share"].values > 0


def frequent(recording: Recording) -> np.ndarray:
    """True for tokens at least as frequent with a next token as the median token that occurs with it: (K, S)."""
    share, here = recording.dataset["share"].values, present(recording)
    middle = np.array([np.median(row[has]) if has.any() else 0.0 for row, has in zip(share, here, strict=True)])
    return share >= middle[:, None]


def said(recording: Recording, **given: np.ndarray) -> xr.Dataset:
    """A prediction from arrays over the last axes of each quantity; missing leading axes are broadcast."""
    data = recording.dataset
    found = {}
    for name, values in given.items():
        axes = QUANTITIES[name]
        full = np.broadcast_to(values, _shape(recording, axes)).astype(float)
        found[name] = (axes, np.where(present(recording), full, np.nan) if axes == _TOKENS else full)
    return xr.Dataset(found, {name: data[name] for name in ("next_token", "token")} | {"ahead": list(AHEAD)})


def _shape(recording: Recording, axes: tuple[str, ...]) -> tuple[int, ...]:
    sizes = {**recording.dataset.sizes, "ahead": len(AHEAD)}
    return tuple(sizes[axis] for axis in axes)


def odds(values: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Probabilities that numbers are positive, for a theory that gives each number and the size of its terms.

    `SURE` from a tenth of the size on, and 1 - `SURE` below minus that. In between, where the terms of the number
    cancel, linear in the number. Even odds if the size is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        clear = np.clip(np.where(size > 0, values / (_CLEAR * size), 0.0), -1.0, 1.0)
    return 0.5 + (SURE - 0.5) * clear


def leader(scores: np.ndarray, recording: Recording) -> np.ndarray:
    """`SURE` for the present token with the largest score of each next token; the others share the rest."""
    here = present(recording)
    best = np.where(here, scores, -np.inf).argmax(axis=-1)
    others = np.maximum(here.sum(axis=-1) - 1, 1)
    found = np.broadcast_to(((1 - SURE) / others)[:, None], here.shape)
    one_hot = np.arange(here.shape[-1]) == best[..., None]
    return np.where(one_hot, SURE, np.broadcast_to(found, one_hot.shape))


class _Nothing:
    """Null: nothing changes. Signs are even, the leader stays, and entropy does not turn."""

    name = "nothing changes"

    def predict(self, recording: Recording) -> xr.Dataset:
        gain = recording.dataset["gain"].isel(step=-1).values
        ahead = leader(np.nan_to_num(gain, nan=-np.inf), recording)
        half = np.array(0.5)
        never = odds_of_turn(np.array(np.inf), recording)
        return said(recording, rises=half, leads=ahead, sparser=half, turns=never)


class _Frequent:
    """Null: frequent tokens gain, and the most frequent one leads."""

    name = "frequent tokens gain"

    def predict(self, recording: Recording) -> xr.Dataset:
        rises, share = np.where(frequent(recording), SURE, 1 - SURE), recording.dataset["share"].values
        return said(recording, rises=rises, leads=leader(share, recording), sparser=np.array(SURE))


class _Anything:
    """Null: signs are even, all tokens are equally likely to lead, and a turn is as likely in each doubling of time.

    A rival that is sure of a wrong leader scores worse than this null, which knows nothing.
    """

    name = "anything is as likely"

    def predict(self, recording: Recording) -> xr.Dataset:
        here, half = present(recording), np.array(0.5)
        each = here / np.maximum(here.sum(axis=-1, keepdims=True), 1)
        return said(recording, rises=half, leads=each, sparser=half, turns=uniform_odds())


NULLS: tuple[Rival, ...] = (_Nothing(), _Frequent(), _Anything())


def foreseen(rival: Rival, recording: Recording) -> xr.Dataset:
    """Predictions of a rival, checked: known quantities, shapes of the recording, probabilities.

    Predictions are NaN for attention that is NaN at the end of the recording.

    Raises
    ------
    ValueError
        If the rival returns something else.
    """
    found = rival.predict(recording)
    for name, values in found.data_vars.items():
        axes = QUANTITIES.get(str(name))
        if axes is None or values.dims != axes or values.shape != _shape(recording, axes):
            raise ValueError(f"{rival.name} must foresee {', '.join(QUANTITIES)} over their axes, but got {name}")
        known = values.values[~np.isnan(values.values)]
        if known.size and (known.min() < 0 or known.max() > 1):
            raise ValueError(f"{rival.name} must give probabilities, but {name} has {known.min():g} to {known.max():g}")
    last = recording.dataset.isel(step=-1)
    if not last["entropy"].isnull().any():
        return found
    gone = {_TOKENS: last["gain"].isnull(), _HEADS: last["entropy"].isnull()}
    return found.map(lambda values: values.where(~gone[_TOKENS if "token" in values.dims else _HEADS]))


def outcome(recording: Recording, now: int) -> xr.Dataset:
    """Outcomes between a step and the end of a recording: 1 or 0 for each event that can be predicted.

    NaN for a gain that is the same at both ends, for a shared lead, for a turn after the end of the recording, and for
    attention that is NaN.
    """
    data = recording.dataset
    before, after = data.sel(step=now), data.isel(step=-1)
    change = (after["gain"] - before["gain"]).values
    gain = np.where(present(recording), after["gain"].values, -np.inf)
    first = gain == gain.max(axis=-1, keepdims=True)
    lost = (np.isnan(change) & present(recording)).any(axis=-1, keepdims=True)  # attention was not known at one end
    shared = lost | (first.sum(axis=-1, keepdims=True) != 1)
    less = (after["entropy"] - before["entropy"]).values
    return said(
        recording,
        rises=np.where(np.isnan(change) | (change == 0), np.nan, change > 0),
        leads=np.where(shared, np.nan, first),
        sparser=np.where(np.isnan(less) | (less == 0), np.nan, less < 0),
        turns=turned(recording, now),
    )


def score(prediction: xr.Dataset, happened: xr.Dataset) -> dict[str, float]:
    """Brier score of each predicted quantity: mean squared difference from the outcome; 0 is best.

    The score of ``leads`` is summed over the tokens of a next token, before the mean; the score of ``turns``, a mean
    over the multiples `AHEAD`, is a ranked probability score. A quantity without predictions of known outcomes is left
    out.
    """
    found = {}
    for name in prediction.data_vars:
        square = (prediction[name] - happened[name]) ** 2
        square = square.sum("token", min_count=1) if name == "leads" else square
        if square.notnull().any():
            found[str(name)] = float(square.mean())
    return found
