r"""The certificate of a pruned Transformer on given inputs, token by token, by the lemmas of `bounds`.

Only the target is run. The pruned Transformer enters by the norms of its errors, so that the bound holds for every
Transformer with errors of these sizes. Unlike the certificate for all inputs, it uses local sizes: norms of tokens,
attention, the norm before LN, and the active hidden units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from yzflow_bounded_dyck import bounds
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.pruned import PrunedPart
from yzflow_bounded_dyck.transformers import Transformer, TransformerLayer, layer_norm

# For larger changes of logits attention can be anything.
_FAR = 50.0


class _Errors(NamedTuple):
    """Bounds by token, each (.., length): of the state, and of the values that were written for the next layer."""

    state: np.ndarray
    written: np.ndarray


def errors(target: Transformer, network: Transformer, parts: Iterable[PrunedPart], tokens: np.ndarray) -> np.ndarray:
    """Bound of ``|network(X) - target(X)|`` at each token, from the network's parts: (.., length)."""
    state, layers = tokens, iter(target.layers)
    layer = next(layers)
    found = _Errors(np.zeros(tokens.shape[:-1]), np.zeros(tokens.shape[:-1]))
    m, link = target.width, network.layers[0].residual
    for part in parts:
        if part.role == "attend":
            found = _attended(target, network, part, layer, state, found)
            state, layer = layer(state, target.floor), next(layers, layer)
        else:
            found = _written(part, layer, np.linalg.norm(state, axis=-1), found, m, link)
    return found.state


def _written(
    part: PrunedPart, layer: TransformerLayer, sizes: np.ndarray, before: _Errors, m: int, link: float
) -> _Errors:
    """A layer without attention: errors of the copy, and of the values beside it."""
    size = abs(link) * (sizes + before.state)
    copied = before.state + bounds.network_change(*part.fit.rows(slice(0, m)), 1.0) * size
    if part.role == "pass":
        return _Errors(copied, before.written)
    values = bounds.network_change(*part.fit.rows(slice(m, None), part.entries), 1.0) * size
    gain = np.linalg.norm(layer.value - layer.value.mean(axis=0), 2)
    return _Errors(copied, gain * before.state + values)


def _attended(
    target: Transformer,
    network: Transformer,
    part: PrunedPart,
    layer: TransformerLayer,
    state: np.ndarray,
    before: _Errors,
) -> _Errors:
    link, floor, share = network.layers[0].residual, target.floor, target.width / network.width
    ratio, error = abs(layer.residual / link), before.state
    attention = layer.attention(state)
    mixed = attention @ state @ layer.value.T
    mixed = mixed - mixed.mean(axis=-1, keepdims=True)
    change = _mixture_change(part, layer, attention, state, before)
    scale = np.maximum(np.linalg.norm(mixed, axis=-1) - change, floor)
    scale = np.where(scale > 0, scale, 1e-300)
    moved = np.minimum(change / scale, 2.0)
    stray = np.minimum(share * change / scale, 1.0)  # of LN, on the coordinates of the token
    moved_too = np.minimum(np.hypot(1, ratio) * moved, moved + ratio * stray)
    read = bounds.read_change(moved_too, layer.residual, error)
    normed = layer_norm(mixed, floor)
    sizes = np.linalg.norm(state, axis=-1)
    size = np.hypot(abs(link) * (sizes + error) + stray, np.minimum(np.linalg.norm(normed, axis=-1) + moved, 1.0))
    excess = bounds.network_change(*part.fit, 1.0) * size
    after = _network_change(layer.network, normed + layer.residual * state, read) + excess
    return _Errors(after, np.zeros_like(after))


def _mixture_change(
    part: PrunedPart, layer: TransformerLayer, attention: np.ndarray, state: np.ndarray, before: _Errors
) -> np.ndarray:
    r"""Bound of the change of ``P W_V X A`` at each query.

    Logits move by c_i + t_ij, |t_ij| <= eta_ij, which multiplies attention by at most exp(2 max_j eta_ij) =: g. On the
    way the mixture moves by ``sum_j A_j (v_j - u) t_j``, so that its change M has ``M <= g sum_j A_j eta_j (|v_j - u| +
    M)`` with the attention and the mixture u before. And never more than `bounds.attention_change` times the diameter.
    """
    error, size = before.state, np.linalg.norm(state, axis=-1) + before.state
    product = layer.key.T @ layer.query
    values = state @ (layer.value - layer.value.mean(axis=0)).T
    keys = (state[..., None, :, :] - (attention @ state)[..., :, None, :]) @ product  # (.., query, key, width)
    eta = (
        np.linalg.norm(keys, axis=-1) * error[..., :, None]
        + np.linalg.norm(state @ product.T, axis=-1)[..., :, None] * error[..., None, :]
        + np.linalg.norm(product, 2) * error[..., :, None] * error[..., None, :]
        + np.linalg.norm(part.logits, 2) * size[..., :, None] * size[..., None, :]
    )
    eta = np.where(np.tri(state.shape[-2], dtype=bool), eta, 0.0)
    largest = eta.max(axis=-1)
    gain = np.exp(np.minimum(2 * largest, _FAR))
    away = np.linalg.norm(values[..., None, :, :] - (attention @ values)[..., :, None, :], axis=-1)
    eta = np.minimum(eta, _FAR)  # beyond, only the diameter bounds anything
    room = 1 - gain * (attention * eta).sum(axis=-1)
    near = gain * (attention * eta * away).sum(axis=-1) / np.where(room > 0, room, 1.0)
    near = np.where((room > 0) & (2 * largest <= _FAR), near, np.inf)
    diameter = 2 * np.where(attention > 0, away, 0.0).max(axis=-1)
    far = np.tanh(largest / 2) * diameter
    mean = (attention @ before.written[..., None])[..., 0]
    written = np.minimum(gain * mean, np.maximum.accumulate(before.written, axis=-1))
    return np.minimum(near, far) + written


def _network_change(network: ReluNetwork, inputs: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Bound of the change of g(z) at each z, for a change of z of that norm, by which units keep their sign.

    Of the hidden change, a part ``C dz`` comes through units that surely stay on, the rest has a norm of at most rho.
    """
    shape, width = inputs.shape[:-1], inputs.shape[-1]
    hidden, change = inputs.reshape(-1, width), change.reshape(-1)
    through, rest = np.broadcast_to(np.eye(width), (len(hidden), width, width)), np.zeros(len(hidden))
    last = len(network.weights) - 1
    for layer, weight in enumerate(network.weights):
        through = weight @ through
        if layer == last:
            rest = rest * np.linalg.norm(weight, 2)
            break
        hidden = hidden @ weight.T
        moves = np.linalg.norm(through, axis=-1) * change[:, None] + np.linalg.norm(weight, axis=1) * rest[:, None]
        sure, free = hidden > moves, np.abs(hidden) <= moves
        rest = np.linalg.norm(weight, 2) * rest + np.sqrt((np.where(free, moves, 0) ** 2).sum(axis=1))
        through, hidden = np.where(sure[:, :, None], through, 0), np.maximum(hidden, 0)
    found = np.linalg.norm(through, 2, axis=(1, 2)) * change + rest
    overall = bounds.chain_norm(network.weights) * change
    return np.minimum(found, overall).reshape(shape)
