r"""Attention units, layers, transformers and tensor units of Sanford, Hsu, Telgarsky (2023, arXiv 2306.02896).

A unit is ``f(X) = softmax(phi(X) Q K^T phi(X)^T) phi(X) V``, with the softmax over each row, for tokens X of shape
(N, d), or (batch, .., N, d): leading axes are independent sequences. Softmax is stable at any scale, and exact integers
may stand for queries and keys where float64 cannot hold the scores. The layer that Scan and Snap trains is
`dynamics.layer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from dynamics.support.frozen import Frozen
from yzflow_sparse_averaging import _numerics

__all__ = [
    "AttentionUnit",
    "FixedPoint",
    "MultiHeadLayer",
    "Precision",
    "TensorAttentionUnit",
    "Transformer",
    "attend",
    "attention_weights",
]


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point numbers of p bits in two's complement: ``k 2^-f`` with ``-2^(p-1) <= k < 2^(p-1)``.

    Parameters
    ----------
    bits : int
        p, from 1 to 53, so that float64 holds every one of the numbers.
    fraction_bits : int
        f, the bits after the binary point: it may be negative or larger than p, from -900 to 900.

    Examples
    --------
    >>> FixedPoint(4, 1).round([0.3, -1.26, 100.0])
    array([ 0.5, -1.5,  3.5])
    """

    bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        for name, lowest, largest in (("bits", 1, 53), ("fraction_bits", -900, 900)):
            # Kept as Python's integers: minus a narrow one may wrap.
            number = checks.integer(name, getattr(self, name), minimum=lowest, maximum=largest)
            object.__setattr__(self, name, number)

    @classmethod
    def covering(cls, bits: int, bound: float) -> FixedPoint:
        """The finest such numbers with which ``[-bound, bound)`` is in range: ``2^(p-1-f) >= bound``."""
        mantissa, exponent = np.frexp(checks.positive("bound", bound))
        whole = int(exponent) - (mantissa == 0.5)
        return cls(bits, checks.integer("bits", bits, minimum=1) - 1 - int(whole))

    @property
    def step(self) -> float:
        """Distance of neighbours, 2^-f."""
        return float(np.ldexp(1.0, -self.fraction_bits))

    def round(self, values: ArrayLike) -> np.ndarray:
        """The nearest of the numbers (ties to even k); values out of range go to the nearer end."""
        values = checks.finite_array("values", values)
        with np.errstate(over="ignore"):
            k = np.rint(np.ldexp(values, self.fraction_bits))
        half = 2.0 ** (self.bits - 1)
        return np.ldexp(np.clip(k, -half, half - 1), -self.fraction_bits)


@dataclass(frozen=True)
class Precision:
    """Which numbers of a unit are rounded, and how; None stands for float64.

    Rounded are each entry of the scaled queries, ``scale * query``, each entry of the keys, each entry of the values,
    and each entry of the output. Scores, exponentials and their sums are computed in float64 from the
    rounded entries. In the communication protocols these are the numbers that one party sends to the other.
    """

    query: FixedPoint | None = None
    key: FixedPoint | None = None
    value: FixedPoint | None = None
    output: FixedPoint | None = None

    def __post_init__(self) -> None:
        for name in ("query", "key", "value", "output"):
            _optional(name, getattr(self, name), FixedPoint)

    def apply(self, name: str, values: np.ndarray) -> np.ndarray:
        """Round what ``name`` ("query", "key", "value" or "output") stands for."""
        numbers = getattr(self, checks.one_of("name", name, ("query", "key", "value", "output")))
        return values if numbers is None else numbers.round(values)


def attention_weights(
    queries: ArrayLike, keys: ArrayLike, *, scale: float = 1.0, precision: Precision | None = None
) -> np.ndarray:
    """Attention ``softmax_j(scale <query_i, key_j>)`` of each query on each key.

    Where queries and keys both hold integers (or objects: Python integers, `fractions.Fraction`), scores and their
    distances from the largest one are exact, whatever their size, and only ``scale`` times that distance is rounded
    to float64.

    Parameters
    ----------
    queries : (.., R, m)
    keys : (.., N, m)
        Leading axes are broadcast.
    scale : float
        Inverse temperature, positive: tau of the sparse-averaging bounds. It multiplies distances from the row maximum,
        so that it may be as large as float64 holds.
    precision : Precision, optional
        Only for numbers in floating point.

    Returns
    -------
    (.., R, N) array, rows sum to one

    Raises
    ------
    ValueError
        If an argument is invalid, or a score is out of the range of float64.

    Examples
    --------
    >>> attention_weights([[2**80, 1]], [[1, 0], [1, 1], [0, 5]], scale=1000.0)
    array([[0., 1., 0.]])
    """
    scale, precision = checks.positive("scale", scale), _optional("precision", precision, Precision)
    queries, keys = _numerics.numbers("queries", queries), _numerics.numbers("keys", keys)
    _numerics.same_width(queries, keys)
    if queries.dtype.kind != "f" and keys.dtype.kind != "f":
        if precision is not None:
            raise checks.reject("precision", "be None for exact queries and keys", precision)
        return _numerics.softmax(_numerics.exact_logits(queries, keys, scale), 1.0)
    queries, keys = _numerics.to_float("queries", queries), _numerics.to_float("keys", keys)
    if precision is not None:
        if precision.query is not None:
            queries, scale = precision.apply("query", _numerics.scaled(queries, scale)), 1.0
        keys = precision.apply("key", keys)
    return _numerics.softmax(_numerics.scores_of(queries, keys), scale)


def attend(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, *, scale: float = 1.0, precision: Precision | None = None
) -> np.ndarray:
    """Values averaged with `attention_weights`: what a unit computes, from its queries, keys and values.

    Parameters
    ----------
    queries : (.., R, m)
    keys : (.., N, m)
    values : (.., N, d')
    scale, precision
        See `attention_weights`.

    Returns
    -------
    (.., R, d') array
    """
    queries, keys = _numerics.numbers("queries", queries), _numerics.numbers("keys", keys)
    precision = _optional("precision", precision, Precision)
    values = _numerics.to_float("values", _numerics.numbers("values", values))
    if values.shape[-2] != keys.shape[-2]:
        raise checks.reject("values", f"have {keys.shape[-2]} rows, one a key", f"shape {values.shape}")
    if precision is not None:
        values = precision.apply("value", values)
    out = [
        attention_weights(queries[..., rows, :], keys, scale=scale, precision=precision) @ values
        for rows in _numerics.blocks(queries.shape[-2], keys[..., 0].size)
    ]
    out = np.concatenate(out, axis=-2)
    return out if precision is None else precision.apply("output", out)


class AttentionUnit(Frozen):
    r"""A self-attention unit ``f(X) = softmax(scale phi(X) Q K^T phi(X)^T) phi(X) V``, softmax over rows.

    Parameters
    ----------
    Q, K : (d, m) arrays
    V : (d, d') array
    phi : callable, optional
        The element-wise map: takes tokens (.., N, d_0) as float64 and returns (.., N, d), each token by itself.
        Default: the identity.
    scale : float
        Inverse temperature, positive.
    precision : Precision, optional
        Rounds to p bits.

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> unit = AttentionUnit(np.eye(2), np.eye(2), np.eye(2), scale=100.0)
    >>> unit([[1.0, 0.0], [0.0, 1.0]])
    array([[1.00000000e+00, 3.72007598e-44],
           [3.72007598e-44, 1.00000000e+00]])

    Source: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896, Section 2.
    """

    embedding_dim: int
    scale: float
    precision: Any  # Precision or None
    _query: Callable
    _key: Callable
    _value: Callable

    def __init__(
        self,
        Q: ArrayLike,
        K: ArrayLike,
        V: ArrayLike,
        *,
        phi: Callable | None = None,
        scale: float = 1.0,
        precision: Precision | None = None,
    ) -> None:
        Q, K, V = (_numerics.matrix(name, value) for name, value in (("Q", Q), ("K", K), ("V", V)))
        if phi is not None:
            checks.function("phi", phi)
        for name, matrix, shape in (("K", K, Q.shape), ("V", V, (Q.shape[0], V.shape[1]))):
            if matrix.shape != shape:
                raise checks.reject(name, f"have shape {shape}", f"shape {matrix.shape}")
        self._setup((_projection(Q, phi), _projection(K, phi), _projection(V, phi)), Q.shape[1], scale, precision)

    @classmethod
    def from_maps(
        cls,
        query: Callable,
        key: Callable,
        value: Callable,
        *,
        embedding_dim: int,
        scale: float = 1.0,
        precision: Precision | None = None,
    ) -> AttentionUnit:
        """A unit from its three maps: phi concatenates them, and Q, K, V select the parts.

        Parameters
        ----------
        query, key : callable
            Tokens (.., N, d_0), as float64, to (.., N, m), each token by itself. Both may return exact integers.
        value : callable
            Tokens to (.., N, d').
        embedding_dim : int
            m.
        scale, precision
            See the class.
        """
        for name, given in (("query", query), ("key", key), ("value", value)):
            checks.function(name, given)
        unit = cls.__new__(cls)
        unit._setup((query, key, value), checks.integer("embedding_dim", embedding_dim, minimum=1), scale, precision)
        return unit

    def _setup(self, maps, embedding_dim, scale, precision):
        query, key, value = maps
        vars(self).update(
            _query=query,
            _key=key,
            _value=value,
            embedding_dim=embedding_dim,
            scale=checks.positive("scale", scale),
            precision=_optional("precision", precision, Precision),
        )

    def queries(self, X: ArrayLike) -> np.ndarray:
        """Queries of the tokens, (.., N, m), before scale and rounding."""
        return _numerics.mapped("query", self._query, _numerics.tokens(X), self.embedding_dim)

    def keys(self, X: ArrayLike) -> np.ndarray:
        """Keys of the tokens, (.., N, m), before rounding."""
        return _numerics.mapped("key", self._key, _numerics.tokens(X), self.embedding_dim)

    def values(self, X: ArrayLike) -> np.ndarray:
        """Values of the tokens, (.., N, d'), before rounding."""
        return _numerics.mapped("value", self._value, _numerics.tokens(X), None)

    def attention(self, X: ArrayLike) -> np.ndarray:
        """Attention of each token on each, (.., N, N)."""
        X = _numerics.tokens(X)
        return attention_weights(self.queries(X), self.keys(X), scale=self.scale, precision=self.precision)

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """f(X): (.., N, d') from tokens (.., N, d_0)."""
        X = _numerics.tokens(X)
        return attend(self.queries(X), self.keys(X), self.values(X), scale=self.scale, precision=self.precision)


class TensorAttentionUnit(Frozen):
    r"""A third-order tensor attention unit: softmax over pairs of tokens.

    .. math:: f(X)_i = \sum_{j_1, j_2} \mathrm{softmax}_{(j_1, j_2)}\Big(\mathrm{scale} \sum_k q_{ik} a_{j_1 k}
              b_{j_2 k}\Big)\; (v_{j_1} \odot w_{j_2})

    for queries q and two sets of keys a, b and of values v, w.

    Parameters
    ----------
    query : callable
        Tokens (.., N, d_0), as float64, to (.., N, m), each token by itself.
    keys, values : pairs of callables
        Tokens to (.., N, m) and to (.., N, d').
    embedding_dim : int
        m.
    scale : float
        Inverse temperature, positive.
    precision : Precision, optional
        Rounds to p bits; "key" and "value" stand for both.

    Source: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896, the section on higher-order tensor attention.
    """

    embedding_dim: int
    scale: float
    precision: Precision
    _query: Callable
    _keys: tuple[Callable, Callable]
    _values: tuple[Callable, Callable]

    def __init__(
        self,
        query: Callable,
        keys: tuple[Callable, Callable],
        values: tuple[Callable, Callable],
        *,
        embedding_dim: int,
        scale: float = 1.0,
        precision: Precision | None = None,
    ) -> None:
        checks.function("query", query)
        pairs = []
        for name, maps in (("keys", keys), ("values", values)):
            pairs.append(tuple(checks.function(name, one) for one in checks.listed(name, maps, "be two maps")))
            if len(pairs[-1]) != 2:
                raise checks.reject(name, "be two maps", len(pairs[-1]))
        vars(self).update(
            _query=query,
            _keys=pairs[0],
            _values=pairs[1],
            embedding_dim=checks.integer("embedding_dim", embedding_dim, minimum=1),
            scale=checks.positive("scale", scale),
            precision=_optional("precision", precision, Precision) or Precision(),
        )

    def queries(self, X: ArrayLike) -> np.ndarray:
        """Queries of the tokens, (.., N, m), before scale and rounding."""
        return _numerics.mapped("query", self._query, _numerics.tokens(X), self.embedding_dim)

    def keys(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Both sets of keys of the tokens, (.., N, m) each, before rounding."""
        first, second = (_numerics.mapped("keys", key, _numerics.tokens(X), self.embedding_dim) for key in self._keys)
        return first, second

    def values(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Both sets of values of the tokens, (.., N, d') each, before rounding."""
        first, second = (_numerics.mapped("values", value, _numerics.tokens(X), None) for value in self._values)
        return first, second

    def _maps(self, X):
        precision = self.precision
        query, *keys = (
            _numerics.to_float(name, found)
            for name, found in (("query", self.queries(X)), *(("keys", key) for key in self.keys(X)))
        )
        scale = self.scale
        if precision.query is not None:
            query, scale = precision.apply("query", _numerics.scaled(query, scale)), 1.0
        return query, [precision.apply("key", key) for key in keys], scale

    def _attention(self, query, keys, scale):
        left = query[..., :, None, :] * keys[0][..., None, :, :]  # (.., R, N, m)
        scores = _numerics.scores_of(left, keys[1][..., None, :, :])
        pairs = scores.shape[-2:]
        return _numerics.softmax(scores.reshape(*scores.shape[:-2], -1), scale).reshape(*scores.shape[:-2], *pairs)

    def attention(self, X: ArrayLike) -> np.ndarray:
        """Attention of each token on each pair, (.., N, N, N)."""
        return self._attention(*self._maps(_numerics.tokens(X)))

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """f(X): (.., N, d') from tokens (.., N, d_0)."""
        X = _numerics.tokens(X)
        query, keys, scale = self._maps(X)
        v, w = (self.precision.apply("value", _numerics.to_float("values", values)) for values in self.values(X))
        out = [
            (v[..., None, :, :] * (self._attention(query[..., rows, :], keys, scale) @ w[..., None, :, :])).sum(axis=-2)
            for rows in _numerics.blocks(X.shape[-2], X[..., 0].size * X.shape[-2])
        ]
        return self.precision.apply("output", np.concatenate(out, axis=-2))


class MultiHeadLayer(Frozen):
    """``L(X) = X + sum_h f_h(X)``: heads that read the same tokens, and the residual.

    Parameters
    ----------
    heads : sequence of units
        At least one; `AttentionUnit`, `TensorAttentionUnit` or any callable from (.., N, d) to (.., N, d).
    """

    heads: tuple[Callable, ...]

    def __init__(self, heads: Sequence[Callable]) -> None:
        found = tuple(checks.function("heads", head) for head in checks.listed("heads", heads, "be units"))
        if not found:
            raise checks.reject("heads", "hold at least one unit", "none")
        vars(self).update(heads=found)

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """L(X), of the shape of X."""
        X = _numerics.tokens(X)
        total = X
        for number, head in enumerate(self.heads):
            out = checks.array("heads", head(X))
            if out.shape != X.shape:
                wide = f"give {X.shape[-1]} numbers a token, as many as come in"
                raise checks.reject("heads", wide, f"shape {out.shape} of head {number}")
            total = total + out
        return total


class Transformer(Frozen):
    """``T(X) = (phi_D o L_D o .. o L_1 o phi_0)(X)``: layers with element-wise maps before, between and after them.

    Parameters
    ----------
    layers : sequence of MultiHeadLayer
        L_1, .., L_D.
    maps : sequence of callables or None, D + 1 of them, optional
        phi_0, .., phi_D, each token by itself; None is the identity. Default: all identities.
    """

    layers: tuple[Any, ...]
    maps: tuple[Callable | None, ...]

    def __init__(self, layers: Sequence[MultiHeadLayer], maps: Sequence[Callable | None] | None = None) -> None:
        found = tuple(checks.function("layers", layer) for layer in checks.listed("layers", layers, "be layers"))
        given = [None] * (len(found) + 1) if maps is None else checks.listed("maps", maps, "be maps, or None")
        between = tuple(phi if phi is None else checks.function("maps", phi) for phi in given)
        if len(between) != len(found) + 1:
            raise checks.reject("maps", f"hold {len(found) + 1} maps, one more than layers", len(between))
        vars(self).update(layers=found, maps=between)

    @property
    def depth(self) -> int:
        """D, the number of layers."""
        return len(self.layers)

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """T(X): (.., N, d_out) from tokens (.., N, d_0)."""
        X = _numerics.tokens(X)
        for number, phi in enumerate(self.maps):
            if number > 0:
                X = self.layers[number - 1](X)
            if phi is not None:
                X = _numerics.tokens(_numerics.mapped(f"maps[{number}]", phi, X, None))
        return X


def _optional(name: str, value, kind: type):
    return None if value is None else checks.instance(name, value, kind, rule=f"be None or a {kind.__name__}")


def _projection(matrix: np.ndarray, phi: Callable | None) -> Callable:
    def project(X):
        features = X if phi is None else _numerics.mapped("phi", phi, X, matrix.shape[0])
        if features.shape[-1] != matrix.shape[0]:
            raise checks.reject("X", f"have {matrix.shape[0]} numbers a token", features.shape[-1])
        return features @ matrix

    return project
