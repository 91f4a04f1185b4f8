"""Sweeps: a task over a grid of configurations and seeds. A crash costs only the runs in hand."""

from __future__ import annotations

import itertools
import json
import math
import numbers
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support import checks, content
from dynamics.support.limits import current
from dynamics.support.netcdf import load_dataset
from dynamics.support.progress import Progress
from dynamics.support.provenance import versions
from yzflow.sweeps import runs, tasks
from yzflow.sweeps.collect import Collector
from yzflow.sweeps.execution import SchedulerGone, Workers, execute
from yzflow.sweeps.runs import RESERVED, Result, Task
from yzflow.sweeps.store import Store, column

_FORMAT = "yzflow-sweep-1"
# Threads that write files: several flushes at once let the file system combine them.
_WRITERS = 4


def sweep(
    task: str | Callable[[dict, int], Mapping] | Task,
    grid: Mapping[str, Sequence],
    *,
    store: str | os.PathLike | Store,
    seeds: int | Sequence[int] = 1,
    executor: Executor | None = None,
    progress: bool = True,
    workers: int | None = None,
) -> xr.Dataset:
    """Run a task for every configuration of a grid and every seed; runs in the store are not run again.

    An interrupted sweep (Ctrl-C, a crash, ``kill -9``, a full disk) goes on with the same call. The result has the same
    bits for all executors, numbers of workers and interruptions. Another kind of processor may round sums differently;
    the attribute "cpu" names the kind that numba compiled for.

    Parameters
    ----------
    task : str or callable
        "syn_small", "syn_medium" (keys ``n_queries``, ``eta_z``, ``ratio`` = eta_Y / eta_Z or ``eta_y``, and arguments
        of `dynamics.sgd`), "flow" (keys of `dynamics.gradient_flow` and of `SequenceClasses.single_common_token`),
        "dyck" (keys of `DyckLanguage` and of `trained` there), a task of a study that is installed; "module:function";
        or a function at the top level of a module, ``f(configuration, seed) -> dict of arrays``. An
        ``xarray.DataArray`` in the dict keeps its dimensions, labels and units. A function is identified by its name,
        its code, and the closures, helpers and module values that it reads. If one of these changes, a warning names
        it, and the runs are done again. A module that was edited but not imported again runs unchanged, with a warning.
        Raise the attribute ``f.version`` (default 1) when something else changes, such as a file. Workers know the
        fields of `register_field` if these are defined in a module or a script.
    grid : mapping
        Key -> list of values: finite numbers, words, booleans or None. As in Python, 1, 1.0 and True are equal.
    store : path-like or Store
        A store, or a new or empty folder. Sweeps may share a store, also at the same time.
    seeds : int or sequence of int
        Number of seeds (0, 1, ..), or the seeds themselves.
    executor : concurrent.futures.Executor, optional
        For example ``dask.distributed``'s ``Client(..).get_executor()``. Default: threads of this process for the
        built-in SGD tasks, else a pool of processes. A run whose worker dies is tried up to three times.
    progress : bool
        Show progress on standard error.
    workers : int, optional
        Threads or processes of the default executor, at most one for each run, and as many as fit in memory. Default:
        the cores of this process.

    Returns
    -------
    xarray.Dataset
        A dimension for each key of ``grid``, and ``seed``; a variable for each result, such as "loss" and "entropy" at
        the end of an SGD run. ``failed`` marks runs that raised, with the message in ``error``; their results are nan,
        and the next call tries them again. Runs whose results have conflicting dimensions are marked, too, but stay in
        the store. Attributes have the configuration, the versions of the software, the platform and the processor
        ("cpu").

    Raises
    ------
    ValueError
        Before anything runs, if an argument is invalid, the workers cannot import the task, or the folder is no store.
    StoreError
        If the disk is full or cannot be written. The same call goes on from there.

    Examples
    --------
    >>> import yzflow
    >>> runs = yzflow.sweep("syn_small", {"eta_z": [0.5, 1.0], "steps": [10]}, store="runs", seeds=2, progress=False)
    >>> dict(runs["entropy"].sizes)
    {'eta_z': 2, 'steps': 1, 'seed': 2}
    """
    progress = checks.flag("progress", progress)
    plan = _Plan(tasks.resolve(task), grid, seeds)
    plan.check()
    if plan.parts and (file := content.edited(plan.task.run)):
        how = "importlib.reload its module, or start Python again, for what the file holds now"
        warnings.warn(f"{plan.task.name} runs as it was imported, and {file} was edited since: {how}", stacklevel=2)
    pool = Workers(plan.task, executor, workers, words=plan.words(), parts=plan.parts)
    store = store if isinstance(store, Store) else Store(store)
    collector = Collector(plan.n)
    missing = [cell for cell in range(plan.n) if not _recall(store, plan.identity(cell), cell, collector)]
    if missing:
        try:
            _run(plan, pool, store, missing, collector, progress=progress)
        finally:
            if plan.parts:
                runs.remember_moved(plan.task, plan.parts, plan.words())
    dataset = plan.dataset(collector)
    if collector.failed.any():
        first = next(text for text in collector.errors if text)
        warnings.warn(f"{collector.failed.sum()} of {plan.n} runs failed, the first with {first}", stacklevel=3)
    return dataset


def load_sweep(path: str | os.PathLike) -> xr.Dataset:
    """Read a dataset of `sweep` that the command ``yzflow sweep`` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, or holds something else.
    FileNotFoundError
        If there is no such file.
    """
    return load_dataset(path, _FORMAT, "a sweep")


class _Plan:
    """The cells of a sweep: the grid times the seeds, in C order."""

    def __init__(self, task: Task, grid: Mapping[str, Sequence], seeds: int | Sequence[int]) -> None:
        self.task, most = task, current().runs
        if not isinstance(grid, Mapping):
            raise checks.reject("grid", "be a mapping of keys to lists of values", checks.brief(grid))
        self.grid = {key: _values(f"grid[{key!r}]", values) for key, values in grid.items()}
        for key in self.grid:
            if not runs.is_name(key) or key in RESERVED:
                raise checks.reject("grid", f"have words as keys, none of {', '.join(RESERVED)}", repr(key))
            if task.keys is not None and key not in task.keys:
                near = checks.nearest(key, {name: (name,) for name in task.keys})
                raise checks.reject("grid", f"have keys of the task {task.name!r}, such as {near}", repr(key))
            _check_labels(f"grid[{key!r}]", self.grid[key])
        if checks.is_number(seeds, numbers.Integral):
            if checks.integer("seeds", seeds, minimum=1) > most:
                raise checks.reject("seeds", f"be at most {most}, a file of the store each", seeds)
            seeds = range(int(seeds))
        self.seeds = [checks.integer("seeds", seed, minimum=0) for seed in _values("seeds", seeds)]
        self.shape = (*(len(values) for values in self.grid.values()), len(self.seeds))
        self._last: tuple[int, dict] = (-1, {})
        self.content = task.content(self.words())
        self.parts = runs.as_at_first(task, self.content.parts)
        self.n = math.prod(self.shape)
        if self.n > most:
            sizes = " x ".join(map(str, self.shape))
            rule = f"make at most {most} runs with `seeds`, a file of the store each"
            raise checks.reject("grid", rule, f"{sizes} = {self.n}")

    def check(self) -> None:
        """Check all values of the grid; ValueError if the task refuses one."""
        first = {key: values[0] for key, values in self.grid.items()}
        for key, values in self.grid.items():
            for value in values:
                self.task.identity(first | {key: value}, self.seeds[0])

    def words(self) -> set[str]:
        """Words among the grid's values, such as names of fields."""
        return {value for values in self.grid.values() for value in values if isinstance(value, str)}

    def identity(self, cell: int) -> dict:
        """Facts that identify a cell's run; ValueError if its configuration is invalid."""
        point, seed = divmod(cell, len(self.seeds))
        # Remember the last configuration: its seeds follow each other, and checking takes longer than a look-up.
        if self._last[0] != point:
            places = np.unravel_index(point, self.shape[:-1])
            values = {key: values[i] for (key, values), i in zip(self.grid.items(), places, strict=True)}
            self._last = point, self.task.identity(values, self.seeds[seed], self.parts)
        return self._last[1] | {"seed": self.seeds[seed]}

    def dataset(self, collector: Collector) -> xr.Dataset:
        """The labelled results of all cells."""
        labels = {**self.grid, "seed": self.seeds}
        results = collector.dataset(dict(zip(labels, self.shape, strict=True)))
        coordinates = {
            key: (key, column(values), dict(self.task.labels.get(key, {}))) for key, values in labels.items()
        }
        return results.assign_coords(coordinates).assign_attrs(format=_FORMAT, **self._attributes())

    def _attributes(self) -> dict[str, str]:
        whole = self.identity(0)
        fixed = {key: value for key, value in whole["configuration"].items() if key not in self.grid}
        if "ratio" in self.grid:
            del fixed["eta_y"]
        if "decoder" in self.grid:
            fixed.pop("field", None)
        configuration = {"grid": self.grid, "seeds": self.seeds, "fixed": fixed}
        return {
            "task": self.task.name,
            "task_version": str(self.task.version),
            "configuration": json.dumps(configuration),
            **({"content": json.dumps(self.parts)} if self.parts else {}),
        }


def _values(name: str, values: Any) -> list:
    """The values of a key in plain Python types."""
    most = current().runs
    try:
        if isinstance(values, (str, bytes, Mapping)):
            raise TypeError
        some = itertools.islice(values, most + 1)  # the iterable may be endless
    except TypeError:
        raise checks.reject(name, "be a non-empty list of values", checks.brief(values)) from None
    plain = [checks.plain_types(value) for value in some]
    if len(plain) > most:
        raise checks.reject(name, f"be at most {most} values", "more")
    if not plain:
        raise checks.reject(name, "be a non-empty list of values", "an empty one")
    for value in plain:
        finite = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or abs(value) < 2**63
        if not isinstance(value, (bool, int, float, str, type(None))) or not finite:
            raise checks.reject(name, "hold finite numbers, words, booleans or None", checks.brief(value))
        if isinstance(value, str) and not runs.is_text(value):
            raise checks.reject(name, "hold words that a file can hold", checks.brief(value))
    known = set()
    for value in plain:
        if value in known:
            raise checks.reject(name, "hold each value once", f"{value!r} twice")
        known.add(value)
    return plain


def _check_labels(name: str, values: list) -> None:
    """Refuse values whose labels in words are equal."""
    known: dict = {}
    for value, label in zip(values, column(values).tolist(), strict=True):
        if label in known:
            raise checks.reject(name, "hold values that are written differently", f"{known[label]!r} and {value!r}")
        known[label] = value


def _recall(store: Store, identity: dict, cell: int, collector: Collector) -> bool:
    """Take a cell's result from the store; False if the cell must be run."""
    kept = store.read(runs.key(identity))
    if kept is None or kept[1].error:
        return False
    collector.add(cell, kept[1])
    return True


def _tell_changes(plan: _Plan, store: Store) -> None:
    """Warn of changes since the task's stored runs, and of parts whose changes cannot be seen."""
    if not plan.parts:
        return
    changed = store.remember(plan.task.name, plan.parts)
    if changed:
        differences = "; ".join(f"{name}: {then} then, {now} now" for name, (then, now) in changed.items())
        warnings.warn(f"{plan.task.name} has changed since runs of it in {store.path}: {differences}", stacklevel=5)
    if unseen := plan.content.unseen:
        rule = "their content cannot be told, so raise the attribute `version` of the function when it changes"
        warnings.warn(f"{plan.task.name} reads {', '.join(unseen)}: {rule}", stacklevel=5)


def _run(plan: _Plan, pool: Workers, store: Store, missing: list[int], collector: Collector, *, progress: bool) -> None:
    """Run the missing cells; each result goes into the store as it arrives."""
    done = 0
    code = plan.task.code
    in_hand: dict[int, dict] = {}  # cell -> identity of its run

    def job(cell: int) -> tuple[dict, int] | None:
        nonlocal done
        identity = in_hand[cell] if cell in in_hand else plan.identity(cell)
        # Another sweep may have written it meanwhile.
        if _recall(store, identity, cell, collector):
            in_hand.pop(cell, None)
            done += 1
            return None
        in_hand[cell] = identity
        return identity["configuration"], identity["seed"]

    def keep(pair: tuple[int, Result]) -> None:
        cell, result = pair
        result.attributes |= {"versions": versions()} | ({"code": code} if code else {})
        store.write(in_hand.pop(cell), result)

    with Progress(f"sweep {plan.task.name}", enabled=progress) as report, pool, ThreadPoolExecutor(_WRITERS) as writers:
        report.update(0.0, "starting the workers")
        pool.start(len(missing))
        _tell_changes(plan, store)
        try:
            for group in execute(pool, missing, job):
                for _ in writers.map(keep, group):
                    pass
                for cell, result in group:
                    collector.add(cell, result)
                done += len(group)
                failed = collector.failed.sum()
                note = f"run {plan.n - len(missing) + done} of {plan.n}" + (f", {failed} failed" if failed else "")
                report.update(done / len(missing), note)
        except SchedulerGone as error:
            kept = f"{plan.n - len(missing) + done} of {plan.n} runs are in {store.path}"
            again = "the same command, or `sweep` with the executor of a new cluster, goes on from there"
            raise SchedulerGone(f"{error}; {kept}; {again}") from None
