"""Match3 with D = 2, H = 3 and m = N^(2/3), against the conjecture mHD = Omega(N / log N), for every M.

The conjecture is on the last slides of the talk on Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896. Found: a
transformer of two layers whose mHD is 6 N^(2/3), with positions in its tokens, maps of any size between layers, and
queries, keys, values and outputs of O(log N + log M) bits. The theorem on one layer stands. Smaller ones, with more
layers: `theory.sparse_averaging.sorted_groups` and `theory.sparse_averaging.transform`.
"""

from __future__ import annotations

import numpy as np

from dynamics.support import checks
from dynamics.units.attention_unit import AttentionUnit, MultiHeadLayer, Transformer
from theory.sparse_averaging import sizes
from theory.sparse_averaging.matching import MatchTransformer


def match3_groups(*, root: int, modulus: int, spare_bits: int = 0) -> MatchTransformer:
    """Match3 on N = G^3 tokens by two layers of three heads with m = N^(2/3).

    Positions are split into G groups of S = G^2 slots. Token t stands for one of the G^3 triples of groups (A, B, C).
    In layer 1 each head gathers one group: token t averages ``x_j e_slot(j)`` over it. The map between the layers knows
    all 3S tokens and sets, for each slot of A, a bit: is there a match with one token of B and one of C? In layer 2
    token i averages these bits over the G^2 tokens whose first group is its own; the output map reads its own slot.

    A token is (x, position, 3 S numbers): those gathered by layer 1, then the bits, and their averages by layer 2. The
    width m of a head is that of its queries and keys, G, or the rank of its value matrix, S, whichever is larger.

    Hypotheses: tokens know their positions, maps between layers are of any size; scaled queries, keys and values are
    integers, and outputs have log2(2S) bits after the binary point, rounded up, so that p is log2 M + 4, or
    log2 S + 4 if that is more; numerators and denominators of attention may have relative errors of up to 1/(32 M).

    Parameters
    ----------
    root : int
        G >= 1, the cube root of N.
    modulus : int
        M.
    spare_bits : int
        Bits after the binary point of outputs beyond those that are proved to be enough; negative: fewer.
    """
    groups = checks.integer("root", root, minimum=1, maximum=2**12)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**40)
    spare_bits = checks.integer("spare_bits", spare_bits, minimum=-50, maximum=3)
    slots, n_tokens = groups**2, groups**3
    width = 2 + 3 * slots
    # Beside the chosen group all weights together are below 1/(4 S M): a gathered number is within 1/4 of an integer,
    # and another 1/4 is left for rounding the output.
    scale = sizes.whole_scale(4 * n_tokens * slots * modulus)
    gathered = sizes.averages(modulus / slots, 1 / (2 * slots), spare_bits=spare_bits)
    averaged = sizes.averages(1.0, 1 / (2 * slots), spare_bits=spare_bits)

    def tokens(x):
        x = np.asarray(x, dtype=np.float64)
        start = np.stack([x, np.broadcast_to(np.arange(n_tokens, dtype=float), x.shape)], -1)
        return np.concatenate([start, np.zeros((*x.shape, width - 2))], -1)

    def position(X):
        return X[..., 1].astype(np.int64)

    def one_hot(index):
        return (index[..., None] == np.arange(groups)).astype(float)

    def block(columns, start: int):
        """``columns`` behind the first two of a token, from ``start`` on, and zeros elsewhere."""
        out = np.zeros((*columns.shape[:-1], width))
        out[..., 2 + start : 2 + start + columns.shape[-1]] = columns
        return out

    def gather(head: int) -> AttentionUnit:
        def value(X):
            out = np.zeros((*X.shape[:-1], width))
            place = 2 + head * slots + position(X) % slots
            np.put_along_axis(out, place[..., None], X[..., :1], -1)
            return out

        return AttentionUnit.from_maps(
            lambda X: one_hot(position(X) // groups**head % groups),
            lambda X: one_hot(position(X) // slots),
            value,
            embedding_dim=groups,
            scale=float(scale),
            precision=sizes.rounded(scale, 1, modulus - 1, gathered),
        )

    def match_bits(X):
        first, second, third = np.split(np.rint(slots * X[..., 2 : 2 + 3 * slots]).astype(np.int64), 3, axis=-1)
        sums = (second[..., :, None] + third[..., None, :]) % modulus
        reached = np.zeros((*X.shape[:-1], modulus), bool)
        np.put_along_axis(reached, sums.reshape(*sums.shape[:-2], -1), True, -1)
        bits = np.take_along_axis(reached, -first % modulus, -1)
        return block(bits.astype(float), 0) + block(X[..., :2], -2)

    def bits_of_token(X):
        return block(X[..., 2 : 2 + slots], slots)

    spread = AttentionUnit.from_maps(
        lambda X: one_hot(position(X) // slots),
        lambda X: one_hot(position(X) % groups),
        bits_of_token,
        embedding_dim=groups,
        scale=float(scale),
        precision=sizes.rounded(scale, 1, 1, averaged),
    )

    def read(X):
        average = np.take_along_axis(X[..., 2 + slots : 2 + 2 * slots], (position(X) % slots)[..., None], -1)
        return (average > 0.5 / slots).astype(float)

    layers = [MultiHeadLayer([gather(head) for head in range(3)]), MultiHeadLayer([spread])]
    return MatchTransformer(
        Transformer(layers, [None, match_bits, read]), n_tokens, modulus, 3, max(slots, groups), tokens
    )
