r"""The tasks qSA, Match2 and Match3 of Sanford, Hsu, Telgarsky (2023, arXiv 2306.02896): exact outputs and inputs.

- q-sparse averaging: token i holds a vector z_i of the unit ball and a set y_i of q tokens;
  ``qSA(X)_i = (1/q) sum_{j in y_i} z_j``.
- ``Match2(X)_i = 1{exists j: x_i + x_j = 0 mod M}`` and ``Match3(X)_i = 1{exists j, k: x_i + x_j + x_k = 0 mod M}`` for
  integers x; j = i and j = k are allowed. The slides leave out "mod M"; without it positive integers never match.

Tokens are numbered from 0. Leading axes are independent inputs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from dynamics.support.limits import current

__all__ = [
    "BLANK",
    "adversarial_match",
    "adversarial_subsets",
    "all_match",
    "all_subsets",
    "attention_error",
    "match2",
    "match3",
    "match_tokens",
    "qsa_tokens",
    "random_match",
    "random_qsa",
    "random_subsets",
    "sparse_average",
    "worst_values",
]

BLANK = -1  # stands for the blank token, which is no integer of [0, M)
_MOST_CASES = 2**24  # of an exhaustive list
_MOST_FACTORS = 64  # beyond which there are more than 2^64 cases, a number that may have a million digits
_LARGEST_MODULUS = 2**61  # sums of two stay in int64


def sparse_average(z: ArrayLike, y: ArrayLike) -> np.ndarray:
    """``qSA(X)_i = (1/q) sum_{j in y_i} z_j``.

    Parameters
    ----------
    z : (.., N, d') array
        Vectors of the unit ball.
    y : (.., N, q) integers
        q different tokens in each row.

    Returns
    -------
    (.., N, d') array

    Raises
    ------
    ValueError
        If a vector is outside the unit ball, or a row of ``y`` is not a set of tokens.

    Examples
    --------
    >>> sparse_average([[1.0], [0.5], [-1.0]], [[0, 1], [1, 2], [0, 2]])
    array([[ 0.75],
           [-0.25],
           [ 0.  ]])
    """
    z, y = checked_qsa(z, y)
    flat_z, flat_y = z.reshape(-1, *z.shape[-2:]), y.reshape(-1, *y.shape[-2:])
    means = np.stack([vectors[sets].mean(axis=1) for vectors, sets in zip(flat_z, flat_y, strict=True)])
    return means.reshape(z.shape)


def attention_error(attention: ArrayLike, y: ArrayLike) -> np.ndarray:
    """``||a - 1_y/q||_1`` for rows a of attention: the largest error of the output over all z in the unit ball.

    Parameters
    ----------
    attention : (.., R, N) array
    y : (.., R, q) integers
        The set of each row.

    Returns
    -------
    (.., R) array, in [0, 2] where rows of attention sum to one
    """
    return np.abs(_gap(attention, y)).sum(axis=-1)


def worst_values(attention: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Values z_j of -1 and 1 with which a row of attention has the output error `attention_error`.

    Parameters
    ----------
    attention : (.., R, N) array
    y : (.., R, q) integers

    Returns
    -------
    (.., R, N) array: a z in one dimension for each row
    """
    return np.where(_gap(attention, y) < 0, -1.0, 1.0)


def _gap(attention, y) -> np.ndarray:
    attention = checks.finite_array("attention", attention)
    if attention.ndim < 2:
        raise checks.reject("attention", "have the axes (.., row, token)", f"shape {attention.shape}")
    y = checked_sets(y, attention.shape[-1])
    if y.shape[:-1] != attention.shape[:-1]:
        raise checks.reject("y", f"have one set for each row of attention {attention.shape}", f"shape {y.shape}")
    gap = attention
    shares = np.take_along_axis(gap, y, axis=-1)
    np.put_along_axis(gap, y, shares - 1 / y.shape[-1], axis=-1)
    return gap


def qsa_tokens(z: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The tokens ``(z_i, y_i, i)`` as rows of ``d' + q + 1`` numbers, the set in rising order: what a unit reads."""
    z, y = checked_qsa(z, y)
    number = np.broadcast_to(np.arange(z.shape[-2], dtype=np.float64)[:, None], (*z.shape[:-1], 1))
    return np.concatenate([z, np.sort(y, axis=-1), number], axis=-1)


def random_qsa(
    n_tokens: int, subset_size: int, dim: int, *, size: int, rng: np.random.Generator | int
) -> tuple[np.ndarray, np.ndarray]:
    """``size`` random inputs: z (size, N, d') uniform in the unit ball, y (size, N, q) uniform sets."""
    n_tokens, subset_size = _sizes(n_tokens, subset_size)
    dim, size = checks.integer("dim", dim, minimum=1), checks.integer("size", size, minimum=1)
    checks.fits_in_memory("size", 8 * size * n_tokens * (dim + subset_size), "draw inputs")
    rng = checks.generator("rng", rng)
    y = random_subsets(n_tokens, subset_size, size=size * n_tokens, rng=rng)
    z = rng.normal(size=(size, n_tokens, dim))
    norm = np.sqrt(np.einsum("...d, ...d", z, z))
    z *= (rng.random(norm.shape) ** (1 / dim) / norm)[..., None]
    return z, y.reshape(size, n_tokens, subset_size)


def random_subsets(n_tokens: int, subset_size: int, *, size: int, rng: np.random.Generator | int) -> np.ndarray:
    """``size`` sets of q of N tokens, uniform and independent: (size, q), each row rising."""
    n_tokens, subset_size = _sizes(n_tokens, subset_size)
    size = checks.integer("size", size, minimum=1)
    checks.fits_in_memory("size", 8 * size * subset_size, "draw sets")
    rng = checks.generator("rng", rng)
    sets = np.empty((size, subset_size), dtype=np.int64)
    for k, last in enumerate(range(n_tokens - subset_size, n_tokens)):
        # Floyd's algorithm, in all rows at once: a token drawn again gives way to the last one, which is not there yet.
        drawn = rng.integers(last + 1, size=size)
        again = (sets[:, :k] == drawn[:, None]).any(axis=1)
        sets[:, k] = np.where(again, last, drawn)
    sets.sort(axis=1)
    return sets


def all_subsets(n_tokens: int, subset_size: int) -> np.ndarray:
    """All sets of q of N tokens, in lexicographic order: (binomial(N, q), q)."""
    n_tokens, subset_size = _sizes(n_tokens, subset_size)
    what = f"sets of {subset_size} of {n_tokens} tokens"
    if min(subset_size, n_tokens - subset_size) > _MOST_FACTORS:
        raise checks.reject("n_tokens", f"give at most {_MOST_CASES} cases", f"far more {what}")
    count = _few_enough("n_tokens", math.comb(n_tokens, subset_size), what)
    checks.fits_in_memory("n_tokens", 8 * count * subset_size, "list sets")
    numbers = itertools.chain.from_iterable(itertools.combinations(range(n_tokens), subset_size))
    return np.fromiter(numbers, np.int64, count * subset_size).reshape(count, subset_size)


def adversarial_subsets(keys: ArrayLike, subset_size: int, *, sign: int = 1) -> np.ndarray:
    """For each key, the q other ones whose inner product with it is the largest: the sets that are hard for these keys.

    Parameters
    ----------
    keys : (N, m) array
    subset_size : int
        q, below N.
    sign : 1 or -1
        -1 takes the smallest inner products instead.

    Returns
    -------
    (N, q) integers, each row rising: row i does not hold i
    """
    keys = checks.finite_array("keys", keys, ndim=2)
    n_tokens, subset_size = _sizes(len(keys), subset_size)
    if subset_size == n_tokens:
        raise checks.reject("subset_size", f"be below the number of keys, {n_tokens}", subset_size)
    if abs(checks.integer("sign", sign, minimum=-1)) != 1:
        raise checks.reject("sign", "be 1 or -1", sign)
    product = sign * (keys @ keys.T)
    np.fill_diagonal(product, -np.inf)
    return np.sort(np.argsort(-product, axis=1, kind="stable")[:, :subset_size], axis=1)


def match2(x: ArrayLike, modulus: int) -> np.ndarray:
    """``Match2(X)_i = 1{exists j: x_i + x_j = 0 mod M}``.

    Parameters
    ----------
    x : (.., N) integers in [0, M)
    modulus : int
        M, from 2 to 2^61.

    Returns
    -------
    (.., N) array of bool

    Examples
    --------
    >>> match2([1, 4, 2, 5], 5)
    Traceback (most recent call last):
        ...
    ValueError: `x` must hold integers in [0, 5), but got 5
    >>> match2([1, 4, 2, 0], 5)
    array([ True,  True, False,  True])
    """
    x, modulus = _integers(x, modulus)
    return _search(x, modulus, lambda block: (-block) % modulus, x.shape[-1])


def match3(x: ArrayLike, modulus: int) -> np.ndarray:
    """``Match3(X)_i = 1{exists j, k: x_i + x_j + x_k = 0 mod M}``, j = k and j = i allowed.

    Parameters
    ----------
    x : (.., N) integers in [0, M)
    modulus : int
        M, from 2 to 2^61.

    Returns
    -------
    (.., N) array of bool
    """
    x, modulus = _integers(x, modulus)
    n_tokens = x.shape[-1]
    found = _search(x, modulus, lambda block: -(block[:, :, None] + block[:, None, :]) % modulus, n_tokens**2)
    return found.reshape(*x.shape, n_tokens).any(axis=-1)


def _search(x, modulus, wanted, size) -> np.ndarray:
    """Whether each of the ``size`` numbers ``wanted(row)`` occurs in its row of x."""
    rows = x.reshape(-1, x.shape[-1])
    # Rows are told apart by multiples of M, so that one search serves all of them.
    block = max(1, min(current().numbers // size, 2**62 // modulus - 1))
    found = []
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        offset = modulus * np.arange(len(part))
        present = np.sort(part + offset[:, None], axis=1).ravel()
        target = (wanted(part).reshape(len(part), -1) + offset[:, None]).ravel()
        place = np.minimum(np.searchsorted(present, target), present.size - 1)
        found.append(present[place] == target)
    return np.concatenate(found).reshape(*x.shape[:-1], -1)


def match_tokens(x: ArrayLike, *, blank: bool = True) -> np.ndarray:
    """The tokens of Match2 or Match3 as rows of one number, with the blank token (`BLANK`) last if ``blank``."""
    x, blank = _whole("x", x), checks.flag("blank", blank)
    if x.min() < 0:
        raise checks.reject("x", "hold integers of at least 0", x.min())
    if blank:
        x = np.concatenate([x, np.full((*x.shape[:-1], 1), BLANK)], axis=-1)
    return x[..., None].astype(np.float64)


def random_match(
    n_tokens: int, modulus: int, *, size: int, rng: np.random.Generator | int, order: int = 2, planted: float = 0.0
) -> np.ndarray:
    """``size`` random inputs, (size, N): uniform integers of [0, M), a share ``planted`` of them with a match.

    A planted match is a random token set to minus the sum of ``order - 1`` random other ones (fewer where N is less):
    uniform inputs rarely have one when M is far above N^(order - 1).

    Parameters
    ----------
    n_tokens, modulus, size : int
    rng : numpy.random.Generator
    order : 2 or 3
        Of Match2 or of Match3.
    planted : float
        In [0, 1].
    """
    n_tokens, modulus = checks.integer("n_tokens", n_tokens, minimum=1), _modulus(modulus)
    size, order = checks.integer("size", size, minimum=1), _order(order)
    planted = checks.non_negative("planted", planted)
    if planted > 1:
        raise checks.reject("planted", "be at most 1", planted)
    checks.fits_in_memory("size", 8 * size * (n_tokens + 1), "draw inputs")
    rng = checks.generator("rng", rng)
    x = rng.integers(modulus, size=(size, n_tokens))
    chosen = np.flatnonzero(rng.random(size) < planted)
    if n_tokens > 1 and chosen.size:
        members = random_subsets(n_tokens, min(order, n_tokens), size=chosen.size, rng=rng)
        members = rng.permuted(members, axis=1)
        others = x[chosen[:, None], members[:, 1:]]
        total = others.sum(axis=1) if members.shape[1] == order else 2 * others[:, 0]
        x[chosen, members[:, 0]] = -total % modulus
    return x


def all_match(n_tokens: int, modulus: int) -> np.ndarray:
    """All M^N inputs, in lexicographic order: (M^N, N)."""
    n_tokens, modulus = checks.integer("n_tokens", n_tokens, minimum=1), _modulus(modulus)
    what = f"inputs of {n_tokens} tokens mod {modulus}"
    if n_tokens > _MOST_FACTORS:
        raise checks.reject("n_tokens", f"give at most {_MOST_CASES} cases", f"far more {what}")
    count = _few_enough("n_tokens", modulus**n_tokens, what)
    number = np.arange(count)
    return np.stack([number // modulus ** (n_tokens - 1 - i) % modulus for i in range(n_tokens)], axis=1)


def adversarial_match(n_tokens: int, modulus: int, *, order: int = 2) -> np.ndarray:
    """Inputs that miss a match by one as often as they can, and ones with a single match among such: (n, N).

    Constant rows c, with ``order * c`` next to 0 mod M or at it; and rows that start with some a, with the rest such
    that a's sums are 1 or -1, with and without one match of a.

    Parameters
    ----------
    n_tokens, modulus : int
    order : 2 or 3
        Of Match2 or of Match3.
    """
    n_tokens, modulus = checks.integer("n_tokens", n_tokens, minimum=1), _modulus(modulus)
    order = _order(order)
    checks.fits_in_memory("n_tokens", 8 * 52 * (order - 1) * n_tokens, "list inputs")
    rows = []
    for wrap in range(order):
        constant = wrap * modulus // order
        rows += [np.full(n_tokens, value) for value in (constant, constant + 1)]
    for first, miss in itertools.product((0, 1, modulus // 4, modulus // 3, modulus // 2, modulus - 1), (1, -1)):
        # For order 3 the sums of neighbours in the rest, `second` and the other one, take the place of single tokens.
        for second in (0,) if order == 2 else (0, 1, modulus // 4, (modulus - first) // 2):
            rest = np.where(np.arange(n_tokens) % 2, -first - second + miss, second if order == 3 else -first - miss)
            row = np.append(first, rest[: n_tokens - 1])
            rows.append(row)
            one = row.copy()
            one[1:order] = [-first] if order == 2 else [second, -first - second][: n_tokens - 1]
            rows.append(one)
    return np.unique(np.stack(rows) % modulus, axis=0)


def _sizes(n_tokens, subset_size) -> tuple[int, int]:
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    subset_size = checks.integer("subset_size", subset_size, minimum=1)
    if subset_size > n_tokens:
        raise checks.reject("subset_size", f"be at most the number of tokens, {n_tokens}", subset_size)
    return n_tokens, subset_size


def _modulus(modulus) -> int:
    modulus = checks.integer("modulus", modulus, minimum=2)
    if modulus > _LARGEST_MODULUS:
        raise checks.reject("modulus", f"be at most {_LARGEST_MODULUS}", modulus)
    return modulus


def _order(order) -> int:
    if checks.integer("order", order, minimum=2) > 3:
        raise checks.reject("order", "be 2 or 3", order)
    return int(order)


def _few_enough(name: str, count: int, what: str) -> int:
    if count > _MOST_CASES:
        raise checks.reject(name, f"give at most {_MOST_CASES} cases", f"{count} {what}")
    return count


def _whole(name: str, value: object) -> np.ndarray:
    array = checks.array(name, value, rule="be an array of integers")
    if array.dtype.kind not in "iu" or array.ndim == 0 or array.size == 0:
        raise checks.reject(name, "be an array of integers, not empty", f"dtype {array.dtype}, shape {array.shape}")
    return checks.integer_array(name, array)


def _integers(x, modulus) -> tuple[np.ndarray, int]:
    x, modulus = _whole("x", x), _modulus(modulus)
    bad = (x < 0) | (x >= modulus)
    if bad.any():
        raise checks.reject("x", f"hold integers in [0, {modulus})", x[bad][0])
    return x, modulus


def checked_sets(y: ArrayLike, n_tokens: int) -> np.ndarray:
    """Sets of tokens as a new int64 array (.., q); ``ValueError`` unless each row holds different tokens in [0, N)."""
    y = _whole("y", y)
    bad = (y < 0) | (y >= n_tokens)
    if bad.any():
        raise checks.reject("y", f"hold tokens in [0, {n_tokens})", y[bad][0])
    repeated = (np.diff(np.sort(y, axis=-1), axis=-1) == 0).any(axis=-1)
    if repeated.any():
        raise checks.reject("y", "hold each token once in a row", y[repeated][0].tolist())
    return y


def checked_qsa(z: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """An input of qSA as new arrays; ``ValueError`` unless z is in the unit ball and y has a set for each token."""
    z = checks.finite_array("z", z)
    if z.ndim < 2 or 0 in z.shape:
        raise checks.reject("z", "have the axes (.., token, number), none of them empty", f"shape {z.shape}")
    norm = np.linalg.norm(z, axis=-1)
    if norm.max() > 1 + 1e-12:
        raise checks.reject("z", "hold vectors of the unit ball", f"a norm of {norm.max()}")
    y = checked_sets(y, z.shape[-2])
    if y.shape[:-1] != z.shape[:-1]:
        raise checks.reject("y", f"have one set for each of the tokens {z.shape[:-1]}", f"shape {y.shape}")
    return z, y
