r"""The residual connection of Section 7, LN(LN(X^T b) + x_T): overlaps, the back-propagated gradient, local tokens.

With queries orthogonal to tokens the feature of class n is [f_n, e_psi(n)]/sqrt(2), where f_n is the feature without
the connection. Theorem 1 holds with the Gram matrix (F^T F + Psi)/2 in the place of F^T F, Psi_nn' =
1[psi(n) = psi(n')]. The paper argues that beta_nn' is then about f_n . f_n' + Psi_nn'. A token is *locally* distinct if
it is distinct within the classes of its query. The paper argues that such a token gains attention, even if classes of
other queries share it.

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 7.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from theory.scan_and_snap.bounds import inner_coefficients
from theory.statements import Runs


def unit(shares: np.ndarray) -> np.ndarray:
    """Features f_n, one row per class."""
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def gram(shares: np.ndarray, query: np.ndarray) -> np.ndarray:
    """(f_n . f_n' + 1[psi(n) = psi(n')])/2 (K, K), from attention shares or probabilities (K, tokens)."""
    features = unit(shares)
    return (features @ features.T + (query[:, None] == query)) / 2


def beta(overlaps: np.ndarray, vocab_size: int) -> np.ndarray:
    """-((I - E') u_n)_n' in row n', column n, of Theorem 1 (88) without noise; the diagonal is -iota_n."""
    return -np.linalg.solve(overlaps, inner_coefficients(len(overlaps), vocab_size))


def speed(shares: np.ndarray, query: np.ndarray, vocab_size: int, *, connected: bool = True) -> np.ndarray:
    """dz_m/dt of (10) per unit of eta_Z gamma/K: (queries, tokens), with the connection or without."""
    features = unit(shares)
    overlaps = gram(shares, query) if connected else features @ features.T
    # Divide by 2: the outer LN passes 1/sqrt(2) of the gradient on to f_n, and F has the same factor.
    signal = -(beta(overlaps, vocab_size).T @ features) / (2 if connected else 1)
    along = (features * signal).sum(axis=1, keepdims=True)
    out = np.zeros((query.max() + 1, shares.shape[1]))
    np.add.at(out, query, features * (signal - features * along))
    return out


def local_classes(
    n_queries: int, n_each: int, common: float, shared: float, *, every: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Features and queries of n_queries times n_each classes, equal up to the names of their tokens.

    Each class has three tokens. All classes of its query share the first (feature ``common``). The second, with feature
    ``shared``, is locally distinct but globally common: class j of every query has it, for every j or, without
    ``every``, for the first j only. The third, with the remaining norm, belongs to the class alone.
    """
    n_classes = n_queries * n_each
    query, own = np.divmod(np.arange(n_classes), n_each)
    features = np.zeros((n_classes, n_queries + n_each + n_classes))
    classes = np.arange(n_classes)
    features[classes, query] = common
    features[classes, n_queries + own] = np.where(every | (own == 0), shared, 0.0)
    features[classes, n_queries + n_each + classes] = np.sqrt(1 - (features**2).sum(axis=1))
    return features, query


def own_beta(n_each: Any) -> Any:
    """beta/(f_n.f_n' + 1) for the c = ``n_each`` classes of one query, with weak overlaps."""
    return 2 / (n_each + 1)


def local_share(n_queries: Any, n_each: Any) -> Any:
    """Threshold s: in `local_classes` the shared token gains if shared^2 < s common^2, for small squares and large M.

    To first order in the squares, G = (I + J/2 + (common^2 (J - I) + ..)/2 has beta = 2/(c + 1) within a query and
    2 shared^2 (c^2 + c - 1)/(c + 1)^2 between classes of two queries that share the token, with c classes a query; the
    token's speed is shared^2 [(c - 1) beta_within common^2 - (Q - 1) beta_between].
    """
    c = n_each
    return (c**2 - 1) / ((n_queries - 1) * (c**2 + c - 1))


def one_local_share(n_queries: Any, n_each: Any) -> Any:
    """`local_share` if only the first class of each query has a shared token: beta is 2 shared^2 c^2/(c + 1)^2."""
    return (n_each**2 - 1) / ((n_queries - 1) * n_each**2)


def random_classes(seed: int, n_queries: int, n_each: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and queries of random classes, weakly correlated: overlaps of 0.01 to 0.1.

    As in `local_classes`, with a further token common to all classes; every share is drawn independently.
    """
    rng = np.random.default_rng(seed)
    n_classes = n_queries * n_each
    features, query = local_classes(n_queries, n_each, 0.2, 0.2)
    features = np.concatenate([features, np.full((n_classes, 1), 0.1)], axis=1)
    return unit(features * rng.uniform(0.5, 1.3, features.shape)), query


_SHAPES = ((2, 2), (3, 2), (2, 3), (2, 5), (4, 4))
_DRAWS = 40


def _draws():
    for n_queries, n_each in _SHAPES:
        for seed in range(_DRAWS):
            yield n_queries, n_each, *random_classes(seed, n_queries, n_each)


def _same_query(runs: Runs, constant) -> float:
    """Largest relative error of the mean beta within queries against constant(c) (f . f' + 1)."""
    errors = []
    for _, n_each, features, query in _draws():
        within = (query[:, None] == query) & ~np.eye(len(query), dtype=bool)
        found = beta(gram(features, query), runs.setting.classes.vocab_size)[within].mean()
        expected = (features @ features.T + 1)[within].mean() * constant(n_each)
        errors.append(abs(found / expected - 1))
    return float(max(errors))


def beta_printed(runs: Runs, level: str) -> float:
    """beta within a query against f . f' + 1."""
    return _same_query(runs, lambda n_each: 1.0)


def beta_corrected(runs: Runs, level: str) -> float:
    """beta within a query against (f . f' + 1) 2/(c + 1), with c classes a query."""
    return _same_query(runs, own_beta)


def beta_apart(runs: Runs, level: str) -> float:
    """Share of draws in which the largest |beta| between queries is not below every beta within a query."""
    wrong = []
    for _, _, features, query in _draws():
        found = beta(gram(features, query), runs.setting.classes.vocab_size)
        same = query[:, None] == query
        off = ~np.eye(len(query), dtype=bool)
        wrong.append(found[same & off].min() <= np.abs(found[~same]).max())
    return float(np.mean(wrong))


def _standing(runs: Runs, tokens) -> float:
    """Share of tokens with a wrong direction; ``tokens(Q, c, n_tokens)`` gives rows, columns and the expected sign."""
    wrong = []
    for n_queries, n_each, features, query in _draws():
        moved = speed(features, query, runs.setting.classes.vocab_size)
        rows, columns, sign = tokens(n_queries, n_each, features.shape[1])
        wrong.append((sign * moved[rows, columns] <= 0).ravel())
    return float(np.concatenate(wrong).mean())


def local_common(runs: Runs, level: str) -> float:
    """Share of tokens common to the classes of a query, or to all classes, that do not lose attention."""

    def tokens(n_queries, n_each, n_tokens):
        each = np.arange(n_queries)
        return np.concatenate([each, each]), np.concatenate([each, np.full(n_queries, n_tokens - 1)]), -1

    return _standing(runs, tokens)


def own_distinct(runs: Runs, level: str) -> float:
    """Share of tokens of one class alone that do not gain attention."""

    def tokens(n_queries, n_each, n_tokens):
        classes = np.arange(n_queries * n_each)
        return classes // n_each, n_queries + n_each + classes, 1

    return _standing(runs, tokens)


def local_distinct(runs: Runs, level: str) -> float:
    """Share of tokens distinct within their query, and shared with other queries, that do not gain attention."""

    def tokens(n_queries, n_each, n_tokens):
        return np.arange(n_queries)[:, None], n_queries + np.arange(n_each), 1

    return _standing(runs, tokens)


def local_distinct_corrected(runs: Runs, level: str) -> float:
    """Share of wrong directions in equal classes, 5% below and above the threshold `local_share`."""
    wrong = []
    for (n_queries, n_each), every in itertools.product(_SHAPES, (True, False)):
        for common in (0.01, 0.05):
            edge = common * np.sqrt((local_share if every else one_local_share)(n_queries, n_each))
            for factor, sign in ((0.95, 1), (1.05, -1)):
                features, query = local_classes(n_queries, n_each, common, factor * edge, every=every)
                wrong.append(sign * speed(features, query, 10**9)[0, n_queries] <= 0)
    return float(np.mean(wrong))
