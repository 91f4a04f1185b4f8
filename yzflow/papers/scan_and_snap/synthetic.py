"""The paper's SGD experiments on Syn-Small and Syn-Medium (Section 8 and Appendix G of Scan and Snap).

Settings: Tian, Wang, Chen, Du (2023), arXiv 2305.16380: momentum 0.9, batches of 128 sequences of length 128, 100
steps.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory

import xarray as xr

from dynamics import SequenceClasses, Trajectory, sgd
from yzflow.papers.scan_and_snap.tasks.synthetic import WINDOWS
from yzflow.sweeps import cache
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep

STEPS = 100
CONVERGED = 100_000  # steps after which attention on Syn-Small hardly moves any more (Fig. 4)
SEEDS = 10
SMALL_RATES = ((1.0, 1.0), (10.0, 1.0))  # (eta_Y, eta_Z) of Fig. 4
ADAM_RATES = (0.1, 0.5, 1.0)  # eta_Y = eta_Z of Fig. 5
N_QUERIES = (1, 3, 5, 10)
ETA_Z = (0.5, 1.0, 2.0, 3.0)
RATIOS = (1.0, 2.0, 5.0, 10.0)


def syn_small(
    *,
    eta_y: float,
    eta_z: float,
    optimizer: str = "sgd",
    steps: int = STEPS,
    record_every: int = 1,
    seed: int = 0,
    store: str | os.PathLike | Store | None = None,
) -> Trajectory:
    """One run on Syn-Small from a zero start (Figs. 4 and 5); from ``store`` if it is there.

    A longer run with the same seed begins as a shorter one does, whatever is recorded.
    """
    return cache.trajectory(
        sgd,
        SequenceClasses.syn_small(),
        eta_y=eta_y,
        eta_z=eta_z,
        steps=steps,
        optimizer=optimizer,
        record_every=record_every,
        seed=seed,
        store=store,
    )


def syn_medium(
    *,
    n_queries: Sequence[int] = N_QUERIES,
    eta_z: Sequence[float] = ETA_Z,
    ratios: Sequence[float] = RATIOS,
    seeds: int = SEEDS,
    steps: int = STEPS,
    threads: int | None = None,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Syn-Medium over ``(n_queries, eta_z, ratio, seed)``, ratio = eta_Y / eta_Z: attention after training.

    The sweep "syn_medium" of `yzflow.sweep` (Y and Z start uniform in +-1/sqrt(M); single precision), kept in ``store``
    if there is one. Variables: ``entropy``, of attention on the distinct tokens, renormalised, mean over next tokens
    (Fig. 6), nats; ``softmax_recall(.., threshold)``, the share of distinct tokens whose softmax in their query's row
    of Z, over all M tokens, is above ``threshold``, mean over next tokens (Figs. 11 and 12); ``recall``, the same for
    attention c_n; ``loss`` at the end and ``batch_loss`` of the last step, nats.
    """
    grid = {"n_queries": n_queries, "eta_z": eta_z, "ratio": ratios, "steps": [steps]}
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        runs = sweep("syn_medium", grid, store=kept, seeds=seeds, workers=threads, progress=progress)
    return runs.isel(steps=0, drop=True)


def descent(runs: xr.Dataset, n_queries: int) -> xr.DataArray:
    """How far the curves of Figs. 11 and 12 fall over the paper's window of thresholds, over ``(eta_z, ratio, seed)``.

    The sparser attention, the more slowly the curve falls (Appendix G).
    """
    curve = window(runs, n_queries)["softmax_recall"]
    return (curve.isel(threshold=0) - curve.isel(threshold=-1)).drop_vars("threshold", errors="ignore")


def window(runs: xr.Dataset, n_queries: int) -> xr.Dataset:
    """The runs with this number of query tokens, at the paper's thresholds, or up to 2/M if the paper has none."""
    vocab_size = SequenceClasses.syn_medium(n_queries).vocab_size
    low, high = WINDOWS.get(n_queries, (0.0, 2 / vocab_size))
    return runs.sel(n_queries=n_queries, threshold=slice(low - 1e-9, high + 1e-9))


def ordered(mean: xr.DataArray, by: str, *, rising: bool) -> xr.DataArray:
    """Whether the mean over seeds rises (or falls, as stated) from each value of ``by`` to the next."""
    step = mean.diff(by)
    return step > 0 if rising else step < 0
