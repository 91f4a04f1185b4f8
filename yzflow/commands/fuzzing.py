"""The command fuzz."""

from __future__ import annotations

from pathlib import Path

import click

from yzflow.commands.common import PATH, Command, files_to_write, json_option


@click.command(cls=Command)
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT ..")
@click.option(
    "--level", help="One level of fidelity, as 'full flow'. Default: each at which the statement should hold."
)
@click.option(
    "--examples", type=int, default=200, show_default=True, help="Settings inside the assumptions, per level."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same examples for the same seed.")
@click.option("--outside", help="How the text of one assumption begins, which is then broken in all examples.")
@click.option("--store", type=PATH, help="Folder of a store, from which the same command goes on. Default: none.")
@json_option
@click.option("--out", type=PATH, help="File for all examples, as JSON, of one statement.")
@click.option("--table", type=PATH, help="Table of a paper (Paper.tried) into which the campaigns are put.")
@click.pass_context
def fuzz(
    context: click.Context,
    statements: tuple[str, ...],
    level: str | None,
    examples: int,
    seed: int,
    outside: str | None,
    store: Path | None,
    as_json: bool,
    out: Path | None,
    table: Path | None,
) -> None:
    """Try to break each STATEMENT inside its assumptions; exit status 1 if that succeeds.

    Settings are drawn inside all assumptions, up to their borders. A violation is made simple, and asked again in balls
    and with other seeds. It takes hypothesis: pip install 'yzflow[fuzz]'.

    Example: yzflow fuzz "Scan and Snap: Theorem 2(a)" --examples 50
    """
    from yzflow.fuzzing.campaign import fuzz as run

    if len(statements) > 1 and (out is not None or as_json):
        raise ValueError(f"`--out` and `--json` must go with one statement, but got {len(statements)}")
    files_to_write(out, table)
    if store is not None:
        context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    passed = True
    for one in statements:
        report = run(one, level=level, examples=examples, seed=seed, outside=outside, store=store, progress=True)
        passed &= report.passed
        click.echo(report.json() if as_json else report.text)
        if out is not None:
            report.to_json(out)
        if table is not None:
            report.to_table(table)
        for path in filter(None, (out, table)):
            click.echo(f"wrote {path}", err=as_json)
    context.exit(0 if passed else 1)
