"""Bags: the one representation of training data.

A layer without positions sees a sequence x_1..x_{T-1}, query x_T only through the counts N_l of its contextual
tokens (the feature X^T b_T of Lemma 1 depends on nothing else). A bag is therefore a query, sparse counts and a next
token. T -> infinity is the same with the counts replaced by the probabilities P(l|n) (Lemma 2, (5)-(6)).
"""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from dynamics import _shown
from dynamics.support import archive, checks, display, files, names, sealed
from dynamics.support.formats import OTHER_ZIP
from dynamics.support.frozen import Frozen, changed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style

_FORMAT, _UNSEALED = "yzflow-bags-2", "yzflow-bags-1"
_WHAT = sealed.KINDS[_FORMAT]
_ARRAYS = ("query", "target", "indptr", "token", "count", "weight")
_SIZES = ("n_queries", "n_tokens", "vocab_size")
# Derived results are kept up to this many entries: they take several times the memory of the bags.
_SMALL = 2**14
_LARGEST_COUNT, _SMALLEST_COUNT = 2.0**64, 2.0**-40  # bags with their largest count outside are scaled


@dataclass(frozen=True, eq=False)
class Bags(Frozen):
    """A frozen batch of weighted sparse bags in CSR form.

    Parameters
    ----------
    query : (n,) int
        Row of Z that each bag's query token uses.
    target : (n,) int or (n, C) float
        Next token of each bag, or its distribution over the first C next tokens (rows sum to one).
    indptr : (n + 1,) int
        Bag b has the entries ``indptr[b]:indptr[b + 1]`` of ``token`` and ``count``.
    token : (nnz,) int
        Contextual tokens, increasing within a bag.
    count : (nnz,) float
        How often each token occurs, or its probability: positive, in any unit, since attention is scale-free. If the
        largest count of a bag is above 2^64 or below 2^-40, its counts are scaled by a power of two: otherwise their
        sum, or single precision, might overflow.
    weight : (n,) float, optional
        Probability of each bag; sums to one. Default: uniform. Losses and gradients are expectations under it.
    n_queries, n_tokens, vocab_size : int, optional
        Numbers of rows of Z, of contextual tokens and of next tokens (M). Default: the largest index plus one.
    token_names, query_names : sequence of str, optional
        A name for each contextual token and for each row of Z. Tables, plots and files show names beside numbers;
        nothing else depends on names. Names differ from each other; "" means no name.
    class_names : sequence of str, optional
        A name for each next token up to the last that occurs; names of the others, up to M, may follow.

    Raises
    ------
    ValueError
        If an array breaks one of these rules; the message names the array, the rule and the place.
    """

    query: np.ndarray
    target: np.ndarray
    indptr: np.ndarray
    token: np.ndarray
    count: np.ndarray
    weight: np.ndarray = None
    n_queries: int = field(default=None, kw_only=True)  # type: ignore[assignment]
    n_tokens: int = field(default=None, kw_only=True)  # type: ignore[assignment]
    vocab_size: int = field(default=None, kw_only=True)  # type: ignore[assignment]
    token_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    class_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    query_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # types of the arguments; above, of the attributes

        def __init__(
            self,
            query: ArrayLike,
            target: ArrayLike,
            indptr: ArrayLike,
            token: ArrayLike,
            count: ArrayLike,
            weight: ArrayLike | None = None,
            *,
            n_queries: int | None = None,
            n_tokens: int | None = None,
            vocab_size: int | None = None,
            token_names: Sequence[str] | None = None,
            class_names: Sequence[str] | None = None,
            query_names: Sequence[str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        query = checks.index_array("query", self.query)
        if query.size == 0:
            raise checks.reject("query", "hold at least one bag", "an empty array")
        self._set("query", query)
        self._set("n_queries", self._size("n_queries", query.max()))
        self._check_target()
        self._check_tokens()
        self._check_weight()
        self._check_names()
        for name in _ARRAYS:
            getattr(self, name).flags.writeable = False

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _size(self, name: str, largest: int) -> int:
        size = getattr(self, name)
        return int(largest) + 1 if size is None else checks.integer(name, size, minimum=int(largest) + 1)

    def _check_target(self) -> None:
        if checks.array("target", self.target).ndim == 2:
            target = checks.non_negative_array("target", self.target, ndim=2)
            if target.shape[1] == 0:
                raise checks.reject("target", "have at least one column", f"shape {target.shape}")
            checks.sum_to_one("target", target.sum(axis=1))
            largest = target.shape[1] - 1
        else:
            target = checks.index_array("target", self.target)
            largest = target.max(initial=0)
        if len(target) != len(self.query):
            raise checks.reject("target", f"have one entry for each of {len(self.query)} bags", len(target))
        self._set("target", target)
        self._set("vocab_size", self._size("vocab_size", largest))

    def _check_tokens(self) -> None:
        indptr = checks.index_array("indptr", self.indptr)
        token = checks.index_array("token", self.token)
        count = checks.finite_array("count", self.count, ndim=1)
        if indptr.size != len(self.query) + 1:
            raise checks.reject("indptr", f"have {len(self.query) + 1} entries", indptr.size)
        if count.size != token.size:
            raise checks.reject("count", f"have one entry for each of {token.size} tokens", count.size)
        if indptr[0] != 0 or indptr[-1] != token.size:
            raise checks.reject("indptr", f"run from 0 to {token.size}", f"{indptr[0]} to {indptr[-1]}")
        if (np.diff(indptr) <= 0).any():
            bag = int(np.argmax(np.diff(indptr) <= 0))
            raise ValueError(f"`indptr` must give every bag at least one token, but bag {bag} has none")
        if (count <= 0).any():
            where = int(np.argmax(count <= 0))
            raise checks.reject("count", "be positive", f"{count[where]} at index {where}")
        rising = np.diff(token) > 0
        rising[indptr[1:-1] - 1] = True
        if not rising.all():
            bag = int(np.searchsorted(indptr, np.argmin(rising), side="right")) - 1
            raise checks.reject("token", "increase within a bag, each token once", f"bag {bag}")
        self._set("indptr", indptr)
        self._set("token", token)
        self._set("count", _in_range(count, indptr))
        self._set("n_tokens", self._size("n_tokens", token.max()))

    def _check_weight(self) -> None:
        if self.weight is None:
            weight = np.full(len(self.query), 1 / len(self.query))
        else:
            weight = checks.non_negative_array("weight", self.weight, ndim=1)
            if weight.size != len(self.query):
                raise checks.reject("weight", f"have one entry for each of {len(self.query)} bags", weight.size)
            checks.sum_to_one("weight", weight.sum())
        self._set("weight", weight)

    def _check_names(self) -> None:
        tokens, queries = f"{self.n_tokens} contextual tokens", f"{self.n_queries} rows of Z"
        checked = {
            "token_names": names.checked("token_names", self.token_names, of=tokens, least=self.n_tokens),
            "query_names": names.checked("query_names", self.query_names, of=queries, least=self.n_queries),
            "class_names": names.checked(
                "class_names", self.class_names, of="next tokens", least=self.n_targets, most=self.vocab_size
            ),
        }
        for name, value in checked.items():
            self._set(name, value)

    def __len__(self) -> int:
        return len(self.query)

    def _once(self, make: Callable[..., Any], *what: Any) -> Any:
        """As `Frozen._once` if the bags are small; larger bags keep nothing."""
        return super()._once(make, *what) if self.token.size <= _SMALL else make(self, *what)

    def __repr__(self) -> str:
        return (
            f"<Bags: {len(self)} bags, {self.token.size} entries, {self.n_queries} queries, "
            f"{self.n_tokens} tokens, {self.vocab_size} next tokens>"
        )

    def _repr_html_(self) -> str:
        return _shown.bags_html(self)

    def plot(self, *, ax: Axes | None = None, labels: Labels | None = None, style: Style | None = None) -> Axes:
        """Draw the share of each token in each bag, blank where it does not occur; only the first ones of many bags.

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
        sums = np.add.reduceat(self.count, self.indptr[:-1])
        shares = self.count / np.repeat(sums, np.diff(self.indptr))
        matrix = scipy.sparse.csr_array((shares, self.token, self.indptr), shape=(len(self), self.n_tokens))
        words = None, names.given(labels, self.token_names, self.n_tokens)
        label = "share of the bag, blank where 0"
        return display.picture(matrix, ("bag", "token"), label, words=words, ax=ax, style=style)

    @property
    def hard(self) -> bool:
        """Whether each bag has one next token (and not a distribution)."""
        return self.target.ndim == 1

    @property
    def owner(self) -> np.ndarray:
        """The bag of each entry of ``token`` and ``count``: (nnz,) int."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def n_targets(self) -> int:
        """Largest next token that occurs, plus one: from a zero start, training keeps all later columns of Y equal."""
        return int(self.target.max()) + 1 if self.hard else self.target.shape[1]

    @classmethod
    def from_dense(
        cls,
        query: ArrayLike,
        target: ArrayLike,
        counts: ArrayLike,
        weight: ArrayLike | None = None,
        **options: Any,
    ) -> Bags:
        """Bags from a dense (n, tokens) array of counts or probabilities; zeros are left out.

        ``options`` are the sizes and names of `Bags`; a pandas DataFrame of counts brings the names of its columns.
        """
        columns = names.of_table(counts)[1]
        if columns is not None:
            options.setdefault("token_names", columns)
        table = checks.non_negative_array("counts", counts, ndim=2)
        bag, token = np.nonzero(table)
        indptr = np.searchsorted(bag, np.arange(len(table) + 1))
        options.setdefault("n_tokens", table.shape[1])
        return cls(query, target, indptr, token, table[bag, token], weight, **options)

    def joint(self) -> np.ndarray:
        """Probability of (next token, bag): an (n_targets, n) array that sums to one."""
        if not self.hard:
            return np.ascontiguousarray((self.target * self.weight[:, None]).T)
        joint = np.zeros((self.n_targets, len(self)))
        joint[self.target, np.arange(len(self))] = self.weight
        return joint

    def merge(self) -> Bags:
        """The same distribution with equal bags (query, target and counts) as one, their weights added."""
        keys: dict[tuple[bytes, ...], int] = {}
        owner = np.empty(len(self), dtype=np.int64)
        for b in range(len(self)):
            at = slice(self.indptr[b], self.indptr[b + 1])
            key = (
                self.query[b].tobytes(),
                self.target[b].tobytes(),
                self.token[at].tobytes(),
                self.count[at].tobytes(),
            )
            owner[b] = keys.setdefault(key, len(keys))
        first = np.unique(owner, return_index=True)[1]
        return self._take(first, np.bincount(owner, weights=self.weight))

    def pairs(self) -> Bags:
        """The same bags with a next token of its own for each (query, next token) that occurs.

        Scan and Snap's classes have one query for each next token; those of a text have several. Pairs are numbered by
        query, then by next token; next tokens that never occur follow, as many as there were.

        Raises
        ------
        ValueError
            If targets are distributions.
        """
        if not self.hard:
            raise checks.reject("target", "be a next token each", "distributions over them")
        occurs, target = np.unique(np.stack([self.query, self.target]), axis=1, return_inverse=True)
        size = self.vocab_size - np.unique(self.target).size + occurs.shape[1]
        told = [
            f"{self.class_names[n] if self.class_names else n} after {self.query_names[m] if self.query_names else m}"
            for m, n in occurs.T.tolist()
        ]
        known = (self.class_names is not None or self.query_names is not None) and len(set(told)) == len(told)
        kept = {**self.sizes, **self.names, "vocab_size": size, "class_names": told if known else None}
        arrays = {**self.arrays, "target": np.ravel(target)}
        return Bags(**arrays, **kept)

    def _take(self, index: np.ndarray, weight: np.ndarray) -> Bags:
        lengths = np.diff(self.indptr)[index]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[index] - indptr[:-1], lengths)
        return Bags(
            self.query[index],
            self.target[index],
            indptr,
            self.token[entries],
            self.count[entries],
            weight,
            **self.sizes,
            **self.names,
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The array arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    @property
    def sizes(self) -> dict[str, Any]:
        """The keyword arguments ``n_queries``, ``n_tokens`` and ``vocab_size``."""
        return {name: getattr(self, name) for name in _SIZES}

    @property
    def names(self) -> dict[str, Any]:
        """The keyword arguments ``token_names``, ``class_names`` and ``query_names``."""
        return {name: getattr(self, name) for name in names.AXES}

    def named_like(self, other: Bags) -> Bags:
        """The same bags; each kind of names that they lack is taken from ``other``."""
        checks.instance("other", other, Bags)
        ends = {
            "token_names": (self.n_tokens, self.n_tokens),
            "query_names": (self.n_queries, self.n_queries),
            "class_names": (self.n_targets, self.vocab_size),
        }
        missing = {name: texts for name, texts in other.names.items() if texts is not None and self.names[name] is None}
        fitting: dict[str, Any] = {
            name: tuple(names.filled(texts, ends[name][0]))[: ends[name][1]] for name, texts in missing.items()
        }
        return changed(self, **fitting) if fitting else self

    @classmethod
    def concatenate(cls, parts: Sequence[Bags], shares: ArrayLike | None = None) -> Bags:
        """The mixture of several batches; ``shares`` (default: their numbers of bags) are scaled to sum to one.

        Two batches may not give different names to the same token, query or next token.
        """
        parts = [checks.instance("parts", batch, Bags) for batch in checks.listed("parts", parts, "be batches of bags")]
        if len(parts) == 0:
            raise checks.reject("parts", "hold at least one batch", "none")
        if shares is None:
            shares = [len(batch) for batch in parts]
        share = checks.non_negative_array("shares", shares, ndim=1)
        share = np.ldexp(share, -np.frexp(share.max(initial=0.0))[1])  # whose sum might overflow
        if share.size != len(parts) or share.sum() <= 0:
            raise checks.reject("shares", f"be {len(parts)} numbers with a positive sum", list(share))
        widths = {batch.target.shape[1:] for batch in parts}
        if len(widths) > 1:
            raise checks.reject("parts", "have targets of one kind and width", sorted(widths))
        starts = np.concatenate([[0], np.cumsum([batch.token.size for batch in parts])])
        sizes: dict[str, Any] = {name: max(getattr(batch, name) for batch in parts) for name in _SIZES}
        labels: dict[str, Any] = {
            name: names.joined(name, [getattr(batch, name) for batch in parts]) for name in names.AXES
        }
        for name, size in (("token_names", sizes["n_tokens"]), ("query_names", sizes["n_queries"])):
            labels[name] = None if labels[name] is None else names.filled(labels[name], size)
        return cls(
            np.concatenate([batch.query for batch in parts]),
            np.concatenate([batch.target for batch in parts]),
            np.concatenate([[0], *(batch.indptr[1:] + start for batch, start in zip(parts, starts, strict=False))]),
            np.concatenate([batch.token for batch in parts]),
            np.concatenate([batch.count for batch in parts]),
            np.concatenate([batch.weight * factor for batch, factor in zip(parts, share / share.sum(), strict=True)]),
            **sizes,
            **labels,
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write to an ``.npz`` file, completely or not at all, with a checksum that `load` compares."""
        labels = {name: value for name, value in self.names.items() if value is not None}
        header = {"format": _FORMAT, "sizes": self.sizes, "names": labels}
        files.write(path, archive.encode(header, self.arrays, compressed=True))

    @classmethod
    def load(cls, path: str | os.PathLike) -> Bags:
        """Read a file of `save`.

        A file of an older version has no checksum and is read with a warning: changes to it would not be noticed.

        Raises
        ------
        ValueError
            If the file holds something else or is damaged.
        FileNotFoundError
            If there is no such file.
        """
        try:
            header, arrays = archive.load(path, _FORMAT, _WHAT)
        except sealed.Damaged as error:
            return cls._unsealed(path, error)
        return cls._made(path, header.get("sizes"), header.get("names"), arrays)

    @classmethod
    def _unsealed(cls, path: str | os.PathLike, error: ValueError) -> Bags:
        """Bags from a file without a seal, as older versions of `save` wrote it; any other file raises ``error``."""
        try:
            with np.load(io.BytesIO(files.read("path", path)), allow_pickle=False) as file:
                if str(file["format"]) != _UNSEALED:
                    raise error
                held = {name: file[name] for name in file.files}
            sizes = dict(zip(_SIZES, held.pop("sizes").tolist(), strict=True))
            labels = json.loads(held.pop("names").tobytes()) if "names" in held else {}
        except (*OTHER_ZIP, ValueError):
            raise error from None
        bags = cls._made(path, sizes, labels, {name: held.get(name) for name in _ARRAYS})
        warnings.warn(
            f"Reading the bags in {os.fspath(path)!r}, a file without a checksum: a change of it would not be noticed. "
            f"Save them again to seal them and avoid this warning.",
            UserWarning,
            stacklevel=3,
        )
        return bags

    @classmethod
    def _made(cls, path: str | os.PathLike, sizes: Any, own: Any, arrays: Mapping[str, Any]) -> Bags:
        """Bags from the parts of a file; missing and unknown parts are refused."""
        whole = isinstance(sizes, dict) and set(sizes) == set(_SIZES) and set(arrays) == set(_ARRAYS)
        if not whole or not isinstance(own, dict) or not set(own) <= set(names.AXES):
            raise checks.reject("path", f"be {_WHAT} written by yzflow", f"other parts in {os.fspath(path)!r}")
        return cls(**arrays, **sizes, **own)


class HasPopulation(Protocol):
    """Data from which sequences are drawn, such as `SequenceClasses`; `population` is their limit T -> infinity."""

    def population(self) -> Bags: ...


Data: TypeAlias = Bags | HasPopulation


def population_of(data: Data) -> Bags:
    """The bags of the argument ``data``: itself, or its population.

    Raises
    ------
    ValueError
        If it is neither Bags nor has a method ``population()`` that returns Bags.
    """
    bags = data.population() if hasattr(data, "population") else data
    if not isinstance(bags, Bags):
        raise checks.reject("data", "be Bags or offer population()", type(data).__name__)
    return bags


def _in_range(count: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Counts, scaled by a power of two in each bag whose largest count is far from 1."""
    largest = np.maximum.reduceat(count, indptr[:-1])
    far = (largest > _LARGEST_COUNT) | (largest < _SMALLEST_COUNT)
    if not far.any():
        return count
    exponent = np.where(far, np.frexp(largest)[1], 0)
    scaled = np.ldexp(count, -np.repeat(exponent, np.diff(indptr)))
    if (scaled == 0).any():
        where = int(np.argmax(scaled == 0))
        bag = int(np.searchsorted(indptr, where, side="right")) - 1
        pair = f"{count[where]} at index {where} beside {largest[bag]}"
        raise checks.reject("count", "have ratios within a bag that floating point holds", pair)
    return scaled
