"""Cost of sparse averaging for fully connected networks: inputs that a narrow first layer cannot tell apart.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, the inefficiency of other architectures. It grows
with the number of tokens N, where one attention unit grows with q. Recurrent networks:
`yzflow_sparse_averaging.recurrent`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from dynamics.support import checks
from yzflow_sparse_averaging.keys import checked_sizes


@dataclass(frozen=True)
class Collision:
    """Two inputs that a first layer cannot tell apart, and a subset on which their sparse averages differ.

    Attributes
    ----------
    values : (N, d') array
        ``z`` of one input, all entries in [-1, 1]; the other input has ``-z`` and the same subsets.
    subset : (q,) array of int
        The set ``y`` of the token that is asked; indices from 0.
    coordinate : int
        The coordinate of the output in which the two averages are furthest apart.
    error : float
        Half the distance of the two averages there: an equal output for both inputs has at least this error.
    """

    values: np.ndarray
    subset: np.ndarray
    coordinate: int
    error: float


def collision_error(n_tokens: int, q: int, *, width: int, value_dimension: int = 1) -> float:
    r"""Least error of networks with a first layer of width k, over all weights.

    Over all z in the cube, entries from -1 to 1, the error is the largest difference of an entry. `sparse_average`
    takes z from the unit ball: `ball_error` has what is known there.

    With r = ceil(N - k/d') the numbers that some coordinate lacks and m = min(q, N - q), it is for every q < N and
    d' <= k < N d'

    - min(m, r/2)/q for even r,
    - (r + 1/(2q - r))/(2q) for odd r < 2m, and m/q for odd r > 2m,

    and one for k < d' (`yzflow_sparse_averaging.proofs.fully_connected`). It is attained (`best_first_layer`). For
    q <= N/2 it is at least 1 - k/(N d'), and one just for k < d' (N - 2q + 2).

    Parameters
    ----------
    n_tokens, q : int
        q <= N.
    width : int
        k.
    value_dimension : int
        d'.

    Examples
    --------
    >>> collision_error(64, 16, width=32), collision_error(64, 32, width=32), collision_error(64, 16, width=63)
    (1.0, 0.5, 0.03225806451612903)
    >>> collision_error(8, 6, width=5, value_dimension=2) == 2 / 6
    True
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    width = checks.integer("width", width, minimum=0)
    value_dimension = checks.integer("value_dimension", value_dimension, minimum=1)
    if width >= n_tokens * value_dimension:
        return 0.0
    if width < value_dimension:
        return 1.0
    if q == n_tokens:
        return 0.0
    lacking, most = _lacking(n_tokens, width, value_dimension), min(q, n_tokens - q)
    if lacking % 2 == 0 or lacking > 2 * most:
        return min(most, lacking / 2) / q
    return (lacking + 1 / (2 * q - lacking)) / (2 * q)


def ball_error(n_tokens: int, q: int, *, width: int, value_dimension: int = 1) -> tuple[float, float]:
    r"""Bounds of the least error of networks with a first layer of width k, for values in the unit ball of R^d'.

    Errors by Euclidean norm. Both are equal, and the least error known, for d' = 1, q = 1, q = N - 1, k >= d'(N - 1),
    or k < d'. Elsewhere the lower one is the largest of `collision_error` over sqrt(d'), 1/(2q - 1), and the error of
    one number a token at width k; the upper one is that at the width k/d', rounded down, by a layer that reads the same
    combinations of tokens in each coordinate (`yzflow_sparse_averaging.proofs.unit_ball`).

    Parameters
    ----------
    n_tokens, q, width, value_dimension : int
        As in `collision_error`.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> ball_error(3, 2, width=3, value_dimension=2)
    (0.5, 0.5)
    """
    cube = collision_error(n_tokens, q, width=width, value_dimension=value_dimension)
    if cube in (0.0, 1.0) and (width < value_dimension or cube == 0):
        return cube, cube
    high = collision_error(n_tokens, q, width=width // value_dimension)
    low = max(cube / value_dimension**0.5, 1 / (2 * q - 1))
    if width < n_tokens:
        low = max(low, collision_error(n_tokens, q, width=width))
    if q == n_tokens - 1 and width < value_dimension * (n_tokens - 1):
        low = max(low, 1 / q)
    return min(low, high), high


def _lacking(n_tokens: int, width: int, value_dimension: int) -> int:
    """r: least number of a coordinate's numbers that a layer of this width lacks."""
    return -((width - n_tokens * value_dimension) // value_dimension)


def best_first_layer(n_tokens: int, q: int, *, width: int, value_dimension: int = 1) -> np.ndarray:
    r"""First layer of width k with the least possible error, `collision_error`, for z in the cube.

    For z in the unit ball, errors by Euclidean norm, it may err by more, where d' does not divide k: its coordinates
    then read different combinations. At (N, q, d', k) = (3, 2, 2, 3) it errs by 1/sqrt(3) in the ball and by
    1/2 in the cube; the sum of all values, two of the three rows, errs by 1/2 in the ball, too.

    Each coordinate has rows of its own, k/d' of them, rounded down or up. At d' = 1 the kernel, r = N - k numbers, has
    values of sum zero on r + 1 tokens, and zeros elsewhere, for even r: the positive ones sum to r/2 at most. For odd
    r = 2t + 1 below 2 min(q, N - q) it has one value w, -w/(2q - r) on N - r - 1 others, and r values of the sum
    -w/(2q - r): at most t + 1 are 1 where t are -1. Else it is that of the sum of all values, with what further rows
    add.

    Parameters
    ----------
    n_tokens, q, width : int
        N; q < N; d' <= k < N d'.
    value_dimension : int
        d'.

    Returns
    -------
    (k, N d') array
        Token by token, as `collision` takes it.

    Examples
    --------
    >>> layer = best_first_layer(6, 3, width=2)
    >>> collision(layer, 3, n_tokens=6).error <= collision_error(6, 3, width=2)
    True
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    d = checks.integer("value_dimension", value_dimension, minimum=1)
    width = checks.integer("width", width, minimum=d, maximum=n_tokens * d - 1)
    if q == n_tokens:
        raise checks.reject("q", f"be below `n_tokens` = {n_tokens}, where one sum is exact", q)
    layer, row = np.zeros((width, n_tokens, d)), 0
    for coordinate in range(d):
        own = _coordinate_layer(n_tokens, q, width // d + (coordinate < width % d))
        layer[row : row + len(own), :, coordinate] = own
        row += len(own)
    return layer.reshape(width, n_tokens * d)


def _coordinate_layer(n_tokens: int, q: int, width: int) -> np.ndarray:
    """`best_first_layer` of one coordinate, (k, N), 1 <= k <= N."""
    lacking, rows = n_tokens - width, np.eye(n_tokens)
    if lacking % 2 == 0 or lacking > 2 * min(q, n_tokens - q):
        # The tokens beyond the first r + 1, each by itself, and the sum of these.
        return np.vstack([rows[lacking + 1 :], rows[: lacking + 1].sum(axis=0)])
    spread = 1 / (2 * q - lacking)
    tied = rows[lacking + 1 :] + spread * rows[lacking]
    return np.vstack([tied, rows[:lacking].sum(axis=0) + spread * rows[lacking]])


def collision(
    first_layer: ArrayLike,
    q: int,
    *,
    n_tokens: int,
    value_dimension: int = 1,
    rng: np.random.Generator | None = None,
) -> Collision:
    r"""Inputs that collide in a fully connected network whose first layer has the weights ``first_layer`` on z.

    The first layer sees W z + (a function of the subsets) with W of shape (k, N d'). For k < N d' some z has W z = 0,
    and the inputs z and -z have the same first layer. A vertex of the kernel cut with the cube [-1, 1]^{N d'} has at
    least N d' - k entries at +-1, N - k/d' of them in one coordinate: for q <= N/2 the average over the q largest or
    that over the q smallest entries there is off zero by `collision_error` at least, 1 for k < d' (N - 2q + 2). For
    q > N/2 the vertex that is found is off by 1/(2q - 1) at least, and some vertex by `collision_error`: one where
    numbers at 1 and at -1 are as many as can be.

    Parameters
    ----------
    first_layer : (k, N d') array
        Weights on the values, token by token.
    q : int
        At most N.
    n_tokens, value_dimension : int
        N and d'.
    rng : numpy.random.Generator, optional
        Chooses the vertex. Default: seed 0.

    Returns
    -------
    Collision
        With the best error that the vertex offers.

    Raises
    ------
    ValueError
        If the first layer has no kernel: then no two inputs need to collide.
    """
    from scipy.optimize import linprog  # a tenth of a second, which every sweep would wait

    n_tokens, q = checked_sizes(n_tokens, q)
    value_dimension = checks.integer("value_dimension", value_dimension, minimum=1)
    weights = checks.finite_array("first_layer", first_layer, ndim=2)
    size = n_tokens * value_dimension
    if weights.shape[1] != size:
        raise checks.reject("first_layer", f"have N d' = {size} columns", f"shape {weights.shape}")
    kernel = null_space(weights) if len(weights) else np.eye(size)
    if not kernel.shape[1]:
        raise checks.reject("first_layer", "have a kernel, hence a rank below N d'", f"rank {size}")
    rng = checks.generator("rng", 0 if rng is None else rng)
    # The simplex method ends at a vertex, the extreme point in a random direction.
    direction = kernel @ rng.standard_normal(kernel.shape[1])
    constraints = {"A_eq": weights, "b_eq": np.zeros(len(weights))} if len(weights) else {}
    result = linprog(-direction, **constraints, bounds=[(-1, 1)] * size, method="highs-ds")
    if not result.success:
        raise RuntimeError(f"the linear program of the collision failed: {result.message}")
    # Projected, for the solver meets W z = 0 only within its tolerance; then back into the cube.
    values = kernel @ (kernel.T @ result.x)
    values = (values / max(1.0, float(np.abs(values).max()))).reshape(n_tokens, value_dimension)
    found = []
    for coordinate, sign in itertools.product(range(value_dimension), (1, -1)):
        subset = np.sort(np.argsort(-sign * values[:, coordinate], kind="stable")[:q])
        error = float(sign * values[subset, coordinate].mean())
        found.append(Collision(sign * values, subset, coordinate, error))
    return max(found, key=lambda collision: collision.error)
