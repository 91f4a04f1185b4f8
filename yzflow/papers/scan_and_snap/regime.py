"""Regime maps: where the statements of Scan and Snap hold, over K, M, overlap and eta_Z / eta_Y."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from dynamics.support import checks
from dynamics.support.progress import Progress
from theory import attention, decoder, statements
from theory.scan_and_snap.statements import LEVELS
from yzflow.audits.audit import Simulations
from yzflow.papers.scan_and_snap.settings import PAPER, Setting, single_common_token

AXES = ("n_classes", "vocab_size", "overlap", "ratio")
DEFAULTS = {"n_classes": 10, "vocab_size": 1000, "overlap": 0.01, "ratio": 1e-3}
NUMBERS = ("Theorem 1", "Theorem 2(a)", "Theorem 3", "Theorem 4", "Remark 1")


def regime_map(
    grid: Mapping[str, Sequence],
    *,
    numbers: Sequence[str] = NUMBERS,
    levels: Sequence[str] = ("full flow", "SGD"),
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Errors of statements over a grid of tasks with one common token, eta_Y = 1, up to t0 = 2 K ln M.

    Parameters
    ----------
    grid : mapping
        Some of ``n_classes`` (K), ``vocab_size`` (M), ``overlap`` (rho), ``ratio`` (eta_Z / eta_Y) -> values; the
        others are K = 10, M = 1000, rho = 0.01, ratio = 1e-3. Cells with M < K are nan.
    numbers : sequence of str
        Statements, of whose first check the error is mapped: of the corrected form where there is one.
    levels : sequence of str
        Simulations that the statements are held against.
    seed : int
        Of the SGD runs.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        A dimension for each key of ``grid``; ``error(.., statement, level)`` of the form that the register stands for,
        ``printed(.., statement, level)`` of the printed one, and the predicted ``slowdown(..)``, s. Coordinates say
        whether a statement has a ``corrected(statement)`` form, and at which levels it is ``expected(statement,
        level)`` to hold inside its assumptions.

    Raises
    ------
    ValueError
        If ``grid`` has an unknown or empty key, or a statement or level is unknown.
    """
    for key, values in grid.items():
        checks.one_of("grid", key, AXES)
        if len(values) == 0:
            raise checks.reject(f"grid[{key!r}]", "hold at least one value", "none")
    known = {one.number: one for one in statements.REGISTER.values() if one.paper == PAPER and one.checks}
    for number in numbers:
        checks.one_of("numbers", number, known)
    for level in levels:
        checks.one_of("levels", level, LEVELS[1:])
    shape = tuple(len(values) for values in grid.values())
    used = [known[number].checks[0] for number in numbers]
    error, printed = (np.full((*shape, len(numbers), len(levels)), np.nan) for _ in range(2))
    slowdown = np.full(shape, np.nan)
    with Progress("regime map", enabled=progress) as report:
        for done, index in enumerate(np.ndindex(shape)):
            cell = DEFAULTS | {key: values[i] for (key, values), i in zip(grid.items(), index, strict=True)}
            report.update(done / max(np.prod(shape), 1), ", ".join(f"{key} = {cell[key]:g}" for key in grid))
            if cell["vocab_size"] < cell["n_classes"]:
                continue
            slowdown[index] = attention.full_flow_slowdown(**{key: cell[key] for key in AXES[:3]})
            runs = Simulations(_setting(**cell), seed=seed)
            for (i, check), (j, level) in itertools.product(enumerate(used), enumerate(levels)):
                if level in check.levels:
                    at = (*index, i, j)
                    printed[at] = check.printed(runs, level)
                    error[at] = printed[at] if check.corrected is None else check.corrected(runs, level)
    axes = tuple(grid)
    return xr.Dataset(
        {
            "error": ((*axes, "statement", "level"), error, {"long_name": "relative error of the statement"}),
            "printed": ((*axes, "statement", "level"), printed, {"long_name": "relative error of the printed form"}),
            "slowdown": (axes, slowdown, {"long_name": "predicted slow-down s of the full flow"}),
        },
        {
            **{key: list(values) for key, values in grid.items()},
            "statement": list(numbers),
            "level": list(levels),
            "corrected": ("statement", [check.corrected is not None for check in used]),
            "expected": (("statement", "level"), [[level in check.expected for level in levels] for check in used]),
        },
    )


def _setting(*, n_classes, vocab_size, overlap, ratio) -> Setting:
    classes = single_common_token(int(n_classes), int(vocab_size), float(overlap))
    t_end = decoder.snapping_time(vocab_size=int(vocab_size), n_classes=int(n_classes), eta_y=1.0)
    return Setting("regime map", classes, 1.0, float(ratio), float(np.ceil(t_end)))
