"""Parts that the constructions for Match3 are built of, and that tell their sizes: columns of tokens, layers, heads.

Sizes may be sympy expressions, so that a proof adds up the same parts for all N that are built for one N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, FixedPoint, Precision

__all__ = ["Head", "Layers", "Layout", "Part", "total"]


@dataclass(frozen=True)
class Layers:
    """Layers of one kind.

    Attributes
    ----------
    name : str
    count : int or sympy.Expr
        How many of them there are.
    heads : int or sympy.Expr
        Of the layer with most.
    key : int or sympy.Expr
        Width of queries and keys.
    value : int or sympy.Expr
        Columns of values.
    """

    name: str
    count: Any
    heads: Any
    key: Any
    value: Any


def total(layers: Iterable[Layers], *, largest: Callable = max) -> tuple[Any, Any, Any]:
    """D, H and m of all layers; ``largest`` is `sympy.Max` for expressions."""
    layers = tuple(layers)
    widths = [width for one in layers for width in (one.key, one.value)]
    return sum(one.count for one in layers), largest(*(one.heads for one in layers)), largest(*widths)


@dataclass(frozen=True)
class Part:
    """Columns of a token that hold numbers of one kind; ``numbers`` is None where they are not rounded."""

    name: str
    columns: Any
    numbers: FixedPoint | None = None


@dataclass(frozen=True)
class Layout:
    """The parts of a token, side by side."""

    parts: tuple[Part, ...]

    @property
    def width(self) -> Any:
        """Numbers of a token."""
        return sum(part.columns for part in self.parts)

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([0, *(part.columns for part in self.parts)]).tolist()
        return {part.name: slice(*ends[k : k + 2]) for k, part in enumerate(self.parts)}

    def place(self, name: str) -> slice:
        """Columns of a part."""
        return self._places[name]

    def read(self, X: np.ndarray, name: str) -> np.ndarray:
        """A part of tokens, a view."""
        return X[..., self.place(name)]

    def placed(self, name: str, columns: np.ndarray) -> np.ndarray:
        """``columns`` at the beginning of a part, and zeros elsewhere."""
        out = np.zeros((*columns.shape[:-1], self.width))
        self.read(out, name)[..., : columns.shape[-1]] = columns
        return out

    def held(self, phi: Callable | None) -> Callable:
        """The map ``phi`` with its tokens in the numbers of their parts: what does not fit is lost."""

        def hold(X: np.ndarray) -> np.ndarray:
            out = np.array(X if phi is None else phi(X), dtype=np.float64)
            for part in self.parts:
                if part.numbers is not None:
                    self.read(out, part.name)[...] = part.numbers.round(self.read(out, part.name))
            return out

        return hold


class Head(AttentionUnit):
    """A unit whose values are columns that are added to one part of a token, with the widths of its `Layers`."""

    value_dim: int
    place: slice  # columns of a token that its output is added to

    @classmethod
    def into(
        cls,
        part: str,
        layout: Layout,
        layers: Layers,
        *,
        query: Callable,
        key: Callable,
        value: Callable,
        scale: float = 1.0,
        precision: Precision | None = None,
        offset: int = 0,
    ) -> Head:
        """A head that averages ``value``, tokens to ``layers.value`` columns, into a part, from column ``offset``."""

        def placed(X: np.ndarray) -> np.ndarray:
            columns = value(X)
            if columns.shape[-1] != layers.value:
                raise checks.reject("value", f"give {layers.value} columns, as its layers have", columns.shape[-1])
            out = np.zeros((*columns.shape[:-1], layout.width))
            out[..., place] = columns
            return out

        start = layout.place(part).start + offset
        place = slice(start, start + layers.value)
        unit = cls.__new__(cls)
        unit._setup((query, key, placed), layers.key, scale, precision)
        vars(unit).update(value_dim=layers.value, place=place)
        return unit
