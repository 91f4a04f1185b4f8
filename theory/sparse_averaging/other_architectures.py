"""What sparse averaging costs fully connected and recurrent networks: witnesses and counts.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, the inefficiency of other architectures. Both grow
with the number of tokens N, where one attention unit grows with q.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import linprog

from dynamics.support import checks


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
    least N d' - k coordinates at +-1; with k <= N d'/2 and q <= N/4 some coordinate of q tokens has one sign, and the
    averages over those tokens are +1 and -1: an error of at least 1 in one of the two.

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
        With error 1 under the conditions above, and the best that the vertex offers beyond them.

    Raises
    ------
    ValueError
        If the first layer has no kernel, so that no two inputs need collide.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    value_dimension = checks.integer("value_dimension", value_dimension, minimum=1)
    q = checks.integer("q", q, minimum=1)
    if q > n_tokens:
        raise checks.reject("q", f"be at most `n_tokens` = {n_tokens}", q)
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


def state_count(n_tokens: int, *, read: int | None = None, outputs: str = "last") -> int:
    """Number of states that a recurrent network needs after ``read`` tokens, for q = 1 and z in {-1, +1}.

    Counted by brute force: two prefixes need different states when some continuation makes a required output differ.
    The logarithm to base 2 is the number of bits of the state.

    Parameters
    ----------
    n_tokens : int
        N; the time grows like (2N)^N, so that 4 is the limit for "all" and 10 for "last".
    read : int, optional
        Tokens read so far, from 0 to N. Default: N - 1.
    outputs : str
        "last": only the output of the last token counts, and the state needs N - 1 bits just before it. "all": the
        outputs of all tokens are given after the last one, so that the subsets read so far count too.

    Source: the bound Omega(N) of Sanford, Hsu, Telgarsky (2023) for recurrent networks.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    outputs = checks.one_of("outputs", outputs, ("last", "all"))
    limit = 10 if outputs == "last" else 4
    if n_tokens > limit:
        raise checks.reject("n_tokens", f"be at most {limit} to be counted by brute force", n_tokens)
    read = n_tokens - 1 if read is None else checks.integer("read", read, minimum=0)
    if read > n_tokens:
        raise checks.reject("read", f"be at most `n_tokens` = {n_tokens}", read)
    # With "last" the subset of no other token reaches an output: one choice stands for all.
    choices = [range(n_tokens) if outputs == "all" or i == n_tokens - 1 else (0,) for i in range(n_tokens)]
    behaviours = {
        tuple(
            tuple(values[j] for j in (subsets if outputs == "all" else subsets[-1:]))
            for subsets, values in _join(prefix, choices, n_tokens)
        )
        for prefix in _tokens(choices[:read])
    }
    return len(behaviours)


def _tokens(choices: Sequence[Sequence[int]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every (subsets, values) of the given tokens."""
    return itertools.product(itertools.product(*choices), itertools.product((-1, 1), repeat=len(choices)))


def _join(prefix: Any, choices: Any, n_tokens: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The whole input for every continuation of a prefix."""
    subsets, values = prefix
    for more_subsets, more_values in _tokens(choices[len(values) :]):
        yield subsets + more_subsets, values + more_values
