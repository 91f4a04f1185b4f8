"""Units that learn Match2 and Match3 from examples, at growing N: the question with which the slides end.

Tasks and units: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896. Inputs are uniform residues mod a prime M that is
chosen so that about half of the tokens have a match; training never sees an input of the test. Needs
yzflow-deep to train, not to look at results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from dynamics.support import checks

if TYPE_CHECKING:
    from yzflow_studies.learning_match import models

STEPS = 3000
TOKENS_A_STEP = 512  # a batch has TOKENS_A_STEP / N inputs
LEARNING_RATES = {"one layer": 0.01, "two layers": 0.003, "third order": 0.01}
SEEDS = 8
N_TEST = 512  # inputs
ERROR = 0.01  # eta of a construction that a run starts at
_RECORDS = 20
_BLOCK = 25  # steps of one call of jax
_AT_ONCE = 32  # test inputs
_NATS = {"units": "nats a token"}
_SHARE = {"units": "1"}


def balanced_modulus(order: int, n_tokens: int) -> int:
    """The prime M nearest to N/ln 2 (Match2) or N^2/(2 ln 2) (Match3): about half of the tokens then have a match.

    Mod a prime above 3 all residues but 0 have the same chance of one, so that a token by itself tells nothing else.
    """
    if checks.integer("order", order, minimum=2) > 3:
        raise checks.reject("order", "be 2 or 3", order)
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=5, maximum=2**12)
    wanted = n_tokens ** (order - 1) / ((order - 1) * math.log(2))
    near = sorted(range(2, int(2 * wanted) + 3), key=lambda number: abs(number - wanted))
    return next(number for number in near if all(number % k for k in range(2, math.isqrt(number) + 1)))


def matches(x: ArrayLike, modulus: int, order: int) -> np.ndarray:
    """Match2 or Match3, (.., N) of bool."""
    return (tasks.match2 if order == 2 else tasks.match3)(x, modulus)


def pair_matches(x: ArrayLike, modulus: int) -> np.ndarray:
    """Which tokens have a match of Match3 that takes one other token at most: 3 x_i, 2 x_i + x_j or x_i + 2 x_j.

    Such a match is found by attention to pairs; the others are the triples that the lower bounds speak of.
    """
    x = np.asarray(x)
    one, two = x[..., :, None], x[..., None, :]
    return (((2 * one + two) % modulus == 0) | ((one + 2 * two) % modulus == 0)).any(axis=-1)


def hard_inputs(n_tokens: int, modulus: int, *, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of the protocol for Match3, and whether their first token has a match: half of them do, by one triple.

    Of n = (N - 1) // 2 elements each is Alice's, Bob's or nobody's; in every second input one is both's. What is left
    over of the N tokens is -1, as the first token is.
    """
    n = (n_tokens - 1) // 2
    left = averaging.disjointness_residues(n, modulus)
    owner, both = rng.integers(3, size=(size, n)), np.arange(size) % 2 == 1
    alice, bob = owner == 0, owner == 1
    place = rng.integers(n, size=size)
    alice[both, place[both]] = bob[both, place[both]] = True
    alice[~both, place[~both]] &= ~bob[~both, place[~both]]
    x = np.full((size, n_tokens), modulus - 1)
    x[:, 1 : n + 1] = np.where(alice, left, modulus - 1)
    x[:, n + 1 : 2 * n + 1] = np.where(bob, (1 - left) % modulus, modulus - 1)
    return x, both


def area(score: ArrayLike, target: ArrayLike) -> float:
    """Chance that a token with a match has a larger score than one without, ties by half; NaN without both kinds."""
    score, target = np.ravel(score), np.ravel(target).astype(bool)
    positive, negative = int(target.sum()), int((~target).sum())
    if not positive or not negative:
        return math.nan
    from scipy.stats import rankdata  # half a second, which those who look at results need not wait

    ranks = rankdata(score)[target].sum()
    return float((ranks - positive * (positive + 1) / 2) / (positive * negative))


def entropy(rate: float) -> float:
    """-r ln r - (1 - r) ln(1 - r): the loss of the best constant."""
    return float(sum(-r * math.log(r) for r in (rate, 1 - rate) if r > 0))


def measured(logits: np.ndarray, x: np.ndarray, modulus: int, order: int) -> dict[str, float]:
    """`measures` of logits (inputs, N) of Match2 or Match3 on inputs."""
    target = matches(x, modulus, order)
    return measures(logits, target, pair_matches(x, modulus) if order == 3 else np.zeros_like(target))


def measures(logits: np.ndarray, target: np.ndarray, pairs: np.ndarray) -> dict[str, float]:
    """Measures of logits on tokens that have a match or not: losses in nats, and shares.

    ``loss``; ``constant_loss`` of the best constant; ``pair_loss`` of the best guess that knows all ``pairs`` (tokens
    with `pair_matches`) and nothing else; ``accuracy``; ``with_match`` and ``without_match``, accuracy on tokens of
    either class, and ``balanced_accuracy``, their mean; ``area`` (`area`), and ``triple_area`` on tokens without a
    `pair_matches`, where nothing but triples is left; ``base_rate``.
    """
    found, rate, alone = logits > 0, float(target.mean()), ~pairs
    return {
        "loss": float((np.logaddexp(0, logits) - target * logits).mean()),
        "constant_loss": entropy(rate),
        "pair_loss": float(alone.mean()) * entropy(float(target[alone].mean())),
        "accuracy": float((found == target).mean()),
        "with_match": float(found[target].mean()),
        "without_match": float((~found)[~target].mean()),
        "balanced_accuracy": float((found[target].mean() + (~found)[~target].mean()) / 2),
        "area": area(logits, target),
        "triple_area": area(logits[alone], target[alone]),
        "base_rate": rate,
    }


class Inputs:
    """Test inputs, and training inputs that are none of them."""

    def __init__(self, n_tokens: int, modulus: int, rng: np.random.Generator) -> None:
        self.shape, self.modulus, self.rng = (n_tokens,), modulus, rng
        self.test = rng.integers(modulus, size=(N_TEST, n_tokens))
        self._known = np.unique(self._names(self.test))

    @staticmethod
    def _names(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x).view(f"V{x.itemsize * x.shape[1]}").ravel()

    def training(self, size: int) -> np.ndarray:
        """``size`` new inputs that the test does not have."""
        x = self.rng.integers(self.modulus, size=(size, *self.shape))
        while (again := np.isin(self._names(x), self._known)).any():
            x[again] = self.rng.integers(self.modulus, size=(int(again.sum()), *self.shape))
        return x


def trained(
    kind: str,
    order: int,
    n_tokens: int,
    *,
    dimension: int,
    heads: int = 1,
    positions: bool = False,
    steps: int = STEPS,
    learning_rate: float | None = None,
    init: str = "random",
    seed: int = 0,
) -> xr.Dataset:
    """One run of Adam, its rate falling to zero by a cosine.

    Parameters
    ----------
    kind : "one layer", "two layers" or "third order"
        See the module `models` beside this one.
    order : 2 or 3
        Of Match2 or Match3, mod `balanced_modulus`.
    n_tokens, dimension, heads, positions
        N, m and H, and whether two layers know positions.
    steps : int
        Of TOKENS_A_STEP / N inputs each; a multiple of 25.
    learning_rate : float, optional
        Default: that of `LEARNING_RATES`.
    init : "random" or "construction"
        Where it starts; constructions are those of `averaging`, of one unit.
    seed : int
        Of test inputs, start and training inputs.

    Returns
    -------
    xarray.Dataset
        `measured` on the test inputs over ``time`` in steps, and ``hard_area``, `area` of the first token's logit on
        `hard_inputs` (Match3), NaN for Match2.
    """
    from yzflow_studies.learning_match import models  # jax

    modulus, steps = balanced_modulus(order, n_tokens), checks.integer("steps", steps, minimum=_BLOCK)
    if steps % _BLOCK:
        raise checks.reject("steps", f"be a multiple of {_BLOCK}", steps)
    checks.one_of("init", init, ("random", "construction"))
    model = models.Model(kind, n_tokens, modulus, dimension, heads, positions)
    rate = checks.positive("learning_rate", LEARNING_RATES[kind] if learning_rate is None else learning_rate)
    drawn, weighted, hard = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
    inputs = Inputs(n_tokens, modulus, drawn)
    if init == "random":
        weights = models.start(model, weighted)
    else:
        make = averaging.match2 if order == 2 else averaging.match3_tensor
        weights = models.at_construction(model, make(n_tokens=n_tokens, modulus=modulus, error=ERROR), weighted)
    adversarial = hard_inputs(n_tokens, modulus, size=N_TEST, rng=hard) if order == 3 else None

    def record(weights: models.Weights) -> dict[str, float]:
        found = measured(logits(model, weights, inputs.test), inputs.test, modulus, order)
        found["hard_area"] = math.nan
        if adversarial is not None:
            found["hard_area"] = area(logits(model, weights, adversarial[0])[:, 0], adversarial[1])
        return found

    _, times, records = fit(
        model, weights, inputs, lambda x: matches(x, modulus, order), record, steps=steps, learning_rate=rate
    )
    labels = {"loss": _NATS, "constant_loss": _NATS, "pair_loss": _NATS}
    return xr.Dataset(
        {name: ("time", [one[name] for one in records], labels.get(name, _SHARE)) for name in records[0]},
        {"time": ("time", np.array(times, float), {"units": "SGD steps"})},
        {"modulus": modulus, "batch_size": batch_size(n_tokens)},
    )


def batch_size(n_tokens: int) -> int:
    """Inputs of a step."""
    return max(1, TOKENS_A_STEP // n_tokens)


def logits(model: models.Model, weights: models.Weights, x: np.ndarray) -> np.ndarray:
    """Logits of a match, (inputs, N)."""
    from yzflow_studies.learning_match import models  # jax

    predict = models.predictor(model)
    blocks = [predict(weights, x[k : k + _AT_ONCE].astype(np.int32)) for k in range(0, len(x), _AT_ONCE)]
    return np.concatenate([np.asarray(block, dtype=np.float64) for block in blocks])


def fit(
    model: models.Model,
    weights: models.Weights,
    inputs: Inputs,
    matched: Callable[[np.ndarray], np.ndarray],
    record: Callable[[models.Weights], dict[str, float]],
    *,
    steps: int,
    learning_rate: float,
) -> tuple[models.Weights, list[int], list[dict[str, float]]]:
    """Steps of Adam on new inputs: the weights at the end, and some twenty records over time.

    Parameters
    ----------
    model : models.Model
    weights : dict
        Where it starts.
    inputs : Inputs
        Where training inputs are drawn.
    matched : callable
        Which tokens of inputs (.., N) have a match.
    record : callable
        What is kept of weights.
    steps : int
        A multiple of 25.
    learning_rate : float
        At the start; it falls to zero by a cosine.
    """
    from yzflow_studies.learning_match import models  # jax

    batch, n_tokens = batch_size(model.n_tokens), model.n_tokens
    advance, state = models.stepper(model, learning_rate, steps), models.optimiser(learning_rate, steps).init(weights)
    every = _BLOCK * max(1, steps // (_BLOCK * _RECORDS))
    times, records = [0], [record(weights)]
    for done in range(_BLOCK, steps + 1, _BLOCK):
        x = inputs.training(_BLOCK * batch)
        y = matched(x).reshape(_BLOCK, batch, n_tokens).astype(np.float32)
        weights, state, _ = advance(weights, state, x.reshape(_BLOCK, batch, n_tokens).astype(np.int32), y)
        if done % every == 0 or done == steps:
            times.append(done)
            records.append(record(weights))
    return weights, times, records
