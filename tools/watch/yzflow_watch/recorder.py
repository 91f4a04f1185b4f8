"""A recorder beside a training that it does not run: it looks at log-spaced steps and changes nothing."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import log_softmax

from dynamics.support import checks, sealed
from dynamics.version import __version__
from yzflow.audits.places import plain_steps
from yzflow_watch import measures
from yzflow_watch.adapters import Adapter, Matrices, first_line, with_inputs
from yzflow_watch.claimed import known_rivals
from yzflow_watch.gradients import LEFT, TOLD
from yzflow_watch.rates import induced
from yzflow_watch.recording import AXES, FORMAT, JOINED, Recording
from yzflow_watch.resuming import difference, sums
from yzflow_watch.rivals import foreseen
from yzflow_watch.training import Training, trainer_callback
from yzflow_watch.untouched import processes, untouched, unwrapped

if TYPE_CHECKING:
    from yzflow_watch.report import WatchReport

__all__ = ["Recorder"]

_GROWTH = 1.25  # from one recorded step to the next
_NAMED = 6  # the most heads that a warning names
_REORDERED = 16  # sequences whose context is also asked in another order
_ANSWERS = ("attention", "entropy", "loss", "spread")  # the columns that depend on the weights alone


class Recorder:
    """Records a training; made by `yzflow.watch`.

    As a context manager it follows the steps of every optimizer of PyTorch's that holds a parameter of the model,
    however the loop is written. In a loop without such an optimizer, call `step` after each step. A step that a scaler
    of mixed precision skips does not count, and accumulated batches count as one.
    """

    def __init__(
        self,
        model: Any,
        probe: measures.Probe,
        adapter: Adapter,
        *,
        every: str | int = "log",
        predict_at: str | tuple[int, ...] | None = None,
        optimizer: Any = None,
        rates: tuple[float, float] | None = None,
        learning_rate: float = math.nan,
        batch_size: int = 0,
        path: str | os.PathLike | None = None,
        resume_at: int | None = None,
        inputs: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._inputs = inputs or {}
        self.model, self.adapter, self._probe, self._every = model, adapter, probe, every
        self._learning_rate = learning_rate
        self._rates, self._batch = rates, batch_size
        self._training = Training(optimizer, positions_first=adapter.positions_first)
        self._path = None if path is None else checks.path("path", path)
        self._order = probe.orders(min(len(probe.tokens), _REORDERED))
        self._unknown: set[tuple[int, ...]] = set()  # layers and heads with unknown attention that was warned of
        self._predict_at: str | tuple[int, ...] = () if predict_at is None else predict_at
        self._rows: list[dict[str, Any]] = []
        self._stored: list[xr.Dataset] = []
        self._step = self._next = 0
        self._vocabulary = 0
        self._said_equal = False
        self._gaps: dict[str, str] = {}
        self._said_no_forward = False
        self._matrices: list[dict[str, Any]] = []
        self._sums = sums(model)
        self._unseen_before: str | None = None
        self._start = resume_at or 0
        if self._path is not None and self._path.exists():
            self._resume(Recording.load(self._path), resume_at)
        else:
            self._step = self._start
            self._record()

    def __repr__(self) -> str:
        said = self._unseen or f"{len(self._rows)} records until step {self._step}"
        return f"<Recorder: {self.adapter.kind}, {said}>"

    def __enter__(self) -> Recorder:
        self._entered = self._step
        self._training.follow(self.model, self._follow, lambda: self._step + 1 >= self._next)
        return self

    def __exit__(self, *error: object) -> None:
        self._training.leave(whole=error[0] is None)
        if error[0] is None:
            if self._rows[-1]["step"] != self._step:
                self._look()
            if self._step == self._entered:
                warnings.warn(self._why(), UserWarning, stacklevel=2)

    @property
    def _unseen(self) -> str:
        """Why no step was seen, in words; empty if one was.

        A resumed recording keeps the words of its file until then.
        """
        if self._step > self._start or self._unseen_before is not None:
            return "" if self._step > self._start else str(self._unseen_before)
        return self._why()

    def _why(self) -> str:
        """Why no step is seen, as far as is known."""
        names = " and ".join(self._training.strangers)
        why = [f"{names} holds no parameter of this model, of which it may train a copy"] if names else []
        now = sums(self.model)
        if now is not None and self._sums is not None and not np.array_equal(now, self._sums, equal_nan=True):
            why.append("its weights changed all the same")
        cure = "train in a `with` block, or call `step()` after each step"
        return f"no step was seen: {'; '.join([*why, cure])}"

    def callback(self) -> Any:
        """A callback of Hugging Face's Trainer, which records while it trains: ``Trainer(.., callbacks=[..])``.

        If the Trainer resumes, the recording goes on from its ``global_step``, as with ``resume_at``.

        Raises
        ------
        RuntimeError
            Without transformers.
        """
        return trainer_callback(self, self._training.leave, self._begin)

    def _begin(self, step: int) -> None:
        """Go on from a step of a Trainer that resumes."""
        if step in (0, self._step):
            return
        if self._unseen:  # the first look was at the model before its weights were loaded
            self._rows, self._start, self._sums = [], step, sums(self.model)
        self._stand(step, "resume_from_checkpoint")

    def step(self, model: Any = None, *, at: int | None = None) -> None:
        """Count one step of a loop by hand, and record if it is due.

        Parameters
        ----------
        model : object, optional
            The model after the step, if each step makes another object.
        at : int, optional
            The number of the step, of a checkpoint for example; it is recorded. Default: the next number.

        Raises
        ------
        RuntimeError
            In a ``with`` block, where the steps of the optimizer are counted.
        ValueError
            If ``at`` is not above the last step.

        Warns
        -----
        UserWarning
            Once, if the model's answers equal those of the last record, to the last bit.
        """
        training = self._training
        if training.followed:
            raise RuntimeError("steps are counted in a `with` block: do not call `step` there")
        at = None if at is None else checks.integer("at", at, minimum=self._step + 1)
        before = self.model, self._step
        try:
            self.model = self.model if model is None else unwrapped(model)
            self._count(at, self._look if model is None else self._record)
        except BaseException:  # a step that cannot be recorded does not count
            self.model, self._step = before
            raise
        if not self._said_equal and self._rows[-1]["step"] == self._step and self._equal_rows():
            self._said_equal = True
            words = f"the model of step {self._step} answers as that of step {self._rows[-2]['step']}, to the last bit"
            warnings.warn(f"{words}: are their weights equal? `step(model)` takes the new one", stacklevel=2)

    def _equal_rows(self) -> bool:
        """True if the model's answers equal those of the record before."""
        if len(self._rows) < 2:
            return False
        last, before = self._rows[-1], self._rows[-2]
        return all(np.array_equal(last[name], before[name]) for name in _ANSWERS)  # NaN is equal to nothing

    def _count(self, at: int | None = None, look: Callable[[], None] | None = None) -> None:
        self._step = self._step + 1 if at is None else at
        if at is not None or self._step >= self._next:
            (look or self._look)()

    def _look(self) -> None:
        """Record; an error is kept as a gap and told once, and the training goes on."""
        training = self._training
        if training.followed and not (training.sequences or self._batch or self._said_no_forward):
            self._said_no_forward = True
            cure = "say `batch_size=`, or call the model itself, not a compiled function around it"
            warnings.warn(
                f"no forward of the model was seen before step {self._step}: {cure}", UserWarning, stacklevel=2
            )
        try:
            with untouched(self.model):
                self._record()
        except Exception as error:  # models and functions of other people can raise anything
            self._next = self._following()
            why = first_line(error)
            if not self._gaps:
                told = f"step {self._step} could not be recorded ({why}); the training goes on, later gaps are not said"
                warnings.warn(told, UserWarning, stacklevel=2)
            self._gaps[str(self._step)] = why

    def _follow(self, whole: bool) -> None:
        """Count a step that was followed; if the model has changed since, a later step is recorded."""
        if whole:
            self._count()
        else:
            self._step += 1

    def _following(self) -> int:
        """The next step to record."""
        growth = _GROWTH * self._step if self._every == "log" else self._step + int(self._every)
        at = self._predict_at
        wanted = [] if isinstance(at, str) else [one for one in at if one > self._step]
        return max(self._step + 1, min([math.ceil(growth), *wanted]))

    def _predict(self) -> None:
        """Write the predictions of each rival, if due; a rival that raises an error is left out, with a warning."""
        if self._predict_at == "log":
            due = self._step >= (2 * int(self._stored[-1]["asked"][0]) if self._stored else 1)
        else:
            due = self._step in self._predict_at
        if not due:
            return
        past, found = self.recording, {}
        for one in known_rivals():
            try:
                found[one.name] = foreseen(one, past)
            except Exception as error:  # other people's code can raise anything, and the training is to go on
                told = f"{one.name} foresees nothing at step {self._step}: {first_line(error)}"
                warnings.warn(told, UserWarning, stacklevel=2)
        self._stored.append(past.predicted(found))

    def _record(self) -> None:
        self._rows.append(self._row())
        self._next = self._following()
        self._predict()
        if self._path is not None:
            self.recording.save(self._path)

    def _row(self) -> dict[str, Any]:
        """Measures of the model as it is."""
        probe = self._probe
        seen = self.adapter.on(self.model, probe.tokens, self._inputs)
        measures.check_padding(seen.attention, probe)
        few = np.take_along_axis(probe.context[: len(self._order)], self._order, axis=1)
        swapped = np.concatenate([few, probe.query[: len(few), None]], axis=1)
        inputs = {name: values[: len(few)] for name, values in self._inputs.items()}
        other = self.adapter.on(self.model, swapped, inputs)
        self._vocabulary = seen.logits.shape[1]
        if probe.following.max() >= self._vocabulary:
            rule = f"have next tokens below {self._vocabulary}, of which the model knows so many"
            raise checks.reject("tokens", rule, int(probe.following.max()))
        context, rest = measures.on_context(seen.attention), measures.on_context(other.attention)
        self._tell_unknown(np.isnan(context).any(axis=(1, 3)), np.isnan(seen.attention).any(axis=(1, 3)))
        kept = np.stack([measures.token_attention(one, probe) for one in context])
        logs = log_softmax(seen.logits, axis=1)
        centred = seen.logits - seen.logits.mean(axis=1, keepdims=True)
        places = [measures.attention_by_place(one, probe.tokens, probe.real) for one in seen.attention]
        rate, eta_y, eta_z = self._learning_rates(context.shape[0], context.shape[2])
        return {
            "step": self._step,
            "attention": kept,
            "gain": measures.gains(kept, probe.shares),
            "entropy": np.stack([measures.entropy(one) for one in context]),
            "by_token": np.stack([measures.by_token(one, probe) for one in context]),
            "moved_by_order": np.stack(
                [
                    measures.moved_by_order(one[: len(few)], moved, self._order)
                    for one, moved in zip(context, rest, strict=True)
                ]
            ),
            **{name: np.stack([one[name] for one in places]) for name in measures.PLACES},
            "loss": float(-logs[np.arange(len(logs)), probe.following].mean()),
            "spread": float(np.abs(centred).max()),
            "learning_rate": rate,
            "eta_y": eta_y,
            "eta_z": eta_z,
        }

    def _tell_unknown(self, unknown: np.ndarray, nan: np.ndarray) -> None:
        """Warn once of each layer and head, (layers, heads), with unknown attention on the context."""
        new = [at for at in map(tuple, np.argwhere(unknown).tolist()) if at not in self._unknown]
        if new:
            self._unknown.update(new)
            where = ", ".join(f"layer {layer} head {head}" for layer, head in new[:_NAMED])
            where += f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            why = "it is NaN" if nan[new[0]] else "all of it is on the query itself, or on nothing"
            said = f"attention on the context is not known at step {self._step} in {where} (from 0 on), as {why}"
            warnings.warn(f"{said}; NaN is recorded, and nothing is scored of it", UserWarning, stacklevel=3)

    def _learning_rates(self, layers: int, heads: int) -> tuple[float, np.ndarray, np.ndarray]:
        """The optimizer's rate, and eta_Y and eta_Z by layer and head, NaN where not known."""
        training, self._matrices = self._training, []
        seen = training.rate(self.model)
        rate, found = self._learning_rate if math.isnan(seen) else seen, np.full((2, layers, heads), np.nan)
        if self._rates is not None:
            found[:] = np.reshape(self._rates, (2, 1, 1))
        elif self.adapter.matrices is not None and math.isfinite(rate):
            inputs = {name: values[:2] for name, values in self._inputs.items()}
            with untouched(self.model), with_inputs(self.model, inputs):
                of_model: Iterable[Iterable[Matrices]] = self.adapter.matrices(self.model, self._probe.tokens[:2])
            for i, layer in enumerate(of_model):
                for j, head in enumerate(layer):
                    of_head = rate if math.isnan(seen) else training.rates(head.weights, self.model)
                    found[:, i, j] = induced(head, of_head, self._probe.kept, self._probe.classes)
                self._matrices.append(training.of_matrices(head.weights, self.model))
        return rate, found[0], found[1]

    @property
    def _kind_of_rates(self) -> str:
        """The kind of eta_Y and eta_Z: given, of plain steps, or nominal."""
        if self._rates is not None:
            return "given"
        of = self._training.facts(self.model)
        if of["optimizer"] is None or not self._rows or not np.isfinite(self._rows[-1]["eta_z"]).all():
            return "unknown"
        plain = plain_steps(of["optimizer"]) and (of["gradients"] in (LEFT, TOLD) or self._training.gradients.scaled)
        return "of plain steps" if plain else "nominal"

    @property
    def recording(self) -> Recording:
        """The recording until now."""
        probe = self._probe
        rows = {name: (axes, np.stack([np.asarray(row[name]) for row in self._rows])) for name, axes in AXES.items()}
        coordinates = {
            "step": [row["step"] for row in self._rows],
            "next_token": probe.classes,
            "token": probe.kept,
            "share": (("next_token", "token"), probe.shares),
            "query": ("next_token", probe.class_query),
        }
        attributes = {"format": FORMAT, "version": __version__, "facts": json.dumps(self._facts)}
        data = xr.Dataset(rows, coordinates, attributes)
        if self._stored:
            data = data.merge(xr.concat(self._stored, "asked", **JOINED), compat="no_conflicts", join="outer")
        return Recording(data)

    @property
    def _facts(self) -> dict[str, Any]:
        probe = self._probe
        digest = hashlib.sha256(np.column_stack([probe.tokens, probe.following]).astype("<i8").tobytes())
        for name, values in sorted(self._inputs.items()):  # a probe with other inputs is another one
            digest.update(f"{name}{values.shape}".encode() + np.ascontiguousarray(values, "<f8").tobytes())
        training = self._training
        mean = training.sequences / training.steps if training.sequences else float(self._batch)
        return {
            "unseen": self._unseen,
            "kind": self.adapter.kind,
            "parts": list(self.adapter.parts(self.model)),
            "parts_known": self.adapter.whole,
            "vocabulary": self._vocabulary,
            "sequences": len(probe.tokens),
            "length": self._training.length or int(probe.tokens.shape[1]),
            "one_query": probe.one_query,
            "uniform": measures.uniform_by_place(probe.tokens, probe.real),
            "counts": probe.counts.tolist(),
            "probe": digest.hexdigest(),
            "batch": mean,
            "counted": training.sequences,
            "steps": training.steps,
            **training.facts(self.model),
            "rates": self._kind_of_rates,
            "matrices": self._matrices,
            "processes": processes(),
            "gaps": self._gaps,
        }

    def _resume(self, before: Recording, at: int | None) -> None:
        facts, data = before.facts, before.dataset
        few = {name: values[:2] for name, values in self._inputs.items()}
        seen = self.adapter.on(self.model, self._probe.tokens[:2], few)
        self._vocabulary = seen.logits.shape[1]
        here = self._facts
        size = (data.sizes["layer"], data.sizes["head"])
        if any(facts.get(name) != here[name] for name in ("probe", "kind", "vocabulary")) or (
            size != (seen.attention.shape[0], seen.attention.shape[2])
        ):
            rule = "hold a recording of the same model on the same tokens and inputs"
            raise checks.reject("path", rule, str(self._path))
        labels = {"n_classes": ("next_token", self._probe.classes), "n_tokens": ("token", self._probe.kept)}
        for name, (axis, ours) in labels.items():
            if not np.array_equal(data[axis].values, ours):
                rule = f"be as in the recording {self._path}, which goes on"
                raise checks.reject(name, rule, f"{len(ours)} of them, where it has {data.sizes[axis]}")
        sealed.check_version("path", data.attrs.get("version"))
        names = ("step", *AXES)
        self._rows = [{name: data[name].isel(step=i).values for name in names} for i in range(data.sizes["step"])]
        for row in self._rows:
            row["step"] = int(row["step"])
        stored = [str(name) for name in data.data_vars if "asked" in data[name].dims]
        self._stored = [data[stored].sel(asked=[step]).drop_vars(["share", "query"]) for step in before.asked]
        self._step = self._start = self._rows[-1]["step"]
        self._unseen_before = facts["unseen"]
        self._training.sequences, self._training.length = facts["counted"], facts["length"]
        self._training.steps = self._step if facts["steps"] is None else facts["steps"]
        self._training.gradients.state = facts["gradients"] if facts["steps"] else ""
        if at is not None and at < self._rows[0]["step"]:
            raise checks.reject("resume_at", f"be at least {self._rows[0]['step']}, the first step of the file", at)
        self._gaps = dict(facts["gaps"])
        self._stand(self._step if at is None else at, "path" if at is None else "resume_at")
        self._matrices = self._matrices or facts["matrices"]

    def _stand(self, step: int, name: str) -> None:
        """Go on from the step of the model; if there is a record of this step, it has to match the model.

        Raises
        ------
        ValueError
            If it does not; ``name`` is the argument with the step.
        """
        training = self._training
        last = self._step
        rows = [row for row in self._rows if row["step"] <= step]
        self._step = step
        if rows and rows[-1]["step"] == step:
            found = difference(self.model, self._row(), rows[-1])
            if found:
                self._step = last
                cure = "load the weights of that step, say in `resume_at` which step they are of, or take another path"
                raise checks.reject(name, f"be of the same model as at step {step}: {cure}", found)
        if step < last:
            training.steps, training.sequences = (
                round(value * step / last) for value in (training.steps, training.sequences)
            )
        self._rows, self._next = rows, step
        self._stored = [one for one in self._stored if int(one["asked"][0]) <= step]
        if rows and rows[-1]["step"] == step:
            self._next = self._following()
        else:
            self._record()

    def report(self, *, now: int | None = None, names: Any = None) -> WatchReport:
        """Which theorems apply to the training, what rivals predicted at a step, and the outcome.

        Parameters
        ----------
        now : int, optional
            The step with the known past. Default: the square root of the last one, the middle of the recording on a
            logarithmic axis.
        names : mapping, sequence, callable or tokenizer, optional
            Texts of tokens by their numbers; a tokenizer has ``decode`` or ``convert_ids_to_tokens``.
        """
        from yzflow_watch.report import WatchReport

        self._training.end()
        if self._rows[-1]["step"] != self._step:
            self._record()
        return WatchReport(self.recording, now=now, names=names)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the recording until now; `yzflow_watch.recording.Recording.load` reads it."""
        found = checks.path("path", path)
        self.recording.save(found)
        return found
