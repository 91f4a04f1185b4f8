"""Weights, and the kind of layer and loss that they belong to, in the form that the kernels take them.

Numba's cache names the classes of its arguments: where `Weights`, `Rule` or `Batch` is given other fields, the files of
kernels that take it have to change as well. Of one that is renamed or moved, what was kept is forgotten by itself.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np


class Weights(NamedTuple):
    """The arrays that training moves, or their gradients, velocities or moments; what does not exist has no entries.

    Z and V are among what does not exist if they follow from an embedding. The kernels use the first four alone, and
    are given the Z and V that follow from it.

    Attributes
    ----------
    Z, Y, V, hidden : arrays
        Those of `Layer`.
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


# The argument that holds the learning rate of each.
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
        Whether the query's vector joins the feature; its row of Y is that of the query among the last ones.
    means : bool
        Whether LN of what has no V subtracts the mean first, where Y has none in its columns.
    normalised : bool
        Whether there is LN at all, with V as well.
    """

    multiplicity: np.ndarray
    center: bool
    floor: np.floating
    squared: bool
    contrasted: bool
    residual: bool
    means: bool
    normalised: bool


class Kind(Protocol):
    """A layer, of which files that it imports need the kind alone: the attributes of `dynamics.layer.Layer`."""

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
