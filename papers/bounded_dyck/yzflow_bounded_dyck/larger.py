r"""Wider and deeper Transformers with the outputs of a given one, exactly (Appendix C.2).

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429). *Depth*: a layer (6) with ``W_V = 0`` and a network that is the
identity, ``relu(x) - relu(-x)``, passes its input on, whatever its attention is: ``g(LN(0) + x) = x``. It needs the
residual link and an LN that maps zero to zero. *Width*: let Q have orthonormal rows and map the all-ones direction of
narrow tokens to the all-ones direction of wide tokens. Then ``LN(x Q) = LN(x) Q``, and weights exist with ``T'(X Q) =
T(X) Q``. Zeros as further coordinates would fail: LN subtracts the mean over all coordinates. The new weights are
arbitrary outside the narrow tokens' subspace, as is the attention of new layers: here both are random.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.transformers import Transformer, TransformerLayer


def balanced_transformer(
    language: DyckLanguage, rng: np.random.Generator | int | None = None, *, scale: float = 1.0
) -> Transformer:
    """A second layer (6) that is exact on Dyck at every length: `balance.balanced_layer` and its head in one network.

    Tokens are those of `encoded`. Attention writes the stack on the first k D + 2 coordinates, with the sum zero, so
    that LN's mean is; the network reads it there, and its biases from the last coordinate. The first 2 k coordinates
    of an output are the distribution of the next bracket, the others zero.

    Parameters
    ----------
    language : DyckLanguage
    rng : numpy.random.Generator or seed, optional
    scale : float
        As in `balance.balanced_layer`.

    Examples
    --------
    >>> language = DyckLanguage(n_types=2, max_depth=2)
    >>> found = balanced_transformer(language, rng=0)(encoded(language, [0, 2, 3]))
    >>> bool(np.allclose(found[-1, :4], language.next_token([0, 2, 3])))
    True
    """
    layer = balance.balanced_layer(language, rng, scale=scale, decoder=False)
    head = balance.exact_head(layer, language)
    states, features = language.n_states, language.n_types * language.max_depth + 1
    width = features + 1 + states + 1
    stack = np.zeros((features, width))
    stack[:, : features + 1] = _helmert(features + 1)
    here = np.zeros((states, width))
    here[:, features + 1 : -1] = np.eye(states)
    weights = []
    for number, (weight, bias) in enumerate(zip(head.weights, head.biases, strict=True)):
        rows = width if number == len(head.weights) - 1 else len(weight) + 1
        inside = weight @ stack if number == 0 else np.column_stack([weight, np.zeros(len(weight))])
        whole = np.zeros((rows, inside.shape[1]))
        whole[: len(weight)] = inside
        whole[: len(weight), -1] = bias
        if rows == len(weight) + 1:
            whole[-1, -1] = 1  # the constant, handed on
        weights.append(whole)
    value = stack.T @ np.asarray(layer.V).T @ here
    return Transformer((TransformerLayer(here, layer.Z.T @ here, value, ReluNetwork(tuple(weights))),), floor=0.0)


def encoded(language: DyckLanguage, prefix: ArrayLike) -> np.ndarray:
    """The tokens of a minimal first layer for START and a prefix: (length + 1, k D + 2 + states + 1).

    A token has zeros, over which `balanced_transformer` writes the stack, then the state one-hot, and a one.
    """
    states = checks.instance("language", language, DyckLanguage).state_sequence(prefix)
    empty = np.zeros((len(states), language.n_types * language.max_depth + 2))
    return np.column_stack([empty, np.eye(language.n_states)[states], np.ones(len(states))])


def _helmert(size: int) -> np.ndarray:
    """Orthonormal rows that sum to zero: (size - 1, size)."""
    rows = np.tri(size - 1, size) - np.diag(np.arange(1.0, size), 1)[:-1]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def isometry(width: int, wider: int, rng: np.random.Generator | int | None = None) -> np.ndarray:
    """A random Q of orthonormal rows with ``LN(x Q) = LN(x) Q``, with any floor: (width, wider).

    ``Q = 1 1'^T / sqrt(width wider) + H^T R H'``, with the rows of H and H' orthonormal and of sum zero, and R random
    with orthonormal rows.
    """
    width = checks.integer("width", width, minimum=1)
    wider = checks.integer("wider", wider, minimum=width)
    checks.fits_in_memory("wider", 4 * 8 * wider**2, "make an isometry")
    generator = checks.generator("rng", rng)
    turned = np.linalg.qr(generator.normal(size=(wider - 1, width - 1)))[0].T
    return 1 / np.sqrt(width * wider) + _helmert(width).T @ turned @ _helmert(wider)


def wider(
    transformer: Transformer,
    width: int,
    rng: np.random.Generator | int | None = None,
    *,
    attention: int = 0,
    units: int = 0,
) -> tuple[Transformer, np.ndarray]:
    """A wider Transformer and Q with ``T'(X Q) = T(X) Q``.

    Parameters
    ----------
    transformer : Transformer
    width : int
        Numbers a token, at least as many as there are.
    rng : numpy.random.Generator or seed, optional
        Of Q, and of all weights that the outputs do not depend on. Values that are zero stay zero.
    attention, units : int
        More rows of the key and query matrices, and more units of every hidden layer.

    Returns
    -------
    Transformer
    (width, wider) array
        Q.
    """
    old = checks.instance("transformer", transformer, Transformer).width
    attention, units = (
        checks.integer(name, value, minimum=0) for name, value in (("attention", attention), ("units", units))
    )
    generator = checks.generator("rng", rng)
    Q = isometry(old, width, generator)
    outside = np.eye(Q.shape[1]) - Q.T @ Q

    def free(rows: int) -> np.ndarray:
        """Random rows orthogonal to the narrow tokens."""
        return generator.normal(size=(rows, Q.shape[1])) @ outside

    layers = []
    for layer in transformer.layers:
        key = np.vstack([layer.key @ Q, generator.normal(size=(attention, Q.shape[1]))])
        query = np.vstack([layer.query @ Q, np.zeros((attention, Q.shape[1]))])
        value = Q.T @ layer.value @ Q
        if layer.value.any():  # else what rounding leaves of the free rows would be all that LN sees
            value = value + free(Q.shape[1])
        network = _more_units(layer.network, units, generator)
        first, *others = network.weights
        weights = [first @ Q + free(len(first)), *others]
        weights[-1] = Q.T @ weights[-1]
        narrow = ReluNetwork(tuple(weights))
        layers.append(replace(layer, key=key + free(len(key)), query=query, value=value, network=narrow))
    return Transformer(tuple(layers), transformer.floor), Q


def _more_units(network: ReluNetwork, units: int, generator: np.random.Generator) -> ReluNetwork:
    """The same function with ``units`` more units in every hidden layer, without effect on the old units."""
    sizes = [network.weights[0].shape[1], *(len(weight) for weight in network.weights)]
    last = len(sizes) - 2
    weights = []
    for number, ((before, after), weight) in enumerate(zip(pairwise(sizes), network.weights, strict=True)):
        more_in, more_out = units * (number > 0), units * (number < last)
        whole = generator.normal(size=(after + more_out, before + more_in)) / np.sqrt(before + more_in)
        whole[:after, :before] = weight
        whole[:after, before:] = 0
        weights.append(whole)
    return ReluNetwork(tuple(weights))


def identity_layer(
    width: int, rng: np.random.Generator | int | None = None, *, attention: int | None = None
) -> TransformerLayer:
    """A layer (6) that hands its tokens on: values zero, attention random, ``g(x) = relu(x) - relu(-x)``.

    Parameters
    ----------
    width : int
    rng : numpy.random.Generator or seed, optional
        Of keys and queries.
    attention : int, optional
        Rows of these. Default: ``width``.
    """
    width = checks.integer("width", width, minimum=1)
    attention = checks.integer("attention", width if attention is None else attention, minimum=1)
    generator = checks.generator("rng", rng)
    key, query = generator.normal(size=(2, attention, width))
    same = np.eye(width)
    network = ReluNetwork((np.vstack([same, -same]), np.hstack([same, -same])))
    return TransformerLayer(key, query, np.zeros((width, width)), network)


def deeper(
    transformer: Transformer, more: int, rng: np.random.Generator | int | None = None, *, at: int | None = None
) -> Transformer:
    """The Transformer with ``more`` layers that hand their tokens on; its outputs are the same, to the bit.

    Parameters
    ----------
    transformer : Transformer
    more : int
    rng : numpy.random.Generator or seed, optional
        Of the attention of the new layers.
    at : int, optional
        Before which layer they stand. Default: at the end.
    """
    layers = checks.instance("transformer", transformer, Transformer).layers
    more = checks.integer("more", more, minimum=0)
    place = len(layers) if at is None else checks.integer("at", at, minimum=0, maximum=len(layers))
    generator = checks.generator("rng", rng)
    new = tuple(identity_layer(transformer.width, generator) for _ in range(more))
    return Transformer((*layers[:place], *new, *layers[place:]), transformer.floor)
