"""The gain of each fast path: the same call with it and without it, in turn, by the processor's clock."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from unittest.mock import patch

import numpy as np

import benchmarks
from benchmarks import Row
from benchmarks.large_flow import perturbed
from dynamics import SequenceClasses, Solver, gradient_flow
from dynamics._engine.dop853 import InKernel
from dynamics._model import small
from dynamics.fields.system import System

flow = import_module("dynamics.flow")

RATES = {"eta_y": 1.0, "eta_z": 0.5}
UNREDUCED = Solver(reduce="none")
compare = functools.partial(benchmarks.compare, clock=time.process_time, result="Z at the end", runs=3, budget=10.0)
# Steps with symmetry and without it have errors of their own; the same steps differ by rounding alone.
AGREE, ROUNDED = 1e-5, 1e-9


def _ends(classes: SequenceClasses, t: float, **options: object) -> np.ndarray:
    """Z at the end of a flow."""
    return gradient_flow(classes, **RATES, t_end=t, times=[t], **options).final.Z[0]


def _none(*_: object) -> None:
    """No path."""


# Path -> the object and the name by which it is chosen, and its stand-in.
CHOICES = {
    "small": (small, "small_of", _none),
    "kernel": (System, "own_frame", property(_none)),
    "factors": (flow, "factors_of", _none),
}


def without(path: str, call: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    """The same call without a path of `CHOICES`."""

    def switched() -> np.ndarray:
        with patch.object(*CHOICES[path]):
            return call()

    return switched


def run() -> Iterator[Row]:
    """The rows of the paths that one process can leave out, then that of numba's inside."""
    few, many = SequenceClasses.single_common_token(10, 1000), SequenceClasses.single_common_token(100, 2000)
    call = functools.partial(_ends, few, 700.0, solver=UNREDUCED)
    task = "full flow, K = 10, M = 1,000, to t = 700"
    name = "ours, without the kernel of small plain layers"
    yield compare(task, call, name, without("small", call), tolerance=ROUNDED)
    name = f"ours, a call for each slope in place of `{InKernel.__name__}`"
    yield compare(task, call, name, without("kernel", call), tolerance=ROUNDED)
    for decoder in ("full", "modified", "theory"):
        task = f"{decoder} flow, K = 100, M = 2,000, to t = 700; our use of symmetry"
        call = functools.partial(_ends, many, 700.0, decoder=decoder)
        yield compare(task, call, "ours, without symmetry", functools.partial(call, solver=UNREDUCED), tolerance=AGREE)
    call = functools.partial(_ends, perturbed(200, 20_000), 1000.0)
    name = "ours, slopes as they are, not as factors"
    task = "full flow, K = 200, M = 20,000, asymmetric, to t = 1,000"
    yield compare(task, call, name, without("factors", call), tolerance=ROUNDED)
    yield _inside()


_PROGRAM = """
import time
from benchmarks.paths import UNREDUCED, SequenceClasses, _ends
classes = SequenceClasses.single_common_token(10, 1000)
end, taken = _ends(classes, 700.0, solver=UNREDUCED), []
for _ in range(5):
    start = time.process_time()
    _ends(classes, 700.0, solver=UNREDUCED)
    taken.append(time.process_time() - start)
print(min(taken), *end)
"""


def _inside() -> Row:
    """A flow beside the same by plain `numba.njit`, each in a process of its own, as nothing else switches it."""
    found = []
    for plain in ("0", "1"):
        environment = os.environ | {"YZFLOW_PLAIN_NJIT": plain}
        command = [sys.executable, "-c", _PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found.append(np.array(done.stdout.split(), dtype=float))
    (ours, *mine), (peer, *theirs) = found
    difference = benchmarks.relative_difference(mine, theirs)
    task, name = "full flow, K = 10, M = 1,000, to t = 700", "ours, by plain `numba.njit`"
    return Row(task, ours, name, peer, difference, ROUNDED, result="Z at the end")
