"""Formats that files say they have: netCDF and zip archives, sealed or not."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from tokenize import TokenError
from typing import Any

from dynamics.support import checks

NETCDF, ARCHIVE = b"\x89HDF", b"PK"
# Errors besides ValueError that readers of either format raise for sealed bytes that are not ours.
OTHER = (KeyError, IndexError, TypeError, AttributeError, OSError, EOFError, RuntimeError, OverflowError)
OTHER_ZIP = (*OTHER, zipfile.BadZipFile, zlib.error, SyntaxError, TokenError)  # the last two: numpy, of heads
HEADER, CLAIM = "run.json", "claim.json"  # members with the header: of most archives, and of certificates


def format_of(content: bytes | memoryview) -> str:
    """The format that a file declares; "" if it declares none.

    Raises
    ------
    ValueError
        If it is neither netCDF nor an archive.
    """
    start = bytes(content[:4])
    if start == NETCDF:
        return _of_netcdf(content)
    if start.startswith(ARCHIVE):
        return _of_archive(content)
    raise ValueError("neither netCDF nor an archive")


def _of_archive(content: bytes | memoryview) -> str:
    """The format that the header of an archive declares, sealed or not; "" if it declares none.

    Raises
    ------
    ValueError
        If it is no archive.
    """
    header = None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in {HEADER, CLAIM}.intersection(archive.namelist()):
                header = json.loads(archive.read(name))
                header = header.get("claim") if name == CLAIM and isinstance(header, dict) else header
    except (*OTHER_ZIP, ValueError) as error:
        raise ValueError(f"no archive ({error})") from error
    return str(header.get("format", "")) if isinstance(header, dict) else ""


def _of_netcdf(content: bytes | memoryview) -> str:
    """The format that a netCDF file declares, sealed or not; "" if it declares none.

    Raises
    ------
    ValueError
        If it is no netCDF file.
    """
    import h5py

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            _check_numbers(file)
            return str(file.attrs.get("format", ""))
    except OTHER as error:
        raise ValueError(f"it holds something else ({error})") from error


def _check_numbers(file: Any) -> None:
    """Raise ``ValueError`` for numbers that stand in another file, or that would not fit in memory."""
    import h5py

    size = 0
    waiting = [file]
    while waiting:
        group = waiting.pop()
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"{name!r} is a link to elsewhere")
            entry = group[name]
            if isinstance(entry, h5py.Group):
                waiting.append(entry)
            elif isinstance(entry, h5py.Dataset):
                if entry.external or entry.is_virtual:
                    raise ValueError(f"the numbers of {name!r} stand in another file")
                size += entry.size * entry.dtype.itemsize if entry.shape is not None else 0
    if 2 * size > checks.memory():  # the reader's copy besides
        raise ValueError(f"its numbers take {size:,} bytes, more than fit in memory")
