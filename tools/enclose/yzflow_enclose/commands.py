"""Commands that this distribution adds to those of yzflow: manifest and verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import FILE, FOLDER, files_to_write, print_facts, print_text
from yzflow.commands.options import Copy, Json, command


@command()
def manifest(folder: Annotated[Path, FOLDER], *, as_json: Json = False) -> None:
    """List the files of a FOLDER with their hashes in manifest.json, for verify --manifest.

    Example: yzflow manifest certificates
    """
    from yzflow_enclose import manifests

    found = manifests.write(folder)
    written = folder / manifests.NAME
    lines = [f"{one.path}: {one.kind}, SHA-256 {one.sha256}" for one in found]
    print_facts(as_json, {"files": [vars(one) for one in found], "out": str(written)}, [*lines, f"wrote {written}"])


@command()
def verify(
    context: click.Context,
    file: Annotated[Path, FILE],
    *,
    listed: Annotated[bool, "--manifest", "FILE is a manifest: compare all that it lists."] = False,
    as_json: Json = False,
    out: Copy = None,
) -> None:
    """Check a certificate by a program of its own, and print what it claims; exit status 1 if it is not verified.

    With --manifest, compare a folder with its list of hashes, and check the certificates in it.

    Example: yzflow verify lead.npz
    """
    from yzflow_enclose import manifests
    from yzflow_enclose.stepping import precision
    from yzflow_enclose.verifier import verify

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
