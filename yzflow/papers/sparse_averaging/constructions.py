"""Sizes that the constructions for Match3 promise.

Task and theorems: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

import math

from theory.sparse_averaging.proofs import groups, sorted_groups, transform

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
