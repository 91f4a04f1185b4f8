"""Reading a population: its field, and the variable for each logit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynamics.bags import Bags
from dynamics.support import checks
from yzflow_enclose.canonical import in_order
from yzflow_enclose.fields import PopulationField, field_of

# The most variables: a logarithmic norm costs as many evaluations of the field as there are variables. 127 of them take
# 40 seconds of a core to t = 10,000 (50 bits).
MOST_VARIABLES = 200


class Population(Protocol):
    """An object with a population, such as `dynamics.SequenceClasses`."""

    def population(self) -> Bags:
        """Its bags."""
        ...


@dataclass(frozen=True)
class Reading:
    """A population, its field, and the variable of each of its numbers.

    Attributes
    ----------
    bags : Bags
    query_tokens : (queries,) int
        The label of each row of Z.
    settings : mapping
        The arguments of `fields.field_of`; a certificate's checker needs nothing else.
    field : PopulationField
    z_index : (queries, tokens) int
        Variable of each entry of Z; -1 for an entry that stays at zero.
    y_index : (tokens, columns) int
        Variable of each entry of Y, for the next tokens that occur, in order, and one for all that never do; -1 for an
        entry that stays at zero.
    x_index : (bags,) int
        Variable x_n of each bag in the theory flow.
    """

    bags: Bags
    query_tokens: np.ndarray
    settings: Mapping
    field: PopulationField
    z_index: np.ndarray
    y_index: np.ndarray
    x_index: np.ndarray

    @property
    def next_tokens(self) -> np.ndarray:
        """Next tokens that occur."""
        return np.unique(self.bags.target)

    def variable_names(self) -> list[str]:
        """Each variable by its first logit."""
        occurring = self.next_tokens.tolist()
        columns = [*occurring, min(set(range(len(occurring) + 1)) - set(occurring))]
        names = [""] * self.field.size
        for query, token in np.argwhere(self.z_index >= 0)[::-1].tolist():
            names[self.z_index[query, token]] = f"z({self.query_tokens[query]}, {token})"
        if self.field.decoder == "theory":
            symmetric = self.settings["kind"] == "symmetric"
            for bag, target in list(enumerate(self.bags.target.tolist()))[::-1]:
                names[self.x_index[bag]] = f"M h({target})" if symmetric else f"M h({target}) of bag {bag}"
        else:
            for token, column in np.argwhere(self.y_index >= 0)[::-1].tolist():
                names[self.y_index[token, column]] = f"Y({token}, {columns[column]})"
        return names

    def entries(self, bag: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens of a bag, their counts, and the variables of their logits."""
        at = slice(self.bags.indptr[bag], self.bags.indptr[bag + 1])
        tokens = self.bags.token[at]
        return tokens, self.bags.count[at], self.z_index[self.bags.query[bag], tokens]


def read(
    data: Bags | Population, *, eta_y: float, eta_z: float, decoder: str, query_tokens: np.ndarray | None = None
) -> Reading:
    """Read a population: by its symmetry if it has that of Theorem 4, or as it is.

    Raises
    ------
    ValueError
        If it is no population of hard targets, or has too many variables for an enclosure.
    """
    bags = data.population() if hasattr(data, "population") else data
    if not isinstance(bags, Bags):
        raise checks.reject("data", "be Bags or offer population()", type(data).__name__)
    if not bags.hard:
        raise checks.reject("data", "have one next token a bag", "distributions")
    if bags.vocab_size < 2:
        raise checks.reject("data", "have at least two next tokens", bags.vocab_size)
    if query_tokens is None:
        query_tokens = getattr(data, "query_tokens", np.arange(bags.n_queries))
    bags = in_order(bags)
    rates = {"decoder": decoder, "eta_y": float(eta_y), "eta_z": float(eta_z), "vocab_size": int(bags.vocab_size)}
    found = _symmetric(bags, rates) or _general(bags, rates)
    settings, bags, z_index, y_index, x_index = found
    return Reading(bags, np.asarray(query_tokens), settings, field_of(settings), z_index, y_index, x_index)


def read_general(bags: Bags, *, eta_y: float, eta_z: float, decoder: str) -> Reading:
    """Read a population as it is, whatever its symmetry."""
    rates = {"decoder": decoder, "eta_y": float(eta_y), "eta_z": float(eta_z), "vocab_size": int(bags.vocab_size)}
    settings, bags, *index = _general(bags, rates)
    return Reading(bags, np.arange(bags.n_queries), settings, field_of(settings), *index)


def _groups(counts: np.ndarray) -> list[list[int]]:
    """Indices of equal counts together, the largest count first."""
    groups: list[list[int]] = []
    for place in np.argsort(-counts, kind="stable").tolist():
        if groups and counts[place] == counts[groups[-1][0]]:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _symmetric(bags: Bags, rates: Mapping):
    """Classes that are copies of each other with common tokens in all of them; None if they are not."""
    size = len(bags)
    queries = np.unique(bags.query).size
    if size < 2 or np.unique(bags.target).size != size or queries not in (1, size):
        return None
    if np.ptp(bags.weight) != 0 or np.ptp(np.diff(bags.indptr)) != 0:
        return None
    occurrences = np.bincount(bags.token, minlength=bags.n_tokens)
    tokens = bags.token.reshape(size, -1)
    counts = bags.count.reshape(size, -1)
    common = occurrences[tokens] == size
    if not (common | (occurrences[tokens] == 1)).all():
        return None
    n_common = int(common[0].sum())
    # Tokens increase within a bag, so that common tokens have one order in every bag.
    order = np.lexsort((tokens, np.where(common, 0.0, -counts), ~common), axis=1)
    tokens, counts = (np.take_along_axis(array, order, axis=1) for array in (tokens, counts))
    if (counts != counts[0]).any():
        return None
    groups = _groups(counts[0, :n_common])
    n_common_groups = len(groups)
    groups += [[n_common + place for place in group] for group in _groups(counts[0, n_common:])]
    pairs = [[float(counts[0, group[0]]), len(group)] for group in groups]
    settings = {
        "kind": "symmetric",
        **rates,
        "n_classes": size,
        "class_weight": float(bags.weight[0]),
        "own_queries": queries > 1,
        "common": pairs[:n_common_groups],
        "distinct": pairs[n_common_groups:],
    }
    return settings, *_symmetric_index(bags, field_of(settings), tokens, groups, n_common_groups)


def _unplaced(bags: Bags, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables of the entries of Z and of Y, all of them marked as staying at zero."""
    checks.fits_in_memory("data", 8 * bags.n_tokens * (bags.n_queries + columns), "list the entries of Z and Y")
    return np.full((bags.n_queries, bags.n_tokens), -1), np.full((bags.n_tokens, columns), -1)


def _symmetric_index(bags, field, tokens, groups, n_common_groups):
    size = len(bags)
    z_index, y_index = _unplaced(bags, len(np.unique(bags.target)) + (1 if field.never else 0))
    rank = np.searchsorted(np.unique(bags.target), bags.target)
    for i, group in enumerate(groups):
        row = [-1 if place is None else place for place in field.rows[i]]
        for n in range(size):
            members = tokens[n, group]
            z_index[bags.query[n], members] = i
            if i >= n_common_groups:
                y_index[members] = row[1]
                y_index[members, rank[n]] = row[0]
            else:
                y_index[members] = row[0]
            if field.never:
                y_index[members, -1] = row[2]
    return bags, z_index, y_index, np.full(size, field.n_groups)


def _general(bags: Bags, rates: Mapping):
    rows = list(zip(bags.indptr[:-1].tolist(), bags.indptr[1:].tolist(), strict=True))
    settings = {
        "kind": "general",
        **rates,
        "query": bags.query.tolist(),
        "target": bags.target.tolist(),
        "weight": bags.weight.tolist(),
        "token": [bags.token[lo:hi].tolist() for lo, hi in rows],
        "count": [bags.count[lo:hi].tolist() for lo, hi in rows],
    }
    present = np.unique(bags.token).size
    columns = np.unique(bags.target).size + (bags.vocab_size > np.unique(bags.target).size)
    pairs = np.unique(np.repeat(bags.query, np.diff(bags.indptr)) * bags.n_tokens + bags.token)
    variables = pairs.size + (len(bags) if rates["decoder"] == "theory" else present * columns)
    if variables > MOST_VARIABLES:
        raise checks.reject(
            "data",
            f"have at most {MOST_VARIABLES} variables, or classes that are copies of each other, to the last bit of "
            "their counts and weights (`math.fsum` normalises them alike), with common tokens in all of them",
            variables,
        )
    z_index, y_index = _unplaced(bags, columns)
    z_index.flat[pairs] = np.arange(pairs.size)
    y_index[np.unique(bags.token)] = pairs.size + np.arange(present * columns).reshape(present, columns)
    x_index = pairs.size + np.arange(len(bags))
    return settings, bags, z_index, y_index, x_index
