"""Random keys and dual certificates: q-sparse averaging with one unit of dimension m = O(d' + q log N).

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, Theorem 2. Token ``i`` has a random key ``u_i``; the
query of a q-subset ``y`` is a temperature times a certificate ``w``: <w, u_j> = 1 for j in y, |<w, u_i>| <= rho else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dynamics.support import checks
from yzflow_sparse_averaging.instances import random_subsets

__all__ = [
    "Certificate",
    "Infeasible",
    "certificate",
    "error_bound",
    "guaranteed_dimension",
    "random_keys",
    "smallest_dimension",
    "temperature",
]

METHODS = ("exclusion", "minimum norm", "linear program")
RHO = 0.5
LEVEL = 0.35  # where exclusion pins a key that is too close; below rho to leave room
_EQUALITY = 1e-8  # largest |<w, u_j> - 1| that rounding may leave on y


class Infeasible(ValueError):
    """No certificate was found; ``certificate`` holds the best ``rho``, and no query."""

    def __init__(self, message: str, certificate: Certificate):
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple:
        # As BaseException's would call it with the message alone, and a pool of processes break on it.
        return type(self), (str(self), self.certificate)


@dataclass(frozen=True)
class Certificate:
    """Result of `certificate` for one subset.

    Attributes
    ----------
    query : (m,) array, or None
        The dual certificate w before the temperature; None where none was found.
    rho : float
        max |<w, u_i>| off the subset, for the best w tried; 0 if no key is off the subset, and infinite if no w has
        <w, u_j> = 1 on it.
    method : str
    pinned : tuple of int
        The keys that exclusion pinned.
    """

    query: np.ndarray | None
    rho: float
    method: str
    pinned: tuple[int, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether a certificate was found."""
        return self.query is not None


def random_keys(n_tokens: int, dimension: int, *, rng: np.random.Generator) -> np.ndarray:
    """Keys ``u_i = k_i / sqrt(m)``, k_i of m independent random signs: an (N, m) array with rows of norm one."""
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    dimension = checks.integer("dimension", dimension, minimum=1)
    checks.instance("rng", rng, np.random.Generator, rule="be a numpy.random.Generator")
    checks.fits_in_memory("dimension", 17 * n_tokens * dimension, "draw keys")
    signs = rng.integers(0, 2, size=(n_tokens, dimension), dtype=np.int8)
    return (2 * signs - 1) / math.sqrt(dimension)


def as_subset(name: str, value: object, *, n_tokens: int) -> np.ndarray:
    """A non-empty subset of [N] as sorted indices from 0."""
    subset = np.sort(checks.index_array(name, value, upper=n_tokens))
    if not subset.size:
        raise checks.reject(name, "not be empty", "no index")
    if (np.diff(subset) == 0).any():
        raise checks.reject(name, "hold each index once", f"{int(subset[:-1][np.diff(subset) == 0][0])} twice")
    return subset


def certificate(
    keys: ArrayLike,
    subset: ArrayLike,
    *,
    method: str = "exclusion",
    rho: float = RHO,
    level: float = LEVEL,
    throw: bool = True,
) -> Certificate:
    r"""A query direction that tells a subset from all other keys.

    - "minimum norm": the shortest w with <w, u_j> = 1 on y. For random y it is enough at m of about 11 to 13 q ln N;
      for all y it needs m of about 8 q^2 ln(N/q).
    - "exclusion": starts there; as long as some |<w, u_i>| > rho, the at most q worst keys above ``level`` are pinned
      at ``+-level``, and w is the shortest solution with them.
    - "linear program": the smallest rho of all w (HiGHS). Slow, but a refusal is a proof up to the solver's tolerance;
      the other methods may miss a w that exists.

    Parameters
    ----------
    keys : (N, m) array
    subset : (q,) array of int
        y, indices from 0.
    method : str
    rho : float
        Bound on |<w, u_i>| off y, in (0, 1).
    level : float
        Value of |<w, u_i>| at which exclusion pins a key, in (0, rho].
    throw : bool
        Raise if no certificate is found; otherwise return one without a query, with the best rho found.

    Raises
    ------
    Infeasible
        A ``ValueError`` with the best rho found, where no certificate was found: the dimension is too small.

    Source: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896, Theorem 2; exclusion is ours.
    """
    keys = checks.finite_array("keys", keys, ndim=2)
    subset = as_subset("subset", subset, n_tokens=len(keys))
    method = checks.one_of("method", method, METHODS)
    rho, level = _levels(rho, level)
    throw = checks.flag("throw", throw)
    if method == "linear program":
        found = _linear_program(keys, subset, rho)
    else:
        fit = _pin(lambda chosen: keys @ keys[chosen].T, subset, keys.shape[1], method, rho, level)
        query = None if fit.coefficients is None else fit.coefficients @ keys[fit.chosen]
        found = Certificate(query, fit.rho, method, tuple(int(i) for i in fit.chosen[subset.size :]))
    if throw and not found.feasible:
        raise Infeasible(
            f"`keys` must have enough dimensions to tell `subset` from the other keys at rho = {rho:g}, but with "
            f"m = {keys.shape[1]} the best of method {method!r} is {found.rho:.3g}",
            found,
        )
    return found


def temperature(*, n_tokens: int, q: int, error: float, rho: float = RHO) -> float:
    """tau = ln(2 (N - q)/(q eps)) / (1 - rho), with which attention is within eps of 1_y/q in L1; 0 where N = q."""
    n_tokens, q = checked_sizes(n_tokens, q)
    error = checks.positive("error", error)
    rho = checks.real("rho", rho)
    if rho >= 1:
        raise checks.reject("rho", "be below 1", rho)
    odds = 2 * (n_tokens - q) / (q * error)
    return math.log(odds) / (1 - rho) if odds > 1 else 0.0


def error_bound(tau: float, *, n_tokens: int, q: int, rho: float = RHO) -> float:
    """Bound 2 (N - q)/q exp(-tau (1 - rho)) on ||attention - 1_y/q||_1; `temperature` is its inverse."""
    n_tokens, q = checked_sizes(n_tokens, q)
    tau, rho = checks.non_negative("tau", tau), checks.real("rho", rho)
    if rho > 1:
        raise checks.reject("rho", "be at most 1", rho)
    return 2 * (n_tokens - q) / q * math.exp(-tau * (1 - rho))


def guaranteed_dimension(n_tokens: int, q: int, *, failure: float = 0.01) -> int:
    """m = 210 q (ln(N/q) + 9/2) + 105 ln(2/p): random signs serve all sets of q tokens, but for a probability p.

    Proved by restricted isometry of order 2q, for 2q <= N; `smallest_dimension` measures far smaller m. Rounded up.

    Parameters
    ----------
    n_tokens, q : int
        2q <= N.
    failure : float
        p, in (0, 1].
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    if 2 * q > n_tokens:
        raise checks.reject("q", f"be at most half of `n_tokens` = {n_tokens}", q)
    failure = checks.positive("failure", failure)
    if failure > 1:
        raise checks.reject("failure", "be at most 1", failure)
    return math.ceil(210 * q * (math.log(n_tokens / q) + 4.5) + 105 * math.log(2 / failure))


def smallest_dimension(
    n_tokens: int,
    q: int,
    *,
    rng: np.random.Generator,
    method: str = "exclusion",
    sets: str = "adversarial",
    n_sets: int | None = None,
    maximum: int | None = None,
    rho: float = RHO,
    level: float = LEVEL,
) -> int:
    """Smallest dimension m at which every set of a family has a certificate, by bisection over m.

    The keys are the first m columns of one matrix of random signs, so that m only adds columns. The outcome is nearly
    monotone in m and not exactly: the answer has all certificates, and m - 1 has not.

    Parameters
    ----------
    n_tokens, q : int
        q < N.
    rng : numpy.random.Generator
        Of the keys, then of the random sets.
    method : str
        "exclusion" or "minimum norm".
    sets : str
        "adversarial": the sets closest to each of ``n_sets`` other keys. "random": ``n_sets`` uniform sets.
    n_sets : int, optional
        Default: N.
    maximum : int, optional
        Largest m tried. Default: 13 q^2 ln(N/q) + 200 for minimum norm, 8 q ln N + 100 for exclusion.

    Raises
    ------
    Infeasible
        If not even ``maximum`` is enough, with the best rho of the first set that fails.
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    if q == n_tokens:
        raise checks.reject("q", "be below `n_tokens`", q)
    method = checks.one_of("method", method, METHODS[:2])
    sets = checks.one_of("sets", sets, ("adversarial", "random"))
    n_sets = n_tokens if n_sets is None else checks.integer("n_sets", n_sets, minimum=1)
    if sets == "adversarial" and n_sets > n_tokens:
        raise checks.reject("n_sets", f"be at most the number of keys {n_tokens}", n_sets)
    rho, level = _levels(rho, level)
    if maximum is None:
        wide = 13 * q * q * math.log(n_tokens / q) + 200
        maximum = int(wide if method == "minimum norm" else 8 * q * math.log(n_tokens) + 100)
    maximum = checks.integer("maximum", maximum, minimum=q)
    checks.instance("rng", rng, np.random.Generator, rule="be a numpy.random.Generator")
    checks.fits_in_memory("n_tokens", 5 * n_tokens * maximum + 8 * n_tokens**2, "compare keys")
    # float32 holds sums of signs exactly up to 2^24 dimensions.
    signs = (2 * rng.integers(0, 2, size=(n_tokens, maximum), dtype=np.int8) - 1).astype(np.float32)
    order = list(range(n_sets))
    family = random_subsets(n_tokens, q, size=n_sets, rng=rng) if sets == "random" else None

    def failure(m: int) -> _Fit | None:
        gram = (signs[:, :m] @ signs[:, :m].T).astype(float) / m
        subsets = _closest(gram[:n_sets], q) if family is None else family
        for place, i in enumerate(order):
            fit = _pin(lambda chosen: gram[chosen].T, subsets[i], m, method, rho, level)
            if fit.coefficients is None:
                order.insert(0, order.pop(place))  # a set that failed once is likely to fail at the next m too
                return fit
        return None

    missed = failure(maximum)
    if missed is not None:
        raise Infeasible(
            f"`maximum` must be enough for a certificate of every set, but got {maximum} with rho {missed.rho:.3g}",
            Certificate(None, missed.rho, method),
        )
    low, high = q - 1, maximum
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(middle) is None else (middle, high)
    return high


@dataclass(frozen=True)
class _Fit:
    """w = sum_k coefficients_k u_chosen_k; coefficients are None where rho is too large."""

    chosen: np.ndarray
    coefficients: np.ndarray | None
    rho: float


def _pin(
    columns: Callable[[np.ndarray], np.ndarray], subset: np.ndarray, m: int, method: str, rho: float, level: float
) -> _Fit:
    """Minimum-norm w with 1 on the subset and pinned scores; ``columns(chosen)`` is from the keys' Gram matrix."""
    outside = np.ones(len(columns(subset[:1])), bool)
    outside[subset] = False
    chosen, target, gram = subset, np.ones(subset.size), columns(subset)
    best = math.inf
    while chosen.size <= m:
        try:
            coefficients = cho_solve(cho_factor(gram[chosen]), target)
        except LinAlgError:  # dependent keys
            break
        scores = gram @ coefficients
        if np.abs(scores[chosen] - target).max() > _EQUALITY:
            break
        size = np.where(outside, np.abs(scores), 0.0)
        best = min(best, float(size.max()))
        if size.max() <= rho:
            return _Fit(chosen, coefficients, float(size.max()))
        if method == "minimum norm":
            break
        size[chosen] = 0.0
        worst = np.argsort(-size)[: subset.size]
        worst = worst[size[worst] > level]
        if worst.size == 0:  # rounding alone leaves a pinned key above rho
            break
        chosen = np.concatenate([chosen, worst])
        target = np.concatenate([target, level * np.sign(scores[worst])])
        gram = np.hstack([gram, columns(worst)])
    return _Fit(chosen, None, best)


def _closest(gram: np.ndarray, q: int) -> np.ndarray:
    """`instances.adversarial_subsets` of the first keys, from given inner products."""
    products = gram.copy()
    np.fill_diagonal(products, -np.inf)
    return np.argpartition(-products, q - 1, axis=1)[:, :q]


def _linear_program(keys: np.ndarray, subset: np.ndarray, rho: float) -> Certificate:
    from scipy.optimize import linprog  # a tenth of a second, which every sweep would wait

    m = keys.shape[1]
    off = np.delete(keys, subset, axis=0)
    ones = np.ones((len(off), 1))
    result = linprog(
        np.append(np.zeros(m), 1.0),
        A_ub=np.block([[off, -ones], [-off, -ones]]) if len(off) else None,
        b_ub=np.zeros(2 * len(off)) if len(off) else None,
        A_eq=np.hstack([keys[subset], np.zeros((subset.size, 1))]),
        b_eq=np.ones(subset.size),
        bounds=[(None, None)] * m + [(0, None)],
    )
    if result.status == 2:  # no w is 1 on the subset
        return Certificate(None, math.inf, "linear program")
    if not result.success:
        raise RuntimeError(f"the linear program of the certificate failed: {result.message}")
    query = result.x[:m]
    reached = float(np.abs(off @ query).max(initial=0.0))
    return Certificate(query if reached <= rho else None, reached, "linear program")


def checked_sizes(n_tokens: int, q: int) -> tuple[int, int]:
    """N and q as integers, q at most N."""
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    q = checks.integer("q", q, minimum=1)
    if q > n_tokens:
        raise checks.reject("q", f"be at most `n_tokens` = {n_tokens}", q)
    return n_tokens, q


def _levels(rho: float, level: float) -> tuple[float, float]:
    rho, level = checks.positive("rho", rho), checks.positive("level", level)
    if rho >= 1:
        raise checks.reject("rho", "be below 1", rho)
    if level > rho:
        raise checks.reject("level", f"be at most `rho` = {rho:g}", level)
    return rho, level
