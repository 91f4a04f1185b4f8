"""The cost of a step of SGD against M, K, the tokens of a class and T, each alone, with fitted exponents.

``python -m benchmarks.scaling`` prints the peak memory and the time of a step for 10,000 classes of 20 to 200 tokens
among M = 50,272, each run in a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import Study, seconds
from dynamics import SequenceClasses, sgd
from dynamics._engine.sgd.run import SgdRun
from dynamics.descent import complete

BASE = {"M": 20_000, "K": 1_000, "support": 40, "T": 128}
SWEEPS = {
    "M": (10_000, 20_000, 50_000, 100_000, 200_000),
    "K": (500, 1_000, 2_000, 4_000),
    "support": (10, 20, 40, 80, 160),
    "T": (32, 128, 512, 2048),
}
LABELS = {"M": "vocabulary M", "K": "sequence classes K", "support": "tokens of a class", "T": "length T of a sequence"}
SETTING = {"eta_y": 0.5, "eta_z": 0.1, "batch_size": 32, "dtype": "float32", "steps": 64, "record_every": 64}


def classes(n_classes: int, n_tokens: int, sizes, seed: int = 0) -> SequenceClasses:
    """Classes whose tokens lie anywhere in the vocabulary, under one query."""
    rng = np.random.default_rng(seed)
    sizes = np.broadcast_to(sizes, n_classes)
    token = np.concatenate([rng.choice(n_tokens, size, replace=False) for size in sizes])
    share = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    table = scipy.sparse.csr_array((share, token, np.concatenate([[0], np.cumsum(sizes)])), (n_classes, n_tokens))
    return SequenceClasses(table, np.zeros(n_classes, dtype=int), vocab_size=n_tokens)


def step_seconds(M: int, K: int, support: int, T: int) -> float:
    """Seconds of a step, the least of some calls of the kernels after those that touch rows for the first time."""
    run = SgdRun(classes(K, M, support), **complete({**SETTING, "length": T}), recording=False)
    taken, steps = [], run.feed.most
    for done in range(0, 6 * steps, steps):
        run.losses = np.empty(done + steps, run.dtype)
        taken.append(seconds(lambda done=done: run._take(done, done + steps))[0] / steps)
    return min(taken[2:])


def _shown(exponent: float) -> str:
    """Two digits after the point, and no minus before nothing."""
    return f"{round(exponent, 2) + 0.0:.2f}"


def draw(times: dict[str, list[float]], exponents: dict[str, float]):
    """Seconds a step on log-log axes, with the fitted powers."""
    # Not above: the peak memory of `memory` is to be that of `sgd`.
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    from yzflow.figures.style import BLUE

    figure = Figure(figsize=(9.6, 2.9), layout="constrained")
    axes = figure.subplots(1, len(SWEEPS), sharey=True)
    for axis, (name, values) in zip(axes, SWEEPS.items(), strict=True):
        x, y = np.array(values, float), 1e3 * np.array(times[name])
        middle = np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** exponents[name]
        axis.loglog(x, middle, color=BLUE, label=f"exponent {_shown(exponents[name])}")
        axis.loglog(x, y, "o", color=BLUE)
        axis.set_xlabel(LABELS[name])
        axis.set_xticks(values, [f"{value:,}" for value in values], rotation=30)
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.legend(loc="upper left")
    axes[0].set_ylabel("milliseconds a step")
    base = ", ".join(f"{name} = {value:,}" for name, value in BASE.items())
    figure.suptitle(f"A step of SGD with momentum, 32 sequences, float32, one thread ({base})", fontsize=9)
    return figure


def study() -> Study:
    from yzflow.figures.style import styled

    times = {name: [step_seconds(**BASE | {name: value}) for value in values] for name, values in SWEEPS.items()}
    exponents = {name: float(np.polyfit(np.log(SWEEPS[name]), np.log(times[name]), 1)[0]) for name in SWEEPS}
    data = {"times": times, "exponents": exponents, "base": BASE}
    return Study(markdown(data), styled(draw)(times, exponents), data)


def markdown(data: Mapping[str, Any]) -> str:
    """A line for each size."""
    lines = ["| against | from | to | milliseconds a step | exponent |", "| --- | --- | --- | --- | --- |"]
    for name, values in SWEEPS.items():
        times = data["times"][name]
        span = f"{1e3 * times[0]:.2f} to {1e3 * times[-1]:.2f}"
        lines.append(
            f"| {LABELS[name]} | {values[0]:,} | {values[-1]:,} | {span} | {_shown(data['exponents'][name])} |"
        )
    return "\n".join(lines)


def memory(optimizer: str, momentum: float, steps: int) -> None:
    """Print the peak memory and the time of a run of 10,000 classes with 20 to 200 tokens, M = 50,272."""
    data = classes(10_000, 50_272, np.random.default_rng(1).integers(20, 201, 10_000))
    held_out = data.sample(200, length=128, rng=2)
    options = {"eta_y": 0.5 if optimizer == "sgd" else 0.01, "eta_z": 0.1, "dtype": "float32", "optimizer": optimizer}
    options |= {"momentum": momentum, "steps": steps, "record_every": steps, "evaluate": held_out}
    elapsed, run = seconds(lambda: sgd(data, **options))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    loss = run.dataset["loss"].values
    print(
        f"{optimizer}, momentum {momentum:g}, {steps} steps: Y {run.final.Y.shape}, peak {peak:.2f} GiB, "
        f"{elapsed / steps:.2f} s a step, loss {loss[0]:.3f} to {loss[-1]:.3f}",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) == 4:
        memory(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
        return
    for arguments in (("sgd", "0", "50"), ("sgd", "0.9", "50"), ("adam", "0.9", "20")):
        subprocess.run([sys.executable, "-m", "benchmarks.scaling", *arguments], check=True)


if __name__ == "__main__":
    main()
