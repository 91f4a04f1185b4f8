"""Words and numbers that statements have for one setting before anything is run (`Statement.predicts`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.support import checks
from theory.scan_and_snap import tokens
from theory.scan_and_snap.attention import full_flow_slowdown
from theory.scan_and_snap.decoder import Decoder
from theory.scan_and_snap.long_enough import LongEnough, long_enough

_MOST_PAIRS = 3000  # of tokens of a class: about five seconds


def transition(setting: Any) -> str:
    """The time t* at which gamma is largest."""
    classes = setting.classes
    peak = float(Decoder(classes.vocab_size, classes.n_classes, setting.eta_y).transition_time)
    return f"gamma, the theory's speed for frozen features, is largest at t* = {peak:,.4g} steps"


def slowdown(setting: Any) -> str:
    """The factor s by which the full flow begins slower."""
    classes = setting.classes
    overlaps = classes.overlap()[np.triu_indices(classes.n_classes, 1)]
    if tokens.alike(overlaps[:, None]) < 1:
        raise checks.reject("data", "have equal overlaps", checks.brief(overlaps.tolist()))
    s = full_flow_slowdown(vocab_size=classes.vocab_size, n_classes=classes.n_classes, overlap=float(overlaps[0]))
    return f"attention begins {float(s):.3g} times as fast in the full flow as in the modified one"


def lengths(setting: Any) -> str:
    """From which T on the signs of Theorem 2 hold in expectation."""
    classes = setting.classes
    pairs = int((np.diff(classes.probabilities.indptr) ** 2).sum())
    if pairs > _MOST_PAIRS:
        raise checks.reject("data", f"have at most {_MOST_PAIRS:,} pairs of tokens within classes", f"{pairs:,}")
    long, own = (_length(long_enough(classes, decoder=name)) for name in ("modified", "trained"))
    return (
        f"Theorem 2's signs hold at the start {long} where long sequences made Y, and {own} in the first moves of SGD"
    )


def _length(found: LongEnough) -> str:
    if found.length is None:
        return f"at no T (token {found.token} of query {found.query})"
    return f"from T = {found.length:,} on{'' if found.exact else ', if not before,'}"
