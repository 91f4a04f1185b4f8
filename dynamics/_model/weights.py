"""Weights, and their kind of layer and loss, as arguments of the kernels.

Numba's cache names the classes of arguments. If `Weights`, `Rule` or `Batch` gets other fields, the files of kernels
that take it have to change as well. Renaming or moving a class invalidates the cache by itself.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np


class Weights(NamedTuple):
    """The arrays that training moves, or their gradients, velocities or moments; a missing array has no entries.

    With an embedding, Z and V count as missing, since they follow from it. The kernels use only the first four arrays,
    and are given the Z and V of the embedding.

    Attributes
    ----------
    Z, Y, V, hidden : arrays
        The arrays of `Layer`.
    keys, queries, values : arrays
        W_K, W_Q and W_V of an `Embedding`.
    """

    Z: np.ndarray
    Y: np.ndarray
    V: np.ndarray
    hidden: np.ndarray
    keys: np.ndarray
    queries: np.ndarray
    values: np.ndarray


# The argument with the learning rate of each.
RATES = ("eta_z", "eta_y", "eta_v", "eta_hidden", "eta_z", "eta_z", "eta_v")


class Rule(NamedTuple):
    """The facts on a layer and an objective that a kernel needs beside weights and bags.

    Attributes
    ----------
    multiplicity : (columns of Y,) int
    center, floor : bool, float
        LN's mean subtraction and floor.
    squared : bool
        The squared loss in place of the cross-entropy.
    contrasted : bool
        Whether each group is a pair of bags, the first for the loss, both for the regulariser (22), with a weight each.
    residual : bool
        Whether the query's vector joins the feature; the last rows of Y are then those of the queries.
    means : bool
        Whether LN without V subtracts the mean first; then each column of Y has mean zero.
    normalised : bool
        Whether there is LN at all, with or without V.
    """

    multiplicity: np.ndarray
    center: bool
    floor: np.floating
    squared: bool
    contrasted: bool
    residual: bool
    means: bool
    normalised: bool


class LayerLike(Protocol):
    """The attributes of `dynamics.layer.Layer` that lower modules need, which cannot import it."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def Z(self) -> np.ndarray: ...

    @property
    def Y(self) -> np.ndarray: ...

    @property
    def V(self) -> np.ndarray | None: ...

    @property
    def weights(self) -> Weights: ...

    @property
    def multiplicity(self) -> np.ndarray: ...

    @property
    def center(self) -> bool: ...

    @property
    def floor(self) -> float: ...

    @property
    def residual(self) -> bool: ...

    @property
    def means(self) -> bool: ...

    @property
    def temperature(self) -> float: ...

    @property
    def normalisation(self) -> str | None: ...

    @property
    def embedding(self) -> Any: ...

    def check_fits(self, bags: Any, *, name: str = "bags") -> None: ...
