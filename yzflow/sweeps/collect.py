"""Collection of the results of many runs: one labelled array for each variable."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import xarray as xr

from yzflow.sweeps.runs import Result

_Sign = tuple[str, bytes]  # (dtype, bytes) of labels
# Form of a result: (name, dimensions) of its variables, and (dimension, kind of its labels).
_Form = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[str, str], ...]]


class Collector:
    """Takes the results of ``n`` cells in any order, which does not change the dataset.

    If runs differ in the labels of a dimension (or in its size, without labels), the dimension is the union, and nan
    fills the gaps. If runs differ in a variable's dimensions, the more frequent form stays, and the other runs are
    marked as failed.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.failed = np.zeros(n, dtype=bool)
        self.errors = [""] * n
        self._results: dict[int, Result] = {}
        self._provenance: dict[str, set[str]] = {}

    def add(self, cell: int, result: Result) -> None:
        """Put in the result of one cell."""
        self.failed[cell], self.errors[cell] = bool(result.error), result.error
        for name, text in result.attributes.items():
            self._provenance.setdefault(name, set()).add(text)
        self._results[cell] = Result(result.variables, result.coordinates)

    def dataset(self, axes: Mapping[str, int], taken: Collection[str] = ()) -> xr.Dataset:
        """All results, with the cells along ``axes`` (name -> size), and ``failed`` and ``error`` for each run.

        Parameters
        ----------
        axes : mapping
        taken : collection of str
            As `variables` takes it.
        """
        variables, coordinates = self.variables(taken)
        variables |= {
            "failed": ((), self.failed, {"long_name": "whether the run failed"}),
            "error": ((), np.array(self.errors, dtype=str), {"long_name": "what ended a failed run"}),
        }
        return xr.Dataset(
            {
                name: ((*axes, *dims), array.reshape(*axes.values(), *array.shape[1:]), attributes)
                for name, (dims, array, attributes) in variables.items()
            },
            {dim: (dim, labels, attributes) for dim, (labels, attributes) in coordinates.items()},
            self.provenance(),
        )

    def variables(self, taken: Collection[str] = ()) -> tuple[dict, dict]:
        """Name -> (dimensions, array with the cells as first axis, attributes), and dimension -> (labels, attributes).

        Parameters
        ----------
        taken : collection of str
            Names with another meaning in the dataset, which no variable and no dimension may have.
        """
        results = self._fitting(taken)
        firsts: dict[str, tuple[tuple[str, ...], dict]] = {}
        different: dict[str, dict[_Sign, np.ndarray]] = {}
        attributes: dict[str, dict] = {}
        for result in results.values():
            for name, (dims, array, known) in result.variables.items():
                firsts.setdefault(name, (dims, known))
                for dim, labels in zip(dims, _labels(result, dims, array), strict=True):
                    different.setdefault(dim, {})[_sign(labels)] = labels
            for dim, (_, known) in result.coordinates.items():
                attributes.setdefault(dim, known)
        axes = {dim: _axis(labels) for dim, labels in different.items()}
        variables = {}
        for name, (dims, known) in firsts.items():
            arrays = {cell: result.variables[name][1] for cell, result in results.items() if name in result.variables}
            merged = self._empty(tuple(axes[dim][0].size for dim in dims), list(arrays.values()))
            for cell, array in arrays.items():
                labels = zip(dims, _labels(results[cell], dims, array), strict=True)
                merged[(cell, *np.ix_(*(axes[dim][1][_sign(along)] for dim, along in labels)))] = array
            variables[name] = (dims, merged, known)
        return variables, {dim: (labels, attributes[dim]) for dim, (labels, _) in axes.items() if dim in attributes}

    def _empty(self, shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Array for the values of all cells: nan, unless the cells fill it completely."""
        dtype = np.result_type(*{array.dtype for array in arrays})
        if dtype.kind != "f" and (len(arrays) < self.n or any(array.shape != shape for array in arrays)):
            dtype = np.dtype(np.float64)
        return np.full((self.n, *shape), np.nan if dtype.kind == "f" else 0, dtype)

    def provenance(self) -> dict[str, str]:
        """Attributes of the runs; if runs differ, a JSON list of the values."""
        return {
            name: next(iter(texts)) if len(texts) == 1 else json.dumps(sorted(texts, key=str))
            for name, texts in sorted(self._provenance.items())
        }

    def _fitting(self, taken: Collection[str]) -> dict[int, Result]:
        """The results that fit in one dataset; of two conflicting forms, the less frequent is marked as failed."""
        forms: dict[_Form, list[int]] = {}
        for cell in sorted(self._results):
            forms.setdefault(_form(self._results[cell]), []).append(cell)
        dims_of: dict[str, tuple[str, ...]] = {}
        kind_of: dict[str, str] = {}
        fitting: list[int] = []
        for form, cells in sorted(forms.items(), key=lambda item: (-len(item[1]), item[0])):
            problem = _problem(form, dims_of, kind_of, taken)
            if problem:
                self.failed[cells] = True
                for cell in cells:
                    self.errors[cell] = f"ValueError: {problem}; the run is in the store"
            else:
                fitting += cells
                dims_of.update(form[0])
                kind_of.update(form[1])
        return {cell: self._results[cell] for cell in sorted(fitting)}


def _form(result: Result) -> _Form:
    kinds = {dim: "" for dims, _, _ in result.variables.values() for dim in dims}
    for dim, (labels, _) in result.coordinates.items():
        kinds[dim] = "words" if labels.dtype.kind == "U" else "numbers"
    variables = sorted((name, dims) for name, (dims, _, _) in result.variables.items())
    return tuple(variables), tuple(sorted(kinds.items()))


def _problem(form: _Form, dims_of: Mapping, kind_of: Mapping, taken: Collection[str]) -> str:
    """The reason why a form conflicts with the forms before it; empty if it fits."""
    variables, dimensions = form
    for name in (*dict(variables), *dict(dimensions)):
        if name in taken:
            return f"`{name}` must not be the name of a setting and of a result"
    for name, dims in variables:
        if name in kind_of:
            return f"`{name}` must not be a result here and a dimension in other runs"
        if dims != dims_of.get(name, dims):
            return f"`{name}` must have the same dimensions in all runs, {dims_of[name]}, but got {dims}"
    for dim, kind in dimensions:
        if dim in dims_of:
            return f"{dim!r} must not be a dimension here and a result of other runs"
        if kind != kind_of.get(dim, kind):
            words = {"": "no labels", "words": "words as labels", "numbers": "numbers as labels"}
            return f"{dim!r} must have {words[kind_of[dim]]} as in other runs, but got {words[kind]}"
    return ""


def _labels(result: Result, dims: Sequence[str], array: np.ndarray) -> list[np.ndarray]:
    """Labels along the dimensions of an array, or numbers from 0 for a dimension without labels."""
    known = result.coordinates
    return [known[dim][0] if dim in known else np.arange(size) for dim, size in zip(dims, array.shape, strict=True)]


def _sign(labels: np.ndarray) -> _Sign:
    return labels.dtype.str, labels.tobytes()


def _axis(different: Mapping[_Sign, np.ndarray]) -> tuple[np.ndarray, dict[_Sign, np.ndarray]]:
    """Labels of the union, sorted unless all runs have the same labels; and the indices of each run's labels in it."""
    every = list(different.values())
    if len(every) == 1:
        return every[0], {sign: np.arange(every[0].size) for sign in different}
    dtype = np.result_type(*{labels.dtype for labels in every})
    # Compare integers as text if the common type would round them.
    if any(labels.dtype.kind in "iu" and labels.astype(dtype).tolist() != labels.tolist() for labels in every):
        every = [np.array([str(label) for label in labels.tolist()], dtype=str) for labels in every]
    union = np.unique(np.concatenate(every))
    return union, {sign: np.searchsorted(union, labels) for sign, labels in zip(different, every, strict=True)}
