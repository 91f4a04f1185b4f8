"""Files of `Trajectory` and `Run`: sealed netCDF with the dataset and the call that made it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.support import checks, netcdf
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
    path: str | os.PathLike, file_format: str, what: str, axes: Sequence[str]
) -> tuple[xr.Dataset, Call | None, dict[str, str] | None]:
    """Read a file of `save_result`: the dataset, its call and the environment; without a call, the dataset alone.

    The dataset has labels along ``axes``, numbers along ``time``, and parameters.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written, or it holds something else; ``what`` goes into the message.
    FileNotFoundError
        If there is no such file.
    """
    dataset = netcdf.load_dataset(path, file_format, what)
    # Anybody can seal a file: check the parts that every use of it needs.
    labelled = all(name in dataset.coords and dataset[name].dims == (name,) for name in ("time", *axes))
    if not labelled or dataset["time"].dtype.kind not in "fiu" or not dataset["time"].size:
        raise _without(path, what, f"labels along {', '.join(dict.fromkeys(('time', *axes)))}")
    json_attribute(dataset, "parameters", dict, path, what)
    if _CALL not in dataset:
        return dataset, None, None
    call = dataset[_CALL]
    return dataset.drop_vars(_CALL), Call.from_bytes(call.values.tobytes()), dict(call.attrs)


def json_attribute(dataset: xr.Dataset, name: str, kind: type, path: str | os.PathLike, what: str) -> Any:
    """An attribute that holds JSON of a kind.

    Raises
    ------
    ValueError
        If it holds something else, or is not there; ``what``, the kind of file, goes into the message.
    """
    try:
        content = json.loads(dataset.attrs[name])
    except (KeyError, TypeError, ValueError, RecursionError):
        content = None
    if not isinstance(content, kind):
        raise _without(path, what, f"`{name}`")
    return content


def _without(path: str | os.PathLike, what: str, part: str) -> ValueError:
    return checks.reject("path", f"be {what} written by yzflow", f"a file without {part}, {os.fspath(path)!r}")
