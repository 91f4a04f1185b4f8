r"""Languages beside Dyck: what a second layer without positions can be asked about any of them.

A *language* is a process of tokens. Its *configuration* after a prefix decides the next token: a stack, counters, the
state of an automaton. The layer does not see it. It sees the bag of the *states* that a first layer hands on: of each
token, the token and a label, such as the depth in Dyck. `DyckLanguage` is such a language; `Automaton` is that of a
table of moves, read from a file; `shuffle_language` writes the table for counters. What of the balance condition
carries over is in `loops`.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dynamics.bags import Bags
from dynamics.support import checks
from dynamics.support.frozen import Frozen
from yzflow_bounded_dyck.dyck import MOST_PREFIXES, POSITIONS, checked_lengths

_KEYS = ("to", "probability", "label")


@runtime_checkable
class Language(Protocol):
    """A language, as the functions of `loops` and `training.start` ask for it; `DyckLanguage` and `Automaton` have it.

    A prefix is a sequence of token numbers, or of what else the language's own `state_sequence` takes.
    """

    @property
    def tokens(self) -> tuple[str, ...]:
        """Names of the next tokens, by number."""

    @property
    def states(self) -> tuple[Any, ...]:
        """The states that the first layer can hand on, by number; the last is START."""

    @property
    def n_states(self) -> int:
        """Number of these."""

    @property
    def start(self) -> int:
        """Number of START."""

    def configuration(self, prefix: Any) -> Hashable:
        """The part of a prefix that decides the tokens after it."""

    def state_sequence(self, prefix: Any) -> np.ndarray:
        """Numbers of the states of START and each token of a prefix: (length + 1,)."""

    def next_token(self, prefix: Any) -> np.ndarray:
        """Exact distribution of the token after a prefix: (tokens,)."""

    def bags(self, prefixes: Iterable, *, positions: str = "last", weight: ArrayLike | None = None) -> Bags:
        """Bags of the states of given prefixes, with their exact distributions as targets."""

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
        """Bags of random prefixes, or of words, which return to the first configuration."""


class Seen(NamedTuple):
    """A token as a first layer hands it on.

    Attributes
    ----------
    token : str or None
        None for START.
    label : str or None
        What the first layer adds to the token; None if it adds nothing.
    """

    token: str | None
    label: str | None


class Automaton(Frozen):
    """The language of a finite automaton whose moves have probabilities; each token leads to one configuration.

    Parameters
    ----------
    transitions : mapping
        For each configuration, by its name, a mapping from tokens to moves ``{"to": configuration, "probability": p,
        "label": text}``. The probabilities of a configuration sum to one; the label may be left out.
    start : str
        The configuration of the empty prefix. Every other must be reached from it.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules; the message names the configuration and the token.

    Examples
    --------
    The next token tells the parity of the a's; the layer sees tokens alone.

    >>> parity = Automaton({
    ...     "even": {"a": {"to": "odd", "probability": 0.5}, "b": {"to": "even", "probability": 0.5}},
    ...     "odd": {"a": {"to": "even", "probability": 0.9}, "b": {"to": "odd", "probability": 0.1}},
    ... }, start="even")
    >>> parity.next_token("aab")
    array([0.5, 0.5])
    >>> parity.configuration("aba")
    'even'
    >>> parity.states
    (Seen(token='a', label=None), Seen(token='b', label=None), Seen(token=None, label=None))
    """

    configurations: tuple[str, ...]
    tokens: tuple[str, ...]
    states: tuple[Seen, ...]
    probability: np.ndarray
    target: np.ndarray
    seen: np.ndarray

    def __init__(self, transitions: Mapping[str, Mapping[str, Mapping[str, Any]]], start: str) -> None:
        moves = _checked_moves(transitions)
        names = tuple(moves)
        first = checks.one_of("start", start, names)
        tokens = tuple(dict.fromkeys(token for row in moves.values() for token in row))
        states = tuple(dict.fromkeys(Seen(token, move[2]) for row in moves.values() for token, move in row.items()))
        shape = (len(names), len(tokens))
        probability, target, seen = np.zeros(shape), np.full(shape, -1), np.full(shape, -1)
        numbers = {state: number for number, state in enumerate(states)}
        for (row, name), (column, token) in itertools.product(enumerate(names), enumerate(tokens)):
            if token in moves[name]:
                to, chance, label = moves[name][token]
                probability[row, column], target[row, column] = chance, names.index(to)
                seen[row, column] = numbers[Seen(token, label)]
        order = np.array([names.index(first), *(row for row, name in enumerate(names) if name != first)])
        rank = np.argsort(order)
        target = np.where(target[order] < 0, -1, rank[target[order]])
        vars(self).update(
            configurations=tuple(names[row] for row in order),
            tokens=tokens,
            states=(*states, Seen(None, None)),
            probability=checks.read_only(probability[order]),
            target=checks.read_only(target),
            seen=checks.read_only(seen[order]),
        )
        self._check_reached()

    def __repr__(self) -> str:
        return f"Automaton({len(self.configurations)} configurations, {len(self.tokens)} tokens)"

    @property
    def n_states(self) -> int:
        """Number of what the first layer can hand on, START included."""
        return len(self.states)

    @property
    def start(self) -> int:
        """Number of the state START."""
        return self.n_states - 1

    @classmethod
    def load(cls, path: str | os.PathLike) -> Automaton:
        """The automaton of a JSON file: an object with "start" and "transitions", in the form of the arguments.

        Raises
        ------
        ValueError
            If the file holds no such object, or the automaton breaks a rule.
        """
        file = checks.path("path", path)
        try:
            entries = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_once_each)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise checks.reject("path", "be a file of JSON", f"{file}: {checks.brief(str(error))}") from None
        rule = 'hold one object with the keys "start" and "transitions" and no other'
        if not isinstance(entries, dict) or set(entries) != {"start", "transitions"}:
            keys = sorted(entries) if isinstance(entries, dict) else type(entries).__name__
            raise checks.reject("path", rule, f"{checks.brief(keys)} in {file}")
        return cls(entries["transitions"], entries["start"])

    def _check_reached(self) -> None:
        reached, new = {0}, [0]
        while new:
            new = [to for to in np.unique(self.target[new]).tolist() if to >= 0 and to not in reached]
            reached |= set(new)
        missed = [name for row, name in enumerate(self.configurations) if row not in reached]
        if missed:
            got = f"{missed[0]!r}, to which no moves lead: leave it out, or add a move to it"
            raise checks.reject(
                "transitions", f"have configurations that are reached from {self.configurations[0]!r}", got
            )

    def encode(self, prefix: str | Sequence[int] | Sequence[str] | np.ndarray) -> np.ndarray:
        """A prefix as an array of token numbers, from those, from names, or from text if names are single letters.

        Raises
        ------
        ValueError
            If a token has no move where the prefix has it; the message names the token and its position.
        """
        if isinstance(prefix, str) and any(len(token) != 1 for token in self.tokens):
            raise checks.reject("prefix", "be a sequence of tokens, since a token has several letters", repr(prefix))
        if isinstance(prefix, (str, list, tuple)) and any(isinstance(token, str) for token in prefix):
            unknown = [place for place, token in enumerate(prefix) if token not in self.tokens]
            if unknown:
                wrong = f"{checks.brief(prefix[unknown[0]])} at position {unknown[0]}"
                raise checks.reject("prefix", f"consist of the tokens {' '.join(self.tokens)}", wrong)
            prefix = [self.tokens.index(str(token)) for token in prefix]
        numbers = checks.index_array("prefix", [] if isinstance(prefix, str) else prefix, upper=len(self.tokens))
        self._walked(numbers[None])
        return numbers

    def _walked(self, tokens: np.ndarray) -> np.ndarray:
        """Configurations before each token of sequences of one length, and after all: (sequences, length + 1)."""
        walked = np.zeros((len(tokens), tokens.shape[1] + 1), dtype=np.int64)
        for position, column in enumerate(tokens.T):
            walked[:, position + 1] = self.target[walked[:, position], column]
            if (wrong := np.flatnonzero(walked[:, position + 1] < 0)).size:
                place = self.configurations[walked[wrong[0], position]]
                may = " ".join(
                    self.tokens[token] for token in np.flatnonzero(self.probability[walked[wrong[0], position]])
                )
                got = f"{self.tokens[column[wrong[0]]]!r} at position {position}"
                raise checks.reject("prefix", f"go on from {place!r} with one of {may}", got)
        return walked

    def configuration(self, prefix: str | Sequence[int] | Sequence[str] | np.ndarray) -> str:
        """Name of the configuration after a prefix."""
        return self.configurations[self._walked(self.encode(prefix)[None])[0, -1]]

    def state_sequence(self, prefix: str | Sequence[int] | Sequence[str] | np.ndarray) -> np.ndarray:
        """Numbers of the states of START and each token of a prefix: (length + 1,)."""
        tokens = self.encode(prefix)
        return np.append(self.start, self.seen[self._walked(tokens[None])[0, :-1], tokens])

    def next_token(self, prefix: str | Sequence[int] | Sequence[str] | np.ndarray) -> np.ndarray:
        """Exact distribution of the token after a prefix: (tokens,)."""
        return self.probability[self._walked(self.encode(prefix)[None])[0, -1]].copy()

    def bags(self, prefixes: Iterable, *, positions: str = "last", weight: ArrayLike | None = None) -> Bags:
        """Bags of the states of given prefixes, as `DyckLanguage.bags` makes them.

        Parameters
        ----------
        prefixes : iterable of prefixes
            Each as `encode` takes it.
        positions : "last" or "all"
            "last": a bag for each prefix. "all": a bag for each prefix of it, the empty one and itself included.
        weight : (bags,) float, optional
            Weight of each bag; sums to one. Default: uniform.
        """
        encoded = [self.encode(prefix) for prefix in checks.listed("prefixes", prefixes, "be an iterable of prefixes")]
        if not encoded:
            raise checks.reject("prefixes", "hold at least one prefix", "none")
        return self._bags(encoded, checks.one_of("positions", positions, POSITIONS), weight)

    def _bags(self, sequences: list[np.ndarray], positions: str, weight: ArrayLike | None = None) -> Bags:
        lengths = np.array([len(tokens) for tokens in sequences])
        first = lengths if positions == "last" else np.zeros_like(lengths)
        slots = np.concatenate([[0], np.cumsum(lengths - first + 1)])
        number = int(slots[-1])
        checks.fits_in_memory("prefixes", 8 * number * (self.n_states + len(self.tokens) + 2), f"make {number:,} bags")
        count, query = np.zeros((number, self.n_states)), np.empty(number, dtype=np.int64)
        target = np.empty((number, len(self.tokens)))
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            tokens = np.array([sequences[row] for row in rows], dtype=np.int64).reshape(rows.size, length)
            walked = self._walked(tokens)
            states = np.column_stack([np.full(rows.size, self.start), self.seen[walked[:, :-1], tokens]])
            running, which = np.zeros((rows.size, self.n_states)), np.arange(rows.size)
            for position in range(length + 1):
                running[which, states[:, position]] += 1
                if position >= first[rows[0]]:
                    slot = slots[rows] + position - first[rows[0]]
                    count[slot], query[slot] = running, states[:, position]
                    target[slot] = self.probability[walked[:, position]]
        rows, token = np.nonzero(count)
        indptr = np.searchsorted(rows, np.arange(number + 1))
        sizes: dict[str, Any] = {"n_queries": self.n_states, "n_tokens": self.n_states, "vocab_size": len(self.tokens)}
        return Bags(query, target, indptr, token, count[rows, token], weight, **sizes)

    def enumerate(self, *, max_length: int, min_length: int = 1, kind: str = "prefix", positions: str = "last") -> Bags:
        """All prefixes or words of the given lengths as weighted bags: the exact law of `sample`, equal bags merged."""
        min_length, max_length = checked_lengths(min_length, max_length, kind)
        checks.one_of("positions", positions, POSITIONS)
        layer: list[tuple[tuple[int, ...], int, float]] = [((), 0, 1.0)]
        sequences, weights = [], []
        for length in range(max_length + 1):
            if length >= min_length:
                kept = [entry for entry in layer if kind == "prefix" or entry[1] == 0]
                sequences += [np.array(tokens, dtype=np.int64) for tokens, _, _ in kept]
                weights += [np.full((length + 1) ** (positions == "all"), chance) for _, _, chance in kept]
            layer = [
                ((*tokens, token), int(self.target[at, token]), chance * self.probability[at, token])
                for tokens, at, chance in layer * (length < max_length)
                for token in np.flatnonzero(self.target[at] >= 0).tolist()
            ]
            if len(layer) > MOST_PREFIXES:
                rule = f"leave at most {MOST_PREFIXES:,} prefixes of a length to list"
                raise checks.reject("max_length", rule, max_length)
        if not sequences:
            raise checks.reject("max_length", "leave the length of a word, which returns to the start", max_length)
        weight = np.concatenate(weights)
        return self._bags(sequences, positions, weight / weight.sum()).merge()

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
        """Bags of ``n`` random sequences, with the exact distributions of the next token as targets.

        Parameters and errors are those of `DyckLanguage.sample`, with tokens for brackets: a prefix is a walk, and a
        word is one that returns to the start.
        """
        sequences = self.sample_sequences(n, max_length=max_length, rng=rng, kind=kind, min_length=min_length)
        return self._bags(sequences, checks.one_of("positions", positions, POSITIONS))

    def sample_sequences(
        self, n: int, *, max_length: int, rng: np.random.Generator | int, kind: str = "prefix", min_length: int = 1
    ) -> list[np.ndarray]:
        """The sequences themselves that `sample` makes bags of, each an array of token numbers."""
        n = checks.integer("n", n, minimum=1)
        min_length, max_length = checked_lengths(min_length, max_length, kind)
        generator = checks.generator("rng", rng)
        checks.fits_in_memory("n", 8 * n * (max_length + len(self.tokens)), "draw sequences")
        checks.fits_in_memory("max_length", 8 * (max_length + 1) * len(self.configurations), "weigh lengths")
        log_return = self._log_return(max_length) if kind == "word" else None
        if log_return is None:
            lengths = generator.integers(min_length, max_length + 1, size=n)
        else:
            most = log_return[min_length:, 0].max()
            if most == -np.inf:
                raise checks.reject("max_length", "leave the length of a word, which returns to the start", max_length)
            chance = np.exp(log_return[min_length:, 0] - most)
            lengths = min_length + generator.choice(chance.size, size=n, p=chance / chance.sum())
        tokens, at = np.zeros((n, int(lengths.max())), dtype=np.int64), np.zeros(n, dtype=np.int64)
        for position in range(tokens.shape[1]):
            weights = self.probability[at]
            if log_return is not None:  # Doob's transform: p B_(r-1)(to) / B_r(from), with r tokens to go
                left = np.maximum(lengths - position - 1, 0)
                logs = np.where(weights > 0, log_return[left[:, None], self.target[at]], -np.inf)
                best = logs.max(axis=1, keepdims=True)
                weights = weights * np.exp(logs - np.where(best > -np.inf, best, 0))
            sums = np.cumsum(weights, axis=1)
            drawn = (generator.random(n)[:, None] * sums[:, -1:] >= sums).sum(axis=1)
            tokens[:, position] = np.minimum(drawn, len(self.tokens) - 1)
            at = np.where(position < lengths, self.target[at, tokens[:, position]], 0)
        return [row[:length].copy() for row, length in zip(tokens, lengths, strict=True)]

    def _log_return(self, length: int) -> np.ndarray:
        """``[r, c]``: log of the probability that a walk at c is at the start after r more tokens."""
        logs = np.full((length + 1, len(self.configurations)), -np.inf)
        logs[0, 0] = 0.0
        with np.errstate(divide="ignore"):
            moves = np.log(self.probability)
        for r in range(length):
            logs[r + 1] = np.logaddexp.reduce(moves + logs[r, self.target], axis=1)
        return logs


def _once_each(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless it has a key twice, of which Python would keep the last alone."""
    names = [name for name, _ in entries]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise checks.reject("path", "have each key of an object once", f"{twice[0]!r} twice")
    return dict(entries)


def _checked_moves(transitions: Any) -> dict[str, dict[str, tuple[str, float, str | None]]]:
    """(to, probability, label) of each token of each configuration, checked."""
    moves: dict[str, dict[str, tuple[str, float, str | None]]] = {}
    table = checks.mapping("transitions", transitions)
    if not table:
        raise checks.reject("transitions", "have at least one configuration", "none")
    for name, row in table.items():
        where = f"transitions[{name!r}]"
        _text("transitions", "have configurations with names", name)
        entries = checks.mapping(where, row)
        if not entries:
            raise checks.reject(where, "have at least one move, as every prefix goes on", "none")
        moves[name] = {token: _checked_move(where, token, entry, table) for token, entry in entries.items()}
        checks.sum_to_one(where, float(sum(move[1] for move in moves[name].values())))
    return moves


def _checked_move(where: str, token: Any, entry: Any, table: dict) -> tuple[str, float, str | None]:
    _text(where, "have tokens with names", token)
    where = f"{where}[{token!r}]"
    move = checks.mapping(where, entry)
    strange = [key for key in move if key not in _KEYS]
    if strange or not {"to", "probability"} <= set(move):
        raise checks.reject(where, 'have "to", "probability" and perhaps "label"', sorted(map(str, move)))
    to = move["to"]
    if not isinstance(to, str) or to not in table:
        some = ", ".join(map(repr, list(table)[:5]))
        raise checks.reject(where, f'lead "to" a configuration of `transitions`, such as {some}', checks.brief(to))
    chance = checks.positive(where, move["probability"])
    label = move.get("label")
    if label is not None:
        _text(where, 'have text for its "label"', label)
    return to, chance, label


def _text(name: str, rule: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise checks.reject(name, rule, checks.brief(value))


def shuffle_language(
    n_types: int, max_count: int, open_probability: float = 0.5, *, label: str | None = "count"
) -> Automaton:
    r"""Shuffled brackets: each type is well nested by itself, whatever stands between, and is open at most C times.

    A configuration is a counter for each type. A type is drawn uniformly; at count 0 it opens, at count C it closes,
    otherwise it opens with probability q. Tokens are a+ and a-, b+ and b-, ..: open and close of the types a, b, ..

    Parameters
    ----------
    n_types : int
        k >= 1, at most 26.
    max_count : int
        C >= 1.
    open_probability : float
        q, between 0 and 1.
    label : "count" or None
        "count": the first layer hands on the type's own count after the token, as Dyck's hands on the depth. None: the
        token alone.

    Examples
    --------
    >>> language = shuffle_language(2, 2, label=None)
    >>> language.configuration(["a+", "b+", "a-"])
    '0 1'
    >>> language.next_token(["a+", "b+", "a-"])
    array([0.5 , 0.25, 0.25, 0.  ])
    """
    k = checks.integer("n_types", n_types, minimum=1, maximum=26)
    most = checks.integer("max_count", max_count, minimum=1)
    q = checks.real("open_probability", open_probability)
    if not 0 < q < 1:
        raise checks.reject("open_probability", "be above 0 and below 1", q)
    if label is not None:
        checks.one_of("label", label, ("count",))
    if (most + 1) ** k > 10_000:
        raise checks.reject("max_count", "leave at most 10,000 configurations, (C + 1)^k", f"{(most + 1) ** k:,}")
    transitions = {}
    for counts in itertools.product(range(most + 1), repeat=k):
        row: dict[str, dict[str, Any]] = {}
        for kind, count in enumerate(counts):
            opens = 1.0 if count == 0 else 0.0 if count == most else q
            for sign, step, chance in (("+", 1, opens), ("-", -1, 1 - opens)):
                if chance > 0:
                    to = " ".join(str(c + step * (i == kind)) for i, c in enumerate(counts))
                    move = {"to": to, "probability": chance / k}
                    row[chr(97 + kind) + sign] = move | ({} if label is None else {"label": str(count + step)})
        transitions[" ".join(map(str, counts))] = row
    return Automaton(transitions, start=" ".join(["0"] * k))
