"""Distinct and common tokens estimated from finite data, where Omega(l) is unknown.

Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380, Section 3.2) calls a token l distinct to the next token n if
P(n | l) = 1, and common if several next tokens have P(n | l) > 0. A sample cannot tell distinct from common: a token
that was seen once was seen with one next token. But a sample bounds the share P(n | l).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import ArrayLike

from dynamics import Bags
from dynamics.support import checks

__all__ = ["COMMON", "DISTINCT", "UNDECIDED", "TokenEstimates"]

DISTINCT, UNDECIDED, COMMON = 1, 0, -1


class TokenEstimates:
    """Estimates of P(n | l) from a sample of sequences: the share of next token n among sequences that contain token l.

    The sequences are the trials, and not the occurrences: a word that was used once is likely to be used again soon, so
    that occurrences in one sequence are not independent. Windows of a text are closest to independent where they do not
    overlap (``stride`` of at least T + 1).

    Parameters
    ----------
    bags : Bags
        One bag per sequence, with next tokens (no distributions) and equal weights.

    Attributes
    ----------
    trials : (n_tokens,) int
        Number of sequences that contain the token.
    seen : (n_tokens, M) scipy.sparse array of int
        Number of sequences that contain the token and are followed by the next token.
    probability : (M,) float
        Share of the next token among all sequences.

    Raises
    ------
    ValueError
        If the bags have distributions as targets, or unequal weights.
    """

    def __init__(self, bags: Bags):
        if not checks.instance("bags", bags, Bags).hard:
            raise checks.reject("bags", "have next tokens", "distributions over them")
        if np.ptp(bags.weight) > 1e-9 / len(bags):
            raise checks.reject("bags", "have equal weights, one for each sequence", f"{bags.weight}")
        ones = np.ones(bags.token.size, dtype=np.int64)
        holds = scipy.sparse.csr_array((ones, bags.token, bags.indptr), shape=(len(bags), bags.n_tokens))
        rows = np.arange(len(bags))
        follows = scipy.sparse.csr_array((ones[rows], (rows, bags.target)), shape=(len(bags), bags.vocab_size))
        self.seen = scipy.sparse.csr_array(holds.T @ follows)
        self.seen.sort_indices()
        self.trials = np.bincount(bags.token, minlength=bags.n_tokens)
        self.probability = np.bincount(bags.target, minlength=bags.vocab_size) / len(bags)

    def interval(
        self, token: ArrayLike, next_token: ArrayLike, *, level: float = 0.05
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate of P(n | l), with the interval of Clopper and Pearson (1934).

        Parameters
        ----------
        token, next_token : array_like of int
            l and n, broadcast against each other.
        level : float
            Bound on the probability, over samples, that the interval misses the true share.

        Returns
        -------
        estimate, lower, upper : arrays of the broadcast shape
            nan, 0 and 1 for a token that was never seen.
        """
        level = _level(level)
        seen, trials = self._pairs(token, next_token)
        with np.errstate(invalid="ignore"):
            estimate = seen / trials
        # An end without a quantile is 0 or 1.
        lower = scipy.special.betaincinv(np.maximum(seen, 1), trials - seen + 1, level / 2)
        upper = scipy.special.betaincinv(seen + 1, np.maximum(trials - seen, 1), 1 - level / 2)
        return estimate, np.where(seen > 0, lower, 0.0), np.where(seen < trials, upper, 1.0)

    def kind(
        self,
        token: ArrayLike,
        next_token: ArrayLike,
        *,
        share: float | None = None,
        lift: float | None = None,
        level: float = 0.05,
    ) -> np.ndarray:
        """Whether token l is distinct to next token n, or common, or too rare to say.

        Parameters
        ----------
        token, next_token : array_like of int
            l and n, broadcast against each other.
        share, lift : float
            Give one of the two. They set the bound q between distinct, P(n | l) >= q, and common, P(n | l) < q. q is
            ``share``, in (0, 1), or P(n) times ``lift`` > 1; then P(l | n) >= ``lift`` P(l). In the limit of much data,
            ``share`` next to 1 is the definition of the paper. Real text has no such tokens; ``lift`` grades its words.
        level : float
            False-alarm rate: bound on two probabilities over samples. First, that a token is called distinct to any n
            with P(n | l) < q; second, that a pair with P(n | l) >= q is called common.

        Returns
        -------
        int8 array of the broadcast shape
            `DISTINCT`, `COMMON` or `UNDECIDED`.

        Raises
        ------
        ValueError
            If an index or a bound is out of range.

        Notes
        -----
        Exact binomial tests: distinct if ``P[Bin(N, q) >= k] <= level q``, common if ``P[Bin(N, q) <= k] <= level``,
        for k of the N sequences with l. The factor q pays for looking at all n: the chance t(p) of an alarm is convex
        in the share p up to q, and t(0) = 0, hence at most ``level q (p/q) = level p``, and the p of all n sum to
        one. So k = N = 2 is never enough: at q = 1/2 and level 0.05 it takes six sequences, all with n.
        P(n) is taken as known: it is estimated from all sequences, P(n | l) from those with l.
        """
        level = _level(level)
        bound = self._bound(share, lift)
        seen, trials = self._pairs(token, next_token)
        bound = bound[checks.integer_array("next_token", next_token)]
        possible = (bound < 1) & (seen > 0)
        at_least = np.where(possible, scipy.special.betainc(np.maximum(seen, 1), trials - seen + 1, bound), 1.0)
        at_most = scipy.special.betaincc(seen + 1, np.maximum(trials - seen, 1), bound)
        at_most = np.where(seen < trials, at_most, 1.0)
        kind = np.where(at_least <= level * bound, DISTINCT, np.where(at_most <= level, COMMON, UNDECIDED))
        return kind.astype(np.int8)

    def tokens(self, *, share: float = 0.5, level: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """`kind` of each token over all next tokens, and the next token that follows it most often.

        Distinct means distinct to this next token. Common means P(n | l) < ``share`` for every n.

        Returns
        -------
        kind : (n_tokens,) int8
        next_token : (n_tokens,) int
            -1 for a token that was never seen.
        """
        most = np.full(self.trials.size, -1)
        rows = np.flatnonzero(np.diff(self.seen.indptr))
        most[rows] = self.seen.indices[
            [lo + np.argmax(self.seen.data[lo:hi]) for lo, hi in zip(*self.seen.indptr[[rows, rows + 1]], strict=True)]
        ]
        kind = self.kind(np.arange(most.size), np.maximum(most, 0), share=share, level=level)
        return np.where(most < 0, UNDECIDED, kind).astype(np.int8), most

    def _bound(self, share: float | None, lift: float | None) -> np.ndarray:
        if (share is None) == (lift is None):
            raise checks.reject(
                "share",
                "be given, or `lift`, and not both",
                f"share {checks.brief(share)} and lift {checks.brief(lift)}",
            )
        if share is None:
            lift = checks.positive("lift", lift)
            if lift <= 1:
                raise checks.reject("lift", "be above 1", lift)
            return np.minimum(lift * self.probability, 1.0)
        share = checks.positive("share", share)
        if share >= 1:
            raise checks.reject("share", "be below 1", share)
        return np.full(self.probability.size, share)

    def _pairs(self, token: ArrayLike, next_token: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of sequences with token and next token, and of sequences with the token."""
        token, next_token = checks.array("token", token), checks.array("next_token", next_token)
        try:
            token, next_token = np.broadcast_arrays(token, next_token)
        except ValueError:
            raise checks.reject("next_token", "broadcast against `token`", f"shape {np.shape(next_token)}") from None
        flat = checks.index_array("token", token.ravel(), upper=self.seen.shape[0])
        column = checks.index_array("next_token", next_token.ravel(), upper=self.seen.shape[1])
        # The entries' keys ascend, so that one search finds many pairs.
        rows = np.repeat(np.arange(self.seen.shape[0]), np.diff(self.seen.indptr))
        keys = rows * self.seen.shape[1] + self.seen.indices
        wanted = flat * self.seen.shape[1] + column
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        seen = np.where(keys[at] == wanted, self.seen.data[at], 0)
        return seen.reshape(token.shape), self.trials[flat].reshape(token.shape)


def _level(level: float) -> float:
    level = checks.positive("level", level)
    if level > 0.5:
        raise checks.reject("level", "be at most 0.5", level)
    return level
