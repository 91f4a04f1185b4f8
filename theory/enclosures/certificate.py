"""Enclosures as files: what was proved, in numbers that a checker recomputes, under a SHA-256."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from dynamics.support import checks, files

FORMAT = "yzflow-enclosure-1"
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, AttributeError, OSError)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write(path: str | os.PathLike, settings: Mapping, arrays: Mapping[str, np.ndarray]) -> None:
    """Write settings and arrays to an npz file, completely or not at all."""
    text = json.dumps({"format": FORMAT, **settings}, sort_keys=True)
    content = {"settings": np.frombuffer(text.encode(), np.uint8), **arrays}
    seal = np.frombuffer(digest(content).encode(), np.uint8)
    with files.replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, sha256=seal, **content)


def read(path: str | os.PathLike) -> tuple[dict, dict[str, np.ndarray]]:
    """What `write` wrote.

    Raises
    ------
    ValueError
        If the file is none of these, or a byte of its content is not as it was written.
    FileNotFoundError
        If there is none.
    """
    name = os.fspath(checks.path("path", path))
    kept = io.BytesIO(files.read("path", name))
    try:
        with np.load(kept, allow_pickle=False) as file:
            content = {key: file[key] for key in file.files}
        seal = content.pop("sha256").tobytes().decode()
        settings = json.loads(content["settings"].tobytes().decode())
        known = settings.pop("format")
    except _DAMAGE as error:
        raise checks.reject("path", "be an enclosure that `save` wrote", f"{name} ({error})") from error
    if known != FORMAT:
        raise checks.reject("path", f"hold the format {FORMAT}", known)
    if digest(content) != seal:
        raise checks.reject("path", "hold an enclosure as it was written", f"another SHA-256 in {name}")
    del content["settings"]
    return settings, content
