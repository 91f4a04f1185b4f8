"""Experiments on a model before it is recorded: is each answer its sequence's own, and are the tokens the model's?"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_watch.adapters import Adapter, first_line, is_module
from yzflow_watch.looks import Look, array_of

__all__ = ["checked_inputs", "tried"]

_TURNED = (
    "the model takes sequences as (T, n) and is asked so; if your training gives it (n, T), its attention is between "
    "sequences (batch_first=False)"
)


def tried(adapter: Adapter, model: Any, tokens: np.ndarray, inputs: Mapping[str, np.ndarray]) -> Adapter:
    """The adapter, or its ``turned`` one, after an experiment on two of the sequences (n, T).

    The model is asked about both sequences, about both in the other order, and about both with another context of the
    first. The answer on a sequence must follow it, and must not depend on the other sequence, up to rounding.

    Raises
    ------
    ValueError
        If an answer depends on another sequence, the model knows fewer tokens or positions, or it cannot be asked at
        all.
    """
    try:
        look = _own_answers(adapter, model, tokens, inputs)
    except ValueError as error:
        if adapter.turned is None:
            raise
        adapter = replace(adapter.turned, parts=adapter.parts, whole=adapter.whole)
        try:
            look = _own_answers(adapter, model, tokens, inputs)
        except ValueError:
            raise error from None
        warnings.warn(_TURNED, UserWarning, stacklevel=3)
    if look.unused:
        names = ", ".join(map(repr, look.unused))
        warnings.warn(f"the model does not call {names}: left out of the recording", UserWarning, stacklevel=3)
    return adapter


def _own_answers(adapter: Adapter, model: Any, tokens: np.ndarray, inputs: Mapping[str, np.ndarray]) -> Look:
    """A look at two sequences; ValueError if the answer on one of them depends on the other."""
    differs = (tokens[1:, :-1] != tokens[0, :-1]).any(axis=1)
    rows = np.array([0, 1 + int(differs.argmax())])
    pair, given = tokens[rows], {name: values[rows] for name, values in inputs.items()}
    swapped, changed = pair[::-1].copy(), pair.copy()
    changed[0, :-1] = pair[1, :-1]
    try:
        with _within(model, tokens, pair):
            look = adapter.on(model, pair, given)
        turned = adapter.on(model, swapped, {name: values[::-1].copy() for name, values in given.items()})
        beside = adapter.on(model, changed, given)
    except Exception as error:  # other people's code can raise anything
        if isinstance(error, ValueError) and str(error).startswith("`"):  # its words say it already
            raise
        raise checks.reject("model", f"take sequences {pair.shape}", f"an error, {first_line(error)}") from error
    moved = 0.0
    for name, axis in (("attention", 1), ("logits", 0)):
        alone, other, third = (np.moveaxis(getattr(one, name), axis, 0) for one in (look, turned, beside))
        moved = max(moved, _apart(alone, other[::-1]), _apart(alone[1], third[1]))
    if moved > _rounding(model):
        rule = "answer on each sequence by itself, or come with `attention` and `logits` that do"
        why = f"an answer that another sequence moves by {moved:.2g} of its size (attention between sequences?)"
        raise checks.reject("model", rule, why)
    return look


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference relative to the largest number; infinite if only one of two numbers is NaN."""
    known = ~np.isnan(first)
    if (known != ~np.isnan(second)).any():
        return np.inf
    size = max(np.abs(first[known]).max(initial=0.0), np.abs(second[known]).max(initial=0.0))
    return float(np.abs(first[known] - second[known]).max(initial=0.0) / size) if size else 0.0


def _rounding(model: Any) -> float:
    """Largest change of an answer by rounding: the cube root of the weights' precision, .005 in single precision."""
    if not is_module(model):
        return float(np.finfo(np.float32).eps ** (1 / 3))
    import torch

    kinds = [weight.dtype for weight in model.parameters() if weight.is_floating_point()] or [torch.float32]
    return float(max(torch.finfo(kind).eps for kind in kinds) ** (1 / 3))


@contextlib.contextmanager
def _within(model: Any, tokens: np.ndarray, pair: np.ndarray) -> Iterator[None]:
    """Raise ValueError before an embedding of PyTorch's is asked for a row that does not exist."""
    if not is_module(model):
        yield
        return

    def check(module: Any, args: tuple) -> None:
        asked = array_of(args[0])
        if any(asked.shape == fed.shape and np.array_equal(asked, fed) for fed in (pair, pair.T)):
            if tokens.max() >= module.num_embeddings:
                rule = f"be below {module.num_embeddings}, the size of the model's {names[id(module)]!r}"
                raise checks.reject("tokens", rule, int(tokens.max()))
        elif asked.size and asked.max() >= module.num_embeddings:
            rule = f"have at most {module.num_embeddings} columns and the next token, as {names[id(module)]!r} has rows"
            raise checks.reject("tokens", rule, f"{tokens.shape[1]} and the next token")

    names = {id(module): name for name, module in model.named_modules()}
    tables = [module for module in model.modules() if hasattr(module, "num_embeddings")]
    hooks = [module.register_forward_pre_hook(check) for module in tables]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def checked_inputs(model: Any, tokens: np.ndarray, inputs: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Further arguments of the model's forward for sequences (n, T), and the real positions before the query.

    A mask is an argument (n, T) whose name ends in "mask". It is 0 or False at padding; if its name contains "padding",
    as in PyTorch, it is the other way round.

    Raises
    ------
    ValueError
        If an argument lacks a row for each sequence, or a mask hides a query or all positions before it.
    """
    real = np.ones(tokens.shape, dtype=bool)
    if inputs is None:
        pad = getattr(getattr(model, "config", None), "pad_token_id", None)
        if isinstance(pad, int) and (tokens == pad).any():
            said = f"`tokens` hold {pad}, the padding of the model: if it is padding, give it the masks and positions"
            warnings.warn(f"{said} of your training, inputs={{'attention_mask': ..}}", UserWarning, stacklevel=3)
        return {}, real[:, :-1]
    if not is_module(model):
        raise checks.reject("inputs", "come with a module of PyTorch's, whose forward takes them", type(model).__name__)
    known = inspect.signature(model.forward).parameters
    found = {}
    for key, value in checks.mapping("inputs", inputs).items():
        name = f"inputs[{key!r}]"
        values = checks.array(name, value.detach().cpu().numpy() if hasattr(value, "detach") else value)
        if values.dtype.kind not in "iufb" or values.ndim == 0 or len(values) != len(tokens):
            raise checks.reject(name, f"be numbers with a row for each of the {len(tokens)} sequences", values.shape)
        if values.ndim > 1 and values.shape[1] == tokens.shape[1] + 1:
            raise checks.reject(name, f"have {tokens.shape[1]} columns, none for the next token", values.shape)
        if "input_ids" in known and key not in known:  # models of transformers take anything and say nothing
            raise checks.reject("inputs", f"name arguments of the model: {', '.join(known)}", repr(key))
        found[str(key)] = values
        if str(key).endswith("mask") and values.shape == tokens.shape:
            real &= (values == 0) if "padding" in str(key) or values.min() < 0 else (values != 0)
            if not (real[:, -1] & real[:, :-1].any(axis=1)).all():
                row = int(np.argmin(real[:, -1] & real[:, :-1].any(axis=1)))
                rule = "leave the last position, the query, and one before it: pad on the left"
                raise checks.reject(name, rule, f"another row {row}")
    return found, real[:, :-1]
