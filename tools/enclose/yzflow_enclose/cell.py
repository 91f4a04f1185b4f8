"""A cell of settings, and its steps: polynomials in time and in the cell's two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_poly

from dynamics.support import checks
from yzflow_enclose.claims import CELL
from yzflow_enclose.fields import Symmetric
from yzflow_enclose.jets import Basis
from yzflow_enclose.stepping import precision

# Bits of balls, and degree in time.
BITS, ORDER = 60, 8

Polynomials = list[list[arb_poly]]


@dataclass(frozen=True)
class Cell:
    """A box of settings: K classes that are copies of each other, one common token, distinct tokens a class.

    Parameters
    ----------
    n_classes, vocab_size : int
    distinct : tuple of float
        Unnormalised weights of the distinct tokens.
    eta_y : float
    eta_z : (float, float)
        Range of eta_Z, both ends included.
    common : (float, float)
        Range of the common token's unnormalised weight.
    decoder : "full", "modified" or "theory"

    Raises
    ------
    ValueError
        If a number is not positive or a range does not increase.
    """

    n_classes: int
    vocab_size: int
    distinct: tuple[float, ...]
    eta_y: float
    eta_z: tuple[float, float]
    common: tuple[float, float]
    decoder: str = "full"

    def __post_init__(self) -> None:
        checks.integer("n_classes", self.n_classes, minimum=2)
        checks.integer("vocab_size", self.vocab_size, minimum=self.n_classes)
        checks.positive("eta_y", self.eta_y)
        for name in ("eta_z", "common"):
            first, last = getattr(self, name)
            if not checks.positive(name, first) < checks.positive(name, last):
                raise checks.reject(name, "increase", (first, last))
        if not self.distinct:
            raise checks.reject("distinct", "hold at least one weight", self.distinct)
        for weight in self.distinct:
            checks.positive("distinct", weight)

    def field(self, eta_z: Any, common: Any) -> Symmetric:
        """The vector field, with balls or jets for the two parameters; its norm is taken at the middle of the cell."""
        settings = {
            "kind": "symmetric",
            "decoder": self.decoder,
            "eta_y": self.eta_y,
            "eta_z": sum(self.eta_z) / 2,
            "vocab_size": self.vocab_size,
            "n_classes": self.n_classes,
            "class_weight": 1.0,
            "own_queries": False,
            "common": [[1.0, 1]],
            "distinct": [[weight, 1] for weight in self.distinct],
        }
        found = Symmetric(settings)
        found.class_weight = arb(1) / self.n_classes
        found.eta_z, found.counts[0] = eta_z, common
        return found

    def along(self, own: Basis, rest: Any = None) -> Symmetric:
        """The field on jets in s."""
        jets = []
        for which, (first, last) in enumerate((self.eta_z, self.common)):
            middle, reach = (arb(first) + arb(last)) / 2, (arb(last) - arb(first)) / 2
            jets.append(own.parameter(which, middle, reach, rest))
        return self.field(*jets)

    def claim(self) -> dict[str, Any]:
        """The cell in a file's claim."""
        return {
            "kind": CELL,
            "decoder": self.decoder,
            "start": "zero",
            "n_classes": int(self.n_classes),
            "vocab_size": int(self.vocab_size),
            "distinct": list(map(float, self.distinct)),
            "eta_y": float(self.eta_y),
            "eta_z": list(map(float, self.eta_z)),
            "common": list(map(float, self.common)),
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Cell:
        """The cell of a claim."""
        given = {name: found[name] for name in ("n_classes", "vocab_size", "eta_y", "decoder")}
        given |= {name: tuple(found[name]) for name in ("distinct", "eta_z", "common")}
        return cls(**given)

    def everywhere(self) -> Symmetric:
        """The field with a ball for all of the cell."""
        return self.field(*(arb(first).union(arb(last)) for first, last in (self.eta_z, self.common)))


@dataclass(frozen=True)
class CellStep:
    """A span of time: a polynomial for each variable and monomial in s, and bounds of the distance of the solution.

    Parameters
    ----------
    start, end : float
    polynomials : (variables, monomials) list of arb_poly
        In powers of t - start, exact.
    radius, speed : float
        Bounds of ||x - p|| and of ||x' - p'|| over the span and the cell, in the norm of the weights.
    """

    start: float
    end: float
    polynomials: Polynomials
    radius: float
    speed: float

    @property
    def length(self) -> arb:
        return arb(self.end) - arb(self.start)

    @property
    def limbs(self) -> np.ndarray:
        """(variables, monomials, degree + 1, 2) floats; a coefficient is the sum of a pair."""
        return np.array([[[_pair(p[k]) for k in range(ORDER + 1)] for p in row] for row in self.polynomials])

    @classmethod
    def of(cls, start: float, end: float, limbs: np.ndarray, radius: float, speed: float) -> CellStep:
        """The step with these limbs."""
        with precision(2 * BITS):
            rows = [[arb_poly([arb(a) + arb(b) for a, b in p]) for p in row] for row in limbs.tolist()]
        return cls(start, end, rows, radius, speed)


def _pair(value: arb) -> tuple[float, float]:
    """Two floats with a given sum, a number of at most 106 bits."""
    first = float(value)
    rest = (value - arb(first)).mid()
    if rest != arb(float(rest)) or arb(first) + rest != value:
        raise ValueError(f"a coefficient must be the sum of two floats, but is {value}")
    return first, float(rest)
