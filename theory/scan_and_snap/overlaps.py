"""Numerical checks of Scan and Snap on overlaps of classes: the sign of xi_n, beta, and the eigenvalues of E and E'.

Every function takes runs and a level, as in `theory.scan_and_snap.bounds`, and uses the setting's overlaps or random
overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from theory.scan_and_snap.bounds import inner_coefficients, xi_over_gamma
from theory.statements import Runs


def _sharp_bound(n_classes: int) -> float:
    """Bound on |lambda_1(E)|: below it every xi_n is positive, for every M."""
    return 1 / np.sqrt(max(n_classes - 2, 1))


def theorem1a(runs: Runs, level: str) -> float:
    """Share of classes with xi_n <= 0 among overlaps with |lambda_1(E)| just below 1/sqrt(K - 2): stars and random."""
    rng = np.random.default_rng(0)
    wrong = []
    for n_classes in (3, 4, 5, 8):
        star = np.zeros((n_classes, n_classes))
        star[1, 2:] = star[2:, 1] = 1
        touch = np.zeros_like(star)
        touch[0, 1] = touch[1, 0] = 1e-6
        draws = [np.triu(rng.random(star.shape) ** power, 1) for power in (0.2, 1, 20)]
        for pattern in (star, *(draw + draw.T for draw in draws)):
            largest = np.abs(np.linalg.eigvalsh(pattern)).max()
            overlap = pattern * (0.999 * _sharp_bound(n_classes) / largest) + (touch if pattern is star else 0)
            for vocab_size in (n_classes + 1, 10 * n_classes, 10**6):
                xi = xi_over_gamma(np.eye(n_classes) + overlap, vocab_size)
                wrong.append(xi[overlap.sum(axis=1) > 1e-9] <= 0)
    return float(np.concatenate(wrong).mean())


def theorem1a_here(runs: Runs, level: str) -> float:
    """Share of the setting's classes with xi_n <= 0, at the overlaps of the start."""
    return float((xi_over_gamma(runs.setting.classes.overlap(), runs.setting.classes.vocab_size) <= 0).mean())


def _signal_printed(theta, correction, n, other, q_1, q_0) -> float:
    rest = sum((1 + theta[k]) * correction[k, other] for k in range(len(theta)) if k != n)
    return q_1 * (1 + theta[n]) * correction[n, other] + q_0 * ((1 + theta[other]) + rest)


def _signal_corrected(theta, correction, n, other, q_1, q_0) -> float:
    return _signal_printed(theta, correction, n, other, q_1, q_0) - 2 * q_0 * (1 + theta[other])


def _signal_error(runs: Runs, formula) -> float:
    """beta_nn' by a formula against -((I - E')(I + Theta) u_n)_n', for random theta."""
    vocab_size, n_classes = runs.setting.classes.vocab_size, runs.setting.classes.n_classes
    inverse = np.linalg.inv(runs.setting.classes.overlap())
    inner = inner_coefficients(n_classes, vocab_size)
    theta = 0.1 * np.random.default_rng(0).standard_normal(n_classes)
    exact = -inverse @ ((1 + theta)[:, None] * inner)
    pairs = [(n, other) for n in range(n_classes) for other in range(n_classes) if n != other]
    errors = [
        formula(theta, np.eye(n_classes) - inverse, n, other, inner[0, 0], inner[0, 1]) - exact[other, n]
        for n, other in pairs
    ]
    return float(np.abs(errors).max() / max(abs(exact[other, n]) for n, other in pairs))


def signal_printed(runs: Runs, level: str) -> float:
    """(88) as printed."""
    return _signal_error(runs, _signal_printed)


def signal_corrected(runs: Runs, level: str) -> float:
    """(88) with the sign of (1 + theta_n') put right."""
    return _signal_error(runs, _signal_corrected)


_ROUNDING = 1e-12  # of an overlap


def _random_overlaps(runs: Runs) -> Iterator[np.ndarray]:
    """E of 200 random sets of linearly independent features with entries >= 0."""
    rng = np.random.default_rng(0)
    k = runs.setting.classes.n_classes
    for _ in range(200):
        features = rng.random((3 * k, k)) ** rng.choice([1, 5, 20])
        features /= np.linalg.norm(features, axis=0)
        overlap = features.T @ features - np.eye(k)
        np.fill_diagonal(overlap, 0)
        yield overlap


def _overlaps(runs: Runs) -> list[np.ndarray]:
    """The setting's E, unless it is zero up to rounding, and random E with |lambda_1(E)| < 1."""
    rng = np.random.default_rng(1)
    measured = runs.setting.classes.overlap()
    np.fill_diagonal(measured, 0.0)  # exactly zero, without rounding
    candidates = [measured] if measured.max() > _ROUNDING else []
    for overlap in _random_overlaps(runs):
        candidates.append(overlap * rng.uniform(0.01, 0.95) / np.abs(np.linalg.eigvalsh(overlap)).max())
    return [overlap for overlap in candidates if np.abs(np.linalg.eigvalsh(overlap)).max() < 1]


def _worst_overlap(runs: Runs, ratio) -> float:
    """Largest violation of ratio <= 1; ``ratio(E, E', |lambda_1|)`` is a quantity over its bound."""
    worst = 0.0
    for overlap in _overlaps(runs):
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        worst = max(worst, ratio(overlap, correction, np.abs(np.linalg.eigvalsh(overlap)).max()) - 1)
    return float(worst)


def lemma13(runs: Runs, level: str) -> float:
    """max |E_ij| <= |lambda_1|."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(e).max() / top)


def _eigenvalue_error(overlaps: Iterable[np.ndarray]) -> float:
    """Largest error of the eigenvalues of E', relative to the largest of them if it is above one."""
    errors = []
    for overlap in overlaps:
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        values = np.linalg.eigvalsh(overlap)
        expected = np.sort(values / (1 + values))
        error = np.abs(np.linalg.eigvalsh(correction) - expected).max()
        errors.append(error / max(np.abs(expected).max(), 1.0))
    return float(max(errors))


def lemma14(runs: Runs, level: str) -> float:
    """Eigenvalues of E' against lambda/(1 + lambda)."""
    return _eigenvalue_error(_overlaps(runs))


def lemma14_any(runs: Runs, level: str) -> float:
    """Eigenvalues of E' against lambda/(1 + lambda), for any |lambda_1|."""
    return _eigenvalue_error(_random_overlaps(runs))


def lemma15(runs: Runs, level: str) -> float:
    """max |lambda_i(E')| <= |lambda_1|/(1 - |lambda_1|)."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(np.linalg.eigvalsh(c)).max() / (top / (1 - top)))


def _diagonal_share(overlaps: Iterable[np.ndarray]) -> float:
    signs = []
    for overlap in overlaps:
        correction = np.eye(len(overlap)) - np.linalg.inv(np.eye(len(overlap)) + overlap)
        signs.append(np.diag(correction)[overlap.max(axis=1) > 1e-6] >= 0)
    return float(np.concatenate(signs).mean())


def lemma16(runs: Runs, level: str) -> float:
    """Share of non-negative diagonal entries of E', among classes that overlap with another class."""
    return _diagonal_share(_overlaps(runs))


def lemma16_any(runs: Runs, level: str) -> float:
    """`lemma16` for any |lambda_1|."""
    return _diagonal_share(_random_overlaps(runs))


def lemma17(runs: Runs, level: str) -> float:
    """max |E'_nn' - E_nn'| <= |lambda_1|^2/(1 - |lambda_1|)."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(c - e).max() / (top**2 / (1 - top)))


def lemma17_sharp(runs: Runs, level: str) -> float:
    """max |E'_nn' - E_nn'| <= |lambda_1|^2/(1 - |lambda_1|^2), for entries that are not negative."""
    return _worst_overlap(runs, lambda e, c, top: np.abs(c - e).max() / (top**2 / (1 - top**2)))
