"""The commands of ``python -m yzflow.values``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from published.pages import check_pages, unkeyed, unmade, write_pages
from published.rooms import check_rooms, earlier, keep, write_rooms
from yzflow.commands.common import Command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Published numbers: compare them, write them, find those that nobody computes."""


@main.command(cls=Command)
@click.option("--stored", is_flag=True, help="Run nothing: compare the pages with what is stored.")
def check(stored: bool) -> None:
    """Compare pages with stored numbers, and stored numbers with a fresh run of the quick studies.

    One line for each place that differs, and then exit status 1.
    """
    faults = [*check_pages(Path.cwd()), *check_rooms(Path.cwd(), fresh=not stored)]
    for fault in faults:
        click.echo(str(fault))
    for name, package in unmade(Path.cwd()).items():
        click.echo(f"{name} was not compared: {package} is not installed", err=True)
    if kept := earlier(Path.cwd()):
        click.echo(f"of an earlier run, and not made anew since: {', '.join(kept)}", err=True)
    sys.exit(bool(faults))


@main.command(cls=Command)
@click.argument("names", nargs=-1)
@click.option("--stored", is_flag=True, help="Run nothing: write what is stored into the pages.")
def write(names: tuple[str, ...], stored: bool) -> None:
    """Run the quick studies, or the rooms and studies that are named, store their numbers and write the pages."""
    changed = [] if stored else write_rooms(Path.cwd(), names)
    for name in [*changed, *write_pages(Path.cwd())]:
        click.echo(f"changed: {name}")


@main.command(name="keep", cls=Command)
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--earlier", "run", required=True, help="Which run the numbers are of.")
def store(name: str, file: Path, run: str) -> None:
    """Store the numbers of an earlier run, a JSON FILE, as those of the slow study NAME, without running it."""
    keep(Path.cwd(), name, json.loads(file.read_text(encoding="utf-8")), run)
    click.echo(f"changed: {name}")


@main.command(name="list", cls=Command)
@click.argument("files", nargs=-1)
def unkeyed_numbers(files: tuple[str, ...]) -> None:
    """List the numbers that have no key and are not typed on purpose, of all pages and modules or of FILES."""
    for place in unkeyed(Path.cwd(), files):
        click.echo(str(place))
