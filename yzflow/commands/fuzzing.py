"""The command fuzz."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from yzflow.commands.common import files_to_write
from yzflow.commands.options import Json, command


@command()
def fuzz(
    context: click.Context,
    statements: Annotated[tuple[str, ...], {"metavar": "STATEMENT .."}],
    *,
    level: Annotated[
        str | None, "One level of fidelity, as 'full flow'. Default: each at which the statement should hold."
    ] = None,
    examples: Annotated[int, "Settings inside the assumptions, per level."] = 200,
    seed: Annotated[int, "The same examples for the same seed."] = 0,
    outside: Annotated[
        str | None, "How the text of one assumption begins, which is then broken in all examples."
    ] = None,
    store: Annotated[Path | None, "Folder of a store, from which the same command goes on. Default: none."] = None,
    as_json: Json = False,
    out: Annotated[Path | None, "File for all examples, as JSON, of one statement."] = None,
    table: Annotated[Path | None, "Table of a paper (Paper.tried) into which the campaigns are put."] = None,
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
    for entry in statements:
        report = run(entry, level=level, examples=examples, seed=seed, outside=outside, store=store, progress=True)
        passed &= report.passed
        click.echo(report.json() if as_json else report.text)
        if out is not None:
            report.to_json(out)
        if table is not None:
            report.to_table(table)
        for path in filter(None, (out, table)):
            click.echo(f"wrote {path}", err=as_json)
    context.exit(0 if passed else 1)


# <!-- numbers
# typed: 50 (example of a command)
# -->
