"""Match3 by attention that computes a number-theoretic transform: polylogarithmic size for M = O(N).

The residues that occur are a string of M bits. Its convolution with itself counts how often r is a sum of two of them.
Attention with positions in binary as keys carries out the butterflies of a fast transform modulo a prime, one per
layer; the maps between the layers do the arithmetic. The construction is ours. The task comes from Sanford, Hsu,
Telgarsky (NeurIPS 2023), arXiv 2306.02896, whose slides conjecture mHD = Omega(N / log N).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging import sizes
from yzflow_sparse_averaging.attention_unit import FixedPoint, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.instances import BLANK, match_tokens
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["match3_transform"]


def layers(log_workers: Any, code: Any, slots: Any) -> tuple[Layers, ...]:
    """The layers for T workers, codes of positions of so many digits, and B numbers a token."""
    return (
        Layers("histogram", 1, 1, code + 1, slots),
        Layers("forward", log_workers, 1, code, slots),
        Layers("back", log_workers, 1, code, slots),
        Layers("reads", 1, 2, code, slots),
    )


def layout(slots: Any, numbers: dict[str, FixedPoint] | None = None) -> Layout:
    """A token: x, position, its B numbers, and two blocks of B for a layer to fill."""
    columns = {"x": 1, "position": 1, "own": slots, "block 1": slots, "block 2": slots}
    held = numbers or {}
    return Layout(tuple(Part(name, count, held.get(name.split()[0])) for name, count in columns.items()))


def match3_transform(*, n_tokens: int, modulus: int, spare_bits: int = 0) -> MatchTransformer:
    r"""Match3 in D = 2 log2 T + 2 layers of H = 2 heads with m = max(log2 N + 2, B), T <= N and B about 2M/T to 4M/T.

    T is the number of tokens that work: the largest power of two up to N, or the length L of the transform if that is
    less. L is the power of two next to 2M. Token t < T holds the B = L/T positions t, t + T, ..

    1. Histogram: token t attends to the tokens with x_j = t mod T, or to a blank token if there are none. The map turns
       the average into bits: for each residue that the token holds, does it occur?
    2. log2 T layers of one head: token t copies the numbers of token t xor h for h = T/2, .., 1, and the map does the
       butterfly modulo P, a prime with P = 1 mod L. Butterflies with h >= T stay within a token.
    3. The map squares. log2 T layers undo the butterflies: the numbers are the convolution, below P since P > 2M.
    4. Token i reads the numbers at -x_i mod M and at M further on, with two heads: is one of them positive?

    Hypotheses: tokens know their positions, there is one blank token, maps between layers are of any size. Scaled
    queries, keys and values are integers and outputs fixed-point numbers, of p = O(log(N + M)) bits; numerators and
    denominators of attention may have relative errors of up to 1/(32 P), and up to 1/32 in the histogram.

    Parameters
    ----------
    n_tokens : int
        N.
    modulus : int
        M. For M = O(N), B is bounded.
    spare_bits : int
        Bits after the binary point of outputs, in addition to the proved sufficient number; may be negative.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1, maximum=2**24)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**24)
    spare_bits = checks.integer("spare_bits", spare_bits, minimum=-50, maximum=3)
    stages = Stages.of(n_tokens, modulus)
    strides = [stages.workers >> k for k in range(1, stages.layers["forward"].count + 1)]  # T/2, .., 1
    both = [(kind, h) for kind, order in (("forward", strides), ("back", strides[::-1])) for h in order]
    built = [_histogram(stages, spare_bits), *(_copy(stages, kind, h, spare_bits) for kind, h in both)]
    maps: list[Callable] = [stages.start(), *(stages.step(h, inverse=kind == "back") for kind, h in both)]
    maps[len(strides)] = stages.then(maps[len(strides)], stages.square)
    maps[-1] = stages.then(maps[-1], stages.finish)
    built.append(_reads(stages, modulus, spare_bits))

    def tokens(x):
        out = stages.layout.placed("x", match_tokens(np.asarray(x, dtype=np.int64)))
        stages.layout.read(out, "position")[...] = np.arange(n_tokens + 1.0)[:, None]
        return out

    held = [stages.layout.held(phi) for phi in (None, *maps)]
    return MatchTransformer(
        Transformer(built, [*held, _answer(stages, modulus)]), n_tokens, modulus, tokens, stages.layout
    )


class Stages:
    """A transform of length L modulo P on T tokens of B = L/T positions, position p in token p mod T.

    Attributes
    ----------
    prime : int
        P = k L + 1, the smallest.
    root : int
        A number of order L modulo P.
    """

    def __init__(self, length: int, workers: int, n_tokens: int) -> None:
        from sympy import isprime  # here, for it takes half a second that no other use of the package needs

        self.length, self.workers, self.n_tokens = length, workers, n_tokens
        self.slots = length // workers
        self.prime = next(p for p in range(length + 1, 2**53, length) if isprime(p))
        self.root = next(
            w
            for g in range(2, self.prime)
            if pow(w := pow(g, (self.prime - 1) // length, self.prime), length // 2, self.prime) == self.prime - 1
        )
        self.code_width = n_tokens.bit_length()  # positions 0 .. N, the blank's last
        kinds = layers(workers.bit_length() - 1, self.code_width, self.slots)
        self.layers = {one.name: one for one in kinds}
        bounds = {"x": length // 2 - 1, "position": n_tokens, "own": self.prime - 1, "block": 0}
        self.layout = layout(self.slots, {name: sizes.whole_numbers(bound) for name, bound in bounds.items()})

    @classmethod
    def of(cls, n_tokens: int, modulus: int) -> Stages:
        """The transform for Match3 of N residues mod M."""
        length = 1 << (2 * modulus - 1).bit_length()
        return cls(length, min(1 << (n_tokens.bit_length() - 1), length), n_tokens)

    # Parts of tokens ------------------------------------------------------------------------------------------------

    def block(self, X: np.ndarray, number: int) -> np.ndarray:
        """Block 0 (own numbers), 1 or 2 (filled by layers) of tokens."""
        return self.layout.read(X, f"block {number}" if number else "own")

    def head(self, kind: str, number: int, **maps: Any) -> Head:
        """A head of layers of a kind that fills a block."""
        return Head.into(f"block {number}", self.layout, self.layers[kind], **maps)

    def code(self, number: np.ndarray) -> np.ndarray:
        """Integers in binary, digits 1 and -1: codes of different integers have a product of at most that with itself
        minus 2."""
        return 2.0 * (number[..., None].astype(np.int64) >> np.arange(self.code_width) & 1) - 1

    # Maps between layers --------------------------------------------------------------------------------------------

    def then(self, first: Callable, numbers: Callable) -> Callable:
        """``first``, then ``numbers`` on the token's own numbers."""

        def both(X):
            X = first(X).copy()
            self.block(X, 0)[...] = numbers(self.block(X, 0), X)
            return X

        return both

    def start(self) -> Callable:
        """Averages of the histogram to bits, and the butterflies within a token."""
        threshold = 0.5 / (self.n_tokens + 1)

        def bits(X):
            numbers = (self.block(X, 1) > threshold) * (position(X) < self.workers)[..., None]
            h = self.length // 2
            while h >= self.workers:
                numbers = self.within(numbers, X, h, inverse=False)
                h //= 2
            return self.cleared(X, numbers)

        return bits

    def step(self, h: int, *, inverse: bool) -> Callable:
        """A butterfly with the numbers that the layer has copied from token t xor h."""
        return lambda X: self.cleared(
            X, self.combined(self.block(X, 0), np.rint(self.block(X, 1)), X, h, inverse=inverse)
        )

    def square(self, numbers: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Each number times itself modulo P."""
        return (numbers.astype(np.int64) ** 2 % self.prime).astype(float)

    def finish(self, numbers: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The last butterflies within a token, and whether the numbers are positive."""
        h = self.workers
        while h < self.length:
            numbers = self.within(numbers, X, h, inverse=True)
            h *= 2
        return (numbers > 0).astype(float)

    def within(self, numbers: np.ndarray, X: np.ndarray, h: int, *, inverse: bool) -> np.ndarray:
        """A butterfly between the slots of a token."""
        other = np.arange(self.slots) ^ (h // self.workers)
        return self.combined(numbers, numbers[..., other], X, h, inverse=inverse)

    def combined(self, own: np.ndarray, other: np.ndarray, X: np.ndarray, h: int, *, inverse: bool) -> np.ndarray:
        """Own and other number of each butterfly with stride h, by the weights of the token's position."""
        weights = np.zeros((2, self.n_tokens + 1, self.slots), np.int64)
        parts = np.stack(butterfly(self.length, h, self.root, self.prime, inverse=inverse))
        weights[:, : self.workers] = parts.reshape(2, self.slots, self.workers).swapaxes(1, 2)
        mine, others = weights[:, position(X)]
        total = own.astype(np.int64) * mine + other.astype(np.int64) * others % self.prime
        return (total % self.prime).astype(float)

    def cleared(self, X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The tokens with these numbers, and empty blocks."""
        out = self.layout.placed("own", numbers)
        for name in ("x", "position"):
            self.layout.read(out, name)[...] = self.layout.read(X, name)
        return out


def butterfly(length: int, h: int, root: int, prime: int, *, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Factors at each of L positions p, for the number at p and for the number at p xor h, modulo P.

    Forwards (u, v) -> (u + v, (u - v) w^j), backwards (u, v) -> ((u + v w^-j)/2, (u - v w^-j)/2), where j is the
    position of u in its block of 2h and w a number of order 2h.
    """
    position = np.arange(length)
    upper, place = position & h > 0, position & (h - 1)
    unit = pow(root, length // (2 * h) * (-1 if inverse else 1), prime)
    powers = np.array([pow(unit, int(k), prime) for k in range(h)], dtype=np.int64)[place]
    if not inverse:
        return np.where(upper, -powers % prime, 1), np.where(upper, powers, 1)
    half = (prime + 1) // 2
    powers = powers * half % prime
    return np.where(upper, -powers % prime, half), np.where(upper, half, powers)


def position(X: np.ndarray) -> np.ndarray:
    """The positions of tokens."""
    return X[..., 1].astype(np.int64)


def _histogram(stages: Stages, spare_bits: int) -> MultiHeadLayer:
    """Token t averages the one-hot of x div T over the tokens with x = t mod T; the blank scores half a step less."""
    n, width, workers = stages.n_tokens, stages.code_width, stages.workers
    scale = sizes.whole_scale(8 * (n + 1) ** 2)
    output = sizes.averages(1.0, 1 / (4 * (n + 1)), spare_bits=spare_bits)

    def query(X):
        return np.concatenate([stages.code(position(X)), np.ones((*X.shape[:-1], 1))], -1)

    def key(X):
        blank = (X[..., :1] == BLANK).astype(float)
        residue = np.where(X[..., 0] == BLANK, 0, X[..., 0]).astype(np.int64) % workers
        return np.concatenate([(1 - blank) * stages.code(residue), (width - 1) * blank], -1)

    def value(X):
        columns = (X[..., :1] != BLANK) & (X[..., :1] // workers == np.arange(stages.slots))
        return columns.astype(float)

    precision = sizes.rounded(scale, width, 1, output)
    maps = {"query": query, "key": key, "value": value}
    return MultiHeadLayer([stages.head("histogram", 1, **maps, scale=float(scale), precision=precision)])


def _copy(stages: Stages, kind: str, h: int, spare_bits: int) -> MultiHeadLayer:
    """Token t copies the numbers of token t xor h, to less than 1/2."""
    output = sizes.averages(stages.prime, 1 / 2, spare_bits=spare_bits)
    # Tokens that do not work attend to themselves.

    def target(X):
        return np.where(position(X) < stages.workers, position(X) ^ h, position(X))

    return MultiHeadLayer([_from_position(stages, kind, 1, target, stages.prime - 1, output)])


def _reads(stages: Stages, modulus: int, spare_bits: int) -> MultiHeadLayer:
    """Two heads read whether the numbers at -x mod M and M further on are positive."""
    output = sizes.averages(1.0, 1 / 4, spare_bits=spare_bits)

    def head(number: int) -> Head:
        def target(X):
            return wanted(X, modulus, number) % stages.workers

        return _from_position(stages, "reads", 1 + number, target, 1, output)

    return MultiHeadLayer([head(number) for number in range(stages.layers["reads"].heads)])


def _from_position(stages: Stages, kind: str, block: int, target: Callable, largest: int, output: FixedPoint) -> Head:
    """A head that copies the numbers of the token at ``target`` into a block; all others add less than 1/8."""
    odds = 8 * stages.n_tokens * stages.prime
    scale = -(-sizes.whole_scale(odds) // 2)  # keys differ by 2
    return stages.head(
        kind,
        block,
        query=lambda X: stages.code(target(X)),
        key=lambda X: stages.code(position(X)),
        value=lambda X: stages.block(X, 0),
        scale=float(scale),
        precision=sizes.rounded(scale, 1, largest, output),
    )


def wanted(X: np.ndarray, modulus: int, number: int) -> np.ndarray:
    """Where the convolution must be positive for a match: -x mod M, and M further on."""
    return -X[..., 0].astype(np.int64) % modulus + number * modulus


def _answer(stages: Stages, modulus: int) -> Callable:
    def answer(X):
        found = [
            np.take_along_axis(
                stages.block(X, 1 + number), (wanted(X, modulus, number) // stages.workers)[..., None], -1
            )
            > 0.5
            for number in range(2)
        ]
        return (found[0] | found[1]).astype(float)

    return answer
