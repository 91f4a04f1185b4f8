"""JoMA's reduced flow as a forecast for other people's trainings: attention is first sparse, then dense."""

from __future__ import annotations

import numpy as np
import xarray as xr
from yzflow_watch.rivals import (
    SURE,
    Recording,
    future,
    heading,
    leader,
    odds,
    odds_of_turn,
    present,
    said,
    turn_of,
)

_SIZES = np.geomspace(0.2, 4.0, 31)  # candidates for the largest |mu|
_RATES = np.geomspace(1e-3, 1e3, 181)  # candidates for the reduced time at the last step
_GRID = np.concatenate([[0.0], np.geomspace(1e-5, 40.0, 400)])  # values of -ln(1 - v/mu)
_RECORDS = 3  # records that a fit needs at least
_CHANGED = 1e-9  # nats; smaller changes of the entropy do not count


def drive(recording: Recording) -> np.ndarray:
    """Entries of mu up to a common factor, (K, S): frequency of a token before a next token, less its mean frequency.

    This is E[g x_l] for a hidden unit of one next token, once the decoder has learned the frequencies of next tokens.
    """
    share = recording.dataset["share"].values
    return share - share.mean(axis=0)


def weights(mu: np.ndarray, times: np.ndarray) -> np.ndarray:
    r"""Solution v(t) of v' = (mu - v) e^{v^2/2} from zero: (times, ..).

    By the closed form with s = mu (1 - e^{-y}): t = \int_0^Y exp(-mu^2 (1 - e^{-y})^2/2) dy at v = mu (1 - e^{-Y}).
    """
    rates = np.exp(-((mu[..., None] * -np.expm1(-_GRID)) ** 2) / 2)
    steps = np.diff(_GRID) * (rates[..., 1:] + rates[..., :-1]) / 2
    passed = np.concatenate([np.zeros((*mu.shape, 1)), np.cumsum(steps, axis=-1)], axis=-1)
    flat = [np.interp(times, row, _GRID) for row in passed.reshape(-1, len(_GRID))]
    return mu * -np.expm1(-np.reshape(flat, (*mu.shape, len(times)))).transpose(-1, *range(mu.ndim))


class _SparseThenDense:
    """Forecast by Theorem 1 and the reduced flow with a nonlinear activation, for the tokens of each next token.

    Attention is softmax(ln P + v^2/2) with v' = (mu - v) e^{v^2/2} from zero, and mu is proportional to `drive`. The
    factor and the unit of time are fitted to each head's entropy so far. If the entropy has not changed, there is no
    forecast.
    """

    name = "JoMA"

    def predict(self, recording: Recording) -> xr.Dataset:
        """Forecasts for twice the present step: rising tokens, the leader, sparser or not, and the time of the turn."""
        driven = drive(recording)
        past = recording.dataset["entropy"].values
        moved = (np.abs(past - past[0]).max(axis=0) > _CHANGED) & bool(np.abs(driven).max() > 0)
        if recording.steps[-1] < 1 or len(recording.steps) < _RECORDS or not moved.any():
            return said(recording)
        reduced = np.geomspace(_RATES[0] * 1e-3, _RATES[-1] * 64, 241)
        paths = [_Path(driven / np.abs(driven).max() * size, recording, reduced) for size in _SIZES]
        times, towards = future(recording), heading(recording)
        shape = (*moved.shape, *driven.shape)
        rises, leads, turns = np.full(shape, np.nan), np.full(shape, np.nan), np.full(moved.shape, np.nan)
        sparser = np.full(moved.shape, np.nan)
        for head in np.argwhere(moved):
            at = tuple(head)
            path, unit = _fitted(paths, recording.steps, past[(slice(None), *at)])
            clock = unit * times
            entropy = path.entropy_at(clock)
            before, after = (path.gain_at(clock[0] * factor) for factor in (1, 2))
            change = after - before
            rises[at] = odds(change, np.broadcast_to(np.abs(change).max(), change.shape))
            leads[at] = leader(np.where(present(recording), after, -np.inf), recording)
            sparser[at] = SURE if np.interp(2 * times[0], times, entropy) < entropy[0] else 1 - SURE
            turns[at] = turn_of(times, entropy, towards[at])
        return said(recording, rises=rises, leads=leads, sparser=sparser, turns=odds_of_turn(turns, recording))


class _Path:
    """Attention for all next tokens along the reduced flow, in reduced time."""

    def __init__(self, mu: np.ndarray, recording: Recording, times: np.ndarray) -> None:
        share = recording.dataset["share"].values
        self.share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        self.times, self.z = times, weights(mu, times) ** 2 / 2
        raised = self.share * np.exp(self.z - self.z.max(axis=-1, keepdims=True))
        attention = raised / raised.sum(axis=-1, keepdims=True)
        here = self.share > 0
        ratio = np.where(here, attention / np.where(here, self.share, 1.0), 1.0)
        # Over positions, the entropy is that of uniform attention less the divergence from the shares.
        self.entropy = -(attention * np.log(ratio)).sum(axis=-1).mean(axis=-1)

    def entropy_at(self, times: np.ndarray) -> np.ndarray:
        """Entropy less the entropy of uniform attention, in nats, averaged over next tokens."""
        return np.interp(np.log(times), np.log(self.times), self.entropy)

    def gain_at(self, time: float) -> np.ndarray:
        """Logits less their mean under each next token's shares: (K, S)."""
        after = int(np.searchsorted(self.times, time).clip(1, len(self.times) - 1))
        share = np.log(time / self.times[after - 1]) / np.log(self.times[after] / self.times[after - 1])
        z = (1 - share) * self.z[after - 1] + share * self.z[after]
        return z - (self.share * z).sum(axis=-1, keepdims=True)


def _fitted(paths: list[_Path], steps: np.ndarray, entropy: np.ndarray) -> tuple[_Path, float]:
    """The path and the reduced time of one step with the least squared error on a head's entropies."""
    known = steps > 0
    change = (entropy - entropy[0])[known]
    clocks = _RATES[:, None] * (steps[known] / steps[-1])
    off = np.array([((path.entropy_at(clocks) - change) ** 2).sum(axis=1) for path in paths])
    size, rate = np.unravel_index(off.argmin(), off.shape)
    return paths[size], float(_RATES[rate] / steps[-1])


RIVALS = (_SparseThenDense(),)
