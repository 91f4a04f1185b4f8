r"""Training of one attention unit on sparse averaging: what the pictures of the talk show (T = 0, 1000, 40000).

The unit is a `yzflow_sparse_averaging.trained.linear_query.LinearQueryUnit`. Time is in SGD steps.

Source: the task is that of Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896. The slides do not give the settings of
their pictures.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dynamics.descent import DivergenceError, spawn
from dynamics.optimizers import kernels as updates
from dynamics.optimizers.table import RULES
from dynamics.support import checks, files, sealed
from dynamics.support.checks import read_only
from dynamics.support.limits import current
from dynamics.support.netcdf import load_dataset, save_dataset
from dynamics.support.progress import Progress
from dynamics.support.provenance import provenance
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.kinds import KINDS
from yzflow_sparse_averaging.trained.linear_query import MATRICES, LinearQueryUnit, loss_and_gradient

__all__ = ["load_training", "train_qsa", "unit_at"]

SCHEDULES = ("cosine", "constant")
OPTIMIZERS = tuple(name for name, rule in RULES.items() if rule.kernel is not None)
_FORMAT = "yzflow-qsa-training-1"
_WHAT = KINDS[_FORMAT]
# Inputs are drawn for as many steps at a time as give this many numbers, each time by a generator of its own, so that a
# run can be continued.
_NUMBERS_A_DRAW = 2**19
# Attention is compared with its target on all sets if there are no more than this, else on as many random ones.
_SETS = 4096


def train_qsa(
    n_tokens: int = 20,
    subset_size: int = 3,
    *,
    embedding_dim: int = 24,
    value_dim: int = 8,
    steps: int = 40_000,
    learning_rate: float = 0.01,
    schedule: str = "cosine",
    optimizer: str = "adam",
    momentum: float = 0.9,
    batch_size: int = 8,
    init: str | LinearQueryUnit = "random",
    seed: int | np.random.SeedSequence = 0,
    record_every: int = 1000,
    times: ArrayLike = (),
    checkpoint: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""Train a `LinearQueryUnit` on q-sparse averaging by steps on the mean squared error of random inputs.

    Each step draws ``batch_size`` inputs by `instances.random_qsa`: uniform sets, uniform vectors of the unit
    ball. "adam" and "sgd" are those of `dynamics.sgd`, for W, K and V alike.

    Parameters
    ----------
    n_tokens, subset_size : int
        N and q.
    embedding_dim, value_dim : int
        m and d'.
    steps : int
        Number of steps.
    learning_rate : float
        Per step, positive.
    schedule : "cosine" or "constant"
        "cosine": the rate of step t is ``learning_rate (1 + cos(pi t / steps)) / 2``.
    optimizer : "adam" or "sgd"
    momentum : float
        In [0, 1); not used by "adam".
    batch_size : int
        Inputs a step, each with N sets.
    init : "random" or LinearQueryUnit
        "random": `LinearQueryUnit.random`.
    seed : int or numpy.random.SeedSequence
        Same seed, same result.
    record_every : int
        Steps between recorded states; the first and the last state always are.
    times : sequence of int, optional
        More steps to record.
    checkpoint : path, optional
        A netCDF file with the state of the run, written every few seconds and at the end. Where it exists, the run goes
        on from it, on a processor of the same kind to the same result bit for bit. It must be of a run by this version
        of yzflow with the same arguments, but ``record_every`` and ``times`` may differ, and ``steps`` may be larger
        under a constant schedule.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        ``time`` counts steps. Variables:

        - ``query(time, token, dimension)``, ``key(..)``: W, K; ``value(time, input, output)``: V.
        - ``distance(time)``, ``largest_distance(time)``: mean and largest L1 distance of attention from 1_y/q over sets
          y: all of them where there are at most 4096, else 4096 random ones.
        - ``loss(time)``: `LinearQueryUnit.expected_loss` on these sets.
        - ``attention(time, row, token)``: on N fixed random sets, ``sets(row, member)``.
        - ``batch_loss(step)``: loss of each batch before its step.

    Raises
    ------
    ValueError
        If an argument is invalid, or ``checkpoint`` is of another run or another file. A damaged one is set aside as
        ``*.damaged``, with a warning, and training starts again.
    DivergenceError
        If the loss stops being finite; its ``trajectory`` is the dataset recorded so far.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("checkpoint", "progress")}
    progress, path = checks.flag("progress", progress), files.checkpoint(checkpoint)
    run = _Run(**arguments)
    if path is not None and sealed.sound(path, _WHAT, "training starts again", name="checkpoint"):
        run.restore(load_dataset(path, _FORMAT, _WHAT, name="checkpoint"))
    with Progress(f"qSA, {optimizer}", enabled=progress) as report:
        run.go(report, path)
    return run.dataset()


def load_training(path: str | os.PathLike) -> xr.Dataset:
    """Read a dataset that `train_qsa` wrote as a checkpoint.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else.
    FileNotFoundError
        If there is none.
    """
    return load_dataset(path, _FORMAT, _WHAT)


def unit_at(dataset: xr.Dataset, at: int | None = None) -> LinearQueryUnit:
    """The unit at a recorded time, in steps, of `train_qsa`; by default the last."""
    checks.instance("dataset", dataset, xr.Dataset)
    if dataset.attrs.get("format") != _FORMAT:
        raise checks.reject("dataset", "be one of `train_qsa`", f"the format {dataset.attrs.get('format')!r}")
    when = dataset["time"].values[-1] if at is None else checks.real("at", at)
    if when not in dataset["time"].values:
        raise checks.reject("at", "be a recorded time", when)
    state = dataset.sel(time=when)
    return LinearQueryUnit(*(state[name].values for name in MATRICES))


def _check(*, n_tokens, subset_size, embedding_dim, value_dim, steps, learning_rate, momentum, batch_size, **rest):
    """The arguments of a run, checked, in a form that JSON holds."""
    whole = {
        "n_tokens": n_tokens,
        "subset_size": subset_size,
        "embedding_dim": embedding_dim,
        "value_dim": value_dim,
        "steps": steps,
        "batch_size": batch_size,
        "record_every": rest["record_every"],
    }
    parameters: dict[str, Any] = {name: checks.integer(name, value, minimum=1) for name, value in whole.items()}
    if parameters["subset_size"] > parameters["n_tokens"]:
        raise checks.reject("subset_size", f"be at most the number of tokens, {n_tokens}", subset_size)
    parameters["learning_rate"] = checks.positive("learning_rate", learning_rate)
    parameters["momentum"] = checks.non_negative("momentum", momentum)
    if parameters["momentum"] >= 1:
        raise checks.reject("momentum", "be below 1", momentum)
    parameters["schedule"] = checks.one_of("schedule", rest["schedule"], SCHEDULES)
    parameters["optimizer"] = checks.one_of("optimizer", rest["optimizer"], OPTIMIZERS)
    times = checks.index_array("times", rest["times"], upper=parameters["steps"] + 1)
    parameters["times"] = np.unique(times).tolist()
    return parameters


class _Run:
    """One run: its parameters, its state and what it recorded."""

    def __init__(self, *, init, seed, **arguments):
        self.parameters = p = _check(**arguments)
        start, self.draws, shown = spawn(seed, 3)
        _foresee(p)
        unit = _start(init, p, np.random.default_rng(start))
        p["init"] = "random" if isinstance(init, str) else "unit"
        p["seed"] = [str(start.entropy), *map(int, start.spawn_key[:-1])]
        p |= {} if start.pool_size == np.random.SeedSequence().pool_size else {"pool_size": start.pool_size}
        # One flat vector of all parameters, so that a step of the optimizer is one call; W, K, V are views.
        self.state = np.concatenate([matrix.ravel() for matrix in unit.matrices])
        self.slope, self.first, self.second = (np.zeros_like(self.state) for _ in range(3))
        kernel = RULES[p["optimizer"]].kernel
        self.update = kernel and kernel(p["momentum"], ())
        self.matrices, self.gradient = (_split(flat, unit.matrices) for flat in (self.state, self.slope))
        n_tokens, subset_size = p["n_tokens"], p["subset_size"]
        rng = np.random.default_rng(shown)
        self.rows = tasks.random_subsets(n_tokens, subset_size, size=n_tokens, rng=rng)
        unit.attention(self.rows)  # refuses a start whose scores are out of range
        # There are 2^min(q, N - q) or more, a number that takes long where it is large.
        few = min(subset_size, n_tokens - subset_size) <= _SETS.bit_length()
        if few and math.comb(n_tokens, subset_size) <= _SETS:
            self.sets = tasks.all_subsets(n_tokens, subset_size)
        else:
            self.sets = tasks.random_subsets(n_tokens, subset_size, size=_SETS, rng=rng)
        numbers_a_step = p["batch_size"] * n_tokens * (p["value_dim"] + subset_size)
        self.steps_a_draw = max(1, _NUMBERS_A_DRAW // numbers_a_step)
        self.losses = np.empty(p["steps"])
        self.done, self.drawn = 0, -1
        self.units = {0: unit}

    def restore(self, saved: xr.Dataset):
        """Go on from a saved run."""
        ours = self.parameters
        try:
            theirs = dict(json.loads(saved.attrs["parameters"]))
            units = {int(step): unit_at(saved, step) for step in saved["time"].values}
            done, start = max(units), units[0]
            state = np.concatenate([matrix.ravel() for matrix in units[done].matrices])
            losses, moments = saved["batch_loss"].values, saved["moments"].values
            made_by = dict(json.loads(saved.attrs["versions"])).get("yzflow")
        except (KeyError, TypeError, ValueError):
            raise checks.reject("checkpoint", f"be {_WHAT} as it was saved", "one with other parts") from None
        sealed.check_version("checkpoint", made_by)
        free = ("steps", "times", "record_every") if ours["schedule"] == "constant" else ("times", "record_every")
        for name in ours:
            if name not in free and ours[name] != theirs.get(name):
                raise checks.reject("checkpoint", f"be of a run with {name} = {ours[name]!r}", repr(theirs.get(name)))
        if not all(map(np.array_equal, start.matrices, self.units[0].matrices)):
            raise checks.reject("checkpoint", "be of a run with the same `init`", "another start")
        if done > ours["steps"]:
            raise checks.reject("steps", f"be at least the {done} steps that the checkpoint has", ours["steps"])
        if state.shape != self.state.shape or losses.shape != (done,) or moments.shape != (2, *state.shape):
            raise checks.reject("checkpoint", f"be {_WHAT} as it was saved", "one with other parts")
        self.done, self.losses[:done], self.state[:] = done, losses, state
        self.first[:], self.second[:] = moments
        self.units = {step: unit for step, unit in units.items() if self._is_recorded(step)}

    def _is_recorded(self, step: int) -> bool:
        p = self.parameters
        return step % p["record_every"] == 0 or step == p["steps"] or step in p["times"]

    def go(self, report: Progress, path: Path | None):
        """Take all steps that are left; save the run now and then if there is a ``path``."""
        steps = self.parameters["steps"]
        saved = time.monotonic()
        while self.done < steps:
            self._step()
            if self._is_recorded(self.done):
                self.units[self.done] = self._unit()
            if self.done % self.steps_a_draw == 0 or self.done == steps:
                report.update(self.done / steps, f"step {self.done} of {steps}, loss {self.losses[self.done - 1]:.4g}")
            due = self.done == steps or time.monotonic() - saved >= current().seconds_between_saves
            if path is not None and due:
                save_dataset(self.dataset(), path)
                saved = time.monotonic()

    def _step(self):
        p, step = self.parameters, self.done
        if self.drawn != step // self.steps_a_draw:
            self.drawn = step // self.steps_a_draw
            child = np.random.SeedSequence(self.draws.entropy, spawn_key=(*self.draws.spawn_key, self.drawn))
            sizes = (p["n_tokens"], p["subset_size"], p["value_dim"])
            drawn = tasks.random_qsa(*sizes, size=self.steps_a_draw * p["batch_size"], rng=np.random.default_rng(child))
            self.z, self.y = map(read_only, drawn)
        first = step % self.steps_a_draw * p["batch_size"]
        batch = slice(first, first + p["batch_size"])
        loss = loss_and_gradient(self.z[batch], self.y[batch], self.matrices, self.gradient)
        rate = p["learning_rate"]
        if p["schedule"] == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * step / p["steps"]))
        if np.isfinite(loss):
            updates.follow(self.update, self.state, self.slope, self.first, self.second, rate, step + 1)
        if not (np.isfinite(loss) and np.isfinite(self.state).all()):
            if step > 0 and not np.isfinite(loss):
                self.units.pop(step, None)  # its scores may be out of range
            raise DivergenceError(
                f"the loss is no longer finite at step {step} of {p['steps']} (learning_rate = "
                f"{p['learning_rate']:g}, {p['optimizer']}). Try a smaller learning rate, then a smaller momentum",
                step,
                self.dataset(recorded_only=True),
            )
        self.losses[step] = loss
        self.done += 1

    def _unit(self) -> LinearQueryUnit:
        return LinearQueryUnit(*self.matrices)

    def dataset(self, *, recorded_only=False) -> xr.Dataset:
        """The records so far, with the present state as the last unless ``recorded_only``."""
        units = self.units if recorded_only else {**self.units, self.done: self._unit()}
        times = np.array(list(units))
        attention = [unit.attention(self.sets) for unit in units.values()]
        errors = np.array([tasks.attention_error(a, self.sets) for a in attention])
        distance = {"units": "1"}
        variables = {
            "loss": (
                "time",
                [unit.expected_loss(self.sets) for unit in units.values()],
                {"long_name": "expected squared error", "units": "1"},
            ),
            "distance": ("time", errors.mean(axis=1), {"long_name": "mean L1 distance from 1_y/q", **distance}),
            "largest_distance": ("time", errors.max(axis=1), {"long_name": "largest L1 distance", **distance}),
            "attention": (
                ("time", "row", "token"),
                np.stack([unit.attention(self.rows) for unit in units.values()]),
                {"long_name": "attention", "units": "1"},
            ),
            "sets": (("row", "member"), self.rows, {"long_name": "set y of each row"}),
            "batch_loss": (
                "step",
                self.losses[: times[-1]],
                {"long_name": "loss of the batch before the step", "units": "1"},
            ),
            "moments": (
                ("moment", "parameter"),
                np.stack([self.first, self.second]),
                {"long_name": "of the optimizer"},
            ),
        }
        for name, dims in MATRICES.items():
            stacked = np.stack([getattr(unit, name) for unit in units.values()])
            variables[name] = (("time", *dims), stacked, {"long_name": f"{name} matrix", "units": "1"})
        coordinates = {"time": ("time", times.astype(np.float64), {"long_name": "time", "units": "SGD steps"})}
        return xr.Dataset(variables, coordinates, provenance("train_qsa", self.parameters, _FORMAT))


def _foresee(parameters) -> None:
    """Refuse runs that need more memory than there is."""
    steps, batch_size, n, q, m, dim = (
        parameters[name] for name in ("steps", "batch_size", "n_tokens", "subset_size", "embedding_dim", "value_dim")
    )
    records = 1 + -(-steps // parameters["record_every"]) + len(parameters["times"])
    weights = 2 * n * m + dim**2
    checks.fits_in_memory("n_tokens", 8 * (6 * weights + n**2), "hold the matrices")
    checks.fits_in_memory("batch_size", 8 * batch_size * n * (dim + q), "draw a batch")
    checks.fits_in_memory("steps", 8 * (steps + records * (weights + n**2)), "record losses and states")


def _start(init, parameters, rng) -> LinearQueryUnit:
    n_tokens, m, dim = (parameters[name] for name in ("n_tokens", "embedding_dim", "value_dim"))
    if isinstance(init, str) and init == "random":
        return LinearQueryUnit.random(n_tokens, dim, m, rng)
    if not isinstance(init, LinearQueryUnit):
        raise checks.reject("init", "be 'random' or a LinearQueryUnit", checks.brief(init))
    shapes = [(n_tokens, m), (n_tokens, m), (dim, dim)]
    given = [matrix.shape for matrix in init.matrices]
    if given != shapes:
        raise checks.reject("init", f"have matrices of the shapes {shapes}", given)
    return init


def _split(flat: np.ndarray, like) -> list[np.ndarray]:
    """Views of parts of ``flat`` with the shapes of the matrices ``like``."""
    parts = np.split(flat, np.cumsum([matrix.size for matrix in like])[:-1])
    return [part.reshape(matrix.shape) for part, matrix in zip(parts, like, strict=True)]
