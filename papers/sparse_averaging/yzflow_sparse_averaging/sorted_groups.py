"""Match3 in about sqrt(N) dimensions for M = poly(N): few triples of groups of sorted tokens can hold a zero sum.

Tokens find their rank, and about sqrt(N) groups of consecutive ranks cover ranges of residues that do not overlap. Of
two triples of groups (A, B, C) and (A + k, B + k, C + k), at most one can have a sum of exactly M, and as few have
2M: at most G^2 triples are left, one for each token. The construction is ours. The task is that of Sanford, Hsu,
Telgarsky (NeurIPS 2023), arXiv 2306.02896, whose slides conjecture mHD = Omega(N / log N).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.support import checks
from dynamics.support.limits import current
from yzflow_sparse_averaging import sizes
from yzflow_sparse_averaging.attention_unit import FixedPoint, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["feasible_triples", "match3_sorted"]


def layers(size: Any, groups: Any, code: Any, digit_layers: Any, digits: Any = 3) -> tuple[Layers, ...]:
    """The layers for groups of ``size`` tokens: digits of ranks by codes, extremes, three groups, reports."""
    return (
        Layers("digits", digit_layers, digits, code, size),
        Layers("extremes", 1, 1, 1, groups),
        Layers("gather", 1, 3, groups, size),
        Layers("report", 1, 3, groups + 1, size),
    )


def layout(size: Any, groups: Any, numbers: dict[str, FixedPoint] | None = None) -> Layout:
    """A token: x, position, rank so far, how many tokens agree with it so far, its triple, the largest residue of each
    group, three blocks for a layer to fill, and the slots of its triple that are part of a zero sum: 1, 2 and 4 for
    its first, second and third group."""
    columns = {"x": 1, "position": 1, "rank": 1, "alike": 1, "triple": 3, "extremes": groups}
    columns |= {f"block {number}": size for number in range(3)} | {"found": size}
    held = numbers or {}
    return Layout(tuple(Part(name, count, held.get(name.split()[0])) for name, count in columns.items()))


def match3_sorted(*, n_tokens: int, modulus: int, spare_bits: int = 0) -> MatchTransformer:
    r"""Match3 in D = 3 + ceil(K/3) layers of H = 3 heads with m of about sqrt(N), K = log(MN)/log(sqrt N).

    G is the largest number with G^2 <= N - 1, S = ceil(N/G) the size of a group.

    1. Rank, K heads: numbers x_j N + j are different, and have K digits in the base S. A head for each digit attends to
       the tokens that agree in all higher digits, and averages the one-hot of this digit: how many are smaller?
    2. Extremes, one head: every token learns the largest residue of each group of S consecutive ranks, and so which
       triples of groups A <= B <= C can hold a sum of M or of 2M: at most G^2. Token t takes the t-th.
    3. Gather, three heads: the tokens of the three groups. The map finds every zero sum among them.
    4. Report, three heads: token i averages over the tokens with a triple that has its group in the first, second and
       third place, and reads its own slot. The last token has no triple, and is attended to where there is none.

    Residues that occur in several groups belong to the first of them. x_i = 0 matches itself.

    Hypotheses: tokens know their positions, maps between layers are of any size, no further tokens. Scaled queries,
    keys and values are integers and outputs fixed-point numbers, of p = O(log(N M)) bits; numerators and denominators
    of attention may have relative errors of up to 1/(32 N M).

    Parameters
    ----------
    n_tokens : int
        N >= 3.
    modulus : int
        M. For M = N^a, K is about 2 (a + 1).
    spare_bits : int
        Bits after the binary point of outputs, in addition to the proved sufficient number; may be negative.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=3, maximum=2**24)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**36)
    spare_bits = checks.integer("spare_bits", spare_bits, minimum=-50, maximum=3)
    plan = Groups(n_tokens, modulus)
    built, maps = [], []
    for number in range(plan.layers["digits"].count):
        digits = range(3 * number, min(3 * number + 3, plan.digits))
        built.append(MultiHeadLayer([_digit(plan, digit, digit - digits[0], spare_bits) for digit in digits]))
        maps.append(_count(plan, digits))
    built += [_extremes(plan, spare_bits), _gather(plan, spare_bits), _report(plan, spare_bits)]
    maps += [_triple(plan), _zero_sums(plan)]

    def tokens(x):
        x = np.asarray(x, dtype=np.float64)
        out = plan.layout.placed("x", x[..., None])
        out[..., plan.position] = np.arange(n_tokens)
        out[..., plan.alike] = n_tokens
        return out

    held = [plan.layout.held(phi) for phi in (None, *maps)]
    return MatchTransformer(Transformer(built, [*held, _answer(plan)]), n_tokens, modulus, tokens, plan.layout)


class Groups:
    """Sizes, and where the parts of a token are: see `layout`."""

    def __init__(self, n_tokens: int, modulus: int) -> None:
        self.n_tokens, self.modulus = n_tokens, modulus
        most = math.isqrt(n_tokens - 1)  # G
        self.size = -(-n_tokens // most)  # S
        self.groups = -(-n_tokens // self.size)  # at most G of them have tokens
        self.last_size = n_tokens - self.size * (self.groups - 1)
        self.digits = next(k for k in range(1, 200) if self.size**k >= modulus * n_tokens)
        code = max(1, ((modulus * n_tokens - 1) // self.size).bit_length())
        self.code_width = code
        kinds = layers(self.size, self.groups, code, -(-self.digits // 3), min(3, self.digits))
        self.layers = {one.name: one for one in kinds}
        bounds = {"x": modulus - 1, "position": n_tokens - 1, "rank": n_tokens - 1, "alike": n_tokens}
        bounds |= {"triple": self.groups - 1, "extremes": modulus - 1, "block": 0, "found": 7}
        self.layout = layout(
            self.size, self.groups, {name: sizes.whole_numbers(bound) for name, bound in bounds.items()}
        )
        self.x, self.position, self.rank, self.alike = (
            self.layout.place(name).start for name in ("x", "position", "rank", "alike")
        )
        self.triple, self.extremes, self.found = (self.layout.place(name) for name in ("triple", "extremes", "found"))

    def block(self, X: np.ndarray, number: int) -> np.ndarray:
        """Block 0, 1 or 2 of tokens, S numbers each."""
        return self.layout.read(X, f"block {number}")

    def head(self, kind: str, number: int, **maps: Any) -> Head:
        """A head of layers of a kind that fills a block."""
        return Head.into(f"block {number}", self.layout, self.layers[kind], **maps)

    def cleared(self, X: np.ndarray) -> np.ndarray:
        """A copy of tokens with empty blocks, and nothing found."""
        X = X.copy()
        for part in self.layout.parts:
            if part.name.startswith(("block", "found")):
                self.layout.read(X, part.name)[...] = 0.0
        return X

    def group(self, X: np.ndarray) -> np.ndarray:
        """Group of each token, by rank."""
        return X[..., self.rank].astype(np.int64) // self.size

    def slot(self, X: np.ndarray) -> np.ndarray:
        """Place of each token in its group."""
        return X[..., self.rank].astype(np.int64) % self.size

    def group_size(self, group: np.ndarray) -> np.ndarray:
        """How many tokens a group has."""
        return np.where(group == self.groups - 1, self.last_size, self.size)

    def prefix(self, X: np.ndarray, digit: int) -> np.ndarray:
        """x N + position without the digits from ``digit`` on, counted from the highest."""
        number = X[..., self.x].astype(np.int64) * self.n_tokens + X[..., self.position].astype(np.int64)
        return number // self.size ** (self.digits - digit)

    def digit(self, X: np.ndarray, digit: int) -> np.ndarray:
        """A digit of x N + position in the base S."""
        return self.prefix(X, digit + 1) % self.size

    def is_last(self, X: np.ndarray) -> np.ndarray:
        """Whether a token has the largest rank of its group."""
        return self.slot(X) == self.group_size(self.group(X)) - 1


def _one_hot(index: np.ndarray, width: int) -> np.ndarray:
    return (index[..., None] == np.arange(width)).astype(float)


def _digit(plan: Groups, digit: int, number: int, spare_bits: int) -> Head:
    """A head that averages the one-hot of a digit over tokens with equal higher digits, into block ``number``."""

    def code(X):
        prefix = plan.prefix(X, digit)
        return 2.0 * (prefix[..., None] >> np.arange(plan.code_width) & 1) - 1

    scale = -(-sizes.whole_scale(8 * plan.n_tokens) // 2)  # keys differ by 2
    return plan.head(
        "digits",
        number,
        query=code,
        key=code,
        value=lambda X: _one_hot(plan.digit(X, digit), plan.size),
        scale=float(scale),
        precision=sizes.rounded(scale, 1, 1, sizes.averages(1.0, 1 / (2 * plan.n_tokens), spare_bits=spare_bits)),
    )


def _count(plan: Groups, digits: range) -> Callable:
    """The map that adds, for each digit, the number of tokens with equal higher digits and a smaller digit."""

    def count(X):
        out = plan.cleared(X)
        for number, digit in enumerate(digits):
            own = plan.digit(X, digit)[..., None]
            counts = np.rint(plan.block(X, number) * out[..., plan.alike, None])
            out[..., plan.rank] += (counts * (np.arange(plan.size) < own)).sum(axis=-1)
            out[..., plan.alike] = np.take_along_axis(counts, own, -1)[..., 0]
        # With too few bits a count may be off; ranks stay in range.
        out[..., plan.rank] = np.clip(out[..., plan.rank], 0, plan.n_tokens - 1)
        return out

    return count


def _extremes(plan: Groups, spare_bits: int) -> MultiHeadLayer:
    """All tokens average, over the last token of each group, its residue in the place of its group."""
    scale = sizes.whole_scale(8 * plan.n_tokens * plan.modulus)

    output = sizes.averages(plan.modulus, 1 / (2 * plan.groups), spare_bits=spare_bits)
    head = plan.head(
        "extremes",
        0,
        query=lambda X: np.ones((*X.shape[:-1], 1)),
        key=lambda X: plan.is_last(X)[..., None].astype(float),
        value=lambda X: _one_hot(plan.group(X), plan.groups) * (X[..., plan.x] * plan.is_last(X))[..., None],
        scale=float(scale),
        precision=sizes.rounded(scale, 1, plan.modulus - 1, output),
    )
    return MultiHeadLayer([head])


def feasible_triples(largest: np.ndarray, modulus: int) -> np.ndarray:
    """Triples A <= B <= C of groups that can hold a sum of M or 2M, in lexicographic order: (n, 3).

    Parameters
    ----------
    largest : (G,) array of int
        The largest residue of each group, not falling. Group A owns the residues above that of group A - 1.
    modulus : int
        M.
    """
    largest, modulus = (
        checks.index_array("largest", largest, upper=2**36),
        checks.integer("modulus", modulus, minimum=2),
    )
    if (np.diff(largest) < 0).any():
        raise checks.reject("largest", "not fall", largest.tolist())
    checks.fits_in_memory("largest", 64 * largest.size**3, "compare triples")
    least = np.concatenate([[0], largest[:-1] + 1])
    order = np.arange(largest.size)
    owns = least <= largest
    modulus = min(modulus, 2**40)  # above which no sum is
    allowed = (order[:, None, None] <= order[:, None]) & (order[:, None] <= order)
    allowed &= owns[:, None, None] & owns[:, None] & owns
    low, high = (edge[:, None, None] + edge[:, None] + edge for edge in (least, largest))
    can = sum(((low <= total) & (total <= high)) for total in (modulus, 2 * modulus)) > 0
    return np.argwhere(allowed & can)


def _triple(plan: Groups) -> Callable:
    """Reads the extremes, and takes the triple of the token's position, or (-1, -1, -1)."""

    def triple(X):
        out = plan.cleared(X)
        largest = np.rint(plan.groups * plan.block(X, 0)[..., : plan.groups])
        # With too few bits a residue may be off; they stay residues that do not fall.
        largest = np.maximum.accumulate(np.clip(largest, 0, plan.modulus - 1), axis=-1)
        out[..., plan.extremes] = largest
        # The same for all tokens of an input: computed once for each that differs.
        rows, which = np.unique(largest.reshape(-1, plan.groups), axis=0, return_inverse=True)
        lists = np.full((len(rows), plan.n_tokens, 3), -1)
        for row, into in zip(rows, lists, strict=True):
            found = feasible_triples(row.astype(np.int64), plan.modulus)[: plan.n_tokens - 1]
            into[: len(found)] = found
        place = X[..., plan.position].astype(np.int64)
        out[..., plan.triple] = lists[which.reshape(place.shape), place]
        return out

    return triple


def _gather(plan: Groups, spare_bits: int) -> MultiHeadLayer:
    """Head h averages x_j e_slot over the tokens of the h-th group of the token's triple."""
    scale = sizes.whole_scale(8 * plan.n_tokens * plan.modulus)
    output = sizes.averages(plan.modulus, 1 / (2 * plan.size), spare_bits=spare_bits)

    def head(number: int) -> Head:
        return plan.head(
            "gather",
            number,
            query=lambda X: _one_hot(X[..., plan.triple][..., number].astype(np.int64), plan.groups),
            key=lambda X: _one_hot(plan.group(X), plan.groups),
            value=lambda X: _one_hot(plan.slot(X), plan.size) * X[..., plan.x, None],
            scale=float(scale),
            precision=sizes.rounded(scale, 1, plan.modulus - 1, output),
        )

    return MultiHeadLayer([head(number) for number in range(plan.layers["gather"].heads)])


def _zero_sums(plan: Groups) -> Callable:
    """Whether each slot of the three groups is part of a sum that vanishes mod M."""

    def find(X):
        out = plan.cleared(X)
        triple = X[..., plan.triple].astype(np.int64)
        flat, found = X.reshape(-1, plan.layout.width), out.reshape(-1, plan.layout.width)
        active = np.flatnonzero(triple.reshape(-1, 3)[:, 0] >= 0)
        for some in np.array_split(active, max(1, active.size * plan.size**3 // current().numbers)):
            if not some.size:
                continue
            parts, there = [], []
            for number in range(3):
                held = plan.group_size(triple.reshape(-1, 3)[some, number])
                there.append(np.arange(plan.size) < held[:, None])
                parts.append(np.rint(held[:, None] * plan.block(flat[some], number)).astype(np.int64))
            sums = parts[0][:, :, None, None] + parts[1][:, None, :, None] + parts[2][:, None, None, :]
            zero = (sums % plan.modulus == 0) & there[0][:, :, None, None]
            zero &= there[1][:, None, :, None] & there[2][:, None, None, :]
            for number, axes in enumerate(((2, 3), (1, 3), (1, 2))):
                found[some, plan.found] += 2**number * zero.any(axis=axes)
        return found.reshape(out.shape)

    return find


def _owned(plan: Groups, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first group with the token's residue, and a slot with this residue in the group."""
    group = (X[..., plan.extremes] < X[..., plan.x, None]).sum(axis=-1)
    group = np.minimum(group, plan.groups - 1)
    # In an earlier group than its own, the residue is that group's largest.
    return group, np.where(group == plan.group(X), plan.slot(X), plan.group_size(group) - 1)


def _report(plan: Groups, spare_bits: int) -> MultiHeadLayer:
    """Head h averages bits of slots over the tokens whose triple has the asking token's group in place h."""
    scale = sizes.whole_scale(8 * plan.n_tokens**2)
    output = sizes.averages(1.0, 1 / (4 * plan.n_tokens), spare_bits=spare_bits)

    def query(X):
        return np.concatenate([_one_hot(_owned(plan, X)[0], plan.groups), np.ones((*X.shape[:-1], 1))], -1)

    def head(number: int) -> Head:
        def key(X):
            here = _one_hot(X[..., plan.triple][..., number].astype(np.int64), plan.groups)
            nobody = X[..., plan.position] == plan.n_tokens - 1
            return np.concatenate([2 * here, nobody[..., None].astype(float)], -1)

        return plan.head(
            "report",
            number,
            query=query,
            key=key,
            value=lambda X: X[..., plan.found].astype(np.int64) >> number & 1,
            scale=float(scale),
            precision=sizes.rounded(scale, 2, 1, output),
        )

    return MultiHeadLayer([head(number) for number in range(plan.layers["report"].heads)])


def _answer(plan: Groups) -> Callable:
    """Whether one of the three averages reports a match in the token's slot; the residue zero always has a match."""

    def answer(X):
        slot = _owned(plan, X)[1][..., None]
        reported = np.stack([np.take_along_axis(plan.block(X, number), slot, -1) for number in range(3)])
        return ((reported > 0.5 / plan.n_tokens).any(axis=0) | (X[..., plan.x, None] == 0)).astype(float)

    return answer
