"""Observables of attention as plain array functions, shared by trajectories and sweeps."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from dynamics.bags import Bags
from dynamics.layer import Layer


def given_next_token(bags: Bags) -> tuple[np.ndarray, np.ndarray]:
    """The next tokens that occur, and the probability of each bag given each of them: (next tokens, bags)."""
    joint = bags.joint()
    present = np.flatnonzero(joint.sum(axis=1) > 0)
    return present, joint[present] / joint[present].sum(axis=1, keepdims=True)


def expected_attention(layer: Layer, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
    """c_n, expected attention given the next token: the next tokens that occur, and a (next tokens, tokens) array."""
    present, conditional = given_next_token(bags)
    return present, conditional @ layer.attention(bags)


def distinct_mask(bags: Bags, n_tokens: int | None = None) -> np.ndarray:
    """Whether a token occurs with one next token only: (next tokens that occur, tokens), bool."""
    conditional = given_next_token(bags)[1]
    shape = (len(bags), bags.n_tokens if n_tokens is None else n_tokens)
    support = scipy.sparse.csr_array((np.ones(bags.token.size), bags.token, bags.indptr), shape=shape)
    occurs = ((conditional > 0).astype(float) @ support) > 0
    return occurs & (occurs.sum(axis=0) == 1)


def entropy(attention: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Entropy over the last axis in nats, renormalised on ``mask``; nan where there is no attention on the mask."""
    shares = attention if mask is None else np.where(mask, attention, 0.0)
    total = shares.sum(axis=-1, keepdims=True)
    shares = shares / np.where(total > 0, total, np.nan)
    return -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=-1)


def recall(attention: np.ndarray, mask: np.ndarray, threshold) -> np.ndarray:
    """Share of the tokens on ``mask`` with attention above each threshold: shape of attention less the last axis, then
    the shape of ``threshold``; nan where the mask is empty."""
    threshold = np.asarray(threshold, dtype=float)
    above = attention[..., None] > threshold.ravel()
    counts = np.sum(above & mask[..., None], axis=-2)
    sizes = mask.sum(axis=-1)[..., None]
    shares = counts / np.where(sizes > 0, sizes, np.nan)
    return shares.reshape(*attention.shape[:-1], *threshold.shape)
