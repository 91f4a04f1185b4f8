"""Checks of the widths of Lemmas 2, 7 and 9, and the widths that built networks need, with intervals."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import scipy  # whose parts are imported where they are first used

from yzflow_bounded_dyck import interpolating, pruning, widths
from yzflow_bounded_dyck._register.common import once
from yzflow_bounded_dyck.proofs import subset_sums

_CELLS, _DRAWS = 7, 60


@once
def potential_attained() -> float:
    """Largest exact mean of the potential after a step, over all sets of cells, against its bound: attained.

    Targets are the cells of a line; a step is a whole number from 1 - c to c - 1, for c cells.
    """
    steps, worst = range(1 - _CELLS, _CELLS), Fraction(0)
    factor = subset_sums.rate(Fraction(_CELLS, 2 * _CELLS - 1))
    for reached in itertools.product((False, True), repeat=_CELLS):
        if not any(reached) or all(reached):
            continue
        after = [sum(reached[z] or (0 <= z - x < _CELLS and reached[z - x]) for z in range(_CELLS)) for x in steps]
        before, mean = sum(reached), Fraction(0)
        for count in after:
            mean += Fraction(_CELLS - count, count) / len(steps)
        worst = max(worst, mean / Fraction(_CELLS - before, before) / factor)
    return abs(float(worst) - 1)


def _failures(n: int, shape: tuple[int, int], accuracy: float, draws: int) -> int:
    """The random networks, of so many with 2 n units an input, that miss a drawn matrix by more than ``accuracy``."""
    failed = 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, n])
        matrix = rng.uniform(-1, 1, shape)
        failed += pruning.prune_linear(matrix / np.linalg.norm(matrix, 2), n, rng).certificate > accuracy
    return int(failed)


@once
def enough_units() -> float:
    """Share of random networks of the promised width that miss their matrix, beyond the promised failures."""
    accuracy, failure = 0.1, 0.1
    units = widths.units_of_linear((1, 1), accuracy, failure)
    return max(_failures(units // 2, (1, 1), accuracy, _DRAWS) / _DRAWS - failure, 0.0)


@once
def enough_rows() -> float:
    """Share of random key and query matrices of the promised rows that miss, beyond the promised failures."""
    size, accuracy, failure, missed = 2, 0.1, 0.1, 0
    rows = widths.rows_of_product(size, accuracy, failure)
    for seed in range(_DRAWS):
        rng = np.random.default_rng([seed, rows])
        matrix = rng.uniform(-1, 1, (size, size))
        missed += pruning.prune_product(matrix / np.linalg.norm(matrix, 2), rows, rng)[0].certificate > accuracy
    return max(missed / _DRAWS - failure, 0.0)


@once
def too_few() -> float:
    """Share of successes with too few products, beyond the bound; by all subsets, for the target 1/(2e)."""
    accuracy, failure, draws, target = 0.001, 0.5, 400, 1 / (2 * np.e)
    n = widths.too_few_products(accuracy, failure)
    rng, reached = np.random.default_rng(0), 0
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) % 2
    for _ in range(draws):
        reached += np.abs(bits @ (rng.uniform(-1, 1, n) * rng.uniform(0, 1, n)) - target).min() <= accuracy
    return max(reached / draws - (1 - failure), 0.0) if n > 4 else np.inf


@once
def entries_of_values() -> float:
    """Share of drawn matrices with an entry in every block: distance from `entries_found` in four standard errors."""
    blocks, width, least, draws = 4, 3, 0.5, 4000
    drawn = np.random.default_rng(0).uniform(-1, 1, (draws, blocks, width**2))
    share = (drawn >= least).any(axis=2).all(axis=1).mean()
    expected = widths.entries_found(blocks, width, least)
    return float(abs(share - expected) / np.sqrt(expected * (1 - expected) / draws) / 4)


@once
def interpolated() -> float:
    """Largest error of networks that interpolate 12 points, find an index, pick an entry, and switch between three."""
    rng = np.random.default_rng(0)
    points, values = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    network = interpolating.interpolating_network(points, values)
    errors = [np.abs(network(points) - values).max()]
    found = [interpolating.index_network(4, 0.5)(sign * row)[0] for sign in (0.7, -2.0) for row in np.eye(4)]
    errors.append(np.abs(np.array(found) - np.tile([1, 2, 3, 4], 2)).max())
    x = rng.uniform(-2, 2, 4)
    picked = interpolating.picking_network(4, 2.0)
    errors.append(max(abs(picked([*x, i + 1])[0] - x[i]) for i in range(4)))
    networks = [interpolating.interpolating_network(points[:, :2], rng.normal(size=(12, 2))) for _ in range(3)]
    switch = interpolating.switching_network(networks, 2.0)
    errors += [np.abs(switch([*x[:2], i + 1]) - networks[i](x[:2])).max() for i in range(3)]
    return float(max(errors))


def needed_units(size: int, accuracy: float, failure: float, draws: int) -> dict[str, Any]:
    """Units an input that `pruning.prune_linear` needs, measured, beside the promise and the number that is too few.

    The least even number at which no more than ``failure`` of the drawn networks miss. ``low`` and ``high`` are the
    first numbers at which the exact (Clopper-Pearson, 95%) interval of the share reaches it, and lies below it.
    """
    beta = scipy.stats.beta
    low = least = high = None
    for n in range(4, 40):
        failed = _failures(n, (size, size), accuracy, draws)
        lowest = beta.ppf(0.025, failed, draws - failed + 1) if failed else 0.0
        highest = beta.ppf(0.975, failed + 1, draws - failed) if failed < draws else 1.0
        low = 2 * n if low is None and lowest <= failure else low
        least = 2 * n if least is None and failed <= failure * draws else least
        if highest <= failure:
            high = 2 * n
            break
    promised = widths.units_of_linear((size, size), accuracy, failure)
    few = widths.too_few_products(accuracy, failure)
    return {
        "d": size,
        "needed": least or 0,
        "low": low or 0,
        "high": high or 0,
        "promised": promised,
        "few": few,
        "ratio": promised / (least or 1),
    }
