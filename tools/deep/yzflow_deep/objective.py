"""Losses and measures of a transformer, on arrays of jax."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from yzflow_deep.model import Transformer

# The most logits at once: more leave the processor's caches, and need memory that grows with the batch.
_MOST_LOGITS = 2**20


def mean_loss(
    model: Transformer, inputs: jax.Array, targets: jax.Array, mask: jax.Array, label_smoothing: float = 0.0
) -> jax.Array:
    """Mean cross-entropy with targets ``(1 - eps) target + eps / M`` over the positions that count, nats."""
    hidden = jax.vmap(lambda tokens: model.hidden(tokens)[0])(inputs)
    if inputs.size * model.architecture.n_outputs > _MOST_LOGITS and targets.ndim == 2:
        total = _large_loss(label_smoothing, hidden, model.rows(), targets, mask)
    else:

        def loss(h, target, counts):
            return sequence_loss(model.decode(h), target, counts, label_smoothing)

        total = jax.vmap(loss)(hidden, targets, mask).sum()
    return total / mask.sum()


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _large_loss(label_smoothing, hidden, rows, targets, mask) -> jax.Array:
    """Sum of `sequence_loss` over a batch with many next tokens.

    Sequences come one after the other, each with its gradient at once, so that its logits are computed once and not
    kept. On a CPU, where logits are most of the work, this is 1.3 times as fast as differentiating the loss, which
    computes them again.

    Parameters
    ----------
    label_smoothing : float
    hidden : (sequences, length, d)
    rows : (next tokens, d)
        Vectors of the next tokens: their products with ``hidden`` are the logits.
    targets, mask : (sequences, length)
    """
    return _large_loss_forward(label_smoothing, hidden, rows, targets, mask)[0]


def _large_loss_forward(label_smoothing, hidden, rows, targets, mask):
    sharp, even = 1 - label_smoothing, label_smoothing / len(rows)
    chosen = rows[targets]
    if label_smoothing:
        chosen = sharp * chosen + even * rows.sum(axis=0)

    def one(slope, sequence):
        h, counts, right = sequence
        logits = h @ rows.T
        top = logits.max(axis=-1)
        weights = jnp.exp(logits - top[:, None])
        total = weights.sum(axis=-1)
        loss = jnp.where(counts, jnp.log(total) + top - (h * right).sum(axis=-1), 0).sum()
        share = jnp.where(counts, 1 / total, 0)[:, None]
        return slope + weights.T @ (share * h), (loss, share * (weights @ rows))

    slope, (losses, gathered) = jax.lax.scan(one, jnp.zeros_like(rows), (hidden, mask, chosen))
    counts = mask[..., None].astype(hidden.dtype)
    counted = counts * hidden
    if label_smoothing:
        slope, counted = slope - even * counted.sum(axis=(0, 1)), sharp * counted
    return losses.sum(), (gathered - counts * chosen, slope.at[targets].add(-counted))


def _large_loss_backward(label_smoothing, slopes, weight):
    return weight * slopes[0], weight * slopes[1], None, None


_large_loss.defvjp(_large_loss_forward, _large_loss_backward)


def sequence_loss(logits: jax.Array, target: jax.Array, counts: jax.Array, label_smoothing: float = 0.0) -> jax.Array:
    """Sum of the cross-entropy over the positions of one sequence that count."""
    log_total = jax.nn.logsumexp(logits, axis=-1)
    if target.ndim == 1:
        chosen = jnp.take_along_axis(logits, target[:, None], axis=-1)[:, 0]
    else:
        chosen = (logits * target).sum(axis=-1)
    if label_smoothing:
        chosen = (1 - label_smoothing) * chosen + label_smoothing * logits.mean(axis=-1)
    return jnp.where(counts, log_total - chosen, 0).sum()


def insert(tokens: jax.Array, insertion: jax.Array, length: jax.Array) -> jax.Array:
    """``tokens`` with the first ``length`` of ``insertion`` behind its first token, then zeros."""
    index = jnp.arange(tokens.size + insertion.size)
    padded = jnp.concatenate([tokens, jnp.zeros_like(insertion)])
    inside = (index >= 1) & (index <= length)
    new = insertion[jnp.clip(index - 1, 0, insertion.size - 1)]
    return jnp.where(inside, new, padded[jnp.where(index > length, index - length, 0)])


def contrast_loss(
    model: Transformer, inputs: jax.Array, mask: jax.Array, insertions: jax.Array, lengths: jax.Array
) -> jax.Array:
    """(22): mean squared difference of the logits of each position with and without an insertion."""

    def one(tokens, counts, insertion, length):
        plain = model(tokens)
        inserted = model(insert(tokens, insertion, length))
        moved = inserted[jnp.arange(tokens.size) + length]
        return jnp.where(counts, ((plain - moved) ** 2).mean(axis=-1), 0).sum()

    return jax.vmap(one)(inputs, mask, insertions, lengths).sum() / mask.sum()


def entropies(attention: jax.Array) -> jax.Array:
    """Entropy of each row of attention maps, nats: (.., queries)."""
    return jax.scipy.special.entr(attention).sum(axis=-1)


def measure(model: Transformer, inputs: jax.Array, targets: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean loss (), and mean entropy of attention over the positions that count (layers, heads)."""

    def one(sequence):
        tokens, target, counts = sequence
        hidden, attention = model.hidden(tokens)
        entropy = jnp.where(counts, entropies(attention), 0).sum(axis=-1)
        return sequence_loss(model.decode(hidden), target, counts), entropy

    losses, entropy = jax.lax.map(one, (inputs, targets, mask))
    return losses.sum() / mask.sum(), entropy.sum(axis=0) / mask.sum()
