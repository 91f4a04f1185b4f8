"""How near a subset sum comes, by the law of random sums: the theory line of width against error (Theorem 3)."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynamics.support import checks
from yzflow_bounded_dyck import lottery


def nearest_sums(wanted: np.ndarray, sizes: np.ndarray, rng: np.random.Generator | int | None) -> np.ndarray:
    r"""Errors of numbers ``wanted``, each as near as a subset of ``V_r sizes_r`` comes, V anew and uniform in [-1, 1].

    The 2^N sums of subsets of N products a_r have the mean ``sum a / 2`` and the variance ``s^2 = sum a^2 / 4``.
    Were they normal, those near t would lie ``2^-N sqrt(2 pi) s exp((t - mean)^2 / 2 s^2)`` apart on average, and the
    nearest one would be off by an exponential number of half that mean. Not by more than t: the empty sum is among
    them. Of more than 24 products, `pruning.subset_sum` searches 24.

    Parameters
    ----------
    wanted : (n,) float
    sizes : (N,) float
    rng : numpy.random.Generator or seed
    """
    wanted = checks.finite_array("wanted", wanted, ndim=1)
    sizes = checks.finite_array("sizes", sizes, ndim=1)
    generator = checks.generator("rng", rng)
    products = generator.uniform(-1, 1, (len(wanted), len(sizes))) * sizes
    spread = np.sqrt((products**2).sum(axis=1)) / 2 + 1e-300
    with np.errstate(over="ignore"):  # where all sizes are zero
        exponent = np.minimum(((wanted - products.sum(axis=1) / 2) / spread) ** 2 / 2, 700)
    mean = np.sqrt(2 * np.pi) * spread * np.exp(exponent) / 2.0 ** (min(len(sizes), 24) + 1)
    error = np.minimum(generator.exponential(size=wanted.shape) * mean, np.abs(wanted))
    return np.where(wanted == 0, 0.0, error * generator.choice([-1.0, 1.0], wanted.shape))


def expected(pruned: lottery.PrunedTransformer, rng: np.random.Generator | int | None) -> lottery.PrunedTransformer:
    """A pruned Transformer with errors drawn by `nearest_sums`: its certificate is what the law says, without a search.

    Its networks are not those of its errors: it is for certificates, not to be run.

    Parameters
    ----------
    pruned : lottery.PrunedTransformer
    rng : numpy.random.Generator or seed
    """
    checks.instance("pruned", pruned, lottery.PrunedTransformer)
    rng = checks.generator("rng", rng)
    layers, parts = iter(pruned.target.layers), []
    for part, layer in zip(pruned.parts, pruned.network.layers, strict=True):
        errors = tuple(
            _drawn(matrix, layer.network.weights[2 * t], (1, -1) if t == 0 else (1,), rng)
            for t, matrix in enumerate(part.fit.matrices)
        )
        logits = part.logits
        if part.role == "attend":
            target = next(layers)
            logits = _drawn(target.key.T @ target.query, layer.query, (0,), rng)
        parts.append(dataclasses.replace(part, fit=lottery.Fit(part.fit.matrices, errors), logits=logits))
    return dataclasses.replace(pruned, parts=tuple(parts))


def _drawn(matrix: np.ndarray, kept: np.ndarray, signs: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Errors of a matrix by column, from what was kept of the first of the two that hold it; sign 0: of any sign."""
    columns = np.flatnonzero(np.abs(kept).max(axis=0))[: matrix.shape[1]]
    errors = np.zeros((len(signs), *matrix.shape))
    for place, sign in enumerate(signs):
        for j, column in enumerate(columns):
            sizes = kept[:, column] if sign == 0 else np.maximum(sign * kept[:, column], 0)
            errors[place, :, j] = nearest_sums(matrix[:, j], sizes[sizes != 0], rng)
    return np.hstack(list(errors))
