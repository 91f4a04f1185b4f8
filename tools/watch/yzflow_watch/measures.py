"""Measures of attention by token: the last query's attention in each sequence, for each next token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array

from dynamics.support import checks

__all__ = [
    "PLACES",
    "Probe",
    "attention_by_place",
    "by_token",
    "check_padding",
    "entropy",
    "gains",
    "moved_by_order",
    "on_context",
    "token_attention",
    "uniform_by_place",
]

_SMALL = 1e-12
_ON_PADDING = 1e-3  # share of attention


@dataclass(frozen=True)
class Probe:
    """Sequences on which a model is looked at, and the tokens and next tokens with their own records.

    Attributes
    ----------
    tokens : (n, T) int array
        The last column is the query.
    following : (n,) int array
        Next tokens.
    classes : (K,) int array
        The most frequent next tokens, each with its own record.
    kept : (S,) int array
        The most frequent tokens of the context, each with its own record.
    real : (n, T - 1) bool array
        Positions of the context that are not padding.
    """

    tokens: np.ndarray
    following: np.ndarray
    classes: np.ndarray
    kept: np.ndarray
    real: np.ndarray

    @classmethod
    def of(cls, tokens: np.ndarray, *, n_classes: int, n_tokens: int, real: np.ndarray | None = None) -> Probe:
        """A probe of sequences whose last column is the next token, with at most ``n_classes`` and ``n_tokens``."""
        context, following = tokens[:, :-1], tokens[:, -1]
        real = np.ones(context[:, :-1].shape, dtype=bool) if real is None else real
        kept = _frequent(context[:, :-1][real], n_tokens)
        return cls(context, following, _frequent(following, n_classes), kept, real)

    @property
    def query(self) -> np.ndarray:
        """Query of each sequence."""
        return self.tokens[:, -1]

    @property
    def context(self) -> np.ndarray:
        """Tokens before the query: (n, T - 1)."""
        return self.tokens[:, :-1]

    @property
    def class_query(self) -> np.ndarray:
        """Most frequent query of each class."""
        return np.array([_frequent(self.query[self.following == n], 1)[0] for n in self.classes])

    @property
    def one_query(self) -> float:
        """Share of the sequences that have the most frequent query of their next token."""
        most = [np.unique(self.query[self.following == n], return_counts=True)[1].max() for n in self.classes]
        return float(sum(most) / np.isin(self.following, self.classes).sum())

    @property
    def counts(self) -> np.ndarray:
        """Number of the sequences of each class: (K,)."""
        return (self.following[:, None] == self.classes).sum(axis=0)

    @cached_property
    def shares(self) -> np.ndarray:
        """P(l|n): mean frequency of each kept token in the contexts of each class, (K, S)."""
        uniform = self.real / self.real.sum(axis=1, keepdims=True)
        return token_attention(uniform[:, None], self)[0]

    def orders(self, n: int) -> np.ndarray:
        """Random orders of the contexts of the first sequences, (n, T - 1); padding stays where it is."""
        places = np.tile(np.arange(self.context.shape[1]), (n, 1))
        found = np.random.default_rng(0).permuted(places, axis=1)
        for row, real in zip(found, self.real[:n], strict=True):
            moved = row[real[row]]
            row[:] = np.arange(len(row))
            row[real] = moved
        return found

    @cached_property
    def pairs(self) -> tuple[np.ndarray, csr_array, csr_array, np.ndarray]:
        """Number of (query, token) at each real position, counts in each sequence, normal equations, and lengths.

        Counts C are (pairs, n). With N the count of each pair over all sequences, the normal equations of the
        sequences' constants are diag(lengths) - C^T diag(1/N) C.
        """
        numbers = self.query[:, None] * (int(self.tokens.max()) + 1) + self.context
        _, pair = np.unique(numbers[self.real], return_inverse=True)
        pair, row = pair.ravel(), np.repeat(np.arange(len(numbers)), self.real.sum(axis=1))
        both, lengths = csr_array((np.ones(len(pair)), (pair, row))), np.bincount(row).astype(float)
        shared = both.T @ (both / np.bincount(pair)[:, None])
        return pair, both, csr_array(diags_array(lengths) - shared), lengths[:, None]


def _frequent(values: np.ndarray, most: int) -> np.ndarray:
    """The ``most`` most frequent values, in increasing order; of equally frequent ones the smaller."""
    found, counts = np.unique(values, return_counts=True)
    return np.sort(found[np.argsort(-counts, kind="stable")[:most]])


def check_padding(attention: np.ndarray, probe: Probe) -> None:
    """ValueError if attention (layers, n, heads, T) is on padding."""
    share = float(np.where(probe.real[:, None], 0.0, attention[..., :-1]).sum(axis=-1).max())
    if share > _ON_PADDING:
        rule = "reach the model, whose attention has to leave out the padding that they mark"
        raise checks.reject("inputs", rule, f"{share:.2g} of attention on it")


def on_context(attention: np.ndarray) -> np.ndarray:
    """Attention (.., T) on the context alone, renormalised; NaN where it is zero or unknown.

    All of it may be on the query itself, and a mask may leave nothing.
    """
    context = attention[..., :-1]
    total = context.sum(axis=-1, keepdims=True)
    return np.where(total > 0, context / np.where(total > 0, total, 1.0), np.nan)


def token_attention(attention: np.ndarray, probe: Probe) -> np.ndarray:
    """Attention on each kept token, mean over the sequences of each class: c_n of the paper for T -> infinity.

    Parameters
    ----------
    attention : (n, heads, T - 1) array
        Attention of the last query on the context.
    probe : Probe

    Returns
    -------
    (heads, K, S) array
        NaN for a class with a sequence whose attention is NaN.
    """
    found = np.zeros((attention.shape[1], len(probe.classes), len(probe.kept)))
    place = np.searchsorted(probe.kept, probe.context).clip(max=len(probe.kept) - 1)
    known = probe.kept[place] == probe.context
    for k, following in enumerate(probe.classes):
        rows = np.flatnonzero(probe.following == following)
        here, where = known[rows], place[rows]
        for head in range(attention.shape[1]):
            weights = attention[rows, head]
            total = np.bincount(where[here], weights[here], minlength=len(probe.kept)) / len(rows)
            found[head, k] = np.nan if np.isnan(weights).any() else total
    return found


def gains(attention: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Logits z up to a constant for each class: ln(c/P), less its mean over the class with weights P.

    Parameters
    ----------
    attention : (heads, K, S) array
        c.
    shares : (K, S) array
        P.

    Returns
    -------
    (heads, K, S) array
        NaN for a token that the class lacks, and for a whole class with an unknown token or without attention.
    """
    present = shares > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(present, np.log(np.maximum(attention, np.finfo(float).tiny) / shares), np.nan)
    found = np.where(attention.sum(axis=-1, keepdims=True) > 0, found, np.nan)
    weights = np.where(present, shares, 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    mean = np.where(present, weights * found, 0.0).sum(axis=-1, keepdims=True) / np.where(total > 0, total, 1.0)
    return found - mean


def entropy(attention: np.ndarray) -> np.ndarray:
    """Entropy over positions, mean over sequences, nats: (n, heads, T - 1) -> (heads,)."""
    logs = np.log(np.maximum(attention, np.finfo(float).tiny))
    return -(attention * logs).sum(axis=-1).mean(axis=0)


def moved_by_order(attention: np.ndarray, other: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Share of attention that moves to other tokens when the context comes in another order, mean over sequences.

    Parameters
    ----------
    attention, other : (n, heads, T - 1) array
        Attention in the first order, and in the second.
    order : (n, T - 1) int array
        The second context is the first one at these places.

    Returns
    -------
    (heads,) array
        Between 0, for attention by tokens alone, and 1.
    """
    first = np.take_along_axis(attention, order[:, None, :], axis=-1)
    return 0.5 * np.abs(first - other).sum(axis=-1).mean(axis=0)


def by_token(attention: np.ndarray, probe: Probe) -> np.ndarray:
    """Share of the variance of ln attention within sequences that (query, token) explains.

    (n, heads, T - 1) -> (heads,); one where attention is a softmax of logits z over tokens, and where it is uniform;
    NaN for NaN attention. Padding is left out.
    """
    logs = np.log(np.maximum(attention, np.finfo(float).tiny))
    real, length = probe.real, probe.real.sum(axis=1)
    logs = logs - np.where(real[:, None], logs, 0.0).sum(axis=-1, keepdims=True) / length[:, None, None]
    values = np.moveaxis(logs, 1, 0)[:, real]
    total = (values**2).sum(axis=1)
    found, some = np.ones(len(values)), ~(total <= _SMALL * values.shape[1])  # NaN, too
    if some.any():
        found[some] = 1 - _residual(values[some], total[some], probe) / total[some]
    return found


def _residual(values: np.ndarray, total: np.ndarray, probe: Probe, rounds: int = 50) -> np.ndarray:
    """Sums of squares that a constant for each sequence and one for each pair leave, by alternating means: (heads,).

    ``values`` (heads, positions) have mean 0 in each sequence. The constants of pairs are eliminated. Each step adds
    the mean residual of a sequence to its constant.
    """
    pair, both, rest, lengths = probe.pairs
    counts = np.bincount(pair)[:, None]
    sums = np.stack([np.bincount(pair, one) for one in values], axis=1)
    wanted = -(both.T @ (sums / counts))
    left = total - (sums**2 / counts).sum(axis=0)
    constants, missing, now = np.zeros_like(wanted), wanted, left
    for _ in range(rounds):
        before = now
        constants = constants + missing / lengths
        missing = wanted - rest @ constants
        now = left - (constants * (wanted + missing)).sum(axis=0)
        if not (before - now > 1e-6 * total).any():
            break
    return np.maximum(now, 0.0)


PLACES = ("previous_token", "prefix_match", "first_position")  # possible places of the last query's attention


def _after_earlier(tokens: np.ndarray, real: np.ndarray) -> np.ndarray:
    """True at places before the query whose token follows an earlier occurrence of the query: (n, T)."""
    found = np.zeros(tokens.shape, dtype=bool)
    found[:, 1:-1] = (tokens[:, :-2] == tokens[:, -1:]) & real[:, :-1]
    return found


def attention_by_place(attention: np.ndarray, tokens: np.ndarray, real: np.ndarray) -> dict[str, np.ndarray]:
    r"""Attention of the last query on the places of `PLACES`, mean over sequences.

    With a_s the attention of the query at T - 1 on place s, its own among them, ``previous_token`` is a_{T-2}.
    ``prefix_match`` is :math:`\sum_{0 < s < T-1,\, x_{s-1} = x_{T-1}} a_s`, on the tokens that followed the query's own
    token before, over the sequences that have such a place (Olsson et al. 2022, induction heads). ``first_position`` is
    a_0 (Xiao et al. 2023, attention sinks), on the first place that is no padding.

    Parameters
    ----------
    attention : (n, heads, T) array
        Attention of the last query on all places.
    tokens : (n, T) int array
    real : (n, T - 1) bool array
        Places before the query that are not padding.

    Returns
    -------
    dict of (heads,) arrays
        NaN without a matching place, and for NaN attention.
    """
    after = _after_earlier(tokens, real)
    rows = after.any(axis=1)
    matched = np.where(after[rows, None], attention[rows], 0.0).sum(axis=-1)
    first = np.take_along_axis(attention, real.argmax(axis=1)[:, None, None], axis=-1)
    values = (
        attention[..., -2].mean(axis=0),
        matched.mean(axis=0) if rows.any() else np.full(attention.shape[1], np.nan),
        first[..., 0].mean(axis=0),
    )
    return dict(zip(PLACES, values, strict=True))


def uniform_by_place(tokens: np.ndarray, real: np.ndarray) -> dict[str, float | None]:
    """The scores of `attention_by_place` for uniform attention; None without a matching place."""
    after, share = _after_earlier(tokens, real), 1 / (1 + real.sum(axis=1))
    rows = after.any(axis=1)
    matched = float((share * after.sum(axis=1))[rows].mean()) if rows.any() else None
    return dict(zip(PLACES, (float(share.mean()), matched, float(share.mean())), strict=True))
