"""Regime maps: where the statements of Scan and Snap hold, over K, M, overlap and eta_Z / eta_Y."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from dynamics import Trajectory, gradient_flow_ensemble
from dynamics.support import checks
from dynamics.support.progress import Progress
from theory import attention, decoder, statements
from theory.scan_and_snap.statements import LEVELS
from yzflow.audits.audit import Simulations
from yzflow.papers.scan_and_snap.settings import PAPER, Setting, single_common_token

AXES = ("n_classes", "vocab_size", "overlap", "ratio")
DEFAULTS = {"n_classes": 10, "vocab_size": 1000, "overlap": 0.01, "ratio": 1e-3}
_N_DISTINCT = 5  # of `single_common_token`
# Flows that are made as ensembles, all settings of the same K and M at once.
ENSEMBLES = ("full flow", "modified flow")
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
    progress = checks.flag("progress", progress)
    shape = tuple(len(values) for values in grid.values())
    used = [known[number].checks[0] for number in numbers]
    error, printed = (np.full((*shape, len(numbers), len(levels)), np.nan) for _ in range(2))
    slowdown = np.full(shape, np.nan)
    cells: dict[tuple[int, int], list[tuple[tuple[int, ...], dict]]] = {}
    for index in np.ndindex(shape):
        cell = DEFAULTS | {key: values[i] for (key, values), i in zip(grid.items(), index, strict=True)}
        if cell["vocab_size"] >= cell["n_classes"]:
            slowdown[index] = attention.full_flow_slowdown(**{key: cell[key] for key in AXES[:3]})
            cells.setdefault((cell["n_classes"], cell["vocab_size"]), []).append((index, cell))
    flows = [level for level in ENSEMBLES if set(levels) & set(ENSEMBLES)]  # some checks compare the two
    done, size = 0, sum(map(len, cells.values()))
    with Progress("regime map", enabled=progress) as report:
        for (n_classes, vocab_size), group in cells.items():
            made = _flows([_setting(**cell) for _, cell in group], flows)
            for (index, cell), own in zip(group, made, strict=True):
                report.update(done / size, f"K = {n_classes}, M = {vocab_size}: cell {done + 1} of {size}")
                done += 1
                runs = Simulations(_setting(**cell), seed=seed, made=own)
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


def _flows(settings: Sequence[Setting], levels: Sequence[str]) -> Iterator[dict[str, Trajectory]]:
    """The flows that `Setting.simulate` would make of settings that differ in overlap and rates, as ensembles."""
    if not levels:
        yield from ({} for _ in settings)
        return
    first = settings[0]
    shares = np.array([one.classes.probabilities[[0]].toarray()[0, : 1 + _N_DISTINCT] for one in settings])
    given = {
        "n_classes": first.classes.n_classes,
        "vocab_size": first.classes.vocab_size,
        "common": shares[:, 0],
        "distinct": shares[:, 1:],
        "eta_y": [one.eta_y for one in settings],
        "eta_z": [one.eta_z for one in settings],
    }
    record = ("z", "attention", "loss", "z_velocity", "y")
    ensembles = {
        level: gradient_flow_ensemble(given, decoder=level.removesuffix(" flow"), record=record, **first.of_flows)
        for level in levels
    }
    template = first.simulate(levels[0], seed=0)
    for i in range(len(settings)):
        yield {level: _lifted(template, flows.isel(setting=i)) for level, flows in ensembles.items()}


def _lifted(template: Trajectory, member: xr.Dataset) -> Trajectory:
    """A member of an ensemble as a trajectory over all tokens and classes; ``template`` is one of the same sizes."""
    dataset = template.dataset
    K, D = dataset.sizes["next_token"], member.sizes["kind"] - 1

    def spread(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values[:, :1], np.tile(values[:, 1:], K)], axis=1)

    shares = member["attention"].values
    attended = np.zeros(dataset["attention"].shape)
    attended[:, :, 0] = shares[:, :1]
    y = member["y"].values  # own logit of the common token, own and other of the distinct ones, unseen, and its unseen
    Y = np.empty(dataset["y"].shape)
    Y[:, 0, :K], Y[:, 1:, :K] = y[:, :1], np.tile(y[:, 1 + D : 1 + 2 * D], K)[:, :, None]
    for n in range(K):
        own = slice(1 + n * D, 1 + (n + 1) * D)
        attended[:, n, own] = shares[:, 1:]
        Y[:, own, n] = y[:, 1 : 1 + D]
    if Y.shape[2] > K:
        Y[:, 0, K], Y[:, 1:, K] = y[:, 1 + 3 * D], np.tile(y[:, 1 + 2 * D : 1 + 3 * D], K)
    arrays = {
        "z": spread(member["z"].values)[:, None],
        "z_velocity": spread(member["z_velocity"].values)[:, None],
        "attention": attended,
        "y": Y,
        "loss": member["loss"].values,
    }
    changed = {name: (dataset[name].dims, array, dataset[name].attrs) for name, array in arrays.items()}
    return Trajectory(dataset.assign(changed))


def _setting(*, n_classes, vocab_size, overlap, ratio) -> Setting:
    classes = single_common_token(int(n_classes), int(vocab_size), float(overlap))
    t_end = decoder.snapping_time(vocab_size=int(vocab_size), n_classes=int(n_classes), eta_y=1.0)
    return Setting("regime map", classes, 1.0, float(ratio), float(np.ceil(t_end)))
