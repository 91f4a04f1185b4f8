"""Bounded Dyck languages: the data of Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429).

Behind a minimal first layer (their Assumption 1), a token is its bracket and its depth. A second layer without
positions then sees a bag of such states, so that a prefix of length 500 costs what one of length 5 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics.bags import Bags
from dynamics.support import checks
from dynamics.support.frozen import Frozen
from yzflow_bounded_dyck import _dyck_kernels as kernels

KINDS = ("prefix", "word")
POSITIONS = ("last", "all")
EMBEDDINGS = ("one-hot", "type and depth", "type and angle")
_SYMBOLS = "()[]{}<>"
MOST_PREFIXES = 1_000_000
_MOST_STATES = 10_000_000


def checked_lengths(min_length: Any, max_length: Any, kind: Any) -> tuple[int, int]:
    """The range of lengths of sequences of a kind."""
    checks.one_of("kind", kind, KINDS)
    min_length = checks.integer("min_length", min_length, minimum=0)
    return min_length, checks.integer("max_length", max_length, minimum=min_length)


class State(NamedTuple):
    """A token as a minimal first layer keeps it: the bracket and the depth after it.

    Attributes
    ----------
    kind : str
        "open", "close" or "start".
    type : int or None
        Type of the bracket, from 0; None for START.
    depth : int
        Depth after the bracket: 1 to D after an open one, 0 to D - 1 after a closed one, 0 at START.
    """

    kind: str
    type: int | None
    depth: int


class DyckLanguage(Frozen):
    r"""The language Dyck_{k,D}: well-nested words of k types of brackets whose depth never exceeds D.

    Prefixes grow bracket by bracket (Definition 1, (3)): at depth 0 an open bracket, 1/k each type; at depth D the
    bracket that closes the last open one; otherwise an open one with q/k each type or the closing one with 1 - q.

    Brackets are numbered 2 i (open) and 2 i + 1 (close) for the type i from 0: these are the 2 k next tokens. States
    are numbered so that partners are k D apart, with START last:

    - open (i, d), d = 1..D, is i D + d - 1;
    - close (i, d), d = 0..D - 1, is k D + i D + d; it closes open (i, d + 1), its partner;
    - START is 2 k D. It is in every bag, and the query of the empty prefix.

    Parameters
    ----------
    n_types : int
        k >= 1.
    max_depth : int
        D >= 1.
    open_probability : float
        q, between 0 and 1.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.

    Examples
    --------
    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> language.next_token("([]")
    array([0.25, 0.5 , 0.25, 0.  ])
    >>> language.bags(["([]"])
    <Bags: 1 bags, 4 entries, 13 queries, 13 tokens, 4 next tokens>
    >>> language.encode("([)")
    Traceback (most recent call last):
    ValueError: `prefix` must close '[' before any other, but got ')' at position 2
    """

    n_types: int
    max_depth: int
    open_probability: float

    def __init__(self, n_types: int, max_depth: int, open_probability: float = 0.5) -> None:
        n_types = checks.integer("n_types", n_types, minimum=1)
        max_depth = checks.integer("max_depth", max_depth, minimum=1)
        if 2 * n_types * max_depth >= _MOST_STATES:
            rule = f"leave fewer than {_MOST_STATES:,} states, two a type and depth and one more"
            raise checks.reject("max_depth", rule, f"{2 * n_types * max_depth + 1:,}")
        open_probability = checks.real("open_probability", open_probability)
        if not 0 < open_probability < 1:
            raise checks.reject("open_probability", "be above 0 and below 1", open_probability)
        vars(self).update(n_types=n_types, max_depth=max_depth, open_probability=open_probability)

    def __repr__(self) -> str:
        return f"DyckLanguage(n_types={self.n_types}, max_depth={self.max_depth}, q={self.open_probability:g})"

    @property
    def n_states(self) -> int:
        """2 k D + 1, START included."""
        return 2 * self.n_types * self.max_depth + 1

    @property
    def n_brackets(self) -> int:
        """2 k, the number of next tokens."""
        return 2 * self.n_types

    @property
    def start(self) -> int:
        """Number of the state START."""
        return self.n_states - 1

    @property
    def states(self) -> tuple[State, ...]:
        """All states, in the order of their numbers."""
        types, depths = range(self.n_types), range(self.max_depth)
        opens = [State("open", i, d + 1) for i in types for d in depths]
        closes = [State("close", i, d) for i in types for d in depths]
        return (*opens, *closes, State("start", None, 0))

    @property
    def brackets(self) -> tuple[str, ...]:
        """How brackets are written, by number: ( ) [ ] { } < > for up to four types, else (0 )0 (1 )1 and so on."""
        if self.n_types <= len(_SYMBOLS) // 2:
            return tuple(_SYMBOLS[: self.n_brackets])
        return tuple(f"{side}{i}" for i in range(self.n_types) for side in "()")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The brackets, by the name that all languages have for next tokens."""
        return self.brackets

    def open(self, type: ArrayLike, depth: ArrayLike) -> np.ndarray | np.int64:
        """Number of the state open (type, depth); integers or arrays of them, depth from 1 to D."""
        return self._state(type, depth, 1)

    def close(self, type: ArrayLike, depth: ArrayLike) -> np.ndarray | np.int64:
        """Number of the state close (type, depth); integers or arrays of them, depth from 0 to D - 1."""
        return self.n_types * self.max_depth + self._state(type, depth, 0)

    def _state(self, type, depth, lowest):
        """``type`` D + ``depth`` - ``lowest`` in int64, whatever integers they come in."""
        arrays = []
        for name, value, first, last in (
            ("type", type, 0, self.n_types - 1),
            ("depth", depth, lowest, self.max_depth - 1 + lowest),
        ):
            array = checks.integer_array(name, value)
            bad = (array < first) | (array > last)
            if bad.any():
                raise checks.reject(name, f"be from {first} to {last}", int(array.ravel()[np.argmax(bad)]))
            arrays.append(array)
        kinds, depths = arrays
        try:
            return kinds * self.max_depth + (depths - lowest)
        except ValueError:
            raise checks.reject("depth", f"broadcast against types of shape {kinds.shape}", depths.shape) from None

    def partner(self, state: ArrayLike | State) -> int | np.ndarray | State:
        """The state that a state is matched with: open (i, d) and close (i, d - 1).

        Parameters
        ----------
        state : int, array of int or State
            Numbers, or one of `states`. START has no partner.

        Returns
        -------
        The partner in the same form.
        """
        if isinstance(state, State):
            if state not in self.states[:-1]:
                raise checks.reject("state", "be a bracket of this language", state)
            change = 1 if state.kind == "close" else -1
            return State("open" if change > 0 else "close", state.type, state.depth + change)
        numbers = checks.index_array("state", np.atleast_1d(checks.array("state", state)), upper=self.start)
        pairs = self.n_types * self.max_depth
        partners = np.where(numbers < pairs, numbers + pairs, numbers - pairs)
        return partners if np.ndim(state) else int(partners[0])

    def encode(self, prefix: str | Sequence[int] | np.ndarray) -> np.ndarray:
        """A prefix as an array of bracket numbers, from those or, with up to four types, from a string like "([]".

        Raises
        ------
        ValueError
            If it is no prefix of a word; the message names the bracket and its position.
        """
        if isinstance(prefix, str):
            symbols = self.brackets
            if self.n_types > len(_SYMBOLS) // 2:
                raise checks.reject("prefix", "be bracket numbers, since types have no symbols", repr(prefix))
            unknown = [position for position, symbol in enumerate(prefix) if symbol not in symbols]
            if unknown:
                wrong = f"{prefix[unknown[0]]!r} at position {unknown[0]}"
                raise checks.reject("prefix", f"consist of the brackets {' '.join(symbols)}", wrong)
            prefix = [symbols.index(symbol) for symbol in prefix]
        brackets = checks.index_array("prefix", prefix, upper=self.n_brackets)
        self._states_of(brackets, np.array([0, brackets.size]))
        return brackets

    def _states_of(self, brackets, indptr) -> np.ndarray:
        """States after each bracket of sequences end to end, or the error for the first bracket that does not fit."""
        states = np.empty(brackets.size, dtype=np.int64)
        wrong = kernels.states(brackets, indptr, self.max_depth, self.n_types, states)
        if wrong >= 0:
            start = indptr[np.searchsorted(indptr, wrong, side="right") - 1]
            stack = self._stack(states[start:wrong])
            place = f"{self.brackets[brackets[wrong]]!r} at position {wrong - start}"
            if brackets[wrong] % 2 == 0:
                raise checks.reject("prefix", f"be no deeper than {self.max_depth}", place)
            if stack.size == 0:
                raise checks.reject("prefix", "open a bracket before it closes one", place)
            raise checks.reject("prefix", f"close {self.brackets[2 * stack[-1]]!r} before any other", place)
        return states

    def _stack(self, states) -> np.ndarray:
        """Types of the unmatched brackets after these states."""
        pairs = self.n_types * self.max_depth
        if states.size == 0:
            return np.empty(0, dtype=np.int64)
        depth = states[-1] % self.max_depth + (states[-1] < pairs)
        opens = states[states < pairs]
        last = {int(state % self.max_depth): int(state // self.max_depth) for state in opens}
        return np.array([last[level] for level in range(depth)], dtype=np.int64)

    def state_sequence(self, prefix: str | Sequence[int] | np.ndarray) -> np.ndarray:
        """Numbers of the states of START and each bracket of a prefix: (length + 1,)."""
        brackets = self.encode(prefix)
        return np.append(self.start, self._states_of(brackets, np.array([0, brackets.size])))

    def stack(self, prefix: str | Sequence[int] | np.ndarray) -> np.ndarray:
        """Types of the brackets that a prefix leaves open, outermost first: (depth,)."""
        return self._stack(self.state_sequence(prefix)[1:])

    def configuration(self, prefix: str | Sequence[int] | np.ndarray) -> tuple[int, ...]:
        """The stack as a tuple: what decides the next bracket, by the name that all languages have for it."""
        return tuple(self.stack(prefix).tolist())

    def next_token(self, prefix: str | Sequence[int] | np.ndarray) -> np.ndarray:
        """Distribution of the next bracket after a prefix, (3): (2 k,)."""
        return self.bags([prefix]).target[0]

    def log_probability(self, prefix: str | Sequence[int] | np.ndarray) -> float:
        """Log of the probability that the brackets of a prefix are drawn one after the other, in nats.

        The probability is ``(1/k)^{opens at depth 1} (q/k)^{deeper opens} (1 - q)^{closes to a depth below D - 1}``,
        depths counted after the bracket. Those of all prefixes of one length sum to one.
        """
        return float(self._log_probabilities(self.encode(prefix)[None])[0])

    def _log_probabilities(self, prefixes: np.ndarray) -> np.ndarray:
        closing = prefixes % 2 == 1
        depth = np.cumsum(1 - 2 * closing, axis=1)
        opens = (~closing).sum(axis=1)
        deeper = (~closing & (depth > 1)).sum(axis=1)
        free = (closing & (depth < self.max_depth - 1)).sum(axis=1)
        logs = deeper * np.log(self.open_probability) + free * np.log1p(-self.open_probability)
        return logs - opens * np.log(self.n_types)

    def prefixes(self, length: int) -> np.ndarray:
        """Every prefix of one length: (number, length) bracket numbers.

        Raises
        ------
        ValueError
            If there are more than a million.
        """
        length = checks.integer("length", length, minimum=0)
        self._check_number("length", length)
        prefixes = np.zeros((1, 0), dtype=np.int64)
        stack = np.zeros((1, self.max_depth), dtype=np.int64)
        depth = np.zeros(1, dtype=np.int64)
        for _ in range(length):
            opening, closing = np.flatnonzero(depth < self.max_depth), np.flatnonzero(depth > 0)
            kind = np.tile(np.arange(self.n_types), opening.size)
            parent = np.concatenate([np.repeat(opening, self.n_types), closing])
            bracket = np.concatenate([2 * kind, 2 * stack[closing, depth[closing] - 1] + 1])
            stack, depth = stack[parent], depth[parent]
            stack[np.arange(kind.size), depth[: kind.size]] = kind
            depth += 1 - 2 * (bracket % 2)
            prefixes = np.column_stack([prefixes[parent], bracket])
        return prefixes

    def _check_number(self, name: str, length: int):
        """Refuse lengths with too many prefixes to list."""
        ending = [1] + [0] * self.max_depth  # number of prefixes at each depth, as unbounded integers
        for _ in range(length):
            up = [0, *(self.n_types * number for number in ending[:-1])]
            ending = [one + other for one, other in zip(up, [*ending[1:], 0], strict=True)]
            if sum(ending) > MOST_PREFIXES:
                raise checks.reject(name, f"leave at most {MOST_PREFIXES:,} prefixes of a length to list", length)

    def enumerate(self, *, max_length: int, min_length: int = 1, kind: str = "prefix", positions: str = "last") -> Bags:
        """All prefixes or words of the given lengths as weighted bags: the exact law of `sample`.

        Parameters are those of `sample`. Equal bags are one, their weights added.
        """
        min_length, max_length = self._check_lengths(min_length, max_length, kind)
        checks.one_of("positions", positions, POSITIONS)
        self._check_number("max_length", max_length)
        listed, weights = [], []
        for length in range(min_length, max_length + 1):
            prefixes = self.prefixes(length)
            if kind == "word":
                prefixes = prefixes[(prefixes % 2).sum(axis=1) * 2 == length]
            if len(prefixes):
                listed.append(prefixes)
                weights.append(np.exp(self._log_probabilities(prefixes)))
        lengths = np.concatenate([np.full(len(prefixes), prefixes.shape[1]) for prefixes in listed])
        brackets = np.concatenate([prefixes.ravel() for prefixes in listed])
        weight = np.concatenate(weights)
        if positions == "all":
            weight = np.repeat(weight, lengths + 1)
        return self._bags(brackets, _indptr(lengths), positions, weight / weight.sum()).merge()

    def sample(
        self,
        n: int,
        *,
        max_length: int,
        rng: np.random.Generator | int,
        kind: str = "prefix",
        min_length: int = 1,
        positions: str = "last",
    ) -> Bags:
        """Bags of ``n`` random sequences, with the exact distributions of the next bracket as targets.

        Parameters
        ----------
        n : int
            Number of sequences.
        max_length, min_length : int
            Range of lengths in brackets, both ends included, START not counted.
        rng : numpy.random.Generator or seed
        kind : "prefix" or "word"
            "prefix": a length drawn uniformly, and a prefix of that length by Definition 1. "word": the same,
            conditioned on every bracket being closed at the end; drawn without rejection, at any length.
        positions : "last" or "all"
            "last": a bag for each sequence as it is. "all": a bag for each of its prefixes, the empty one and itself
            included, all of equal weight, which is how a language model trains on whole sequences.

        Returns
        -------
        Bags
            Over ``n_states`` queries and tokens and ``n_brackets`` next tokens; the query is the last state.

        Raises
        ------
        ValueError
            If an argument breaks one of these rules, or no word has a length in the range.
        """
        brackets, indptr = self._draw(n, max_length, rng, kind, min_length)
        return self._bags(brackets, indptr, checks.one_of("positions", positions, POSITIONS))

    def sample_sequences(
        self, n: int, *, max_length: int, rng: np.random.Generator | int, kind: str = "prefix", min_length: int = 1
    ) -> list[np.ndarray]:
        """The sequences themselves that `sample` makes bags of, each an array of bracket numbers."""
        brackets, indptr = self._draw(n, max_length, rng, kind, min_length)
        return np.split(brackets, indptr[1:-1])

    def _check_lengths(self, min_length, max_length, kind) -> tuple[int, int]:
        least, most = checked_lengths(min_length, max_length, kind)
        if kind == "word" and least == most and most % 2:
            raise checks.reject("max_length", "leave an even length, as every word has", most)
        return least, most

    def _draw(self, n, max_length, rng, kind, min_length) -> tuple[np.ndarray, np.ndarray]:
        n = checks.integer("n", n, minimum=1)
        min_length, max_length = self._check_lengths(min_length, max_length, kind)
        rng = checks.generator("rng", rng)
        shortest = min_length if kind == "word" else (min_length + max_length) // 2
        checks.fits_in_memory("n", 8 * n * (2 + shortest), "draw sequences")
        checks.fits_in_memory("max_length", 8 * (max_length + 1) * (self.max_depth + 1), "weigh lengths")
        if kind == "prefix":
            log_return = np.empty((0, 0))
            lengths = rng.integers(min_length, max_length + 1, size=n)
        else:
            log_return = np.empty((max_length + 1, self.max_depth + 1))
            kernels.log_return_probability(self.open_probability, log_return)
            chance = np.exp(log_return[min_length:, 0] - log_return[min_length:, 0].max())
            lengths = min_length + rng.choice(chance.size, size=n, p=chance / chance.sum())
        indptr = _indptr(lengths)
        brackets = np.empty(indptr[-1], dtype=np.int64)
        kernels.walk(rng, indptr, self.n_types, self.max_depth, self.open_probability, log_return, brackets)
        return brackets, indptr

    def bags(self, prefixes: Iterable, *, positions: str = "last", weight: ArrayLike | None = None) -> Bags:
        """Bags of given prefixes, in the form that `sample` returns.

        Parameters
        ----------
        prefixes : iterable of prefixes
            Each as `encode` takes it.
        positions : "last" or "all"
            As in `sample`.
        weight : (bags,) float, optional
            Weight of each bag; sums to one. Default: uniform.
        """
        encoded = [self.encode(prefix) for prefix in checks.listed("prefixes", prefixes, "be an iterable of prefixes")]
        if not encoded:
            raise checks.reject("prefixes", "hold at least one prefix", "none")
        indptr = _indptr([prefix.size for prefix in encoded])
        return self._bags(np.concatenate(encoded), indptr, checks.one_of("positions", positions, POSITIONS), weight)

    def _bags(self, brackets, indptr, positions, weight=None) -> Bags:
        lengths = np.diff(indptr)
        first = lengths if positions == "last" else np.zeros_like(lengths)
        bags = int((lengths - first + 1).sum())
        # A bag has at most one entry a bracket and START, and at most one a state.
        space = np.minimum(lengths + 1, self.n_states) * (lengths - first + 1)
        size = 16 * int(space.sum()) + 8 * bags * (self.n_brackets + 2)
        checks.fits_in_memory("prefixes", size, f"make {bags:,} bags")
        query, starts = np.empty(bags, dtype=np.int64), np.empty(bags + 1, dtype=np.int64)
        target = np.zeros((bags, self.n_brackets))
        token, count = np.empty(space.sum(), dtype=np.int64), np.empty(space.sum())
        entries = kernels.bags(
            self._states_of(brackets, indptr), indptr, first, self.n_types, self.max_depth, self.open_probability,
            query, target, starts, token, count,
        )  # fmt: skip
        sizes: dict[str, Any] = {"n_queries": self.n_states, "n_tokens": self.n_states, "vocab_size": self.n_brackets}
        return Bags(query, target, starts, token[:entries], count[:entries], weight, **sizes)

    def nested_pairs(self) -> Bags:
        """The insertions p_r of the contrastive regulariser (22): r nested pairs, r uniform in 1..D, random types.

        Each bag holds the 2 r states of ``open .. open close .. close`` from depth 0 and no START, since it comes
        before a prefix that has one; the query and the target are those after it. Weights are exact:
        ``1 / (D k^r)`` for each choice of types.

        Returns
        -------
        Bags
            k + k^2 + .. + k^D of them: the argument ``contrast`` of `Objective`.

        Raises
        ------
        ValueError
            If there are more than a million.
        """
        k, D = self.n_types, self.max_depth
        number = sum(k**r for r in range(1, D + 1))
        if number > MOST_PREFIXES:
            raise checks.reject("max_depth", f"leave at most {MOST_PREFIXES:,} insertions to list", f"{number:,}")
        query, indptr, token, weight = [], [0], [], []
        for r in range(1, D + 1):
            types = np.indices((k,) * r).reshape(r, -1).T
            opens = self.open(types, np.arange(1, r + 1))
            token.append(np.sort(np.hstack([opens, opens + k * D]), axis=1).ravel())
            query.append(opens[:, 0] + k * D)
            indptr.extend(indptr[-1] + 2 * r * np.arange(1, len(types) + 1))
            weight.append(np.full(len(types), 1 / (D * len(types))))
        token = np.concatenate(token)
        target = np.tile(self.next_token([]), (number, 1))
        sizes: dict[str, Any] = {"n_queries": self.n_states, "n_tokens": self.n_states, "vocab_size": self.n_brackets}
        return Bags(np.concatenate(query), target, indptr, token, np.ones(token.size), np.concatenate(weight), **sizes)

    def embedding(self, kind: str) -> np.ndarray:
        """Embedding e of each state: (n_states, width); attention logits are ``Z[q, s] = e(s)^T W_K^T W_Q e(q)``.

        Parameters
        ----------
        kind : str
            "one-hot", (19): a coordinate for each state. "type and depth", (20): one-hot bracket (2 k) and one-hot
            depth (D + 1). "type and angle", (21): one-hot bracket and (cos theta_d, sin theta_d) with
            ``theta_d = arctan(d / (D + 2 - d))``. In all three START has a coordinate of its own, the last.
        """
        checks.one_of("kind", kind, EMBEDDINGS)
        width = self.n_states if kind == "one-hot" else self.n_brackets + self.max_depth + 2
        checks.fits_in_memory("kind", 16 * self.n_states * width, f"embed {self.n_states:,} states")
        if kind == "one-hot":
            return np.eye(self.n_states)
        brackets = self.states[:-1]
        depth, types = np.array([(state.depth, state.type) for state in brackets]).T
        bracket = np.eye(self.n_brackets)[2 * types + [state.kind == "close" for state in brackets]]
        if kind == "type and depth":
            place = np.eye(self.max_depth + 1)[depth]
        else:
            angle = np.arctan(depth / (self.max_depth + 2 - depth))
            place = np.column_stack([np.cos(angle), np.sin(angle)])
        embedding = np.zeros((self.n_states, bracket.shape[1] + place.shape[1] + 1))
        embedding[:-1, :-1] = np.hstack([bracket, place])
        embedding[-1, -1] = 1
        return embedding


def _indptr(lengths) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
