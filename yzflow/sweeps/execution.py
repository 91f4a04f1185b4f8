"""Runs on threads, processes or a cluster. If a worker dies, its runs are tried again."""

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

# Most tries of a run whose worker dies. In the last it runs alone, so no other run can kill its worker.
ATTEMPTS = 3
_LARGEST_CHUNK = 256
# Advice for functions of a notebook or a prompt, which other processes do not have.
OF_A_NOTEBOOK = (
    "in a notebook, write its cell into a module (%%writefile tasks.py) and import it from there, or pass "
    "executor=ThreadPoolExecutor()"
)
# Assumed number of workers of an executor that does not say.
_UNKNOWN_WORKERS = 64
_SAFE_PATH = "PYTHONSAFEPATH"  # of Python 3.11 and later
_POLL = 1.0  # seconds between looks at a scheduler, whose death no future tells


class SchedulerGone(RuntimeError):
    """The scheduler of a cluster died, or cannot be reached; what it had in hand is lost."""


class Workers:
    """An executor for chunks of runs, as a context manager.

    Parameters
    ----------
    task : Task
    executor : concurrent.futures.Executor, optional
        Default: threads if the task releases the interpreter's lock, else a pool of processes, which is replaced when a
        worker dies.
    n : int, optional
        Number of workers of the default executor. Default: the cores of this process.
    words : collection of str
        Words in the grid's values. A field from outside with such a name must be importable by workers.
    parts : mapping of str to str
        `Task.content` here. A worker with different content refuses to run.
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
        """Make the default executor if there is none, and check that the workers can import the task.

        Parameters
        ----------
        n_runs : int
            Number of runs; the default executor has no more workers.

        Raises
        ------
        ValueError
            If the workers cannot import the task.
        RuntimeError
            If no worker starts.
        """
        if self._executor is None:
            self.n = min(self.n, n_runs)
            self._executor = self._make()
        if isinstance(self._executor, ThreadPoolExecutor):
            self.here = self.here._replace(parts={})  # threads share the code of this process
            return
        try:
            # A cluster pickles functions in its own way. In a process pool, an error of unpickling breaks the pool.
            sent = self.here if _is_dask(self._executor) else pickle.dumps(self.here)
            probe = self._submit(runs.probe, sent)
            self.wait([probe])
            problem = probe.result()
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
        """Future for the results of the first jobs, see `yzflow.sweeps.runs.run_chunk`."""
        return self._submit(runs.run_chunk, self.here, jobs)

    def _submit(self, function: Callable, *arguments: object) -> Future:
        # A pool starts its processes at the first submission.
        pool = isinstance(self._executor, ProcessPoolExecutor)
        with starting_processes() if pool else nullcontext():
            return cast(Executor, self._executor).submit(function, *arguments)

    def wait(self, futures: Collection[Future], *, every: bool = False) -> set[Future]:
        """Futures that are done: the first ones, or with ``every`` all.

        Raises
        ------
        SchedulerGone
            If a cluster's scheduler died: its futures would never be done.
        """
        when = ALL_COMPLETED if every else FIRST_COMPLETED
        if not _is_dask(self._executor):
            return wait(futures, return_when=when).done
        while True:
            done, left = wait(futures, timeout=_POLL, return_when=when)
            status = cast(Any, self._executor)._client.status
            if status != "running":
                raise SchedulerGone(f"the scheduler of the dask cluster is gone (its client is {status})")
            if not left or (done and not every):
                return done

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
        with starting_processes():  # the pool's locks start the resource tracker
            return ProcessPoolExecutor(self.n, mp_context=context, initializer=runs.start_worker, initargs=safe)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.close(kill=kind is not None)


class _Queue:
    """Waiting cells: fresh ones, cells to retry one by one, and cells for a last try alone."""

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
        """The next chunk of (cell, job); empty if nothing may be submitted beside the chunks in flight."""
        # Two chunks for each worker, one in hand and one waiting, so it is never idle while results are written.
        if n_flying >= 2 * self._n_workers or (n_flying and (self._last or self._solitary)):
            return []
        self._solitary = bool(self._last)
        source = self._last or self._again or self._fresh
        # Chunks get short at the end, so that all workers finish together.
        size = 1 if source is not self._fresh else min(_LARGEST_CHUNK, 1 + len(source) // (4 * self._n_workers))
        chunk: list[tuple[int, tuple[dict, int]]] = []
        while source and len(chunk) < size:
            cell = source.popleft()
            if (job := self._job(cell)) is not None:
                chunk.append((cell, job))
        return chunk

    def give_back(self, chunk: Sequence[tuple[int, tuple[dict, int]]]) -> None:
        """Take back cells that a worker did not reach."""
        self._fresh.extendleft(cell for cell, _ in reversed(chunk))

    def lost(self, chunk: Sequence[tuple[int, tuple[dict, int]]], error: Exception) -> list[tuple[int, Result]]:
        """Take back cells of a worker that died; returns failed results for cells without another try."""
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
        Workers after `Workers.start`.
    cells : sequence of int
    job : callable
        cell -> (configuration, seed), or None if the cell needs no run any more.
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
                # All futures of a broken pool fail together.
                for future in workers.wait(flying, every=broken):
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
    """Shield new processes from Ctrl-C, and from modules in the present folder.

    Processes and threads that start in this context never get Ctrl-C; their parent ends them. A process started by
    ``python -c`` would import from the present folder first, for example a ``bisect.py`` there.
    """
    safe_path = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        # Start it now: otherwise the first process starts it, which lets Ctrl-C through again.
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
    """The fields from outside that can be pickled for a new process.

    Raises
    ------
    ValueError
        If a field that the grid names cannot be pickled.
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
