"""Manifests: the files of a folder with the hash of each, so that published files are told from changed ones.

A manifest is JSON, ``{"format": .., "files": [{"path", "bytes", "sha256", "kind"}]}``, sorted by path. It does not say
that a file is right: certificates in it are also verified, by `yzflow_enclose.verifier`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dynamics.support import checks, files, sealed
from dynamics.support.progress import Progress
from yzflow_enclose import claims
from yzflow_enclose.verifier import verify

FORMAT = "yzflow-manifest-1"
NAME = "manifest.json"
_CHECKED = (claims.FORMAT, claims.CELL_FORMAT)
_KEYS = {"path": str, "bytes": int, "sha256": str, "kind": str}


@dataclass(frozen=True)
class Listed:
    """A file of a manifest.

    Attributes
    ----------
    path : str
        Within the folder, with slashes.
    bytes : int
    sha256 : str
    kind : str
        The format that the file declares, or its suffix.
    """

    path: str
    bytes: int
    sha256: str
    kind: str


@dataclass(frozen=True)
class Finding:
    """Outcome of a file of a manifest.

    Attributes
    ----------
    path : str
    good : bool
        True if it is as listed, and verified if it is a certificate.
    words : str
        Its state, such as "as listed", "changed", "missing", "not listed", "verified".
    lines : tuple of str
        The claim of a verified certificate.
    """

    path: str
    good: bool
    words: str
    lines: tuple[str, ...] = ()


def write(folder: str | os.PathLike) -> list[Listed]:
    """Write ``manifest.json`` beside the files of a folder, which stay as they are.

    Raises
    ------
    ValueError
        If the folder is not there or holds no file.
    """
    root = _folder(folder)
    found = [_listed(root, file) for file in files_of(root)]
    if not found:
        raise checks.reject("folder", "hold a file", root)
    text = json.dumps({"format": FORMAT, "files": [asdict(one) for one in found]}, indent=1) + "\n"
    files.write(root / NAME, text.encode())
    return found


def read(path: str | os.PathLike) -> list[Listed]:
    """The files of a manifest.

    Raises
    ------
    ValueError
        If it is no manifest, or names a file outside of its folder.
    FileNotFoundError
        If there is none.
    """
    rule = "be a manifest that `yzflow manifest` wrote"
    try:
        content = json.loads(files.read("path", path))
        entries = content["files"]
        good = content["format"] == FORMAT and set(content) == {"format", "files"} and isinstance(entries, list)
        good = good and all(_is_entry(entry) for entry in entries)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise checks.reject("path", rule, os.fspath(path)) from error
    if not good or len({entry["path"] for entry in entries}) != len(entries):
        raise checks.reject("path", rule, os.fspath(path))
    return [Listed(**entry) for entry in entries]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or {name: type(value) for name, value in entry.items()} != _KEYS:
        return False
    place = PurePosixPath(entry["path"])
    inside = not place.is_absolute() and ".." not in place.parts and place.as_posix() == entry["path"] != "."
    return inside and entry["path"].isprintable() and re.fullmatch("[0-9a-f]{64}", entry["sha256"]) is not None


def check(path: str | os.PathLike, *, progress: bool = False) -> list[Finding]:
    """Compare a folder with its manifest, and verify the certificates in it by ``yzflow_enclose.verifier``.

    Parameters
    ----------
    path : path-like
        Path of the manifest; its folder holds the files.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    list of Finding
        One for each file that is listed, or that lies in the folder.
    """
    progress = checks.flag("progress", progress)
    listed = read(path)
    root = Path(path).absolute().parent
    found = []
    with Progress("checking the manifest", enabled=progress) as report:
        for number, entry in enumerate(listed):
            report.update(number / len(listed), entry.path)
            found.append(_compared(root, entry))
    known = {entry.path for entry in listed}
    others = (file.relative_to(root).as_posix() for file in files_of(root))
    return found + [Finding(other, False, "not listed") for other in others if other not in known]


def _compared(root: Path, entry: Listed) -> Finding:
    file = root / entry.path
    if not file.is_file() or root.resolve() not in file.resolve().parents:
        return Finding(entry.path, False, "missing")
    if _listed(root, file) != entry:
        return Finding(entry.path, False, "changed: another SHA-256 than listed")
    if entry.kind not in _CHECKED:
        return Finding(entry.path, True, "as listed")
    from yzflow_enclose.stepping import precision  # the checker sets it, and does not put it back

    try:
        with precision():
            return Finding(entry.path, True, "as listed, and verified", tuple(verify.check(str(file))))
    except verify.REFUSALS as error:
        return Finding(entry.path, False, f"as listed, but not verified: {str(error)!a}")


def _folder(folder: str | os.PathLike) -> Path:
    root = Path(checks.instance("folder", folder, (str, os.PathLike)))
    if not root.is_dir():
        raise checks.reject("folder", "be a folder", root)
    return root


def files_of(root: Path) -> Iterator[Path]:
    """The files of a folder, without hidden ones and the manifest."""
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not any(part.startswith(".") for part in parts) and "/".join(parts) != NAME:
            yield file


def _listed(root: Path, file: Path) -> Listed:
    content = files.read("path", file)
    try:
        kind = sealed.format_of(content) or file.suffix
    except ValueError:
        kind = file.suffix
    return Listed(file.relative_to(root).as_posix(), len(content), hashlib.sha256(content).hexdigest(), kind)
