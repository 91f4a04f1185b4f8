"""Commands that list what there is, and new-paper, which begins one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from yzflow.commands.common import (
    PATH,
    Command,
    copy_option,
    files_to_write,
    json_option,
    paper_option,
    print_facts,
    print_text,
)


def _listed(kind: str, paper: str | None, as_json: bool, out: Path | None) -> None:
    from yzflow import listing

    files_to_write(out)
    entries = getattr(listing, kind)(paper)
    print_text(json.dumps(entries, indent=2) if as_json else "\n".join(listing.text(entries)), out)


@click.command(cls=Command)
@json_option
@copy_option
def papers(as_json: bool, out: Path | None) -> None:
    """List the papers: ours, and those of other distributions that are installed.

    One that cannot be imported is named with the reason.

    Example: yzflow papers --json
    """
    from yzflow import listing

    files_to_write(out)
    entries = listing.papers()
    lines = [f"{one['name']:20}  {one['statements']:3} statements  {one['reference']}" for one in entries]
    print_text(json.dumps(entries, indent=2) if as_json else "\n".join(lines), out)


@click.command("new-paper", cls=Command)
@click.argument("name")
@click.option("--out", type=PATH, default=Path("."), help="Folder that it is made in.")
@json_option
def new_paper(name: str, out: Path, as_json: bool) -> None:
    """Write a paper to begin with: a distribution with a statement, its proof, a figure and tests that pass.

    Example: yzflow new-paper "My paper"
    """
    from yzflow import skeleton

    written = [str(path) for path in skeleton.write(name, out)]
    root = Path(written[0]).parent
    then = f"next: pip install -e '{root}[test]' && pytest {root}"
    print_facts(as_json, {"files": written}, [*(f"wrote {path}" for path in written), then])


@click.command(cls=Command)
@paper_option
@json_option
@copy_option
def statements(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the statements of the register, for check, page, audit and survival.

    Example: yzflow statements --paper "Scan and Snap"
    """
    _listed("statements", paper, as_json, out)


@click.command(cls=Command)
@paper_option
@json_option
@copy_option
def options(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the options of training under which survival asks the statements.

    Example: yzflow options --paper "Scan and Snap" --json
    """
    _listed("options", paper, as_json, out)


@click.command(cls=Command)
@paper_option
@json_option
@copy_option
def figures(paper: str | None, as_json: bool, out: Path | None) -> None:
    """List the figures, with what each shows; figure draws one.

    Example: yzflow figures --paper bounded_dyck
    """
    _listed("figures", paper, as_json, out)
