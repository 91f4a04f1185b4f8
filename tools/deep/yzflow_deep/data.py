"""Sequences to train on: windows of a text, and bounded Dyck languages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks, distributions
from dynamics.support.checks import read_only
from dynamics.support.frozen import Frozen

if TYPE_CHECKING:
    from yzflow_bounded_dyck import DyckLanguage


@dataclass(frozen=True, eq=False)
class Sequences(Frozen):
    """Sequences of one length, with the next token of each position.

    Parameters
    ----------
    inputs : (n, length) int
    targets : (n, length) int, or (n, length, next tokens) float
        The next token of each position, or its distribution.
    mask : (n, length) bool, optional
        Positions whose next token counts in the loss. Default: all. Shorter sequences are filled up at their end with
        any token and masked there; earlier positions do not see it.

    All arrays are copied and read-only.

    Raises
    ------
    ValueError
        If shapes do not fit each other, a token is negative, or nothing counts.
    """

    inputs: np.ndarray
    targets: np.ndarray
    mask: np.ndarray = None  # replaced by all True

    def __post_init__(self) -> None:
        inputs = _tokens("inputs", self.inputs)
        targets = checks.array("targets", self.targets)
        if targets.ndim == 3:
            targets = checks.non_negative_array("targets", targets, ndim=3).astype(np.float32)
            checks.sum_to_one("targets", targets.sum(axis=-1), within=1e-5)
        else:
            targets = _tokens("targets", targets)
        mask = np.ones(inputs.shape, dtype=bool) if self.mask is None else checks.array("mask", self.mask).copy()
        if mask.dtype != bool:
            raise checks.reject("mask", "hold booleans", f"dtype {mask.dtype}")
        for name, array in (("targets", targets), ("mask", mask)):
            if array.shape[:2] != inputs.shape or (name == "mask" and array.ndim != 2):
                raise checks.reject(name, f"have the shape of `inputs`, {inputs.shape}", array.shape)
        if not mask.any():
            raise checks.reject("mask", "be true somewhere", "False everywhere")
        for name, array in (("inputs", inputs), ("targets", targets), ("mask", mask)):
            object.__setattr__(self, name, read_only(array))

    def __repr__(self) -> str:
        n, length = self.inputs.shape
        return f"<Sequences: {n} of length {length}, {int(self.mask.sum())} next tokens>"

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice | ArrayLike) -> Sequences:
        """Some of the sequences, by a slice, an array of their numbers, or a boolean for each."""
        if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.shape == (len(self),):
            rows = np.flatnonzero(rows)
        chosen = rows if isinstance(rows, slice) else checks.index_array("rows", rows, upper=len(self))
        return Sequences(self.inputs[chosen], self.targets[chosen], self.mask[chosen])

    @classmethod
    def from_tokens(cls, tokens: ArrayLike, *, length: int = 128) -> Sequences:
        """Windows of a text, one after the other, each with the token that follows every position.

        Parameters
        ----------
        tokens : (n,) int
            The text, as in ``tokens`` of `dynamics.TextCorpus`. An incomplete window at its end is left out.
        length : int
            T, positions of a window.

        Examples
        --------
        >>> windows = Sequences.from_tokens([5, 6, 7, 8, 9, 10], length=2)
        >>> windows.inputs.tolist(), windows.targets.tolist()
        ([[5, 6], [7, 8]], [[6, 7], [8, 9]])
        """
        length = checks.integer("length", length, minimum=1)
        tokens = checks.index_array("tokens", tokens)
        n = (tokens.size - 1) // length
        if n < 1:
            raise checks.reject("tokens", f"hold at least one window of {length} and the token after it", tokens.size)
        return cls(tokens[: n * length].reshape(n, length), tokens[1 : n * length + 1].reshape(n, length))

    def sizes(self) -> tuple[int, int]:
        """Smallest possible numbers of input tokens and of next tokens."""
        hard = self.targets.ndim == 2
        return int(self.inputs.max()) + 1, int(self.targets.max()) + 1 if hard else self.targets.shape[2]


def _tokens(name, value) -> np.ndarray:
    array = checks.array(name, value, rule="be an array of integers")
    if array.ndim != 2 or 0 in array.shape:
        raise checks.reject(name, "have 2 axes, neither of them empty", f"shape {array.shape}")
    tokens = checks.index_array(name, array.ravel())
    if tokens.max() >= 2**31:
        raise checks.reject(name, f"hold indices below {2**31}", tokens.max())
    return tokens.astype(np.int32).reshape(array.shape)


def dyck_sequences(
    language: DyckLanguage,
    prefixes: Iterable,
    *,
    first_layer: str = "trained",
    targets: str = "drawn",
    length: int | None = None,
) -> Sequences:
    """Sequences of brackets behind a token START, as a language model trains on them (Wen et al. 2023, (4)).

    Parameters
    ----------
    language : DyckLanguage
    prefixes : iterable of prefixes
        As for `DyckLanguage.encode`, for example from `DyckLanguage.sample_sequences`.
    first_layer : "trained" or "minimal"
        "trained": inputs are the 2 k brackets, with START as number 2 k. "minimal": inputs are the states of a minimal
        first layer (Assumption 1), numbered by the language.
    targets : "drawn" or "exact"
        "drawn": the bracket that follows; the last position has no target. "exact": its distribution, (3), at every
        position, the last included.
    length : int, optional
        Positions, START included. Default: the length of the longest sequence.

    Raises
    ------
    ValueError
        If a prefix is not in the language, there is none, or it is too long.
    """
    checks.one_of("first_layer", first_layer, ("trained", "minimal"))
    checks.one_of("targets", targets, ("drawn", "exact"))
    checks.instance("language", language, distributions.bring("yzflow_bounded_dyck").DyckLanguage)
    encoded = [language.encode(prefix) for prefix in checks.listed("prefixes", prefixes, "be an iterable of prefixes")]
    if not encoded:
        raise checks.reject("prefixes", "hold at least one prefix", "none")
    longest = max(prefix.size for prefix in encoded) + 1
    length = longest if length is None else checks.integer("length", length, minimum=longest)
    width = language.n_brackets if targets == "exact" else 1
    checks.fits_in_memory("length", 8 * len(encoded) * length * (2 + width), "fill up sequences")
    inputs = np.full((len(encoded), length), language.n_brackets)
    mask = np.zeros((len(encoded), length), dtype=bool)
    hard = np.zeros((len(encoded), length), dtype=np.int64)
    for row, prefix in enumerate(encoded):
        inputs[row, : prefix.size + 1] = _numbers(language, prefix, first_layer)
        hard[row, : prefix.size] = prefix
        mask[row, : prefix.size + (targets == "exact")] = True
    if targets == "drawn":
        return Sequences(inputs, hard, mask)
    soft = np.full((*inputs.shape, language.n_brackets), 1 / language.n_brackets)
    soft[mask] = language.bags(encoded, positions="all").target
    return Sequences(inputs, soft, mask)


def _numbers(language: DyckLanguage, prefix: np.ndarray, first_layer: str) -> np.ndarray:
    if first_layer == "minimal":
        return language.state_sequence(prefix)
    return np.append(language.n_brackets, prefix)


@dataclass(frozen=True, eq=False)
class Insertions(Frozen):
    """Sequences that the contrastive regulariser (22) inserts behind the first token of others.

    Parameters
    ----------
    tokens : (n, length) int
        Filled up at the end with any token.
    lengths : (n,) int
        How many of the tokens count.
    weights : (n,) float
        Probability of each.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        tokens = _tokens("tokens", self.tokens)
        lengths = checks.index_array("lengths", self.lengths, upper=tokens.shape[1] + 1).astype(np.int32)
        weights = checks.non_negative_array("weights", self.weights, ndim=1)
        for name, array in (("lengths", lengths), ("weights", weights)):
            if len(array) != len(tokens):
                raise checks.reject(name, f"have {len(tokens)} entries, one an insertion", len(array))
        checks.sum_to_one("weights", weights.sum())
        for name, array in (("tokens", tokens), ("lengths", lengths), ("weights", weights)):
            object.__setattr__(self, name, read_only(array))


def dyck_insertions(language: DyckLanguage, *, first_layer: str = "trained") -> Insertions:
    """The insertions p_r of (22) as sequences: r nested pairs, r uniform in 1..D, random types.

    `DyckLanguage.nested_pairs` has the same insertions as bags of states.
    """
    checks.one_of("first_layer", first_layer, ("trained", "minimal"))
    checks.instance("language", language, distributions.bring("yzflow_bounded_dyck").DyckLanguage)
    k, D = language.n_types, language.max_depth
    language.nested_pairs()  # refuses a language with too many
    rows, weights = [], []
    for r in range(1, D + 1):
        for types in itertools.product(range(k), repeat=r):
            types = np.array(types)
            pairs = np.concatenate([2 * types, 2 * types[::-1] + 1])
            rows.append(_numbers(language, pairs, first_layer)[1:])
            weights.append(1 / (D * k**r))
    tokens = np.zeros((len(rows), 2 * D), dtype=np.int64)
    for row, numbers in zip(tokens, rows, strict=True):
        row[: numbers.size] = numbers
    return Insertions(tokens, [numbers.size for numbers in rows], weights)
