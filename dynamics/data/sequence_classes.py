"""Sequence classes: the data model of Scan and Snap (Section 3.2)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from dynamics.bags import Bags
from dynamics.support import checks


class SequenceClasses:
    """A mixture of K sequence classes ``s_n = (P(.|n), psi(n), n)``, one for each next token.

    To draw a sample: next token n with its class probability, query token ``psi(n)``, then T - 1 independent
    contextual tokens from ``P(.|n)`` (Tian et al. 2023, Section 3.2).

    Parameters
    ----------
    probabilities : (K, S) array or scipy.sparse matrix
        ``P(l|n)``: rows sum to one, a column for each contextual token id; K >= 2.
    query : (K,) int
        Query token ``psi(n)`` of each next token, an id below max(vocab_size, S).
    vocab_size : int, optional
        M >= K, the number of next tokens of the decoder; those from K on never occur. Default: max(K, S).
    class_weights : (K,) float, optional
        Probabilities p_n of the classes, positive, with sum one. Default: uniform, as in the paper.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.

    Examples
    --------
    Two next tokens share token 0; tokens 1 and 2 tell them apart.

    >>> classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], query=[0, 0], vocab_size=10)
    >>> classes.common_tokens
    array([0])
    >>> classes.distinct_tokens(1)
    array([2])
    """

    def __init__(self, probabilities, query, *, vocab_size=None, class_weights=None):
        if scipy.sparse.issparse(probabilities):
            sparse = scipy.sparse.csr_array(probabilities, copy=True)
            sparse.sum_duplicates()
            sparse.data = checks.non_negative_array("probabilities", sparse.data)
        else:
            sparse = scipy.sparse.csr_array(checks.non_negative_array("probabilities", probabilities, ndim=2))
        sparse.eliminate_zeros()
        n_classes, n_tokens = sparse.shape
        if n_classes < 2:
            raise checks.reject("probabilities", "have at least two rows, one a next token", f"shape {sparse.shape}")
        sums = np.asarray(sparse.sum(axis=1)).ravel()
        unequal = np.abs(sums - 1) > 1e-9
        if unequal.any():
            row = int(np.argmax(unequal))
            raise checks.reject("probabilities", "have rows that sum to one", f"{sums[row]} in row {row}")
        if vocab_size is None:
            vocab_size = max(n_classes, n_tokens)
        self.vocab_size = checks.integer("vocab_size", vocab_size, minimum=n_classes)
        self.query = checks.index_array("query", query, upper=max(self.vocab_size, n_tokens))
        if self.query.size != n_classes:
            raise checks.reject("query", f"have one entry for each of {n_classes} next tokens", self.query.size)
        if class_weights is None:
            self.class_weights = np.full(n_classes, 1 / n_classes)
        else:
            self.class_weights = checks.finite_array("class_weights", class_weights, ndim=1)
            if self.class_weights.size != n_classes:
                raise checks.reject("class_weights", f"have {n_classes} entries", self.class_weights.size)
            if (self.class_weights <= 0).any():
                raise checks.reject("class_weights", "be positive", self.class_weights.min())
            if abs(self.class_weights.sum() - 1) > 1e-9:
                raise checks.reject("class_weights", "sum to one", f"a sum of {self.class_weights.sum()}")
        self.probabilities = sparse
        # Row i of Z belongs to query token query_tokens[i]: only queries that occur have a row.
        self.query_tokens, self._query_row = np.unique(self.query, return_inverse=True)

    def __repr__(self) -> str:
        return (
            f"<SequenceClasses: {self.n_classes} next tokens of {self.vocab_size}, {self.n_tokens} contextual tokens, "
            f"{len(self.query_tokens)} queries>"
        )

    @classmethod
    def syn_small(cls) -> SequenceClasses:
        """The paper's Syn-Small (Section 8, Figs. 4 and 5): two next tokens, each with its own query.

        Tokens 0-9 are common with unnormalised probability 1; 10-19 and 20-29 are distinct to the two next tokens
        with unnormalised probabilities from 0.1 to 1 in equal steps; tokens 30 and 31 are the queries; M = 34.
        """
        unnormalised = np.zeros((2, 30))
        unnormalised[:, :10] = 1
        unnormalised[0, 10:20] = unnormalised[1, 20:30] = np.linspace(0.1, 1, 10)
        return cls(unnormalised / unnormalised.sum(axis=1, keepdims=True), [30, 31], vocab_size=34)

    @classmethod
    def syn_medium(cls, n_queries: int) -> SequenceClasses:
        """The paper's Syn-Medium (Section 8, Fig. 6): ``n_queries`` query tokens with two next tokens each.

        K = 2 ``n_queries`` classes, each with the 10 common tokens and 10 distinct ones as in Syn-Small;
        M = 10 + 10 K + n_queries + K.
        """
        n_queries = checks.integer("n_queries", n_queries, minimum=1)
        n_classes = 2 * n_queries
        n_tokens = 10 + 10 * n_classes
        unnormalised = np.zeros((n_classes, n_tokens))
        unnormalised[:, :10] = 1
        for n in range(n_classes):
            unnormalised[n, 10 + 10 * n : 20 + 10 * n] = np.linspace(0.1, 1, 10)
        return cls(
            unnormalised / unnormalised.sum(axis=1, keepdims=True),
            n_tokens + np.arange(n_classes) // 2,
            vocab_size=n_tokens + n_queries + n_classes,
        )

    @classmethod
    def single_common_token(cls, n_classes: int, vocab_size: int, *, common=0.15, distinct=(1.0, 0.8, 0.6, 0.4, 0.2)):
        """Theorem 4's setting: one common token, which is the one query too, and distinct tokens in each class.

        Parameters
        ----------
        n_classes, vocab_size : int
            K >= 2 and M >= K.
        common : float
            Unnormalised probability of the common token, token 0.
        distinct : (D,) float
            Unnormalised probabilities of the D distinct tokens of each class; class n has the tokens
            ``1 + n D .. (n + 1) D``. Only ratios matter, since attention is normalised. The initial overlap is
            ``f_n . f_n' = common^2 / (common^2 + sum(distinct^2))``.
        """
        n_classes = checks.integer("n_classes", n_classes, minimum=2)
        common = checks.positive("common", common)
        distinct = checks.finite_array("distinct", distinct, ndim=1)
        if distinct.size == 0 or (distinct <= 0).any():
            raise checks.reject("distinct", "hold at least one number, all positive", distinct.tolist())
        row = np.concatenate([[common], distinct]) / (common + distinct.sum())
        own = 1 + distinct.size * np.arange(n_classes)[:, None] + np.arange(distinct.size)
        token = np.concatenate([np.zeros((n_classes, 1), dtype=np.int64), own], axis=1)
        indptr = row.size * np.arange(n_classes + 1)
        shape = (n_classes, 1 + n_classes * distinct.size)
        probabilities = scipy.sparse.csr_array((np.tile(row, n_classes), token.ravel(), indptr), shape=shape)
        return cls(probabilities, np.zeros(n_classes, dtype=np.int64), vocab_size=vocab_size)

    @property
    def n_classes(self) -> int:
        """K, the number of next tokens that occur."""
        return self.probabilities.shape[0]

    @property
    def n_tokens(self) -> int:
        """S, the number of contextual token ids."""
        return self.probabilities.shape[1]

    @property
    def common_tokens(self) -> np.ndarray:
        """Tokens that occur with more than one next token, |Omega(l)| > 1."""
        return np.flatnonzero(self._occurrences() > 1)

    def distinct_tokens(self, n: int) -> np.ndarray:
        """Tokens that occur with next token n and no other, G_DT(n)."""
        n = checks.integer("n", n, minimum=0)
        if n >= self.n_classes:
            raise checks.reject("n", f"be below {self.n_classes}", n)
        support = self.probabilities.indices[self.probabilities.indptr[n] : self.probabilities.indptr[n + 1]]
        return np.sort(support[self._occurrences()[support] == 1]).astype(np.int64)

    def _occurrences(self) -> np.ndarray:
        return np.bincount(self.probabilities.indices, minlength=self.n_tokens)

    def overlap(self) -> np.ndarray:
        """F^T F at z = 0: the (K, K) inner products ``f_n . f_n'`` of the unit vectors along ``P(.|n)``."""
        norms = np.sqrt(self.probabilities.multiply(self.probabilities).sum(axis=1))
        features = scipy.sparse.diags_array(1 / np.asarray(norms).ravel()) @ self.probabilities
        return (features @ features.T).toarray()

    def population(self) -> Bags:
        """The limit T -> infinity: one bag a class, its counts the probabilities (Lemma 2)."""
        sparse = self.probabilities.copy()
        sparse.sort_indices()
        return self._bags(np.arange(self.n_classes), sparse.indptr, sparse.indices, sparse.data, self.class_weights)

    def sample(self, n: int, *, length: int, rng) -> Bags:
        """Bags of ``n`` finite sequences, exactly distributed.

        Parameters
        ----------
        n : int
            Number of sequences, each of weight 1/n.
        length : int
            T >= 2: ``length - 1`` contextual tokens and the query.
        rng : numpy.random.Generator or seed
        """
        n = checks.integer("n", n, minimum=1)
        length = checks.integer("length", length, minimum=2)
        rng = np.random.default_rng(rng)
        classes = rng.choice(self.n_classes, size=n, p=self.class_weights)
        rows, tokens, counts = [], [], []
        for k in np.unique(classes):
            members = np.flatnonzero(classes == k)
            at = slice(self.probabilities.indptr[k], self.probabilities.indptr[k + 1])
            drawn = rng.multinomial(length - 1, self.probabilities.data[at], size=members.size)
            member, entry = np.nonzero(drawn)
            rows.append(members[member])
            tokens.append(self.probabilities.indices[at][entry])
            counts.append(drawn[member, entry])
        row, token, count = np.concatenate(rows), np.concatenate(tokens), np.concatenate(counts)
        order = np.lexsort((token, row))
        indptr = np.searchsorted(row[order], np.arange(n + 1))
        return self._bags(classes, indptr, token[order], count[order], None)

    def _bags(self, classes, indptr, token, count, weight) -> Bags:
        return Bags(
            self._query_row[classes],
            classes,
            indptr,
            token,
            count,
            weight,
            n_queries=len(self.query_tokens),
            n_tokens=self.n_tokens,
            vocab_size=self.vocab_size,
        )
