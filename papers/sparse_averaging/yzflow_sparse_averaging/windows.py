"""Match3 within a window of positions, by one layer of one head with m = 4K + 2 for every N and M.

Assisted Match3 of Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896. The paper's sparse averaging needs random
keys of O(q log N) dimensions, for arbitrary sets. Windows do not need them: a window of q consecutive positions has
each residue mod q once, so that a position's block and residue are a key that no window confuses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import MultiHeadLayer, Transformer
from yzflow_sparse_averaging.matching import MatchTransformer, angle_gap
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["match3_local"]

# A gathered number may be off by 1/4 from rounding, and by 1/4 from other tokens' weights.
_ROUNDING = 64 * 2.0**-53


def layers(reach: Any) -> tuple[Layers]:
    """The layer for windows of q = 2K + 1 positions: two columns of keys and one of values for each residue mod q."""
    q = 2 * reach + 1
    return (Layers("window", 1, 1, 2 * q, q),)


def layout(reach: Any) -> Layout:
    """A token: x, position, and the q numbers of its window, to be filled."""
    return Layout((Part("x", 1), Part("position", 1), Part("window", 2 * reach + 1)))


def match3_local(*, n_tokens: int, modulus: int, reach: int) -> MatchTransformer:
    r"""Local Match3, 1{exists j1, j2 within ``reach`` of i: x_i + x_j1 + x_j2 = 0 mod M}: D = 1, H = 1, m = 4K + 2.

    Shifted by K, position p is in block b = p // q at the place r = p mod q, q = 2K + 1. A window of q consecutive
    positions has each place once, in a block beta(r). With keys e_r (cos, sin)(2 pi b/B), B blocks, and queries
    sum_r e_r (cos, sin)(2 pi beta(r)/B) the score is cos(2 pi (b - beta(r))/B): one on the window, and at most
    cos(2 pi/B) off it. Values (x + 1) e_r gather all tokens of the window. With c = ln(4 N M)/(1 - cos(2 pi/B)) each
    number is within 1/4 of an integer, despite the other tokens' weights, and the output map rounds and decides. The
    position says how much of the window lies beyond the ends.

    Parameters
    ----------
    n_tokens, modulus : int
        N and M.
    reach : int
        K.

    Raises
    ------
    ValueError
        If an argument is out of range, or float64 cannot tell the scores of so many blocks apart at this M.

    Examples
    --------
    >>> match3_local(n_tokens=6, modulus=11, reach=1)([1, 2, 8, 5, 4, 9])
    array([False,  True, False, False,  True,  True])
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    modulus = checks.integer("modulus", modulus, minimum=2)
    reach = checks.integer("reach", reach, minimum=0)
    q = 2 * reach + 1
    blocks = max(2, -(-(n_tokens + 2 * reach) // q))
    scale = math.log(4 * n_tokens * modulus) / angle_gap(blocks)
    if modulus * scale * _ROUNDING > 0.25:
        raise checks.reject("modulus", f"leave scores of {blocks} blocks that float64 tells apart", modulus)
    token, (layer,) = layout(reach), layers(reach)

    def tokens(x):
        x = np.asarray(x, dtype=np.float64)
        out = token.placed("x", x[..., None])
        token.read(out, "position")[...] = np.arange(n_tokens, dtype=float)[:, None]
        return out

    def shifted(X):
        return token.read(X, "position").astype(np.int64) + reach

    def window(X):
        """Position, shifted, of the window's member at each place: the first one is i itself."""
        first = shifted(X) - reach
        return first + (np.arange(q) - first) % q

    def circle(block):
        angle = 2 * np.pi / blocks * block
        return np.concatenate([np.cos(angle), np.sin(angle)], -1)

    def at_place(X):
        return (shifted(X) % q == np.arange(q)).astype(float)

    def decide(X):
        members = window(X)
        inside = (members >= reach) & (members < n_tokens + reach)
        count = inside.sum(axis=-1, keepdims=True)
        x = np.rint(count * token.read(X, "window")).astype(np.int64) - 1
        sums = x[..., :, None] + x[..., None, :] + token.read(X, "x").astype(np.int64)[..., None]
        both = inside[..., :, None] & inside[..., None, :]
        return ((sums % modulus == 0) & both).any(axis=(-2, -1))[..., None].astype(float)

    head = Head.into(
        "window",
        token,
        layer,
        query=lambda X: circle(window(X) // q),
        key=lambda X: np.tile(at_place(X), 2) * np.repeat(circle(shifted(X) // q), q, axis=-1),
        value=lambda X: at_place(X) * (token.read(X, "x") + 1),
        scale=scale,
    )
    return MatchTransformer(Transformer([MultiHeadLayer([head])], [None, decide]), n_tokens, modulus, tokens, token)
