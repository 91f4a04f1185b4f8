"""Many flows at once, beside a loop over `gradient_flow`, diffrax under vmap, scipy on a stacked state, and heyoka.

What runs in one thread is timed by the processor's clock.
"""

from __future__ import annotations

import functools
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks import Row, compare, machine, optional_peer, relative_difference
from dynamics import SequenceClasses, gradient_flow, gradient_flow_ensemble

# K from 2 to 50, M from 100 to 100,000, rates over two decades, to t = 1e4.
T_END = 1e4
TOLERANCES = {"rtol": 1e-8, "atol": 1e-10}
RATES = (0.01, 1.0)
# Every solver keeps its own error near rtol a step, and the steps of one run add up.
AGREE = 1e-5
# The loosest tolerance at which heyoka makes no larger error than we do at ours.
LOOSE = 1e-7


def settings(n: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Settings drawn log-uniformly."""
    rng = np.random.default_rng(seed)

    def drawn(low: float, high: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), n))

    return {
        "n_classes": rng.integers(2, 51, n),
        "vocab_size": np.round(drawn(100, 1e5)).astype(int),
        "common": drawn(0.1, 2.0),
        "distinct": np.array([1.0, 0.8, 0.6, 0.4, 0.2]),
        "eta_y": drawn(*RATES),
        "eta_z": drawn(*RATES),
    }


def ours(
    given: Mapping[str, np.ndarray], threads: int = 1, path: Path | None = None, rtol: float = TOLERANCES["rtol"]
) -> np.ndarray:
    """z at the end, by an ensemble; the absolute tolerance is a hundredth of the relative one.

    Largest speeds are not looked for, as no peer does.
    """
    own = {"rtol": rtol, "atol": rtol / 100, "fastest": False}
    flows = gradient_flow_ensemble(given, t_end=T_END, **own, record=["z"], threads=threads, path=path)
    return flows["z"].values[:, 0]


def looped(given: Mapping[str, np.ndarray]) -> np.ndarray:
    """The same by `gradient_flow`, one after the other."""
    found = []
    for i in range(given["eta_y"].size):
        own = {name: values if name == "distinct" else values[i].item() for name, values in given.items()}
        rates = {name: own.pop(name) for name in ("eta_y", "eta_z")}
        flow = gradient_flow(
            SequenceClasses.single_common_token(**own), **rates, t_end=T_END, times=[T_END], **TOLERANCES
        )
        found.append(flow.final.Z[0, : own["distinct"].size + 1])
    return np.array(found)


def run() -> Iterator[Row]:
    drawn = "K 2..50, M 100..100,000, to t = 10,000"
    few, some, many = settings(40), settings(200), settings(10_000)
    result = "z at the end"
    yield compare(
        f"ensemble of 40 full flows, {drawn}",
        functools.partial(ours, few),
        "our own gradient_flow in a loop",
        functools.partial(looped, few),
        tolerance=AGREE,
        result=result,
        runs=3,
        clock=time.process_time,
    )
    peer = optional_peer("ensembles")
    if peer is not None:
        calls = {peer.STACKED_NAME: functools.partial(peer.stacked, few, t_end=T_END, **TOLERANCES)}
        yield from _beside(few, calls, f"ensemble of 40 full flows, {drawn}")
        if _installed("diffrax"):
            calls = {peer.VMAP_NAME: peer.vmapped(some, t_end=T_END, **TOLERANCES)}
            yield from _beside(some, calls, f"ensemble of 200 full flows, {drawn}")
    heyoka = optional_peer("heyoka_ensemble")
    if heyoka is not None:
        for given in (some, settings(2000)):
            for tolerance in (TOLERANCES["rtol"], LOOSE):
                for name, call in heyoka.calls(given, t_end=T_END, tolerance=tolerance).items():
                    title = f"ensemble of {given['eta_y'].size:,} full flows, {drawn}"
                    yield from _beside(given, {f"{name}, at {tolerance:.0e}": call}, title)
    if machine.busy():
        print("two threads beside one: left out, since other processes are running", file=sys.stderr)
    else:
        with machine.all_cores():
            threads = len(machine.ALL)
            yield compare(
                f"ensemble of 10,000 full flows, {drawn}, {threads} threads",
                functools.partial(ours, many, threads),
                "our own with one thread",
                functools.partial(ours, many),
                tolerance=0.0,
                result=result,
                threads=threads,
                runs=3,
                budget=20.0,
            )
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))
        yield compare(
            f"ensemble of 10,000 full flows, {drawn}, kept in a folder",
            lambda: ours(many, path=Path(folder) / str(next(numbers))),
            "our own in memory",
            functools.partial(ours, many),
            tolerance=0.0,
            result=result,
            runs=2,
            budget=20.0,
            clock=time.process_time,
        )


def _beside(given: Mapping[str, np.ndarray], calls: Mapping[str, object], task: str) -> Iterator[Row]:
    for name, call in calls.items():
        yield compare(
            task,
            functools.partial(ours, given),
            name,
            call,
            tolerance=AGREE,
            difference=relative_difference,
            result="z at the end",
            runs=5,
            budget=60.0,
            clock=time.process_time,
        )


def _installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def million(folder: Path) -> str:
    """A map of a million cells, kept in a folder and taken up where it was left: what it took, in words."""
    per_axis = {"n_classes": (2, 50, 10), "vocab_size": (100, 1e5, 10), "eta_y": (*RATES, 100), "eta_z": (*RATES, 100)}
    axes = {name: np.geomspace(*ends) for name, ends in per_axis.items()}
    for name in ("n_classes", "vocab_size"):
        axes[name] = np.round(axes[name]).astype(int)
    given = {name: xr.DataArray(values, dims=f"{name}_axis") for name, values in axes.items()}
    start = time.process_time()
    flows = gradient_flow_ensemble(given, t_end=T_END, **TOLERANCES, threads=1, path=folder, progress=True)
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells, failed = flows["failed"].size, int(flows["failed"].sum())
    return f"{cells:,} flows, {failed} failed, {seconds:.0f} s of processor time, at most {peak:.0f} MiB"


if __name__ == "__main__":
    print(million(Path(sys.argv[1])))
