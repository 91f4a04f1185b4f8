"""Datasets in sealed netCDF files: the bytes are made in memory and written in one careful way.

HDF5 writing into a file ends the process if the disk is full when it closes; into memory it cannot.
"""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING

import lazy_loader

from dynamics.support import checks, files

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

_DIGEST = 64  # characters of a SHA-256 in hexadecimal


def save_dataset(dataset: xr.Dataset, path: str | os.PathLike) -> None:
    """Write ``dataset`` to a netCDF file, completely or not at all, with a checksum that `load_dataset` compares.

    The checksum is the SHA-256 of all bytes before it, at the end, where readers of netCDF do not look.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written, or the disk is full.
    ValueError
        If something stands at ``path`` that is no regular file.
    """
    content = encode(dataset)
    files.write(path, content, hashlib.sha256(content).hexdigest().encode())


def load_dataset(path: str | os.PathLike, file_format: str, what: str) -> xr.Dataset:
    """Read what `save_dataset` wrote, if its attribute ``format`` is ``file_format``; ``what`` it is goes into errors.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written, or it holds something else.
    FileNotFoundError
        If there is none.
    """
    content = memoryview(files.read("path", path))
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    rule = f"be {what} written by yzflow"
    if hashlib.sha256(body).hexdigest().encode() != bytes(digest):
        raise checks.reject("path", rule, f"a changed or other file {os.fspath(path)!r} (its checksum is wrong)")
    dataset = decode(body)
    if dataset.attrs.get("format") != file_format:
        raise checks.reject("path", rule, f"another file {os.fspath(path)!r}")
    return dataset


def encode(dataset: xr.Dataset) -> memoryview:
    """The bytes of a netCDF file."""
    # HDF5 is imported by those who write, not by those who simulate.
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file))
    return buffer.getbuffer()


def decode(content: bytes | memoryview) -> xr.Dataset:
    """The dataset that `encode` made these bytes of."""
    # Numbers stay numbers, whatever their units say.
    return xr.load_dataset(io.BytesIO(content), engine="h5netcdf", decode_times=False)
