"""The paper's SGD experiments on Syn-Small and Syn-Medium (Section 8 and Appendix G of Scan and Snap).

Settings: Tian, Wang, Chen, Du (2023), arXiv 2305.16380: momentum 0.9, batches of 128 sequences of length 128, 100
steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynamics import SequenceClasses, Trajectory, observables, sgd, sgd_many

STEPS = 100
SEEDS = 10
SMALL_RATES = ((1.0, 1.0), (10.0, 1.0))  # (eta_Y, eta_Z) of Fig. 4
ADAM_RATES = (0.1, 0.5, 1.0)  # eta_Y = eta_Z of Fig. 5
N_QUERIES = (1, 3, 5, 10)
ETA_Z = (0.5, 1.0, 2.0, 3.0)
RATIOS = (1.0, 2.0, 5.0, 10.0)
THRESHOLDS = np.linspace(0, 0.2, 101)  # of attention


def syn_small(*, eta_y: float, eta_z: float, optimizer: str = "sgd", steps: int = STEPS, seed: int = 0) -> Trajectory:
    """One run on Syn-Small from a zero start, every step recorded (Figs. 4 and 5)."""
    return sgd(SequenceClasses.syn_small(), eta_y=eta_y, eta_z=eta_z, steps=steps, optimizer=optimizer, seed=seed)


def syn_medium(
    *,
    n_queries: Sequence[int] = N_QUERIES,
    eta_z: Sequence[float] = ETA_Z,
    ratios: Sequence[float] = RATIOS,
    seeds: int = SEEDS,
    steps: int = STEPS,
    threads: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Syn-Medium over (n_queries, eta_z, ratio = eta_Y / eta_Z, seed): what attention looks like after training.

    Y and Z start uniform in +-1/sqrt(M); single precision. Variables: ``entropy``, of attention on the distinct tokens,
    renormalised, mean over next tokens (Fig. 6), nats; ``recall(.., threshold)``, the share of distinct tokens with
    attention above ``threshold``, mean over next tokens (Figs. 11 and 12); ``batch_loss``, of the last step, nats.
    """
    classes = {count: SequenceClasses.syn_medium(count) for count in n_queries}
    masks = {count: observables.distinct_mask(data.population()) for count, data in classes.items()}
    shape = (len(n_queries), len(eta_z), len(ratios), seeds)
    settings = [(n_queries[q], eta_z[z], ratios[r], seed) for q, z, r, seed in np.ndindex(shape)]
    runs = [
        (
            classes[count],
            {"eta_y": ratio * rate, "eta_z": rate, "steps": steps, "init": "uniform", "dtype": "float32", "seed": seed},
        )
        for count, rate, ratio, seed in settings
    ]

    def observe(outcome):
        attention = observables.expected_attention(outcome.layer, outcome.bags)[1]
        mask = masks[outcome.bags.n_queries]
        return (
            observables.entropy(attention, mask).mean(),
            observables.recall(attention, mask, THRESHOLDS).mean(axis=0),
            outcome.batch_loss[-1],
        )

    results = sgd_many(runs, observe=observe, threads=threads, progress=progress)
    entropy, recall, loss = (np.array(column, dtype=float) for column in zip(*results, strict=True))
    axes = ("n_queries", "eta_z", "ratio", "seed")
    return xr.Dataset(
        {
            "entropy": (
                axes,
                entropy.reshape(shape),
                {"long_name": "entropy of attention, distinct tokens", "units": "nats"},
            ),
            "recall": ((*axes, "threshold"), recall.reshape(*shape, -1), {"long_name": "recall of distinct tokens"}),
            "batch_loss": (axes, loss.reshape(shape), {"long_name": "loss of the last mini-batch", "units": "nats"}),
        },
        {
            "n_queries": list(n_queries),
            "eta_z": ("eta_z", list(eta_z), {"units": "1 / SGD step"}),
            "ratio": ("ratio", list(ratios), {"long_name": "eta_Y / eta_Z"}),
            "seed": np.arange(seeds),
            "threshold": ("threshold", THRESHOLDS, {"long_name": "threshold on attention", "units": "1"}),
        },
    )


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Standard error of the mean over seeds."""
    return values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"])
