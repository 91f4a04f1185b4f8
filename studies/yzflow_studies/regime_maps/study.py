"""Regime maps: where the statements of Scan and Snap hold, over K, M, overlap and eta_Z / eta_Y."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from dynamics import Trajectory, gradient_flow_ensemble
from dynamics.support import checks
from dynamics.support.progress import Progress
from theory import attention, decoder, statements
from theory.scan_and_snap.statements import LEVELS
from yzflow.audits.audit import Simulations
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, log_ticks, styled
from yzflow.papers.scan_and_snap import lengths
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

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
    known = {one.number: one for one in statements.REGISTER.values() if one.paper == "Scan and Snap" and one.checks}
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


def grids(n: int) -> dict[str, dict[str, list]]:
    """Two maps with n values on an axis, or as many as there are integers."""
    return {
        "vocabulary_overlap": {
            "vocab_size": np.unique(np.geomspace(10, 10_000, n).round().astype(int)).tolist(),
            "overlap": np.geomspace(1e-3, 0.5, n).tolist(),
        },
        "classes_ratio": {
            "n_classes": np.unique(np.geomspace(2, 30, n).round().astype(int)).tolist(),
            "ratio": np.geomspace(1e-4, 1, n).tolist(),
        },
    }


# The figures


_NAMES = {
    "n_classes": "next tokens K",
    "vocab_size": "vocabulary M",
    "overlap": r"overlap $\rho$",
    "ratio": r"$\eta_Z / \eta_Y$",
}


def _small_map(effort: Effort) -> xr.Dataset:
    """Over M and rho at K = 10."""
    grid: dict[str, list[float]] = {
        "vocab_size": [10, 30, 100, 300, 1000, 3000],
        "overlap": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3],
    }
    if effort.quick:
        grid = {name: values[::2] for name, values in grid.items()}
    return regime_map(grid, progress=effort.progress)


@styled
def drawn(errors: xr.Dataset) -> Figure:
    """Error of each statement over two parameters, as printed and, where there is such a form, as corrected.

    Parameters
    ----------
    errors : xarray.Dataset
        From `regime_map` over two parameters.
    """
    x, y = errors["slowdown"].dims
    levels = errors["level"].values
    rows = [
        (f"{name}, {form}", errors[variable].sel(statement=name))
        for name, both in zip(errors["statement"].values, errors["corrected"].values, strict=True)
        for form, variable in ((("printed", "printed"), ("corrected", "error")) if both else (("printed", "error"),))
    ]
    # Statements below each other: side by side, in the width of a page, they could not be read.
    figure = canvas(figsize=(2.9 * len(levels) + 1.7, 1.8 * len(rows) + 1.0))
    panels = figure.subplots(len(rows), len(levels), sharex=True, sharey=True, squeeze=False)
    crossed = _crosses_half(errors)
    norm = LogNorm(1e-3, 1.0)
    for i, (title, error) in enumerate(rows):
        for j, level in enumerate(levels):
            axes = panels[i, j]
            cell = error.sel(level=level)
            shown = np.ma.masked_invalid(np.clip(cell.transpose(y, x).values, 1e-3, None))
            axes.set(xscale="log", yscale="log")
            if errors[x][-1] < 100 * errors[x][0]:
                log_ticks(axes.xaxis)
            axes.grid(False)
            if shown.count():
                edges = _edges(errors[x].values), _edges(errors[y].values)
                mesh = axes.pcolormesh(*edges, shown, cmap="cividis", norm=norm)
                if crossed:
                    slowdown = errors["slowdown"].transpose(y, x).values
                    line = axes.contour(errors[x], errors[y], slowdown, levels=[0.5], colors="white", linestyles="--")
                    line.set_path_effects([withStroke(linewidth=3, foreground="black")])  # seen on yellow, too
            else:
                axes.text(0.5, 0.5, "not measured\nat this level", ha="center", va="center", transform=axes.transAxes)
            if i == 0:
                axes.set_title(f"against {level}")
            if i == len(rows) - 1:
                axes.set_xlabel(_NAMES[x])
        panels[i, 0].set_ylabel(f"{title}\n{_NAMES[y]}", fontsize=9)
    figure.colorbar(mesh, ax=panels, label="relative error", extend="both", aspect=50)
    dashed = "\ndashed: predicted slow-down s = 1/2" if crossed else ""
    figure.suptitle(f"Relative errors of the statements{dashed}")
    return figure


def _crosses_half(errors: xr.Dataset) -> bool:
    """Whether the predicted slow-down is above 1/2 in some cells, and below in others."""
    return bool(errors["slowdown"].min() < 0.5 < errors["slowdown"].max())


def _found(errors: xr.Dataset) -> str:
    """Sentences on what each panel should show, and on the largest errors of the corrected forms."""
    parts = []
    for level in errors["level"].values:
        expected = [
            str(one) for one in errors["statement"].values if errors["expected"].sel(statement=one, level=level)
        ]
        parts.append(f"{' and '.join(expected) if expected else 'nothing'} at the level {level}")
    said = [f"Inside its assumptions a statement is expected to hold for {'; '.join(parts)}; elsewhere an error is no"
            " failure."]  # fmt: skip
    for name in errors["statement"].values[errors["corrected"].values]:
        worst = {form: float(errors[form].sel(statement=name).max()) for form in ("printed", "error")}
        said.append(f"{name} is off by up to {worst['printed']:.2g} as printed, and {worst['error']:.2g} as corrected.")
    if {"SGD", "full flow"} <= set(errors["level"].values):
        said.append(lengths.said(_setting(**DEFAULTS).length))
    if _crosses_half(errors):
        said.append(
            "The dashed line is where the full flow is predicted to begin at half the speed of the theory (s = 1/2), "
            "slower for larger M and rho."
        )
    return " ".join(said)


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of cells around rising values, half way between them on a logarithmic axis."""
    log = np.log(values)
    inner = (log[1:] + log[:-1]) / 2
    first, last = (inner[0], inner[-1]) if inner.size else (log[0] + 1, log[0] - 1)
    return np.exp([2 * log[0] - first, *inner, 2 * log[-1] - last])


MAP = Entry("regime_map", "Scan and Snap", drawn, _small_map, claims=_found)
FIGURES = (MAP,)
