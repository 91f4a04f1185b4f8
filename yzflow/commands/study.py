"""The command study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from yzflow.commands.common import asked_for, print_facts
from yzflow.commands.options import Json, command


@command()
def study(
    context: click.Context,
    name: str | None = None,
    *,
    quick: Annotated[bool, "Compute what takes seconds; of the rest, print the published numbers."] = False,
    seed: Annotated[int | None, "In place of that of the settings."] = None,
    out: Annotated[Path, "Folder."] = Path("figures"),
    as_json: Json = False,
) -> None:
    """Compute the numbers of the study NAME and draw its figures; without NAME, list the studies.

    Each number says where it comes from: computed now, published, or of an earlier run. Exit status 1 if a fresh number
    is not the published one. Studies are a distribution of their own, yzflow-studies.

    Example: yzflow study adam_reverses --quick
    """
    from dynamics.support.files import folder
    from yzflow import studies
    from yzflow.audits.rendered import columns

    if name is None:
        if given := asked_for(context, "quick", "seed", "out"):
            raise ValueError(f"`--{given[0]}` must be left out without `NAME`, but it was given")
        rooms = {room.name: room.line for room in studies.installed().values()}
        print_facts(as_json, rooms, columns([[room, line] for room, line in rooms.items()]))
        return
    room = studies.find(name)
    folder("--out", out)
    numbers = []
    for number in studies.numbers(room, quick=quick, seed=seed):
        numbers.append(number)
        if not as_json:
            click.echo("\n".join(number.lines))
    drawn = studies.draw(room, out, quick=quick)
    facts = {"study": name, "numbers": [vars(number) for number in numbers], "figures": drawn}
    print_facts(
        as_json,
        facts,
        [line for figure in drawn for line in (figure["caption"], *(f"wrote {p}" for p in figure["files"]))],
    )
    context.exit(1 if any(number.differ for number in numbers) else 0)
