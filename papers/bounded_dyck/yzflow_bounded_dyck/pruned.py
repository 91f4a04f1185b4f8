"""One layer of a random Transformer after pruning, and the matrices that its network should hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Fit(NamedTuple):
    """Matrices that the networks of a pruned layer should hold, and what they hold in excess: W_t and E_t."""

    matrices: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]  # the first acts on (relu(z), relu(-z)), the others on relu(z)

    def rows(self, chosen: slice, scale: ArrayLike = 1.0) -> Fit:
        """The network with these outputs only, multiplied by ``scale``."""
        scale = np.asarray(scale)[..., None]
        last, error = self.matrices[-1][chosen] * scale, self.errors[-1][chosen] * scale
        return Fit((*self.matrices[:-1], last), (*self.errors[:-1], error))


@dataclass(frozen=True, eq=False)
class PrunedPart:
    """One layer of the random Transformer after pruning.

    Attributes
    ----------
    role : "write", "attend" or "pass"
        Writes the values of the next given layer; attends and computes it; or is the identity.
    fit : Fit
        Of its network.
    entries : (width,) array
        Where it writes, or attends: the entries of W_V that the values pass through.
    logits : (width, width) array
        Where it attends: the error of W_K^T W_Q.
    """

    role: str
    fit: Fit
    entries: np.ndarray
    logits: np.ndarray
