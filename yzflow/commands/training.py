"""Commands that simulate: flow and sgd."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import asked_for, files_to_write, print_facts, read
from yzflow.commands.options import Json, command


def _most_attended(trajectory: Any) -> tuple[dict, list[str]]:
    """The token with most attention for each of the first next tokens, as data and as lines."""
    from dynamics import _shown

    tokens = _shown.most_attended(trajectory, 10)
    facts = {after: {"token": token, "attention": share} for after, (token, share) in tokens.items()}
    lines = [
        f"before next token {n}, most attention is on {token}: {share:.3g}" for n, (token, share) in tokens.items()
    ]
    return facts, lines


def _wrote(as_json: bool, facts: dict, lines: list[str], out: Path, csv: Path | None) -> None:
    """Report a run and its files."""
    paths = {"out": out} | ({} if csv is None else {"csv": csv})
    print_facts(
        as_json, facts | {k: str(p) for k, p in paths.items()}, [*lines, *(f"wrote {p}" for p in paths.values())]
    )


@dataclass
class _Training:
    """Options of training, named as in `dynamics.options`."""

    optimizer: Annotated[str, "sgd, adam, adamw or sign."] = "sgd"
    weight_decay: Annotated[float | None, "lambda >= 0. Default: 0; 0.01 for adamw."] = None
    decoupled: Annotated[bool | None, "Weight decay outside momentum, as adamw has it."] = None
    clip: Annotated[float | None, "Largest norm of the gradient of all weights."] = None
    warm_up: Annotated[float, "Steps until the full rates."] = 0.0
    schedule: Annotated[str, "constant; or to 0 as cosine or linear."] = "constant"
    epsilon: Annotated[float, "Of adam and adamw."] = 1e-8
    criterion: Annotated[str, "cross-entropy or squared."] = "cross-entropy"
    label_smoothing: Annotated[float, "eps in [0, 1)."] = 0.0
    temperature: Annotated[float, "tau in softmax(z / tau)."] = 1.0
    normalisation: Annotated[str, "unit, layer (less the mean) or none."] = "unit"


Table = Annotated[Path | None, "Attention over time as a table, too."]
RateOfY = Annotated[float, "Learning rate of the decoder, per step."]
RateOfZ = Annotated[float, "Learning rate of attention, per step."]
Momentum = Annotated[float, "Of sgd and sign."]


@command()
def flow(
    context: click.Context,
    *,
    eta_y: RateOfY = 1.0,
    eta_z: RateOfZ = 0.5,
    t_end: Annotated[float, "Last time, in SGD steps."] = 700.0,
    decoder: Annotated[str, "full, modified, theory, or a field of an installed package."] = "full",
    n_classes: Annotated[int, "--classes", "K, next tokens that occur."] = 10,
    vocab_size: Annotated[int, "M, next tokens in all."] = 1000,
    data: Annotated[
        str | None, "FILE of classes (.csv, .json), bags (.npz) or text (.txt), in place of the three above."
    ] = None,
    length: Annotated[int | None, "T, tokens a window of a text."] = None,
    common: Annotated[float, "Unnormalised weight of the common token."] = 0.15,
    n_times: Annotated[int, "Number of output times."] = 200,
    log_time: Annotated[bool, "Integrate and record in log(1 + t)."] = False,
    momentum: Momentum = 0.0,
    training: _Training,
    csv: Table = None,
    as_json: Json = False,
    out: Annotated[Path, "netCDF file."] = Path("flow.nc"),
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
    classes: Any = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    if data is not None:
        size = vocab_size if asked_for(context, "vocab_size") else None
        classes = read(data, length=length, vocab_size=size)
    trajectory = gradient_flow(
        classes,
        eta_y=eta_y,
        eta_z=eta_z,
        t_end=t_end,
        decoder=decoder,
        n_times=n_times,
        solver=Solver(time_scale="log" if log_time else "linear"),
        **options.flow_options({"momentum": momentum, **vars(training)}),
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
        # `final` would form Y, which is large for a reduced flow.
        logits = recorded["z_final"] if "z_final" in recorded else recorded["z"].isel(time=-1)
        facts["common_logit"], facts["distinct_logit"] = map(float, logits.values[0, :2])
        lines.append("final logits: common token {common_logit:.6g}, most frequent distinct token {distinct_logit:.6g}"
                     .format(**facts))  # fmt: skip
    _wrote(as_json, facts, lines, out, csv)


@dataclass
class _Descent:
    """Arguments of `dynamics.sgd` that become options unchanged."""

    eta_y: RateOfY = 1.0
    eta_z: RateOfZ = 1.0
    steps: Annotated[int, "Number of steps."] = 100
    batch_size: Annotated[int, "Sequences a step."] = 128
    length: Annotated[int | None, "T, tokens a sequence."] = 128
    init: Annotated[str, "zero or uniform."] = "zero"
    seed: Annotated[int, "Seed of start and samples."] = 0
    record_every: Annotated[int, "Steps between recorded states."] = 1
    dtype: Annotated[str, "float64 or float32."] = "float64"


@command()
def sgd(
    context: click.Context,
    *,
    data: Annotated[
        str, "syn_small; syn_medium with --queries; a FILE of classes (.csv, .json), bags (.npz) or text (.txt)."
    ] = "syn_small",
    vocab_size: Annotated[int | None, "M of classes in FILE; of a text, the size of its vocabulary."] = None,
    n_queries: Annotated[int, "--queries", "Query tokens of syn_medium."] = 5,
    descent: _Descent,
    momentum: Momentum = 0.9,
    training: _Training,
    epochs: Annotated[bool, "Draw classes without replacement, each once an epoch."] = False,
    csv: Table = None,
    as_json: Json = False,
    out: Annotated[Path, "netCDF file."] = Path("sgd.nc"),
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
        classes = known[data]()
    else:
        length = descent.length if Path(data).suffix.lower() in TEXTS else None
        rule = "be a file that exists, or the name of a data set"
        classes = read(data, rule, length=length, vocab_size=vocab_size)
        if not hasattr(classes, "population") and (length is not None or not asked_for(context, "length")):
            descent.length = None  # bags have no length to sample
    words = {"momentum": momentum, **vars(training)}
    how: dict[str, Any] = {"optimizer": options.optimizer_of(words), "objective": options.objective_of(words)}
    trajectory = dynamics.sgd(classes, progress=True, replacement=not epochs, **vars(descent), **how)
    trajectory.save(out)
    if csv is not None:
        trajectory.to_csv(csv)
    loss = float(trajectory.dataset["loss"][-1])
    entropy = float(trajectory.attention_entropy().isel(time=-1).mean())
    facts: dict[str, Any] = {"loss": loss, "entropy": entropy}
    lines = [f"{trajectory}", f"final loss {loss:.6g} nats"]
    if not math.isnan(entropy):  # NaN without distinct tokens
        lines.append(f"final entropy of attention on distinct tokens {entropy:.4g} nats, mean over next tokens")
    if data not in known:
        facts["most_attended"], own_lines = _most_attended(trajectory)
        lines += own_lines
    _wrote(as_json, facts, lines, out, csv)


# <!-- numbers
# typed: 2 1e5 5 0.01 10 0.1 500 (example of a command)
# -->
