"""Enclosures as files: a claim and the steps that prove it, in one sealed archive."""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.support import archive, checks, files
from yzflow_enclose import claims

_STEPS = {"start": 1, "end": 1, "radius": 1, "pieces": 1, "limbs": 4, "weights": 1}
_STARTS = {"initial": 2, "initial_radius": 1}
_OF_CELLS = {"start": 1, "end": 1, "radius": 1, "speed": 1, "limbs": 5, "weights": 1}
_LONGEST_NOTE = 2000
# The start of an array's file: format 1.0, of doubles or 64-bit integers.
_HEAD, _FORM = 100, re.compile(rb"\x93NUMPY\x01\x00..\{'descr': '<[fi]8'", re.DOTALL)
# The most pieces of a step; a file with more would keep a checker busy for long.
_MOST_PIECES = 1000


def write(path: str | os.PathLike, claim: Mapping, notes: Mapping, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a claim, notes and arrays, completely or not at all; nothing depends on the notes."""
    header = json.loads(json.dumps({"claim": claim, "notes": notes}, sort_keys=True))
    files.write(path, archive.encode(header, arrays, name=archive.CLAIM))


def read(
    path: str | os.PathLike, kinds: Sequence[str] = claims.KINDS
) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """Read a file of `write`: a claim of one of these kinds, notes and arrays, all checked for their form.

    Raises
    ------
    ValueError
        If a byte is not as it was written, or the file is something else.
    FileNotFoundError
        If there is no such file.
    """
    name = os.fspath(checks.path("path", path))
    content = files.read("path", name)
    rule = "be an enclosure that `save` wrote"
    try:
        header, arrays = archive.decode(content, name=archive.CLAIM)
    except ValueError as error:
        if _is_older(content):
            raise checks.reject("path", f"{rule}, in the format {claims.FORMAT}", f"an earlier one: {name}") from error
        raise checks.reject("path", rule, f"{name} ({error})") from error
    if not isinstance(header, dict) or set(header) != {"claim", "notes"}:
        raise checks.reject("path", rule, name)
    _check_members(content, name)
    claim, notes = claims.check(header["claim"], kinds), header["notes"]
    _check_notes(notes, name)
    _check_arrays(arrays, claim, name)
    return claim, notes, arrays


def _check_members(content: bytes, path: str) -> None:
    """Refuse an archive that simple readers may read differently: a name twice, or an array in another form."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        names = file.namelist()
        good = len(set(names)) == len(names) and all(not entry.compress_type for entry in file.infolist())
        for name in names if good else []:
            head = file.read(name)[:_HEAD] if name != archive.CLAIM else b""
            good = good and (name == archive.CLAIM or (name.endswith(".npy") and _FORM.match(head) is not None))
    if not good:
        raise checks.reject("path", "hold parts in the form that `save` writes", path)


def _is_older(content: bytes) -> bool:
    """True for a file from before certificates held claims."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {"settings", "sha256", "limbs"} <= set(file.files)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, AttributeError, OSError):
        return False
    except NotImplementedError:  # a damaged number of the archive's version
        return False


def _check_notes(notes: Any, path: str) -> None:
    good = isinstance(notes, dict) and set(notes) == {"reason", "environment"}
    good = good and isinstance(notes["environment"], dict) and isinstance(notes["reason"], str)
    texts = [notes["reason"], *notes["environment"], *notes["environment"].values()] if good else []
    # A hash of files may have many lines; nothing of it is printed.
    if not (good and all(isinstance(text, str) and len(text) <= 10 * _LONGEST_NOTE for text in texts)):
        raise checks.reject("path", "hold notes of its making, as `save` writes them", path)
    if not notes["reason"].isprintable() or len(notes["reason"]) > _LONGEST_NOTE:
        raise checks.reject("path", "hold a reason in printable letters", ascii(notes["reason"])[:60])


def _check_arrays(arrays: Mapping[str, np.ndarray], claim: Mapping[str, Any], path: str) -> None:
    """Refuse arrays that are no steps of the claim."""
    cell = claim["kind"] == claims.CELL
    wanted = _OF_CELLS if cell else _STEPS | (_STARTS if claim["kind"] == "flow" else {})
    good = set(arrays) == set(wanted) and all(arrays[name].ndim == n for name, n in wanted.items())
    good = good and all(arrays[name].dtype == ("<i8" if name == "pieces" else "<f8") for name in wanted)
    good = good and all(array.flags.c_contiguous for array in arrays.values())
    good = good and all(np.isfinite(array).all() for array in arrays.values())
    if good:
        steps, variables = arrays["start"].size, arrays["weights"].size
        sizes = (math.comb(claim["degree"] + 2, 2),) if cell else ()
        columns = [name for name, n in wanted.items() if n == 1 and name not in {"start", "weights", *_STARTS}]
        good = steps > 0 and all(arrays[name].shape == (steps,) for name in columns)
        shape = (steps, variables + _clocks(claim), *sizes)
        good = good and arrays["limbs"].shape[: len(shape)] == shape and arrays["limbs"].size > 0
        positive = [name for name in columns if name != "end"]
        good = good and all((arrays[name] > 0).all() for name in ("weights", *positive))
        good = good and (cell or (arrays["pieces"] <= _MOST_PIECES).all())
        good = good and len(claim["errors"]) == variables and arrays["end"][-1] == claim["t_reached"]
    if not good:
        raise checks.reject("path", "hold the steps of an enclosure that `save` wrote", path)


def _clocks(claim: Mapping[str, Any]) -> int:
    """1 if the time is a variable, too, else 0."""
    return int(claim.get("clock") is True)
