"""Recordings: attention and loss of a training that somebody else runs, over its steps."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support import checks, netcdf, sealed
from dynamics.support.results import json_attribute

__all__ = ["FORMAT", "Recording"]

FORMAT = "yzflow-recording-1"
_WHAT = sealed.KINDS[FORMAT].what
_OF_TOKENS = ("step", "layer", "head", "next_token", "token")
AXES = {
    **dict.fromkeys(("attention", "gain"), _OF_TOKENS),
    **dict.fromkeys(("entropy", "by_token", "moved_by_order", "eta_y", "eta_z"), _OF_TOKENS[:3]),
    **dict.fromkeys(("loss", "spread", "learning_rate"), _OF_TOKENS[:1]),
}
LABELS = {
    "step": ("step",),
    "next_token": ("next_token",),
    "token": ("token",),
    "share": ("next_token", "token"),
    "query": ("next_token",),
}
FACTS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "parts": list,
    **dict.fromkeys(("vocabulary", "sequences", "length", "counted"), int),
    **dict.fromkeys(("one_query", "batch"), (int, float)),
    "probe": str,
    "optimizer": (dict, type(None)),
}


class Recording:
    """Attention and loss of a training that somebody else runs, until the last step that was recorded.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over ``step``, ``layer``, ``head``, ``next_token`` and ``token``: ``attention``, the mean on each kept token in
        the contexts of each kept next token, without the query's own place; ``gain``, its logits up to a constant;
        ``entropy`` (nats); ``by_token`` and ``moved_by_order``, how far attention depends on tokens alone; and rates
        ``eta_y`` and ``eta_z`` (NaN where not known). Over ``step``: ``loss`` (nats), ``spread`` of the logits of next
        tokens, and ``learning_rate``. ``share`` is P(l|n), and ``query`` that of each next token. The attribute
        ``facts`` is what is known of model and training, as JSON.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        checks.instance("dataset", dataset, xr.Dataset)
        if dataset.attrs.get("format") != FORMAT:
            raise checks.reject("dataset", f"have the attribute format = {FORMAT!r}", dataset.attrs.get("format"))
        self.dataset = dataset

    def __repr__(self) -> str:
        sizes = self.dataset.sizes
        return (
            f"<Recording: {sizes['step']} steps from {self.steps[0]} to {self.steps[-1]}, {sizes['layer']} layers, "
            f"{sizes['head']} heads, {sizes['next_token']} next tokens, {sizes['token']} tokens>"
        )

    @property
    def steps(self) -> np.ndarray:
        """Steps of the optimizer at which it was recorded."""
        return self.dataset["step"].values

    @property
    def facts(self) -> dict[str, Any]:
        """Kind and parts of the model, sizes of the probe, optimizer and batches."""
        return json.loads(self.dataset.attrs["facts"])

    def until(self, step: int) -> Recording:
        """The past of a step: what was known then.

        Raises
        ------
        ValueError
            If nothing was recorded until then.
        """
        until = checks.integer("step", step, minimum=0)
        if until < self.steps[0]:
            raise checks.reject("step", f"be at least {self.steps[0]}, the first that was recorded", until)
        return Recording(self.dataset.isel(step=self.steps <= until))

    def save(self, path: str | os.PathLike) -> None:
        """Write to a netCDF file, completely or not at all, with a checksum that `load` compares."""
        netcdf.save_dataset(self.dataset, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Recording:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If a byte of the file is not as it was written, or it holds something else.
        FileNotFoundError
            If there is none.
        """
        dataset = netcdf.load_dataset(path, FORMAT, _WHAT)
        facts = json_attribute(dataset, "facts", dict, path, _WHAT)
        # Anybody can seal a file: what a report needs is looked for here.
        whole = all(name in dataset and dataset[name].dims == axes for name, axes in {**AXES, **LABELS}.items())
        numbers = whole and all(dataset[name].dtype.kind in "fiu" and dataset[name].size for name in {**AXES, **LABELS})
        known = all(isinstance(facts.get(name), kind) for name, kind in FACTS.items())
        if not (numbers and known and (np.diff(dataset["step"].values) > 0).all() and dataset["step"].values[0] >= 0):
            raise checks.reject("path", f"be {_WHAT} written by yzflow", f"another file {os.fspath(path)!r}")
        return cls(dataset)
