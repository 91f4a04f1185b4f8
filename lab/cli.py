"""The command `yzflow`.

Heavy imports stand inside the commands, so that ``yzflow --help`` starts at once.
"""

from __future__ import annotations

from pathlib import Path

import click


class _Command(click.Command):
    """A command whose bad input ends in one line and exit status 2."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except click.exceptions.Exit:  # itself a RuntimeError
            raise
        except (ValueError, OSError) as error:
            raise click.UsageError(str(error), context) from error
        except RuntimeError as error:  # a simulation that failed is no bad input
            raise click.ClickException(str(error)) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yzflow")
def main():
    """A numerical laboratory for the training dynamics of attention."""


@main.command(cls=_Command)
@click.option("--eta-y", type=float, default=1.0, show_default=True, help="Learning rate of the decoder, per step.")
@click.option("--eta-z", type=float, default=0.5, show_default=True, help="Learning rate of attention, per step.")
@click.option("--t-end", type=float, default=700.0, show_default=True, help="Last time, in SGD steps.")
@click.option("--decoder", default="full", show_default=True, help="full, modified or theory.")
@click.option("--classes", "n_classes", type=int, default=10, show_default=True, help="K, next tokens that occur.")
@click.option("--vocab-size", type=int, default=1000, show_default=True, help="M, next tokens in all.")
@click.option("--common", type=float, default=0.15, show_default=True, help="Unnormalised weight of the common token.")
@click.option("--n-times", type=int, default=200, show_default=True, help="Number of output times.")
@click.option("--log-time", is_flag=True, help="Integrate and record in log(1 + t).")
@click.option("--out", type=click.Path(path_type=Path), default=Path("flow.nc"), show_default=True, help="netCDF file.")
def flow(eta_y, eta_z, t_end, decoder, n_classes, vocab_size, common, n_times, log_time, out):
    """Integrate the gradient flow with one common token (Theorem 4's setting) and write the trajectory.

    Example: yzflow flow --eta-y 2 --t-end 1e5 --log-time --out flow.nc
    """
    from dynamics import SequenceClasses, gradient_flow

    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    trajectory = gradient_flow(
        classes,
        eta_y=eta_y,
        eta_z=eta_z,
        t_end=t_end,
        decoder=decoder,
        n_times=n_times,
        time_scale="log" if log_time else "linear",
        progress=True,
    )
    trajectory.save(out)
    logits = trajectory.final.Z[0]
    click.echo(f"{trajectory}")
    click.echo(f"final loss {float(trajectory.dataset['loss'][-1]):.6g} nats")
    click.echo(f"final logits: common token {logits[0]:.6g}, most frequent distinct token {logits[1]:.6g}")
    click.echo(f"wrote {out}")


@main.command(cls=_Command)
@click.option("--data", default="syn_small", show_default=True, help="syn_small, or syn_medium with --queries.")
@click.option("--queries", "n_queries", type=int, default=5, show_default=True, help="Query tokens of syn_medium.")
@click.option("--eta-y", type=float, default=1.0, show_default=True, help="Learning rate of the decoder, per step.")
@click.option("--eta-z", type=float, default=1.0, show_default=True, help="Learning rate of attention, per step.")
@click.option("--steps", type=int, default=100, show_default=True, help="Number of steps.")
@click.option("--batch-size", type=int, default=128, show_default=True, help="Sequences a step.")
@click.option("--length", type=int, default=128, show_default=True, help="T, tokens a sequence.")
@click.option("--momentum", type=float, default=0.9, show_default=True, help="Momentum of SGD.")
@click.option("--optimizer", default="sgd", show_default=True, help="sgd or adam.")
@click.option("--init", default="zero", show_default=True, help="zero or uniform.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of start and samples.")
@click.option("--record-every", type=int, default=1, show_default=True, help="Steps between recorded states.")
@click.option("--dtype", default="float64", show_default=True, help="float64 or float32.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("sgd.nc"), show_default=True, help="netCDF file.")
def sgd(data, n_queries, out, **arguments):
    """Train by SGD on one of the paper's synthetic data sets and write the trajectory.

    Example: yzflow sgd --data syn_medium --queries 5 --eta-y 2 --init uniform --out sgd.nc
    """
    import dynamics
    from dynamics import checks

    checks.one_of("data", data, ("syn_small", "syn_medium"))
    classes = dynamics.SequenceClasses
    classes = classes.syn_small() if data == "syn_small" else classes.syn_medium(n_queries)
    trajectory = dynamics.sgd(classes, progress=True, **arguments)
    trajectory.save(out)
    entropy = trajectory.attention_entropy().isel(time=-1).mean()
    click.echo(f"{trajectory}")
    click.echo(f"final loss {float(trajectory.dataset['loss'][-1]):.6g} nats")
    click.echo(f"final entropy of attention on distinct tokens {float(entropy):.4g} nats, mean over next tokens")
    click.echo(f"wrote {out}")


@main.command(cls=_Command)
@click.argument("number", type=int)
@click.option("--out", type=click.Path(path_type=Path), default=Path("figures"), show_default=True, help="Folder.")
def figure(number, out):
    """Draw figure NUMBER of the Scan and Snap paper as PNG and PDF.

    Example: yzflow figure 3 --out figures
    """
    from dynamics.files import folder
    from lab import figures

    drawings = {name: getattr(figures, name) for name in figures.__all__ if name.removeprefix("figure").isdigit()}
    name = f"figure{number}"
    if name not in drawings:
        known = ", ".join(sorted((key.removeprefix("figure") for key in drawings), key=int))
        raise ValueError(f"`NUMBER` must be one of {known}, but got {number}")
    folder("--out", out)
    for path in figures.save(drawings[name](), out / name):
        click.echo(f"wrote {path}")


@main.command(cls=_Command)
@click.option("--only", multiple=True, help="A statement, by id or number; may be repeated. Default: all.")
@click.option("--quick", is_flag=True, help="Only some of the settings.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for audit.json and audit.html.")
@click.pass_context
def audit(context, only, quick, seed, as_json, out):
    """Prove and measure every statement of the register; exit status 1 if one that should hold does not.

    Example: yzflow audit --only "Scan and Snap: Theorem 3" --quick --out audit
    """
    from dynamics.files import folder
    from lab.audit import audit as run

    if out is not None:
        folder("--out", out)
    report = run(only or None, quick=quick, seed=seed, progress=True)
    click.echo(report.json() if as_json else report.text())
    if out is not None:
        report.to_json(out / "audit.json")
        report.to_html(out / "audit.html")
        click.echo(f"wrote {out / 'audit.json'} and {out / 'audit.html'}", err=as_json)
    context.exit(0 if report.passed else 1)
