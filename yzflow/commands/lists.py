"""Commands that list what there is, and new-paper, which begins one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from yzflow.commands.common import files_to_write, print_facts, print_text
from yzflow.commands.options import Copy, Json, OfPaper, command


def _listed(kind: str, paper: str | None, as_json: bool, out: Path | None) -> None:
    from yzflow import listing
    from yzflow.audits import screen

    files_to_write(out)
    entries = getattr(listing, kind)(paper)
    most = screen.WIDTH if sys.stdout.isatty() else None  # a pipe gets whole lines
    print_text(json.dumps(entries, indent=2) if as_json else "\n".join(listing.text(entries, most=most)), out)


@command()
def papers(*, as_json: Json = False, out: Copy = None) -> None:
    """List the papers: ours, and those of other distributions that are installed.

    One that cannot be imported is named with the reason.

    Example: yzflow papers --json
    """
    from yzflow import listing

    files_to_write(out)
    entries = listing.papers()
    lines = [f"{entry['name']:20}  {entry['statements']:3} statements  {entry['reference']}" for entry in entries]
    print_text(json.dumps(entries, indent=2) if as_json else "\n".join(lines), out)


@command("new-paper")
def new_paper(
    name: str, *, out: Annotated[Path, "Folder that it is made in."] = Path("."), as_json: Json = False
) -> None:
    """Write a paper to begin with: a distribution with a statement, its proof, a figure and tests that pass.

    Example: yzflow new-paper "My paper"
    """
    from yzflow import skeleton

    written = [str(path) for path in skeleton.write(name, out)]
    root = Path(written[0]).parent
    then = f"next: pip install -e '{root}[test]' && pytest {root}"
    print_facts(as_json, {"files": written}, [*(f"wrote {path}" for path in written), then])


@command()
def statements(*, paper: OfPaper = None, as_json: Json = False, out: Copy = None) -> None:
    """List the statements, for check, page, audit and survival.

    Example: yzflow statements --paper "Scan and Snap"
    """
    _listed("statements", paper, as_json, out)


@command()
def options(*, paper: OfPaper = None, as_json: Json = False, out: Copy = None) -> None:
    """List the options of training under which survival asks the statements.

    Example: yzflow options --paper "Scan and Snap" --json
    """
    _listed("options", paper, as_json, out)


@command()
def figures(*, paper: OfPaper = None, as_json: Json = False, out: Copy = None) -> None:
    """List the figures, with what each shows; figure draws one.

    Example: yzflow figures --paper bounded_dyck
    """
    _listed("figures", paper, as_json, out)
