"""Sequence classes: the data model of Scan and Snap (Section 3.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from dynamics import _shown
from dynamics.bags import Bags
from dynamics.support import checks, display, names
from dynamics.support.checks import read_only
from dynamics.support.frozen import Frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style


class SequenceClasses(Frozen):
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
        M >= K, the number of next tokens of the decoder; next tokens K, K + 1, .. never occur. Default: max(K, S).
    class_weights : (K,) float, optional
        Probabilities p_n of the classes, positive, with sum one. Default: uniform, as in the paper.
    token_names : sequence of str, optional
        A name for each contextual token; names of further tokens, queries with ids from S on, may follow. Tables, plots
        and files show names beside numbers; nothing else depends on names. Names differ from each other; "" means no
        name.
    class_names : sequence of str, optional
        A name for the next token of each class; names of the other next tokens, up to M, may follow. A pandas DataFrame
        of probabilities brings both kinds of names: its columns name tokens, and an index of words names classes.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.

    Attributes
    ----------
    n_classes, n_tokens, vocab_size : int
        K, S and M.
    query, class_weights : (K,) arrays
        As given.
    query_tokens : (queries,) int
        The query tokens that occur, in increasing order: one for each row of Z.
    token_names, class_names : tuples of str, or None
    query_names : tuple of str, or None
        Names of ``query_tokens``.

    Attributes cannot be set, and arrays are read-only.

    Examples
    --------
    Two next tokens share token 0; tokens 1 and 2 tell them apart.

    >>> classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], query=[0, 0], vocab_size=10)
    >>> classes.common_tokens
    array([0])
    >>> classes.distinct_tokens(1)
    array([2])
    >>> named = SequenceClasses([[1, 0], [0, 1]], [0, 0], token_names=["the", "a"], class_names=["cat", "dog"])
    >>> named.population().query_names
    ('the',)
    """

    n_classes: int
    n_tokens: int
    vocab_size: int
    query: np.ndarray
    class_weights: np.ndarray
    query_tokens: np.ndarray
    token_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    _query_row: np.ndarray
    _data: np.ndarray
    _indices: np.ndarray
    _indptr: np.ndarray

    def __init__(
        self,
        probabilities: ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix,
        query: ArrayLike,
        *,
        vocab_size: int | None = None,
        class_weights: ArrayLike | None = None,
        token_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        rows, columns = names.of_table(probabilities)
        token_names = columns if token_names is None else token_names
        class_names = rows if class_names is None else class_names
        if scipy.sparse.issparse(probabilities):
            sparse = scipy.sparse.csr_array(probabilities, copy=True)
            try:
                sparse.check_format()
            except ValueError as error:
                raise checks.reject("probabilities", "be a sparse matrix whose parts fit each other", error) from None
            sparse.sum_duplicates()
            sparse.data = checks.non_negative_array("probabilities", sparse.data)
        else:
            sparse = scipy.sparse.csr_array(checks.non_negative_array("probabilities", probabilities, ndim=2))
        sparse.eliminate_zeros()
        n_classes, n_tokens = sparse.shape
        if n_classes < 2:
            raise checks.reject("probabilities", "have at least two rows, one a next token", f"shape {sparse.shape}")
        checks.sum_to_one("probabilities", np.asarray(sparse.sum(axis=1)).ravel())
        if vocab_size is None:
            vocab_size = max(n_classes, n_tokens)
        vocab_size = checks.integer("vocab_size", vocab_size, minimum=n_classes)
        query = checks.index_array("query", query, upper=max(vocab_size, n_tokens))
        if query.size != n_classes:
            raise checks.reject("query", f"have one entry for each of {n_classes} next tokens", query.size)
        if class_weights is None:
            class_weights = np.full(n_classes, 1 / n_classes)
        else:
            class_weights = checks.finite_array("class_weights", class_weights, ndim=1)
            if class_weights.size != n_classes:
                raise checks.reject("class_weights", f"have {n_classes} entries", class_weights.size)
            if (class_weights <= 0).any():
                raise checks.reject("class_weights", "be positive", class_weights.min())
            checks.sum_to_one("class_weights", class_weights.sum())
        most = max(vocab_size, n_tokens)
        token_names = names.checked("token_names", token_names, of="contextual tokens", least=n_tokens, most=most)
        class_names = names.checked("class_names", class_names, of="next tokens", least=n_classes, most=vocab_size)
        # Row i of Z belongs to query token query_tokens[i]: only queries that occur have a row.
        query_tokens, query_row = np.unique(query, return_inverse=True)
        arrays = {"query": query, "class_weights": class_weights, "query_tokens": query_tokens, "_query_row": query_row}
        parts = {"_data": sparse.data, "_indices": sparse.indices, "_indptr": sparse.indptr}
        vars(self).update({name: read_only(array) for name, array in (arrays | parts).items()})
        vars(self).update(vocab_size=vocab_size, n_classes=n_classes, n_tokens=n_tokens)
        vars(self).update(token_names=token_names, class_names=class_names)

    @property
    def probabilities(self) -> scipy.sparse.csr_array:
        """``P(l|n)``: (K, S), of read-only arrays."""
        # A new array at each call: a caller could change the entries of a sparse array, but not of its parts.
        return scipy.sparse.csr_array((self._data, self._indices, self._indptr), shape=(self.n_classes, self.n_tokens))

    @property
    def query_names(self) -> tuple[str, ...] | None:
        """The name of the query token of each row of Z; "" if it has no name."""
        texts = self.token_names
        return None if texts is None else tuple(texts[q] if q < len(texts) else "" for q in self.query_tokens)

    @property
    def _names(self) -> dict[str, tuple[str, ...] | None]:
        """The names of the bags, as keyword arguments of `Bags`."""
        texts = None if self.token_names is None else self.token_names[: self.n_tokens]
        return {"token_names": texts, "class_names": self.class_names, "query_names": self.query_names}

    def __repr__(self) -> str:
        return (
            f"<SequenceClasses: {self.n_classes} next tokens of {self.vocab_size}, {self.n_tokens} contextual tokens, "
            f"{len(self.query_tokens)} queries>"
        )

    def _repr_html_(self) -> str:
        return _shown.classes_html(self)

    def plot(self, *, ax: Axes | None = None, labels: Labels | None = None, style: Style | None = None) -> Axes:
        """Draw P(l|n), a row for each next token, blank where a token does not occur; only the first ones of many.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for tokens in the place of their names or numbers: from token 0 on, or by number or name.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        words = self.class_names, names.given(labels, self.token_names, self.n_tokens)
        label, dims = "P(l|n), blank where 0", ("next token n", "token l")
        return display.picture(self.probabilities, dims, label, words=words, ax=ax, style=style)

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
        checks.fits_in_memory("n_queries", 4 * 8 * n_classes * n_tokens, "list probabilities")
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
    def single_common_token(
        cls, n_classes: int, vocab_size: int, *, common: float = 0.15, distinct: ArrayLike = (1.0, 0.8, 0.6, 0.4, 0.2)
    ) -> SequenceClasses:
        """The setting of Theorem 4: one common token, also the only query, and distinct tokens in each class.

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
        checks.fits_in_memory("n_classes", 6 * 8 * n_classes * (distinct.size + 1), "list probabilities")
        row = np.concatenate([[common], distinct])
        row = np.ldexp(row, -np.frexp(row.max())[1])  # the sum might overflow
        row = row / (row[0] + row[1:].sum())
        ids = 1 + distinct.size * np.arange(n_classes)[:, None] + np.arange(distinct.size)
        token = np.concatenate([np.zeros((n_classes, 1), dtype=np.int64), ids], axis=1)
        indptr = row.size * np.arange(n_classes + 1)
        shape = (n_classes, 1 + n_classes * distinct.size)
        probabilities = scipy.sparse.csr_array((np.tile(row, n_classes), token.ravel(), indptr), shape=shape)
        return cls(probabilities, np.zeros(n_classes, dtype=np.int64), vocab_size=vocab_size)

    @property
    def common_tokens(self) -> np.ndarray:
        """Tokens that occur with more than one next token, |Omega(l)| > 1."""
        return np.flatnonzero(self._occurrences() > 1)

    def distinct_tokens(self, n: int) -> np.ndarray:
        """Tokens that occur with next token n and no other, G_DT(n)."""
        n = checks.integer("n", n, minimum=0)
        if n >= self.n_classes:
            raise checks.reject("n", f"be below {self.n_classes}", n)
        support = self._indices[self._indptr[n] : self._indptr[n + 1]]
        return np.sort(support[self._occurrences()[support] == 1]).astype(np.int64)

    def _occurrences(self) -> np.ndarray:
        return np.bincount(self._indices, minlength=self.n_tokens)

    def overlap(self) -> np.ndarray:
        """F^T F at z = 0: the (K, K) inner products ``f_n . f_n'`` of the unit vectors along ``P(.|n)``."""
        checks.fits_in_memory("n_classes", 8 * self.n_classes**2, "form all inner products")
        shares = self.probabilities
        norms = np.sqrt(shares.multiply(shares).sum(axis=1))
        features = scipy.sparse.diags_array(1 / np.asarray(norms).ravel()) @ shares
        return (features @ features.T).toarray()

    def population(self) -> Bags:
        """The limit T -> infinity: one bag a class, its counts the probabilities (Lemma 2)."""
        bags: Bags = self._once(SequenceClasses._population)
        return bags

    def _population(self) -> Bags:
        sparse = self.probabilities.copy()
        sparse.sort_indices()
        return self._bags(np.arange(self.n_classes), sparse.indptr, sparse.indices, sparse.data, self.class_weights)

    def sample(self, n: int, *, length: int, rng: np.random.Generator | int) -> Bags:
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
        rng = checks.generator("rng", rng)
        fewest = min(length - 1, int(np.diff(self._indptr).min()))
        checks.fits_in_memory("n", 16 * n * (1 + fewest), "draw sequences")
        classes = rng.choice(self.n_classes, size=n, p=self.class_weights)
        rows, tokens, counts = [], [], []
        for k in np.unique(classes):
            members = np.flatnonzero(classes == k)
            at = slice(self._indptr[k], self._indptr[k + 1])
            drawn = rng.multinomial(length - 1, self._data[at], size=members.size)
            member, entry = np.nonzero(drawn)
            rows.append(members[member])
            tokens.append(self._indices[at][entry])
            counts.append(drawn[member, entry])
        row, token, count = np.concatenate(rows), np.concatenate(tokens), np.concatenate(counts)
        order = np.lexsort((token, row))
        indptr = np.searchsorted(row[order], np.arange(n + 1))
        return self._bags(classes, indptr, token[order], count[order], None)

    def all_sequences(self, *, length: int) -> Bags:
        """All bags of sequences of this length with their exact probabilities: for expectations without sampling.

        Parameters
        ----------
        length : int
            T >= 2. A class with s tokens has (T + s - 2)! / ((T - 1)! (s - 1)!) bags.
        """
        length = checks.integer("length", length, minimum=2)
        sizes = np.diff(self._indptr)
        bags = [math.comb(length - 2 + int(size), int(size) - 1) for size in sizes]
        checks.fits_in_memory(
            "length", 64 * int(sum(n * int(size) for n, size in zip(bags, sizes, strict=True))), "list bags"
        )
        parts = []
        for k, size in enumerate(sizes):
            entries = slice(self._indptr[k], self._indptr[k + 1])
            # Stars and bars: stars are the positions, and bars separate the counts of the tokens.
            bars = np.array(list(itertools.combinations(range(length - 2 + size), size - 1)), dtype=np.int64)
            bars = np.pad(bars.reshape(bags[k], size - 1), ((0, 0), (1, 1)), constant_values=(-1, length - 2 + size))
            drawn = np.diff(bars, axis=1) - 1
            chance = np.exp(gammaln(length) + (xlogy(drawn, self._data[entries]) - gammaln(drawn + 1)).sum(axis=1))
            counts = np.zeros((len(bars), self.n_tokens))
            counts[:, self._indices[entries]] = drawn
            query, target = np.full(len(bars), self._query_row[k]), np.full(len(bars), k)
            like = {"n_queries": len(self.query_tokens), "n_tokens": self.n_tokens, "vocab_size": self.vocab_size}
            parts.append(Bags.from_dense(query, target, counts, chance / chance.sum(), **like, **self._names))
        return Bags.concatenate(parts, self.class_weights)

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
            **self._names,
        )
