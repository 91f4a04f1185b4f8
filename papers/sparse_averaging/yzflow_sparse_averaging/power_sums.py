"""Match3 by one strict averaging layer: bits in place of width, down to m = H = D = 1.

The theorem on one layer of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), mH p = Omega(N), includes the bits
p of a number. Our layer ``X + mean(X)`` does Match3 for every m that divides 2N, with m p of about 2N log2(2NP). It has
maps before and after it, one head, no positions and Q = K = 0. So no bound on m H alone can hold, and the bound on
m H p is attained up to a logarithm, for every M.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks

__all__ = ["AveragingLayer", "match3_power_sums"]


@dataclass(frozen=True)
class AveragingLayer:
    """One layer ``X + mean(X)``, in exact fixed-point numbers, with a map before and one after it.

    Attributes
    ----------
    n_tokens, modulus : int
        N and M.
    dimension : int
        m = d, the numbers of a token.
    prime : int
        P, above 2N and no less than M.
    """

    n_tokens: int
    modulus: int
    dimension: int
    prime: int

    @property
    def digits(self) -> int:
        """Power sums that one number holds, 2N/m."""
        return 2 * self.n_tokens // self.dimension

    @property
    def base(self) -> int:
        """Base of the digits: 2NP, above each sum of 2N residues."""
        return 2 * self.n_tokens * self.prime

    @property
    def fraction_bits(self) -> int:
        """Bits after the binary point: at a step of at most 1/(2N), N times a rounded mean is off by at most 1/4."""
        return (2 * self.n_tokens - 1).bit_length()

    @property
    def bits(self) -> int:
        """p: bits of the longest possible fixed-point number, with its sign."""
        largest = Fraction(self.base**self.digits - 1, self.n_tokens) * 2**self.fraction_bits
        return int(largest).bit_length() + 2

    def _token(self, residue: int) -> list[int]:
        """The powers 1 to 2N of a residue mod P, 2N/m digits a number."""
        powers = [pow(residue, k, self.prime) for k in range(1, 2 * self.n_tokens + 1)]
        blocks = (powers[at : at + self.digits] for at in range(0, len(powers), self.digits))
        return [sum(digit * self.base**place for place, digit in enumerate(block)) for block in blocks]

    def outputs(self, x: ArrayLike) -> list[list[Fraction]]:
        """``X + mean(X)`` for residues ``x`` (N,): the layer with Q = K = 0 and V the identity, its output rounded."""
        (row,) = self._rows(x, one=True)
        return self._attended(row)

    def residues(self, x: ArrayLike) -> list[tuple[int, dict[int, int]]]:
        """Each token's residue and its counts of all residues, read from the token after the layer, for ``x`` (N,)."""
        return [self._read(token) for token in self.outputs(x)]

    def _attended(self, x: list[int]) -> list[list[Fraction]]:
        X = [self._token(residue) for residue in x]
        scale = 2**self.fraction_bits
        mean = [Fraction(round(Fraction(sum(column), self.n_tokens) * scale), scale) for column in zip(*X, strict=True)]
        return [[own + other for own, other in zip(row, mean, strict=True)] for row in X]

    def _read(self, token: list[Fraction]) -> tuple[int, dict[int, int]]:
        """Residue of a token and counts of all residues, from the token after the layer.

        Times N it holds the power sums of 2N residues: of all tokens, and of N further copies of its own. By Newton's
        identities these residues are the roots of one polynomial mod P.
        """
        n, prime = self.n_tokens, self.prime
        sums: list[int] = []
        for number in token:
            left = round(number * n)
            for _ in range(self.digits):
                left, digit = divmod(left, self.base)
                sums.append(digit % prime)
        elementary = [1]
        for k in range(1, 2 * n + 1):
            total = sum((-1) ** (i - 1) * elementary[k - i] * sums[i - 1] for i in range(1, k + 1))
            elementary.append(total * pow(k, -1, prime) % prime)
        polynomial = [(-1) ** k * e % prime for k, e in enumerate(elementary)]  # highest power first
        found: dict[int, int] = {}
        for residue in range(self.modulus):
            while len(polynomial) > 1:
                quotient = [polynomial[0]]
                for coefficient in polynomial[1:]:
                    quotient.append((coefficient + residue * quotient[-1]) % prime)
                if quotient.pop():
                    break
                polynomial = quotient
                found[residue] = found.get(residue, 0) + 1
        own = max(found, key=lambda residue: found[residue])  # occurs more than N times of 2N
        found[own] -= n
        return own, found

    def _answer(self, token: list[Fraction]) -> bool:
        """The map after the layer: whether its residue has a match."""
        own, found = self._read(token)
        return any((-own - second) % self.modulus in found for second in found)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Whether each of the integers ``x`` in [0, M), shape (.., N), has a match: (.., N) of bool."""
        rows = self._rows(x)
        out = [[self._answer(token) for token in self._attended(row)] for row in rows]
        return np.array(out, dtype=bool).reshape(np.shape(x))

    def _rows(self, x: ArrayLike, *, one: bool = False) -> list[list[int]]:
        """Inputs as Python's integers, which are exact."""
        x = checks.finite_array("x", x)
        if x.ndim == 0 or x.shape[-1] != self.n_tokens or (one and x.ndim > 1):
            raise checks.reject("x", f"hold {self.n_tokens} tokens", f"shape {x.shape}")
        if (x != np.rint(x)).any() or (x.size and (x.min() < 0 or x.max() >= self.modulus)):
            raise checks.reject("x", f"hold integers in [0, {self.modulus})", "others")
        rows: list[list[int]] = x.reshape(-1, self.n_tokens).astype(np.int64).tolist()
        return rows


def match3_power_sums(*, n_tokens: int, modulus: int, dimension: int = 1) -> AveragingLayer:
    r"""Match3 by one layer of one head with d = m numbers a token, any divisor of 2N, and p of about 2N log2(2NP)/m.

    Token i is ``(x_i^1, .., x_i^{2N}) mod P``, as digits in the base 2NP, 2N/m to a number. The layer is X + mean(X):
    Q = K = 0, and V the identity. N times its output holds the power sums of all tokens and N copies of token i. Since
    P > 2N they determine these 2N residues (Newton), of which one occurs more than N times: token i.

    Hypotheses: none on positions, for there are none, and no blank token; maps before and after the layer are of any
    size; p bits of fixed-point numbers, with outputs rounded to a step of at most 1/(2N).

    Parameters
    ----------
    n_tokens : int
        N.
    modulus : int
        M; P is the least prime above 2N that is no less than M.
    dimension : int
        m.

    Examples
    --------
    >>> layer = match3_power_sums(n_tokens=3, modulus=9)
    >>> layer([1, 4, 2]).tolist()  # 1 + 4 + 4 = 9
    [True, True, False]
    """
    from sympy import nextprime  # here, for it takes half a second that no other use of the package needs

    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1, maximum=2**10)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**24)
    dimension = checks.integer("dimension", dimension, minimum=1, maximum=2 * n_tokens)
    if 2 * n_tokens % dimension:
        raise checks.reject("dimension", f"divide {2 * n_tokens}", dimension)
    return AveragingLayer(n_tokens, modulus, dimension, int(nextprime(max(2 * n_tokens, modulus - 1))))
