"""Checks of `long_enough`, which decides lengths by ball arithmetic, against an enumeration of all bags."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics import SequenceClasses
from dynamics.support import distributions
from theory.scan_and_snap.bounds import inner_coefficients
from theory.statements import Runs

# Tasks with one query, as (shares, M, attention logits): a rare token, frequent tokens, two unlike classes, and moved
# attention.
SMALL = (
    (((0.3, 0.65, 0.05, 0), (0.4, 0, 0, 0.6)), 5, (0, 0, 0, 0)),
    (((0.5, 0.5, 0), (0.3, 0, 0.7)), 12, (0, 0, 0)),
    (((0.2, 0.6, 0.2, 0), (0.3, 0, 0, 0.7)), 40, (0, 0, 0, 0)),
    (((0.3, 0.65, 0.05, 0), (0.4, 0, 0, 0.6)), 5, (-0.1, 0.2, -0.15, 0.1)),
)


def enumerated_rates(classes: SequenceClasses, length: int, logits: ArrayLike, *, trained: bool = False) -> np.ndarray:
    """v_l of `long_enough` for one query, by a sum over all bags in floats; modified decoder unless ``trained``."""
    gains = np.exp(logits)
    pulls = classes.probabilities.toarray() * gains
    features = pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
    bags = classes.all_sequences(length=length)
    counts = np.zeros((len(bags.target), pulls.shape[1]))
    counts[bags.owner, bags.token] = bags.count
    counts *= gains
    f, k = counts / np.linalg.norm(counts, axis=1, keepdims=True), len(pulls)
    if trained:
        of_class = (bags.target[:, None] == np.arange(k)) * bags.weight[:, None]
        signal = (np.eye(k) - 1 / classes.vocab_size) @ (k * of_class.T @ f)
    else:
        inner = inner_coefficients(k, classes.vocab_size)
        signal = np.linalg.solve(features @ features.T, inner).T @ features
    g = signal[bags.target]
    rates: np.ndarray = bags.weight @ (f * g - f**2 * (f * g).sum(axis=1, keepdims=True))
    return rates


def wrong_lengths(runs: Runs, level: str) -> float:
    """Share of lengths around the result of `long_enough`, for four small tasks, at which it is wrong on the signs."""
    return _wrong_lengths(long_enough(), False, SMALL)


def wrong_first_lengths(runs: Runs, level: str) -> float:
    """`wrong_lengths` for the first moves, with a decoder trained by the same sequences, for the first two tasks."""
    return _wrong_lengths(long_enough(), True, SMALL[:2])


def long_enough() -> Callable[..., Any]:
    """The function `yzflow_enclose.scan_and_snap.long_enough.long_enough`, in ball arithmetic."""
    return distributions.bring(distributions.LONG_ENOUGH, "`long_enough`").long_enough


@functools.cache
def _wrong_lengths(enough: Callable[..., Any], trained: bool, tasks: tuple) -> float:
    wrong = []
    for shares, vocab_size, logits in tasks:
        classes = SequenceClasses(shares, [0, 0], vocab_size=vocab_size)
        found = enough(classes, decoder="trained" if trained else "modified", logits=[logits])
        expected = np.ones(classes.probabilities.shape[1])
        expected[classes.common_tokens] = -1
        for length in range(max((found.length or 0) - 2, 3), (found.length or 0) + 2):
            holds = (expected * enumerated_rates(classes, length, logits, trained=trained) > 0).all()
            wrong.append(found.length is None or holds != (length >= found.length))
    return float(np.mean(wrong))
