"""Task of sweeps: SGD of the Y/Z layer on windows of a real text."""

from __future__ import annotations

import itertools
import os

import numpy as np
import xarray as xr

from dynamics import Bags, Layer, sgd_many
from dynamics.data.text import TOKENIZERS
from dynamics.descent import DTYPES
from dynamics.support import checks
from yzflow.sweeps.runs import Task
from yzflow_studies.real_text import measures

WEIGHTINGS = ("natural", "equal")
_SETTINGS = {
    "vocab_size": (1000, lambda name, value: checks.integer(name, value, minimum=2)),
    "tokenizer": ("words", lambda name, value: checks.one_of(name, value, tuple(TOKENIZERS))),
    "length": (32, lambda name, value: checks.integer(name, value, minimum=2)),
    "windows": (100_000, lambda name, value: checks.integer(name, value, minimum=1)),
    "lift": (1.5, checks.positive),
}
_TRAINING = {
    "next_tokens": ("natural", lambda name, value: checks.one_of(name, value, WEIGHTINGS)),
    "eta_y": (5.0, checks.positive),
    "eta_z": (5.0, checks.positive),
    "steps": (1600, lambda name, value: checks.integer(name, value, minimum=1)),
    "n_times": (9, lambda name, value: checks.integer(name, value, minimum=2)),
    "batch_size": (128, lambda name, value: checks.integer(name, value, minimum=1)),
    "dtype": ("float32", lambda name, value: checks.one_of(name, value, tuple(DTYPES))),
}
_LABELS = {
    "text": {"long_name": "file of the text"},
    "vocab_size": {"long_name": "M, tokens of the vocabulary"},
    "length": {"long_name": "T, tokens of a window"},
    "next_tokens": {"long_name": "weighting of next tokens"},
    "eta_y": {"long_name": "learning rate of the decoder, eta_Y", "units": "1 / SGD step"},
    "eta_z": {"long_name": "learning rate of attention, eta_Z", "units": "1 / SGD step"},
    "steps": {"long_name": "number of steps", "units": "SGD steps"},
    "seed": {"long_name": "seed of the batches"},
}
_UNITS = {"loss": "nats", "batch_loss": "nats", "entropy": "nats", "relative_gain": "1"}
_NAMES = {
    "loss": "cross-entropy on held-out windows",
    "batch_loss": "cross-entropy of the last mini-batches, up to 50",
    "entropy": "entropy of attention on held-out windows",
    "relative_gain": "mean of ln((1 + r(t)) / (1 + r(0))), distinct over common",
    **{f"gain_{group}": f"attention on {group} tokens, relative to the start" for group in measures.GROUPS},
}


def _complete(given: dict) -> dict:
    if not isinstance(given.get("text"), (str, os.PathLike)):
        raise checks.reject("text", "be the path of a text", repr(given.get("text")))
    path = os.fspath(given["text"])
    if not os.path.isfile(path):
        raise checks.reject("text", "be the path of a text", f"{path!r}, where there is no file")
    rest = {name: check(name, given.get(name, default)) for name, (default, check) in (_SETTINGS | _TRAINING).items()}
    # The content and not only the name tells a run from another.
    return {"text": path, "content": measures.digest(path), **rest}


def record_times(steps: int, n_times: int) -> np.ndarray:
    """The start, and up to ``n_times - 1`` steps, evenly spread in logarithm from step 10 to the end."""
    spread = np.geomspace(steps, min(10, steps), n_times - 1)
    return np.unique([0, *np.round(spread).astype(int)])


def real_text(configuration: dict, seed: int) -> dict:
    """SGD without momentum from a zero start, in segments between the times of record, each from the layer before.

    Without momentum the layer is the whole state, so that segments are the same as one run.
    """
    settings = {name: configuration[name] for name in ("text", "content", *_SETTINGS)}
    data = measures.load(**settings)
    train, held_out = data.weighted(configuration["next_tokens"])
    times = record_times(configuration["steps"], configuration["n_times"])
    layer = Layer.zeros(train)
    rows = [_row(data, layer, held_out, np.log([layer.vocab_size]))]
    arguments = {name: configuration[name] for name in ("eta_y", "eta_z", "batch_size", "dtype", "length")}
    for segment, (start, end) in enumerate(itertools.pairwise(times)):
        own = {"steps": int(end - start), "init": layer, "seed": np.random.SeedSequence((seed, segment))}
        [outcome] = sgd_many([(train, {**arguments, **own, "momentum": 0.0})], threads=1)
        layer = outcome.layer
        rows.append(_row(data, layer, held_out, outcome.batch_loss))
    time = ("time", times, {"long_name": "time", "units": "SGD steps"})
    return {
        name: xr.DataArray(
            [row[name] for row in rows],
            {"time": time},
            dims="time",
            attrs={"long_name": _NAMES[name], "units": _UNITS.get(name, "1")},
        )
        for name in rows[0]
    }


def _row(data: measures.RealText, layer: Layer, held_out: Bags, batch_loss: np.ndarray) -> dict[str, float]:
    losses = {"loss": float(layer.loss(held_out)), "batch_loss": float(np.mean(batch_loss[-50:]))}
    return losses | data.measure(layer)


REAL_TEXT = Task(
    "real_text",
    real_text,
    keys=("text", *_SETTINGS, *_TRAINING),
    complete=_complete,
    threads=True,
    labels=_LABELS,
)
TASKS = (REAL_TEXT,)
