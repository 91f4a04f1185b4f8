"""Where the time of SGD on Syn-Medium goes: each stage of a step, run alone on the batches of a real run.

What the stages do not explain of a whole step (buffers, the loop over groups) is the rest; it can be slightly negative,
since a stage that is repeated alone finds its data in another state of the caches. What a run costs however few its
steps (checks, the start, the final layer) stands apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numba import njit

from benchmarks import Study, optional_peer, seconds
from dynamics import SequenceClasses, sgd_many
from dynamics._engine.sgd.run import SgdRun
from dynamics._model import kernels
from dynamics.backend.intrinsics import matrix
from dynamics.descent import complete
from dynamics.optimizers import kernels as updates
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, styled

QUERIES = (1, 5, 10)
SETTING = {"eta_y": 2.0, "eta_z": 1.0, "batch_size": 128, "length": 128, "dtype": "float32", "init": "uniform"}
STEPS, REPEATS = 64, 15  # a stage runs over the batches of so many steps; the quickest of so many times counts
STAGES = ("drawing tokens", "attention", "products", "exponentials", "softmax, rest", "optimiser", "rest")
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, "0.55", "0.85")


@njit
def _attention(batches, groups, Z, norm, c_all, g_all, kind):
    query, _, _, weight, size, indptr, token, count = batches
    dZ, top = np.zeros_like(Z), np.empty_like(norm)
    line = np.empty(token.shape[1], Z.dtype)
    for s in range(groups.size):
        entry = bag = 0
        for group in range(groups[s]):
            tokens = token[s, indptr[s, group] : indptr[s, group + 1]]
            n = size[s, group]
            c, g = matrix(c_all, n, tokens.size), matrix(g_all, n, tokens.size)
            counts, e = count[s, entry : entry + n * tokens.size].reshape(n, -1), matrix(line, 1, tokens.size)
            kernels._weigh(tokens, counts, Z[query[s, group]], c, e, top)
            kernels._feature(c, Z.dtype.type(0), *kind, Z.shape[1], c, norm)
            weights = weight[s, bag : bag + n]
            kernels._pull_back(tokens, c, norm, g, *kind, weights, dZ[query[s, group]], e[0])
            entry += n * tokens.size
            bag += n


@njit
def _products(batches, groups, Y, dY, f_all, g_all, u_all, ones, block_all, product_all):
    _, _, _, _, size, indptr, token, _ = batches
    for s in range(groups.size):
        for group in range(groups[s]):
            rows = token[s, indptr[s, group] : indptr[s, group + 1]]
            n = size[s, group]
            f, g = matrix(f_all, n, rows.size), matrix(g_all, n, rows.size)
            u = matrix(u_all, n, Y.shape[1])
            block = matrix(block_all, rows.size, Y.shape[1])
            product = matrix(product_all, rows.size, Y.shape[1])
            if n > 1:
                kernels._gather(rows, Y, block)
            kernels._decode(rows, f, Y, block, u)
            kernels._back(rows, u, Y, block, g)
            kernels._add_outer(rows, f, ones[:n], u, product, dY)


@njit
def _exponentials(groups, size, u_all, r_all, columns):
    top = np.empty(size.shape[1], u_all.dtype)
    for s in range(groups.size):
        for group in range(groups[s]):
            n = size[s, group]
            u, r = matrix(u_all, n, columns), matrix(r_all, n, columns)
            kernels._largest(u, top)
            kernels._exponentials(u, top, r)


@njit
def _softmax(batches, groups, u_all, r_all, mass):
    _, target, soft, weight, size, _, _, _ = batches
    top = np.empty(size.shape[1], u_all.dtype)
    for s in range(groups.size):
        for group in range(groups[s]):
            n = size[s, group]
            u, r = matrix(u_all, n, mass.size), matrix(r_all, n, mass.size)
            kernels._residual(u, target[s, group], soft[s, group], weight[s, :n], mass, r, top)


@njit
def _optimiser(steps, state, slopes, first, second, update):
    for step in range(steps):
        for k in range(2):
            first[k][:] *= update.momentum
            own = (state[k].ravel(), slopes[k].ravel(), first[k].ravel(), second[k].ravel())
            updates._ascend_velocity(update, *own, update.rates[k], step + 1)


def _quickest(function) -> float:
    function()
    return min(seconds(function)[0] for _ in range(REPEATS))


def _a_run(classes, steps) -> float:
    """Microseconds of a run of so many steps. The stages leave behind weights that no run would have."""
    runs = [(classes, {**SETTING, "steps": steps, "record_every": steps, "seed": 1})]
    return 1e6 * _quickest(lambda: sgd_many(runs, threads=1))


def profile(n_queries: int) -> dict:
    """Microseconds a step of each stage, and what a step has to compute."""
    classes = SequenceClasses.syn_medium(n_queries)
    arguments = complete({**SETTING, "steps": STEPS, "seed": 1})
    run = SgdRun(classes, **{**arguments, "record_every": STEPS})
    run.go(None)
    batches, groups, weights, mass = run.feed.batches, run.feed.groups, run.weights, run.rule.multiplicity
    taken, size, columns = groups.size, batches.size, weights.Y.shape[1]
    longest, most = int(np.diff(run.source.bags.indptr).max()), SETTING["batch_size"]
    f, g = (np.full(most * longest, 0.1, np.float32) for _ in range(2))
    u, r = (np.zeros(most * columns, np.float32) for _ in range(2))
    blocks = [np.zeros(longest * columns, np.float32) for _ in range(2)]
    ones, norm = np.ones(most, np.float32), np.ones(most, np.float32)
    slopes, first, second, _ = run.memory
    moved = (slopes[:2], first[:2], second[:2])
    work = {
        "drawing tokens": lambda: run.feed.draw(taken),
        "attention": lambda: _attention(batches, groups, weights.Z, norm, f, g, (run.rule.means, run.rule.normalised)),
        "products": lambda: _products(batches, groups, weights.Y, slopes.Y, f, g, u, ones, *blocks),
        "exponentials": lambda: _exponentials(groups, size, u, r, columns),
        "softmax, rest": lambda: _softmax(batches, groups, u, r, mass.astype(np.float32)),
        "optimiser": lambda: _optimiser(taken, weights[:2], *moved, run.update),
    }
    spent = {name: 1e6 * _quickest(call) / taken for name, call in work.items()}
    spent["softmax, rest"] -= spent["exponentials"]
    short, long = (_a_run(classes, steps) for steps in (1, 1 + 4 * STEPS))
    whole = (long - short) / (4 * STEPS)
    spent["rest"] = whole - sum(spent.values())
    a_run = short - whole
    batch, positions = SETTING["batch_size"], SETTING["length"] - 1
    used = np.arange(size.shape[1]) < groups[:, None]
    tokens = float((size * np.diff(batches.indptr, axis=1))[used].sum() / taken)
    return {
        "queries": n_queries,
        "stages": spent,
        "step": whole,
        "run": a_run,
        "tokens_drawn": batch * positions,
        "random_bits": batch * (32 + 64 * ((positions + 1) // 2)),
        "exponentials": batch * columns,
        "flops": 6.0 * tokens * columns,
    }


@njit
def _row_exponentials(u, top, out):
    kernels._exponentials(u, top, out)


def peaks() -> dict:
    """Best speed of one core of this machine, per microsecond: flops of large matrices, and exponentials."""
    a = np.ones((256, 256), np.float32)
    u, out, top = np.zeros((64, 1024), np.float32), np.zeros((64, 1024), np.float32), np.zeros(64, np.float32)
    return {
        "flops": 2 * 256**3 / (1e6 * _quickest(lambda: a @ a)),
        "exponentials": u.size / (1e6 * _quickest(lambda: _row_exponentials(u, top, out))),
    }


@styled
def draw(profiles: Sequence[dict]) -> Figure:
    """Microseconds of a step by stage, one bar a number of queries."""
    figure = Figure(figsize=(8.5, 2.9))
    axes = figure.subplots()
    places = range(len(profiles))[::-1]
    left = np.zeros(len(profiles))
    for stage, colour in zip(STAGES, COLOURS, strict=True):
        width = np.array([max(0.0, p["stages"][stage]) for p in profiles])
        axes.barh(places, width, left=left, color=colour, label=stage, height=0.6, edgecolor="white", linewidth=0.6)
        for place, start, part, p in zip(places, left, width, profiles, strict=True):
            if part > 0.05 * max(q["step"] for q in profiles):
                colour_of_text = "white" if colour in (BLUE, GREEN, VERMILION, "0.55") else BLACK
                share = f"{100 * part / p['step']:.0f}%"
                axes.text(start + part / 2, place, share, ha="center", va="center", fontsize=8, color=colour_of_text)
        left += width
    axes.set_yticks(places, [f"{p['queries']} quer{'y' if p['queries'] == 1 else 'ies'}" for p in profiles])
    axes.set_xlabel("time of a step of 128 sequences of 128 tokens (microseconds), one thread")
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=len(STAGES), fontsize=8)
    return figure


def _peer_step(n_queries: int) -> float:
    """Microseconds of a step of the obvious PyTorch code; nan without PyTorch."""
    torch_sgd = optional_peer("torch_sgd")
    if torch_sgd is None:
        return np.nan
    torch_sgd.torch.set_num_threads(1)
    setting = {name: SETTING[name] for name in ("eta_y", "eta_z", "batch_size", "length")}
    classes = SequenceClasses.syn_medium(n_queries)
    runs = [seconds(lambda: torch_sgd.train(classes, **setting, steps=20, seed=0))[0] for _ in range(3)]
    return 1e6 * min(runs) / 20


def study() -> Study:
    profiles, best = [profile(n) for n in QUERIES], peaks()
    for p in profiles:
        p["peer_step"] = _peer_step(p["queries"])
    data = {"profiles": profiles, "peaks": best}
    return Study(markdown(data), draw(profiles), data)


def bounds(data: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    """Microseconds of a step at the speed of large arrays: products, exponentials, and both with drawing as it is."""
    best, found = data["peaks"], []
    for p in data["profiles"]:
        products, exponentials = p["flops"] / best["flops"], p["exponentials"] / best["exponentials"]
        found.append((products, exponentials, products + exponentials + p["stages"]["drawing tokens"]))
    return found


def markdown(data: Mapping[str, Any]) -> str:
    """Time of each stage, and the needs of a step."""
    profiles = data["profiles"]
    lines = ["| stage (microseconds a step) | " + " | ".join(f"queries: {p['queries']}" for p in profiles) + " |"]
    lines.append("| --- |" + " ---: |" * len(profiles))
    for stage in STAGES:
        lines.append(f"| {stage} | " + " | ".join(f"{p['stages'][stage]:.1f}" for p in profiles) + " |")
    lines.append("| whole step | " + " | ".join(f"{p['step']:.1f}" for p in profiles) + " |")
    lines.append("| apart: once a run | " + " | ".join(f"{p['run']:.0f}" for p in profiles) + " |")
    lines += ["", "| needed a step | " + " | ".join(f"queries: {p['queries']}" for p in profiles) + " |"]
    lines.append("| --- |" + " ---: |" * len(profiles))
    least = bounds(data)
    counts = (
        ("tokens drawn", [f"{p['tokens_drawn']:,}" for p in profiles]),
        ("random bits", [f"{p['random_bits']:,}" for p in profiles]),
        ("exponentials", [f"{p['exponentials']:,}" for p in profiles]),
        ("flops of the products", [f"{p['flops']:,.0f}" for p in profiles]),
        ("products at the speed of large matrices (microseconds)", [f"{b[0]:.1f}" for b in least]),
        ("exponentials at the speed of a long array (microseconds)", [f"{b[1]:.1f}" for b in least]),
        ("the two, and drawing as it is (microseconds)", [f"{b[2]:.1f}" for b in least]),
        (
            "that is, of the whole step",
            [f"{100 * b[2] / p['step']:.0f}%" for b, p in zip(least, profiles, strict=True)],
        ),
        ("a step of the obvious PyTorch code (microseconds)", [f"{p['peer_step']:.0f}" for p in profiles]),
        ("a step at 300 times its speed (microseconds)", [f"{p['peer_step'] / 300:.1f}" for p in profiles]),
    )
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in counts]
    return "\n".join(lines)
