"""Steps and measures of many transformers at once, compiled by jax, for `yzflow_deep.training`."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from dynamics.descent import Optimizer
from dynamics.optimizers.optimizer import CLIP_FLOOR
from yzflow_deep import objective


def rule_of(optimizer: Optimizer) -> optax.GradientTransformation:
    """The direction of a step against the gradient of the loss, before the learning rate."""
    decay, parts = optimizer.weight_decay, []
    if optimizer.clip is not None:
        parts.append(optax.stateless(lambda slopes, _: _clipped(slopes, optimizer.clip)))
    if decay and not optimizer.decoupled:
        parts.append(optax.add_decayed_weights(decay))
    parts += optimizer.rule.optax(optimizer) if optimizer.rule.optax else []
    if decay and optimizer.decoupled:
        parts.append(optax.add_decayed_weights(decay))
    return parts[0] if len(parts) == 1 else optax.chain(*parts)


def _clipped(slopes, bound):
    """Clipping as in `dynamics.sgd` and PyTorch, with 1e-6 added to the norm; optax adds nothing."""
    norm = jnp.sqrt(sum(jnp.sum(slope * slope) for slope in jax.tree.leaves(slopes)))
    shrink = jnp.minimum(1.0, bound / (norm + CLIP_FLOOR))
    return jax.tree.map(lambda slope: shrink.astype(slope.dtype) * slope, slopes)


# Compiled once for runs of one kind, in all calls of `train`: the arguments that name the kind are static.
@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=(3, 4))
def step_all(optimizer, contrast_weight, label_smoothing, weights, moments, fixed, rates, drawn, data, contrast):
    """One step of each run."""
    rule = rule_of(optimizer)

    def step(weights, moments, fixed, rate, drawn):
        rows, inserted = drawn
        batch = data if rows is None else tuple(array[rows] for array in data)

        def loss(weights):
            model = eqx.combine(weights, fixed)
            inputs, targets, mask = batch
            value = objective.mean_loss(model, inputs, targets, mask, label_smoothing)
            if contrast is not None:
                gap = objective.contrast_loss(model, inputs, mask, *(array[inserted] for array in contrast))
                value = value + contrast_weight * gap
            return value

        value, gradient = jax.value_and_grad(loss)(weights)
        direction, moments = rule.update(gradient, moments, weights)
        return jax.tree.map(lambda w, d: w - rate * d, weights, direction), moments, value

    return over_runs(step, weights, moments, fixed, rates, drawn)


def over_runs(function, *arguments):
    """`jax.vmap`; one run after the other on a CPU, where batches of small products are slow."""
    if jax.default_backend() != "cpu":
        return jax.vmap(function)(*arguments)
    return jax.lax.map(lambda of_run: function(*of_run), arguments)


@jax.jit
def measure_all(weights, fixed, validation, probe):
    """Loss, entropies and attention maps of each run."""

    def measure(weights, fixed):
        model = eqx.combine(weights, fixed)
        return (*objective.measure(model, *validation), jax.vmap(model.attention)(probe))

    return over_runs(measure, weights, fixed)
