"""The strict model of the slides: d = m, and queries, keys and values linear in a token, with maps between layers.

On the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896) a unit is ``softmax(X Q K^T X^T) X V`` with
``Q, K, V`` in R^{d x m}, and ``X + sum_h f_h(X)`` makes d = m. Our result: maps of any size for queries, keys and
values can be made linear, with the same D, H and bits. Tokens then need room for the queries, keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import (
    AttentionUnit,
    FixedPoint,
    MultiHeadLayer,
    Precision,
    Transformer,
)
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["strict_transformer"]


def strict_width(layers: Iterable[Layers], token: Any, *, largest: Callable = max) -> Any:
    """Width m = d of a strict token: the token's numbers, then queries, keys and values of the widest layer's heads.

    Parameters
    ----------
    layers : iterable of Layers
        Sizes may be sympy expressions.
    token : int or sympy.Expr
        Numbers of a token of the transformer whose queries, keys and values are maps.
    largest : callable
        `sympy.Max`, or a function that decides among expressions.
    """
    return token + largest(*(one.heads * (2 * one.key + one.value) for one in layers))


class LinearHead(AttentionUnit):
    """A unit that keeps its matrices Q, K, V of m x m numbers, each 0 or 1, with no map before them."""

    value_dim: int
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray]

    def __init__(self, Q: np.ndarray, K: np.ndarray, V: np.ndarray, *, precision: Precision | None) -> None:
        super().__init__(Q, K, V, precision=precision)
        vars(self).update(value_dim=V.shape[1], matrices=(Q, K, V))


def strict_transformer(model: MatchTransformer) -> MatchTransformer:
    r"""The same transformer with d = m and linear queries, keys and values; D, H, p and all outputs are unchanged.

    A token of ``model``, of w numbers, gets further columns. The map before a layer writes the scaled queries, the keys
    and the values of each head there, rounded as the head rounds them; Q, K and V are matrices of 0 and 1 that select
    them, and V puts values where the head's output goes. The next map reads the first w columns only.

    ``m = d = w + max over layers of sum over heads of (2 k + v)``, for queries and keys of k numbers and v columns of
    values. A head's score has rank k, as before, and is the same integer.

    Parameters
    ----------
    model : MatchTransformer
        Its heads are `yzflow_sparse_averaging.parts.Head`, and all their numbers are rounded.

    Raises
    ------
    ValueError
        If a head is of another kind, or some numbers are not rounded.

    Examples
    --------
    >>> from yzflow_sparse_averaging import averaging
    >>> model = averaging.strict_transformer(averaging.match3_transform(n_tokens=8, modulus=8))
    >>> model.depth, model.heads, model.embedding_dim == model.width
    (8, 2, True)
    """
    checks.instance("model", model, MatchTransformer)
    loose = model.transformer
    read = [_heads(layer) for layer in loose.layers]
    bits = model.bits  # refuses numbers without rounding
    w = model.width
    width = w + max(sum(2 * head.embedding_dim + head.value_dim for head in heads) for heads in read)
    layout = Layout((*model.layout.parts, Part("heads", width - w, FixedPoint(bits, 0))))
    placed = [list(zip(heads, _starts(heads, w), strict=True)) for heads in read]
    built = [MultiHeadLayer([_linear(head, at, width) for head, at in heads]) for heads in placed]
    maps = [_before(phi, heads, w, width) for phi, heads in zip(loose.maps[:-1], placed, strict=True)]
    last = loose.maps[-1]

    def tokens(x: Any) -> np.ndarray:
        return _padded(model.tokens(x), width)

    def finish(X: np.ndarray) -> np.ndarray:
        return X[..., :w] if last is None else last(X[..., :w])

    return MatchTransformer(Transformer(built, [*maps, finish]), model.n_tokens, model.modulus, tokens, layout)


def _heads(layer: MultiHeadLayer) -> list[Head]:
    """The heads of a layer; each adds to one part of a token."""
    heads = [head for head in layer.heads if isinstance(head, Head)]
    if len(heads) < len(layer.heads):
        raise checks.reject("model", "have heads that add columns of values to a part of a token", "others")
    return heads


def _starts(heads: list[Head], w: int) -> list[int]:
    """Where the columns of each head begin."""
    sizes = [2 * head.embedding_dim + head.value_dim for head in heads]
    return [w + before for before in np.cumsum([0, *sizes[:-1]]).tolist()]


def _padded(X: np.ndarray, width: int) -> np.ndarray:
    return np.concatenate([X, np.zeros((*X.shape[:-1], width - X.shape[-1]))], -1)


def _before(phi: Callable | None, heads: list[tuple[Head, int]], w: int, width: int) -> Callable:
    """The map before a layer, and then what its heads read."""

    def write(X: np.ndarray) -> np.ndarray:
        state = X[..., :w] if phi is None else phi(X[..., :w])
        out = _padded(state, width)
        for head, start in heads:
            k, held = head.embedding_dim, head.precision
            columns = head.values(state)[..., head.place]
            out[..., start : start + k] = held.apply("query", head.scale * head.queries(state))
            out[..., start + k : start + 2 * k] = held.apply("key", head.keys(state))
            out[..., start + 2 * k : start + 2 * k + head.value_dim] = held.apply("value", columns)
        return out

    return write


def _linear(head: Head, start: int, width: int) -> LinearHead:
    """The head as matrices that select its columns."""
    k, v = head.embedding_dim, head.value_dim
    Q, K, V = (np.zeros((width, width)) for _ in range(3))
    Q[start + np.arange(k), np.arange(k)] = 1
    K[start + k + np.arange(k), np.arange(k)] = 1
    V[start + 2 * k + np.arange(v), head.place.start + np.arange(v)] = 1
    return LinearHead(Q, K, V, precision=head.precision)
