"""Answers of models: attention and logits from their code, brought to one shape, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.support import checks

__all__ = ["Look", "array_of", "checked_look", "last_of", "layered", "told_apart"]

_ROUNDED = 2.0**-6  # sums of shares in half precision miss one by this, also in bfloat16 with its eight bits
_EAGER = "keep its attention (one of transformers: load with attn_implementation='eager')"


@dataclass(frozen=True)
class Look:
    """A model's answer on sequences (n, T), for the query at their end.

    Attributes
    ----------
    attention : (layers, n, heads, T) array
        On all positions, its own among them.
    logits : (n, next tokens) array
    unused : tuple of str
        Names of layers of attention that the model has but did not call.
    """

    attention: np.ndarray
    logits: np.ndarray
    unused: tuple[str, ...] = ()


def array_of(value: Any) -> Any:
    """A tensor of any device and precision as an array; anything else as it is."""
    return value.detach().cpu().double().numpy() if hasattr(value, "detach") else value


def layered(layers: Mapping[str, Any]) -> np.ndarray:
    """Attention of layers, stacked on one axis; ValueError, with the layers' names, if shapes differ.

    Attention of a layer is (n, heads, .., T).
    """
    if not layers or any(entry is None for entry in layers.values()):
        raise checks.reject("model", _EAGER, "None")
    arrays = {name: np.asarray(array_of(entry), dtype=np.float64) for name, entry in layers.items()}
    if len({entry.shape for entry in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {entry.shape}" for name, entry in arrays.items())
        rule = "have layers with as many heads each, or come with `attention` and `logits`"
        raise checks.reject("model", rule, f"attention of {shapes}")
    return np.stack(list(arrays.values()))


def entry_of(name: str, answer: Any, key: str) -> Any:
    """The value under a key of a dict or an output of transformers; other answers as they are."""
    if hasattr(answer, "shape"):
        return answer
    if isinstance(answer, Mapping):
        if key not in answer:
            raise checks.reject(name, f"be an array, or have {key!r}", f"a dict of {', '.join(map(str, answer))}")
        return answer[key]
    return getattr(answer, key, answer)


def last_of(answer: Any, tokens: np.ndarray, *, turned: bool = False) -> Any:
    """Logits at the last position of sequences (n, T); other outputs of a model are not converted.

    The answer is a tensor (n, [T,] next tokens), has one under "logits", or is a tuple with one of that shape. A
    ``turned`` model gives (T, n, next tokens).
    """
    n, length = tokens.shape
    answer = entry_of("logits", answer, "logits")
    if isinstance(answer, (tuple, list)):
        tensors = [entry for entry in answer if hasattr(entry, "shape")]
        fits = [entry for entry in tensors if _leads(tuple(entry.shape), n, length, turned)]
        if len(fits) != 1:
            rule = "be given as a function, `logits=`, where the model's answer does not say what they are"
            shapes = ", ".join(str(tuple(entry.shape)) for entry in tensors)
            raise checks.reject("logits", rule, f"a {type(answer).__name__} with {shapes or 'no arrays'}")
        answer = fits[0]
    shape = tuple(getattr(answer, "shape", ()))
    if turned and len(shape) == 3 and shape[:2] == (length, n):
        return array_of(answer[-1])
    return array_of(answer[:, -1] if len(shape) == 3 and shape[:2] == (n, length) else answer)


def _leads(shape: tuple[int, ...], n: int, length: int, turned: bool) -> bool:
    """True for a shape of logits."""
    if len(shape) == 2:
        return shape[0] == n
    return len(shape) == 3 and shape[:2] in (((length, n),) if turned else ((n, length), (n, 1)))


def shares_of(answer: Any) -> np.ndarray:
    """Attention that a function gives: an array, a tuple of layers, or an output of transformers with one."""
    answer = entry_of("attention", answer, "attentions")
    if answer is None:
        raise checks.reject("attention", _EAGER, "None")
    if isinstance(answer, (tuple, list)) and any(entry is None or hasattr(entry, "detach") for entry in answer):
        return layered({f"layer {number}": entry for number, entry in enumerate(answer)})
    return checks.array("attention", array_of(answer), dtype=np.float64)


def told_apart(shape: tuple[int, ...], tokens: np.ndarray, ask: Callable[[np.ndarray], np.ndarray]) -> int | None:
    """The axis that attention lacks, 1 (heads) or 2 (queries), found by an experiment if sizes are ambiguous; or None.

    An array (n, T, T) can be one head, or T heads of the last query; an array (n, heads, T, T) with n or T heads can
    have other axes first. The experiment asks about shorter sequences, or about one sequence more: only axes of
    positions, or of sequences, change.

    Parameters
    ----------
    shape : tuple of int
        Shape of the answer on ``tokens``.
    tokens : (n, T) int array
    ask : callable
        (sequences) -> answer.
    """
    n, length = tokens.shape
    if shape == (n, length, length):
        try:
            shorter = ask(tokens[:, 1:]).shape
        except ValueError:  # a model of one length alone
            shorter = ()
        if shorter in ((n, length - 1, length - 1), (n, length, length - 1)):
            return 1 if shorter[1] < length else 2
        rule = f"say which axis is that of heads: give ({n}, heads, {length}, {length}) or ({n}, heads, 1, {length})"
        raise checks.reject("attention", rule, f"{shape}, one head or {length} of the last query")
    if len(shape) == 4 and shape[:2] == (n, n):
        grown = ask(np.concatenate([tokens, tokens[:1]])).shape
        if grown[:2] != (n + 1, n):
            rule = "have axes ([layers,] sequences, heads, queries, keys)"
            raise checks.reject("attention", rule, f"{shape}, which is {grown} for one sequence more")
    return None


def checked_look(attention: Any, logits: Any, tokens: np.ndarray, unused: Sequence[str] = ()) -> Look:
    """A look at the last query, in double precision; ValueError for other shapes, or rows that are no shares."""
    n, length = tokens.shape
    shares = checks.array("attention", attention, dtype=np.float64)
    if shares.ndim == 3 and shares.shape[::2] == (n, length):  # of the last query alone
        shares = shares[:, :, None]
    if shares.ndim == 4:
        shares = shares[None]
    if shares.ndim != 5 or (shares.shape[1], shares.shape[4]) != (n, length) or shares.shape[3] not in (1, length):
        wanted = f"([layers,] {n}, heads, {length}, {length}) or ({n}, heads, {length})"
        raise checks.reject("attention", f"give an array {wanted} for sequences {tokens.shape}", np.shape(attention))
    scores = checks.array("logits", logits, dtype=np.float64)
    if scores.ndim == 3 and scores.shape[1] in (1, length):
        scores = scores[:, -1]
    if scores.ndim != 2 or len(scores) != n:
        wanted = f"({n}, {length}, next tokens) or ({n}, next tokens)"
        raise checks.reject("logits", f"give an array {wanted} for sequences {tokens.shape}", scores.shape)
    _check_rows(shares)
    return Look(shares[:, :, :, -1], scores, tuple(unused))


def _check_rows(shares: np.ndarray) -> None:
    """Check that each row of (layers, n, heads, queries, T) sums to one, is 0, or has NaN; ValueError names the row.

    A mask can leave a row empty, and a training may end in NaN: such rows are recorded as unknown.
    """
    least, total = shares.min(axis=-1), shares.sum(axis=-1)
    off = (least < 0) | ((np.abs(total - 1) > _ROUNDED) & (total != 0))
    queries, length = shares.shape[-2:]
    if off.any():
        at = tuple(np.argwhere(off)[0])
        value = least[at] if least[at] < 0 else total[at]
        position = at[3] if queries == length else length - 1
        where = f"layer {at[0]}, sequence {at[1]} of {shares.shape[1]}, head {at[2]}, position {position}, from 0 on"
        columns = queries == length and (np.abs(shares[at[:3]].sum(axis=0) - 1) <= _ROUNDED).all()
        turned = "; its columns add up: queries come before keys" if columns else ""
        rule = "give shares, from zero on, that add up to one"
        raise checks.reject("attention", rule, f"{value:.3g} in {where}{turned}")
    if (
        queries == length
        and not shares[..., -1, :-1].any()
        and np.triu(shares, 1).any()
        and not np.tril(shares, -1).any()
    ):
        raise checks.reject("attention", "have queries before keys", "shares of later positions alone")
