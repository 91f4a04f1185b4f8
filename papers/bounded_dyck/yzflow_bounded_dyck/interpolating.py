r"""ReLU networks of one hidden layer that interpolate, find an index, pick an entry, and switch: Lemmas 15 to 19.

Our text of Wen et al. 2023 (arXiv 2312.01429) has the words of these lemmas without formulas; what is reconstructed is
the exact bound of the inputs. A gate is ``relu(u + M t) - relu(M t)``: for whole numbers t and M >= 2 |u| it is relu(u)
at t = 0, zero below, and u above; ``relu(u + M (t - 1/2)) - relu(M (t - 1/2))`` is zero up to 0 and u above.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_bounded_dyck.networks import ReluNetwork


def interpolating_network(points: ArrayLike, values: ArrayLike) -> ReluNetwork:
    """A network with one hidden unit a point, f(x_i) = y_i at different points (Lemma 15).

    Points are projected on a line that tells them apart; the network is linear between neighbours there.

    Parameters
    ----------
    points : (n, d) float
    values : (n, outputs) float
    """
    points, values = checks.finite_array("points", points, ndim=2), checks.finite_array("values", values, ndim=2)
    if points.size == 0 or len(values) != len(points) or len(np.unique(points, axis=0)) < len(points):
        raise checks.reject("points", "be different, with a value each", f"shape {points.shape}")
    draws = np.random.default_rng(0).normal(size=(50, points.shape[1]))
    gaps = [np.diff(np.sort(points @ line)).min(initial=np.inf) / np.linalg.norm(line) for line in draws]
    line = draws[int(np.argmax(gaps))]
    order = np.argsort(points @ line)
    places, heights = points[order] @ line, values[order]
    rule = "be so far apart that the slopes between neighbours keep the values in float64"
    if not (np.diff(places) > 0).all():
        raise checks.reject("points", rule, "two of one place")
    slopes = np.diff(heights, axis=0) / np.diff(places)[:, None]
    turns = np.diff(slopes, axis=0, prepend=np.zeros((1, values.shape[1])))
    weights = (np.tile(line, (len(points), 1)), np.vstack([turns, np.zeros((1, values.shape[1]))]).T)
    network = ReluNetwork(weights, (-places, heights[0]))
    error = np.abs(network(points) - values).max(initial=0)
    if not error <= 1e-6 * max(1.0, np.abs(values).max(initial=0)):
        raise checks.reject("points", rule, f"an error of {error:.2g}")
    return network


def separating_basis(points: ArrayLike) -> np.ndarray:
    """d - 1 orthonormal vectors on which different points stay different, d >= 2 (Lemma 16, as we read it).

    They span what is orthogonal to a direction that no difference of two points has: all but finitely many do.

    Parameters
    ----------
    points : (n, d) float
    """
    points = checks.finite_array("points", points, ndim=2)
    if points.shape[1] < 2 or not len(points):
        raise checks.reject("points", "be of two dimensions or more", f"shape {points.shape}")
    points = np.unique(points, axis=0)
    best, basis = -1.0, np.eye(0)
    for draw in np.random.default_rng(0).normal(size=(20, points.shape[1])):
        others = np.linalg.svd(draw[None])[2][1:]
        seen = points @ others.T
        gaps = np.linalg.norm(seen[:, None] - seen, axis=2) + np.diag(np.full(len(seen), np.inf))
        if gaps.min() > best:
            best, basis = gaps.min(), others
    return basis


def index_network(size: int, least: float) -> ReluNetwork:
    """The number, from 1, of the only entry that is not 0, of size ``least`` or more; 0 if there is none (Lemma 18)."""
    size, least = checks.integer("size", size, minimum=1), checks.positive("least", least)
    same = np.eye(size)
    hidden = np.vstack([same, same, -same, -same])
    signs = np.repeat([1.0, -1.0, 1.0, -1.0], size) / least
    bias = -np.repeat([0.0, least, 0.0, least], size)
    return ReluNetwork((hidden, (signs * np.tile(np.arange(1.0, size + 1), 4))[None]), (bias, np.zeros(1)))


def picking_network(size: int, bound: float) -> ReluNetwork:
    """``(x, i) -> x_i`` for |x_j| <= bound and i = 1 .. size (Lemma 17): a switch between the entries."""
    size = checks.integer("size", size, minimum=1)
    return switching_network([_entry(row) for row in np.eye(size)], bound)


def _entry(row: np.ndarray) -> ReluNetwork:
    return ReluNetwork((np.vstack([row, -row]), np.array([[1.0, -1.0]])))


def switching_network(networks: Sequence[ReluNetwork], bound: float) -> ReluNetwork:
    """``(x, i) -> f_i(x)`` for |x_j| <= bound and i = 1 .. k, four hidden units for each of theirs (Lemma 19).

    Parameters
    ----------
    networks : sequence of ReluNetwork
        f_1, .., f_k of one hidden layer each, with equally many inputs and outputs.
    bound : float
    """
    bound, rows, biases, outs = checks.positive("bound", bound), [], [], []
    listed = checks.listed("networks", networks, "be a sequence of networks")
    shapes = {
        (len(one.weights), one.weights[0].shape[1], len(one.weights[-1]))
        for one in (checks.instance("networks", network, ReluNetwork) for network in listed)
    }
    if len(shapes) != 1 or {layers for layers, _, _ in shapes} != {2}:
        raise checks.reject("networks", "be of one hidden layer, with equally many inputs and outputs", sorted(shapes))
    for number, network in enumerate(networks, start=1):
        hidden, offset = network.weights[0], network.biases[0]
        large = 2 * (np.abs(hidden).sum(axis=1) * bound + np.abs(offset)) + 1
        # relu(u) at 0 and u above it, less u above: relu(u) at i = number alone.
        for height, sign in ((0.0, 1.0), (0.5, -1.0)):
            for inside, part in ((1.0, sign), (0.0, -sign)):
                rows.append(np.column_stack([inside * hidden, large]))
                biases.append(inside * offset - large * (number + height))
                outs.append(part * network.weights[1])
        # The output's bias at i = number: the hat of height one.
        rows.append(np.pad(np.ones((3, 1)), [(0, 0), (hidden.shape[1], 0)]))
        biases.append(-np.array([number - 1.0, number, number + 1.0]))
        outs.append(np.outer(network.biases[1], [1.0, -2.0, 1.0]))
    weights = (np.vstack(rows), np.hstack(outs))
    return ReluNetwork(weights, (np.concatenate(biases), np.zeros(len(weights[1]))))
