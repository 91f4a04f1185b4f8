"""Cost of sparse averaging for fully connected networks: inputs that a narrow first layer cannot tell apart.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, the inefficiency of other architectures. It grows
with the number of tokens N, where one attention unit grows with q. Recurrent networks:
`theory.sparse_averaging.recurrent`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from dynamics.support import checks
from theory.sparse_averaging.keys import checked_sizes


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
        Half their distance there: any output that is the same for both inputs misses one average by at least this.
    """

    values: np.ndarray
    subset: np.ndarray
    coordinate: int
    error: float


def collision_error(n_tokens: int, q: int, *, width: int, value_dimension: int = 1) -> float:
    r"""Error that every network with a first layer of width k has on some input, whatever its weights.

    The larger of two bounds for every first layer (`theory.sparse_averaging.proofs.fully_connected`), or 0 without one:

    - min(1, (N - k/d')/(2q)) for q <= N/2. It is at least 1 - k/(N d'), the share of the values that the layer lacks.
    - 1/(2q - 1) for k < N d' and q < N. For d' = 1, k = N - 1 it is exact: for the layer whose kernel is spanned by
      (1, -1/(2q - 1), ..) a network attains it.

    For q > N/2 the sum of all values, one number for each coordinate, is off an average by (N - q)/q only, and at q = N
    it is all that is asked for.

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
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    width = checks.integer("width", width, minimum=0)
    value_dimension = checks.integer("value_dimension", value_dimension, minimum=1)
    if width >= n_tokens * value_dimension or q == n_tokens:
        return 0.0
    many = min(1.0, (n_tokens - width / value_dimension) / (2 * q)) if 2 * q <= n_tokens else 0.0
    return max(many, 1 / (2 * q - 1))


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
    least N d' - k coordinates at +-1, N - k/d' of them in one coordinate: the average over the q largest or that over
    the q smallest entries there is off zero by `collision_error` at least, 1 for k <= d' (N - 2q).

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
        With `collision_error` at least, and the best that the vertex offers.

    Raises
    ------
    ValueError
        If the first layer has no kernel, so that no two inputs need collide.
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
