r"""Theorem 2 on a given layer: violation of (14), matched pairs until outputs merge, and bounds from the loss.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429). Two prefixes ``w, open j, close j`` with different last
unmatched types need different outputs. By Theorem 2 the outputs merge after more than ``P (1 + 2 gamma / tau) / S``
matched pairs (`reach`). A small excess of the squared loss or the cross-entropy over its least value keeps them apart
(`from_loss`).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from dynamics import Bags, Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck._stacks import nearest, stacks, sums
from yzflow_bounded_dyck.proofs import cross_entropy, theorem2

# Tried numbers of pairs: 0 to 10, then 16 per factor of ten.
_TRIED = np.unique(np.rint(np.append(np.arange(11), 10 ** (1 + np.arange(97) / 16))).astype(np.int64))


def miss(layer: Layer, language: DyckLanguage) -> float:
    """Share of a matched pair that does not cancel, against (14): 0 in a balanced layer, 1 without any cancellation.

    ``sum ||u(q, open) + u(q, close)|| / sum (||u(q, open)|| + ||u(q, close)||)``, with rows of Z shifted to a maximum
    of 0. The sums are over types and levels of a pair, and over the queries close (j, d), 1 <= d <= D - 1. Orthogonal
    vectors of equal length give 0.71. nan for D = 1, which has no such query.
    """
    u = balance.contributions(layer, language, scaled=True)[balance.queries(language).ravel()]
    opens, closes = balance.pairs(language)
    parts = np.linalg.norm(u[:, opens], axis=-1) + np.linalg.norm(u[:, closes], axis=-1)
    left = np.linalg.norm(u[:, opens] + u[:, closes], axis=-1)
    return float(left.sum() / parts.sum()) if parts.sum() > 0 else np.nan


def lipschitz(layer: Layer) -> float:
    """A Lipschitz constant of the head: ||Y|| / 2, since softmax is 1/2-Lipschitz, times ||W|| of a hidden layer."""
    checks.instance("layer", layer, Layer)
    hidden = 1.0 if layer.hidden is None else np.linalg.norm(layer.hidden[:-1], 2)
    return float(np.linalg.norm(layer.expand().Y, 2) / 2 * hidden)


def apart(language: DyckLanguage) -> float:
    """Distance of exact distributions after closing queries with different last unmatched types: sqrt(2) (1 - q)."""
    return float(np.sqrt(2) * (1 - checks.instance("language", language, DyckLanguage).open_probability))


def kept_behind(layer: Layer, language: DyckLanguage, n: int = 1000) -> float:
    """Feature distance of two stacks behind n matched pairs, over their distance without pairs, at its smallest.

    For the two prefixes of (17), over the queries and the pairs that they reach. It is 1 in a balanced layer and of
    order 1/n in other layers. nan for k = 1 or D = 1, where no two stacks have the same query.
    """
    n, shares = checks.integer("n", n, minimum=1), []
    added = balance.insertions(layer, language)
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    for j, d, prefixes in stacks(language):
        u = sums(layer, language, prefixes)
        pair = u[list(nearest(u, prefixes))]
        delta = added[language.close(j, d), :, : d + 2].reshape(-1, 1, u.shape[1])
        rows = np.concatenate([pair[None], pair + n * delta])
        features = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
        distance = np.linalg.norm(features[:, 0] - features[:, 1], axis=1)
        shares.append(distance[1:].min() / distance[0])
    return float(min(shares))


class Reach(NamedTuple):
    """Number of matched pairs until a layer's outputs merge, for each query and pair that (16) reaches, d' <= d + 2.

    Attributes
    ----------
    query, pair : (n, 2) int
        The query close (j, d) as (j, d), the pair (i, d') as (i, d').
    bound : (n,) float
        Largest number of pairs after which Theorem 2 allows outputs apart, ``P (1 + 2 gamma / tau) / S``.
    found : (n,) float
        Largest tried number of pairs, up to ten million, after which outputs were apart; -1 if they never were.
    """

    query: np.ndarray
    pair: np.ndarray
    bound: np.ndarray
    found: np.ndarray


def reach(layer: Layer, language: DyckLanguage, *, share: float = 0.5) -> Reach:
    """Numbers of pairs after which the outputs of the two prefixes of (17) keep ``share`` of the exact distance.

    Parameters
    ----------
    layer : Layer
    language : DyckLanguage
        With two types and depths at least.
    share : float
        tau in units of `apart`, positive and at most 1. Outputs within a quarter of `apart` of the exact distributions
        have at least 1/2.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules, or the layer has a floor or no LN.
    """
    checks.instance("language", language, DyckLanguage)
    if min(language.n_types, language.max_depth) < 2:
        raise checks.reject("language", "have at least two types and depths", language)
    if not 0 < checks.real("share", share) <= 1:
        raise checks.reject("share", "be above 0 and at most 1", share)
    tau, gamma = share * apart(language), lipschitz(layer)
    added = balance.insertions(layer, language)
    rows = []
    for j, d, prefixes in stacks(language):
        u = sums(layer, language, prefixes)
        pair = u[list(nearest(u, prefixes))]
        size = np.linalg.norm(pair, axis=1).max()
        for i, level in itertools.product(range(language.n_types), range(1, min(d + 2, language.max_depth) + 1)):
            delta = added[language.close(j, d), i, level - 1]
            step = np.linalg.norm(delta)
            most = theorem2.bound(size, gamma, tau, 1) / step if step > 0 else np.inf
            outputs = _outputs(layer, pair[None] + _TRIED[:, None, None] * delta)
            far = np.linalg.norm(outputs[:, 0] - outputs[:, 1], axis=1) >= tau
            rows.append(((j, d), (i, level), most, _TRIED[far].max(initial=-1)))
    query, pairs, bound, found = zip(*rows, strict=True)
    return Reach(np.array(query), np.array(pairs), np.array(bound), np.array(found, dtype=float))


def _outputs(layer: Layer, u: np.ndarray) -> np.ndarray:
    """Distributions of the next bracket from sums before LN, (.., width), after subtraction of the mean."""
    features = u / np.linalg.norm(u, axis=-1, keepdims=True)
    if layer.hidden is not None:
        features = np.maximum(features @ layer.hidden[:-1] + layer.hidden[-1], 0)
    logits = features @ layer.expand().Y
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def excess(layer: Layer, bags: Bags) -> tuple[float, float]:
    """How far the cross-entropy (nats) and the squared loss lie above their least on bags with exact targets.

    The means of ``KL(target || output)`` and of ``||target - output||^2``: the second is never above the first.
    """
    divergence, squares = _divergences(layer, bags)
    return float(bags.weight @ divergence), float(bags.weight @ squares)


def _divergences(layer: Layer, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
    checks.instance("layer", layer, Layer)
    targets = checks.instance("bags", bags, Bags).target
    logits = layer.expand().logits(bags)
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    own = np.log(np.where(targets > 0, targets, 1.0))
    divergence = (targets * (own - logs)).sum(axis=1)
    return np.maximum(divergence, 0), ((targets - np.exp(logs)) ** 2).sum(axis=1)


def kept_apart(layer: Layer, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
    """Lower bound from the loss on the distance of two outputs, and that distance, for bags with different targets.

    The bound is ``tau - sqrt(e (1/pi_1 + 1/pi_2))`` for two bags with the same query, with tau the distance of their
    targets, pi their weights and e = pi_1 KL_1 + pi_2 KL_2 their part of the excess of the cross-entropy. The remaining
    excess is not negative.

    Parameters
    ----------
    layer : Layer
    bags : Bags
        With exact targets.

    Returns
    -------
    least, distance : (pairs,) arrays
    """
    divergence, _ = _divergences(layer, bags)
    outputs = layer.expand().predict(bags)
    least, distance = [np.empty(0)], [np.empty(0)]
    for query in np.unique(bags.query):
        chosen = np.flatnonzero((bags.query == query) & (bags.weight > 0))
        one, other = chosen[np.array(np.triu_indices(chosen.size, 1))]
        tau = np.linalg.norm(bags.target[one] - bags.target[other], axis=1)
        weights = bags.weight[one], bags.weight[other]
        spent = weights[0] * divergence[one] + weights[1] * divergence[other]
        # A function of numbers, from the proved formula.
        root = np.array([float(cross_entropy.error(*row)) for row in zip(spent, *weights, strict=True)])
        least.append((tau - root)[tau > 0])
        distance.append(np.linalg.norm(outputs[one] - outputs[other], axis=1)[tau > 0])
    return np.concatenate(least), np.concatenate(distance)


class FromLoss(NamedTuple):
    """Two prefixes after n pairs: the distance of their outputs with its bound from the loss, and S / P with its bound.

    Attributes
    ----------
    n : (rows,) int
        Number of inserted pairs.
    least : (rows,) float
        Lower bound of the outputs' distance from the excess, `cross_entropy.separation`; negative if it is void.
    distance : (rows,) float
        Distance of the outputs.
    bound : (rows,) float
        Upper bound of S / P from the loss; inf if it is void.
    ratio : (rows,) float
        S / P.
    """

    n: np.ndarray
    least: np.ndarray
    distance: np.ndarray
    bound: np.ndarray
    ratio: np.ndarray


def from_loss(layer: Layer, language: DyckLanguage, *, max_length: int) -> FromLoss:
    """Theorem 2 from the excess of the cross-entropy on all prefixes of up to ``max_length`` brackets.

    One row for each query, pair with d' <= d + 2, and number of pairs that fits. Prefixes with equal bags have equal
    outputs, and count as one prefix with the sum of their weights.

    Parameters
    ----------
    layer : Layer
    language : DyckLanguage
        With two types and depths at least.
    max_length : int
        Longest length; all lengths from 1 on are equally likely, and all prefixes are enumerated.
    """
    checks.instance("language", language, DyckLanguage)
    if min(language.n_types, language.max_depth) < 2:
        raise checks.reject("language", "have at least two types and depths", language)
    population = language.enumerate(max_length=max_length)
    weight = dict(zip(_keys(population), population.weight, strict=True))
    total, _ = excess(layer, population)
    gamma, tau = lipschitz(layer), apart(language)
    scales = np.linalg.norm(balance.insertions(layer, language), axis=-1)
    rows = []
    for j, d, prefixes in stacks(language):
        u = sums(layer, language, prefixes)
        chosen = nearest(u, prefixes)
        size = np.linalg.norm(u[list(chosen)], axis=1).max()
        for i, above in itertools.product(range(language.n_types), range(min(d + 2, language.max_depth))):
            for n in range(1, (max_length - d - 2) // 2 + 1):
                pairs = [2 * i, 2 * i + 1] * n
                bags = language.bags([prefixes[one][:above] + pairs + prefixes[one][above:] for one in chosen])
                shares = [weight[key] for key in _keys(bags)]
                outputs = layer.expand().predict(bags)
                least = float(cross_entropy.separation(tau, total, *shares))
                bound = theorem2.bound(1.0, gamma, least, n) if least > 0 else np.inf
                ratio = scales[language.close(j, d), i, above] / size
                rows.append((n, least, np.linalg.norm(outputs[0] - outputs[1]), bound, ratio))
    if not rows:
        raise checks.reject("max_length", "leave room for one pair, 5 at least", max_length)
    return FromLoss(*(np.array(column) for column in zip(*rows, strict=True)))


def _keys(bags: Bags) -> list[tuple[bytes, ...]]:
    """Name of each bag: its query and its counts, in the order of the tokens."""
    found: list[tuple[bytes, ...]] = []
    for b in range(len(bags)):
        at = slice(bags.indptr[b], bags.indptr[b + 1])
        order = np.argsort(bags.token[at])
        found.append((bags.query[b].tobytes(), bags.token[at][order].tobytes(), bags.count[at][order].tobytes()))
    return found
