"""Recordings: attention and loss over the steps of a training that somebody else runs."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support import checks, netcdf
from dynamics.support.results import json_attribute
from yzflow_watch.kinds_of_files import KINDS
from yzflow_watch.measures import PLACES

__all__ = ["FORMAT", "Recording"]

FORMAT = "yzflow-recording-1"
_WHAT = KINDS[FORMAT]
_OF_TOKENS = ("step", "layer", "head", "next_token", "token")
LATER = PLACES  # absent from older recordings: NaN there
AXES = {
    **dict.fromkeys(("attention", "gain"), _OF_TOKENS),
    **dict.fromkeys(("entropy", "by_token", "moved_by_order", "eta_y", "eta_z"), _OF_TOKENS[:3]),
    **dict.fromkeys(LATER, _OF_TOKENS[:3]),
    **dict.fromkeys(("loss", "spread", "learning_rate"), _OF_TOKENS[:1]),
}
LABELS = {
    "step": ("step",),
    "next_token": ("next_token",),
    "token": ("token",),
    "share": ("next_token", "token"),
    "query": ("next_token",),
}
_STORED = "stored_"  # prefix of predictions that were written while the training ran
JOINED: dict[str, Any] = {"join": "outer", "data_vars": "all", "coords": "minimal", "compat": "override"}
_SCALARS = ("asked", "rival", "past", "facts_then")
FACTS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    **dict.fromkeys(("parts", "counts"), list),
    **dict.fromkeys(("vocabulary", "sequences", "length", "counted"), int),
    **dict.fromkeys(("one_query", "batch"), (int, float)),
    "probe": str,
    "optimizer": (dict, type(None)),
}
# Facts that older files lack -> their values there.
LATER_FACTS: dict[str, Any] = {
    "unseen": "",
    "parts_known": False,
    "uniform": {},
    "gaps": {},
    "processes": 1,
    "steps": None,
    "optimizers": [],
    "gradients": "unknown",
    "rates": "unknown",
    "matrices": [],
}


class Recording:
    """Attention and loss of a training that somebody else runs, until the last step that was recorded.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over ``step``, ``layer``, ``head``, ``next_token`` and ``token``: ``attention``, the mean on each kept token in
        the contexts of each kept next token, without the query's own place; ``gain``, its logits up to a constant;
        ``entropy`` (nats); ``by_token`` and ``moved_by_order``, how far attention depends on tokens alone; rates
        ``eta_y`` and ``eta_z`` (NaN where not known); and ``previous_token``, ``prefix_match`` and ``first_position``,
        the last query's attention there (`yzflow_watch.measures.attention_by_place`; NaN in recordings of before;
        the fact ``uniform`` has those of uniform attention). Over ``step``: ``loss`` (nats), ``spread`` of the logits
        of next tokens, and ``learning_rate``. ``share`` is P(l|n), and ``query`` that of each next token. The attribute
        ``facts`` is what is known of model and training, as JSON.

        Predictions that were written while the training ran stand over ``asked``, the step, and ``rival``: under names
        that begin with "stored_", with ``past``, the `fingerprint` of what was known, and ``facts_then``.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        checks.instance("dataset", dataset, xr.Dataset)
        if dataset.attrs.get("format") != FORMAT:
            raise checks.reject("dataset", f"have the attribute format = {FORMAT!r}", dataset.attrs.get("format"))
        absent = [name for name in LATER if name not in dataset and {*AXES[name]} <= {*dataset.sizes}]
        sizes = {name: [dataset.sizes[axis] for axis in AXES[name]] for name in absent}
        self.dataset = dataset.assign({name: (AXES[name], np.full(sizes[name], np.nan)) for name in absent})

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
        """Kind and parts of the model, sizes of the probe, optimizers and batches.

        ``unseen`` says why no step was seen, "" if one was. ``optimizer`` has the largest value of each option over all
        ``optimizers``, and ``matrices`` the options for each matrix, by layer. ``gradients`` says if something changed
        them before the step. ``rates`` says if eta_Y and eta_Z are "given", "of plain steps", or "nominal": the rates
        that plain steps would have at these learning rates, while the actual steps were not plain. ``gaps`` has the
        error of each step whose record could not be made or written. ``processes`` says how many trained together; one
        of them was recorded.
        """
        return copy.deepcopy(LATER_FACTS) | json.loads(self.dataset.attrs["facts"])

    def until(self, step: int) -> Recording:
        """The part of the recording until a step.

        Raises
        ------
        ValueError
            If nothing was recorded until then.
        """
        until = checks.integer("step", step, minimum=0)
        if until < self.steps[0]:
            raise checks.reject("step", f"be at least {self.steps[0]}, the first that was recorded", until)
        known = {"step": self.steps <= until}
        if "asked" in self.dataset:
            known["asked"] = self.asked <= until
        return Recording(self.dataset.isel(known))

    @property
    def asked(self) -> np.ndarray:
        """Steps at which predictions were written while the training ran."""
        return self.dataset["asked"].values if "asked" in self.dataset else np.empty(0, dtype=int)

    def then(self, step: int) -> Recording:
        """The part until a step, as it was known there: with the facts of then, if predictions were written at it.

        Raises
        ------
        ValueError
            As `until`; or if predictions were written from another past than that in this recording.
        """
        past = self.until(step)
        if step not in self.asked:
            return past
        of = self.dataset.sel(asked=step)
        past = Recording(past.dataset.assign_attrs(facts=str(of["facts_then"].values)))
        if past.fingerprint != str(of["past"].values):
            raise checks.reject("recording", "have the past from which its predictions were made", f"another at {step}")
        return past

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all records and facts, without predictions.

        Keep the fingerprint of a past elsewhere: it can show later that a prediction is older than its subject.
        """
        found = hashlib.sha256(self.dataset.attrs["facts"].encode())
        for name, axes in sorted({**AXES, **LABELS}.items()):
            values = self.dataset[name].transpose(*axes).values
            if name in LATER and np.isnan(values).all():  # an older recording has a fingerprint without it
                continue
            found.update(f"{name}{values.shape}".encode())
            found.update(np.ascontiguousarray(values, "<f8" if values.dtype.kind == "f" else "<i8").tobytes())
        return found.hexdigest()

    def stored(self, step: int) -> dict[str, xr.Dataset]:
        """Rival -> its prediction that was written at a step; empty if there is none."""
        if step not in self.asked:
            return {}
        found = {}
        for name in self.dataset["rival"].values:
            own = self.dataset.sel(asked=step, rival=name)
            quantities = {str(one): own[one] for one in own.data_vars if str(one).startswith(_STORED)}
            known = {one.removeprefix(_STORED): given for one, given in quantities.items() if given.notnull().any()}
            found[str(name)] = xr.Dataset(known).drop_vars([*_SCALARS], errors="ignore")
        return found

    def predicted(self, found: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Predictions of rivals from this recording, in the form in which later recordings hold them."""
        rows = xr.concat(list(found.values()), "rival", **JOINED)
        rows = rows.rename({name: f"{_STORED}{name}" for name in rows.data_vars}).astype(np.float32)
        rows = rows.assign_coords(rival=list(found)).expand_dims(asked=[int(self.steps[-1])])
        facts = self.dataset.attrs["facts"]
        return rows.assign(past=("asked", [self.fingerprint]), facts_then=("asked", [facts]))

    def save(self, path: str | os.PathLike) -> None:
        """Write to a netCDF file, completely or not at all, with a checksum that `load` compares."""
        netcdf.save_dataset(self.dataset, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Recording:
        """Read a file of `save`.

        Raises
        ------
        ValueError
            If a byte of the file is not as it was written, or it holds something else.
        FileNotFoundError
            If there is no such file.
        """
        found = cls(netcdf.load_dataset(path, FORMAT, _WHAT))
        dataset = found.dataset
        facts = json_attribute(dataset, "facts", dict, path, _WHAT)
        # Anybody can seal a file: check the parts that a report needs.
        whole = all(name in dataset and dataset[name].dims == axes for name, axes in {**AXES, **LABELS}.items())
        numbers = whole and all(dataset[name].dtype.kind in "fiu" and dataset[name].size for name in {**AXES, **LABELS})
        known = all(isinstance(facts.get(name), kind) for name, kind in FACTS.items())
        later = {**LATER_FACTS, **facts}
        known = known and all(
            isinstance(later[name], type(value)) or (name == "steps" and isinstance(later[name], int))
            for name, value in LATER_FACTS.items()
        )
        if not (numbers and known and (np.diff(dataset["step"].values) > 0).all() and dataset["step"].values[0] >= 0):
            raise checks.reject("path", f"be {_WHAT} written by yzflow", f"another file {os.fspath(path)!r}")
        try:
            for step in found.asked:
                found.then(int(step))
                found.stored(int(step))
        except (KeyError, TypeError, ValueError) as error:
            why = f"predictions from another past in {os.fspath(path)!r}"
            raise checks.reject("path", "hold predictions that were made from the past that it holds", why) from error
        return found
