"""Datasets in sealed netCDF files: the bytes are made in memory and written in one careful way.

HDF5 writing into a file ends the process if the disk is full when it closes; into memory it cannot.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from dynamics.support import checks, files, sealed
from dynamics.support.formats import OTHER, format_of

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

_NAME = "kept_as"  # the attribute that says under which name a file was kept


def save_dataset(dataset: xr.Dataset, path: str | os.PathLike) -> None:
    """Write ``dataset`` to a netCDF file, completely or not at all, with a seal that `load_dataset` compares.

    The seal is that of `dynamics.support.sealed`, at the end, where readers of netCDF do not look.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written, or the disk is full.
    ValueError
        If something stands at ``path`` that is no regular file.
    """
    content = encode(dataset)
    files.write(path, content, sealed.digest(content))


def load_dataset(path: str | os.PathLike, file_format: str, what: str, *, name: str = "path") -> xr.Dataset:
    """Read what `save_dataset` wrote, if its attribute ``format`` is ``file_format``; ``what`` it is goes into errors.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written (`sealed.Damaged`), or it holds something else.
    FileNotFoundError
        If there is none.
    """
    return sealed.load(path, file_format, what, lambda content: decode(sealed.body(content)), name=name)


def kept(path: str | os.PathLike | None, file_format: str, what: str, make: Callable[[], xr.Dataset]) -> xr.Dataset:
    """The dataset that ``make()`` returns, from the file at ``path`` if it is there; else it is made, and kept there.

    A damaged file, or one that was kept under another name, for another question, is set aside as ``*.damaged``, with a
    warning, and what it held is made again.

    Parameters
    ----------
    path : path-like, optional
        Its name says what is asked for. Without one, nothing is kept.
    file_format, what : str
        Of `load_dataset`.
    make : callable

    Raises
    ------
    ValueError
        If another file stands there, which nothing of ours has damaged.
    OSError
        If the file cannot be read, set aside or written.
    """
    if path is None:
        return make()
    path, then = Path(path), "what it held is made again"
    if sealed.sound(path, what, then, stacklevel=3):
        found = load_dataset(path, file_format, what)
        if found.attrs.pop(_NAME, path.name) == path.name:  # older files have none
            return found
        sealed.set_aside(path, "it was kept for another question", then, stacklevel=3)
    made = make().assign_attrs(format=file_format)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_dataset(made.assign_attrs({_NAME: path.name}), path)
    return made


def encode(dataset: xr.Dataset) -> memoryview:
    """The bytes of a netCDF file.

    Raises
    ------
    ValueError
        If an attribute is nothing that netCDF holds.
    """
    # HDF5 is imported by those who write, not by those who simulate.
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    _check_attributes("the dataset", dataset.attrs)
    for name, variable in dataset.variables.items():
        _check_attributes(repr(name), variable.attrs)
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file))
    return buffer.getbuffer()


def _check_attributes(where: str, attributes: Mapping[Any, Any]) -> None:
    """Raise ``ValueError`` for an attribute that HDF5 would refuse in words of its own, without its name."""
    for name, value in attributes.items():
        words = value if isinstance(value, (list, tuple)) else [value]
        try:
            if all(isinstance(word, str) for word in words):
                held = all(word.encode() is not None for word in words)
            else:
                held = np.asarray(value).dtype.kind in "iufcSU" and not any(isinstance(word, str) for word in words)
        except ValueError:  # half a character, or lists of different lengths
            held = False
        if not held:
            rule = f"hold numbers, words or lists of either in each attribute of {where}"
            raise checks.reject("attributes", rule, f"{checks.brief(value)} for {name!r}")


def decode(content: bytes | memoryview) -> xr.Dataset:
    """The dataset that `encode` made these bytes of.

    Raises
    ------
    ValueError
        If they are something else.
    """
    format_of(content)  # raises where it is no HDF5, which h5netcdf would leave half opened
    try:
        # Numbers stay numbers, whatever their units say.
        return xr.load_dataset(io.BytesIO(content), engine="h5netcdf", decode_times=False)
    except OTHER as error:
        raise ValueError(f"it holds something else ({error})") from error
