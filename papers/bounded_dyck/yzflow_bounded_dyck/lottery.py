r"""A random deep Transformer pruned to a given one, with a certificate (Theorem 3 of Wen et al. 2023, 2312.01429).

Two random layers hold a given layer, as in the paper: the network of the first writes ``P W_V x`` beside x, its
attention is pruned away, so that the residual link alone passes tokens on; the second attends, and its network is
pruned to the given one. A single pruned matrix holds no given one, but a product of two does, entry by entry as a sum
of a subset; what W_V picks are single entries, near one in size, that lead from the written values to coordinates that
hold nothing else. Any layer that is left over is pruned to the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # whose parts are imported where they are first used
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_bounded_dyck import bounds, bounds_on_inputs, pruning
from yzflow_bounded_dyck.networks import ReluNetwork
from yzflow_bounded_dyck.pruned import Fit, PrunedPart
from yzflow_bounded_dyck.transformers import Transformer, TransformerLayer, random_transformer

__all__ = ["PrunedPart", "PrunedTransformer", "indistinguishable_transformers", "prune_transformer", "room_for"]

# Width of the random Transformer over the target's width: tokens, and two pools of coordinates for W_V's entries.
_BLOCKS = 5
# Largest weight to be fitted: sums of n products reach n/8 on average, and some hundred sums must reach their weights.
_REACH = 0.5
# Usual lower bound on the entries of W_V through which values pass.
_PICKED = 0.7


class _Scale(NamedTuple):
    """Sizes at a target's layer: bounds for all inputs of a radius, or the actual sizes for given inputs."""

    token: float  # |x|
    keys: float  # |B^T (x_j - x_k)|
    query: float  # |B x|
    values: float  # |P W_V (x_j - x_k)|
    least: float  # |P W_V X A|, at least
    normed: float  # |LN|, at most


@dataclass(frozen=True, eq=False)
class PrunedTransformer:
    """A random Transformer that was pruned to a given one.

    Attributes
    ----------
    network, random, target : Transformer
        The pruned Transformer, the random one before pruning, and the Transformer to approximate. Tokens of the first
        two are wider: the target's tokens are padded with zeros, as in the paper.
    parts : tuple of PrunedPart
        One part per layer of the random Transformer.
    """

    network: Transformer
    random: Transformer
    target: Transformer
    parts: tuple[PrunedPart, ...]

    def __call__(self, tokens: ArrayLike) -> np.ndarray:
        """Outputs of the pruned Transformer for the target's inputs: (.., length, target's width)."""
        tokens = checks.finite_array("tokens", tokens)
        if tokens.ndim < 2 or tokens.shape[-1] != self.target.width:
            raise checks.reject("tokens", f"have rows of {self.target.width} numbers", f"shape {tokens.shape}")
        more = self.network.width - self.target.width
        return self.network(np.pad(tokens, [(0, 0)] * (tokens.ndim - 1) + [(0, more)]))[..., : self.target.width]

    def error(self, tokens: ArrayLike) -> float:
        """``max |pruned(X) - target(X)|_2`` over tokens of these inputs (Definitions 5 and 6)."""
        return float(np.linalg.norm(self(tokens) - self.target(tokens), axis=-1).max())

    def certificate(self, radius: float = 1.0) -> float:
        """Bound of `error` for every input of every length with tokens of norm ``radius`` or less.

        From the weights alone, by the lemmas of `bounds`; no input is drawn. In float64: rounding, about 1e-15
        of the numbers that are added, is not enclosed.

        Raises
        ------
        ValueError
            If the floor of LN is 0: LN is then not continuous at 0, and no bound for all inputs exists.
        """
        radius = checks.positive("radius", radius)
        if self.target.floor == 0:
            raise checks.reject("floor", "be positive for all inputs, or inputs be given", 0)
        return self._chained(_scales(self.target, radius))[-1]

    def certificate_on(self, tokens: ArrayLike) -> float:
        """Bound of `error` on these inputs, from the target's states there and the norms of the errors.

        Use it for a floor of 0, as in Theorem 1, or if all inputs are known, such as the words up to a length; see
        `bounds_on_inputs`. Never above `certificate` at the radius of the inputs.

        Parameters
        ----------
        tokens : (.., length, width) float
        """
        tokens = checks.finite_array("tokens", tokens)
        self.target.states(tokens)  # refuses invalid inputs
        here = float(bounds_on_inputs.errors(self.target, self.network, self.parts, tokens).max())
        size = float(np.linalg.norm(tokens, axis=-1).max())
        return min(here, self.certificate(size)) if self.target.floor > 0 and size > 0 else here

    def errors_by_layer(self, radius: float = 1.0) -> list[float]:
        """`certificate` after each layer of the random Transformer."""
        radius = checks.positive("radius", radius)
        if self.target.floor == 0:
            raise checks.reject("floor", "be positive for all inputs", 0)
        return self._chained(_scales(self.target, radius))

    def _chained(self, scales: Sequence[_Scale]) -> list[float]:
        """Lemma 5 over all layers: errors of the tokens, and beside them of the values written for the next layer."""
        error, written, found, place = 0.0, 0.0, [], 0
        for part in self.parts:
            if part.role == "attend":
                error = self._attended(part, scales[place], self.target.layers[place], error, written)
                place += 1
            else:
                size = scales[place].token + error
                token_error = error + _excess(part.fit.rows(slice(0, self.target.width)), size, self._link)
                if part.role == "write":
                    layer = self.target.layers[place]
                    values = part.fit.rows(slice(self.target.width, None), part.entries)
                    written = _value_norm(layer) * error + _excess(values, size, self._link)
                error = token_error
            found.append(error)
        return found

    @property
    def _link(self) -> float:
        return self.network.layers[0].residual

    def _attended(
        self, part: PrunedPart, scale: _Scale, layer: TransformerLayer, error: float, written: float
    ) -> float:
        product = layer.key.T @ layer.query
        spread = bounds.logit_spread(error, scale.keys, scale.query, _norm(product), _norm(part.logits), scale.token)
        mixture = written + bounds.attention_change(spread) * scale.values
        share, floor = self.target.width / self.network.width, self.target.floor
        least = max(scale.least - mixture, 0.0)
        ratio = abs(layer.residual / self._link)
        normed = bounds.padded_norm_change(mixture, floor, least, share, ratio)
        read = bounds.read_change(normed, layer.residual, error)
        # The first matrix reads token and normalised mixture apart.
        on_token = abs(self._link) * (scale.token + error) + min(share * mixture / max(floor, least, 1e-300), 1.0)
        size = np.hypot(on_token, min(scale.normed + bounds.norm_change(mixture, floor, least), 1.0))
        return bounds.chain_norm(layer.network.weights) * read + bounds.network_change(*part.fit, size)


def _excess(fit: Fit, size: float, link: float) -> float:
    return bounds.network_change(*fit, abs(link) * size)


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))


def _centred(matrix: np.ndarray) -> np.ndarray:
    """P W: mean zero over the outputs."""
    return matrix - matrix.mean(axis=0)


def _value_norm(layer: TransformerLayer) -> float:
    return _norm(_centred(layer.value))


def _scales(target: Transformer, radius: float) -> list[_Scale]:
    """Scales for all inputs of a norm, from the norms of the matrices, with a last one for the outputs."""
    scales, floor = [], target.floor
    for layer in target.layers:
        product, value = _norm(layer.key.T @ layer.query), _value_norm(layer)
        normed = min(value * radius / floor, 1.0)
        scales.append(_Scale(radius, 2 * product * radius, product * radius, 2 * value * radius, 0.0, normed))
        radius = bounds.chain_norm(layer.network.weights) * (normed + abs(layer.residual) * radius)
    return [*scales, _Scale(radius, *[np.nan] * 5)]


def room_for(
    target: Transformer,
    n: int,
    rng: np.random.Generator | int | None,
    *,
    spare: int = 0,
    residual: float = 1.0,
) -> Transformer:
    """A random Transformer that is wide and deep enough to be pruned to the given one.

    For m = the target's width and h = the most hidden units of its networks, or 2 m: tokens of 5 m numbers, n m rows of
    keys and queries, hidden layers of 4 n m, h, n h units (and so on for deeper networks), 2 L + ``spare`` layers.

    Parameters
    ----------
    target : Transformer
    n : int
        About how many products each entry of a given matrix is chosen from; errors fall about like 2^-n.
    rng : numpy.random.Generator or seed
    spare : int
        Layers to be pruned to the identity.
    residual : float
        Weight of the residual link, not 0.
    """
    target, n = checks.instance("target", target, Transformer), checks.integer("n", n, minimum=1)
    spare = checks.integer("spare", spare, minimum=0)
    if checks.real("residual", residual) == 0:
        raise checks.reject("residual", "not be 0", residual)
    m = target.width
    networks = [pruning.balanced_matrices(layer.network.weights, _REACH) for layer in target.layers]
    depth = max(2, *(len(weights) for weights in networks))
    largest = max(1.0, *(np.abs(_centred(layer.value)).max() / _PICKED for layer in target.layers))
    gain = (largest / abs(residual)) / _REACH**depth
    middle = 2 * m * int(np.ceil(gain ** (1 / (depth - 1)) - 1e-9))
    middle = max(middle, *(len(weight) for weights in networks for weight in weights[:-1]))
    hidden = [4 * n * m, *(size for _ in range(depth - 1) for size in (middle, n * middle))]
    checks.fits_in_memory(
        "n", 16 * n * (2 * len(target.layers) + spare) * _BLOCKS * m * (4 * m + middle), "draw weights"
    )
    return random_transformer(
        _BLOCKS * m, n * m, hidden, 2 * len(target.layers) + spare, rng, floor=target.floor, residual=residual
    )


def prune_transformer(target: Transformer, random: Transformer, *, place: int | None = None) -> PrunedTransformer:
    """Prune a random Transformer to a given one (Theorem 3).

    Parameters
    ----------
    target, random : Transformer
        Of one floor. ``random`` is at least as large as `room_for` makes it.
    place : int, optional
        Before which layer of the target the layers to spare stand. Default: after the last.
    """
    checks.instance("target", target, Transformer)
    checks.instance("random", random, Transformer)
    spare = len(random.layers) - 2 * len(target.layers)
    m = target.width
    if spare < 0:
        raise checks.reject("random", f"have at least {2 * len(target.layers)} layers", len(random.layers))
    if random.floor != target.floor:
        raise checks.reject("random", f"have the target's floor, {target.floor}", random.floor)
    if random.width < _BLOCKS * m:
        raise checks.reject("random", f"have tokens of at least {_BLOCKS * m} numbers", random.width)
    if any(layer.residual == 0 or layer.residual != random.layers[0].residual for layer in random.layers):
        raise checks.reject("random", "have one weight of all residual links, not 0", random.layers[0].residual)
    last = len(target.layers)
    place = last if place is None else checks.integer("place", place, minimum=0, maximum=last)
    layers, parts, remaining = [], [], iter(random.layers)
    for number, layer in enumerate((*target.layers, None)):
        if number == place:
            for _ in range(spare):
                pruned, part = _pass(next(remaining), m)
                layers.append(pruned)
                parts.append(part)
        if layer is None:
            break
        writing, attending = next(remaining), next(remaining)
        columns, rows, entries = _value_entries(attending.value, m)
        for pruned, part in (
            _write(writing, layer, columns, entries),
            _attend(attending, layer, columns, rows, entries),
        ):
            layers.append(pruned)
            parts.append(part)
    return PrunedTransformer(Transformer(tuple(layers), random.floor), random, target, tuple(parts))


def _value_entries(value: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, rows and entries of W_V, disjoint and as near to one as can be had (Lemma 9): values pass there."""
    pool = np.abs(value[3 * m : 5 * m, m : 3 * m])
    rows, columns = scipy.optimize.linear_sum_assignment(np.log(np.maximum(pool, 1e-12)), maximize=True)
    best = np.sort(np.argsort(-pool[rows, columns], kind="stable")[:m])
    rows, columns = rows[best] + 3 * m, columns[best] + m
    return columns, rows, value[rows, columns]


def _write(
    layer: TransformerLayer, given: TransformerLayer, columns: np.ndarray, entries: np.ndarray
) -> tuple[TransformerLayer, PrunedPart]:
    m = given.width
    identity = np.eye(m)
    written = np.vstack([identity, _centred(given.value) / entries[:, None]])
    return _linear(layer, written, np.concatenate([np.arange(m), columns]), "write", entries)


def _pass(layer: TransformerLayer, m: int) -> tuple[TransformerLayer, PrunedPart]:
    """A layer pruned to the identity; keys, queries and W_V's columns at zero coordinates keep their random entries."""
    pruned, part = _linear(layer, np.eye(m), np.arange(m), "pass", np.ones(m))
    value = layer.value.copy()
    value[:, :m] = 0
    return TransformerLayer(layer.key, layer.query, value, pruned.network, pruned.residual), part


def _linear(
    layer: TransformerLayer, matrix: np.ndarray, rows: np.ndarray, role: str, entries: np.ndarray
) -> tuple[TransformerLayer, PrunedPart]:
    """A layer without attention whose network is linear: x -> (x, -x), relu, .., matrix."""
    m = matrix.shape[1]
    both = np.vstack([np.eye(m), -np.eye(m)])
    depth = len(layer.network.weights) // 2
    exact = [both / layer.residual, *(np.eye(2 * m) for _ in range(depth - 2)), np.hstack([matrix, -matrix])]
    network, fit = _fitted(layer.network, exact, np.arange(m), rows)
    key, query, value = (np.zeros_like(one) for one in layer.matrices[:3])
    logits = np.zeros((m, m))
    return TransformerLayer(key, query, value, network, layer.residual), PrunedPart(role, fit, entries, logits)


def _attend(
    layer: TransformerLayer,
    given: TransformerLayer,
    columns: np.ndarray,
    rows: np.ndarray,
    entries: np.ndarray,
) -> tuple[TransformerLayer, PrunedPart]:
    m = given.width
    value = np.zeros_like(layer.value)
    value[rows, columns] = entries
    key, query, logits = _product(layer, given)
    # Token and normalised mixture are read apart and added.
    ratio = given.residual / layer.residual
    first, *others = given.network.weights
    exact = [np.hstack([ratio * first, first]), *others]
    network, fit = _fitted(layer.network, exact, np.concatenate([np.arange(m), rows]), np.arange(m))
    return TransformerLayer(key, query, value, network, layer.residual), PrunedPart("attend", fit, entries, logits)


def _product(layer: TransformerLayer, given: TransformerLayer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key and query matrices pruned to the given layer's product of the two (Lemma 7), and the product's error."""
    m = given.width
    wanted = given.key.T @ given.query
    kept_k, kept_q = np.zeros_like(layer.key), np.zeros_like(layer.query)
    owner, _ = pruning.dealt_out(np.abs(layer.query[:, None, :m]))
    for j in range(m):
        block = np.flatnonzero(owner == j)
        kept_q[block, j] = layer.query[block, j]
        for i in range(m):
            products = layer.key[block, i] * layer.query[block, j]
            subset = block[pruning.subset_sum(products, wanted[i, j])]
            kept_k[subset, i] = layer.key[subset, i]
    return kept_k, kept_q, (kept_k.T @ kept_q)[:m, :m] - wanted


def _fitted(
    network: ReluNetwork, exact: Sequence[np.ndarray], inputs: np.ndarray, outputs: np.ndarray
) -> tuple[ReluNetwork, Fit]:
    """Prune a random network of 2 k matrices to one of k matrices, between these inputs and outputs.

    Each matrix is held by two, as in `pruning.prune_linear`. Inputs of all but the first are not negative, so that
    units of one sign do.
    """
    drawn = network.weights
    if len(drawn) != 2 * len(exact):
        raise checks.reject("random", f"have networks of {2 * len(exact)} matrices", len(drawn))
    room = min(len(weight) for weight in drawn[1:-1:2])
    matrices = pruning.balanced_matrices(exact, _REACH, room)
    weights, errors = [], []
    for t, matrix in enumerate(matrices):
        last = t == len(matrices) - 1
        rows = outputs if last else np.arange(len(matrix))
        columns = inputs if t == 0 else np.arange(matrix.shape[1])
        U, V = drawn[2 * t], drawn[2 * t + 1]
        if len(matrix) > len(V) or matrix.shape[1] > U.shape[1]:
            raise checks.reject("random", f"have hidden layers of at least {max(matrix.shape)} units", len(V))
        kept_u, kept_v, error = pruning.prune_pair(U, V, matrix, rows, columns, (1, -1) if t == 0 else (1,))
        weights += [kept_u, kept_v]
        errors.append(error)
    return ReluNetwork(tuple(weights)), Fit(tuple(matrices), tuple(errors))


def indistinguishable_transformers(
    first: Transformer, second: Transformer, random: Transformer, layer: int
) -> tuple[PrunedTransformer, PrunedTransformer]:
    """Two prunings of one random Transformer to two given ones that agree on every matrix of a layer (Corollary 3).

    That layer and its neighbour are pruned to the identity, in one way for both.

    Parameters
    ----------
    first, second : Transformer
        Of one width, number of layers and floor.
    random : Transformer
        As `room_for` makes it for both, with two layers to spare.
    layer : int
        From 0.
    """
    for name, one in (("first", first), ("second", second), ("random", random)):
        checks.instance(name, one, Transformer)
    if (first.width, len(first.layers)) != (second.width, len(second.layers)):
        raise checks.reject("second", f"have width {first.width} and {len(first.layers)} layers", second.width)
    layer = checks.integer("layer", layer, minimum=0, maximum=2 * len(first.layers) + 1)
    if len(random.layers) != 2 * len(first.layers) + 2:
        raise checks.reject("random", f"have {2 * len(first.layers) + 2} layers", len(random.layers))
    place = layer // 2
    return prune_transformer(first, random, place=place), prune_transformer(second, random, place=place)
