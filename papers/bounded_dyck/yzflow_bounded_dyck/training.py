"""Training on a bounded Dyck language: what attention looks like afterwards, and what predicts long prefixes.

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Section 4 and Appendix D: k = 2, D = 4, q = 0.5, 40,000
prefixes of fewer than 28 brackets, Adam. The layer sees the states of a minimal first layer and has no head but Y.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dynamics import Bags, Embedding, Layer, Objective, sgd_many
from dynamics.layer import moved
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.languages import Language

LANGUAGE = DyckLanguage(n_types=2, max_depth=4, open_probability=0.5)
STEPS = 2000
ETA = 0.01
SEEDS = 20
WIDTH = 32  # columns of V, rows of W_K and W_Q
EMBEDDINGS = ("one-hot", "type and depth", "type and angle")  # (19), (20), (21)
FREE = "none"  # Z and V free, not made of an embedding
ARCHITECTURES = (FREE, *EMBEDDINGS)
LENGTHS = {"below 28": (1, 27), "400-500": (400, 500), "4000-5000": (4000, 5000)}
QUERIES = ("open", "close", "all")


def start(
    language: Language,
    rng: int | np.random.Generator | None = None,
    *,
    embedding: str = FREE,
    scale: float = 1.0,
    width: int = WIDTH,
    hidden: int = 0,
    norm: bool = True,
) -> Layer:
    """A random layer Y/Z/V to start training from.

    Parameters
    ----------
    language : Language
    rng : numpy.random.Generator or seed, optional
    embedding : "none" or one of `yzflow_bounded_dyck.dyck.EMBEDDINGS`
        "none": Z and V have free, normal entries. Else W_K, W_Q and W_V do, of a `DyckLanguage`.
    scale : float
        Positive. Root mean square of the entries of Z, in expectation.
    width : int
        Columns of V, and rows of W_K and W_Q. Entries of V have mean square 1 / width, those of Y one over its rows.
    hidden : int
        Rectified linear units between feature and decoder, the feed-forward part; 0 leaves it out. Their weights have
        mean square 2, as the feature is a unit vector, and their biases are zero.
    norm : bool
        False leaves LN out.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules.
    """
    checks.one_of("embedding", embedding, ARCHITECTURES)
    scale, width = checks.positive("scale", scale), checks.integer("width", width, minimum=1)
    generator = np.random.default_rng(rng)
    rows = checks.integer("hidden", hidden, minimum=0) or width
    Y = generator.normal(size=(rows, len(language.tokens))) / np.sqrt(rows)
    parts: dict[str, Any] = {} if checks.flag("norm", norm) else {"normalisation": None}
    if hidden:
        parts["hidden"] = np.vstack([np.sqrt(2) * generator.normal(size=(width, rows)), np.zeros(rows)])
    if embedding == FREE:
        Z = scale * generator.normal(size=(language.n_states, language.n_states))
        return Layer(Z, Y, generator.normal(size=(language.n_states, width)) / np.sqrt(width), **parts)
    vectors = checks.instance("language", language, DyckLanguage).embedding(embedding)
    square = (vectors**2).sum(axis=1).mean()
    # E Z[q, s]^2 = width sigma^4 |e(q)|^2 |e(s)|^2 for entries of W_K and W_Q of standard deviation sigma.
    sigma = np.sqrt(scale / (square * np.sqrt(width)))
    keys, queries = sigma * generator.normal(size=(2, width, vectors.shape[1]))
    values = generator.normal(size=(width, vectors.shape[1])) / np.sqrt(width * square)
    return Layer.embedded(Embedding(vectors, keys, queries, values), Y, **parts)


class Data(NamedTuple):
    """Training prefixes, and test prefixes by range of lengths."""

    train: Bags
    test: dict[str, Bags]


@functools.lru_cache(maxsize=4)
def data(
    language: DyckLanguage = LANGUAGE,
    *,
    n_train: int = 40_000,
    n_test: int = 10_000,
    lengths: tuple[str, ...] = ("below 28", "400-500"),
    seed: int = 0,
) -> Data:
    """The paper's number of prefixes, and ``n_test`` for each of some `LENGTHS`; the same ones for the same seed."""
    draws = dict(zip(("train", *LENGTHS), np.random.SeedSequence(seed).spawn(1 + len(LENGTHS)), strict=True))

    def draw(which, n, span):
        return language.sample(n, min_length=span[0], max_length=span[1], rng=np.random.default_rng(draws[which]))

    test = {name: draw(name, n_test, LENGTHS[checks.one_of("lengths", name, tuple(LENGTHS))]) for name in lengths}
    return Data(draw("train", n_train, LENGTHS["below 28"]), test)


def probe_prefix(language: DyckLanguage) -> np.ndarray:
    """A word with every bracket at every depth once: for each i, D nested pairs of the types i, i + 1, .. modulo k."""
    levels = np.arange(language.max_depth)
    words = [(i + levels) % language.n_types for i in range(language.n_types)]
    return np.concatenate([np.concatenate([2 * types, 2 * types[::-1] + 1]) for types in words])


def attention_map(layer: Layer, language: DyckLanguage) -> np.ndarray:
    """Attention on `probe_prefix` with START first: row n, of the n-th position, sums to one over positions up to n.

    No state occurs twice in that prefix, so that attention on states is attention on positions.
    """
    prefix = probe_prefix(language)
    return layer.attention(language.bags([prefix], positions="all"))[:, language.state_sequence(prefix)]


def measure(layer: Layer, language: DyckLanguage, test: dict[str, Bags]) -> dict[str, np.ndarray]:
    """The measures of a layer that `trained` keeps, by the names of its variables."""
    layer = moved(layer, [array.astype(np.float64) for array in layer.weights])
    found = [balance.closing_accuracy(layer, language, bags) for bags in test.values()]
    spans = [np.arange(LENGTHS[name][0], LENGTHS[name][1] + 1) for name in test]
    # Else balance, which is about sums of any size, says nothing.
    summed = layer.floor == 0 and layer.normalisation is not None
    nothing = dict.fromkeys(QUERIES, np.nan)
    linear = summed and layer.hidden is None
    expected = [balance.predicted_accuracy(layer, language, some) if linear else nothing for some in spans]
    return {
        "accuracy": np.array([[row[kind] for kind in QUERIES] for row in found]),
        "predicted": np.array([[row[kind] for kind in QUERIES] for row in expected]),
        "residual": np.array(balance.residual(layer.Z, language)),
        "violation": np.array(balance.violation(layer, language) if summed else np.nan),
        "attention": attention_map(layer, language),
    }


_DESCRIPTIONS = {
    "accuracy": (("length", "query"), "share of closing brackets whose type is found", "1"),
    "predicted": (("length", "query"), "accuracy of the decoder at the mean prefix", "1"),
    "residual": ((), "balance residual, (11)", "1"),
    "violation": ((), "balance violation, (15)-(17)", "1"),
    "attention": (("row", "position"), "attention on the test prefix", "1"),
    "start_attention": (("row", "position"), "attention on the test prefix before training", "1"),
    "loss": ((), "mean loss of the last 100 mini-batches, regulariser included", "nats"),
}


def trained(
    *,
    embedding: Sequence[str] = (FREE,),
    scale: Sequence[float] = (1.0,),
    eta: Sequence[float] = (ETA,),
    contrast_weight: Sequence[float] = (0.0,),
    seeds: int | Sequence[int] = SEEDS,
    steps: int = STEPS,
    batch_size: int = 128,
    language: DyckLanguage = LANGUAGE,
    hidden: int = 0,
    norm: bool = True,
    uniform: bool = False,
    samples: Data | None = None,
    data_seed: int = 0,
    also: Callable[[Layer], Mapping[str, float]] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Train by Adam, in single precision, at every combination of settings and seed; measure the end of each run.

    A seed decides the start and the batches; settings share it.

    Parameters
    ----------
    embedding, scale : sequences
        As in `start`.
    eta : sequence of float
        Learning rate of all weights, per step.
    contrast_weight : sequence of float
        Weight of the regulariser (22) with the insertions `DyckLanguage.nested_pairs`.
    seeds : int or sequence of int
        How many (0, 1, ..), or which.
    steps, batch_size : int
    language : DyckLanguage
    hidden, norm
        As in `start`.
    uniform : bool
        Hold attention uniform (footnote 4): Z = 0, with the learning rate 0. Free Z only; ``scale`` then says nothing.
    samples : Data, optional
        Default: `data` of the language.
    data_seed : int
        Of that `data`; left out where ``samples`` are given.
    also : callable, optional
        More numbers to measure of each trained layer, by name.
    threads, progress
        As in `dynamics.sgd_many`.

    Returns
    -------
    xarray.Dataset
        Over (embedding, scale, eta, contrast_weight, seed): ``accuracy`` and ``predicted`` (length, query), by the kind
        of the query, ``residual``, ``violation``, ``attention`` and ``start_attention`` (row, position) on
        `probe_prefix`, ``loss``. ``predicted`` is nan with a hidden layer or without LN, ``violation`` without LN.
    """
    if samples is not None and data_seed:
        raise checks.reject("data_seed", "be left out where `samples` are given", data_seed)
    samples = data(language, seed=checks.integer("data_seed", data_seed, minimum=0)) if samples is None else samples
    pairs = language.nested_pairs()
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    settings = list(itertools.product(embedding, scale, eta, contrast_weight, seeds))
    parts: dict[str, Any] = {"hidden": hidden, "norm": norm}
    starts = [start(language, seed, embedding=kind, scale=size, **parts) for kind, size, _, _, seed in settings]
    if checks.flag("uniform", uniform):
        if made := [kind for kind in embedding if kind != FREE]:
            raise checks.reject("embedding", f'be "{FREE}" where attention is held uniform', repr(made[0]))
        starts = [replace(layer, Z=np.zeros_like(layer.Z)) for layer in starts]
    runs = []
    for layer, (_, _, rate, weight, seed) in zip(starts, settings, strict=True):
        arguments = {
            "eta_y": rate,
            "eta_z": 0.0 if uniform else rate,
            "steps": steps,
            "batch_size": batch_size,
            "init": layer,
        }
        arguments |= {"optimizer": "adam", "dtype": "float32", "seed": seed}
        if weight > 0:
            arguments["objective"] = Objective(contrast=pairs, contrast_weight=weight)
        runs.append((samples.train, arguments))

    def observe(outcome):
        measured = measure(outcome.layer, language, samples.test)
        more = {} if also is None else also(outcome.layer)
        return (
            measured
            | {name: np.array(value) for name, value in more.items()}
            | {"loss": np.array(outcome.batch_loss[-100:].mean(dtype=float))}
        )

    results = sgd_many(runs, observe=observe, threads=threads, progress=progress)
    for result, layer in zip(results, starts, strict=True):
        result["start_attention"] = attention_map(layer, language)
    shape = (len(embedding), len(scale), len(eta), len(contrast_weight), len(seeds))
    axes = ("embedding", "scale", "eta", "contrast_weight", "seed")
    variables = {}
    for name in results[0]:
        dims, long_name, units = _DESCRIPTIONS.get(name, ((), name, "1"))
        values = np.array([result[name] for result in results])
        attributes = {"long_name": long_name, "units": units}
        variables[name] = ((*axes, *dims), values.reshape(*shape, *values.shape[1:]), attributes)
    coordinates = {
        "embedding": list(embedding),
        "scale": ("scale", list(scale), {"long_name": "initial scale of Z", "units": "1"}),
        "eta": ("eta", list(eta), {"long_name": "learning rate", "units": "1 / step"}),
        "contrast_weight": ("contrast_weight", list(contrast_weight), {"units": "nats"}),
        "seed": list(seeds),
        "length": ("length", list(samples.test), {"units": "brackets"}),
        "query": list(QUERIES),
    }
    sizes = {"k": language.n_types, "D": language.max_depth, "q": language.open_probability, "steps": steps}
    return xr.Dataset(variables, coordinates, sizes)
