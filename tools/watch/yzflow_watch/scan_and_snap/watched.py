"""The place of a recorded training among the assumptions of Scan and Snap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import chdtri

from dynamics import SequenceClasses
from theory.scan_and_snap.statements import assumptions
from yzflow.audits.places import Place, but, least, plain_steps
from yzflow.papers.scan_and_snap.settings import Setting
from yzflow_watch.gradients import CHANGED, LEFT, TOLD
from yzflow_watch.recording import Recording

# The limits of "nothing" and "all" for measured assumptions.
MOVED = 0.1  # share of attention that another order of the context moves
EXPLAINED = 0.9  # share of the variance of ln attention that (query, token) explains
ONE_QUERY = 0.99  # share of the sequences of a next token that have its most frequent query
START = 0.1  # logits at the start
OTHER_PARTS = "no part besides those that are known (`parts=` names all, `parts=()` says that there is none)"
CHANCE = 1e-3  # probability of counts as unequal as these, if next tokens are equally likely


def place(recording: Recording) -> Place:
    """Margins of the paper's assumptions at the last step of a recording.

    The classes are the recording's next tokens, with the frequencies of the recorded tokens. Measured values replace
    arguments of a simulation; for example, how far another order of the context moves attention replaces the argument
    on positions.
    """
    facts, last, first = recording.facts, recording.dataset.isel(step=-1), recording.dataset.isel(step=0)
    share = recording.dataset["share"].values
    if len(share) < 2 or (share.sum(axis=1) == 0).any():
        return Place(None, why="there are fewer than two next tokens with tokens of their own that are kept apart")
    queries = np.unique(recording.dataset["query"].values, return_inverse=True)[1]
    shares = share / share.sum(axis=1, keepdims=True)
    classes = SequenceClasses(shares, queries, vocab_size=max(facts["vocabulary"], len(share)))
    rates, unknown = _rates(last)
    batch = facts["batch"] if math.isfinite(facts["batch"]) else 0
    setting = Setting(
        "recorded",
        classes,
        *rates,
        float(recording.steps[-1]),
        batch_size=max(1, round(batch)),
        length=facts["length"],
    )
    unknown += () if batch else ("batch_size",)
    measured = {**_order(last), **_start(first, share > 0), **_equal(facts["counts"])}
    return Place(setting, {**_layer(recording), **_training(facts)}, measured, unknown)


def _rates(last: xr.Dataset) -> tuple[tuple[float, float], tuple[str, ...]]:
    """eta_Y and eta_Z, mean over heads, and the names of those that are unknown for some head."""
    found = tuple(float(last[name].values.mean()) for name in ("eta_y", "eta_z"))
    known = tuple(rate if math.isfinite(rate) and rate > 0 else 1.0 for rate in found)
    return (known[0], known[1]), tuple(
        name for name, rate, kept in zip(("eta_y", "eta_z"), found, known, strict=True) if rate != kept
    )


def _layer(recording: Recording) -> dict[str, float]:
    """The layer of the paper: one attention by tokens, and a linear decoder of the attended vector."""
    data, facts = recording.dataset, recording.facts
    last, layers, heads = data.isel(step=-1), data.sizes["layer"], data.sizes["head"]
    found = {
        but("one layer", f"there are {layers} layers" if layers > 1 else ""): 1 / layers,
        but("one head", f"there are {heads} heads" if heads > 1 else ""): 1 / heads,
        "attention is a softmax of logits by query and token": least(last["by_token"].values / EXPLAINED),
        "each next token follows one query": facts["one_query"] / ONE_QUERY,
    }
    found |= {but("no part besides", f"there is {part}"): 0.0 for part in facts["parts"]}
    return found if facts["parts_known"] else found | {OTHER_PARTS: math.nan}


def _order(last: xr.Dataset) -> dict[str, float]:
    """No positions, measured by the change of attention with another order of the context."""
    return {assumptions.NO_POSITIONS.text: _below(MOVED, last["moved_by_order"].values)}


def _below(limit: float, sizes: np.ndarray | float) -> float:
    """Margin of sizes that must be below a limit; NaN as in `least`."""
    with np.errstate(divide="ignore"):
        return least(limit / np.atleast_1d(np.abs(sizes)))


def _equal(counts: list[int]) -> dict[str, float]:
    """Next tokens equally likely, tested by the numbers of their sequences: Pearson's chi-squared.

    The margin is the value that equally likely next tokens exceed with the probability `CHANCE`, divided by the value
    found.
    """
    mean = sum(counts) / len(counts)
    found = sum((count - mean) ** 2 for count in counts) / mean
    limit = float(chdtri(len(counts) - 1, CHANCE))
    return {assumptions.UNIFORM.text: limit / found if found > 0 else math.inf}


def _training(facts: dict[str, Any]) -> dict[str, float]:
    """Plain gradient steps: momentum, weight decay and changes of the gradient before the step break it."""
    of, gradients, text = facts["optimizer"], facts["gradients"], "plain gradient steps"
    plain = plain_steps(of)
    if plain is False:
        return {but(text, f"it is {_named(of)}"): 0.0}
    if gradients == CHANGED:
        return {but(text, f"there are gradients that were {CHANGED}"): 0.0}
    return {text: 1.0 if plain and gradients in (LEFT, TOLD) else math.nan}


def _named(of: dict[str, Any]) -> str:
    options = [f"{name.replace('_', ' ')} {of[name]:g}" for name in ("momentum", "weight_decay") if of.get(name)]
    return " with ".join([of["name"], *([" and ".join(options)] if options else [])])


def _start(first: xr.Dataset, present: np.ndarray) -> dict[str, float]:
    """Zero start, measured by the logits of next tokens, and by those of the tokens that are ``present``."""
    found = {
        assumptions.ZERO_DECODER.text: first["spread"].values,
        assumptions.ZERO_ATTENTION.text: first["gain"].values[..., present],
    }
    started = int(first["step"]) == 0
    return {text: _below(START, sizes) if started else math.nan for text, sizes in found.items()}
