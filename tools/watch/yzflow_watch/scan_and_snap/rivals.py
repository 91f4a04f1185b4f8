"""Rivals from this paper's layer: predictions of its flows, of finite sequences and of Adam for a recorded training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from dynamics import Layer, gradient_flow
from theory.scan_and_snap.early import initial_drift
from theory.scan_and_snap.finite_sequences import finite_length_first_moves
from yzflow.papers.scan_and_snap.settings import Setting
from yzflow_watch.measures import gains
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
from yzflow_watch.scan_and_snap.watched import place

_SIGNED = ("Adam", "AdamW", "Adamax", "NAdam", "sign")  # optimizers with the gradient's sign as first step
_SMALL = 1e-3  # entries of Y after a step; alpha stays at 1/M


def _gain(values: np.ndarray, setting: Setting, recording: Recording) -> np.ndarray:
    """Gains of the tokens of each next token, (.., K, S), from logits ``values`` by query and token."""
    logits = values[..., setting.classes.query, :]
    share = recording.dataset["share"].values
    return gains(share * np.exp(logits - logits.max(axis=-1, keepdims=True)), share)


class Predicted:
    """Predictions of a flow of this paper's layer, on the recording's classes and from zero.

    Attributes
    ----------
    name : str
    decoder : str
        As in `dynamics.gradient_flow`.
    """

    def __init__(self, name: str, decoder: str) -> None:
        self.name, self.decoder = name, decoder

    def predict(self, recording: Recording) -> xr.Dataset:
        """Who gains between now and twice now, and leads then; attention gets sparser; and when it turns.

        Without a setting, no prediction.
        """
        setting = place(recording).setting
        if setting is None:
            return said(recording)
        times = future(recording)
        flow = gradient_flow(
            setting.classes,
            eta_y=setting.eta_y,
            eta_z=setting.eta_z,
            t_end=times[-1],
            times=times,
            decoder=self.decoder,
        )
        gain = _gain(flow.dataset["z"].values, setting, recording)
        after = gain[np.searchsorted(times, 2 * times[0])]
        towards = heading(recording)
        entropy = np.broadcast_to(_entropy(flow.dataset["attention"].values), (*towards.shape, len(times)))
        return said(
            recording,
            rises=np.where(after > gain[0], SURE, 1 - SURE),
            leads=leader(np.nan_to_num(after, nan=-np.inf), recording),
            sparser=np.array(SURE),
            turns=odds_of_turn(turn_of(times, entropy, towards), recording),
        )


def _entropy(attention: np.ndarray) -> np.ndarray:
    """Entropy over tokens in the mean over next tokens, (times, K, S) -> (times,)."""
    logs = np.log(np.where(attention > 0, attention, 1.0))
    found: np.ndarray = -(attention * logs).sum(axis=-1).mean(axis=-1)
    return found


class FiniteSequences:
    r"""First moves of attention for sequences of T tokens: those of T -> infinity, and a term of order 1/T.

    From zero, in units of eta_Y eta_Z t^2/2, the logits of the full gradient are ``initial_drift`` of the classes,
    which has Theorem 2's signs, plus p_n^2 (1 - 1/M)/(T - 1) times `finite_length_first_moves` for each next token n of
    the query. This is exact to this order if classes share no tokens. Odds get even where the two parts cancel.
    """

    name = "finite sequences"

    def predict(self, recording: Recording) -> xr.Dataset:
        """Who gains, and who leads. Without a setting, no prediction."""
        setting = place(recording).setting
        if setting is None or setting.length is None or setting.length < 2:
            return said(recording)
        classes = setting.classes
        bags = classes.population()
        share = recording.dataset["share"].values
        late = initial_drift(bags).toarray()
        own = np.zeros_like(late)
        weight = (1 / classes.n_classes) ** 2 * (1 - 1 / classes.vocab_size) / (setting.length - 1)
        for query, row in zip(classes.query, share, strict=True):
            has = row > 0
            own[query, np.flatnonzero(has)] += weight * finite_length_first_moves(row[has] / row.sum())
        first, second = (_centred(part[classes.query], share) for part in (late, own))
        moves = first + second
        return said(
            recording,
            rises=odds(moves, np.abs(first) + np.abs(second)),
            leads=leader(moves, recording),
        )


def _centred(moves: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Moves of logits (K, S) as moves of gains: minus their mean over the shares of each next token."""
    weights = share / share.sum(axis=1, keepdims=True)
    found: np.ndarray = moves - (weights * moves).sum(axis=1, keepdims=True)
    return found


class FirstStep:
    """Signs of the gradient of Z after one step of Adam on Y from zero, on the recording's classes.

    This step gives all entries of Y the same size, so that each token counts equally for a next token, whatever its
    frequency. Adam's steps on Z have equal sizes, too. So tokens with a positive slope gain and others lose, unless all
    tokens of a next token have one sign. Derived for the first step; that the signs last was measured. Predicts only
    for optimizers whose first step is the sign of the gradient.
    """

    name = "Adam's first step"

    def predict(self, recording: Recording) -> xr.Dataset:
        """Who gains; the gaining tokens lead with equal odds. For other optimizers, no prediction."""
        of, setting = recording.facts["optimizer"], place(recording).setting
        if setting is None or of is None or of["name"] not in _SIGNED:
            return said(recording)
        bags = setting.classes.population()
        start = Layer.zeros(bags)
        stepped = replace(start, Y=_SMALL * np.sign(_rounded(start.gradient(bags).Y)))
        slopes = _rounded(stepped.gradient(bags).Z)[setting.classes.query]
        here = present(recording)
        up, down = here & (slopes > 0), here & (slopes <= 0)
        both = up.any(axis=1) & down.any(axis=1)
        shared = SURE * up / np.maximum(up.sum(axis=1, keepdims=True), 1)
        shared += (1 - SURE) * down / np.maximum(down.sum(axis=1, keepdims=True), 1)
        size = np.abs(np.where(here, slopes, 0)).max(axis=1, keepdims=True)
        return said(
            recording,
            rises=odds(slopes * both[:, None], np.broadcast_to(size, slopes.shape)),
            leads=np.where(both[:, None], shared, np.nan),
        )


def _rounded(slopes: np.ndarray) -> np.ndarray:
    """Slopes, with zero for those that cancel up to rounding."""
    return np.where(np.abs(slopes) > 1e-10 * np.abs(slopes).max(), slopes, 0.0)


RIVALS = (
    Predicted("Scan and Snap", "theory"),
    Predicted("its true gradient", "full"),
    FiniteSequences(),
    FirstStep(),
)
