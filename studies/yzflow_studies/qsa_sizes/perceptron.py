"""Query by a perceptron of one hidden layer of the indicator of a set, free keys, V = 1: training in jax."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Weights = dict[str, Any]


def start(n_tokens: int, dimension: int, hidden: int, rng: np.random.Generator) -> Weights:
    """Random weights: linear part and keys as `LinearQueryUnit.random`, a hidden layer that keeps the input's scale."""

    def normal(*shape: int, scale: float) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    return {
        "query": normal(n_tokens, dimension, scale=dimension**-0.5),
        "key": normal(n_tokens, dimension, scale=dimension**-0.5),
        "in": normal(n_tokens, hidden, scale=1.0),
        "bias": np.zeros(hidden, np.float32),
        "out": normal(hidden, dimension, scale=0.1 / np.sqrt(hidden)),
    }


def query(weights: Weights, sets: Any, numpy: Any = jnp) -> Any:
    """Queries (.., m) of sets (.., q): sum_{j in y} w_j + C relu(sum_{j in y} a_j + b)."""
    hidden = weights["in"][sets].sum(axis=-2) + weights["bias"]
    return weights["query"][sets].sum(axis=-2) + numpy.maximum(hidden, 0) @ weights["out"]


def loss(weights: Weights, sets: jax.Array, value_dim: int) -> jax.Array:
    """Mean over sets and vectors uniform in the ball of the squared error: d'/(d' + 2) |a - 1_y/q|^2."""
    shares = jax.nn.softmax(query(weights, sets) @ weights["key"].T, axis=-1)
    rows = jnp.arange(len(sets))[:, None]
    return ((shares.at[rows, sets].add(-1 / sets.shape[1])) ** 2).sum(axis=-1).mean() * (value_dim / (value_dim + 2))


@functools.lru_cache(maxsize=8)
def stepper(learning_rate: float, steps: int, value_dim: int) -> tuple[Callable, Callable]:
    """A compiled (weights, state, sets of a block of steps) -> (weights, state), and what makes the first state."""
    transform = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))

    def step(carry, sets):
        weights, state = carry
        slope = jax.grad(loss)(weights, sets, value_dim)
        updates, state = transform.update(slope, state, weights)
        return (optax.apply_updates(weights, updates), state), None

    return jax.jit(lambda weights, state, sets: jax.lax.scan(step, (weights, state), sets)[0]), transform.init
