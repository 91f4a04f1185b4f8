"""Observables of attention as plain array functions, shared by trajectories and sweeps."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from dynamics._model import kernels
from dynamics.bags import Bags
from dynamics.layer import Layer
from dynamics.support import checks

# `Support.over_time` measures the attention of so many entries at once, over bags and times.
_TOGETHER = 2**20


def given_next_token(bags: Bags) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """The next tokens that occur, and the probability of each bag given each of them: (next tokens, bags)."""
    if checks.instance("bags", bags, Bags).hard:
        entries = (bags.weight, (bags.target, np.arange(len(bags))))
        joint = scipy.sparse.csr_array(entries, shape=(bags.n_targets, len(bags)))
    else:
        joint = scipy.sparse.csr_array(bags.joint())
    share = joint.sum(axis=1)
    present = np.flatnonzero(share > 0)
    return present, scipy.sparse.csr_array(scipy.sparse.diags_array(1 / share[present]) @ joint[present])


class Support:
    """The pairs (next token, token) that occur together, sorted, and attention on them; its arrays are read-only.

    Attributes
    ----------
    present : (next tokens,) int
        The next tokens that occur.
    conditional : (next tokens, bags) sparse array
        Probability of each bag given each of them.
    starts : (next tokens + 1,) int
        Where the pairs of each next token start.
    token : (pairs,) int
    distinct : (pairs,) bool
        Whether the token occurs with this next token only.
    """

    def __init__(self, bags: Bags, n_tokens: int | None = None) -> None:
        self.bags = checks.instance("bags", bags, Bags)
        # Sparse arrays do not check that their indices are in range.
        size = bags.n_tokens if n_tokens is None else n_tokens
        self.n_tokens = checks.integer("n_tokens", size, minimum=bags.n_tokens)
        self.present, self.conditional = given_next_token(bags)
        ones = np.ones(bags.token.size, dtype=np.int64)
        support = scipy.sparse.csr_array((ones, bags.token, bags.indptr), shape=(len(bags), self.n_tokens))
        occurs = scipy.sparse.csr_array((self.conditional > 0).astype(np.int64) @ support)
        occurs.sort_indices()
        self.starts, self.token = occurs.indptr.astype(np.int64), occurs.indices.astype(np.int64)
        self.row = np.repeat(np.arange(self.present.size), np.diff(self.starts))
        self.distinct = np.bincount(self.token, minlength=self.n_tokens)[self.token] == 1
        for array in (self.present, self.starts, self.token, self.row, self.distinct):
            checks.read_only(array)

    def attention(self, shares: scipy.sparse.csr_array) -> np.ndarray:
        """c_n, expected attention given the next token, on the pairs; ``shares`` is the attention of each bag."""
        matrix = checks.of_shape("shares", shares, (len(self.bags), self.n_tokens), sparse=True)
        product = scipy.sparse.coo_array(self.conditional @ matrix)
        values = np.zeros(self.token.size)
        # The product leaves out zeros.
        keys = product.row.astype(np.int64) * self.n_tokens + product.col
        np.add.at(values, np.searchsorted(self.row * self.n_tokens + self.token, keys), product.data)
        return values

    @cached_property
    def _into(self) -> scipy.sparse.csr_array:
        """The share of each entry of the bags in each pair: (pairs, entries)."""
        bags = self.bags
        entries = scipy.sparse.coo_array(self.conditional)
        kept = entries.data > 0
        row, bag, weight = entries.row[kept], entries.col[kept], entries.data[kept]
        length = np.diff(bags.indptr)[bag]
        start = np.cumsum(length) - length
        entry = np.arange(length.sum()) + np.repeat(bags.indptr[bag] - start, length)
        keys = np.repeat(row.astype(np.int64), length) * self.n_tokens + bags.token[entry]
        pair = np.searchsorted(self.row * self.n_tokens + self.token, keys)
        order = np.argsort(pair, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=self.token.size))])
        shape = (self.token.size, bags.token.size)
        return scipy.sparse.csr_array((np.repeat(weight, length)[order], entry[order], indptr), shape=shape)

    def over_time(self, Z: np.ndarray) -> np.ndarray:
        """c_n on the pairs for each time of the attention logits Z (times, queries, tokens); see `attention`."""
        Z = checks.of_shape("Z", Z, (None, None, None))
        bags, times = self.bags, len(Z)
        if bags.n_queries > Z.shape[1] or self.n_tokens > Z.shape[2] or Z.ndim != 3:
            rule = f"have logits of at least {bags.n_queries} queries and {self.n_tokens} tokens at each time"
            raise checks.reject("Z", rule, f"shape {Z.shape}")
        Z = Z if Z.dtype.kind == "f" else Z.astype(float)
        into = self._into
        values = np.empty((times, self.token.size))
        together = max(1, _TOGETHER // max(1, bags.token.size))
        for lo in range(0, times, together):
            shares = self._shares(Z[lo : lo + together])
            values[lo : lo + together] = (into @ np.ascontiguousarray(shares.T)).T
        return values

    def _shares(self, Z: np.ndarray) -> np.ndarray:
        """Attention of each entry of the bags (Lemma 2, (5)) at each time: (times, entries)."""
        bags, (times, queries, tokens) = self.bags, Z.shape
        time, entries = np.arange(times)[:, None], bags.token.size
        shares = np.empty((times, entries), Z.dtype)
        query = (bags.query + queries * time).ravel()
        indptr = np.append((bags.indptr[:-1] + entries * time).ravel(), times * entries)
        token, count = np.tile(bags.token, times), np.tile(bags.count.astype(Z.dtype, copy=False), times)
        arguments = checks.read_only_views((query, indptr, token, count, Z.reshape(-1, tokens)))
        kernels.attention(*arguments, shares.ravel())
        return shares

    def dense(self, values: np.ndarray) -> np.ndarray:
        """Values on the pairs as a (.., next tokens, tokens) table, zero elsewhere."""
        values = checks.of_shape("values", values, (self.token.size,))
        table = np.zeros((*values.shape[:-1], self.present.size, self.n_tokens), values.dtype)
        table[..., self.row, self.token] = values
        return table

    def queries(self) -> np.ndarray:
        """Row of Z of each next token, or -1 where a next token has several."""
        rows = scipy.sparse.coo_array(self.conditional)
        query = self.bags.query[rows.col]
        lowest = np.full(self.present.size, np.iinfo(np.int64).max)
        highest = np.full(self.present.size, -1)
        np.minimum.at(lowest, rows.row, query)
        np.maximum.at(highest, rows.row, query)
        return np.where(lowest == highest, lowest, -1)


def expected_attention(layer: Layer, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
    """c_n, expected attention given the next token: the next tokens that occur, and a (next tokens, tokens) array."""
    checks.instance("layer", layer, Layer)
    present, conditional = given_next_token(bags)
    return present, (conditional @ layer.sparse_attention(bags)).toarray()


def distinct_mask(bags: Bags, n_tokens: int | None = None) -> np.ndarray:
    """True where a token occurs with one next token only: (next tokens that occur, tokens)."""
    support = Support(bags, n_tokens)
    checks.fits_in_memory("n_tokens", support.present.size * support.n_tokens, "make the table")
    return support.dense(support.distinct)


def _checked(attention, mask, starts) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The arguments of the measures below, in shapes that fit each other."""
    attention = checks.array("attention", attention)
    if attention.dtype.kind not in "iufb" or attention.ndim == 0 or attention.size == 0:
        raise checks.reject("attention", "be an array of numbers, not empty", f"{attention.dtype} {attention.shape}")
    if mask is not None:
        mask = checks.array("mask", mask)
        if mask.dtype != bool or mask.ndim == 0 or mask.shape != attention.shape[attention.ndim - mask.ndim :]:
            rule = f"be True or False for the last axes of attention, {attention.shape}"
            raise checks.reject("mask", rule, f"{mask.dtype} {mask.shape}")
    if starts is not None:
        starts, pairs = checks.index_array("starts", starts), attention.shape[-1]
        if starts.size < 2 or starts[0] != 0 or starts[-1] != pairs or (np.diff(starts) <= 0).any():
            raise checks.reject("starts", f"rise from 0 to the {pairs} pairs", starts.tolist())
    return attention, mask, starts


def _sums(values: np.ndarray, starts: np.ndarray | None) -> np.ndarray:
    """Sums over the last axis; with ``starts``, the sum of each segment, repeated for every entry of the segment."""
    if starts is None:
        return values.sum(axis=-1, keepdims=True)
    return np.repeat(np.add.reduceat(values, starts[:-1], axis=-1), np.diff(starts), axis=-1)


def _once(values: np.ndarray, starts: np.ndarray | None) -> np.ndarray:
    """The result of `_sums`, with one entry for each sum."""
    return values[..., 0] if starts is None else values[..., starts[:-1]]


def entropy(attention: np.ndarray, mask: np.ndarray | None = None, starts: np.ndarray | None = None) -> np.ndarray:
    """Entropy over the last axis in nats, renormalised on ``mask``; nan where there is no attention on the mask.

    With the ``starts`` of a `Support`, the last axis holds pairs, and the result has an entry for each next token.
    """
    attention, mask, starts = _checked(attention, mask, starts)
    shares = attention if mask is None else np.where(mask, attention, 0.0)
    total = _sums(shares, starts)
    shares = shares / np.where(total > 0, total, np.nan)
    return _once(-_sums(shares * np.log(np.where(shares > 0, shares, 1.0)), starts), starts)


def _above(attention: np.ndarray, mask: np.ndarray, thresholds: np.ndarray, starts: np.ndarray | None) -> np.ndarray:
    """How many tokens on ``mask`` have attention above each threshold, thresholds last.

    Each token is counted once, by the number of thresholds below its attention: hundreds of thresholds cost as much as
    one.
    """
    order = np.argsort(thresholds)
    passed = np.where(mask & ~np.isnan(attention), np.searchsorted(thresholds[order], attention), 0)
    lengths = np.array([attention.shape[-1]]) if starts is None else np.diff(starts)
    group = np.repeat(np.arange(lengths.size), lengths)
    row = np.arange(passed.size // max(1, passed.shape[-1])).reshape(*passed.shape[:-1], 1) * lengths.size + group
    kinds, rows = thresholds.size + 1, passed.size // max(1, passed.shape[-1]) * lengths.size
    tallies = np.bincount((row * kinds + passed).ravel(), minlength=rows * kinds).reshape(rows, kinds)
    counts = np.empty((rows, thresholds.size), np.int64)
    counts[:, order] = tallies[:, :0:-1].cumsum(axis=1)[:, ::-1]
    groups = () if starts is None else (lengths.size,)
    return counts.reshape(*passed.shape[:-1], *groups, thresholds.size)


def recall(
    attention: np.ndarray, mask: np.ndarray, threshold: ArrayLike, starts: np.ndarray | None = None
) -> np.ndarray:
    """Share of the tokens on ``mask`` with attention above each threshold: shape of attention less the last axis, then
    the shape of ``threshold``; nan where the mask is empty. For ``starts`` see `entropy`."""
    attention, mask, starts = _checked(attention, checks.array("mask", mask), starts)
    threshold = checks.finite_array("threshold", threshold)
    if threshold.size == 0:
        raise checks.reject("threshold", "hold at least one number", "none")
    sizes = _once(_sums(mask, starts), starts)
    counts = _above(attention, mask, threshold.ravel(), starts)
    shares = counts / np.where(sizes > 0, sizes, np.nan)[..., None]
    return shares.reshape((*counts.shape[:-1], *threshold.shape))
