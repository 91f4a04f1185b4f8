"""Runs on threads, processes or a cluster; a worker that dies costs a retry of what it had in hand."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, cast

from dynamics.support import checks
from dynamics.support.limits import current
from yzflow.sweeps import runs
from yzflow.sweeps.runs import Here, Result, Task

if TYPE_CHECKING:
    from dynamics import Field

# How often a run is tried when its worker dies; the last time it runs alone, so that it dies by its own doing.
ATTEMPTS = 3
_LARGEST_CHUNK = 256
# The cure for what stands in a notebook or was typed: other processes have none of it.
OF_A_NOTEBOOK = (
    "in a notebook, write its cell into a module (%%writefile tasks.py) and import it from there, or pass "
    "executor=ThreadPoolExecutor()"
)
# Workers of an executor that does not tell how many it has.
_UNKNOWN_WORKERS = 64
_SAFE_PATH = "PYTHONSAFEPATH"  # of Python 3.11 and later


class Workers:
    """An executor with what is needed to submit chunks of runs to it; a context manager.

    Parameters
    ----------
    task : Task
    executor : concurrent.futures.Executor, optional
        Default: threads where the task releases the interpreter's lock, otherwise a pool of processes; these are built
        anew when a worker dies.
    n : int, optional
        Workers of the default executor. Default: the cores that this process may use.
    words : collection of str
        Values of the grid: a field from outside that is named here has to be one that workers can import.
    parts : mapping of str to str
        `Task.content`: a worker whose task is another refuses to run.
    """

    def __init__(
        self,
        task: Task,
        executor: Executor | None = None,
        n: int | None = None,
        *,
        words: Collection[str] = (),
        parts: Mapping[str, str] | None = None,
    ) -> None:
        self.task = task
        fields = () if executor is None and task.threads else _fields(words)
        self.here = Here(task, fields, tuple(words), dict(parts or {}), current())
        self._own = executor is None
        if executor is not None and not isinstance(executor, Executor):
            raise checks.reject("executor", "be a concurrent.futures.Executor or None", checks.brief(executor))
        if executor is not None and n is not None:
            raise checks.reject("workers", "be None where an executor is given", n)
        number = checks.threads if task.threads else checks.processes
        self.n = _cores() if n is None else number("workers", n)
        if executor is not None:
            self.n = _count(executor)
        self._executor = executor

    def start(self, n_runs: int) -> None:
        """Make the default executor if there is none, and see that the workers can import the task.

        Parameters
        ----------
        n_runs : int
            How many there are to do: the default executor has no more workers.

        Raises
        ------
        ValueError
            If they cannot.
        RuntimeError
            If no worker comes up.
        """
        if self._executor is None:
            self.n = min(self.n, n_runs)
            self._executor = self._make()
        if isinstance(self._executor, ThreadPoolExecutor):
            self.here = self.here._replace(parts={})  # threads run what this process has
            return
        try:
            # A cluster has its own way to send functions. A process pool breaks on what it cannot unpickle.
            sent = self.here if _is_dask(self._executor) else pickle.dumps(self.here)
            problem = self._submit(runs.probe, sent).result()
        except runs.OtherCodeError as error:
            raise runs.OtherCodeError(str(error)) from None  # without the worker's traceback
        except BrokenExecutor as error:
            raise RuntimeError(
                "worker processes die at the start. A script that calls `sweep` must be a file and do so under "
                "`if __name__ == '__main__':`; otherwise see their own message above"
            ) from error
        if problem:
            rule = f"be a function that the workers can import; {OF_A_NOTEBOOK}"
            raise checks.reject("task", rule, f"{self.task.name} ({problem})")

    def submit(self, jobs: Sequence[tuple[dict, int]]) -> Future:
        """Results of the first of the jobs, see `yzflow.sweeps.runs.run_chunk`."""
        return self._submit(runs.run_chunk, self.here, jobs)

    def _submit(self, function: Callable, *arguments: object) -> Future:
        # A pool starts its processes when something is submitted.
        pool = isinstance(self._executor, ProcessPoolExecutor)
        with starting_processes() if pool else nullcontext():
            return cast(Executor, self._executor).submit(function, *arguments)

    def restart(self) -> None:
        """Replace a pool whose worker died."""
        if not self._own:
            raise RuntimeError(
                "the executor is broken, as one of its workers died. What was done is in the store: call `sweep` again "
                "with a new executor"
            )
        self.close(kill=True)
        self._executor = self._make()

    def close(self, *, kill: bool = False) -> None:
        """End the default executor; with ``kill``, without waiting for the runs in its processes."""
        if not self._own or self._executor is None:
            return
        if kill:
            for process in list((getattr(self._executor, "_processes", None) or {}).values()):
                process.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = None

    def _make(self) -> Executor:
        if self.task.threads:
            return ThreadPoolExecutor(self.n)
        # Spawned and not forked: a fork would inherit the threads of the libraries in an unknown state.
        context = multiprocessing.get_context("spawn")
        safe = (os.environ.get(_SAFE_PATH),)
        with starting_processes():  # its locks start the resource tracker
            return ProcessPoolExecutor(self.n, mp_context=context, initializer=runs.start_worker, initargs=safe)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.close(kill=kind is not None)


class _Queue:
    """Cells that wait: fresh ones, those to try again singly, and those to try for the last time, alone."""

    def __init__(self, cells: Sequence[int], n_workers: int, job: Callable[[int], tuple[dict, int] | None]) -> None:
        self._fresh = deque(cells)
        self._again: deque[int] = deque()
        self._last: deque[int] = deque()
        self._attempts: Counter[int] = Counter()
        self._n_workers, self._job = n_workers, job
        self._solitary = False

    def __bool__(self) -> bool:
        return bool(self._fresh or self._again or self._last)

    def take(self, n_flying: int) -> list[tuple[int, tuple[dict, int]]]:
        """The next chunk of (cell, job); empty if nothing is to be submitted beside what is in flight."""
        # Each worker has one chunk in hand and one that waits, so that it is never idle while results are written.
        if n_flying >= 2 * self._n_workers or (n_flying and (self._last or self._solitary)):
            return []
        self._solitary = bool(self._last)
        source = self._last or self._again or self._fresh
        # Short at the end, so that all workers finish together.
        size = 1 if source is not self._fresh else min(_LARGEST_CHUNK, 1 + len(source) // (4 * self._n_workers))
        chunk: list[tuple[int, tuple[dict, int]]] = []
        while source and len(chunk) < size:
            cell = source.popleft()
            if (job := self._job(cell)) is not None:
                chunk.append((cell, job))
        return chunk

    def give_back(self, chunk: Sequence[tuple[int, tuple[dict, int]]]) -> None:
        """Take what a worker did not come to."""
        self._fresh.extendleft(cell for cell, _ in reversed(chunk))

    def lost(self, chunk: Sequence[tuple[int, tuple[dict, int]]], error: Exception) -> list[tuple[int, Result]]:
        """Take what a worker died on; returns the results of those that will not be tried again."""
        given_up = []
        for cell, _ in chunk:
            self._attempts[cell] += 1
            if self._attempts[cell] >= ATTEMPTS:
                cause = "killed, or out of memory" if isinstance(error, BrokenExecutor) else runs.told(error)
                text = (
                    f"{type(error).__name__}: its worker died {ATTEMPTS} times, at last with this run alone ({cause})"
                )
                given_up.append((cell, Result(error=text)))
            else:
                (self._last if self._attempts[cell] == ATTEMPTS - 1 else self._again).append(cell)
        return given_up


def execute(
    workers: Workers, cells: Sequence[int], job: Callable[[int], tuple[dict, int] | None]
) -> Iterator[list[tuple[int, Result]]]:
    """Run the cells and yield (cell, result) in groups, as they come.

    Parameters
    ----------
    workers : Workers
        Started.
    cells : sequence of int
    job : callable
        Configuration and seed of a cell, or None if there is nothing to do any more.
    """
    queue = _Queue(cells, workers.n, job)
    flying: dict[Future, list] = {}

    def landed(future: Future) -> tuple[list, bool]:
        chunk = flying.pop(future)
        try:
            results = future.result()
        except runs.OtherCodeError:
            raise
        except Exception as error:
            return queue.lost(chunk, error), isinstance(error, BrokenExecutor)
        queue.give_back(chunk[len(results) :])
        return [(cell, result) for (cell, _), result in zip(chunk, results, strict=False)], False

    try:
        while queue or flying:
            broken = False
            while not broken and (chunk := queue.take(len(flying))):
                try:
                    flying[workers.submit([work for _, work in chunk])] = chunk
                except BrokenExecutor:
                    queue.give_back(chunk)
                    broken = True
            while flying:
                # The futures of a broken pool fail all at once.
                for future in wait(flying, return_when=ALL_COMPLETED if broken else FIRST_COMPLETED).done:
                    group, died = landed(future)
                    broken |= died
                    yield group
                if not broken:
                    break
            if broken:
                workers.restart()
    finally:
        for future in flying:
            future.cancel()


@contextmanager
def starting_processes() -> Iterator[None]:
    """Hold Ctrl-C back, and the modules in the person's folder.

    Processes and threads started meanwhile never get Ctrl-C, so that their parent ends them. Python looks for the
    modules of a process started by ``python -c`` in the present folder first: a ``bisect.py`` there would be run.
    """
    safe_path = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        # Started by the first process otherwise, and its start lets Ctrl-C through again.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        runs.set_or_unset(_SAFE_PATH, safe_path)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fields(words: Collection[str]) -> tuple[Field, ...]:
    """The fields from outside that a process which has just started can be told of.

    Raises
    ------
    ValueError
        If it cannot be told of one that the grid names.
    """
    from dynamics.fields.table import SYSTEMS

    picklable = []
    for field in (entry.field for entry in SYSTEMS.values() if entry.field is not None):
        try:
            pickle.dumps(field)
        except Exception as error:  # pickling can raise anything
            if field.name in words:
                rule = f"name fields whose functions stand at the top level of a module, for workers; {OF_A_NOTEBOOK}"
                raise checks.reject("grid", rule, f"{field.name!r} ({runs.told(error)})") from error
        else:
            picklable.append(field)
    return tuple(picklable)


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.startswith("distributed")


def _count(executor: Any) -> int:
    if _is_dask(executor):
        return sum(executor._client.ncores().values()) or _UNKNOWN_WORKERS
    return getattr(executor, "_max_workers", None) or _UNKNOWN_WORKERS
