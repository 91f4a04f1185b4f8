"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import hostile
import numpy as np

from dynamics import Bags, SequenceClasses
from theory.scan_and_snap import (
    attention,
    changed,
    decoder,
    early,
    finite_sequences,
    statements,
    token_estimates,
    tokens,
)

EXEMPT = {
    hostile.RECORD: {"scan_and_snap.tokens.WeakCorrelation"},
    # Parts of the table of survival: a protocol, a record of closed forms, and maps of datasets.
    hostile.OURS: {
        *(f"scan_and_snap.changed.{name}" for name in ("Growth", "Law", "cooled", "on_clock", "without_decay")),
        # Of the statement on initial values: settings and closed forms with what its check knows.
        *(
            f"scan_and_snap.initial.{name}"
            for name in ("exponent_needed", "leads", "pair", "started", "threshold", "wrong_leads")
        ),
        # Asked of a statement's settings.
        *(f"scan_and_snap.foreseen.{name}" for name in ("lengths", "slowdown", "transition")),
    },
}

_OF_DECODER = {
    "h": {"t": 1.0},
    "h_steps": {"n_steps": 3},
    "gamma": {"t": 1.0},
    "gamma_integral": {"t": 1.0, "eta_z": 1.0},
}
_OPTIONS = {changed.Smoothed: {"label_smoothing": 0.1}, changed.Decayed: {"weight_decay": 0.1}}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
    bags = classes.population()
    estimates = token_estimates.TokenEstimates(Bags([0, 0], [0, 1], [0, 1, 2], [0, 1], [1.0, 1.0]))
    sizes = {"vocab_size": 10, "n_classes": 2, "eta_y": 1.0}
    growth = {"t": 1.0, **sizes, "eta_z": 1.0, "c0": 1.0}
    return {
        "scan_and_snap._register.assumptions.slower_by": (statements.assumptions.slower_by, {"vocab_size": 200}),
        "scan_and_snap.decoder.Decoder": (decoder.Decoder, sizes),
        **{f"scan_and_snap.decoder.Decoder.{name}": (getattr(decoder.Decoder(**sizes), name), arguments)
           for name, arguments in _OF_DECODER.items()},
        **{f"scan_and_snap.changed.{kind.__name__}": (kind, sizes | option) for kind, option in _OPTIONS.items()},
        **{f"scan_and_snap.changed.{kind.__name__}.{name}": (getattr(kind(**sizes, **option), name), arguments)
           for kind, option in _OPTIONS.items()
           for name, arguments in _OF_DECODER.items() if name != "h_steps"},
        "scan_and_snap.changed.momentum_clock": (changed.momentum_clock, dict(t=1.0, momentum=0.9, steps=False)),
        "scan_and_snap.attention.Rates": (attention.Rates, sizes | {"eta_z": 1.0}),
        **{f"scan_and_snap.attention.Rates.{name}": (getattr(attention.Rates(**sizes, eta_z=1.0), name), arguments)
           for name, arguments in {**_OF_DECODER, "growth_exponent": {"t": 1.0, "c0": 1.0},
                                   "printed_growth_exponent": {"t": 1.0, "c0": 1.0}}.items()},
        "scan_and_snap.attention.distinct_growth": (attention.distinct_growth, dict(exponent=1.0, distinct=[1, 0.5])),
        "scan_and_snap.attention.full_flow_slowdown": (attention.full_flow_slowdown, dict(vocab_size=10, n_classes=2,
                                                                                          overlap=0.1)),
        "scan_and_snap.attention.growth_bounds": (attention.growth_bounds, dict(exponent=1.0, f0=0.5)),
        "scan_and_snap.attention.growth_exponent": (attention.growth_exponent, growth),
        "scan_and_snap.attention.printed_growth_exponent": (attention.printed_growth_exponent, growth),
        "scan_and_snap.attention.relative_gain": (attention.relative_gain, dict(share=0.5, other=0.25)),
        "scan_and_snap.attention.speed_constant": (attention.speed_constant, dict(
            n_classes=2, overlap=0.1, vocab_size=10)),
        "scan_and_snap.decoder.gamma": (decoder.gamma, dict(t=1.0, **sizes)),
        "scan_and_snap.decoder.gamma_integral": (decoder.gamma_integral, dict(t=1.0, **sizes, eta_z=1.0)),
        "scan_and_snap.decoder.h": (decoder.h, dict(t=1.0, vocab_size=10, eta_y=1.0)),
        "scan_and_snap.decoder.h_steps": (decoder.h_steps, dict(n_steps=3, vocab_size=10, eta_y=1.0)),
        "scan_and_snap.decoder.peak_gamma": (decoder.peak_gamma, dict(vocab_size=10)),
        **{f"scan_and_snap.decoder.{f.__name__}": (f, sizes)
           for f in (decoder.scanning_time, decoder.snapping_time, decoder.transition_time)},
        "scan_and_snap.early.initial_drift": (early.initial_drift, dict(bags=bags)),
        "scan_and_snap.finite_sequences.finite_length_first_moves": (
            finite_sequences.finite_length_first_moves, dict(probabilities=[0.25, 0.75])),
        "scan_and_snap.finite_sequences.finite_length_drift": (
            finite_sequences.finite_length_drift, dict(probabilities=[0.25, 0.75])),
        "scan_and_snap.token_estimates.TokenEstimates": (token_estimates.TokenEstimates, dict(bags=bags)),
        "scan_and_snap.token_estimates.TokenEstimates.interval": (estimates.interval, dict(token=0, next_token=0,
                                                                                           level=0.05)),
        "scan_and_snap.token_estimates.TokenEstimates.kind": (estimates.kind, dict(token=0, next_token=0, share=0.5,
                                                                                   lift=None, level=0.05)),
        "scan_and_snap.token_estimates.TokenEstimates.tokens": (estimates.tokens, dict(share=0.5, level=0.05)),
        "scan_and_snap.tokens.alike": (tokens.alike, dict(values=np.eye(2))),
        "scan_and_snap.tokens.common_probabilities": (tokens.common_probabilities, dict(classes=classes)),
        "scan_and_snap.tokens.distinct_probabilities": (tokens.distinct_probabilities, dict(classes=classes)),
        "scan_and_snap.tokens.weak_correlation": (tokens.weak_correlation, dict(overlap=np.eye(2), vocab_size=10)),
    }  # fmt: skip
