"""Commands about files that are saved: rerun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yzflow.commands.common import (
    FILE,
    Command,
    beside_person,
    copy_option,
    files_to_write,
    json_option,
    print_text,
)


@click.command(cls=Command)
@click.argument("file", type=FILE)
@click.option("--data", type=FILE, help="Bags too large for FILE.")
@click.option("--task", help="Your own function that a sweep ran, MODULE:FUNCTION: FILE does not decide what runs.")
@click.option("--flow", help="Your own class of flow that FILE is of, MODULE:CLASS.")
@json_option
@copy_option
@click.pass_context
def rerun(
    context: click.Context,
    file: Path,
    data: Path | None,
    task: str | None,
    flow: str | None,
    as_json: bool,
    out: Path | None,
) -> None:
    """Make a saved FILE again and compare the bits; exit status 1 if they differ, with what is different here.

    FILE is a trajectory (yzflow flow, sgd), a result of yzflow sweep or survival, audit.json, a check as JSON, or a
    certificate.

    Example: yzflow rerun sgd.nc
    """
    from dynamics import Bags
    from yzflow.reruns import rerun as run
    from yzflow.sweeps.tasks import imported

    files_to_write(out)
    given: dict[str, Any] = {} if data is None else {"data": Bags.load(data)}
    beside_person(task, flow)
    if task is not None:
        given["task"] = imported("--task", task)
    if flow is not None:
        given["flow"] = imported("--flow", flow)
    report = run(file, progress=True, **given)
    print_text(report.json() if as_json else report.text(), out)
    context.exit(0 if report.same else 1)
