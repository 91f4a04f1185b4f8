"""Units that are trained on Match2 and Match3: one layer, two layers and a third-order unit, in jax.

Model of Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896: element-wise maps around attention. On a finite alphabet a
map of any size before a unit is a table, which is what one layer and the third-order unit have; maps after attention,
and all of those of two layers, are perceptrons of one hidden layer. Needs yzflow-deep.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from yzflow_sparse_averaging.instances import BLANK
from yzflow_sparse_averaging.matching import MatchUnit

from dynamics.support import checks

KINDS = ("one layer", "two layers", "third order")
HIDDEN = 64  # units of a perceptron
TOKEN = 8  # numbers of a token that the last map of one layer and of the third-order unit sees beside attention

Weights = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A model that is trained.

    Attributes
    ----------
    kind : "one layer", "two layers" or "third order"
    n_tokens, modulus : int
        N and M. One blank token is added.
    dimension : int
        m: of queries, keys and values of a head.
    heads : int
        H; 1 for the third-order unit.
    positions : bool
        Whether tokens of two layers know their positions; the others never do.
    """

    kind: str
    n_tokens: int
    modulus: int
    dimension: int
    heads: int
    positions: bool = False

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if checks.flag("positions", self.positions) and self.kind != "two layers":
            raise checks.reject("positions", f"be False for {self.kind!r}", self.positions)
        for name, lowest in (("n_tokens", 1), ("modulus", 2), ("dimension", 1), ("heads", 1)):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), minimum=lowest, maximum=2**20))
        if self.kind == "third order" and self.heads != 1:
            raise checks.reject("heads", "be 1 for the third-order unit", self.heads)

    @property
    def depth(self) -> int:
        """D."""
        return 2 if self.kind == "two layers" else 1


def start(model: Model, rng: np.random.Generator) -> Weights:
    """Random weights: scores have variance one, values and tokens too, perceptrons keep the scale of their input."""
    checks.instance("rng", rng, np.random.Generator, rule="be a numpy.random.Generator")
    m, heads, rows = model.dimension, model.heads, model.modulus + 1

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    def perceptron(inputs: int, outputs: int) -> Weights:
        return {
            "in": normal(inputs, HIDDEN, scale=np.sqrt(2 / inputs)),
            "bias": np.zeros(HIDDEN, np.float32),
            "out": normal(HIDDEN, outputs, scale=0.1 / np.sqrt(HIDDEN)),
        }

    if model.kind == "two layers":
        d = m * heads
        layer = ("query", "key", "value", "output")
        return {
            "token": normal(rows, d),
            **({"position": normal(model.n_tokens + 1, d)} if model.positions else {}),
            "first": perceptron(d, d),
            "layers": [
                {name: normal(d, d, scale=1 / np.sqrt(d)) for name in layer} | {"map": perceptron(d, d)}
                for _ in range(2)
            ],
            "last": _last(d, normal, perceptron),
        }
    third = model.kind == "third order"
    width = m if third else m * heads
    names = ("query", "key", "second_key") if third else ("query", "key")
    scale = m ** (-1 / (2 * len(names)))
    tables = {name: normal(heads, rows, m, scale=scale) for name in names}
    values = {name: normal(heads, rows, m) for name in (("value", "second_value") if third else ("value",))}
    return {**tables, **values, "token": normal(rows, TOKEN), "last": _last(width + TOKEN, normal, perceptron)}


def _last(width: int, normal: Callable[..., np.ndarray], perceptron: Callable[[int, int], Weights]) -> Weights:
    """The last map, to one logit: linear and a perceptron."""
    return {
        "linear": normal(width, scale=1 / np.sqrt(width)),
        "constant": np.zeros((), np.float32),
        **perceptron(width, 1),
    }


def at_construction(model: Model, unit: MatchUnit, rng: np.random.Generator) -> Weights:
    """As `start`, but with the tables of a construction for Match2 or Match3, and a last map that reads its output.

    The construction fills the first of the m dimensions and the first head; what the model has beyond it is zero. The
    logit is ``ln((1 - eta)/eta)`` on both sides of an output of 1/2.
    """
    checks.instance("unit", unit, MatchUnit)
    if (unit.order == 3) != (model.kind == "third order") or model.kind == "two layers":
        raise checks.reject("unit", f"be one of the kind {model.kind!r}", f"one of order {unit.order}")
    if unit.modulus != model.modulus or unit.n_tokens < model.n_tokens or unit.unit.embedding_dim > model.dimension:
        raise checks.reject("unit", f"fit into {model}", f"{unit.n_tokens}, {unit.modulus}, {unit.unit.embedding_dim}")
    weights = jax.tree.map(np.zeros_like, start(model, rng))
    symbols = np.append(np.arange(model.modulus), BLANK)[:, None]  # the blank is the last row of a table
    keys, values = unit.unit.keys(symbols), unit.unit.values(symbols)
    second = {"second_key": keys[1], "second_value": values[1]} if unit.order == 3 else {}
    first = {"key": keys[0], "value": values[0]} if unit.order == 3 else {"key": keys, "value": values}
    tables = {"query": unit.unit.queries(symbols), **first, **second}
    # Scores are large: the scale is split between the tables, so that none of them is.
    share = unit.scale ** (1 / unit.order)
    for name, table in tables.items():
        weights[name][0, :, : table.shape[-1]] = table * (1.0 if "value" in name else share)
    slope = 2 * float(np.log((1 - unit.error) / unit.error)) / (1 - 2 * unit.error)
    weights["last"]["linear"][0] = slope
    weights["last"]["constant"][...] = -slope / 2
    return weights


def logits(model: Model, weights: Weights, x: jax.Array) -> jax.Array:
    """Logits of a match: (batch, N) from residues (batch, N)."""
    blank = jnp.full((x.shape[0], 1), model.modulus, x.dtype)
    symbols = jnp.concatenate([x, blank], axis=1)
    if model.kind == "two layers":
        stream = weights["token"][symbols]
        if model.positions:
            stream = stream + weights["position"]
        stream = stream + _perceptron(weights["first"], stream)
        for layer in weights["layers"]:
            stream = stream + _attention(model, layer, stream)
            stream = stream + _perceptron(layer["map"], stream)
        return _decide(weights["last"], stream[:, :-1])
    if model.kind == "third order":
        queries = weights["query"][0][x]
        first, second = (weights[name][0][symbols] for name in ("key", "second_key"))
        left, right = (weights[name][0][symbols] for name in ("value", "second_value"))
        scores = jnp.einsum("bim,bjm,bkm->bijk", queries, first, second, optimize="optimal")
        shares = jax.nn.softmax(scores.reshape(*scores.shape[:2], -1), axis=-1).reshape(scores.shape)
        found = jnp.einsum("bijk,bkm->bijm", shares, right)
        found = jnp.einsum("bijm,bjm->bim", found, left)
    else:
        queries = weights["query"][:, x]
        keys, values = (weights[name][:, symbols] for name in ("key", "value"))
        shares = jax.nn.softmax(jnp.einsum("hbim,hbjm->hbij", queries, keys), axis=-1)
        found = jnp.einsum("hbij,hbjm->bihm", shares, values).reshape(*x.shape, -1)
    return _decide(weights["last"], jnp.concatenate([found, weights["token"][x]], axis=-1))


def _attention(model: Model, layer: Weights, stream: jax.Array) -> jax.Array:
    """The sum of a layer's heads, which is added to the stream."""
    split = (*stream.shape[:2], model.heads, model.dimension)
    queries, keys, values = ((stream @ layer[name]).reshape(split) for name in ("query", "key", "value"))
    scores = jnp.einsum("bihm,bjhm->bhij", queries, keys) / np.sqrt(model.dimension)
    found = jnp.einsum("bhij,bjhm->bihm", jax.nn.softmax(scores, axis=-1), values)
    return found.reshape(stream.shape) @ layer["output"]


def _perceptron(weights: Weights, stream: jax.Array) -> jax.Array:
    return jax.nn.relu(stream @ weights["in"] + weights["bias"]) @ weights["out"]


def _decide(weights: Weights, stream: jax.Array) -> jax.Array:
    return stream @ weights["linear"] + weights["constant"] + _perceptron(weights, stream)[..., 0]


def loss(model: Model, weights: Weights, x: jax.Array, target: jax.Array) -> jax.Array:
    """Mean cross-entropy over tokens, in nats."""
    return optax.sigmoid_binary_cross_entropy(logits(model, weights, x), target).mean()


def optimiser(learning_rate: float, steps: int) -> optax.GradientTransformation:
    """Adam, whose rate falls to zero by a cosine."""
    return optax.adam(optax.cosine_decay_schedule(learning_rate, steps))


@functools.lru_cache(maxsize=32)
def stepper(model: Model, learning_rate: float, steps: int) -> Callable:
    """A compiled function (weights, state, x, target) -> (weights, state, losses) of a block of steps."""
    transform = optimiser(learning_rate, steps)

    def step(carry, batch):
        weights, state = carry
        value, slope = jax.value_and_grad(loss, argnums=1)(model, weights, *batch)
        updates, state = transform.update(slope, state, weights)
        return (optax.apply_updates(weights, updates), state), value

    def block(weights, state, x, target):
        (weights, state), losses = jax.lax.scan(step, (weights, state), (x, target))
        return weights, state, losses

    return jax.jit(block)


@functools.lru_cache(maxsize=32)
def predictor(model: Model) -> Callable:
    """A compiled `logits` of (weights, x)."""
    return jax.jit(functools.partial(logits, model))
