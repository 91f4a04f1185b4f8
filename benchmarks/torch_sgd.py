"""SGD on Syn-Medium beside PyTorch autograd written the obvious way."""

from collections.abc import Iterator

import numpy as np

from benchmarks import Row, compare, optional_peer
from dynamics import SequenceClasses, observables, sgd_many

SETTING = {"eta_y": 2.0, "eta_z": 1.0, "steps": 100, "batch_size": 128, "length": 128}
SEEDS = 20, 5  # of ours and of the peer, whose random numbers are others


def run() -> Iterator[Row]:
    torch_sgd = optional_peer("torch_sgd")
    if torch_sgd is None:
        return
    torch_sgd.torch.set_num_threads(1)
    for n_queries in (1, 5, 10):
        classes = SequenceClasses.syn_medium(n_queries)
        yield compare(
            f"SGD, Syn-Medium, {n_queries} quer{'y' if n_queries == 1 else 'ies'}, 100 steps, float32",
            lambda classes=classes: _ours(classes, 1),
            "PyTorch autograd, one-hot, bmm",
            lambda classes=classes, torch_sgd=torch_sgd: torch_sgd.train(classes, **SETTING, seed=0),
            difference=lambda *_, classes=classes, torch_sgd=torch_sgd: _standard_errors(classes, torch_sgd),
            tolerance=4.0,
            result="mean entropy at the end, in standard errors",
        )


def _ours(classes, seeds):
    arguments = {**SETTING, "init": "uniform", "dtype": "float32"}
    return sgd_many([(classes, {**arguments, "seed": seed}) for seed in range(seeds)], threads=1)


def _standard_errors(classes, torch_sgd) -> float:
    """Other random numbers, the same law: the distance of the mean entropies over seeds, in standard errors."""
    bags = classes.population()
    mask = observables.distinct_mask(bags)

    def entropy(layer):
        return observables.entropy(observables.expected_attention(layer, bags)[1], mask).mean()

    ours = np.array([entropy(outcome.layer) for outcome in _ours(classes, SEEDS[0])])
    theirs = np.array([entropy(torch_sgd.train(classes, **SETTING, seed=seed)[0]) for seed in range(SEEDS[1])])
    error = np.hypot(ours.std(ddof=1) / SEEDS[0] ** 0.5, theirs.std(ddof=1) / SEEDS[1] ** 0.5)
    return float(abs(ours.mean() - theirs.mean()) / error)
