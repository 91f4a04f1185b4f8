"""Folders of results as RO-Crates: what each file is, and what made it, for archives and for people."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dynamics import Trajectory
from dynamics.support import checks, files, sealed
from dynamics.version import __version__
from theory.enclosures import Enclosure
from theory.enclosures.cells import CellEnclosure
from theory.enclosures.claims import CELL_FORMAT, FORMAT
from yzflow import manifests
from yzflow.reruns import saved_table

METADATA = manifests.CRATE
_NO_LICENCE = "No licence is given: all rights are reserved by the authors of the results."
_FORMATS = {
    ".nc": "application/netcdf",
    ".npz": "application/zip",
    ".json": "application/json",
    ".html": "text/html",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".toml": "application/toml",
}


def describe(folder: str | os.PathLike, *, name: str = "Results of yzflow", terms: str = "") -> dict[str, str]:
    """Write ``ro-crate-metadata.json`` and ``manifest.json`` beside the files of a folder, which stay as they are.

    RO-Crate (https://w3id.org/ro/crate) is what archives read. Each file has its format; one that `yzflow.rerun` makes
    again also has the action that made it: simulator, arguments, and the versions, processor, BLAS and threads that it
    says it was made with.

    Parameters
    ----------
    folder : path-like
    name : str
        Title of the results.
    terms : str
        URL of the licence that they are under. The format wants one: without, it says that none is given.

    Returns
    -------
    dict
        File -> what it is.

    Raises
    ------
    ValueError
        If the folder is not there, holds no file, or the library is missing: ``pip install 'yzflow[crate]'``.
    """
    try:
        from rocrate.model import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise ValueError("`describe` must have the library rocrate: pip install 'yzflow[crate]'") from error
    root = Path(checks.instance("folder", folder, (str, os.PathLike)))
    for word, value in (("name", name), ("terms", terms)):
        checks.instance(word, value, str)
    if not root.is_dir():
        raise checks.reject("folder", "be a folder of results", root)
    found = list(manifests.files_of(root))
    if not found:
        raise checks.reject("folder", "hold a file of results", root)
    manifests.write(root)
    crate = ROCrate()
    crate.name, crate.description = name, f"{len(found)} files, written by yzflow {__version__} or beside such files"
    crate.datePublished = datetime.now(timezone.utc)
    licence = {"@type": "CreativeWork", "name": terms or "none", "description": terms or _NO_LICENCE}
    crate.license = crate.add(ContextEntity(crate, terms or "#licence", licence))
    # A SoftwareApplication must have an address on the web, and a SoftwareSourceCode be a file of the crate.
    software = crate.add(
        ContextEntity(crate, "#yzflow", {"@type": "CreativeWork", "name": "yzflow", "version": __version__})
    )
    described = {}
    for file in found:
        place = file.relative_to(root).as_posix()
        kind, made = _made(file)
        described[place] = kind
        facts: dict[str, Any] = {"name": place, "description": kind, "contentSize": str(file.stat().st_size)}
        if file.suffix in _FORMATS:
            facts["encodingFormat"] = _FORMATS[file.suffix]
        entity = crate.add_file(file, dest_path=place, properties=facts)
        if made:
            action = {"@type": "CreateAction", "name": f"made {place}", "description": json.dumps(made, sort_keys=True)}
            entry = crate.add(ContextEntity(crate, f"#made-{place}", action))
            entry["instrument"], entry["result"] = software, entity
            crate.root_dataset.append_to("mentions", entry)
    text = json.dumps(crate.metadata.generate(), indent=2, sort_keys=True) + "\n"
    files.write(root / METADATA, text.encode())
    return described


def _made(file: Path) -> tuple[str, dict[str, Any]]:
    """Kind of a file, and how it says that it was made; nothing where it says nothing."""
    try:
        if file.suffix == ".npz":
            return _archive(file)
        if file.suffix == ".json":
            made = json.loads(file.read_text(encoding="utf-8"))["made"]
            return f"the result of yzflow.{made['function']}", made
        if file.suffix == ".nc":
            return _dataset(file)
    except (ValueError, KeyError, TypeError, OSError):
        pass
    return _FORMATS.get(file.suffix, "a file"), {}


def _archive(file: Path) -> tuple[str, dict[str, Any]]:
    """A certificate, with what it claims if that is verified here; or the kind of another sealed archive."""
    kind = sealed.kind_of(file)
    if kind not in (FORMAT, CELL_FORMAT):
        return sealed.kinds()[kind].what, {}
    found: Enclosure | CellEnclosure
    if kind == CELL_FORMAT:
        found, function = CellEnclosure.load(file), "decide_cell"
    else:
        found = Enclosure.load(file)
        function = "enclose" if found.code else "enclose_flow"
    made = {"function": function, "environment": dict(found.environment)}
    with suppress(ValueError):  # a flow whose code is not here
        if found.verify():
            claim = found.words.splitlines()[0]
            return f"{sealed.kinds()[kind].what}, verified here: {claim}, to t = {found.t_reached:g}", made
    return f"{sealed.kinds()[kind].what} that is not verified", made


def _dataset(file: Path) -> tuple[str, dict[str, Any]]:
    found = sealed.kind_of(file)
    if found in ("yzflow-sweep-1", "yzflow-survival-1"):
        kind, saved, _ = saved_table(file)
        return kind, {str(key): str(value) for key, value in saved.attrs.items()}
    if found != "yzflow-trajectory-1":
        return sealed.kinds()[found].what, {}
    trajectory = Trajectory.load(file)
    attributes = trajectory.dataset.attrs
    made = {"function": attributes["simulator"], "arguments": trajectory.parameters}
    return f"a trajectory of {made['function']}", {**made, "environment": trajectory.environment}
