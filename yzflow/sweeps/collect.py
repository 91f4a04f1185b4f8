"""Results of many runs into one labelled array a variable."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from yzflow.sweeps.runs import Result

# Of a result: (name, dimensions) of its variables, and (dimension, kind of its labels).
_Form = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[str, str], ...]]


class Collector:
    """Takes the results of ``n`` cells in any order; what it gives depends on the results only, not on the order.

    Where runs differ in the labels of a dimension (or, without labels, in its size), the dimension is the union, and
    nan stands where a run has nothing. Values are put where their labels say. Runs that cannot stand beside the others
    are marked as failed: of runs that differ in a variable's dimensions, for example, the more frequent kind stays.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.failed = np.zeros(n, dtype=bool)
        self.errors = [""] * n
        self._forms: dict[_Form, list[int]] = {}
        self._blocks: dict[str, dict[tuple, _Block]] = {}
        self._attributes: dict[str, dict[_Form, tuple[int, Mapping]]] = {}  # of a dimension, and of which first cell
        self._provenance: dict[str, set[str]] = {}

    def add(self, cell: int, result: Result) -> None:
        """Put in the result of one cell."""
        self.failed[cell], self.errors[cell] = bool(result.error), result.error
        for name, text in result.attributes.items():
            self._provenance.setdefault(name, set()).add(text)
        form = _form(result)
        self._forms.setdefault(form, []).append(cell)
        signed = {dim: _sign(labels) for dim, (labels, _) in result.coordinates.items()}
        for dim, (_, attributes) in result.coordinates.items():
            firsts = self._attributes.setdefault(dim, {})
            if cell < firsts.get(form, (self.n,))[0]:
                firsts[form] = (cell, attributes)
        for place, (name, (dims, array, attributes)) in enumerate(result.variables.items()):
            signature = (form, array.dtype.str, array.shape, *(signed.get(dim) for dim in dims))
            blocks = self._blocks.setdefault(name, {})
            if signature not in blocks:
                labels = [result.coordinates[dim][0] if dim in signed else None for dim in dims]
                blocks[signature] = _Block(self.n, form, dims, array, labels)
            blocks[signature].add(cell, place, array, attributes)

    def variables(self, taken: Collection[str] = ()) -> tuple[dict, dict]:
        """Name -> (dimensions, array with the cells as first axis, attributes), and dimension -> (labels, attributes).

        Parameters
        ----------
        taken : collection of str
            Names that no variable and no dimension may have, as they mean something else in the dataset.
        """
        forms = self._fitting(taken)
        fitting = {name: [b for b in blocks.values() if b.form in forms] for name, blocks in self._blocks.items()}
        chosen = sorted(
            ((name, blocks) for name, blocks in fitting.items() if blocks),
            key=lambda item: min(block.first[:2] for block in item[1]),
        )
        axes = _axes(block for _, blocks in chosen for block in blocks)
        variables = {}
        for name, blocks in chosen:
            first = min(blocks, key=lambda block: block.first[:2])
            variables[name] = (first.dims, _merge(blocks, [axes[dim] for dim in first.dims]), first.first[2])
        coordinates = {}
        for dim, axis in axes.items():
            if axis.labelled:
                firsts = (first for form, first in self._attributes[dim].items() if form in forms)
                coordinates[dim] = (axis.labels, min(firsts, key=lambda first: first[0])[1])
        return variables, coordinates

    def provenance(self) -> dict[str, str]:
        """Attributes of the runs; where runs differ, a JSON list of what they have."""
        return {
            name: next(iter(texts)) if len(texts) == 1 else json.dumps(sorted(texts, key=str))
            for name, texts in sorted(self._provenance.items())
        }

    def _fitting(self, taken: Collection[str]) -> set[_Form]:
        """The forms that can stand in one dataset, the most frequent first; runs of the others are marked as failed."""
        dims_of: dict[str, tuple[str, ...]] = {}
        kind_of: dict[str, str] = {}
        fitting = set()
        for form, cells in sorted(self._forms.items(), key=lambda item: (-len(item[1]), item[0])):
            problem = _problem(form, dims_of, kind_of, taken)
            if problem:
                self.failed[cells] = True
                for cell in cells:
                    self.errors[cell] = f"ValueError: {problem}; the run is in the store"
            else:
                fitting.add(form)
                dims_of.update(form[0])
                kind_of.update(form[1])
        return fitting


def _form(result: Result) -> _Form:
    kinds = {dim: "" for dims, _, _ in result.variables.values() for dim in dims}
    for dim, (labels, _) in result.coordinates.items():
        kinds[dim] = "words" if labels.dtype.kind == "U" else "numbers"
    variables = sorted((name, dims) for name, (dims, _, _) in result.variables.items())
    return tuple(variables), tuple(sorted(kinds.items()))


def _problem(form: _Form, dims_of: Mapping, kind_of: Mapping, taken: Collection[str]) -> str:
    """Why results of a form cannot stand beside those of the forms before it; empty if they can."""
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


class _Block:
    """Results of one variable that agree in form, type, shape and labels."""

    def __init__(
        self, n: int, form: _Form, dims: tuple[str, ...], array: np.ndarray, labels: list[np.ndarray | None]
    ) -> None:
        self.form, self.dims = form, dims
        self.labels = [np.arange(size) if own is None else own for own, size in zip(labels, array.shape, strict=True)]
        self.labelled = [own is not None for own in labels]
        self.data = np.empty((n, *array.shape), array.dtype)
        self.present = np.zeros(n, dtype=bool)
        self.first: tuple[int, int, Mapping] = (n, 0, {})

    def add(self, cell: int, place: int, array: np.ndarray, attributes: Mapping) -> None:
        self.data[cell], self.present[cell] = array, True
        if cell < self.first[0]:
            self.first = (cell, place, attributes)


class _Axis:
    """The union of what runs have along a dimension: their one order of labels, or all labels in rising order."""

    def __init__(self, different: Sequence[np.ndarray], labelled: bool) -> None:
        self.labelled = labelled
        self.sole = len(different) == 1
        dtype = np.result_type(*different)
        # Of integers that the common type would round, the texts.
        self._words = any(own.dtype.kind in "iu" and own.astype(dtype).tolist() != own.tolist() for own in different)
        self.labels = different[0] if self.sole else np.unique(np.concatenate([self._cast(own) for own in different]))

    def _cast(self, labels: np.ndarray) -> np.ndarray:
        return np.array([str(label) for label in labels.tolist()], dtype=str) if self._words else labels

    def places(self, own: np.ndarray) -> np.ndarray:
        """Where the labels of a run are."""
        return np.arange(own.size) if self.sole else np.searchsorted(self.labels, self._cast(own))


def _sign(labels: np.ndarray) -> tuple:
    return labels.dtype.str, labels.tobytes()


def _axes(blocks: Iterable[_Block]) -> dict[str, _Axis]:
    found: dict[str, tuple[dict, bool]] = {}
    for block in blocks:
        for dim, labels, labelled in zip(block.dims, block.labels, block.labelled, strict=True):
            found.setdefault(dim, ({}, labelled))[0][_sign(labels)] = labels
    return {dim: _Axis(list(different.values()), labelled) for dim, (different, labelled) in found.items()}


def _merge(blocks: Sequence[_Block], axes: Sequence[_Axis]) -> np.ndarray:
    n, shape = blocks[0].data.shape[0], tuple(axis.labels.size for axis in axes)
    if len(blocks) == 1 and blocks[0].present.all() and all(axis.sole for axis in axes):
        return blocks[0].data
    whole = sum(block.present.sum() for block in blocks) == n and all(block.data.shape[1:] == shape for block in blocks)
    dtype = np.result_type(*(block.data.dtype for block in blocks))
    dtype = dtype if whole or dtype.kind == "f" else np.dtype(np.float64)
    merged = np.empty((n, *shape), dtype) if whole else np.full((n, *shape), np.nan, dtype)
    for block in blocks:
        cells = np.flatnonzero(block.present)
        places = [axis.places(own) for axis, own in zip(axes, block.labels, strict=True)]
        merged[np.ix_(cells, *places)] = block.data[cells]
    return merged
