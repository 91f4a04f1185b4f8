"""The command study."""

from __future__ import annotations

from pathlib import Path

import click

from yzflow.commands.common import PATH, Command, asked_for, json_option, print_facts


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Compute what takes seconds; of the rest, print the published numbers.")
@click.option("--seed", type=int, help="In place of that of the settings.")
@click.option("--out", type=PATH, default=Path("figures"), show_default=True, help="Folder.")
@json_option
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
        if given := asked_for(context, "quick", "seed", "out"):
            raise ValueError(f"`--{given[0]}` must be left out without `NAME`, but it was given")
        rooms = {room.name: room.line for room in studies.installed().values()}
        width = max(map(len, rooms))
        print_facts(as_json, rooms, [clipped(f"{room:{width}}  {line}") for room, line in rooms.items()])
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
    print_facts(
        as_json, facts, [line for one in drawn for line in (one["caption"], *(f"wrote {p}" for p in one["files"]))]
    )
    context.exit(1 if any(one.differ for one in found) else 0)
