"""Sizes of a transformer that runs: depth, heads, dimension and bits, counted on the numbers that occur.

The constructions for Match3 compute with fixed-point numbers: scaled queries, keys, values and outputs of units. Scores
are integers, and exponentials and their sums are taken in float64, as `attention_unit.Precision` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import FixedPoint, Precision
from yzflow_sparse_averaging.matching import MatchTransformer

__all__ = ["Size", "counted_size", "number_bits"]


@dataclass(frozen=True)
class Size:
    """Size of one transformer on one or more inputs.

    Attributes
    ----------
    n_tokens : int
        Of the input; ``extra_tokens`` (blank ones) come on top.
    extra_tokens : int
    depth : int
        D.
    heads : int
        H, of the layer with most.
    dimension : int
        m: the largest width of queries and keys, or number of columns of values that are ever used.
    width : int
        Numbers of a token.
    bits : int
        p: the longest number, as a fixed-point number with sign, of all tokens between layers, scaled queries, keys,
        values and outputs of units.
    """

    n_tokens: int
    extra_tokens: int
    depth: int
    heads: int
    dimension: int
    width: int
    bits: int

    @property
    def product(self) -> int:
        """m H D."""
        return self.dimension * self.heads * self.depth


def counted_size(model: MatchTransformer, x: ArrayLike) -> Size:
    """Run ``model`` on inputs ``x`` (.., N) and count.

    Columns of values that are zero in all tokens of all inputs are not counted, and numbers are as long as they have to
    be on these inputs: of a construction this is what it uses, not what it was promised.
    """
    checks.instance("model", model, MatchTransformer)
    model(x)  # checks it
    X = model.tokens(checks.finite_array("x", x))
    n_tokens, extra = model.n_tokens, X.shape[-2] - model.n_tokens
    transformer = model.transformer
    dimension, bits, width = 1, 1, X.shape[-1]
    for number, phi in enumerate(transformer.maps):
        if number > 0:
            for head in transformer.layers[number - 1].heads:
                queries, keys, values = head.scale * head.queries(X), head.keys(X), head.values(X)
                precision = head.precision or Precision()
                output = head(X)
                used = int((values != 0).reshape(-1, values.shape[-1]).any(axis=0).sum())
                dimension = max(dimension, head.embedding_dim, used)
                named = {"query": queries, "key": keys, "value": values, "output": output}
                bits = max(bits, *(number_bits(precision.apply(name, array)) for name, array in named.items()))
            X = transformer.layers[number - 1](X)
        if phi is not None:
            X = phi(X)
        bits = max(bits, number_bits(X))
    heads = max(len(layer.heads) for layer in transformer.layers)
    return Size(n_tokens, extra, transformer.depth, heads, dimension, width, bits)


def below_bound(size: Callable[[Any], Any], *, constant: float = 1.0) -> float:
    """N from which on a size m H D, at N up to 2^60, is below ``constant`` N / log2 N, to 1e-9.

    Parameters
    ----------
    size : callable
        N to m H D, as the claims of the proofs.
    constant : float
        In front of the bound.
    """
    checks.function("size", size)
    constant = checks.positive("constant", constant)

    def above(log: float) -> bool:
        return float(size(2.0**log)) >= constant * 2.0**log / log

    last = next((log for log in np.arange(60.0, 1.0, -0.5) if above(log)), None)
    if last is None or last == 60:
        raise checks.reject("size", "cross the bound at an N from 4 to 2^59", "none")
    low, high = last, last + 0.5
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return 2.0**high


def number_bits(values: ArrayLike) -> int:
    """Bits p of the shortest fixed-point numbers, with sign, that hold all ``values`` exactly.

    Examples
    --------
    >>> number_bits([3.0, -0.25])
    5
    """
    values = np.abs(checks.finite_array("values", values))
    values = values[values > 0]
    if not values.size:
        return 1
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    trailing = np.log2(whole & -whole).astype(np.int64)  # powers of two, whose logarithm is exact
    fraction = int((53 - exponent - trailing).max())
    largest = math.ldexp(float(values.max()), fraction)
    return int(largest).bit_length() + 1


def whole_numbers(bound: int) -> FixedPoint:
    """The shortest integers that hold [-bound, bound]."""
    return FixedPoint(int(bound).bit_length() + 1, 0)


def averages(bound: float, resolution: float, *, spare_bits: int = 0) -> FixedPoint:
    """The shortest numbers that hold averages up to ``bound`` with a step of at most ``resolution``.

    ``spare_bits`` more bits after the binary point than that; fewer if it is negative.
    """
    fraction = max(0, math.ceil(-math.log2(resolution))) + spare_bits
    if math.ldexp(1.0, -fraction) > resolution and spare_bits == 0:  # log2 rounded the wrong way
        fraction += 1
    return FixedPoint(max(1, math.ceil(math.ldexp(bound, fraction)).bit_length() + 1), fraction)


def rounded(query: int, key: int, value: int, output: FixedPoint) -> Precision:
    """Integers for scaled queries, keys and values up to the bounds given, and ``output`` for what a unit returns."""
    return Precision(whole_numbers(query), whole_numbers(key), whole_numbers(value), output)


def whole_scale(odds: float) -> int:
    """The smallest integer lambda with exp(-lambda) <= 1/odds: scores that are integers."""
    return max(1, math.ceil(math.log(odds)))
