"""Commands about files that are saved: rerun."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import FILE, beside_person, files_to_write, print_text
from yzflow.commands.options import Copy, Json, command


@command()
def rerun(
    context: click.Context,
    file: Annotated[Path, FILE],
    *,
    data: Annotated[Path | None, FILE, "Bags too large for FILE."] = None,
    task: Annotated[
        str | None, "Your own function that a sweep ran, MODULE:FUNCTION: FILE does not decide what runs."
    ] = None,
    flow: Annotated[str | None, "Your own class of flow that FILE is of, MODULE:CLASS."] = None,
    as_json: Json = False,
    out: Copy = None,
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
