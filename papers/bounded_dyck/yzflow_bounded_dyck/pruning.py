r"""Pruning a random network to a given one (Section 3.2 of Wen et al. 2023, arXiv 2312.01429).

A nonstructural pruning (Definition 4) keeps each weight or sets it to zero. A random 2-layer ReLU network wide enough
holds any linear map (Lemma 2, after Pensia et al. 2020, arXiv 2006.07990): unit r, pruned to input j, computes
``|U_rj| relu(+-x_j)``, and a subset of the numbers ``V_ir |U_rj|`` sums to W_ij. So a random Transformer holds any
small one (Theorem 3), and a single pruned matrix does not tell which (Corollary 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Bags, Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork

__all__ = [
    "Pruned",
    "PrunedDyckLayer",
    "identity_network",
    "indistinguishable",
    "is_pruning",
    "max_row_norm",
    "pad",
    "prune_balanced_layer",
    "prune_linear",
    "prune_network",
    "prune_product",
    "subset_sum",
]

# Numbers in an exhaustive search for the best subset, in time 2^12: subset sums are about 1e-7 apart.
_SEARCHED = 24


def max_row_norm(matrix: ArrayLike) -> float:
    """The largest norm of a row (Definition 6)."""
    return float(np.linalg.norm(_matrix(matrix), axis=1).max())


def _matrix(value) -> np.ndarray:
    matrix = checks.finite_array("matrix", value, ndim=2)
    if matrix.size == 0:
        raise checks.reject("matrix", "have at least one row and one column", f"shape {matrix.shape}")
    return matrix


def is_pruning(pruned: Sequence, original: Sequence) -> bool:
    """Whether every weight of ``pruned`` equals the weight of ``original`` or is zero (Definition 4)."""
    ours, theirs = (
        [checks.finite_array(name, matrix) for matrix in checks.listed(name, matrices, "be a sequence of matrices")]
        for name, matrices in (("pruned", pruned), ("original", original))
    )
    return len(ours) == len(theirs) and all(
        one.shape == other.shape and bool(((one == other) | (one == 0)).all())
        for one, other in zip(ours, theirs, strict=True)
    )


def approximation_error(
    function: Callable[[np.ndarray], np.ndarray], other: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray
) -> float:
    """``max |f(x) - g(x)|_2`` over rows x: a lower bound of the epsilon of Definition 5, which is a supremum."""
    return float(np.linalg.norm(np.asarray(function(inputs)) - other(inputs), axis=-1).max())


def subset_sum(values: ArrayLike, target: float) -> np.ndarray:
    """A subset whose sum is near a target, by meeting in the middle: a mask over ``values``.

    Up to 24 numbers: the nearest of all subsets (the empty one counts), in time and memory 2^{n/2}. Of more, the
    largest are taken or left so that each step comes nearer to the target, and the other 24 are searched.

    Parameters
    ----------
    values : (n,) float
    target : float
    """
    values = checks.finite_array("values", values, ndim=1)
    target = checks.real("target", target)
    mask = np.zeros(values.size, dtype=bool)
    if target == 0:
        return mask
    order = np.argsort(-np.abs(values), kind="stable")
    extra = max(values.size - _SEARCHED, 0)
    for at in order[:extra]:
        mask[at] = abs(target - values[at]) < abs(target)
        target -= values[at] * mask[at]
    mask[order[extra:]] = _nearest_subset(values[order[extra:]], target)
    return mask


def _nearest_subset(values: np.ndarray, target: float) -> np.ndarray:
    half = values.size // 2
    left, right = _sums(values[:half]), _sums(values[half:])
    order = np.argsort(left)
    wanted = target - right
    above = np.searchsorted(left[order], wanted)
    best, chosen = np.inf, (0, 0)
    for place in (np.minimum(above, left.size - 1), np.maximum(above - 1, 0)):
        gaps = np.abs(left[order[place]] - wanted)
        at = int(np.argmin(gaps))
        if gaps[at] < best:
            best, chosen = gaps[at], (int(order[place[at]]), at)
    return np.concatenate([_bits(chosen[0], half), _bits(chosen[1], values.size - half)])


def _sums(values: np.ndarray) -> np.ndarray:
    """Sums of all subsets; bit b of the index tells whether value b is in."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def _bits(index: int, size: int) -> np.ndarray:
    return (index >> np.arange(size)) % 2 == 1


@dataclass(frozen=True, eq=False)
class Pruned:
    """A pruned network and what it was pruned from.

    Attributes
    ----------
    network : ReluNetwork
        The pruned one. Where the target has biases, it takes an input of 1 after the others.
    random : ReluNetwork
        The random one, weights uniform in [-1, 1].
    certificate : float
        Bound of ``|network(x) - target(x)|_2`` over all ``|x|_2 <= 1``, proved from the weights and not sampled.
    """

    network: ReluNetwork
    random: ReluNetwork
    certificate: float


def prune_linear(matrix: ArrayLike, n: int, rng: np.random.Generator | int | None) -> Pruned:
    r"""Prune a random 2-layer ReLU network with 2 n hidden units an input to a linear map (Lemma 2).

    Units of block j are pruned to input j; those with U_rj > 0 see relu(x_j), the others relu(-x_j). A subset of the
    first has ``sum V_ir |U_rj| = W_ij``, one of the second -W_ij, up to errors E_+ and E_-. As (relu(x), relu(-x)) has
    the norm of x, the map is off by at most ``||[E_+ E_-]||_2 |x|``, which is the certificate.

    Parameters
    ----------
    matrix : (outputs, inputs)
    n : int
        Half of the hidden units of an input; errors fall about like 2^-n.
    rng : numpy.random.Generator or seed
    """
    matrix, n = _matrix(matrix), checks.integer("n", n, minimum=1)
    generator = checks.generator("rng", rng)
    n_outputs, n_inputs = matrix.shape
    checks.fits_in_memory("n", 8 * 4 * n * n_inputs * (n_inputs + n_outputs), "draw a network")
    U = generator.uniform(-1, 1, (2 * n * n_inputs, n_inputs))
    V = generator.uniform(-1, 1, (n_outputs, 2 * n * n_inputs))
    kept_u, kept_v = np.zeros_like(U), np.zeros_like(V)
    for j in range(n_inputs):
        block = slice(2 * n * j, 2 * n * (j + 1))
        kept_u[block, j] = U[block, j]
        for sign in (1, -1):
            units = np.flatnonzero(sign * kept_u[:, j] > 0)
            for i in range(n_outputs):
                chosen = units[subset_sum(V[i, units] * np.abs(U[units, j]), sign * matrix[i, j])]
                kept_v[i, chosen] = V[i, chosen]
    network = ReluNetwork((kept_u, kept_v))
    # The network's values at relu(x) and at relu(-x).
    identity = np.eye(n_inputs)
    errors = np.hstack([network(identity).T - matrix, network(-identity).T + matrix])
    return Pruned(network, ReluNetwork((U, V)), float(np.linalg.norm(errors, 2)))


def prune_pair(
    U: np.ndarray, V: np.ndarray, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray, signs: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prune two given matrices so that ``V relu(U z)`` is near a map of the inputs ``columns`` to the outputs ``rows``.

    Hidden units are dealt out to inputs and signs by `dealt_out`, so that every entry of the map is a subset sum of
    about equally many products, where `prune_linear` leaves their number to chance.

    Parameters
    ----------
    U : (units, all inputs)
    V : (all outputs, units)
    matrix : (rows, columns)
    rows, columns : int arrays
        Which outputs and inputs of U and V.
    signs : (1, -1), or (1,) for inputs that are not negative

    Returns
    -------
    U, V : array
        What is kept.
    (rows, signs x columns) array
        What the pruned map makes of (relu(z), relu(-z)), or of relu(z), less what it should.
    """
    kept_u, kept_v = np.zeros_like(U), np.zeros_like(V)
    weights = U[:, columns]
    owner, side = dealt_out(np.stack([np.maximum(sign * weights, 0) for sign in signs], axis=1))
    kept = np.flatnonzero(side >= 0)
    kept_u[kept, columns[owner[kept]]] = weights[kept, owner[kept]]
    errors = np.zeros((len(rows), len(signs) * len(columns)))
    for place, sign in enumerate(signs):
        for j, column in enumerate(columns):
            units = np.flatnonzero((side == place) & (owner == j))
            sizes = np.abs(U[units, column])
            for i, row in enumerate(rows):
                products, wanted = V[row, units] * sizes, sign * matrix[i, j]
                chosen = subset_sum(products, wanted)
                kept_v[row, units[chosen]] = V[row, units[chosen]]
                errors[i, place * len(columns) + j] = products[chosen].sum() - wanted
    return kept_u, kept_v, errors


def dealt_out(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each unit the input and the sign that it is pruned to: about equally many a pair, and large weights.

    Of the pairs with a positive weight and at most one unit more than the poorest of them, the one of largest weight.

    Parameters
    ----------
    weights : (units, signs, inputs)
        Not negative; 0 where a unit does not have the sign.

    Returns
    -------
    input, sign : (units,) int
        -1 for a unit without a positive weight.
    """
    counts = np.zeros(weights.shape[1:], dtype=int)
    owner, side = np.full((2, len(weights)), -1)
    for unit, own in enumerate(weights):
        if own.any():
            poorest = counts[own > 0].min()
            best = np.where((own > 0) & (counts <= poorest + 1), own, -1.0).argmax()
            side[unit], owner[unit] = np.unravel_index(best, counts.shape)
            counts[side[unit], owner[unit]] += 1
    return owner, side


def prune_product(matrix: ArrayLike, n: int, rng: np.random.Generator | int | None) -> tuple[Pruned, np.ndarray]:
    """Prune two random matrices so that ``K^T Q`` is near a matrix, as key and query matrix (Lemma 7).

    Row r of Q is pruned to one column j, n rows a column; a subset of the numbers K_ri Q_rj sums to the entry (i, j).

    Returns
    -------
    Pruned, array
        The network with the weights (Q, K^T), whose certificate is the largest entry of |K^T Q - matrix|, the norm of
        the lemma; and K^T Q.
    """
    matrix, n = _matrix(matrix), checks.integer("n", n, minimum=1)
    generator = checks.generator("rng", rng)
    rows, columns = matrix.shape
    checks.fits_in_memory("n", 8 * 2 * n * columns * (columns + rows), "draw a network")
    Q, K = generator.uniform(-1, 1, (n * columns, columns)), generator.uniform(-1, 1, (n * columns, rows))
    kept_q, kept_k = np.zeros_like(Q), np.zeros_like(K)
    for j in range(columns):
        block = np.arange(n * j, n * (j + 1))
        kept_q[block, j] = Q[block, j]
        for i in range(rows):
            chosen = block[subset_sum(K[block, i] * Q[block, j], matrix[i, j])]
            kept_k[chosen, i] = K[chosen, i]
    product = kept_k.T @ kept_q
    error = float(np.abs(product - matrix).max())
    return Pruned(ReluNetwork((kept_q, kept_k.T)), ReluNetwork((Q, K.T)), error), product


def prune_network(network: ReluNetwork, n: int, rng: np.random.Generator | int | None) -> Pruned:
    """Prune a random ReLU network of twice the layers to a given one, each layer as in `prune_linear` (Lemma 6).

    Biases become weights of an input that is 1 and is passed on. To bring every weight into [-1, 1], within reach of a
    sum, layers are scaled to equal largest weights, and hidden units copied where that is not enough; neither changes
    the function, as relu(c x) = c relu(x). The certificate adds up the layers' errors as Lemma 5 does.
    """
    checks.instance("network", network, ReluNetwork)
    rng = checks.generator("rng", rng)
    matrices = balanced_matrices(_without_biases(network))
    parts = [prune_linear(matrix, n, rng) for matrix in matrices]
    size, error = 1.0, 0.0
    for matrix, part in zip(matrices, parts, strict=True):
        gain = float(np.linalg.norm(matrix, 2))
        error = (gain + part.certificate) * error + part.certificate * size
        size *= gain
    return Pruned(
        ReluNetwork(tuple(weight for part in parts for weight in part.network.weights)),
        ReluNetwork(tuple(weight for part in parts for weight in part.random.weights)),
        float(error),
    )


def _without_biases(network: ReluNetwork) -> list[np.ndarray]:
    if not any(bias.any() for bias in network.biases):
        return list(network.weights)
    extended = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        carry = np.append(np.zeros(weight.shape[1]), 1.0)
        extended.append(np.vstack([np.column_stack([weight, bias]), carry]))
    extended[-1] = extended[-1][:-1]
    return extended


def balanced_matrices(
    matrices: Sequence[np.ndarray], largest: float = 1.0, most: int | None = None
) -> list[np.ndarray]:
    """A network that computes the same, with equal largest weights a layer.

    Hidden units are copied until none is above ``largest``, or there would be more than ``most`` of them in a layer.
    """
    matrices = list(matrices)
    gain = np.prod([np.abs(matrix).max() / largest for matrix in matrices])
    if gain == 0:
        return matrices
    if len(matrices) > 1:
        copies = int(np.ceil(gain ** (1 / (len(matrices) - 1)) - 1e-9))
        if most is not None:
            copies = min(copies, most // max(len(matrix) for matrix in matrices[:-1]))
        copies = max(copies, 1)
        spread = [np.repeat(matrix, copies, axis=0) for matrix in matrices[:-1]]
        spread.append(matrices[-1])
        matrices = [spread[0], *(np.repeat(matrix, copies, axis=1) / copies for matrix in spread[1:])]
    sizes = [np.abs(matrix).max() for matrix in matrices]
    common = np.exp(np.log(sizes).mean())
    return [matrix * (common / size) for matrix, size in zip(matrices, sizes, strict=True)]


def identity_network(size: int, n_layers: int) -> ReluNetwork:
    """The identity as a ReLU network of at least two layers: relu(x) and relu(-x) are passed on."""
    size = checks.integer("size", size, minimum=1)
    n_layers = checks.integer("n_layers", n_layers, minimum=2)
    checks.fits_in_memory("size", 8 * 4 * size**2 * n_layers, "write down the identity")
    both = np.vstack([np.eye(size), -np.eye(size)])
    return ReluNetwork((both, *(np.eye(2 * size) for _ in range(n_layers - 2)), both.T))


def pad(network: ReluNetwork, sizes: Sequence[int]) -> ReluNetwork:
    """The network with zero weights added up to these sizes: inputs, hidden layers, outputs."""
    checks.instance("network", network, ReluNetwork)
    sizes = checks.index_array("sizes", sizes).tolist()
    present = [network.weights[0].shape[1], *(len(weight) for weight in network.weights)]
    if len(sizes) != len(present) or any(size < now for size, now in zip(sizes, present, strict=True)):
        raise checks.reject("sizes", f"be at least {present}", list(sizes))
    numbers = sum(after * before for after, before in pairwise(sizes))
    checks.fits_in_memory("sizes", 16 * numbers, "write down the weights")
    weights, biases = [], []
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        more = sizes[layer + 1] - len(weight)
        weights.append(np.pad(weight, ((0, more), (0, sizes[layer] - weight.shape[1]))))
        biases.append(np.pad(bias, (0, more)))
    return ReluNetwork(tuple(weights), tuple(biases))


def indistinguishable(
    first: ReluNetwork, second: ReluNetwork, matrix: int, n: int, rng: np.random.Generator | int | None
) -> tuple[tuple[Pruned, Pruned], tuple[Pruned, Pruned]]:
    """Two prunings of one random model that differ as functions and agree on one weight matrix (Corollary 3).

    The random model is two blocks of twice the layers, applied one after the other. The block with the chosen matrix
    is pruned to the identity, in the same way for both; the other one to ``first`` or to ``second``.

    Parameters
    ----------
    first, second : ReluNetwork
        Of the same sizes, with as many outputs as inputs, at least two layers and no biases.
    matrix : int
        Number of the weight matrix on which both agree, from 0, over both blocks.
    n : int
        As in `prune_linear`.
    rng : numpy.random.Generator or seed

    Returns
    -------
    (block, block), (block, block)
        The two pruned models.
    """
    for name, network in (("first", first), ("second", second)):
        checks.instance(name, network, ReluNetwork)
    generator = checks.generator("rng", rng)
    shapes = [weight.shape for weight in first.weights]
    size, n_layers = shapes[0][1], len(shapes)
    if shapes != [weight.shape for weight in second.weights] or shapes[-1][0] != size or n_layers < 2:
        raise checks.reject("second", f"have the shapes {shapes}, of a map to as many outputs", len(second.weights))
    if any(bias.any() for network in (first, second) for bias in network.biases):
        raise checks.reject("first", "have no biases", "some")
    matrix = checks.integer("matrix", matrix, minimum=0)
    if matrix >= 4 * n_layers:
        raise checks.reject("matrix", f"be below {4 * n_layers}", matrix)
    wide = [size, *(max(shape[0], 2 * size) for shape in shapes[:-1]), size]
    seeds = generator.integers(2**63, size=2)
    # One seed is one random block, whatever it is pruned to: weights are drawn before, layer by layer, in this order.
    place = matrix // (2 * n_layers)
    identity = prune_network(pad(identity_network(size, n_layers), wide), n, seeds[place])
    models = []
    for network in (first, second):
        block = prune_network(pad(network, wide), n, seeds[1 - place])
        models.append((identity, block) if place == 0 else (block, identity))
    return models[0], models[1]


@dataclass(frozen=True, eq=False)
class PrunedDyckLayer:
    """A layer over Dyck states that was pruned from random networks.

    Attributes
    ----------
    layer : Layer
        With the attention logits and values that the pruned networks compute.
    values, attention, head : Pruned
        What was pruned: to the value matrix, to the logits (as key and query matrix), and to the exact head.
    """

    layer: Layer
    values: Pruned
    attention: Pruned
    head: Pruned

    def predict(self, bags: Bags) -> np.ndarray:
        """The head's output for each bag: (bags, 2 k); near the exact distribution of the next bracket."""
        features = self.layer.features(bags)
        return self.head.network(np.column_stack([features, np.ones(len(features))]))


def prune_balanced_layer(
    language: DyckLanguage, n: int, rng: np.random.Generator | int | None, *, scale: float = 0.0
) -> PrunedDyckLayer:
    """Prune random networks to a `balance.balanced_layer` and its exact head (Theorem 3, end to end).

    An error of the values or the logits breaks balance by as much, and grows with the length of the prefix.

    Parameters
    ----------
    language : DyckLanguage
    n : int
        As in `prune_linear`; 2 n rows a column of the query and the key matrix.
    rng : numpy.random.Generator or seed
    scale : float
        Of the random attention; 0 is uniform attention, whose logits are pruned to exactly zero.
    """
    rng = checks.generator("rng", rng)
    perfect = balance.balanced_layer(language, rng, scale=scale)
    head = balance.exact_head(perfect, language)
    # Features do not see the scale of V, which a balanced layer has.
    value_map = np.asarray(perfect.V)
    values = prune_linear(value_map.T / np.abs(value_map).max(), n, rng)
    attention, logits = prune_product(perfect.Z.T, 2 * n, rng)
    layer = Layer(logits.T, perfect.Y, values.network(np.eye(language.n_states)))
    return PrunedDyckLayer(layer, values, attention, prune_network(head, n, rng))
