r"""The balance condition for any language: loops must add nothing, and what a layer then knows.

A *loop* is a sequence of tokens after which the configuration is the one before it; in Dyck, a matched pair. A layer
without positions that is right at every length can tell a prefix from another with the same query only by the states
that loops leave. Let L be the lattice of the loops' bags in Z^S, with S the number of states without START.

- *Necessary.* Let every configuration lead back to the first, and let two prefixes with the query q have different
  next tokens. Then a layer that is right at every length has ``delta(q, loop) = sum_s count_s u(q, s) = 0`` for every
  loop, (14) in Dyck: the loop can be repeated in a detour that starts both prefixes, and LN forgets the rest.
- *So* ``u(q, .)`` is a linear map on Z^S / L. What it can tell is the free part of that group; its torsion, such as a
  parity, it cannot.
- *Sufficient.* If for each query the next token's distribution depends on the free part alone, uniform attention with
  values that span the linear maps on it is exact, with a head for each query: `balanced_layer_of` and `Head`.

The layer has no positions, no floor in LN, and a continuous head for each query (the residual link of (6) names it).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.matrices.normalforms import smith_normal_form

from dynamics import Bags, Layer
from dynamics.support import checks
from dynamics.support.frozen import Frozen
from yzflow_bounded_dyck import balance
from yzflow_bounded_dyck.languages import Language

_MOST_CONFIGURATIONS = 2000
_MOST_STEPS = 1_000_000


class _Move(NamedTuple):
    source: int
    token: int
    state: int
    to: int


class _Graph(NamedTuple):
    """Configurations in breadth-first order: a shortest prefix, the next token's law, and the moves of each."""

    prefixes: list[list[int]]
    targets: np.ndarray
    moves: list[list[_Move]]


class Known(NamedTuple):
    """Facts of a language that a layer which is right at every length can know, as far as it must be balanced.

    Attributes
    ----------
    rank : int
        Rank of the free part of Z^S / L: how many numbers the states' counts tell once loops add nothing.
    torsion : tuple of int
        Orders, above one, of the cyclic groups in the rest: (2,) if a parity is lost.
    values : (states, rank) array
        A basis of the values with which every loop adds nothing; zero for START. Entries are integers.
    blocks : (states,) array
        Attention may differ between queries from block to block only; -1 for states whose value must be zero.
    confused : tuple of (query, prefix, prefix)
        Two prefixes for each query that the free part does not tell apart although their next tokens differ.
    """

    rank: int
    torsion: tuple[int, ...]
    values: np.ndarray
    blocks: np.ndarray
    confused: tuple[tuple[int, list[int], list[int]], ...]

    @property
    def exact(self) -> bool:
        """Whether a layer can be right at every length: nothing is confused."""
        return not self.confused


def _kept(language: Any, make: Callable[[Any], Any]) -> Any:
    """``make(language)``, computed once for languages that never change."""
    checks.instance("language", language, Language)
    return language._once(make) if isinstance(language, Frozen) else make(language)


def _graph(language: Language) -> _Graph:
    """By breadth-first search from the empty prefix.

    Raises
    ------
    ValueError
        If the language is too large, or a configuration never leads back to the first.
    """
    prefixes: list[list[int]] = [[]]
    numbers: dict[Hashable, int] = {language.configuration([]): 0}
    targets: list[np.ndarray] = []
    moves: list[list[_Move]] = []
    for source, prefix in enumerate(prefixes):
        targets.append(language.next_token(prefix))
        moves.append([])
        for token in np.flatnonzero(targets[-1]).tolist():
            longer = [*prefix, token]
            to = numbers.setdefault(language.configuration(longer), len(prefixes))
            if to == len(prefixes):
                prefixes.append(longer)
            moves[-1].append(_Move(source, token, int(language.state_sequence(longer)[-1]), to))
        if len(prefixes) > _MOST_CONFIGURATIONS:
            raise checks.reject("language", f"have at most {_MOST_CONFIGURATIONS:,} configurations", language)
    back, new = {0}, {0}
    while new:
        new = {move.source for row in moves for move in row if move.to in new} - back
        back |= new
    if len(back) < len(prefixes):
        stuck = next(number for number in range(len(prefixes)) if number not in back)
        got = f"{language.configuration(prefixes[stuck])!r}, which never does: add a move back, as after a whole word"
        raise checks.reject("language", "lead back to its first configuration from every other", got)
    return _Graph(prefixes, np.array(targets), moves)


def simple_loops(language: Language) -> np.ndarray:
    """Bags of the loops that pass no configuration twice, each bag once: (loops, states).

    For `DyckLanguage` they are the k D matched pairs.

    Raises
    ------
    ValueError
        If a configuration never leads back to the first, or there are too many loops to list.
    """
    return _kept(language, _simple_loops)


def _simple_loops(language: Language) -> np.ndarray:
    graph: _Graph = _kept(language, _graph)
    found: dict[tuple[int, ...], None] = {}
    steps = 0
    for first in range(len(graph.prefixes)):
        open_moves, passed = [iter(graph.moves[first])], [first]
        states: list[int] = []
        while open_moves:
            steps += 1
            if steps > _MOST_STEPS:
                raise checks.reject(
                    "language", f"have loops that {_MOST_STEPS:,} steps list; `known` needs none", language
                )
            move = next(open_moves[-1], None)
            if move is None:
                open_moves.pop()
                passed.pop()
                states = states[:-1]
            elif move.to == first:
                found[tuple(sorted([*states, move.state]))] = None
            elif move.to > first and move.to not in passed:
                open_moves.append(iter(graph.moves[move.to]))
                passed.append(move.to)
                states = [*states, move.state]
    return checks.read_only(np.array([np.bincount(loop, minlength=language.n_states) for loop in found]))


def queries_in_doubt(language: Language) -> np.ndarray:
    """States after which the next token's distribution is not always the same: (queries,), increasing.

    These alone must be balanced. For `DyckLanguage` with two types or more: close (j, d), d = 1..D - 1.
    """
    return _kept(language, _queries_in_doubt)


def _queries_in_doubt(language: Language) -> np.ndarray:
    graph: _Graph = _kept(language, _graph)
    laws: dict[int, np.ndarray] = {}
    doubt = set()
    for move in (move for row in graph.moves for move in row):
        law = laws.setdefault(move.state, graph.targets[move.to])
        if not np.array_equal(law, graph.targets[move.to]):
            doubt.add(move.state)
    return checks.read_only(np.array(sorted(doubt), dtype=np.int64))


def loop_sums(layer: Layer, language: Language, *, scaled: bool = False) -> np.ndarray:
    """delta, what each of `simple_loops` adds to the sum before LN: (queries, loops, width), q over all states.

    ``scaled``: as in `balance.contributions`.
    """
    return np.einsum("ls,qsv->qlv", simple_loops(language), balance.contributions(layer, language, scaled=scaled))


def loop_violation(layer: Layer, language: Language) -> float:
    """Mean of ||delta|| / P over `queries_in_doubt` and `simple_loops`: `balance.violation` for any language.

    For each query q and each configuration that has it, take u(q) after a shortest prefix; P is the second smallest
    norm, among prefixes whose next token has another distribution than the smallest's.

    Returns
    -------
    float
        0 exactly where repeated loops change nothing; inf where a loop adds something and P is zero.

    Raises
    ------
    ValueError
        If no query is in doubt, for then nothing need be balanced.
    """
    u = balance.contributions(layer, language, scaled=True)
    doubt = queries_in_doubt(language)
    if doubt.size == 0:
        raise checks.reject("language", "have a query after which next tokens differ", language)
    sizes = np.linalg.norm(loop_sums(layer, language, scaled=True), axis=-1)
    ends, targets = _kept(language, _shortest)
    ratios = []
    for query in doubt:
        norms = np.linalg.norm(ends[query] @ u[query], axis=1)
        other = np.abs(targets[query] - targets[query][norms.argmin()]).max(axis=1) > 0
        size = norms[other].min()
        ratios.append([s / size if size > 0 else np.inf if s > 0 else 0.0 for s in sizes[query]])
    return float(np.mean(ratios))


def _shortest(language: Language) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """For each query, bags of shortest prefixes, one a configuration that it ends in, and their next tokens' laws."""
    graph: _Graph = _kept(language, _graph)
    bags: dict[tuple[int, int], np.ndarray] = {}
    for row in graph.moves:  # sources in the order of their depth
        for move in row:
            if (move.state, move.to) not in bags:
                states = language.state_sequence([*graph.prefixes[move.source], move.token])
                bags[move.state, move.to] = np.bincount(states, minlength=language.n_states)
    queries = sorted({query for query, _ in bags})
    ends = {query: [key for key in bags if key[0] == query] for query in queries}
    counts = {query: np.array([bags[key] for key in keys]) for query, keys in ends.items()}
    return counts, {query: graph.targets[[to for _, to in keys]] for query, keys in ends.items()}


def known(language: Language) -> Known:
    """The free part and the torsion of Z^S / L, and whether the free part tells all next tokens; exact, in integers.

    L is spanned by the fundamental loops, one for each move outside a tree of shortest prefixes.

    Raises
    ------
    ValueError
        If a configuration never leads back to the first.
    """
    return _kept(language, _known)


def _known(language: Language) -> Known:
    graph: _Graph = _kept(language, _graph)
    size = language.n_states - 1
    paths = np.array([np.bincount(language.state_sequence(p)[1:], minlength=size) for p in graph.prefixes])
    moves = [move for row in graph.moves for move in row]
    around = {tuple(paths[m.source] + np.eye(size, dtype=np.int64)[m.state] - paths[m.to]): None for m in moves}
    rows = [row for row in around if any(row)]
    loops = DomainMatrix([[sp.ZZ(int(entry)) for entry in row] for row in rows], (len(rows), size), sp.ZZ)
    reduced, pivots = loops.to_field().rref()
    table = np.array([[sp.Rational(entry) for entry in row] for row in reduced.to_Matrix().tolist()[: len(pivots)]])
    free = [state for state in range(size) if state not in pivots]
    values = np.zeros((size + 1, len(free)))
    for column, state in enumerate(free):
        scale = int(sp.ilcm(1, *(entry.q for entry in table[:, state])))
        values[state, column] = scale
        values[list(pivots), column] = [int(-scale * entry) for entry in table[:, state]]
    form = smith_normal_form(loops).to_Matrix()
    orders = (abs(int(form[i, i])) for i in range(min(form.shape)))
    confused = []
    for query in queries_in_doubt(language).tolist():
        laws: dict[tuple[float, ...], tuple[int, list[int]]] = {}
        for move in (move for move in moves if move.state == query):
            prefix = [*graph.prefixes[move.source], move.token]
            place = tuple((paths[move.source] @ values[:-1] + values[query]).tolist())
            to, other = laws.setdefault(place, (move.to, prefix))
            if not np.array_equal(graph.targets[to], graph.targets[move.to]):
                confused.append((query, other, prefix))
                break
    torsion = tuple(sorted(order for order in orders if order > 1))
    return Known(len(free), torsion, checks.read_only(values), _blocks(table, pivots, free, size), tuple(confused))


def _blocks(table: np.ndarray, pivots: Any, free: list[int], size: int) -> np.ndarray:
    """Number of each state's block: the finest split of the states that splits every relation between values."""
    blocks = np.arange(size + 1)
    for row, pivot in enumerate(pivots):
        joined = [pivot, *(state for state in free if table[row, state] != 0)]
        blocks[np.isin(blocks, blocks[joined])] = blocks[joined].min()
    for row, pivot in enumerate(pivots):
        if not any(table[row, state] != 0 for state in free):
            blocks[pivot] = -1
    return checks.read_only(blocks)


def balanced_layer_of(language: Language, rng: np.random.Generator | int | None = None, *, scale: float = 1.0) -> Layer:
    """A layer with random attention in which every loop adds nothing, and which keeps all that it then can.

    With `known`'s values D and blocks, and R and a random normal of standard deviation ``scale``: ``Z[q, s] =
    R[q, block of s] + a_s`` and ``V_s = exp(-a_s) D_s``; START has the last coordinate. Then ``u(q)`` is, block by
    block, a positive multiple of what the counts tell. Y is zero: `Head` reads the features.

    Parameters
    ----------
    language : Language
    rng : numpy.random.Generator or seed, optional
        Default: fresh randomness.
    scale : float
        Non-negative; 0 is uniform attention.

    Raises
    ------
    ValueError
        If `known` confuses two prefixes with different next tokens: then no such layer is right at every length.

    Examples
    --------
    >>> from yzflow_bounded_dyck.languages import shuffle_language
    >>> language = shuffle_language(2, 2, label=None)
    >>> layer = balanced_layer_of(language, rng=0)
    >>> bags = language.sample(100, max_length=300, rng=1)
    >>> bool(np.abs(Head(layer, language)(bags) - bags.target).max() < 1e-9)
    True
    """
    parts = known(language)
    scale = checks.non_negative("scale", scale)
    if parts.confused:
        query, one, other = parts.confused[0]
        names = [" ".join(language.tokens[token] for token in prefix) for prefix in (one, other)]
        got = f"{names[0]!r} and {names[1]!r}, which end in {language.states[query]}: let labels tell them apart"
        raise checks.reject("language", "have next tokens that counts tell once loops add nothing", got)
    generator = checks.generator("rng", rng)
    R = scale * generator.normal(size=(language.n_states,) * 2)
    a = scale * generator.normal(size=language.n_states)
    values = np.exp(-a)[:, None] * np.column_stack([parts.values, np.zeros(language.n_states)])
    values[language.start] = 0
    values[language.start, -1] = np.exp(-a[language.start])
    return Layer(R[:, parts.blocks] + a, np.zeros((parts.rank + 1, len(language.tokens))), values)


@dataclass(frozen=True, eq=False)
class Head:
    """The next token's distribution from the features of a balanced layer: that of the nearest features of the query.

    A query has finitely many features in a balanced layer, one a configuration at most. So the head is continuous
    near them.

    Attributes
    ----------
    layer : Layer
    language : Language

    Raises
    ------
    ValueError
        If two prefixes with one query and different next tokens have equal features.
    """

    layer: Layer
    language: Language

    def __post_init__(self) -> None:
        gap, query = min(((gap, query) for query, gap in self._gaps().items()), default=(np.inf, -1))
        if gap < 1e-9:
            got = f"a distance of {gap:.2g} at {self.language.states[query]}"
            raise checks.reject("layer", "tell apart prefixes with different next tokens", got)

    def _features(self) -> dict[int, np.ndarray]:
        u = balance.contributions(self.layer, self.language, scaled=True)
        sums = {query: counts @ u[query] for query, counts in _kept(self.language, _shortest)[0].items()}
        return {query: rows / np.linalg.norm(rows, axis=1, keepdims=True) for query, rows in sums.items()}

    def _gaps(self) -> dict[int, float]:
        targets, gaps = _kept(self.language, _shortest)[1], {}
        for query, rows in self._features().items():
            apart = np.abs(targets[query][:, None] - targets[query]).max(axis=2) > 0
            if apart.any():
                gaps[query] = float(np.linalg.norm(rows[:, None] - rows, axis=2)[apart].min())
        return gaps

    @property
    def gap(self) -> float:
        """Least distance of the features of two prefixes with one query and different next tokens; inf if none."""
        return min(self._gaps().values(), default=np.inf)

    def __call__(self, bags: Bags) -> np.ndarray:
        """Distributions of the next token, (bags, tokens), for bags of the language."""
        features = self.layer.features(checks.instance("bags", bags, Bags))
        known_features, targets = self._features(), _kept(self.language, _shortest)[1]
        outputs = np.empty((len(bags), len(self.language.tokens)))
        first = self.language.next_token([])
        for query in np.unique(bags.query).tolist():
            which = np.flatnonzero(bags.query == query)
            if query == self.language.start:
                outputs[which] = first
                continue
            distance = np.linalg.norm(features[which][:, None] - known_features[query], axis=2)
            outputs[which] = targets[query][distance.argmin(axis=1)]
        return outputs
