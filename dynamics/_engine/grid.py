"""Settings of many flows in Theorem 4's setting, broadcast against each other by the names of their dimensions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support import checks

_NUMBERS = ("n_classes", "vocab_size", "common", "eta_y", "eta_z")
_DEFAULTS = {"common": 0.15, "distinct": (1.0, 0.8, 0.6, 0.4, 0.2)}  # the defaults of `single_common_token`
_OWN_DIMS = ("time", "kind", "distinct_token", "logit", "pair")


class Grid:
    """Settings of Theorem 4's kind, broadcast by the names of their dimensions.

    Attributes
    ----------
    dims, shape : tuple
        Names and sizes of the settings' dimensions.
    coords : Dataset
    n_distinct : int
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        known = (*_NUMBERS, "distinct")
        for key in settings:
            checks.one_of("settings", key, known)
        given = _DEFAULTS | dict(settings)
        for key in known:
            if key not in given:
                raise checks.reject("settings", f"have the keys {', '.join(known)}", f"none called {key!r}")
        self._values = {name: _labelled(name, given[name]) for name in known}
        longest = max((v.sizes.get("setting", 1) for v in self._values.values()), default=1)
        for name, value in self._values.items():
            if not isinstance(given[name], xr.DataArray) and value.sizes.get("setting") == 1 < longest:
                self._values[name] = value.isel(setting=0)
        try:
            aligned = xr.align(*self._values.values(), join="exact", copy=False)
            self._values = dict(zip(self._values, aligned, strict=True))
            self.coords = xr.Dataset({name: v for name, v in self._values.items() if name != "distinct"}).coords
        except (ValueError, xr.MergeError) as error:
            rule = "hold arrays that broadcast against each other"
            raise checks.reject("settings", rule, str(error).splitlines()[0]) from None
        sizes: dict[Hashable, int] = {}
        for value in self._values.values():
            sizes.update(value.sizes)
        self.n_distinct = sizes.pop("distinct_token")
        taken = [dim for dim in sizes if dim in _OWN_DIMS or (dim in known and dim not in self.coords)]
        if taken:
            raise checks.reject("settings", "have dimensions with names of their own", repr(taken[0]))
        self.dims, self.shape = tuple(sizes), tuple(sizes.values())
        self.size = int(np.prod(self.shape, dtype=object))
        if self.size == 0:
            raise checks.reject("settings", "hold at least one setting", f"sizes {dict(sizes)}")
        self._check()

    def _check(self) -> None:
        pair = [self._values[name] for name in ("vocab_size", "n_classes")]
        sizes = {dim: size for value in pair for dim, size in value.sizes.items()}
        checks.fits_in_memory("settings", math.prod(sizes.values()), "compare `vocab_size` with `n_classes`")
        fewer = pair[0] < pair[1]
        if bool(fewer.any()):
            raise checks.reject("settings['vocab_size']", "be at least n_classes", "fewer in a setting")

    def rows(self, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """K, M, eta_Y, eta_Z and the counts for settings ``lo`` to ``hi``, in the order of the broadcast arrays."""
        where = dict(zip(self.dims, np.unravel_index(np.arange(lo, hi), (*self.shape, 1)), strict=False))

        def column(name: str) -> np.ndarray:
            value = self._values[name].variable
            index = tuple(where[dim] for dim in value.dims if dim in where)
            shown = value.values[index] if index else value.values
            return np.broadcast_to(shown, (hi - lo, *value.shape[len(index) :]))

        members = np.stack([column(name).astype(np.float64) for name in ("n_classes", "vocab_size", "eta_y", "eta_z")])
        counts = np.concatenate([column("common")[:, None], column("distinct")], axis=1)
        # Only ratios matter; scaling by a power of two changes no digit.
        counts = np.ldexp(counts, -np.frexp(counts.max(axis=1, keepdims=True))[1])
        return np.ascontiguousarray(members.T), counts / counts.sum(axis=1, keepdims=True)

    def identity(self) -> dict[str, object]:
        """The identity of the settings, for a folder of results."""
        digests = {}
        for name, value in self._values.items():
            content = np.ascontiguousarray(value.values)
            digests[name] = [list(map(str, value.dims)), hashlib.sha256(content.tobytes()).hexdigest()]
        return {"settings": digests, "dims": list(map(str, self.dims)), "shape": list(self.shape)}

    def labels(self) -> xr.Dataset:
        """The settings as coordinates."""
        values = {name: self._values[name] for name in (*_NUMBERS, "distinct") if name not in self.coords}
        dataset = xr.Dataset(coords={**self.coords, **values})
        return dataset.drop_vars([name for name in ("distinct_token",) if name in dataset.coords])


def _labelled(name: str, value: Any) -> xr.DataArray:
    """A checked setting with named dimensions, ``distinct_token`` last."""
    of = f"settings[{name!r}]"
    array = checks.array(of, value.values if isinstance(value, xr.DataArray) else value)
    if name in ("n_classes", "vocab_size"):
        array = checks.integer_array(of, array)
        least = 2 if name == "n_classes" else 1
        if (array < least).any():
            raise checks.reject(of, f"be at least {least}", array.min())
    else:
        array = checks.finite_array(of, array)
        if name in ("eta_y", "eta_z"):
            checks.rate(of, array.min(initial=0.0))
        elif (array <= 0).any():
            raise checks.reject(of, "be positive", array.min())
    if isinstance(value, xr.DataArray):
        labelled = value.copy(data=array)
        if name != "distinct":
            return labelled
        if "distinct_token" not in labelled.dims:
            raise checks.reject(of, "have the dimension distinct_token", f"dimensions {labelled.dims}")
        labelled = labelled.drop_vars("distinct_token", errors="ignore").transpose(..., "distinct_token")
    else:
        dims = ("setting", "distinct_token") if name == "distinct" else ("setting",)
        if array.ndim > len(dims) or (name == "distinct" and array.ndim == 0):
            raise checks.reject(of, f"have at most {len(dims)} axes, or be an xarray.DataArray", f"shape {array.shape}")
        labelled = xr.DataArray(array, dims=dims[len(dims) - array.ndim :])
    if name == "distinct" and labelled.sizes["distinct_token"] == 0:
        raise checks.reject(of, "hold at least one number, all positive", "none")
    return labelled
