"""A population in a claim: plain content, with its bags in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.bags import Bags
from dynamics.support.canonical import digest

SIZES = ("n_queries", "n_tokens", "vocab_size")


def in_order(bags: Bags) -> Bags:
    """The same bags in the order of a claim: by query, next token, tokens and counts."""
    rows = _rows(bags)
    ordered = sorted(rows, key=lambda row: (row[0], row[1], row[3], row[4]))
    return bags if ordered == rows else _made(ordered, **bags.sizes, **bags.names)


def _rows(bags: Bags) -> list[list[Any]]:
    ends = zip(bags.indptr[:-1].tolist(), bags.indptr[1:].tolist(), strict=True)
    columns = zip(bags.query.tolist(), bags.target.tolist(), bags.weight.tolist(), ends, strict=True)
    return [[q, n, p, bags.token[lo:hi].tolist(), bags.count[lo:hi].tolist()] for q, n, p, (lo, hi) in columns]


def population(bags: Bags, query_tokens: np.ndarray) -> dict[str, Any]:
    """A population in a claim: ``[query, next token, weight, tokens, counts]`` of each bag, in order."""
    found = {**{name: int(getattr(bags, name)) for name in SIZES}, "query_tokens": np.asarray(query_tokens).tolist()}
    found["bags"] = _rows(in_order(bags))
    return {**found, "sha256": digest(found)}


def bags_of(found: Mapping[str, Any]) -> Bags:
    """The bags of a claim's population."""
    return _made(found["bags"], **{name: found[name] for name in SIZES})


def _made(rows: Sequence[Sequence[Any]], **options: Any) -> Bags:
    query, target, weight, tokens, counts = zip(*rows, strict=True)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in tokens])])
    token, count = ([value for row in rows for value in row] for rows in (tokens, counts))
    return Bags(query, target, indptr, token, count, weight, **options)
