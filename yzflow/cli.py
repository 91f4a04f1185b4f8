"""The command `yzflow`.

Heavy imports stand inside the commands, so that ``yzflow --help`` starts at once.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click


class _Commands(click.Group):
    """Commands that have a standard error: where it is closed, click would print errors among the results."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        if sys.stderr is None:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, for as long as the process lives
        return super().main(*arguments, **options)


class _BadInput(click.ClickException):
    exit_code = 2


class _Command(click.Command):
    """A command whose bad input ends in one line and exit status 2, want of memory in 1, and Ctrl-C in 130."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = lambda message, *_: click.echo(f"Warning: {message}", err=True)
                return super().invoke(context)
        except click.exceptions.Exit:  # itself a RuntimeError
            raise
        except (ValueError, OSError, ImportError) as error:
            raise _BadInput(str(error)) from error
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {error}".removesuffix(": ")) from error
        except RuntimeError as error:  # a simulation that failed is no bad input
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            what = context.meta.get("interrupted", "every file that is there is complete; the same command starts over")
            click.echo(f"\ninterrupted: {what}", err=True)
            context.exit(130)


class _Figure(_Command):
    """The command whose help names the figures, which are looked up only then."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import figures

        papers: dict[str, list[str]] = {}
        for entry in figures.entries().values():
            papers.setdefault(entry.paper, []).append(entry.name)
        with formatter.section("Figures"):
            formatter.write_dl([(paper, ", ".join(names)) for paper, names in papers.items()])


def _file_to_write(path: Path) -> Path:
    """Refuse what cannot be written before long work, and not after it."""
    from dynamics.support.files import writable

    if path.name.startswith("--"):
        raise ValueError(f"`--out` must be the path of a file, but got {path}, which reads like an option")
    return writable("--out", path)


def _report(as_json: bool, facts: dict, lines: list[str]) -> None:
    """Facts for a machine, where null stands for what is no finite number, or lines for a person."""
    plain = {key: None if isinstance(fact, float) and not math.isfinite(fact) else fact for key, fact in facts.items()}
    click.echo(json.dumps(plain, indent=2, allow_nan=False) if as_json else "\n".join(lines))


def _print(text: str, out: Path | None) -> None:
    """Print a result, and write it to a file where that is asked for."""
    from dynamics.support.files import replacing

    click.echo(text)
    if out is not None:
        with replacing(out) as temporary:
            temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        click.echo(f"wrote {out}", err=True)


def _given(context: click.Context, *names: str) -> list[str]:
    """Those of the options that a person wrote."""
    return [name for name in names if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]


def _of_paper(option: str, names: tuple[str, ...], paper: str | None) -> Any:
    """The statements that an option names, or those of a paper; None for neither."""
    from yzflow.listing import paper_of

    if paper is None:
        return names or None
    if names:
        raise ValueError(f"`--paper` must be left out beside {option}, but got both")
    return paper_of(paper)


def _read(data: str, **options: Any) -> Any:
    """The data in a file that is named by ``--data``."""
    from dynamics import read_data

    if not Path(data).is_file():
        raise ValueError(f"`--data` must be a file that exists, or the name of a data set, but got {data!r}")
    return read_data(data, **options)


def _most_attended(trajectory: Any) -> tuple[dict, list[str]]:
    """For a machine and for a person: the token with most attention of each of the first next tokens."""
    from dynamics import _shown

    found = _shown.most_attended(trajectory, 10)
    facts = {after: {"token": token, "attention": share} for after, (token, share) in found.items()}
    lines = [f"before next token {n}, most attention is on {token}: {share:.3g}" for n, (token, share) in found.items()]
    return facts, lines


def _wrote(as_json: bool, facts: dict, lines: list[str], out: Path, csv: Path | None) -> None:
    """Report a run and its files."""
    paths = {"out": out} | ({} if csv is None else {"csv": csv})
    _report(as_json, facts | {k: str(p) for k, p in paths.items()}, [*lines, *(f"wrote {p}" for p in paths.values())])


_table = click.option("--csv", type=click.Path(path_type=Path), help="Attention over time as a table, too.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text.")
_paper = click.option("--paper", help="Only of this paper, by its name; `yzflow papers` lists all. Default: all.")
# The names of `dynamics.options`, which a test compares.
_TRAINING = (
    click.option("--weight-decay", type=float, help="lambda >= 0. Default: 0; 0.01 for adamw."),
    click.option("--decoupled", is_flag=True, default=None, help="Weight decay outside momentum, as adamw has it."),
    click.option("--clip", type=float, help="Largest norm of the gradient of all weights."),
    click.option("--warm-up", type=float, default=0.0, show_default=True, help="Steps until the full rates."),
    click.option("--schedule", default="constant", show_default=True, help="constant; or to 0 as cosine or linear."),
    click.option("--epsilon", type=float, default=1e-8, show_default=True, help="Of adam and adamw."),
    click.option("--criterion", default="cross-entropy", show_default=True, help="cross-entropy or squared."),
    click.option("--label-smoothing", type=float, default=0.0, show_default=True, help="eps in [0, 1)."),
    click.option("--temperature", type=float, default=1.0, show_default=True, help="tau in softmax(z / tau)."),
    click.option("--normalisation", default="unit", show_default=True, help="unit, layer (less the mean) or none."),
)


def _training(command: Any) -> Any:
    for option in reversed(_TRAINING):
        command = option(command)
    return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yzflow")
def main() -> None:
    """A numerical laboratory for the training dynamics of attention."""


@main.command(cls=_Command)
@click.option("--eta-y", type=float, default=1.0, show_default=True, help="Learning rate of the decoder, per step.")
@click.option("--eta-z", type=float, default=0.5, show_default=True, help="Learning rate of attention, per step.")
@click.option("--t-end", type=float, default=700.0, show_default=True, help="Last time, in SGD steps.")
@click.option(
    "--decoder", default="full", show_default=True, help="full, modified, theory, or a field of an installed package."
)
@click.option("--classes", "n_classes", type=int, default=10, show_default=True, help="K, next tokens that occur.")
@click.option("--vocab-size", type=int, default=1000, show_default=True, help="M, next tokens in all.")
@click.option("--data", help="FILE of classes (.csv, .json), bags (.npz) or text (.txt), in place of the three above.")
@click.option("--length", type=int, help="T, tokens a window of a text.")
@click.option("--common", type=float, default=0.15, show_default=True, help="Unnormalised weight of the common token.")
@click.option("--n-times", type=int, default=200, show_default=True, help="Number of output times.")
@click.option("--log-time", is_flag=True, help="Integrate and record in log(1 + t).")
@click.option("--optimizer", default="sgd", show_default=True, help="Whose flow: sgd, adam, adamw or sign.")
@click.option("--momentum", type=float, default=0.0, show_default=True, help="Of sgd and sign.")
@_training
@_table
@_json
@click.option("--out", type=click.Path(path_type=Path), default=Path("flow.nc"), show_default=True, help="netCDF file.")
@click.pass_context
def flow(
    context: click.Context,
    eta_y: float,
    eta_z: float,
    t_end: float,
    decoder: str,
    n_classes: int,
    vocab_size: int,
    data: str | None,
    length: int | None,
    common: float,
    n_times: int,
    log_time: bool,
    csv: Path | None,
    as_json: bool,
    out: Path,
    **training: Any,
) -> None:
    """Integrate the gradient flow with one common token (Theorem 4's setting), or on your own data, and write it.

    Example: yzflow flow --eta-y 2 --t-end 1e5 --log-time --out flow.nc

    Example: yzflow flow --data words.csv --csv attention.csv
    """
    from dynamics import SequenceClasses, Solver, gradient_flow, options

    _file_to_write(out)
    if csv is not None:
        _file_to_write(csv)
    for name in _given(context, "n_classes", "common") if data is not None else _given(context, "length"):
        option = {"n_classes": "--classes"}.get(name, f"--{name}")
        raise ValueError(f"`{option}` must be left out {'beside' if data else 'without'} `--data`, but it was given")
    own: Any = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    if data is not None:
        asked = vocab_size if _given(context, "vocab_size") else None
        own = _read(data, length=length, vocab_size=asked)
    trajectory = gradient_flow(
        own,
        eta_y=eta_y,
        eta_z=eta_z,
        t_end=t_end,
        decoder=decoder,
        n_times=n_times,
        solver=Solver(time_scale="log" if log_time else "linear"),
        **options.flow_options(training),
        progress=True,
    )
    trajectory.save(out)
    if csv is not None:
        trajectory.to_csv(csv)
    recorded = trajectory.dataset
    facts: dict[str, Any] = {"loss": float(recorded["loss"][-1])}
    lines = [f"{trajectory}", f"final loss {facts['loss']:.6g} nats"]
    if data is not None:
        facts["most_attended"], own_lines = _most_attended(trajectory)
        lines += own_lines
    else:
        # Not `final`, which needs Y: a large reduced flow never forms it.
        logits = recorded["z_final"] if "z_final" in recorded else recorded["z"].isel(time=-1)
        facts["common_logit"], facts["distinct_logit"] = map(float, logits.values[0, :2])
        lines.append("final logits: common token {common_logit:.6g}, most frequent distinct token {distinct_logit:.6g}"
                     .format(**facts))  # fmt: skip
    _wrote(as_json, facts, lines, out, csv)


@main.command(cls=_Command)
@click.option(
    "--data", default="syn_small", show_default=True,
    help="syn_small; syn_medium with --queries; a FILE of classes (.csv, .json), bags (.npz) or text (.txt).",
)  # fmt: skip
@click.option("--vocab-size", type=int, help="M of classes in FILE; of a text, the size of its vocabulary.")
@click.option("--queries", "n_queries", type=int, default=5, show_default=True, help="Query tokens of syn_medium.")
@click.option("--eta-y", type=float, default=1.0, show_default=True, help="Learning rate of the decoder, per step.")
@click.option("--eta-z", type=float, default=1.0, show_default=True, help="Learning rate of attention, per step.")
@click.option("--steps", type=int, default=100, show_default=True, help="Number of steps.")
@click.option("--batch-size", type=int, default=128, show_default=True, help="Sequences a step.")
@click.option("--length", type=int, default=128, show_default=True, help="T, tokens a sequence.")
@click.option("--momentum", type=float, default=0.9, show_default=True, help="Of sgd and sign.")
@click.option("--optimizer", default="sgd", show_default=True, help="sgd, adam, adamw or sign.")
@_training
@click.option("--init", default="zero", show_default=True, help="zero or uniform.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of start and samples.")
@click.option("--record-every", type=int, default=1, show_default=True, help="Steps between recorded states.")
@click.option("--dtype", default="float64", show_default=True, help="float64 or float32.")
@click.option("--epochs", is_flag=True, help="Draw classes without replacement, each once an epoch.")
@_table
@_json
@click.option("--out", type=click.Path(path_type=Path), default=Path("sgd.nc"), show_default=True, help="netCDF file.")
@click.pass_context
def sgd(
    context: click.Context,
    data: str,
    vocab_size: int | None,
    n_queries: int,
    epochs: bool,
    csv: Path | None,
    as_json: bool,
    out: Path,
    **arguments: Any,
) -> None:
    """Train by SGD on one of the paper's synthetic data sets, or on your own data, and write the trajectory.

    Example: yzflow sgd --data syn_medium --queries 5 --eta-y 2 --init uniform --out sgd.nc

    Example: yzflow sgd --optimizer adamw --weight-decay 0.01 --warm-up 10 --schedule cosine --eta-y 0.1 --eta-z 0.1

    Example: yzflow sgd --data words.csv --steps 500 --csv attention.csv
    """
    import dynamics
    from dynamics import options
    from dynamics.data.reading import TEXTS

    for path in (out, csv):
        if path is not None:
            _file_to_write(path)
    known: dict[str, Any] = {
        "syn_small": dynamics.SequenceClasses.syn_small,
        "syn_medium": lambda: dynamics.SequenceClasses.syn_medium(n_queries),
    }
    if data in known:
        if vocab_size is not None:
            raise ValueError(f"`--vocab-size` must be left out for {data}, but got {vocab_size}")
        own = known[data]()
    else:
        length = arguments["length"] if Path(data).suffix.lower() in TEXTS else None
        own = _read(data, length=length, vocab_size=vocab_size)
        if not hasattr(own, "population") and (length is not None or not _given(context, "length")):
            arguments["length"] = None  # bags are taken as they are
    given = {"optimizer": options.optimizer_of(arguments), "objective": options.objective_of(arguments)}
    for name in ("momentum", *options.OF_OPTIMIZER, *options.OF_OBJECTIVE):
        del arguments[name]
    trajectory = dynamics.sgd(own, progress=True, replacement=not epochs, **arguments | given)
    trajectory.save(out)
    if csv is not None:
        trajectory.to_csv(csv)
    loss = float(trajectory.dataset["loss"][-1])
    entropy = float(trajectory.attention_entropy().isel(time=-1).mean())
    facts: dict[str, Any] = {"loss": loss, "entropy": entropy}
    lines = [f"{trajectory}", f"final loss {loss:.6g} nats"]
    if not math.isnan(entropy):  # some next token has distinct ones
        lines.append(f"final entropy of attention on distinct tokens {entropy:.4g} nats, mean over next tokens")
    if data not in known:
        facts["most_attended"], own_lines = _most_attended(trajectory)
        lines += own_lines
    _wrote(as_json, facts, lines, out, csv)


@main.command(cls=_Command)
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--store", type=click.Path(path_type=Path), help="Folder of the runs. Default: CONFIG's, or CONFIG.store."
)
@click.option("--out", type=click.Path(path_type=Path), help="netCDF file. Default: CONFIG's, or CONFIG.nc.")
@click.option("--seeds", type=int, help="Number of seeds. Default: CONFIG's, or 1.")
@click.option("--workers", type=int, help="Threads, processes or local dask workers. Default: one a core.")
@click.option("--dask", help="Run on a dask cluster: its ADDRESS, or 'local' for one on this machine.")
@_json
@click.pass_context
def sweep(
    context: click.Context,
    config: Path,
    store: Path | None,
    out: Path | None,
    seeds: int | None,
    workers: int | None,
    dask: str | None,
    as_json: bool,
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

    asked = configuration.load(config)
    out = _file_to_write(asked.out if out is None else out)
    if out.resolve() == config.resolve():
        raise checks.reject("--out", "be another file than CONFIG", out)
    if dask and workers is not None:
        checks.processes("workers", workers)
    if ":" in asked.task and os.getcwd() not in sys.path:
        # A module beside the person, after all others: its name may be one that a library imports.
        sys.path.append(os.getcwd())
    store = asked.store if store is None else store
    context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    chosen = asked.seeds if seeds is None else seeds
    with _dask_executor(dask, workers) as executor:
        workers = None if dask else workers
        runs = run(asked.task, asked.grid, store=store, seeds=chosen, executor=executor, workers=workers)
    save_dataset(runs, out)
    n, failed = runs["failed"].size, int(runs["failed"].sum())
    _report(
        as_json,
        {"task": asked.task, "runs": n, "failed": failed, "store": str(store), "out": str(out)},
        [f"{n} runs of {asked.task}, {failed} failed", f"runs are in {store}", f"wrote {out}"],
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
        # Runs hold the interpreter's lock or use all of a core: a process for each.
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.ERROR
        )


@main.command(cls=_Figure)
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), default=Path("figures"), show_default=True, help="Folder.")
@click.option("--format", "formats", default="png,pdf", show_default=True, help="Some of png, pdf, svg.")
@click.option("--store", type=click.Path(path_type=Path), help="Where simulations are kept. Default: OUT/store.")
@click.option("--quick", is_flag=True, help="Fewer seeds or output times.")
@_json
def figure(name: str, out: Path, formats: str, store: Path | None, quick: bool, as_json: bool) -> None:
    """Draw a figure: its number in its paper, or its name.

    What it simulates is kept, and drawing it again or in another format simulates nothing.

    Example: yzflow figure 6 --quick --format pdf --out figures
    """
    from dynamics.support import checks
    from dynamics.support.files import folder
    from yzflow import figures

    entry = figures.find(name)
    kinds = [checks.one_of("--format", kind, ("png", "pdf", "svg")) for kind in formats.split(",")]
    folder("--out", out)
    data = entry.data(figures.Effort(quick=quick, store=out / "store" if store is None else store, progress=True))
    paths = [str(path) for path in figures.save(entry.draw(data), out / entry.name, formats=kinds)]
    caption = entry.caption(data)
    facts = {"figure": entry.name, "caption": caption, "files": paths}
    _report(as_json, facts, [caption, *(f"wrote {path}" for path in paths)])


@main.command(cls=_Command)
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Compute what takes seconds; of the rest, print the published numbers.")
@click.option("--seed", type=int, help="In place of that of the settings.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("figures"), show_default=True, help="Folder.")
@_json
@click.pass_context
def study(context: click.Context, name: str | None, quick: bool, seed: int | None, out: Path, as_json: bool) -> None:
    """Compute the numbers of the study NAME and draw its figures; without NAME, list the studies.

    Each number says where it comes from: computed now, published, or of an earlier run. Exit status 1 if a fresh number
    is not the published one. Studies are a distribution of their own, yzflow-studies.

    Example: yzflow study adam_reverses --quick
    """
    from dynamics.support.files import folder
    from yzflow import studies
    from yzflow.audits.screen import clipped

    if name is None:
        if given := _given(context, "quick", "seed", "out"):
            raise ValueError(f"`--{given[0]}` must be left out without `NAME`, but it was given")
        rooms = {room.name: room.line for room in studies.installed().values()}
        width = max(map(len, rooms))
        _report(as_json, rooms, [clipped(f"{room:{width}}  {line}") for room, line in rooms.items()])
        return
    room = studies.find(name)
    folder("--out", out)
    found = []
    for one in studies.numbers(room, quick=quick, seed=seed):
        found.append(one)
        if not as_json:
            click.echo("\n".join(one.lines))
    drawn = studies.draw(room, out, quick=quick)
    facts = {"study": name, "numbers": [vars(one) for one in found], "figures": drawn}
    _report(as_json, facts, [line for one in drawn for line in (one["caption"], *(f"wrote {p}" for p in one["files"]))])
    context.exit(1 if any(one.differ for one in found) else 0)


@main.command(cls=_Command)
@click.option("--only", multiple=True, help="A statement, by id or number; may be repeated. Default: all.")
@_paper
@click.option("--quick", is_flag=True, help="Only some of the settings.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--enclose", is_flag=True, help="Decide what is said of flows for every time, in ball arithmetic.")
@click.option("--until", type=float, default=1e4, show_default=True, help="With --enclose: last time, in SGD steps.")
@click.option("--max-seconds", type=float, default=60.0, show_default=True, help="With --enclose: for each flow.")
@click.option("--certificates", type=click.Path(path_type=Path), help="With --enclose: their folder.")
@_json
@click.option("--out", type=click.Path(path_type=Path), help="Folder for audit.json and audit.html.")
@click.pass_context
def audit(
    context: click.Context,
    only: tuple[str, ...],
    paper: str | None,
    quick: bool,
    seed: int,
    enclose: bool,
    until: float,
    max_seconds: float,
    certificates: Path | None,
    as_json: bool,
    out: Path | None,
) -> None:
    """Run the proofs and measure the checks of the register; exit status 1 if what should hold does not.

    With --enclose the flows are enclosed in balls too, and their certificates kept (default: in OUT/certificates).

    Example: yzflow audit --only "Scan and Snap: Theorem 3" --quick --enclose --out audit
    """
    from dynamics.support.files import folder
    from yzflow.audits.audit import Enclose
    from yzflow.audits.audit import audit as run

    if out is not None:
        folder("--out", out)
    how = None
    if enclose:
        where = out / "certificates" if certificates is None and out is not None else certificates
        how = Enclose(until, max_seconds, None if where is None else folder("--certificates", where))
    chosen = _of_paper("--only", only, paper)
    report = run(chosen, quick=quick, seed=seed, enclose=how, progress=True)
    click.echo(report.json() if as_json else report.text())
    if out is not None:
        report.to_json(out / "audit.json")
        report.to_html(out / "audit.html")
        click.echo(f"wrote {out / 'audit.json'} and {out / 'audit.html'}", err=as_json)
    context.exit(0 if report.passed else 1)


@main.command(cls=_Command)
@click.argument("statement")
@click.option("--full", is_flag=True, help="All the audit's settings, not only the quick ones.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--markdown", is_flag=True, help="Print a card to paste into a review.")
@click.option("--verbose", is_flag=True, help="Print all that was computed: every part, setting and scope.")
@click.option("--data", type=click.Path(path_type=Path), help="Your own data, in place of the register's settings.")
@click.option("--length", type=int, help="With --data FILE.txt: T, tokens in a window of the text.")
@click.option("--eta-y", type=float, help="With --data: learning rate of the decoder, per step. Default: 1.")
@click.option("--eta-z", type=float, help="With --data: learning rate of attention, per step. Default: 0.5.")
@click.option("--t-end", type=float, help="With --data: SGD steps. Default: 4 K ln M/eta_Y.")
@click.option("--optimizer", help="With --data: sgd, adam, adamw or sign. Default: plain steps.")
@click.option("--level", help="With --data: one level, as 'full flow'. Default: those of training.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the verdict as an HTML page to this file, too.")
@_json
@click.option("--out", type=click.Path(path_type=Path), help="Write what is printed to this file as well.")
@click.pass_context
def check(
    context: click.Context,
    statement: str,
    full: bool,
    seed: int,
    markdown: bool,
    verbose: bool,
    data: Path | None,
    length: int | None,
    page: Path | None,
    as_json: bool,
    out: Path | None,
    **training: Any,
) -> None:
    """Run the proof and the simulations of one STATEMENT; exit status 1 if what should hold does not.

    With --data the checks are run on your own data and training, and the margins of the assumptions are those there.
    What is printed fits on a screen; --verbose has the rest. `yzflow statements` lists what there is.

    Example: yzflow check "Scan and Snap: Theorem 3"

    Example: yzflow check "Scan and Snap: Theorem 3" --data classes.csv --optimizer adamw --eta-y 0.01 --eta-z 0.001
    """
    from dynamics.data.reading import read_data
    from yzflow.audits.check import check as run

    if markdown and as_json:
        raise ValueError("`--markdown` must be left out beside --json, but got both")
    if verbose and (markdown or as_json):
        beside = "--markdown" if markdown else "--json"
        raise ValueError(f"`--verbose` must be left out beside {beside}, which has everything, but got both")
    if out is not None:
        _file_to_write(out)
    if page is not None:
        _file_to_write(page)
    own = None if data is None else read_data(data, length=length)
    verdict = run(statement, data=own, **training, quick=not full, seed=seed, progress=True)
    if page is not None:
        verdict.page(page)
    text = verdict.json() if as_json else verdict.markdown() if markdown else verdict.text(verbose=verbose)
    _print(text, out)
    context.exit(0 if verdict.passed else 1)


@main.command(cls=_Command)
@click.argument("statement", required=False)
@click.option("--out", type=click.Path(path_type=Path), help="HTML file. Default: the statement's name with .html.")
@click.option("--all", "everything", type=click.Path(path_type=Path), help="Folder for the pages of all statements.")
@click.option("--full", is_flag=True, help="All the audit's settings, not only the quick ones.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option(
    "--certificate", "certificates", multiple=True, type=click.Path(path_type=Path), help="File to verify there."
)
@click.option(
    "--verifier", type=click.Path(path_type=Path), help="Folder of the packages of verifier.js: write it, too."
)
@_json
@click.pass_context
def page(
    context: click.Context,
    statement: str | None,
    out: Path | None,
    everything: Path | None,
    full: bool,
    seed: int,
    certificates: tuple[Path, ...],
    verifier: Path | None,
    as_json: bool,
) -> None:
    """Write the page of one STATEMENT, or of all with an index: HTML that works offline.

    It shows the statement, what it rests on, its errors by level, its errata and its proof. Exit status 1 if what
    should hold does not; the page says so too. With --all the audit runs once, which takes some minutes.

    A --certificate that audit --enclose kept is verified by a button on the page, in the browser. It needs verifier.js
    beside the page, a large file: --verifier writes it, from two packages that pip and npm bring into its folder.

    Example: yzflow page "Scan and Snap: Theorem 4" --out theorem4.html
    """
    from yzflow.audits.check import find
    from yzflow.pages import contents
    from yzflow.pages import statement as single

    if (statement is None) == (everything is None):
        given = "neither" if statement is None else "both"
        raise ValueError(f"`STATEMENT` must be given or else `--all`, but got {given}")
    if everything is not None:
        for name, value in (("--out", out), ("--certificate", certificates), ("--verifier", verifier)):
            if value:
                raise ValueError(f"`{name}` must be left out beside --all, but got both")
        report = contents.write_all(everything, quick=not full, seed=seed, progress=True)
        start, n = everything / contents.INDEX, len(report.statements)
        facts = {"statements": n, "passed": report.passed, "out": str(start)}
        _report(as_json, facts, [f"{n} statements, {'passed' if report.passed else 'not passed'}", f"wrote {start}"])
        context.exit(0 if report.passed else 1)
    assert statement is not None
    out = _file_to_write(Path(f"{single.slug(find(statement))}.html") if out is None else out)
    verdict = single.page(
        statement,
        out,
        quick=not full,
        seed=seed,
        progress=True,
        certificates=certificates,
        verifier=verifier,
    )
    facts = {"statement": verdict.statement.id, "summary": str(verdict.summary), "passed": verdict.passed}
    _report(as_json, {**facts, "out": str(out)}, [verdict.outcome, f"wrote {out}"])
    context.exit(0 if verdict.passed else 1)


@main.command(cls=_Command)
@click.option("--statements", multiple=True, help="One, by id or number; may be repeated. Default: all on training.")
@click.option("--paper", help="All of this paper. Default: of the first with options of training.")
@click.option("--options", multiple=True, help="A change of an assumption; may be repeated. Default: all.")
@click.option("--quick", is_flag=True, help="Two settings and fewer seeds.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first of the seeds.")
@click.option("--store", type=click.Path(path_type=Path), help="Folder of the runs. Default: OUT with .store.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes.")
@_json
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("survival.nc"), show_default=True, help="netCDF file."
)
@click.pass_context
def survival(
    context: click.Context,
    statements: tuple[str, ...],
    paper: str | None,
    options: tuple[str, ...],
    quick: bool,
    seed: int,
    store: Path | None,
    workers: int,
    as_json: bool,
    out: Path,
) -> None:
    """Ask which statements survive which change of an assumption; the same command resumes it.

    Example: yzflow survival --statements "Theorem 3" --options plain --options adamw --quick
    """
    from dynamics.support.netcdf import save_dataset
    from yzflow.audits import survival_report
    from yzflow.audits.report import as_json as printed
    from yzflow.audits.survival import survival as run

    _file_to_write(out)
    store = out.with_suffix(".store") if store is None else store
    context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    chosen = _of_paper("--statements", statements, paper)
    how: dict[str, Any] = {"quick": quick, "seed": seed, "store": store, "progress": True, "workers": workers}
    table = run(chosen, options or None, **how)
    save_dataset(table, out)
    facts = survival_report.facts(table) | {"store": str(store), "out": str(out)} if as_json else None
    click.echo(survival_report.text(table) if facts is None else printed(facts))
    click.echo(f"runs are in {store}\nwrote {out}", err=as_json)


class _Example(_Command):
    """The command whose help names the examples, which are looked up only then."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import examples

        with formatter.section("Examples"):
            formatter.write_dl(list(examples.names().items()))


@main.command(cls=_Example, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--copy", "to", type=click.Path(path_type=Path), help="Put a copy of it into this folder, and run nothing."
)
@click.argument("name")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def example(context: click.Context, to: Path | None, name: str, arguments: tuple[str, ...]) -> None:
    """Run the example NAME with ARGUMENTS, or copy it.

    Example: yzflow example phase_transition --quick
    """
    from yzflow import examples

    if to is not None:
        click.echo(f"wrote {examples.copy(name, to)}")
        return
    context.exit(examples.run(name, arguments))


@main.command(cls=_Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--name", default="Results of yzflow", show_default=True, help="Title of the results.")
@click.option("--license", "terms", default="", help="URL of their licence. Without, it says that none is given.")
@_json
def crate(folder: Path, name: str, terms: str, as_json: bool) -> None:
    """Describe a FOLDER of results as an RO-Crate: what each file is and what made it, in ro-crate-metadata.json.

    Example: yzflow crate audit --name "Theorem 3, audited"
    """
    from yzflow import crates

    described = crates.describe(folder, name=name, terms=terms)
    lines = [f"{file}: {what}" for file, what in described.items()]
    written = folder / crates.METADATA
    _report(as_json, {"files": described, "out": str(written)}, [*lines, f"wrote {written}"])


@main.command(cls=_Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_json
def manifest(folder: Path, as_json: bool) -> None:
    """List the files of a FOLDER with their hashes in manifest.json, for verify --manifest.

    Example: yzflow manifest certificates
    """
    from yzflow import manifests

    found = manifests.write(folder)
    written = folder / manifests.NAME
    lines = [f"{one.path}: {one.kind}, SHA-256 {one.sha256}" for one in found]
    _report(as_json, {"files": [vars(one) for one in found], "out": str(written)}, [*lines, f"wrote {written}"])


@main.command(cls=_Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--manifest", "listed", is_flag=True, help="FILE is a manifest: compare all that it lists.")
@_json
@click.option("--out", type=click.Path(path_type=Path), help="Write what is printed to this file as well.")
@click.pass_context
def verify(context: click.Context, file: Path, listed: bool, as_json: bool, out: Path | None) -> None:
    """Check a certificate by a program of its own, and print what it claims; exit status 1 if it is not verified.

    With --manifest, compare a folder with its list of hashes, and check the certificates in it.

    Example: yzflow verify lead.npz
    """
    from yzflow import manifests, verify

    if out is not None:
        _file_to_write(out)
    if listed:
        found = manifests.check(file, progress=True)
        lines = [line for one in found for line in (f"{one.path}: {one.words}", *(f"  {own}" for own in one.lines))]
        good = all(one.good for one in found)
        facts: dict[str, Any] = {"files": [vars(one) for one in found]}
    else:
        try:
            good, lines = True, verify.check(str(file))
        except verify.REFUSALS as error:
            good, lines = False, [f"not verified: {str(error)!a}"]
        facts = {"verified": good, "lines": lines}
    _print(json.dumps(facts, indent=2) if as_json else "\n".join(lines), out)
    context.exit(0 if good else 1)


@main.command(cls=_Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Bags too large for FILE.")
@_json
@click.option("--out", type=click.Path(path_type=Path), help="Write what is printed to this file as well.")
@click.pass_context
def rerun(context: click.Context, file: Path, data: Path | None, as_json: bool, out: Path | None) -> None:
    """Make a saved FILE again and compare the bits; exit status 1 if they differ, with what is different here.

    FILE is a trajectory (yzflow flow, sgd), a result of yzflow sweep or survival, audit.json, a check as JSON, or a
    certificate.

    Example: yzflow rerun sgd.nc
    """
    from dynamics import Bags
    from yzflow.reruns import rerun as run

    if out is not None:
        _file_to_write(out)
    report = run(file, progress=True, **({} if data is None else {"data": Bags.load(data)}))
    _print(report.json() if as_json else report.text(), out)
    context.exit(0 if report.same else 1)


@main.command(cls=_Command)
@click.option("--out", type=click.Path(path_type=Path), default=Path("explorer.html"), show_default=True, help="File.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--data", type=click.Path(path_type=Path), help="Your own classes (.csv, .tsv, .json), to open and edit.")
@_json
def explore(out: Path, show: bool, data: Path | None, as_json: bool) -> None:
    """Write the explorer: one HTML file with sliders, for a lecture, which works offline.

    Example: yzflow explore --open

    Example: yzflow explore --data classes.csv --open
    """
    from dynamics.data.reading import read_data
    from yzflow.pages import explorer

    _file_to_write(out)
    own = None if data is None else read_data(data)
    explorer.write(out, data=own, name="" if data is None else data.name, progress=True)
    _report(as_json, {"out": str(out)}, [f"wrote {out}"])
    if show:
        click.launch(str(out.absolute()))


_copy = click.option("--out", type=click.Path(path_type=Path), help="Write what is printed to this file as well.")


def _listed(kind: str, paper: str | None, as_json: bool, out: Path | None) -> None:
    from yzflow import listing

    if out is not None:
        _file_to_write(out)
    entries = getattr(listing, kind)(paper)
    _print(json.dumps(entries, indent=2) if as_json else "\n".join(listing.text(entries)), out)


@main.command(cls=_Command)
@_json
@_copy
def papers(as_json: bool, out: Path | None) -> None:
    """List the papers: ours, and those of other distributions that are installed.

    One that cannot be imported is named with the reason.

    Example: yzflow papers --json
    """
    from yzflow import listing

    if out is not None:
        _file_to_write(out)
    entries = listing.papers()
    lines = [f"{one['name']:20}  {one['statements']:3} statements  {one['reference']}" for one in entries]
    _print(json.dumps(entries, indent=2) if as_json else "\n".join(lines), out)


@main.command("new-paper", cls=_Command)
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), default=Path("."), help="Folder that it is made in.")
@_json
def new_paper(name: str, out: Path, as_json: bool) -> None:
    """Write a paper to begin with: a distribution with a statement, its proof, a figure and tests that pass.

    Example: yzflow new-paper "My paper"
    """
    from yzflow import skeleton

    written = [str(path) for path in skeleton.write(name, out)]
    root = Path(written[0]).parent
    then = f"next: pip install -e '{root}[test]' && pytest {root}"
    _report(as_json, {"files": written}, [*(f"wrote {path}" for path in written), then])


@main.command(cls=_Command)
@_paper
@_json
@_copy
def statements(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the statements of the register, for check, page, audit and survival.

    Example: yzflow statements --paper "Scan and Snap"
    """
    _listed("statements", paper, as_json, out)


@main.command(cls=_Command)
@_paper
@_json
@_copy
def options(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the options of training under which survival asks the statements.

    Example: yzflow options --paper "Scan and Snap" --json
    """
    _listed("options", paper, as_json, out)


@main.command(cls=_Command)
@_paper
@_json
@_copy
def figures(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the figures, with what each shows; figure draws one.

    Example: yzflow figures --paper bounded_dyck
    """
    _listed("figures", paper, as_json, out)
