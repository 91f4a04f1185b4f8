"""A flow's start and configuration in a file, in exact numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from dynamics.support import checks
from yzflow_enclose.stepping import precision

_LIMBS, _START_BITS = 8, 512


@dataclass(frozen=True)
class Start:
    """A point, or balls, in floats: the exact sums of rows of floats, and radii.

    Parameters
    ----------
    limbs : (entries, n) float
    radius : (entries,) float
    """

    limbs: np.ndarray
    radius: np.ndarray

    @classmethod
    def of(cls, balls: Sequence[arb]) -> Start:
        limbs, radius = np.zeros((len(balls), _LIMBS)), np.zeros(len(balls))
        with precision(_START_BITS):
            for place, value in enumerate(balls):
                rest = value
                for k in range(_LIMBS):
                    limbs[place, k] = float(rest.mid())
                    rest = rest - arb(limbs[place, k])
                    if rest.mid().is_zero():
                        break
                bound = rest.abs_upper()
                radius[place] = 0.0 if bound.is_zero() else math.nextafter(float(bound), math.inf)
        return cls(limbs[:, : max(1, int(np.count_nonzero(np.any(limbs != 0, axis=0))))], radius)

    def balls(self) -> list[arb]:
        with precision(_START_BITS):
            return [
                sum((arb(x) for x in row[1:] if x), arb(row[0])) + (arb(0, r) if r else arb(0))
                for row, r in zip(self.limbs.tolist(), self.radius.tolist(), strict=True)
            ]

    def same(self, other: Start) -> bool:
        return np.array_equal(self.limbs, other.limbs) and np.array_equal(self.radius, other.radius)


def plain(value: Any) -> Any:
    """Data for JSON without loss: arrays as lists, numpy's numbers as Python's."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = checks.plain_types(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise checks.reject("config", "hold plain data: numbers, text, lists and mappings", checks.brief(value))
