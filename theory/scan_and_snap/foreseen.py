"""Predictions of statements for one setting, in words and numbers, before any run (`Statement.predicts`).

They hold for plain SGD steps on the plain loss, from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.support import checks, distributions
from theory.scan_and_snap import tokens
from theory.scan_and_snap.attention import full_flow_slowdown
from theory.scan_and_snap.decoder import Decoder

_MOST_PAIRS = 3000  # pairs of tokens within classes: more would take over five seconds
_EQUAL = 1e-12  # relative difference of class shares that counts as rounding


def _of_plain_steps(foresee: Callable[[Any], str]) -> Callable[[Any], str]:
    """Prefix the prediction with "for plain steps" if the setting has another optimizer or objective."""

    def foreseen(setting: Any) -> str:
        said = foresee(setting)
        return said if setting.optimizer is None and setting.objective is None else f"for plain steps: {said}"

    foreseen.__doc__ = foresee.__doc__
    return foreseen


@_of_plain_steps
def transition(setting: Any) -> str:
    """The time t* of gamma's peak; for a next token of share p_n it is t*/(K p_n), by the clock of its class."""
    classes = setting.classes
    peak = float(Decoder(classes.vocab_size, classes.n_classes, setting.eta_y).transition_time)
    gamma = "gamma, the theory's speed for frozen features, is largest at"
    shares = np.asarray(classes.class_weights)
    if np.ptp(shares) <= _EQUAL * shares.max():
        return f"{gamma} t* = {peak:,.4g} steps"
    times = peak / (classes.n_classes * shares)
    names = classes.class_names or range(classes.n_classes)
    ends = [f"{times[n]:,.4g} steps for next token {names[n]}" for n in (int(shares.argmax()), int(shares.argmin()))]
    return f"{gamma} t*/(K p_n), p_n the share of next token n: {' and '.join(ends)}"


@_of_plain_steps
def slowdown(setting: Any) -> str:
    """The full flow's initial speed over the modified flow's, for equal class shares and equal positive overlaps."""
    classes = setting.classes
    shares = np.asarray(classes.class_weights)
    if np.ptp(shares) > _EQUAL * shares.max():
        raise checks.reject("data", "have classes of equal shares", checks.brief(shares.tolist()))
    overlaps = classes.overlap()[np.triu_indices(classes.n_classes, 1)]
    if not overlaps.size or overlaps.max() <= 0:
        raise checks.reject("data", "have classes that overlap: without common tokens attention stands still", "none")
    if tokens.alike(overlaps[:, None]) < 1:
        raise checks.reject("data", "have equal overlaps", checks.brief(overlaps.tolist()))
    s = full_flow_slowdown(vocab_size=classes.vocab_size, n_classes=classes.n_classes, overlap=float(overlaps[0]))
    return f"attention begins {float(s):.3g} times as fast in the full flow as in the modified one"


@_of_plain_steps
def lengths(setting: Any) -> str:
    """The least T at which Theorem 2's signs hold in expectation: for the gradients of Lemmas 3 and 1, and in SGD."""
    classes = setting.classes
    pairs = int((np.diff(classes.probabilities.indptr) ** 2).sum())
    if pairs > _MOST_PAIRS:
        raise checks.reject("data", f"have at most {_MOST_PAIRS:,} pairs of tokens within classes", f"{pairs:,}")
    enough = distributions.bring(distributions.LONG_ENOUGH, "`long_enough`").long_enough
    modified, full, trained = (_length(enough(classes, decoder=name)) for name in ("modified", "full", "trained"))
    return (
        f"Theorem 2's signs hold at the start {modified} for Lemma 3's modified gradient, {full} for Lemma 1's where "
        f"long sequences made Y, and {trained} where the same sequences did, as in the first moves of SGD"
    )


def _length(found: Any) -> str:
    if found.length is None:
        token = f"token {found.token} of query {found.query}"
        return f"at no large T ({token})" if found.decided else f"at a T that is open ({token})"
    return f"from T = {found.length:,} on{'' if found.exact else ', if not before,'}"
