"""Sharpness-aware minimisation of a layer on Dyck states (Foret et al. 2021), which the paper's Appendix A names.

A step descends on the gradient at ``w + rho g / ||g||``, g the gradient at the weights w. yzflow-deep's jax is needed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage, balance, training

from dynamics import Bags, Layer
from yzflow_studies.dyck_embeddings.study import variation

WIDTH = 32
STATES = ("Z", "Y", "V")


def climbed(gradient: Any, weights: Any, rho: float) -> Any:
    """The gradient of a step of sharpness-aware minimisation, from a function that has the gradient at any weights.

    Weights are a mapping from names to arrays; the norm is that of all of them together. With rho = 0 it is the
    gradient."""
    first = gradient(weights)
    size = sum((part**2).sum() for part in first.values()) ** 0.5
    return gradient({name: weights[name] + rho * first[name] / (size + 1e-12) for name in weights})


def dense(bags: Bags, states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, counts of all states, and exact targets."""
    counts = np.zeros((len(bags), states), np.float32)
    rows = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
    np.add.at(counts, (rows, bags.token), bags.count)
    return np.asarray(bags.query), counts, np.asarray(bags.target, np.float32)


def loss(weights: dict[str, Any], query: Any, counts: Any, target: Any) -> Any:
    """Mean cross-entropy of the layer ``softmax(Y^T LN(sum_s c_s V_s))``, in jax."""
    import jax
    import jax.numpy as jnp

    shares = jax.nn.softmax(jnp.where(counts > 0, weights["Z"][query] + jnp.log(jnp.maximum(counts, 1)), -jnp.inf))
    attended = shares @ weights["V"]
    logits = attended / jnp.linalg.norm(attended, axis=1, keepdims=True) @ weights["Y"]
    return -(target * jax.nn.log_softmax(logits)).sum(axis=1).mean()


@functools.cache
def _trainer(rho: float, eta: float, steps: int, batch: int) -> Any:
    import jax
    import optax

    rule = optax.adam(eta)

    def run(weights, key, query, counts, target):
        def step(carry, key):
            weights, moments = carry
            rows = jax.random.randint(key, (batch,), 0, len(query))
            slope = climbed(lambda w: jax.grad(loss)(w, query[rows], counts[rows], target[rows]), weights, rho)
            moves, moments = rule.update(slope, moments)
            return (optax.apply_updates(weights, moves), moments), None

        (weights, _), _ = jax.lax.scan(step, (weights, rule.init(weights)), jax.random.split(key, steps))
        return weights

    return jax.jit(jax.vmap(run, in_axes=(0, 0, None, None, None)))


def grid(
    language: DyckLanguage = training.LANGUAGE,
    *,
    radii: tuple[float, ...] = (0.0, 0.05, 0.2, 0.5),
    seeds: int = 8,
    steps: int = 2000,
    eta: float = 0.01,
    batch: int = 128,
    n_train: int = 10_000,
    n_test: int = 2000,
    scale: float = 0.1,
    data_seed: int = 0,
) -> xr.Dataset:
    """Layers trained by Adam with sharpness-aware steps of each radius rho: (radius, seed).

    Returns
    -------
    xarray.Dataset
        ``short`` and ``long``, accuracy of closing brackets at lengths below 28 (all queries) and 400-500 (closing
        ones); ``violation``; ``sharpness``, the loss at ``w + 0.05 g / ||g||`` less that at w, on the training data;
        and ``attention``.
    """
    import jax

    samples = training.data(language, n_train=n_train, n_test=n_test, seed=data_seed)
    given = dense(samples.train, language.n_states)
    states, brackets, found = language.n_states, language.n_brackets, []
    for radius in radii:
        rng = np.random.default_rng(0)  # the same starts and batches at each radius
        start = {
            "Z": scale * rng.normal(size=(seeds, states, states)),
            "Y": rng.normal(size=(seeds, WIDTH, brackets)) / np.sqrt(WIDTH),
            "V": rng.normal(size=(seeds, states, WIDTH)) / np.sqrt(WIDTH),
        }
        start = {name: np.asarray(part, np.float32) for name, part in start.items()}
        end = _trainer(radius, eta, steps, batch)(start, jax.random.split(jax.random.key(1), seeds), *given)
        rows = []
        for seed in range(seeds):
            weights = {name: np.asarray(end[name][seed], float) for name in STATES}
            layer = Layer(*(weights[name] for name in STATES))
            accuracy = {name: balance.closing_accuracy(layer, language, bags) for name, bags in samples.test.items()}
            slope = {name: np.asarray(part, float) for name, part in jax.grad(loss)(weights, *given).items()}
            size = np.sqrt(sum((part**2).sum() for part in slope.values()))
            up = {name: weights[name] + 0.05 * slope[name] / size for name in STATES}
            rows.append(
                xr.Dataset(
                    {
                        "short": accuracy["below 28"]["all"],
                        "long": accuracy["400-500"]["close"],
                        "violation": balance.violation(layer, language),
                        "sharpness": float(loss(up, *given) - loss(weights, *given)),
                        "attention": (("row", "position"), training.attention_map(layer, language)),
                    }
                )
            )
        found.append(xr.concat(rows, "seed"))
    return xr.concat(found, "radius").assign_coords(radius=list(radii), seed=np.arange(seeds))


def summary(runs: xr.Dataset) -> list[dict[str, Any]]:
    """A row for each radius: means over seeds with standard errors, and the variation of attention between seeds."""
    rows = []
    for radius in runs["radius"].values:
        one = runs.sel(radius=radius)
        row: dict[str, Any] = {"radius": float(radius)}
        for name in ("short", "long", "violation", "sharpness"):
            values = one[name].values
            row[name] = {"mean": float(values.mean()), "half": float(values.std(ddof=1) / np.sqrt(values.size))}
        maps = variation(one["attention"])
        row["variation"] = {"mean": float(maps["mean"]), "half": float(maps["standard_error"])}
        rows.append(row)
    return rows
