"""Training where a lower bound bites: a unit of few bits on every input of the protocol for Match3.

The bound for one layer (Sanford, Hsu, Telgarsky 2023, arXiv 2306.02896) counts what Alice sends. At single precision it
excludes no unit that is trained here, so this one has few bits: attention is even (Q = K = 0, m = 1), and values are
rounded to p bits, so that Alice's part of the sum takes few values. Needs yzflow-deep to train.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from yzflow_sparse_averaging import averaging

from dynamics.support import checks

SIZES = (1, 2, 6, 12)  # d'
N_BITS = 6  # n of the protocol: N = 13 tokens, M = 15, and 4^6 inputs
STEPS = 3000
LEARNING_RATE = 0.01
SEEDS = 8
_HIDDEN = 64


def messages(n: int, value_dimension: int, bits: int) -> int:
    """Different sums of n vectors of d' numbers of p bits: (n (2^p - 1) + 1)^d', what Alice can tell Bob at most."""
    return (n * (2**bits - 1) + 1) ** value_dimension


def least_errors(n: int, value_dimension: int, bits: int) -> int:
    """Wrong answers, of 4^n, that no such unit avoids: 2^n less the `messages`.

    Sets of Alice with one message get the same answers. Rows of disjointness differ, so that all but one of them have
    an error.
    """
    return max(0, 2**n - messages(n, value_dimension, bits))


def inputs(n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """All 4^n inputs of `averaging.match3_protocol`, (4^n, 2n + 1), whether x_1 has a match, and M = 2n + 3."""
    modulus, strings = 2 * n + 3, averaging.bit_strings(n)
    left = averaging.disjointness_residues(n, modulus)
    alice = np.where(strings == 1, left, modulus - 1)
    bob = np.where(strings == 1, (1 - left) % modulus, modulus - 1)
    pairs = np.concatenate([np.repeat(alice, 2**n, axis=0), np.tile(bob, (2**n, 1))], axis=1)
    x = np.concatenate([np.full((4**n, 1), modulus - 1), pairs], axis=1)
    return x, ~averaging.disjointness_matrix(n).astype(bool).ravel(), modulus


def small_units(
    *,
    value_dimensions: Sequence[int] = SIZES,
    n: int = N_BITS,
    bits: int = 1,
    steps: int = STEPS,
    seeds: int = SEEDS,
) -> xr.Dataset:
    """Wrong answers after training on all inputs, the fewest over training, and the bound on them.

    Adam on the mean cross-entropy of all 4^n inputs; the gradient passes rounding as if it were not there.

    Parameters
    ----------
    value_dimensions : sequence of int
        d'.
    n, bits : int
        Elements of the sets, and p.
    steps, seeds : int

    Returns
    -------
    xarray.Dataset
        ``errors(value_dimension, seed)``, at the end; ``fewest``, of 20 looks at the run; ``bound(value_dimension)``,
        `least_errors`, and ``messages``.
    """
    import jax
    import jax.numpy as jnp
    import optax

    n, bits = checks.integer("n", n, minimum=1, maximum=8), checks.integer("bits", bits, minimum=1, maximum=8)
    steps = checks.integer("steps", steps, minimum=20)
    x, target, modulus = inputs(n)
    counts = jnp.asarray((x[:, :, None] == np.arange(modulus)).mean(axis=1), jnp.float32)
    wanted, optimiser = jnp.asarray(target, jnp.float32), optax.adam(LEARNING_RATE)

    def logits(weights):
        # Numbers of p bits in [0, 1]; the map behind them may shift and scale.
        whole = jnp.round(jax.nn.sigmoid(weights["value"]) * (2**bits - 1)) / (2**bits - 1)
        smooth = jax.nn.sigmoid(weights["value"])
        values = smooth + jax.lax.stop_gradient(whole - smooth)
        hidden = jax.nn.relu(counts @ values * (2 * n + 1) @ weights["in"] + weights["bias"])
        return hidden @ weights["out"] + weights["constant"]

    def loss(weights):
        return optax.sigmoid_binary_cross_entropy(logits(weights), wanted).mean()

    def step(carry, _):
        weights, state = carry
        updates, state = optimiser.update(jax.grad(loss)(weights), state)
        return (optax.apply_updates(weights, updates), state), None

    advance = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=steps // 20)[0])
    wrong = jax.jit(lambda weights: ((logits(weights) > 0) != (wanted > 0.5)).sum())
    errors = np.zeros((2, len(value_dimensions), seeds), dtype=np.int64)
    for row, size in enumerate(value_dimensions):
        for seed in range(seeds):
            rng = np.random.default_rng([seed, size])
            weights = {
                "value": rng.normal(size=(modulus, size)),
                "in": rng.normal(size=(size, _HIDDEN)) * np.sqrt(2 / size),
                "bias": rng.normal(size=_HIDDEN),
                "out": rng.normal(size=_HIDDEN) * 0.1 / np.sqrt(_HIDDEN),
                "constant": np.zeros(()),
            }
            weights = {name: jnp.asarray(value, jnp.float32) for name, value in weights.items()}
            carry, seen = (weights, optimiser.init(weights)), []
            for _ in range(20):
                carry = advance(carry)
                seen.append(int(wrong(carry[0])))
            errors[:, row, seed] = seen[-1], min(seen)
    sizes = [int(size) for size in value_dimensions]
    label = {"units": "of all inputs"}
    return xr.Dataset(
        {
            "errors": (("value_dimension", "seed"), errors[0], {"long_name": "wrong answers at the end", **label}),
            "fewest": (("value_dimension", "seed"), errors[1], {"long_name": "fewest wrong answers", **label}),
            "bound": ("value_dimension", [least_errors(n, size, bits) for size in sizes], label),
            "messages": ("value_dimension", [messages(n, size, bits) for size in sizes]),
        },
        {"value_dimension": sizes, "seed": np.arange(seeds)},
        {"n": n, "bits": bits, "steps": steps, "inputs": 4**n, "matches": int(target.sum())},
    )
