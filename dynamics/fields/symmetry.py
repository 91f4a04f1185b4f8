"""Copies in a population of bags: parts of it that can be exchanged without a change of the whole.

Bags, tokens, next tokens and queries are the vertices of a graph, in which a bag is joined to its tokens (by their
counts), its next token and its query. Take out the *hubs*, which are the vertices with many bags, such as the common
tokens. What is left falls into connected components. Two components are copies of each other if some renaming of one
gives the other: equal counts and weights, and the same hubs in the same places. To exchange two copies, while
everything else stays, is then an automorphism of the population. The gradient flow commutes with automorphisms, so that
a state which they leave as it is keeps that property, and one representative of each orbit is enough.

Tokens that occur in the same bags with the same counts (*twins*) can be exchanged as well and are merged first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.bags import Bags

# Individualisations of a bag in each component; more symmetric components than these undo are not recognised.
_ROUNDS = 32
# How many symmetries are kept, of bags with how many tokens: runs at other rates need them again.
_KEPT, _SMALL = 16, 2**14


@dataclass(frozen=True)
class CopiedComponents:
    """Components that are copies of each other.

    Attributes
    ----------
    bags, tokens, columns, queries : (copies, n) int
        Their members; entries in one column of an array correspond to each other.
    """

    bags: np.ndarray
    tokens: np.ndarray
    columns: np.ndarray
    queries: np.ndarray

    @property
    def copies(self) -> int:
        return len(self.bags)


@dataclass(frozen=True)
class Symmetry:
    """The kinds of components of a population, and its hubs.

    Attributes
    ----------
    bags : Bags
        With one token for each group of twins, and counts that stand for one twin.
    twins : (tokens,) int
        The token of ``bags`` that each token became, -1 where it never occurs.
    kinds : list of CopiedComponents
        Those with several copies, then one with all components that have none.
    tokens, columns, queries : int arrays
        The hubs.
    """

    bags: Bags
    twins: np.ndarray
    kinds: list[CopiedComponents]
    tokens: np.ndarray
    columns: np.ndarray
    queries: np.ndarray

    @functools.cached_property
    def variables(self) -> int:
        """Entries of Z and Y that a reduced system needs."""
        columns = self.columns.size + sum(kind.columns.shape[1] for kind in self.kinds)
        rows = self.tokens.size + sum(kind.tokens.shape[1] for kind in self.kinds)
        own = sum(k.tokens.shape[1] * k.columns.shape[1] for k in self.kinds if k.copies > 1)
        hubs = (self.queries.size, self.tokens.size)
        shapes = [(k.queries.shape[1] + hubs[0], k.tokens.shape[1] + hubs[1]) for k in self.kinds]
        logits = hubs[0] * hubs[1] + sum(shape[0] * shape[1] - hubs[0] * hubs[1] for shape in shapes)
        return rows * columns + own + logits


def symmetry_of(bags: Bags) -> Symmetry | None:
    """`find_symmetry`, which is done once for bags that are equal and small."""
    return find_symmetry(bags) if bags.token.size > _SMALL else bags._once(_of_content)


def _of_content(bags: Bags) -> Symmetry | None:
    return _kept_symmetry(_Content(bags))


class _Content:
    """Bags that are equal if their numbers are."""

    def __init__(self, bags: Bags) -> None:
        self.bags = bags
        self.key = (*(array.tobytes() for array in bags.arrays.values()), bags.target.shape, *bags.sizes.values())
        self.hash = hash(self.key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.key == other.key


@functools.lru_cache(maxsize=_KEPT)
def _kept_symmetry(content: _Content) -> Symmetry | None:
    return find_symmetry(content.bags)


def find_symmetry(bags: Bags) -> Symmetry | None:
    """The symmetry of bags with hard targets that leaves the fewest variables; None if there is none to speak of.

    Counts and weights that agree to 40 bits (1e-12) are taken for equal, as those are that were normalised in another
    order. The cost is about that of sorting the non-zeros, a few hundred times.
    """
    if not bags.hard:
        return None
    merged, twins = _merge_twins(bags)
    degrees = [
        np.bincount(ends, minlength=size)
        for ends, size in (
            (merged.token, merged.n_tokens),
            (merged.target, merged.n_targets),
            (merged.query, merged.n_queries),
        )
    ]
    found: list[Symmetry] = []
    if _look_alike(merged, twins):
        tried = set()
        for limit in (0, *(2**j for j in range(max(int(degree.max()) for degree in degrees).bit_length() + 1))):
            hubs = [degree > limit for degree in degrees]
            form = tuple(np.count_nonzero(hub) for hub in hubs)
            symmetry = None if form in tried else _split(merged, twins, hubs)
            if symmetry is not None:
                found.append(symmetry)
            tried.add(form)
    if merged.n_tokens < np.count_nonzero(twins >= 0):
        found.append(_whole(merged, twins))
    return min(found, key=lambda symmetry: symmetry.variables, default=None)


def _look_alike(bags: Bags, twins: np.ndarray) -> bool:
    """Whether two bags have equal weights and counts, as two copies would."""
    group_size = np.bincount(twins[twins >= 0], minlength=bags.n_tokens)
    bag = bags.owner
    counts = _Sums(bag, len(bags))(_mix(_key(bags.count), group_size[bags.token]))
    return np.unique(_mix(_key(bags.weight), counts)).size < len(bags)


def _whole(bags: Bags, twins: np.ndarray) -> Symmetry:
    """One kind, which holds everything."""
    columns, queries = np.unique(bags.target), np.unique(bags.query)
    everything = CopiedComponents(
        np.arange(len(bags))[None], np.arange(bags.n_tokens)[None], columns[None], queries[None]
    )
    none = np.empty(0, dtype=np.int64)
    return Symmetry(bags, twins, [everything], none, none, none)


def _key(values: np.ndarray) -> np.ndarray:
    """The leading 40 bits of the fractions of positive numbers, as integers."""
    return (np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) + np.uint64(1 << 11)) >> np.uint64(12)


def _mix(*values: ArrayLike) -> np.ndarray:
    """A hash of each row of several arrays (the finaliser of splitmix64)."""
    out = np.full(1, 0x9E3779B97F4A7C15, dtype=np.uint64)  # arrays wrap around without a warning, scalars do not
    for value in values:
        out = np.asarray(value).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) + out * np.uint64(3)
        out = (out ^ (out >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        out = (out ^ (out >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out = out ^ (out >> np.uint64(31))
    return out


class _Sums:
    """Sums of hashes over the edges at each vertex; sums modulo 2^64 do not depend on their order."""

    def __init__(self, ends: np.ndarray, size: int) -> None:
        self.order = np.argsort(ends, kind="stable")
        self.at, self.starts = np.unique(ends[self.order], return_index=True)
        self.size = size

    def __call__(self, values: np.ndarray) -> np.ndarray:
        out = np.zeros(self.size, dtype=np.uint64)
        if self.at.size:
            out[self.at] = np.add.reduceat(values[self.order], self.starts)
        return out


def _merge_twins(bags: Bags) -> tuple[Bags, np.ndarray]:
    """Bags with one token for each group of twins, and the token that each token became, -1 if it never occurs."""
    bag = bags.owner
    order = np.lexsort((bag, bags.token))
    key = _key(bags.count)
    degree = np.bincount(bags.token, minlength=bags.n_tokens)
    starts = np.cumsum(degree) - degree
    seen = np.flatnonzero(degree)
    colours = _Sums(bags.token, bags.n_tokens)(_mix(bag, key))[seen]
    _, first, owner = np.unique(colours, return_index=True, return_inverse=True)
    # A hash may lie: compare every token with the first of its group, entry by entry.
    original = np.zeros(bags.n_tokens, dtype=np.int64)
    original[seen] = seen[first[owner]]
    other = starts[original[bags.token[order]]] + np.arange(order.size) - starts[bags.token[order]]
    same = (degree[seen] == degree[original[seen]]).all() and (other < order.size).all()
    if same:
        same = (bag[order[other]] == bag[order]).all() and (key[order[other]] == key[order]).all()
    if not same:
        first, owner = np.arange(seen.size), np.arange(seen.size)
        original[seen] = seen
    twins = np.full(bags.n_tokens, -1, dtype=np.int64)
    twins[seen] = owner
    keep = np.flatnonzero(original[bags.token] == bags.token)
    token, owner_bag = twins[bags.token[keep]], bag[keep]
    order = np.lexsort((token, owner_bag))
    sizes = bags.sizes | {"n_tokens": first.size}
    indptr = np.searchsorted(owner_bag, np.arange(len(bags) + 1))
    return Bags(bags.query, bags.target, indptr, token[order], bags.count[keep][order], bags.weight, **sizes), twins


def _split(bags: Bags, twins: np.ndarray, hubs: list[np.ndarray]) -> Symmetry | None:
    """The kinds of components without the given hubs (of tokens, next tokens and queries); None if all differ."""
    bag = bags.owner
    edges = [(bag, bags.token), (np.arange(len(bags)), bags.target), (np.arange(len(bags)), bags.query)]
    sizes = [len(bags), *(hub.size for hub in hubs)]
    offsets = np.cumsum([0, *sizes])
    inner = [~hub[ends] for hub, (_, ends) in zip(hubs, edges, strict=True)]
    rows = np.concatenate([own[keep] for (own, _), keep in zip(edges, inner, strict=True)])
    ends = zip(edges, inner, offsets[1:], strict=False)
    columns = np.concatenate([ends_[keep] + offset for (_, ends_), keep, offset in ends])
    labels = _components(rows, columns, offsets[-1])
    # Hubs, and vertices of no bag, belong to no component.
    seen = [np.bincount(ends, minlength=size) > 0 for (_, ends), size in zip(edges, sizes[1:], strict=True)]
    components = [labels[: len(bags)]]
    for hub, present, lo, hi in zip(hubs, seen, offsets[1:-1], offsets[2:], strict=True):
        components.append(np.where(hub | ~present, -1, labels[lo:hi]))
    if np.unique(components[0]).size == 1:
        return None
    group_size = np.bincount(twins[twins >= 0], minlength=bags.n_tokens)
    colours = _refine(bags, edges, hubs, components, group_size)
    if colours is None:
        return None
    members = [_Members(component, colour) for component, colour in zip(components, colours, strict=True)]
    kinds = _kinds(bags, bag, members, group_size)
    if kinds is None:
        return None
    return Symmetry(bags, twins, kinds, *(np.flatnonzero(hub) for hub in hubs))


def _components(one: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """The connected component of each vertex of a graph with these edges, numbered by their first vertices.

    In place of `scipy.sparse.csgraph`, which imports linear algebra for as long as a small flow takes.
    """
    first = np.arange(size)
    while True:
        low = np.minimum(first[one], first[other])
        joined = first.copy()
        for ends in (one, other):
            np.minimum.at(joined, first[ends], low)
        while (joined[joined] != joined).any():
            joined = joined[joined]
        if (joined == first).all():
            return np.unique(first, return_inverse=True)[1]
        first = joined


def _refine(
    bags: Bags,
    edges: list[tuple[np.ndarray, np.ndarray]],
    hubs: list[np.ndarray],
    components: list[np.ndarray],
    group_size: np.ndarray,
) -> list[np.ndarray] | None:
    """Colours of bags, tokens, next tokens and queries that order each component; None if no two look the same.

    Colour refinement; then one of the bags that still look the same gets a colour of its own in each component, and so
    on. Where all bags differ, vertices of one colour have the same neighbours, and their order does not matter.
    """
    weight, count = _key(bags.weight), _key(bags.count)
    bag = edges[0][0]
    into_bags = _Sums(bag, len(bags))
    sums = [_Sums(ends, hub.size) for (_, ends), hub in zip(edges, hubs, strict=True)]
    labels = [group_size, np.zeros(hubs[1].size), np.zeros(hubs[2].size)]
    ends = [
        np.where(hub, _mix(kind + 1, np.arange(hub.size)), _mix(kind + 10, label))
        for kind, (hub, label) in enumerate(zip(hubs, labels, strict=True))
    ]
    own = _mix(weight)
    component = components[0]
    for round_ in range(_ROUNDS):
        distinct = 0
        while True:
            tokens = into_bags(_mix(count, ends[0][bags.token]))
            own = _mix(own, tokens, ends[1][bags.target], ends[2][bags.query])
            now = np.unique(_mix(own, component)).size
            if now == distinct:
                break
            distinct = now
            seen = (_mix(count, own[bag]), _mix(own), _mix(own))
            for kind in range(3):
                ends[kind] = np.where(hubs[kind], ends[kind], _mix(ends[kind], sums[kind](seen[kind])))
        whole = _Sums(component, component.max() + 1)(_mix(own))[component]  # the look of the component of each bag
        if round_ == 0:
            present, first = np.unique(component, return_index=True)
            if np.unique(whole[first]).size == present.size:
                return None
        order = np.lexsort((np.arange(own.size), own, component))
        tied = (np.diff(own[order]) == 0) & (np.diff(component[order]) == 0)
        if not tied.any():
            break
        where = order[:-1][tied]
        chosen = where[np.unique(component[where], return_index=True)[1]]
        own[chosen] = _mix(own[chosen], 1 + round_)
    return [own, *ends]


class _Members:
    """The vertices of one sort in each component, in the order of their colours."""

    def __init__(self, component: np.ndarray, colour: np.ndarray) -> None:
        inside = np.flatnonzero(component >= 0)
        self.order = inside[np.lexsort((inside, colour[inside], component[inside]))]
        n = int(component.max(initial=-1)) + 1
        self.indptr = np.searchsorted(component[self.order], np.arange(n + 1))
        self.n = n
        # Place in the component, or -1 - index for a hub.
        self.code = -1 - np.arange(component.size)
        self.code[self.order] = np.arange(inside.size) - self.indptr[component[self.order]]

    def of(self, component: int) -> np.ndarray:
        if component >= self.n:
            return self.order[:0]
        return self.order[self.indptr[component] : self.indptr[component + 1]]


def _kinds(
    bags: Bags, bag: np.ndarray, members: list[_Members], group_size: np.ndarray
) -> list[CopiedComponents] | None:
    """Components with the same form, which is exact: what their bags hold, in the order of their members."""
    own, tokens, columns, queries = members
    component = np.empty(len(bags), dtype=np.int64)
    component[own.order] = np.repeat(np.arange(own.n), np.diff(own.indptr))
    order = np.lexsort((tokens.code[bags.token], own.code[bag], component[bag]))
    entries = np.searchsorted(component[bag[order]], np.arange(own.n + 1))
    # Sizes of the groups of twins tell tokens apart that have the same counts.
    codes = np.stack([tokens.code[bags.token], group_size[bags.token], _key(bags.count).astype(np.int64)], axis=1)
    codes = np.ascontiguousarray(codes[order])
    heads = np.stack([queries.code[bags.query], columns.code[bags.target], np.diff(bags.indptr)], axis=1)
    heads = np.column_stack([heads, _key(bags.weight).astype(np.int64)])[own.order]
    forms: dict[tuple[bytes, bytes], list[int]] = {}
    for c in np.unique(component):
        head, entry = slice(own.indptr[c], own.indptr[c + 1]), slice(entries[c], entries[c + 1])
        forms.setdefault((heads[head].tobytes(), codes[entry].tobytes()), []).append(int(c))
    several = [copies for copies in forms.values() if len(copies) > 1]
    if not several:
        return None
    kinds = [CopiedComponents(*(np.stack([sort.of(c) for c in copies]) for sort in members)) for copies in several]
    alone = [copies[0] for copies in forms.values() if len(copies) == 1]
    if alone:
        kinds.append(CopiedComponents(*(np.concatenate([sort.of(c) for c in alone])[None] for sort in members)))
    return kinds
