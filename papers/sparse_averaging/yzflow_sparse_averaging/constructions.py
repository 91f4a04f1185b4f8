"""Sizes that the constructions for Match3 promise.

Task and theorems: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

import math

from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.proofs import groups, sorted_groups, transform
from yzflow_sparse_averaging.proofs import strict as linear

TRIPLES = ("groups", "sorted", "transform")


def promised_product(name: str, n_tokens: float, exponent: float, *, strict: bool = False) -> float:
    """m H D that statements promise for Match3: "groups", "sorted" with M = N^exponent, "transform" with M = N.

    ``strict``: with m no less than the numbers of a token.
    """
    if name == "groups":
        return float((groups.strict_size if strict else groups.size)(n_tokens))
    if name == "transform":
        widths = [transform.dimension(n_tokens), *([transform.token_width()] if strict else [])]
        return float(transform.heads() * transform.depth(n_tokens) * max(map(float, widths)))
    # Not `digits`: the logarithm of N^exponent is not rounded here.
    digits = math.ceil(2 * (exponent + 1) - 1e-9)
    code = (exponent + 1) * math.log2(n_tokens)
    widths = [sorted_groups.dimension(n_tokens, 2)[0], code, *([sorted_groups.token_width(n_tokens)] if strict else [])]
    return float(sorted_groups.heads() * sorted_groups.depth(digits) * max(map(float, widths)))


def linear_product(name: str, n_tokens: float, exponent: float) -> float:
    """As `promised_product`, with d = m and queries, keys and values that are linear in a token."""
    if name == "groups":
        return float(linear.groups_size(n_tokens))
    if name == "transform":
        return float(linear.transform_size(n_tokens))
    digits = math.ceil(2 * (exponent + 1) - 1e-9)
    by_groups = linear.sorted_width(n_tokens, 2)[0]
    # Not the second width: the logarithm of N^exponent is not rounded here.
    by_codes = 8 * math.sqrt(n_tokens) + 28 + 6 * ((exponent + 1) * math.log2(n_tokens) + 1)
    return float(sorted_groups.heads() * sorted_groups.depth(digits) * max(float(by_groups), by_codes))


def one_layer_bits(n_tokens: int, modulus: int, dimension: int) -> tuple[float, float, float]:
    """m H p of one layer without positions, H = 1: the lower bound, the built layer's, and the promised value."""
    layer = averaging.match3_power_sums(n_tokens=n_tokens, modulus=modulus, dimension=dimension)
    promised = dimension * float(linear.bits(n_tokens, layer.prime, dimension))
    return float(linear.least_product(n_tokens)), float(dimension * layer.bits), promised
