"""The command sweep, and the executor of a dask cluster for it."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import click

from yzflow.commands.common import FILE, beside_person, files_to_write, print_facts
from yzflow.commands.options import Json, command


@command()
def sweep(
    context: click.Context,
    config: Annotated[Path, FILE],
    *,
    task: Annotated[
        str | None, "Your own function, MODULE:FUNCTION: CONFIG may name it, but does not decide what runs."
    ] = None,
    store: Annotated[Path | None, "Folder of the runs. Default: CONFIG's, or CONFIG.store."] = None,
    out: Annotated[Path | None, "netCDF file. Default: CONFIG's, or CONFIG.nc."] = None,
    seeds: Annotated[int | None, "Number of seeds. Default: CONFIG's, or 1."] = None,
    workers: Annotated[int | None, "Threads, processes or local dask workers. Default: one a core."] = None,
    dask: Annotated[str | None, "Run on a dask cluster: its ADDRESS, or 'local' for one on this machine."] = None,
    as_json: Json = False,
) -> None:
    """Run a task over a grid of configurations and seeds; the same command resumes it after any interruption.

    CONFIG is a TOML file, see examples/sweep.toml. The exit status is 1 if a run failed: it is marked in the result,
    and tried again by the same command.

    Example: yzflow sweep examples/sweep.toml --seeds 10 --out entropy.nc
    """
    from dynamics.support import checks
    from dynamics.support.netcdf import save_dataset
    from yzflow.sweeps import config as configuration
    from yzflow.sweeps.sweep import sweep as run

    settings = configuration.load(config)
    named, out = out, settings.out if out is None else out
    files_to_write(out)
    if out.resolve() == config.resolve():
        raise checks.reject("--out", "be another file than CONFIG", out)
    if named is None:
        configuration.check_replaces(out)
    if dask and workers is not None:
        checks.processes("workers", workers)
    if (":" in settings.task or task is not None) and task != settings.task:
        rule = f"be given as --task {settings.task} to run it, as a file does not decide what runs"
        if task is not None:
            rule = f"be {settings.task}, the task of {config}"
        elif ":" not in settings.task:
            rule = "be left out for a task that has a name"
        raise checks.reject("--task", rule, "none" if task is None else task)
    beside_person(task)
    store = settings.store if store is None else store
    context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    chosen = settings.seeds if seeds is None else seeds
    with _dask_executor(dask, workers) as executor:
        workers = None if dask else workers
        runs = run(settings.task, settings.grid, store=store, seeds=chosen, executor=executor, workers=workers)
    save_dataset(runs, out)
    n, failed = runs["failed"].size, int(runs["failed"].sum())
    print_facts(
        as_json,
        {"task": settings.task, "runs": n, "failed": failed, "store": str(store), "out": str(out)},
        [f"{n} runs of {settings.task}, {failed} failed", f"runs are in {store}", f"wrote {out}"],
    )
    context.exit(1 if failed else 0)


@contextmanager
def _dask_executor(address: str | None, workers: int | None):
    """The executor of a dask cluster, or None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("`--dask` must have dask.distributed: pip install 'yzflow[cluster]'") from error
    if address != "local" and workers is not None:
        raise ValueError(f"`--workers` must be left out with the address of a cluster, but got {workers}")
    with _local_cluster(workers) if address == "local" else nullcontext(address) as cluster:
        try:
            client = Client(cluster, timeout=10)
        except OSError as error:
            raise ValueError(
                f"`--dask` must be the address of a dask scheduler, but got {address} ({error})"
            ) from error
        with client:
            yield client.get_executor()


def _local_cluster(workers: int | None):
    import logging

    from distributed import LocalCluster

    from yzflow.sweeps.execution import starting_processes

    with starting_processes():
        # Runs hold the interpreter's lock or use a whole core, so each gets a process.
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.ERROR
        )


# <!-- numbers
# typed: 10 (example of a command)
# -->
