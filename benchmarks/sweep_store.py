"""A sweep of a trivial task beside the loop that one would write by hand: a file a run, flushed and renamed."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import yzflow
from benchmarks import Row, compare

RUNS = 2000


def trivial(configuration: dict, seed: int) -> dict:
    """Nothing to compute: what is left is overhead."""
    return {"value": 2.0 * configuration["a"]}


def ours() -> np.ndarray:
    """`yzflow.sweep` with one worker thread."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        runs = yzflow.sweep(trivial, {"a": list(range(RUNS))}, store=folder, executor=pool, progress=False)
    return runs["value"].values.ravel()


def by_hand() -> np.ndarray:
    """numpy.savez, os.fsync, os.replace, and numpy.load at the end; without a checksum."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for a in range(RUNS):
            with open(folder / "temporary", "wb") as file:
                np.savez(file, **trivial({"a": a}, 0))
                file.flush()
                os.fsync(file.fileno())
            os.replace(folder / "temporary", folder / f"{a}.npz")
        values = []
        for a in range(RUNS):
            with np.load(folder / f"{a}.npz") as file:
                values.append(file["value"][()])
    return np.array(values)


def run() -> list[Row]:
    task, name = f"sweep of {RUNS} trivial runs", "savez, fsync and rename by hand"
    return [compare(task, ours, name, by_hand, tolerance=0.0, result="all values", runs=3)]
