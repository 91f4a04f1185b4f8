"""Lower bounds as protocols that run: a working unit lets Alice and Bob decide disjointness with few bits.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, Theorem 4 and the bound for Match3. Alice holds
``a`` in {0,1}^n and Bob ``b``; their sets are disjoint when no a_i b_i is one. The 0/1 matrix of disjointness has rank
2^n, so that Alice must send n bits or more, whatever the protocol: a unit that needs fewer cannot exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, FixedPoint, Precision, attend
from yzflow_sparse_averaging.instances import qsa_tokens
from yzflow_sparse_averaging.matching import MatchTransformer


@dataclass(frozen=True)
class ProtocolRun:
    """A protocol run on all pairs of inputs.

    Attributes
    ----------
    disjoint : (2^n, 2^n) array of bool
        Bob's answer for each a (row) and b (column), in the order of `bit_strings`.
    bits : int
        Number of bits that Alice sends for one input.
    messages : int
        Different messages among the 2^n inputs of Alice; a protocol that never errs needs them all.
    """

    disjoint: np.ndarray
    bits: int
    messages: int

    @property
    def errors(self) -> int:
        """Number of pairs with a wrong answer."""
        return int((self.disjoint != disjointness_matrix(len(self.disjoint).bit_length() - 1)).sum())


def bit_strings(n: int) -> np.ndarray:
    """All 2^n strings, (2^n, n) of 0 and 1, in the order of binary numbers."""
    n = _few_bits("n", n, pairs=False)
    return np.arange(2**n)[:, None] >> np.arange(n)[::-1] & 1


def _few_bits(name: str, n: int, *, pairs: bool) -> int:
    """The number n of bits of an input, where all inputs, or all ``pairs`` of them, fit into memory."""
    n = checks.integer(name, n, minimum=1)
    numbers = 2 * n * 2 ** min(n, 64) + pairs * 2 * 4 ** min(n, 64)  # above that a number of a million digits, or more
    checks.fits_in_memory(name, 8 * numbers, "list all inputs")
    return n


def disjointness_matrix(n: int) -> np.ndarray:
    """1 where the sets of row a and column b are disjoint: (2^n, 2^n) integers. Its complement is intersection."""
    n = _few_bits("n", n, pairs=True)
    strings = bit_strings(n)
    return (strings @ strings.T == 0).astype(np.int64)


def exact_rank(matrix: ArrayLike) -> int:
    """Rank of an integer matrix over the rationals, by elimination in exact arithmetic."""
    from sympy import ZZ  # here, for it takes half a second that no other use of the package needs
    from sympy.polys.matrices import DomainMatrix

    matrix = checks.array("matrix", matrix, rule="be a matrix of integers")
    if matrix.ndim != 2 or matrix.dtype.kind not in "iub":
        raise checks.reject("matrix", "be a matrix of integers", f"dtype {matrix.dtype}, shape {matrix.shape}")
    rows = [[ZZ(int(entry)) for entry in row] for row in matrix]
    return DomainMatrix(rows, matrix.shape, ZZ).to_field().to_sparse().rank()


def qsa_protocol(unit: AttentionUnit, q: int, *, encoding: str = "corrected") -> ProtocolRun:
    r"""Disjointness of subsets of [q] by a unit for q-sparse averaging of N = 2q + 1 tokens with z in [-1, 1].

    Alice's set is y of the last token, {2i + a_i - 1: i = 1..q}; Bob's values are z_{2i} = 2 b_i - 1, z_{2i-1} = -1.
    The last output is -1 + (2/q) #{i: a_i b_i = 1}, and Bob compares it with -1 + 1/q. Alice sends the query of the
    last token, and its key and its value, which are part of the softmax too: (2m + d') p bits.

    Parameters
    ----------
    unit : AttentionUnit
        Reads the tokens of `instances.qsa_tokens`, d' = 1. Its precision says how many bits a number of
        the query, key and value has: all three must be rounded, to the same p.
    q : int
    encoding : str
        "printed": z_{2i-1} = 2 b_i - 1 and z_{2i} = -1, as on the slides, which decides disjointness of the complement
        of a.

    Raises
    ------
    ValueError
        If the unit's numbers are not rounded to one number of bits.
    """
    q = _few_bits("q", q, pairs=True)
    encoding = checks.one_of("encoding", encoding, ("corrected", "printed"))
    if not all(hasattr(unit, part) for part in ("queries", "keys", "values", "scale", "precision")):
        raise checks.reject("unit", "be an AttentionUnit", checks.brief(unit))
    p = _bits(unit.precision)
    n_tokens, strings = 2 * q + 1, bit_strings(q)
    # Bob's tokens need subsets too, and the last token a value: any will do.
    subsets = np.tile(np.arange(q), (len(strings), n_tokens, 1))
    values = -np.ones((len(strings), n_tokens, 1))
    values[:, 1 : 2 * q : 2, 0] = 2 * strings - 1
    if encoding == "printed":
        values[:, : 2 * q] = values[:, : 2 * q].reshape(-1, q, 2, 1)[:, :, ::-1].reshape(-1, 2 * q, 1)
    bob = qsa_tokens(values, subsets)[:, :-1]

    subsets[:, -1] = 2 * np.arange(q) + strings
    alice = qsa_tokens(values, subsets)[:, -1:]
    sent = [unit.queries(alice), unit.keys(alice), unit.values(alice)]
    out = _last_output(unit, sent, unit.keys(bob), unit.values(bob))
    rounded = [
        unit.precision.query.round(unit.scale * sent[0]),
        unit.precision.key.round(sent[1]),
        unit.precision.value.round(sent[2]),
    ]
    return ProtocolRun(out < -1 + 1 / q, sum(part.shape[-1] for part in sent) * p, _different(rounded))


def _last_output(unit: AttentionUnit, sent: list[np.ndarray], keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Bob's output for each message of Alice (row) and each of his own inputs (column), d' = 1.

    ``sent`` holds a query, key and value for each message, (2^q, 1, ..); ``keys`` and ``values`` are (2^q, 2q, ..), of
    Bob.
    """
    query, last_key, last_value = sent
    out = np.zeros((len(query), len(keys)))
    # Inputs of Bob with the same keys share their attention: their values become columns.
    distinct, group = np.unique(keys, axis=0, return_inverse=True)
    for number, own in enumerate(distinct):
        members = np.flatnonzero(group.ravel() == number)
        all_keys = np.concatenate([np.broadcast_to(own, (len(query), *own.shape)), last_key], axis=1)
        columns = np.broadcast_to(values[members, :, 0].T, (len(query), own.shape[0], members.size))
        columns = np.concatenate([columns, np.broadcast_to(last_value, (len(query), 1, members.size))], axis=1)
        out[:, members] = attend(query, all_keys, columns, scale=unit.scale, precision=unit.precision)[:, 0]
    return out


def disjointness_residues(n: int, modulus: int) -> np.ndarray:
    """n residues v of different pairs {v, 1 - v} of Z_M, without {-1, 2} and without v = 1 - v.

    With x_1 = -1 the sums -1 + s + t over these and -1 vanish mod M only for the two members of a pair.

    Raises
    ------
    ValueError
        If M has too few pairs: it needs M >= 2n + 2 if even, and M >= 2n + 3 if odd, and more than 3.
    """
    n = checks.integer("n", n, minimum=1)
    modulus = checks.integer("modulus", modulus, minimum=4)
    pairs = {frozenset((v, (1 - v) % modulus)) for v in range(modulus)} - {frozenset((modulus - 1, 2))}
    residues = sorted(max(pair) for pair in pairs if len(pair) == 2)
    if len(residues) < n:
        raise checks.reject("modulus", f"have {n} pairs {{v, 1 - v}} beside {{-1, 2}}", modulus)
    return np.array(residues[:n])


def match3_protocol(model: MatchTransformer, *, bits: int) -> ProtocolRun:
    r"""Disjointness of subsets of [n] by a transformer of one layer for Match3 on N = 2n + 1 tokens.

    x_1 = -1; Alice has x_{1+i} = v_i if a_i, else -1; Bob x_{1+n+i} = 1 - v_i if b_i, else -1. Token 1 has a match
    exactly when some a_i b_i is one. Of each head Alice sends the logarithm of her sum of exponentials in row 1, and
    her average value: (d' + 1) p bits a head. Bob adds his own part of both, and applies the output map.

    Parameters
    ----------
    model : MatchTransformer
        With D = 1, heads that are `AttentionUnit`, N odd, and tokens that each depend on one x.
    bits : int
        p, for fixed-point numbers that cover Alice's messages.
    """
    checks.instance("model", model, MatchTransformer)
    checks.integer("bits", bits, minimum=1, maximum=53)
    if model.depth != 1 or model.n_tokens % 2 == 0 or model.n_tokens < 3:
        raise checks.reject(
            "model", "have one layer and an odd number of tokens >= 3", f"{model.depth}, {model.n_tokens}"
        )
    n, modulus = model.n_tokens // 2, model.modulus
    residues, strings = disjointness_residues(n, modulus), bit_strings(n)
    alice = np.where(strings == 1, residues, modulus - 1)
    bob = np.where(strings == 1, (1 - residues) % modulus, modulus - 1)
    blank_side = np.full((len(strings), n), modulus - 1)
    first = np.full((len(strings), 1), modulus - 1)
    start, layer, finish = model.transformer.maps[0], model.transformer.layers[0], model.transformer.maps[1]

    def tokens(left, right):
        made = model.tokens(np.concatenate([first, left, right], axis=1))
        return made if start is None else start(made)

    alice_tokens, bob_tokens = tokens(alice, blank_side), tokens(blank_side, bob)
    own = bob_tokens[:, :1]
    total = np.broadcast_to(own, (len(strings), len(strings), *own.shape[1:])).copy()
    sent = []
    for head in layer.heads:
        log_sum, mean = _part(head, own, alice_tokens[:, 1 : n + 1])
        message = FixedPoint.covering(bits, 2 * max(1.0, float(np.abs(mean).max()), float(np.abs(log_sum).max())))
        log_sum, mean = message.round(log_sum), message.round(mean)
        sent += [log_sum, mean]
        bob_sum, bob_mean = _part(head, own, np.delete(bob_tokens, np.s_[1 : n + 1], axis=1))
        share = 1 / (1 + np.exp(bob_sum[None] - log_sum[:, None]))[..., None]
        total += (share * mean[:, None] + (1 - share) * bob_mean[None])[..., None, :]
    answer = (total if finish is None else finish(total))[..., 0, 0]
    message_bits = sum(part[0].size for part in sent) * bits
    return ProtocolRun(answer < 0.5, message_bits, _different(sent))


def _part(head: Any, own: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of an `AttentionUnit`'s sum of exponentials over tokens in the row of token ``own``, and their mean value."""
    scores = head.scale * (head.queries(own) @ np.swapaxes(head.keys(tokens), -1, -2))[:, 0]
    log_sum = logsumexp(scores, axis=-1)
    return log_sum, np.einsum("bj,bjd->bd", np.exp(scores - log_sum[:, None]), head.values(tokens))


def _bits(precision: Precision | None) -> int:
    parts = [] if precision is None else [precision.query, precision.key, precision.value]
    bits = {part.bits for part in parts if part is not None}
    if len(bits) != 1 or None in parts:
        raise checks.reject("unit", "round queries, keys and values to one number of bits", precision)
    return bits.pop()


def _different(parts: list[np.ndarray]) -> int:
    return len(np.unique(np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1), axis=0))
