"""Training of transformers: many learning rates and seeds at once, recorded, resumable."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dynamics import version
from dynamics.descent import DTYPES, MOMENTUM, DivergenceError, Optimizer
from dynamics.optimizers.optimizer import as_optimizer
from dynamics.optimizers.table import RULES
from dynamics.support import archive, checks, files, sealed
from dynamics.support.checks import read_only
from dynamics.support.limits import current
from dynamics.support.netcdf import load_dataset
from dynamics.support.progress import Progress
from dynamics.support.provenance import provenance
from yzflow_deep._steps import measure_all, rule_of, step_all
from yzflow_deep.data import Insertions, Sequences
from yzflow_deep.kinds import KINDS
from yzflow_deep.model import Architecture, Transformer

_FORMAT = "yzflow-deep-1"
_CHECKPOINT = "yzflow-deep-checkpoint-1"
_STATE = KINDS[_CHECKPOINT]
_STEPS_IN_FLIGHT = 16  # jax runs asynchronously: losses are fetched after so many steps
_VALIDATION = 64  # sequences


def train(
    start: Architecture | Transformer,
    data: Sequences,
    *,
    learning_rate: float | Sequence[float],
    steps: int,
    optimizer: str | Optimizer = "sgd",
    momentum: float = MOMENTUM,
    batch_size: int | None = 32,
    seeds: int | Sequence[int] = 1,
    validation: Sequences | None = None,
    probe: ArrayLike | None = None,
    contrast: Insertions | None = None,
    contrast_weight: float = 0.0,
    label_smoothing: float = 0.0,
    record_every: int = 100,
    dtype: str = "float32",
    checkpoint: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""Train a transformer at every combination of learning rates and seeds, by `jax.vmap` on a GPU.

    The objective is the mean cross-entropy of the next token over the positions in the mask of ``data``, for
    ``batch_size`` sequences drawn with replacement. "sgd" has the velocity ``v <- momentum v + gradient`` and the step
    ``eta v``. "adam" and all options of an `Optimizer` are as in `dynamics.sgd`, by optax. One rate moves all weights.

    Parameters
    ----------
    start : Architecture or yzflow_deep.model.Transformer
        An architecture starts at random, a transformer from its weights.
    data : Sequences
    learning_rate : float or sequence of float
        Per step, positive.
    steps : int
    optimizer : "sgd", "adam", "adamw", "sign" or Optimizer
    momentum : float
        In [0, 1); not used by "adam" and "adamw", and left out beside an `Optimizer`, which has its own momentum.
    batch_size : int or None
        Sequences a step; None takes all of ``data``.
    seeds : int or sequence of int
        Number of seeds (0, 1, ..), or the seeds. A seed decides the start and the batches, the same at each learning
        rate.
    validation : Sequences, optional
        Sequences on which loss and entropy are measured. Default: the first 64 of ``data``.
    probe : (n, length) int, optional
        Sequences whose attention maps are recorded. Default: the first of ``validation``.
    contrast : Insertions, optional
        Sequences for the regulariser ``contrast_weight E ||u(x) - u(p + x)||^2 / outputs`` of the logits u, mean over
        positions (Wen et al. 2023, (22)): each sequence of a batch has one insertion.
    contrast_weight : float
    label_smoothing : float
        eps in [0, 1): training has the targets ``(1 - eps) target + eps / outputs``; the recorded ``loss`` has the
        targets of the data.
    record_every : int
        Steps between records; the first and the last state are always recorded.
    dtype : "float32" or "float64"
        Precision of the whole computation, of products of matrices on a GPU, too.
    checkpoint : path, optional
        A file with the state of the run, written every few seconds and at the end. If it exists, the run goes on from
        it: on a CPU of the same kind with the same bits, on a GPU with other last bits. It must be of a run by this
        version of yzflow with the same arguments; ``steps`` may be larger.
    progress : bool
        Show progress and the loss on standard error.

    Returns
    -------
    xarray.Dataset
        Over (learning_rate, seed):

        - ``loss(time)``, on ``validation``, nats; ``batch_loss(step)``, before each step, what is descended on.
        - ``entropy(time, layer, head)``: of attention, mean over the positions of ``validation`` that count, nats;
          ``uniform_entropy``, that of uniform attention.
        - ``attention(time, probe, layer, head, row, position)`` on ``probe_tokens(probe, position)``.
        - ``parameters(parameter)``: the last weights, for `model_at`.
        - ``diverged``: the first step whose loss is not finite, or -1.

    Raises
    ------
    ValueError
        If an argument is invalid, or ``checkpoint`` is of another run or another file. A damaged checkpoint is set
        aside as ``*.damaged``, with a warning, and training starts again.
    DivergenceError
        If no run has a finite loss any more; its ``trajectory`` is the dataset of the records.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("checkpoint", "progress")}
    checks.one_of("dtype", dtype, DTYPES)
    progress, path = checks.flag("progress", progress), files.checkpoint(checkpoint)
    double = jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()
    with double, jax.default_matmul_precision("highest"):  # else a GPU multiplies with ten bits
        run = _Run(**arguments)
        if path is not None and sealed.sound(path, _STATE, "training starts again", name="checkpoint"):
            run.restore(path)
        with Progress(f"transformer, {run.parameters['optimizer']}", enabled=progress) as report:
            run.go(report, path)
        return run.dataset()


def load_training(path: str | os.PathLike) -> xr.Dataset:
    """Read a dataset of `train` that `dynamics.support.netcdf.save_dataset` wrote.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else.
    FileNotFoundError
        If there is no such file.
    """
    return load_dataset(path, _FORMAT, KINDS[_FORMAT])


def model_at(dataset: xr.Dataset, *, learning_rate: float | None = None, seed: int | None = None) -> Transformer:
    """The trained transformer of a run of `train`; a learning rate or seed may be left out if there is only one."""
    checks.instance("dataset", dataset, xr.Dataset)
    if dataset.attrs.get("format") != _FORMAT:
        raise checks.reject("dataset", "be one of `train`", f"the format {dataset.attrs.get('format')!r}")
    chosen = dataset
    for name, value in (("learning_rate", learning_rate), ("seed", seed)):
        labels = dataset[name].values
        if value is None and labels.size == 1:
            value = labels[0]
        elif value is not None:
            value = checks.real(name, value)
        if value not in labels:
            raise checks.reject(name, f"be one of {labels.tolist()}", value)
        chosen = chosen.sel({name: value})
    a = Architecture(**json.loads(dataset.attrs["parameters"])["architecture"])
    flat = chosen["parameters"].values
    leaves, tree = jax.tree.flatten(Transformer(a, 0))
    parts = np.split(flat, np.cumsum([leaf.size for leaf in leaves])[:-1])
    weights = [read_only(np.array(values.reshape(leaf.shape))) for values, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(tree, weights)


def _check(
    *, steps, optimizer, momentum, batch_size, record_every, dtype, learning_rate, seeds, contrast_weight,
    label_smoothing,
):  # fmt: skip
    """The numbers and words among the arguments of a run, checked, in a form for JSON."""
    rates = np.atleast_1d(checks.finite_array("learning_rate", learning_rate))
    if rates.ndim != 1:
        raise checks.reject("learning_rate", "be a number or have 1 axis", f"shape {rates.shape}")
    for rate in rates:
        checks.positive("learning_rate", float(rate))
    if checks.array("seeds", seeds).ndim == 0:
        number = checks.integer("seeds", seeds, minimum=1)
        checks.fits_in_memory("seeds", 64 * number, "number runs")
        seeds = np.arange(number)
    seeds = checks.index_array("seeds", seeds, upper=2**31)
    for name, values in (("learning_rate", rates), ("seeds", seeds)):
        if values.size == 0 or np.unique(values).size < values.size:
            raise checks.reject(name, "hold different values, at least one", values.tolist())
    optimizer = as_optimizer(optimizer, momentum)
    if optimizer.rule.optax is None:
        known = [name for name, rule in RULES.items() if rule.optax is not None]
        raise checks.lacks("optimizer", "a rule of optax", optimizer.name, known)
    momentum = optimizer.momentum
    contrast_weight = checks.non_negative("contrast_weight", contrast_weight)
    smoothing = checks.below("label_smoothing", label_smoothing, 1)
    for name, values in (("learning_rate", rates), ("contrast_weight", contrast_weight), ("momentum", momentum)):
        _in_range(name, np.atleast_1d(values), dtype)
    if DTYPES[dtype](momentum) >= 1:
        raise checks.reject("momentum", f"be below 1 in {dtype}", momentum)
    return {
        "learning_rate": rates.tolist(),
        "seeds": seeds.tolist(),
        "steps": checks.integer("steps", steps, minimum=1),
        **optimizer.parameters,
        "batch_size": None if batch_size is None else checks.integer("batch_size", batch_size, minimum=1),
        "record_every": checks.integer("record_every", record_every, minimum=1),
        "contrast_weight": contrast_weight,
        "dtype": dtype,
        **({"label_smoothing": smoothing} if smoothing else {}),  # left out if zero, as in files from before it existed
    }


def _in_range(name: str, values: np.ndarray, dtype: str) -> None:
    """Refuse numbers that become infinite, or zero unless they are zero, in a precision."""
    with np.errstate(over="ignore", under="ignore"):
        cast = values.astype(dtype)
    lost = ~np.isfinite(cast) | ((cast == 0) & (values != 0))
    if lost.any():
        raise checks.reject(name, f"be in the range of {dtype}", values[lost][0])


def _check_data(a: Architecture, data, validation, probe, contrast):
    """The data of a run with defaults; refused if the architecture cannot take it."""
    checks.instance("data", data, Sequences, rule="be Sequences")
    validation = data[:_VALIDATION] if validation is None else validation
    checks.instance("validation", validation, Sequences, rule="be Sequences")
    probe = checks.array("probe", validation.inputs[:1] if probe is None else probe)
    if probe.ndim != 2 or 0 in probe.shape:
        raise checks.reject("probe", "have 2 axes, neither of them empty", f"shape {probe.shape}")
    longest = max(data.inputs.shape[1], validation.inputs.shape[1], probe.shape[1])
    if contrast is not None:
        if not isinstance(contrast, Insertions):
            raise checks.reject("contrast", "be Insertions", type(contrast).__name__)
        checks.index_array("contrast", contrast.tokens.ravel(), upper=a.vocab_size)
        longest = max(longest, data.inputs.shape[1] + contrast.tokens.shape[1])
    for name, sequences in (("data", data), ("validation", validation)):
        inputs, outputs = sequences.sizes()
        if inputs > a.vocab_size:
            raise checks.reject(name, f"have at most the {a.vocab_size} tokens of the transformer", inputs)
        soft = sequences.targets.ndim == 3
        if outputs > a.n_outputs or (soft and outputs != a.n_outputs):
            raise checks.reject(name, f"have the {a.n_outputs} next tokens of the transformer", outputs)
    checks.index_array("probe", probe.ravel(), upper=a.vocab_size)
    if a.positions == "learned" and longest > a.max_length:
        raise checks.reject("max_length", f"be at least {longest}, the longest input", a.max_length)
    return validation, probe.astype(np.int32)


def _digest(*groups) -> str:
    """SHA-256 of arrays."""
    digest = hashlib.sha256()
    for array in groups:
        digest.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class _Run:
    """All runs of one call: their state, on the device, and the records."""

    def __init__(self, *, start, data, validation, probe, contrast, **arguments):
        self.parameters = p = _check(**arguments)
        self.optimizer = as_optimizer(arguments["optimizer"], arguments["momentum"]).over(p["steps"])
        if not isinstance(start, (Architecture, Transformer)):
            raise checks.reject("start", "be an Architecture or a Transformer", type(start).__name__)
        given = start if isinstance(start, Transformer) else None
        self.architecture = a = start if given is None else given.architecture
        validation, self.probe = _check_data(a, data, validation, probe, contrast)
        if (contrast is None) != (p["contrast_weight"] == 0):
            raise checks.reject("contrast_weight", "be positive with `contrast`, and 0 without", p["contrast_weight"])
        self._foresee()
        arrays = [self.probe]
        for sequences in (data, validation):
            arrays += [sequences.inputs, sequences.targets, sequences.mask]
        arrays += [] if contrast is None else [contrast.tokens, contrast.lengths, contrast.weights]
        weights = [] if given is None else [np.asarray(leaf) for leaf in jax.tree.leaves(given)]
        with np.errstate(over="ignore"):
            if not all(np.isfinite(array.astype(p["dtype"])).all() for array in weights):
                raise checks.reject("start", f"have finite weights in {p['dtype']}", "others")
        arrays += weights
        p["architecture"], p["data"] = a.as_dict(), _digest(*arrays)
        self.uniform = _uniform_entropy(validation.mask, a.attend_self)
        self.data, self.validation = _on_device(data, p["dtype"]), _on_device(validation, p["dtype"])
        self.insertions = contrast
        self.contrast = None if contrast is None else tuple(map(jnp.asarray, (contrast.tokens, contrast.lengths)))
        self._begin(given)
        self.losses = np.empty((self.n_runs, p["steps"]))
        self.done, self.times, self.records = 0, [], []
        self._pending = []

    def _foresee(self):
        """Refuse runs that need more memory than there is."""
        p, a, (probes, length) = self.parameters, self.architecture, self.probe.shape
        runs, itemsize = len(p["learning_rate"]) * len(p["seeds"]), np.dtype(p["dtype"]).itemsize
        # Each weight has a start, a value, a gradient and one or two moments.
        checks.fits_in_memory("seeds", 4 * itemsize * runs * a.n_weights, f"train {runs:,} transformers")
        batch = p["batch_size"] or 1
        checks.fits_in_memory("batch_size", 4 * batch * (2 * runs + length * a.width), "take a step")
        records = 1 + -(-p["steps"] // p["record_every"])
        maps = itemsize * a.n_layers * a.n_heads * (1 + probes * length**2)
        checks.fits_in_memory("steps", runs * (8 * p["steps"] + records * maps), "record losses and attention")

    def _begin(self, given):
        """States and functions of all runs, learning rate by learning rate."""
        p, dtype = self.parameters, jnp.dtype(self.parameters["dtype"])
        rates, seeds = np.array(p["learning_rate"]), np.array(p["seeds"])
        self.n_runs = rates.size * seeds.size
        self.rates = jnp.asarray(np.repeat(rates, seeds.size), dtype)
        if given is None:
            starts = [Transformer(self.architecture, self._rng(seed, 0), dtype=p["dtype"]) for seed in seeds]
        else:
            starts = [given] * seeds.size
        models = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves * rates.size), dtype), *starts)
        spec = models.trained()
        self.weights, self.fixed = eqx.partition(models, spec)
        # The rule is without rates, and is compiled once for all schedules.
        self.rule = dataclasses.replace(self.optimizer, schedule=None)
        self.moments = jax.jit(jax.vmap(rule_of(self.rule).init))(self.weights)

    def _rng(self, seed, *key):
        """A generator that depends only on a seed and its purpose, so that a run can go on from any step."""
        return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=key))

    def _draw(self, step) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Rows of the data and of the insertions for one step of all runs, or None."""
        p, n = self.parameters, len(self.data[0])
        size = n if p["batch_size"] is None else p["batch_size"]
        rows, inserted = [], []
        for seed in p["seeds"]:
            rng = self._rng(seed, 1, step)
            rows.append(rng.integers(n, size=size, dtype=np.int32))
            if self.contrast is not None:
                weights = self.insertions.weights
                inserted.append(rng.choice(weights.size, size=size, p=weights / weights.sum()).astype(np.int32))
        rates = len(p["learning_rate"])
        return (
            None if p["batch_size"] is None else np.stack(rows * rates),
            np.stack(inserted * rates) if inserted else None,
        )

    def go(self, report: Progress, path: Path | None):
        """Take all steps that are left."""
        steps, every = self.parameters["steps"], self.parameters["record_every"]
        saved = time.monotonic()
        if not self.times:
            self._record()
        while self.done < steps:
            drawn, rates = self._draw(self.done), self.rates
            if self.optimizer.schedule is not None:
                rates = rates * self.optimizer.factor(self.done)
            self.weights, self.moments, loss = step_all(
                self.rule, self.parameters["contrast_weight"], self.parameters.get("label_smoothing", 0.0),
                self.weights, self.moments, self.fixed, rates, drawn, self.data, self.contrast,
            )  # fmt: skip
            self._pending.append(loss)
            self.done += 1
            recorded = self.done % every == 0 or self.done == steps
            if recorded or len(self._pending) == _STEPS_IN_FLIGHT:
                self._settle(report)
            if recorded:
                self._record()
            late = time.monotonic() - saved >= current().seconds_between_saves
            if path is not None and (self.done == steps or (late and not self._pending)):
                self.save(path)
                saved = time.monotonic()

    def _settle(self, report):
        """Fetch the losses of the steps under way."""
        first = self.done - len(self._pending)
        self.losses[:, first : self.done] = np.stack(jax.device_get(self._pending), axis=1)
        self._pending = []
        last, steps = self.losses[:, self.done - 1], self.parameters["steps"]
        finite = last[np.isfinite(last)]
        if finite.size == 0:
            step = int((np.isfinite(self.losses[:, : self.done]).all(axis=0)).argmin())
            self.done = first
            raise DivergenceError(
                f"no run has a finite loss any more from step {step} of {steps} on (learning_rate = "
                f"{self.parameters['learning_rate']}, {self.parameters['optimizer']}). Try smaller learning rates, "
                f"then a smaller momentum",
                step,
                self.dataset(),
            )
        runs = "" if self.n_runs == 1 else f" (mean of {finite.size} of {self.n_runs} runs)"
        report.update(self.done / steps, f"step {self.done} of {steps}, loss {finite.mean():.4g}{runs}")

    def _record(self):
        measured = measure_all(self.weights, self.fixed, self.validation, jnp.asarray(self.probe))
        self.times.append(self.done)
        self.records.append(jax.device_get(measured))

    def _state(self) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves((self.weights, self.moments))]

    def save(self, path: Path):
        """Write the state of the run, completely or not at all."""
        header = {"format": _CHECKPOINT, "parameters": self.parameters, "done": self.done, "times": self.times,
                  "yzflow": version.__version__}  # fmt: skip
        arrays = {f"state/{i}": array for i, array in enumerate(self._state())}
        arrays["losses"] = self.losses[:, : self.done]
        for i, name in enumerate(("loss", "entropy", "attention")):
            arrays[name] = np.stack([record[i] for record in self.records])
        files.write(path, archive.encode(header, arrays))

    def restore(self, path: Path):
        """Go on from a file of `save`."""
        header, arrays = archive.load(path, _CHECKPOINT, _STATE, name="checkpoint")
        like = jax.tree.leaves((self.weights, self.moments))
        try:
            theirs, done, times = dict(header["parameters"]), int(header["done"]), [int(t) for t in header["times"]]
            leaves = [arrays[f"state/{i}"] for i in range(len(like))]
            losses, recorded = arrays["losses"], [arrays[name] for name in ("loss", "entropy", "attention")]
        except (KeyError, TypeError, ValueError):
            raise self._other_parts(path) from None
        sealed.check_version("checkpoint", header.get("yzflow"))
        ours = self.parameters
        for name in ours | theirs:
            if name != "steps" and ours.get(name) != theirs.get(name):
                brief = "" if name in ("data", "architecture") else f" = {ours.get(name)!r}"
                raise checks.reject("checkpoint", f"be of a run with the same `{name}`{brief}", f"{path}")
        measured = jax.eval_shape(measure_all, self.weights, self.fixed, self.validation, jnp.asarray(self.probe))
        wanted = [(leaf.shape, leaf.dtype) for leaf in like] + [
            ((len(times), *array.shape), array.dtype) for array in measured
        ]
        stored = [(array.shape, array.dtype) for array in (*leaves, *recorded)]
        if stored != wanted or not times or times[-1] > done or losses.shape != (self.n_runs, done):
            raise self._other_parts(path)
        if done > ours["steps"]:
            raise checks.reject("steps", f"be at least the {done} steps that the checkpoint has", ours["steps"])
        tree = jax.tree.structure((self.weights, self.moments))
        self.weights, self.moments = jax.tree.unflatten(tree, list(map(jnp.asarray, leaves)))
        self.losses[:, :done] = losses
        self.done, self.times, self.records = done, times, list(zip(*recorded, strict=True))
        if self.times[-1] % ours["record_every"] and self.done < ours["steps"]:
            # The record at the end of a shorter run is no record of this run.
            self.times, self.records = self.times[:-1], self.records[:-1]

    @staticmethod
    def _other_parts(path: Path) -> ValueError:
        return checks.reject("checkpoint", f"be {_STATE} as it was saved", f"{path}, with other parts")

    def dataset(self) -> xr.Dataset:
        """The records so far."""
        p, a = self.parameters, self.architecture
        shape = (len(p["learning_rate"]), len(p["seeds"]))
        runs = ("learning_rate", "seed")
        loss, entropy, attention = (
            np.stack([record[i] for record in self.records], axis=1).reshape(
                *shape, len(self.times), *self.records[0][i].shape[1:]
            )
            for i in range(3)
        )
        losses = self.losses[:, : self.done]
        bad = ~np.isfinite(losses)
        diverged = np.where(bad.any(axis=1), bad.argmax(axis=1) if self.done else 0, -1).reshape(shape)
        models = jax.tree.leaves(eqx.combine(self.weights, self.fixed))
        flat = np.concatenate([np.asarray(leaf).reshape(self.n_runs, -1) for leaf in models], axis=1)
        nats = {"units": "nats"}
        variables = {
            "loss": ((*runs, "time"), loss, {"long_name": "validation loss", **nats}),
            "entropy": ((*runs, "time", "layer", "head"), entropy, {"long_name": "entropy of attention", **nats}),
            "attention": (
                (*runs, "time", "probe", "layer", "head", "row", "position"),
                attention,
                {"long_name": "attention", "units": "1"},
            ),
            "batch_loss": (
                (*runs, "step"),
                losses.reshape(*shape, -1),
                {"long_name": "loss of the batch before the step", **nats},
            ),
            "diverged": (runs, diverged, {"long_name": "first step whose loss is not finite, or -1"}),
            "parameters": ((*runs, "parameter"), flat.reshape(*shape, -1), {"long_name": "weights at the end"}),
            "probe_tokens": (("probe", "position"), self.probe),
            "uniform_entropy": ((), self.uniform, {"long_name": "entropy of uniform attention", **nats}),
        }
        coordinates = {
            "learning_rate": ("learning_rate", p["learning_rate"], {"units": "1 / step"}),
            "seed": p["seeds"],
            "time": ("time", np.array(self.times, dtype=np.float64), {"long_name": "time", "units": "SGD steps"}),
            "layer": np.arange(1, a.n_layers + 1),
        }
        attributes = provenance("deep.train", p, _FORMAT)
        versions = json.loads(attributes["versions"]) | {
            name: metadata.version(name) for name in ("jax", "equinox", "optax")
        }
        attributes |= {"versions": json.dumps(versions), "device": str(jax.devices()[0])}
        return xr.Dataset(variables, coordinates, attributes)


def _on_device(sequences: Sequences, dtype):
    targets = sequences.targets.astype(dtype) if sequences.targets.ndim == 3 else sequences.targets
    return tuple(map(jnp.asarray, (sequences.inputs, targets, sequences.mask)))


def _uniform_entropy(mask, attend_self) -> float:
    """Entropy of uniform attention, mean over the positions that count."""
    keys = np.maximum(np.arange(mask.shape[1]) + bool(attend_self), 1)
    return float((mask * np.log(keys)).sum() / mask.sum())
