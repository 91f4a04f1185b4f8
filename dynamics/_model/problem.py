"""Bags and a kind of layer as arguments of the kernels, and the weights as the kernels see them."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import DTypeLike

from dynamics._model import sampling
from dynamics._model.batch import Batch
from dynamics._model.gradient import kernel_of
from dynamics._model.objective import PLAIN, Objective, add_terms
from dynamics._model.weights import LayerLike, Rule, Weights
from dynamics.bags import Bags
from dynamics.support.checks import read_only, read_only_views


def embed(
    vectors: np.ndarray, keys: np.ndarray, queries: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Z and V of an `Embedding`; V has no entries if ``values`` has none."""
    Z = (vectors @ queries.T) @ (vectors @ keys.T).T
    return Z, vectors @ values.T if values.size else values


def embed_back(
    vectors: np.ndarray, keys: np.ndarray, queries: np.ndarray, dZ: np.ndarray, dV: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients with respect to W_K, W_Q and W_V from those with respect to Z and V."""
    d_keys = (dZ.T @ (vectors @ queries.T)).T @ vectors
    d_queries = (dZ @ (vectors @ keys.T)).T @ vectors
    return d_keys, d_queries, dV.T @ vectors if dV.size else dV


class View:
    """A kind of layer and an objective as the kernels see them: the rule, the weights, and the way back for gradients.

    Applies, in this order: embedding to Z and V; Z / temperature; Y -> P Y, without the mean over tokens, if LN
    subtracts it.

    Attributes
    ----------
    plain : bool
        Whether the kernels see the weights as they are.
    rule : Rule
    """

    def __init__(self, layer: LayerLike, objective: Objective, dtype: np.dtype) -> None:
        self.vectors: np.ndarray | None = None
        if layer.embedding is not None:
            self.vectors = read_only(layer.embedding.vectors.astype(dtype, copy=False))
        self.temperature, self.means = layer.temperature, layer.means
        self.direct = self.temperature == 1 and not self.means
        self.plain = self.vectors is None and self.direct
        kind = (layer.multiplicity, layer.center, dtype.type(layer.floor))
        loss = (objective.squared, objective.contrast is not None)
        self.rule = Rule(*kind, *loss, layer.residual, self.means, layer.normalisation is not None)

    def forward(self, weights: Weights) -> Weights:
        """The weights as the kernels see them, read-only."""
        if self.vectors is not None:
            Z, V = embed(self.vectors, weights.keys, weights.queries, weights.values)
            weights = weights._replace(Z=Z, V=V)
        if not self.direct:
            weights = weights._replace(Z=weights.Z / self.temperature)
        if self.means:
            weights = weights._replace(Y=weights.Y - weights.Y.mean(axis=0))
        return Weights(*read_only_views(weights))

    def beneath(self, slopes: Weights) -> Weights:
        """Arrays for gradients of the kernels, see `backward`: ``slopes``, with new arrays for transformed weights."""
        if self.direct:
            return slopes
        Y = np.zeros_like(slopes.Y) if self.means else slopes.Y
        return slopes._replace(Z=np.zeros_like(slopes.Z), Y=Y)

    def backward(self, weights: Weights, seen: Weights, slopes: Weights) -> None:
        """Complete ``slopes`` from the gradients ``seen`` of the kernels; Z and V of ``slopes`` always have entries."""
        if not self.direct:
            slopes.Z[...] += seen.Z / self.temperature
        if self.means:
            slopes.Y[...] += seen.Y - seen.Y.mean(axis=0)
        if self.vectors is not None:
            inner = embed_back(self.vectors, weights.keys, weights.queries, slopes.Z, slopes.V)
            for slope, own in zip(slopes[4:], inner, strict=True):
                slope += own


class Problem:
    """Bags and a kind of layer as arguments of the kernels, for callers that step many times.

    Parameters
    ----------
    bags : Bags
    layer : Layer
        Only its kind is used, not its weights.
    objective : Objective, optional
        Each bag comes with each insertion, weighted by the product of their weights.
    dtype : numpy dtype, optional
        Precision of the weights. Default: that of ``layer``.
    """

    def __init__(
        self, bags: Bags, layer: LayerLike, objective: Objective = PLAIN, dtype: DTypeLike | None = None
    ) -> None:
        self._dtype = layer.Z.dtype if dtype is None else np.dtype(dtype)
        self.batch = Batch.of(bags, self._dtype, objective.label_smoothing, layer.multiplicity)
        if objective.contrast is not None:
            self.batch = sampling.contrasted(self.batch, objective.contrast, objective.contrast_weight)
        self.view, self.objective = View(layer, objective, self._dtype), objective
        self.rule = self.view.rule
        like = layer.weights._replace(Z=layer.Z, V=np.empty((0, 0)) if layer.V is None else layer.V)
        self._shapes = [array.shape for array in like]
        self.kernel = kernel_of(like, self.rule)
        self._parts = self.batch.parts(layer.Y.shape[1])
        self._none = np.empty((0, 0), self._dtype)
        self._no_slopes = Weights(*(self._none,) * len(like))

    def zeros(self) -> Weights:
        """Arrays for the gradient: those of `Layer.weights`, and Z and V in any case."""
        return Weights(*(np.zeros(shape, self._dtype) for shape in self._shapes))

    def weighed(self, weight: np.ndarray, count: np.ndarray | None = None) -> Problem:
        """The problem with other weights of the bags, of any sign, and optionally with other counts.

        Loss and gradient are linear in these weights. Each bag must be a group of its own.
        """
        copied = copy.copy(self)
        new = {"weight": weight, "count": self.batch.count if count is None else count}
        copied.batch = self.batch._replace(**{name: read_only(a.astype(self._dtype)) for name, a in new.items()})
        nonzero = np.flatnonzero(weight)
        whole = copied.batch if nonzero.size != 1 else copied.batch.alone(int(nonzero[0]))
        copied._parts = whole.parts(self.rule.multiplicity.size)
        return copied

    @property
    def work(self) -> int:
        """Multiplications of an evaluation, up to a factor."""
        return self.batch.count.size * self.rule.multiplicity.size

    def alone(self, weights: Weights, slopes: Weights) -> tuple | None:
        """The arguments of ``kernel``; None if `loss_and_gradient` does more than one call of it."""
        if len(self._parts) > 1 or not self.view.plain or self.objective.terms:
            return None
        batch = self._parts[0][0]
        return batch, batch.query.size, weights, self.rule, slopes, self._none, True

    def loss(self, weights: Weights) -> float:
        """The loss alone; ``weights`` must be read-only."""
        seen = weights if self.view.plain else self.view.forward(weights)
        arguments = (seen, self.rule, self._no_slopes, self._none, False)
        return sum(self.kernel(part, part.query.size, *arguments) for part, _ in self._parts)

    def loss_and_gradient(self, weights: Weights, slopes: Weights, residual: np.ndarray | None = None) -> float:
        """The loss, with the gradient of J added into ``slopes``; ``weights`` must be read-only.

        For ``residual`` see `kernel_of`.
        """
        seen, within = weights, slopes
        if not self.view.plain:
            seen, within = self.view.forward(weights), self.view.beneath(slopes)
        arguments, loss = (seen, self.rule, within), 0.0
        for part, bags in self._parts:
            kept = self._none if residual is None else residual[bags]
            loss += self.kernel(part, part.query.size, *arguments, kept, True)
        if not self.view.plain:
            self.view.backward(weights, within, slopes)
        add_terms(self.objective, weights, slopes)
        return loss
