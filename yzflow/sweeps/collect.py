"""Results of many runs into one labelled array a variable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from dynamics.support import checks
from yzflow.sweeps.runs import Result


class Collector:
    """Takes the results of ``n`` cells in any order; what it gives depends on the results only, not on the order.

    Where runs differ in the labels of a dimension (or, without labels, in its size), the dimension is the union, and
    nan stands where a run has nothing.
    """

    def __init__(self, n: int):
        self.n = n
        self.failed = np.zeros(n, dtype=bool)
        self.errors = [""] * n
        self._blocks: dict[str, dict[tuple, _Block]] = {}
        self._coordinates: dict[str, tuple[int, dict]] = {}  # dimension -> first cell, attributes
        self._provenance: dict[str, set[str]] = {}

    def add(self, cell: int, result: Result) -> None:
        """Put in the result of one cell."""
        self.failed[cell], self.errors[cell] = bool(result.error), result.error
        for name, text in result.attributes.items():
            self._provenance.setdefault(name, set()).add(text)
        signed = {dim: _sign(labels) for dim, (labels, _) in result.coordinates.items()}
        for dim, (_, attributes) in result.coordinates.items():
            if cell < self._coordinates.get(dim, (self.n,))[0]:
                self._coordinates[dim] = (cell, attributes)
        for place, (name, (dims, array, attributes)) in enumerate(result.variables.items()):
            signature = (dims, array.dtype.str, array.shape, *(signed.get(dim) for dim in dims))
            blocks = self._blocks.setdefault(name, {})
            if signature not in blocks:
                labels = [result.coordinates[dim][0] if dim in signed else None for dim in dims]
                blocks[signature] = _Block(self.n, dims, array, labels)
            blocks[signature].add(cell, place, array, attributes)

    def variables(self) -> tuple[dict, dict]:
        """Name -> (dimensions, array with the cells as first axis, attributes), and dimension -> (labels, attributes).

        Raises
        ------
        ValueError
            If runs gave a variable different dimensions.
        """
        chosen = sorted(self._blocks.items(), key=lambda item: min(block.first[:2] for block in item[1].values()))
        axes = _axes(block for _, blocks in chosen for block in blocks.values())
        variables = {}
        for name, blocks in chosen:
            first = min(blocks.values(), key=lambda block: block.first[:2])
            for block in blocks.values():
                if block.dims != first.dims:
                    rule = f"have the same dimensions in all runs, as {first.dims}"
                    raise checks.reject(name, rule, f"{block.dims}; the runs are in the store")
            array = _merge(list(blocks.values()), [axes[dim][0] for dim in first.dims])
            variables[name] = (first.dims, array, first.first[2])
        coordinates = {
            dim: (labels, self._coordinates[dim][1] if dim in self._coordinates else {})
            for dim, (labels, labelled) in axes.items()
            if labelled
        }
        return variables, coordinates

    def provenance(self) -> dict[str, str]:
        """Attributes of the runs; where runs differ, a JSON list of what they have."""
        return {
            name: next(iter(texts)) if len(texts) == 1 else json.dumps(sorted(texts))
            for name, texts in sorted(self._provenance.items())
        }


class _Block:
    """Results of one variable that agree in dimensions, type, shape and labels."""

    def __init__(self, n: int, dims: tuple[str, ...], array: np.ndarray, labels: list):
        self.dims = dims
        self.labels = [np.arange(size) if own is None else own for own, size in zip(labels, array.shape, strict=True)]
        self.labelled = [own is not None for own in labels]
        self.data = np.empty((n, *array.shape), array.dtype)
        self.present = np.zeros(n, dtype=bool)
        self.first: tuple[int, int, Mapping] = (n, 0, {})

    def add(self, cell: int, place: int, array: np.ndarray, attributes: Mapping) -> None:
        self.data[cell], self.present[cell] = array, True
        if cell < self.first[0]:
            self.first = (cell, place, attributes)


def _sign(labels: np.ndarray) -> tuple:
    return labels.dtype.str, labels.tobytes()


def _axes(blocks) -> dict[str, tuple[np.ndarray, bool]]:
    """Labels of every dimension, and whether a run named them."""
    found: dict[str, tuple[dict, bool]] = {}
    for block in blocks:
        for dim, labels, labelled in zip(block.dims, block.labels, block.labelled, strict=True):
            different, before = found.get(dim, ({}, False))
            different[_sign(labels)] = labels
            found[dim] = (different, before or labelled)
    return {
        dim: (next(iter(labels.values())) if len(labels) == 1 else np.unique(np.concatenate([*labels.values()])), known)
        for dim, (labels, known) in found.items()
    }


def _merge(blocks: Sequence[_Block], axes: Sequence[np.ndarray]) -> np.ndarray:
    n, shape = blocks[0].data.shape[0], tuple(labels.size for labels in axes)
    if len(blocks) == 1 and blocks[0].present.all() and blocks[0].data.shape[1:] == shape:
        return blocks[0].data
    whole = sum(block.present.sum() for block in blocks) == n and all(block.data.shape[1:] == shape for block in blocks)
    dtype = np.result_type(*(block.data.dtype for block in blocks))
    dtype = dtype if whole or dtype.kind == "f" else np.dtype(np.float64)
    merged = np.empty((n, *shape), dtype) if whole else np.full((n, *shape), np.nan, dtype)
    for block in blocks:
        cells = np.flatnonzero(block.present)
        places = [np.searchsorted(axis, own) if axis.size != own.size else np.arange(own.size)
                  for axis, own in zip(axes, block.labels, strict=True)]  # fmt: skip
        merged[np.ix_(cells, *places)] = block.data[cells]
    return merged
