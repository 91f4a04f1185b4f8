"""Commands that simulate: flow and sgd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from yzflow.commands.common import PATH, Command, asked_for, files_to_write, json_option, print_facts, read


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
    print_facts(
        as_json, facts | {k: str(p) for k, p in paths.items()}, [*lines, *(f"wrote {p}" for p in paths.values())]
    )


_table = click.option("--csv", type=PATH, help="Attention over time as a table, too.")
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


@click.command(cls=Command)
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
@json_option
@click.option("--out", type=PATH, default=Path("flow.nc"), show_default=True, help="netCDF file.")
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

    files_to_write(out, csv)
    for name in asked_for(context, "n_classes", "common") if data is not None else asked_for(context, "length"):
        option = {"n_classes": "--classes"}.get(name, f"--{name}")
        raise ValueError(f"`{option}` must be left out {'beside' if data else 'without'} `--data`, but it was given")
    own: Any = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    if data is not None:
        asked = vocab_size if asked_for(context, "vocab_size") else None
        own = read(data, length=length, vocab_size=asked)
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


@click.command(cls=Command)
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
@json_option
@click.option("--out", type=PATH, default=Path("sgd.nc"), show_default=True, help="netCDF file.")
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

    files_to_write(out, csv)
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
        rule = "be a file that exists, or the name of a data set"
        own = read(data, rule, length=length, vocab_size=vocab_size)
        if not hasattr(own, "population") and (length is not None or not asked_for(context, "length")):
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
