"""The full flow beside ODE solvers of other libraries, with the obvious right-hand side and the same tolerances.

All are timed by the processor's clock, which counts less of what else the machine does.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator

import benchmarks
from benchmarks import Row, optional_peer
from dynamics import SequenceClasses, Solver, gradient_flow

SIZES = ((10, 1000), (50, 2000))
SETTING = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 700.0, "rtol": 1e-8, "atol": 1e-10}
# Every solver keeps its own error near rtol a step, and the steps of one run add up.
TOLERANCE = 1e-5
compare = functools.partial(benchmarks.compare, clock=time.process_time)


def run() -> Iterator[Row]:
    peers = [optional_peer(name) for name in ("numpy_flow", "diffrax_flow", "torchdiffeq_flow")]
    for n_classes, vocab_size in SIZES:
        classes = SequenceClasses.single_common_token(n_classes, vocab_size)
        calls = [("none", peer.NAME, _call(peer, classes)) for peer in peers if peer is not None]
        for peer in peers:
            if hasattr(peer, "REDUCED_NAME"):
                told = peer.flow(classes, **SETTING, reduced=True)
                calls += [(reduce, peer.REDUCED_NAME, told) for reduce in ("none", "auto")]
        for reduce, name, call in calls:
            symmetry = "; our use of symmetry" if reduce == "auto" else ""
            yield compare(
                f"full flow, K = {n_classes}, M = {vocab_size:,}, to t = {SETTING['t_end']:g}{symmetry}",
                functools.partial(_ours, classes, reduce),
                name,
                call,
                tolerance=TOLERANCE,
                result="Z at the end",
            )
    yield from _recorded()
    yield _late()


def _recorded() -> Iterator[Row]:
    """Two hundred recorded states on both sides, with and without symmetry; and with all that is observed of ours."""
    peer = optional_peer("diffrax_flow")
    if peer is None:
        return
    for n_classes, vocab_size in SIZES:
        classes = SequenceClasses.single_common_token(n_classes, vocab_size)
        task = f"full flow, K = {n_classes}, M = {vocab_size:,}, to t = {SETTING['t_end']:g}, 200 recorded times"
        theirs = peer.flow(classes, **SETTING, reduced=True, times=200)
        calls = [
            ("", functools.partial(_ours, classes, "none", None)),
            ("; our use of symmetry", functools.partial(_ours, classes, "auto", None)),
            ("; our use of symmetry, all read", functools.partial(_read, classes)),
        ]
        for how, ours in calls:
            yield compare(f"{task}{how}", ours, peer.REDUCED_NAME, theirs, tolerance=TOLERANCE, result="Z at the end")


def _late() -> Row:
    """A stiff flow: the default, which switches, beside DOP853 alone."""
    classes = SequenceClasses.single_common_token(3, 30)
    setting = {"eta_y": 1.0, "eta_z": 100.0, "t_end": 1e4, "times": [1e4]}

    def flow(method):
        return gradient_flow(classes, **setting, solver=Solver(method=method)).final.Z[0]

    task = "full flow, K = 3, M = 30, eta_Z = 100, to t = 10,000"
    sides = functools.partial(flow, "auto"), "ours, DOP853 alone", functools.partial(flow, "DOP853")
    return compare(task, *sides, tolerance=TOLERANCE, result="Z at the end")


def _ours(classes, reduce, times=(SETTING["t_end"],)):
    return gradient_flow(classes, times=times, solver=Solver(reduce=reduce), **SETTING).final.Z[0]


def _read(classes):
    return gradient_flow(classes, **SETTING).dataset["z"].values[-1, 0]


def _call(peer, classes):
    """The peer as a function without arguments; that of diffrax is compiled once for all calls."""
    if peer.__name__.endswith("diffrax_flow"):
        return peer.flow(classes, **SETTING)
    return lambda: peer.flow(classes, **SETTING)
