"""Base of enclosures as certificates, of flows and of cells: a file is a claim, and answers after it is verified."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from flint import arb

from dynamics.support import origins, provenance
from yzflow_enclose.stepping import above


def environment() -> dict[str, str]:
    """Factors that may change the bits of an enclosure: those of other results, and the code of this distribution."""
    return {**provenance.environment(), "code": origins.outside([__name__])}


class Certified(ABC):
    """An enclosure that was made here, or read from a file and not yet verified.

    Attributes
    ----------
    fault : str
        Why the last `verify` returned False.
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
        """True if every bound, computed again, is within the claimed bound, and every verdict is right."""

    @property
    def claimed(self) -> Mapping[str, Any]:
        """The claim of its file, verified or not; if it was made here, its `claim`."""
        return self.claim if self._claimed is None else self._claimed

    def _believe(self) -> None:
        """Verify an enclosure from a file before it answers."""
        if not self._trusted and not self.verify():
            raise ValueError(f"the enclosure proves nothing: {self.fault}")

    def _judged(self, fault: str) -> bool:
        """Note the fault, and trust the enclosure if there is none; True without a fault, as for `verify`."""
        self.fault = fault
        self._trusted = self._claimed is None or fault == ""
        return fault == ""


def error_bounds(radii: Iterable[float], weights: np.ndarray) -> list[float]:
    """Bounds of the distance of each variable to its polynomials at every time, from the radii of the steps."""
    radius = arb(max(radii))
    return [above(radius / arb(weight)) for weight in weights.tolist()]
