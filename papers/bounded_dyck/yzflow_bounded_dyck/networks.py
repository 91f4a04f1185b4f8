"""Small ReLU networks with explicit weights, for constructions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """``x -> W_L relu(.. relu(W_1 x + b_1) ..) + b_L``.

    Attributes
    ----------
    weights : tuple of (outputs, inputs) array
        One matrix per layer.
    biases : tuple of (outputs,) array, optional
        One vector per layer. Default: none.
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...] = None  # type: ignore[assignment]  # zeros, put in when it is built

    def __post_init__(self) -> None:
        weights = tuple(
            checks.finite_array("weights", weight, ndim=2)
            for weight in checks.listed("weights", self.weights, "be a sequence of matrices")
        )
        if not weights:
            raise checks.reject("weights", "hold at least one matrix", "none")
        given = [np.zeros(len(weight)) for weight in weights] if self.biases is None else self.biases
        biases = tuple(
            checks.finite_array("biases", bias, ndim=1)
            for bias in checks.listed("biases", given, "be a sequence of vectors")
        )
        for layer, (weight, following) in enumerate(pairwise(weights)):
            if following.shape[1] != weight.shape[0]:
                shapes = f"shapes {weight.shape} and {following.shape} at layers {layer} and {layer + 1}"
                raise checks.reject("weights", "have as many inputs as the layer before has outputs", shapes)
        if [bias.size for bias in biases] != [len(weight) for weight in weights]:
            sizes = [bias.size for bias in biases]
            raise checks.reject("biases", f"have the sizes {[len(weight) for weight in weights]}", sizes)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)

    def __call__(self, inputs: ArrayLike) -> np.ndarray:
        """Outputs for one input or for rows of inputs, in the same form."""
        hidden, width = checks.finite_array("inputs", inputs), self.weights[0].shape[1]
        if hidden.ndim == 0 or hidden.shape[-1] != width:
            raise checks.reject("inputs", f"have {width} numbers an input", f"shape {hidden.shape}")
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = hidden @ weight.T + bias
            if layer < last:
                hidden = np.maximum(hidden, 0)
        return hidden
