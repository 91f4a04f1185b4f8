"""Match3 with D = 2, H = 3 and m = N^(2/3), against the conjecture mHD = Omega(N / log N), for every M.

The conjecture is on the last slides of the talk on Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896. Our
counter-example is a transformer of two layers with mHD = 6 N^(2/3). It has positions in its tokens, maps of any size
between layers, and queries, keys, values and outputs of O(log N + log M) bits. The theorem on one layer stands.
`yzflow_sparse_averaging.sorted_groups` and `yzflow_sparse_averaging.transform` are smaller, with more layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging import sizes
from yzflow_sparse_averaging.attention_unit import FixedPoint, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["match3_groups"]


def layers(groups: Any) -> tuple[Layers, Layers]:
    """Both layers for G groups: one gathers the tokens of three groups, one averages bits over triples."""
    slots = groups**2
    return Layers("gather", 1, 3, groups, slots), Layers("spread", 1, 1, groups, slots)


def layout(groups: Any, residue: FixedPoint | None = None, position: FixedPoint | None = None) -> Layout:
    """A token for G groups: x, position, and three blocks of a group's slots, of bits or empty for a layer to fill."""
    bit = None if residue is None else sizes.whole_numbers(1)
    blocks = (Part(f"block {number}", groups**2, bit) for number in range(3))
    return Layout((Part("x", 1, residue), Part("position", 1, position), *blocks))


def match3_groups(*, root: int, modulus: int, spare_bits: int = 0) -> MatchTransformer:
    """Match3 on N = G^3 tokens by two layers of three heads with m = N^(2/3).

    Positions are split into G groups of S = G^2 slots. Token t stands for one of the G^3 triples of groups (A, B, C).
    In layer 1 each head gathers one group: token t averages ``x_j e_slot(j)`` over it. The map between the layers knows
    all 3S tokens and sets, for each slot of A, a bit: is there a match with one token of B and one of C? In layer 2
    token i averages these bits over the G^2 tokens whose first group is its own; the output map reads its own slot.

    A token is (x, position, 3 S numbers): those gathered by layer 1, then the bits, and their averages by layer 2. The
    width m of a head is that of its queries and keys, G, or the rank of its value matrix, S, whichever is larger: a
    token is three times as wide.

    Hypotheses: tokens know their positions; queries, keys, values and what is between the layers are maps of a token of
    any size; residues, positions, scaled queries, keys and values are integers, and outputs have log2(2S) bits after
    the binary point, rounded up, so that p is the largest of log2 M + 4, log2 S + 4 and log2 N + 2; numerators and
    denominators of attention may have relative errors of up to 1/(32 M).

    Parameters
    ----------
    root : int
        G >= 1, the cube root of N.
    modulus : int
        M.
    spare_bits : int
        Bits after the binary point of outputs, in addition to the proved sufficient number; may be negative.
    """
    groups = checks.integer("root", root, minimum=1, maximum=2**12)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**40)
    spare_bits = checks.integer("spare_bits", spare_bits, minimum=-50, maximum=3)
    slots, n_tokens = groups**2, groups**3
    token = layout(groups, sizes.whole_numbers(modulus - 1), sizes.whole_numbers(n_tokens - 1))
    gathering, spreading = layers(groups)
    # All weights outside the chosen group sum to less than 1/(4 S M): a gathered number is within 1/4 of an integer.
    # The other 1/4 is for rounding the output.
    scale = sizes.whole_scale(4 * n_tokens * slots * modulus)
    gathered = sizes.averages(modulus / slots, 1 / (2 * slots), spare_bits=spare_bits)
    averaged = sizes.averages(1.0, 1 / (2 * slots), spare_bits=spare_bits)

    def tokens(x):
        x = np.asarray(x, dtype=np.float64)
        out = token.placed("x", x[..., None])
        token.read(out, "position")[...] = np.arange(n_tokens, dtype=float)[:, None]
        return out

    def position(X):
        return token.read(X, "position")[..., 0].astype(np.int64)

    def one_hot(index, width):
        return (index[..., None] == np.arange(width)).astype(float)

    def gather(head: int) -> Head:
        return Head.into(
            f"block {head}",
            token,
            gathering,
            query=lambda X: one_hot(position(X) // groups**head % groups, groups),
            key=lambda X: one_hot(position(X) // slots, groups),
            value=lambda X: one_hot(position(X) % slots, slots) * token.read(X, "x"),
            scale=float(scale),
            precision=sizes.rounded(scale, 1, modulus - 1, gathered),
        )

    def match_bits(X):
        blocks = (np.rint(slots * token.read(X, f"block {number}")).astype(np.int64) for number in range(3))
        first, second, third = blocks
        sums = (second[..., :, None] + third[..., None, :]) % modulus
        reached = np.zeros((*X.shape[:-1], modulus), bool)
        np.put_along_axis(reached, sums.reshape(*sums.shape[:-2], -1), True, -1)
        out = token.placed("block 0", np.take_along_axis(reached, -first % modulus, -1).astype(float))
        for name in ("x", "position"):
            token.read(out, name)[...] = token.read(X, name)
        return out

    spread = Head.into(
        "block 1",
        token,
        spreading,
        query=lambda X: one_hot(position(X) // slots, groups),
        key=lambda X: one_hot(position(X) % groups, groups),
        value=lambda X: token.read(X, "block 0"),
        scale=float(scale),
        precision=sizes.rounded(scale, 1, 1, averaged),
    )

    def read(X):
        average = np.take_along_axis(token.read(X, "block 1"), (position(X) % slots)[..., None], -1)
        return (average > 0.5 / slots).astype(float)

    built = [MultiHeadLayer([gather(head) for head in range(gathering.heads)]), MultiHeadLayer([spread])]
    maps = [token.held(None), token.held(match_bits), read]
    return MatchTransformer(Transformer(built, maps), n_tokens, modulus, tokens, token)
