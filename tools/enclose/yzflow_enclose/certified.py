"""Base of enclosures of flows and of cells as certificates: a file is a claim, and answers when it is verified."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from flint import arb

from dynamics.support import origins, provenance
from yzflow_enclose.stepping import above


def environment() -> dict[str, str]:
    """Causes of other bits in an enclosure: as of other results, and the code of this distribution."""
    return {**provenance.environment(), "code": origins.outside([__name__])}


class Certified(ABC):
    """An enclosure that was made here, or read from a file and not yet believed.

    Attributes
    ----------
    fault : str
        Why the last `verify` said False.
    """

    fault: str = ""
    _trusted: bool = True
    _claimed: Mapping[str, Any] | None = None

    @property
    @abstractmethod
    def claim(self) -> dict[str, Any]:
        """The claim of its certificate, in plain content."""

    @abstractmethod
    def verify(self) -> bool:
        """Whether every bound, computed again, is within the claimed ones, and every verdict is so."""

    @property
    def claimed(self) -> Mapping[str, Any]:
        """The claim of the file that it was read from, verified or not; of one that was made here, its `claim`."""
        return self.claim if self._claimed is None else self._claimed

    def _believe(self) -> None:
        """Every bound of a file is computed again before it answers."""
        if not self._trusted and not self.verify():
            raise ValueError(f"the enclosure proves nothing: {self.fault}")

    def _judged(self, fault: str) -> bool:
        """Note the fault, and whether a file is believed from now on; True without a fault, as `verify` answers."""
        self.fault = fault
        self._trusted = self._claimed is None or fault == ""
        return fault == ""


def error_bounds(radii: Iterable[float], weights: np.ndarray) -> list[float]:
    """Bounds of the distance of each variable to its polynomials, at every time, from the radii of the steps."""
    radius = arb(max(radii))
    return [above(radius / arb(weight)) for weight in weights.tolist()]
