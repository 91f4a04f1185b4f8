"""First uses on a machine, and what they compile: processor time of new processes with an empty cache, by kernel.

The seconds of a kernel are those of numba's own clock, with what it calls, times the share of the time that the process
ran: beside others on a busy machine it waits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import Study
from yzflow.figures import style

# Programs of one line, by what they are of.
USES = {
    "a flow, last layer": "gradient_flow(classes, **rates, t_end=0.1).final",
    "a flow, all tables": "gradient_flow(classes, **rates, t_end=0.1).dataset",
    "no symmetry": "gradient_flow(classes, **rates, t_end=0.1, solver=Solver(reduce='none')).dataset",
    "squared loss": "gradient_flow(classes, **rates, t_end=0.1, objective=Objective('squared')).dataset",
    "a value matrix": "gradient_flow(classes, **rates, t_end=0.1, init=values).dataset",
    "a hidden layer": "gradient_flow(classes, **rates, t_end=0.1, init=hidden).dataset",
    "the modified decoder": "gradient_flow(classes, **rates, t_end=0.1, decoder='modified').dataset",
    "steps of SGD": "sgd(classes, **rates, steps=20, batch_size=8, length=12, seed=0).dataset",
    "an ensemble": "gradient_flow_ensemble({'n_classes': [3], 'vocab_size': 20, **rates}, t_end=0.1)",
}
_PROGRAM = """
import gc, json, time
import numpy as np
from dynamics import Layer, Objective, SequenceClasses, Solver, gradient_flow, gradient_flow_ensemble, sgd
from numba.core.dispatcher import Dispatcher
imported, rates = time.process_time(), dict(eta_y=1.0, eta_z=0.5)
classes = SequenceClasses.single_common_token(3, 20)
zeros, rng = Layer.zeros(classes.population()), np.random.default_rng(0)
n, m = zeros.Y.shape
values = Layer(zeros.Z, np.zeros((4, m)), rng.normal(size=(n, 4)), zeros.multiplicity)
hidden = Layer(zeros.Z, rng.normal(size=(8, m)), None, zeros.multiplicity, hidden=rng.normal(size=(n + 1, 8)))
start, clock = time.process_time(), time.perf_counter()
{use}
seconds = time.process_time() - start
running, kernels = seconds / (time.perf_counter() - clock), {{}}
for one in gc.get_objects():
    if isinstance(one, Dispatcher) and one.overloads and one.py_func.__module__.startswith("dynamics"):
        for own in one.get_metadata().values():
            taken = running * own.get("timers", {{}}).get("compiler_lock", 0.0)
            kernels[one.__name__] = kernels.get(one.__name__, 0.0) + taken
print(json.dumps({{"imported": imported, "seconds": seconds, "kernels": kernels}}))
"""
# Kernels with less are left out of the table.
_SHOWN = 0.3


def first(use: str) -> dict[str, Any]:
    """Seconds of a first use, in a new process with an empty cache of numba's."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        program = _PROGRAM.format(use=USES[use])
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def markdown(data: Mapping[str, Any]) -> str:
    """The table: seconds of each first use, and the kernels that took most of them."""
    lines = [
        "| first use | processor time (s) | kernels (s), with what they call |",
        "| --- | --- | --- |",
    ]
    for row in data["uses"]:
        most = sorted(row["kernels"].items(), key=lambda pair: -pair[1])
        told = ", ".join(f"`{name}` {seconds:.1f}" for name, seconds in most if seconds >= _SHOWN)
        lines.append(f"| {row['use']} | {row['seconds']:.1f} | {told} |")
    return "\n".join(lines)


@style.styled
def bars(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Processor time of each first use, a bar each."""
    figure = Figure(figsize=(7.5, 0.6 + 0.35 * len(rows)))
    axes = figure.subplots()
    axes.barh(np.arange(len(rows))[::-1], [row["seconds"] for row in rows], color=style.BLUE)
    axes.set_yticks(np.arange(len(rows))[::-1], [row["use"] for row in rows])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("processor time of a first use (s), nothing on disk")
    return figure


def study() -> Study:
    """First uses one after the other."""
    rows = [{"use": use, **first(use)} for use in USES]
    data = {"uses": rows}
    return Study(markdown(data), bars(rows), data)
