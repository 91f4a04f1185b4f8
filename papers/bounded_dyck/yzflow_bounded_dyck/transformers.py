r"""Transformers of Section 2 of Wen et al. 2023 (arXiv 2312.01429), given ones and random ones, as Theorem 3 has them.

A layer (6) is ``f(X) = g(LN_C(W_V X A) + b X)``, A the causal softmax of ``(W_K X)^T W_Q X`` column by column, g a ReLU
network without biases that acts on each token. ``LN_C(u) = P u / max(|P u|, C)`` (7), P the projection that subtracts
the mean: no gain and no bias, so that nothing in it is drawn or pruned; the floor C belongs to the architecture. The
residual link stands *after* LN. Its weight b is 1; Section 3.2 of the paper has a weighted branch, whose formula our
text of the paper lacks, so that b is a number that the architecture fixes here. The decoder is the identity, as in
Section 3.2. Tokens are rows in this module, where the paper has columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_bounded_dyck.networks import ReluNetwork


def layer_norm(rows: ArrayLike, floor: float) -> np.ndarray:
    """``P u / max(|P u|, C)`` of each row u (7); zero where P u is.

    Parameters
    ----------
    rows : (.., width) float
    floor : float
        C; 0 for none.
    """
    rows, floor = checks.finite_array("rows", rows), checks.non_negative("floor", floor)
    if rows.ndim == 0 or rows.shape[-1] == 0:
        raise checks.reject("rows", "have at least one number a row", f"shape {rows.shape}")
    centred = rows - rows.mean(axis=-1, keepdims=True)
    norm = np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), floor)
    return centred / np.where(norm > 0, norm, 1)


@dataclass(frozen=True, eq=False)
class TransformerLayer:
    """One layer (6).

    Attributes
    ----------
    key, query : (attention, width) array
        W_K and W_Q.
    value : (width, width) array
        W_V.
    network : ReluNetwork
        g, without biases, from a token to a token.
    residual : float
        b, the weight of the residual link.
    """

    key: np.ndarray
    query: np.ndarray
    value: np.ndarray
    network: ReluNetwork
    residual: float = 1.0

    def __post_init__(self) -> None:
        for name in ("key", "query", "value"):
            matrix = checks.finite_array(name, getattr(self, name), ndim=2)
            if matrix.size == 0:
                raise checks.reject(name, "have at least one row and one column", f"shape {matrix.shape}")
            object.__setattr__(self, name, matrix)
        object.__setattr__(self, "residual", checks.real("residual", self.residual))
        network = checks.instance("network", self.network, ReluNetwork)
        width = self.value.shape[1]
        for name, shape in (("query", self.key.shape), ("key", (len(self.key), width)), ("value", (width, width))):
            if getattr(self, name).shape != shape:
                raise checks.reject(name, f"have shape {shape}", f"shape {getattr(self, name).shape}")
        if (network.weights[-1].shape[0], network.weights[0].shape[1]) != (width, width):
            raise checks.reject("network", f"map {width} numbers to {width}", f"{len(network.weights)} other matrices")
        if any(bias.any() for bias in network.biases):
            raise checks.reject("network", "have no biases", "some")

    @property
    def width(self) -> int:
        """Numbers a token."""
        return self.value.shape[1]

    @property
    def matrices(self) -> tuple[np.ndarray, ...]:
        """Every weight matrix: key, query, value, and those of the network."""
        return (self.key, self.query, self.value, *self.network.weights)

    def attention(self, tokens: ArrayLike) -> np.ndarray:
        """A, rows of queries: (.., length, length)."""
        tokens = _tokens(tokens, self.width)
        logits = (tokens @ self.query.T) @ np.swapaxes(tokens @ self.key.T, -1, -2)
        seen = np.tri(tokens.shape[-2], dtype=bool)
        logits = np.where(seen, logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def mixed(self, tokens: ArrayLike) -> np.ndarray:
        """``W_V X A``, before LN: (.., length, width)."""
        return self.attention(tokens) @ _tokens(tokens, self.width) @ self.value.T

    def __call__(self, tokens: ArrayLike, floor: float) -> np.ndarray:
        """f(X): (.., length, width)."""
        return self.network(layer_norm(self.mixed(tokens), floor) + self.residual * _tokens(tokens, self.width))


def _tokens(value: ArrayLike, width: int) -> np.ndarray:
    tokens = checks.finite_array("tokens", value)
    if tokens.ndim < 2 or tokens.shape[-1] != width or tokens.shape[-2] == 0:
        raise checks.reject("tokens", f"have rows of {width} numbers, at least one", f"shape {tokens.shape}")
    return tokens


@dataclass(frozen=True, eq=False)
class Transformer:
    """Layers one after the other (10), without embedding and decoder.

    Attributes
    ----------
    layers : tuple of TransformerLayer
        Of one width.
    floor : float
        C of every LN.
    """

    layers: tuple[TransformerLayer, ...]
    floor: float

    def __post_init__(self) -> None:
        layers = tuple(
            checks.instance("layers", layer, TransformerLayer)
            for layer in checks.listed("layers", self.layers, "be a sequence of layers")
        )
        if not layers or len({layer.width for layer in layers}) > 1:
            raise checks.reject("layers", "be at least one, all of one width", [layer.width for layer in layers])
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "floor", checks.non_negative("floor", self.floor))

    @property
    def width(self) -> int:
        """Numbers a token."""
        return self.layers[0].width

    @property
    def matrices(self) -> tuple[np.ndarray, ...]:
        """Every weight matrix, layer by layer."""
        return tuple(matrix for layer in self.layers for matrix in layer.matrices)

    def __call__(self, tokens: ArrayLike) -> np.ndarray:
        """The last layer's tokens, for one input or a batch: (.., length, width)."""
        return self.states(tokens)[-1]

    def states(self, tokens: ArrayLike) -> list[np.ndarray]:
        """The input and what each layer makes of it, each (.., length, width)."""
        states = [_tokens(tokens, self.width)]
        for layer in self.layers:
            states.append(layer(states[-1], self.floor))
        return states


def random_transformer(
    width: int,
    attention: int,
    hidden: Sequence[int],
    n_layers: int,
    rng: np.random.Generator | int | None,
    *,
    floor: float,
    norm: float | None = None,
    residual: float = 1.0,
) -> Transformer:
    """A Transformer with weights uniform in [-1, 1], the random one of Theorem 3, or one with multiples of isometries.

    Parameters
    ----------
    width, attention : int
        Numbers a token, and rows of the key and query matrices.
    hidden : sequence of int
        Hidden layers of each network: one for the paper's given Transformers, three for its random ones.
    n_layers : int
    rng : numpy.random.Generator or seed
    floor : float
    norm : float, optional
        All singular values of each matrix, whose directions are kept: the paper's given Transformers have a spectral
        norm of at most 1. Default: as drawn.
    residual : float
    """
    width, attention = (checks.integer(*pair, minimum=1) for pair in (("width", width), ("attention", attention)))
    n_layers = checks.integer("n_layers", n_layers, minimum=1)
    sizes = [checks.integer("hidden", size, minimum=1) for size in checks.index_array("hidden", hidden).tolist()]
    sizes = [width, *sizes, width]
    norm = None if norm is None else checks.positive("norm", norm)
    generator = checks.generator("rng", rng)
    numbers = 2 * attention * width + width**2 + sum(one * other for one, other in pairwise(sizes))
    checks.fits_in_memory("hidden", 16 * n_layers * numbers, "draw a Transformer")

    def drawn(rows: int, columns: int) -> np.ndarray:
        matrix = generator.uniform(-1, 1, (rows, columns))
        if norm is None:
            return matrix
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        return norm * left @ right

    layers = []
    for _ in range(n_layers):
        key, query, value = drawn(attention, width), drawn(attention, width), drawn(width, width)
        weights = tuple(drawn(after, before) for before, after in pairwise(sizes))
        layers.append(TransformerLayer(key, query, value, ReluNetwork(weights), residual))
    return Transformer(tuple(layers), floor)
