"""Checkpoints of a finished training, recorded like a running one."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dynamics.support import checks
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.recorder import Recorder
from yzflow_watch.recording import Recording
from yzflow_watch.watching import watch

__all__ = ["watch_checkpoints"]

_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def watch_checkpoints(
    checkpoints: Mapping[int, Any],
    tokens: Any,
    *,
    model: Any = None,
    path: str | os.PathLike | None = None,
    **options: Any,
) -> Recorder:
    """Record the checkpoints of a finished training, to ask which theorems apply to it.

    Parameters
    ----------
    checkpoints : mapping of int to object
        Step -> a model, a function without arguments that makes it, or a path. A path is a folder into which
        transformers saved a causal model, or, with ``model``, a file ``*.safetensors`` of its weights. One model is
        loaded at a time, and files that could hold code are not read.
    tokens : (n, T + 1) array of ints
        As for `yzflow.watch`.
    model : torch.nn.Module, optional
        The model into which weights are loaded, if paths are files.
    path : path-like, optional
        A file that is written at each checkpoint. If it exists, the recording goes on with the checkpoints after its
        last step.
    **options
        The options of `yzflow.watch` except ``every``. Learning rates and batch sizes are not in a checkpoint: they are
        unknown unless given here.

    Returns
    -------
    Recorder
        Its first record is the first checkpoint, at its step. See `Recorder.report`.

    Raises
    ------
    ValueError
        If an argument is invalid, or a checkpoint is missing, broken or of another model; the step is named.
    """
    given = _sorted(checkpoints, model)
    if "every" in options:
        raise checks.reject("every", "not be given, as every checkpoint is recorded", checks.brief(options["every"]))
    before = None if path is None else checks.path("path", path)
    start = min(given)
    if before is not None and before.exists():
        recorded = [int(step) for step in Recording.load(before).steps]
        start = recorded[-1]
        strange = [step for step in given if step <= start and step not in recorded]
        if strange or start not in given:
            rule = f"have step {start}, with which {before} ends, and no older one that it lacks"
            raise checks.reject("checkpoints", rule, f"steps {', '.join(map(str, given))}")
    first = _model(start, given[start], model)
    recorder = watch(first, tokens, path=path, resume_at=start, **options)
    kind = _kind(recorder, first, options)
    del first
    for step in [step for step in given if step > start]:
        recorder.model = None  # so that one model is in memory, not two
        loaded = _model(step, given[step], model)
        other = _kind(recorder, loaded, options)
        if other != kind:
            raise _wrong(step, f"of the model of step {start}, {kind}", other)
        recorder.step(loaded, at=step)
        del loaded
    return recorder


def _sorted(checkpoints: Any, model: Any) -> dict[int, Any]:
    """Checkpoints by their steps; ValueError if a step is invalid, or a path does not exist."""
    if not isinstance(checkpoints, Mapping) or not checkpoints:
        raise checks.reject("checkpoints", "map steps to models, functions or paths", checks.brief(checkpoints))
    steps = {checks.integer("checkpoints", step, minimum=0): value for step, value in checkpoints.items()}
    given = {step: steps[step] for step in sorted(steps)}
    for step, value in given.items():
        if not isinstance(value, (str, os.PathLike)):
            continue
        place = Path(value)
        if model is not None:
            if place.suffix != ".safetensors" or not place.is_file():
                raise _wrong(step, f"a file *.safetensors of weights, {_CURE}", str(place))
        elif not (place / "config.json").is_file() or not any(place.glob("*.safetensors")):
            raise _wrong(step, f"a folder with config.json and *.safetensors, {_CURE}", str(place))
    return given


def _kind(recorder: Recorder, model: Any, options: dict[str, Any]) -> str:
    """The kind of a model and its sizes, in words."""
    adapter = recorder.adapter if options.get("attention") else adapter_of(model)
    seen = adapter.on(model, recorder._probe.tokens[:2])
    layers, _, heads, _ = seen.attention.shape
    return f"{adapter.kind}, layers by heads {layers} x {heads}, next tokens {seen.logits.shape[1]}"


_CURE = "or a function that makes the model"


def _wrong(step: int, rule: str, value: object) -> ValueError:
    return checks.reject(f"checkpoints[{step}]", f"be {rule}", value)


def _model(step: int, value: Any, model: Any) -> Any:
    """The model of a checkpoint; ValueError, with its step, if it cannot be loaded."""
    load: Callable[[], Any]
    if isinstance(value, (str, os.PathLike)):
        name, load = str(value), functools.partial(_weights if model is not None else _folder, Path(value), model)
    elif isinstance(value, _FUNCTIONS):
        name, load = checks.brief(value), value
    else:
        return value
    try:
        return load()
    except Exception as error:  # other people's code can raise anything
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise _wrong(step, "a model that can be loaded", f"{name}, which ends in {why}") from error


def _weights(file: Path, model: Any) -> Any:
    from safetensors.torch import load_file

    model.load_state_dict(load_file(file))
    return model


def _folder(folder: Path, model: None) -> Any:
    from transformers import AutoModelForCausalLM

    closed = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    options = {"attn_implementation": "eager", "output_loading_info": True, **closed}
    found, told = AutoModelForCausalLM.from_pretrained(folder, **options)
    if told["missing_keys"]:  # else transformers would draw them anew
        raise ValueError(f"no weights of {', '.join(sorted(told['missing_keys'])[:3])}")
    return found.float()
