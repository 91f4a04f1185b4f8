"""A part of the paper's Fig. 6 sweep on two threads beside one."""

import numpy as np

from benchmarks import Row, compare, machine
from dynamics import SequenceClasses, sgd_many

QUERIES, RUNS = (1, 5, 10), 8


def _sweep(threads: int) -> np.ndarray:
    """The final logits of runs at several numbers of queries and learning rates."""
    classes = {n: SequenceClasses.syn_medium(n) for n in QUERIES}
    runs = [
        (classes[n], {"eta_y": 2.0, "eta_z": 0.25 * (1 + seed % 4), "steps": 200, "dtype": "float32", "seed": seed})
        for n in QUERIES
        for seed in range(RUNS)
    ]
    outcomes = sgd_many([(data, {**options, "init": "uniform"}) for data, options in runs], threads=threads)
    return np.concatenate([outcome.layer.Z.ravel() for outcome in outcomes])


def run() -> list[Row]:
    if len(machine.ALL) < 2:
        print("sweep_threads: left out, since there is one core only")
        return []
    task = f"SGD, Syn-Medium, {len(QUERIES) * RUNS} runs of 200 steps, float32"
    with machine.all_cores():
        row = compare(task, lambda: _sweep(2), "ours, 1 thread", lambda: _sweep(1), tolerance=0.0, threads=2, runs=3)
    return [row]
