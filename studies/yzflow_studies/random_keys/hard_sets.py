"""Sets that are hard for exclusion, found by local search, and what the linear program says of them.

That m of about q log N is enough for *every* set is the theorem that Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv
2306.02896, cite; exclusion is ours, and tried on sets. The search and what it finds are ours too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from yzflow_sparse_averaging.instances import adversarial_subsets
from yzflow_sparse_averaging.keys import Certificate, as_subset, certificate, random_keys, smallest_dimension

from dynamics.support import checks

_MOST_STEPS = 10_000
_NEAR = 24  # how many of the keys nearest to the attacked one a member is exchanged for
_ATTACKED = 4  # how many of the keys nearest to the rest of the set may be the attacked one


@dataclass(frozen=True)
class Searched:
    """Result of `worst_case_dimension`.

    Attributes
    ----------
    tabulated : int
        Smallest m at which the sets closest to one other key all have a certificate by exclusion.
    searched : int
        Smallest m tried, from there in steps of 5%, at which no search found a set without one.
    failing : tuple of (int, tuple of int, float)
        For each set that was found: m, the set, and the smallest rho of any certificate, by the linear program.
    """

    tabulated: int
    searched: int
    failing: tuple[tuple[int, tuple[int, ...], float], ...]


def harder_set(
    keys: ArrayLike, start: ArrayLike, *, rng: np.random.Generator, steps: int = 400
) -> tuple[np.ndarray, Certificate]:
    """Local search from a set to one that exclusion finds harder: one without a certificate, if it comes to one.

    A step exchanges one member, half of the time for a key close to one that is already close to the others, else for
    any; it is taken unless the certificate gets shorter. Hard is a long certificate, and hardest none.

    Parameters
    ----------
    keys : (N, m) array
    start : (q,) array of int
        Where the search starts; q < N.
    rng : numpy.random.Generator
    steps : int
        Exchanges that are tried.

    Returns
    -------
    (q,) array of int, Certificate
        The last set, rising, and its certificate by exclusion, without a query where there is none.
    """
    keys = checks.finite_array("keys", keys, ndim=2)
    subset = as_subset("start", start, n_tokens=len(keys))
    if subset.size == len(keys):
        raise checks.reject("start", f"be smaller than the number of keys, {len(keys)}", subset.size)
    checks.instance("rng", rng, np.random.Generator, rule="be a numpy.random.Generator")
    steps = checks.integer("steps", steps, minimum=0, maximum=_MOST_STEPS)
    found = certificate(keys, subset, throw=False)
    for _ in range(steps):
        if found.query is None:
            break
        rest = np.delete(subset, rng.integers(subset.size))
        changed = np.append(rest, _newcomer(keys, rest, rng))
        if changed[-1] in subset:
            continue
        candidate = certificate(keys, changed, throw=False)
        if _length(candidate) >= _length(found):
            subset, found = changed, candidate
    return np.sort(subset), found


def worst_case_dimension(
    n_tokens: int, q: int, *, seed: int = 0, starts: int = 10, steps: int = 400, linear_programs: int = 3
) -> Searched:
    """Smallest m at which exclusion withstands a search for sets that it fails on.

    Parameters
    ----------
    n_tokens, q : int
        q < N.
    seed : int
        Of the keys, which are those of `smallest_dimension` at this seed, and of the search.
    starts : int
        Searches at each m, from those of the tabulated sets that have the longest certificates.
    steps : int
        Of each search.
    linear_programs : int
        For how many of the sets found at each m the smallest rho is computed.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=2, maximum=2**14)
    q = checks.integer("q", q, minimum=1, maximum=n_tokens - 1)
    starts = checks.integer("starts", starts, minimum=1, maximum=n_tokens)
    steps = checks.integer("steps", steps, minimum=0, maximum=_MOST_STEPS)
    seed, linear_programs = (
        checks.integer(name, number, minimum=0)
        for name, number in (("seed", seed), ("linear_programs", linear_programs))
    )
    maximum = int(16 * q * math.log(n_tokens) + 200)
    tabulated = smallest_dimension(n_tokens, q, rng=np.random.default_rng(seed), maximum=maximum)
    signs = random_keys(n_tokens, maximum, rng=np.random.default_rng(seed)) * math.sqrt(maximum)
    rng, failing, m = np.random.default_rng((seed, 1)), [], tabulated
    while m < maximum:
        keys = signs[:, :m] / math.sqrt(m)
        sets = adversarial_subsets(keys, q)
        hardest = np.argsort([-_length(certificate(keys, subset, throw=False)) for subset in sets], kind="stable")
        searched = [harder_set(keys, sets[k], rng=rng, steps=steps) for k in hardest[:starts]]
        missed = [subset for subset, found in searched if found.query is None]
        for subset in missed[:linear_programs]:
            best = certificate(keys, subset, method="linear program", throw=False).rho
            failing.append((m, tuple(subset.tolist()), best))
        if not missed:
            break
        m = math.ceil(1.05 * m)
    return Searched(tabulated, m, tuple(failing))


def _newcomer(keys: np.ndarray, rest: np.ndarray, rng: np.random.Generator) -> int:
    """A key to add to ``rest``."""
    if rng.random() < 0.5:
        return int(rng.integers(len(keys)))
    near = keys @ keys[rest].sum(axis=0)
    near[rest] = -np.inf
    attacked = int(np.argsort(-near)[rng.integers(min(_ATTACKED, len(keys) - rest.size))])
    near = keys @ keys[attacked]
    near[rest], near[attacked] = -np.inf, -np.inf
    return int(np.argsort(-near)[rng.integers(min(_NEAR, max(1, len(keys) - rest.size - 1)))])


def _length(found: Certificate) -> float:
    """Squared length of a certificate; infinite where there is none."""
    return math.inf if found.query is None else float(found.query @ found.query)
