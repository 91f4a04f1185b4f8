"""SGD on Syn-Medium beside PyTorch autograd written the obvious way."""

import sys

import numpy as np

from benchmarks import Row, paired_seconds
from dynamics import SequenceClasses, observables, sgd_many

SETTING = {"eta_y": 2.0, "eta_z": 1.0, "steps": 100, "batch_size": 128, "length": 128}


def run() -> list[Row]:
    try:
        import torch

        from benchmarks.peers import torch_sgd
    except ImportError:
        print("torch_sgd: skipped, PyTorch is not installed (extra `bench`)", file=sys.stderr)
        return []
    torch.set_num_threads(1)
    rows = []
    for n_queries in (1, 5, 10):
        classes = SequenceClasses.syn_medium(n_queries)
        mask = observables.distinct_mask(classes.population())

        def entropy(layer, classes=classes, mask=mask):
            return observables.entropy(observables.expected_attention(layer, classes.population())[1], mask).mean()

        def ours(seeds=1, classes=classes):
            arguments = {**SETTING, "init": "uniform", "dtype": "float32"}
            return sgd_many([(classes, {**arguments, "seed": seed}) for seed in range(seeds)], threads=1)

        def peer(seed=0, classes=classes):
            return torch_sgd.train(classes, **SETTING, seed=seed)

        # Other random numbers, the same law: the mean entropy over seeds must agree within its standard error.
        mine = np.array([entropy(outcome.layer) for outcome in ours(seeds=20)])
        theirs = np.array([entropy(peer(seed)[0]) for seed in range(8)])
        difference = abs(mine.mean() - theirs.mean())
        if difference > 4 * np.hypot(mine.std(ddof=1) / 20**0.5, theirs.std(ddof=1) / 8**0.5):
            raise RuntimeError(f"the two trainings end at entropies {mine.mean():.3f} and {theirs.mean():.3f}")
        seconds = paired_seconds(ours, peer)
        task = f"Syn-Medium, {n_queries} queries, 100 steps, float32"
        rows.append(Row(task, seconds[0], "PyTorch autograd, one-hot, bmm", seconds[1], difference / mine.mean()))
    return rows
