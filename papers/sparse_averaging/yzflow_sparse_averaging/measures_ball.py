"""Checks of the least errors of fully connected networks with values in the unit ball."""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from theory.statements import Runs
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.proofs import unit_ball as proved


def largest_average(points: np.ndarray, q: int) -> float:
    """The largest norm of an average of q tokens, for points (z, N, d') scaled to a largest token of norm one."""
    points = points / np.linalg.norm(points, axis=2).max(axis=1)[:, None, None]
    means = [points[:, subset].mean(axis=1) for subset in tasks.all_subsets(points.shape[1], q)]
    return float(np.linalg.norm(np.stack(means), axis=2).max())


def _on_kernel(layer: np.ndarray, n: int, q: int, d: int) -> float:
    """The error that a first layer forces, by all of a line, or 20,000 directions of a plane."""
    kernel = null_space(layer)
    angles = np.linspace(0, np.pi, 20_000, endpoint=False)
    grid = np.ones((1, 1)) if kernel.shape[1] == 1 else np.column_stack([np.cos(angles), np.sin(angles)])
    return largest_average((grid @ kernel.T).reshape(len(grid), n, d), q)


def wide_layers(runs: Runs, level: str) -> float:
    """Relative shortfall of forced errors below 1/(2q - 1), and excess of the best layer's; kernels of 1 and 2 numbers.

    Random layers, and those that read the same combinations of tokens in each coordinate.
    """
    rng, off = np.random.default_rng(runs.setting.seed), [0.0]
    for n, q, d, lacking in ((3, 2, 2, 1), (3, 2, 2, 2), (4, 2, 3, 1), (4, 2, 2, 2), (5, 3, 2, 2), (5, 4, 2, 1)):
        least = float(proved.smallest(q))
        for _ in range(4):
            layer = rng.normal(size=(n * d - lacking, n * d))
            off.append(1 - _on_kernel(layer, n, q, d) / least)
        if lacking == d:
            alike = np.kron(averaging.best_first_layer(n, q, width=n - 1), np.eye(d))
            off.append(_on_kernel(alike, n, q, d) / least - 1)
    return max(off)


def all_but_one(runs: Runs, level: str) -> float:
    """Relative shortfall below 1/q, q = N - 1, of random layers' errors on what of their kernels sums to zero."""
    rng, off = np.random.default_rng(runs.setting.seed), [0.0]
    for n, d in ((3, 2), (4, 2), (4, 3), (6, 2)):
        for width in range(d, d * (n - 1)):
            layer = np.vstack([rng.normal(size=(width, n * d)), np.tile(np.eye(d), n)])
            kernel = null_space(layer)
            found = largest_average(kernel.T.reshape(-1, n, d), n - 1) if kernel.size else 0.0
            off.append(1 - found / float(proved.all_but_one(n - 1)))
    return max(off)
