"""Commands about files that are saved: manifest, verify and rerun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from yzflow.commands.common import (
    FILE,
    FOLDER,
    Command,
    beside_person,
    copy_option,
    files_to_write,
    json_option,
    print_facts,
    print_text,
)


@click.command(cls=Command)
@click.argument("folder", type=FOLDER)
@json_option
def manifest(folder: Path, as_json: bool) -> None:
    """List the files of a FOLDER with their hashes in manifest.json, for verify --manifest.

    Example: yzflow manifest certificates
    """
    from yzflow import manifests

    found = manifests.write(folder)
    written = folder / manifests.NAME
    lines = [f"{one.path}: {one.kind}, SHA-256 {one.sha256}" for one in found]
    print_facts(as_json, {"files": [vars(one) for one in found], "out": str(written)}, [*lines, f"wrote {written}"])


@click.command(cls=Command)
@click.argument("file", type=FILE)
@click.option("--manifest", "listed", is_flag=True, help="FILE is a manifest: compare all that it lists.")
@json_option
@copy_option
@click.pass_context
def verify(context: click.Context, file: Path, listed: bool, as_json: bool, out: Path | None) -> None:
    """Check a certificate by a program of its own, and print what it claims; exit status 1 if it is not verified.

    With --manifest, compare a folder with its list of hashes, and check the certificates in it.

    Example: yzflow verify lead.npz
    """
    from theory.enclosures.stepping import precision
    from yzflow import manifests, verify

    files_to_write(out)
    if listed:
        found = manifests.check(file, progress=True)
        lines = [line for one in found for line in (f"{one.path}: {one.words}", *(f"  {own}" for own in one.lines))]
        good = all(one.good for one in found)
        facts: dict[str, Any] = {"files": [vars(one) for one in found]}
    else:
        try:
            with precision():
                good, lines = True, verify.check(str(file))
        except verify.REFUSALS as error:
            good, lines = False, [f"not verified: {str(error)!a}"]
        facts = {"verified": good, "lines": lines}
    print_text(json.dumps(facts, indent=2) if as_json else "\n".join(lines), out)
    context.exit(0 if good else 1)


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
