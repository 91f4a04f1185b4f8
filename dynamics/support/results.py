"""What `Trajectory` and `Run` share: a sealed netCDF file that also holds the call which made it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dynamics.support import netcdf
from dynamics.support.calls import Call
from dynamics.support.provenance import environment

if TYPE_CHECKING:
    import xarray as xr

_CALL = "call"


def save_result(
    dataset: xr.Dataset, path: str | os.PathLike, call: Call | None, made_in: Mapping[str, str] | None
) -> None:
    """Write a dataset, with its call and the environment that it was made in (default: this one), and seal it.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    if call is not None:
        content = np.frombuffer(call.to_bytes(), np.uint8)
        dataset = dataset.assign({_CALL: (f"{_CALL}_byte", content, dict(made_in or environment()))})
    netcdf.save_dataset(dataset, path)


def load_result(
    path: str | os.PathLike, file_format: str, what: str
) -> tuple[xr.Dataset, Call | None, dict[str, str] | None]:
    """What `save_result` wrote: the dataset, its call and the environment; of a file without a call, the dataset alone.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written, or it holds something else; ``what`` goes into the message.
    FileNotFoundError
        If there is none.
    """
    dataset = netcdf.load_dataset(path, file_format, what)
    if _CALL not in dataset:
        return dataset, None, None
    call = dataset[_CALL]
    return dataset.drop_vars(_CALL), Call.from_bytes(call.values.tobytes()), dict(call.attrs)
